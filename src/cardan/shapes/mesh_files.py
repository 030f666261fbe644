"""Triangles of STL, OBJ and PLY files: one file is read, and no other one.

A file is a claim: each count in it is compared with the bytes that are there before anything is made of that size.
Errors say which triangle, line or element is wrong.  glTF is in ``mesh_glb``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from cardan.errors import ModelError
from cardan.shapes.mesh_glb import read_glb
from cardan.shapes.shape import FloatArray, IndexArray

MOST_BYTES: Final = 48_000_000  # of a file
MOST_TEXT: Final = 12_000_000  # of a file of text, which takes ten times as long
MOST_LINES: Final = 250_000  # of a file of text: lines of OBJ, and triangles
MOST_TRIANGLES: Final = 400_000  # of any file
MERGED: Final = 1e-8  # in the unit of the file: vertices that are nearer in each coordinate are one
TRIANGLE: Final = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])  # of binary STL
FACET: Final = 21  # words of a triangle in a text: facet normal x y z outer loop, three times vertex x y z, two ends
WORDS: Final = ((0, b"facet"), (1, b"normal"), (5, b"outer"), (6, b"loop"), (7, b"vertex"), (11, b"vertex"),
                (15, b"vertex"), (19, b"endloop"), (20, b"endfacet"))  # fmt: skip
_NAME: Final = re.compile(rb"[!-~]{1,80}")  # of an element; it is part of messages
TYPES: Final[Mapping[bytes, str]] = {  # of PLY
    **{b"char": "i1", b"uchar": "u1", b"short": "i2", b"ushort": "u2", b"int": "i4", b"uint": "u4"},
    **{b"int8": "i1", b"uint8": "u1", b"int16": "i2", b"uint16": "u2", b"int32": "i4", b"uint32": "u4"},
    **{b"float": "f4", b"double": "f8", b"float32": "f4", b"float64": "f8"},
}
CORNERS: Final = (b"vertex_indices", b"vertex_index")  # names of the list of a face


def read(content: bytes, suffix: str) -> tuple[FloatArray, IndexArray]:
    """Vertices and faces of a file; equal vertices are merged, and triangles without area are left out."""
    vertices, faces = READERS[suffix](content)
    if not len(faces):
        raise ModelError("it has no triangles")
    if faces.min() < 0 or faces.max() >= len(vertices):
        wrong = int(np.argmax(((faces < 0) | (faces >= len(vertices))).any(axis=1)))
        raise ModelError(
            f"triangle {wrong + 1} has corners {faces[wrong].tolist()}; there are {len(vertices)} vertices"
        )
    if not np.isfinite(vertices).all():
        wrong = int(np.argmin(np.isfinite(vertices).all(axis=1)))
        raise ModelError(f"vertex {wrong + 1} is {vertices[wrong].tolist()}, which is not finite")
    vertices, faces = merged(vertices, faces)
    keep = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    if not keep.any():
        raise ModelError("it has no triangles with an area")
    return vertices, faces[keep]


def merged(vertices: FloatArray, faces: IndexArray) -> tuple[FloatArray, IndexArray]:
    """One vertex for equal ones, in the order in which faces use them first.

    Rows are compared by a hash of 64 bits, which is sorted ten times as fast as rows.  Equal hashes are checked.
    """
    used = faces.ravel()
    keys = np.round(vertices / MERGED) + 0.0  # no −0
    bits = keys.view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (bits[:, 0] * np.uint64(0x9E3779B97F4A7C15)) ^ (bits[:, 1] >> np.uint64(29))
        mixed = (mixed + bits[:, 1]) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = ((mixed ^ (mixed >> np.uint64(31))) + bits[:, 2]) * np.uint64(0x94D049BB133111EB)
    _, first, group = np.unique(mixed[used], return_index=True, return_inverse=True)
    chosen = used[first]
    if any((keys[chosen, k][group] != keys[used, k]).any() for k in range(3)):
        _, first, group = np.unique(keys[used], axis=0, return_index=True, return_inverse=True)
        chosen = used[first]
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return vertices[chosen[order]], rank[group.ravel()].reshape(-1, 3)


# -- STL ---------------------------------------------------------------------------------------------------------------


def _read_stl(content: bytes) -> tuple[FloatArray, IndexArray]:
    count = int.from_bytes(content[80:84], "little") if len(content) >= 84 else -1
    if count >= 0 and len(content) == 84 + TRIANGLE.itemsize * count:
        _check_count(count, MOST_TRIANGLES)
        corners = np.frombuffer(content, TRIANGLE, count, 84)["corners"].astype(np.float64).reshape(-1, 3)
    elif content[:200].lstrip()[:5].lower() == b"solid":
        corners = _stl_text(content)
    else:
        raise ModelError(
            f"it is no STL: a binary one of {max(count, 0):,} triangles, as its header says, has "
            f"{84 + TRIANGLE.itemsize * max(count, 0):,} bytes, and it has {len(content):,}"
        )
    return corners, np.arange(len(corners), dtype=np.int64).reshape(-1, 3)


def _stl_text(content: bytes) -> FloatArray:
    _check_text(content)
    words = re.sub(rb"(?m)^[ \t]*(?:end)?solid\b[^\n]*$", b"", content.lower()).split()
    for at, word in WORDS:
        if set(words[at::FACET]) - {word} or len(words) % FACET:
            wrong = next((k for k, found in enumerate(words[at::FACET]) if found != word), len(words) // FACET)
            raise ModelError(f"triangle {wrong + 1} is not written as in an STL file: {word.decode()!r} is missing")
    columns = [_floats(words[at::FACET], "triangle") for at in (8, 9, 10, 12, 13, 14, 16, 17, 18)]
    return np.array(columns).T.reshape(-1, 3)


def _check_text(content: bytes) -> None:
    if len(content) > MOST_TEXT:
        raise ModelError(f"it is text of {len(content):,} bytes, of which {MOST_TEXT:,} are read; export it as binary")


def _check_count(count: int, most: int) -> None:
    """Refuse more triangles than are read."""
    if count > most:
        raise ModelError(f"it has {count:,} triangles or lines, of which {most:,} are read; export it with fewer")


def _floats(words: Sequence[bytes], what: str) -> list[float]:
    """Numbers of words; the error says of which item."""
    try:
        return list(map(float, words))
    except ValueError:
        for k, word in enumerate(words):
            if not _is_number(word):
                raise ModelError(f"{what} {k + 1} has {word[:40]!r}, which is not a number") from None
        raise


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


# -- OBJ ---------------------------------------------------------------------------------------------------------------


def _read_obj(content: bytes) -> tuple[FloatArray, IndexArray]:
    """Vertices (v) and faces (f); materials, normals and lines have no triangles, and their files are not opened."""
    _check_text(content)
    _check_count(content.count(b"\n"), MOST_LINES)
    vertices: list[float] = []
    faces: list[int] = []
    count = 0
    for number, line in enumerate(content.replace(b"\\\n", b" \n").split(b"\n"), 1):
        if line.startswith((b"v ", b"v\t")):
            try:
                x, y, z = map(float, line.split(None, 4)[1:4])
            except ValueError:
                raise ModelError(f"line {number}: a vertex is {line[:60]!r}; it must have three numbers") from None
            vertices += (x, y, z)
            count += 1
        elif line.startswith((b"f ", b"f\t")):
            try:
                corners = [int(word.partition(b"/")[0]) for word in line.split()[1:]]
            except ValueError:
                raise ModelError(f"line {number}: a face is {line[:60]!r}; it must have numbers of vertices") from None
            if len(corners) < 3 or 0 in corners or max(corners) > 2**40 or min(corners) < -count:
                raise ModelError(f"line {number}: a face is {line[:60]!r}; it must have three vertices, counted from 1")
            _check_count(len(faces) // 3 + len(corners) - 2, MOST_LINES)
            first, *rest = [c - 1 if c > 0 else count + c for c in corners]
            for k in range(len(rest) - 1):
                faces += (first, rest[k], rest[k + 1])
        elif line.startswith((b"surf", b"curv")):
            raise ModelError(f"line {number}: it has a free-form curve or surface, which is not read; export triangles")
    return np.array(vertices).reshape(-1, 3), np.array(faces, dtype=np.int64).reshape(-1, 3)


# -- PLY ---------------------------------------------------------------------------------------------------------------


class _Property(NamedTuple):
    """A value of an element, or a list of values; types of NumPy without the order of bytes."""

    name: bytes
    type: str
    length: str  # the type of the number of values of a list; "" for one value


class _Element(NamedTuple):
    name: bytes
    total: int
    properties: tuple[_Property, ...]


def _read_ply(content: bytes) -> tuple[FloatArray, IndexArray]:
    form, elements, at = _ply_header(content)
    if form == b"ascii":
        _check_text(content)
        source: Any = _PlyText(content[at:].split())
    else:
        source = _PlyBytes(content, at, "<" if form == b"binary_little_endian" else ">")
    vertices: FloatArray = np.zeros((0, 3))
    corners: list[IndexArray] = []
    for element in elements:
        lists = [one for one in element.properties if one.length]
        if element.name == b"vertex":
            if lists:
                raise ModelError("its vertices have lists, which are not read; export it with another program")
            vertices = _ply_vertices(source, element)
        elif element.name == b"face":
            corners = source.lists(element, _ply_index(element))
        elif lists:
            source.lists(element, 0)
        else:
            source.columns(element)
    return vertices, np.concatenate([np.zeros((0, 3), dtype=np.int64), *map(_fans, corners)])


def _ply_header(content: bytes) -> tuple[bytes, list[_Element], int]:
    """The format, the elements, and where their values begin."""
    end = re.search(rb"\nend_header\r?\n", content[: 1 << 16])
    if not content.startswith(b"ply") or end is None:
        raise ModelError("it is no PLY: a header from 'ply' to 'end_header' is missing")
    form, elements = b"", []
    for number, line in enumerate(content[: end.start()].splitlines(), 1):
        match line.split():
            case [b"ply"] | [] | [b"comment" | b"obj_info", *_]:
                pass
            case [b"format", (b"ascii" | b"binary_little_endian" | b"binary_big_endian") as form, b"1.0"]:
                pass
            case [b"element", name, count] if count.isdigit() and len(count) < 16 and _NAME.fullmatch(name):
                elements.append(_Element(name, int(count), ()))
            case [b"property", kind, name] if kind in TYPES and elements:
                elements[-1] = _with(elements[-1], _Property(name, TYPES[kind], ""))
            case [b"property", b"list", count, kind, name] if {count, kind} <= TYPES.keys() and elements:
                if TYPES[count][0] == "f":
                    raise ModelError(f"line {number}: a list has {count.decode()} as the type of its length")
                elements[-1] = _with(elements[-1], _Property(name, TYPES[kind], TYPES[count]))
            case _:
                raise ModelError(f"line {number}: {line[:60]!r} is not a line of the header of a PLY file")
    if not form:
        raise ModelError("it is no PLY: a line 'format' is missing")
    for element in elements:
        if not element.properties:
            raise ModelError(f"the element {element.name.decode('ascii', 'replace')!r} has no properties")
    return form, elements, end.end()


def _with(element: _Element, one: _Property) -> _Element:
    return element._replace(properties=(*element.properties, one))


def _ply_vertices(source: Any, element: _Element) -> FloatArray:
    names = [one.name for one in element.properties]
    missing = [letter.decode() for letter in (b"x", b"y", b"z") if letter not in names]
    if missing:
        raise ModelError(f"its vertices have no {missing[0]!r}")
    columns = source.columns(element)
    return np.column_stack([columns[names.index(letter)] for letter in (b"x", b"y", b"z")])


def _ply_index(element: _Element) -> int:
    for k, one in enumerate(element.properties):
        if one.name in CORNERS and one.length and one.type[0] != "f":
            return k
    raise ModelError("its faces have no list 'vertex_indices' of integers")


def _fans(corners: IndexArray) -> IndexArray:
    """Triangles of polygons with the same number of corners, shape (n, k): (0, 1, 2), (0, 2, 3), …"""
    count = corners.shape[1]
    if count < 3:
        return np.zeros((0, 3), dtype=np.int64)
    fans = [corners[:, [0, k, k + 1]] for k in range(1, count - 1)]
    return np.stack(fans, axis=1).reshape(-1, 3).astype(np.int64)


class _PlyBytes:
    """Values of binary elements, one element after the other."""

    def __init__(self, content: bytes, at: int, order: str) -> None:
        self._content, self._at, self._order = content, at, order

    def columns(self, element: _Element) -> list[Any]:
        """The values of each property of an element without lists."""
        row = np.dtype([(f"f{k}", self._order + one.type) for k, one in enumerate(element.properties)])
        if element.total * row.itemsize > len(self._content) - self._at:
            raise _too_short(element)
        rows = np.frombuffer(self._content, row, element.total, self._at)
        self._at += element.total * row.itemsize
        return [rows[name].astype(np.float64) for name in row.names or ()]

    def lists(self, element: _Element, wanted: int) -> list[Any]:
        """The lists of one property, by their lengths."""
        where: dict[int, list[int]] = {}
        steps = [
            (np.dtype(one.type).itemsize, np.dtype(one.length).itemsize if one.length else 0, one.length[:1] == "i")
            for one in element.properties
        ]
        order: Any = "little" if self._order == "<" else "big"
        content, at, end = self._content, self._at, len(self._content)
        if element.total > end - at:
            raise _too_short(element)
        _check_count(element.total, MOST_TRIANGLES)
        read = int.from_bytes
        for row in range(element.total):
            for k, (size, counted, signed) in enumerate(steps):
                if counted:
                    length = read(content[at : at + counted], order, signed=signed)
                    at += counted
                    if k == wanted:
                        where.setdefault(length, []).append(at)
                    at += length * size
                    if length < 0 or at > end:
                        raise _too_short(element, row)
                else:
                    at += size
            if at > end:
                raise _too_short(element, row)
        self._at = at
        kind = np.dtype(self._order + element.properties[wanted].type)
        data = np.frombuffer(content, np.uint8)
        _check_count(sum(max(length - 2, 0) * len(starts) for length, starts in where.items()), MOST_TRIANGLES)
        return [
            data[np.array(starts)[:, None] + np.arange(length * kind.itemsize)].view(kind)
            for length, starts in where.items()
            if length > 2
        ]


class _PlyText:
    """Values of elements in text."""

    def __init__(self, words: list[bytes]) -> None:
        self._words, self._at = words, 0

    def columns(self, element: _Element) -> list[Any]:
        """As of :class:`_PlyBytes`."""
        width = len(element.properties)
        last = self._at + element.total * width
        if last > len(self._words):
            raise _too_short(element)
        first, self._at = self._at, last
        what = element.name.decode("ascii", "replace")
        return [np.array(_floats(self._words[first + k : last : width], what)) for k in range(width)]

    def lists(self, element: _Element, wanted: int) -> list[Any]:
        """As of :class:`_PlyBytes`."""
        found: dict[int, list[int]] = {}
        words, at = self._words, self._at
        if element.total > len(words) - at:
            raise _too_short(element)
        _check_count(element.total, 2 * MOST_LINES)
        for row in range(element.total):
            try:
                for k, one in enumerate(element.properties):
                    length = int(words[at]) if one.length else 1
                    at += 1 if one.length else 0
                    if length < 0 or at + length > len(words):
                        raise _too_short(element, row)
                    if k == wanted and length > 2:
                        found.setdefault(length, []).extend(map(int, words[at : at + length]))
                    at += length
            except (ValueError, IndexError) as error:
                if isinstance(error, ModelError):
                    raise
                raise _too_short(element, row) from None
        self._at = at
        try:
            return [np.array(one, dtype=np.int64).reshape(-1, length) for length, one in found.items()]
        except OverflowError:
            raise ModelError("a face has a corner of more than 64 bits") from None


def _too_short(element: _Element, row: int | None = None) -> ModelError:
    what = element.name.decode("ascii", "replace")
    where = "" if row is None else f"; number {row + 1} cannot be read"
    return ModelError(f"it has fewer values than the {element.total:,} of the element {what!r} in its header{where}")


READERS: Final[Mapping[str, Callable[[bytes], tuple[FloatArray, IndexArray]]]] = {
    ".stl": _read_stl,
    ".obj": _read_obj,
    ".ply": _read_ply,
    ".glb": read_glb,
}
