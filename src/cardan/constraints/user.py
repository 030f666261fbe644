"""Users' primitives: a Python function of world features, recorded once and compiled like the built-in primitives.

    @cd.primitive(i="point", j="point", up="vector of i")
    def equal_height(i, j, up, *, offset=0.0):
        return cd.dot(up, j - i) - offset

The function is called once with traced values.  The recorded graph gives f, ∂f/∂x and the velocity-product term of γ.
Equations that cannot be traced are given by hand, with their derivative, which is checked by differences
(:mod:`.by_hand`).
"""

from __future__ import annotations

import inspect
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cardan.calls import explained
from cardan.constraints import codegen, user_kernels
from cardan.constraints.expression import BY_HAND, Graph, Plain, Quaternion, Scalar, TracingError, Vector
from cardan.constraints.indifference import is_indifferent
from cardan.constraints.registry import (
    KINDS,
    LENGTH_POWER,
    Argument,
    FeatureKind,
    Primitive,
    Unit,
    features_of,
    traced_arguments,
    user_primitive,
)
from cardan.constraints.spline import Spline
from cardan.errors import ModelError

MOST_ROWS = 64
RATE_UNITS: dict[str, Unit] = {"m/s": "m", "rad/s": "rad"}  # of a rate row, and of its integral
MOST_DEPTH = 8  # of nested lists that a function may return
MOST_KNOWN = 256  # recipes whose text is kept


@dataclass(frozen=True, slots=True)
class Recipe:
    """The declaration and the graph of a traced primitive, as plain values from which it is rebuilt."""

    name: str
    arguments: tuple[Argument, ...]
    parameters: tuple[str, ...]
    defaults: tuple[tuple[str, float], ...]
    units: tuple[Any, ...]
    nodes: tuple[Plain, ...]
    rows: tuple[int, ...]
    of_rates: bool = False

    @staticmethod
    def rebuild(recipe: Recipe) -> Primitive:
        """The primitive of a recipe."""
        exact = repr(recipe)  # recipes with 0.0 and -0.0 compare equal
        if exact not in _known:
            if len(_known) >= MOST_KNOWN:
                _known.clear()
            _known[exact] = _generated(recipe)
        text, count, flags = _known[exact]
        return user_primitive(recipe, text, count, **flags)

    def reduced(self, made: Primitive) -> tuple[Callable[[Recipe], Primitive], tuple[Recipe]]:
        """The pickled form; it does not contain the function, so another process does not need it."""
        return Recipe.rebuild, (self,)


_known: dict[str, tuple[str, int, dict[str, Any]]] = {}  # by repr of recipes, which are rebuilt when unpickled


def _generated(recipe: Recipe) -> tuple[str, int, dict[str, Any]]:
    """The text of the kernels of a recipe, its number of rows; and ``absolute``, ``indifferent``, ``constants``."""
    kinds = features_of(recipe.arguments)
    components = sum(kind.components for kind in kinds)
    try:
        graph = Graph.from_plain(recipe.nodes, components, len(recipe.parameters), recipe.of_rates)
        if recipe.of_rates:
            graph.rates = {graph.variable(f"x{i}"): graph.variable(f"v{i}") for i in range(components)}
        rows = [graph.nodes[k] for k in recipe.rows]
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ModelError(
            f"primitive {recipe.name!r} is not a valid recorded equation: {error}; it must be made by cd.primitive "
            "from a function that only computes"
        ) from None
    trace = graph, graph.nodes[:components], rows
    data, constants = codegen.constants_as_data(trace, len(recipe.parameters))
    text = codegen.user_module(data)
    # a rate row depends on velocities in the world, whatever its features are on
    indifferent = not recipe.of_rates and is_indifferent(graph, kinds, rows)
    flags = {"absolute": _is_absolute(trace, kinds), "indifferent": indifferent, "constants": constants}
    return text, len(rows), flags


