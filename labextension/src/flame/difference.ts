/** A against B: two flame graphs as one, with the change of every frame's share. */

import type { IFlame } from '../payload';
import { IColumns, toColumns } from './columns';
import { selvesOf } from './reshape';

interface INode {
  name: string;
  detail: string;
  kind: number;
  a: number;
  b: number;
  below: Map<string, INode>;
}

/**
 * Frames are as wide as the mean of their shares in A and B, so that what only one of them has is
 * seen too; `delta` is the share in B less the share in A. Functions are the same when their names and
 * kinds are: lines may have moved.
 *
 * Throws an Error where one of the two is damaged.
 */
export function compareFlames(a: IFlame, b: IFlame): IFlame {
  const root: INode = { name: 'A and B', detail: `A: ${a.label}; B: ${b.label}`, kind: 3, a: 0, b: 0, below: new Map() };
  add(root, toColumns(a), 'a');
  add(root, toColumns(b), 'b');
  return laidOut(root, `A against B: ${b.label}`);
}

function add(root: INode, columns: IColumns, side: 'a' | 'b'): void {
  const { parent, weight } = selvesOf(columns);
  for (let index = 0; index < columns.name.length; index++) {
    if (weight[index] > 0) {
      const path: number[] = [];
      for (let at = index; parent[at] >= 0; at = parent[at]) {
        path.unshift(columns.name[at]);
      }
      grow(root, columns, path, weight[index], side);
    }
  }
}

function grow(root: INode, columns: IColumns, path: number[], weight: number, side: 'a' | 'b'): void {
  root[side] += weight;
  let node = root;
  for (const name of path) {
    const kind = columns.kinds[name];
    const key = `${kind}\n${columns.names[name]}`;
    let next = node.below.get(key);
    if (!next) {
      next = { name: columns.names[name], detail: columns.details[name], kind, a: 0, b: 0, below: new Map() };
      node.below.set(key, next);
    }
    next[side] += weight;
    node = next;
  }
}

function laidOut(root: INode, label: string): IFlame {
  const flame: IFlame = {
    key: 'difference', label, samples: 0, names: [], details: [], kinds: [],
    name: [], depth: [], x0: [], x1: [], delta: []
  };
  const places = new Map<string, number>();
  const [wholeA, wholeB] = [root.a || 1, root.b || 1];
  const width = (node: INode) => (node.a / wholeA + node.b / wholeB) / 2;
  let level: [INode, number][] = [[root, 0]];
  for (let depth = 0; level.length; depth++) {
    const below: [INode, number][] = [];
    for (const [node, start] of level) {
      const key = `${node.kind}\n${node.name}`;
      if (!places.has(key)) {
        places.set(key, flame.names.length);
        flame.names.push(node.name);
        flame.details.push(node.detail);
        flame.kinds.push(node.kind);
      }
      flame.name.push(places.get(key)!);
      flame.depth.push(depth);
      flame.x0.push(start);
      flame.x1.push(Math.min(1, start + width(node)));
      flame.delta!.push(node.b / wholeB - node.a / wholeA);
      let at = start;
      for (const child of [...node.below.values()].sort((one, other) => width(other) - width(one))) {
        below.push([child, at]);
        at += width(child);
      }
    }
    level = below;
  }
  return flame;
}
