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

    ``variables``: of an expression, if it may be a function; ``splined``: whether it may be a spline.
    ``sort``: "number" (or numbers in lists), "function", "flag", "word", "count", or a form of values of shapes.
    """

    unit: str
    variables: tuple[str, ...] = ()
    splined: bool = False
    sort: str = "number"


Length = Annotated[Any, Quantity("length")]
Angle = Annotated[Any, Quantity("angle")]
OfCoordinate = Annotated[Any, Quantity("coordinate")]
InSI = Annotated[Any, Quantity("")]
FunctionOfTime = Annotated[Any, Quantity("", ("t",), False, "function")]
FunctionOfMotion = Annotated[Any, Quantity("", ("t", "q", "rate"), False, "function")]
CoordinateOfTime = Annotated[Any, Quantity("coordinate", ("t",), True, "function")]
CoordinateOfOther = Annotated[Any, Quantity("coordinate", ("q",), True, "function")]
Edges = Annotated[tuple[float, float, float], Quantity("length", sort="edges")]
Outline = Annotated[Any, Quantity("length", sort="outline")]
Outlines = Annotated[Any, Quantity("length", sort="outlines")]
Points = Annotated[Any, Quantity("length", sort="points")]
Corners = Annotated[Any, Quantity("", sort="corners")]

PLAIN = {"bool": Quantity("", sort="flag"), "int": Quantity("", sort="count"), "str": Quantity("", sort="word")}


def annotated(function: Callable[..., Any], parameter: inspect.Parameter) -> Quantity:
    """The quantity that an argument of a function or class is annotated with."""
    hint = parameter.annotation
    if str(hint).startswith("Literal"):
        return PLAIN["str"]
    if hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, str):  # the name of one of the above, as its module has imported it
        hint = vars(sys.modules[function.__module__]).get(hint)
    found = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Quantity)]
    if not found:
        raise TypeError(f"the argument {parameter.name!r} of {function.__name__} needs a quantity, such as Length")
    return found[0]
