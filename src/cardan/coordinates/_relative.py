"""Kernels of the relative formulation: joint coordinates along a spanning tree, loops closed by the cut constraints.

Poses come from joint coordinates by the recursions (9), (10) of [Liu2013] (:mod:`cardan.coordinates._tree_poses`).

The derivative of a constraint f(x₁, …) is the sum (17) of ∂f/∂x·∂x/∂q.  The recursions (13) and (16) compute ∂x/∂q from
the root to the body; multiplied from the left by the one row ∂f/∂x they run the other way, from the body to the root.
What is passed on then is a force F = Σ∂f/∂P and a moment M about the joint's point: a joint with axis a has the entries
a·F for a displacement and a·M for an angle.  So the cost is that of the path, not of its square.

Nothing above the lowest common ancestor c of all bodies of f is computed, except with Euler parameters in a ball joint
above it: off the unit sphere they dilate f, which then has its path from the ground.  f is evaluated with the features
relative to c: A_c⁻¹(P − r_c), A_c⁻¹v, p_c⁻¹ ⊗ x.  These are products of the transformations (9), (10) of the joints
from c down to each body, since all above cancel; so f depends only on the coordinates of the joints on these paths
below c.  The choice of c does not change f: a primitive states where features are relative to each other, so its value
is the same in all axes, or is a vector that rotates with them, as Q − P does (for a user's primitive this is proved,
see :mod:`cardan.constraints.indifference`).  Where it is neither, and where a feature is on the ground, c is the
ground.

In the form whose unknowns are rotations relative to a body REF, the moment Σ a τ of the unknowns of joint k goes to
REF, only the rest to the parent.  REF is the lowest of the common ancestors of the constraints whose paths go through
k.  It is c or below c for each of them, so ω_parent − ω_ref is a sum of rates between bodies that are not above c, and
of unknowns z below c alone: no row becomes longer.

Reads the tables of the tree, of the cut constraints and of the system, and joint coordinates; writes f to out, J row by
row along the paths, and its workspace, whose pieces the header of the tree names.
"""

from math import cos, sin

from cardan.coordinates import _tree_poses as tree
from cardan.coordinates._features import multiply, update_features, update_matrices, update_primitive
from cardan.coordinates._records import counted_angles, feature, features, pose, quaternion, workspace
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import cut, piece, tail
from cardan.solvers.tables import ENTER, JACOBIAN, LEAVE, RESIDUAL, RETRACT
from cardan.system import layout

# one record per cut constraint, then the place of each slot's body on the path (−1: above it), then the path
CUT_RECORD = 0
CUT_LENGTH = 1
CUT_START = 2
CUT_STRIDE = 3
CUT_FROM = 4  # body that the features are taken relative to, −1: the ground
CUT_HEADER = 5

# one entry of a path
P_TREE = 0  # record of the body in the tree
P_PARENT = 1  # place of the parent on the path, −1: above it
P_REF = 2  # place of REF on the path, −1: above it
P_COLUMN = 3
P_ENTRY = 4

# wrench of one row on one body of the path
MOMENT = 3  # after the force F: M about c_k
DILATION = 6  # Σ∂f/∂P·(P − c_k), which Euler parameters off the unit sphere cause
WRENCH = 7

TRUE_DERIVATIVE = 1  # EULER of the form that is exact off the unit sphere too

on_path = piece(P_ENTRY, 0, P_ENTRY)  # (path_of(loop, slots), place)
wrench_at = piece(WRENCH, 0, WRENCH)  # (wrenches, rows · place + row)


@inner
def path_of(loop, slots):
    """The path of a cut constraint."""
    return tail(loop, CUT_HEADER + slots)


@inner
def take_relative(body, forward, record, poses, values, rows, scratch):
    """Features relative to a body (``forward``), or ∂f/∂x, row by row, from what it is for those to that in world.

    With A = s R, s = |p|²:  P ← A⁻¹(P − r), v ← A⁻¹ v, x ← p* ⊗ x / s;  and by the chain rule d ← A⁻ᵀ d = R d / s for
    points and vectors, d ← p ⊗ d / s for orientations.
    """
    r = pose(poses, body)
    p = quaternion(poses, body)
    square = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]
    rotation = cut(scratch, 0, 4)
    for i in range(4):
        rotation[i] = p[i] if i == 0 or not forward else -p[i]
    out = cut(scratch, 4, 4)
    first = features(record)
    for k in range(record[layout.FEATURES]):
        this = feature(first, k)
        kind = this[layout.KIND]
        if kind == layout.ANGLE:
            continue
        size = 4 if kind == layout.ORIENTATION else 3
        for row in range(rows):
            x = cut(values, row * record[layout.COMPONENTS] + this[layout.COLUMN], size)
            if kind == layout.ORIENTATION:
                multiply(rotation, x, out)
                for i in range(4):
                    x[i] = out[i] / square
            else:
                if forward and kind == layout.POINT:
                    for i in range(3):
                        x[i] -= r[i]
                tree.rotate_vector(rotation, x, out)  # by |p|² R, so that 1/s² is left
                for i in range(3):
                    x[i] = out[i] / (square * square)


