"""Limits as stops of a simulation: events that end a step.  Compiled only where a mechanism has limits.

STOPS reads the pose q, the velocity v and the multipliers at the end of a step; SEEK returns whether the step must be
repeated with another length, chosen by the secant, KEEP stores the gaps at the start of the next step in the bounds.

A coordinate may pass a bound and return within a step.  Its cubic by Hermite, from the values and rates at both ends,

    c(s) = c₀ + m₀ s + (3Δ − 2m₀ − m₁) s² + (m₀ + m₁ − 2Δ) s³,   0 ≤ s ≤ 1,   Δ = c₁ − c₀,   m = h ċ,

then has its extreme beyond the bound, or nearer to it than the cubic is exact.  Control.whole ← the step, which is
repeated up to there.  If the bound is passed there, that pose begins the search for the event.  If not, the whole step
is taken.

This holds if a step is short compared to a turn of any body.  The errors of steps do not ensure that: velocities are in
the axes of bodies, and those of a body that rotates uniformly are constant.  KEEP therefore computes turn_step.
"""

from math import sqrt

from cardan.dynamics import tables
from cardan.dynamics._dual import subtract_times
from cardan.dynamics._equations import RESIDUAL, mass_values, retract
from cardan.dynamics.friction_tables import SHARED
from cardan.dynamics.tables import WIDTH, Bound, Control, MotionJob, Pattern, Stop, Work
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import tail
from cardan.solvers._job import evaluate

EVENT_GAP = 1e-12  # relative to the extent, or in radians: a stop that is this near, or passed by less, is reached
EVENT_STEP = 1e-13  # of a step: a bracket of an event is not made smaller
NEUTRAL = 1e-12  # of the largest multiplier: a stop that pulls by less neither pushes nor pulls
INSIDE = 1e-3  # of a bracket: an event is sought no nearer to its ends
DIFFERENCE = 1e-4  # of a step: rates of coordinates are differences over this time
UNSURE = 1e-2  # of the second and third order of a cubic: its error, with rotations twice as far as MOST_TURN
SUMMIT = 0.05  # of the height of a parabola: its error
TINY = 1e-300  # against division by zero


@inner
def coordinate_of(job, number, values):
    """The coordinate of a stop [m or rad], from the values of its equations."""
    stop = Stop(job.stops, number)
    return values[stop.row] + job.floats[stop.place]


@inner
def gap_of(job, number, values, multipliers):
    """Positive where a stop is passed (relative to the extent, or in radians), or where it would have to pull (−λ)."""
    bound = Bound(job.bounds, number)
    if bound.side != 0.0:
        return -multipliers[Stop(job.stops, number).equation] * bound.side
    c = coordinate_of(job, number, values)
    return bound.weight * max(bound.lower - c, c - bound.upper)


@inner
def pull_of(gap, start, strongest):
    """The gap of a stop that holds, relative to its push at the start of the step; −1 if it does not pull at all."""
    return gap / max(-start, abs(gap), TINY) if gap < 0.0 or gap > NEUTRAL * strongest else -1.0


@inner
def update_values(job, q, work):
    """VALUES ← f at q."""
    values = work.values
    evaluate(job, RESIDUAL, q, q, values, values, work.evaluation)
    return values


@inner
def moved_values(job, control, q, v, work):
    """VALUES ← f a little later than q."""
    step = work.shift
    for i in range(WIDTH * job.bodies):
        step[i] = DIFFERENCE * control.step * v[i]
    moved = work.moved_q
    retract(job, q, step, moved, work)
    return update_values(job, moved, work)


@inner
def has_rows(job, work):
    """Whether Ĵ has the rows of all stops that do not hold."""
    for k in range(job.stop_count):
        if Bound(job.bounds, k).side == 0.0 and work.scales[Stop(job.stops, k).equation] == 0.0:
            return False
    return True


@inner
def update_rates(job, v, work):
    """SCRATCH ← J v, scaled by D, behind M^½ v."""
    roots = mass_values(job).roots
    n6 = WIDTH * job.bodies
    scratch = work.scratch
    for i in range(n6):
        scratch[i] = v[i] * roots[i]
    for i in range(job.equations):
        scratch[n6 + i] = 0.0
    subtract_times(Pattern(job.pattern), work.jacobian, scratch, tail(scratch, n6))


@inner
def rate_of(job, number, work):
    """The rate of the coordinate of a stop, from SCRATCH."""
    equation = Stop(job.stops, number).equation
    return work.scratch[WIDTH * job.bodies + equation] / work.scales[equation]


@inner
def keep_gaps(job, control, q, v, multipliers, work):
    """Store the gaps, coordinates and rates of all stops at the start of a step.

    If Ĵ has their rows, VALUES are those of SEEK, and rates J v.
    """
    is_direct = has_rows(job, work)
    if control.known == 0.0 or not is_direct:
        update_values(job, q, work)
    values = work.values
    for k in range(job.stop_count):
        bound = Bound(job.bounds, k)
        before = bound.gap
        bound.gap = gap_of(job, k, values, multipliers)
        bound.start = coordinate_of(job, k, values) if bound.side == 0.0 else before
        bound.rate = control.step if control.known > 0.0 else 0.0
    if is_direct:
        update_rates(job, v, work)
    else:
        moved_values(job, control, q, v, work)
    for k in range(job.stop_count):
        bound = Bound(job.bounds, k)
        if bound.side == 0.0 and is_direct:
            bound.rate = rate_of(job, k, work)
        elif bound.side == 0.0:
            bound.rate = (coordinate_of(job, k, values) - bound.start) / (DIFFERENCE * control.step)
    control.turn_step = control.most_turn / largest_spin(job, v)


