// Coordinates of joints from the poses of a frame: cardan/joints/coordinates.py, for reading only.

import type { CoordinateData, Feature, Triple } from './wire';

/** A point or direction of a part in world; pose: x y z, w x y z at an offset. */
export function world(feature: Feature, poses: ArrayLike<number>): Triple {
  const [x, y, z] = feature.value;
  if (feature.body < 0) return [x, y, z];
  const o = 7 * feature.body;
  const [w, a, b, c] = [poses[o + 3], poses[o + 4], poses[o + 5], poses[o + 6]];
  const [p, q, r] = [2 * (b * z - c * y), 2 * (c * x - a * z), 2 * (a * y - b * x)];
  const v: Triple = [x + w * p + b * r - c * q, y + w * q + c * p - a * r, z + w * r + a * q - b * p];
  return feature.point ? [v[0] + poses[o], v[1] + poses[o + 1], v[2] + poses[o + 2]] : v;
}

const dot = (a: Triple, b: Triple) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const minus = (a: Triple, b: Triple): Triple => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const cross = (a: Triple, b: Triple): Triple => [
  a[1] * b[2] - a[2] * b[1],
  a[2] * b[0] - a[0] * b[2],
  a[0] * b[1] - a[1] * b[0],
];
const size = (a: Triple) => Math.hypot(...a);

/** Its value [m] or [rad]; near: the value before, whose whole turns are kept. */
export function value(coordinate: CoordinateData, poses: ArrayLike<number>, near?: number): number {
  const at = coordinate.features.map((feature) => world(feature, poses));
  if (coordinate.kind === 'displacement') return dot(at[0], minus(at[2], at[1]));
  if (coordinate.kind === 'distance') return size(minus(at[1], at[0]));
  if (coordinate.kind === 'inclination') return Math.atan2(size(cross(at[0], at[1])), dot(at[0], at[1]));
  const angle = Math.atan2(dot(at[1], at[2]), dot(at[0], at[2]));
  return near === undefined ? angle : angle + 2 * Math.PI * Math.round((near - angle) / (2 * Math.PI));
}

/** Digits after the point; rounding does not show as −0. */
export function fixed(x: number, digits = 2): string {
  return x.toFixed(digits).replace(/^-(0\.0*)$/, '$1');
}

/** For people: degrees or millimetres. */
export function show(x: number, unit: string): string {
  if (!Number.isFinite(x)) return '–';
  if (unit === 'rad') return `${fixed((x * 180) / Math.PI, 1)}°`;
  if (unit === 'm') return Math.abs(x) < 10 ? `${fixed(1000 * x, 1)} mm` : `${fixed(x)} m`;
  return `${quantity(x)} ${unit}`;
}

/** Three or four digits, as people write them. */
export function quantity(x: number): string {
  const size = Math.abs(x);
  if (x === 0) return '0';
  if (size >= 1e5 || size < 1e-3) return x.toExponential(1);
  return x.toFixed(Math.max(0, 2 - Math.floor(Math.log10(size))));
}
