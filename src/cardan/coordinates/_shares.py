"""The spring step by groups of constraints and of bodies, so that several threads can share it.

A group of constraints has a copy of its records with body numbers of its own, counted from zero, so that an evaluator
reads only the poses of these bodies.  Its rows and its entries of J are written to their places in r and J.  A group
of bodies adds up, for each of its bodies, the forces of all its constraints, in the order of the constraints, and moves
the body.  No two groups write to the same place, so the results do not depend on the number of threads.
"""

from cardan.kernel.jit import exact
from cardan.kernel.memory import call_evaluator, cut, pointer, tail
from cardan.solvers import abi
from cardan.solvers._gradient import (
    GROUP,
    SLOPES,
    SUMS,
    add_bound,
    add_pull,
    block_step,
    is_due,
    row_width,
    scale_group,
    scale_step,
)
from cardan.system import layout

# place of a group of constraints: its table of integers, its bodies, its constraints in the structure, rows, entries
P_INTS, P_MEMBERS, P_BODIES, P_CONSTRAINT, P_CONSTRAINTS, P_ROW, P_ENTRY, PLACE = range(8)
# a constraint on a body: its record in the structure, its slot
PULL_CONSTRAINT, PULL_SLOT, PULL = range(3)


@exact
def fill_shares(ints, structure, parts, places, members, numbers):
    """Tables of all groups of constraints.  numbers: −1 for each body, before and after."""
    count = ints[layout.CONSTRAINTS]
    record = layout.HEADER
    constraint = abi.HEADER
    end = 0
    member = 0
    for group in range(0, count, GROUP):
        own = min(GROUP, count - group)
        place = group // GROUP * PLACE
        first = end
        places[place + P_INTS] = first
        places[place + P_MEMBERS] = member
        places[place + P_CONSTRAINT] = constraint
        places[place + P_CONSTRAINTS] = own
        places[place + P_ROW] = structure[constraint + abi.C_ROW]
        places[place + P_ENTRY] = structure[constraint + abi.C_ENTRY]
        row = ints[record + layout.ROW]
        block = ints[record + layout.BLOCK]
        for i in range(layout.HEADER):
            parts[first + i] = ints[i]
        end += layout.HEADER
        bodies = 0
        for _ in range(own):
            size = ints[record + layout.NEXT] - record
            for i in range(size):
                parts[end + i] = ints[record + i]
            parts[end + layout.ROW] -= row
            parts[end + layout.BLOCK] -= block
            parts[end + layout.NEXT] = end + size - first
            slots = ints[record + layout.SLOTS]
            for s in range(slots):
                body = ints[record + layout.RECORD + s]
                if numbers[body] < 0:
                    numbers[body] = bodies
                    members[member + bodies] = body
                    bodies += 1
                parts[end + layout.RECORD + s] = numbers[body]
            for k in range(ints[record + layout.FEATURES]):
                at = layout.RECORD + slots + layout.FEATURE * k + layout.BODY
                if ints[record + at] >= 0:
                    parts[end + at] = numbers[ints[record + at]]
            end += size
            record = ints[record + layout.NEXT]
            constraint += abi.C_BLOCKS + structure[constraint + abi.C_SLOTS]
        parts[first + layout.BODIES] = bodies
        parts[first + layout.CONSTRAINTS] = own
        places[place + P_BODIES] = bodies
        for k in range(bodies):
            numbers[members[member + k]] = -1
        member += bodies


@exact
def fill_pulls(structure, starts, pulls):
    """The constraints on each block, in their order; starts: of each block, and the end."""
    blocks = structure[abi.BLOCKS]
    for k in range(blocks + 1):
        starts[k] = 0
    for turn in range(2):
        constraint = abi.HEADER
        for _ in range(structure[abi.CONSTRAINTS]):
            slots = structure[constraint + abi.C_SLOTS]
            for s in range(slots):
                block = structure[constraint + abi.C_BLOCKS + s]
                if turn == 0:
                    starts[block + 1] += 1
                else:
                    pulls[PULL * starts[block] + PULL_CONSTRAINT] = constraint
                    pulls[PULL * starts[block] + PULL_SLOT] = s
                    starts[block] += 1
            constraint += abi.C_BLOCKS + slots
        if turn == 0:
            for k in range(blocks):
                starts[k + 1] += starts[k]
    for k in range(blocks, 0, -1):
        starts[k] = starts[k - 1]
    starts[0] = 0


