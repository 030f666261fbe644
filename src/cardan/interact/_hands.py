"""Hands as soft rows: what each is short of its target, and the derivatives.

    point  r = p − x [m],          J = [I, −A s̃],     p = r_b + A s
    pose   also e [rad],           J = [0, I],         e the rotation vector from the target to the hand
    push   r = n·(p − x) < 0 [m],  J = [nᵀ, ((s + Aᵀ(x − p)) × n)ᵀ],  only where the hand is beyond the face

with s, n and e in reference axes, x the target.  J of e is not ∂e/∂θ, but Jᵀe is the gradient of ½|e|².
The force of the mechanism on a hand is k r at p, its torque κ A e.
"""

from math import atan2, sqrt

from cardan.dynamics.tables import WIDTH, Soft
from cardan.interact.tables import EVERY, FREE, MOST_HANDS, POSE, PUSH, Hand
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import tail
from cardan.solvers.tables import GAMMA
from cardan.system import tables as layout

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
    pose = tail(q, layout.POSE * int(hand.body))
    p = tail(pose, 3)
    f = hand.frame
    x, y, z = rotated(p, hand.local[0], hand.local[1], hand.local[2])
    hand.now[0] = x + pose[0]
    hand.now[1] = y + pose[1]
    hand.now[2] = z + pose[2]
    hand.now[3] = p[0] * f[0] - p[1] * f[1] - p[2] * f[2] - p[3] * f[3]
    hand.now[4] = p[0] * f[1] + p[1] * f[0] + p[2] * f[3] - p[3] * f[2]
    hand.now[5] = p[0] * f[2] - p[1] * f[3] + p[2] * f[0] + p[3] * f[1]
    hand.now[6] = p[0] * f[3] + p[1] * f[2] - p[2] * f[1] + p[3] * f[0]


@inner
def fill_point(p, hand, entries):
    """The three rows [I, −A s̃]."""
    s0 = hand.local[0]
    s1 = hand.local[1]
    s2 = hand.local[2]
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
    n0 = hand.normal[0]
    n1 = hand.normal[1]
    n2 = hand.normal[2]
    d0 = hand.target[0] - hand.now[0]
    d1 = hand.target[1] - hand.now[1]
    d2 = hand.target[2] - hand.now[2]
    e0, e1, e2 = back_rotated(p, d0, d1, d2)
    entries[0], entries[1], entries[2] = rotated(p, n0, n1, n2)
    c0 = hand.local[0] + e0
    c1 = hand.local[1] + e1
    c2 = hand.local[2] + e2
    entries[3] = c1 * n2 - c2 * n1
    entries[4] = c2 * n0 - c0 * n2
    entries[5] = c0 * n1 - c1 * n0
    return -(e0 * n0 + e1 * n1 + e2 * n2)


@inner
def fill_bias(p, w, hand, out):
    """out ← −A (ω × (ω × s))."""
    s0 = hand.local[0]
    s1 = hand.local[1]
    s2 = hand.local[2]
    c0 = w[1] * s2 - w[2] * s1
    c1 = w[2] * s0 - w[0] * s2
    c2 = w[0] * s1 - w[1] * s0
    x, y, z = rotated(p, w[1] * c2 - w[2] * c1, w[2] * c0 - w[0] * c2, w[0] * c1 - w[1] * c0)
    out[0] = -x
    out[1] = -y
    out[2] = -z


def _evaluate(op, ints, hands, q, v, out, entries, unused):
    """JACOBIAN: residuals, stiffnesses and dampings to out, rows to entries, their number and bodies to Soft.

    GAMMA: bias of the accelerations of the rows that the last JACOBIAN gave; zero for pushes.
    """
    soft = Soft(ints)
    most = soft.most
    which = soft.which
    bodies = soft.bodies
    row = 0
    for h in range(MOST_HANDS):
        hand = Hand(hands, h)
        kind = int(hand.kind)
        if kind == FREE or not (which == EVERY or which == int(hand.role)):
            continue
        body = int(hand.body)
        p = tail(q, layout.POSE * body + 3)
        if op == GAMMA:
            if kind == PUSH:
                if hand.rows > 0.0:
                    out[row] = 0.0
                    row += 1
                continue
            fill_bias(p, tail(v, WIDTH * body + 3), hand, tail(out, row))
            row += 3
            if kind == POSE:
                for i in range(3):
                    out[row + i] = 0.0
                row += 3
            continue
        update_hand(hand, q)
        if kind == PUSH:
            depth = fill_push(p, hand, tail(entries, WIDTH * row))
            hand.row = row
            hand.rows = 0.0
            if depth < 0.0 and hand.off == 0.0:
                out[row] = depth
                out[most + row] = hand.stiffness
                out[2 * most + row] = hand.damping
                bodies[row] = body
                hand.rows = 1.0
                row += 1
            continue
        hand.row = row
        hand.rows = 6.0 if kind == POSE else 3.0
        fill_point(p, hand, tail(entries, WIDTH * row))
        for i in range(3):
            out[row + i] = hand.now[i] - hand.target[i]
            out[most + row + i] = hand.stiffness
            out[2 * most + row + i] = hand.damping
            bodies[row + i] = body
        row += 3
        if kind == POSE:
            out[row], out[row + 1], out[row + 2] = turn_error(p, hand.frame, tail(hand.target, 3))
            for i in range(3):
                turn_row = tail(entries, WIDTH * (row + i))
                for j in range(WIDTH):
                    turn_row[j] = 1.0 if j == 3 + i else 0.0
                out[most + row + i] = hand.twist
                out[2 * most + row + i] = hand.untwist
                bodies[row + i] = body
            row += 3
    if op != GAMMA:
        soft.rows = row
    return 0


