import type { Disposables } from '../disposables';
import { make, put, svg } from '../dom';
import { unit } from '../numbers';
import type { IReport, ITrack } from '../payload';
import type { Selection } from '../selection';
import { brush } from './brush';
import { marks } from './outliers';

const WIDTH = 1000;
const HEIGHT = 40;
const INSET = 2; // keeps the line's width inside the picture at top and bottom

/** What changed over the run, every row on the same time axis; a span of it can be selected. */
export function timeline(
  report: IReport,
  selection: Selection | null,
  life: Disposables
): HTMLElement | null {
  const { tracks, start, end } = report.timeline;
  const drawn = tracks.filter(track => track.x.length);
  if (!drawn.length) {
    return null;
  }
  const rows = make('div', 'ioscope-spark-rows');
  put(rows, ...marks(report.outliers), ...drawn.flatMap(row));
  const axis = make('div', 'ioscope-time-axis');
  put(axis, make('span', '', start), make('span', '', end));
  put(rows, axis);
  follow(rows, life);
  const element = make('div', 'ioscope-timeline');
  if (report.spans && selection) {
    put(element, brush(report.spans, rows, selection, life));
  }
  return put(element, rows);
}

function row(track: ITrack): Element[] {
  const label = make('span', 'ioscope-row-label', track.label);
  const value = make('span', 'ioscope-spark-value', track.value);
  if (track.sumUp) {
    put(value, make('span', 'ioscope-soft', ` ${track.sumUp}`));
  }
  label.title = value.title = track.title;
  return [label, spark(track), value];
}

function spark(track: ITrack): SVGElement {
  const viewBox = `0 0 ${WIDTH} ${HEIGHT}`;
  const element = svg('svg', { viewBox, preserveAspectRatio: 'none', role: 'img' });
  element.setAttribute('class', 'ioscope-spark');
  element.setAttribute('aria-label', track.title || `${track.label}: ${track.value}`);
  element.dataset.key = track.key.replace(/-\d+$/, '');
  const points = track.x.map((x, index) => `${place(x, WIDTH)},${level(track.y[index])}`);
  const first = `${place(track.x[0], WIDTH)},${HEIGHT}`;
  const last = `${place(track.x[track.x.length - 1], WIDTH)},${HEIGHT}`;
  const area = [first, ...points, last].join(' ');
  put(element, svg('polygon', { points: area, class: 'ioscope-spark-area' }));
  return put(element, svg('polyline', { points: points.join(' '), class: 'ioscope-spark-line' }));
}

function place(fraction: number, size: number): string {
  return (unit(fraction) * size).toFixed(1);
}

function level(fraction: number): string {
  return (HEIGHT - INSET - unit(fraction) * (HEIGHT - 2 * INSET)).toFixed(1);
}

/** One upright line through all rows under the pointer: what happened at the same time. */
function follow(rows: HTMLElement, life: Disposables): void {
  const cursor = make('div', 'ioscope-cursor');
  cursor.hidden = true;
  put(rows, cursor);
  life.listen(rows, 'mousemove', event => {
    const area = rows.querySelector('.ioscope-spark')?.getBoundingClientRect();
    const x = event.clientX;
    cursor.hidden = !area || x < area.left || x > area.right;
    cursor.style.left = `${x - rows.getBoundingClientRect().left}px`;
  });
  life.listen(rows, 'mouseleave', () => {
    cursor.hidden = true;
  });
}
