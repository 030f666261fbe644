"""Users' functions in loads: recorded and compiled where they only compute, else called by Python in every evaluation.

A function that depends on more than its arguments, such as one with a state of its own, cannot be recorded.  Therefore
each function is called with some numbers, twice each.  It is recorded only if both calls and the graph agree.
"""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cardan.constraints import codegen, kernels
from cardan.constraints.expression import Graph, Plain, digests
from cardan.constraints.jets import DERIVATIVES
from cardan.constraints.registry import Primitive
from cardan.constraints.signal import check_picklable, recorded
from cardan.constraints.spline import BeyondError
from cardan.errors import ModelError

# (t, coordinate, rate) at which a function is tried when it is declared
TRIED: Final = ((0.37, 0.61, -0.83), (1.7, -0.45, 0.29), (0.0, 0.0, 0.0))
SAME: Final = 1e-9  # relative: a recorded graph rounds differently


class NotFiniteError(ModelError):
    """A load has no finite force at a time; it may have had one before."""


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """The graph of a function f(t, coordinate, rate), as plain values: it is pickled and compared without it."""

    nodes: tuple[Plain, ...]
    row: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Recorded):
            return NotImplemented
        return digests(self.nodes, (self.row,)) == digests(other.nodes, (other.row,))

    def __hash__(self) -> int:
        return hash(digests(self.nodes, (self.row,)))

    def address(self) -> int:
        """Address of its kernel in this process: f(x, constants, value, derivatives), x = (t, coordinate, rate)."""
        text = codegen.user_module(self._data()[0])
        return kernels.address(Primitive(-1, "load", (), (), (), (), (), "value", None, "load", text=text))

    @property
    def constants(self) -> tuple[float, ...]:
        """The numbers that its kernel reads."""
        return self._data()[1]

    def _data(self) -> tuple[codegen.Trace, tuple[float, ...]]:
        graph = Graph.from_plain(self.nodes, 3, 0)
        return codegen.constants_as_data((graph, graph.nodes[:3], [graph.nodes[self.row]]), 0)

    def value(self, x: tuple[float, float, float]) -> float:
        """f at a point, by the interpreter; KeyError if it calls a function that only kernels have."""
        found: list[float] = []
        for operation, indices, value in self.nodes:
            arguments = [found[k] for k in indices]
            if operation == "variable":
                found.append(x[len(found)])
            elif operation == "constant":
                assert isinstance(value, float)
                found.append(value)
            else:
                found.append(_OPERATIONS[operation](*arguments))
        return found[self.row]

    def __deepcopy__(self, memo: Any) -> Recorded:
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Called:
    """A function that Python calls in every evaluation, of the load ``what``.

    Two are equal if their functions are, or if these are recorded as the same expressions of time alone.
    """

    what: str
    function: Callable[..., Any]

    def number(self, t: float, x: float, rate: float) -> float:
        """f(t, coordinate, rate), checked."""
        return self._checked(t, self._call(t, x, rate))

    def vector(self, t: float, state: Any) -> tuple[float, ...]:
        """f(t, state), checked."""
        result = self._call(t, state)
        try:
            items = list(result)
        except TypeError:
            items = []
        if len(items) != 3:
            raise ModelError(f"{self.what} at t = {t:g} s: its function returned {result!r}; it must be three numbers")
        return tuple(self._checked(t, item) for item in items)

    def _call(self, t: float, *arguments: Any) -> Any:
        try:
            return self.function(t, *arguments)
        except BeyondError as error:  # it was defined before
            raise NotFiniteError(f"{self.what} at t = {t:g} s: {error}") from error
        except Exception as error:
            text = f"its function raised {type(error).__name__}: {error}"
            raise ModelError(f"{self.what} at t = {t:g} s: {text}") from error

    def _checked(self, t: float, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise ModelError(f"{self.what} at t = {t:g} s: its function returned {value!r}; it must be a number")
        if not math.isfinite(value):
            raise NotFiniteError(f"{self.what} at t = {t:g} s: its function returned {value}; it must be finite")
        return float(value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Called):
            return NotImplemented
        if self.what != other.what or self.function == other.function:
            return self.what == other.what
        mine = recorded(self.function, 1, None)
        return mine is not None and mine == recorded(other.function, 1, None)

    def __hash__(self) -> int:
        return hash(self.what)

    def __copy__(self) -> Called:
        return self

    def __deepcopy__(self, memo: Any) -> Called:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        check_picklable(self.what, self.function)
        return Called, (self.what, self.function)


def taking(function: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """The function; ModelError if it cannot be called with these arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return function  # Python cannot list its arguments
    try:
        signature.bind(*names)
    except TypeError as error:
        called = ", ".join(names)
        raise ModelError(f"its function takes {signature}; it is called as f({called}): {error}") from None
    return function


def recorded_or_called(function: Callable[..., Any]) -> Recorded | Called:
    """The function of (t, coordinate, rate), recorded where that is possible and gives the same."""
    taking(function, "t", "coordinate", "rate")
    called = Called("", function)
    tried = {x: value for x in TRIED if (value := _tried(function, x)) is not None}
    if not tried or any(_tried(function, x) != value for x, value in tried.items()):
        return called
    graph = Graph()
    variables = [graph.variable(f"x{k}") for k in range(3)]
    try:
        row = graph.lift(function(*variables))
        recorded = Recorded(tuple(node.plain() for node in graph.nodes), row.index)
        for x, value in tried.items():
            if not math.isclose(recorded.value(x), value, rel_tol=SAME, abs_tol=SAME * abs(value)):
                return called
        codegen.user_module((graph, variables, [row]))  # its derivatives may be too long
    except MemoryError:
        raise
    except Exception:  # whatever stops the recording: the function works with numbers
        return called
    return recorded


def _tried(function: Callable[..., Any], x: tuple[float, float, float]) -> float | None:
    """The value at a point, None where there is none."""
    try:
        result = function(*x)
    except MemoryError:
        raise
    except Exception:  # it may be undefined there; an integration names the time of an error
        return None
    if isinstance(result, bool) or not isinstance(result, numbers.Real):
        raise ModelError(f"its function returned {result!r}; it must return one number")
    return float(result) if math.isfinite(result) else None


def _beyond(a: float, lower: float, upper: float) -> float:
    return a - min(max(a, lower), upper)


_OPERATIONS: Final[Mapping[str, Callable[..., float]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "call power": math.pow,
    "call beyond": _beyond,
    "call atan2": math.atan2,
    **{f"call {name}": getattr(math, name) for name in DERIVATIVES},
}
