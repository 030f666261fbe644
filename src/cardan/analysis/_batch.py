"""Assembly from many starts in one jitted call: the attempts of :mod:`cardan.analysis.assemble`, in the same order.

Solvers and draws are called by address, so that the machine code is that of a single assembly and the iterates agree to
the last bit.  The kernel returns when it has used its allowance of iterations, and goes on where it was at the next
call: that is how Ctrl-C and the clock get their turn, however large the system.
"""

from math import pi

from cardan._jit import call_evaluator, call_kernel, inner, jit
from cardan.analysis._judging import update_verdict_at
from cardan.analysis._winding import count_whole_turns, update_angles_of_poses
from cardan.solvers._blocks import largest, scaled_cost
from cardan.solvers.abi import (
    BROKEN,
    CHUNK,
    CONVERGED,
    COORDINATES,
    COST,
    DAMPING,
    ENTER,
    GROWTH,
    INVERSE,
    ITERATIONS,
    KEEP_ROWS,
    LEAVE,
    LEVENBERG_MARQUARDT,
    LU_FIRST,
    MARK_COST,
    MARK_ITERATION,
    NEWTON,
    NEWTON_LU,
    NO_SOLVER,
    RESIDUAL,
    RESIDUAL_MAX,
    REUSE,
    RUNNING,
    SINGULAR,
    STATUS,
    STEP_GAIN,
    TOLERANCE,
    TRUNCATION,
)
from cardan.system.layout import POSE

# addresses
EVALUATE = 0
LINEAR = 1
POSES = 2  # the evaluator of the manifold formulation, which takes any poses, and judges
SOLVERS = 3  # of the solver of that number
NEAR_DRAW = 7
ANYWHERE_DRAW = 8
ADDRESSES = 9

# options
IS_AUTO = 0
SOLVER = 1
THEN = 2  # the solver that follows, or NO_SOLVER
MOST = 3  # iterations of an attempt
MOST_FIRST = 4  # iterations of the solver before the other
FIRST_TOLERANCE = 5  # what the solver before the other aims at, if that is more
EACH = 6  # iterations between two looks at the allowance
ALLOWANCE = 7  # iterations in one call
RESTARTS = 8
NEAR = 9
SADDLE_ITERATIONS = 10
DISTURBANCE = 11
SAME_COST = 12
CONFLICT_SHARE = 13
CONFLICT_ENOUGH = 14
LENGTH = 15
REACH = 16
OPTION_DAMPING = 17
OPTION_GAIN = 18
IS_DENSE = 19
OPTION_SINGULAR = 20
OPTION_TRUNCATION = 21
PROJECTS = 22  # unknowns cannot hold every pose: poses are entered into coordinates of their own, and left
GETTING_ON = 23
MOST_STAGED = 24  # rad that a driven angle is led through
OPTIONS = 25

# what is remembered between calls
START = 0  # number of the start
STAGE = 1
ATTEMPTS = 2
USED = 3  # iterations of all attempts
LEFT = 4  # iterations of this solver
BEFORE = 5  # iterations of the solver before it in this attempt
BEST_COST = 6
BEST_OUTCOME = 7
BEST_RESIDUAL = 8
IS_OTHER = 9  # lengths are measured in the other length
IS_LATE = 10  # time is up
FOUND = 11  # residual and bound of the last judgement
BOUND = 12
COST_BEFORE = 13  # of the attempt before, and of the start before the first
MEMO = 14

NEW, FIRST, SECOND = 0, 1, 2
PLACES = 7  # room for so many q that the kernel needs; coordinates of no formulation are more than those
ASIDE = -1  # outcome of a start whose drivers must be led through turns, each an assembly: it is left to the caller


