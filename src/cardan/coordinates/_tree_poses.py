"""Poses along a spanning tree from joint coordinates, and joint coordinates from poses.

Body j is connected to its parent i by a joint with frames C_ij at s_ij on i and C_ji at s_ji on j:

    A_j = A_i C_ij A″ C_jiᵀ,   r_j = r_i + A_i s_ij + A_i C_ij d″ − A_j s_ji.                       [Liu2013] eqs. 9, 10

A″ and d″ depend on the joint's own coordinates: d″ has T_TRANSLATIONS of them (1: z, 2: x and y, 3: all), then A″ has
those of T_ROTATION: none, an angle about z, two angles of a cross, Rz(α) B Rz(−β) with B swapping z and x, or four
Euler parameters.  A screw rotates about z and moves along it by ``pitch`` per radian.  A motion of the user's own
(BY_USER) has a kernel for A″, d″ and their derivatives by its coordinates, of which there are T_TRANSLATIONS.

What an unknown means.  In the paper's form (EULER) unknowns are changes of the coordinates: a change in joint k rotates
every body behind it.  A thousand small angles then add up to many turns, and no step of a long chain is short enough.
So in the other form an unknown z is the rotation of a body about its own joint's axis *relative to a body REF above
it*, mostly the ground:  δθ_k = z_k − a·(ω_parent − ω_ref).

Reads the tree (layout below), joint coordinates or poses; writes poses, the joints' frames and, where they are chosen,
coordinates.
"""

from math import atan2, cos, nan, pi, sin, sqrt

from cardan.coordinates._features import multiply, update_counted_angles
from cardan.coordinates._records import counted_angles, pose, quaternion
from cardan.kernel.jit import inner
from cardan.kernel.memory import call_primitive, cut, piece, tail
from cardan.math._kernels import half_sine_ratio
from cardan.solvers.tables import ENTER, RETRACT
from cardan.system.layout import ABOUT_Z, ANGLES, ANYHOW, BODIES, BY_USER, CROSSED, STILL

# header of the integers
TREE = 0  # where each table begins
CUTS = 1
SYSTEM = 2
CUT_COUNT = 3
EULER = 4  # ≠ 0: Euler parameters with a normalisation row each, unknowns are changes of coordinates; see relative
NORMS = 5  # first normalisation row
NORM_ENTRIES = 6  # and its first Jacobian entry
COORDINATE_COUNT = 7
POSES = 8  # from here on: where each piece of the workspace begins, read by ``piece_of``
FRAMES = 9
NEW = 10  # poses after a step
WRENCHES = 11
SCRATCH = 12
WORLD = 13  # features of one constraint, in world
OWN = 14  # workspace of the kernels that all formulations share
END = 15
TREE_HEADER = 16

# one record per body, parents first
T_BODY = 0
T_PARENT = 1  # body, −1: the ground
T_TRANSLATIONS = 2
T_ROTATION = 3
T_COORDINATE = 4
T_UNKNOWN = 5
T_FLOATS = 6  # where its floats begin
T_REF = 7  # body, −1: the ground
T_COUNTED = 8  # ± (1 + number of the counted angle that the angle about z is, as its sign says), 0: none
T_KERNEL = 9  # address of the kernel of a motion of the user's own, 0: none
T_NUMBERS = 10  # and where its floats begin
T_RECORD = 11

# its floats
C_PARENT = 0  # c_ij, a quaternion
S_PARENT = 4  # s_ij
C_BODY = 7
S_BODY = 11
PITCH = 14  # per radian
T_FLOATS_SIZE = 15

# floats of a motion of the user's own: one over a length, then per coordinate a range and how many values of it are
# tried when a pose is given, then its parameters
WEIGHT = 0
SEARCH = 1
LOW, HIGH, TRIED = range(3)
SEARCH_SIZE = 3

# frame of a joint: axes of its frame on the parent as columns, then
SCALE = 9  # |p|² of the parent, one but for Euler parameters off the unit sphere
ANCHOR = 10  # c_k: where the joint's displacement ends, in world
FRAME = 13

# floats that placing a body takes: what set_frame leaves, then quaternions
BASE_ORIENTATION = 0
BASE_POSITION = 4
FIRST = 7
SECOND = 11
TARGET = 15
MOTION = 19  # from here on only with motions of the user's own: A″ row by row and d″,
MOTION_SIZE = 12
PARTIALS = 31  # their derivatives, row by row,
WANTED = 91  # and those that are searched for;
NORMAL = 103  # JᵀJ,
RIGHT = 128  # −Jᵀe and the step,
TRIAL = 133  # and where it leads
SCRATCH_SIZE = 138

MOST_FITS = 60  # steps of Levenberg and Marquardt; a few suffice near the pose
LEAST_DAMPING = 1e-12
MOST_DAMPING = 1e8

