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

from cardan.coordinates._features import multiply, update_features, update_matrices, update_primitive
from cardan.coordinates._records import counted_angles, features, pose, quaternion, workspace
from cardan.coordinates._tree_poses import place_all, rotate_vector, update_motion, update_tree_angles
from cardan.coordinates.tables import (
    JointFrame,
    Limb,
    LimbFloats,
    MotionScratch,
    OnPath,
    Scratch,
    TreeTable,
    TreeWork,
    Wrench,
)
from cardan.kernel.fields import after
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import cut, tail
from cardan.solvers.tables import ENTER, JACOBIAN, LEAVE, RESIDUAL, RETRACT
from cardan.system.tables import ABOUT_Z, ANGLE, ANYHOW, BY_USER, ORIENTATION, POINT, POSE, STILL, Feature, Record

ON_PATH, WRENCH = OnPath.size, Wrench.size

TRUE_DERIVATIVE = 1  # euler of the form that is exact off the unit sphere too


@inner
def path_of(loop, slots):
    """The path of a cut constraint."""
    return tail(loop.places, slots)


@inner
def anchor(tree, frames, place):
    """c_k of the joint of a body on a path."""
    return JointFrame(frames, Limb(tail(tree.as_ints, place.limb)).body).anchor


@inner
def take_relative(body, forward, record, poses, values, rows, scratch):
    """Features relative to a body (``forward``), or ∂f/∂x, row by row, from what it is for those to that in world.

    With A = s R, s = |p|²:  P ← A⁻¹(P − r), v ← A⁻¹ v, x ← p* ⊗ x / s;  and by the chain rule d ← A⁻ᵀ d = R d / s for
    points and vectors, d ← p ⊗ d / s for orientations.
    """
    r = pose(poses, body)
    p = quaternion(poses, body)
    square = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]
    rotation = scratch.first
    for i in range(4):
        rotation[i] = p[i] if i == 0 or not forward else -p[i]
    out = scratch.second
    first = features(record)
    for k in range(record.features):
        this = Feature(first, k)
        kind = this.kind
        if kind == ANGLE:
            continue
        size = 4 if kind == ORIENTATION else 3
        for row in range(rows):
            x = cut(values, row * record.components + this.column, size)
            if kind == ORIENTATION:
                multiply(rotation, x, out)
                for i in range(4):
                    x[i] = out[i] / square
            else:
                if forward and kind == POINT:
                    for i in range(3):
                        x[i] -= r[i]
                rotate_vector(rotation, x, out)  # by |p|² R, so that 1/s² is left
                for i in range(3):
                    x[i] = out[i] / (square * square)


@inner
def gather(record, loop, tree, frames, world, derivative, wrenches):
    """Force and moment of every row on every body that the constraint's features are on, features in world."""
    rows = record.rows
    slots = record.slots
    for i in range(WRENCH * rows * loop.length):
        wrenches[i] = 0.0
    first = features(record)
    for n in range(record.features):
        this = Feature(first, n)
        slot = this.slot
        where = loop.places[slot] if slot >= 0 else -1  # counted angles have no derivative, and no body
        if where >= 0:
            kind = this.kind
            x = tail(world, this.column)
            c = anchor(tree, frames, OnPath(path_of(loop, slots), where))
            for row in range(rows):
                w = Wrench(wrenches, rows * where + row)
                d = tail(derivative, row * record.components + this.column)
                if kind == ORIENTATION:  # δx = ½ (0, ω) ⊗ x + σ x, half of which is the dilation 2σ
                    for i in range(1, 4):
                        j = i % 3 + 1
                        k = j % 3 + 1
                        w.moment[i - 1] += 0.5 * (-d[0] * x[i] + d[i] * x[0] + d[k] * x[j] - d[j] * x[k])
                    w.dilation += 0.5 * (d[0] * x[0] + d[1] * x[1] + d[2] * x[2] + d[3] * x[3])
                else:
                    v0 = x[0]
                    v1 = x[1]
                    v2 = x[2]
                    if kind == POINT:
                        v0 -= c[0]
                        v1 -= c[1]
                        v2 -= c[2]
                        for i in range(3):
                            w.force[i] += d[i]
                    w.moment[0] += v1 * d[2] - v2 * d[1]
                    w.moment[1] += v2 * d[0] - v0 * d[2]
                    w.moment[2] += v0 * d[1] - v1 * d[0]
                    w.dilation += v0 * d[0] + v1 * d[1] + v2 * d[2]


