import { IColumns, shareOf } from './columns';

export function percentText(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

/** What is said about a frame: its name, its place, its share of all samples. */
export function frameLines(columns: IColumns, index: number): string[] {
  const name = columns.name[index];
  const share = shareOf(columns, index);
  if (columns.delta) {
    const words = changeText(share, columns.delta[index]);
    return [columns.names[name], columns.details[name], words].filter(Boolean);
  }
  const count = Math.round(share * columns.samples).toLocaleString('en');
  const samples = columns.samples ? `, ${count} of ${columns.samples.toLocaleString('en')} samples` : '';
  return [columns.names[name], columns.details[name], `${percentText(share)} of the time${samples}`].filter(
    Boolean
  );
}

export interface ICellPlace {
  cell: number;
  /** 0 where unknown */
  line: number;
}

/** Where in the notebook a frame is, read from its details ("In [7], lines 3, 5"): its first line. */
export function cellPlace(columns: IColumns, index: number): ICellPlace | null {
  const name = columns.name[index];
  const found = /^In \[(\d+)\](?:, lines? (\d+))?/.exec(columns.details[name] ?? '');
  return found && columns.kinds[name] === CELL ? { cell: +found[1], line: +(found[2] ?? 0) } : null;
}

const CELL = 2; // of IFlame.kinds

/** Both shares of a frame whose mean share and change are known. */
export function changeText(mean: number, delta: number): string {
  const [a, b] = [Math.max(0, mean - delta / 2), Math.max(0, mean + delta / 2)];
  return `${percentText(a)} in A, ${percentText(b)} in B`;
}
