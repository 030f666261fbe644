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

Reads the tables of a session (:mod:`cardan.interact.abi`); writes q, poses, hands, events, control.
"""

from cardan.dynamics import abi as dynamics_abi
from cardan.dynamics._dual import dot_6
from cardan.dynamics._equations import (
    EVALUATION,
    JACOBIAN,
    MOVED_Q,
    MULTIPLIERS,
    NEW_Q,
    OLD_Q,
    POSE_SCALES,
    RESIDUAL,
    ROUNDING,
    SCALES,
    SHIFT,
    SOLVE,
    VALUES,
    X,
    call_algebra,
    evaluate,
    factorise,
    piece,
    project_pose,
    retract,
    roots,
    scale_jacobian,
)
from cardan.dynamics._soft import (
    COMPLIANCES,
    ENTRIES,
    RESIDUALS,
    STIFFNESSES,
    condense,
    evaluate_soft,
    factorise_soft,
    soft_directions,
    soft_matrix,
    soft_part,
    soften,
)
from cardan.dynamics.abi import WIDTH
from cardan.interact import abi
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
from cardan.kernel.jit import evaluator, inner, plain
from cardan.kernel.memory import floats_at, integers_at, tail
from cardan.solvers import tables as solvers_abi
from cardan.system.tables import POSE

EVALUATE_JACOBIAN = plain(solvers_abi.JACOBIAN)

DAMPING = 1e-6  # compliance of a hand, relative to that of the mechanism
HELD = 1e-10  # the same, relative to that of the body alone
MOST_TRUST = 0.5  # [rad], and of the extent: of a sub-step
NO_STEP = 1e-11  # [rad], and of the extent: a smaller step that does not reduce the cost is rounding
STILL = 1e-13  # [rad], and of the extent: a smaller step is none
NEAR = 1e-9  # of the extent, and [rad]: a target this near is reached
CLOSED = 1e-13  # residual of a closed pose, relative to the extent, or in radians
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
AIMED = 0.9  # of the part of a step that a push may make: aims before the plane
WILD = 3.0  # [rad], and of the extent: a longer step of first order is in no useful direction
UNLIKE = 0.3  # of the reduction that a step of first order predicts: if it is missed by more, second order follows
ALIKE = 0.1  # of a step of first order: if that of second order differs by less, first order follows
PRODUCTS = 4  # products with the curvature that count as one sub-step
SUFFICIENT = 0.4  # of the reduction that the slope predicts; else a step overshoots, and would go to and fro


@inner
def take_targets(table, control):
    """TARGET ← ASKED of every hand whose operator has written it; a target that is not finite is refused."""
    hands = floats_at(table[abi.HANDS])
    count = 0
    for h in range(abi.MOST_HANDS):
        hand = tail(hands, abi.HAND * h)
        if hand[abi.KIND] == abi.FREE:
            continue
        count += 1
        version = hand[abi.VERSION]
        if version == hand[abi.SEEN] or version % 2.0 != 0.0:
            continue
        finite = True
        for i in range(7):
            if not abs(hand[abi.ASKED + i]) < abi.FARTHEST:
                finite = False
        hand[abi.SEEN] = version
        hand[abi.BAD] = 0.0 if finite else 1.0
        control[abi.PROBED] = 0.0
        if not finite:
            note_event(table, control, abi.BAD_TARGET, float(h), 0.0)
            continue
        for i in range(7):
            hand[abi.TARGET + i] = hand[abi.ASKED + i]
        control[abi.TRUST] = MOST_TRUST
        at = int(control[abi.RECORDED])
        if at < table[abi.RECORD_SIZE]:
            own = tail(floats_at(table[abi.RECORD]), abi.R_ENTRY * at)
            own[abi.R_CYCLE] = control[abi.CYCLES]
            own[abi.R_HAND] = float(h)
            for i in range(7):
                own[abi.R_TARGET + i] = hand[abi.TARGET + i]
        if table[abi.RECORD_SIZE] > 0:
            control[abi.RECORDED] += 1.0
    return count


@inner
def worst_residual(job, control, q, work):
    """VALUES ← f; returns the largest residual of an equation, relative to the extent, or in radians."""
    values = piece(job, VALUES, work)
    evaluate(job, RESIDUAL, q, q, values, values, piece(job, EVALUATION, work))
    weights = tail(roots(job), 3 * WIDTH * job[dynamics_abi.BODIES] + 3)
    active = floats_at(job[dynamics_abi.ACTIVE])
    pattern = integers_at(job[dynamics_abi.POSE_PATTERN])
    strip = tail(pattern, dynamics_abi.P_HEADER)
    rated = job[dynamics_abi.RATED] > 0
    worst = 0.0
    for _ in range(pattern[dynamics_abi.P_STRIPS]):
        for i in range(strip[dynamics_abi.S_ROWS]):
            k = strip[dynamics_abi.S_FIRST] + i
            if rated:
                k = integers_at(job[dynamics_abi.POSE_EQUATIONS])[k]
            e = abs(values[strip[dynamics_abi.S_ROW] + i]) * weights[k] * active[k]
            if not e < 1e300:
                return 1e300
            worst = max(worst, e)
        strip = tail(strip, dynamics_abi.S_BODIES + strip[dynamics_abi.S_SLOTS])
    return worst


@inner
def linearize_pose(job, control, q, work):
    """f and J at q, Ĵ and its factor."""
    jacobian = piece(job, JACOBIAN, work)
    values = piece(job, VALUES, work)
    evaluate(job, EVALUATE_JACOBIAN, q, q, values, jacobian, piece(job, EVALUATION, work))
    n6 = WIDTH * job[dynamics_abi.BODIES]
    pattern = integers_at(job[dynamics_abi.PATTERN])
    active = floats_at(job[dynamics_abi.ACTIVE])
    scales = piece(job, SCALES, work)
    scale_jacobian(pattern, tail(roots(job), 2 * n6), active, jacobian, scales)
    if job[dynamics_abi.RATED] > 0:
        numbers = integers_at(job[dynamics_abi.POSE_EQUATIONS])
        pose_scales = piece(job, POSE_SCALES, work)
        for k in range(job[dynamics_abi.EQUATIONS] - job[dynamics_abi.RATED]):
            pose_scales[k] = scales[numbers[k]]
    factorise(job, control, work)
    control[abi.REFINED] = control[dynamics_abi.PROXIMAL]


@inner
def update_compliances(job):
    """C of the soft rows: DAMPING of the largest k G, divided by the stiffness of each row.

    Of a hand that the joints hold, G is rounding: then C is HELD of k |Ĵ_s|².
    """
    table = integers_at(job[dynamics_abi.SOFT_INTS])
    most = table[dynamics_abi.SOFT_MOST]
    count = table[dynamics_abi.SOFT_ROWS]
    matrix = soft_matrix(job)
    stiffness = soft_part(job, STIFFNESSES, most)
    compliance = soft_part(job, COMPLIANCES, most)
    entries = soft_part(job, ENTRIES, WIDTH * most)
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
    soft = integers_at(job[dynamics_abi.SOFT_INTS])
    most = soft[dynamics_abi.SOFT_MOST]
    n6 = WIDTH * job[dynamics_abi.BODIES]
    residual = soft_part(job, RESIDUALS, most)
    stiffness = soft_part(job, STIFFNESSES, most)
    directions = soft_directions(job)
    e = 0.0
    for i in range(soft[dynamics_abi.SOFT_ROWS]):
        own = tail(directions, n6 * i)
        along = 0.0
        for k in range(n6):
            along += own[k] * u[k]
        e += 2.0 * stiffness[i] * residual[i] * along
    return e


@inner
def is_pending(job, table):
    """Whether a driver's value is to be changed."""
    places = integers_at(job[dynamics_abi.DRIVERS])
    floats = floats_at(job[dynamics_abi.FLOATS])
    goals = floats_at(table[abi.GOALS])
    for k in range(job[dynamics_abi.DRIVEN]):
        if goals[2 * k] != floats[places[2 * k]]:
            return True
    return False


