"""Layout of the arrays that the kernels of a session share: integer constants, inlined into kernels.

Table of a session: addresses of the cycle and of arrays, then sizes.  Hands: one record of floats each, read and
written while a servo runs.  Lengths are in metres from the system's origin, forces in N, world axes.
"""

from __future__ import annotations

from typing import Final

from cardan.dynamics import abi as dynamics_abi

MOST_HANDS: Final = 8
MOST_ROWS: Final = 6 * MOST_HANDS
MOST_EVENTS: Final = 256  # kept between two calls from Python

# table; the address of the cycle is the first entry, as that of a solver in its job
(
    CYCLE,
    JOB,
    HANDS,
    FRAMES,
    ORIGIN,
    POSES,
    FIRST_V,
    FIRST_U,
    NOISE,
    GOALS,
    STEP,
    CURVES,
    WAY,
    EVENTS,
    RECORD,
    RECORD_SIZE,
    TABLE,
) = range(17)

# a hand
KIND: Final = 0  # FREE, POINT, POSE, PUSH
BODY: Final = 1
LOCAL: Final = 2  # the grasped point in reference axes [m]
FRAME: Final = 5  # quaternion reference ← hand
NORMAL: Final = 9  # of a push, in reference axes, into the body
TARGET: Final = 12  # position [m], then quaternion, as the cycle uses them
ASKED: Final = 19  # the same, as the operator writes them
VERSION: Final = 26  # odd while ASKED is written
SEEN: Final = 27  # VERSION of TARGET
STIFFNESS: Final = 28  # [N/m]
TWIST: Final = 29  # [N m/rad]
DAMPING: Final = 30  # [N s/m]
UNTWIST: Final = 31  # [N m s/rad]
NOW: Final = 32  # position of the grasped point [m], then orientation
FORCE: Final = 39  # of the mechanism on the hand [N]
TORQUE: Final = 42  # [N m]
SPEED: Final = 45  # of the target [m/s], then of its rotation in reference axes [rad/s]
IMPULSE: Final = 51  # of the hand on the mechanism at the start of a cycle [N s], then its moment [N m s]
PULL: Final = 57  # force of the hand on the mechanism [N], then its torque [N m]
ROLE: Final = 63  # HOLDS or SPRINGS
ROW: Final = 64  # its first soft row, and their number, when it was evaluated last
ROWS: Final = 65
OFF: Final = 66  # whether a push does not act in this cycle, since it would pull
START: Final = 67  # NOW at the start of a step [m]; then of a push its normal in world axes, of a pose κ|e|² [N m]
BAD: Final = 73  # whether the target that was asked for last was refused
HAND: Final = 74

HOLDS, SPRINGS = range(2)  # values of ROLE, and with EVERY of SOFT_WHICH
EVERY: Final = 2

FREE, POINT, POSE, PUSH = range(4)  # values of KIND

# control vector: follows that of dynamics
(
    CYCLES,
    LINEARIZED,
    RESIDUAL,
    SIGMA,
    TRUST,
    SUBSTEPS,
    MOST_SUBSTEPS,
    EVENT_COUNT,
    CLOSED_BAR,
    PENDING,
    RECORDED,
    SLOPE,
    PROBED,
    REFINED,
    WIDEST,
    IN_ZONE,
    CURVED,
    LOOPED,
    MIXES,
    WALKED,
    CONTROL,
) = range(dynamics_abi.CONTROL, dynamics_abi.CONTROL + 21)

FARTHEST: Final = 1e90  # [m]: of a target, so that its square is a number

# what a cycle returns
IDLE, REACHED, MOVING, SATURATED, STUCK, FAILED = range(6)

# an event: cycle, kind, number of a stop or hand, value
E_CYCLE, E_KIND, E_NUMBER, E_VALUE, EVENT = range(5)
BIFURCATION, LIMIT_REACHED, LIMIT_LEFT, BAD_TARGET = range(4)

# a record of a drag: cycle, hand, and its target
R_CYCLE, R_HAND, R_TARGET, R_ENTRY = 0, 1, 2, 9
