"""Joints, coordinates and bodies that a result is asked for must be of the mechanism that it was computed for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint
from cardan.system.parts import Body, Frame, Point

if TYPE_CHECKING:
    from cardan.system.drawing import Drawing
    from cardan.system.state import State
    from cardan.system.system import System


def check_own(what: str, item: Any, source: tuple[Any, int] | None) -> None:
    """ModelError if a joint, or a coordinate of one, is of another mechanism and differs from the one of that name;
    the same for a body, and for the body of a point or frame.

    what: the method that is called.  source: the mechanism of the result, and how often it had been
    edited; None if they are not known, as after pickling.  Equal joints of copies are accepted, and so are names.
    """
    if source is None or not isinstance(item, Joint | Coordinate | Body | Point | Frame):
        return
    mechanism = source[0]
    if isinstance(item, Body | Point | Frame):
        body = item if isinstance(item, Body) else item.body
        if body.owner is mechanism or body.is_ground:
            return
        same = mechanism.bodies.get(body.name)
        if same is None or same.description() != body.description():
            raise _foreign(what, item, body.owner, mechanism, body.name)
        return
    name = item.name if isinstance(item, Joint) else item.joint
    other = next((body.owner for body in item.bodies if body.owner is not mechanism), None)
    if other is None or not name:
        return
    own = mechanism.joints.get(name, mechanism.rate_rows.get(name))
    if own is not None and isinstance(item, Coordinate):
        own = own.of(item.name) if item.name in own.kind.coordinates else None
    if own is None or own.description() != item.description():
        raise _foreign(what, item, other, mechanism, name)


def check_own_state(what: str, state: State, drawing: Drawing) -> None:
    """ModelError if a state was computed for another mechanism, whose joints differ; those of equal copies are taken.

    What is not known of a state, as after pickling, is not compared.
    """
    there, here = getattr(state._index, "contents", None), drawing.contents
    if there is None or there.ground.owner is here.ground.owner:
        return
    for name in dict.fromkeys((*here.joints, *there.joints)):
        own, other = here.joints.get(name), there.joints.get(name)
        if own is None or other is None or own.description() != other.description():
            raise ModelError(
                f"{what} was given a state of another mechanism ({there.name!r}), whose joint {name!r} differs; give a "
                f"state of {here.name!r}, such as the result of its assemble(state)"
            )


def _foreign(what: str, item: Any, other: Any, mechanism: Any, name: str) -> ModelError:
    return ModelError(
        f"{what} was given {item!r} of another mechanism ({other.name!r}); use that of {mechanism.name!r}, or the "
        f"name {name!r}"
    )


def chosen_coordinate(
    what: str, item: Any, of: str | None, source: tuple[Any, int] | None, system: System
) -> Coordinate:
    """The coordinate that a result is asked for: itself, or that of a joint, which may be given by its name.

    what: the method that is called.  of: which of a joint that has several.  source: as in :func:`check_own`.
    system: of the result.  It has the joints of that time, which may have been replaced since.
    """
    if isinstance(item, str):
        item = system.index.joint(item)
    else:
        check_own(what, item, source)
    if isinstance(item, Joint):
        return item.chosen(of)
    if not isinstance(item, Coordinate):
        raise ModelError(f"{what} was given {item!r}; it must be a joint or a coordinate, such as 'A' or m['A']")
    if of not in (None, item.name):
        raise ModelError(f"{item!r} was given with of={of!r}; omit of=, since this is a coordinate already")
    return item
