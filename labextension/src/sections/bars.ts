import type { Disposables } from '../disposables';
import { folded, make, put, scrolling, section } from '../dom';
import { cssPercent } from '../numbers';
import { partClass } from '../parts';
import type { IBar, IPart, IReport, ISpans } from '../payload';
import { Selection, spanText, summed, unpacked } from '../selection';
import { textFits } from '../text_fit';
import { percentText } from '../flame/words';
import { phases } from './phases';

/** Where the time went: one bar for the consumer and each worker. */
export function bars(
  report: IReport,
  selection: Selection | null,
  life: Disposables
): HTMLElement | null {
  if (!report.bars.length) {
    return null;
  }
  const element = section('Where the time went', 'ioscope-bars');
  const rows = make('div', 'ioscope-bar-rows');
  const tracks = report.bars.map(() => make('div', 'ioscope-track'));
  report.bars.forEach((bar, index) => {
    put(rows, make('span', 'ioscope-row-label', bar.who), tracks[index]);
    fill(tracks[index], bar);
  });
  const when = make('p', 'ioscope-note');
  when.hidden = true;
  put(element, when, rows, legend(report.legend, rows, life), folded('As numbers', table(report)));
  put(element, ...phases(report));
  const fit = () => fitTexts(rows);
  life.onResize(rows, fit);
  fit();
  const { spans } = report;
  if (spans && selection) {
    const selected = new SelectedBars(report, spans);
    selection.onChange(span => {
      report.bars.forEach((bar, index) => fill(tracks[index], selected.bar(bar, index, span)));
      when.hidden = !span;
      when.textContent = span ? `From ${spanText(spans, span)} of the run.` : '';
      fit();
    });
  }
  return element;
}

/** The bars of a selection: sums of its stretches. */
class SelectedBars {
  constructor(
    report: IReport,
    private readonly spans: ISpans
  ) {
    this.legend = report.legend.map(entry => [entry.name, entry.label]);
  }

  bar(bar: IBar, index: number, span: Selection['span']): IBar {
    const row = this.rows[index] ?? [];
    if (!span || !row.length) {
      return span ? { ...bar, title: `${bar.title} (known for the whole run only)` } : bar;
    }
    const times = row.map(({ name, times }) => ({ name, time: summed(times, span) }));
    const whole = times.reduce((sum, { time }) => sum + time, 0);
    const labels = new Map([...this.legend, ...bar.parts.map(part => [part.name, part.label] as const)]);
    const parts = times
      .filter(({ name, time }) => time > SEEN * whole && labels.has(name))
      .map(({ name, time }) => {
        const fraction = time / whole;
        return { name, label: labels.get(name)!, fraction, text: percentText(fraction) };
      });
    const title = parts.length ? `${bar.who}, ${spanText(this.spans, span)}` : `${bar.who}: not there`;
    return { who: bar.who, title, parts };
  }

  private readonly legend: (readonly [string, string])[];
  private readonly rows = this.spans.rows.map(row =>
    row.parts.map(part => ({ name: part.name, times: unpacked(part.times) }))
  );
}

// of a bar; as in views/bars.py: less is no pixel
const SEEN = 0.0005;

function fill(element: HTMLElement, bar: IBar): void {
  element.setAttribute('role', 'img');
  const words = bar.parts.map(part => `${part.label} ${part.text}`).join(', ');
  element.setAttribute('aria-label', `${bar.who}: ${words}`);
  element.title = bar.title;
  element.replaceChildren(...bar.parts.map(part => piece(bar, part)));
}

function piece(bar: IBar, part: IPart): HTMLElement {
  const element = make('div', `ioscope-piece ${partClass(part.name)}`);
  element.dataset.part = part.name;
  element.style.width = cssPercent(part.fraction);
  element.title = `${bar.who}: ${part.label} ${part.text}`;
  element.dataset.label = part.label;
  element.dataset.share = part.text;
  return put(element, make('span'));
}

/** What fits into each piece: name and share, the share, or nothing. A text cut off says less than none. */
function fitTexts(rows: HTMLElement): void {
  const pieces = [...rows.querySelectorAll<HTMLElement>('.ioscope-piece')];
  const widths = pieces.map(element => element.clientWidth); // all read before anything changes
  pieces.forEach((element, index) => {
    const { label, share = '' } = element.dataset;
    const texts = [`${label} ${share}`, share, ''];
    element.firstElementChild!.textContent = texts.find(text => !text || textFits(text, widths[index]))!;
  });
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
  put(headings, make('th', '', 'whole run'), ...report.legend.map(entry => make('th', '', entry.label)));
  put(element, put(make('thead'), headings));
  const body = make('tbody');
  for (const bar of report.bars) {
    const texts = new Map(bar.parts.map(part => [part.name, part.text]));
    const cells = report.legend.map(entry => make('td', '', texts.get(entry.name) ?? '–'));
    put(body, put(make('tr'), make('th', '', bar.who), ...cells));
  }
  return scrolling(put(element, body), 'Shares of time');
}
