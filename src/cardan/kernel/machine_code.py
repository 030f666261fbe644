"""Machine code that Numba compiles, kept on disk.

Every file of machine code has a checksum and its key.  A file that cannot be read is ignored, and the kernel is
compiled again.  Of several processes that need the same kernel at the same time, one compiles it and the others wait
for it.  Everything runs without a cache if there is no directory (:mod:`cardan.kernel.cache`), or if the private parts
of Numba that the cache needs are missing.  docs/kernels.md lists these parts, and
tests/kernel/test_numba_parts.py tests them.

Numba's own key covers only the file of a function, so after an edit in an imported file it would load outdated code.
Here the directory of a kernel is named after its module and its digest (:mod:`cardan.kernel.sources`): two copies of
the library with equal sources share their machine code.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import logging
import os
import pickle
import shutil
import sys
import sysconfig
import tempfile
import time
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numba

from cardan.kernel import announce, cache
from cardan.kernel.compiler_lock import HEAD_START, SECONDS, SECONDS_OF_USERS, OneCompiler
from cardan.kernel.sources import PACKAGE, Edited

log = logging.getLogger("cardan")

try:  # private, needed only for the cache
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
    from numba.core.serialize import dumps
except ImportError:
    CompileResultCacheImpl = FunctionCache = NullCache = dumps = object  # then :func:`cache_of` logs a warning

MOST_VERSIONS = 8  # of the machine code of one module that are kept

if cache.failure is not None:
    log.warning("kernels are not cached and are compiled in every process: %s", cache.failure)


@functools.cache
def load_compiler() -> None:
    """Load the part of Numba that asks at its import whether SciPy has BLAS, without importing SciPy for this.

    Numba loads that part with the first kernel that it compiles, and scipy.linalg would take as long as the rest of
    Numba.  A kernel that uses BLAS imports it when it is compiled.  Call this before anything is compiled; a process
    that finds all its kernels in the cache does not need it.
    """
    from numba.np import linalg

    ask = getattr(linalg, "ensure_blas", None)
    if ask is None:
        return
    linalg.ensure_blas = lambda: None
    try:
        import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = ask


class _Entries:
    """Files of machine code of one function, each under the digest of its key: signature, processor, code, versions.

    A file contains a checksum, its key and the code.  Damaged code, and code of another key under this name, could
    crash or compute wrong results; it is not executed.  There is no index that could refer to a wrong file.
    """

    def __init__(self, directory: str, name: str, stamp: Any) -> None:
        self._directory, self._name, self._stamp = Path(directory), name, stamp

    def _key(self, key: Any) -> bytes:
        return repr((self._name, self._stamp, numba.__version__, key)).encode()

    def path(self, key: Any) -> Path:
        """Where the code of a key is."""
        return self._directory / f"{self._name}.{hashlib.sha256(self._key(key)).hexdigest()[:16]}.nbc"

    def save(self, key: Any, data: Any) -> None:
        """Write code: the file appears complete."""
        path, named, code = self.path(key), self._key(key), dumps(data)
        handle, temporary = tempfile.mkstemp(dir=self._directory, prefix=f"{path.name}.", suffix=".tmp")
        try:
            with open(handle, "wb") as file:
                checked = len(named).to_bytes(4, "big") + named + code
                file.write(zlib.crc32(checked).to_bytes(4, "big") + checked)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise

    def load(self, key: Any) -> Any:
        """The code of a key, or None; ValueError if its file is damaged, or that of another key."""
        path = self.path(key)
        try:
            data = memoryview(path.read_bytes())
        except FileNotFoundError:
            return None
        if zlib.crc32(data[4:]).to_bytes(4, "big") != data[:4]:
            raise ValueError(f"{path.name} is damaged")
        named = self._key(key)
        size = int.from_bytes(data[4:8], "big")
        if size != len(named) or data[8 : 8 + size] != named:
            raise ValueError(f"{path.name} has the code of another function, signature or processor")
        return pickle.loads(data[8 + size :])

    def remove(self, key: Any) -> None:
        """Remove the file of a key, for example because it is damaged."""
        self.path(key).unlink(missing_ok=True)

    def flush(self) -> None:
        """Remove all files of the function; Numba calls this before it compiles a function again."""
        for path in self.paths():
            path.unlink(missing_ok=True)

    def paths(self) -> list[Path]:
        """All files of the function."""
        length = len(self._name) + len(".0123456789abcdef.nbc")
        try:
            with os.scandir(self._directory) as entries:
                names = [one.name for one in entries]
        except FileNotFoundError:
            return []
        return [
            self._directory / name
            for name in names
            if len(name) == length and name.startswith(f"{self._name}.") and name.endswith(".nbc")
        ]


class _NotRefreshed:
    """The context of a target, for loading machine code: it does not load what only the compiler needs.

    Numba refreshes the context before it loads machine code: this imports all functions that kernels may call, and
    takes a third of the time of a first solve.  The compiler refreshes the context itself.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def refresh(self) -> None:
        """Nothing."""


