"""The evaluator of traced shapes that are interpreted: S and its derivatives by a tape (``constraints/_tape.py``).

Reads the table of the shape, whose last integer is the address of the tape; writes rows of three numbers.
"""

from cardan.constraints.tables import Tape
from cardan.geometry._quotient import retract
from cardan.geometry.tables import RETRACT, ShapeInts
from cardan.kernel.jit import evaluator
from cardan.kernel.memory import call_evaluator, integers_at


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    """Point and derivatives."""
    if op == RETRACT:
        retract(ints, floats, q, step, out)
        return 0
    tape = Tape(integers_at(ShapeInts(ints).more[1]))
    return call_evaluator(tape.run, op, tape.as_ints, floats, q, step, out, jacobian, work)


EVALUATE = evaluator(_evaluate)