@inner
def set_control(options, tolerance, control):
    """The control vector as a solver wants it at the beginning of a run."""
    control[STATUS] = RUNNING
    control[ITERATIONS] = 0.0
    control[TOLERANCE] = tolerance
    control[DAMPING] = options[OPTION_DAMPING]
    control[GROWTH] = 2.0
    control[REUSE] = 0.0
    control[STEP_GAIN] = options[OPTION_GAIN]
    control[MARK_COST] = 0.0
    control[MARK_ITERATION] = 0.0
    control[INVERSE] = LU_FIRST
    control[KEEP_ROWS] = 1.0
    control[SINGULAR] = options[OPTION_SINGULAR]
    control[TRUNCATION] = options[OPTION_TRUNCATION]


@inner
def run_chunk(solver, addresses, ints, floats, structure, scales, pattern, options, q, control, work, pivots):
    """Some iterations of a solver."""
    dense = options[IS_DENSE] != 0.0
    evaluate = addresses[EVALUATE]
    linear = addresses[LINEAR]
    at = addresses[SOLVERS + solver]
    if solver == LEVENBERG_MARQUARDT:
        call_kernel(at, (evaluate, ints, floats, structure, scales, linear, pattern, q, control, work))
    elif solver == NEWTON:
        call_kernel(at, (evaluate, ints, floats, structure, scales, linear, pattern, dense, q, control, work, pivots))
    elif solver == NEWTON_LU:
        call_kernel(at, (evaluate, ints, floats, structure, scales, q, control, work, pivots))
    else:
        call_kernel(at, (evaluate, ints, floats, structure, scales, q, control, work))


@inner
def measure(evaluate, ints, floats, structure, scales, q, zeros, rows, work):
    """rows ← scaled residuals at q; returns ½|r|²."""
    call_evaluator(evaluate, RESIDUAL, ints, floats, q, zeros, rows, zeros, work)
    return scaled_cost(structure, scales, rows)


@inner
def largest_miss(drivers, rows):
    """How far the driven angle that is farthest from what it is asked for is from it [rad]."""
    result = 0.0
    for i in range(drivers.size):
        result = max(result, abs(rows[drivers[i]]))
    return result


@inner
def copy(source, target):
    """target ← source."""
    for i in range(target.size):
        target[i] = source[i]


