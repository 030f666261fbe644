"""Curves and surfaces in a file: by name and sizes, as NURBS, as expressions, or in a file of their own.

Each is written so that it is read back bitwise.  Lengths are in the units of the file; expressions, and shapes in files
of their own, are in metres.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path as FilePath
from typing import Any, Final

import numpy as np

from cardan import contents, geometry
from cardan.constraints.expression import TracingError
from cardan.errors import ModelError
from cardan.files import printing
from cardan.files.formula import Formula
from cardan.files.units import Conversion
from cardan.files.values import short
from cardan.geometry.analytic import Analytic
from cardan.geometry.face import Face
from cardan.geometry.nurbs import Curve, Surface
from cardan.geometry.shape import Shape, Trimmed
from cardan.geometry.traced import Traced
from cardan.system import check

MOST_POINTS: Final = 20_000  # control points of a NURBS in a file
MOST_DEGREE: Final = 9  # a NURBS of that size is made in less than a second
MOST_BYTES: Final = 16_000_000  # of a file with a NURBS
MOST_LOOPS: Final = 8  # of a trimmed face: whether they cross is tested in less than a second
MOST_LOOP_POINTS: Final = 2_000  # control points of all its loops
MOST_OPERATIONS: Final = 200  # of the expressions of a shape: their third derivatives have many more
SPANS: Final = ("length", "width", "height")  # keys that are [lower, upper]; without a bound if omitted
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "point": ("position",),
    "line": ("length",),
    "circle": ("radius",),
    "ellipse": ("a", "b"),
    "plane": ("width", "height"),
    "sphere": ("radius",),
    "ellipsoid": ("a", "b", "c"),
    "cylinder": ("radius", "height"),
    "cone": ("radius", "slope", "height"),
    "torus": ("major", "minor"),
    "curve": ("points", "weights", "knots", "degree"),
    "surface": ("points", "weights", "knots", "degree", "loops"),
    "traced": ("point", "bounds", "periods"),
    "file": ("path", "loops"),
}
PLACE: Final = ("geometry", "name", "origin", "z", "x", "color")
VARIABLES: Final = ("u", "v")


def written(shape: Shape, unit: Conversion) -> dict[str, Any]:
    """A curve or surface as plain values; ModelError for one that a file cannot contain.

    unit: from SI to units of the file.
    """
    if isinstance(shape, Analytic) and shape.name == "point":
        return {"geometry": "point", "position": [unit(one, "length") for one in shape.numbers]}
    if isinstance(shape, Analytic) and shape.name in KEYS:
        return {"geometry": shape.name, **_sizes(shape, unit)}
    if isinstance(shape, Curve | Surface):
        found = _nurbs(shape)
        return found | {"points": _each(found["points"], unit)}
    if isinstance(shape, Traced):
        return _traced(shape, unit)
    raise ModelError(f"{shape!r:.80} cannot be written to a file; it can contain {', '.join(KEYS)}")


def _each(lengths: Any, unit: Conversion) -> Any:
    """A length, or lists of lengths, converted by ``unit``."""
    return [_each(one, unit) for one in lengths] if isinstance(lengths, list) else unit(lengths, "length")


def _quantity(key: str) -> str:
    """The quantity of a size of a shape, by its key: all are lengths except the slope of a cone."""
    return "" if key == "slope" else "length"


def _sizes(shape: Analytic, unit: Conversion) -> dict[str, Any]:
    keys = KEYS[shape.name]
    sizes = zip([key for key in keys if key not in SPANS], shape.numbers, strict=False)
    found: dict[str, Any] = {key: unit(value, _quantity(key)) for key, value in sizes}
    bounds = {"line": shape.bounds, "plane": shape.bounds}.get(shape.name, shape.bounds[1:])
    for key, (low, high) in zip([key for key in keys if key in SPANS], bounds, strict=False):
        if math.isinf(low) != math.isinf(high):
            raise ModelError(
                f"{check.with_article(shape.name)} has one bound only, {low} to {high}; a file needs both, or none"
            )
        if not math.isinf(low):
            found[key] = [unit(low, "length"), unit(high, "length")]
    return found


def _nurbs(shape: Curve | Surface) -> dict[str, Any]:
    is_curve = isinstance(shape, Curve)
    found: dict[str, Any] = {"geometry": "curve" if is_curve else "surface"}
    if shape.weights.size > MOST_POINTS:
        ways = f"a file can contain {MOST_POINTS:,}: attach it in Python"
        raise ModelError(f"a {found['geometry']} has {shape.weights.size:,} control points; {ways}")
    degrees = [shape.degree] if isinstance(shape, Curve) else list(shape.degrees)
    if max(degrees) > MOST_DEGREE:
        ways = f"a file can contain {MOST_DEGREE} at the most: attach it in Python"
        raise ModelError(f"a {found['geometry']} has the degree {max(degrees)}; {ways}")
    found["degree"] = degrees[0] if is_curve else degrees
    found["points"] = shape.points.tolist()
    if (shape.weights != 1.0).any():
        found["weights"] = shape.weights.tolist()
    found["knots"] = shape.knots.tolist() if isinstance(shape, Curve) else [t.tolist() for t in shape.knots]
    return found


def written_loops(face: Trimmed) -> list[list[dict[str, Any]]]:
    """The loops of a trimmed face as plain values: lists of curves in the parameter plane."""
    if not isinstance(face, Face):
        raise ModelError(f"{face!r:.80} cannot be written to a file; its loops must be those of cd.geometry.Face")
    loops = [[_nurbs(curve) for curve in loop] for loop in face.loops]
    _check_loops(loops)
    return [[{key: curve[key] for key in KEYS["curve"] if key in curve} for curve in loop] for loop in loops]


def _check_loops(loops: list[list[dict[str, Any]]]) -> None:
    """ModelError if a face has more loops than a file can contain."""
    points = sum(len(curve["points"]) for loop in loops for curve in loop)
    if len(loops) > MOST_LOOPS or points > MOST_LOOP_POINTS:
        raise ModelError(
            f"a trimmed face has {len(loops):,} loops with {points:,} control points; a file can contain {MOST_LOOPS} "
            f"with {MOST_LOOP_POINTS:,}: attach it in Python"
        )


def _traced(shape: Traced, unit: Conversion) -> dict[str, Any]:
    nodes = [node.plain() for node in shape._graph.nodes]
    leaves = dict(zip(range(shape.freedoms), VARIABLES, strict=False))  # variables are the first nodes
    point = [
        unit(float(c.value), "length")
        if c.operation == "constant" and c.value is not None
        else printing.text_of(nodes, c.index, leaves)
        for c in shape._rows[0]
    ]
    found: dict[str, Any] = {"geometry": "traced", "point": point, "bounds": [list(one) for one in shape.bounds]}
    if any(shape.periods):
        found["periods"] = list(shape.periods)
    return found


def read(
    table: Mapping[str, Any],
    number: Conversion,
    formula: Callable[[str, tuple[str, ...]], Formula],
    folder: FilePath | None,
) -> Shape | Face:
    """The curve, surface or trimmed face of a table with known keys.

    ``number(value, quantity)`` gives the float of a value in the file, in SI; ``formula(text, variables)`` an
    expression; folder: where other files are, None if there are none.
    """
    kind = table["geometry"]
    if kind in ("file", "curve", "surface"):
        nurbs = _read_file(table.get("path"), folder) if kind == "file" else _read_nurbs(table, kind, number)
        return _read_face(nurbs, table["loops"]) if "loops" in table else nurbs
    if kind == "point":
        return _read_point(table.get("position"), number)
    if kind == "traced":
        return _read_traced(table, number, formula)
    given: dict[str, Any] = {}
    for key in KEYS[kind]:
        if key in SPANS:
            if key in table:
                given[key] = _span(table[key], f"the {key} of {check.with_article(kind)}", number, "length")
            elif kind == "cone":
                raise ModelError("the key 'height' of a cone is missing")
        elif key not in table:
            raise ModelError(f"the key {key!r} of {check.with_article(kind)} is missing")
        else:
            given[key] = check.number(number(table[key], _quantity(key)), f"the {key} of {check.with_article(kind)}")
    return getattr(geometry, kind)(**given)


def _read_point(value: Any, number: Conversion) -> Shape:
    if not isinstance(value, list) or len(value) != 3:
        raise ModelError(f"the position of a point is {short(value)}; it must be three lengths")
    return geometry.analytic.Point([check.number(number(one, "length"), "the position of a point") for one in value])


def _read_face(surface: Curve | Surface, loops: Any) -> Face:
    """A surface that loops bound: lists of curves in the parameter plane that follow each other."""
    wrong = "they must be lists of curves, each with degree, points and knots in the parameter plane"
    if not isinstance(surface, Surface):
        raise ModelError("a curve has loops; only a surface can be trimmed")
    if not isinstance(loops, list) or not all(isinstance(loop, list) for loop in loops):
        raise ModelError(f"the loops of a surface are {short(loops)}; {wrong}")
    for curve in (curve for loop in loops for curve in loop):
        if not isinstance(curve, dict) or not isinstance(curve.get("points"), list):
            raise ModelError(f"a loop of a surface has {short(curve)}; {wrong}")
        for key in curve:
            if key not in KEYS["curve"]:
                raise check.unknown(key, "key of a loop", KEYS["curve"])
    _check_loops(loops)
    made = [[_read_nurbs(curve, "curve") for curve in loop] for loop in loops]
    return Face(surface, made)


def _span(value: Any, what: str, number: Conversion, quantity: str) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ModelError(f"{what} is {short(value)}; it must be [lower, upper]")
    low, high = (check.number(number(one, quantity), what) for one in value)
    return low, high


def _read_nurbs(table: Mapping[str, Any], kind: str, number: Conversion | None = None) -> Curve | Surface:
    """number: converts coordinates of points to SI; None if they have no unit, or are in metres."""
    for key in ("points", "knots", "degree"):
        if key not in table:
            raise ModelError(f"the key {key!r} of {check.with_article(kind)} is missing")
    points, weights = (_array(table, key, kind) for key in ("points", "weights"))
    assert points is not None
    if points.ndim < 2 or points[..., 0].size > MOST_POINTS:
        raise ModelError(f"the points of a {kind} must be lists of coordinates, at most {MOST_POINTS:,} of them")
    if number is not None:
        points = np.array(_each(table["points"], number), dtype=float)
    degrees = table["degree"] if isinstance(table["degree"], list) else [table["degree"]]
    for degree in degrees:
        if isinstance(degree, bool) or not isinstance(degree, int) or not 1 <= degree <= MOST_DEGREE:
            raise ModelError(f"the degree of a {kind} is {short(degree)}; it must be from 1 to {MOST_DEGREE}")
    knots = table["knots"]
    if kind == "curve":
        if len(degrees) != 1:
            raise ModelError(f"the degree of a curve is {short(table['degree'])}; it must be one number")
        return Curve(points, weights, _array(table, "knots", kind), degree=degrees[0])
    if not isinstance(knots, list) or len(knots) != 2 or len(degrees) not in (1, 2):
        raise ModelError("a surface needs two lists of knots, along u and v, and one degree or two")
    u, v = (_array({"knots": one}, "knots", kind) for one in knots)
    return Surface(points, weights, u, v, degree=(degrees[0], degrees[-1]))


def _array(table: Mapping[str, Any], key: str, kind: str) -> Any:
    """An array of finite numbers; None if the key is missing."""
    if key not in table:
        return None
    value = table[key]
    try:
        found = np.array(value, dtype=float) if isinstance(value, list) and not _has_text(value) else None
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        found = None
    if found is None or not np.isfinite(found).all():
        raise ModelError(f"the {key} of a {kind} are {short(value)}; they must be lists of finite numbers")
    return found


def _has_text(value: list[Any]) -> bool:
    """Whether a string is among numbers: NumPy would read it as one."""
    return any(isinstance(one, str | bool) or (isinstance(one, list) and _has_text(one)) for one in value)


def _read_traced(
    table: Mapping[str, Any], number: Conversion, formula: Callable[[str, tuple[str, ...]], Formula]
) -> Traced:
    point, bounds = table.get("point"), table.get("bounds")
    if not isinstance(bounds, list) or len(bounds) not in (1, 2):
        raise ModelError(f"the bounds of a shape are {short(bounds)}; they must be [[lower, upper]] for each of "
                         "u and v")  # fmt: skip
    spans = [_span(one, "the bounds of a shape", number, "") for one in bounds]
    periods = table.get("periods", [0.0] * len(spans))
    if not isinstance(periods, list) or len(periods) != len(spans):
        raise ModelError(f"the periods of a shape are {short(periods)}; there must be {len(spans)} of them")
    if not isinstance(point, list) or len(point) != 3:
        raise ModelError(f"the point of a shape is {short(point)}; it must be three expressions of u and v")
    names = VARIABLES[: len(spans)]
    parts = [formula(one, names) if isinstance(one, str) else number(one, "length") for one in point]
    if sum(len(part.program) for part in parts if isinstance(part, Formula)) > MOST_OPERATIONS:
        raise ModelError(f"the expressions of a shape have more than {MOST_OPERATIONS} operations")
    functions: dict[int, Callable[..., Any]] = {
        1: lambda u: [part(u) if isinstance(part, Formula) else part for part in parts],
        2: lambda u, v: [part(u, v) if isinstance(part, Formula) else part for part in parts],
    }
    try:
        return geometry.traced(functions[len(spans)], *spans, period=tuple(number(one, "") for one in periods))
    except (TracingError, ArithmeticError, ValueError) as error:
        raise ModelError(f"the expressions of a shape cannot be traced: {error}") from None


def _read_file(path: Any, folder: FilePath | None) -> Curve | Surface:
    """The NURBS in another file: JSON of cd.geometry.to_json, in the folder of the model or below it."""
    if not isinstance(path, str) or not path or "\0" in path:
        raise ModelError(f"the path of a shape is {short(path)}; it must be that of a JSON file")
    if folder is None:
        raise ModelError(f"the shape is in the file {path!r}, and a text has no folder: use cd.load(path)")
    content = contents.read_below(folder, path, MOST_BYTES, "the path of a shape")
    try:
        values = json.loads(content.decode())  # bytes could be UTF-16 or UTF-32
    except (ValueError, RecursionError):
        raise ModelError(f"the file {path!r} of a shape is not JSON; cd.geometry.to_json writes it") from None
    if not isinstance(values, dict) or values.get("kind") not in ("curve", "surface"):
        raise ModelError(f"the file {path!r} has no curve or surface; cd.geometry.to_json writes one")
    table = {**values, "geometry": values["kind"], "degree": values.get("degrees")}
    if values["kind"] == "curve" and isinstance(values.get("knots"), list) and len(values["knots"]) == 1:
        table["knots"] = values["knots"][0]
    return _read_nurbs(table, values["kind"])
