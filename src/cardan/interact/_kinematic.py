"""One servo cycle without masses: the joints are hard, the hands compliant.

In the metric of a size of each body, with soft rows r of the hands, stiffnesses k and joints f:

    minimise  ½ |δ|² μ + ½ Σ k (r + J_s δ)²   subject to  J δ = −f,    q ← q ⊕ τ δ,   then close f with the same factor.

τ bounds the rotations and displacements of a sub-step (TRUST), and is reduced until the joints close and Σ k r² does
not increase.  So a target that cannot be reached is approached until the gradient vanishes.  A push is not moved past
the plane of its target.  Limits are rows that hold while they are reached and pushed against.

With rate rows, the rows of a short sub-step are those in its middle; a long one is made in stages (begin_stages).

Where such a step does not reduce the cost much, steps are of second order (:mod:`cardan.interact._curvature`).  A step
that reduces the least singular value of the joints much is shortened, but not below LEAST_STEP; a singular pose that
was passed is noted (:mod:`cardan.interact._singular`).

Reads the tables of a session (:mod:`cardan.interact.tables`); writes q, poses, hands, events, control.
"""

from cardan.dynamics._dual import dot_6
from cardan.dynamics._equations import (
    RESIDUAL,
    SOLVE,
    call_algebra,
    factorise,
    farthest_of,
    is_opposed,
    mass_values,
    project_pose,
    retract,
    row_rounding,
    scale_equations,
)
from cardan.dynamics._soft import condense, evaluate_soft, factorise_soft, soften
from cardan.dynamics.tables import WIDTH, Driver, SoftWork, Stop, Work
from cardan.interact._curvature import NUDGE, bend_step, find_descent, largest_component
from cardan.interact._hands import compare_costs, keep_start, rotated, write_forces
from cardan.interact._limits import note_event, reach_stops, release_stop
from cardan.interact._singular import (
    FRESH,
    LEAST_STEP,
    clear_way,
    is_singular,
    leave_zone,
    longest_step,
    refine,
    refresh_sigma,
    signed_sigma,
    times_jacobian,
)
from cardan.interact.tables import (
    BAD_TARGET,
    BIFURCATION,
    FAILED,
    FARTHEST,
    FREE,
    IDLE,
    MOST_HANDS,
    MOVING,
    POSE,
    REACHED,
    SATURATED,
    STUCK,
    Control,
    Cycle,
    Entry,
    Goal,
    Hand,
    Session,
)
from cardan.kernel.fields import after, local
from cardan.kernel.jit import evaluator, inner, plain
from cardan.kernel.memory import tail
from cardan.solvers import tables as solvers_tables
from cardan.solvers._job import evaluate
from cardan.system import tables as layout

EVALUATE_JACOBIAN = plain(solvers_tables.JACOBIAN)

