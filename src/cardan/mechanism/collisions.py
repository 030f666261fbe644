"""Sets of bodies that must not overlap, checked against a model and added to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cardan.errors import ModelError
from cardan.joints.collisions import Collisions
from cardan.joints.ownership import named_body
from cardan.mechanism.contacts import checked_friction, checked_restitution
from cardan.system import check
from cardan.system.parts import Body

if TYPE_CHECKING:
    from cardan.mechanism.model import Model

ALL = "all"


def add(
    model: Model, name: str, bodies: Any, exclude: Any, margin: Any, joined: Any, impact: tuple[Any, Any] = (0.0, 0.0)
) -> Collisions:
    """See :meth:`cardan.Mechanism.collide`.  impact: restitution and friction."""
    name = model.new_name(name, "a set of collisions")
    what = f"collide {name!r}"
    valid = "it must be 'all', or a list of bodies or their names"
    chosen: tuple[str, ...] | None = None
    if not (isinstance(bodies, str) and bodies == ALL):
        chosen = tuple(dict.fromkeys(_body(model, what, one) for one in _listed(what, bodies, valid)))
        if len(chosen) < 2:
            raise ModelError(f"{what} was given {bodies!r:.120}, which is fewer than two bodies; {valid}")
    pairs = "exclude must be a list of bodies and of pairs of bodies"
    excluded = tuple(
        _body(model, what, one) if isinstance(one, str | Body) else _pair(model, what, one, pairs)
        for one in _listed(what, exclude, pairs)
    )
    made = Collisions(
        name,
        chosen,
        tuple(dict.fromkeys(excluded)),
        check.positive(margin, f"{what}: margin", zero=True),
        check.flag(joined, f"{what}: joined"),
        model,
        checked_restitution(what, impact[0]),
        checked_friction(what, impact[1]),
    )
    empty = [] if chosen is None else made.without_solid
    if empty:
        raise ModelError(
            f"{what} was given body {empty[0]!r}, which has no solid: attach one, such as "
            "body.attach(cd.shapes.box(x, y, z)), first"
        )
    kept: Collisions = model.keep("collisions", made)
    return kept


def _listed(what: str, given: Any, valid: str) -> list[Any]:
    if isinstance(given, str | Body) or not isinstance(given, Iterable):
        raise ModelError(f"{what} was given {given!r:.120}; {valid}")
    return list(given)


def _pair(model: Model, what: str, given: Any, valid: str) -> tuple[str, str]:
    both = [_body(model, what, one) for one in _listed(what, given, valid)]
    if len(set(both)) != 2:
        raise ModelError(f"{what} was given {given!r:.120} to exclude; {valid}")
    return both[0], both[1]


def _body(model: Model, what: str, given: Any) -> str:
    return named_body(model, what, given).name
