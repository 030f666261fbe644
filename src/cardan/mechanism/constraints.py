"""Constraints of one primitive, and of velocities alone, checked against a model and added to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from cardan import joints
from cardan.constraints.registry import Primitive
from cardan.constraints.signal import GivenRate, Signal
from cardan.errors import ModelError
from cardan.joints import Joint, single_primitive
from cardan.joints.ownership import check_end, check_formula, check_place, coordinate_of, named_body
from cardan.joints.rate_rows import knife_edge_relation
from cardan.system import check
from cardan.system.formulas import Formula
from cardan.system.parts import Body, Frame

if TYPE_CHECKING:
    from cardan.mechanism.model import Model


def constrain(model: Model, name: str, primitive: Primitive, given: dict[str, Any]) -> Joint:
    """See :meth:`cardan.Mechanism.constrain`."""
    name = model.new_name(name, "a constraint")
    kind = single_primitive.checked(primitive, f"constraint {name!r}")
    what = f"constraint {name!r} (primitive {kind.name!r})"
    names = (*(argument.name for argument in kind.arguments), *kind.parameters)
    motion = given.pop("motion", None) if "motion" not in names else None
    try:
        ends, relation = single_primitive.resolved(kind, given, partial(coordinate_of, model))
        edge = None if motion is None else single_primitive.edge_of(motion, relation)
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None
    for end in ends:
        check_place(model, what, end)
    if not relation.bodies:
        raise ModelError(f"{what} is on the ground alone; at least one feature must be on a movable body")
    on_bodies = {feature.body for feature in relation.features if isinstance(feature.body, Body)}
    if len(on_bodies) == 1 and kind.indifferent:
        raise ModelError(
            f"{what} is on body {relation.bodies[0].name!r} alone, and no motion of this body changes it; a "
            "constraint needs two different bodies, of which one may be the ground"
        )
    for value in relation.parameters:
        if isinstance(value, Formula):
            check_formula(model, what, value)
    values = list(zip(kind.parameters, relation.parameters, strict=True))
    if edge is not None and motion is not None:
        values.append(("motion", (edge.user_motion, motion.a.description(), motion.b.description())))
    made: Joint = model.keep(
        "joints", Joint(name, joints.constrain, ends, (("primitive", kind), *values), (relation,), edge=edge)
    )
    return made


def knife_edge(model: Model, name: str, frame: Frame, relative_to: Body | str | None) -> Joint:
    """See :meth:`cardan.Mechanism.knife_edge`."""
    name = model.new_name(name, "a knife edge")
    what = f"knife_edge {name!r}"
    check_end(model, what, "frame", frame)
    if relative_to is not None:
        relative_to = named_body(model, f"{what}: relative_to", relative_to)
    try:
        relation = knife_edge_relation(frame, relative_to)
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None
    if not relation.bodies:
        raise ModelError(f"{what} is on the ground, which does not move; the frame must be on a movable body")
    other = None if relative_to is None or relative_to.is_ground else relative_to.frame()
    ends = (frame,) if other is None else (other, frame)
    return model.keep("rate_rows", Joint(name, joints.knife_edge, ends, (), (relation,)))


def constrain_rates(
    model: Model, name: str, primitive: Primitive, value: Callable[[Any], Any] | float | None, given: dict[str, Any]
) -> Joint:
    """See :meth:`cardan.Mechanism.constrain_rates`."""
    name = model.new_name(name, "a rate row")
    kind = single_primitive.checked(primitive, f"rate row {name!r}", of_rates=True)
    what = f"rate row {name!r} (primitive {kind.name!r})"
    signal = None
    if value is not None:
        if kind.rows != 1:
            raise ModelError(f"{what} was given a value, but has {kind.rows} rows; a value belongs to one row")
        if not callable(value) and not isinstance(value, Formula):
            value = check.number(value, f"{what}: the value, if not a function of time,")
        signal = GivenRate(Signal.reading(name, value, often=bool(model.book.names)))
        signal.signal.some_value()
    try:
        ends, relation = single_primitive.resolved(kind, given, partial(coordinate_of, model), signal)
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None
    for end in ends:
        check_place(model, what, end)
    if not relation.bodies:
        raise ModelError(f"{what} is on the ground alone; at least one feature must be on a movable body")
    for one in (*relation.parameters, *relation.template.used):
        if isinstance(one, Formula):
            check_formula(model, what, one)
    values: list[tuple[str, Any]] = list(zip(kind.parameters, relation.parameters, strict=False))
    if signal is not None:
        values.append(("value", signal))
    made = Joint(name, joints.constrain_rates, ends, (("primitive", kind), *values), (relation,))
    model.keep("rate_rows", made)
    return made
