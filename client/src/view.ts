// The camera: its controls, what it sees, and where the panels leave room for it.

import * as THREE from 'three';
import { OrbitControls } from 'three/addons/controls/OrbitControls.js';
import type { Triple } from './wire';

const FOV = 32;
const GLIDE = 260; // ms of a turn to another direction
const Z = new THREE.Vector3(0, 0, 1);
const Y = new THREE.Vector3(0, 1, 0);

export abstract class View {
  camera: THREE.PerspectiveCamera | THREE.OrthographicCamera;
  readonly orbit: OrbitControls;
  up = new THREE.Vector3(0, 0, 1);
  protected readonly box = new THREE.Box3(); // around everything that is drawn
  protected center = new THREE.Vector3();
  protected radius = 1;
  protected readonly caster = new THREE.Raycaster();
  private size = { width: 1, height: 1 };
  private corner = { x: 0, y: 0 };
  private halfHeight = 1;
  private fitted = false;
  private glide: { from: THREE.Vector3; to: THREE.Vector3; began: number } | null = null;

  constructor(readonly canvas: HTMLCanvasElement) {
    this.camera = new THREE.PerspectiveCamera(FOV, 1, 0.01, 100);
    this.orbit = new OrbitControls(this.camera, canvas);
    this.orbit.enableDamping = false;
    this.orbit.addEventListener('change', () => this.project()); // near and far follow the distance
  }

  /** Draw again in the next frame. */
  abstract redraw(): void;
  protected abstract setSize(width: number, height: number): void;

  /** Go on with a turn; false where there is none. */
  protected turn(now: number): boolean {
    if (!this.glide) return false;
    const u = Math.min(1, (now - this.glide.began) / GLIDE);
    const eased = u * u * (3 - 2 * u);
    const distance = this.camera.position.distanceTo(this.orbit.target);
    const direction = this.glide.from.clone().lerp(this.glide.to, eased);
    if (direction.lengthSq() < 1e-6) direction.copy(this.glide.to);
    this.camera.position.copy(this.orbit.target).addScaledVector(direction.normalize(), distance);
    this.orbit.update();
    if (u >= 1) this.glide = null;
    return true;
  }

  /** What is seen keeps its place and its size relative to the room that the panels leave. */
  resize(width: number, height: number): void {
    const { away } = this;
    const before = this.needed(away);
    this.size = { width: Math.max(1, width), height: Math.max(1, height) };
    this.setSize(this.size.width, this.size.height);
    const box = this.canvas.getBoundingClientRect();
    this.corner = { x: box.left, y: box.top };
    if (this.fitted) {
      const after = this.needed(away);
      this.halfHeight *= after.half / before.half;
      if (!this.orthographic) away.multiplyScalar(after.distance / before.distance);
      this.camera.position.copy(this.orbit.target).add(away);
      this.reach(after.distance);
      this.orbit.update();
    }
    this.project();
  }

  /** From the target to the camera. */
  private get away(): THREE.Vector3 {
    return this.camera.position.clone().sub(this.orbit.target);
  }

  /** What the panels leave free of the canvas [CSS pixels]: its size, and how far its middle is from the middle. */
  free(): { width: number; height: number; right: number; down: number } {
    const { width, height } = this.size;
    const [left, right, top, bottom] =
      width > 900 ? [284, 350, 64, 110] : width > 780 ? [0, 0, 84, 130] : [0, 0, 150, 170];
    const low = Math.max(0.4 * height, height - top - bottom);
    return {
      width: Math.max(0.25 * width, width - left - right),
      height: low,
      right: 0.5 * (left - right),
      down: low > 0.4 * height ? 0.5 * (top - bottom) : 0,
    };
  }

  /** How much of the box is in the room that the panels leave. */
  protected get shown(): 'all' | 'some' | 'none' {
    const room = this.free();
    const [x, y] = [0.5 * this.size.width + room.right, 0.5 * this.size.height + room.down];
    const at = this.corners().map((corner) => this.screen(corner));
    const off = at.flatMap((one) => (one ? [[(2 * (one[0] - x)) / room.width, (2 * (one[1] - y)) / room.height]] : []));
    if (off.length === at.length && off.every((one) => one.every((share) => Math.abs(share) <= 1))) return 'all';
    const isBeside = [0, 1].some((k) => off.every((one) => one[k] > 1) || off.every((one) => one[k] < -1));
    return isBeside ? 'none' : 'some';
  }

  protected project(): void {
    const { width, height } = this.size;
    const { right, down } = this.free();
    this.camera.setViewOffset(width, height, -right, -down, width, height);
    const aspect = this.size.width / this.size.height;
    const distance = this.camera.position.distanceTo(this.orbit.target);
    if (this.camera instanceof THREE.PerspectiveCamera) {
      this.camera.aspect = aspect;
      this.camera.near = Math.max(1e-4 * this.radius, 0.02 * distance);
      this.camera.far = distance + 20 * this.radius;
    } else {
      const half = this.halfHeight;
      Object.assign(this.camera, { left: -half * aspect, right: half * aspect, top: half, bottom: -half });
      this.camera.near = -20 * this.radius;
      this.camera.far = distance + 20 * this.radius;
    }
    this.camera.updateProjectionMatrix();
    this.redraw();
  }

  /** Show everything, from the present direction or from a given one. */
  fit(direction?: THREE.Vector3): void {
    const turn = new THREE.Quaternion().setFromUnitVectors(Z, this.up);
    const now = this.away;
    const from =
      direction ??
      (now.lengthSq() > 1e-12 && this.fitted ? now : new THREE.Vector3(0.5, -1, 0.42).applyQuaternion(turn));
    this.fitted = true;
    this.camera.up.copy(this.up);
    this.orbit.target.copy(this.center);
    const { distance, half } = this.needed(from);
    this.camera.position.copy(this.center).addScaledVector(from.clone().normalize(), distance);
    this.halfHeight = half;
    if (this.camera instanceof THREE.OrthographicCamera) this.camera.zoom = 1;
    this.reach(distance);
    this.orbit.update();
    this.project();
  }

