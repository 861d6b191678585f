/** Readers of the parts of a report, one for each interface of `payload.ts`. */

import { Damaged, fields, Fields, flag, list, number, numbers, text, texts } from './json';
import type {
  IArmRow,
  IBar,
  IBlock,
  ICeiling,
  IComparison,
  IFigure,
  IFinding,
  IFlame,
  IGrid,
  IGridCell,
  IOutlier,
  IOutliers,
  IPart,
  IPhase,
  IProgress,
  ISpanRow,
  ISpans,
  IToggle,
  ITrack
} from './payload';

export function readFigure(from: Fields): IFigure {
  return {
    value: text(from, 'value'),
    label: text(from, 'label'),
    title: text(from, 'title'),
    name: text(from, 'name'),
    whole: text(from, 'whole')
  };
}

export function readBar(from: Fields): IBar {
  return { who: text(from, 'who'), title: text(from, 'title'), parts: list(from, 'parts', readPart) };
}

function readPart(from: Fields): IPart {
  return {
    name: text(from, 'name'),
    label: text(from, 'label'),
    fraction: number(from, 'fraction'),
    text: text(from, 'text')
  };
}

export function readCeiling(from: Fields): ICeiling {
  return {
    label: text(from, 'label'),
    fraction: number(from, 'fraction'),
    text: text(from, 'text'),
    how: text(from, 'how'),
    limiting: flag(from, 'limiting')
  };
}

export function readBlock(from: Fields): IBlock {
  return {
    name: text(from, 'name'),
    requests: text(from, 'requests'),
    bytes: text(from, 'bytes'),
    median: text(from, 'median'),
    p99: text(from, 'p99'),
    p999: text(from, 'p999'),
    queue: text(from, 'queue'),
    who: text(from, 'who'),
    title: text(from, 'title')
  };
}

export function readFinding(from: Fields): IFinding {
  return {
    cause: text(from, 'cause'),
    title: text(from, 'title'),
    share: text(from, 'share'),
    cost: text(from, 'cost'),
    evidence: texts(from, 'evidence'),
    advice: text(from, 'advice'),
    where: text(from, 'where')
  };
}

export function readToggle(from: Fields): IToggle {
  return {
    name: text(from, 'name'),
    title: text(from, 'title'),
    effect: text(from, 'effect'),
    cost: text(from, 'cost'),
    refusal: text(from, 'refusal'),
    suggested: flag(from, 'suggested'),
    predicted: text(from, 'predicted'),
    code: text(from, 'code')
  };
}

export function readTrack(from: Fields): ITrack {
  const track = {
    key: text(from, 'key'),
    label: text(from, 'label'),
    value: text(from, 'value'),
    x: numbers(from, 'x'),
    y: numbers(from, 'y'),
    title: text(from, 'title'),
    sumUp: text(from, 'sumUp')
  };
  sameLength(track.key, track.x, track.y);
  return track;
}

export function readPhase(from: Fields): IPhase {
  return {
    name: text(from, 'name'),
    label: text(from, 'label'),
    perBatch: text(from, 'perBatch'),
    share: text(from, 'share'),
    cpu: text(from, 'cpu')
  };
}

/** Absent in reports of older versions. */
export function readOutliers(value: unknown): IOutliers {
  if (value === undefined || value === null) {
    return { summary: '', rows: [], stalls: [] };
  }
  const from = fields(value, 'outliers');
  return {
    summary: text(from, 'summary'),
    rows: list(from, 'rows', readOutlier),
    stalls: texts(from, 'stalls')
  };
}

function readOutlier(from: Fields): IOutlier {
  return {
    phase: text(from, 'phase'),
    when: text(from, 'when'),
    batch: text(from, 'batch'),
    time: text(from, 'time'),
    usual: text(from, 'usual'),
    cause: text(from, 'cause'),
    title: text(from, 'title'),
    x0: number(from, 'x0'),
    x1: number(from, 'x1')
  };
}

/** Absent in reports of older versions, and where nothing was iterated. */
export function readSpans(value: unknown): ISpans | undefined {
  if (value === undefined || value === null) {
    return undefined;
  }
  const from = fields(value, 'spans');
  const waits = fields(from.waits, 'waits');
  const spans = {
    marks: texts(from, 'marks'),
    seconds: number(from, 'seconds'),
    rows: list(from, 'rows', readSpanRow),
    batches: text(from, 'batches'),
    samples: text(from, 'samples'),
    waits: { edges: texts(waits, 'edges'), counts: texts(waits, 'counts') }
  };
  if (spans.marks.length < 2 || spans.waits.edges.length !== spans.waits.counts.length + 1) {
    throw new Damaged('the stretches of spans do not fit their edges');
  }
  return spans;
}

