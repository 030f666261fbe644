"""The only file that imports Numba: it compiles kernels, caches them and calls them by address.

Four rules apply to every kernel of the library:

* ``@jit`` compiles with a disk cache.  (``@exact`` does not reorder sums; ``@inner`` is for functions that only other
  kernels call.)  Numba's cache key depends only on the file of the function, so after an edit in an imported kernel
  file it would load outdated machine code.  Therefore the name of the cache directory contains the library's version
  and a digest of all kernel sources.
* ``@evaluator`` compiles a function of the fixed ABI below to a C function.  Solvers receive its *address* and call it
  with :func:`call_evaluator`, so they are compiled once for all mechanisms.  (Passing an address costs 0.1 µs; a typed
  function object costs 16 µs in dispatch, and a dispatcher or closure is recompiled in every process.)
* Cached machine code is executed.  Therefore only the user can write to the directory (mode 0700, owner checked), and
  every file has a checksum.  A file that cannot be read is ignored, and the kernel is compiled again.
* Everything runs without a cache if there is no such directory, or if the private parts of Numba that the cache needs
  are missing.  docs/kernels.md lists these parts, and tests/test_numba_parts.py tests them.

Fixed ABI: ``evaluate(op, ints, floats, q, step, out, jacobian, work) -> int64`` with pointers to int64 and float64.
Linear algebra, solvers and draws have the same ABI (:mod:`cardan.solvers.abi`).  Further arrays are passed as a table
of addresses: Python writes :func:`address_of` an array, the kernel reads :func:`integers_at` or :func:`floats_at`.  The
code that fills the table must keep the arrays alive.
Primitives that are not compiled into the evaluators are C functions of four pointers to float64, called with
:func:`call_primitive`: ``value(x, c, f, df)`` and ``curvature(x, rate, c, g)``.  Kernels index pointers like arrays and
offset them with :func:`tail`: this is faster than arrays, which are passed as seven words and check each index for a
negative value.  Pieces of a workspace are taken with :func:`cut`, which states their size; the tests without the JIT
check it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import logging
import os
import pickle
import stat
import tempfile
import threading
import time as clocks
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

log = logging.getLogger("cardan")

try:  # private, needed only for the cache
    from numba.core.caching import FunctionCache, IndexDataCacheFile
except ImportError:
    FunctionCache = IndexDataCacheFile = object  # then :func:`_cache_of` logs a warning

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# NaN and infinity must be preserved: neither 'nnan' nor 'ninf' is in the set.
FASTMATH = {"contract", "reassoc", "nsz", "arcp"}

JIT_DISABLED = bool(config.DISABLE_JIT)


@functools.cache
def _load_compiler() -> None:
    """Load the part of Numba that asks at its import whether SciPy has BLAS, without importing SciPy for this.

    Numba loads that part with the first kernel that it compiles, and scipy.linalg would take as long as the rest of
    Numba.  A kernel that uses BLAS imports it when it is compiled.  Call this before anything is compiled; a process
    that finds all its kernels in the cache does not need it.
    """
    from numba.np import linalg

    ask = getattr(linalg, "ensure_blas", None)
    if ask is None:
        return
    linalg.ensure_blas = lambda: None
    try:
        import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = ask


_INTEGERS, _POINTER = types.CPointer(types.int64), types.CPointer(types.float64)
EVALUATOR_SIGNATURE = types.int64(types.int64, _INTEGERS, *[_POINTER] * 6)


def _cache_root() -> Path:
    """Root of the cache: CARDAN_CACHE_DIR, NUMBA_CACHE_DIR, or the user's cache directory."""
    for variable, tail in (("CARDAN_CACHE_DIR", ""), ("NUMBA_CACHE_DIR", "cardan"), ("XDG_CACHE_HOME", "cardan")):
        value = os.environ.get(variable)
        if value:
            return Path(value) / tail
    return Path.home() / ".cache" / "cardan"


