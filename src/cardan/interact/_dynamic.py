"""Hands in the equations of motion, by the algebra of soft rows (:mod:`cardan.dynamics._soft`).

A hand that holds moves to its target in a cycle at a constant velocity w, as far as the joints leave it free: at the
start an impulse gives J_s v = w, and then J_s v̇ = γ, both in the components that are free (:mod:`_holds`).  On a curved
path the speed along it is constant, and that of w along the tangent.

The force of a hand that is a spring is constant over a cycle h.  It is that at the end of the cycle (implicit, so that
no stiffness is unstable).  With stiffness k, damping d, the acceleration a of the rows and a₀ without the force,

    F = −k (r + h J_s v + ½ h² a) − d (J_s v + h a),   a = a₀ + G F,   a₀ = J_s v̇₀ − γ,
    (G + 1/β) F = −(k r + (h k + d) J_s v)/β − a₀,     β = ½ h² k + h d.

If the point moves by Δp, the spring loses ½ k |Δp|² more than this force does work: a hand at rest adds no energy.
"""

from cardan.dynamics._equations import mass_values
from cardan.dynamics._soft import condense, evaluate_soft, factorise_soft, soften
from cardan.dynamics.tables import ACCELERATION, FINISH, IMPLICIT, VELOCITY, WIDTH, MotionJob, SoftWork, Work
from cardan.interact._hands import back_rotated, rotated, turn_error, update_hand
from cardan.interact._holds import eliminate_holds, factorise_holds, fill_speeds, finish_holds, hold, is_holding
from cardan.interact._trust import trusted_part
from cardan.interact.tables import EVERY, FREE, HOLDS, MOST_HANDS, PUSH, SPRINGS, Control, Hand
from cardan.kernel.jit import evaluator, inner, jit, plain
from cardan.kernel.memory import pointer, tail
from cardan.solvers import tables as solvers_tables
from cardan.system.tables import POSE

HOLDING, AGAIN = 1, 2  # what IMPLICIT returns, added up
JACOBIAN, GAMMA = plain(solvers_tables.JACOBIAN), plain(solvers_tables.GAMMA)


@inner
def keep_forces(role, adds, job, q):
    """PULL ←, or IMPULSE += what the rows of each hand of that role did, in world axes."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    hands = job.soft_floats
    y = parts.forces
    entries = parts.entries
    root = mass_values(job).roots
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
    roots = mass_values(job).roots
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
            e = entries[WIDTH * i + j] * roots[first + j]
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
def has_holds(hands):
    """Whether a hand holds."""
    found = False
    for h in range(MOST_HANDS):
        if is_holding(Hand(hands, h)):
            found = True
    return found


@inner
def has_springs(hands):
    """Whether a hand is a spring."""
    found = False
    for h in range(MOST_HANDS):
        hand = Hand(hands, h)
        if hand.kind != FREE and hand.role == SPRINGS:
            found = True
    return found


@inner
def solve_springs(job, control, q, v, a, holds, work):
    """PULL ← forces of springs over a cycle that begins with q, v and the acceleration a; a ← that with them.

    holds: whether hands hold; then a must be computed again.
    """
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    n6 = WIDTH * job.bodies
    soft.which = EVERY if holds else SPRINGS
    soft.ready = 0
    u = parts.solution
    pulls = True
    while pulls:
        evaluate_soft(job, JACOBIAN, q, v, parts.memory)
        if soft.rows == 0:
            break
        for i in range(n6):
            u[i] = 0.0
        condense(job, control, work)
        evaluate_soft(job, GAMMA, q, v, parts.bias)
        spring_terms(job, control, v, a, parts.bias, parts.right)
        if holds:
            eliminate_holds(job)
            for i in range(soft.rows):
                parts.right[i] *= 1.0 if parts.scales[i] == 0.0 else 0.0
        factorise_soft(job)
        soften(job, parts.right, u)
        pulls = drop_pulling(job)
    inverse_roots = mass_values(job).inverse_roots
    for i in range(n6):
        a[i] += u[i] * inverse_roots[i] if soft.rows > 0 else 0.0
    keep_forces(SPRINGS, False, job, q)
    refresh_springs(job, q)


@inner
def solve_holds(op, job, control, q, v, x, work):
    """x = (u, λ) of the equations ← the same with the hands that hold; PULL, or IMPULSE += what they do."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    n6 = WIDTH * job.bodies
    n = job.equations
    soft.which = HOLDS
    is_new = soft.ready == 0
    if is_new:
        evaluate_soft(job, JACOBIAN, q, v, parts.memory)
    # the acceleration at the pose of a velocity has the same rows; a new factor, or another role, makes them stale
    soft.ready = 1 if op == VELOCITY else 0
    if soft.rows == 0:
        return
    u = parts.solution
    for i in range(n6 + n):
        u[i] = x[i]
    if is_new:
        condense(job, control, work)
        factorise_holds(job)
    part = 1.0
    while True:
        if op == ACCELERATION:
            evaluate_soft(job, GAMMA, q, v, parts.right)
        else:
            fill_speeds(job, part, parts.right)
        hold(job, parts.right, u)
        keep_forces(HOLDS, op == VELOCITY, job, q)
        if op == ACCELERATION or part < 1.0:
            break
        part = trusted_part(job, control, q, v, u, work)
        if not part < 1.0:
            break
    for i in range(soft.rows if op == ACCELERATION else 0):
        for k in range(n):
            u[n6 + k] += parts.forces[i] * parts.multipliers[n * i + k]
    for i in range(n6 + n):
        x[i] = u[i]


