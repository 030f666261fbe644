"""Shapes from and to SciPy, plain values and JSON; pictures (extra ``plot``)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.geometry.nurbs import Curve, Surface

KEYS = ("kind", "degrees", "knots", "points", "weights")


def from_scipy(spline: Any) -> Curve:
    """The curve of a ``scipy.interpolate.BSpline`` with coefficients (n, 2) or (n, 3)."""
    if not all(hasattr(spline, name) for name in ("t", "c", "k", "extrapolate")):
        raise ModelError(f"{spline!r:.80} is no scipy.interpolate.BSpline; give one")
    c = np.asarray(spline.c, dtype=float)
    if c.ndim != 2 or c.shape[1] not in (2, 3):
        raise ModelError(f"the coefficients of the spline have the shape {c.shape}; they must be (n, 2) or (n, 3)")
    if spline.extrapolate == "periodic":
        raise ModelError("the spline is periodic; give one period to Curve(…, periodic=True)")
    return Curve(c, None, spline.t, degree=int(spline.k))


def to_scipy(curve: Curve) -> Any:
    """A ``scipy.interpolate.BSpline`` of a curve without weights."""
    from scipy.interpolate import BSpline

    if not isinstance(curve, Curve):
        raise ModelError(f"{curve!r:.80} is no Curve; SciPy's BSpline is one: use to_nurbs(), or a curve of constant u")
    if np.ptp(curve.weights) > 0.0:
        raise ModelError("the curve is rational; SciPy's BSpline has no weights: use curve.homogeneous")
    return BSpline(curve.knots, curve.points, curve.degree)


def as_dict(shape: Curve | Surface) -> dict[str, Any]:
    """Plain values of a NURBS."""
    if not isinstance(shape, Curve | Surface):
        raise ModelError(f"{shape!r:.80} is no Curve or Surface; use to_nurbs(), and a model file for closed forms")
    kind = "curve" if isinstance(shape, Curve) else "surface"
    knots = [shape.knots.tolist()] if isinstance(shape, Curve) else [t.tolist() for t in shape.knots]
    degrees = [shape.degree] if isinstance(shape, Curve) else list(shape.degrees)
    values = {"points": shape.points.tolist(), "weights": shape.weights.tolist()}
    return {"kind": kind, "degrees": degrees, "knots": knots, **values}


def from_dict(values: Any) -> Curve | Surface:
    """The NURBS of plain values."""
    if not isinstance(values, dict):
        raise ModelError(f"the values of a NURBS are {values!r:.80}; they must be named: {', '.join(KEYS)}")
    missing = [key for key in KEYS if key not in values]
    if missing:
        raise ModelError(f"the values of a NURBS lack {missing[0]!r}; they need {', '.join(KEYS)}")
    kind, degrees, knots, points, weights = (values[key] for key in KEYS)
    if kind not in ("curve", "surface"):
        raise ModelError(f"the kind is {kind!r}; it must be 'curve' or 'surface'")
    count = 1 if kind == "curve" else 2
    for key, given in (("degrees", degrees), ("knots", knots)):
        if not isinstance(given, list | tuple) or len(given) != count:
            raise ModelError(
                f"{key} of the {kind} are {given!r:.80}; they must be a list of {count}, one per direction"
            )
    if kind == "curve":
        return Curve(points, weights, knots[0], degree=degrees[0])
    return Surface(points, weights, knots[0], knots[1], degree=degrees)


def to_json(shape: Curve | Surface) -> str:
    """JSON of a NURBS; floats are written so that they are read back exactly."""
    return json.dumps(as_dict(shape))


def from_json(text: str) -> Curve | Surface:
    """The NURBS of a JSON text."""
    try:
        return from_dict(json.loads(text))
    except json.JSONDecodeError as error:
        raise ModelError(f"the text is not JSON: {error}") from None


def plot(shape: Any, axes: Any = None, *, count: int = 40, **options: Any) -> Any:
    """Draw a curve, surface or mesh with Matplotlib; returns the axes."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ModelError("pictures need Matplotlib: pip install 'cardan[plot]'") from None
    if hasattr(shape, "faces"):
        axes = plt.figure().add_subplot(projection="3d") if axes is None else axes
        axes.plot_trisurf(*shape.vertices.T, triangles=shape.faces, **options)
        axes.set_aspect("equal")
        return axes
    if not hasattr(shape, "evaluate"):
        raise ModelError(f"{shape!r:.80} cannot be drawn; draw the surface of a face, or tessellate it")
    if shape.width == shape.freedoms and not all(np.isfinite(bound).all() for bound in shape.bounds):
        raise ModelError(f"{shape!r} is unbounded; give it a size to draw it")
    flat = shape.freedoms == 1 and shape.dimension == 2
    if axes is None:
        axes = plt.figure().add_subplot(projection=None if flat else "3d")
    if shape.freedoms == 1:
        low, high = shape.bounds[0]
        points = shape.evaluate(np.linspace(low, high, 8 * count + 1))
        axes.plot(*points.T, **options)
    else:
        drawn = shape.to_nurbs() if shape.width != shape.freedoms else shape
        (u0, u1), (v0, v1) = drawn.bounds
        u, v = np.meshgrid(np.linspace(u0, u1, count + 1), np.linspace(v0, v1, count + 1), indexing="ij")
        points = drawn.evaluate(np.stack([u.ravel(), v.ravel()], axis=1)).reshape(*u.shape, 3)
        axes.plot_surface(*np.moveaxis(points, -1, 0), **options)
    axes.set_aspect("equal")
    return axes
