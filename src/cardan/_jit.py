"""The one file that imports numba: how kernels are compiled, cached and called through an address.

Four rules hold for every kernel of the library:

* ``@jit`` compiles with a disk cache (``@exact`` without regrouping sums, ``@inner`` for other kernels alone).  Numba's
  own key sees only the file that holds the function, so an edit in an imported kernel file would leave stale machine
  code behind; the cache directory therefore carries the library's version and a digest of all kernel sources.
* ``@evaluator`` compiles a function of the fixed ABI below to a C function.  Solvers receive its *address* and call it
  with :func:`call_evaluator`, so they are compiled once for all mechanisms (an address costs 0.1 µs to pass; a typed
  function object costs 16 µs in dispatch, and a dispatcher or closure recompiles in every process).
* Machine code that was kept is run as it is found.  The directory is therefore the user's alone (0700, owner checked),
  every file carries a checksum, and what cannot be read is compiled anew.
* Where no such directory can be had, or where Numba's private parts that the cache needs are gone, everything still
  runs, uncached.  docs/kernels.md lists these parts; tests/test_numba_parts.py tests each.

Fixed ABI: ``evaluate(op, ints, floats, q, step, out, jacobian, work) -> int64`` with pointers to int64 and float64.
Linear algebra, solvers and draws have the same ABI, so one way of calling serves all (:mod:`cardan.solvers.abi`).  What
does not fit into it comes as a table of addresses: :func:`address_of` an array, :func:`integers_at` and
:func:`floats_at` in the kernel.  Whoever fills such a table keeps the arrays alive.
Primitives that are not compiled into the evaluators are C functions of four pointers to float64, called by
:func:`call_primitive`: ``value(x, c, f, df)`` and ``curvature(x, rate, c, g)``.  Kernels index pointers like arrays and
cut them with :func:`tail`: an array is seven words to pass, and asks at every index whether it counts from the end.
Pieces of a workspace are cut with :func:`cut`, which says how long each is: the tests without the JIT hold them to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import pickle
import stat
import tempfile
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

log = logging.getLogger("cardan")

try:  # private, but needed for the cache alone
    from numba.core.caching import FunctionCache, IndexDataCacheFile
except ImportError:
    FunctionCache = IndexDataCacheFile = object  # :func:`_cache_of` fails, and says so

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# NaN must stay NaN and infinities infinite: neither 'nnan' nor 'ninf' is in the set.
FASTMATH = {"contract", "reassoc", "nsz", "arcp"}

JIT_DISABLED = bool(config.DISABLE_JIT)

_INTEGERS, _POINTER = types.CPointer(types.int64), types.CPointer(types.float64)
EVALUATOR_SIGNATURE = types.int64(types.int64, _INTEGERS, *[_POINTER] * 6)


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
        directory = private(_cache_root() / f"{__version__}-{_source_digest()}")
        with tempfile.TemporaryFile(dir=directory):
            pass
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        log.warning("kernels are not cached and compile anew in every process: %s", error)
        return None
    return directory


def private(directory: Path) -> Path:
    """A directory that is this user's alone, made if need be; OSError where it is not, since files in it are run."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise OSError(f"{directory} is a symbolic link; it must be a directory")
    if hasattr(os, "getuid"):  # on Windows a user's profile is private as it is
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OSError(f"{directory} is open to other users; it must be this user's alone (chmod 700)")
        if stat.S_IMODE(found.st_mode) != 0o700:
            directory.chmod(0o700)
    return directory


CACHE_DIRECTORY: Path | None = None if JIT_DISABLED else _writable_cache()

if CACHE_DIRECTORY is not None and not any(CACHE_DIRECTORY.iterdir()):
    log.info("compiling kernels, once for this version of the library (cache: %s)", CACHE_DIRECTORY)


