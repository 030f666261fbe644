"""Tables of contacts that kernels read (:mod:`cardan.joints._contact`), operations and statuses of a pair."""

from __future__ import annotations

from typing import Final

from cardan.kernel.table import Address, Float, Int, Ref, Table

# operations of the solver of a pair; the last two: rolling by closest points
SOLVE, RATES, JUDGE, ROLL, ROLL_RATES = range(5)

TANGENT, ON_CURVE, CROSSED = range(3)  # forms: common normal; a point on a curve; curves that cross in space
BOUNDED, ALONG_X, ALONG_XY, ALONG_Z = range(4)  # directions of the first shape that have no end

# status of a pair, a float in the workspace; :class:`cardan.joints.contacts.ContactStatus` names them
REGULAR, FAR, DEGENERATE, EDGE, OTHER_SIDE, TRIMMED, CROSSING, JUMPED, LOST, AIMED = map(float, range(10))

ZERO: Final = 1e-300  # in place of coordinates that are all zero, which are not known

STARTS: Final = 8  # pairs of samples from which Newton's method is tried
DEGREE: Final = 9  # of the moving frame of a path


class PairNumbers(Table):
    """Numbers of a pair."""

    side: Float  # ±1
    extent: Float  # of the smaller shape [m]
    continuous: Float  # ≠ 0: a contact must stay near where it was


class Sample(Table):
    """A place on a shape from which a contact is searched for."""

    coordinates: Float[3]
    point: Float[3]
    normal: Float[3]
    least_bent: Float  # least curvature (+: away from the normal); −∞: no contact is to be made there
    most_bent: Float  # largest curvature; +∞: no contact is to be made there


class PairShape(Table):
    """One of the two shapes of a pair."""

    evaluate: Address
    ints: Ref[Int]
    floats: Ref[Float]
    freedoms: Int
    width: Int  # number of its contact coordinates
    samples: Ref[Sample]
    count: Int  # of samples
    loops: Ref[Float]  # of a trimmed face
    is_trimmed: Int


class MovingFrame(Table):
    """The moving frame of a path: breaks, then per span the coefficients of e from the highest power on."""

    spans: Float
    period: Float  # of the parameter, or 0
    twist: Float  # angle about the tangent after a period [rad]
    breaks: Float[...]


class PairTable(Table):
    """A pair of shapes; its address is the parameter of a relation.  By closest points: the solver alone."""

    solver: Address
    numbers: Ref[PairNumbers]
    form: Int  # TANGENT, ON_CURVE, CROSSED
    spinless: Int  # whether rolling is without spin
    endless: Int  # BOUNDED, ALONG_X, ALONG_XY, ALONG_Z
    shapes: Int[2 * PairShape.size]  # two records of PairShape
    path: Ref[MovingFrame]


class PairParameter(Table):
    """The parameter c of a relation."""

    address: Float  # of the table of the pair


class PairInput(Table):
    """What x of a contact begins with: the features of both frames, then the contact coordinates."""

    p_WA: Float[3]
    q_WA: Float[4]
    p_WB: Float[3]
    q_WB: Float[4]
    coordinates: Float[...]


FRAMES: Final = 4  # features of both frames
PARAMETERS: Final = PairInput.size  # of x: contact coordinates are behind these


class Candidate(Table):
    """Two samples from which a contact may be sought."""

    score: Float  # the less, the better [m²]
    first: Float  # numbers of the samples
    second: Float


class PairWork(Table):
    """The workspace of a pair, behind its contact coordinates; vectors are in the axes of a."""

    R_AB: Float[9]
    p_AB: Float[3]  # origin of the frame of b
    R_WA: Float[9]
    rows_a: Float[18]  # S¹ and its derivatives, rows of three
    rows_b: Float[18]
    normal: Float[9]  # N and its derivatives
    unit: Float[3]  # n
    matrix: Float[20]  # M and the right-hand side; scratch elsewhere
    gap: Float  # [m]
    status: Float
    step: Float[4]  # as lengths along the tangents [m]
    per_length: Float[4]  # 1/|T|
    held: Float[4]  # ≠ 0: the coordinate is at a bound
    latest: Float[12]  # u, Ω; or axes
    ranks: Float[3 * STARTS]  # STARTS candidates, the best one first; or PairMotion
    moved: Float[6]  # a sample of b: point and normal
    saved: Float[6]  # contact coordinates
    spare: Float[3]
    aim: Float[3]  # the Candidate to which the bodies are led
    least: Float  # the least relative curvature, times the size
    most: Float  # the sum of the largest curvatures of both shapes, times the size
    e: Float[4]  # of a path: quaternion of the moving frame
    turning: Float[3]  # k
    bending: Float[3]  # k'
    relative: Float[4]  # quaternion of b relative to the moving frame
    first: Float[4]  # scratch
    second: Float[4]  # scratch
    scratch: Float[...]  # of the evaluators of the shapes


class PairMotion(Table):
    """Velocities of a pair, in place of its ranks."""

    omega_a: Float[3]
    omega_b: Float[3]
    along_a: Float[3]  # of the contact point along the shape, T ṡ
    along_b: Float[3]
    turn: Float[3]  # ṅ
    bent_a: Float[3]  # S_ss ṡ ṡ
    bent_b: Float[3]
