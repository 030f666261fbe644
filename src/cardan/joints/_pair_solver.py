"""The solver of a pair as one kernel, which is called by its address: contact coordinates, their rates, curvatures."""

from math import nan, sqrt

from cardan.joints import tables
from cardan.joints._pair import NONE, RATES, evaluate, newton, open_pose, solve_step, space
from cardan.joints._pair_curvature import judge
from cardan.joints._vectors import apply, dot
from cardan.joints.tables import (
    AIMED,
    ALONG_X,
    ALONG_XY,
    ALONG_Z,
    BOUNDED,
    CROSSED,
    CROSSING,
    FAR,
    LOST,
    ON_CURVE,
    PARAMETERS,
    REGULAR,
    STARTS,
    ZERO,
    Candidate,
    PairShape,
    PairTable,
    Sample,
)
from cardan.kernel.jit import evaluator, inner, plain
from cardan.kernel.memory import tail

TOUCHES = 1e-9  # of the curvatures: with a difference below minus this, the shapes cross (`pairs.CROSSED`)
ROUND = 1e-2  # the least relative curvature of samples at which a contact is made, times the size
FLAT = 1e-5  # the least relative curvature in a motion, times the size: with a smaller one the contact is not a point
ITERATIONS, TRIED = plain(30), plain(15)  # of Newton's method; from a pair of samples
JUDGE = plain(tables.JUDGE)


@inner
def start_from(table, x, w, i, j):
    """Contact coordinates ← those of two samples; along directions without end, where the samples are opposite."""
    for k in range(2):
        shape = PairShape(table.shapes, k)
        q = tail(x, PARAMETERS + (PairShape(table.shapes).width if k == 1 else 0))
        sample = Sample(shape.samples, j if k == 1 else i)
        for p in range(shape.width):
            q[p] = sample.coordinates[p]
        if k == 1 and table.endless != BOUNDED:
            p = w.moved
            apply(w.R_AB, sample.point, p)
            first = tail(x, PARAMETERS)
            if table.endless == ALONG_Z:
                first[1] = p[2] + w.p_AB[2]
            else:
                first[0] = p[0] + w.p_AB[0]
                if table.endless == ALONG_XY:
                    first[1] = p[1] + w.p_AB[1]


@inner
def rank_samples(table, w):
    """ranks ← the pairs of samples that are most nearly opposite and close.  ON_CURVE: the nearest.

    aim ← of the pairs whose curvatures allow a contact at any angle about the normal, the best one.
    """
    first = PairShape(table.shapes)
    second = PairShape(table.shapes, 1)
    numbers = table.numbers
    side = numbers.side
    scale = numbers.extent * numbers.extent
    for k in range(STARTS):
        rank = Candidate(w.ranks, k)
        rank.score = NONE
        rank.first = 0.0
        rank.second = 0.0
    aim = Candidate(w.aim)
    aim.score = NONE
    moved = w.moved
    endless = table.endless
    on_curve = table.form == ON_CURVE
    opposed = first.freedoms == second.freedoms and table.form != CROSSED
    for j in range(second.count):
        b = Sample(second.samples, j)
        apply(w.R_AB, b.point, moved)
        apply(w.R_AB, b.normal, tail(moved, 3))
        for c in range(3):
            moved[c] += w.p_AB[c]
        for i in range(first.count):
            a = Sample(first.samples, i)
            along = 0.0
            square = 0.0
            cosine = 0.0
            for c in range(3):
                r = moved[c] - a.point[c]
                free = (endless == ALONG_Z and c == 2) or (endless == ALONG_XY and c < 2)
                if free or (endless == ALONG_X and c == 0):
                    r = 0.0
                along += side * a.normal[c] * r
                square += r * r
                cosine += side * a.normal[c] * moved[3 + c]
            score = square if on_curve else square - 0.75 * along * along
            if opposed:
                score += scale * (1.0 + cosine) * (1.0 + cosine)
            bent = b.least_bent + (a.least_bent if side > 0.0 else -a.most_bent)
            if opposed and score < aim.score and bent * numbers.extent > ROUND:
                aim.score = score
                aim.first = i
                aim.second = j
            k = STARTS
            while k > 0 and score < Candidate(w.ranks, k - 1).score:
                k -= 1
                if k < STARTS - 1:
                    worse = Candidate(w.ranks, k)
                    rank = Candidate(w.ranks, k + 1)
                    rank.score = worse.score
                    rank.first = worse.first
                    rank.second = worse.second
            if k < STARTS:
                rank = Candidate(w.ranks, k)
                rank.score = score
                rank.first = i
                rank.second = j


@inner
def crosses(table, w):
    """Whether the shapes cross at a regular pair."""
    judge(table, w)
    return w.least < -TOUCHES * w.most


