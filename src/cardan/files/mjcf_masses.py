"""Masses of MJCF bodies that follow from their geoms: solids of constant density."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Final

import numpy as np

from cardan.errors import ModelError
from cardan.files import robots
from cardan.files.robots import Array, Inertial, Transform

DENSITY: Final = 1000.0  # kg/m³ of a geom without one
MASSLESS: Final = ("plane", "hfield")
SIZES: Final = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
ALONG: Final = ("capsule", "cylinder", "ellipsoid", "box")  # geoms that may be given by two points


class UnknownMassError(Exception):
    """The mass of a geom is not known here; the text says why."""


def of_geoms(geoms: Iterable[tuple[ET.Element, Transform]]) -> Inertial | None:
    """The sum over geoms, each with its pose in the body; None if they have no mass."""
    parts = [part for geom, at in geoms if (part := _inertial(geom, at)).mass > 0.0]
    return total(parts) if parts else None


def total(parts: Iterable[Inertial]) -> Inertial:
    """Mass, centre and inertia of several parts of one body."""
    parts = list(parts)
    mass = sum(part.mass for part in parts)
    center: Array = np.asarray(sum(part.mass * part.center for part in parts) / mass)
    inertia = sum(part.inertia + _of_point(part.mass, part.center - center) for part in parts)
    return Inertial(mass, center, np.asarray(inertia))


def _of_point(mass: float, d: Array) -> Array:
    """Inertia of a point mass about a point at −d."""
    return np.asarray(mass * (float(d @ d) * np.eye(3) - np.outer(d, d)))


def with_point(body: Inertial, mass: float) -> Inertial:
    """With a point mass at the origin of the body, and as much in its moments, which three rotors have."""
    found = total([body, Inertial(mass, np.zeros(3), np.zeros((3, 3)))])
    return found._replace(inertia=found.inertia + mass * np.eye(3))


def _inertial(geom: ET.Element, at: Transform) -> Inertial:
    kind = geom.get("type", "mesh" if geom.get("mesh") else "sphere")
    mass = robots.number(geom, "mass") if geom.get("mass") is not None else None
    density = robots.number(geom, "density", DENSITY)
    if kind in MASSLESS or mass == 0.0 or (mass is None and density == 0.0):
        return Inertial(0.0, np.zeros(3), np.zeros((3, 3)))
    if kind not in SIZES or geom.get("mesh") is not None:
        raise UnknownMassError("meshes, whose files are not read" if geom.get("mesh") is not None else f"{kind} geoms")
    if geom.get("shellinertia") == "true":
        raise UnknownMassError("geoms with shellinertia")
    volume, unit = _solid(kind, _size(geom, kind))
    own = density * volume if mass is None else mass
    return Inertial(own, at.p, at.R @ np.diag(own * unit) @ at.R.T)


def _size(geom: ET.Element, kind: str) -> Array:
    """Radius, half lengths, … of a geom."""
    text = geom.get("size", "").split()
    given = robots.numbers(geom, "size", len(text)) if text else np.empty(0)
    if geom.get("fromto") is not None and kind in ALONG:
        ends = robots.numbers(geom, "fromto", 6)
        half = 0.5 * float(np.linalg.norm(ends[3:] - ends[:3]))
        given = np.array([*given[:1], half] if SIZES[kind] == 2 else [*given[:1], *given[:1], half])
    if given.size < SIZES[kind] or not (given[: SIZES[kind]] > 0.0).all():
        raise ModelError(
            f"{robots.describe(geom)} ({kind}) has size={geom.get('size')!r}; it must have {SIZES[kind]} numbers above "
            "zero"
        )
    return given[: SIZES[kind]]


def _solid(kind: str, size: Array) -> tuple[float, Array]:
    """Volume [m³], and principal moments over the mass [m²]."""
    if kind == "box":
        x, y, z = size**2
        return 8.0 * float(np.prod(size)), np.array([y + z, x + z, x + y]) / 3.0
    if kind in ("sphere", "ellipsoid"):
        x, y, z = np.broadcast_to(size, 3) ** 2
        return 4.0 / 3.0 * math.pi * math.sqrt(x * y * z), np.array([y + z, x + z, x + y]) / 5.0
    r, half = size.tolist()
    tube = 2.0 * math.pi * r * r * half
    across = r * r / 4.0 + half * half / 3.0
    if kind == "cylinder":
        return tube, np.array([across, across, r * r / 2.0])
    ball = 4.0 / 3.0 * math.pi * r**3  # two halves, whose centres are 3/8 r beyond the ends
    side = tube * across + ball * (0.4 * r * r + half * half + 0.75 * half * r)
    along = tube * r * r / 2.0 + ball * 0.4 * r * r
    return tube + ball, np.array([side, side, along]) / (tube + ball)
