import { Notification } from '@jupyterlab/apputils';
import type { ICodeCellModel } from '@jupyterlab/cells';
import { NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import { KernelLink } from './kernel_link';
import { withMagic } from './magic';
import { IContext, RANK, ReportRenderer } from './mime';
import { MIME } from './payload';

export const NOT_INSTALLED =
  'ioscope is not installed where this kernel runs: %pip install jupyter-ioscope, then try again.';

/** Draw this notebook's reports with what only a notebook has: its cells and its kernel. */
export function addRenderer(panel: NotebookPanel): void {
  const context: IContext = {
    host: renderer => ({
      insertCode: code => insertBelow(panel, renderer, code),
      goToCell: (cell, line) => goToCell(panel, cell, line)
    }),
    connect: (reportId, view) => new KernelLink(panel.sessionContext, reportId, view)
  };
  const factory = {
    safe: true,
    mimeTypes: [MIME],
    createRenderer: () => new ReportRenderer(context)
  };
  // The bundle also carries an anywidget (rank -10). Ours comes first: it needs no saved widget
  // state, and reaches the same kernel through a comm of its own.
  panel.content.rendermime.addFactory(factory, RANK - 1);
}

function insertBelow(panel: NotebookPanel, renderer: ReportRenderer, code: string): void {
  const notebook = panel.content;
  const index = notebook.widgets.findIndex(cell => cell.node.contains(renderer.node));
  if (index >= 0) {
    notebook.activeCellIndex = index;
  }
  NotebookActions.insertBelow(notebook);
  notebook.activeCell?.model.sharedModel.setSource(code);
}

/** The cell's prompt tells which one ran as `In [cell]`; its source may have been edited since. */
async function goToCell(panel: NotebookPanel, cell: number, line: number): Promise<string> {
  const notebook = panel.content;
  const index = notebook.widgets.findIndex(
    ({ model }) => model.type === 'code' && (model as ICodeCellModel).executionCount === cell
  );
  if (index < 0) {
    return `No cell of this notebook ran as In [${cell}] last.`;
  }
  notebook.activeCellIndex = index;
  await notebook.scrollToItem(index);
  const found = notebook.widgets[index];
  await found.ready;
  const { editor } = found;
  if (editor && line > 0) {
    editor.setCursorPosition({ line: Math.min(line, editor.lineCount) - 1, column: 0 });
    notebook.mode = 'edit';
  }
  return '';
}

/** Put the magic on the active cell, load it into the kernel if need be, and run the cell. */
export async function profileActiveCell(panel: NotebookPanel): Promise<void> {
  const cell = panel.content.activeCell;
  if (!cell || cell.model.type !== 'code') {
    return;
  }
  await panel.sessionContext.ready;
  const kernel = panel.sessionContext.session?.kernel;
  if (!kernel) {
    Notification.warning('This notebook has no kernel: choose one, then profile the cell.');
    return;
  }
  if (!(await loadMagic(kernel))) {
    Notification.error(NOT_INSTALLED, { autoClose: false });
    return;
  }
  cell.model.sharedModel.setSource(withMagic(cell.model.sharedModel.getSource()));
  panel.content.activeCellIndex = panel.content.widgets.indexOf(cell);
  await NotebookActions.run(panel.content, panel.sessionContext);
}

// loading it again does nothing; a module of that name that is not ours loads without an error
const LOAD = `get_ipython().run_line_magic('load_ext', 'ioscope')
assert get_ipython().find_cell_magic('ioscope')`;

/** Whether the kernel has ioscope, loaded now if need be. */
export async function loadMagic(kernel: Kernel.IKernelConnection): Promise<boolean> {
  const request = { code: LOAD, silent: true, store_history: false, stop_on_error: false };
  const reply = await kernel.requestExecute(request).done;
  return reply.content.status === 'ok';
}
