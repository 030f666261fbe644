"""Whole turns in kernels; :mod:`cardan.analysis.whole_turns` defines which rows determine them.

Table: the number of levels; per level the number of angles that it determines, and for each ANGLE, ROW, IS_LIMIT.
Reads this table and the problem on the manifold, by its table of addresses.  Writes the counted angles in q.
"""

from math import pi

import numpy as np

from cardan.analysis.tables import TurnRow
from cardan.kernel.jit import inner, jit
from cardan.kernel.memory import tail
from cardan.solvers._job import evaluate
from cardan.solvers.tables import RESIDUAL, Job

SIZE = TurnRow.size
NO_TURN = 1e-6  # in the unit of a row, lengths in L: a residual below it requires no turn


@inner
def is_required(scales, table, rows):
    """Whether any residual requires a whole turn."""
    at = 1
    for _ in range(table[0]):
        count = table[at]
        at += 1
        for _ in range(count):
            row = TurnRow(tail(table, at)).row
            if not abs(rows[row] * scales[row]) <= NO_TURN:
                return True
            at += SIZE
    return False


@inner
def with_turns(angle, f, slope, is_limit):
    """An angle [rad] with the turns that its row requires; f: residual of the row, slope: its change per turn.

    For a limit: the first angle that is no longer beyond the bound, between the bounds or beyond the other one.
    """
    if is_limit:
        whole = np.ceil(abs(f) / (2.0 * pi))
        return angle - 2.0 * pi * (whole if f > 0.0 else -whole)
    if slope == 0.0:
        return angle
    return angle + 2.0 * pi * np.floor(0.5 - f / slope)


@inner
def count_turns(problem, table, first, size, q, moved, before, rows, work):
    """Add the whole turns that the rows require to the counted angles q[first] … q[size − 1].

    An angle beyond its limits gets the turns with which it is between them, or the least beyond them.
    A turn that would not reduce the residual of its row is not added.  Workspace: moved for q, before for the
    residuals of one level, rows for all residuals.
    """
    evaluate(problem, RESIDUAL, q, q, rows, rows, work)
    if not is_required(problem.scales, table, rows):
        return
    at = 1
    for _ in range(table[0]):
        count = table[at]
        at += 1
        evaluate(problem, RESIDUAL, q, q, rows, rows, work)
        for i in range(size):
            moved[i] = q[i]
        for k in range(count):
            reader = TurnRow(tail(table, at), k)
            before[k] = rows[reader.row]
            moved[first + reader.angle] += 2.0 * pi
        evaluate(problem, RESIDUAL, moved, q, rows, rows, work)
        for k in range(count):
            reader = TurnRow(tail(table, at), k)
            angle = first + reader.angle
            slope = rows[reader.row] - before[k]
            moved[angle] = with_turns(q[angle], before[k], slope, reader.is_limit != 0)
        evaluate(problem, RESIDUAL, moved, q, rows, rows, work)
        for k in range(count):
            reader = TurnRow(tail(table, at), k)
            angle = first + reader.angle
            if reader.is_limit != 0:
                rest = abs(before[k]) % (2.0 * pi)  # with one turn less: still beyond the bound
                if abs(rows[reader.row]) > rest:
                    moved[angle] += 2.0 * pi if before[k] > 0.0 else -2.0 * pi
                    rows[reader.row] = rest
            if abs(rows[reader.row]) < abs(before[k]):
                q[angle] = moved[angle]
        at += SIZE * count


@jit
def update_turns(problem, table, first, q, moved, before, rows, work):
    """:func:`count_turns`, called from Python."""
    count_turns(Job(problem), table, first, q.size, q, moved, before, rows, work)
    return first