def _source_digest() -> str:
    """Digest of the kernel modules (their names start with an underscore) and of the constants that they import."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    kernels = [
        Path(folder, name)
        for folder, _, names in os.walk(package)
        for name in names
        if name.endswith(".py") and (name.startswith("_") or name in ("abi.py", "layout.py"))
    ]
    for path in sorted(kernels):
        digest.update(str(path.relative_to(package)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _writable_cache() -> Path | None:
    """The cache directory of this version, created if necessary; None if it cannot be written."""
    from cardan import __version__

    try:
        directory = private(_cache_root() / f"{__version__}-{_source_digest()}")
        with tempfile.TemporaryFile(dir=directory):
            pass
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        log.warning("kernels are not cached and are compiled in every process: %s", error)
        return None
    return directory


def private(directory: Path) -> Path:
    """A directory that only this user can write, created if necessary; else OSError, since its files are executed."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise OSError(f"{directory} is a symbolic link; it must be a directory")
    if hasattr(os, "getuid"):  # on Windows a user's profile is private by default
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OSError(f"{directory} is open to other users; only this user may have access (chmod 700)")
        if stat.S_IMODE(found.st_mode) != 0o700:
            directory.chmod(0o700)
    return directory


CACHE_DIRECTORY: Path | None = None if JIT_DISABLED else _writable_cache()

if CACHE_DIRECTORY is not None and not any(CACHE_DIRECTORY.iterdir()):
    log.info("compiling kernels once for this version of the library (cache: %s)", CACHE_DIRECTORY)


class _Entries(IndexDataCacheFile):  # type: ignore[misc]  # numba is untyped
    """Machine code after a checksum: damaged code could crash, or compute wrong results."""

    def _save_data(self, name: str, data: Any) -> None:
        dumped = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(zlib.crc32(dumped).to_bytes(4, "big") + dumped)

    def _load_data(self, name: str) -> Any:
        data = Path(self._data_path(name)).read_bytes()
        if zlib.crc32(data[4:]).to_bytes(4, "big") != data[:4]:
            raise ValueError(f"{name} is damaged")
        return pickle.loads(data[4:])


