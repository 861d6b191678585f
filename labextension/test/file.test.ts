import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { reportInFile } from '../src/file';

describe('a profile file', () => {
  test('shows the report that it carries', () => {
    const report = { format: 1, headline: 'h' };
    const content = JSON.stringify({ kind: 'ioscope profile', profile: {}, report });
    assert.deepEqual(reportInFile(content), { payload: report, problem: '' });
    assert.deepEqual(reportInFile(JSON.stringify(report)), { payload: report, problem: '' });
  });

  test('without a report says how to open it', () => {
    const content = JSON.stringify({ kind: 'ioscope profile', format: 1, profile: {} });
    assert.match(reportInFile(content).problem, /ioscope\.load\("…"\)\.show\(\)/);
  });

  for (const content of ['', '{"kind": "ioscope pro', '[]', 'null', '{}', '7']) {
    test(`that is none is refused: ${content}`, () => {
      const { payload, problem } = reportInFile(content);
      assert.equal(payload, null);
      assert.match(problem, /^This file is /);
    });
  }
});
