"""The spring iteration (15) of [NelsonCohen1998] on blocks of bodies: q′ = q ⊖ k C_qᵀC, body by body.

A block owns some bodies and holds copies of their neighbours.  It evaluates the joints of its bodies and gathers, for
each body, the pulls of its own joints; nobody else writes to that body, so threads need no atomic additions.  New poses
go to another array than old ones are read from: an iteration is one pass over the blocks, in any order and on any
thread.
"""

from cardan._jit import call_evaluator, jit
from cardan.solvers._blocks import scale_rows
from cardan.solvers.abi import JACOBIAN, JACOBIAN_SIZE, RETRACT, ROWS, UNKNOWNS, WORK
from cardan.system.layout import POSE

WIDTH = 6  # unknowns per body: the manifold formulation

# table of a block's kind, one per kind
INTS = 0  # where its parts begin in the common tables
FLOATS = 1
STRUCTURE = 2
SCALES = 3
PULLS = 4
BODIES = 5
OWN_FIRST = 6  # which of its bodies it owns
OWN_LAST = 7
KIND = 8

# table of the blocks
BLOCK_KIND = 0
BLOCK_BODY = 1  # the body of the whole that is its first
BLOCK = 2


@jit
def spin(count, x):
    """Arithmetic and nothing else, for what a second core is worth: count multiplications in four chains."""
    a = b = c = d = x
    for _ in range(count // 4):
        a = a * 1.0000001 + 1e-9
        b = b * 1.0000001 + 1e-9
        c = c * 1.0000001 + 1e-9
        d = d * 1.0000001 + 1e-9
    return a + b + c + d


@jit
def spring_pass(
    evaluate, kinds, blocks, ints, floats, structures, scales, pulls, origins, first, last, gain, old, new, work, out
):
    """One iteration of the blocks first … last − 1 from poses ``old`` to ``new``; out ← the largest scaled residual.

    pulls, per own body of a kind: how many joints it has, then for each ROW, ROWS, the first entry of J and its stride.
    """
    worst = 0.0
    for b in range(first, last):
        kind = kinds[KIND * blocks[BLOCK * b + BLOCK_KIND] :]
        offset = POSE * blocks[BLOCK * b + BLOCK_BODY]
        origin = origins[3 * blocks[BLOCK * b + BLOCK_KIND] :]
        structure = structures[kind[STRUCTURE] :]
        scale = scales[kind[SCALES] :]
        bodies = kind[BODIES]
        rows = structure[ROWS]
        unknowns = structure[UNKNOWNS]
        at = structure[WORK]
        q = work[at : at + POSE * bodies]
        at += POSE * bodies
        moved = work[at : at + POSE * bodies]
        at += POSE * bodies
        step = work[at : at + unknowns]
        at += unknowns
        r = work[at : at + rows]
        at += rows
        jacobian = work[at : at + structure[JACOBIAN_SIZE]]
        for i in range(POSE * bodies):
            q[i] = old[offset + i]
        for i in range(bodies):
            for j in range(3):
                q[POSE * i + j] -= origin[j]
        own_ints = ints[kind[INTS] :]
        own_floats = floats[kind[FLOATS] :]
        call_evaluator(evaluate, JACOBIAN, own_ints, own_floats, q, step, r, jacobian, work)
        scale_rows(structure, scale, r, jacobian)
        for i in range(unknowns):
            step[i] = 0.0
        pull = kind[PULLS]
        for i in range(kind[OWN_FIRST], kind[OWN_LAST]):
            count = pulls[pull]
            pull += 1
            for _ in range(count):
                entry = pulls[pull + 2]
                for row in range(pulls[pull], pulls[pull] + pulls[pull + 1]):
                    worst = max(worst, abs(r[row]))
                    for k in range(WIDTH):
                        step[WIDTH * i + k] -= jacobian[entry + k] * r[row]
                    entry += pulls[pull + 3]
                pull += 4
            for k in range(WIDTH):
                step[WIDTH * i + k] *= gain * scale[rows + WIDTH * i + k]
        call_evaluator(evaluate, RETRACT, own_ints, own_floats, q, step, moved, jacobian, work)
        for i in range(kind[OWN_FIRST], kind[OWN_LAST]):
            for j in range(POSE):
                new[offset + POSE * i + j] = moved[POSE * i + j]
            for j in range(3):
                new[offset + POSE * i + j] += origin[j]
    out[0] = worst
    return last
