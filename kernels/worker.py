"""A process that makes objects of one module of kernels after the other, on request of :mod:`kernels.build`.

A request is a line of JSON: module, digest of its sources, its file of IR, folders by target.  The answer is a line of
JSON: the entries of the module, or an error.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import traceback
from pathlib import Path
from typing import Any

from cardan.kernel.sources import PACKAGE, Sources
from kernels import emit

SOURCES = Sources(PACKAGE, None)


def ir_of(module: str, sources: str, path: Path) -> list[Any]:
    """The IR of a module, which is captured unless the file exists; sources: their digest, which is in its name."""
    if not path.is_file():
        from kernels.capture import capture  # loads Numba

        made = [(one.key, one.kind, one.arguments, one.result, one.native, one.bitcode) for one in capture(module)]
        if SOURCES.digest(module) != sources:
            raise ValueError("its sources were changed during the build; build again")
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, pickle.dumps(made))
    found: list[Any] = pickle.loads(path.read_bytes())
    return found


def write(path: Path, data: bytes) -> None:
    """Write a file, which appears complete."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)


def answer(module: str, sources: str, ir: str, folders: dict[str, str]) -> list[list[Any]]:
    """Write the objects of a module; returns its entries."""
    entries = []
    for key, kind, arguments, result, native, bitcode in ir_of(module, sources, Path(ir)):
        symbol = emit.symbol_of(key)
        for name, folder in folders.items():
            data = emit.emit(emit.TARGETS[name], key, kind, arguments, native, bitcode)
            write(Path(folder) / f"{symbol}.o", data)
        entries.append([key, symbol, kind, arguments, result])
    return entries


def main() -> None:
    """Answer requests until the input ends."""
    replies = os.fdopen(os.dup(1), "w")  # what libraries print must not be taken for an answer
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            reply: dict[str, Any] = {"entries": answer(*json.loads(line))}
        except Exception as error:  # reported by the process that asked
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
