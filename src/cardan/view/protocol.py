"""Messages between the page and the server.

From the page: JSON texts ``{"do": …}``, checked here field by field.  To the page: JSON texts ``{"is": …}``, and
little-endian binary messages that begin with their kind: SCENE (:mod:`cardan.view.scene`), FRAME, CLIP
(:mod:`cardan.view.clip`).

A frame is one state: header, then 7 float32 (x y z, w x y z) for each movable body in the order of the system.  All
poses of a state are in one message, so no drawing mixes two states.

======= ======= =====================================================================
offset  type    header of a frame
======= ======= =====================================================================
0       uint32  FRAME
4       uint32  number of the newest request that this state answers
8       uint32  flags: GRASPED, STOPPED (a limit is reached), SHORT (target not reached), MOVING
                (the hand goes on towards it)
12      uint32  bodies
16      float32 time [s]
20      float32 largest residual, lengths relative to the extent, angles in radians
24      float32 computing time of this state [ms]
28      float32 force of the mechanism on the hand [N], 3
40      float32 grasped point in world [m], 3
52      float32 energy [J] of the mechanism, NaN where it is not computed
======= ======= =====================================================================

After the poses 7 float32 for each contact: point and normal in world, and 1 where it is lost, else 0.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from cardan.errors import CardanError
from cardan.system.state import FloatArray

SCENE, FRAME, CLIP = 1, 2, 3
GRASPED, STOPPED, SHORT, MOVING = 1, 2, 4, 8
HEADER: Final = struct.Struct("<4I3f3f3f1f")

MOST_BYTES: Final = 1 << 20  # of a message from the page
MOST_NAME: Final = 200  # characters
FARTHEST: Final = 1e9  # [m] of a point or target
LONGEST: Final = 3600.0  # [s] of a motion

NAN3: Final = (math.nan, math.nan, math.nan)


class Refused(CardanError):
    """A message that is not one of the protocol; the text says why."""


class Frame(NamedTuple):
    """One state, ready to be packed."""

    coordinates: FloatArray
    ack: int = 0
    flags: int = 0
    time: float = 0.0
    residual: float = 0.0
    milliseconds: float = 0.0
    force: Sequence[float] = NAN3
    point: Sequence[float] = NAN3
    energy: float = math.nan
    contacts: FloatArray | None = None

    def pack(self) -> bytes:
        """The message."""
        poses = np.ascontiguousarray(self.coordinates, dtype="<f4")
        numbers = self.time, self.residual, self.milliseconds
        header = HEADER.pack(FRAME, self.ack, self.flags, len(poses), *numbers, *self.force, *self.point, self.energy)
        contacts = b"" if self.contacts is None else np.ascontiguousarray(self.contacts, dtype="<f4").tobytes()
        return header + poses.tobytes() + contacts


@dataclass(frozen=True, slots=True)
class Command:
    """A checked message from the page: ``command["target"]``."""

    do: str
    seq: int = 0
    values: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]


def _number(value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise Refused(f"{value!r:.50} was given; it must be a number between {low:g} and {high:g}")
    return float(value)


def _index(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise Refused(f"{value!r:.50} was given; it must be a whole number, 0 or more")
    return value


def _place(value: Any) -> tuple[float, float, float]:
    if not isinstance(value, list) or len(value) != 3:
        raise Refused(f"{value!r:.50} was given; it must be three numbers")
    x, y, z = (_number(v, -FARTHEST, FARTHEST) for v in value)
    return x, y, z


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MOST_NAME:
        raise Refused(f"{value!r:.50} was given; it must be a text of 1 to {MOST_NAME} characters")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Refused(f"{value!r:.50} was given; it must be true or false")
    return value


def _poses(value: Any) -> FloatArray:
    try:
        found = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise Refused("poses must be numbers, 7 for each body") from None
    if found.ndim != 1 or found.size % 7 or not found.size or not np.all(np.abs(found) <= FARTHEST):
        raise Refused("poses must be finite numbers, 7 for each body")
    return found.reshape(-1, 7)


def _duration(value: Any) -> float:
    return _number(value, 1e-3, LONGEST)


def _any_number(value: Any) -> float:
    return _number(value, -FARTHEST, FARTHEST)


# The fields of each command, and how they are checked.
COMMANDS: Final[Mapping[str, Mapping[str, Callable[[Any], Any]]]] = {
    "load": {"item": _name},
    "drag": {"body": _index, "point": _place, "target": _place, "push": _flag},
    "drop": {},
    "pin": {"body": _index, "on": _flag},
    "drive": {"driver": _name, "value": _any_number},
    "play": {"duration": _duration},
    "simulate": {"duration": _duration},
    "live": {"on": _flag},
    "wiggle": {"freedom": _index},
    "stop": {},
    "at": {"clip": _index, "index": _index},
    "undo": {},
    "reset": {},
    "keep": {"name": _name},
    "pose": {"name": _name},
    "restore": {"poses": _poses},
    "decide": {"joint": _name, "accept": _flag},
    "join": {"kind": _name, "part_a": _name, "face_a": _index, "part_b": _name, "face_b": _index},
    "assemble": {},
    "save": {},
}


def read(message: str | bytes) -> Command:
    """A message of the page; raises Refused."""
    if not isinstance(message, str):
        raise Refused("a binary message was given; the page sends JSON texts")
    try:
        given = json.loads(message)
    except (ValueError, RecursionError):
        raise Refused("the message is not JSON") from None
    if not isinstance(given, dict) or not isinstance(given.get("do"), str) or given["do"] not in COMMANDS:
        raise Refused('the message has no known "do"')
    fields = COMMANDS[given["do"]]
    if set(given) - set(fields) - {"do", "seq"} or set(fields) - set(given):
        raise Refused(f"{given['do']!r} takes {', '.join(fields) or 'nothing'}")
    values = {key: check(given[key]) for key, check in fields.items()}
    return Command(given["do"], _index(given.get("seq", 0)), values)


def write(kind: str, **values: Any) -> str:
    """A JSON text to the page; numbers that are not finite become null."""
    return json.dumps({"is": kind, **values}, default=_plain, allow_nan=False)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
