"""Shapes that several examples attach to their bodies."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Any

import numpy as np

import cardan as cd

STEEL, RUBBER, BRASS, BONE = "#565e69", "#3a3d42", "#c9a24b", "#e6dcc3"
UNSEEN = "#00000000"  # of a curve of a contact that a solid shows
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def rod(body: cd.Body, p: Any, q: Any, radius: float, color: str | None = None) -> None:
    """A round rod between two points of a body."""
    a, b = np.array(p, dtype=float), np.array(q, dtype=float)
    length = float(np.linalg.norm(b - a))
    body.attach(cd.shapes.cylinder(radius, length), body.frame(0.5 * (a + b), z=b - a), color=color)


def block(body: cd.Body, low: Any, high: Any, color: str | None = None) -> None:
    """A box between two opposite corners, along the body's axes."""
    a, b = np.array(low, dtype=float), np.array(high, dtype=float)
    body.attach(cd.shapes.box(*np.abs(b - a)), body.frame(0.5 * (a + b), x=X), color=color)


def bar(body: cd.Body, p: Any, q: Any, width: float, thickness: float, z: float = 0.0) -> None:
    """A flat bar with round ends between two points of the plane z."""
    body.attach(cd.shapes.link(p, q, width=width, thickness=thickness), body.frame((0.0, 0.0, z), x=X))


def pin(body: cd.Body, at: Any, low: float, high: float, radius: float) -> None:
    """A pin along z through a point of the plane, with a thin head at each end."""
    head = 0.2 * radius
    a, b, r, wide = low - head, high + head, radius, 1.25 * radius
    profile = [(0.0, a), (wide, a), (wide, low), (r, low), (r, high), (wide, high), (wide, b), (0.0, b)]
    body.attach(cd.shapes.revolution(profile), body.frame((at[0], at[1], 0.0)), color=STEEL)


def stand(body: cd.Body, axles: Any, radius: float, low: float, high: float, floor: float) -> None:
    """Posts on a base behind a mechanism in the plane z = 0, with axles along z from low to high."""
    for x, y in axles:
        bar(body, (x, y), (x, floor), 4.0 * radius, 2.0 * radius, low - 2.0 * radius)
        pin(body, (x, y), low - 3.0 * radius, high, radius)
    left, right = (f(x for x, _ in axles) for f in (min, max))
    wide, deep = 7.0 * radius, 4.0 * radius
    base = (left - wide, floor - 2.0 * radius, low - 2.0 * radius - deep)
    block(body, base, (right + wide, floor, low - 2.0 * radius + 2.0 * deep))


def guide(body: cd.Body, y: tuple[float, float], inner: float, behind: float) -> None:
    """A square bushing about the y axis on a post, whose middle is at z = behind."""
    low, high = y
    outer = 2.0 * inner
    for side in (-1.0, 1.0):
        block(body, (side * inner, low, -outer), (side * outer, high, outer))
    block(body, (-inner, low, inner), (inner, high, outer))
    block(body, (-outer, low, behind), (outer, high, -inner))


def yoke(body: cd.Body, at: Any, away: Any, axis: Any, size: float) -> None:
    """The fork of a Cardan joint: lugs around a cross of that size [m] on an axis, and a bridge away from it."""
    u, z = np.array(away, dtype=float), np.array(axis, dtype=float)
    point = np.array(at, dtype=float)
    for side in (-1.0, 1.0):
        lug = cd.shapes.link((0.0, 0.0), (1.1 * size, 0.0), width=0.62 * size, thickness=0.22 * size)
        body.attach(lug, body.frame(point + side * 0.72 * size * z, z=z, x=u))
    body.attach(cd.shapes.box(0.28 * size, 0.62 * size, 1.66 * size), body.frame(point + 1.2 * size * u, z=z, x=u))
    rod(body, point - 0.95 * size * z, point + 0.95 * size * z, 0.17 * size, STEEL)


def arc(radius: float, first: float, last: float, count: int = 24) -> list[tuple[float, float]]:
    """Points of a circle about the origin between two angles [rad]."""
    angles = np.linspace(first, last, count)
    return [(radius * cos(t), radius * sin(t)) for t in angles]


def half_ring(outer: float, inner: float) -> list[tuple[float, float]]:
    """Outline of a ring that is cut open towards −y."""
    return [*arc(outer, -0.05 * pi, 1.05 * pi), *arc(inner, 1.05 * pi, -0.05 * pi)]
