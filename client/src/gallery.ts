// The name of what is shown, and the list to choose from.

import { block, h, icon } from './dom';
import type { Model } from './wire';
import { title } from './words';

export interface Item {
  name: string;
  title: string;
}

export class Gallery {
  readonly picker = h('button', {
    id: 'picker',
    type: 'button',
    'aria-haspopup': 'listbox',
    click: () => this.toggle(),
  });
  readonly list = h('div', { id: 'gallery', class: 'card', hidden: true, role: 'listbox' });
  private shown = '';

  constructor(private readonly load: (item: string) => void) {
    this.picker.append(h('b', {}, 'Cardan'), h('small', {}, 'no mechanism is open yet'), icon('down'));
    block(this.picker, 'list', 'the list of mechanisms comes from the server');
    addEventListener('pointerdown', (event) => {
      if (!this.list.hidden && !(event.target as Element).closest('#gallery, #picker')) this.toggle(false);
    });
  }

  fill(items: Item[]): void {
    block(this.picker, 'list', null);
    this.list.replaceChildren(
      ...items.map((item) =>
        h(
          'button',
          { type: 'button', role: 'option', 'data-item': item.name, click: () => this.load(item.name) },
          h('b', {}, title(item.name === 'own' ? item.title : item.name)),
          h('span', {}, item.name === 'own' ? 'your mechanism' : item.title),
        ),
      ),
    );
  }

  show(model: Model, isRecorded: boolean): void {
    this.shown = model.item;
    const isOwn = model.item === 'own';
    document.title = `${title(isOwn ? model.title : model.item)} · Cardan`;
    this.picker.replaceChildren(
      h('b', {}, title(isOwn ? model.title : model.item)),
      h('small', {}, isOwn ? (isRecorded ? 'recorded motion' : 'your mechanism') : model.title),
      icon('down'),
    );
    if (isRecorded) {
      this.list.remove();
      this.picker.disabled = true;
    }
  }

  toggle(open = this.list.hidden): void {
    this.list.hidden = !open;
    this.picker.setAttribute('aria-expanded', String(open));
    const buttons = [...this.list.querySelectorAll('button')];
    for (const button of buttons) button.setAttribute('aria-current', String(button.dataset.item === this.shown));
    if (open) (buttons.find((button) => button.dataset.item === this.shown) ?? buttons[0])?.focus();
  }
}
