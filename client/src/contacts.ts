// Contacts in the drawing: a point, and the normal of the first shape; red where the contact is lost.

import * as THREE from 'three';

const FLOATS = 7; // of a contact in a frame: point, normal, 0 or 1 where it is lost
const LENGTH = 0.08; // of the extent: the normal
const RADIUS = 0.006;
const TOUCHING = 0x12a150;
const LOST = 0xd23b45;

export class Contacts {
  readonly node = new THREE.Group();
  private readonly ball = new THREE.SphereGeometry(1, 16, 10);
  private readonly line = new THREE.BufferGeometry().setAttribute(
    'position',
    new THREE.Float32BufferAttribute([0, 0, 0, 0, 0, 1], 3),
  );
  private marks: { node: THREE.Group; material: THREE.MeshBasicMaterial; lines: THREE.LineBasicMaterial }[] = [];

  constructor(private readonly extent: () => number) {}

  /** Rows of a frame: point [m], normal, and whether it is lost; null: none are known. */
  place(rows: Float32Array | null): void {
    const count = rows ? rows.length / FLOATS : 0;
    while (this.marks.length < count) this.add();
    this.marks.forEach(({ node, material, lines }, k) => {
      const at = FLOATS * k;
      node.visible = k < count && Number.isFinite(rows![at]);
      if (!node.visible) return;
      const normal = new THREE.Vector3().fromArray(rows!, at + 3);
      node.position.fromArray(rows!, at);
      node.children[1].visible = normal.lengthSq() > 0; // a point on a curve has no normal
      node.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), normal.normalize());
      const size = this.extent();
      node.children[0].scale.setScalar(RADIUS * size);
      node.children[1].scale.setScalar(LENGTH * size);
      const color = rows![at + 6] ? LOST : TOUCHING;
      material.color.setHex(color);
      lines.color.setHex(color);
    });
  }

  private add(): void {
    const material = new THREE.MeshBasicMaterial({ depthTest: false, transparent: true });
    const lines = new THREE.LineBasicMaterial({ depthTest: false, transparent: true });
    const node = new THREE.Group();
    node.add(new THREE.Mesh(this.ball, material), new THREE.LineSegments(this.line, lines));
    for (const child of node.children) child.renderOrder = 9;
    this.marks.push({ node, material, lines });
    this.node.add(node);
  }

  /** Points and normals as they are drawn; for tests. */
  get shown(): number[][] {
    return this.marks
      .filter(({ node }) => node.visible && this.node.visible)
      .map(({ node }) => [
        ...node.position.toArray(),
        ...new THREE.Vector3(0, 0, 1).applyQuaternion(node.quaternion).toArray(),
      ]);
  }
}
