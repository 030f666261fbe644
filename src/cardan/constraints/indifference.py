"""Equations that do not depend on the world frame: an identity, and an exact test of it.

A primitive is indifferent where it states only how its features lie to each other.  A rigid motion of all of them, by
a translation t and a rotation ω,

    δP = t + ω × P,   δv = ω × v,   δx = ½ (0, ω) ⊗ x   (points, vectors, orientations),

then does not change f, or f is a vector that rotates with the features: δf = ω × f.  The graph of f is differentiated
along such a motion at random features, in the integers modulo a prime.  Sums, products and quotients are exact there,
and what is no identity is zero at random numbers with probability 10⁻¹⁷.  [Schwartz1980]  Two primes are used:
constants may be equal modulo one of them, as 2⁶¹ and 1 are, but no power of two that a float has is 1 modulo both.

All other functions are treated as unknown, with random values and derivatives: f is indifferent if their arguments
are.  So exp(−10⁶ z²), which is flat at every sample, is not taken for a constant, and the bounds of piecewise functions
do not matter.  What is indifferent for other reasons, as sin² z + cos² z, is not recognised; that is harmless.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from cardan.constraints.expression import Graph, Scalar
from cardan.constraints.registry import FeatureKind

PRIMES: Final = (2**61 - 1, 2**89 - 1)

Dual = tuple[int, int]  # a value and its change


def is_indifferent(graph: Graph, kinds: Sequence[FeatureKind], rows: Sequence[Scalar]) -> bool:
    """Whether the rows of a primitive of such features state only how these lie to each other."""
    try:
        return all(_Trial(prime).holds(graph, kinds, rows) for prime in PRIMES)
    except ValueError:  # a divisor that is zero for all features
        return False


class _Trial:
    """One derivation at random features, modulo a prime."""

    def __init__(self, prime: int) -> None:
        self.prime = prime
        self.random = random.Random(prime)
        self.lengths: dict[tuple[int, ...], int] = {}  # 1/|d| by the nodes of d

    def holds(self, graph: Graph, kinds: Sequence[FeatureKind], rows: Sequence[Scalar]) -> bool:
        """Whether δf is zero, or ω × f."""
        t, omega = ([self.drawn() for _ in range(3)] for _ in range(2))
        given = [dual for kind in kinds for dual in self.moved(kind, t, omega)]
        values: list[Dual] = []
        for node in graph.nodes:
            values.append(self.value(node, values, given))
        f, change = zip(*(values[row.index] for row in rows), strict=True)
        if not any(change):
            return True
        return len(rows) == 3 and list(change) == self.cross(omega, f)

    def drawn(self) -> int:
        return self.random.randrange(1, self.prime)

    def inverse(self, a: int) -> int:
        return pow(a, -1, self.prime)

    def cross(self, a: Sequence[int], b: Sequence[int]) -> list[int]:
        pairs = ((1, 2), (2, 0), (0, 1))
        return [(a[j] * b[k] - a[k] * b[j]) % self.prime for j, k in pairs]

    def moved(self, kind: FeatureKind, t: list[int], omega: list[int]) -> list[Dual]:
        """Components of a feature, and how the motion changes them."""
        x = [self.drawn() for _ in range(kind.components)]
        if kind is FeatureKind.ANGLE:
            return [(x[0], 0)]
        if kind is FeatureKind.ORIENTATION:
            w, v = x[0], x[1:]
            scalar = -sum(a * b for a, b in zip(omega, v, strict=True))
            vector = [a * w + c for a, c in zip(omega, self.cross(omega, v), strict=True)]
            half = self.inverse(2)
            return [(a, half * d % self.prime) for a, d in zip(x, [scalar, *vector], strict=True)]
        shift = t if kind is FeatureKind.POINT else [0, 0, 0]
        return [(a, (d + s) % self.prime) for a, d, s in zip(x, self.cross(omega, x), shift, strict=True)]

    def value(self, node: Scalar, values: list[Dual], given: list[Dual]) -> Dual:
        """Of a node, from those before it."""
        p = self.prime
        if node.operation == "variable":
            name = str(node.value)
            return given[int(name[1:])] if name.startswith("x") else (self.drawn(), 0)
        if node.operation == "constant":
            assert isinstance(node.value, float)
            numerator, denominator = node.value.as_integer_ratio()
            return numerator * self.inverse(denominator) % p, 0
        arguments = [values[a.index] for a in node.arguments]
        if node.operation.startswith("call "):
            return self.called(node.operation.removeprefix("call "), arguments, tuple(a.index for a in node.arguments))
        (a, da), (b, db) = arguments
        if node.operation == "+":
            return (a + b) % p, (da + db) % p
        if node.operation == "-":
            return (a - b) % p, (da - db) % p
        if node.operation == "*":
            return a * b % p, (da * b + a * db) % p
        inverse = self.inverse(b)
        quotient = a * inverse % p
        return quotient, (da - quotient * db) * inverse % p

    def called(self, name: str, arguments: list[Dual], nodes: tuple[int, ...]) -> Dual:
        """Of a vector the length n is an unknown number, with δn = (x δx + y δy + z δz)/n; of others all is unknown."""
        p = self.prime
        if name == "norm3" or name == "inverse_norm3" or name.startswith("unit3_"):
            inverse = self.lengths.setdefault(nodes, self.drawn())
            stretch = sum(x * dx for x, dx in arguments) * inverse % p
            if name == "norm3":
                return self.inverse(inverse), stretch
            if name == "inverse_norm3":
                return inverse, -stretch * inverse * inverse % p
            x, dx = arguments[int(name[-1])]
            return x * inverse % p, (dx - x * inverse * stretch) * inverse % p
        return self.drawn(), sum(self.drawn() * d for _, d in arguments) % p
