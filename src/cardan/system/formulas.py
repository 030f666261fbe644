"""Design parameters, and formulas of them in place of numbers of bodies, points, frames and joints.

A mechanism has one :class:`Book`: the graph of all its formulas, and their values at the drawn values of the
parameters.  Analyses read a copy of it, which edits do not change, at values of their own (:class:`Values`).
Formulas are evaluated in the order in which their operations were written, so the results are bitwise those of the
plain number.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import numpy as np

from cardan.calls import explains
from cardan.constraints import coefficients
from cardan.constraints.coefficients import is_standing, meaning_of
from cardan.constraints.expression import FUNCTIONS, Graph, Plain, Scalar, TracingError
from cardan.errors import ModelError, ReadOnlyError

PERIODIC: Final = 1e-9  # relative: a formula that changes by less over a period has that period
_OPERATIONS: Final[dict[str, Callable[..., float]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "call power": lambda a, n: a**n,
    "call atan2": math.atan2,
    **{
        f"call {name}": getattr(math, name)
        for name in ("sqrt", "sin", "cos", "tan", "exp", "log", "asin", "acos", "atan", "sinh", "cosh", "tanh")
    },
}
_OF_ARRAYS: Final[dict[str, Callable[..., Any]]] = {
    **{operation: _OPERATIONS[operation] for operation in "+-*/"},
    "call power": np.power,
    "call atan2": np.arctan2,
    **{f"call a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan")},
    **{f"call {n}": getattr(np, n) for n in ("sqrt", "sin", "cos", "tan", "exp", "log", "sinh", "cosh", "tanh")},
}
_OPERATORS: Final = {np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "truediv", np.power: "pow"}
_NUMPY_NAMES: Final = {
    function: operation.removeprefix("call ")
    for operation, function in _OF_ARRAYS.items()
    if operation.startswith("call ") and operation != "call power"
}


class Condition(NamedTuple):
    """lower < value of a node < upper, or value ≠ 0 if both are zero; ``text`` says of what and what is valid.

    ``user``: the joint that needs it, such as "distance 'rod'"; "" for a frame, which needs it wherever it is used.
    """

    node: int
    lower: float
    upper: float
    text: str
    user: str = ""

    def told(self, value: float) -> str:
        """The message that a value does not satisfy it, without the rounding of its last digits."""
        return f"{self.user and self.user + ': '}{self.text.format(value=float(format(value, '.12g')))}"

    def broken(self, values: Sequence[float]) -> str:
        """The message that it is not satisfied at these values of all nodes; "" if it is."""
        value = values[self.node]
        return "" if self.holds(value) else self.told(value)

    def holds_in(self, found: Sequence[Any]) -> Any:
        """Whether it is satisfied at many values of all nodes, shape (n,) or () each."""
        return self.holds(found[self.node])

    def holds(self, value: Any) -> Any:
        """Whether a number, or each number of an array, satisfies it; False for NaN."""
        if self.lower == self.upper == 0.0:
            return (value < 0.0) | (value > 0.0)
        return (self.lower < value) & (value < self.upper)


class Rule(NamedTuple):
    """The check of a value in which formulas stand for numbers: the function that checks plain numbers in its place.

    ``value``: a number or formula, or tuples of them.  ``what`` is checked, in words, such as "the mass of body 'b'".
    """

    value: Any
    check: Callable[[Any, str], Any]
    what: str

    @property
    def nodes(self) -> list[int]:
        """Of its formulas."""
        return [formula.index for _, formula in formulas_in(self.value)]

    def broken(self, values: Sequence[float]) -> str:
        """As of a :class:`Condition`; the message tells the formulas and the values of their parameters."""
        try:
            self.check(drawn_at(self.value, values), self.what)
        except ModelError as error:
            found = [formula for _, formula in formulas_in(self.value)]
            texts = ", ".join(dict.fromkeys(map(repr, found)))
            return f"{error}; it follows from {texts} at {found[0].book.told_at(self.nodes, values)}"
        return ""

    def holds_in(self, found: Sequence[Any]) -> Any:
        """As of a :class:`Condition`."""
        nodes = self.nodes
        table = np.broadcast_arrays(*[found[node] for node in nodes])
        rows = np.array(table).reshape(len(nodes), -1).T.tolist()
        holds = [self._passes(dict(zip(nodes, row, strict=True))) for row in rows]
        return np.array(holds).reshape(table[0].shape)

    def _passes(self, values: Mapping[int, float]) -> bool:
        try:
            self.check(drawn_at(self.value, values), self.what)
        except ModelError:
            return False
        return True


class Book:
    """The formulas of one mechanism.

    ``names``: of the parameters, in the order of the variables x0, x1, … of the graph; None for one that was removed.
    ``values``: of every node of the graph, at the drawn values of the parameters; another list for other values.
    ``conditions``: that formulas must satisfy where they are used.  ``user``: the joint that is being made.
    """

    __slots__ = ("bounds", "conditions", "graph", "names", "nodes", "periods", "user", "values")

    def __init__(self) -> None:
        self.graph = Graph()
        self.names: list[str | None] = []
        self.nodes: list[int] = []  # of the parameters
        self.bounds: list[tuple[float, float]] = []
        self.periods: list[float] = []  # 0 where there is none
        self.values: list[float] = []
        self.conditions: dict[Condition, None] = {}
        self.user = ""

    def add(self, name: str, value: float, bounds: tuple[float, float], period: float = 0.0) -> int:
        """A new parameter; returns its node."""
        if self.graph.nodes:
            self.index(self.graph.nodes[-1])  # an interrupt can leave nodes without values
        node = self.graph.variable(f"x{len(self.names)}").index
        self.names.append(name)
        self.nodes.append(node)
        self.bounds.append(bounds)
        self.periods.append(period)
        self.values = [*self.values, value]
        return node

    def remove(self, name: str) -> None:
        """Remove a parameter, which no formula in use has."""
        self.names[self.names.index(name)] = None
        self.values = list(self.values)

    def snapshot(self) -> tuple[Any, ...]:
        """What :meth:`restore` takes: the nodes, the parameters, their values and the conditions as they are now."""
        columns = (self.names, self.nodes, self.bounds, self.periods)
        return len(self.graph.nodes), self.values, dict(self.conditions), *[column[:] for column in columns]

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Take back later nodes, parameters, values and conditions."""
        count, values, self.conditions, self.names, self.nodes, self.bounds, self.periods = snapshot
        self.graph.truncate(count)
        del values[count:]
        self.values = values

    def frozen(self) -> Book:
        """What analyses read: the same, without the parameters, removals and conditions that come later."""
        made = Book.__new__(Book)
        made.graph, made.user = self.graph, ""  # a graph only grows
        made.names, made.nodes, made.bounds = self.names[:], self.nodes[:], self.bounds[:]
        made.periods, made.values, made.conditions = self.periods[:], self.values[:], dict(self.conditions)
        return made

    def drawn(self, values: Sequence[float] | None = None) -> dict[str, float]:
        """The drawn values by name; values: of the nodes, those of the book where none are given."""
        values = self.values if values is None else values
        pairs = zip(self.names, self.nodes, strict=True)
        return {name: values[node] for name, node in pairs if name is not None}

    def index(self, node: Scalar) -> int:
        """The index of a node, whose value and those before it are computed if they are new."""
        values = self.values
        for new in self.graph.nodes[len(values) :]:
            values.append(evaluated(new, values))
        return node.index

    def evaluate(self, given: Mapping[str, float]) -> list[float]:
        """The values of all nodes at other values of the parameters; NaN where one is not defined."""
        parameters = [math.nan if name is None else given[name] for name in self.names]
        found: list[float] = []
        for node in self.graph.nodes[: len(self.values)]:
            if node.operation == "variable":
                found.append(parameters[int(str(node.value)[1:])])
            elif node.operation == "constant":
                found.append(node.value)  # type: ignore[arg-type]  # a constant is a number
            else:
                found.append(evaluated(node, found))
        return found

    def are_valid(
        self, given: Mapping[str, Any], used: Sequence[int], conditions: Sequence[Condition | Rule] | None = None
    ) -> Any:
        """Whether formulas in use are finite and satisfy their conditions, as in :meth:`check`, at many values.

        given: of every parameter a number, or an array of shape (n,).  The result has shape (n,).
        """
        found: list[Any] = []
        with np.errstate(all="ignore"):
            for node in self.graph.nodes[: len(self.values)]:
                if node.operation == "variable":
                    found.append(np.asarray(given.get(self.names[int(str(node.value)[1:])] or "", math.nan)))
                elif node.operation == "constant":
                    found.append(np.float64(node.value))
                else:
                    found.append(_OF_ARRAYS[node.operation](*[found[argument.index] for argument in node.arguments]))
        valid: Any = np.True_
        for node_in_use in used:
            valid = valid & np.isfinite(found[node_in_use])
        for condition in self.conditions_of(used) if conditions is None else conditions:
            valid = valid & condition.holds_in(found)
        return valid

    def require(self, formula: Formula, lower: float, upper: float, text: str) -> None:
        """Note a condition; ModelError if it does not hold now."""
        condition = Condition(formula.index, lower, upper, text, self.user)
        if not condition.holds(formula.value):
            raise ModelError(condition.told(formula.value))
        self.conditions[condition] = None

    @contextmanager
    def making(self, user: str) -> Iterator[None]:
        """A context in which new conditions belong to a joint; if the joint cannot be made, they are discarded."""
        self.user = user
        try:
            yield
        except BaseException:
            self.forget({user})
            raise
        finally:
            self.user = ""

    def forget(self, users: Container[str]) -> None:
        """Discard the conditions of joints that are removed."""
        self.conditions = {condition: None for condition in self.conditions if condition.user not in users}

    def parameters_of(self, nodes: Sequence[int]) -> set[str]:
        """Names of the parameters that some nodes depend on."""
        reads = self.below(nodes)
        return {name for name, node in zip(self.names, self.nodes, strict=True) if name is not None and node in reads}

    def parameters_in(self, nodes: Sequence[int]) -> dict[str, Formula]:
        """The parameters that some nodes depend on, as formulas, by name."""
        names = self.parameters_of(nodes)
        return {name: Formula(self, node) for name, node in zip(self.names, self.nodes, strict=True) if name in names}

    @property
    def is_any_removed(self) -> bool:
        """Whether a parameter was removed; without one, formulas need no check."""
        return None in self.names

    def is_removed(self, node: int) -> bool:
        """Whether a formula has a parameter that was removed."""
        below = self.below([node])
        return any(name is None and place in below for name, place in zip(self.names, self.nodes, strict=True))

    def below(self, nodes: Sequence[int]) -> set[int]:
        """Some nodes, and all that these depend on."""
        seen: set[int] = set()
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack += [argument.index for argument in self.graph.nodes[node].arguments]
        return seen

    def conditions_of(self, used: Sequence[int]) -> list[Condition]:
        """Conditions of formulas in use."""
        below = self.below(used)
        return [condition for condition in self.conditions if condition.node in below]

    def check(
        self,
        values: Sequence[float],
        used: Sequence[int],
        conditions: Sequence[Condition | Rule] | None = None,
        user_of: Callable[[int], str] | None = None,
    ) -> None:
        """ModelError where a formula in use is not finite at these values, or does not satisfy its conditions.

        conditions: those of the formulas in use, if they are known.  user_of: names what reads a node.
        """
        for condition in self.conditions_of(used) if conditions is None else conditions:
            if told := condition.broken(values):
                raise ModelError(told)
        for node in used:
            if not math.isfinite(values[node]):
                user = "" if user_of is None else f"{user_of(node)}: "
                told = self.told_at([node], values)
                raise ModelError(f"{user}{Formula(self, node)!r} is {values[node]} at {told}; it must be finite")

    def told_at(self, nodes: Sequence[int], values: Sequence[float]) -> str:
        """The parameters of some formulas in words, "a = 1, b = 2", at values of all nodes."""
        below = self.below(nodes)
        places = [(name, place) for name, place in zip(self.names, self.nodes, strict=True) if place in below]
        return ", ".join(f"{name} = {values[place]:g}" for name, place in places)

    def check_period(self, name: str, used: Sequence[int], values: Sequence[float]) -> None:
        """ModelError where a formula in use changes over the period of a parameter; values: of all nodes."""
        period = self.periods[self.names.index(name)]
        if period == 0.0:
            return
        drawn = self.drawn(values)
        later = self.evaluate({**drawn, name: drawn[name] + period})
        for node in used:
            change = abs(later[node] - values[node])
            if not change <= PERIODIC * max(1.0, abs(values[node]), abs(drawn[name]) + period):
                raise ModelError(
                    f"parameter {name!r} has the period {period:g}, but {Formula(self, node)!r} changes by {change:g} "
                    f"over it; use functions such as cd.sin and cd.cos of it, or omit period="
                )

    def text(self, node: int) -> str:
        """A formula in words."""
        this = self.graph.nodes[node]
        if this.operation == "variable":
            return self.names[int(str(this.value)[1:])] or "a parameter that was removed"
        if this.operation == "constant":
            return f"{this.value:g}"
        parts = [self.text(argument.index) for argument in this.arguments]
        if this.operation.startswith("call "):
            return f"{this.operation.removeprefix('call ')}({', '.join(parts)})"
        return f"({f' {this.operation} '.join(parts)})"

    def description(self, node: int) -> str:
        """A formula with all digits.  The terms of a sum and the factors of a product are in the order of their texts,
        since a + b and b + a are the same number."""
        this = self.graph.nodes[node]
        if this.operation == "variable":
            return self.names[int(str(this.value)[1:])] or "a parameter that was removed"
        if this.operation == "constant":
            return repr(this.value)
        parts = [self.description(argument.index) for argument in this.arguments]
        return f"{this.operation}({', '.join(sorted(parts) if this.operation in '+*' else parts)})"

    def plain(self) -> tuple[Plain, ...]:
        """The nodes as plain values."""
        return tuple(node.plain() for node in self.graph.nodes)

    def __reduce__(self) -> tuple[Any, ...]:
        state = self.plain(), list(self.names), list(self.nodes), list(self.bounds), list(self.periods)
        return _rebuilt, (*state, list(self.values), dict(self.conditions))

    def __deepcopy__(self, memo: dict[int, Any]) -> Book:
        make, state = self.__reduce__()
        made: Book = make(*state)
        memo[id(self)] = made
        return made


