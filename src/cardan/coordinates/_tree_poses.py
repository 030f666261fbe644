"""Poses along a spanning tree from joint coordinates, and joint coordinates from poses.

Body j is connected to its parent i by a joint with frames C_ij at s_ij on i and C_ji at s_ji on j:

    A_j = A_i C_ij A″ C_jiᵀ,   r_j = r_i + A_i s_ij + A_i C_ij d″ − A_j s_ji.                       [Liu2013] eqs. 9, 10

A″ and d″ depend on the joint's own coordinates: d″ has ``translations`` of them (1: z, 2: x and y, 3: all), then A″ has
those of ``rotation``: none, an angle about z, two angles of a cross, Rz(α) B Rz(−β) with B swapping z and x, or four
Euler parameters.  A screw rotates about z and moves along it by ``pitch`` per radian.  A motion of the user's own
(BY_USER) has a kernel for A″, d″ and their derivatives by its coordinates, of which there are ``translations``.

What an unknown means.  In the paper's form (EULER) unknowns are changes of the coordinates: a change in joint k rotates
every body behind it.  A thousand small angles then add up to many turns, and no step of a long chain is short enough.
So in the other form an unknown z is the rotation of a body about its own joint's axis *relative to a body REF above
it*, mostly the ground:  δθ_k = z_k − a·(ω_parent − ω_ref).

Reads the tree (:mod:`cardan.coordinates.tables`), joint coordinates or poses; writes poses, the joints' frames and,
where they are chosen, coordinates.
"""

from math import atan2, cos, nan, pi, sin, sqrt

from cardan.constraints._calls import call_value
from cardan.coordinates._features import multiply, update_counted_angles
from cardan.coordinates._records import counted_angles, pose, quaternion
from cardan.coordinates.tables import JointFrame, Limb, LimbFloats, MotionFloats, MotionScratch, Search
from cardan.kernel.jit import inner
from cardan.kernel.memory import cut, tail
from cardan.math._kernels import half_sine_ratio
from cardan.solvers.tables import ENTER, RETRACT
from cardan.system.tables import ABOUT_Z, ANYHOW, BY_USER, CROSSED, STILL

MOTION_SIZE = 12  # floats of A″ and d″
MOST_FITS = 60  # steps of Levenberg and Marquardt; a few suffice near the pose
LEAST_DAMPING = 1e-12
MOST_DAMPING = 1e8

HALF_ROOT = sqrt(0.5)
MOST_TURNS = 2.0**53  # from there on not every whole number is a float

SEARCH = Search.size


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
def set_frame(parent, joint, poses, frame, scratch):
    """Axes (unit, in columns) and scale of the joint's frame on the parent; scratch ← its orientation and position."""
    c = scratch.orientation
    position = scratch.position
    if parent < 0:
        for i in range(4):
            c[i] = joint.c_parent[i]
        for i in range(3):
            position[i] = joint.s_parent[i]
    else:
        above = pose(poses, parent)
        multiply(tail(above, 3), joint.c_parent, c)
        rotate_vector(tail(above, 3), joint.s_parent, position)
        for i in range(3):
            position[i] += above[i]
    axes = frame.axes
    scale = c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + c[3] * c[3]
    for k in range(3):
        e_k = 2.0 * c[k + 1]
        i = (k + 1) % 3
        j = (k + 2) % 3
        # column k of A(p) / |p|²: (e₀² − e·e) I + 2 e eᵀ + 2 e₀ ẽ with e₀² − e·e = 2 (e₀² + e_k²) − |p|² − 2 e_k²
        axes[3 * k + k] = 2.0 * (c[0] * c[0] + c[k + 1] * c[k + 1]) / scale - 1.0
        axes[3 * i + k] = (e_k * c[i + 1] + 2.0 * c[0] * c[j + 1]) / scale
        axes[3 * j + k] = (e_k * c[j + 1] - 2.0 * c[0] * c[i + 1]) / scale
    frame.scale = scale


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
def update_motion(limb, floats, c, scratch):
    """A″ and d″ of a motion of the user's own at its coordinates c, and their derivatives, into scratch."""
    search = MotionFloats(tail(floats, limb.numbers)).search
    numbers = tail(search.as_floats, SEARCH * limb.translations)
    call_value(limb.kernel, c, numbers, scratch.motion, scratch.partials)


