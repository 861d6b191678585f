/** A `*.ioscope.json` file holds a profile; the report that can be drawn without Python lies beside it. */

import type { Fields } from './json';

const HOW = 'In Python, ioscope.load("…").show() draws it.';

/** The payload in a file's text, or a sentence that says why there is none. */
export function reportInFile(content: string): { payload: unknown; problem: string } {
  let document: unknown;
  try {
    document = JSON.parse(content);
  } catch {
    return { payload: null, problem: 'This file is damaged or cut off: it is not complete JSON.' };
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    return { payload: null, problem: 'This file is no ioscope profile.' };
  }
  const from = document as Fields;
  if (typeof from.report === 'object' && from.report !== null) {
    return { payload: from.report, problem: '' };
  }
  if ('headline' in from) {
    return { payload: from, problem: '' };
  }
  if ('profile' in from) {
    return { payload: null, problem: `This profile was saved without a picture. ${HOW}` };
  }
  return { payload: null, problem: 'This file is no ioscope profile.' };
}
