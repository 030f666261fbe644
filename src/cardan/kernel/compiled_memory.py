"""Compiled forms of the accessors of :mod:`cardan.kernel.memory`, under the same names, as intrinsics of Numba.

Only :mod:`cardan.kernel.compiler` imports this module.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_INTEGERS, _POINTER = types.CPointer(types.int64), types.CPointer(types.float64)
EVALUATOR_SIGNATURE = types.int64(types.int64, _INTEGERS, *[_POINTER] * 6)
PRIMITIVE_SIGNATURE = types.int64(_POINTER, _POINTER, _POINTER, _POINTER)


def _as_pointer(kind):
    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(kind))

    return generate


@intrinsic
def integers_at(typing_context, address):
    """A pointer to the integers at an address."""
    return _INTEGERS(types.int64), _as_pointer(_INTEGERS)


@intrinsic
def floats_at(typing_context, address):
    """A pointer to the floats at an address."""
    return _POINTER(types.int64), _as_pointer(_POINTER)


@intrinsic
def address_in_kernel(typing_context, array):
    """:func:`address_of` an array, within a kernel."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.int64))

    _check_contiguous(array)
    return types.int64(array), generate


@intrinsic
def as_integers(typing_context, floats):
    """Memory of floats, reinterpreted as integers."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(_INTEGERS))

    return _INTEGERS(_POINTER), generate


@intrinsic
def fma(typing_context, a, b, c):
    """a·b + c, rounded once."""

    def generate(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


def _check_contiguous(kind):
    if not (isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout == "C"):
        raise TypeError(f"the argument is {kind}; it must be a contiguous array")


def _checked(kinds, element):
    """The argument types, which must be pointers to ``element`` or contiguous arrays of it."""
    for kind in kinds:
        if kind != types.CPointer(element) and kind != types.Array(element, 1, "C"):
            raise TypeError(f"the argument is {kind}; it must be a contiguous array of {element}")
    return kinds


@intrinsic
def pointer(typing_context, array):
    """Pointer to the first element of a contiguous array; kernels index it and offset it with :func:`tail`."""

    def generate(context, builder, signature, arguments):
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    _check_contiguous(array)
    return types.CPointer(array.dtype)(array), generate


def _from(context, builder, signature, arguments):
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
def tail(typing_context, array, first):
    """A pointer or an array from element ``first`` on; the index is not checked."""
    if not isinstance(array, types.CPointer):
        _check_contiguous(array)
    return array(array, types.intp), _from


@intrinsic
def cut(typing_context, array, first, size):
    """As :func:`tail`, with a known size, checked only with the JIT disabled."""
    if not isinstance(array, types.CPointer):
        _check_contiguous(array)
    return array(array, types.intp, types.intp), _from


def piece(stride, first, size):
    """An accessor (array, k): ``size`` elements from ``first`` on in item k; items are ``stride`` elements long.

    It is an intrinsic, since a jitted function would take 16 ms to compile in every kernel that calls it.
    """

    def generate(context, builder, signature, arguments):
        begin = builder.mul(arguments[1], context.get_constant(types.intp, stride))
        begin = builder.add(begin, context.get_constant(types.intp, first))
        return _from(context, builder, signature, (arguments[0], begin))

    @intrinsic
    def access(typing_context, array, k):
        if not isinstance(array, types.CPointer):
            _check_contiguous(array)
        return array(array, types.intp), generate

    return access


@intrinsic
def view(typing_context, pointer, size):
    """The ``size`` numbers at a pointer, as an array that does not own its memory."""

    def generate(context, builder, signature, arguments):
        from numba.np.arrayobj import populate_array

        array = context.make_array(signature.return_type)(context, builder)
        width = context.get_constant(types.intp, 8)
        populate_array(array, data=arguments[0], shape=[arguments[1]], strides=[width], itemsize=width, meminfo=None)
        return array._getvalue()

    return types.Array(pointer.dtype, 1, "C")(pointer, types.intp), generate


def _pointer(context, builder, kind, value):
    """A pointer unchanged, or the pointer to the first element of an array."""
    return value if isinstance(kind, types.CPointer) else context.make_array(kind)(context, builder, value).data


def _call(context, builder, signature, arguments):
    """Call the C function at the address in the first argument; arrays are passed as pointers."""
    values = [
        value if isinstance(kind, types.Integer) else _pointer(context, builder, kind, value)
        for kind, value in zip(signature.args[1:], arguments[1:], strict=True)
    ]
    function = ir.FunctionType(context.get_value_type(types.int64), [value.type for value in values])
    return builder.call(builder.inttoptr(arguments[0], function.as_pointer()), values)


@intrinsic
def call_primitive(typing_context, address, x, second, third, fourth):
    """Call the kernel of a primitive at an address, with pointers to the first elements of four arrays."""
    return types.int64(types.int64, *_checked((x, second, third, fourth), types.float64)), _call


@intrinsic
def call_evaluator(typing_context, address, op, ints, floats, q, step, out, jacobian, work):
    """Call the evaluator at an address."""
    tables = (*_checked((ints,), types.int64), *_checked((floats, q, step, out, jacobian, work), types.float64))
    return types.int64(types.int64, types.int64, *tables), _call


def _call_system(context, builder, signature, arguments):
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
def read_clock(typing_context, address, clock, time):
    """Call clock_gettime at an address: time ← seconds and nanoseconds of that clock."""
    return types.int64(types.int64, types.int64, *_checked((time,), types.int64)), _call_system


@intrinsic
def sleep_until(typing_context, address, clock, flags, time, rest):
    """Call clock_nanosleep at an address, until a time in seconds and nanoseconds (flags: 1)."""
    tables = _checked((time, rest), types.int64)
    return types.int64(types.int64, types.int64, types.int64, *tables), _call_system
