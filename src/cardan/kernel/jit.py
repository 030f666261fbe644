"""Decorators of kernels, and addresses of compiled functions.

* ``@jit`` is for kernels that Python calls.  (``@exact`` does not reorder sums; ``@inner`` is for functions that only
  other kernels call.)
* ``@evaluator`` compiles a function of the fixed ABI (:mod:`cardan.kernel.memory`) to a C function.  Solvers receive
  its *address* and call it with ``call_evaluator``, so they are compiled once for all mechanisms.  (Passing an address
  costs 0.1 µs; a typed function object costs 16 µs in dispatch, and a dispatcher or closure is recompiled in every
  process.)

Machine code comes from the library that was built with the wheel (:mod:`cardan.kernel.built`).  Numba
(:mod:`cardan.kernel.compiler`) is imported only when something must be compiled: a kernel that is not in the library,
or whose sources have changed since, and functions of the user.  ``CARDAN_KERNELS=numba`` compiles all kernels,
``CARDAN_KERNELS=built`` compiles none of the library's.  ``NUMBA_DISABLE_JIT=1`` runs them all in Python.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from cardan.kernel import built
from cardan.kernel.dual import Dual
from cardan.kernel.memory import FIRST_ADDRESS, JIT_DISABLED, plain, python_evaluators, python_primitives

__all__ = [
    "by_hand",
    "evaluator",
    "evaluator_in_python",
    "exact",
    "exact_inner",
    "inner",
    "jit",
    "plain",
    "prepare",
    "primitive_address",
    "uncompiled",
]

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_thread = threading.local()


def _compiler(what: str) -> Any:
    """Numba's part, or an ImportError that says how to get it."""
    try:
        return import_module("cardan.kernel.compiler")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("numba", "llvmlite"):
            raise
        raise ModuleNotFoundError(
            f"{what} must be compiled, for which Numba is needed: pip install 'cardan[jit]' "
            "(or set NUMBA_DISABLE_JIT=1: all kernels then run in Python, which is slow)",
            name="numba",
        ) from error


def _compiler_of(function: Callable[..., Any]) -> Any:
    """Numba's part, for a function of the user, or for a kernel that was not built, if that is allowed."""
    name = f"{function.__module__}.{function.__qualname__}"
    if not built.is_ours(function):
        return _compiler(f"{name}, a function of your own,")
    reason = built.why_not(function)
    if built.CHOICE == "built":
        raise ImportError(f"CARDAN_KERNELS=built, and {name} is not there: {reason}", name=__package__)
    return _compiler(f"{name} is not in the library of kernels ({reason}); it")


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


def _kernel(function: Kernel, manner: str) -> Kernel:
    def make() -> Any:
        return getattr(_compiler_of(function), manner)(function)

    if _skips_compilation():
        return function
    return built.kernel(function, make) if built.is_used_for(function) else make()


def _inner(function: Kernel, manner: str) -> Kernel:
    def make() -> Any:
        return getattr(_compiler_of(function), manner)(function)

    if _skips_compilation():
        return function
    return Dual(function, make) if built.is_used_for(function) else make()  # type: ignore[return-value]


def jit(function: Kernel) -> Kernel:
    """A kernel that Python calls; it releases the GIL."""
    return _kernel(function, "jit")


def inner(function: Kernel) -> Kernel:
    """A function that only kernels call, always inlined."""
    return _inner(function, "inner")


def exact(function: Kernel) -> Kernel:
    """As :func:`jit`, for kernels that may also run interpreted (:mod:`cardan.lazy`): both give the same bits, so
    results do not depend on whether a kernel is compiled."""
    return _kernel(function, "exact")


def exact_inner(function: Kernel) -> Kernel:
    """As :func:`inner`, for functions that :func:`exact` kernels call."""
    return _inner(function, "exact_inner")


def evaluator(function: Callable[..., int]) -> int:
    """The address of a function of the fixed ABI, for :func:`call_evaluator`."""
    if JIT_DISABLED:
        python_evaluators.append(function)
        return len(python_evaluators) - 1
    found = built.address(function)
    return found if found else int(_compiler_of(function).evaluator(function))


def evaluator_in_python(function: Callable[..., int]) -> tuple[int, Any]:
    """The address of a Python function of the fixed ABI, and what must be kept as long as the address is used.

    It gets pointers.  Kernels of the library raise its exceptions when they return; Numba's print and lose them.
    """
    if JIT_DISABLED:
        return evaluator(function), function
    function = built.guarded(function)
    floats = ctypes.POINTER(ctypes.c_double)
    made = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), *[floats] * 6)(function)
    return int(ctypes.cast(made, ctypes.c_void_p).value or 0), made


def by_hand(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function written by the user, for calls from kernels; it may allocate.

    A function that is already compiled is compiled again, with bounds checks: it might write outside its rows.
    """
    function = getattr(function, "py_func", function)
    if JIT_DISABLED:
        return function
    return _compiler(f"{function.__name__!r}, a function by hand,").by_hand(function)


def primitive_address(function: Callable[..., int], cached: bool) -> int:
    """The address of a kernel of one primitive, a function of four pointers.

    cached: its source is in a file, by which Numba can cache it.
    """
    if JIT_DISABLED:
        python_primitives.append(function)
        return FIRST_ADDRESS + len(python_primitives) - 1
    found = built.address(function)
    return found if found else int(_compiler_of(function).primitive_address(function, cached))


def prepare(kernel: Any, text: str) -> None:
    """Compile a kernel of the list (:mod:`cardan.kernel.listed`), or load its machine code, unless it is built."""
    if text == "PRIMITIVE":
        primitive_address(kernel, True)
    elif text == "EVALUATOR":
        evaluator(kernel)
    elif hasattr(kernel, "compile"):
        from cardan.kernel.signatures import read

        for signature in read(text):
            kernel.compile(signature)
