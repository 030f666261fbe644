"""The changes that repairs try, and the packed system with such a change: see :mod:`cardan.analysis.repairs`."""

from __future__ import annotations

import inspect
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np

from cardan.errors import ModelError
from cardan.joints.coordinates import Coordinate
from cardan.joints.registry import Joint
from cardan.math import euler
from cardan.quantities import annotated
from cardan.system import reading
from cardan.system import tables as layout
from cardan.system.display import Display
from cardan.system.drawing import Drawing
from cardan.system.formulas import plain_at
from cardan.system.parts import AngleRecord, Frame, quaternion_from_columns
from cardan.system.relations import Record
from cardan.system.state import FloatArray
from cardan.system.system import Source, System

FAR: Final = 30.0  # a length that differs from the median by a larger factor is tried first
DIGITS: Final = 6  # of a length in a text
SMALL: Final = 1e-12  # relative to the largest coordinate: places that differ by less are the same
# Primitives for which the sign of an axis matters: of the whole orientation, and of z alone
ORIENTED: Final = {"rotation_vector"}
SIGNED: Final = {"aligned", "dot_2"}

Places = list[tuple[FloatArray, FloatArray]]  # of the ends of a joint: origin, and axes as columns, in body axes


@dataclass(frozen=True)
class Move:
    """Features of one end of a joint: p → to + M (p − at), v → M v."""

    joint: str
    end: int
    at: FloatArray
    to: FloatArray
    M: FloatArray

    def point(self, p: Any) -> list[float]:
        """Where a point is moved to."""
        return (self.to + self.M @ (np.array(p) - self.at)).tolist()


@dataclass(frozen=True)
class Change:
    """What is tried: moves of ends, or a factor on a parameter of a joint (by its position) or of the mechanism."""

    kind: str
    names: tuple[str, ...]
    text: str
    size: float
    moves: tuple[Move, ...] = ()
    option: tuple[str, str, float] | None = None  # joint, option, factor
    parameter: tuple[str, float] | None = None  # name, value


def changes(drawing: Drawing, joints: list[Joint], others: list[Joint]) -> Iterator[Change]:
    """What is tried: lengths that are far from the median, then axes and places, then other lengths and parameters.

    others: with which joints may have exchanged places.
    """
    every = [joint for joint in (*joints, *others) if joint.kind.is_between_places]
    places = {joint.name: _places(drawing, joint) for joint in every}
    between = [joint for joint in joints if joint.name in places]
    display = drawing.contents.display
    lengths = [length for joint in between for length in _lengths_of(joint, places[joint.name], display)]
    lengths += [length for joint in joints for length in _options_of(joint, display)]
    usual = float(np.median([length.value for length in lengths])) if lengths else 1.0
    far = [length for length in lengths if not usual / FAR <= length.value <= usual * FAR]
    yield from [length.change(usual) for length in far]
    for joint in between:
        yield from _reversed_axes(joint, places[joint.name])
    for joint in between:
        yield from _exchanged_ends(joint, places[joint.name])
    pairs = [*combinations(between, 2), *[(one, other) for one in between for other in every[len(between) :]]]
    yield from _exchanged_joints(pairs, places)
    yield from [length.change(usual) for length in lengths if length not in far]
    for name, value in drawing.drawn.items():
        for factor in (1e-3, 1e3) if value else ():
            told = f"{_scaled_words(factor, f'parameter {name!r}')}: {value * factor:g} instead of {value:g}"
            size = abs(value * (factor - 1.0))
            yield Change("scale length", (name,), told, size, parameter=(name, value * factor))


@dataclass(frozen=True, eq=False)
class _Length:
    """A length that may be in another unit: of a place (with the coordinates it consists of), or of an option."""

    joint: Joint
    value: float  # [m], positive
    what: str
    told: Callable[[float], str]  # the length times a factor, in words
    end: int = -1
    place: FloatArray | None = None
    mask: FloatArray | None = None
    option: str = ""

    def change(self, usual: float) -> Change:
        """Times 1000, or divided by 1000, whichever brings it nearer to the usual length."""
        factor = 1e3 if self.value < usual else 1e-3
        text = f"{_scaled_words(factor, self.what)}: {self.told(factor)} instead of {self.told(1.0)}"
        size = self.value * abs(factor - 1.0)
        changed: dict[str, Any] = {"option": (self.joint.name, self.option, factor)}
        if self.place is not None and self.mask is not None:
            to = np.where(self.mask, factor * self.place, self.place)
            changed = {"moves": (Move(self.joint.name, self.end, self.place, to, np.eye(3)),)}
        return Change("scale length", (self.joint.name,), text, size, **changed)


