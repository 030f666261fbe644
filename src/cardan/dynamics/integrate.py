"""Integration in time: a run of Adams' or a Runge–Kutta method, which can be stopped and continued."""

from __future__ import annotations

from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from cardan.dynamics import abi
from cardan.dynamics.equations import WIDTH, Equations
from cardan.lazy import LazyModule
from cardan.system.state import FloatArray
from cardan.system.system import IntArray

_adams = LazyModule("cardan.dynamics._adams")
_runge_kutta = LazyModule("cardan.dynamics._runge_kutta")
_blocks = LazyModule("cardan.solvers._blocks")

FIXED_ORDER: Final = 4  # accelerations that a predictor of constant step reads
VARIABLE_ORDER: Final = 5
FIRST_STEP: Final = 0.1  # first step of variable ones, times √(rtol/acceleration)
LEAST_STEP: Final = 1e-13  # of the duration
EXACT: Final = 3e-7  # the square of a smaller shift onto the constraints is rounding: J need not be evaluated again
STAGE_EXACT: Final = 1e-12  # for the stages of Runge–Kutta methods, which use J at their pose
ESTIMATE: Final = 0.5  # of rtol: what the estimated error of a step may be
AHEAD: Final = 512  # values of drivers that are computed at once
MOST_STAGES: Final = 7


class Tableau(NamedTuple):
    """An explicit Runge–Kutta method: rows of the lower triangle, the weights last, the nodes, and the weights less
    those of the method that estimates the error, which also uses the acceleration at the end of the step."""

    rows: tuple[tuple[float, ...], ...]
    nodes: tuple[float, ...]
    error: tuple[float, ...]


