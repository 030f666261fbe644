"""Formulations: the choice of unknowns for the poses.  All share the system's tables; each has its own chain rule.

To add one: a kernel module with its retraction, chain and rates (:mod:`cardan.coordinates._walk`), and a line in
REGISTRY.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import Literal

import numpy as np

from cardan.coordinates import parallel_springs as sharing
from cardan.coordinates import relative
from cardan.errors import ModelError
from cardan.lazy import LazyModule, TieredModule
from cardan.solvers.linear import linear_algebra
from cardan.solvers.problem import Algebra, Problem
from cardan.solvers.tables import GAMMA, Constraint, Structure
from cardan.system import reading
from cardan.system import tables as layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System
from cardan.system.tables import SystemTable

_blocks = LazyModule("cardan.solvers._blocks")
_records = LazyModule("cardan.coordinates._records")
_structure = TieredModule("cardan.coordinates._structure")
_tables = TieredModule("cardan.system._tables")
_tracking = LazyModule("cardan.coordinates._tracking")

Formulation = Literal[
    "manifold",
    "euler_parameters",
    "virtual_rotation",
    "euler_angles",
    "relative",
    "relative_euler_parameters",
    "relative_virtual_rotation",
]


@dataclass(frozen=True, slots=True)
class FormulationKind:
    """Unknowns per body of a formulation, their scales, and the module of its kernels.

    ``angular`` is the scale of an unknown of rotation: 1 for radians, ½ where δp ≈ ½ δθ.
    """

    name: str
    module: str
    width: int
    normalised: bool
    angular: float

    def evaluate(self) -> int:
        """Address of the evaluator; compiles or loads it at the first call."""
        return _address(self.module)

    def evaluate_motion(self) -> int:
        """Address of the evaluator that has GAMMA too, but does not retract; compiled at the first call."""
        return _motion_address(self.module)


@cache
def _address(module: str) -> int:
    return import_module(module).EVALUATE


@cache
def _motion_address(module: str) -> int:
    from cardan.kernel.jit import evaluator

    return evaluator(import_module(module).evaluate_motion)


REGISTRY: dict[str, FormulationKind] = {
    kind.name: kind
    for kind in (
        FormulationKind("manifold", "cardan.coordinates._manifold", 6, False, 1.0),
        FormulationKind("euler_parameters", "cardan.coordinates._euler_parameters", 7, True, 0.5),
        FormulationKind("virtual_rotation", "cardan.coordinates._virtual_rotation", 7, True, 0.5),
        FormulationKind("euler_angles", "cardan.coordinates._euler_angles", 6, False, 1.0),
    )
}


LEAST_EXTENT = 1e-9  # of the mechanism's extent: joint points of a body that are nearer are in one place
ROUNDING = 64 * float(np.finfo(float).eps)  # error of an angle that is computed from poses

CHOICES: tuple[str, ...] = (*REGISTRY, *relative.FORMULATIONS)  # of poses, and of joint coordinates


def structure(system: System, kind: FormulationKind) -> IntArray:
    """The solvers' structure table of a system in a formulation."""
    ints = system.ints
    header = SystemTable.read(ints)
    bodies, free = header.bodies, header.free
    extra = bodies if kind.normalised else 0
    links = int(ints[system.starts[:-1] + layout.WIDE].sum()) if free else 0
    records = Constraint.size * (header.constraints + extra) + header.blocks + links + extra
    table: IntArray = np.empty(Structure.size + records + 2 * (bodies + free + 1), dtype=np.int64)
    work = _records.plan_workspace(header).size
    end = _structure.fill_structure(ints, kind.width, kind.normalised, work, table)
    return table[:end]


def _structured(system: System, kind: FormulationKind) -> tuple[IntArray, Algebra]:
    """The structure table, and the linear algebra for it."""
    table = structure(system, kind)
    return table, linear_algebra(table)


def problem(system: System, formulation: str, length: float | None = None, time: float | None = None) -> Problem:
    """What a solver needs; residuals and unknowns that are lengths are scaled by ``length`` (None: the system's).

    time [s]: of the drivers, where there are any; None where their values do not matter, as for a retraction.
    """
    own = system.unit
    key = ("problem", formulation) if length is None or length == own else None
    found: Problem | None = system.cached(key, partial(_problem, system, formulation, own)) if key else None
    if found is None:
        assert length is not None
        found = _problem(system, formulation, length)
    if time is None or not (system.signals or system.timed):
        return found
    floats = system.floats_at(time)
    own_floats = found.floats[floats.size :]  # relative formulations append their own
    return found.with_floats(np.concatenate([floats, own_floats]) if own_floats.size else floats)


