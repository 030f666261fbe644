"""The private parts of Numba that docs/kernels.md lists: each still does what the library relies on.

Where a part is needed for the cache alone, its failure leaves kernels that work and are not kept.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import operator
import re
import subprocess
import sys
import zlib
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import caching, ccallback

from cardan.kernel import cache as kernel_cache
from cardan.kernel import compiled_memory, compiler, jit, machine_code, memory
from cardan.kernel.compiled_memory import EVALUATOR_SIGNATURE
from cardan.kernel.dual import Dual
from cardan.kernel.memory import view  # by name: Numba takes any attribute of that name for the method of a NumPy dtype

if memory.JIT_DISABLED:
    pytest.skip("nothing of Numba's is used", allow_module_level=True)

SOURCE = """
from cardan.kernel.jit import evaluator, jit

@jit
def double(x):
    return 2.0 * x

def add(op, ints, floats, q, step, out, jacobian, work):
    out[0] = q[0] + floats[0] + ints[0] + op
    return 7
"""

CALL = """
from cardan.kernel.jit import jit
from cardan.kernel.memory import call_evaluator

@jit
def call(address, ints, floats):
    out = floats[1:]
    status = call_evaluator(address, 1, ints, floats, floats, floats, out, floats, floats)
    return status, out[0]
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of our own."""
    directory = kernel_cache.private(tmp_path / "cache")
    monkeypatch.setattr(kernel_cache, "CACHE_DIRECTORY", directory)
    return directory


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load a module of that source; each time as in a new process, with nothing compiled."""
    monkeypatch.syspath_prepend(tmp_path)

    def load(source=SOURCE, name="kernels_of_a_test"):
        path = tmp_path / f"{name}.py"
        if not path.exists():
            path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load


def files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def check_kernels(load) -> None:
    """A kernel and an evaluator of a newly loaded module compute what they should."""
    module = load()
    assert module.double(3.0) == 6.0
    call = load(CALL, "caller_of_a_test").call
    assert call(jit.evaluator(module.add), np.array([10]), np.array([0.5, 0.0, 0.0])) == (7, 12.0)


def check_uncached(load, cache, caplog) -> None:
    """Kernels work, are not kept, and a warning says so."""
    with caplog.at_level(logging.WARNING, "cardan"):
        check_kernels(load)
    assert files(cache) == []
    assert any("compiled in every process" in line for line in caplog.messages), caplog.messages
    assert not machine_code.is_cached(load().double)


# --- the cache: FunctionCache, IndexDataCacheFile, Dispatcher._cache, CFunc -------------------------------------------


def test_a_dispatcher_reads_and_writes_the_cache_it_is_given(cache, load):
    """Dispatcher._cache, FunctionCache."""
    first = load().double
    assert first(3.0) == 6.0
    assert first.stats.cache_misses and not first.stats.cache_hits
    again = load().double
    assert again(3.0) == 6.0
    assert again.stats.cache_hits and not again.stats.cache_misses


def test_a_c_function_reads_and_writes_the_cache_it_is_given(cache, load):
    """CFunc and its _cache, compile, address."""
    for hits in (0, 1):
        jit.evaluator(load().add)
        compiled = compiler._keep_alive[-1]
        assert isinstance(compiled, ccallback.CFunc)
        assert compiled.cache_hits == hits
    check_kernels(load)


def test_an_entry_carries_a_checksum_and_a_damaged_one_is_compiled_anew(cache, load, caplog):
    """FunctionCache: _cache_file, load_overload, save_overload; numba.core.serialize.dumps."""
    load().double(3.0)
    (data,) = files(cache)
    code = data.read_bytes()
    assert code[:4] == zlib.crc32(code[4:]).to_bytes(4, "big")
    data.write_bytes(code[:-1] + bytes([code[-1] ^ 1]))
    again = load().double
    assert again(3.0) == 6.0 and not again.stats.cache_hits
    assert "is damaged" in caplog.text
    assert data.read_bytes() == code or zlib.crc32(data.read_bytes()[4:]).to_bytes(4, "big") == data.read_bytes()[:4]
    assert files(cache) == [data]  # no lock, and no temporary file


def test_it_is_known_whether_a_kernel_is_kept(cache, load):
    kernel = load().double
    assert not machine_code.is_cached(kernel)
    kernel(3.0)
    assert machine_code.is_cached(kernel) and machine_code.is_cached(load().double)


