"""Levenberg–Marquardt on ½|r|², with scaled r and J, in one compiled loop.

    u + Jᵀy = 0,   J u − λy = r,   δ = −u,   ρ = (F(q) − F(q ⊕ δ)) / (½ δᵀ(λδ − Jᵀr))

λ follows Nielsen's rule with a faster decrease: λ·max(1/10, 1 − (2ρ − 1)³) after an accepted step, and λ·ν after a
rejected one, where ν doubles each time.  [Nielsen1999]  After an accepted step λ is at most |r|.  This keeps the
order of convergence above one if J is rank-deficient, as it is with redundant constraints or free motions.
[Yamashita2001]
"""

from math import sqrt

from cardan.kernel.jit import evaluator
from cardan.kernel.table import Piece
from cardan.solvers import tables
from cardan.solvers._blocks import cap_rotations, half_square, largest
from cardan.solvers._job import begin, call_algebra, end, linearise, project, refine, retract
from cardan.solvers.tables import BROKEN, CONVERGED, FACTOR, OVERFLOW, RUNNING, STALLED, Control, SolverJob

INITIAL_DAMPING = 1e-3
ROTATION_CAP = 1.0  # rad per step: the linear model of a larger rotation is inaccurate
FASTEST_SHRINK = 0.1  # of λ per accepted step; on a chain of 1,000 bodies: 8 steps, and 13 with Nielsen's 1/3
DAMPING_FLOOR = 1e-12  # keeps JᵀJ + λI positive definite with free motions; its effect is smaller than rounding
# Rounding in the factor, about eps/λ of the step, moves bodies along their free motions.  If this exceeds DRIFT (as a
# fraction of L, or in radians), one refinement with the defect of the normal equations removes it.  The pose then does
# not depend on the order of the parts.
DRIFT = 1e-12
# The defect itself has a rounding error of about eps·r, which grows over many steps with ever smaller λ: from starts
# 1e-15 apart, final poses of a four-bar were 1e-9 apart, and those of a bent chain 1e-5.  With λ at least LEAST_DAMPING
# times the root mean square of r (invariant under rigid motion), these are 1e-13 and 4e-10, in as many iterations.
LEAST_DAMPING = 1e-6
EPSILON = 2.2e-16
DAMPING_CEILING = 1e8  # with more damping the step is negligible: stalled
STALL_DECREASE = 1e-9  # of the cost: stalled if the model predicts a smaller decrease with λ ≤ HARDLY_DAMPED
CREEP_ITERATIONS = 20  # stalled if the cost decreases by less than CREEP_DECREASE in this many iterations
CREEP_DECREASE = 1e-3
HARDLY_DAMPED = 1.0  # entries of JᵀJ are of this order, since rows are scaled


class Work(tables.Work):
    trial_r: Piece  # at the end of a step
    trial_jacobian: Piece
    gradient: Piece  # Jᵀr
    x: Piece  # (u, y)
    unscaled: Piece  # δ
    correction: Piece  # of x
    rest: Piece  # scratch of the linear algebra
    matrix: Piece  # of the linear algebra


def pieces(sizes, matrix):
    """Number of floats in each piece of the workspace, after those of every solver."""
    m, n, entries = sizes.rows, sizes.unknowns, sizes.entries
    vectors = {"gradient": n, "x": n + m, "unscaled": n, "correction": n + m, "rest": n}
    return {"trial_r": m, "trial_jacobian": entries, **vectors, "matrix": matrix}


BEGIN = Control.new(damping=INITIAL_DAMPING, growth=2.0)


def prepare(problem):
    """The initial control vector, which is copied."""
    return BEGIN


def _solve(op, job, control, q, unused_1, unused_2, unused_3, work):
    """Iterate from q in place until converged, stalled, or CHUNK iterations are done; returns STATUS.

    REUSE ≠ 0: r and J at q from the last call are reused.  They are in the first (1) or second (2) pair of buffers.
    REUSE must be zero if q or the problem has changed since.
    """
    job = SolverJob(job)
    control = Control(control)
    work = Work(job.pieces, work)
    structure = job.structure
    r = work.r
    jacobian = work.jacobian
    trial_r = work.trial_r
    trial_jacobian = work.trial_jacobian
    gradient = work.gradient
    x = work.x
    unscaled = work.unscaled
    matrix = work.matrix
    m = structure.rows
    n = structure.unknowns
    damping = control.damping
    growth = control.growth
    reuse = control.reuse
    if reuse == 2.0:
        r, trial_r = trial_r, r
        jacobian, trial_jacobian = trial_jacobian, jacobian
    elif reuse == 0.0:
        linearise(job, q, r, jacobian, work.evaluation)
        reuse = 1.0
    cost = half_square(structure, r)
    worst = largest(structure, r)
    limit = begin(control)
    done = 0
    while done < limit:
        if worst <= control.tolerance:
            control.status = CONVERGED
            break
        if not cost < OVERFLOW:
            control.status = BROKEN
            break
        if control.iterations + done >= control.mark_iteration + CREEP_ITERATIONS:
            if control.mark_iteration > 0.0 and cost > (1.0 - CREEP_DECREASE) * control.mark_cost:
                control.status = STALLED
                break
            control.mark_iteration = control.iterations + done
            control.mark_cost = cost
        done += 1
        effective = max(damping, DAMPING_FLOOR, LEAST_DAMPING * sqrt(2.0 * cost / m))
        control.epsilon = effective
        if call_algebra(job, FACTOR, control, x, x, x, jacobian, matrix) != 0:
            damping = effective * 10.0
            continue
        project(job, control, r, x, gradient, jacobian, matrix)
        longest = 0.0
        for i in range(n):
            longest = max(longest, abs(x[i]))
        if EPSILON * longest > DRIFT * effective:
            refine(job, control, 1.0, r, x, work, jacobian, matrix)
        cap_rotations(structure, ROTATION_CAP, x)
        slope = 0.0
        square = 0.0
        for i in range(n):
            slope += x[i] * gradient[i]
            square += x[i] * x[i]
            unscaled[i] = -x[i] * job.scales[m + i]
        predicted = 0.5 * (slope + effective * square)
        if predicted <= STALL_DECREASE * cost and effective <= HARDLY_DAMPED:
            control.status = STALLED
            break
        retract(job, q, unscaled, work.moved, work.evaluation)
        linearise(job, work.moved, trial_r, trial_jacobian, work.evaluation)
        trial_cost = half_square(structure, trial_r)
        ratio = (cost - trial_cost) / predicted
        if ratio > 0.0:
            for i in range(structure.coordinates):
                q[i] = work.moved[i]
            r, trial_r = trial_r, r
            jacobian, trial_jacobian = trial_jacobian, jacobian
            reuse = 3.0 - reuse
            cost = trial_cost
            worst = largest(structure, r)
            shrink = 1.0 - (2.0 * ratio - 1.0) ** 3
            damping = min(effective * max(FASTEST_SHRINK, shrink), sqrt(2.0 * cost))
            growth = 2.0
        else:
            damping = effective * growth
            growth *= 2.0
            if damping > DAMPING_CEILING:
                control.status = STALLED
                break
    if control.status == RUNNING and worst <= control.tolerance:
        control.status = CONVERGED
    control.reuse = reuse
    control.damping = damping
    control.growth = growth
    control.cost = cost
    control.residual_max = worst
    return end(control, done)


SOLVE = evaluator(_solve)
