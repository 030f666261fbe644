"""Shapes: a packed table and the address of an evaluator; points and derivatives from Python.

A shape is immutable.  Its table (``ints``, ``floats``; :mod:`.tables`) and :attr:`Shape.address` are all that kernels
need, so a contact can evaluate it without Python.
"""

from __future__ import annotations

import threading
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from cardan.errors import ModelError, ReadOnlyError
from cardan.geometry import tables
from cardan.geometry.checks import FloatArray, IntArray
from cardan.geometry.memory import address_of
from cardan.lazy import LazyModule, direct

_batch = LazyModule("cardan.geometry._batch")

_FRONT = 4 + 30  # floats of the scratch for the parameters and the rows of one point (_batch.py)
_HEADER, _WORK_FIELD = tables.ShapeInts.size, tables.ShapeInts.work.first
_WORK = _FRONT + 136  # floats of the scratch of a thread at first: a bicubic surface


@cache
def _evaluator(module: str) -> int:
    """Address of the evaluator of a kernel module."""
    return int(import_module(module).EVALUATE)


def _first(*arguments: Any) -> int:
    """In place of the kernel until it is loaded: its status asks for a table."""
    return 1


class _Scratch(threading.local):
    """Memory for evaluators, one per thread."""

    def __init__(self) -> None:
        self.size = 0
        self.evaluate = _first
        self.grow(_WORK)

    def grow(self, size: int) -> int:
        """Make room for that many floats; returns the new address."""
        self.array = np.empty(max(size, 2 * self.size))
        self.array[2] = self.size = self.array.size
        self.rows = [self.array[4 : 4 + 3 * n].reshape(n, 3) for n in range(11)]
        self.address = int(self.array.__array_interface__["data"][0])
        return self.address


_scratch = _Scratch()


class Immutable:
    """An object whose public attributes only its constructor sets: kernels read packed copies, so that changes would
    have no effect."""

    LAST: ClassVar[str]  # the attribute that the constructor sets last

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            if self.LAST in self.__dict__:
                raise ReadOnlyError(f"{name} of {self!r} cannot be set: shapes do not change; make a new one")
            for array in value if isinstance(value, tuple) else (value,):
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if not name.startswith("_"):
            raise ReadOnlyError(f"{name} of {self!r} cannot be deleted: shapes do not change; make a new one")
        object.__delattr__(self, name)


