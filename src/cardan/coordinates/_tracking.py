"""The kernel that follows contact coordinates: those of the poses in ``out`` that are near those in q.

Reads the records whose contact coordinates are in q (SLOT of their features is TRACKED), and writes them to ``out``.
The rotation matrices of ``out`` are in the workspace.  In a motion (CONTINUOUS pairs) the shapes must still touch: at
an edge, from the other side, with curvatures that cross, or far from where they touched, coordinates are not numbers.
So no solver accepts such a pose.
"""

from math import nan

from cardan.coordinates._features import update_features
from cardan.coordinates._records import counted_angles, features, workspace
from cardan.joints import tables
from cardan.joints.tables import FRAMES, PARAMETERS, REGULAR, PairParameter, PairTable, PairWork
from cardan.kernel.fields import after
from cardan.kernel.jit import evaluator, plain
from cardan.kernel.memory import call_evaluator, cut, integers_at, tail
from cardan.system.tables import FEATURE, TRACKED, Feature, SystemTable

SOLVE, JUDGE = plain(tables.SOLVE), plain(tables.JUDGE)


def _track(op, ints, floats, q, unused, out, unused_1, work):
    system = SystemTable(ints)
    known = counted_angles(system, q)
    tracked = counted_angles(system, out)
    x = cut(work, workspace(system).features, system.widest)
    record = system.records
    for _ in range(system.constraints):
        first = features(record)
        count = record.features
        if count > FRAMES and Feature(first, count - 1).slot == TRACKED:
            for k in range(FRAMES, count):
                source = Feature(first, k).source
                tracked[source] = known[source]
            update_features(system, record, floats, out, work, x)
            c = tail(floats, record.par)
            pair = PairTable(integers_at(int(PairParameter(c).address)))
            call_evaluator(pair.solver, SOLVE, pair.as_ints, c, x, x, x, x, x)
            ended = False
            if pair.numbers.continuous != 0.0:
                call_evaluator(pair.solver, JUDGE, pair.as_ints, c, x, x, x, x, x)
                ended = PairWork(tail(x, PARAMETERS + count - FRAMES)).status != REGULAR
            for k in range(FRAMES, count):
                tracked[Feature(first, k).source] = nan if ended else x[PARAMETERS + k - FRAMES]
        record = after(record, record.slots + FEATURE * record.features)
    return 0


TRACK = evaluator(_track)