class _Entries(IndexDataCacheFile):  # type: ignore[misc]  # numba is untyped
    """Machine code with a checksum in front: with one bit changed it would crash, or worse, compute."""

    def _save_data(self, name: str, data: Any) -> None:
        dumped = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(zlib.crc32(dumped).to_bytes(4, "big") + dumped)

    def _load_data(self, name: str) -> Any:
        data = Path(self._data_path(name)).read_bytes()
        if zlib.crc32(data[4:]).to_bytes(4, "big") != data[:4]:
            raise ValueError(f"{name} is damaged")
        return pickle.loads(data[4:])


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, but for failures: what cannot be read or written is as if it were not there."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Entries(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            return super().load_overload(signature, context)
        except Exception as error:  # of any sort: bytes that are no pickle can raise whatever they spell
            log.warning("a kept kernel cannot be read and is compiled anew (%s): %s", self._name, error)
            with contextlib.suppress(OSError, AttributeError):
                os.unlink(self._cache_file._index_path)
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        try:
            super().save_overload(signature, compiled)
        except Exception as error:  # a full disk, what cannot be pickled: the kernel itself is there, and runs
            log.warning("a kernel is not kept and compiles anew in every process (%s): %s", self._name, error)

    def has_entries(self) -> bool:
        """Whether machine code of the function is on disk."""
        return os.path.exists(self._cache_file._index_path)


_one_at_a_time = threading.Lock()  # numba picks the place of a cache by a global variable


def _cache_of(function: Callable[..., Any]) -> _Cache | None:
    """Where the machine code of a function is kept: in our directory, or nowhere."""
    if CACHE_DIRECTORY is None:
        return None
    with _one_at_a_time:
        previous = getattr(config, "CACHE_DIR", "")
        config.CACHE_DIR = str(CACHE_DIRECTORY)
        try:
            cache = _Cache(function)
        except (OSError, RuntimeError) as error:
            log.warning("a kernel is not kept and compiles anew in every process: %s", error)
            return None
        except Exception as error:
            _give_up_cache(error)
            return None
        finally:
            config.CACHE_DIR = previous
    if Path(cache.cache_path).is_relative_to(CACHE_DIRECTORY):
        return cache
    log.warning("a kernel is not kept and compiles anew in every process: Numba would keep it in %s", cache.cache_path)
    return None


def _give_up_cache(error: Exception) -> None:
    """Numba's cache is not what it was: from now on nothing is kept."""
    global CACHE_DIRECTORY  # noqa: PLW0603
    CACHE_DIRECTORY = None
    log.warning("kernels are not cached and compile anew in every process: Numba %s: %r", numba.__version__, error)


def is_cached(kernel: Any) -> bool:
    """Whether machine code of a compiled kernel is kept on disk; where that cannot be told, it is not."""
    cache = getattr(kernel, "_cache", None)
    try:
        return CACHE_DIRECTORY is not None and isinstance(cache, _Cache) and cache.has_entries()
    except AttributeError:
        return False


# Numpy's rules for division by zero; no reference counts, since kernels never own an array.
_OPTIONS: dict[str, Any] = {"fastmath": FASTMATH, "error_model": "numpy", "_nrt": False}


_INLINE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}

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
    return _kept(function, numba.njit(nogil=True, **_OPTIONS)(function))


def _kept(function: Kernel, compiled: Any) -> Kernel:
    """The compiled function, with our cache in place of Numba's."""
    cache = _cache_of(function)
    if cache is not None:
        compiled._cache = cache
    return compiled  # type: ignore[no-any-return]


def inner(function: Kernel) -> Kernel:
    """Compile a function that only kernels call: without the wrappers and the cache entry that it would never use.

    It is always inlined.  Else a process that compiles would call a copy of its own, where one that loads kept code
    calls the copy in there, and the two may round differently in the last bit.
    """
    if _leave():
        return function
    compiled = numba.njit(**_INLINE, **_OPTIONS)(function)
    return compiled  # type: ignore[no-any-return]


# Every operation rounded by itself, as the interpreter does it: no sums in another order, no fused multiplication.
_EXACTLY: dict[str, Any] = {**_OPTIONS, "fastmath": False}


def exact(function: Kernel) -> Kernel:
    """As :func:`jit`, for kernels that are interpreted at first (:mod:`cardan.lazy`): either way they give the same
    bits, so that no answer depends on what has been compiled."""
    if _leave():
        return function
    return _kept(function, numba.njit(nogil=True, **_EXACTLY)(function))


