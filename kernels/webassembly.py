"""WebAssembly modules of the kernels that a page runs: each is the object of one kernel, with an export.

LLVM writes an object for wasm32 whose indices of functions and types are final, since it has no data and one kernel
with what it calls inlined or beside it: only the export of the kernel is missing.  The module imports its memory, the
table of functions, the pointer of its stack, and functions of libm.  Kernels call each other through the table, by
addresses in tables, so that a page needs only the modules of its mechanism.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernels.build import Entry

TARGET = "wasm32"
# what sessions call
SESSIONS = tuple(
    f"cardan.{name}."
    for name in (
        "constraints._generated",
        "constraints._tape",
        "coordinates._manifold",
        "coordinates._tracking",
        "dynamics._dual",
        "dynamics._instant",
        "dynamics._kkt",
        "dynamics._stops",
        "geometry._bicubic",
        "geometry._closed_forms",
        "geometry._curve",
        "geometry._on_surface",
        "geometry._tensor",
        "geometry._traced",
        "interact._hands",
        "interact._kinematic",
        "joints._contact",
        "joints._pair_solver",
        "joints._path",
        "system._formulas",
    )
)
MAGIC = b"\0asm\1\0\0\0"
CUSTOM, IMPORTS, EXPORTS, ELEMENTS, CODE, DATA = 0, 2, 7, 9, 10, 11  # kinds of sections
SYMBOLS = 8  # a part of the section "linking"
FUNCTION, TABLE, MEMORY, GLOBAL = range(4)  # kinds of imports and exports; FUNCTION also of symbols
UNDEFINED, NAMED = 0x10, 0x40  # flags of a symbol
DATE = (1980, 1, 1, 0, 0, 0)  # of all files: equal kernels make equal archives


def write(path: Path, entries: Sequence[Entry], objects: Path) -> None:
    """An archive of the modules of the kernels that a session calls by address, by their keys."""
    with zipfile.ZipFile(path, "w") as archive:
        for entry in sorted(entries, key=lambda one: one.key):
            if entry.kind == "address" and entry.key.startswith(SESSIONS):
                data = module((objects / f"{entry.symbol}.o").read_bytes(), entry.symbol)
                archive.writestr(zipfile.ZipInfo(entry.key, DATE), data, zipfile.ZIP_DEFLATED, 9)


def module(data: bytes, symbol: str) -> bytes:
    """The module of an object that has one kernel; it exports the kernel as "run"."""
    parts = list(sections(data))
    (linking,) = (body for kind, body in parts if kind == CUSTOM and body[1:8] == b"linking")
    export = number_as_bytes(1) + b"\3run" + bytes([FUNCTION]) + number_as_bytes(_functions(linking)[symbol])
    out = bytearray(MAGIC)
    for kind, body in parts:
        if kind in (ELEMENTS, DATA):
            raise ValueError(f"the object of {symbol} has data or elements, which need a linker")
        if kind == CODE:
            out += bytes([EXPORTS]) + number_as_bytes(len(export)) + export
        if kind != CUSTOM:
            out += bytes([kind]) + number_as_bytes(len(body)) + body
    return bytes(out)


def imports(data: bytes) -> list[str]:
    """Names of what a module imports."""
    found = []
    for kind, body in sections(data):
        if kind != IMPORTS:
            continue
        count, at = number(body, 0)
        for _ in range(count):
            _, at = _text(body, at)
            name, at = _text(body, at)
            found.append(name)
            what, at = body[at], at + 1
            if what == FUNCTION:  # its type
                _, at = number(body, at)
            elif what == GLOBAL:  # its type, and whether it changes
                at += 2
            else:  # a table has a type before its limits, a memory has limits
                flags, at = number(body, at + (what == TABLE))
                for _ in range(1 + (flags & 1)):
                    _, at = number(body, at)
    return found


def exports(data: bytes) -> list[str]:
    """Names of what a module exports."""
    found = []
    for kind, body in sections(data):
        if kind == EXPORTS:
            count, at = number(body, 0)
            for _ in range(count):
                name, at = _text(body, at)
                _, at = number(body, at + 1)
                found.append(name)
    return found


def sections(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and content of each section of a module or an object."""
    at = len(MAGIC)
    while at < len(data):
        kind = data[at]
        size, at = number(data, at + 1)
        yield kind, data[at : at + size]
        at += size


def number(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def number_as_bytes(value: int) -> bytes:
    """The unsigned LEB128 form of a number."""
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def _text(data: bytes, at: int) -> tuple[str, int]:
    size, at = number(data, at)
    return data[at : at + size].decode(), at + size


def _functions(linking: bytes) -> dict[str, int]:
    """Indices of the functions that an object defines, from its table of symbols."""
    _, at = _text(linking, 0)
    version, at = number(linking, at)
    if version != 2:
        raise ValueError(f"the object has symbols of version {version}, not 2")
    found = {}
    while at < len(linking):
        kind = linking[at]
        size, at = number(linking, at + 1)
        end = at + size
        if kind == SYMBOLS:
            count, at = number(linking, at)
            for _ in range(count):
                what = linking[at]
                flags, at = number(linking, at + 1)
                if what == 1:
                    raise ValueError("the object has data, which needs a linker")
                index, at = number(linking, at)
                if not flags & UNDEFINED or flags & NAMED:
                    name, at = _text(linking, at)
                    if what == FUNCTION and not flags & UNDEFINED:
                        found[name] = index
        at = end
    return found