@exact
def evaluate_groups(tables, shared, first, last, q, r, jacobian, sums, work):
    """r and J, scaled, of the groups of constraints first … last − 1 in the poses q, and their sums.

    tables: evaluator, integers, places and bodies of all groups, floats.  shared: structure, scales, control.
    """
    evaluate, parts, places, members, floats = tables
    structure, scales, control = shared
    places = pointer(places)
    structure = pointer(structure)
    jacobian = pointer(jacobian)
    bodies = structure[abi.BLOCKS]
    counted = structure[abi.COORDINATES] - layout.POSE * bodies
    is_measured = control[abi.MEASURED] != 0.0
    for group in range(first, last):
        place = tail(places, PLACE * group)
        size = layout.POSE * place[P_BODIES]
        own = cut(pointer(work), 0, size + counted)
        rest = tail(pointer(work), size + counted)
        for k in range(place[P_BODIES]):
            pose = layout.POSE * members[place[P_MEMBERS] + k]
            for i in range(layout.POSE):
                own[layout.POSE * k + i] = q[pose + i]
        for i in range(counted):
            own[size + i] = q[layout.POSE * bodies + i]
        table = tail(pointer(parts), place[P_INTS])
        rows = tail(pointer(r), place[P_ROW])
        entries = tail(jacobian, place[P_ENTRY])
        call_evaluator(evaluate, abi.JACOBIAN, table, pointer(floats), own, own, rows, entries, rest)
        scale_group(
            structure,
            tail(structure, place[P_CONSTRAINT]),
            place[P_CONSTRAINTS],
            pointer(scales),
            is_measured,
            pointer(r),
            jacobian,
            tail(pointer(sums), SUMS * group),
        )


@exact
def move_groups(tables, shared, first, last, poses, equations, steps, gathers, work):
    """moved ← q with the bodies of the groups first … last − 1 moved by a spring step.

    gathers ≠ 0: their directions are computed before, and their slopes.  tables: evaluator, header of a table without
    constraints, constraints of each body, floats.  shared: structure, scales, control.  poses: q, moved.  equations: r,
    J.  steps: directions, steps, bounds, slopes.
    """
    evaluate, header, starts, pulls, floats = tables
    structure, scales, control = shared
    q, moved = poses
    r, jacobian = equations
    direction, step, bound, slopes = steps
    structure = pointer(structure)
    direction = pointer(direction)
    offsets = tail(structure, structure[abi.OFFSETS])
    rows = structure[abi.ROWS]
    renewed = is_due(control)
    for group in range(first, last):
        begin = GROUP * group
        end = min(begin + GROUP, structure[abi.BLOCKS])
        if gathers != 0:
            own = tail(pointer(slopes), SLOPES * group)
            own[0] = 0.0
            own[1] = 0.0
            for b in range(begin, end):
                width = offsets[b + 1] - offsets[b]
                g = tail(direction, offsets[b])
                limit = tail(pointer(bound), offsets[b])
                for k in range(width):
                    g[k] = 0.0
                    if renewed:
                        limit[k] = 0.0
                for p in range(starts[b], starts[b + 1]):
                    constraint = tail(structure, pulls[PULL * p + PULL_CONSTRAINT])
                    slot = pulls[PULL * p + PULL_SLOT]
                    at = 0
                    for s in range(slot):
                        other = constraint[abi.C_BLOCKS + s]
                        at += offsets[other + 1] - offsets[other]
                    stride = row_width(structure, constraint)
                    add_pull(constraint, at, stride, width, pointer(r), pointer(jacobian), g)
                    if renewed:
                        add_bound(structure, constraint, slot, at, stride, pointer(jacobian), limit)
                block_step(control, width, g, limit, own)
        unknown = offsets[begin]
        count = offsets[end] - unknown
        delta = tail(pointer(step), unknown)
        scale_step(control, count, tail(direction, unknown), tail(pointer(scales), rows + unknown), delta)
        header[layout.BODIES] = end - begin
        old = tail(pointer(q), layout.POSE * begin)
        new = tail(pointer(moved), layout.POSE * begin)
        call_evaluator(evaluate, abi.RETRACT, pointer(header), pointer(floats), old, delta, new, new, pointer(work))
