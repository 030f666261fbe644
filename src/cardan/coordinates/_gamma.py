"""γ of every constraint: J v̇ = γ, where v are the velocities of the formulation's own tangent.

With world features x(t):  f̈ = f_x ẍ + ẋᵀ f_xx ẋ = 0, and ẍ = (its part in v̇) + bias, so γ = −(f_x·bias + ẋᵀ f_xx ẋ).

============ ============================== ==========================
             manifold: (ṙ, ω in body)       Euler parameters: (ṙ, ṗ)
============ ============================== ==========================
point, ẋ     ṙ + A(ω × s)                   ṙ + K(s, p) ṗ
point, bias  A(ω × (ω × s))                 K(s, ṗ) ṗ = 2 A(ṗ) s
orientation  ½ p ⊗ ω ⊗ s, bias −¼|ω|² x     ṗ ⊗ s, bias 0
============ ============================== ==========================

The two γ differ by ¼|ω|² K p, since v̇ = 0 means another motion in each.  [Haug1989]
"""

from cardan._jit import FIRST_ADDRESS, call_primitive, inner, jit
from cardan.constraints._generated import primitive_curvature
from cardan.coordinates._features import update_features, update_matrices, update_primitive
from cardan.system.layout import (
    ANGLE,
    BODIES,
    BODY,
    CODE,
    COLUMN,
    COMPONENTS,
    CONSTRAINTS,
    FEATURE,
    FEATURES,
    HEADER,
    KIND,
    NEXT,
    ORIENTATION,
    PAR,
    POINT,
    POSE,
    RECORD,
    ROW,
    ROWS,
    ROWS_TOTAL,
    SLOTS,
    SOURCE,
    WIDEST,
)


@inner
def update_rates_manifold(kind, s, k, body, floats, q, v, work, x, rate, bias):
    """ẋ and bias of one feature, from (ṙ, ω)."""
    w0 = v[6 * body + 3]
    w1 = v[6 * body + 4]
    w2 = v[6 * body + 5]
    s0 = floats[s]
    s1 = floats[s + 1]
    s2 = floats[s + 2]
    if kind == ORIENTATION:
        s3 = floats[s + 3]
        o = POSE * body + 3
        # a = ω ⊗ s, then ½ p ⊗ a
        a0 = -w0 * s1 - w1 * s2 - w2 * s3
        a1 = w0 * s0 + w1 * s3 - w2 * s2
        a2 = -w0 * s3 + w1 * s0 + w2 * s1
        a3 = w0 * s2 - w1 * s1 + w2 * s0
        rate[k] = 0.5 * (q[o] * a0 - q[o + 1] * a1 - q[o + 2] * a2 - q[o + 3] * a3)
        rate[k + 1] = 0.5 * (q[o] * a1 + q[o + 1] * a0 + q[o + 2] * a3 - q[o + 3] * a2)
        rate[k + 2] = 0.5 * (q[o] * a2 - q[o + 1] * a3 + q[o + 2] * a0 + q[o + 3] * a1)
        rate[k + 3] = 0.5 * (q[o] * a3 + q[o + 1] * a2 - q[o + 2] * a1 + q[o + 3] * a0)
        square = -0.25 * (w0 * w0 + w1 * w1 + w2 * w2)
        for i in range(4):
            bias[k + i] = square * x[k + i]
        return
    u0 = w1 * s2 - w2 * s1
    u1 = w2 * s0 - w0 * s2
    u2 = w0 * s1 - w1 * s0
    c0 = w1 * u2 - w2 * u1
    c1 = w2 * u0 - w0 * u2
    c2 = w0 * u1 - w1 * u0
    o = 9 * body
    for i in range(3):
        rate[k + i] = work[o] * u0 + work[o + 1] * u1 + work[o + 2] * u2
        bias[k + i] = work[o] * c0 + work[o + 1] * c1 + work[o + 2] * c2
        if kind == POINT:
            rate[k + i] += v[6 * body + i]
        o += 3


