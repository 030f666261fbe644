// Faces of a CAD part: which triangle belongs to which, and a face in colour.

import * as THREE from 'three';

/** runs: [face, number of triangles] in the order of the triangles of a part. */
export type Runs = [number, number][];

/** The face to which a triangle belongs; −1 where there is none. */
export function faceOf(runs: Runs, triangle: number): number {
  let first = 0;
  for (const [face, count] of runs) {
    if (triangle < first + count) return triangle < first ? -1 : face;
    first += count;
  }
  return -1;
}

/** Corners of the triangles of a face: indices of vertices. */
export function cornersOf(runs: Runs, face: number, index: ArrayLike<number>): number[] {
  const found: number[] = [];
  let first = 0;
  for (const [one, count] of runs) {
    if (one === face) for (let k = 3 * first; k < 3 * (first + count); k++) found.push(index[k]);
    first += count;
  }
  return found;
}

const SEEN = 0.75; // opacity of a coloured face
const HIDDEN = 0.12; // where something is in front of it: a bore is seen from outside too, but behind the rest

/** A face of a part over its own colour, and faintly through what is in front of it. */
export function colored(geometry: THREE.BufferGeometry, runs: Runs, face: number, color: number): THREE.Group {
  const shape = new THREE.BufferGeometry();
  shape.setAttribute('position', geometry.getAttribute('position'));
  shape.setAttribute('normal', geometry.getAttribute('normal'));
  shape.setIndex(cornersOf(runs, face, geometry.getIndex()!.array));
  const common = { color, transparent: true, depthWrite: false, side: THREE.DoubleSide };
  const found = new THREE.Group();
  for (const [opacity, depthFunc] of [
    [SEEN, THREE.LessEqualDepth],
    [HIDDEN, THREE.GreaterDepth],
  ] as const) {
    const mesh = new THREE.Mesh(shape, new THREE.MeshBasicMaterial({ ...common, opacity, depthFunc }));
    mesh.renderOrder = 6;
    found.add(mesh);
  }
  return found;
}
