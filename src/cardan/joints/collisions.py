"""Which bodies of a mechanism must not overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cardan.calls import explains
from cardan.lazy import LazyModule
from cardan.system.read_only import read_only

_gaps = LazyModule("cardan.joints.gaps")  # it loads all shapes


@explains()
@read_only("remove it, m.remove({name!r}), and add it again")
@dataclass(frozen=True, slots=True, eq=False)
class Collisions:
    """Bodies of which no two may overlap, made by :meth:`cardan.Mechanism.collide`.

    ``bodies``: their names; None for all that have a solid, also those that are added later.  ``exclude``: names of
    bodies, and pairs of names, that may overlap.  ``margin`` [m]: the least gap.  ``joined``: whether pairs that a
    joint connects must not overlap either.  ``restitution``, ``friction``, (static, kinetic): of hits between them.
    """

    name: str
    bodies: tuple[str, ...] | None
    exclude: tuple[str | tuple[str, str], ...]
    margin: float
    joined: bool
    _model: Any
    restitution: float = 0.0
    friction: tuple[float, float] = (0.0, 0.0)

    @property
    def excluded(self) -> list[tuple[str, str]]:
        """Pairs of its bodies that may overlap because a joint connects them, or because they are excluded."""
        found = _gaps.Colliding(self._model.contents, [self])
        return [pair for pair in found.every_pair() if found.margin(*pair) is None]

    @property
    def without_solid(self) -> list[str]:
        """Bodies that have no solid, and so overlap with nothing."""
        return [name for name in self._of(self._model.contents) if not _gaps.solids_of(self._model.body(name))]

    def _of(self, contents: Any) -> tuple[str, ...]:
        """Names of the bodies."""
        return (contents.ground.name, *contents.bodies) if self.bodies is None else self.bodies

    def without(self, body: str) -> Collisions | None:
        """The same without a body; None if fewer than two bodies are left."""
        kept = tuple(one for one in self.exclude if body not in (one if isinstance(one, tuple) else (one,)))
        named = None if self.bodies is None else tuple(one for one in self.bodies if one != body)
        if named is not None and len(named) < 2:
            return None
        return Collisions(
            self.name, named, kept, self.margin, self.joined, self._model, self.restitution, self.friction
        )

    def description(self) -> tuple[Any, ...]:
        """Everything that defines it, as values that compare."""
        return self.name, self.bodies, self.exclude, self.margin, self.joined, self.restitution, self.friction

    def __repr__(self) -> str:
        told = "all bodies" if self.bodies is None else ", ".join(map(repr, self.bodies))
        return f"<collisions {self.name!r}: {told}>"
