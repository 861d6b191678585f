import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Command, IReport } from '../src/payload';
import { IReportView, renderReport } from '../src/report';
import fixture from './fixtures/report.json';
import { buttonCalled, fresh, openPage } from './page';

const report = fixture as unknown as IReport;
let page: ReturnType<typeof openPage>;
let view: IReportView;
let sent: Command[];
let inserted: string[];

beforeEach(() => {
  page = openPage();
  sent = [];
  inserted = [];
  view = renderReport(page.root, fresh(report), { insertCode: code => void inserted.push(code) });
});

afterEach(() => page.close());

function goLive(): void {
  view.setLink({ state: 'live', note: '', send: command => void sent.push(command) });
}

function box(name: string): HTMLInputElement {
  return page.root.querySelector<HTMLInputElement>(`[data-toggle=${name}]`)!;
}

describe('without a kernel', () => {
  test('nothing can be run, and it says what to do', () => {
    assert.equal(buttonCalled(page.root, 'Run A/B').disabled, true);
    assert.match(page.root.textContent ?? '', /run the cell again/);
  });

  test('code can still be taken', () => {
    buttonCalled(page.root.querySelector('.ioscope-comparison')!, 'Insert code').click();
    assert.deepEqual(inserted, [report.comparisons[0].code]);
  });
});

describe('with a kernel', () => {
  beforeEach(goLive);

  test('the best suggestion is ticked, and one that is refused cannot be', () => {
    assert.equal(box('draft_decode').checked, true);
    assert.equal(box('workers').checked, false);
    assert.equal(box('persistent_workers').disabled, true);
  });

  test('Run A/B sends what is ticked, in the order of the report', () => {
    box('workers').click();
    buttonCalled(page.root, 'Run A/B').click();
    assert.deepEqual(sent, [{ cmd: 'run_ab', toggles: ['draft_decode', 'workers'] }]);
  });

  test('the whole cell is run in trials when that is ticked, and offered where there is one', () => {
    assert.equal(page.root.textContent?.includes('Run my whole cell'), false);
    page.root.replaceChildren();
    const again = renderReport(page.root, fresh({ ...report, wholeCell: true }), {});
    again.setLink({ state: 'live', note: '', send: command => void sent.push(command) });
    page.root.querySelector<HTMLInputElement>('[id*=whole]')!.click();
    buttonCalled(page.root, 'Run A/B').click();
    const sentLast = sent[sent.length - 1];
    assert.deepEqual(sentLast, { cmd: 'run_ab', toggles: ['draft_decode'], wholeCell: true });
  });

  test('Tune needs no tick, and sends its command once', () => {
    buttonCalled(page.root, 'Tune workers').click();
    assert.deepEqual(sent, [{ cmd: 'tune' }]);
    assert.equal(buttonCalled(page.root, 'Tune workers').disabled, true);
    assert.equal(buttonCalled(page.root, 'Run A/B').disabled, true);
  });

  test('Run A/B needs a tick', () => {
    box('draft_decode').click();
    assert.equal(buttonCalled(page.root, 'Run A/B').disabled, true);
  });

  test('a running comparison can be cancelled once, and no second one started', () => {
    buttonCalled(page.root, 'Run A/B').click();
    assert.equal(buttonCalled(page.root, 'Run A/B').disabled, true);
    buttonCalled(page.root, 'Cancel').click();
    buttonCalled(page.root, 'Cancel').click();
    assert.deepEqual(sent.slice(1), [{ cmd: 'cancel' }]);
    view.setProgress({ state: 'cancelled', text: 'Cancelled.', fraction: -1 });
    assert.equal(buttonCalled(page.root, 'Run A/B').disabled, false);
    assert.equal(buttonCalled(page.root, 'Cancel').hidden, true);
  });

  test('progress says its fraction to screen readers, and none while it is unknown', () => {
    const bar = page.root.querySelector('[role=progressbar]')!;
    view.setProgress({ state: 'running', text: 'pair 3 of 12', fraction: 0.25 });
    assert.equal(bar.getAttribute('aria-valuenow'), '25');
    view.setProgress({ state: 'running', text: 'pilot', fraction: -1 });
    assert.equal(bar.getAttribute('aria-valuenow'), null);
  });

  test('Insert code takes the code of what is ticked', () => {
    box('workers').click();
    buttonCalled(page.root.querySelector('.ioscope-toggles')!, 'Insert code').click();
    for (const name of ['draft_decode', 'workers']) {
      assert.ok(inserted[0].includes(report.toggles.find(one => one.name === name)!.code!));
    }
  });

  test('the newest result comes first', () => {
    const second = { ...fresh(report.comparisons[0]), title: 'A/B: second' };
    view.setComparisons([report.comparisons[0], second]);
    const titles = [...page.root.querySelectorAll('.ioscope-comparison > h3')];
    assert.equal(titles[0].textContent, 'A/B: second');
  });

  test('comparisons that cannot be read leave the ones that are shown', () => {
    view.setComparisons('nonsense');
    assert.equal(page.root.querySelectorAll('.ioscope-comparison').length, 1);
  });

  test('a report that gained a result is not drawn again under the reader', () => {
    const headline = page.root.querySelector('.ioscope-headline');
    view.show({ ...fresh(report), comparisons: [...report.comparisons, ...report.comparisons] });
    assert.equal(page.root.querySelectorAll('.ioscope-comparison').length, 2);
    assert.equal(page.root.querySelector('.ioscope-headline'), headline);
  });

  test('ticks, the link and what runs outlive another payload', () => {
    box('workers').click();
    view.setProgress({ state: 'running', text: 'pair 1', fraction: 0.1 });
    view.show({ ...fresh(report), headline: 'Another.' });
    assert.equal(box('workers').checked, true);
    assert.equal(buttonCalled(page.root, 'Cancel').disabled, false);
  });

  test('after dispose nothing is left and nothing is sent', () => {
    const run = buttonCalled(page.root, 'Run A/B');
    view.dispose();
    run.click();
    assert.deepEqual(sent, []);
    assert.equal(page.root.childElementCount, 0);
  });
});
