"""Machine code on disk.

Cached machine code is executed.  Therefore only the user can write to the directory (mode 0700, owner checked), and
every file of machine code has a checksum.  A file that cannot be read is ignored, and the kernel is compiled again.
Everything runs without a cache if there is no such directory, or if the private parts of Numba that the cache needs are
missing.  docs/kernels.md lists these parts, and tests/kernel/test_numba_parts.py tests them.

Numba's own key covers only the file of a function, so after an edit in an imported file it would load outdated code.
Here the directory of a kernel is named after its module and :func:`digest`: what the module and all modules that it
imports compute, without docstrings, comments and positions.  An edit of a kernel therefore compiles only what depends
on it, and two copies of the library with equal sources share their machine code.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import json
import logging
import os
import pickle
import shutil
import stat
import sys
import sysconfig
import tempfile
import threading
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numba

from cardan.kernel.memory import JIT_DISABLED

log = logging.getLogger("cardan")

try:  # private, needed only for the cache
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
except ImportError:
    CompileResultCacheImpl = FunctionCache = IndexDataCacheFile = object  # then :func:`cache_of` logs a warning


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


def cache_root() -> Path:
    """Root of the cache: CARDAN_CACHE_DIR, NUMBA_CACHE_DIR, or the user's cache directory."""
    for variable, tail in (("CARDAN_CACHE_DIR", ""), ("NUMBA_CACHE_DIR", "cardan"), ("XDG_CACHE_HOME", "cardan")):
        value = os.environ.get(variable)
        if value:
            return Path(value) / tail
    return Path.home() / ".cache" / "cardan"


PACKAGE = Path(__file__).parent.parent
MOST_VERSIONS = 8  # of the machine code of one module that are kept


class Sources:
    """Digests of the modules of the package; those of unchanged files are read from ``digests.json`` in the cache."""

    def __init__(self, package: Path, memory: Path | None) -> None:
        self._package = package
        self._memory = memory
        self._known: dict[str, Any] = {}  # by path: time and size of the file, digest, imports
        self._is_changed = False
        self._digests: dict[str, str] = {}
        if memory is not None:
            with contextlib.suppress(OSError, ValueError):
                known = json.loads(memory.read_text(encoding="utf-8"))
                self._known = known if isinstance(known, dict) else {}

    def file(self, module: str) -> Path | None:
        """The file of a module of the package, or None."""
        base = self._package.joinpath(*module.split(".")[1:])
        path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        return path if path.is_file() else None

    def _read(self, module: str, path: Path) -> tuple[str, list[str]]:
        """Digest of what one module computes, and the modules of the package that it imports."""
        at = path.stat()
        stamp = [at.st_mtime_ns, at.st_size]
        known: list[Any] = self._known.get(str(path), [])
        if not (isinstance(known, list) and len(known) == 3 and known[0] == stamp):
            tree = ast.parse(path.read_bytes())
            imports = sorted({name for node in ast.walk(tree) for name in self._imported(node)} - {module})
            for node in ast.walk(tree):
                body: Any = getattr(node, "body", None)
                is_text = isinstance(body, list) and body and isinstance(body[0], ast.Expr)
                if is_text and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
                    body[0].value.value = ""
            known = [stamp, hashlib.sha256(ast.dump(tree).encode()).hexdigest(), imports]
            self._known[str(path)] = known
            self._is_changed = True
        return known[1], known[2]

    def _imported(self, node: ast.AST) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names if alias.name.startswith("cardan.")]
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cardan":
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in inside if self.file(name) is not None]
            of_package = [node.module] if len(modules) < len(inside) and node.module != "cardan" else []
            return [*modules, *of_package]  # type: ignore[list-item]
        return []

    def _save(self) -> None:
        if self._memory is None or not self._is_changed:
            return
        self._is_changed = False
        temporary = self._memory.with_name(f"{self._memory.name}.{os.getpid()}.{threading.get_ident()}")
        with contextlib.suppress(OSError):
            temporary.write_text(json.dumps(self._known), encoding="utf-8")
            os.replace(temporary, self._memory)

    def kernels(self) -> list[str]:
        """All modules of kernels: their names begin with an underscore."""
        files = sorted(self._package.rglob("_[!_]*.py"))
        return [".".join(("cardan", *path.relative_to(self._package).with_suffix("").parts)) for path in files]

    def closure(self, modules: list[str]) -> dict[str, str]:
        """Digest of each of these modules and of the modules of the package that they import, directly or not."""
        reached: dict[str, str] = {}
        left = list(modules)
        while left:
            name = left.pop()
            path = self.file(name)
            if name not in reached and path is not None:
                reached[name], imports = self._read(name, path)
                left += imports
        self._save()
        return reached

    def digest(self, module: str | None) -> str:
        """One digest of all that a module needs to be compiled.

        None: of all kernels, for functions of the user, which may call any of them.
        """
        key = module or ""
        if key not in self._digests:
            needed = self.closure(["cardan.kernel.jit", *([module] if module else self.kernels())])
            text = "".join(f"{name} {needed[name]}\n" for name in sorted(needed))
            self._digests[key] = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self._digests[key]


