"""Laws of the kernel cache: everything works without it, and no edit of a source leaves outdated kernels in use."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cardan
from cardan.kernel import cache, jit, machine_code, memory, sources
from cardan.kernel.sources import OUTSIDE

PACKAGE = Path(cardan.__file__).parent

ASSEMBLE = """
import logging
logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
import cardan as cd
m = cd.Mechanism()
arm, rod = m.body("arm", position=(1, 2, 3)), m.body("rod", orientation=(1, 2, 3, 4))
m.revolute("hinge", m.ground.frame(), arm.frame())
m.universal("joint", arm.frame((1, 0, 0), z=(1, 0, 0)), rod.frame())
m.distance("stay", m.ground.point((2, 0, 0)), rod.point((0, 0, 1)), 1.5)
result = m.assemble()
print(result.ok, result.residual <= 1e-12)
from cardan.kernel import cache
print(cache.CACHE_DIRECTORY)
"""

WHERE = """
from cardan.kernel import cache
import numba
print(cache.CACHE_DIRECTORY)
print(numba.config.CACHE_DIR)
"""


def run(code, cache, *, path=None, **variables):
    """Lines on stdout and on stderr of a new interpreter with its kernel cache in ``cache``."""
    environment = {
        k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONPATH", "NUMBA_DISABLE_JIT")
    }
    environment |= {"CARDAN_CACHE_DIR": str(cache), "CARDAN_KERNELS": "numba", **variables}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()


@pytest.mark.slow
def test_where_no_cache_can_be_written_kernels_run_uncached_after_one_warning(tmp_path):
    """The directory would be below a regular file: even root cannot create it."""
    obstacle = tmp_path / "file"
    obstacle.write_text("in the way")
    printed, said = run(ASSEMBLE, obstacle / "cache")
    assert printed == ["True True", "None"]
    warnings = [line for line in said if line.startswith("WARNING") and "compiling kernels" not in line]
    assert len(warnings) == 1 and len(said) <= 2, said  # a slow machine also says that it compiles
    assert "cardan" in warnings[0] and "not cached" in warnings[0] and str(obstacle) in warnings[0]
    assert obstacle.read_text() == "in the way"
    assert list(tmp_path.iterdir()) == [obstacle]


ANSWERS = """
import hashlib
import numpy as np
from cardan.examples import REGISTRY, random_start
from cardan import checkout
liu2013 = checkout.load("papers.liu2013")
m = REGISTRY["rsur"].build()
starts = [m.state.moved(random_start(m, seed)) for seed in range(20)]
for method in ("auto", "newton"):
    one = np.array([m.assemble(start, method=method).state.coordinates for start in starts])
    many = m.assemble_many(starts, method=method).coordinates
    print(hashlib.sha256(one.tobytes()).hexdigest(), np.array_equal(one, many))
