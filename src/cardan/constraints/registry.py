"""The class of primitive constraints, and the registry of the built-in ones.

A primitive consists of its features (world points, vectors, orientations), its equations f and their derivatives with
respect to the features.  The formulation defines the coordinates on which the features depend, so every primitive works
in every formulation.  [Liu2013] Definition 1 and eq. 8.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Final, Literal, NamedTuple

from cardan.constraints import expression
from cardan.constraints.expression import Graph, Quaternion, Scalar, Vector, digests


class FeatureKind(IntEnum):
    """Kinds of input of a primitive; the values are stored in the packed tables."""

    POINT = 0  # world position of a point fixed on a body [m], 3 components
    VECTOR = 1  # world direction of a vector fixed on a body, 3 components
    ORIENTATION = 2  # quaternion (w, x, y, z) of a frame fixed on a body, 4 components
    ANGLE = 3  # last accepted value of a counted angle [rad], 1 component; it has no derivative
    SCALAR = 4  # a number of a joint that depends on variables, 1 component
    TIMED = 5  # a number of a joint that is a function of time, 1 component

    @property
    def components(self) -> int:
        return _COMPONENTS[self]


_COMPONENTS: Final = (3, 3, 4, 1, 1, 1)

Unit = Literal["m", "m²", "rad"]
Measure = Literal["value", "chord", "sine"]
LENGTH_POWER: dict[str, int] = {"m": 1, "m²": 2, "rad": 0}  # a row is scaled by L to minus this power

Traced = Vector | Quaternion | Scalar


class Kind(NamedTuple):
    """A kind of argument of a primitive: the features it reads, and the traced value computed from them."""

    features: tuple[FeatureKind, ...]
    trace: Callable[..., Traced]
    unit: Unit | None = None  # of a coordinate; None for a feature

    @property
    def is_coordinate(self) -> bool:
        return self.unit is not None


_P, _V, _Q, _T = FeatureKind.POINT, FeatureKind.VECTOR, FeatureKind.ORIENTATION, FeatureKind.ANGLE

KINDS: Final[Mapping[str, Kind]] = {
    "point": Kind((_P,), lambda p: p),
    "vector": Kind((_V,), lambda v: v),
    "orientation": Kind((_Q,), lambda q: q),
    "angle": Kind((_V, _V, _V, _T), expression.counted_angle, "rad"),
    "displacement": Kind((_V, _P, _P), lambda axis, p, q: expression.dot(axis, q - p), "m"),
    "distance": Kind((_P, _P), lambda p, q: expression.norm(q - p), "m"),
    "inclination": Kind((_V, _V), expression.inclination, "rad"),
}


class Argument(NamedTuple):
    """An argument of a primitive: its name, its kind, and the argument with which it shares its body ("" if none)."""

    name: str
    kind: str
    of: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """One kind of constraint equation.

    ``guards``: rows that are inequalities, or whose gradient vanishes at the solution.  They do not count as equations,
    and do not enter rank or reactions.
    ``measure``: the norm of the rows as a function of the misalignment θ, which is reported: 2 sin(θ/2) for ``chord``,
    sin θ for ``sine``, and θ or a length for ``value``.
    ``code``: number of a built-in primitive, −1 for a user's primitive.  The first few are compiled into the evaluators
    (``inline``); all others are called by address and compiled at first use.
    ``absolute``: f may change when all its points are translated together, so these are relative to the world origin.
    ``indifferent``: f depends only on the relative placement of its features (:mod:`cardan.constraints.indifference`).
    ``lengths``: indices of the parameters that are lengths of parts [m], such as a radius.
    ``of_rates``: it constrains velocities alone, B(x) ẋ = 0.  Its kernels give f = 0, B for ∂f/∂x and Ḃ ẋ for
    ẋᵀ f_xx ẋ, so that the walk computes its rows of J and γ.
    """

    code: int
    name: str
    arguments: tuple[Argument, ...]
    parameters: tuple[str, ...]
    defaults: tuple[tuple[str, float], ...]
    units: tuple[Unit, ...]  # of every row
    guards: tuple[int, ...]
    measure: Measure
    function: Callable[..., Any] | None
    judged_as: str  # the primitive with the same features whose residual [m] or [rad] is reported; often itself
    inline: bool = False
    features: tuple[FeatureKind, ...] = ()
    components: int = 0  # scalar components of all features together
    rows: int = 0
    equations: int = 0  # rows that are not guards: independent at a regular solution
    powers: tuple[int, ...] = ()  # power of length of each row
    absolute: bool = False
    indifferent: bool = True
    lengths: tuple[int, ...] = ()
    of_rates: bool = False
    text: str = ""  # source of the kernels of a user's primitive; "" for a built-in one
    constants: tuple[float, ...] = ()  # numbers of a user's equations, which kernels read behind the parameters
    origin: Any = None  # the recipe from which unpickling rebuilds a user's primitive
    plain: bool = field(init=False)  # inline, judged as it is, and independent of the world's origin

    def __post_init__(self) -> None:
        object.__setattr__(self, "plain", self.inline and self.judged_as == self.name and not self.absolute)

    def trace(self) -> tuple[Graph, list[Scalar], list[Scalar]]:
        """The graph of f, its feature variables x0, x1, …, and its rows."""
        assert self.function is not None
        graph = Graph()
        variables = [graph.variable(f"x{i}") for i in range(self.components)]
        options = {name: graph.variable(f"c{i}") for i, name in enumerate(self.parameters)}
        result = self.function(*traced_arguments(self.arguments, variables), **options)
        return graph, variables, list(flat_rows(result))

    @property
    def is_traced(self) -> bool:
        """Whether its kernels are generated from a graph; otherwise they are written by hand."""
        return not hasattr(self.origin, "derivative")

    @property
    def is_contact(self) -> bool:
        """Whether it reads contact coordinates, which are solved for and not counted."""
        return bool(getattr(self.origin, "is_contact", False))

    def judged(self) -> Primitive:
        """The primitive that verdicts judge it by."""
        if self.judged_as == self.name:
            return self
        found: Primitive = find(self.judged_as) if self.code >= 0 else self.origin.judged()
        return found

    @property
    def unit(self) -> str:
        """The unit of all rows, or "mixed"."""
        return self.units[0] if len(set(self.units)) == 1 else "mixed"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Primitive):
            return NotImplemented
        return self._identity() == other._identity()

    def _identity(self) -> tuple[Any, ...]:
        return self.name, self.arguments, self.parameters, self.defaults, self.units, self.kernel(), self.constants

    def description(self) -> Any:
        """What defines it: of a recorded function its expressions, whose terms may be in any order; else itself."""
        nodes = getattr(self.origin, "nodes", None)
        if nodes is None:
            return self
        declared = self.name, self.arguments, self.parameters, self.defaults, self.units
        return *declared, digests(nodes, self.origin.rows)

    def kernel(self) -> tuple[Any, ...]:
        """A key of its kernels: equal for primitives with the same kernels."""
        by_hand = getattr(self.origin, "value", None), getattr(self.origin, "derivative", None)
        return self.code, self.text, *by_hand

    def __hash__(self) -> int:
        return hash((self.code, self.name, self.text))

    def __copy__(self) -> Primitive:
        return self

    def __deepcopy__(self, memo: Any) -> Primitive:
        return self

    def __reduce__(self) -> tuple[Callable[..., Primitive], tuple[Any, ...]]:
        if self.code >= 0:
            return find, (self.name,)
        reduced: tuple[Callable[..., Primitive], tuple[Any, ...]] = self.origin.reduced(self)
        return reduced

    def __repr__(self) -> str:
        return f"<primitive {self.name!r} of {', '.join(f'{a.name}: {a.kind}' for a in self.arguments)}>"


def traced_arguments(arguments: tuple[Argument, ...], variables: list[Scalar]) -> list[Traced]:
    """The arguments of a primitive's function: one traced value for each."""
    values: list[Traced] = []
    at = 0
    for argument in arguments:
        kind = KINDS[argument.kind]
        parts: list[Traced] = []
        for feature in kind.features:
            components = variables[at : at + feature.components]
            at += feature.components
            if feature is FeatureKind.ANGLE:
                parts.append(components[0])
            else:
                parts.append(Quaternion(*components) if feature is FeatureKind.ORIENTATION else Vector(*components))
        values.append(kind.trace(*parts))
    return values


