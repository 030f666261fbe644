// The list of joints with their values, and their labels in the drawing.

import { h, setText } from './dom';
import type { Stage } from './stage';
import type { Values } from './values';
import type { SceneData } from './wire';

const MOST_LABELS = 40;

const WIDE = 6.6; // pixels of a letter
const TALL = 18; // pixels of a label

export type Box = [x: number, y: number, width: number, height: number];

/** A box moved down until it covers none of those that are placed. */
export function apart(box: Box, placed: Box[]): Box {
  const [x, , width, height] = box;
  let y = box[1];
  for (let moved = true; moved; ) {
    moved = false;
    for (const [left, top, wide, tall] of placed) {
      if (x < left + wide && left < x + width && y < top + tall && top < y + height) {
        y = top + tall;
        moved = true;
      }
    }
  }
  return [x, y, width, height];
}

export class Joints {
  readonly rows = h('div', { class: 'rows', id: 'joints', hidden: true });
  readonly labels = h('div', { id: 'joint-labels' });
  private labelled = false;
  private names: string[] = [];
  private cells: HTMLElement[] = [];
  private marks: { joint: number; node: HTMLElement }[] = [];

  constructor(
    private readonly stage: Stage,
    private readonly values: Values,
  ) {}

  list(scene: SceneData): void {
    this.names = scene.joints.map((joint) => joint.name);
    this.cells = scene.joints.map((joint) => h('span', { class: 'value', 'data-joint': joint.name }));
    this.rows.replaceChildren(
      ...scene.joints.map((joint, k) => {
        const kind = h('span', { class: 'kind' }, joint.kind.replace(/_/g, ' '));
        return h(
          'div',
          { class: 'row', title: `${joint.kind} ${joint.name}: ${joint.bodies.join(' – ')}` },
          h('span', { class: 'name' }, h('span', {}, joint.name, ' ', kind)),
          this.cells[k],
        );
      }),
    );
    this.label(this.labelled);
  }

  get areLabelled(): boolean {
    return this.labelled;
  }

  /** Show or hide names and values at the joints. */
  label(on: boolean): void {
    this.labelled = on;
    this.marks = on
      ? this.stage.joints.slice(0, MOST_LABELS).map((_, joint) => ({ joint, node: h('div', { class: 'tip mark' }) }))
      : [];
    this.labels.replaceChildren(...this.marks.map(({ node }) => node));
    this.show();
    this.stage.redraw();
  }

  /** Values of what is seen: of the list, and of the labels. */
  show(): void {
    if (!this.rows.hidden) for (const [k, name] of this.names.entries()) setText(this.cells[k], this.values.text(name));
    for (const { joint, node } of this.marks) {
      const { name } = this.stage.joints[joint].data;
      setText(node, [name, this.values.text(name)].filter(Boolean).join('  '));
    }
  }

  /** Put the labels where the joints are drawn. */
  place(): void {
    const placed: Box[] = [];
    for (const { joint, node } of this.marks) {
      const at = this.stage.screen(this.stage.placeOf(this.stage.joints[joint]));
      node.hidden = !at;
      if (!at) continue;
      const box = apart([at[0] + 10, at[1] - 9, WIDE * (node.textContent?.length ?? 0) + 14, TALL], placed);
      placed.push(box);
      node.style.transform = `translate(${box[0]}px, ${box[1]}px)`;
    }
  }
}
