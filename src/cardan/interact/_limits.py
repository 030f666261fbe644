"""Limits of coordinates in a kinematic cycle: rows that hold while they are reached and pushed against; and events.

Reads the stops and bounds of the equations; writes sides, active rows, values of bounds, and the ring of events.
"""

from cardan.dynamics.tables import Bound, SoftWork, Stop
from cardan.interact import tables
from cardan.interact.tables import Event
from cardan.kernel.jit import inner

BEYOND = 1e-12  # of the extent, or [rad]: a limit that is passed by more holds


@inner
def note_event(session, control, kind, number, value):
    """Append to the ring of events."""
    event = Event(session.events, int(control.event_count) % tables.MOST_EVENTS)
    event.cycle = control.cycles
    event.kind = kind
    event.number = number
    event.value = value
    control.event_count += 1.0


@inner
def release_stop(session, job, control):
    """Release the stop that pulls most against the hands; returns whether there was one."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    rows = soft.rows
    count = job.stop_count
    y = parts.forces
    multipliers = parts.multipliers
    stops = job.stops
    n = job.equations
    bounds = job.bounds
    worst = 0.0
    released = -1
    for k in range(count):
        side = Bound(bounds, k).side
        if side != 0.0:
            e = 0.0
            size = 0.0
            for i in range(rows):
                push = y[i] * multipliers[n * i + Stop(stops, k).equation]
                e += push
                size += abs(push)
            if side * e < min(worst, -1e-9 * size):
                worst = side * e
                released = k
    if released >= 0:
        set_stop(job, released, 0.0)
        note_event(session, control, tables.LIMIT_LEFT, float(released), 0.0)
    return released >= 0


@inner
def set_stop(job, number, side):
    """Let a stop hold its lower (−1) or upper (+1) bound, or none (0)."""
    stop = Stop(job.stops, number)
    bound = Bound(job.bounds, number)
    bound.side = side
    value = 0.0
    if side < 0.0:
        value = bound.lower
    elif side > 0.0:
        value = bound.upper
    job.active[stop.equation] = 1.0 if side != 0.0 else 0.0
    job.floats[stop.place] = value


@inner
def reach_stops(session, job, control, work):
    """Let those stops hold whose bounds are passed at the pose of VALUES; returns whether there is one."""
    values = work.values
    stops = job.stops
    bounds = job.bounds
    is_reached = False
    for k in range(job.stop_count):
        bound = Bound(bounds, k)
        if bound.side == 0.0:
            c = values[Stop(stops, k).row]
            slack = BEYOND / bound.weight
            side = 0.0
            if c > bound.upper + slack:
                side = 1.0
            elif c < bound.lower - slack:
                side = -1.0
            if side != 0.0:
                set_stop(job, k, side)
                note_event(session, control, tables.LIMIT_REACHED, float(k), side)
                is_reached = True
    return is_reached
