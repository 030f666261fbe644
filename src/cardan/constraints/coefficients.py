"""Formulas of parameters inside users' functions: what they stand for while a function is called.

A function such as ``lambda t: k * cd.sin(w * t)`` is called within :func:`standing`, which says what each formula is
meanwhile: its number at some values of the parameters, or an expression that is being recorded.  Formulas have an
attribute ``in_force``, by which operators and functions read it.  A context belongs to one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_MEANING: ContextVar[Callable[[Any], Any] | None] = ContextVar("meaning", default=None)


@contextmanager
def standing(meaning: Callable[[Any], Any]) -> Iterator[None]:
    """A context in which each formula stands for meaning(formula)."""
    token = _MEANING.set(meaning)
    try:
        yield
    finally:
        _MEANING.reset(token)


def meaning_of(formula: Any) -> Any:
    """What a formula stands for now; itself outside :func:`standing`."""
    meaning = _MEANING.get()
    return formula if meaning is None else meaning(formula)


def is_standing() -> bool:
    """Whether formulas stand for something else now."""
    return _MEANING.get() is not None


def plain(value: Any) -> Any:
    """What a formula stands for now; any other value itself."""
    return getattr(value, "in_force", value)


@contextmanager
def collecting() -> Iterator[dict[Any, None]]:
    """A context in which formulas are their drawn numbers; those that are used are collected."""
    found: dict[Any, None] = {}

    def drawn(formula: Any) -> float:
        found[formula] = None
        return float(formula.book.values[formula.index])

    with standing(drawn):
        yield found