@inner
def update_rates_euler(kind, s, k, body, floats, q, v, rate, bias):
    """ẋ and bias of one feature, from (ṙ, ṗ)."""
    o = POSE * body + 3
    p0 = q[o]
    p1 = q[o + 1]
    p2 = q[o + 2]
    p3 = q[o + 3]
    d0 = v[o]
    d1 = v[o + 1]
    d2 = v[o + 2]
    d3 = v[o + 3]
    s0 = floats[s]
    s1 = floats[s + 1]
    s2 = floats[s + 2]
    if kind == ORIENTATION:
        s3 = floats[s + 3]
        rate[k] = d0 * s0 - d1 * s1 - d2 * s2 - d3 * s3
        rate[k + 1] = d0 * s1 + d1 * s0 + d2 * s3 - d3 * s2
        rate[k + 2] = d0 * s2 - d1 * s3 + d2 * s0 + d3 * s1
        rate[k + 3] = d0 * s3 + d1 * s2 - d2 * s1 + d3 * s0
        for i in range(4):
            bias[k + i] = 0.0
        return
    # A(p) s = (e₀² − e·e) s + 2 (e·s) e + 2 e₀ (e × s), differentiated once and twice with p̈ = 0
    es = p1 * s0 + p2 * s1 + p3 * s2
    ds = d1 * s0 + d2 * s1 + d3 * s2
    trace = 2.0 * (p0 * d0 - p1 * d1 - p2 * d2 - p3 * d3)
    square = 2.0 * (d0 * d0 - d1 * d1 - d2 * d2 - d3 * d3)
    x0 = p2 * s2 - p3 * s1
    x1 = p3 * s0 - p1 * s2
    x2 = p1 * s1 - p2 * s0
    y0 = d2 * s2 - d3 * s1
    y1 = d3 * s0 - d1 * s2
    y2 = d1 * s1 - d2 * s0
    rate[k] = trace * s0 + 2.0 * (es * d1 + ds * p1 + d0 * x0 + p0 * y0)
    rate[k + 1] = trace * s1 + 2.0 * (es * d2 + ds * p2 + d0 * x1 + p0 * y1)
    rate[k + 2] = trace * s2 + 2.0 * (es * d3 + ds * p3 + d0 * x2 + p0 * y2)
    bias[k] = square * s0 + 4.0 * (ds * d1 + d0 * y0)
    bias[k + 1] = square * s1 + 4.0 * (ds * d2 + d0 * y1)
    bias[k + 2] = square * s2 + 4.0 * (ds * d3 + d0 * y2)
    if kind == POINT:
        for i in range(3):
            rate[k + i] += v[POSE * body + i]


@jit
def update_gamma(ints, floats, curvatures, q, v, euler, gamma, work):
    """gamma ← γ of every row.

    curvatures: per constraint the code or address of ẋᵀ f_xx ẋ; work: 9·bodies + (3 + rows)·width floats, where rows
    and width are the most a constraint has, of rows and of components.
    """
    bodies = ints[BODIES]
    update_matrices(bodies, q, work)
    at = 9 * bodies
    width = ints[WIDEST]
    x = work[at : at + width]
    rate = work[at + width : at + 2 * width]
    bias = work[at + 2 * width : at + 3 * width]
    partial = work[at + 3 * width :]
    record = HEADER
    for number in range(ints[CONSTRAINTS]):
        update_features(record, ints, floats, q, work, x)
        feature = record + RECORD + ints[record + SLOTS]
        components = ints[record + COMPONENTS]
        for _ in range(ints[record + FEATURES]):
            kind = ints[feature + KIND]
            body = ints[feature + BODY]
            k = ints[feature + COLUMN]
            if body < 0:
                for i in range(k, k + (4 if kind == ORIENTATION else 1 if kind == ANGLE else 3)):
                    rate[i] = 0.0
                    bias[i] = 0.0
            elif euler:
                update_rates_euler(kind, ints[feature + SOURCE], k, body, floats, q, v, rate, bias)
            else:
                update_rates_manifold(kind, ints[feature + SOURCE], k, body, floats, q, v, work, x, rate, bias)
            feature += FEATURE
        row = ints[record + ROW]
        code = ints[record + CODE]
        par = ints[record + PAR]
        update_primitive(code, x, floats[par:], gamma[row:], partial)
        code = curvatures[number]
        if code < FIRST_ADDRESS:
            primitive_curvature(code, x, rate, floats[par:], gamma[row:])
        else:
            call_primitive(code, x, rate, floats[par:], gamma[row:])
        for i in range(ints[record + ROWS]):
            s = gamma[row + i]
            for j in range(components):
                s += partial[i * components + j] * bias[j]
            gamma[row + i] = -s
        record = ints[record + NEXT]
    if euler:
        for b in range(bodies):
            s = 0.0
            for i in range(3, POSE):
                s += v[POSE * b + i] * v[POSE * b + i]
            gamma[ints[ROWS_TOTAL] + b] = -2.0 * s
