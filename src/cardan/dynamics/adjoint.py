"""The gradient of a cost of a run by all numbers of its tables: the discrete adjoint of its steps.

Kernels: :mod:`._adjoint`, :mod:`._state_adjoint`, :mod:`._pullback`.  They have no parameters: the gradient is by the
numbers in the packed tables, and formulas of parameters are applied to it afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cardan.constraints import adjoints, codegen, tape
from cardan.dynamics import adjoint_tables as tables
from cardan.dynamics.adjoint_tables import (
    MASS_NUMBERS,
    Adjoint,
    AdjointWork,
    Closure,
    Kernels,
    LoadPull,
    LoadPullWork,
    Pull,
    PullWork,
)
from cardan.dynamics.equations import Equations
from cardan.dynamics.functions import Recorded
from cardan.dynamics.integrate import EXACT, FIXED_ORDER, STAGE_EXACT, START, TABLEAUS, TRIANGLES, Integration
from cardan.dynamics.tables import DONE, HISTORY, RULES, RUNNING, WIDTH, LawCall, Rule, Weights
from cardan.lazy import LazyModule
from cardan.system import tables as layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System, ints_at

_adjoint = LazyModule("cardan.dynamics._adjoint")
_state_adjoint = LazyModule("cardan.dynamics._state_adjoint")
_pullback = LazyModule("cardan.dynamics._pullback")
_blocks = LazyModule("cardan.solvers._blocks")

OF_STATE: Final = ("q_bar", "v_bar", "q_part", "v_part", "a_part")
SIMPLE: Final = {"coincidence": tables.DIFFERENCE, "dot_1": tables.BILINEAR, "aligned": tables.BILINEAR}
LOCAL: Final = 24  # floats of PullWork.local


@dataclass(frozen=True, slots=True)
class Raw:
    """Derivatives of a cost by the numbers of a run's tables.

    ``q``, ``v``, shape (bodies, 6): by the start, in the tangent of the principal frames.  ``masses``, shape (bodies,):
    by the mass; ``inertias``, shape (bodies, 3, 3): by the inertia in principal axes.  ``gravity``, shape (3,).
    ``floats``: by those of the system; ``load_floats``, ``load_numbers``: by those of the loads.  ``drive``, shape
    (evaluations, drivers, 3): by the jets of the drivers at ``times``.
    """

    q: FloatArray
    v: FloatArray
    masses: FloatArray
    inertias: FloatArray
    gravity: FloatArray
    floats: FloatArray
    load_floats: FloatArray
    load_numbers: FloatArray
    drive: FloatArray
    times: FloatArray
    mismatch: float
    sweep: Sweep

    @property
    def holding(self) -> IntArray:
        """Rows of the equations that hold: those of limits that are not reached do not."""
        rows: IntArray = self.sweep.equations.equations[self.sweep.active != 0.0]
        return rows

    def pull(self, q: FloatArray, weights: FloatArray) -> FloatArray:
        """The gradient of Σ weights · f(q) by the floats of the system; weights, shape (rows,): of all rows."""
        e = self.sweep.equations
        numbers = np.arange(e.problem.rows, dtype=np.int64)
        pull, floats = _pull(e.system, e.problem.ints, self.sweep.floats, numbers, len(numbers))
        spare = np.zeros(WIDTH * len(e.system.names))
        memory = np.zeros(int(pull.pieces[-1]))
        arguments = pull.as_ints, np.ascontiguousarray(weights), q.copy(), spare, spare.copy(), spare.copy(), memory
        _blocks.call_at(_pullback.PULL_BACK, 0, *arguments)
        return floats


class Sweep:
    """The reverse sweep of one run; rows: all its steps, shape (steps + 1, columns)."""

    def __init__(
        self,
        run: Integration,
        rows: FloatArray,
        orders: IntArray,
        start: tuple[FloatArray, FloatArray],
        redundant: bool,
    ) -> None:
        """orders: of the step to each row.  redundant: whether equations were redundant in some state."""
        e = run.equations
        self._is_redundant = redundant
        self.equations, self.rows = e, np.ascontiguousarray(rows)
        self._start = np.concatenate(start)
        self._run, self.floats, self.active = run, run.floats, run.active
        tableau = TABLEAUS[START]
        self._is_uneven = bool((orders[1:FIXED_ORDER] > 0).any())
        self.orders = orders
        self.times, self._places = _evaluations(self.rows[:, 0], self.orders, tableau.nodes)
        signals = [signal for _, signal in e.system.signals]
        self._drive: FloatArray = np.zeros((max(1, len(self.times)), max(1, len(signals)), 3))
        for k, signal in enumerate(signals):
            self._drive[:, k] = signal.jets(self.times)
        run.job.drive = self._drive.reshape(-1)

    def gradient(self, of_rows: FloatArray) -> Raw:
        """of_rows, shape (rows, 3·6·bodies + equations): the cost's derivatives by the tangent of q, by v, v̇ and λ."""
        e, run = self.equations, self._run
        n6, n = WIDTH * len(e.system.names), e.equations.size
        numbers = np.full(e.problem.rows, -1, dtype=np.int64)
        numbers[e.equations] = np.arange(n)
        pull, floats = _pull(e.system, e.problem.ints, run.floats, numbers, n)
        masses, gravity = np.zeros((len(e.system.names), MASS_NUMBERS)), np.zeros(3)
        drive = np.zeros_like(self._drive)
        loads, load_work = _Loads(e, run) if e.forces is not None else None, 0
        if loads is not None:
            load_work = loads.work
        closure = Closure.plan(q=e.coordinates, step=n6, v=n6, shift=n6, new_v=n6, pose_multipliers=n, multipliers=n)
        states = {f"{state}_{name}": size for state in ("now", "first") for name, size in self._sizes(n6, n).items()}
        vectors = [*OF_STATE, "theta", "shift", "mu", "shift_bar", "theta_bar", "pulled"]
        pieces = AdjointWork.plan(
            **states,
            **dict.fromkeys(vectors, n6),
            a_bars=HISTORY * n6,
            moved=max(e.coordinates, n6),
            nu=n,
            given_nu=n,
            pair_weights=(1 + tables.PAIRS) * n,
            vectors=tables.PAIRS * n6,
            tape=tables.CLOSURES * int(closure[-1]),
            weights=Weights.size + RULES * Rule.size,
            stages=2 * tables.STAGES * n6,
            stage_bars=2 * tables.STAGES * n6,
            pull=int(pull.pieces[-1]),
            loads=load_work,
        )
        memory = np.zeros(pieces[-1])
        tableau = TABLEAUS[START]
        table = Adjoint.new(
            open=pieces.size,
            job=run.job,
            memory=run.work,
            pull=pull,
            pull_back=_pullback.PULL_BACK,
            loads=loads.table if loads is not None else None,
            load_pull_back=_pullback.LOADS if loads is not None else 0,
            at_state=_state_adjoint.AT_STATE,
            rows=self.rows.reshape(-1),
            orders=self.orders,
            places=self._places,
            start=self._start,
            of_rows=np.ascontiguousarray(of_rows).reshape(-1),
            masses=masses.reshape(-1),
            gravity=gravity,
            drive=drive.reshape(-1),
            tableau=np.array(TRIANGLES[START]),
            nodes=np.array(tableau.nodes),
            stages=len(tableau.nodes),
            exact=EXACT,
            stage_exact=STAGE_EXACT,
            closure_pieces=closure,
            pieces=pieces,
        )
        control = run.control
        control.write(rtol=0.0, redundant=float(self._is_redundant), shifted=0.0, uneven=float(self._is_uneven))
        arrays = table.as_ints, control.as_floats, memory, memory, memory, memory, memory
        _blocks.call_at(_adjoint.REVERSE_RUN, len(self.rows) - 1, *arrays)
        work = AdjointWork(pieces, memory)
        shape = (-1, WIDTH)
        return Raw(
            work.q_bar[:n6].reshape(shape).copy(),
            work.v_bar[:n6].reshape(shape).copy(),
            masses[:, 0].copy(),
            masses[:, 1:].reshape(-1, 3, 3).copy(),
            gravity,
            floats,
            np.zeros(0) if loads is None else loads.floats,
            np.zeros(0) if loads is None else loads.numbers,
            drive,
            self.times,
            float(table.mismatch),
            self,
        )

    def _sizes(self, n6: int, n: int) -> dict[str, int]:
        return {"q": self.equations.coordinates, "v": n6, "a": n6, "multipliers": n}


