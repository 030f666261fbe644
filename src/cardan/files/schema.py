"""The JSON Schema of model files, for completion and checks in editors; made from the kinds' own signatures.

``docs/cardan.schema.json`` is the published copy, which ``make generated`` writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cardan.constraints.registry import KINDS, LENGTH_POWER
from cardan.files import faces, solids, spec
from cardan.files.units import UNITS
from cardan.mechanism import Mechanism
from cardan.system.display import ANGLES, LENGTHS
from cardan.system.parts import GROUND

NUMBER: dict[str, Any] = {"$ref": "#/$defs/number"}


def _table(properties: Mapping[str, Any], required: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    made = {"type": "object", "properties": dict(properties), "additionalProperties": False, **more}
    return made | ({"required": list(required)} if required else {})


def _map(values: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values, **more}


def _list(count: int) -> dict[str, Any]:
    return {"type": "array", "items": NUMBER, "minItems": count, "maxItems": count}


def _end(takes: str) -> dict[str, Any]:
    ways: list[Any] = [{"type": "string", "description": _names(takes)}]
    for word in takes.split("|"):
        if word == "point":
            ways += [{"$ref": "#/$defs/point"}, {"$ref": "#/$defs/frame"}]
        elif word not in ("body", "face"):
            ways.append({"$ref": f"#/$defs/{word}"})
    return {"anyOf": ways}


def _names(takes: str) -> str:
    said = {
        "coordinate": "a joint, or joint.coordinate",
        "body": "a body",
        "frame": "a body, or body.frame",
        "point": "a body, or body.frame",
        "vector": "body.frame",
        "face": "body.face, or a body with one curve or surface",
    }
    return "; ".join(said[word] for word in takes.split("|"))


def _option(option: spec.Option) -> dict[str, Any]:
    if option.quantity.sort == "flag":
        return {"type": "boolean"}
    if option.quantity.sort == "word":
        return {"type": "string"}
    if option.quantity.sort == "function":
        text = f"a number, or an expression in {', '.join(option.quantity.variables)}"
        if option.quantity.splined:
            return {"anyOf": [NUMBER, *_splines()], "description": f"{text}; or a spline"}
        text = f"{text}; three of them for a vector"
        return {"anyOf": [NUMBER, {"type": "array", "items": NUMBER}], "description": text}
    return {"anyOf": [NUMBER, {"type": "array", "items": {"anyOf": [NUMBER, {"type": "array", "items": NUMBER}]}}]}


def _splines() -> list[dict[str, Any]]:
    many = {"type": "array", "items": NUMBER, "minItems": 1}
    values = {"x": many, "y": many, "breaks": many, "periodic": {"type": "boolean"}}
    values["coefficients"] = {
        "type": "array",
        "items": many,
        "description": "of each piece, highest power first, in SI",
    }
    return [_table({word: values[word] for word in words}, words[:2]) for words in (spec.POINTS, spec.PIECES)]


def _kind(kind: spec.Spec) -> dict[str, Any]:
    properties: dict[str, Any] = {"kind": {"const": kind.name}}
    properties |= {name: _end(takes) for name, takes, _ in kind.ends}
    properties |= {name: _option(option) for name, option in kind.options.items()}
    text = (getattr(Mechanism, kind.name).__doc__ or "").partition("\n")[0]
    return _table(properties, ["kind", *kind.required], description=text)


def _shape(kind: str) -> dict[str, Any]:
    values = {key: {"type": ["number", "array", "boolean", "string"]} for key in solids.KEYS[kind]}
    color = {"type": ["string", "array"], "description": '"#rrggbb", or three or four numbers from 0 to 1'}
    place = {"origin": _list(3), "z": _list(3), "x": _list(3), "color": color, "density": NUMBER}
    return _table({"kind": {"const": kind}, **values, **place}, ["kind"])


def _geometry(kind: str) -> dict[str, Any]:
    values = {key: {"type": ["number", "array", "string"]} for key in faces.KEYS[kind]}
    color = {"type": ["string", "array"]}
    place = {"name": {"type": "string"}, "origin": _list(3), "z": _list(3), "x": _list(3), "color": color}
    return _table({"geometry": {"const": kind}, **values, **place}, ["geometry"])


def schema() -> dict[str, Any]:
    """The schema, as plain values."""
    frame = {"origin": _list(3), "z": _list(3), "x": _list(3)}
    body = {"body": {"type": "string"}}
    features = [
        _table(frame | {"body": body["body"]}),
        _table({"body": body["body"], "point": _list(3)}, ["point"]),
        _table({"body": body["body"], "vector": _list(3)}, ["vector"]),
    ]
    definitions: dict[str, Any] = {
        "number": {
            "anyOf": [
                {"type": "number"},
                {"type": "string", "description": 'an expression in SI units, such as "30*mm" or "L/2"'},
            ]
        },
        "frame": _table(body | frame, ["body"]),
        "point": _table(body | {"point": _list(3)}, ["body", "point"]),
        "vector": _table(body | {"vector": _list(3)}, ["body", "vector"]),
        "coordinate": _table(
            {"a": _end("frame|point"), "b": _end("frame|point"), "of": {"enum": list(spec.COORDINATES)}}, ["a", "b"]
        ),
    }
    rows = {"type": "array", "items": _list(3), "minItems": 3, "maxItems": 3}
    inertia = {"anyOf": [rows, _list(3)]}
    part = {
        "position": _list(3),
        "orientation": _list(4),
        "mass": NUMBER,
        "inertia": inertia,
        "center": _list(3),
        "frames": _map({"anyOf": features}),
        "shapes": {"type": "array", "items": {"anyOf": [*map(_shape, solids.KEYS), *map(_geometry, faces.KEYS)]}},
    }
    own = {
        "type": "object",
        "properties": {"kind": {"const": "constrain"}, "primitive": {"type": "string"}},
        "required": ["kind", "primitive"],
        "description": "A constraint of one of the primitives of the file, with its arguments and parameters.",
    }
    posed = dict(zip(spec.POSED, (_list(3), _list(4), _list(3), _list(3)), strict=True))
    pose = {"time": NUMBER, "bodies": _map(_table(posed)), "angles": _map(NUMBER), "variables": _map(NUMBER)}
    named = {"type": "array", "items": {"type": "string"}}
    bodies = {"anyOf": [{"const": "all"}, named]}
    exclude = {"type": "array", "items": {"anyOf": [{"type": "string"}, named | {"minItems": 2, "maxItems": 2}]}}
    friction = {"anyOf": [NUMBER, _list(2)]}
    of_collisions = (bodies, exclude, NUMBER, {"type": "boolean"}, NUMBER, friction)
    kinds = "|".join(KINDS)
    primitive = {
        "arguments": _map({"type": "string", "pattern": rf"^({kinds})( of \w+)?$"}),
        "parameters": _map(NUMBER),
        "unit": {"anyOf": [{"enum": list(LENGTH_POWER)}, {"type": "array", "items": {"enum": list(LENGTH_POWER)}}]},
        "rows": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    }
    top = {
        "cardan": {"enum": list(range(1, spec.VERSION + 1)), "description": "version of the format"},
        "name": {"type": "string"},
        "gravity": _list(3),
        "units": _table({quantity: {"enum": list(units)} for quantity, units in UNITS.items()}),
        "display": _table(
            {"length": {"enum": list(LENGTHS)}, "angle": {"enum": list(ANGLES)}}, description="units of texts"
        ),
        "parameters": _map({"anyOf": [NUMBER, _table({key: NUMBER for key in spec.PARAMETER}, ["value"])]}),
        "bodies": {
            "type": "object",
            "properties": {GROUND: _table({"frames": part["frames"], "shapes": part["shapes"]})},
            "additionalProperties": _table(part),
        },
        "primitives": _map(_table(primitive, ["arguments", "rows"])),
        "joints": _map({"anyOf": [*map(_kind, spec.joint_specs().values()), own]}),
        "rates": _map(
            _table(
                {"kind": {"const": "knife_edge"}, "frame": _end("frame"), "relative_to": {"type": "string"}}, ["frame"]
            )
        ),
        "loads": _map({"anyOf": list(map(_kind, spec.load_specs().values()))}),
        "collisions": _map(_table(dict(zip(spec.COLLISIONS, of_collisions, strict=True)))),
        "poses": _map(_table(pose, ["bodies"])),
    }
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Cardan model file"}
    return head | _table(top, ["cardan"]) | {"$defs": definitions}


def published() -> str:
    """The text of the published schema."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"
