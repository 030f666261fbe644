"""Errors of a model file: each with its line and key, and all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from cardan.errors import ModelError

MOST_PROBLEMS: Final = 50  # reported


class Problem(NamedTuple):
    """One error in a file: line (0 if unknown), key, and what is wrong."""

    line: int
    key: str
    message: str

    def __str__(self) -> str:
        where = ", ".join([*([f"line {self.line}"] if self.line else []), *([self.key] if self.key else [])])
        return f"{where}: {self.message}" if where else self.message


class FileError(ModelError):
    """A model file is wrong; ``problems`` lists everything that is wrong with it."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        if len(problems) == 1:
            message = f"{file}, {problems[0]}"
        else:
            listed = "\n".join(f"  {problem}" for problem in problems[:MOST_PROBLEMS])
            more = f"\n  … and {len(problems) - MOST_PROBLEMS} more" if len(problems) > MOST_PROBLEMS else ""
            message = f"{file} has {len(problems)} errors:\n{listed}{more}"
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return FileError, (self.file, self.problems)
