import { folded, make, put } from '../dom';
import type { IReport } from '../payload';

/** What profiling itself cost, what was not measured, and where the numbers can be found. */
export function notes(report: IReport, unreadable: string[]): HTMLElement {
  const element = make('div', 'ioscope-notes');
  if (report.tier && report.fullEvidence) {
    put(element, make('p', '', report.tier));
  }
  if (report.cost) {
    put(element, make('p', '', report.cost));
  }
  if (report.notMeasured.length) {
    const count = report.notMeasured.length;
    put(element, folded(`${count} ${count === 1 ? 'thing was' : 'things were'} not measured`, gaps(report)));
  }
  if (unreadable.length) {
    const parts = unreadable.join('; ');
    put(element, make('p', 'ioscope-error', `Parts of this report could not be read: ${parts}.`));
  }
  if (report.variable) {
    const words = make('p', '', 'The whole profile is in the variable ');
    put(element, put(words, make('code', '', report.variable), '.'));
  }
  return element;
}

function gaps(report: IReport): HTMLElement {
  const element = make('ul');
  for (const gap of report.notMeasured) {
    const reason = gap.reason ? `: ${gap.reason}` : '';
    put(element, put(make('li'), make('b', '', gap.what), reason));
  }
  return element;
}
