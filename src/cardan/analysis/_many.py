"""Attempts from many starts in one jitted call: the attempts of :mod:`cardan.analysis.attempts`, in the same order.

Solvers and draws are called by address.  So the machine code is that of a single assembly, and the iterates agree
bitwise; the same policy chooses the next attempt.  The kernel returns after a given number of iterations (allowance)
and continues in the next call, so that the caller can handle Ctrl-C and check the deadline for systems of any size.

Reads a Batch, the options and the starts.  Writes the memo, workspace and results.
"""

from math import pi

from cardan.analysis import _policy as policy
from cardan.analysis._draws import ANYWHERE, APART, BETWEEN, NEAR, SOME
from cardan.analysis._whole_turns import count_turns
from cardan.analysis.tables import Batch, BatchMemo, BatchWork, Draw, Next, Options, Result
from cardan.coordinates._judging import judge_at, update_angles
from cardan.coordinates.tables import JudgeWork, Verdict
from cardan.kernel.fields import local
from cardan.kernel.jit import inner, jit
from cardan.kernel.memory import call_evaluator, cut, pointer
from cardan.solvers._blocks import largest, scaled_cost
from cardan.solvers._job import evaluate
from cardan.solvers.tables import BROKEN, CONVERGED, ENTER, LEAVE, RESIDUAL, RUNNING, Control
from cardan.system.tables import POSE

CONTROL = Control.size

NEW, FIRST_SOLVER, SECOND_SOLVER = 0, 1, 2  # stages

NEEDS_CALLER = -1  # outcome of a start that the caller solves: drivers are moved in stages
MET = -1  # in addition to the actions of the policy: the attempt has met the tolerance

DONE, MORE, ASKS_FOR_PROOF, ASKS_FOR_PARTS = 0, 1, 2, 3  # results of solve_many


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
def enter(batch, options, q, work):
    """x ← the formulation's own coordinates of the poses q."""
    x = work.x
    if options.projects != 0.0:
        evaluate(batch.job, ENTER, q, q, x, x, work.evaluation)
    else:
        copy(batch.coordinates, q, x)
    return x


@inner
def begin_solver(begin, tolerance, control):
    """control ← its values at the beginning of a run."""
    copy(CONTROL, begin, control.as_floats)
    control.tolerance = tolerance


@inner
def largest_error(batch, q, work):
    """Largest deviation of a driven angle from the value of its driver [rad]."""
    rows = work.rows
    evaluate(batch.whole, RESIDUAL, q, q, rows, rows, work.evaluation)
    drivers = batch.drivers
    result = 0.0
    for i in range(batch.driver_count):
        result = max(result, abs(rows[drivers[i]]))
    return result


@inner
def update_own_angles(batch, q, work):
    """Counted angles in q ← the angles of its poses, within half a turn of their previous values."""
    whole = batch.whole
    update_angles(
        whole.evaluator,
        whole.ints,
        whole.floats,
        POSE * batch.bodies + batch.variables,
        batch.coordinates,
        q,
        work.before,
        work.zeros,
        work.evaluation,
    )


@inner
def begin_start(batch, options, memo, work):
    """q ← the next start; returns whether it is met already, checked only if the formulation projects poses."""
    k = int(memo.start)
    size = batch.coordinates
    q = work.q
    memo.attempts = 0.0
    memo.used = 0.0
    memo.is_other = 0.0
    memo.moved = 1.0
    memo.way = 0.0
    memo.action = policy.END
    memo.base = policy.END
    memo.draws = 0.0
    memo.counted = 0.0
    memo.work = 0.0
    memo.is_tilted = 0.0
    copy(size, cut(batch.starts, k * size, size), q)
    if options.projects == 0.0:
        return False
    whole = batch.whole
    rows = work.rows
    control = Control(work.control)
    measure(whole, q, rows, work.evaluation)
    control.residual_max = largest(whole.structure, rows)
    control.status = CONVERGED
    if not control.residual_max <= options.target:
        return False
    memo.attempts = 1.0
    memo.moved = 0.0
    return True


