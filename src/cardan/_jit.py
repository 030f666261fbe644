"""The one file that imports numba: how kernels are compiled, cached and called through an address.

Three rules hold for every kernel of the library:

* ``@jit`` compiles with a disk cache.  Numba's own key sees only the file that holds the function, so an edit in an
  imported kernel file would leave stale machine code behind; the cache directory therefore carries the library's
  version and a digest of all kernel sources.
* ``@evaluator`` compiles a function of the fixed ABI below to a C function.  Solvers receive its *address* and call it
  with :func:`call_evaluator`, so they are compiled once for all mechanisms (an address costs 0.1 µs to pass; a typed
  function object costs 16 µs in dispatch, and a dispatcher or closure recompiles in every process).
* Where no cache directory can be written, everything still runs, uncached.

Fixed ABI: ``evaluate(op, ints, floats, q, step, out, jacobian, work) -> int64`` with C-contiguous int64/float64 arrays.
Primitives that are not compiled into the evaluators are C functions of four pointers to float64, called by
:func:`call_primitive`: ``value(x, c, f, df)`` and ``curvature(x, rate, c, g)``.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba import types
from numba.core import config
from numba.core.errors import NumbaError
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

log = logging.getLogger("cardan")

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# NaN must stay NaN and infinities infinite: neither 'nnan' nor 'ninf' is in the set.
FASTMATH = {"contract", "reassoc", "nsz", "arcp"}

JIT_DISABLED = bool(config.DISABLE_JIT)

_INTS, _FLOATS = types.int64[::1], types.float64[::1]
EVALUATOR_SIGNATURE = types.int64(types.int64, _INTS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS)


def _cache_root() -> Path:
    """Where kernels are kept: CARDAN_CACHE_DIR, NUMBA_CACHE_DIR, or the user's cache directory."""
    for variable, tail in (("CARDAN_CACHE_DIR", ""), ("NUMBA_CACHE_DIR", "cardan"), ("XDG_CACHE_HOME", "cardan")):
        value = os.environ.get(variable)
        if value:
            return Path(value) / tail
    return Path.home() / ".cache" / "cardan"


def _source_digest() -> str:
    """Digest of the kernel modules (named with an underscore) and of the tables of numbers they import."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    kernels = {*package.rglob("_*.py"), *package.rglob("abi.py"), *package.rglob("layout.py")}
    for path in sorted(kernels):
        digest.update(str(path.relative_to(package)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _writable_cache() -> Path | None:
    """The cache directory of this version, made if need be; None where nothing can be written."""
    from cardan import __version__

    try:
        directory = _cache_root() / f"{__version__}-{_source_digest()}"
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        log.warning("kernels are not cached and compile anew in every process: %s", error)
        return None
    return directory


CACHE_DIRECTORY: Path | None = None if JIT_DISABLED else _writable_cache()

if CACHE_DIRECTORY is not None and not any(CACHE_DIRECTORY.rglob("*.nbi")):
    log.info("compiling kernels, once for this version of the library (cache: %s)", CACHE_DIRECTORY)


def _with_cache_directory(decorate: Callable[[bool], Any]) -> Any:
    """Run a numba decorator with its cache in our directory; numba picks the place when it decorates."""
    if CACHE_DIRECTORY is None:
        return decorate(False)
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(CACHE_DIRECTORY)
    try:
        return decorate(True)
    finally:
        config.CACHE_DIR = previous


# Numpy's rules for division by zero; no reference counts, since kernels never own an array.
_OPTIONS: dict[str, Any] = {"fastmath": FASTMATH, "error_model": "numpy", "_nrt": False}


_plain = threading.local()


@contextmanager
def uncompiled() -> Iterator[None]:
    """Within it, in this thread, the decorators leave functions as they are."""
    _plain.wanted = True
    try:
        yield
    finally:
        _plain.wanted = False


def _leave() -> bool:
    return JIT_DISABLED or getattr(_plain, "wanted", False)


def jit(function: Kernel) -> Kernel:
    """Compile a kernel that Python calls, on first call; the GIL is released."""
    if _leave():
        return function
    compiled = _with_cache_directory(lambda cache: numba.njit(cache=cache, nogil=True, **_OPTIONS)(function))
    return compiled  # type: ignore[no-any-return]  # numba is untyped


def inner(function: Kernel) -> Kernel:
    """Compile a function that only kernels call: without the wrappers and the cache entry that it would never use."""
    if _leave():
        return function
    compiled = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(function)
    return compiled  # type: ignore[no-any-return]


_python_evaluators: list[Callable[..., int]] = []  # with the JIT disabled an address is an index into this list


def evaluator(function: Callable[..., int]) -> int:
    """Compile a function of the fixed ABI and return its address, for :func:`call_evaluator`."""
    if JIT_DISABLED:
        _python_evaluators.append(function)
        return len(_python_evaluators) - 1
    compiled = _with_cache_directory(
        lambda cache: numba.cfunc(EVALUATOR_SIGNATURE, cache=cache, nopython=True, **_OPTIONS)(function)
    )
    _keep_alive.append(compiled)
    return int(compiled.address)


_keep_alive: list[Any] = []  # an address is valid only as long as its compiled function lives

_POINTER = types.CPointer(types.float64)
PRIMITIVE_SIGNATURE = types.int64(_POINTER, _POINTER, _POINTER, _POINTER)
FIRST_ADDRESS = 4096  # no function lies in the first page of memory: a smaller number is a code of the chooser


COMPILE_ERRORS = (NumbaError,)


def by_hand(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of the user's, for kernels to call; it may allocate."""
    if JIT_DISABLED or hasattr(function, "py_func"):
        return function
    compiled: Callable[..., Any] = numba.njit(error_model="numpy")(function)
    return compiled


