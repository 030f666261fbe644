"""Units of a model file: its numbers are lengths, angles and masses in the units of its header; all else is in SI.

A conversion multiplies decimals exactly and rounds once, so that a saved number is read back bitwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final

from cardan.errors import ModelError
from cardan.system import check

_PI: Final = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
UNITS: Final[Mapping[str, Mapping[str, Decimal]]] = {
    "length": {
        "m": Decimal(1),
        "cm": Decimal("0.01"),
        "mm": Decimal("0.001"),
        "um": Decimal("0.000001"),
        "inch": Decimal("0.0254"),
    },
    "angle": {"rad": Decimal(1), "deg": _PI / 180, "turn": 2 * _PI},
    "mass": {"kg": Decimal(1), "g": Decimal("0.001"), "t": Decimal(1000)},
}
# Converts a number of a quantity ("length", "angle", or "": none) to other units.
Conversion = Callable[[Any, str], Any]
SI: Final[Mapping[str, str]] = {"length": "m", "angle": "rad", "mass": "kg"}
_EXACT: Final = Context(prec=60)


class Exact(Decimal):
    """A decimal number of a file with all its digits; messages show it as it is written in the file."""

    __slots__ = ()
    __repr__ = Decimal.__str__


class Raw(str):
    """A number as it is written in a file."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Units:
    """The units of the numbers in a file."""

    length: str = "m"
    angle: str = "rad"
    mass: str = "kg"

    @classmethod
    def checked(cls, given: Mapping[str, Any]) -> Units:
        """ModelError if a quantity or a unit is unknown."""
        for quantity, unit in given.items():
            if quantity not in UNITS:
                raise check.unknown(quantity, "quantity with a unit", UNITS)
            if not isinstance(unit, str) or unit not in UNITS[quantity]:
                raise check.unknown(unit, f"unit of {quantity}", UNITS[quantity])
        made = cls(**{**SI, **given})
        return SI_UNITS if made == SI_UNITS else made

    @property
    def are_si(self) -> bool:
        """Whether all units are those of SI."""
        return self is SI_UNITS or self == SI_UNITS

    def as_dict(self) -> dict[str, str]:
        """Units by quantity, as in the header of a file."""
        return {"length": self.length, "angle": self.angle, "mass": self.mass}

    def factor(self, quantity: str) -> Decimal:
        """SI units in one unit of the file."""
        return UNITS[quantity][getattr(self, quantity)]

    def to_si(self, number: Any, quantity: str) -> float:
        """A number of a file in SI.  Pass a decimal or an integer: a float is rounded twice."""
        if quantity not in UNITS or (unit := getattr(self, quantity)) == SI[quantity]:
            return float(number)
        return float(_EXACT.multiply(number if type(number) is Exact else Decimal(number), UNITS[quantity][unit]))

    def from_si(self, value: float, quantity: str) -> float | Raw:
        """The shortest decimal that is read as the value."""
        if quantity not in UNITS or getattr(self, quantity) == SI[quantity] or not math.isfinite(value) or value == 0.0:
            return value
        factor = self.factor(quantity)
        exact = _EXACT.divide(Decimal(value), factor)
        for context in _ROUNDINGS:  # any shorter decimal that is read as the value is what 15 digits are rounded to
            rounded = context.create_decimal(exact)
            if float(_EXACT.multiply(rounded, factor)) == value:
                return Raw(_decimal(rounded.normalize(_EXACT)))
        raise ModelError(f"{value!r} cannot be written in {getattr(self, quantity)}; save in SI units")


SI_UNITS: Final = Units()
_ROUNDINGS: Final = tuple(Context(prec=digits) for digits in range(15, 26))


def quantity_of(coordinate: Any) -> str:
    """What a coordinate measures: "length" or "angle"."""
    return "length" if coordinate.unit == "m" else "angle"


def _decimal(number: Decimal) -> str:
    """As TOML and JSON write a float."""
    text = f"{number:f}" if -7 < number.adjusted() < 17 else f"{number:e}"
    return text if any(c in text for c in ".e") else f"{text}.0"
