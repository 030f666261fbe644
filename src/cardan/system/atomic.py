"""Files that are replaced at once or not at all: written under another name beside the old one, then renamed.

The other name is random, and the file is made by this process (O_EXCL): in a folder that others can write to, no file
or link of theirs is written to.  It is locked while it is written.  One that is not locked was left by a process that
was killed, and the next save of the same file removes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path
from typing import Final

from cardan.errors import ModelError

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed
    fcntl = None  # type: ignore[assignment]  # a module is no optional type

SUFFIX: Final = ".tmp"
LONGEST: Final = 180  # bytes of a name that is part of the other one; a name may have 255
ATTEMPTS: Final = 100  # at a name that is free, and not removed before it is locked
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)


def write(path: Path, data: bytes) -> None:
    """Replace a file, or write a new one; ModelError if this is not possible, and the old one is kept.

    The new file and its folder are flushed to the disk, so that a crash leaves the old or the new one.  Only this user
    can read it before it has the permissions of the old one; a new file has those of any other.
    """
    if path.exists() and not path.is_file():  # a pipe or a device
        _write_into(path, data)
        return
    target = path.resolve()  # a link stays a link
    try:
        _remove_left(target)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        handle, beside = _made(target, 0o666 if mode is None else 0o600)
        try:
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                if mode is not None:
                    os.chmod(beside if os.chmod not in os.supports_fd else handle, mode)
                os.fsync(handle)
                if fcntl is not None:
                    os.replace(beside, target)
            if fcntl is None:  # an open file cannot be renamed there
                os.replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        raise _refused(path, error) from None
    with contextlib.suppress(OSError):  # not every system can flush a directory
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _prefix(target: Path) -> str:
    name = target.name
    if len(os.fsencode(name)) > LONGEST:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return f".{name}."


def _made(target: Path, mode: int) -> tuple[int, Path]:
    """A new file beside the target, open and locked, and its path."""
    for _ in range(ATTEMPTS):
        beside = target.with_name(f"{_prefix(target)}{os.urandom(8).hex()}{SUFFIX}")
        handle = os.open(beside, _NEW | _NO_LINK, mode)
        locked = _lock(handle)
        if locked is None or (locked and _is_at(handle, beside)):
            return handle, beside
        os.close(handle)  # another save took it for one that was left, before it was locked, and removes it
    raise OSError(f"other programs remove each new file in {str(target.parent)!r}")


def _lock(handle: int) -> bool | None:
    """Lock an open file: False if another process has locked it, None where files cannot be locked."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # of the file system
        return None
    return True


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def _remove_left(target: Path) -> None:
    """Remove files of saves that were killed: those of this target that no process has locked."""
    first = _prefix(target)
    with os.scandir(target.parent) as entries:
        left = [one.path for one in entries if one.name.startswith(first) and one.name.endswith(SUFFIX)]
    for name in left:
        random = Path(name).name[len(first) : -len(SUFFIX)]
        if len(random) != 16 or set(random) - set("0123456789abcdef"):
            continue
        with contextlib.suppress(OSError):  # of another user, or removed in the meantime
            if fcntl is None:
                os.unlink(name)
                continue
            handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _NO_LINK)
            try:
                if stat.S_ISREG(os.fstat(handle).st_mode) and _lock(handle) and _is_at(handle, Path(name)):
                    os.unlink(name)
            finally:
                os.close(handle)


def _write_into(path: Path, data: bytes) -> None:
    """Write to what cannot be replaced."""
    try:
        path.write_bytes(data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _refused(path, error) from None


def _refused(path: Path, error: OSError) -> ModelError:
    return ModelError(f"the file {str(path)!r} cannot be written: {error.strerror or error}; choose another place")
