"""Assembly from many starts in one jitted call: the attempts of :mod:`cardan.analysis.assemble`, in the same order.

Solvers and draws are called by address, so that the machine code is that of a single assembly and the iterates agree to
the last bit.  The kernel returns when it has used its allowance of iterations, and goes on where it was at the next
call: that is how Ctrl-C and the clock get their turn, however large the system.
"""

from cardan._jit import call_evaluator, call_kernel, inner, jit
from cardan.analysis._judging import update_verdict_at
from cardan.solvers._blocks import half_square, largest
from cardan.solvers.abi import (
    BROKEN,
    CHUNK,
    CONVERGED,
    COORDINATES,
    COST,
    DAMPING,
    GROWTH,
    HELD,
    INVERSE,
    ITERATIONS,
    KEEP_ROWS,
    LU_FIRST,
    MARK_COST,
    MARK_ITERATION,
    RESIDUAL,
    RESIDUAL_MAX,
    ROWS,
    RUNNING,
    SINGULAR,
    STATUS,
    STEP_GAIN,
    TOLERANCE,
    TRUNCATION,
)

# solvers, by number
LEVENBERG_MARQUARDT = 0
NEWTON = 1
NEWTON_LU = 2
GRADIENT = 3

# addresses
EVALUATE = 0
LINEAR = 1
JUDGED = 2  # the evaluator of the manifold formulation, that judges
SOLVERS = 3  # of the solver of that number
NEAR_DRAW = 7
ANYWHERE_DRAW = 8
ADDRESSES = 9

# options
IS_AUTO = 0
SOLVER = 1
THEN = 2  # the solver that follows, or −1
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
OPTIONS = 22

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
MEMO = 13

NEW, FIRST, SECOND = 0, 1, 2


@inner
def set_control(options, tolerance, control):
    """The control vector as a solver wants it at the beginning of a run."""
    control[STATUS] = RUNNING
    control[ITERATIONS] = 0.0
    control[TOLERANCE] = tolerance
    control[DAMPING] = options[OPTION_DAMPING]
    control[GROWTH] = 2.0
    control[HELD] = 0.0
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


