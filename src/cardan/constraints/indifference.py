"""Frame indifference: whether a primitive is invariant under rigid motion of all its features, tested without rounding.

A primitive is indifferent if it depends only on the relative placement of its features.  An infinitesimal rigid motion
of all features, with translation t and rotation ω,

    δP = t + ω × P,   δv = ω × v,   δx = ½ (0, ω) ⊗ x   (points, vectors, orientations),

then gives δf = 0, or δf = ω × f if f is a vector that rotates with the features.  The graph of f is differentiated
along such a motion at random features, in integers modulo a prime.  There, sums, products and quotients are exact.  An
expression that is not identically zero is zero at random numbers with a probability of about 10⁻¹⁷.  [Schwartz1980]
Two primes are used: different constants may be equal modulo one of them, as 2⁶¹ and 1 are, but no power of two in the
range of a float is 1 modulo both.

All other functions are treated as unknown: their values and derivatives are random numbers.  Then f is indifferent if
the arguments of these functions are.  So exp(−10⁶ z²), which is flat at most samples, is not mistaken for a constant,
and the bounds of a piecewise function have no effect.  A function that is indifferent for other reasons, such as
sin² z + cos² z, is not recognised; this does no harm.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from cardan.constraints.expression import Graph, Scalar
from cardan.constraints.registry import FeatureKind

PRIMES: Final = (2**61 - 1, 2**89 - 1)

Dual = tuple[int, int]  # a value and its derivative along the motion


def is_indifferent(graph: Graph, kinds: Sequence[FeatureKind], rows: Sequence[Scalar]) -> bool:
    """Whether the rows of a primitive depend only on the relative placement of its features."""
    try:
        return all(_Trial(prime).holds(graph, kinds, rows) for prime in PRIMES)
    except ValueError:  # a divisor is identically zero
        return False


class _Trial:
    """One differentiation at random features, modulo a prime."""

    def __init__(self, prime: int) -> None:
        self.prime = prime
        self.random = random.Random(prime)
        self.inverse_norms: dict[tuple[int, ...], int] = {}  # 1/|d| by the nodes of d

    def holds(self, graph: Graph, kinds: Sequence[FeatureKind], rows: Sequence[Scalar]) -> bool:
        """Whether δf = 0 or δf = ω × f."""
        t, omega = ([self.draw() for _ in range(3)] for _ in range(2))
        given = [dual for kind in kinds for dual in self.moved(kind, t, omega)]
        values: list[Dual] = []
        for node in graph.nodes:
            values.append(self.value(node, values, given))
        f, change = zip(*(values[row.index] for row in rows), strict=True)
        if not any(change):
            return True
        return len(rows) == 3 and list(change) == self.cross(omega, f)

    def draw(self) -> int:
        return self.random.randrange(1, self.prime)

    def inverse(self, a: int) -> int:
        return pow(a, -1, self.prime)

    def cross(self, a: Sequence[int], b: Sequence[int]) -> list[int]:
        pairs = ((1, 2), (2, 0), (0, 1))
        return [(a[j] * b[k] - a[k] * b[j]) % self.prime for j, k in pairs]

    def moved(self, kind: FeatureKind, t: list[int], omega: list[int]) -> list[Dual]:
        """Components of a feature, and their derivatives along the motion."""
        x = [self.draw() for _ in range(kind.components)]
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
        """Value of a node, from the values of earlier nodes."""
        p = self.prime
        if node.operation == "variable":
            name = str(node.value)
            return given[int(name[1:])] if name.startswith("x") else (self.draw(), 0)
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
        """Value of a function: random; but the norm n of a vector has δn = (x δx + y δy + z δz)/n."""
        p = self.prime
        if name == "norm3" or name == "inverse_norm3" or name.startswith("unit3_"):
            inverse = self.inverse_norms.setdefault(nodes, self.draw())
            stretch = sum(x * dx for x, dx in arguments) * inverse % p
            if name == "norm3":
                return self.inverse(inverse), stretch
            if name == "inverse_norm3":
                return inverse, -stretch * inverse * inverse % p
            x, dx = arguments[int(name[-1])]
            return x * inverse % p, (dx - x * inverse * stretch) * inverse % p
        return self.draw(), sum(self.draw() * d for _, d in arguments) % p
