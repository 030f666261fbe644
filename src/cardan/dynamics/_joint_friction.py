"""Friction of joints, whose load is the reaction of the same instant.

The coordinate c of such a joint is a row g of the equations, g v = ċ.  Where it sticks, the row holds, and −λ is the
effort that holds it.  Where it slips in the direction s, the row has a compliance, g v̇ − E λ = c, and c is found with

    λ = s T(W, s),   W = W₀ + Σ c_i W_i,

where T ≥ 0 is the law, and W = (F, M) the force and torque on b at frame b, of all rows of the joint but this one.  W₀
and λ are linear in the right-hand sides c, so each row that slips takes one solution with the factor at hand, and
Newton's method is exact but for the norms in T:

======= ====================================================================================================
BEARING k₀ (|n₁| + |n₂|) + k₂ |F_z|, with the forces n = (F_x, F_y)/2 ± (M_y, −M_x)/L at both ends, or one F_xy
GUIDE   k₀ (|n₁| + |n₂|) + k₂ |M_z|, where friction at ± w/2 adds s k₀ w/2 (F_x, F_y) to (M_y, −M_x)
THREAD  k₀ |F_z| if b moves as F_z acts on it, else k₁ |F_z|, and k₂ |F_z|
MESH    k₀ |τ| if the torque τ of the gears on the first coordinate acts against its motion, else k₁ |τ|
======= ====================================================================================================

SOLVE is a solver of soft rows: it changes the acceleration (u, λ) in place.  EVENTS finds where slip ends (ċ = 0) and
where the effort of a joint that sticks exceeds its limit, beside the events at limits (:mod:`cardan.dynamics._stops`).
Reads and writes Friction; writes FrictionWork.
"""

from math import sqrt

from cardan.dynamics import joint_friction_tables, tables
from cardan.dynamics._equations import mass_values, solve
from cardan.dynamics._stops import EVENT_GAP, NEUTRAL, keep_gaps, seek_event, strongest_of, update_values, worst_stop
from cardan.dynamics.joint_friction_tables import Friction, FrictionWork, Losses
from cardan.dynamics.tables import WIDTH, Bound, Control, MotionJob, Work
from cardan.kernel.jit import evaluator, inner, plain
from cardan.kernel.memory import tail
from cardan.system._tables import rotate_back
from cardan.system.tables import POSE

GUIDE, THREAD, MESH = joint_friction_tables.GUIDE, joint_friction_tables.THREAD, joint_friction_tables.MESH
ACCELERATION = plain(tables.ACCELERATION)
PASSES = 60  # of Newton's method
EXACT = 2e-15  # of the efforts: less is rounding
SOLVED = 1e-11  # likewise: friction that is not solved so well has failed
LOSSES = Losses.size
MOVES = 2e-9  # per second: a joint that other rows hold moves; above RESTING of runs
HUGE = 1e300
GAUSS = 3.0**-0.5
NAN = float("nan")


def plan_work(most, bodies, equations, samples):
    """Offsets of FrictionWork."""
    size = WIDTH * bodies + equations
    return FrictionWork.plan(
        solution=size,
        responses=most * size,
        wrenches=6 * most * (most + 1),
        matrix=most * most,
        right=most,
        found=most,
        slipping=most,
        losses=Losses.size + samples,
    )


@inner
def back(p, v):
    """v ← A(p)ᵀ v, in place."""
    rotate_back(p, v)


