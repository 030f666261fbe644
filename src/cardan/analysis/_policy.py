"""The choice of the next attempt after one that did not meet the tolerance.

Assemblies from one start and from many starts both use it, so that they make the same attempts.  Reads and writes the
memo of the attempts from one start, and the final costs of those that began independently of each other: at the start,
and at random poses.

A conflict is reported if it is proved that no pose satisfies the constraints, or if enough independent attempts end at
the same least cost.
"""

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
PROVE = 9  # set IS_PROVED and ask again

# memo of the attempts from one start
ATTEMPTS = 0
COST = 1  # final cost of the last attempt
OUTCOME = 2  # of the last attempt
TAKEN = 3  # iterations of the last attempt
COST_BEFORE = 4  # cost of the first start, then of the previous attempt
LEAST_COST = 5  # of all attempts
KEPT_COST = 6  # of the attempt that is kept as the best: of equal ones, one that began near the start
IS_BEST = 7  # whether the last attempt is the best so far
IS_LATE = 8  # whether the deadline has passed
HAS_ANGLES = 9  # whether whole turns are counted
IS_PROVED = 10  # whether it is proved that no pose satisfies the constraints; negative if that is not known
MAY_END_EARLY = 11  # whether agreement ends the attempts before their greatest number is reached
ACTION = 12  # that led to the last attempt; END for the first
BASE = 13  # the same, of the attempt that the last one has continued
DRAWS = 14  # attempts from random poses so far
COUNTED = 15  # attempts whose costs are recorded
KEPT_BASE = 16  # BASE of the attempt that is kept
WAY = 17  # number of the attempt on the way back to the first start, from 1; 0 before
SHARE = 18  # of the way, where that attempt begins
APART = 19  # squared distance between the pose found and the first start
RESIDUAL = 20  # largest scaled residual of the last attempt
UNKNOWNS = 21  # of the problem
WORK = 22  # Σ iterations · UNKNOWNS
IS_TILTED = 23  # whether an attempt began by TILT
POLICY = 24

SADDLE_ITERATIONS = 3  # an attempt that stalls within this many iterations began at a saddle point
OPPOSED = 1.9  # residual of opposed axes: 2 at the saddle point
PROGRESS = 0.98  # of the previous cost: an attempt that ends below it has made progress
SAME_COST = 1e-3  # relative: two attempts whose costs differ by less ended at the same minimum
CONFLICT_SHARE = 0.5  # share of independent attempts that end at the least cost, above which a conflict is reported
# Independent attempts that must agree; if the first attempts all agree, no more are made.  A minimum that attracts 3/4
# of all poses of a solvable mechanism is reported as a conflict with a probability of 1e-4 (1/30 with 12 attempts).
CONFLICT_ENOUGH = 32

# WORK that takes as long as the search for a proof, which begins after so much unsuccessful work, or before giving up
WORTH_A_PROOF = 2500.0

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

    Appends the cost of an independent attempt to costs; updates the memo, except if the action is PROVE.
    """
    attempts = int(memo[ATTEMPTS])
    work = memo[WORK] + memo[TAKEN] * memo[UNKNOWNS]
    is_due = work >= WORTH_A_PROOF or attempts > restarts
    if memo[IS_PROVED] < 0.0 and is_due and memo[IS_LATE] == 0.0:
        return PROVE
    memo[WORK] = work
    cost = memo[COST]
    last = memo[ACTION]
    if last == TILT:
        memo[BASE] = memo[KEPT_BASE]
        memo[IS_TILTED] = 1.0
    elif last != CONTINUE:
        memo[BASE] = last
    memo[IS_BEST] = 0.0
    if attempts == 1 or cost < memo[LEAST_COST]:
        memo[LEAST_COST] = cost
    margin = SAME_COST if memo[BASE] >= RESTART else 0.0
    if attempts == 1 or cost < (1.0 - margin) * memo[KEPT_COST]:
        memo[KEPT_COST] = cost
        memo[KEPT_BASE] = memo[BASE]
        memo[IS_BEST] = 1.0
    if last == END or last == RESTART or last == RESTART_CLOSE:
        memo[COUNTED] += 1.0
    base = memo[BASE]
    counted = int(memo[COUNTED])
    if base == END or base == RESTART or base == RESTART_CLOSE:
        costs[counted - 1] = cost  # one that was continued counts once
    same = 0
    for i in range(counted):
        if costs[i] <= memo[LEAST_COST] * (1.0 + SAME_COST):
            same += 1
    memo[ACTION] = _next(restarts, memo, attempts, counted, same)
    memo[COST_BEFORE] = cost
    return int(memo[ACTION])


@exact_inner
def _next(restarts, memo, attempts, counted, same):
    if memo[IS_LATE] != 0.0:
        return END
    if memo[IS_PROVED] > 0.0 and (memo[WORK] >= WORTH_A_PROOF or attempts > restarts):
        # a second attempt leaves saddle points and flat regions, so that the compromise is better
        return TILT if memo[IS_TILTED] == 0.0 and attempts <= restarts else CONFLICT
    agreed = same >= CONFLICT_ENOUGH and same >= CONFLICT_SHARE * counted
    if attempts > restarts or (agreed and same == counted and memo[MAY_END_EARLY] != 0.0):
        return CONFLICT if agreed else END
    is_unfinished = memo[OUTCOME] == RUNNING
    if memo[HAS_ANGLES] != 0.0 and is_unfinished and memo[COST] < PROGRESS * memo[COST_BEFORE]:
        return CONTINUE  # it is making whole turns, about one radian per iteration
    if attempts == 1 and is_unfinished:
        return OTHER_LENGTH
    if attempts == 1 and (memo[TAKEN] <= SADDLE_ITERATIONS or memo[RESIDUAL] >= OPPOSED):
        return TILT
    if memo[ACTION] == TILT and memo[TAKEN] <= SADDLE_ITERATIONS:
        return DISTURB
    memo[DRAWS] += 1.0
    which = int(memo[DRAWS]) % 3
    if which == 1:
        return RESTART
    return HOP if which == 2 else RESTART_CLOSE


@exact
def is_far(memo):
    """Whether the pose found was reached from random poses: then nothing has kept what is free near the start.

    It is the end of the last attempt, which met the tolerance; after CONFLICT it is the one that is kept.
    """
    action = memo[ACTION]
    if action == CONFLICT:
        return memo[KEPT_BASE] >= RESTART
    return (memo[BASE] if action == CONTINUE else action) >= RESTART


@exact
def is_nearer(memo, is_met, apart):
    """Whether an attempt on the way back, with the final cost COST, ended as well as the pose found, and nearer.

    apart: squared distance between its end and the first start.  Updates the memo, and ends the way by SHARE = 0.
    """
    is_as_good = memo[COST] <= (1.0 + SAME_COST) * memo[KEPT_COST] if memo[ACTION] == CONFLICT else is_met
    is_kept = is_as_good and apart < memo[APART]
    memo[SHARE] = min(LARGEST_SHARE, memo[SHARE] * SHARE_RATIO) if is_as_good else memo[SHARE] / SHARE_RATIO
    if (is_as_good and not apart < NEARER * memo[APART]) or memo[SHARE] < LEAST_SHARE or memo[WAY] >= MOST_WAYS:
        memo[SHARE] = 0.0
    if is_kept:
        memo[APART] = apart
    memo[WAY] += 1.0
    return is_kept
