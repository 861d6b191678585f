/** Draws the frames that are wide enough to be seen: work grows with the width, not with the frames. */

import { firstEndingAfter, IColumns } from './columns';
import type { ILook } from './look';
import type { IMatches } from './search';

export const ROW_PX = 19;
const GAP_PX = 1;
const PADDING_PX = 4;
const TEXT_FROM_PX = 26;

/** The part of the context that is used: a test counts the calls. */
export type Pen = Pick<
  CanvasRenderingContext2D,
  'fillStyle' | 'strokeStyle' | 'lineWidth' | 'font' | 'textBaseline' | 'fillRect' | 'strokeRect' | 'fillText'
>;

export interface IScene {
  columns: IColumns;
  /** what part of the whole fills the width */
  view: [number, number];
  width: number;
  look: ILook;
  matches: IMatches | null;
  /** frame with the keyboard's focus, or -1 */
  focus: number;
}

export function draw(pen: Pen, scene: IScene): void {
  pen.textBaseline = 'middle';
  for (let depth = 0; depth < scene.columns.rows.length; depth++) {
    drawRow(pen, scene, depth);
  }
  if (scene.focus >= 0) {
    drawFocus(pen, scene);
  }
}

function drawRow(pen: Pen, scene: IScene, depth: number): void {
  const { x0, x1, rows } = scene.columns;
  const [first, end] = rows[depth];
  const [from, to] = scene.view;
  const scale = scene.width / (to - from);
  let index = firstEndingAfter(x1, first, end, from);
  let drawn = 0; // up to where this row is painted
  while (index < end && x0[index] < to) {
    const left = Math.max((x0[index] - from) * scale, drawn);
    const right = Math.min((x1[index] - from) * scale, scene.width);
    if (right - left >= GAP_PX) {
      drawFrame(pen, scene, index, left, right);
      index += 1;
    } else {
      // many frames share this pixel: draw one of them and go on behind the pixel
      pen.fillStyle = fillOf(scene, index);
      pen.fillRect(left, depth * ROW_PX, GAP_PX, ROW_PX - GAP_PX);
      drawn = left + GAP_PX;
      index = firstEndingAfter(x1, index + 1, end, from + drawn / scale);
    }
  }
}

function fillOf(scene: IScene, index: number): string {
  const name = scene.columns.name[index];
  if (scene.matches?.names[name]) {
    return scene.look.match;
  }
  if (scene.columns.delta) {
    return deltaFill(scene, index);
  }
  const shades = scene.look.fills[scene.columns.kinds[name]] ?? scene.look.fills[0];
  return shades[name % shades.length];
}

// from this change of share on the colour is the strongest
const FULL_DELTA = 0.25;

/** Orange where B spends more, blue where it spends less; the root of the change shows quickly. */
function deltaFill(scene: IScene, index: number): string {
  const { deltas } = scene.look;
  const change = Math.max(-1, Math.min(1, scene.columns.delta![index] / FULL_DELTA));
  const strength = Math.sign(change) * Math.sqrt(Math.abs(change));
  return deltas[Math.round(((strength + 1) / 2) * (deltas.length - 1))];
}

function drawFrame(pen: Pen, scene: IScene, index: number, left: number, right: number): void {
  const top = scene.columns.depth[index] * ROW_PX;
  const width = right - left;
  pen.fillStyle = fillOf(scene, index);
  pen.fillRect(left, top, width > 3 ? width - GAP_PX : width, ROW_PX - GAP_PX);
  if (width < TEXT_FROM_PX) {
    return;
  }
  const name = scene.columns.name[index];
  const kind = scene.columns.kinds[name];
  const own = kind === 1 || kind === 2;
  pen.font = own ? scene.look.fontOwn : scene.look.font;
  pen.fillStyle = scene.look.ink;
  const room = width - 2 * PADDING_PX;
  const text = shortened(scene.columns.names[name], Math.floor(room / scene.look.characterPx));
  if (text) {
    pen.fillText(text, left + PADDING_PX, top + ROW_PX / 2, room);
  }
}

/** `text` in at most `limit` characters; empty when nothing readable would remain. */
export function shortened(text: string, limit: number): string {
  if (text.length <= limit) {
    return text;
  }
  return limit < 3 ? '' : `${text.slice(0, limit - 1)}…`;
}

function drawFocus(pen: Pen, scene: IScene): void {
  const { x0, x1, depth } = scene.columns;
  const [from, to] = scene.view;
  const scale = scene.width / (to - from);
  const left = Math.max((x0[scene.focus] - from) * scale, 0);
  const right = Math.min((x1[scene.focus] - from) * scale, scene.width);
  pen.strokeStyle = scene.look.focus;
  pen.lineWidth = 2;
  const width = Math.max(right - left - 2, 1);
  pen.strokeRect(left + 1, depth[scene.focus] * ROW_PX + 1, width, ROW_PX - 3);
}
