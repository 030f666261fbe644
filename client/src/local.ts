// A connection that answers in the page itself, in place of a server: parts are dragged without Python.

import { value as coordinateValue } from './coordinates';
import { Cycles, type ImageData, MOVING, STUCK } from './cycles';
import { Kernels } from './kernels';
import type { Message, Socket } from './link';
import * as wire from './wire';

/** What the file carries (cardan/view/draggable.py); binary values are compressed, base64. */
export interface LocalData {
  kernels: Record<string, string>;
  images: (Omit<ImageData, 'data'> & { data: string })[]; // of a session without drivers, and of one that has them
  first: ({ text: string } | { data: string })[]; // what a server says when a page opens
}

const STIFFNESS = 1000; // [N/m], as cardan/view/hand.py
const MOST_STEPS = 20; // of one answer
const MOST_MS = 4; // the same
const PULL_MS = 8; // between steps towards a target that does not move
const LONGEST_PULL = 3000; // ms
const REACHED = 1e-4; // of the extent
const MOST_KEPT = 1 << 26; // bytes of the poses before
const OFFERED = ['drag', 'drop', 'drive', 'undo', 'reset', 'keep', 'pose'];

export class Local implements Socket {
  readyState: Socket['readyState'] = 0;
  binaryType: BinaryType = 'arraybuffer';
  onopen: Socket['onopen'] = null;
  onmessage: Socket['onmessage'] = null;
  onclose: Socket['onclose'] = null;
  private cycles!: Cycles; // that are at work
  private sessions: Cycles[] = []; // without drivers, and with them
  private coordinates: wire.CoordinateData[] = [];
  private drivers: wire.Driver[] = [];
  private start!: Kept;
  private before: Kept[] = [];
  private readonly poses = new Map<string, Kept>();
  private held = new Map<number, number>(); // limits that hold, and their sides
  private isStuck = false;
  private grasped = ''; // body and point
  private isHolding = false;
  private target: wire.Triple = [0, 0, 0];
  private ack = 0;
  private timer = 0;
  private until = 0; // when the hand gives up a target that it does not reach

  constructor(private readonly given: LocalData) {
    void this.open();
  }

  private async open(): Promise<void> {
    try {
      if (typeof WebAssembly === 'undefined')
        throw new Error('this browser has no WebAssembly, or the page may not use it');
      const images: ImageData[] = [];
      for (const image of this.given.images) images.push({ ...image, data: await unpack(image.data) });
      const kernels: Record<string, Uint8Array> = {};
      for (const [key, text] of Object.entries(this.given.kernels)) kernels[key] = await unpack(text);
      const bytes = images.reduce((sum, image) => sum + image.data.length + 16, 0);
      const loaded = await Kernels.load(kernels, bytes);
      this.sessions = images.map((image) => new Cycles(loaded, image));
      this.cycles = this.sessions[0];
      this.start = this.now();
      this.readyState = 1;
      this.onopen?.call(this as unknown as WebSocket, new Event('open'));
      await this.tellFirst();
    } catch (error) {
      this.readyState = 1; // the scene is shown all the same
      this.onopen?.call(this as unknown as WebSocket, new Event('open'));
      await this.tellFirst();
      this.problem('Parts cannot be dragged here', error instanceof Error ? error.message : String(error), 0, 'error');
    }
  }

  private async tellFirst(): Promise<void> {
    for (const one of this.given.first) {
      if ('text' in one) {
        const message = JSON.parse(one.text);
        if (message.is === 'model') ({ coordinates: this.coordinates, drivers: this.drivers } = message as wire.Model);
        this.tell(one.text);
      } else this.tell((await unpack(one.data)).buffer as ArrayBuffer);
    }
    this.tell({ is: 'offers', commands: OFFERED, reason: 'it needs Python: open the model with “cardan view”' });
    this.tell({ is: 'undo', possible: false });
    this.tell({ is: 'progress', text: null });
  }

  send(text: string): void {
    const message = JSON.parse(text) as Message;
    const { seq = 0 } = message;
    if (!this.cycles) return;
    this.ack = seq;
    switch (message.do) {
      case 'drag':
        this.drag(message as unknown as Drag);
        break;
      case 'drop':
        this.drop();
        break;
      case 'drive':
        this.drive(String(message.driver), Number(message.value));
        break;
      case 'undo':
        if (this.before.length) this.back(this.before.pop()!);
        this.tell({ is: 'undo', possible: this.before.length > 0 });
        break;
      case 'reset':
        this.remember();
        this.back(this.start);
        break;
      case 'keep':
        this.poses.set(String(message.name), this.now());
        this.tell({ is: 'poses', names: [...this.poses.keys()] });
        break;
      case 'pose':
        this.remember();
        this.back(this.poses.get(String(message.name)) ?? this.start);
        break;
      case 'stop':
        break;
      default:
        this.problem(`“${message.do}” was not possible`, 'This needs Python: open the model with “cardan view”.', seq);
    }
  }

  // -- the hand ------------------------------------------------------------------------------------------------------

  private drag({ body, point, target, push }: Drag): void {
    if (push) {
      this.problem('Forces need Python', 'Here parts follow the hand; open the model with “cardan view”.', this.ack);
      return;
    }
    const of = `${body} ${point}`;
    if (!this.isHolding) this.remember();
    this.work(this.sessions[0]);
    this.isHolding = true;
    if (this.grasped !== of) {
      this.cycles.grasp(body, point, STIFFNESS);
      this.grasped = of;
    }
    this.target = target;
    this.cycles.aim(target);
    this.until = performance.now() + LONGEST_PULL;
    this.follow();
  }