INSTALLED = ("site-packages", "dist-packages")  # folders of installed packages, also those of another environment


def outside_stamp(path: str) -> tuple[Any, ...]:
    """Times and sizes of a file outside the package, and of the files that it imports, directly or not.

    Files of installed packages are left out.
    """
    library = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    stamps: dict[str, tuple[int, int]] = {}
    left = [path]
    while left:
        file = left.pop()
        if file in stamps or not file.endswith(".py") or file.startswith((str(PACKAGE), *library)):
            continue
        if any(name in INSTALLED for name in Path(file).parts):
            continue
        at = os.stat(file)
        stamps[file] = at.st_mtime_ns, at.st_size
        files = [getattr(sys.modules.get(name), "__file__", None) for name in _imported(file, stamps[file])]
        left += [found for found in files if found]
    return tuple(sorted(stamps.items()))


@functools.cache
def _imported(file: str, stamp: tuple[int, int]) -> list[str]:
    """Names of modules that a file may import; stamp: its time and size."""
    names = []
    for node in ast.walk(ast.parse(Path(file).read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


class _Reduction(CompileResultCacheImpl):  # type: ignore[misc]
    """How machine code is pickled; Numba asks it for the place of a cache, too."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def locator(self) -> Any:
        return self

    def ensure_cache_path(self) -> None:
        """Make the directory; of each module the newest MOST_VERSIONS are kept."""
        if self._directory.is_dir():
            return
        module = self._directory.name.rpartition("-")[0]
        with contextlib.suppress(FileNotFoundError):  # another process removes the same ones
            older = sorted(self._directory.parent.glob(f"{module}-*"), key=lambda path: path.stat().st_mtime)
            for path in older[: max(0, len(older) - MOST_VERSIONS + 1)]:
                shutil.rmtree(path, ignore_errors=True)
        self._directory.mkdir(mode=0o700, exist_ok=True)


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function; a failure to read or write is only logged, and the kernel is compiled."""

    def __init__(self, function: Callable[..., Any], root: Path) -> None:
        module, path = function.__module__ or "", function.__code__.co_filename
        version = f"py{sys.version_info[0]}{sys.version_info[1]}{sys.abiflags}"
        name = f"{function.__qualname__}.{version}".replace("<", "").replace(">", "")
        stamp: Any = None  # the digest is in the name of the directory
        if module.split(".")[0] == "cardan" and str(cache.SOURCES.file(module)) == path:
            folder = f"{module}-{cache.SOURCES.digest(module)}"
        else:
            folder = f"others-{cache.SOURCES.digest(None)}"
            stamp = outside_stamp(path)
            place = f"{path}:{function.__code__.co_firstlineno}"
            name = f"{Path(path).stem}.{hashlib.sha256(place.encode()).hexdigest()[:16]}.{name}"
        self._name = repr(function)
        self._py_func = function
        self._impl = _Reduction(root / folder)
        self._cache_path = str(root / folder)
        self._cache_file = _Entries(self._cache_path, name, stamp)
        self._lock = OneCompiler()
        self._compiling = 0
        self._patience = SECONDS if stamp is None else SECONDS_OF_USERS
        self.enable()

    def load_overload(self, signature: Any, context: Any) -> Any:
        loaded = self._loaded(signature, context)
        if loaded is not None:
            return loaded
        self._compiling += 1
        announce.began(self._py_func)
        if self._was_compiled(signature, context):
            loaded = self._loaded(signature, context)
            self._lock.release()
        if loaded is None:
            load_compiler()  # save_overload follows
        else:
            self._end()
        return loaded

    def _end(self) -> None:
        self._compiling -= 1
        announce.ended()

    def give_up(self) -> None:
        """The compiler has failed: release what :meth:`load_overload` has begun."""
        self._lock.release()
        while self._compiling:
            self._end()

    def _loaded(self, signature: Any, context: Any) -> Any:
        """Machine code from disk, or None; what cannot be read is removed."""
        try:
            return super().load_overload(signature, _NotRefreshed(context))
        except Exception as error:  # damaged pickles can raise any exception
            log.warning("a cached kernel cannot be read and is compiled again (%s): %s", self._name, error)
            with contextlib.suppress(Exception):  # as above
                self._cache_file.remove(self._index_key(signature, context.codegen()))
            return None

    def _was_compiled(self, signature: Any, context: Any) -> bool:
        """Lock a kernel that is to be compiled until :meth:`save_overload`; whether another process has compiled it."""
        try:
            self._impl.ensure_cache_path()
            entry = self._cache_file.path(self._index_key(signature, context.codegen()))
            if not load_compiler.cache_info().currsize:
                time.sleep(HEAD_START)
            self._lock.acquire(entry.with_suffix(".lock"), self._patience)
            return entry.exists()
        except Exception as error:  # without a lock, two processes may compile the same
            log.debug("no lock for %s: %s", self._name, error)
            return False

    def save_overload(self, signature: Any, compiled: Any) -> None:
        try:
            super().save_overload(signature, compiled)
        except Exception as error:  # a full disk, a failed pickle: the compiled kernel still runs
            log.warning("a kernel is not cached and is compiled in every process (%s): %s", self._name, error)
        finally:
            self._lock.release()
            self._end()

    def has_entries(self) -> bool:
        """Whether machine code of the function is on disk."""
        return bool(self._cache_file.paths())


class Unkept(NullCache):  # type: ignore[misc]  # Numba has no types
    """In place of a cache where there is none: only announces what is compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._py_func = function
        self._compiling = 0

    def load_overload(self, signature: Any, context: Any) -> None:
        self._compiling += 1
        announce.began(self._py_func, is_kept=False)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        self._compiling -= 1
        announce.ended()

    def give_up(self) -> None:
        """The compiler has failed."""
        while self._compiling:
            self.save_overload(None, None)


def or_give_up(compile_it: Callable[..., Any], cache: Any) -> Callable[..., Any]:
    """A method of Numba that compiles; if it raises, the cache releases its lock, and the announcement ends."""

    def call(*arguments: Any) -> Any:
        try:
            return compile_it(*arguments)
        except BaseException:  # Ctrl-C too
            cache.give_up()
            raise

    return call


_told: set[tuple[Any, ...]] = set()  # reasons of warnings that are given once


def cache_of(function: Callable[..., Any]) -> _Cache | None:
    """The cache of a function in CACHE_DIRECTORY, or None."""
    if cache.CACHE_DIRECTORY is None:
        return None
    try:
        return _Cache(function, cache.CACHE_DIRECTORY)
    except Edited as error:
        if error.args not in _told:
            _told.add(error.args)
            log.warning("kernels are not cached and are compiled in this process: %s", error)
    except OSError as error:
        log.warning("a kernel is not cached and is compiled in every process: %s", error)
    except Exception as error:  # private parts of Numba can fail in any way; kernels run without the cache
        give_up_cache(error)
    return None


def give_up_cache(error: Exception) -> None:
    """Stop caching: the cache of this version of Numba is not supported."""
    cache.CACHE_DIRECTORY = None
    log.warning("kernels are not cached and are compiled in every process: Numba %s: %r", numba.__version__, error)


def is_cached(kernel: Any) -> bool:
    """Whether machine code of a compiled kernel is on disk; False if this is unknown."""
    found = getattr(kernel, "_cache", None)
    try:
        return cache.CACHE_DIRECTORY is not None and isinstance(found, _Cache) and found.has_entries()
    except AttributeError:
        return False
