import type { Disposables } from '../disposables';
import { make, put } from '../dom';
import type { IColumns } from '../flame/columns';
import { functionRows, IFunctionRow } from '../flame/functions';
import { changeText, percentText } from '../flame/words';

const ROWS = 150; // more are narrower than what anybody reads

type Key = 'self' | 'total' | 'delta';

/** The functions as rows; a click on a heading sorts by it. */
export function functionTable(columns: IColumns, life: Disposables): HTMLElement {
  const rows = functionRows(columns);
  const keys: [Key, string][] = columns.delta
    ? [['delta', 'change'], ['total', 'in A and B']]
    : [['self', 'itself'], ['total', 'with all it calls']];
  const body = make('tbody');
  const heads = keys.map(([key, label]) => {
    const press = make('button', 'ioscope-tab', label);
    press.type = 'button';
    const cell = put(make('th'), press);
    cell.scope = 'col';
    life.listen(press, 'click', () => sort(key));
    return cell;
  });
  const sort = (by: Key) => {
    heads.forEach((cell, index) =>
      cell.setAttribute('aria-sort', keys[index][0] === by ? 'descending' : 'none')
    );
    const size = (row: IFunctionRow) => (by === 'delta' ? Math.abs(row.delta) : row[by]);
    const shown = [...rows].sort((a, b) => size(b) - size(a)).slice(0, ROWS);
    body.replaceChildren(...shown.map(row => line(columns, row, keys)));
  };
  const words = ['function', 'where'].map(text => make('th', '', text));
  const head = put(make('tr'), ...heads, ...words);
  sort(columns.delta ? 'delta' : 'total');
  return put(make('table', 'ioscope-table ioscope-function-table'), put(make('thead'), head), body);
}

function line(columns: IColumns, row: IFunctionRow, keys: [Key, string][]): HTMLElement {
  const cells = keys.map(([key]) => make('td', '', valueText(row, key)));
  const element = put(make('tr'), ...cells);
  const name = make('td', '', columns.names[row.name]);
  name.dataset.kind = String(columns.kinds[row.name]);
  element.title = columns.delta ? changeText(row.total, row.delta) : '';
  return put(element, name, make('td', '', columns.details[row.name]));
}

function valueText(row: IFunctionRow, key: Key): string {
  if (key !== 'delta') {
    return percentText(row[key]);
  }
  return `${row.delta < 0 ? '−' : '+'}${percentText(Math.abs(row.delta))}`;
}
