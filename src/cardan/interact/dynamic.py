"""A run of the equations of motion in cycles of constant length, with hands that act on it."""

from __future__ import annotations

import numpy as np

from cardan.dynamics import massless
from cardan.dynamics import tables as dynamics_tables
from cardan.dynamics.integrate import Event, Integration
from cardan.dynamics.tables import Soft
from cardan.interact import tables
from cardan.lazy import LazyModule
from cardan.system.state import FloatArray

_blocks = LazyModule("cardan.solvers._blocks")
_adams = LazyModule("cardan.dynamics._adams")
_dynamic = LazyModule("cardan.interact._dynamic")
_runge_kutta = LazyModule("cardan.dynamics._runge_kutta")

MOST_EVENTS = 1000  # of limits that are kept
MOST_PARTS = 200  # steps of one cycle, which events divide
MOST_TURN = 0.5  # [rad] of a body in a step: the force of a spring is constant over it, in world axes
MOST_DIVISIONS = 64  # of a cycle in which a body would turn farther


class DynamicRun(Integration):
    """An integration by rk4, one step per cycle.  Each cycle is integrated by itself, since every target is a jump."""

    failed_step: FloatArray  # displacement of the last cycle that failed
    turned: bool  # whether the last cycle was divided, because hands turn bodies far

    def take(self, soft: Soft, hands: FloatArray) -> None:
        """Let the hands of a session act: the table of their rows, and their records."""
        self._soft, self._hands = soft, hands
        self._spring: FloatArray = np.zeros(self.v.size)
        self._holds = False  # whether hands held in the last cycle
        self._touched = self.bounds["side"].copy()  # limits that the last event of each reached
        soft.extra = self._spring if self.job.asks else self.extra
        self.job.soft_solver = _dynamic.SOLVE
        arrays = (self.q, self.v, self.floats, self.active, self.bounds)
        self._kept = [(array, np.empty_like(array)) for array in arrays]
        assert _adams.ADVANCE and _runge_kutta.ADVANCE  # load all kernels now, not in the first cycle
        _dynamic.begin_hands(hands, self.q, self.step, True)
        _dynamic.keep_first(hands)
        _dynamic.clear_impulses(hands)
        _dynamic.end_hands(hands, self.q)

    def _solve(self, op: int) -> int:
        """An operation of hands at the state now."""
        table = self.job.as_ints, self.control.as_floats
        a = self._last_acceleration()
        return int(_blocks.call_at(_dynamic.SOLVE, op, *table, self.q, self.v, self.extra, a, self.work))

    def _end_hands(self) -> None:
        """Forces on hands at the end of a cycle."""
        _dynamic.end_hands(self._hands, self.q)
        if self._holds:
            self.control.step = self.step
            self._solve(dynamics_tables.FINISH)

    def _fill_extra(self) -> None:
        super()._fill_extra()
        self.extra += self._spring

    def cycle(self) -> int:
        """One cycle; returns a status of a session.

        If it fails, the last pose is kept: with its velocity if numbers are not finite, at rest if joints do not close.
        """
        for array, kept in self._kept:
            kept[...] = array
        time, redundant, events = self.time, float(self.control.redundant), len(self.events)
        status = self._cycle(time + self.step)
        self.turned = bool(_dynamic.turns_far(self._hands, self.v, MOST_TURN / self.step))
        if self.turned:
            parts, status = 1, int(dynamics_tables.NOT_FINITE)
            while status == dynamics_tables.NOT_FINITE and parts < MOST_DIVISIONS:
                parts *= 2
                self._return(time, redundant)
                del self.events[events:]
                status = self._divide(time, parts)
        if status in (dynamics_tables.RUNNING, dynamics_tables.DONE):
            self._end_hands()
            del self.events[:-MOST_EVENTS]
            return tables.MOVING
        self.failed_step = self.step * np.nan_to_num(self.v)
        self._return(time + self.step, redundant)
        if status != dynamics_tables.NOT_FINITE:
            self.v[:] = 0.0
        _dynamic.forget(self._hands)
        _dynamic.end_hands(self._hands, self.q)  # they may have followed a pose that is not finite
        return tables.FAILED if status == dynamics_tables.NOT_FINITE else tables.STUCK

    def causes(self) -> list[tuple[str, str]]:
        """Why the last cycle failed: what happened, and the name of a load or body; [] if it is not known."""
        if names := self.undefined_loads():
            return [("no finite force", name) for name in names]
        if lost := massless.lost_mass(self):
            what = "force along a motion without mass" if lost.is_pushed else "motion without mass"
            return [(what, name) for name in lost.bodies]
        return [("turns too far", "")] if self.turned else []

    def _return(self, time: float, redundant: float) -> None:
        """Return to the state before the cycle, at some time."""
        for array, kept in self._kept:
            array[...] = kept
        self.control.redundant, self.control.time = redundant, time

    def _divide(self, time: float, parts: int) -> int:
        """The same cycle again, in parts; it ends with NOT_FINITE in a part in which a body turns too far."""
        whole = self.step
        self.step = whole / parts
        for k in range(parts):
            status = self._cycle(time + (k + 1) * self.step, whole - k * self.step, k == 0)
            if _dynamic.turns_far(self._hands, self.v, MOST_TURN / self.step):
                status = int(dynamics_tables.NOT_FINITE)
            if status not in (dynamics_tables.RUNNING, dynamics_tables.DONE):
                break
        self.step = whole
        return status

    def _cycle(self, until: float, left: float | None = None, is_first: bool = True) -> int:
        """left: time [s] in which hands that hold reach their targets; that of one step, if it is not given.

        is_first: whether it is the first part of a cycle.
        """
        c, h = self.control, self.step
        _dynamic.begin_hands(self._hands, self.q, h if left is None else left, is_first)
        c.drive_at = c.drive_count  # values of another time
        status = self._begin_hands()
        if status != dynamics_tables.RUNNING:
            return status
        found = self._solve(dynamics_tables.IMPLICIT)
        self._holds = found > 0
        if found & _dynamic.AGAIN:
            c.drive_at = c.drive_count
            status = self._begin()
            if status != dynamics_tables.RUNNING:
                return status
        if is_first and self._holds:
            _dynamic.keep_first(self._hands)
        c.error = 0.0
        count = len(self.events)
        for _ in range(MOST_PARTS):
            status = self.advance(until, 10)
            if status != dynamics_tables.RUNNING:
                break
        if len(self.events) > count or not self._holds:
            self._touched[:] = self.bounds["side"]
        return status

    def _begin_hands(self) -> int:
        """Start with the impulses of hands that hold; returns the status of the kernel.

        A limit that is touched is a joint to a hand that leads into it, and has no force on one that leads away: first
        no limit holds, then those that are touched and not left.  Impulses are those of the second.
        A limit that would pull is released afterwards, and a hand carries what it does not.
        """
        self._soft.begins = 1
        if not (self.equations.stops and _dynamic.hold_any(self._hands)):
            status = self.begin()
            self._soft.begins = 0
            return status
        count, v = len(self.events), self.v.copy()
        for k in np.flatnonzero(self.bounds["side"]):
            self._set_side(int(k), 0.0)
        status = self._begin()
        is_touched = status == dynamics_tables.RUNNING and self._reach_stops(-1)
        del self.events[count:]
        for k in np.flatnonzero(self.bounds["side"] != self._touched):
            what = "reached" if self.bounds["side"][k] else "left"
            self.events.append(Event(self.time, self.equations.stops[k].name, what))
        self._touched, count = self.bounds["side"].copy(), len(self.events)
        if is_touched:
            self.v[:] = v
            _dynamic.clear_impulses(self._hands)
            status = self._begin()
            self._soft.begins = 0
            if status == dynamics_tables.RUNNING:
                status = self.begin()
            del self.events[count:]
        self._soft.begins = 0
        return status

    @property
    def residual(self) -> float:
        """Largest residual of an equation of poses; lengths relative to the extent, angles in radians."""
        e = self.equations
        values = e.problem.with_floats(self.floats).residual(self.q)
        known = e.poses.equations if e.poses is not None else slice(None)
        scaled = values[e.equations] * e.weights * self.active
        return float(np.abs(scaled[known]).max(initial=0.0))
