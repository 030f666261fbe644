"""The loads of a packed system as tables for the kernels, and the calls of users' functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cardan.coordinates import formulations
from cardan.dynamics import abi
from cardan.dynamics.functions import Called, Recorded
from cardan.dynamics.loads import Load
from cardan.errors import ModelError
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.solvers import abi as solvers_abi
from cardan.system import layout
from cardan.system.parts import Body, CountedAngle
from cardan.system.relations import Bundle
from cardan.system.state import FloatArray, State
from cardan.system.system import IntArray, System

_blocks = LazyModule("cardan.solvers._blocks")
_loads = LazyModule("cardan.dynamics._loads")

WIDTH = 6


class Reading(NamedTuple):
    """Of one load: coordinate [m or rad] with its rate, effort [N or N m], potential energy [J].

    A bushing has six coordinates: only its energy is given.  An effort that is not defined is NaN.
    """

    coordinate: float
    rate: float
    effort: float
    energy: float


class Forces:
    """Generalised forces of loads: per body the force in world at its centre of mass, and the torque in principal axes.

    ``system``: that of the mechanism, whose reference frames are the principal frames.  ``angles``: its counted angles.
    ``address``, ``ints``, ``floats``: of the kernel (:mod:`.abi`); ``work``: floats of its workspace.
    ``asks``: whether Python must call a function in every evaluation (:meth:`extra`).  Threads may share it.
    """

    def __init__(
        self, system: System, bodies: Sequence[Body], loads: Sequence[Load], angles: Sequence[CountedAngle]
    ) -> None:
        from cardan._jit import address_of

        self.system = system
        self._to_origins = _to_origins(system)
        self._laws = [load for load in loads if load.action.law is not None]
        self._apart = [load.action.law is not None and load.action.law.sort == abi.APART for load in self._laws]
        self._wrenches = [load for load in loads if load.action.wrench is not None]
        self.asks = any(load.is_called for load in loads)
        bundles = [Bundle(load.name, load.relations) for load in self._laws]
        packed = System(bodies, bundles, angles, system.reference_frames)
        manifold = formulations.REGISTRY["manifold"]
        structure = formulations.structure(packed, manifold)
        rows, entries, evaluation = structure[[solvers_abi.ROWS, solvers_abi.JACOBIAN_SIZE, solvers_abi.WORK]].tolist()
        self.work: int = evaluation + 3 * rows + _loads.ARGUMENTS + entries
        self.address: int = _loads.ACT
        arrays = (packed.addressed, _measured_from(system.origin, packed), structure)
        self._arrays = arrays  # the table has only their addresses
        header = [manifold.evaluate(), *map(address_of, arrays), rows, entries]
        table = [*header, len(self._laws), len(self._wrenches), evaluation]
        numbers: list[float] = []
        row = 0
        for load in self._laws:
            law, function = load.action.law, load.action.function
            assert law is not None
            count = sum(relation.primitive.rows for relation in load.relations)
            code = function.address() if isinstance(function, Recorded) else 0
            table += [law.code, row, count, law.sort, len(numbers), code]
            numbers += law.numbers
            row += count
        for load in self._wrenches:
            wrench = load.action.wrench
            assert wrench is not None
            number = system.index[wrench.body.name]
            table += [number, wrench.is_torque, wrench.in_body, load.is_called, len(numbers)]
            point = self._in_principal(number, np.array(wrench.point) - system.reference_points[number])
            vector = np.array(wrench.vector)
            numbers += [*point, *(self._in_principal(number, vector) if wrench.in_body else vector)]
        self.ints: IntArray = np.array(table, dtype=np.int64)
        self.floats: FloatArray = np.array(numbers or [0.0])

    def _in_principal(self, number: int, vector: FloatArray) -> FloatArray:
        """A vector in body axes, in the principal axes of a body."""
        axes = self.system.reference_axes
        return vector if axes is None else euler.rotate(euler.conjugate(axes[number]), vector)

    def _call(self, op: int, q: FloatArray, v: FloatArray, out: FloatArray, given: FloatArray) -> None:
        _blocks.call_at(self.address, op, self.ints, self.floats, q, v, out, given, np.empty(self.work))

    def read(self, t: float, q: FloatArray, v: FloatArray) -> dict[str, Reading]:
        """Of each load that has them: coordinate, rate and effort, and its potential energy [J]."""
        out = np.zeros((len(self._laws), abi.READING))
        self._call(abi.READ, q, v, out.reshape(-1), _at(t))
        for row, load in zip(out, self._laws, strict=True):
            if isinstance(load.action.function, Called):
                row[2] = load.action.function.number(t, float(row[0]), float(row[1]))
        return {load.name: Reading(*row) for load, row in zip(self._laws, out.tolist(), strict=True)}

    def potential(self, q: FloatArray) -> float:
        """Potential energy [J] of all springs and bushings."""
        out = np.zeros((len(self._laws), abi.READING))
        self._call(abi.READ, q, np.zeros(WIDTH * len(self.system.names)), out.reshape(-1), _at(0.0))
        return float(out[:, 3].sum())

    def undefined(self, t: float, q: FloatArray, v: FloatArray) -> list[str]:
        """Names of the loads that have no finite force there, such as a stretched spring of length zero."""
        return [name for name, reading in self.read(t, q, v).items() if not math.isfinite(reading.effort)]

    def extra(self, t: float, q: FloatArray, v: FloatArray, out: FloatArray) -> None:
        """out ← forces of the loads whose functions Python calls; ModelError, with the load and the time, if one fails.

        q, v: of the solvers, flat.  out: WIDTH floats per body.
        """
        given = np.zeros(len(self._laws) + 3 * len(self._wrenches))
        readings = np.zeros((len(self._laws), abi.READING))
        called = [(k, f) for k, load in enumerate(self._laws) if isinstance(f := load.action.function, Called)]
        if called:
            self._call(abi.READ, q, v, readings.reshape(-1), _at(t))
            for k, function in called:
                given[k] = function.number(t, float(readings[k, 0]), float(readings[k, 1]))
                if given[k] and readings[k, 0] == 0.0 and self._apart[k]:
                    raise ModelError(
                        f"{function.what} at t = {t:g} s: its points coincide, so its force has no direction"
                    )
        vectors = given[len(self._laws) :].reshape(-1, 3)
        state: State | None = None
        for vector, load in zip(vectors, self._wrenches, strict=True):
            given_by, wrench = load.action.function, load.action.wrench
            if isinstance(given_by, Called) and wrench is not None:
                state = state or self.state(t, q, v)
                own = np.array(given_by.vector(t, state))
                vector[:] = self._in_principal(self.system.index[wrench.body.name], own) if wrench.in_body else own
        out[:] = 0.0
        self._call(abi.APPLY, q, v, out, given)

    def state(self, t: float, q: FloatArray, v: FloatArray) -> State:
        """The state that functions are given."""
        system = self.system
        coordinates = formulations.from_reference(system, q)
        velocities = (self._to_origins @ v.reshape(-1, WIDTH, 1))[:, :, 0]  # c × ω, and ω, in body axes
        velocities[:, :3] = v.reshape(-1, WIDTH)[:, :3] + euler.rotate(coordinates[:, 3:], velocities[:, :3])
        angles = dict(zip(system.counted_angles, formulations.angles(system, q).tolist(), strict=True))
        return State(system.names, system.index, coordinates, velocities=velocities, angles=angles, time=t)


def _at(t: float) -> FloatArray:
    """A control vector with that time."""
    control = np.zeros(abi.CONTROL)
    control[abi.ASK_TIME] = t
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
