// The list of parts and the card of the selected one: hide, see through, pin, trace.

import * as THREE from 'three';
import { h, icon, iconButton } from './dom';
import type { Stage } from './stage';
import type { SceneData, Triple } from './wire';

const MOST_JOINTS = 8; // that the card of a part names

export interface PartActions {
  pin(part: number, on: boolean): void;
  /** The path of a part was switched on or off. */
  traced(): void;
}

/** The place of a joint that is farthest from the origin of a part, in its axes. */
export function farthest(scene: SceneData, name: string): Triple {
  const places = scene.joints.flatMap((joint) => [
    joint.frame_a && joint.bodies[0] === name ? joint.frame_a.origin : null,
    joint.frame_b && joint.bodies[joint.bodies.length - 1] === name ? joint.frame_b.origin : null,
  ]);
  const size = ([x, y, z]: Triple) => Math.hypot(x, y, z);
  const found = places.filter((p): p is Triple => p !== null).sort((a, b) => size(b) - size(a));
  return found[0] ?? [0, 0, 0];
}

export class Parts {
  readonly rows = h('div', { class: 'rows', id: 'parts' });
  readonly card = h('section', { id: 'part', hidden: true });
  selected = -1;
  point: THREE.Vector3 | null = null; // where it was picked, in world
  pins = new Set<number>();
  private hovered = -1;
  private scene: SceneData | null = null;

  constructor(
    private readonly stage: Stage,
    private readonly actions: PartActions,
  ) {}

  list(scene: SceneData): void {
    this.scene = scene;
    this.rows.replaceChildren(
      ...this.stage.parts.map((part, k) => {
        const dot = h('span', { class: 'dot' });
        dot.style.background = `rgb(${part.color.slice(0, 3).map((c) => Math.round(255 * c))})`;
        const button = (mark: string, kind: string, label: string, click: () => void) =>
          iconButton(mark, `${label} ${part.name}`, click, {
            class: `icon-button small ${kind}`,
            'aria-pressed': 'false',
          });
        const select = () => this.select(this.selected === k ? -1 : k, null);
        const enter = { pointerenter: () => this.stage.hover(k), pointerleave: () => this.stage.hover(-1) };
        return h(
          'div',
          { class: 'row', 'data-part': k, ...enter },
          h('button', { type: 'button', class: 'name', click: select }, dot, h('span', {}, part.name)),
          k ? button('pin', 'pin', 'Pin', () => this.pin(k)) : null,
          button('ghost', 'ghost', 'See through', () => this.ghost(k)),
          button('eye', 'eye', 'Hide', () => this.hide(k)),
        );
      }),
    );
  }

  /** The state of every row, and of the card. */
  show(): void {
    this.rows.querySelectorAll<HTMLElement>('.row').forEach((row, k) => {
      const part = this.stage.parts[k];
      if (!part) return;
      row.classList.toggle('on', k === this.selected);
      row.classList.toggle('over', k === this.hovered);
      row.classList.toggle('off', !part.visible);
      row.querySelector('.ghost')?.setAttribute('aria-pressed', String(part.ghost));
      row.querySelector('.pin')?.setAttribute('aria-pressed', String(this.pins.has(k)));
      const eye = row.querySelector('.eye')!;
      eye.setAttribute('aria-pressed', String(!part.visible));
      eye.replaceChildren(icon(part.visible ? 'eye' : 'hidden'));
    });
    this.showCard();
  }

  private showCard(): void {
    const part = this.stage.parts[this.selected];
    this.card.hidden = !part;
    if (!part || !this.scene) return;
    const k = this.selected;
    const mark = (name: string, label: string, on: boolean, click: () => void) =>
      iconButton(name, label, click, { 'aria-pressed': String(on), 'data-action': name });
    const joints = this.scene.joints.filter((joint) => joint.bodies.includes(part.name)).map((joint) => joint.name);
    const named = joints.slice(0, MOST_JOINTS).join(', ') + (joints.length > MOST_JOINTS ? ' …' : '');
    this.card.replaceChildren(
      h(
        'h2',
        {},
        part.name,
        h('span', { class: 'push' }),
        k ? mark('pin', 'Pin it to the ground (P)', this.pins.has(k), () => this.pin(k)) : null,
        k ? mark('trace', 'Trace the picked point (X)', this.stage.traces.has(k), () => this.trace(k)) : null,
        mark('ghost', 'See through (T)', part.ghost, () => this.ghost(k)),
        mark(part.visible ? 'eye' : 'hidden', 'Hide (H)', !part.visible, () => this.hide(k)),
      ),
      h('p', { class: 'hint' }, joints.length ? `joints: ${named}` : 'no joints'),
    );
  }

  select(part: number, point: THREE.Vector3 | null): void {
    this.selected = part;
    this.point = point;
    this.stage.select(part);
    this.show();
    if (part >= 0) this.rows.children[part]?.scrollIntoView({ block: 'nearest' });
  }

  hover(part: number): void {
    this.rows.children[this.hovered]?.classList.remove('over');
    this.rows.children[part]?.classList.add('over');
    this.hovered = part;
    this.stage.hover(part);
  }

  setPins(parts: number[]): void {
    this.pins = new Set(parts);
    this.show();
  }

  hide(part: number): void {
    this.stage.show(part, !this.stage.parts[part].visible);
    this.show();
  }

  ghost(part: number): void {
    this.stage.ghost(part, !this.stage.parts[part].ghost);
    this.show();
  }

  pin(part: number): void {
    if (part > 0) this.actions.pin(part, !this.pins.has(part));
  }

  trace(part: number): void {
    if (part <= 0) return;
    if (this.stage.traces.has(part)) this.stage.traces.set(part, null);
    else {
      this.stage.traces.set(part, this.local(part));
      this.actions.traced();
    }
    this.show();
  }

  /** The picked point of a part, or its farthest joint, in its axes. */
  local(part: number): THREE.Vector3 {
    if (this.point && part === this.selected) return this.stage.toLocal(part, this.point);
    return new THREE.Vector3(...farthest(this.scene!, this.stage.parts[part].name));
  }
}