def flat_rows(result: Any) -> Iterator[Scalar]:
    """The rows in the result of a primitive's function: scalars, vectors, and lists of them."""
    if isinstance(result, Scalar):
        yield result
    elif isinstance(result, Vector):
        yield from result.components
    else:
        for part in result:
            yield from flat_rows(part)


def features_of(arguments: tuple[Argument, ...]) -> tuple[FeatureKind, ...]:
    """The features of all arguments, in order."""
    return tuple(feature for argument in arguments for feature in KINDS[argument.kind].features)


def user_primitive(recipe: Any, text: str, rows: int, **flags: Any) -> Primitive:
    """The user's primitive that a recipe declares; text is the source of its kernels.

    flags: ``absolute``, ``indifferent`` and ``constants`` of the primitive.
    """
    name = recipe.name
    declared = (recipe.arguments, recipe.parameters, recipe.defaults, recipe.units)
    options: dict[str, Any] = {**flags, "text": text, "origin": recipe}
    options["of_rates"] = getattr(recipe, "of_rates", False)
    return _with_derived_fields(Primitive(-1, name, *declared, (), "value", None, name, **options), rows)


def _with_derived_fields(primitive: Primitive, rows: int) -> Primitive:
    """The primitive with the fields that follow from its arguments and the number of its rows."""
    features = features_of(primitive.arguments)
    units = primitive.units * rows if len(primitive.units) == 1 else primitive.units
    return replace(
        primitive,
        units=units,
        features=features,
        components=sum(feature.components for feature in features),
        rows=rows,
        equations=rows - len(primitive.guards),
        powers=tuple(LENGTH_POWER[unit] for unit in units),
    )


