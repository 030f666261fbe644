"""Kernels of a contact by closest points: they call the evaluator of the pair, a Python function, by its address.

f = |S² − S¹| − clearance [m], with derivatives by differences (:mod:`cardan.joints.closest`).  x and c are those of
:mod:`cardan.joints._contact`, without contact coordinates; the table of the pair is the address of the evaluator.
"""

from cardan._jit import call_evaluator, integers_at, plain
from cardan.joints import abi

GAP, BEND = plain(abi.SOLVE), plain(abi.RATES)


def closest(x, c, f, df):
    """f and its derivatives by the frames."""
    table = integers_at(int(c[abi.ADDRESS]))
    return call_evaluator(table[0], GAP, table, c, x, x, f, df, x)


def closest_curvature(x, rate, c, g):
    """d²f/dt² without the accelerations of the frames, by a second difference."""
    table = integers_at(int(c[abi.ADDRESS]))
    return call_evaluator(table[0], BEND, table, c, x, rate, g, g, x)