def exact_inner(function: Kernel) -> Kernel:
    """As :func:`inner`, for functions that :func:`exact` kernels call."""
    if _leave():
        return function
    compiled = numba.njit(**_INLINE, **_EXACTLY)(function)
    return compiled  # type: ignore[no-any-return]


def plain(number: int) -> Any:
    """A constant that kernels pass to other functions.

    A Python integer has a type of its own for each value, and the function would be compiled once for each.
    """
    return np.int64(number)


_python_evaluators: list[Callable[..., int]] = []  # with the JIT disabled an address is an index into this list


def evaluator(function: Callable[..., int]) -> int:
    """Compile a function of the fixed ABI and return its address, for :func:`call_evaluator`."""
    if JIT_DISABLED:
        _python_evaluators.append(function)
        return len(_python_evaluators) - 1
    return _address(function, EVALUATOR_SIGNATURE, _OPTIONS, True)


def _address(function: Callable[..., int], signature: Any, options: dict[str, Any], kept: bool) -> int:
    """Compile a C function of that signature, or load it; its address."""
    options = {**options, "nopython": True}
    compiled = _cached_c_function(function, signature, options) if kept else None
    if compiled is None:
        compiled = numba.cfunc(signature, **options)(function)
    _keep_alive.append(compiled)
    return int(compiled.address)


def _cached_c_function(function: Callable[..., int], signature: Any, options: dict[str, Any]) -> Any:
    """A C function with our cache, which numba.cfunc has no argument for; None where there is none."""
    cache = _cache_of(function)
    if cache is None:
        return None
    try:
        from numba.core.ccallback import CFunc

        compiled: Any = CFunc(function, (signature.args, signature.return_type), locals={}, options=options)
        compile_it = compiled.compile
    except (ImportError, AttributeError, TypeError) as error:
        _give_up_cache(error)
        return None
    compiled._cache = cache
    compile_it()
    return compiled


_keep_alive: list[Any] = []  # an address is valid only as long as its compiled function lives

PRIMITIVE_SIGNATURE = types.int64(_POINTER, _POINTER, _POINTER, _POINTER)
FIRST_ADDRESS = 4096  # no function lies in the first page of memory: a smaller number is a code of the chooser


