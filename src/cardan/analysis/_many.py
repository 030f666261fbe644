"""Attempts from many starts in one jitted call: the attempts of :mod:`cardan.analysis.attempts`, in the same order.

Solvers and draws are called by address.  So the machine code is that of a single assembly, and the iterates agree
bitwise; the same policy chooses the next attempt.  The kernel returns after a given number of iterations (ALLOWANCE)
and continues in the next call, so that the caller can handle Ctrl-C and check the deadline for systems of any size.

Reads the table of addresses and sizes (T_…), the options and the starts.  Writes the memo, workspace and results.
"""

from math import pi

from cardan.analysis import _policy as policy
from cardan.analysis._draws import ANYWHERE, APART, ATTEMPT, BETWEEN, CENTER, LENGTH, NEAR, REACH, SHARE, SIZE, SOME
from cardan.analysis._whole_turns import count_turns
from cardan.coordinates._judging import judge_at, update_angles
from cardan.kernel.jit import inner, jit, plain
from cardan.kernel.memory import call_evaluator, cut, floats_at, integers_at, pointer
from cardan.solvers._blocks import largest, scaled_cost
from cardan.solvers._job import evaluate
from cardan.solvers.tables import BROKEN, CONVERGED, ENTER, LEAVE, RESIDUAL, RUNNING, Control, JobTable
from cardan.system.layout import POSE

# table: addresses
T_JOB = 0  # first solver of an attempt; its initial control vector and its workspace follow
T_BEGIN = 1
T_WORK = 2
T_SECOND_JOB = 3  # the same for the second solver; 0 if there is none
T_SECOND_BEGIN = 4
T_SECOND_WORK = 5
T_OTHER_JOB = 6  # the first solver with lengths in the other unit; 0 if it is never used
T_WHOLE = 7  # the problem on the manifold, which accepts any poses, in the same unit of length
T_JUDGE = 8
T_BOUNDS = 9
T_JUDGE_WORK = 10
T_TURN_ROWS = 11  # rows that determine whole turns
T_DRIVERS = 12  # rows of drivers of angles
T_DRAW = 13  # the kernel of the random draws, and its table
T_DRAW_TABLE = 14
T_AUTHORED = 15
T_STARTS = 16  # solver coordinates, one row per start
T_ENDS = 17  # solver coordinates at the end, one row per start
T_RESULTS = 18
FIRST_PLACES = (T_JOB, T_BEGIN, T_WORK)
SECOND_PLACES = (T_SECOND_JOB, T_SECOND_BEGIN, T_SECOND_WORK)
# sizes
T_SIZE = 19  # number of solver coordinates
T_BODIES = 20
T_ANGLES = 21
T_CONTROL = 22
T_DRIVER_COUNT = 23
T_VARIABLES = 24
T_PIECES = 25  # offsets of the pieces of the workspace, and its end

# pieces of the workspace
Q, BEST, SPARE, FIRST, BEFORE, X, ROWS, CONTROL, DRAWN, VERDICT, ZEROS, EVALUATION, COSTS = map(plain, range(13))

# options
IS_AUTO = 0
MOST = 1  # iterations of an attempt, at most
MOST_FIRST = 2  # iterations of the first of two solvers, at most
FIRST_RESIDUAL = 3  # residual at which the first of two solvers stops, if above TARGET
EACH = 4  # iterations between two checks of ALLOWANCE
ALLOWANCE = 5  # iterations in one call, at most
RESTARTS = 6
NEAR_RESIDUAL = 7  # below it, the verdict is computed
DISTURBANCE = 8
UNIT = 9  # [m] unit of length
MOST_REACH = 10  # [m] largest distance of a drawn position from MIDDLE, along each axis
PROJECTS = 11  # the formulation cannot represent every pose, so poses are projected onto its coordinates
MOST_STAGED = 12  # [rad] a driven angle is moved this far in stages, at most
TARGET = 13  # scaled residual at which an attempt stops
MIDDLE = 14  # [m] centre of the draws, three floats
CLOSE_REACH = 17  # [m] the same as MOST_REACH, for close draws
MAY_END_EARLY = 18
IS_PROVED = 19  # whether it is proved that no pose satisfies the constraints; negative if that is not known yet
OPTIONS = 20

