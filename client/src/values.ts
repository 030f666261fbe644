// Coordinates of the joints in the poses that are drawn.

import * as coordinates from './coordinates';
import { keyOf } from './line';
import type { Player } from './player';
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

  /** Take the values that the server has: whole turns are counted from these. */
  take(values: number[]): void {
    this.all = values;
  }

  /** In other poses; whole turns are those that a player has recorded, or of the values before. */
  update(poses: Float32Array, player: Player | null): void {
    this.list.forEach((c, k) => {
      this.all[k] = coordinates.value(c, poses, this.recorded(c, player) ?? this.all[k]);
    });
  }

  /** The value of a coordinate that a player has recorded. */
  recorded(c: CoordinateData, player: Player | null): number | undefined {
    return player?.value(this.nameOf(c), c.kind);
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
    const several = (this.ofJoint.get(c.joint)?.length ?? 0) > 1; // a driver may be without a joint
    return several && c.name !== 'angle' ? `${c.joint}.${c.name}` : c.joint;
  }
}
