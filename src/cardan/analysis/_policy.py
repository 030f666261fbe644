"""The choice of the next attempt after one that did not meet the tolerance.

Assemblies from one start and from many starts both use it, so that they make the same attempts.  Reads and writes the
memo of the attempts from one start, and their final costs.
"""

from cardan._jit import exact
from cardan.solvers.abi import RUNNING

# actions
END = 0  # give up; the best attempt is returned
CONFLICT = 1  # give up; the attempts indicate that the constraints are inconsistent
CONTINUE = 2  # continue from the end of the last attempt
OTHER_LENGTH = 3  # begin at the first start, with another unit of length
DISTURB = 4  # begin at the first start, slightly disturbed
RESTART = 5  # begin at random poses

# memo of the attempts from one start
ATTEMPTS = 0
COST = 1  # final cost of the last attempt
OUTCOME = 2  # of the last attempt
TAKEN = 3  # iterations of the last attempt
COST_BEFORE = 4  # cost of the first start, then of the previous attempt
BEST_COST = 5
IS_BEST = 6  # whether the last attempt is the best so far
IS_LATE = 7  # whether the deadline has passed
HAS_ANGLES = 8  # whether whole turns are counted
POLICY = 9

SADDLE_ITERATIONS = 3  # a first attempt that stalls within this many iterations began at a saddle point
PROGRESS = 0.98  # of the previous cost: an attempt that ends below it has made progress
SAME_COST = 1e-3  # relative: two attempts whose costs differ by less ended at the same minimum
CONFLICT_SHARE = 0.25  # share of attempts that end at the least cost, above which a conflict is reported
CONFLICT_ENOUGH = 12  # attempts that must agree; if the first attempts all agree, no more are made


@exact
def next_attempt(restarts, memo, costs):
    """The action after an attempt.  restarts: number of attempts after the first, at most.

    Appends the cost of the last attempt to costs; updates BEST_COST, IS_BEST and COST_BEFORE in memo.
    """
    attempts = int(memo[ATTEMPTS])
    cost = memo[COST]
    memo[IS_BEST] = 0.0
    if attempts == 1 or cost < memo[BEST_COST]:
        memo[BEST_COST] = cost
        memo[IS_BEST] = 1.0
    costs[attempts - 1] = cost
    same = 0
    for i in range(attempts):
        if costs[i] <= memo[BEST_COST] * (1.0 + SAME_COST):
            same += 1
    late = memo[IS_LATE] != 0.0
    if (same == attempts and same == CONFLICT_ENOUGH) or late or attempts > restarts:
        agreed = same >= CONFLICT_ENOUGH and same >= CONFLICT_SHARE * attempts
        return CONFLICT if agreed and not late else END
    before = memo[COST_BEFORE]
    memo[COST_BEFORE] = cost
    is_unfinished = memo[OUTCOME] == RUNNING
    if memo[HAS_ANGLES] != 0.0 and is_unfinished and cost < PROGRESS * before:
        return CONTINUE  # it is making whole turns, about one radian per iteration
    if attempts == 1 and is_unfinished:
        return OTHER_LENGTH
    if attempts == 1 and memo[TAKEN] <= SADDLE_ITERATIONS:
        return DISTURB
    return RESTART
