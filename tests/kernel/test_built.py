"""The library of built kernels: its answers are those of Numba, and what is damaged, stale or foreign is not used."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cardan
from cardan.kernel import built, jit, memory

pytestmark = pytest.mark.usefixtures("needs_library")

PACKAGE = Path(cardan.__file__).parent
LIBRARY = built.TABLE.with_name(built.TABLE.stem + built.suffix())

# One kernel is enough to see where machine code comes from: it takes no time to compile.
FAR = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
import numpy as np
from cardan.analysis import _policy
from cardan.analysis.tables import Memo
print(bool(_policy.is_far(np.zeros(Memo.size))), type(_policy.is_far).__name__, "numba" in sys.modules)
"""
BUILT = "False builtin_function_or_method False"


@pytest.fixture
def copied(tmp_path):
    """A copy of the package with its library, to be damaged."""
    ignored = shutil.ignore_patterns("__pycache__", "examples", "page.html")
    shutil.copytree(PACKAGE, tmp_path / "cardan", ignore=ignored)
    return tmp_path


def run(path, code=FAR, **variables):
    """Output and errors of a process that imports the package from a folder."""
    environment = {k: v for k, v in os.environ.items() if k not in ("CARDAN_KERNELS", "PYTHONPATH")}
    environment |= {"PYTHONPATH": str(path), **variables}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=900, check=False
    )


def check_compiled(done, reason):
    """Numba compiled the kernel, and one line says why."""
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == "False" and done.stdout.split()[-1] == "True", done.stdout
    said = [line for line in done.stderr.splitlines() if "compiled by Numba" in line]
    assert len(said) == 1 and reason in said[0], done.stderr


def rewrite(table, **changes):
    """Change a table, with a checksum that is right."""
    content = json.loads(table.read_bytes().partition(b"\n")[2]) | changes
    text = json.dumps(content, sort_keys=True).encode()
    table.write_bytes(built.checksum(text).encode() + b"\n" + text)


def test_without_a_library_tests_of_it_are_skipped_and_fail_where_ci_is_set(monkeypatch):
    import library  # not above: a process imports this module by its path

    monkeypatch.setattr(built, "is_current", lambda modules: False)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="make kernels"):
        library.require()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="make kernels"):
        library.require()


def test_a_library_is_used_without_numba(copied):
    done = run(copied)
    assert done.stdout.strip() == BUILT and done.stderr == ""


def test_a_truncated_library_is_not_loaded(copied):
    library = copied / "cardan" / "kernel" / LIBRARY.name
    library.write_bytes(library.read_bytes()[:-4096])
    check_compiled(run(copied), f"{LIBRARY.name} is damaged")


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_a_flipped_bit_is_found(copied, place):
    library = copied / "cardan" / "kernel" / LIBRARY.name
    data = bytearray(library.read_bytes())
    data[int(place * len(data))] ^= 4
    library.write_bytes(data)
    check_compiled(run(copied), "is damaged")


