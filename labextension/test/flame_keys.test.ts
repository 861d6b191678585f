import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { IReport } from '../src/payload';
import { IReportView, renderReport } from '../src/report';
import fixture from './fixtures/report.json';
import { fresh, openPage } from './page';

const report = fixture as unknown as IReport;
let page: ReturnType<typeof openPage>;
let view: IReportView;

beforeEach(() => {
  page = openPage();
  view = renderReport(page.root, fresh(report));
});

afterEach(() => {
  view.dispose();
  page.close();
});

function press(key: string): void {
  const canvas = page.root.querySelector('canvas')!;
  canvas.focus();
  const { KeyboardEvent } = document.defaultView!;
  canvas.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
}

function spoken(): string {
  return page.root.querySelector('.ioscope-flame [aria-live]')?.textContent ?? '';
}

describe('the flame graph by keyboard', () => {
  test('arrows walk the tree and say where they are', () => {
    const seen = ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowUp'].map(key => {
      press(key);
      return spoken().split(',')[0];
    });
    assert.deepEqual(seen, ['all workers', 'fetch', 'Photos.__getitem__', 'fetch']);
  });

  test('an arrow towards nothing stays where it is', () => {
    press('ArrowDown');
    press('ArrowUp');
    assert.match(spoken(), /^all workers/);
  });

  test('the words of the chosen frame are seen as well, until Escape or another place', () => {
    const words = page.root.querySelector<HTMLElement>('.ioscope-tooltip')!;
    ['ArrowDown', 'ArrowDown'].forEach(press);
    assert.equal(words.hidden, false);
    assert.equal(words.firstElementChild?.textContent, 'fetch');
    press('Escape');
    assert.equal(words.hidden, true);
    press('ArrowDown');
    page.root.querySelector('canvas')!.blur();
    assert.equal(words.hidden, true);
  });

  test('Enter enlarges, Escape shows all again', () => {
    const all = [...page.root.querySelectorAll('button')].find(one => one.textContent === 'Show all');
    ['ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter'].forEach(press);
    assert.equal(all?.hidden, false);
    press('Escape');
    assert.equal(all?.hidden, true);
  });

  test('no key reaches the notebook: the report keeps them', () => {
    press('ArrowDown');
    assert.equal(document.activeElement?.getAttribute('data-lm-suppress-shortcuts'), 'true');
  });
});

describe('tabs of the flame graph', () => {
  test('arrows move between them, and one is a stop for Tab', () => {
    const tabs = [...page.root.querySelectorAll<HTMLElement>('[role=tab]')];
    const { KeyboardEvent } = document.defaultView!;
    tabs[0].dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }));
    const last = tabs[tabs.length - 1];
    assert.equal(document.activeElement, last);
    assert.deepEqual(
      tabs.filter(tab => tab.tabIndex === 0),
      [last]
    );
  });

  test('Home and End go to the first and the last', () => {
    const tabs = [...page.root.querySelectorAll<HTMLElement>('[role=tab]')];
    const { KeyboardEvent } = document.defaultView!;
    for (const [key, at] of [['End', tabs.length - 1], ['Home', 0]] as const) {
      tabs[0].dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
      assert.equal(document.activeElement, tabs[at]);
    }
  });

  test('the search stays when the tab changes', () => {
    const field = page.root.querySelector<HTMLInputElement>('.ioscope-search')!;
    field.value = 'forward';
    const { Event } = document.defaultView!;
    field.dispatchEvent(new Event('input', { bubbles: true }));
    const status = page.root.querySelector('.ioscope-flame-tools [role=status]')!;
    assert.match(status.textContent ?? '', /^0 frames/);
    const tabs = [...page.root.querySelectorAll<HTMLElement>('[role=tab]')];
    tabs.find(tab => tab.textContent === 'consumer')!.click();
    assert.match(status.textContent ?? '', /^1 frame, 11 %/);
  });
});

describe('a frame of a cell', () => {
  const inCell = () => {
    const changed = fresh(report);
    for (const flame of changed.flames) {
      flame.details = flame.names.map(() => 'In [7], lines 3, 5');
      flame.kinds = flame.names.map((_, index) => (index ? 2 : 3));
    }
    return changed;
  };
  const goes = () => [...page.root.querySelectorAll('button')].find(b => b.textContent?.startsWith('Go to'));

  test('leads to its cell and line, and says what hinders it', async () => {
    view.dispose();
    const asked: number[][] = [];
    view = renderReport(page.root, inCell(), {
      goToCell: (...place) => (asked.push(place), Promise.resolve('It is gone.'))
    });
    assert.equal(goes()?.parentElement?.hidden ?? true, true);
    press('ArrowDown'); // the root: no cell
    assert.equal(goes()?.parentElement?.hidden ?? true, true);
    press('ArrowDown');
    assert.equal(goes()?.textContent, 'Go to In [7], line 3');
    goes()?.click();
    await Promise.resolve();
    await Promise.resolve();
    assert.deepEqual(asked, [[7, 3]]);
    assert.match(goes()?.parentElement?.textContent ?? '', /It is gone\./);
  });

  test('leads nowhere where there are no cells', () => {
    view.dispose();
    view = renderReport(page.root, inCell());
    press('ArrowDown');
    press('ArrowDown');
    assert.equal(goes(), undefined);
  });

  test('a library that calls itself a cell is none', () => {
    view.dispose();
    const changed = inCell();
    changed.flames.forEach(flame => (flame.kinds = flame.kinds.map(() => 0)));
    view = renderReport(page.root, changed, { goToCell: () => Promise.resolve('') });
    press('ArrowDown');
    press('ArrowDown');
    assert.equal(goes()?.parentElement?.hidden ?? true, true);
  });
});