DAMPING = 1e-6  # compliance of a hand, relative to that of the mechanism
HELD = 1e-10  # the same, relative to that of the body alone
MOST_TRUST = 0.5  # [rad], and of the extent: of a sub-step
NO_STEP = 1e-11  # [rad], and of the extent: a smaller step that does not reduce the cost is rounding
STILL = 1e-13  # [rad], and of the extent: a smaller step is none
NEAR = 1e-9  # of the extent, and [rad]: a target this near is reached
CLOSED = 1e-13  # residual of a closed pose, relative to the extent, or in radians
MOST_TILT = 5e-9  # [rad] by which rounding of lengths may open an angle
CLOSURES = 12  # corrections with one factor
SLOW = 0.5  # a correction that is not reduced by this factor does not converge
BENT = 0.5  # of a sub-step: a larger correction leaves the branch
ATTEMPTS = 10
SHORTER = 0.4  # factor on a sub-step that was refused
LEFT = 0.3  # of σ: a step that leaves less is shortened
ROUNDS = 2  # inverse iterations for new singular vectors
MIDDLES = 3  # evaluations in the middle of a sub-step with rate rows; each reduces the slip by a power of the step
WHOLE = 0.99  # of a step: what is left of it is left to the next cycle
RATED_TRUST = 2e-3  # [rad], and of the extent: of a sub-step with the rate rows of its middle; it slips as its cube
LONG_TRUST = 2e-2  # the same of a sub-step by STAGES, which slips as its fifth power
STAGES = 3  # evaluations within a sub-step by the method of Runge and Kutta
MOST_CHANGES = 20  # of limits in one cycle
BASE, READY, MIDDLE, STAGE, DONE = range(5)  # phases: the factor is not, or is, that of q, or of a pose of a step
LINEARIZE, AGAIN, END = range(3)  # what follows: linearise at new_q, repeat the loop, end the cycle
AIMED = 0.9  # of the part of a step that a push may make: aims before the plane
WILD = 3.0  # [rad], and of the extent: a longer step of first order is in no useful direction
UNLIKE = 0.3  # of the reduction that a step of first order predicts: if it is missed by more, second order follows
ALIKE = 0.1  # of a step of first order: if that of second order differs by less, first order follows
PRODUCTS = 4  # products with the curvature that count as one sub-step
SUFFICIENT = 0.4  # of the reduction that the slope predicts; else a step overshoots, and would go to and fro


@inner
def take_targets(session, control):
    """TARGET ← ASKED of every hand whose operator has written it; a target that is not finite is refused."""
    hands = session.hands
    count = 0
    for h in range(MOST_HANDS):
        hand = Hand(hands, h)
        if hand.kind == FREE:
            continue
        count += 1
        version = hand.version
        if version == hand.seen or version % 2.0 != 0.0:
            continue
        finite = True
        for i in range(7):
            if not abs(hand.asked[i]) < FARTHEST:
                finite = False
        hand.seen = version
        hand.bad = 0.0 if finite else 1.0
        control.probed = 0.0
        if not finite:
            note_event(session, control, BAD_TARGET, float(h), 0.0)
            continue
        for i in range(7):
            hand.target[i] = hand.asked[i]
        control.trust = MOST_TRUST
        at = int(control.recorded)
        if at < session.record_size:
            entry = Entry(session.record, at)
            entry.cycle = control.cycles
            entry.hand = float(h)
            for i in range(7):
                entry.target[i] = hand.target[i]
        if session.record_size > 0:
            control.recorded += 1.0
    return count


@inner
def measure_residuals(job, control, q, work):
    """VALUES ← f; RESIDUAL ← the largest of an equation, relative to the extent, or in radians.

    Returns the largest in relation to its bar, twice.  The bar is CLOSED, or of a length the rounding of the
    coordinates of its bodies if that is more; the second time it is Control.least_closed in place
    of CLOSED, and an angle is allowed a tilt.
    """
    values = work.values
    evaluate(job, RESIDUAL, q, q, values, values, work.evaluation)
    weights = mass_values(job).weights
    roundings = mass_values(job).roundings
    active = job.active
    pattern = job.pose_pattern
    strip = pattern.strips
    rated = job.rated > 0
    worst = 0.0
    excess = 0.0
    least_excess = 0.0
    for _ in range(pattern.strip_count):
        far = farthest_of(strip, q)
        for i in range(strip.rows):
            k = strip.first + i
            if rated:
                k = job.pose_equations[k]
            e = abs(values[strip.row + i]) * weights[k] * active[k]
            if not e < 1e300:
                return 1e300, 1e300
            worst = max(worst, e)
            rounded = roundings[k] * far
            excess = max(excess, e / max(CLOSED * control.closed_bar, rounded))
            tilted = row_rounding(roundings[k], far, control, MOST_TILT)
            least_excess = max(least_excess, e / max(control.least_closed, tilted))
        strip = after(strip, strip.slots)
    control.residual = worst
    return excess, least_excess