TABLEAUS: Final = {
    "rk4": Tableau(
        ((1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
        (0.0, 1 / 2, 1 / 2, 1.0),
        (0.0, 0.0, 0.0, 1 / 6, -1 / 6),
    ),
    # [DormandPrince1980]
    "dopri5": Tableau(
        (
            (1 / 5,),
            (3 / 40, 9 / 40),
            (44 / 45, -56 / 15, 32 / 9),
            (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
            (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
            (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
        ),
        (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0),
        (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
    ),
}
START: Final = "dopri5"  # the method that gives the first accelerations of constant steps
TABLEAU_SIZE: Final = 64  # floats


class Integration:
    """A run from one state on: tables, workspace and history.  Threads must not share it.

    ``q``, ``v``: pose and velocity now, in the coordinates of the solvers.  ``results``, shape (samples, columns):
    time, q, v, v̇, λ at each of ``times``, as far as they are reached.
    """

    def __init__(
        self,
        equations: Equations,
        q: FloatArray,
        v: FloatArray,
        time: float,
        times: FloatArray,
        *,
        method: str = "adams",
        step: float | None = None,
        rtol: float | None = None,
    ) -> None:
        from cardan._jit import address_of

        e, p = equations, equations.problem
        self.equations, self.method, self.times = e, method, np.ascontiguousarray(times, dtype=np.float64)
        self.q, self.v = q.copy(), v.copy()
        rows, _, entries, coordinates, evaluation = p.sizes
        bodies, n, driven = len(e.system.names), e.equations.size, e.drivers.size // 2
        n6 = WIDTH * bodies
        pieces = (evaluation, 2 * rows, entries, e.matrix, n6 + n, n6 + 2 * n, n6, coordinates, coordinates, n6, n6, n)
        pieces += (8 * _adams.MOST, (2 * MOST_STAGES + 1) * n6, coordinates, n6, n, n)
        offsets = [0, *accumulate(pieces)]
        self.floats = p.floats.copy()
        self.drive: FloatArray = np.zeros(max(1, 3 * driven * AHEAD))
        self.extra: FloatArray = np.zeros(n6)
        table = [0] * abi.PIECES + offsets
        table[abi.EVALUATOR], table[abi.ALGEBRA] = p.evaluate, e.algebra
        arrays = {
            abi.INTS: p.ints,
            abi.FLOATS: self.floats,
            abi.PATTERN: e.pattern,
            abi.MASSES: e.values,
            abi.DRIVERS: e.drivers,
            abi.DRIVE: self.drive,
            abi.TIMES: self.times,
            abi.EXTRA: self.extra,
        }
        for place, array in arrays.items():
            table[place] = address_of(array)
        self._arrays = arrays  # the table has only their addresses
        table[abi.BODIES], table[abi.COORDINATES], table[abi.ROWS] = bodies, coordinates, rows
        table[abi.EQUATIONS], table[abi.DRIVEN] = n, driven
        self.job: IntArray = np.array(table, dtype=np.int64)
        self.work: FloatArray = np.empty(offsets[-1])
        self.history: FloatArray = np.zeros(abi.HISTORY * (n6 + 1) + TABLEAU_SIZE)
        self.results: FloatArray = np.empty((len(self.times), 1 + coordinates + 2 * n6 + n))
        self.control = c = np.zeros(abi.CONTROL)
        c[abi.LENGTH] = e.system.judged_length
        c[abi.EXACT] = EXACT
        c[abi.TIME] = time
        c[abi.SAMPLES] = len(self.times)
        c[abi.RTOL] = ESTIMATE * (rtol or 0.0)
        self.step = step
        span = float(self.times[-1]) - time if len(self.times) else 0.0
        c[abi.LEAST_STEP] = LEAST_STEP * span
        c[abi.ORDER] = VARIABLE_ORDER if rtol else FIXED_ORDER
        c[abi.STEP] = step or span

    @property
    def time(self) -> float:
        """Time reached [s]."""
        return float(self.control[abi.TIME])

    @property
    def reached(self) -> int:
        """Number of results so far."""
        return int(self.control[abi.SAMPLE])

    def begin(self) -> int:
        """Close the pose, project the velocity, compute the acceleration; the start of a run, or of a new piece of it.

        Returns the status of the kernel: RUNNING.
        """
        c = self.control
        c[abi.PHASE], c[abi.KNOWN], c[abi.HEAD], c[abi.HOLD], c[abi.FRESH] = abi.BEGIN, 0.0, 0.0, 0.0, 1.0
        c[abi.CHUNK], c[abi.BASE], c[abi.COUNT], c[abi.STAGE] = 0.0, c[abi.TIME], 0.0, 0.0
        status = self._call(_adams.ADVANCE, 0)
        if status == abi.RUNNING and c[abi.RTOL] > 0.0:
            a = np.abs(self._last_acceleration().reshape(-1, 2, 3)).max(axis=(0, 2), initial=0.0)
            largest = max(a[0] / c[abi.LENGTH], a[1], 1e-30)
            c[abi.STEP] = min(FIRST_STEP * float(np.sqrt(c[abi.RTOL] / largest)), c[abi.STEP])
        return status

    def advance(self, until: float, steps: int) -> int:
        """At most that many steps towards a time; returns the status of the kernel."""
        c = self.control
        c[abi.END] = until
        if self.method != "adams":
            return self._runge_kutta(self.method, steps)
        if c[abi.RTOL] == 0.0 and c[abi.KNOWN] < FIXED_ORDER:
            missing = min(int(FIXED_ORDER - c[abi.KNOWN]), steps)
            status = self._runge_kutta(START, missing)
            steps -= missing
            c[abi.FRESH] = 1.0
            if status != abi.RUNNING or steps == 0:
                return status
        c[abi.CHUNK] = steps
        return self._call(_adams.ADVANCE, 0)

    def _runge_kutta(self, name: str, steps: int) -> int:
        tableau = TABLEAUS[name]
        values = [*(value for row in tableau.rows for value in row), *tableau.nodes, *tableau.error]
        self.history[-TABLEAU_SIZE:][: len(values)] = values
        self.control[abi.CHUNK], self.control[abi.EXACT] = steps, STAGE_EXACT
        status = self._call(_runge_kutta.ADVANCE, len(tableau.nodes))
        self.control[abi.EXACT] = EXACT
        return status

    def _call(self, address: int, op: int) -> int:
        """Call a kernel, and answer what it asks for."""
        arguments = (self.job, self.control, self.q, self.v, self.history, self.results.reshape(-1), self.work)
        while True:
            status = int(_blocks.call_at(address, op, *arguments))
            if status == abi.ASK_DRIVERS:
                self._fill_drivers()
            elif status != abi.ASK_LOADS:
                return status

    def _fill_drivers(self) -> None:
        """Value, rate and acceleration of every driver at the time that the kernel asks for."""
        c = self.control
        time = float(c[abi.ASK_TIME])
        jets = [signal.jet(time) for _, signal in self.equations.system.signals]
        row = [number for jet in jets for number in (jet.value, jet.rate, jet.acceleration)]
        self.drive[: len(row)] = row
        c[abi.DRIVE_AT], c[abi.DRIVE_COUNT] = 0.0, 1.0

    def _last_acceleration(self) -> FloatArray:
        head, n6 = int(self.control[abi.HEAD]), WIDTH * len(self.equations.system.names)
        return self.history[head * n6 : (head + 1) * n6]