HALF_ROOT = sqrt(0.5)
MOST_TURNS = 2.0**53  # from there on not every whole number is a float

limb_at = piece(T_RECORD, 0, T_RECORD)  # (ints from TREE on, k)
frame_of = piece(FRAME, 0, FRAME)  # (frames, body)
anchor_of = piece(FRAME, ANCHOR, 3)


@inner
def piece_of(ints, work, name):
    """A piece of the workspace, by its field in the header."""
    return cut(work, ints[name], ints[name + 1] - ints[name])


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
def set_frame(parent, own, poses, frame, scratch):
    """Axes (unit, in columns) and scale of the joint's frame on the parent; scratch ← its orientation and position."""
    c = cut(scratch, BASE_ORIENTATION, 4)
    position = cut(scratch, BASE_POSITION, 3)
    if parent < 0:
        for i in range(4):
            c[i] = own[C_PARENT + i]
        for i in range(3):
            position[i] = own[S_PARENT + i]
    else:
        above = pose(poses, parent)
        multiply(tail(above, 3), tail(own, C_PARENT), c)
        rotate_vector(tail(above, 3), tail(own, S_PARENT), position)
        for i in range(3):
            position[i] += above[i]
    scale = c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + c[3] * c[3]
    for k in range(3):
        e_k = 2.0 * c[k + 1]
        i = (k + 1) % 3
        j = (k + 2) % 3
        # column k of A(p) / |p|²: (e₀² − e·e) I + 2 e eᵀ + 2 e₀ ẽ with e₀² − e·e = 2 (e₀² + e_k²) − |p|² − 2 e_k²
        frame[3 * k + k] = 2.0 * (c[0] * c[0] + c[k + 1] * c[k + 1]) / scale - 1.0
        frame[3 * i + k] = (e_k * c[i + 1] + 2.0 * c[0] * c[j + 1]) / scale
        frame[3 * j + k] = (e_k * c[j + 1] - 2.0 * c[0] * c[i + 1]) / scale
    frame[SCALE] = scale


@inner
def read_rotation(rotation, relative, out):
    """Coordinates of the joint's rotation that is nearest to a relative orientation."""
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
    """out ← quaternion of A″ from the coordinates of the joint's rotation."""
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
def set_quaternion(a, out):
    """out ← quaternion of a rotation matrix, given row by row, from its largest component."""
    largest = a[0] + a[4] + a[8]
    which = -1
    for i in range(3):
        if a[4 * i] > largest:
            largest = a[4 * i]
            which = i
    if which < 0:
        w = 0.5 * sqrt(1.0 + largest)
        out[0] = w
        out[1] = 0.25 * (a[7] - a[5]) / w
        out[2] = 0.25 * (a[2] - a[6]) / w
        out[3] = 0.25 * (a[3] - a[1]) / w
    else:
        i = which
        j = (i + 1) % 3
        k = (i + 2) % 3
        e = 0.5 * sqrt(1.0 + a[4 * i] - a[4 * j] - a[4 * k])
        out[0] = 0.25 * (a[3 * k + j] - a[3 * j + k]) / e
        out[i + 1] = e
        out[j + 1] = 0.25 * (a[3 * j + i] + a[3 * i + j]) / e
        out[k + 1] = 0.25 * (a[3 * k + i] + a[3 * i + k]) / e


@inner
def update_own(limb, floats, c, scratch):
    """A″ and d″ of a motion of the user's own at its coordinates c, and their derivatives, into scratch."""
    numbers = tail(floats, limb[T_NUMBERS] + SEARCH + SEARCH_SIZE * limb[T_TRANSLATIONS])
    call_primitive(limb[T_KERNEL], c, numbers, tail(scratch, MOTION), tail(scratch, PARTIALS))


@inner
def misfit(limb, floats, c, scratch):
    """½|A″ − A|² + |d″ − d|²/L² for the wanted A and d: about the square of the angle and of the distance between."""
    update_own(limb, floats, c, scratch)
    weight = floats[limb[T_NUMBERS] + WEIGHT]
    found = 0.0
    for i in range(MOTION_SIZE):
        e = scratch[MOTION + i] - scratch[WANTED + i]
        found += 0.5 * e * e if i < 9 else weight * weight * e * e
    return found


