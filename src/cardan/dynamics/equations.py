"""The equations of motion of a packed system as tables for the kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.coordinates import formulations
from cardan.dynamics import tables
from cardan.dynamics.algebra import linear_algebra
from cardan.dynamics.forces import Forces
from cardan.dynamics.joint_inertias import JointInertias
from cardan.solvers.problem import Algebra, Problem
from cardan.system import tables as layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System, ints_at

AnyArray = NDArray[Any]  # of records
NONE: Mapping[str, float] = MappingProxyType({})

LEAST_SENSITIVITY: Final = 1e-9  # of a residual to that in judged form: a smaller one cannot be told from rounding
LIGHT: Final = 1e-4  # of the metric: pseudo-masses, which the factor has where there is no mass


class Stop(NamedTuple):
    """A limit: the name of the constraint that holds its coordinate at a bound where it is reached, and its bounds.

    ``is_turn``: its coordinate is the angle about an axis of a joint, whose rate is linear in the velocities of bodies.
    ``restitution``: of hits.
    """

    name: str
    lower: float
    upper: float
    is_turn: bool = False
    restitution: float = 0.0


class Opening(NamedTuple):
    """A contact that opens: its name, its restitution, and its static and kinetic friction."""

    name: str
    restitution: float
    friction: tuple[float, float]


class PoseAlgebra(NamedTuple):
    """Linear algebra of the equations of poses, and the number of each among all equations."""

    algebra: Algebra
    equations: IntArray


class Equations:
    """Masses, gravity, constraints and linear algebra of a system whose reference frames are the principal frames.

    ``masses``, shape (bodies, 6): the diagonal of M [kg, kg m²].  ``is_massless``: whether M is singular.  ``metric``:
    the same as M, but positive where there is no mass, for projections and scales; ``light``: with a small part of it
    there, the pseudo-masses of the factor.  No result depends on both.  ``gravity`` [m/s²].  Threads may share it.
    ``equations``: the row of each equation, not ascending in general.  ``stops``: limits, each a row c − bound of the
    system that is an equation only while the bound is reached; ``stop_table`` and ``bounds``: their tables for kernels.
    ``forces``: of the loads, None if there are none.  ``rate_rows``: names of the constraints of velocities alone;
    ``poses``: the linear algebra without them, None if there are none.  ``inertias``: of joints, by the names of the
    rows of their coordinates, which are no equations; ``joint_inertias``: where these are; ``compliances``: their 1/I,
    zero of equations.  ``weights``: of residuals, zero for these rows.  ``guards``: rows that exclude opposite axes.
    ``offsets``: of the pieces of a workspace, once they are planned.  ``openings``: contacts that open, whose gaps are
    the last of the stops; their bounds are zero, in a float behind those of the problem.  ``frictions``: of joints
    (:class:`cardan.dynamics.joint_friction.JointRow`), whose rows hold where they stick; ``friction_places``: by the
    names of these rows, the float that holds the coordinate there.
    """

    def __init__(
        self,
        system: System,
        masses: FloatArray,
        gravity: Any,
        stops: Sequence[Stop] = (),
        forces: Forces | None = None,
        metric: FloatArray | None = None,
        inertias: Mapping[str, float] = NONE,
        openings: Sequence[Opening] = (),
        frictions: Sequence[Any] = (),
    ) -> None:
        self.system = system
        self.forces = forces
        self.offsets: IntArray | None = None
        self.problem = formulations.motion_problem(system, "manifold")
        self.algebra, self.equations = linear_algebra(system, self.problem.structure)
        every = system.rows
        self.rate_rows: tuple[str, ...] = tuple(dict.fromkeys(r.constraint for r in every if r.primitive.of_rates))
        self.poses = self._pose_algebra()
        opposed = [row.start + k for row in every if row.primitive.measure == "chord" for k in row.primitive.guards]
        self.guards: IntArray = np.array(opposed, dtype=np.int64)
        self.is_judged_otherwise = any([row.primitive.judged_as != row.primitive.name for row in every])
        own = self.problem.scales[: self.problem.rows][self.equations]  # a copy
        self.masses = masses
        self.metric = masses if metric is None else metric
        self.is_massless = not masses.all()
        self.gravity: FloatArray = np.array(gravity, dtype=np.float64)
        self.coordinates = self.problem.sizes.coordinates
        self.light = np.where(masses > 0.0, masses, LIGHT * self.metric)
        rows = {row.constraint: row.start for row in every}
        number = {int(row): k for k, row in enumerate(self.equations)}
        self.inertias = dict(inertias)
        of_joints: IntArray = np.array([rows[name] for name in inertias], dtype=np.int64)
        numbers: IntArray = np.array([number[row] for row in of_joints.tolist()], dtype=np.int64)
        self.joint_inertias = JointInertias(numbers, of_joints, np.array(list(inertias.values())))
        self.compliances: FloatArray = np.zeros(self.equations.size)
        self.compliances[numbers] = 1.0 / self.joint_inertias.values
        own[numbers] = 0.0  # coordinates, and no residuals
        self.frictions = tuple(frictions)
        if frictions:
            sliding = [number[rows[one.name]] for one in frictions]
            self.compliances[sliding] = 1.0  # a run chooses them
            own[sliding] = 0.0
        self.weights: FloatArray = own
        self.values = self.mass_values(self.light)
        places = [(position, number[rows[signal.name]]) for position, signal in system.signals]
        self.drivers: IntArray = np.array(places, dtype=np.int64).reshape(-1)
        self.timed: IntArray = np.array([position for position, _, _ in system.timed], dtype=np.int64)
        self.openings = tuple(openings)
        stops = [*stops, *[Stop(one.name, 0.0, np.inf) for one in openings]]
        self.stops = tuple(stops)
        parameters = {row.constraint: par for row, par in zip(every, ints_at(system, layout.PAR), strict=True)}
        self.friction_places = {one.name: parameters[one.name] for one in frictions} if frictions else {}
        parameters |= {one.name: self.problem.floats.size for one in openings}
        table = [(number[rows[stop.name]], rows[stop.name], parameters[stop.name]) for stop in stops]
        self.stop_table: AnyArray = np.array(table, dtype=tables.Stop.dtype)
        weights = own[self.stop_table["equation"]]
        self.bounds: AnyArray = np.zeros(len(stops), dtype=tables.Bound.dtype)
        self.bounds["lower"] = [stop.lower for stop in stops]
        self.bounds["upper"] = [stop.upper for stop in stops]
        self.bounds["weight"] = weights

    def _pose_algebra(self) -> PoseAlgebra | None:
        """The linear algebra of poses, to which rate rows do not belong; None if it is that of all equations."""
        if not self.rate_rows:
            return None
        found = linear_algebra(self.system, self.problem.structure, with_rates=False)
        number = {int(row): k for k, row in enumerate(self.equations)}
        return PoseAlgebra(found.algebra, np.array([number[int(row)] for row in found.equations], dtype=np.int64))

    def __reduce__(self) -> tuple[Any, ...]:
        limits = self.stops[: len(self.stops) - len(self.openings)]
        of_all = (self.system, self.masses, self.gravity, limits, self.forces, self.metric, self.inertias)
        return Equations, (*of_all, self.openings, self.frictions)

    def __deepcopy__(self, memo: Any) -> Equations:
        return self

    def mass_values(self, used: FloatArray) -> FloatArray:
        """MassValues with the roots of other masses than M, which must be positive."""
        roots = np.sqrt(used.ravel())
        length = self.system.unit
        judged = self.weights
        if self.is_judged_otherwise:
            judged = judged / np.maximum(self.system.sensitivities(length)[self.equations], LEAST_SENSITIVITY)
        roundings = np.where(self.system.powers[self.equations] > 0, tables.ROUNDING / length, 0.0)
        parts = (self.masses.ravel(), roots, 1.0 / roots, self.gravity, judged, roundings)
        self.mass_pieces: IntArray = np.cumsum([0, *[part.size for part in parts]])
        return np.concatenate(parts)

    @property
    def columns(self) -> int:
        """Number of columns of the results: time, q, v, v̇, λ."""
        return 1 + self.coordinates + 2 * tables.WIDTH * len(self.system.names) + self.equations.size

    @property
    def constraints(self) -> Problem:
        """The problem in which rows of inertias of joints have no weight."""
        p = self.problem
        if not self.inertias:
            return p
        scales = p.scales.copy()
        scales[self.joint_inertias.rows] = 0.0
        return Problem(p.evaluate, p.ints, p.floats, p.structure, scales, p.algebra, p.springs)

    def with_floats(self, floats: FloatArray) -> Problem:
        """The problem with the linear algebra of motions, and these parameters."""
        p = self.problem
        return Problem(p.evaluate, p.ints, floats, p.structure, p.scales, self.algebra)

    def floats_at(self, time: float) -> FloatArray:
        """The evaluator's floats with the values of all drivers at a time."""
        return self.system.floats_at(time)
