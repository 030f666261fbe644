"""What a primitive constraint is, and the list of all of them.

A primitive knows only its features (world points, vectors, orientations), its equations f and their derivatives with
respect to the features.  Which coordinates the features depend on is the formulation's business, so every primitive
works in every formulation.  [Liu2013] Definition 1 and eq. 8.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Literal

from cardan.constraints.expression import Graph, Quaternion, Scalar, Vector


class FeatureKind(IntEnum):
    """What a primitive's argument is; the values are part of the packed tables."""

    POINT = 0  # world position of a point fixed on a body [m], 3 components
    VECTOR = 1  # world direction of a vector fixed on a body, 3 components
    ORIENTATION = 2  # quaternion (w, x, y, z) of a frame fixed on a body, 4 components

    @property
    def components(self) -> int:
        return 4 if self is FeatureKind.ORIENTATION else 3


Unit = Literal["m", "m²", "rad"]
Measure = Literal["value", "chord", "sine"]
LENGTH_POWER: dict[str, int] = {"m": 1, "m²": 2, "rad": 0}  # a row is divided by L to this power before it is judged

_KINDS = {"point": FeatureKind.POINT, "vector": FeatureKind.VECTOR, "orientation": FeatureKind.ORIENTATION}


@dataclass(frozen=True, slots=True)
class Primitive:
    """One kind of constraint equation.

    ``guards`` are rows whose gradient vanishes on the solution: they tell the wanted solution from a mirror image
    (aligned from opposed axes) while a solver is far away, and count neither as equations nor in rank or reactions.
    ``measure`` says what the norm of the rows is for a misalignment θ, so that θ itself can be reported: 2 sin(θ/2) for
    ``chord``, sin θ for ``sine``, and θ, or a length, for ``value``.
    """

    code: int
    name: str
    features: tuple[tuple[str, FeatureKind], ...]
    parameters: tuple[str, ...]
    unit: Unit  # of every row
    rows: int
    guards: tuple[int, ...]
    measure: Measure
    function: Callable[..., Any]
    components: int  # scalar components of all features together
    equations: int  # independent at a regular solution: rows that are no guards
    powers: tuple[int, ...]  # of length, per row
    sharp: str  # the primitive of the same features that says in metres or radians what this one does; often itself

    def trace(self) -> tuple[Graph, list[Scalar], list[Scalar]]:
        """The graph of f, its feature variables x0, x1, …, and its rows."""
        graph = Graph()
        variables = [graph.variable(f"x{i}") for i in range(self.components)]
        arguments: list[Vector | Quaternion] = []
        at = 0
        for _, kind in self.features:
            mine = variables[at : at + kind.components]
            arguments.append(Quaternion(*mine) if kind is FeatureKind.ORIENTATION else Vector(*mine))
            at += kind.components
        options = {name: graph.variable(f"c{i}") for i, name in enumerate(self.parameters)}
        return graph, variables, list(_rows(self.function(*arguments, **options)))

    def __reduce__(self) -> tuple[Callable[[str], Primitive], tuple[str]]:
        return find, (self.name,)


def _rows(result: Any) -> Iterator[Scalar]:
    if isinstance(result, Scalar):
        yield result
    elif isinstance(result, Vector):
        yield from result.components
    else:
        for part in result:
            yield from _rows(part)


REGISTRY: dict[str, Primitive] = {}


def find(name: str) -> Primitive:
    """The registered primitive of that name."""
    try:
        return REGISTRY[name]
    except KeyError:
        raise KeyError(f"no primitive is named {name!r}; there are {', '.join(sorted(REGISTRY))}") from None


def primitive(
    *, unit: Unit, guards: tuple[int, ...] = (), measure: Measure = "value", sharp: str = "", **kinds: str
) -> Callable[[Callable[..., Any]], Primitive]:
    """Register a function of world features as a primitive: ``@primitive(unit="m", a="point", b="point")``.

    Keyword-only arguments of the function are its parameters.  ``sharp`` names a registered primitive with the same
    features, parameters and rows by which a verdict judges this one.
    """

    def register(function: Callable[..., Any]) -> Primitive:
        signature = inspect.signature(function)
        positional = [p.name for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
        parameters = tuple(p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY)
        name = function.__name__
        if positional != list(kinds):
            raise TypeError(f"primitive {name!r} takes {positional}, but the kinds given are for {list(kinds)}")
        if name in REGISTRY:
            raise ValueError(f"primitive {name!r} is registered already")
        features = tuple((argument, _KINDS[kind]) for argument, kind in kinds.items())
        components = sum(kind.components for _, kind in features)
        code, sharp_name = len(REGISTRY), sharp or name
        made = Primitive(
            code, name, features, parameters, unit, 0, guards, measure, function, components, 0, (), sharp_name
        )
        rows = len(made.trace()[2])
        powers = (LENGTH_POWER[unit],) * rows
        made = REGISTRY[name] = replace(made, rows=rows, equations=rows - len(guards), powers=powers)
        return made

    return register
