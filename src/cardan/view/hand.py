"""The hand of one tab on one part: a session of the mechanism without its drivers, with pinned parts fixed."""

from __future__ import annotations

import logging
import math
import time
from typing import Any, Final

import numpy as np

from cardan.coordinates import verdict
from cardan.errors import ModelError
from cardan.interact.session import SessionStatus
from cardan.joints import Role
from cardan.mechanism import Mechanism
from cardan.system.state import State
from cardan.view import contact_marks
from cardan.view.protocol import GRASPED, SHORT, STOPPED, Frame

log = logging.getLogger("cardan")

MOST_STEPS: Final = 20  # of one request; each closes the joints, so a frame may be sent after any
MOST_SECONDS: Final = 4e-3  # the same: no step begins that would end later
STIFFNESS: Final = 1000.0  # [N/m] of a hand in kinematics: 1 N for each millimetre that the target is away
RATE: Final = 480.0  # [Hz] of the cycles of dynamics
TOLERANCE: Final = 1e-9  # of joints; only the residual of the verdict is used
REACHED: Final = 1e-4  # of the extent: a target that is farther is shown by the stretched arrow


class Drag:
    """is_dynamic: the hand pulls with a spring in dynamics; otherwise parts follow the hand as far as joints allow.
    drives: drivers are kept, constant, and :meth:`drive` sets them; otherwise they are left out.
    """

    def __init__(
        self, mechanism: Mechanism, state: State, pins: list[int], *, is_dynamic: bool = False, drives: bool = False
    ) -> None:
        self.is_dynamic, self.drives = is_dynamic, drives
        self._model = held(mechanism, state, pins, drives)
        self._extent = float(self._model.system.judged_length)
        if is_dynamic:
            self._session: Any = self._model.session(state, mode="dynamic", rate=RATE, hand="spring")
        else:
            self._session = self._model.session(state)
        self._grasp: Any = None
        self._grasped: tuple[int, tuple[float, ...]] | None = None  # number of the body, and point on it
        self._target = np.zeros(3)
        self._seconds = 0.0
        self._told = 0  # events of the session that were told
        self._has_contacts = bool(contact_marks.names(self.state))
        self._is_stuck = False
        self.lost: tuple[str, ...] = ()  # contacts that are lost, in words
        self.stops: tuple[str, ...] = ()  # names of the limits that are reached
        self.is_moving = False  # whether more steps would bring the hand nearer to its target

    def hold(self, body: int, point: tuple[float, float, float], target: tuple[float, float, float]) -> None:
        """Grasp a point [m] in body axes, if it is not held yet, and pull it towards a target [m] in world."""
        if self._grasped != (body, point):
            self.release()
            name = self._model.system.names[body]
            stiffness = None if self.is_dynamic else STIFFNESS  # in dynamics that of the session, by the masses
            self._grasp, self._grasped = (
                self._session.grasp(self._model[name], point, stiffness=stiffness),
                (body, point),
            )
        self._target[:] = target
        self._grasp.target = target

    def drive(self, driver: str, value: float) -> None:
        """Set the coordinate of a driver [m] or [rad]."""
        self._session.drive(driver, value)

    def step(self) -> Frame:
        """The state that follows the target, as far as MOST_SECONDS allow."""
        session = self._session
        if not self.is_dynamic:
            began = time.perf_counter()
            for count in range(1, MOST_STEPS + 1):
                status = session.step()
                self._seconds = time.perf_counter() - began
                if status != SessionStatus.MOVING or self._seconds * (count + 1) > MOST_SECONDS * count:
                    break
            self.is_moving = status == SessionStatus.MOVING
            self._is_stuck = status in (SessionStatus.STUCK, SessionStatus.FAILED)
            if self._is_stuck:
                log.debug("drag: %s", SessionStatus(status).name)
        return self._frame()

    def advance(self, seconds: float) -> None:
        """Let time pass in dynamics; a mechanism that is too large for real time moves slower."""
        began = time.perf_counter()
        for _ in range(round(seconds * RATE)):
            if self._session.step() == SessionStatus.FAILED:
                raise ModelError("the motion became too fast to compute; use undo, or pull with less force")
            self._seconds = time.perf_counter() - began
            if self._seconds > seconds:
                break

    @property
    def state(self) -> State:
        """The state now, of the copy without drivers and with pins."""
        found: State = self._session.state
        return found

    def _frame(self) -> Frame:
        session = self._session
        residual = float(session.residual)
        if not math.isfinite(residual):  # of a step that was not taken: judge the pose that was kept
            residual = self._judged()
        frame = Frame(session.coordinates, time=session.time, residual=residual, milliseconds=1e3 * self._seconds)
        if self._has_contacts:
            state = self.state
            rows, self.lost = contact_marks.rows(state)
            frame = frame._replace(contacts=rows)
            if self._is_stuck:
                self.lost += contact_marks.at_edges(state)
        if self.is_dynamic:
            frame = frame._replace(energy=session.energy)
        self._hear()
        if self._grasp is None:
            return frame
        point = np.asarray(self._grasp.point)
        is_short = float(np.linalg.norm(point - self._target)) > REACHED * self._extent
        flags = GRASPED | (SHORT if is_short else 0) | (STOPPED if self.stops else 0)
        return frame._replace(flags=flags, force=tuple(self._grasp.force), point=tuple(point))

    def _judged(self) -> float:
        """The largest residual of the present pose, evaluated afresh."""
        system, state = self._model.system, self.state
        angles = np.array([state.angles.get(key, 0.0) for key in system.counted_angles])
        return float(verdict.judge_system(system, state.coordinates, angles, TOLERANCE, state.time)[0].residual)

    def _hear(self) -> None:
        """Take note of limits that were reached or left."""
        events = self._session.events
        for event in events[self._told :]:
            if event.what == "limit reached" and event.name not in self.stops:
                self.stops = (*self.stops, event.name)
            elif event.what == "limit left":
                self.stops = tuple(name for name in self.stops if name != event.name)
        self._told = len(events)

    def release(self) -> None:
        """Release the grasped part, if there is one."""
        if self._grasp is not None:
            self._grasp.release()
            self._grasp = self._grasped = None

    def close(self) -> State:
        """The state at the end."""
        self.release()
        state = self.state
        self._session.close()
        return state


def held(mechanism: Mechanism, state: State, pins: list[int], drives: bool) -> Mechanism:
    """A copy that a hand can move: without drivers, or with constant ones; pinned parts are fixed where they are."""
    copy = mechanism.copy()
    for name, joint in mechanism.joints.items():
        if joint.kind.role is Role.DRIVER:
            coordinate = copy[name].ends[0]
            copy.remove(name)
            if drives:
                copy.drive(name, coordinate, coordinate.value(state))
    for body in pins:
        name = state.names[body]
        axes = state[name].matrix
        place = copy.ground.frame(state[name].position, z=axes[:, 2], x=axes[:, 0])
        copy.fixed(f"pin of {name}", place, copy[name].frame((0, 0, 0), z=(0, 0, 1), x=(1, 0, 0)))
    return copy


def prepare() -> None:
    """Compile or load the kernels of a drag, so that the first one does not wait."""
    m = Mechanism("lever")
    lever = m.body("lever", position=(0.1, 0.0, 0.0))
    m.revolute("hinge", m.ground.frame(), lever.frame())
    drag = Drag(m, m.assemble().state, [])
    drag.hold(0, (1.0, 0.0, 0.0), (0.9, 0.1, 0.0))
    drag.step()
    drag.close()
