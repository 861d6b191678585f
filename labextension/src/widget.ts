/** The anywidget: the same report in VS Code, Colab, and JupyterLab without the extension. */

import css from '../style/report.css';
import type { Command } from './payload';
import { renderReport } from './report';

/** What anywidget promises of its model; only what is used. */
interface IModel {
  get(name: string): unknown;
  on(event: string, handler: () => void): void;
  off(event: string, handler: () => void): void;
  send(message: Command): void;
}

function render({ model, el }: { model: IModel; el: HTMLElement }): () => void {
  const style = document.createElement('style');
  style.textContent = css;
  el.append(style);
  const view = renderReport(el, model.get('report'));
  const send = (command: Command) => model.send(command);
  const handlers: Record<string, () => void> = {
    report: () => view.show(model.get('report')),
    progress: () => view.setProgress(model.get('progress')),
    comparisons: () => view.setComparisons(model.get('comparisons'))
  };
  view.setLink({ state: 'live', note: '', send });
  for (const [name, handler] of Object.entries(handlers)) {
    model.on(`change:${name}`, handler);
  }
  handlers.progress();
  if (Array.isArray(model.get('comparisons')) && (model.get('comparisons') as unknown[]).length) {
    handlers.comparisons();
  }
  return () => {
    for (const [name, handler] of Object.entries(handlers)) {
      model.off(`change:${name}`, handler);
    }
    view.dispose();
    style.remove();
  };
}

export default { render };
