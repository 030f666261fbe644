"""What arguments of joints, loads and shapes measure: units, schema and checks of files follow from it.

An annotation says it: ``pitch: Length``, ``rest: OfCoordinate``, ``f: FunctionOfTime``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple


class Quantity(NamedTuple):
    """``unit``: "length" or "angle", in the units of a file; "coordinate": one of them, as the coordinate is that the
    item is on; "": in SI, or a pure number.

    ``variables``: of an expression, if it may be a function.  ``splined``: whether it may be a spline.  ``form``: of a
    value of a shape, see :mod:`cardan.shapes.shape`.
    """

    unit: str
    variables: tuple[str, ...] = ()
    splined: bool = False
    form: str = ""


Length = Annotated[Any, Quantity("length")]
Angle = Annotated[Any, Quantity("angle")]
OfCoordinate = Annotated[Any, Quantity("coordinate")]
InSI = Annotated[Any, Quantity("")]
FunctionOfTime = Annotated[Any, Quantity("", ("t",))]
FunctionOfMotion = Annotated[Any, Quantity("", ("t", "q", "rate"))]
CoordinateOfTime = Annotated[Any, Quantity("coordinate", ("t",), splined=True)]
CoordinateOfOther = Annotated[Any, Quantity("coordinate", ("q",), splined=True)]


def annotated(function: Callable[..., Any], parameter: inspect.Parameter) -> Quantity | None:
    """The quantity that an argument of a function or class is annotated with."""
    hint = parameter.annotation
    if isinstance(hint, str):
        hint = eval(hint, vars(sys.modules[function.__module__]))
    found = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Quantity)]
    return found[0] if found else None
