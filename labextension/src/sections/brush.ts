import type { Disposables } from '../disposables';
import { button, make, put } from '../dom';
import { cssPercent } from '../numbers';
import type { ISpans } from '../payload';
import { ISpan, Selection, spanText } from '../selection';

const FAR = 5; // stretches that Page Up and Page Down move by

/**
 * A span of the timeline to choose: drag over the rows, or move the two ends with the arrow keys.
 * Returns the line that says what is chosen; the veil and the ends lie over `rows`.
 */
export function brush(
  spans: ISpans,
  rows: HTMLElement,
  selection: Selection,
  life: Disposables
): HTMLElement {
  const layer = make('div', 'ioscope-brush');
  const window = make('div', 'ioscope-brush-window');
  const ends = [new End('start', spans, selection, life), new End('end', spans, selection, life)];
  put(rows, put(layer, window, ...ends.map(end => end.element)));
  drag(rows, layer, selection, life);
  const line = make('div', 'ioscope-brush-line');
  const words = make('span', 'ioscope-note');
  words.setAttribute('role', 'status');
  const all = button('Whole run', 'ioscope-small');
  life.listen(all, 'click', () => selection.set(null));
  const show = (span: ISpan | null) => {
    const { from, to } = span ?? { from: 0, to: selection.count };
    window.hidden = !span;
    window.style.left = cssPercent(from / selection.count);
    window.style.width = cssPercent((to - from) / selection.count);
    ends.forEach(end => end.show(from, to));
    all.hidden = !span;
    words.textContent = span
      ? `Selected: ${spanText(spans, span)}. Bars, batches, outliers and waits show this part.`
      : 'Drag over the timeline to look at a part of the run.';
  };
  selection.onChange(show);
  show(selection.span);
  return put(line, words, all);
}

/** One end of the selection, as a slider for keys and screen readers. */
class End {
  readonly element = make('div', 'ioscope-brush-end');

  constructor(
    private readonly which: 'start' | 'end',
    private readonly spans: ISpans,
    private readonly selection: Selection,
    life: Disposables
  ) {
    const { element } = this;
    element.tabIndex = 0;
    element.setAttribute('role', 'slider');
    element.setAttribute('aria-label', `${which} of the selected part of the run`);
    element.setAttribute('aria-valuemin', '0');
    element.setAttribute('aria-valuemax', String(selection.count));
    life.listen(element, 'keydown', event => this.key(event));
  }

  show(from: number, to: number): void {
    this.at = this.which === 'start' ? from : to;
    this.element.style.left = cssPercent(this.at / this.selection.count);
    this.element.setAttribute('aria-valuenow', String(this.at));
    this.element.setAttribute('aria-valuetext', this.spans.marks[this.at] ?? '');
  }

  private key(event: KeyboardEvent): void {
    const { count } = this.selection;
    const targets: Record<string, number> = {
      ArrowLeft: this.at - 1,
      ArrowDown: this.at - 1,
      ArrowRight: this.at + 1,
      ArrowUp: this.at + 1,
      PageDown: this.at - FAR,
      PageUp: this.at + FAR,
      Home: 0,
      End: count
    };
    if (event.key === 'Escape') {
      this.selection.set(null);
    } else if (targets[event.key] !== undefined) {
      this.move(targets[event.key]);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** At least one stretch stays between the ends. */
  private move(target: number): void {
    const { count } = this.selection;
    const { from, to } = this.selection.span ?? { from: 0, to: count };
    this.selection.set(
      this.which === 'start'
        ? { from: Math.max(0, Math.min(target, to - 1)), to }
        : { from, to: Math.min(count, Math.max(target, from + 1)) }
    );
  }

  private at = 0;
}

/** Pressed and moved selects; a click inside the rows without moving shows the whole run again. */
function drag(rows: HTMLElement, layer: HTMLElement, selection: Selection, life: Disposables): void {
  let anchor = -1;
  const stretch = (event: MouseEvent): number => {
    const area = layer.getBoundingClientRect();
    return ((event.clientX - area.left) / (area.width || 1)) * selection.count;
  };
  life.listen(rows, 'pointerdown', event => {
    const at = stretch(event);
    if (event.button !== 0 || at < 0 || at > selection.count) {
      return;
    }
    anchor = at;
    rows.setPointerCapture?.(event.pointerId);
    event.preventDefault(); // no text is selected on the way
  });
  life.listen(rows, 'pointermove', event => {
    if (anchor >= 0) {
      const at = stretch(event);
      const [from, to] = [Math.min(anchor, at), Math.max(anchor, at)];
      selection.set({ from: Math.floor(from), to: Math.ceil(to) });
    }
  });
  life.listen(rows, 'pointerup', event => {
    if (anchor >= 0 && Math.abs(stretch(event) - anchor) * layer.clientWidth < selection.count * 3) {
      selection.set(null);
    }
    anchor = -1;
  });
  life.listen(rows, 'pointercancel', () => {
    anchor = -1;
  });
}
