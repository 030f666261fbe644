"""Hands in the equations of motion, by the algebra of soft rows (:mod:`cardan.dynamics._soft`).

A hand that holds is a constraint with a small compliance.  Over a cycle its point moves to the target at a constant
velocity w, so that at the start an impulse gives J_s v = w, and then J_s v̇ = γ.

The force of a hand that is a spring is constant over a cycle h.  It is that at the end of the cycle (implicit, so that
no stiffness is unstable).  With stiffness k, damping d, the acceleration a of the rows and a₀ without the force,

    F = −k (r + h J_s v + ½ h² a) − d (J_s v + h a),   a = a₀ + G F,   a₀ = J_s v̇₀ − γ,
    (G + 1/β) F = −(k r + (h k + d) J_s v)/β − a₀,     β = ½ h² k + h d.

If the point moves by Δp, the spring loses ½ k |Δp|² more than this force does work: a hand at rest adds no energy.
"""

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
from cardan.interact._hands import back_rotated, rotated, turn_error, update_hand
from cardan.kernel.jit import evaluator, inner, jit, plain
from cardan.kernel.memory import cut, floats_at, integers_at, pointer, tail
from cardan.solvers import tables as solvers_abi
from cardan.system.tables import POSE

JACOBIAN, GAMMA = plain(solvers_abi.JACOBIAN), plain(solvers_abi.GAMMA)
RIGID = 1e-8  # compliance of a hand that holds, relative to that of the mechanism
HELD = 1e-10  # the same, relative to that of the body alone


@inner
def fill_right(op, job, bias, right):
    """What the velocity or the acceleration of every row is to be."""
    if op == dynamics_abi.ACCELERATION:
        for i in range(integers_at(job[dynamics_abi.SOFT_INTS])[dynamics_abi.SOFT_ROWS]):
            right[i] = bias[i]
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
def spring_terms(job, control, v, a, bias, right):
    """Compliances and right-hand sides of hands that are springs; a: v̇₀; bias: γ."""
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
        change = -bias[i]
        for j in range(WIDTH):
            e = entries[WIDTH * i + j] * mass[n6 + first + j]
            rate += e * v[first + j]
            change += e * a[first + j]
        k = stiffness[i]
        d = compliance[i]
        beta = 0.5 * h * h * k + h * d
        compliance[i] = 1.0 / beta
        right[i] = -(k * residual[i] + (h * k + d) * rate) / beta - change


@inner
def drop_pulling(job):
    """Let pushes that would pull not act in this cycle; returns whether there was one."""
    hands = floats_at(job[dynamics_abi.SOFT_FLOATS])
    y = soft_part(job, FORCES, integers_at(job[dynamics_abi.SOFT_INTS])[dynamics_abi.SOFT_MOST])
    found = False
    for h in range(abi.MOST_HANDS):
        hand = tail(hands, abi.HAND * h)
        if hand[abi.KIND] == abi.PUSH and hand[abi.ROWS] > 0.0 and y[int(hand[abi.ROW])] < 0.0:
            hand[abi.OFF] = 1.0
            found = True
    return found