@inner
def distance(table, w):
    """|gap|; of a point on a curve |S² − S¹|, since it has no normal."""
    if table.form != ON_CURVE:
        return abs(w.gap)
    square = 0.0
    for c in range(3):
        r = w.rows_b[c] - w.rows_a[c]
        square += r * r
    return sqrt(square)


@inner
def search(table, x, w, width, known):
    """Contact coordinates ← of the regular pairs found from samples the one of least distance; returns a status.

    Pairs at which the shapes do not cross are preferred.  Without one: AIMED, the nearest two samples that can touch;
    the bodies are led there.  Without these: a pair that crosses, first the known one; or the best pair of samples,
    moved as far as Newton's method leads.
    """
    rank_samples(table, w)
    best = NONE
    found = CROSSING if known else FAR
    saved = w.saved
    if known:
        for p in range(width):
            saved[p] = x[PARAMETERS + p]
    for k in range(STARTS):  # `newton` overwrites the first of them, when it is in use
        rank = Candidate(w.ranks, k)
        if k == 0 or rank.score < NONE:
            start_from(table, x, w, int(rank.first), int(rank.second))
            status = newton(table, x, w, TRIED, False)
            value = distance(table, w)
            if status == REGULAR and crosses(table, w):
                status = CROSSING
            better = status == REGULAR and (found != REGULAR or value < best)
            if better or (
                status == CROSSING and found != REGULAR and not known and (found != CROSSING or value < best)
            ):
                found = status
                best = value
                for p in range(width):
                    saved[p] = x[PARAMETERS + p]
            elif found != REGULAR and found != CROSSING and k == 0:
                found = status
                for p in range(width):
                    saved[p] = x[PARAMETERS + p]
    aim = Candidate(w.aim)
    if found != REGULAR and aim.score < NONE:
        start_from(table, x, w, int(aim.first), int(aim.second))
        return AIMED
    for p in range(width):
        x[PARAMETERS + p] = saved[p]
    return REGULAR if found == CROSSING else found


@inner
def is_any(x, width):
    """Whether a contact coordinate is not zero: only then are they known."""
    known = False
    for p in range(width):
        known = known or x[PARAMETERS + p] != 0.0
    return known


@inner
def lose(w):
    """The values of a pair that is LOST: no numbers."""
    for k in range(18):
        w.rows_a[k] = nan
        w.rows_b[k] = nan
    for k in range(9):
        w.normal[k] = nan
    for k in range(3):
        w.unit[k] = nan
    w.gap = nan
    w.status = LOST


@inner
def normalise(table, x):
    """Contact coordinates of spheres ← unit vectors."""
    at = PARAMETERS
    for k in range(2):
        shape = PairShape(table.shapes, k)
        if shape.width > shape.freedoms:
            f = 1.0 / sqrt(dot(tail(x, at), tail(x, at)))
            for c in range(3):
                x[at + c] *= f
        at += shape.width


@inner
def solve_pair(table, x, w, continuous):
    """Contact coordinates in x ← solved; workspace ← values there, and the status."""
    open_pose(x, w)
    width = PairShape(table.shapes).width + PairShape(table.shapes, 1).width
    known = is_any(x, width)
    finite = True
    for p in range(width):
        finite = finite and abs(x[PARAMETERS + p]) < NONE
    if continuous and not finite:
        lose(w)
        return
    status = FAR
    if known and finite:
        normalise(table, x)
        status = newton(table, x, w, ITERATIONS, continuous)
    crossing = False
    if status == REGULAR and not continuous:
        crossing = crosses(table, w)
    if crossing or (status != REGULAR and not (continuous and known)):
        status = search(table, x, w, width, crossing)
        evaluate(table, x, w)
    if width > 0 and not is_any(x, width):
        x[PARAMETERS] = ZERO
    w.status = status


def _solve(op, ints, unused, x, unused_1, unused_2, unused_3, unused_4):
    """SOLVE: contact coordinates in x ← solved; workspace ← values there, and the status.  RATES: step ← ṡ as lengths.
    JUDGE, after SOLVE: least and most, and the status CROSSING where the curvature of a continuous pair is too small.

    Coordinates that are all zero, or not finite, are not known: the pair is searched for.  So it is where Newton's
    method fails, or finds a pair at which the shapes cross.  But coordinates of a continuous pair that are not finite
    are LOST: the values are no numbers.
    """
    table = PairTable(ints)
    w = space(table, x)
    continuous = table.numbers.continuous != 0.0
    if op == RATES:
        n = PairShape(table.shapes).freedoms + PairShape(table.shapes, 1).freedoms
        for k in range(n):
            w.held[k] = 0.0
        if not solve_step(table, w, RATES):
            for k in range(n):
                w.step[k] = nan
    elif op == JUDGE:
        judge(table, w)
        if continuous and w.status == REGULAR and not w.least > FLAT:
            w.status = CROSSING
    else:
        solve_pair(table, x, w, continuous)
    return 0


SOLVE_PAIR = evaluator(_solve)
