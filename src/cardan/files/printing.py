"""Recorded functions as text: an expression graph is printed in the grammar of :mod:`.formula`.

A node that is used more than once, or that would nest too deeply, becomes a definition: ``v1 = …;``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from cardan.constraints import coefficients
from cardan.constraints.expression import Graph, Plain, Quaternion, Scalar, TracingError, Vector
from cardan.constraints.registry import traced_arguments
from cardan.constraints.signal import TRIED, Signal, UndefinedError
from cardan.constraints.user import Recipe
from cardan.errors import ModelError
from cardan.files.formula import CONSTANTS, MOST_CHARACTERS, Formula

DEEPEST: Final = 24  # nested operations, then a definition
SAME: Final = 1e-9  # relative: a recorded graph rounds differently
SUM, PRODUCT, UNARY, POWER, ATOM = range(5)  # precedence
_MULTIPLES: Final = {math.pi: ("pi", ATOM, 0), 2.0 * math.pi: ("2*pi", PRODUCT, 0), 0.5 * math.pi: ("pi/2", PRODUCT, 0)}
_SIGNS: Final = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT}


def number(value: float) -> str:
    """The shortest decimal of a number."""
    return repr(value + 0.0).removesuffix(".0") if value == value + 0.0 else repr(value)


def text_of(nodes: Sequence[Plain], row: int, leaves: Mapping[int, str]) -> str:
    """The text of one node of a graph; ``leaves``: names of the nodes that are variables of the text."""
    uses = dict.fromkeys(_reached(nodes, row, leaves), 0)
    for k in uses:
        if k not in leaves:
            for argument in _arguments(nodes, k):
                uses[argument] += 1
    taken = {name.partition(".")[0] for name in leaves.values()} | set(CONSTANTS)
    definitions: list[str] = []
    made: dict[int, tuple[str, int, int]] = {}  # text, precedence, depth
    for k in sorted(uses):
        text, precedence, depth = made[k] = _node(nodes, k, leaves, made)
        if k != row and precedence < ATOM and nodes[k][0] != "constant" and (uses[k] > 1 or depth > DEEPEST):
            name = _free(taken)
            definitions.append(f"{name} = {text}; ")
            made[k] = name, ATOM, 0
    text = "".join(definitions) + made[row][0]
    if len(text) > MOST_CHARACTERS:
        raise ModelError(f"it has {len(text):,} characters as an expression; at most {MOST_CHARACTERS:,} are allowed")
    return text


def _free(taken: set[str]) -> str:
    k = 1
    while (name := f"v{k}") in taken:
        k += 1
    taken.add(name)
    return name


def _arguments(nodes: Sequence[Plain], k: int) -> tuple[int, ...]:
    """Nodes that the text of a node contains; a − beyond(a, lower, upper) is clip(a, lower, upper)."""
    bounds = _clipped(nodes, k)
    return nodes[k][1] if bounds is None else bounds


def _clipped(nodes: Sequence[Plain], k: int) -> tuple[int, ...] | None:
    operation, arguments, _ = nodes[k]
    if operation == "-" and nodes[arguments[1]][0] == "call beyond" and nodes[arguments[1]][1][0] == arguments[0]:
        return nodes[arguments[1]][1]
    return None


def _reached(nodes: Sequence[Plain], row: int, leaves: Mapping[int, str]) -> list[int]:
    found: dict[int, None] = {}
    stack = [row]
    while stack:
        k = stack.pop()
        if k not in found:
            found[k] = None
            if k not in leaves:
                stack += _arguments(nodes, k)
    return list(found)


def _node(
    nodes: Sequence[Plain], k: int, leaves: Mapping[int, str], made: Mapping[int, tuple[str, int, int]]
) -> tuple[str, int, int]:
    if k in leaves:
        return leaves[k], ATOM, 0
    operation, arguments, value = nodes[k]
    if operation == "constant":
        assert isinstance(value, float)
        if value in _MULTIPLES:
            return _MULTIPLES[value]
        return number(value), UNARY if math.copysign(1.0, value) < 0.0 else ATOM, 0
    if operation == "variable":
        raise ModelError(f"its recorded equation reads {value!r}, which has no name in a file")

    def within(index: int, least: int) -> str:
        text, precedence, _ = made[index]
        return text if precedence >= least else f"({text})"

    bounds = _clipped(nodes, k)
    depth = 1 + max(made[index][2] for index in bounds or arguments)
    if bounds is not None:
        return f"clip({', '.join(made[index][0] for index in bounds)})", POWER, depth
    if operation in _SIGNS:
        a, b = arguments
        for one, other in ((a, b), (b, a)) if operation == "*" else ():
            if nodes[one][0] == "constant" and nodes[one][2] == -1.0:
                return f"-{within(other, POWER)}", UNARY, depth
        own = _SIGNS[operation]
        if operation == "*" and nodes[b][0] == "constant":
            a, b = b, a  # 2*pi * t
        elif operation == "+" and nodes[a][0] == "constant":
            a, b = b, a  # t + 1: one order, whichever was recorded first
        return f"{within(a, own)} {operation} {within(b, own + 1)}", own, depth
    name = operation.removeprefix("call ")
    if name == "power":
        return f"{within(arguments[0], ATOM)}^{within(arguments[1], ATOM)}", POWER, depth
    return f"{name}({', '.join(made[index][0] for index in arguments)})", POWER, depth


def _plain(graph: Graph) -> list[Plain]:
    return [node.plain() for node in graph.nodes]


def traced(function: Callable[..., Any], names: Sequence[str], *rest: Any) -> list[str | float]:
    """What a function of numbers returns, as text; TracingError or another exception if it cannot be recorded."""
    graph = Graph()
    variables = [graph.variable(f"x{k}") for k in range(len(names))]
    with coefficients.standing(lambda formula: formula.recorded(graph)):
        result = function(*variables, *rest)
        result = [graph.lift(item) for item in (result if isinstance(result, list | tuple) else [result])]
    leaves = {node.index: str(node.value) for node in graph.nodes if node.operation == "variable"}
    leaves |= {variable.index: name for variable, name in zip(variables, names, strict=True)}
    found: list[str | float] = []
    for item in result if isinstance(result, list | tuple) else [result]:
        node = graph.lift(item)
        found.append(float(node.value) if node.operation == "constant" and node.value is not None else "")
        if found[-1] == "":
            found[-1] = text_of(_plain(graph), node.index, leaves)
    return found


def signal_text(signal: Signal) -> str | float:
    """The function of a driver as text; ModelError if it cannot be recorded, or if the text gives other values."""
    function = signal.function
    if not callable(function):
        return function
    if isinstance(function, Formula):
        return function.text if not function.constants else _refused_constants(function)
    try:
        (text,) = [number(one) if isinstance(one, float) else one for one in traced(function, ("t",))]
    except (Exception, TracingError) as error:  # the user's function can raise any exception
        raise ModelError(f"its Python function cannot be recorded ({_first(error)}); {WAYS}") from None
    constants = {name: one for f in signal.used for name, one in f.book.parameters_in([f.index]).items()}
    again = Signal(signal.name, Formula(text, ("t",), tuple(constants.items())) if isinstance(text, str) else text)
    again = replace(again, used=(*signal.used, *constants.values()), values=signal.values)
    for time in TRIED:
        try:
            a = signal.jet(time)
        except UndefinedError:
            continue
        b = again.jet(time)
        pairs = ((a.value, b.value), (a.rate, b.rate), (a.acceleration, b.acceleration))
        if not all(math.isclose(x, y, rel_tol=SAME, abs_tol=SAME) for x, y in pairs):
            raise ModelError(f"its Python function gives other values when it is recorded, at t = {time:g} s; {WAYS}")
    return text


def _refused_constants(function: Formula) -> str:
    return str(traced(function, function.variables)[0])


def _first(error: BaseException) -> str:
    return (str(error).partition(";")[0] or type(error).__name__)[:160]


WAYS: Final = (
    "a file can contain functions of operators and cd.sin, cd.sqrt, cd.clip, … without if, abs and comparisons: "
    "rewrite it so, or keep this mechanism as a Python script"
)


def coupling_text(recipe: Recipe) -> str:
    """The function of a coupling q₂ − f(q₁), as an expression in q."""
    graph = Graph.from_plain(recipe.nodes, *_sizes(recipe))
    first, second = _features(recipe, graph)
    row = graph.nodes[recipe.rows[0]]
    if row is second:
        return "0"
    assert row.operation == "-" and row.arguments[0] is second, "a coupling is q2 − f(q1)"
    return text_of(_plain(graph), row.arguments[1].index, {first.index: "q"})


def primitive_rows(recipe: Recipe) -> list[str]:
    """The rows of a recorded primitive, in its arguments (``i.x``, an angle ``first``) and parameters."""
    graph = Graph.from_plain(recipe.nodes, *_sizes(recipe))
    leaves = {}
    for argument, feature in zip(recipe.arguments, _features(recipe, graph), strict=True):
        for name, node in named_components(argument.name, feature):
            leaves[node.index] = name
    count = _sizes(recipe)[0]
    leaves |= {count + k: name for k, name in enumerate(recipe.parameters)}
    return [text_of(_plain(graph), row, leaves) for row in recipe.rows]


def named_components(name: str, feature: Any) -> list[tuple[str, Scalar]]:
    """The components of a traced feature, by their names in a file."""
    if isinstance(feature, Vector):
        return [(f"{name}.{c}", node) for c, node in zip("xyz", feature, strict=True)]
    if isinstance(feature, Quaternion):
        return [(f"{name}.{c}", node) for c, node in zip("wxyz", feature, strict=True)]
    return [(name, feature)]


def _sizes(recipe: Recipe) -> tuple[int, int]:
    from cardan.constraints.registry import features_of

    return sum(kind.components for kind in features_of(recipe.arguments)), len(recipe.parameters)


def _features(recipe: Recipe, graph: Graph) -> list[Any]:
    return list(traced_arguments(recipe.arguments, graph.nodes[: _sizes(recipe)[0]]))