# memo between calls: the fields of the policy, then
START = policy.POLICY + 0  # number of the start
STAGE = policy.POLICY + 1
USED = policy.POLICY + 2  # iterations of all attempts
LEFT = policy.POLICY + 3  # iterations left for this solver
EARLIER = policy.POLICY + 4  # iterations of the previous solver in this attempt
BEST_OUTCOME = policy.POLICY + 5
BEST_RESIDUAL = policy.POLICY + 6
IS_OTHER = policy.POLICY + 7  # lengths are measured in the other unit
MOVED = policy.POLICY + 8  # whether the start was moved
IS_WAITING = policy.POLICY + 9  # 1 if the attempt has ended, and the kernel has returned to know IS_PROVED; else 0
MEMO = policy.POLICY + 10

NEW, FIRST_SOLVER, SECOND_SOLVER = 0, 1, 2  # values of STAGE

# result of a start
R_OUTCOME, R_RESIDUAL, R_ATTEMPTS, R_ITERATIONS, R_CONFLICT, R_MOVED, RESULT = range(7)

NEEDS_CALLER = -1  # outcome of a start that the caller solves: drivers are moved in stages, or it nearly fits
MET = -1  # in addition to the actions of the policy: the attempt has met the tolerance

DONE, MORE, ASKS = 0, 1, 2  # results of solve_many


@inner
def piece(table, number, work):
    """A piece of the workspace."""
    at = table[T_PIECES + number]
    return cut(work, at, table[T_PIECES + number + 1] - at)


@inner
def copy(size, source, target):
    """target ← source."""
    for i in range(size):
        target[i] = source[i]


@inner
def measure(job, x, rows, work):
    """rows ← scaled residuals at x; returns ½|r|²."""
    evaluate(job, RESIDUAL, x, x, rows, rows, work)
    return scaled_cost(job.structure, job.scales, rows)


@inner
def enter(table, options, q, work):
    """X ← the formulation's own coordinates of the poses q."""
    x = piece(table, X, work)
    if options[PROJECTS] != 0.0:
        evaluate(JobTable(integers_at(table[T_JOB])), ENTER, q, q, x, x, piece(table, EVALUATION, work))
    else:
        copy(table[T_SIZE], q, x)
    return x


@inner
def begin_solver(begin, tolerance, control, size):
    """control ← its values at the beginning of a run."""
    copy(size, begin, control.as_floats)
    control.tolerance = tolerance


@inner
def largest_error(table, q, work):
    """Largest deviation of a driven angle from the value of its driver [rad]."""
    rows = piece(table, ROWS, work)
    evaluate(JobTable(integers_at(table[T_WHOLE])), RESIDUAL, q, q, rows, rows, piece(table, EVALUATION, work))
    drivers = integers_at(table[T_DRIVERS])
    result = 0.0
    for i in range(table[T_DRIVER_COUNT]):
        result = max(result, abs(rows[drivers[i]]))
    return result


@inner
def update_own_angles(table, q, work):
    """Counted angles in q ← the angles of its poses, within half a turn of their previous values."""
    whole = JobTable(integers_at(table[T_WHOLE]))
    update_angles(
        whole.evaluator,
        whole.ints,
        whole.floats,
        POSE * table[T_BODIES] + table[T_VARIABLES],
        table[T_SIZE],
        q,
        piece(table, BEFORE, work),
        piece(table, ZEROS, work),
        piece(table, EVALUATION, work),
    )


@inner
def begin_start(table, options, memo, work):
    """q ← the next start; returns whether it is met already, checked only if the formulation projects poses."""
    k = int(memo[START])
    size = table[T_SIZE]
    q = piece(table, Q, work)
    memo[policy.ATTEMPTS] = 0.0
    memo[USED] = 0.0
    memo[IS_OTHER] = 0.0
    memo[MOVED] = 1.0
    memo[policy.WAY] = 0.0
    memo[policy.ACTION] = policy.END
    memo[policy.BASE] = policy.END
    memo[policy.DRAWS] = 0.0
    memo[policy.COUNTED] = 0.0
    memo[policy.WORK] = 0.0
    memo[policy.IS_TILTED] = 0.0
    copy(size, cut(floats_at(table[T_STARTS]), k * size, size), q)
    if options[PROJECTS] == 0.0:
        return False
    whole = JobTable(integers_at(table[T_WHOLE]))
    rows = piece(table, ROWS, work)
    control = Control(piece(table, CONTROL, work))
    measure(whole, q, rows, piece(table, EVALUATION, work))
    control.residual_max = largest(whole.structure, rows)
    control.status = CONVERGED
    if not control.residual_max <= options[TARGET]:
        return False
    memo[policy.ATTEMPTS] = 1.0
    memo[MOVED] = 0.0
    return True


