"""A folder of a study: ``study.json`` says what it is, and each finished part is a file ``part-000012.parquet``.

A part is finished or absent: it is written under another name, flushed and renamed (:mod:`cardan.system.atomic`).  Each
has the digests of the model, the values, the outputs and the version of the library, and so has the folder.  A client
that works on a part holds a lock on ``part-000012.claim``, which ends with its process, however that ends.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from cardan.errors import ModelError
from cardan.study.task import Columns, as_json
from cardan.system import atomic
from cardan.system.state import FloatArray

try:
    import fcntl
except ImportError:  # Windows: two clients then may compute the same part, with the same result
    fcntl = None  # type: ignore[assignment]  # a module is no optional type

FORMAT: Final = 1
ABOUT: Final = "study.json"
DIGITS: Final = 6
KEY: Final = b"cardan"  # of the digests in a part
RUN, STATUS, REASON, NOTES = "run", "status", "reason", "notes"
OWN: Final = (RUN, STATUS, REASON, NOTES)
_PART: Final = re.compile(r"part-(\d{6,})\.parquet")
WHAT: Final = {
    "model": "another model, or other values of its parameters",
    "values": "other values of parameters",
    "outputs": "other outputs",
    "task": "another duration, other times, options or another start",
    "version": "another version of the library",
}


class Memory:
    """Parts that are kept in this process."""

    def __init__(self) -> None:
        self._parts: dict[int, Columns] = {}
        self.place = ""

    def open(self, about: dict[str, Any], size: int) -> int:
        """Begin or continue with parts of ``size`` runs; returns that of an earlier call."""
        self.size = getattr(self, "size", size)
        return self.size

    def finished(self) -> set[int]:
        """Numbers of the parts that are there."""
        return set(self._parts)

    def put(self, number: int, first: int, values: Mapping[str, FloatArray], columns: Columns) -> None:
        """Keep a part."""
        self._parts[number] = columns

    def get(self, number: int) -> Columns:
        """A part."""
        return self._parts[number]

    def claim(self, number: int) -> bool:
        """Whether this client may compute a part."""
        return True

    def release(self, number: int) -> None:
        """End a claim."""


class Folder:
    """Parts in a folder of files.  shapes: of one run, of outputs that are no single numbers."""

    def __init__(self, path: Any) -> None:
        self.path = Path(path)
        self.place = str(self.path)
        self.about: dict[str, Any] = {}
        self._claims: dict[int, int] = {}
        parquet()

    def open(self, about: dict[str, Any], size: int) -> int:
        """Begin a study here, or continue it: returns the size of its parts.  ModelError if it is another study."""
        file = self.path / ABOUT
        wanted = {**about, "format": FORMAT, "size": size}
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with self._locked():
                if not file.exists():
                    self._check_empty()
                    atomic.write(file, f"{as_json(wanted)}\n".encode())
                found = json.loads(file.read_text())
        except OSError as error:
            raise ModelError(f"the folder {self.place!r} cannot be used: {error.strerror or error}") from None
        except ValueError:
            raise ModelError(f"{str(file)!r} is damaged; remove the folder, or give another path=") from None
        self._check_same(found, wanted)
        self.about = found
        return int(found["size"])

    def _check_empty(self) -> None:
        if any(_PART.fullmatch(entry.name) for entry in os.scandir(self.path)):
            raise ModelError(f"the folder {self.place!r} has parts of a study without {ABOUT}; give another path=")

    def _check_same(self, found: Any, wanted: dict[str, Any]) -> None:
        if not isinstance(found, dict) or found.get("format") != FORMAT or "size" not in found:
            raise ModelError(f"the folder {self.place!r} has no study of this format; give another path=")
        own, others = wanted["digests"], found.get("digests", {})
        differ = [text for word, text in WHAT.items() if own[word] != others.get(word)]
        if differ:
            done = len(self.finished())
            raise ModelError(
                f"the folder {self.place!r} has a study of {found.get('name')!r}, with {done} finished parts, of "
                f"{'; '.join(differ)}; give another path=, or remove the folder"
            )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One client at a time writes what the folder is."""
        if fcntl is None:
            yield
            return
        handle = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _file(self, number: int, suffix: str = "parquet") -> Path:
        return self.path / f"part-{number:0{DIGITS}d}.{suffix}"

    def finished(self) -> set[int]:
        """Numbers of the parts that are there."""
        with os.scandir(self.path) as entries:
            return {int(found[1]) for one in entries if (found := _PART.fullmatch(one.name))}

    def put(self, number: int, first: int, values: Mapping[str, FloatArray], columns: Columns) -> None:
        """Write a part, at once."""
        atomic.write(self._file(number), to_parquet(first, values, columns, self._key(number)))

    def _key(self, number: int) -> str:
        return as_json({**self.about["digests"], "part": number})

    def get(self, number: int) -> Columns:
        """Read a part; ModelError if it is damaged, or of another study."""
        file = self._file(number)
        try:
            found, key = from_parquet(file.read_bytes(), self.about["shapes"])
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(
                f"the part {str(file)!r} is damaged ({error}); remove it, and run the study again"
            ) from None
        if key != self._key(number):
            raise ModelError(f"the part {str(file)!r} is of another study; remove it, and run the study again")
        return found

    def claim(self, number: int) -> bool:
        """Whether this client may compute a part: no other does."""
        if fcntl is None or number in self._claims:
            return True
        path = self._file(number, "claim")
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        except OSError as error:
            raise ModelError(f"the folder {self.place!r} cannot be written: {error.strerror or error}") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                self._claims[number] = handle
                return True
        except (BlockingIOError, FileNotFoundError):  # of another client, or removed by one that has finished it
            pass
        except OSError:  # the file system has no locks
            self._claims[number] = handle
            return True
        os.close(handle)
        return False

    def release(self, number: int) -> None:
        """End a claim."""
        handle = self._claims.pop(number, None)
        if handle is not None:
            with contextlib.suppress(OSError):
                self._file(number, "claim").unlink()
            os.close(handle)


