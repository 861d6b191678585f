import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { toColumns } from '../src/flame/columns';
import type { IColumns } from '../src/flame/columns';
import { compareFlames } from '../src/flame/difference';
import { foldedText } from '../src/flame/folded';
import { functionRows } from '../src/flame/functions';
import { NO_WISH, reshaped, statesOf, WAITING } from '../src/flame/reshape';
import type { IWish } from '../src/flame/reshape';
import { speedscopeText } from '../src/flame/speedscope';
import type { IFlame } from '../src/payload';

// by state: disk (own load -> library read), page fault (own labels), running (own load)
const flame: IFlame = {
  key: 'states',
  label: 'states',
  samples: 100,
  names: ['all', 'disk', 'fault', 'running', 'load', 'read', 'labels'],
  details: ['', 'waits', 'waits', 'on a core', 'data.py', 'lib.py', 'data.py'],
  kinds: [3, 3, 3, 4, 1, 0, 1],
  name: [0, 1, 3, 2, 4, 4, 6, 5],
  depth: [0, 1, 1, 1, 2, 2, 2, 3],
  x0: [0, 0, 0.5, 0.8, 0, 0.5, 0.8, 0],
  x1: [1, 0.5, 0.8, 1, 0.5, 0.8, 1, 0.4],
  over: ['', '', '0:15 1:15', '', '0:10', '', '1:20', '0:40']
};
const columns = toColumns(flame);

function shaped(wish: Partial<IWish>): IColumns {
  return reshaped(columns, { ...NO_WISH, ...wish })!;
}

/** `name depth from-to` of every frame, in hundredths. */
function shape(of: IColumns): string[] {
  return [...of.name].map(
    (name, i) =>
      `${of.names[name]} ${of.depth[i]} ${Math.round(of.x0[i] * 100)}-${Math.round(of.x1[i] * 100)}`
  );
}

describe('a flame graph looked at otherwise', () => {
  test('is itself when nothing is wished for', () => {
    assert.equal(reshaped(columns, NO_WISH), columns);
  });

  test('of one state shows only what happened in it, and fills the width', () => {
    assert.deepEqual(shape(shaped({ state: 'disk' })), ['all 0 0-100', 'load 1 0-100', 'read 2 0-80']);
    assert.equal(shaped({ state: 'disk' }).samples, 50);
  });

  test('of all waiting leaves out the states in which nothing is waited for', () => {
    const names = shape(shaped({ state: WAITING })).filter(text => text.includes(' 1 '));
    assert.deepEqual(names, ['disk 1 0-71', 'fault 1 71-100']);
  });

  test('inverted begins with who spends the time, below its state', () => {
    assert.deepEqual(shape(shaped({ inverted: true, state: 'disk' })), [
      'all 0 0-100',
      'read 1 0-80',
      'load 1 80-100',
      'load 2 0-80'
    ]);
  });

  test('of own code keeps what the own code calls, no deeper', () => {
    const deeper: IFlame = {
      ...flame,
      name: [0, 4, 5, 5],
      depth: [0, 1, 2, 3],
      x0: [0, 0, 0, 0],
      x1: [1, 1, 1, 1],
      over: undefined
    };
    const own = reshaped(toColumns(deeper), { ...NO_WISH, own: true })!;
    assert.deepEqual(shape(own), ['all 0 0-100', 'load 1 0-100', 'read 2 0-100']);
  });

  test('of a part of the run weighs what lay in it', () => {
    const late = shaped({ span: { from: 1, to: 2 } });
    assert.deepEqual(shape(late).slice(0, 3), ['all 0 0-100', 'fault 1 0-57', 'running 1 57-100']);
    assert.equal(reshaped(columns, { ...NO_WISH, span: { from: 7, to: 9 } }), null);
  });

  test('of samples without times is the whole run whatever is selected', () => {
    const timeless = toColumns({ ...flame, over: undefined });
    assert.equal(reshaped(timeless, { ...NO_WISH, span: { from: 0, to: 1 } }), timeless);
  });

  test('names the states it can be asked for', () => {
    assert.deepEqual(
      statesOf(columns).map(one => `${one.name} ${one.waiting}`),
      ['disk true', 'running false', 'fault true']
    );
  });
});

describe('the same data', () => {
  test('as rows: what a function holds itself, and with what it calls', () => {
    const rows = functionRows(columns).map(row => [
      columns.names[row.name],
      Math.round(row.self * 100),
      Math.round(row.total * 100)
    ]);
    assert.deepEqual(rows[0], ['load', 40, 80]);
    assert.deepEqual(rows.find(row => row[0] === 'read'), ['read', 40, 40]);
  });

  test('as rows counts a function that calls itself once', () => {
    const twice: IFlame = { ...flame, name: [0, 4, 4], depth: [0, 1, 2], x0: [0, 0, 0], x1: [1, 1, 0.5], over: undefined };
    assert.deepEqual(functionRows(toColumns(twice)).map(row => [row.self, row.total]), [[1, 1]]);
  });

  test('as folded stacks that add up to all samples', () => {
    const lines = foldedText(columns).trim().split('\n');
    assert.ok(lines.includes('all;disk;load;read 40'));
    const total = lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
    assert.equal(total, 100);
  });

  test('as a speedscope file whose weights add up', () => {
    const [profile] = JSON.parse(speedscopeText([flame], 'x')).profiles;
    assert.equal(profile.endValue, 100);
    assert.equal(profile.samples.length, profile.weights.length);
  });
});

describe('A against B', () => {
  const path = (names: string[], x1: number[]): IFlame => ({
    ...flame,
    names: ['all', ...names],
    details: ['', ...names],
    kinds: [3, ...names.map(() => 1)],
    name: [0, ...names.map((_, i) => i + 1)],
    depth: [0, ...names.map(() => 1)],
    x0: [0, ...x1.map((_, i) => (i ? x1[i - 1] : 0))],
    x1: [1, ...x1],
    over: undefined
  });
  const both = compareFlames(path(['decode', 'other'], [0.8, 1]), path(['resize', 'other'], [0.6, 1]));

  test('is as wide as the mean of both and knows the change', () => {
    const found = new Map(both.name.map((name, i) => [both.names[name], i]));
    const decode = found.get('decode')!;
    assert.ok(Math.abs(both.x1[decode] - both.x0[decode] - 0.4) < 1e-9);
    assert.ok(Math.abs(both.delta![decode] + 0.8) < 1e-9);
    assert.ok(Math.abs(both.delta![found.get('other')!] - 0.2) < 1e-9);
  });

  test('can be drawn and looked at otherwise like any graph', () => {
    const inverted = reshaped(toColumns(both), { ...NO_WISH, inverted: true })!;
    const sum = [...inverted.delta!].slice(1).reduce((total, value) => total + value, 0);
    assert.ok(Math.abs(sum) < 1e-9);
  });
});