@inner
def begin_attempt(table, options, memo, work):
    """Begin an attempt from q."""
    if memo[STAGE] == NEW:
        copy(table[T_SIZE], piece(table, Q, work), piece(table, FIRST, work))
    enter(table, options, piece(table, Q, work), work)
    tolerance = options[TARGET]
    memo[EARLIER] = 0.0
    memo[LEFT] = options[MOST]
    memo[STAGE] = FIRST_SOLVER
    if table[T_SECOND_JOB] != 0:
        tolerance = max(tolerance, options[FIRST_RESIDUAL])
        memo[LEFT] = min(options[MOST], options[MOST_FIRST])
    begin_solver(floats_at(table[T_BEGIN]), tolerance, Control(piece(table, CONTROL, work)), table[T_CONTROL])


@inner
def run_chunk(table, options, memo, work):
    """Run some iterations of the current solver; returns their number."""
    control = Control(piece(table, CONTROL, work))
    address = table[T_OTHER_JOB] if memo[IS_OTHER] != 0.0 else table[T_JOB]
    own_work = table[T_WORK]
    if memo[STAGE] == SECOND_SOLVER:
        address = table[T_SECOND_JOB]
        own_work = table[T_SECOND_WORK]
    job = JobTable(integers_at(address))
    control.chunk = min(options[EACH], memo[LEFT])
    before = control.iterations
    x = piece(table, X, work)
    call_evaluator(job.solver, 0, job.as_ints, control.as_floats, x, x, x, x, floats_at(own_work))
    done = control.iterations - before
    memo[LEFT] -= done
    return done


@inner
def has_attempt_ended(table, options, memo, work):
    """Whether the attempt has ended; if a second solver follows, that one begins instead."""
    control = Control(piece(table, CONTROL, work))
    late = memo[policy.IS_LATE] != 0.0
    if control.status == RUNNING and memo[LEFT] > 0.0 and not late:
        return False
    left = options[MOST] - control.iterations
    follows = memo[STAGE] == FIRST_SOLVER and table[T_SECOND_JOB] != 0
    if not follows or control.status == BROKEN or left <= 0.0 or late:
        return True
    memo[EARLIER] = control.iterations
    memo[LEFT] = left
    memo[STAGE] = SECOND_SOLVER
    begin_solver(floats_at(table[T_SECOND_BEGIN]), options[TARGET], control, table[T_CONTROL])
    return False


@inner
def is_attempt_met(table, options, memo, work):
    """Leave the formulation's coordinates at the end of an attempt; returns whether it has met the tolerance."""
    control = Control(piece(table, CONTROL, work))
    q = piece(table, Q, work)
    x = piece(table, X, work)
    if options[PROJECTS] != 0.0:
        evaluate(JobTable(integers_at(table[T_JOB])), LEAVE, x, x, q, x, piece(table, EVALUATION, work))
    else:
        copy(table[T_SIZE], x, q)
    memo[policy.OUTCOME] = control.status
    memo[policy.TAKEN] = memo[EARLIER] + control.iterations
    memo[policy.COST] = control.cost
    memo[USED] += memo[policy.TAKEN]
    if options[IS_AUTO] == 0.0 or memo[policy.OUTCOME] == CONVERGED:
        return True
    if not control.residual_max <= options[NEAR_RESIDUAL]:
        return False
    found = piece(table, VERDICT, work)
    judged = integers_at(table[T_JUDGE])
    judge_at(judged, floats_at(table[T_BOUNDS]), q, floats_at(table[T_JUDGE_WORK]), found)
    return found[0] <= found[1]


@inner
def keep(table, memo, work):
    """BEST ← the end of the last attempt."""
    memo[BEST_OUTCOME] = memo[policy.OUTCOME]
    memo[BEST_RESIDUAL] = Control(piece(table, CONTROL, work)).residual_max
    copy(table[T_SIZE], piece(table, Q, work), piece(table, BEST, work))


@inner
def choose(table, options, memo, work):
    """The action that the policy chooses after an attempt that has not met the tolerance."""
    job = JobTable(integers_at(table[T_JOB]))
    control = Control(piece(table, CONTROL, work))
    rows = piece(table, ROWS, work)
    evaluation = piece(table, EVALUATION, work)
    is_first = memo[policy.ATTEMPTS] == 1.0 and table[T_ANGLES] > 0
    if memo[IS_OTHER] != 0.0 or is_first:
        x = enter(table, options, piece(table, FIRST, work) if is_first else piece(table, Q, work), work)
        cost = measure(job, x, rows, evaluation)
        if is_first:
            memo[policy.COST_BEFORE] = cost
        else:  # costs are compared in one unit of length
            memo[policy.COST] = cost
            control.residual_max = largest(job.structure, rows)
            memo[IS_OTHER] = 0.0
    memo[policy.RESIDUAL] = control.residual_max
    memo[policy.HAS_ANGLES] = 1.0 if table[T_ANGLES] > 0 else 0.0
    memo[policy.MAY_END_EARLY] = options[MAY_END_EARLY]
    memo[policy.IS_PROVED] = options[IS_PROVED]
    memo[policy.UNKNOWNS] = job.structure.unknowns
    return policy.next_attempt(options[RESTARTS], memo, piece(table, COSTS, work))


