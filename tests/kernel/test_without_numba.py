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


RAISING = """
import json, math, os, signal, sys
import cardan as cd

raises = None

def gap(x, c, out):
    if raises is not None:
        raises()
    out[0] = math.dist(x[:3], x[3:]) - c[0]

def derivative(x, c, out):
    apart = (x[3:] - x[:3]) / math.dist(x[:3], x[3:])
    out[:3], out[3:] = -apart, apart

apart = cd.primitive(i="point", j="point", rows=1, parameters=["length"], derivative=derivative)(gap)
m = cd.Mechanism()
for name in "ab":
    bob = m.body(name, position=(1.0, 0.5, 0.0))
    m.constrain(f"rod {name}", apart, i=m.ground.point(), j=bob.point(), length=2.0)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it otherwise

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass

def missing():
    return no_such_name

verbs = {
    "assemble": lambda: m.assemble().status.name,
    "many": lambda: m.assemble_many([m.state] * 4, workers=2).ok.all().item(),
    "diagnose": lambda: m.diagnose() and "diagnosed",
}
found = {}
for verb, call in verbs.items():
    for case, raises in {"nothing": None, "interrupt": interrupt, "missing": missing, "exit": sys.exit,
                         "domain": lambda: math.sqrt(-1.0)}.items():
        try:
            found[f"{verb} {case}"] = call()
        except BaseException as error:
            found[f"{verb} {case}"] = type(error).__name__
    raises = None
    assert m.assemble().ok  # nothing is kept
print(json.dumps(found))
"""


@needs_library
@pytest.mark.slow
def test_exceptions_of_functions_by_hand_reach_the_caller():
    """Ctrl-C and errors of programming end the verb, in threads too; where there is no value, rows are not numbers."""
    environment = {**os.environ, "CARDAN_KERNELS": "built"}
    done = subprocess.run([sys.executable, "-c", RAISING], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0 and done.stderr == "", done.stderr[-2000:]
    found = json.loads(done.stdout)
    for verb in ("assemble", "many", "diagnose"):
        assert found[f"{verb} interrupt"] == "KeyboardInterrupt", found
        assert found[f"{verb} missing"] == "NameError", found
        assert found[f"{verb} exit"] == "SystemExit", found
    assert found["assemble nothing"] == "ASSEMBLED" and found["many nothing"] is True
    assert found["assemble domain"] not in ("ASSEMBLED", "ValueError") and found["many domain"] is False
