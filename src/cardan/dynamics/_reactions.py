"""Forces of constraints at many instants, and the multipliers of least norm.

With the scales of the problem, J̃ = D J C and λ̃ = D⁻¹λ, so that C Jᵀλ = J̃ᵀλ̃; lengths are divided by the extent.  Of all
λ̃ that give the force b = J̃ᵀλ̃, the one of least norm is S⁺ J̃ b with S = J̃ J̃ᵀ.  It does not depend on masses.

Each kernel evaluates at every row of q; the job is the table of a problem (:mod:`cardan.solvers.tables`) whose linear
algebra is that of :mod:`cardan.dynamics.tables`.
"""

from cardan.dynamics import tables
from cardan.dynamics._equations import REGULAR
from cardan.dynamics.tables import WIDTH, Bound, Control, ForceWork, Pattern, Stop
from cardan.kernel.fields import after
from cardan.kernel.jit import inner, jit, plain
from cardan.kernel.memory import pointer
from cardan.solvers import tables as solvers_tables
from cardan.solvers._job import call_algebra, evaluate, linearise
from cardan.solvers.tables import Job

RESIDUAL, JACOBIAN = plain(solvers_tables.RESIDUAL), plain(solvers_tables.JACOBIAN)
STOP_SIZE = Stop.size
FACTOR, SOLVE = plain(tables.FACTOR), plain(tables.SOLVE)
# Added to S where rows are redundant, relative to its mean diagonal.  A larger one leaves less rounding in λ̃; what it
# cannot reach, because singular values are small, is left to a smaller one.
EPSILON = 1e-6
REFINED = 1e-4
LEVELS = 3
PROXIMAL = 2.0  # iterations of one solve that remove the error of EPSILON
SOLVES = 10  # at the most
EXACT = 1e-13  # of the largest component of b: a smaller rest is rounding
SLOW = 0.5  # a solve that leaves more of the rest is not worth another


@jit
def forces(job, places, q, multipliers, out, offsets, memory):
    """out[k, place] ← −Jᵀλ of one constraint on one body; places: of each body of each strip, in their order."""
    job = Job(pointer(job))
    pattern = Pattern(job.pattern)
    work = ForceWork(pointer(offsets), pointer(memory))
    jacobian = work.jacobian
    for k in range(q.shape[0]):
        evaluate(job, JACOBIAN, q[k], work.values, work.values, jacobian, work.evaluation)
        strip = pattern.strips
        at = 0
        for _ in range(pattern.strip_count):
            entry = strip.entry
            for i in range(strip.rows):
                factor = multipliers[k, strip.first + i]
                for s in range(strip.slots):
                    for j in range(WIDTH):
                        out[k, places[at + s], j] -= factor * jacobian[entry]
                        entry += 1
            at += strip.slots
            strip = after(strip, strip.slots)


@inner
def call_linear(job, op, control, work):
    """FACTOR, or SOLVE with x."""
    call_algebra(job, op, control, work.x, work.scratch, work.x, work.jacobian, work.matrix)


@jit
def least_norm(job, floats, stops, q, b, multipliers, rest, offsets, memory):
    """multipliers[k] ← λ̃ of least norm for the force b[k]; rest[k] ← largest component that no λ̃ gives.

    stops: equation, first entry and number of entries of rows that do not hold where multipliers[k] is zero at first.
    floats: a control vector.
    """
    job = Job(pointer(job))
    pattern = Pattern(job.pattern)
    control = Control(pointer(floats))
    work = ForceWork(pointer(offsets), pointer(memory))
    x = work.x
    jacobian = work.jacobian
    structure = job.structure
    n = pattern.equations
    n6 = WIDTH * pattern.bodies
    entries = structure.jacobian_size
    for k in range(q.shape[0]):
        linearise(job, q[k], work.values, jacobian, work.evaluation)
        for s in range(stops.shape[0]):
            if multipliers[k, stops[s, 0]] == 0.0:
                for i in range(stops[s, 2]):
                    jacobian[stops[s, 1] + i] = 0.0
        square = 0.0
        for i in range(entries):
            square += jacobian[i] * jacobian[i]
        size = 0.0
        for i in range(n6):
            x[i] = b[k, i]
            size = max(size, abs(x[i]))
        for i in range(n):
            multipliers[k, i] = 0.0
        last = size
        level = 0
        epsilon = EPSILON * square / n
        while level < LEVELS and last > EXACT * size:
            redundant = control.redundant != 0.0
            control.epsilon = epsilon if redundant else 0.0
            control.proximal = PROXIMAL if redundant else 0.0
            control.pivot = 1.0
            call_linear(job, FACTOR, control, work)
            if not redundant and control.pivot <= REGULAR:
                control.redundant = 1.0
                continue
            for _ in range(SOLVES):
                for i in range(n):
                    x[n6 + i] = 0.0
                call_linear(job, SOLVE, control, work)
                for i in range(n):
                    multipliers[k, i] += x[n6 + i]
                largest = 0.0
                for i in range(n6):
                    largest = max(largest, abs(x[i]))
                is_slow = not (largest > EXACT * size and largest < SLOW * last)
                last = largest
                if is_slow:
                    break
            level = level + 1 if redundant else LEVELS
            epsilon *= REFINED
        rest[k] = last


@jit
def drift(job, places, drive, weights, stops, bounds, q, out, offsets, memory):
    """out[k] ← the largest |weights · f| at q[k], with drive[k] written to the floats of the job at places.

    stops, bounds: limits; what a coordinate is beyond its bound counts too (:mod:`cardan.dynamics.tables`).
    """
    work = ForceWork(pointer(offsets), pointer(memory))
    values = work.values
    job = Job(pointer(job))
    floats = job.floats
    for k in range(q.shape[0]):
        for i in range(places.size):
            floats[places[i]] = drive[k, i]
        evaluate(job, RESIDUAL, q[k], values, values, work.jacobian, work.evaluation)
        largest = 0.0
        for i in range(weights.size):
            e = abs(weights[i] * values[i])
            if not e <= largest:
                largest = e
        for s in range(stops.size // STOP_SIZE):
            stop = Stop(pointer(stops), s)
            bound = Bound(pointer(bounds), s)
            c = values[stop.row] + floats[stop.place]
            beyond = max(bound.lower - c, c - bound.upper) * bound.weight
            if beyond > largest:
                largest = beyond
        out[k] = largest
