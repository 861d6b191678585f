/** The status bar's item: what the running profiled cell of the open notebook does. */

import type { CodeCell } from '@jupyterlab/cells';
import { NotebookActions } from '@jupyterlab/notebook';
import type { IOutputAreaModel } from '@jupyterlab/outputarea';
import type { IStatusBar } from '@jupyterlab/statusbar';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { hasMagic } from './magic';

/** Follows the line that the kernel keeps under the cell (`live.py` marks it); costs it nothing. */
export class Status extends Widget {
  constructor(bar: IStatusBar) {
    super();
    this.addClass('ioscope-status');
    this.node.setAttribute('aria-label', 'ioscope');
    NotebookActions.executionScheduled.connect(this.begins, this);
    NotebookActions.executed.connect(this.ended, this);
    const shown = bar.registerStatusItem('jupyter-ioscope:status', {
      item: this,
      align: 'left',
      rank: 20,
      isActive: () => this.cell !== null,
      activeStateChanged: this.changed
    });
    this.disposed.connect(() => shown.dispose());
  }

  private begins(_: unknown, { cell }: { cell: unknown }): void {
    const code = cell as CodeCell;
    if (hasMagic(code.model.sharedModel.getSource())) {
      this.leave();
      this.cell = code;
      code.model.outputs.changed.connect(this.read, this);
      code.disposed.connect(this.leave, this);
      this.say('ioscope: recording');
    }
  }

  private ended(_: unknown, { cell }: { cell: unknown }): void {
    if (cell === this.cell) {
      this.leave();
    }
  }

  private read(outputs: IOutputAreaModel): void {
    for (let i = 0; i < outputs.length; i++) {
      const output = outputs.get(i);
      const mark = output.metadata['ioscope'] as { live?: unknown } | undefined;
      const text = output.data['text/plain'];
      if (mark?.live === true && typeof text === 'string') {
        this.say(text);
      }
    }
  }

  private say(text: string): void {
    this.node.textContent = text;
    this.changed.emit();
  }

  private leave(): void {
    if (this.cell) {
      this.cell.model?.outputs.changed.disconnect(this.read, this);
      this.cell.disposed.disconnect(this.leave, this);
      this.cell = null;
      this.say('');
    }
  }

  private cell: CodeCell | null = null;
  private readonly changed = new Signal<this, void>(this);
}
