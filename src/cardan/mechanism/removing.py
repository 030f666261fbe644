"""Removing items of a model, with what is attached to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cardan.dynamics.loads import Load
from cardan.errors import ModelError
from cardan.joints import Joint
from cardan.joints.collisions import Collisions
from cardan.joints.making import label
from cardan.joints.ownership import formulas_of
from cardan.system import check
from cardan.system.drawing import nodes_of
from cardan.system.formulas import Parameter, formulas_in
from cardan.system.parts import GROUND, Body

if TYPE_CHECKING:
    from cardan.mechanism.model import Model

HELD = ("bodies", "joints", "inertias", "frictions", "loads", "rate_rows", "parameters", "collisions")


def remove(model: Model, name: str | Body | Joint | Load | Parameter | Collisions, joints: bool) -> None:
    """See :meth:`cardan.Mechanism.remove`."""
    if not isinstance(name, str | Body | Joint | Load | Parameter | Collisions):
        raise ModelError(
            f"remove was given {name!r}; it must be a body, a joint, a load, a parameter, or the name of one"
        )
    key = name if isinstance(name, str) else name.name
    mine = model.ground if key == GROUND else model.item(key)
    if not isinstance(name, str) and mine is not name:
        raise ModelError(f"{name!r} is of another mechanism, not of {model.name!r}; remove it there, or by name")
    if key == GROUND:
        raise ModelError("the ground cannot be removed")
    if mine is None:
        raise check.unknown(key, "body, joint, load or parameter", model)
    with model.as_one(items=()):
        users, text = _users(model, key, mine)
        if isinstance(mine, Parameter):
            _check_unused(model, key)
        if users and not joints:
            raise ModelError(f"{text}; remove them first, or pass joints=True")
        gone = {key, *users}
        if isinstance(mine, Joint) and not users:
            gone |= {f"{key}.{part}" for part in mine.kind.parts}
        made: list[Joint | Load] = [*model.joints.values(), *model.loads.values()]
        labels = {label(item.kind, item.name) for item in made if item.name in gone}
        model.book.forget(labels)
        if isinstance(mine, Body) and mine.elastic is not None:
            gone |= {one.name for one in mine.elastic.coordinates}
        for word in gone & set(model.parameters):
            model.book.remove(word)
        held = {word: {k: item for k, item in getattr(model, word).items() if k not in gone} for word in HELD}
        if isinstance(mine, Body):
            left = {k: one.without(key) for k, one in held["collisions"].items()}
            held["collisions"] = {k: one for k, one in left.items() if one is not None}
        model.assign(**held)


def _users(model: Model, key: str, mine: Any) -> tuple[list[str], str]:
    """Names of what is attached to an item, and a sentence that says so."""
    others: list[Joint | Load] = [*model.joints.values(), *model.rate_rows.values(), *model.loads.values()]
    if isinstance(mine, Joint):
        if mine.kind.implied:
            raise ModelError(f"{key!r} is the rolling of contact {key.removesuffix('.roll')!r}; remove the contact")
        users = [item.name for item in others if key in item.joints]
        return users, f"joint {key!r} has a coordinate that {', '.join(map(repr, users))} act on"
    if isinstance(mine, Collisions):
        return [], ""
    if isinstance(mine, Parameter):
        for body in model.bodies.values():
            if body.elastic is not None and mine in body.elastic.coordinates:
                raise ModelError(f"{key!r} is an elastic coordinate of body {body.name!r}; remove the body")
        users = [item.name for item in others if key in model.book.parameters_of(_nodes_of(item))]
        return users, f"parameter {key!r} is used by {', '.join(map(repr, users))}"
    users = [item.name for item in others if mine in item.bodies]
    held = (("joints", model.joints), ("rate rows", model.rate_rows), ("loads", model.loads))
    attached = [(word, [user for user in users if user in items]) for word, items in held]
    parts = [f"the {word} {', '.join(map(repr, names))}" for word, names in attached if names]
    return users, f"body {key!r} has {' and '.join(parts)}"


def _check_unused(model: Model, key: str) -> None:
    """ModelError if a parameter gives a number of a body, of the gravity, or the inertia of a joint."""
    drawing = model.drawing
    items = {user: nodes for user, nodes in drawing.contents.users() if user.startswith(("body ", "the inertia"))}
    items["the gravity"] = [formula.index for _, formula in formulas_in(drawing.given_gravity)]
    users = [user for user, nodes in items.items() if key in model.book.parameters_of(nodes)]
    if users:
        raise ModelError(f"parameter {key!r} is used by {', '.join(users)}; give it a number first, or another formula")


def _nodes_of(item: Joint | Load) -> list[int]:
    """Nodes of the formulas of a joint or load, also those of axes that no equation reads."""
    return [*nodes_of(item), *[formula.index for end in item.ends for formula in formulas_of(end)]]
