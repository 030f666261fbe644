"""Formulations: which unknowns stand for the poses.  All share the system's tables; each adds its own chain rule."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Literal

import numpy as np

from cardan.coordinates import relative
from cardan.solvers.linear import linear_algebra
from cardan.solvers.problem import Problem
from cardan.system import layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

Formulation = Literal["manifold", "euler_parameters", "relative", "relative_euler_parameters"]


@dataclass(frozen=True, slots=True)
class FormulationKind:
    """How a formulation is packed: unknowns per body, their scales, and the module that holds its kernels.

    ``angular`` is what one scaled unknown means in the rotation part: 1 for radians, ½ where δp ≈ ½ δθ.
    """

    name: str
    module: str
    width: int
    normalised: bool
    angular: float

    def evaluate(self) -> int:
        """Address of the evaluator; compiles or loads it when first asked."""
        address: int = import_module(self.module).EVALUATE
        return address


REGISTRY: dict[str, FormulationKind] = {
    kind.name: kind
    for kind in (
        FormulationKind("manifold", "cardan.coordinates._manifold", 6, False, 1.0),
        FormulationKind("euler_parameters", "cardan.coordinates._euler_parameters", 7, True, 0.5),
    )
}


CHOICES: tuple[str, ...] = (*REGISTRY, *relative.FORMULATIONS)  # by poses, and by the coordinates of joints


def structure(system: System, kind: FormulationKind) -> IntArray:
    """The solvers' structure table of a system in a formulation; made once."""

    def make() -> IntArray:
        from cardan.coordinates import _features, _structure

        room = _features.work_size(system.ints)
        table: IntArray = _structure.structure(system.ints, kind.width, kind.normalised, room)
        return table

    found: IntArray = system.cached(("structure", kind.name), make)
    return found


def problem(system: System, formulation: str, length: float | None = None) -> Problem:
    """What a solver needs; lengths, in residuals and in unknowns, are measured in ``length`` (None: the system's)."""
    if length is None:
        own = system.length or 1.0
        found: Problem = system.cached(("problem", formulation), lambda: problem(system, formulation, own))
        return found
    if formulation in relative.FORMULATIONS:
        return relative.problem(system, formulation, length)
    kind = REGISTRY[formulation]
    bodies = len(system.names)
    rows = system.powers.size
    extra = bodies if kind.normalised else 0
    scales = np.ones(rows + extra + kind.width * bodies)
    scales[:rows] = np.array([1.0, 1.0 / length, 1.0 / (length * length)])[system.powers]
    columns = scales[rows + extra :].reshape(bodies, kind.width)
    columns[:, :3] = length
    columns[:, 3:] = kind.angular
    table = structure(system, kind)
    linear = system.cached(("linear", kind.name), lambda: linear_algebra(table))
    return Problem(kind.evaluate(), system.ints, system.floats, table, scales, linear)


def enter(system: System, formulation: str, q: FloatArray) -> FloatArray:
    """The formulation's own coordinates of the poses q, which are q itself (no copy) but for relative ones."""
    return relative.enter(system, formulation, q) if formulation in relative.FORMULATIONS else q


def leave(system: System, formulation: str, x: FloatArray, q: FloatArray) -> None:
    """q ← poses of the formulation's own coordinates x, where these are not the poses themselves."""
    if formulation in relative.FORMULATIONS:
        relative.leave(system, formulation, x, q)


def to_reference(system: System, coordinates: FloatArray) -> FloatArray:
    """Solver coordinates q, flat: r of the reference points, from the system's origin, in place of r of the bodies."""
    from cardan.system import _tables

    q: FloatArray = np.array(coordinates, dtype=np.float64).ravel()
    _tables.shift_reference(len(system.names), system.centers.reshape(-1), system.origin, 1.0, q)
    return q


def from_reference(system: System, q: FloatArray) -> FloatArray:
    """Poses of the body origins from solver coordinates, quaternions normalised, shape (bodies, 7); NaN stays NaN."""
    from cardan.system import _tables

    out: FloatArray = q.copy()
    poses = out.reshape(-1, layout.POSE)
    norms = np.sqrt(np.einsum("ij,ij->i", poses[:, 3:], poses[:, 3:]))
    if not norms.all():
        norms[norms == 0.0] = np.nan  # a quaternion that collapsed has no direction
    poses[:, 3:] /= norms[:, None]
    _tables.shift_reference(len(system.names), system.centers.reshape(-1), system.origin, -1.0, out)
    return poses


def gamma(system: System, formulation: str, q: FloatArray, v: FloatArray) -> FloatArray:
    """γ = −J̇ v, so that accelerations obey J v̇ = γ; shape (rows,).

    q: solver coordinates, flat.  v: velocities of the formulation, flat: (ṙ, ω in body) or (ṙ, ṗ) per body.
    """
    from cardan.coordinates import _gamma

    kind = REGISTRY[formulation]
    bodies = len(system.names)
    rows = system.powers.size + (bodies if kind.normalised else 0)
    out: FloatArray = np.zeros(rows)
    work = np.empty(9 * bodies + 8 * layout.MAX_COMPONENTS**2)
    _gamma.update_gamma(system.ints, system.floats, q, v, kind.normalised, out, work)
    return out
