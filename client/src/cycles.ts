// A kinematic session in the page: the kernels of Cardan on the image of its tables (cardan/interact/image.py).

import type { Kernels } from './kernels';
import type { Triple } from './wire';

/** Offsets of fields, in words; "" is the size of a record. */
export type Layout = Record<'hand' | 'control' | 'event', Record<string, number>>;

export interface ImageData {
  data: Uint8Array;
  places: Record<string, number>;
  addresses: number[]; // offsets of words that are offsets in the image
  floats: number[]; // of those that are floats
  functions: [number, string][]; // offsets of words that are addresses of kernels
  layout: Layout;
  sizes: number[]; // radius of gyration of each body in the metric of the session [m]
  extent: number; // [m]
  limits: [string, string][]; // of each stop: in words, at its lower and at its upper bound
  stuck: string; // said where no step is possible; empty if there are no contacts
  angles: string[]; // names of the numbers behind the poses in q
  signals: number[]; // offsets of the values of drivers
  drivers: string[];
}

export const MOVING = 2; // statuses of a cycle (interact/tables.py)
export const STUCK = 4;
const POINT = 1; // a kind of hand
const LIMIT_REACHED = 1; // kinds of events
const LIMIT_LEFT = 2;
const MOST_EVENTS = 256;
const WARM = 30; // cycles: an engine compiles what runs often

type Quaternion = [number, number, number, number];

export class Cycles {
  readonly poses: Float64Array; // x y z, w x y z of each body
  private readonly memory: Uint8Array;
  private readonly control: Float64Array;
  private readonly hand: Float64Array;
  private readonly frames: Float64Array;
  private readonly origin: Float64Array;
  private readonly events: Float64Array;
  private readonly vectors: [Float64Array, Float64Array];
  private readonly q: Float64Array; // of the reference frames from the origin, then numbers with the names of angles
  private readonly goals: Float64Array; // of each driver: its value to be reached, and that of the pose
  private readonly signals: Float64Array[];
  private readonly cycle: () => bigint;
  private told = 0; // events that were read
  private lastResidual = 0;

  constructor(
    kernels: Kernels,
    readonly image: ImageData,
  ) {
    const at = kernels.take(image.data.length);
    const { buffer } = kernels.memory;
    const { data, places, addresses, floats: moved, functions, layout } = image;
    this.memory = new Uint8Array(buffer, at, data.length);
    this.memory.set(data);
    const words = new DataView(buffer);
    for (const p of addresses) words.setBigInt64(at + p, words.getBigInt64(at + p, true) + BigInt(at), true);
    for (const p of moved) words.setFloat64(at + p, words.getFloat64(at + p, true) + at, true);
    for (const [p, key] of functions) words.setBigInt64(at + p, BigInt(kernels.number(key)), true);
    const floats = (place: string, count: number) => new Float64Array(buffer, at + places[place], count);
    this.poses = floats('poses', 7 * image.sizes.length);
    this.frames = floats('frames', 7 * image.sizes.length);
    this.origin = floats('origin', 3);
    this.control = floats('control', layout.control['']);
    this.hand = floats('hands', layout.hand['']);
    this.events = floats('events', MOST_EVENTS * layout.event['']);
    this.vectors = [floats('first_v', 6 * image.sizes.length), floats('noise', 6 * image.sizes.length)];
    this.q = floats('q', 7 * image.sizes.length + image.angles.length);
    this.goals = floats('goals', 2 * image.drivers.length);
    this.signals = image.signals.map((place) => new Float64Array(buffer, at + place, 1));
    const key = functions.find(([p]) => p === places.table)![1];
    const run = kernels.run(key);
    const [table, control, q, work] = ['table', 'control', 'q', 'work'].map((name) => at + places[name]);
    this.cycle = () => run(0n, table, control, q, control, control, control, work);
    this.warm();
  }

  /** Begin in the pose of another session of the same bodies.  measure: a driven coordinate, or an angle by its name. */
  enter(other: Cycles, measure: (name: string, near: number) => number): void {
    this.poses.set(other.poses);
    const count = this.image.sizes.length;
    for (let k = 0; k < count; k++) {
      const [x, y, z, w, a, b, c] = this.poses.subarray(7 * k, 7 * k + 7);
      const frame = this.frames.subarray(7 * k, 7 * k + 7);
      const arm = rotate([w, a, b, c], [frame[0], frame[1], frame[2]]);
      this.q.set([x + arm[0] - this.origin[0], y + arm[1] - this.origin[1], z + arm[2] - this.origin[2]], 7 * k);
      this.q.set(product([w, a, b, c], [frame[3], frame[4], frame[5], frame[6]]), 7 * k + 3);
    }
    this.image.angles.forEach((name, k) => {
      const theirs = other.image.angles.indexOf(name);
      const at = 7 * count + k;
      this.q[at] = theirs < 0 ? measure(name, this.q[at]) : other.q[7 * count + theirs];
    });
    this.image.drivers.forEach((name, k) => {
      const value = measure(name, this.goals[2 * k]);
      this.goals[2 * k] = this.goals[2 * k + 1] = this.signals[k][0] = value;
    });
    this.told = this.of('event_count');
    this.reset();
  }

