/** From what arrived to a report that can be drawn: nothing after this file doubts a type. */

import { Damaged, fields, Fields, flag, list, number, text } from './json';
import type { IReport } from './payload';
import {
  readBar,
  readBlock,
  readCeiling,
  readComparison,
  readFigure,
  readFinding,
  readFlame,
  readOutliers,
  readPhase,
  readSpans,
  readToggle,
  readTrack
} from './read_parts';
import { VERSION } from './version';

export const FORMAT = 1;

/** `report` with the names of the `parts` that could not be read; or null and the `problem`. */
export interface IReading {
  report: IReport | null;
  parts: string[];
  problem: string;
  headline: string;
}

export function readReport(payload: unknown): IReading {
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) {
    return refused('This output holds no ioscope report.', '');
  }
  const from = payload as Fields;
  const headline = typeof from.headline === 'string' ? from.headline : '';
  if (from.format !== FORMAT) {
    return refused(wrongFormat(from), headline);
  }
  if (!headline) {
    return refused('This ioscope report is damaged: it has no headline.', '');
  }
  const parts: string[] = [];
  return { report: readParts(from, headline, parts), parts, problem: '', headline };
}

function refused(problem: string, headline: string): IReading {
  return { report: null, parts: [], problem, headline };
}

function wrongFormat(from: Fields): string {
  const version = typeof from.version === 'string' && from.version ? from.version : 'unknown';
  const format = typeof from.format === 'number' ? String(from.format) : 'unknown';
  return (
    `This report has format ${format} and was made by ioscope ${version}; ` +
    `the viewer is version ${VERSION} and draws format ${FORMAT}. ` +
    'Install the same version of jupyter-ioscope for both, or run the cell again.'
  );
}

function readParts(from: Fields, headline: string, parts: string[]): IReport {
  /** A damaged part is left out and named; the others are drawn. */
  function attempt<T>(part: string, read: () => T, otherwise: T): T {
    try {
      return read();
    } catch (error) {
      if (error instanceof Damaged) {
        parts.push(`${part} (${error.message})`);
        return otherwise;
      }
      throw error;
    }
  }
  const words = (key: string) => attempt(key, () => text(from, key), '');
  return {
    format: FORMAT,
    reportId: words('reportId'),
    version: words('version'),
    label: words('label'),
    headline,
    detail: words('detail'),
    separated: from.separated === undefined || flag(from, 'separated'),
    wouldSeparate: words('wouldSeparate'),
    variable: words('variable'),
    figures: attempt('figures', () => list(from, 'figures', readFigure), []),
    bars: attempt('bars', () => list(from, 'bars', readBar), []),
    legend: attempt('legend', () => list(from, 'legend', readLegend), []),
    ceilings: attempt('ceilings', () => list(from, 'ceilings', readCeiling), []),
    ceilingNow: attempt('ceilingNow', () => readNow(from.ceilingNow), null),
    findings: attempt('findings', () => list(from, 'findings', readFinding), []),
    toggles: attempt('toggles', () => list(from, 'toggles', readToggle), []),
    timeline: attempt('timeline', () => readTimeline(from.timeline), NO_TIMELINE),
    flames: attempt('flames', () => list(from, 'flames', readFlame), []),
    flameSource: words('flameSource'),
    comparisons: attempt('comparisons', () => list(from, 'comparisons', readComparison), []),
    cost: words('cost'),
    notMeasured: attempt('notMeasured', () => list(from, 'notMeasured', readGap), []),
    ended: words('ended'),
    tier: words('tier'),
    cores: words('cores'),
    phases: attempt('phases', () => list(from, 'phases', readPhase), []),
    block: attempt('block', () => list(from, 'block', readBlock), []),
    outliers: attempt('outliers', () => readOutliers(from.outliers), readOutliers(null)),
    spans: attempt('spans', () => readSpans(from.spans), undefined),
    fullEvidence: attempt('fullEvidence', () => optionalFlag(from, 'fullEvidence'), false),
    wholeCell: attempt('wholeCell', () => optionalFlag(from, 'wholeCell'), false)
  };
}

function optionalFlag(from: Fields, key: string): boolean {
  return from[key] !== undefined && flag(from, key);
}

const NO_TIMELINE: IReport['timeline'] = { tracks: [], start: '', end: '' };

function readLegend(from: Fields): IReport['legend'][number] {
  return { name: text(from, 'name'), label: text(from, 'label') };
}

function readGap(from: Fields): IReport['notMeasured'][number] {
  return { what: text(from, 'what'), reason: text(from, 'reason') };
}

function readNow(value: unknown): IReport['ceilingNow'] {
  if (value === undefined || value === null) {
    return null;
  }
  const from = fields(value, 'ceilingNow');
  return { fraction: number(from, 'fraction'), text: text(from, 'text') };
}

function readTimeline(value: unknown): IReport['timeline'] {
  if (value === undefined || value === null) {
    return NO_TIMELINE;
  }
  const from = fields(value, 'timeline');
  const tracks = list(from, 'tracks', readTrack);
  return { tracks, start: text(from, 'start'), end: text(from, 'end') };
}

/** What a running comparison sends: `null` where it is not what it should be. */
export function readComparisons(value: unknown): IReport['comparisons'] | null {
  try {
    return list({ comparisons: value }, 'comparisons', readComparison);
  } catch {
    return null;
  }
}

export { readProgress } from './read_parts';
