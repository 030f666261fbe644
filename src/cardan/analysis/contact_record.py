"""What a simulation tells about contacts that open: events, gaps, points and forces, energies that were lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cardan.dynamics.contact_events import ContactEvent, ContactEventKind
from cardan.system.state import FloatArray

__all__ = ["ContactEvent", "ContactEventKind", "ContactHistory", "ContactRecord", "Energy"]


class _Stored(NamedTuple):
    kinetic: FloatArray
    potential: FloatArray


class Energy(_Stored):
    """Energies [J] at the output times, shape (times,) each.

    ``lost_impact``, ``lost_friction``: what hits and friction, of contacts and of joints, have taken since the start.
    ``lost_steps``: what the time steps of contacts="steps", of first order, have taken from the work of gravity and
    from rotations (negative: they have given it).  The sum of all five is constant for free bodies without loads.  As
    a tuple it is (kinetic, potential).
    """

    lost_impact: FloatArray
    lost_friction: FloatArray
    lost_steps: FloatArray

    def __new__(
        cls,
        kinetic: FloatArray,
        potential: FloatArray,
        lost_impact: FloatArray | None = None,
        lost_friction: FloatArray | None = None,
        lost_steps: FloatArray | None = None,
    ) -> Energy:
        """Without losses, if none are given."""
        made = super().__new__(cls, kinetic, potential)
        made.lost_impact = np.zeros_like(kinetic) if lost_impact is None else lost_impact
        made.lost_friction = np.zeros_like(kinetic) if lost_friction is None else lost_friction
        made.lost_steps = np.zeros_like(kinetic) if lost_steps is None else lost_steps
        return made

    @property
    def total(self) -> FloatArray:
        """Kinetic and potential energy."""
        return self.kinetic + self.potential


@dataclass(frozen=True, slots=True, eq=False)
class ContactHistory:
    """A contact that opens, at the output times.

    ``gap`` [m], shape (times,).  ``points`` [m] in world, on body b, shape (times, 3).  ``force`` [N] in world, on body
    b, shape (times, 3).  ``slip`` [m/s]: the speed of b along the faces where they touch, relative to a, shape
    (times,); zero where they are apart.  ``unique``, bool, shape (times,): whether the motion alone decides the force.
    ``normals``: of a, in world, shape (times, 3); the normal force is force · normals.
    """

    gap: FloatArray
    points: FloatArray
    force: FloatArray
    slip: FloatArray
    unique: np.ndarray
    normals: FloatArray


@dataclass(slots=True, eq=False)
class ContactRecord:
    """What a run keeps of contacts that open.

    ``lost_impact``, ``lost_friction``, ``lost_steps`` [J]: since the start, shape (times,) each.  ``histories``: by
    name, of contacts that are no constraints of the equations.  ``penetration`` [m]: the largest.  ``error``: the
    largest error of a contact problem, relative.  ``shared``: from a time on, names of contacts whose forces are not
    unique.
    """

    lost_impact: FloatArray
    lost_friction: FloatArray
    histories: Mapping[str, ContactHistory] = field(default_factory=dict)
    penetration: float = 0.0
    error: float = 0.0
    shared: Sequence[tuple[float, frozenset[str]]] = ()
    lost_steps: FloatArray | None = None

    def are_shared(self, name: str, times: FloatArray) -> np.ndarray:
        """Whether the force of a contact is not unique at some times, shape (times,)."""
        starts = np.array([time for time, _ in self.shared])
        told = np.array([False, *[name in names for _, names in self.shared]])
        return told[np.searchsorted(starts, times, side="right")]

    @property
    def losses(self) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """What hits, friction and steps took [J]."""
        return self.lost_impact, self.lost_friction, self.lost_steps