@inner
def misfit(limb, floats, c, scratch):
    """½|A″ − A|² + |d″ − d|²/L² for the wanted A and d: about the square of the angle and of the distance between."""
    update_motion(limb, floats, c, scratch)
    weight = MotionFloats(tail(floats, limb.numbers)).weight
    total = 0.0
    for i in range(MOTION_SIZE):
        e = scratch.motion[i] - scratch.wanted[i]
        total += 0.5 * e * e if i < 9 else weight * weight * e * e
    return total


@inner
def fit_motion(limb, floats, c, scratch):
    """c ← coordinates of the motion that is nearest to the wanted one: the best of some, improved by damped steps."""
    count = limb.translations
    weight = MotionFloats(tail(floats, limb.numbers)).weight
    first = MotionFloats(tail(floats, limb.numbers)).search
    trial = scratch.trial
    normal = scratch.normal
    right = scratch.right
    partials = scratch.partials
    for k in range(count):
        search = Search(first, k)
        c[k] = 0.5 * (search.low + search.high)
        trial[k] = c[k]
    best = misfit(limb, floats, c, scratch)
    for k in range(count):
        search = Search(first, k)
        low = search.low
        high = search.high
        tried = int(search.tried)
        for j in range(tried):
            trial[k] = low + (high - low) * j / tried
            value = misfit(limb, floats, trial, scratch)
            if value < best:
                best = value
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
            e = scratch.motion[i] - scratch.wanted[i]
            for a in range(count):
                da = partials[count * i + a]
                right[a] -= w * da * e
                for b in range(count):
                    normal[count * a + b] += w * da * partials[count * i + b]
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
def place(limb, unit, joint, floats, c, poses, frame, scratch):
    """Pose of the body from its joint's coordinates c and from what :func:`set_frame` left in frame and scratch."""
    count = limb.translations
    rotation = limb.rotation
    here = pose(poses, limb.body)
    first = 2 if count == 1 else 0
    axes = frame.axes
    if rotation == BY_USER:
        update_motion(limb, floats, c, MotionScratch(scratch))
    for i in range(3):
        s = 0.0
        if rotation == BY_USER:
            for k in range(3):
                s += axes[3 * i + k] * MotionScratch(scratch).motion[9 + k]
        else:
            for k in range(count):
                s += axes[3 * i + first + k] * c[k]
        if rotation == ABOUT_Z:
            s += axes[3 * i + 2] * joint.pitch * c[count]
        frame.anchor[i] = scratch.position[i] + frame.scale * s
    relative = scratch.first
    if rotation == BY_USER:
        set_quaternion(MotionScratch(scratch).motion, relative)
    else:
        set_relative(rotation, tail(c, count), relative)
    orientation = scratch.second
    multiply(scratch.orientation, relative, orientation)
    p = tail(here, 3)
    multiply_conjugate(orientation, joint.c_body, p)
    if unit:
        n = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3])
        for i in range(4):
            p[i] /= n
    arm = scratch.first
    rotate_vector(p, joint.s_body, arm)
    for i in range(3):
        here[i] = frame.anchor[i] - arm[i]


@inner
def move_joint(limb, joint, old, step, before, poses, scratch, c):
    """c ← coordinates of the joint moved by a step from ``old``, at which the bodies have the poses in ``before``."""
    count = limb.translations
    rotation = limb.rotation
    ref = limb.ref
    p = quaternion(before, limb.body)
    target = scratch.target
    for i in range(4):
        target[i] = p[i]
    rotated = scratch.first
    relative = scratch.second
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
        multiply(p, rotated, target)
    if ref >= 0:  # rotated with REF
        conjugate_multiply(quaternion(before, ref), target, rotated)
        multiply(quaternion(poses, ref), rotated, relative)
        for i in range(4):
            target[i] = relative[i]
    multiply(target, joint.c_body, rotated)
    conjugate_multiply(scratch.orientation, rotated, relative)
    if rotation == ANYHOW:
        read_rotation(rotation, relative, tail(c, count))
    else:
        angles = scratch.first
        read_rotation(rotation, relative, angles)
        for i in range(2 if rotation == CROSSED else 1):
            c[count + i] = nearest_turn(angles[i], old[count + i]) + step[count + i]


