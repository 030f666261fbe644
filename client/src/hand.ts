// The pointer on the canvas: hover, select, drag a part; the camera moves only where no part was pressed.

import * as THREE from 'three';
import type { Stage } from './stage';

const CLICK = 4; // pixels: a press that moves less is a click

export interface Grab {
  part: number;
  local: THREE.Vector3;
  target: THREE.Vector3;
  push: boolean; // with Ctrl: a force in dynamics
  moved: boolean;
  face: number; // the triangle that was pressed
}
export interface HandEvents {
  canDrag(part: number): boolean;
  grab(grab: Grab): void;
  drag(grab: Grab, stamp: number): void;
  drop(grab: Grab): void;
  hover(part: number, x: number, y: number): void;
  /** face: the triangle of the part, −1 where nothing was hit. */
  select(part: number, point: THREE.Vector3 | null, face: number): void;
}

export class Hand {
  grab: Grab | null = null;
  private pointer = -1;
  private start = { x: 0, y: 0 };
  private readonly plane = new THREE.Plane();
  private ray = new THREE.Ray();
  private readonly raw: (event: Event) => void;
  private background: { x: number; y: number } | null = null;

  constructor(
    private readonly stage: Stage,
    private readonly events: HandEvents,
  ) {
    const { canvas } = stage;
    // In the capture phase, before the camera's controls see the press.
    canvas.addEventListener('pointerdown', (event) => this.press(event), { capture: true });
    canvas.addEventListener('pointermove', (event) => this.move(event));
    // Raw events come at once; moves wait for the next frame. Not every browser has them.
    this.raw = (event) => this.move(event as PointerEvent);
    canvas.addEventListener('pointerup', (event) => this.release(event));
    canvas.addEventListener('pointercancel', (event) => this.release(event));
    canvas.addEventListener('lostpointercapture', (event) => this.release(event));
    canvas.addEventListener('pointerleave', () => !this.grab && this.events.hover(-1, 0, 0));
    addEventListener('pointerdown', () => document.body.classList.remove('keys'), { capture: true });
    addEventListener('blur', () => this.cancel());
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0) return;
    if (this.grab) {
      event.stopImmediatePropagation(); // a second finger while one drags
      return;
    }
    const [x, y] = this.stage.at(event);
    this.start = { x, y };
    const hit = this.stage.pick(x, y);
    if (!hit || !this.events.canDrag(hit.part)) {
      this.background = { x, y };
      return;
    }
    event.stopImmediatePropagation();
    event.preventDefault();
    this.stage.canvas.focus({ preventScroll: true });
    this.pointer = event.pointerId;
    this.stage.canvas.setPointerCapture(event.pointerId);
    this.stage.canvas.addEventListener('pointerrawupdate', this.raw);
    this.stage.orbit.enabled = false;
    this.grab = {
      part: hit.part,
      local: this.stage.toLocal(hit.part, hit.point),
      target: hit.point.clone(),
      push: event.ctrlKey || event.metaKey,
      moved: false,
      face: hit.face,
    };
    this.events.grab(this.grab);
    this.stage.canvas.classList.add('grabbing');
  }

  private move(event: PointerEvent): void {
    const [x, y] = this.stage.at(event);
    if (!this.grab) {
      if (!event.buttons) this.events.hover(this.stage.pick(x, y)?.part ?? -1, x, y);
      return;
    }
    if (event.pointerId !== this.pointer) return;
    if (!this.grab.moved && Math.hypot(x - this.start.x, y - this.start.y) < CLICK) return;
    this.grab.moved = true;
    this.ray.copy(this.stage.aim(x, y));
    if (this.retarget()) this.events.drag(this.grab, event.timeStamp);
  }

  /** Put the target on the pointer's ray, as deep in the view as the grasped point is now; true if it moved. */
  retarget(): boolean {
    const { grab, stage } = this;
    if (!grab?.moved) return false;
    const now = stage.toWorld(grab.part, grab.local);
    this.plane.setFromNormalAndCoplanarPoint(stage.camera.getWorldDirection(new THREE.Vector3()), now);
    const before = grab.target.clone();
    const hit = this.ray.intersectPlane(this.plane, grab.target);
    if (hit && before.distanceTo(grab.target) > 0.25 * stage.pixel(now)) return true;
    grab.target.copy(before); // as the server knows it
    return false;
  }

  private release(event: PointerEvent): void {
    if (this.grab && event.pointerId === this.pointer) {
      const { grab } = this;
      this.end();
      if (!grab.moved) this.events.select(grab.part, this.stage.toWorld(grab.part, grab.local), grab.face);
      this.events.drop(grab);
    } else if (this.background && event.type === 'pointerup') {
      const [x, y] = this.stage.at(event);
      if (Math.hypot(x - this.background.x, y - this.background.y) < CLICK) {
        const hit = this.stage.pick(x, y);
        this.events.select(hit ? hit.part : -1, hit ? hit.point : null, hit ? hit.face : -1);
      }
      this.background = null;
    }
  }

  /** End a drag where it is. */
  cancel(): void {
    if (!this.grab) return;
    const { grab } = this;
    this.end();
    this.events.drop(grab);
  }

  private end(): void {
    const { canvas } = this.stage;
    const { pointer } = this;
    this.grab = null;
    this.pointer = -1;
    canvas.removeEventListener('pointerrawupdate', this.raw);
    this.stage.orbit.enabled = true;
    canvas.classList.remove('grabbing');
    if (canvas.hasPointerCapture(pointer)) canvas.releasePointerCapture(pointer);
  }
}