def _rebuilt(
    nodes: Sequence[Plain],
    names: list[str | None],
    places: list[int],
    bounds: list[tuple[float, float]],
    periods: list[float],
    values: list[float],
    conditions: dict[Condition, None],
) -> Book:
    made = Book()
    for operation, arguments, value in nodes:
        if operation not in ("variable", "constant") and operation not in _OPERATIONS:
            raise ModelError(f"a formula has the operation {operation!r}; it must be one of {', '.join(_OPERATIONS)}")
        made.graph.node(operation, tuple(made.graph.nodes[k] for k in arguments), value)
    made.names, made.nodes, made.bounds, made.periods, made.values = names, places, bounds, periods, values
    made.conditions = dict(conditions)
    return made


def evaluated(node: Scalar, values: Sequence[float]) -> float:
    """The value of a constant or an operation, from those of earlier nodes; NaN where it is not defined."""
    if node.operation == "constant":
        return float(node.value)  # type: ignore[arg-type]  # a constant is a number
    try:
        return _OPERATIONS[node.operation](*[values[argument.index] for argument in node.arguments])
    except (ArithmeticError, ValueError):
        return math.nan


class Values(NamedTuple):
    """Formulas at values of the parameters.

    ``book``: a frozen one.  ``nodes``: values of all its nodes.  ``drawn``: of the parameters, by name.
    ``near``: those of the mechanism itself; a parameter with a period is given within half a period of this.
    """

    book: Book
    nodes: list[float]
    drawn: Mapping[str, float]
    near: Mapping[str, float]


