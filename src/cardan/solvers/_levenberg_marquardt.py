"""Levenberg–Marquardt on ½|r|², r and J scaled, in one jitted loop.

    (JᵀJ + λI) δ = −Jᵀr,   ρ = (F(q) − F(q ⊕ δ)) / (½ δᵀ(λδ − Jᵀr))

λ follows Nielsen's rule, shrinking faster: λ·max(1/10, 1 − (2ρ − 1)³) after an accepted step, λ·ν with ν doubling
after a refused one.  [Nielsen1999]  After an accepted step λ is also held below |r|, which keeps the order of
convergence above one even where J has no full rank, as redundant constraints and free motions always make it.
[Yamashita2001]
"""

from math import sqrt

from cardan._jit import evaluator, plain
from cardan.solvers._blocks import cap_rotations, half_square, largest, update_defect
from cardan.solvers._job import call_linear, evaluate_scaled, piece, retract, scales_of, structure_of
from cardan.solvers.abi import (
    BACK_SOLVE,
    BROKEN,
    CHUNK,
    CONVERGED,
    COORDINATES,
    COST,
    DAMPING,
    FACTOR,
    GROWTH,
    ITERATIONS,
    MARK_COST,
    MARK_ITERATION,
    OVERFLOW,
    RESIDUAL_MAX,
    REUSE,
    ROWS,
    RUNNING,
    STALLED,
    STATUS,
    TOLERANCE,
    UNKNOWNS,
)

INITIAL_DAMPING = 1e-3
ROTATION_CAP = 1.0  # rad per step: beyond it the linear model of a rotation says little
FASTEST_SHRINK = 0.1  # of λ per accepted step; Nielsen's 1/3 takes 13 steps on a chain of 1,000 where this takes 8
DAMPING_FLOOR = 1e-12  # keeps the factorisation definite on free motions; what it costs in accuracy is under round-off
# Rounding in the factor, some eps/λ of the step, pushes bodies along their free motions.  Where that exceeds this
# part of L or a radian, one refinement with the defect of the normal equations takes it back, so that the pose does not
# depend on the order of the parts.
DRIFT = 1e-12
# The defect itself is rounded, by some eps·r, and a long way that is made with ever smaller λ lets that grow: ends of a
# four-bar from starts 1e-15 apart were 1e-9 apart, those of a bent chain 1e-5.  With λ above this part of the root mean
# square of r, which no rigid motion changes, it is 1e-13 and 4e-10, for the same number of iterations.
LEAST_DAMPING = 1e-6
EPSILON = 2.2e-16
DAMPING_CEILING = 1e8  # a step damped so far moves nothing: stalled
STALL_DECREASE = 1e-9  # of the cost: where the model promises less, though hardly damped, the search has ended
CREEP_ITERATIONS = 20  # where the cost falls by less than CREEP_DECREASE in so many, the search creeps along a valley
CREEP_DECREASE = 1e-3
HARDLY_DAMPED = 1.0  # JᵀJ of the scaled rows has entries of this order


# pieces of the workspace
EVALUATION, R, TRIAL_R, J, TRIAL_J, TRIAL_Q, GRADIENT, STEP, UNSCALED, CORRECTION, MATRIX = map(plain, range(11))


def pieces(problem):
    """Floats of each piece of the workspace."""
    m, n, entries, coordinates, evaluation = problem.sizes
    return evaluation, m, m, entries, entries, coordinates, n, n, n, n, problem.linear.work


def prepare(problem, control):
    """What the control vector holds at the beginning of a run, beside zeros."""
    control[DAMPING] = INITIAL_DAMPING
    control[GROWTH] = 2.0


