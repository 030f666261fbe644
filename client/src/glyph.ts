// Marks of joints, by kind.

import * as THREE from 'three';
import type { Place, Triple } from './wire';

const JOINT_COLORS: Record<string, number> = {
  revolute: 0xe8833a,
  prismatic: 0x3a9d7c,
  cylindrical: 0x3a8fb0,
  screw: 0x3a8fb0,
  spherical: 0x8a63c9,
  universal: 0xb0569b,
  planar: 0x5a7fb8,
  fixed: 0x7b8794,
};

export function pose(node: THREE.Object3D, place: Place): void {
  const [w, x, y, z] = place.quaternion;
  node.position.set(...place.origin);
  node.quaternion.set(x, y, z, w);
}

/** The mark of a joint: axes, rings and arrows that show what it leaves free; z is its axis. */
export function glyph(kind: string, size: number): THREE.Object3D {
  const points: number[] = [];
  const line = (...p: number[]) => points.push(...p.map((x) => x * size));
  const ring = (radius: number, at: (c: number, s: number) => Triple) => {
    for (let k = 0; k < 32; k++) {
      const [a, b] = [k, k + 1].map((i) => (2 * Math.PI * i) / 32);
      line(...at(radius * Math.cos(a), radius * Math.sin(a)), ...at(radius * Math.cos(b), radius * Math.sin(b)));
    }
  };
  const tip = (z: number, s: number) => {
    for (const [x, y] of [
      [0.25, 0],
      [-0.25, 0],
      [0, 0.25],
      [0, -0.25],
    ])
      line(0, 0, z, x, y, z - 0.4 * s);
  };
  const flat = (c: number, s: number): Triple => [c, s, 0];
  if (kind === 'revolute' || kind === 'cylindrical' || kind === 'screw') {
    ring(0.8, flat);
    line(0, 0, -1.4, 0, 0, 1.4);
  }
  if (kind === 'prismatic' || kind === 'cylindrical' || kind === 'screw') {
    line(0, 0, -1.6, 0, 0, 1.6);
    tip(1.6, 1);
    tip(-1.6, -1);
  }
  if (kind === 'spherical') {
    ring(0.8, flat);
    ring(0.8, (c, s) => [c, 0, s]);
    ring(0.8, (c, s) => [0, c, s]);
  }
  if (kind === 'universal') {
    line(-1, 0, 0, 1, 0, 0, 0, -1, 0, 0, 1, 0);
    ring(0.6, (c, s) => [c, 0, s]);
    ring(0.6, (c, s) => [0, c, s]);
  }
  if (kind === 'planar' || kind === 'point_in_plane') {
    line(-1, -1, 0, 1, -1, 0, 1, -1, 0, 1, 1, 0, 1, 1, 0, -1, 1, 0, -1, 1, 0, -1, -1, 0);
  }
  if (!points.length) {
    for (const [x, y] of [
      [-0.6, -0.6],
      [0.6, -0.6],
      [0.6, 0.6],
      [-0.6, 0.6],
    ]) {
      line(x, y, -0.6, x, y, 0.6, x, y, -0.6, -y, x, -0.6, x, y, 0.6, -y, x, 0.6);
    }
  }
  const geometry = new THREE.BufferGeometry().setAttribute('position', new THREE.Float32BufferAttribute(points, 3));
  const color = JOINT_COLORS[kind] ?? 0x7b8794;
  const node = new THREE.LineSegments(
    geometry,
    new THREE.LineBasicMaterial({ color, depthTest: false, transparent: true }),
  );
  node.renderOrder = 8;
  return node;
}
