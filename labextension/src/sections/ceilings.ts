import { folded, make, put } from '../dom';
import { cssPercent } from '../numbers';
import type { ICeiling, IReport } from '../payload';

/** The throughput that each resource alone would allow, and where the loop is now. */
export function ceilings(report: IReport): HTMLElement | null {
  if (!report.ceilings.length) {
    return null;
  }
  const element = make('div', 'ioscope-ceilings');
  put(element, make('p', 'ioscope-note', 'What each resource alone would allow, in samples/s.'));
  const at = report.ceilingNow;
  const rows = report.ceilings.map(ceiling => row(ceiling, at?.fraction));
  const list = make('div', 'ioscope-ceiling-rows');
  list.setAttribute('role', 'list');
  put(element, put(list, ...rows));
  if (at) {
    put(element, now(at));
  }
  const explained = report.ceilings.filter(ceiling => ceiling.how);
  if (explained.length) {
    put(element, folded('How each was found', explanations(explained)));
  }
  return element;
}

function row(ceiling: ICeiling, at: number | undefined): HTMLElement {
  const element = make('div', 'ioscope-ceiling');
  element.setAttribute('role', 'listitem');
  element.title = ceiling.how;
  element.classList.toggle('ioscope-limiting', ceiling.limiting);
  const words = make('div', 'ioscope-ceiling-words');
  const label = make('span', '', ceiling.label);
  if (ceiling.limiting) {
    put(label, make('span', 'ioscope-hidden', ' (limits)'));
  }
  put(words, label, make('span', '', ceiling.text));
  const track = make('div', 'ioscope-ceiling-track');
  const bar = make('div', 'ioscope-ceiling-bar');
  bar.style.width = cssPercent(ceiling.fraction);
  put(track, bar);
  if (at !== undefined) {
    put(track, mark(at));
  }
  return put(element, words, track);
}

function mark(fraction: number): HTMLElement {
  const element = make('div', 'ioscope-now-mark');
  element.style.left = cssPercent(fraction);
  return element;
}

function now(at: { fraction: number; text: string }): HTMLElement {
  const label = make('span', 'ioscope-now-text', at.text);
  label.style.left = cssPercent(at.fraction);
  // beyond the middle the text goes to the left of the marks, where there is room
  label.classList.toggle('ioscope-now-left', at.fraction > 0.5);
  return put(make('div', 'ioscope-now'), label);
}

function explanations(all: ICeiling[]): HTMLElement {
  const element = make('dl', 'ioscope-explained');
  for (const ceiling of all) {
    put(element, make('dt', '', ceiling.label), make('dd', '', ceiling.how));
  }
  return element;
}
