import type { Disposables } from '../disposables';
import { button, make, put } from '../dom';
import type { IColumns } from '../flame/columns';
import { IWish, statesOf, WAITING } from '../flame/reshape';
import type { ISpan } from '../selection';

/** How the flame graph is looked at, kept so that it outlives a redraw. */
export interface FlameMemory {
  flame: string;
  inverted: boolean;
  own: boolean;
  table: boolean;
  state: string;
}

export const FIRST_LOOK: FlameMemory = {
  flame: '', inverted: false, own: false, table: false, state: ''
};

type Flag = 'inverted' | 'own' | 'table';

const FLAGS: [Flag, string, string][] = [
  ['own', 'Own code', 'Leave out what libraries do inside; keep the functions of yours and what they call'],
  ['inverted', 'Inverted', 'What is called last comes first: who spends the time, then who calls it'],
  ['table', 'Table', 'The same data as rows, a function each']
];

/** The switches of the flame graph: states, own code, inverted, table. */
export class FlameWishes {
  readonly element = make('div', 'ioscope-flame-tools');

  constructor(
    private readonly memory: FlameMemory,
    onChange: () => void,
    life: Disposables
  ) {
    this.states.setAttribute('aria-label', 'State of the threads');
    life.listen(this.states, 'change', () => {
      memory.state = this.states.value;
      onChange();
    });
    put(this.element, this.states);
    for (const [flag, label, title] of FLAGS) {
      const element = button(label, 'ioscope-small ioscope-switch');
      element.title = title;
      element.setAttribute('aria-pressed', String(memory[flag]));
      life.listen(element, 'click', () => {
        memory[flag] = !memory[flag];
        element.setAttribute('aria-pressed', String(memory[flag]));
        onChange();
      });
      put(this.element, element);
    }
  }

  /** The states of a graph to choose from; graphs of all time have none. */
  offer(columns: IColumns): void {
    const states = statesOf(columns);
    this.known = new Set(states.map(state => state.name));
    this.states.hidden = states.length < 2;
    const options: [string, string][] = [['', 'all states']];
    if (states.some(state => state.waiting) && states.some(state => !state.waiting)) {
      options.push([WAITING, 'all waiting']);
      this.known.add(WAITING);
    }
    options.push(...states.map(({ name }): [string, string] => [name, name]));
    this.states.replaceChildren(
      ...options.map(([value, text]) => {
        const option = make('option', '', text);
        option.value = value;
        return option;
      })
    );
    this.states.value = this.state();
  }

  wish(span: ISpan | null): IWish {
    const { inverted, own } = this.memory;
    return { inverted, own, state: this.state(), span };
  }

  /** The state that was chosen, where this graph has it. */
  private state(): string {
    return this.known.has(this.memory.state) ? this.memory.state : '';
  }

  private readonly states = make('select', 'ioscope-select');
  private known = new Set<string>();
}