@inner
def linearize_pose(job, control, q, work):
    """f and J at q, Ĵ and its factor."""
    evaluate(job, EVALUATE_JACOBIAN, q, q, work.values, work.jacobian, work.evaluation)
    scale_equations(job, control, work)
    factorise(job, control, work)
    control.refined = control.proximal


@inner
def update_compliances(job):
    """C of the soft rows: DAMPING of the largest k G, divided by the stiffness of each row.

    Of a hand that the joints hold, G is rounding: then C is HELD of k |Ĵ_s|².
    """
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    most = soft.most
    count = soft.rows
    matrix = parts.matrix
    stiffness = parts.stiffnesses
    compliance = parts.compliances
    entries = parts.entries
    largest = 0.0
    alone = 0.0
    for i in range(count):
        row = tail(entries, WIDTH * i)
        largest = max(largest, stiffness[i] * matrix[most * i + i])
        alone = max(alone, stiffness[i] * dot_6(row, row))
    for i in range(count):
        compliance[i] = (DAMPING * largest + HELD * alone) / stiffness[i]


@inner
def cost_slope(job, u):
    """Derivative of Σ k r² along u, a free motion: 2 Σ k r W·u, where Ĵ_s u would have the rounding of all of r."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    n6 = WIDTH * job.bodies
    residual = parts.residuals
    stiffness = parts.stiffnesses
    directions = parts.directions
    e = 0.0
    for i in range(job.soft.rows):
        direction = tail(directions, n6 * i)
        along = 0.0
        for k in range(n6):
            along += direction[k] * u[k]
        e += 2.0 * stiffness[i] * residual[i] * along
    return e


@inner
def is_pending(job, session):
    """Whether a driver's value is to be changed."""
    for k in range(job.driven):
        if Goal(session.goals, k).value != job.floats[Driver(job.drivers, k).place]:
            return True
    return False


@inner
def propose(session, job, control, half, work):
    """STEP ← δ at the pose whose factor is at hand; returns its largest component in radians, or of the extent.

    half: that pose is the one after this part of the STEP of before, and δ is that from the pose before it.  So the
    rows are those of the middle of the step, and rate rows hold along it to third order.
    """
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    n6 = WIDTH * job.bodies
    n = job.equations
    roots = mass_values(job).roots
    inverse_roots = mass_values(job).inverse_roots
    x = work.x
    scales = work.scales
    step = session.step
    soft = job.soft
    rows = soft.rows
    refine(control, 1.0)
    if rows > 0:
        condense(job, control, work)
        update_compliances(job)
        factorise_soft(job)
    begun = work.shift
    rates = work.multipliers
    for i in range(n6):
        begun[i] = half * step[i] * roots[i]
    if half != 0.0:
        times_jacobian(job, begun, rates, work)
    else:
        for i in range(n):
            rates[i] = 0.0
    for i in range(n6 + n):
        x[i] = 0.0
    if control.pending != 0.0:
        values = work.values
        stops = job.stops
        for k in range(job.stop_count):
            stop = Stop(stops, k)
            equation = stop.equation
            x[n6 + equation] = rates[equation] - scales[equation] * values[stop.row]
        floats = job.floats
        for k in range(job.driven):
            driver = Driver(job.drivers, k)
            x[n6 + driver.equation] = scales[driver.equation] * (Goal(session.goals, k).value - floats[driver.place])
        call_algebra(job, SOLVE, control, work)
    if rows > 0:
        right = parts.compliances
        residual = parts.residuals
        entries = parts.entries
        for i in range(rows):
            moved = tail(begun, WIDTH * soft.bodies[i])
            right[i] = dot_6(tail(entries, WIDTH * i), moved) - residual[i]
        soften(job, right, x)
    control.slope = cost_slope(job, x)
    for i in range(n6):
        step[i] = x[i] * inverse_roots[i]
    return largest_component(job, control, x)


