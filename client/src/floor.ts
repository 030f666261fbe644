// The light, the grid, and the floor on which shadows fall.

import * as THREE from 'three';
import type { Theme } from './themes';

const Z = new THREE.Vector3(0, 0, 1);

export class Floor {
  readonly node = new THREE.Group();
  private readonly hemisphere = new THREE.HemisphereLight();
  private readonly sun = new THREE.DirectionalLight(0xffffff, 1);
  private readonly plane = new THREE.Mesh(new THREE.PlaneGeometry(1, 1), new THREE.ShadowMaterial({ opacity: 0.2 }));
  private readonly lines = new THREE.LineSegments(new THREE.BufferGeometry(), new THREE.LineBasicMaterial());

  constructor() {
    this.sun.shadow.mapSize.set(2048, 2048);
    this.sun.shadow.radius = 6;
    this.plane.receiveShadow = true;
    this.node.add(this.hemisphere, this.sun, this.sun.target, this.plane, this.lines);
  }

  get gridShown(): boolean {
    return this.lines.visible;
  }
  set gridShown(on: boolean) {
    this.lines.visible = on;
  }

  set shadows(on: boolean) {
    this.sun.castShadow = on;
    this.plane.visible = on;
  }

  setTheme(theme: Theme): void {
    const [sky, below, intensity] = theme.hemisphere;
    this.hemisphere.color.setHex(sky);
    this.hemisphere.groundColor.setHex(below);
    this.hemisphere.intensity = intensity;
    this.sun.intensity = theme.sun;
    this.plane.material.opacity = theme.shadow;
    this.lines.material.color.set(theme.grid);
  }

  /** Below everything that is drawn: within a sphere, and not lower than low along up. */
  fit(center: THREE.Vector3, radius: number, up: THREE.Vector3, low: number): void {
    const cell = 10 ** Math.round(Math.log10(radius / 4));
    const span = 2 * Math.ceil((3.2 * radius) / cell / 2) * cell;
    const points: number[] = [];
    const half = span / 2;
    for (let k = 0; k <= Math.round(span / cell); k++) {
      const x = k * cell - half;
      const reach = Math.sqrt(Math.max(0, half * half - x * x)); // a round grid has no hard corners
      points.push(x, -reach, 0, x, reach, 0, -reach, x, 0, reach, x, 0);
    }
    this.lines.geometry.dispose();
    this.lines.geometry = new THREE.BufferGeometry().setAttribute(
      'position',
      new THREE.Float32BufferAttribute(points, 3),
    );
    const turn = new THREE.Quaternion().setFromUnitVectors(Z, up);
    const at = center.clone().addScaledVector(up, low - 0.01 * radius - center.dot(up));
    this.lines.quaternion.copy(turn);
    this.lines.position.copy(at);
    this.plane.quaternion.copy(turn);
    this.plane.position.copy(at).addScaledVector(up, -0.002 * radius);
    this.plane.scale.setScalar(8 * radius);
    const side = new THREE.Vector3(-0.45, -0.6, 0.95).applyQuaternion(turn).normalize();
    this.sun.target.position.copy(center);
    this.sun.position.copy(center).addScaledVector(side, 4 * radius);
    const r = 1.7 * radius;
    const { camera } = this.sun.shadow;
    Object.assign(camera, { left: -r, right: r, top: r, bottom: -r, near: 0.1 * r, far: 6 * radius });
    camera.updateProjectionMatrix();
    this.sun.shadow.normalBias = 0.004 * radius;
  }
}
