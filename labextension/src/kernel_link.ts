import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel, KernelMessage } from '@jupyterlab/services';
import { endComm, endsComms } from './comm_end';
import { Disposable } from './disposables';
import { CONNECTING, NO_KERNEL } from './host';
import type { Command } from './payload';
import { COMM_TARGET, IState } from './protocol';
import type { IReportView } from './report';

/** Ties a report to the kernel that made it, through restarts and changes of kernel. */
export class KernelLink implements Disposable {
  constructor(
    private readonly session: ISessionContext,
    private readonly reportId: string,
    private readonly view: IReportView
  ) {
    session.kernelChanged.connect(this.connect, this);
    session.statusChanged.connect(this.onStatus, this);
    this.connect();
  }

  dispose(): void {
    this.session.kernelChanged.disconnect(this.connect, this);
    this.session.statusChanged.disconnect(this.onStatus, this);
    this.leave();
  }

  private connect(): void {
    this.leave();
    const kernel = this.session.session?.kernel;
    if (!kernel) {
      this.view.setLink(NO_KERNEL);
      return;
    }
    try {
      this.open(kernel);
    } catch (error) {
      // a second connection to a kernel may have its comms switched off
      console.warn('ioscope: no channel to the kernel', error);
      this.view.setLink(NO_KERNEL);
    }
  }

  private open(kernel: Kernel.IKernelConnection): void {
    const comm = kernel.createComm(COMM_TARGET);
    this.comm = comm;
    comm.onMsg = message => this.receive(message);
    comm.onClose = () => {
      this.comm = null;
      this.lost();
    };
    this.view.setLink(CONNECTING);
    comm.open({ report_id: this.reportId });
  }

  private receive(message: KernelMessage.ICommMsgMsg): void {
    const state = message.content.data as IState;
    const send = (command: Command) => void this.comm?.send({ ...command });
    this.view.setLink({ state: 'live', note: '', send });
    if (state.progress !== undefined) {
      this.view.setProgress(state.progress);
    }
    if (state.comparisons !== undefined) {
      this.view.setComparisons(state.comparisons);
    }
  }

  private onStatus(_: ISessionContext, status: Kernel.Status): void {
    if (endsComms(status)) {
      this.comm = null; // the other end is gone: nothing is left to be told
      this.lost();
    }
  }

  private lost(): void {
    this.view.setLink(NO_KERNEL);
    this.view.setProgress(null);
  }

  private leave(): void {
    const comm = this.comm;
    this.comm = null;
    endComm(comm);
  }

  private comm: Kernel.IComm | null = null;
}
