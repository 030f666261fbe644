"""Hands in the equations of motion, by the algebra of soft rows (:mod:`cardan.dynamics._soft`).

A hand that holds is a constraint with a small compliance.  Over a cycle its point moves to the target at a constant
velocity w, so that at the start an impulse gives J_s v = w, and then J_s v̇ = γ.

The force of a hand that is a spring is constant over a cycle h.  It is that at the end of the cycle (implicit, so that
no stiffness is unstable): with stiffness k, damping d, and v̇₀ the acceleration without it,

    F = −k (r + h J_s(v + h v̇)) − d J_s (v + h v̇),   v̇ = v̇₀ + M^−½ W F,
    (G + 1/β) F = −k r/β − J_s(v + h v̇₀)/h,          β = h (h k + d).
"""

from cardan._jit import cut, evaluator, floats_at, inner, integers_at, jit, plain, pointer, tail
from cardan.dynamics import abi as dynamics_abi
from cardan.dynamics._dual import dot_6
from cardan.dynamics._equations import roots
from cardan.dynamics._soft import (
    COMPLIANCES,
    ENTRIES,
    FORCES,
    RESIDUALS,
    STIFFNESSES,
    condense,
    evaluate_soft,
    factorise_soft,
    soft_matrix,
    soft_multipliers,
    soft_part,
    soften,
)
from cardan.dynamics.abi import WIDTH
from cardan.interact import abi
from cardan.interact._hands import rotated, turn_error, update_hand
from cardan.solvers import abi as solvers_abi
from cardan.system.layout import POSE

JACOBIAN, GAMMA = plain(solvers_abi.JACOBIAN), plain(solvers_abi.GAMMA)
RIGID = 1e-8  # compliance of a hand that holds, relative to that of the mechanism
HELD = 1e-10  # the same, relative to that of the body alone


@inner
def fill_right(op, job, q, v, right):
    """What the velocity or the acceleration of every row is to be."""
    if op == dynamics_abi.ACCELERATION:
        evaluate_soft(job, GAMMA, q, v, right)
        return
    hands = floats_at(job[dynamics_abi.SOFT_FLOATS])
    for h in range(abi.MOST_HANDS):
        hand = tail(hands, abi.HAND * h)
        if hand[abi.KIND] != abi.FREE and hand[abi.ROLE] == abi.HOLDS:
            for i in range(int(hand[abi.ROWS])):
                right[int(hand[abi.ROW]) + i] = hand[abi.SPEED + i]


@inner
def keep_forces(role, adds, job, q):
    """PULL ←, or IMPULSE += what the rows of each hand of that role did, in world axes."""
    table = integers_at(job[dynamics_abi.SOFT_INTS])
    hands = floats_at(job[dynamics_abi.SOFT_FLOATS])
    most = table[dynamics_abi.SOFT_MOST]
    y = soft_part(job, FORCES, most)
    entries = soft_part(job, ENTRIES, WIDTH * most)
    root = tail(roots(job), WIDTH * job[dynamics_abi.BODIES])
    for h in range(abi.MOST_HANDS):
        hand = tail(hands, abi.HAND * h)
        if hand[abi.KIND] == abi.FREE or hand[abi.ROLE] != role:
            continue
        body = int(hand[abi.BODY])
        out = tail(hand, abi.IMPULSE if adds else abi.PULL)
        if not adds:
            for i in range(6):
                out[i] = 0.0
        for i in range(min(3, int(hand[abi.ROWS]))):
            row = int(hand[abi.ROW]) + i
            for j in range(3):
                out[j] += y[row] * entries[WIDTH * row + j] * root[WIDTH * body + j]
        if hand[abi.ROWS] == 6.0:
            own = tail(y, int(hand[abi.ROW]) + 3)
            a, b, c = rotated(tail(q, POSE * body + 3), own[0], own[1], own[2])
            out[3] += a
            out[4] += b
            out[5] += c


@inner
def spring_terms(job, control, v, a, right):
    """Compliances and right-hand sides of hands that are springs; a: v̇₀."""
    table = integers_at(job[dynamics_abi.SOFT_INTS])
    most = table[dynamics_abi.SOFT_MOST]
    n6 = WIDTH * job[dynamics_abi.BODIES]
    mass = roots(job)
    entries = soft_part(job, ENTRIES, WIDTH * most)
    residual = soft_part(job, RESIDUALS, most)
    stiffness = soft_part(job, STIFFNESSES, most)
    compliance = soft_part(job, COMPLIANCES, most)  # first the dampings
    h = control[dynamics_abi.STEP]
    for i in range(table[dynamics_abi.SOFT_ROWS]):
        first = WIDTH * table[dynamics_abi.SOFT_BODIES + i]
        rate = 0.0
        for j in range(WIDTH):
            rate += entries[WIDTH * i + j] * mass[n6 + first + j] * (v[first + j] + h * a[first + j])
        beta = h * (h * stiffness[i] + compliance[i])
        compliance[i] = 1.0 / beta
        right[i] = -stiffness[i] * residual[i] / beta - rate / h


