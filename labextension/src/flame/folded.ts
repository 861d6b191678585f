/** What is drawn as text: one line a stack, outermost function first, as flamegraph.pl reads it. */

import type { IColumns } from './columns';
import { selvesOf } from './reshape';

const PARTS = 100_000; // of the whole, where what is drawn is time and not samples

export function foldedText(columns: IColumns): string {
  const { parent, weight } = selvesOf(columns);
  const whole = columns.samples || PARTS;
  const lines: string[] = [];
  for (let index = 0; index < columns.name.length; index++) {
    const count = Math.round(weight[index] * whole);
    if (count > 0) {
      const path: string[] = [];
      for (let at = index; at >= 0; at = parent[at]) {
        path.unshift(columns.names[columns.name[at]].replace(/[;\s]+/g, ' '));
      }
      lines.push(`${path.join(';')} ${count}`);
    }
  }
  return lines.length ? `${lines.join('\n')}\n` : '';
}
