"""Making a joint of a kind from what a user gave: its ends checked, its relations built, nothing kept."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, Protocol

from cardan.calls import problem_of, with_help
from cardan.constraints.spline import Spline, as_function
from cardan.errors import ArgumentError, ModelError
from cardan.joints import couplings, ownership, placing
from cardan.joints.coordinates import Coordinate, make_counted_angle
from cardan.joints.friction import KINDS
from cardan.joints.ownership import Items
from cardan.joints.registry import Joint, JointKind, Role
from cardan.system.formulas import Formula
from cardan.system.parts import Body, CountedAngle, Frame, Point
from cardan.system.relations import Relation

OF_ONE = (Role.DRIVER, Role.LIMIT)  # roles of constraints of one coordinate, which may be chosen by of=


class Kind(Protocol):
    """A kind of joint or load."""

    @property
    def name(self) -> str: ...


def label(kind: Kind, name: str) -> str:
    """The kind and the name of a joint or load: in errors, and as the user of conditions of formulas."""
    return f"{kind.name} {name!r}"


def make(of: Items, kind: JointKind[Any], name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Joint:
    """A joint of that kind between items of a mechanism."""
    what = label(kind, name)
    try:
        ends, rest, named = _ends(of, what, kind, args, options)
        if "function" in kind.options:
            rest = tuple(as_function(value) for value in rest)
            named = {word: as_function(value) if word == "function" else value for word, value in named.items()}
        angles: tuple[tuple[str, CountedAngle], ...] = ()
        for word, rule in kind.coordinates.items():
            sort, features = rule(*ends)
            if sort == "angle":
                counted = make_counted_angle(_angle_key(of, kind, name, word), features)
                angles = (*angles, (word, counted))
        extra: dict[str, Any] = {}
        if kind.own:
            bare = Joint(name, kind, ends, (), (), angles)
            extra["own"] = {w: bare.of(w) for w in kind.coordinates} if kind.coordinates else name
        for value in (*rest, *named.values()):
            if isinstance(value, Formula):
                ownership.check_formula(of, what, value)
        with of.book.making(what):
            relations = tuple(kind.build(*ends, *rest, **named, **extra))
        for relation in relations:
            for formula in relation.template.used:
                ownership.check_formula(of, what, formula)
    except ModelError as error:
        text = str(error)
        kind_of_error = ArgumentError if isinstance(error, ArgumentError) else ModelError
        raise kind_of_error(text if text.startswith(what) else f"{what}: {text}") from None
    except TypeError as error:
        problem = problem_of(signature_of(kind), args, options) or str(error)
        raise ArgumentError(f"{what}: {with_help(problem, f'Mechanism.{kind.name}')}") from None
    values: tuple[tuple[str, Any], ...] = ()
    if rest or named:
        values = _recorded_values((*zip(kind.options, rest, strict=False), *named.items()), relations[0])
    return Joint(name, kind, ends, values, relations, angles, kind.edge(ends, relations, angles, rest, named))


def signature_of(kind: JointKind[Any]) -> inspect.Signature:
    """The arguments of the method that adds a joint of that kind, those after its name."""
    found = [p for p in inspect.signature(kind.build).parameters.values() if p.name != "own"]
    words = ("of",) if kind.role in OF_ONE else placing.WORDS if placing.takes_place(kind) else ()
    words = ("friction", *words) if kind.name in KINDS.values() else words
    found += [inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY, default=None) for word in words]
    return inspect.Signature(found)


def range_of(of: Items, joint: Joint) -> Joint | None:
    """The limit that keeps the first coordinate of a coupling within the points of its spline; None for all others."""
    spline = dict(joint.parameters).get("function") if "range" in joint.kind.parts else None
    if not isinstance(spline, Spline) or spline.is_periodic:
        return None
    lower, upper = spline.range
    return make(of, couplings.limit, f"{joint.name}.range", joint.ends[:1], {"lower": lower, "upper": upper})


def _ends(
    of: Items, what: str, kind: JointKind[Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], tuple[Any, ...], dict[str, Any]]:
    """The ends of a joint, checked, and what is left of its arguments."""
    count = len(kind.takes)
    named = dict(options)
    args = _placed(of, kind, args, named)
    ends = [*args[:count], *[named.pop(word) for word in kind.ends[len(args) :] if word in named]]
    if len(ends) < count:
        missing = ", ".join(map(repr, kind.ends[len(ends) :]))
        problem = problem_of(signature_of(kind), args, options)
        if problem.startswith("no argument"):
            raise ArgumentError(f"{what}: {with_help(problem, f'Mechanism.{kind.name}')}")
        raise ArgumentError(f"{what} was not given {missing}; see help(Mechanism.{kind.name})")
    for k, takes in enumerate(kind.takes):
        if takes in ("frame", "point"):
            ownership.check_end(of, what, takes, ends[k])
        else:
            if kind.role in OF_ONE:
                ends[k] = ownership.chosen_coordinate(of, what, ends[k], named.pop("of", None))
            else:
                ends[k] = ownership.coordinate_of(of, ends[k], takes)
            ownership.check_place(of, what, ends[k])
    if count == 2 and isinstance(ends[0], Frame | Point) and ends[0].body is ends[1].body:
        body = ends[0].body.name
        raise ModelError(f"{what} connects body {body!r} to itself; a joint needs two different bodies")
    if count == 2 and isinstance(ends[0], Coordinate) and ends[0].features == ends[1].features:
        raise ModelError(f"{what} couples {ends[0]!r} with itself; a coupling needs two different coordinates")
    return tuple(ends), args[count:], named


def _placed(of: Items, kind: JointKind[Any], args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments, with frames in place of bodies if the joint is placed in the drawing: at=, axis=, x=."""
    ends = (*args[:2], *[named[word] for word in kind.ends[len(args) : 2] if word in named])
    if kind.is_between_places and any([isinstance(end, str) for end in ends]):
        ends = tuple([ownership.named_body(of, "it", end) if isinstance(end, str) else end for end in ends])
        for word, end in zip(kind.ends[len(args) : 2], ends[len(args) :], strict=False):
            named[word] = end
        args = (*ends[: len(args)], *args[2:])
    if not placing.is_placed(kind, ends, named):
        return args
    for end in ends:
        if isinstance(end, Body):
            ownership.check_body(of, "it", end)
    if len(ends) < 2:
        return args
    for word in kind.ends[len(args) : 2]:
        del named[word]
    return (*placing.frames(kind, ends[0], ends[1], named), *args[2:])