@explained
def primitive(
    *misplaced: Any,
    unit: str | Sequence[str] = "m",
    rows: int | None = None,
    parameters: Sequence[str] = (),
    derivative: Callable[..., None] | Literal["complex", "differences"] | None = None,
    **kinds: str,
) -> Callable[[Callable[..., Any]], Primitive]:
    """Make your own constraint from a function of world features, for :meth:`Mechanism.constrain`.

    Each positional argument of the function is declared with its kind: ``"point"`` and ``"vector"`` (traced vectors in
    world axes), ``"orientation"`` (of a frame), or a scalar coordinate between two frames: ``"angle"``,
    ``"displacement"``, ``"distance"``, ``"inclination"``.  ``"vector of i"`` must be on the body of the argument i.
    All features may be on one body: they are in world axes.
    Keyword-only arguments are parameters, given with the constraint; they may have defaults.
    The function returns its residuals: one, a vector, or a list of them.  It computes with operators and with cd.dot,
    cd.cross, cd.norm, cd.sin, …; it is called once, so it must not branch on its arguments.
    unit: of the rows, "m", "rad" or "m²", one for all or one for each.

    By hand: if the equations cannot be traced, give rows=, parameters= and derivative=.  Then the function is
    ``f(x, c, out)`` and the derivative ``df(x, c, out)``, compiled by Numba, with all components of the features in x
    and the parameters in c.  f writes its rows, df the partial derivatives row by row.  df is checked by differences.
    derivative="complex" makes df of f with complex x, to 1e-14 of the largest entry: one call of f per component; f
    must be an analytic function of x, without abs and comparisons of x.  derivative="differences" is for any smooth f:
    four calls per component, with an error up to 1e-11.  γ, by differences of df, has an error up to 1e-11 or 1e-8.

    Errors raise ModelError; SystemExit and KeyboardInterrupt raised by the function are not caught.
    """
    if misplaced:
        raise ModelError(
            f"cd.primitive was given {misplaced[0]!r}; declare the arguments of the function, as in "
            "@cd.primitive(i='point', j='point')"
        )

    def make(function: Callable[..., Any]) -> Primitive:
        name = getattr(function, "__name__", None)
        name = name if isinstance(name, str) else type(function).__name__
        what = f"primitive {name!r}"
        if not callable(function):
            raise ModelError(f"{what} was made from {function!r}; it must be a function")
        options = {"unit": unit, "rows": rows, "parameters": parameters, "derivative": derivative}
        for word, value in options.items():
            if isinstance(value, str) and value.partition(" of ")[0] in KINDS:
                raise ModelError(
                    f"{what}: an argument cannot be named {word!r}, which is an option of cd.primitive; rename it"
                )
        arguments = _arguments(what, kinds)
        units = _units(what, unit)
        if derivative is not None or rows is not None:
            given = function, derivative, arguments, units, rows, parameters, MOST_ROWS
            return user_kernels.primitive(what, name, *given)
        if isinstance(parameters, str) or len(parameters):
            raise ModelError(f"{what}: parameters= is for kernels by hand; here they must be keyword-only arguments")
        named, defaults = _signature(what, function, arguments)
        return _checked(what, _traced(what, name, function, arguments, named, defaults, units))

    return make


@explained
def rate_primitive(
    *misplaced: Any, unit: str | Sequence[str] = "m/s", **kinds: str
) -> Callable[[Callable[..., Any]], Primitive]:
    """Make your own constraint of velocities, B(x) ẋ = 0, for :meth:`Mechanism.constrain_rates`.

        @cd.rate_primitive(i="point", axis="vector of i")
        def blade(i, axis):
            return cd.dot(axis, cd.rate(i))

    As :func:`primitive`, but the function also uses cd.rate(…), the time derivative of a point, vector, coordinate or
    expression, and cd.angular_velocity(orientation).  Each row must be linear in these rates, without another term.
    All features may be on one body: velocities are those in the world.
    unit: of the rows, "m/s" or "rad/s", one for all or one for each.
    """
    if misplaced:
        raise ModelError(
            f"cd.rate_primitive was given {misplaced[0]!r}; declare the arguments of the function, as in "
            "@cd.rate_primitive(i='point', axis='vector of i')"
        )

    def make(function: Callable[..., Any]) -> Primitive:
        name = getattr(function, "__name__", None)
        name = name if isinstance(name, str) else type(function).__name__
        what = f"rate primitive {name!r}"
        if not callable(function):
            raise ModelError(f"{what} was made from {function!r}; it must be a function")
        units = tuple(unit) if isinstance(unit, list | tuple) else (unit,)
        for one in units:
            if not isinstance(one, str) or one not in RATE_UNITS:
                raise ModelError(f"{what} has the unit {one!r}; it must be one of {', '.join(map(repr, RATE_UNITS))}")
        if not units:
            raise ModelError(f"{what} has no unit; give one for all rows, or one for each")
        arguments = _arguments(what, kinds)
        named, defaults = _signature(what, function, arguments)
        own = tuple(RATE_UNITS[one] for one in units)
        return _traced(what, name, function, arguments, named, defaults, own, of_rates=True)

    return make


