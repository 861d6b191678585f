export interface Disposable {
  dispose(): void;
}

/** Everything subscribed, so that it ends with the view that subscribed it. */
export class Disposables implements Disposable {
  add(end: () => void): void {
    this.ends.push(end);
  }

  listen<K extends keyof HTMLElementEventMap>(
    target: HTMLElement,
    type: K,
    handler: (event: HTMLElementEventMap[K]) => void
  ): void {
    target.addEventListener(type, handler);
    this.add(() => target.removeEventListener(type, handler));
  }

  /** Call `handler` when the element's size changes, where the browser can tell. */
  onResize(target: HTMLElement, handler: () => void): void {
    if (typeof ResizeObserver === 'undefined') {
      return;
    }
    const observer = new ResizeObserver(() => handler());
    observer.observe(target);
    this.add(() => observer.disconnect());
  }

  dispose(): void {
    for (const end of this.ends.splice(0).reverse()) {
      end();
    }
  }

  private readonly ends: (() => void)[] = [];
}