@inner
def begin_attempt(batch, options, memo, work):
    """Begin an attempt from q."""
    if memo.stage == NEW:
        copy(batch.coordinates, work.q, work.first)
    enter(batch, options, work.q, work)
    tolerance = options.target
    memo.earlier = 0.0
    memo.left = options.most
    memo.stage = FIRST_SOLVER
    if batch.solvers == 2:
        tolerance = max(tolerance, options.first_residual)
        memo.left = min(options.most, options.most_first)
    begin_solver(batch.begin, tolerance, Control(work.control))


@inner
def run_chunk(batch, options, memo, work):
    """Run some iterations of the current solver; returns their number."""
    control = Control(work.control)
    job = batch.other_job if memo.is_other != 0.0 else batch.job
    job_work = batch.work
    if memo.stage == SECOND_SOLVER:
        job = batch.second_job
        job_work = batch.second_work
    control.chunk = min(options.each, memo.left)
    before = control.iterations
    x = work.x
    call_evaluator(job.run, 0, job.as_ints, control.as_floats, x, x, x, x, job_work)
    done = control.iterations - before
    memo.left -= done
    return done


@inner
def has_attempt_ended(batch, options, memo, work):
    """Whether the attempt has ended; if a second solver follows, that one begins instead."""
    control = Control(work.control)
    late = memo.is_late != 0.0
    if control.status == RUNNING and memo.left > 0.0 and not late:
        return False
    left = options.most - control.iterations
    follows = memo.stage == FIRST_SOLVER and batch.solvers == 2
    if not follows or control.status == BROKEN or left <= 0.0 or late:
        return True
    memo.earlier = control.iterations
    memo.left = left
    memo.stage = SECOND_SOLVER
    begin_solver(batch.second_begin, options.target, control)
    return False


@inner
def is_attempt_met(batch, options, memo, work):
    """Leave the formulation's coordinates at the end of an attempt; returns whether it has met the tolerance."""
    control = Control(work.control)
    q = work.q
    x = work.x
    if options.projects != 0.0:
        evaluate(batch.job, LEAVE, x, x, q, x, work.evaluation)
    else:
        copy(batch.coordinates, x, q)
    memo.outcome = control.status
    memo.taken = memo.earlier + control.iterations
    memo.cost = control.cost
    memo.used += memo.taken
    if options.is_auto == 0.0 or memo.outcome == CONVERGED:
        return True
    if not control.residual_max <= options.near_residual:
        return False
    judged = batch.judged
    judge_at(judged, batch.bounds, q, JudgeWork(judged.pieces, batch.judge_work), work.verdict)
    verdict = Verdict(work.verdict)
    return verdict.residual <= verdict.bound


@inner
def keep(batch, memo, work):
    """best ← the end of the last attempt."""
    memo.best_outcome = memo.outcome
    memo.best_residual = Control(work.control).residual_max
    copy(batch.coordinates, work.q, work.best)


@inner
def choose(batch, options, memo, work):
    """The action that the policy chooses after an attempt that has not met the tolerance."""
    job = batch.job
    control = Control(work.control)
    rows = work.rows
    evaluation = work.evaluation
    is_first = memo.attempts == 1.0 and batch.angles > 0
    if memo.is_other != 0.0 or is_first:
        x = enter(batch, options, work.first if is_first else work.q, work)
        cost = measure(job, x, rows, evaluation)
        if is_first:
            memo.cost_before = cost
        else:  # costs are compared in one unit of length
            memo.cost = cost
            control.residual_max = largest(job.structure, rows)
            memo.is_other = 0.0
    memo.residual = control.residual_max
    memo.has_angles = 1.0 if batch.angles > 0 else 0.0
    memo.may_end_early = options.may_end_early
    memo.is_proved = options.is_proved
    memo.in_parts = options.in_parts
    memo.is_part = 0.0
    memo.unknowns = job.structure.unknowns
    return policy.next_attempt(options.restarts, memo, work.costs)


