"""Algorithm 1 of [Liu2013], step for step:

    while n < N and ‖Φ(q)‖ > ε:   (printed with <)
        q ← q − J⁻¹Φ   where J is invertible,   q ← q − J⁺Φ   where not;   n ← n + 1

‖·‖ is the Euclidean norm.  The paper does not say how it tells a singular J.  Here J counts as singular if it is not
square, or if LU with partial pivoting finds a pivot that does not exceed SINGULAR × max|J_ij|.  J⁺ is truncated:
directions whose pivot falls below TRUNCATION times the largest are left alone.  Φ, J and the unknowns come scaled; an
unknown with the scale 0 is held, and is no column of J.
"""

from math import sqrt

from cardan._jit import call_evaluator, call_kernel, cut, inner, jit, pointer
from cardan.math._dense import lu_solve, minimum_norm
from cardan.solvers._blocks import half_square, largest
from cardan.solvers.abi import (
    BROKEN,
    CHUNK,
    CONSTRAINTS,
    CONVERGED,
    COORDINATES,
    COST,
    HEADER,
    INVERSE,
    ITERATIONS,
    JACOBIAN,
    JACOBIAN_SIZE,
    LU_FIRST,
    OFFSETS,
    OVERFLOW,
    RESIDUAL_MAX,
    RETRACT,
    ROWS,
    RUNNING,
    SINGULAR,
    STATUS,
    TOLERANCE,
    TRUNCATION,
    UNKNOWNS,
    WORK,
)


@inner
def number_free(structure, scales, columns):
    """columns ← number of each unknown among those that are not held, or −1.  Returns how many are free."""
    m = structure[ROWS]
    free = 0
    for k in range(structure[UNKNOWNS]):
        columns[k] = -1
        if scales[m + k] != 0.0:
            columns[k] = free
            free += 1
    return free


@inner
def place_free(structure, scales, columns, free, entries, factors):
    """Where the entries of J in free columns go in a row-major matrix: entries ← (entry, place), factors ← scale.

    Returns how many there are.
    """
    m = structure[ROWS]
    offsets = structure[OFFSETS]
    at = HEADER
    count = 0
    for _ in range(structure[CONSTRAINTS]):
        entry = structure[at + 2]
        slots = structure[at + 3]
        for i in range(structure[at], structure[at] + structure[at + 1]):
            for s in range(slots):
                block = structure[at + 4 + s]
                for k in range(structure[offsets + block], structure[offsets + block + 1]):
                    if columns[k] >= 0:
                        entries[2 * count] = entry
                        entries[2 * count + 1] = i * free + columns[k]
                        factors[count] = scales[i] * scales[m + k]
                        count += 1
                    entry += 1
        at += 4 + slots
    return count


@inner
def solve(m, n, by_lu, matrix, r, solution, control, copy, right, scratch, pivots):
    """solution ← J⁻¹Φ if J, m×n, is to be inverted by LU and can be, else J⁺Φ; matrix and r stay as they are."""
    if by_lu and m == n:
        for i in range(m * n):
            copy[i] = matrix[i]
        for i in range(m):
            right[i] = r[i]
        if lu_solve(m, copy, right, solution, control[SINGULAR]):
            return
    for i in range(m * n):
        copy[i] = matrix[i]
    for i in range(m):
        right[i] = r[i]
    minimum_norm(m, n, copy, right, solution, control[TRUNCATION], scratch, pivots)


@jit
def algorithm_1(evaluate, ints, floats, structure, scales, q, control, work, pivots):
    """Iterate from q in place until met, broken, or CHUNK iterations are done; returns STATUS."""
    structure = pointer(structure)
    scales = pointer(scales)
    q = pointer(q)
    control = pointer(control)
    work = pointer(work)
    pivots = pointer(pivots)
    m = structure[ROWS]
    n = structure[UNKNOWNS]
    size = structure[JACOBIAN_SIZE]
    coordinates = structure[COORDINATES]
    at = structure[WORK]
    inner = cut(work, 0, at)
    r = cut(work, at, m)
    at += m
    right = cut(work, at, m)
    at += m
    jacobian = cut(work, at, size)
    at += size
    moved = cut(work, at, coordinates)
    at += coordinates
    step = cut(work, at, n)
    at += n
    solution = cut(work, at, n)
    at += n
    scratch = cut(work, at, 3 * n)
    at += 3 * n
    factors = cut(work, at, size)
    at += size
    matrix = cut(work, at, m * n)
    at += m * n
    copy = cut(work, at, m * n)
    columns = cut(pivots, 0, n)
    order = cut(pivots, n, n)
    entries = cut(pivots, 2 * n, 2 * size)
    free = number_free(structure, scales, columns)
    count = place_free(structure, scales, columns, free, entries, factors)
    for i in range(m * free):
        matrix[i] = 0.0
    control[STATUS] = RUNNING
    done = 0
    limit = int(control[CHUNK])
    while True:
        call_evaluator(evaluate, JACOBIAN, ints, floats, q, step, r, jacobian, inner)
        for i in range(m):
            r[i] *= scales[i]
        control[COST] = half_square(structure, r)
        control[RESIDUAL_MAX] = largest(structure, r)
        if sqrt(2.0 * control[COST]) <= control[TOLERANCE]:
            control[STATUS] = CONVERGED
            break
        if not control[COST] < OVERFLOW:
            control[STATUS] = BROKEN
            break
        if done >= limit:
            break
        for i in range(count):
            matrix[entries[2 * i + 1]] = jacobian[entries[2 * i]] * factors[i]
        by_lu = control[INVERSE] == LU_FIRST
        solve(m, free, by_lu, matrix, r, solution, control, copy, right, scratch, order)
        for k in range(n):
            step[k] = -scales[m + k] * solution[columns[k]] if columns[k] >= 0 else 0.0
        call_evaluator(evaluate, RETRACT, ints, floats, q, step, moved, jacobian, inner)
        for i in range(coordinates):
            q[i] = moved[i]
        done += 1
    control[ITERATIONS] += done
    return int(control[STATUS])


@jit
def algorithm_1_many(
    solver,
    evaluate,
    ints,
    floats,
    structure,
    scales,
    starts,
    first,
    last,
    control,
    work,
    pivots,
    q,
    iterations,
    outcomes,
    norms,
):
    """Algorithm 1 with N = CHUNK from the starts first … last − 1, each a row of coordinates.

    solver: address of the kernel above: its own machine code, which a copy in here might not round alike.
    iterations, outcomes ← those of each start, norms ← ‖Φ‖ where it ended.
    """
    coordinates = structure[COORDINATES]
    for k in range(first, last):
        for i in range(coordinates):
            q[i] = starts[k * coordinates + i]
        control[ITERATIONS] = 0.0
        outcomes[k] = call_kernel(solver, (evaluate, ints, floats, structure, scales, q, control, work, pivots))
        iterations[k] = int(control[ITERATIONS])
        norms[k] = sqrt(2.0 * control[COST])


def algorithm_1_work(structure):
    """Floats of work the kernel needs."""
    m, n, size = (int(structure[at]) for at in (ROWS, UNKNOWNS, JACOBIAN_SIZE))
    return int(structure[WORK]) + 2 * m + 2 * size + int(structure[COORDINATES]) + 5 * n + 2 * m * n


def algorithm_1_integers(structure):
    """Integers of work (pivots) the kernel needs."""
    return 2 * int(structure[UNKNOWNS]) + 2 * int(structure[JACOBIAN_SIZE])
