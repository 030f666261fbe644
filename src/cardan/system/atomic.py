"""Files that are replaced at once or not at all: written under another name beside the old one, then renamed."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from pathlib import Path

from cardan.errors import ModelError


def write(path: Path, data: bytes) -> None:
    """Replace a file, or write a new one; ModelError if this is not possible, and the old one is kept.

    The new file is flushed to the disk before it is renamed, so that a crash leaves the old or the new one.
    """
    if path.exists() and not path.is_file():  # a pipe or a device
        _write_into(path, data)
        return
    target = path.resolve()  # a link stays a link
    beside = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_native_id()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except OSError as error:
        raise _refused(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
    with contextlib.suppress(OSError):  # not every system can flush a directory
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


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