@inner
def begin_stages(session, job, part, work):
    """ALONG ← d, a part of STEP; the sum of its stages, the last stage, and the rates J d of all rows.

    A long step with rate rows follows the motion q̇ = u(q), where u is the projection of d to J u = J₀ d, by the
    classical method of Runge and Kutta.  Rotations: θ̇ = ω + ½ θ × ω + ¹⁄₁₂ θ × (θ × ω) + …  [MuntheKaas1999]
    """
    n6 = WIDTH * job.bodies
    roots = mass_values(job).roots
    step = session.step
    begun = work.shift
    scales = work.scales
    for i in range(n6):
        e = part * step[i]
        session.along[i] = e
        session.total[i] = e
        session.last_stage[i] = e
        begun[i] = e * roots[i]
    rates = session.stage_rates
    times_jacobian(job, begun, rates, work)
    for k in range(job.equations):
        rates[k] = rates[k] / scales[k] if scales[k] != 0.0 else 0.0


@inner
def stage_part(number):
    """Of the stage before: the displacement to the pose of a stage."""
    return 1.0 if number == STAGES else 0.5


@inner
def add_stage(session, job, control, number, part, work):
    """One stage, 1 … STAGES, at the pose whose factor is at hand; after the last one, part of STEP is the sum."""
    n6 = WIDTH * job.bodies
    roots = mass_values(job).roots
    inverse_roots = mass_values(job).inverse_roots
    x = work.x
    scales = work.scales
    total = session.total
    last = session.last_stage
    rates = session.stage_rates
    for i in range(n6):
        x[i] = session.along[i] * roots[i]
    for k in range(job.equations):
        x[n6 + k] = scales[k] * rates[k]
    refine(control, 1.0)
    call_algebra(job, SOLVE, control, work)
    weight = 1.0 if number == STAGES else 2.0
    c = stage_part(number)
    for b in range(job.bodies):
        u = tail(last, WIDTH * b)
        added = tail(total, WIDTH * b)
        for i in range(3):
            u[i] = x[WIDTH * b + i] * inverse_roots[WIDTH * b + i]
            added[i] += weight * u[i]
        t0 = c * u[3]
        t1 = c * u[4]
        t2 = c * u[5]
        w0 = x[WIDTH * b + 3] * inverse_roots[WIDTH * b + 3]
        w1 = x[WIDTH * b + 4] * inverse_roots[WIDTH * b + 4]
        w2 = x[WIDTH * b + 5] * inverse_roots[WIDTH * b + 5]
        c0 = t1 * w2 - t2 * w1
        c1 = t2 * w0 - t0 * w2
        c2 = t0 * w1 - t1 * w0
        u[3] = w0 + 0.5 * c0 + (t1 * c2 - t2 * c1) / 12.0
        u[4] = w1 + 0.5 * c1 + (t2 * c0 - t0 * c2) / 12.0
        u[5] = w2 + 0.5 * c2 + (t0 * c1 - t1 * c0) / 12.0
        for i in range(3, WIDTH):
            added[i] += weight * u[i]
    if number == STAGES:
        step = session.step
        for i in range(n6):
            step[i] = total[i] / (6.0 * part)


@inner
def close_pose(job, control, work):
    """NEW_Q ← the pose closed with the factor at hand; returns the largest correction, negative if it fails.

    RESIDUAL ← its largest residual; where it fails the last pose is kept, and with it RESIDUAL.
    """
    new_q = work.new_q
    moved = work.moved_q
    step = work.shift
    known = control.residual
    refine(control, 0.0)
    total = 0.0
    last = 1e300
    for _ in range(CLOSURES):
        excess, least_excess = measure_residuals(job, control, new_q, work)
        if excess <= 1.0:
            return total
        for i in range(WIDTH * job.bodies):
            step[i] = 0.0
        shift = project_pose(job, control, step, work)
        if not shift <= SLOW * last:
            if least_excess <= 1.0:  # rounding keeps it from falling further
                return total
            break
        total += shift
        last = shift
        retract(job, new_q, step, moved, work)
        for i in range(job.coordinates):
            new_q[i] = moved[i]
    control.residual = known
    return -1.0


