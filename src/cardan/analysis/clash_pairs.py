"""The solids of the bodies of a mechanism, and the pairs of bodies that queries of clashes and overlaps compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from cardan import collide
from cardan.errors import ModelError
from cardan.joints.gaps import joined_pairs
from cardan.math import euler
from cardan.shapes.curved import Curved
from cardan.system import check
from cardan.system.attachments import Attachment
from cardan.system.drawing import Drawing
from cardan.system.parts import GROUND, Body
from cardan.system.state import FloatArray

MOST_NAMED: Final = 8  # lines of a text
TOUCH: Final = 1e-9  # of the sum of the radii of two solids: what overlaps by less only touches
NO_INSIDE: Final = (
    "is a curve or a surface without an inside; attach a solid, such as cd.shapes.box(x, y, z), or "
    "cd.shapes.half_space() for a plane"
)


class LeftOut(NamedTuple):
    """Bodies, or a pair of them, that were not compared, and why."""

    bodies: tuple[str, ...]
    reason: str

    def text(self) -> str:
        """One line of a report."""
        return f"{' – '.join(map(repr, self.bodies))}: {self.reason}"


def left_out_lines(left_out: tuple[LeftOut, ...]) -> list[str]:
    """Lines of a report, of the first MOST_NAMED."""
    lines = [f"left out: {one.text()}" for one in left_out[:MOST_NAMED]]
    return lines + ([f"left out: {len(left_out) - MOST_NAMED} more"] if len(left_out) > MOST_NAMED else [])


@dataclass(frozen=True, slots=True)
class Parts:
    """The solids of all bodies, and where they are: ``owners``, the body of each (the last one is the ground);
    ``frames``, its pose in that body, shape (solids, 7).  ``names``: of the bodies.  ``broken``: bodies with a shape
    that should be a solid and is none, such as an open mesh, and why.
    """

    names: tuple[str, ...]
    solids: tuple[Any, ...]
    owners: Any
    frames: FloatArray
    left_out: tuple[LeftOut, ...]
    broken: Mapping[int, str]

    def placed(self, poses: FloatArray) -> FloatArray:
        """Poses of the solids in world, shape (…, solids, 7), from those of the bodies, shape (…, bodies + 1, 7)."""
        own = poses[..., self.owners, :]
        p = own[..., 3:]
        r = own[..., :3] + euler.rotate(p, np.broadcast_to(self.frames[:, :3], p[..., 1:].shape))
        return np.concatenate([r, euler.multiply(p, np.broadcast_to(self.frames[:, 3:], p.shape))], axis=-1)

    def shapes_at(self, numbers: Any, poses: FloatArray) -> tuple[Any, ...]:
        """The shape of each solid and its pose, one after the other, as values that compare."""
        return tuple([x for k in numbers.tolist() for x in (self.solids[k].shape, tuple(poses[k].tolist()))])

    def check_solid(self, k: int, what: str, *, whole: bool = False) -> None:
        """ModelError if a body that was asked for has no solid; whole: or a shape that is none, as an open mesh."""
        if k not in self.owners or (whole and k in self.broken):
            own = [one.reason for one in self.left_out if one.bodies == (self.names[k],)]
            why = self.broken.get(k, own[0] if own else "it has no shape")
            raise ModelError(f"{what}: body {self.names[k]!r} cannot be compared: {why}")

    def reaches(self) -> FloatArray:
        """Of all solids about the origin of their body [m], shape (bodies + 1,); 0 of a body without one."""
        found = np.zeros(len(self.names))
        own = np.linalg.norm(self.frames[:, :3], axis=1) + [solid.reach for solid in self.solids]
        np.maximum.at(found, self.owners, own)
        return found


def parts_of(drawing: Drawing) -> Parts:
    """The solids of a mechanism as it is drawn.  They are made once for the same shapes."""
    c = drawing.contents
    held = tuple([body._attachments for body in (*c.bodies.values(), c.ground)])
    kept: dict[Any, Parts] = drawing.system.cached("solids", dict)
    if held not in kept:
        kept.clear()
        kept[held] = _made((*c.bodies, c.ground.name), held)
    return kept[held]


def _made(names: tuple[str, ...], held: tuple[tuple[Attachment, ...], ...]) -> Parts:
    solids, owners, frames, left_out = [], [], [], []
    broken: dict[int, str] = {}
    for k, (name, attachments) in enumerate(zip(names, held, strict=True)):
        if not attachments and name != GROUND:
            left_out.append(LeftOut((name,), "it has no shape; attach one, body.attach(shape)"))
        for one in attachments:
            if isinstance(one.shape, Curved):
                left_out.append(LeftOut((name,), f"its {one.shape!r:.80} {NO_INSIDE}"))
                continue
            try:
                solid = collide.solid(one.shape)
            except ModelError as error:
                broken[k] = f"its {one.shape!r:.80} has no inside that can be compared: {error}"
                left_out.append(LeftOut((name,), broken[k]))
                continue
            solids.append(solid)
            owners.append(k)
            f = one.frame
            frames.append([*f.origin, *euler.from_matrix(np.column_stack([f.x, f.y, f.z]))])
    places = np.array(owners, dtype=np.int64), np.array(frames).reshape(-1, 7)
    return Parts(names, tuple(solids), *places, tuple(left_out), broken)


def chosen_pairs(drawing: Drawing, parts: Parts, pairs: Any) -> tuple[Any, tuple[LeftOut, ...]]:
    """Pairs of bodies to compare, numbers of shape (k, 2), and what is left out of all pairs.

    pairs: "all", which leaves out pairs that are joined; or a list of pairs of bodies or their names.
    """
    number = {name: k for k, name in enumerate(parts.names)}
    if isinstance(pairs, str):
        if pairs != "all":
            raise ModelError(f'pairs is {pairs!r}; it must be "all", or a list such as [("crank", "rod")]')
        kept: list[Any] = drawing.system.cached("pairs of solids", lambda: [None, None])
        if kept[0] is not parts:
            kept[:] = parts, _all_pairs(drawing, parts, number)
        every: tuple[Any, tuple[LeftOut, ...]] = kept[1]
        return every
    found: dict[tuple[int, int], None] = {}
    for pair in _listed(pairs):
        a, b = (_number(item, number, drawing, "pairs") for item in pair)
        if a == b:
            raise ModelError(f"pairs has {parts.names[a]!r} with itself; give two bodies")
        found[min(a, b), max(a, b)] = None
    for k in dict.fromkeys([k for pair in found for k in pair]):
        parts.check_solid(k, "pairs")
    left_out = [one for one in parts.left_out if any(number[one.bodies[0]] in pair for pair in found)]
    return np.array(list(found), dtype=np.int64).reshape(-1, 2), tuple(left_out)


def _all_pairs(drawing: Drawing, parts: Parts, number: Mapping[str, int]) -> tuple[Any, tuple[LeftOut, ...]]:
    """All pairs of bodies with solids but those that are joined, and what is left out."""
    solid = np.unique(parts.owners)
    joined = joined_pairs(drawing.contents)
    i, j = np.triu_indices(len(solid), 1)
    every: Any = np.column_stack([solid[i], solid[j]])
    keys = [tuple(sorted(number[name] for name in pair)) for pair in joined]
    away = dict(zip(keys, joined.values(), strict=True))
    codes = every[:, 0] * len(number) + every[:, 1]
    is_away = np.isin(codes, [a * len(number) + b for a, b in away])
    away_too = [LeftOut((parts.names[a], parts.names[b]), away[a, b]) for a, b in every[is_away].tolist()]
    return every[~is_away], (*parts.left_out, *away_too)


def body_number(item: Any, parts: Parts, drawing: Drawing, what: str) -> int:
    """The number of a body, given as itself or by its name."""
    return _number(item, {name: k for k, name in enumerate(parts.names)}, drawing, what)


def _number(item: Any, number: Mapping[str, int], drawing: Drawing, what: str) -> int:
    name = item.name if isinstance(item, Body) else item
    if not isinstance(name, str) or name not in number:
        raise check.unknown(name, f"body that {what} can be given", number)
    c = drawing.contents
    if isinstance(item, Body) and item is not c.ground and c.bodies.get(name) is not item and not item.is_ground:
        raise ModelError(f"{what} was given {item!r} of another mechanism; give that of {c.name!r}, or its name")
    return number[name]


def _listed(pairs: Any) -> list[tuple[Any, ...]]:
    try:
        found = [tuple(pair) for pair in pairs if not isinstance(pair, str)]
        wrong = len(found) != len(list(pairs)) or any(len(pair) != 2 for pair in found)
    except TypeError:
        wrong, found = True, []
    if wrong:
        raise ModelError(f'pairs is {pairs!r:.120}; it must be "all", or a list such as [("crank", "rod")]')
    return found
