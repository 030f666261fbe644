// Plays a clip: the time that is shown, and poses between two recorded ones.

import type { ClipData } from './wire';

/** The last index whose time is not above t, between 0 and n − 2. */
export function interval(times: number[], t: number): number {
  let low = 0;
  let high = Math.max(0, times.length - 2);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (times[middle] <= t) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Poses at a time: positions linear, rotations along the shorter way, normalised. */
export function blend(a: Float32Array, b: Float32Array, u: number, out: Float32Array): void {
  for (let o = 0; o < out.length; o += 7) {
    for (let k = 0; k < 3; k++) out[o + k] = a[o + k] * (1 - u) + b[o + k] * u;
    const d = a[o + 3] * b[o + 3] + a[o + 4] * b[o + 4] + a[o + 5] * b[o + 5] + a[o + 6] * b[o + 6];
    const sign = d < 0 ? -1 : 1;
    let norm = 0;
    for (let k = 3; k < 7; k++) {
      out[o + k] = a[o + k] * (1 - u) + sign * b[o + k] * u;
      norm += out[o + k] ** 2;
    }
    norm = Math.sqrt(norm) || 1;
    for (let k = 3; k < 7; k++) out[o + k] /= norm;
  }
}

export class Player {
  time = 0;
  speed = 1;
  playing = true;
  readonly poses: Float32Array;

  constructor(readonly clip: ClipData) {
    this.poses = new Float32Array(7 * clip.bodies);
    this.time = this.first;
    this.update();
  }

  get first(): number {
    return this.clip.times[0];
  }
  get last(): number {
    return this.clip.times[this.clip.times.length - 1];
  }

  /** Index of the recorded pose nearest to the time shown. */
  get index(): number {
    const k = interval(this.clip.times, this.time);
    const next = Math.min(k + 1, this.clip.times.length - 1);
    return this.clip.times[next] - this.time < this.time - this.clip.times[k] ? next : k;
  }

  /** A recorded value at the time shown, nearly; undefined where there is none. */
  value(of: string, what: string): number | undefined {
    return this.clip.series.find((s) => s.of === of && s.what === what)?.values[this.index];
  }

  /** Let seconds pass; false at the end. */
  advance(seconds: number): boolean {
    if (!this.playing) return true;
    this.time += Math.max(0, seconds) * this.speed;
    let goesOn = true;
    if (this.time >= this.last) {
      const span = this.last - this.first;
      if (this.clip.loop && span > 0) {
        this.time = this.first + ((this.time - this.first) % span);
      } else {
        this.time = this.last;
        this.playing = goesOn = false;
      }
    }
    this.update();
    return goesOn;
  }

  seek(time: number): void {
    this.time = Math.min(Math.max(time, this.first), this.last);
    this.update();
  }

  /** To the next or the previous recorded pose. */
  step(by: number): void {
    const { times } = this.clip;
    this.playing = false;
    this.seek(times[Math.min(Math.max(this.index + by, 0), times.length - 1)]);
  }

  private update(): void {
    const { times, poses } = this.clip;
    const k = interval(times, this.time);
    const next = Math.min(k + 1, times.length - 1);
    const span = times[next] - times[k];
    blend(poses[k], poses[next], span > 0 ? Math.min(1, Math.max(0, (this.time - times[k]) / span)) : 0, this.poses);
  }
}
