/** What JupyterLab and Notebook load: commands, reports that know their notebook, and the panel. */

import {
  ILabShell,
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { profileIcon } from './icon';
import { LIVE_ID, LivePanel } from './live';
import { addRenderer, profileActiveCell } from './notebook';
import { isProfile, pairOfFiles, ProfileDrops } from './pair_files';
import { showPair } from './pair_widget';
import { Settings } from './settings';
import { Status } from './status';

const PROFILE_CELL = 'ioscope:profile-cell';
const OPEN_LIVE = 'ioscope:open-live';
const COMPARE_FILES = 'ioscope:compare-files';
const CATEGORY = 'ioscope';
const LIVE_RANK = 700;

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
  palette?.addItem({ command: PROFILE_CELL, category: CATEGORY });
  tracker.forEach(addRenderer);
  tracker.widgetAdded.connect((_, panel) => addRenderer(panel));
}

const settings: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-ioscope:settings',
  description: 'Hands the user\'s settings to profiled cells.',
  autoStart: true,
  requires: [INotebookTracker, ISettingRegistry],
  activate: async (_, tracker: INotebookTracker, registry: ISettingRegistry) => {
    const made = new Settings(tracker);
    try {
      made.use(await registry.load(plugin.id));
    } catch (error) {
      console.warn('ioscope: no settings', error);
    }
  }
};

const live: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-ioscope:live',
  description: 'The panel in the side bar and the text in the status bar.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ICommandPalette, ILabShell, ILayoutRestorer, IStatusBar],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    palette: ICommandPalette | null,
    lab: ILabShell | null,
    restorer: ILayoutRestorer | null,
    bar: IStatusBar | null
  ) => {
    const panel = new LivePanel(tracker, (a, b) =>
      showPair(app, lab !== null, [named(a), named(b)])
    );
    app.shell.add(panel, 'right', { rank: LIVE_RANK });
    restorer?.add(panel, LIVE_ID);
    if (bar) {
      new Status(bar);
    }
    app.commands.addCommand(OPEN_LIVE, {
      label: 'Show live panel',
      icon: profileIcon,
      execute: () => app.shell.activateById(LIVE_ID)
    });
    palette?.addItem({ command: OPEN_LIVE, category: CATEGORY });
  }
};

function named({ name, where, payload }: { name: string; where: string; payload: unknown }) {
  return { name: `${name} (${where})`, payload };
}

const files: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-ioscope:files',
  description: 'Two profile files side by side.',
  autoStart: true,
  optional: [ILabShell, IFileBrowserFactory],
  activate: (
    app: JupyterFrontEnd,
    lab: ILabShell | null,
    factory: IFileBrowserFactory | null
  ) => {
    if (!lab) {
      return; // Notebook's pages have neither tabs nor a file browser beside them
    }
    const compare = async (paths: string[]) => {
      const sides = await pairOfFiles(app, paths);
      if (sides) {
        showPair(app, true, sides);
      }
    };
    new ProfileDrops(app, paths => void compare(paths));
    const selected = () => {
      const items = [...(factory?.tracker.currentWidget?.selectedItems() ?? [])];
      return items.map(item => item.path).filter(isProfile);
    };
    app.commands.addCommand(COMPARE_FILES, {
      label: 'Compare profiles',
      icon: profileIcon,
      isEnabled: () => selected().length === 2,
      execute: () => compare(selected())
    });
    const selector = '.jp-DirListing-item[data-file-type="ioscope"]';
    app.contextMenu.addItem({ command: COMPARE_FILES, selector, rank: 4 });
  }
};

export default [plugin, settings, live, files];