@inner
def set_drivers(session, job, part):
    """Move the value of every driver by a part of its way to its goal; part 0 restores it."""
    for k in range(job.driven):
        goal = Goal(session.goals, k)
        value = goal.value if part == 1.0 else goal.start + part * (goal.value - goal.start)
        job.floats[Driver(job.drivers, k).place] = value


@inner
def keep_drivers(session, job):
    """The values of drivers now are those of the accepted pose."""
    for k in range(job.driven):
        Goal(session.goals, k).start = job.floats[Driver(job.drivers, k).place]


@inner
def try_steps(session, job, control, q, size, work):
    """NEW_Q ← q moved along STEP as far as the joints close, the cost decreases, and no push passes its plane.

    Returns the part of the step that was made: 0 if the cost cannot be reduced, −1 if the joints do not close.
    """
    n6 = WIDTH * job.bodies
    step = session.step
    new_q = work.new_q
    moved = work.old_q
    hands = session.hands
    part = min(1.0, control.trust / size)
    pending = control.pending != 0.0
    failed = 0.0
    attempts = 1 if job.rated > 0 else ATTEMPTS
    for _ in range(attempts):
        for i in range(n6):
            moved[i] = part * step[i]
        if pending:
            set_drivers(session, job, part)
        retract(job, q, moved, new_q, work)
        correction = close_pose(job, control, work)
        is_bad = correction < 0.0 or (correction > BENT * part * size and part * size > LEAST_STEP)
        if is_bad or is_opposed(job, work):
            failed = -1.0
            part *= SHORTER
            continue
        write_forces(hands, new_q)
        change, noise, rest = compare_costs(hands, new_q, control.length)
        slope = control.slope * part
        enough = 0.0 if attempts == 1 else SUFFICIENT * slope
        if rest == 1.0 and (pending or change <= min(-noise, enough)):
            predicted = slope * (1.0 - 0.5 * part)
            if abs(change - predicted) > noise - UNLIKE * predicted:
                control.curved = 1.0
            return part
        failed = 0.0
        if part * size < NO_STEP:
            break
        if rest < 1.0:
            part *= 2.0 * rest - 1.0 if rest > AIMED else AIMED * rest
            continue
        # least value of the parabola with this slope and these two values
        part *= min(0.5, max(0.02, -0.5 * slope / (change - slope) if change - slope > 0.0 else 0.0))
    return failed


@inner
def is_finite(count, q):
    """Whether all coordinates are numbers."""
    for i in range(count):
        if not abs(q[i]) < 1e300:
            return False
    return True


@inner
def is_probed(control, hands, without):
    """Whether the curvature of the cost need not be looked at any more at this pose; it is looked at once."""
    known = without or control.probed != 0.0 or is_near(hands, control.length)
    control.probed = 1.0
    return known


@inner
def is_refused(hands):
    """Whether the last target of a hand was refused."""
    for h in range(MOST_HANDS):
        hand = Hand(hands, h)
        if hand.kind != FREE and hand.bad != 0.0:
            return True
    return False


@inner
def move_by(job, q, part, step, out, work):
    """out ← q moved along a part of a step."""
    moved = work.old_q
    for i in range(WIDTH * job.bodies):
        moved[i] = part * step[i]
    retract(job, q, moved, out, work)


@inner
def is_near(hands, length):
    """Whether every hand is at its target."""
    for h in range(MOST_HANDS):
        hand = Hand(hands, h)
        if hand.kind == FREE:
            continue
        for i in range(3):
            if abs(hand.force[i]) > NEAR * length * hand.stiffness:
                return False
            if hand.kind == POSE and abs(hand.torque[i]) > NEAR * hand.twist:
                return False
    return True


