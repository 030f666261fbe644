"""Packed records in Python: tuples with names, from a list of integers and the place of a record in it.

The names are those of the declarations in :mod:`cardan.system.tables`.  A template, before packing, is read at place 0,
and made of the same tuples.
"""

from __future__ import annotations

from array import array
from collections import namedtuple
from typing import TYPE_CHECKING, Any

from cardan.system.tables import AngleRecord, Feature, Record, SystemTable

if TYPE_CHECKING:
    from cardan.system.system import System


def _row(name: str, table: Any) -> Any:
    """A tuple with the names of the single numbers of a table, which are zero where they are not given."""
    names = [field for field, kind in table.fields.items() if kind.kind.count is None]
    return namedtuple(name, names, defaults=[0] * len(names))


FeatureRow, Head = _row("FeatureRow", Feature), _row("Head", Record)  # a Head has no bodies


def record(ints: list[int], at: int = 0) -> Any:
    """The head of a record: ``code``, ``row``, ``rows``, ``par``, ``slots``, …"""
    return Head._make(ints[at : at + Record.size])


def bodies(ints: Any, at: int = 0) -> Any:
    """The movable bodies of a record, ascending; ints: a list, or an array, of which this is a part."""
    first = at + Record.size
    return ints[first : first + ints[at + Record.slots.first]]


def features(ints: list[int], at: int = 0) -> list[Any]:
    """The features of a record, each with ``kind``, ``body``, ``slot``, ``source``, ``column``."""
    size = Feature.size
    first = at + Record.size + ints[at + Record.slots.first]
    end = first + size * ints[at + Record.features.first]
    return [FeatureRow._make(ints[k : k + size]) for k in range(first, end, size)]


def template(packed: bytes) -> list[int]:
    """The integers of a record before packing."""
    return array("q", packed).tolist()


def angle_records(system: System) -> Any:
    """The counted angles of a system, as an array with the fields ``a``, ``b``, ``source``."""
    first = int(system.ints[SystemTable.angle_table.first])
    return system.ints[first : first + AngleRecord.size * len(system.counted_angles)].view(AngleRecord.dtype)
