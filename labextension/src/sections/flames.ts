import { Disposables } from '../disposables';
import { button, freshId, make, put, section } from '../dom';
import { toColumns } from '../flame/columns';
import type { IColumns } from '../flame/columns';
import { FlameGraph } from '../flame/graph';
import { search } from '../flame/search';
import type { IMatches } from '../flame/search';
import { percentText } from '../flame/words';
import type { IFlame, IReport } from '../payload';
import { Tabs } from './tabs';

/** Which flame graph is shown, kept so that it outlives a redraw. */
export interface IFlameMemory {
  flame: string;
}

export function flames(
  report: IReport,
  memory: IFlameMemory,
  life: Disposables
): HTMLElement | null {
  return report.flames.length ? new Flames(report, memory, life).element : null;
}

/** Flame graphs behind tabs, with a search that stays when the tab changes. */
class Flames {
  readonly element = section('Flame graph', 'ioscope-flames');

  constructor(
    private readonly report: IReport,
    private readonly memory: IFlameMemory,
    life: Disposables
  ) {
    this.field.type = 'search';
    this.field.placeholder = 'Search functions';
    this.field.setAttribute('aria-label', 'Search functions in the flame graph');
    this.found.setAttribute('role', 'status');
    this.box.id = freshId('flame');
    this.box.setAttribute('role', 'tabpanel');
    const labels = report.flames.map(flame => flame.label);
    const known = report.flames.findIndex(flame => flame.key === memory.flame);
    const tabs = new Tabs(labels, Math.max(0, known), this.box, index => this.show(index), life);
    const tools = put(make('div', 'ioscope-flame-tools'), this.found, this.all, this.field);
    put(this.element, put(make('div', 'ioscope-flame-bar'), tabs.element, tools), this.box);
    if (report.flameSource) {
      put(this.element, make('p', 'ioscope-note', report.flameSource));
    }
    life.listen(this.field, 'input', () => this.search());
    life.listen(this.all, 'click', () => this.graph?.reset());
    life.add(() => this.shown.dispose());
    this.show(Math.max(0, known));
  }

  private show(index: number): void {
    const flame = this.report.flames[index];
    this.memory.flame = flame.key;
    this.shown.dispose();
    this.all.hidden = true;
    this.graph = null;
    this.columns = readColumns(flame);
    if (!this.columns) {
      this.box.replaceChildren(make('p', 'ioscope-error', 'This flame graph is damaged.'));
      return;
    }
    const onZoom = (zoomed: boolean) => {
      this.all.hidden = !zoomed;
    };
    this.graph = new FlameGraph(this.columns, flame.label, this.shown, onZoom);
    this.box.replaceChildren(this.graph.element);
    this.search();
  }

  private search(): void {
    const matches = this.columns && search(this.columns, this.field.value);
    this.found.textContent = matches ? foundText(matches) : '';
    this.graph?.highlight(matches);
  }

  private readonly box = make('div', 'ioscope-flame-box');
  private readonly field = make('input', 'ioscope-search');
  private readonly found = make('span', 'ioscope-note');
  private readonly all = button('Show all', 'ioscope-small');
  private readonly shown = new Disposables();
  private graph: FlameGraph | null = null;
  private columns: IColumns | null = null;
}

function foundText(matches: IMatches): string {
  const frames = `${matches.frames.toLocaleString('en')} ${matches.frames === 1 ? 'frame' : 'frames'}`;
  return `${frames}, ${percentText(matches.share)} of the time`;
}

function readColumns(flame: IFlame): IColumns | null {
  try {
    return toColumns(flame);
  } catch {
    return null;
  }
}
