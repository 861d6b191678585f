import { make, put } from '../dom';
import { cssPercent, unit } from '../numbers';
import type { IProgress } from '../payload';

/** How far a comparison is. */
export class ProgressLine {
  readonly element = make('div', 'ioscope-progress');

  constructor() {
    this.track.setAttribute('role', 'progressbar');
    this.track.setAttribute('aria-label', 'Progress of the comparison');
    this.words.setAttribute('aria-live', 'polite');
    put(this.element, put(this.track, this.fill), this.words);
    this.show({ state: 'idle', text: '', fraction: -1 });
  }

  show(progress: IProgress): void {
    const busy = progress.state === 'running' || progress.state === 'cancelling';
    const known = progress.fraction >= 0;
    this.element.hidden = progress.state === 'idle' || (!busy && !progress.text);
    this.element.dataset.state = progress.state;
    this.track.hidden = !busy;
    this.track.classList.toggle('ioscope-unknown', !known);
    this.fill.style.width = known ? cssPercent(progress.fraction) : '';
    if (known) {
      this.track.setAttribute('aria-valuenow', String(Math.round(unit(progress.fraction) * 100)));
    } else {
      this.track.removeAttribute('aria-valuenow');
    }
    this.words.textContent = progress.text;
  }

  private readonly track = make('div', 'ioscope-progress-track');
  private readonly fill = make('div', 'ioscope-progress-fill');
  private readonly words = make('p');
}
