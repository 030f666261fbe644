"""The spring step with a look at the verdict after every iteration: the first pose that meets the tolerance ends it."""

from cardan._jit import call_kernel, jit
from cardan.analysis._judging import update_verdict_at
from cardan.solvers.abi import CHUNK, ITERATIONS, RUNNING, STATUS

# how a call ended
UNDER_WAY = 0  # its allowance is used up
MET = 1
ENDED = 2  # stalled, broken, or out of iterations


@jit
def descend(
    solver,
    evaluate,
    ints,
    floats,
    structure,
    scales,
    judged,
    judged_ints,
    judged_floats,
    powers,
    reference_points,
    origin,
    bounds,
    most,
    allowance,
    control,
    zeros,
    q,
    places,
    rows,
    work,
    judged_work,
    found,
):
    """Go on from q in place: up to control[ITERATIONS] = most, or for ``allowance`` iterations.

    solver: address of the gradient kernel, which keeps something in its work from call to call.  places: room for three
    q.  found ← residual and bound of the verdict on q.
    """
    size = q.size
    for _ in range(allowance + 1):
        update_verdict_at(
            judged,
            judged_ints,
            judged_floats,
            powers,
            reference_points,
            origin,
            bounds,
            zeros,
            q,
            places[:size],
            places[size : 2 * size],
            places[2 * size :],
            rows,
            judged_work,
            found,
        )
        if found[0] <= found[1]:
            return MET
        if control[STATUS] != RUNNING or control[ITERATIONS] >= most:
            return ENDED
        control[CHUNK] = 1.0
        call_kernel(solver, (evaluate, ints, floats, structure, scales, q, control, work))
    return UNDER_WAY
