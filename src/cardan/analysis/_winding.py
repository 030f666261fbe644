"""Whole turns in kernels: see :mod:`cardan.analysis.winding` for which rows ask for them.

Table: how many levels there are; per level how many angles it settles, and for each TURN, ROW, IS_LIMIT.
"""

from math import pi

import numpy as np

from cardan._jit import call_evaluator, inner, jit
from cardan.solvers.abi import RESIDUAL, RETRACT

ANGLE = 0  # number of the angle
ROW = 1  # that says how often it has turned
IS_LIMIT = 2
READER = 3

MET = 1e-6  # in the unit of a row, lengths in L: a residual below it asks for no turn


@inner
def is_asked_for(scales, table, rows):
    """Whether any residual asks for a turn."""
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
def turned(angle, f, slope, is_limit):
    """An angle [rad] with the turns that its row asks for, of the residual f and of its change in one turn."""
    if is_limit:  # within one turn of the bound
        whole = np.floor(abs(f) / (2.0 * pi))
        return angle - 2.0 * pi * (whole if f > 0.0 else -whole)
    if slope == 0.0:
        return angle
    return angle + 2.0 * pi * np.floor(0.5 - f / slope)


@inner
def count_whole_turns(evaluate, ints, floats, scales, table, first, q, moved, before, zeros, rows, work):
    """q ← with the whole turns that its rows ask for, angles from q[first] on; a row that would be none the nearer asks
    in vain.  moved: room for q; before: for as many floats as there are angles; rows: for all residuals."""
    call_evaluator(evaluate, RESIDUAL, ints, floats, q, zeros, rows, zeros, work)
    if not is_asked_for(scales, table, rows):
        return
    at = 1
    for _ in range(table[0]):
        count = table[at]
        at += 1
        call_evaluator(evaluate, RESIDUAL, ints, floats, q, zeros, rows, zeros, work)
        for i in range(q.size):
            moved[i] = q[i]
        for k in range(count):
            before[k] = rows[table[at + READER * k + ROW]]
            moved[first + table[at + READER * k + ANGLE]] += 2.0 * pi
        call_evaluator(evaluate, RESIDUAL, ints, floats, moved, zeros, rows, zeros, work)
        for k in range(count):
            reader = at + READER * k
            place = first + table[reader + ANGLE]
            slope = rows[table[reader + ROW]] - before[k]
            moved[place] = turned(q[place], before[k], slope, table[reader + IS_LIMIT] != 0)
        call_evaluator(evaluate, RESIDUAL, ints, floats, moved, zeros, rows, zeros, work)
        for k in range(count):
            place = first + table[at + READER * k + ANGLE]
            if abs(rows[table[at + READER * k + ROW]]) < abs(before[k]):
                q[place] = moved[place]
        at += READER * count


@inner
def update_angles_of_poses(evaluate, ints, floats, first, q, moved, zeros, work):
    """Angles from q[first] on ← those of the poses, within half a turn of what q says; moved: room for q."""
    call_evaluator(evaluate, RETRACT, ints, floats, q, zeros, moved, zeros, work)
    for i in range(first, q.size):
        q[i] = moved[i]


@jit
def count_turns_from_python(evaluate, ints, floats, scales, table, first, q, moved, before, zeros, rows, work):
    """:func:`wind_poses`, from Python."""
    count_whole_turns(evaluate, ints, floats, scales, table, first, q, moved, before, zeros, rows, work)
    return first


@jit
def update_angles_of_many(evaluate, ints, floats, first, starts, count, moved, zeros, work):
    """:func:`rewind_poses` of every row of starts."""
    size = starts.size // count
    for k in range(count):
        update_angles_of_poses(evaluate, ints, floats, first, starts[k * size : (k + 1) * size], moved, zeros, work)
    return count
