/** What the report draws as a file for speedscope: one profile a flame graph. */

import type { IFlame } from '../payload';
import { toColumns } from './columns';
import { selvesOf } from './reshape';

const SCHEMA = 'https://www.speedscope.app/file-format-schema.json';
const PARTS = 100_000;

export function speedscopeText(flames: IFlame[], name: string): string {
  const frames: { name: string; file: string }[] = [];
  const profiles = flames.map(flame => profileOf(flame, frames));
  const whole = { $schema: SCHEMA, name, exporter: 'ioscope', activeProfileIndex: 0 };
  return JSON.stringify({ ...whole, shared: { frames }, profiles });
}

function profileOf(flame: IFlame, frames: { name: string; file: string }[]): object {
  const first = frames.length;
  frames.push(...flame.names.map((name, index) => ({ name, file: flame.details[index] })));
  const columns = toColumns(flame);
  const { parent, weight } = selvesOf(columns);
  const samples: number[][] = [];
  const weights: number[] = [];
  for (let index = 0; index < columns.name.length; index++) {
    const count = Math.round(weight[index] * (columns.samples || PARTS));
    if (count > 0) {
      const stack: number[] = [];
      for (let at = index; at >= 0; at = parent[at]) {
        stack.unshift(first + columns.name[at]);
      }
      samples.push(stack);
      weights.push(count);
    }
  }
  const endValue = weights.reduce((sum, value) => sum + value, 0);
  return { type: 'sampled', name: flame.label, unit: 'none', startValue: 0, endValue, samples, weights };
}
