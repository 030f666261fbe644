"""What is compiled is announced, so that a command line, a page or a log says why a call takes seconds.

Kernels of the library are compiled once for a machine, if they did not come compiled; functions of the user's own once
for each text.  The compiler calls :func:`began` and :func:`ended`.  Callers that know the user's words for it say them
(:func:`named`).  Observers (:func:`watch`) are called in the thread that compiles.  If there is none, the log has a
warning, once in a process, after compiling for a second.  Where no log is set up, a terminal shows it.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

log = logging.getLogger("cardan")

SILENT: Final = 1.0  # [s] of compiling in a process before the log has a warning
SUBJECTS: Final = {  # what kernels of a package are for
    "analysis": "assembly",
    "collide": "collisions",
    "constraints": "assembly",
    "coordinates": "assembly",
    "dynamics": "simulation",
    "geometry": "contacts",
    "interact": "drags",
    "joints": "contacts",
    "math": "assembly",
    "solvers": "assembly",
    "system": "assembly",
    "view": "pictures",
}


class Compiling(NamedTuple):
    """One compilation: what, in the user's words, and which of how many; total: 0 if it is not known.

    is_kept: other processes load its machine code; else each process compiles it.
    """

    what: str
    number: int
    total: int
    is_kept: bool = True

    def text(self) -> str:
        """For people: "compiling your own constraint 'cam', once: 2 of 5"."""
        of = f" of {self.total}" if self.total else ""
        count = f": {self.number}{of}" if max(self.number, self.total) > 1 else ""
        return f"compiling {self.what}{', once' if self.is_kept else ''}{count}"

    def warning(self) -> str:
        """For a log, if it takes long."""
        later = (
            "later calls and processes do not wait" if self.is_kept else "later calls do not wait; each process does"
        )
        return f"compiling {self.what}{', once' if self.is_kept else ''}: this may take a minute; {later}"


Observer = Callable[[Compiling | None], None]

_watching: list[Observer] = []
_counts: Counter[str] = Counter()
_thread = threading.local()


@contextmanager
def watch(observer: Observer) -> Iterator[None]:
    """While this context is open, call a function with every compilation that begins, and with None at its end."""
    _watching.append(observer)
    try:
        yield
    finally:
        _watching.remove(observer)


@contextmanager
def named(what: str, number: int = 1, total: int = 1) -> Iterator[None]:
    """What is compiled by this thread in this context is this, and which of how many; the outermost name counts."""
    if getattr(_thread, "name", None) is not None:
        yield
        return
    _thread.name = what, number, total
    try:
        yield
    finally:
        _thread.name = None


def began(function: Callable[..., Any], is_kept: bool = True) -> None:
    """This thread begins to compile a function; is_kept: see :class:`Compiling`."""
    name = getattr(_thread, "name", None)
    if name is None:
        packages = (function.__module__ or "").split(".")
        what = (
            f"kernels of {SUBJECTS[packages[1]]}" if packages[0] == "cardan" and packages[1] in SUBJECTS else "kernels"
        )
        _counts[what] += 1
        name = what, _counts[what], 0
    what, number, total = name
    found = Compiling(what, number, total, is_kept)
    for observer in tuple(_watching):
        observer(found)
    if not _watching:
        _silence.begin(found)


def ended() -> None:
    """This thread has compiled a function, or failed."""
    _silence.end()
    for observer in tuple(_watching):
        observer(None)


class _Silence:
    """The seconds of compiling without a word; of several threads that compile, the last one counts."""

    def __init__(self) -> None:
        self._left = SILENT
        self._timer: threading.Timer | None = None
        self._began = 0.0

    def begin(self, what: Compiling) -> None:
        if self._left > 0.0:
            self._cancel()
            self._began = time.perf_counter()
            self._timer = threading.Timer(self._left, self._warn, (what,))
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        if self._timer is not None:
            self._left -= time.perf_counter() - self._began
            self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _warn(self, what: Compiling) -> None:
        self._left = 0.0
        log.warning("%s", what.warning())
        if not _is_logging() and sys.stderr is not None and sys.stderr.isatty():
            print(what.warning(), file=sys.stderr, flush=True)


def _is_logging() -> bool:
    """Whether the program has decided where records of the library go."""
    handlers = [*log.handlers, *(logging.getLogger().handlers if log.propagate else ())]
    return not all(isinstance(handler, logging.NullHandler) for handler in handlers)


_silence = _Silence()
