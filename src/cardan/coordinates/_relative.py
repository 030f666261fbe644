"""Kernels of the relative formulation: joint coordinates along a spanning tree, loops closed by what joints were cut.

One body hangs on another, i → j, by a joint with frames C_ij at s_ij on i and C_ji at s_ji on j:

    A_j = A_i C_ij A″ C_jiᵀ,   r_j = r_i + A_i s_ij + A_i C_ij d″ − A_j s_ji.                       [Liu2013] eqs. 9, 10

A″ and d″ depend on the joint's own coordinates: d″ has TRANSLATIONS of them (1: z, 2: x and y, 3: all), then A″ has
those of its TURN: none, an angle about z, two angles of a cross, Rz(α) B Rz(−β) with B swapping z and x, or four
Euler parameters.  A screw turns about z and is carried along by ``pitch`` per radian.

The derivative of a constraint f(x₁, …) is the sum (17) of ∂f/∂x·∂x/∂q.  The recursions (13) and (16) carry ∂x/∂q from
the root to the body; multiplied from the left by the one row ∂f/∂x they run the other way, from the body to the root.
The row that is carried then is a force F = Σ∂f/∂P and a moment M about the joint's point: a joint with axis a has the
entries a·F for a displacement and a·M for an angle.  So the cost is that of the path, not of its square.

Nothing above the lowest common ancestor c of all bodies of f is computed.  f is taken of the features as c sees them,
A_c⁻¹(P − r_c), A_c⁻¹v, p_c⁻¹ ⊗ x.  These are products of the transformations (9), (10) of the joints from c down to
each body, all above having cancelled; so f depends on the coordinates of the joints on these paths below c, on no
others.  Nor does it matter whose eyes are taken: a primitive states how features lie to each other, so that its value
is the same in all axes, or is a vector that is turned along with them, as Q − P is (a primitive of the user's is
tried, see :mod:`cardan.coordinates.indifference`).  Where it is neither, and where a feature is on the ground, c is the
ground.

What an unknown means.  In the paper's form (EULER) unknowns are changes of the coordinates: turning joint k swings
all that hangs on it.  A thousand small angles then add up to many turns, and no step of a long chain is short enough.
So the other form asks each body to turn by z about its own joint's axis *as seen from a body REF above it*, mostly the
ground:  δθ_k = z_k − a·(ω_parent − ω_ref).  In the row, the moment Σ a τ that is taken up by the unknowns of joint k
goes to REF, only the rest to the parent.  REF is the lowest of the common ancestors of the constraints whose paths go
through k.  It is c or below c for each of them, so ω_parent − ω_ref is a sum of rates between bodies that are not
above c, and of unknowns z below c alone: the rows stay as short as they were.
"""

from math import atan2, cos, nan, pi, sin, sqrt

from cardan._jit import cut, evaluator, inner, tail
from cardan.coordinates._features import (
    derivatives,
    multiply,
    update_features,
    update_matrices,
    update_primitive,
    update_turns,
)
from cardan.solvers.abi import ENTER, LEAVE, RESIDUAL, RETRACT
from cardan.system.layout import (
    BODIES,
    CODE,
    COLUMN,
    COMPONENTS,
    FEATURE,
    FEATURES,
    KIND,
    ORIENTATION,
    PAR,
    POINT,
    POSE,
    RECORD,
    ROW,
    ROWS,
    SLOT,
    SLOTS,
    TURN,
    TURNS,
    WIDEST,
)

# header
TREE = 0  # where each table begins
CUTS = 1
SYSTEM = 2
CUT_COUNT = 3
EULER = 4  # 1: Euler parameters with a normalisation row each, unknowns are changes of coordinates
NORMS = 5  # first normalisation row
NORM_ENTRIES = 6  # and its first Jacobian entry
COORDINATE_COUNT = 7
FRAMES = 8  # where each part of the work array begins; the poses are the first
NEW = 9
WRENCHES = 10
WORLD = 11  # features of the constraint at hand, in world
OWN = 12  # of the shared kernels
TREE_HEADER = 13

