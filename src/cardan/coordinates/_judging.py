"""The verdict in kernels: during a run, and on many poses at once.

Reads a table of what is judged (Judged), the bounds and the poses.  Writes the workspace and out: the
residual that is largest in relation to its bound, and that bound.
"""

from cardan.coordinates._verdict import judge
from cardan.coordinates.tables import Judged, JudgeWork
from cardan.kernel.jit import inner, jit
from cardan.kernel.memory import call_evaluator, cut, pointer, view
from cardan.solvers.tables import RESIDUAL, RETRACT
from cardan.system._tables import shift_reference
from cardan.system.tables import POSE


@inner
def update_angles(evaluate, ints, floats, first, size, q, moved, zeros, work):
    """Counted angles, from q[first] to q[size − 1] ← those of the poses, within half a turn of those in q."""
    call_evaluator(evaluate, RETRACT, ints, floats, q, zeros, moved, zeros, work)
    for i in range(first, size):
        q[i] = moved[i]


@inner
def judge_shifted(judged, bounds, poses, shifted, work, out):
    """out ← verdict on poses of the body origins; shifted: the same in solver coordinates."""
    zeros = work.zeros
    residuals = work.residuals
    evaluation = work.evaluation
    call_evaluator(judged.evaluator, RESIDUAL, judged.ints, judged.floats, shifted, zeros, residuals, zeros, evaluation)
    first = POSE * judged.bodies
    judge(
        view(residuals, judged.rows),
        view(judged.powers, judged.rows),
        view(poses, first),
        view(cut(poses, first + judged.variables, judged.angles), judged.angles),
        view(judged.frames, judged.frames_size),
        view(judged.origin, 3),
        bounds,
        out,
    )


@inner
def judge_at(judged, bounds, q, work, out):
    """out ← verdict on the poses that would be returned from solver coordinates q, with unit quaternions.

    An angle is taken from the poses; of the counted angle in q only the whole turns matter.
    """
    bodies = judged.bodies
    first = POSE * bodies + judged.variables
    size = first + judged.angles
    frames = view(judged.frames, judged.frames_size)
    origin = view(judged.origin, 3)
    poses = work.poses
    shifted = work.shifted
    for i in range(size):
        poses[i] = q[i]
    shift_reference(bodies, frames, origin, -1.0, view(poses, size))
    for i in range(size):
        shifted[i] = poses[i]
    shift_reference(bodies, frames, origin, 1.0, view(shifted, size))
    if judged.angles > 0:
        update_angles(
            judged.evaluator, judged.ints, judged.floats, first, size, shifted, work.moved, work.zeros, work.evaluation
        )
    judge_shifted(judged, bounds, poses, shifted, work, out)


@jit
def judge_many(table, bounds, count, poses, shifted, work, out):
    """out ← residual and bound of every start, two floats each, from its poses and the same in solver coordinates."""
    judged = Judged(table)
    work = JudgeWork(judged.pieces, pointer(work))
    size = poses.size // count
    for k in range(count):
        start = cut(pointer(poses), k * size, size)
        q = cut(pointer(shifted), k * size, size)
        judge_shifted(judged, bounds, start, q, work, out[2 * k :])
    return count


@jit
def residuals_of_many(evaluate, ints, floats, q, count, out, work):
    """out ← f of every row of q."""
    size = q.size // count
    rows = out.size // count
    for k in range(count):
        row = cut(pointer(q), k * size, size)
        residuals = cut(pointer(out), k * rows, rows)
        call_evaluator(evaluate, RESIDUAL, pointer(ints), pointer(floats), row, row, residuals, row, pointer(work))
    return count


@jit
def update_angles_of_many(evaluate, ints, floats, first, q, count, moved, zeros, work):
    """:func:`update_angles` in every row of q."""
    size = q.size // count
    for k in range(count):
        update_angles(evaluate, ints, floats, first, size, q[k * size : (k + 1) * size], moved, zeros, work)
    return count