def refuse_unsupported(system: System, formulation: str) -> None:
    """ModelError if a formulation by joints cannot have what the system contains."""
    if not projects(formulation):
        return
    system.refuse_timed(f"formulation {formulation!r}")
    if system.variable_names:
        names = ", ".join(map(repr, system.variable_names))
        raise ModelError(
            f"formulation {formulation!r} cannot solve for parameters or take them from each start, as {names} "
            "here; use a formulation by poses, such as 'manifold'"
        )
    if system.contacts:
        raise ModelError(
            f"formulation {formulation!r} has no contact coordinates, which {system.contacts[0]!r} needs; use "
            "a formulation by poses, such as 'manifold'"
        )


def _problem(system: System, formulation: str, length: float) -> Problem:
    if formulation in relative.FORMULATIONS:
        refuse_unsupported(system, formulation)
        return relative.problem(system, formulation, length)
    kind = REGISTRY[formulation]
    bodies = len(system.names)
    extra = bodies if kind.normalised else 0
    scales: FloatArray = np.empty(system.powers.size + extra + kind.width * bodies)
    _structure.fill_scales(system.powers, length, kind.angular, bodies, kind.width, scales)
    if system.variable_scales is not None:
        scales = np.concatenate([scales, system.variable_scales.at(length)])
    table, linear = system.cached(("structure", kind.name), partial(_structured, system, kind))
    ints = system.addressed
    if system.has_contacts:
        layout.SystemTable(ints).track = _tracking.TRACK
    return Problem(kind.evaluate(), ints, system.floats, table, scales, linear)


def with_springs(system: System, formulation: str, found: Problem, length: float, workers: int = 1) -> Problem:
    """The problem with the scales of the spring step, and its division among threads.

    Lengths of a body are measured in its own extent ℓ, twice the largest distance of its joint points from their
    centroid: an unknown of rotation has the scale 1/ℓ where those of positions have the scale 1.  A row in radians is
    measured at the least ℓ of its bodies, a squared distance d² − l² as if it were d − l.  So forces and torques on a
    body are in proportion, whatever the size of the mechanism.  Joint coordinates are measured in the extent of all.
    """
    if projects(formulation):
        return found
    made = found.with_floats(found.floats)
    if length == system.unit:
        key = "springs", formulation
        made.springs = system.cached(key, lambda: _springs(system, formulation, found, length))
    else:
        made.springs = _springs(system, formulation, found, length)
    made.shares = sharing.shares(system, formulation, made, workers)
    return made


def _springs(system: System, formulation: str, found: Problem, length: float) -> FloatArray:
    kind = REGISTRY[formulation]
    bodies, rows = len(system.names), found.rows
    sizes = body_extents(system) / length
    of_rows: FloatArray = np.ones(rows)
    table = system.ints.tolist()
    for at, primitive in zip(system.starts[:-1].tolist(), system.primitives, strict=True):
        record, movable = reading.record(table, at), reading.bodies(table, at)
        least = float(sizes[movable].min()) if movable else 1.0
        for i, power in enumerate(primitive.powers):
            if power == 0:
                of_rows[record.row + i] = least
            elif power == 2:
                value = abs(float(system.floats[record.par])) if primitive.parameters else 0.0
                of_rows[record.row + i] = length / (2.0 * value) if value > 0.0 else 1.0
    if kind.normalised:
        of_rows[rows - bodies :] = sizes
    columns: FloatArray = np.ones(found.unknowns)
    turned = columns[: kind.width * bodies].reshape(bodies, kind.width)
    turned[:, 3:] = 1.0 / sizes[:, None]
    return np.concatenate([found.scales * np.concatenate([of_rows, columns]), 1.0 / of_rows])


def body_extents(system: System) -> FloatArray:
    """Twice the largest distance [m] of a body's joint points from their centroid, shape (bodies,).

    A body whose joint points are in one place has the median of all others, or the extent of the mechanism.
    """

    def find() -> FloatArray:
        far: FloatArray = np.zeros(len(system.names))
        table, floats = system.ints.tolist(), system.floats.tolist()
        for at in system.starts[:-1].tolist():
            for feature in reading.features(table, at):
                if feature.kind == layout.POINT and feature.body >= 0:
                    x, y, z = floats[feature.source : feature.source + 3]
                    far[feature.body] = max(far[feature.body], x * x + y * y + z * z)
        found = 2.0 * np.sqrt(far)
        is_small = found <= LEAST_EXTENT * system.judged_length
        found[is_small] = np.median(found[~is_small]) if not is_small.all() else system.judged_length
        return found

    return system.cached("body extents", find)


def projects(formulation: str) -> bool:
    """Whether its coordinates cannot represent every pose: a start is then projected onto those they can."""
    return formulation in relative.FORMULATIONS