@inner
def propose(table, job, control, half, work):
    """STEP ← δ at the pose whose factor is at hand; returns its largest component in radians, or of the extent.

    half: that pose is the one after this part of the STEP of before, and δ is that from the pose before it.  So the
    rows are those of the middle of the step, and rate rows hold along it to third order.
    """
    n6 = WIDTH * job[dynamics_abi.BODIES]
    n = job[dynamics_abi.EQUATIONS]
    mass = roots(job)
    x = piece(job, X, work)
    scales = piece(job, SCALES, work)
    step = floats_at(table[abi.STEP])
    soft = integers_at(job[dynamics_abi.SOFT_INTS])
    rows = soft[dynamics_abi.SOFT_ROWS]
    refine(control, 1.0)
    if rows > 0:
        condense(job, control, work)
        update_compliances(job)
        factorise_soft(job)
    begun = piece(job, SHIFT, work)
    rates = piece(job, MULTIPLIERS, work)
    for i in range(n6):
        begun[i] = half * step[i] * mass[n6 + i]
    if half != 0.0:
        times_jacobian(job, begun, rates, work)
    else:
        for i in range(n):
            rates[i] = 0.0
    for i in range(n6 + n):
        x[i] = 0.0
    if control[abi.PENDING] != 0.0:
        values = piece(job, VALUES, work)
        stops = integers_at(job[dynamics_abi.STOPS])
        for k in range(job[dynamics_abi.STOP_COUNT]):
            stop = tail(stops, dynamics_abi.STOP * k)
            equation = stop[dynamics_abi.STOP_EQUATION]
            x[n6 + equation] = rates[equation] - scales[equation] * values[stop[dynamics_abi.STOP_ROW]]
        places = integers_at(job[dynamics_abi.DRIVERS])
        floats = floats_at(job[dynamics_abi.FLOATS])
        goals = floats_at(table[abi.GOALS])
        for k in range(job[dynamics_abi.DRIVEN]):
            equation = places[2 * k + 1]
            x[n6 + equation] = scales[equation] * (goals[2 * k] - floats[places[2 * k]])
        call_algebra(job, SOLVE, control, work)
    if rows > 0:
        right = soft_part(job, COMPLIANCES, soft[dynamics_abi.SOFT_MOST])
        residual = soft_part(job, RESIDUALS, soft[dynamics_abi.SOFT_MOST])
        entries = soft_part(job, ENTRIES, WIDTH * soft[dynamics_abi.SOFT_MOST])
        for i in range(rows):
            own = tail(begun, WIDTH * soft[dynamics_abi.SOFT_BODIES + i])
            right[i] = dot_6(tail(entries, WIDTH * i), own) - residual[i]
        soften(job, right, x)
    control[abi.SLOPE] = cost_slope(job, x)
    for i in range(n6):
        step[i] = x[i] * mass[2 * n6 + i]
    return largest_component(job, control, x)


