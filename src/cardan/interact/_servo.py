"""Cycles at a fixed rate, outside of Python: wait for the time of each, run it, and measure it.

A cycle is due at t₀ + k·period.  The thread sleeps until SPIN before, then reads the clock until it is due.  A cycle is
in time if it ends before the next one is due.  If one ends later, those whose time has passed are left out and counted.
Reads the table of a session, or of an idle cycle; writes the arrays of measurements.
"""

from cardan.interact.tables import Loop
from cardan.kernel.jit import evaluator, jit
from cardan.kernel.memory import call_evaluator, pointer, read_clock, sleep_until

BILLION = 1_000_000_000


def _idle(op, table, control, q, first, second, third, work):
    return 0


IDLE = evaluator(_idle)


@jit
def serve(numbers, table, control, q, work, moments, durations, lateness):
    """Run cycles until stop is set, or most are done; durations, lateness [ns] of the last ones, in rings."""
    loop = Loop(pointer(numbers))
    clock = loop.clock
    period = loop.period
    gettime = loop.gettime
    size = durations.size
    read_clock(gettime, clock, moments)
    base = moments[0]
    now = moments[1]
    due = now + period
    while loop.stop == 0 and loop.cycles < loop.most:
        if due - now > 2 * loop.spin and loop.nanosleep != 0:
            wake = due - loop.spin
            moments[0] = base + wake // BILLION
            moments[1] = wake % BILLION
            sleep_until(loop.nanosleep, clock, 1, moments, moments)
        while True:
            read_clock(gettime, clock, moments)
            now = (moments[0] - base) * BILLION + moments[1]
            if now >= due:
                break
        start = now
        loop.status = call_evaluator(table[0], 0, table, control, q, control, control, control, work)
        read_clock(gettime, clock, moments)
        now = (moments[0] - base) * BILLION + moments[1]
        at = loop.cycles % size
        durations[at] = float(now - start)
        lateness[at] = float(start - due)
        loop.cycles += 1
        due += period
        if now > due:
            loop.late += 1
            while due + period < now:
                due += period
                loop.missed += 1
