"""Tables of the formulations, of their verdict, and of the spring step on several threads."""

from __future__ import annotations

from cardan.kernel.table import Int, Table


class Place(Table):
    """A group of constraints in the spring step on several threads."""

    ints: Int  # where its table of integers begins
    members: Int  # where the numbers of its bodies begin
    bodies: Int  # number of them
    constraint: Int  # offset of its first constraint in the structure
    constraints: Int  # number of them
    row: Int  # its first row
    entry: Int  # and its first entry of J


class Pull(Table):
    """A constraint on a body, in the spring step on several threads."""

    constraint: Int  # its offset in the structure
    slot: Int
