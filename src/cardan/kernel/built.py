"""Kernels that were compiled when the library was built: a shared library beside this file, and its table.

``library.json`` names the kernels of ``library.abi3.so`` with their signatures, and the sources that they were made of.
Both are as trusted as the ``.py`` files beside them, with which they were installed.  Machine code is used only if

* both files have the checksums that were written with them,
* they were made for this system, and the processor has the instructions that they use,
* a kernel's own sources, and all that its machine code depends on, are those that were compiled.

What does not hold is said once in the log, and Numba compiles what is missing (:mod:`cardan.kernel.jit`).
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import platform
import sys
from collections.abc import Callable
from importlib import machinery, util
from pathlib import Path
from typing import Any, Final

from cardan.kernel.dual import Late
from cardan.kernel.sources import PACKAGE, Sources

log = logging.getLogger("cardan")

CHOICE: Final = os.environ.get("CARDAN_KERNELS", "").strip().lower()  # numba, built, or empty: built where possible
if CHOICE not in ("", "numba", "built"):
    raise ImportError(f"CARDAN_KERNELS is {CHOICE!r}; it must be 'numba' or 'built', or not be set", name=__package__)

FORMAT: Final = 2
NAME: Final = "cardan.kernel.library"
TABLE: Final = Path(__file__).with_name("library.json")
WEBASSEMBLY: Final = Path(__file__).with_name("library.wasm.zip")  # the kernels that are called by address, for pages

made: dict[Any, Late] = {}  # kernels of the library, with their functions, which Numba compiles for other kernels


def suffix() -> str:
    """How the file of a module of the stable ABI ends on this system."""
    return ".pyd" if sys.platform == "win32" else ".abi3.so"


def system() -> str:
    """The system and processor of this process, such as linux-x86_64."""
    return f"{sys.platform}-{platform.machine().lower()}"


def checksum(data: bytes) -> str:
    """Of a file."""
    return hashlib.sha256(data).hexdigest()


class Refused(Exception):
    """Machine code that is not used; the message says why."""


class Missing(Refused):
    """There is none: nothing is wrong."""


class Library:
    """A library and its table, loaded and checked; else Refused."""

    def __init__(self, table: Path) -> None:
        try:
            first, _, text = table.read_bytes().partition(b"\n")
            found = table.with_name(table.stem + suffix())
            code = found.read_bytes()
        except FileNotFoundError as error:
            raise Missing("none is built") from error
        except OSError as error:
            raise Refused(f"it cannot be read: {error}") from error
        if first != checksum(text).encode():
            raise Refused(f"{table.name} is damaged")
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise Refused(f"{table.name} has format {content['format']}, not {FORMAT}")
        if content["system"] != system():
            raise Refused(f"it was built for {content['system']}; this is {system()}")
        if checksum(code) != content["checksum"]:
            raise Refused(f"{found.name} is damaged, or was not built with {table.name}")
        lacking = [name for name in content["features"] if not has_feature(name)]
        if lacking:
            raise Refused(f"the processor lacks {', '.join(lacking)}")
        self._module = _loaded(found, content["checksum"])
        self._kernels: dict[str, list[Any]] = content["kernels"]
        self._sources: dict[str, list[str]] = content["sources"]
        self._python: str = content["python"]
        self._needs: dict[str, list[str]] = content["needs"]
        self._stale: dict[str, str] = {}

    def entry(self, function: Callable[..., Any]) -> list[Any] | str:
        """Number, name and signature of a kernel of this function; or why there is none."""
        module, name = function.__module__, f"{function.__module__}.{function.__qualname__}"
        found = self._kernels.get(name)
        if found is None or function.__code__.co_filename != str(PACKAGE / self._sources[module][0]):
            return "it is not among those that were built"
        if module not in self._stale:
            changed = [needed for needed in self._needs[module] if not self._is_unchanged(needed)]
            self._stale[module] = ", ".join(changed)
            if changed and CHOICE != "built":
                log.info("kernels of %s are compiled by Numba: changed since the build: %s", module, ", ".join(changed))
        changed_ones = self._stale[module]
        return f"changed since the build: {changed_ones}" if changed_ones else [found[0], name, *found[1:]]

    def is_current(self, module: str) -> bool:
        """Whether the kernels of a module are those of its sources."""
        return all(map(self._is_unchanged, self._needs.get(module, [""])))

    @functools.cache  # noqa: B019  # there is one library
    def _is_unchanged(self, module: str) -> bool:
        """Whether a module computes what it computed when it was compiled."""
        if module not in self._sources:
            return False
        path, whole, text = self._sources[module]
        try:
            if checksum((PACKAGE / path).read_bytes()) == whole:
                return True
            return self._python == version() and Sources(PACKAGE, None).digest_of(module) == text  # a comment
        except (OSError, SyntaxError):
            return False

    def kernel(self, entry: list[Any]) -> Any:
        """A function that Python calls."""
        return self._module.kernel(*entry)

    def address(self, entry: list[Any]) -> int:
        """The address of a C function."""
        return int(self._module.address(entry[0]))

    def keys(self) -> dict[int, str]:
        """Names of the C functions, by their addresses."""
        return {self.address([entry[0]]): name for name, entry in self._kernels.items() if len(entry) == 1}

    def keep(self, error: BaseException) -> None:
        """Raise an exception when the kernel that this thread has called returns to Python, unless one is kept."""
        self._module.keep(error)

    def is_kept(self) -> bool:
        """Whether an exception is kept in this thread."""
        return bool(self._module.is_kept())


def version() -> str:
    """Of Python: texts of trees of syntax differ between versions."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def _loaded(path: Path, expected: str) -> Any:
    """The extension module in a file.

    expected: its checksum, compared once more, since a build may replace the file after the first comparison.
    """
    if path.suffix == ".so" and suffix() not in machinery.EXTENSION_SUFFIXES:
        raise Refused("this Python does not load modules of the stable ABI")
    spec = util.spec_from_file_location(NAME, path)
    assert spec is not None and spec.loader is not None
    try:
        module = util.module_from_spec(spec)
        spec.loader.exec_module(module)
        is_expected = checksum(path.read_bytes()) == expected
    except (ImportError, OSError) as error:  # of another system, of a newer C library, or removed
        raise Refused(str(error)) from error
    if not is_expected:
        raise Refused(f"{path.name} was replaced while it was loaded")
    return module