def test_a_cache_does_not_touch_the_configuration_of_numba(cache, load):
    before = numba.config.CACHE_DIR
    assert Path(machine_code.cache_of(load().double.py_func).cache_path).is_relative_to(cache)
    assert before == numba.config.CACHE_DIR


def test_entries_of_different_keys_have_files_of_their_own(cache):
    entries = machine_code._Entries(str(cache), "kernel", None)
    late = machine_code._Entries(str(cache), "kernel", None)
    for one, key in ((entries, "a"), (late, "b"), (entries, "a")):
        one.save(key, f"code of {key}")
    assert [entries.load(key) for key in "ab"] == ["code of a", "code of b"] and entries.load("c") is None
    assert len(list(cache.glob("*.nbc"))) == 2


def test_a_kernel_outside_the_package_depends_on_what_its_file_imports(cache, load, tmp_path):
    (tmp_path / "imported_by_a_test.py").write_text("FACTOR = 2.0\n")
    imports = "from cardan.kernel.jit import jit\nfrom imported_by_a_test import FACTOR\n"
    source = f"{imports}\n@jit\ndef f(x):\n    return FACTOR * x\n"
    assert load(source, "importing_kernel").f(3.0) == 6.0
    (tmp_path / "imported_by_a_test.py").write_text("FACTOR = 5.000\n")
    sys.modules.pop("imported_by_a_test")
    importlib.invalidate_caches()
    assert load(source, "importing_kernel").f(3.0) == 15.0
    sys.modules.pop("imported_by_a_test")


def test_keys_of_entries_are_those_of_numba(cache, load):
    """FunctionCache._index_key: the signature, the processor, and digests of the code."""
    kernel = load().double
    kernel(3.0)
    (signature,) = kernel.overloads
    key = kernel._cache._index_key(signature, kernel.targetctx.codegen())
    assert len(key) == 3 and key[1] == kernel.targetctx.codegen().magic_tuple() and len(key[2]) == 2
    (data,) = files(cache)
    assert repr(key).encode() in data.read_bytes() and numba.__version__.encode() in data.read_bytes()


def test_without_the_classes_of_the_cache_kernels_run_uncached(cache, load, caplog, monkeypatch):
    """What an ImportError leaves: bases without anything."""
    bare = type("_Cache", (), {"__init__": lambda self, function, root: object.size})
    monkeypatch.setattr(machine_code, "_Cache", bare)
    check_uncached(load, cache, caplog)
    assert len(caplog.messages) == 1  # not once for each kernel


def test_the_library_loads_without_the_classes_of_the_cache(monkeypatch, load, cache, caplog):
    source = Path(machine_code.__file__).read_text()
    source = source.replace("from numba.core.caching import", "from numba.core.no_caching import")
    module = type(machine_code)("cardan.kernel.machine_code")
    module.__file__ = machine_code.__file__
    exec(compile(source, machine_code.__file__, "exec"), module.__dict__)
    monkeypatch.setattr(compiler, "cache_of", module.cache_of)
    with caplog.at_level(logging.WARNING, "cardan"):
        double = load().double
    assert double(3.0) == 6.0 and files(cache) == [] and len(caplog.messages) == 1
    assert not module.is_cached(double)


@pytest.mark.slow
def test_without_the_class_of_c_functions_they_are_compiled_uncached(cache, load, caplog, monkeypatch):
    def none(*arguments, **options):
        raise TypeError("other arguments")

    function = load().add
    with monkeypatch.context() as patch:
        patch.setattr(ccallback, "CFunc", none)
        with caplog.at_level(logging.WARNING, "cardan"):
            assert compiler._cached_c_function(function, EVALUATOR_SIGNATURE, dict(compiler._OPTIONS)) is None
    assert kernel_cache.CACHE_DIRECTORY is None and "other arguments" in caplog.text
    check_kernels(load)
    assert files(cache) == []


@pytest.mark.parametrize("name", ["_load_overload", "_save_overload"])
def test_a_cache_that_fails_leaves_kernels_that_work(name, cache, load, caplog, monkeypatch):
    """Whatever Numba's cache raises, when it is read or written."""

    def fails(self, *arguments):
        raise AttributeError("no such part")

    monkeypatch.setattr(caching.FunctionCache, name, fails)
    with caplog.at_level(logging.WARNING, "cardan"):
        check_kernels(load)
    assert "no such part" in caplog.text


