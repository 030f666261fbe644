"""What Cardan raises when a call was wrong.  A mechanism that cannot be assembled is not an error but a result."""

from __future__ import annotations


class CardanError(Exception):
    """Base of all errors of the library."""


class ModelError(CardanError, ValueError):
    """A model or an option is invalid; the message names the item, its value, and what would be valid."""


class UnknownNameError(ModelError, KeyError):
    """No item has that name; the message lists near ones."""

    def __str__(self) -> str:  # KeyError would print the repr
        return str(self.args[0])
