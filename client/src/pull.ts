// The arrow from the grasped point to the pointer, with the force; and steps of a part by keys.

import * as THREE from 'three';
import { quantity } from './coordinates';
import { h, setText } from './dom';
import type { Hand } from './hand';
import type { Stage } from './stage';
import { type FrameData, GRASPED, MOVING, SHORT, type Triple } from './wire';

const SEEN = 3; // pixels: a shorter arrow is not seen, so its force is not shown either
const STEP = 12; // pixels that an arrow key moves a part
const REACHED = 0xf2711c;
const UNREACHED = 0xd23b45;

export class Pull {
  readonly label = h('div', { class: 'tip force', id: 'force', hidden: true });

  constructor(private readonly stage: Stage) {}

  /** isSoft: the hand is a spring, whose target is never reached.  stops: limits that hold, in words. */
  show(hand: Hand, frame: FrameData | null, stops: string[], isSoft: boolean): void {
    const { grab } = hand;
    if (!grab?.moved) {
      this.hide();
      return;
    }
    const from = this.stage.toWorld(grab.part, grab.local);
    const pixel = this.stage.pixel(from);
    this.stage.arrow.set(from, grab.target, pixel);
    const isFar = from.distanceTo(grab.target) > SEEN * pixel;
    const cannotReach = frame !== null && (frame.flags & (SHORT | MOVING)) === SHORT; // unless it is still on the way
    const isShort = isFar && cannotReach && !grab.push && !isSoft;
    const force = frame && frame.flags & GRASPED ? Math.hypot(...frame.force) : 0;
    this.stage.arrow.color(isShort ? UNREACHED : REACHED);
    const at = this.stage.screen(grab.target);
    this.label.hidden = !at || !((isFar && force > 0) || stops.length);
    this.label.classList.toggle('short', isShort);
    setText(this.label, [`${quantity(force)} N`, ...stops].join('\n'));
    if (at) this.label.style.transform = `translate(${at[0] + 16}px, ${at[1] - 30}px)`;
  }

  hide(): void {
    this.stage.arrow.hide();
    this.label.hidden = true;
  }

  /** Where a point of a part goes by one press of an arrow key, in the plane of the view. */
  step(part: number, local: THREE.Vector3, x: number, y: number): Triple {
    const at = this.stage.toWorld(part, local);
    const size = STEP * this.stage.pixel(at);
    const axes = this.stage.camera.matrixWorld;
    const right = new THREE.Vector3().setFromMatrixColumn(axes, 0);
    const up = new THREE.Vector3().setFromMatrixColumn(axes, 1);
    return at
      .addScaledVector(right, x * size)
      .addScaledVector(up, y * size)
      .toArray() as Triple;
  }
}
