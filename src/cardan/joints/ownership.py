"""Checks that bodies, places, joints and coordinates belong to a mechanism, and what users mean by them.

``of``: the model of a mechanism, or one of its drawings; both have the same names (:class:`Items`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from cardan.errors import ModelError, UnknownNameError
from cardan.joints.coordinates import Coordinate
from cardan.joints.registry import Joint
from cardan.system import check
from cardan.system.formulas import Book, Formula
from cardan.system.parts import Body, Direction, Frame, Point

Place = Coordinate | Frame | Point | Direction


class Items(Protocol):
    """The items of a mechanism, by name."""

    @property
    def name(self) -> str: ...
    @property
    def ground(self) -> Body: ...
    @property
    def bodies(self) -> Mapping[str, Body]: ...
    @property
    def joints(self) -> Mapping[str, Joint]: ...
    @property
    def rate_rows(self) -> Mapping[str, Joint]: ...
    @property
    def book(self) -> Book: ...


def check_body(of: Items, what: str, body: Body) -> None:
    """ModelError if a body is of another mechanism, or was removed."""
    if body is of.ground or of.bodies.get(body.name) is body:
        return
    if body.owner.ground is not of.ground:
        other = getattr(body.owner, "name", "?")
        raise ModelError(
            f"{what} was given body {body.name!r} of another mechanism ({other!r}), or a frame, point or face on "
            f"it; use the {body.name!r} of {of.name!r}, m[{body.name!r}]"
        )
    raise ModelError(f"{what} was given body {body.name!r}, which was removed, or a frame, point or face on it")


def check_end(of: Items, what: str, takes: str, end: Any) -> None:
    """ModelError if an end is not a frame, or not a point or frame, of this mechanism."""
    frame_only = takes == "frame"
    valid = "a frame (body.frame(…))" if frame_only else "a point or frame (body.point(…), body.frame(…))"
    if not isinstance(end, Frame if frame_only else Frame | Point):
        raise ModelError(f"{what} was given {end!r}; it must be {valid}")
    check_place(of, what, end)


def check_place(of: Items, what: str, place: Place) -> None:
    """ModelError if a body of it is of another mechanism or was removed, or a parameter of its formulas was."""
    for body in place.bodies if isinstance(place, Coordinate) else (place.body,):
        check_body(of, what, body)
    book = of.book
    if book.is_any_removed and any([book.is_removed(one.index) for one in formulas_of(place)]):
        name = "vector" if isinstance(place, Direction) else type(place).__name__.lower()
        told = repr(place) if isinstance(place, Coordinate) else f"a {name} on body {place.body.name!r}"
        raise ModelError(
            f"{what} was given {told} with a formula whose parameter was removed; make the {name} again, with "
            "other parameters or with numbers"
        )


def check_formula(of: Items, what: str, formula: Formula) -> None:
    """ModelError where a formula is of another mechanism, or where a parameter of it was removed."""
    if formula.book.graph is not of.book.graph:
        raise ModelError(f"{what} was given {formula!r} of another mechanism; use a parameter of {of.name!r}")
    if of.book.is_removed(formula.index):
        raise ModelError(f"{what} was given {formula!r}, whose parameter was removed")


def check_own(of: Items, what: str, item: Any) -> None:
    """ModelError if a body, joint or coordinate is of another mechanism, or was removed; names are not checked."""
    if isinstance(item, Body):
        check_body(of, what, item)
    elif isinstance(item, Joint) and of.joints.get(item.name, of.rate_rows.get(item.name)) is not item:
        raise ModelError(f"{what} was given {item!r}, which is not, or no longer, of mechanism {of.name!r}")
    elif isinstance(item, Coordinate):
        check_place(of, what, item)
        if item.joint and not _is_current(of, item):
            raise ModelError(f"{what} was given {item!r}, but its joint was removed; take that of the new joint")


def check_start(of: Items, what: str, start: Any) -> None:
    """ModelError if poses are given by bodies of another mechanism; start: not a state."""
    if isinstance(start, Mapping):
        for body in start:
            check_own(of, what, body)


def named_joint(of: Items, key: str) -> Joint | Coordinate:
    """A joint by its name, or one of its coordinates by "joint.coordinate"."""
    if key in of.joints:
        return of.joints[key]
    name, _, word = key.rpartition(".")
    if name in of.joints:
        return of.joints[name].of(word)
    if key in of.bodies:
        raise ModelError(f"{key!r} was given, which is a body; it must be a joint, or a coordinate of one")
    raise check.unknown(key, f"joint of mechanism {of.name!r}", of.joints)


def named_body(of: Items, what: str, given: Any) -> Body:
    """A body of this mechanism, which may be given by its name."""
    if isinstance(given, str):
        if given == of.ground.name:
            return of.ground
        if given not in of.bodies:
            raise check.unknown(given, f"body of mechanism {of.name!r}", (*of.bodies, of.ground.name))
        return of.bodies[given]
    if not isinstance(given, Body):
        raise ModelError(f"{what} was given {given!r}; it must be a body, such as m[name]")
    check_body(of, what, given)
    return given


def coordinate_of(of: Items, given: Any, kind: str) -> Coordinate:
    """The coordinate meant by a joint that has one of that kind ("" for any), by its name, or by a coordinate."""
    if isinstance(given, str):
        given = named_joint(of, given)
    if isinstance(given, Coordinate):
        if kind and given.kind != kind:
            raise ModelError(f"{given!r} was given where {check.with_article(kind)} is needed")
        if given.joint and not _is_current(of, given):
            raise ModelError(f"{given!r} was given, but its joint was removed; take that of the new joint")
        return given
    if not isinstance(given, Joint):
        raise ModelError(f"{given!r} was given; it must be a joint, or a coordinate made by cd.coordinate(…)")
    _check_joint(of, given)
    every = [given.of(word) for word in given.kind.coordinates]
    found = [coordinate for coordinate in every if not kind or coordinate.kind == kind]
    if len(found) != 1:
        words = ", ".join(repr(c.name) for c in found) if found else "none"
        wanted = check.with_article(kind) if kind else "a coordinate"
        way = "choose one with joint.of(name)" if found else "take one with cd.coordinate(frame_a, frame_b, of)"
        raise ModelError(f"joint {given.name!r} ({given.kind.name}) was given for {wanted}; it has {words}: {way}")
    return found[0]


def chosen_coordinate(of: Items, what: str, given: Any, word: str | None) -> Coordinate:
    """The coordinate of a joint by name, or its only one."""
    try:
        if isinstance(given, str):
            given = named_joint(of, given)
        if word is not None and isinstance(given, Joint):
            _check_joint(of, given)
            return given.of(word)
        if word is not None and isinstance(given, Coordinate) and given.name != word:
            raise ModelError(f"{given!r} was given with of={word!r}; omit of=, since this is a coordinate already")
        return coordinate_of(of, given, "")
    except UnknownNameError as error:
        raise UnknownNameError(f"{what}: {error}") from None
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None


def _is_current(of: Items, coordinate: Coordinate) -> bool:
    """Whether a coordinate's joint still exists; those of other mechanisms are refused later, by their bodies."""
    if coordinate.a.body.owner.ground is not of.ground:
        return True
    joint = of.joints.get(coordinate.joint)
    if joint is None or coordinate.name not in joint.kind.coordinates:
        return False
    found = joint.of(coordinate.name)
    return found.features == coordinate.features and found.counted is coordinate.counted


def _check_joint(of: Items, joint: Joint) -> None:
    if of.joints.get(joint.name) is not joint:
        raise ModelError(f"{joint!r} is not, or no longer, a joint of mechanism {of.name!r}")


def formulas_of(place: Place | Body) -> list[Formula]:
    """The formulas that a place was given, also those of axes that no equation reads."""
    if isinstance(place, Body):
        return []
    if isinstance(place, Coordinate):
        return [*formulas_of(place.a), *formulas_of(place.b)]
    if isinstance(place, Point):
        values: tuple[Any, ...] = place.position
    elif isinstance(place, Direction):
        values = place.given or ()
    else:
        values = (*place.origin, *(place.given_z or ()), *(place.given_x or ()))
    return [value for value in values if isinstance(value, Formula)]
