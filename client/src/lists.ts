// The left column: what is shown, and the lists of parts and joints.

import { h, iconButton } from './dom';
import type { Gallery } from './gallery';
import type { Joints } from './joints';
import type { Parts } from './parts';

export class Lists {
  readonly node: HTMLElement;
  private readonly tabs = ['Parts', 'Joints'].map((label, k) =>
    h(
      'button',
      { type: 'button', role: 'tab', 'aria-selected': String(!k), click: () => this.show(k) },
      label,
      ' ',
      h('em', {}),
    ),
  );

  constructor(
    gallery: Gallery,
    private readonly parts: Parts,
    private readonly joints: Joints,
    togglePanels: () => boolean,
  ) {
    const panels = iconButton(
      'parts',
      'Parts, freedoms, drivers and plots',
      () => panels.setAttribute('aria-expanded', String(togglePanels())),
      { id: 'panels', 'aria-expanded': 'false' },
    );
    this.node = h(
      'div',
      { id: 'left' },
      h('div', { id: 'title', class: 'card' }, gallery.picker, panels, gallery.list),
      h(
        'nav',
        { id: 'tree', class: 'card', 'aria-label': 'Parts and joints' },
        h('div', { class: 'tabs', role: 'tablist' }, ...this.tabs),
        parts.rows,
        joints.rows,
      ),
    );
  }

  /** How many parts and joints there are. */
  count(...counts: [number, number]): void {
    this.tabs.forEach((tab, k) => {
      tab.querySelector('em')!.textContent = String(counts[k]);
    });
  }

  /** The list of parts (0) or of joints (1). */
  private show(which: number): void {
    this.tabs.forEach((tab, k) => {
      tab.setAttribute('aria-selected', String(k === which));
    });
    this.parts.rows.hidden = which !== 0;
    this.joints.rows.hidden = which !== 1;
    this.joints.show();
  }
}
