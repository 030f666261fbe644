"""One tab of the workbench: its mechanism, its state, and the thread that solves.

The network's thread only fills the inbox and empties the outbox.  All solving is in this thread, so a slow solve delays
no other tab.  The thread of a closed tab ends after its current step.

Before each command the page is told what is done, and after it that it is done; the page shows this if it takes longer
than some tenths of a second.  What is compiled meanwhile is told in its place.
"""

from __future__ import annotations

import logging
import math
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from cardan.analysis.result import AssemblyResult
from cardan.cad.draft import Draft
from cardan.errors import CardanError, ModelError
from cardan.files import writer
from cardan.joints import Role
from cardan.kernel import announce
from cardan.mechanism import Mechanism
from cardan.system.state import FloatArray, State
from cardan.view import cad_draft, contact_marks
from cardan.view import clip as clips
from cardan.view.clip import Clip
from cardan.view.hand import Drag
from cardan.view.mailbox import Inbox, Receiver
from cardan.view.protocol import MOVING, SCENE, Command, Frame, Refused, write
from cardan.view.scene import scene as make_scene
from cardan.view.wiggle import wiggle

log = logging.getLogger("cardan")

THREAD: Final = "cardan workbench"  # name of the thread of a tab
PREPARING: Final = "cardan workbench kernels"  # name of the thread that loads the kernels of a drag
FRAMES_PER_SECOND: Final = 60
MOST_FRAMES: Final = 1200  # of a clip
MOST_UNDO: Final = 100
PROGRESS_SECONDS: Final = 0.1
LIVE_HZ: Final = 60.0
PULL_HZ: Final = 120.0  # steps towards a target that does not move; requests of a moving pointer come before
LONGEST_PULL: Final = 3.0  # [s] for which a hand goes on towards a target that does not move
COUNTED: Final = 1.0  # [rad] after which the turns of driven angles are counted; two parts make twice of it, below π
TOLD_SECONDS: Final = 0.05  # between two messages on values while a driver is set
LEAP: Final = 1.0  # [rad]: of a driver since its value was told; half a turn would be ambiguous
LONGEST_SOLVE: Final = 20.0  # [s] of an assembly; the page waits
SAVED: Final = 12  # digits of the poses of a saved model, of the extent and of 1; closed joints are closed to fewer

WORDS: Final = {  # what the page says of each command; the others come many times a second
    "load": "Opening {title}",
    "reload": "Reading {title} again",
    "drop": "Ending the drag",
    "pin": "Pinning the part",
    "play": "Computing the driven motion",
    "simulate": "Simulating",
    "live": "Preparing the simulation",
    "wiggle": "Computing a small motion",
    "stop": "Stopping",
    "at": "Taking the pose that is shown",
    "undo": "Undoing",
    "reset": "Returning to the first pose",
    "keep": "Keeping the pose",
    "pose": "Returning to the pose",
    "restore": "Closing the joints",
    "decide": "Closing the joints",
    "join": "Adding the joint",
    "assemble": "Closing the joints",
    "save": "Writing the model file",
}
HAND: Final = "Preparing the drag"
STOPPABLE: Final = ("load", "reload", "play", "simulate", "wiggle", "decide", "join", "assemble")

Source = Callable[[], Mechanism | Draft]  # a draft: its joints are accepted or refused in the page


class Stopped(Exception):
    """The user stopped a computation, or closed the tab."""


class Hint(CardanError):
    """Nothing was done, and nothing is wrong; the page says it for a short time."""


class Work(NamedTuple):
    """What is done for the page: in words; whether it can be stopped, and whether controls wait for its end."""

    text: str
    stops: bool
    waits: bool = True
    phase: str = ""


class Moment(NamedTuple):
    """What undo returns to; for CAD parts with the decisions on their joints."""

    mechanism: Mechanism
    draft: Draft | None
    state: State
    first: State
    residual: float
    is_closed: bool


