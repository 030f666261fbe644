"""Shapes in a file: each by the name of its class and its numbers, so that it is read back bitwise.

Lengths and angles are in the units of the file.  What a file has of a shape is declared by its class.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from cardan.errors import ModelError
from cardan.files.units import Conversion
from cardan.files.values import short, shown
from cardan.quantities import Quantity
from cardan.shapes import Shape
from cardan.shapes.region import Arc, Involute, Line
from cardan.shapes.registry import KINDS, builder, fields_of, values_of
from cardan.shapes.shape import SEGMENTS
from cardan.system import check

MOST_VERTICES: Final = 20_000  # of a mesh in a file
MOST_PIECES: Final = 3_000  # of an outline in a file
MOST_CHORDS: Final = 4_000  # of all outlines of a shape: they are checked for crossings in less than a second
PIECES: Final[Mapping[str, tuple[str, ...]]] = {  # quantities of their numbers
    "line": ("length",) * 4,
    "arc": ("length", "length", "length", "angle", "angle"),
    "involute": ("length", "angle", "", "angle", "angle"),
}
KEYS: Final[Mapping[str, tuple[str, ...]]] = {name: tuple(fields_of(kind)) for name, kind in KINDS.items()}
PLACE: Final = ("kind", "origin", "z", "x", "color", "density")


def written(shape: Shape, unit: Conversion) -> dict[str, Any]:
    """A shape as plain values; ModelError for one that a file cannot contain.  unit: from SI to units of the file."""
    kind = type(shape).__name__.lower()
    if KINDS.get(kind) is not type(shape):
        raise ModelError(
            f"{check.with_article(type(shape).__name__)} cannot be written to a file; it can contain {', '.join(KEYS)}"
        )
    fields, values = fields_of(type(shape)), values_of(shape)
    _check_size(values)
    return {"kind": kind, **{key: _plain(value, fields[key][0].unit, unit) for key, value in values.items()}}


def _plain(value: Any, quantity: str, unit: Conversion) -> Any:
    """Numbers, pieces of outlines and lists of them, in units of the file."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(one, quantity, unit) for one in value]
    match value:
        case Line(p, q):
            return ["line", *map(unit, (*p, *q), PIECES["line"])]
        case Arc(center, radius, start, sweep):
            return ["arc", *map(unit, (*center, radius, start, sweep), PIECES["arc"])]
        case Involute(radius, start, side, first, last):
            return ["involute", *map(unit, (radius, start, side, first, last), PIECES["involute"])]
    return unit(value, quantity) if quantity else value


def _check_size(values: Mapping[str, Any]) -> None:
    """ModelError if an outline or a mesh is too large for a file; the same for reading and writing."""
    if "vertices" in values and len(values["vertices"]) > MOST_VERTICES:
        ways = f"a file can contain {MOST_VERTICES:,}: attach it in Python, with cd.shapes.mesh(path)"
        raise ModelError(f"a mesh has {len(values['vertices']):,} vertices; {ways}")
    if "outline" not in values:
        return
    loops = (values["outline"], *values.get("holes", ()))
    chords, pieces = sum(piece.count(SEGMENTS) for loop in loops for piece in loop), max(map(len, loops))
    if chords > MOST_CHORDS or pieces > MOST_PIECES:
        most = f"{MOST_PIECES:,} pieces and {MOST_CHORDS:,} chords"
        raise ModelError(
            f"an outline has {pieces:,} pieces and is drawn with {chords:,} chords; a file can contain {most}: attach "
            "it in Python, or as a mesh"
        )


def read(table: Mapping[str, Any], number: Conversion) -> Shape:
    """The shape of a table with known keys.

    ``number(value, quantity)`` gives the float of a value in the file, in SI.
    """
    kind = table["kind"]
    values = {}
    for key, (form, default) in fields_of(KINDS[kind]).items():
        if key in table or default is inspect.Parameter.empty:
            values[key] = _value(table, key, form, default == 0.0, number)
    _check_size(values)
    return builder(KINDS[kind])(**values)


