"""Equations that know nothing of the world: an identity, and a test of it in which nothing is rounded.

A primitive is indifferent where it states only how its features lie to each other.  A rigid motion of all of them, by
t and a turn ω,

    δP = t + ω × P,   δv = ω × v,   δx = ½ (0, ω) ⊗ x   (points, vectors, orientations),

then changes f by nothing, or f is a vector that is turned along: δf = ω × f.  The graph of f is derived along such a
motion at random features, among the integers modulo a prime.  Sums, products and quotients are exact there, and what is
no identity is zero at random numbers once in 10¹⁷ times.  [Schwartz1980]

All other functions are taken for unknown ones, with a value and derivatives drawn at random: f is indifferent if what
goes into them is.  So exp(−10⁶ z²), which is flat wherever it is tried, does not pass for a constant, and it does not
matter where a function of pieces has its bounds.  What is indifferent for other reasons, as sin² z + cos² z, is not
found out; that is no harm.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from cardan.constraints.expression import Graph, Scalar
from cardan.constraints.registry import FeatureKind

PRIME: Final = 2**61 - 1
TRIES: Final = 2
_HALF: Final = pow(2, -1, PRIME)

Dual = tuple[int, int]  # a value and its change


def is_indifferent(graph: Graph, kinds: Sequence[FeatureKind], rows: Sequence[Scalar]) -> bool:
    """Whether the rows of a primitive of such features state only how these lie to each other."""
    try:
        return all(_holds(graph, kinds, rows, random.Random(seed)) for seed in range(TRIES))
    except ValueError:  # a divisor that is zero for all features
        return False


def _holds(graph: Graph, kinds: Sequence[FeatureKind], rows: Sequence[Scalar], draw: random.Random) -> bool:
    t, omega = ([_drawn(draw) for _ in range(3)] for _ in range(2))
    given = [dual for kind in kinds for dual in _moved(kind, t, omega, draw)]
    values: list[Dual] = []
    lengths: dict[tuple[int, ...], int] = {}
    for node in graph.nodes:
        values.append(_value(node, values, given, lengths, draw))
    f, change = zip(*(values[row.index] for row in rows), strict=True)
    if not any(change):
        return True
    return len(rows) == 3 and list(change) == _cross(omega, f)


def _drawn(draw: random.Random) -> int:
    return draw.randrange(1, PRIME)


def _cross(a: Sequence[int], b: Sequence[int]) -> list[int]:
    return [(a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3]) % PRIME for i in range(3)]


def _moved(kind: FeatureKind, t: list[int], omega: list[int], draw: random.Random) -> list[Dual]:
    """Components of a feature, and how the motion changes them."""
    x = [_drawn(draw) for _ in range(kind.components)]
    if kind is FeatureKind.TURN:
        return [(x[0], 0)]
    if kind is FeatureKind.ORIENTATION:
        w, v = x[0], x[1:]
        scalar = -sum(a * b for a, b in zip(omega, v, strict=True))
        vector = [a * w + c for a, c in zip(omega, _cross(omega, v), strict=True)]
        return [(a, _HALF * d % PRIME) for a, d in zip(x, [scalar, *vector], strict=True)]
    shift = t if kind is FeatureKind.POINT else [0, 0, 0]
    return [(a, (d + s) % PRIME) for a, d, s in zip(x, _cross(omega, x), shift, strict=True)]


def _value(
    node: Scalar, values: list[Dual], given: list[Dual], lengths: dict[tuple[int, ...], int], draw: random.Random
) -> Dual:
    if node.operation == "variable":
        name = str(node.value)
        return given[int(name[1:])] if name.startswith("x") else (_drawn(draw), 0)
    if node.operation == "constant":
        assert isinstance(node.value, float)
        numerator, denominator = node.value.as_integer_ratio()
        return numerator * pow(denominator, -1, PRIME) % PRIME, 0
    arguments = [values[a.index] for a in node.arguments]
    if node.operation.startswith("call "):
        places = tuple(a.index for a in node.arguments)
        return _called(node.operation.removeprefix("call "), arguments, lengths, places, draw)
    (a, da), (b, db) = arguments
    if node.operation == "+":
        return (a + b) % PRIME, (da + db) % PRIME
    if node.operation == "-":
        return (a - b) % PRIME, (da - db) % PRIME
    if node.operation == "*":
        return a * b % PRIME, (da * b + a * db) % PRIME
    inverse = pow(b, -1, PRIME)
    quotient = a * inverse % PRIME
    return quotient, (da - quotient * db) * inverse % PRIME


def _called(
    name: str, arguments: list[Dual], lengths: dict[tuple[int, ...], int], places: tuple[int, ...], draw: random.Random
) -> Dual:
    """Of a vector the length n is an unknown number, with δn = (x δx + y δy + z δz)/n; of the rest all is unknown."""
    if name == "norm3" or name == "inverse_norm3" or name.startswith("unit3_"):
        inverse = lengths.setdefault(places, _drawn(draw))
        stretch = sum(x * dx for x, dx in arguments) * inverse % PRIME
        if name == "norm3":
            return pow(inverse, -1, PRIME), stretch
        if name == "inverse_norm3":
            return inverse, -stretch * inverse * inverse % PRIME
        x, dx = arguments[int(name[-1])]
        return x * inverse % PRIME, (dx - x * inverse * stretch) * inverse % PRIME
    return _drawn(draw), sum(_drawn(draw) * d for _, d in arguments) % PRIME
