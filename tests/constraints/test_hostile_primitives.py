"""Wrong use of primitives: each error message names the primitive, the cause, and a valid alternative."""

from __future__ import annotations

import contextlib
import decimal
import fractions
import functools
import itertools
import math
import operator
import re
import statistics
import types
import warnings

import numpy as np
import pytest

import cardan as cd
from cardan.constraints import kernels
from cardan.constraints.expression import MOST_NODES
from cardan.constraints.user import MOST_ROWS
from cardan.kernel.memory import JIT_DISABLED

pytestmark = pytest.mark.nojit

# A message states valid input, or where to find help.
WAY_OUT = re.compile(
    r"must\b(?! not branch)|may (have|use)|can be|takes (a|two)|called as|give |use cd|help\(cd\.primitive\)|declare |"
    r"rename|wrap it|name every|at most|needs "
)


def declare(function, **options):
    """A primitive with the name 'hostile', by default of two points."""
    kinds = {} if "kinds" in options else {"i": "point", "j": "point"}
    return cd.primitive(**kinds, **options.pop("kinds", {}), **options)(named(function))


def named(function):
    if callable(function) and not isinstance(function, type):
        with contextlib.suppress(AttributeError, TypeError):
            function.__name__ = "hostile"
    return function


def refused(make, cause, name="hostile"):
    """make() raises a ModelError with this cause, and no warning."""
    __tracebackhide__ = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(cd.ModelError) as caught:
            make()
    message = str(caught.value)
    assert f"primitive {name!r}" in message, message
    assert re.search(cause, message), message
    assert WAY_OUT.search(message), message
    assert len(message) <= 1000, message
    return message


# --- what a function may do with traced values ------------------------------------------------------------------------

BRANCH = "must not branch on a traced value"
NUMBER = "traced value is not a number"
NUMPY = r"numpy\.{} of a traced value cannot be recorded"
NEITHER = "finite numbers and its own features only"


class Strange(Exception):
    def __str__(self):
        raise RuntimeError("an exception that cannot be shown")


class Unshown:
    def __repr__(self):
        raise RuntimeError("a value that cannot be shown")


class Absorbing:
    """An operand that accepts any operation and returns itself."""

    def __radd__(self, other):
        return self

    __rsub__ = __rmul__ = __rtruediv__ = __radd__


def branch(i, j):
    if i.x > 0:
        return i.x
    return j.x


def ternary(i, j):
    return i.x if i.x else j.x


def loop(i, j):
    while i.x < 1:
        i = i + j
    return i.x


def asserting(i, j):
    assert i.x
    return i.x


def matching(i, j):
    match i.x:
        case 0:
            return j.x
    return i.x


def recursive(i, j):
    return recursive(i, j)


def endless(i, j):
    s = i.x
    for k in itertools.count():
        s = cd.sin(s * j.y + k)
    return s


