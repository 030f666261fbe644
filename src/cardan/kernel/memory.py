"""Memory in kernels: pointers, pieces of arrays, tables of addresses, and calls by address.

Fixed ABI: ``evaluate(op, ints, floats, q, step, out, jacobian, work) -> int64`` with pointers to int64 and float64.
Linear algebra, solvers and draws have the same ABI (:mod:`cardan.solvers.tables`).  Further arrays are passed as a
table of addresses (:mod:`cardan.kernel.table`): the code that fills the table must keep the arrays alive.
Primitives that are not compiled into the evaluators are C functions of four pointers to float64, called with
:func:`call_primitive`: ``value(x, c, f, df)`` and ``curvature(x, rate, c, g)``.  Kernels index pointers like arrays and
offset them with :func:`tail`: this is faster than arrays, which are passed as seven words and check each index for a
negative value.  Pieces of a workspace are taken with :func:`cut`, which states their size; the tests without the JIT
check it.

Here are the forms of Python, which run where the JIT is disabled; the compiled ones are in
:mod:`cardan.kernel.compiled_memory`.
"""

from __future__ import annotations

import ctypes
import time as clocks
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from cardan.kernel import dual
from cardan.kernel.dual import Dual, accessor, compiled_module

JIT_DISABLED = dual.JIT_DISABLED

FIRST_ADDRESS = 4096  # the first page of memory contains no function: a smaller number is the code of a primitive

# with the JIT disabled, an address is an index into the first list, or FIRST_ADDRESS plus one into the second
python_evaluators: list[Callable[..., int]] = []
python_primitives: list[Callable[..., int]] = []

_python_arrays: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def plain(number: int) -> Any:
    """A constant that kernels pass to other functions.

    Numba gives each constant Python integer its own type, and would compile the function once for each value.
    """
    return np.int64(number)


def address_of(array: Any) -> int:
    """Address of the first element of a contiguous array, valid while the array exists; 0 if it has no elements.

    With the JIT disabled it is a key with which :func:`integers_at` and :func:`floats_at` find the array.
    """
    if JIT_DISABLED:
        _python_arrays[id(array)] = array
        return id(array)
    if not array.size:
        return 0
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # five times as fast as the interface below
    except (TypeError, ValueError):  # not writable
        return int(array.__array_interface__["data"][0])


@accessor
def integers_at(address: Any) -> Any:
    """The integers at an address (here: the array with that key)."""
    return _python_arrays[address]


@accessor
def floats_at(address: Any) -> Any:
    """The floats at an address (here: the array with that key)."""
    return _python_arrays[address]


@accessor
def address_in_kernel(array: Any) -> Any:
    """:func:`address_of` an array, within a kernel."""
    return address_of(array)


@accessor
def as_integers(floats: Any) -> Any:
    """Memory of floats, reinterpreted as integers."""
    return floats.view("int64")


@accessor
def fma(a: Any, b: Any, c: Any) -> Any:
    """a·b + c (here: rounded twice)."""
    return a * b + c


@accessor
def pointer(array: Any) -> Any:
    """Pointer to the first element of an array (here: the array)."""
    return array


@accessor
def tail(array: Any, first: Any) -> Any:
    """The array from element ``first`` on."""
    if first < 0:
        raise IndexError(f"tail starts at element {first}; it must be 0 or more, as for a pointer")
    return array[first:]


@accessor
def cut(array: Any, first: Any, size: Any) -> Any:
    """``size`` elements of the array from element ``first`` on (here: checked)."""
    if first < 0 or size < 0 or first + size > len(array):
        raise IndexError(f"{size} elements from {first} on do not fit into {len(array)}")
    return array[first : first + size]


def piece(stride: Any, first: Any, size: Any) -> Any:
    """An accessor (array, k): ``size`` elements from ``first`` on in item k; items are ``stride`` elements long."""

    def access(array: Any, k: int) -> Any:
        return cut(array, stride * k + first, size)

    return access if JIT_DISABLED else Dual(access, lambda: compiled_module(__name__).piece(stride, first, size))


@accessor
def view(pointer: Any, size: Any) -> Any:
    """The ``size`` numbers at a pointer, as an array (here: the first elements of an array)."""
    return cut(pointer, 0, size)


@accessor
def call_primitive(address: Any, x: Any, second: Any, third: Any, fourth: Any) -> Any:
    """Call the kernel of a primitive at an address (here: the Python function with that index)."""
    return python_primitives[address - FIRST_ADDRESS](x, second, third, fourth)


@accessor
def call_evaluator(
    address: Any, op: Any, ints: Any, floats: Any, q: Any, step: Any, out: Any, jacobian: Any, work: Any
) -> Any:
    """Call the evaluator at an address (here: the Python function with that index)."""
    return python_evaluators[address](op, ints, floats, q, step, out, jacobian, work)


@accessor
def read_clock(address: Any, clock: Any, time: Any) -> Any:
    """time ← seconds and nanoseconds (here: of the clock of Python)."""
    time[0], time[1] = divmod(clocks.perf_counter_ns(), 1_000_000_000)
    return 0


@accessor
def sleep_until(address: Any, clock: Any, flags: Any, time: Any, rest: Any) -> Any:
    """Sleep until a time in seconds and nanoseconds."""
    clocks.sleep(max(0.0, time[0] + 1e-9 * time[1] - 1e-9 * clocks.perf_counter_ns()))
    return 0
