import { make, put, svg } from '../dom';
import { cssPercent } from '../numbers';
import type { IComparison } from '../payload';

const ROW_PX = 34;
const AXIS_PX = 18;
const RADIUS_PX = 3.4;
// vertical offsets that keep near trials apart; the order repeats, so the same data looks the same
const OFFSETS_PX = [0, -6, 5, -3, 8, -8, 3, 6, -5];

/** Every trial as a dot on one axis: spread and overlap are seen before any number is read. */
export function dots(result: IComparison): HTMLElement {
  const element = make('div', 'ioscope-dots');
  const labels = make('div', 'ioscope-dot-labels');
  const height = result.arms.length * ROW_PX + AXIS_PX;
  const chart = svg('svg', { height, role: 'img', 'aria-label': spoken(result) });
  for (const [index, arm] of result.arms.entries()) {
    const label = make('span', 'ioscope-row-label', `${arm.name}  ${arm.label}`);
    label.title = arm.label;
    put(labels, label);
    put(chart, ...trials(result, arm.name, index));
  }
  put(labels, make('span', 'ioscope-row-label ioscope-tick', 'samples/s'));
  put(chart, ...axis(result, result.arms.length * ROW_PX));
  return put(element, labels, chart);
}

function spoken(result: IComparison): string {
  return result.arms.map(arm => `${arm.label}: ${arm.throughput}`).join('; ');
}

function trials(result: IComparison, arm: string, row: number): SVGElement[] {
  const middle = (row + 0.5) * ROW_PX;
  const line = { x1: 0, x2: '100%', y1: middle, y2: middle, class: 'ioscope-axis-line' };
  const own = result.dots.filter(dot => dot.arm === arm);
  const circles = own.map((dot, index) =>
    svg('circle', {
      cx: cssPercent(dot.x),
      cy: middle + OFFSETS_PX[index % OFFSETS_PX.length],
      r: RADIUS_PX,
      class: `ioscope-dot ioscope-arm-${row}`
    })
  );
  return [svg('line', line), ...circles];
}

function axis(result: IComparison, top: number): SVGElement[] {
  return result.ticks.flatMap(tick => {
    const x = cssPercent(tick.x);
    const text = svg('text', { x, y: top + 13, 'text-anchor': 'middle', class: 'ioscope-tick' });
    text.textContent = tick.text;
    return [svg('line', { x1: x, x2: x, y1: 0, y2: top, class: 'ioscope-axis-line' }), text];
  });
}