@inner
def distance(table, options, q, work):
    """Squared distance of q and the first start."""
    given = piece(table, DRAWN, work)
    found = piece(table, VERDICT, work)
    given[LENGTH] = options[UNIT]
    first = piece(table, FIRST, work)
    call_evaluator(table[T_DRAW], APART, integers_at(table[T_DRAW_TABLE]), given, q, first, found, found, found)
    return found[0]


@inner
def end_attempt(table, options, memo, work):
    """Evaluate an attempt; returns MET or the action that the policy chooses.

    If the pose found is far from the start, attempts on the way back follow, and the action is CONTINUE.
    """
    is_met = False
    if memo[IS_WAITING] == 0.0:
        is_met = is_attempt_met(table, options, memo, work)
    is_late = memo[policy.IS_LATE] != 0.0
    is_on_way = memo[policy.WAY] != 0.0
    action = MET
    is_kept = False
    if not is_on_way:
        memo[policy.ATTEMPTS] += 1.0 - memo[IS_WAITING]
        memo[IS_WAITING] = 0.0
        if not is_met:
            action = choose(table, options, memo, work)
            if action == policy.PROVE:
                memo[IS_WAITING] = 1.0
                return action
            is_kept = memo[policy.IS_BEST] != 0.0
        is_found = action == MET or action == policy.CONFLICT
        if not is_found or is_late or not policy.is_far(memo):
            if is_kept:
                keep(table, memo, work)
            return action
        is_kept = is_kept or is_met
    elif memo[policy.ACTION] == policy.CONFLICT:
        action = policy.CONFLICT
    end = piece(table, Q, work) if is_kept or is_on_way else piece(table, BEST, work)
    apart = distance(table, options, end, work)
    if is_on_way:
        is_kept = policy.is_nearer(memo, is_met, apart)
    else:
        memo[policy.APART] = apart
        memo[policy.WAY] = 1.0
        memo[policy.SHARE] = policy.FIRST_SHARE
    if is_kept:
        keep(table, memo, work)
    return action if memo[policy.SHARE] == 0.0 or is_late else policy.CONTINUE


@inner
def draw(table, options, memo, action, work):
    """q ← the first start or the best pose disturbed, random poses, or poses on the way back to the first start."""
    size = table[T_SIZE]
    first = POSE * table[T_BODIES]
    q = piece(table, Q, work)
    given = piece(table, DRAWN, work)
    source = piece(table, FIRST, work)
    best = piece(table, BEST, work)
    spare = piece(table, SPARE, work)
    other = best
    given[ATTEMPT] = memo[policy.ATTEMPTS]
    op = NEAR
    if memo[policy.WAY] != 0.0:
        op = BETWEEN
        given[SHARE] = memo[policy.SHARE]
        other = source
        source = best
    elif action == policy.TILT or action == policy.DISTURB:
        given[SIZE] = options[DISTURBANCE]
        given[LENGTH] = 0.0 if action == policy.TILT else options[UNIT]
        if action == policy.TILT:
            source = best
    else:
        op = SOME if action == policy.HOP else ANYWHERE
        given[REACH] = options[CLOSE_REACH] if action == policy.RESTART_CLOSE else options[MOST_REACH]
        for i in range(3):
            given[CENTER + i] = options[MIDDLE + i]
        copy(first, floats_at(table[T_AUTHORED]), spare)
        for i in range(first, size):
            spare[i] = source[i]
        if table[T_ANGLES] > 0:
            update_own_angles(table, spare, work)
        source = spare
    call_evaluator(table[T_DRAW], op, integers_at(table[T_DRAW_TABLE]), given, source, other, q, q, q)
    if table[T_ANGLES] > 0:
        update_own_angles(table, q, work)


