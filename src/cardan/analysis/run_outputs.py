"""Outputs of many runs: what is kept of each motion or simulation, as numbers.

A *series* has a value for each output time; a reduction makes one value of it.  With the times t₀ … tₙ of a run

    mean = ∫ x dt / (tₙ − t₀),    rms = √(∫ x² dt / (tₙ − t₀)),    by the trapezoidal rule,

and max, min, first and final are those of the output times.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from cardan.dynamics.build import connections, equations_of, friction_rows
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint, Role
from cardan.joints.ownership import check_body, chosen_coordinate
from cardan.system import check
from cardan.system.drawing import Drawing
from cardan.system.parts import GROUND, Frame, Point
from cardan.system.state import FloatArray

Read = Callable[[Any], FloatArray]

ENERGIES: Final = ("kinetic", "potential", "energy")
AXES: Final = "xyz"
_CALL: Final = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_CROSSING: Final = re.compile(r"(.*\S)\s*([<>])\s*(\S+)", re.DOTALL)
POWERS: Final = {"": "", "rate": "/s", "acceleration": "/s²"}
SERIES: Final = (
    *("a joint or 'joint.coordinate'", "'rate(joint)'", "'acceleration(joint)'", "'effort(driver)'", "'force(joint)'"),
    *("'torque(joint)'", "'x(body)', 'y(body)', 'z(body)'", "'kinetic', 'potential' or 'energy'", "'state'"),
)


class Series(NamedTuple):
    """Values at the output times: how they are called, their unit, the shape of one of them, and how they are read."""

    label: str
    unit: str
    shape: tuple[int, ...]
    read: Read


class Output(NamedTuple):
    """What is kept of each run: its label and unit, its shape, and how it is read.

    ``is_series``: it has a value for each output time, in front of its shape.
    """

    label: str
    unit: str
    shape: tuple[int, ...]
    read: Read
    is_series: bool

    @property
    def title(self) -> str:
        """Label and unit."""
        return f"{self.label} [{self.unit}]" if self.unit else self.label


def _mean(times: FloatArray, values: FloatArray) -> FloatArray:
    """Of the values over time, by the trapezoidal rule."""
    if len(times) < 2:
        return values[0]
    steps = np.diff(times).reshape(-1, *(1,) * (values.ndim - 1))
    found: FloatArray = np.asarray(0.5 * (steps * (values[1:] + values[:-1])).sum(axis=0) / (times[-1] - times[0]))
    return found


REDUCTIONS: Final[Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]]] = {
    "max": lambda times, values: np.max(values, axis=0),
    "min": lambda times, values: np.min(values, axis=0),
    "mean": _mean,
    "rms": lambda times, values: np.sqrt(_mean(times, values * values)),
    "first": lambda times, values: values[0],
    "final": lambda times, values: values[-1],
}


def outputs_of(drawing: Drawing, given: Any, is_motion: bool) -> tuple[Output, ...]:
    """The outputs that a user asks for; ModelError if the mechanism does not have one of them.

    is_motion: of driven motions, which have no energies and events.
    """
    if isinstance(given, Mapping):
        named = [(check.name(label, "an output"), item) for label, item in given.items()]
    elif isinstance(given, str | Joint | Coordinate | Point | Frame) or callable(given):
        named = [("", given)]
    elif isinstance(given, Iterable):
        named = [("", item) for item in given]
    else:
        raise ModelError(f"outputs is {given!r}; it must be a list of outputs, such as ['max(effort(motor))']")
    reader = _Reader(drawing, is_motion)
    found: dict[str, Output] = {}
    for label, item in named:
        made = reader.output(item)
        made = made._replace(label=label) if label else made
        if made.label in found:
            raise ModelError(f"two outputs are {made.label!r}; give them names: outputs={{name: output}}")
        found[made.label] = made
    return tuple(found.values())


class _Reader:
    """Finds the outputs that texts and items name in a mechanism."""

    def __init__(self, drawing: Drawing, is_motion: bool) -> None:
        self.drawing, self.contents, self.is_motion = drawing, drawing.contents, is_motion

    def output(self, item: Any) -> Output:
        if callable(item) and not isinstance(item, Joint | Coordinate | Point | Frame):
            return Output(getattr(item, "__name__", "function"), "", (), partial(_called, item), False)
        if isinstance(item, tuple) and len(item) == 2 and item[0] in REDUCTIONS:
            return self._reduced(item[0], self.series(item[1]))
        called = _CALL.fullmatch(item) if isinstance(item, str) and item not in self.contents.joints else None
        if called is not None and called[1] in REDUCTIONS:
            return self._reduced(called[1], self.series(called[2].strip()))
        if called is not None and called[1] == "time":
            return self._time(called[2].strip())
        series = self.series(item)
        return Output(*series, True)

    def _reduced(self, word: str, series: Series) -> Output:
        return Output(f"{word}({series.label})", series.unit, series.shape, partial(_reduce, word, series.read), False)

    def _time(self, given: str) -> Output:
        """The time [s] of the first event of a limit, contact or friction, by its name, or where a series crosses."""
        crossing = _CROSSING.fullmatch(given)
        if crossing is not None and given not in self.contents.joints:
            series = self.series(crossing[1])
            if series.shape:
                raise ModelError(f"{series.label!r} has {series.shape} values at each time; give one that is a number")
            try:
                level = float(crossing[3])
            except ValueError:
                level = math.nan
            if not math.isfinite(level):
                raise ModelError(f"the output 'time({given})' compares with {crossing[3]!r}; it must be a number")
            sign = 1.0 if crossing[2] == ">" else -1.0
            label = f"time({series.label} {crossing[2]} {level:g})"
            return Output(label, "s", (), partial(_crossing, series.read, sign, level), False)
        if self.is_motion:
            raise ModelError(f"the output 'time({given})' is an event; a driven motion has none: give 'time(A > 0.5)'")
        names = [joint.name for joint in self.contents.joints.values() if joint.kind.role in (Role.LIMIT, Role.CONTACT)]
        names += self.contents.frictions
        if given not in names:
            raise check.unknown(given, "limit, contact or joint with friction, or a condition such as 'A > 0.5'", names)
        return Output(f"time({given})", "s", (), partial(_event, given), False)

    def series(self, item: Any) -> Series:
        """What has a value at each time."""
        if isinstance(item, Point | Frame):
            check_body(self.contents, "an output", item.body)
            return Series(f"position({item.body.name})", "m", (3,), partial(_trace, item))
        called = None
        if isinstance(item, str) and item not in self.contents.joints:
            if item in ENERGIES:
                return self._energy(item)
            if item == "state":
                return Series(item, "", (len(self.drawing.system.names), 7), _poses)
            called = _CALL.fullmatch(item)
        if called is None:
            return self._coordinate("", item)
        word, name = called[1], called[2].strip()
        if word in ("rate", "acceleration"):
            return self._coordinate(word, name)
        if word == "effort":
            return self._effort(name)
        if word in ("force", "torque"):
            if name not in connections(self.drawing):
                raise check.unknown(name, "joint or constraint", connections(self.drawing))
            return Series(f"{word}({name})", "N" if word == "force" else "N m", (), partial(_reaction, word, name))
        if len(word) == 1 and word in AXES:
            if name == GROUND or name not in self.contents.bodies:
                raise check.unknown(name, "movable body", self.contents.bodies)
            return Series(f"{word}({name})", "m", (), partial(_place, AXES.index(word), name))
        raise check.unknown(f"{word}(…)", "output", (*SERIES, *[f"'{word}(…)' of these" for word in REDUCTIONS]))

    def _energy(self, word: str) -> Series:
        if self.is_motion:
            raise ModelError(f"the output {word!r} is an energy; a driven motion has none, those of m.simulate have")
        return Series(word, "J", (), partial(_energy, word))

    def _coordinate(self, word: str, item: Any) -> Series:
        one: Coordinate = chosen_coordinate(self.contents, "an output", item, None)
        joint = self.contents.joints.get(one.joint)
        is_only = joint is not None and len(joint.kind.coordinates) == 1
        name = one.joint if is_only else f"{one.joint}.{one.name}" if one.joint else f"{one.name} of {one.a.body.name}"
        label = f"{word}({name})" if word else name
        read = {"": _coordinate, "rate": _rate, "acceleration": _acceleration}[word]
        return Series(label, f"{one.unit}{POWERS[word]}", (), partial(read, one))

    def _effort(self, name: str) -> Series:
        roles = (Role.DRIVER, Role.LIMIT)
        drivers = {j.name: j.ends[0].unit for j in self.contents.joints.values() if j.kind.role in roles}
        if name not in drivers and name in self.contents.loads:
            forces = equations_of(self.drawing)[0].forces
            drivers |= {} if forces is None else forces.units
        if name not in drivers and self.contents.frictions:
            rows = friction_rows(self.drawing).values()
            drivers |= {row.name: row.relations[0].primitive.units[0] for row, _ in rows}
        if name not in drivers:
            raise check.unknown(
                name, "driver, limit, friction or load with a coordinate", (*drivers, *self.contents.loads)
            )
        return Series(f"effort({name})", "N m" if drivers[name] == "rad" else "N", (), partial(_effort, name))


# -- what is read of a run: functions of the module, so that outputs can be sent to other processes --------------------


def _called(function: Callable[[Any], Any], run: Any) -> FloatArray:
    return np.asarray(check.number(function(run), f"the output {getattr(function, '__name__', 'function')!r}"))


def _reduce(word: str, read: Read, run: Any) -> FloatArray:
    return REDUCTIONS[word](run.times, read(run))


def _crossing(read: Read, sign: float, level: float, run: Any) -> FloatArray:
    """The first time at which a series is beyond a level, linear between two output times; NaN if it never is."""
    times, above = run.times, sign * (read(run) - level)
    found = np.flatnonzero(above > 0.0)
    if not found.size:
        return np.asarray(np.nan)
    k = int(found[0])
    if k == 0:
        return np.asarray(times[0])
    return np.asarray(times[k - 1] - above[k - 1] * (times[k] - times[k - 1]) / (above[k] - above[k - 1]))


def _event(name: str, run: Any) -> FloatArray:
    return np.asarray(next((event.time for event in run.events if event[1] == name), np.nan))


def _poses(run: Any) -> FloatArray:
    return np.stack([np.hstack([run.positions(name), run.quaternions(name)]) for name in run.names], axis=1)


def _coordinate(one: Coordinate, run: Any) -> FloatArray:
    found: FloatArray = run.coordinate(one)
    return found


def _rate(one: Coordinate, run: Any) -> FloatArray:
    found: FloatArray = run.rate(one)
    return found


def _acceleration(one: Coordinate, run: Any) -> FloatArray:
    found: FloatArray = run.acceleration(one)
    return found


def _effort(name: str, run: Any) -> FloatArray:
    found: FloatArray = run.effort(name)
    return found


def _reaction(word: str, name: str, run: Any) -> FloatArray:
    return np.asarray(np.linalg.norm(getattr(run.reaction(name), word), axis=1))


def _place(axis: int, body: str, run: Any) -> FloatArray:
    found: FloatArray = run.positions(body)[:, axis]
    return found


def _energy(word: str, run: Any) -> FloatArray:
    found: FloatArray = getattr(run.energy, "total" if word == "energy" else word)
    return found


def _trace(point: Point | Frame, run: Any) -> FloatArray:
    found: FloatArray = run.trace(point)
    return found
