"""Expression graphs: a primitive's Python function is called with symbols, and the graph records its operations.

A :class:`Graph` interns nodes: equal expressions are one node, so common subexpressions are computed once.  The order
of nodes is a valid order of evaluation.  Derivatives are computed on the graph by the forward rule

    D[g(a, b, …)] = Σ ∂g/∂a · D[a],

once along a unit vector of each feature component (∂f) and twice along a symbolic velocity (ẋᵀ f_xx ẋ, for γ).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NoReturn, Union, overload

from cardan.constraints import coefficients

Number = Union["Scalar", float, int]

MOST_NODES = 10_000  # of a graph with its derivatives: more is an endless loop, or takes minutes to compile

BY_HAND = (
    "a function that needs more than operators and cd.sin, cd.sqrt, … can be given by hand with its derivative: see "
    "help(cd.primitive)"
)

Plain = tuple[str, tuple[int, ...], float | str | None]  # a node: operation, indices of its arguments, value


class TracingError(TypeError):
    """A primitive's function used a traced value in an operation that cannot be recorded."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scalar:
    """One node of a graph: an operation on earlier nodes, a variable, or a constant."""

    graph: Graph
    index: int
    operation: str
    arguments: tuple[Scalar, ...]
    value: float | str | None

    def __add__(self, other: Number) -> Scalar:
        return self.graph.add(self, self.graph.lift(other))

    def __radd__(self, other: Number) -> Scalar:
        return self.graph.add(self.graph.lift(other), self)

    def __sub__(self, other: Number) -> Scalar:
        return self.graph.subtract(self, self.graph.lift(other))

    def __rsub__(self, other: Number) -> Scalar:
        return self.graph.subtract(self.graph.lift(other), self)

    @overload
    def __mul__(self, other: Number) -> Scalar: ...
    @overload
    def __mul__(self, other: Vector) -> Vector: ...
    def __mul__(self, other: Number | Vector) -> Scalar | Vector:
        if isinstance(other, Vector):
            return other * self
        return self.graph.multiply(self, self.graph.lift(other))

    def __rmul__(self, other: Number) -> Scalar:
        return self.graph.multiply(self.graph.lift(other), self)

    def __truediv__(self, other: Number) -> Scalar:
        return self.graph.divide(self, self.graph.lift(other))

    def __rtruediv__(self, other: Number) -> Scalar:
        return self.graph.divide(self.graph.lift(other), self)

    def __pow__(self, exponent: Number) -> Scalar:
        return self.graph.power(self, self.graph.lift(exponent))

    def __rpow__(self, base: Number) -> Scalar:
        return self.graph.power(self.graph.lift(base), self)

    def __neg__(self) -> Scalar:
        return self.graph.multiply(self.graph.constant(-1.0), self)

    def __pos__(self) -> Scalar:
        return self

    # Operations that would end the recording, or record one branch for all poses, raise an error.

    def _refuse_branch(self, *_: object) -> NoReturn:
        raise TracingError(
            "a primitive must not branch on a traced value (if, and, or, not, min, max, abs, a comparison): its "
            f"equations are recorded once and hold for every pose; {BY_HAND}"
        )

    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __abs__ = __eq__ = __ne__ = _refuse_branch
    __hash__ = object.__hash__

    def _refuse_number(self, *_: object) -> NoReturn:
        raise TracingError(
            "a traced value is not a number: use cd.sin, cd.sqrt, … in place of math.sin, math.sqrt, …, and do not "
            f"round it or use it as an index; {BY_HAND}"
        )

    __float__ = __int__ = __index__ = __complex__ = __round__ = __floor__ = __ceil__ = __trunc__ = _refuse_number
    __mod__ = __floordiv__ = __rmod__ = __rfloordiv__ = __divmod__ = __rdivmod__ = _refuse_number
    __and__ = __or__ = __xor__ = __invert__ = __format__ = _refuse_number

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's scalar functions are recorded like those of this library."""
        return traced_ufunc(ufunc, method, inputs, options)

    def plain(self) -> Plain:
        """The node as plain values."""
        return self.operation, tuple(argument.index for argument in self.arguments), self.value

    @property
    def is_zero(self) -> bool:
        return self.operation == "constant" and self.value == 0.0

    @property
    def is_one(self) -> bool:
        return self.operation == "constant" and self.value == 1.0

    def __repr__(self) -> str:
        return f"<traced {self.operation}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Vector:
    """Three scalars: a world point or vector, with components x, y, z."""

    x: Scalar
    y: Scalar
    z: Scalar

    @property
    def components(self) -> tuple[Scalar, Scalar, Scalar]:
        return self.x, self.y, self.z

    def __getitem__(self, k: int) -> Scalar:
        return self.components[k]

    def __iter__(self) -> Iterator[Scalar]:
        return iter(self.components)

    def __len__(self) -> int:
        return 3

    def lifted(self, other: Any) -> Vector:
        """other, a vector or three numbers, as a vector."""
        if isinstance(other, Vector):
            return other
        if isinstance(other, Scalar | Quaternion | str | bytes | numbers.Number) or not _has_length(other, 3):
            raise TracingError(f"a vector can be combined with a vector or with three numbers, not with {other!r}")
        return Vector(*(self.x.graph.lift(c) for c in other))

    def __add__(self, other: Any) -> Vector:
        return Vector(*(a + b for a, b in zip(self.components, self.lifted(other).components, strict=True)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Vector:
        return Vector(*(a - b for a, b in zip(self.components, self.lifted(other).components, strict=True)))

    def __rsub__(self, other: Any) -> Vector:
        return self.lifted(other) - self

    def __mul__(self, factor: Number) -> Vector:
        if isinstance(factor, Vector | Quaternion) or not isinstance(factor, Scalar | numbers.Real):
            raise TracingError(
                f"a vector can be multiplied by a number, not by {factor!r}; for products of two vectors use cd.dot or "
                "cd.cross"
            )
        return Vector(*(a * factor for a in self.components))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Number) -> Vector:
        return Vector(*(a / divisor for a in self.components))

    def __matmul__(self, other: Any) -> Scalar:
        return dot(self, self.lifted(other))

    def __rmatmul__(self, other: Any) -> Scalar | Vector:
        """A 3×3 matrix of numbers times this vector, or three numbers · this vector."""
        if _has_length(other, 3) and all(_has_length(row, 3) for row in other):
            return Vector(*(dot(self.lifted(row), self) for row in other))
        return dot(self.lifted(other), self)

    def __neg__(self) -> Vector:
        return self * -1.0

    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __abs__ = __eq__ = __ne__ = Scalar._refuse_branch
    __hash__ = object.__hash__
    __float__ = Scalar._refuse_number

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return traced_ufunc(ufunc, method, inputs, options)

    def __repr__(self) -> str:
        return "<traced vector>"


def _has_length(value: Any, length: int) -> bool:
    return (isinstance(value, Sequence) and len(value) == length) or getattr(value, "shape", None) == (length,)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Quaternion:
    """Four scalars (w, x, y, z): the world orientation of a frame."""

    w: Scalar
    x: Scalar
    y: Scalar
    z: Scalar

    @property
    def components(self) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        return self.w, self.x, self.y, self.z

    def __getitem__(self, k: int) -> Scalar:
        return self.components[k]

    def __iter__(self) -> Iterator[Scalar]:
        return iter(self.components)

    def __len__(self) -> int:
        return 4

    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = Scalar._refuse_branch
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "<traced quaternion>"


def digests(nodes: Sequence[Plain], rows: Sequence[int]) -> tuple[bytes, ...]:
    """A digest of the expression of each row.  Sums and products do not depend on the order of their terms.

    Other nodes, and their order, do not matter.
    """
    found: list[bytes] = []  # by node
    for operation, arguments, value in nodes:
        terms = [found[k] for k in arguments]
        if operation in ("+", "*"):
            terms.sort()
        found.append(sha256(b"|".join([f"{operation} {value!r}".encode(), *terms])).digest())
    return tuple([found[row] for row in rows])


class Graph:
    """Interned nodes of one primitive."""

    def __init__(self) -> None:
        self.nodes: list[Scalar] = []
        self.rates: dict[Scalar, Scalar] = {}  # of feature variables, in a graph of rates
        self._interned: dict[tuple[str, tuple[int, ...], float | str | None], Scalar] = {}

    def node(self, operation: str, arguments: tuple[Scalar, ...] = (), value: float | str | None = None) -> Scalar:
        """The node for an operation on other nodes: the existing one, or a new one."""
        key = (operation, tuple(argument.index for argument in arguments), value)
        found = self._interned.get(key)
        if found is None:
            if len(self.nodes) >= MOST_NODES:
                raise TracingError(f"a primitive has more than {MOST_NODES} operations; {BY_HAND}")
            found = Scalar(self, len(self.nodes), operation, arguments, value)
            self.nodes.append(found)  # before it can be found: an interrupt between the two leaves an unused node
            self._interned[key] = found
        return found

    def truncate(self, count: int) -> None:
        """Remove all but the first nodes."""
        self._interned = {key: node for key, node in self._interned.items() if node.index < count}
        del self.nodes[count:]

    def variable(self, name: str) -> Scalar:
        return self.node("variable", (), name)

    def constant(self, value: float) -> Scalar:
        return self.node("constant", (), float(value))

    def lift(self, value: Number) -> Scalar:
        if isinstance(value, Scalar):
            if value.graph is not self:
                raise TracingError(
                    "a primitive used a value traced in another call of a primitive; it must use only its own arguments"
                )
            return value
        value = coefficients.plain(value)
        if isinstance(value, Scalar) and value.graph is self:
            return value
        if isinstance(value, numbers.Real) and math.isfinite(value):
            return self.constant(float(value))
        raise TracingError(
            f"a primitive can compute with finite numbers and its own features only, not with {value!r}; {BY_HAND}"
        )

    def add(self, a: Scalar, b: Scalar) -> Scalar:
        if a.is_zero:
            return b
        if b.is_zero:
            return a
        return self._fold("+", a, b)

    def subtract(self, a: Scalar, b: Scalar) -> Scalar:
        if b.is_zero:
            return a
        if a is b:
            return self.constant(0.0)
        if a.is_zero:
            return self.multiply(self.constant(-1.0), b)
        return self._fold("-", a, b)

    def multiply(self, a: Scalar, b: Scalar) -> Scalar:
        if a.is_zero or b.is_zero:
            return self.constant(0.0)
        if a.is_one:
            return b
        if b.is_one:
            return a
        return self._fold("*", a, b)

    def divide(self, a: Scalar, b: Scalar) -> Scalar:
        if b.is_zero:
            raise TracingError("a primitive divides by the constant zero; a divisor must be a feature or non-zero")
        if a.is_zero or b.is_one:
            return a
        return self._fold("/", a, b)

    def power(self, a: Scalar, n: Scalar) -> Scalar:
        if n.value == 2.0:
            return self.multiply(a, a)
        if n.is_one or n.is_zero:
            return a if n.is_one else self.constant(1.0)
        if not self.reads(n, "x"):
            return self.call("power", a, n)
        if isinstance(a.value, float) and a.value <= 0.0:
            raise TracingError(f"a primitive raises {a.value!r} to a traced power; the base must be above zero")
        return self.call("exp", n * self.call("log", a))

    def reads(self, node: Scalar, kind: str) -> bool:
        """Whether a node depends on a variable of a kind: x for features, c for parameters, v for rates."""
        seen = set()
        stack = [node]
        while stack:
            node = stack.pop()
            if node.index not in seen:
                if node.operation == "variable" and str(node.value).startswith(kind):
                    return True
                seen.add(node.index)
                stack += node.arguments
        return False

    def _fold(self, operation: str, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a.value, float) and isinstance(b.value, float):
            return self.lift(_ARITHMETIC[operation](a.value, b.value))
        if operation in "+*" and a.index > b.index:  # commutative: one order, so that equal expressions are one node
            a, b = b, a
        return self.node(operation, (a, b))

    def call(self, name: str, *arguments: Scalar) -> Scalar:
        """A named function of nodes; FUNCTIONS contains its partial derivatives."""
        return self.node(f"call {name}", arguments)

    @classmethod
    def from_plain(cls, nodes: Iterable[Plain], components: int, parameters: int, rates: bool = False) -> Graph:
        """The graph of plain nodes.  Each is checked, since the code generated from them is executed.

        The first nodes are the variables x0, x1, … and c0, c1, …, then v0, v1, … of rates.  ValueError if tracing
        cannot produce a node.
        """
        graph = cls()
        counts = {"x": components, "c": parameters, "v": components if rates else 0}
        names = [f"{kind}{i}" for kind, count in counts.items() for i in range(count)]
        for k, (operation, indices, value) in enumerate(nodes):
            arguments = tuple(graph.nodes[i] for i in indices if 0 <= i < k)
            if operation == "variable":
                valid = names[k : k + 1] == [value]
            elif operation == "constant":
                valid = type(value) is float and math.isfinite(value)
            else:
                called = FUNCTIONS.get(operation.removeprefix("call "), ()) if operation.startswith("call ") else ()
                count = 2 if operation in _ARITHMETIC else len(called)
                valid = value is None and len(arguments) == count > 0
            if not valid or len(arguments) != len(indices):
                raise ValueError(f"node {k} of a graph is {(operation, indices, value)!r}")
            if graph.node(operation, arguments, value).index != k:
                raise ValueError(f"node {k} of a graph is a duplicate")
        if len(graph.nodes) < len(names):
            raise ValueError(f"a graph of {len(graph.nodes)} nodes does not contain all of the variables {names}")
        return graph

    def at_rest(self, of: Scalar) -> Scalar:
        """The expression with all rates zero."""
        found: list[Scalar] = []
        combine = {"+": self.add, "-": self.subtract, "*": self.multiply, "/": self.divide}
        for node in self.nodes[: of.index + 1]:
            arguments = tuple(found[argument.index] for argument in node.arguments)
            if node.operation == "variable" and str(node.value).startswith("v"):
                found.append(self.constant(0.0))
            elif node.operation in combine:
                found.append(combine[node.operation](*arguments))
            else:
                found.append(self.node(node.operation, arguments, node.value))
        return found[of.index]

    def derivative(self, of: Scalar, seeds: Mapping[Scalar, Scalar], memo: dict[int, Scalar]) -> Scalar:
        """D[of], with D[variable] = seeds[variable] and zero for every other variable."""
        stack = [of]
        while stack:  # no recursion: a graph may be deeper than Python's stack
            node = stack[-1]
            missing = [argument for argument in node.arguments if argument.index not in memo]
            if missing and node.index not in memo:
                stack += missing
                continue
            stack.pop()
            if node.index not in memo:
                memo[node.index] = self._derivative(node, seeds, memo)
        return memo[of.index]

    def _derivative(self, of: Scalar, seeds: Mapping[Scalar, Scalar], memo: dict[int, Scalar]) -> Scalar:
        if of.operation == "constant":
            return self.constant(0.0)
        if of.operation == "variable":
            return seeds.get(of, self.constant(0.0))
        inner = [memo[argument.index] for argument in of.arguments]
        if all(d.is_zero for d in inner):
            return self.constant(0.0)
        if of.operation in _ARITHMETIC:
            (a, b), (da, db) = of.arguments, inner
            if of.operation == "+":
                return da + db
            if of.operation == "-":
                return da - db
            if of.operation == "*":
                return da * b + a * db
            return (da - of * db) / b
        total = self.constant(0.0)
        partials = FUNCTIONS[of.operation.removeprefix("call ")]
        for partial, d in zip(partials, inner, strict=True):
            if not d.is_zero:
                total = total + partial(of, *of.arguments) * d
        return total


_ARITHMETIC: Final[dict[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}

Partial = Callable[..., Scalar]


def _unit_partial(k: int, j: int) -> Partial:
    """∂(d_k/|d|)/∂d_j = (δ_kj − u_k u_j)/|d|."""

    def partial(node: Scalar, x: Scalar, y: Scalar, z: Scalar) -> Scalar:
        graph = node.graph
        other = graph.call(f"unit3_{j}", x, y, z)
        return (float(k == j) - node * other) * graph.call("inverse_norm3", x, y, z)

    return partial


def _inverse_norm_partial(j: int) -> Partial:
    """∂(1/|d|)/∂d_j = −u_j/|d|²."""
    return lambda node, x, y, z: -(node.graph.call(f"unit3_{j}", x, y, z) * node * node)


def _zero(node: Scalar, *_: Scalar) -> Scalar:
    return node.graph.constant(0.0)


def _of_parameters_only(node: Scalar, *_: Scalar) -> Scalar:
    raise AssertionError("bounds and exponents are parameters or constants: no derivative by them is needed")


# Partial derivatives of each function that a graph may call; each is called with (node, *arguments).
FUNCTIONS: Final[dict[str, tuple[Partial, ...]]] = {
    "sqrt": (lambda node, a: 0.5 / node,),
    "sin": (lambda node, a: node.graph.call("cos", a),),
    "cos": (lambda node, a: -node.graph.call("sin", a),),
    "tan": (lambda node, a: 1.0 + node * node,),
    "exp": (lambda node, a: node,),
    "log": (lambda node, a: 1.0 / a,),
    "asin": (lambda node, a: 1.0 / node.graph.call("sqrt", 1.0 - a * a),),
    "acos": (lambda node, a: -1.0 / node.graph.call("sqrt", 1.0 - a * a),),
    "atan": (lambda node, a: 1.0 / (1.0 + a * a),),
    "sinh": (lambda node, a: node.graph.call("cosh", a),),
    "cosh": (lambda node, a: node.graph.call("sinh", a),),
    "tanh": (lambda node, a: 1.0 - node * node,),
    "power": (lambda node, a, n: n * node.graph.power(a, n - 1.0), _of_parameters_only),
    "atan2": (lambda node, s, c: c / (s * s + c * c), lambda node, s, c: -s / (s * s + c * c)),
    "norm3": tuple((lambda node, x, y, z, j=j: node.graph.call(f"unit3_{j}", x, y, z)) for j in range(3)),
    "unit3_0": tuple(_unit_partial(0, j) for j in range(3)),
    "unit3_1": tuple(_unit_partial(1, j) for j in range(3)),
    "unit3_2": tuple(_unit_partial(2, j) for j in range(3)),
    "inverse_norm3": tuple(_inverse_norm_partial(j) for j in range(3)),
    "sign4": (_zero, _zero, _zero, _zero),
    "unwrapped": (
        lambda node, s, c, near: c * node.graph.call("inverse_square2", s, c),
        lambda node, s, c, near: -s * node.graph.call("inverse_square2", s, c),
        _zero,
    ),
    "inverse_square2": (lambda node, s, c: -2.0 * s * node * node, lambda node, s, c: -2.0 * c * node * node),
    "beyond": (
        lambda node, a, lower, upper: node.graph.call("outside", a, lower, upper),
        _of_parameters_only,
        _of_parameters_only,
    ),
    "outside": (_zero, _zero, _zero),
    "angle_ratio": (lambda node, s, w: node.graph.call("angle_ratio_s", s, w), lambda node, s, w: -2.0 / (s + w * w)),
    "angle_ratio_s": (
        lambda node, s, w: node.graph.call("angle_ratio_ss", s, w),
        lambda node, s, w: 2.0 / ((s + w * w) * (s + w * w)),
    ),
    # of a table in the parameters of the primitive; see cardan.constraints.spline
    "spline_0": (lambda node, a: node.graph.call("spline_1", a),),
    "spline_1": (lambda node, a: node.graph.call("spline_2", a),),
}  # angle_ratio_ss and spline_2 appear only in second derivatives, so they need no entry


def dot(a: Vector, b: Vector) -> Scalar:
    """a·b"""
    (ax, ay, az), (bx, by, bz) = a.components, b.components
    return ax * bx + ay * by + az * bz


def cross(a: Vector, b: Vector) -> Vector:
    """a × b"""
    (ax, ay, az), (bx, by, bz) = a.components, b.components
    return Vector(ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)


def norm(a: Vector) -> Scalar:
    """|a|; at a = 0 its gradient is (1, 0, 0)."""
    return a.x.graph.call("norm3", *a.components)


def cos(a: Scalar) -> Scalar:
    return a.graph.call("cos", a)


def atan2(s: Scalar, c: Scalar) -> Scalar:
    return s.graph.call("atan2", s, c)


def counted_angle(x: Vector, y: Vector, v: Vector, near: Scalar) -> Scalar:
    """Angle [rad] of v about x × y, from x towards y, whole turns included: the value nearest to ``near``."""
    s, c = dot(y, v), dot(x, v)
    return s.graph.call("unwrapped", s, c, near)


def inclination(u: Vector, v: Vector) -> Scalar:
    """Angle [rad] between two axes, in [0, π]: atan2(|u × v|, u·v)."""
    return atan2(norm(cross(u, v)), dot(u, v))


def beyond(a: Scalar, lower: Scalar, upper: Scalar) -> Scalar:
    """Signed excess of a over [lower, upper]: a − upper, a − lower, or zero within."""
    return a.graph.call("beyond", a, lower, upper)


def relative_rotation_vector(a: Quaternion, b: Quaternion) -> Vector:
    """φ = log(a* ⊗ b) [rad], |φ| ≤ π, in the axes of frame a; independent of the signs and norms of a and b."""
    (aw, ax, ay, az), (bw, bx, by, bz) = a.components, b.components
    w = aw * bw + ax * bx + ay * by + az * bz
    x = aw * bx - ax * bw - ay * bz + az * by
    y = aw * by - ay * bw - az * bx + ax * bz
    z = aw * bz - az * bw - ax * by + ay * bx
    graph = aw.graph
    sign = graph.call("sign4", w, x, y, z)
    ratio = graph.call("angle_ratio", x * x + y * y + z * z, sign * w)
    return Vector(x, y, z) * (sign * ratio)


_UFUNCS: Final[Mapping[str, str]] = {
    **{name: name for name in ("sin", "cos", "tan", "sqrt", "exp", "log", "sinh", "cosh", "tanh")},
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
}
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "true_divide": lambda a, b: a / b,
    "power": lambda a, b: a**b,
    "matmul": lambda a, b: a @ b,
}


_UNARY: Final[Mapping[str, Callable[[Any], Any]]] = {
    "negative": lambda a: -a,
    "positive": lambda a: a,
    "square": lambda a: a * a,
}


def traced_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """Record a NumPy function of traced values."""
    name = ufunc.__name__
    if method == "__call__" and not options:
        if name in _OPERATORS:
            first, second = (a.tolist() if hasattr(a, "tolist") else a for a in inputs)
            return _OPERATORS[name](first, second)
        if name in _UNARY:
            return _UNARY[name](inputs[0])
        if name in _UFUNCS and not any(isinstance(a, Vector) for a in inputs):
            graph = next(a.graph for a in inputs if isinstance(a, Scalar))
            return graph.call(_UFUNCS[name], *(graph.lift(a) for a in inputs))
    raise TracingError(f"numpy.{name} of a traced value cannot be recorded; {BY_HAND}")
