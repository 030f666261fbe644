"""The loads of a packed system as tables for the kernels, and the calls of users' functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.coordinates import formulations
from cardan.dynamics import tables
from cardan.dynamics.functions import Called, NotFiniteError, Recorded
from cardan.dynamics.loads import Load
from cardan.dynamics.tables import WIDTH, LawCall
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.solvers.problem import Problem
from cardan.solvers.tables import Structure
from cardan.system import tables as layout
from cardan.system.formulas import Values, plain_at
from cardan.system.parts import BodyRecord, CountedAngle
from cardan.system.relations import Bundle
from cardan.system.state import FloatArray, State
from cardan.system.system import System

_blocks = LazyModule("cardan.solvers._blocks")
_loads = LazyModule("cardan.dynamics._loads")


class Reading(NamedTuple):
    """Of one load: coordinate [m or rad] with its rate, effort [N or N m], potential energy [J].

    A bushing has six coordinates: only its energy is given.  An effort that is not defined is NaN.
    """

    coordinate: float
    rate: float
    effort: float
    energy: float


class Law(NamedTuple):
    """A law on the next ``rows`` rows of the load system."""

    name: str
    code: int
    sort: int
    numbers: tuple[float, ...]
    rows: int
    function: Recorded | Called | None


class Wrench(NamedTuple):
    """A wrench on a body by number; numbers: point and vector, in principal axes where they are in body axes."""

    body: int
    is_torque: bool
    in_body: bool
    numbers: tuple[float, ...]
    function: Recorded | Called | None


class Forces:
    """Generalised forces of loads: per body the force in world at its centre of mass, and the torque in principal axes.

    ``system``: that of the mechanism, whose reference frames are the principal frames.  ``angles``: its counted angles.
    ``address``, ``table``, ``floats``: of the kernel (:mod:`.tables`); ``work``: floats of its workspace.
    ``asks``: whether Python must call a function in every evaluation (:meth:`extra`).  Threads may share it.
    """

    def __init__(
        self,
        system: System,
        bodies: Sequence[BodyRecord],
        loads: Sequence[Load],
        angles: Sequence[CountedAngle],
        values: Values | None = None,
    ) -> None:
        """values: of the formulas; they have their drawn values where none are given."""
        self.system = system
        nodes = None if values is None else values.nodes
        self._laws: list[Law] = []
        self._wrenches: list[Wrench] = []
        bundles = []
        for load in loads:
            relations, law, wrench, function, _ = load.action
            if law is not None:
                bundles.append(Bundle(load.name, relations))
                numbers = plain_at(law.numbers, nodes)
                rows = sum(r.primitive.rows for r in relations)
                self._laws.append(Law(load.name, law.code, law.sort, numbers, rows, function))
            if wrench is not None:
                body = system.index[wrench.body.name]
                point = self._in_principal(
                    body, np.array(plain_at(wrench.point, nodes)) - system.reference_points[body]
                )
                vector = np.array(plain_at(wrench.vector, nodes))
                vector = self._in_principal(body, vector) if wrench.in_body else vector
                numbers = (*point.tolist(), *vector.tolist())
                self._wrenches.append(Wrench(body, wrench.is_torque, wrench.in_body, numbers, function))
        self._packed = System(bodies, bundles, angles, system.reference_frames, formulas=values)
        self._make_tables()

    def _make_tables(self) -> None:
        self.asks = any(isinstance(function, Called) for function in self.functions)
        self._to_origins = _to_origins(self.system)
        manifold = formulations.REGISTRY["manifold"]
        structure = formulations.structure(self._packed, manifold)
        header = Structure(structure)
        rows, entries, evaluation = int(header.rows), int(header.jacobian_size), int(header.work)
        offsets = tables.LoadWork.plan(
            evaluation=evaluation, x=rows, rates=rows, efforts=rows, scratch=LawCall.size, jacobian=entries
        )
        self.work = int(offsets[-1])
        self.address: int = _loads.ACT
        table: list[int] = []
        numbers: list[float] = []
        row = 0
        for law in self._laws:
            address = law.function.address() if isinstance(law.function, Recorded) else 0
            table += [law.code, row, law.rows, law.sort, len(numbers), address]  # Law
            numbers += law.numbers
            row += law.rows
        for wrench in self._wrenches:
            called = isinstance(wrench.function, Called)
            table += [wrench.body, wrench.is_torque, wrench.in_body, called, len(numbers)]  # Wrench
            numbers += wrench.numbers
        self._own_floats = _measured_from(self.system.origin, self._packed)
        self.table = tables.Loads.new(
            open=len(table),
            evaluator=manifold.evaluate(),
            ints=self._packed.addressed,
            floats=self._own_floats,
            structure=structure,
            law_count=len(self._laws),
            wrench_count=len(self._wrenches),
            pieces=offsets,
        )
        self.table.as_ints[tables.Loads.size :] = table
        self.floats: FloatArray = np.array(numbers or [0.0])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Forces):
            return NotImplemented
        mine, theirs = (self._packed, self._laws, self._wrenches), (other._packed, other._laws, other._wrenches)
        return self.system.names == other.system.names and mine == theirs

    __hash__ = None  # type: ignore[assignment]  # compared by value, and arrays have no hash

    def __deepcopy__(self, memo: Any) -> Forces:
        return self  # nothing changes it

    def __getstate__(self) -> tuple[Any, ...]:
        return self.system, self._packed, self._laws, self._wrenches  # addresses are valid in this process only

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.system, self._packed, self._laws, self._wrenches = state
        self._make_tables()

    def _in_principal(self, number: int, vector: FloatArray) -> FloatArray:
        """A vector in body axes, in the principal axes of a body."""
        axes = self.system.reference_axes
        return vector if axes is None else euler.rotate(euler.conjugate(axes[number]), vector)

    def _call(self, op: int, q: FloatArray, v: FloatArray, out: FloatArray, given: FloatArray) -> None:
        _blocks.call_at(self.address, op, self.table.as_ints, self.floats, q, v, out, given, np.empty(self.work))

    def read(self, t: float, q: FloatArray, v: FloatArray) -> dict[str, Reading]:
        """Of each load that has them: coordinate, rate and effort, and its potential energy [J]."""
        out = self.readings(t, q, v)
        for row, law in zip(out, self._laws, strict=True):
            if isinstance(law.function, Called):
                row["effort"] = law.function.number(t, float(row["coordinate"]), float(row["rate"]))
        return {
            law.name: Reading(*row[: len(Reading._fields)]) for law, row in zip(self._laws, out.tolist(), strict=True)
        }

    def potential(self, q: FloatArray) -> float:
        """Potential energy [J] of all springs and bushings."""
        return float(self.readings(0.0, q, np.zeros(WIDTH * len(self.system.names)))["energy"].sum())

    def readings(self, t: float, q: FloatArray, v: FloatArray) -> NDArray[Any]:
        """A record of each law, :class:`tables.Reading`; the effort of a called one is not known."""
        readings = np.zeros(len(self._laws), dtype=tables.Reading.dtype)
        self._call(tables.READ, q, v, readings.view(np.float64), _at(t))
        return readings

    def efforts(self, name: str, times: FloatArray, q: FloatArray, v: FloatArray) -> FloatArray:
        """Efforts of one load that has a coordinate, at many instants; shapes (times,), (times, …)."""
        return np.array([self.read(*at)[name].effort for at in zip(times.tolist(), q, v, strict=True)])

    @property
    def laws(self) -> tuple[Law, ...]:
        """Laws on the rows of :attr:`coordinates`, in their order."""
        return tuple(self._laws)

    @property
    def functions(self) -> tuple[Recorded | Called | None, ...]:
        """Users' functions of all laws and wrenches."""
        return *[law.function for law in self._laws], *[wrench.function for wrench in self._wrenches]

    @property
    def wrenches(self) -> tuple[Wrench, ...]:
        """Wrenches on bodies."""
        return tuple(self._wrenches)

    @cached_property
    def coordinates(self) -> Problem:
        """The coordinates that laws act on as rows of a problem, with their curvatures."""
        return formulations.motion_problem(self._packed, "manifold").with_floats(self._own_floats)

    @property
    def has_rates(self) -> bool:
        """Whether laws act on rows of rates, which are not derivatives of functions."""
        return any([row.primitive.of_rates for row in self._packed.rows])

    @property
    def named(self) -> list[str]:
        """Names of the loads that have one coordinate."""
        return [law.name for law in self._laws if law.code != tables.MATRIX]

    @property
    def units(self) -> dict[str, str]:
        """ "m" or "rad", the unit of the coordinate of each load that has one."""
        named = set(self.named)
        return {row.constraint: row.primitive.units[0] for row in self._packed.rows if row.constraint in named}

    def total(self, t: float, q: FloatArray, v: FloatArray) -> FloatArray:
        """Generalised forces of all loads, WIDTH floats per body."""
        out: FloatArray = np.zeros(WIDTH * len(self.system.names))
        if self.asks:
            self.extra(t, q, v, out)
        self._call(tables.FORCE, q, v, out, _at(t))
        return out

    def undefined(self, t: float, q: FloatArray, v: FloatArray) -> list[str]:
        """Names of the loads that have no finite force there, such as a stretched spring of length zero."""
        return [name for name, reading in self.read(t, q, v).items() if not math.isfinite(reading.effort)]

    def extra(self, t: float, q: FloatArray, v: FloatArray, out: FloatArray) -> None:
        """out ← forces of the loads whose functions Python calls; ModelError, with the load and the time, if one fails.

        q, v: of the solvers, flat.  out: WIDTH floats per body.
        """
        given = np.zeros(len(self._laws) + 3 * len(self._wrenches))
        called = [(k, law.sort, f) for k, law in enumerate(self._laws) if isinstance(f := law.function, Called)]
        readings: NDArray[Any] = self.readings(t, q, v) if called else np.empty(0)
        for k, sort, function in called:
            x, rate = float(readings["coordinate"][k]), float(readings["rate"][k])
            given[k] = function.number(t, x, rate)
            if given[k] and x == 0.0 and sort == tables.APART:
                text = "its points coincide, so its force has no direction"
                raise NotFiniteError(f"{function.what} at t = {t:g} s: {text}")
        vectors = given[len(self._laws) :].reshape(-1, 3)
        state: State | None = None
        for vector, wrench in zip(vectors, self._wrenches, strict=True):
            if isinstance(wrench.function, Called):
                state = state or self.state(t, q, v)
                own = np.array(wrench.function.vector(t, state))
                vector[:] = self._in_principal(wrench.body, own) if wrench.in_body else own
        out[:] = 0.0
        self._call(tables.APPLY, q, v, out, given)

    def state(self, t: float, q: FloatArray, v: FloatArray) -> State:
        """The state that functions are given."""
        system = self.system
        coordinates = formulations.from_reference(system, q)
        velocities = (self._to_origins @ v.reshape(-1, WIDTH, 1))[:, :, 0]  # c × ω, and ω, in body axes
        velocities[:, :3] = v.reshape(-1, WIDTH)[:, :3] + euler.rotate(coordinates[:, 3:], velocities[:, :3])
        angles = dict(zip(system.counted_angles, formulations.angles(system, q).tolist(), strict=True))
        return State(
            system.names,
            system.index,
            coordinates,
            velocities=velocities,
            angles=angles,
            time=t,
            variables=system.values,
        )


