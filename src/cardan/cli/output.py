"""Output of results: tables for people, one JSON document for programs."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cardan.files.units import SI, UNITS
from cardan.system.display import ANGLES, DEFAULT, LENGTHS

if TYPE_CHECKING:
    from cardan.mechanism import Mechanism

PIPE_COLUMNS = 160  # width of tables if stdout is no terminal and COLUMNS is not set
MOST_ROWS = 40  # of a summary
# Values this small, relative to the largest of their column or absolute, are printed as zero; JSON keeps them.
ZERO_RTOL = 1e-12
ZERO = 1e-15


def print_json(document: Any) -> None:
    """Print one JSON document on stdout; NaN and infinities become null."""
    json.dump(_finite(document), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Columns aligned under their titles, two spaces apart: the first ``left`` to the left, the others to the right."""
    lines = [tuple(titles), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def columns() -> int:
    """Width of a table on stdout, in characters."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size().columns
    return PIPE_COLUMNS


def over_time(times: Any, values: dict[str, Any]) -> str:
    """A table of columns over time; if it is wider than the terminal, a summary with a row for each column."""
    shown = {title: without_rounding(column) for title, column in values.items()}
    rows = [(f"{t:.6g}", *(f"{column[k]:z.9g}" for column in shown.values())) for k, t in enumerate(times)]
    made = table(("t [s]", *shown), rows, left=0)
    if len(made.partition("\n")[0]) <= columns() or not len(times):
        return made
    titles = ("", "first", "last", "least", "greatest")
    lines = [
        (title, *(f"{value:z.6g}" for value in (column[0], column[-1], column.min(), column.max())))
        for title, column in list(shown.items())[:MOST_ROWS]
    ]
    notes = [f"t = {times[0]:g} … {times[-1]:g} s, {len(times)} times; --csv FILE or --json for all values"]
    if len(shown) > MOST_ROWS:
        notes.insert(0, f"… and {len(shown) - MOST_ROWS} more columns")
    return "\n".join([table(titles, lines), *notes])


class OwnUnits(NamedTuple):
    """Units of the tables of a mechanism, by the unit in SI: its name, and its size in SI."""

    m: tuple[str, float]
    rad: tuple[str, float]

    @staticmethod
    def of(mechanism: Mechanism) -> OwnUnits:
        """Those of its display, if it has one of its own; else those of the file that it was read from, or SI."""
        source = mechanism._model.source
        file = SI if source is None else source.units.as_dict()
        shown = mechanism.display
        length, angle = (file["length"], file["angle"]) if shown == DEFAULT else (shown.length, shown.angle)
        return OwnUnits((length, _size(LENGTHS, "length", length)), (angle, _size(ANGLES, "angle", angle)))

    def columns(self, values: dict[str, Any]) -> dict[str, Any]:
        """Columns in these units; values: in SI, under titles that end in their unit, such as "A [rad]"."""
        found = {}
        for title, column in values.items():
            name, unit = title.rstrip("]").rsplit(" [", 1) if title.endswith("]") else (title, "")
            base, slash, rest = unit.partition("/")
            own, size = {"m": self.m, "rad": self.rad}.get(base, (base, 1.0))
            found[f"{name} [{own}{slash}{rest}]" if unit else title] = column if size == 1.0 else column / size
        return found


def _size(shown: Mapping[str, float], quantity: str, unit: str) -> float:
    """Of a unit of a display, or of a file."""
    return shown[unit] if unit in shown else float(UNITS[quantity][unit])


def without_rounding(column: Any) -> Any:
    """A column with rounding errors of zero replaced by zero."""
    size = np.abs(column)
    return np.where(size <= max(ZERO, ZERO_RTOL * float(size.max(initial=0.0))), 0.0, column)


def poses(state: Any, units: OwnUnits) -> str:
    """A table of positions and quaternions, with as many digits as fit the terminal."""
    unit, size = units.m
    titles = ("body", f"x [{unit}]", f"y [{unit}]", f"z [{unit}]", "q w", "q x", "q y", "q z")
    values = np.hstack([state.positions if size == 1.0 else state.positions / size, state.quaternions])
    made = ""
    for digits in (9, 6, 4):
        rows = [(name, *(f"{v:z.{digits}f}" for v in values[k])) for k, name in enumerate(state.names)]
        made = table(titles, rows)
        if max(map(len, made.splitlines())) <= columns():
            break
    return made
