"""Gradient descent with spring steps: a constraint acts on its bodies like a spring.  [Nelson1998] eq. 5

With g = Jᵀr each block of unknowns (a body) moves by δ_b = −s κ_b g_b, where s is the factor of a line search and

    κ_b = min(k, β/D_b),   D_b = max_a Σ_c N_ca T_c,   T_c = Σ_a N_ca.

N_ca is a bound on the spectral norm of the part of J of constraint c and group a of unknowns (the translation or the
rotation of a body).  By |Σ_a J_ca x_a|² ≤ T_c Σ_a N_ca |x_a|², JᵀJ is at most the diagonal matrix of the D_b.  So for
β ≤ 1 the linear model of ½|r|² decreases by half of the slope Σ_b κ_b |g_b|² or more, whatever the size of the
mechanism, and a stiff constraint slows only its own bodies.  For a matrix S of n rows and trace t,
λ_max ≤ t/n + √((1 − 1/n)(|S|² − t²/n)).  [WolkowiczStyan1980]

s is halved until ½|r|² decreases by SUFFICIENT of the slope, and doubled after an accepted step, up to 1.  So ½|r|²
never rises by more than rounding.  D is computed in every RENEWED-th step.

Sums are made in groups and without reordering, so that several threads, each with some of the groups, compute the same
bits (:mod:`cardan.coordinates.shares`).
"""

from math import inf, sqrt

from cardan.kernel.jit import evaluator, exact, exact_inner, plain
from cardan.kernel.memory import pointer, tail
from cardan.solvers import abi
from cardan.solvers._job import OWN, evaluate, open_job, piece, retract

GROUP = 128  # constraints, or blocks, whose sums are made together: about 40 kB of J, which fit in the cache of a core
HAS_SPRINGS = True  # its scales are Problem.springs
SUFFICIENT = 0.1  # part of the slope by which the cost must decrease
LEAST_FACTOR = 1e-18  # of the line search: no shorter step changes a pose
RENEWED = 8  # steps
STALL_GRADIENT = 1e-9  # |Jᵀr|/|r| below this: a stationary point that is not a solution
ROUNDING = 4e-16  # of a residual, relative to the unit of length: the cost may rise by it
AHEAD = 5.0  # times PATIENCE: steps in which the tolerance must be reached at the present rate
SUMS = 3  # of a group of constraints: ½|r|², largest |r|, |r|², the last two in the measure of the tolerance
SLOPES = 2  # of a group of blocks: Σ κ|g|², |g|²


@exact_inner
def scale_group(structure, constraint, count, scales, is_measured, r, jacobian, sums):
    """r ← D_r r and J ← D_r J D_c of ``count`` constraints, and their sums; returns the constraint after them."""
    m = structure[abi.ROWS]
    n = structure[abi.UNKNOWNS]
    offsets = tail(structure, structure[abi.OFFSETS])
    cost = 0.0
    worst = 0.0
    square = 0.0
    for _ in range(count):
        entry = constraint[abi.C_ENTRY]
        slots = constraint[abi.C_SLOTS]
        for i in range(constraint[abi.C_ROW], constraint[abi.C_ROW] + constraint[abi.C_ROWS]):
            factor = scales[i]
            value = r[i] * factor
            r[i] = value
            for s in range(slots):
                block = constraint[abi.C_BLOCKS + s]
                for k in range(offsets[block], offsets[block + 1]):
                    jacobian[entry] *= factor * scales[m + k]
                    entry += 1
            cost += value * value
            if is_measured:
                value *= scales[m + n + i]
            square += value * value
            if not abs(value) <= worst and worst == worst:
                worst = abs(value)
        constraint = tail(constraint, abi.C_BLOCKS + slots)
    sums[0] = 0.5 * cost
    sums[1] = worst
    sums[2] = square
    return constraint


@exact_inner
def add_sums(sums, total):
    """Add the sums of one group to those of the groups before it."""
    total[0] += sums[0]
    total[2] += sums[2]
    if not sums[1] <= total[1] and total[1] == total[1]:
        total[1] = sums[1]