@inner
def begin_stages(table, job, part, work):
    """CURVES ← d, a part of STEP, the sum of its stages, the last stage, and the rates J d of all rows.

    A long step with rate rows follows the motion q̇ = u(q), where u is the projection of d to J u = J₀ d, by the
    classical method of Runge and Kutta.  Rotations: θ̇ = ω + ½ θ × ω + ¹⁄₁₂ θ × (θ × ω) + …  [MuntheKaas1999]
    """
    n6 = WIDTH * job[dynamics_abi.BODIES]
    mass = roots(job)
    step = floats_at(table[abi.STEP])
    kept = floats_at(table[abi.CURVES])
    begun = piece(job, SHIFT, work)
    scales = piece(job, SCALES, work)
    for i in range(n6):
        e = part * step[i]
        kept[i] = e
        kept[n6 + i] = e
        kept[2 * n6 + i] = e
        begun[i] = e * mass[n6 + i]
    rates = tail(kept, 3 * n6)
    times_jacobian(job, begun, rates, work)
    for k in range(job[dynamics_abi.EQUATIONS]):
        rates[k] = rates[k] / scales[k] if scales[k] != 0.0 else 0.0


@inner
def stage_part(number):
    """Of the stage before: the displacement to the pose of a stage."""
    return 1.0 if number == STAGES else 0.5


