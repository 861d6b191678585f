/** Frames as typed columns, and the searches over them. Everything else of the graph asks here. */

import type { IFlame } from '../payload';

export interface IColumns {
  names: string[];
  details: string[];
  kinds: Uint8Array;
  name: Uint32Array;
  depth: Uint32Array;
  x0: Float64Array;
  x1: Float64Array;
  /** [first, end) of the frames at each depth */
  rows: [number, number][];
  samples: number;
  /** of each frame itself: its weight in each stretch of the run */
  over?: Map<number, number>[];
  /** A against B: share in B less share in A */
  delta?: Float64Array;
}

/**
 * The columns of a flame graph.
 *
 * Throws an Error if they are not what the searches rely on: sorted by depth, then x0; inside 0-1;
 * names that exist; and frames of a row that do not overlap.
 */
export function toColumns(flame: IFlame): IColumns {
  const columns: IColumns = {
    names: flame.names,
    details: flame.details,
    kinds: Uint8Array.from(flame.kinds),
    name: Uint32Array.from(flame.name),
    depth: Uint32Array.from(flame.depth),
    x0: Float64Array.from(flame.x0),
    x1: Float64Array.from(flame.x1),
    rows: [],
    samples: flame.samples,
    ...(flame.over ? { over: flame.over.map(sparse) } : {}),
    ...(flame.delta ? { delta: Float64Array.from(flame.delta) } : {})
  };
  for (let index = 0; index < columns.x0.length; index++) {
    const problem = problemAt(columns, index);
    if (problem) {
      throw new Error(`frame ${index} ${problem}`);
    }
    if (columns.depth[index] === columns.rows.length) {
      columns.rows.push([index, index]);
    }
    columns.rows[columns.rows.length - 1][1] = index + 1;
  }
  return columns;
}

/** "3:12 7:4" */
function sparse(text: string): Map<number, number> {
  const pairs = text.split(' ').filter(Boolean).map(pair => pair.split(':').map(Number));
  return new Map(pairs.map(([stretch, weight]) => [stretch || 0, weight || 0]));
}

// Python rounds positions to a few decimals
const TOLERANCE = 1e-3;

function problemAt(columns: IColumns, index: number): string {
  const { depth, x0, x1, rows, name, names } = columns;
  const row = rows.length - 1;
  if (!(x0[index] >= -TOLERANCE && x1[index] <= 1 + TOLERANCE && x0[index] <= x1[index])) {
    return 'is outside of the graph';
  }
  if (name[index] >= names.length) {
    return 'has no name';
  }
  if (depth[index] !== row && depth[index] !== row + 1) {
    return 'is out of order';
  }
  if (depth[index] === row && x0[index] < x1[index - 1] - TOLERANCE) {
    return 'overlaps the one before it';
  }
  return '';
}

/** The first frame in [low, high) that ends after `x`; `high` if none does. */
export function firstEndingAfter(x1: Float64Array, low: number, high: number, x: number): number {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x1[middle] <= x) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** The frame at a depth and position, or -1. */
export function frameAt(columns: IColumns, depth: number, x: number): number {
  const row = columns.rows[depth];
  if (!row) {
    return -1;
  }
  const index = firstEndingAfter(columns.x1, row[0], row[1], x);
  return index < row[1] && columns.x0[index] <= x ? index : -1;
}

export function parentOf(columns: IColumns, index: number): number {
  const middle = (columns.x0[index] + columns.x1[index]) / 2;
  const depth = columns.depth[index];
  return depth === 0 ? -1 : frameAt(columns, depth - 1, middle);
}

/** The widest of the frames called by this one, or -1. */
export function widestChild(columns: IColumns, index: number): number {
  const row = columns.rows[columns.depth[index] + 1];
  if (!row) {
    return -1;
  }
  const { x0, x1 } = columns;
  let best = -1;
  let widest = 0;
  for (let i = firstEndingAfter(x1, row[0], row[1], x0[index]); i < row[1]; i++) {
    if (x0[i] >= x1[index]) {
      break;
    }
    if (x1[i] - x0[i] > widest) {
      widest = x1[i] - x0[i];
      best = i;
    }
  }
  return best;
}

/** The next frame of the same depth in a direction (-1 or 1), or -1. */
export function neighbour(columns: IColumns, index: number, step: -1 | 1): number {
  const [first, end] = columns.rows[columns.depth[index]];
  const next = index + step;
  return next >= first && next < end ? next : -1;
}

export function shareOf(columns: IColumns, index: number): number {
  return columns.x1[index] - columns.x0[index];
}