# one record per body, parents first
T_BODY = 0
T_PARENT = 1  # body, −1: the ground
T_TRANSLATIONS = 2
T_TURN = 3
T_COORDINATE = 4
T_UNKNOWN = 5
T_FLOATS = 6  # where its floats begin: c_ij (4), s_ij (3), c_ji (4), s_ji (3), pitch per radian
T_REF = 7  # body, −1: the ground
T_COUNTED = 8  # ± (1 + number of the turn that the angle about z is, as its sign says), 0: none
T_RECORD = 9
T_FLOATS_SIZE = 15

STILL, ABOUT_Z, CROSSED, ANYHOW = 0, 1, 2, 3  # TURN

# one record per cut constraint, then the place of each slot's body on the path (−1: above it), then the path
C_RECORD = 0
C_LENGTH = 1
C_START = 2
C_STRIDE = 3
C_FROM = 4  # body that the features are seen from, −1: the ground
C_HEADER = 5
P_TREE = 0  # record of the body in the tree
P_PARENT = 1  # place of the parent on the path, −1: above it
P_REF = 2  # place of REF on the path, −1: above it
P_COLUMN = 3
P_ENTRY = 4

FRAME = 13  # floats per body: axes of the joint's frame on the parent as columns (9), their scale, c_k
WRENCH = 7  # F, M about c_k, and the dilation Σ∂f/∂P·(P − c_k), which Euler parameters off the unit sphere cause

SCRATCH = 32  # floats that placing a body takes, and a free moment behind the wrenches

HALF_ROOT = sqrt(0.5)
MOST_TURNS = 2.0**53  # from there on not every whole number is a float


@inner
def turn_vector(p, u, out):
    """out ← A(p) u = (e₀² − e·e) u + 2 (e·u) e + 2 e₀ e × u, for p of any length."""
    trace = p[0] * p[0] - p[1] * p[1] - p[2] * p[2] - p[3] * p[3]
    eu = 2.0 * (p[1] * u[0] + p[2] * u[1] + p[3] * u[2])
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        out[i] = trace * u[i] + eu * p[i + 1] + 2.0 * p[0] * (p[j + 1] * u[k] - p[k + 1] * u[j])


@inner
def multiply_conjugate(p, s, out):
    """out ← p ⊗ s*."""
    out[0] = p[0] * s[0] + p[1] * s[1] + p[2] * s[2] + p[3] * s[3]
    for i in range(1, 4):
        j = i % 3 + 1
        k = j % 3 + 1
        out[i] = -p[0] * s[i] + p[i] * s[0] - p[j] * s[k] + p[k] * s[j]


@inner
def conjugate_multiply(p, s, out):
    """out ← p* ⊗ s."""
    out[0] = p[0] * s[0] + p[1] * s[1] + p[2] * s[2] + p[3] * s[3]
    for i in range(1, 4):
        j = i % 3 + 1
        k = j % 3 + 1
        out[i] = p[0] * s[i] - p[i] * s[0] - p[j] * s[k] + p[k] * s[j]


@inner
def nearest_turn(angle, wanted):
    """angle, with as many whole turns added as bring it nearest to wanted; NaN where these cannot be counted."""
    turns = (wanted - angle) / (2.0 * pi)
    if not abs(turns) < MOST_TURNS:
        return nan
    return angle + 2.0 * pi * float(int(turns + 0.5 if turns > 0.0 else turns - 0.5))


@inner
def set_frame(at, ints, floats, poses, frame, scratch):
    """Axes (unit, in columns) and scale of the joint's frame on the parent; scratch ← its orientation, then its place.

    The scale |p|² is one but for Euler parameters off the unit sphere.
    """
    parent = ints[at + T_PARENT]
    f = ints[at + T_FLOATS]
    if parent < 0:
        for i in range(4):
            scratch[i] = floats[f + i]
        for i in range(3):
            scratch[4 + i] = floats[f + 4 + i]
    else:
        pose = cut(poses, POSE * parent, POSE)
        multiply(tail(pose, 3), tail(floats, f), scratch)
        turn_vector(tail(pose, 3), tail(floats, f + 4), cut(scratch, 4, 3))
        for i in range(3):
            scratch[4 + i] += pose[i]
    scale = scratch[0] * scratch[0] + scratch[1] * scratch[1] + scratch[2] * scratch[2] + scratch[3] * scratch[3]
    for k in range(3):
        e_k = 2.0 * scratch[k + 1]
        i = (k + 1) % 3
        j = (k + 2) % 3
        # column k of A(p) / |p|²: (e₀² − e·e) I + 2 e eᵀ + 2 e₀ ẽ with e₀² − e·e = 2 (e₀² + e_k²) − |p|² − 2 e_k²
        frame[3 * k + k] = 2.0 * (scratch[0] * scratch[0] + scratch[k + 1] * scratch[k + 1]) / scale - 1.0
        frame[3 * i + k] = (e_k * scratch[i + 1] + 2.0 * scratch[0] * scratch[j + 1]) / scale
        frame[3 * j + k] = (e_k * scratch[j + 1] - 2.0 * scratch[0] * scratch[i + 1]) / scale
    frame[9] = scale


