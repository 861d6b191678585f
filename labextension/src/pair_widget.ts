import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, MainAreaWidget, showDialog } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';
import { Disposable } from './disposables';
import { profileIcon } from './icon';
import { ISide, renderPair } from './pair';

class PairWidget extends Widget {
  constructor(sides: ISide[]) {
    super();
    this.addClass('ioscope-pair-page');
    this.view = renderPair(this.node, sides);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.view.dispose();
      super.dispose();
    }
  }

  private readonly view: Disposable;
}

/** A tab of its own where the page has tabs; a dialog in Notebook, which has none. */
export function showPair(app: JupyterFrontEnd, tabs: boolean, sides: ISide[]): void {
  const content = new PairWidget(sides);
  if (!tabs) {
    void showDialog({ title: 'Two profiles', body: content, buttons: [Dialog.okButton()] });
    return;
  }
  const tab = new MainAreaWidget({ content });
  tab.title.label = 'Two profiles';
  tab.title.icon = profileIcon;
  app.shell.add(tab, 'main');
  app.shell.activateById(tab.id);
}