@inner
def add_stage(table, job, control, number, part, work):
    """One stage, 1 … STAGES, at the pose whose factor is at hand; after the last one, part of STEP is the sum."""
    n6 = WIDTH * job[dynamics_abi.BODIES]
    mass = roots(job)
    x = piece(job, X, work)
    scales = piece(job, SCALES, work)
    kept = floats_at(table[abi.CURVES])
    total = tail(kept, n6)
    last = tail(kept, 2 * n6)
    rates = tail(kept, 3 * n6)
    for i in range(n6):
        x[i] = kept[i] * mass[n6 + i]
    for k in range(job[dynamics_abi.EQUATIONS]):
        x[n6 + k] = scales[k] * rates[k]
    refine(control, 1.0)
    call_algebra(job, SOLVE, control, work)
    weight = 1.0 if number == STAGES else 2.0
    c = stage_part(number)
    for b in range(job[dynamics_abi.BODIES]):
        u = tail(last, WIDTH * b)
        added = tail(total, WIDTH * b)
        for i in range(3):
            u[i] = x[WIDTH * b + i] * mass[2 * n6 + WIDTH * b + i]
            added[i] += weight * u[i]
        t0 = c * u[3]
        t1 = c * u[4]
        t2 = c * u[5]
        w0 = x[WIDTH * b + 3] * mass[2 * n6 + WIDTH * b + 3]
        w1 = x[WIDTH * b + 4] * mass[2 * n6 + WIDTH * b + 4]
        w2 = x[WIDTH * b + 5] * mass[2 * n6 + WIDTH * b + 5]
        c0 = t1 * w2 - t2 * w1
        c1 = t2 * w0 - t0 * w2
        c2 = t0 * w1 - t1 * w0
        u[3] = w0 + 0.5 * c0 + (t1 * c2 - t2 * c1) / 12.0
        u[4] = w1 + 0.5 * c1 + (t2 * c0 - t0 * c2) / 12.0
        u[5] = w2 + 0.5 * c2 + (t0 * c1 - t1 * c0) / 12.0
        for i in range(3, WIDTH):
            added[i] += weight * u[i]
    if number == STAGES:
        step = floats_at(table[abi.STEP])
        for i in range(n6):
            step[i] = total[i] / (6.0 * part)


@inner
def close_pose(job, control, work):
    """NEW_Q ← the pose closed with the factor at hand; returns the largest correction, negative if it fails.

    RESIDUAL ← its largest residual; where it fails the last pose is kept, and with it RESIDUAL.
    """
    new_q = piece(job, NEW_Q, work)
    moved = piece(job, MOVED_Q, work)
    step = piece(job, SHIFT, work)
    far = 0.0
    for b in range(job[dynamics_abi.BODIES]):
        for i in range(3):
            far = max(far, abs(new_q[POSE * b + i]))
    bar = max(CLOSED * control[abi.CLOSED_BAR], ROUNDING * far / control[dynamics_abi.LENGTH])
    refine(control, 0.0)
    total = 0.0
    last = 1e300
    for _ in range(CLOSURES):
        worst = worst_residual(job, control, new_q, work)
        if worst <= bar:
            control[abi.RESIDUAL] = worst
            return total
        for i in range(WIDTH * job[dynamics_abi.BODIES]):
            step[i] = 0.0
        shift = project_pose(job, control, step, work)
        if not shift <= SLOW * last:
            if not worst <= 100.0 * bar:
                return -1.0
            control[abi.RESIDUAL] = worst  # rounding keeps it from falling further
            return total
        total += shift
        last = shift
        retract(job, new_q, step, moved, work)
        for i in range(job[dynamics_abi.COORDINATES]):
            new_q[i] = moved[i]
    return -1.0


@inner
def set_drivers(table, job, part):
    """Move the value of every driver by a part of its way to its goal; part 0 restores it."""
    places = integers_at(job[dynamics_abi.DRIVERS])
    floats = floats_at(job[dynamics_abi.FLOATS])
    goals = floats_at(table[abi.GOALS])
    for k in range(job[dynamics_abi.DRIVEN]):
        first = goals[2 * k + 1]
        floats[places[2 * k]] = goals[2 * k] if part == 1.0 else first + part * (goals[2 * k] - first)


@inner
def keep_drivers(table, job):
    """The values of drivers now are those of the accepted pose."""
    places = integers_at(job[dynamics_abi.DRIVERS])
    floats = floats_at(job[dynamics_abi.FLOATS])
    goals = floats_at(table[abi.GOALS])
    for k in range(job[dynamics_abi.DRIVEN]):
        goals[2 * k + 1] = floats[places[2 * k]]