def test_without_a_part_of_the_cache_nothing_counts_as_kept(cache, load, monkeypatch):
    kernel = load().double
    kernel(3.0)
    monkeypatch.delattr(kernel._cache, "_cache_file")
    assert not machine_code.is_cached(kernel)


# --- options of compilation: forceinline, no_cpython_wrapper, no_cfunc_wrapper, _nrt ----------------------------------


def long_function(x, n):
    """So long, and called so often below, that LLVM does not inline it by itself."""
    s = x
    for i in range(n):
        s = np.sin(s) * np.cos(s + i) + np.exp(-s * s) + np.tan(s) + np.log(1.0 + s * s) + np.arctan(s)
        if s > 3.0:
            s = np.sqrt(s) + np.sinh(s) - np.cosh(s + i) * np.tanh(s) + np.arcsin(s / 1e9)
        for j in range(i):
            s += np.sin(s * j) + np.cos(s - j) * np.exp(-s * s * j)
    return s


def calls_of(inner) -> int:
    """How often the machine code of a kernel that uses an inner function four times calls it."""

    @jit.jit
    def kernel(x):
        return inner(x, 2) + inner(x + 1.0, 3) + inner(x + 2.0, 4) + inner(inner(x, 5), 6)

    kernel(0.1)
    (code,) = kernel.inspect_llvm().values()
    return len(re.findall(r"call [^\n]*long_function", code))


@pytest.mark.slow
def test_inner_functions_are_inlined():
    """forceinline: without it LLVM decides, and a process that loads kept code may run another copy."""
    options = {key: value for key, value in compiler._INLINE.items() if key != "forceinline"}
    assert calls_of(jit.inner(long_function)) == 0
    assert calls_of(numba.njit(**{**compiler._OPTIONS, **options})(long_function)) > 0


def test_inner_functions_have_no_wrappers():
    """no_cpython_wrapper, no_cfunc_wrapper: they cost time to compile."""
    wrapped = numba.njit(**compiler._OPTIONS)(long_function)
    for kernel, expected in ((jit.inner(long_function), False), (wrapped, True)):
        kernel.compile("float64(float64, int64)")
        (code,) = kernel.inspect_llvm().values()
        assert ("PyArg_UnpackTuple" in code) == expected  # of the wrapper for Python
        assert (re.search(r"define [^\n]*@cfunc\.", code) is not None) == expected


def test_inner_functions_become_machine_code_in_their_callers_alone():
    """JITCodeLibrary, Compiler, pipeline_class: machine code of an inner function itself would never be executed."""
    inner = jit.inner(long_function)

    @jit.jit
    def kernel(x):
        return inner(x, 2)

    assert kernel(0.1) == pytest.approx(long_function(0.1, 2), rel=1e-12)
    for compiled, expected in ((inner, False), (kernel, True)):
        (result,) = compiled.overloads.values()
        assert (result.library._compiled_object is not None) == expected


def test_kernels_find_the_compiled_form_of_a_dual():
    """Of a function, of one that is made while a kernel is compiled, and of an intrinsic."""
    half = Dual(lambda x: 0.0, lambda: compiler.inner(lambda x: 0.5 * x))  # the form of Python is another one here
    second = Dual(lambda array, k: None, lambda: compiled_memory.piece(2, 1, 1))

    @jit.jit
    def kernel(array):
        return half(second(array, 1)[0]) + memory_tail(array, 2)[0]

    memory_tail = memory.tail
    assert kernel(np.arange(4.0)) == 0.5 * 3.0 + 2.0


def test_without_the_classes_of_libraries_inner_functions_are_compiled_as_by_numba(monkeypatch, cache, caplog):
    source = (
        Path(compiler.__file__).read_text().replace("from numba.core.codegen import", "from numba.core.none import")
    )
    module = type(jit)("cardan.kernel.jit")
    module.__file__ = compiler.__file__
    with caplog.at_level(logging.INFO, "cardan"):
        exec(compile(source, compiler.__file__, "exec"), module.__dict__)
    assert "pipeline_class" not in {**module._INLINE, **module._OPTIONS} and "machine code" in caplog.text
    inner = module.inner(long_function)

    @jit.jit
    def kernel(x):
        return inner(x, 2)

    assert kernel(0.1) == pytest.approx(long_function(0.1, 2), rel=1e-12)


