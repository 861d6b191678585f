const MAGIC = '%%ioscope';

/** Whether a cell begins with the magic. */
export function hasMagic(source: string): boolean {
  return source.trimStart().split('\n', 1)[0].trim().split(/\s/, 1)[0] === MAGIC;
}

/** `source` under the magic; a cell that has it already stays as it is. */
export function withMagic(source: string): string {
  return hasMagic(source) ? source : `${MAGIC}\n${source}`;
}
