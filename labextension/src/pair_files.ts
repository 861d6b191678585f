/** Two profile files side by side: chosen in the file browser, or one dropped onto the other. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { Drag } from '@lumino/dragdrop';
import { Disposable } from './disposables';
import { reportInFile } from './file';
import type { ISide } from './pair';

const ENDING = '.ioscope.json';
const PATHS = 'application/x-jupyter-icontents';

export function isProfile(path: unknown): path is string {
  return typeof path === 'string' && path.endsWith(ENDING);
}

/** Reads both and shows them; a file that cannot be read is said where the user looks. */
export async function pairOfFiles(app: JupyterFrontEnd, paths: string[]): Promise<ISide[] | null> {
  try {
    return await Promise.all(paths.map(path => side(app, path)));
  } catch (error) {
    Notification.error(`ioscope: ${error instanceof Error ? error.message : String(error)}`, {
      autoClose: false
    });
    return null;
  }
}

async function side(app: JupyterFrontEnd, path: string): Promise<ISide> {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const options = { type: 'file', format: 'text', content: true } as const;
  const { content } = await app.serviceManager.contents.get(path, options);
  const { payload, problem } = reportInFile(String(content));
  if (problem) {
    throw new Error(`${name}: ${problem}`);
  }
  return { name, payload };
}

/**
 * A profile file dropped onto an open one. Caught on the way down: further in, the page's own area would
 * take the drop and open the file.
 */
export class ProfileDrops implements Disposable {
  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly compare: (paths: string[]) => void
  ) {
    for (const [type, handler] of Object.entries(this.handlers)) {
      app.shell.node.addEventListener(type, handler, true);
    }
  }

  dispose(): void {
    for (const [type, handler] of Object.entries(this.handlers)) {
      this.app.shell.node.removeEventListener(type, handler, true);
    }
  }

  private over(event: Event): void {
    if (this.pair(event as Drag.Event)) {
      event.preventDefault();
      event.stopPropagation();
      (event as Drag.Event).dropAction = (event as Drag.Event).proposedAction;
    }
  }

  private drop(event: Event): void {
    const pair = this.pair(event as Drag.Event);
    if (pair) {
      this.over(event);
      this.compare(pair);
    }
  }

  /** The two files, where this is a drop of profiles onto a profile. */
  private pair(event: Drag.Event): string[] | null {
    const target = event.target as Element | null;
    const given: unknown = event.mimeData.hasData(PATHS) ? event.mimeData.getData(PATHS) : null;
    if (!target?.closest('.jp-MimeDocument') || !Array.isArray(given) || !given.every(isProfile)) {
      return null;
    }
    const onto = this.pathAt(target);
    const pair = given.length === 1 ? [onto, given[0] as string] : (given as string[]);
    return pair.length === 2 && pair.every(isProfile) && pair[0] !== pair[1] ? pair : null;
  }

  private pathAt(target: Element): unknown {
    for (const widget of this.app.shell.widgets('main')) {
      if (widget.node.contains(target)) {
        return (widget as { context?: { path?: unknown } }).context?.path;
      }
    }
    return null;
  }

  private readonly handlers: Record<string, (event: Event) => void> = {
    'lm-dragenter': event => this.over(event),
    'lm-dragover': event => this.over(event),
    'lm-drop': event => this.drop(event)
  };
}
