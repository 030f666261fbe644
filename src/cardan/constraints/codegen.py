"""Write the kernels of all registered primitives: ``python -m cardan.constraints.codegen``.

From each primitive's graph come f with ∂f/∂x (one function: they share most of their terms) and the velocity-product
term ẋᵀ f_xx ẋ of γ (another, compiled only where accelerations are asked for), and one chooser over the codes for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import cardan.constraints.primitives  # noqa: F401  (fills the registry)
from cardan.constraints.expression import Graph, Scalar
from cardan.constraints.registry import REGISTRY, Primitive

TARGET = Path(__file__).with_name("_generated.py")

_HEADER = '''"""Kernels of the primitives, written by cardan.constraints.codegen; not to be edited."""

from math import atan2, cos, sin, sqrt  # noqa: F401

from cardan._jit import inner
from cardan.math._kernels import (  # noqa: F401
    angle_ratio,
    angle_ratio_s,
    angle_ratio_ss,
    inverse_norm3,
    norm3,
    sign4,
    unit3,
)
'''


class _Writer:
    """Straight-line statements for the nodes that some outputs need, in the order of the graph.

    Few operations compile fast: zeros are stored by one loop, and arrays are passed as slices, so that no index is
    added.
    """

    def __init__(self, graph: Graph, outputs: Iterable[Scalar]) -> None:
        needed = set()
        stack = [output for output in outputs]
        while stack:
            node = stack.pop()
            if node.index not in needed:
                needed.add(node.index)
                stack.extend(node.arguments)
        self.lines: list[str] = []
        self._names: dict[int, str] = {}
        for node in graph.nodes:
            if node.index in needed:
                self._write(node)

    def name(self, node: Scalar) -> str:
        return self._names[node.index]

    def _write(self, node: Scalar) -> None:
        arguments = [self._names[argument.index] for argument in node.arguments]
        if node.operation == "constant":
            self._names[node.index] = repr(node.value)
            return
        name = str(node.value) if node.operation == "variable" else f"t{node.index}"
        self._names[node.index] = name
        if node.operation == "variable":
            kind, position = name[0], int(name[1:])
            source = {"x": f"x[{position}]", "v": f"rate[{position}]", "c": f"c[{position}]"}[kind]
            self.lines.append(f"    {name} = {source}")
        elif node.operation.startswith("call "):
            function = node.operation.removeprefix("call ")
            if function.startswith("unit3_"):
                function, arguments = "unit3", [function.removeprefix("unit3_"), *arguments]
            self.lines.append(f"    {name} = {function}({', '.join(arguments)})")
        else:
            self.lines.append(f"    {name} = {f' {node.operation} '.join(arguments)}")


def _value_kernel(primitive: Primitive) -> str:
    graph, variables, rows = primitive.trace()
    one = graph.constant(1.0)
    partials = []
    for variable in variables:
        memo: dict[int, Scalar] = {}
        partials.append([graph.derivative(row, {variable: one}, memo) for row in rows])
    outputs = [*rows, *(p for column in partials for p in column)]
    writer = _Writer(graph, [output for output in outputs if not output.is_zero])
    width = len(variables)
    body = list(writer.lines)
    body += [f"    f[{i}] = {writer.name(row)}" for i, row in enumerate(rows)]
    body += [f"    for i in range({width * len(rows)}):", "        df[i] = 0.0"]
    for j, column in enumerate(partials):
        body += [f"    df[{i * width + j}] = {writer.name(p)}" for i, p in enumerate(column) if not p.is_zero]
    return "\n".join(
        [
            "@inner",
            f"def {primitive.name}(x, c, f, df):",
            f'    """f and ∂f/∂x of {primitive.name}: {primitive.rows} rows, {width} feature components."""',
            *body,
        ]
    )


def _curvature_kernel(primitive: Primitive) -> str:
    graph, variables, rows = primitive.trace()
    seeds = {variable: graph.variable(f"v{i}") for i, variable in enumerate(variables)}
    first: dict[int, Scalar] = {}
    rates = [graph.derivative(row, seeds, first) for row in rows]
    second: dict[int, Scalar] = {}
    curvatures = [graph.derivative(rate, seeds, second) for rate in rates]
    writer = _Writer(graph, curvatures)
    body = [*writer.lines, *(f"    g[{i}] = {writer.name(c)}" for i, c in enumerate(curvatures))]
    return "\n".join(
        [
            "@inner",
            f"def {primitive.name}_curvature(x, rate, c, g):",
            f'    """ẋᵀ f_xx ẋ of {primitive.name}, {primitive.rows} rows."""',
            *body,
        ]
    )


def _chooser(name: str, arguments: str, suffix: str, text: str) -> str:
    lines = ["@inner", f"def {name}(code, {arguments}):", f'    """{text}"""']
    for position, primitive in enumerate(REGISTRY.values()):
        keyword = "if" if position == 0 else "elif"
        lines += [f"    {keyword} code == {primitive.code}:", f"        {primitive.name}{suffix}({arguments})"]
    return "\n".join(lines)


def generate() -> str:
    """The text of the module of generated kernels."""
    parts = [_HEADER]
    parts += [_value_kernel(p) for p in REGISTRY.values()]
    parts.append(_chooser("evaluate_primitive", "x, c, f, df", "", "f and ∂f/∂x of a primitive."))
    parts += [_curvature_kernel(p) for p in REGISTRY.values()]
    parts.append(_chooser("primitive_curvature", "x, rate, c, g", "_curvature", "ẋᵀ f_xx ẋ."))
    return "\n\n\n".join(part.rstrip() for part in parts) + "\n"


if __name__ == "__main__":
    TARGET.write_text(generate(), encoding="utf-8")