def primitive_address(function: Callable[..., int], kept: bool) -> int:
    """Compile a kernel of one primitive, a function of four pointers; cached if the file it stands in is kept."""
    if JIT_DISABLED:
        _python_primitives.append(function)
        return FIRST_ADDRESS + len(_python_primitives) - 1
    options = _OPTIONS if kept else {**_OPTIONS, "_nrt": True}
    compiled = _with_cache_directory(
        lambda cache: numba.cfunc(PRIMITIVE_SIGNATURE, cache=cache and kept, nopython=True, **options)(function)
    )
    _keep_alive.append(compiled)
    return int(compiled.address)


_python_primitives: list[Callable[..., int]] = []

if JIT_DISABLED:

    def view(pointer, size):  # type: ignore[no-untyped-def]
        """The floats at a pointer (here: an array already)."""
        return pointer

    def call_primitive(address, x, second, third, fourth):  # type: ignore[no-untyped-def]
        """Call the kernel of a primitive at an address (here: the Python function of that index)."""
        return _python_primitives[address - FIRST_ADDRESS](x, second, third, fourth)

    def call_evaluator(address, op, ints, floats, q, step, out, jacobian, work):  # type: ignore[no-untyped-def]
        """Call the evaluator at an address (here: the Python function of that index)."""
        return _python_evaluators[address](op, ints, floats, q, step, out, jacobian, work)

else:

    @intrinsic
    def view(typing_context, pointer, size):  # type: ignore[no-untyped-def]
        """The floats at a pointer, as an array that owns nothing."""

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            array = context.make_array(signature.return_type)(context, builder)
            width = context.get_constant(types.intp, 8)
            populate_array(
                array, data=arguments[0], shape=[arguments[1]], strides=[width], itemsize=width, meminfo=None
            )
            return array._getvalue()

        return _FLOATS(_POINTER, types.intp), generate

    @intrinsic
    def call_primitive(typing_context, address, x, second, third, fourth):  # type: ignore[no-untyped-def]
        """Call the kernel of a primitive at an address, with pointers to the first elements of four arrays."""

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            pointers = [
                context.make_array(kind)(context, builder, value).data
                for kind, value in zip(signature.args[1:], arguments[1:], strict=True)
            ]
            function = ir.FunctionType(context.get_value_type(types.int64), [pointer.type for pointer in pointers])
            return builder.call(builder.inttoptr(arguments[0], function.as_pointer()), pointers)

        return types.int64(types.int64, _FLOATS, _FLOATS, _FLOATS, _FLOATS), generate

    @intrinsic
    def call_evaluator(typing_context, address, op, ints, floats, q, step, out, jacobian, work):  # type: ignore[no-untyped-def]
        """Call the evaluator at an address, from inside a kernel."""

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            values = [context.get_value_type(argument) for argument in signature.args[1:]]
            function = ir.FunctionType(context.get_value_type(types.int64), values)
            return builder.call(builder.inttoptr(arguments[0], function.as_pointer()), arguments[1:])

        return types.int64(types.int64, *EVALUATOR_SIGNATURE.args), generate