@inner
def read_turn(turn, relative, out):
    """Coordinates of the turn nearest to a relative orientation: what is left of it after the least turn aside."""
    w = relative[0]
    x = relative[1]
    y = relative[2]
    z = relative[3]
    if turn == ABOUT_Z:
        angle = 2.0 * atan2(z, w)
        if angle > pi:
            angle -= 2.0 * pi
        elif angle <= -pi:
            angle += 2.0 * pi
        out[0] = angle
    elif turn == CROSSED:
        out[0] = atan2(y * z - w * x, x * z + w * y)  # of z_b about z_a
        out[1] = atan2(y * z + w * x, x * z - w * y)  # of z_a about z_b
    else:
        n = sqrt(w * w + x * x + y * y + z * z)
        for i in range(4):
            out[i] = relative[i] / n


@inner
def set_relative(turn, c, out):
    """out ← quaternion of A″ from the coordinates of the turn."""
    if turn == ABOUT_Z:
        out[0] = cos(0.5 * c[0])
        out[1] = 0.0
        out[2] = 0.0
        out[3] = sin(0.5 * c[0])
    elif turn == CROSSED:  # Rz(α) ⊗ (0, √½, 0, √½) ⊗ Rz(−β)
        plus = 0.5 * (c[0] + c[1])
        minus = 0.5 * (c[0] - c[1])
        out[0] = -HALF_ROOT * sin(minus)
        out[1] = HALF_ROOT * cos(plus)
        out[2] = HALF_ROOT * sin(plus)
        out[3] = HALF_ROOT * cos(minus)
    elif turn == ANYHOW:
        for i in range(4):
            out[i] = c[i]
    else:
        out[0] = 1.0
        out[1] = 0.0
        out[2] = 0.0
        out[3] = 0.0


@inner
def place(at, unit, ints, floats, c, poses, frame, scratch):
    """Pose of the body from its joint's coordinates c and from what :func:`set_frame` left in frame and scratch."""
    f = ints[at + T_FLOATS]
    count = ints[at + T_TRANSLATIONS]
    turn = ints[at + T_TURN]
    pose = cut(poses, POSE * ints[at + T_BODY], POSE)
    first = 2 if count == 1 else 0
    for i in range(3):
        s = 0.0
        for k in range(count):
            s += frame[3 * i + first + k] * c[k]
        if turn == ABOUT_Z:
            s += frame[3 * i + 2] * floats[f + 14] * c[count]
        frame[10 + i] = scratch[4 + i] + frame[9] * s
    relative = cut(scratch, 7, 4)
    set_relative(turn, tail(c, count), relative)
    here = cut(scratch, 11, 4)
    multiply(scratch, relative, here)
    p = tail(pose, 3)
    multiply_conjugate(here, tail(floats, f + 7), p)
    if unit:
        n = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3])
        for i in range(4):
            p[i] /= n
    arm = cut(scratch, 7, 3)
    turn_vector(p, tail(floats, f + 11), arm)
    for i in range(3):
        pose[i] = frame[10 + i] - arm[i]


