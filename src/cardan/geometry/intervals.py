"""Interval arithmetic on expression graphs, for many boxes at once: rigorous ranges of derivatives ([Moore2009]).

Each result is widened by a few units of rounding, so that it contains every value in floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cardan.constraints.expression import Graph, Scalar
from cardan.errors import ModelError
from cardan.geometry.checks import FloatArray

Interval = tuple[FloatArray, FloatArray]

WIDEN = 4.0 * np.finfo(float).eps


def evaluate(graph: Graph, nodes: Sequence[Scalar], boxes: Sequence[Interval]) -> list[Interval]:
    """Ranges of the nodes over boxes of the variables x0, x1, …; each an array of lower and of upper bounds."""
    size = boxes[0][0].shape
    found: dict[int, Interval] = {}
    needed = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node.index not in needed:
            needed.add(node.index)
            stack.extend(node.arguments)
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if node.index not in needed:
                continue
            if node.operation == "constant":
                found[node.index] = np.full(size, node.value, float), np.full(size, node.value, float)
            elif node.operation == "variable":
                found[node.index] = boxes[int(str(node.value)[1:])]
            else:
                arguments = [found[a.index] for a in node.arguments]
                if node.operation == "*" and node.arguments[0] is node.arguments[1]:
                    low, high = _square(*arguments[0])
                else:
                    low, high = _operation(node.operation)(*arguments)
                size_ = WIDEN * np.maximum(np.abs(low), np.abs(high))
                found[node.index] = low - size_, high + size_
    return [found[node.index] for node in nodes]


def _corners(a: Interval, b: Interval, operation: Callable[[FloatArray, FloatArray], FloatArray]) -> Interval:
    values = [operation(x, y) for x in a for y in b]
    return np.minimum.reduce(values), np.maximum.reduce(values)


def _square(low: FloatArray, high: FloatArray) -> Interval:
    least = np.where((low <= 0.0) & (high >= 0.0), 0.0, np.minimum(low * low, high * high))
    return least, np.maximum(low * low, high * high)


def _divide(a: Interval, b: Interval) -> Interval:
    low, high = _corners(a, b, np.divide)
    zero = (b[0] <= 0.0) & (b[1] >= 0.0)
    return np.where(zero, -np.inf, low), np.where(zero, np.inf, high)


def _cosine(a: Interval) -> Interval:
    low, high = a
    ends = np.cos(low), np.cos(high)
    turn = 2.0 * np.pi
    top = np.floor(high / turn) >= np.ceil(low / turn)
    bottom = np.floor((high - np.pi) / turn) >= np.ceil((low - np.pi) / turn)
    return np.where(bottom, -1.0, np.minimum(*ends)), np.where(top, 1.0, np.maximum(*ends))


def _monotonic(function: Callable[[FloatArray], FloatArray]) -> Callable[[Interval], Interval]:
    return lambda a: (function(a[0]), function(a[1]))


def _power(a: Interval, n: Interval) -> Interval:
    exponent = float(n[0].flat[0])
    low, high = a[0] ** exponent, a[1] ** exponent
    if exponent == int(exponent) and exponent > 0 and int(exponent) % 2 == 0:
        least = np.where((a[0] <= 0.0) & (a[1] >= 0.0), 0.0, np.minimum(low, high))
        return least, np.maximum(low, high)
    if exponent < 0.0:
        zero = (a[0] <= 0.0) & (a[1] >= 0.0)
        return np.where(zero, -np.inf, np.minimum(low, high)), np.where(zero, np.inf, np.maximum(low, high))
    return np.minimum(low, high), np.maximum(low, high)


def _norm(*parts: Interval) -> Interval:
    squares = [_square(*p) for p in parts]
    return np.sqrt(sum(s[0] for s in squares)), np.sqrt(sum(s[1] for s in squares))


def _tangent(a: Interval) -> Interval:
    pole = np.floor((a[1] - 0.5 * np.pi) / np.pi) >= np.ceil((a[0] - 0.5 * np.pi) / np.pi)
    return np.where(pole, -np.inf, np.tan(a[0])), np.where(pole, np.inf, np.tan(a[1]))


def _hyperbolic_cosine(a: Interval) -> Interval:
    ends = np.cosh(a[0]), np.cosh(a[1])
    return np.where((a[0] <= 0.0) & (a[1] >= 0.0), 1.0, np.minimum(*ends)), np.maximum(*ends)


_OPERATIONS: dict[str, Callable[..., Interval]] = {
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "*": lambda a, b: _corners(a, b, np.multiply),
    "/": _divide,
    "call cos": _cosine,
    "call sin": lambda a: _cosine((a[0] - 0.5 * np.pi, a[1] - 0.5 * np.pi)),
    "call tan": _tangent,
    "call sqrt": lambda a: (np.sqrt(np.maximum(a[0], 0.0)), np.sqrt(a[1])),
    "call exp": _monotonic(np.exp),
    "call log": _monotonic(np.log),
    "call atan": _monotonic(np.arctan),
    "call asin": _monotonic(np.arcsin),
    "call acos": lambda a: (np.arccos(a[1]), np.arccos(a[0])),
    "call sinh": _monotonic(np.sinh),
    "call cosh": _hyperbolic_cosine,
    "call tanh": _monotonic(np.tanh),
    "call power": _power,
    "call norm3": _norm,
    "call inverse_norm3": lambda *d: _divide((np.ones_like(d[0][0]),) * 2, _norm(*d)),
}


def _operation(name: str) -> Callable[..., Interval]:
    if name.startswith("call unit3_"):
        k = int(name[-1])
        return lambda *d: tuple(np.clip(x, -1.0, 1.0) for x in _divide(d[k], _norm(*d)))
    if name not in _OPERATIONS:
        raise ModelError(f"a traced shape uses {name.removeprefix('call ')}, of which no range can be computed")
    return _OPERATIONS[name]
