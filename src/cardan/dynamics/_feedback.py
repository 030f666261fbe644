"""Baumgarte's terms in the equations of accelerations, instead of projections.  [Baumgarte1972]

    J v̇ = γ + g̈ − 2α (J v − ġ) − α² f

Compiled only where they are used.  Reads J and the scales D at hand; writes X, SCRATCH, the first half of VALUES.
"""

from cardan.dynamics import abi
from cardan.dynamics._dual import subtract_times
from cardan.dynamics._equations import (
    EVALUATION,
    JACOBIAN,
    SCALES,
    SCRATCH,
    VALUES,
    add_drivers,
    evaluate,
    piece,
    roots,
    take_rows,
)
from cardan.dynamics.abi import WIDTH
from cardan.kernel.jit import evaluator, plain
from cardan.kernel.memory import integers_at, tail
from cardan.solvers import tables as solvers_abi

RESIDUAL = plain(solvers_abi.RESIDUAL)


def _add_feedback(op, job, control, q, v, x, row, work):
    """x[equations] −= D (2α (J v − ġ) + α² f), with α = GAIN [1/s]; row: of the drivers, as of set_drivers."""
    n6 = WIDTH * job[abi.BODIES]
    n = job[abi.EQUATIONS]
    gain = control[abi.GAIN]
    mass = roots(job)
    pattern = integers_at(job[abi.PATTERN])
    scales = piece(job, SCALES, work)
    values = piece(job, VALUES, work)
    scratch = piece(job, SCRATCH, work)  # M^½ v, then the residual rates
    missing = tail(scratch, n6)
    evaluate(job, RESIDUAL, q, q, values, values, piece(job, EVALUATION, work))
    for i in range(n6):
        scratch[i] = v[i] * mass[n6 + i]
    for i in range(n):
        missing[i] = 0.0
    add_drivers(job, row, 1, scales, scratch, work)
    subtract_times(pattern, piece(job, JACOBIAN, work), scratch, missing)
    for i in range(n):
        x[n6 + i] -= 2.0 * gain * missing[i]
    take_rows(pattern, scales, values, 1.0, missing)
    for i in range(n):
        x[n6 + i] -= gain * gain * missing[i]
    return 0


ADD = evaluator(_add_feedback)