class _NotRefreshed:
    """The context of a target, for loading machine code: it does not load what only the compiler needs.

    Numba refreshes the context before it loads machine code: this imports all functions that kernels may call, and
    takes a third of the time of a first solve.  The compiler refreshes the context itself.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def refresh(self) -> None:
        """Nothing."""


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function; a failure to read or write is only logged, and the kernel is compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Entries(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            loaded = super().load_overload(signature, _NotRefreshed(context))
        except Exception as error:  # damaged pickles can raise any exception
            log.warning("a cached kernel cannot be read and is compiled again (%s): %s", self._name, error)
            with contextlib.suppress(OSError, AttributeError):
                os.unlink(self._cache_file._index_path)
            loaded = None
        if loaded is None:
            _load_compiler()
        return loaded

    def save_overload(self, signature: Any, compiled: Any) -> None:
        try:
            super().save_overload(signature, compiled)
        except Exception as error:  # a full disk, a failed pickle: the compiled kernel still runs
            log.warning("a kernel is not cached and is compiled in every process (%s): %s", self._name, error)

    def has_entries(self) -> bool:
        """Whether machine code of the function is on disk."""
        return os.path.exists(self._cache_file._index_path)


_cache_dir_lock = threading.Lock()  # Numba reads the cache directory from a global variable


def _cache_of(function: Callable[..., Any]) -> _Cache | None:
    """The cache of a function in CACHE_DIRECTORY, or None."""
    if CACHE_DIRECTORY is None:
        return None
    with _cache_dir_lock:
        previous = getattr(config, "CACHE_DIR", "")
        config.CACHE_DIR = str(CACHE_DIRECTORY)
        try:
            cache = _Cache(function)
        except (OSError, RuntimeError) as error:
            log.warning("a kernel is not cached and is compiled in every process: %s", error)
            return None
        except Exception as error:
            _give_up_cache(error)
            return None
        finally:
            config.CACHE_DIR = previous
    if Path(cache.cache_path).is_relative_to(CACHE_DIRECTORY):
        return cache
    log.warning("a kernel is not cached and is compiled in every process: Numba would cache it in %s", cache.cache_path)
    return None


def _give_up_cache(error: Exception) -> None:
    """Stop caching: the cache of this version of Numba is not supported."""
    global CACHE_DIRECTORY  # noqa: PLW0603
    CACHE_DIRECTORY = None
    log.warning("kernels are not cached and are compiled in every process: Numba %s: %r", numba.__version__, error)


def is_cached(kernel: Any) -> bool:
    """Whether machine code of a compiled kernel is on disk; False if this is unknown."""
    cache = getattr(kernel, "_cache", None)
    try:
        return CACHE_DIRECTORY is not None and isinstance(cache, _Cache) and cache.has_entries()
    except AttributeError:
        return False


# NumPy's rules for division by zero; no reference counts, since kernels never own an array.
_OPTIONS: dict[str, Any] = {"fastmath": FASTMATH, "error_model": "numpy", "_nrt": False}


_INLINE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}

try:  # private, needed only for shorter compilation
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
except ImportError:
    log.info("Numba %s: compilation takes longer, inner functions become machine code", numba.__version__)
else:

    class _NoEnvironments:
        """The code generator, without the environments of functions, which only Python objects in kernels need."""

        def __init__(self, generator: Any) -> None:
            self._generator = generator

        def __getattr__(self, name: str) -> Any:
            return getattr(self._generator, name)

        def set_env(self, name: str, environment: Any) -> None:
            """Nothing: without machine code the environment has no address."""

    class _Inlined(JITCodeLibrary):  # type: ignore[misc]
        """Code of a function that is always inlined: it is optimised and becomes machine code only in its callers."""

        @property
        def codegen(self) -> Any:
            return _NoEnvironments(self._codegen)

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0  # as for any function without a wrapper

    class _Typing:
        """The typing context, which stores the signatures of operations on numbers and pointers.

        Numba tries all definitions of an operator again at each of its uses: a fifth of the time of a compilation.
        """

        _known: ClassVar[dict[Any, Any]] = {}

        def __init__(self, context: Any) -> None:
            self._context = context

        def __getattr__(self, name: str) -> Any:
            return getattr(self._context, name)

        def resolve_function_type(self, function: Any, arguments: Any, keywords: Any) -> Any:
            """The signature of a call, or None."""
            key = function, tuple(arguments)
            found = self._known.get(key) if not keywords else None
            if found is None:
                found = self._context.resolve_function_type(function, arguments, keywords)
                # calls of kernels are left to Numba, which compiles them here
                simple = all(isinstance(kind, types.Number | types.Literal | types.CPointer) for kind in arguments)
                if simple and found is not None and not keywords and not isinstance(function, types.Dispatcher):
                    self._known[key] = found
            return found

    class _Compiler(Compiler):  # type: ignore[misc]
        """Numba's compiler without passes that change nothing in kernels, which have no closures and no array
        expressions."""

        OMITTED = ("InlineClosureLikes", "NopythonRewrites")

        def __init__(self, typing: Any, *others: Any) -> None:
            super().__init__(_Typing(typing), *others)

        def define_pipelines(self) -> Any:
            pipelines = super().define_pipelines()
            for pipeline in pipelines:
                pipeline.passes = [item for item in pipeline.passes if item[0].__name__ not in self.OMITTED]
                pipeline.finalize()
            return pipelines

    class _InlineCompiler(_Compiler):
        """The same with :class:`_Inlined` as library."""

        def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
            library = _Inlined(target.codegen(), "inner")
            library.enable_object_caching()
            super().__init__(typing, target, library, *others)

    _OPTIONS["pipeline_class"] = _Compiler
    _INLINE["pipeline_class"] = _InlineCompiler

_thread = threading.local()


@contextmanager
def uncompiled() -> Iterator[None]:
    """In this context, in this thread, the decorators return functions unchanged."""
    _thread.is_uncompiled = True
    try:
        yield
    finally:
        _thread.is_uncompiled = False


def _skips_compilation() -> bool:
    return JIT_DISABLED or getattr(_thread, "is_uncompiled", False)


def jit(function: Kernel) -> Kernel:
    """Compile a kernel that Python calls, at its first call; the kernel releases the GIL."""
    if _skips_compilation():
        return function
    return _cached(function, numba.njit(nogil=True, **_OPTIONS)(function))


def _cached(function: Kernel, compiled: Any) -> Kernel:
    """The compiled function, with our cache in place of Numba's."""
    cache = _cache_of(function)
    if cache is None:
        _load_compiler()
    else:
        compiled._cache = cache
    return compiled  # type: ignore[no-any-return]


