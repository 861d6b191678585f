/** Colours and fonts from the style sheet, since a canvas cannot read CSS variables itself. */

import type { Disposables } from '../disposables';
import { make } from '../dom';

export interface ILook {
  /** by kind of frame: library, user's file, notebook cell, root; neighbours differ in shade */
  fills: string[][];
  /** from less in B through equal to more in B */
  deltas: string[];
  match: string;
  ink: string;
  focus: string;
  font: string;
  fontOwn: string;
  /** mean width of a character */
  characterPx: number;
}

const KINDS = ['library', 'file', 'cell', 'root', 'root'];
const DELTA_STEPS = 4; // on each side
const SHADES = 3;
const CHARACTERS = 'the_quick_brown_fox.jumps (over)';

export function readLook(element: HTMLElement, pen: CanvasRenderingContext2D): ILook {
  const probe = make('span');
  element.append(probe);
  const colour = (name: string): string => {
    probe.style.color = `var(--ioscope-flame-${name})`;
    return getComputedStyle(probe).color;
  };
  const fills = KINDS.map(kind =>
    Array.from({ length: SHADES }, (_, shade) => colour(`${kind}-${shade}`))
  );
  const [match, ink, focus] = ['match', 'ink', 'focus'].map(colour);
  const [less, even, more] = ['less', 'even', 'more'].map(colour);
  const deltas = [...mixed(less, even), even, ...mixed(more, even).reverse()];
  probe.remove();
  const family = getComputedStyle(element).fontFamily || 'sans-serif';
  const font = `12px ${family}`;
  const fontOwn = `600 12px ${family}`;
  pen.font = fontOwn;
  const characterPx = pen.measureText(CHARACTERS).width / CHARACTERS.length || 7;
  return { fills, deltas, match, ink, focus, font, fontOwn, characterPx };
}

/** Colours from `strong` towards `even`, without it. */
function mixed(strong: string, even: string): string[] {
  const [from, to] = [strong, even].map(text => (text.match(/[\d.]+/g) ?? []).map(Number));
  return Array.from({ length: DELTA_STEPS }, (_, step) => {
    const part = step / DELTA_STEPS;
    const rgb = [0, 1, 2].map(i => Math.round((from[i] ?? 0) * (1 - part) + (to[i] ?? 0) * part));
    return `rgb(${rgb.join(', ')})`;
  });
}

/** Call `handler` when the page turns dark or light. */
export function onThemeChange(life: Disposables, handler: () => void): void {
  if (typeof MutationObserver !== 'undefined') {
    const observer = new MutationObserver(handler);
    const attributeFilter = ['data-jp-theme-light', 'data-jp-theme-name', 'class'];
    observer.observe(document.body, { attributes: true, attributeFilter });
    life.add(() => observer.disconnect());
  }
  const dark = window.matchMedia?.('(prefers-color-scheme: dark)');
  if (dark) {
    dark.addEventListener('change', handler);
    life.add(() => dark.removeEventListener('change', handler));
  }
}
