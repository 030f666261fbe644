"""Tables that Python and kernels share, declared once; workspaces, planned in one place.

A table is a record of 8-byte fields::

    class Hand(Table):
        kind: Int  # FREE, POINT, POSE, PUSH
        stiffness: Float  # [N/m]
        force: Float[3]  # of the mechanism on the hand [N]
        job: Ref[Job]  # a table at an address
        weights: Ref[Float]  # an array at an address
        solver: Address  # of a function
        links: Within[Int]  # numbers at an offset from the beginning of this record, in words

From the declaration come the offsets, the NumPy dtype (``Hand.dtype``), memory (``Hand.new()``, ``Hand.new(8)``), the
lifetime of the arrays that a table refers to, and its description in the documents (:func:`describe`).  In a kernel,
``hand = Hand(hands, k)`` is the k-th record from a pointer on; ``hand.stiffness`` reads a number,
``hand.stiffness = 2.0`` writes one, ``hand.force`` is a pointer to three, ``hand.job`` is the table at that address.
A field that is not declared is an error when the kernel is compiled, and an AttributeError without the JIT.

A field of open size, ``blocks: Int[...]``, is the last one: as many numbers follow as the record says elsewhere.
``records: Hand[...]`` is the first of several records that follow.  ``after(record, count)`` is the record behind
these.  ``local(Hand)`` is a record of zeros on the stack of a kernel, for the state of a loop.

A workspace names the pieces of one array of floats::

    class Work(Workspace):
        residual: Piece  # r at q, shape (rows,)
        step: Piece

``Work.plan(residual=n, step=m)`` gives the offsets of the pieces and of their end; in a kernel,
``work = Work(offsets, memory)`` makes ``work.residual`` a pointer.  Without the JIT a piece has exactly its size.
``work.memory`` is the whole array, to be passed to another kernel.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import namedtuple
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

I8, F8 = np.dtype(np.int64), np.dtype(np.float64)
_ONE_WORD = (8,)  # strides of a contiguous array


@dataclass(frozen=True, slots=True)
class Kind:
    """What a field holds: ``code`` is a type of NumPy, ``count`` is None for one number and 0 for an open size.

    ``refers``: "i8", "f8" or a table, of an array at an address; "function" for the address of a function.
    ``within``: the number is not an address, but an offset from the record.
    """

    name: str
    code: str
    count: int | None = None
    refers: Any = None
    within: bool = False

    def __getitem__(self, count: Any) -> Kind:
        if self.count is not None or self.refers is not None:
            raise TypeError(f"{self.name} has a size already")
        if count is not ... and not (isinstance(count, int) and count > 0):
            raise TypeError(f"{self.name}[{count!r}]: the size must be a positive integer, or ... if it is open")
        return Kind(f"{self.name}[{'…' if count is ... else count}]", self.code, 0 if count is ... else count)

    @property
    def words(self) -> int:
        """Size in fields of 8 bytes; an open size counts as none."""
        return 1 if self.count is None else self.count


Float: Any = Kind("Float", "f8")
Int: Any = Kind("Int", "i8")
Address: Any = Kind("Address", "i8", refers="function")


@dataclass(frozen=True, slots=True)
class _Reference:
    name: str
    within: bool

    def __getitem__(self, target: Any) -> Kind:
        if isinstance(target, Kind) and target.count is None and target.refers is None:
            return Kind(f"{self.name}[{target.name}]", "i8", None, target.code, self.within)
        if isinstance(target, TableMeta):
            return Kind(f"{self.name}[{target.__name__}]", "i8", None, target, self.within)
        raise TypeError(f"{self.name}[{target!r}]: it must refer to Int, Float or a table")


Ref: Any = _Reference("Ref", within=False)
Within: Any = _Reference("Within", within=True)


# how Table.write assigns to a field: one number, by its type, or an address; else as an attribute is assigned
INTEGER, FLOAT, REFERENCE, SLOWLY = "i8", "f8", "reference", "slowly"


class Field(property):
    """One field: an attribute of the records of a table."""

    def __init__(self, name: str, kind: Kind, first: int) -> None:
        super().__init__(*_accessors(name, kind, first))
        self.name = name
        self.kind = kind
        self.first = first
        if kind.count is not None:
            self.manner = SLOWLY
        elif kind.refers in (None, "function") or kind.within:
            self.manner = INTEGER if kind.code == "i8" else FLOAT
        else:
            self.manner = REFERENCE


def _accessors(name: str, kind: Kind, first: int) -> tuple[Any, Any]:
    """Functions that read and write a field in Python, where speed matters: one for each kind."""
    last = None if not kind.count else first + kind.count
    refers = kind.refers

    def read_table(record: Any) -> Any:
        return refers._unchecked(record._ints[first:])

    def read_within(record: Any) -> Any:
        numbers = (record._floats if refers == "f8" else record._ints)[record._ints[first] :]
        return refers._unchecked(numbers) if isinstance(refers, TableMeta) else numbers

    def read_reference(record: Any) -> Any:
        kept = record._kept.get(name) if record._kept is not None else None
        array, inner = kept if isinstance(kept, tuple) else (kept, None)
        if array is None:  # a kernel that runs without the JIT: the address is a key
            from cardan.kernel.memory import integers_at

            array = integers_at(int(record._ints[first]))
        return refers._unchecked(array, inner) if isinstance(refers, TableMeta) else array

    def write_int(record: Any, value: Any) -> None:
        record._ints[first] = value

    def write_float(record: Any, value: Any) -> None:
        record._floats[first] = value

    def write_ints(record: Any, value: Any) -> None:
        record._ints[first:last] = value

    def write_floats(record: Any, value: Any) -> None:
        record._floats[first:last] = value

    def refuse(record: Any, value: Any) -> None:
        raise AttributeError(f"{type(record).__name__}.{name} is where records follow; it cannot be assigned")

    def refer(record: Any, value: Any) -> None:
        record._refer(name, first, refers, value)

    if refers == "function":
        return lambda record: int(record._ints[first]), write_int
    if kind.count == 0 and refers is not None:
        return read_table, refuse
    if refers is not None:
        return (read_within, write_int) if kind.within else (read_reference, refer)
    if kind.count is None:
        if kind.code == "i8":
            return lambda record: record._ints[first], write_int
        return lambda record: record._floats[first], write_float
    if kind.code == "i8":
        return lambda record: record._ints[first:last], write_ints
    return lambda record: record._floats[first:last], write_floats


class TableMeta(type):
    """Reads the fields of a table from its annotations."""

    _fields: dict[str, Field]
    _size: int
    _places: dict[str, tuple[str, int]]  # of each field, how it is written, and its first word
    _singles: list[str]  # fields of one word
    _is_float: bool  # whether all fields are floats
    _dtype: np.dtype[Any]  # made when it is first asked for
    _row: type  # a tuple with the names of the fields, made likewise

    def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        annotations = body.pop("__annotations__", {})
        if bases:
            body["__slots__"] = ()
        made: Any = super().__new__(meta, name, bases, body)
        if not bases:
            return made
        made._fields = dict(made._fields)
        space = {**sys._getframe(1).f_globals, name: made}  # of the module that declares it
        for field, text in annotations.items():
            kind = eval(text, space) if isinstance(text, str) else text
            if not isinstance(kind, Kind):
                raise TypeError(f"{name}.{field} is {kind!r}; it must be Int, Float, Address, Ref[…] or a size of them")
            if made._fields and [*made._fields.values()][-1].kind.count == 0:
                raise TypeError(f"{name}.{field} follows a field of open size, which must be the last one")
            if hasattr(made, field):
                raise TypeError(f"{name} has another attribute {field!r}; choose another name for the field")
            made._fields[field] = Field(field, kind, made._size)
            setattr(made, field, made._fields[field])
            made._size += kind.words
        made._places = {name: (field.manner, field.first) for name, field in made._fields.items()}
        made._is_float = all(field.kind.code == "f8" for field in made._fields.values())
        made._singles = [name for name, field in made._fields.items() if field.kind.count is None]
        return made

    def new(cls, count: int = 1, /, *, open: int = 0, **values: Any) -> Any:
        """A record of zeros that owns its memory, or the first of several; ``open``: size of an open field."""
        kept: dict[Any, Any] = {}
        made = cls._unchecked(np.zeros(cls._size * count + open, F8 if cls._is_float else I8), kept)
        if values:
            made.write(**values)
        return made

    def read(cls, memory: Any) -> Any:
        """The fields of a record of single numbers of one type, as numbers of Python, in one step.

        memory: of that type, such as ``record.as_floats``.
        """
        row = cls.__dict__.get("_row")
        if row is None:
            row = cls._row = namedtuple(cls.__name__, cls._singles)
        return tuple.__new__(row, memory[: cls._size].tolist())

    def _address(cls, name: str, refers: Any, value: Any, kept: dict[Any, Any]) -> int:
        """The address of an array or a table, which is kept alive."""
        array, owner = (value._ints, (value._ints, value._kept)) if isinstance(value, Table) else (value, value)
        is_array = isinstance(array, np.ndarray) and array.ndim == 1
        if not is_array or (array.strides != _ONE_WORD and not array.flags.c_contiguous):
            raise TypeError(f"{cls.__name__}.{name} was given {value!r:.60}; it must be a contiguous array")
        wanted = F8 if refers == "f8" else I8 if refers == "i8" else None
        if wanted is not None and array.dtype != wanted:
            raise TypeError(f"{cls.__name__}.{name} was given {array.dtype}; it must be {refers}")
        kept[name] = owner
        return _address_of(array)

    def __getitem__(cls, count: Any) -> Kind:
        """The kind of a field of open size: records of this table that follow."""
        if count is not ...:
            raise TypeError(f"{cls.__name__}[{count!r}]: the number of records must be open, as in {cls.__name__}[...]")
        return Kind(f"{cls.__name__}[…]", "i8", 0, cls)

    def _unchecked(cls, numbers: Any, kept: dict[Any, Any] | None = None) -> Any:
        """A record whose size is not checked: behind the last record there is none, and there may be no record."""
        made: Any = object.__new__(cls)  # type: ignore[arg-type]
        made._see(numbers, kept)
        return made

    # These are properties of the class alone: a record may have fields with the same names.

    if TYPE_CHECKING:
        fields: dict[str, Field]  # by name
        size: int  # number of words of a record, without its open field
    else:
        fields, size = property(attrgetter("_fields")), property(attrgetter("_size"))  # no call of Python

    @property
    def dtype(cls) -> np.dtype[Any]:
        """The fields as a structured type; an open field is left out."""
        found: np.dtype[Any] | None = cls.__dict__.get("_dtype")
        if found is None:
            kinds = [(name, field.kind) for name, field in cls._fields.items() if field.kind.count != 0]
            found = np.dtype([(n, kind.code, (kind.count,)) if kind.count else (n, kind.code) for n, kind in kinds])
            cls._dtype = found
        return found

    @property
    def addresses(cls) -> dict[str, int]:
        """Fields that hold addresses, valid in one process only, and their offsets."""
        own = [field for field in cls.fields.values() if field.kind.count is None and not field.kind.within]
        return {field.name: field.first for field in own if field.kind.refers is not None}


class Table(metaclass=TableMeta):
    """A record at a place in memory: ``Hand(array)``, ``Hand(array, k)``; see the module."""

    __slots__ = ("__weakref__", "_floats", "_ints", "_kept")
    _fields: ClassVar[dict[str, Field]] = {}
    _size: ClassVar[int] = 0

    def __init__(self, memory: Any, k: int = 0, kept: dict[Any, Any] | None = None) -> None:
        if isinstance(memory, Table):
            kept = memory._kept if kept is None and k == 0 else kept  # that of the first record
            memory = memory._ints
        size = type(self)._size
        if memory.dtype.names:
            memory = memory.view(I8)
        numbers = memory[size * k :] if k else memory
        if k < 0 or len(numbers) < size:
            raise IndexError(f"{type(self).__name__} {k} has {size} words; {len(numbers)} are there")
        self._see(numbers, kept)

    def _see(self, numbers: Any, kept: dict[Any, Any] | None) -> None:
        kind = numbers.dtype
        if kind is F8:
            self._ints, self._floats = numbers.view(I8), numbers
        else:
            if kind is not I8:  # records of a structured type
                numbers = numbers.view(I8)
            self._ints, self._floats = numbers, numbers.view(F8)
        self._kept = kept

    if TYPE_CHECKING:
        as_ints: Any  # the words of the record and of what follows it, as integers
        as_floats: Any  # the same bytes as floats
    else:
        as_ints, as_floats = property(attrgetter("_ints")), property(attrgetter("_floats"))

    def write(self, **values: Any) -> None:
        """Assign to several fields at once: five times as fast as to assign to each."""
        table, kept = type(self), self._kept
        places, ints, floats = table._places, self._ints.data, self._floats.data  # faster than arrays
        for name, value in values.items():
            if name not in places:
                raise _no_such(table, name, places)
            manner, first = places[name]
            if manner is FLOAT:
                floats[first] = value
            elif manner is INTEGER:
                ints[first] = value
            elif manner is REFERENCE and value is not None and kept is not None:
                ints[first] = table._address(name, table._fields[name].kind.refers, value, kept)
            else:
                setattr(self, name, value)

    def _refer(self, name: str, first: int, refers: Any, value: Any) -> None:
        """Write the address of an array or a table, and keep it alive as long as this record."""
        if self._kept is None:
            what = f"{type(self).__name__}.{name}"
            raise TypeError(f"{what} refers to memory, which only an owner keeps; make the record by new")
        if value is None:
            self._ints[first] = 0
            self._kept.pop(name, None)
        else:
            self._ints[first] = type(self)._address(name, refers, value, self._kept)

    def __reduce__(self) -> Any:
        if self._kept:
            raise TypeError(f"{type(self).__name__} refers to memory, which a copy or a pickle does not have")
        return _copied, (type(self), self._ints.copy())

    def __getattr__(self, name: str) -> Any:
        raise _no_such(type(self), name, type(self)._fields)


def _copied(table: Any, words: Any) -> Any:
    return table(words, kept={})


def _address_of(array: Any) -> int:
    global _address_of  # noqa: PLW0603  # the import takes a microsecond, and Numba is loaded with it
    from cardan.kernel.memory import address_of as _address_of

    return _address_of(array)


def _no_such(owner: type, name: str, known: Iterable[str]) -> AttributeError:
    similar = get_close_matches(name, known, 1)
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    return AttributeError(f"{owner.__name__} has no field {name!r}{hint}", name=name)


Piece: Any = Kind("Piece", "f8", 0)


class WorkspaceMeta(type):
    """Reads the names of the pieces of a workspace from its annotations."""

    pieces: dict[str, int]

    def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        annotations = body.pop("__annotations__", {})
        if bases:
            body["__slots__"] = ()
        made: Any = super().__new__(meta, name, bases, body)
        if bases:
            made.pieces = dict(made.pieces)
            for piece in annotations:
                if piece in made.pieces or hasattr(Workspace, piece):
                    raise TypeError(f"{name} has another attribute {piece!r}; choose another name for the piece")
                made.pieces[piece] = len(made.pieces)
        return made


class Workspace(metaclass=WorkspaceMeta):
    """Named pieces of one array of floats; see the module."""

    __slots__ = ("_memory", "_offsets")
    pieces: ClassVar[dict[str, int]] = {}

    def __init__(self, offsets: Any, memory: Any) -> None:
        object.__setattr__(self, "_offsets", offsets)
        object.__setattr__(self, "_memory", memory)

    @classmethod
    def plan(cls, **sizes: int) -> Any:
        """Offsets of the pieces, and of their end; every piece needs its size, in floats."""
        if sizes.keys() != cls.pieces.keys():
            missing = [name for name in cls.pieces if name not in sizes]
            unknown = [name for name in sizes if name not in cls.pieces]
            raise TypeError(f"the plan of {cls.__name__} lacks sizes of {missing}, and does not know {unknown}")
        return np.array([0, *accumulate([int(sizes[name]) for name in cls.pieces])], dtype=np.int64)

    @property
    def memory(self) -> Any:
        """The whole array, to be passed to another kernel."""
        return self._memory

    def __getattr__(self, name: str) -> Any:
        number = type(self).pieces.get(name)
        if number is None:
            raise _no_such(type(self), name, type(self).pieces)
        first, end = int(self._offsets[number]), int(self._offsets[number + 1])
        if not 0 <= first <= end <= len(self._memory):
            raise IndexError(f"piece {name!r} is from {first} to {end}; the workspace has {len(self._memory)} floats")
        return self._memory[first:end]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"pieces of {type(self).__name__} are written element by element, not assigned")


def describe(table: Any) -> str:
    """The fields of a table or the pieces of a workspace, with their comments, as a table in Markdown."""
    comments: dict[str, str] = {}
    for owner in reversed(table.__mro__[:-2]):  # without Table or Workspace, and object
        for line in inspect.getsource(owner).splitlines():
            found = re.match(r"    (\w+): [^#]+(?:#\s*(.*))?$", line)
            if found:
                comments[found[1]] = (found[2] or "").replace("|", "\\|")
    if isinstance(table, TableMeta):
        rows = [(name, field.kind.name, str(field.first)) for name, field in table.fields.items()]
        head = "| field | type | offset | meaning |\n|---|---|---|---|"
        return "\n".join([head, *(f"| `{n}` | {kind} | {at} | {comments.get(n, '')} |" for n, kind, at in rows)])
    head = "| piece | meaning |\n|---|---|"
    return "\n".join([head, *(f"| `{name}` | {comments.get(name, '')} |" for name in table.pieces)])
