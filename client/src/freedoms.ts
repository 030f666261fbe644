// The degrees of freedom in words, each with a wiggle.

import { h } from './dom';
import { plural } from './words';

const MOST = 12;

export interface FreedomData {
  dof: number;
  undriven: number;
  redundant: number;
  assembled: boolean;
  motions: string[] | null;
}

/** How many there are; without closed joints the count says nothing. */
export const dofText = (found: FreedomData): string =>
  found.assembled ? plural(found.dof, 'degree of freedom', 'degrees of freedom') : 'not assembled';

export class Freedoms {
  readonly node = h('section', { id: 'freedoms' });

  constructor(private readonly wiggle: (freedom: number) => void) {}

  show(found: FreedomData | null): void {
    this.node.replaceChildren(
      h('h2', {}, found?.assembled ? dofText(found) : 'Degrees of freedom'),
      ...this.rows(found),
    );
  }

  private rows(found: FreedomData | null): Node[] {
    const hint = (text: string) => h('p', { class: 'hint' }, text);
    if (!found) return [hint('Computing …')];
    if (!found.assembled) return [hint('Not assembled: freedoms are counted where every joint is closed.')];
    const rows: Node[] = [];
    if (found.motions === null) rows.push(hint('Too many parts for a list. Drag a part to see how it moves.'));
    else if (!found.motions.length) rows.push(hint('Nothing can move: it is a structure.'));
    else {
      found.motions.slice(0, MOST).forEach((text, k) => {
        const button = h(
          'button',
          { type: 'button', class: 'button small wiggle', 'data-asks': true, click: () => this.wiggle(k) },
          'Wiggle',
        );
        rows.push(h('div', { class: 'freedom', title: text }, h('span', {}, text.split('; ')[0]), button));
      });
      if (found.motions.length > MOST) rows.push(hint(`and ${found.motions.length - MOST} more`));
    }
    if (found.redundant) rows.push(hint(`${found.redundant} of its equations are redundant.`));
    return rows;
  }
}
