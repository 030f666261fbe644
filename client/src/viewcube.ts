// The view cube: a click on a face turns the camera to it.

import * as THREE from 'three';
import { h } from './dom';
import type { Stage } from './stage';
import type { Triple } from './wire';

const FACES: [string, Triple, string][] = [
  ['front', [0, -1, 0.001], 'rotateX(-90deg)'],
  ['back', [0, 1, 0.001], 'rotateX(90deg) rotateZ(180deg)'],
  ['right', [1, 0, 0.001], 'rotateY(90deg) rotateZ(-90deg)'],
  ['left', [-1, 0, 0.001], 'rotateY(-90deg) rotateZ(90deg)'],
  ['top', [0, -0.001, 1], ''],
  ['under', [0, -0.001, -1], 'rotateX(180deg)'],
];
const Z = new THREE.Vector3(0, 0, 1);

export class ViewCube {
  private readonly cube = h('div');
  readonly node = h('div', { id: 'cube', role: 'group', 'aria-label': 'Directions of view' }, this.cube);
  private look = '';

  constructor(private readonly stage: Stage) {
    for (const [label, direction, turn] of FACES) {
      const face = h(
        'button',
        { type: 'button', 'aria-label': `View from ${label}`, click: () => stage.look(direction) },
        label,
      );
      face.style.transform = `${turn} translateZ(26px)`;
      this.cube.append(face);
    }
  }

  /** Turn it as the camera is turned. */
  update(): void {
    const turn = new THREE.Quaternion().setFromUnitVectors(Z, this.stage.up);
    const seen = this.stage.camera.quaternion.clone().invert().multiply(turn);
    const e = new THREE.Matrix4().makeRotationFromQuaternion(seen).elements; // CSS has y down
    const look = `matrix3d(${[e[0], -e[1], e[2], 0, -e[4], e[5], -e[6], 0, e[8], -e[9], e[10], 0, 0, 0, 0, 1].join(',')})`;
    if (look !== this.look) this.cube.style.transform = this.look = look;
  }
}
