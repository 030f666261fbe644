"""What URDF and MJCF share: XML that is read safely, rotations, and a report of what is not converted."""

from __future__ import annotations

import codecs
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from cardan import contents
from cardan.errors import ModelError
from cardan.files.formula import Formula
from cardan.mechanism import Mechanism
from cardan.system import check
from cardan.system.parts import Body, Frame, quaternion_from_columns

Array = NDArray[np.float64]
MOST_BYTES: Final = 6_000_000  # of a file
MOST_DEPTH: Final = 200  # nested elements
MOST_ELEMENTS: Final = 100_000  # of a file, and so many attributes
MOST_BODIES: Final = 2_000  # of a file: each takes 0.1 to 0.4 ms
# Encodings by their names in XML; some others of Python take a time that grows with the square of the size.
ENCODINGS: Final = {
    **{"utf-8": "utf-8-sig", "utf8": "utf-8-sig", "us-ascii": "ascii", "ascii": "ascii"},
    **{"iso-8859-1": "latin-1", "latin-1": "latin-1", "windows-1252": "cp1252"},
}
MOST_LISTED: Final = 6  # names in a line of a report


class Transform(NamedTuple):
    """A pose relative to another one: p [m], shape (3,), and R, shape (3, 3)."""

    p: Array
    R: Array

    def then(self, other: Transform) -> Transform:
        """The pose of what has the pose ``other`` relative to this one: p + R p', R R'."""
        return Transform(self.p + self.R @ other.p, self.R @ other.R)

    def inverse(self) -> Transform:
        """The opposite transform: −Rᵀp, Rᵀ."""
        return Transform(-self.R.T @ self.p, self.R.T)

    def quaternion(self) -> tuple[float, float, float, float]:
        """(w, x, y, z) of R."""
        x, y, z = (tuple(column.tolist()) for column in self.R.T)
        return quaternion_from_columns(x, y, z)


IDENTITY: Final = Transform(np.zeros(3), np.eye(3))


class Report:
    """What a file contains and this library does not convert, by subject; nothing is dropped silently."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.last: dict[tuple[str, str], int] = {}  # numbers that names were given, by name and suffix
        self._counted: dict[str, list[str]] = {}

    def say(self, line: str) -> None:
        """Add a line."""
        self.lines.append(line)

    def count(self, what: str, name: str) -> None:
        """Count one more item of a kind that is not converted."""
        self._counted.setdefault(what, []).append(name)

    def text(self) -> list[str]:
        """The lines of the report; items of one kind share a line."""
        found = list(self.lines)
        for what, names in self._counted.items():
            listed = ", ".join(dict.fromkeys(names[:MOST_LISTED])) + (", …" if len(names) > MOST_LISTED else "")
            found.append(f"not converted: {what} ({len(names)}: {listed})")
        return found


def _decoded(content: bytes) -> str:
    """The text of an XML file.  It is decoded before it is examined: in UTF-16 it has other bytes."""
    if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return content.decode("utf-16")
    declared = re.match(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*["']([\w.-]+)["']""", content)
    name = declared[1].decode("ascii").lower() if declared else "utf-8"
    if name not in ENCODINGS:
        raise LookupError(f"{name!r} is none of {', '.join(map(repr, ENCODINGS))}")
    return content.decode(ENCODINGS[name])


class _Refused(Exception):
    """What the elements of a file have, and must not have."""


