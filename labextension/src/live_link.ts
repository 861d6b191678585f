import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel } from '@jupyterlab/services';
import { endComm, endsComms } from './comm_end';
import { Disposable } from './disposables';
import { list, number, text } from './json';

/** One quantity of the running kernel; `views/live_rows.py` makes it. */
export interface IRow {
  key: string;
  label: string;
  /** null where it was not measured; `why` then says the reason */
  value: number | null;
  text: string;
  /** top of the scale; null: the largest value that was seen */
  most: number | null;
  why: string;
}

export type LiveState = 'none' | 'waiting' | 'absent' | 'live';

export interface ILiveView {
  setState(state: LiveState): void;
  setRows(rows: IRow[]): void;
}

export const LIVE_TARGET = 'ioscope.live';

/** The kernel forgets a page after three of these without a word (`live_panel.py`). */
const SIGN_OF_LIFE_MS = 20_000;

/** The panel's line to one notebook's kernel, through restarts and changes of kernel. */
export class LiveLink implements Disposable {
  constructor(
    private readonly session: ISessionContext,
    private readonly view: ILiveView
  ) {
    session.kernelChanged.connect(this.connect, this);
    session.statusChanged.connect(this.onStatus, this);
    this.timer = window.setInterval(() => this.say('here'), SIGN_OF_LIFE_MS);
    this.connect();
  }

  /** Ask again: the kernel may have loaded ioscope by now. */
  retry(): void {
    if (!this.comm) {
      this.connect();
    }
  }

  dispose(): void {
    window.clearInterval(this.timer);
    this.session.kernelChanged.disconnect(this.connect, this);
    this.session.statusChanged.disconnect(this.onStatus, this);
    this.leave();
  }

  private connect(): void {
    this.leave();
    const kernel = this.session.session?.kernel;
    if (!kernel) {
      this.view.setState('none');
      return;
    }
    try {
      this.open(kernel);
    } catch (error) {
      console.warn('ioscope: no channel to the kernel', error);
      this.view.setState('none');
    }
  }

  private open(kernel: Kernel.IKernelConnection): void {
    const comm = kernel.createComm(LIVE_TARGET);
    let answered = false;
    this.comm = comm;
    comm.onMsg = message => {
      const rows = readRows(message.content.data);
      if (!answered) {
        answered = true;
        this.view.setState('live');
      }
      this.view.setRows(rows);
    };
    comm.onClose = () => {
      this.comm = null;
      if (answered) {
        this.connect(); // it took us for gone, as after a computer's sleep
      } else {
        this.view.setState('absent');
      }
    };
    this.view.setState('waiting');
    comm.open({});
  }

  private onStatus(_: ISessionContext, status: Kernel.Status): void {
    if (endsComms(status)) {
      this.comm = null; // the other end is gone: nothing is left to be told
      this.view.setState(status === 'dead' ? 'none' : 'absent');
    }
  }

  private say(cmd: string): void {
    if (this.comm && !this.comm.isDisposed) {
      this.comm.send({ cmd });
    }
  }

  private leave(): void {
    const comm = this.comm;
    this.comm = null;
    endComm(comm);
  }

  private comm: Kernel.IComm | null = null;
  private readonly timer: number;
}

/** Rows that can be drawn; a message that is none gives no rows. */
export function readRows(data: unknown): IRow[] {
  try {
    return list(data as Record<string, unknown>, 'rows', from => ({
      key: text(from, 'key'),
      label: text(from, 'label'),
      value: from.value === null ? null : number(from, 'value'),
      text: text(from, 'text'),
      most: from.most === null ? null : number(from, 'most'),
      why: text(from, 'why')
    }));
  } catch {
    return [];
  }
}