@jit
def solve_many(
    addresses,
    ints,
    floats,
    structure,
    scales,
    other_scales,
    pattern,
    whole_ints,
    whole_floats,
    whole_structure,
    whole_scales,
    asking,
    drivers,
    judged_ints,
    judged_floats,
    powers,
    reference_points,
    origin,
    bounds,
    seeds,
    authored,
    center,
    options,
    target,
    starts,
    last,
    memo,
    control,
    costs,
    zeros,
    places,
    rows,
    work,
    pivots,
    ends,
    outcomes,
    residuals,
    attempts,
    iterations,
    conflicts,
    moved,
):
    """Solve from the starts memo[START] … last − 1; returns 1 where the allowance ended before them, else 0.

    whole_*: the problem on the manifold, of any poses, in the same length.  asking, drivers: rows that ask for turns.
    starts: solver coordinates, one row per start.  places: room for PLACES q.
    ends ← solver coordinates where each start ended; outcomes and residuals ← those of the run that ended there.
    """
    size = ends.size // outcomes.size
    bodies = reference_points.size // 3
    turns = size - POSE * bodies
    is_auto = options[IS_AUTO] != 0.0
    projects = options[PROJECTS] != 0.0
    has_second = options[THEN] != NO_SOLVER
    most = options[MOST]
    q = places[:size]
    best = places[size : 2 * size]
    poses = places[2 * size : 3 * size]
    spare = places[3 * size : 4 * size]
    first = places[4 * size : 5 * size]  # the start, with the turns it asks for
    before = places[5 * size : 6 * size]
    x = places[6 * size : 6 * size + structure[COORDINATES]] if projects else q
    manifold = addresses[POSES]
    spent = 0.0
    while memo[START] < last:
        k = int(memo[START])
        ended = False
        conflict = False
        outcome = CONVERGED
        is_drawn = False
        if memo[STAGE] == NEW:
            memo[ATTEMPTS] = 0.0
            memo[USED] = 0.0
            memo[IS_OTHER] = 0.0
            moved[k] = 1
            copy(starts[k * size : (k + 1) * size], q)
            is_drawn = True
            if projects:  # what is met at the start is left alone
                measure(manifold, whole_ints, whole_floats, whole_structure, whole_scales, q, zeros, rows, work)
                control[RESIDUAL_MAX] = largest(whole_structure, rows)
                if control[RESIDUAL_MAX] <= target:
                    memo[ATTEMPTS] = 1.0
                    moved[k] = 0
                    ended = True
        else:
            solver = int(options[SOLVER]) if memo[STAGE] == FIRST else int(options[THEN])
            scaled = other_scales if memo[IS_OTHER] != 0.0 else scales
            control[CHUNK] = min(options[EACH], memo[LEFT])
            done = control[ITERATIONS]
            run_chunk(solver, addresses, ints, floats, structure, scaled, pattern, options, x, control, work, pivots)
            done = control[ITERATIONS] - done
            memo[LEFT] -= done
            spent += done + 1.0
            late = memo[IS_LATE] != 0.0
            if control[STATUS] == RUNNING and memo[LEFT] > 0.0 and not late:
                if spent >= options[ALLOWANCE]:
                    return 1
                continue
            left = most - control[ITERATIONS]
            if memo[STAGE] == FIRST and has_second and control[STATUS] != BROKEN and left > 0.0 and not late:
                memo[BEFORE] = control[ITERATIONS]
                memo[LEFT] = left
                memo[STAGE] = SECOND
                set_control(options, target, control)
                continue
            # an attempt has ended
            if projects:
                call_evaluator(addresses[EVALUATE], LEAVE, ints, floats, x, zeros, q, zeros, work)
            taken = memo[BEFORE] + control[ITERATIONS]
            memo[USED] += taken
            memo[ATTEMPTS] += 1.0
            outcome = control[STATUS]
            ended = not is_auto or outcome == CONVERGED
            if not ended and control[RESIDUAL_MAX] <= options[NEAR]:
                update_verdict_at(
                    manifold,
                    judged_ints,
                    judged_floats,
                    powers,
                    reference_points,
                    origin,
                    bounds,
                    zeros,
                    q,
                    poses,
                    spare,
                    before,
                    rows,
                    work,
                    memo[FOUND:],
                )
                ended = memo[FOUND] <= memo[BOUND]
            if not ended:
                if memo[IS_OTHER] != 0.0:  # costs are compared in one measure
                    if projects:
                        call_evaluator(addresses[EVALUATE], ENTER, ints, floats, q, zeros, x, zeros, work)
                    own = (ints, floats, structure, scales)
                    control[COST] = measure(addresses[EVALUATE], *own, x, zeros, rows, work)
                    control[RESIDUAL_MAX] = largest(structure, rows)
                    memo[IS_OTHER] = 0.0
                tried = int(memo[ATTEMPTS])
                cost = control[COST]
                if tried == 1 or cost < memo[BEST_COST]:
                    memo[BEST_COST] = cost
                    memo[BEST_OUTCOME] = outcome
                    memo[BEST_RESIDUAL] = control[RESIDUAL_MAX]
                    copy(q, best)
                costs[tried - 1] = cost
                same = 0
                for i in range(tried):
                    if costs[i] <= memo[BEST_COST] * (1.0 + options[SAME_COST]):
                        same += 1
                enough = options[CONFLICT_ENOUGH]
                if (same == tried and same == enough) or late or tried > options[RESTARTS]:
                    conflict = same >= enough and same >= options[CONFLICT_SHARE] * tried and not late
                    if conflict and drivers.size > 0:  # not where all attempts ended short of the turns to make
                        call_evaluator(manifold, RESIDUAL, whole_ints, whole_floats, first, zeros, rows, zeros, work)
                        conflict = not largest_miss(drivers, rows) > options[MOST_STAGED]
                    ended = True
                    outcome = memo[BEST_OUTCOME]
                    control[RESIDUAL_MAX] = memo[BEST_RESIDUAL]
                    copy(best, q)
                else:
                    if turns > 0 and tried == 1:
                        copy(first, spare)
                        if projects:
                            call_evaluator(addresses[EVALUATE], ENTER, ints, floats, first, zeros, spare, zeros, work)
                        own = (ints, floats, structure, scales)
                        memo[COST_BEFORE] = measure(addresses[EVALUATE], *own, spare, zeros, rows, work)
                    if turns > 0 and outcome == RUNNING and cost < options[GETTING_ON] * memo[COST_BEFORE]:
                        pass  # it makes turns, a radian at a time: it goes on from where it is
                    elif tried == 1 and outcome == RUNNING:
                        memo[IS_OTHER] = 1.0
                        copy(first, q)
                    elif tried == 1 and taken <= options[SADDLE_ITERATIONS]:
                        copy(first, q)
                        draw = addresses[NEAR_DRAW]
                        call_kernel(draw, (bodies, seeds, tried, first, options[DISTURBANCE], options[LENGTH], q))
                        is_drawn = True
                    else:
                        copy(authored, spare)
                        for i in range(POSE * bodies, size):
                            spare[i] = first[i]
                        if turns > 0:
                            begin = POSE * bodies
                            tables = (whole_ints, whole_floats)
                            update_angles_of_poses(manifold, *tables, begin, spare, before, zeros, work)
                        draw = addresses[ANYWHERE_DRAW]
                        reach = options[REACH] * options[LENGTH]
                        call_kernel(draw, (bodies, seeds, tried, spare, center, reach, q))
                        is_drawn = True
                    if is_drawn and turns > 0:
                        tables = (whole_ints, whole_floats)
                        update_angles_of_poses(manifold, *tables, POSE * bodies, q, before, zeros, work)
                    memo[COST_BEFORE] = cost
        if not ended:
            if is_drawn and turns > 0:
                begin = POSE * bodies
                tables = (whole_ints, whole_floats, whole_scales, asking)
                count_whole_turns(manifold, *tables, begin, q, spare, before, zeros, rows, work)
                if is_auto and drivers.size > 0:
                    call_evaluator(manifold, RESIDUAL, whole_ints, whole_floats, q, zeros, rows, zeros, work)
                    short = largest_miss(drivers, rows)
                    if short > pi and short <= options[MOST_STAGED]:
                        outcomes[k] = ASIDE
                        moved[k] = 0
                        memo[START] += 1.0
                        memo[STAGE] = NEW
                        continue
            if memo[STAGE] == NEW:
                copy(q, first)
            if projects:
                call_evaluator(addresses[EVALUATE], ENTER, ints, floats, q, zeros, x, zeros, work)
            memo[BEFORE] = 0.0
            memo[LEFT] = most
            memo[STAGE] = FIRST
            set_control(options, target, control)
            if has_second:
                control[TOLERANCE] = max(target, options[FIRST_TOLERANCE])
                memo[LEFT] = min(most, options[MOST_FIRST])
            continue
        outcomes[k] = int(outcome)
        residuals[k] = control[RESIDUAL_MAX]
        attempts[k] = int(memo[ATTEMPTS])
        iterations[k] = int(memo[USED])
        conflicts[k] = 1 if conflict else 0
        if not projects:
            moved[k] = 1 if memo[USED] > 0.0 else 0
        copy(q, ends[k * size : (k + 1) * size])
        memo[START] += 1.0
        memo[STAGE] = NEW
        if spent >= options[ALLOWANCE]:
            return 1
    return 0
