import { make, put } from '../dom';
import type { IFigure, IReport } from '../payload';

/** The answer: one sentence, its reason, and the few numbers that matter. */
export function head(report: IReport): HTMLElement {
  const element = make('div', 'ioscope-section ioscope-head');
  const line = [report.label, report.ended].filter(Boolean).join(' · ');
  if (line) {
    put(element, make('p', 'ioscope-eyebrow', line));
  }
  put(element, make('h2', 'ioscope-headline', report.headline));
  if (report.detail) {
    put(element, make('p', 'ioscope-detail', report.detail));
  }
  if (!report.separated && report.wouldSeparate) {
    put(element, make('p', 'ioscope-unsure', report.wouldSeparate));
  }
  if (report.figures.length) {
    put(element, figures(report.figures));
  }
  if (report.tier && !report.fullEvidence) {
    put(element, make('p', 'ioscope-tier', report.tier));
  }
  return element;
}

function figures(all: IFigure[]): HTMLElement {
  const element = make('dl', 'ioscope-figures');
  for (const figure of all) {
    const block = make('div');
    if (figure.title) {
      block.title = figure.title;
    }
    put(block, make('dt', '', figure.label), make('dd', '', figure.value));
    put(element, block);
  }
  return element;
}
