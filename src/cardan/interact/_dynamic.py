"""Hands in the equations of motion, by the algebra of soft rows (:mod:`cardan.dynamics._soft`).

A hand that holds is a constraint with a small compliance.  Over a cycle its point moves to the target at a constant
velocity w, so that at the start an impulse gives J_s v = w, and then J_s v̇ = γ.

The force of a hand that is a spring is constant over a cycle h.  It is that at the end of the cycle (implicit, so that
no stiffness is unstable).  With stiffness k, damping d, the acceleration a of the rows and a₀ without the force,

    F = −k (r + h J_s v + ½ h² a) − d (J_s v + h a),   a = a₀ + G F,   a₀ = J_s v̇₀ − γ,
    (G + 1/β) F = −(k r + (h k + d) J_s v)/β − a₀,     β = ½ h² k + h d.

If the point moves by Δp, the spring loses ½ k |Δp|² more than this force does work: a hand at rest adds no energy.
"""

from cardan.dynamics._dual import dot_6
from cardan.dynamics._equations import roots
from cardan.dynamics._soft import condense, evaluate_soft, factorise_soft, soften
from cardan.dynamics.tables import ACCELERATION, IMPLICIT, VELOCITY, WIDTH, Job, SoftWork, Work
from cardan.interact._hands import back_rotated, rotated, turn_error, update_hand
from cardan.interact.tables import FREE, HOLDS, MOST_HANDS, PUSH, SPRINGS, Control, Hand
from cardan.kernel.jit import evaluator, inner, jit, plain
from cardan.kernel.memory import pointer, tail
from cardan.solvers import tables as solvers_tables
from cardan.system.tables import POSE

JACOBIAN, GAMMA = plain(solvers_tables.JACOBIAN), plain(solvers_tables.GAMMA)
RIGID = 1e-8  # compliance of a hand that holds, relative to that of the mechanism
HELD = 1e-10  # the same, relative to that of the body alone


@inner
def fill_right(op, job, bias, right):
    """What the velocity or the acceleration of every row is to be."""
    if op == ACCELERATION:
        for i in range(job.soft.rows):
            right[i] = bias[i]
        return
    hands = job.soft_floats
    for h in range(MOST_HANDS):
        hand = Hand(hands, h)
        if hand.kind != FREE and hand.role == HOLDS:
            for i in range(int(hand.rows)):
                right[int(hand.row) + i] = hand.speed[i]


@inner
def keep_forces(role, adds, job, q):
    """PULL ←, or IMPULSE += what the rows of each hand of that role did, in world axes."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    hands = job.soft_floats
    y = parts.forces
    entries = parts.entries
    root = tail(roots(job), WIDTH * job.bodies)
    for h in range(MOST_HANDS):
        hand = Hand(hands, h)
        if hand.kind == FREE or hand.role != role:
            continue
        body = int(hand.body)
        out = hand.impulse if adds else hand.pull
        if not adds:
            for i in range(6):
                out[i] = 0.0
        for i in range(min(3, int(hand.rows))):
            row = int(hand.row) + i
            for j in range(3):
                out[j] += y[row] * entries[WIDTH * row + j] * root[WIDTH * body + j]
        if hand.rows == 6.0:
            e_B = tail(y, int(hand.row) + 3)
            a, b, c = rotated(tail(q, POSE * body + 3), e_B[0], e_B[1], e_B[2])
            out[3] += a
            out[4] += b
            out[5] += c


@inner
def spring_terms(job, control, v, a, bias, right):
    """Compliances and right-hand sides of hands that are springs; a: v̇₀; bias: γ."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    n6 = WIDTH * job.bodies
    mass = roots(job)
    entries = parts.entries
    residual = parts.residuals
    stiffness = parts.stiffnesses
    compliance = parts.compliances  # first the dampings
    h = control.step
    for i in range(soft.rows):
        first = WIDTH * soft.bodies[i]
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
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    hands = job.soft_floats
    y = parts.forces
    pulls = False
    for h in range(MOST_HANDS):
        hand = Hand(hands, h)
        if hand.kind == PUSH and hand.rows > 0.0 and y[int(hand.row)] < 0.0:
            hand.off = 1.0
            pulls = True
    return pulls


@inner
def refresh_springs(job, q):
    """Soft.extra ← generalised forces of the springs at q: PULL is constant in world axes.

    A push acts where its target is, all others at the grasped point.
    """
    soft = job.soft
    hands = job.soft_floats
    out = soft.extra
    for i in range(WIDTH * job.bodies):
        out[i] = 0.0
    for h in range(MOST_HANDS):
        hand = Hand(hands, h)
        if hand.kind == FREE or hand.role != SPRINGS:
            continue
        pose = tail(q, POSE * int(hand.body))
        p = tail(pose, 3)
        force = tail(out, WIDTH * int(hand.body))
        f = hand.pull
        x, y, z = back_rotated(p, f[0], f[1], f[2])
        s0 = hand.local[0]
        s1 = hand.local[1]
        s2 = hand.local[2]
        if hand.kind == PUSH:
            t = hand.target
            s0, s1, s2 = back_rotated(p, t[0] - pose[0], t[1] - pose[1], t[2] - pose[2])
        a, b, c = back_rotated(p, f[3], f[4], f[5])
        for i in range(3):
            force[i] += f[i]
        force[3] += s1 * z - s2 * y + a
        force[4] += s2 * x - s0 * z + b
        force[5] += s0 * y - s1 * x + c


