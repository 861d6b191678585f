import { make, put, scrolling } from '../dom';

/** Rows of texts below headings; the first cell of a row names it. `name` is for screen readers. */
export function table(
  name: string,
  headings: string[],
  rows: string[][],
  titles: string[] = []
): HTMLElement {
  const head = put(make('tr'), ...headings.map(text => scoped(text, 'col')));
  const body = make('tbody');
  rows.forEach(([first, ...cells], index) => {
    const line = put(make('tr'), scoped(first, 'row'), ...cells.map(text => make('td', '', text)));
    if (titles[index]) {
      line.title = titles[index];
    }
    put(body, line);
  });
  const element = put(make('table', 'ioscope-table'), put(make('thead'), head), body);
  return scrolling(element, name);
}

function scoped(text: string, scope: 'col' | 'row'): HTMLElement {
  const cell = make('th', '', text);
  cell.scope = scope;
  return cell;
}
