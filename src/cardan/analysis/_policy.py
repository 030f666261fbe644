"""The choice of the next attempt after one that did not meet the tolerance.

Assemblies from one start and from many starts both use it, so that they make the same attempts.  Reads and writes the
memo of the attempts from one start, and the final costs of those that began independently of each other: at the start,
and at random poses.

A conflict is reported if it is proved that no pose satisfies the constraints, if a part of the system is a conflict by
itself, or if enough independent attempts end at the same least cost.
"""

from cardan.analysis.tables import Memo
from cardan.kernel.jit import exact, exact_inner
from cardan.solvers.tables import RUNNING

# actions
END = 0  # give up; the best attempt is returned
CONFLICT = 1  # give up; the constraints are inconsistent, by proof or by the evidence of the attempts
CONTINUE = 2  # continue from the end of the last attempt
OTHER_LENGTH = 3  # begin at the first start, with another unit of length
TILT = 4  # begin at the best pose so far, with every body slightly rotated
DISTURB = 5  # begin at the first start, with every body slightly rotated and moved
RESTART = 6  # begin at random poses
RESTART_CLOSE = 7  # begin at random poses that are closer together
HOP = 8  # begin at the best pose so far, with some bodies at random poses
PROVE = 9  # set is_proved and ask again
DIVIDE = 10  # set in_parts and ask again

SADDLE_ITERATIONS = 3  # an attempt that stalls within this many iterations began at a saddle point
OPPOSED = 1.9  # residual of opposed axes: 2 at the saddle point
PROGRESS = 0.98  # of the previous cost: an attempt that ends below it has made progress
SAME_COST = 1e-3  # relative: two attempts whose costs differ by less ended at the same minimum
CONFLICT_SHARE = 0.5  # share of independent attempts that end at the least cost, above which a conflict is reported
PART_SHARE = 0.25  # the same in a part of a system that all attempts have failed to solve
# Independent attempts that must agree; if the first attempts all agree, no more are made.  A minimum that attracts 3/4
# of all poses of a solvable mechanism is reported as a conflict with a probability of 1e-4 (1/30 with 12 attempts).
CONFLICT_ENOUGH = 32

# Work that takes as long as the search for a proof, which begins after so much unsuccessful work, or before giving up
WORTH_A_PROOF = 2500.0
# The same for the search for a part that is a conflict by itself: it solves many small systems
WORTH_PARTS = 5e5

# Shares of the way from the pose found to the first start.  The first is small: if nothing is free, the attempt returns
# after few iterations, and the way ends.
FIRST_SHARE = 0.3
LARGEST_SHARE = 0.9
LEAST_SHARE = 0.05
SHARE_RATIO = 3.0  # after each attempt: longer after one that ended as well, shorter after one that did not
MOST_WAYS = 8  # attempts on the way back
NEARER = 0.98  # of the squared distance: a pose that is hardly nearer ends the way back


@exact
def next_attempt(restarts, memo, costs):
    """The action after an attempt.  restarts: number of attempts after the first, at most.

    Appends the cost of an independent attempt to costs; updates the memo, except if the action is PROVE or DIVIDE.
    """
    memo = Memo(memo)
    attempts = int(memo.attempts)
    work = memo.work + memo.taken * memo.unknowns
    is_due = work >= WORTH_A_PROOF or attempts > restarts
    if memo.is_proved < 0.0 and is_due and memo.is_late == 0.0:
        return PROVE
    if memo.in_parts < 0.0 and memo.may_end_early != 0.0 and memo.is_proved <= 0.0 and memo.is_late == 0.0:
        if work >= WORTH_PARTS or attempts > restarts:
            return DIVIDE
    memo.work = work
    cost = memo.cost
    last = memo.action
    if last == TILT:
        memo.base = memo.kept_base
        memo.is_tilted = 1.0
    elif last != CONTINUE:
        memo.base = last
    memo.is_best = 0.0
    if attempts == 1 or cost < memo.least_cost:
        memo.least_cost = cost
    margin = SAME_COST if memo.base >= RESTART else 0.0
    if attempts == 1 or cost < (1.0 - margin) * memo.kept_cost:
        memo.kept_cost = cost
        memo.kept_base = memo.base
        memo.is_best = 1.0
    if last == END or last == RESTART or last == RESTART_CLOSE:
        memo.counted += 1.0
    base = memo.base
    counted = int(memo.counted)
    if base == END or base == RESTART or base == RESTART_CLOSE:
        costs[counted - 1] = cost  # one that was continued counts once
    same = 0
    for i in range(counted):
        if costs[i] <= memo.least_cost * (1.0 + SAME_COST):
            same += 1
    memo.action = _next(restarts, memo, attempts, counted, same)
    memo.cost_before = cost
    return int(memo.action)


@exact_inner
def _next(restarts, memo, attempts, counted, same):
    if memo.is_late != 0.0:
        return END
    is_known = memo.is_proved > 0.0 and (memo.work >= WORTH_A_PROOF or attempts > restarts)
    is_in_parts = memo.in_parts > 0.0 and memo.may_end_early != 0.0
    if is_known or (is_in_parts and (memo.work >= WORTH_PARTS or attempts > restarts)):
        # a second attempt leaves saddle points and flat regions, so that the compromise is better
        return TILT if memo.is_tilted == 0.0 and attempts <= restarts else CONFLICT
    share = CONFLICT_SHARE if memo.is_part == 0.0 else PART_SHARE
    agreed = same >= CONFLICT_ENOUGH and same >= share * counted
    if attempts > restarts or (agreed and same == counted and memo.may_end_early != 0.0):
        return CONFLICT if agreed else END
    is_unfinished = memo.outcome == RUNNING
    if memo.has_angles != 0.0 and is_unfinished and memo.cost < PROGRESS * memo.cost_before:
        return CONTINUE  # it is making whole turns, about one radian per iteration
    if attempts == 1 and is_unfinished:
        return OTHER_LENGTH
    if attempts == 1 and (memo.taken <= SADDLE_ITERATIONS or memo.residual >= OPPOSED):
        return TILT
    if memo.action == TILT and memo.taken <= SADDLE_ITERATIONS:
        return DISTURB
    memo.draws += 1.0
    which = int(memo.draws) % 3
    if which == 1:
        return RESTART
    return HOP if which == 2 else RESTART_CLOSE


@exact
def is_far(memo):
    """Whether the pose found was reached from random poses: then nothing has kept what is free near the start.

    It is the end of the last attempt, which met the tolerance; after CONFLICT it is the one that is kept.
    """
    memo = Memo(memo)
    action = memo.action
    if action == CONFLICT:
        return memo.kept_base >= RESTART
    return (memo.base if action == CONTINUE else action) >= RESTART


@exact
def is_nearer(memo, is_met, apart):
    """Whether an attempt on the way back, with the final cost in the memo, ended as well as the pose found, and nearer.

    apart: squared distance between its end and the first start.  Updates the memo, and ends the way by a share of 0.
    """
    memo = Memo(memo)
    is_as_good = memo.cost <= (1.0 + SAME_COST) * memo.kept_cost if memo.action == CONFLICT else is_met
    is_kept = is_as_good and apart < memo.apart
    memo.share = min(LARGEST_SHARE, memo.share * SHARE_RATIO) if is_as_good else memo.share / SHARE_RATIO
    if (is_as_good and not apart < NEARER * memo.apart) or memo.share < LEAST_SHARE or memo.way >= MOST_WAYS:
        memo.share = 0.0
    if is_kept:
        memo.apart = apart
    memo.way += 1.0
    return is_kept
