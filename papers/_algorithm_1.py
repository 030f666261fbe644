"""Algorithm 1 of [Liu2013] from many starts.  Reads the job of the solver, by address; writes how each start ended."""

from math import sqrt

from cardan.kernel.jit import jit
from cardan.kernel.memory import call_evaluator, tail
from cardan.solvers import abi
from cardan.solvers._job import structure_of

# how one of many starts ended
END_ITERATIONS, END_OUTCOME, END_NORM, END = range(4)


@jit
def run_many(job, starts, first, last, control, work, q, ends):
    """Algorithm 1 with N = CHUNK from the starts first … last − 1, each a row of coordinates.

    The solver is called by address, since an inlined copy might round differently.
    ends ← ITERATIONS, OUTCOME, NORM of each start.
    """
    coordinates = structure_of(job)[abi.COORDINATES]
    for k in range(first, last):
        for i in range(coordinates):
            q[i] = starts[k * coordinates + i]
        control[abi.ITERATIONS] = 0.0
        outcome = call_evaluator(job[abi.SOLVER], 0, job, control, q, control, control, control, work)
        end = tail(ends, END * k)
        end[END_ITERATIONS] = control[abi.ITERATIONS]
        end[END_OUTCOME] = float(outcome)
        end[END_NORM] = sqrt(2.0 * control[abi.COST])
