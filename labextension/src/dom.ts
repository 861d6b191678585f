/** The only way the report makes elements: text is always text, never markup. */

const SVG = 'http://www.w3.org/2000/svg';

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = '',
  text = ''
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) {
    element.className = className;
  }
  if (text) {
    element.textContent = text;
  }
  return element;
}

export function put<T extends Element>(parent: T, ...children: (Element | string)[]): T {
  parent.append(...children);
  return parent;
}

export function svg(tag: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, String(value));
  }
  return element;
}

/**
 * A titled block of the report. A group, no landmark: a notebook may show many reports, and their
 * headings are the way through them.
 */
export function section(title: string, className: string): HTMLElement {
  const element = make('div', `ioscope-section ${className}`);
  put(element, make('h3', '', title));
  return named(element, title);
}

function named<T extends HTMLElement>(element: T, name: string): T {
  element.setAttribute('role', 'group');
  element.setAttribute('aria-label', name);
  return element;
}

/** Room for what may be wider than the report. */
export function scrolling(child: HTMLElement, name: string): HTMLElement {
  const element = put(make('div', 'ioscope-scroll'), child);
  return named(scrolledByKeys(element, child), name);
}

/**
 * A stop of the Tab key while, and only while, there is something that the arrow keys could scroll.
 * Where the browser does not tell sizes it stays one. `content` is what may grow by itself. The
 * observer goes with the elements: hosts take outputs out of the page and put them back.
 */
export function scrolledByKeys<T extends HTMLElement>(element: T, ...content: Element[]): T {
  element.tabIndex = 0;
  if (typeof ResizeObserver === 'undefined') {
    return element;
  }
  const observer = new ResizeObserver(() => {
    const wider = element.scrollWidth > element.clientWidth + 1; // sizes are rounded
    const higher = element.scrollHeight > element.clientHeight + 1;
    if (wider || higher || element === document.activeElement) {
      element.tabIndex = 0;
    } else {
      element.removeAttribute('tabindex');
    }
  });
  [element, ...content].forEach(one => observer.observe(one));
  return element;
}

export function button(text: string, className = ''): HTMLButtonElement {
  const element = make('button', `ioscope-button ${className}`.trim(), text);
  element.type = 'button';
  return element;
}

/** Folded evidence and code. */
export function folded(summary: string, ...children: Element[]): HTMLDetailsElement {
  const element = make('details', 'ioscope-folded');
  return put(element, make('summary', '', summary), ...children);
}

let serial = 0;

/** An id that no other report of the page uses. */
export function freshId(stem: string): string {
  serial += 1;
  return `ioscope-${stem}-${serial}`;
}