  private drive(driver: string, value: number): void {
    if (this.cycles !== this.sessions[1]) this.remember();
    this.work(this.sessions[1]);
    this.cycles.drive(driver, value);
    this.until = performance.now() + LONGEST_PULL;
    this.follow();
  }

  /** Let a session go on from the pose of the one that was at work. */
  private work(session: Cycles): void {
    if (session === this.cycles) return;
    this.letGo();
    session.enter(this.cycles, (name, near) => this.measured(name, near));
    this.cycles = session;
    this.held.clear();
    this.tellStops();
  }

  /** The value of a driver's coordinate, or of the angle of a joint, in the pose now. */
  private measured(name: string, near: number): number {
    const driver = this.drivers.find((one) => one.name === name);
    const found = driver?.coordinate ?? this.coordinates.find((one) => one.joint === name && one.unit === 'rad');
    return found ? coordinateValue(found, this.cycles.poses, near) : near;
  }

  /** Cycles towards the target, as Drag.step and Bench of cardan/view. */
  private follow(): void {
    clearTimeout(this.timer);
    const began = performance.now();
    let status = MOVING;
    for (let k = 1; k <= MOST_STEPS; k++) {
      status = this.cycles.step();
      if (status !== MOVING || (performance.now() - began) * (k + 1) > MOST_MS * k) break;
    }
    const isOn = status === MOVING && performance.now() < this.until;
    if (isOn) this.timer = window.setTimeout(() => this.follow(), PULL_MS);
    this.hear(status === STUCK);
    this.show(performance.now() - began, isOn);
  }

  private hear(isStuck: boolean): void {
    let isNew = isStuck !== this.isStuck;
    this.isStuck = isStuck;
    this.cycles.hear((limit, holds, side) => {
      isNew = true;
      if (holds) this.held.set(limit, side);
      else this.held.delete(limit);
    });
    if (isNew) this.tellStops();
  }

  private tellStops(): void {
    const texts = [...this.held].map(([limit, side]) => {
      const [lower, upper] = this.cycles.image.limits[limit];
      return side < 0 ? lower : upper;
    });
    if (this.isStuck && this.cycles.image.stuck) texts.push(this.cycles.image.stuck);
    this.tell({ is: 'stops', texts });
  }

  private drop(): void {
    this.letGo();
    this.show(0, false);
  }

  private letGo(): void {
    clearTimeout(this.timer);
    if (this.grasped) this.cycles.release();
    this.grasped = '';
    this.isHolding = false;
  }

  // -- poses before --------------------------------------------------------------------------------------------------

  private remember(): void {
    this.letGo();
    const bytes = this.start.memories.reduce((sum, one) => sum + one.length, 0);
    const most = Math.max(1, Math.floor(MOST_KEPT / bytes));
    this.before = [...this.before, this.now()].slice(-most);
    this.tell({ is: 'undo', possible: true });
  }

  private now(): Kept {
    const memories = this.sessions.map((session) => session.snapshot());
    return { memories, active: this.sessions.indexOf(this.cycles), held: new Map(this.held) };
  }

  private back(kept: Kept): void {
    this.letGo();
    this.sessions.forEach((session, k) => {
      session.restore(kept.memories[k]);
    });
    this.cycles = this.sessions[kept.active];
    this.held = new Map(kept.held);
    this.isStuck = false;
    this.tellStops();
    this.show(0, false);
  }

  // -- messages ------------------------------------------------------------------------------------------------------

  private show(milliseconds: number, isOn: boolean): void {
    const { cycles } = this;
    const none: wire.Triple = [Number.NaN, Number.NaN, Number.NaN];
    const isHeld = this.grasped !== '';
    const point = isHeld ? cycles.point : none;
    const far = isHeld ? Math.hypot(...point.map((x, i) => x - this.target[i])) : 0;
    const flags =
      (isHeld ? wire.GRASPED : 0) |
      (far > REACHED * this.cycles.image.extent ? wire.SHORT : 0) |
      (this.held.size ? wire.STOPPED : 0) |
      (isOn ? wire.MOVING : 0);
    const numbers = [0, cycles.residual, milliseconds, ...(isHeld ? cycles.force : none), ...point, Number.NaN];
    this.tell(wire.writeFrame(this.ack, flags, numbers, cycles.poses));
  }

  private problem(title: string, text: string, ack: number, level = 'info'): void {
    this.tell({ is: 'problem', title, text, level, ack });
  }

  private tell(data: string | ArrayBuffer | Record<string, unknown>): void {
    const sent = typeof data === 'string' || data instanceof ArrayBuffer ? data : JSON.stringify(data);
    this.onmessage?.call(this as unknown as WebSocket, new MessageEvent('message', { data: sent }));
  }
}

/** A pose to return to. */
interface Kept {
  memories: Uint8Array[]; // of all sessions
  active: number; // which of them was at work
  held: Map<number, number>;
}

interface Drag {
  body: number;
  point: wire.Triple;
  target: wire.Triple;
  push: boolean;
}

const unpack = (text: string) => wire.gunzip(wire.fromBase64(text));
