"""Tables that the kernels of dynamics and Python share, and the constants of their operations.

A pattern is a header, then strips, then the tables of one linear algebra.  A strip is a run of rows of one constraint
that are equations (guard rows are none).

Linear algebra (:mod:`cardan.solvers.tables`) solves  u + Ĵᵀλ = b,  Ĵ u = c  with Ĵ = D J M^−½.  FACTOR writes
control.pivot; SOLVE removes the error of ε by control.proximal iterations, and more with least_epsilon.

The inertia I of a joint adds I gᵀg to M, where g v is the rate of its coordinate.  M stays diagonal: g is one more row,
with the compliance 1/I.  For M v̇ + gᵀμ = Q, g v̇ − μ/I = γ gives μ = I q̈.  In Ĵ u − E λ = c, E is D²/I in these
rows and zero in all others: the compliances, which are read where control.compliant is not zero.

Loads act on generalised forces (force in world at the centre of mass, torque in principal axes) by three operations
with the arguments (op, table, floats, q, v, out, control or efforts, work):

===== ===========================================================================================
FORCE out += forces of all loads but the called ones, at the time control.ask_time
APPLY out += forces of the called ones: an effort per law and a vector per wrench are given
READ  out ← coordinate, rate, effort with derivatives, potential energy of each law, at control.ask_time
===== ===========================================================================================

Soft rows act beside the equations, which hold exactly (:mod:`cardan.dynamics._soft`).  Their evaluator has two
operations: JACOBIAN gives their residuals, stiffnesses and rows, GAMMA the bias of their accelerations.  Their solver
lets them act on a VELOCITY or an ACCELERATION that solves the equations.  IMPLICIT and FINISH are those of hands
(:mod:`cardan.interact._dynamic`).  Events at limits have two operations
(:mod:`cardan.dynamics._stops`): SEEK an event in a step, KEEP all gaps.
"""

from __future__ import annotations

from typing import Final

from cardan.kernel.table import Address, Float, Int, Piece, Ref, Table, Workspace
from cardan.solvers.tables import Job, Projection

WIDTH: Final = 6  # velocities of a body: ṙ of the centre of mass in world, ω in principal axes
HISTORY: Final = 8  # number of accelerations that are kept, with their times
NODES: Final = 7  # of a polynomial, at the most

# operations of linear algebra, on stops, of loads; what soft rows act on
FACTOR, SOLVE = range(2)
SEEK, KEEP = range(2)
FORCE, APPLY, READ = range(3)
VELOCITY, ACCELERATION, IMPLICIT, FINISH = range(4)

# what the kernel of an integrator returns
RUNNING, DONE, ASK_DRIVERS, ASK_LOADS, NOT_FINITE, STEP_TOO_SMALL, NOT_CLOSED, EVENT_REACHED, LOCKED = range(9)

# values of Control.stabilization: poses and velocities are projected; equations of accelerations alone; with
# Baumgarte's terms
PROJECTED, UNSTABILIZED, BAUMGARTE = range(3)

# values of Control.phase
BEGIN, PREDICT, CORRECT, ACCEPT, OUTPUT, BETWEEN = range(6)

# Estimated error of a step, and shift onto the constraints; relative to the extent, or in radians.  A constant step
# with a larger error is too large.  A variable step with a larger shift is refused.
MOST_ERROR: Final = 1e-3
ROUNDING: Final = 64 * 2.0**-52  # of the largest coordinate: poses cannot be stored more exactly


class Strip(Table):
    """A run of rows of one constraint that are equations."""

    first: Int  # its first equation
    row: Int  # its first row
    rows: Int
    entry: Int  # its first entry in the Jacobian
    slots: Int  # number of its bodies
    bodies: Int[...]


class Pattern(Table):
    """Where the blocks of Ĵ are, for one linear algebra."""

    bodies: Int
    equations: Int
    strip_count: Int
    first_table: Int  # offset of the pairs (_dual) or of the factor (_kkt) in the pattern
    second_table: Int  # offset of the first columns of the factor (_dual), or the end (_kkt)
    strips: Strip[...]


