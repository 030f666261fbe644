"""Operations on block rows that the solvers share: scaling, J·x, Jᵀ·y, caps on rotations, norms of residuals."""

from math import sqrt

from cardan.kernel.fields import after
from cardan.kernel.jit import exact, exact_inner, inner, jit
from cardan.kernel.memory import address_in_kernel, call_evaluator, floats_at, integers_at, pointer, tail
from cardan.solvers.tables import LONG_ROW, RESIDUAL, RETRACT, Job, Structure

# where a job table has addresses, which kernels read but do not assign
INTS, FLOATS, STRUCTURE = Job.ints.first, Job.floats.first, Job.structure.first
SCALES, PATTERN = Job.scales.first, Job.pattern.first


@inner
def scale_rows(structure, scales, r, jacobian):
    """r ← D_r r and J ← D_r J D_c in place; scales contains the row scales, then the column scales."""
    structure = Structure(structure)
    m = structure.rows
    offsets = structure.offsets
    constraint = structure.records
    for _ in range(structure.constraints):
        entry = constraint.entry
        slots = constraint.slots
        for i in range(constraint.row, constraint.row + constraint.rows):
            factor = scales[i]
            r[i] *= factor
            for s in range(slots):
                block = constraint.blocks[s]
                for k in range(offsets[block], offsets[block + 1]):
                    jacobian[entry] *= factor * scales[m + k]
                    entry += 1
        constraint = after(constraint, constraint.slots)


@inner
def row_length(constraint, offsets):
    """Number of entries in a row of a constraint: the sum of the widths of its blocks."""
    total = 0
    for s in range(constraint.slots):
        block = constraint.blocks[s]
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
    for i in range(structure.rows):
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
    for i in range(structure.rows):
        r[i] *= scales[i]
        total += r[i] * r[i]
    return 0.5 * total


@exact
def scale_residuals(structure, scales, r):
    """scaled_cost, callable from Python."""
    return scaled_cost(Structure(structure), scales, r)


@inner
def half_square(structure, r):
    """½ |r|²"""
    s = 0.0
    for i in range(structure.rows):
        s += r[i] * r[i]
    return 0.5 * s


@inner
def times(structure, jacobian, x, out):
    """out ← J x; returns |J x|²."""
    structure = Structure(structure)
    offsets = structure.offsets
    square = 0.0
    constraint = structure.records
    for _ in range(structure.constraints):
        entry = constraint.entry
        slots = constraint.slots
        for i in range(constraint.row, constraint.row + constraint.rows):
            total = 0.0
            for s in range(slots):
                block = constraint.blocks[s]
                for k in range(offsets[block], offsets[block + 1]):
                    total += jacobian[entry] * x[k]
                    entry += 1
            out[i] = total
            square += total * total
        constraint = after(constraint, constraint.slots)
    return square


@inner
def add_transpose_times(structure, jacobian, factor, y, out):
    """out += factor·Jᵀ y."""
    structure = Structure(structure)
    offsets = structure.offsets
    constraint = structure.records
    for _ in range(structure.constraints):
        entry = constraint.entry
        slots = constraint.slots
        for i in range(constraint.row, constraint.row + constraint.rows):
            t = factor * y[i]
            for s in range(slots):
                block = constraint.blocks[s]
                for k in range(offsets[block], offsets[block + 1]):
                    out[k] += jacobian[entry] * t
                    entry += 1
        constraint = after(constraint, constraint.slots)


@inner
def transpose_times(structure, jacobian, y, out):
    """out ← Jᵀ y."""
    for k in range(structure.unknowns):
        out[k] = 0.0
    add_transpose_times(structure, jacobian, 1.0, y, out)


@inner
def update_rest(structure, r, jacobian, weight, u, rest):
    """rest ← (−weight·u, r − J u): the right-hand side of the correction of a computed u."""
    offsets = structure.offsets
    n = structure.unknowns
    for i in range(n):
        rest[i] = -weight * u[i]
    constraint = structure.records
    for _ in range(structure.constraints):
        entry = constraint.entry
        slots = constraint.slots
        for i in range(constraint.row, constraint.row + constraint.rows):
            t = r[i]
            for s in range(slots):
                block = constraint.blocks[s]
                for k in range(offsets[block], offsets[block + 1]):
                    t -= jacobian[entry] * u[k]
                    entry += 1
            rest[n + i] = t
        constraint = after(constraint, constraint.slots)


