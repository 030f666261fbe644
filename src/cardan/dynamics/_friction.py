"""Coulomb's friction of contacts in the equations of motion, exactly: sliding, sticking, and the energy that it takes.

A contact that sticks or rolls has its tangential rows J_t as equations.  One that slips along s = J_t v/|J_t v| has

    M v̇ + Jᵀλ = Q − Σ μ N J_tᵀ s,   N = −λ_n,

whose matrix is not symmetric.  With the solution λ⁰ without friction, and λᵏ for the load −μ J_tᵀ s of contact k, the
normal forces are  N = N⁰ − Σ λ_nᵏ N_k: a small system.  Its diagonal is that of Painlevé, 1 − μ A_nt·s/A_nn.  Where it
is not positive, there is no such force, or more than one (:mod:`cardan.dynamics.friction`).

The rows J_t of a contact that slips are kept in Ĵ with the factor FADED, so that they have no effect in the linear
algebra.  Their λ are set to μ N s, so that reactions contain the friction force.

The power Σ μ N |J_t v| is integrated by the rule that integrates accelerations, with the same nodes: energies balance
to the error of the steps.

ACT is called after every solution (as soft rows are), WATCH at the end of every step (:mod:`cardan.dynamics._stops`).
Memory: lost energy at the outputs, then (b, c), then one solution for each contact, then the small system.
"""

from math import sqrt

from cardan.dynamics import tables
from cardan.dynamics._dual import dot_6
from cardan.dynamics._equations import mass_values, solve
from cardan.dynamics._stops import EVENT_GAP, keep_gaps, pull_of, seek_event, strongest_of, update_values, worst_stop
from cardan.dynamics.friction_tables import FREE, SLIP, STICK, Friction, Grip
from cardan.dynamics.tables import BETWEEN, HISTORY, WIDTH, Control, MotionJob, Rule, Weights, Work
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import tail

NEAR = 4.0  # A h of a slip whose direction may be stiff
MOST_TRIALS = 200  # of one step, to end at an event
JAMMED = 1e-9  # a smaller pivot of the small system: no finite force
ROUNDING = 1e-14  # of the largest multiplier
TINY = 1e-100  # rows that are kept, but no equations, have smaller scales
SLOW = 1e-9  # of the extent [1/s]: the end of a slower slip is not seen where its velocity is rounding
NAN = float("nan")


@inner
def update_slip(job, control, grip, v, work):
    """SLIP ← J_t v; SLIDE ← its direction s.

    Across the slip, friction is a damping with the rate A/|J_t v|, where A is its deceleration.  If this is stiff,
    |J_t v| < NEAR A h, then s is the direction of  J_t v + (NEAR A h − |J_t v|) s₀  with that at the start of the step.
    It is s₀ if the slip has just reversed: then the event comes first.
    """
    roots = mass_values(job).roots
    first = int(grip.first)
    slots = int(grip.slots)
    square = 0.0
    ahead = 0.0
    at = int(grip.entry)
    for i in range(int(grip.rows)):
        e = 0.0
        for s in range(slots):
            body = WIDTH * int(grip.bodies[s])
            for j in range(WIDTH):
                e += work.jacobian[at + j] * roots[body + j] * v[body + j]
            at += WIDTH
        e /= work.scales[first + i]
        grip.slip[i] = e
        square += e * e
        ahead += e * grip.base[i]
    lag = max(0.0, NEAR * grip.slowing * abs(control.step) - sqrt(square))
    square += lag * (2.0 * ahead + lag)
    for i in range(int(grip.rows)):
        e = grip.slip[i] + lag * grip.base[i]
        grip.slide[i] = e / sqrt(square) if ahead > 0.0 and square > 0.0 else grip.base[i]


@inner
def respond(job, control, grip, work, response):
    """response ← the solution (u, λ) for the load −μ J_tᵀ s alone."""
    x = work.x
    size = WIDTH * job.bodies + job.equations
    for i in range(size):
        x[i] = 0.0
    first = int(grip.first)
    at = int(grip.entry)
    for i in range(int(grip.rows)):
        factor = -grip.drag * grip.slide[i] / work.scales[first + i]
        for s in range(int(grip.slots)):
            body = tail(x, WIDTH * int(grip.bodies[s]))
            for j in range(WIDTH):
                body[j] += factor * work.jacobian[at + j]
            at += WIDTH
    solve(job, control, False, work)
    for i in range(size):
        response[i] = x[i]


