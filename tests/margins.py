"""Option ``--margins FILE``: lists bars that tests meet by less than a factor of 3.

Such a bar may fail on another processor.  While tests run, ``value < bar``, ``value <= bar`` and ``x == approx(y)`` in
assertions, and calls of ``allclose`` and ``assert_allclose``, are recorded.  FILE has a line for each of them in tests
that passed: the least bar/value, the value, the bar, the place and the source.  ``0.1 < x`` and ``x > 0.1`` are floors,
which show that a case is not empty; floors, integers, what is in ``not`` and what selects elements are left out.

Off, it costs one option.  On, test modules are compiled again, with a call in place of each comparison.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import operator
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FACTOR = 3.0
NAME = "@margins"  # of the recorder, in the modules of tests
OPERATORS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
CLOSE = {"allclose", "assert_allclose"}
ALL = {"all"}  # in arguments of other functions, such as where, a comparison selects
APPROX = type(pytest.approx(0.0)).__mro__[-2]  # the base of all kinds; its module depends on the version of pytest

Margin = tuple[float, float, float]  # bar/value, value, bar


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--margins", metavar="FILE", help=f"list bars that are met by less than a factor of {FACTOR:g}")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--margins")
    if path:
        config.pluginmanager.register(Margins(config, Path(config.invocation_params.dir, path)))


class Margins:
    """The recorder: what the tests of this process compare, and in the process that writes FILE, that of all tests."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self.is_worker = hasattr(config, "workerinput")  # of pytest-xdist
        self.path, self.root = path, config.rootpath
        self.margins: dict[str, Margin] = {}  # of the test that runs, by place
        self.found: dict[str, tuple[Margin, str]] = {}  # with the test that has the least
        setattr(builtins, NAME, self)
        self._compile_with_calls()

    def _compile_with_calls(self) -> None:
        """Insert the calls before pytest rewrites assertions; its compiled modules are neither read nor written."""
        from _pytest.assertion import rewrite

        rewrite_asserts: Callable[..., None] = rewrite.rewrite_asserts

        def with_calls(tree: ast.Module, source: bytes, path: str | None = None, config: Any = None) -> None:
            place = Path(path or "?")
            _Calls(str(place.relative_to(self.root) if place.is_relative_to(self.root) else place)).visit(tree)
            rewrite_asserts(ast.fix_missing_locations(tree), source, path, config)

        rewrite.rewrite_asserts = with_calls
        rewrite._read_pyc = lambda *arguments: None
        sys.dont_write_bytecode = True

    # -- called by tests

    def compare(self, place: str, operators: tuple[str, ...], floors: tuple[bool, ...], *values: Any) -> Any:
        """A comparison, or a chain of them."""
        result: Any = True
        for k, name in enumerate(operators):
            left, right = values[k : k + 2]
            result = OPERATORS[getattr(ast, name)](left, right)
            if name == "Eq":
                self._record(place, _approximate(left, right) or _approximate(right, left))
            elif name in ("Lt", "LtE") and not floors[k] and _is_number(left) and _is_number(right):
                self._record(place, (left, right))
            if k < len(operators) - 1 and not result:
                break
        return result

    def close(self, place: str, function: Callable[..., Any], *values: Any, **options: Any) -> Any:
        """A call of a function such as np.allclose."""
        result = function(*values, **options)
        call = inspect.signature(function).bind(*values, **options)
        call.apply_defaults()
        first, second = list(call.arguments.values())[:2]
        if _is_number(first) and _is_number(second):
            import numpy as np

            first, second = np.asarray(first), np.asarray(second)
            bar = call.arguments["atol"] + call.arguments["rtol"] * np.abs(second)
            self._record(place, (np.abs(first - second), bar))
        return result

    def _record(self, place: str, pair: tuple[Any, Any] | None) -> None:
        if pair is None:
            return
        import numpy as np

        values, bars = np.broadcast_arrays(*(np.asarray(part) for part in pair))
        if values.dtype.kind in "iub" and bars.dtype.kind in "iub":
            return
        counts = (values > 0.0) & (values <= bars) & np.isfinite(bars)
        if counts.any():
            values, bars = values[counts], bars[counts]
            k = int(np.argmin(bars / values))
            margin = float(bars[k] / values[k]), float(values[k]), float(bars[k])
            if margin[0] < FACTOR:
                self.margins[place] = min(margin, self.margins.get(place, margin))

    # -- called by pytest

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self.margins.clear()
        yield
        item.user_properties.append(("margins", {place: list(margin) for place, margin in self.margins.items()}))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" or not report.passed:
            return
        for place, (ratio, value, bar) in dict(report.user_properties).get("margins", {}).items():  # type: ignore[attr-defined]
            found = (ratio, value, bar), report.nodeid
            self.found[place] = min(found, self.found.get(place, found))

    def pytest_sessionfinish(self) -> None:
        if not self.is_worker:
            self.path.write_text("".join(f"{line}\n" for line in self._lines()), encoding="utf-8")

    def _lines(self) -> Iterator[str]:
        for place, ((ratio, value, bar), test) in sorted(self.found.items(), key=lambda item: item[1]):
            path, line = place.rsplit(":", 1)
            source = linecache.getline(str(self.root / path), int(line)).strip()
            yield f"{ratio:.2f}  {value:.3g} of {bar:.3g}  {place}  {source}  # {test.rsplit('::', 1)[-1]}"


