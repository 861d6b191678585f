/** A fraction as a CSS length; whatever is not a number between 0 and 1 is drawn at the nearest end. */
export function cssPercent(fraction: number): string {
  return `${(unit(fraction) * 100).toFixed(3)}%`;
}

export function unit(value: number): number {
  return Number.isFinite(value) ? Math.min(1, Math.max(0, value)) : 0;
}
