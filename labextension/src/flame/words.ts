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

/** Both shares of a frame whose mean share and change are known. */
export function changeText(mean: number, delta: number): string {
  const [a, b] = [Math.max(0, mean - delta / 2), Math.max(0, mean + delta / 2)];
  return `${percentText(a)} in A, ${percentText(b)} in B`;
}