@inner
def try_steps(table, job, control, q, size, work):
    """NEW_Q ← q moved along STEP as far as the joints close, the cost decreases, and no push passes its plane.

    Returns the part of the step that was made: 0 if the cost cannot be reduced, −1 if the joints do not close.
    """
    n6 = WIDTH * job[dynamics_abi.BODIES]
    step = floats_at(table[abi.STEP])
    new_q = piece(job, NEW_Q, work)
    own = piece(job, OLD_Q, work)
    hands = floats_at(table[abi.HANDS])
    part = min(1.0, control[abi.TRUST] / size)
    pending = control[abi.PENDING] != 0.0
    failed = 0.0
    attempts = 1 if job[dynamics_abi.RATED] > 0 else ATTEMPTS
    for _ in range(attempts):
        for i in range(n6):
            own[i] = part * step[i]
        if pending:
            set_drivers(table, job, part)
        retract(job, q, own, new_q, work)
        correction = close_pose(job, control, work)
        if correction < 0.0 or (correction > BENT * part * size and part * size > LEAST_STEP):
            failed = -1.0
            part *= SHORTER
            continue
        write_forces(hands, new_q)
        change, noise, rest = compare_costs(hands, new_q, control[dynamics_abi.LENGTH])
        slope = control[abi.SLOPE] * part
        enough = 0.0 if attempts == 1 else SUFFICIENT * slope
        if rest == 1.0 and (pending or change <= min(-noise, enough)):
            predicted = slope * (1.0 - 0.5 * part)
            if abs(change - predicted) > noise - UNLIKE * predicted:
                control[abi.CURVED] = 1.0
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


