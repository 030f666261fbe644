// Joints of CAD parts: those that are proposed, to accept or refuse, and those of two picked faces.

import type * as THREE from 'three';
import { block, h, iconButton } from './dom';
import { colored, faceOf, type Runs } from './faces';
import type { Stage } from './stage';

const COLORS = [0xf2711c, 0x2a78d6];

export interface FaceData {
  kind: string; // "plane", "cylinder", …
  text: string; // in words, with its size
}
export interface DeskPart {
  part: number; // of the drawing; the ground is 0
  name: string;
  runs: Runs;
  faces: FaceData[];
}
export interface ProposalData {
  name: string;
  kind: string;
  parts: [number, number]; // numbers in the list of parts below
  reason: string;
  mark: string; // what the diagnosis says of it
  faces: [number, number][];
  accepted: boolean;
}
export interface DeskData {
  parts: DeskPart[];
  proposals: ProposalData[];
  kinds: Record<string, string[]>; // joints that two kinds of faces allow: "cylinder cylinder"
  text: string; // the result of the last assembly
  ok: boolean;
}

interface Picked {
  part: number; // in the list of parts
  face: number;
}

/** The kinds of joints that two picked faces allow. */
export function kindsFor(data: DeskData, picked: Picked[]): string[] {
  if (picked.length !== 2) return [];
  const kinds = picked.map(({ part, face }) => data.parts[part].faces[face].kind).sort();
  return data.kinds[kinds.join(' ')] ?? [];
}

/** The picks after one more: a second face of the same part replaces the first one, a third pick begins anew. */
export function pickedNext(picked: Picked[], next: Picked): Picked[] {
  if (picked.some((one) => one.part === next.part)) return picked.map((one) => (one.part === next.part ? next : one));
  return picked.length < 2 ? [...picked, next] : [next];
}

export class Desk {
  readonly node = h('section', { id: 'desk', hidden: true });
  private data: DeskData | null = null;
  private picked: Picked[] = [];
  private overlays: THREE.Group[] = [];

  constructor(
    private readonly stage: Stage,
    private readonly send: (what: string, values?: Record<string, unknown>) => void,
  ) {}

  clear(): void {
    this.data = null;
    this.picked = [];
    this.overlays = []; // the drawing has removed them
    this.node.hidden = true;
  }

  show(data: DeskData): void {
    this.data = data;
    this.node.hidden = false;
    this.node.replaceChildren(
      h('h2', {}, 'Joints of the parts', h('span', { class: 'push' }), this.saveButton()),
      data.proposals.length
        ? h('div', { id: 'proposals' }, ...data.proposals.map((one) => this.row(one)))
        : h('p', { class: 'hint' }, 'No faces of two parts fit each other as the file places them.'),
      this.picks(),
      h(
        'div',
        { class: 'actions' },
        h(
          'button',
          { type: 'button', class: 'button', id: 'assemble', 'data-asks': true, click: () => this.send('assemble') },
          'Assemble',
        ),
        h('span', { class: data.ok ? 'hint' : 'hint bad', id: 'desk-text' }, data.text),
      ),
    );
    this.paint(this.picked);
  }

  private saveButton(): HTMLElement {
    return h(
      'button',
      { type: 'button', class: 'button small', id: 'save', 'data-asks': true, click: () => this.send('save') },
      'Save model',
    );
  }

  private row(one: ProposalData): HTMLElement {
    const choose = (accept: boolean) => this.send('decide', { joint: one.name, accept });
    const faces = one.faces.flatMap(([a, b]) => [
      { part: one.parts[0], face: a },
      { part: one.parts[1], face: b },
    ]);
    const over = { pointerenter: () => this.paint(faces), pointerleave: () => this.paint(this.picked) };
    const focus = { focusin: over.pointerenter, focusout: over.pointerleave };
    return h(
      'div',
      { class: `proposal ${one.accepted ? 'accepted' : 'refused'}`, 'data-proposal': one.name, ...over, ...focus },
      h('b', {}, one.kind, ' ', h('span', {}, one.name)),
      iconButton('check', `Accept ${one.name}`, () => choose(true), {
        class: 'icon-button small accept',
        'data-asks': true,
        'aria-pressed': String(one.accepted),
      }),
      iconButton('close', `Refuse ${one.name}`, () => choose(false), {
        class: 'icon-button small refuse',
        'data-asks': true,
        'aria-pressed': String(!one.accepted),
      }),
      h('p', { class: 'hint' }, one.reason, one.mark ? h('em', {}, `; ${one.mark}`) : null),
    );
  }

  private picks(): HTMLElement {
    const data = this.data!;
    if (!this.picked.length)
      return h('p', { class: 'hint', id: 'picks' }, 'Click a face of each of two parts to join them.');
    const kinds = kindsFor(data, this.picked);
    const choice = h('select', { id: 'joint-kind', 'aria-label': 'Kind of joint' });
    choice.append(...kinds.map((kind) => h('option', { value: kind }, kind)));
    const chips = this.picked.map(({ part, face }, k) => {
      const dot = h('span', { class: 'dot' });
      dot.style.background = `#${COLORS[k].toString(16).padStart(6, '0')}`;
      return h(
        'span',
        { class: 'chip', 'data-face': face },
        dot,
        `${data.parts[part].name}: ${data.parts[part].faces[face].text}`,
      );
    });
    const join = h(
      'button',
      {
        type: 'button',
        class: 'button',
        id: 'join',
        'data-asks': true,
        click: () => {
          block(join, 'sent', 'the joint is being added'); // until the server has answered, or other faces are picked
          this.join(choice.value);
        },
      },
      'Add joint',
    );
    const need =
      this.picked.length < 2
        ? 'Click a face of another part.'
        : kinds.length
          ? ''
          : 'No joint is made of two such faces.';
    return h(
      'div',
      { id: 'picks' },
      h('div', { class: 'chips' }, ...chips),
      need ? h('p', { class: 'hint' }, need) : null,
      kinds.length ? h('div', { class: 'actions' }, choice, join) : null,
    );
  }

  /** A face was clicked: a triangle of a part of the drawing. */
  pick(part: number, triangle: number): void {
    if (!this.data) return;
    const at = this.data.parts.findIndex((one) => one.part === part);
    const face = at < 0 ? -1 : faceOf(this.data.parts[at].runs, triangle);
    this.picked = face < 0 ? [] : pickedNext(this.picked, { part: at, face });
    this.node.querySelector('#picks')?.replaceWith(this.picks());
    this.paint(this.picked);
  }

  private join(kind: string): void {
    const [a, b] = this.picked.map(({ part, face }) => ({ part: this.data!.parts[part].name, face }));
    this.send('join', { kind, part_a: a.part, face_a: a.face, part_b: b.part, face_b: b.face });
  }

  /** Colour faces: those of the first part of a pair, and those of the second. */
  private paint(faces: Picked[]): void {
    for (const overlay of this.overlays) {
      overlay.removeFromParent();
      for (const mesh of overlay.children as THREE.Mesh[]) {
        mesh.geometry.dispose();
        (mesh.material as THREE.Material).dispose();
      }
    }
    const first = faces[0]?.part;
    this.overlays = faces.flatMap(({ part, face }) => {
      const { part: number, runs } = this.data!.parts[part];
      const view = this.stage.parts[number];
      if (!view?.faces.length) return [];
      const overlay = colored(view.faces[0].geometry, runs, face, COLORS[part === first ? 0 : 1]);
      view.node.add(overlay);
      return [overlay];
    });
    this.stage.redraw();
  }

  /** How many faces are in colour; for tests. */
  get painted(): number {
    return this.overlays.length;
  }
}