REGISTRY: dict[str, Primitive] = {}


def find(name: str) -> Primitive:
    """The built-in primitive of that name."""
    try:
        return REGISTRY[name]
    except KeyError:
        raise KeyError(f"no primitive is named {name!r}; there are {', '.join(sorted(REGISTRY))}") from None


def builtin(
    *,
    unit: Unit,
    guards: tuple[int, ...] = (),
    measure: Measure = "value",
    judged_as: str = "",
    inline: bool = False,
    lengths: tuple[str, ...] = (),
    **kinds: str,
) -> Callable[[Callable[..., Any]], Primitive]:
    """Register a function of world features as a built-in: ``@builtin(unit="m", a="point", b="point")``.

    Keyword-only arguments of the function are its parameters; ``lengths`` names those that are lengths of parts.
    ``judged_as`` names a registered primitive with the same features, parameters and rows, whose residual decides
    whether this one is satisfied.  ``inline`` primitives are registered first.
    """

    def register(function: Callable[..., Any]) -> Primitive:
        signature = inspect.signature(function)
        positional = [p.name for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
        parameters = tuple(p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY)
        name = function.__name__
        assert positional == list(kinds), f"primitive {name!r} takes {positional}, the kinds are for {list(kinds)}"
        assert name not in REGISTRY, f"primitive {name!r} is registered already"
        assert not inline or all(p.inline for p in REGISTRY.values()), f"inline primitive {name!r} must come earlier"
        arguments = tuple(Argument(argument, kind) for argument, kind in kinds.items())
        made = Primitive(
            len(REGISTRY),
            name,
            arguments,
            parameters,
            (),
            (unit,),
            guards,
            measure,
            function,
            judged_as or name,
            inline,
            lengths=tuple(map(parameters.index, lengths)),
        )
        made = _with_derived_fields(made, 0)  # tracing needs the features
        made = REGISTRY[name] = _with_derived_fields(replace(made, units=(unit,)), len(made.trace()[2]))
        return made

    return register
