/** Two profiles side by side: throughput, shares and findings of both. Nothing is computed here. */

import { Disposable, Disposables } from './disposables';
import { make, put, section } from './dom';
import { compareFlames } from './flame/difference';
import type { IFigure, IFinding, IFlame, IReport } from './payload';
import { IReading, readReport } from './read';
import { bars } from './sections/bars';
import { FIRST_LOOK } from './sections/flame_wishes';
import { flames } from './sections/flames';

export interface ISide {
  name: string;
  payload: unknown;
}

const LETTERS = ['A', 'B'];
const NOT_A_TEST =
  'Two runs of which each was recorded once: what else the machine did is in the difference. ' +
  'An A/B comparison in the notebook tells whether a change really helped.';

const COLOURS = 'Orange takes a larger share of the time in B than in A, blue a smaller one.';

/** Draws both into `el`; a side that cannot be read says why in its place. */
export function renderPair(el: HTMLElement, sides: ISide[]): Disposable {
  const life = new Disposables();
  const root = make('div', 'ioscope-report ioscope-pair');
  el.append(root);
  life.add(() => root.remove());
  const readings = sides.map(side => readReport(side.payload));
  put(root, heads(sides, readings));
  const [a, b] = readings.map(reading => reading.report);
  if (a && b) {
    put(root, make('p', 'ioscope-pair-note', NOT_A_TEST), figures(a, b));
    const rest = [shares(a, b, life), found(a, b), difference(a, b, life)];
    put(root, ...rest.filter((part): part is HTMLElement => part !== null));
  }
  return life;
}

function heads(sides: ISide[], readings: IReading[]): HTMLElement {
  const row = make('div', 'ioscope-pair-sides');
  readings.forEach((reading, side) => {
    const box = section(`${LETTERS[side]}: ${sides[side].name}`, '');
    const words = reading.report ? reading.report.headline : reading.problem;
    const line = make('p', reading.report ? 'ioscope-headline' : 'ioscope-error', words);
    if (!reading.report) {
      line.setAttribute('role', 'alert');
    }
    put(row, put(box, line));
  });
  return row;
}

function figures(a: IReport, b: IReport): HTMLElement {
  const values = (report: IReport) => new Map(report.figures.map(named));
  return table('Key figures', values(a), values(b));
}

/** Row and cell of a figure. Profiles of before had no names: what follows the comma is the doubt. */
function named({ name, whole, label, value }: IFigure): [string, string] {
  if (name) {
    return [name, whole || value];
  }
  const [before, ...doubt] = label.split(',');
  return [before, [value, ...doubt].join(',')];
}

/** Bars of A and B below each other, in the colours and with the table of a report. */
function shares(a: IReport, b: IReport, life: Disposables): HTMLElement | null {
  const names = new Set([...a.bars, ...b.bars].map(bar => bar.who));
  const rows = [...names].flatMap(who =>
    [a, b].flatMap((report, side) =>
      report.bars
        .filter(bar => bar.who === who)
        .map(bar => ({ ...bar, who: `${LETTERS[side]} ${who}` }))
    )
  );
  const legend = new Map([...a.legend, ...b.legend].map(entry => [entry.name, entry]));
  const both = { ...b, bars: rows, legend: [...legend.values()], phases: [], cores: '', block: [] };
  const box = bars(both, null, life);
  [a, b].forEach(({ cores }, side) => {
    if (box && cores) {
      put(box, make('p', 'ioscope-note', `${LETTERS[side]}: ${cores}`));
    }
  });
  return box;
}

/** One graph for each tab that both have: frames in the colour of what became of their share. */
function difference(a: IReport, b: IReport, life: Disposables): HTMLElement | null {
  const graphs = b.flames.flatMap(flame => {
    const before = a.flames.find(other => other.key === flame.key);
    const both = before ? compared(before, flame) : null;
    return both ? [{ ...both, key: flame.key, label: flame.label }] : [];
  });
  const report = { ...b, label: 'A against B', flames: graphs, flameSource: COLOURS };
  const graph = flames(report, { ...FIRST_LOOK }, null, life);
  return graph ? put(section('Functions, A against B', ''), graph) : null;
}

function compared(a: IFlame, b: IFlame): IFlame | null {
  try {
    return compareFlames(a, b);
  } catch (error) {
    console.warn('ioscope: two flame graphs could not be compared', error);
    return null;
  }
}

function table(title: string, a: Map<string, string>, b: Map<string, string>): HTMLElement {
  const made = make('table', 'ioscope-pair-table');
  put(made, put(make('thead'), cells('th', ['figure', ...LETTERS])));
  const body = make('tbody');
  for (const label of new Set([...a.keys(), ...b.keys()])) {
    put(body, cells('td', [label, a.get(label) ?? '–', b.get(label) ?? '–']));
  }
  return put(section(title, ''), put(made, body));
}

function cells(kind: 'td' | 'th', texts: string[]): HTMLElement {
  const row = make('tr');
  texts.forEach((text, column) => {
    const cell = make(column === 0 ? 'th' : kind, '', text);
    if (cell.tagName === 'TH') {
      cell.setAttribute('scope', kind === 'td' ? 'row' : 'col');
    }
    put(row, cell);
  });
  return row;
}

/** Causes of both in their order; one that the other side has not is marked. */
function found(a: IReport, b: IReport): HTMLElement {
  const box = section('What holds it back', '');
  const sides = put(make('div', 'ioscope-pair-sides'), ...columns(a, b));
  return put(box, sides);
}

function columns(a: IReport, b: IReport): HTMLElement[] {
  const sides = [a, b];
  return sides.map((report, side) => {
    const others = new Set(sides[1 - side].findings.map(finding => finding.cause));
    const list = make('ol', 'ioscope-pair-findings');
    list.setAttribute('aria-label', `Findings of ${LETTERS[side]}`);
    report.findings.forEach(finding => put(list, item(finding, others, LETTERS[1 - side])));
    return report.findings.length ? list : make('p', '', 'None.');
  });
}

function item(finding: IFinding, others: Set<string>, other: string): HTMLElement {
  const line = make('li', '', `${finding.title} · ${finding.share}`);
  if (!others.has(finding.cause)) {
    put(line, make('span', 'ioscope-pair-only', ` not in ${other}`));
  }
  line.title = finding.cost;
  return line;
}