@inner
def read_wrench(job, f, q, x, work, out):
    """out ← W of the multipliers in x: F, then M, on body b at frame b, in its axes; of MESH the torque τ first."""
    n6 = WIDTH * job.bodies
    scales = work.scales
    strip = f.strip
    for i in range(6):
        out[i] = 0.0
    if f.law == MESH:
        k = int(strip[0])
        out[0] = f.ratio * scales[k] * x[n6 + k]
        return
    for s in range(int(f.strips)):
        first = int(strip[4 * s])
        for i in range(int(strip[4 * s + 1])):
            row = tail(work.jacobian, int(strip[4 * s + 2]) + i * int(strip[4 * s + 3]))
            e = x[n6 + first + i]
            for j in range(6):
                out[j] -= e * row[j]
    body = int(f.body)
    roots = tail(mass_values(job).roots, WIDTH * body)
    for j in range(6):
        out[j] *= f.sign * roots[j]
    force = out
    torque = tail(out, 3)
    pose = tail(q, POSE * body)
    p = tail(pose, 3)
    if f.frame >= 0.0:
        back(p, force)
        x0 = f.origin[0]
        y0 = f.origin[1]
        z0 = f.origin[2]
    else:
        t0 = 2.0 * (p[2] * torque[2] - p[3] * torque[1])
        t1 = 2.0 * (p[3] * torque[0] - p[1] * torque[2])
        t2 = 2.0 * (p[1] * torque[1] - p[2] * torque[0])
        torque[0] += p[0] * t0 + p[2] * t2 - p[3] * t1
        torque[1] += p[0] * t1 + p[3] * t0 - p[1] * t2
        torque[2] += p[0] * t2 + p[1] * t1 - p[2] * t0
        x0 = f.origin[0] - pose[0]
        y0 = f.origin[1] - pose[1]
        z0 = f.origin[2] - pose[2]
    torque[0] -= y0 * force[2] - z0 * force[1]
    torque[1] -= z0 * force[0] - x0 * force[2]
    torque[2] -= x0 * force[1] - y0 * force[0]
    to_axes(f.axes, force)
    to_axes(f.axes, torque)


@inner
def to_axes(axes, v):
    """v ← its components along the axes."""
    a = v[0]
    b = v[1]
    c = v[2]
    for i in range(3):
        v[i] = axes[3 * i] * a + axes[3 * i + 1] * b + axes[3 * i + 2] * c


@inner
def norm_and_slope(a, b, da, db):
    """|(a, b)| and its derivative."""
    size = sqrt(a * a + b * b)
    return size, (a * da + b * db) / size if size > 0.0 else sqrt(da * da + db * db)


@inner
def part_of(factor, value, change):
    """factor·|value| and its derivative."""
    return factor * abs(value), factor * (change if value >= 0.0 else -change)


@inner
def law_of(f, k, s, w, d):
    """T(W, s) and its derivative along d, a change of W; k: coefficients."""
    if f.law == MESH:
        return part_of(k[0] if w[0] * s < 0.0 else k[1], w[0], d[0])
    if f.law == THREAD:
        return part_of((k[0] if w[2] * s * f.ratio > 0.0 else k[1]) + k[2], w[2], d[2])
    length = f.length
    inverse = 1.0 / length if length > 0.0 else 0.0
    kappa = 0.5 * s * k[0] * f.width * inverse if f.law == GUIDE else 0.0
    u = 0.5 + kappa
    v = 0.5 - kappa
    mx = w[4] * inverse
    my = -w[3] * inverse
    dx = d[4] * inverse
    dy = -d[3] * inverse
    a, da = norm_and_slope(u * w[0] + mx, u * w[1] + my, u * d[0] + dx, u * d[1] + dy)
    b, db = norm_and_slope(v * w[0] - mx, v * w[1] - my, v * d[0] - dx, v * d[1] - dy)
    along = 5 if f.law == GUIDE else 2
    c, dc = part_of(k[2], w[along], d[along])
    return k[0] * (a + b) + c, k[0] * (da + db) + dc


@inner
def direction_of(mode):
    if mode == joint_friction_tables.IDLES:
        return 0.0
    return 1.0 if mode > 0.0 else -1.0


@inner
def solve_dense(m, matrix, right):
    """right ← the solution; whether there is one.  Gauss, with the largest pivot of a column."""
    for i in range(m):
        best = i
        for r in range(i + 1, m):
            if abs(matrix[m * r + i]) > abs(matrix[m * best + i]):
                best = r
        pivot = matrix[m * best + i]
        if not abs(pivot) > 0.0:
            return False
        for j in range(m):
            e = matrix[m * best + j]
            matrix[m * best + j] = matrix[m * i + j]
            matrix[m * i + j] = e
        e = right[best]
        right[best] = right[i]
        right[i] = e
        for r in range(i + 1, m):
            factor = matrix[m * r + i] / pivot
            for j in range(i, m):
                matrix[m * r + j] -= factor * matrix[m * i + j]
            right[r] -= factor * right[i]
    for i in range(m - 1, -1, -1):
        e = right[i]
        for j in range(i + 1, m):
            e -= matrix[m * i + j] * right[j]
        right[i] = e / matrix[m * i + i]
    return True


@inner
def find_slipping(job, parts):
    """Their number; SLIPPING ← the joints that slip."""
    m = 0
    for k in range(job.soft.rows):
        if Friction(job.soft_floats, k).mode != 0.0:
            parts.slipping[m] = k
            m += 1
    return m