@inner
def distance(batch, options, q, work):
    """Squared distance of q and the first start."""
    how = Draw(work.drawn)
    square = work.verdict
    how.length = options.unit
    call_evaluator(batch.draw, APART, batch.drawn, how.as_floats, q, work.first, square, square, square)
    return square[0]


@inner
def end_attempt(batch, options, memo, work):
    """Evaluate an attempt; returns MET or the action that the policy chooses.

    If the pose found is far from the start, attempts on the way back follow, and the action is CONTINUE.
    """
    is_met = False
    if memo.is_waiting == 0.0:
        is_met = is_attempt_met(batch, options, memo, work)
    is_late = memo.is_late != 0.0
    is_on_way = memo.way != 0.0
    action = MET
    is_kept = False
    if not is_on_way:
        memo.attempts += 1.0 - memo.is_waiting
        memo.is_waiting = 0.0
        if not is_met:
            action = choose(batch, options, memo, work)
            if action >= policy.PROVE:
                memo.is_waiting = 1.0
                return action
            is_kept = memo.is_best != 0.0
        is_found = action == MET or action == policy.CONFLICT
        if not is_found or is_late or not policy.is_far(memo):
            if is_kept:
                keep(batch, memo, work)
            return action
        is_kept = is_kept or is_met
    elif memo.action == policy.CONFLICT:
        action = policy.CONFLICT
    end = work.q if is_kept or is_on_way else work.best
    apart = distance(batch, options, end, work)
    if is_on_way:
        is_kept = policy.is_nearer(memo, is_met, apart)
    else:
        memo.apart = apart
        memo.way = 1.0
        memo.share = policy.FIRST_SHARE
    if is_kept:
        keep(batch, memo, work)
    return action if memo.share == 0.0 or is_late else policy.CONTINUE


@inner
def draw(batch, options, memo, action, work):
    """q ← the first start or the best pose disturbed, random poses, or poses on the way back to the first start."""
    size = batch.coordinates
    first = POSE * batch.bodies
    q = work.q
    how = Draw(work.drawn)
    source = work.first
    best = work.best
    spare = work.spare
    other = best
    how.attempt = memo.attempts
    op = NEAR
    if memo.way != 0.0:
        op = BETWEEN
        how.share = memo.share
        other = source
        source = best
    elif action == policy.TILT or action == policy.DISTURB:
        how.spread = options.disturbance
        how.length = 0.0 if action == policy.TILT else options.unit
        if action == policy.TILT:
            source = best
    else:
        op = SOME if action == policy.HOP else ANYWHERE
        how.reach = options.close_reach if action == policy.RESTART_CLOSE else options.most_reach
        for i in range(3):
            how.center[i] = options.middle[i]
        copy(first, batch.authored, spare)
        for i in range(first, size):
            spare[i] = source[i]
        if batch.angles > 0:
            update_own_angles(batch, spare, work)
        source = spare
    call_evaluator(batch.draw, op, batch.drawn, how.as_floats, source, other, q, q, q)
    if batch.angles > 0:
        update_own_angles(batch, q, work)


@inner
def add_turns(batch, options, work):
    """Add whole turns to q; returns whether drivers must be moved in stages instead."""
    q = work.q
    count_turns(
        batch.whole,
        batch.turn_rows,
        POSE * batch.bodies + batch.variables,
        batch.coordinates,
        q,
        work.spare,
        work.before,
        work.rows,
        work.evaluation,
    )
    if options.is_auto == 0.0 or batch.driver_count == 0:
        return False
    error = largest_error(batch, q, work)
    return error > pi and error <= options.most_staged