def _cycle(op, table, control, q, first, second, third, work):
    """One servo cycle; returns IDLE, REACHED, MOVING, SATURATED, STUCK or FAILED."""
    job = integers_at(table[abi.JOB])
    hands = floats_at(table[abi.HANDS])
    new_q = piece(job, NEW_Q, work)
    n = job[dynamics_abi.EQUATIONS]
    count = job[dynamics_abi.COORDINATES]
    unknowns = WIDTH * job[dynamics_abi.BODIES]
    rated = job[dynamics_abi.RATED] > 0
    most_trust = LONG_TRUST if rated else MOST_TRUST
    control[abi.CYCLES] += 1.0
    held = take_targets(table, control)
    if held == 0 and not is_pending(job, table):
        return abi.IDLE
    status = abi.MOVING
    rest = int(control[abi.MOST_SUBSTEPS])
    changes = 0
    tries = 0
    middles = 0
    stopped = False
    moved = False
    nudged = False
    flat = False
    phase = BASE if control[abi.LINEARIZED] == 0.0 else READY
    part = 0.0
    size = 0.0
    bent = False
    is_cut = False
    while True:
        control[abi.TRUST] = min(control[abi.TRUST], most_trust)
        if control[abi.SIGMA] > 0.0 and control[abi.LOOPED] != 0.0:
            control[abi.TRUST] = min(control[abi.TRUST], longest_step(control))
        if phase == BASE:
            middles = 0
            for i in range(count):
                new_q[i] = q[i]
        else:
            if phase == READY:
                middles = 0
                write_forces(hands, q)
                keep_start(hands, q)
                control[abi.PENDING] = 1.0 if changes > 0 or is_pending(job, table) else 0.0
                for i in range(count):
                    new_q[i] = q[i]
            stationary = False
            if phase == STAGE:
                add_stage(table, job, control, middles, part, work)
            else:
                evaluate_soft(job, EVALUATE_JACOBIAN, new_q, new_q, soft_part(job, RESIDUALS, 1))
                if nudged:
                    size = NUDGE
                    control[abi.SLOPE] = 0.0
                else:
                    size = propose(table, job, control, 0.5 * part if phase == MIDDLE else 0.0, work)
                if not size < 1e100:
                    status = abi.FAILED
                    break
                free = stopped or nudged  # FORCES are not those of this step
                if job[dynamics_abi.STOP_COUNT] > 0 and not free and release_stop(table, job, control):
                    changes += 1
                    phase = BASE
                    continue
                bent = is_bent(job, control, size, rated or nudged or flat)
                is_cut = False
                if bent:
                    plain_size = size
                    size, is_cut, products = bend_step(table, job, control, q, work)
                    if products == 0:  # no pose near enough for a difference; the step of first order was overwritten
                        control[abi.CURVED] = 0.0
                        flat = True
                        phase = READY
                        continue
                    rest -= products // PRODUCTS
                    if not is_cut and abs(size - plain_size) < ALIKE * plain_size:
                        control[abi.CURVED] = 0.0
                if is_cut and size < NO_STEP:  # TRUST was reduced so far, at the end of a contact
                    write_forces(hands, q)
                    control[abi.TRUST] = most_trust
                    status = abi.STUCK
                    break
                stationary = size < STILL and control[abi.PENDING] == 0.0
            if stationary:
                part = 0.0
            elif rated and middles < (STAGES if phase == STAGE else MIDDLES):
                if phase != STAGE:
                    part = min(1.0, control[abi.TRUST] / max(size, STILL))
                    if phase == READY and part * size > RATED_TRUST:
                        begin_stages(table, job, part, work)
                        phase = STAGE
                middles += 1
                if phase == STAGE:
                    move_by(job, q, stage_part(middles), tail(floats_at(table[abi.CURVES]), 2 * unknowns), new_q, work)
                else:
                    move_by(job, q, 0.5 * part, floats_at(table[abi.STEP]), new_q, work)
                    phase = MIDDLE
                if not is_finite(count, new_q):  # a contact ends before
                    tries += 1
                    part = 0.0
                    phase = BASE
                    control[abi.TRUST] = SHORTER * min(size, control[abi.TRUST])
                    if tries < ATTEMPTS:
                        continue
                    write_forces(hands, q)
                    control[abi.TRUST] = most_trust
                    control[abi.LINEARIZED] = 0.0
                    status = abi.STUCK
                    break
            else:
                part = try_steps(table, job, control, q, max(size, STILL), work)
                phase = DONE
                if part <= 0.0:
                    if control[abi.PENDING] != 0.0:
                        set_drivers(table, job, 0.0)
                    tries += 1
                    if rated and tries < ATTEMPTS:
                        control[abi.TRUST] = SHORTER * min(size, control[abi.TRUST])
                        phase = BASE
                        part = 0.0
                        continue
                    write_forces(hands, q)
                    control[abi.TRUST] = most_trust if rated else control[abi.TRUST]  # for the next target
                    control[abi.LINEARIZED] = 0.0 if rated else 1.0
                    stationary = part == 0.0
                    if stationary and not (bent or rated or nudged or flat):
                        control[abi.CURVED] = 1.0
                        if is_bent(job, control, size, False):
                            phase = READY
                            continue
                    if not stationary:
                        status = abi.STUCK
                        break
            if stationary:
                if is_probed(control, hands, rated or nudged or control[abi.PENDING] != 0.0):
                    status = abi.SATURATED
                    break
                nudged = find_descent(table, job, control, q, work)
                phase = READY
                continue
            if phase == DONE:
                if job[dynamics_abi.STOP_COUNT] > 0 and reach_stops(table, job, control, work):
                    if control[abi.PENDING] != 0.0:
                        set_drivers(table, job, 0.0)
                    changes += 1
                    stopped = True
                    phase = BASE
                    if changes < MOST_CHANGES:
                        continue
                    control[abi.LINEARIZED] = 0.0
                    write_forces(hands, q)
                    status = abi.STUCK
                    break
        linearize_pose(job, control, new_q, work)
        if phase == MIDDLE or phase == STAGE:
            control[abi.LINEARIZED] = 0.0
            continue
        control[abi.LINEARIZED] = 1.0
        if phase == BASE:
            phase = READY
            if control[abi.SIGMA] == 0.0 and n > 0:
                refresh_sigma(table, job, control, 30, work)
                clear_way(table, job, control)
            continue
        if n > 0 and control[abi.SIGMA] > 0.0:
            sigma = signed_sigma(table, job, work)
            is_long = part * size > LEAST_STEP and control[abi.TRUST] > LEAST_STEP
            refused = is_long and sigma < LEFT * control[abi.SIGMA]
            if not refused:
                near = is_singular(control, sigma)
                in_zone = near or sigma < 0.0 or control[abi.IN_ZONE] != 0.0
                if in_zone and leave_zone(table, job, control, q, new_q, sigma):
                    note_event(table, control, abi.BIFURCATION, 0.0, sigma)
                control[abi.WALKED] += part * size
                if control[abi.IN_ZONE] == 0.0 and (in_zone or control[abi.WALKED] > FRESH * control[abi.SIGMA]):
                    known = control[abi.SIGMA]
                    refresh_sigma(table, job, control, ROUNDS, work)
                    if is_long and not in_zone and control[abi.LOOPED] != 0.0 and control[abi.SIGMA] < LEFT * known:
                        refused = True
                        control[abi.SIGMA] = 0.0  # that of the last pose, anew from these vectors
            if refused:
                control[abi.TRUST] = max(LEAST_STEP, SHORTER * part * size)
                if control[abi.PENDING] != 0.0:
                    set_drivers(table, job, 0.0)
                phase = BASE
                continue
        if part < WHOLE and bent:
            control[abi.TRUST] = part * size
            is_cut = True
        moved = True
        nudged = False
        if part * size > LEAST_STEP:
            control[abi.PROBED] = 0.0
        changes = 0
        tries = 0
        stopped = False
        flat = False
        phase = READY
        keep_drivers(table, job)
        for i in range(count):
            q[i] = new_q[i]
        control[abi.SUBSTEPS] += 1.0
        rest -= 1
        control[abi.TRUST] = 2.0 * control[abi.TRUST]
        if (part >= WHOLE and not is_cut) or rest <= 0:
            break
    if moved:
        write_poses(table, job, q)
    if status == abi.FAILED:
        control[abi.LINEARIZED] = 0.0
    elif held > 0 and is_near(hands, control[dynamics_abi.LENGTH]):
        status = abi.FAILED if is_refused(hands) else abi.REACHED
    return status


