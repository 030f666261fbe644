"""A flexible body in a mechanism: its elastic coordinates are parameters, and its points and frames are formulas.

A point that is at s in the undeformed body is at s + Φ η + ½ ηᵀHη, and a direction a of a frame there is

    a + θ × a + ½ θ × (θ × a),   θ = Ψ η,

made of unit length: a rotation by θ to second order.  So joints on deformed frames have exact derivatives, like those
of design parameters.  See :mod:`cardan.elastic`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cardan.errors import ModelError
from cardan.system import check

if TYPE_CHECKING:
    from cardan.elastic.modes import Modes
    from cardan.system.formulas import Parameter

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Elastic:
    """The modes of a body, and its elastic coordinates η as parameters of the mechanism, in the order of the modes."""

    body: str
    modes: Modes
    coordinates: tuple[Parameter, ...]

    def place(self, position: Any) -> tuple[Any, ...]:
        """Where a point of the undeformed body is, in body axes [m]: numbers, or formulas of η."""
        s = check.vector(position, f"a place on flexible body {self.body!r}")
        local = self.modes.at(s)
        return tuple([
            _sum(s[i], local.displacement[i], 0.5 * local.second[i], self.coordinates) for i in range(3)
        ])  # fmt: skip

    def axes(self, position: Any, *axes: Any) -> list[Any]:
        """Directions of a frame there, as it is turned."""
        s = check.vector(position, f"a place on flexible body {self.body!r}")
        psi = self.modes.at(s).rotation
        if np.isnan(psi).any():
            raise ModelError(
                f"a frame on flexible body {self.body!r} is at {list(s)}, where its modes have no rotation; give "
                "rotations= to modal_data, or use a point"
            )
        return [self._turned(psi, axis) for axis in axes]

    def _turned(self, psi: FloatArray, axis: Any) -> tuple[Any, ...]:
        a = np.array(check.vector(axis, f"an axis on flexible body {self.body!r}"))
        first = np.cross(psi.T, a).T  # θ × a = first η
        second = np.einsum("in,jm,j->inm", psi, psi, a) - np.einsum("jn,jm,i->inm", psi, psi, a)
        return tuple([_sum(float(a[i]), first[i], 0.5 * second[i], self.coordinates) for i in range(3)])


def _sum(constant: float, linear: FloatArray, square: FloatArray, coordinates: Sequence[Parameter]) -> Any:
    """constant + Σ linear η + Σ square η η; a number, if there is nothing else."""
    found: Any = constant
    n = len(coordinates)
    for k in range(n):
        inner: Any = float(linear[k])
        for j in range(k, n):
            c = float(square[k, j] + square[j, k]) if j > k else float(square[k, k])
            if c:
                inner = inner + c * coordinates[j]
        if isinstance(inner, float):
            found = found + inner * coordinates[k] if inner else found
        else:
            found = found + inner * coordinates[k]
    return found
