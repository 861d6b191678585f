/** Draws a report into an element. Knows nothing of Jupyter: every host uses this one. */

import { Disposable, Disposables } from './disposables';
import { make, put } from './dom';
import { IHost, ILink, NO_KERNEL } from './host';
import type { Command, IComparison, IProgress, IReport } from './payload';
import { readComparisons, readProgress, readReport } from './read';
import { bars } from './sections/bars';
import { batches } from './sections/batches';
import { ceilings } from './sections/ceilings';
import { comparison } from './sections/comparison';
import { deep, Opened } from './sections/deep';
import { findings } from './sections/findings';
import { FIRST_LOOK, FlameMemory } from './sections/flame_wishes';
import { flames } from './sections/flames';
import { ceilingsGist, flameGist, timelineGist } from './sections/gists';
import { head } from './sections/head';
import { notes } from './sections/notes';
import { outliers } from './sections/outliers';
import { timeline } from './sections/timeline';
import { Toggles } from './sections/toggles';
import { Selection } from './selection';

export interface IReportView extends Disposable {
  /** Draw another payload; ticks, what is unfolded, the flame tab and what is running stay. */
  show(payload: unknown): void;
  setLink(link: ILink): void;
  setProgress(progress: unknown): void;
  setComparisons(comparisons: unknown): void;
}

export function renderReport(el: HTMLElement, payload: unknown, host: IHost = {}): IReportView {
  const view = new ReportView(el, host);
  view.show(payload);
  return view;
}

class ReportView implements IReportView {
  constructor(
    el: HTMLElement,
    private readonly host: IHost
  ) {
    this.root = make('div', 'ioscope-report');
    this.root.addEventListener('focusin', keepKeys);
    el.append(this.root);
  }

  show(payload: unknown): void {
    const base = withoutComparisons(payload);
    if (base && base === this.base) {
      this.setComparisons((payload as IReport).comparisons);
      return;
    }
    this.base = base;
    this.clear();
    try {
      this.draw(payload);
    } catch (error) {
      console.error('ioscope: the report could not be drawn', error);
      this.base = '';
      this.clear();
      this.fail('This ioscope report could not be drawn; the browser console says why.', '');
    }
  }

  setLink(link: ILink): void {
    this.link = link;
    this.toggles?.setLink(link);
  }

  setProgress(progress: unknown): void {
    this.progress = readProgress(progress);
    this.toggles?.setProgress(this.progress);
  }

  setComparisons(comparisons: unknown): void {
    const read = readComparisons(comparisons);
    if (read) {
      this.showComparisons(read);
    }
  }

  dispose(): void {
    this.clear();
    this.root.remove();
  }

  private draw(payload: unknown): void {
    const { report, parts, problem, headline } = readReport(payload);
    if (!report) {
      this.fail(problem, headline);
      return;
    }
    const { life } = this;
    const selection = report.spans ? new Selection(report.spans.marks.length - 1) : null;
    const above = [head(report), bars(report, selection, life), this.fixes(report)];
    const below = [...this.digging(report, selection), notes(report, parts)];
    put(this.root, ...present(above), this.results, ...present(below));
    this.showComparisons(report.comparisons);
  }

  /** Verdict, where the time went and what to do stand first; this is for those who want to know more. */
  private digging(report: IReport, selection: Selection | null): (HTMLElement | null)[] {
    const { life, memory } = this;
    const { opened } = memory;
    const overTime = [
      timeline(report, selection, life),
      report.spans && selection ? batches(report.spans, selection) : null,
      ...outliers(report.outliers, selection)
    ];
    const flame = flames(report, memory.flames, selection, life, this.host);
    if (report.flames.some(one => one.delta) && !report.bars.length) {
      opened.add('Flame graph'); // two profiles against each other: there is nothing else to see
    }
    return [
      deep('Ceilings', ceilingsGist(report), [ceilings(report)], opened, life),
      deep('Timeline', timelineGist(report), overTime, opened, life),
      deep('Flame graph', flameGist(report), [flame], opened, life)
    ];
  }

  /** What holds it back beside the fixes that could lift it. */
  private fixes(report: IReport): HTMLElement | null {
    const limits = present([findings(report)]);
    if (report.toggles.length) {
      memorise(this.memory, report);
      const send = (command: Command) => this.link.send?.(command);
      const host = { send, insertCode: this.host.insertCode };
      this.toggles = new Toggles(report, this.memory.ticked!, host, this.life);
      this.toggles.setLink(this.link);
      this.toggles.setProgress(this.progress);
    }
    const left = limits.length ? put(make('div', 'ioscope-stack'), ...limits) : null;
    const both = present([left, this.toggles?.element ?? null]);
    return both.length ? put(make('div', 'ioscope-beside'), ...both) : null;
  }

  /** The newest result first. */
  private showComparisons(all: IComparison[]): void {
    this.resultsLife.dispose();
    const newestFirst = [...all].reverse();
    this.results.replaceChildren(
      ...newestFirst.map(result => comparison(result, this.host, this.resultsLife))
    );
  }

  private fail(problem: string, headline: string): void {
    const element = make('div', 'ioscope-section');
    if (headline) {
      put(element, make('h2', 'ioscope-headline', headline));
    }
    const words = make('p', 'ioscope-error', problem);
    words.setAttribute('role', 'alert');
    put(this.root, put(element, words));
  }

  private clear(): void {
    this.resultsLife.dispose();
    this.life.dispose();
    this.toggles = null;
    this.results.replaceChildren();
    this.root.replaceChildren();
  }

  private readonly root: HTMLElement;
  private readonly results = make('div', 'ioscope-results');
  private readonly life = new Disposables();
  private readonly resultsLife = new Disposables();
  private readonly memory: IMemory = { ticked: null, flames: { ...FIRST_LOOK }, opened: new Set() };
  private base = '';
  private toggles: Toggles | null = null;
  private link: ILink = NO_KERNEL;
  private progress: IProgress = readProgress(null);
}

/**
 * Keys pressed in the report are the report's, not shortcuts of the notebook around it. Lumino looks for
 * the mark on the element with the focus before it looks further up.
 */
function keepKeys(event: FocusEvent): void {
  (event.target as Element).setAttribute('data-lm-suppress-shortcuts', 'true');
}

interface IMemory {
  ticked: Set<string> | null;
  flames: FlameMemory;
  opened: Opened;
}

/** At first the best suggestion is ticked, one only: one change at a time can be told apart. */
function memorise(memory: IMemory, report: IReport): void {
  const first = report.toggles.find(toggle => toggle.suggested && !toggle.refusal);
  memory.ticked ??= new Set(first ? [first.name] : []);
}

/** What is drawn once: a report that only gained a comparison is not drawn again under the reader. */
function withoutComparisons(payload: unknown): string {
  return typeof payload === 'object' && payload !== null
    ? JSON.stringify({ ...payload, comparisons: [] })
    : '';
}

function present(elements: (HTMLElement | null)[]): HTMLElement[] {
  return elements.filter((element): element is HTMLElement => element !== null);
}
