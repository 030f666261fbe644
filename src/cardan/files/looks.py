"""Shapes in a file: each by the name of its class and its numbers, so that it is read back bitwise.

Lengths and angles are in the units of the file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from cardan.errors import ModelError
from cardan.files.units import Conversion
from cardan.files.values import short, shown
from cardan.shapes import Shape, makers
from cardan.shapes.gears import Gear
from cardan.shapes.mesh import Mesh, mesh
from cardan.shapes.region import Arc, Involute, Line, Region
from cardan.shapes.shape import SEGMENTS
from cardan.shapes.solids import Box, Cylinder, Extrusion, Revolution, Sphere
from cardan.system import check

MOST_VERTICES: Final = 20_000  # of a mesh in a file
MOST_PIECES: Final = 3_000  # of an outline in a file
MOST_CHORDS: Final = 4_000  # of all outlines of a shape: they are checked for crossings in less than a second
PIECES: Final[Mapping[str, tuple[str, ...]]] = {  # quantities of their numbers
    "line": ("length",) * 4,
    "arc": ("length", "length", "length", "angle", "angle"),
    "involute": ("length", "angle", "", "angle", "angle"),
}
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "box": ("size",),
    "cylinder": ("radius", "height", "bore"),
    "sphere": ("radius",),
    "extrusion": ("outline", "holes", "height", "taper"),
    "revolution": ("profile",),
    "gear": ("module", "teeth", "width", "rim", "internal", "taper"),
    "mesh": ("vertices", "faces"),
}
PLACE: Final = ("kind", "origin", "z", "x", "color", "density")


def written(shape: Shape, unit: Conversion) -> dict[str, Any]:
    """A shape as plain values; ModelError for one that a file cannot contain.  unit: from SI to units of the file."""

    def length(value: float) -> Any:
        return unit(value, "length")

    match shape:
        case Box(size):
            return {"kind": "box", "size": [length(one) for one in size]}
        case Cylinder(radius, height, bore):
            found: dict[str, Any] = {"kind": "cylinder", "radius": length(radius), "height": length(height)}
            return found | ({"bore": length(bore)} if bore else {})
        case Sphere(radius):
            return {"kind": "sphere", "radius": length(radius)}
        case Gear():
            sizes = {key: length(getattr(shape, key)) for key in ("module", "width", "rim")}
            return {"kind": "gear", **{key: sizes.get(key, getattr(shape, key)) for key in KEYS["gear"]}}
        case Extrusion(region, height, taper):
            _check_size(region)
            found = {"kind": "extrusion", "outline": _loop(region.outer, unit)}
            if region.holes:
                found["holes"] = [_loop(hole, unit) for hole in region.holes]
            return found | {"height": length(height), "taper": taper}
        case Revolution(loop):
            return {"kind": "revolution", "profile": _loop(loop, unit)}
        case Mesh():
            triangles = shape.triangles()
            if len(triangles.vertices) > MOST_VERTICES:
                ways = f"a file can contain {MOST_VERTICES:,}: attach it in Python, with cd.shapes.mesh(path)"
                raise ModelError(f"a mesh has {len(triangles.vertices):,} vertices; {ways}")
            vertices = [[length(one) for one in row] for row in triangles.vertices.tolist()]
            return {"kind": "mesh", "vertices": vertices, "faces": triangles.faces.tolist()}
    raise ModelError(
        f"{check.with_article(type(shape).__name__)} cannot be written to a file; it can contain {', '.join(KEYS)}"
    )


def _check_size(region: Region) -> None:
    """ModelError if an outline is too large for a file; the same for reading and writing."""
    loops = (region.outer, *region.holes)
    chords, pieces = sum(piece.count(SEGMENTS) for loop in loops for piece in loop), max(map(len, loops))
    if chords > MOST_CHORDS or pieces > MOST_PIECES:
        most = f"{MOST_PIECES:,} pieces and {MOST_CHORDS:,} chords"
        raise ModelError(
            f"an outline has {pieces:,} pieces and is drawn with {chords:,} chords; a file can contain {most}: attach "
            "it in Python, or as a mesh"
        )


def _loop(loop: Any, unit: Conversion) -> list[list[Any]]:
    found: list[list[Any]] = []
    numbers: tuple[float, ...]
    for piece in loop:
        match piece:
            case Line(p, q):
                word, numbers = "line", (*p, *q)
            case Arc(center, radius, start, sweep):
                word, numbers = "arc", (*center, radius, start, sweep)
            case Involute():
                word, numbers = "involute", (piece.radius, piece.start, piece.side, piece.first, piece.last)
        found.append([word, *map(unit, numbers, PIECES[word])])
    return found


def read(table: Mapping[str, Any], number: Conversion) -> Shape:
    """The shape of a table with known keys.

    ``number(value, quantity)`` gives the float of a value in the file, in SI.
    """
    kind = table["kind"]

    def size(key: str, default: float | None = None, *, zero: bool = False, of: str = "length") -> float:
        if key not in table and default is None:
            raise ModelError(f"the key {key!r} of {check.with_article(kind)} is missing")
        return check.positive(
            number(table.get(key, default), of), f"the {key} of {check.with_article(kind)}", zero=zero
        )

    if kind == "box":
        sizes = [check.positive(number(one, "length"), "the size of a box") for one in _list(table, "size", 3)]
        return makers.box(*sizes)
    if kind == "cylinder":
        radius, height, bore = size("radius"), size("height"), size("bore", 0.0, zero=True)
        return makers.tube(radius, bore, height) if bore else makers.cylinder(radius, height)
    if kind == "sphere":
        return makers.sphere(size("radius"))
    if kind == "gear":
        internal = table.get("internal", False)
        if not isinstance(internal, bool):
            raise ModelError(f"the key internal of a gear is {short(internal)}; it must be true or false")
        rim = size("rim", 0.0, zero=True)
        hole = {"outer": rim} if internal else {"bore": rim}
        if "teeth" not in table:
            raise ModelError("the key 'teeth' of a gear is missing")
        return makers.gear(
            size("module"),
            shown(table["teeth"]),
            size("width"),
            internal=internal,
            taper=size("taper", 1.0, of=""),
            **hole,
        )
    if kind == "mesh":
        return _mesh(table, number)
    if kind == "revolution":
        profile = _read_loop(table, "profile", table.get("profile"), number)
        return Revolution(makers.checked_profile(profile, "the profile of a revolution"))
    holes = tuple(_read_loop(table, "holes", hole, number) for hole in _list(table, "holes", None, []))
    region = Region(_read_loop(table, "outline", table.get("outline"), number), holes)
    _check_size(region)
    makers.checked_region(region, "an extrusion")
    return Extrusion(region, size("height"), size("taper", 1.0, of=""))


def _mesh(table: Mapping[str, Any], number: Conversion) -> Mesh:
    vertices, faces = _list(table, "vertices", None), _list(table, "faces", None)
    if len(vertices) > MOST_VERTICES or len(faces) > 4 * MOST_VERTICES:
        raise ModelError(f"a mesh has more than {MOST_VERTICES:,} vertices")
    vertices = [[number(one, "length") for one in row] if isinstance(row, list) else row for row in vertices]
    try:
        points, corners = np.array(vertices, dtype=float), np.array(faces)
    except (TypeError, ValueError, OverflowError):
        raise ModelError("the vertices and faces of a mesh must be lists of three numbers each") from None
    if points.ndim != 2 or corners.ndim != 2 or corners.dtype.kind not in "iu":
        raise ModelError("the vertices and faces of a mesh must be lists of three numbers each, whole ones for faces")
    return mesh(points, corners)


def _list(table: Mapping[str, Any], key: str, count: int | None, default: Any = None) -> list[Any]:
    value = table.get(key, default)
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
