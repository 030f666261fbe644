"""What a cycle with collisions asks of the joints and hands (:mod:`cardan.interact.touching`), one operation each.

With the factor of Ĵ at q, u = M^½ δ of a step δ, and rows â = a M^−½ of bodies that touch:

    TARGETS    a cycle begins: targets are taken; returns whether there is anything to do
    LINEARIZE  the factor at q; soft rows of the hands to SoftWork; out ← u₀ of drivers and limits, other ← M^−½
    SOLVE      out ← P â of given[0] rows, (u, λ) each, in place
    MOVE       new_q ← q ⊕ δ, closed; out ← new_q, other ← part of the drivers, change of the hands' cost, its noise
    MOVE_ON    the same from new_q on
    STAY       drivers have the values of q; returns a status of a session
    TAKE       q ← new_q; returns a status of a session

Reads the tables of a session; writes q, poses, hands, events, control.
"""

from cardan.dynamics._equations import SOLVE as SOLVE_EQUATIONS
from cardan.dynamics._equations import call_algebra, is_opposed, mass_values, retract, solve
from cardan.dynamics._soft import evaluate_soft
from cardan.dynamics.tables import WIDTH, Driver, SoftWork, Stop, Work
from cardan.interact._hands import compare_costs, keep_start, write_forces
from cardan.interact._kinematic import (
    EVALUATE_JACOBIAN,
    close_pose,
    copy_pose,
    is_near,
    is_pending,
    is_refused,
    keep_drivers,
    linearize_pose,
    set_drivers,
    take_targets,
    write_poses,
)
from cardan.interact._limits import reach_stops
from cardan.interact._singular import refine
from cardan.interact.tables import (
    FAILED,
    LINEARIZE,
    MOVE,
    MOVE_ON,
    MOVING,
    REACHED,
    SATURATED,
    SOLVE,
    STAY,
    TARGETS,
    Control,
    Goal,
    Session,
)
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import tail

CLOSED, STOPPED, OPEN = range(3)  # what a move returns: the joints are closed; a limit is passed; they do not close


@inner
def _linearize(session, control, q, out, other, work):
    """See LINEARIZE; returns whether drivers or limits are to be moved."""
    job = session.job
    n6 = WIDTH * job.bodies
    n = job.equations
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    linearize_pose(job, control, q, work)
    control.linearized = 0.0
    write_forces(session.hands, q)
    keep_start(session.hands, q)
    evaluate_soft(job, EVALUATE_JACOBIAN, q, q, parts.memory)
    inverse_roots = mass_values(job).inverse_roots
    for i in range(n6):
        other[i] = inverse_roots[i]
    x = work.x
    for i in range(n6 + n):
        x[i] = 0.0
    pending = 1 if is_pending(job, session) else 0
    for k in range(job.stop_count):
        stop = Stop(job.stops, k)
        x[n6 + stop.equation] = -work.scales[stop.equation] * work.values[stop.row]
    if pending != 0:
        for k in range(job.driven):
            driver = Driver(job.drivers, k)
            away = Goal(session.goals, k).value - job.floats[driver.place]
            x[n6 + driver.equation] = work.scales[driver.equation] * away
    refine(control, 1.0)
    call_algebra(job, SOLVE_EQUATIONS, control, work)
    for i in range(n6):
        out[i] = x[i]
    return pending


@inner
def _solve(session, control, count, out, work):
    """See SOLVE."""
    job = session.job
    width = WIDTH * job.bodies + job.equations
    x = work.x
    for i in range(count):
        row = tail(out, width * i)
        for k in range(width):
            x[k] = row[k]
        solve(job, control, False, work)
        for k in range(width):
            row[k] = x[k]


@inner
def _move(session, control, q, given, out, other, work):
    """See MOVE; given: u."""
    job = session.job
    inverse_roots = mass_values(job).inverse_roots
    step = work.old_q
    moved = work.moved_q
    new_q = work.new_q
    for i in range(WIDTH * job.bodies):
        step[i] = given[i] * inverse_roots[i]
    retract(job, q, step, moved, work)
    copy_pose(job, moved, new_q)
    set_drivers(session, job, other[0])
    if close_pose(job, control, work) < 0.0 or is_opposed(job, work):
        return OPEN
    write_forces(session.hands, new_q)
    other[1], other[2], other[3] = compare_costs(session.hands, new_q, control.length)
    copy_pose(job, new_q, out)
    return STOPPED if reach_stops(session, job, control, work) else CLOSED


def _act(op, ints, floats, q, given, out, other, memory):
    """One operation; returns what it says above."""
    session = Session(ints)
    control = Control(floats)
    job = session.job
    work = Work(job.pieces, memory)
    if op == TARGETS:
        control.cycles += 1.0
        held = take_targets(session, control)
        return 1 if held > 0 or is_pending(job, session) else 0
    if op == LINEARIZE:
        return _linearize(session, control, q, out, other, work)
    if op == SOLVE:
        _solve(session, control, int(given[0]), out, work)
        return 0
    if op == MOVE or op == MOVE_ON:
        return _move(session, control, q if op == MOVE else work.new_q, given, out, other, work)
    if op == STAY:
        set_drivers(session, job, 0.0)
    else:
        keep_drivers(session, job)
        copy_pose(job, work.new_q, q)
        write_poses(session, job, q)
        control.substeps += 1.0
        control.probed = 0.0
    write_forces(session.hands, q)
    if is_near(session.hands, control.length):
        return FAILED if is_refused(session.hands) else REACHED
    return SATURATED if op == STAY else MOVING


ACT = evaluator(_act)
