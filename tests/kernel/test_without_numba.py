"""What works without Numba: all that the library has, and users' functions, which are interpreted then."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import first_calls
import own_functions
from cardan.kernel.memory import JIT_DISABLED

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src" / "cardan"
HEAVY = first_calls.HEAVY
CLOSE = 1e-9  # an assembly ends when its residual is small enough: interpreted rows round differently

# as if an installation had none of these modules
BLOCKED = f"""
import runpy, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HEAVY}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
del sys.argv[0]
sys.path.insert(0, {str(TESTS)!r})
runpy.run_path(sys.argv[0], run_name="__main__")
"""

needs_library = pytest.mark.usefixtures("needs_library")


def run(*arguments, blocked=False):
    """What a program prints in a process of its own."""
    command = [sys.executable, *(["-c", BLOCKED] if blocked else []), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def check_own_functions(found):
    assert found["compiled"] == [] and found["interpreted"] > 8
    for name, numbers in own_functions.results().items():
        np.testing.assert_allclose(found["results"][name], numbers, rtol=0, atol=CLOSE, err_msg=name)


@pytest.mark.slow
@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_interpreted_functions_of_users_give_what_compiled_ones_give():
    check_own_functions(run(TESTS / "own_functions.py", "interpreted"))


@needs_library
@pytest.mark.slow
def test_functions_of_users_work_where_numba_is_not_installed():
    check_own_functions(run(TESTS / "own_functions.py", blocked=True))


@needs_library
@pytest.mark.slow
@pytest.mark.parametrize("verb", [verb.__name__ for verb in first_calls.VERBS])
def test_verbs_work_without_numba_and_scipy_and_do_not_look_for_them(verb):
    assert run(TESTS / "first_calls.py", verb, blocked=True)["ok"]
    found = run(TESTS / "first_calls.py", verb)
    assert found["ok"] and found["heavy"] == []


def test_a_session_loads_neither_shapes_nor_the_simulation():
    unused = {"cardan.shapes", "cardan.geometry", "cardan.analysis.simulate", "cardan.diagnosis.freedom"}
    code = f"import sys, first_calls; assert first_calls.session(); print(sorted({unused!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=TESTS, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_scipy_is_imported_only_within_functions():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.partition(".")[0] == "scipy" for name in names), path
