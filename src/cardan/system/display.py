"""Units of the texts that users read.  Arrays and arguments are always in SI units and radians."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from cardan.calls import explains
from cardan.system import check

LENGTHS: Final = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "inch": 0.0254, "ft": 0.3048}
ANGLES: Final = {"rad": 1.0, "deg": math.pi / 180.0}
mm, inch = LENGTHS["mm"], LENGTHS["inch"]
deg = ANGLES["deg"]
_SIGNS: Final = {"deg": "°", "um": " µm"}


@explains(constructor=True)
@dataclass(frozen=True, slots=True)
class Display:
    """Units of lengths and angles in texts: ``m.display = cd.Display(length="inch", angle="rad")``."""

    length: str = "mm"
    angle: str = "deg"

    def __post_init__(self) -> None:
        check.choice(self.length, "the unit of length of a display", LENGTHS)
        check.choice(self.angle, "the unit of angle of a display", ANGLES)

    def text(self, value: float, unit: str, digits: int = 4) -> str:
        """A value in "m" or "rad", or their rates and powers as they are, with the unit."""
        if unit not in ("m", "rad"):
            return f"{value:.{digits}g} {unit}"
        chosen = self.length if unit == "m" else self.angle
        factor = LENGTHS[chosen] if unit == "m" else ANGLES[chosen]
        return f"{value / factor:.{digits}g}{_SIGNS.get(chosen, f' {chosen}')}"


DEFAULT: Final = Display()
