import { Disposables } from '../disposables';
import { make, put } from '../dom';
import { frameAt, IColumns, neighbour, parentOf, widestChild } from './columns';
import { draw, ROW_PX } from './draw';
import { onThemeChange, readLook } from './look';
import type { ILook } from './look';
import type { IMatches } from './search';
import { IPoint, Tooltip } from './tooltip';
import { frameLines } from './words';

const ALL: [number, number] = [0, 1];

/** A flame graph on a canvas: hover, click and keys. The root is at the top. */
export class FlameGraph {
  readonly element = make('div', 'ioscope-flame');

  constructor(
    private readonly columns: IColumns,
    label: string,
    private readonly life: Disposables,
    private readonly onZoom: (zoomed: boolean) => void,
    private readonly onFrame: (index: number) => void = () => undefined
  ) {
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'application');
    this.canvas.setAttribute('aria-roledescription', 'flame graph');
    this.canvas.setAttribute(
      'aria-label',
      `Flame graph of ${label}. Arrow keys move between frames, Enter enlarges one, Escape shows all.`
    );
    this.spoken.setAttribute('aria-live', 'polite');
    put(this.element, this.canvas, this.spoken, this.tooltip.element);
    this.listen();
  }

  reset(): void {
    this.zoom(ALL);
  }

  highlight(matches: IMatches | null): void {
    this.matches = matches;
    this.redraw();
  }

  /** Draw at the size that the element has now. */
  redraw(): void {
    const width = this.element.clientWidth;
    const pen = width ? this.canvas.getContext('2d') : null;
    if (!pen) {
      return;
    }
    this.fit(pen, width);
    this.look ??= readLook(this.element, pen);
    const { columns, view, look, matches, focus } = this;
    pen.clearRect(0, 0, width, this.height());
    draw(pen, { columns, view, width, look, matches, focus });
  }

  private height(): number {
    return Math.max(1, this.columns.rows.length) * ROW_PX;
  }

  private fit(pen: CanvasRenderingContext2D, width: number): void {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height() * ratio);
    this.canvas.style.height = `${this.height()}px`;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  private listen(): void {
    const { canvas, life } = this;
    life.onResize(this.element, () => this.redraw());
    onThemeChange(life, () => {
      this.look = undefined;
      // JupyterLab hides the page while it changes the theme: draw when it is back
      window.requestAnimationFrame(() => this.redraw());
    });
    life.listen(canvas, 'mousemove', event => this.hover(event));
    life.listen(canvas, 'mouseleave', () => this.tooltip.hide());
    life.listen(canvas, 'click', event => this.press(this.frameUnder(event)));
    life.listen(canvas, 'keydown', event => this.key(event));
    life.listen(canvas, 'blur', () => {
      this.tooltip.hide();
      this.setFocus(-1);
    });
  }

  private frameUnder(event: MouseEvent): number {
    const area = this.canvas.getBoundingClientRect();
    const [from, to] = this.view;
    const x = from + ((event.clientX - area.left) / (area.width || 1)) * (to - from);
    return frameAt(this.columns, Math.floor((event.clientY - area.top) / ROW_PX), x);
  }

  private hover(event: MouseEvent): void {
    const index = this.frameUnder(event);
    this.canvas.style.cursor = index < 0 ? 'default' : 'pointer';
    if (index < 0) {
      this.tooltip.hide();
    } else {
      this.tooltip.show(frameLines(this.columns, index), event, this.element);
    }
  }

  private press(index: number): void {
    if (index >= 0) {
      this.focus = index;
      this.onFrame(index);
      this.zoom([this.columns.x0[index], this.columns.x1[index]]);
    }
  }

  private zoom(view: [number, number]): void {
    this.view = view[1] > view[0] ? view : ALL;
    this.onZoom(this.view[0] > 0 || this.view[1] < 1);
    this.redraw();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.columns.name.length) {
      return;
    }
    const at = this.focus;
    if (event.key === 'Escape') {
      this.tooltip.hide();
      this.reset();
    } else if (event.key === 'Enter') {
      this.press(at);
      this.explain(at);
    } else if (MOVES[event.key]) {
      this.setFocus(at < 0 ? 0 : MOVES[event.key](this.columns, at));
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private setFocus(index: number): void {
    if (index < 0 && document.activeElement === this.canvas) {
      return; // nothing lies in that direction
    }
    this.focus = index;
    this.spoken.textContent = index < 0 ? '' : frameLines(this.columns, index).join(', ');
    if (index >= 0) {
      this.onFrame(index);
      this.reveal(index);
    }
    this.redraw();
    this.explain(index);
  }

  /** The words of a frame that keys chose, below its visible start. */
  private explain(index: number): void {
    if (index < 0) {
      return;
    }
    const lines = frameLines(this.columns, index);
    this.tooltip.show(lines, this.pointAt(index), this.element);
  }

  private pointAt(index: number): IPoint {
    const area = this.canvas.getBoundingClientRect();
    const [from, to] = this.view;
    const { x0, depth } = this.columns;
    const x = Math.max(0, (x0[index] - from) / (to - from));
    return { clientX: area.left + x * area.width, clientY: area.top + (depth[index] + 0.5) * ROW_PX };
  }

  /** Bring a frame into what is shown: out of a zoom that hides it, into the scrolled part. */
  private reveal(index: number): void {
    const { x0, x1, depth } = this.columns;
    if (x1[index] <= this.view[0] || x0[index] >= this.view[1]) {
      this.zoom(ALL);
    }
    const box = this.element.parentElement;
    const top = depth[index] * ROW_PX;
    if (box && (top < box.scrollTop || top + ROW_PX > box.scrollTop + box.clientHeight)) {
      box.scrollTop = top - box.clientHeight / 2;
    }
  }

  private readonly canvas = make('canvas');
  private readonly spoken = make('p', 'ioscope-hidden');
  private readonly tooltip = new Tooltip();
  private view: [number, number] = ALL;
  private focus = -1;
  private matches: IMatches | null = null;
  private look: ILook | undefined;
}

const MOVES: Record<string, (columns: IColumns, index: number) => number> = {
  ArrowUp: parentOf,
  ArrowDown: widestChild,
  ArrowLeft: (columns, index) => neighbour(columns, index, -1),
  ArrowRight: (columns, index) => neighbour(columns, index, 1)
};
