"""A wiggle: one freedom, shown by a small motion back and forth with every joint closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from cardan.errors import ModelError
from cardan.joints import Role
from cardan.math import euler
from cardan.mechanism import Mechanism
from cardan.system.state import FloatArray, State
from cardan.view.clip import Clip

STEPS: Final = 18  # poses on each side
SECONDS: Final = 1.6  # of one motion back and forth
TURN: Final = 0.3  # [rad] of the body that rotates most,
SHIFT: Final = 0.08  # and displacement of the body that moves most, of the extent: the smaller motion of the two


def wiggle(
    mechanism: Mechanism, state: State, freedom: int, progress: Callable[[float], None] = lambda part: None
) -> Clip:
    """A clip of freedom number k of a diagnosis, without drivers: to one side, to the other, and back.

    Every pose is assembled from the one before, displaced along the motion; a side ends where it cannot go on.
    """
    free = mechanism.copy()
    for name, joint in mechanism.joints.items():
        if joint.kind.role is Role.DRIVER:
            free.remove(name)
    found = free.diagnose(state)
    if found.motions is None:
        raise ModelError("the mechanism is too large for a list of its freedoms; drag its parts instead")
    if freedom >= len(found.motions):
        raise ModelError(f"freedom {freedom + 1} was asked for; there are {len(found.motions)} in this pose")
    motion = found.motions[freedom]
    extent = float(free.system.judged_length)
    turn = float(np.linalg.norm(motion[:, 3:], axis=1).max(initial=0.0))
    shift = float(np.linalg.norm(motion[:, :3], axis=1).max(initial=0.0))
    size = min(TURN / max(turn, 1e-300), SHIFT * extent / max(shift, 1e-300))
    places = np.sin(np.linspace(0.0, np.pi / 2, STEPS + 1))  # it starts fast, slows down and returns
    sides = []
    for side, sign in enumerate((1.0, -1.0)):
        poses = [state.coordinates]
        for step, by in enumerate(np.diff(places)):
            progress((side + step / STEPS) / 2)
            start = _displaced(state, poses[-1], motion, sign * size * float(by))
            result = free.assemble(start, restarts=0)
            if not result.ok or np.abs(result.state.coordinates - poses[-1]).max() > 10 * (size * max(turn, shift)):
                break
            poses.append(result.state.coordinates)
        sides.append(poses)
    there, other = sides
    if len(there) == len(other) == 1:
        text = found.free_motions[freedom].text() if found.free_motions else ""
        raise ModelError(f"{text}: no motion begins here, only an infinitesimal one")
    way = [*there, *there[-2::-1], *other[1:], *other[-2::-1]]
    times = np.linspace(0.0, SECONDS, len(way))
    return Clip("wiggle", times, np.array(way), loop=True, text=found.free_motions[freedom].text())  # type: ignore[index]


def _displaced(state: State, poses: FloatArray, motion: FloatArray, by: float) -> State:
    moved = poses.copy()
    moved[:, :3] += by * motion[:, :3]
    for k, w in enumerate(by * motion[:, 3:]):
        angle = float(np.linalg.norm(w))
        if angle:
            moved[k, 3:] = euler.multiply(moved[k, 3:], euler.from_axis_angle(w / angle, angle))
    index = {name: k for k, name in enumerate(state.names)}
    return State(state.names, index, moved, time=state.time, variables=state.variables)