@exact_inner
def group_norm(entries, rows, stride, width):
    """A bound on the spectral norm of a part of J: ``width`` columns of rows that are ``stride`` apart."""
    trace = 0.0
    square = 0.0
    for i in range(width):
        for j in range(i, width):
            product = 0.0
            for row in range(rows):
                product += entries[row * stride + i] * entries[row * stride + j]
            if i == j:
                trace += product
                square += product * product
            else:
                square += 2.0 * product * product
    rest = square - trace * trace / width
    return sqrt(trace / width + sqrt(rest * (1.0 - 1.0 / width))) if rest > 0.0 else sqrt(trace / width)


@exact_inner
def slot_norms(structure, constraint, stride, slot, at, jacobian):
    """Norms of the translation and of the rotation of a slot, whose entries begin at ``at`` in a row."""
    offsets = tail(structure, structure[abi.OFFSETS])
    block = constraint[abi.C_BLOCKS + slot]
    width = offsets[block + 1] - offsets[block]
    first = min(structure[structure[abi.ROTATIONS] + block], width)
    entries = tail(jacobian, constraint[abi.C_ENTRY] + at)
    rows = constraint[abi.C_ROWS]
    linear = group_norm(entries, rows, stride, first) if first > 0 else 0.0
    angular = group_norm(tail(entries, first), rows, stride, width - first) if width > first else 0.0
    return linear, angular


@exact_inner
def row_width(structure, constraint):
    """Number of entries in a row of a constraint."""
    offsets = tail(structure, structure[abi.OFFSETS])
    total = 0
    for s in range(constraint[abi.C_SLOTS]):
        block = constraint[abi.C_BLOCKS + s]
        total += offsets[block + 1] - offsets[block]
    return total


@exact_inner
def constraint_norm(structure, constraint, stride, jacobian):
    """T: the sum of the norms of all slots of a constraint."""
    offsets = tail(structure, structure[abi.OFFSETS])
    total = 0.0
    at = 0
    for s in range(constraint[abi.C_SLOTS]):
        linear, angular = slot_norms(structure, constraint, stride, s, at, jacobian)
        total += linear + angular
        block = constraint[abi.C_BLOCKS + s]
        at += offsets[block + 1] - offsets[block]
    return total


@exact_inner
def add_bound(structure, constraint, slot, at, stride, jacobian, bound):
    """bound of the block of a slot += N T, for its translation and its rotation; entries of ``bound`` by unknowns."""
    offsets = tail(structure, structure[abi.OFFSETS])
    block = constraint[abi.C_BLOCKS + slot]
    width = offsets[block + 1] - offsets[block]
    first = min(structure[structure[abi.ROTATIONS] + block], width)
    total = constraint_norm(structure, constraint, stride, jacobian)
    linear, angular = slot_norms(structure, constraint, stride, slot, at, jacobian)
    for k in range(width):
        bound[k] += (linear if k < first else angular) * total


@exact_inner
def add_pull(constraint, at, stride, width, r, jacobian, out):
    """out += Jᵀr of one slot of a constraint, for the ``width`` unknowns of its block."""
    entry = constraint[abi.C_ENTRY] + at
    for i in range(constraint[abi.C_ROW], constraint[abi.C_ROW] + constraint[abi.C_ROWS]):
        for k in range(width):
            out[k] += jacobian[entry + k] * r[i]
        entry += stride


@exact_inner
def block_step(control, width, g, bound, sums):
    """g ← κ g of one block; adds κ|g|² and |g|² to the sums."""
    most = 0.0
    square = 0.0
    for k in range(width):
        most = max(most, bound[k])
        square += g[k] * g[k]
    gain = min(control[abi.STEP_GAIN], control[abi.STEP_BOUND] / most) if most > 0.0 else 0.0
    for k in range(width):
        g[k] *= gain
    sums[0] += gain * square
    sums[1] += square


@exact_inner
def scale_step(control, count, direction, scales, step):
    """step ← −s κ g, unscaled, for ``count`` unknowns."""
    for k in range(count):
        step[k] = -control[abi.STEP_FACTOR] * direction[k] * scales[k]


