import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { hasMagic, withMagic } from '../src/magic';

describe('the magic on a cell', () => {
  for (const source of ['%%ioscope', '%%ioscope --rate 50\nfor b in l: pass', '\n %%ioscope\nx']) {
    test(`is put there once: ${JSON.stringify(source)}`, () => {
      assert.ok(hasMagic(source));
      assert.equal(withMagic(source), source);
    });
  }

  for (const source of ['', 'x', '%%ioscopes\nx', '# %%ioscope\nx', '%%time\n%%ioscope']) {
    test(`is added: ${JSON.stringify(source)}`, () => {
      assert.ok(!hasMagic(source));
      assert.equal(withMagic(source), `%%ioscope\n${source}`);
    });
  }
});
