import { make, put, svg } from '../dom';
import type { ISpans } from '../payload';
import { ISpan, Selection, spanText, summed, unpacked } from '../selection';

const WIDTH = 600;
const HEIGHT = 70;
const GAP = 1;

/** How long batches were waited for: the whole run in grey, the selected part in colour. */
export function batches(spans: ISpans, selection: Selection): HTMLElement {
  const element = make('div', 'ioscope-batches');
  const counts = spans.waits.counts.map(unpacked);
  const whole = counts.map(row => summed(row, null));
  const words = make('p', 'ioscope-note');
  words.setAttribute('role', 'status');
  const picture = svg('svg', {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: 'none',
    role: 'img',
    class: 'ioscope-histogram'
  });
  const all = columns(whole, 'ioscope-count-all');
  const chosen = columns(whole, 'ioscope-count-chosen');
  put(picture, ...all, ...chosen);
  all.forEach((column, index) => {
    const { edges } = spans.waits;
    put(column, titled(`${edges[index]} – ${edges[index + 1]}: ${number(whole[index])} batches`));
  });
  const show = (span: ISpan | null) => {
    scale(all, whole, whole);
    scale(chosen, counts.map(row => summed(row, span)), whole);
    words.textContent = sentence(spans, span);
    picture.setAttribute('aria-label', `Waits for batches. ${words.textContent}`);
  };
  selection.onChange(show);
  show(selection.span);
  const axis = make('div', 'ioscope-time-axis');
  put(axis, make('span', '', spans.waits.edges[0]));
  put(axis, make('span', '', 'time waited for a batch, on a scale of equal ratios'));
  put(axis, make('span', '', spans.waits.edges[spans.waits.edges.length - 1]));
  return put(element, make('h4', '', 'Batches'), words, picture, axis);
}

function sentence(spans: ISpans, span: ISpan | null): string {
  const arrived = summed(unpacked(spans.batches), span);
  const samples = summed(unpacked(spans.samples), span);
  const stretches = span ? span.to - span.from : spans.marks.length - 1;
  const rate = samples / (stretches * spans.seconds || 1);
  const rates = samples ? `, ${number(samples)} samples, ${number(rate)} samples/s` : '';
  return `${number(arrived)} batches${rates} in ${spanText(spans, span)}.`;
}

function number(value: number): string {
  return (value >= 100 ? Math.round(value) : Number(value.toPrecision(3))).toLocaleString('en');
}

function columns(whole: number[], className: string): SVGElement[] {
  const width = WIDTH / whole.length;
  return whole.map((_, index) =>
    svg('rect', { x: index * width, width: Math.max(1, width - GAP), class: className })
  );
}

/** The tallest of the whole run fills the height; a single batch is still seen. */
function scale(rects: SVGElement[], values: number[], whole: number[]): void {
  const most = Math.max(1, ...whole);
  rects.forEach((rect, index) => {
    const height = values[index] ? Math.max(1.5, (values[index] / most) * HEIGHT) : 0;
    rect.setAttribute('y', (HEIGHT - height).toFixed(1));
    rect.setAttribute('height', height.toFixed(1));
  });
}

function titled(text: string): SVGElement {
  const element = svg('title', {});
  element.textContent = text;
  return element;
}