@inner
def gather(record, loop, ints, frames, world, derivative, wrenches):
    """Force and moment of every row on every body that the constraint's features are on, features in world."""
    rows = record[layout.ROWS]
    slots = record[layout.SLOTS]
    for i in range(WRENCH * rows * loop[CUT_LENGTH]):
        wrenches[i] = 0.0
    first = features(record)
    for n in range(record[layout.FEATURES]):
        this = feature(first, n)
        slot = this[layout.SLOT]
        where = loop[CUT_HEADER + slot] if slot >= 0 else -1  # counted angles have no derivative, and no body
        if where >= 0:
            kind = this[layout.KIND]
            x = tail(world, this[layout.COLUMN])
            c = tree.anchor_of(frames, ints[on_path(path_of(loop, slots), where)[P_TREE] + tree.T_BODY])
            for row in range(rows):
                w = wrench_at(wrenches, rows * where + row)
                d = tail(derivative, row * record[layout.COMPONENTS] + this[layout.COLUMN])
                if kind == layout.ORIENTATION:  # δx = ½ (0, ω) ⊗ x + σ x, half of which is the dilation 2σ
                    for i in range(1, 4):
                        j = i % 3 + 1
                        k = j % 3 + 1
                        w[i + 2] += 0.5 * (-d[0] * x[i] + d[i] * x[0] + d[k] * x[j] - d[j] * x[k])
                    w[DILATION] += 0.5 * (d[0] * x[0] + d[1] * x[1] + d[2] * x[2] + d[3] * x[3])
                else:
                    v0 = x[0]
                    v1 = x[1]
                    v2 = x[2]
                    if kind == layout.POINT:
                        v0 -= c[0]
                        v1 -= c[1]
                        v2 -= c[2]
                        for i in range(3):
                            w[i] += d[i]
                    w[3] += v1 * d[2] - v2 * d[1]
                    w[4] += v2 * d[0] - v0 * d[2]
                    w[5] += v0 * d[1] - v1 * d[0]
                    w[DILATION] += v0 * d[0] + v1 * d[1] + v2 * d[2]


@inner
def rotation_entries(rotation, euler, pitch, c, frame, p, w, free, row):
    """Entries of a joint's rotation into row; free ← the moment that belongs to its unknowns."""
    for i in range(3):
        free[i] = 0.0
    if rotation == layout.STILL or rotation == layout.BY_USER:
        return
    m = tail(w, MOMENT)
    if rotation == layout.ANYHOW:
        if euler != 0:
            # (σ, ω/2) = c* ⊗ δc / |c|² with ω in the axes of frame b: the row is c ⊗ (2 D, 2 R_bᵀ M) / |c|².
            # Virtual rotation has ω = 2 E δc in the axes of frame a for c of any length, and no dilation.
            square = 1.0
            dilation = 0.0
            if euler == TRUE_DERIVATIVE:
                square = c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + c[3] * c[3]
                dilation = w[DILATION]
            n = free  # R_aᵀ M; frame b is rotated from frame a by c
            for k in range(3):
                n[k] = frame[k] * m[0] + frame[3 + k] * m[1] + frame[6 + k] * m[2]
            # c ⊗ (0, R_cᵀ n) = (0, n) ⊗ c, since c ⊗ u ⊗ c* = |c|² R_c u
            row[0] = 2.0 * (dilation * c[0] - n[0] * c[1] - n[1] * c[2] - n[2] * c[3]) / square
            for i in range(1, 4):
                j = i % 3 + 1
                k = j % 3 + 1
                row[i] = 2.0 * (dilation * c[i] + n[i - 1] * c[0] + n[j - 1] * c[k] - n[k - 1] * c[j]) / square
            return
        for i in range(3):
            free[i] = m[i]
        # Aᵀ M with A(p): the vector part of p* ⊗ (0, M) ⊗ p
        es = 2.0 * (p[1] * m[0] + p[2] * m[1] + p[3] * m[2])
        trace = p[0] * p[0] - p[1] * p[1] - p[2] * p[2] - p[3] * p[3]
        for i in range(3):
            j = (i + 1) % 3
            k = (i + 2) % 3
            row[i] = trace * m[i] + es * p[i + 1] - 2.0 * p[0] * (p[j + 1] * m[k] - p[k + 1] * m[j])
        return
    moment = frame[2] * m[0] + frame[5] * m[1] + frame[8] * m[2]
    if rotation == layout.ABOUT_Z:
        moment += pitch * frame[tree.SCALE] * (frame[2] * w[0] + frame[5] * w[1] + frame[8] * w[2])
    row[0] = moment
    for i in range(3):
        free[i] = moment * frame[3 * i + 2]
    if rotation == layout.ABOUT_Z:
        return
    # z_b is x_a rotated by α about z_a
    ca = cos(c[0])
    sa = sin(c[0])
    moment = 0.0
    for i in range(3):
        moment += (ca * frame[3 * i] + sa * frame[3 * i + 1]) * m[i]
    row[1] = -moment
    for i in range(3):
        free[i] += moment * (ca * frame[3 * i] + sa * frame[3 * i + 1])


