import type { IColumns } from './columns';

export interface IMatches {
  /** by name: 1 where it contains what was searched */
  names: Uint8Array;
  frames: number;
  /** part of all time (0-1) in which at least one matching frame was on the stack */
  share: number;
}

/** Frames whose name or place contains `text`, whatever its case. Nothing is searched for empty text. */
export function search(columns: IColumns, text: string): IMatches | null {
  const wanted = text.trim().toLowerCase();
  if (!wanted) {
    return null;
  }
  const names = Uint8Array.from(columns.names, (name, index) =>
    `${name}\n${columns.details[index]}`.toLowerCase().includes(wanted) ? 1 : 0
  );
  const spans: [number, number][] = [];
  for (let index = 0; index < columns.name.length; index++) {
    if (names[columns.name[index]]) {
      spans.push([columns.x0[index], columns.x1[index]]);
    }
  }
  return { names, frames: spans.length, share: covered(spans) };
}

/** Length of the union: recursion must not count twice. */
function covered(spans: [number, number][]): number {
  spans.sort((one, other) => one[0] - other[0]);
  let total = 0;
  let reached = 0;
  for (const [from, to] of spans) {
    total += Math.max(0, to - Math.max(from, reached));
    reached = Math.max(reached, to);
  }
  return Math.min(1, total);
}
