/** The same samples in another order: inverted, own code only, one state, one part of the run. */

import type { ISpan } from '../selection';
import { IColumns, parentOf } from './columns';

/** Values of `IFlame.kinds` that mean more than whose code it is. */
export const OWN_KINDS: readonly number[] = [1, 2];
export const WAITING_STATE = 3;
export const OTHER_STATE = 4;

/** What is asked for. `state` is a name of a frame on the root, `WAITING` for all waits, or empty. */
export interface IWish {
  inverted: boolean;
  own: boolean;
  state: string;
  span: ISpan | null;
}

export const WAITING = '\u0000waiting';
export const NO_WISH: IWish = { inverted: false, own: false, state: '', span: null };

/** Parents, and what each frame holds itself, without what it called. */
export interface ISelves {
  parent: Int32Array;
  weight: Float64Array;
  delta: Float64Array | null;
}

export function selvesOf(columns: IColumns): ISelves {
  const count = columns.name.length;
  const parent = new Int32Array(count);
  const weight = Float64Array.from(columns.x1, (x1, index) => x1 - columns.x0[index]);
  const delta = columns.delta ? Float64Array.from(columns.delta) : null;
  for (let index = 0; index < count; index++) {
    parent[index] = parentOf(columns, index);
    if (parent[index] >= 0) {
      weight[parent[index]] -= columns.x1[index] - columns.x0[index];
      if (delta) {
        delta[parent[index]] -= columns.delta![index];
      }
    }
  }
  return { parent, weight: weight.map(value => Math.max(0, value)), delta };
}

/** Names of the states that stand on the root, those of waiting first. */
export function statesOf(columns: IColumns): { name: string; waiting: boolean }[] {
  const [first, end] = columns.rows[1] ?? [0, 0];
  const found = [];
  for (let index = first; index < end; index++) {
    const name = columns.name[index];
    const kind = columns.kinds[name];
    if (kind === WAITING_STATE || kind === OTHER_STATE) {
      found.push({ name: columns.names[name], waiting: kind === WAITING_STATE });
    }
  }
  return found;
}

/** The graph as it is wished for; null where nothing is left. The columns themselves for no wish. */
export function reshaped(columns: IColumns, wish: IWish): IColumns | null {
  const span = columns.over ? wish.span : null;
  if (!wish.inverted && !wish.own && !wish.state && !span) {
    return columns;
  }
  const selves = selvesOf(columns);
  const top: INode = { name: columns.name[0] ?? 0, weight: 0, delta: 0, below: new Map() };
  for (let index = 0; index < columns.name.length; index++) {
    const weight = span ? inSpan(columns.over![index], span) : selves.weight[index];
    const delta = selves.delta ? selves.delta[index] : 0;
    const path = weight > 0 || delta ? pathOf(columns, selves.parent, index, wish) : null;
    if (path) {
      grow(top, path, weight, delta);
    }
  }
  return top.weight > 0 ? laidOut(columns, top, span ? 0 : top.weight) : null;
}

function inSpan(over: Map<number, number>, span: ISpan): number {
  let total = 0;
  for (const [stretch, weight] of over) {
    total += stretch >= span.from && stretch < span.to ? weight : 0;
  }
  return total;
}

/** Names from the outside in, without the root; null where the state is not the one asked for. */
function pathOf(
  columns: IColumns,
  parent: Int32Array,
  index: number,
  wish: IWish
): number[] | null {
  const path: number[] = [];
  for (let at = index; at >= 0 && parent[at] >= 0; at = parent[at]) {
    path.push(columns.name[at]);
  }
  path.reverse();
  const state = path.length && columns.kinds[path[0]] >= WAITING_STATE ? path.shift()! : -1;
  if (wish.state === WAITING) {
    if (state < 0 || columns.kinds[state] !== WAITING_STATE) {
      return null;
    }
  } else if (wish.state && (state < 0 || columns.names[state] !== wish.state)) {
    return null;
  }
  const shown = wish.own ? ownPart(columns.kinds, path) : path;
  if (wish.inverted) {
    shown.reverse();
  }
  return state >= 0 && (!wish.state || wish.state === WAITING) ? [state, ...shown] : shown;
}

/** The user's frames, and of a library the function that they called. */
function ownPart(kinds: Uint8Array, path: number[]): number[] {
  const own = (name: number) => OWN_KINDS.includes(kinds[name]);
  return path.filter((name, at) => own(name) || (at > 0 && own(path[at - 1])));
}

interface INode {
  name: number;
  weight: number;
  delta: number;
  below: Map<number, INode>;
}

function grow(top: INode, path: number[], weight: number, delta: number): void {
  let node = top;
  node.weight += weight;
  node.delta += delta;
  for (const name of path) {
    let next = node.below.get(name);
    if (!next) {
      next = { name, weight: 0, delta: 0, below: new Map() };
      node.below.set(name, next);
    }
    next.weight += weight;
    next.delta += delta;
    node = next;
  }
}

/** A tree as columns, sorted by depth and place; `kept` is its part of all samples, 0 if unknown. */
function laidOut(columns: IColumns, top: INode, kept: number): IColumns {
  const name: number[] = [];
  const depth: number[] = [];
  const x0: number[] = [];
  const x1: number[] = [];
  const delta: number[] = [];
  const rows: [number, number][] = [];
  let level: [INode, number][] = [[top, 0]];
  while (level.length) {
    const below: [INode, number][] = [];
    rows.push([name.length, name.length + level.length]);
    for (const [node, start] of level) {
      name.push(node.name);
      depth.push(rows.length - 1);
      x0.push(start / top.weight);
      x1.push((start + node.weight) / top.weight);
      delta.push(node.delta);
      let at = start;
      for (const child of [...node.below.values()].sort((a, b) => b.weight - a.weight)) {
        below.push([child, at]);
        at += child.weight;
      }
    }
    level = below;
  }
  return {
    ...columns,
    name: Uint32Array.from(name),
    depth: Uint32Array.from(depth),
    x0: Float64Array.from(x0),
    x1: Float64Array.from(x1),
    rows,
    samples: Math.round(columns.samples * kept),
    over: undefined,
    delta: columns.delta ? Float64Array.from(delta) : undefined
  };
}