@inner
def refresh_springs(job, q):
    """The array at SOFT_EXTRA ← generalised forces of the springs at q: PULL is constant in world axes.

    A push acts where its target is, all others at the grasped point.
    """
    table = integers_at(job[dynamics_abi.SOFT_INTS])
    hands = floats_at(job[dynamics_abi.SOFT_FLOATS])
    out = floats_at(table[dynamics_abi.SOFT_EXTRA])
    for i in range(WIDTH * job[dynamics_abi.BODIES]):
        out[i] = 0.0
    for h in range(abi.MOST_HANDS):
        hand = tail(hands, abi.HAND * h)
        if hand[abi.KIND] == abi.FREE or hand[abi.ROLE] != abi.SPRINGS:
            continue
        pose = tail(q, POSE * int(hand[abi.BODY]))
        p = tail(pose, 3)
        own = tail(out, WIDTH * int(hand[abi.BODY]))
        f = tail(hand, abi.PULL)
        x, y, z = back_rotated(p, f[0], f[1], f[2])
        s0 = hand[abi.LOCAL]
        s1 = hand[abi.LOCAL + 1]
        s2 = hand[abi.LOCAL + 2]
        if hand[abi.KIND] == abi.PUSH:
            t = tail(hand, abi.TARGET)
            s0, s1, s2 = back_rotated(p, t[0] - pose[0], t[1] - pose[1], t[2] - pose[2])
        a, b, c = back_rotated(p, f[3], f[4], f[5])
        for i in range(3):
            own[i] += f[i]
        own[3] += s1 * z - s2 * y + a
        own[4] += s2 * x - s0 * z + b
        own[5] += s0 * y - s1 * x + c


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

    VELOCITY also computes the generalised forces of springs at q, as each stage of a step needs them.
    IMPLICIT: PULL ← forces of springs over a cycle that begins with q, v, and the acceleration a without them, which
    becomes that with them.
    """
    table = integers_at(job[dynamics_abi.SOFT_INTS])
    most = table[dynamics_abi.SOFT_MOST]
    n6 = WIDTH * job[dynamics_abi.BODIES]
    n = job[dynamics_abi.EQUATIONS]
    implicit = op == dynamics_abi.IMPLICIT
    table[dynamics_abi.SOFT_WHICH] = abi.SPRINGS if implicit else abi.HOLDS
    whole = tail(floats_at(job[dynamics_abi.SOFT_WORK]), most * (4 + WIDTH + most + n6 + n))
    right = cut(whole, 0, most)
    bias = cut(whole, most, most)
    kept = cut(whole, 2 * most, n6 + n)
    count = 0
    while True:
        is_new = implicit or table[dynamics_abi.SOFT_READY] == 0
        if is_new:
            evaluate_soft(job, JACOBIAN, q, v, soft_part(job, RESIDUALS, 1))
        count = table[dynamics_abi.SOFT_ROWS]
        if count == 0:
            break
        for i in range(n6 + n):
            kept[i] = 0.0 if implicit else x[i]
        if is_new:
            condense(job, control, work)
        if op != dynamics_abi.VELOCITY:
            evaluate_soft(job, GAMMA, q, v, bias)
        if implicit:
            spring_terms(job, control, v, a, bias, right)
        else:
            fill_right(op, job, bias, right)
        if is_new:
            if not implicit:
                rigid_compliances(job)
            factorise_soft(job)
        soften(job, right, kept)
        if not (implicit and drop_pulling(job)):
            break
    # the acceleration at the pose of a velocity has the same rows; a new factor, or another role, makes them stale
    table[dynamics_abi.SOFT_READY] = 1 if op == dynamics_abi.VELOCITY else 0
    if implicit:
        mass = roots(job)
        for i in range(n6):
            a[i] += kept[i] * mass[2 * n6 + i] if count > 0 else 0.0
    elif count > 0:
        y = soft_part(job, FORCES, most)
        multipliers = soft_multipliers(job)
        for i in range(count):
            for k in range(n):
                kept[n6 + k] += y[i] * multipliers[n * i + k]
        for i in range(n6 + n):
            x[i] = kept[i]
    if op != dynamics_abi.VELOCITY or table[dynamics_abi.SOFT_BEGINS] != 0:
        keep_forces(float(table[dynamics_abi.SOFT_WHICH]), op == dynamics_abi.VELOCITY, job, q)
    if op != dynamics_abi.ACCELERATION:
        refresh_springs(job, q)
    return count


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
            hand[abi.OFF] = 0.0
            for i in range(6):
                hand[abi.IMPULSE + i] = 0.0
                hand[abi.PULL + i] = 0.0


@jit
def end_hands(hands, q, h):
    """NOW, FORCE, TORQUE ← where each hand is after a cycle of h [s], and what it felt."""
    for k in range(abi.MOST_HANDS):
        hand = tail(pointer(hands), abi.HAND * k)
        if hand[abi.KIND] != abi.FREE:
            update_hand(hand, q)
            for i in range(6):
                hand[abi.FORCE + i] = -hand[abi.PULL + i] - hand[abi.IMPULSE + i] / h


@jit
def turns_far(hands, v, most):
    """Whether a hand that is a spring acts, and a component of an angular velocity is above most [rad/s], or NaN."""
    pulled = False
    for k in range(abi.MOST_HANDS):
        hand = tail(pointer(hands), abi.HAND * k)
        if hand[abi.KIND] != abi.FREE and hand[abi.ROLE] == abi.SPRINGS:
            pulled = True
    if not pulled:
        return False
    for b in range(v.size // WIDTH):
        for i in range(3, WIDTH):
            if not abs(v[WIDTH * b + i]) <= most:
                return True
    return False
