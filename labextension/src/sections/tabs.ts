import type { Disposables } from '../disposables';
import { freshId, make, put } from '../dom';

const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1 };

/** A row of tabs as screen readers and keyboards expect it: one stop, arrows between them. */
export class Tabs {
  readonly element = make('div', 'ioscope-tabs');

  constructor(
    labels: string[],
    selected: number,
    private readonly panel: HTMLElement,
    private readonly onSelect: (index: number) => void,
    life: Disposables
  ) {
    this.element.setAttribute('role', 'tablist');
    this.tabs = labels.map(label => make('button', 'ioscope-tab', label));
    for (const [index, tab] of this.tabs.entries()) {
      tab.type = 'button';
      tab.id = freshId('tab');
      tab.setAttribute('role', 'tab');
      tab.setAttribute('aria-controls', panel.id);
      life.listen(tab, 'click', () => this.select(index));
      life.listen(tab, 'keydown', event => this.key(event, index));
    }
    put(this.element, ...this.tabs);
    this.mark(selected);
  }

  private key(event: KeyboardEvent, index: number): void {
    const count = this.tabs.length;
    const ends: Record<string, number> = { Home: 0, End: count - 1 };
    const step = STEPS[event.key];
    const next = step ? (index + step + count) % count : ends[event.key];
    if (next !== undefined) {
      this.select(next);
      this.tabs[next].focus();
      event.preventDefault();
    }
  }

  private select(index: number): void {
    this.mark(index);
    this.onSelect(index);
  }

  private mark(selected: number): void {
    for (const [index, tab] of this.tabs.entries()) {
      tab.setAttribute('aria-selected', String(index === selected));
      tab.tabIndex = index === selected ? 0 : -1;
    }
    this.panel.setAttribute('aria-labelledby', this.tabs[selected].id);
  }

  private readonly tabs: HTMLButtonElement[];
}
