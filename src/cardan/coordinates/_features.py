"""From poses to world features x, and from features to constraint values f(x) and ∂f/∂x, for all formulations.

    point P = r + A(p) s,   vector v = A(p) s,   orientation p ⊗ s,   counted angle: as it is in q.

Reads the packed tables and q; writes the rotation matrices, x and ∂f/∂x to the workspace, f to the rows.
"""

from math import floor, pi

from cardan.constraints._calls import call_value
from cardan.constraints._generated import evaluate_primitive
from cardan.coordinates._records import (
    axis,
    counted_angles,
    features,
    matrix,
    position,
    quaternion,
    variables,
    workspace,
)
from cardan.kernel.jit import inner
from cardan.kernel.memory import FIRST_ADDRESS, call_evaluator, cut, piece, tail
from cardan.math._kernels import unwrapped
from cardan.system.tables import ANGLE, AXES, ORIENTATION, POINT, SCALAR, AngleRecord, Feature

TURN = 2.0 * pi
SHORT = 0.25 * pi  # rad: if no body rotates further, an angle between two bodies changes by less than half a turn

tangent = piece(6, 0, 6)  # (step, body): δr, δθ


@inner
def update_matrices(bodies, q, work):
    """A(p) = (e₀² − e·e) I + 2 e eᵀ + 2 e₀ ẽ of every body into work, for p of any length."""
    for b in range(bodies):
        p = quaternion(q, b)
        a = matrix(work, b)
        e0 = p[0]
        trace = e0 * e0
        for i in range(1, 4):
            trace -= p[i] * p[i]
        for i in range(3):
            for j in range(3):
                a[3 * i + j] = 2.0 * p[i + 1] * p[j + 1]
            a[4 * i] += trace
        for i in range(3):
            j = (i + 1) % 3
            k = (i + 2) % 3
            a[3 * k + j] += 2.0 * e0 * p[i + 1]
            a[3 * j + k] -= 2.0 * e0 * p[i + 1]


@inner
def multiply(p, s, out):
    """out ← p ⊗ s."""
    out[0] = p[0] * s[0] - p[1] * s[1] - p[2] * s[2] - p[3] * s[3]
    for i in range(1, 4):
        j = i % 3 + 1
        k = j % 3 + 1
        out[i] = p[0] * s[i] + p[i] * s[0] + p[j] * s[k] - p[k] * s[j]


@inner
def rotate(body, s, work, out):
    """out ← A s of a body's vector, or s itself on the ground (body < 0)."""
    if body < 0:
        for i in range(3):
            out[i] = s[i]
    else:
        a = matrix(work, body)
        s0 = s[0]
        s1 = s[1]
        s2 = s[2]
        for i in range(3):
            out[i] = a[3 * i] * s0 + a[3 * i + 1] * s1 + a[3 * i + 2] * s2


@inner
def update_features(system, record, floats, q, work, x):
    """World values of the features of one constraint into x."""
    first = features(record)
    for k in range(record.features):
        this = Feature(first, k)
        kind = this.kind
        body = this.body
        out = tail(x, this.column)
        if kind == ANGLE:
            out[0] = counted_angles(system, q)[this.source]
            continue
        s = tail(floats, this.source)
        if kind >= SCALAR:
            out[0] = s[0]
            continue
        if kind != ORIENTATION:
            rotate(body, s, work, out)
            if kind == POINT and body >= 0:
                r = position(q, body)
                for i in range(3):
                    out[i] += r[i]
        elif body >= 0:
            multiply(quaternion(q, body), s, out)
        else:
            for i in range(4):
                out[i] = s[i]


@inner
def expand(system, floats, q, work):
    """The floats at the values of the variables in q, in the workspace; the floats themselves without variables."""
    if system.variables == 0:
        return floats
    expanded = tail(work, workspace(system).expanded)
    table = system.variable_table
    call_evaluator(system.expand, 0, table.as_ints, floats, variables(system, q), work, expanded, work, work)
    return expanded


@inner
def update_variables(system, first, q, step, out):
    """Variables in out ← those in q, the free ones moved by the step, which has them from ``first`` on."""
    old = variables(system, q)
    new = variables(system, out)
    for k in range(system.variables):
        new[k] = old[k] + step[first + k] if k < system.free else old[k]


@inner
def update_primitive(code, x, c, f, df):
    """f and ∂f/∂x of a primitive, by its code or its address."""
    if code < FIRST_ADDRESS:
        evaluate_primitive(code, x, c, f, df)
    else:
        call_value(code, x, c, f, df)


@inner
def update_counted_angles(system, floats, q, out, work):
    """Counted angles in out ← those of its poses that are within half a turn of the counted angles in q.

    Contact coordinates are among them: near those in q (:mod:`._tracking`).
    """
    if system.angles > 0:
        update_matrices(system.bodies, out, work)
        floats = expand(system, floats, out, work)
    axes = cut(work, workspace(system).features, AXES)
    known = counted_angles(system, q)
    counted = counted_angles(system, out)
    for k in range(system.angles):
        angle = AngleRecord(system.angle_table, k)
        s = tail(floats, angle.source)
        sine = 0.0
        cosine = 0.0
        for i in range(3):
            rotate(angle.b if i == 2 else angle.a, axis(s, i), work, axis(axes, i))
        for i in range(3):
            cosine += axes[i] * axes[6 + i]
            sine += axes[3 + i] * axes[6 + i]
        counted[k] = unwrapped(sine, cosine, known[k])
    if system.track != 0:
        call_evaluator(system.track, 0, system.as_ints, floats, q, q, out, work, work)


@inner
def add_turns(system, floats, known, step, out, work):
    """Add the whole turns of a long step to the counted angles in out, within half a turn of the known ones before.

    step: (δr, δθ) of every body, A(out) in the workspace.  A rotation keeps its axis, so an angle about z changes by
    z·(A_b δθ_b − A_a δθ_a) if both bodies rotate about z, and by nearly that if they rotate nearly about z.
    """
    angles = system.angles
    longest = 0.0
    for b in range(system.bodies if angles > 0 else 0):
        d = tangent(step, b)
        longest = max(longest, d[3] * d[3] + d[4] * d[4] + d[5] * d[5])
    if not longest > SHORT * SHORT:
        return
    floats = expand(system, floats, out, work)
    axes = cut(work, workspace(system).features, AXES)
    counted = counted_angles(system, out)
    for k in range(angles):
        angle = AngleRecord(system.angle_table, k)
        s = tail(floats, angle.source)
        for i in range(2):
            rotate(angle.a, axis(s, i), work, axis(axes, i))
        change = 0.0
        for side in range(2):
            body = angle.b if side == 1 else angle.a
            if body >= 0:
                rotate(body, tail(tangent(step, body), 3), work, axis(axes, 2))
                part = 0.0
                for i in range(3):
                    j = (i + 1) % 3
                    m = (i + 2) % 3
                    part += axes[6 + i] * (axes[j] * axes[3 + m] - axes[m] * axes[3 + j])
                change += part if side == 1 else -part
        if abs(change) > 2.0 * SHORT:
            counted[k] += TURN * floor((known[k] + change - counted[k]) / TURN + 0.5)
