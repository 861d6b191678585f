import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { IReport } from '../src/payload';
import { renderPair } from '../src/pair';
import fixture from './fixtures/report.json';
import { fresh, openPage } from './page';

const report = fixture as unknown as IReport;
let page: ReturnType<typeof openPage>;

beforeEach(() => {
  page = openPage();
});

afterEach(() => page.close());

function side(name: string, changes: object): { name: string; payload: unknown } {
  return { name, payload: { ...fresh(report), ...changes } };
}

describe('two profiles side by side', () => {
  test('show figures, shares and findings of both', () => {
    const figures = [{ value: '9 samples/s', label: 'steady, ± 1' }];
    renderPair(page.root, [side('old', { figures, cores: 'one core' }), side('new', { cores: 'two cores' })]);
    const text = page.root.textContent ?? '';
    for (const words of ['A: old', 'B: new', report.headline, report.findings[0].title]) {
      assert.ok(text.includes(words), words);
    }
    const steady = [...page.root.querySelectorAll('tr')].find(row =>
      row.textContent?.startsWith('steady')
    );
    assert.deepEqual(
      [...steady!.children].map(cell => cell.textContent),
      ['steady', '9 samples/s, ± 1', '214 samples/s, ± 6']
    );
    assert.ok(!text.includes('not in'));
    assert.ok(text.includes('A consumer') && text.includes('B worker 0'));
    assert.ok(text.includes('A: one core') && text.includes('B: two cores'));
    assert.match(text, /Orange takes a larger share of the time in B/);
  });

  test('give one row to one quantity, whatever was known of it', () => {
    const figures = (value: string, label: string, whole: string) => [
      { value, label, name: 'batches recorded', whole }
    ];
    const a = side('a', { figures: figures('50', 'batches in 5.9 s', '50 in 5.9 s') });
    const b = side('b', { figures: figures('1', 'batch in 31 s', '1 in 31 s') });
    renderPair(page.root, [a, b]);
    const rows = [...page.root.querySelectorAll('.ioscope-pair-table tbody tr')];
    const texts = rows.map(row => [...row.children].map(cell => cell.textContent));
    assert.deepEqual(texts, [['batches recorded', '50 in 5.9 s', '1 in 31 s']]);
  });

  test('mark what only one of them found', () => {
    renderPair(page.root, [side('old', {}), side('new', { findings: [] })]);
    const marks = page.root.querySelectorAll('.ioscope-pair-only');
    assert.equal(marks.length, report.findings.length);
    assert.equal(marks[0].textContent, ' not in B');
  });

  test('a side that cannot be read says why, and the other is named', () => {
    renderPair(page.root, [side('old', { format: 99 }), side('new', {})]);
    assert.match(page.root.querySelector('[role=alert]')?.textContent ?? '', /format 99/);
    assert.ok(page.root.textContent?.includes(report.headline));
  });

  test('what a profile says is text, whatever it looks like', () => {
    const hostile = '<img src=x onerror="attacked()">';
    renderPair(page.root, [side(hostile, { headline: hostile }), side('b', { headline: hostile })]);
    assert.equal(page.root.querySelectorAll('img').length, 0);
    assert.ok(page.root.textContent?.includes(hostile));
  });

  test('leave nothing behind', () => {
    renderPair(page.root, [side('a', {}), side('b', {})]).dispose();
    assert.equal(page.root.childElementCount, 0);
  });
});