@inner
def enter_motion(limb, joint, floats, here, frame, scratch, c):
    """c ← coordinates of a motion of the user's own at the pose of its body, whose relative rotation is in scratch."""
    axes = frame.axes
    wanted = scratch.wanted
    arm = scratch.first
    rotate_vector(scratch.target, joint.s_body, arm)
    for k in range(3):
        wanted[9 + k] = 0.0
        for i in range(3):
            wanted[9 + k] += axes[3 * i + k] * (here[i] + arm[i] - scratch.position[i])
    axis = scratch.trial
    for k in range(3):
        for i in range(3):
            axis[i] = 1.0 if i == k else 0.0
        rotate_vector(scratch.second, axis, arm)
        for i in range(3):
            wanted[3 * i + k] = arm[i]
    fit_motion(limb, floats, c, scratch)


@inner
def enter_joint(limb, joint, floats, wanted, angles, frame, scratch, c):
    """c ← coordinates of the joint: those of the body's pose in ``wanted``."""
    count = limb.translations
    rotation = limb.rotation
    here = pose(wanted, limb.body)
    axes = frame.axes
    target = scratch.target
    for i in range(4):
        target[i] = here[3 + i]
    rotated = scratch.first
    relative = scratch.second
    multiply(target, joint.c_body, rotated)
    conjugate_multiply(scratch.orientation, rotated, relative)
    if rotation == BY_USER:
        enter_motion(limb, joint, floats, here, frame, MotionScratch(scratch), c)
        return
    if rotation != STILL:
        read_rotation(rotation, relative, tail(c, count))
        counted = limb.counted
        if counted > 0:
            c[count] = nearest_turn(c[count], angles[counted - 1])
        elif counted < 0:
            c[count] = nearest_turn(c[count], -angles[-counted - 1])
    # the reference point as near as the translations let it be to where it was, for the body's new orientation
    set_relative(rotation, tail(c, count), rotated)
    multiply(scratch.orientation, rotated, relative)
    multiply_conjugate(relative, joint.c_body, target)
    arm = scratch.first
    rotate_vector(target, joint.s_body, arm)
    first = 2 if count == 1 else 0
    for k in range(count):
        c[k] = 0.0
        for i in range(3):
            c[k] += axes[3 * i + first + k] * (here[i] + arm[i] - scratch.position[i])


@inner
def place_all(op, tree, floats, q, step, wanted, poses, frames, scratch, out):
    """Poses of all bodies, parents first, from the coordinates q; for ENTER and RETRACT from coordinates that are
    chosen on the way, into out."""
    system = tree.system
    unit = tree.euler == 0 or op == ENTER
    angles = counted_angles(system, wanted)
    for k in range(system.bodies):
        limb = Limb(tree.limbs, k)
        joint = LimbFloats(tail(floats, limb.floats))
        frame = JointFrame(frames, limb.body)
        set_frame(limb.parent, joint, poses, frame, scratch)
        c = tail(q, limb.coordinate)
        if op == RETRACT:
            old = c
            c = tail(out, limb.coordinate)
            move_joint(limb, joint, old, tail(step, limb.unknown), wanted, poses, scratch, c)
        elif op == ENTER:
            c = tail(out, limb.coordinate)
            enter_joint(limb, joint, floats, wanted, angles, frame, scratch, c)
        place(limb, unit, joint, floats, c, poses, frame, scratch)


@inner
def update_tree_angles(tree, floats, before, poses, shared, out):
    """Counted angles behind the coordinates in out ← those of the poses, within half a turn of those in ``before``.

    An angle that is a coordinate of the tree itself has its whole turns from there.
    """
    system = tree.system
    angles = cut(out, tree.coordinates, system.angles)
    update_counted_angles(system, floats, before, poses, shared)
    of_poses = counted_angles(system, poses)
    for k in range(system.angles):
        angles[k] = of_poses[k]
    for k in range(system.bodies):
        limb = Limb(tree.limbs, k)
        counted = limb.counted
        angle = tail(out, limb.coordinate + limb.translations)
        if counted > 0:
            angles[counted - 1] = nearest_turn(angles[counted - 1], angle[0])
        elif counted < 0:
            angles[-counted - 1] = nearest_turn(angles[-counted - 1], -angle[0])