@inner
def update_responses(job, control, m, work, parts):
    """RESPONSES of (u, λ) to the right-hand sides of the rows that slip; SOLUTION ← (u, λ) in X."""
    size = WIDTH * job.bodies + job.equations
    x = work.x
    for i in range(size):
        parts.solution[i] = x[i]
    for j in range(m):
        for i in range(size):
            x[i] = 0.0
        f = Friction(job.soft_floats, int(parts.slipping[j]))
        x[WIDTH * job.bodies + int(f.equation)] = 1.0
        solve(job, control, False, work)
        response = tail(parts.responses, size * j)
        for i in range(size):
            response[i] = x[i]


@inner
def update_wrenches(job, q, m, work, parts):
    """WRENCHES of the joints that slip."""
    size = WIDTH * job.bodies + job.equations
    for j in range(m):
        f = Friction(job.soft_floats, int(parts.slipping[j]))
        for i in range(m + 1):
            x = parts.solution if i == 0 else tail(parts.responses, size * (i - 1))
            read_wrench(job, f, q, x, work, tail(parts.wrenches, 6 * ((m + 1) * j + i)))


@inner
def newton(job, m, work, parts):
    """FOUND ← the right-hand sides with λ = s T; whether there are such."""
    n6 = WIDTH * job.bodies
    size = n6 + job.equations
    found = parts.found
    for j in range(m):
        found[j] = 0.0
    worst = 1.0
    for _ in range(PASSES):
        worst = 0.0
        for j in range(m):
            f = Friction(job.soft_floats, int(parts.slipping[j]))
            s = direction_of(f.mode)
            own = tail(parts.wrenches, 6 * (m + 1) * j)
            at = n6 + int(f.equation)
            scale = work.scales[int(f.equation)]
            value = scale * parts.solution[at]
            bound = abs(value)  # of the terms: their rounding is that of the sums
            load = 0.0
            now = work.shift
            for i in range(6):
                now[i] = own[i]
                load += abs(own[i])
            for k in range(m):
                part = scale * found[k] * parts.responses[size * k + at]
                value += part
                bound += abs(part)
                for i in range(6):
                    part = found[k] * own[6 * (k + 1) + i]
                    now[i] += part
                    load += abs(part)
            most = 0.0
            acts = 0.0 if s == 0.0 else 1.0
            for k in range(m):
                most, slope = law_of(f, f.kinetic, s, now, tail(own, 6 * (k + 1)))
                parts.matrix[m * j + k] = scale * parts.responses[size * k + at] - s * slope
            parts.right[j] = s * most - value
            bound += acts * (most + f.kinetic[0] * load)
            if bound > 0.0:
                worst = max(worst, abs(parts.right[j]) / bound)
        if worst <= EXACT:
            break
        if not solve_dense(m, parts.matrix, parts.right):
            worst = 1.0
            break
        for j in range(m):
            found[j] += parts.right[j]
    return worst <= SOLVED


@inner
def keep_efforts(job, q, v, x, work, parts):
    """Of every joint: λ, the rate and the limit; static where it sticks."""
    n6 = WIDTH * job.bodies
    roots = mass_values(job).roots
    wrench = parts.wrenches
    for k in range(job.soft.rows):
        f = Friction(job.soft_floats, k)
        equation = int(f.equation)
        scale = work.scales[equation]
        f.multiplier = scale * x[n6 + equation]
        row = tail(work.jacobian, int(f.entry))
        rate = 0.0
        for i in range(int(f.slots)):
            body = WIDTH * int(f.first if i == 0 else f.second)
            for j in range(WIDTH):
                rate += row[WIDTH * i + j] * roots[body + j] * v[body + j]
        f.rate = rate / scale
        read_wrench(job, f, q, x, work, wrench)
        sticks = f.mode == 0.0
        s = direction_of(f.multiplier if sticks else f.mode)
        most, _ = law_of(f, f.static if sticks else f.kinetic, s, wrench, wrench)
        f.limit = most


