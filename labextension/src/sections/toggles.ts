import type { Disposables } from '../disposables';
import { button, folded, freshId, make, put, section } from '../dom';
import type { ILink } from '../host';
import type { Command, IProgress, IReport, IToggle } from '../payload';
import { ProgressLine } from './progress';

export interface ITogglesHost {
  send(command: Command): void;
  insertCode?: (code: string) => void;
}

/** Toggles shown unfolded: the report gives the most useful ones first. */
const FIRST = 4;

const WHOLE =
  'In copies of this kernel, with your real step instead of a stand-in. Your variables stay as ' +
  'they are, and files that the cell writes are put back.';

/** "Try it": fixes to tick, and the buttons that try them on the user's own loader. */
export class Toggles {
  readonly element: HTMLElement;

  /** `ticked` is kept by the caller, so that ticks outlive a redraw. */
  constructor(
    report: IReport,
    private readonly ticked: Set<string>,
    private readonly host: ITogglesHost,
    life: Disposables
  ) {
    this.element = section('Try it', 'ioscope-toggles');
    this.offered = report.toggles.filter(toggle => !toggle.refusal);
    const refused = report.toggles.filter(toggle => toggle.refusal);
    const [first, rest] = [this.offered.slice(0, FIRST), this.offered.slice(FIRST)];
    put(this.element, ...first.map(toggle => this.row(toggle, life)));
    if (rest.length) {
      const rows = rest.map(toggle => this.row(toggle, life));
      const list = folded(`${rest.length} more to try`, ...rows);
      list.open = rest.some(toggle => this.ticked.has(toggle.name));
      put(this.element, list);
    }
    const whole = report.wholeCell ? [this.wholeRow()] : [];
    put(this.element, ...whole, this.actions(life), this.progress.element, this.note);
    if (refused.length) {
      const rows = refused.map(toggle => this.row(toggle, life));
      const list = folded(`${refused.length} more that do not apply here`, ...rows);
      list.open = !this.offered.length;
      put(this.element, list);
    }
    this.note.setAttribute('role', 'status');
  }

  setLink(link: ILink): void {
    this.link = link;
    this.refresh();
  }

  setProgress(progress: IProgress): void {
    this.state = progress.state;
    this.progress.show(progress);
    this.refresh();
  }

  private row(toggle: IToggle, life: Disposables): HTMLElement {
    const element = make('div', 'ioscope-toggle');
    const box = make('input');
    box.type = 'checkbox';
    box.id = freshId('toggle');
    box.disabled = Boolean(toggle.refusal);
    box.checked = !toggle.refusal && this.ticked.has(toggle.name);
    box.dataset.toggle = toggle.name;
    life.listen(box, 'change', () => {
      this.ticked[box.checked ? 'add' : 'delete'](toggle.name);
      this.refresh();
    });
    const words = make('div', 'ioscope-toggle-words');
    const name = make('label', '', toggle.title);
    name.htmlFor = box.id;
    put(words, name, ...this.small(toggle, box));
    element.classList.toggle('ioscope-refused', Boolean(toggle.refusal));
    const predicted = make('span', 'ioscope-predicted');
    if (toggle.predicted) {
      put(predicted, make('span', 'ioscope-soft', 'expected '), toggle.predicted);
    }
    return put(element, box, words, predicted);
  }

  private small(toggle: IToggle, box: HTMLElement): Element[] {
    const lines: HTMLElement[] = toggle.refusal
      ? [make('p', 'ioscope-refusal', toggle.refusal)]
      : [toggle.effect, toggle.cost && `Cost: ${toggle.cost}`].filter(Boolean).map(text => make('p', '', text));
    for (const line of lines) {
      line.id = freshId('words');
    }
    box.setAttribute('aria-describedby', lines.map(line => line.id).join(' '));
    if (toggle.suggested && !toggle.refusal) {
      lines.unshift(make('span', 'ioscope-badge', 'suggested'));
    }
    return lines;
  }

  private wholeRow(): HTMLElement {
    this.whole.type = 'checkbox';
    this.whole.id = freshId('whole');
    const name = make('label', '', 'Run my whole cell in every trial');
    name.htmlFor = this.whole.id;
    const words = put(make('div', 'ioscope-toggle-words'), name, make('p', '', WHOLE));
    return put(make('div', 'ioscope-toggle ioscope-option'), this.whole, words);
  }

  private actions(life: Disposables): HTMLElement {
    const element = make('div', 'ioscope-actions');
    life.listen(this.run, 'click', () => {
      this.setProgress({ state: 'running', text: 'Starting …', fraction: -1 });
      const toggles = this.chosen().map(toggle => toggle.name);
      const command = { cmd: 'run_ab' as const, toggles };
      this.host.send(this.whole.checked ? { ...command, wholeCell: true } : command);
    });
    life.listen(this.cancel, 'click', () => {
      this.setProgress({ state: 'cancelling', text: 'Cancelling …', fraction: -1 });
      this.host.send({ cmd: 'cancel' });
    });
    life.listen(this.tune, 'click', () => {
      this.setProgress({ state: 'running', text: 'Starting …', fraction: -1 });
      this.host.send({ cmd: 'tune' });
    });
    this.tune.title = 'Search the number of workers and of batches ahead';
    put(element, this.run, this.tune, this.cancel);
    if (this.host.insertCode && this.offered.some(toggle => toggle.code)) {
      life.listen(this.insert, 'click', () => this.host.insertCode?.(this.code()));
      put(element, this.insert);
    }
    return element;
  }

  private chosen(): IToggle[] {
    return this.offered.filter(toggle => this.ticked.has(toggle.name));
  }

  private code(): string {
    const parts = this.chosen().filter(toggle => toggle.code);
    return parts.map(toggle => `# ${toggle.title}\n${toggle.code}`).join('\n\n');
  }

  private refresh(): void {
    const live = this.link?.state === 'live';
    const busy = this.state === 'running' || this.state === 'cancelling';
    const chosen = this.chosen();
    this.run.disabled = !live || busy || !chosen.length;
    this.tune.disabled = !live || busy;
    this.cancel.hidden = !busy;
    this.cancel.disabled = !live || this.state === 'cancelling';
    this.insert.disabled = !chosen.some(toggle => toggle.code);
    this.note.textContent = live ? '' : (this.link?.note ?? '');
    this.run.title = live && !busy && !chosen.length ? 'Tick at least one fix first' : '';
  }

  private readonly offered: IToggle[];
  private readonly whole = make('input');
  private readonly run = button('Run A/B', 'ioscope-primary');
  private readonly tune = button('Tune workers');
  private readonly cancel = button('Cancel');
  private readonly insert = button('Insert code');
  private readonly progress = new ProgressLine();
  private readonly note = make('p', 'ioscope-note');
  private link: ILink | null = null;
  private state: IProgress['state'] = 'idle';
}