class _Calls(ast.NodeTransformer):
    """Puts calls of the recorder in place of comparisons in assertions, and around calls of functions in CLOSE."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._asserts = False

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        self._asserts = True
        node.test = self.visit(node.test)
        self._asserts = False
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if not isinstance(node.op, ast.Not):
            self.generic_visit(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        node.value = self.visit(node.value)  # a comparison in an index selects
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        kinds = [type(op) for op in node.ops]
        if not self._asserts or not OPERATORS.keys() >= set(kinds) or not {ast.Lt, ast.LtE, ast.Eq} & set(kinds):
            return node
        sides = [node.left, *node.comparators]
        floors = tuple(not any(isinstance(part, ast.Name) for part in ast.walk(side)) for side in sides[:-1])
        constants = [ast.Constant(tuple(kind.__name__ for kind in kinds)), ast.Constant(floors)]
        return self._call("compare", node, [*constants, *sides], [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in CLOSE:
            return self._call("close", node, [node.func, *node.args], node.keywords)
        node.func = self.visit(node.func)
        if name in ALL or not self._asserts:
            node.args = [self.visit(argument) for argument in node.args]
        return node

    def _call(self, name: str, node: ast.expr, values: list[ast.expr], keywords: list[ast.keyword]) -> ast.expr:
        function = ast.Attribute(ast.Name(NAME, ast.Load()), name, ast.Load())
        place = ast.Constant(f"{self._path}:{node.lineno}")
        return ast.copy_location(ast.Call(function, [place, *values], keywords), node)


def _is_number(value: Any) -> bool:
    """Whether a value is a number or an array or sequence of numbers."""
    import numpy as np

    if isinstance(value, list | tuple):
        return bool(value) and all(map(_is_number, value))
    return isinstance(value, int | float) or (isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fiu")


def _approximate(value: Any, approx: Any) -> tuple[Any, Any] | None:
    """Differences from the numbers of pytest.approx, and its tolerances; None if there are no such numbers."""
    if not isinstance(approx, APPROX):
        return None
    import numpy as np

    expected = approx.expected
    if isinstance(expected, dict) and isinstance(value, dict) and value.keys() == expected.keys():
        value, expected = [value[key] for key in expected], list(expected.values())
    value = list(value) if isinstance(value, set | range) else value
    if not (_is_number(value) and _is_number(expected)):
        return None
    value, expected = np.asarray(value, dtype=float), np.asarray(expected, dtype=float)
    if value.shape != expected.shape and expected.shape:
        return None
    relative = approx.rel if approx.rel is not None else 0.0 if approx.abs is not None else 1e-6
    absolute = approx.abs if approx.abs is not None else 1e-12
    return np.abs(value - expected), np.maximum(relative * np.abs(expected), absolute)
