import type { Disposables } from '../disposables';
import { make, put } from '../dom';

/** Which of the folded sections are open, kept so that it outlives a redraw. */
export type Opened = Set<string>;

/** A section for those who dig: folded, with one line that says what is in it. */
export function deep(
  title: string,
  gist: string,
  content: (HTMLElement | null)[],
  opened: Opened,
  life: Disposables
): HTMLElement | null {
  const present = content.filter((one): one is HTMLElement => one !== null);
  if (!present.length) {
    return null;
  }
  const element = make('details', 'ioscope-section ioscope-deep');
  const summary = put(make('summary'), make('h3', '', title), make('span', 'ioscope-gist', gist));
  put(element, summary, ...present);
  element.dataset.section = title;
  element.open = opened.has(title);
  life.listen(element, 'toggle', () => {
    opened[element.open ? 'add' : 'delete'](title);
  });
  return element;
}
