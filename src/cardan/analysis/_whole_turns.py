"""Whole turns in kernels: see :mod:`cardan.analysis.whole_turns` for which rows ask for them.

Table: the number of levels; per level the number of angles that it settles, and for each ANGLE, ROW, IS_LIMIT.
Read: that table and the problem on the manifold, by the table of its addresses; written: counted angles in q.
"""

from math import pi

import numpy as np

from cardan._jit import inner, jit, tail
from cardan.solvers._job import evaluate, scales_of
from cardan.solvers.abi import RESIDUAL

ANGLE = 0  # number of the angle
ROW = 1  # that says how often it has turned
IS_LIMIT = 2
READER = 3

MET = 1e-6  # in the unit of a row, lengths in L: a residual below it asks for no turn


@inner
def is_asked_for(scales, table, rows):
    """Whether any residual asks for a whole turn."""
    at = 1
    for _ in range(table[0]):
        count = table[at]
        at += 1
        for _ in range(count):
            row = table[at + ROW]
            if not abs(rows[row] * scales[row]) <= MET:
                return True
            at += READER
    return False


@inner
def with_turns(angle, f, slope, is_limit):
    """An angle [rad] with the turns that its row asks for, of the residual f and of its change in one turn."""
    if is_limit:  # within one turn of the bound
        whole = np.floor(abs(f) / (2.0 * pi))
        return angle - 2.0 * pi * (whole if f > 0.0 else -whole)
    if slope == 0.0:
        return angle
    return angle + 2.0 * pi * np.floor(0.5 - f / slope)


@inner
def count_turns(problem, table, first, size, q, moved, before, rows, work):
    """q ← with the whole turns that its rows ask for; counted angles are those from q[first] to q[size − 1].

    A turn that would not reduce the residual of its row is not made.  moved: room for q; before: for the residuals of
    one level; rows: for all residuals.
    """
    evaluate(problem, RESIDUAL, q, q, rows, rows, work)
    if not is_asked_for(scales_of(problem), table, rows):
        return
    at = 1
    for _ in range(table[0]):
        count = table[at]
        at += 1
        evaluate(problem, RESIDUAL, q, q, rows, rows, work)
        for i in range(size):
            moved[i] = q[i]
        for k in range(count):
            reader = tail(table, at + READER * k)
            before[k] = rows[reader[ROW]]
            moved[first + reader[ANGLE]] += 2.0 * pi
        evaluate(problem, RESIDUAL, moved, q, rows, rows, work)
        for k in range(count):
            reader = tail(table, at + READER * k)
            angle = first + reader[ANGLE]
            slope = rows[reader[ROW]] - before[k]
            moved[angle] = with_turns(q[angle], before[k], slope, reader[IS_LIMIT] != 0)
        evaluate(problem, RESIDUAL, moved, q, rows, rows, work)
        for k in range(count):
            reader = tail(table, at + READER * k)
            angle = first + reader[ANGLE]
            if abs(rows[reader[ROW]]) < abs(before[k]):
                q[angle] = moved[angle]
        at += READER * count


@jit
def update_turns(problem, table, first, q, moved, before, rows, work):
    """:func:`count_turns`, from Python."""
    count_turns(problem, table, first, q.size, q, moved, before, rows, work)
    return first
