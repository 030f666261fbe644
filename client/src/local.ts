// A connection that answers in the page itself, in place of a server: parts are dragged without Python.

import { Cycles, type ImageData, MOVING, STUCK } from './cycles';
import { Kernels } from './kernels';
import type { Message, Socket } from './link';
import * as wire from './wire';

/** What the file carries (cardan/view/draggable.py); binary values are compressed, base64. */
export interface LocalData {
  kernels: Record<string, string>;
  image: Omit<ImageData, 'data'> & { data: string };
  first: ({ text: string } | { data: string })[]; // what a server says when a page opens
}

const STIFFNESS = 1000; // [N/m], as cardan/view/hand.py
const MOST_STEPS = 20; // of one answer
const MOST_MS = 4; // the same
const PULL_MS = 8; // between steps towards a target that does not move
const LONGEST_PULL = 3000; // ms
const REACHED = 1e-4; // of the extent
const MOST_KEPT = 1 << 26; // bytes of the poses before
const OFFERED = ['drag', 'drop', 'undo', 'reset', 'keep', 'pose'];

export class Local implements Socket {
  readyState: Socket['readyState'] = 0;
  binaryType: BinaryType = 'arraybuffer';
  onopen: Socket['onopen'] = null;
  onmessage: Socket['onmessage'] = null;
  onclose: Socket['onclose'] = null;
  private cycles!: Cycles;
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
      const data = await unpack(this.given.image.data);
      const kernels: Record<string, Uint8Array> = {};
      for (const [key, text] of Object.entries(this.given.kernels)) kernels[key] = await unpack(text);
      this.cycles = new Cycles(await Kernels.load(kernels, data.length), { ...this.given.image, data });
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
      if ('text' in one) this.tell(one.text);
      else this.tell((await unpack(one.data)).buffer as ArrayBuffer);
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
      const [lower, upper] = this.given.image.limits[limit];
      return side < 0 ? lower : upper;
    });
    if (this.isStuck && this.given.image.stuck) texts.push(this.given.image.stuck);
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
    const most = Math.max(1, Math.floor(MOST_KEPT / this.start.memory.length));
    this.before = [...this.before, this.now()].slice(-most);
    this.tell({ is: 'undo', possible: true });
  }

  private now(): Kept {
    return { memory: this.cycles.snapshot(), held: new Map(this.held) };
  }

  private back(kept: Kept): void {
    this.letGo();
    this.cycles.restore(kept.memory);
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
      (far > REACHED * this.given.image.extent ? wire.SHORT : 0) |
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
  memory: Uint8Array;
  held: Map<number, number>;
}

interface Drag {
  body: number;
  point: wire.Triple;
  target: wire.Triple;
  push: boolean;
}

const unpack = (text: string) => wire.gunzip(wire.fromBase64(text));