@jit
def solve_many(
    addresses,
    ints,
    floats,
    structure,
    scales,
    other_scales,
    pattern,
    judged_ints,
    judged_floats,
    powers,
    centers,
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
):
    """Solve from the starts memo[START] … last − 1; returns 1 where the allowance ended before them, else 0.

    starts: solver coordinates, one row per start, with no angles of turns behind them.  places: room for four q.
    ends ← solver coordinates where each start ended; outcomes and residuals ← those of the run that ended there.
    """
    size = structure[COORDINATES]
    is_auto = options[IS_AUTO] != 0.0
    most = options[MOST]
    q = places[:size]
    best = places[size : 2 * size]
    poses = places[2 * size : 3 * size]
    spare = places[3 * size : 4 * size]
    spent = 0.0
    while memo[START] < last:
        k = int(memo[START])
        begin = starts[k * size : (k + 1) * size]
        if memo[STAGE] == NEW:
            memo[ATTEMPTS] = 0.0
            memo[USED] = 0.0
            memo[IS_OTHER] = 0.0
            memo[BEFORE] = 0.0
            memo[LEFT] = most
            memo[STAGE] = FIRST
            set_control(options, target, control)
            if options[THEN] >= 0.0:
                control[TOLERANCE] = max(target, options[FIRST_TOLERANCE])
                memo[LEFT] = min(most, options[MOST_FIRST])
            for i in range(size):
                q[i] = begin[i]
        solver = int(options[SOLVER]) if memo[STAGE] == FIRST else int(options[THEN])
        measure = other_scales if memo[IS_OTHER] != 0.0 else scales
        control[CHUNK] = min(options[EACH], memo[LEFT])
        done = control[ITERATIONS]
        run_chunk(solver, addresses, ints, floats, structure, measure, pattern, options, q, control, work, pivots)
        done = control[ITERATIONS] - done
        memo[LEFT] -= done
        spent += done + 1.0
        late = memo[IS_LATE] != 0.0
        if control[STATUS] == RUNNING and memo[LEFT] > 0.0 and not late:
            if spent >= options[ALLOWANCE]:
                return 1
            continue
        left = most - control[ITERATIONS]
        if memo[STAGE] == FIRST and options[THEN] >= 0.0 and control[STATUS] != BROKEN and left > 0.0 and not late:
            memo[BEFORE] = control[ITERATIONS]
            memo[LEFT] = left
            memo[STAGE] = SECOND
            set_control(options, target, control)
            continue
        # an attempt has ended
        taken = memo[BEFORE] + control[ITERATIONS]
        memo[USED] += taken
        memo[ATTEMPTS] += 1.0
        outcome = control[STATUS]
        ended = not is_auto or outcome == CONVERGED
        if not ended and control[RESIDUAL_MAX] <= options[NEAR]:
            update_verdict_at(
                addresses[JUDGED],
                judged_ints,
                judged_floats,
                powers,
                centers,
                origin,
                bounds,
                zeros,
                q,
                poses,
                spare,
                rows,
                work,
                memo[FOUND:],
            )
            ended = memo[FOUND] <= memo[BOUND]
        conflict = False
        if not ended:
            if memo[IS_OTHER] != 0.0:  # costs are compared in one measure
                call_evaluator(addresses[EVALUATE], RESIDUAL, ints, floats, q, zeros, rows, zeros, work)
                for i in range(structure[ROWS]):
                    rows[i] *= scales[i]
                control[COST] = half_square(structure, rows)
                control[RESIDUAL_MAX] = largest(structure, rows)
                memo[IS_OTHER] = 0.0
            tried = int(memo[ATTEMPTS])
            cost = control[COST]
            if tried == 1 or cost < memo[BEST_COST]:
                memo[BEST_COST] = cost
                memo[BEST_OUTCOME] = outcome
                memo[BEST_RESIDUAL] = control[RESIDUAL_MAX]
                for i in range(size):
                    best[i] = q[i]
            costs[tried - 1] = cost
            same = 0
            for i in range(tried):
                if costs[i] <= memo[BEST_COST] * (1.0 + options[SAME_COST]):
                    same += 1
            enough = options[CONFLICT_ENOUGH]
            if (same == tried and same == enough) or late or tried > options[RESTARTS]:
                conflict = same >= enough and same >= options[CONFLICT_SHARE] * tried and not late
                ended = True
                outcome = memo[BEST_OUTCOME]
                control[RESIDUAL_MAX] = memo[BEST_RESIDUAL]
                for i in range(size):
                    q[i] = best[i]
            else:
                if tried == 1 and outcome == RUNNING:
                    memo[IS_OTHER] = 1.0
                    for i in range(size):
                        q[i] = begin[i]
                elif tried == 1 and taken <= options[SADDLE_ITERATIONS]:
                    for i in range(size):
                        q[i] = begin[i]
                    near = addresses[NEAR_DRAW]
                    call_kernel(near, (seeds, tried, begin, options[DISTURBANCE], options[LENGTH], q))
                else:
                    anywhere = addresses[ANYWHERE_DRAW]
                    call_kernel(anywhere, (seeds, tried, authored, center, options[REACH] * options[LENGTH], q))
                memo[BEFORE] = 0.0
                memo[LEFT] = most
                set_control(options, target, control)
        if ended:
            outcomes[k] = int(outcome)
            residuals[k] = control[RESIDUAL_MAX]
            attempts[k] = int(memo[ATTEMPTS])
            iterations[k] = int(memo[USED])
            conflicts[k] = 1 if conflict else 0
            for i in range(size):
                ends[k * size + i] = q[i]
            memo[START] += 1.0
            memo[STAGE] = NEW
        if spent >= options[ALLOWANCE]:
            return 1
    return 0
