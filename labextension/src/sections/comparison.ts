import type { Disposables } from '../disposables';
import { folded, make, put, scrolling, section } from '../dom';
import type { IHost } from '../host';
import type { IArmRow, IComparison } from '../payload';
import { codeBlock } from './code';
import { dots } from './dots';
import { grid } from './grid';

/** What an A/B run found. */
export function comparison(result: IComparison, host: IHost, life: Disposables): HTMLElement {
  const element = section(result.title, 'ioscope-comparison');
  element.dataset.verdict = result.verdict;
  const words = make('div', 'ioscope-words');
  put(words, make('p', 'ioscope-headline', result.headline));
  put(words, ...result.lines.map(line => make('p', 'ioscope-line', line)));
  if (result.how?.length) {
    const list = put(make('ul'), ...result.how.map(line => make('li', '', line)));
    put(words, folded('How it was measured', list));
  }
  const sides = put(make('div', 'ioscope-sides'), words);
  if (result.dots.length) {
    put(sides, dots(result));
  }
  put(element, sides);
  if (result.grid) {
    put(element, grid(result.grid));
  }
  if (result.arms.length) {
    put(element, table(result.arms));
  }
  if (result.code) {
    put(element, codeBlock(result.code, host, life));
  }
  put(element, ...result.notes.map(note => make('p', 'ioscope-note', note)));
  return element;
}

const COLUMNS: [string, (arm: IArmRow) => string][] = [
  ['throughput', arm => arm.throughput],
  ['CPU per sample', arm => arm.cpu],
  ['first batch', arm => arm.firstBatch],
  ['peak memory', arm => arm.memory],
  ['trials', arm => String(arm.trials)]
];

function table(arms: IArmRow[]): HTMLElement {
  const element = make('table', 'ioscope-table');
  const headings = put(make('tr'), make('th', '', 'loader'), ...COLUMNS.map(([name]) => make('th', '', name)));
  const body = make('tbody');
  for (const arm of arms) {
    const cells = COLUMNS.map(([, text]) => make('td', '', text(arm)));
    put(body, put(make('tr'), make('th', '', `${arm.name}  ${arm.label}`), ...cells));
  }
  put(element, put(make('thead'), headings), body);
  return scrolling(element, 'Both loaders');
}