class _Tree:
    """The tree of a file; nesting, sizes and declarations are refused while it is parsed, which then stops."""

    def __init__(self) -> None:
        self._builder = ET.TreeBuilder()
        self._depth = self._elements = self._attributes = 0
        self.parser = expat.ParserCreate("utf-8", "}")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._builder.data
        self.parser.StartDoctypeDeclHandler = self.parser.EntityDeclHandler = self._declared

    def root(self, text: str) -> ET.Element:
        """The root element of a text."""
        # at once: expat before 2.6 reads a long token again for each part of it
        self.parser.Parse(text, True)
        return self._builder.close()

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        self._attributes += len(attributes)
        if self._depth > MOST_DEPTH:
            raise _Refused(f"is nested more than {MOST_DEPTH} deep, by an element <{tag:.40}>")
        if self._elements > MOST_ELEMENTS or self._attributes > 4 * MOST_ELEMENTS:
            raise _Refused(f"has more than {MOST_ELEMENTS:,} elements, or four times as many attributes")
        self._builder.start(_name(tag), {_name(key): value for key, value in attributes.items()})

    def _end(self, tag: str) -> None:
        self._depth -= 1
        self._builder.end(_name(tag))

    def _declared(self, *_: Any) -> None:
        raise _Refused("declares a document type or entities, which are not read; remove them")


def _name(name: str) -> str:
    """A name with its namespace, as ElementTree writes it."""
    return "{" + name if "}" in name else name


def parse(path: Any, root: str) -> ET.Element:
    """The root element of an XML file; entities, deep nesting and large files are refused."""
    return parsed(contents.read(contents.file_path(path), MOST_BYTES), path, root)


def parsed(content: bytes, path: Any, root: str | None) -> ET.Element:
    """The root element of the content of a file, of any tag if root is None."""
    try:
        text = _decoded(content)
    except (UnicodeError, LookupError) as error:
        raise ModelError(f"the file {str(path)!r} is not text in its encoding: {error}; save it as UTF-8") from None
    if "\0" in text:  # UTF-16 without a mark, in which nothing is found; or no text
        raise ModelError(f"the file {str(path)!r} has a NUL character, so it is not text in UTF-8; save it as UTF-8")
    tree = _Tree()
    try:
        element = tree.root(text)
    except _Refused as refused:
        raise ModelError(f"the file {str(path)!r}, line {tree.parser.CurrentLineNumber}, {refused}") from None
    except expat.ExpatError as error:
        raise ModelError(f"{path}, line {error.lineno}: it is not valid XML: {error}") from None
    except (ValueError, LookupError, AssertionError) as error:  # of the encoding, or of the tree
        raise ModelError(f"the file {str(path)!r} is not valid XML: {error}") from None
    if root is not None and element.tag != root:
        raise ModelError(f"the file {str(path)!r} has <{element.tag:.80}>; its root must be <{root}>")
    return element


def numbers(element: ET.Element, key: str, count: int, default: Sequence[float] | None = None) -> Array:
    """Numbers of an attribute; ModelError that names the element."""
    text = element.get(key)
    if text is None:
        if default is None:
            raise ModelError(f"{describe(element)} has no {key!r}; it must have {count} numbers")
        return np.array(default, dtype=float)
    try:
        found = [float(word) for word in text.split(None, count)]  # one too many are an error, not all of them
    except ValueError:
        found = []
    if len(found) != count or not all(map(math.isfinite, found)):
        raise ModelError(f"{describe(element)} has {key}={text[:80]!r}; it must have {count} finite numbers")
    return np.array(found)


def number(element: ET.Element, key: str, default: float | None = None) -> float:
    """One number of an attribute; see :func:`numbers`."""
    return float(numbers(element, key, 1, None if default is None else [default])[0])


def describe(element: ET.Element) -> str:
    """The element with its name, for messages."""
    name = element.get("name")
    return f"<{element.tag} name={name!r}>" if name else f"<{element.tag}>"


def rotation_x(a: float) -> Array:
    """R, shape (3, 3), about the x axis by a [rad]."""
    c, s = math.cos(a), math.sin(a)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def rotation_y(a: float) -> Array:
    """R, shape (3, 3), about the y axis by a [rad]."""
    c, s = math.cos(a), math.sin(a)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def rotation_z(a: float) -> Array:
    """R, shape (3, 3), about the z axis by a [rad]."""
    c, s = math.cos(a), math.sin(a)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def unit(v: Array, what: str) -> Array:
    """v/|v|; ModelError if v is zero."""
    n = math.hypot(*v)  # which does not overflow before the result does
    if not n > 0.0:
        raise ModelError(f"{what} is {v.tolist()}; it must not be zero")
    return v / n