@inner
def eliminate(n, matrix, right):
    """right ← matrix⁻¹ right; False if a pivot is not larger than JAMMED."""
    for k in range(n):
        pivot = matrix[k * n + k]
        if not pivot > JAMMED:
            return False
        for i in range(k + 1, n):
            factor = matrix[i * n + k] / pivot
            for j in range(k + 1, n):
                matrix[i * n + j] -= factor * matrix[k * n + j]
            right[i] -= factor * right[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            right[k] -= matrix[k * n + j] * right[j]
        right[k] /= matrix[k * n + k]
    return True


@inner
def slowing_of(job, grip, slips, responses, forces, work):
    """A: accelerations of a contact by the friction forces of all that slip, without their signs."""
    size = WIDTH * job.bodies + job.equations
    square = 0.0
    for i in range(int(grip.rows)):
        at = int(grip.entry) + WIDTH * int(grip.slots) * i
        total = 0.0
        for k in range(slips):
            e = 0.0
            for s in range(int(grip.slots)):
                body = tail(responses, size * k + WIDTH * int(grip.bodies[s]))
                e += dot_6(tail(work.jacobian, at + WIDTH * s), body)
            total += abs(e * forces[k])
        total /= work.scales[int(grip.first) + i]
        square += total * total
    return sqrt(square)


@inner
def slide(job, control, friction, slips, memory, work):
    """X ← the solution with the forces of the contacts that slip; POWER ← what they take."""
    x = work.x
    n6 = WIDTH * job.bodies
    size = n6 + job.equations
    count = int(friction.count)
    responses = tail(memory, size)
    matrix = tail(responses, size * count)
    right = tail(matrix, count * count)
    for i in range(size):
        memory[i] = x[i]
    row = 0
    for k in range(count):
        grip = Grip(friction.grips, k)
        if grip.mode == SLIP:
            respond(job, control, grip, work, tail(responses, size * row))
            row += 1
    row = 0
    for k in range(count):
        grip = Grip(friction.grips, k)
        if grip.mode == SLIP:
            equation = int(grip.normal)
            scale = work.scales[equation]
            right[row] = -scale * memory[n6 + equation]
            for j in range(slips):
                matrix[row * slips + j] = scale * responses[size * j + n6 + equation] + (1.0 if j == row else 0.0)
            row += 1
    if not eliminate(slips, matrix, right):
        friction.is_jammed = 1.0
        x[0] = NAN
        return
    for i in range(size):
        e = memory[i]
        for j in range(slips):
            e += right[j] * responses[size * j + i]
        x[i] = e
    row = 0
    for k in range(count):
        grip = Grip(friction.grips, k)
        if grip.mode == SLIP:
            first = int(grip.first)
            grip.force = right[row]
            for i in range(int(grip.rows)):
                force = grip.drag * right[row] * grip.slide[i]
                x[n6 + first + i] = force / work.scales[first + i]
                friction.power += force * grip.slip[i]
            grip.slowing = slowing_of(job, grip, slips, responses, right, work)
            row += 1


@inner
def flush(job, work):
    """Accelerations that are rounding become zero, so that what rests does not creep: sticking holds no pose."""
    x = work.x
    n6 = WIDTH * job.bodies
    largest = 0.0
    for i in range(job.equations):
        if work.scales[i] > TINY:  # not of a contact that slips
            largest = max(largest, abs(x[n6 + i]))
    for i in range(n6):
        if abs(x[i]) < ROUNDING * largest:
            x[i] = 0.0


@inner
def energy_between(control, friction, work):
    """What friction took up to an output within the last step [J]."""
    head = int(control.head)
    before = work.node_times[(head + 1) % HISTORY]
    rule = Rule(Weights(work.weights).rules)
    e = 0.0
    for j in range(int(min(control.known, control.order + 1.0))):
        e += rule.once[j] * friction.powers[(head + j) % HISTORY]
    return friction.before + (control.ask_time - before) * e


def _act(op, ints, floats, q, v, x, unused, memory):
    if op != tables.ACCELERATION:
        return 0
    job = MotionJob(ints)
    control = Control(floats)
    work = Work(job.pieces, memory)
    friction = Friction(job.soft_floats)
    friction.power = 0.0
    slips = 0
    sticks = False
    for k in range(int(friction.count)):
        grip = Grip(friction.grips, k)
        sticks = sticks or grip.mode == STICK
        if grip.mode == SLIP:
            update_slip(job, control, grip, v, work)
            slips += 1
    outputs = job.soft_memory
    if slips > 0:
        slide(job, control, friction, slips, tail(outputs, int(control.samples) + 2), work)
    if sticks:
        flush(job, work)
    if friction.stages > 0.0:
        friction.stage_powers[int(control.stage)] = friction.power
    elif control.phase == BETWEEN:
        number = int(control.sample)
        outputs[number] = energy_between(control, friction, work)
        outputs[number + 1] = friction.lost
    return 0


ACT = evaluator(_act)


@inner
def excess_of(grip, multipliers, work):
    """By how much the friction force of a contact that sticks exceeds the static one [N]."""
    square = 0.0
    for i in range(int(grip.rows)):
        square += multipliers[int(grip.first) + i] ** 2
    return sqrt(square) + grip.hold * multipliers[int(grip.normal)]


@inner
def speed_of(job, control, grip, v, work):
    """The velocity along the slip at the start of the step [m/s]."""
    update_slip(job, control, grip, v, work)
    e = 0.0
    for i in range(int(grip.rows)):
        e += grip.base[i] * grip.slip[i]
    return e


@inner
def integrate_power(control, friction, work):
    """LOST += the integral of POWER over the step, by the rule of the accelerations."""
    friction.before = friction.lost
    head = int(control.head)
    e = 0.0
    if control.known > 0.0 and friction.stages > 0.0:
        stages = int(friction.stages)
        row = tail(work.tableau, stages * (stages - 1) // 2)
        friction.stage_powers[0] = friction.powers[head]
        for j in range(stages):
            e += row[j] * friction.stage_powers[j]
    elif control.known > 0.0:
        rule = Rule(Weights(work.weights).rules, 1)
        e = rule.once[0] * friction.power
        for j in range(int(min(control.known, control.order))):
            e += rule.once[j + 1] * friction.powers[(head + j) % HISTORY]
    friction.lost += control.step * e
    friction.powers[(head + HISTORY - 1) % HISTORY] = friction.power


@inner
def keep_grips(job, control, friction, v, multipliers, work):
    """Event functions at the start of the next step, and the energy of the one that ends."""
    friction.trials = 0.0
    integrate_power(control, friction, work)
    for k in range(int(friction.count)):
        grip = Grip(friction.grips, k)
        if grip.mode == SLIP:
            for i in range(int(grip.rows)):
                grip.base[i] = grip.slide[i]
            grip.speed = speed_of(job, control, grip, v, work)
        elif grip.mode == STICK:
            grip.excess = excess_of(grip, multipliers, work)
    job.soft_memory[int(control.sample)] = friction.lost


def _watch(op, ints, floats, q, v, multipliers, unused, memory):
    job = MotionJob(ints)
    control = Control(floats)
    work = Work(job.pieces, memory)
    friction = Friction(job.soft_floats)
    if op != tables.SEEK:
        keep_gaps(job, control, q, v, multipliers, work)
        keep_grips(job, control, friction, v, multipliers, work)
        return 0
    friction.trials += 1.0
    update_values(job, q, work)
    largest, first, start = worst_stop(job, multipliers, work)
    friction.event = 0.0
    strongest = strongest_of(job, multipliers)
    for k in range(int(friction.count)):
        grip = Grip(friction.grips, k)
        if grip.mode == FREE or (grip.mode == STICK and grip.is_shared != 0.0):
            continue
        if grip.mode == SLIP:
            before = -grip.speed
            gap = -speed_of(job, control, grip, v, work)
            e = pull_of(gap, before, control.length if grip.speed < SLOW * control.length else 0.0)
        else:
            before = grip.excess
            gap = excess_of(grip, multipliers, work)
            e = pull_of(gap, before, strongest)
        if e > largest:
            largest = e
            first = int(grip.stop)
            start = before / max(-before, abs(gap), 1e-300)
            friction.event = float(k + 1)
    if largest > 0.0:
        friction.passed = friction.event
        friction.passed_stop = float(first)
    repeats = seek_event(job, control, q, v, multipliers, (largest, first, start), work)
    if repeats and friction.trials > MOST_TRIALS:
        control.event = float(first + 1)
        repeats = False
    if (
        control.event != 0.0 and largest < -EVENT_GAP
    ):  # the last try was before the event: it is the one that was passed
        friction.event = friction.passed
        control.event = friction.passed_stop + 1.0
    return 1 if repeats else 0


WATCH = evaluator(_watch)
