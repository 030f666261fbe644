"""Tables that the kernels of a session and Python share, and their constants.

Lengths are in metres from the system's origin, forces in N, in world axes.  Hands are read and written while a servo
runs.
"""

from __future__ import annotations

from typing import Final

from cardan.dynamics import tables as dynamics_tables
from cardan.dynamics.tables import MotionJob
from cardan.kernel.table import Address, Float, Int, Ref, Table

MOST_HANDS: Final = 8
MOST_ROWS: Final = 6 * MOST_HANDS
MOST_EVENTS: Final = 256  # kept between two calls from Python
FARTHEST: Final = 1e90  # [m]: of a target, so that its square is a number

FREE, POINT, POSE, PUSH = range(4)  # values of Hand.kind
HOLDS, SPRINGS, EVERY = range(3)  # values of Hand.role, and with EVERY of Soft.which

# what a cycle returns
IDLE, REACHED, MOVING, SATURATED, STUCK, FAILED = range(6)

BIFURCATION, LIMIT_REACHED, LIMIT_LEFT, BAD_TARGET = range(4)  # values of Event.kind

TARGETS, LINEARIZE, SOLVE, MOVE, MOVE_ON, STAY, TAKE = range(7)  # operations of a cycle with collisions (_touching)


class Hand(Table):
    """All numbers are floats: Python sees the hands as one array."""

    kind: Float  # FREE, POINT, POSE, PUSH
    body: Float
    local: Float[3]  # the grasped point in reference axes [m]
    frame: Float[4]  # quaternion reference ← hand
    normal: Float[3]  # of a push, in reference axes, into the body
    target: Float[7]  # position [m], then quaternion, as the cycle uses them
    asked: Float[7]  # the same, as the operator writes them
    version: Float  # odd while asked is written
    seen: Float  # version of target
    stiffness: Float  # [N/m]
    twist: Float  # [N m/rad]
    damping: Float  # [N s/m]
    untwist: Float  # [N m s/rad]
    now: Float[7]  # position of the grasped point [m], then orientation
    force: Float[3]  # of the mechanism on the hand [N]
    torque: Float[3]  # [N m]
    speed: Float[6]  # of the target [m/s], then of its rotation in reference axes [rad/s]
    impulse: Float[6]  # of the hand on the mechanism at the start of a cycle [N s], then its moment [N m s]
    pull: Float[6]  # force of the hand on the mechanism [N], then its torque [N m]
    role: Float  # HOLDS or SPRINGS
    row: Float  # its first soft row, when it was evaluated last
    rows: Float  # their number
    off: Float  # whether a push does not act in this cycle, since it would pull
    start: Float[6]  # now at the start of a step [m]; then of a push its normal in world axes, of a pose κ|e|² [N m]
    bad: Float  # whether the target that was asked for last was refused
    first: Float[6]  # of a hand that holds: pull just after the impulse
    before: Float[6]  # pull at the end of the last cycle
    jump: Float[6]  # e of the last cycle (_holds) [N], then [N m]
    trend: Float[6]  # its last difference
    known: Float  # cycles that it has held
    redundant: Float  # components that the joints fix


class Goal(Table):
    """Of a driver."""

    value: Float  # to be reached
    start: Float  # that of the accepted pose


class Event(Table):
    cycle: Float
    kind: Float  # BIFURCATION, LIMIT_REACHED, LIMIT_LEFT, BAD_TARGET
    number: Float  # of a stop or a hand
    value: Float


class Entry(Table):
    """Of a recorded drag."""

    cycle: Float
    hand: Float
    target: Float[7]


class Session(Table):
    """What a cycle reads and writes."""

    cycle: Address  # the first entry, as that of a solver in its job
    job: Ref[MotionJob]
    hands: Ref[Hand]
    frames: Ref[Float]  # reference frames in body axes, seven floats per body
    origin: Ref[Float]
    poses: Ref[Float]  # r, p of the body origins
    first_v: Ref[Float]  # singular vectors of the least singular value
    first_u: Ref[Float]
    noise: Ref[Float]  # a random vector
    goals: Ref[Goal]
    step: Ref[Float]
    along: Ref[Float]  # direction of a second-order step, or the step that is made in stages
    total: Ref[Float]  # gradient in its model, or the sum of the stages
    last_stage: Ref[Float]
    stage_rates: Ref[Float]  # of all rows
    other_jacobian: Ref[Float]  # of another pose
    way: Ref[Float]  # displacement since the singular vectors were kept
    events: Ref[Event]  # a ring
    record: Ref[Entry]
    record_size: Int  # entries that there is room for; zero if nothing is recorded


class Control(dynamics_tables.Control):
    """Follows that of an integrator."""

    cycles: Float
    linearized: Float  # whether the factor at hand is that of q
    residual: Float  # the largest of a joint, relative to the extent, or in radians
    sigma: Float  # the least singular value of the joints
    trust: Float  # [rad], and of the extent: the longest sub-step
    substeps: Float  # made
    most_substeps: Float  # of a cycle
    event_count: Float
    closed_bar: Float  # of CLOSED: small pieces are closed relative to their own size
    least_closed: Float  # residual of a pose that corrections do not close further, of the extent, or in radians
    pending: Float  # whether drivers or stops are to be moved to their values
    recorded: Float  # entries of the record
    slope: Float  # derivative of the cost along the step
    probed: Float  # whether the curvature of the cost was looked at, at this pose
    refined: Float  # proximal iterations of the factor at hand
    widest: Float  # the largest sigma so far
    in_zone: Float  # whether sigma is too small for new singular vectors
    curved: Float  # whether steps are of second order
    looped: Float  # whether the joints have loops
    mixes: Float  # number of random parts that were added to singular vectors
    walked: Float  # way since the singular vectors were computed


class Loop(Table):
    """Of a servo; times in ns."""

    stop: Int  # whether it is to end
    period: Int
    spin: Int  # before a cycle is due the thread stops sleeping
    clock: Int  # its number
    gettime: Address  # zero if the system has none
    nanosleep: Address
    most: Int  # cycles
    cycles: Int  # made
    late: Int  # of these, ended after the next one was due
    missed: Int  # left out
    status: Int  # of the last cycle


class Cycle(Table):
    """State of a cycle that runs."""

    status: Int  # what it returns
    phase: Int  # of a sub-step: BASE, READY, MIDDLE, STAGE, DONE
    left: Int  # sub-steps
    changes: Int  # of limits since the last sub-step
    tries: Int  # of this sub-step
    middles: Int  # poses within it that were evaluated
    stopped: Int  # whether a limit was reached in it
    moved: Int  # whether a sub-step was made in this cycle
    nudged: Int  # whether the step is along a negative curvature
    flat: Int  # whether a step of second order is not possible here
    bent: Int  # whether the step is of second order
    is_cut: Int  # whether trust cuts it
    part: Float  # of the step that is made
    step_size: Float  # its largest component [rad], or of the extent
