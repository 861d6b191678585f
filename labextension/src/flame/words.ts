import { IColumns, shareOf } from './columns';

export function percentText(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

/** What is said about a frame: its name, its place, its share of all samples. */
export function frameLines(columns: IColumns, index: number): string[] {
  const name = columns.name[index];
  const share = shareOf(columns, index);
  const count = Math.round(share * columns.samples).toLocaleString('en');
  const samples = columns.samples ? `, ${count} of ${columns.samples.toLocaleString('en')} samples` : '';
  return [columns.names[name], columns.details[name], `${percentText(share)} of the time${samples}`].filter(
    Boolean
  );
}
