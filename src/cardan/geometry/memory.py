"""Memory that kernels use by address."""

from __future__ import annotations

from ctypes import addressof, c_char
from functools import cache
from typing import Any, ClassVar

import numpy as np

from cardan.geometry.checks import FloatArray, IntArray


@cache
def _slowly() -> Any:
    """The general address_of, and whether it must be used: without the JIT an address is a key of an array."""
    from cardan.kernel.memory import JIT_DISABLED, address_of

    return address_of, JIT_DISABLED


def address_of(array: Any) -> int:
    """Address of the first element of a contiguous array, valid while the array exists; five times as fast as that of
    cardan.kernel.memory, if the array is writable."""
    slowly, always = _slowly()
    if not always:
        try:
            return addressof(c_char.from_buffer(array))
        except (TypeError, ValueError):  # not writable, or empty
            pass
    return int(slowly(array))


class Memory:
    """Arrays with their addresses, which searches use one after another: fresh memory costs more than a search.

    ints and floats: of the nodes of a tree, or of what waits in a search.
    """

    __slots__ = ("addresses", "floats", "ints")
    _free: ClassVar[dict[tuple[int, int], list[Memory]]] = {}
    KEPT = 8  # of each size, at most

    def __init__(self, ints: int, floats: int) -> None:
        self.ints: IntArray = np.zeros(ints, dtype=np.int64)
        self.floats: FloatArray = np.empty(floats)
        self.addresses = address_of(self.ints), address_of(self.floats)

    @classmethod
    def take(cls, ints: int, floats: int) -> Memory:
        """Memory of that size, not cleared; it goes back with :meth:`give`."""
        try:
            return cls._free[ints, floats].pop()
        except (KeyError, IndexError):  # also if another thread took the last one meanwhile
            return cls(ints, floats)

    def give(self) -> None:
        """Allow others to use the memory."""
        free = self._free.setdefault((self.ints.size, self.floats.size), [])
        if len(free) < self.KEPT:
            free.append(self)
