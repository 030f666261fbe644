"""Exceptions for invalid calls.  A mechanism that cannot be assembled is not an error but a result."""

from __future__ import annotations


class CardanError(Exception):
    """Base of all errors of the library."""


class ModelError(CardanError, ValueError):
    """A model or an option is invalid; the message names the item, its value, and the valid values."""


class UnknownNameError(ModelError, KeyError):
    """No item has this name; the message lists similar names."""

    def __str__(self) -> str:  # KeyError would print the repr
        return str(self.args[0])


class ArgumentError(ModelError, TypeError):
    """A call has an argument that the method does not have, or lacks one; the message names similar arguments."""


class ReadOnlyError(ModelError, AttributeError):
    """An attribute of a part of a model cannot be set; the message names the part and another way."""


class SessionError(CardanError, RuntimeError):
    """A session cannot be used in this way now: it is closed, or another thread uses it."""
