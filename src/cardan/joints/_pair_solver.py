"""The solver of a pair as one kernel, which is called by its address: contact coordinates, their rates, curvatures."""

from math import nan, sqrt

from cardan.joints import abi as own
from cardan.joints._pair import NONE, RATES, evaluate, newton, open_pose, solve_step, space
from cardan.joints._pair_curvature import judge
from cardan.joints._vectors import apply, dot
from cardan.joints.abi import (
    AIMED,
    B_PART,
    CROSSED,
    CROSSING,
    FAR,
    FRAME,
    GAP,
    HELD,
    LEAST,
    LOST,
    MOST,
    ON_CURVE,
    PARAMETERS,
    REGULAR,
    ROWS_A,
    ROWS_B,
    SHAPE,
    STATUS,
    STEP,
    TOP,
)
from cardan.kernel.jit import evaluator, inner, plain
from cardan.kernel.memory import floats_at, tail

STARTS = 8  # pairs of samples from which Newton's method is tried
AIM = TOP + 36  # score and numbers of the pair of samples to which the bodies are led
TOUCHES = 1e-9  # of the curvatures: with a difference below minus this, the shapes cross (`pairs.CROSSED`)
ROUND = 1e-2  # the least relative curvature of samples at which a contact is made, times the size
FLAT = 1e-5  # the least relative curvature in a motion, times the size: with a smaller one the contact is not a point
ITERATIONS, TRIED = plain(30), plain(15)  # of Newton's method; from a pair of samples
JUDGE = plain(own.JUDGE)


@inner
def start_from(table, x, w, i, j):
    """Contact coordinates ← those of two samples; along directions without end, where the samples are opposite."""
    for k in range(2):
        shape = tail(table, SHAPE + B_PART * k)
        q = tail(x, PARAMETERS + (table[SHAPE + own.WIDTH] if k == 1 else 0))
        sample = tail(floats_at(shape[own.SAMPLES]), own.SAMPLE * (j if k == 1 else i))
        for p in range(shape[own.WIDTH]):
            q[p] = sample[p]
        if k == 1 and table[own.ENDLESS] != own.BOUNDED:
            p = tail(w, TOP + 3 * STARTS)
            apply(tail(w, FRAME), tail(sample, 3), p)
            first = tail(x, PARAMETERS)
            if table[own.ENDLESS] == own.ALONG_Z:
                first[1] = p[2] + w[FRAME + 11]
            else:
                first[0] = p[0] + w[FRAME + 9]
                if table[own.ENDLESS] == own.ALONG_XY:
                    first[1] = p[1] + w[FRAME + 10]


@inner
def rank_samples(table, w):
    """TOP ← the pairs of samples that are most nearly opposite and close: score, numbers.  ON_CURVE: the nearest ones.

    AIM ← of the pairs whose curvatures allow a contact at any angle about the normal, the best one.
    """
    first = tail(table, SHAPE)
    second = tail(table, SHAPE + B_PART)
    numbers = floats_at(table[own.NUMBERS])
    side = numbers[own.SIDE]
    scale = numbers[own.SIZE] * numbers[own.SIZE]
    top = tail(w, TOP)
    for k in range(STARTS):
        top[3 * k] = NONE
        top[3 * k + 1] = 0.0
        top[3 * k + 2] = 0.0
    w[AIM] = NONE
    moved = tail(top, 3 * STARTS)
    endless = table[own.ENDLESS]
    on_curve = table[own.FORM] == ON_CURVE
    opposed = first[own.FREEDOMS] == second[own.FREEDOMS] and table[own.FORM] != CROSSED
    for j in range(second[own.COUNT]):
        b = tail(floats_at(second[own.SAMPLES]), own.SAMPLE * j)
        apply(tail(w, FRAME), tail(b, 3), moved)
        apply(tail(w, FRAME), tail(b, 6), tail(moved, 3))
        for c in range(3):
            moved[c] += w[FRAME + 9 + c]
        for i in range(first[own.COUNT]):
            a = tail(floats_at(first[own.SAMPLES]), own.SAMPLE * i)
            along = 0.0
            square = 0.0
            cosine = 0.0
            for c in range(3):
                r = moved[c] - a[3 + c]
                free = (endless == own.ALONG_Z and c == 2) or (endless == own.ALONG_XY and c < 2)
                if free or (endless == own.ALONG_X and c == 0):
                    r = 0.0
                along += side * a[6 + c] * r
                square += r * r
                cosine += side * a[6 + c] * moved[3 + c]
            score = square if on_curve else square - 0.75 * along * along
            if opposed:
                score += scale * (1.0 + cosine) * (1.0 + cosine)
            bent = b[own.LEAST_BENT] + (a[own.LEAST_BENT] if side > 0.0 else -a[own.MOST_BENT])
            if opposed and score < w[AIM] and bent * numbers[own.SIZE] > ROUND:
                w[AIM] = score
                w[AIM + 1] = i
                w[AIM + 2] = j
            k = STARTS
            while k > 0 and score < top[3 * k - 3]:
                k -= 1
                if k < STARTS - 1:
                    for c in range(3):
                        top[3 * k + 3 + c] = top[3 * k + c]
            if k < STARTS:
                top[3 * k] = score
                top[3 * k + 1] = i
                top[3 * k + 2] = j


