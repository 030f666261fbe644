"""From poses to world features, and from features to constraint values: the part all formulations share."""

from cardan._jit import inner
from cardan.constraints._generated import evaluate_primitive
from cardan.system.layout import (
    BODIES,
    BODY,
    CODE,
    COLUMN,
    CONSTRAINTS,
    DERIVATIVE,
    DERIVATIVES,
    FEATURE,
    FEATURES,
    HEADER,
    KIND,
    MAX_COMPONENTS,
    NEXT,
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
        e0 = q[POSE * b + 3]
        e1 = q[POSE * b + 4]
        e2 = q[POSE * b + 5]
        e3 = q[POSE * b + 6]
        o = 9 * b
        work[o] = e0 * e0 + e1 * e1 - e2 * e2 - e3 * e3
        work[o + 1] = 2.0 * (e1 * e2 - e0 * e3)
        work[o + 2] = 2.0 * (e1 * e3 + e0 * e2)
        work[o + 3] = 2.0 * (e1 * e2 + e0 * e3)
        work[o + 4] = e0 * e0 - e1 * e1 + e2 * e2 - e3 * e3
        work[o + 5] = 2.0 * (e2 * e3 - e0 * e1)
        work[o + 6] = 2.0 * (e1 * e3 - e0 * e2)
        work[o + 7] = 2.0 * (e2 * e3 + e0 * e1)
        work[o + 8] = e0 * e0 - e1 * e1 - e2 * e2 + e3 * e3


@inner
def update_features(record, ints, floats, q, work, x):
    """World values of the features of one constraint into x."""
    at = record + RECORD + ints[record + SLOTS]
    for _ in range(ints[record + FEATURES]):
        kind = ints[at + KIND]
        body = ints[at + BODY]
        s = ints[at + SOURCE]
        k = ints[at + COLUMN]
        s0 = floats[s]
        s1 = floats[s + 1]
        s2 = floats[s + 2]
        if kind == ORIENTATION:
            s3 = floats[s + 3]
            if body < 0:
                x[k] = s0
                x[k + 1] = s1
                x[k + 2] = s2
                x[k + 3] = s3
            else:
                o = POSE * body + 3
                p0 = q[o]
                p1 = q[o + 1]
                p2 = q[o + 2]
                p3 = q[o + 3]
                x[k] = p0 * s0 - p1 * s1 - p2 * s2 - p3 * s3
                x[k + 1] = p0 * s1 + p1 * s0 + p2 * s3 - p3 * s2
                x[k + 2] = p0 * s2 - p1 * s3 + p2 * s0 + p3 * s1
                x[k + 3] = p0 * s3 + p1 * s2 - p2 * s1 + p3 * s0
        elif body < 0:
            x[k] = s0
            x[k + 1] = s1
            x[k + 2] = s2
        else:
            o = 9 * body
            w0 = work[o] * s0 + work[o + 1] * s1 + work[o + 2] * s2
            w1 = work[o + 3] * s0 + work[o + 4] * s1 + work[o + 5] * s2
            w2 = work[o + 6] * s0 + work[o + 7] * s1 + work[o + 8] * s2
            if kind == POINT:
                o = POSE * body
                w0 += q[o]
                w1 += q[o + 1]
                w2 += q[o + 2]
            x[k] = w0
            x[k + 1] = w1
            x[k + 2] = w2
        at += FEATURE


@inner
def update_constraints(ints, floats, q, r, work):
    """f of every constraint into r, ∂f/∂x into work behind the matrices and the features.  Returns where that begins."""
    bodies = ints[BODIES]
    update_matrices(bodies, q, work)
    x = work[9 * bodies : 9 * bodies + MAX_COMPONENTS]
    derivatives = 9 * bodies + MAX_COMPONENTS
    record = HEADER
    for _ in range(ints[CONSTRAINTS]):
        update_features(record, ints, floats, q, work, x)
        evaluate_primitive(
            ints[record + CODE],
            x,
            floats,
            ints[record + PAR],
            r,
            ints[record + ROW],
            work,
            derivatives + ints[record + DERIVATIVE],
        )
        record = ints[record + NEXT]
    return derivatives


def work_size(ints):
    """Floats that an evaluator needs in its work array."""
    return 9 * int(ints[BODIES]) + MAX_COMPONENTS + int(ints[DERIVATIVES])