@inner
def normal_right(structure, epsilon, jacobian, x, out):
    """out ← εb + Jᵀc, the right-hand side of normal equations; x = (b, c)."""
    n = structure.unknowns
    for i in range(n):
        out[i] = epsilon * x[i]
    add_transpose_times(structure, jacobian, 1.0, tail(x, n), out)


@inner
def shorten_rows(structure, r, jacobian):
    """Scale rows of J, and their residuals, to a norm of at most LONG_ROW; the solutions of J x = r are the same."""
    offsets = structure.offsets
    constraint = structure.records
    for _ in range(structure.constraints):
        length = row_length(constraint, offsets)
        row = tail(jacobian, constraint.entry)
        for i in range(constraint.row, constraint.row + constraint.rows):
            square = 0.0
            for k in range(length):
                square += row[k] * row[k]
            if square > LONG_ROW * LONG_ROW:
                factor = LONG_ROW / sqrt(square)
                r[i] *= factor
                for k in range(length):
                    row[k] *= factor
            row = tail(row, length)
        constraint = after(constraint, constraint.slots)


@inner
def cap_rotations(structure, cap, step):
    """Shorten the whole step so that no block's rotation exceeds cap."""
    offsets = structure.offsets
    rotations = structure.rotations
    worst = 0.0
    for b in range(structure.blocks):
        s = 0.0
        for k in range(offsets[b] + rotations[b], offsets[b + 1]):
            s += step[k] * step[k]
        if s > worst:
            worst = s
    if worst > cap * cap:
        factor = cap / sqrt(worst)
        for k in range(structure.unknowns):
            step[k] *= factor


@inner
def spread_rows(structure, jacobian, dense):
    """dense ← J, row-major, shape (rows × unknowns,); dense must contain zeros before the call."""
    n = structure.unknowns
    offsets = structure.offsets
    constraint = structure.records
    for _ in range(structure.constraints):
        entry = constraint.entry
        slots = constraint.slots
        for i in range(constraint.row, constraint.row + constraint.rows):
            for s in range(slots):
                block = constraint.blocks[s]
                for k in range(offsets[block], offsets[block + 1]):
                    dense[i * n + k] = jacobian[entry]
                    entry += 1
        constraint = after(constraint, constraint.slots)


@jit
def spread(structure, jacobian, dense):
    """spread_rows, callable from Python."""
    spread_rows(Structure(structure), jacobian, dense)


@jit
def write_addresses(job, ints, floats, structure, scales, pattern):
    """Let a job table refer to arrays, which the caller keeps alive."""
    job[INTS] = address_in_kernel(ints)
    job[FLOATS] = address_in_kernel(floats)
    job[STRUCTURE] = address_in_kernel(structure)
    job[SCALES] = address_in_kernel(scales)
    job[PATTERN] = address_in_kernel(pattern)


@jit
def run(job, control, q, work):
    """Iterate with the solver of a job; returns its status."""
    return call_evaluator(Job(job).run, 0, job, control, q, control, control, control, work)


@jit
def run_at(places):
    """:func:`run` with job, control, q and work at four addresses: a call from Python takes time for each array."""
    job, control = integers_at(places[0]), floats_at(places[1])
    q, work = floats_at(places[2]), floats_at(places[3])
    return call_evaluator(Job(job).run, 0, job, control, q, control, control, control, work)


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
        call_evaluator(address, RETRACT, ints, floats, q, steps[k], pose, pose, work)
        call_evaluator(address, RESIDUAL, ints, floats, pose, pose, out[k], pose, work)


@jit
def scale(structure, scales, r, jacobian):
    """scale_rows, callable from Python."""
    scale_rows(Structure(structure), scales, r, jacobian)


@jit
def apply(structure, jacobian, x, out):
    """times, callable from Python."""
    times(Structure(structure), jacobian, x, out)


@jit
def apply_transposed(structure, jacobian, y, out):
    """transpose_times, callable from Python."""
    transpose_times(Structure(structure), jacobian, y, out)


@jit
def shorten(structure, r, jacobian):
    """shorten_rows, callable from Python."""
    shorten_rows(Structure(structure), r, pointer(jacobian))