def read_parameters(values: Any) -> FloatArray:
    """Parameters as an array of floats."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"the parameters are {values!r:.80}; they must be numbers, in rows of equal length") from None


class Trimmed(Immutable):
    """A part of a surface that loops in the parameter plane bound (:class:`cardan.geometry.Face`)."""

    LAST = "_packed"
    freedoms: int
    surface: Any
    bounds: Any
    _packed: FloatArray  # the loops, as kernels read them

    def contains(self, u: float, v: float) -> bool:
        """Whether (u, v) is inside the domain."""
        raise NotImplementedError

    def key(self) -> tuple[Any, ...]:
        """Everything that defines its points, as plain values that compare."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        """The same points: equal surfaces and loops."""
        return self.key() == other.key() if isinstance(other, Trimmed) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key())


class Shape(Immutable):
    """A curve or surface with a table that kernels read.

    freedoms: number of parameters; width: numbers of a coordinate vector q (a sphere has q = m ∈ S², width 3);
    dimension: 2 for curves in a plane, else 3; bounds: lowest and highest value per parameter [parameter];
    periods: per parameter, 0 if it is not periodic.
    """

    LAST = "_table_address"

    def __init__(self, kernel: str, ints: IntArray, floats: FloatArray, dimension: int = 3) -> None:
        self._places = address_of(ints), address_of(floats)
        self.kernel, self.ints, self.floats = kernel, ints, floats
        self.dimension = dimension
        self.header: list[int] = ints[:_HEADER].tolist()
        self.freedoms, self.width = self.header[:2]
        self.work = self.header[_WORK_FIELD]
        limits = floats[: tables.LIMITS].tolist()
        self.bounds = tuple((limits[3 * i], limits[3 * i + 1]) for i in range(self.freedoms))
        self.periods = tuple(limits[3 * i + 2] for i in range(self.freedoms))
        self._lower = [b[0] if not p else -np.inf for b, p in zip(self.bounds, self.periods, strict=True)] + [-np.inf]
        self._upper = [b[1] if not p else np.inf for b, p in zip(self.bounds, self.periods, strict=True)] + [np.inf]
        self._row_counts = [size // 3 for size in _SIZES[self.freedoms]]
        self._work_size = _FRONT + self.work
        self._table: IntArray | None = None
        self._table_address = 0

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "_table": None, "_table_address": 0}  # addresses are valid in this process only
        return state | ({"_address": 0} if "_address" in state else {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._places = address_of(self.ints), address_of(self.floats)

    def with_table(self, floats: FloatArray) -> Shape:
        """The same shape with other numbers in its table, such as periods."""
        made = object.__new__(type(self))
        made.__dict__.update({name: value for name, value in self.__dict__.items() if name != self.LAST})
        Shape.__init__(made, self.kernel, self.ints, floats, self.dimension)
        return made

    def key(self) -> tuple[Any, ...]:
        """Everything that defines its points, as plain values that compare."""
        text = getattr(self, "_text", "")
        return self.kernel, text, self.dimension, self.ints[:_HEADER].tobytes(), self.floats.tobytes()

    def __eq__(self, other: object) -> bool:
        """The same points by the same parameters, of a shape of the same kind."""
        return self.key() == other.key() if isinstance(other, Shape) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key())

    def __deepcopy__(self, memo: Any) -> Shape:
        return self

    @property
    def address(self) -> int:
        """Address of the evaluator, for ``call_evaluator`` in kernels; valid in this process."""
        return _evaluator(self.kernel)

    @property
    def table(self) -> IntArray:
        """Addresses of the evaluator, of ints and of floats; they are valid while the shape exists."""
        if self._table is None:
            address = self.address
            if self.ints.size > _HEADER:  # the enclosure by Taylor's theorem calls the evaluator
                self.ints.flags.writeable = True
                self.ints[_HEADER] = address
                self.ints.flags.writeable = False
            self._table = np.array([address, *self._places], dtype=np.int64)
            self._table_address = address_of(self._table)
        return self._table

    @property
    def addresses(self) -> list[int]:
        """The entries of :attr:`table` as a list, for other tables."""
        if self.ints.size > _HEADER:
            self.table  # noqa: B018  (writes the address of the evaluator)
        return [self.address, *self._places]

    def derivatives(self, u: float, v: float = 0.0, order: int = 2) -> FloatArray:
        """Point and derivatives up to that order at (u, v), one row each: S, S_u, S_v, S_uu, S_uv, S_vv, …; for a curve
        S, S', S'', S'''.  At most the third."""
        scratch = _scratch.__dict__  # an attribute of a threading.local takes twice as long
        try:
            if scratch["evaluate"](self._table_address, order, u, v, scratch["address"]):
                self._prepare(float(u), float(v), order)
        except (TypeError, ValueError):
            self._check_order(order)
            for name, value in (("u", u), ("v", v)):
                if not isinstance(value, int | float | np.number):
                    raise ModelError(f"{name} is {value!r:.80}; it must be a number") from None
            raise
        found: FloatArray = scratch["rows"][self._row_counts[order]].copy()
        return found if self.dimension == 3 else found[:, : self.dimension]

    def _prepare(self, u: float, v: float, order: int) -> None:
        """Evaluate one point after a first try failed: with the table and the scratch, or an error."""
        self._check_order(order)
        self.table  # noqa: B018  (makes the table)
        if _scratch.size < self._work_size:
            _scratch.grow(self._work_size)
        if _batch.evaluate_one(self._table_address, order, u, v, _scratch.address) != _batch.DONE:
            self._raise_outside(u, v)
        _scratch.evaluate = direct(_batch.evaluate_one)

    def evaluate(self, parameters: Any, order: int = 0) -> FloatArray:
        """Points and derivatives at many parameters.

        parameters: shape (n, width), or (n,) for curves.  Returns shape (n, dimension) for order 0, else
        (n, rows, dimension) with the rows of :meth:`derivatives`.
        """
        self._check_order(order)
        q = read_parameters(parameters)
        if q.ndim == 1 and self.width == 1:
            q = q[:, None]
        if q.ndim != 2 or q.shape[1] != self.width:
            raise ModelError(f"the parameters have the shape {q.shape}; they must be (n, {self.width})")
        found = self._evaluate(q, order, check=True)[..., : self.dimension]
        return found[:, 0] if order == 0 else found

    def _evaluate(self, q: FloatArray, order: int, check: bool = False) -> FloatArray:
        """As :meth:`evaluate`, always with rows; check: parameters outside their bounds are an error."""
        rows = _SIZES[self.freedoms][order]
        q = np.ascontiguousarray(q)
        out = np.empty((len(q), rows // 3, 3))
        if len(q):
            step = np.array([self.width, rows, len(q), check], dtype=np.int64)
            self.table  # noqa: B018  (makes the table)
            work = _scratch.address if _scratch.size >= self._work_size else _scratch.grow(self._work_size)
            work += 8 * _FRONT
            bad = _batch.evaluate_many(self._table_address, order, q.reshape(-1), step, out.reshape(-1), work)
            if bad >= 0:
                i = next(i for i in range(self.freedoms) if not self._lower[i] <= q[bad, i] <= self._upper[i])
                raise ModelError(
                    f"parameter {'uv'[i]} of point {bad} is {q[bad, i]}; "
                    f"it must be in [{self._lower[i]}, {self._upper[i]}]"
                )
        return out

    def __call__(self, u: float, v: float = 0.0) -> FloatArray:
        """The point at (u, v) [m]."""
        return np.asarray(self.derivatives(u, v, 0)[0])

    def sample(self, count: int) -> FloatArray:
        """Parameters on a regular grid over the bounds, shape (count^freedoms, freedoms)."""
        axes = []
        for (low, high), period in zip(self.bounds, self.periods, strict=True):
            if not np.isfinite(low + high):
                raise ModelError("the shape is unbounded; it has no grid of parameters")
            axes.append(np.linspace(low, high, count, endpoint=not period))
        return np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)

    def _check_order(self, order: int) -> None:
        if order not in (0, 1, 2, 3):
            raise ModelError(f"the order is {order!r}; derivatives of order 0, 1, 2 or 3 can be computed")

    def _raise_outside(self, u: float, v: float) -> None:
        for i, value in enumerate((u, v)):
            if not self._lower[i] <= value <= self._upper[i]:
                raise ModelError(f"{'uv'[i]} is {value}; it must be in [{self._lower[i]}, {self._upper[i]}]")
        raise AssertionError("a point inside the bounds was not evaluated")


_SIZES = {0: (3, 3, 3, 3), 1: (3, 6, 9, 12), 2: tuple(3 * rows for rows in tables.ROWS)}