@inner
def crosses(table, w):
    """Whether the shapes cross at a regular pair."""
    judge(table, w)
    return w[LEAST] < -TOUCHES * w[MOST]


@inner
def distance(table, w):
    """|gap|; of a point on a curve |S² − S¹|, since it has no normal."""
    if table[own.FORM] != ON_CURVE:
        return abs(w[GAP])
    square = 0.0
    for c in range(3):
        r = w[ROWS_B + c] - w[ROWS_A + c]
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
    saved = tail(w, TOP + 3 * STARTS + 3)
    if known:
        for p in range(width):
            saved[p] = x[PARAMETERS + p]
    for k in range(STARTS):  # `newton` overwrites the first of them, when it is in use
        if k == 0 or w[TOP + 3 * k] < NONE:
            i = int(w[TOP + 3 * k + 1])
            j = int(w[TOP + 3 * k + 2])
            start_from(table, x, w, i, j)
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
    if found != REGULAR and w[AIM] < NONE:
        start_from(table, x, w, int(w[AIM + 1]), int(w[AIM + 2]))
        return AIMED
    for p in range(width):
        x[PARAMETERS + p] = saved[p]
    return REGULAR if found == CROSSING else found


def _solve(op, table, unused, x, unused_1, unused_2, unused_3, unused_4):
    """SOLVE: contact coordinates in x ← solved; workspace ← values there; STATUS.  RATES: STEP ← ṡ as lengths.
    JUDGE, after SOLVE: LEAST and MOST, and the status CROSSING where the curvature of a CONTINUOUS pair is too small.

    Coordinates that are all zero, or not finite, are not known: the pair is searched for.  So it is where Newton's
    method fails, or finds a pair at which the shapes cross.  But coordinates of a CONTINUOUS pair that are not finite
    are LOST: the values are no numbers.
    """
    w = space(table, x)
    n = table[SHAPE + own.FREEDOMS] + table[SHAPE + B_PART + own.FREEDOMS]
    if op == RATES:
        for k in range(n):
            w[HELD + k] = 0.0
        if not solve_step(table, w, RATES):
            for k in range(n):
                w[STEP + k] = nan
        return 0
    continuous = floats_at(table[own.NUMBERS])[own.CONTINUOUS] != 0.0
    if op == JUDGE:
        judge(table, w)
        if continuous and w[STATUS] == REGULAR and not w[LEAST] > FLAT:
            w[STATUS] = CROSSING
        return 0
    open_pose(x, w)
    width = table[SHAPE + own.WIDTH] + table[SHAPE + B_PART + own.WIDTH]
    known = False
    finite = True
    for p in range(width):
        known = known or x[PARAMETERS + p] != 0.0
        finite = finite and abs(x[PARAMETERS + p]) < NONE
    if continuous and not finite:
        for k in range(ROWS_A, GAP + 1):
            w[k] = nan
        w[STATUS] = LOST
        return 0
    status = FAR
    if known and finite:
        at = PARAMETERS
        for k in range(2):
            shape = tail(table, SHAPE + B_PART * k)
            if shape[own.WIDTH] > shape[own.FREEDOMS]:  # a unit vector
                f = 1.0 / sqrt(dot(tail(x, at), tail(x, at)))
                for c in range(3):
                    x[at + c] *= f
            at += shape[own.WIDTH]
        status = newton(table, x, w, ITERATIONS, continuous)
    crossing = False
    if status == REGULAR and not continuous:
        crossing = crosses(table, w)
    if crossing or (status != REGULAR and not (continuous and known)):
        status = search(table, x, w, width, crossing)
        evaluate(table, x, w)
    known = False
    for p in range(width):
        known = known or x[PARAMETERS + p] != 0.0
    if not known and width > 0:
        x[PARAMETERS] = own.ZERO
    w[STATUS] = status
    return 0


SOLVE_PAIR = evaluator(_solve)
