// Errors and warnings in words, and the progress of a computation.

import { h, iconButton } from './dom';

const MOST = 3;
const BRIEF = 5000; // ms for which information is shown; errors and warnings stay until they are closed

export class Messages {
  readonly node = h('div', { id: 'messages', role: 'alert' });
  readonly progress = h('div', { id: 'progress', class: 'card', hidden: true });
  private readonly bar = h('progress', { max: 1, 'aria-label': 'Progress' });

  constructor(stop: () => void) {
    this.progress.append(
      'Computing',
      this.bar,
      h('button', { type: 'button', class: 'button small', id: 'cancel', click: stop }, 'Stop'),
    );
  }

  /** Show a message; it replaces one with the same title. mark: a class to find it by. */
  show(title: string, text: string, level: string, mark = ''): void {
    const node = h(
      'div',
      { class: `message ${level} ${mark}` },
      h('b', {}, title),
      iconButton('close', 'Close', () => node.remove(), { class: 'icon-button small' }),
      text ? h('p', {}, text) : null,
    );
    for (const old of [...this.node.children]) if (old.querySelector('b')?.textContent === title) old.remove();
    this.node.append(node);
    while (this.node.children.length > MOST) this.node.firstChild!.remove();
    if (level === 'info') setTimeout(() => node.remove(), BRIEF);
  }

  has(mark: string): boolean {
    return this.node.querySelector(`.${mark}`) !== null;
  }

  /** Remove the messages with a mark, or those without one. */
  clear(mark: string, except = false): void {
    for (const node of [...this.node.children]) if (node.classList.contains(mark) !== except) node.remove();
  }

  /** part: between 0 and 1, or null at the end. */
  setProgress(part: number | null): void {
    this.progress.hidden = part === null;
    if (part !== null) this.bar.value = part;
  }
}