def _solve(op, ints, floats, q, v, x, a, memory):
    """VELOCITY, ACCELERATION: x = (u, λ) of the equations ← the same with the hands that hold.

    A VELOCITY is changed at the start of a cycle only, by an impulse: afterwards it follows from the accelerations.
    It also computes the generalised forces of springs at q, as each stage of a step needs them.
    IMPLICIT: PULL ← forces of springs over a cycle that begins with q, v, and the acceleration a without them, which
    becomes that with them; returns HOLDING if a hand holds, plus AGAIN if a must be computed again because of that.
    FINISH: forces on hands that hold, at the end of a cycle at q.
    """
    job = MotionJob(ints)
    control = Control(floats)
    work = Work(job.pieces, memory)
    if op == FINISH:
        finish_holds(job, q, control.step)
        return 0
    if op == IMPLICIT:
        holds = has_holds(job.soft_floats)
        springs = has_springs(job.soft_floats)
        if springs:
            solve_springs(job, control, q, v, a, holds, work)
        return (HOLDING if holds else 0) + (AGAIN if holds and springs else 0)
    if op == ACCELERATION or job.soft.begins != 0:
        solve_holds(op, job, control, q, v, x, work)
    if op == VELOCITY:
        refresh_springs(job, q)
    return 0


SOLVE = evaluator(_solve)


@jit
def begin_hands(hands, q, h, is_first):
    """SPEED ← that with which each hand reaches its target in h [s]; PULL ← 0.

    is_first: whether it is the first part of a cycle; then IMPULSE ← 0.
    """
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
                hand.pull[i] = 0.0
                if is_first:
                    hand.impulse[i] = 0.0


@jit
def hold_any(hands):
    """Whether a hand holds."""
    return has_holds(pointer(hands))


@jit
def clear_impulses(hands):
    """IMPULSE ← 0."""
    for k in range(MOST_HANDS):
        hand = Hand(pointer(hands), k)
        for i in range(6):
            hand.impulse[i] = 0.0


@jit
def keep_first(hands):
    """FIRST ← PULL."""
    for k in range(MOST_HANDS):
        hand = Hand(pointer(hands), k)
        for i in range(6):
            hand.first[i] = hand.pull[i]


@jit
def end_hands(hands, q):
    """NOW, FORCE, TORQUE ← where each hand is at the end of a cycle, and what springs felt."""
    for k in range(MOST_HANDS):
        hand = Hand(pointer(hands), k)
        if hand.kind != FREE:
            update_hand(hand, q)
            for i in range(3):
                hand.force[i] = -hand.pull[i]
                hand.torque[i] = -hand.pull[3 + i]


@jit
def forget(hands):
    """Clear what hands know of earlier cycles, after one that failed."""
    for k in range(MOST_HANDS):
        hand = Hand(pointer(hands), k)
        hand.known = 0.0
        for i in range(6):
            hand.impulse[i] = 0.0
            hand.pull[i] = 0.0
            hand.trend[i] = 0.0


@jit
def turns_far(hands, v, most):
    """Whether a hand that is a spring acts, and a component of an angular velocity is above most [rad/s], or NaN."""
    if not has_springs(pointer(hands)):
        return False
    for b in range(v.size // WIDTH):
        for i in range(3, WIDTH):
            if not abs(v[WIDTH * b + i]) <= most:
                return True
    return False
