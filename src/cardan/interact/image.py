"""The tables of a kinematic session as one block of memory, for a machine whose kernels are not those of this process.

Fields of tables that are declared as addresses (:mod:`cardan.kernel.table`) lead from the record of the session to all
arrays.  In the image these words are offsets from its beginning, and words that are addresses of kernels are zero and
listed by the key of the kernel.  Arrays of plain integers may hold addresses of kernels too, in packed records; no
other number in them is as large as an address.  The parameter of a contact is the address of its table, as a float.
Workspaces, and what no table refers to, are zeros: a cycle writes them before it reads them.  So the image of a
mechanism is the same in every process.
"""

from __future__ import annotations

import bisect
from typing import Any, Final, NamedTuple

import numpy as np

from cardan.constraints import kernels, tape
from cardan.constraints.tables import RECORDED, Tape
from cardan.errors import ModelError
from cardan.geometry.traced import Traced
from cardan.interact import tables
from cardan.interact.session import Session
from cardan.joints.pairs import Pair
from cardan.joints.tables import PairShape, PairTable
from cardan.kernel import built
from cardan.kernel.memory import address_of
from cardan.kernel.table import Table, TableMeta
from cardan.system.system import System

ALIGNED: Final = 16  # bytes
INSTEAD: Final = "save a motion instead: m.move(times).save('page.html'), or use cardan view"
TRACED: Final = "cardan.geometry._traced._evaluate"
LARGE: Final = 1 << 31  # numbers in integer tables are smaller, and addresses are not


class Image(NamedTuple):
    """``data``: the block.  ``places``: offsets in it, by name.  ``addresses``: offsets of words that are offsets;
    ``floats``: of those that are floats.  ``functions``: offsets of words that are addresses of kernels, with the keys
    of these."""

    data: bytes
    places: dict[str, int]
    addresses: list[int]
    floats: list[int]
    functions: list[tuple[int, str]]


def of_session(session: Session) -> Image:
    """The image of a kinematic session whose joints are closed; ModelError if it cannot be moved to another machine."""
    keys = built.keys()
    if not keys:
        raise ModelError(
            "a page that can be dragged has kernels of the library, which are not built here: install the wheel of "
            "cardan, or run make kernels in a checkout, and do not set CARDAN_KERNELS=numba"
        )
    if session._contacts is not None:
        name = next(iter(session._drawing.contents.collisions))
        raise ModelError(f"collide {name!r}: a page without Python does not consider collisions yet; {INSTEAD}")
    walk = _Walk(keys)
    arrays = dict(zip(("table", "control", "q", "work"), session._arrays, strict=True))
    arrays |= {"poses": session._poses, "frames": session._frames, "origin": session._origin}
    walk.enter_functions(session._system.rated)
    table = session._table
    arrays |= {"hands": session._hand_floats, "events": table.events.as_floats}
    arrays |= {"floats": session._run.floats, "goals": session._goals}
    arrays |= {"first_v": table.first_v, "noise": table.noise}
    walk.enter(table.as_ints, type(table), table._kept)
    for array in arrays.values():
        walk.enter(array)
    for record in session._system._packed.records:
        if record.pair is not None:
            walk.enter_pair(record.pair)
    return walk.image(arrays, zeros=(session._run.work,))


