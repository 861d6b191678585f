/** Draws reports in outputs and in files. Works without a kernel, and in notebooks nobody has trusted. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
import { Disposable } from './disposables';
import { make } from './dom';
import { reportInFile } from './file';
import type { IHost } from './host';
import { MIME } from './payload';
import { IReportView, renderReport } from './report';

/** Before HTML and images, and before the widget view (-10): see `createRenderer` in notebook.ts. */
export const RANK = -20;

/** What a notebook adds: cells to insert into, and the kernel that made the report. */
export interface IContext {
  host(renderer: ReportRenderer): IHost;
  connect(reportId: string, view: IReportView): Disposable;
}

export class ReportRenderer extends Widget implements IRenderMime.IRenderer {
  constructor(private readonly context?: IContext) {
    super();
    this.addClass('ioscope-output');
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const data: unknown = model.data[MIME];
    if (typeof data === 'string') {
      this.showFile(data);
    } else {
      this.drawReport(data);
    }
    return Promise.resolve();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.connection?.dispose();
      this.view?.dispose();
      super.dispose();
    }
  }

  private showFile(content: string): void {
    const { payload, problem } = reportInFile(content);
    if (!problem) {
      this.drawReport(payload);
      return;
    }
    this.view?.dispose();
    this.view = null;
    const words = make('p', 'ioscope-file-problem', problem);
    words.setAttribute('role', 'alert');
    this.node.replaceChildren(words);
  }

  private drawReport(payload: unknown): void {
    if (this.view) {
      this.view.show(payload);
    } else {
      this.node.replaceChildren();
      this.view = renderReport(this.node, payload, this.context?.host(this));
    }
    this.connect(payload, this.view);
  }

  private connect(payload: unknown, view: IReportView): void {
    const id: unknown = (payload as Record<string, unknown> | null | undefined)?.reportId;
    if (id === this.connected || !this.context || typeof id !== 'string' || !id) {
      return;
    }
    this.connection?.dispose();
    this.connected = id;
    this.connection = this.context.connect(id, view);
  }

  private view: IReportView | null = null;
  private connection: Disposable | null = null;
  private connected: string | null = null;
}

const extension: IRenderMime.IExtension = {
  id: 'jupyter-ioscope:mime',
  rendererFactory: {
    safe: true,
    mimeTypes: [MIME],
    createRenderer: () => new ReportRenderer()
  },
  rank: RANK,
  dataType: 'string',
  fileTypes: [
    {
      name: 'ioscope',
      displayName: 'ioscope profile',
      mimeTypes: [MIME],
      extensions: ['.ioscope.json'],
      fileFormat: 'text'
    }
  ],
  documentWidgetFactoryOptions: {
    name: 'ioscope report',
    primaryFileType: 'ioscope',
    fileTypes: ['ioscope'],
    defaultFor: ['ioscope']
  }
};

export default extension;
