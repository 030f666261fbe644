"""Cycles at a fixed rate, outside of Python: wait for the time of each, run it, and measure it.

A cycle is due at t₀ + k·period.  The thread sleeps until SPIN before, then reads the clock until it is due.  A cycle is
in time if it ends before the next one is due.  If one ends later, those whose time has passed are left out and counted.
Reads the table of a session, or of an idle cycle; writes the arrays of measurements.
"""

from cardan.kernel.jit import evaluator, jit
from cardan.kernel.memory import call_evaluator, read_clock, sleep_until

# numbers, integers: shared with Python
STOP, PERIOD, SPIN, CLOCK, GETTIME, NANOSLEEP, MOST, CYCLES, LATE, MISSED, STATUS, SECONDS, NUMBERS = range(13)
BILLION = 1_000_000_000


def _idle(op, table, control, q, first, second, third, work):
    return 0


IDLE = evaluator(_idle)


@jit
def serve(numbers, table, control, q, work, moments, durations, lateness):
    """Run cycles until STOP is set, or MOST are done; durations, lateness [ns] of the last ones, in rings."""
    clock = numbers[CLOCK]
    period = numbers[PERIOD]
    gettime = numbers[GETTIME]
    size = durations.size
    read_clock(gettime, clock, moments)
    base = moments[0]
    now = moments[1]
    due = now + period
    while numbers[STOP] == 0 and numbers[CYCLES] < numbers[MOST]:
        if due - now > 2 * numbers[SPIN] and numbers[NANOSLEEP] != 0:
            wake = due - numbers[SPIN]
            moments[0] = base + wake // BILLION
            moments[1] = wake % BILLION
            sleep_until(numbers[NANOSLEEP], clock, 1, moments, moments)
        while True:
            read_clock(gettime, clock, moments)
            now = (moments[0] - base) * BILLION + moments[1]
            if now >= due:
                break
        start = now
        numbers[STATUS] = call_evaluator(table[0], 0, table, control, q, control, control, control, work)
        read_clock(gettime, clock, moments)
        now = (moments[0] - base) * BILLION + moments[1]
        at = numbers[CYCLES] % size
        durations[at] = float(now - start)
        lateness[at] = float(start - due)
        numbers[CYCLES] += 1
        due += period
        if now > due:
            numbers[LATE] += 1
            while due + period < now:
                due += period
                numbers[MISSED] += 1
