"""Primitives of the user's own: a plain function of world features, recorded once and compiled like the built-in ones.

    @cd.primitive(i="point", j="point", up="vector of i")
    def equal_height(i, j, up, *, offset=0.0):
        return cd.dot(up, j - i) - offset

The function is called once with traced values; from the graph come f, ∂f/∂x and the velocity-product term of γ.  What
cannot be traced is given by hand, with its derivative, which is then checked by differences.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.constraints import codegen
from cardan.constraints.expression import BY_HAND, Graph, Quaternion, Scalar, TracingError, Vector
from cardan.constraints.registry import KINDS, LENGTH_POWER, Argument, FeatureKind, Primitive, completed, given
from cardan.errors import ModelError

MOST_ROWS = 64
MOST_DEPTH = 8  # of lists within lists that a function may return
STEP = 1e-5  # of the differences that check a derivative given by hand
AGREES = 1e-6  # relative: how near these differences must come


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a traced primitive is rebuilt from: its declaration and its graph, as plain values."""

    name: str
    arguments: tuple[Argument, ...]
    parameters: tuple[str, ...]
    defaults: tuple[tuple[str, float], ...]
    units: tuple[Any, ...]
    nodes: tuple[tuple[str, tuple[int, ...], Any], ...]
    variables: tuple[int, ...]
    rows: tuple[int, ...]

    @staticmethod
    def rebuild(recipe: Recipe) -> Primitive:
        """The primitive of a recipe."""
        graph = Graph()
        for operation, arguments, value in recipe.nodes:
            graph.node(operation, tuple(graph.nodes[k] for k in arguments), value)
        variables = [graph.nodes[k] for k in recipe.variables]
        rows = [graph.nodes[k] for k in recipe.rows]
        return _assembled(recipe, codegen.user_module((graph, variables, rows)))


@dataclass(frozen=True, slots=True)
class ByHand:
    """What a primitive with hand-written kernels is rebuilt from."""

    name: str
    arguments: tuple[Argument, ...]
    parameters: tuple[str, ...]
    defaults: tuple[tuple[str, float], ...]
    units: tuple[Any, ...]
    rows: tuple[int, ...]
    value: Callable[..., None]
    derivative: Callable[..., None]

    @staticmethod
    def rebuild(recipe: ByHand) -> Primitive:
        """The primitive of a recipe."""
        components = sum(kind.components for argument in recipe.arguments for kind in KINDS[argument.kind].features)
        text = codegen.by_hand_module(components, len(recipe.parameters), len(recipe.rows))
        return _assembled(recipe, text)


def primitive(
    *,
    unit: str | Sequence[str] = "m",
    rows: int | None = None,
    parameters: Sequence[str] = (),
    derivative: Callable[..., None] | None = None,
    **kinds: str,
) -> Callable[[Callable[..., Any]], Primitive]:
    """Make a constraint of your own from a function of world features, for :meth:`Mechanism.constrain`.

    Each positional argument of the function is declared by what it is: ``"point"`` and ``"vector"`` (traced vectors in
    world axes), ``"orientation"`` (of a frame), or a coordinate between two frames, a number: ``"angle"``,
    ``"displacement"``, ``"distance"``, ``"inclination"``.  ``"vector of i"`` must be on the body of the argument i.
    Keyword-only arguments are parameters, given with the constraint; they may have defaults.
    The function returns its residuals: one, a vector, or a list of them.  It computes with operators and with cd.dot,
    cd.cross, cd.norm, cd.sin, …; it is called once, so it must not branch on its arguments.
    unit: of the rows, "m", "rad" or "m²", one for all or one for each.

    By hand: where the equations cannot be traced, say rows=, parameters= and derivative=.  Then the function is
    ``f(x, c, out)`` and the derivative ``df(x, c, out)``, compiled by Numba, with all components of the features in x
    and the parameters in c; f writes its rows, df the partial derivatives row by row.  Differences check them.
    """

    def make(function: Callable[..., Any]) -> Primitive:
        name = getattr(function, "__name__", type(function).__name__)
        what = f"primitive {name!r}"
        if not callable(function):
            raise ModelError(f"{what} was made of {function!r}; it must be a function")
        arguments = _arguments(what, kinds)
        units = _units(what, unit)
        if derivative is not None or rows is not None:
            return _by_hand(what, name, function, derivative, arguments, units, rows, parameters)
        if parameters:
            raise ModelError(f"{what}: parameters= is for kernels by hand; here they are keyword-only arguments of it")
        options, defaults = _signature(what, function, arguments)
        graph, variables, found = _traced(what, function, arguments, options)
        nodes = tuple((node.operation, tuple(a.index for a in node.arguments), node.value) for node in graph.nodes)
        recipe = Recipe(
            name,
            arguments,
            options,
            defaults,
            _per_row(what, units, len(found)),
            nodes,
            tuple(variable.index for variable in variables),
            tuple(row.index for row in found),
        )
        return _assembled(recipe, codegen.user_module((graph, variables, found)))

    return make