@exact_inner
def is_due(control):
    """Whether the bounds are computed in this step."""
    return control[abi.STEPS] % RENEWED == 0.0


@exact_inner
def judge_trial(rows, control, total):
    """Accept poses with these sums, or halve the factor; returns whether they are accepted.

    SLOPE < 0: the first poses of a run, which are accepted.
    """
    cost = total[0]
    decrease = SUFFICIENT * control[abi.STEP_FACTOR] * control[abi.SLOPE]
    noise = ROUNDING * sqrt(2.0 * rows * control[abi.BEFORE])
    if control[abi.SLOPE] >= 0.0 and not cost <= control[abi.BEFORE] - decrease + noise:
        control[abi.STEP_FACTOR] *= 0.5
        if control[abi.STEP_FACTOR] < LEAST_FACTOR:
            control[abi.STATUS] = abi.STALLED
        return False
    if control[abi.SLOPE] >= 0.0:
        control[abi.STEPS] += 1.0
        control[abi.STEP_FACTOR] = min(1.0, 2.0 * control[abi.STEP_FACTOR])
    control[abi.BEFORE] = cost
    control[abi.COST] = cost
    control[abi.RESIDUAL_MAX] = total[1]
    reached = sqrt(total[2]) if control[abi.BY_NORM] != 0.0 else total[1]
    if reached <= control[abi.TOLERANCE]:
        control[abi.STATUS] = abi.CONVERGED
    elif not cost < abi.OVERFLOW:
        control[abi.STATUS] = abi.BROKEN
    return True


@exact_inner
def judge_slope(control, slope, square):
    """Keep the slope; stop at a stationary point, or without progress."""
    control[abi.SLOPE] = slope
    if not square < inf:  # r is finite but J is not
        control[abi.STATUS] = abi.BROKEN
    elif sqrt(square) <= STALL_GRADIENT * sqrt(2.0 * control[abi.COST]):
        control[abi.STATUS] = abi.STALLED
    elif control[abi.PATIENCE] > 0.0 and control[abi.STEPS] >= control[abi.MARK_ITERATION] + control[abi.PATIENCE]:
        wanted = control[abi.TOLERANCE] / control[abi.RESIDUAL_MAX]
        rate = control[abi.COST] / control[abi.MARK_COST] if control[abi.MARK_ITERATION] > 0.0 else 0.0
        if rate**AHEAD > wanted * wanted:
            control[abi.STATUS] = abi.STALLED
        control[abi.MARK_ITERATION] = control[abi.STEPS]
        control[abi.MARK_COST] = control[abi.COST]


@exact
def judge_trial_of(rows, control, sums, total):
    """judge_trial, callable from Python, with the sums of all groups, flat."""
    total[0] = 0.0
    total[1] = 0.0
    total[2] = 0.0
    for at in range(0, sums.size, SUMS):
        add_sums(tail(pointer(sums), at), pointer(total))
    return judge_trial(rows, pointer(control), pointer(total))


@exact
def judge_slope_of(control, sums):
    """judge_slope, callable from Python, with the sums of all groups, flat."""
    slope = 0.0
    square = 0.0
    for at in range(0, sums.size, SLOPES):
        slope += sums[at]
        square += sums[at + 1]
    judge_slope(pointer(control), slope, square)


# pieces of the workspace, after those of every solver
DIRECTION, STEP, BOUND, TOTAL = map(plain, range(OWN, OWN + 4))


def pieces(sizes, matrix):
    """Number of floats in each piece of the workspace."""
    return sizes[1], sizes[1], sizes[1], 2 * SUMS


def prepare(problem, control):
    """Set the initial control vector; other entries are zero."""
    control[abi.STEP_GAIN] = inf  # the longest stable step
    control[abi.STEP_BOUND] = 1.0
    control[abi.STEP_FACTOR] = 1.0
    control[abi.SLOPE] = -1.0
    control[abi.MEASURED] = 0.0 if problem.springs is None else 1.0


