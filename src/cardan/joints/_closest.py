"""Kernels of a contact by closest points: they call the evaluator of the pair, a Python function, by its address.

f = |S² − S¹| − clearance [m], with derivatives by differences, and the rows of rolling
(:mod:`cardan.joints.closest`).  x and c are those of :mod:`cardan.joints._contact`, without contact coordinates; the
table of the pair is the address of the evaluator.
"""

from cardan.joints import tables
from cardan.joints.tables import PairParameter, PairTable
from cardan.kernel.jit import plain
from cardan.kernel.memory import call_evaluator, integers_at

GAP, BEND = plain(tables.SOLVE), plain(tables.RATES)
ROLL, ROLL_BEND = plain(tables.ROLL), plain(tables.ROLL_RATES)


def closest(x, c, f, df):
    """f and its derivatives by the frames."""
    table = integers_at(int(PairParameter(c).address))
    return call_evaluator(PairTable(table).solver, GAP, table, c, x, x, f, df, x)


def closest_curvature(x, rate, c, g):
    """d²f/dt² without the accelerations of the frames, by a second difference."""
    table = integers_at(int(PairParameter(c).address))
    return call_evaluator(PairTable(table).solver, BEND, table, c, x, rate, g, g, x)


def closest_rolling(x, c, f, df):
    """f = 0, and the rows of rolling by the rates of the frames."""
    table = integers_at(int(PairParameter(c).address))
    return call_evaluator(PairTable(table).solver, ROLL, table, c, x, x, f, df, x)


def closest_rolling_curvature(x, rate, c, g):
    """The rates of these rows without the accelerations of the frames, by differences."""
    table = integers_at(int(PairParameter(c).address))
    return call_evaluator(PairTable(table).solver, ROLL_BEND, table, c, x, rate, g, g, x)
