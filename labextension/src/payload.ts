/**
 * The report as Python sends it (`jupyter_ioscope/views/payload.py` builds it; a test keeps the two equal).
 * Every text is plain text, never markup. Numbers that are shown come with their text from Python:
 * this side draws; it computes no number but the sums of a selection.
 */

/** One coloured piece of a bar. `fraction` is of the row's wall time (0-1). */
export interface IPart {
  name: string;
  label: string;
  fraction: number;
  text: string;
}

export interface IBar {
  who: string;
  title: string;
  parts: IPart[];
}

export interface IFigure {
  value: string;
  label: string;
  title?: string;
  /** its row beside another profile: the same name for the same quantity */
  name?: string;
  /** what stands in that row, where it is not `value` alone */
  whole?: string;
}

export interface ICeiling {
  label: string;
  fraction: number;
  text: string;
  how: string;
  limiting: boolean;
}

export interface IFinding {
  cause: string;
  title: string;
  share: string;
  cost: string;
  evidence: string[];
  advice: string;
  where: string;
}

export interface IToggle {
  name: string;
  title: string;
  effect: string;
  cost: string;
  /** empty when it applies */
  refusal: string;
  suggested: boolean;
  /** predicted gain as text; empty when none was made */
  predicted: string;
  /** what a user would write to get it; the page offers to insert it */
  code?: string;
}

/** Columns of one flame graph, sorted by (depth, x0). x in fractions of the whole. */
export interface IFlame {
  key: string;
  label: string;
  samples: number;
  /** names[name[i]] is frame i's text; detail likewise */
  names: string[];
  details: string[];
  /** per name: 0 library, 1 user's file, 2 notebook cell, 3 root or a state of waiting, 4 another state */
  kinds: number[];
  name: number[];
  depth: number[];
  x0: number[];
  x1: number[];
  /** of each frame itself, without what it called: "stretch:weight ..." for the stretches of `ISpans` */
  over?: string[];
  /** A against B: share of each frame in B less its share in A (-1 to 1) */
  delta?: number[];
}

/** One row of the timeline: y in fractions of the row's height. */
export interface ITrack {
  key: string;
  label: string;
  value: string;
  x: number[];
  y: number[];
  title: string;
  /** what `value` is of the row: "mean", "median" or "peak" */
  sumUp: string;
}

/** One phase of the threads that fetch. */
export interface IPhase {
  name: string;
  label: string;
  perBatch: string;
  share: string;
  cpu: string;
}

/** A batch that took far longer than usual; x0 to x1 in fractions of the timeline. */
export interface IOutlier {
  phase: string;
  when: string;
  batch: string;
  time: string;
  usual: string;
  cause: string;
  title: string;
  x0: number;
  x1: number;
}

export interface IOutliers {
  /** one sentence; empty when there are none */
  summary: string;
  rows: IOutlier[];
  /** outliers at even distances, a sentence each */
  stalls: string[];
}

/** One part in each stretch, in thousandths of the stretch: "3 0 12". */
export interface ISpanPart {
  name: string;
  times: string;
}

/** The parts of one bar over time; none where they are known for the whole run only. */
export interface ISpanRow {
  parts: ISpanPart[];
}

/** How many batches were waited for how long: for each pair of edges the counts over time. */
export interface IWaitCounts {
  edges: string[];
  counts: string[];
}

/** The run in equal stretches: a selection on the timeline adds them up, the only sums made here. */
export interface ISpans {
  /** texts of the instants between stretches, and of both ends */
  marks: string[];
  /** length of one stretch */
  seconds: number;
  /** one a bar, in their order */
  rows: ISpanRow[];
  /** that arrived in each stretch */
  batches: string;
  samples: string;
  waits: IWaitCounts;
}

export interface IArmRow {
  name: string;
  label: string;
  throughput: string;
  cpu: string;
  firstBatch: string;
  memory: string;
  trials: number;
}

export interface ITrialDot {
  arm: string;
  /** position on the shared axis, 0-1 */
  x: number;
}

export interface IComparison {
  verdict: 'faster' | 'slower' | 'same' | 'undecided';
  title: string;
  headline: string;
  lines: string[];
  arms: IArmRow[];
  dots: ITrialDot[];
  ticks: { x: number; text: string }[];
  code: string;
  notes: string[];
  /** how it was measured, for those who doubt it */
  how?: string[];
  /** of a search for workers x prefetch; absent elsewhere */
  grid?: IGrid;
}

/** Settings side by side: what was expected of each, and what was timed. */
export interface IGrid {
  /** what columns and rows are, as words for the corner */
  corner: string;
  columns: string[];
  rows: IGridRow[];
}

export interface IGridRow {
  label: string;
  cells: IGridCell[];
}

export interface IGridCell {
  text: string;
  title: string;
  /** 0-1 of the largest; -1 where nothing is known */
  level: number;
  /** was timed, not only predicted */
  timed: boolean;
  best: boolean;
}

/** What the report says about a running comparison. */
export interface IProgress {
  state: 'idle' | 'running' | 'cancelling' | 'done' | 'cancelled' | 'failed';
  text: string;
  /** 0-1, or -1 while unknown */
  fraction: number;
}

/** Runs of one transform of a dataset: how many came from the cache, and why others did not. */
export interface ITransform {
  name: string;
  hits: string;
  rows: string;
  time: string;
  why: string;
}

/** Requests of one block device and operation. */
export interface IBlock {
  name: string;
  requests: string;
  bytes: string;
  median: string;
  p99: string;
  p999: string;
  queue: string;
  who: string;
  title: string;
}

export interface IReport {
  format: 1;
  /** names this report to the kernel that made it (`protocol.ts`); absent in reports without one */
  reportId?: string;
  /** drawn in the text and HTML forms of the report; absent where none ran */
  transforms?: ITransform[];
  /** absent where block devices were not traced */
  block?: IBlock[];
  version: string;
  label: string;
  headline: string;
  detail: string;
  separated: boolean;
  wouldSeparate: string;
  variable: string;
  figures: IFigure[];
  bars: IBar[];
  legend: { name: string; label: string }[];
  ceilings: ICeiling[];
  ceilingNow: { fraction: number; text: string } | null;
  findings: IFinding[];
  toggles: IToggle[];
  /** seconds from start to end, as the time axis of the timeline */
  timeline: { tracks: ITrack[]; start: string; end: string };
  flames: IFlame[];
  flameSource: string;
  comparisons: IComparison[];
  cost: string;
  notMeasured: { what: string; reason: string }[];
  ended: string;
  /** how much could be seen, one sentence */
  tier: string;
  /** who wanted the cores, one sentence */
  cores: string;
  phases: IPhase[];
  outliers: IOutliers;
  /** absent where nothing was iterated, and in reports of older versions */
  spans?: ISpans;
  /** nothing is missing that `tier` would have to tell of */
  fullEvidence?: boolean;
  /** the recorded cell itself can be run in trials; absent where there is none */
  wholeCell?: boolean;
}

/** Messages from the page to the kernel (anywidget custom messages). */
export type Command =
  | { cmd: 'run_ab'; toggles: string[]; wholeCell?: true }
  | { cmd: 'tune' }
  | { cmd: 'cancel' };

/**
 * Traits of the anywidget: `report` (IReport, JSON), `progress` (IProgress), `comparisons` (IComparison[]).
 */
export const MIME = 'application/vnd.ioscope.report+json';
