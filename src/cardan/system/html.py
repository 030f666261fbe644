"""HTML of mechanisms and results for notebooks: a text, and tables below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

MOST_ROWS: Final = 20  # of a table

Table = tuple[Sequence[str], Iterable[Sequence[Any]]]  # titles of the columns, and rows


def as_html(text: str, *tables: Table) -> str:
    """A text with its line breaks, then tables of at most MOST_ROWS rows each."""
    from html import escape

    return "".join([f"<pre>{escape(text)}</pre>", *(_table(titles, list(rows)) for titles, rows in tables)])


def _table(titles: Sequence[str], rows: list[Sequence[Any]]) -> str:
    from html import escape

    if not rows:
        return ""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell, escape)}</td>' for cell in row)}</tr>" for row in rows[:MOST_ROWS])
    more = len(rows) - MOST_ROWS
    last = f"<tr><td colspan={len(titles)}>and {more} more</td></tr>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}{last}</tbody></table>"


def _cell(value: Any, escape: Callable[[str], str]) -> str:
    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))


def table_of(columns: Mapping[str, Any], most: int = 8) -> Table:
    """The first columns of a table of arrays by title."""
    chosen = dict(list(columns.items())[:most])
    return list(chosen), list(zip(*(np.asarray(column).tolist() for column in chosen.values()), strict=True))
