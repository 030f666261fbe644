"""Forces of constraints at many instants, and the multipliers of least norm.

With the scales of the problem, J̃ = D J C and λ̃ = D⁻¹λ, so that C Jᵀλ = J̃ᵀλ̃; lengths are divided by the extent.  Of all
λ̃ that give the force b = J̃ᵀλ̃, the one of least norm is S⁺ J̃ b with S = J̃ J̃ᵀ.  It does not depend on masses.

Each kernel evaluates at every row of q; the job is the table of a problem (:mod:`cardan.solvers.tables`) whose linear
algebra is that of :mod:`cardan.dynamics.abi`.
"""

from cardan.dynamics import abi
from cardan.dynamics._equations import REGULAR
from cardan.dynamics.abi import WIDTH
from cardan.kernel.jit import inner, jit, plain
from cardan.kernel.memory import call_evaluator, floats_at, integers_at, tail
from cardan.solvers import tables as solvers_abi
from cardan.solvers._blocks import scale_rows

RESIDUAL, JACOBIAN = plain(solvers_abi.RESIDUAL), plain(solvers_abi.JACOBIAN)
FACTOR, SOLVE = plain(abi.FACTOR), plain(abi.SOLVE)
# Added to S where rows are redundant, relative to its mean diagonal.  A larger one leaves less rounding in λ̃; what it
# cannot reach, because singular values are small, is left to a smaller one.
EPSILON = 1e-6
REFINED = 1e-4
LEVELS = 3
PROXIMAL = 2.0  # iterations of one solve that remove the error of EPSILON
SOLVES = 10  # at the most
EXACT = 1e-13  # of the largest component of b: a smaller rest is rounding
SLOW = 0.5  # a solve that leaves more of the rest is not worth another


@inner
def evaluate(job, q, values, jacobian, work):
    """f and J at q."""
    ints, floats = integers_at(job[solvers_abi.INTS]), floats_at(job[solvers_abi.FLOATS])
    call_evaluator(job[solvers_abi.EVALUATOR], JACOBIAN, ints, floats, q, values, values, jacobian, work)


@jit
def forces(job, places, q, multipliers, out, values, jacobian, work):
    """out[k, place] ← −Jᵀλ of one constraint on one body; places: of each body of each strip, in their order."""
    pattern = integers_at(job[solvers_abi.PATTERN])
    for k in range(q.shape[0]):
        evaluate(job, q[k], values, jacobian, work)
        strip = tail(pattern, abi.P_HEADER)
        at = 0
        for _ in range(pattern[abi.P_STRIPS]):
            entry = strip[abi.S_ENTRY]
            for i in range(strip[abi.S_ROWS]):
                factor = multipliers[k, strip[abi.S_FIRST] + i]
                for s in range(strip[abi.S_SLOTS]):
                    for j in range(WIDTH):
                        out[k, places[at + s], j] -= factor * jacobian[entry]
                        entry += 1
            at += strip[abi.S_SLOTS]
            strip = tail(strip, abi.S_BODIES + strip[abi.S_SLOTS])


@jit
def least_norm(job, control, stops, q, b, multipliers, rest, values, jacobian, x, work):
    """multipliers[k] ← λ̃ of least norm for the force b[k]; rest[k] ← largest component that no λ̃ gives.

    stops: equation, first entry and number of entries of rows that do not hold where multipliers[k] is zero at first.
    x: for linear algebra, (u, λ̃) and its scratch, then the factor.
    """
    pattern = integers_at(job[solvers_abi.PATTERN])
    structure = integers_at(job[solvers_abi.STRUCTURE])
    scales = floats_at(job[solvers_abi.SCALES])
    n = pattern[abi.P_EQUATIONS]
    n6 = WIDTH * pattern[abi.P_BODIES]
    scratch = tail(x, n6 + n)
    matrix = tail(x, 2 * n6 + 3 * n)
    entries = structure[solvers_abi.JACOBIAN_SIZE]
    for k in range(q.shape[0]):
        evaluate(job, q[k], values, jacobian, work)
        scale_rows(structure, scales, values, jacobian)
        for s in range(stops.shape[0]):
            if multipliers[k, stops[s, 0]] == 0.0:
                for i in range(stops[s, 2]):
                    jacobian[stops[s, 1] + i] = 0.0
        square = 0.0
        for i in range(entries):
            square += jacobian[i] * jacobian[i]
        size = 0.0
        for i in range(n6):
            x[i] = b[k, i]
            size = max(size, abs(x[i]))
        for i in range(n):
            multipliers[k, i] = 0.0
        last = size
        level = 0
        epsilon = EPSILON * square / n
        while level < LEVELS and last > EXACT * size:
            redundant = control[abi.REDUNDANT] != 0.0
            control[abi.EPSILON] = epsilon if redundant else 0.0
            control[abi.PROXIMAL] = PROXIMAL if redundant else 0.0
            control[abi.PIVOT] = 1.0
            call_evaluator(job[solvers_abi.LINEAR], FACTOR, pattern, control, x, scratch, control, jacobian, matrix)
            if not redundant and control[abi.PIVOT] <= REGULAR:
                control[abi.REDUNDANT] = 1.0
                continue
            for _ in range(SOLVES):
                for i in range(n):
                    x[n6 + i] = 0.0
                call_evaluator(job[solvers_abi.LINEAR], SOLVE, pattern, control, x, scratch, control, jacobian, matrix)
                for i in range(n):
                    multipliers[k, i] += x[n6 + i]
                largest = 0.0
                for i in range(n6):
                    largest = max(largest, abs(x[i]))
                is_slow = not (largest > EXACT * size and largest < SLOW * last)
                last = largest
                if is_slow:
                    break
            level = level + 1 if redundant else LEVELS
            epsilon *= REFINED
        rest[k] = last


@jit
def drift(job, floats, places, drive, weights, stops, bounds, q, values, work, out):
    """out[k] ← the largest |weights · f| at q[k], with drive[k] written to floats at places.

    stops, bounds: limits; what a coordinate is beyond its bound counts too (:mod:`cardan.dynamics.abi`).
    """
    for k in range(q.shape[0]):
        for i in range(places.size):
            floats[places[i]] = drive[k, i]
        ints = integers_at(job[solvers_abi.INTS])
        call_evaluator(job[solvers_abi.EVALUATOR], RESIDUAL, ints, floats, q[k], values, values, values, work)
        largest = 0.0
        for i in range(weights.size):
            e = abs(weights[i] * values[i])
            if not e <= largest:
                largest = e
        for s in range(stops.shape[0]):
            c = values[stops[s, abi.STOP_ROW]] + floats[stops[s, abi.STOP_PLACE]]
            beyond = max(bounds[s, abi.LOWER] - c, c - bounds[s, abi.UPPER]) * bounds[s, abi.WEIGHT]
            if beyond > largest:
                largest = beyond
        out[k] = largest
