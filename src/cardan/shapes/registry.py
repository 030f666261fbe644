"""The shapes that users make, and those that files have.

A new shape is a class with ``@in_files``, and a function with ``@maker`` that checks arguments and makes it.  The
annotations of its fields say what a file has of it.  ``cardan.shapes``, files and their schema follow from this.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from cardan.calls import explained
from cardan.quantities import Quantity, annotated
from cardan.shapes.shape import Shape

KINDS: dict[str, type[Shape]] = {}  # that files have
MAKERS: dict[str, Callable[..., Shape]] = {}  # that users call
S = TypeVar("S", bound=type[Shape])
F = TypeVar("F", bound=Callable[..., Shape])


def in_files(kind: S) -> S:
    """Register a class of shapes that files can have, by its name in small letters."""
    KINDS[kind.__name__.lower()] = kind
    return kind


def maker(function: F) -> F:
    """Register a function that makes shapes, by its name."""
    made = MAKERS[function.__name__] = explained(function)
    return made


def builder(kind: type[Shape]) -> Callable[..., Shape]:
    """Makes a shape of the values in a file, in SI: the method ``_of_file`` of a class, where it checks them, or it."""
    made: Callable[..., Shape] = getattr(kind, "_of_file", kind)
    return made


@cache
def fields_of(kind: type[Shape]) -> dict[str, tuple[Quantity, Any]]:
    """What a file has of a class of shapes: the quantity and the default of each argument of its builder."""
    return {p.name: (annotated(kind, p), p.default) for p in inspect.signature(builder(kind)).parameters.values()}


def values_of(shape: Shape) -> Mapping[str, Any]:
    """What a file has of a shape, in SI: the result of its method ``_in_file``, or else its fields."""
    found: Callable[[], Mapping[str, Any]] | None = getattr(shape, "_in_file", None)
    return {key: getattr(shape, key) for key in fields_of(type(shape))} if found is None else found()
