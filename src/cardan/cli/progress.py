"""A progress bar on stderr, for people at a terminal; elsewhere nothing."""

from __future__ import annotations

import sys
import time
from types import TracebackType

WIDTH = 30  # characters
EACH = 0.1  # s between two drawings


class Bar:
    """``with Bar("study") as bar: work(progress=bar.update)``: the line is wiped at the end."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._shown = sys.stderr.isatty()
        self._began = time.perf_counter()
        self._drawn = 0.0

    def update(self, done: int, total: int) -> None:
        """Draw how much is done, now and then."""
        now = time.perf_counter()
        if not self._shown or now < self._drawn + EACH:
            return
        self._drawn = now
        part = min(1.0, done / max(total, 1))
        bar = ("#" * round(WIDTH * part)).ljust(WIDTH, "-")
        sys.stderr.write(f"\r{self._title} [{bar}] {100.0 * part:3.0f} %  {now - self._began:.0f} s")
        sys.stderr.flush()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._shown:
            sys.stderr.write("\r" + " " * (len(self._title) + WIDTH + 20) + "\r")
            sys.stderr.flush()
