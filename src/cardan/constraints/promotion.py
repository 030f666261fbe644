"""Primitives some of whose parameters are read as features, so that their rows can be differentiated by them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from cardan.constraints import codegen
from cardan.constraints.expression import Graph, Scalar, beyond
from cardan.constraints.registry import FeatureKind, Primitive, find, flat_rows, traced_arguments
from cardan.errors import ModelError

FIRST_CODE: Final = -2  # of the promoted primitive of the built-in one with the code 0; then downwards


@dataclass(frozen=True, slots=True)
class Promotion:
    """What a promoted primitive is made of: another one, and the positions of the parameters that become features."""

    base: Primitive
    chosen: tuple[int, ...]
    kind: FeatureKind = FeatureKind.SCALAR

    def reduced(self, made: Primitive) -> tuple[Callable[..., Primitive], tuple[Any, ...]]:
        """The pickled form."""
        return promoted, (self.base, self.chosen, self.kind)

    def judged(self) -> Primitive:
        """The promoted form of the primitive that verdicts judge it by."""
        return promoted(find(self.base.judged_as), self.chosen, self.kind)


@lru_cache(maxsize=256)
def promoted(base: Primitive, chosen: tuple[int, ...], kind: FeatureKind = FeatureKind.SCALAR) -> Primitive:
    """The same equations, with the parameters ``chosen`` as scalar features behind all others.

    The parameters keep their places, so that c is the same for both.  kind: SCALAR for variables, TIMED for functions
    of time.
    """
    names = ", ".join([base.parameters[k] for k in chosen])
    if isinstance(base.origin, Promotion):
        raise ModelError(
            f"its parameter {names} depends on a parameter of the mechanism, and another one of its parameters is a "
            "function of time; only one of both is possible"
        )
    if not base.is_traced:
        raise ModelError(
            f"primitive {base.name!r} is written by hand, so it has no derivative by its parameter {names}; hold it, "
            "or write the primitive with operators and cd.sin, cd.sqrt, …"
        )
    graph = Graph()
    count = base.components
    variables = [graph.variable(f"x{i}") for i in range(count + len(chosen))]
    given = [
        variables[count + chosen.index(k)] if k in chosen else graph.variable(f"c{k}")
        for k in range(len(base.parameters))
    ]
    if base.function is not None:
        arguments = traced_arguments(base.arguments, variables[:count])
        rows = list(flat_rows(base.function(*arguments, **dict(zip(base.parameters, given, strict=True)))))
    else:
        rows = _replayed(graph, base.origin, variables, given)
    trace: codegen.Trace = graph, variables, rows
    if base.constants:
        trace, _ = codegen.constants_as_data(trace, len(base.parameters))  # they keep their places too
    name = f"{base.name} of {names}"
    own = base.judged_as == base.name
    return replace(
        base,
        code=FIRST_CODE - base.code if base.code >= 0 else -1,
        name=name,
        function=None,
        judged_as=name if own else f"{base.judged_as} of {names}",
        inline=False,
        features=(*base.features, *[kind] * len(chosen)),
        components=count + len(chosen),
        text=codegen.user_module(trace),
        origin=Promotion(base, chosen, kind),
    )


def _replayed(graph: Graph, recipe: Any, variables: list[Scalar], given: list[Scalar]) -> list[Scalar]:
    """The rows of a recorded graph with other variables in place of its parameters."""
    nodes: list[Scalar] = []
    for operation, arguments, value in recipe.nodes:
        if operation == "variable":
            kind, number = str(value)[0], int(str(value)[1:])
            nodes.append(variables[number] if kind == "x" else given[number])
        else:
            nodes.append(graph.node(operation, tuple(nodes[k] for k in arguments), value))
    return [nodes[k] for k in recipe.rows]


class _Bound:
    """The origin of the primitives of bounds, which are not registered."""

    def __init__(self, unit: str) -> None:
        self.unit = unit

    def reduced(self, made: Primitive) -> tuple[Callable[..., Primitive], tuple[Any, ...]]:
        return bound, (self.unit,)


def _excess(*, value: Scalar, lower: Scalar, upper: Scalar) -> Scalar:
    """Φ = signed excess of a variable over [lower, upper], zero within: an inequality."""
    return beyond(value, lower, upper)


@lru_cache(maxsize=2)
def bound(unit: Any) -> Primitive:
    """The bounds of a variable, in metres or without unit ("rad")."""
    parameters = ("value", "lower", "upper")
    made = Primitive(-1, "bound", (), parameters, (), (unit,), (0,), "value", _excess, "bound", origin=_Bound(unit))
    return replace(made, rows=1, powers=(1 if unit == "m" else 0,))


def is_bound(primitive: Primitive) -> bool:
    """Whether a primitive of a packed system is that of the bounds of a variable."""
    origin = primitive.origin
    return isinstance(origin, Promotion) and isinstance(origin.base.origin, _Bound)