def test_signatures_of_operations_are_stored(cache):
    """Compiler.__init__, resolve_function_type: the second use of an operation is not typed again by Numba."""
    asked = []

    class Context:
        name = "context"

        def resolve_function_type(self, function, arguments, keywords):
            asked.append((function, arguments))
            return None if function is operator.matmul else object()

    context, x, n = compiler._Typing(Context()), numba.types.float64, numba.types.intp
    context._known = {}
    assert context.name == "context"
    first = context.resolve_function_type(operator.add, (x, x), {})
    assert context.resolve_function_type(operator.add, (x, x), {}) is first
    assert context.resolve_function_type(operator.add, (x, n), {}) is not first
    assert len(asked) == 2
    for function, arguments, keywords in (
        (operator.matmul, (x, x), {}),  # no signature
        (operator.add, (numba.types.float64[:], x), {}),  # arrays
        (max, (x, x), {"key": x}),
        (numba.types.Dispatcher(jit.inner(long_function)), (x, n), {}),  # Numba compiles it when it is asked
    ):
        asked.clear()
        for _ in range(2):
            context.resolve_function_type(function, arguments, keywords)
        assert len(asked) == 2

    @jit.jit
    def kernel(x):
        return x + 2.0 * x

    compiler._Typing._known.clear()
    assert kernel(0.5) == 1.5
    assert any(arguments == (x, x) for _, arguments in compiler._Typing._known)


def test_passes_that_change_nothing_are_omitted():
    """define_pipelines, passes, finalize: the passes still have these names, and kernels are compiled without them."""
    names = []

    class Compiler(compiler._Compiler):
        def define_pipelines(self):
            (pipeline,) = super().define_pipelines()
            assert pipeline.finalized
            names.extend(item[0].__name__ for item in pipeline.passes)
            return [pipeline]

    compiled = numba.njit(**{**compiler._OPTIONS, "pipeline_class": Compiler})(long_function)
    assert compiled(0.1, 2) == pytest.approx(long_function(0.1, 2), rel=1e-12)
    numba_has = {name for name in dir(importlib.import_module("numba.core.compiler")) if name[0].isupper()}
    assert set(compiler._Compiler.OMITTED) <= numba_has
    assert "NopythonTypeInference" in names and not set(compiler._Compiler.OMITTED) & set(names)


def test_kernels_count_no_references():
    """_nrt: kernels own no array, and counting would cost time to compile and to run."""

    def kernel(x, n):
        part = x
        for i in range(n):
            if x[i] > 0.0:
                part = x[i:]
        return part[0]

    plain = numba.njit(**{**compiler._OPTIONS, "_nrt": True})(kernel)
    for compiled, expected in ((jit.jit(kernel), False), (plain, True)):
        assert compiled(np.array([1.0, -2.0]), 2) == 1.0
        (code,) = compiled.inspect_llvm().values()
        assert ("NRT_" in code) == expected


# --- code generation: pointers, arrays that own nothing, calls by address ---------------------------------------------


@jit.jit
def through_pointers(array):
    """−1 is written to the second; returns the third, by a pointer to that one."""
    p = memory.pointer(array)
    p[1] = -1.0
    return memory.tail(p, 2)[0]


def test_pointers_are_indexed():
    """CPointer: getitem and setitem, and gep of a typed pointer."""
    numbers = np.arange(5.0)
    assert through_pointers(numbers) == 2.0
    assert numbers.tolist() == [0.0, -1.0, 2.0, 3.0, 4.0]


@jit.jit
def rest_of(array, first):
    rest = memory.tail(array, first)
    whole = view(memory.pointer(rest), rest.size)
    return whole.size, whole[0], whole.sum(), rest[-1]


@pytest.mark.slow
def test_arrays_are_made_that_own_nothing():
    """populate_array: data, shape, strides, itemsize, meminfo."""
    assert rest_of(np.arange(6.0), 2) == (4, 2.0, 14.0, 5.0)


@jit.jit
def read_and_write_at(address, integers):
    floats, whole = memory.floats_at(address), memory.integers_at(memory.address_in_kernel(integers))
    floats[1] = whole[1] + memory.fma(floats[0], 2.0, 1.0)
    memory.as_integers(floats)[2] = 3
    return address == memory.address_in_kernel(view(floats, 3))


def test_addresses_become_pointers_and_back():
    """make_array, inttoptr, ptrtoint, bitcast and fma of typed pointers."""
    numbers, integers = np.array([1.5, 0.0, 0.0]), np.array([4, 5])
    assert read_and_write_at(memory.address_of(numbers), integers)
    assert numbers[1] == 9.0 and numbers.view(np.int64)[2] == 3


