import type { Disposables } from '../disposables';
import { button, make, put } from '../dom';
import type { ICellPlace } from '../flame/words';
import type { IHost } from '../host';

/** Below a flame graph: the way to the notebook's cell that the chosen frame is from. */
export class CellLink {
  readonly element = make('p', 'ioscope-note');

  constructor(
    private readonly host: IHost,
    life: Disposables
  ) {
    this.problem.setAttribute('role', 'status');
    this.element.hidden = true;
    life.listen(this.go, 'click', () => void this.follow());
    put(this.element, this.go, ' ', this.problem);
  }

  show(place: ICellPlace | null): void {
    this.place = this.host.goToCell ? place : null;
    this.element.hidden = !this.place;
    this.problem.textContent = '';
    if (this.place) {
      const { cell, line } = this.place;
      this.go.textContent = `Go to In [${cell}]${line ? `, line ${line}` : ''}`;
    }
  }

  private async follow(): Promise<void> {
    if (this.place) {
      const { cell, line } = this.place;
      const gone = this.host.goToCell?.(cell, line).catch((error: unknown) => {
        console.warn('ioscope: a cell could not be shown', error);
        return 'This cell could not be shown; the browser console says why.';
      });
      this.problem.textContent = (await gone) ?? '';
    }
  }

  private place: ICellPlace | null = null;
  private readonly go = button('', 'ioscope-small');
  private readonly problem = make('span');
}
