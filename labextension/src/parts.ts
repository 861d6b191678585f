/** Parts of time that have a colour of their own; the style sheet has one variable for each. */
const PARTS = new Set([
  'step',
  'cpu',
  'run_queue',
  'disk',
  'page_fault',
  'network',
  'sleep',
  'gil',
  'lock',
  'hand_over',
  'start_up',
  'idle',
  'other',
  'rest'
]);

/** The class that colours a part; one that this version does not know looks like `rest`. */
export function partClass(name: string): string {
  return `ioscope-part-${PARTS.has(name) ? name : 'rest'}`;
}
