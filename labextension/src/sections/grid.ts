import { make, put, scrolling } from '../dom';
import type { IGrid, IGridCell } from '../payload';

/** A heat map as a table: its numbers can be read without its colours. */
export function grid(value: IGrid): HTMLElement {
  const element = make('table', 'ioscope-table ioscope-grid');
  const head = put(make('tr'), scoped(value.corner, 'col'), ...value.columns.map(name => scoped(name, 'col')));
  const body = make('tbody');
  for (const row of value.rows) {
    put(body, put(make('tr'), scoped(row.label, 'row'), ...row.cells.map(cell)));
  }
  put(element, put(make('thead'), head), body);
  return scrolling(element, 'Settings');
}

function cell(value: IGridCell): HTMLElement {
  const element = make('td', '', value.text);
  element.title = value.title;
  if (value.level >= 0) {
    element.style.setProperty('--ioscope-level', `${Math.round(100 * Math.min(1, value.level))}%`);
  }
  element.classList.toggle('ioscope-timed', value.timed);
  element.classList.toggle('ioscope-best', value.best);
  return element;
}

function scoped(text: string, scope: 'col' | 'row'): HTMLElement {
  const element = make('th', '', text);
  element.scope = scope;
  return element;
}
