import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { Disposables } from '../src/disposables';
import { ILiveView, IRow, LiveLink, LiveState, readRows } from '../src/live_link';
import { LiveRows } from '../src/live_rows';
import { ProfileList } from '../src/profile_list';
import type { IFound } from '../src/profiles';
import { DEFAULTS, handOver, usualOf } from '../src/usual';
import { buttonCalled, openPage } from './page';

let page: ReturnType<typeof openPage>;

beforeEach(() => {
  page = openPage();
});

afterEach(() => page.close());

const CPU: IRow = { key: 'cpu', label: 'CPU', value: 1, text: '1.0 of 2 cores', most: null, why: '' };

function points(rows: LiveRows, key: string): string[] {
  const line = rows.element.querySelector(`[data-key=${key}] polyline`);
  return (line?.getAttribute('points') ?? '').split(' ').filter(Boolean);
}

describe('live rows', () => {
  test('keep two minutes', () => {
    const rows = new LiveRows();
    for (let second = 0; second < 200; second++) {
      rows.show([{ ...CPU, value: second % 7 }], second * 1000);
    }
    const kept = points(rows, 'cpu');
    assert.equal(kept.length, 121);
    assert.match(kept[kept.length - 1], /^100\.0,/);
    assert.match(kept[0], /^0\.0,/);
  });

  test('say what is missing and why, once for each reason', () => {
    const rows = new LiveRows();
    const missing = { ...CPU, value: null, text: '–', why: 'no right' };
    rows.show([missing, { ...missing, key: 'gpu', label: 'GPU' }], 0);
    assert.equal(rows.element.querySelector('.ioscope-live-why')?.textContent, 'CPU, GPU: no right');
    assert.deepEqual(points(rows, 'cpu'), []);
  });

  test('keep the curve of a cell that has ended, apart from that of the next one', () => {
    const rows = new LiveRows();
    const ended = { ...CPU, value: null, text: '–', why: 'no cell' };
    const curves = () =>
      [...rows.element.querySelectorAll('polyline')].map(one => one.getAttribute('points'));
    const missing = () => rows.element.querySelector('.ioscope-live-missing') !== null;
    rows.show([ended], 0);
    assert.ok(missing());
    [1, 2].forEach(second => rows.show([{ ...CPU, most: 4 }], 1000 * second));
    rows.show([ended], 3000);
    assert.deepEqual(curves(), ['98.3,17.5 99.2,17.5']); // on the scale that it had
    assert.equal(rows.element.querySelector('.ioscope-live-value')?.textContent, '–');
    assert.ok(!missing());
    rows.show([{ ...CPU, most: 4 }], 4000);
    assert.equal(curves().length, 2);
    rows.show([ended], 200_000);
    assert.deepEqual(curves(), []);
    assert.ok(missing());
  });

  test('texts stay texts', () => {
    const rows = new LiveRows();
    rows.show([{ ...CPU, label: '<img src=x>', text: '<b>1</b>', why: '<i>' }], 0);
    assert.equal(rows.element.querySelectorAll('img, b, i').length, 0);
  });

  test('a message that is none gives none', () => {
    for (const data of [null, 7, {}, { rows: 'x' }, { rows: [{ key: 'cpu', value: 'much' }] }]) {
      assert.deepEqual(readRows(data), []);
    }
    assert.deepEqual(readRows({ rows: [CPU] }), [CPU]);
  });
});

class FakeComm {
  isDisposed = false;
  sent: unknown[] = [];
  closed = false;
  onMsg: (message: unknown) => void = () => undefined;
  onClose: () => void = () => undefined;
  open(): void {}
  send(data: unknown): void {
    this.sent.push(data);
  }
  close(): void {
    this.closed = true;
  }
  says(rows: IRow[]): void {
    this.onMsg({ content: { data: { rows } } });
  }
}

class FakeSignal {
  slots: unknown[] = [];
  connect(slot: unknown): void {
    this.slots.push(slot);
  }
  disconnect(slot: unknown): void {
    this.slots = this.slots.filter(one => one !== slot);
  }
}

function linked(): { link: LiveLink; comms: FakeComm[]; states: LiveState[]; signals: FakeSignal[] } {
  const comms: FakeComm[] = [];
  const createComm = () => comms[comms.push(new FakeComm()) - 1];
  const signals = [new FakeSignal(), new FakeSignal()];
  const session = {
    kernelChanged: signals[0],
    statusChanged: signals[1],
    session: { kernel: { createComm } }
  };
  const states: LiveState[] = [];
  const view: ILiveView = { setState: state => states.push(state), setRows: () => undefined };
  (globalThis as unknown as { window: Window }).window.setInterval = (() => 1) as never;
  return { link: new LiveLink(session as never, view), comms, states, signals };
}

describe('the line to the kernel', () => {
  test('is live with the first readings and closed with the panel', () => {
    const { link, comms, states, signals } = linked();
    comms[0].says([CPU]);
    assert.deepEqual(states, ['waiting', 'live']);
    link.dispose();
    assert.ok(comms[0].closed);
    assert.ok(signals.every(signal => signal.slots.length === 0));
  });

  test('a kernel without ioscope is told apart, and asked again when told to', () => {
    const { link, comms, states } = linked();
    comms[0].onClose();
    assert.deepEqual(states, ['waiting', 'absent']);
    link.retry();
    assert.equal(comms.length, 2);
    link.retry(); // one question at a time
    assert.equal(comms.length, 2);
    link.dispose();
  });

  test('a kernel that took the page for gone is asked again', () => {
    const { link, comms, states } = linked();
    comms[0].says([CPU]);
    comms[0].onClose();
    comms[1].says([CPU]);
    assert.deepEqual(states, ['waiting', 'live', 'waiting', 'live']);
    link.dispose();
  });
});

describe('profiles to choose from', () => {
  const found = ['first', 'second', 'third'].map(
    (name): IFound => ({ name, where: 'a.ipynb', payload: {} })
  );

  test('two are compared, the older one as A; a third tick replaces the first', () => {
    const pairs: string[] = [];
    const life = new Disposables();
    const list = new ProfileList((a, b) => pairs.push(`${a.name} ${b.name}`), life);
    page.root.append(list.element);
    list.show(found);
    const compare = buttonCalled(page.root, 'Compare two');
    const boxes = [...page.root.querySelectorAll('input')]; // the newest first
    assert.ok(compare.disabled);
    for (const box of [boxes[2], boxes[0], boxes[1]]) {
      box.checked = true;
      box.dispatchEvent(new window.Event('change'));
    }
    assert.deepEqual(boxes.map(box => box.checked), [true, true, false]);
    compare.click();
    assert.deepEqual(pairs, ['second third']);
    life.dispose();
  });
});

describe('settings', () => {
  test('go to the kernel as Python that holds nothing but numbers and words of ours', () => {
    const code = handOver(usualOf({ rateHz: 50, stacks: false, liveLine: 'x', colours: "'" }));
    assert.ok(code.includes('{\\"rate_hz\\":50,\\"stacks\\":false,\\"live_line\\":true}'), code);
    assert.ok(!code.includes('\n'));
  });

  test('that are none are the defaults', () => {
    assert.deepEqual(usualOf({ rateHz: 'fast', stacks: null }), DEFAULTS);
  });
});