def _value(table: Mapping[str, Any], key: str, form: Quantity, zero: bool, number: Conversion) -> Any:
    """The value of a key; zero: whether a size may be zero."""
    value, what = table.get(key), f"the {key} of {check.with_article(table['kind'])}"
    match form.sort:
        case "number" | "count" if key not in table:
            raise ModelError(f"the key {key!r} of {check.with_article(table['kind'])} is missing")
        case "number":
            return check.positive(number(value, form.unit), what, zero=zero)
        case "edges":
            return tuple([check.positive(number(one, form.unit), what) for one in _list(table, key, 3)])
        case "count":
            return shown(value)
        case "flag" if not isinstance(value, bool):
            whose = f"the key {key} of {check.with_article(table['kind'])}"
            raise ModelError(f"{whose} is {short(value)}; it must be true or false")
        case "outline":
            return _read_loop(table, key, value, number)
        case "outlines":
            return tuple([_read_loop(table, key, loop, number) for loop in _list(table, key, None)])
        case "points" | "corners":
            return _rows(_list(table, key, None), form, number)
    return value


def _rows(rows: list[Any], form: Quantity, number: Conversion) -> Any:
    """The points or the corners of a mesh, shape (n, columns)."""
    if len(rows) > (MOST_VERTICES if form.unit else 4 * MOST_VERTICES):
        raise ModelError(f"a mesh has more than {MOST_VERTICES:,} vertices")
    if form.unit:
        rows = [[number(one, form.unit) for one in row] if isinstance(row, list) else row for row in rows]
    try:
        array = np.array(rows, dtype=float if form.unit else None)
    except (TypeError, ValueError, OverflowError):
        raise ModelError("the vertices and faces of a mesh must be lists of three numbers each") from None
    if array.ndim != 2 or array.dtype.kind not in ("f" if form.unit else "iu"):
        raise ModelError("the vertices and faces of a mesh must be lists of three numbers each, whole ones for faces")
    return array


def _list(table: Mapping[str, Any], key: str, count: int | None) -> list[Any]:
    value = table.get(key)
    if not isinstance(value, list) or (count is not None and len(value) != count) or len(value) > 4 * MOST_VERTICES:
        many = f"{count} numbers" if count is not None else "numbers"
        raise ModelError(
            f"the {key} of {check.with_article(table['kind'])} is {short(value)}; it must be a list of {many}"
        )
    return value


def _read_loop(table: Mapping[str, Any], key: str, value: Any, number: Conversion) -> tuple[Any, ...]:
    what = f"the {key} of {check.with_article(table['kind'])}"
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_PIECES:
        valid = f'a list of 1 to {MOST_PIECES:,} pieces, such as ["line", x, y, x, y]'
        raise ModelError(f"{what} is {short(value)}; it must be {valid}")
    pieces: list[Any] = []
    for piece in value:
        word = piece[0] if isinstance(piece, list) and piece else None
        if not isinstance(word, str) or word not in PIECES or len(piece) != 1 + len(PIECES[word]):
            raise ModelError(f"{what} has the piece {short(piece)}; it must be one of {', '.join(PIECES)}")
        numbers = list(map(number, piece[1:], PIECES[word]))
        if not all(map(math.isfinite, numbers)):
            raise ModelError(f"{what} has the piece {short(piece)}; its numbers must be finite")
        if word == "line":
            pieces.append(Line((numbers[0], numbers[1]), (numbers[2], numbers[3])))
        elif word == "arc":
            if abs(numbers[4]) > 2.0 * math.pi * (1.0 + 1e-9):
                raise ModelError(f"{what} has the piece {short(piece)}; its sweep must be within a turn")
            pieces.append(Arc((numbers[0], numbers[1]), *numbers[2:]))
        else:
            pieces.append(Involute(*numbers))
    return tuple(pieces)