def _places(drawing: Drawing, joint: Joint) -> Places:
    """Origin and axes (columns) of each end, in body axes; a point has the axes of its body."""
    nodes = None if drawing.values is None else drawing.values.nodes
    found = []
    for end in joint.ends:
        origin = np.array(plain_at(end.feature().value, nodes))
        axes = np.eye(3)
        if isinstance(end, Frame):
            axes = np.column_stack([plain_at(end.axis(k).value, nodes) for k in "xyz"])
        found.append((origin, axes))
    return found


def _reversed_axes(joint: Joint, places: Places) -> Iterator[Change]:
    """A frame turned by 180°; turned on either body, the joint is the same."""
    if not all(isinstance(end, Frame) for end in joint.ends):
        return
    origin, axes = places[1]
    bodies = joint.ends[1].body.name, joint.ends[0].body.name
    where = f"{joint.name!r} on {bodies[0]!r} (or on {bodies[1]!r})"
    primitives = {relation.primitive.name for relation in joint.relations}
    plain = not primitives & ORIENTED
    for k, word in enumerate("xyz" if not plain else "x" if primitives & SIGNED else ""):
        a = axes[:, k]
        M = 2.0 * np.outer(a, a) - np.eye(3)
        others = " and ".join([other for other in "xyz" if other != word])
        text = f"reverse axis z of {where}" if plain else f"reverse axes {others} of {where}"
        yield Change("reverse axis", (joint.name,), text, 0.0, (Move(joint.name, 1, origin, origin, M),))


def _exchanged_ends(joint: Joint, places: Places) -> Iterator[Change]:
    """The place of a joint on each of its bodies, in the axes of the other."""
    (p, A), (q, B) = places
    if not isinstance(joint.ends[0], type(joint.ends[1])) or (_are_same(p, q) and np.allclose(A, B)):
        return
    moves = (Move(joint.name, 0, p, q, B @ A.T), Move(joint.name, 1, q, p, A @ B.T))
    text = f"exchange the places of {joint.name!r} on {joint.a.body.name!r} and on {joint.b.body.name!r}"
    yield Change("exchange places", (joint.name,), text, float(np.linalg.norm(p - q)), moves)


def _exchanged_joints(pairs: list[tuple[Joint, Joint]], places: dict[str, Places]) -> Iterator[Change]:
    """The places of two joints on one body; their axes stay."""
    for one, other in pairs:
        for i, j in ((i, j) for i in range(2) for j in range(2)):
            if one.ends[i].body is other.ends[j].body:
                p, q = places[one.name][i][0], places[other.name][j][0]
                if not _are_same(p, q):
                    moves = Move(one.name, i, p, q, np.eye(3)), Move(other.name, j, q, p, np.eye(3))
                    names = one.name, other.name
                    text = f"exchange the places of {one.name!r} and {other.name!r} on {one.ends[i].body.name!r}"
                    yield Change("exchange places", names, text, float(np.linalg.norm(p - q)), moves)


def _lengths_of(joint: Joint, places: Places, display: Display) -> Iterator[_Length]:
    """The places of a joint on its bodies, and single coordinates of places that have several."""
    for k, (p, _) in enumerate(places):
        used = p != 0.0
        masks = [used] if used.any() else []
        masks += [np.arange(3) == i for i in np.flatnonzero(used)] if used.sum() > 1 else []
        for mask in masks:
            which = f"{'xyz'[int(np.argmax(mask))]} of " if mask is not used else ""
            what = f"{which}the place of {joint.name!r} on {joint.ends[k].body.name!r}"

            def told(factor: float, p: FloatArray = p, mask: FloatArray = mask) -> str:
                return f"({', '.join([display.text(x, 'm', DIGITS) for x in np.where(mask, factor * p, p).tolist()])})"

            yield _Length(joint, float(np.linalg.norm(p[mask])), what, told, end=k, place=p, mask=mask)


def _options_of(joint: Joint, display: Display) -> Iterator[_Length]:
    """Lengths among the options of a constraint."""
    declared = inspect.signature(joint.kind.build).parameters
    for word, value in joint.parameters:
        is_plain = isinstance(value, float | int) and not isinstance(value, bool) and word in declared
        if is_plain and value and annotated(joint.kind.build, declared[word]).unit == "length":

            def told(factor: float, value: float = value) -> str:
                return str(display.text(value * factor, "m", DIGITS))

            yield _Length(joint, abs(value), f"{word} of {joint.name!r}", told, option=word)


def _scaled_words(factor: float, what: str) -> str:
    return f"{'divide' if factor < 1.0 else 'multiply'} {what} by 1000"


