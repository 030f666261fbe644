"""Parts of a model that are built once: setting an attribute of one is refused, with its name and another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cardan.errors import ReadOnlyError

C = TypeVar("C", bound=type)


def read_only(way: str, settable: tuple[str, ...] = ()) -> Callable[[C], C]:
    """A decorator above a frozen dataclass, or above a class that sets its own attributes by ``vars(self)``.

    way: how to change the part instead; ``{name}`` is its name.  settable: properties that have a setter.
    Errors of the dataclass itself would name neither the part nor the way.
    """

    def mark(made: C) -> C:
        def refuse(self: Any, attribute: str, *value: Any) -> None:
            if value and attribute in settable:
                object.__setattr__(self, attribute, *value)
                return
            name = getattr(self, "name", "")
            body = None if name else getattr(self, "body", None)
            what = repr(self) if body is None else f"this {made.__name__.lower()} on body {body.name!r}"
            raise ReadOnlyError(f"{attribute!r} of {what} cannot be set: it is read-only; {way.format(name=name)}")

        for word in ("__setattr__", "__delattr__"):
            setattr(made, word, refuse)
        return made

    return mark
