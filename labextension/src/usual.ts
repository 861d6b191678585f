/** What the magic takes where the cell says nothing; fields of `jupyter_ioscope/settings.py`. */
export interface IUsual {
  rate_hz: number;
  stacks: boolean;
  live_line: boolean;
}

export const DEFAULTS: IUsual = { rate_hz: 25, stacks: true, live_line: true };

/** Python that hands the settings over; it does nothing in a kernel that has not loaded ioscope. */
export function handOver(usual: IUsual): string {
  const text = JSON.stringify(JSON.stringify(usual));
  return `(lambda s: s and s.use(${text}))(__import__('sys').modules.get('jupyter_ioscope.settings'))`;
}

/** From what the settings editor holds. */
export function usualOf(given: Record<string, unknown>): IUsual {
  return {
    rate_hz: typeof given.rateHz === 'number' ? given.rateHz : DEFAULTS.rate_hz,
    stacks: given.stacks !== false,
    live_line: given.liveLine !== false
  };
}
