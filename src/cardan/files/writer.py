"""From a Mechanism to a file, which replaces the previous one at once or not at all."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path as FilePath
from typing import Any, Final

import numpy as np

from cardan import contents
from cardan.constraints.registry import Primitive
from cardan.constraints.signal import Signal
from cardan.constraints.spline import Spline
from cardan.constraints.user import Recipe
from cardan.dynamics.functions import Called, Recorded
from cardan.errors import ModelError
from cardan.files import printing, reader, solids, spec
from cardan.files.formula import Formula, Formulas, evaluated, name_problem
from cardan.files.text import Path, to_json, to_toml
from cardan.files.units import Units, quantity_of
from cardan.files.values import Source
from cardan.geometry.shape import Shape as Geometry
from cardan.joints import Coordinate, Joint, Role
from cardan.joints.collisions import Collisions
from cardan.joints.ownership import formulas_of
from cardan.lazy import LazyModule
from cardan.mechanism import Mechanism
from cardan.shapes.curved import Curved
from cardan.system import atomic, check
from cardan.system import formulas as design
from cardan.system.attachments import Attachment
from cardan.system.display import DEFAULT
from cardan.system.parts import GROUND, Body, Direction, Frame, Point
from cardan.system.state import State

_faces = LazyModule("cardan.files.faces")

PAGE: Final = ".html"
ZERO: Final = (0.0, 0.0, 0.0)
Z: Final = (0.0, 0.0, 1.0)


def save(m: Mechanism, path: Any, *, units: Mapping[str, str] | None = None) -> None:
    """See :meth:`cardan.Mechanism.save`."""
    target = contents.file_path(path)
    if units is not None and not isinstance(units, Mapping):
        raise ModelError(f"the units are {units!r}; give them by quantity, such as {{'length': 'mm'}}")
    suffix = target.suffix.lower()
    if suffix == PAGE:
        if units is not None:
            raise ModelError(f"units were given for the page {str(path)!r}; they are for model files")
        # imported by name when it is needed: files must not import the layer above
        atomic.write(target, import_module("cardan.view.draggable").html(m))
        return
    if suffix not in spec.SUFFIXES:
        valid = ", ".join((*spec.SUFFIXES, PAGE))
        raise ModelError(f"the file is {str(path)!r}; its name must end in .cardan.toml, {valid}")
    written = dumps(m, as_json=suffix == ".json", units=units, folder=target.absolute().parent)
    atomic.write(target, written.encode())


def dumps(
    m: Mechanism, *, as_json: bool = False, units: Mapping[str, str] | None = None, folder: FilePath | None = None
) -> str:
    """The text of a file.  folder: where it will be; shapes that came from other files there stay in them."""
    document = _Writer(m, units, folder).document()
    return to_json(document) if as_json else to_toml(document)


class _Writer:
    """One writing of a mechanism, as plain values."""

    def __init__(self, m: Mechanism, units: Mapping[str, str] | None, folder: FilePath | None = None) -> None:
        self.m, self.folder = m, folder
        self.source: Source = m._model.source if m._model.source is not None else Source()
        self.units = self.source.units if units is None else Units.checked(units)
        self.primitives: dict[str, Primitive] = {}
        self.joints, self.loads = spec.joint_specs(), spec.load_specs()
        self.constants: list[tuple[str, float]] = [(name, p.value) for name, p in m._model.parameters.items()]
        self.derived: dict[str, str] = {}
        for name, text in self.source.derived.items():
            with contextlib.suppress(ModelError):  # a parameter of it was removed
                self.constants.append((name, evaluated(text, self.constants)))
                self.derived[name] = text

    def _check_joints(self) -> None:
        """ModelError for a joint or body that a file cannot contain."""
        for body in self.m._model.bodies.values():
            if body.elastic is not None:
                raise ModelError(
                    f"body {body.name!r} cannot be saved: it is flexible, and files have rigid bodies only; keep this "
                    "mechanism as a Python script"
                )
        for name, joint in self.m._model.joints.items():
            what = f"{joint.kind.name} {name!r} cannot be saved"
            if any(relation.is_timed for relation in joint.relations):
                raise ModelError(
                    f"{what}: one of its parameters is a function of time; give a number, or drive a coordinate with "
                    "m.drive"
                )

    def document(self) -> dict[str, Any]:
        """The whole file as plain values."""
        m = self.m
        self._check_joints()
        found: dict[str, Any] = {"cardan": spec.VERSION, "name": m.name}
        found["gravity"] = self.numbers(("gravity",), m.gravity, "")
        found["units"] = self.units.as_dict()
        found["display"] = {} if m.display == DEFAULT else {"length": m.display.length, "angle": m.display.angle}
        self._name_faces()
        found["parameters"] = {name: self._parameter(p) for name, p in m._model.parameters.items()} | self.derived
        frames = self._frames()
        ground: dict[str, Any] = {"frames": frames[GROUND]} if GROUND in frames else {}
        if m._model.ground.attachments:
            ground["shapes"] = self._shapes(m._model.ground)
        found["bodies"] = ({GROUND: ground} if ground else {}) | {
            name: self._body(body, frames.get(name)) for name, body in m._model.bodies.items()
        }
        ranges = self._ranges()
        joints = {name: self._joint(joint) for name, joint in m._model.joints.items() if name not in ranges}
        found["primitives"] = {name: self._primitive(name, made) for name, made in self.primitives.items()}
        found["joints"] = joints
        rows = {name: row for name, row in m._model.rate_rows.items() if not row.kind.implied}
        found["rates"] = {name: self._rate_row(row) for name, row in rows.items()}
        found["loads"] = {name: self._load(load) for name, load in m._model.loads.items()}
        found["collisions"] = {name: self._collisions(one) for name, one in m._model.collisions.items()}
        found["poses"] = {name: self._pose(name, state) for name, state in m.poses.items()}
        return {key: value for key, value in found.items() if value != {}}

    def _frames(self) -> dict[str, dict[str, Any]]:
        """The named frames of bodies and parameters that still exist."""
        found: dict[str, dict[str, Any]] = {}
        for (body, name), frame in self.source.frames.items():
            if any([self.m._model.book.is_removed(formula.index) for formula in formulas_of(frame)]):
                continue
            if body == GROUND or self.m._model.bodies.get(body) is frame.body:
                table = self._feature(("bodies", body, "frames", name), frame)
                table.pop("body")
                found.setdefault(body, {})[name] = table
        return found

    def _body(self, body: Body, frames: dict[str, Any] | None) -> dict[str, Any]:
        path: Path = ("bodies", body.name)
        found: dict[str, Any] = {"position": self.numbers((*path, "position"), body.position, "length")}
        if body.orientation != (1.0, 0.0, 0.0, 0.0):
            found["orientation"] = self.numbers((*path, "orientation"), body.orientation, "")
        if "mass" in body._given:  # not if it follows from its shapes
            found["mass"] = self.number((*path, "mass"), body.mass, "mass")
        if "center" in body._given:
            found["center"] = self.numbers((*path, "center"), body.center, "length")
        if "inertia" in body._given and body.inertia is not None:
            found["inertia"] = self.numbers((*path, "inertia"), body.inertia, "")
        if body.attachments:
            found["shapes"] = self._shapes(body)
        if frames:
            found["frames"] = frames
        return found

    def _shapes(self, body: Body) -> list[dict[str, Any]]:
        """The shapes of a body."""
        found = []
        for k, one in enumerate(body.attachments):
            try:
                if isinstance(one.shape, Curved):
                    table = self._geometry(one.shape.geometry)
                    if one.shape.trim is not None:
                        table["loops"] = _faces.written_loops(one.shape.trim)
                    table |= {"name": self.faces[one]} if one in self.faces else {}
                else:
                    table = solids.written(one.shape, self.units.from_si)
            except ModelError as error:
                raise ModelError(f"a shape of body {body.name!r} cannot be saved: {error}") from None
            table |= self._feature(("bodies", body.name, "shapes", k), one.frame)
            table.pop("body")
            if one.color is not None:
                table["color"] = list(one.color)
            if one.density is not None:
                table["density"] = one.density
            found.append(table)
        return found

    def _geometry(self, shape: Geometry) -> dict[str, Any]:
        """A curve or surface; one that was read from a file of this folder stays there while that file has it."""
        for (folder, path), read in self.source.files.items():
            if folder == self.folder and read.key() == shape.key():
                with contextlib.suppress(ModelError):  # the file is gone or changed: the shape is written here
                    if _faces._read_file(path, folder).key() == shape.key():
                        return {"geometry": "file", "path": path}
        return _faces.written(shape, self.units.from_si)

    def _name_faces(self) -> None:
        """Names of the faces of contacts: those of the file, and new ones for others."""
        self.faces: dict[Attachment, str] = {
            one: name for (_, name), one in self.source.faces.items() if one in one.body.attachments
        }
        for joint in self.m._model.joints.values():
            for face in self._faces_of(joint):
                if face is not None and face not in self.faces:
                    taken = {name for one, name in self.faces.items() if one.body is face.body}
                    words = (f"face_{k}" if k > 1 else "face" for k in itertools.count(1))
                    self.faces[face] = next(word for word in words if word not in taken)

    def _faces_of(self, joint: Joint) -> list[Attachment | None]:
        """The attached shapes of the ends of a contact; None for an end that is a point."""
        pair = joint.relations[0].record.pair if "face" in joint.kind.takes else None
        if pair is None:
            return []
        found: list[Attachment | None] = []
        if not pair.shapes:
            raise ModelError(
                f"{joint.kind.name} {joint.name!r} cannot be saved: it is between meshes, or by a query, and "
                "files have curves and surfaces only; keep this mechanism as a Python script"
            )
        for frame, shape, trim in zip(joint.ends, pair.in_order(pair.shapes), pair.in_order(pair.trims), strict=True):
            is_face = joint.kind.role is Role.CONTACT or shape.freedoms > 0
            wanted = shape.key(), None if trim is None else trim.key()
            faces = [
                one
                for one in frame.body.attachments
                if one.frame == frame
                and isinstance(one.shape, Curved)
                and (one.shape.geometry.key(), None if one.shape.trim is None else one.shape.trim.key()) == wanted
            ]
            found.append(faces[0] if is_face else None)
        return found

    def _contact(self, joint: Joint, path: Path) -> dict[str, Any]:
        kind = self.joints[joint.kind.name]
        found: dict[str, Any] = {"kind": kind.name}
        for (name, takes, _), frame, face in zip(kind.ends, joint.ends, self._faces_of(joint), strict=True):
            at: Path = (*path, name)
            if takes == "face":
                assert face is not None
                found[name] = f"{face.body.name}.{self.faces[face]}"
            else:
                end = frame if takes == "frame" else Point(frame.body, frame.origin)
                found[name] = self.end(at, end, takes)
        for name, value in joint.parameters:
            if name != "shapes" and value != kind.options[name].default:
                found[name] = self._option((*path, name), value, kind.options[name], [])
        return found

    def _parameter(self, parameter: Any) -> Any:
        if problem := name_problem(parameter.name):
            raise ModelError(f"parameter {parameter.name!r} cannot be saved: {problem}, in m.parameter(name, …)")
        bounds = {"lower": parameter.lower, "upper": parameter.upper}
        kept = {key: value for key, value in bounds.items() if math.isfinite(value)}
        if parameter.period:
            kept["period"] = parameter.period
        return {"value": parameter.value, **kept} if kept else parameter.value

    def _rate_row(self, row: Joint) -> dict[str, Any]:
        if not row.kind.takes:
            ways = "a file can contain knife edges only: keep this mechanism as a Python script"
            raise ModelError(f"rate row {row.name!r} cannot be saved: it has a primitive of your own; {ways}")
        path: Path = ("rates", row.name)
        found: dict[str, Any] = {"kind": row.kind.name, "frame": self.end((*path, "frame"), row.ends[-1], "frame")}
        if len(row.ends) == 2:
            found["relative_to"] = row.ends[0].body.name
        return found

    def _collisions(self, one: Collisions) -> dict[str, Any]:
        found: dict[str, Any] = {"bodies": "all" if one.bodies is None else list(one.bodies)}
        if one.exclude:
            found["exclude"] = [list(item) if isinstance(item, tuple) else item for item in one.exclude]
        if one.margin:
            found["margin"] = self.number(("collisions", one.name, "margin"), one.margin, "length")
        if one.restitution:
            found["restitution"] = one.restitution
        if one.friction != (0.0, 0.0):
            found["friction"] = list(one.friction)
        return found | ({"joined": True} if one.joined else {})

    def _joint(self, joint: Joint) -> dict[str, Any]:
        path: Path = ("joints", joint.name)
        if not joint.kind.takes:
            return self._constrain(joint, path)
        if "face" in joint.kind.takes:
            return self._contact(joint, path)
        if joint.name in self.m._model.frictions:
            raise ModelError(
                f"joint {joint.name!r} cannot be saved: it has friction={self.m._model.frictions[joint.name]!r}, which "
                "files do not contain yet; keep this mechanism as a Python script"
            )
        found = self._item(joint, path, self.joints[joint.kind.name])
        if joint.name in self.m._model.inertias:
            found["inertia"] = self.numbers((*path, "inertia"), joint.inertia, "")
        return found

    def _load(self, load: Any) -> dict[str, Any]:
        return self._item(load, ("loads", load.name), self.loads[load.kind.name])

    def _item(self, item: Any, path: Path, kind: spec.Spec) -> dict[str, Any]:
        what = f"{item.kind.name} {item.name!r}"
        found: dict[str, Any] = {"kind": item.kind.name}
        for (name, takes, _), end in zip(kind.ends, item.ends, strict=False):
            found[name] = self.end((*path, name), end, takes)
        on = [end for end in item.ends if isinstance(end, Coordinate)]
        for name, value in item.parameters:
            option = kind.options.get(name)
            if option is None:
                raise ModelError(f"{what} has {name}={value!r}, which a file cannot contain")
            try:
                written = self._option((*path, name), value, option, on)
            except ModelError as error:
                raise ModelError(f"{what} cannot be saved: {error}") from None
            if written is not None:
                found[name] = written
        return found

    def _option(self, path: Path, value: Any, option: spec.Option, on: Sequence[Coordinate]) -> Any:
        if isinstance(value, bool | str | np.bool_):
            return bool(value) if isinstance(value, bool | np.bool_) else value
        function = value.function if isinstance(value, Signal) else value
        if isinstance(function, Spline):
            return self._spline(path, function, on)
        said, recorded = self.source.texts.get(path, (None, None))
        if said is not None and option.quantity.sort == "function" and self._is_same(recorded, value):
            return said
        if isinstance(value, Signal):
            value = printing.signal_text(value)
        elif isinstance(value, Primitive):
            value = printing.coupling_text(_recipe(value))
        elif isinstance(value, Recorded):
            value = printing.text_of(value.nodes, value.row, dict(enumerate(option.quantity.variables)))
        elif isinstance(value, Called):
            value = self._called(value, option)
        if isinstance(value, str | list):
            return value
        unit = option.quantity.unit
        if unit == "coordinate":
            unit = "length" if not on else quantity_of(on[0])
        if isinstance(value, float) and math.isinf(value):
            return None  # a bound that is not given
        return self.numbers(path, value, unit)

    def _spline(self, path: Path, spline: Spline, on: Sequence[Coordinate]) -> dict[str, Any]:
        """A spline by its points, or by its pieces in SI units if it was not made of points."""
        if spline.points is not None:
            of_x, of_y = quantity_of(on[0]) if len(on) == 2 else "", quantity_of(on[-1])
            x, y = spline.points
            found = {"x": self.numbers((*path, "x"), x, of_x), "y": self.numbers((*path, "y"), y, of_y)}
        else:
            found = {"breaks": list(spline.breaks), "coefficients": [list(row) for row in spline.coefficients]}
        return found | ({"periodic": True} if spline.is_periodic else {})

    def _ranges(self) -> set[str]:
        """Limits that the couplings by splines make of themselves; a file does not list them."""
        found: set[str] = set()
        for name, joint in self.m._model.joints.items():
            spline = dict(joint.parameters).get("function")
            if not isinstance(spline, Spline) or spline.is_periodic:
                continue
            limit = self.m._model.joints.get(f"{name}.range")
            lower, upper = spline.range
            as_made = joint.ends[:1], (("lower", lower), ("upper", upper))
            if limit is None or (limit.ends, limit.parameters) != as_made:
                raise ModelError(
                    f"couple {name!r} cannot be saved: its limit '{name}.range' was removed or changed, and a file has "
                    f"it as it was; restore it (lower={lower:g}, upper={upper:g}), or keep this mechanism as a script"
                )
            found.add(limit.name)
        return found

    def _is_same(self, recorded: Any, value: Any) -> bool:
        """Whether the value is what the text of the file gave, with the parameters of the file."""
        constants = getattr(getattr(value, "function", None), "constants", ())
        if any(pair not in self.constants for pair in constants if not isinstance(pair[1], design.Formula)):
            return False
        if isinstance(value, Primitive) and isinstance(recorded, Primitive):
            return bool(value.origin == recorded.origin)
        return bool(recorded == value)

    def _called(self, called: Called, option: spec.Option) -> Any:
        """A function that Python calls: three expressions in time, if it depends on time alone."""
        function = called.function
        if isinstance(function, Formulas):
            parts = [part if isinstance(part, float) else printing.traced(part, part.variables)[0]
                     for part in function.parts]  # fmt: skip
            return parts
        if option.quantity.variables != ("t",):
            raise ModelError(f"its Python function cannot be recorded; {printing.WAYS}")
        try:
            parts = printing.traced(function, ("t",), _NoState())
            again = Formulas(tuple(Formula(p, ("t",)) if isinstance(p, str) else p for p in parts))
            same = all(
                np.allclose(called.vector(t, None), again(t), rtol=printing.SAME, atol=printing.SAME)
                for t in (0.0, 0.7)
            )
        except Exception as error:  # the user's function can raise any exception
            raise ModelError(
                f"its Python function cannot be recorded ({printing._first(error)}); {printing.WAYS}; a function of "
                "the state cannot be in a file"
            ) from None
        if len(parts) != 3 or not same:
            raise ModelError(f"its Python function gives other values when it is recorded; {printing.WAYS}")
        is_constant = all(isinstance(part, float) for part in parts)  # three numbers would be read as a constant
        return [printing.number(part) if is_constant and isinstance(part, float) else part for part in parts]

    def _constrain(self, joint: Joint, path: Path) -> dict[str, Any]:
        parameters = dict(joint.parameters)
        primitive: Primitive = parameters.pop("primitive")
        what = f"constraint {joint.name!r} (primitive {primitive.name!r})"
        if joint.edge is not None:
            raise ModelError(f"{what} cannot be saved: its motion is a function of your own; omit motion=")
        if not isinstance(primitive.origin, Recipe):
            ways = "a file can contain only those that cd.primitive records: keep this one in a Python script"
            raise ModelError(f"{what} cannot be saved: its primitive is built in or written by hand; {ways}")
        name, k = primitive.name, 1
        while name in self.primitives and self.primitives[name].origin != primitive.origin:
            k += 1
            name = f"{primitive.name}_{k}"
        self.primitives[name] = primitive
        found: dict[str, Any] = {"kind": "constrain", "primitive": name}
        for argument, end in zip(primitive.arguments, joint.ends, strict=True):
            takes = {"point": "point", "vector": "vector", "orientation": "frame"}.get(argument.kind, "coordinate")
            found[argument.name] = self.end((*path, argument.name), end, takes)
        for word, value in parameters.items():
            found[word] = self.number((*path, word), value, "")
        return found

    def _primitive(self, name: str, made: Primitive) -> dict[str, Any]:
        recipe = _recipe(made)
        try:
            rows = printing.primitive_rows(recipe)
        except ModelError as error:
            raise ModelError(f"primitive {name!r} cannot be saved: {error}") from None
        arguments = {a.name: f"{a.kind} of {a.of}" if a.of else a.kind for a in recipe.arguments}
        found: dict[str, Any] = {"arguments": arguments}
        if recipe.parameters:
            defaults = dict(recipe.defaults)
            found["parameters"] = {word: defaults.get(word, "") for word in recipe.parameters}
        found["unit"] = recipe.units[0] if len(recipe.units) == 1 else list(recipe.units)
        found["rows"] = rows
        return found

    def _pose(self, name: str, state: Any) -> dict[str, Any]:
        if not isinstance(state, State):
            raise ModelError(f"the pose {name!r} is {state!r}; it must be a State, such as result.state")
        found: dict[str, Any] = {"time": state.time} if state.time else {}
        keys = {key: word for word, key in reader.angle_keys(self.m).items()}
        angles = {keys[key]: angle for key, angle in state.angles.items() if key in keys and math.isfinite(angle)}
        if angles:
            path: Path = ("poses", name, "angles")
            parameters = reader.contact_keys(self.m)
            found["angles"] = {
                key: self.number((*path, key), value, "" if key in parameters else "angle")
                for key, value in angles.items()
            }
        if state.variables:
            found["variables"] = dict(state.variables)
        bodies: dict[str, Any] = {}
        for k, body in enumerate(state.names):
            if body not in self.m._model.bodies:
                raise check.unknown(body, f"body, of the pose {name!r},", self.m._model.bodies)
            row = tuple(state.coordinates[k].tolist())
            if not all(map(math.isfinite, row)):
                raise ModelError(f"the pose {name!r} of body {body!r} is not finite; it cannot be saved")
            at: Path = ("poses", name, "bodies", body)
            bodies[body] = {
                "position": self.numbers((*at, "position"), row[:3], "length"),
                "orientation": self.numbers((*at, "orientation"), row[3:], ""),
            }
            if state.velocities is not None:
                rates = tuple(state.velocities[k].tolist())
                bodies[body] |= {"velocity": list(rates[:3]), "angular_velocity": list(rates[3:])}
        return found | {"bodies": bodies}

    # -- ends and numbers ----------------------------------------------------------------------------------------------

    def end(self, path: Path, end: Any, takes: str) -> Any:
        """A body, a feature on a body, or a coordinate."""
        if isinstance(end, Body):
            return end.name
        if isinstance(end, Coordinate):
            if end.joint:
                alone = len(self.m._model.joints[end.joint].kind.coordinates) == 1
                return end.joint if alone else f"{end.joint}.{end.name}"
            of = end.name
            ends = [self.end((*path, key), item, "frame" if key == "a" or of != "distance" else "point")
                    for key, item in (("a", end.a), ("b", end.b))]  # fmt: skip
            return {"a": ends[0], "b": ends[1], "of": of}
        for (body, name), other in self.source.frames.items():
            if other == end and f"{body}.{name}" not in self.m._model.bodies and "." not in body:
                return f"{body}.{name}"
        table = self._feature(path, end)
        plain = takes.partition("|")[0]
        if len(table) == 1:  # only its body: the frame or the point at its origin
            return table["body"] if plain == "frame" else table | {"z": list(Z)}
        if isinstance(end, Point) and end.position == ZERO and plain == "point":
            return table["body"]
        return table

    def _feature(self, path: Path, end: Frame | Point | Direction) -> dict[str, Any]:
        """A feature as a table; what has its default is left out."""
        found: dict[str, Any] = {"body": end.body.name}
        if isinstance(end, Point):
            found["point"] = self.numbers((*path, "point"), end.position, "length")
        elif isinstance(end, Direction):
            found["vector"] = self.numbers((*path, "vector"), end.given or end.components, "")
        else:
            if end.origin != ZERO:
                found["origin"] = self.numbers((*path, "origin"), end.origin, "length")
            if end.z != Z:
                found["z"] = self.numbers((*path, "z"), end.given_z or end.z, "")
            if end.x_given:
                found["x"] = self.numbers((*path, "x"), end.given_x or end.x, "")
        return found

    def numbers(self, path: Path, value: Any, quantity: str) -> Any:
        """A number, or lists of numbers, in the units of the file."""
        if isinstance(value, list | tuple):
            return [self.numbers((*path, k), item, quantity) for k, item in enumerate(value)]
        return self.number(path, value, quantity)

    def number(self, path: Path, value: Any, quantity: str) -> Any:
        """A number in the units of the file, or the expression that gives it."""
        said, _ = self.source.texts.get(path, (None, None))
        if isinstance(value, design.Formula):
            if said is not None and self.source.texts[path][1] == value.description():
                return said
            return self._formula(value)
        if isinstance(said, str):
            with contextlib.suppress(ModelError):  # a parameter of it was removed
                if evaluated(said, self.constants) == value:
                    return said
        try:
            plain = check.number(value, ".".join(map(str, path)))
        except ModelError:
            raise ModelError(f"{value!r} cannot be written to a file; it must be a number") from None
        return self.units.from_si(plain, quantity)

    def _formula(self, value: design.Formula) -> str:
        """A formula of parameters, as an expression."""
        for name in value.parameters:
            self._parameter(self.m._model.parameters[name])  # its name must be a word
        book = value.book
        leaves = {node: str(name) for name, node in zip(book.names, book.nodes, strict=True)}
        return printing.text_of(book.plain(), value.index, leaves)


class _NoState:
    """The state that is passed to a function while it is recorded; a file cannot contain a function that reads it."""

    def __getattr__(self, name: str) -> Any:
        raise ModelError("it reads the state")

    def __getitem__(self, name: Any) -> Any:
        raise ModelError("it reads the state")


def _recipe(primitive: Primitive) -> Recipe:
    recipe = primitive.origin
    assert isinstance(recipe, Recipe)
    return recipe
