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

from cardan.dynamics import abi
from cardan.dynamics._equations import (
    ACCURATE,
    MOVED_Q,
    SHIFT,
    approach,
    contradicts_rates,
    is_closed,
    linearize,
    piece,
    project_pose,
    project_velocity,
    retract,
    solve_acceleration,
    update_gamma,
)
from cardan.dynamics.abi import WIDTH
from cardan.kernel.jit import evaluator, inner, plain
from cardan.kernel.memory import call_evaluator, floats_at, tail

APPROACH, LINEARIZE, CLOSE, CURVATURE, ACCELERATE = (plain(1 << k) for k in range(5))
SEEK, KEEP = plain(abi.SEEK), plain(abi.KEEP)
CLOSURES = 8  # projections of one pose
DIVERGED = 1e3  # relative to the extent, or in radians: a larger shift does not lead to a closed pose


@inner
def current(job, control):
    """The row of DRIVE that was written to the floats last."""
    width = 3 * (job[abi.DRIVEN] + job[abi.TIMED])
    return tail(floats_at(job[abi.DRIVE]), max(0, width * (int(control[abi.DRIVE_AT]) - 1)))


@inner
def is_projected(control):
    """Whether poses and velocities are projected; always at the start of a run."""
    return control[abi.STABILIZATION] == abi.PROJECTED or control[abi.PHASE] == abi.BEGIN


@inner
def keep_moved(job, new_q, work):
    """NEW_Q ← MOVED_Q."""
    moved = piece(job, MOVED_Q, work)
    for i in range(job[abi.COORDINATES]):
        new_q[i] = moved[i]


def _instant(op, job, control, new_q, v, a, multipliers, work):
    row = current(job, control)
    if op & APPROACH and control[abi.REDUNDANT] != 0.0 and control[abi.STABILIZATION] == abi.PROJECTED:
        approach(job, control, new_q, piece(job, MOVED_Q, work), a, work)
    step = piece(job, SHIFT, work)
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
            retract(job, new_q, step, piece(job, MOVED_Q, work), work)
            keep_moved(job, new_q, work)
        if is_open:
            control[abi.SHIFTED] = max(control[abi.SHIFTED], shift)
            project_velocity(job, control, row, v, work)
            if contradicts_rates(job, control, row, work):
                return 0
            is_accurate = control[abi.REDUNDANT] == 0.0 and control[abi.PIVOT] > ACCURATE
            is_exact = shift <= control[abi.EXACT]  # not if the shift is not a number
            is_open = not (is_exact and (is_accurate or is_closed(job, control, new_q, work)))
            left -= 1
            if is_open and (left == 0 or not shift < DIVERGED):
                return 0
            is_stale = is_open
            for i in range(WIDTH * job[abi.BODIES]):
                step[i] = 0.0
    if op & CURVATURE:
        update_gamma(job, new_q, v, work)
    if op & ACCELERATE:
        solve_acceleration(job, control, new_q, v, row, a, multipliers, work)
    return 1


INSTANT = evaluator(_instant)


@inner
def at_instant(op, job, control, new_q, v, a, multipliers, work):
    """Call INSTANT; returns whether it succeeded."""
    return call_evaluator(job[abi.INSTANT], op, job, control, new_q, v, a, multipliers, work) != 0


@inner
def at_stops(op, job, control, q, v, multipliers, work):
    """Call the kernel of :mod:`cardan.dynamics._stops`; SEEK returns whether the step must be repeated."""
    return call_evaluator(job[abi.STOP_SOLVER], op, job, control, q, v, multipliers, q, work) != 0
