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

/** A titled block of the report. */
export function section(title: string, className: string): HTMLElement {
  const element = make('section', `ioscope-section ${className}`);
  put(element, make('h3', '', title));
  element.setAttribute('aria-label', title);
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