class Bench:
    """items: what may be loaded, by name: a title, a function that builds it, and the duration of its motion [s].
    when_loaded: called when the first mechanism is shown, in the thread of the tab."""

    def __init__(
        self,
        items: dict[str, tuple[str, Source, float]],
        first: str,
        outbox: Receiver,
        when_loaded: Callable[[], None] = lambda: None,
    ) -> None:
        self.inbox = Inbox()
        self._items, self._outbox, self._when_loaded = items, outbox, when_loaded
        self._cancel = threading.Event()
        self._item = first
        self._mechanism: Mechanism | None = None
        self._draft: Draft | None = None
        self._state: State | None = None
        self._first: State | None = None
        self._drag: Drag | None = None
        self._is_holding = False
        self._is_live = False
        self._pins: set[int] = set()
        self._undo: deque[Moment] = deque(maxlen=MOST_UNDO)
        self._kept: dict[str, State] = {}
        self._clip: Clip | None = None
        self._clips = 0
        self._residual = math.nan
        self._is_closed = False  # every joint, when it was assembled
        self._turned: dict[str, float] = {}  # [rad] driven angles in a drag, with whole turns
        self._counted_at: FloatArray | None = None  # quaternions when they were counted last
        self._work: Work | None = None
        self._can_undo: bool | None = None  # as the page was told
        self._thread = threading.Thread(target=self._observed, name=THREAD, daemon=True)

    # -- the network's side --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread that solves."""
        self._thread.start()

    def open(self) -> State:
        """Show the first item in this thread, without a server; returns the pose that is shown."""
        self._attempt(Command("load", 0, {"item": self._item}))
        return self._now

    def put(self, command: Command) -> None:
        """Called by the network's thread: enqueue, and return."""
        if command.do in ("stop", "load", "reload"):
            self._cancel.set()
        self.inbox.put(command)

    def tell(self, title: str, text: str) -> None:
        """Show a message in the page; from any thread."""
        self._problem(title, text)

    @property
    def item(self) -> str:
        """Name of what is loaded."""
        return self._item

    def close(self) -> None:
        """End the thread; returns at once."""
        self._cancel.set()
        self.inbox.close()

    def join(self, seconds: float) -> bool:
        """Whether the thread has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    # -- the solving side ----------------------------------------------------------------------------------------------

    def _observed(self) -> None:
        with announce.watch(self._tell_compiling):
            self._run()

    def _run(self) -> None:
        listed = [{"name": name, "title": title} for name, (title, _, _) in self._items.items()]
        self._outbox.post(write("gallery", items=listed))
        self._attempt(Command("load", 0, {"item": self._item}))
        self._when_loaded()
        while not self.inbox.is_closed:
            began = time.perf_counter()
            command = self.inbox.take(self._patience(began))
            if command is not None:
                self._attempt(command)
            elif self._is_pulling():
                self._attempt(Command("pull", self._ack))
            if self._is_live and not self.inbox.is_closed:
                self._attempt(Command("tick"))
        self._end_drag()

    def _patience(self, now: float) -> float | None:
        """How long to wait for a command [s]: None for no limit, or until the next frame of a live simulation."""
        if self._is_live:
            return max(0.0, self._next_tick - now)
        return max(0.0, self._next_pull - now) if self._is_pulling() else None

    def _is_pulling(self) -> bool:
        """Whether a hand is on the way to its target."""
        return self._drag is not None and self._drag.is_moving and self._next_pull < self._pulled_until

    _next_tick = _next_pull = _pulled_until = _next_told = 0.0
    _told_drivers: Mapping[str, float] = MappingProxyType({})

    def _attempt(self, command: Command) -> None:
        """Do what a command asks; an error becomes a message in the page."""
        try:
            with self._doing(self._words(command)):
                if command.do not in ("load", "reload") and self._mechanism is None:
                    raise Refused("nothing is loaded; choose a mechanism")
                getattr(self, f"_do_{command.do}")(command)
        except Stopped:
            if self._mechanism is None:
                self._problem("Stopped", "Choose a mechanism from the list.", level="info", ack=command.seq)
        except CardanError as error:
            level = "info" if isinstance(error, Hint) else "error"
            self._problem(f"“{command.do}” was not possible", str(error), level=level, ack=command.seq)
        except Exception as error:  # an error of the library must not end the thread of the tab
            log.exception("the workbench failed at %r", command.do)
            self._problem(f"“{command.do}” failed", f"{type(error).__name__}: {error}", ack=command.seq)

    def _problem(self, title: str, text: str, *, level: str = "error", ack: int = 0) -> None:
        self._outbox.post(write("problem", title=title, text=text, level=level, ack=ack))

    # -- what is done, in words ----------------------------------------------------------------------------------------

    def _words(self, command: Command) -> Work | None:
        if command.do not in WORDS:
            return None
        title = self._items.get(command["item"], ("",))[0] if "item" in command.values else ""
        return Work(WORDS[command.do].format(title=f"“{title}”"), command.do in STOPPABLE)

    @contextmanager
    def _doing(self, work: Work | None) -> Iterator[None]:
        """Tell the page what is done, and when it is done; None for what is done many times a second."""
        if work is None:
            yield
            return
        before, self._work = self._work, work
        if work.stops:
            self._cancel.clear()
        self._tell_work()
        try:
            yield
        finally:
            self._work = before
            self._tell_work()
            if self._can_undo != bool(self._undo):
                self._can_undo = bool(self._undo)
                self._outbox.post(write("undo", possible=self._can_undo))

    def _tell_work(self, text: str | None = None, part: float | None = None) -> None:
        """text: in place of that of the work; part: done, between 0 and 1, None if it is not known."""
        work = self._work
        stops, waits = (work.stops and text is None, work.waits) if work else (False, False)
        said = text or (work and work.text + work.phase)
        self._outbox.post(write("progress", text=said, part=part, stoppable=stops, waits=waits))

    def _phase(self, what: str) -> None:
        """Tell the page a part of the work; raises Stopped if it is not wanted any longer."""
        if self._cancel.is_set() or self.inbox.is_closed:
            raise Stopped
        if self._work is not None:
            self._work = self._work._replace(phase=f": {what}")
            self._tell_work()

    def _tell_compiling(self, found: announce.Compiling | None) -> None:
        """Called in the thread that compiles, of this tab or of another one."""
        text = found and f"{found.text()[0].upper()}{found.text()[1:]}"
        if threading.current_thread() is self._thread:
            self._tell_work(text, (found.number - 1) / found.total if found and found.total > 1 else None)
        elif threading.current_thread().name == PREPARING:
            self._outbox.post(write("preparing", text=text and f"{text}; the first drag waits for it"))

    # -- loading -------------------------------------------------------------------------------------------------------

    def _do_reload(self, command: Command) -> None:
        """Load what has changed in its file; parts begin where they are, and the camera stays."""
        self._do_load(command, self._state)

    def _do_load(self, command: Command, before: State | None = None) -> None:
        item = command["item"]
        if item not in self._items:
            raise Refused(f"there is no {item!r}; choose one of the list")
        self._end_drag()
        _, build, _ = self._items[item]
        self._take(build(), before, command.seq, item)

    def _take(self, made: Mechanism | Draft, before: State | None, ack: int, item: str | None = None) -> None:
        """Assemble and show a mechanism; before: poses from which its parts begin; item: its name, if it is new.

        If this is stopped, or fails, the mechanism before stays.
        """
        self._phase("closing the joints")
        draft = made if isinstance(made, Draft) else None
        if isinstance(made, Draft):
            made.diagnose()  # marks what is redundant
            made = made.mechanism()
        mechanism: Mechanism = made
        result = mechanism.assemble(max_seconds=LONGEST_SOLVE)
        first = result.state
        if before is not None and result.ok:
            result = nearest(mechanism, result, before)
        state = result.state if np.isfinite(result.state.coordinates).all() else mechanism.state
        start = first if np.isfinite(first.coordinates).all() else state
        self._phase("drawing")
        if item is None or before is not None:
            self._outbox.post(write("reloading"))
        if item is not None:
            self._item = item
            self._undo.clear()
        self._show_scene(Moment(mechanism, draft, state, start, result.residual, result.ok), ack)
        if not result.ok:
            self._problem("It cannot be assembled", result.text(), ack=ack)
        self._tell_freedoms()

    def _show_scene(self, found: Moment, ack: int) -> None:
        """Show a mechanism from its scene on; the page forgets what it knew of the last one."""
        mechanism = found.mechanism
        self._mechanism, self._draft, self._state, self._first, self._residual, self._is_closed = found
        self._kept.clear()
        self._pins.clear()
        self._stops, self._lost = (), ()
        self._clip = None
        if self._is_live:
            self._is_live = self._is_live_by_hand = False
            self._outbox.post(write("live", on=False))
        self._outbox.post(struct.pack("<I", SCENE) + make_scene(mechanism, found.state).pack(), new_scene=True)
        title, _, duration = self._items[self._item]
        self._outbox.post(
            write(
                "model",
                item=self._item,
                title=title,
                drivers=self._drivers(found.state),
                coordinates=clips.describe(mechanism),
                loads=list(mechanism.loads),
                duration=duration,
                ok=found.is_closed,
            )
        )
        self._show(ack=ack)
        self._tell_values()
        if found.draft is not None:
            text = "every joint is closed" if found.is_closed else "not every joint can be closed; see the marks"
            self._outbox.post(write("desk", **cad_draft.described(found.draft, mechanism, text, found.is_closed)))

    # -- joints of CAD parts -------------------------------------------------------------------------------------------

    def _do_decide(self, command: Command) -> None:
        """Accept or refuse a proposed joint."""
        draft = self._drafted.copy()
        (draft.accept if command["accept"] else draft.refuse)(command["joint"])
        self._change(draft, command.seq)

    def _do_join(self, command: Command) -> None:
        """Add a joint on two picked faces."""
        self._end_drag()
        draft = self._drafted.copy()
        a, b = (draft.pick(command[f"part_{k}"], command[f"face_{k}"]) for k in "ab")
        made = draft.join(a, b, command["kind"], state=self._now)
        self._change(draft, command.seq)
        if made.misfit:
            self._problem("The parts do not fit", f"{made.name}: {made.misfit}", level="warning")

    def _do_assemble(self, command: Command) -> None:
        """Close the joints, from the places of the file."""
        self._change(self._drafted.copy(), command.seq, keeps=False)

    def _change(self, draft: Draft, ack: int, *, keeps: bool = True) -> None:
        """Show the mechanism of other decisions; keeps: parts begin where they are."""
        self._end_drag()
        before = self._moment
        self._take(draft, before.state if keeps else None, ack)
        self._undo.append(before)

    @property
    def _drafted(self) -> Draft:
        if self._draft is None:
            raise Refused("there are no CAD parts here; open a STEP file")
        return self._draft

    def _do_save(self, _: Command) -> None:
        """Give the page the model file, with the parts where they are."""
        self._end_drag()
        copy = self._model.copy()
        digits = SAVED - math.ceil(math.log10(float(self._model.system.judged_length)))
        for name, pose in self._now.items():
            copy[name].position = pose.position.round(digits) + 0.0  # without minus zero
            copy[name].orientation = pose.quaternion.round(SAVED) + 0.0
        self._outbox.post(write("file", name=f"{self._model.name}.cardan.toml", text=writer.dumps(copy)))

    def _drivers(self, state: State) -> list[dict[str, Any]]:
        """Every driver, with its value in a state and a range for its slider."""
        found = []
        for name, coordinate in drivers(self._model):
            value = coordinate.value(state)
            span = math.pi if coordinate.unit == "rad" else 0.5 * float(self._model.system.judged_length)
            lower, upper = limits_of(self._model, coordinate)
            found.append(
                {
                    "name": name,
                    "of": coordinate.joint,
                    "unit": coordinate.unit,
                    "value": value,
                    "lower": value - span if math.isinf(lower) else lower,
                    "upper": value + span if math.isinf(upper) else upper,
                    "coordinate": clips.describe_one(self._model, coordinate.joint, coordinate),
                }
            )
        return found

    @property
    def _model(self) -> Mechanism:
        assert self._mechanism is not None
        return self._mechanism

    @property
    def _now(self) -> State:
        assert self._state is not None
        return self._state

    @property
    def _moment(self) -> Moment:
        assert self._first is not None
        return Moment(self._model, self._draft, self._now, self._first, self._residual, self._is_closed)

    def _tell_freedoms(self) -> None:
        self._tell_work("Counting degrees of freedom")
        found = self._model.diagnose(self._now)
        motions = found.free_motions
        self._outbox.post(
            write(
                "freedoms",
                dof=found.dof,
                undriven=found.undriven,
                redundant=len(found.redundant),
                assembled=found.assembled,
                motions=None if motions is None else [motion.text() for motion in motions],
                text=found.text(),
            )
        )

    def _show(self, ack: int = 0, **values: Any) -> None:
        frame = Frame(self._now.coordinates, ack, time=self._now.time, residual=self._residual)
        if contact_marks.names(self._now):
            rows, lost = contact_marks.rows(self._now)
            frame = frame._replace(contacts=rows)
            if lost != self._lost:
                self._tell_stops((), lost, self._now)
        self._outbox.show(frame._replace(**values).pack())

    # -- the hand ------------------------------------------------------------------------------------------------------

    def _do_drag(self, command: Command) -> None:
        body = command["body"]
        if body >= len(self._now.names):
            raise Refused(f"there is no part {body}; there are {len(self._now.names)}")
        if body in self._pins:
            raise Hint(f"{self._now.names[body]!r} is pinned; release its pin to move it")
        push = command["push"] or self._is_live
        if not self._is_holding:
            self._undo.append(self._moment)
        if self._drag is None or self._drag.is_dynamic != push or self._drag.drives:
            self._end_drag()
            self._drag = self._new_hand(is_dynamic=push)
        if push and not self._is_live:
            self._is_live, self._next_tick = True, time.perf_counter()
            self._is_live_by_hand = True
        self._is_holding = True
        self._drag.hold(body, command["point"], command["target"])
        self._ack = command.seq
        if not push:
            self._follow()

    _ack = 0
    _is_live_by_hand = False

    def _new_hand(self, **how: bool) -> Drag:
        """A hand that holds nothing yet; controls do not wait for it, since the pointer may hold one of them."""
        with self._doing(Work(HAND, stops=False, waits=False)):
            return Drag(self._model, self._now, sorted(self._pins), **how)

    def _follow(self) -> None:
        """Begin to follow a new target."""
        self._send_drag(time.perf_counter() + LONGEST_PULL)

    def _do_pull(self, _: Command) -> None:
        """Go on towards the target of the last request."""
        self._send_drag(self._pulled_until)

    def _send_drag(self, until: float = 0.0) -> None:
        """Send a step of the hand; until: when it gives up a target that it does not reach."""
        assert self._drag is not None
        self._pulled_until = 0.0  # a failure ends the pull
        made = self._drag.step()
        self._next_pull = time.perf_counter() + 1.0 / PULL_HZ
        self._pulled_until = until
        self._residual = made.residual
        flags = made.flags | (MOVING if self._is_pulling() else 0)
        self._outbox.show(made._replace(ack=self._ack, flags=flags).pack())
        self._count_turns()
        if self._drag.drives and not self._is_pulling() and self._next_pull > self._next_told:
            self._next_told = self._next_pull + TOLD_SECONDS
            self._tell_values(self._as_own(self._drag.state))  # a driver may leap by whole turns
        if self._drag.stops != self._stops or self._drag.lost != self._lost:
            self._tell_stops(self._drag.stops, self._drag.lost, self._as_own(self._drag.state))

    def _tell_stops(self, names: tuple[str, ...], lost: tuple[str, ...], state: State) -> None:
        """Say which limits hold, and which contacts are lost."""
        self._stops, self._lost = names, lost
        self._outbox.post(write("stops", texts=[limit_text(self._model, name, state) for name in names] + [*lost]))

    _stops: tuple[str, ...] = ()
    _lost: tuple[str, ...] = ()

    def _do_tick(self, _: Command) -> None:
        """One frame of a live simulation."""
        now = time.perf_counter()
        if now < self._next_tick:
            return
        self._next_tick = max(self._next_tick + 1.0 / LIVE_HZ, now)
        if self._drag is None:
            self._drag = self._new_hand(is_dynamic=True)
        try:
            self._drag.advance(1.0 / LIVE_HZ)
            self._send_drag()
        except CardanError:
            self._is_live = self._is_live_by_hand = False
            self._end_drag()
            self._outbox.post(write("live", on=False))
            raise

    def _do_drop(self, command: Command) -> None:
        self._is_holding = False
        if self._drag is not None:
            self._drag.release()
            if self._is_live and not self._is_live_by_hand:
                return
            self._is_live = self._is_live_by_hand = False
            self._end_drag()
        self._show(ack=command.seq)
        self._tell_values()

    def _end_drag(self) -> None:
        """Take over the state of a drag, and free its workspace."""
        self._is_holding = False
        if self._drag is not None:
            self._count_turns(is_last=True)
            drag, self._drag = self._drag, None
            state = drag.close()
            if self._stops or self._lost:
                self._tell_stops((), (), self._now)
            if np.isfinite(state.coordinates).all():
                self._state = self._as_own(state)
            self._turned, self._counted_at = {}, None

    def _count_turns(self, *, is_last: bool = False) -> None:
        """Count the turns of driven angles in a drag, which leaves the drivers out."""
        assert self._drag is not None
        if self._drag.drives:
            return
        turns = self._drag.state.coordinates[:, 3:]
        before = self._now.coordinates[:, 3:] if self._counted_at is None else self._counted_at
        cosines = np.abs(np.sum(turns * before, axis=1))  # of half the angles
        if is_last or bool(np.any(cosines < math.cos(0.5 * COUNTED))):
            self._counted_at = turns.copy()
            state = self._as_own(self._drag.state)
            driven = [one for _, one in drivers(self._model) if one.counted is not None]
            self._turned = {one.counted.key: one.value(state) for one in driven}

    def _as_own(self, state: State) -> State:
        """A state of a copy (without drivers, with pins) as one of the mechanism."""
        own, names = self._model.system, state.names
        if names != own.names:
            raise ModelError("the state is of another mechanism")
        known = {**self._now.angles, **self._turned, **state.angles}
        angles = {key: known[key] for key in own.counted_angles if key in known}
        return State(
            own.names,
            own.index,
            state.coordinates.copy(),
            angles=angles or None,
            time=self._now.time,
            variables=state.variables,
        )

    def _tell_values(self, state: State | None = None) -> None:
        """Drivers and the coordinates of all joints in a state, or now: the page counts whole turns from these."""
        at = self._now if state is None else state
        values = [coordinate.value(at) for _, coordinate in clips.coordinates(self._model)]
        finite = [value if math.isfinite(value) else 0.0 for value in values]
        told = self._drivers(at)
        self._told_drivers = {driver["name"]: driver["value"] for driver in told}
        self._outbox.post(write("values", drivers=told, values=finite))

    def _do_pin(self, command: Command) -> None:
        body = command["body"]
        if body >= len(self._now.names):
            raise Refused(f"there is no part {body}; there are {len(self._now.names)}")
        self._end_drag()
        if command["on"]:
            self._pins.add(body)
        else:
            self._pins.discard(body)
        self._outbox.post(write("pins", bodies=sorted(self._pins)))

    def _do_drive(self, command: Command) -> None:
        """Set the coordinate of a driver; the other drivers stay where they are.

        The page counts turns from the values that it was told last.  A leap is therefore told at once.
        """
        named = dict(drivers(self._model))
        if command["driver"] not in named:
            raise Refused(f"there is no driver {command['driver']!r}; there are {', '.join(named) or 'none'}")
        if self._drag is None or not self._drag.drives:
            self._end_drag()
            self._undo.append(self._moment)
            self._drag = self._new_hand(drives=True)
        self._drag.drive(command["driver"], command["value"])
        if not abs(command["value"] - self._told_drivers.get(command["driver"], math.inf)) < LEAP:
            self._next_told = 0.0
        self._ack = command.seq
        self._follow()

    # -- motions -------------------------------------------------------------------------------------------------------

    def _do_play(self, command: Command) -> None:
        self._end_drag()
        if not drivers(self._model):
            raise Hint("it has no driver; drag a part, or simulate it")
        found = self._model.move(times_of(command["duration"]), self._now, progress=self._progress)
        self._send_clip(clips.from_motion(self._model, found), command.seq)

    def _do_simulate(self, command: Command) -> None:
        self._end_drag()
        duration = command["duration"]
        found = self._model.simulate(duration, self._now, times=times_of(duration), progress=self._progress)
        self._send_clip(clips.from_motion(self._model, found), command.seq)

    def _do_wiggle(self, command: Command) -> None:
        self._end_drag()
        self._send_clip(wiggle(self._model, self._now, command["freedom"], self._progress), command.seq)

    def _send_clip(self, clip: Clip, ack: int) -> None:
        self._clips += 1
        self._clip = clip
        self._outbox.post(clip.pack(self._clips))
        if not clip.ok:
            self._problem("The motion ends early", clip.text, level="warning", ack=ack)

    def _progress(self, part: float) -> None:
        if self._cancel.is_set() or self.inbox.is_closed:
            raise Stopped
        now = time.perf_counter()
        if now >= self._next_progress:
            self._next_progress = now + PROGRESS_SECONDS
            self._tell_work(part=float(part))

    _next_progress = 0.0

    def _do_stop(self, _: Command) -> None:
        self._cancel.clear()
        if self._is_live:
            self._is_live = self._is_live_by_hand = False
            self._end_drag()
            self._show()
            self._tell_values()

    def _do_live(self, command: Command) -> None:
        self._end_drag()
        self._is_live, self._is_live_by_hand = command["on"], False
        if self._is_live:
            self._undo.append(self._moment)
            self._next_tick = time.perf_counter()
        else:
            self._show(ack=command.seq)
            self._tell_values()

    def _do_at(self, command: Command) -> None:
        """Go on from a frame of the last clip."""
        if self._clip is None or command["clip"] != self._clips or command["index"] >= len(self._clip.states):
            raise Refused("that motion is no longer here; play it again")
        self._end_drag()
        self._undo.append(self._moment)
        self._state = self._as_own(self._clip.states[command["index"]])

    # -- states --------------------------------------------------------------------------------------------------------

    def _do_undo(self, command: Command) -> None:
        self._end_drag()
        if not self._undo:
            raise Hint("there is nothing to undo")
        before = self._undo.pop()
        if before.mechanism is self._mechanism:
            self._residual = before.residual
            self._set(before.state, command.seq)
        else:
            self._outbox.post(write("reloading"))
            self._show_scene(before, command.seq)
            self._tell_freedoms()

    def _do_reset(self, command: Command) -> None:
        self._end_drag()
        assert self._first is not None
        self._undo.append(self._moment)
        self._set(self._first, command.seq)

    def _do_keep(self, command: Command) -> None:
        self._end_drag()
        self._kept[command["name"]] = self._now
        self._outbox.post(write("poses", names=list(self._kept)))

    def _do_pose(self, command: Command) -> None:
        self._end_drag()
        if command["name"] not in self._kept:
            raise Refused(f"no pose is named {command['name']!r}")
        self._undo.append(self._moment)
        self._set(self._kept[command["name"]], command.seq)

    def _do_restore(self, command: Command) -> None:
        """Poses that the page had before the server was restarted; the joints are closed again."""
        poses: FloatArray = command["poses"]
        if poses.shape != self._now.coordinates.shape:
            raise Refused(f"{len(poses)} poses were given; there are {len(self._now.names)} parts")
        self._end_drag()
        start = self._now.moved({name: (row[:3], row[3:]) for name, row in zip(self._now.names, poses, strict=True)})
        free = without_drivers(self._model)
        result = free.assemble(start, max_seconds=LONGEST_SOLVE)
        if result.ok:
            self._residual = result.residual
            self._set(self._as_own(result.state), command.seq)

    def _set(self, state: State, ack: int) -> None:
        self._state = state
        self._show(ack=ack)
        self._tell_values()


def drivers(mechanism: Mechanism) -> list[tuple[str, Any]]:
    """Name and coordinate of every driver."""
    return [(name, joint.ends[0]) for name, joint in mechanism.joints.items() if joint.kind.role is Role.DRIVER]


def without_drivers(mechanism: Mechanism) -> Mechanism:
    """A copy without drivers, which a hand can move."""
    copy = mechanism.copy()
    for name, _ in drivers(mechanism):
        copy.remove(name)
    return copy


def nearest(mechanism: Mechanism, first: AssemblyResult, before: State) -> AssemblyResult:
    """The assembly that is reached from the poses of an earlier state; the first one if there is none."""
    kept = {
        name: (before[name].position, before[name].quaternion) for name in first.state.names if name in before.names
    }
    found = mechanism.assemble(first.state.moved(kept), max_seconds=LONGEST_SOLVE)
    return found if found.ok else first


def limits_of(mechanism: Mechanism, coordinate: Any) -> tuple[float, float]:
    """Bounds of a coordinate, infinite where there are none."""
    lower, upper = -math.inf, math.inf
    for joint in mechanism.joints.values():
        if joint.kind.role is Role.LIMIT and joint.ends[0].features == coordinate.features:
            given = dict(joint.parameters)
            lower, upper = max(lower, given.get("lower", lower)), min(upper, given.get("upper", upper))
    return lower, upper


def limit_text(mechanism: Mechanism, name: str, state: State) -> str:
    """Which bound of a limit holds in a state, in words: "hinge angle is at its upper limit, 17.2° (stop)"."""
    texts, value = limit_texts(mechanism, name), mechanism[name].ends[0].value(state)
    return min(texts, key=lambda one: abs(one[0] - value))[1]


def limit_texts(mechanism: Mechanism, name: str) -> list[tuple[float, str]]:
    """The finite bounds of a limit [m or rad], the lower one first, with words for a limit that is there."""
    limit = mechanism[name]
    coordinate, given = limit.ends[0], dict(limit.parameters)
    bounds = {side: float(given[side]) for side in ("lower", "upper") if math.isfinite(given.get(side, math.inf))}
    scale, unit = (180.0 / math.pi, "°") if coordinate.unit == "rad" else (1e3, " mm")
    of = " ".join(filter(None, (coordinate.joint, coordinate.name)))
    numbers = {side: f"{scale * bound:.4g}{unit}".replace("-", "−") for side, bound in bounds.items()}
    return [(bound, f"{of} is at its {side} limit, {numbers[side]} ({name})") for side, bound in bounds.items()]


def times_of(duration: float) -> FloatArray:
    """Times of a clip [s], at most MOST_FRAMES."""
    count = max(2, min(MOST_FRAMES, round(duration * FRAMES_PER_SECOND)))
    return np.linspace(0.0, duration, count + 1)
