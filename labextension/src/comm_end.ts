import type { Kernel } from '@jupyterlab/services';

/** Whether the other end of every comm is gone with this status. */
export function endsComms(status: Kernel.Status): boolean {
  return status === 'restarting' || status === 'autorestarting' || status === 'dead';
}

/** Close a comm that nobody listens to any more. */
export function endComm(comm: Kernel.IComm | null): void {
  if (comm && !comm.isDisposed) {
    comm.onClose = () => undefined;
    comm.onMsg = () => undefined;
    try {
      comm.close();
    } catch {
      comm.dispose(); // the connection is gone already
    }
  }
}
