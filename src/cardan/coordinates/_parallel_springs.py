"""The spring step by groups of constraints and of bodies, so that several threads can share it.

A group of constraints has a copy of its records with body numbers of its own, counted from zero, so that an evaluator
reads only the poses of these bodies.  Its rows and its entries of J are written to their places in r and J.  A group
of bodies adds up, for each of its bodies, the forces of all its constraints, in the order of the constraints, and moves
the body.  No two groups write to the same place, so the results do not depend on the number of threads.
"""

from cardan.coordinates.tables import Place, Pull, Springs
from cardan.kernel.fields import after
from cardan.kernel.jit import exact
from cardan.kernel.memory import call_evaluator, cut, pointer, tail
from cardan.solvers._gradient import GROUP, add_bound, add_pull, block_step, is_due, row_width, scale_group, scale_step
from cardan.solvers.tables import JACOBIAN, RETRACT, Constraint, Slope, Structure, Sums
from cardan.system.tables import HEADER, POSE, RECORD, Feature, Record, SystemTable

STRUCTURE, CONSTRAINT = Structure.size, Constraint.size


@exact
def fill_shares(ints, structure, parts, places, members, numbers):
    """Tables of all groups of constraints.  numbers: −1 for each body, before and after."""
    ints = pointer(ints)
    parts = pointer(parts)
    structure = pointer(structure)
    count = SystemTable(ints).constraints
    at = HEADER
    constraint = STRUCTURE
    end = 0
    member = 0
    for group in range(0, count, GROUP):
        constraints = min(GROUP, count - group)
        first = end
        place = Place(places, group // GROUP)
        place.ints = first
        place.members = member
        place.constraint = constraint
        place.constraints = constraints
        place.row = Constraint(tail(structure, constraint)).row
        place.entry = Constraint(tail(structure, constraint)).entry
        row = Record(tail(ints, at)).row
        block = Record(tail(ints, at)).block
        for i in range(HEADER):
            parts[first + i] = ints[i]
        end += HEADER
        bodies = 0
        for _ in range(constraints):
            size = Record(tail(ints, at)).next - at
            for i in range(size):
                parts[end + i] = ints[at + i]
            record = Record(tail(parts, end))
            record.row -= row
            record.block -= block
            record.next = end + size - first
            for s in range(record.slots):
                body = record.bodies[s]
                if numbers[body] < 0:
                    numbers[body] = bodies
                    members[member + bodies] = body
                    bodies += 1
                record.bodies[s] = numbers[body]
            for k in range(record.features):
                feature = Feature(tail(parts, end + RECORD + record.slots), k)
                if feature.body >= 0:
                    feature.body = numbers[feature.body]
            end += size
            at += size
            constraint += CONSTRAINT + Constraint(tail(structure, constraint)).slots
        part = SystemTable(tail(parts, first))
        part.bodies = bodies
        part.constraints = constraints
        place.bodies = bodies
        for k in range(bodies):
            numbers[members[member + k]] = -1
        member += bodies


@exact
def fill_pulls(structure, starts, pulls):
    """The constraints on each block, in their order; starts: of each block, and the end."""
    table = Structure(structure)
    blocks = table.blocks
    for k in range(blocks + 1):
        starts[k] = 0
    for turn in range(2):
        constraint = table.records
        at = STRUCTURE
        for _ in range(table.constraints):
            slots = constraint.slots
            for s in range(slots):
                block = constraint.blocks[s]
                if turn == 0:
                    starts[block + 1] += 1
                else:
                    pull = Pull(pulls, starts[block])
                    pull.constraint = at
                    pull.slot = s
                    starts[block] += 1
            at += CONSTRAINT + slots
            constraint = after(constraint, slots)
        if turn == 0:
            for k in range(blocks):
                starts[k + 1] += starts[k]
    for k in range(blocks, 0, -1):
        starts[k] = starts[k - 1]
    starts[0] = 0


@exact
def evaluate_groups(springs, first, last, q, work):
    """r and J, scaled, of the groups of constraints first … last − 1 in the poses q, and their sums."""
    springs = Springs(springs)
    structure = springs.structure
    bodies = structure.blocks
    counted = structure.coordinates - POSE * bodies
    is_measured = springs.control.measured != 0.0
    for group in range(first, last):
        place = Place(springs.places, group)
        size = POSE * place.bodies
        poses = cut(pointer(work), 0, size + counted)
        rest = tail(pointer(work), size + counted)
        for k in range(place.bodies):
            pose = POSE * springs.members[place.members + k]
            for i in range(POSE):
                poses[POSE * k + i] = q[pose + i]
        for i in range(counted):
            poses[size + i] = q[POSE * bodies + i]
        table = tail(springs.parts, place.ints)
        rows = tail(springs.r, place.row)
        entries = tail(springs.jacobian, place.entry)
        call_evaluator(springs.evaluator, JACOBIAN, table, springs.floats, poses, poses, rows, entries, rest)
        scale_group(
            structure,
            Constraint(tail(structure.as_ints, place.constraint)),
            place.constraints,
            springs.scales,
            is_measured,
            springs.r,
            springs.jacobian,
            Sums(springs.sums, group),
        )


@exact
def move_groups(springs, first, last, q, moved, gathers, work):
    """moved ← q with the bodies of the groups first … last − 1 moved by a spring step.

    gathers ≠ 0: their directions are computed before, and their slopes.
    """
    springs = Springs(springs)
    structure = springs.structure
    control = springs.control
    starts = springs.starts
    header = springs.header
    offsets = structure.offsets
    rows = structure.rows
    renewed = is_due(control)
    for group in range(first, last):
        begin = GROUP * group
        end = min(begin + GROUP, structure.blocks)
        if gathers != 0:
            slope = Slope(springs.slopes, group)
            slope.slope = 0.0
            slope.square = 0.0
            for b in range(begin, end):
                width = offsets[b + 1] - offsets[b]
                g = tail(springs.direction, offsets[b])
                limit = tail(springs.bound, offsets[b])
                for k in range(width):
                    g[k] = 0.0
                    if renewed:
                        limit[k] = 0.0
                for p in range(starts[b], starts[b + 1]):
                    pull = Pull(springs.pulls, p)
                    constraint = Constraint(tail(structure.as_ints, pull.constraint))
                    at = 0
                    for s in range(pull.slot):
                        other = constraint.blocks[s]
                        at += offsets[other + 1] - offsets[other]
                    stride = row_width(structure, constraint)
                    add_pull(constraint, at, stride, width, springs.r, springs.jacobian, g)
                    if renewed:
                        add_bound(structure, constraint, pull.slot, at, stride, springs.jacobian, limit)
                block_step(control, width, g, limit, slope)
        unknown = offsets[begin]
        count = offsets[end] - unknown
        delta = tail(springs.step, unknown)
        scale_step(control, count, tail(springs.direction, unknown), tail(springs.scales, rows + unknown), delta)
        SystemTable(header).bodies = end - begin
        old = tail(pointer(q), POSE * begin)
        new = tail(pointer(moved), POSE * begin)
        call_evaluator(springs.evaluator, RETRACT, header, springs.floats, old, delta, new, new, pointer(work))