@exact_inner
def update_direction(structure, control, r, jacobian, direction, bound, sums):
    """direction ← κ g; sums ← Σ κ|g|², |g|²."""
    n = structure[abi.UNKNOWNS]
    offsets = tail(structure, structure[abi.OFFSETS])
    renewed = is_due(control)
    for k in range(n):
        direction[k] = 0.0
        if renewed:
            bound[k] = 0.0
    constraint = tail(structure, abi.HEADER)
    for _ in range(structure[abi.CONSTRAINTS]):
        stride = row_width(structure, constraint)
        at = 0
        for s in range(constraint[abi.C_SLOTS]):
            first = offsets[constraint[abi.C_BLOCKS + s]]
            width = offsets[constraint[abi.C_BLOCKS + s] + 1] - first
            add_pull(constraint, at, stride, width, r, jacobian, tail(direction, first))
            if renewed:
                add_bound(structure, constraint, s, at, stride, jacobian, tail(bound, first))
            at += width
        constraint = tail(constraint, abi.C_BLOCKS + constraint[abi.C_SLOTS])
    slope = 0.0
    square = 0.0
    for group in range(0, structure[abi.BLOCKS], GROUP):
        sums[0] = 0.0
        sums[1] = 0.0
        for b in range(group, min(group + GROUP, structure[abi.BLOCKS])):
            width = offsets[b + 1] - offsets[b]
            block_step(control, width, tail(direction, offsets[b]), tail(bound, offsets[b]), sums)
        slope += sums[0]
        square += sums[1]
    sums[0] = slope
    sums[1] = square


@exact_inner
def update_sums(structure, scales, control, r, jacobian, total):
    """Scale r and J; total ← their sums."""
    sums = tail(total, SUMS)
    for i in range(SUMS):
        total[i] = 0.0
    constraint = tail(structure, abi.HEADER)
    count = structure[abi.CONSTRAINTS]
    for group in range(0, count, GROUP):
        own = min(GROUP, count - group)
        constraint = scale_group(structure, constraint, own, scales, control[abi.MEASURED] != 0.0, r, jacobian, sums)
        add_sums(sums, total)


def _solve(op, job, control, q, unused_1, unused_2, unused_3, work):
    """Iterate from q in place until converged, stalled, or CHUNK iterations are done; returns STATUS.

    An iteration is one trial of the line search.  REUSE ≠ 0: work contains r and J at q from the last call.
    """
    structure, scales, evaluation, r, jacobian, moved = open_job(job, work)
    m = structure[abi.ROWS]
    n = structure[abi.UNKNOWNS]
    direction = piece(job, DIRECTION, work)
    step = piece(job, STEP, work)
    bound = piece(job, BOUND, work)
    total = piece(job, TOTAL, work)
    control[abi.STATUS] = abi.RUNNING
    done = 0
    limit = int(control[abi.CHUNK])
    control[abi.SLOPE] = -1.0
    is_known = control[abi.REUSE] != 0.0
    control[abi.REUSE] = 0.0
    while True:
        is_accepted = is_known
        if not is_known:
            trial = q if control[abi.SLOPE] < 0.0 else moved
            evaluate(job, abi.JACOBIAN, trial, r, r, jacobian, evaluation)
            update_sums(structure, scales, control, r, jacobian, total)
            is_accepted = judge_trial(m, control, total)
        is_known = False
        if is_accepted:
            if control[abi.SLOPE] >= 0.0:
                for i in range(structure[abi.COORDINATES]):
                    q[i] = moved[i]
            if control[abi.STATUS] != abi.RUNNING or done >= limit:
                control[abi.REUSE] = 1.0
                break
            update_direction(structure, control, r, jacobian, direction, bound, total)
            judge_slope(control, total[0], total[1])
        if control[abi.STATUS] != abi.RUNNING or done >= limit:
            break
        scale_step(control, n, direction, tail(scales, m), step)
        retract(job, q, step, moved, evaluation)
        done += 1
    control[abi.ITERATIONS] += done
    return int(control[abi.STATUS])


SOLVE = evaluator(_solve)