@inner
def choose(at, retracting, poses_size, ints, floats, old, step, wanted, poses, frame, scratch, c):
    """c ← coordinates of the joint: those of wanted's pose, or those moved by a step from the poses wanted."""
    f = ints[at + T_FLOATS]
    o = POSE * ints[at + T_BODY]
    count = ints[at + T_TRANSLATIONS]
    turn = ints[at + T_TURN]
    ref = ints[at + T_REF]
    target = cut(scratch, 15, 4)
    for i in range(4):
        target[i] = wanted[o + 3 + i]
    if retracting:
        for i in range(count):
            c[i] = old[i] + step[i]
        if turn == STILL:
            return
        if turn == ANYHOW:
            angle = 0.0
            for i in range(3):
                angle += step[count + i] * step[count + i]
            angle = sqrt(angle)
            # sin(angle/2)/angle; below 1e-4 the next term of its series, angle⁴/3840, is under 1e-19
            ratio = sin(0.5 * angle) / angle if angle > 1e-4 else 0.5 - angle * angle / 48.0
            small = cut(scratch, 7, 4)
            small[0] = cos(0.5 * angle)
            for i in range(3):
                small[i + 1] = ratio * step[count + i]
            multiply(tail(wanted, o + 3), small, target)
        if ref >= 0:  # turned along with REF
            small = cut(scratch, 7, 4)
            before = cut(scratch, 11, 4)
            conjugate_multiply(tail(wanted, POSE * ref + 3), target, small)
            multiply(cut(poses, POSE * ref + 3, 4), small, before)
            for i in range(4):
                target[i] = before[i]
    turned = cut(scratch, 7, 4)
    relative = cut(scratch, 11, 4)
    multiply(target, tail(floats, f + 7), turned)
    conjugate_multiply(scratch, turned, relative)
    if retracting:
        if turn == ANYHOW:
            read_turn(turn, relative, tail(c, count))
        else:
            found = cut(scratch, 7, 2)
            read_turn(turn, relative, found)
            for i in range(2 if turn == CROSSED else 1):
                c[count + i] = nearest_turn(found[i], old[count + i]) + step[count + i]
        return
    if turn != STILL:
        read_turn(turn, relative, tail(c, count))
        counted = ints[at + T_COUNTED]
        if counted > 0:
            c[count] = nearest_turn(c[count], wanted[poses_size + counted - 1])
        elif counted < 0:
            c[count] = nearest_turn(c[count], -wanted[poses_size - counted - 1])
    # the reference point as near as the translations let it be to where it was, the body turned as it will be
    set_relative(turn, tail(c, count), turned)
    multiply(scratch, turned, relative)
    multiply_conjugate(relative, tail(floats, f + 7), target)
    arm = cut(scratch, 7, 3)
    turn_vector(target, tail(floats, f + 11), arm)
    first = 2 if count == 1 else 0
    for k in range(count):
        c[k] = 0.0
        for i in range(3):
            c[k] += frame[3 * i + first + k] * (wanted[o + i] + arm[i] - scratch[4 + i])


@inner
def walk(op, ints, floats, q, step, wanted, poses, frames, scratch, out):
    """Poses of all bodies, parents first; for ENTER and RETRACT of coordinates that are chosen on the way, into out."""
    unit = ints[EULER] == 0 or op == ENTER
    at = ints[TREE]
    count = POSE * ints[ints[SYSTEM] + BODIES]
    for _ in range(ints[ints[SYSTEM] + BODIES]):
        k = ints[at + T_COORDINATE]
        frame = cut(frames, FRAME * ints[at + T_BODY], FRAME)
        set_frame(at, ints, floats, poses, frame, scratch)
        coordinates = tail(q, k)
        if op == ENTER or op == RETRACT:
            coordinates = tail(out, k)
            u = tail(step, ints[at + T_UNKNOWN])
            choose(at, op == RETRACT, count, ints, floats, tail(q, k), u, wanted, poses, frame, scratch, coordinates)
        place(at, unit, ints, floats, coordinates, poses, frame, scratch)
        at += T_RECORD


@inner
def count_turns(ints, floats, before, poses, own, out):
    """Angles behind the coordinates in out ← those of the poses, within half a turn of the angles behind ``before``.

    An angle that is a coordinate of the tree itself has its whole turns from there.
    """
    system = tail(ints, ints[SYSTEM])
    first = POSE * system[BODIES]
    angles = cut(out, ints[COORDINATE_COUNT], system[TURNS])
    update_turns(system, floats, before, poses, own)
    for k in range(system[TURNS]):
        angles[k] = poses[first + k]
    at = ints[TREE]
    for _ in range(system[BODIES]):
        counted = ints[at + T_COUNTED]
        angle = tail(out, ints[at + T_COORDINATE] + ints[at + T_TRANSLATIONS])
        if counted > 0:
            angles[counted - 1] = nearest_turn(angles[counted - 1], angle[0])
        elif counted < 0:
            angles[-counted - 1] = nearest_turn(angles[-counted - 1], -angle[0])
        at += T_RECORD


