"""The spring step with a verdict after every iteration; it ends at the first pose that meets the tolerance.

Reads the job of the gradient solver and the judging table, both by address.  Writes q, the control vector, and the
verdict on q.
"""

from cardan.coordinates._judging import judge_at
from cardan.coordinates.tables import Judged, JudgeWork, Verdict
from cardan.kernel.jit import jit
from cardan.kernel.memory import call_evaluator, pointer
from cardan.solvers.tables import RUNNING, Control, Job

# result of a call
UNDER_WAY = 0  # the iterations of this call are used up
MET = 1
ENDED = 2  # stalled, broken, or out of iterations


@jit
def descend(job, control, q, work, judged, bounds, judged_work, limits, found):
    """Continue from q in place: up to control.iterations = limits[0], or for limits[1] iterations.

    found ← residual and bound of the verdict on q.
    """
    state = Control(control)
    judged = Judged(judged)
    judged_work = JudgeWork(judged.pieces, pointer(judged_work))
    verdict = Verdict(found)
    for _ in range(limits[1] + 1):
        judge_at(judged, bounds, pointer(q), judged_work, found)
        if verdict.residual <= verdict.bound:
            return MET
        if state.status != RUNNING or state.iterations >= limits[0]:
            return ENDED
        state.chunk = 1.0
        call_evaluator(Job(job).run, 0, job, control, q, control, control, control, work)
    return UNDER_WAY