def recorded(run: Integration, end: float) -> tuple[FloatArray, IntArray, int]:
    """A run of variable steps until its end: its rows, their orders, and the status of the kernel."""
    c = run.control
    status, rows, orders = run.begin(), [], [tables.BEGUN]
    if status == RUNNING:
        rows.append(run.last_row())
    while status == RUNNING:
        known, taken = int(min(c.known, c.order)), c.taken
        status = run.advance(end, 1)
        if status in (RUNNING, DONE) and c.taken > taken:
            rows.append(run.last_row())
            orders.append(known)
    return np.array(rows), np.array(orders, dtype=np.int64), status


def constant_orders(count: int) -> IntArray:
    """Of each row the step that leads to it, for constant steps of Adams' method."""
    orders: IntArray = np.full(count, FIXED_ORDER, dtype=np.int64)
    orders[:FIXED_ORDER] = tables.STARTED
    orders[0] = tables.BEGUN
    return orders


def _evaluations(times: FloatArray, orders: IntArray, nodes: Any) -> tuple[FloatArray, IntArray]:
    """Times at which drivers are evaluated [s], and the place of the first one of each row."""
    found: list[float] = []
    places = np.zeros(len(times), dtype=np.int64)
    for n, (time, order) in enumerate(zip(times.tolist(), orders.tolist(), strict=True)):
        places[n] = len(found)
        if order == tables.STARTED:
            before = float(times[n - 1])
            found += [before + node * (time - before) for node in nodes[1:]]
        found.append(time)
    return np.array(found), places