class Pair(Table):
    """Of strips a and b that share a body, for a dense matrix."""

    first_a: Int  # equation
    first_b: Int
    rows_a: Int
    rows_b: Int
    entry_a: Int  # first entry in Ĵ
    entry_b: Int
    stride_a: Int
    stride_b: Int


class Factor(Table):
    """Header of a block-sparse factor; offsets in the pattern."""

    count: Int  # of columns
    values: Int  # number of floats
    columns: Int
    entries: Int  # blocks
    fills: Int
    updates: Int


class Column(Table):
    """Its entries, fills and updates end where those of the next column begin."""

    entry: Int  # the first
    fill: Int
    update: Int
    breadth: Int
    sign: Int  # +1 of a body, −1 of a joint
    position: Int  # first unknown in x


class Block(Table):
    """An entry of a column; the diagonal is the first."""

    row: Int
    height: Int  # width of that row
    target: Int  # its first unknown
    place: Int  # first float


class Fill(Table):
    """The part of a strip on one body: where it is in Ĵ and in the factor."""

    source: Int
    stride: Int
    rows: Int
    goal: Int
    row_step: Int
    column_step: Int
    sign: Int
    equation: Int  # the first


class Update(Table):
    """Of a column by another one on its left."""

    left: Int
    crossing: Int  # the entry of that column in this row


class Driver(Table):
    place: Int  # of its value in the floats
    equation: Int


class Stop(Table):
    """A limit, one end or both."""

    equation: Int
    row: Int
    place: Int  # of its bound in the floats


class Bound(Table):
    """Bounds of a stop, and its coordinate in a step."""

    lower: Float
    upper: Float
    weight: Float  # of its coordinate
    side: Float  # which bound holds: −1 lower, +1 upper, 0 none
    gap: Float  # at the start of a step: minus the distance to the bound, or minus its push if a bound holds
    start: Float  # its coordinate at the start, if no bound holds
    rate: Float  # of the coordinate at the start
    finish: Float  # its coordinate at the end


class Soft(Table):
    """Soft rows."""

    rows: Int  # number
    most: Int  # of them
    which: Int  # of them are evaluated: HOLDS, SPRINGS, EVERY of a session
    begins: Int  # whether a cycle begins
    extra: Ref[Float]  # generalised forces of springs
    ready: Int  # whether they are condensed with the factor at hand
    rank: Int  # columns of the basis
    pieces: Int[16]  # offsets of SoftWork
    bodies: Int[...]  # of each row


class SoftWork(Workspace):
    """Of soft rows; the first three are written by their evaluator, as one array."""

    residuals: Piece
    stiffnesses: Piece
    compliances: Piece  # first the dampings
    forces: Piece  # y
    entries: Piece  # Ĵ_s, WIDTH per row
    matrix: Piece  # the factor of G + C, most² floats
    directions: Piece  # W, row by row
    multipliers: Piece  # λ of every equation, scaled, for a unit force of each soft row
    right: Piece
    bias: Piece
    solution: Piece  # (u, λ)
    scales: Piece  # S
    left: Piece  # diagonal that is left in a factorisation, or scratch
    basis: Piece  # Q, column by column
    triangle: Piece  # R, row by row


LINEAR, MATRIX, RECORDED, CALLED = range(4)  # values of Law.kind
PLAIN, APART, INCLINED = range(3)  # values of Law.sort: a coordinate, |vector of three rows|, an angle between two axes


class Law(Table):
    """Of efforts on coordinates."""

    kind: Int  # LINEAR, MATRIX, RECORDED, CALLED
    row: Int  # its first row
    rows: Int
    sort: Int  # how its rows give the coordinate: PLAIN, APART, INCLINED
    numbers: Int  # where they are in the floats
    function: Address  # of a recorded law


class Linear(Table):
    """Numbers of a LINEAR law."""

    constant: Float
    stiffness: Float
    rest: Float
    damping: Float
    coulomb: Float
    speed: Float


