import type { Disposables } from '../disposables';
import { button, make, put, scrolledByKeys } from '../dom';
import type { IHost } from '../host';

/** Code to take away: shown, copied, or put into a cell below. */
export function codeBlock(code: string, host: IHost, life: Disposables): HTMLElement {
  const element = make('div', 'ioscope-code');
  const source = make('code', '', code);
  const actions = make('div', 'ioscope-actions');
  if (host.insertCode) {
    const insert = button('Insert code');
    life.listen(insert, 'click', () => host.insertCode?.(code));
    put(actions, insert);
  }
  const copy = button('Copy');
  const said = make('span', 'ioscope-note');
  said.setAttribute('role', 'status');
  life.listen(copy, 'click', () => {
    void copyText(code, source).then(words => {
      said.textContent = words;
    });
  });
  put(actions, copy, said);
  const block = scrolledByKeys(put(make('pre'), source));
  return put(element, block, actions);
}

/** Into the clipboard; the answer says what happened. `source` is the element that shows the text. */
export async function copyText(code: string, source: HTMLElement | null): Promise<string> {
  try {
    await navigator.clipboard.writeText(code);
    return 'Copied.';
  } catch {
    // pages without a secure address have no clipboard: leave the user one key away from it
    if (!source) {
      return 'This page may not use the clipboard.';
    }
    const range = document.createRange();
    range.selectNodeContents(source);
    const selection = window.getSelection();
    selection?.removeAllRanges();
    selection?.addRange(range);
    return 'Selected: press Ctrl+C (⌘C) to copy.';
  }
}
