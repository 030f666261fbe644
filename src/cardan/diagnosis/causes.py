"""Causes of a failure that can be seen in the model itself: in words, without solving anything.

- Two constraints set the same coordinate to different values, or a driver sets one to a value beyond its limits.
- A driver sets a length that is far beyond the extent of the mechanism.
- Gears and belts form a ring.  With θ₂ = rᵢ θ₁ + φᵢ along the ring, θ = R θ + φ follows for its first angle: the ring
  rotates freely if R = 1 and φ = 0.  If R ≠ 1 it is locked at θ = φ/(1 − R).  If only φ ≠ 0 it cannot be assembled.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from cardan.joints.couplings import DRIVEN, LIMITED
from cardan.system import reading
from cardan.system import tables as layout
from cardan.system.relations import Record
from cardan.system.system import System

_SETS: Final = {primitive.name for primitive in DRIVEN.values()}
_LIMITS: Final = {LIMITED[kind].name: DRIVEN[kind].name for kind in DRIVEN}
SAME = 1e-12  # relative to the larger value, or absolute below 1: a smaller difference is rounding
FAR = 1e6  # extents: a driver that sets a larger length is probably in another unit


class _Setting(NamedTuple):
    """A value [m or rad] that a constraint sets a coordinate to."""

    name: str
    is_driver: bool
    value: float
    unit: str

    def text(self) -> str:
        return f"{'driver ' if self.is_driver else ''}{self.name!r}"


_Way = tuple[float, float, tuple[str, ...]]  # slope, shift [rad], and the gears on the way


class _Gear(NamedTuple):
    """θ₂ = ratio·θ₁ + phase, for counted angles by serial number."""

    name: str
    first: int
    second: int
    ratio: float
    phase: float


def causes(system: System, time: float) -> list[str]:
    """Why the constraints may not be satisfiable at a time [s], each cause as a sentence; empty if none is seen."""
    settings: dict[Any, list[_Setting]] = {}
    limits: dict[Any, list[tuple[str, float, float]]] = {}
    for name, record in _named(system):
        form = record.judged()
        if form.primitive.name in _SETS:
            settings.setdefault((form.primitive.name, *_features(form)), []).append(_setting(name, form, time))
        elif form.primitive.name in _LIMITS:
            lower, upper = _floats(form)[:2]
            limits.setdefault((_LIMITS[form.primitive.name], *_features(form)), []).append((name, lower, upper))
    found = []
    for coordinate, group in settings.items():
        for other in group[1:]:
            found += _contradiction(group[0], other)
        found += [text for bounds in limits.get(coordinate, ()) for one in group for text in _beyond(one, *bounds)]
    drivers = [setting for group in settings.values() for setting in group if setting.is_driver]
    return found + _far(system, drivers) + rings(system)


def _named(system: System) -> Iterator[tuple[str, Record]]:
    """Every record with the name of its constraint."""
    return zip(system.constraints, system._source.records, strict=True)


def _floats(record: Record) -> list[float]:
    return array("d", record.floats).tolist()


def _features(record: Record) -> tuple[tuple[Any, ...], ...]:
    """What a record reads: kind, body or counted angle by serial number, and values in body axes."""
    floats = _floats(record)
    found: list[tuple[Any, ...]] = []
    for kind, body, _, source, _ in reading.features(reading.template(record.ints)):
        if kind == layout.ANGLE:
            found.append((kind, source))
        else:
            found.append((kind, body, *floats[source : source + (4 if kind == layout.ORIENTATION else 3)]))
    return tuple(found)


def _setting(name: str, record: Record, time: float) -> _Setting:
    is_driver = record.signal is not None
    value = record.signal.value(time) if record.signal else _floats(record)[len(record.primitive.parameters) - 1]
    return _Setting(name, is_driver, value, record.primitive.unit)


def _contradiction(one: _Setting, other: _Setting) -> list[str]:
    if one.name == other.name or abs(one.value - other.value) <= SAME * max(1.0, abs(one.value), abs(other.value)):
        return []
    values = f"{one.value:.9g} {one.unit} and to {other.value:.9g} {other.unit}"
    text = f"{one.text()} and {other.text()} contradict each other: they set the same coordinate to {values}"
    joint = [setting for setting in (one, other) if not setting.is_driver]
    if len(joint) == 1:
        text += f"; to drive it, remove {joint[0].name!r} and drive cd.coordinate(…) between the same two ends"
    return [text]


def _beyond(one: _Setting, name: str, lower: float, upper: float) -> list[str]:
    slack = SAME * max(1.0, abs(one.value))
    if lower - slack <= one.value <= upper + slack:
        return []
    side, bound = ("below the lower", lower) if one.value < lower else ("above the upper", upper)
    values = f"{one.value:.9g} {one.unit}, {side} bound {bound:.9g} {one.unit}"
    return [f"{one.text()} sets its coordinate to {values} of limit {name!r}"]


def _far(system: System, drivers: list[_Setting]) -> list[str]:
    """Drivers that set a length far beyond the extent of their piece."""
    of_lengths = [driver for driver in drivers if driver.unit == "m"]
    lengths = _lengths(system) if of_lengths else {}
    found = []
    for driver in of_lengths:
        length = lengths[driver.name]
        if abs(driver.value) > FAR * (length or 1.0) or abs(driver.value) == length > FAR:
            known = 0.0 < length < abs(driver.value)
            size = f"the extent of the mechanism is {length:.3g} m" if known else "the model has no other length"
            found.append(f"{driver.text()} sets its coordinate to {driver.value:.9g} m, but {size}; check the unit")
    return found


def _lengths(system: System) -> dict[str, float]:
    """Extent [m] of the piece of every constraint."""
    return {row.constraint: piece.system.length for piece in system.pieces for row in piece.system.rows}


def rings(system: System) -> list[str]:
    """Rings of gears and belts that are locked or inconsistent, in words."""
    gears = []
    for name, record in _named(system):
        if record.primitive.name == "gear":
            (first,), (second,) = ([f[1]] for f in _features(record) if f[0] == layout.ANGLE)
            gears.append(_Gear(name, first, second, *_floats(record)[:2]))
    # A spanning forest: each angle as slope·(angle of a root) + shift, with the gears on the way.
    reached: dict[int, _Way] = {}
    found = []
    left = gears
    while left:
        open_gears = [gear for gear in left if gear.first in reached or gear.second in reached]
        if not open_gears:
            reached[left[0].first] = 1.0, 0.0, ()
            continue
        gear = open_gears[0]
        left = [other for other in left if other is not gear]
        if gear.first in reached and gear.second in reached:
            found += _ring(gear, reached[gear.first], reached[gear.second])
        elif gear.first in reached:
            slope, shift, way = reached[gear.first]
            reached[gear.second] = gear.ratio * slope, gear.ratio * shift + gear.phase, (*way, gear.name)
        else:
            slope, shift, way = reached[gear.second]
            reached[gear.first] = slope / gear.ratio, (shift - gear.phase) / gear.ratio, (*way, gear.name)
    return found


def _ring(gear: _Gear, first: _Way, second: _Way) -> list[str]:
    """The ring that a gear closes between two angles of one tree: θ = total·θ + phase for its second angle."""
    slope_1, shift_1, way_1 = first
    slope_2, shift_2, way_2 = second
    total = gear.ratio * slope_1 / slope_2
    phase = gear.ratio * shift_1 + gear.phase - total * shift_2
    shared = set(way_1) & set(way_2)
    names = ", ".join(repr(name) for name in (*way_1, *reversed(way_2), gear.name) if name not in shared)
    if abs(total - 1.0) > SAME:
        sign = "+" if total > 1.0 else "−"
        value = f"1 {sign} {abs(total - 1.0):.3g}"
        return [f"{names} form a ring with a total ratio of {value}; it must be 1, or the ring cannot rotate"]
    if abs(phase) > SAME * max(1.0, abs(gear.ratio * shift_1), abs(shift_2)):
        return [f"{names} form a ring whose phases add up to {phase:.3g} rad; they must add up to 0"]
    return []
