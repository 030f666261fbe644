"""The one walk over the records, for all formulations whose unknowns are those of poses: f, J and γ.

    f(x(q)),   J = f_x · ∂x/∂(unknowns),   γ = −(f_x · bias + ẋᵀ f_xx ẋ),

with world features x and, since f̈ = f_x ẍ + ẋᵀ f_xx ẋ = 0, the bias ẍ at v̇ = 0, so that J v̇ = γ.  Reads the tables, q
and, for γ, the velocities v; writes f or γ to out, J to its blocks, all else to the workspace (:mod:`._records`).

A formulation supplies what is its own as functions, which are compiled into the walk; None where it has none:

======= ==========================================================================================================
chain   (kind, d, s, p, A, row): row of a block += d · ∂x/∂(unknowns of the body), for one feature; d is its ∂f/∂x
convert (p, A, row): changes a row of a block from (δr, δθ) to the formulation's unknowns, when all features are in
rates   (kind, s, p, A, v, x, rate, bias): ẋ and bias of one feature; v are the velocities of its body
======= ==========================================================================================================

where s are the feature's local coordinates, p and A the quaternion and the rotation matrix of its body.
"""

from cardan.constraints._generated import primitive_curvature
from cardan.coordinates._features import expand, multiply, rotate, update_features, update_matrices, update_primitive
from cardan.coordinates._records import curvature_codes, feature, features, matrix, quaternion, workspace
from cardan.kernel.jit import inner
from cardan.kernel.memory import FIRST_ADDRESS, call_primitive, cut, tail
from cardan.solvers.tables import GAMMA, JACOBIAN, MOTION
from cardan.system import layout


@inner
def walk(op, ints, floats, q, v, out, jacobian, work, width, chain, convert, rates):
    """RESIDUAL, JACOBIAN or, where there are rates, GAMMA and MOTION; ``width`` unknowns per body."""
    update_matrices(ints[layout.BODIES], q, work)
    floats = expand(ints, floats, q, work)
    pieces = workspace(ints)
    x = cut(work, pieces.features, ints[layout.WIDEST])
    record = tail(ints, layout.HEADER)
    for number in range(ints[layout.CONSTRAINTS]):
        rows = record[layout.ROWS]
        f = cut(out, record[layout.ROW], rows)
        df = cut(work, pieces.derivatives, rows * record[layout.COMPONENTS])
        c = tail(floats, record[layout.PAR])
        update_features(ints, record, floats, q, work, x)
        update_primitive(record[layout.CODE], x, c, f, df)
        if op == JACOBIAN or op == MOTION:
            stride = record[layout.SLOTS] * width + record[layout.WIDE]
            block = cut(jacobian, record[layout.BLOCK] * width + record[layout.EXTRA], rows * stride)
            update_block(record, floats, q, work, df, block, stride, width, chain, convert)
            if record[layout.WIDE] > 0:
                add_variables(ints, record, floats, q, work, df, block, stride)
        if rates is not None:
            if op == GAMMA or op == MOTION:
                g = f if op == GAMMA else cut(out, ints[layout.ROWS_TOTAL] + record[layout.ROW], rows)
                rate = cut(work, pieces.rates, ints[layout.WIDEST])
                bias = cut(work, pieces.biases, ints[layout.WIDEST])
                update_rates(record, floats, q, v, work, x, rate, bias, width, rates)
                code = curvature_codes(ints)[number]
                if code < FIRST_ADDRESS:
                    primitive_curvature(code, x, rate, c, g)
                else:
                    call_primitive(code, x, rate, c, g)
                for i in range(rows):
                    s = g[i]
                    for j in range(record[layout.COMPONENTS]):
                        s += df[i * record[layout.COMPONENTS] + j] * bias[j]
                    g[i] = -s
        record = tail(ints, record[layout.NEXT])


@inner
def update_block(record, floats, q, work, df, block, stride, width, chain, convert):
    """Entries of one constraint from its ∂f/∂x, ``stride`` in each row; zero for variables."""
    rows = record[layout.ROWS]
    for i in range(rows * stride):
        block[i] = 0.0
    first = features(record)
    for k in range(record[layout.FEATURES]):
        this = feature(first, k)
        body = this[layout.BODY]
        if body >= 0:
            kind = this[layout.KIND]
            s = tail(floats, this[layout.SOURCE])
            p = quaternion(q, body)
            a = matrix(work, body)
            d = this[layout.COLUMN]
            j = this[layout.SLOT] * width
            for _ in range(rows):
                chain(kind, cut(df, d, 4 if kind == layout.ORIENTATION else 3), s, p, a, cut(block, j, width))
                d += record[layout.COMPONENTS]
                j += stride
    if convert is not None:
        for i in range(rows):
            for s in range(record[layout.SLOTS]):
                body = record[layout.RECORD + s]
                convert(quaternion(q, body), matrix(work, body), cut(block, i * stride + s * width, width))


@inner
def add_variables(ints, record, floats, q, work, df, block, stride):
    """Entries by free variables: ∂f/∂x · ∂x/∂s · ∂s/∂(variable), with the local coordinates s of a feature."""
    wide = record[layout.WIDE]
    links = tail(ints, record[layout.LINKS] + wide)
    tangent = cut(work, workspace(ints).tangents, 4)
    first = features(record)
    for k in range(links[0]):
        link = tail(links, 1 + layout.LINK * k)
        this = feature(first, link[layout.L_FEATURE])
        s = tail(floats, ints[ints[layout.VARIABLE_TABLE] + layout.T_FLOATS] + link[layout.L_TANGENT])
        kind = this[layout.KIND]
        size = 1 if kind == layout.SCALAR else 4 if kind == layout.ORIENTATION else 3
        if size == 3:
            rotate(this[layout.BODY], s, work, tangent)
        elif size == 4 and this[layout.BODY] >= 0:
            multiply(quaternion(q, this[layout.BODY]), s, tangent)
        else:
            for i in range(size):
                tangent[i] = s[i]
        at = stride - wide + link[layout.L_COLUMN]
        d = this[layout.COLUMN]
        for _ in range(record[layout.ROWS]):
            for i in range(size):
                block[at] += df[d + i] * tangent[i]
            at += stride
            d += record[layout.COMPONENTS]


@inner
def update_rates(record, floats, q, v, work, x, rate, bias, width, rates):
    """ẋ and bias of every feature of one constraint."""
    first = features(record)
    for k in range(record[layout.FEATURES]):
        this = feature(first, k)
        kind = this[layout.KIND]
        body = this[layout.BODY]
        column = this[layout.COLUMN]
        if kind == layout.TIMED:
            s = tail(floats, this[layout.SOURCE])
            rate[column] = s[1]
            bias[column] = s[2]
        elif body < 0:
            for i in range(column, column + (4 if kind == layout.ORIENTATION else 1 if kind >= layout.ANGLE else 3)):
                rate[i] = 0.0
                bias[i] = 0.0
        else:
            s = tail(floats, this[layout.SOURCE])
            p = quaternion(q, body)
            own = cut(v, width * body, width)
            rates(kind, s, p, matrix(work, body), own, tail(x, column), tail(rate, column), tail(bias, column))
