"""A clip: a recorded motion that the page plays and scrubs by itself, from the server or from one HTML file.

``pack``: a JSON header and a gzip stream of two float32 arrays: poses, shape (times, bodies, 7), and series, shape
(series, times).  Before compression each channel is a row over time, of which the differences of the bit patterns are
kept, byte plane by byte plane: smooth motions compress to about half.
"""

from __future__ import annotations

import gzip
import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from cardan.analysis.motion import Motion
from cardan.analysis.simulation import Simulation
from cardan.constraints.registry import FeatureKind
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint, Role
from cardan.math import euler
from cardan.mechanism import Mechanism
from cardan.system.formulas import plain
from cardan.system.parts import Body
from cardan.system.state import FloatArray, State
from cardan.view import contact_marks
from cardan.view.protocol import CLIP

MOST_COORDINATES: Final = 60  # whose values and rates are in a clip
MOST_BODIES: Final = 60  # of a mechanism whose reactions and efforts are in a clip: inverse dynamics takes long
DIFFERENCE: Final = 1e-6  # [s] along the velocities, for rates of coordinates


@dataclass(slots=True)
class Series:
    """Values over the times of a clip; ``of``: the joint, driver or mechanism; ``what``: "angle", "rate", …"""

    of: str
    what: str
    unit: str
    values: FloatArray

    def as_dict(self) -> dict[str, str]:
        """Its part of the header; values are in the arrays."""
        return {"of": self.of, "what": self.what, "unit": self.unit}


@dataclass(slots=True)
class Clip:
    """times [s]; poses, shape (times, bodies, 7); series; reactions: force [N] of joints on body b, in world axes."""

    kind: str
    times: FloatArray
    poses: FloatArray
    series: list[Series] = field(default_factory=list)
    reactions: dict[str, FloatArray] = field(default_factory=dict)
    contacts: FloatArray | None = None  # shape (times, contacts, 7), as in a frame
    loop: bool = False
    text: str = ""
    ok: bool = True
    states: Sequence[State] = ()

    def header(self) -> dict[str, Any]:
        """Everything but the arrays, as plain values."""
        return {
            "kind": self.kind,
            "bodies": self.poses.shape[1],
            "times": [float(t) for t in self.times],
            "loop": self.loop,
            "text": self.text,
            "ok": self.ok,
            "series": [one.as_dict() for one in self.series],
            "reactions": list(self.reactions),
            "contacts": 0 if self.contacts is None else self.contacts.shape[1],
        }

    def data(self, level: int = 1) -> bytes:
        """The compressed arrays: poses, series, reactions, and contacts; one row over time for each number."""
        n = len(self.times)
        rows = [self.poses.reshape(n, -1).T, *(one.values[None] for one in self.series)]
        rows += [force.T for force in self.reactions.values()]
        if self.contacts is not None:
            rows.append(self.contacts.reshape(n, -1).T)
        return gzip.compress(shuffle(np.vstack(rows)), level, mtime=0)

    def pack(self, number: int) -> bytes:
        """The message to the page."""
        text = json.dumps({**self.header(), "number": number}, allow_nan=False).encode()
        text += b" " * (-len(text) % 4)
        return struct.pack("<II", CLIP, len(text)) + text + self.data()


def shuffle(rows: FloatArray) -> bytes:
    """float32 rows, as differences of bit patterns along each row, in byte planes (the lowest bytes first)."""
    bits = np.ascontiguousarray(rows, dtype="<f4").view("<u4")
    changes = bits.copy()
    changes[:, 1:] -= bits[:, :-1]
    return changes.reshape(-1).view(np.uint8).reshape(-1, 4).T.tobytes()


def from_motion(mechanism: Mechanism, found: Motion | Simulation, *, loop: bool = False) -> Clip:
    """A clip of a motion or a simulation, with coordinates, rates, efforts, energies and reactions."""
    states = found.states
    if not len(states):
        raise ModelError(f"there is nothing to show: {found.text()}")
    poses = np.array([state.coordinates for state in states])
    clip = Clip(
        "simulation" if isinstance(found, Simulation) else "motion", np.asarray(found.times), poses, states=states
    )
    clip.text, clip.ok, clip.loop = found.text(), found.ok, loop
    if contact_marks.names(states[0]):
        clip.contacts = np.array([contact_marks.rows(state)[0] for state in states])
    for joint, coordinate in coordinates(mechanism)[:MOST_COORDINATES]:
        of = (
            joint
            if coordinate.name == "angle" or len(mechanism[joint].kind.coordinates) == 1
            else (f"{joint}.{coordinate.name}")
        )
        values = coordinate.values(states)
        if coordinate.kind == "angle":
            values = np.unwrap(values)
        _add(clip, of, coordinate.kind, coordinate.unit, values)
        _add(clip, of, "rate", f"{coordinate.unit}/s", rates(coordinate, states))
    if isinstance(found, Simulation):
        energy = found.energy
        for what in ("kinetic", "potential", "total"):
            _add(clip, "energy", what, "J", getattr(energy, what))
    _forces(clip, mechanism, found)
    return clip


