import { folded, make, put, section } from '../dom';
import { cssPercent } from '../numbers';
import type { ICeiling, IReport } from '../payload';

/** The throughput that each resource alone would allow, and where the loop is now. */
export function ceilings(report: IReport): HTMLElement | null {
  if (!report.ceilings.length) {
    return null;
  }
  const element = section('Ceilings: what each resource alone would allow', 'ioscope-ceilings');
  const chart = make('div', 'ioscope-ceiling-chart');
  put(chart, ...report.ceilings.map(row));
  if (report.ceilingNow) {
    put(chart, now(report.ceilingNow));
  }
  put(element, chart);
  const explained = report.ceilings.filter(ceiling => ceiling.how);
  if (explained.length) {
    put(element, folded('How each was found', explanations(explained)));
  }
  return element;
}

function row(ceiling: ICeiling): HTMLElement {
  const element = make('div', 'ioscope-ceiling');
  element.title = ceiling.how;
  const area = make('div', 'ioscope-ceiling-area');
  const bar = make('div', 'ioscope-ceiling-bar');
  bar.style.width = cssPercent(ceiling.fraction);
  bar.classList.toggle('ioscope-limiting', ceiling.limiting);
  const value = make('span', 'ioscope-ceiling-value', ceiling.text);
  value.style.left = cssPercent(ceiling.fraction);
  put(area, bar, value);
  const label = make('span', 'ioscope-row-label', ceiling.label);
  if (ceiling.limiting) {
    put(label, make('span', 'ioscope-hidden', ' (limits)'));
  }
  return put(element, label, area);
}

function now(at: { fraction: number; text: string }): HTMLElement {
  const element = make('div', 'ioscope-now');
  const area = make('div', 'ioscope-ceiling-area');
  const line = make('div', 'ioscope-now-line');
  line.style.left = cssPercent(at.fraction);
  const label = make('span', 'ioscope-now-text', at.text);
  // beyond the middle the text goes to the left of the line, where there is room
  label.classList.toggle('ioscope-now-left', at.fraction > 0.55);
  label.style.left = cssPercent(at.fraction);
  put(area, line, label);
  return put(element, area);
}

function explanations(all: ICeiling[]): HTMLElement {
  const element = make('dl', 'ioscope-explained');
  for (const ceiling of all) {
    put(element, make('dt', '', ceiling.label), make('dd', '', ceiling.how));
  }
  return element;
}