p = np.random.default_rng(0).normal(size=(300, 4))
found = liu2013.algorithm_1(4, 2, "manifold", p)
print(hashlib.sha256(found.iterations.tobytes() + found.norms.tobytes()).hexdigest())
"""


@pytest.mark.long
def test_compiled_and_loaded_kernels_give_the_same_bits(tmp_path):
    """Cached machine code must call the same copies of functions as the process that compiled it."""
    first, again = (run(ANSWERS, tmp_path / "cache")[0] for _ in range(2))
    assert first == again
    assert [line.split()[1] for line in first[:2]] == ["True", "True"]


@pytest.fixture
def copied(tmp_path):
    """A copy of the package, to be edited."""
    shutil.copytree(PACKAGE, tmp_path / "cardan", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def sources_of(copied):
    return cache.Sources(copied / "cardan", None)


def edit(path, text="\nan_edit = 1\n"):
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def kernel_modules():
    names = cache.SOURCES.kernels()
    assert len(names) >= 60 and "cardan.dynamics._adams" in names
    return names


def digests(copied):
    found = sources_of(copied)
    return {name: found.digest(name) for name in kernel_modules()}


@pytest.mark.slow
def test_an_edit_changes_the_digests_of_what_depends_on_it_and_no_other(copied):
    """Numba itself checks only the file of the function."""
    before = digests(copied)
    edit(copied / "cardan" / "dynamics" / "_adams.py")
    after = digests(copied)
    changed = {name for name in before if after[name] != before[name]}
    assert "cardan.dynamics._adams" in changed and "cardan.math._dense" not in changed
    edit(copied / "cardan" / "math" / "_dense.py")
    changed = {name for name, digest in digests(copied).items() if digest != after[name]}
    assert {"cardan.math._dense", "cardan.solvers._dense_normal"} <= changed and "cardan.geometry._curve" not in changed


def test_every_file_that_a_kernel_imports_is_part_of_its_digest():
    """Found here by words of the text, not by its syntax."""
    for name in kernel_modules():
        reached = cache.SOURCES.closure([name])
        text = cache.SOURCES.file(name).read_text(encoding="utf-8")
        for module, names in re.findall(r"^from (cardan[\w.]*) import (\([^)]*\)|.*)$", text, re.M):
            words = [f"{module}.{word}" for word in re.findall(r"(\w+)(?: as \w+)?", names)]
            files = {word for word in words if cache.SOURCES.file(word)} or {module}
            assert files <= reached.keys() | OUTSIDE, (name, files)


@pytest.mark.slow
def test_what_compiles_kernels_is_part_of_every_digest(copied):
    before = digests(copied)
    edit(copied / "cardan" / "kernel" / "compiled_fields.py")
    after = digests(copied)
    assert all(after[name] != before[name] for name in before)


@pytest.mark.slow
def test_comments_docstrings_and_other_files_change_no_digest(copied):
    before = digests(copied)
    for file in ("cli/__init__.py", "mechanism/mechanism.py"):
        edit(copied / "cardan" / file)
    dense = copied / "cardan" / "math" / "_dense.py"
    text = dense.read_text(encoding="utf-8")
    assert text.startswith('"""')
    dense.write_text("# a comment\n\n" + text.replace('"""', '"""More words: ', 1), encoding="utf-8")
    assert digests(copied) == before


def test_a_copy_elsewhere_with_the_same_sources_has_the_same_digests(copied):
    assert digests(copied) == digests(PACKAGE.parent)


def test_digests_of_unchanged_files_are_read_from_disk(copied, tmp_path, monkeypatch):
    memory = tmp_path / "digests.json"
    first = cache.Sources(copied / "cardan", memory).digest("cardan.math._dense")
    with monkeypatch.context() as patch:
        patch.setattr(sources.ast, "parse", None)
        assert cache.Sources(copied / "cardan", memory).digest("cardan.math._dense") == first
    memory.write_text("{ damaged")
    assert cache.Sources(copied / "cardan", memory).digest("cardan.math._dense") == first
    edit(copied / "cardan" / "math" / "_dense.py")
    assert cache.Sources(copied / "cardan", memory).digest("cardan.math._dense") != first


def test_of_the_machine_code_of_a_module_only_the_newest_versions_are_kept(tmp_path):
    for k in range(12):
        machine_code._Reduction(tmp_path / f"cardan.math._dense-{k:016x}").ensure_cache_path()
        os.utime(tmp_path / f"cardan.math._dense-{k:016x}", (k, k))
    machine_code._Reduction(tmp_path / "cardan.math._other-0").ensure_cache_path()
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == [*(f"cardan.math._dense-{k:016x}" for k in range(4, 12)), "cardan.math._other-0"]


def test_the_cache_of_other_numba_code_stays_where_it_was(tmp_path):
    (_, numba_cache), _ = run(WHERE, tmp_path / "ours", NUMBA_CACHE_DIR=str(tmp_path / "theirs"))
    assert numba_cache == str(tmp_path / "theirs")


