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
    const below = at.clientY - area.top + OFFSET_PX;
    const above = below - this.element.offsetHeight - 2 * OFFSET_PX;
    const fits = below + this.element.offsetHeight <= Math.max(area.height, 1);
    this.element.style.left = `${Math.max(0, Math.min(x, room))}px`;
    this.element.style.top = `${fits || above < 0 ? below : above}px`;
  }

  hide(): void {
    this.element.hidden = true;
  }
}
