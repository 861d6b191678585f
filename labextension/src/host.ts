import type { Command } from './payload';

/** Whether the report can act: on a kernel that knows it, not yet, or not at all. */
export interface ILink {
  state: 'live' | 'connecting' | 'none';
  /** why it cannot act, and what would help; shown beside the disabled buttons */
  note: string;
  send?: (command: Command) => void;
}

/** What the report may ask of the page that it is shown in. */
export interface IHost {
  /** put code into a new cell below the report; absent where there are no cells */
  insertCode?: (code: string) => void;
  /** show a line of the cell that ran as `In [cell]`; resolves to what hindered it, or '' */
  goToCell?: (cell: number, line: number) => Promise<string>;
}

export const NO_KERNEL: ILink = {
  state: 'none',
  note: 'To try a fix, run the cell again: this report has no running kernel.'
};

export const CONNECTING: ILink = { state: 'connecting', note: 'Waiting for the kernel …' };