class Reading(Table):
    """What READ gives of a law; derivatives of a called or a MATRIX law are zero."""

    coordinate: Float
    rate: Float
    effort: Float
    energy: Float
    slope: Float  # ∂effort/∂coordinate
    rate_slope: Float  # ∂effort/∂rate


class LawCall(Table):
    """A call of the recorded function e(t, x, ẋ) of a law: its arguments, its value and its derivatives by them."""

    time: Float  # [s]
    coordinate: Float
    rate: Float
    effort: Float
    time_slope: Float  # ∂e/∂t
    slope: Float  # ∂e/∂x
    rate_slope: Float  # ∂e/∂ẋ


class Wrench(Table):
    """On a body."""

    body: Int
    is_torque: Int
    in_body: Int  # its axes
    is_called: Int  # whether Python gives its vector
    numbers: Int  # point and vector, where they are in the floats


class Loads(Job):
    """A system of their own, whose rows are coordinates; then the laws, then the wrenches."""

    law_count: Int
    wrench_count: Int
    pieces: Int[7]  # offsets of LoadWork
    laws: Law[...]


class LoadWork(Workspace):
    """Of loads."""

    evaluation: Piece  # of the evaluator
    x: Piece  # coordinates
    rates: Piece  # ẋ
    efforts: Piece  # e
    scratch: Piece  # a LawCall, then a Reading in its place
    jacobian: Piece


class Jet(Table):
    """Of a driver, or of a number that is a function of time, at one time."""

    value: Float
    rate: Float
    acceleration: Float


class MassValues(Workspace):
    """Numbers of M."""

    masses: Piece  # M, WIDTH per body
    roots: Piece  # √(M + E)
    inverse_roots: Piece  # 1/√(M + E)
    gravity: Piece  # [m/s²]
    weights: Piece  # per equation, of its residual in judged form: 1/L, or 1 of an angle
    roundings: (
        Piece  # per equation, of its weighted residual, by metre of the coordinates: ROUNDING/L, or 0 of an angle
    )


class MotionJob(Job):
    """One run of the equations of motion; its pattern is a Pattern."""

    loads: Address  # zero if there are none
    load_table: Ref[Loads]
    load_floats: Ref[Float]
    mass_memory: Ref[Float]
    mass_pieces: Int[7]  # offsets of MassValues
    drivers: Ref[Driver]
    drive: Ref[Jet]  # rows of each driver and of each number that is a function of time
    times: Ref[Float]  # of outputs
    extra: Ref[Float]  # forces of loads that Python calls
    active: Ref[Float]  # a factor for each equation: 1, or 0 where it does not hold (a stop that is not reached)
    compliances: Ref[Float]  # per equation: 1/I of a row of a joint's inertia, else 0; only if there are such rows
    stops: Ref[Stop]
    bounds: Ref[Bound]
    soft_evaluator: Address
    soft: Ref[Soft]
    soft_floats: Ref[Float]  # of the evaluator of soft rows
    soft_memory: Ref[Float]  # of SoftWork
    soft_solver: Address  # zero if soft rows do not act in the equations of motion
    feedback: Address  # of what adds Baumgarte's terms (_feedback), or zero
    instant: Address  # of the equations at one instant (_instant)
    stop_solver: Address  # of the events at limits (_stops), or zero
    pose_algebra: Address  # of poses alone, to which rate rows do not belong
    pose_pattern: Ref[Pattern]
    guards: Ref[Int]  # rows that exclude opposite axes
    pose_equations: Ref[Int]  # the number of each of its equations among all equations, if there are rate rows
    bodies: Int
    coordinates: Int
    rows: Int
    equations: Int
    driven: Int  # number of drivers
    asks: Int  # whether Python computes forces of loads
    stop_count: Int
    guard_count: Int
    rated: Int  # number of rate rows, which are equations of velocities and accelerations, but not of poses
    timed: Int  # numbers that are functions of time
    massless: Int  # whether M is singular
    timed_places: Ref[Int]
    pieces: Int[...]  # offsets of Work


