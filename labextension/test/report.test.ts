import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { IReport } from '../src/payload';
import { readReport } from '../src/read';
import { renderReport } from '../src/report';
import fixture from './fixtures/report.json';
import { fresh, openPage } from './page';

const report = fixture as unknown as IReport;
let page: ReturnType<typeof openPage>;

beforeEach(() => {
  page = openPage();
});

afterEach(() => page.close());

/** The report with `changes` in it, drawn. */
function drawn(changes: Record<string, unknown> = {}): HTMLElement {
  renderReport(page.root, { ...fresh(report), ...changes });
  return page.root;
}

describe('a report shows', () => {
  test('every text that it carries', () => {
    const words = drawn().textContent ?? '';
    const expected = [
      report.headline,
      report.detail,
      report.cost,
      report.variable,
      report.flameSource,
      ...report.figures.flatMap(one => [one.value, one.label]),
      ...report.bars.map(one => one.who),
      ...report.legend.map(one => one.label),
      ...report.ceilings.flatMap(one => [one.label, one.text, one.how]),
      ...report.findings.flatMap(one => [one.title, one.share, one.cost, one.advice, one.where]),
      ...report.findings.flatMap(one => one.evidence),
      ...report.toggles.flatMap(one => [one.title, one.refusal || one.effect, one.predicted]),
      ...report.comparisons.flatMap(one => [one.headline, ...one.lines, one.code, ...one.notes]),
      ...report.comparisons.flatMap(one => one.how ?? []),
      ...report.timeline.tracks.flatMap(one => [one.label, one.value]),
      ...report.flames.map(one => one.label),
      ...report.notMeasured.flatMap(one => [one.what, one.reason]),
      report.tier,
      report.cores,
      report.outliers.summary,
      ...report.outliers.stalls,
      ...report.outliers.rows.flatMap(one => [one.batch, one.when, one.time, one.usual, one.cause]),
      ...report.phases.flatMap(one => [one.label, one.perBatch, one.share, one.cpu]),
      ...report.block!.flatMap(one => [one.name, one.requests, one.median, one.p999, one.who])
    ];
    assert.deepEqual(
      expected.filter(text => !words.includes(text)),
      []
    );
  });

  test('a search as a grid that can be read without its colours', () => {
    const cell = { text: '380', title: '4 workers: timed 380', level: 0.95, timed: true, best: true };
    const none = { text: '', title: '', level: -1, timed: false, best: false };
    const grid = {
      corner: 'ahead',
      columns: ['2', '4'],
      rows: [{ label: '2', cells: [none, cell] }]
    };
    const search = { ...report.comparisons[0], arms: [], dots: [], grid };
    const table = drawn({ comparisons: [search] }).querySelector('.ioscope-grid')!;
    const cells = [...table.querySelectorAll('td')];
    assert.deepEqual(cells.map(one => one.textContent), ['', '380']);
    assert.equal(cells[1].className, 'ioscope-timed ioscope-best');
    assert.equal(cells[1].title, '4 workers: timed 380');
    const damaged = { ...search, grid: { ...grid, columns: ['2'] } };
    const { parts } = readReport({ ...fresh(report), comparisons: [damaged] });
    assert.match(parts.join(), /comparisons .*differ in length/);
  });

  test('without finding anything wrong with it', () => {
    assert.deepEqual(readReport(fresh(report)).parts, []);
  });

  test('each part of time as wide as its fraction', () => {
    const pieces = [...drawn().querySelectorAll<HTMLElement>('.ioscope-track')[1].children];
    const widths = pieces.map(piece => parseFloat((piece as HTMLElement).style.width) / 100);
    assert.deepEqual(
      widths,
      report.bars[1].parts.map(part => part.fraction)
    );
  });

  test('a mark for each outlier at its place, with its words for eyes and readers', () => {
    const marks = [...drawn().querySelectorAll<HTMLElement>('.ioscope-mark')];
    assert.equal(marks.length, report.outliers.rows.length);
    marks.forEach((mark, index) => {
      const { x0, title } = report.outliers.rows[index];
      assert.ok(Math.abs(parseFloat(mark.style.left) / 100 - x0) < 1e-4);
      assert.equal(mark.title, title);
      assert.equal(mark.getAttribute('aria-label'), title);
      assert.equal(mark.tabIndex, 0);
    });
    assert.equal(page.root.querySelectorAll('.ioscope-mark-line').length, marks.length);
  });

  test('the timeline of a report from before there were outliers', () => {
    const root = drawn({ outliers: undefined, phases: undefined, tier: undefined, cores: undefined });
    assert.equal(root.querySelectorAll('.ioscope-mark').length, 0);
    assert.ok(root.querySelector('.ioscope-spark'));
    assert.doesNotMatch(root.textContent ?? '', /could not be read/);
  });

  test('what would tell two causes apart, only when they are not told apart', () => {
    const wouldSeparate = 'A longer run would tell.';
    assert.ok(drawn({ separated: false, wouldSeparate }).textContent?.includes(wouldSeparate));
    page.root.replaceChildren();
    assert.ok(!drawn({ separated: true, wouldSeparate }).textContent?.includes(wouldSeparate));
  });

  test('nothing for sections that it does not have', () => {
    const empty = { bars: [], ceilings: [], toggles: [], findings: [], flames: [], comparisons: [] };
    const root = drawn({ ...empty, timeline: { tracks: [], start: '', end: '' } });
    assert.equal(root.querySelectorAll('div.ioscope-section:not(.ioscope-head)').length, 0);
    assert.ok(root.textContent?.includes(report.headline));
  });
});