def _writable_cache() -> Path | None:
    """The cache directory of this version, created if necessary; None if it cannot be written."""
    from cardan import __version__

    try:
        directory = private(cache_root() / __version__)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        log.warning("kernels are not cached and are compiled in every process: %s", error)
        return None
    return directory


def private(directory: Path) -> Path:
    """A directory that only this user can write, created if necessary; else OSError, since its files are executed."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise OSError(f"{directory} is a symbolic link; it must be a directory")
    if hasattr(os, "getuid"):  # on Windows a user's profile is private by default
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OSError(f"{directory} is open to other users; only this user may have access (chmod 700)")
        if stat.S_IMODE(found.st_mode) != 0o700:
            directory.chmod(0o700)
    return directory


CACHE_DIRECTORY: Path | None = None if JIT_DISABLED else _writable_cache()

SOURCES = Sources(PACKAGE, None if CACHE_DIRECTORY is None else CACHE_DIRECTORY / "digests.json")

if CACHE_DIRECTORY is not None and not any(CACHE_DIRECTORY.iterdir()):
    log.info("compiling kernels once for this version of the library (cache: %s)", CACHE_DIRECTORY)


class _Entries(IndexDataCacheFile):  # type: ignore[misc]  # numba is untyped
    """Machine code after a checksum: damaged code could crash, or compute wrong results."""

    def save(self, key: Any, data: Any) -> None:
        """Save machine code under a name of its own: Numba numbers the files, so that two processes which compile for
        two processors or signatures at the same time would take the same number."""
        name = f"{self._index_name.removesuffix('.nbi')}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})

    def _save_data(self, name: str, data: Any) -> None:
        dumped = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(zlib.crc32(dumped).to_bytes(4, "big") + dumped)

    def _load_data(self, name: str) -> Any:
        data = Path(self._data_path(name)).read_bytes()
        if zlib.crc32(data[4:]).to_bytes(4, "big") != data[:4]:
            raise ValueError(f"{name} is damaged")
        return pickle.loads(data[4:])


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


def outside_stamp(path: str) -> tuple[Any, ...]:
    """Times and sizes of a file outside the package, and of the files that it imports, directly or not.

    Files of installed packages are left out.
    """
    installed = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    stamps: dict[str, tuple[int, int]] = {}
    left = [path]
    while left:
        file = left.pop()
        if file in stamps or not file.endswith(".py") or file.startswith((str(PACKAGE), *installed)):
            continue
        at = os.stat(file)
        stamps[file] = at.st_mtime_ns, at.st_size
        for node in ast.walk(ast.parse(Path(file).read_bytes())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            else:
                continue
            files = [getattr(sys.modules.get(name), "__file__", None) for name in names]
            left += [found for found in files if found]
    return tuple(sorted(stamps.items()))


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
        if module.split(".")[0] == "cardan" and str(SOURCES.file(module)) == path:
            folder = f"{module}-{SOURCES.digest(module)}"
        else:
            folder = f"others-{SOURCES.digest(None)}"
            stamp = outside_stamp(path)
            place = f"{path}:{function.__code__.co_firstlineno}"
            name = f"{Path(path).stem}.{hashlib.sha256(place.encode()).hexdigest()[:16]}.{name}"
        self._name = repr(function)
        self._py_func = function
        self._impl = _Reduction(root / folder)
        self._cache_path = str(root / folder)
        self._cache_file = _Entries(self._cache_path, name, stamp)
        self.enable()

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            loaded = super().load_overload(signature, _NotRefreshed(context))
        except Exception as error:  # damaged pickles can raise any exception
            log.warning("a cached kernel cannot be read and is compiled again (%s): %s", self._name, error)
            with contextlib.suppress(OSError, AttributeError):
                os.unlink(self._cache_file._index_path)
            loaded = None
        if loaded is None:
            load_compiler()
        return loaded

    def save_overload(self, signature: Any, compiled: Any) -> None:
        try:
            super().save_overload(signature, compiled)
        except Exception as error:  # a full disk, a failed pickle: the compiled kernel still runs
            log.warning("a kernel is not cached and is compiled in every process (%s): %s", self._name, error)

    def has_entries(self) -> bool:
        """Whether machine code of the function is on disk."""
        return os.path.exists(self._cache_file._index_path)


def cache_of(function: Callable[..., Any]) -> _Cache | None:
    """The cache of a function in CACHE_DIRECTORY, or None."""
    if CACHE_DIRECTORY is None:
        return None
    try:
        return _Cache(function, CACHE_DIRECTORY)
    except OSError as error:
        log.warning("a kernel is not cached and is compiled in every process: %s", error)
    except Exception as error:
        give_up_cache(error)
    return None


def give_up_cache(error: Exception) -> None:
    """Stop caching: the cache of this version of Numba is not supported."""
    global CACHE_DIRECTORY  # noqa: PLW0603
    CACHE_DIRECTORY = None
    log.warning("kernels are not cached and are compiled in every process: Numba %s: %r", numba.__version__, error)


def is_cached(kernel: Any) -> bool:
    """Whether machine code of a compiled kernel is on disk; False if this is unknown."""
    cache = getattr(kernel, "_cache", None)
    try:
        return CACHE_DIRECTORY is not None and isinstance(cache, _Cache) and cache.has_entries()
    except AttributeError:
        return False
