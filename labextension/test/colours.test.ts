import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import css from '../style/report.css';

// what JupyterLab's two themes give for the variables that the report takes from its host
const PAPER = { light: '#ffffff', dark: '#111111' };
const INK = { light: '#212121', dark: '#e0e0e0' };
const MINIMUM = 4.5; // WCAG 2.1, success criterion 1.4.3

type Theme = keyof typeof PAPER;

function variable(name: string, theme: Theme): string {
  const value = css.match(new RegExp(`--ioscope-${name}:\\s*([^;]+);`))?.[1] ?? '';
  return resolve(value, theme);
}

function resolve(value: string, theme: Theme): string {
  const pair = value.match(/light-dark\((#\w{6}), (#\w{6})\)/);
  const colour = pair ? pair[theme === 'light' ? 1 : 2] : value.trim();
  assert.match(colour, /^#[0-9a-f]{6}$/i, value);
  return colour;
}

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5]
    .map(at => parseInt(colour.slice(at, at + 2), 16) / 255)
    .map(c => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function readable(text: string, ground: string, what: string): void {
  const ratio = contrast(text, ground);
  assert.ok(ratio >= MINIMUM, `${what}: ${text} on ${ground} is ${ratio.toFixed(2)}`);
}

for (const theme of ['light', 'dark'] as const) {
  describe(`in the ${theme} theme text can be read`, () => {
    test('on the paper and on washes', () => {
      const wash = variable('wash', theme);
      for (const name of ['soft', 'accent', 'error']) {
        readable(variable(name, theme), PAPER[theme], name);
      }
      readable(variable('soft', theme), wash, 'soft on wash');
      readable(INK[theme], wash, 'ink on wash');
    });

    test('on every part of a bar', () => {
      const rules = [...css.matchAll(/\.ioscope-part-(\w+) \{ --part: [^;]+; --on: ([^;]+); \}/g)];
      assert.equal(rules.length, 15);
      for (const [, part, on] of rules) {
        readable(resolve(on, theme), variable(part, theme), part);
      }
    });

    test('on every frame of a flame graph', () => {
      const ink = variable('flame-ink', theme);
      const names = [...css.matchAll(/--ioscope-(flame-(?:\w+-\d|match)):/g)].map(one => one[1]);
      assert.equal(names.length, 13);
      for (const name of names) {
        readable(ink, variable(name, theme), name);
      }
    });

    test('on the main button', () => {
      readable(variable('on-primary', theme), variable('primary', theme), 'button');
    });
  });
}

test('parts of time have the colours of the Python views', () => {
  const python = readFileSync(new URL('../../../jupyter_ioscope/views/colours.py', import.meta.url), 'utf8');
  const pairs = [...python.matchAll(/^ {4}"(\w+)": "(#[0-9A-F]{6})",$/gm)];
  assert.equal(pairs.length, 15);
  for (const [, part, colour] of pairs) {
    assert.equal(variable(part, 'light').toUpperCase(), colour, part);
  }
});
