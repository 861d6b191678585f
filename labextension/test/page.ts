/** A page without a browser: what the report needs of one. */

import { JSDOM } from 'jsdom';

export function openPage(): { root: HTMLElement; close: () => void } {
  const { window } = new JSDOM('<!doctype html><body><div id="root"></div></body>');
  const before = new Map<string, unknown>();
  const provided: Record<string, unknown> = {
    window,
    document: window.document,
    getComputedStyle: window.getComputedStyle.bind(window),
    MutationObserver: window.MutationObserver
  };
  const here = globalThis as unknown as Record<string, unknown>;
  for (const [name, value] of Object.entries(provided)) {
    before.set(name, here[name]);
    here[name] = value;
  }
  // jsdom has no canvas and says so on every call; the graph then draws nothing
  window.HTMLCanvasElement.prototype.getContext = (() => null) as never;
  const close = () => {
    window.close();
    for (const [name, value] of before) {
      here[name] = value;
    }
  };
  return { root: window.document.getElementById('root') as HTMLElement, close };
}

/** `report.json` as a fresh copy that a test may change. */
export function fresh<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

export function buttonCalled(root: HTMLElement, text: string): HTMLButtonElement {
  const all = [...root.querySelectorAll('button')];
  const found = all.find(element => element.textContent === text);
  if (!found) {
    throw new Error(`no button ${text}; there are ${all.map(one => one.textContent).join(', ')}`);
  }
  return found;
}