def _are_same(p: FloatArray, q: FloatArray) -> bool:
    return bool(np.abs(p - q).max() <= SMALL * max(np.abs(p).max(), np.abs(q).max()))


def changed(drawing: Drawing, system: System, change: Change) -> System | None:
    """The system with a change; None if the change is not valid."""
    try:
        if change.parameter is not None:
            name, value = change.parameter
            return drawing.at_values({**drawing.drawn, name: value}).system
        source = system._source
        for move in change.moves:
            source = _moved(drawing, source, move)
        if change.option is not None:
            source = _scaled(drawing, source, *change.option)
        return System.from_source(source)
    except ModelError:  # beyond the bounds of a parameter, or too large to be computed with
        return None


def _scaled(drawing: Drawing, source: Source, name: str, word: str, factor: float) -> Source:
    """The source with another value of a length among the options of a constraint."""
    joint: Joint = drawing.contents.joints[name]
    options = {key: value * factor if key == word else value for key, value in joint.parameters}
    if joint.kind.own:
        options["own"] = {key: joint.of(key) for key in joint.kind.coordinates} or name
    made = iter([relation.template for relation in joint.kind.build(*joint.ends, **options)])
    records = [
        _with_parameters(record, next(made)) if own == name else record
        for own, record in zip(source.constraints, source.records, strict=True)
    ]
    return source._replace(records=tuple(records))


def _with_parameters(record: Record, made: Record) -> Record:
    """A record with the parameters, and the size, of another."""
    count = array("d").itemsize * len(record.primitive.parameters)
    return record._replace(floats=made.floats[:count] + record.floats[count:], size=made.size)


def _moved(drawing: Drawing, source: Source, move: Move) -> Source:
    """The source with the features of one end of a joint moved, wherever its coordinates are used."""
    joint = drawing.contents.joints[move.joint]
    end = joint.ends[move.end].body
    body, named = end._serial, "" if end.is_ground else end.name
    numbers: dict[str, int] = {}
    records = []
    for name, record in zip(source.constraints, source.records, strict=True):
        number = numbers[name] = numbers.get(name, -1) + 1
        user = drawing.contents.joints.get(name)
        chosen = [] if user is None else _features_of(user, number, joint)
        if chosen:
            record = _moved_record(record, chosen, body, move)
        if name == joint.name:
            moved: list[Any] = [(at, tuple(move.point(p)) if at == named else p) for at, p in record.locations]
            record = record._replace(locations=tuple(moved))
        records.append(record)
    serials = {counted._serial for _, counted in joint.angles}
    angles = [_moved_angle(angle, body, move) if angle.serial in serials else angle for angle in source.angles]
    edges = {name: edge for name, edge in source.edges.items() if name != joint.name}
    return source._replace(records=tuple(records), angles=tuple(angles), edges=edges)


def _features_of(user: Joint, number: int, joint: Joint) -> list[int]:
    """Which features of a relation of a constraint are those of a joint, or of one of its coordinates."""
    count = len(user.relations[number].features)
    if user is joint:
        return list(range(count))
    found, first = [], 0
    for end in user.ends:
        if isinstance(end, Coordinate):
            size = len(end.arguments())
            found += list(range(first, first + size)) if end.joint == joint.name else []
            first += size
    return found


def _moved_record(record: Record, chosen: list[int], body: int, move: Move) -> Record:
    """A record with the chosen features on a body moved."""
    floats = array("d", record.floats)
    features = reading.features(reading.template(record.ints))
    for kind, on, _, source, _ in [features[k] for k in chosen]:
        if on != body or kind > layout.ORIENTATION:
            continue
        if kind == layout.ORIENTATION:
            turned = euler.multiply(quaternion_from_columns(*move.M.T), np.array(floats[source : source + 4]))
            floats[source : source + 4] = array("d", turned.tolist())
        else:
            value = np.array(floats[source : source + 3])
            moved = move.point(value) if kind == layout.POINT else (move.M @ value).tolist()
            floats[source : source + 3] = array("d", moved)
    return record._replace(floats=floats.tobytes(), bindings=())


def _moved_angle(angle: AngleRecord, body: int, move: Move) -> AngleRecord:
    """A counted angle with its axes on a body turned: x and y on body a, v on body b."""
    a, b, _ = array("q", angle.ints)
    axes = np.array(array("d", angle.floats)).reshape(3, 3)
    on = np.array([a, a, b]) == body
    axes[on] = axes[on] @ move.M.T
    return angle._replace(floats=axes.tobytes(), bindings=())
