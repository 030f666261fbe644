"""A hand of the operator: the point that it grasps, its target, and the force on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex
from weakref import ref

import numpy as np

from cardan.calls import explains
from cardan.errors import ModelError, SessionError
from cardan.interact import tables
from cardan.system import check
from cardan.system.state import FloatArray

if TYPE_CHECKING:
    from cardan.interact.session import Session


VERSION, ASKED = tables.Hand.version.first, tables.Hand.asked.first


@explains()
class Hand:
    """A hand on a body; made by :meth:`Session.grasp` and :meth:`Session.push`.

    ``target`` [m] and, of a pose, ``orientation`` (w, x, y, z), in world axes: set by the operator.  ``point`` [m]:
    where the grasped point is.  ``force`` [N] and ``torque`` [N m], at the grasped point, world axes: of the
    mechanism on the hand.  ``redundant``: components in which the joints fix it.
    A hand does not keep its session alive.
    """

    __slots__ = ("_floats", "_origin", "_record", "_session", "body", "kind", "local")

    def __init__(self, session: Session, record: tables.Hand, body: str, local: Any, kind: str) -> None:
        self._session: ref[Session] | None = ref(session)
        self._record = record
        self._floats: Any = record.as_floats.data  # faster than an array, number by number
        self._origin: tuple[float, float, float] = tuple(session._origin.tolist())
        self.body: str = body
        self.local: Any = local
        self.kind: str = kind

    @property
    def target(self) -> FloatArray:
        """Target of the grasped point [m] in world axes, shape (3,)."""
        return self._record.asked[:3] + self._origin

    @target.setter
    def target(self, value: Any) -> None:
        try:
            x, y, z = value
            x, y, z = float(x), float(y), float(z)
        except (TypeError, ValueError):
            raise ModelError(
                f"the target of the hand on {self.body!r} is {value!r}; it must be three numbers"
            ) from None
        if not abs(x) + abs(y) + abs(z) < tables.FARTHEST:
            raise ModelError(
                f"the target of the hand on {self.body!r} is {(x, y, z)}; it must be finite, "
                f"and nearer than {tables.FARTHEST:g} m"
            )
        session = None if self._session is None else self._session()
        if session is None or session._is_closed:
            self._check()
        f, (a, b, c) = self._floats, self._origin
        f[VERSION] += 1.0
        f[ASKED], f[ASKED + 1], f[ASKED + 2] = x - a, y - b, z - c
        f[VERSION] += 1.0

    @property
    def orientation(self) -> FloatArray:
        """Target orientation of the body, (w, x, y, z), shape (4,); only for a hand that holds a pose."""
        self._check_pose()
        return self._record.asked[3:].copy()

    @orientation.setter
    def orientation(self, value: Any) -> None:
        self._check_pose()
        self._check()
        turned = check.quaternion(value, f"the orientation of the hand on {self.body!r}")
        self._record.version += 1.0
        self._record.asked[3:] = turned
        self._record.version += 1.0

    def _check_pose(self) -> None:
        if self.kind != "pose":
            raise ModelError(f"the hand on {self.body!r} has no orientation; grasp the body with pose=True")

    @property
    def point(self) -> FloatArray:
        """Position of the grasped point [m] in world axes, shape (3,)."""
        return self._record.now[:3] + self._origin

    @property
    def force(self) -> FloatArray:
        """Force of the mechanism on the hand [N], world axes, shape (3,).

        In kinematic mode it is stiffness·(point − target).  Of a constraint in dynamic mode it is that of inverse
        dynamics at the end of the last cycle, in the directions that the joints leave free.
        """
        return self._record.force.copy()

    @property
    def torque(self) -> FloatArray:
        """Torque of the mechanism on the hand [N m] about the grasped point, world axes, shape (3,).

        It is zero unless the hand holds a pose.
        """
        return self._record.torque.copy()

    @property
    def redundant(self) -> int:
        """Number of components, of 3, or 6 of a pose, in which the joints and the limits that are reached fix the hand.

        Of a hand that is a constraint in a dynamic session, 0 until the first cycle; of other hands 0.  The hand
        does not follow its target in these components, and has no force there.
        """
        return int(self._record.redundant)

    @property
    def stiffness(self) -> float:
        """Stiffness of the hand [N/m]; rotations have the stiffness times the square of the body's size [N m/rad]."""
        return float(self._record.stiffness)

    @stiffness.setter
    def stiffness(self, value: Any) -> None:
        stiffness = check.positive(value, f"the stiffness of the hand on {self.body!r}")
        self._check()
        self._record.twist *= stiffness / self._record.stiffness
        self._record.stiffness = stiffness

    @property
    def damping(self) -> float:
        """Damping of a hand that is a spring [N s/m]; for rotations it is times the square of the body's size."""
        return float(self._record.damping)

    @damping.setter
    def damping(self, value: Any) -> None:
        damping = check.positive(value, f"the damping of the hand on {self.body!r}", zero=True)
        if self._check().mode == "kinematic":
            raise ModelError(f"the hand on {self.body!r} has no damping, because no time passes in a kinematic session")
        square = self._record.twist / self._record.stiffness
        self._record.damping, self._record.untwist = damping, damping * square

    def release(self) -> None:
        """Release the body; the hand cannot be used afterwards."""
        self._check()._release(self)

    def _check(self) -> Session:
        """The session of the hand, which is open."""
        if self._session is None:
            raise SessionError(f"the hand on {self.body!r} was released; grasp the body again")
        session = self._session()
        if session is None:
            raise SessionError(
                f"the session of the hand on {self.body!r} does not exist any more; keep it: session = m.session(state)"
            )
        session._check_open()
        return session

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise SessionError(
            f"the hand on {self.body!r} is part of a session, and cannot be copied or pickled; read its target, point "
            "and force"
        )

    def __repr__(self) -> str:
        return f"<hand on {self.body!r} ({self.kind}) at {np.round(self.point, 6).tolist()}>"
