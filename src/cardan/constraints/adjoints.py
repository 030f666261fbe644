"""Reverse kernels of primitives: two scalars are formed on the graph and differentiated by one sweep from the end.

With the features x, their rates ẋ and biases b, weights w of the rows, and Y_r, the rates of the features under the row
of J̄ that belongs to row r:

    linear  ψ₁ = Σ_r w_r f_r + Σ_r f_r,x · Y_r            (adjoint of f and J)
    curved  ψ₂ = Σ_r w_r (ẋᵀ f_r,xx ẋ + f_r,x b)          (adjoint of −γ)

ψ₂ has third derivatives of f, contracted: no tensor is formed.  A sweep takes a few times as long as ψ itself.  Both
kernels have the arguments of a curvature, ``(x, given, c, g)``:

====== ============== =========================================
linear given = (w, Y) g ← (∂ψ₁/∂x, ∂ψ₁/∂c)
curved given = (ẋ, b, w) g ← (∂ψ₂/∂x, ∂ψ₂/∂ẋ, ∂ψ₂/∂b, ∂ψ₂/∂c)
====== ============== =========================================
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from cardan.constraints import codegen, tape
from cardan.constraints.expression import FUNCTIONS, Graph, Scalar, TracingError
from cardan.constraints.registry import Primitive

LEAST_SQUARE: Final = 1e-30  # added to the square of half an angle, against division by zero


def _third_of_angle_ratio(node: Scalar, s: Scalar, w: Scalar) -> Scalar:
    """∂³h/∂s³ = (2 w/(s + w²)³ − 5/2 ∂²h/∂s²)/s.  Near s = 0 its rounding is multiplied by ṡ³, which vanishes there."""
    r = s + w * w
    return (2.0 * w / (r * r * r) - 2.5 * node) / (s + LEAST_SQUARE)


# derivatives of functions that appear only in second derivatives
PARTIALS: Final = {
    **FUNCTIONS,
    "angle_ratio_ss": (_third_of_angle_ratio, lambda node, s, w: -4.0 / ((s + w * w) * (s + w * w) * (s + w * w))),
}


def gradient(graph: Graph, of: Scalar, variables: Sequence[Scalar]) -> list[Scalar]:
    """∂of/∂variable of all variables, by one sweep from the end of the graph.

    KeyError if a function in it has no derivative.
    """
    bar = {of.index: graph.constant(1.0)}
    needed: set[int] = set()
    stack = [of]
    while stack:
        node = stack.pop()
        if node.index not in needed:
            needed.add(node.index)
            stack.extend(node.arguments)
    for index in sorted(needed, reverse=True):
        node, b = graph.nodes[index], bar.get(index)
        if b is None or b.is_zero or not node.arguments:
            continue
        for argument, part in zip(node.arguments, _parts(node, b), strict=True):
            if argument.operation != "constant":
                known = bar.get(argument.index)
                bar[argument.index] = part if known is None else known + part
    zero = graph.constant(0.0)
    return [bar.get(variable.index, zero) for variable in variables]


def _parts(node: Scalar, b: Scalar) -> Sequence[Scalar]:
    """b · ∂node/∂argument of each argument."""
    if node.operation == "+":
        return b, b
    if node.operation == "-":
        return b, -b
    if node.operation == "*":
        return b * node.arguments[1], node.arguments[0] * b
    if node.operation == "/":
        quotient = b / node.arguments[1]
        return quotient, -(quotient * node)
    partials = PARTIALS[node.operation.removeprefix("call ")]
    zero = node.graph.constant(0.0)
    return [
        zero if argument.operation == "constant" else b * partial(node, *node.arguments)
        for argument, partial in zip(node.arguments, partials, strict=True)
    ]


Outputs = list[Scalar]


def linear(graph: Graph, variables: Sequence[Scalar], rows: Sequence[Scalar], parameters: int) -> Outputs:
    """∂ψ₁/∂x and ∂ψ₁/∂c."""
    n, count = len(variables), len(rows)
    psi = graph.constant(0.0)
    for i, row in enumerate(rows):
        along = {x: graph.variable(f"v{count + n * i + j}") for j, x in enumerate(variables)}
        psi = psi + graph.variable(f"v{i}") * row + graph.derivative(row, along, {})
    return gradient(graph, psi, [*variables, *[graph.variable(f"c{i}") for i in range(parameters)]])


def curved(graph: Graph, variables: Sequence[Scalar], rows: Sequence[Scalar], parameters: int) -> Outputs:
    """∂ψ₂/∂x, ∂ψ₂/∂ẋ, ∂ψ₂/∂b and ∂ψ₂/∂c."""
    n = len(variables)
    rates = {x: graph.variable(f"v{j}") for j, x in enumerate(variables)}
    biases = {x: graph.variable(f"v{n + j}") for j, x in enumerate(variables)}
    psi, first, second, third = graph.constant(0.0), dict[int, Scalar](), dict[int, Scalar](), dict[int, Scalar]()
    for i, row in enumerate(rows):
        speed = graph.derivative(row, rates, first)
        part = graph.derivative(speed, rates, second) + graph.derivative(row, biases, third)
        psi = psi + graph.variable(f"v{2 * n + i}") * part
    of = [*variables, *rates.values(), *biases.values(), *[graph.variable(f"c{i}") for i in range(parameters)]]
    return gradient(graph, psi, of)


def trace(primitive: Primitive) -> codegen.Trace:
    """The graph of a primitive; its numbers are parameters behind the declared ones."""
    if primitive.code >= 0:
        return primitive.trace()
    recipe = primitive.origin
    graph = Graph.from_plain(recipe.nodes, primitive.components, len(primitive.parameters))
    given = graph, graph.nodes[: primitive.components], [graph.nodes[k] for k in recipe.rows]
    return codegen.constants_as_data(given, len(primitive.parameters))[0]


@cache
def addresses(primitive: Primitive) -> tuple[int, int]:
    """Codes of the linear and of the curved kernel; zeros if it has none.

    Those of inline primitives are compiled, the others are tapes (:mod:`.tape`).
    """
    if not primitive.is_traced or primitive.is_contact or primitive.of_rates or not _is_plain(primitive):
        return 0, 0
    count = len(primitive.parameters) + len(primitive.constants)
    try:
        return _tape(linear, primitive, count), _tape(curved, primitive, count)
    except (KeyError, AssertionError, TracingError):  # a function without another derivative, or a graph too large
        return 0, 0


def _is_plain(primitive: Primitive) -> bool:
    return primitive.code >= 0 or hasattr(primitive.origin, "nodes")


def _tape(kernel: Any, primitive: Primitive, count: int) -> int:
    graph, variables, rows = trace(primitive)
    outputs = kernel(graph, variables, rows, count)
    text = codegen.adjoint_kernel("primitive", graph, outputs)
    return int(tape.address(text, "primitive"))
