import { folded, make, put, section } from '../dom';
import type { IFinding, IReport } from '../payload';

/** Findings shown unfolded: the report gives them in the order of what they cost. */
const FIRST = 3;

/** Causes in the order of what removing each would gain, with their evidence folded away. */
export function findings(report: IReport): HTMLElement | null {
  if (!report.findings.length) {
    return null;
  }
  const element = section('What holds it back', 'ioscope-findings');
  put(element, make('p', 'ioscope-note', 'Share of the run that removing the cause would free.'));
  put(element, list(report.findings.slice(0, FIRST)));
  const rest = report.findings.slice(FIRST);
  if (rest.length) {
    put(element, folded(`${rest.length} more, each a smaller part`, list(rest)));
  }
  return element;
}

function list(all: IFinding[]): HTMLElement {
  return put(make('ol'), ...all.map(finding));
}

function finding(one: IFinding): HTMLElement {
  const element = make('li');
  const top = make('div', 'ioscope-finding-top');
  const title = make('span', 'ioscope-finding-title', one.title);
  title.setAttribute('role', 'heading'); // to walk from cause to cause
  title.setAttribute('aria-level', '4');
  put(top, title, gain(one));
  put(element, top);
  if (one.advice) {
    put(element, make('p', '', one.advice));
  }
  const evidence = make('ul');
  put(evidence, ...one.evidence.map(line => make('li', '', line)));
  if (one.where) {
    put(evidence, put(make('li', '', 'Where: '), make('code', '', one.where)));
  }
  if (evidence.childElementCount) {
    put(element, folded('Evidence', evidence));
  }
  return element;
}

function gain(one: IFinding): HTMLElement {
  const element = make('span', 'ioscope-gain');
  put(element, make('b', '', one.share));
  if (one.cost) {
    put(element, ` · ${one.cost}`);
  }
  return element;
}
