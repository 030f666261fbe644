"""Tables of the friction of joints, shared by Python and the kernel of it (:mod:`cardan.dynamics._joint_friction`)."""

from __future__ import annotations

from cardan.kernel.table import Float, Piece, Table, Workspace

BEARING, GUIDE, THREAD, MESH = range(4)  # values of Friction.law
# |mode|: the row holds; friction acts; it acts, and rows that stick hold; no friction acts, and other rows hold
STICKS, SLIPS, RESTS, IDLES = 0.0, 1.0, 2.0, 3.0


class Friction(Table):
    """Of one joint: where its forces are read, its law, its mode, and what was found at the last instant."""

    law: Float  # BEARING, …
    mode: Float  # STICKS, or the direction of slip times SLIPS or RESTS, or IDLES
    equation: Float  # number of the row of its coordinate
    entry: Float  # first entry of this row in Ĵ
    slots: Float  # number of bodies of this row
    first: Float  # these bodies
    second: Float
    weight: Float  # of the coordinate: 1/L, or 1 of an angle
    body: Float  # of which the forces of the joint are summed
    frame: Float  # the body of frame b; −1: the ground
    sign: Float  # −1 if those forces are on body a
    origin: Float[3]  # of frame b, in the principal frame of its body, or in world [m]
    axes: Float[9]  # of frame b, likewise, one after the other
    strips: Float  # of rows that bear
    strip: Float[16]  # of each: first equation, number, first entry of the body in Ĵ, entries of a row
    kinetic: Float[3]  # coefficients [m], or pure numbers, see the laws
    static: Float[3]
    length: Float  # between both ends [m]; zero: one end
    width: Float  # [m]
    ratio: Float  # of a thread [m/rad], of gears
    multiplier: Float  # λ of the row: minus the effort
    rate: Float  # of the coordinate [rad/s or m/s]
    limit: Float  # the largest effort against the direction of slip, or against the one that threatens
    failed: Float  # whether no finite force was found


class FrictionWork(Workspace):
    """Of the friction of joints."""

    solution: Piece  # (u, λ) before
    responses: Piece  # (u, λ) to a change of the right-hand side of each row that slips
    wrenches: Piece  # six per joint that slips: of the solution, then of each response
    matrix: Piece  # of Newton's method, row by row
    right: Piece
    found: Piece  # change of the right-hand sides
    slipping: Piece  # numbers of the joints that slip
    losses: Piece  # a Losses; then the energy that friction has taken up to each output [J]


class Losses(Table):
    """Energy that friction takes, by a cubic through its power at the ends of the last steps."""

    energy: Float  # so far [J]
    last: Float  # part of the last step
    count: Float  # of nodes
    times: Float[4]  # [s], the last first
    powers: Float[4]  # [W]
