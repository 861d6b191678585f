import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { IReport, ISpans } from '../src/payload';
import { readReport } from '../src/read';
import { IReportView, renderReport } from '../src/report';
import { Selection, summed, unpacked } from '../src/selection';
import fixture from './fixtures/report.json';
import { buttonCalled, fresh, openPage } from './page';

const report = fixture as unknown as IReport;
const spans: ISpans = {
  marks: ['0 s', '1 s', '2 s', '3 s', '4 s'],
  seconds: 1,
  rows: report.bars.map((bar, index) => ({
    parts: index
      ? bar.parts.map((part, at) => ({ name: part.name, times: at ? '0 0 0 0' : '1000 1000 1000 1000' }))
      : [
          { name: 'step', times: '1000 0 500 500' },
          { name: 'idle', times: '0 1000 500 500' }
        ]
  })),
  batches: '1 2 3 4',
  samples: '10 20 30 40',
  waits: { edges: ['1 ms', '2 ms', '4 ms'], counts: ['1 0 3 0', '0 2 0 4'] }
};
let page: ReturnType<typeof openPage>;
let view: IReportView;

beforeEach(() => {
  page = openPage();
  view = renderReport(page.root, { ...fresh(report), spans });
});

afterEach(() => {
  view.dispose();
  page.close();
});

function press(which: 'start' | 'end', ...keys: string[]): void {
  const slider = page.root.querySelector<HTMLElement>(`[role=slider][aria-label^=${which}]`)!;
  const { KeyboardEvent } = document.defaultView!;
  for (const key of keys) {
    slider.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  }
}

function words(selector: string): string {
  return page.root.querySelector(selector)?.textContent ?? '';
}

function consumer(): string {
  return page.root.querySelector('.ioscope-track')?.getAttribute('aria-label') ?? '';
}

describe('a part of the run', () => {
  test('is chosen by keys, and the bars show its sums', () => {
    press('end', 'PageDown'); // as far as there is: one stretch stays
    assert.match(words('.ioscope-brush-line'), /Selected: 0 s – 1 s/);
    assert.match(consumer(), /100 %/);
    press('end', 'ArrowRight');
    assert.match(consumer(), /50 %.*50 %/);
    assert.match(words('.ioscope-bars > .ioscope-note'), /0 s – 2 s/);
  });

  test('says how many batches arrived in it, and how fast', () => {
    assert.match(words('.ioscope-batches [role=status]'), /^10 batches, 100 samples, 25 samples\/s in the whole run/);
    press('start', 'ArrowRight', 'ArrowRight');
    assert.match(words('.ioscope-batches [role=status]'), /^7 batches, 70 samples, 35 samples\/s in 2 s – 4 s/);
  });

  test('ends with Escape, with the button, and where it is the whole run', () => {
    const whole = consumer();
    const back = [
      () => press('start', 'Escape'),
      () => buttonCalled(page.root, 'Whole run').click(),
      () => press('start', 'Home')
    ];
    for (const end of back) {
      press('start', 'ArrowRight');
      assert.notEqual(consumer(), whole);
      end();
      assert.equal(consumer(), whole);
    }
  });

  test('hides the outliers that lie outside of it', () => {
    const rows = () => [...page.root.querySelectorAll<HTMLElement>('.ioscope-outlier-table tbody tr')];
    assert.ok(rows().every(row => !row.hidden));
    const { x0 } = report.outliers.rows[0];
    press(x0 < 0.5 ? 'start' : 'end', ...Array(3).fill(x0 < 0.5 ? 'ArrowRight' : 'ArrowLeft'));
    assert.ok(rows()[0].hidden);
  });

  test('is not offered by reports of older versions', () => {
    view.show(fresh(report));
    assert.equal(page.root.querySelector('[role=slider]'), null);
  });
});

test('a damaged part of the spans is named and the rest is drawn', () => {
  const { report: read, parts } = readReport({ ...fresh(report), spans: { ...spans, marks: [] } });
  assert.equal(read?.spans, undefined);
  assert.match(parts.join(), /spans/);
});

test('sums are those of the stretches in the selection', () => {
  const selection = new Selection(4);
  const seen: unknown[] = [];
  selection.onChange(span => seen.push(span));
  selection.set({ from: 1, to: 9 });
  assert.deepEqual(selection.span, { from: 1, to: 4 });
  assert.equal(summed(unpacked('1 2 3 4'), selection.span), 9);
  selection.set({ from: 1, to: 4 });
  selection.set({ from: 0, to: 4 });
  assert.deepEqual(seen, [{ from: 1, to: 4 }, null]);
  assert.equal(summed(unpacked('1 x 3'), null), 4);
});
