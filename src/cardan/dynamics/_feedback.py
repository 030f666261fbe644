"""Baumgarte's terms in the equations of accelerations, instead of projections.  [Baumgarte1972]

    J v̇ = γ + g̈ − 2α (J v − ġ) − α² f

Compiled only where they are used.  Reads J and the scales D at hand; writes X, SCRATCH, the first half of VALUES.
"""

from cardan.dynamics._dual import subtract_times
from cardan.dynamics._equations import add_drivers, mass_values, take_rows
from cardan.dynamics.tables import WIDTH, Control, MotionJob, Pattern, Work
from cardan.kernel.jit import evaluator, plain
from cardan.kernel.memory import tail
from cardan.solvers import tables as solvers_tables
from cardan.solvers._job import evaluate

RESIDUAL = plain(solvers_tables.RESIDUAL)


def _add_feedback(op, ints, floats, q, v, x, row, memory):
    """x[equations] −= D (2α (J v − ġ) + α² f), with α = gain [1/s]; row: of the drivers, as of set_drivers."""
    job = MotionJob(ints)
    control = Control(floats)
    work = Work(job.pieces, memory)
    n6 = WIDTH * job.bodies
    n = job.equations
    gain = control.gain
    roots = mass_values(job).roots
    pattern = Pattern(job.pattern)
    scales = work.scales
    values = work.values
    scratch = work.scratch  # M^½ v, then the residual rates
    missing = tail(scratch, n6)
    evaluate(job, RESIDUAL, q, q, values, values, work.evaluation)
    for i in range(n6):
        scratch[i] = v[i] * roots[i]
    for i in range(n):
        missing[i] = 0.0
    add_drivers(job, row, 1, scales, scratch, work)
    subtract_times(pattern, work.jacobian, scratch, missing)
    is_hard = control.compliant == 0.0
    for i in range(n):
        if is_hard or work.compliances[i] == 0.0:
            x[n6 + i] -= 2.0 * gain * missing[i]
    take_rows(pattern, scales, values, 1.0, missing)
    for i in range(n):
        if is_hard or work.compliances[i] == 0.0:
            x[n6 + i] -= gain * gain * missing[i]
    return 0


ADD = evaluator(_add_feedback)