@inner
def add_turns(table, options, work):
    """Add whole turns to q; returns whether drivers must be moved in stages instead."""
    q = piece(table, Q, work)
    count_turns(
        JobTable(integers_at(table[T_WHOLE])),
        integers_at(table[T_TURN_ROWS]),
        POSE * table[T_BODIES] + table[T_VARIABLES],
        table[T_SIZE],
        q,
        piece(table, SPARE, work),
        piece(table, BEFORE, work),
        piece(table, ROWS, work),
        piece(table, EVALUATION, work),
    )
    if options[IS_AUTO] == 0.0 or table[T_DRIVER_COUNT] == 0:
        return False
    error = largest_error(table, q, work)
    return error > pi and error <= options[MOST_STAGED]


@inner
def is_too_far(table, options, work):
    """Whether the drivers are too many turns away from the first start to be reached in stages."""
    if table[T_DRIVER_COUNT] == 0:
        return False
    return largest_error(table, piece(table, FIRST, work), work) > options[MOST_STAGED]


@inner
def write_result(table, options, memo, action, work):
    """Write the outcome and the final pose of a start."""
    k = int(memo[START])
    size = table[T_SIZE]
    control = Control(piece(table, CONTROL, work))
    result = cut(floats_at(table[T_RESULTS]), RESULT * k, RESULT)
    end = cut(floats_at(table[T_ENDS]), k * size, size)
    is_best = action == policy.END or action == policy.CONFLICT or memo[policy.WAY] != 0.0
    copy(size, piece(table, BEST, work) if is_best else piece(table, Q, work), end)
    result[R_OUTCOME] = memo[BEST_OUTCOME] if is_best else control.status
    result[R_RESIDUAL] = memo[BEST_RESIDUAL] if is_best else control.residual_max
    result[R_ATTEMPTS] = memo[policy.ATTEMPTS]
    result[R_ITERATIONS] = memo[USED]
    result[R_CONFLICT] = 0.0
    if action == policy.CONFLICT:  # none without a proof if a driver is too far away to be reached in stages
        result[R_CONFLICT] = 0.0 if options[IS_PROVED] <= 0.0 and is_too_far(table, options, work) else 1.0
    result[R_MOVED] = memo[MOVED] if options[PROJECTS] != 0.0 or memo[USED] > 0.0 else 0.0


@inner
def is_near_miss(table, options, memo, work):
    """Whether the caller must find out if the data are rounded, so that restarts do not help."""
    if memo[policy.IS_LATE] != 0.0 or memo[policy.WAY] != 0.0:
        return False
    return Control(piece(table, CONTROL, work)).residual_max <= options[NEAR_RESIDUAL]


@jit
def solve_many(table, options, memo, work, last):
    """Solve from the starts memo[START] … last − 1; returns DONE, MORE if the allowance was used up before, or ASKS.

    ASKS: the caller must set IS_PROVED and call again.
    """
    table = pointer(table)
    options = pointer(options)
    memo = pointer(memo)
    work = pointer(work)
    spent = 0.0
    while memo[START] < last:
        action = MET
        is_drawn = False
        ended = False
        needs_caller = False
        if memo[STAGE] == NEW:
            ended = begin_start(table, options, memo, work)
            is_drawn = True
        else:
            if memo[IS_WAITING] == 0.0:
                spent += run_chunk(table, options, memo, work) + 1.0
                if not has_attempt_ended(table, options, memo, work):
                    if spent >= options[ALLOWANCE]:
                        return MORE
                    continue
            action = end_attempt(table, options, memo, work)
            if action == policy.PROVE:
                return ASKS
            ended = action == MET or action == policy.END or action == policy.CONFLICT
            needs_caller = action != MET and is_near_miss(table, options, memo, work)
            if action >= policy.RESTART and memo[policy.WAY] == 0.0 and is_too_far(table, options, work):
                needs_caller = True
            if needs_caller:
                ended = True
            elif action == policy.OTHER_LENGTH:
                memo[IS_OTHER] = 1.0
                copy(table[T_SIZE], piece(table, FIRST, work), piece(table, Q, work))
            elif not ended and (memo[policy.WAY] != 0.0 or action != policy.CONTINUE):
                draw(table, options, memo, action, work)
                is_drawn = memo[policy.WAY] == 0.0
        if not ended and is_drawn and table[T_ANGLES] > 0 and add_turns(table, options, work):
            needs_caller = True
            ended = True
        if needs_caller:
            result = cut(floats_at(table[T_RESULTS]), RESULT * int(memo[START]), RESULT)
            result[R_OUTCOME] = NEEDS_CALLER
            result[R_MOVED] = 0.0
        elif ended:
            write_result(table, options, memo, action, work)
        else:
            begin_attempt(table, options, memo, work)
        if ended:
            memo[START] += 1.0
            memo[STAGE] = NEW
            if spent >= options[ALLOWANCE] and memo[START] < last:
                return MORE
    return DONE