@inner
def fit_own(limb, floats, c, scratch):
    """c ← coordinates of the motion that is nearest to the wanted one: the best of some, improved by damped steps."""
    count = limb[T_TRANSLATIONS]
    weight = floats[limb[T_NUMBERS] + WEIGHT]
    search = tail(floats, limb[T_NUMBERS] + SEARCH)
    trial = tail(scratch, TRIAL)
    normal = tail(scratch, NORMAL)
    right = tail(scratch, RIGHT)
    for k in range(count):
        c[k] = 0.5 * (search[SEARCH_SIZE * k + LOW] + search[SEARCH_SIZE * k + HIGH])
        trial[k] = c[k]
    best = misfit(limb, floats, c, scratch)
    for k in range(count):
        low = search[SEARCH_SIZE * k + LOW]
        high = search[SEARCH_SIZE * k + HIGH]
        tried = int(search[SEARCH_SIZE * k + TRIED])
        for j in range(tried):
            trial[k] = low + (high - low) * j / tried
            found = misfit(limb, floats, trial, scratch)
            if found < best:
                best = found
                c[k] = trial[k]
        trial[k] = c[k]
    damping = 1e-3
    for _ in range(MOST_FITS):
        best = misfit(limb, floats, c, scratch)
        for a in range(count):
            right[a] = 0.0
            for b in range(count):
                normal[count * a + b] = 0.0
        for i in range(MOTION_SIZE):
            w = 0.5 if i < 9 else weight * weight
            e = scratch[MOTION + i] - scratch[WANTED + i]
            for a in range(count):
                da = scratch[PARTIALS + count * i + a]
                right[a] -= w * da * e
                for b in range(count):
                    normal[count * a + b] += w * da * scratch[PARTIALS + count * i + b]
        for a in range(count):
            normal[count * a + a] *= 1.0 + damping
            if normal[count * a + a] == 0.0:
                normal[count * a + a] = 1.0
        for a in range(count):  # elimination; the matrix is positive definite
            for b in range(a + 1, count):
                factor = normal[count * b + a] / normal[count * a + a]
                for k in range(a, count):
                    normal[count * b + k] -= factor * normal[count * a + k]
                right[b] -= factor * right[a]
        for k in range(count):
            a = count - 1 - k
            for b in range(a + 1, count):
                right[a] -= normal[count * a + b] * right[b]
            right[a] /= normal[count * a + a]
            trial[a] = c[a] + right[a]
        if misfit(limb, floats, trial, scratch) < best:
            for a in range(count):
                c[a] = trial[a]
            damping = max(0.1 * damping, LEAST_DAMPING)
        else:
            damping *= 10.0
            if not damping < MOST_DAMPING:
                break


@inner
def place(limb, unit, own, floats, c, poses, frame, scratch):
    """Pose of the body from its joint's coordinates c and from what :func:`set_frame` left in frame and scratch."""
    count = limb[T_TRANSLATIONS]
    rotation = limb[T_ROTATION]
    here = pose(poses, limb[T_BODY])
    first = 2 if count == 1 else 0
    if rotation == BY_USER:
        update_own(limb, floats, c, scratch)
    for i in range(3):
        s = 0.0
        if rotation == BY_USER:
            for k in range(3):
                s += frame[3 * i + k] * scratch[MOTION + 9 + k]
        else:
            for k in range(count):
                s += frame[3 * i + first + k] * c[k]
        if rotation == ABOUT_Z:
            s += frame[3 * i + 2] * own[PITCH] * c[count]
        frame[ANCHOR + i] = scratch[BASE_POSITION + i] + frame[SCALE] * s
    relative = cut(scratch, FIRST, 4)
    if rotation == BY_USER:
        set_quaternion(tail(scratch, MOTION), relative)
    else:
        set_relative(rotation, tail(c, count), relative)
    orientation = cut(scratch, SECOND, 4)
    multiply(scratch, relative, orientation)
    p = tail(here, 3)
    multiply_conjugate(orientation, tail(own, C_BODY), p)
    if unit:
        n = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3])
        for i in range(4):
            p[i] /= n
    arm = cut(scratch, FIRST, 3)
    rotate_vector(p, tail(own, S_BODY), arm)
    for i in range(3):
        here[i] = frame[ANCHOR + i] - arm[i]