@inner
def is_bent(job, control, size, without):
    """Whether a step is to be of second order."""
    rows = integers_at(job[dynamics_abi.SOFT_INTS])[dynamics_abi.SOFT_ROWS]
    asked = control[abi.CURVED] != 0.0 or size > WILD
    return asked and rows > 0 and size >= STILL and control[abi.PENDING] == 0.0 and not without


@inner
def is_probed(control, hands, without):
    """Whether the curvature of the cost need not be looked at any more at this pose; it is looked at once."""
    known = without or control[abi.PROBED] != 0.0 or is_near(hands, control[dynamics_abi.LENGTH])
    control[abi.PROBED] = 1.0
    return known


@inner
def is_refused(hands):
    """Whether the last target of a hand was refused."""
    for h in range(abi.MOST_HANDS):
        if hands[abi.HAND * h + abi.KIND] != abi.FREE and hands[abi.HAND * h + abi.BAD] != 0.0:
            return True
    return False


@inner
def move_by(job, q, part, step, out, work):
    """out ← q moved along a part of a step."""
    own = piece(job, OLD_Q, work)
    for i in range(WIDTH * job[dynamics_abi.BODIES]):
        own[i] = part * step[i]
    retract(job, q, own, out, work)


@inner
def is_near(hands, length):
    """Whether every hand is at its target."""
    for h in range(abi.MOST_HANDS):
        hand = tail(hands, abi.HAND * h)
        if hand[abi.KIND] == abi.FREE:
            continue
        for i in range(3):
            if abs(hand[abi.FORCE + i]) > NEAR * length * hand[abi.STIFFNESS]:
                return False
            if hand[abi.KIND] == abi.POSE and abs(hand[abi.TORQUE + i]) > NEAR * hand[abi.TWIST]:
                return False
    return True


@inner
def write_poses(table, job, q):
    """POSES ← r, p of the body origins."""
    frames = floats_at(table[abi.FRAMES])
    origin = floats_at(table[abi.ORIGIN])
    poses = floats_at(table[abi.POSES])
    for b in range(job[dynamics_abi.BODIES]):
        pose = tail(q, POSE * b)
        f = tail(frames, POSE * b)
        out = tail(poses, POSE * b)
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


CYCLE = evaluator(_cycle)
