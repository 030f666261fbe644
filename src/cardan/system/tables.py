"""The packed tables that evaluators read: declarations, kinds of features, and positions for code that indexes arrays.

The integers of a system are a header (:class:`SystemTable`); one :class:`Record` per constraint, each followed by the
numbers of its movable bodies (ascending) and by its features; the table of variables, where there are some; the counted
angles; and, in the table of a motion problem only, the code or address of the curvature ẋᵀ f_xx ẋ of each constraint.

The table of variables (:class:`VariableTable`) is followed by its nodes, its outputs and the nodes of the tangents;
then, at ``links`` of a constraint, its ``wide`` free variables, a count, and as many links.

The floats are parameters at ``par``, local coordinates of features at ``source``; of a counted angle x, y of body a and
v of body b, nine floats.

Coordinates q: POSE floats per body, then the variables, of which the first ``free`` are unknowns, then the counted
angles: their values when last accepted, whole turns included.

A Jacobian block of a constraint has rows × (slots·width + wide) entries, row by row, from block·width + extra on, where
width is the number of unknowns per body in the formulation: one table serves all formulations.

Before packing, a record is a template: ``par`` is the number of its floats and ``next`` its size, ``row`` and ``block``
are zero; it has serial numbers of bodies and counted angles for their numbers, and ``source`` counted from the record's
own first float.

Kernels of the formulations read these tables through :mod:`cardan.coordinates._records`.
"""

from __future__ import annotations

from typing import Final

from cardan.kernel.table import Address, Int, Table, Within


class Feature(Table):
    """A point, direction, orientation, angle or number that a constraint depends on."""

    kind: Int  # POINT … TIMED
    body: Int  # −1: on the ground
    slot: Int  # of its body among those of the constraint; −1 on the ground, TRACKED for a contact coordinate
    source: Int  # where its local coordinates begin in the floats; number of a counted angle
    column: Int  # its first component in x


class Record(Table):
    """A constraint; behind its bodies there are its features."""

    code: Int  # of its primitive; in the table of a problem an address for all but the inline primitives
    row: Int  # its first row
    rows: Int
    block: Int  # rows × slots of the constraints before it
    par: Int  # where its parameters begin in the floats
    features: Int  # number of them
    slots: Int  # number of movable bodies
    components: Int  # of x
    next: Int  # offset of the next record
    extra: Int  # rows × free variables of the constraints before it
    wide: Int  # number of free variables
    links: Int  # offset of these variables and of their links
    bodies: Int[...]  # movable bodies, ascending


class Link(Table):
    """A feature of a constraint that depends on a free variable."""

    feature: Int  # its number
    column: Int  # of the variable among those of the constraint
    tangent: Int  # place of the derivative of its local coordinates


class Node(Table):
    """An operation in a formula of variables."""

    operation: Int  # 0: a number in the floats, 1: a variable, else see `cardan.system._formulas`
    a: Int  # an earlier node, or a place in the floats or among the variables
    b: Int


class Output(Table):
    """A number in the floats that is a formula."""

    node: Int
    place: Int  # in the floats
    shift: Int  # place of what is subtracted, −1: nothing


class VariableTable(Table):
    """Formulas of variables."""

    nodes: Int
    outputs: Int
    tangents: Int
    floats: Int
    records: Node[...]  # then the outputs and the nodes of the tangents


class AngleRecord(Table):
    """An angle whose whole turns are counted."""

    a: Int  # body, −1: the ground
    b: Int
    source: Int  # where its floats begin


class SystemTable(Table):
    """Header of the integers of a system."""

    bodies: Int
    constraints: Int
    rows: Int
    blocks: Int  # Σ rows × slots
    angles: Int  # counted ones
    angle_table: Within[AngleRecord]
    widest: Int  # components of a constraint, at the most
    tallest: Int  # rows of a constraint, at the most
    variables: Int  # scalars behind the poses in q
    free: Int  # of these, unknowns
    variable_table: Within[VariableTable]
    extras: Int  # Σ rows × free variables
    expand: Address  # of the kernel that evaluates formulas; in the table of a problem only
    expanded: Int  # floats that this kernel writes
    track: Address  # of the kernel that follows contact coordinates, or zero; in the table of a problem only
    records: Record[...]  # one per constraint


POINT: Final = 0  # kinds of features
ORIENTATION: Final = 2
ANGLE: Final = 3
SCALAR: Final = 4
TIMED: Final = 5  # a number that is a function of time: its value, rate and acceleration

TRACKED: Final = -2  # slot of a contact coordinate

POSE: Final = 7  # floats per body in q: r, p

MATRIX: Final = 9  # floats of a rotation matrix, row by row

AXES: Final = 9  # floats of three axes, from which a counted angle is read

# rotation of a joint in a spanning tree: none, one angle, two of a cross, four Euler parameters; or a motion of the
# user's own, whose coordinates all count as translations
STILL, ABOUT_Z, CROSSED, ANYHOW, BY_USER = range(5)

# positions, for code that indexes arrays and lists of integers
HEADER, RECORD, FEATURE, ANGLE_RECORD = SystemTable.size, Record.size, Feature.size, AngleRecord.size
CODE, ROW, ROWS, PAR = Record.code.first, Record.row.first, Record.rows.first, Record.par.first
EXTRA, NEXT, WIDE, LINKS = Record.extra.first, Record.next.first, Record.wide.first, Record.links.first
FEATURES, SLOTS, COMPONENTS = Record.features.first, Record.slots.first, Record.components.first
KIND, BODY, SOURCE = Feature.kind.first, Feature.body.first, Feature.source.first
ANGLES, ANGLE_TABLE = SystemTable.angles.first, SystemTable.angle_table.first
