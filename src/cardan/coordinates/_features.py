"""From poses to world features, and from features to constraint values: the part all formulations share."""

from cardan._jit import FIRST_ADDRESS, call_primitive, cut, inner, tail
from cardan.constraints._generated import evaluate_primitive
from cardan.math._kernels import unwrapped
from cardan.system.layout import (
    ANGLE,
    ANGLE_A,
    ANGLE_B,
    ANGLE_RECORD,
    ANGLE_SOURCE,
    ANGLE_TABLE,
    ANGLES,
    BODIES,
    BODY,
    CODE,
    COLUMN,
    COMPONENTS,
    FEATURE,
    KIND,
    NEXT,
    ORIENTATION,
    PAR,
    POINT,
    POSE,
    RECORD,
    ROW,
    ROWS,
    SLOTS,
    SOURCE,
    TALLEST,
    WIDEST,
)


@inner
def update_matrices(bodies, q, work):
    """A(p) = (e₀² − e·e) I + 2 e eᵀ + 2 e₀ ẽ of every body into work, 9 floats each, for p of any length."""
    for b in range(bodies):
        p = tail(q, POSE * b + 3)
        a = cut(work, 9 * b, 9)
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
        a = cut(work, 9 * body, 9)
        s0 = s[0]
        s1 = s[1]
        s2 = s[2]
        for i in range(3):
            out[i] = a[3 * i] * s0 + a[3 * i + 1] * s1 + a[3 * i + 2] * s2


@inner
def update_features(record, ints, floats, q, work, x):
    """World values of the features of one constraint into x."""
    for at in range(record + RECORD + ints[record + SLOTS], ints[record + NEXT], FEATURE):
        feature = tail(ints, at)
        kind = feature[KIND]
        body = feature[BODY]
        out = tail(x, feature[COLUMN])
        if kind == ANGLE:
            out[0] = q[POSE * ints[BODIES] + feature[SOURCE]]
            continue
        s = tail(floats, feature[SOURCE])
        if kind != ORIENTATION:
            rotate(body, s, work, out)
            if kind == POINT and body >= 0:
                r = tail(q, POSE * body)
                for i in range(3):
                    out[i] += r[i]
        elif body >= 0:
            multiply(tail(q, POSE * body + 3), s, out)
        else:
            for i in range(4):
                out[i] = s[i]


@inner
def update_primitive(code, x, c, f, df):
    """f and ∂f/∂x of a primitive, by its code or its address."""
    if code < FIRST_ADDRESS:
        evaluate_primitive(code, x, c, f, df)
    else:
        call_primitive(code, x, c, f, df)


@inner
def update_constraint(record, ints, floats, q, r, work):
    """f of one constraint into r, its ∂f/∂x into work from where :func:`derivatives` says."""
    x = cut(work, 9 * ints[BODIES], ints[WIDEST])
    update_features(record, ints, floats, q, work, x)
    update_primitive(
        ints[record + CODE],
        x,
        tail(floats, ints[record + PAR]),
        cut(r, ints[record + ROW], ints[record + ROWS]),
        cut(work, derivatives(ints), ints[record + ROWS] * ints[record + COMPONENTS]),
    )


@inner
def derivatives(ints):
    """Where ∂f/∂x of the constraint last evaluated begins in work."""
    return 9 * ints[BODIES] + max(ints[WIDEST], 9)


@inner
def update_counted_angles(ints, floats, q, out, work):
    """Angles behind the poses in out ← those of its poses that are within half a turn of the angles in q."""
    if ints[ANGLES] > 0:
        update_matrices(ints[BODIES], out, work)
    axes = cut(work, 9 * ints[BODIES], 9)
    for k in range(ints[ANGLES]):
        at = ints[ANGLE_TABLE] + ANGLE_RECORD * k
        s = tail(floats, ints[at + ANGLE_SOURCE])
        sine = 0.0
        cosine = 0.0
        for i in range(3):
            rotate(ints[at + (ANGLE_B if i == 2 else ANGLE_A)], tail(s, 3 * i), work, cut(axes, 3 * i, 3))
        for i in range(3):
            cosine += axes[i] * axes[6 + i]
            sine += axes[3 + i] * axes[6 + i]
        last = POSE * ints[BODIES] + k
        out[last] = unwrapped(sine, cosine, q[last])


def work_size(ints):
    """Floats that an evaluator needs in its work array."""
    widest = max(int(ints[WIDEST]), 9)
    return 9 * int(ints[BODIES]) + widest + widest * int(ints[TALLEST])
