import { Disposables } from '../disposables';
import { button, freshId, make, put } from '../dom';
import { saveText } from '../download';
import { toColumns } from '../flame/columns';
import type { IColumns } from '../flame/columns';
import { foldedText } from '../flame/folded';
import { FlameGraph } from '../flame/graph';
import { reshaped } from '../flame/reshape';
import { search } from '../flame/search';
import type { IMatches } from '../flame/search';
import { speedscopeText } from '../flame/speedscope';
import { cellPlace, percentText } from '../flame/words';
import type { IHost } from '../host';
import type { IFlame, IReport } from '../payload';
import { Selection, spanText } from '../selection';
import { CellLink } from './cell_link';
import { copyText } from './code';
import { functionTable } from './flame_table';
import { Tabs } from './tabs';
import { FlameMemory, FlameWishes } from './flame_wishes';

export type { FlameMemory };

export function flames(
  report: IReport,
  memory: FlameMemory,
  selection: Selection | null,
  life: Disposables,
  host: IHost = {}
): HTMLElement | null {
  return report.flames.length ? new Flames(report, memory, selection, life, host).element : null;
}

const WHOLE_RUN = 'It shows the whole run: samples of all time carry no times.';

/** Flame graphs behind tabs; search and wishes stay when the tab changes. */
class Flames {
  readonly element = make('div', 'ioscope-flames');

  constructor(
    private readonly report: IReport,
    private readonly memory: FlameMemory,
    private readonly selection: Selection | null,
    life: Disposables,
    host: IHost
  ) {
    this.cell = new CellLink(host, life);
    this.box.id = freshId('flame');
    this.box.setAttribute('role', 'tabpanel');
    this.said.setAttribute('role', 'status');
    const labels = report.flames.map(flame => flame.label);
    const known = Math.max(0, report.flames.findIndex(flame => flame.key === memory.flame));
    const tabs = new Tabs(labels, known, this.box, index => this.show(index), life);
    this.wishes = new FlameWishes(memory, () => this.draw(), life);
    put(this.element, tabs.element, this.tools(life), this.said, this.box, this.cell.element);
    if (report.flameSource) {
      put(this.element, make('p', 'ioscope-note', report.flameSource));
    }
    selection?.onChange(() => this.columns && this.draw());
    life.add(() => this.shown.dispose());
    this.show(known);
  }

  private tools(life: Disposables): HTMLElement {
    this.field.type = 'search';
    this.field.placeholder = 'Search functions';
    this.field.setAttribute('aria-label', 'Search functions in the flame graph');
    this.found.setAttribute('role', 'status');
    life.listen(this.field, 'input', () => this.search());
    life.listen(this.all, 'click', () => this.graph?.reset());
    const copy = button('Copy', 'ioscope-small');
    copy.title = 'Copy what is drawn as folded stacks, for flamegraph.pl and other tools';
    life.listen(copy, 'click', () => void this.copy());
    const save = button('Speedscope', 'ioscope-small');
    save.title = 'Save what is drawn as a file for speedscope';
    life.listen(save, 'click', () => {
      const name = this.report.label || 'ioscope';
      const drawn = this.report.flames.filter(flame => readColumns(flame));
      saveText('ioscope.speedscope.json', speedscopeText(drawn, name));
    });
    const right = put(make('div', 'ioscope-flame-tools'), this.found, this.all, this.field, copy, save);
    return put(make('div', 'ioscope-flame-bar'), this.wishes.element, right);
  }

  private async copy(): Promise<void> {
    const text = this.columns ? foldedText(this.columns) : '';
    this.say(await copyText(text, null));
  }

  private say(words: string): void {
    this.said.textContent = words;
    this.said.hidden = !words;
  }

  private show(index: number): void {
    const flame = this.report.flames[index];
    this.memory.flame = flame.key;
    this.flame = flame;
    this.whole = readColumns(flame);
    if (this.whole) {
      this.wishes.offer(this.whole);
    }
    this.draw();
  }

  private draw(): void {
    const { whole, flame } = this;
    this.shown.dispose();
    this.all.hidden = true;
    this.cell.show(null);
    this.graph = null;
    this.columns = null;
    if (!whole || !flame) {
      this.box.replaceChildren(make('p', 'ioscope-error', 'This flame graph is damaged.'));
      return;
    }
    const span = this.selection?.span ?? null;
    this.columns = reshaped(whole, this.wishes.wish(span));
    this.say(span ? this.followed(whole, span) : '');
    if (!this.columns) {
      this.box.replaceChildren(make('p', 'ioscope-note', 'Nothing was seen here.'));
    } else if (this.memory.table) {
      this.box.replaceChildren(functionTable(this.columns, this.shown));
    } else {
      const columns = this.columns;
      const onZoom = (zoomed: boolean) => void (this.all.hidden = !zoomed);
      const onFrame = (index: number) => this.cell.show(cellPlace(columns, index));
      this.graph = new FlameGraph(columns, flame.label, this.shown, onZoom, onFrame);
      this.box.replaceChildren(this.graph.element);
      this.graph.redraw();
    }
    this.search();
  }

  private followed(whole: IColumns, span: NonNullable<Selection['span']>): string {
    const { spans } = this.report;
    return whole.over && spans ? `From ${spanText(spans, span)} of the run.` : WHOLE_RUN;
  }

  private search(): void {
    const matches = this.columns && search(this.columns, this.field.value);
    this.found.textContent = matches ? foundText(matches) : '';
    this.graph?.highlight(matches);
  }

  private readonly box = make('div', 'ioscope-flame-box');
  private readonly field = make('input', 'ioscope-search');
  private readonly found = make('span', 'ioscope-note');
  private readonly said = make('p', 'ioscope-note');
  private readonly all = button('Show all', 'ioscope-small');
  private readonly shown = new Disposables();
  private readonly wishes: FlameWishes;
  private readonly cell: CellLink;
  private graph: FlameGraph | null = null;
  private flame: IFlame | null = null;
  private whole: IColumns | null = null;
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