@inner
def see_from(body, forward, record, system, poses, values, rows, scratch):
    """Features as a body sees them (``forward``), or ∂f/∂x, row by row, from what it is for those to that in world.

    With A = s R, s = |p|²:  P ← A⁻¹(P − r), v ← A⁻¹ v, x ← p* ⊗ x / s;  and by the chain rule d ← A⁻ᵀ d = R d / s for
    points and vectors, d ← p ⊗ d / s for orientations.
    """
    pose = cut(poses, POSE * body, POSE)
    p = cut(pose, 3, 4)
    square = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]
    turn = cut(scratch, 0, 4)
    for i in range(4):
        turn[i] = p[i] if i == 0 or not forward else -p[i]
    out = cut(scratch, 4, 4)
    first = record + RECORD + system[record + SLOTS]
    for at in range(first, first + FEATURE * system[record + FEATURES], FEATURE):
        kind = system[at + KIND]
        if kind == TURN:
            continue
        for row in range(rows):
            x = cut(values, row * system[record + COMPONENTS] + system[at + COLUMN], 4 if kind == ORIENTATION else 3)
            if kind == ORIENTATION:
                multiply(turn, x, out)
                for i in range(4):
                    x[i] = out[i] / square
            else:
                if forward and kind == POINT:
                    for i in range(3):
                        x[i] -= pose[i]
                turn_vector(turn, x, out)  # by |p|² R, so that 1/s² is left
                for i in range(3):
                    x[i] = out[i] / (square * square)


@inner
def gather(record, loop, ints, system, frames, features, derivative, wrenches):
    """Force and moment of every row on every body that the constraint's features are on, features in world."""
    rows = system[record + ROWS]
    slots = system[record + SLOTS]
    components = system[record + COMPONENTS]
    length = ints[loop + C_LENGTH]
    for i in range(WRENCH * rows * length):
        wrenches[i] = 0.0
    path = loop + C_HEADER + slots
    at = record + RECORD + slots
    for _ in range(system[record + FEATURES]):
        slot = system[at + SLOT]
        where = ints[loop + C_HEADER + slot] if slot >= 0 else -1  # turns have no derivative, and no body
        if where >= 0:
            kind = system[at + KIND]
            column = system[at + COLUMN]
            x = tail(features, column)
            d = tail(derivative, column)
            body = ints[ints[path + P_ENTRY * where + P_TREE] + T_BODY]
            c = cut(frames, FRAME * body + 10, 3)
            for row in range(rows):
                w = cut(wrenches, WRENCH * (rows * where + row), WRENCH)
                o = row * components
                if kind == ORIENTATION:  # δx = ½ (0, ω) ⊗ x + σ x, half of which is the dilation 2σ
                    for i in range(1, 4):
                        j = i % 3 + 1
                        k = j % 3 + 1
                        w[i + 2] += 0.5 * (-d[o] * x[i] + d[o + i] * x[0] + d[o + k] * x[j] - d[o + j] * x[k])
                    w[6] += 0.5 * (d[o] * x[0] + d[o + 1] * x[1] + d[o + 2] * x[2] + d[o + 3] * x[3])
                else:
                    v0 = x[0]
                    v1 = x[1]
                    v2 = x[2]
                    if kind == POINT:
                        v0 -= c[0]
                        v1 -= c[1]
                        v2 -= c[2]
                        for i in range(3):
                            w[i] += d[o + i]
                    w[3] += v1 * d[o + 2] - v2 * d[o + 1]
                    w[4] += v2 * d[o] - v0 * d[o + 2]
                    w[5] += v0 * d[o + 1] - v1 * d[o]
                    w[6] += v0 * d[o] + v1 * d[o + 1] + v2 * d[o + 2]
        at += FEATURE


