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
bits (:mod:`cardan.coordinates.parallel_springs`).
"""

from math import inf, sqrt

from cardan.kernel.fields import after
from cardan.kernel.jit import evaluator, exact, exact_inner
from cardan.kernel.memory import pointer, tail
from cardan.kernel.table import Piece
from cardan.solvers import tables
from cardan.solvers._job import begin, end, evaluate, retract
from cardan.solvers.tables import (
    BROKEN,
    CONVERGED,
    JACOBIAN,
    OVERFLOW,
    RUNNING,
    STALLED,
    Control,
    Slope,
    SolverJob,
    Sums,
)

GROUP = 128  # constraints, or blocks, whose sums are made together: about 40 kB of J, which fit in the cache of a core
HAS_SPRINGS = True  # its scales are Problem.springs
SUFFICIENT = 0.1  # part of the slope by which the cost must decrease
LEAST_FACTOR = 1e-18  # of the line search: no shorter step changes a pose
RENEWED = 8  # steps
STALL_GRADIENT = 1e-9  # |Jᵀr|/|r| below this: a stationary point that is not a solution
ROUNDING = 4e-16  # of a residual, relative to the unit of length: the cost may rise by it
AHEAD = 5.0  # times PATIENCE: steps in which the tolerance must be reached at the present rate


@exact_inner
def scale_group(structure, constraint, count, scales, is_measured, r, jacobian, sums):
    """r ← D_r r and J ← D_r J D_c of ``count`` constraints, and their sums; returns the constraint after them."""
    m = structure.rows
    n = structure.unknowns
    offsets = structure.offsets
    cost = 0.0
    worst = 0.0
    square = 0.0
    for _ in range(count):
        entry = constraint.entry
        slots = constraint.slots
        for i in range(constraint.row, constraint.row + constraint.rows):
            factor = scales[i]
            value = r[i] * factor
            r[i] = value
            for s in range(slots):
                block = constraint.blocks[s]
                for k in range(offsets[block], offsets[block + 1]):
                    jacobian[entry] *= factor * scales[m + k]
                    entry += 1
            cost += value * value
            if is_measured:
                value *= scales[m + n + i]
            square += value * value
            if not abs(value) <= worst and worst == worst:
                worst = abs(value)
        constraint = after(constraint, slots)
    sums.cost = 0.5 * cost
    sums.worst = worst
    sums.square = square
    return constraint


@exact_inner
def add_sums(sums, total):
    """Add the sums of one group to those of the groups before it."""
    total.cost += sums.cost
    total.square += sums.square
    if not sums.worst <= total.worst and total.worst == total.worst:
        total.worst = sums.worst


@exact_inner
def clear_sums(total):
    """Begin sums."""
    total.cost = 0.0
    total.worst = 0.0
    total.square = 0.0


@exact_inner
def add_slope(slope, total):
    """Add the slope of one group to those of the groups before it."""
    total.slope += slope.slope
    total.square += slope.square


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
    offsets = structure.offsets
    block = constraint.blocks[slot]
    width = offsets[block + 1] - offsets[block]
    first = min(structure.rotations[block], width)
    entries = tail(jacobian, constraint.entry + at)
    rows = constraint.rows
    linear = group_norm(entries, rows, stride, first) if first > 0 else 0.0
    angular = group_norm(tail(entries, first), rows, stride, width - first) if width > first else 0.0
    return linear, angular


@exact_inner
def row_width(structure, constraint):
    """Number of entries in a row of a constraint."""
    offsets = structure.offsets
    total = 0
    for s in range(constraint.slots):
        block = constraint.blocks[s]
        total += offsets[block + 1] - offsets[block]
    return total


@exact_inner
def constraint_norm(structure, constraint, stride, jacobian):
    """T: the sum of the norms of all slots of a constraint."""
    offsets = structure.offsets
    total = 0.0
    at = 0
    for s in range(constraint.slots):
        linear, angular = slot_norms(structure, constraint, stride, s, at, jacobian)
        total += linear + angular
        block = constraint.blocks[s]
        at += offsets[block + 1] - offsets[block]
    return total


@exact_inner
def add_bound(structure, constraint, slot, at, stride, jacobian, bound):
    """bound of the block of a slot += N T, for its translation and its rotation; entries of ``bound`` by unknowns."""
    offsets = structure.offsets
    block = constraint.blocks[slot]
    width = offsets[block + 1] - offsets[block]
    first = min(structure.rotations[block], width)
    total = constraint_norm(structure, constraint, stride, jacobian)
    linear, angular = slot_norms(structure, constraint, stride, slot, at, jacobian)
    for k in range(width):
        bound[k] += (linear if k < first else angular) * total


@exact_inner
def add_pull(constraint, at, stride, width, r, jacobian, out):
    """out += Jᵀr of one slot of a constraint, for the ``width`` unknowns of its block."""
    entry = constraint.entry + at
    for i in range(constraint.row, constraint.row + constraint.rows):
        for k in range(width):
            out[k] += jacobian[entry + k] * r[i]
        entry += stride


@exact_inner
def block_step(control, width, g, bound, slope):
    """g ← κ g of one block; adds κ|g|² and |g|² to the slope."""
    most = 0.0
    square = 0.0
    for k in range(width):
        most = max(most, bound[k])
        square += g[k] * g[k]
    gain = min(control.step_gain, control.step_bound / most) if most > 0.0 else 0.0
    for k in range(width):
        g[k] *= gain
    slope.slope += gain * square
    slope.square += square


@exact_inner
def scale_step(control, count, direction, scales, step):
    """step ← −s κ g, unscaled, for ``count`` unknowns."""
    for k in range(count):
        step[k] = -control.step_factor * direction[k] * scales[k]


@exact_inner
def is_due(control):
    """Whether the bounds are computed in this step."""
    return control.steps % RENEWED == 0.0


@exact_inner
def judge_trial(rows, control, total):
    """Accept poses with these sums, or halve the factor; returns whether they are accepted.

    SLOPE < 0: the first poses of a run, which are accepted.
    """
    cost = total.cost
    decrease = SUFFICIENT * control.step_factor * control.slope
    noise = ROUNDING * sqrt(2.0 * rows * control.before)
    if control.slope >= 0.0 and not cost <= control.before - decrease + noise:
        control.step_factor *= 0.5
        if control.step_factor < LEAST_FACTOR:
            control.status = STALLED
        return False
    if control.slope >= 0.0:
        control.steps += 1.0
        control.step_factor = min(1.0, 2.0 * control.step_factor)
    control.before = cost
    control.cost = cost
    control.residual_max = total.worst
    reached = sqrt(total.square) if control.by_norm != 0.0 else total.worst
    if reached <= control.tolerance:
        control.status = CONVERGED
    elif not cost < OVERFLOW:
        control.status = BROKEN
    return True


@exact_inner
def judge_slope(control, slope):
    """Keep the slope; stop at a stationary point, or without progress."""
    control.slope = slope.slope
    if not slope.square < inf:  # r is finite but J is not
        control.status = BROKEN
    elif sqrt(slope.square) <= STALL_GRADIENT * sqrt(2.0 * control.cost):
        control.status = STALLED
    elif control.patience > 0.0 and control.steps >= control.mark_iteration + control.patience:
        wanted = control.tolerance / control.residual_max
        rate = control.cost / control.mark_cost if control.mark_iteration > 0.0 else 0.0
        if rate**AHEAD > wanted * wanted:
            control.status = STALLED
        control.mark_iteration = control.steps
        control.mark_cost = control.cost


@exact
def judge_trial_of(rows, control, count, sums):
    """judge_trial, callable from Python, with the sums of all groups, and one more for the total."""
    total = Sums(pointer(sums), count)
    clear_sums(total)
    for k in range(count):
        add_sums(Sums(pointer(sums), k), total)
    return judge_trial(rows, Control(control), total)


@exact
def judge_slope_of(control, count, slopes):
    """judge_slope, callable from Python, with the slopes of all groups, and one more for the total."""
    total = Slope(pointer(slopes), count)
    total.slope = 0.0
    total.square = 0.0
    for k in range(count):
        add_slope(Slope(pointer(slopes), k), total)
    judge_slope(Control(control), total)


class Work(tables.Work):
    direction: Piece  # κ g
    step: Piece  # unscaled
    bound: Piece  # D of each unknown
    sums: Piece  # of all groups, then of one
    slopes: Piece  # likewise


def pieces(sizes, matrix):
    """Number of floats in each piece of the workspace, after those of every solver."""
    vectors = dict.fromkeys(("direction", "step", "bound"), sizes.unknowns)
    return {**vectors, "sums": 2 * Sums.size, "slopes": 2 * Slope.size}


def prepare(problem):
    """The initial control vector; its gain is that of the longest stable step."""
    measured = 0.0 if problem.springs is None else 1.0
    return Control.new(step_gain=inf, step_bound=1.0, step_factor=1.0, slope=-1.0, measured=measured)


@exact_inner
def update_direction(structure, control, work, total, slope):
    """direction ← κ g; total ← Σ κ|g|², |g|²; slope: that of one group."""
    direction = work.direction
    bound = work.bound
    n = structure.unknowns
    offsets = structure.offsets
    renewed = is_due(control)
    for k in range(n):
        direction[k] = 0.0
        if renewed:
            bound[k] = 0.0
    constraint = structure.records
    for _ in range(structure.constraints):
        stride = row_width(structure, constraint)
        at = 0
        for s in range(constraint.slots):
            first = offsets[constraint.blocks[s]]
            width = offsets[constraint.blocks[s] + 1] - first
            add_pull(constraint, at, stride, width, work.r, work.jacobian, tail(direction, first))
            if renewed:
                add_bound(structure, constraint, s, at, stride, work.jacobian, tail(bound, first))
            at += width
        constraint = after(constraint, constraint.slots)
    total.slope = 0.0
    total.square = 0.0
    for group in range(0, structure.blocks, GROUP):
        slope.slope = 0.0
        slope.square = 0.0
        for b in range(group, min(group + GROUP, structure.blocks)):
            width = offsets[b + 1] - offsets[b]
            block_step(control, width, tail(direction, offsets[b]), tail(bound, offsets[b]), slope)
        add_slope(slope, total)


@exact_inner
def update_sums(structure, scales, control, work, total, sums):
    """Scale r and J; total ← their sums; sums: those of one group."""
    clear_sums(total)
    r = work.r
    jacobian = work.jacobian
    constraint = structure.records
    count = structure.constraints
    for group in range(0, count, GROUP):
        size = min(GROUP, count - group)
        constraint = scale_group(structure, constraint, size, scales, control.measured != 0.0, r, jacobian, sums)
        add_sums(sums, total)


def _solve(op, job, control, q, unused_1, unused_2, unused_3, work):
    """Iterate from q in place until converged, stalled, or CHUNK iterations are done; returns STATUS.

    An iteration is one trial of the line search.  REUSE ≠ 0: work contains r and J at q from the last call.
    """
    job = SolverJob(job)
    control = Control(control)
    work = Work(job.pieces, work)
    structure = job.structure
    scales = job.scales
    m = structure.rows
    total = Sums(work.sums)
    slope = Slope(work.slopes)
    limit = begin(control)
    done = 0
    control.slope = -1.0
    is_known = control.reuse != 0.0
    control.reuse = 0.0
    while True:
        is_accepted = is_known
        if not is_known:
            trial = q if control.slope < 0.0 else work.moved
            evaluate(job, JACOBIAN, trial, work.r, work.r, work.jacobian, work.evaluation)
            update_sums(structure, scales, control, work, total, Sums(work.sums, 1))
            is_accepted = judge_trial(m, control, total)
        is_known = False
        if is_accepted:
            if control.slope >= 0.0:
                for i in range(structure.coordinates):
                    q[i] = work.moved[i]
            if control.status != RUNNING or done >= limit:
                control.reuse = 1.0
                break
            update_direction(structure, control, work, slope, Slope(work.slopes, 1))
            judge_slope(control, slope)
        if control.status != RUNNING or done >= limit:
            break
        scale_step(control, structure.unknowns, work.direction, tail(scales, m), work.step)
        retract(job, q, work.step, work.moved, work.evaluation)
        done += 1
    return end(control, done)


SOLVE = evaluator(_solve)
