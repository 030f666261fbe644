"""The equations of motion at one instant as one kernel, which all integrators call by its address.

Integrators need the same large functions at several places, and would contain a copy for each.

INSTANT does the operations whose bits are set, in this order.  It reads and writes the pose q (NEW_Q) and the velocity
v, and the pieces of the workspace that :mod:`cardan.dynamics._equations` names; it returns whether it succeeded.

========== =========================================================================================================
APPROACH   where rows are redundant, bring the pose nearer to the constraints; a ← the way back
LINEARIZE  f, γ, J and the factor at (q, v)
CLOSE      q, v ← the pose moved by SHIFT and the velocity, projected until the shift is rounding
CURVATURE  γ at (q, v), with J and the factor at hand
ACCELERATE a ← v̇, multipliers ← λ
========== =========================================================================================================
"""

from cardan.dynamics import tables
from cardan.dynamics._equations import (
    ACCURATE,
    CLOSED,
    approach,
    contradicts_rates,
    farthest,
    is_closed,
    is_opposed,
    linearize,
    project_pose,
    project_velocity,
    retract,
    solve_acceleration,
    update_gamma,
)
from cardan.dynamics.tables import WIDTH, Control, Jet, MotionJob, Work
from cardan.kernel.jit import evaluator, inner, plain
from cardan.kernel.memory import call_evaluator

APPROACH, LINEARIZE, CLOSE, CURVATURE, ACCELERATE = (plain(1 << k) for k in range(5))
SEEK, KEEP = plain(tables.SEEK), plain(tables.KEEP)
CLOSURES = 8  # projections of one pose
DIVERGED = 1e3  # relative to the extent, or in radians: a larger shift does not lead to a closed pose


@inner
def current(job, control):
    """The row of DRIVE that was written to the floats last."""
    return Jet(job.drive, max(0, (job.driven + job.timed) * (int(control.drive_at) - 1)))


@inner
def is_projected(control):
    """Whether poses and velocities are projected; always at the start of a run."""
    return control.stabilization == tables.PROJECTED or control.phase == tables.BEGIN


@inner
def keep_moved(job, new_q, work):
    """NEW_Q ← MOVED_Q."""
    moved = work.moved_q
    for i in range(job.coordinates):
        new_q[i] = moved[i]


def _instant(op, ints, floats, new_q, v, a, multipliers, memory):
    job = MotionJob(ints)
    control = Control(floats)
    work = Work(job.pieces, memory)
    row = current(job, control)
    if op & APPROACH and control.redundant != 0.0 and control.stabilization == tables.PROJECTED:
        approach(job, control, new_q, work.moved_q, a, work)
    step = work.shift
    is_stale = op & LINEARIZE != 0
    is_open = op & CLOSE != 0
    left = CLOSURES
    while is_stale or is_open:
        if is_stale:
            linearize(job, control, new_q, v, work)
            is_stale = False
        if is_open:
            is_open = is_projected(control)
            shift = project_pose(job, control, step, work) if is_open else 0.0
            retract(job, new_q, step, work.moved_q, work)
            keep_moved(job, new_q, work)
        if is_open:
            control.shifted = max(control.shifted, shift)
            project_velocity(job, control, row, v, work)
            if contradicts_rates(job, control, row, work):
                return 0
            # a rotation by the shift moves a joint at a distance by its square times the distance
            is_small = shift * shift * farthest(job, new_q) <= CLOSED * control.length
            is_accurate = control.redundant == 0.0 and control.pivot > ACCURATE and is_small
            is_exact = shift <= control.exact  # not if the shift is not a number
            is_open = not (is_exact and (is_accurate or is_closed(job, control, new_q, work)))
            left -= 1
            if is_open and (left == 0 or not shift < DIVERGED):
                return 0
            is_stale = is_open
            for i in range(WIDTH * job.bodies):
                step[i] = 0.0
    if op & CLOSE and is_opposed(job, work):
        return 0
    if op & CURVATURE:
        update_gamma(job, new_q, v, work)
    if op & ACCELERATE:
        solve_acceleration(job, control, new_q, v, row, a, multipliers, work)
    return 1


INSTANT = evaluator(_instant)


@inner
def at_instant(op, job, control, new_q, v, a, multipliers, work):
    """Call INSTANT; returns whether it succeeded."""
    return call_evaluator(job.instant, op, job.as_ints, control.as_floats, new_q, v, a, multipliers, work.memory) != 0


@inner
def at_stops(op, job, control, q, v, multipliers, work):
    """Call the kernel of :mod:`cardan.dynamics._stops`; SEEK returns whether the step must be repeated."""
    return call_evaluator(job.stop_solver, op, job.as_ints, control.as_floats, q, v, multipliers, q, work.memory) != 0
