/**
 * How a report in JupyterLab or Notebook talks to the kernel that made it.
 *
 * The page opens a comm with target `COMM_TARGET` and `IOpen` as its data. The kernel answers at once with
 * an `IState` if it knows the report, and closes the comm if it does not (another kernel, or a restarted
 * one). From then on the page sends `Command`s and the kernel sends an `IState` whenever something changed,
 * to every comm open for that report. A page that goes away closes its comm.
 *
 * The anywidget carries the same values as traits and custom messages where the extension is missing.
 */

import type { IComparison, IProgress } from './payload';

export const COMM_TARGET = 'ioscope.report';

export interface IOpen {
  report_id: string;
}

/** What is absent has not changed. */
export interface IState {
  progress?: IProgress;
  comparisons?: IComparison[];
}
