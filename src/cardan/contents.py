"""Bytes of files that others may have written: of regular files only, at most so many, and of no other folder."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from cardan.errors import ModelError

_NO_DELAY: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)  # a FIFO would wait for its other end
_READ: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | _NO_DELAY
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_FOLDER: Final = _READ | getattr(os, "O_DIRECTORY", 0)


def file_path(path: Any) -> Path:
    """The path of a file that a user gives; ModelError if it is none.  Bytes and descriptors are none."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise ModelError(f"the file is {path!r:.80}; give its path")
    return Path(path)


def read(path: Any, most: int, what: str = "the file") -> bytes:
    """The content of a regular file; ModelError that names it if it is another thing, or larger than ``most`` bytes.

    The size is that of what is read: a file may grow, and some of the system have no size.
    """
    named = f"{what} {str(path)!r}"
    with _reasons(named):
        return _content(_handle(path, named), most, named)


@contextlib.contextmanager
def opened(path: Any, most: int, what: str = "the file") -> Iterator[BinaryIO]:
    """A regular file, open to be read in parts, with the errors of :func:`read`; its size is that when it is opened."""
    named = f"{what} {str(path)!r}"
    with _reasons(named):
        handle = _handle(path, named)
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise _not_regular(named)
        if found.st_size > most:
            raise _too_large(named, most)
        yield file


def _handle(path: Any, named: str) -> int:
    if not stat.S_ISREG(os.stat(path).st_mode):  # a device may act when it is opened
        raise _not_regular(named)
    return os.open(path, _READ)


def read_below(folder: Path, path: str, most: int, what: str = "the file") -> bytes:
    """As :func:`read`, of a file in a folder or below it, wherever links lead.

    Links are resolved first.  The real path is then opened from folder to folder without following links, so that no
    link that is made in the meantime leads elsewhere.
    """
    named = f"{what} {path!r}"
    with _reasons(named):
        base = folder.resolve()
        try:
            target = (base / path).resolve()
            is_below, is_file = target.is_relative_to(base), target.is_file()
        except (OSError, ValueError):  # too long, or not encodable: no file has such a name
            is_below, is_file = True, False
        if Path(path).is_absolute() or not is_below:
            raise ModelError(f"{named} must be in the folder of the model or below it; copy it there")
        if not is_file:
            raise ModelError(f"{named} is not a file; it must be a regular file in the folder of the model or below it")
        if os.open not in os.supports_dir_fd:  # Windows
            return _content(os.open(target, _READ), most, named)
        *folders, name = target.relative_to(base).parts
        handle = os.open(base, _FOLDER)
        try:
            for one in folders:
                below = os.open(one, _FOLDER | _NO_LINK, dir_fd=handle)
                os.close(handle)
                handle = below
            return _content(os.open(name, _READ | _NO_LINK, dir_fd=handle), most, named)
        finally:
            os.close(handle)


def _content(handle: int, most: int, named: str) -> bytes:
    """The content of an open file, which is closed."""
    with open(handle, "rb", buffering=0) as file:
        size = os.fstat(handle)
        if not stat.S_ISREG(size.st_mode):
            raise _not_regular(named)
        content = bytearray()
        if size.st_size <= most:
            while len(content) <= most and (part := file.read(min(most + 1 - len(content), 1 << 24))):
                content += part
        if size.st_size > most or len(content) > most:
            raise _too_large(named, most)
        return bytes(content)


def _not_regular(named: str) -> ModelError:
    return ModelError(f"{named} cannot be read: it is not a regular file")


def _too_large(named: str, most: int) -> ModelError:
    return ModelError(f"{named} is larger than {most:,} bytes, which is the most that is read")


@contextlib.contextmanager
def _reasons(named: str) -> Iterator[None]:
    """Errors of the system as ModelError; also of a path that no file can have."""
    try:
        yield
    except ModelError:
        raise
    except OSError as error:
        raise ModelError(f"{named} cannot be read: {error.strerror or error}") from None
    except ValueError:  # a NUL, or what cannot be encoded
        raise ModelError(f"{named} cannot be read: no file has this name") from None
