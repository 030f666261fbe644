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

from cardan.constraints._calls import call_curvature
from cardan.constraints._generated import primitive_curvature
from cardan.coordinates._features import expand, multiply, rotate, update_features, update_matrices, update_primitive
from cardan.coordinates._records import curvature_codes, features, matrix, quaternion, workspace
from cardan.kernel.fields import after
from cardan.kernel.jit import inner
from cardan.kernel.memory import FIRST_ADDRESS, cut, tail
from cardan.solvers.tables import GAMMA, JACOBIAN, MOTION
from cardan.system.tables import ANGLE, FEATURE, ORIENTATION, SCALAR, TIMED, Feature, Link


@inner
def walk(op, system, floats, q, v, target, width, chain, convert, rates):
    """RESIDUAL, JACOBIAN or, where there are rates, GAMMA and MOTION; ``width`` unknowns per body.

    target: out, jacobian and the workspace.
    """
    out, jacobian, work = target
    update_matrices(system.bodies, q, work)
    floats = expand(system, floats, q, work)
    pieces = workspace(system)
    x = cut(work, pieces.features, system.widest)
    record = system.records
    for number in range(system.constraints):
        rows = record.rows
        f = cut(out, record.row, rows)
        df = cut(work, pieces.derivatives, rows * record.components)
        c = tail(floats, record.par)
        update_features(system, record, floats, q, work, x)
        update_primitive(record.code, x, c, f, df)
        if op == JACOBIAN or op == MOTION:
            stride = record.slots * width + record.wide
            block = cut(jacobian, record.block * width + record.extra, rows * stride)
            update_block(record, floats, q, work, df, block, stride, width, chain, convert)
            if record.wide > 0:
                add_variables(system, record, floats, q, work, df, block, stride)
        if rates is not None:
            if op == GAMMA or op == MOTION:
                g = f if op == GAMMA else cut(out, system.rows + record.row, rows)
                rate = cut(work, pieces.rates, system.widest)
                bias = cut(work, pieces.biases, system.widest)
                update_rates(record, floats, q, v, work, x, rate, bias, width, rates)
                code = curvature_codes(system)[number]
                if code < FIRST_ADDRESS:
                    primitive_curvature(code, x, rate, c, g)
                else:
                    call_curvature(code, x, rate, c, g)
                for i in range(rows):
                    s = g[i]
                    for j in range(record.components):
                        s += df[i * record.components + j] * bias[j]
                    g[i] = -s
        record = after(record, record.slots + FEATURE * record.features)


@inner
def update_block(record, floats, q, work, df, block, stride, width, chain, convert):
    """Entries of one constraint from its ∂f/∂x, ``stride`` in each row; zero for variables."""
    rows = record.rows
    for i in range(rows * stride):
        block[i] = 0.0
    first = features(record)
    for k in range(record.features):
        this = Feature(first, k)
        body = this.body
        if body >= 0:
            kind = this.kind
            s = tail(floats, this.source)
            p = quaternion(q, body)
            a = matrix(work, body)
            d = this.column
            j = this.slot * width
            for _ in range(rows):
                chain(kind, cut(df, d, 4 if kind == ORIENTATION else 3), s, p, a, cut(block, j, width))
                d += record.components
                j += stride
    if convert is not None:
        for i in range(rows):
            for s in range(record.slots):
                body = record.bodies[s]
                convert(quaternion(q, body), matrix(work, body), cut(block, i * stride + s * width, width))


@inner
def add_variables(system, record, floats, q, work, df, block, stride):
    """Entries by free variables: ∂f/∂x · ∂x/∂s · ∂s/∂(variable), with the local coordinates s of a feature."""
    wide = record.wide
    links = tail(system.as_ints, record.links + wide)
    tangent = cut(work, workspace(system).tangents, 4)
    first = features(record)
    for k in range(links[0]):
        link = Link(tail(links, 1), k)
        this = Feature(first, link.feature)
        s = tail(floats, system.variable_table.floats + link.tangent)
        kind = this.kind
        size = 1 if kind == SCALAR else 4 if kind == ORIENTATION else 3
        if size == 3:
            rotate(this.body, s, work, tangent)
        elif size == 4 and this.body >= 0:
            multiply(quaternion(q, this.body), s, tangent)
        else:
            for i in range(size):
                tangent[i] = s[i]
        at = stride - wide + link.column
        d = this.column
        for _ in range(record.rows):
            for i in range(size):
                block[at] += df[d + i] * tangent[i]
            at += stride
            d += record.components


@inner
def update_rates(record, floats, q, v, work, x, rate, bias, width, rates):
    """ẋ and bias of every feature of one constraint."""
    first = features(record)
    for k in range(record.features):
        this = Feature(first, k)
        kind = this.kind
        body = this.body
        column = this.column
        if kind == TIMED:
            s = tail(floats, this.source)
            rate[column] = s[1]
            bias[column] = s[2]
        elif body < 0:
            for i in range(column, column + (4 if kind == ORIENTATION else 1 if kind >= ANGLE else 3)):
                rate[i] = 0.0
                bias[i] = 0.0
        else:
            s = tail(floats, this.source)
            p = quaternion(q, body)
            velocities = cut(v, width * body, width)
            rates(kind, s, p, matrix(work, body), velocities, tail(x, column), tail(rate, column), tail(bias, column))
