"""The kernel that follows contact coordinates: those of the poses in ``out`` that are near those in q.

Reads the records whose contact coordinates are in q (SLOT of their features is TRACKED), and writes them to ``out``.
The rotation matrices of ``out`` are in the workspace.  In a motion (CONTINUOUS pairs) the shapes must still touch: at
an edge, from the other side, with curvatures that cross, or far from where they touched, coordinates are not numbers.
So no solver accepts such a pose.
"""

from math import nan

from cardan.coordinates._features import update_features
from cardan.coordinates._records import counted_angles, feature, features, workspace
from cardan.joints import tables
from cardan.joints.tables import FRAMES, PARAMETERS, REGULAR, PairParameter, PairTable, PairWork
from cardan.kernel.jit import evaluator, plain
from cardan.kernel.memory import call_evaluator, cut, integers_at, tail
from cardan.system import layout

SOLVE, JUDGE = plain(tables.SOLVE), plain(tables.JUDGE)


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
            pair = PairTable(integers_at(int(PairParameter(c).address)))
            call_evaluator(pair.solver, SOLVE, pair.as_ints, c, x, x, x, x, x)
            ended = False
            if pair.numbers.continuous != 0.0:
                call_evaluator(pair.solver, JUDGE, pair.as_ints, c, x, x, x, x, x)
                ended = PairWork(tail(x, PARAMETERS + count - FRAMES)).status != REGULAR
            for k in range(FRAMES, count):
                found[feature(first, k)[layout.SOURCE]] = nan if ended else x[PARAMETERS + k - FRAMES]
        record = tail(ints, record[layout.NEXT])
    return 0


TRACK = evaluator(_track)