@inner
def largest_spin(job, v):
    """The largest |ω| of a body [rad/s], not zero."""
    largest = TINY
    for k in range(job.bodies):
        w = tail(v, WIDTH * k + 3)
        largest = max(largest, sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]))
    return largest


@inner
def summit_of(before, start, finish, ratio):
    """Of the parabola through values at −ratio, 0 and 1: where it is largest within (0, 1), and that value; else 1."""
    if not ratio > 0.0:
        return 1.0, finish
    square = ((finish - start) - (start - before) / ratio) / (1.0 + ratio)
    slope = finish - start - square
    if not (square < 0.0 and INSIDE * -2.0 * square < slope < (1.0 - INSIDE) * -2.0 * square):
        return 1.0, finish
    return -0.5 * slope / square, start - 0.25 * slope * slope / square


@inner
def passed_within(job, control, q, v, multipliers, work):
    """The part of the step after which a coordinate that returns may be farthest beyond a bound; 1 if there is none."""
    h = control.step
    part = 1.0
    farthest = EVENT_GAP
    for k in range(job.stop_count):
        bound = Bound(job.bounds, k)
        bound.finish = coordinate_of(job, k, work.values)
        if bound.side != 0.0 and bound.side != SHARED and farthest == EVENT_GAP:
            gap = gap_of(job, k, work.values, multipliers)
            s, summit = summit_of(bound.start, bound.gap, gap, bound.rate / h)
            if s < 1.0 and summit > SUMMIT * (min(bound.gap, gap) - summit):
                part = s  # a push that may end and begin again
    is_direct = has_rows(job, work)
    if is_direct:
        update_rates(job, v, work)
    else:
        moved_values(job, control, q, v, work)
    for k in range(job.stop_count):
        bound = Bound(job.bounds, k)
        first = h * bound.rate
        if is_direct and bound.side == 0.0:
            last = h * rate_of(job, k, work)
        else:
            last = (coordinate_of(job, k, work.values) - bound.finish) / DIFFERENCE
        if bound.side == 0.0 and first * last < 0.0:
            change = bound.finish - bound.start
            square = 3.0 * change - 2.0 * first - last
            cube = first + last - 2.0 * change
            root = sqrt(max(0.0, square * square - 3.0 * cube * first))
            s = abs(first) / (root - square if first > 0.0 else root + square)
            c = bound.start + s * (first + s * (square + s * cube))
            beyond = c - bound.upper if first > 0.0 else bound.lower - c
            beyond = bound.weight * (beyond + UNSURE * (abs(square) + abs(cube)))
            if beyond > farthest and INSIDE < s < 1.0 - INSIDE:
                farthest = beyond
                part = s
    return part


@inner
def worst_stop(job, multipliers, work):
    """The largest gap of a stop, its number, and this gap at the start of the step; VALUES are those at the end."""
    largest = -1.0 / TINY
    first = 0
    strongest = strongest_of(job, multipliers)
    for k in range(job.stop_count):
        bound = Bound(job.bounds, k)
        if bound.side != SHARED:
            gap = gap_of(job, k, work.values, multipliers)
            if bound.side != 0.0:
                gap = pull_of(gap, bound.gap, strongest)
            if gap > largest:
                largest = gap
                first = k
    bound = Bound(job.bounds, first)
    start = bound.gap
    if bound.side != 0.0:
        start /= max(-start, abs(gap_of(job, first, work.values, multipliers)), TINY)
    return largest, first, start


@inner
def strongest_of(job, multipliers):
    """The largest multiplier."""
    strongest = 0.0
    for k in range(job.equations):
        strongest = max(strongest, abs(multipliers[k]))
    return strongest


@inner
def seek_event(job, control, q, v, multipliers, worst, work):
    """Whether a step must be repeated with another length, chosen by the secant, to end at an event.

    worst: the largest event function, the number of its stop, and its value at the start of the step.
    EVENT ← the number of the stop, from 1, if the step ends at an event; else 0.
    """
    largest, first, start = worst
    control.event = 0.0
    h = control.step
    if largest <= EVENT_GAP and control.high == 0.0:
        whole = control.whole
        control.whole = 0.0
        if whole == 0.0:
            part = passed_within(job, control, q, v, multipliers, work)
            control.whole = h if part < 1.0 else 0.0
            control.step = part * h
        elif whole > 0.0:
            control.whole = -1.0  # it is not passed: take the whole step
            control.step = whole
        control.fresh = 1.0 if control.whole != 0.0 else control.fresh
        return control.whole != 0.0
    control.whole = 0.0
    if abs(largest) <= EVENT_GAP or control.high - control.low <= EVENT_STEP * control.high > 0.0:
        control.event = float(first + 1)
        return False
    if control.high == 0.0:
        control.low = 0.0
        control.low_gap = min(start, 0.0)
    if largest > 0.0:
        control.high = h
        control.high_gap = largest
        control.low_gap *= 0.5
    else:
        control.low = h
        control.low_gap = largest
        control.high_gap *= 0.5
    width = control.high - control.low
    part = -control.low_gap / max(control.high_gap - control.low_gap, TINY)
    control.step = control.low + min(max(part, INSIDE), 1.0 - INSIDE) * width
    control.fresh = 1.0
    return True


def _stops(op, ints, floats, q, v, multipliers, unused, memory):
    job = MotionJob(ints)
    control = Control(floats)
    work = Work(job.pieces, memory)
    if op == tables.SEEK:
        update_values(job, q, work)
        worst = worst_stop(job, multipliers, work)
        return 1 if seek_event(job, control, q, v, multipliers, worst, work) else 0
    keep_gaps(job, control, q, v, multipliers, work)
    return 0


STOPS = evaluator(_stops)