def _add(clip: Clip, of: str, what: str, unit: str, values: FloatArray) -> None:
    if np.isfinite(values).all():
        clip.series.append(Series(of, what, unit, values))


def _forces(clip: Clip, mechanism: Mechanism, found: Motion | Simulation) -> None:
    """Reactions of joints and efforts of drivers; none where the library refuses them, which the text then says."""
    if len(mechanism.bodies) > MOST_BODIES:
        clip.text += f"\nno reactions: more than {MOST_BODIES} bodies; use motion.reaction(joint)"
        return
    named = [joint for joint in mechanism.joints.values() if joint.edge is not None and joint.edge.user_motion is None]
    drivers = [joint for joint in mechanism.joints.values() if joint.kind.role is Role.DRIVER]
    try:
        for joint in drivers:
            unit = "N m" if joint.ends[0].unit == "rad" else "N"
            _add(clip, joint.name, "effort", unit, found.effort(joint))
        for joint in named:
            force = found.reaction(joint).force
            if np.isfinite(force).all():
                clip.reactions[joint.name] = force
                _add(clip, joint.name, "reaction", "N", np.linalg.norm(force, axis=1))
        clip.text += "".join(f"\n  {note}" for note in found.notes if note not in clip.text)
    except ModelError as error:
        clip.text += f"\nno reactions: {error}"


def coordinates(mechanism: Mechanism) -> list[tuple[str, Coordinate]]:
    """Every coordinate of every joint, with the name of the joint."""
    found = []
    for name, joint in mechanism.joints.items():
        if isinstance(joint, Joint):
            found += [(name, joint.of(word)) for word in joint.kind.coordinates]
    return found


def describe(mechanism: Mechanism) -> list[dict[str, Any]]:
    """Every coordinate of a joint, as :func:`describe_one` gives it."""
    return [describe_one(mechanism, joint, coordinate) for joint, coordinate in coordinates(mechanism)]


def describe_one(mechanism: Mechanism, joint: str, coordinate: Coordinate) -> dict[str, Any]:
    """A coordinate with its features in body axes, so that the page can compute it; body −1 is the ground."""
    index = mechanism.system.index
    return {
        "joint": joint,
        "name": coordinate.name,
        "kind": coordinate.kind,
        "unit": coordinate.unit,
        "features": [
            {
                "body": index.get(getattr(feature.body, "name", ""), -1),
                "point": feature.kind is FeatureKind.POINT,
                "value": list(plain(feature.value)),
            }
            for feature in coordinate.features
        ],
    }


def rates(coordinate: Coordinate, states: Sequence[State]) -> FloatArray:
    """Rate of a coordinate [rad/s, m/s], from the velocities of the states: (c(x + hẋ) − c(x − hẋ)) / 2h."""
    ahead, behind = (
        coordinate.values_in_world([_moved(feature, states, h) for feature in coordinate.features], None)
        for h in (DIFFERENCE, -DIFFERENCE)
    )
    change = ahead - behind
    if coordinate.kind == "angle":
        change = np.arctan2(np.sin(change), np.cos(change))
    return np.asarray(change / (2 * DIFFERENCE))


def _moved(feature: Any, states: Sequence[State], h: float) -> FloatArray:
    """A feature in world after h seconds at the velocities of each state, shape (states, 3)."""
    body, value = feature.body, np.array(feature.at(states[0].variables))
    assert isinstance(body, Body)
    if body.is_ground:
        return np.tile(value, (len(states), 1))
    k = states[0].names.index(body.name)
    pose = np.array([state.coordinates[k] for state in states])
    speed = np.array([np.full(6, math.nan) if s.velocities is None else s.velocities[k] for s in states])
    rotated = euler.rotate(pose[:, 3:], value + h * np.cross(speed[:, 3:], value))
    return np.asarray(rotated + pose[:, :3] + h * speed[:, :3] if feature.kind is FeatureKind.POINT else rotated)