@inner
def rigid_compliances(job):
    """Of hands that hold."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    most = soft.most
    entries = parts.entries
    compliance = parts.compliances
    matrix = parts.matrix
    largest = 0.0
    for i in range(soft.rows):
        row = tail(entries, WIDTH * i)
        size = dot_6(row, row)
        largest = max(largest, matrix[most * i + i] / size)
    for i in range(soft.rows):
        row = tail(entries, WIDTH * i)
        compliance[i] = (RIGID * largest + HELD) * dot_6(row, row)


def _solve(op, ints, floats, q, v, x, a, memory):
    """VELOCITY, ACCELERATION: x = (u, λ) of the equations ← the same with the hands that hold.

    VELOCITY also computes the generalised forces of springs at q, as each stage of a step needs them.
    IMPLICIT: PULL ← forces of springs over a cycle that begins with q, v, and the acceleration a without them, which
    becomes that with them.
    """
    job = Job(ints)
    control = Control(floats)
    work = Work(job.pieces, memory)
    soft = job.soft
    parts = SoftWork(soft.pieces, job.soft_memory)
    n6 = WIDTH * job.bodies
    n = job.equations
    implicit = op == IMPLICIT
    soft.which = SPRINGS if implicit else HOLDS
    right = parts.right
    bias = parts.bias
    kept = parts.solution
    count = 0
    while True:
        is_new = implicit or soft.ready == 0
        if is_new:
            evaluate_soft(job, JACOBIAN, q, v, parts.memory)
        count = soft.rows
        if count == 0:
            break
        for i in range(n6 + n):
            kept[i] = 0.0 if implicit else x[i]
        if is_new:
            condense(job, control, work)
        if op != VELOCITY:
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
    soft.ready = 1 if op == VELOCITY else 0
    if implicit:
        mass = roots(job)
        for i in range(n6):
            a[i] += kept[i] * mass[2 * n6 + i] if count > 0 else 0.0
    elif count > 0:
        y = parts.forces
        multipliers = parts.multipliers
        for i in range(count):
            for k in range(n):
                kept[n6 + k] += y[i] * multipliers[n * i + k]
        for i in range(n6 + n):
            x[i] = kept[i]
    if op != VELOCITY or soft.begins != 0:
        keep_forces(float(soft.which), op == VELOCITY, job, q)
    if op != ACCELERATION:
        refresh_springs(job, q)
    return count


SOLVE = evaluator(_solve)


@jit
def begin_hands(hands, q, h):
    """SPEED ← that with which each hand reaches its target in a cycle of h [s]; IMPULSE ← 0."""
    for k in range(MOST_HANDS):
        hand = Hand(pointer(hands), k)
        if hand.kind != FREE:
            body = int(hand.body)
            update_hand(hand, q)
            a, b, c = turn_error(tail(q, POSE * body + 3), hand.frame, tail(hand.target, 3))
            for i in range(3):
                hand.speed[i] = (hand.target[i] - hand.now[i]) / h
            hand.speed[3] = -a / h
            hand.speed[4] = -b / h
            hand.speed[5] = -c / h
            hand.off = 0.0
            for i in range(6):
                hand.impulse[i] = 0.0
                hand.pull[i] = 0.0


@jit
def end_hands(hands, q, h):
    """NOW, FORCE, TORQUE ← where each hand is after a cycle of h [s], and what it felt."""
    for k in range(MOST_HANDS):
        hand = Hand(pointer(hands), k)
        if hand.kind != FREE:
            update_hand(hand, q)
            for i in range(3):
                hand.force[i] = -hand.pull[i] - hand.impulse[i] / h
                hand.torque[i] = -hand.pull[3 + i] - hand.impulse[3 + i] / h


@jit
def turns_far(hands, v, most):
    """Whether a hand that is a spring acts, and a component of an angular velocity is above most [rad/s], or NaN."""
    pulled = False
    for k in range(MOST_HANDS):
        hand = Hand(pointer(hands), k)
        if hand.kind != FREE and hand.role == SPRINGS:
            pulled = True
    if not pulled:
        return False
    for b in range(v.size // WIDTH):
        for i in range(3, WIDTH):
            if not abs(v[WIDTH * b + i]) <= most:
                return True
    return False
