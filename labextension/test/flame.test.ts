import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { frameAt, neighbour, parentOf, toColumns, widestChild } from '../src/flame/columns';
import { draw, IScene, Pen, ROW_PX, shortened } from '../src/flame/draw';
import { search } from '../src/flame/search';
import { frameLines } from '../src/flame/words';
import type { IFlame } from '../src/payload';

/** root [0, 1]; a [0, 0.6], b [0.7, 1]; a calls a again [0, 0.2] and c [0.3, 0.6]. */
const flame: IFlame = {
  key: 'k',
  label: 'workers',
  samples: 200,
  names: ['root', 'a', 'b', 'c'],
  details: ['', 'In [4], line 12', 'x.py:3', 'y.py:9'],
  kinds: [3, 2, 0, 1],
  name: [0, 1, 2, 1, 3],
  depth: [0, 1, 1, 2, 2],
  x0: [0, 0, 0.7, 0, 0.3],
  x1: [1, 0.6, 1, 0.2, 0.6]
};

const look = {
  fills: [['library'], ['file'], ['cell'], ['root']],
  deltas: ['less', 'even', 'more'],
  match: 'match',
  ink: 'ink',
  focus: 'focus',
  font: 'normal',
  fontOwn: 'bold',
  characterPx: 7
};

class FakePen {
  fillStyle = '';
  strokeStyle = '';
  lineWidth = 0;
  font = '';
  textBaseline = '' as CanvasTextBaseline;
  rects: { fill: string; x: number; y: number; width: number }[] = [];
  texts: string[] = [];

  fillRect(x: number, y: number, width: number): void {
    this.rects.push({ fill: this.fillStyle, x, y, width });
  }

  fillText(text: string): void {
    this.texts.push(text);
  }

  strokeRect(): void {
    this.rects.push({ fill: this.strokeStyle, x: 0, y: 0, width: 0 });
  }
}

function sketch(changes: Partial<IScene> = {}): FakePen {
  const pen = new FakePen();
  const columns = toColumns(flame);
  const scene: IScene = { columns, view: [0, 1], width: 1000, look, matches: null, focus: -1 };
  draw(pen as unknown as Pen, { ...scene, ...changes });
  return pen;
}

describe('finding frames', () => {
  const columns = toColumns(flame);

  test('by depth and position, with gaps between frames', () => {
    assert.equal(frameAt(columns, 0, 0.999), 0);
    assert.equal(frameAt(columns, 1, 0.3), 1);
    assert.equal(frameAt(columns, 1, 0.65), -1);
    assert.equal(frameAt(columns, 1, 0.7), 2);
    assert.equal(frameAt(columns, 2, 0.25), -1);
    assert.equal(frameAt(columns, 2, 0.59), 4);
    assert.equal(frameAt(columns, 3, 0.5), -1);
    assert.equal(frameAt(columns, -1, 0.5), -1);
  });

  test('along the tree', () => {
    assert.equal(parentOf(columns, 4), 1);
    assert.equal(parentOf(columns, 0), -1);
    assert.equal(widestChild(columns, 1), 4);
    assert.equal(widestChild(columns, 2), -1);
    assert.equal(neighbour(columns, 1, 1), 2);
    assert.equal(neighbour(columns, 2, 1), -1);
  });

  test('says name, place and share', () => {
    assert.deepEqual(frameLines(columns, 1), [
      'a',
      'In [4], line 12',
      '60 % of the time, 120 of 200 samples'
    ]);
  });
});

describe('columns that cannot be searched are refused', () => {
  const broken: [string, Partial<IFlame>][] = [
    ['out of order', { depth: [0, 2, 1, 2, 2] }],
    ['overlaps', { x0: [0, 0, 0.4, 0, 0.3] }],
    ['has no name', { name: [0, 1, 9, 1, 3] }],
    ['outside of the graph', { x1: [1, 0.6, 1.2, 0.2, 0.6] }]
  ];
  for (const [words, changes] of broken) {
    test(words, () => {
      assert.throws(() => toColumns({ ...flame, ...changes }), new RegExp(words));
    });
  }
});

describe('drawing', () => {
  test('places every frame and colours own code apart', () => {
    const { rects } = sketch();
    assert.deepEqual(
      rects.map(rect => [rect.fill, rect.x, rect.y]),
      [
        ['root', 0, 0],
        ['cell', 0, ROW_PX],
        ['library', 700, ROW_PX],
        ['cell', 0, 2 * ROW_PX],
        ['file', 300, 2 * ROW_PX]
      ]
    );
  });

  test('zoomed in, only what is in view, its ancestors over the whole width', () => {
    const { rects } = sketch({ view: [0.3, 0.6] });
    assert.deepEqual(
      rects.map(rect => [rect.fill, rect.x, Math.round(rect.width)]),
      [
        ['root', 0, 999],
        ['cell', 0, 999],
        ['file', 0, 999]
      ]
    );
  });

  test('marks matches and the focus', () => {
    const matches = search(toColumns(flame), 'X.PY');
    const { rects } = sketch({ matches, focus: 1 });
    assert.equal(rects[2].fill, 'match');
    assert.equal(rects[rects.length - 1].fill, 'focus');
  });

  test('writes only what can be read', () => {
    assert.equal(shortened('decode_jpeg', 5), 'deco…');
    assert.equal(shortened('decode_jpeg', 2), '');
  });
});

describe('search', () => {
  test('counts recursion once', () => {
    const matches = search(toColumns(flame), 'a');
    assert.equal(matches?.frames, 2);
    assert.ok(Math.abs(matches.share - 0.6) < 1e-12);
  });

  test('of nothing is no search, of something absent is empty', () => {
    assert.equal(search(toColumns(flame), '  '), null);
    assert.equal(search(toColumns(flame), 'zzz')?.frames, 0);
  });
});

describe('a hundred thousand frames', () => {
  const ROWS = 50;
  const big = toColumns(manyFrames(ROWS, 2000));

  test('cost no more than the pixels they fall on', () => {
    const width = 900;
    const pen = sketch({ columns: big, width });
    assert.ok(pen.rects.length <= ROWS * width, `${pen.rects.length} rectangles`);
    assert.ok(pen.rects.length >= (ROWS * width) / 3, `${pen.rects.length} rectangles`);
    assert.equal(pen.texts.length, 0);
  });

  test('zoomed in, cost no more than what is in view', () => {
    const pen = sketch({ columns: big, view: [0.5, 0.505] });
    assert.ok(pen.rects.length <= ROWS * 12, `${pen.rects.length} rectangles`);
    assert.ok(pen.texts.length > 0);
  });

  test('each is found under the pointer', () => {
    for (let index = 0; index < big.name.length; index += 997) {
      const middle = (big.x0[index] + big.x1[index]) / 2;
      assert.equal(frameAt(big, big.depth[index], middle), index);
    }
  });

  function manyFrames(rows: number, columns: number): IFlame {
    const names = Array.from({ length: 100 }, (_, i) => `function_${i}`);
    const all: IFlame = { ...flame, names, details: names, kinds: names.map(() => 0) };
    all.name = [];
    all.depth = [];
    all.x0 = [];
    all.x1 = [];
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        all.name.push((row * 31 + column) % 100);
        all.depth.push(row);
        all.x0.push(column / columns);
        all.x1.push((column + 1) / columns);
      }
    }
    return all;
  }
});
