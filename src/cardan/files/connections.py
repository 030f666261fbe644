"""What joints and loads of a file connect: bodies, frames, points, coordinates; and their options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from cardan.constraints.spline import Spline, of_pieces, spline
from cardan.errors import ModelError
from cardan.files import spec
from cardan.files.formula import Formulas, evaluated
from cardan.files.text import Path
from cardan.files.units import quantity_of
from cardan.files.values import Skip, Values, short, shown
from cardan.joints import Coordinate, Joint, coordinate
from cardan.mechanism import Mechanism
from cardan.system import check
from cardan.system import formulas as design
from cardan.system.formulas import are_floats
from cardan.system.parts import GROUND, Body, Direction, Frame, Point, cross, default_reference

MOST_POINTS: Final = 100_000  # of a spline
UNIT: Final = 1e-15  # a squared length this near to one is one up to rounding
CROSSED: Final = 4e-16  # a cosine this small is zero up to rounding

FEATURE: Final = (*spec.ENDS["frame"], "point", "vector")  # keys of a feature of a body
# axes x, y, z of a frame for which none are given, and whether x is given
UPRIGHT: Final = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), False)

# Names of joints in other programs.
OTHER_NAMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("hinge", "pin", "rotation"), "revolute"),
    **dict.fromkeys(("slider", "slide", "linear", "translation"), "prismatic"),
    **dict.fromkeys(("ball", "socket"), "spherical"),
    **dict.fromkeys(("hooke", "cardan"), "universal"),
    **dict.fromkeys(("weld", "rigid", "lock"), "fixed"),
    **dict.fromkeys(("rod", "link"), "distance"),
    **dict.fromkeys(("helical", "thread"), "screw"),
    **dict.fromkeys(("motor", "driver"), "drive"),
}


class Ends(Values):
    """The arguments of joints and loads, made of the bodies and joints before them."""

    def __init__(self) -> None:
        super().__init__()
        self.m: Mechanism
        self.named: dict[str, dict[str, Any]] = {}  # frames, by body and name
        self.failed: set[str] = set()  # items whose problems were reported
        self.later: set[str] = set()  # joints that follow in the file

    def _kind(self, path: Path, table: Mapping[str, Any], kinds: Iterable[str]) -> str:
        kind = table.get("kind")
        if not isinstance(kind, str) or kind not in kinds:
            what = {"joints": "kind of joint", "rates": "kind of rate row"}.get(str(path[0]), "kind of load")
            if "kind" not in table:
                self.problem(path, f"the key 'kind' is missing; kinds are {', '.join(map(repr, kinds))}")
            elif isinstance(kind, str) and OTHER_NAMES.get(kind, "") in kinds:
                self.problem((*path, "kind"), f"no {what} is named {kind!r}; it is {OTHER_NAMES[kind]!r} here")
            else:
                self.problem((*path, "kind"), str(check.unknown(shown(kind), what, kinds)))
            raise Skip
        return kind

    def _arguments(self, path: Path, table: Mapping[str, Any], kind: spec.Spec) -> dict[str, Any]:
        before = len(self.problems)
        complete = self._keys(path, table, kind.keys, kind.required)
        found: dict[str, Any] = {}
        failed = not complete
        for name, takes, _ in kind.ends:
            if name in table:
                try:
                    found[name] = self._end((*path, name), table[name], takes, kind.sorts.get(name, ""))
                except Skip:
                    failed = True
                except ModelError as error:
                    self.problem((*path, name), str(error))
        on = [end for end in found.values() if isinstance(end, Coordinate)] if kind.options else []
        for option in kind.options.values():
            if option.name in table:
                try:
                    found[option.name] = self._option((*path, option.name), table[option.name], option, on)
                except Skip:
                    failed = True
                except ModelError as error:
                    self.problem((*path, option.name), str(error))
        if failed or len(self.problems) > before:
            raise Skip
        return found

    def _option(self, path: Path, value: Any, option: spec.Option, on: Sequence[Coordinate]) -> Any:
        """The value of an option; on: the coordinates that the item connects."""
        unit, variables, splined, sort = option.quantity
        if sort in ("flag", "word"):
            if not isinstance(value, bool if sort == "flag" else str):
                valid = "true or false" if sort == "flag" else "a string"
                raise ModelError(f"{option.name} is {short(value)}; it must be {valid}")
            return value
        if unit == "coordinate":
            unit = "length" if not on else quantity_of(on[0])
        if sort == "number":
            return self._numbers(path, value, unit, formulas=True)
        if path[0] == "loads" and self._is_of_parameters(value):
            return self._numbers(path, value, unit, formulas=True)
        if isinstance(value, str):
            return self._formula(path, value, variables, formulas=path[0] == "joints" and variables == ("t",))
        if isinstance(value, list) and any(isinstance(item, str) for item in value):
            parts = [
                self._formula((*path, k), item, variables)
                if isinstance(item, str)
                else self._number((*path, k), item, "")
                for k, item in enumerate(value)
            ]
            if len(parts) != 3:
                raise ModelError(f"it has {len(parts)} values, {short(value)}; it must be a list of 3")
            return Formulas(tuple(parts))
        if isinstance(value, list) and not splined:
            return self._vector(path, value, unit, 3)
        if splined and type(value) is dict:
            return self._spline(path, value, on)
        return self._numbers(path, value, unit)

    def _is_of_parameters(self, value: Any) -> bool:
        """Whether expressions of a function, which is a number or three, have parameters and no variables."""
        texts = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]
        try:
            found = [evaluated(text, self.constants) for text in texts]
        except ModelError:  # it has variables, or is no expression
            return False
        return any(isinstance(one, design.Formula) for one in found)

    def _spline(self, path: Path, table: dict[str, Any], on: Sequence[Coordinate]) -> Spline:
        """A spline through points in the units of the file, or of pieces in SI units."""
        is_points = "breaks" not in table and "coefficients" not in table
        known = spec.POINTS if is_points else spec.PIECES
        self._need(path, table, known, known[:2])
        periodic = table.get("periodic", False)
        if not isinstance(periodic, bool):
            self.problem((*path, "periodic"), f"it is {short(periodic)}; it must be true or false")
            raise Skip
        first, second = known[:2]
        lists = [table[word] for word in (first, second)]
        if not all(type(one) is list and 2 - k * (not is_points) <= len(one) <= MOST_POINTS
                   for k, one in enumerate(lists)):  # fmt: skip
            raise ModelError(f"{first} and {second} of a spline must be lists of two to {MOST_POINTS:,} numbers")
        if is_points:
            of_x = quantity_of(on[0]) if len(on) == 2 else ""  # a coupling; of time for a driver
            of_y = quantity_of(on[-1]) if on else ""
            x, y = (
                self._numbers((*path, word), one, of, most=MOST_POINTS)
                for word, one, of in zip((first, second), lists, (of_x, of_y), strict=True)
            )
            return spline(x, y, periodic=periodic)
        breaks = check.numbers(self._numbers((*path, first), lists[0], "", most=MOST_POINTS), len(lists[0]), first)
        rows = [self._numbers((*path, second, k), row, "") for k, row in enumerate(lists[1])]
        if len(rows) != len(breaks) - 1 or any(type(row) is not list or len(row) != len(rows[0]) for row in rows):
            raise ModelError(f"there are {len(breaks)} breaks; coefficients must be {len(breaks) - 1} lists of numbers")
        if not all(a < b for a, b in pairwise(breaks)):
            raise ModelError("the breaks of a spline must increase")
        coefficients = np.array([check.numbers(row, len(row), second) for row in rows]).T
        return of_pieces(list(breaks), coefficients, periodic, "it")

    def _end(self, path: Path, value: Any, takes: str, sort: str = "") -> Any:
        """What an item connects; sort: the kind of coordinate that it takes, "" for any."""
        if takes == "face" and isinstance(value, str):
            return self._face(path, value)
        if isinstance(value, str):
            end = self._by_name(path, value, takes, sort)
        else:
            end = self._by_table(path, value, takes)
        if isinstance(end, Coordinate) and sort and end.kind != sort:
            raise ModelError(f"the coordinate {end!r} is not {check.with_article(sort)}, which this kind of item needs")
        is_point, is_vector = isinstance(end, Point), isinstance(end, Direction)
        if (is_point and "point" not in takes) or (is_vector and "vector" not in takes):
            raise ModelError(f"it is a {'point' if is_point else 'vector'}; it must be {_ways(takes)}")
        if isinstance(end, Frame) and takes == "vector":
            raise ModelError(f"it is a frame; it must be {_ways(takes)}")
        return end

    def _by_table(self, path: Path, value: Any, takes: str) -> Any:
        """A feature or a coordinate that is given by a table."""
        if takes == "face":
            raise ModelError(f"it is {short(value)}; it must be the name of a face, {_ways(takes)}")
        if type(value) is not dict:
            raise ModelError(f"it is {short(value)}; it must be {_ways(takes)}")
        table: dict[str, Any] = value
        if "a" in table or "b" in table or "of" in table:
            if "coordinate" not in takes:
                raise ModelError(f"a coordinate is given; it must be {check.with_article(takes.replace('|', ' or '))}")
            self._need(path, table, spec.ENDS["coordinate"], ("a", "b"))
            of = table.get("of", "angle")
            ends = [self._end((*path, key), table[key], "frame" if key == "a" or of != "distance" else "point")
                    for key in ("a", "b")]  # fmt: skip
            return coordinate(ends[0], ends[1], of)
        if "body" not in table:
            self.problem(path, f"the key 'body' is missing; an end is {_ways(takes)}")
            raise Skip
        return self._feature(path, table, self._find_body(path, table["body"]))

    def _find_body(self, path: Path, name: Any) -> Body:
        if name == GROUND:
            return self.m.ground
        body = self.m._model.bodies.get(name) if isinstance(name, str) else None
        if body is None:
            if isinstance(name, str) and name in self.failed:
                raise Skip
            self.problem((*path, "body"), str(check.unknown(name, "body", [GROUND, *self.m._model.bodies])))
            raise Skip
        return body

    def _feature(self, path: Path, table: Mapping[str, Any], body: Body) -> Frame | Point | Direction:
        for word in ("point", "vector"):
            if word in table:
                self._keys(path, table, spec.ENDS[word], ())
                quantity = "length" if word == "point" else ""
                numbers = self._vector((*path, word), table[word], quantity, 3, formulas=True)
                if word == "point":
                    return body.point(numbers)
                unit = _unit(numbers)
                return body.vector(numbers) if unit is None else Direction(body, unit)
        self._keys(path, table, FEATURE, ())
        origin: Any = (0.0, 0.0, 0.0)
        if "origin" in table:
            origin = self._vector((*path, "origin"), table["origin"], "length", 3, formulas=True)
        if "z" not in table and "x" not in table:
            return Frame(body, body._own(check.place(origin, f"the origin of a frame on body {body.name!r}")), *UPRIGHT)
        z: Any = (0.0, 0.0, 1.0)
        if "z" in table:
            z = self._vector((*path, "z"), table["z"], "", 3, formulas=True)
        x = self._vector((*path, "x"), table["x"], "", 3, formulas=True) if "x" in table else None
        return exact_frame(body, origin, z, x)

    def _by_name(self, path: Path, name: str, takes: str, sort: str) -> Any:
        """A body, a named frame of a body, a joint, or one coordinate of a joint."""
        of, _, word = name.rpartition(".")
        joint = self.m._model.joints.get(name)
        if "coordinate" in takes:
            if joint is not None:
                return _only(joint, sort)
            if of in self.m._model.joints:
                return self.m._model.joints[of].of(word)
            if name in self.later or of in self.later:
                raise ModelError(f"joint {name!r} comes later in the file; put it before this one")
        if takes != "coordinate":
            body = self.m.ground if name == GROUND else self.m._model.bodies.get(name)
            if body is not None:
                if takes == "body":
                    return body
                return body.frame() if "frame" in takes else body.point()
            for k, letter in enumerate(name):
                if letter == "." and name[k + 1 :] in self.named.get(name[:k], {}):
                    return self.named[name[:k]][name[k + 1 :]]
        if name in self.failed or of in self.failed:
            raise Skip
        valid: list[str] = []
        if "coordinate" in takes:
            valid += [item.name for item in self.m._model.joints.values() if item.kind.coordinates]
            valid += [f"{item.name}.{w}" for item in self.m._model.joints.values() for w in item.kind.coordinates]
        if takes != "coordinate":
            valid += [GROUND, *self.m._model.bodies, *(f"{b}.{f}" for b, frames in self.named.items() for f in frames)]
        what = " or ".join(takes.split("|"))
        self.problem(path, str(check.unknown(name, what, valid)))
        raise Skip

    def _face(self, path: Path, name: str) -> Any:
        """A named curve or surface of a body, or the only one of a body."""
        for k, letter in enumerate(name):
            if letter == "." and (name[:k], name[k + 1 :]) in self.source.faces:
                return self.source.faces[name[:k], name[k + 1 :]]
        body = self.m.ground if name == GROUND else self.m._model.bodies.get(name)
        found = [one for one in body.attachments if hasattr(one.shape, "geometry")] if body is not None else []
        if len(found) == 1:
            return found[0]
        if name in self.failed or f"{name}." in self.failed or name.rpartition(".")[0] in self.failed:
            raise Skip
        if body is not None:
            if not found:
                way = 'add one to its shapes, such as { geometry = "circle", radius = 1.0 }'
                raise ModelError(f"body {name!r} has no curve or surface for a contact; {way}")
            raise ModelError(f"body {name!r} has {len(found)} curves and surfaces; choose one: {_ways('face')}")
        self.problem(path, str(check.unknown(name, "face", [f"{b}.{f}" for b, f in self.source.faces])))
        raise Skip


def _only(joint: Joint, sort: str) -> Coordinate:
    """The only coordinate of that kind ("" for any) of a joint; ModelError if it has none, or several."""
    every = [joint.of(word) for word in joint.kind.coordinates]
    found = [one for one in every if not sort or one.kind == sort]
    if not found:
        raise ModelError(
            f"joint {joint.name!r} ({joint.kind.name}) has no {sort or 'coordinate'}; it must be {_ways('coordinate')}"
        )
    if len(found) > 1:
        names = ", ".join(repr(f"{joint.name}.{one.name}") for one in found)
        raise ModelError(
            f"joint {joint.name!r} ({joint.kind.name}) has several {sort or 'coordinate'}s; choose one: {names}"
        )
    return found[0]


def _ways(takes: str) -> str:
    ways = {
        "frame": '{ body = "…", origin = […], z = […], x = […] } or "body.frame"',
        "point": '{ body = "…", point = […] } or "body.frame"',
        "vector": '{ body = "…", vector = […] }',
        "coordinate": 'the name of a joint, "joint.coordinate", or { a = …, b = …, of = "…" }',
        "body": "the name of a body",
        "face": '"body.face", where a shape of the body with the key geometry has that name',
    }
    return ", or ".join(ways[word] for word in takes.split("|"))


def _unit(v: Any) -> Any:
    """The vector as a tuple of floats, if its length is one up to rounding; else None."""
    if not isinstance(v, list | tuple) or len(v) != 3:
        return None
    if not are_floats(v):
        if not all(isinstance(c, float | int) for c in v):
            return None
        v = [float(c) for c in v]
    x, y, z = v
    return (x, y, z) if abs(x * x + y * y + z * z - 1.0) <= UNIT else None


def exact_frame(body: Body, origin: Any, z: Any, x: Any) -> Frame:
    """The frame; axes that are orthonormal up to rounding are kept as given, so that saved ones are read unchanged."""
    unit_z = _unit(z)
    if unit_z is None:
        return Frame.build(body, origin, z, x)
    if x is None:
        unit_x: Any = default_reference(unit_z)
    else:
        unit_x = _unit(x)
        if unit_x is None or abs(x[0] * z[0] + x[1] * z[1] + x[2] * z[2]) > CROSSED:
            return Frame.build(body, origin, z, x)
    place = body._own(check.place(origin, f"the origin of a frame on body {body.name!r}"))
    return Frame(body, place, unit_x, cross(unit_z, unit_x), unit_z, x is not None)
