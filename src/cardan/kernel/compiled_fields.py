"""How compiled kernels read and write tables and workspaces (:mod:`cardan.kernel.table`), as types of Numba.

A record is a pointer; a field is a load or a store at a constant offset.  A workspace is two pointers, to the offsets
of its pieces and to its memory.  Nothing is checked in compiled code.  Only :mod:`cardan.kernel.compiler` imports this
module.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate, signature
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
    typeof_impl,
)

from cardan.kernel.table import TableMeta, WorkspaceMeta

_WORD = ir.IntType(64)
_WORDS = _WORD.as_pointer()
_FLOATS = ir.DoubleType().as_pointer()
_WORDS_OF_RECORDS = ("as_ints", "as_floats")


class _Record(types.Type):  # type: ignore[misc]  # numba is untyped
    """A record of a table."""

    def __init__(self, table: TableMeta) -> None:
        self.table = table
        super().__init__(name=f"{table.__module__}.{table.__qualname__}")


class _Pieces(types.Type):  # type: ignore[misc]
    """A workspace."""

    def __init__(self, workspace: WorkspaceMeta) -> None:
        self.workspace = workspace
        super().__init__(name=f"{workspace.__module__}.{workspace.__qualname__}")


@register_model(_Record)
class _RecordModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WORDS)


@register_model(_Pieces)
class _PiecesModel(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        members = [("offsets", types.CPointer(types.int64)), ("memory", types.CPointer(types.float64))]
        super().__init__(manager, kind, members)


class _Class(types.Callable, types.Opaque):  # type: ignore[misc]
    """A table or a workspace itself, which kernels call to see memory as a record."""

    def __init__(self, declared: Any) -> None:
        self.declared = declared
        super().__init__(f"class {declared.__module__}.{declared.__qualname__}")

    def get_call_type(self, context: Any, arguments: Any, keywords: Any) -> Any:
        if keywords:
            raise TypeError(f"{self.name} takes no names of arguments in a kernel")
        if isinstance(self.declared, WorkspaceMeta):
            return signature(_Pieces(self.declared), *arguments)
        return signature(_Record(self.declared), *arguments)

    def get_call_signatures(self) -> Any:
        return [], False

    def get_impl_key(self, sig: Any) -> Any:
        return _Class

    @property
    def key(self) -> Any:
        return self.declared


register_model(_Class)(models.OpaqueModel)


@typeof_impl.register(TableMeta)
def _typeof_table(declared: Any, context: Any) -> Any:
    return _Class(declared)


@typeof_impl.register(WorkspaceMeta)
def _typeof_workspace(declared: Any, context: Any) -> Any:
    return _Class(declared)


def _pointer(context: Any, builder: Any, kind: Any, value: Any, wanted: Any) -> Any:
    """A pointer, the first element of an array, or the address of a record, as a pointer of another type."""
    if isinstance(kind, types.Array):
        value = context.make_array(kind)(context, builder, value).data
    return builder.bitcast(value, wanted)


@lower_builtin(_Class, types.VarArg(types.Any))
def _see(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    """Hand(memory), Hand(memory, k) or Work(offsets, memory)."""
    kind = sig.return_type
    if isinstance(kind, _Pieces):
        seen = cgutils.create_struct_proxy(kind)(context, builder)
        seen.offsets = _pointer(context, builder, sig.args[0], arguments[0], _WORDS)
        seen.memory = _pointer(context, builder, sig.args[1], arguments[1], _FLOATS)
        return seen._getvalue()
    first = _pointer(context, builder, sig.args[0], arguments[0], _WORDS)
    if len(arguments) == 1:
        return first
    k = context.cast(builder, arguments[1], sig.args[1], types.int64)
    return builder.gep(first, [builder.mul(k, ir.Constant(_WORD, kind.table._size))])


def _type_of(field: Any) -> Any:
    """The type of a field in a kernel."""
    kind = field.kind
    if kind.refers is None or kind.refers == "function":
        number = types.int64 if kind.code == "i8" else types.float64
        return number if kind.count is None else types.CPointer(number)
    if isinstance(kind.refers, TableMeta):
        return _Record(kind.refers)
    return types.CPointer(types.int64 if kind.refers == "i8" else types.float64)


@infer_getattr
class _RecordFields(AttributeTemplate):  # type: ignore[misc]
    key = _Record

    def generic_resolve(self, kind: Any, name: str) -> Any:
        if name in _WORDS_OF_RECORDS:
            return types.CPointer(types.int64 if name == "as_ints" else types.float64)
        field = kind.table._fields.get(name)
        return None if field is None else _type_of(field)


@infer_getattr
class _PieceNames(AttributeTemplate):  # type: ignore[misc]
    key = _Pieces

    def generic_resolve(self, kind: Any, name: str) -> Any:
        is_known = name == "memory" or name in kind.workspace.pieces
        return types.CPointer(types.float64) if is_known else None


def _place(builder: Any, record: Any, field: Any) -> Any:
    place = builder.gep(record, [ir.Constant(_WORD, field.first)])
    return builder.bitcast(place, _FLOATS) if field.kind.code == "f8" else place


@lower_getattr_generic(_Record)
def _read(context: Any, builder: Any, kind: Any, record: Any, name: str) -> Any:
    if name in _WORDS_OF_RECORDS:
        return record if name == "as_ints" else builder.bitcast(record, _FLOATS)
    field = kind.table._fields[name]
    place = _place(builder, record, field)
    if field.kind.count is not None:
        return place
    value = builder.load(place)
    if field.kind.refers is None or field.kind.refers == "function":
        return value
    if field.kind.within:
        return builder.bitcast(builder.gep(record, [value]), context.get_value_type(_type_of(field)))
    return builder.inttoptr(value, context.get_value_type(_type_of(field)))


@lower_setattr_generic(_Record)
def _write(context: Any, builder: Any, sig: Any, arguments: Any, name: str) -> None:
    record, value = arguments
    field = sig.args[0].table._fields[name]
    if field.kind.count is not None or field.kind.refers not in (None, "function"):
        raise TypeError(f"{sig.args[0].name}.{name} is not one number; a kernel cannot assign to it")
    builder.store(value, _place(builder, record, field))


@lower_getattr_generic(_Pieces)
def _read_piece(context: Any, builder: Any, kind: Any, pieces: Any, name: str) -> Any:
    seen = cgutils.create_struct_proxy(kind)(context, builder, value=pieces)
    if name == "memory":
        return seen.memory
    number = ir.Constant(_WORD, kind.workspace.pieces[name])
    return builder.gep(seen.memory, [builder.load(builder.gep(seen.offsets, [number]))])


@intrinsic
def local(typing_context, table):
    """A record of zeros on the stack; its fields become registers where the compiler sees all its uses."""

    def generate(context, builder, sig, arguments):
        words = ir.ArrayType(_WORD, sig.return_type.table._size)
        place = cgutils.alloca_once(builder, words)
        builder.store(ir.Constant(words, None), place)
        return builder.bitcast(place, _WORDS)

    return _Record(table.declared)(table), generate


@intrinsic
def after(typing_context, record, count):
    """The record of the same table that follows ``count`` numbers of the open field of this one."""

    def generate(context, builder, sig, arguments):
        skipped = builder.add(arguments[1], ir.Constant(_WORD, sig.args[0].table._size))
        return builder.gep(arguments[0], [skipped])

    return record(record, types.int64), generate
