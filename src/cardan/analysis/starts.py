"""The start of an assembly, a motion or a session: poses, counted angles and the time of the drivers, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.system import check
from cardan.system.state import FloatArray, State
from cardan.system.system import System

UNIT = 1e-9  # largest deviation of |p|² from one
VALID_POSE = f"its numbers must be finite, and its quaternion p must have length 1 (| |p|² − 1 | ≤ {UNIT})"

Start = State | Mapping[Any, Any] | None


def start_coordinates(system: System, start: Start) -> FloatArray:
    """r and p of every body, shape (bodies, 7): authored poses, those of a state, or authored with some replaced."""
    if start is None:
        return system.authored
    if isinstance(start, State):
        _check_poses(start)
        if start.names == system.names:
            return start.coordinates
        missing = set(system.names) ^ set(start.names)
        if missing:
            raise ModelError(
                f"the start is a state of other bodies: {', '.join(map(repr, sorted(missing)[:5]))} not in both; pass "
                "a state of this mechanism, or a dict of poses for some of its bodies"
            )
        return start.coordinates[[start.names.index(name) for name in system.names]]
    if not isinstance(start, Mapping):
        raise ModelError(f"start is {start!r}; it must be a State or {{body: (position, quaternion)}}")
    drawn: State = system.cached("drawn state", system.state)
    return drawn.moved(start).coordinates


def start_time(start: Any, at_time: Any) -> float:
    """The given time [s], or that of the start, or zero."""
    if at_time is None:
        return start.time if isinstance(start, State) else 0.0
    return check.number(at_time, "time")


def start_angles(system: System, start: Any) -> FloatArray:
    """Initial variables and counted angles [rad], shape (variables + angles,): of a state, or as drawn and zero."""
    names = system.variable_names
    if not system.counted_angles and not names:
        return _NO_ANGLES
    found = tail_of(system, start)
    if not np.isfinite(found).all():
        k = int(np.flatnonzero(~np.isfinite(found))[0])
        what = (
            f"parameter {names[k]!r}" if k < len(names) else f"the angle of {system.counted_angles[k - len(names)]!r}"
        )
        raise ModelError(f"{what} in the start is {found[k]}; it must be finite")
    return found


def tail_of(system: System, start: Any) -> FloatArray:
    """As :func:`start_angles`, not checked."""
    known = start.angles if isinstance(start, State) else {}
    values = {**system.values, **start.variables} if isinstance(start, State) else system.values
    variables = [values[name] for name in system.variable_names]
    return np.array([*variables, *[known.get(key, 0.0) for key in system.counted_angles]])


_NO_ANGLES: FloatArray = np.empty(0)


def _check_poses(state: State) -> None:
    q, r = state.coordinates[:, 3:], np.abs(state.coordinates[:, :3])
    off = np.abs(np.add.reduce(q * q, axis=1) - 1.0)
    if not (np.maximum.reduce(off) <= UNIT and np.maximum.reduce(r, axis=None) <= check.LARGEST):  # NaN is neither
        fine = off <= UNIT
        k = int(np.flatnonzero(~(fine & (r <= check.LARGEST).all(axis=1)))[0])
        is_far = fine[k] and np.isfinite(state.positions[k]).all()
        valid = f"its coordinates must not exceed {check.LARGEST}" if is_far else VALID_POSE
        raise ModelError(f"the pose of body {state.names[k]!r} in the start is {state[state.names[k]]}; {valid}")