@inner
def take_up(turn, euler, pitch, c, frame, p, w, free, row):
    """Entries of a joint's turn into row; free ← the moment that its unknowns take up."""
    for i in range(3):
        free[i] = 0.0
    if turn == STILL:
        return
    if turn == ANYHOW:
        if euler:
            # (σ, ω/2) = c* ⊗ δc / |c|² with ω in the axes of frame b: the row is c ⊗ (2 D, 2 R_bᵀ M) / |c|²
            square = c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + c[3] * c[3]
            m = free  # R_aᵀ M; frame b is turned from frame a by c
            for k in range(3):
                m[k] = frame[k] * w[3] + frame[3 + k] * w[4] + frame[6 + k] * w[5]
            # c ⊗ (0, R_cᵀ m) = (0, m) ⊗ c, since c ⊗ u ⊗ c* = |c|² R_c u
            row[0] = 2.0 * (w[6] * c[0] - m[0] * c[1] - m[1] * c[2] - m[2] * c[3]) / square
            for i in range(1, 4):
                j = i % 3 + 1
                k = j % 3 + 1
                row[i] = 2.0 * (w[6] * c[i] + m[i - 1] * c[0] + m[j - 1] * c[k] - m[k - 1] * c[j]) / square
            return
        for i in range(3):
            free[i] = w[3 + i]
        # Aᵀ M with A(p): the vector part of p* ⊗ (0, M) ⊗ p
        es = 2.0 * (p[1] * w[3] + p[2] * w[4] + p[3] * w[5])
        trace = p[0] * p[0] - p[1] * p[1] - p[2] * p[2] - p[3] * p[3]
        for i in range(3):
            j = (i + 1) % 3
            k = (i + 2) % 3
            row[i] = trace * w[3 + i] + es * p[i + 1] - 2.0 * p[0] * (p[j + 1] * w[3 + k] - p[k + 1] * w[3 + j])
        return
    moment = frame[2] * w[3] + frame[5] * w[4] + frame[8] * w[5]
    if turn == ABOUT_Z:
        moment += pitch * frame[9] * (frame[2] * w[0] + frame[5] * w[1] + frame[8] * w[2])
    row[0] = moment
    for i in range(3):
        free[i] = moment * frame[3 * i + 2]
    if turn == ABOUT_Z:
        return
    # z_b is x_a turned by α about z_a
    ca = cos(c[0])
    sa = sin(c[0])
    moment = 0.0
    for i in range(3):
        moment += (ca * frame[3 * i] + sa * frame[3 * i + 1]) * w[3 + i]
    row[1] = -moment
    for i in range(3):
        free[i] += moment * (ca * frame[3 * i] + sa * frame[3 * i + 1])


@inner
def descend(rows, slots, loop, ints, floats, q, poses, frames, wrenches, free, jacobian):
    """From the bodies of a constraint to the root: entries of every joint on the path, and what its parent is left."""
    euler = ints[EULER] == 1
    length = ints[loop + C_LENGTH]
    start = ints[loop + C_START]
    stride = ints[loop + C_STRIDE]
    path = loop + C_HEADER + slots
    for where in range(length - 1, -1, -1):
        here = path + P_ENTRY * where
        at = ints[here + P_TREE]
        parent = ints[here + P_PARENT]
        ref = ints[here + P_REF]
        body = ints[at + T_BODY]
        frame = cut(frames, FRAME * body, FRAME)
        count = ints[at + T_TRANSLATIONS]
        turn = ints[at + T_TURN]
        c = tail(q, ints[at + T_COORDINATE] + count)
        pitch = floats[ints[at + T_FLOATS] + 14]
        first = 2 if count == 1 else 0
        column = ints[here + P_COLUMN]
        for r in range(rows):
            w = cut(wrenches, WRENCH * (rows * where + r), WRENCH)
            entry = cut(jacobian, start + r * stride + column, stride - column)  # the rest of the row
            for k in range(count):
                a = first + k
                entry[k] = frame[9] * (frame[a] * w[0] + frame[3 + a] * w[1] + frame[6 + a] * w[2])
            take_up(turn, euler, pitch, c, frame, cut(poses, POSE * body + 3, 4), w, free, tail(entry, count))
            if ref >= 0 and not euler:
                other = cut(wrenches, WRENCH * (rows * ref + r), WRENCH)
                for i in range(3):
                    other[3 + i] += free[i]
            if parent >= 0:
                up = cut(frames, FRAME * ints[ints[path + P_ENTRY * parent + P_TREE] + T_BODY] + 10, 3)
                other = cut(wrenches, WRENCH * (rows * parent + r), WRENCH)
                for i in range(3):
                    j = (i + 1) % 3
                    k = (i + 2) % 3
                    other[i] += w[i]
                    moment = w[3 + i] if euler else w[3 + i] - free[i]
                    other[3 + i] += moment + (frame[10 + j] - up[j]) * w[k] - (frame[10 + k] - up[k]) * w[j]
                    other[6] += (frame[10 + i] - up[i]) * w[i]
                other[6] += w[6]


