"""From the values of a file to a Mechanism.  All problems are reported together, each with its line and key."""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, Final

import numpy as np

from cardan import contents
from cardan.calls import explained
from cardan.constraints import user
from cardan.constraints.registry import KINDS
from cardan.errors import ModelError
from cardan.files import spec, text
from cardan.files.connections import Ends
from cardan.files.formula import name_problem
from cardan.files.problems import FileError, Problem
from cardan.files.text import Path
from cardan.files.units import SI, Conversion, Units
from cardan.files.values import Skip, short, shown
from cardan.joints import Coordinate, constrain
from cardan.lazy import LazyModule
from cardan.mechanism import Mechanism
from cardan.system import check
from cardan.system.display import Display
from cardan.system.parts import GROUND, Body, CountedAngle, Frame
from cardan.system.state import Index, State
from cardan.system.system import touches

_looks = LazyModule("cardan.files.solids")
_faces = LazyModule("cardan.files.faces")  # most files have no contacts

MOST_BYTES: Final = 24_000_000  # of a file; its values are limited too, by their memory
MOST_ITEMS: Final = 100_000  # bodies, joints and loads

MOST_MOVED: Final = 50_000  # objects of files that were read, until those that are not used any more are collected
HEADER: Final = 400  # characters after the word "units" in which other units than those of SI are sought
_OTHER_UNITS: Final = re.compile(r"""(?:length|angle|mass)["']?\s*[=:]\s*["'](?!(?:m|rad|kg)["'])""")

Migration = Callable[[dict[str, Any]], dict[str, Any]]
# From a version of the format to the next.  Version 2 has shapes in the units of the file: see Reader._sized.
MIGRATIONS: Final[Mapping[int, Migration]] = {1: dict}


def read(
    content: str,
    file: str,
    as_json: bool,
    *,
    base: Mechanism | None = None,
    folder: FilePath | None = None,
    migrations: Mapping[int, Migration] = MIGRATIONS,
) -> Mechanism:
    """The mechanism of a text; FileError with everything that is wrong.

    base: a mechanism to which it is added.  folder: where the files are that it refers to.
    """
    if len(content) > MOST_BYTES:
        raise FileError(file, [Problem(1, "", f"the file is larger than {MOST_BYTES:,} bytes")])
    reader = Reader(migrations, base, folder)
    made = None
    try:
        with _no_collection():
            document = _parsed(content, file, as_json)
            # numbers that overflow are refused with an error, and a Skip has been reported
            with np.errstate(all="ignore"), contextlib.suppress(Skip):
                made = reader.mechanism(document)
        if reader.problems or made is None:
            lines = text.lines_of(content, as_json, [path for path, _ in reader.problems])
            found = [Problem(line, _dotted(path), m) for line, (path, m) in zip(lines, reader.problems, strict=True)]
            raise FileError(file, sorted(found, key=lambda problem: problem.line))
    except MemoryError:
        raise FileError(file, [Problem(1, "", "there is not enough memory to read it; divide it")]) from None
    return made


def _parsed(content: str, file: str, as_json: bool) -> dict[str, Any]:
    """The values of a text; with exact decimals, if they are in other units than those of SI."""
    try:
        at = content.find("units")
        # a guess, checked below, so that most files are parsed once
        exact = at >= 0 and bool(_OTHER_UNITS.search(content, at, at + HEADER))
        document = text.parse(content, as_json, exact=exact)
        header = document.get("units", {})
        is_exact = type(header) is dict and any(header.get(key, unit) != unit for key, unit in SI.items())
        if is_exact != exact:
            document = text.parse(content, as_json, exact=is_exact)
    except text.SyntaxProblem as problem:
        raise FileError(file, [Problem(problem.line, "", str(problem))]) from None
    return document