@inner
def own_entries(count, frame, w, scratch, row):
    """Entries of a motion of the user's own: D·F + ω·M, with D = ∂d″/∂q and ω̃ = (∂A″/∂q) A″ᵀ in the axes of frame a.

    Their unknowns are changes of the coordinates in every form, so that all of the moment goes to the parent.
    """
    turned = tail(scratch, tree.MOTION)
    partials = tail(scratch, tree.PARTIALS)
    for k in range(count):
        entry = 0.0
        for j in range(3):
            force = frame[j] * w[0] + frame[3 + j] * w[1] + frame[6 + j] * w[2]
            moment = frame[j] * w[3] + frame[3 + j] * w[4] + frame[6 + j] * w[5]
            a = (j + 1) % 3
            b = (j + 2) % 3
            omega = 0.0  # of the skew part
            for i in range(3):
                omega += partials[count * (3 * b + i) + k] * turned[3 * a + i]
                omega -= partials[count * (3 * a + i) + k] * turned[3 * b + i]
            entry += frame[tree.SCALE] * partials[count * (9 + j) + k] * force + 0.5 * omega * moment
        row[k] = entry


@inner
def descend(record, loop, ints, floats, q, poses, frames, wrenches, scratch, jacobian):
    """From the bodies of a constraint to the root: entries of every joint on the path, and what goes to its parent."""
    euler = ints[tree.EULER]
    free = cut(scratch, 0, 3)
    rows = record[layout.ROWS]
    stride = loop[CUT_STRIDE]
    path = path_of(loop, record[layout.SLOTS])
    for where in range(loop[CUT_LENGTH] - 1, -1, -1):
        here = on_path(path, where)
        limb = tail(ints, here[P_TREE])
        parent = here[P_PARENT]
        ref = here[P_REF]
        frame = tree.frame_of(frames, limb[tree.T_BODY])
        anchor = tail(frame, tree.ANCHOR)
        count = limb[tree.T_TRANSLATIONS]
        rotation = limb[tree.T_ROTATION]
        c = tail(q, limb[tree.T_COORDINATE] + count)
        p = quaternion(poses, limb[tree.T_BODY])
        pitch = floats[limb[tree.T_FLOATS] + tree.PITCH]
        first = 2 if count == 1 else 0
        column = here[P_COLUMN]
        if rotation == layout.BY_USER:
            tree.update_own(limb, floats, tail(q, limb[tree.T_COORDINATE]), scratch)
        for r in range(rows):
            w = wrench_at(wrenches, rows * where + r)
            entry = cut(jacobian, loop[CUT_START] + r * stride + column, stride - column)  # the rest of the row
            if rotation == layout.BY_USER:
                own_entries(count, frame, w, scratch, entry)
            else:
                for k in range(count):
                    a = first + k
                    entry[k] = frame[tree.SCALE] * (frame[a] * w[0] + frame[3 + a] * w[1] + frame[6 + a] * w[2])
            rotation_entries(rotation, euler, pitch, c, frame, p, w, free, tail(entry, count))
            if ref >= 0 and euler == 0:
                other = wrench_at(wrenches, rows * ref + r)
                for i in range(3):
                    other[MOMENT + i] += free[i]
            if parent >= 0:
                up = tree.anchor_of(frames, ints[on_path(path, parent)[P_TREE] + tree.T_BODY])
                other = wrench_at(wrenches, rows * parent + r)
                for i in range(3):
                    j = (i + 1) % 3
                    k = (i + 2) % 3
                    other[i] += w[i]
                    moment = w[MOMENT + i] if euler != 0 else w[MOMENT + i] - free[i]
                    other[MOMENT + i] += moment + (anchor[j] - up[j]) * w[k] - (anchor[k] - up[k]) * w[j]
                    other[DILATION] += (anchor[i] - up[i]) * w[i]
                other[DILATION] += w[DILATION]


