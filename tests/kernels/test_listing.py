"""Every compiled function is in the list of kernels, with the types of its arguments."""

from __future__ import annotations

import ast
from importlib import import_module
from inspect import isfunction
from pathlib import Path

import numpy as np
import pytest

import cardan
from cardan.constraints.registry import REGISTRY
from cardan.kernel import signatures
from cardan.kernel.listed import LISTED
from cardan.kernel.memory import JIT_DISABLED
from kernels import listing

PACKAGE = Path(cardan.__file__).parent


def test_the_list_has_the_types_of_every_kernel():
    assert [f"{module}.{name}" for module, inside in LISTED.items() for name, text in inside.items() if not text] == []
    for inside in LISTED.values():
        for text in inside.values():
            assert signatures.read(text)


def decorated(path):
    """Names of functions with a decorator that compiles them; text of what is compiled by a call."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            words = {ast.unparse(one).rpartition(".")[2] for one in node.decorator_list}
            if words & {"jit", "exact"}:
                yield node.name
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("evaluator", "jit", "exact"):
            yield ast.unparse(node.args[0]).rpartition(".")[2]


BY_USERS = {'namespace["evaluate"]', "namespace['evaluate']"}  # shapes that users trace


def test_every_compiled_function_is_listed():
    """Also where it is compiled by a call outside of a module of kernels."""
    everywhere = {name for inside in LISTED.values() for name in inside} | BY_USERS
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.parent.name != "kernel":
            module = ".".join(("cardan", *path.relative_to(PACKAGE).with_suffix("").parts))
            assert [name for name in decorated(path) if name not in LISTED.get(module, everywhere)] == [], module


def test_every_primitive_and_its_curvature_are_listed():
    for primitive in REGISTRY.values():
        if not primitive.inline:
            inside = LISTED["cardan.constraints._generated"]
            assert inside[primitive.name] == inside[f"{primitive.name}_curvature"] == "PRIMITIVE"


@pytest.mark.parametrize("module", ["_contact", "_closest", "_path"])
def test_kernels_of_contacts_are_listed(module):
    """They are found by the name of their curvature; a file without kernels would be left out."""
    functions = {name for name, one in vars(import_module(f"cardan.joints.{module}")).items() if isfunction(one)}
    names = {name.removesuffix("_curvature") for name in functions if name.endswith("_curvature")}
    assert names
    assert set(LISTED[f"cardan.joints.{module}"]) == names | {f"{name}_curvature" for name in names}


def test_a_new_kernel_is_found(tmp_path):
    path = tmp_path / "_new.py"
    path.write_text(
        "@jit\ndef called(a, n):\n    return n\n\n@inner\ndef inlined(a):\n    return 0\n\n"
        "def _solve(op, ints, floats, q, step, out, jacobian, work):\n    return 0\n\nSOLVE = evaluator(_solve)\n\n"
        "def screw(x, c, f, df):\n    return 0\n\ndef screw_curvature(x, rate, c, g):\n    return 0\n"
    )
    assert dict(listing.kernels_in(path)) == {
        "called": "CALL",
        "_solve": "EVALUATOR",
        "screw": "PRIMITIVE",
        "screw_curvature": "PRIMITIVE",
    }


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_a_call_with_other_types_is_reported():
    from cardan.kernel.jit import jit

    module = import_module("cardan.solvers._blocks")
    kernel = module.apply
    if not hasattr(kernel, "py_func"):
        pytest.skip("a built kernel has one signature; `make jit-test` runs this with those that Numba compiles")
    copy = jit(kernel.py_func)
    module.apply = copy
    try:
        r, j, x = np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.float32)
        copy(np.zeros(16, dtype=np.int64), j, x, r)
        assert signatures.unlisted() == ["cardan.solvers._blocks.apply: q1C d1C f1C d1C"]
    finally:
        module.apply = kernel
    assert signatures.unlisted() == []
