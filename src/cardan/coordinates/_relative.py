"""Kernels of the relative formulation: joint coordinates along a spanning tree, loops closed by what joints were cut.

Poses come from joint coordinates by the recursions (9), (10) of [Liu2013] (:mod:`cardan.coordinates._tree_poses`).

The derivative of a constraint f(x₁, …) is the sum (17) of ∂f/∂x·∂x/∂q.  The recursions (13) and (16) carry ∂x/∂q from
the root to the body; multiplied from the left by the one row ∂f/∂x they run the other way, from the body to the root.
The row that is carried then is a force F = Σ∂f/∂P and a moment M about the joint's point: a joint with axis a has the
entries a·F for a displacement and a·M for an angle.  So the cost is that of the path, not of its square.

Nothing above the lowest common ancestor c of all bodies of f is computed.  f is taken of the features as c sees them,
A_c⁻¹(P − r_c), A_c⁻¹v, p_c⁻¹ ⊗ x.  These are products of the transformations (9), (10) of the joints from c down to
each body, all above having cancelled; so f depends on the coordinates of the joints on these paths below c, on no
others.  Nor does it matter whose eyes are taken: a primitive states how features lie to each other, so that its value
is the same in all axes, or is a vector that is turned along with them, as Q − P is (for one of the user's that is
proved, see :mod:`cardan.constraints.indifference`).  Where it is neither, and where a feature is on the ground, c is
the ground.

In the form whose unknowns are turns as seen from a body REF, the moment Σ a τ that is taken up by the unknowns of joint
k goes to REF, only the rest to the parent.  REF is the lowest of the common ancestors of the constraints whose paths go
through k.  It is c or below c for each of them, so ω_parent − ω_ref is a sum of rates between bodies that are not
above c, and of unknowns z below c alone: the rows stay as short as they were.
"""

from math import cos, sin

from cardan._jit import cut, evaluator, inner, tail
from cardan.coordinates._features import derivatives, multiply, update_features, update_matrices, update_primitive
from cardan.coordinates._tree_poses import (
    COORDINATE_COUNT,
    CUT_COUNT,
    CUTS,
    EULER,
    FRAME,
    FRAMES,
    NEW,
    NORM_ENTRIES,
    NORMS,
    OWN,
    SCRATCH,
    SYSTEM,
    T_BODY,
    T_COORDINATE,
    T_FLOATS,
    T_RECORD,
    T_ROTATION,
    T_TRANSLATIONS,
    TREE,
    WORLD,
    WRENCHES,
    count_turns,
    rotate_vector,
    walk,
)
from cardan.solvers.abi import ENTER, LEAVE, RESIDUAL, RETRACT
from cardan.system.layout import (
    ABOUT_Z,
    ANGLE,
    ANGLES,
    ANYHOW,
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
    STILL,
    WIDEST,
)

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

WRENCH = 7  # F, M about c_k, and the dilation Σ∂f/∂P·(P − c_k), which Euler parameters off the unit sphere cause


@inner
def see_from(body, forward, record, system, poses, values, rows, scratch):
    """Features as a body sees them (``forward``), or ∂f/∂x, row by row, from what it is for those to that in world.

    With A = s R, s = |p|²:  P ← A⁻¹(P − r), v ← A⁻¹ v, x ← p* ⊗ x / s;  and by the chain rule d ← A⁻ᵀ d = R d / s for
    points and vectors, d ← p ⊗ d / s for orientations.
    """
    pose = cut(poses, POSE * body, POSE)
    p = cut(pose, 3, 4)
    square = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]
    rotation = cut(scratch, 0, 4)
    for i in range(4):
        rotation[i] = p[i] if i == 0 or not forward else -p[i]
    out = cut(scratch, 4, 4)
    first = record + RECORD + system[record + SLOTS]
    for at in range(first, first + FEATURE * system[record + FEATURES], FEATURE):
        kind = system[at + KIND]
        if kind == ANGLE:
            continue
        for row in range(rows):
            x = cut(values, row * system[record + COMPONENTS] + system[at + COLUMN], 4 if kind == ORIENTATION else 3)
            if kind == ORIENTATION:
                multiply(rotation, x, out)
                for i in range(4):
                    x[i] = out[i] / square
            else:
                if forward and kind == POINT:
                    for i in range(3):
                        x[i] -= pose[i]
                rotate_vector(rotation, x, out)  # by |p|² R, so that 1/s² is left
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
def take_up(rotation, euler, pitch, c, frame, p, w, free, row):
    """Entries of a joint's turn into row; free ← the moment that its unknowns take up."""
    for i in range(3):
        free[i] = 0.0
    if rotation == STILL:
        return
    if rotation == ANYHOW:
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
    if rotation == ABOUT_Z:
        moment += pitch * frame[9] * (frame[2] * w[0] + frame[5] * w[1] + frame[8] * w[2])
    row[0] = moment
    for i in range(3):
        free[i] = moment * frame[3 * i + 2]
    if rotation == ABOUT_Z:
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
        rotation = ints[at + T_ROTATION]
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
            take_up(rotation, euler, pitch, c, frame, cut(poses, POSE * body + 3, 4), w, free, tail(entry, count))
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
        if ints[at + T_ROTATION] == ANYHOW:
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
        for i in range(coordinates + system[ANGLES]):
            out[i] = q[i] + step[i] if i < coordinates else q[i]
        if system[ANGLES] == 0:
            return 0
    if op != ENTER:
        walk(RESIDUAL, ints, floats, q, step, q, poses, frames, scratch, out)
        for i in range(system[ANGLES]):
            poses[POSE * bodies + i] = q[coordinates + i]
    if op == LEAVE:
        for i in range(POSE * bodies + system[ANGLES]):
            out[i] = poses[i]
        return 0
    if op == ENTER or op == RETRACT:
        before = q if op == ENTER else poses
        walk(RESIDUAL if added else op, ints, floats, out if added else q, step, before, new, frames, scratch, out)
        if system[ANGLES] > 0:
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
