/** The user's settings: sent to the kernel before a profiled cell runs, colours to the page. */

import { INotebookTracker, Notebook, NotebookActions } from '@jupyterlab/notebook';
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { hasMagic } from './magic';
import { DEFAULTS, handOver, IUsual, usualOf } from './usual';

const COLOURS = ['theme', 'light', 'dark'];

export class Settings {
  constructor(private readonly tracker: INotebookTracker) {
    NotebookActions.executionScheduled.connect(this.beforeCell, this);
  }

  use(settings: ISettingRegistry.ISettings): void {
    const read = () => {
      const given = settings.composite;
      this.usual = usualOf(given);
      const colours = COLOURS.includes(String(given.colours)) ? String(given.colours) : 'theme';
      document.body.dataset.ioscopeColours = colours;
    };
    settings.changed.connect(read);
    read();
  }

  /** Requests reach a kernel in the order in which they are made: this one before the cell. */
  private beforeCell(_: unknown, { notebook, cell }: { notebook: Notebook; cell: unknown }): void {
    const source = (cell as Notebook['activeCell'])?.model.sharedModel.getSource() ?? '';
    const panel = this.tracker.find(one => one.content === notebook);
    const kernel = panel?.sessionContext.session?.kernel;
    if (!kernel || !hasMagic(source)) {
      return;
    }
    // A restart forgets them, so settings of one's own are sent each time; defaults only after those.
    const own = JSON.stringify(this.usual) !== JSON.stringify(DEFAULTS);
    if (!own && !this.told.has(kernel.id)) {
      return;
    }
    kernel.requestExecute({
      code: handOver(this.usual),
      silent: true,
      store_history: false,
      stop_on_error: false
    });
    if (own) {
      this.told.add(kernel.id);
    } else {
      this.told.delete(kernel.id);
    }
  }

  private usual: IUsual = DEFAULTS;
  /** kernels that have settings other than the defaults */
  private readonly told = new Set<string>();
}