_moved, _most_moved = 0, MOST_MOVED  # objects since the last collection below, and how many lead to the next one


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the garbage collector, which takes a third of the time of a large file: all that is made is kept.

    What was made is then moved to the oldest generation, which the collector examines after it has grown by a quarter.
    The collector does not count what is moved there, so it is counted here, and collected before the next file.
    """
    global _moved, _most_moved  # noqa: PLW0603  # of the process, as the collector
    was_on = gc.isenabled()
    if was_on and _moved > _most_moved:
        gc.collect()
        _moved, _most_moved = 0, max(MOST_MOVED, len(gc.get_objects()) // 4)
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            _moved += gc.get_count()[0]
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _dotted(path: Path) -> str:
    return ".".join(str(part) for part in path)


@explained
def load(path: str | FilePath) -> Mechanism:
    """The mechanism in a file ``*.cardan.toml``, or JSON of the same schema.

    Raises :class:`cardan.FileError`, a ModelError, that lists everything that is wrong, with lines and keys.  Text of
    the file is never executed.
    """
    target = contents.file_path(path)
    if target.suffix.lower() not in spec.SUFFIXES:
        raise ModelError(f"the file is {str(path)!r}; its name must end in {', '.join(spec.SUFFIXES)}")
    try:
        content = contents.read(target, MOST_BYTES).decode("utf-8-sig")  # some editors write a byte order mark
    except UnicodeDecodeError as error:
        raise FileError(
            str(path), [Problem(0, "", f"it is not UTF-8 text: byte {error.start} {error.reason}; save it as UTF-8")]
        ) from None
    text = content.replace("\r\n", "\n")
    return read(text, str(path), target.suffix.lower() == ".json", folder=target.absolute().parent)


class Reader(Ends):
    """One reading of a document."""

    def __init__(
        self,
        migrations: Mapping[int, Migration] = MIGRATIONS,
        base: Mechanism | None = None,
        folder: FilePath | None = None,
    ) -> None:
        super().__init__()
        self._folder = folder
        self._version = spec.VERSION  # of the file, before its migration
        self._later: set[str] = set()  # parameters that are not yet read
        self.primitives: dict[str, Any] = {}
        self._migrations = migrations
        self._base = base
        if base is not None and base._model.source is not None:
            for (body, name), frame in base._model.source.frames.items():
                self.named.setdefault(body, {})[name] = frame
                self.source.frames[body, name] = frame
            self.source.faces |= base._model.source.faces
        self._joints, self._loads = spec.joint_specs(), spec.load_specs()
        self._kinds = (*self._joints, constrain.name)

    def mechanism(self, document: dict[str, Any]) -> Mechanism:
        """The mechanism of a document; errors are collected in ``problems``."""
        document = self._migrated(document)
        self._keys((), document, spec.TOP, ())
        self._header(document)
        tables = {key: self._table((key,), document.get(key, {})) for key in ("bodies", "joints", "loads")}
        if sum(map(len, tables.values())) > MOST_ITEMS:
            self.problem(("bodies",), f"there are more than {MOST_ITEMS:,} bodies, joints and loads")
            raise Skip
        self.m = Mechanism() if self._base is None else self._base
        if self._base is None:
            self._try(("name",), self._named, "name", document.get("name", self.m.name))
        if "display" in document:
            self._try(("display",), self._display, "display", document["display"])
        parameters = self._table(("parameters",), document.get("parameters", {}))
        self._later = set(parameters)
        for key, value in parameters.items():
            self._later.discard(key)
            self._try(("parameters", key), self._parameter, key, value)
        if self._base is None:
            self._try(("gravity",), self._gravity, "gravity", document.get("gravity", list(self.m.gravity)))
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
        for key, value in self._table(("collisions",), document.get("collisions", {})).items():
            self._try(("collisions", key), self._collisions, key, value)
        for key, value in self._table(("poses",), document.get("poses", {})).items():
            self._try(("poses", key), self._pose, key, value)
        self.m._model.source = self.source
        return self.m

    def _try(self, path: Path, make: Callable[[str, Any], None], key: str, value: Any) -> None:
        try:
            make(key, value)
        except Skip:
            self.failed.add(key)
            if self.has_enough:
                raise
        except ModelError as error:
            self.failed.add(key)
            self.problem(*self._place(path, value if type(value) is dict else {}, str(error)))

    def _migrated(self, document: dict[str, Any]) -> dict[str, Any]:
        version = document.get("cardan")
        if type(version) is not int or version < 1:
            found = f"it is {short(version)}" if "cardan" in document else "the key is missing"
            self.problem(("cardan",), f"{found}; write cardan = {spec.VERSION}, the version of the format")
            raise Skip
        self._version = version
        latest = max([spec.VERSION, *(key + 1 for key in self._migrations)])
        if version > latest:
            message = f"the format is version {version}; this library reads versions up to {latest}: update cardan"
            self.problem(("cardan",), message)
            raise Skip
        while version < latest:
            document = {**self._migrations[version](document), "cardan": version + 1}
            version += 1
        return document

    def _header(self, document: Mapping[str, Any]) -> None:
        units = self._table(("units",), document.get("units", {}))
        before = len(self.problems)
        for key, unit in units.items():
            try:
                Units.checked({key: unit})
            except ModelError as error:
                self.problem(("units", key), str(error).replace(repr(unit), short(unit)))
        if len(self.problems) == before:
            self.source.units = Units.checked(units)

    def _named(self, key: str, value: Any) -> None:
        self.m = Mechanism(value)

    def _gravity(self, key: str, value: Any) -> None:
        self.m.gravity = self._vector((key,), value, "", 3, formulas=True)

    def _display(self, key: str, value: Any) -> None:
        table = self._table((key,), value)
        before = len(self.problems)
        self._keys((key,), table, spec.DISPLAY, ())
        if len(self.problems) > before:
            raise Skip
        self.m.display = Display(**table)

    def _parameter(self, name: str, value: Any) -> None:
        """A design parameter, or a named expression of others."""
        path: Path = ("parameters", name)
        try:
            if problem := name_problem(name):
                raise ModelError(f"the parameter {name!r} cannot be used in expressions: {problem}")
            if isinstance(value, str):
                for later in re.findall(r"[^\W\d]\w*", value):
                    if later in self._later:
                        raise ModelError(
                            f"the expression {value!r} has the parameter {later!r}, which comes later in the file; put "
                            f"{later!r} before {name!r} (two expressions cannot depend on each other)"
                        )
                self.constants.append((name, self._number(path, value, "", formulas=True)))
                self.source.derived[name] = value
                return
            table = {"value": value} if type(value) is not dict else value
            self._need(path, table, spec.PARAMETER, ("value",))
            known = [key for key in spec.PARAMETER if key in table]  # others have been reported
            where = {key: (*path, key) if table is value else path for key in known}
            given = {key: self._number(where[key], table[key], "") for key in known}
            self.constants.append((name, self.m.parameter(name, given.pop("value"), **given)))
        except (Skip, ModelError):
            self.constants.append((name, 1.0))  # so that its uses are not reported too
            raise

    def _body(self, name: str, value: Any) -> None:
        path: Path = ("bodies", name)
        table = self._table(path, value)
        known = name == GROUND or name in self.m._model.bodies  # of a base, in a side file
        self._keys(path, table, ("frames", "shapes") if known else spec.BODY, ())
        body: Any
        if known:
            body = self.m[name]
        else:
            given: dict[str, Any] = {}
            for key, quantity in (("position", "length"), ("center", "length"), ("orientation", "")):
                if key in table:
                    given[key] = self._vector(
                        (*path, key), table[key], quantity, 4 if key == "orientation" else 3, formulas=key == "center"
                    )
            inertia = self._inertia((*path, "inertia"), table["inertia"]) if "inertia" in table else None
            if "mass" in table:
                given["mass"] = self._number((*path, "mass"), table["mass"], "mass", formulas=True)
            body = self.m.body(name, **given)
            if inertia is not None:
                body._keep_inertia(inertia)
        for key, frame in self._table((*path, "frames"), table.get("frames", {})).items():
            where: Path = (*path, "frames", key)
            try:
                made = self._feature(where, {"body": name, **self._table(where, frame)}, body)
            except Skip:
                self.failed.add(f"{name}.{key}")
                if self.has_enough:
                    raise
                continue
            except ModelError as error:
                self.failed.add(f"{name}.{key}")
                self.problem(where, str(error))
                continue
            self.named.setdefault(name, {})[key] = made
            self.source.frames[name, key] = made
        shapes = table.get("shapes", [])
        if not isinstance(shapes, list):
            self.problem((*path, "shapes"), f"it is {short(shapes)}; it must be a list of tables")
            raise Skip
        for k, shape in enumerate(shapes):
            self._shape((*path, "shapes", k), shape, body)

    def _inertia(self, path: Path, value: Any) -> Any:
        are_rows = type(value) is list and all(type(row) is list for row in value)
        if type(value) is not list or not (are_rows or (len(value) == 3 and not any(type(x) is list for x in value))):
            ways = (
                "it must be three rows of three numbers, [[Ixx, Ixy, Ixz], [Ixy, Iyy, Iyz], [Ixz, Iyz, Izz]], or three "
                "moments about the axes of the body"
            )
            self.problem(path, f"it is {short(value)}; {ways}")
            raise Skip
        return self._numbers(path, value, "", formulas=True)

    def _shape(self, path: Path, value: Any, body: Body) -> None:
        table = self._table(path, value)
        is_face = "geometry" in table
        try:
            self._shape_keys(path, table, _faces if is_face else _looks, "geometry" if is_face else "kind")
            made = self._geometry(path, table) if is_face else _looks.read(table, self._sized(path))
            place: dict[str, Any] = {key: table[key] for key in ("origin", "z", "x") if key in table}
            frame = self._feature(path, {"body": body.name, **place}, body)
            assert isinstance(frame, Frame)
            color = table.get("color")
            density = self._number((*path, "density"), table["density"], "") if "density" in table else None
            attached = body.attach(
                made, frame, color=self._numbers(path, color, "") if type(color) is list else color, density=density
            )
            if is_face and "name" in table:
                self._name_face(body.name, table["name"], attached)
        except (ModelError, Skip) as error:
            if is_face:
                self.failed.add(f"{body.name}.{table.get('name', '')}")
            if isinstance(error, Skip):
                raise
            self.problem(*self._place(path, table, str(error)))

    def _shape_keys(self, path: Path, table: Mapping[str, Any], module: Any, word: str) -> None:
        """Refuse a shape of an unknown kind, or with unknown keys; word: the key of its kind."""
        kind = table.get(word)
        if word not in table:
            kinds = ", ".join(map(repr, module.KEYS))
            raise ModelError(f"the key 'kind' is missing, or 'geometry' for a face; kinds are {kinds}")
        before = len(self.problems)
        if not isinstance(kind, str) or kind not in module.KEYS:
            what = "curve or surface" if word == "geometry" else "kind of shape"
            self.problem((*path, word), str(check.unknown(shown(kind), what, module.KEYS)))
        else:
            known = (*module.KEYS[kind], *module.PLACE)
            self._keys(path, table, known, (), f"key of {check.with_article(kind)}")
        if len(self.problems) > before:
            raise Skip

    def _sized(self, path: Path) -> Conversion:
        """Numbers of a shape, in SI.  In files of version 1 they are in SI whatever the units are."""
        in_units = self._version > 1
        return lambda number, quantity: self._number(path, number, quantity if in_units else "")

    def _geometry(self, path: Path, table: dict[str, Any]) -> Any:
        """A curve or surface; one of another file is remembered by its path."""
        made = _faces.read(
            table, self._sized(path), lambda text, names: self._formula((*path, "point"), text, names), self._folder
        )
        if table["geometry"] == "file":
            self.source.files[self._folder, table["path"]] = getattr(made, "surface", made)
        return made

    def _name_face(self, body: str, name: Any, attached: Any) -> None:
        check.name(name, f"a face of body {body!r}")
        if (body, name) in self.source.faces:
            raise ModelError(f"body {body!r} has two faces with the name {name!r}; give one of them another name")
        self.source.faces[body, name] = attached

    def _rate_row(self, name: str, value: Any) -> None:
        path: Path = ("rates", name)
        table = self._table(path, value)
        self._kind(path, table, ["knife_edge"])
        self._need(path, table, spec.KNIFE_EDGE, ("frame",))
        other = self._end((*path, "relative_to"), table["relative_to"], "body") if "relative_to" in table else None
        self.m.knife_edge(name, self._end((*path, "frame"), table["frame"], "frame"), relative_to=other)

    def _collisions(self, name: str, value: Any) -> None:
        path: Path = ("collisions", name)
        given = dict(self._table(path, value))
        self._need(path, given, spec.COLLISIONS, ())
        if "margin" in given:
            given["margin"] = self._number((*path, "margin"), given["margin"], "length")
        self.m.collide(**{key: given[key] for key in spec.COLLISIONS if key in given}, name=name)

    def _primitive(self, name: str, value: Any) -> None:
        path: Path = ("primitives", name)
        table = self._table(path, value)
        self._need(path, table, spec.PRIMITIVE, ("arguments", "rows"))
        kinds = {key: str(kind) for key, kind in self._table((*path, "arguments"), table["arguments"]).items()}
        for key, kind in kinds.items():
            word = kind.partition(" of ")[0]
            if word not in KINDS:
                self.problem((*path, "arguments", key), str(check.unknown(word, "kind of argument", KINDS)))
                raise Skip
        defaults = self._table((*path, "parameters"), table.get("parameters", {}))
        rows = table["rows"]
        if not isinstance(rows, list) or not rows or not all(isinstance(row, str) for row in rows):
            raise ModelError(f"the rows of primitive {name!r} are {short(rows)}; they must be a list of expressions")
        given: dict[str, float] = {}
        for key, number in defaults.items():
            if number != "":  # "" declares a parameter without a default
                given[key] = self._number((*path, "parameters", key), number, "")
        names = _components(kinds)
        formulas = []
        for k, row in enumerate(rows):
            try:
                formulas.append(self._formula((*path, "rows", k), row, (*names, *defaults), inner=True))
            except ModelError as error:
                self.problem((*path, "rows", k), str(error))
                raise Skip from None

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
        kind = self._kind(path, table, self._kinds)
        if kind not in self._joints:
            self._constrain(name, path, table)
            return
        arguments = self._arguments(path, table, self._joints[kind])
        inertia = arguments.pop("inertia", None)
        made = getattr(self.m, kind)(name, **arguments)
        if inertia is not None:
            try:
                made.inertia = inertia
            except ModelError as error:
                self.problem((*path, "inertia"), str(error))
        for word in self._joints[kind].functions:
            if isinstance(table.get(word), str):
                recorded = dict(self.m._model.joints[name].parameters)[word]
                self.source.texts[(*path, word)] = (table[word], recorded)

    def _constrain(self, name: str, path: Path, table: Mapping[str, Any]) -> None:
        named = table.get("primitive")
        if not isinstance(named, str) or named not in self.primitives:
            if isinstance(named, str) and named in self.failed:
                raise Skip
            raise check.unknown(named, "primitive of the file", self.primitives)
        primitive = self.primitives[named]
        kinds = {argument.name: argument.kind for argument in primitive.arguments}
        self._need(path, table, ("kind", "primitive", *kinds, *primitive.parameters), tuple(kinds))
        given: dict[str, Any] = {}
        for key, kind in kinds.items():
            takes = {"point": "point", "vector": "vector", "orientation": "frame"}.get(kind, "coordinate")
            given[key] = self._end((*path, key), table[key], takes, "angle" if kind == "angle" else "")
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
        for word in self._loads[kind].functions:
            said = table.get(word)
            if isinstance(said, str | list):
                recorded = dict(self.m._model.loads[name].parameters)[word]
                if isinstance(said, list):
                    said = [item if isinstance(item, str) else float(item) for item in said]
                self.source.texts[(*path, word)] = (said, recorded)

    def _pose(self, name: str, value: Any) -> None:
        path: Path = ("poses", name)
        table = self._table(path, value)
        self._need(path, table, spec.POSE, ("bodies",))
        names = tuple(self.m._model.bodies)
        index = Index({body: k for k, body in enumerate(names)})
        index.joints = dict(self.m._model.joints)
        q = np.array([(*body.position, *body.orientation) for body in self.m._model.bodies.values()]).reshape(-1, 7)
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
            try:
                if "position" in row:
                    position = self._vector((*where, "position"), row["position"], "length", 3)
                    q[index[key], :3] = check.vector(position, f"the position of {what}")
                if "orientation" in row:
                    turned = self._vector((*where, "orientation"), row["orientation"], "", 4)
                    q[index[key], 3:] = check.quaternion(turned, f"the orientation of {what}")
                for word, columns in (("velocity", slice(0, 3)), ("angular_velocity", slice(3, 6))):
                    if word in row:
                        has_rates = True
                        rate = self._vector((*where, word), row[word], "", 3)
                        v[index[key], columns] = check.vector(rate, f"the {word} of {what}")
            except ModelError as error:
                self.problem(*self._place(where, row, str(error)))
        keys, parameters = angle_keys(self.m), contact_keys(self.m)
        angles = {}
        for key, given in self._table((*path, "angles"), table.get("angles", {})).items():
            if key not in keys:
                if key not in self.failed:
                    self.problem((*path, "angles", key), str(check.unknown(key, "angle", keys)))
                continue
            quantity = "" if keys[key] in parameters else "angle"
            angles[keys[key]] = self._number((*path, "angles", key), given, quantity)
        time = self._number((*path, "time"), table.get("time", 0.0), "")
        variables = {key: parameter.value for key, parameter in self.m._model.parameters.items()}
        for key, given in self._table((*path, "variables"), table.get("variables", {})).items():
            if key not in variables:
                if key not in self.failed:
                    self.problem((*path, "variables", key), str(check.unknown(key, "parameter", variables)))
                continue
            variables[key] = self._number((*path, "variables", key), given, "")
        rates = v if has_rates else None
        if parameters and not self.problems:
            index.contacts = touches(  # not those of m.system, which would compile the kernels of traced shapes
                {body._serial: body.name for body in self.m._model.bodies.values()},
                {angle._serial: angle.key for angle in self.m._model.drawing.counted_angles()},
                ((joint.name, one.record) for joint in self.m._model.joints.values() for one in joint.relations),
            )
        self.m.poses[name] = State(names, index, q, velocities=rates, angles=angles, time=time, variables=variables)


def _components(kinds: Mapping[str, str]) -> list[str]:
    """Names of the values that the rows of a primitive can use."""
    found = []
    for name, kind in kinds.items():
        letters = {"point": "xyz", "vector": "xyz", "orientation": "wxyz"}.get(kind.partition(" of ")[0], "")
        found += [f"{name}.{letter}" for letter in letters] or [name]
    return found


def contact_keys(m: Mechanism) -> set[str]:
    """Keys of the contact coordinates of states, which are parameters of shapes: they have no unit."""
    features = [
        feature
        for joint in m._model.joints.values()
        for relation in joint.relations
        if relation.primitive.is_contact
        for feature in relation.features
    ]
    return {feature.body.key for feature in features if isinstance(feature.body, CountedAngle)}


def angle_keys(m: Mechanism) -> dict[str, str]:
    """Keys of the counted angles of states, by their names in a file.

    An angle between two frames without a joint has the name of the first driver, limit or coupling that uses it.
    """
    found = {counted.key: counted.key for joint in m._model.joints.values() for _, counted in joint.angles}
    found |= {key: key for key in contact_keys(m)}
    for joint in m._model.joints.values():
        for k, end in enumerate(joint.ends):
            if isinstance(end, Coordinate) and end.counted is not None and end.counted.key not in found.values():
                found[joint.name if k == 0 else f"{joint.name}.{k}"] = end.counted.key
    return found