@inner
def rotation_entries(rotation, euler, pitch, c, frame, p, w, free, row):
    """Entries of a joint's rotation into row; free ← the moment that belongs to its unknowns."""
    for i in range(3):
        free[i] = 0.0
    if rotation == STILL or rotation == BY_USER:
        return
    axes = frame.axes
    m = w.moment
    if rotation == ANYHOW:
        if euler != 0:
            # (σ, ω/2) = c* ⊗ δc / |c|² with ω in the axes of frame b: the row is c ⊗ (2 D, 2 R_bᵀ M) / |c|².
            # Virtual rotation has ω = 2 E δc in the axes of frame a for c of any length, and no dilation.
            square = 1.0
            dilation = 0.0
            if euler == TRUE_DERIVATIVE:
                square = c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + c[3] * c[3]
                dilation = w.dilation
            n = free  # R_aᵀ M; frame b is rotated from frame a by c
            for k in range(3):
                n[k] = axes[k] * m[0] + axes[3 + k] * m[1] + axes[6 + k] * m[2]
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
    moment = axes[2] * m[0] + axes[5] * m[1] + axes[8] * m[2]
    if rotation == ABOUT_Z:
        moment += pitch * frame.scale * (axes[2] * w.force[0] + axes[5] * w.force[1] + axes[8] * w.force[2])
    row[0] = moment
    for i in range(3):
        free[i] = moment * axes[3 * i + 2]
    if rotation == ABOUT_Z:
        return
    # z_b is x_a rotated by α about z_a
    ca = cos(c[0])
    sa = sin(c[0])
    moment = 0.0
    for i in range(3):
        moment += (ca * axes[3 * i] + sa * axes[3 * i + 1]) * m[i]
    row[1] = -moment
    for i in range(3):
        free[i] += moment * (ca * axes[3 * i] + sa * axes[3 * i + 1])


@inner
def motion_entries(count, frame, w, scratch, row):
    """Entries of a motion of the user's own: D·F + ω·M, with D = ∂d″/∂q and ω̃ = (∂A″/∂q) A″ᵀ in the axes of frame a.

    Their unknowns are changes of the coordinates in every form, so that all of the moment goes to the parent.
    """
    axes = frame.axes
    turned = scratch.motion
    partials = scratch.partials
    for k in range(count):
        entry = 0.0
        for j in range(3):
            force = axes[j] * w.force[0] + axes[3 + j] * w.force[1] + axes[6 + j] * w.force[2]
            moment = axes[j] * w.moment[0] + axes[3 + j] * w.moment[1] + axes[6 + j] * w.moment[2]
            a = (j + 1) % 3
            b = (j + 2) % 3
            omega = 0.0  # of the skew part
            for i in range(3):
                omega += partials[count * (3 * b + i) + k] * turned[3 * a + i]
                omega -= partials[count * (3 * a + i) + k] * turned[3 * b + i]
            entry += frame.scale * partials[count * (9 + j) + k] * force + 0.5 * omega * moment
        row[k] = entry


@inner
def descend(record, loop, tree, floats, q, poses, frames, wrenches, scratch, jacobian):
    """From the bodies of a constraint to the root: entries of every joint on the path, and what goes to its parent."""
    euler = tree.euler
    free = scratch.first
    rows = record.rows
    path = path_of(loop, record.slots)
    for where in range(loop.length - 1, -1, -1):
        here = OnPath(path, where)
        limb = Limb(tail(tree.as_ints, here.limb))
        parent = here.parent
        frame = JointFrame(frames, limb.body)
        axes = frame.axes
        count = limb.translations
        rotation = limb.rotation
        c = tail(q, limb.coordinate + count)
        p = quaternion(poses, limb.body)
        pitch = LimbFloats(tail(floats, limb.floats)).pitch
        first = 2 if count == 1 else 0
        if rotation == BY_USER:
            update_motion(limb, floats, tail(q, limb.coordinate), MotionScratch(scratch))
        for r in range(rows):
            w = Wrench(wrenches, rows * where + r)
            row = loop.start + r * loop.stride
            entry = cut(jacobian, row + here.column, loop.stride - here.column)  # the rest of the row
            if rotation == BY_USER:
                motion_entries(count, frame, w, MotionScratch(scratch), entry)
            else:
                for k in range(count):
                    a = first + k
                    force = axes[a] * w.force[0] + axes[3 + a] * w.force[1] + axes[6 + a] * w.force[2]
                    entry[k] = frame.scale * force
            rotation_entries(rotation, euler, pitch, c, frame, p, w, free, tail(entry, count))
            if here.ref >= 0 and euler == 0:
                other = Wrench(wrenches, rows * here.ref + r)
                for i in range(3):
                    other.moment[i] += free[i]
            if parent >= 0:
                up = anchor(tree, frames, OnPath(path, parent))
                pass_on(frame.anchor, up, euler != 0, w, free, Wrench(wrenches, rows * parent + r))


