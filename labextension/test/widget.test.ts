import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Command, IReport } from '../src/payload';
import widget from '../src/widget';
import fixture from './fixtures/report.json';
import { buttonCalled, fresh, openPage } from './page';

const report = fixture as unknown as IReport;
let page: ReturnType<typeof openPage>;

beforeEach(() => {
  page = openPage();
});

afterEach(() => page.close());

class FakeModel {
  values: Record<string, unknown> = { report: fresh(report), progress: {}, comparisons: [] };
  handlers: [string, () => void][] = [];
  sent: Command[] = [];

  get(name: string): unknown {
    return this.values[name];
  }

  set(name: string, value: unknown): void {
    this.values[name] = value;
    this.handlers.filter(([event]) => event === `change:${name}`).forEach(([, handle]) => handle());
  }

  on(event: string, handler: () => void): void {
    this.handlers.push([event, handler]);
  }

  off(event: string, handler: () => void): void {
    this.handlers = this.handlers.filter(([e, h]) => e !== event || h !== handler);
  }

  send(command: Command): void {
    this.sent.push(command);
  }
}

function show(): { model: FakeModel; el: HTMLElement; end: () => void } {
  const el = document.createElement('div');
  page.root.append(el);
  const model = new FakeModel();
  return { model, el, end: widget.render({ model, el }) };
}

describe('the widget', () => {
  test('brings its style along', () => {
    assert.match(show().el.querySelector('style')?.textContent ?? '', /\.ioscope-report/);
  });

  test('sends what is pressed and shows what comes back', () => {
    const { model, el } = show();
    buttonCalled(el, 'Run A/B').click();
    assert.deepEqual(model.sent, [{ cmd: 'run_ab', toggles: ['draft_decode'] }]);
    model.set('progress', { state: 'running', text: 'pair 2 of 9', fraction: 0.2 });
    assert.equal(el.querySelector('.ioscope-progress p')?.textContent, 'pair 2 of 9');
    model.set('comparisons', [...report.comparisons, ...report.comparisons]);
    assert.equal(el.querySelectorAll('.ioscope-comparison').length, 2);
  });

  test('two at once do not disturb each other', () => {
    const one = show();
    const other = show();
    buttonCalled(one.el, 'Run A/B').click();
    assert.equal(other.model.sent.length, 0);
    assert.equal(buttonCalled(other.el, 'Run A/B').disabled, false);
    const ids = [...page.root.querySelectorAll('[id]')].map(element => element.id);
    assert.equal(new Set(ids).size, ids.length);
    one.end();
    assert.ok(other.el.querySelector('.ioscope-headline'));
  });

  test('leaves neither elements nor listeners', () => {
    const { model, el, end } = show();
    end();
    assert.equal(el.childElementCount, 0);
    assert.deepEqual(model.handlers, []);
  });
});