def has_feature(name: str) -> bool:
    """Whether the processor has instructions such as AVX2, by NumPy's name; NPY_DISABLE_CPU_FEATURES is respected."""
    import numpy as np

    core = getattr(np, "_core", None) or np.core  # NumPy 1 has the latter
    known = core._multiarray_umath.__cpu_features__
    level = {"AVX2": "X86_V3", "FMA3": "X86_V3"}.get(name)  # NumPy from 2.4 on disables only levels
    return bool(known.get(name)) and bool(known.get(level, True))


@functools.cache
def _library() -> Library | str:
    """The library of this process, or why there is none, which is said once."""
    if CHOICE == "numba":
        return "CARDAN_KERNELS=numba"
    try:
        return Library(TABLE)
    except Refused as error:
        if CHOICE == "built":
            text = f"CARDAN_KERNELS=built, and the library of kernels is not used: {error}"
            raise ImportError(text, name=__package__) from error
        level = logging.INFO if isinstance(error, Missing) else logging.WARNING
        log.log(level, "kernels are compiled by Numba: the library of kernels is not used: %s", error)
        return str(error)


def is_current(modules: list[str]) -> bool:
    """Whether there is a library in which the kernels of these modules are those of their sources."""
    try:
        library = Library(TABLE)
    except Refused:
        return False
    return all(map(library.is_current, modules))


def is_ours(function: Callable[..., Any]) -> bool:
    """Whether a function belongs to the package."""
    return (function.__module__ or "").startswith("cardan.")


def is_used_for(function: Callable[..., Any]) -> bool:
    """Whether a function may be in the library: it belongs to the package, and there is a library."""
    return is_ours(function) and isinstance(_library(), Library)


def why_not(function: Callable[..., Any]) -> str:
    """Why a function is not taken from the library."""
    library = _library()
    found = library.entry(function) if isinstance(library, Library) else library
    return found if isinstance(found, str) else "a kernel that is compiled calls it"


def kernel(function: Callable[..., Any], make: Callable[[], Any]) -> Any:
    """A kernel of the library, or one that Numba compiles when it is first called; :func:`is_used_for` holds."""
    library = _library()
    assert isinstance(library, Library)
    entry, late = library.entry(function), Late(function, make)
    if isinstance(entry, str):
        return late
    found = library.kernel(entry)
    made[found] = late
    return found


def keep(error: BaseException) -> None:
    """Raise an exception of a function that a kernel of the library has called, when the kernel returns to Python."""
    library = _library()
    assert isinstance(library, Library)
    library.keep(error)


def guarded(function: Callable[..., int]) -> Callable[..., int]:
    """A function of Python for calls by kernels of the library, which raise its exceptions (:func:`keep`).

    After an exception it is not called again until the kernel returns: what it would compute does not matter.  Without
    a library it is the function itself.
    """
    library = _library()
    if not isinstance(library, Library):
        return function

    def call(*arguments: Any) -> int:
        try:
            return 0 if library.is_kept() else function(*arguments)
        except BaseException as error:  # Ctrl-C too
            library.keep(error)
            return 0

    return call


def address(function: Callable[..., Any]) -> int:
    """The address of a C function of the library; 0 if it is not there."""
    library = _library() if is_ours(function) else ""
    if not isinstance(library, Library):
        return 0
    entry = library.entry(function)
    return 0 if isinstance(entry, str) else library.address(entry)


@functools.cache
def keys() -> dict[int, str]:
    """Names of the C functions of the library, by their addresses; none if it is not used."""
    library = _library()
    return library.keys() if isinstance(library, Library) else {}
