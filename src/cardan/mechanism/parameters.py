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
    from cardan.system.flexible import Elastic
    from cardan.system.parts import Body


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


def make_flexible(model: Model, body: Body, modes: Any) -> Elastic:
    """See :meth:`cardan.Body.flexible`."""
    from cardan.elastic.modes import Modes
    from cardan.system.flexible import Elastic

    name = body.name
    if body.is_ground:
        raise ModelError("the ground cannot be flexible; make a body, and fix it")
    if not isinstance(modes, Modes):
        raise ModelError(f"body {name!r} was given {modes!r:.80}; it must be modes, such as cd.elastic.beam(…)")
    if model.bodies.get(name) is not body:
        raise ModelError(f"body {name!r} was removed; it cannot be flexible")
    if body.elastic is not None:
        raise ModelError(f"body {name!r} is flexible already; make another body")
    items: list[Any] = [*model.joints.values(), *model.rate_rows.values(), *model.loads.values()]
    users = [item.name for item in items if body in item.bodies and item.name != f"{name}.fixed"]
    if users:
        told = ", ".join(map(repr, users))
        raise ModelError(f"body {name!r} has {told}, made when it was rigid; make it flexible before they are made")
    if body.attachments or model.collisions:
        what = (
            "shapes attached" if body.attachments else f"collisions {next(iter(model.collisions))!r} in its mechanism"
        )
        raise ModelError(f"body {name!r} has {what}, which do not deform yet; a flexible body cannot have them")
    if body._given:
        words = " and ".join(f"{word}=" for word in body._given)
        raise ModelError(f"body {name!r} was given {words}, but its modes give mass, centre and inertia; omit them")
    with model.as_one(body, items=("parameters", "joints")):
        own = [add(model, f"{name}.{word}", 0.0, None, None, None) for word in modes.names]
        made = Elastic(name, modes, tuple(own))
        given = {"_mass": modes.mass, "_center": tuple(modes.center.tolist()), "_given": ("mass", "inertia", "center")}
        inertia = tuple([tuple(row) for row in modes.inertia.tolist()])
        model.edit_body(body, {**given, "_inertia": inertia, "_elastic": made})
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