def test_a_flipped_bit_of_the_table_is_found(copied):
    table = copied / "cardan" / "kernel" / built.TABLE.name
    data = bytearray(table.read_bytes())
    data[len(data) // 2] ^= 1
    table.write_bytes(data)
    check_compiled(run(copied), "library.json is damaged")


def test_a_library_of_another_system_is_not_loaded(copied):
    rewrite(copied / "cardan" / "kernel" / built.TABLE.name, system="plan9-vax")
    check_compiled(run(copied), "it was built for plan9-vax")


def test_a_file_that_is_no_library_is_refused_by_the_system(copied):
    """Its checksum is right: it was built for another system, and the table does not know."""
    foreign = b"\x7fELF no library"
    (copied / "cardan" / "kernel" / LIBRARY.name).write_bytes(foreign)
    rewrite(copied / "cardan" / "kernel" / built.TABLE.name, checksum=built.checksum(foreign))
    check_compiled(run(copied), LIBRARY.name)


def test_a_library_that_a_build_replaces_after_the_first_check_is_not_used():
    with pytest.raises(built.Refused, match=f"{LIBRARY.name} was replaced while it was loaded"):
        built._loaded(LIBRARY, built.checksum(b"the one before"))


def test_a_table_of_another_format_is_not_read(copied):
    rewrite(copied / "cardan" / "kernel" / built.TABLE.name, format=0)
    check_compiled(run(copied), "format 0")


@pytest.mark.skipif("x86_64" not in built.system(), reason="other processors have all instructions that are used")
def test_a_processor_without_avx2_gets_other_code(copied):
    """NumPy's variable takes the instructions away from its list, which is the one that is asked."""
    done = run(copied, NPY_DISABLE_CPU_FEATURES="X86_V3 AVX2 FMA3")
    check_compiled(done, "the processor lacks")


def test_without_a_library_kernels_are_compiled(copied):
    (copied / "cardan" / "kernel" / LIBRARY.name).unlink()
    check_compiled(run(copied), "none is built")


def test_where_the_library_must_be_used_an_error_says_why_it_is_not(copied):
    (copied / "cardan" / "kernel" / LIBRARY.name).write_bytes(b"")
    done = run(copied, CARDAN_KERNELS="built")
    assert done.returncode and "CARDAN_KERNELS=built" in done.stderr and "is damaged" in done.stderr


def test_the_choice_is_checked(copied):
    done = run(copied, CARDAN_KERNELS="fast")
    assert done.returncode and "CARDAN_KERNELS is 'fast'; it must be 'numba' or 'built'" in done.stderr
    done = run(copied, CARDAN_KERNELS="numba")
    assert done.stdout.split() == ["False", "CPUDispatcher", "True"] and "Numba" not in done.stderr


# Kernels of two modules: the tables of a policy, and a solver of small systems that does not depend on them.
TWO = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
import numpy as np
from cardan.analysis import _policy
from cardan.analysis.tables import Memo
from cardan.math import _dense
print(type(_policy.is_far).__name__, type(_dense.solve_definite).__name__)
"""


def test_an_edited_kernel_is_compiled_and_the_others_are_not(copied):
    """No rebuild is needed, and no outdated code runs."""
    path = copied / "cardan" / "analysis" / "_policy.py"
    text = path.read_text(encoding="utf-8")
    assert "else action) >= RESTART" in text
    path.write_text(text.replace("else action) >= RESTART", "else action) < RESTART"), encoding="utf-8")
    done = run(copied, TWO)
    assert done.stdout.split() == ["Late", "builtin_function_or_method"], done.stderr
    said = [line for line in done.stderr.splitlines() if "compiled by Numba" in line]
    assert len(said) == 1 and said[0].endswith("changed since the build: cardan.analysis._policy")
    done = run(copied)
    assert done.stdout.split() == ["True", "Late", "True"], done.stderr  # the new text
    done = run(copied, CARDAN_KERNELS="built")
    assert done.returncode and "changed since the build: cardan.analysis._policy" in done.stderr


def test_an_edit_of_what_a_kernel_imports_is_noticed(copied):
    path = copied / "cardan" / "analysis" / "tables.py"
    path.write_text(path.read_text(encoding="utf-8") + "\nADDED = 1\n", encoding="utf-8")
    assert run(copied, TWO).stdout.split() == ["Late", "builtin_function_or_method"]


def test_an_edit_of_what_compiles_is_noticed_everywhere(copied):
    path = copied / "cardan" / "kernel" / "compiler.py"
    path.write_text(path.read_text(encoding="utf-8") + "\nADDED = 1\n", encoding="utf-8")
    assert run(copied, TWO).stdout.split() == ["Late", "Late"]


def test_a_comment_changes_nothing(copied):
    path = copied / "cardan" / "analysis" / "_policy.py"
    path.write_text(path.read_text(encoding="utf-8") + "\n# a comment\n", encoding="utf-8")
    assert run(copied).stdout.strip() == BUILT


NO_NUMBA = """
import sys
sys.modules["numba"] = None  # as where it is not installed
"""


def test_without_numba_the_error_names_the_extra(copied):
    (copied / "cardan" / "kernel" / LIBRARY.name).write_bytes(b"")
    done = run(copied, NO_NUMBA + FAR)
    assert done.returncode and "ModuleNotFoundError" in done.stderr
    assert "pip install 'cardan[jit]'" in done.stderr and f"{LIBRARY.name} is damaged" in done.stderr


def test_a_home_that_cannot_be_written_is_not_needed(copied):
    (copied / "file").write_text("in the way")
    done = run(copied, CARDAN_CACHE_DIR=str(copied / "file" / "cache"))
    assert done.stdout.strip() == BUILT and done.stderr == ""
    assert not (copied / "cache").exists()


def test_nothing_is_written_to_the_home(copied):
    assert run(copied, CARDAN_CACHE_DIR=str(copied / "cache")).stdout.strip() == BUILT
    assert not (copied / "cache").exists()


def test_no_compiler_is_needed(copied):
    assert run(copied, PATH="").stdout.strip() == BUILT


@pytest.mark.slow
def test_eight_processes_at_once_load_it(copied):
    """Also while the library is replaced: each finds a pair of files that belong together, or compiles."""
    environment = {**os.environ, "PYTHONPATH": str(copied)}
    environment.pop("CARDAN_KERNELS", None)
    started = [
        subprocess.Popen([sys.executable, "-c", FAR], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    folder = copied / "cardan" / "kernel"
    other = folder / "other"
    shutil.copy(folder / LIBRARY.name, other)
    os.replace(other, folder / LIBRARY.name)
    assert {process.communicate(timeout=900)[0].split()[0] for process in started} == {"False"}


# -- calls -------------------------------------------------------------------------------------------------------------

is_built = not memory.JIT_DISABLED and built.CHOICE != "numba" and not isinstance(built._library(), str)
calls = pytest.mark.skipif(not is_built, reason="kernels of this process are Numba's")


def entry(name):
    content = json.loads(built.TABLE.read_bytes().partition(b"\n")[2])
    number, arguments, result = content["kernels"][name]
    return number, name, arguments, result


def loaded(use_buffers):
    """The extension module, loaded once more; use_buffers: it reads arrays by the buffer protocol alone."""
    spec = importlib.util.spec_from_file_location("cardan.kernel.library", LIBRARY)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if use_buffers:
        module.use_buffers()
    return module


def test_wrong_arguments_are_refused():
    """Every kind of argument, in a process of its own for each way to read arrays: nothing is read or written."""
    for way in ("", "use_buffers"):
        code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_built; "
        done = run(PACKAGE.parent, code + f"test_built.refusals({way!r})")
        assert done.returncode == 0, done.stderr


def refusals(way):
    """Calls with arguments of wrong types; each is an error that names the kernel, the argument and what it must be."""
    library = loaded(bool(way))
    nearer = library.kernel(*entry("cardan.analysis._policy.is_nearer"))
    solve = library.kernel(*entry("cardan.math._dense.solve_definite"))
    memo = np.zeros(64)
    assert nearer(memo, True, 0.5) in (True, False)
    assert nearer(memo, np.True_, np.float32(0.5)) in (True, False) and nearer(memo, False, 1) in (True, False)
    readonly = memo.copy()
    readonly.flags.writeable = False
    shifted = np.frombuffer(bytearray(8 * 64 + 1), dtype=np.uint8)[1:].view(np.float64)
    for wrong in (
        memo.astype(np.float32),
        memo.astype(">f8"),
        memo.astype(np.int64),
        memo.reshape(8, 8),
        np.zeros(128)[::2],
        readonly,
        shifted,
        memo.tolist(),
        None,
        3.0,
        np.float64(3.0),
        memo.astype(object),
        np.ma.masked_array(memo),
    ):
        with pytest.raises(TypeError, match=r"^cardan\.analysis\._policy\.is_nearer: argument 1 is .*; it must be an "):
            nearer(wrong, True, 0.5)
    with pytest.raises(TypeError, match=r"argument 2 is .*; it must be a bool"):
        nearer(memo, "yes", 0.5)
    for wrong in ("0.5", None, memo, 1j):
        with pytest.raises(TypeError, match=r"argument 3 is .*; it must be a number"):
            nearer(memo, True, wrong)
    with pytest.raises(OverflowError):
        nearer(memo, True, 10**400)
    with pytest.raises(TypeError, match="takes 3 arguments, not 2"):
        nearer(memo, True)
    with pytest.raises(TypeError, match="keyword"):
        nearer(memo, True, shift=0.5)
    matrix, right = np.array([4.0]), np.array([8.0])
    for number in (1.0, "1", None, np.array([1]), np.float64(1.0)):
        with pytest.raises(TypeError, match=r"argument 1 is .*; it must be an integer"):
            solve(number, matrix, 0.0, right, right)
    for number in (2**63, -(2**63) - 1):
        with pytest.raises(OverflowError):
            solve(number, matrix, 0.0, right, right)
    for number in (1, np.int64(1), np.uint8(1)):
        solve(number, matrix.copy(), 0.0, right.copy(), np.zeros(1))
    assert nearer(np.zeros(64, np.dtype("f8").newbyteorder("=")), True, 0.5) in (True, False)
    for number in (-1, 10**6, 2**32):
        with pytest.raises(IndexError, match="there is no kernel"):
            library.address(number)
    for arguments in ("x", "d9C", "d1X", "d1Cx", "d " * 30):
        with pytest.raises(ValueError, match="signature that is not known"):
            library.kernel(0, "name", arguments, "n")
    for result in ("", "z", "d" * 9):
        with pytest.raises(ValueError, match="signature that is not known"):
            library.kernel(0, "name", "d", result)


@calls
def test_an_unpickled_array_is_accepted():
    """Its dtype is equal, and another object."""
    import pickle

    from cardan.analysis import _policy
    from cardan.analysis.tables import Memo

    memo = pickle.loads(pickle.dumps(np.zeros(Memo.size)))
    assert _policy.is_far(memo) == _policy.is_far(np.zeros(Memo.size))


@calls
def test_a_kernel_of_the_library_can_be_called_by_one_of_numba():
    """Numba compiles its function: kernels that are compiled in this process call kernels that were built."""
    from cardan.analysis import _policy
    from cardan.analysis.tables import Memo

    far = _policy.is_far
    assert type(far).__name__ == "builtin_function_or_method"

    @jit.jit
    def is_near(memo):
        return not far(memo)

    memo = np.zeros(Memo.size)
    assert is_near(memo) == (not far(memo))


# -- answers -----------------------------------------------------------------------------------------------------------

ANSWERS = """
import sys
import numpy as np
from cardan.examples import REGISTRY, random_start
for name in ("rsur", "stewart_ups", "differential"):
    m = REGISTRY[name].build()
    for seed in range(3):
        found = m.assemble(m.state.moved(random_start(m, seed)))
        print(found.status.name, *map(float.hex, found.state.coordinates.ravel().tolist()))
m = REGISTRY["four_cylinder"].build()
run = m.simulate(0.002)
print(run.status, *map(float.hex, run.states[-1].coordinates.ravel().tolist()))
"""


@pytest.mark.long
@pytest.mark.skipif("x86_64" not in built.system(), reason="Numba is told the processor")
def test_answers_agree_with_those_of_numba(tmp_path):
    """To the bit, for the same processor: Numba compiles for x86-64-v3 here."""
    processor = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": "+avx2,+fma,+bmi,+bmi2,+lzcnt,+movbe,+f16c"}
    ours = run(PACKAGE.parent, ANSWERS, CARDAN_KERNELS="built")
    theirs = run(PACKAGE.parent, ANSWERS, CARDAN_KERNELS="numba", CARDAN_CACHE_DIR=str(tmp_path), **processor)
    assert ours.returncode == 0 == theirs.returncode, ours.stderr + theirs.stderr
    assert ours.stdout == theirs.stdout