def inner(function: Kernel) -> Kernel:
    """Compile a function that only kernels call, without the wrappers and the cache entry for calls from Python.

    It is always inlined.  Otherwise a process that compiles and one that loads cached code would call different copies
    of it, which may differ in the last bit of a result.
    """
    if _skips_compilation():
        return function
    compiled = numba.njit(**{**_OPTIONS, **_INLINE})(function)
    return compiled  # type: ignore[no-any-return]


# Each operation is rounded as in the interpreter: sums are not reordered, and products and sums are not fused.
_EXACTLY: dict[str, Any] = {**_OPTIONS, "fastmath": False}


def exact(function: Kernel) -> Kernel:
    """As :func:`jit`, for kernels that may also run interpreted (:mod:`cardan.lazy`): both give the same bits, so
    results do not depend on whether a kernel is compiled."""
    if _skips_compilation():
        return function
    return _cached(function, numba.njit(nogil=True, **_EXACTLY)(function))


def exact_inner(function: Kernel) -> Kernel:
    """As :func:`inner`, for functions that :func:`exact` kernels call."""
    if _skips_compilation():
        return function
    compiled = numba.njit(**{**_EXACTLY, **_INLINE})(function)
    return compiled  # type: ignore[no-any-return]


def plain(number: int) -> Any:
    """A constant that kernels pass to other functions.

    Numba gives each constant Python integer its own type, and would compile the function once for each value.
    """
    return np.int64(number)


_python_evaluators: list[Callable[..., int]] = []  # with the JIT disabled an address is an index into this list


def evaluator(function: Callable[..., int]) -> int:
    """Compile a function of the fixed ABI and return its address, for :func:`call_evaluator`."""
    if JIT_DISABLED:
        _python_evaluators.append(function)
        return len(_python_evaluators) - 1
    return _address(function, EVALUATOR_SIGNATURE, _OPTIONS, True)


def evaluator_in_python(function: Callable[..., int]) -> tuple[int, Any]:
    """The address of a Python function of the fixed ABI, and what must be kept as long as the address is used.

    It gets pointers, and must not raise: an exception would not pass the kernels.
    """
    if JIT_DISABLED:
        return evaluator(function), function
    floats = ctypes.POINTER(ctypes.c_double)
    made = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), *[floats] * 6)(function)
    return int(ctypes.cast(made, ctypes.c_void_p).value or 0), made


def _address(function: Callable[..., int], signature: Any, options: dict[str, Any], cached: bool) -> int:
    """Compile a C function of that signature, or load it from the cache; returns its address."""
    options = {**options, "nopython": True}
    compiled = _cached_c_function(function, signature, options) if cached else None
    if compiled is None:
        _load_compiler()
        compiled = numba.cfunc(signature, **options)(function)
    _keep_alive.append(compiled)
    return int(compiled.address)


def _cached_c_function(function: Callable[..., int], signature: Any, options: dict[str, Any]) -> Any:
    """A C function with our cache, for which numba.cfunc has no argument; None if there is no cache."""
    cache = _cache_of(function)
    if cache is None:
        return None
    try:
        from numba.core.ccallback import CFunc

        options = dict(options)
        more = {name: options.pop(name) for name in ("pipeline_class",) if name in options}
        compiled: Any = CFunc(function, (signature.args, signature.return_type), locals={}, options=options, **more)
        compile_it = compiled.compile
    except (ImportError, AttributeError, TypeError) as error:
        _give_up_cache(error)
        return None
    compiled._cache = cache
    compile_it()
    return compiled