  /** Set the value that a driver is to reach [m or rad]. */
  drive(driver: string, value: number): void {
    this.goals[2 * this.image.drivers.indexOf(driver)] = value;
  }

  /** One cycle; its status. */
  step(): number {
    return Number(this.cycle());
  }

  /** The largest residual of a joint, of the last pose for which it is a number. */
  get residual(): number {
    const found = this.control[this.image.layout.control.residual];
    if (Number.isFinite(found)) this.lastResidual = found;
    return this.lastResidual;
  }

  /** Everything: to return to it bitwise. */
  snapshot(): Uint8Array {
    return this.memory.slice();
  }

  restore(kept: Uint8Array): void {
    this.memory.set(kept);
    this.told = this.of('event_count');
    this.reset();
  }

  /** Forget what earlier cycles stored, as Session._reset. */
  reset(): void {
    const { control } = this.image.layout;
    for (const name of ['linearized', 'sigma', 'probed', 'curved', 'mixes', 'walked', 'redundant']) {
      this.control[control[name]] = 0;
    }
    this.control[control.trust] = 1;
    this.vectors[0].set(this.vectors[1]);
  }

  /** Take hold of a point of a body [m], as Session.grasp. */
  grasp(body: number, local: Triple, stiffness: number): void {
    const { layout, sizes } = this.image;
    const at = layout.hand;
    const frame = this.frames.subarray(7 * body, 7 * body + 7);
    const back: Quaternion = [frame[3], -frame[4], -frame[5], -frame[6]];
    const p = this.poses.subarray(7 * body, 7 * body + 7);
    const now = [...this.pointOf(body, local).map((x, i) => x - this.origin[i]), ...p.subarray(3)];
    this.hand.fill(0);
    this.hand[at.body] = body;
    this.hand.set(rotate(back, local.map((x, i) => x - frame[i]) as Triple), at.local);
    this.hand.set(back, at.frame);
    this.hand[at.stiffness] = stiffness;
    this.hand[at.twist] = stiffness * sizes[body] ** 2;
    for (const place of [at.now, at.target, at.asked]) this.hand.set(now, place);
    this.hand[at.kind] = POINT;
    this.control[layout.control.probed] = 0;
  }

  /** Where the hand is to go [m]. */
  aim(target: Triple): void {
    const at = this.image.layout.hand;
    target.forEach((x, i) => {
      this.hand[at.asked + i] = x - this.origin[i];
    });
    this.hand[at.version] += 2;
  }

  release(): void {
    this.hand[this.image.layout.hand.kind] = 0;
    this.reset();
  }

  /** The grasped point [m]. */
  get point(): Triple {
    const at = this.image.layout.hand.now;
    return [0, 1, 2].map((i) => this.hand[at + i] + this.origin[i]) as Triple;
  }

  /** Of the mechanism on the hand [N]. */
  get force(): Triple {
    const at = this.image.layout.hand.force;
    return [0, 1, 2].map((i) => this.hand[at + i]) as Triple;
  }

  /** Calls for each limit that was reached or left since the last call: its number, whether it holds, and its side, −1 or 1. */
  hear(tell: (limit: number, holds: boolean, side: number) => void): void {
    const { event } = this.image.layout;
    const count = this.of('event_count');
    for (let k = Math.max(this.told, count - MOST_EVENTS); k < count; k++) {
      const row = this.events.subarray((k % MOST_EVENTS) * event[''], ((k % MOST_EVENTS) + 1) * event['']);
      const kind = row[event.kind];
      if (kind === LIMIT_REACHED || kind === LIMIT_LEFT) {
        tell(row[event.number], kind === LIMIT_REACHED, row[event.value]);
      }
    }
    this.told = count;
  }

  private of(name: string): number {
    return this.control[this.image.layout.control[name]];
  }

  private pointOf(body: number, local: Triple): Triple {
    const p = this.poses.subarray(7 * body, 7 * body + 7);
    const q: Quaternion = [p[3], p[4], p[5], p[6]];
    return rotate(q, local).map((x, i) => x + p[i]) as Triple;
  }

  /** Cycles of a hand that stays where it is, which are then taken back. */
  private warm(): void {
    if (!this.image.sizes.length) return;
    const kept = this.snapshot();
    this.grasp(0, [0, 0, 0], 1);
    for (let k = 0; k < WARM; k++) {
      this.aim(this.point.map((x) => x + (k % 2 ? 1e-6 : -1e-6) * this.image.extent) as Triple);
      this.step();
    }
    this.memory.set(kept);
  }
}

/** The quaternion of one rotation after another. */
export function product([w, x, y, z]: Quaternion, [a, b, c, d]: Quaternion): Quaternion {
  return [
    w * a - x * b - y * c - z * d,
    w * b + x * a + y * d - z * c,
    w * c - x * d + y * a + z * b,
    w * d + x * c - y * b + z * a,
  ];
}

export function rotate([w, x, y, z]: Quaternion, [a, b, c]: Triple): Triple {
  const u = 2 * (y * c - z * b);
  const v = 2 * (z * a - x * c);
  const t = 2 * (x * b - y * a);
  return [a + w * u + y * t - z * v, b + w * v + z * u - x * t, c + w * t + x * v - y * u];
}
