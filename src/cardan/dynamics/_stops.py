"""Limits as stops of a simulation: events that end a step.  Compiled only where a mechanism has limits.

STOPS reads the pose q, the velocity v and the multipliers at the end of a step; SEEK returns whether the step must be
repeated with another length, chosen by the secant, KEEP stores the gaps at the start of the next step in BOUNDS.

A coordinate may pass a bound and return within a step.  Its cubic by Hermite, from the values and rates at both ends,

    c(s) = c₀ + m₀ s + (3Δ − 2m₀ − m₁) s² + (m₀ + m₁ − 2Δ) s³,   0 ≤ s ≤ 1,   Δ = c₁ − c₀,   m = h ċ,

then has its extreme beyond the bound, or nearer to it than the cubic is exact.  WHOLE ← the step, which is repeated up
to there.  If the bound is passed there, that pose begins the search for the event.  If not, the whole step is taken.

This holds if a step is short compared to a turn of any body.  The errors of steps do not ensure that: velocities are in
the axes of bodies, and those of a body that rotates uniformly are constant.  KEEP therefore computes TURN_STEP.
"""

from math import sqrt

from cardan.dynamics import abi
from cardan.dynamics._equations import EVALUATION, MOVED_Q, RESIDUAL, SHIFT, VALUES, evaluate, piece, retract
from cardan.dynamics.abi import WIDTH
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import floats_at, integers_at, tail

EVENT_GAP = 1e-12  # relative to the extent, or in radians: a stop that is this near, or passed by less, is reached
EVENT_STEP = 1e-13  # of a step: a bracket of an event is not made smaller
NEUTRAL = 1e-12  # of the largest multiplier: a stop that pulls by less neither pushes nor pulls
INSIDE = 1e-3  # of a bracket: an event is sought no nearer to its ends
DIFFERENCE = 1e-4  # of a step: rates of coordinates are differences over this time
UNSURE = 1e-2  # of the second and third order of a cubic: its error, with rotations twice as far as MOST_TURN
TINY = 1e-300  # against division by zero


@inner
def coordinate_of(job, stop, values):
    """The coordinate of a stop [m or rad], from the values of its equations."""
    table = tail(integers_at(job[abi.STOPS]), abi.STOP * stop)
    return values[table[abi.STOP_ROW]] + floats_at(job[abi.FLOATS])[table[abi.STOP_PLACE]]


@inner
def gap_of(job, stop, values, multipliers):
    """Positive where a stop is passed (relative to the extent, or in radians), or where it would have to pull (−λ)."""
    table = tail(integers_at(job[abi.STOPS]), abi.STOP * stop)
    bounds = tail(floats_at(job[abi.BOUNDS]), abi.BOUND * stop)
    if bounds[abi.SIDE] != 0.0:
        return -multipliers[table[abi.STOP_EQUATION]] * bounds[abi.SIDE]
    c = coordinate_of(job, stop, values)
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
def keep_coordinates(job, place, values):
    """Store the coordinates of all stops at a place of BOUNDS."""
    for k in range(job[abi.STOP_COUNT]):
        tail(floats_at(job[abi.BOUNDS]), abi.BOUND * k)[place] = coordinate_of(job, k, values)


@inner
def moved_values(job, control, q, v, work):
    """VALUES ← f a little later than q."""
    step = piece(job, SHIFT, work)
    for i in range(WIDTH * job[abi.BODIES]):
        step[i] = DIFFERENCE * control[abi.STEP] * v[i]
    moved = piece(job, MOVED_Q, work)
    retract(job, q, step, moved, work)
    return update_values(job, moved, work)


@inner
def keep_gaps(job, control, q, v, multipliers, work):
    """Store the gaps, coordinates and rates of all stops at the start of a step."""
    values = update_values(job, q, work)
    for k in range(job[abi.STOP_COUNT]):
        tail(floats_at(job[abi.BOUNDS]), abi.BOUND * k)[abi.GAP] = gap_of(job, k, values, multipliers)
    keep_coordinates(job, abi.START, values)
    values = moved_values(job, control, q, v, work)
    for k in range(job[abi.STOP_COUNT]):
        own = tail(floats_at(job[abi.BOUNDS]), abi.BOUND * k)
        own[abi.RATE] = (coordinate_of(job, k, values) - own[abi.START]) / (DIFFERENCE * control[abi.STEP])
    control[abi.TURN_STEP] = control[abi.MOST_TURN] / largest_spin(job, v)


@inner
def largest_spin(job, v):
    """The largest |ω| of a body [rad/s], not zero."""
    largest = TINY
    for k in range(job[abi.BODIES]):
        w = tail(v, WIDTH * k + 3)
        largest = max(largest, sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]))
    return largest


@inner
def passed_within(job, control, q, v, work):
    """The part of the step after which a coordinate that returns may be farthest beyond a bound; 1 if there is none."""
    h = control[abi.STEP]
    part = 1.0
    farthest = EVENT_GAP
    keep_coordinates(job, abi.FINISH, piece(job, VALUES, work))
    values = moved_values(job, control, q, v, work)
    for k in range(job[abi.STOP_COUNT]):
        own = tail(floats_at(job[abi.BOUNDS]), abi.BOUND * k)
        first = h * own[abi.RATE]
        last = (coordinate_of(job, k, values) - own[abi.FINISH]) / DIFFERENCE
        if own[abi.SIDE] == 0.0 and first * last < 0.0:
            change = own[abi.FINISH] - own[abi.START]
            square = 3.0 * change - 2.0 * first - last
            cube = first + last - 2.0 * change
            root = sqrt(max(0.0, square * square - 3.0 * cube * first))
            s = abs(first) / (root - square if first > 0.0 else root + square)
            c = own[abi.START] + s * (first + s * (square + s * cube))
            beyond = c - own[abi.UPPER] if first > 0.0 else own[abi.LOWER] - c
            beyond = own[abi.WEIGHT] * (beyond + UNSURE * (abs(square) + abs(cube)))
            if beyond > farthest and INSIDE < s < 1.0 - INSIDE:
                farthest = beyond
                part = s
    return part


@inner
def seek_event(job, control, q, v, multipliers, work):
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
    h = control[abi.STEP]
    if largest <= EVENT_GAP and control[abi.HIGH] == 0.0:
        whole = control[abi.WHOLE]
        control[abi.WHOLE] = 0.0
        if whole == 0.0:
            part = passed_within(job, control, q, v, work)
            control[abi.WHOLE] = h if part < 1.0 else 0.0
            control[abi.STEP] = part * h
        elif whole > 0.0:
            control[abi.WHOLE] = -1.0  # it is not passed: take the whole step
            control[abi.STEP] = whole
        control[abi.FRESH] = 1.0 if control[abi.WHOLE] != 0.0 else control[abi.FRESH]
        return control[abi.WHOLE] != 0.0
    control[abi.WHOLE] = 0.0
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


def _stops(op, job, control, q, v, multipliers, unused, work):
    if op == abi.SEEK:
        return 1 if seek_event(job, control, q, v, multipliers, work) else 0
    keep_gaps(job, control, q, v, multipliers, work)
    return 0


STOPS = evaluator(_stops)
