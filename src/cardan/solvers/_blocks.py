"""Operations on block rows that the solvers share: scaling, J·x, Jᵀ·y, caps on rotations, norms of residuals."""

from math import sqrt

from cardan.kernel.jit import exact, exact_inner, inner, jit
from cardan.kernel.memory import address_in_kernel, call_evaluator, floats_at, integers_at, pointer, tail
from cardan.solvers import abi


@inner
def scale_rows(structure, scales, r, jacobian):
    """r ← D_r r and J ← D_r J D_c in place; scales contains the row scales, then the column scales."""
    m = structure[abi.ROWS]
    offsets = tail(structure, structure[abi.OFFSETS])
    constraint = tail(structure, abi.HEADER)
    for _ in range(structure[abi.CONSTRAINTS]):
        entry = constraint[abi.C_ENTRY]
        slots = constraint[abi.C_SLOTS]
        for i in range(constraint[abi.C_ROW], constraint[abi.C_ROW] + constraint[abi.C_ROWS]):
            factor = scales[i]
            r[i] *= factor
            for s in range(slots):
                block = constraint[abi.C_BLOCKS + s]
                for k in range(offsets[block], offsets[block + 1]):
                    jacobian[entry] *= factor * scales[m + k]
                    entry += 1
        constraint = tail(constraint, abi.C_BLOCKS + constraint[abi.C_SLOTS])


@inner
def row_length(constraint, offsets):
    """Number of entries in a row of a constraint: the sum of the widths of its blocks."""
    total = 0
    for s in range(constraint[abi.C_SLOTS]):
        block = constraint[abi.C_BLOCKS + s]
        total += offsets[block + 1] - offsets[block]
    return total


@inner
def larger(a, b):
    """max(a, b); NaN if either is NaN (the result of the built-in max would depend on their order)."""
    return b if b > a or b != b else a


@inner
def largest(structure, r):
    """max |r_i|; NaN if any is NaN."""
    result = 0.0
    for i in range(structure[abi.ROWS]):
        a = abs(r[i])
        if not a <= result:
            result = a
            if result != result:
                return result
    return result


@exact_inner
def scaled_cost(structure, scales, r):
    """r ← D_r r in place; returns ½|r|².

    Terms are added in order, so that a cost has the same bits in every kernel that computes it.
    """
    total = 0.0
    for i in range(structure[abi.ROWS]):
        r[i] *= scales[i]
        total += r[i] * r[i]
    return 0.5 * total


@exact
def scale_residuals(structure, scales, r):
    """scaled_cost, callable from Python."""
    return scaled_cost(structure, scales, r)


@inner
def half_square(structure, r):
    """½ |r|²"""
    s = 0.0
    for i in range(structure[abi.ROWS]):
        s += r[i] * r[i]
    return 0.5 * s


@inner
def times(structure, jacobian, x, out):
    """out ← J x; returns |J x|²."""
    offsets = tail(structure, structure[abi.OFFSETS])
    square = 0.0
    constraint = tail(structure, abi.HEADER)
    for _ in range(structure[abi.CONSTRAINTS]):
        entry = constraint[abi.C_ENTRY]
        slots = constraint[abi.C_SLOTS]
        for i in range(constraint[abi.C_ROW], constraint[abi.C_ROW] + constraint[abi.C_ROWS]):
            total = 0.0
            for s in range(slots):
                block = constraint[abi.C_BLOCKS + s]
                for k in range(offsets[block], offsets[block + 1]):
                    total += jacobian[entry] * x[k]
                    entry += 1
            out[i] = total
            square += total * total
        constraint = tail(constraint, abi.C_BLOCKS + constraint[abi.C_SLOTS])
    return square


@inner
def add_transpose_times(structure, jacobian, factor, y, out):
    """out += factor·Jᵀ y."""
    offsets = tail(structure, structure[abi.OFFSETS])
    constraint = tail(structure, abi.HEADER)
    for _ in range(structure[abi.CONSTRAINTS]):
        entry = constraint[abi.C_ENTRY]
        slots = constraint[abi.C_SLOTS]
        for i in range(constraint[abi.C_ROW], constraint[abi.C_ROW] + constraint[abi.C_ROWS]):
            t = factor * y[i]
            for s in range(slots):
                block = constraint[abi.C_BLOCKS + s]
                for k in range(offsets[block], offsets[block + 1]):
                    out[k] += jacobian[entry] * t
                    entry += 1
        constraint = tail(constraint, abi.C_BLOCKS + constraint[abi.C_SLOTS])


@inner
def transpose_times(structure, jacobian, y, out):
    """out ← Jᵀ y."""
    for k in range(structure[abi.UNKNOWNS]):
        out[k] = 0.0
    add_transpose_times(structure, jacobian, 1.0, y, out)


@inner
def update_defect(structure, r, jacobian, damping, step, defect):
    """defect ← Jᵀ(r + J·step) + damping·step: the residual of the normal equations for a computed step."""
    offsets = tail(structure, structure[abi.OFFSETS])
    for i in range(structure[abi.UNKNOWNS]):
        defect[i] = damping * step[i]
    constraint = tail(structure, abi.HEADER)
    for _ in range(structure[abi.CONSTRAINTS]):
        entry = constraint[abi.C_ENTRY]
        slots = constraint[abi.C_SLOTS]
        for i in range(constraint[abi.C_ROW], constraint[abi.C_ROW] + constraint[abi.C_ROWS]):
            t = r[i]
            e = entry
            for s in range(slots):
                block = constraint[abi.C_BLOCKS + s]
                for k in range(offsets[block], offsets[block + 1]):
                    t += jacobian[e] * step[k]
                    e += 1
            for s in range(slots):
                block = constraint[abi.C_BLOCKS + s]
                for k in range(offsets[block], offsets[block + 1]):
                    defect[k] += jacobian[entry] * t
                    entry += 1
        constraint = tail(constraint, abi.C_BLOCKS + constraint[abi.C_SLOTS])


