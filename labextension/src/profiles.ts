/** Profiles that lie in the outputs of open notebooks: they need neither kernel nor file. */

import type { CodeCell } from '@jupyterlab/cells';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { MIME } from './payload';
import { readReport } from './read';

const MOST = 20;

export interface IFound {
  /** what a person calls it: its label or its headline */
  name: string;
  /** the notebook and the cell */
  where: string;
  payload: unknown;
  /** show it in its notebook; absent where it came from a file */
  reveal?: () => void;
}

/** The newest last in each notebook; at most `MOST` of them, those of `tracker`'s last notebooks. */
export function profilesOf(tracker: INotebookTracker): IFound[] {
  const found: IFound[] = [];
  tracker.forEach(panel => found.push(...inNotebook(panel)));
  return found.slice(-MOST);
}

function inNotebook(panel: NotebookPanel): IFound[] {
  const found: IFound[] = [];
  panel.content.widgets.forEach((cell, index) => {
    if (cell.model.type !== 'code') {
      return;
    }
    const { outputs } = (cell as CodeCell).model;
    for (let i = 0; i < outputs.length; i++) {
      const payload: unknown = outputs.get(i).data[MIME];
      const made = payload === undefined ? null : entry(payload, panel, index);
      if (made) {
        found.push(made);
      }
    }
  });
  return found;
}

function entry(payload: unknown, panel: NotebookPanel, index: number): IFound | null {
  const { report } = readReport(payload);
  if (!report) {
    return null;
  }
  const cell = panel.content.widgets[index] as CodeCell;
  const count = cell.model.executionCount;
  const reveal = () => {
    panel.content.activeCellIndex = panel.content.widgets.indexOf(cell);
    cell.node.scrollIntoView({ block: 'start' });
  };
  return {
    name: report.label || report.headline,
    where: `${panel.title.label} ${count === null ? 'not run' : `In [${count}]`}`,
    payload,
    reveal
  };
}
