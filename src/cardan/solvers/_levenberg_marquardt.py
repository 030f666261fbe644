"""Levenberg–Marquardt on ½|r|², r and J scaled, in one jitted loop.

    (JᵀJ + λI) δ = −Jᵀr,   ρ = (F(q) − F(q ⊕ δ)) / (½ δᵀ(λδ − Jᵀr))

λ follows Nielsen's rule, shrinking faster: λ·max(1/10, 1 − (2ρ − 1)³) after an accepted step, λ·ν with ν doubling
after a refused one.  [Nielsen1999]  After an accepted step λ is also held below |r|, which keeps the order of
convergence above one even where J has no full rank, as redundant constraints and free motions always make it.
[Yamashita2001]
"""

from math import sqrt

from cardan._jit import call_evaluator, cut, jit, pointer, tail
from cardan.solvers._blocks import add_defect, cap_rotations, half_square, largest, scale_rows
from cardan.solvers.abi import (
    BROKEN,
    CHUNK,
    CONVERGED,
    COORDINATES,
    COST,
    DAMPING,
    FACTOR,
    GROWTH,
    ITERATIONS,
    JACOBIAN,
    JACOBIAN_SIZE,
    MARK_COST,
    MARK_ITERATION,
    OVERFLOW,
    RESIDUAL_MAX,
    RETRACT,
    REUSE,
    ROWS,
    RUNNING,
    SOLVE,
    STALLED,
    STATUS,
    TOLERANCE,
    UNKNOWNS,
    WORK,
)

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


@jit
def levenberg_marquardt(evaluate, ints, floats, structure, scales, linear, pattern, q, control, work):
    """Iterate from q in place until met, stalled, or CHUNK iterations are done; returns STATUS.

    HELD says whether work still holds r and J at q from the last call, and in which of its two places; it must be zero
    if anything else has changed since.
    """
    structure = pointer(structure)
    scales = pointer(scales)
    q = pointer(q)
    control = pointer(control)
    work = pointer(work)
    m = structure[ROWS]
    n = structure[UNKNOWNS]
    size = structure[JACOBIAN_SIZE]
    coordinates = structure[COORDINATES]
    at = structure[WORK]
    inner = cut(work, 0, at)
    r = cut(work, at, m)
    at += m
    trial_r = cut(work, at, m)
    at += m
    jacobian = cut(work, at, size)
    at += size
    trial_jacobian = cut(work, at, size)
    at += size
    trial_q = cut(work, at, coordinates)
    at += coordinates
    gradient = cut(work, at, n)
    at += n
    step = cut(work, at, n)
    at += n
    unscaled = cut(work, at, n)
    at += n
    correction = cut(work, at, n)
    at += n
    matrix = tail(work, at)

    damping = control[DAMPING]
    growth = control[GROWTH]
    reuse = control[REUSE]
    if reuse == 2.0:
        r, trial_r = trial_r, r
        jacobian, trial_jacobian = trial_jacobian, jacobian
    elif reuse == 0.0:
        call_evaluator(evaluate, JACOBIAN, ints, floats, q, step, r, jacobian, inner)
        scale_rows(structure, scales, r, jacobian)
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
        if call_evaluator(linear, FACTOR, pattern, control, r, gradient, step, jacobian, matrix) != 0:
            damping = effective * 10.0
            continue
        call_evaluator(linear, SOLVE, pattern, control, r, gradient, step, jacobian, matrix)
        longest = 0.0
        for i in range(n):
            longest = max(longest, abs(step[i]))
        if EPSILON * longest > DRIFT * effective:
            add_defect(structure, r, jacobian, effective, step, unscaled)
            call_evaluator(linear, SOLVE, pattern, control, r, unscaled, correction, jacobian, matrix)
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
        call_evaluator(evaluate, RETRACT, ints, floats, q, unscaled, trial_q, jacobian, inner)
        call_evaluator(evaluate, JACOBIAN, ints, floats, trial_q, step, trial_r, trial_jacobian, inner)
        scale_rows(structure, scales, trial_r, trial_jacobian)
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


def levenberg_marquardt_work(structure, matrix):
    """Floats of work the kernel needs, of which ``matrix`` are for the linear algebra."""
    blocks = int(structure[ROWS]) + int(structure[JACOBIAN_SIZE])
    return int(structure[WORK]) + 2 * blocks + int(structure[COORDINATES]) + 4 * int(structure[UNKNOWNS]) + matrix