def too_long(i, j):
    """A function within the limit of operations, whose derivatives exceed it."""
    s = i.x
    for k in range(MOST_NODES // 12):
        s = cd.sin(s * j.y + k) * cd.cos(s)
    return s


def assigning(i, j):
    i.x = 3.0
    return i


def assigning_an_item(i, j):
    i[0] = 3.0
    return i


def assigning_another(i, j):
    i.colour = "red"
    return i


def deleting(i, j):
    del i.x
    return j


def tampering_with_an_operation(i, j):
    object.__setattr__(s := i.x + j.x, "operation", "call __import__('os').system")
    return s


def tampering_with_a_value(i, j):
    object.__setattr__(s := i.x.graph.constant(2.0), "value", "__import__('os')")
    return s * i.x


def clearing_the_graph(i, j):
    row = i.x - j.x
    i.x.graph.nodes.clear()
    return row


def calling_the_unknown(i, j):
    return i.x.graph.call("exec", i.x)


def inventing_a_variable(i, j):
    return i.x.graph.variable("x99") - j.x


def raising(error):
    def function(i, j):
        raise error

    return function


async def coroutine(i, j):
    return i - j


async def asynchronous_generator(i, j):
    yield i - j


def generator(i, j):
    yield i - j


def nested(depth):
    def function(i, j):
        result = [i.x]
        for _ in range(depth):
            result = [result]
        return result

    return function


def containing_itself(i, j):
    result = [i.x]
    result.append(result)
    return result


kept = []


def keeping(i, j):
    kept[:] = [i, j.x, i - j]
    return i - j


FUNCTIONS = {
    # branches
    "if": (branch, BRANCH),
    "ternary": (ternary, BRANCH),
    "while": (loop, BRANCH),
    "assert": (asserting, BRANCH),
    "match": (matching, BRANCH),
    "and": (lambda i, j: i.x and j.x, BRANCH),
    "or": (lambda i, j: i.x or j.x, BRANCH),
    "not": (lambda i, j: [i.x, not j.x], BRANCH),
    "min": (lambda i, j: min(i.x, j.x), BRANCH),
    "max": (lambda i, j: max(i.x, 0.0), BRANCH),
    "max of a vector": (lambda i, j: max(i), BRANCH),
    "sorted": (lambda i, j: sorted(i), BRANCH),
    "abs": (lambda i, j: abs(i.x - j.x), BRANCH),
    "abs of a vector": (lambda i, j: abs(i - j), BRANCH),
    "==": (lambda i, j: i.x == j.x, BRANCH),
    "!=": (lambda i, j: i.x != 1.0, BRANCH),
    "<=": (lambda i, j: i.x <= j.x, BRANCH),
    "== of vectors": (lambda i, j: i == j, BRANCH),
    "chained": (lambda i, j: 0 < i.x < 1, BRANCH),
    "in": (lambda i, j: i.x in [1.0, 2.0], BRANCH),
    "any": (lambda i, j: any(i), BRANCH),
    "all": (lambda i, j: all([i.x, j.x]), BRANCH),
    "filter": (lambda i, j: list(filter(None, i)), BRANCH),
    "bool": (lambda i, j: bool(i), BRANCH),
    "median": (lambda i, j: statistics.median([i.x, i.y, j.x]), BRANCH),
    "numpy.where of a comparison": (lambda i, j: np.where(i.x > 0, i.x, j.x), BRANCH),
    "numpy.clip": (lambda i, j: np.clip(i.x, 0, 1), rf"{BRANCH}|numpy\.(clip|maximum)"),
    "numpy.sort": (lambda i, j: np.sort(np.array([i.x, j.x])), BRANCH),
    # numbers
    "math.sin": (lambda i, j: math.sin(i.x), NUMBER),
    "math.hypot": (lambda i, j: math.hypot(i.x, j.x), NUMBER),
    "math.floor": (lambda i, j: math.floor(i.x), NUMBER),
    "math.trunc": (lambda i, j: math.trunc(i.x), NUMBER),
    "math.isclose": (lambda i, j: math.isclose(i.x, j.x), NUMBER),
    "math.fsum": (lambda i, j: math.fsum(i), NUMBER),
    "math.sqrt of a vector": (lambda i, j: math.sqrt(i), NUMBER),
    "round": (lambda i, j: round(i.x, 2), NUMBER),
    "int": (lambda i, j: int(i.x) * j.x, NUMBER),
    "float": (lambda i, j: float(i.x), NUMBER),
    "complex": (lambda i, j: complex(i.x), NUMBER),
    "range": (lambda i, j: [i.x for _ in range(j.x)], NUMBER),
    "index": (lambda i, j: [i.x, j.x][i.x], NUMBER),
    "modulo": (lambda i, j: i.x % 1.0, NUMBER),
    "modulo of a number": (lambda i, j: 1.0 % i.x, NUMBER),
    "floor division": (lambda i, j: i.x // j.x, NUMBER),
    "divmod": (lambda i, j: divmod(i.x, 2), NUMBER),
    "divmod of a number": (lambda i, j: divmod(2, i.x), NUMBER),
    "len": (lambda i, j: len(i.x), "raised TypeError"),
    "iteration": (lambda i, j: list(i.x), "raised TypeError"),
    "component of a number": (lambda i, j: i.x[0], "raised TypeError"),
    "bits": (lambda i, j: i.x & 1, NUMBER),
    "format": (lambda i, j: f"{i.x:.3f}", NUMBER),
    "Fraction": (lambda i, j: fractions.Fraction(i.x), "raised TypeError"),
    "Decimal": (lambda i, j: decimal.Decimal(i.x), "raised TypeError"),
    "shift": (lambda i, j: i.x << 1, "raised TypeError"),
    "matrix product of numbers": (lambda i, j: i.x @ j.x, "raised TypeError"),
    "call": (lambda i, j: i.x(3), "raised TypeError"),
    "attribute": (lambda i, j: i.length, "raised AttributeError"),
    "component": (lambda i, j: i[3], "raised IndexError"),
    # NumPy
    "numpy.where": (lambda i, j: np.where(i.x, i.x, j.x), "raised|not a number|branch"),
    "numpy.maximum": (lambda i, j: np.maximum(i.x, 0.0), NUMPY.format("maximum")),
    "numpy.abs": (lambda i, j: np.abs(i.x), NUMPY.format("absolute")),
    "numpy.sign": (lambda i, j: np.sign(i.x), NUMPY.format("sign")),
    "numpy.floor": (lambda i, j: np.floor(i.x), NUMPY.format("floor")),
    "numpy.greater": (lambda i, j: np.greater(i.x, 0), NUMPY.format("greater")),
    "numpy.sin of a vector": (lambda i, j: np.sin(i), NUMPY.format("sin")),
    "numpy.sin with an option": (lambda i, j: np.sin(i.x, dtype=float), NUMPY.format("sin")),
    "numpy.sin of an array": (lambda i, j: np.sin(np.array([i.x, j.x])), "raised TypeError"),
    "numpy.add.reduce": (lambda i, j: np.add.reduce(i), NUMPY.format("add")),
    "numpy.float64": (lambda i, j: np.float64(i.x), "not a number"),
    "numpy.array of floats": (lambda i, j: np.array(i, dtype=float), "not a number"),
    "numpy.linalg.det": (lambda i, j: np.linalg.det(np.array([[i.x, i.y], [j.x, j.y]])), "raised"),
    "numpy array times a number": (lambda i, j: np.ones(3) * i.x, NEITHER),
    "numpy array of four": (lambda i, j: i + np.ones(4), "three numbers"),
    # operations that are not arithmetic
    "two points multiplied": (lambda i, j: i * j, "cd.dot or cd.cross"),
    "a vector divided by a vector": (lambda i, j: i / j, NEITHER),
    "a vector squared": (lambda i, j: i**2, "raised TypeError"),
    "a number and a vector": (lambda i, j: i.x + j, NEITHER),
    "a vector and a number": (lambda i, j: i + 1.0, "three numbers"),
    "a vector and two numbers": (lambda i, j: i - (1.0, 2.0), "three numbers"),
    "a vector and a string": (lambda i, j: i + "abc", "three numbers"),
    "a vector and bytes": (lambda i, j: i + b"abc", "three numbers"),
    "a number and a string": (lambda i, j: i.x + "1", NEITHER),
    "a number and None": (lambda i, j: i.x * None, NEITHER),
    "cd.sin of a vector": (lambda i, j: cd.sin(i), "takes a number"),
    "cd.clip of a vector": (lambda i, j: cd.clip(i, -1, 1), "takes a number"),
    "cd.clip between traced values": (lambda i, j: cd.clip(i.x, j.x, 1.0), "must be finite numbers"),
    "cd.clip without end": (lambda i, j: cd.clip(i.x, 0.0, math.inf), "must be finite numbers"),
    "cd.clip upside down": (lambda i, j: cd.clip(i.x, 1.0, 0.0), "must not be above"),
    "cd.norm of a number": (lambda i, j: cd.norm(i.x), "takes a vector"),
    "cd.dot of numbers": (lambda i, j: cd.dot(i.x, j.x), "takes two vectors"),
    "cd.cross of constants": (lambda i, j: cd.cross((1, 0, 0), (0, 1, 0)), "takes two vectors"),
    "cd.rotation_vector of points": (lambda i, j: cd.rotation_vector(a=i, b=j), "takes two orientations"),
    "cd.atan2 of vectors": (lambda i, j: cd.atan2(s=i, c=j), NUMBER),
    # numbers that are not finite or not real
    "NaN": (lambda i, j: i.x * math.nan, NEITHER),
    "infinity": (lambda i, j: i - (0, 0, math.inf), NEITHER),
    "imaginary": (lambda i, j: i.x * 1j, NEITHER),
    "overflow": (lambda i, j: (i.x * 0 + 1e308) * 10 * i.x, NEITHER),
    "a whole number too large": (lambda i, j: i.x * 10**400, "raised OverflowError"),
    "division by zero": (lambda i, j: i.x / 0, "divides by the constant zero"),
    "division of a vector by zero": (lambda i, j: (j - i) / 0.0, "divides by the constant zero"),
    "division by a difference that is zero": (lambda i, j: j.x / (i.x - i.x), "divides by the constant zero"),
    "root of a negative constant": (lambda i, j: cd.sqrt(-1) * i.x, "raised ValueError"),
    "negative base": (lambda i, j: (-2) ** i.x, "base must be above zero"),
    "base zero": (lambda i, j: 0**i.x, "base must be above zero"),
    # return values
    "nothing": (lambda i, j: None, "returned None"),
    "an empty list": (lambda i, j: [], "no residual"),
    "lists of nothing": (lambda i, j: [[], ()], "no residual"),
    "a string": (lambda i, j: "i.x - j.x", "returned 'i.x - j.x'"),
    "True": (lambda i, j: True, "returned True"),
    "NumPy's True": (lambda i, j: np.bool_(True), "returned"),
    "a dictionary": (lambda i, j: {"row": i.x - j.x}, "returned {'row'"),
    "a set": (lambda i, j: {i.x - j.x}, "returned {"),
    "a generator": (generator, "returned <generator"),
    "a generator expression": (lambda i, j: (c for c in i), "returned <generator"),
    "a coroutine": (coroutine, "returned <coroutine"),
    "an asynchronous generator": (asynchronous_generator, "returned <async_generator"),
    "a function": (lambda i, j: lambda: i.x, "returned <function"),
    "a type": (lambda i, j: float, "returned <class 'float'>"),
    "a row and a string": (lambda i, j: [i.x - j.x, "m"], "returned 'm'"),
    "a row and None": (lambda i, j: (i.x - j.x, None), "returned None"),
    "what cannot be shown": (lambda i, j: Unshown(), "Unshown object"),
    "what swallowed it": (lambda i, j: Absorbing().__radd__(i.x), "Absorbing object"),
    "an operand that swallows": (lambda i, j: i.x + Absorbing(), NEITHER),
    "a constant": (lambda i, j: 0.0, "residual 0 does not depend"),
    "a parameter": (lambda i, j, *, c: c, "residual 0 does not depend"),
    "a constant row": (lambda i, j: [i.x - j.x, 1], "residual 1 does not depend"),
    "what cancels": (lambda i, j: [i.x - j.x, 3 * (i.y - i.y)], "residual 1 does not depend"),
    "an array of constants": (lambda i, j: np.zeros(3), "residual 0 does not depend"),
    "an array of complex numbers": (lambda i, j: np.zeros(3, dtype=complex), "returned 0j"),
    "too many rows": (lambda i, j: [i.x - j.x] * (MOST_ROWS + 1), f"returned {MOST_ROWS + 1} residuals"),
    "lists within lists": (nested(100), "must return a residual"),
    "a list in itself": (containing_itself, "must return a residual"),
    # stored, changed, or manipulated traces
    "a number of another trace": (lambda i, j: kept[1] - i.x, "another call of a primitive"),
    "a vector of another trace": (lambda i, j: kept[0], "another call of a primitive"),
    "a norm of another trace": (lambda i, j: cd.norm(kept[2]), "another call of a primitive"),
    "rows of two traces": (lambda i, j: [i.x, kept[1]], "another call of a primitive"),
    "an assignment": (assigning, "raised .*assign"),
    "an assignment to an item": (assigning_an_item, "raised TypeError"),
    "a new attribute": (assigning_another, "raised"),
    "a deletion": (deleting, "raised"),
    "code for an operation": (tampering_with_an_operation, "is not a valid recorded equation"),
    "code for a constant": (tampering_with_a_value, "is not a valid recorded equation"),
    "nodes cleared": (clearing_the_graph, "is not a valid recorded equation"),
    "an unknown function": (calling_the_unknown, "is not a valid recorded equation"),
    "an unknown variable": (inventing_a_variable, "is not a valid recorded equation"),
    # exceptions and endless loops
    "ValueError": (raising(ValueError("some reason")), "raised ValueError: some reason"),
    "no text": (raising(KeyError()), "raised KeyError"),
    "StopIteration": (raising(StopIteration()), "raised StopIteration"),
    "MemoryError": (raising(MemoryError()), "raised MemoryError"),
    "an exception group": (raising(ExceptionGroup("several", [ValueError("one")])), "raised ExceptionGroup"),
    "an exception that cannot be shown": (raising(Strange()), "raised .*Strange"),
    "a long story": (raising(ValueError("very " * 1000)), "raised ValueError: very"),
    "an error of the library": (raising(cd.ModelError("a body is wanted")), "raised .*ModelError: a body is wanted"),
    "NameError": (lambda i, j: undefined(i), "raised NameError"),  # noqa: F821
    "endless recursion": (recursive, "calls itself endlessly"),
    "an endless loop": (endless, f"more than {MOST_NODES} operations"),
    "derivatives without end": (too_long, f"more than {MOST_NODES} operations"),
}


@pytest.mark.parametrize("case", list(FUNCTIONS))
def test_invalid_operations_on_traced_values_raise_clear_errors(case):
    function, cause = FUNCTIONS[case]
    declare(keeping)
    message = refused(lambda: declare(function), cause)
    if cause in (BRANCH, NUMBER, NEITHER) or cause.startswith(("numpy", "raised")):
        assert "can be given by hand with its derivative: see help(cd.primitive)" in message


def test_there_are_at_least_two_hundred_cases():
    assert len(FUNCTIONS) + len(DECLARATIONS) + len(BY_HAND) + len(USES) >= 200


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_system_exit_and_keyboard_interrupt_are_not_caught(error):
    with pytest.raises(type(error)):
        declare(raising(error))


def test_a_function_may_catch_a_tracing_error():
    def careful(i, j):
        try:
            return i.x if i.x > 0 else j.x
        except TypeError:
            return i.x - j.x

    assert declare(careful).rows == 1


# --- how it is declared -----------------------------------------------------------------------------------------------


class Callable:
    def __call__(self, i, j):
        return i - j


class WithNoName(Callable):
    __name__ = 5


def with_default(value):
    def hostile(i, j, *, c=value):
        return i.x - j.x - c

    return hostile


def fine(i, j):
    return i.x - j.x


def apart(i, j):
    return cd.norm(i - j) - 1.0


KIND = "must be one of 'point', 'vector', 'orientation'"
OPTION = "is an option of cd.primitive"

DECLARATIONS = {
    "no kinds": (lambda: declare(lambda: 0.0, kinds={}), "has no features"),
    "an unknown kind": (lambda: declare(fine, kinds={"i": "points", "j": "point"}), KIND),
    "an empty kind": (lambda: declare(fine, kinds={"i": "", "j": "point"}), KIND),
    "a kind in capitals": (lambda: declare(fine, kinds={"i": "Point", "j": "point"}), KIND),
    "a kind that is a number": (lambda: declare(fine, kinds={"i": 3, "j": "point"}), KIND),
    "a kind that is None": (lambda: declare(fine, kinds={"i": None, "j": "point"}), KIND),
    "a kind that is a list": (lambda: declare(fine, kinds={"i": ["point"], "j": "point"}), KIND),
    "a kind that is a type": (lambda: declare(fine, kinds={"i": cd.Point, "j": "point"}), KIND),
    "of nothing": (lambda: declare(fine, kinds={"i": "point", "j": "vector of "}), "no argument '' comes before"),
    "of itself": (lambda: declare(fine, kinds={"i": "point", "j": "vector of j"}), "no argument 'j' comes before"),
    "of a later one": (lambda: declare(fine, kinds={"i": "vector of j", "j": "point"}), "comes before it"),
    "of two": (lambda: declare(fine, kinds={"i": "point", "j": "vector of i of i"}), "comes before it"),
    "of a coordinate": (lambda: declare(fine, kinds={"i": "angle", "j": "vector of i"}), "on two bodies"),
    "a coordinate of": (lambda: declare(fine, kinds={"i": "point", "j": "angle of i"}), "on two bodies"),
    "one body": (lambda: declare(lambda i: cd.norm(i) - 1.0, kinds={"i": "vector"}), "on one body only"),
    "one body in two words": (lambda: declare(apart, kinds={"i": "point", "j": "point of i"}), "on one body only"),
    "a name that is none": (lambda: declare(fine, kinds={"i": "point", "j k": "point"}), "cannot be the name"),
    "another order": (lambda: declare(lambda j, i: i - j), r"takes the features \['j', 'i'\]"),
    "another name": (lambda: declare(lambda i, k: i - k), "are declared"),
    "one too few": (lambda: declare(lambda i: i), "are declared"),
    "one too many": (lambda: declare(lambda i, j, k: i), "are declared"),
    "no arguments": (lambda: declare(lambda: 0), "are declared"),
    "*args": (lambda: declare(lambda *args: args[0]), r"takes \*args"),
    "**kwargs": (lambda: declare(lambda i, j, **options: i), r"takes \*\*options"),
    "a feature with a default": (lambda: declare(lambda i, j=None: i), "'j' has a default"),
    "a parameter before the *": (lambda: declare(lambda i, j, c=1.0: i), "'c' has a default"),
    "unit for an argument": (
        lambda: declare(lambda unit, j: unit - j, kinds={"unit": "point", "j": "point"}),
        f"'unit', which {OPTION}",
    ),
    "rows for an argument": (
        lambda: declare(lambda rows, j: rows - j, kinds={"rows": "vector of j", "j": "point"}),
        f"'rows', which {OPTION}",
    ),
    "derivative for an argument": (
        lambda: declare(lambda derivative, j: derivative - j, kinds={"derivative": "point", "j": "point"}),
        f"'derivative', which {OPTION}",
    ),
    "parameters for an argument": (
        lambda: declare(lambda parameters, j: parameters, kinds={"parameters": "angle", "j": "point"}),
        f"'parameters', which {OPTION}",
    ),
    "parameters of a traced function": (lambda: declare(fine, parameters=["c"]), "keyword-only arguments"),
    "a string for parameters": (lambda: declare(fine, parameters="c"), "keyword-only arguments"),
    "an unknown unit": (lambda: declare(fine, unit="mm"), "the unit of primitive '.*' is 'mm'"),
    "a unit that is None": (lambda: declare(fine, unit=None), "the unit of .* is None"),
    "a unit that is bytes": (lambda: declare(fine, unit=b"m"), "the unit of .* is b'm'"),
    "a set of units": (lambda: declare(fine, unit={"m"}), "the unit of"),
    "a list in a list of units": (lambda: declare(fine, unit=[["m"]]), "the unit of"),
    "no units": (lambda: declare(fine, unit=[]), "has no unit"),
    "two units for one row": (lambda: declare(fine, unit=["m", "rad"]), "1 rows but 2 units"),
    "two units for three rows": (lambda: declare(lambda i, j: i - j, unit=("m", "rad")), "3 rows but 2 units"),
    **{
        f"a default that is {value!r}": (lambda value=value: declare(with_default(value)), "default of 'c'")
        for value in (
            None,
            "1",
            True,
            math.nan,
            -math.inf,
            1j,
            np.complex128(1),
            [1.0],
            np.zeros(2),
            decimal.Decimal(1),
        )
    },
    "a default that is huge": (lambda: declare(with_default(10**400)), "default of 'c'"),
    "a default that cannot be shown": (lambda: declare(with_default(Unshown())), "default of 'c'"),
}
# Made from objects that are not plain functions, so with other names.
MADE_OF = {
    "None": (None, "NoneType", "must be a function"),
    "a number": (3, "int", "must be a function"),
    "a string": ("lambda i, j: i", "str", "must be a function"),
    "a class": (dict, "dict", "wrap it in a plain function"),
    "a built-in": (print, "print", "name every argument"),
    "an operator": (operator.sub, "sub", "are declared"),
    "a partial": (functools.partial(fine, 1.0), "partial", "are declared"),
    "an object without a name": (functools.partial(WithNoName(), j=2), "partial", "are declared|has a default"),
    "a class of one's own": (Callable, "Callable", "are declared"),
    "a bound method": (Callable().__call__.__get__, "__get__", "are declared|wrap it|has a default"),
}


@pytest.mark.parametrize("case", list(DECLARATIONS))
def test_invalid_declarations_raise_clear_errors(case):
    refused(*DECLARATIONS[case])


@pytest.mark.parametrize("case", list(MADE_OF))
def test_objects_that_are_not_functions_raise_clear_errors(case):
    made_of, name, cause = MADE_OF[case]
    refused(lambda: cd.primitive(i="point", j="point")(made_of), cause, name)


def test_a_primitive_cannot_be_made_from_a_primitive():
    one = declare(fine)
    refused(lambda: cd.primitive(i="point", j="point")(one), "must be a function", "Primitive")


@pytest.mark.parametrize("wrong", [fine, "point", None, 3])
def test_a_decorator_without_arguments_raises_a_clear_error(wrong):
    with pytest.raises(cd.ModelError, match=r"cd\.primitive was given .*@cd\.primitive\(i='point', j='point'\)"):
        cd.primitive(wrong)


def test_methods_objects_partials_and_lambdas_are_functions_too():
    class Family:
        def method(self, i, j):
            return i - j

        @staticmethod
        def static(i, j):
            return i - j

        @classmethod
        def of_the_class(cls, i, j):
            return i - j

    def three(i, j, k):
        return i - j - k

    own = Family()
    made_of = (own.method, own.static, own.of_the_class, Callable(), WithNoName(), lambda i, j: i - j)
    made = [cd.primitive(i="point", j="point")(f) for f in (*made_of, functools.partial(three, k=(0, 0, 0)))[:6]]
    names = [p.name for p in made]
    assert names == ["method", "static", "of_the_class", "Callable", "WithNoName", "<lambda>"]
    assert len({p.text for p in made}) == 1


@pytest.mark.parametrize("name", ["'", '"""', "a\nb", "x\x00y", "ünï ∂", "__import__('os')", "", " ", "%s{}"])
def test_the_name_of_a_function_is_only_displayed(name):
    def function(i, j):
        return i.x - j.x

    function.__name__ = name
    made = cd.primitive(i="point", j="point")(function)
    assert made.name == name and made.text == declare(fine).text
    m, body = mechanism()
    m.constrain("own", made, i=body.point(), j=m.ground.point())
    with pytest.raises(cd.ModelError, match=re.escape(repr(name))):
        m.constrain("another", made)


# --- by hand ----------------------------------------------------------------------------------------------------------


def value(x, c, out):
    out[0] = x[0] * x[3]


def derivative(x, c, out):
    out[:] = 0.0
    out[0] = x[3]
    out[3] = x[0]


def by_hand(function=value, **options):
    return lambda: declare(function, **{"rows": 1, "derivative": derivative, **options})


def filling(number):
    return lambda x, c, out: out.fill(number)


def scaled(factor):
    def scaled_derivative(x, c, out):
        derivative(x, c, out)
        out *= factor

    return scaled_derivative


def swapped(x, c, out):
    out[:] = 0.0
    out[0] = x[0]
    out[3] = x[3]


def unwritten(x, c, out):
    out[0] = x[3]
    out[3] = x[0]


def tiny(x, c, out):
    out[0] = 1e-9 * x[0] * x[3]


def writes_to_x(x, c, out):
    out[0] = x[0] * x[3]
    x[0] = 1.0


def writes_to_c(x, c, out):
    out[0] = x[0] * x[3]
    c[0] = 7.0


def raises(x, c, out):
    raise ValueError("some reason")


def beyond(x, c, out):
    out[1] = x[0]


BY_HAND = {
    "no derivative": (lambda: declare(value, rows=1), "derivative= is missing"),
    "no rows": (lambda: declare(value, derivative=derivative), "rows= is missing"),
    "no rows at all": (by_hand(rows=0), "rows is 0"),
    "negative rows": (by_hand(rows=-1), "rows is -1"),
    "half a row": (by_hand(rows=1.5), "rows is 1.5"),
    "rows True": (by_hand(rows=True), "rows is True"),
    "too many rows": (by_hand(rows=MOST_ROWS + 1), f"rows is {MOST_ROWS + 1}"),
    "a derivative that is no function": (by_hand(derivative=3), "derivative is 3"),
    "a derivative that is an object": (by_hand(derivative=Callable()), "must be a plain function"),
    "a function that is a class": (
        lambda: cd.primitive(i="point", j="point", rows=1, derivative=derivative)(hostile),
        "must be a plain function",
    ),
    "a string of parameters": (by_hand(parameters="abc"), "list of different names"),
    "a number of parameters": (by_hand(parameters=2), "list of different names"),
    "parameters twice": (by_hand(parameters=["a", "a"]), "list of different names"),
    "parameters that are numbers": (by_hand(parameters=[1, 2]), "list of different names"),
    "parameters that are no names": (by_hand(parameters=["a b"]), "list of different names"),
    "parameters that are arguments": (by_hand(parameters=["j"]), "as an argument and as a parameter"),
    "too many units": (by_hand(unit=["m", "m"]), "1 rows but 2 units"),
    "one argument": (by_hand(lambda x: None), "function by hand raised TypeError"),
    "four arguments": (by_hand(lambda x, c, out, more: None), "function by hand raised TypeError"),
    "a traced one": (by_hand(lambda i, j: i - j), "function by hand raised TypeError"),
    "a function that raises": (by_hand(raises), "function by hand raised ValueError: some reason"),
    "a derivative that raises": (by_hand(derivative=raises), "derivative by hand raised ValueError: some reason"),
    "a function out of bounds": (by_hand(beyond), "function by hand raised IndexError"),
    "a derivative out of bounds": (by_hand(derivative=lambda x, c, out: value(x, c, out[6:])), "raised IndexError"),
    "a component too many": (by_hand(lambda x, c, out: out.fill(x[6])), "raised IndexError"),
    "a parameter that is not declared": (by_hand(lambda x, c, out: out.fill(c[0])), "raised IndexError"),
    "a function that writes nothing": (by_hand(lambda x, c, out: None), r"gives \[nan\]"),
    "a function that returns": (by_hand(lambda x, c, out: x[0] - x[3]), r"gives \[nan\]"),
    "a function that leaves NaN": (by_hand(filling(math.nan)), r"gives \[nan\]"),
    "a function that leaves infinity": (by_hand(filling(math.inf)), r"gives \[inf\]"),
    "a function that is never defined": (by_hand(lambda x, c, out: out.fill(math.sqrt(-2 - x[0]))), r"gives \[nan\]"),
    "a function that divides by zero": (by_hand(lambda x, c, out: out.fill(1 / 0)), r"gives \[nan\]"),
    "a derivative that writes nothing": (by_hand(derivative=lambda x, c, out: None), "nan by hand"),
    "a derivative left unwritten": (by_hand(derivative=unwritten), "by component 1 is nan by hand"),
    "a derivative that is NaN": (by_hand(derivative=filling(math.nan)), "nan by hand"),
    "a derivative that is infinite": (by_hand(derivative=filling(math.inf)), "inf by hand"),
    "a derivative of zero": (by_hand(derivative=filling(0.0)), "is 0 by hand"),
    "a derivative of the wrong sign": (by_hand(derivative=scaled(-1.0)), "by differences"),
    "a derivative a little wrong": (by_hand(derivative=scaled(1.0001)), "by differences"),
    "a derivative in another order": (by_hand(derivative=swapped), "by differences"),
    "a small derivative that is wrong": (by_hand(tiny, derivative=filling(0.0)), "by differences"),
    "a function that writes to x": (by_hand(writes_to_x), "writes to x or c"),
    "a function that writes to c": (by_hand(writes_to_c, parameters=["a"]), "writes to x or c"),
}


class hostile:
    """A class in place of a function by hand."""


@pytest.mark.parametrize("case", list(BY_HAND))
def test_invalid_primitives_by_hand_raise_clear_errors(case):
    refused(*BY_HAND[case])


def test_valid_primitives_by_hand_are_accepted():
    assert by_hand()().rows == 1
    assert by_hand(tiny, derivative=scaled(1e-9))().rows == 1
    assert by_hand(parameters=("a", "b"))().parameters == ("a", "b")


def test_a_function_by_hand_may_be_undefined_in_a_part_of_space():
    def root(x, c, out):
        out[0] = math.sqrt(x[0] - x[3])

    def root_derivative(x, c, out):
        out[:] = 0.0
        out[0] = 0.5 / math.sqrt(x[0] - x[3])
        out[3] = -out[0]

    assert by_hand(root, derivative=root_derivative)().rows == 1
    refused(by_hand(root, derivative=scaled(1.0)), "by differences")


TABLE = types.SimpleNamespace(one=1.0)


def needs_python(x, c, out):
    out[0] = x[0] * x[3] * TABLE.one


@pytest.mark.slow
@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_a_compilation_error_is_reported_at_first_use():
    made = by_hand(needs_python)()
    message = refused(lambda: kernels.address(made), "by hand cannot be compiled: ")
    assert "Failed in" not in message and "During" not in message
    m, body = mechanism()
    m.constrain("own", made, i=m.ground.point(), j=body.point())
    refused(m.assemble, "by hand cannot be compiled: ")


# --- how it is used ---------------------------------------------------------------------------------------------------


def mechanism():
    m = cd.Mechanism()
    return m, m.body("body", position=(1, 2, 3))


def used(primitive, **options):
    """m.constrain with valid arguments, except those given; None omits an argument."""
    m, body = mechanism()
    other = m.body("other")
    hinge = m.revolute("hinge", m.ground.frame(), other.frame())
    slide = m.cylindrical("slide", m.ground.frame(), body.frame())
    ball = m.spherical("ball", body.frame((0, 0, 1)), other.frame())
    fits = {
        "point": body.point(),
        "vector": body.vector(0, 0, 1),
        "orientation": body.frame(),
        "angle": hinge,
        "displacement": slide.of("displacement"),
        "distance": cd.coordinate(body.point(), other.point(), "distance"),
        "inclination": cd.coordinate(body.frame(), other.frame(), "inclination"),
    }
    given = {argument.name: fits[argument.kind] for argument in primitive.arguments}
    given |= dict.fromkeys(primitive.parameters, 1.0)
    given["i"] = m.ground.point((1, 0, 0)) if "i" in given else None
    context = {"m": m, "body": body, "other": other, "hinge": hinge, "slide": slide, "ball": ball}
    given |= {key: make(context) if callable(make) else make for key, make in options.items()}
    return m.constrain("own", primitive, **{key: item for key, item in given.items() if item is not None})


def parametrised(i, j, *, c, d=1.0):
    return i.x - j.x - c * d


def of_all_kinds(i, v, q, a, s, e, u, *, c=0.0):
    return [i.x - c, v.x, q[0], a, s, e, u]


ALL = {
    "i": "point",
    "v": "vector",
    "q": "orientation",
    "a": "angle",
    "s": "displacement",
    "e": "distance",
    "u": "inclination",
}


def elsewhere(_):
    return cd.Mechanism("elsewhere").body("stranger").point()


def of_another_joint(_):
    m = cd.Mechanism("elsewhere")
    return m.revolute("hinge", m.ground.frame(), m.body("body").frame())


def coordinate_elsewhere(_):
    m = cd.Mechanism("elsewhere")
    return cd.coordinate(m.ground.frame(), m.body("body").frame(), "angle")


def removed(context):
    m = context["m"]
    body = m.body("gone")
    m.remove("gone")
    return body.point()


def removed_joint(context):
    m = context["m"]
    joint = m.revolute("gone", m.ground.frame(), context["body"].frame())
    m.remove("gone")
    return joint


USES = {
    "an argument left out": ({"j": None}, "was not given 'j', a point"),
    "a parameter left out": ({"c": None}, "was not given its parameter 'c'"),
    "an unknown argument": ({"k": 1.0}, "no argument 'k'; it has 'i', "),
    "a parameter that is a string": ({"c": "1"}, "parameter 'c' is '1'; it must be a number"),
    "a parameter that is True": ({"c": True}, "parameter 'c' is True; it must be a number"),
    "a parameter that is NaN": ({"c": math.nan}, "parameter 'c' is nan; it must be finite"),
    "a parameter that is infinite": ({"c": math.inf}, "parameter 'c' is inf; it must be finite"),
    "a parameter that is complex": ({"c": 1j}, "parameter 'c' is 1j; it must be a number"),
    "a parameter that is a list": ({"c": [1.0]}, r"parameter 'c' is \[1.0\]; it must be a number"),
    "a function of no jets": (
        {"c": lambda context: math.sin},
        "parameter 'c' at t = 0 s: its function raised TypeError",
    ),
    "a function of text": (
        {"c": lambda context: lambda t: "x"},
        "parameter 'c' at t = 0 s gives 'x'; it must be a number",
    ),
    "a body for a point": ({"j": lambda context: context["body"]}, "'j' was given <Body 'body'>; it must be a point"),
    "a tuple for a point": ({"j": (1, 2, 3)}, r"'j' was given \(1, 2, 3\); it must be a point"),
    "a vector for a point": ({"j": lambda context: context["body"].vector(1, 0, 0)}, "'j' was given .*must be a point"),
    "a string for a point": ({"j": "body"}, "'j' was given 'body'; it must be a point"),
    "a body of another mechanism": ({"j": elsewhere}, "of another mechanism"),
    "a body that was removed": ({"j": removed}, "'gone', which was removed"),
    "all on the ground": ({"j": lambda context: context["m"].ground.point()}, "on the ground alone"),
}
USES_OF_ALL_KINDS = {
    "a point for a vector": ({"v": lambda context: context["body"].point()}, "'v' was given .*must be a vector"),
    "a frame for a vector": ({"v": lambda context: context["body"].frame()}, "'v' was given .*must be a vector"),
    "a point for an orientation": ({"q": lambda context: context["body"].point()}, "'q' was given .*must be a frame"),
    "a point for an angle": ({"a": lambda context: context["body"].point()}, "'a': .*must be a joint, or a coordinate"),
    "a number for an angle": ({"a": 1.0}, "'a': 1.0 was given; it must be a joint"),
    "a joint without an angle": ({"a": lambda context: context["ball"]}, "'a': joint 'ball'.*cd.coordinate"),
    "a joint with two displacements": ({"s": lambda context: context["hinge"]}, "'s': joint 'hinge'.*needs|'s': joint"),
    "an angle for a distance": (
        {"e": lambda context: context["hinge"].of("angle")},
        "'e': .*where a distance is needed",
    ),
    "a displacement for an angle": (
        {"a": lambda context: context["slide"].of("displacement")},
        "where an angle is needed",
    ),
    "a joint of another mechanism": ({"a": of_another_joint}, "not, or no longer, a joint of"),
    "a coordinate of another mechanism": ({"a": coordinate_elsewhere}, "of another mechanism"),
    "a joint that was removed": ({"a": removed_joint}, "not, or no longer, a joint of"),
}


@pytest.mark.parametrize("case", list(USES))
def test_invalid_arguments_of_constrain_raise_clear_errors(case):
    options, cause = USES[case]
    made = declare(parametrised)
    assert used(made).equations == 1
    message = said(lambda: used(made, **options))
    assert re.search(cause, message), message
    assert message.startswith("constraint 'own' (primitive 'hostile')"), message


def test_a_constraint_that_no_motion_of_its_only_body_changes_is_refused():
    """One that depends on the axes of the world may be on one body."""
    on_one = {"i": lambda context: context["body"].point((1, 0, 0))}
    assert used(declare(parametrised), **on_one).equations == 1
    message = said(lambda: used(declare(lambda i, j, *, c: cd.norm(i - j) - c), **on_one))
    assert "on body 'body' alone, and no motion of this body changes it" in message


@pytest.mark.parametrize("case", list(USES_OF_ALL_KINDS))
def test_features_of_the_wrong_kind_raise_clear_errors(case):
    options, cause = USES_OF_ALL_KINDS[case]
    made = declare(of_all_kinds, kinds=ALL, unit=["m", "rad", "rad", "rad", "m", "m", "rad"])
    assert used(made).equations == 7
    message = said(lambda: used(made, **options))
    assert re.search(cause, message), message
    assert message.startswith("constraint 'own' (primitive 'hostile')"), message


def said(make):
    with pytest.raises(cd.ModelError) as caught:
        make()
    return str(caught.value)


@pytest.mark.parametrize("wrong", [fine, "fine", None, 3, cd.Mechanism])
def test_constrain_accepts_only_primitives(wrong):
    m, body = mechanism()
    message = said(lambda: m.constrain("own", wrong, i=body.point(), j=m.ground.point()))
    assert message.startswith("constraint 'own' was given") and "@cd.primitive(…)" in message


def test_a_failed_constrain_does_not_change_the_mechanism():
    m, body = mechanism()
    made = declare(parametrised)
    before = m.description()
    said(lambda: m.constrain("own", made, i=body.point()))
    said(lambda: m.constrain("own", made, i=body.point(), j=elsewhere(None), c=1.0))
    assert m.description() == before
    m.constrain("own", made, i=body.point(), j=m.ground.point(), c=1.0)
    said(lambda: m.constrain("own", made, i=body.point(), j=m.ground.point(), c=2.0))
    assert len(m.joints) == 1 and m.assemble().ok


COUPLINGS = {
    "a branch": (lambda q: q if q > 0 else -q, BRANCH),
    "math.sin": (math.sin, NUMBER),
    "None": (lambda q: None, "must return one number"),
    "a list": (lambda q: [q, q], "must return one number"),
    "NaN": (lambda q: math.nan, NEITHER),
    "an error": (lambda q: 1 / 0, "raised ZeroDivisionError"),
    "no function": (3.0, "must be a function of one coordinate"),
    "two arguments": (lambda q, r: q, "raised TypeError"),
    "endless": (lambda q: endless(cd_vector(q), cd_vector(q)), f"more than {MOST_NODES} operations"),
}


def cd_vector(q):
    class Both:
        x = y = q

    return Both


@pytest.mark.parametrize("case", list(COUPLINGS))
def test_functions_of_couplings_raise_the_same_errors(case):
    function, cause = COUPLINGS[case]
    m, body = mechanism()
    hinge = m.revolute("hinge", m.ground.frame(), body.frame())
    slide = m.prismatic("slide", m.ground.frame(), m.body("another").frame())
    message = said(lambda: m.couple("couple", hinge, slide, function))
    assert "'couple'" in message and re.search(cause, message), message
