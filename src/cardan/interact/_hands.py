"""Hands as soft rows: what each is short of its target, and the derivatives.

    point  r = p − x [m],          J = [I, −A s̃],     p = r_b + A s
    pose   also e [rad],           J = [0, I],         e the rotation vector from the target to the hand
    push   r = n·(p − x) < 0 [m],  J = [nᵀ, ((s + Aᵀ(x − p)) × n)ᵀ],  only where the hand is beyond the face

with s, n and e in reference axes, x the target.  J of e is not ∂e/∂θ, but Jᵀe is the gradient of ½|e|².
The force of the mechanism on a hand is k r at p, its torque κ A e.
"""

from math import atan2, sqrt

from cardan.dynamics import abi as dynamics_abi
from cardan.dynamics.abi import WIDTH
from cardan.interact import abi
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import tail
from cardan.solvers.tables import GAMMA
from cardan.system.tables import POSE

ROUNDING = 1e-15  # of a coordinate
PLANE = 1e-10  # of the extent: a push that is nearer to the plane of its target is on it


@inner
def rotated(p, x, y, z):
    """A(p) (x, y, z)."""
    u = 2.0 * (p[2] * z - p[3] * y)
    v = 2.0 * (p[3] * x - p[1] * z)
    w = 2.0 * (p[1] * y - p[2] * x)
    return (x + p[0] * u + p[2] * w - p[3] * v, y + p[0] * v + p[3] * u - p[1] * w, z + p[0] * w + p[1] * v - p[2] * u)


@inner
def back_rotated(p, x, y, z):
    """A(p)ᵀ (x, y, z)."""
    u = 2.0 * (p[3] * y - p[2] * z)
    v = 2.0 * (p[1] * z - p[3] * x)
    w = 2.0 * (p[2] * x - p[1] * y)
    return (x + p[0] * u - p[2] * w + p[3] * v, y + p[0] * v - p[3] * u + p[1] * w, z + p[0] * w - p[1] * v + p[2] * u)


@inner
def turn_error(p, frame, target):
    """Rotation vector e [rad] in reference axes that leads from the target's orientation to the hand's."""
    # conj(t ⊗ conj(frame)) ⊗ p = frame ⊗ conj(t) ⊗ p
    a0 = frame[0] * target[0] + frame[1] * target[1] + frame[2] * target[2] + frame[3] * target[3]
    a1 = -frame[0] * target[1] + frame[1] * target[0] - frame[2] * target[3] + frame[3] * target[2]
    a2 = -frame[0] * target[2] + frame[1] * target[3] + frame[2] * target[0] - frame[3] * target[1]
    a3 = -frame[0] * target[3] - frame[1] * target[2] + frame[2] * target[1] + frame[3] * target[0]
    w = a0 * p[0] - a1 * p[1] - a2 * p[2] - a3 * p[3]
    x = a0 * p[1] + a1 * p[0] + a2 * p[3] - a3 * p[2]
    y = a0 * p[2] - a1 * p[3] + a2 * p[0] + a3 * p[1]
    z = a0 * p[3] + a1 * p[2] - a2 * p[1] + a3 * p[0]
    if w < 0.0:
        w = -w
        x = -x
        y = -y
        z = -z
    sine = sqrt(x * x + y * y + z * z)
    c = 2.0 * atan2(sine, w) / sine if sine > 0.0 else 2.0
    return c * x, c * y, c * z


@inner
def update_hand(hand, q):
    """NOW ← position and orientation of the hand; returns its position."""
    pose = tail(q, POSE * int(hand[abi.BODY]))
    p = tail(pose, 3)
    f = tail(hand, abi.FRAME)
    x, y, z = rotated(p, hand[abi.LOCAL], hand[abi.LOCAL + 1], hand[abi.LOCAL + 2])
    hand[abi.NOW] = x + pose[0]
    hand[abi.NOW + 1] = y + pose[1]
    hand[abi.NOW + 2] = z + pose[2]
    hand[abi.NOW + 3] = p[0] * f[0] - p[1] * f[1] - p[2] * f[2] - p[3] * f[3]
    hand[abi.NOW + 4] = p[0] * f[1] + p[1] * f[0] + p[2] * f[3] - p[3] * f[2]
    hand[abi.NOW + 5] = p[0] * f[2] - p[1] * f[3] + p[2] * f[0] + p[3] * f[1]
    hand[abi.NOW + 6] = p[0] * f[3] + p[1] * f[2] - p[2] * f[1] + p[3] * f[0]


@inner
def fill_point(p, hand, entries):
    """The three rows [I, −A s̃]."""
    s0 = hand[abi.LOCAL]
    s1 = hand[abi.LOCAL + 1]
    s2 = hand[abi.LOCAL + 2]
    for i in range(3):
        row = tail(entries, WIDTH * i)
        for j in range(3):
            row[j] = 1.0 if i == j else 0.0
        # row i of A, then −(A s̃)_i = s × a_i
        a0, a1, a2 = back_rotated(p, 1.0 if i == 0 else 0.0, 1.0 if i == 1 else 0.0, 1.0 if i == 2 else 0.0)
        row[3] = s1 * a2 - s2 * a1
        row[4] = s2 * a0 - s0 * a2
        row[5] = s0 * a1 - s1 * a0


