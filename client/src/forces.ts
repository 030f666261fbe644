// Reactions of a motion, as arrows at its joints.

import { Vector3 } from 'three';
import type { Player } from './player';
import type { JointView } from './stage';

export interface ForceAt {
  at: Vector3;
  force: Vector3;
}

/** The forces [N] in the joints that are marked, in the pose that is shown, at the places of the joints. */
export function reactions(player: Player, joints: JointView[]): ForceAt[] {
  return [...player.clip.reactions].flatMap(([name, values]) => {
    const joint = joints.find((j) => j.data.name === name);
    if (!joint) return [];
    return [
      { at: joint.node.getWorldPosition(new Vector3()), force: new Vector3().fromArray(values, 3 * player.index) },
    ];
  });
}

/** The largest of all forces [N] of a motion. */
export function largest(forces: Map<string, Float32Array>): number {
  let found = 0;
  for (const force of forces.values()) {
    for (let k = 0; k < force.length; k += 3) found = Math.max(found, Math.hypot(force[k], force[k + 1], force[k + 2]));
  }
  return found;
}
