"""The verdict in kernels: during a run, and on many poses at once.

Reads a table of addresses (J_…) of what is judged, the bounds and the poses.  Writes the workspace and out: the
residual that is largest in relation to its bound, and that bound.
"""

from cardan.coordinates._verdict import judge
from cardan.kernel.jit import inner, jit, plain
from cardan.kernel.memory import call_evaluator, cut, floats_at, integers_at, pointer, view
from cardan.solvers.tables import RESIDUAL, RETRACT
from cardan.system._tables import shift_reference
from cardan.system.layout import POSE

# table of what is judged: addresses, sizes, then the offsets of the pieces of the workspace and of their end
J_EVALUATOR, J_INTS, J_FLOATS, J_POWERS, J_FRAMES, J_ORIGIN = range(6)
J_FRAMES_SIZE, J_BODIES, J_VARIABLES, J_ANGLES, J_ROWS, J_PIECES = range(6, 12)
POSES, SHIFTED, MOVED, ZEROS, RESIDUALS, EVALUATION = map(plain, range(6))


@inner
def piece(table, number, work):
    """A piece of the workspace of a verdict."""
    at = table[J_PIECES + number]
    return cut(work, at, table[J_PIECES + number + 1] - at)


@inner
def update_angles(evaluate, ints, floats, first, size, q, moved, zeros, work):
    """Counted angles, from q[first] to q[size − 1] ← those of the poses, within half a turn of those in q."""
    call_evaluator(evaluate, RETRACT, ints, floats, q, zeros, moved, zeros, work)
    for i in range(first, size):
        q[i] = moved[i]


@inner
def judge_shifted(table, bounds, poses, shifted, work, out):
    """out ← verdict on poses of the body origins; shifted: the same in solver coordinates."""
    bodies = table[J_BODIES]
    zeros = piece(table, ZEROS, work)
    residuals = piece(table, RESIDUALS, work)
    call_evaluator(
        table[J_EVALUATOR],
        RESIDUAL,
        integers_at(table[J_INTS]),
        floats_at(table[J_FLOATS]),
        shifted,
        zeros,
        residuals,
        zeros,
        piece(table, EVALUATION, work),
    )
    judge(
        view(residuals, table[J_ROWS]),
        view(integers_at(table[J_POWERS]), table[J_ROWS]),
        view(poses, POSE * bodies),
        view(cut(poses, POSE * bodies + table[J_VARIABLES], table[J_ANGLES]), table[J_ANGLES]),
        view(floats_at(table[J_FRAMES]), table[J_FRAMES_SIZE]),
        view(floats_at(table[J_ORIGIN]), 3),
        bounds,
        out,
    )


@inner
def judge_at(table, bounds, q, work, out):
    """out ← verdict on the poses that would be returned from solver coordinates q, with unit quaternions.

    An angle is taken from the poses; of the counted angle in q only the whole turns matter.
    """
    bodies = table[J_BODIES]
    first = POSE * bodies + table[J_VARIABLES]
    size = first + table[J_ANGLES]
    frames = view(floats_at(table[J_FRAMES]), table[J_FRAMES_SIZE])
    origin = view(floats_at(table[J_ORIGIN]), 3)
    poses = piece(table, POSES, work)
    shifted = piece(table, SHIFTED, work)
    for i in range(size):
        poses[i] = q[i]
    shift_reference(bodies, frames, origin, -1.0, view(poses, size))
    for i in range(size):
        shifted[i] = poses[i]
    shift_reference(bodies, frames, origin, 1.0, view(shifted, size))
    if table[J_ANGLES] > 0:
        update_angles(
            table[J_EVALUATOR],
            integers_at(table[J_INTS]),
            floats_at(table[J_FLOATS]),
            first,
            size,
            shifted,
            piece(table, MOVED, work),
            piece(table, ZEROS, work),
            piece(table, EVALUATION, work),
        )
    judge_shifted(table, bounds, poses, shifted, work, out)


@jit
def judge_many(table, bounds, count, poses, shifted, work, out):
    """out ← residual and bound of every start, two floats each, from its poses and the same in solver coordinates."""
    table = pointer(table)
    work = pointer(work)
    size = poses.size // count
    for k in range(count):
        mine = cut(pointer(poses), k * size, size)
        q = cut(pointer(shifted), k * size, size)
        judge_shifted(table, bounds, mine, q, work, out[2 * k :])
    return count


@jit
def residuals_of_many(evaluate, ints, floats, q, count, out, work):
    """out ← f of every row of q."""
    size = q.size // count
    rows = out.size // count
    for k in range(count):
        mine = cut(pointer(q), k * size, size)
        found = cut(pointer(out), k * rows, rows)
        call_evaluator(evaluate, RESIDUAL, pointer(ints), pointer(floats), mine, mine, found, mine, pointer(work))
    return count


@jit
def update_angles_of_many(evaluate, ints, floats, first, q, count, moved, zeros, work):
    """:func:`update_angles` in every row of q."""
    size = q.size // count
    for k in range(count):
        update_angles(evaluate, ints, floats, first, size, q[k * size : (k + 1) * size], moved, zeros, work)
    return count