def coupling(name: str, first: str, second: str, function: Callable[[Any], Any]) -> Primitive:
    """The primitive q₂ − function(q₁) of two coordinates of given kinds."""
    if not callable(function):
        raise ModelError(f"the function is {function!r}; it must be a function of one coordinate")
    arguments = (Argument("first", first), Argument("second", second))

    def residual(q1: Any, q2: Any) -> Any:
        value = function(q1)
        if isinstance(value, bool) or not isinstance(value, Scalar | int | float | np.number):
            raise ModelError(f"the function returned {value!r}; it must return one number")
        return q2 - value

    graph, variables, rows = _traced(name, residual, arguments, ())
    nodes = tuple((node.operation, tuple(a.index for a in node.arguments), node.value) for node in graph.nodes)
    recipe = Recipe(
        "coupling",
        arguments,
        (),
        (),
        (KINDS[second].unit,),
        nodes,
        tuple(variable.index for variable in variables),
        tuple(row.index for row in rows),
    )
    return _assembled(recipe, codegen.user_module((graph, variables, rows)))


def _assembled(recipe: Recipe | ByHand, text: str) -> Primitive:
    made = Primitive(
        -1,
        recipe.name,
        recipe.arguments,
        recipe.parameters,
        recipe.defaults,
        recipe.units,
        (),
        "value",
        None,
        recipe.name,
        text=text,
        origin=recipe,
    )
    return completed(made, len(recipe.rows))


def _arguments(what: str, kinds: Mapping[str, str]) -> tuple[Argument, ...]:
    if not kinds:
        raise ModelError(f"{what} has no features; declare its arguments, as in primitive(i='point', j='point')")
    found: list[Argument] = []
    for name, given_kind in kinds.items():
        kind, _, of = given_kind.partition(" of ") if isinstance(given_kind, str) else (given_kind, "", "")
        if kind not in KINDS:
            offered = ", ".join(map(repr, KINDS))
            raise ModelError(f"{what}: its argument {name!r} is declared as {given_kind!r}; there are {offered}")
        if of and of not in [a.name for a in found]:
            raise ModelError(f"{what}: {name!r} is declared as {given_kind!r}, but no argument {of!r} comes before it")
        if of and (KINDS[kind].is_coordinate or any(KINDS[a.kind].is_coordinate for a in found if a.name == of)):
            raise ModelError(f"{what}: {name!r} is declared as {given_kind!r}, but a coordinate is on two bodies")
        found.append(Argument(name, kind, of))
    return tuple(found)


def _units(what: str, unit: Any) -> tuple[Any, ...]:
    units = (unit,) if isinstance(unit, str) else tuple(unit) if isinstance(unit, list | tuple) else (unit,)
    for one in units:
        if not isinstance(one, str) or one not in LENGTH_POWER:
            raise ModelError(f"{what} has the unit {one!r}; it must be one of {', '.join(map(repr, LENGTH_POWER))}")
    if not units:
        raise ModelError(f"{what} has no unit; give one for all rows, or one for each")
    return units