describe('hostile text stays text', () => {
  const hostile = '<img src=x onerror=alert(1)><script>alert(2)</script>"\'&amp;';

  /** Every text of a report replaced. */
  function poisoned(value: unknown, key = ''): unknown {
    if (typeof value === 'string') {
      return ['verdict', 'arm'].includes(key) ? value : hostile;
    }
    if (Array.isArray(value)) {
      return value.map(item => poisoned(item, key));
    }
    if (typeof value === 'object' && value !== null) {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, poisoned(v, k)]));
    }
    return value;
  }

  test('in every field', () => {
    renderReport(page.root, poisoned(report), { insertCode: () => undefined });
    assert.equal(page.root.querySelectorAll('img, script, iframe, a').length, 0);
    assert.ok(page.root.querySelector('.ioscope-headline')?.textContent?.includes(hostile));
    for (const element of page.root.querySelectorAll('*')) {
      const handlers = [...element.attributes].filter(one => one.name.startsWith('on'));
      assert.deepEqual(handlers, []);
    }
  });

  test('in progress and in new comparisons', () => {
    const view = renderReport(page.root, fresh(report));
    view.setProgress({ state: 'running', text: hostile, fraction: 0.5 });
    view.setComparisons(poisoned(report.comparisons));
    assert.equal(page.root.querySelectorAll('img, script').length, 0);
    assert.equal(page.root.querySelector('.ioscope-progress p')?.textContent, hostile);
  });
});

describe('a payload that is not a report', () => {
  const nothing: unknown[] = [undefined, null, 7, 'text', [], [1, 2]];

  for (const payload of nothing) {
    test(`is answered with a sentence: ${JSON.stringify(payload)}`, () => {
      renderReport(page.root, payload);
      assert.match(page.root.textContent ?? '', /holds no ioscope report/);
    });
  }

  test('of another format names both versions and keeps the headline', () => {
    const words = drawn({ format: 9, version: '3.1.4' }).textContent ?? '';
    assert.match(words, /format 9 .* ioscope 3\.1\.4.* draws format 1/);
    assert.ok(words.includes(report.headline));
  });

  test('without a headline is called damaged', () => {
    assert.match(drawn({ headline: 12 }).textContent ?? '', /damaged/);
  });
});

describe('a damaged part', () => {
  const damage: Record<string, unknown> = {
    bars: 'text',
    figures: [null],
    ceilings: [{ label: 'x', fraction: 'wide' }],
    ceilingNow: { fraction: null },
    findings: [{ evidence: [1] }],
    toggles: { name: 1 },
    timeline: { tracks: [{ x: [0, 1], y: [0] }] },
    flames: [{ ...report.flames[0], x0: [0] }],
    comparisons: [{ arms: 3 }],
    notMeasured: 5,
    detail: {},
    phases: [{ label: {} }],
    outliers: { rows: [{ x0: 'left' }] }
  };

  for (const [part, value] of Object.entries(damage)) {
    test(`is left out and named, the rest is drawn: ${part}`, () => {
      const words = drawn({ [part]: value }).textContent ?? '';
      assert.match(words, new RegExp(`could not be read: ${part}`));
      assert.ok(words.includes(report.headline) && words.includes(report.cost));
    });
  }

  test('of a flame graph leaves the other graphs', () => {
    const flames = fresh(report.flames);
    flames[0].depth[1] = 7;
    const root = drawn({ flames });
    assert.match(root.querySelector('.ioscope-flame-box')?.textContent ?? '', /damaged/);
    root.querySelectorAll<HTMLElement>('[role=tab]')[1].click();
    assert.ok(root.querySelector('.ioscope-flame-box canvas'));
  });

  test('draws numbers outside of their range at the nearest end', () => {
    const bars = [{ who: 'w', title: '', parts: [{ ...report.bars[0].parts[0], fraction: 1e9 }] }];
    assert.equal(drawn({ bars }).querySelector<HTMLElement>('.ioscope-piece')?.style.width, '100%');
  });
});

describe('columns as texts', () => {
  const packed = (row: Record<string, unknown>): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(row).map(([key, value]) => {
        const list = Array.isArray(value) && value.length > 1 ? value : null;
        const text = list?.join(typeof list[0] === 'number' ? ' ' : '\n');
        return [key, text ?? value];
      })
    );

  test('are read like lists', () => {
    const given = fresh(report);
    const flames = given.flames.map(flame => packed(flame as unknown as Record<string, unknown>));
    const tracks = given.timeline.tracks.map(row => packed(row as unknown as Record<string, unknown>));
    const { report: read, parts } = readReport({
      ...given,
      flames,
      timeline: { ...given.timeline, tracks }
    });
    assert.deepEqual(parts, []);
    assert.deepEqual(read?.flames, readReport(fresh(report)).report?.flames);
    assert.deepEqual(read?.timeline, readReport(fresh(report)).report?.timeline);
  });

  test('that hold no numbers are damaged', () => {
    const [first, ...others] = fresh(report).flames;
    const { parts } = readReport({ ...fresh(report), flames: [{ ...first, x0: '0 x 1' }, ...others] });
    assert.match(parts.join(), /flames .*x0\[1\] is not a number/);
  });
});
