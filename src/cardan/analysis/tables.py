"""Tables of the attempts of an assembly, from one start or from many."""

from __future__ import annotations

from cardan.coordinates.tables import Judged
from cardan.kernel.table import Address, Float, Int, Piece, Ref, Table, Workspace
from cardan.solvers.tables import Job, SolverJob


class TurnRow(Table):
    """A row that determines the whole turns of a counted angle."""

    angle: Int  # number of the angle
    row: Int
    is_limit: Int  # ≠ 0: a row of a limit


class Memo(Table):
    """Memo of the attempts from one start, which the policy reads and writes."""

    attempts: Float
    cost: Float  # final cost of the last attempt
    outcome: Float  # of the last attempt
    taken: Float  # iterations of the last attempt
    cost_before: Float  # cost of the first start, then of the previous attempt
    least_cost: Float  # of all attempts
    kept_cost: Float  # of the attempt that is kept as the best: of equal ones, one that began near the start
    is_best: Float  # whether the last attempt is the best so far
    is_late: Float  # whether the deadline has passed
    has_angles: Float  # whether whole turns are counted
    is_proved: Float  # whether it is proved that no pose satisfies the constraints; negative if that is not known
    in_parts: Float  # whether a part of the system is a conflict by itself; negative if that is not known
    is_part: Float  # whether the system is such a part
    may_end_early: Float  # whether agreement ends the attempts before their greatest number is reached
    action: Float  # that led to the last attempt; END for the first
    base: Float  # the same, of the attempt that the last one has continued
    draws: Float  # attempts from random poses so far
    counted: Float  # attempts whose costs are recorded
    kept_base: Float  # base of the attempt that is kept
    way: Float  # number of the attempt on the way back to the first start, from 1; 0 before
    share: Float  # of the way, where that attempt begins
    apart: Float  # squared distance between the pose found and the first start
    residual: Float  # largest scaled residual of the last attempt
    unknowns: Float  # of the problem
    work: Float  # Σ iterations · unknowns
    is_tilted: Float  # whether an attempt began by TILT


class Drawn(Table):
    """What is drawn for restarts."""

    bodies: Int
    variables: Int
    free: Int  # of the variables
    angles: Int  # counted ones
    seeds: Int[...]  # of each body, each variable and each counted angle


class Draw(Table):
    """How it is drawn."""

    attempt: Float
    reach: Float  # [m] ANYWHERE, SOME: largest distance of a position from the centre, along each axis
    center: Float[3]  # [m] of these positions
    spread: Float  # NEAR: largest displacement in lengths, and about the largest rotation [rad]
    length: Float  # [m] NEAR, APART: unit of displacements
    share: Float  # BETWEEN: of the way


class Batch(Table):
    """Many starts of one piece, for one worker."""

    job: Ref[SolverJob]  # first solver of an attempt
    begin: Ref[Float]  # its initial control vector
    work: Ref[Float]  # and its workspace
    second_job: Ref[SolverJob]  # the same for the second solver, where there are two
    second_begin: Ref[Float]
    second_work: Ref[Float]
    other_job: Ref[SolverJob]  # the first solver with lengths in the other unit
    whole: Ref[Job]  # the problem on the manifold, which accepts any poses, in the same unit of length
    judged: Ref[Judged]
    bounds: Ref[Float]  # of the verdict
    judge_work: Ref[Float]
    turn_rows: Ref[Int]  # rows that determine whole turns
    drivers: Ref[Int]  # rows of drivers of angles
    draw: Address  # the kernel of the random draws
    drawn: Ref[Int]  # and its table
    authored: Ref[Float]
    starts: Ref[Float]  # solver coordinates, one row per start
    ends: Ref[Float]  # solver coordinates at the end, one row per start
    results: Ref[Float]  # a Result for each start
    coordinates: Int  # of the solver, of one start
    bodies: Int
    angles: Int  # counted ones
    driver_count: Int
    variables: Int
    solvers: Int  # of an attempt: one or two
    pieces: Int[...]  # offsets of the pieces of the workspace, and of their end


class BatchWork(Workspace):
    """Workspace of many starts."""

    q: Piece  # poses of the attempt
    best: Piece  # at the end of the best attempt
    spare: Piece
    first: Piece  # the start
    before: Piece
    x: Piece  # coordinates of the formulation
    rows: Piece  # residuals
    control: Piece
    drawn: Piece  # how poses are drawn
    verdict: Piece
    zeros: Piece  # a step
    evaluation: Piece
    costs: Piece  # of independent attempts


class Options(Table):
    """Options of many starts."""

    is_auto: Float
    most: Float  # iterations of an attempt, at most
    most_first: Float  # iterations of the first of two solvers, at most
    first_residual: Float  # residual at which the first of two solvers stops, if above the target
    each: Float  # iterations between two checks of the allowance
    allowance: Float  # iterations in one call, at most
    restarts: Float
    near_residual: Float  # below it, the verdict is computed
    disturbance: Float
    unit: Float  # [m] unit of length
    most_reach: Float  # [m] largest distance of a drawn position from the middle, along each axis
    projects: Float  # the formulation cannot represent every pose, so poses are projected onto its coordinates
    most_staged: Float  # [rad] a driven angle is moved this far in stages, at most
    target: Float  # scaled residual at which an attempt stops
    middle: Float[3]  # [m] centre of the draws
    close_reach: Float  # [m] the same as most_reach, for close draws
    may_end_early: Float
    is_proved: Float  # whether it is proved that no pose satisfies the constraints; negative if not known yet
    in_parts: Float  # whether a part of the system is a conflict by itself; negative if not known yet


class BatchMemo(Memo):
    """Memo between two calls of the kernel for many starts."""

    start: Float  # number of the start
    stage: Float  # NEW, FIRST_SOLVER or SECOND_SOLVER
    used: Float  # iterations of all attempts
    left: Float  # iterations left for this solver
    earlier: Float  # iterations of the previous solver in this attempt
    best_outcome: Float
    best_residual: Float
    is_other: Float  # lengths are measured in the other unit
    moved: Float  # whether the start was moved
    is_waiting: Float  # 1 if the attempt has ended, and the kernel has returned to ask; else 0


class Result(Table):
    """Result of one of many starts."""

    outcome: Float
    residual: Float
    attempts: Float
    iterations: Float
    conflict: Float
    moved: Float


class Next(Table):
    """What follows in a run from many starts."""

    action: Int  # of the policy, or MET
    is_drawn: Int  # q was drawn anew
    has_ended: Int  # the start
    needs_caller: Int  # which solves the start
