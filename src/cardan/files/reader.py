"""From the values of a file to a Mechanism.  All problems are reported together, each with its line and key."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path as FilePath
from typing import Any, Final, NamedTuple

import numpy as np

from cardan.constraints import user
from cardan.errors import ModelError
from cardan.files import looks, spec, text
from cardan.files.formula import Formula, Formulas, evaluated
from cardan.files.text import Path
from cardan.files.units import Units
from cardan.joints import Coordinate, Joint, coordinate
from cardan.mechanism import GROUND, Mechanism
from cardan.system import check
from cardan.system import formulas as design
from cardan.system.parts import Body, Direction, Frame, Point, _cross, _orthogonal_part, default_x
from cardan.system.state import State

MOST_BYTES: Final = 64_000_000  # of a file
MOST_ITEMS: Final = 1_000_000  # bodies, joints and loads
MOST_OPERATIONS: Final = 50_000  # in all expressions of a file together
MOST_PROBLEMS: Final = 50  # reported
UNIT: Final = 1e-15  # a squared length this near to one is one up to rounding
CROSSED: Final = 4e-16  # a cosine this small is zero up to rounding

Migration = Callable[[dict[str, Any]], dict[str, Any]]
MIGRATIONS: Final[Mapping[int, Migration]] = {}  # from a version of the format to the next; none is needed yet


class Problem(NamedTuple):
    """One error in a file: line (0 if unknown), key, and what is wrong."""

    line: int
    key: str
    message: str

    def __str__(self) -> str:
        where = ", ".join([*([f"line {self.line}"] if self.line else []), *([self.key] if self.key else [])])
        return f"{where}: {self.message}" if where else self.message


class FileError(ModelError):
    """A model file is wrong; ``problems`` lists everything that is wrong with it."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        if len(problems) == 1:
            message = f"{file}, {problems[0]}"
        else:
            listed = "\n".join(f"  {problem}" for problem in problems[:MOST_PROBLEMS])
            more = f"\n  … and {len(problems) - MOST_PROBLEMS} more" if len(problems) > MOST_PROBLEMS else ""
            message = f"{file} has {len(problems)} errors:\n{listed}{more}"
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return FileError, (self.file, self.problems)


@dataclass
class Source:
    """What a file said beyond the mechanism: units, named frames, and the texts of expressions with their values."""

    units: Units = field(default_factory=Units)
    derived: dict[str, str] = field(default_factory=dict)  # parameters that are expressions of others
    frames: dict[tuple[str, str], Any] = field(default_factory=dict)
    texts: dict[Path, tuple[Any, Any]] = field(default_factory=dict)


class _Skip(Exception):
    """An item cannot be made; its problem has been reported."""


def read(
    content: str,
    file: str,
    as_json: bool,
    *,
    base: Mechanism | None = None,
    migrations: Mapping[int, Migration] = MIGRATIONS,
) -> Mechanism:
    """The mechanism of a text; FileError with everything that is wrong.  base: a mechanism to which it is added."""
    if len(content) > MOST_BYTES:
        raise FileError(file, [Problem(0, "", f"the file is larger than {MOST_BYTES:,} bytes")])
    try:
        document = text.parse(content, as_json)
        header = document.get("units", {})
        if isinstance(header, dict) and any(header.get(key, unit) != unit for key, unit in Units().as_dict().items()):
            document = text.parse(content, as_json, exact=True)
    except text.SyntaxProblem as problem:
        raise FileError(file, [Problem(problem.line, "", str(problem))]) from None
    reader = Reader(migrations, base)
    made = None
    with contextlib.suppress(_Skip):  # its problem has been reported
        made = reader.mechanism(document)
    if reader.problems or made is None:
        lines = text.lines_of(content, as_json, [path for path, _ in reader.problems])
        found = [Problem(line, _dotted(path), m) for line, (path, m) in zip(lines, reader.problems, strict=True)]
        raise FileError(file, sorted(found, key=lambda problem: problem.line))
    return made


