/** Profiles to choose from: a click shows one, two ticks compare two. */

import { Disposables } from './disposables';
import { button, freshId, make, put } from './dom';
import type { IFound } from './profiles';

export class ProfileList {
  constructor(
    private readonly compare: (a: IFound, b: IFound) => void,
    private readonly life: Disposables
  ) {
    this.life.listen(this.button, 'click', () => this.run());
    put(this.element, make('h3', '', 'Profiles'), this.list, this.empty, this.button);
    this.show([]);
  }

  show(found: IFound[]): void {
    this.rows.dispose();
    this.found = found;
    this.ticked = [];
    this.list.replaceChildren(...found.map(one => this.row(one)).reverse());
    this.list.hidden = this.button.hidden = found.length === 0;
    this.empty.hidden = found.length > 0;
    this.update();
  }

  dispose(): void {
    this.rows.dispose();
  }

  private row(one: IFound): HTMLElement {
    const box = make('input');
    box.type = 'checkbox';
    box.id = freshId('profile');
    this.rows.listen(box, 'change', () => this.tick(one, box));
    const label = make('label', 'ioscope-profile-where', one.where);
    label.htmlFor = box.id;
    const name = button(one.name, 'ioscope-profile-name');
    name.title = one.name;
    this.rows.listen(name, 'click', () => one.reveal?.());
    return put(make('li'), box, put(make('div'), label, name));
  }

  /** Two at most: a third takes the place of the first. */
  private tick(one: IFound, box: HTMLInputElement): void {
    this.ticked = this.ticked.filter(({ box: other }) => other !== box);
    if (box.checked) {
      this.ticked.push({ one, box });
    }
    if (this.ticked.length > 2) {
      this.ticked.shift()!.box.checked = false;
    }
    this.update();
  }

  private update(): void {
    this.button.disabled = this.ticked.length !== 2;
    this.button.title = this.button.disabled ? 'Tick two profiles' : '';
  }

  private run(): void {
    if (this.ticked.length === 2) {
      const [a, b] = this.ticked
        .map(({ one }) => one)
        .sort((one, other) => this.found.indexOf(one) - this.found.indexOf(other));
      this.compare(a, b);
    }
  }

  private found: IFound[] = [];
  private ticked: { one: IFound; box: HTMLInputElement }[] = [];
  private readonly rows = new Disposables();
  private readonly list = make('ul', 'ioscope-profile-list');
  private readonly button = button('Compare two');
  private readonly empty = make(
    'p',
    'ioscope-live-why',
    'Reports in open notebooks are listed here. Profile files: select two in the file browser, then Compare profiles.'
  );
  readonly element = make('section', 'ioscope-profiles');
}
