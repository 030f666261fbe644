"""Curves and surfaces that are functions of their parameters, recorded once: exact points and derivatives.

    involute = traced(lambda u: (cd.cos(u) + u * cd.sin(u), cd.sin(u) - u * cd.cos(u), 0.0), (0, 2))

The recorded graph (:mod:`cardan.constraints.expression`) gives derivatives up to the third order, and their bounds by
interval arithmetic ([Moore2009]).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from textwrap import dedent
from typing import Any

import numpy as np

from cardan.constraints.codegen import _IMPORTS, _Writer
from cardan.constraints.expression import Graph, Scalar, TracingError, Vector
from cardan.errors import ModelError
from cardan.geometry import intervals, tables
from cardan.geometry.checks import FloatArray
from cardan.geometry.patches import Patch
from cardan.geometry.shape import Shape
from cardan.lazy import LazyModule

_traced = LazyModule("cardan.geometry._traced")

ROOTS = {1: 64, 2: 16}  # boxes per parameter, by the number of parameters

_TEXT = '''"""Kernel of a traced shape, written by cardan.geometry.traced; not to be edited."""
{imports}
from cardan.geometry._quotient import retract


def evaluate(op, ints, floats, q, step, out, jacobian, work):
    """Point and derivatives."""
    if op == 8:
        retract(ints, floats, q, step, out)
        return 0
    x = q
{body}
    return 0
'''


class Traced(Shape):
    """A shape recorded from a function; see :func:`traced`."""

    def __repr__(self) -> str:
        return f"<traced {'surface' if self.freedoms == 2 else 'curve'}>"

    def __init__(self, graph: Graph, rows: list[list[Scalar]], limits: list[tuple[float, float, float]]) -> None:
        freedoms = len(limits)
        self._graph, self._rows = graph, rows
        flat = [x for limit in limits for x in limit] + [0.0] * (6 - 3 * freedoms)
        # more: addresses of the evaluator, and of the tape if it is interpreted
        ints = np.array([freedoms, freedoms, 0, 0, 0, 0, 0, 8, 0, 0], dtype=np.int64)
        self._text = _body(graph, rows, freedoms)
        self._address = 0
        super().__init__("", ints, np.array(flat))

    @property
    def address(self) -> int:
        """Address of the evaluator, which is compiled at first use, or interprets a tape."""
        if not self._address:
            from cardan.constraints.kernels import compiles_functions

            self._address = self._compiled() if compiles_functions() else self._interpreted()
        return self._address

    def _compiled(self) -> int:
        from cardan.constraints.kernels import load_module
        from cardan.kernel import announce, jit

        namespace, _ = load_module(_TEXT.format(imports=_IMPORTS.strip(), body=self._text))
        with announce.named(f"your own {'surface' if self.freedoms == 2 else 'curve'}"):
            return int(jit.evaluator(namespace["evaluate"]))

    def _interpreted(self) -> int:
        self.ints.flags.writeable = True
        self.ints[-1] = self.tape
        self.ints.flags.writeable = False
        return int(_traced.EVALUATE)

    @property
    def tape(self) -> int:
        """Address of the tape, which is the last integer of the table where it is interpreted."""
        from cardan.constraints import tape

        return int(tape.address_of_statements(dedent(self._text)))

    def _evaluate(self, q: FloatArray, order: int, check: bool = False) -> FloatArray:
        """As of every shape.  Samples of contacts are interpreted if the kernel is not compiled yet: they agree with
        its values up to rounding."""
        if check or self._address:
            return super()._evaluate(q, order, check)
        rows = self._rows[: (1, 2, 3, 4)[order] if self.freedoms == 1 else tables.ROWS[order]]
        boxes = [(x, x) for x in np.ascontiguousarray(q.T)]
        values = intervals.evaluate(self._graph, [c for row in rows for c in row], boxes)
        return np.stack([0.5 * (a + b) for a, b in values], axis=1).reshape(len(q), len(rows), 3)

    def patches(self, extent: float) -> list[Patch]:
        """The whole domain; derivative bounds of every root by interval arithmetic."""
        count = ROOTS[self.freedoms]
        axes = [np.linspace(low, high, count + 1) for low, high in self.bounds] + [np.zeros(2)] * (2 - self.freedoms)
        low = [np.repeat(axes[0][:-1], len(axes[1]) - 1), np.tile(axes[1][:-1], len(axes[0]) - 1)]
        high = [np.repeat(axes[0][1:], len(axes[1]) - 1), np.tile(axes[1][1:], len(axes[0]) - 1)]
        boxes = np.stack([low[0], high[0], low[1], high[1]], axis=1)
        nodes = [c for row in self._rows[1:] for c in row]
        values = intervals.evaluate(self._graph, nodes, list(zip(low, high, strict=True))[: self.freedoms])
        sizes = [np.maximum(np.abs(a), np.abs(b)) for a, b in values]
        lengths = np.stack(
            [np.sqrt(sum(s**2 for s in sizes[3 * k : 3 * k + 3])) for k in range(len(nodes) // 3)], axis=1
        )
        bounds = np.zeros((len(boxes), tables.BOUNDS))
        bounds[:, [0, 2, 5] if self.freedoms == 1 else list(range(9))] = lengths
        if not np.isfinite(bounds).all():
            k = int(np.argwhere(~np.isfinite(bounds))[0][0])
            raise ModelError(
                f"the derivatives of the traced shape are not bounded near {boxes[k].tolist()}; choose a domain "
                "without singular points"
            )
        return [Patch(self, self.floats[: tables.LIMITS].tolist(), boxes, "cardan.geometry._taylor", bounds)]

    def to_patch(self, q: FloatArray) -> tuple[int, FloatArray]:
        return 0, q

    def from_patch(self, q: FloatArray, point: FloatArray) -> FloatArray:
        return q[: self.freedoms]


def traced(function: Callable[..., Any], *bounds: Any, period: float | tuple[float, ...] = 0.0) -> Traced:
    """A curve or surface from a function of one or two parameters that returns x, y, z [m].

    bounds: (lower, upper) for each parameter.  period: for each parameter; 0 if it is not periodic.  The function is
    called once with symbols; it computes with operators and cd.sin, cd.cos, ….
    """
    if len(bounds) not in (1, 2):
        raise ModelError(f"{len(bounds)} pairs of bounds are given; give one for a curve, two for a surface")
    periods = (period,) * len(bounds) if isinstance(period, int | float) else tuple(period)
    limits = []
    for (low, high), p in zip(bounds, periods, strict=True):
        if not low < high or not np.isfinite(high - low):
            raise ModelError(f"the bounds are ({low}, {high}); the lower one must be below the upper one, both finite")
        if p and abs(p - (high - low)) > 1e-12 * p:
            raise ModelError(f"the period is {p}, but the bounds span {high - low}; they must be equal")
        limits.append((float(low), float(high), float(p)))
    if len(inspect.signature(function).parameters) != len(bounds):
        raise ModelError(f"the function must have {len(bounds)} arguments, one for each pair of bounds")
    graph = Graph()
    variables = [graph.variable(f"x{i}") for i in range(len(bounds))]
    try:
        value = function(*variables)
        parts = list(value.components if isinstance(value, Vector) else value)
        if len(parts) not in (2, 3):
            raise TracingError(f"it returned {len(parts)} coordinates; it must return two or three")
        point = [graph.lift(c) for c in parts] + [graph.constant(0.0)] * (3 - len(parts))
        rows = [point]
        orders = [[point]]
        for order in range(1, 4):
            new = [_by(graph, row, variables[0]) for row in orders[-1]]
            if len(variables) == 2:
                new.append(_by(graph, orders[-1][-1], variables[1]))
            orders.append(new)
            rows += new
            assert len(new) == (order + 1 if len(variables) == 2 else 1)
    except (TracingError, TypeError) as error:
        raise ModelError(f"the function of the shape cannot be traced: {error}") from None
    return Traced(graph, rows, limits)


def _by(graph: Graph, row: Iterable[Scalar], variable: Scalar) -> list[Scalar]:
    memo: dict[int, Scalar] = {}
    return [graph.derivative(c, {variable: graph.constant(1.0)}, memo) for c in row]


def _body(graph: Graph, rows: list[list[Scalar]], freedoms: int) -> str:
    """Statements: S and first and second derivatives always, third ones if asked for."""
    parts = []
    done = (1, 2, 3) if freedoms == 1 else (1, 3, 6)
    for k, first, last in ((0, 0, done[2]), (3, done[2], len(rows))):
        if k == 0:  # up to the order that is asked for; work is shared by the compiler
            writer = _Writer(graph, [c for row in rows[:last] for c in row])
            parts += writer.lines
            for order, (a, b) in enumerate(zip((0, *done[:2]), done, strict=True)):
                parts.append(f"    if op >= {order}:")
                parts += [
                    f"        out[{3 * i + c}] = {writer.name(rows[i][c])}" for i in range(a, b) for c in range(3)
                ]
        else:
            writer = _Writer(graph, [c for row in rows[first:last] for c in row])
            parts.append("    if op > 2:")
            parts += ["    " + line for line in writer.lines]
            parts += [
                f"        out[{3 * i + c}] = {writer.name(rows[i][c])}" for i in range(first, last) for c in range(3)
            ]
    return "\n".join(parts)