def test_the_cache_is_where_the_environment_says(monkeypatch):
    for variable in ("CARDAN_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", "/nobody")
    assert cache.cache_root() == Path("/nobody/.cache/cardan")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache.cache_root() == Path("/xdg/cardan")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/numba")
    assert cache.cache_root() == Path("/numba/cardan")
    monkeypatch.setenv("CARDAN_CACHE_DIR", "/own")
    assert cache.cache_root() == Path("/own")


@pytest.mark.nojit
def test_a_pointer_is_indexed_and_cut_like_its_array():
    numbers = np.arange(10.0)
    assert cut(numbers, 4) == (4.0, 7.0, 12.0)
    assert numbers[5] == -1.0


@jit.jit
def cut(array, first):
    """Elements ``first``, ``first + 3``, and a sum by a second cut; writes −1 to element ``first + 1``."""
    mine = memory.tail(memory.pointer(array), first)
    mine[1] = -1.0
    rest = memory.tail(array, first)
    return mine[0], rest[3], rest[0] + memory.tail(mine, 2)[2]


@pytest.mark.nojit
def test_a_piece_starts_at_its_first_element():
    numbers = np.arange(10.0)
    assert piece(numbers, 4, 3) == (4.0, 6.0)
    assert numbers[5] == -1.0
    assert piece(numbers, 7, 3) == (7.0, 9.0)


@jit.jit
def piece(array, first, size):
    """First element (by a pointer) and last element (by the array) of a piece; writes −1 to element ``first + 1``."""
    mine = memory.cut(memory.pointer(array), first, size)
    mine[1] = -1.0
    return mine[0], memory.cut(array, first, size)[size - 1]


@pytest.mark.nojit
@pytest.mark.skipif(not memory.JIT_DISABLED, reason="compiled kernels do not check bounds")
@pytest.mark.parametrize("first, size", [(-1, 2), (8, 3), (11, 0), (2, -1), (0, 11)])
def test_without_the_jit_a_piece_must_be_within_its_array(first, size):
    with pytest.raises(IndexError, match=f"{size} elements from {first} on"):
        memory.cut(np.zeros(10), first, size)
    assert memory.cut(np.zeros(10), 10, 0).size == 0


@pytest.mark.nojit
@pytest.mark.skipif(not memory.JIT_DISABLED, reason="compiled kernels do not check bounds")
def test_without_the_jit_a_negative_first_element_is_an_error():
    with pytest.raises(IndexError, match="at element -1"):
        memory.tail(np.zeros(10), -1)


@pytest.mark.skipif(memory.JIT_DISABLED, reason="types are Numba's")
@pytest.mark.parametrize("wrong", [np.arange(9.0)[::2], np.zeros((3, 3)), 5.0])
def test_pointer_rejects_arrays_that_are_not_contiguous(wrong):
    with pytest.raises(TypeError, match="must be a contiguous array"):
        cut(wrong, 1)
    with pytest.raises(TypeError, match="must be a contiguous array"):
        cut_array(wrong, 1)


@jit.jit
def cut_array(array, first):
    return memory.tail(array, first)[0]


@pytest.mark.skipif(memory.JIT_DISABLED, reason="types are Numba's")
@pytest.mark.parametrize("wrong", [np.zeros(3, dtype=np.int32), np.zeros(3, dtype=np.float32), np.zeros((2, 2))])
def test_an_evaluator_rejects_arguments_of_the_wrong_type(wrong):
    from cardan.solvers import _blocks

    f, i = np.zeros(9), np.zeros(9, dtype=np.int64)
    with pytest.raises(TypeError, match="must be an? .*contiguous.* array of"):
        _blocks.call_at(1, 0, i, wrong, f, f, f, f, f)
    with pytest.raises(TypeError, match="must be an? .*contiguous.* array of"):
        _blocks.call_at(1, 0, f, f, f, f, f, f, f)