@inner
def write_poses(session, job, q):
    """Session.poses ← r, p of the body origins."""
    frames = session.frames
    origin = session.origin
    poses = session.poses
    for b in range(job.bodies):
        pose = tail(q, layout.POSE * b)
        f = tail(frames, layout.POSE * b)
        out = tail(poses, layout.POSE * b)
        e0 = pose[3]
        e1 = pose[4]
        e2 = pose[5]
        e3 = pose[6]
        out[3] = e0 * f[3] + e1 * f[4] + e2 * f[5] + e3 * f[6]
        out[4] = -e0 * f[4] + e1 * f[3] - e2 * f[6] + e3 * f[5]
        out[5] = -e0 * f[5] + e1 * f[6] + e2 * f[3] - e3 * f[4]
        out[6] = -e0 * f[6] - e1 * f[5] + e2 * f[4] + e3 * f[3]
        x, y, z = rotated(tail(out, 3), f[0], f[1], f[2])
        out[0] = pose[0] - x + origin[0]
        out[1] = pose[1] - y + origin[1]
        out[2] = pose[2] - z + origin[2]


@inner
def copy_pose(job, q, out):
    for i in range(job.coordinates):
        out[i] = q[i]


@inner
def limit_trust(job, control):
    """Sub-steps are shorter with rate rows, and towards a singular pose."""
    control.trust = min(control.trust, LONG_TRUST if job.rated > 0 else MOST_TRUST)
    if control.sigma > 0.0 and control.looped != 0.0:
        control.trust = min(control.trust, longest_step(control))


@inner
def is_bent(job, control, cycle):
    """Whether a step is to be of second order."""
    asked = control.curved != 0.0 or cycle.step_size > WILD
    without = job.rated > 0 or cycle.nudged != 0 or cycle.flat != 0
    return asked and job.soft.rows > 0 and cycle.step_size >= STILL and control.pending == 0.0 and not without


@inner
def propose_step(session, cycle, control, q, work):
    """Session.step ← a step from q, of first or second order, and its size; or a limit is released."""
    job = session.job
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    evaluate_soft(job, EVALUATE_JACOBIAN, work.new_q, work.new_q, parts.memory)
    if cycle.nudged != 0:
        cycle.step_size = NUDGE
        control.slope = 0.0
    else:
        cycle.step_size = propose(session, job, control, 0.5 * cycle.part if cycle.phase == MIDDLE else 0.0, work)
    if not cycle.step_size < 1e100:
        cycle.status = FAILED
        return END
    has_forces = cycle.stopped == 0 and cycle.nudged == 0  # SoftWork.forces are those of this step
    if job.stop_count > 0 and has_forces and release_stop(session, job, control):
        cycle.changes += 1
        cycle.phase = BASE
        return AGAIN
    cycle.bent = is_bent(job, control, cycle)
    cycle.is_cut = 0
    if cycle.bent != 0:
        plain_size = cycle.step_size
        cycle.step_size, cycle.is_cut, products = bend_step(session, job, control, q, work)
        if products == 0:  # no pose near enough for a difference; the step of first order was overwritten
            control.curved = 0.0
            cycle.flat = 1
            cycle.phase = READY
            return AGAIN
        cycle.left -= products // PRODUCTS
        if cycle.is_cut == 0 and abs(cycle.step_size - plain_size) < ALIKE * plain_size:
            control.curved = 0.0
    if cycle.is_cut != 0 and cycle.step_size < NO_STEP:  # trust was reduced so far, at the end of a contact
        control.trust = LONG_TRUST if job.rated > 0 else MOST_TRUST
        cycle.status = STUCK
        return END
    return LINEARIZE