  /** Bounds of the distance of the camera; in a page of some pixels everything is seen from far away only. */
  private reach(distance: number): void {
    this.orbit.minDistance = 0.05 * this.radius;
    this.orbit.maxDistance = Math.max(30 * this.radius, 2 * distance);
  }

  private corners(): THREE.Vector3[] {
    const { min, max } = this.box;
    return [...Array(8).keys()].map(
      (k) => new THREE.Vector3(k & 1 ? min.x : max.x, k & 2 ? min.y : max.y, k & 4 ? min.z : max.z),
    );
  }

  /** Distance of the camera, and half of the height [m] of an orthographic view, that show everything. */
  private needed(from: THREE.Vector3): { distance: number; half: number } {
    const toward = from.clone().normalize();
    const right = new THREE.Vector3().crossVectors(this.up, toward);
    if (right.lengthSq() < 1e-9) right.crossVectors(Y, toward);
    right.normalize();
    const upward = new THREE.Vector3().crossVectors(toward, right);
    const { height } = this.size;
    const free = { x: (0.94 * this.free().width) / height, y: (0.94 * this.free().height) / height };
    const tan = Math.tan((FOV * Math.PI) / 360);
    let distance = 1e-6;
    let half = 1e-6;
    for (const corner of this.corners()) {
      corner.sub(this.center);
      const needed = Math.max(Math.abs(corner.dot(right)) / free.x, Math.abs(corner.dot(upward)) / free.y);
      distance = Math.max(distance, corner.dot(toward) + needed / tan);
      half = Math.max(half, needed);
    }
    return { distance, half };
  }

  /** Forget the direction of the last mechanism. */
  unfit(): void {
    this.fitted = false;
  }

  /** Turn to a direction, given in axes whose z is up. */
  look(direction: Triple): void {
    const turn = new THREE.Quaternion().setFromUnitVectors(Z, this.up);
    const to = new THREE.Vector3(...direction).applyQuaternion(turn).normalize();
    const from = this.away.normalize();
    this.glide = { from, to, began: performance.now() };
    this.redraw();
  }

  get orthographic(): boolean {
    return this.camera instanceof THREE.OrthographicCamera;
  }

  set orthographic(on: boolean) {
    if (on === this.orthographic) return;
    const old = this.camera;
    const distance = old.position.distanceTo(this.orbit.target);
    if (on) {
      this.halfHeight = distance * Math.tan((FOV * Math.PI) / 360);
      this.camera = new THREE.OrthographicCamera();
    } else {
      this.camera = new THREE.PerspectiveCamera(FOV, 1, 0.01, 100);
    }
    this.camera.up.copy(old.up);
    this.camera.position.copy(old.position);
    if (!on && old instanceof THREE.OrthographicCamera) {
      const seen = this.halfHeight / old.zoom / Math.tan((FOV * Math.PI) / 360);
      this.camera.position.sub(this.orbit.target).setLength(seen).add(this.orbit.target);
    }
    this.orbit.object = this.camera;
    this.orbit.update();
    this.project();
  }

  /** Metres of one pixel at a point. */
  pixel(at: THREE.Vector3): number {
    if (this.camera instanceof THREE.OrthographicCamera) {
      return (2 * this.halfHeight) / this.camera.zoom / this.size.height;
    }
    const depth = at.clone().sub(this.camera.position).dot(this.camera.getWorldDirection(new THREE.Vector3()));
    return (2 * Math.tan((FOV * Math.PI) / 360) * Math.max(depth, 1e-9)) / this.size.height;
  }

  /** Place on the canvas [CSS pixels], or null behind the camera. */
  screen(at: THREE.Vector3): [number, number] | null {
    this.camera.updateMatrixWorld(); // three.js does so only when it draws
    const v = at.clone().project(this.camera);
    if (v.z > 1) return null;
    return [((v.x + 1) / 2) * this.size.width, ((1 - v.y) / 2) * this.size.height];
  }

  /** The place of a pointer event on the canvas [CSS pixels]. */
  at(event: PointerEvent): [number, number] {
    return [event.clientX - this.corner.x, event.clientY - this.corner.y];
  }

  aim(x: number, y: number): THREE.Ray {
    this.camera.updateMatrixWorld();
    const ndc = new THREE.Vector2((x / this.size.width) * 2 - 1, 1 - (y / this.size.height) * 2);
    this.caster.setFromCamera(ndc, this.camera);
    return this.caster.ray;
  }

  /** Turn the view by keys: to the right and upward. */
  orbitBy(x: number, y: number): void {
    const step = Math.PI / 24;
    const from = this.away;
    const side = new THREE.Vector3().crossVectors(this.up, from).normalize();
    const height = from.angleTo(this.up);
    from.applyAxisAngle(this.up, x * step);
    const lift = Math.min(Math.max(height - y * step, 0.02), Math.PI - 0.02) - height;
    from.applyAxisAngle(side.applyAxisAngle(this.up, x * step), lift);
    this.camera.position.copy(this.orbit.target).add(from);
    this.orbit.update();
    this.redraw();
  }

  /** Go nearer or farther by a factor of the distance. */
  zoomBy(factor: number): void {
    if (this.camera instanceof THREE.OrthographicCamera) {
      this.camera.zoom /= factor;
      this.camera.updateProjectionMatrix();
    } else this.camera.position.sub(this.orbit.target).multiplyScalar(factor).add(this.orbit.target);
    this.orbit.update();
    this.redraw();
  }
}
