"""What to try next after an attempt that did not meet the tolerance.

One start and many starts both ask here, so that they make the same attempts.  Read and written: the memo of the
attempts at one start, and the costs at which they ended.
"""

from cardan._jit import exact
from cardan.solvers.abi import RUNNING

# what to do next
END = 0  # give up; the best attempt is returned
CONFLICT = 1  # give up; the attempts agree that the constraints contradict each other
GO_ON = 2  # continue from where the attempt ended
OTHER_LENGTH = 3  # from the first start, with lengths measured in another unit
DISTURB = 4  # from the first start, moved a little
RESTART = 5  # from random poses

# memo of the attempts at one start
ATTEMPTS = 0
COST = 1  # of the last attempt, where it ended
OUTCOME = 2  # of the last attempt
TAKEN = 3  # iterations of the last attempt
COST_BEFORE = 4  # where the last attempt began: of the first start, then of the attempt before
BEST_COST = 5
IS_BEST = 6  # whether the last attempt is the best so far
IS_LATE = 7  # whether time is up
HAS_ANGLES = 8  # whether whole turns are counted
POLICY = 9

SADDLE_ITERATIONS = 3  # a first attempt that stalls this soon began at a saddle
GETTING_ON = 0.98  # of the cost before: an attempt that ends below it has made progress
SAME_COST = 1e-3  # relative: two attempts that ended this near ended at the same minimum
CONFLICT_SHARE = 0.25  # of all attempts ended at the same least residual: evidence of a contradiction
CONFLICT_ENOUGH = 12  # ends that must agree; where the first so many all do, no more are tried


@exact
def next_attempt(restarts, memo, costs):
    """What to do after an attempt.  restarts: attempts after the first, at the most.

    costs ← that of the last attempt added; memo ← BEST_COST, IS_BEST and COST_BEFORE.
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
    if memo[HAS_ANGLES] != 0.0 and is_unfinished and cost < GETTING_ON * before:
        return GO_ON  # it makes turns, a radian at a time
    if attempts == 1 and is_unfinished:
        return OTHER_LENGTH
    if attempts == 1 and memo[TAKEN] <= SADDLE_ITERATIONS:
        return DISTURB
    return RESTART
