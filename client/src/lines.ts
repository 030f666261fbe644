// Which lines a plot shows, and the list to choose them from.

import { h, icon } from './dom';
import { firstLine, type Line, labelled } from './line';
import { MOST_LINES, Plots } from './plots';
import type { ClipData, Model } from './wire';

export class Lines {
  readonly plots: Plots;
  private lines: Line[] = [];
  private options: Line[] = [];
  private clip: ClipData | null = null;
  private readonly chips = h('div', { class: 'chips', id: 'chips' });
  private readonly holder = h('div', { id: 'plot' });
  private readonly choice = h('select', {
    id: 'plot-choice',
    'aria-label': 'Add a line to the plot',
    change: () => this.add(),
  });
  readonly node = h(
    'section',
    {},
    h('h2', {}, 'Plot', h('span', { class: 'push' }), this.choice),
    this.chips,
    this.holder,
  );

  constructor() {
    this.plots = new Plots(this.holder);
  }

  clear(): void {
    this.lines = [];
  }

  /** Offer other lines; those that are still there stay chosen. */
  offer(options: Line[], clip: ClipData | null, model: Model | null): void {
    this.options = options;
    this.clip = clip?.series.length ? clip : null;
    const known = new Set(options.map((o) => o.key));
    this.lines = this.lines.filter((line) => known.has(line.key));
    const first = firstLine(options, model);
    if (!this.lines.length && first) this.lines = [first];
    this.show();
  }

  /** Draw the plot again, for example in other colours. */
  show(): void {
    const chosen = new Set(this.lines.map((line) => line.key));
    this.choice.replaceChildren(
      h('option', { value: '' }, 'add …'),
      ...this.options.filter((o) => !chosen.has(o.key)).map((o) => h('option', { value: o.key }, labelled(o))),
    );
    this.chips.replaceChildren(
      ...this.lines.map((line, k) => {
        const dot = h('span', { class: 'dot' });
        dot.style.background = this.plots.colorOf(k);
        const remove = h(
          'button',
          { type: 'button', 'aria-label': `Remove ${line.label}`, click: () => this.remove(line.key) },
          icon('close'),
        );
        return h('span', { class: 'chip' }, dot, labelled(line), remove);
      }),
    );
    this.plots.show(this.lines, this.clip);
  }

  private add(): void {
    const line = this.options.find((option) => option.key === this.choice.value);
    if (line && this.lines.length < MOST_LINES) this.lines.push(line);
    this.show();
  }

  private remove(key: string): void {
    this.lines = this.lines.filter((line) => line.key !== key);
    this.show();
  }
}