def _dotted(path: Path) -> str:
    return ".".join(str(part) for part in path)


def load(path: str | FilePath) -> Mechanism:
    """The mechanism in a file ``*.cardan.toml``, or JSON of the same schema.

    Raises :class:`cardan.FileError`, a ModelError, that lists everything that is wrong, with lines and keys.  Text of
    the file is never executed.
    """
    target = FilePath(path)
    if target.suffix.lower() not in spec.SUFFIXES:
        raise ModelError(f"the file is {str(path)!r}; its name must end in {', '.join(spec.SUFFIXES)}")
    try:
        if target.stat().st_size > MOST_BYTES:
            raise FileError(str(path), [Problem(0, "", f"the file is larger than {MOST_BYTES:,} bytes")])
        content = target.read_bytes().decode("utf-8")
    except OSError as error:
        raise ModelError(f"the file {str(path)!r} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise FileError(
            str(path), [Problem(0, "", f"it is not UTF-8 text: byte {error.start} {error.reason}")]
        ) from None
    return read(content.replace("\r\n", "\n"), str(path), target.suffix.lower() == ".json")


class Reader:
    """One reading of a document."""

    def __init__(self, migrations: Mapping[int, Migration] = MIGRATIONS, base: Mechanism | None = None) -> None:
        self.problems: list[tuple[Path, str]] = []
        self.source = Source()
        self.constants: list[tuple[str, Any]] = []
        self.failed: set[str] = set()
        self.named: dict[str, dict[str, Any]] = {}
        self.later: set[str] = set()
        self.operations = 0
        self.primitives: dict[str, Any] = {}
        self._migrations = migrations
        self._base = base
        if base is not None and base._source is not None:
            for (body, name), frame in base._source.frames.items():
                self.named.setdefault(body, {})[name] = frame
                self.source.frames[body, name] = frame
        self._joints, self._loads = spec.joint_specs(), spec.load_specs()

    def problem(self, path: Path, message: str) -> None:
        """Add an error at a key; too many of them end the reading."""
        self.problems.append((path, message))
        if len(self.problems) > 20 * MOST_PROBLEMS:
            raise _Skip

    # -- the parts of a file -------------------------------------------------------------------------------------------

    def mechanism(self, document: dict[str, Any]) -> Mechanism:
        """The mechanism of a document; errors are collected in ``problems``."""
        document = self._migrated(document)
        self._keys((), document, spec.TOP, ())
        self._header(document)
        tables = {key: self._table((key,), document.get(key, {})) for key in ("bodies", "joints", "loads")}
        if sum(map(len, tables.values())) > MOST_ITEMS:
            self.problem(("bodies",), f"there are more than {MOST_ITEMS:,} bodies, joints and loads")
            raise _Skip
        name = document.get("name", "mechanism")
        try:
            if self._base is not None:
                self.m = self._base
            else:
                gravity = self._numbers(("gravity",), document.get("gravity", (0.0, 0.0, -9.81)), "")
                self.m = Mechanism(name, gravity=gravity)
        except ModelError as error:
            self.problem(("name" if "name" in str(error) else "gravity",), str(error))
            self.m = Mechanism("mechanism")
        except _Skip:
            self.m = Mechanism("mechanism")
        for key, value in self._table(("parameters",), document.get("parameters", {})).items():
            self._try(("parameters", key), self._parameter, key, value)
        for key, value in tables["bodies"].items():
            self._try(("bodies", key), self._body, key, value)
        for key, value in self._table(("primitives",), document.get("primitives", {})).items():
            self._try(("primitives", key), self._primitive, key, value)
        self.later = set(tables["joints"])
        for key, value in tables["joints"].items():
            self.later.discard(key)
            self._try(("joints", key), self._joint, key, value)
        for key, value in self._table(("rates",), document.get("rates", {})).items():
            self._try(("rates", key), self._rate_row, key, value)
        for key, value in tables["loads"].items():
            self._try(("loads", key), self._load, key, value)
        for key, value in self._table(("poses",), document.get("poses", {})).items():
            self._try(("poses", key), self._pose, key, value)
        self.m._source = self.source
        return self.m

    def _try(self, path: Path, make: Callable[[str, Any], None], key: str, value: Any) -> None:
        try:
            make(key, value)
        except _Skip:
            self.failed.add(key)
        except ModelError as error:
            self.failed.add(key)
            self.problem(path, str(error))

    def _migrated(self, document: dict[str, Any]) -> dict[str, Any]:
        version = document.get("cardan")
        if type(version) is not int or version < 1:
            self.problem(("cardan",), f"cardan = {version!r} is the version of the format; it must be {spec.VERSION}")
            raise _Skip
        latest = max([spec.VERSION, *(key + 1 for key in self._migrations)])
        if version > latest:
            message = f"the format is version {version}; this library reads versions up to {latest}: update cardan"
            self.problem(("cardan",), message)
            raise _Skip
        while version < latest:
            document = {**self._migrations[version](document), "cardan": version + 1}
            version += 1
        return document

    def _header(self, document: Mapping[str, Any]) -> None:
        units = self._table(("units",), document.get("units", {}))
        try:
            self.source.units = Units.checked(units)
        except ModelError as error:
            self.problem(("units",), str(error))

    def _parameter(self, name: str, value: Any) -> None:
        """A design parameter, or a named expression of others."""
        path: Path = ("parameters", name)
        try:
            if not name.isidentifier():
                raise ModelError(f"the parameter {name!r} cannot be used in expressions; its name must be a word")
            if isinstance(value, str):
                self.constants.append((name, self._number(path, value, "", formulas=True)))
                self.source.derived[name] = value
                return
            table = {"value": value} if type(value) is not dict else value
            self._need(path, table, spec.PARAMETER, ("value",))
            where = {key: (*path, key) if table is value else path for key in table}
            given = {key: self._number(where[key], number, "") for key, number in table.items()}
            self.constants.append((name, self.m.parameter(name, given.pop("value"), **given)))
        except (_Skip, ModelError):
            self.constants.append((name, 1.0))  # so that its uses are not reported too
            raise

    def _body(self, name: str, value: Any) -> None:
        path: Path = ("bodies", name)
        table = self._table(path, value)
        known = name == GROUND or name in self.m._bodies  # of a base, in a side file
        self._keys(path, table, ("frames", "shapes") if known else spec.BODY, ())
        body: Any
        if known:
            body = self.m[name]
        else:
            given: dict[str, Any] = {}
            for key, quantity in (("position", "length"), ("center", "length"), ("orientation", ""), ("inertia", "")):
                if key in table:
                    given[key] = self._numbers((*path, key), table[key], quantity)
            if "mass" in table:
                given["mass"] = self._number((*path, "mass"), table["mass"], "mass")
            body = self.m.body(name, **given)
        for key, frame in self._table((*path, "frames"), table.get("frames", {})).items():
            where: Path = (*path, "frames", key)
            try:
                made = self._feature(where, {"body": name, **self._table(where, frame)}, body)
            except _Skip:
                self.failed.add(f"{name}.{key}")
                continue
            except ModelError as error:
                self.failed.add(f"{name}.{key}")
                self.problem(where, str(error))
                continue
            self.named.setdefault(name, {})[key] = made
            self.source.frames[name, key] = made
        shapes = table.get("shapes", [])
        if not isinstance(shapes, list):
            self.problem((*path, "shapes"), f"it is {_short(shapes)}; it must be a list of tables")
            raise _Skip
        for k, shape in enumerate(shapes):
            self._shape((*path, "shapes", k), shape, body)

    def _shape(self, path: Path, value: Any, body: Body) -> None:
        table = self._table(path, value)
        try:
            made = looks.read(table, lambda number: self._number(path, number, ""))
            place: dict[str, Any] = {key: table[key] for key in ("origin", "z", "x") if key in table}
            frame = self._feature(path, {"body": body.name, **place}, body)
            assert isinstance(frame, Frame)
            color = table.get("color")
            density = self._number((*path, "density"), table["density"], "") if "density" in table else None
            body.attach(
                made, frame, color=self._numbers(path, color, "") if type(color) is list else color, density=density
            )
        except ModelError as error:
            self.problem(path, str(error))

    def _rate_row(self, name: str, value: Any) -> None:
        path: Path = ("rates", name)
        table = self._table(path, value)
        self._kind(path, table, ["knife_edge"])
        self._need(path, table, spec.KNIFE_EDGE, ("frame",))
        other = self._end((*path, "relative_to"), table["relative_to"], "body") if "relative_to" in table else None
        self.m.knife_edge(name, self._end((*path, "frame"), table["frame"], "frame"), relative_to=other)

    def _primitive(self, name: str, value: Any) -> None:
        path: Path = ("primitives", name)
        table = self._table(path, value)
        self._need(path, table, spec.PRIMITIVE, ("arguments", "rows"))
        kinds = {key: str(kind) for key, kind in self._table((*path, "arguments"), table["arguments"]).items()}
        defaults = self._table((*path, "parameters"), table.get("parameters", {}))
        rows = table["rows"]
        if not isinstance(rows, list) or not rows or not all(isinstance(row, str) for row in rows):
            raise ModelError(f"the rows of primitive {name!r} are {_short(rows)}; they must be a list of expressions")
        given: dict[str, float] = {}
        for key, number in defaults.items():
            if number != "":  # "" declares a parameter without a default
                given[key] = self._number((*path, "parameters", key), number, "")
        names = _components(kinds)
        formulas = []
        for k, row in enumerate(rows):
            formula = self._formula((*path, "rows", k), row, (*names, *defaults), inner=True)
            formulas.append(formula)

        def function(*features: Any, **parameters: Any) -> list[Any]:
            values: list[Any] = []
            for feature in features:
                values += list(feature) if hasattr(feature, "components") else [feature]
            return [formula(*values, *(parameters[key] for key in defaults)) for formula in formulas]

        unit = table.get("unit", "m")
        self.primitives[name] = user.declared(name, kinds, tuple(defaults), given, unit, function)

    def _joint(self, name: str, value: Any) -> None:
        path: Path = ("joints", name)
        table = self._table(path, value)
        kind = self._kind(path, table, [*self._joints, "constrain"])
        if kind == "constrain":
            self._constrain(name, path, table)
            return
        arguments = self._arguments(path, table, self._joints[kind])
        getattr(self.m, kind)(name, **arguments)
        for option in self._joints[kind].options.values():
            if option.sort == "function" and option.name in table and isinstance(table[option.name], str):
                recorded = dict(self.m._joints[name].parameters)[option.name]
                self.source.texts[(*path, option.name)] = (table[option.name], recorded)

    def _constrain(self, name: str, path: Path, table: Mapping[str, Any]) -> None:
        named = table.get("primitive")
        if not isinstance(named, str) or named not in self.primitives:
            if isinstance(named, str) and named in self.failed:
                raise _Skip
            raise check.unknown(named, "primitive of the file", self.primitives)
        primitive = self.primitives[named]
        kinds = {argument.name: argument.kind for argument in primitive.arguments}
        self._need(path, table, ("kind", "primitive", *kinds, *primitive.parameters), tuple(kinds))
        given: dict[str, Any] = {}
        for key, kind in kinds.items():
            takes = {"point": "point", "vector": "vector", "orientation": "frame"}.get(kind, "coordinate")
            given[key] = self._end((*path, key), table[key], takes)
        for key in primitive.parameters:
            if key in table:
                given[key] = self._number((*path, key), table[key], "", formulas=True)
        self.m.constrain(name, primitive, **given)

    def _load(self, name: str, value: Any) -> None:
        path: Path = ("loads", name)
        table = self._table(path, value)
        kind = self._kind(path, table, self._loads)
        arguments = self._arguments(path, table, self._loads[kind])
        getattr(self.m, kind)(name, **arguments)
        for option in self._loads[kind].options.values():
            said = table.get(option.name)
            if option.sort == "function" and isinstance(said, str | list):
                recorded = dict(self.m._loads[name].parameters)[option.name]
                if isinstance(said, list):
                    said = [item if isinstance(item, str) else float(item) for item in said]
                self.source.texts[(*path, option.name)] = (said, recorded)

    def _pose(self, name: str, value: Any) -> None:
        path: Path = ("poses", name)
        table = self._table(path, value)
        self._need(path, table, spec.POSE, ("bodies",))
        names = tuple(self.m._bodies)
        index = {body: k for k, body in enumerate(names)}
        q = np.array([(*body.position, *body.orientation) for body in self.m._bodies.values()]).reshape(-1, 7)
        v = np.zeros((len(names), 6))
        has_rates = False
        for key, given in self._table((*path, "bodies"), table["bodies"]).items():
            where: Path = (*path, "bodies", key)
            if key not in index:
                if key not in self.failed:
                    self.problem(where, str(check.unknown(key, "movable body", names)))
                continue
            row = self._table(where, given)
            self._keys(where, row, spec.POSED, ())
            what = f"body {key!r} in pose {name!r}"
            if "position" in row:
                position = self._numbers((*where, "position"), row["position"], "length")
                q[index[key], :3] = check.vector(position, f"the position of {what}")
            if "orientation" in row:
                turned = self._numbers((*where, "orientation"), row["orientation"], "")
                q[index[key], 3:] = check.quaternion(turned, f"the orientation of {what}")
            for word, columns in (("velocity", slice(0, 3)), ("angular_velocity", slice(3, 6))):
                if word in row:
                    has_rates = True
                    v[index[key], columns] = check.vector(self._numbers((*where, word), row[word], ""), word)
        keys = angle_keys(self.m)
        angles = {}
        for key, given in self._table((*path, "angles"), table.get("angles", {})).items():
            if key not in keys:
                if key not in self.failed:
                    self.problem((*path, "angles", key), str(check.unknown(key, "angle", keys)))
                continue
            angles[keys[key]] = self._number((*path, "angles", key), given, "angle")
        time = self._number((*path, "time"), table.get("time", 0.0), "")
        variables = {key: parameter.value for key, parameter in self.m._parameters.items()}
        for key, given in self._table((*path, "variables"), table.get("variables", {})).items():
            if key not in variables:
                raise check.unknown(key, "parameter", variables)
            variables[key] = self._number((*path, "variables", key), given, "")
        rates = v if has_rates else None
        self.m.poses[name] = State(names, index, q, velocities=rates, angles=angles, time=time, variables=variables)

    # -- joints and loads ----------------------------------------------------------------------------------------------

    def _kind(self, path: Path, table: Mapping[str, Any], kinds: Iterable[str]) -> str:
        kind = table.get("kind")
        if not isinstance(kind, str) or kind not in kinds:
            what = "kind of joint" if path[0] == "joints" else "kind of load"
            self.problem((*path, "kind") if "kind" in table else path, str(check.unknown(kind, what, kinds)))
            raise _Skip
        return kind

    def _arguments(self, path: Path, table: Mapping[str, Any], kind: spec.Spec) -> dict[str, Any]:
        required = [name for name, _, must in kind.ends if must]
        required += [option.name for option in kind.options.values() if option.required]
        known = ("kind", *(name for name, _, _ in kind.ends), *kind.options)
        before = len(self.problems)
        complete = self._keys(path, table, known, required)
        found: dict[str, Any] = {}
        failed = not complete
        for name, takes, _ in kind.ends:
            if name in table:
                try:
                    found[name] = self._end((*path, name), table[name], takes)
                except _Skip:
                    failed = True
                except ModelError as error:
                    self.problem((*path, name), str(error))
        on = next((end for end in found.values() if isinstance(end, Coordinate)), None)
        for option in kind.options.values():
            if option.name in table:
                try:
                    found[option.name] = self._option((*path, option.name), table[option.name], option, on)
                except _Skip:
                    failed = True
                except ModelError as error:
                    self.problem((*path, option.name), str(error))
        if failed or len(self.problems) > before:
            raise _Skip
        return found

    def _option(self, path: Path, value: Any, option: spec.Option, on: Coordinate | None) -> Any:
        if option.sort in ("flag", "word"):
            if not isinstance(value, bool if option.sort == "flag" else str):
                valid = "true or false" if option.sort == "flag" else "a string"
                raise ModelError(f"{option.name} is {_short(value)}; it must be {valid}")
            return value
        quantity = option.quantity
        if quantity is None and not self.source.units.are_si:
            raise ModelError(
                f"{option.name!r} can be given only in a file in m, rad and kg; its unit is not known here"
            )
        if quantity == "coordinate":
            quantity = "length" if on is None or on.unit == "m" else "angle"
        if option.sort == "number":
            return self._numbers(path, value, quantity or "", formulas=path[0] == "joints")
        if isinstance(value, str):
            return self._formula(path, value, option.variables)
        if isinstance(value, list) and any(isinstance(item, str) for item in value):
            parts = [
                self._formula((*path, k), item, option.variables)
                if isinstance(item, str)
                else self._number((*path, k), item, "")
                for k, item in enumerate(value)
            ]
            return Formulas(tuple(parts))
        if option.name == "function" and on is not None:
            quantity = "length" if on.unit == "m" else "angle"
        return self._numbers(path, value, quantity or "")

    def _end(self, path: Path, value: Any, takes: str) -> Any:
        if isinstance(value, str):
            return self._by_name(path, value, takes)
        table = self._table(path, value)
        if "a" in table or "b" in table or "of" in table:
            if "coordinate" not in takes:
                raise ModelError(f"a coordinate is given; it must be a {takes}")
            self._need(path, table, spec.ENDS["coordinate"], ("a", "b"))
            of = table.get("of", "angle")
            ends = [self._end((*path, key), table[key], "frame" if key == "a" or of != "distance" else "point")
                    for key in ("a", "b")]  # fmt: skip
            return coordinate(ends[0], ends[1], of)
        if "body" not in table:
            self.problem(path, f"the key 'body' is missing; an end is {_ways(takes)}")
            raise _Skip
        return self._feature(path, table, self._find_body(path, table["body"]))

    def _find_body(self, path: Path, name: Any) -> Body:
        if name == GROUND:
            return self.m.ground
        body = self.m._bodies.get(name) if isinstance(name, str) else None
        if body is None:
            if isinstance(name, str) and name in self.failed:
                raise _Skip
            self.problem((*path, "body"), str(check.unknown(name, "body", [GROUND, *self.m._bodies])))
            raise _Skip
        return body

    def _feature(self, path: Path, table: Mapping[str, Any], body: Body) -> Frame | Point | Direction:
        for word in ("point", "vector"):
            if word in table:
                self._keys(path, table, spec.ENDS[word], ())
                quantity = "length" if word == "point" else ""
                numbers = self._numbers((*path, word), table[word], quantity, formulas=True)
                if word == "point":
                    return body.point(numbers)
                made = body.vector(numbers)
                made = Direction(body, tuple(numbers)) if _is_unit(numbers) else made
                self._said((*path, word), table[word], made.description()[2])
                return made
        self._keys(path, table, (*spec.ENDS["frame"], "point", "vector"), ())
        origin = self._numbers((*path, "origin"), table.get("origin", (0.0, 0.0, 0.0)), "length", formulas=True)
        z = self._numbers((*path, "z"), table.get("z", (0.0, 0.0, 1.0)), "", formulas=True)
        x = self._numbers((*path, "x"), table["x"], "", formulas=True) if "x" in table else None
        frame = exact_frame(body, origin, z, x)
        _, _, _, told_x, told_z, _ = frame.description()
        for word, told in (("z", told_z), ("x", told_x)):
            self._said((*path, word), table.get(word), told)
        return frame

    def _said(self, path: Path, value: Any, told: Any) -> None:
        """Keep the text of a direction, which is scaled to length one: its components are other expressions."""
        if isinstance(value, list) and any(isinstance(item, str) for item in value):
            said = [item if isinstance(item, str) else float(item) for item in value]
            self.source.texts[path] = (said, told)

    def _by_name(self, path: Path, name: str, takes: str) -> Any:
        """A body, a named frame of a body, a joint, or one coordinate of a joint."""
        of, _, word = name.rpartition(".")
        joint = self.m._joints.get(name)
        if "coordinate" in takes:
            if joint is not None:
                return self._only(joint)
            if of in self.m._joints:
                return self.m._joints[of].of(word)
            if name in self.later or of in self.later:
                raise ModelError(f"joint {name!r} comes later in the file; put it before this one")
        if takes != "coordinate":
            body = self.m.ground if name == GROUND else self.m._bodies.get(name)
            if body is not None:
                if takes == "body":
                    return body
                return body.frame() if "frame" in takes else body.point()
            for k, letter in enumerate(name):
                if letter == "." and name[k + 1 :] in self.named.get(name[:k], {}):
                    return self.named[name[:k]][name[k + 1 :]]
        if name in self.failed or of in self.failed:
            raise _Skip
        valid: list[str] = []
        if "coordinate" in takes:
            valid += [item.name for item in self.m._joints.values() if item.kind.coordinates]
            valid += [f"{item.name}.{w}" for item in self.m._joints.values() for w in item.kind.coordinates]
        if takes != "coordinate":
            valid += [GROUND, *self.m._bodies, *(f"{b}.{f}" for b, frames in self.named.items() for f in frames)]
        what = " or ".join(takes.split("|"))
        self.problem(path, str(check.unknown(name, what, valid)))
        raise _Skip

    def _only(self, joint: Joint) -> Any:
        """The coordinate of a joint that has one; else the joint, of which the mechanism takes the one that fits."""
        words = tuple(joint.kind.coordinates)
        return joint.of(words[0]) if len(words) == 1 else joint

    # -- values --------------------------------------------------------------------------------------------------------

    def _table(self, path: Path, value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            self.problem(path, f"it is {_short(value)}; it must be a table of keys and values")
            raise _Skip
        return value

    def _need(self, path: Path, table: Mapping[str, Any], known: Sequence[str], required: Iterable[str]) -> None:
        """As :meth:`_keys`, for an item that cannot be made if a key is missing."""
        if not self._keys(path, table, known, required):
            raise _Skip

    def _keys(self, path: Path, table: Mapping[str, Any], known: Sequence[str], required: Iterable[str]) -> bool:
        complete = True
        for key in table:
            if key not in known:
                self.problem((*path, key), str(check.unknown(key, "key here", known)))
        for key in required:
            if key not in table:
                self.problem(path, f"the key {key!r} is missing")
                complete = False
        return complete

    def _formula(self, path: Path, value: str, variables: Sequence[str], *, inner: bool = False) -> Formula:
        constants = tuple(
            (key, number.value if isinstance(number, design.Formula) else number)
            for key, number in self.constants
            if key not in variables
        )
        formula = Formula(value, tuple(variables), constants, inner)
        self._count(len(formula.program))
        return formula

    def _count(self, operations: int) -> None:
        self.operations += operations
        if self.operations > MOST_OPERATIONS:
            raise ModelError(f"the expressions of the file have more than {MOST_OPERATIONS:,} operations together")

    def _number(self, path: Path, value: Any, quantity: str, *, formulas: bool = False) -> Any:
        """A number; with ``formulas``, an expression of parameters stays one, else it has its present value."""
        kind = type(value)
        if kind is float and self.source.units.are_si:
            return float(value)
        if kind is str:
            try:
                self._count(1)
                number = evaluated(value, self.constants)
            except ModelError as error:
                self.problem(path, str(error))
                raise _Skip from None
            is_formula = isinstance(number, design.Formula)
            if is_formula and not formulas:
                number = number.value
            self.source.texts[path] = (value, number.description() if is_formula and formulas else number)
            return number
        if kind in (int, float, Decimal):
            try:
                return self.source.units.to_si(value, quantity)
            except (ArithmeticError, ValueError):
                pass  # out of range: the same message as for any other value
        self.problem(path, f'it is {_short(value)}; it must be a number, or an expression such as "30*mm"')
        raise _Skip

    def _numbers(self, path: Path, value: Any, quantity: str, depth: int = 0, *, formulas: bool = False) -> Any:
        """A number, or lists of numbers."""
        if type(value) is not list:
            return value if type(value) is tuple else self._number(path, value, quantity, formulas=formulas)
        if self.source.units.are_si and all([type(item) is float for item in value]):
            return value
        if depth > 2 or len(value) > 1000:
            self.problem(path, "it is a list of too many numbers, or of lists in lists")
            raise _Skip
        return [self._numbers((*path, k), item, quantity, depth + 1, formulas=formulas) for k, item in enumerate(value)]


def _short(value: Any) -> str:
    return check._short(value)


def _ways(takes: str) -> str:
    ways = {
        "frame": '{ body = "…", origin = […], z = […], x = […] } or "body.frame"',
        "point": '{ body = "…", point = […] } or "body.frame"',
        "vector": '{ body = "…", vector = […] }',
        "coordinate": 'the name of a joint, "joint.coordinate", or { a = …, b = …, of = "…" }',
        "body": "the name of a body",
    }
    return ", or ".join(ways[word] for word in takes.split("|"))


def _components(kinds: Mapping[str, str]) -> list[str]:
    """Names of the values that the rows of a primitive can use."""
    found = []
    for name, kind in kinds.items():
        letters = {"point": "xyz", "vector": "xyz", "orientation": "wxyz"}.get(kind.partition(" of ")[0], "")
        found += [f"{name}.{letter}" for letter in letters] or [name]
    return found


def _is_unit(v: Sequence[Any]) -> bool:
    if len(v) != 3 or not all(isinstance(c, float | int) for c in v):
        return False
    return bool(abs(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] - 1.0) <= UNIT)


