"""Limits as stops of a simulation: events that end a step.  Compiled only where a mechanism has limits.

STOPS reads the pose q and the multipliers at the end of a step; SEEK returns whether the step must be repeated with
another length, chosen by the secant, KEEP stores the gaps at the start of the next step in BOUNDS.
"""

from cardan._jit import evaluator, floats_at, inner, integers_at, tail
from cardan.dynamics import abi
from cardan.dynamics._equations import EVALUATION, RESIDUAL, VALUES, evaluate, piece

EVENT_GAP = 1e-12  # relative to the extent, or in radians: a stop that is this near, or passed by less, is reached
EVENT_STEP = 1e-13  # of a step: a bracket of an event is not made smaller
NEUTRAL = 1e-12  # of the largest multiplier: a stop that pulls by less neither pushes nor pulls
INSIDE = 1e-3  # of a bracket: an event is sought no nearer to its ends
TINY = 1e-300  # against division by zero


@inner
def gap_of(job, stop, values, multipliers):
    """Positive where a stop is passed (relative to the extent, or in radians), or where it would have to pull (−λ)."""
    table = tail(integers_at(job[abi.STOPS]), abi.STOP * stop)
    bounds = tail(floats_at(job[abi.BOUNDS]), abi.BOUND * stop)
    if bounds[abi.SIDE] != 0.0:
        return -multipliers[table[abi.STOP_EQUATION]] * bounds[abi.SIDE]
    c = values[table[abi.STOP_ROW]] + floats_at(job[abi.FLOATS])[table[abi.STOP_PLACE]]
    return bounds[abi.WEIGHT] * max(bounds[abi.LOWER] - c, c - bounds[abi.UPPER])


@inner
def pull_of(gap, start, strongest):
    """The gap of a stop that holds, relative to its push at the start of the step; −1 if it does not pull at all."""
    return gap / max(-start, abs(gap), TINY) if gap < 0.0 or gap > NEUTRAL * strongest else -1.0


@inner
def update_values(job, q, work):
    """VALUES ← f at q."""
    values = piece(job, VALUES, work)
    evaluate(job, RESIDUAL, q, q, values, values, piece(job, EVALUATION, work))
    return values


@inner
def keep_gaps(job, q, multipliers, work):
    """Store the gaps of all stops at the start of a step."""
    values = update_values(job, q, work)
    for k in range(job[abi.STOP_COUNT]):
        tail(floats_at(job[abi.BOUNDS]), abi.BOUND * k)[abi.GAP] = gap_of(job, k, values, multipliers)


@inner
def seek_event(job, control, q, multipliers, work):
    """Whether a step must be repeated with another length, chosen by the secant, to end at an event.

    EVENT ← the number of the stop, from 1, if the step ends at an event; else 0.
    """
    values = update_values(job, q, work)
    largest = -1.0 / TINY
    first = 0
    strongest = 0.0
    for k in range(job[abi.EQUATIONS]):
        strongest = max(strongest, abs(multipliers[k]))
    for k in range(job[abi.STOP_COUNT]):
        bounds = tail(floats_at(job[abi.BOUNDS]), abi.BOUND * k)
        gap = gap_of(job, k, values, multipliers)
        if bounds[abi.SIDE] != 0.0:
            gap = pull_of(gap, bounds[abi.GAP], strongest)
        if gap > largest:
            largest = gap
            first = k
    control[abi.EVENT] = 0.0
    if largest <= EVENT_GAP and control[abi.HIGH] == 0.0:
        return False
    h = control[abi.STEP]
    if abs(largest) <= EVENT_GAP or control[abi.HIGH] - control[abi.LOW] <= EVENT_STEP * control[abi.HIGH] > 0.0:
        control[abi.EVENT] = float(first + 1)
        return False
    if control[abi.HIGH] == 0.0:
        bounds = tail(floats_at(job[abi.BOUNDS]), abi.BOUND * first)
        start = bounds[abi.GAP]
        if bounds[abi.SIDE] != 0.0:
            start /= max(-start, abs(gap_of(job, first, values, multipliers)), TINY)
        control[abi.LOW] = 0.0
        control[abi.LOW_GAP] = min(start, 0.0)
    if largest > 0.0:
        control[abi.HIGH] = h
        control[abi.HIGH_GAP] = largest
        control[abi.LOW_GAP] *= 0.5
    else:
        control[abi.LOW] = h
        control[abi.LOW_GAP] = largest
        control[abi.HIGH_GAP] *= 0.5
    width = control[abi.HIGH] - control[abi.LOW]
    part = -control[abi.LOW_GAP] / max(control[abi.HIGH_GAP] - control[abi.LOW_GAP], TINY)
    control[abi.STEP] = control[abi.LOW] + min(max(part, INSIDE), 1.0 - INSIDE) * width
    control[abi.FRESH] = 1.0
    return True


def _stops(op, job, control, q, multipliers, unused, unused_too, work):
    if op == abi.SEEK:
        return 1 if seek_event(job, control, q, multipliers, work) else 0
    keep_gaps(job, q, multipliers, work)
    return 0


STOPS = evaluator(_stops)
