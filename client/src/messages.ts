// Errors and warnings in words, and the progress of a computation.

import { h, iconButton, setText } from './dom';

const MOST = 3;
const PATIENCE = 300; // ms for which nothing is said of what is done: most of it takes less
const BRIEF = 5000; // ms for which information is shown; errors and warnings stay until they are closed

/** What is done, in words. part: between 0 and 1, or null; stoppable: by a button; waits: controls wait for it. */
export interface Work {
  text: string;
  part: number | null;
  stoppable: boolean;
  waits: boolean;
}

export class Messages {
  readonly node = h('div', { id: 'messages', role: 'alert' });
  readonly progress = h('div', { id: 'progress', class: 'card', hidden: true });
  private readonly text = h('span', { id: 'doing', role: 'status' });
  private readonly bar = h('progress', { max: 1, 'aria-label': 'Progress' });
  private readonly stop: HTMLElement;
  private work: Work | null = null;
  private timer = 0;

  /** shown: what is done was shown, or is done. */
  constructor(
    stop: () => void,
    private readonly shown: () => void,
  ) {
    this.stop = h('button', { type: 'button', class: 'button small', id: 'cancel', click: stop }, 'Stop');
    this.progress.append(this.text, this.bar, this.stop);
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

  /** Show what is done, if it is not done soon; null at the end. */
  setWork(work: Work | null): void {
    this.work = work;
    if (!work) {
      clearTimeout(this.timer);
      this.timer = 0;
      this.showWork();
    } else if (this.progress.hidden) this.timer ||= setTimeout(() => this.showWork(), PATIENCE) as unknown as number;
    else this.showWork();
  }

  private showWork(): void {
    const { work } = this;
    this.timer = 0;
    this.progress.hidden = !work;
    if (work) {
      setText(this.text, work.text);
      if (work.part === null) this.bar.removeAttribute('value');
      else this.bar.value = work.part;
      this.stop.hidden = !work.stoppable;
    }
    this.shown();
  }

  /** What controls wait for, in words; null if they need not wait. */
  get busy(): string | null {
    return !this.progress.hidden && this.work?.waits ? this.work.text : null;
  }
}
