"""Tables of the reverse sweep of a run (:mod:`cardan.dynamics._adjoint`, :mod:`cardan.dynamics._pullback`)."""

from __future__ import annotations

from typing import Final

from cardan.dynamics.tables import MotionJob
from cardan.kernel.table import Address, Float, Int, Piece, Ref, Table, Workspace
from cardan.system.tables import SystemTable

CURVED: Final = -1  # operation of the pull-back; one that is not negative is the number of pairs of J̄

# numbers of a mass that the sweep differentiates by: m, then the inertia in principal axes, row by row
MASS_NUMBERS: Final = 10

CLOSURES: Final = 8  # projections of one pose
STAGES: Final = 6  # of a Runge–Kutta step
PAIRS: Final = 8  # of J̄ at one pose

# orders of a step beside those of Adams' predictor, which are positive
BEGUN: Final = 0  # the projection at the start
STARTED: Final = -1  # a Runge–Kutta step


# values of Kernels.linear and .curved of the two simplest forms, which most joints are made of: q − p; and of rows
# a_r·v, with v behind all a_r
DIFFERENCE, BILINEAR = 1, 2


class Kernels(Table):
    """Of one constraint."""

    linear: Int  # DIFFERENCE, BILINEAR, or RECORDED plus the address of a tape
    curved: Int
    parameters: Int  # their number


class Pull(Table):
    """A packed system whose constraints are differentiated."""

    system: Ref[SystemTable]
    floats: Ref[Float]
    gradient: Ref[Float]  # of the cost by these floats
    numbers: Ref[Int]  # of each row, its place among the weights; −1: none
    kernels: Ref[Kernels]
    weights: Int  # number of weights of a pair
    unknowns: Int
    pieces: Int[9]  # offsets of PullWork


class PullWork(Workspace):
    """Of one constraint."""

    matrices: Piece  # of all bodies
    x: Piece
    given: Piece  # what a reverse kernel reads
    found: Piece  # what it writes
    derivatives: Piece  # ∂f/∂x
    values: Piece  # f
    vectors: Piece  # of each row and body, its row of J̄
    local: Piece  # h, s', s'' of a feature: four floats each


class LoadPull(Table):
    """The loads of a run; what is differentiated by is that of Pull, and the numbers of laws and wrenches."""

    job: Ref[MotionJob]
    control: Ref[Float]
    pull: Ref[Pull]
    pull_back: Address
    numbers: Ref[Float]  # gradient by the numbers of loads
    laws: Ref[Int]  # of each law the tape of its gradients, or zero
    counts: Ref[Int]  # of each law, the number of its recorded constants
    pieces: Int[10]  # offsets of LoadPullWork


class LoadPullWork(Workspace):
    """Of loads."""

    rows: Piece  # x
    rates: Piece  # J v
    along: Piece  # J μ
    jacobian: Piece
    evaluation: Piece
    weights: Piece  # of x, of ẋ, and efforts: those of a pull-back with two pairs
    vectors: Piece  # v, μ
    scratch: Piece
    pull: Piece  # of the pull-back


class Adjoint(Table):
    """A reverse sweep."""

    job: Ref[MotionJob]
    memory: Ref[Float]  # of its workspace
    pull: Ref[Pull]
    pull_back: Address
    loads: Ref[LoadPull]
    load_pull_back: Address  # zero if there are no loads
    at_state: Address  # of what is evaluated at one state (_state_adjoint)
    rows: Ref[Float]  # of the run: time, q, v, v̇, λ after every step
    orders: Ref[Int]  # of each row: of the step that leads to it
    places: Ref[Int]  # of each row: its first row of jets in MotionJob.drive
    start: Ref[Float]  # q, v before the start was projected
    of_rows: Ref[Float]  # derivatives of the cost by the tangent of q, by v, v̇, λ of every row
    masses: Ref[Float]  # gradient by MASS_NUMBERS of every body
    gravity: Ref[Float]  # gradient
    drive: Ref[Float]  # gradient by the jets of MotionJob.drive
    tableau: Ref[Float]  # of the Runge–Kutta steps: their lower triangle, row by row
    nodes: Ref[Float]
    stages: Int
    stop: Int  # the last row to be reversed
    mismatch: Float  # largest difference of a step that is made again: of the extent, of speeds above one, or [rad]
    exact: Float  # Control.exact of steps
    stage_exact: Float  # of Runge–Kutta stages
    closure_pieces: Int[8]  # offsets of Closure
    pieces: Int[...]  # offsets of AdjointWork


class AdjointWork(Workspace):
    """Of a reverse sweep; a bar over a name means the derivative of the cost by it."""

    q_bar: Piece  # of the state at the end of the step
    v_bar: Piece
    a_bars: Piece  # of the last accelerations, a ring
    now_q: Piece  # state of an evaluation
    now_v: Piece
    now_a: Piece
    now_multipliers: Piece
    first_q: Piece  # the predicted state
    first_v: Piece
    first_a: Piece
    first_multipliers: Piece
    theta: Piece  # the step to the predicted pose, or to that of a stage
    shift: Piece  # the corrector's step
    moved: Piece
    mu: Piece
    nu: Piece
    given_nu: Piece  # λ̄
    q_part: Piece  # bars of the state of an evaluation
    v_part: Piece
    a_part: Piece
    shift_bar: Piece
    theta_bar: Piece
    pulled: Piece
    pair_weights: Piece  # f̄, then the weights of all pairs
    vectors: Piece  # of all pairs
    tape: Piece  # closures of one pose
    weights: Piece  # Weights
    stages: Piece  # of a Runge–Kutta step: of each θ̇ and v̇
    stage_bars: Piece
    pull: Piece  # of the pull-back
    loads: Piece


class Closure(Workspace):
    """A projection of a pose and its velocity."""

    q: Piece  # where J is
    step: Piece  # before it
    v: Piece
    shift: Piece  # after it
    new_v: Piece
    pose_multipliers: Piece
    multipliers: Piece
