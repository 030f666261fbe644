"""The verdict in kernels: of a run under way, and of many poses at once."""

from cardan._jit import call_evaluator, inner, jit
from cardan.analysis._winding import update_angles_of_poses
from cardan.coordinates._verdict import judge
from cardan.solvers.abi import RESIDUAL
from cardan.system._tables import shift_reference
from cardan.system.layout import ANGLES, BODIES, POSE

# what a verdict is held to
TOLERANCE = 0
ROUNDING = 1
ROUNDING_MOST = 2
LENGTH = 3  # lengths are measured in it
BOUNDS = 4


@inner
def update_verdict(judged, ints, floats, powers, points, origin, bounds, zeros, poses, q, rows, work, out):
    """out ← the residual in sharp form that is largest for what it may be, and that bound.

    poses: r, p of the bodies' origins, then the angles of turns; q: the same in solver coordinates.  An angle is taken
    from the poses; of the one behind them only the whole turns count.
    """
    last = POSE * ints[BODIES]
    call_evaluator(judged, RESIDUAL, ints, floats, q, zeros, rows, zeros, work)
    judge(
        rows[: powers.size],
        powers,
        poses[:last],
        poses[last:],
        points,
        origin,
        bounds[LENGTH],
        bounds[TOLERANCE],
        bounds[ROUNDING],
        bounds[ROUNDING_MOST],
        out,
    )


@inner
def update_verdict_at(
    judged, ints, floats, powers, points, origin, bounds, zeros, q, poses, again, room, rows, work, out
):
    """out ← the verdict on the poses that would be returned from solver coordinates q: quaternions of length one.

    poses, again, room: each for a q.
    """
    for i in range(q.size):
        poses[i] = q[i]
    shift_reference(ints[BODIES], points, origin, -1.0, poses)
    for i in range(q.size):
        again[i] = poses[i]
    shift_reference(ints[BODIES], points, origin, 1.0, again)
    if ints[ANGLES] > 0:
        update_angles_of_poses(judged, ints, floats, POSE * ints[BODIES], again, room, zeros, work)
    update_verdict(judged, ints, floats, powers, points, origin, bounds, zeros, poses, again, rows, work, out)


@jit
def judge_many(judged, ints, floats, powers, points, origin, bounds, count, zeros, poses, shifted, rows, work, out):
    """out ← residual and bound of every start, two floats each, from its poses and the same in solver coordinates."""
    size = poses.size // count
    for k in range(count):
        mine = poses[k * size : (k + 1) * size]
        q = shifted[k * size : (k + 1) * size]
        update_verdict(judged, ints, floats, powers, points, origin, bounds, zeros, mine, q, rows, work, out[2 * k :])
    return count

