"""Laws on the source itself: short argument lists, few paths, and the interface of every solver."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import cardan
from cardan.solvers import methods

SOURCE = Path(cardan.__file__).parent
MOST_ARGUMENTS = 10  # self and cls are not counted
MOST_PATHS = 30  # cyclomatic complexity


def argument_count(function):
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def path_count(function):
    """Cyclomatic complexity: one, and one for each place where the flow divides, in nested functions too."""
    count = 1
    for node in ast.walk(function):
        match node:
            case ast.If() | ast.IfExp() | ast.For() | ast.AsyncFor() | ast.While() | ast.ExceptHandler() | ast.Assert():
                count += 1
            case ast.BoolOp(values=values):
                count += len(values) - 1
            case ast.comprehension(ifs=conditions):
                count += 1 + len(conditions)
            case ast.match_case():
                count += 1
    return count


@cache
def functions():
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name != "_generated.py":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    found.append((f"{path.relative_to(SOURCE).as_posix()}: {node.name}", node))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "most"), [(argument_count, MOST_ARGUMENTS), (path_count, MOST_PATHS)], ids=["arguments", "complexity"]
)
def test_functions_are_small(count, most):
    assert not {name: number for name, node in functions() if (number := count(node)) > most}


def test_paths_are_counted():
    sample = """
def f(x, ys):
    if x and ys or not x:  # 3
        return [y for y in ys if y]  # 2
    for y in ys:  # 1
        try:
            x = y if y else 1 / y  # 1
        except ZeroDivisionError:  # 1
            match x:
                case 0:  # 1
                    pass
"""
    assert path_count(ast.parse(sample).body[0]) == 10


@pytest.mark.parametrize("kernel", sorted({s.kernel for m in methods.REGISTRY.values() for s in m.stages}))
def test_every_solver_has_the_same_interface(kernel):
    module = methods.load(kernel)
    assert isinstance(module.SOLVE, int)
    assert callable(module.pieces) and callable(module.prepare)
