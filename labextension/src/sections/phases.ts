import { folded, make } from '../dom';
import type { IPhase, IReport } from '../payload';
import { table } from './table';

/** What the threads that fetch were in the middle of, and who wanted the cores. */
export function phases(report: IReport): Element[] {
  const found: Element[] = [];
  if (report.cores) {
    found.push(make('p', 'ioscope-cores', report.cores));
  }
  if (report.phases.length) {
    found.push(folded('By phase', each(report.phases)));
  }
  return found;
}

function each(rows: IPhase[]): HTMLElement {
  return table(
    ['', 'a batch', 'of their time', 'of that on a core'],
    rows.map(row => [row.label, row.perBatch, row.share, row.cpu])
  );
}