def test_a_c_function_is_called_at_its_address(load, cache):
    """FunctionType.as_pointer, and CFunc.address."""
    check_kernels(load)


# --- types: literal integers, branches on None ------------------------------------------------------------------------

TWO, THREE = jit.plain(2), jit.plain(3)


def test_plain_constants_compile_a_function_once():
    """An integer of Python has a type for each value, a constant of NumPy has not."""

    def add_one(x):
        return x + 1

    literal, plain = jit.inner(add_one), jit.inner(add_one)

    @jit.jit
    def with_literals(x):
        return literal(2) + literal(3) + literal(x)

    @jit.jit
    def with_constants(x):
        return plain(TWO) + plain(THREE) + plain(x)

    assert with_literals(4) == with_constants(4) == 12
    assert len(literal.signatures) == 3
    assert len(plain.signatures) == 1


def test_a_branch_on_none_is_left_out_and_functions_are_arguments():
    """As in the walk over the records: ``rates`` is a function, or None."""

    @jit.inner
    def square(x):
        return x * x

    @jit.inner
    def walk(x, function):
        if function is not None:
            x = function(x)
        return x

    @jit.jit
    def kernel(x):
        return walk(x, square) + walk(x, None)

    assert kernel(3.0) == 12.0


def test_the_python_function_of_a_kernel_is_at_hand():
    """py_func: what users hand over compiled is compiled anew, with checks."""
    assert jit.by_hand(numba.njit(long_function)).py_func is long_function
    assert through_pointers.py_func.__name__ == "through_pointers"


def test_the_configuration_says_whether_the_jit_is_disabled():
    """config.DISABLE_JIT."""
    assert not numba.config.DISABLE_JIT


def test_every_part_is_listed_with_a_test_of_this_file():
    """The table of docs/kernels.md names tests of this file, and names every one of its laws."""
    document = Path(__file__).parents[2] / "docs" / "kernels.md"
    if not document.is_file():
        pytest.skip("not in a checkout")
    named = set(re.findall(r"`(test_\w+)`", document.read_text(encoding="utf-8")))
    here = set(re.findall(r"^def (test_\w+)", Path(__file__).read_text(encoding="utf-8"), re.M))
    elsewhere = {path.stem for path in Path(__file__).parents[1].rglob("test_*.py")}
    assert named - here - elsewhere == set()
    assert here - named - {"test_every_part_is_listed_with_a_test_of_this_file"} == set()


@pytest.mark.slow
def test_the_first_kernel_does_not_load_blas():
    """And BLAS can be used in a kernel all the same."""
    code = """
import sys
import numpy as np
import numba
from cardan.kernel import jit
double = jit.by_hand(lambda x: 2.0 * x)
assert double(1.0) == 2.0
assert "scipy.linalg" not in sys.modules, "SciPy was loaded"
product = numba.njit(lambda a, b: np.dot(a, b))
assert np.array_equal(product(np.eye(3), np.ones((3, 3))), np.ones((3, 3)))
assert numba.np.arraymath._HAVE_BLAS
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


WARM = """
import sys
import cardan as cd
from cardan.kernel import cache
m = cd.Mechanism("hinge")
arm = m.body("arm")
m.revolute("A", m.ground.frame(), arm.frame((1, 0, 0)))
assert m.assemble().ok
print(sum(name.startswith(("numba.np.arraymath", "numba.cpython.listobj")) for name in sys.modules))
for path in cache.CACHE_DIRECTORY.rglob("*.nbc"):
    assert b"NRT_" not in path.read_bytes(), path
"""


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["all", pytest.param("half", marks=pytest.mark.long)])
def test_machine_code_is_loaded_without_the_compiler(kept, tmp_path, monkeypatch):
    """Machine code in the cache must not call the functions that only a refreshed context defines."""
    monkeypatch.setenv("CARDAN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CARDAN_KERNELS", "numba")

    def run() -> str:
        made = subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    assert run() == "2"  # the first process compiles
    assert run() == "0"
    entries = sorted((tmp_path / "cache").rglob("*.nbc"))
    assert entries
    if kept == "all":
        return
    for path in entries[::2]:
        path.unlink()
    assert run() == "2"  # some are loaded first, and others are compiled in a context that is then refreshed
    assert run() == "0"
