"""A thread that runs the cycles of a session at a fixed rate, and measures them."""

from __future__ import annotations

import ctypes
import threading
import time as clock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from cardan.errors import SessionError
from cardan.interact import tables
from cardan.lazy import LazyModule
from cardan.system import check
from cardan.system.state import FloatArray
from cardan.system.system import IntArray

if TYPE_CHECKING:
    from cardan.interact.session import Session

_servo = LazyModule("cardan.interact._servo")

RING: Final = 1 << 20  # measurements that are kept
SPIN: Final = 100_000  # [ns] before a cycle is due, the thread stops sleeping
MOST_RATE: Final = 1e6  # [Hz]
MONOTONIC: Final = 1  # number of the clock
FOREVER: Final = 1 << 62


class ServoStats(NamedTuple):
    """Measurements of a servo.

    ``cycles``: number of cycles made; ``missed``: of cycles left out, because earlier ones lasted too long;
    ``overruns``: of cycles that ended after the next one was due.  ``in_time``: fraction of all cycles, missed ones
    included, that ended before the next one was due.  ``step`` [s]: duration of a cycle; ``lateness`` [s]: from the
    time at which a cycle was due to its start.  Both as median, 99 % quantile and maximum.
    """

    cycles: int
    missed: int
    overruns: int
    in_time: float
    step: tuple[float, float, float]
    lateness: tuple[float, float, float]


class _Clock:
    """Tables and measurements of a loop at a fixed rate."""

    def __init__(self, rate_hz: Any) -> None:
        rate = check.positive(rate_hz, "rate_hz")
        if rate > MOST_RATE:
            raise SessionError(f"rate_hz is {rate:g}; it must be {MOST_RATE:g} Hz at the most")
        self.period = 1.0 / rate
        gettime, nanosleep = _system_clock()
        self.loop = tables.Loop.new(
            period=round(1e9 / rate), spin=SPIN, clock=MONOTONIC, most=FOREVER, gettime=gettime, nanosleep=nanosleep
        )
        self.moments: IntArray = np.zeros(2, dtype=np.int64)
        self.durations: FloatArray = np.zeros(RING)
        self.lateness: FloatArray = np.zeros(RING)

    def stats(self) -> ServoStats:
        """What was measured so far."""
        cycles, late, missed = int(self.loop.cycles), int(self.loop.late), int(self.loop.missed)
        count = min(cycles, RING)
        step, lateness = self.durations[:count], self.lateness[:count]
        part = (cycles - late) / (cycles + missed) if cycles else 1.0
        return ServoStats(cycles, missed, late, part, _summary(step), _summary(lateness))


class Servo:
    """The thread of :meth:`Session.serve`; ``stop()`` ends it.  Hands may be moved, taken and released meanwhile."""

    def __init__(self, session: Session, rate_hz: Any) -> None:
        self._session = session
        self._clock = _Clock(rate_hz)
        self._ends = False
        self._error: BaseException | None = None
        self._turn = threading.Condition()
        self._thread = threading.Thread(target=self._loop, name="cardan servo", daemon=True)
        self._thread.start()

    @property
    def stats(self) -> ServoStats:
        """Step times, lateness and overruns so far."""
        return self._clock.stats()

    @property
    def running(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    @property
    def targets(self) -> FloatArray:
        """Shared array, shape (MOST_HANDS, Hand.size): one record per hand, see :mod:`cardan.interact.tables`."""
        return self._session._hand_floats.reshape(-1, tables.Hand.size)

    def stop(self) -> ServoStats:
        """End the thread; returns its measurements."""
        self._ends = True
        self._clock.loop.stop = 1
        self._thread.join()
        self._session._servo = None
        if self._error is not None:
            raise SessionError(f"the servo ended early: {self._error}") from self._error
        return self.stats

    def pause(self) -> None:
        """Stop after the current cycle; :meth:`resume` continues."""
        self._clock.loop.stop = 1

    def resume(self) -> None:
        """Continue after a pause."""
        if not self._ends:
            with self._turn:
                self._clock.loop.stop = 0
                self._turn.notify()

    def _loop(self) -> None:
        loop = self._clock.loop
        try:
            while not self._ends:
                with self._session._lock:
                    if loop.stop == 0:
                        self._run()
                with self._turn:
                    while loop.stop and not self._ends:
                        self._turn.wait(0.01)
        except BaseException as error:  # raised again by stop()
            self._error = error

    def _run(self) -> None:
        session, c = self._session, self._clock
        if session.mode == "kinematic" and c.loop.gettime and session._contacts is None:
            _servo.serve(c.loop.as_ints, *session._arrays, c.moments, c.durations, c.lateness)
            return
        loop = c.loop
        due = clock.perf_counter() + c.period
        while not loop.stop:
            clock.sleep(max(0.0, due - clock.perf_counter()))
            start = clock.perf_counter()
            loop.status = session._cycle()
            end = clock.perf_counter()
            at = loop.cycles % RING
            c.durations[at], c.lateness[at] = 1e9 * (end - start), 1e9 * (start - due)
            loop.cycles += 1
            due += c.period
            if end > due:
                loop.late += 1
                skipped = max(0, int((end - due) / c.period))
                loop.missed += skipped
                due += skipped * c.period


def idle(rate_hz: float, seconds: float) -> ServoStats:
    """The same loop with cycles that do nothing: the lateness of the machine itself."""
    c = _Clock(rate_hz)
    c.loop.most = round(rate_hz * seconds)
    table = np.array([_servo.IDLE], dtype=np.int64)
    some = np.zeros(1)
    _servo.serve(c.loop.as_ints, table, some, some, some, c.moments, c.durations, c.lateness)
    return c.stats()


def _summary(values: FloatArray) -> tuple[float, float, float]:
    """Median, 99 % quantile and maximum [s] of measurements [ns]."""
    if not values.size:
        return 0.0, 0.0, 0.0
    found = np.percentile(values, [50.0, 99.0, 100.0]) * 1e-9
    return float(found[0]), float(found[1]), float(found[2])


def _system_clock() -> tuple[int, int]:
    """Addresses of clock_gettime and clock_nanosleep; zeros where the system has none."""
    try:
        library = ctypes.CDLL(None)
        found = [
            ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in ("clock_gettime", "clock_nanosleep")
        ]
    except (OSError, AttributeError, TypeError):
        return 0, 0
    return found[0] or 0, found[1] or 0