def axes(axis: Array) -> Array:
    """A rotation whose z is the axis; its x is orthogonal to it."""
    least = np.eye(3)[int(np.argmin(np.abs(axis)))]
    x = unit(np.cross(least, axis), "an axis")
    return np.column_stack([x, np.cross(axis, x), axis])


def frame(body: Body, at: Transform) -> Frame:
    """The frame of a body at a pose in its axes."""
    return body.frame(tuple(at.p.tolist()), z=tuple(at.R[:, 2].tolist()), x=tuple(at.R[:, 0].tolist()))


def free_name(m: Mechanism, wanted: str, suffix: str, report: Report, reserved: str = "") -> str:
    """The name, or another if it is taken or reserved: bodies and joints share one set of names."""
    name, k = wanted, report.last.get((wanted, suffix), 1)  # all before are taken
    while name in m or name in ("ground", reserved):
        name = f"{wanted}_{suffix}" if k == 1 else f"{wanted}_{suffix}_{k}"
        k += 1
    if k > 2:
        report.last[wanted, suffix] = k - 1
    if name != wanted:
        report.say(f"the {suffix} {wanted!r} is named {name!r} here, because the name is taken")
    return name


def add_body(
    m: Mechanism, name: str, at: Transform, inertial: Inertial | None, report: Report, real: bool = False
) -> Body:
    """A body with what the file says about its mass; an inertia of no real body is reported, or refused if real."""
    if len(m._model.bodies) >= MOST_BODIES:
        raise ModelError(
            f"the body {name!r} is one of more than {MOST_BODIES:,}, the most that are read; divide the file"
        )
    where: dict[str, Any] = {"position": at.p, "orientation": at.quaternion()}
    if inertial is None:
        report.say(f"link {name!r} has no mass; it is massless (0 kg), which matters in dynamics alone")
        return m.body(name, **where)
    values: dict[str, Any] = {**where, "mass": inertial.mass, "center": inertial.center}
    body = m.body(name, **values)
    what = f"the inertia of body {name!r}"
    try:
        check.inertia(inertial.inertia, what)
    except ModelError as error:
        if real:
            raise ModelError(f"{error}; correct the file, or load it without real_inertias=True") from None
        moments = np.linalg.eigvalsh(inertial.inertia)
        if moments[0] < 0.0:
            report.say(f"not converted: {error}; body {name!r} has a mass, and no inertia")
            return body
        listed = ", ".join(f"{moment:g}" for moment in moments)
        report.say(f"{what} has principal moments {listed} kg m², as no real body has; it is kept")
    body._keep_inertia(inertial.inertia)
    return body


class Inertial(NamedTuple):
    """Mass [kg], centre of mass [m] and inertia [kg m²] about it, in the axes of the body."""

    mass: float
    center: Array
    inertia: Array


def couple_linearly(m: Mechanism, name: str, first: str, second: str, coefficients: Any, report: Report) -> None:
    """q₂ = c₀ + c₁ q₁ + c₂ q₁² + …, between the only coordinates of two joints."""
    called = free_name(m, name, "coupling", report)
    kinds = [m[joint].of(next(iter(m[joint].kind.coordinates))).kind for joint in (first, second)]
    if len(coefficients) == 2 and coefficients[1] and kinds == ["angle", "angle"]:
        m.gear(called, m[first], m[second], ratio=coefficients[1], phase=coefficients[0])
    elif len(coefficients) == 2 and coefficients[1] and kinds == ["angle", "displacement"]:
        m.rack(called, m[first], m[second], radius=coefficients[1], offset=coefficients[0])
    else:
        terms = [f"{c!r}*q^{k}" if k > 1 else f"{c!r}*q" if k else repr(c) for k, c in enumerate(coefficients)]
        m.couple(called, m[first], m[second], Formula(" + ".join(terms), ("q",)))