def _solve(op, ints, floats, q, v, x, unused, memory):
    """Let friction act on the acceleration in X."""
    job = MotionJob(ints)
    control = Control(floats)
    work = Work(job.pieces, memory)
    if op != ACCELERATION:
        return 0
    parts = FrictionWork(job.soft.pieces, job.soft_memory)
    m = find_slipping(job, parts)
    if m > 0:
        update_responses(job, control, m, work, parts)
        update_wrenches(job, q, m, work, parts)
        is_solved = newton(job, m, work, parts)
        size = WIDTH * job.bodies + job.equations
        for i in range(size):
            e = parts.solution[i]
            for j in range(m):
                e += parts.found[j] * parts.responses[size * j + i]
            work.x[i] = e if is_solved else NAN
        for j in range(m):
            Friction(job.soft_floats, int(parts.slipping[j])).failed = 0.0 if is_solved else 1.0
    keep_efforts(job, q, v, work.x, work, parts)
    return 0


@inner
def friction_gap(f, strongest):
    """Positive where slip has ended, relative, or in [1/s]; or where the effort of a joint that sticks is too large."""
    if f.mode == 0.0:
        size = max(abs(f.multiplier), f.limit)
        return (abs(f.multiplier) - f.limit) / size if size > NEUTRAL * strongest else -1.0
    if f.mode == joint_friction_tables.IDLES:
        return abs(f.rate) * f.weight - MOVES
    return -f.mode * f.rate * f.weight if abs(f.mode) == 1.0 else -1.0


@inner
def integral(losses, nodes, end):
    """∫ of the power from the end of the step before to a time, by the polynomial through some nodes."""
    start = losses.times[1]
    half = 0.5 * (end - start)
    found = 0.0
    for side in range(2):
        t = start + half * (1.0 + (GAUSS if side == 1 else -GAUSS))
        for i in range(nodes):
            e = losses.powers[i]
            for j in range(nodes):
                if j != i:
                    e *= (t - losses.times[j]) / (losses.times[i] - losses.times[j])
            found += half * e
    return found


@inner
def add_losses(job, control, parts):
    """LOSSES up to the end of a step, and to the outputs within it."""
    losses = Losses(parts.losses)
    outputs = tail(parts.losses, LOSSES)
    power = 0.0
    for k in range(job.soft.rows):
        f = Friction(job.soft_floats, k)
        power += abs(f.multiplier * f.rate) if f.mode != 0.0 else 0.0
    t = control.ask_time
    count = int(losses.count)
    if control.known == 0.0:
        if count > 1 and t < 0.5 * (losses.times[0] + losses.times[1]):  # the last step is taken back
            losses.energy -= losses.last
        count = 0
    for i in range(3, 0, -1):
        losses.times[i] = losses.times[i - 1]
        losses.powers[i] = losses.powers[i - 1]
    losses.times[0] = t
    losses.powers[0] = power
    nodes = min(count + 1, 4)
    losses.count = float(nodes)
    sample = int(control.sample)
    before = losses.energy
    losses.last = integral(losses, nodes, t) if nodes > 1 else 0.0
    losses.energy = before + losses.last
    is_inside = True
    while is_inside and sample < int(control.samples):
        at = job.times[sample]
        is_inside = at <= t
        outputs[sample] = before + integral(losses, nodes, at) if is_inside and nodes > 1 else losses.energy
        sample += 1


def _events(op, ints, floats, q, v, multipliers, unused, memory):
    """SEEK and KEEP as of the stops, with those of friction behind them."""
    job = MotionJob(ints)
    control = Control(floats)
    work = Work(job.pieces, memory)
    limits = job.stop_count - job.soft.rows
    strongest = strongest_of(job, multipliers)
    if op == tables.KEEP:
        if limits > 0:
            keep_gaps(job, control, q, v, multipliers, work)
        for k in range(job.soft.rows):
            Bound(job.bounds, limits + k).gap = friction_gap(Friction(job.soft_floats, k), strongest)
        add_losses(job, control, FrictionWork(job.soft.pieces, job.soft_memory))
        return 0
    largest = -HUGE
    first = 0
    start = -HUGE
    if limits > 0:
        update_values(job, q, work)
        largest, first, start = worst_stop(job, multipliers, work)
    for k in range(job.soft.rows):
        gap = friction_gap(Friction(job.soft_floats, k), strongest)
        if gap > largest:
            largest = gap
            first = limits + k
            start = Bound(job.bounds, first).gap
    if limits == 0 and largest <= EVENT_GAP and control.high == 0.0:
        control.event = 0.0
        return 0
    return 1 if seek_event(job, control, q, v, multipliers, (largest, first, start), work) else 0


SOLVE = evaluator(_solve)
EVENTS = evaluator(_events)