@inner
def is_too_far(batch, options, work):
    """Whether the drivers are too many turns away from the first start to be reached in stages."""
    if batch.driver_count == 0:
        return False
    return largest_error(batch, work.first, work) > options.most_staged


@inner
def write_result(batch, options, memo, action, work):
    """Write the outcome and the final pose of a start."""
    k = int(memo.start)
    size = batch.coordinates
    control = Control(work.control)
    result = Result(batch.results, k)
    end = cut(batch.ends, k * size, size)
    is_best = action == policy.END or action == policy.CONFLICT or memo.way != 0.0
    copy(size, work.best if is_best else work.q, end)
    result.outcome = memo.best_outcome if is_best else control.status
    result.residual = memo.best_residual if is_best else control.residual_max
    result.attempts = memo.attempts
    result.iterations = memo.used
    result.conflict = 0.0
    if action == policy.CONFLICT:  # none without a proof if a driver is too far away to be reached in stages
        result.conflict = 0.0 if options.is_proved <= 0.0 and is_too_far(batch, options, work) else 1.0
    result.moved = memo.moved if options.projects != 0.0 or memo.used > 0.0 else 0.0


@inner
def follow(batch, options, memo, work, following):
    """What follows after the end of an attempt; q ← the poses at which the next one begins, if there is one."""
    action = end_attempt(batch, options, memo, work)
    following.action = action
    if action >= policy.PROVE:
        return
    following.has_ended = action == MET or action == policy.END or action == policy.CONFLICT
    if action >= policy.RESTART and memo.way == 0.0 and is_too_far(batch, options, work):
        following.needs_caller = True
        following.has_ended = True
    elif action == policy.OTHER_LENGTH:
        memo.is_other = 1.0
        copy(batch.coordinates, work.first, work.q)
    elif following.has_ended == 0 and (memo.way != 0.0 or action != policy.CONTINUE):
        draw(batch, options, memo, action, work)
        following.is_drawn = memo.way == 0.0


@inner
def begin_or_end(batch, options, memo, work, following):
    """Begin the next attempt, or write the result of the start."""
    if following.has_ended == 0 and following.is_drawn != 0 and batch.angles > 0 and add_turns(batch, options, work):
        following.needs_caller = True
        following.has_ended = True
    if following.needs_caller != 0:
        result = Result(batch.results, int(memo.start))
        result.outcome = NEEDS_CALLER
        result.moved = 0.0
    elif following.has_ended != 0:
        write_result(batch, options, memo, following.action, work)
    else:
        begin_attempt(batch, options, memo, work)


@jit
def solve_many(table, options, memo, work, last):
    """Solve from the starts memo.start … last − 1; returns DONE, or MORE if the allowance was used up before.

    ASKS_FOR_PROOF, ASKS_FOR_PARTS: the caller must set is_proved, or in_parts, and call again.
    """
    batch = Batch(table)
    options = Options(options)
    memo = BatchMemo(memo)
    work = BatchWork(batch.pieces, pointer(work))
    following = local(Next)
    spent = 0.0
    while memo.start < last:
        following.action = MET
        following.is_drawn = False
        following.has_ended = False
        following.needs_caller = False
        if memo.stage == NEW:
            following.has_ended = begin_start(batch, options, memo, work)
            following.is_drawn = True
        else:
            if memo.is_waiting == 0.0:
                spent += run_chunk(batch, options, memo, work) + 1.0
                if not has_attempt_ended(batch, options, memo, work):
                    if spent >= options.allowance:
                        return MORE
                    continue
            follow(batch, options, memo, work, following)
            if following.action >= policy.PROVE:
                return ASKS_FOR_PROOF if following.action == policy.PROVE else ASKS_FOR_PARTS
        begin_or_end(batch, options, memo, work, following)
        if following.has_ended != 0:
            memo.start += 1.0
            memo.stage = NEW
            if spent >= options.allowance and memo.start < last:
                return MORE
    return DONE
