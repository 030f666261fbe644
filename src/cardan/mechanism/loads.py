"""Loads, checked against a model and added to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cardan.calls import problem_of, with_help
from cardan.dynamics import loads
from cardan.dynamics.loads import Load, LoadKind
from cardan.errors import ArgumentError, ModelError
from cardan.joints import Coordinate
from cardan.joints.making import label
from cardan.joints.ownership import check_end, check_place, chosen_coordinate, named_body
from cardan.system import check
from cardan.system.formulas import formulas_in
from cardan.system.parts import GROUND, Frame, Point

if TYPE_CHECKING:
    from cardan.mechanism.model import Model


def add(model: Model, kind: LoadKind[Any], name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Load:
    """Add a load of a kind."""
    name = model.new_name(name, check.with_article(kind.name))
    what = label(kind, name)
    try:
        bound = kind.signature.bind(*args, **options)
    except TypeError as error:
        problem = problem_of(kind.signature, args, options) or str(error)
        raise ArgumentError(f"{what}: {with_help(problem, f'Mechanism.{kind.name}')}") from None
    bound.apply_defaults()
    named = dict(bound.arguments)
    given = [named.pop(word) for word in list(named)[: len(kind.takes)]]
    ends = [_end(model, what, given[0], kind.takes[0], named.get("of"))]
    if isinstance(ends[0], Coordinate) and len(given) > 1 and given[1] is not None:
        raise ModelError(f"{what} was given {given[1]!r} after {ends[0]!r}; a second point belongs to a point")
    if not isinstance(ends[0], Coordinate):
        ends += [_end(model, what, end, takes, None) for end, takes in zip(given[1:], kind.takes[1:], strict=True)]
    for value in named.values():
        for _, formula in formulas_in(value):
            model.check_formula(what, formula)
    try:
        with model.book.making(what):
            made = loads.make(kind, name, tuple(ends), named)
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None
    model.keep("loads", made)
    return made


def _end(model: Model, what: str, given: Any, takes: str, of: str | None) -> Any:
    """What a load acts on, checked: a coordinate, a point, a frame or a body."""
    if "coordinate" in takes and not (takes != "coordinate" and isinstance(given, Frame | Point)):
        if isinstance(given, str) and given not in model.joints and (given == GROUND or given in model.bodies):
            place = "m.ground" if given == GROUND else f"m[{given!r}]"
            raise ModelError(
                f"{what} was given {given!r}, which is a body; give a joint"
                + (f", or a point of it: {place}.point(…)" if takes != "coordinate" else "")
            )
        chosen = chosen_coordinate(model, what, given, of)
        check_place(model, what, chosen)
        return chosen
    if of is not None:
        raise ModelError(f"{what} was given of={of!r} with {given!r}; of= chooses a coordinate of a joint: omit it")
    if takes == "body":
        return named_body(model, what, given)
    check_end(model, what, "frame" if takes == "frame" else "point", given)
    return given