_keep_alive: list[Any] = []  # an address is valid only while its compiled function exists

PRIMITIVE_SIGNATURE = types.int64(_POINTER, _POINTER, _POINTER, _POINTER)
FIRST_ADDRESS = 4096  # the first page of memory contains no function: a smaller number is the code of a primitive


def by_hand(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function written by the user, for calls from kernels; it may allocate.

    A function that is already compiled is compiled again, with bounds checks: it might write outside its rows.
    """
    function = getattr(function, "py_func", function)
    if JIT_DISABLED:
        return function
    _load_compiler()
    compiled: Callable[..., Any] = numba.njit(error_model="numpy", boundscheck=True)(function)
    return compiled


def primitive_address(function: Callable[..., int], cached: bool) -> int:
    """Compile a kernel of one primitive, a function of four pointers; returns its address.

    cached: its source is in a file, by which Numba can cache it.
    """
    if JIT_DISABLED:
        _python_primitives.append(function)
        return FIRST_ADDRESS + len(_python_primitives) - 1
    return _address(function, PRIMITIVE_SIGNATURE, _OPTIONS if cached else {**_OPTIONS, "_nrt": True}, cached)


_python_primitives: list[Callable[..., int]] = []

_python_arrays: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def address_of(array: Any) -> int:
    """Address of the first element of a contiguous array, valid while the array exists.

    With the JIT disabled it is a key with which :func:`integers_at` and :func:`floats_at` find the array.
    """
    if JIT_DISABLED:
        _python_arrays[id(array)] = array
        return id(array)
    return int(array.__array_interface__["data"][0])


if JIT_DISABLED:

    def integers_at(address):  # type: ignore[no-untyped-def]
        """The integers at an address (here: the array with that key)."""
        return _python_arrays[address]

    floats_at = integers_at
    address_in_kernel = address_of

    def as_integers(floats):  # type: ignore[no-untyped-def]
        """Memory of floats, reinterpreted as integers."""
        return floats.view("int64")

    def fma(a, b, c):  # type: ignore[no-untyped-def]
        """a·b + c (here: rounded twice)."""
        return a * b + c

    def pointer(array):  # type: ignore[no-untyped-def]
        """Pointer to the first element of an array (here: the array)."""
        return array

    def tail(array, first):  # type: ignore[no-untyped-def]
        """The array from element ``first`` on."""
        if first < 0:
            raise IndexError(f"tail starts at element {first}; it must be 0 or more, as for a pointer")
        return array[first:]

    def cut(array, first, size):  # type: ignore[no-untyped-def]
        """``size`` elements of the array from element ``first`` on (here: checked)."""
        if first < 0 or size < 0 or first + size > len(array):
            raise IndexError(f"{size} elements from {first} on do not fit into {len(array)}")
        return array[first : first + size]

    def piece(stride, first, size):  # type: ignore[no-untyped-def]
        """An accessor (array, k): ``size`` elements from ``first`` on in item k; items are ``stride`` elements long."""
        return lambda array, k: cut(array, stride * k + first, size)

    def view(pointer, size):  # type: ignore[no-untyped-def]
        """The ``size`` numbers at a pointer, as an array (here: the first elements of an array)."""
        return cut(pointer, 0, size)

    def call_primitive(address, x, second, third, fourth):  # type: ignore[no-untyped-def]
        """Call the kernel of a primitive at an address (here: the Python function with that index)."""
        return _python_primitives[address - FIRST_ADDRESS](x, second, third, fourth)

    def call_evaluator(address, op, ints, floats, q, step, out, jacobian, work):  # type: ignore[no-untyped-def]
        """Call the evaluator at an address (here: the Python function with that index)."""
        return _python_evaluators[address](op, ints, floats, q, step, out, jacobian, work)

    def read_clock(address, clock, time):  # type: ignore[no-untyped-def]
        """time ← seconds and nanoseconds (here: of the clock of Python)."""
        time[0], time[1] = divmod(clocks.perf_counter_ns(), 1_000_000_000)
        return 0

    def sleep_until(address, clock, flags, time, rest):  # type: ignore[no-untyped-def]
        """Sleep until a time in seconds and nanoseconds."""
        clocks.sleep(max(0.0, time[0] + 1e-9 * time[1] - 1e-9 * clocks.perf_counter_ns()))
        return 0

else:

    def _as_pointer(kind):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return builder.inttoptr(arguments[0], context.get_value_type(kind))

        return generate

    @intrinsic
    def integers_at(typing_context, address):  # type: ignore[no-untyped-def]
        """A pointer to the integers at an address."""
        return _INTEGERS(types.int64), _as_pointer(_INTEGERS)

    @intrinsic
    def floats_at(typing_context, address):  # type: ignore[no-untyped-def]
        """A pointer to the floats at an address."""
        return _POINTER(types.int64), _as_pointer(_POINTER)

    @intrinsic
    def address_in_kernel(typing_context, array):  # type: ignore[no-untyped-def]
        """:func:`address_of` an array, within a kernel."""

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            return builder.ptrtoint(data, context.get_value_type(types.int64))

        _check_contiguous(array)
        return types.int64(array), generate

    @intrinsic
    def as_integers(typing_context, floats):  # type: ignore[no-untyped-def]
        """Memory of floats, reinterpreted as integers."""

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return builder.bitcast(arguments[0], context.get_value_type(_INTEGERS))

        return _INTEGERS(_POINTER), generate

    @intrinsic
    def fma(typing_context, a, b, c):  # type: ignore[no-untyped-def]
        """a·b + c, rounded once."""

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return builder.fma(*arguments)

        return types.float64(types.float64, types.float64, types.float64), generate

    def _check_contiguous(kind):  # type: ignore[no-untyped-def]
        if not (isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout == "C"):
            raise TypeError(f"the argument is {kind}; it must be a contiguous array")

    def _checked(kinds, element):  # type: ignore[no-untyped-def]
        """The argument types, which must be pointers to ``element`` or contiguous arrays of it."""
        for kind in kinds:
            if kind != types.CPointer(element) and kind != types.Array(element, 1, "C"):
                raise TypeError(f"the argument is {kind}; it must be a contiguous array of {element}")
        return kinds

    @intrinsic
    def pointer(typing_context, array):  # type: ignore[no-untyped-def]
        """Pointer to the first element of a contiguous array; kernels index it and offset it with :func:`tail`."""

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return context.make_array(signature.args[0])(context, builder, arguments[0]).data

        _check_contiguous(array)
        return types.CPointer(array.dtype)(array), generate

    def _from(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        """The first argument, a pointer or an array, offset by the second."""
        kind = signature.args[0]
        if isinstance(kind, types.CPointer):
            return builder.gep(arguments[0], [arguments[1]])
        from numba.np.arrayobj import populate_array

        whole = context.make_array(kind)(context, builder, arguments[0])
        rest = context.make_array(kind)(context, builder)
        populate_array(
            rest,
            data=builder.gep(whole.data, [arguments[1]]),
            shape=[builder.sub(whole.nitems, arguments[1])],
            strides=[whole.itemsize],
            itemsize=whole.itemsize,
            meminfo=None,
        )
        return rest._getvalue()

    @intrinsic
    def tail(typing_context, array, first):  # type: ignore[no-untyped-def]
        """A pointer or an array from element ``first`` on; the index is not checked."""
        if not isinstance(array, types.CPointer):
            _check_contiguous(array)
        return array(array, types.intp), _from

    @intrinsic
    def cut(typing_context, array, first, size):  # type: ignore[no-untyped-def]
        """As :func:`tail`, with a known size, checked only with the JIT disabled."""
        if not isinstance(array, types.CPointer):
            _check_contiguous(array)
        return array(array, types.intp, types.intp), _from

    def piece(stride, first, size):  # type: ignore[no-untyped-def]
        """An accessor (array, k): ``size`` elements from ``first`` on in item k; items are ``stride`` elements long.

        It is an intrinsic, since a jitted function would take 16 ms to compile in every kernel that calls it.
        """

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            begin = builder.mul(arguments[1], context.get_constant(types.intp, stride))
            begin = builder.add(begin, context.get_constant(types.intp, first))
            return _from(context, builder, signature, (arguments[0], begin))

        @intrinsic
        def access(typing_context, array, k):  # type: ignore[no-untyped-def]
            if not isinstance(array, types.CPointer):
                _check_contiguous(array)
            return array(array, types.intp), generate

        return access

    @intrinsic
    def view(typing_context, pointer, size):  # type: ignore[no-untyped-def]
        """The ``size`` numbers at a pointer, as an array that does not own its memory."""

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            from numba.np.arrayobj import populate_array

            array = context.make_array(signature.return_type)(context, builder)
            width = context.get_constant(types.intp, 8)
            populate_array(
                array, data=arguments[0], shape=[arguments[1]], strides=[width], itemsize=width, meminfo=None
            )
            return array._getvalue()

        return types.Array(pointer.dtype, 1, "C")(pointer, types.intp), generate

    def _pointer(context, builder, kind, value):  # type: ignore[no-untyped-def]
        """A pointer unchanged, or the pointer to the first element of an array."""
        return value if isinstance(kind, types.CPointer) else context.make_array(kind)(context, builder, value).data

    def _call(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        """Call the C function at the address in the first argument; arrays are passed as pointers."""
        values = [
            value if isinstance(kind, types.Integer) else _pointer(context, builder, kind, value)
            for kind, value in zip(signature.args[1:], arguments[1:], strict=True)
        ]
        function = ir.FunctionType(context.get_value_type(types.int64), [value.type for value in values])
        return builder.call(builder.inttoptr(arguments[0], function.as_pointer()), values)

    @intrinsic
    def call_primitive(typing_context, address, x, second, third, fourth):  # type: ignore[no-untyped-def]
        """Call the kernel of a primitive at an address, with pointers to the first elements of four arrays."""
        return types.int64(types.int64, *_checked((x, second, third, fourth), types.float64)), _call

    @intrinsic
    def call_evaluator(typing_context, address, op, ints, floats, q, step, out, jacobian, work):  # type: ignore[no-untyped-def]
        """Call the evaluator at an address."""
        tables = (*_checked((ints,), types.int64), *_checked((floats, q, step, out, jacobian, work), types.float64))
        return types.int64(types.int64, types.int64, *tables), _call

    def _call_system(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        """Call the C function at the address in the first argument; integers are passed as int, arrays as pointers."""
        number = ir.IntType(32)
        values = [
            builder.trunc(value, number) if isinstance(kind, types.Integer) else _pointer(context, builder, kind, value)
            for kind, value in zip(signature.args[1:], arguments[1:], strict=True)
        ]
        function = ir.FunctionType(number, [value.type for value in values])
        found = builder.call(builder.inttoptr(arguments[0], function.as_pointer()), values)
        return builder.sext(found, context.get_value_type(types.int64))

    @intrinsic
    def read_clock(typing_context, address, clock, time):  # type: ignore[no-untyped-def]
        """Call clock_gettime at an address: time ← seconds and nanoseconds of that clock."""
        return types.int64(types.int64, types.int64, *_checked((time,), types.int64)), _call_system

    @intrinsic
    def sleep_until(typing_context, address, clock, flags, time, rest):  # type: ignore[no-untyped-def]
        """Call clock_nanosleep at an address, until a time in seconds and nanoseconds (flags: 1)."""
        tables = _checked((time, rest), types.int64)
        return types.int64(types.int64, types.int64, types.int64, *tables), _call_system