@inner
def fill_push(p, hand, entries):
    """The row of a push; returns n·(p − x)."""
    n0 = hand[abi.NORMAL]
    n1 = hand[abi.NORMAL + 1]
    n2 = hand[abi.NORMAL + 2]
    d0 = hand[abi.TARGET] - hand[abi.NOW]
    d1 = hand[abi.TARGET + 1] - hand[abi.NOW + 1]
    d2 = hand[abi.TARGET + 2] - hand[abi.NOW + 2]
    e0, e1, e2 = back_rotated(p, d0, d1, d2)
    entries[0], entries[1], entries[2] = rotated(p, n0, n1, n2)
    c0 = hand[abi.LOCAL] + e0
    c1 = hand[abi.LOCAL + 1] + e1
    c2 = hand[abi.LOCAL + 2] + e2
    entries[3] = c1 * n2 - c2 * n1
    entries[4] = c2 * n0 - c0 * n2
    entries[5] = c0 * n1 - c1 * n0
    return -(e0 * n0 + e1 * n1 + e2 * n2)


@inner
def fill_bias(p, w, hand, out):
    """out ← −A (ω × (ω × s))."""
    s0 = hand[abi.LOCAL]
    s1 = hand[abi.LOCAL + 1]
    s2 = hand[abi.LOCAL + 2]
    c0 = w[1] * s2 - w[2] * s1
    c1 = w[2] * s0 - w[0] * s2
    c2 = w[0] * s1 - w[1] * s0
    x, y, z = rotated(p, w[1] * c2 - w[2] * c1, w[2] * c0 - w[0] * c2, w[0] * c1 - w[1] * c0)
    out[0] = -x
    out[1] = -y
    out[2] = -z


def _evaluate(op, table, hands, q, v, out, entries, unused):
    """JACOBIAN: residuals, stiffnesses and dampings to out, rows to entries, their number and bodies to the table.

    GAMMA: bias of the accelerations of the rows that the last JACOBIAN gave; zero for pushes.
    """
    most = table[dynamics_abi.SOFT_MOST]
    which = table[dynamics_abi.SOFT_WHICH]
    bodies = tail(table, dynamics_abi.SOFT_BODIES)
    row = 0
    for h in range(abi.MOST_HANDS):
        hand = tail(hands, abi.HAND * h)
        kind = int(hand[abi.KIND])
        if kind == abi.FREE or not (which == abi.EVERY or which == int(hand[abi.ROLE])):
            continue
        body = int(hand[abi.BODY])
        p = tail(q, POSE * body + 3)
        if op == GAMMA:
            if kind == abi.PUSH:
                if hand[abi.ROWS] > 0.0:
                    out[row] = 0.0
                    row += 1
                continue
            fill_bias(p, tail(v, WIDTH * body + 3), hand, tail(out, row))
            row += 3
            if kind == abi.POSE:
                for i in range(3):
                    out[row + i] = 0.0
                row += 3
            continue
        update_hand(hand, q)
        if kind == abi.PUSH:
            depth = fill_push(p, hand, tail(entries, WIDTH * row))
            hand[abi.ROW] = row
            hand[abi.ROWS] = 0.0
            if depth < 0.0 and hand[abi.OFF] == 0.0:
                out[row] = depth
                out[most + row] = hand[abi.STIFFNESS]
                out[2 * most + row] = hand[abi.DAMPING]
                bodies[row] = body
                hand[abi.ROWS] = 1.0
                row += 1
            continue
        hand[abi.ROW] = row
        hand[abi.ROWS] = 6.0 if kind == abi.POSE else 3.0
        fill_point(p, hand, tail(entries, WIDTH * row))
        for i in range(3):
            out[row + i] = hand[abi.NOW + i] - hand[abi.TARGET + i]
            out[most + row + i] = hand[abi.STIFFNESS]
            out[2 * most + row + i] = hand[abi.DAMPING]
            bodies[row + i] = body
        row += 3
        if kind == abi.POSE:
            out[row], out[row + 1], out[row + 2] = turn_error(p, tail(hand, abi.FRAME), tail(hand, abi.TARGET + 3))
            for i in range(3):
                own = tail(entries, WIDTH * (row + i))
                for j in range(WIDTH):
                    own[j] = 1.0 if j == 3 + i else 0.0
                out[most + row + i] = hand[abi.TWIST]
                out[2 * most + row + i] = hand[abi.UNTWIST]
                bodies[row + i] = body
            row += 3
    if op != GAMMA:
        table[dynamics_abi.SOFT_ROWS] = row
    return 0


