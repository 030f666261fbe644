"""Threaded rods, as triangles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.quantities import Length
from cardan.shapes.registry import in_files, maker
from cardan.shapes.shape import SEGMENTS, Properties, Shape, Triangles, solid_properties
from cardan.system import check

MOST_TURNS = 60  # that are drawn; of finer threads only every second, third, … turn is
AROUND, ALONG = 24, 8  # chords per turn, rows per turn
DEPTH = 0.5  # of the groove, relative to the pitch, and at most a quarter of the radius


@in_files
@dataclass(frozen=True, slots=True)
class Thread(Shape):
    """A rod along z with a helical groove, centred on its origin; radius, pitch per turn and length [m].

    ρ(θ, z) = radius − 2 depth |s − round(s)|, s = z/pitch − θ/2π.  Mass properties are those of its triangles.
    """

    radius: float
    pitch: float
    length: float

    def properties(self) -> Properties:
        return solid_properties(*self.triangles())

    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        r, h = self.radius, self.length
        size = abs(self.pitch) * max(1, math.ceil(h / (MOST_TURNS * abs(self.pitch))))
        rows = max(ALONG, round(ALONG * h / size))
        z = h * (np.arange(rows + 1) / rows - 0.5)
        angle = 2.0 * np.pi * np.arange(AROUND) / AROUND
        s = z[:, None] / size - math.copysign(1.0, self.pitch) * angle[None] / (2.0 * np.pi)
        rho = r - 2.0 * min(DEPTH * size, 0.25 * r) * np.abs(s - np.round(s))
        v = np.stack([rho * np.cos(angle), rho * np.sin(angle), np.broadcast_to(z[:, None], rho.shape)], axis=2)
        j, after = np.arange(AROUND), (np.arange(AROUND) + 1) % AROUND
        faces = []
        for i in range(rows):
            a, b = i * AROUND + j, i * AROUND + after
            faces += [np.column_stack([a, b, b + AROUND]), np.column_stack([a, b + AROUND, a + AROUND])]
        low, top = (rows + 1) * AROUND, rows * AROUND
        faces.append(np.column_stack([after, j, np.full(AROUND, low)]))
        faces.append(np.column_stack([top + j, top + after, np.full(AROUND, low + 1)]))
        ends = [[0.0, 0.0, z[0]], [0.0, 0.0, z[-1]]]
        return Triangles(np.concatenate([v.reshape(-1, 3), ends]), np.concatenate(faces))

    @classmethod
    def _of_file(cls, radius: Length, pitch: Length, length: Length) -> Thread:
        return thread(radius, pitch, length)


@maker
def thread(radius: Any, pitch: Any, length: Any) -> Thread:
    """A rod along z with a helical groove, centred on its origin; radius, pitch per turn and length [m].

    A negative pitch makes a left-hand thread.
    """
    r, h = check.positive(radius, "the radius of a thread"), check.positive(length, "the length of a thread")
    lead = check.number(pitch, "the pitch of a thread")
    if lead == 0.0:
        raise ModelError("the pitch of a thread is 0 m; it must not be zero")
    return Thread(r, lead, h)