@inner
def pass_on(here, up, all_of_it, w, free, other):
    """Add the wrench at a joint to that of its parent, whose anchor is ``up``, without the moment that is free."""
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        other.force[i] += w.force[i]
        moment = w.moment[i] if all_of_it else w.moment[i] - free[i]
        other.moment[i] += moment + (here[j] - up[j]) * w.force[k] - (here[k] - up[k]) * w.force[j]
        other.dilation += (here[i] - up[i]) * w.force[i]
    other.dilation += w.dilation


@inner
def normalise(op, tree, q, out, jacobian):
    """cᵀc − 1 of every joint with Euler parameters, and its row, which has the joint's own unknowns only."""
    row = tree.norms
    entry = tree.norm_entries
    for k in range(tree.system.bodies):
        limb = Limb(tree.limbs, k)
        if limb.rotation == ANYHOW:
            count = limb.translations
            c = tail(q, limb.coordinate + count)
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
    tree = TreeTable(ints)
    work = TreeWork(tree.pieces, work)
    euler = tree.euler != 0
    system = tree.system
    coordinates = tree.coordinates
    poses = work.poses
    frames = work.frames
    scratch = Scratch(work.scratch)
    shared = work.shared
    added = op == RETRACT and euler
    if added:
        for i in range(coordinates + system.angles):
            out[i] = q[i] + step[i] if i < coordinates else q[i]
        if system.angles == 0:
            return 0
    if op != ENTER:
        place_all(RESIDUAL, tree, floats, q, step, q, poses, frames, scratch, out)
        angles = counted_angles(system, poses)
        for i in range(system.angles):
            angles[i] = q[coordinates + i]
    if op == LEAVE:
        for i in range(POSE * system.bodies + system.angles):
            out[i] = poses[i]
        return 0
    if op == ENTER or op == RETRACT:
        before = q if op == ENTER else poses
        new = work.new
        source = out if added else q
        place_all(RESIDUAL if added else op, tree, floats, source, step, before, new, frames, scratch, out)
        if system.angles > 0:
            update_tree_angles(tree, floats, before, new, shared, out)
        return 0
    update_matrices(system.bodies, poses, shared)
    pieces = workspace(system)
    x = cut(shared, pieces.features, system.widest)
    world = work.world
    wrenches = work.wrenches
    loop = tree.cuts
    for _ in range(tree.cut_count):
        record = Record(tail(system.as_ints, loop.record))
        rows = record.rows
        update_features(system, record, floats, poses, shared, x)
        for i in range(record.components):
            world[i] = x[i]
        viewer = loop.viewer
        if viewer >= 0:
            take_relative(viewer, True, record, poses, x, 1, scratch)
        derivative = cut(shared, pieces.derivatives, rows * record.components)
        f = cut(out, record.row, rows)
        update_primitive(record.code, x, tail(floats, record.par), f, derivative)
        if op == JACOBIAN:
            if viewer >= 0:
                take_relative(viewer, False, record, poses, derivative, rows, scratch)
            gather(record, loop, tree, frames, world, derivative, wrenches)
            descend(record, loop, tree, floats, q, poses, frames, wrenches, scratch, jacobian)
        loop = after(loop, record.slots + ON_PATH * loop.length)
    if euler:
        normalise(op, tree, q, out, jacobian)
    return 0


EVALUATE = evaluator(_evaluate)