@inner
def move_within(session, cycle, control, q, work):
    """work.new_q ← the next pose within a sub-step with rate rows, where they are evaluated."""
    job = session.job
    if cycle.phase != STAGE:
        cycle.part = min(1.0, control.trust / max(cycle.step_size, STILL))
        if cycle.phase == READY and cycle.part * cycle.step_size > RATED_TRUST:
            begin_stages(session, job, cycle.part, work)
            cycle.phase = STAGE
    cycle.middles += 1
    if cycle.phase == STAGE:
        move_by(job, q, stage_part(cycle.middles), session.last_stage, work.new_q, work)
    else:
        move_by(job, q, 0.5 * cycle.part, session.step, work.new_q, work)
        cycle.phase = MIDDLE
    if is_finite(job.coordinates, work.new_q):
        return LINEARIZE
    cycle.tries += 1  # a contact ends before
    cycle.part = 0.0
    cycle.phase = BASE
    control.trust = SHORTER * min(cycle.step_size, control.trust)
    if cycle.tries < ATTEMPTS:
        return AGAIN
    control.trust = LONG_TRUST
    control.linearized = 0.0
    cycle.status = STUCK
    return END


@inner
def retry(session, cycle, control, q):
    """After a sub-step that failed: a shorter one, one of second order, or none; LINEARIZE if q is stationary."""
    job = session.job
    rated = job.rated > 0
    if control.pending != 0.0:
        set_drivers(session, job, 0.0)
    cycle.tries += 1
    if rated and cycle.tries < ATTEMPTS:
        control.trust = SHORTER * min(cycle.step_size, control.trust)
        cycle.phase = BASE
        cycle.part = 0.0
        return AGAIN
    write_forces(session.hands, q)
    control.trust = LONG_TRUST if rated else control.trust  # for the next target
    control.linearized = 0.0 if rated else 1.0
    if cycle.part != 0.0:
        cycle.status = STUCK
        return END
    if cycle.bent == 0 and not rated and cycle.nudged == 0 and cycle.flat == 0:
        control.curved = 1.0
        if is_bent(job, control, cycle):
            cycle.phase = READY
            return AGAIN
    return LINEARIZE


@inner
def hold_stops(session, cycle, control, work):
    """Let limits hold that a sub-step has passed; then it is made again."""
    job = session.job
    if job.stop_count == 0 or not reach_stops(session, job, control, work):
        return LINEARIZE
    if control.pending != 0.0:
        set_drivers(session, job, 0.0)
    cycle.changes += 1
    cycle.stopped = 1
    cycle.phase = BASE
    if cycle.changes < MOST_CHANGES:
        return AGAIN
    control.linearized = 0.0
    cycle.status = STUCK
    return END


@inner
def make_step(session, cycle, control, q, work):
    """work.new_q ← a pose of a sub-step from q, or its end, with the factor at hand; returns what follows."""
    job = session.job
    rated = job.rated > 0
    if cycle.phase == READY:
        cycle.middles = 0
        write_forces(session.hands, q)
        keep_start(session.hands, q)
        control.pending = 1.0 if cycle.changes > 0 or is_pending(job, session) else 0.0
        copy_pose(job, q, work.new_q)
    stationary = False
    if cycle.phase == STAGE:
        add_stage(session, job, control, cycle.middles, cycle.part, work)
    else:
        action = propose_step(session, cycle, control, q, work)
        if action != LINEARIZE:
            return action
        stationary = cycle.step_size < STILL and control.pending == 0.0
    if stationary:
        cycle.part = 0.0
    elif rated and cycle.middles < (STAGES if cycle.phase == STAGE else MIDDLES):
        return move_within(session, cycle, control, q, work)
    else:
        cycle.part = try_steps(session, job, control, q, max(cycle.step_size, STILL), work)
        cycle.phase = DONE
        if cycle.part <= 0.0:
            action = retry(session, cycle, control, q)
            if action != LINEARIZE:
                return action
            stationary = True
    if stationary:
        if is_probed(control, session.hands, rated or cycle.nudged != 0 or control.pending != 0.0):
            cycle.status = SATURATED
            return END
        cycle.nudged = find_descent(session, job, control, q, work)
        cycle.phase = READY
        return AGAIN
    return hold_stops(session, cycle, control, work)