function readSpanRow(from: Fields): ISpanRow {
  const part = (one: Fields) => ({ name: text(one, 'name'), times: text(one, 'times') });
  return { parts: list(from, 'parts', part) };
}

export function readFlame(from: Fields): IFlame {
  const flame = {
    key: text(from, 'key'),
    label: text(from, 'label'),
    samples: number(from, 'samples'),
    names: texts(from, 'names'),
    details: texts(from, 'details'),
    kinds: numbers(from, 'kinds'),
    name: numbers(from, 'name'),
    depth: numbers(from, 'depth'),
    x0: numbers(from, 'x0'),
    x1: numbers(from, 'x1')
  };
  sameLength(flame.key, flame.name, flame.depth, flame.x0, flame.x1);
  sameLength(flame.key, flame.names, flame.details, flame.kinds);
  const more: Pick<IFlame, 'over' | 'delta'> = {
    ...(from.over === undefined ? {} : { over: texts(from, 'over') }),
    ...(from.delta === undefined ? {} : { delta: numbers(from, 'delta') })
  };
  sameLength(flame.key, flame.name, more.over ?? flame.name, more.delta ?? flame.name);
  return { ...flame, ...more };
}

function sameLength(what: string, ...columns: unknown[][]): void {
  if (columns.some(column => column.length !== columns[0].length)) {
    throw new Damaged(`the columns of ${what} differ in length`);
  }
}

const VERDICTS: readonly string[] = ['faster', 'slower', 'same', 'undecided'];

export function readComparison(from: Fields): IComparison {
  const verdict = text(from, 'verdict');
  return {
    verdict: (VERDICTS.includes(verdict) ? verdict : 'undecided') as IComparison['verdict'],
    title: text(from, 'title'),
    headline: text(from, 'headline'),
    lines: texts(from, 'lines'),
    arms: list(from, 'arms', readArm),
    dots: list(from, 'dots', dot => ({ arm: text(dot, 'arm'), x: number(dot, 'x') })),
    ticks: list(from, 'ticks', tick => ({ x: number(tick, 'x'), text: text(tick, 'text') })),
    code: text(from, 'code'),
    notes: texts(from, 'notes'),
    ...(from.how === undefined ? {} : { how: texts(from, 'how') }),
    ...(from.grid === undefined || from.grid === null ? {} : { grid: readGrid(from.grid) })
  };
}

function readGrid(value: unknown): IGrid {
  const from = fields(value, 'grid');
  const grid = {
    corner: text(from, 'corner'),
    columns: texts(from, 'columns'),
    rows: list(from, 'rows', row => ({
      label: text(row, 'label'),
      cells: list(row, 'cells', readGridCell)
    }))
  };
  if (grid.rows.some(row => row.cells.length !== grid.columns.length)) {
    throw new Damaged('the rows of the grid differ in length');
  }
  return grid;
}

function readGridCell(from: Fields): IGridCell {
  return {
    text: text(from, 'text'),
    title: text(from, 'title'),
    level: number(from, 'level'),
    timed: flag(from, 'timed'),
    best: flag(from, 'best')
  };
}

function readArm(from: Fields): IArmRow {
  return {
    name: text(from, 'name'),
    label: text(from, 'label'),
    throughput: text(from, 'throughput'),
    cpu: text(from, 'cpu'),
    firstBatch: text(from, 'firstBatch'),
    memory: text(from, 'memory'),
    trials: number(from, 'trials')
  };
}

const STATES: readonly string[] = ['idle', 'running', 'cancelling', 'done', 'cancelled', 'failed'];

/** Whatever arrives: a progress that cannot be read is shown as none. */
export function readProgress(value: unknown): IProgress {
  const from = (typeof value === 'object' && value !== null ? value : {}) as Fields;
  const state = typeof from.state === 'string' && STATES.includes(from.state) ? from.state : 'idle';
  return {
    state: state as IProgress['state'],
    text: typeof from.text === 'string' ? from.text : '',
    fraction: typeof from.fraction === 'number' ? from.fraction : -1
  };
}
