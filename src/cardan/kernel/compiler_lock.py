"""One compiler at a time for each kernel, also of several processes: a lock on a file beside the machine code.

The system releases a lock when its process ends, however it ends.  A process waits for a limited time, and then
compiles the kernel itself: too long a wait costs time, never a result.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # Windows: every process compiles
    fcntl = None  # type: ignore[assignment]  # a module is no optional type

SECONDS: Final = 120.0  # for a kernel of the library: a large one takes 5 to 25 s on an idle processor
SECONDS_OF_USERS: Final = 20.0  # for one of the user; if it cannot be compiled, its lock is kept until the end
HEAD_START: Final = 0.2  # [s] of a process that has loaded the compiler, which takes a second, over one that has not
PAUSE: Final = 0.02  # [s] between two looks


class OneCompiler:
    """The locks of one kernel that this process holds; a kernel may be compiled for a signature within another."""

    def __init__(self) -> None:
        self._held: dict[Path, int] = {}

    def acquire(self, path: Path, seconds: float) -> None:
        """Lock a file, made if it is not there; without success after some time, or where files cannot be locked."""
        if fcntl is None or path in self._held:
            return
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        deadline = time.monotonic() + seconds
        try:
            while not _is_locked(handle):
                if time.monotonic() > deadline:
                    os.close(handle)
                    return
                time.sleep(PAUSE)
        except BaseException:  # a file system without locks, or Ctrl-C
            os.close(handle)
            raise
        self._held[path] = handle

    def release(self) -> None:
        """Release all locks."""
        while self._held:
            path, handle = self._held.popitem()
            with contextlib.suppress(OSError):
                path.unlink()  # who still waits for it looks for the machine code first
            os.close(handle)


def _is_locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
