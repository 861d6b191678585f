/** The functions of a flame graph as rows: what each holds itself, and with all that it called. */

import type { IColumns } from './columns';
import { selvesOf } from './reshape';

export interface IFunctionRow {
  name: number;
  /** parts of the whole (0-1) */
  self: number;
  total: number;
  /** A against B: share in B less share in A */
  delta: number;
}

/** Most time first. A function that calls itself counts once. */
export function functionRows(columns: IColumns): IFunctionRow[] {
  const { parent, weight } = selvesOf(columns);
  const rows = new Map<number, IFunctionRow>();
  for (let index = 0; index < columns.name.length; index++) {
    const name = columns.name[index];
    if (parent[index] < 0) {
      continue;
    }
    const row = rows.get(name) ?? { name, self: 0, total: 0, delta: 0 };
    rows.set(name, row);
    row.self += weight[index];
    if (!calledByItself(columns, parent, index)) {
      row.total += columns.x1[index] - columns.x0[index];
      row.delta += columns.delta?.[index] ?? 0;
    }
  }
  return [...rows.values()].sort((a, b) => b.total - a.total);
}

function calledByItself(columns: IColumns, parent: Int32Array, index: number): boolean {
  for (let at = parent[index]; at >= 0; at = parent[at]) {
    if (columns.name[at] === columns.name[index]) {
      return true;
    }
  }
  return false;
}