def _pull(
    system: System, ints: IntArray, floats: FloatArray, numbers: IntArray, weights: int
) -> tuple[Pull, FloatArray]:
    """The table of a packed system that is differentiated, and the gradient by its floats."""
    table: Any = np.zeros(len(system.rows), dtype=Kernels.dtype)
    for k, row in enumerate(system.rows):
        one = row.primitive
        simple = SIMPLE.get(one.name, 0) if one.inline else 0
        linear, curved = (simple, simple) if simple else adjoints.addresses(one)
        table[k] = linear, curved, len(one.parameters) + len(one.constants)
    components = max([int(x) for x in ints_at(system, layout.COMPONENTS)], default=0)
    rows = max([row.primitive.rows for row in system.rows], default=0)
    slots = max([int(x) for x in ints_at(system, layout.SLOTS)], default=0)
    parameters = int(table["parameters"].max(initial=0))
    pieces = PullWork.plan(
        matrices=layout.MATRIX * len(system.names),
        x=components,
        given=max(2 * components + rows, rows * (1 + components)),
        found=3 * components + parameters,
        derivatives=rows * components,
        values=rows,
        vectors=WIDTH * rows * slots,
        local=LOCAL,
    )
    gradient = np.zeros(floats.size)
    made = Pull.new(
        system=ints,
        floats=floats,
        gradient=gradient,
        numbers=numbers,
        kernels=table.view(np.int64),
        weights=weights,
        unknowns=WIDTH * len(system.names),
        pieces=pieces,
    )
    return made, gradient


class _Loads:
    """Tables of the loads of a run."""

    def __init__(self, e: Equations, run: Integration) -> None:
        forces = e.forces
        assert forces is not None
        packed, laws = forces._packed, forces.laws
        rows = sum(law.rows for law in laws)
        numbers = np.arange(rows, dtype=np.int64)
        own = np.array(forces.table.floats)
        pull, self.floats = _pull(packed, forces.table.ints, own, numbers, rows)
        self.numbers = np.zeros(forces.floats.size)
        n6 = WIDTH * len(e.system.names)
        found = [law_tape(law.function) for law in laws]
        entries, evaluation = (int(forces.table.structure.jacobian_size), int(forces.table.structure.work))
        counts = [count for _, count in found]
        pieces = LoadPullWork.plan(
            rows=rows,
            rates=rows,
            along=rows,
            jacobian=entries,
            evaluation=evaluation,
            weights=3 * rows,
            vectors=2 * n6,
            scratch=9 + LawCall.size + 5 + 3 + max(counts, default=0) + 8,
            pull=int(pull.pieces[-1]),
        )
        self.work = int(pieces[-1])
        self.table = LoadPull.new(
            job=run.job,
            control=run.control.as_floats,
            pull=pull,
            pull_back=_pullback.PULL_BACK,
            numbers=self.numbers,
            laws=np.array([address for address, _ in found] or [0], dtype=np.int64),
            counts=np.array(counts or [0], dtype=np.int64),
            pieces=pieces,
        )


def law_tape(function: Any) -> tuple[int, int]:
    """Of a recorded law, the tape of its gradients, and how many constants it has; zeros for other laws."""
    if not isinstance(function, Recorded) or not (count := len(function.constants)):
        return 0, 0
    graph, variables, rows = function._data()[0]
    outputs = adjoints.linear(graph, variables, rows, count)
    return int(tape.address(codegen.adjoint_kernel("primitive", graph, outputs), "primitive")), count