def _per_row(what: str, units: tuple[Any, ...], rows: int) -> tuple[Any, ...]:
    if len(units) not in (1, rows):
        raise ModelError(f"{what} has {rows} rows but {len(units)} units; give one for all, or one for each")
    return units


def _signature(
    what: str, function: Callable[..., Any], arguments: tuple[Argument, ...]
) -> tuple[tuple[str, ...], tuple[tuple[str, float], ...]]:
    """Names of the parameters, and their defaults."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: Python cannot tell its arguments; wrap it in a plain function") from None
    positional, parameters, defaults = [], [], []
    for p in signature.parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise ModelError(f"{what} takes {p}; name every argument, so that each can be declared")
        if p.kind is p.KEYWORD_ONLY:
            parameters.append(p.name)
            if p.default is not p.empty:
                defaults.append((p.name, _default(what, p.name, p.default)))
        else:
            positional.append(p.name)
    declared = [a.name for a in arguments]
    if positional != declared:
        raise ModelError(
            f"{what} takes the features {positional}, but {declared} are declared; they must be the same, in "
            "that order (parameters come after a *)"
        )
    return tuple(parameters), tuple(defaults)


def _default(what: str, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise ModelError(f"{what}: the default of {name!r} is {value!r}; it must be a finite number")
    return float(value)


def _traced(
    what: str, function: Callable[..., Any], arguments: tuple[Argument, ...], options: tuple[str, ...]
) -> tuple[Graph, list[Scalar], list[Scalar]]:
    """The graph of a function, called once with symbols."""
    graph = Graph()
    kinds = [feature for argument in arguments for feature in KINDS[argument.kind].features]
    variables = [graph.variable(f"x{i}") for i in range(sum(kind.components for kind in kinds))]
    named = {name: graph.variable(f"c{i}") for i, name in enumerate(options)}
    try:
        result = function(*given(arguments, variables), **named)
        rows = _rows(what, graph, result, 0)
    except ModelError:
        raise
    except TracingError as error:
        raise ModelError(f"{what}: {error}") from None
    except RecursionError:
        raise ModelError(f"{what}: its function calls itself without end") from None
    except Exception as error:
        raise ModelError(
            f"{what}: its function raised {type(error).__name__}: {error}; it is called once with traced values"
        ) from error
    if not rows:
        raise ModelError(f"{what} returned no residual; return one, a vector, or a list of them")
    if len(rows) > MOST_ROWS:
        raise ModelError(f"{what} returned {len(rows)} residuals; at most {MOST_ROWS} can be in one primitive")
    for k, row in enumerate(rows):
        if not _depends(row, set(variables)):
            raise ModelError(
                f"{what}: its residual {k} does not depend on any feature; it can never be changed by moving a body"
            )
    return graph, variables, rows


def _rows(what: str, graph: Graph, result: Any, depth: int) -> list[Scalar]:
    """The rows a function returned; numbers in between count as constants, and are refused later."""
    if isinstance(result, Scalar):
        return [graph.lift(result)]
    if isinstance(result, Vector):
        return list(result.components)
    if isinstance(result, list | tuple) and depth < MOST_DEPTH:
        return [row for part in result for row in _rows(what, graph, part, depth + 1)]
    if isinstance(result, np.ndarray) and result.dtype == object and depth < MOST_DEPTH:
        return _rows(what, graph, result.tolist(), depth + 1)
    if isinstance(result, int | float | np.number) and not isinstance(result, bool):
        return [graph.lift(float(result))]
    shown = "a quaternion; return cd.rotation_vector of two" if isinstance(result, Quaternion) else repr(result)[:80]
    raise ModelError(f"{what} returned {shown}; it must return a residual, a vector, or a list of them; {BY_HAND}")


def _depends(row: Scalar, variables: set[Scalar]) -> bool:
    seen: set[int] = set()
    stack = [row]
    while stack:
        node = stack.pop()
        if node in variables:
            return True
        if node.index not in seen:
            seen.add(node.index)
            stack += node.arguments
    return False


def _by_hand(
    what: str,
    name: str,
    value: Callable[..., None],
    derivative: Callable[..., None] | None,
    arguments: tuple[Argument, ...],
    units: tuple[Any, ...],
    rows: Any,
    parameters: Sequence[str],
) -> Primitive:
    if derivative is None or rows is None:
        missing = "derivative=" if derivative is None else "rows="
        raise ModelError(f"{what} by hand needs rows= and derivative=; {missing} is missing")
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST_ROWS:
        raise ModelError(f"{what}: rows is {rows!r}; it must be a whole number from 1 to {MOST_ROWS}")
    if not callable(derivative):
        raise ModelError(f"{what}: its derivative is {derivative!r}; it must be a function df(x, c, out)")
    names = tuple(parameters)
    if not all(isinstance(p, str) and p.isidentifier() for p in names) or len(set(names)) != len(names):
        raise ModelError(f"{what}: parameters is {parameters!r}; it must be a list of different names")
    recipe = ByHand(name, arguments, names, (), _per_row(what, units, rows), tuple(range(rows)), value, derivative)
    check_by_differences(what, recipe)
    return ByHand.rebuild(recipe)


def check_by_differences(what: str, recipe: ByHand) -> None:
    """Compare a derivative given by hand with central differences of f, at a few places drawn once for all."""
    kinds = [kind for argument in recipe.arguments for kind in KINDS[argument.kind].features]
    width, rows = sum(kind.components for kind in kinds), len(recipe.rows)
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = np.concatenate([_sample(kind, rng) for kind in kinds])
        c = rng.uniform(0.5, 1.5, len(recipe.parameters))
        partials = np.full(rows * width, np.nan)
        _call(what, "derivative", recipe.derivative, x, c, partials)
        differences = np.empty((rows, width))
        for j in range(width):
            ends = []
            for sign in (1.0, -1.0):
                moved = x.copy()
                moved[j] += sign * STEP
                out = np.full(rows, np.nan)
                _call(what, "function", recipe.value, moved, c, out)
                ends.append(out)
            differences[:, j] = (ends[0] - ends[1]) / (2.0 * STEP)
        differences[:, _turns(kinds)] = 0.0  # the angle that turns are counted from has no derivative
        error = np.abs(partials.reshape(rows, width) - differences)
        scale = max(1.0, float(np.abs(differences).max()))
        if not error.max() <= AGREES * scale:
            i, j = divmod(int(np.argmax(error)), width)
            raise ModelError(
                f"{what}: the derivative of row {i} by component {j} is {partials.reshape(rows, width)[i, j]:.6g} by "
                f"hand, {differences[i, j]:.6g} by differences"
            )


def _turns(kinds: list[FeatureKind]) -> list[int]:
    at, found = 0, []
    for kind in kinds:
        if kind is FeatureKind.TURN:
            found.append(at)
        at += kind.components
    return found


def _sample(kind: FeatureKind, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
    if kind is FeatureKind.POINT:
        return rng.uniform(-1.0, 1.0, 3)
    values = rng.normal(size=kind.components)
    return values / (1.0 if kind is FeatureKind.TURN else np.linalg.norm(values))


def _call(what: str, which: str, function: Callable[..., None], x: Any, c: Any, out: Any) -> None:
    try:
        function(x.copy(), c.copy(), out)
    except Exception as error:
        raise ModelError(f"{what}: its {which} by hand raised {type(error).__name__}: {error}") from error
    if not np.isfinite(out).all():
        raise ModelError(
            f"{what}: its {which} by hand left {out.tolist()}; it must write a finite number to every place of out"
        )