def exact_frame(body: Body, origin: Any, z: Any, x: Any) -> Frame:
    """The frame; axes that are orthonormal up to rounding are kept as given, so that saved ones are read unchanged."""
    made = Frame.build(body, origin, z, x)
    if not _is_unit(z):
        return made
    unit_z = (float(z[0]), float(z[1]), float(z[2]))
    if x is None:
        unit_x = _orthogonal_part(default_x(unit_z), unit_z) or _orthogonal_part((1.0, 0.0, 0.0), unit_z)
    elif _is_unit(x) and abs(x[0] * z[0] + x[1] * z[1] + x[2] * z[2]) <= CROSSED:
        unit_x = (float(x[0]), float(x[1]), float(x[2]))
    else:
        return made
    assert unit_x is not None
    return Frame(body, made.origin, unit_x, _cross(unit_z, unit_x), unit_z, x is not None)


def angle_keys(m: Mechanism) -> dict[str, str]:
    """Keys of the counted angles of states, by their names in a file.

    An angle between two frames without a joint has the name of the first driver, limit or coupling that uses it.
    """
    found = {counted.key: counted.key for joint in m._joints.values() for _, counted in joint.angles}
    for joint in m._joints.values():
        for k, end in enumerate(joint.ends):
            if isinstance(end, Coordinate) and end.counted is not None and end.counted.key not in found.values():
                found[joint.name if k == 0 else f"{joint.name}.{k}"] = end.counted.key
    return found
