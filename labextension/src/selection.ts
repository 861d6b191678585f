/** A part of the run that the reader chose on the timeline, and what was recorded in it. */

import type { ISpans } from './payload';

/** Stretches [from, to) of `ISpans`. */
export interface ISpan {
  from: number;
  to: number;
}

type Listener = (span: ISpan | null) => void;

/** What is selected now; null is the whole run. Every section that can follow listens. */
export class Selection {
  constructor(readonly count: number) {}

  get span(): ISpan | null {
    return this.current;
  }

  /** Select some stretches; all of them, or none, is the whole run. */
  set(span: ISpan | null): void {
    const next = span && this.within(span);
    if (next?.from !== this.current?.from || next?.to !== this.current?.to) {
      this.current = next;
      this.listeners.forEach(listener => listener(next));
    }
  }

  onChange(listener: Listener): void {
    this.listeners.push(listener);
  }

  private within(span: ISpan): ISpan | null {
    const from = Math.max(0, Math.min(span.from, this.count));
    const to = Math.max(from, Math.min(span.to, this.count));
    return from === to || to - from === this.count ? null : { from, to };
  }

  private current: ISpan | null = null;
  private readonly listeners: Listener[] = [];
}

/** "3 0 12" as numbers; what is none counts as 0. */
export function unpacked(text: string): number[] {
  return text.split(' ').map(word => Number(word) || 0);
}

/** The sum of what lies in the selection; of all without one. */
export function summed(values: number[], span: ISpan | null): number {
  const [from, to] = span ? [span.from, span.to] : [0, values.length];
  let total = 0;
  for (let index = from; index < to; index++) {
    total += values[index] ?? 0;
  }
  return total;
}

/** `3.20 s – 5.10 s`. */
export function spanText(spans: ISpans, span: ISpan | null): string {
  return span ? `${spans.marks[span.from]} – ${spans.marks[span.to]}` : 'the whole run';
}
