"""The user's directory for machine code, found when it is first asked for.

Cached machine code is executed.  Therefore only the user can write to the directory and change what is above it: modes
and owners are checked.  ``CACHE_DIRECTORY`` is None if there is no such directory, and everything runs without it.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardan.kernel.dual import JIT_DISABLED
from cardan.kernel.sources import PACKAGE, Sources

log = logging.getLogger("cardan")

if TYPE_CHECKING:
    CACHE_DIRECTORY: Path | None  # of this version
    SOURCES: Sources
    failure: Exception | None  # why there is no directory

_imported = time.time_ns()  # kernels are imported after this


def __getattr__(name: str) -> Any:
    if name not in ("CACHE_DIRECTORY", "SOURCES", "failure"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    directory, began, failure = (None, None, None) if JIT_DISABLED else _writable()
    found: dict[str, Any] = {"CACHE_DIRECTORY": directory, "failure": failure}
    found["SOURCES"] = Sources(PACKAGE, None if directory is None else directory / "digests.json", began)
    for each, value in found.items():
        globals().setdefault(each, value)
    return globals()[name]


def cache_root() -> Path:
    """Root of the cache: CARDAN_CACHE_DIR, NUMBA_CACHE_DIR, or the user's cache directory."""
    for variable, tail in (("CARDAN_CACHE_DIR", ""), ("NUMBA_CACHE_DIR", "cardan"), ("XDG_CACHE_HOME", "cardan")):
        value = os.environ.get(variable)
        if value:
            return Path(value) / tail
    return Path.home() / ".cache" / "cardan"


def _writable() -> tuple[Path | None, int | None, Exception | None]:
    """The cache directory of this version, created if necessary; when this module was imported, by the clock of its
    files [ns], which is some milliseconds behind; or why the directory cannot be written."""
    from cardan import __version__

    try:
        directory = private(cache_root() / __version__)
        with tempfile.TemporaryFile(dir=directory) as file:
            passed = time.time_ns() - _imported
            return directory, os.fstat(file.fileno()).st_mtime_ns - passed, None
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        return None, None, error


def check_parents(directory: Path) -> None:
    """OSError if another user could replace a directory above this one, as OpenSSH checks those of its keys.

    A parent must belong to this user or to root.  Others may write to it only if it is sticky, as /tmp is; the group
    may, if it is the user's own.  Therefore paths below it stay what they were when they were checked.
    """
    if not hasattr(os, "getuid"):  # on Windows a user's profile is private by default
        return
    trusted = {0, os.getuid()} | _unmapped()
    for parent in directory.parents:
        found = parent.stat()
        is_open = found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not _is_own_group(found.st_gid))
        if found.st_uid not in trusted or (is_open and not found.st_mode & stat.S_ISVTX):
            ways = "its owner must be you or root, and only its owner may write to it (chmod go-w)"
            raise OSError(f"{directory} is below {parent}, which other users can change; {ways}")


def _is_own_group(number: int) -> bool:
    """Whether a group has no other member than this user, as many systems give each user one; or is that of root."""
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return number == 0 or (group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name})


def _unmapped() -> set[int]:
    """The owner that a container shows for users outside of it, such as root of the machine; none elsewhere."""
    try:
        if Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]:
            return {int(Path("/proc/sys/kernel/overflowuid").read_text())}
    except (OSError, ValueError):
        log.debug("no map of users")  # not Linux
    return set()


def private(directory: Path) -> Path:
    """A directory that only this user can write, created if necessary; else OSError, since its files are executed."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory = directory.parent.resolve() / directory.name  # a link above it may lead elsewhere later
    check_parents(directory)
    found = directory.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise OSError(f"{directory} is a symbolic link; it must be a directory")
    if hasattr(os, "getuid"):  # on Windows a user's profile is private by default
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OSError(f"{directory} is open to other users; only this user may have access (chmod 700)")
        if stat.S_IMODE(found.st_mode) != 0o700:
            directory.chmod(0o700)
    return directory
