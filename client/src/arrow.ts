// Arrows of forces.

import * as THREE from 'three';

const Y = new THREE.Vector3(0, 1, 0);

/** An arrow over everything else; head and shaft keep their size in pixels. */
export class Arrow {
  readonly node = new THREE.Group();
  readonly from = new THREE.Vector3();
  readonly to = new THREE.Vector3();
  private readonly shaft: THREE.Mesh;
  private readonly head: THREE.Mesh;
  private readonly material: THREE.MeshBasicMaterial;

  constructor(color: number) {
    this.material = new THREE.MeshBasicMaterial({ color, depthTest: false, transparent: true, opacity: 0.95 });
    this.shaft = new THREE.Mesh(new THREE.CylinderGeometry(1, 1, 1, 12).translate(0, 0.5, 0), this.material);
    this.head = new THREE.Mesh(new THREE.ConeGeometry(1, 1, 20).translate(0, -0.5, 0), this.material);
    this.shaft.renderOrder = this.head.renderOrder = 10;
    this.node.add(this.shaft, this.head);
    this.node.visible = false;
  }

  set(from: THREE.Vector3, to: THREE.Vector3, pixel: number): void {
    this.from.copy(from);
    this.to.copy(to);
    const along = to.clone().sub(from);
    const length = along.length();
    this.node.visible = length > 1.5 * pixel;
    if (!this.node.visible) return;
    const head = Math.min(15 * pixel, 0.6 * length);
    this.node.position.copy(from);
    this.node.quaternion.setFromUnitVectors(Y, along.divideScalar(length));
    this.shaft.scale.set(1.6 * pixel, length - 0.8 * head, 1.6 * pixel);
    this.head.position.set(0, length, 0);
    this.head.scale.set(5.5 * pixel, head, 5.5 * pixel);
  }

  color(hex: number): void {
    this.material.color.setHex(hex);
  }

  hide(): void {
    this.node.visible = false;
  }
}
