"""What happens to contacts that open: the events of a run, as values."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ContactEventKind(StrEnum):
    """What happened to a contact that opens."""

    HIT = "hit"  # faces that approach meet: an impulse
    SLIP = "slip"  # a contact that stuck or rolled begins to slip
    STICK = "stick"  # slip ends, and both points rest
    ROLL = "roll"  # slip ends, and the bodies roll
    OPENING = "opening"  # the force becomes zero, and the faces part
    CLOSING = "closing"  # faces touch, and stay in contact
    ACCUMULATION = "accumulation"  # infinitely many hits in a finite time, summed: the time is that of their end
    SHOCK = "shock"  # friction leaves no finite force: an impulse without a hit


class ContactEvent(NamedTuple):
    """An event of a contact that opens.

    ``time`` [s].  ``name``: of the contact.  ``kind``: one of :class:`ContactEventKind`.  ``speed`` [m/s]: with which
    the faces approach before a hit, or slip.  ``impulse`` [N s]: of the hit along the normal.
    """

    time: float
    name: str
    kind: ContactEventKind
    speed: float = 0.0
    impulse: float = 0.0