class _Walk:
    """Collects the arrays that tables refer to."""

    def __init__(self, keys: dict[int, str]) -> None:
        self._keys = dict(keys)
        self._owners: dict[int, Any] = {}  # arrays that own their memory, by address, as they are found
        self._parts: dict[int, list[Any]] = {}  # of each: the arrays in it that are referred to
        self._declared: dict[int, int] = {}  # address of a word that is an address: what it is
        self._pairs: list[float] = []  # addresses of tables of contacts
        self._tapes: dict[int, int] = {}  # by what stands for a recorded function: the address of its tape

    def enter(self, array: Any, table: Any = None, kept: Any = None) -> None:
        """An array; table: the class of its first record, with the arrays that this keeps."""
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        self._owners.setdefault(address_of(owner), owner)
        self._parts.setdefault(address_of(owner), []).append(array)
        if table is None or not kept:
            return
        first = address_of(array)
        for name, field in table.fields.items():
            if name in kept:
                inner, more = kept[name] if isinstance(kept[name], tuple) else (kept[name], None)
                self._declared[first + 8 * field.first] = address_of(inner)
                refers = field.kind.refers
                if isinstance(refers, TableMeta) and refers._is_float:
                    inner = inner.view(np.float64)
                self.enter(inner, refers if isinstance(refers, TableMeta) else None, more)

    def enter_functions(self, system: System) -> None:
        """Recorded functions of the user: in place of their kernels, tapes that the library interprets."""
        for row in system.rows:
            primitive = row.primitive
            if primitive.code >= 0 or primitive.is_contact:
                continue
            if not primitive.is_traced:
                raise ModelError(f"{row.constraint!r} is a function by hand, which a page does not have; {INSTEAD}")
            for suffix, word in (("", kernels.address), ("_curvature", kernels.curvature_address)):
                at = tape.address(primitive.text, f"primitive{suffix}") - RECORDED
                self._tapes[word(primitive)] = self._enter_tape(at)

    def _enter_tape(self, address: int) -> int:
        made = tape.at(address)
        self.enter(made.as_ints, Tape, made._kept)
        return address

    def enter_pair(self, pair: Any) -> None:
        """The table of a contact; the one that a session follows is another one than that of an assembly."""
        if not isinstance(pair, Pair):
            raise ModelError(f"a closest pair of your own is a function of Python; {INSTEAD}")
        for one in (pair, pair.followed()):
            table = one.table
            self._pairs.append(one.address)
            self.enter(table.as_ints, PairTable, table._kept)
            for record, shape in zip(one.shape_records, one.closed, strict=True):
                self.enter(record.as_ints[: PairShape.size], PairShape, record._kept)
                if isinstance(shape, Traced):  # its tape is interpreted, as where nothing compiles
                    self._keys[shape.address] = TRACED
                    self._declared[address_of(shape.ints) + 8 * (shape.ints.size - 1)] = self._enter_tape(shape.tape)

    def image(self, arrays: dict[str, Any], zeros: tuple[Any, ...]) -> Image:
        """All arrays one after the other, in the order in which they were found."""
        starts = sorted(self._owners)
        offsets: dict[int, int] = {}
        size = ALIGNED  # zero is no address
        for address, owner in self._owners.items():
            offsets[address] = size
            size += -(-owner.nbytes // ALIGNED) * ALIGNED

        def moved(address: int) -> int:
            owner = starts[bisect.bisect_right(starts, address) - 1]
            return offsets[owner] + address - owner

        data = np.zeros(size // 8, dtype=np.int64)
        functions: dict[int, str] = {}
        addresses: set[int] = set()
        floats: set[int] = set()
        pairs = np.array(self._pairs)
        skipped = {id(array) for array in zeros}
        for array in (array for parts in self._parts.values() for array in parts if id(array) not in skipped):
            first = address_of(array)
            words = np.ascontiguousarray(array).reshape(-1).view(np.int64).copy()
            if array.dtype == np.int64:
                declared = (np.array([*self._declared], dtype=np.int64) - first) // 8
                inside = declared[(declared >= 0) & (declared < words.size)]
                for k in np.union1d(np.flatnonzero(np.abs(words) >= LARGE), inside).tolist():
                    place, word = moved(first + 8 * k), int(words[k])
                    if first + 8 * k in self._declared:
                        words[k] = moved(self._declared[first + 8 * k])
                        addresses.add(place)
                    elif word in self._tapes:
                        words[k] = RECORDED + moved(self._tapes[word])
                        addresses.add(place)
                    else:
                        functions[place] = self._key(word)
                        words[k] = 0
            elif pairs.size and array.dtype == np.float64:
                values = words.view(np.float64)
                for k in np.flatnonzero(np.isin(values, pairs)).tolist():
                    floats.add(moved(first + 8 * k))
                    values[k] = moved(int(values[k]))
            at = moved(first) // 8
            data[at : at + words.size] = words
        places = {name: moved(address_of(array)) for name, array in arrays.items()}
        return Image(data.tobytes(), places, sorted(addresses), sorted(floats), sorted(functions.items()))

    def _key(self, address: int) -> str:
        """The key of a kernel; ModelError if a page does not have it."""
        found = self._keys.get(address)
        if found is None:
            raise ModelError(f"a page without Python has no functions of your own; {INSTEAD}")
        return found


def layout() -> dict[str, dict[str, int]]:
    """Offsets of the fields that the page reads and writes, in words, and the size of their records."""
    chosen: dict[str, type[Table]] = {"hand": tables.Hand, "control": tables.Control, "event": tables.Event}
    return {
        name: {**{field.name: field.first for field in table.fields.values()}, "": table.size}
        for name, table in chosen.items()
    }