def coupling(name: str, first: str, second: str, function: Callable[[Any], Any]) -> Primitive:
    """The primitive q₂ − function(q₁) of two coordinates; first and second are their kinds."""
    if not callable(function):
        raise ModelError(f"the function is {function!r}; it must be a function of one coordinate")
    arguments = (Argument("first", first), Argument("second", second))

    def residual(q1: Any, q2: Any) -> Any:
        value = function.traced(q1) if isinstance(function, Spline) else function(q1)
        if isinstance(value, bool) or not isinstance(value, Scalar | int | float | np.number):
            raise ModelError(f"the function returned {_shown(value)}; it must return one number")
        return q2 - value

    return _traced(name, "coupling", residual, arguments, (), (), (KINDS[second].unit,))


def declared(
    name: str,
    kinds: Mapping[str, str],
    parameters: tuple[str, ...],
    defaults: Mapping[str, float],
    unit: Any,
    function: Callable[..., Any],
) -> Primitive:
    """The primitive of a declaration that is not a Python function's, such as that of a file."""
    what = f"primitive {name!r}"
    values = tuple((word, _default(what, word, value)) for word, value in defaults.items())
    found = _traced(what, name, function, _arguments(what, kinds), parameters, values, _units(what, unit))
    return _checked(what, found)


def _arguments(what: str, kinds: Mapping[str, str]) -> tuple[Argument, ...]:
    """The declared arguments."""
    if not kinds:
        raise ModelError(f"{what} has no features; declare its arguments, as in primitive(i='point', j='point')")
    found: dict[str, Argument] = {}
    for name, declared in kinds.items():
        kind, separator, of = declared.partition(" of ") if isinstance(declared, str) else ("", "", "")
        declaration = f"{what}: its argument {name!r} is declared as {declared!r}"
        if not name.isidentifier():
            raise ModelError(f"{what}: {name!r} cannot be the name of an argument; it must be an identifier")
        if kind not in KINDS:
            raise ModelError(f"{declaration}; it must be one of {', '.join(map(repr, KINDS))}")
        if separator and of not in found:
            raise ModelError(f"{declaration}, but no argument {of!r} comes before it; it must name an earlier one")
        if separator and (KINDS[kind].is_coordinate or KINDS[found[of].kind].is_coordinate):
            raise ModelError(f"{declaration}, but a coordinate is on two bodies; it must name a feature")
        found[name] = Argument(name, kind, of)
    return tuple(found.values())


def _checked(what: str, made: Primitive) -> Primitive:
    """ModelError if no motion can change a primitive: it is on one body, and does not depend on its place."""
    bodies = sum([2 if KINDS[a.kind].is_coordinate else not a.of for a in made.arguments])
    if bodies == 1 and made.indifferent:
        raise ModelError(
            f"{what} is on one body only, and does not depend on the place of this body in the world, so that no "
            "motion changes it; declare a feature of another body too, which may be the ground"
        )
    return made


def _units(what: str, unit: Any) -> tuple[Any, ...]:
    units = tuple(unit) if isinstance(unit, list | tuple) else (unit,)
    for one in units:
        if not isinstance(one, str) or one not in LENGTH_POWER:
            raise ModelError(f"the unit of {what} is {one!r}; it must be one of {', '.join(map(repr, LENGTH_POWER))}")
    if not units:
        raise ModelError(f"{what} has no unit; give one for all rows, or one for each")
    return units


