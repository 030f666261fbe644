"""What URDF and MJCF share: XML that is read safely, rotations, and a report of what is not converted."""

from __future__ import annotations

import codecs
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.errors import ModelError
from cardan.files.formula import Formula
from cardan.files.reader import MOST_BYTES
from cardan.mechanism import Mechanism
from cardan.system import check
from cardan.system.parts import Body, Frame, quaternion_from_columns

Array = NDArray[np.float64]
MOST_DEPTH: Final = 200  # nested elements
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


def parse(path: Any, root: str) -> ET.Element:
    """The root element of an XML file; declarations of entities and deep nesting are refused."""
    target = Path(path)
    try:
        if target.stat().st_size > MOST_BYTES:
            raise ModelError(f"the file {str(path)!r} is larger than {MOST_BYTES:,} bytes")
        content = _decoded(target.read_bytes())
    except OSError as error:
        raise ModelError(f"the file {str(path)!r} cannot be read: {error.strerror or error}") from None
    except (UnicodeError, LookupError) as error:
        raise ModelError(f"the file {str(path)!r} is not text in its encoding: {error}; save it as UTF-8") from None
    if "<!DOCTYPE" in content or "<!ENTITY" in content:
        raise ModelError(
            f"the file {str(path)!r} declares a document type or entities, which are not read; remove them"
        )
    parser: Any = ET.XMLPullParser(("start", "end"))
    depth = 0
    try:
        parser.feed(content)
        parser.close()
        element: ET.Element | None = None
        for event, found in parser.read_events():
            element = found
            depth += 1 if event == "start" else -1
            if depth > MOST_DEPTH:
                raise ModelError(f"the file {str(path)!r} is nested more than {MOST_DEPTH} deep")
    except ET.ParseError as error:
        line, _ = error.position
        raise ModelError(f"{path}, line {line}: it is not valid XML: {error}") from None
    except (ValueError, LookupError) as error:
        raise ModelError(f"the file {str(path)!r} is not valid XML: {error}") from None
    if element is None or element.tag != root:
        found_tag = "nothing" if element is None else f"<{element.tag}>"
        raise ModelError(f"the file {str(path)!r} has {found_tag}; its root must be <{root}>")
    return element


def numbers(element: ET.Element, key: str, count: int, default: Sequence[float] | None = None) -> Array:
    """Numbers of an attribute; ModelError that names the element."""
    text = element.get(key)
    if text is None:
        if default is None:
            raise ModelError(f"{describe(element)} has no {key!r}; it must have {count} numbers")
        return np.array(default, dtype=float)
    try:
        found = [float(word) for word in text.split()]
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
    n = float(np.linalg.norm(v))
    if not n > 0.0:
        raise ModelError(f"{what} is {v.tolist()}; it must not be zero")
    found: Array = v / n
    return found


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
    name, k = wanted, 1
    while name in m or name in ("ground", reserved):
        name = f"{wanted}_{suffix}" if k == 1 else f"{wanted}_{suffix}_{k}"
        k += 1
    if name != wanted:
        report.say(f"the {suffix} {wanted!r} is named {name!r} here, because the name is taken")
    return name


def add_body(m: Mechanism, name: str, at: Transform, inertial: Inertial | None, report: Report) -> Body:
    """A body with what the file says about its mass; an inertia that is not physically possible is reported."""
    where: dict[str, Any] = {"position": at.p, "orientation": at.quaternion()}
    if inertial is None:
        report.say(f"link {name!r} has no mass; 1 kg is assumed, which matters in dynamics alone")
        return m.body(name, **where)
    values: dict[str, Any] = {**where, "mass": inertial.mass, "center": inertial.center}
    try:
        values["inertia"] = check.inertia(inertial.inertia, f"the inertia of body {name!r}")
    except ModelError as error:
        report.say(f"not converted: {error}")
    return m.body(name, **values)


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