def enter(system: System, formulation: str, q: FloatArray) -> FloatArray:
    """The formulation's own coordinates of the poses q: q itself (no copy), except in relative formulations."""
    return relative.enter(system, formulation, q) if projects(formulation) else q


def leave(system: System, formulation: str, x: FloatArray, q: FloatArray) -> None:
    """q ← poses of the coordinates x of a relative formulation; in all others x is q already."""
    if projects(formulation):
        relative.leave(system, formulation, x, q)


def to_reference(system: System, coordinates: FloatArray, near: FloatArray | None = None) -> FloatArray:
    """Solver coordinates q, flat: positions are those of the reference points, from the system's origin.

    Behind the poses come the variables and the counted angles [rad]: those of ``near``, the angles within half a turn;
    None for the drawn values and zero.
    """
    if not system.counted_angles and not system.variable_names:
        q: FloatArray = np.array(coordinates, dtype=np.float64).ravel()
    else:
        q = np.concatenate([np.asarray(coordinates, dtype=np.float64).ravel(), system.tail if near is None else near])
    _tables.shift_reference(len(system.names), system.reference_frames.reshape(-1), system.origin, 1.0, q)
    return with_angles_of_poses(system, q)


def with_angles_of_poses(system: System, q: FloatArray) -> FloatArray:
    """q with its counted angles computed from its poses, within half a turn of what they are in q."""
    count = len(system.counted_angles)
    if not count:
        return q
    own = problem(system, "manifold")
    moved = own.retract(q, np.zeros(own.unknowns))
    out = q.copy()
    out[-count:] = moved[-count:]
    return out


def angles(system: System, q: FloatArray) -> FloatArray:
    """Variables and counted angles [rad] in solver coordinates, shape (variables + angles,)."""
    return q[layout.POSE * len(system.names) :]


def same_angles(found: FloatArray, known: FloatArray) -> FloatArray:
    """The known angles [rad] where those found differ by rounding only, else those found; equal shapes."""
    return np.where(np.abs(found - known) <= ROUNDING * np.maximum(1.0, np.abs(known)), known, found)


def from_reference(system: System, q: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Poses of the body origins from solver coordinates, quaternions normalised, shape (bodies, 7); NaN stays NaN.

    out: where to, flat; a new array where none is given.
    """
    count = len(system.names)
    own = q[: layout.POSE * count]
    if out is None:
        out = own.copy()
    else:
        out[:] = own
    _tables.shift_reference(count, system.reference_frames.reshape(-1), system.origin, -1.0, out)
    return out.reshape(count, layout.POSE)


def gamma(
    system: System, formulation: str, q: FloatArray, v: FloatArray, floats: FloatArray | None = None
) -> FloatArray:
    """γ = −J̇ v, so that accelerations obey J v̇ = γ; shape (rows,).

    With parameters that are functions of time, γ = −(C_q q̇)_q q̇ − 2 C_qt q̇ − C_tt; floats: those of the time.

    q: solver coordinates, flat.  v: velocities of the formulation, flat, per body: (ṙ, ω in body) on the manifold,
    (ṙ, ṗ) in Euler parameters and for virtual rotations (on the unit sphere), (ṙ, ψ̇, θ̇, φ̇) in Euler angles.
    """
    p = motion_problem(system, formulation)
    out: FloatArray = np.empty(p.rows)
    work = np.empty(int(Structure(p.structure).work))
    own = p.floats if floats is None else floats
    _blocks.call_at(p.evaluate, GAMMA, p.ints, own, q, v, out, _EMPTY, work)
    return out


def time_derivative(system: System, q: FloatArray, time: float) -> FloatArray:
    """C_t on the manifold, of the parameters that are functions of time, shape (rows,); zero for drivers.

    γ without velocities is −C_c c̈; with ċ in place of c̈ and no ċ it is −C_t.
    """
    floats = system.floats_at(time)
    for position, _, _ in system.timed:
        floats[position + 1 : position + 3] = 0.0, floats[position + 1]
    p = motion_problem(system, "manifold")
    return -gamma(system, "manifold", q, np.zeros(p.unknowns), floats)


def motion_problem(system: System, formulation: str) -> Problem:
    """The problem of a system whose evaluator has GAMMA: its integers end with the codes of the curvatures."""

    def make() -> Problem:
        p = problem(system, formulation)
        ints = np.concatenate([p.ints, system.curvature_codes()])
        return Problem(REGISTRY[formulation].evaluate_motion(), ints, p.floats, p.structure, p.scales, p.algebra)

    return system.cached(("motion", formulation), make)


_EMPTY: FloatArray = np.empty(0)
