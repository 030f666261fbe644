// Meshes of the server as geometries: the meshes of one part are one geometry, with colours at its vertices.

import * as THREE from 'three';
import type { Color, MeshData } from './wire';

export function merge(meshes: [MeshData, Color][]): {
  faces: THREE.BufferGeometry;
  edges: THREE.BufferGeometry | null;
} {
  const vertices = meshes.reduce((n, [m]) => n + m.vertices.length, 0);
  const corners = meshes.reduce((n, [m]) => n + m.faces.length, 0);
  const ends = meshes.reduce((n, [m]) => n + m.edges.length, 0);
  const position = new Float32Array(vertices);
  const normal = new Float32Array(vertices);
  const color = new Float32Array(vertices);
  const index = new Uint32Array(corners);
  const lines = new Uint32Array(ends);
  const tint = new THREE.Color();
  let v = 0;
  let f = 0;
  let e = 0;
  for (const [mesh, rgba] of meshes) {
    position.set(mesh.vertices, v);
    normal.set(mesh.normals, v);
    tint.setRGB(rgba[0], rgba[1], rgba[2], THREE.SRGBColorSpace);
    for (let k = v; k < v + mesh.vertices.length; k += 3) tint.toArray(color, k);
    for (const k of mesh.faces) index[f++] = k + v / 3;
    for (const k of mesh.edges) lines[e++] = k + v / 3;
    v += mesh.vertices.length;
  }
  const faces = new THREE.BufferGeometry();
  const positions = new THREE.BufferAttribute(position, 3);
  faces.setAttribute('position', positions);
  faces.setAttribute('normal', new THREE.BufferAttribute(normal, 3));
  faces.setAttribute('color', new THREE.BufferAttribute(color, 3));
  faces.setIndex(new THREE.BufferAttribute(index, 1));
  faces.computeBoundingSphere();
  if (!ends) return { faces, edges: null };
  const edges = new THREE.BufferGeometry();
  edges.setAttribute('position', positions);
  edges.setIndex(new THREE.BufferAttribute(lines, 1));
  return { faces, edges };
}
