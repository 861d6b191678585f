/** The user's settings: sent to the kernel before a profiled cell runs, colours to the page. */

import { INotebookTracker, Notebook, NotebookActions } from '@jupyterlab/notebook';
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { hasMagic } from './magic';

const COLOURS = ['theme', 'light', 'dark'];

/** What the magic takes where the cell says nothing; fields of `jupyter_ioscope/settings.py`. */
export interface IUsual {
  rate_hz: number;
  stacks: boolean;
  live_line: boolean;
}

export const DEFAULTS: IUsual = { rate_hz: 25, stacks: true, live_line: true };

/** Python that hands the settings over; it does nothing in a kernel that has not loaded ioscope. */
export function handOver(usual: IUsual): string {
  const text = JSON.stringify(JSON.stringify(usual));
  return `(lambda s: s and s.use(${text}))(__import__('sys').modules.get('jupyter_ioscope.settings'))`;
}

export class Settings {
  constructor(private readonly tracker: INotebookTracker) {
    NotebookActions.executionScheduled.connect(this.beforeCell, this);
  }

  use(settings: ISettingRegistry.ISettings): void {
    const read = () => {
      const given = settings.composite;
      this.usual = {
        rate_hz: typeof given.rateHz === 'number' ? given.rateHz : DEFAULTS.rate_hz,
        stacks: given.stacks !== false,
        live_line: given.liveLine !== false
      };
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
    const text = JSON.stringify(this.usual);
    if (text === (this.sent.get(kernel.id) ?? JSON.stringify(DEFAULTS))) {
      return;
    }
    kernel.requestExecute({
      code: handOver(this.usual),
      silent: true,
      store_history: false,
      stop_on_error: false
    });
    if (text === JSON.stringify(DEFAULTS)) {
      this.sent.delete(kernel.id);
    } else {
      this.sent.set(kernel.id, '?'); // a restart forgets them: settings of one's own are sent each time
    }
  }

  private usual: IUsual = DEFAULTS;
  private readonly sent = new Map<string, string>();
}
