"""A progress bar, and what is being done, on stderr, if that is a terminal."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from cardan.kernel import announce

log = logging.getLogger("cardan")

WIDTH = 30  # characters, if the terminal is wide enough
LEAST_WIDTH = 5  # a shorter bar is not drawn
EACH = 0.1  # [s] between two updates


class Bar:
    """``with Bar("liu2013") as bar: work(progress=bar.update)``: the line is erased at the end."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._shown = sys.stderr.isatty()
        self._began = time.perf_counter()
        self._drawn = 0.0
        self._longest = 0

    def update(self, done: int, total: int) -> None:
        """Redraw the bar, at most every EACH seconds."""
        now = time.perf_counter()
        if not self._shown or now < self._drawn + EACH:
            return
        self._drawn = now
        line = _line(self._title, min(1.0, done / max(total, 1)), now - self._began, _columns())
        self._longest = max(self._longest, len(line))
        sys.stderr.write(f"\r{line}")
        sys.stderr.flush()

    def part(self, done: float) -> None:
        """Redraw the bar at a part of the work, between 0 and 1."""
        self.update(round(1000 * done), 1000)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._shown:
            _erase(self._longest)


@contextmanager
def told(text: str) -> Iterator[None]:
    """Say what is being done: on a terminal in a line that is erased at the end, otherwise in the log."""
    line = _Told()
    line.show(text)
    try:
        yield
    finally:
        line.show(None)


@contextmanager
def compiling() -> Iterator[None]:
    """Say what is being compiled in this context, in the same way."""
    line = _Told()

    def observe(found: announce.Compiling | None) -> None:
        line.show(found and found.text(), found.what if found else "")

    with announce.watch(observe):
        yield


class _Told:
    def __init__(self) -> None:
        self._longest = 0
        self._logged: set[str] = set()

    def show(self, text: str | None, subject: str = "") -> None:
        """text: None at the end; the log has one line for each subject."""
        if not sys.stderr.isatty():
            if text is not None and subject not in self._logged:
                self._logged.add(subject)
                log.info("%s", text)
            return
        _erase(self._longest)
        self._longest = 0 if text is None else min(len(text), _columns())
        sys.stderr.write((text or "")[: self._longest])
        sys.stderr.flush()


def _erase(length: int) -> None:
    """Erase a line of this length."""
    if length:
        sys.stderr.write("\r" + " " * min(length, _columns()) + "\r")
        sys.stderr.flush()


def _columns() -> int:
    """Usable columns: one less than the width, since filling the last may start a new line."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns  # stdout may be a file
    except (AttributeError, OSError, ValueError):
        columns = 0
    return (columns or shutil.get_terminal_size().columns) - 1


def _line(title: str, part: float, seconds: float, columns: int) -> str:
    """The bar with its title and numbers; if columns are few: a shorter bar, then none, then no title."""
    numbers = f"{100.0 * part:3.0f} %  {seconds:.0f} s"
    room = min(WIDTH, columns - len(title) - len(numbers) - len(" [] "))
    if room >= LEAST_WIDTH:
        return f"{title} [{('#' * round(room * part)).ljust(room, '-')}] {numbers}"
    line = f"{title} {numbers}"
    return line if len(line) <= columns else numbers[: max(columns, 0)]
