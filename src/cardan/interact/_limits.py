"""Limits of coordinates in a kinematic cycle: rows that hold while they are reached and pushed against; and events.

Reads the stops and bounds of the equations; writes sides, active rows, values of bounds, and the ring of events.
"""

from cardan.dynamics import abi as dynamics_abi
from cardan.dynamics._equations import VALUES, piece
from cardan.dynamics._soft import FORCES, soft_multipliers, soft_part
from cardan.interact import abi
from cardan.kernel.jit import inner
from cardan.kernel.memory import floats_at, integers_at, tail

BEYOND = 1e-12  # of the extent, or [rad]: a limit that is passed by more holds


@inner
def note_event(table, control, kind, number, value):
    """Append to the ring of events."""
    ring = floats_at(table[abi.EVENTS])
    own = tail(ring, abi.EVENT * (int(control[abi.EVENT_COUNT]) % abi.MOST_EVENTS))
    own[abi.E_CYCLE] = control[abi.CYCLES]
    own[abi.E_KIND] = kind
    own[abi.E_NUMBER] = number
    own[abi.E_VALUE] = value
    control[abi.EVENT_COUNT] += 1.0


@inner
def release_stop(table, job, control):
    """Release the stop that pulls most against the hands; returns whether there was one."""
    soft = integers_at(job[dynamics_abi.SOFT_INTS])
    rows = soft[dynamics_abi.SOFT_ROWS]
    count = job[dynamics_abi.STOP_COUNT]
    y = soft_part(job, FORCES, soft[dynamics_abi.SOFT_MOST])
    multipliers = soft_multipliers(job)
    stops = integers_at(job[dynamics_abi.STOPS])
    n = job[dynamics_abi.EQUATIONS]
    bounds = floats_at(job[dynamics_abi.BOUNDS])
    worst = 0.0
    found = -1
    for k in range(count):
        side = bounds[dynamics_abi.BOUND * k + dynamics_abi.SIDE]
        if side != 0.0:
            e = 0.0
            size = 0.0
            for i in range(rows):
                own = y[i] * multipliers[n * i + stops[dynamics_abi.STOP * k + dynamics_abi.STOP_EQUATION]]
                e += own
                size += abs(own)
            if side * e < min(worst, -1e-9 * size):
                worst = side * e
                found = k
    if found >= 0:
        set_stop(job, found, 0.0)
        note_event(table, control, abi.LIMIT_LEFT, float(found), 0.0)
    return found >= 0


@inner
def set_stop(job, number, side):
    """Let a stop hold its lower (−1) or upper (+1) bound, or none (0)."""
    stop = tail(integers_at(job[dynamics_abi.STOPS]), dynamics_abi.STOP * number)
    bound = tail(floats_at(job[dynamics_abi.BOUNDS]), dynamics_abi.BOUND * number)
    bound[dynamics_abi.SIDE] = side
    value = 0.0
    if side < 0.0:
        value = bound[dynamics_abi.LOWER]
    elif side > 0.0:
        value = bound[dynamics_abi.UPPER]
    floats_at(job[dynamics_abi.ACTIVE])[stop[dynamics_abi.STOP_EQUATION]] = 1.0 if side != 0.0 else 0.0
    floats_at(job[dynamics_abi.FLOATS])[stop[dynamics_abi.STOP_PLACE]] = value


@inner
def reach_stops(table, job, control, work):
    """Let those stops hold whose bounds are passed at the pose of VALUES; returns whether there is one."""
    values = piece(job, VALUES, work)
    stops = integers_at(job[dynamics_abi.STOPS])
    bounds = floats_at(job[dynamics_abi.BOUNDS])
    found = False
    for k in range(job[dynamics_abi.STOP_COUNT]):
        bound = tail(bounds, dynamics_abi.BOUND * k)
        if bound[dynamics_abi.SIDE] == 0.0:
            c = values[stops[dynamics_abi.STOP * k + dynamics_abi.STOP_ROW]]
            slack = BEYOND / bound[dynamics_abi.WEIGHT]
            side = 0.0
            if c > bound[dynamics_abi.UPPER] + slack:
                side = 1.0
            elif c < bound[dynamics_abi.LOWER] - slack:
                side = -1.0
            if side != 0.0:
                set_stop(job, k, side)
                note_event(table, control, abi.LIMIT_REACHED, float(k), side)
                found = True
    return found
