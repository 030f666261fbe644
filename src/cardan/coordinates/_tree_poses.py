"""Poses along a spanning tree from joint coordinates, and joint coordinates from poses.

One body hangs on another, i → j, by a joint with frames C_ij at s_ij on i and C_ji at s_ji on j:

    A_j = A_i C_ij A″ C_jiᵀ,   r_j = r_i + A_i s_ij + A_i C_ij d″ − A_j s_ji.                       [Liu2013] eqs. 9, 10

A″ and d″ depend on the joint's own coordinates: d″ has TRANSLATIONS of them (1: z, 2: x and y, 3: all), then A″ has
those of its TURN: none, an angle about z, two angles of a cross, Rz(α) B Rz(−β) with B swapping z and x, or four
Euler parameters.  A screw turns about z and is carried along by ``pitch`` per radian.

What an unknown means.  In the paper's form (EULER) unknowns are changes of the coordinates: turning joint k swings
all that hangs on it.  A thousand small angles then add up to many turns, and no step of a long chain is short enough.
So the other form asks each body to turn by z about its own joint's axis *as seen from a body REF above it*, mostly the
ground:  δθ_k = z_k − a·(ω_parent − ω_ref).
"""

from math import atan2, cos, nan, pi, sin, sqrt

from cardan._jit import cut, inner, tail
from cardan.coordinates._features import multiply, update_counted_angles
from cardan.math._kernels import half_sine_ratio
from cardan.solvers.abi import ENTER, RETRACT
from cardan.system.layout import ABOUT_Z, ANGLES, ANYHOW, BODIES, CROSSED, POSE, STILL

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
T_ROTATION = 3
T_COORDINATE = 4
T_UNKNOWN = 5
T_FLOATS = 6  # where its floats begin: c_ij (4), s_ij (3), c_ji (4), s_ji (3), pitch per radian
T_REF = 7  # body, −1: the ground
T_COUNTED = 8  # ± (1 + number of the turn that the angle about z is, as its sign says), 0: none
T_RECORD = 9
T_FLOATS_SIZE = 15

FRAME = 13  # floats per body: axes of the joint's frame on the parent as columns (9), their scale, c_k

SCRATCH = 32  # floats that placing a body takes, and a free moment behind the wrenches

HALF_ROOT = sqrt(0.5)
MOST_TURNS = 2.0**53  # from there on not every whole number is a float


@inner
def rotate_vector(p, u, out):
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
        rotate_vector(tail(pose, 3), tail(floats, f + 4), cut(scratch, 4, 3))
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
def read_rotation(rotation, relative, out):
    """Coordinates of the turn nearest to a relative orientation: what is left of it after the least turn aside."""
    w = relative[0]
    x = relative[1]
    y = relative[2]
    z = relative[3]
    if rotation == ABOUT_Z:
        angle = 2.0 * atan2(z, w)
        if angle > pi:
            angle -= 2.0 * pi
        elif angle <= -pi:
            angle += 2.0 * pi
        out[0] = angle
    elif rotation == CROSSED:
        out[0] = atan2(y * z - w * x, x * z + w * y)  # of z_b about z_a
        out[1] = atan2(y * z + w * x, x * z - w * y)  # of z_a about z_b
    else:
        n = sqrt(w * w + x * x + y * y + z * z)
        for i in range(4):
            out[i] = relative[i] / n


@inner
def set_relative(rotation, c, out):
    """out ← quaternion of A″ from the coordinates of the turn."""
    if rotation == ABOUT_Z:
        out[0] = cos(0.5 * c[0])
        out[1] = 0.0
        out[2] = 0.0
        out[3] = sin(0.5 * c[0])
    elif rotation == CROSSED:  # Rz(α) ⊗ (0, √½, 0, √½) ⊗ Rz(−β)
        plus = 0.5 * (c[0] + c[1])
        minus = 0.5 * (c[0] - c[1])
        out[0] = -HALF_ROOT * sin(minus)
        out[1] = HALF_ROOT * cos(plus)
        out[2] = HALF_ROOT * sin(plus)
        out[3] = HALF_ROOT * cos(minus)
    elif rotation == ANYHOW:
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
    rotation = ints[at + T_ROTATION]
    pose = cut(poses, POSE * ints[at + T_BODY], POSE)
    first = 2 if count == 1 else 0
    for i in range(3):
        s = 0.0
        for k in range(count):
            s += frame[3 * i + first + k] * c[k]
        if rotation == ABOUT_Z:
            s += frame[3 * i + 2] * floats[f + 14] * c[count]
        frame[10 + i] = scratch[4 + i] + frame[9] * s
    relative = cut(scratch, 7, 4)
    set_relative(rotation, tail(c, count), relative)
    here = cut(scratch, 11, 4)
    multiply(scratch, relative, here)
    p = tail(pose, 3)
    multiply_conjugate(here, tail(floats, f + 7), p)
    if unit:
        n = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3])
        for i in range(4):
            p[i] /= n
    arm = cut(scratch, 7, 3)
    rotate_vector(p, tail(floats, f + 11), arm)
    for i in range(3):
        pose[i] = frame[10 + i] - arm[i]


@inner
def choose(at, retracting, poses_size, ints, floats, old, step, wanted, poses, frame, scratch, c):
    """c ← coordinates of the joint: those of wanted's pose, or those moved by a step from the poses wanted."""
    f = ints[at + T_FLOATS]
    o = POSE * ints[at + T_BODY]
    count = ints[at + T_TRANSLATIONS]
    rotation = ints[at + T_ROTATION]
    ref = ints[at + T_REF]
    target = cut(scratch, 15, 4)
    for i in range(4):
        target[i] = wanted[o + 3 + i]
    if retracting:
        for i in range(count):
            c[i] = old[i] + step[i]
        if rotation == STILL:
            return
        if rotation == ANYHOW:
            angle = 0.0
            for i in range(3):
                angle += step[count + i] * step[count + i]
            angle = sqrt(angle)
            ratio = half_sine_ratio(angle)
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
    rotated = cut(scratch, 7, 4)
    relative = cut(scratch, 11, 4)
    multiply(target, tail(floats, f + 7), rotated)
    conjugate_multiply(scratch, rotated, relative)
    if retracting:
        if rotation == ANYHOW:
            read_rotation(rotation, relative, tail(c, count))
        else:
            found = cut(scratch, 7, 2)
            read_rotation(rotation, relative, found)
            for i in range(2 if rotation == CROSSED else 1):
                c[count + i] = nearest_turn(found[i], old[count + i]) + step[count + i]
        return
    if rotation != STILL:
        read_rotation(rotation, relative, tail(c, count))
        counted = ints[at + T_COUNTED]
        if counted > 0:
            c[count] = nearest_turn(c[count], wanted[poses_size + counted - 1])
        elif counted < 0:
            c[count] = nearest_turn(c[count], -wanted[poses_size - counted - 1])
    # the reference point as near as the translations let it be to where it was, the body turned as it will be
    set_relative(rotation, tail(c, count), rotated)
    multiply(scratch, rotated, relative)
    multiply_conjugate(relative, tail(floats, f + 7), target)
    arm = cut(scratch, 7, 3)
    rotate_vector(target, tail(floats, f + 11), arm)
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
    angles = cut(out, ints[COORDINATE_COUNT], system[ANGLES])
    update_counted_angles(system, floats, before, poses, own)
    for k in range(system[ANGLES]):
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