@inner
def shorten_rows(structure, r, jacobian):
    """Scale rows of J, and their residuals, to a norm of at most LONG_ROW; the solutions of J x = r are the same."""
    offsets = tail(structure, structure[abi.OFFSETS])
    constraint = tail(structure, abi.HEADER)
    for _ in range(structure[abi.CONSTRAINTS]):
        length = row_length(constraint, offsets)
        row = tail(jacobian, constraint[abi.C_ENTRY])
        for i in range(constraint[abi.C_ROW], constraint[abi.C_ROW] + constraint[abi.C_ROWS]):
            square = 0.0
            for k in range(length):
                square += row[k] * row[k]
            if square > abi.LONG_ROW * abi.LONG_ROW:
                factor = abi.LONG_ROW / sqrt(square)
                r[i] *= factor
                for k in range(length):
                    row[k] *= factor
            row = tail(row, length)
        constraint = tail(constraint, abi.C_BLOCKS + constraint[abi.C_SLOTS])


@inner
def cap_rotations(structure, cap, step):
    """Shorten the whole step so that no block's rotation exceeds cap."""
    offsets = tail(structure, structure[abi.OFFSETS])
    rotations = tail(structure, structure[abi.ROTATIONS])
    worst = 0.0
    for b in range(structure[abi.BLOCKS]):
        s = 0.0
        for k in range(offsets[b] + rotations[b], offsets[b + 1]):
            s += step[k] * step[k]
        if s > worst:
            worst = s
    if worst > cap * cap:
        factor = cap / sqrt(worst)
        for k in range(structure[abi.UNKNOWNS]):
            step[k] *= factor


@inner
def spread_rows(structure, jacobian, dense):
    """dense ← J, row-major, shape (rows × unknowns,); dense must contain zeros before the call."""
    n = structure[abi.UNKNOWNS]
    offsets = tail(structure, structure[abi.OFFSETS])
    constraint = tail(structure, abi.HEADER)
    for _ in range(structure[abi.CONSTRAINTS]):
        entry = constraint[abi.C_ENTRY]
        slots = constraint[abi.C_SLOTS]
        for i in range(constraint[abi.C_ROW], constraint[abi.C_ROW] + constraint[abi.C_ROWS]):
            for s in range(slots):
                block = constraint[abi.C_BLOCKS + s]
                for k in range(offsets[block], offsets[block + 1]):
                    dense[i * n + k] = jacobian[entry]
                    entry += 1
        constraint = tail(constraint, abi.C_BLOCKS + constraint[abi.C_SLOTS])


@jit
def spread(structure, jacobian, dense):
    """spread_rows, callable from Python."""
    spread_rows(pointer(structure), jacobian, dense)


@jit
def run(job, control, q, work):
    """Iterate with the solver of a job; returns STATUS."""
    return call_evaluator(job[abi.SOLVER], 0, job, control, q, control, control, control, work)


@jit
def run_at(places):
    """:func:`run` with job, control, q and work at four addresses: a call from Python takes time for each array."""
    job, control = integers_at(places[0]), floats_at(places[1])
    q, work = floats_at(places[2]), floats_at(places[3])
    return call_evaluator(job[abi.SOLVER], 0, job, control, q, control, control, control, work)


@jit
def write_addresses(ints, floats, structure, scales, pattern, table):
    """table ← addresses of the arrays of a problem; the caller keeps the arrays alive."""
    table[abi.INTS] = address_in_kernel(ints)
    table[abi.FLOATS] = address_in_kernel(floats)
    table[abi.STRUCTURE] = address_in_kernel(structure)
    table[abi.SCALES] = address_in_kernel(scales)
    table[abi.PATTERN] = address_in_kernel(pattern)


@jit
def call_at(address, op, ints, floats, q, step, out, jacobian, work):
    """Call an evaluator, or linear algebra, from Python."""
    return call_evaluator(address, op, ints, floats, q, step, out, jacobian, work)


@jit
def follow(address, ints, floats, q, steps, places, values, pose, out, work):
    """out[k] ← f(q ⊕ steps[k]), with values[k] written to floats at the indices in places."""
    for k in range(steps.shape[0]):
        for i in range(places.size):
            floats[places[i]] = values[k, i]
        call_evaluator(address, abi.RETRACT, ints, floats, q, steps[k], pose, pose, work)
        call_evaluator(address, abi.RESIDUAL, ints, floats, pose, pose, out[k], pose, work)


@jit
def scale(structure, scales, r, jacobian):
    """scale_rows, callable from Python."""
    scale_rows(pointer(structure), scales, r, jacobian)


@jit
def apply(structure, jacobian, x, out):
    """times, callable from Python."""
    times(pointer(structure), jacobian, x, out)


@jit
def apply_transposed(structure, jacobian, y, out):
    """transpose_times, callable from Python."""
    transpose_times(pointer(structure), jacobian, y, out)


@jit
def shorten(structure, r, jacobian):
    """shorten_rows, callable from Python."""
    shorten_rows(pointer(structure), r, pointer(jacobian))


@jit
def defect(structure, r, jacobian, damping, step, out):
    """update_defect, callable from Python."""
    update_defect(pointer(structure), r, jacobian, damping, step, out)
