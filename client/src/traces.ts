// Paths of points of parts.

import * as THREE from 'three';

const POINTS = 4000;

interface Trace {
  part: number;
  local: THREE.Vector3;
  line: THREE.Line;
  count: number;
}

/** What a path needs to know of the drawing. */
export interface Ground {
  extent: number;
  toWorld(part: number, local: THREE.Vector3): THREE.Vector3;
  redraw(): void;
}

export class Traces {
  private traces: Trace[] = [];

  constructor(
    private readonly stage: Ground,
    private readonly overlay: THREE.Object3D,
  ) {}

  has(part: number): boolean {
    return this.traces.some((trace) => trace.part === part);
  }

  /** Draw the path of a point of a part from now on; null ends it. */
  set(part: number, local: THREE.Vector3 | null): void {
    for (const old of this.traces.filter((t) => t.part === part)) {
      this.overlay.remove(old.line);
      old.line.geometry.dispose();
    }
    this.traces = this.traces.filter((t) => t.part !== part);
    if (local) {
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute('position', new THREE.BufferAttribute(new Float32Array(3 * POINTS), 3));
      geometry.setDrawRange(0, 0);
      const hue = (this.traces.length * 0.61803 + 0.02) % 1;
      const color = new THREE.Color().setHSL(hue, 0.75, 0.5);
      const line = new THREE.Line(
        geometry,
        new THREE.LineBasicMaterial({ color, depthTest: false, transparent: true }),
      );
      line.frustumCulled = false;
      line.renderOrder = 5;
      this.overlay.add(line);
      this.traces.push({ part, local, line, count: 0 });
    }
    this.stage.redraw();
  }

  clear(): void {
    for (const trace of [...this.traces]) this.set(trace.part, null);
  }

  /** Empty the paths, to draw them anew. */
  restart(): void {
    for (const trace of this.traces) {
      trace.count = 0;
      trace.line.geometry.setDrawRange(0, 0);
    }
  }

  /** Add the present places to the paths. */
  grow(): void {
    for (const trace of this.traces) {
      const p = this.stage.toWorld(trace.part, trace.local);
      const positions = trace.line.geometry.getAttribute('position') as THREE.BufferAttribute;
      const array = positions.array as Float32Array;
      const last = 3 * (trace.count - 1);
      if (
        trace.count &&
        Math.hypot(array[last] - p.x, array[last + 1] - p.y, array[last + 2] - p.z) < 1e-4 * this.stage.extent
      )
        continue;
      if (trace.count === POINTS) {
        array.copyWithin(0, 3);
        trace.count--;
      }
      p.toArray(array, 3 * trace.count++);
      positions.needsUpdate = true;
      trace.line.geometry.setDrawRange(0, trace.count);
      this.stage.redraw();
    }
  }

  length(part: number): number {
    return this.traces.find((t) => t.part === part)?.count ?? 0;
  }
}