# -- Parquet -----------------------------------------------------------------------------------------------------------


def parquet() -> Any:
    """The modules of pyarrow; ModelError if it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ModelError("a folder of a study needs pyarrow; install it with: pip install 'cardan[study]'") from None
    return pyarrow


def to_parquet(first: int, values: Mapping[str, FloatArray], columns: Columns, key: str) -> bytes:
    """The bytes of a part, whose first run has the number ``first``."""
    arrow = parquet()
    count = len(columns.status)
    table: dict[str, Any] = {RUN: arrow.array(np.arange(first, first + count))}
    table |= {f"values/{name}": arrow.array(own) for name, own in values.items()}
    for label, array in columns.outputs.items():
        flat = np.ascontiguousarray(array).reshape(count, -1)
        one = arrow.array(flat.ravel())
        table[f"outputs/{label}"] = one if array.ndim == 1 else arrow.FixedSizeListArray.from_arrays(one, flat.shape[1])
    table[STATUS] = arrow.array(columns.status.tolist(), arrow.string())
    table[REASON] = arrow.array(columns.reason, arrow.string())
    table[NOTES] = arrow.array([list(own) for own in columns.notes], arrow.list_(arrow.string()))
    made = arrow.table(table).replace_schema_metadata({KEY: key.encode()})
    sink = io.BytesIO()
    arrow.parquet.write_table(made, sink)
    return sink.getvalue()


def from_parquet(data: bytes, shapes: Mapping[str, Any]) -> tuple[Columns, str]:
    """A part, and its key.  shapes: of outputs that are no single numbers."""
    arrow = parquet()
    try:
        table = arrow.parquet.read_table(io.BytesIO(data))
    except arrow.ArrowException as error:
        raise ValueError(str(error)) from None
    outputs = {}
    for name in table.column_names:
        word, slash, label = name.partition("/")
        if slash and word == "outputs":
            column = table.column(name).combine_chunks()
            numbers = column.flatten() if hasattr(column, "flatten") and label in shapes else column
            array: FloatArray = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
            outputs[label] = array.reshape(table.num_rows, *shapes.get(label, ()))
    status = np.array(table.column(STATUS).to_pylist(), dtype="U24")
    notes = [tuple(own) for own in table.column(NOTES).to_pylist()]
    return Columns(outputs, status, table.column(REASON).to_pylist(), notes), table.schema.metadata[KEY].decode()