def _angle_key(of: Items, kind: JointKind[Any], name: str, word: str) -> str:
    """Key of an angle in states: the name of its joint, and of the coordinate where that is not "angle"."""
    key = name if word == "angle" else f"{name}.{word}"
    joint, _, other = name.rpartition(".")
    taken = ""
    if joint in of.joints and other in of.joints[joint].kind.coordinates:
        taken = f"that is a coordinate of joint {joint!r}"
    elif key != name and key in of.joints:
        taken = f"its {word} is {key!r}, which is a joint"
    if taken:
        raise ModelError(f"{kind.label} cannot be named {name!r}: {taken}")
    return key


def _recorded_values(parameters: Iterable[tuple[str, Any]], relation: Relation) -> tuple[tuple[str, Any], ...]:
    """The options of a joint by name, as it keeps them."""
    is_driver = relation.signal is not None
    return tuple(
        [
            (word, _recorded(relation, v) if callable(v) or (is_driver and isinstance(v, Formula)) else _plain(v))
            for word, v in parameters
        ]
    )


def _recorded(relation: Relation, given: Any) -> Any:
    """A spline, or the primitive or signal made of a user's function: it compares by value, and can be pickled."""
    if isinstance(given, Spline) and relation.signal is None:
        return given
    return relation.primitive if relation.signal is None else relation.signal


def _plain(value: Any) -> Any:
    """A parameter as a plain value: NumPy scalars become floats, so that descriptions compare equal."""
    return value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value
