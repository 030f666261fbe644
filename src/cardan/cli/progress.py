"""A progress bar on stderr, for people at a terminal; elsewhere nothing."""

from __future__ import annotations

import os
import shutil
import sys
import time
from types import TracebackType

WIDTH = 30  # characters, where the terminal has room for them
LEAST_WIDTH = 5  # a shorter bar tells nothing
EACH = 0.1  # s between two drawings


class Bar:
    """``with Bar("study") as bar: work(progress=bar.update)``: the line is wiped at the end."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._shown = sys.stderr.isatty()
        self._began = time.perf_counter()
        self._drawn = 0.0
        self._longest = 0

    def update(self, done: int, total: int) -> None:
        """Draw how much is done, now and then."""
        now = time.perf_counter()
        if not self._shown or now < self._drawn + EACH:
            return
        self._drawn = now
        line = _line(self._title, min(1.0, done / max(total, 1)), now - self._began, _columns())
        self._longest = max(self._longest, len(line))
        sys.stderr.write(f"\r{line}")
        sys.stderr.flush()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._shown:
            sys.stderr.write("\r" + " " * min(self._longest, _columns()) + "\r")
            sys.stderr.flush()


def _columns() -> int:
    """That can be written without a new line: a terminal may begin one when its last column is filled."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns  # stdout may be a file
    except (AttributeError, OSError, ValueError):
        columns = 0
    return (columns or shutil.get_terminal_size().columns) - 1


def _line(title: str, part: float, seconds: float, columns: int) -> str:
    """The bar with its words, in so many columns: a shorter bar, then none, then no title."""
    told = f"{100.0 * part:3.0f} %  {seconds:.0f} s"
    room = min(WIDTH, columns - len(title) - len(told) - len(" [] "))
    if room >= LEAST_WIDTH:
        return f"{title} [{('#' * round(room * part)).ljust(room, '-')}] {told}"
    line = f"{title} {told}"
    return line if len(line) <= columns else told[: max(columns, 0)]
