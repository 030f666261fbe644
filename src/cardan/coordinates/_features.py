"""From poses to world features, and from features to constraint values: the part all formulations share."""

from cardan._jit import inner
from cardan.constraints._generated import evaluate_primitive
from cardan.system.layout import (
    BODIES,
    BODY,
    CODE,
    COLUMN,
    FEATURE,
    FEATURES,
    KIND,
    MAX_COMPONENTS,
    MAX_ROWS,
    PAR,
    POSE,
    RECORD,
    ROW,
    SLOTS,
    SOURCE,
)

ORIENTATION = 2  # FeatureKind.ORIENTATION, as the tables hold it
POINT = 0


@inner
def update_matrices(bodies, q, work):
    """A(p) = (e₀² − e·e) I + 2 e eᵀ + 2 e₀ ẽ of every body into work, 9 floats each, for p of any length."""
    for b in range(bodies):
        p = q[POSE * b + 3 : POSE * b + 7]
        a = work[9 * b : 9 * b + 9]
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
def update_features(record, ints, floats, q, work, x):
    """World values of the features of one constraint into x."""
    at = record + RECORD + ints[record + SLOTS]
    for _ in range(ints[record + FEATURES]):
        kind = ints[at + KIND]
        body = ints[at + BODY]
        s = floats[ints[at + SOURCE] :]
        out = x[ints[at + COLUMN] :]
        if body < 0:
            for i in range(4 if kind == ORIENTATION else 3):
                out[i] = s[i]
        elif kind == ORIENTATION:
            multiply(q[POSE * body + 3 :], s, out)
        else:
            a = work[9 * body :]
            for i in range(3):
                out[i] = a[3 * i] * s[0] + a[3 * i + 1] * s[1] + a[3 * i + 2] * s[2]
            if kind == POINT:
                for i in range(3):
                    out[i] += q[POSE * body + i]
        at += FEATURE


@inner
def update_constraint(record, ints, floats, q, r, work):
    """f of one constraint into r, its ∂f/∂x into work from where :func:`derivatives` says."""
    at = 9 * ints[BODIES]
    x = work[at : at + MAX_COMPONENTS]
    update_features(record, ints, floats, q, work, x)
    evaluate_primitive(
        ints[record + CODE], x, floats[ints[record + PAR] :], r[ints[record + ROW] :], work[at + MAX_COMPONENTS :]
    )


@inner
def derivatives(ints):
    """Where ∂f/∂x of the constraint last evaluated begins in work."""
    return 9 * ints[BODIES] + MAX_COMPONENTS


def work_size(ints):
    """Floats that an evaluator needs in its work array."""
    return 9 * int(ints[BODIES]) + MAX_COMPONENTS + MAX_COMPONENTS * MAX_ROWS