@explains()
class Formula:
    """A number that depends on parameters: ``2 * L + 0.1``, ``cd.sqrt(L)``.

    It can replace any number of a point, a frame or a vector of a body, and of a joint.
    """

    __slots__ = ("book", "index")

    def __init__(self, book: Book, index: int) -> None:
        self.book = book
        self.index = index

    @property
    def value(self) -> float:
        """At the drawn values of the parameters."""
        return self.book.values[self.index]

    def at(self, given: Mapping[str, float]) -> float:
        """At given values of the parameters."""
        return self.book.evaluate({**self.book.drawn(), **given})[self.index]

    @property
    def parameters(self) -> set[str]:
        """Names of the parameters it depends on."""
        return self.book.parameters_of([self.index])

    @property
    def node(self) -> Scalar:
        return self.book.graph.nodes[self.index]

    def _lifted(self, other: Any) -> Scalar:
        if isinstance(other, Formula):
            if other.book is not self.book:
                raise ModelError(
                    f"{self!r} and {other!r} are of two mechanisms; a formula must use parameters of one of them"
                )
            return other.node
        if not isinstance(other, numbers.Real) or isinstance(other, bool):
            raise ModelError(f"{self!r} was combined with {other!r}; it can be combined with numbers and parameters")
        try:
            return self.book.graph.lift(other)  # type: ignore[arg-type]  # a real number
        except TracingError:
            raise ModelError(f"{self!r} was combined with {other!r}; a number must be finite") from None

    def _made(self, function: Callable[..., Scalar], *arguments: Scalar) -> Formula:
        try:
            return Formula(self.book, self.book.index(function(*arguments)))
        except TracingError as error:
            raise ModelError(f"a formula of {self!r}: {error}") from None

    @property
    def in_force(self) -> Any:
        """What it stands for in a function that is being called; itself elsewhere."""
        return meaning_of(self)

    def __add__(self, other: Any) -> Any:
        if is_standing():
            return operator.add(self.in_force, other)
        return self._made(self.book.graph.add, self.node, self._lifted(other))

    def __radd__(self, other: Any) -> Any:
        if is_standing():
            return operator.add(other, self.in_force)
        return self._made(self.book.graph.add, self._lifted(other), self.node)

    def __sub__(self, other: Any) -> Any:
        if is_standing():
            return operator.sub(self.in_force, other)
        return self._made(self.book.graph.subtract, self.node, self._lifted(other))

    def __rsub__(self, other: Any) -> Any:
        if is_standing():
            return operator.sub(other, self.in_force)
        return self._made(self.book.graph.subtract, self._lifted(other), self.node)

    def __mul__(self, other: Any) -> Any:
        if is_standing():
            return operator.mul(self.in_force, other)
        return self._made(self.book.graph.multiply, self.node, self._lifted(other))

    def __rmul__(self, other: Any) -> Any:
        if is_standing():
            return operator.mul(other, self.in_force)
        return self._made(self.book.graph.multiply, self._lifted(other), self.node)

    def __truediv__(self, other: Any) -> Any:
        if is_standing():
            return operator.truediv(self.in_force, other)
        return self._made(self.book.graph.divide, self.node, self._lifted(other))

    def __rtruediv__(self, other: Any) -> Any:
        if is_standing():
            return operator.truediv(other, self.in_force)
        return self._made(self.book.graph.divide, self._lifted(other), self.node)

    def __pow__(self, other: Any) -> Any:
        if is_standing():
            return operator.pow(self.in_force, other)
        return self._made(self.book.graph.power, self.node, self._lifted(other))

    def __rpow__(self, other: Any) -> Any:
        if is_standing():
            return operator.pow(other, self.in_force)
        return self._made(self.book.graph.power, self._lifted(other), self.node)

    def __neg__(self) -> Any:
        return self * -1.0

    def __pos__(self) -> Formula:
        return self

    def lift(self, other: Any) -> Formula:
        """A number as a formula."""
        return Formula(self.book, self.book.index(self._lifted(other)))

    def call(self, name: str, *others: Any) -> Any:
        """A function of it, such as cd.sin."""
        if name not in FUNCTIONS or f"call {name}" not in _OPERATIONS:
            raise ModelError(f"cd.{name} cannot be used in a formula of parameters")
        return self._made(self.book.graph.call, name, self.node, *map(self._lifted, others))  # type: ignore[arg-type]  # lifted

    def _refuse(self, *_: Any) -> NoReturn:
        raise ModelError(
            f"{self!r} is not a number: in a formula use operators and cd.sin, cd.sqrt, …; its number is {self!r}.value"
        )

    def __float__(self) -> float:
        return float(self.in_force) if is_standing() else self._refuse()

    def __lt__(self, other: Any) -> Any:
        return self.in_force < other if is_standing() else self._refuse()

    def __le__(self, other: Any) -> Any:
        return self.in_force <= other if is_standing() else self._refuse()

    def __gt__(self, other: Any) -> Any:
        return self.in_force > other if is_standing() else self._refuse()

    def __ge__(self, other: Any) -> Any:
        return self.in_force >= other if is_standing() else self._refuse()

    __int__ = __index__ = __bool__ = __abs__ = _refuse
    __array__ = __round__ = __floordiv__ = __mod__ = _refuse

    def __array_ufunc__(self, function: Any, method: str, *given: Any, **options: Any) -> Any:
        """Operators with numbers of NumPy, and functions such as ``np.sin(L)``: as those of this class."""
        if method != "__call__" or options:
            self._refuse()
        if is_standing():
            return function(*map(coefficients.plain, given))
        if function in _OPERATORS:
            (a, b), word = given, _OPERATORS[function]
            return getattr(a, f"__{word}__")(b) if isinstance(a, Formula) else getattr(b, f"__r{word}__")(a)
        if function in (np.equal, np.not_equal):
            return (self == (given[1] if given[0] is self else given[0])) is (function is np.equal)
        if function not in _NUMPY_NAMES:
            self._refuse()
        return self.lift(given[0]).call(_NUMPY_NAMES[function], *given[1:])

    def recorded(self, graph: Graph) -> Scalar:
        """The formula in another graph, whose variables are parameters by their names."""
        made: dict[int, Scalar] = {}
        for index in sorted(self.book.below([self.index])):
            node = self.book.graph.nodes[index]
            if node.operation == "variable":
                made[index] = graph.variable(self.book.text(index))
            else:
                made[index] = graph.node(node.operation, tuple([made[one.index] for one in node.arguments]), node.value)
        return made[self.index]

    def description(self) -> str:
        """As plain values: equal for equal formulas."""
        return self.book.description(self.index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and other.book is self.book and other.index == self.index

    def __hash__(self) -> int:
        return hash((id(self.book), self.index))

    def __repr__(self) -> str:
        return f"<{self.book.text(self.index)}>"


@explains()
class Parameter(Formula):
    """A design parameter of a mechanism, made by :meth:`cardan.Mechanism.parameter`.

    It is held at its value unless an assembly is asked to solve for it.  Setting ``value`` changes the drawing.
    """

    __slots__ = ("_model", "_name")

    def __init__(self, model: Any, name: str, book: Book, index: int) -> None:
        super().__init__(book, index)
        self._model = model
        self._name = name

    if not TYPE_CHECKING:  # checkers know the attributes

        def __setattr__(self, name: str, value: Any) -> None:
            if name != "value" and hasattr(self, "_name"):
                raise ReadOnlyError(
                    f"{name!r} of {self!r} cannot be set, only its value; for others, m.remove({self.name!r}) and add "
                    "it again with m.parameter(…)"
                )
            object.__setattr__(self, name, value)

    @property
    def name(self) -> str:
        """The name, by which a mechanism finds it."""
        return self._name

    @property
    def value(self) -> float:
        """The drawn value."""
        return self.book.values[self.index]

    @value.setter
    def value(self, value: Any) -> None:
        self._model.set_parameter(self, value)

    @property
    def _number(self) -> int:
        return self.book.nodes.index(self.index)

    @property
    def lower(self) -> float:
        """The lower bound; −inf where there is none."""
        return self.book.bounds[self._number][0]

    @property
    def upper(self) -> float:
        """The upper bound; inf where there is none."""
        return self.book.bounds[self._number][1]

    @property
    def period(self) -> float:
        """The period; 0 where there is none."""
        return self.book.periods[self._number]

    def __reduce__(self) -> tuple[Any, ...]:
        return Parameter, (self._model, self.name, self.book, self.index)

    def __repr__(self) -> str:
        return f"<parameter {self.name!r}>"


def number(value: Any) -> float:
    """The drawn value of a formula, or the number itself."""
    return value.value if isinstance(value, Formula) else value


def are_floats(values: Iterable[Any]) -> bool:
    """Whether all are floats, as most are, so that none is a formula; fast."""
    return _FLOATS.issuperset(map(type, values))


_FLOATS = frozenset({float})


def plain(values: Sequence[Any]) -> tuple[float, ...]:
    """The drawn values of numbers and formulas."""
    if are_floats(values):
        return tuple(values)
    return tuple([value.value if isinstance(value, Formula) else value for value in values])


def plain_at(values: Sequence[Any], nodes: Sequence[float] | None) -> tuple[float, ...]:
    """The values of numbers and formulas at values of the nodes of their book; at the drawn ones without them."""
    if _FLOATS.issuperset(map(type, values)):
        return tuple(values)
    if nodes is None:
        return plain(values)
    return tuple([nodes[value.index] if isinstance(value, Formula) else value for value in values])


def formulas_in(value: Any) -> list[tuple[int, Formula]]:
    """The formulas in a value, or in tuples of values in tuples, each with its position among all numbers there."""
    flat = list(_flat(value))
    return [(k, one) for k, one in enumerate(flat) if isinstance(one, Formula)]


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from _flat(item)
    elif value is not None:
        yield value


def drawn_at(value: Any, nodes: Sequence[float] | Mapping[int, float] | None) -> Any:
    """A value, or tuples of values in tuples, with numbers in place of formulas; nodes: as in :func:`plain_at`."""
    if isinstance(value, Formula):
        return value.value if nodes is None else nodes[value.index]
    return tuple([drawn_at(one, nodes) for one in value]) if isinstance(value, tuple | list) else value


def told(value: Any) -> Any:
    """A value, or tuples of values in tuples, with formulas in words, so that descriptions compare equal."""
    if isinstance(value, Formula):
        return value.description()
    return tuple([told(one) for one in value]) if isinstance(value, tuple) else value


def bindings(values: Sequence[Any], first: int = 0) -> tuple[tuple[int, int], ...]:
    """Of every formula among some numbers: its position, and its node."""
    if are_floats(values):
        return ()
    return tuple([(first + k, value.index) for k, value in enumerate(values) if isinstance(value, Formula)])


def sqrt(value: Any) -> Any:
    """Square root of a number or of a formula."""
    return value.call("sqrt") if isinstance(value, Formula) else math.sqrt(value)
