// Reactions of a motion, as arrows at its joints.

import { Vector3 } from 'three';
import type { Player } from './player';
import type { Stage } from './stage';

export interface ForceAt {
  at: Vector3;
  force: Vector3;
}

/** The forces [N] in the joints that are marked, in the pose that is shown, at the places of the joints. */
export function reactions(player: Player, stage: Stage): ForceAt[] {
  return [...player.clip.reactions].flatMap(([name, values]) => {
    const joint = stage.joints.find((j) => j.data.name === name);
    return joint ? [{ at: stage.placeOf(joint), force: new Vector3().fromArray(values, 3 * player.index) }] : [];
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
