"""The gradient of a cost by design parameters: Σ ∂cost/∂number · ∂number/∂parameter over all numbers with formulas.

:func:`cardan.system.feeds.feeds` lists these numbers.  What it does not list, or what is not known here, is refused by
the name of the parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cardan.constraints.registry import FeatureKind
from cardan.errors import ModelError
from cardan.math import euler
from cardan.system import tables as layout
from cardan.system.drawing import Drawing
from cardan.system.feeds import Feed, feeds, slopes
from cardan.system.state import FloatArray
from cardan.system.system import System

if TYPE_CHECKING:
    from cardan.analysis.gradient import Gradient

FRAME: Final = 4  # most numbers of a feature
MASSES: Final = ("mass", "center", "inertia")


def by_parameters(gradient: Gradient, drawing: Drawing) -> dict[str, float]:
    """Derivatives by all parameters of a drawing, by name; NaN for one that only feeds what is not differentiated."""
    names = list(drawing.drawn)
    if not names or drawing.values is None:
        return {}
    found = feeds(drawing)
    bars = _Bars(gradient)
    nodes = [feed.node for feed in found] + [node for node, _ in gradient.read_by_cost]
    given = np.array([bars.of(feed) for feed in found] + [bar for _, bar in gradient.read_by_cost])
    rates = slopes(drawing.values, nodes, names) if nodes else np.zeros((0, len(names)))
    total = given @ rates
    if gradient._simulation._redundant:
        changes = [(feed, rate) for feed, rate in zip(found, rates, strict=False) if feed.field.startswith("relation ")]
        for k in range(len(names)):
            if gradient._is_locking(_change(gradient, [(feed, float(rate[k])) for feed, rate in changes])):
                total[k] = np.nan
    lost = sorted(set(drawing.contents.used()[0]) - set(nodes))
    for name in drawing.values.book.parameters_of(lost):
        total[names.index(name)] = np.nan
    return dict(zip(names, total.tolist(), strict=True))


def _change(gradient: Gradient, rates: list[tuple[Feed, float]]) -> FloatArray:
    """Of the floats of the system, from those of numbers of joints."""
    system, floats = gradient.tables()[0]
    found = np.zeros(len(floats))
    for feed, rate in rates:
        rows = [k for k, row in enumerate(system.rows) if row.constraint == feed.item]
        if not rows or not rate:
            continue
        start = int(system.starts[rows[int(feed.field.removeprefix("relation "))]])
        place = int(system.ints[start + layout.PAR]) + feed.position
        for k in range(max(0, place - FRAME + 1), min(len(floats), place + FRAME)):  # those of the same feature
            unit = np.zeros(len(floats))
            unit[k] = 1.0
            found[k] += rate * _in_body_axes(system, start, feed.position, unit, gradient.principal_axes)
    return found


class _Bars:
    """Derivatives by the numbers that are formulas."""

    def __init__(self, gradient: Gradient) -> None:
        self.gradient = gradient
        self._known: dict[Any, Any] = {}

    def _of(self, item: str) -> Any:
        if item not in self._known:
            self._known[item] = self.gradient.of(item)
        return self._known[item]

    def of(self, feed: Feed) -> float:
        """By one number."""
        word, k = feed.field, feed.position
        if word in MASSES:
            return float(np.ravel(getattr(self._of(feed.item), word))[k])
        if word == "gravity":
            return float(self.gradient.gravity[k])
        if word in ("point", "vector"):
            return float(getattr(self._of(feed.item), word)[k])
        if word == "numbers":
            return float(self.gradient.law_numbers(feed.item)[k])
        if word.startswith("angle "):
            return 0.0  # it only chooses the whole turns
        if word.startswith("relation "):
            return self._of_relation(feed.item, int(word.removeprefix("relation ")), k)
        raise ModelError(f"the derivative by a formula of {feed.item!r} ({word}) is not known yet")

    def _of_relation(self, item: str, relation: int, position: int) -> float:
        gradient = self.gradient
        for system, floats in gradient.tables():
            rows = [k for k, row in enumerate(system.rows) if row.constraint == item]
            if rows:
                start = int(system.starts[rows[relation]])
                return _in_body_axes(system, start, position, floats, gradient.principal_axes)
        raise ModelError(f"the derivative by a formula of {item!r} is not known yet")


def _in_body_axes(
    system: System, start: int, position: int, floats: FloatArray, axes: Callable[[int], FloatArray]
) -> float:
    """Of a float of a record, the derivative before it was expressed in principal axes."""
    record = system.ints[start : int(system.ints[start + layout.NEXT])].tolist()
    place = record[layout.PAR] + position
    for at in range(layout.RECORD + record[layout.SLOTS], len(record), layout.FEATURE):
        kind, body, first = record[at + layout.KIND], record[at + layout.BODY], record[at + layout.SOURCE]
        size = FeatureKind(kind).components
        if kind != layout.ANGLE and first <= place < first + size:
            own = floats[first : first + size]
            if body >= 0 and size > 1:
                own = euler.multiply(axes(body), own) if size == 4 else euler.rotate(axes(body), own)
            return float(own[place - first])
    return float(floats[place])
