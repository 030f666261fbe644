"""Joints and coordinates that a result is asked for must be of the mechanism that it was computed for."""

from __future__ import annotations

from typing import Any

from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint


def check_own(what: str, item: Any, source: tuple[Any, int] | None) -> None:
    """ModelError if a joint, or a coordinate of one, is of another mechanism and differs from the one of that name.

    what: the method that is called.  source: the mechanism of the result, and how often it had been
    edited; None if they are not known, as after pickling.  Equal joints of copies are accepted, and so are names.
    """
    if source is None or not isinstance(item, Joint | Coordinate):
        return
    mechanism, name = source[0], item.name if isinstance(item, Joint) else item.joint
    other = next((body.owner for body in item.bodies if body.owner is not mechanism), None)
    if other is None or not name:
        return
    own = mechanism.joints.get(name, mechanism.rate_rows.get(name))
    if own is not None and isinstance(item, Coordinate):
        own = own.of(item.name) if item.name in own.kind.coordinates else None
    if own is None or own.description() != item.description():
        raise ModelError(
            f"{what} was given {item!r} of another mechanism ({other.name!r}); use that of {mechanism.name!r}, or the "
            f"name {name!r}"
        )


def chosen_coordinate(item: Any, of: str | None, source: tuple[Any, int] | None) -> Coordinate:
    """The coordinate that a result is asked for: itself, or that of a joint, which may be given by its name.

    of: which of a joint that has several.  source: as in :func:`check_own`.
    """
    if isinstance(item, str) and source is not None:
        item = source[0]._model.contents.by_key(item)  # "joint", or "joint.coordinate"
    check_own("coordinate", item, source)
    if isinstance(item, Joint):
        words = tuple(item.kind.coordinates)
        word: Any = words[0] if of is None and len(words) == 1 else of
        item = item.of(word)  # None is refused with the names of the coordinates
    if not isinstance(item, Coordinate):
        raise ModelError(f"coordinate was given {item!r}; it must be a joint or a coordinate, such as m['A']")
    return item
