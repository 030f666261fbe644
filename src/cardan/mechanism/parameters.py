"""Design parameters of a model: adding one, new values, and adopting a state as the drawing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cardan.errors import ModelError
from cardan.system import check
from cardan.system.drawing import check_bounds
from cardan.system.formulas import Parameter
from cardan.system.state import State

if TYPE_CHECKING:
    from cardan.mechanism.model import Model


def add(model: Model, name: str, value: Any, lower: Any, upper: Any, period: Any) -> Parameter:
    """See :meth:`cardan.Mechanism.parameter`."""
    name = model.new_name(name, "a parameter")
    start = check.number(value, f"the value of parameter {name!r}")
    low = -math.inf if lower is None else check.number(lower, f"lower of parameter {name!r}")
    high = math.inf if upper is None else check.number(upper, f"upper of parameter {name!r}")
    if not low < high:
        raise ModelError(f"lower of parameter {name!r} is {low} and upper is {high}; lower must be below upper")
    check_bounds(name, start, low, high)
    own = 0.0 if period is None else check.positive(period, f"period of parameter {name!r}")
    if own and (lower is not None or upper is not None):
        raise ModelError(f"parameter {name!r} was given bounds and a period; give one of them")
    with model.as_one(items=("parameters",)):
        made = Parameter(model, name, model.book, model.book.add(name, start, (low, high), own))
        model.keep("parameters", made)
    return made


def set_value(model: Model, parameter: Parameter, value: Any) -> None:
    """Change a drawn value; the packed system is measured again when it is next needed."""
    name = parameter.name
    if model.parameters.get(name) is not parameter:
        raise ModelError(f"parameter {name!r} was removed from mechanism {model.name!r}; it has no value to set")
    number = check.number(value, f"the value of parameter {name!r}")
    check_bounds(name, number, parameter.lower, parameter.upper)
    _redraw(model, {**model.drawn, name: number})


def _redraw(model: Model, drawn: dict[str, float]) -> None:
    drawing, book = model.drawing, model.book
    values = book.evaluate(drawn)
    book.check(values, *drawing.used(), drawing.contents.user_of)
    with model.as_one(items=()):
        model._drawn = values, drawn
        book.values = values


def adopt(model: Model, state: Any) -> None:
    """See :meth:`cardan.Mechanism.adopt`."""
    if not isinstance(state, State):
        raise ModelError(f"adopt was given {state!r}; it must be a State, such as result.state")
    for body in model.bodies.values():
        if body.name not in state:
            raise ModelError(f"adopt was given a state without body {body.name!r}; it must be of this mechanism")
    drawing = model.drawing
    values = {name: state.variables.get(name, value) for name, value in drawing.drawn.items()}
    drawing.contents.check_bounds(values)
    poses = [(body, state[body]) for body in model.bodies.values()]
    with model.as_one(*model.bodies.values(), items=("joints",)):
        if values != drawing.drawn:
            _redraw(model, values)
        for body, pose in poses:
            body.position = pose.position.tolist()
            body.orientation = pose.quaternion.tolist()