def by_hand(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of the user's, for kernels to call; it may allocate.

    One that is compiled already is compiled anew: without checks it would write beyond the rows it has.
    """
    function = getattr(function, "py_func", function)
    if JIT_DISABLED:
        return function
    compiled: Callable[..., Any] = numba.njit(error_model="numpy", boundscheck=True)(function)
    return compiled


def primitive_address(function: Callable[..., int], kept: bool) -> int:
    """Compile a kernel of one primitive, a function of four pointers; cached if the file it stands in is kept."""
    if JIT_DISABLED:
        _python_primitives.append(function)
        return FIRST_ADDRESS + len(_python_primitives) - 1
    return _address(function, PRIMITIVE_SIGNATURE, _OPTIONS if kept else {**_OPTIONS, "_nrt": True}, kept)


_python_primitives: list[Callable[..., int]] = []

_python_arrays: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def address_of(array: Any) -> int:
    """Address of the first element of a contiguous array, valid as long as the array lives.

    With the JIT disabled it is a number by which :func:`integers_at` and :func:`floats_at` find the array.
    """
    if JIT_DISABLED:
        _python_arrays[id(array)] = array
        return id(array)
    return int(array.__array_interface__["data"][0])


if JIT_DISABLED:

    def integers_at(address):  # type: ignore[no-untyped-def]
        """The integers at an address (here: the array of that number)."""
        return _python_arrays[address]

    floats_at = integers_at
    address_in_kernel = address_of

    def as_integers(floats):  # type: ignore[no-untyped-def]
        """Floats of a workspace as room for as many integers."""
        return floats.view("int64")

    def fma(a, b, c):  # type: ignore[no-untyped-def]
        """a·b + c (here: rounded twice)."""
        return a * b + c

    def pointer(array):  # type: ignore[no-untyped-def]
        """To the first element of an array (here: the array)."""
        return array

    def tail(array, first):  # type: ignore[no-untyped-def]
        """The array from one of its elements on."""
        if first < 0:
            raise IndexError(f"cut from {first} on; it must be from 0 on, since a pointer does not count from the end")
        return array[first:]

    def cut(array, first, size):  # type: ignore[no-untyped-def]
        """So many of the array's elements from one of them on; here alone it is asked whether it has them."""
        if first < 0 or size < 0 or first + size > len(array):
            raise IndexError(f"{size} elements from {first} on are cut out of {len(array)}")
        return array[first : first + size]

    def piece(stride, first, size):  # type: ignore[no-untyped-def]
        """An accessor (array, k): that many elements of item k, where items lie a stride apart."""
        return lambda array, k: cut(array, stride * k + first, size)

    def view(pointer, size):  # type: ignore[no-untyped-def]
        """The numbers at a pointer, as an array (here: the first of an array, which may have more)."""
        return cut(pointer, 0, size)

    def call_primitive(address, x, second, third, fourth):  # type: ignore[no-untyped-def]
        """Call the kernel of a primitive at an address (here: the Python function of that index)."""
        return _python_primitives[address - FIRST_ADDRESS](x, second, third, fourth)

    def call_evaluator(address, op, ints, floats, q, step, out, jacobian, work):  # type: ignore[no-untyped-def]
        """Call the evaluator at an address (here: the Python function of that index)."""
        return _python_evaluators[address](op, ints, floats, q, step, out, jacobian, work)

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
        """Floats of a workspace as room for as many integers."""

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
            raise TypeError(f"{kind} in place of a contiguous array")

    def _checked(kinds, element):  # type: ignore[no-untyped-def]
        """The types of arguments, which must be pointers to, or contiguous arrays of, that element."""
        for kind in kinds:
            if kind != types.CPointer(element) and kind != types.Array(element, 1, "C"):
                raise TypeError(f"{kind} in place of a contiguous array of {element}")
        return kinds

    @intrinsic
    def pointer(typing_context, array):  # type: ignore[no-untyped-def]
        """To the first element of a contiguous array; kernels index it and cut it with :func:`tail`."""

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return context.make_array(signature.args[0])(context, builder, arguments[0]).data

        _check_contiguous(array)
        return types.CPointer(array.dtype)(array), generate

    def _from(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        """The first argument, a pointer or an array, from the element on whose number is the second."""
        kind = signature.args[0]
        if isinstance(kind, types.CPointer):
            return builder.gep(arguments[0], [arguments[1]])
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
        """A pointer, or an array, from one of its elements on; it is not asked whether it has that element."""
        if not isinstance(array, types.CPointer):
            _check_contiguous(array)
        return array(array, types.intp), _from

    @intrinsic
    def cut(typing_context, array, first, size):  # type: ignore[no-untyped-def]
        """As :func:`tail`, of a piece whose size is known: it is checked without the JIT, and costs nothing."""
        if not isinstance(array, types.CPointer):
            _check_contiguous(array)
        return array(array, types.intp, types.intp), _from

    def piece(stride, first, size):  # type: ignore[no-untyped-def]
        """An accessor (array, k): that many elements of item k, where items lie a stride apart.

        It is an intrinsic, since a function of its own would take 16 ms to compile in every kernel that calls it.
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
        """The numbers at a pointer, as an array that owns nothing."""

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            array = context.make_array(signature.return_type)(context, builder)
            width = context.get_constant(types.intp, 8)
            populate_array(
                array, data=arguments[0], shape=[arguments[1]], strides=[width], itemsize=width, meminfo=None
            )
            return array._getvalue()

        return types.Array(pointer.dtype, 1, "C")(pointer, types.intp), generate

    def _pointer(context, builder, kind, value):  # type: ignore[no-untyped-def]
        """The pointer itself, or where an array begins."""
        return value if isinstance(kind, types.CPointer) else context.make_array(kind)(context, builder, value).data

    def _call(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        """Call the C function at the address that is the first argument, with pointers in place of arrays."""
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
        """Call the evaluator at an address, from inside a kernel."""
        tables = (*_checked((ints,), types.int64), *_checked((floats, q, step, out, jacobian, work), types.float64))
        return types.int64(types.int64, types.int64, *tables), _call
