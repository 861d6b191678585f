import type { Disposables } from '../disposables';
import { folded, make, put, section } from '../dom';
import { cssPercent } from '../numbers';
import { partClass } from '../parts';
import type { IBar, IPart, IReport } from '../payload';
import { textFits } from '../text_fit';
import { phases } from './phases';

/** Where a batch's time went: one bar for the consumer and each worker. */
export function bars(report: IReport, life: Disposables): HTMLElement | null {
  if (!report.bars.length) {
    return null;
  }
  const element = section("Where a batch's time went", 'ioscope-bars');
  const rows = make('div', 'ioscope-bar-rows');
  put(rows, ...report.bars.flatMap(bar => [make('span', 'ioscope-row-label', bar.who), track(bar)]));
  put(element, rows, legend(report.legend, rows, life), folded('As numbers', table(report)));
  put(element, ...phases(report));
  const fit = () => hideCutTexts(rows);
  life.onResize(rows, fit);
  fit();
  return element;
}

function track(bar: IBar): HTMLElement {
  const element = make('div', 'ioscope-track');
  element.setAttribute('role', 'img');
  const words = bar.parts.map(part => `${part.label} ${part.text}`).join(', ');
  element.setAttribute('aria-label', `${bar.who}: ${words}`);
  if (bar.title) {
    element.title = bar.title;
  }
  return put(element, ...bar.parts.map(part => piece(bar, part)));
}

function piece(bar: IBar, part: IPart): HTMLElement {
  const element = make('div', `ioscope-piece ${partClass(part.name)}`);
  element.dataset.part = part.name;
  element.style.width = cssPercent(part.fraction);
  element.title = `${bar.who}: ${part.label} ${part.text}`;
  return put(element, make('span', '', part.text));
}

/** A text that does not fit into its piece says less than none. */
function hideCutTexts(rows: HTMLElement): void {
  for (const element of rows.querySelectorAll<HTMLElement>('.ioscope-piece')) {
    const label = element.firstElementChild as HTMLElement;
    label.hidden = !textFits(label.textContent ?? '', element.clientWidth);
  }
}

function legend(entries: IReport['legend'], rows: HTMLElement, life: Disposables): HTMLElement {
  const element = make('ul', 'ioscope-legend');
  for (const entry of entries) {
    const item = make('li');
    put(item, make('i', `ioscope-swatch ${partClass(entry.name)}`), make('span', '', entry.label));
    life.listen(item, 'mouseenter', () => light(rows, entry.name));
    life.listen(item, 'mouseleave', () => light(rows, null));
    put(element, item);
  }
  return element;
}

/** Pale all parts but one, so that it can be followed through the rows. */
function light(rows: HTMLElement, name: string | null): void {
  for (const element of rows.querySelectorAll<HTMLElement>('.ioscope-piece')) {
    element.classList.toggle('ioscope-pale', name !== null && element.dataset.part !== name);
  }
}

function table(report: IReport): HTMLElement {
  const element = make('table', 'ioscope-table');
  const headings = make('tr');
  put(headings, make('th'), ...report.legend.map(entry => make('th', '', entry.label)));
  put(element, put(make('thead'), headings));
  const body = make('tbody');
  for (const bar of report.bars) {
    const texts = new Map(bar.parts.map(part => [part.name, part.text]));
    const cells = report.legend.map(entry => make('td', '', texts.get(entry.name) ?? '–'));
    put(body, put(make('tr'), make('th', '', bar.who), ...cells));
  }
  return put(make('div', 'ioscope-scroll'), put(element, body));
}
