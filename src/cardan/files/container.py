"""Files of saved results: one JSON document, and arrays beside it in ``.npz``, or within it in ``.json``.

Nothing in a file is executed or unpickled.  Sizes are checked before memory is taken: arrays of a ``.npz`` are stored
without compression, so that they cannot be larger than the file.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from cardan import contents
from cardan.errors import ModelError
from cardan.files.problems import FileError, Problem
from cardan.system.saving import SUFFIXES

DOCUMENT: Final = "document"  # the member of a .npz with the JSON document
MOST_BYTES: Final = {".npz": 8_000_000_000, ".json": 500_000_000}  # of a file
MOST_ARRAYS: Final = 10_000
MOST_AXES: Final = 4
DTYPES: Final = ("<f8", "<i8", "|b1", "<c16", "|u1")  # of arrays, and texts of a fixed length
LONGEST_TEXT: Final = 200  # characters of the texts of an array

_TEXT: Final = re.compile(r"<U(\d{1,3})")

Arrays = Mapping[str, NDArray[Any]]


def write(suffix: str, document: Mapping[str, Any], arrays: Arrays) -> bytes:
    """The bytes of a file."""
    if suffix == ".json":
        text = json.dumps({**document, "arrays": {k: _listed(a) for k, a in arrays.items()}}, allow_nan=False)
        return text.encode()
    made = io.BytesIO()
    told = np.frombuffer(json.dumps(document, allow_nan=False).encode(), dtype=np.uint8)
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as file:
        for name, array in ((DOCUMENT, told), *arrays.items()):
            part = io.BytesIO()
            npy.write_array(part, np.ascontiguousarray(array), allow_pickle=False)
            file.writestr(
                zipfile.ZipInfo(f"{name}.npy"), part.getvalue()
            )  # without the date: equal results, equal files
    return made.getvalue()


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The document and the arrays of a file; FileError if it is none of ours, damaged, or too large."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ModelError(f"the file is {str(path)!r}; its name must end in {', '.join(SUFFIXES)}")
    if suffix == ".json":
        return _of_json(path, contents.read(path, MOST_BYTES[suffix]))
    with contents.opened(path, MOST_BYTES[suffix]) as file:
        return _of_npz(path, file)


def fail(path: Any, message: str) -> NoReturn:
    """Raise a FileError."""
    raise FileError(str(path), [Problem(0, "", message)]) from None


def _of_json(path: Any, data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    document = _document(path, data)
    listed = document.pop("arrays", {})
    if not isinstance(listed, dict) or len(listed) > MOST_ARRAYS:
        fail(path, "its arrays are not a table; it is not a saved result, or it is damaged")
    return document, {name: _array(path, name, value) for name, value in listed.items()}


def _document(path: Any, data: bytes) -> dict[str, Any]:
    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is not a number of JSON")

    try:
        found = json.loads(data.decode(), parse_constant=refuse)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        fail(path, f"it is damaged or no saved result: {str(error)[:120] or 'it is nested too deeply'}")
    if not isinstance(found, dict):
        fail(path, "it is no saved result: it must be a JSON object")
    return found


def _listed(array: NDArray[Any]) -> dict[str, Any]:
    """An array as plain values; numbers that are not finite as words."""
    if array.dtype.kind == "c":
        parts = np.stack([array.real, array.imag], axis=-1)
        return {**_listed(parts), "dtype": "<c16", "shape": list(array.shape)}
    values = array.ravel().tolist()
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        values = [value if math.isfinite(value) else repr(value) for value in values]
    return {"dtype": array.dtype.str, "shape": list(array.shape), "values": values}


def _array(path: Any, name: str, told: Any) -> NDArray[Any]:
    try:
        dtype, shape, values = told["dtype"], tuple(told["shape"]), told["values"]
        if not isinstance(values, list) or len(shape) > MOST_AXES or any(type(n) is not int or n < 0 for n in shape):
            raise ValueError("its shape or its values are not lists of numbers")
        if isinstance(dtype, str) and (width := _TEXT.fullmatch(dtype)) is not None:
            most = int(width[1])
            if most > LONGEST_TEXT or any(not isinstance(value, str) or len(value) > most for value in values):
                raise ValueError("its values are not short texts")
            return np.array(values, dtype=dtype).reshape(shape)
        if dtype not in DTYPES:
            raise ValueError(f"its dtype is {dtype!r:.40}")
        if any(type(value) not in _VALUES[dtype] for value in values):
            raise ValueError(f"its values are not all of the dtype {dtype}")
        if dtype == "<c16":
            pairs = np.array(values, dtype=np.float64).reshape(*shape, 2)
            return np.ascontiguousarray(pairs).view(np.complex128)[..., 0]
        return np.array([float(v) if type(v) is str else v for v in values], dtype=dtype).reshape(shape)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        fail(path, f"its array {name!r:.40} is damaged: {str(error)[:120]}")


_VALUES: Final = {
    **dict.fromkeys(("<f8", "<c16"), (float, int, str)),
    **dict.fromkeys(("<i8", "|u1"), (int,)),
    "|b1": (bool,),
}


def _of_npz(path: Any, source: BinaryIO) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    try:
        size = source.seek(0, io.SEEK_END)
        with zipfile.ZipFile(source) as file:
            members = file.infolist()
            if len(members) > MOST_ARRAYS:
                fail(path, f"it has {len(members):,} arrays; at most {MOST_ARRAYS:,} are read")
            names = [member.filename for member in members]
            if len(set(names)) < len(names) or not all(name.endswith(".npy") for name in names):
                fail(path, "it is no saved result: its members must be arrays of different names")
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                fail(path, "its arrays are compressed; a saved result is stored without compression: save it again")
            if sum(member.file_size for member in members) > size:
                fail(path, "its arrays claim to be larger than the file: it is damaged")
            found = {
                name.removesuffix(".npy"): _member(file, member) for name, member in zip(names, members, strict=True)
            }
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        fail(path, f"it is damaged or no saved result: {str(error)[:120]}")
    document = found.pop(DOCUMENT, None)
    if document is None or document.dtype != np.uint8:
        fail(path, f"it is no saved result: it has no member {DOCUMENT!r}")
    return _document(path, document.tobytes()), found


def _member(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array.  Its shape is compared with the bytes that are there before anything is made of it."""
    data = file.read(member)  # checks the CRC
    stream = io.BytesIO(data)
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"the array {member.filename!r:.40} has the format {version}")
    shape, by_columns, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(stream)
    if dtype.str not in DTYPES and not (dtype.kind == "U" and dtype.itemsize <= 4 * LONGEST_TEXT):
        raise ValueError(f"the array {member.filename!r:.40} has the dtype {dtype.str!r:.40}")
    first = stream.tell()
    if by_columns or len(shape) > MOST_AXES or math.prod(shape) * dtype.itemsize != len(data) - first:
        raise ValueError(f"the array {member.filename!r:.40} has not as many numbers as its shape {shape}")
    return np.frombuffer(data, dtype=dtype, offset=first).reshape(shape).copy()