def _signature(
    what: str, function: Callable[..., Any], arguments: tuple[Argument, ...]
) -> tuple[tuple[str, ...], tuple[tuple[str, float], ...]]:
    """Names of the parameters, and their defaults."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: Python cannot list its arguments; wrap it in a plain function") from None
    positional, parameters, defaults = [], [], []
    for p in signature.parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise ModelError(f"{what} takes {p}; name every argument, since each must be declared")
        has_default = p.default is not p.empty
        if p.kind is p.KEYWORD_ONLY:
            parameters.append(p.name)
            if has_default:
                defaults.append((p.name, _default(what, p.name, p.default)))
        elif has_default:
            raise ModelError(f"{what}: its feature {p.name!r} has a default; only parameters, after a *, may have one")
        else:
            positional.append(p.name)
    declared = [a.name for a in arguments]
    if positional != declared:
        raise ModelError(
            f"{what} takes the features {positional}, but {declared} are declared; both must have the same names in "
            "the same order (parameters come after a *)"
        )
    return tuple(parameters), tuple(defaults)


def _default(what: str, name: str, value: Any) -> float:
    try:
        if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
            number = float(value)
            if math.isfinite(number):
                return number
    except OverflowError:
        pass  # an integer too large for a float
    raise ModelError(f"{what}: the default of {name!r} is {_shown(value)}; it must be a finite number")


def _traced(
    what: str,
    name: str,
    function: Callable[..., Any],
    arguments: tuple[Argument, ...],
    parameters: tuple[str, ...],
    defaults: tuple[tuple[str, float], ...],
    units: tuple[Any, ...],
    of_rates: bool = False,
) -> Primitive:
    """The primitive of a function, which is called once with symbols."""
    graph = Graph()
    variables = [graph.variable(f"x{i}") for i in range(sum(kind.components for kind in features_of(arguments)))]
    named = {parameter: graph.variable(f"c{i}") for i, parameter in enumerate(parameters)}
    if of_rates:
        graph.rates = {x: graph.variable(f"v{i}") for i, x in enumerate(variables)}
    try:
        rows = _rows(graph, _called(function, traced_arguments(arguments, variables), named), 0)
        if not rows:
            raise TracingError("it returned no residual; it must return one, a vector, or a list of them")
        if len(rows) > MOST_ROWS:
            raise TracingError(f"it returned {len(rows)} residuals; at most {MOST_ROWS} can be in one primitive")
        for k, row in enumerate(rows):
            if of_rates:
                _check_linear(graph, k, row)
            elif not graph.reads(row, "x"):
                raise TracingError(f"its residual {k} does not depend on any feature; each residual must depend on one")
        if len(units) not in (1, len(rows)):
            raise TracingError(f"it has {len(rows)} rows but {len(units)} units; give one for all, or one for each")
        nodes = tuple(node.plain() for node in graph.nodes)
        numbers = tuple(row.index for row in rows)
        recipe = Recipe(name, arguments, parameters, defaults, units, nodes, numbers, of_rates)
        return Recipe.rebuild(recipe)
    except TracingError as error:
        raise ModelError(f"{what}: {error}") from None


def _check_linear(graph: Graph, k: int, row: Scalar) -> None:
    """TracingError if a row is not of the form B(x) ẋ."""
    if not graph.reads(row, "v"):
        raise TracingError(f"its row {k} does not depend on any rate; each row must contain cd.rate(…) of something")
    one = graph.constant(1.0)
    if any(graph.reads(graph.derivative(row, {v: one}, {}), "v") for v in graph.rates.values()):
        raise TracingError(f"its row {k} is not linear in the rates; a rate row must be")
    if not graph.at_rest(row).is_zero:
        raise TracingError(
            f"its row {k} has a term without rates, so that it is not zero at rest; a rate row must be linear in the "
            "rates (a given speed is value= of m.constrain_rates)"
        )


def _called(function: Callable[..., Any], features: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The result of a function for traced values; TracingError if it fails."""
    try:
        return function(*features, **named)
    except TracingError:
        raise
    except RecursionError:
        raise TracingError("its function calls itself endlessly; its recursion must end") from None
    except Exception as error:
        cause = traceback.format_exception_only(error)[-1].strip()[:300]
        raise TracingError(f"its function raised {cause}; it is called once, with traced values; {BY_HAND}") from error


def _rows(graph: Graph, result: Any, depth: int) -> list[Scalar]:
    """The rows that a function returned.  Numbers become constants, which are rejected later."""
    if isinstance(result, Scalar | Vector):
        return [graph.lift(c) for c in (result.components if isinstance(result, Vector) else (result,))]
    if isinstance(result, list | tuple) and depth < MOST_DEPTH:
        return [row for part in result for row in _rows(graph, part, depth + 1)]
    if isinstance(result, np.ndarray) and depth < MOST_DEPTH:
        return _rows(graph, result.tolist(), depth + 1)
    if isinstance(result, int | float | np.number) and not isinstance(result, bool):
        return [graph.lift(float(result))]
    if inspect.iscoroutine(result):
        result.close()  # else Python warns that it was never awaited
    hint = "cd.rotation_vector makes a vector of two orientations" if isinstance(result, Quaternion) else BY_HAND
    raise TracingError(f"it returned {_shown(result)}; it must return a residual, a vector, or a list of them; {hint}")


def _shown(value: Any) -> str:
    try:
        return repr(value)[:80]
    except Exception:  # a class whose __repr__ fails
        return object.__repr__(value)


def _is_absolute(trace: codegen.Trace, kinds: Sequence[FeatureKind]) -> bool:
    """Whether a row may change when all points are translated together: D[row] does not simplify to zero."""
    graph, variables, rows = trace
    one = graph.constant(1.0)
    for axis in range(3):
        seeds, at = {}, 0
        for kind in kinds:
            if kind is FeatureKind.POINT:
                seeds[variables[at + axis]] = one
            at += kind.components
        memo: dict[int, Scalar] = {}
        if not all(graph.derivative(row, seeds, memo).is_zero for row in rows):
            return True
    return False
