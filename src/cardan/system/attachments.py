"""Shapes attached to bodies: what a body looks like, and what it weighs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.calls import explains
from cardan.errors import ModelError
from cardan.geometry import shape as geometry
from cardan.shapes.curved import Curved
from cardan.shapes.shape import Shape, combined
from cardan.system import check
from cardan.system.check import Quadruple, Triple
from cardan.system.read_only import read_only

if TYPE_CHECKING:
    from cardan.system.parts import Body, Frame


@explains()
@read_only("detach it, body.detach(face), and attach it again")
@dataclass(frozen=True, slots=True, eq=False)
class Attachment:
    """A shape in a frame of a body, made by :meth:`cardan.Body.attach`.

    ``color``: (red, green, blue, opacity), each from 0 to 1; None where the viewer chooses.  ``density`` [kg/m³]: None
    for a shape without mass.
    """

    body: Body
    shape: Shape
    frame: Frame
    color: Quadruple | None
    density: float | None

    def description(self) -> tuple[Any, ...]:
        """Everything that defines it, as values that compare."""
        return self.shape, self.frame.description(), self.color, self.density

    def __repr__(self) -> str:
        return f"<{type(self.shape).__name__} on {self.body.name!r}>"


def check_attached(what: str, face: Attachment) -> None:
    """ModelError if a face was detached from its body."""
    if face not in face.body.attachments:
        raise ModelError(
            f"{what} was given {face.shape!r:.120}, which was detached from body {face.body.name!r}; attach it again: "
            "face = body.attach(shape)"
        )


def checked_shape(given: Any, what: str) -> Shape:
    """A shape."""
    if isinstance(given, geometry.Trimmed):
        return Curved(given.surface, trim=given)
    if isinstance(given, geometry.Shape):
        return Curved(given)
    if not isinstance(given, Shape):
        raise ModelError(f"{what} was given {given!r:.120}; it must be a shape, such as cd.shapes.box(x, y, z)")
    return given


def checked_color(given: Any, what: str) -> Quadruple | None:
    """None, or (red, green, blue, opacity) of "#rrggbb", "#rrggbbaa", or three or four numbers from 0 to 1."""
    if given is None:
        return None
    valid = '"#rrggbb", or three or four numbers from 0 to 1'
    if isinstance(given, str):
        digits = given.removeprefix("#")
        try:
            values = [b / 255.0 for b in bytes.fromhex(digits)]
        except ValueError:
            values = []
        if not given.startswith("#") or len(values) not in (3, 4):
            raise ModelError(f"{what} is {given!r}; it must be {valid}")
    else:
        count = len(given) if isinstance(given, Sequence | np.ndarray) and len(given) in (3, 4) else 4
        values = list(check.numbers(given, count, what))
    if not all(0.0 <= value <= 1.0 for value in values):
        raise ModelError(f"{what} is {given!r}; it must be {valid}")
    r, g, b, a = (*values, 1.0)[:4]
    return r, g, b, a


def mass_of(attachments: Sequence[Attachment]) -> tuple[float, Triple, tuple[Triple, Triple, Triple]]:
    """Mass [kg], centre [m] and inertia [kg m²] about it, in body axes, of the shapes that have a density."""
    parts = []
    for one in attachments:
        if one.density is not None:
            f = one.frame
            axes = np.column_stack([f.x, f.y, f.z])
            parts.append((one.density, one.shape.properties().placed(np.array(f.origin), axes)))
    mass, center, inertia = combined(parts)
    return mass, tuple(center.tolist()), tuple(map(tuple, inertia.tolist()))  # type: ignore[return-value]  # triples
