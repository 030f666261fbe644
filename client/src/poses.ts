// Poses that were kept by name.

import { h, iconButton } from './dom';

export interface PoseActions {
  keep(name: string): void;
  pose(name: string): void;
}

export class Poses {
  readonly node = h('section', { id: 'poses' });
  names: string[] = [];

  constructor(private readonly actions: PoseActions) {
    this.show([]);
  }

  show(names: string[]): void {
    this.names = names;
    const name = h('input', {
      type: 'text',
      id: 'pose-name',
      placeholder: 'name',
      maxlength: 40,
      'aria-label': 'Name of the pose',
      size: 12,
    });
    const keep = () => this.actions.keep(name.value.trim() || `pose ${names.length + 1}`);
    name.addEventListener('keydown', (event) => event.key === 'Enter' && keep());
    const chip = (kept: string) =>
      h(
        'button',
        {
          type: 'button',
          class: 'chip plain',
          'data-pose': kept,
          'data-asks': 'pose',
          click: () => this.actions.pose(kept),
        },
        kept,
      );
    this.node.replaceChildren(
      h(
        'h2',
        {},
        'Poses',
        h('span', { class: 'push' }),
        name,
        iconButton('plus', 'Keep this pose', keep, { id: 'keep', class: 'icon-button small', 'data-asks': 'keep' }),
      ),
      names.length
        ? h('div', { class: 'chips' }, ...names.map(chip))
        : h('p', { class: 'hint' }, 'Keep a pose, and return to it with one click.'),
    );
  }
}
