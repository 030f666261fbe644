"""Contacts in frames: point, normal, and whether the contact is lost."""

from __future__ import annotations

from typing import Final

import numpy as np

from cardan.system.state import FloatArray, State

WIDTH: Final = 7  # point [m] and normal in world; 1 where the contact is lost, else 0
REGULAR: Final = "regular"
NEAR: Final = 1e-3  # of the range of a parameter: a hand that is stuck nearer to the edge of a shape is stopped by it


def names(state: State) -> tuple[str, ...]:
    """The contacts of a state."""
    return tuple(getattr(state._index, "contacts", {}))


def rows(state: State) -> tuple[FloatArray, tuple[str, ...]]:
    """Every contact, shape (contacts, WIDTH), and those that are lost, in words."""
    found, lost = np.zeros((len(names(state)), WIDTH)), []
    for row, name in zip(found, names(state), strict=True):
        contact = state.contact(name)
        row[:3], row[3:6] = contact.point, contact.normal
        if contact.status != REGULAR:
            row[6] = 1.0
            lost.append(f"contact {name!r} is lost: {contact.reason}")
    return found, tuple(lost)


def at_edges(state: State) -> tuple[str, ...]:
    """Contacts that are near the edge of a shape, in words."""
    found = []
    for name, touch in getattr(state._index, "contacts", {}).items():
        parameters = touch.pair.in_order(touch.read(state).parameters)
        for shape, values in zip(touch.pair.closed, parameters, strict=True):  # a seam is no edge
            if shape.width != shape.freedoms:
                continue  # a sphere has no edge
            for value, (low, high), period in zip(values, shape.bounds, shape.periods, strict=True):
                if not period and min(value - low, high - value) <= NEAR * (high - low) < np.inf:
                    found.append(f"contact {name!r} would be lost: it is at the edge of a shape, {shape!r}")
    return tuple(found)
