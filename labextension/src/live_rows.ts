/** The quantities of a kernel over the last two minutes: a curve and the newest value each. */

import { make, put, svg } from './dom';
import type { IRow } from './live_link';

const KEPT_MS = 120_000;
const WIDTH = 100;
const HEIGHT = 24;
const LINE = { fill: 'none', 'vector-effect': 'non-scaling-stroke' };
const CURVE = {
  class: 'ioscope-live-curve',
  viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
  preserveAspectRatio: 'none',
  'aria-hidden': 'true'
};

interface IPoint {
  time: number;
  /** null where a reading was missing: the curve ends there */
  value: number | null;
}

class Row {
  constructor(label: string) {
    put(this.element, make('span', 'ioscope-live-label', label), this.curve, this.text);
  }

  show(row: IRow, now: number): void {
    this.text.textContent = row.value === null ? '–' : row.text;
    this.element.title = row.why ? `${row.label}: not measured: ${row.why}` : row.label;
    this.points.push({ time: now, value: row.value });
    while (this.points[0].time < now - KEPT_MS) {
      this.points.shift();
    }
    const seen = this.points.flatMap(({ value }) => (value === null ? [] : [value]));
    // what ended a moment ago, a cell's throughput, is still a part of the last two minutes
    this.element.classList.toggle('ioscope-live-missing', !seen.length);
    this.most = row.value === null ? this.most : row.most;
    this.draw(this.most ?? Math.max(0, ...seen), now);
  }

  private draw(most: number, now: number): void {
    const x = (time: number) => WIDTH * (1 - (now - time) / KEPT_MS);
    const y = (value: number) => HEIGHT - 1 - (HEIGHT - 2) * (most > 0 ? Math.min(1, value / most) : 0);
    const stretches: string[][] = [[]];
    for (const { time, value } of this.points) {
      if (value !== null) {
        stretches[stretches.length - 1].push(`${x(time).toFixed(1)},${y(value).toFixed(1)}`);
      } else if (stretches[stretches.length - 1].length) {
        stretches.push([]);
      }
    }
    const lines = stretches.filter(places => places.length).map(places => places.join(' '));
    this.curve.replaceChildren(...lines.map(points => svg('polyline', { ...LINE, points })));
  }

  readonly element = make('li', 'ioscope-live-row');
  private readonly curve = svg('svg', CURVE);
  private readonly text = make('span', 'ioscope-live-value', '–');
  private most: number | null = null;
  private readonly points: IPoint[] = [];
}

/** Rows appear in the order in which the kernel first sent them. */
export class LiveRows {
  show(rows: IRow[], now: number): void {
    const reasons = new Map<string, string[]>();
    for (const row of rows) {
      this.rowOf(row).show(row, now);
      if (row.why) {
        reasons.set(row.why, [...(reasons.get(row.why) ?? []), row.label]);
      }
    }
    const words = [...reasons].map(([why, labels]) => `${labels.join(', ')}: ${why}`);
    this.missing.textContent = words.join(' · ');
  }

  clear(): void {
    this.rows.clear();
    this.list.replaceChildren();
    this.missing.textContent = '';
  }

  private rowOf(row: IRow): Row {
    let found = this.rows.get(row.key);
    if (!found) {
      found = new Row(row.label);
      found.element.dataset.key = row.key;
      this.rows.set(row.key, found);
      this.list.append(found.element);
    }
    return found;
  }

  private readonly rows = new Map<string, Row>();
  private readonly list = make('ul', 'ioscope-live-rows');
  private readonly missing = make('p', 'ioscope-live-why');
  private readonly span = make('p', 'ioscope-live-span', 'The last two minutes, now at the right.');
  readonly element = put(make('div'), this.span, this.list, this.missing);
}
