"""The spring iteration (15) of [NelsonCohen1998] on blocks of bodies: q′ = q ⊖ k C_qᵀC for each body.

A block owns some bodies and has copies of their neighbours.  It evaluates the joints of its bodies and sums, for each
body, the forces of its joints.  No other block writes to that body, so threads need no atomic additions.  Old poses are
read from one array and new poses are written to another, so an iteration is one pass over the blocks, in any order and
on any thread.
"""

from cardan._jit import call_evaluator, cut, floats_at, integers_at, jit, pointer, tail
from cardan.solvers._blocks import larger, scale_rows
from cardan.solvers.abi import JACOBIAN, JACOBIAN_SIZE, RETRACT, ROWS, UNKNOWNS, WORK
from cardan.system.layout import POSE

WIDTH = 6  # unknowns per body: the manifold formulation

# table of a block's kind, one per kind: addresses of its tables, number of its bodies, range of those it owns
INTS, FLOATS, STRUCTURE, SCALES, PULLS, ORIGIN, BODIES, OWN_FIRST, OWN_LAST, KIND = range(10)

# table of the blocks
BLOCK_KIND = 0
BLOCK_BODY = 1  # index of its first body in the whole chain
BLOCK = 2


@jit
def spring_pass(evaluate, kinds, blocks, first, last, gain, old, new, work, out):
    """One iteration of the blocks first … last − 1 from poses ``old`` to ``new``; out ← the largest scaled residual.

    pulls, for each owned body of a kind: the number of its joints, then ROW, ROWS, first entry of J and stride of each.
    """
    work = pointer(work)
    worst = 0.0
    for b in range(first, last):
        kind = tail(pointer(kinds), KIND * blocks[BLOCK * b + BLOCK_KIND])
        before = tail(pointer(old), POSE * blocks[BLOCK * b + BLOCK_BODY])
        after = tail(pointer(new), POSE * blocks[BLOCK * b + BLOCK_BODY])
        origin = floats_at(kind[ORIGIN])
        structure = integers_at(kind[STRUCTURE])
        scale = floats_at(kind[SCALES])
        bodies = kind[BODIES]
        rows = structure[ROWS]
        unknowns = structure[UNKNOWNS]
        at = structure[WORK]
        inner = cut(work, 0, at)
        q = cut(work, at, POSE * bodies)
        at += POSE * bodies
        moved = cut(work, at, POSE * bodies)
        at += POSE * bodies
        step = cut(work, at, unknowns)
        at += unknowns
        r = cut(work, at, rows)
        at += rows
        jacobian = cut(work, at, structure[JACOBIAN_SIZE])
        for i in range(POSE * bodies):
            q[i] = before[i]
        for i in range(bodies):
            for j in range(3):
                q[POSE * i + j] -= origin[j]
        own_ints = integers_at(kind[INTS])
        own_floats = floats_at(kind[FLOATS])
        call_evaluator(evaluate, JACOBIAN, own_ints, own_floats, q, step, r, jacobian, inner)
        scale_rows(structure, scale, r, jacobian)
        for i in range(unknowns):
            step[i] = 0.0
        pull = integers_at(kind[PULLS])
        for i in range(kind[OWN_FIRST], kind[OWN_LAST]):
            mine = cut(step, WIDTH * i, WIDTH)
            count = pull[0]
            pull = tail(pull, 1)
            for _ in range(count):
                entry = tail(jacobian, pull[2])
                for row in range(pull[0], pull[0] + pull[1]):
                    worst = larger(worst, abs(r[row]))
                    for k in range(WIDTH):
                        mine[k] -= entry[k] * r[row]
                    entry = tail(entry, pull[3])
                pull = tail(pull, 4)
            for k in range(WIDTH):
                mine[k] *= gain * scale[rows + WIDTH * i + k]
        call_evaluator(evaluate, RETRACT, own_ints, own_floats, q, step, moved, jacobian, inner)
        for i in range(kind[OWN_FIRST], kind[OWN_LAST]):
            for j in range(POSE):
                after[POSE * i + j] = moved[POSE * i + j]
            for j in range(3):
                after[POSE * i + j] += origin[j]
    out[0] = worst
    return last