@inner
def passes_unseen(session, cycle, control, q, work):
    """Whether a sub-step is to be shorter, since it may pass a singular pose; one that is passed is noted."""
    job = session.job
    sigma = signed_sigma(session, job, work)
    is_long = cycle.part * cycle.step_size > LEAST_STEP and control.trust > LEAST_STEP
    if is_long and sigma < LEFT * control.sigma:
        return True
    in_zone = is_singular(control, sigma) or sigma < 0.0 or control.in_zone != 0.0
    if in_zone and leave_zone(session, job, control, q, work.new_q, sigma):
        note_event(session, control, BIFURCATION, 0.0, sigma)
    control.walked += cycle.part * cycle.step_size
    if control.in_zone == 0.0 and (in_zone or control.walked > FRESH * control.sigma):
        known = control.sigma
        refresh_sigma(session, job, control, ROUNDS, work)
        if is_long and not in_zone and control.looped != 0.0 and control.sigma < LEFT * known:
            control.sigma = 0.0  # that of the last pose, anew from these vectors
            return True
    return False


@inner
def take_pose(session, cycle, control, q, work):
    """After a linearisation at work.new_q: q ← the end of a sub-step, if it is one; returns what follows."""
    job = session.job
    if cycle.phase == MIDDLE or cycle.phase == STAGE:
        control.linearized = 0.0
        return AGAIN
    control.linearized = 1.0
    if cycle.phase == BASE:
        cycle.phase = READY
        if control.sigma == 0.0 and job.equations > 0:
            refresh_sigma(session, job, control, 30, work)
            clear_way(session, job, control)
        return AGAIN
    length = cycle.part * cycle.step_size
    if job.equations > 0 and control.sigma > 0.0 and passes_unseen(session, cycle, control, q, work):
        control.trust = max(LEAST_STEP, SHORTER * length)
        if control.pending != 0.0:
            set_drivers(session, job, 0.0)
        cycle.phase = BASE
        return AGAIN
    if cycle.part < WHOLE and cycle.bent != 0:
        control.trust = length
        cycle.is_cut = 1
    if length > LEAST_STEP:
        control.probed = 0.0
    cycle.moved = 1
    cycle.nudged = 0
    cycle.changes = 0
    cycle.tries = 0
    cycle.stopped = 0
    cycle.flat = 0
    cycle.phase = READY
    keep_drivers(session, job)
    copy_pose(job, work.new_q, q)
    control.substeps += 1.0
    cycle.left -= 1
    control.trust = 2.0 * control.trust
    return END if (cycle.part >= WHOLE and cycle.is_cut == 0) or cycle.left <= 0 else AGAIN


def _cycle(op, ints, floats, q, first, second, third, memory):
    """One servo cycle; returns IDLE, REACHED, MOVING, SATURATED, STUCK or FAILED."""
    session = Session(ints)
    control = Control(floats)
    job = session.job
    work = Work(job.pieces, memory)
    control.cycles += 1.0
    held = take_targets(session, control)
    if held == 0 and not is_pending(job, session):
        return IDLE
    cycle = local(Cycle)
    cycle.status = MOVING
    cycle.left = int(control.most_substeps)
    cycle.phase = BASE if control.linearized == 0.0 else READY
    action = AGAIN
    while action != END:
        limit_trust(job, control)
        action = LINEARIZE
        if cycle.phase == BASE:
            cycle.middles = 0
            copy_pose(job, q, work.new_q)
        else:
            action = make_step(session, cycle, control, q, work)
        if action == LINEARIZE:
            linearize_pose(job, control, work.new_q, work)
            action = take_pose(session, cycle, control, q, work)
    if cycle.moved != 0:
        write_poses(session, job, q)
    if cycle.status == STUCK:
        write_forces(session.hands, q)
    if cycle.status == FAILED:
        control.linearized = 0.0
    elif held > 0 and is_near(session.hands, control.length):
        return FAILED if is_refused(session.hands) else REACHED
    return cycle.status


CYCLE = evaluator(_cycle)