@inner
def normalise(op, ints, q, out, jacobian):
    """cᵀc − 1 of every joint with Euler parameters, and its row, which has the joint's own unknowns only."""
    row = ints[tree.NORMS]
    entry = ints[tree.NORM_ENTRIES]
    limbs = tail(ints, ints[tree.TREE])
    for k in range(ints[ints[tree.SYSTEM] + layout.BODIES]):
        limb = tree.limb_at(limbs, k)
        if limb[tree.T_ROTATION] == layout.ANYHOW:
            count = limb[tree.T_TRANSLATIONS]
            c = tail(q, limb[tree.T_COORDINATE] + count)
            s = -1.0
            for i in range(4):
                s += c[i] * c[i]
            out[row] = s
            row += 1
            if op == JACOBIAN:
                for i in range(count):
                    jacobian[entry + i] = 0.0
                for i in range(4):
                    jacobian[entry + count + i] = 2.0 * c[i]
                entry += count + 4


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    euler = ints[tree.EULER] != 0
    system = tail(ints, ints[tree.SYSTEM])
    coordinates = ints[tree.COORDINATE_COUNT]
    poses = tree.piece_of(ints, work, tree.POSES)
    frames = tree.piece_of(ints, work, tree.FRAMES)
    scratch = tree.piece_of(ints, work, tree.SCRATCH)
    own = tail(work, ints[tree.OWN])
    added = op == RETRACT and euler
    if added:
        for i in range(coordinates + system[layout.ANGLES]):
            out[i] = q[i] + step[i] if i < coordinates else q[i]
        if system[layout.ANGLES] == 0:
            return 0
    if op != ENTER:
        tree.place_all(RESIDUAL, ints, floats, q, step, q, poses, frames, scratch, out)
        angles = counted_angles(system, poses)
        for i in range(system[layout.ANGLES]):
            angles[i] = q[coordinates + i]
    if op == LEAVE:
        for i in range(layout.POSE * system[layout.BODIES] + system[layout.ANGLES]):
            out[i] = poses[i]
        return 0
    if op == ENTER or op == RETRACT:
        before = q if op == ENTER else poses
        new = tree.piece_of(ints, work, tree.NEW)
        given = out if added else q
        tree.place_all(RESIDUAL if added else op, ints, floats, given, step, before, new, frames, scratch, out)
        if system[layout.ANGLES] > 0:
            tree.update_tree_angles(ints, floats, before, new, own, out)
        return 0
    update_matrices(system[layout.BODIES], poses, own)
    pieces = workspace(system)
    x = cut(own, pieces.features, system[layout.WIDEST])
    world = tree.piece_of(ints, work, tree.WORLD)
    wrenches = tree.piece_of(ints, work, tree.WRENCHES)
    loop = tail(ints, ints[tree.CUTS])
    for _ in range(ints[tree.CUT_COUNT]):
        record = tail(system, loop[CUT_RECORD])
        slots = record[layout.SLOTS]
        rows = record[layout.ROWS]
        update_features(system, record, floats, poses, own, x)
        for i in range(record[layout.COMPONENTS]):
            world[i] = x[i]
        viewer = loop[CUT_FROM]
        if viewer >= 0:
            take_relative(viewer, True, record, poses, x, 1, scratch)
        derivative = cut(own, pieces.derivatives, rows * record[layout.COMPONENTS])
        f = cut(out, record[layout.ROW], rows)
        update_primitive(record[layout.CODE], x, tail(floats, record[layout.PAR]), f, derivative)
        if op == JACOBIAN:
            if viewer >= 0:
                take_relative(viewer, False, record, poses, derivative, rows, scratch)
            gather(record, loop, ints, frames, world, derivative, wrenches)
            descend(record, loop, ints, floats, q, poses, frames, wrenches, scratch, jacobian)
        loop = tail(path_of(loop, slots), P_ENTRY * loop[CUT_LENGTH])
    if euler:
        normalise(op, ints, q, out, jacobian)
    return 0


EVALUATE = evaluator(_evaluate)