@inner
def rigid_compliances(job):
    """Of hands that hold."""
    table = integers_at(job[dynamics_abi.SOFT_INTS])
    most = table[dynamics_abi.SOFT_MOST]
    entries = soft_part(job, ENTRIES, WIDTH * most)
    compliance = soft_part(job, COMPLIANCES, most)
    matrix = soft_matrix(job)
    largest = 0.0
    for i in range(table[dynamics_abi.SOFT_ROWS]):
        row = tail(entries, WIDTH * i)
        size = dot_6(row, row)
        largest = max(largest, matrix[most * i + i] / size)
    for i in range(table[dynamics_abi.SOFT_ROWS]):
        row = tail(entries, WIDTH * i)
        compliance[i] = (RIGID * largest + HELD) * dot_6(row, row)


def _solve(op, job, control, q, v, x, a, work):
    """VELOCITY, ACCELERATION: x = (u, λ) of the equations ← the same with the hands that hold.

    IMPLICIT: a ← v̇ with the springs; x ← their generalised forces.
    """
    table = integers_at(job[dynamics_abi.SOFT_INTS])
    most = table[dynamics_abi.SOFT_MOST]
    n6 = WIDTH * job[dynamics_abi.BODIES]
    n = job[dynamics_abi.EQUATIONS]
    implicit = op == dynamics_abi.IMPLICIT
    table[dynamics_abi.SOFT_WHICH] = abi.SPRINGS if implicit else abi.HOLDS
    evaluate_soft(job, JACOBIAN, q, v, soft_part(job, RESIDUALS, 1))
    count = table[dynamics_abi.SOFT_ROWS]
    if implicit:
        for i in range(n6):
            x[i] = 0.0
    if count > 0:
        whole = tail(floats_at(job[dynamics_abi.SOFT_WORK]), most * (4 + WIDTH + most + n6 + n))
        right = cut(whole, 0, most)
        kept = cut(whole, most, n6 + n)
        for i in range(n6 + n):
            kept[i] = 0.0 if implicit else x[i]
        condense(job, control, work)
        if implicit:
            spring_terms(job, control, v, a, right)
        else:
            rigid_compliances(job)
            fill_right(op, job, q, v, right)
        factorise_soft(job)
        soften(job, right, kept)
        if implicit:
            apply_springs(job, kept, a, x)
        else:
            y = soft_part(job, FORCES, most)
            multipliers = soft_multipliers(job)
            for i in range(count):
                for k in range(n):
                    kept[n6 + k] += y[i] * multipliers[n * i + k]
            for i in range(n6 + n):
                x[i] = kept[i]
    if op != dynamics_abi.VELOCITY or table[dynamics_abi.SOFT_BEGINS] != 0:
        keep_forces(float(table[dynamics_abi.SOFT_WHICH]), op == dynamics_abi.VELOCITY, job, q)
    return count


@inner
def apply_springs(job, u, a, out):
    """a += M^−½ u; out += generalised forces of FORCES."""
    table = integers_at(job[dynamics_abi.SOFT_INTS])
    most = table[dynamics_abi.SOFT_MOST]
    n6 = WIDTH * job[dynamics_abi.BODIES]
    mass = roots(job)
    y = soft_part(job, FORCES, most)
    entries = soft_part(job, ENTRIES, WIDTH * most)
    for i in range(n6):
        a[i] += u[i] * mass[2 * n6 + i]
    for i in range(table[dynamics_abi.SOFT_ROWS]):
        first = WIDTH * table[dynamics_abi.SOFT_BODIES + i]
        for j in range(WIDTH):
            out[first + j] += y[i] * entries[WIDTH * i + j] * mass[n6 + first + j]


SOLVE = evaluator(_solve)


@jit
def begin_hands(hands, q, h):
    """SPEED ← that with which each hand reaches its target in a cycle of h [s]; IMPULSE ← 0."""
    for k in range(abi.MOST_HANDS):
        hand = tail(pointer(hands), abi.HAND * k)
        if hand[abi.KIND] != abi.FREE:
            body = int(hand[abi.BODY])
            update_hand(hand, q)
            a, b, c = turn_error(tail(q, POSE * body + 3), tail(hand, abi.FRAME), tail(hand, abi.TARGET + 3))
            for i in range(3):
                hand[abi.SPEED + i] = (hand[abi.TARGET + i] - hand[abi.NOW + i]) / h
            hand[abi.SPEED + 3] = -a / h
            hand[abi.SPEED + 4] = -b / h
            hand[abi.SPEED + 5] = -c / h
            for i in range(6):
                hand[abi.IMPULSE + i] = 0.0


@jit
def end_hands(hands, q, h):
    """NOW, FORCE, TORQUE ← where each hand is after a cycle of h [s], and what it felt."""
    for k in range(abi.MOST_HANDS):
        hand = tail(pointer(hands), abi.HAND * k)
        if hand[abi.KIND] != abi.FREE:
            update_hand(hand, q)
            for i in range(6):
                hand[abi.FORCE + i] = -hand[abi.PULL + i] - hand[abi.IMPULSE + i] / h
