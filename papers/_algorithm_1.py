"""Algorithm 1 of [Liu2013] from many starts.  Reads the job of the solver, by address; writes how each start ended."""

from math import sqrt

from cardan.kernel.jit import jit
from cardan.kernel.memory import call_evaluator
from cardan.kernel.table import Float, Table
from cardan.solvers.tables import Control, Job


class End(Table):
    """How one of many starts ended."""

    iterations: Float
    outcome: Float
    norm: Float  # |r|


@jit
def run_many(job, starts, first, last, control, work, q, ends):
    """Algorithm 1 with N = chunk from the starts first … last − 1, each a row of coordinates; ends ← one per start.

    The solver is called by address, since an inlined copy might round differently.
    """
    table = Job(job)
    state = Control(control)
    coordinates = table.structure.coordinates
    for k in range(first, last):
        for i in range(coordinates):
            q[i] = starts[k * coordinates + i]
        state.iterations = 0.0
        outcome = call_evaluator(table.run, 0, job, control, q, control, control, control, work)
        end = End(ends, k)
        end.iterations = state.iterations
        end.outcome = float(outcome)
        end.norm = sqrt(2.0 * state.cost)