@inner
def normalise(ints, q, out, jacobian, with_jacobian):
    """cᵀc − 1 of every joint with Euler parameters, and its row, which has the joint's own unknowns only."""
    row = ints[NORMS]
    entry = ints[NORM_ENTRIES]
    at = ints[TREE]
    for _ in range(ints[ints[SYSTEM] + BODIES]):
        if ints[at + T_TURN] == ANYHOW:
            count = ints[at + T_TRANSLATIONS]
            k = ints[at + T_COORDINATE] + count
            s = -1.0
            for i in range(4):
                s += q[k + i] * q[k + i]
            out[row] = s
            row += 1
            if with_jacobian:
                for i in range(count):
                    jacobian[entry + i] = 0.0
                for i in range(4):
                    jacobian[entry + count + i] = 2.0 * q[k + i]
                entry += count + 4
        at += T_RECORD


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    euler = ints[EULER] == 1
    system = tail(ints, ints[SYSTEM])
    bodies = system[BODIES]
    coordinates = ints[COORDINATE_COUNT]
    poses = cut(work, 0, ints[FRAMES])
    frames = cut(work, ints[FRAMES], ints[NEW] - ints[FRAMES])
    new = cut(work, ints[NEW], ints[WRENCHES] - ints[NEW])
    wrenches = cut(work, ints[WRENCHES], ints[WORLD] - ints[WRENCHES])
    world = cut(work, ints[WORLD], ints[OWN] - ints[WORLD])
    own = tail(work, ints[OWN])
    scratch = cut(wrenches, 0, SCRATCH)
    added = op == RETRACT and euler
    if added:
        for i in range(coordinates + system[TURNS]):
            out[i] = q[i] + step[i] if i < coordinates else q[i]
        if system[TURNS] == 0:
            return 0
    if op != ENTER:
        walk(RESIDUAL, ints, floats, q, step, q, poses, frames, scratch, out)
        for i in range(system[TURNS]):
            poses[POSE * bodies + i] = q[coordinates + i]
    if op == LEAVE:
        for i in range(POSE * bodies + system[TURNS]):
            out[i] = poses[i]
        return 0
    if op == ENTER or op == RETRACT:
        before = q if op == ENTER else poses
        walk(RESIDUAL if added else op, ints, floats, out if added else q, step, before, new, frames, scratch, out)
        if system[TURNS] > 0:
            count_turns(ints, floats, before, new, own, out)
        return 0
    update_matrices(bodies, poses, own)
    loop = ints[CUTS]
    for _ in range(ints[CUT_COUNT]):
        record = ints[loop + C_RECORD]
        slots = system[record + SLOTS]
        rows = system[record + ROWS]
        x = cut(own, 9 * bodies, system[WIDEST])
        update_features(record, system, floats, poses, own, x)
        for i in range(system[record + COMPONENTS]):
            world[i] = x[i]
        viewer = ints[loop + C_FROM]
        if viewer >= 0:
            see_from(viewer, True, record, system, poses, x, 1, scratch)
        f = cut(out, system[record + ROW], rows)
        derivative = cut(own, derivatives(system), rows * system[record + COMPONENTS])
        update_primitive(system[record + CODE], x, tail(floats, system[record + PAR]), f, derivative)
        if op != RESIDUAL:
            if viewer >= 0:
                see_from(viewer, False, record, system, poses, derivative, rows, scratch)
            gather(record, loop, ints, system, frames, world, derivative, wrenches)
            free = cut(wrenches, WRENCH * rows * ints[loop + C_LENGTH], 3)
            descend(rows, slots, loop, ints, floats, q, poses, frames, wrenches, free, jacobian)
        loop += C_HEADER + slots + P_ENTRY * ints[loop + C_LENGTH]
    if euler:
        normalise(ints, q, out, jacobian, op != RESIDUAL)
    return 0


EVALUATE = evaluator(_evaluate)
