"""Laws on the source itself: short argument lists, and the interface of every solver."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import cardan
from cardan.solvers import methods

SOURCE = Path(cardan.__file__).parent
MOST_ARGUMENTS = 12


def functions():
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name != "_generated.py":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield path.relative_to(SOURCE), node


def test_no_function_has_more_than_a_dozen_arguments():
    found = []
    for path, node in functions():
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        count = len(names) - (names[:1] in (["self"], ["cls"]))
        if count > MOST_ARGUMENTS:
            found.append(f"{path}: {node.name} has {count}")
    assert not found, found


@pytest.mark.parametrize("kernel", sorted({s.kernel for m in methods.REGISTRY.values() for s in m.stages}))
def test_every_solver_has_the_same_interface(kernel):
    module = methods.load(kernel)
    assert isinstance(module.SOLVE, int)
    assert callable(module.pieces) and callable(module.prepare)