class Work(Workspace):
    """Of a run."""

    evaluation: Piece  # of the evaluator
    values: Piece  # f, then γ
    jacobian: Piece  # J, then Ĵ
    matrix: Piece  # its factor
    x: Piece  # (b, c), then (u, λ)
    scratch: Piece  # of the linear algebra
    new_v: Piece
    new_q: Piece
    moved_q: Piece
    shift: Piece  # a tangent vector
    new_a: Piece
    multipliers: Piece
    weights: Piece  # Weights
    accelerations: Piece  # the last HISTORY, a ring
    node_times: Piece  # of these
    stages: Piece  # of a Runge–Kutta step: of each θ̇ and v̇; then θ
    tableau: Piece  # of a Runge–Kutta method: its lower triangle, row by row; the last row are the weights
    stage_nodes: Piece
    error_weights: Piece
    old_q: Piece  # before the last step
    old_v: Piece
    end_multipliers: Piece
    scales: Piece  # D
    pose_scales: Piece
    pose_matrix: Piece
    compliances: Piece  # E, per equation; only if joints have inertias
    pose_compliances: Piece
    drift: Piece  # −∂f/∂t, then numbers that are kept meanwhile
    rest: Piece  # zeros: a velocity
    passes: Piece  # where M is singular: (b, c), the last u, and its last change


class ForceWork(Workspace):
    """Of the forces of constraints."""

    values: Piece  # f
    jacobian: Piece  # J, then J̃
    x: Piece  # (b, c), then (u, λ̃)
    scratch: Piece  # of the linear algebra
    matrix: Piece  # the factor
    evaluation: Piece  # of the evaluator


class Rule(Table):
    """Weights of ∫ and ∬ of a polynomial."""

    once: Float[NODES]
    twice: Float[NODES]


class Weights(Table):
    """Of Adams' method: rules PREDICTOR, CORRECTOR, LOWER."""

    nodes: Float[NODES]
    partial: Float[NODES]  # scratch
    rules: Rule[...]


RULES: Final = 3


class Control(Projection):
    """Of an integrator: floats, read and written."""

    phase: Float  # BEGIN, PREDICT, …
    time: Float  # [s] reached
    step: Float  # [s]
    end: Float  # [s]
    rtol: Float  # 0 for constant steps
    order: Float  # of the predictor
    known: Float  # number of accelerations that are kept
    head: Float  # place of the last of them
    hold: Float  # steps since the last change of step
    fresh: Float  # whether weights must be computed
    taken: Float  # number of steps
    refused: Float  # number of steps
    chunk: Float  # steps allowed in this call
    error: Float  # the largest of a step
    last_error: Float  # of the last step
    length: Float  # extent [m]
    proximal: Float  # iterations of a solution
    least_epsilon: Float  # to which SOLVE may reduce epsilon where iterations are slow; 0: their number is proximal
    redundant: Float  # whether rows were seen to be redundant
    drive_at: Float  # next row of MotionJob.drive
    drive_count: Float  # rows of MotionJob.drive
    ask_time: Float  # [s] of an evaluation
    sample: Float  # next output
    samples: Float  # their number
    least_step: Float  # [s]
    exact: Float  # a larger shift onto the constraints needs another J
    stage: Float  # of a Runge–Kutta step
    step_end: Float  # [s]
    base: Float  # [s] where constant steps begin
    count: Float  # of constant steps since then
    event: Float  # 1 + the stop that is reached or left
    low: Float  # [s] bracket of an event
    low_gap: Float
    high: Float  # [s]
    high_gap: Float
    whole: Float  # the step repeated up to an extreme of a coordinate; −1: taken as a whole; 0: neither
    uneven: Float  # steps until all nodes are even
    shifted: Float  # the largest shift onto the constraints
    most_step: Float  # [s]
    stabilization: Float  # PROJECTED, …
    gain: Float  # α of Baumgarte [1/s]
    largest_step: Float  # [s] so far
    most_turn: Float  # [rad] of a body in a step; infinite if no stop needs it
    turn_step: Float  # [s] in which the fastest body turns so far
    compliant: Float  # number of rows of joints' inertias
    careful: Float  # steps whose predicted poses are projected exactly: after one that was refused
