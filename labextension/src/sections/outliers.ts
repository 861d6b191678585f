import { folded, make, put } from '../dom';
import { cssPercent } from '../numbers';
import type { IOutlier, IOutliers } from '../payload';
import type { Selection } from '../selection';
import { table } from './table';

/** A row of the timeline: one mark an outlier, each with its words. */
export function marks(all: IOutliers): Element[] {
  if (!all.rows.length) {
    return [];
  }
  const label = make('span', 'ioscope-row-label', 'outliers');
  const value = make('span', 'ioscope-spark-value', String(all.rows.length));
  label.title = value.title = all.summary;
  const row = put(make('div', 'ioscope-marks'), ...all.rows.map(mark));
  return [label, row, value, lines(all.rows)];
}

function mark(outlier: IOutlier): HTMLElement {
  const element = make('span', 'ioscope-mark');
  place(element, outlier);
  element.title = outlier.title;
  element.tabIndex = 0;
  element.setAttribute('role', 'img');
  element.setAttribute('aria-label', outlier.title);
  element.dataset.phase = outlier.phase;
  return element;
}

/** The same marks through all rows: what else happened then. */
function lines(rows: IOutlier[]): HTMLElement {
  const element = make('div', 'ioscope-mark-lines');
  element.setAttribute('aria-hidden', 'true');
  for (const outlier of rows) {
    const line = make('span', 'ioscope-mark-line');
    place(line, outlier);
    put(element, line);
  }
  return element;
}

function place(element: HTMLElement, outlier: IOutlier): void {
  element.style.left = cssPercent(outlier.x0);
  element.style.width = cssPercent(Math.max(0, outlier.x1 - outlier.x0));
}

/** What stood out, in words and as a table whose rows follow the selection. */
export function outliers(all: IOutliers, selection: Selection | null): HTMLElement[] {
  if (!all.summary) {
    return [];
  }
  const found: HTMLElement[] = [make('p', 'ioscope-outliers', all.summary)];
  if (all.stalls.length) {
    const list = make('ul', 'ioscope-outliers');
    found.push(put(list, ...all.stalls.map(text => make('li', '', text))));
  }
  if (all.rows.length) {
    const element = each(all.rows);
    const none = make('p', 'ioscope-note', 'None of them in the selected part.');
    none.hidden = true;
    found.push(put(folded('Each of them', element), none));
    selection?.onChange(span => {
      const { count } = selection;
      const lines = [...element.querySelectorAll<HTMLElement>('tbody tr')];
      lines.forEach((line, index) => {
        const { x0, x1 } = all.rows[index];
        line.hidden = span !== null && (x1 * count < span.from || x0 * count >= span.to);
      });
      none.hidden = lines.some(line => !line.hidden);
    });
  }
  return found;
}

function each(rows: IOutlier[]): HTMLElement {
  const cells = rows.map(row => [row.batch, row.when, row.phase, row.time, row.usual, row.cause]);
  const element = table(
    'Batches that stood out',
    ['outlier', 'at', 'what', 'took', 'usually', 'likely'],
    cells,
    rows.map(row => row.title)
  );
  element.classList.add('ioscope-outlier-table');
  return element;
}
