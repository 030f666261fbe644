// Coordinates of the joints in the poses that are drawn.

import * as coordinates from './coordinates';
import { keyOf } from './line';
import type { CoordinateData } from './wire';

export class Values {
  all: number[] = []; // [rad] or [m], as the model lists them; empty until they are computed
  private list: CoordinateData[] = [];
  private readonly ofJoint = new Map<string, number[]>();
  private byKey = new Map<string, number>(); // number of a coordinate by the key of its line in a plot

  /** Take the coordinates of another model. */
  set(list: CoordinateData[]): void {
    this.list = list;
    this.all = [];
    this.ofJoint.clear();
    list.forEach((c, k) => {
      this.ofJoint.set(c.joint, [...(this.ofJoint.get(c.joint) ?? []), k]);
    });
    this.byKey = new Map(list.map((c, k) => [keyOf(this.nameOf(c), c.kind), k]));
  }

  /** Forget the whole turns that were counted. */
  restart(): void {
    this.all = [];
  }

  update(poses: Float32Array): void {
    this.list.forEach((c, k) => {
      this.all[k] = coordinates.value(c, poses, this.all[k]);
    });
  }

  /** Those of a joint, for people. */
  text(joint: string): string {
    return (this.ofJoint.get(joint) ?? [])
      .map((k) => coordinates.show(this.all[k], this.list[k].unit))
      .filter(Boolean)
      .join(', ');
  }

  /** By the key of a line, in given poses. */
  live(key: string, poses: Float32Array): number | undefined {
    const found = this.byKey.get(key);
    return found === undefined ? undefined : coordinates.value(this.list[found], poses, this.all[found]);
  }

  /** The value whose rate a line shows: "hinge|rate" is that of "hinge|angle". */
  ofRate(key: string, value: (key: string) => number | undefined): number | undefined {
    const of = key.slice(0, key.lastIndexOf('|'));
    const c = this.list.find((one) => this.nameOf(one) === of);
    return c && value(keyOf(of, c.kind));
  }

  /** As plots call it: the joint, and the coordinate where the joint has several. */
  nameOf(c: CoordinateData): string {
    const several = this.ofJoint.get(c.joint)!.length > 1;
    return several && c.name !== 'angle' ? `${c.joint}.${c.name}` : c.joint;
  }
}
