import { make, put } from '../dom';

const OFFSET_PX = 14;

/** A place in the window; a mouse event is one. */
export interface IPoint {
  clientX: number;
  clientY: number;
}

/** What is under the pointer, or chosen by keys: beside it and inside the graph. */
export class Tooltip {
  readonly element = make('div', 'ioscope-tooltip');

  constructor() {
    this.element.hidden = true;
    this.element.setAttribute('aria-hidden', 'true'); // the focused frame is spoken elsewhere
  }

  show(lines: string[], at: IPoint, within: HTMLElement): void {
    this.element.replaceChildren();
    put(this.element, ...lines.map(line => make('div', '', line)));
    this.element.hidden = false;
    const area = within.getBoundingClientRect();
    const x = at.clientX - area.left + OFFSET_PX;
    const room = area.width - this.element.offsetWidth;
    this.element.style.left = `${Math.max(0, Math.min(x, room))}px`;
    this.element.style.top = `${this.top(at.clientY - area.top, within)}px`;
  }

  /** Below the place or above it; in a graph too low for either beside it, so that nothing is cut off. */
  private top(y: number, within: HTMLElement): number {
    const area = within.getBoundingClientRect();
    const seen = within.parentElement?.getBoundingClientRect() ?? area; // the rest is scrolled away
    const from = Math.max(0, seen.top - area.top);
    const to = Math.min(area.height, seen.bottom - area.top);
    const height = this.element.offsetHeight;
    const below = y + OFFSET_PX;
    const above = y - OFFSET_PX - height;
    if (below + height <= to) {
      return below;
    }
    return above >= from ? above : Math.max(from, to - height);
  }

  hide(): void {
    this.element.hidden = true;
  }
}
