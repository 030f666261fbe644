"""A recorded drag: the targets and actions of the operator by cycle, which can be replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from cardan.errors import ModelError, SessionError
from cardan.interact.tables import Entry
from cardan.system.state import FloatArray, State

if TYPE_CHECKING:
    from cardan.interact.session import Session

MOST: Final = 1_000_000  # targets that a record has room for


class Action(NamedTuple):
    """What Python did before a cycle: "take", "release" or "drive", with its arguments."""

    cycle: int
    what: str
    arguments: tuple[Any, ...]


class Record:
    """Targets and actions from one cycle on; made by :meth:`Session.record`.

    ``cycles``: their number.  :meth:`replay` on the same mechanism gives bitwise identical results.
    """

    def __init__(self, session: Session, most: int = MOST) -> None:
        self._session: Session | None = session
        self._first = session.cycles
        self._cycles = 0
        self._targets: FloatArray = np.zeros(most * Entry.size)
        self._actions: list[Action] = []
        self._options = {"mode": session.mode, "rate": session.rate, "hand": session.hand}
        self._state: State = session.state
        self._values = [array.copy() for array, _ in session._start]
        self._time = session._run.time
        self._hands = session._hand_floats.copy()
        self._held = [None if hand is None else (hand.body, hand.local, hand.kind) for hand in session._hands]

    @property
    def cycles(self) -> int:
        """Number of cycles recorded."""
        return self._cycles if self._session is None else self._session.cycles - self._first

    @property
    def targets(self) -> FloatArray:
        """Cycle, hand, and the position [m] (from the session's origin) and quaternion of each target, shape (n, 9)."""
        count = self._count if self._session is None else int(self._session._control.recorded)
        return self._targets.reshape(-1, Entry.size)[:count]

    def note(self, what: str, arguments: tuple[Any, ...]) -> None:
        """Add an action of Python."""
        self._actions.append(Action(self.cycles, what, arguments))

    def stop(self) -> Record:
        """End the record."""
        if self._session is not None:
            session = self._session
            with session._exclusive():
                self._cycles = self.cycles
                self._count = int(session._control.recorded)
                if self._count * Entry.size > self._targets.size:
                    raise SessionError(f"the record is full after {MOST} targets; record a shorter drag")
                session._table.record_size = 0
                session._recording = None
                self._session = None
                self._targets = self._targets[: Entry.size * self._count].copy()
        return self

    def replay(self, mechanism: Any) -> Session:
        """A session of the same mechanism after the same drag."""
        self.stop()
        session: Session = mechanism.session(self._state, **self._options)
        if session._system.names != self._state.names:
            raise ModelError("the record is of a mechanism with other bodies; replay it with the same one")
        for (array, _), values in zip(session._start, self._values, strict=True):
            if array.shape != values.shape:
                raise ModelError("the record is of another mechanism; replay it with the same one")
            array[...] = values
        session._control.time = self._time
        session._reset()
        session._adopt(self._held, self._hands)
        session._keep_start()
        entries = [Entry(row) for row in self.targets]
        actions = list(self._actions)
        for cycle in range(self._cycles + 1):
            while actions and actions[0].cycle == cycle:
                _, what, arguments = actions.pop(0)
                getattr(session, f"_{what}")(*arguments)
            if cycle == self._cycles:
                break
            while entries and int(entries[0].cycle) == self._first + cycle + 1:
                entry = entries.pop(0)
                record = session._hand_record(int(entry.hand))
                record.asked = entry.target
                record.version += 2.0
            session.step()
        return session