EVALUATE = evaluator(_evaluate)


@inner
def write_forces(hands, q):
    """FORCE, TORQUE ← k r and κ A e of every hand at q."""
    for h in range(MOST_HANDS):
        hand = Hand(hands, h)
        kind = int(hand.kind)
        if kind == FREE:
            continue
        update_hand(hand, q)
        p = tail(q, layout.POSE * int(hand.body) + 3)
        k = hand.stiffness
        x = hand.now[0] - hand.target[0]
        y = hand.now[1] - hand.target[1]
        z = hand.now[2] - hand.target[2]
        if kind == PUSH:
            n0, n1, n2 = rotated(p, hand.normal[0], hand.normal[1], hand.normal[2])
            depth = min(0.0, n0 * x + n1 * y + n2 * z)
            x = depth * n0
            y = depth * n1
            z = depth * n2
        hand.force[0] = k * x
        hand.force[1] = k * y
        hand.force[2] = k * z
        if kind == POSE:
            e0, e1, e2 = turn_error(p, hand.frame, tail(hand.target, 3))
            k = hand.twist
            x, y, z = rotated(p, k * e0, k * e1, k * e2)
            hand.torque[0] = x
            hand.torque[1] = y
            hand.torque[2] = z


@inner
def turn_cost(hand):
    """κ |e|² of a pose, from its torque."""
    t = hand.torque
    return (t[0] * t[0] + t[1] * t[1] + t[2] * t[2]) / hand.twist


@inner
def keep_start(hands, q):
    """START ← where every hand is at q; its forces were written for q."""
    for h in range(MOST_HANDS):
        hand = Hand(hands, h)
        if hand.kind == FREE:
            continue
        start = hand.start
        for i in range(3):
            start[i] = hand.now[i]
        if hand.kind == PUSH:
            p = tail(q, layout.POSE * int(hand.body) + 3)
            start[3], start[4], start[5] = rotated(p, hand.normal[0], hand.normal[1], hand.normal[2])
        elif hand.kind == POSE:
            start[3] = turn_cost(hand)


@inner
def compare_costs(hands, q, length):
    """Change of Σ k r² + κ e² from START to q, whose forces are written; its rounding; and a part of the step.

    That part, less than one, is where a push that acts at START reaches the plane of its target, by linear
    interpolation.  With r² − r₀² = (p − p₀)·(r + r₀) the change is accurate for targets at any distance.
    """
    change = 0.0
    noise = 0.0
    part = 1.0
    for h in range(MOST_HANDS):
        hand = Hand(hands, h)
        kind = int(hand.kind)
        if kind == FREE:
            continue
        k = hand.stiffness
        start = hand.start
        now = hand.now
        target = hand.target
        far = length
        for i in range(3):
            far = max(far, abs(now[i]))
        if kind == PUSH:
            p = tail(q, layout.POSE * int(hand.body) + 3)
            n0, n1, n2 = rotated(p, hand.normal[0], hand.normal[1], hand.normal[2])
            x = start[0] - target[0]
            y = start[1] - target[1]
            z = start[2] - target[2]
            before = start[3] * x + start[4] * y + start[5] * z
            moved = n0 * (now[0] - start[0]) + n1 * (now[1] - start[1]) + n2 * (now[2] - start[2])
            moved += (n0 - start[3]) * x + (n1 - start[4]) * y + (n2 - start[5]) * z
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
            change += k * (now[i] - start[i]) * (r + (start[i] - target[i]))
            square += r * r
        noise += k * ROUNDING * far * sqrt(square)
        if kind == POSE:
            e = turn_cost(hand)
            change += e - start[3]
            noise += ROUNDING * e
    return change, noise, part
