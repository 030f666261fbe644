"""Queues between the network's thread and the thread that solves: both ends return at once."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Final, Protocol

from cardan.view.protocol import Command, Refused

MOST_WAITING: Final = 64
NEWEST_WINS: Final = ("drag", "drive")  # of these, a newer request replaces one that waits


class Inbox:
    """Commands of one tab.  Only the newest drag and the newest drive are kept."""

    def __init__(self) -> None:
        self._waiting: deque[Command] = deque()
        self._arrived = threading.Condition()
        self.is_closed = False

    def put(self, command: Command) -> None:
        """Add a command; raises Refused if too many wait."""
        with self._arrived:
            last = self._waiting[-1] if self._waiting else None
            if last is not None and command.do in NEWEST_WINS and last.do == command.do:
                self._waiting[-1] = command
            elif len(self._waiting) >= MOST_WAITING:
                raise Refused(f"{MOST_WAITING} requests wait already; this one was dropped")
            else:
                self._waiting.append(command)
            self._arrived.notify()

    def take(self, seconds: float | None) -> Command | None:
        """The next command; None if none arrives in time, or the tab was closed."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._waiting or self.is_closed, seconds)
            return self._waiting.popleft() if self._waiting and not self.is_closed else None

    def close(self) -> None:
        """Mark the box as closed, and wake the thread that waits."""
        with self._arrived:
            self.is_closed = True
            self._arrived.notify()


class Receiver(Protocol):
    """What takes the messages of a bench."""

    def post(self, message: str | bytes, *, new_scene: bool = False) -> None:
        """Add a message; new_scene: frames of the scene before are dropped."""

    def show(self, frame: bytes) -> None:
        """Add a frame; it replaces one that waits."""


class Outbox:
    """Messages to one tab, in the order in which they were posted.

    Only the newest frame is kept, so a slow page never falls behind.  No message overtakes the frame before it: a page
    that is told the freedoms has the pose to which they belong.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._waiting: deque[tuple[bool, str | bytes]] = deque()  # whether it is a frame, and the message
        self._filled = asyncio.Event()

    def post(self, message: str | bytes, *, new_scene: bool = False) -> None:
        """Add a message; new_scene: frames of the scene before are dropped."""
        with self._lock:
            if new_scene:
                self._drop_frame()
            self._waiting.append((False, message))
        self._wake()

    def show(self, frame: bytes) -> None:
        """Add a frame; it replaces one that waits."""
        with self._lock:
            self._drop_frame()
            self._waiting.append((True, frame))
        self._wake()

    def _drop_frame(self) -> None:
        for at, (is_frame, _) in enumerate(self._waiting):
            if is_frame:
                del self._waiting[at]
                return

    def _wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._filled.set)

    async def take(self) -> list[str | bytes]:
        """Everything that waits."""
        await self._filled.wait()
        self._filled.clear()
        with self._lock:
            found = [message for _, message in self._waiting]
            self._waiting.clear()
        return found