EVALUATE = evaluator(_evaluate)


@inner
def write_forces(hands, q):
    """FORCE, TORQUE ← k r and κ A e of every hand at q."""
    for h in range(abi.MOST_HANDS):
        hand = tail(hands, abi.HAND * h)
        kind = int(hand[abi.KIND])
        if kind == abi.FREE:
            continue
        update_hand(hand, q)
        p = tail(q, POSE * int(hand[abi.BODY]) + 3)
        k = hand[abi.STIFFNESS]
        x = hand[abi.NOW] - hand[abi.TARGET]
        y = hand[abi.NOW + 1] - hand[abi.TARGET + 1]
        z = hand[abi.NOW + 2] - hand[abi.TARGET + 2]
        if kind == abi.PUSH:
            n0, n1, n2 = rotated(p, hand[abi.NORMAL], hand[abi.NORMAL + 1], hand[abi.NORMAL + 2])
            depth = min(0.0, n0 * x + n1 * y + n2 * z)
            x = depth * n0
            y = depth * n1
            z = depth * n2
        hand[abi.FORCE] = k * x
        hand[abi.FORCE + 1] = k * y
        hand[abi.FORCE + 2] = k * z
        if kind == abi.POSE:
            e0, e1, e2 = turn_error(p, tail(hand, abi.FRAME), tail(hand, abi.TARGET + 3))
            k = hand[abi.TWIST]
            x, y, z = rotated(p, k * e0, k * e1, k * e2)
            hand[abi.TORQUE] = x
            hand[abi.TORQUE + 1] = y
            hand[abi.TORQUE + 2] = z


@inner
def turn_cost(hand):
    """κ |e|² of a pose, from its torque."""
    t = tail(hand, abi.TORQUE)
    return (t[0] * t[0] + t[1] * t[1] + t[2] * t[2]) / hand[abi.TWIST]


@inner
def keep_start(hands, q):
    """START ← where every hand is at q; its forces were written for q."""
    for h in range(abi.MOST_HANDS):
        hand = tail(hands, abi.HAND * h)
        if hand[abi.KIND] == abi.FREE:
            continue
        own = tail(hand, abi.START)
        for i in range(3):
            own[i] = hand[abi.NOW + i]
        if hand[abi.KIND] == abi.PUSH:
            p = tail(q, POSE * int(hand[abi.BODY]) + 3)
            own[3], own[4], own[5] = rotated(p, hand[abi.NORMAL], hand[abi.NORMAL + 1], hand[abi.NORMAL + 2])
        elif hand[abi.KIND] == abi.POSE:
            own[3] = turn_cost(hand)


@inner
def compare_costs(hands, q, length):
    """Change of Σ k r² + κ e² from START to q, whose forces are written; its rounding; and a part of the step.

    That part, less than one, is where a push that acts at START reaches the plane of its target, by linear
    interpolation.  With r² − r₀² = (p − p₀)·(r + r₀) the change is accurate for targets at any distance.
    """
    change = 0.0
    noise = 0.0
    part = 1.0
    for h in range(abi.MOST_HANDS):
        hand = tail(hands, abi.HAND * h)
        kind = int(hand[abi.KIND])
        if kind == abi.FREE:
            continue
        k = hand[abi.STIFFNESS]
        own = tail(hand, abi.START)
        now = tail(hand, abi.NOW)
        target = tail(hand, abi.TARGET)
        far = length
        for i in range(3):
            far = max(far, abs(now[i]))
        if kind == abi.PUSH:
            p = tail(q, POSE * int(hand[abi.BODY]) + 3)
            n0, n1, n2 = rotated(p, hand[abi.NORMAL], hand[abi.NORMAL + 1], hand[abi.NORMAL + 2])
            x = own[0] - target[0]
            y = own[1] - target[1]
            z = own[2] - target[2]
            before = own[3] * x + own[4] * y + own[5] * z
            moved = n0 * (now[0] - own[0]) + n1 * (now[1] - own[1]) + n2 * (now[2] - own[2])
            moved += (n0 - own[3]) * x + (n1 - own[4]) * y + (n2 - own[5]) * z
            after = before + moved
            noise += k * ROUNDING * far * max(0.0, -before)
            if before < 0.0 and after < 0.0:
                change += k * moved * (before + after)
            else:
                change += k * (min(0.0, after) * min(0.0, after) - min(0.0, before) * min(0.0, before))
            if before < -PLANE * length and after > PLANE * length:
                part = min(part, before / (before - after))
            continue
        square = 0.0
        for i in range(3):
            r = now[i] - target[i]
            change += k * (now[i] - own[i]) * (r + (own[i] - target[i]))
            square += r * r
        noise += k * ROUNDING * far * sqrt(square)
        if kind == abi.POSE:
            e = turn_cost(hand)
            change += e - own[3]
            noise += ROUNDING * e
    return change, noise, part
