/** Two profiles side by side: throughput, shares and findings of both. Nothing is computed here. */

import { Disposable, Disposables } from './disposables';
import { make, put, section } from './dom';
import type { IBar, IFinding, IReport } from './payload';
import { IReading, readReport } from './read';

export interface ISide {
  name: string;
  payload: unknown;
}

const LETTERS = ['A', 'B'];
const NOT_A_TEST =
  'Two runs of which each was recorded once: what else the machine did is in the difference. ' +
  'An A/B comparison in the notebook tells whether a change really helped.';

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
    put(root, make('p', 'ioscope-pair-note', NOT_A_TEST), figures(a, b), shares(a, b), found(a, b));
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
  // what follows the comma is this side's doubt
  const values = (report: IReport) =>
    new Map(
      report.figures.map(({ label, value }) => {
        const [name, ...doubt] = label.split(',');
        return [name, [value, ...doubt].join(',')];
      })
    );
  return table('Throughput', '', values(a), values(b));
}

/** Shares of the time of loop and workers: a row for each part that one of the two has. */
function shares(a: IReport, b: IReport): HTMLElement {
  const box = section('Where the time went', 'ioscope-pair-shares');
  const rows = (report: IReport) => new Map(report.bars.map(bar => [bar.who, bar]));
  const [left, right] = [rows(a), rows(b)];
  for (const who of new Set([...left.keys(), ...right.keys()])) {
    put(box, table('', who, parts(left.get(who)), parts(right.get(who))));
  }
  return box;
}

function parts(bar: IBar | undefined): Map<string, string> {
  return new Map((bar?.parts ?? []).map(part => [part.label, part.text]));
}

function table(
  title: string,
  caption: string,
  a: Map<string, string>,
  b: Map<string, string>
): HTMLElement {
  const box = title ? section(title, '') : make('div');
  const made = make('table', 'ioscope-pair-table');
  if (caption) {
    put(made, make('caption', '', caption));
  }
  put(made, put(make('thead'), cells('th', ['', ...LETTERS])));
  const body = make('tbody');
  for (const label of new Set([...a.keys(), ...b.keys()])) {
    put(body, cells('td', [label, a.get(label) ?? '–', b.get(label) ?? '–']));
  }
  return put(box, put(made, body));
}

function cells(kind: 'td' | 'th', texts: string[]): HTMLElement {
  const row = make('tr');
  texts.forEach((text, column) => {
    const cell = make(column === 0 ? 'th' : kind, '', text);
    cell.setAttribute('scope', column === 0 && kind === 'td' ? 'row' : 'col');
    put(row, cell);
  });
  return row;
}

/** Causes of both in their order; one that the other side has not is marked. */
function found(a: IReport, b: IReport): HTMLElement {
  const box = section('Findings', '');
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
