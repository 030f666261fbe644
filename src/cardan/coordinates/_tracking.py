"""The kernel that follows contact coordinates: those of the poses in ``out`` that are near those in q.

Reads the records whose contact coordinates are in q (SLOT of their features is TRACKED), and writes them to ``out``.
The rotation matrices of ``out`` are in the workspace.
"""

from cardan._jit import call_evaluator, cut, evaluator, integers_at, plain, tail
from cardan.coordinates._features import update_features
from cardan.coordinates._records import counted_angles, feature, features, workspace
from cardan.joints.abi import ADDRESS, FRAMES, PARAMETERS, SOLVE, SOLVER
from cardan.system import layout

SOLVE_PAIR = plain(SOLVE)


def _track(op, ints, floats, q, unused, out, unused_1, work):
    known = counted_angles(ints, q)
    found = counted_angles(ints, out)
    x = cut(work, workspace(ints).features, ints[layout.WIDEST])
    record = tail(ints, layout.HEADER)
    for _ in range(ints[layout.CONSTRAINTS]):
        first = features(record)
        count = record[layout.FEATURES]
        if count > FRAMES and feature(first, count - 1)[layout.SLOT] == layout.TRACKED:
            for k in range(FRAMES, count):
                source = feature(first, k)[layout.SOURCE]
                found[source] = known[source]
            update_features(ints, record, floats, out, work, x)
            c = tail(floats, record[layout.PAR])
            table = integers_at(int(c[ADDRESS]))
            call_evaluator(table[SOLVER], SOLVE_PAIR, table, c, x, x, x, x, x)
            for k in range(FRAMES, count):
                found[feature(first, k)[layout.SOURCE]] = x[PARAMETERS + k - FRAMES]
        record = tail(ints, record[layout.NEXT])
    return 0


TRACK = evaluator(_track)
