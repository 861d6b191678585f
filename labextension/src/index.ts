/** What JupyterLab and Notebook load: the profile button, and reports that know their notebook. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { profileIcon } from './icon';
import { addRenderer, profileActiveCell } from './notebook';

const PROFILE_CELL = 'ioscope:profile-cell';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-ioscope:plugin',
  description: 'Profiles a cell and draws its report.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ICommandPalette, ITranslator],
  activate
};

function activate(
  app: JupyterFrontEnd,
  tracker: INotebookTracker,
  palette: ICommandPalette | null,
  translator: ITranslator | null
): void {
  const words = (translator ?? nullTranslator).load('jupyter_ioscope');
  app.commands.addCommand(PROFILE_CELL, {
    label: words.__('Profile this cell'),
    caption: words.__('Run this cell under ioscope: where its loader loses time'),
    icon: profileIcon,
    isEnabled: () => tracker.activeCell?.model.type === 'code',
    execute: async () => {
      if (tracker.currentWidget) {
        await profileActiveCell(tracker.currentWidget);
      }
    }
  });
  palette?.addItem({ command: PROFILE_CELL, category: 'ioscope' });
  tracker.forEach(addRenderer);
  tracker.widgetAdded.connect((_, panel) => addRenderer(panel));
}

export default plugin;
