/** The panel in the side bar: the running kernel's last two minutes, and the profiles at hand. */

import { INotebookTracker, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { Widget } from '@lumino/widgets';
import { Disposables } from './disposables';
import { button, make, put } from './dom';
import { profileIcon } from './icon';
import { ILiveView, IRow, LiveLink, LiveState } from './live_link';
import { LiveRows } from './live_rows';
import { loadMagic, NOT_INSTALLED } from './notebook';
import { ProfileList } from './profile_list';
import { IFound, profilesOf } from './profiles';

export const LIVE_ID = 'ioscope-live';

/** How long a page in the background keeps its line to an idle kernel. */
const LOOKED_AWAY_MS = 3_000;

const WORDS: Record<LiveState, string> = {
  none: 'Open a notebook with a running kernel to see what it does.',
  waiting: 'Waiting for the kernel; a running cell may have to end first …',
  absent: 'ioscope is not loaded in this kernel.',
  live: ''
};

/** Talks to the kernel only while somebody can see it. */
export class LivePanel extends Widget implements ILiveView {
  constructor(
    private readonly tracker: INotebookTracker,
    compare: (a: IFound, b: IFound) => void
  ) {
    super();
    this.id = LIVE_ID;
    this.title.icon = profileIcon;
    this.title.caption = 'ioscope: live readings and profiles';
    this.addClass('ioscope-live');
    this.profiles = new ProfileList(compare, this.life);
    this.life.add(() => this.profiles.dispose());
    this.life.listen(this.load, 'click', () => void this.loadIt());
    this.note.setAttribute('role', 'status');
    const live = put(make('section'), this.heading, this.note, this.load, this.rows.element);
    put(this.node, live, this.profiles.element);
    tracker.currentChanged.connect(this.refresh, this);
    NotebookActions.executed.connect(this.onExecuted, this);
    document.addEventListener('visibilitychange', this.onVisible);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      document.removeEventListener('visibilitychange', this.onVisible);
      window.clearTimeout(this.lookedAway);
      NotebookActions.executed.disconnect(this.onExecuted, this);
      this.tracker.currentChanged.disconnect(this.refresh, this);
      this.leave();
      this.life.dispose();
      super.dispose();
    }
  }

  setState(state: LiveState): void {
    this.note.textContent = WORDS[state];
    this.note.hidden = !WORDS[state];
    this.load.hidden = state !== 'absent';
    this.node.dataset.state = state;
    this.rows.element.hidden = state !== 'live';
  }

  setRows(rows: IRow[]): void {
    this.rows.show(rows, performance.now());
  }

  protected override onAfterShow(): void {
    this.refresh();
  }

  protected override onAfterAttach(): void {
    this.refresh();
  }

  protected override onAfterHide(): void {
    // JupyterLab hides all of the page for a moment while it changes the theme: that is no closing
    if (!rootOf(this).isHidden) {
      this.leave();
    }
  }

  /** Follow the notebook in front, or nobody while out of sight. */
  private refresh(): void {
    if (!this.isVisible) {
      this.leave();
      return;
    }
    if (document.hidden) {
      this.lookAway();
      return;
    }
    const panel = this.tracker.currentWidget;
    this.profiles.show(profilesOf(this.tracker));
    if (panel !== this.followed || !this.link) {
      this.leave();
      this.follow(panel);
    }
  }

  /**
   * Leave an idle kernel. With one that runs a cell the line stays: a new one would not be answered
   * before the cell has ended, and whoever looks at another page meanwhile comes back to see this one.
   */
  private lookAway(): void {
    window.clearTimeout(this.lookedAway);
    this.lookedAway = window.setTimeout(() => {
      if (!document.hidden) {
        return;
      }
      if (this.followed?.sessionContext.session?.kernel?.status === 'busy') {
        this.lookAway();
      } else {
        this.leave();
      }
    }, LOOKED_AWAY_MS);
  }

  private follow(panel: NotebookPanel | null): void {
    this.heading.textContent = panel ? `Live: ${panel.title.label}` : 'Live';
    this.rows.clear();
    if (!panel) {
      this.setState('none');
      return;
    }
    this.followed = panel;
    panel.disposed.connect(this.leave, this);
    this.link = new LiveLink(panel.sessionContext, this);
  }

  private leave(): void {
    this.followed?.disposed.disconnect(this.leave, this);
    this.followed = null;
    this.link?.dispose();
    this.link = null;
  }

  private onExecuted(_: unknown, { cell }: { cell: unknown }): void {
    const source = (cell as NotebookPanel['content']['activeCell'])?.model?.sharedModel.getSource();
    if (this.isVisible && source?.includes('ioscope')) {
      this.profiles.show(profilesOf(this.tracker));
      this.link?.retry();
    }
  }

  private async loadIt(): Promise<void> {
    const kernel = this.followed?.sessionContext.session?.kernel;
    if (!kernel) {
      return;
    }
    this.load.disabled = true;
    const loaded = await loadMagic(kernel);
    this.load.disabled = false;
    if (loaded) {
      this.link?.retry();
    } else {
      this.note.textContent = NOT_INSTALLED;
    }
  }

  private readonly onVisible = () => this.refresh();
  private readonly life = new Disposables();
  private readonly heading = make('h3', '', 'Live');
  private readonly note = make('p', 'ioscope-live-note');
  private readonly load = button('Load ioscope');
  private readonly rows = new LiveRows();
  private readonly profiles: ProfileList;
  private followed: NotebookPanel | null = null;
  private lookedAway = 0;
  private link: LiveLink | null = null;
}

function rootOf(widget: Widget): Widget {
  return widget.parent ? rootOf(widget.parent) : widget;
}