def _solve(op, job, control, q, unused_1, unused_2, unused_3, work):
    """Iterate from q in place until met, stalled, or CHUNK iterations are done; returns STATUS.

    REUSE says whether work still holds r and J at q from the last call, and in which of its two places (1 or 2); it
    must be zero if q or the problem has changed since.
    """
    structure = structure_of(job)
    scales = scales_of(job)
    m = structure[ROWS]
    n = structure[UNKNOWNS]
    coordinates = structure[COORDINATES]
    inner = piece(job, EVALUATION, work)
    r = piece(job, R, work)
    trial_r = piece(job, TRIAL_R, work)
    jacobian = piece(job, J, work)
    trial_jacobian = piece(job, TRIAL_J, work)
    trial_q = piece(job, TRIAL_Q, work)
    gradient = piece(job, GRADIENT, work)
    step = piece(job, STEP, work)
    unscaled = piece(job, UNSCALED, work)
    correction = piece(job, CORRECTION, work)
    matrix = piece(job, MATRIX, work)

    damping = control[DAMPING]
    growth = control[GROWTH]
    reuse = control[REUSE]
    if reuse == 2.0:
        r, trial_r = trial_r, r
        jacobian, trial_jacobian = trial_jacobian, jacobian
    elif reuse == 0.0:
        evaluate_scaled(job, q, r, jacobian, inner)
        reuse = 1.0
    cost = half_square(structure, r)
    worst = largest(structure, r)
    control[STATUS] = RUNNING
    done = 0
    limit = int(control[CHUNK])
    while done < limit:
        if worst <= control[TOLERANCE]:
            control[STATUS] = CONVERGED
            break
        if not cost < OVERFLOW:
            control[STATUS] = BROKEN
            break
        if control[ITERATIONS] + done >= control[MARK_ITERATION] + CREEP_ITERATIONS:
            if control[MARK_ITERATION] > 0.0 and cost > (1.0 - CREEP_DECREASE) * control[MARK_COST]:
                control[STATUS] = STALLED
                break
            control[MARK_ITERATION] = control[ITERATIONS] + done
            control[MARK_COST] = cost
        done += 1
        effective = max(damping, DAMPING_FLOOR, LEAST_DAMPING * sqrt(2.0 * cost / m))
        control[DAMPING] = effective
        if call_linear(job, FACTOR, control, r, gradient, step, jacobian, matrix) != 0:
            damping = effective * 10.0
            continue
        call_linear(job, BACK_SOLVE, control, r, gradient, step, jacobian, matrix)
        longest = 0.0
        for i in range(n):
            longest = max(longest, abs(step[i]))
        if EPSILON * longest > DRIFT * effective:
            update_defect(structure, r, jacobian, effective, step, unscaled)
            call_linear(job, BACK_SOLVE, control, r, unscaled, correction, jacobian, matrix)
            for i in range(n):
                step[i] += correction[i]
        cap_rotations(structure, ROTATION_CAP, step)
        slope = 0.0
        square = 0.0
        for i in range(n):
            slope -= step[i] * gradient[i]
            square += step[i] * step[i]
            unscaled[i] = step[i] * scales[m + i]
        promised = 0.5 * (slope + effective * square)
        if promised <= STALL_DECREASE * cost and effective <= HARDLY_DAMPED:
            control[STATUS] = STALLED
            break
        retract(job, q, unscaled, trial_q, inner)
        evaluate_scaled(job, trial_q, trial_r, trial_jacobian, inner)
        trial_cost = half_square(structure, trial_r)
        ratio = (cost - trial_cost) / promised
        if ratio > 0.0:
            for i in range(coordinates):
                q[i] = trial_q[i]
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
                control[STATUS] = STALLED
                break
    if control[STATUS] == RUNNING and worst <= control[TOLERANCE]:
        control[STATUS] = CONVERGED
    control[ITERATIONS] += done
    control[REUSE] = reuse
    control[DAMPING] = damping
    control[GROWTH] = growth
    control[COST] = cost
    control[RESIDUAL_MAX] = worst
    return int(control[STATUS])


SOLVE = evaluator(_solve)