def _at(t: float) -> FloatArray:
    """A control vector with that time."""
    control: FloatArray = tables.Control.new(ask_time=t).as_floats
    return control


def _to_origins(system: System) -> FloatArray:
    """Shape (bodies, 6, 6): from v of a reference frame at c with the axes R to c × ω and ω, ω = R v[3:]."""
    axes = system.reference_axes
    R = np.tile(np.eye(3), (len(system.names), 1, 1)) if axes is None else euler.matrix(axes)
    found = np.zeros((len(R), WIDTH, WIDTH))
    found[:, :3, 3:] = np.cross(system.reference_points[:, :, None], R, axis=1)
    found[:, 3:, 3:] = R
    return found


def _measured_from(origin: FloatArray, packed: System) -> FloatArray:
    """The floats of a packed system, with the points of the ground measured from another origin."""
    floats = packed.floats.copy()
    for start in packed.starts[:-1].tolist():
        record = packed.ints[start : int(packed.ints[start + layout.NEXT])].tolist()
        for at in range(layout.RECORD + record[layout.SLOTS], len(record), layout.FEATURE):
            if record[at + layout.KIND] == layout.POINT and record[at + layout.BODY] < 0:
                source = record[at + layout.SOURCE]
                floats[source : source + 3] += packed.origin - origin
    return floats
