import { folded, make } from '../dom';
import type { IBlock, IPhase, IReport } from '../payload';
import { table } from './table';

/** What the threads that fetch were in the middle of, who wanted the cores, and block devices. */
export function phases(report: IReport): Element[] {
  const found: Element[] = [];
  if (report.cores) {
    found.push(make('p', 'ioscope-cores', report.cores));
  }
  if (report.phases.length) {
    found.push(folded('By phase', each(report.phases)));
  }
  if (report.block?.length) {
    found.push(folded('Block devices', devices(report.block)));
  }
  return found;
}

function devices(rows: IBlock[]): HTMLElement {
  return table(
    'Block devices',
    ['requests at the device', 'requests', 'bytes', 'median', '99 %', '99.9 %', 'in queue', 'asked by'],
    rows.map(row => [row.name, row.requests, row.bytes, row.median, row.p99, row.p999, row.queue, row.who]),
    rows.map(row => row.title)
  );
}

function each(rows: IPhase[]): HTMLElement {
  return table(
    'By phase',
    ['phase', 'a batch', 'of their time', 'of that on a core'],
    rows.map(row => [row.label, row.perBatch, row.share, row.cpu])
  );
}