@inner
def choose(limb, retracting, own, floats, old, step, wanted, angles, poses, frame, scratch, c):
    """c ← coordinates of the joint: those of the body's pose in ``wanted``, or those moved by a step from there."""
    body = limb[T_BODY]
    count = limb[T_TRANSLATIONS]
    rotation = limb[T_ROTATION]
    ref = limb[T_REF]
    before = pose(wanted, body)
    target = cut(scratch, TARGET, 4)
    for i in range(4):
        target[i] = before[3 + i]
    rotated = cut(scratch, FIRST, 4)
    relative = cut(scratch, SECOND, 4)
    if retracting:
        for i in range(count):
            c[i] = old[i] + step[i]
        if rotation == STILL or rotation == BY_USER:
            return
        if rotation == ANYHOW:
            angle = 0.0
            for i in range(3):
                angle += step[count + i] * step[count + i]
            angle = sqrt(angle)
            ratio = half_sine_ratio(angle)
            rotated[0] = cos(0.5 * angle)
            for i in range(3):
                rotated[i + 1] = ratio * step[count + i]
            multiply(tail(before, 3), rotated, target)
        if ref >= 0:  # rotated with REF
            conjugate_multiply(quaternion(wanted, ref), target, rotated)
            multiply(quaternion(poses, ref), rotated, relative)
            for i in range(4):
                target[i] = relative[i]
    multiply(target, tail(own, C_BODY), rotated)
    conjugate_multiply(scratch, rotated, relative)
    if retracting:
        if rotation == ANYHOW:
            read_rotation(rotation, relative, tail(c, count))
        else:
            found = cut(scratch, FIRST, 2)
            read_rotation(rotation, relative, found)
            for i in range(2 if rotation == CROSSED else 1):
                c[count + i] = nearest_turn(found[i], old[count + i]) + step[count + i]
        return
    if rotation == BY_USER:
        arm = cut(scratch, FIRST, 3)
        rotate_vector(target, tail(own, S_BODY), arm)
        for k in range(3):
            scratch[WANTED + 9 + k] = 0.0
            for i in range(3):
                scratch[WANTED + 9 + k] += frame[3 * i + k] * (before[i] + arm[i] - scratch[BASE_POSITION + i])
        axis = cut(scratch, TRIAL, 3)
        for k in range(3):
            for i in range(3):
                axis[i] = 1.0 if i == k else 0.0
            rotate_vector(relative, axis, arm)
            for i in range(3):
                scratch[WANTED + 3 * i + k] = arm[i]
        fit_own(limb, floats, c, scratch)
        return
    if rotation != STILL:
        read_rotation(rotation, relative, tail(c, count))
        counted = limb[T_COUNTED]
        if counted > 0:
            c[count] = nearest_turn(c[count], angles[counted - 1])
        elif counted < 0:
            c[count] = nearest_turn(c[count], -angles[-counted - 1])
    # the reference point as near as the translations let it be to where it was, for the body's new orientation
    set_relative(rotation, tail(c, count), rotated)
    multiply(scratch, rotated, relative)
    multiply_conjugate(relative, tail(own, C_BODY), target)
    arm = cut(scratch, FIRST, 3)
    rotate_vector(target, tail(own, S_BODY), arm)
    first = 2 if count == 1 else 0
    for k in range(count):
        c[k] = 0.0
        for i in range(3):
            c[k] += frame[3 * i + first + k] * (before[i] + arm[i] - scratch[BASE_POSITION + i])


@inner
def place_all(op, ints, floats, q, step, wanted, poses, frames, scratch, out):
    """Poses of all bodies, parents first, from the coordinates q; for ENTER and RETRACT from coordinates that are
    chosen on the way, into out."""
    system = tail(ints, ints[SYSTEM])
    unit = ints[EULER] == 0 or op == ENTER
    angles = counted_angles(system, wanted)
    limbs = tail(ints, ints[TREE])
    for k in range(system[BODIES]):
        limb = limb_at(limbs, k)
        own = tail(floats, limb[T_FLOATS])
        frame = frame_of(frames, limb[T_BODY])
        set_frame(limb[T_PARENT], own, poses, frame, scratch)
        c = tail(q, limb[T_COORDINATE])
        if op == ENTER or op == RETRACT:
            old = c
            c = tail(out, limb[T_COORDINATE])
            u = tail(step, limb[T_UNKNOWN])
            choose(limb, op == RETRACT, own, floats, old, u, wanted, angles, poses, frame, scratch, c)
        place(limb, unit, own, floats, c, poses, frame, scratch)


@inner
def update_tree_angles(ints, floats, before, poses, own, out):
    """Counted angles behind the coordinates in out ← those of the poses, within half a turn of those in ``before``.

    An angle that is a coordinate of the tree itself has its whole turns from there.
    """
    system = tail(ints, ints[SYSTEM])
    angles = cut(out, ints[COORDINATE_COUNT], system[ANGLES])
    update_counted_angles(system, floats, before, poses, own)
    found = counted_angles(system, poses)
    for k in range(system[ANGLES]):
        angles[k] = found[k]
    limbs = tail(ints, ints[TREE])
    for k in range(system[BODIES]):
        limb = limb_at(limbs, k)
        counted = limb[T_COUNTED]
        angle = tail(out, limb[T_COORDINATE] + limb[T_TRANSLATIONS])
        if counted > 0:
            angles[counted - 1] = nearest_turn(angles[counted - 1], angle[0])
        elif counted < 0:
            angles[-counted - 1] = nearest_turn(angles[-counted - 1], -angle[0])
