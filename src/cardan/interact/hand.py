"""A hand of the operator: the point that it grasps, its target, and the force on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import numpy as np

from cardan.errors import ModelError, SessionError
from cardan.interact import abi
from cardan.system import check
from cardan.system.state import FloatArray

if TYPE_CHECKING:
    from cardan.interact.session import Session


class Hand:
    """A hand on a body; made by :meth:`Session.grasp` and :meth:`Session.push`.

    ``target`` [m] and, of a pose, ``orientation`` (w, x, y, z), in world axes: set by the operator.  ``point`` [m]:
    where the grasped point is.  ``force`` [N] and ``torque`` [N m], at the grasped point, world axes: of the
    mechanism on the hand.
    """

    __slots__ = ("_floats", "_origin", "_row", "_session", "body", "kind", "local")

    def __init__(self, session: Session, row: FloatArray, body: str, local: Any, kind: str) -> None:
        self._session: Session | None = session
        self._row = row
        self._floats: Any = row.data  # faster than an array, number by number
        self._origin: tuple[float, float, float] = tuple(session._origin.tolist())
        self.body: str = body
        self.local: Any = local
        self.kind: str = kind

    @property
    def target(self) -> FloatArray:
        """Target of the grasped point [m] in world axes, shape (3,)."""
        return self._vector(abi.ASKED) + self._origin

    @target.setter
    def target(self, value: Any) -> None:
        try:
            x, y, z = value
            x, y, z = float(x), float(y), float(z)
        except (TypeError, ValueError):
            raise ModelError(
                f"the target of the hand on {self.body!r} is {value!r}; it must be three numbers"
            ) from None
        if not abs(x) + abs(y) + abs(z) < abi.FARTHEST:
            raise ModelError(
                f"the target of the hand on {self.body!r} is {(x, y, z)}; it must be finite, "
                f"and nearer than {abi.FARTHEST:g} m"
            )
        if self._session is None or self._session._is_closed:
            self._check()
        f, (a, b, c) = self._floats, self._origin
        f[abi.VERSION] += 1.0
        f[abi.ASKED], f[abi.ASKED + 1], f[abi.ASKED + 2] = x - a, y - b, z - c
        f[abi.VERSION] += 1.0

    @property
    def orientation(self) -> FloatArray:
        """Target orientation of the body, (w, x, y, z), shape (4,); only for a hand that holds a pose."""
        self._check_pose()
        return self._row[abi.ASKED + 3 : abi.ASKED + 7].copy()

    @orientation.setter
    def orientation(self, value: Any) -> None:
        self._check_pose()
        self._check()
        turned = check.quaternion(value, f"the orientation of the hand on {self.body!r}")
        f = self._floats
        f[abi.VERSION] += 1.0
        for i, e in enumerate(turned):
            f[abi.ASKED + 3 + i] = e
        f[abi.VERSION] += 1.0

    def _check_pose(self) -> None:
        if self.kind != "pose":
            raise ModelError(f"the hand on {self.body!r} has no orientation; grasp the body with pose=True")

    @property
    def point(self) -> FloatArray:
        """Position of the grasped point [m] in world axes, shape (3,)."""
        return self._vector(abi.NOW) + self._origin

    @property
    def force(self) -> FloatArray:
        """Force of the mechanism on the hand [N], world axes, shape (3,).

        In kinematic mode it is stiffness·(point − target).
        """
        return self._vector(abi.FORCE)

    @property
    def torque(self) -> FloatArray:
        """Torque of the mechanism on the hand [N m] about the grasped point, world axes, shape (3,).

        It is zero unless the hand holds a pose.
        """
        return self._vector(abi.TORQUE)

    @property
    def stiffness(self) -> float:
        """Stiffness of the hand [N/m]; rotations have the stiffness times the square of the body's size [N m/rad]."""
        return float(self._row[abi.STIFFNESS])

    @stiffness.setter
    def stiffness(self, value: Any) -> None:
        given = check.positive(value, f"the stiffness of the hand on {self.body!r}")
        self._check()
        self._row[abi.TWIST] *= given / self._row[abi.STIFFNESS]
        self._row[abi.STIFFNESS] = given

    @property
    def damping(self) -> float:
        """Damping of a hand that is a spring [N s/m]; for rotations it is times the square of the body's size."""
        return float(self._row[abi.DAMPING])

    @damping.setter
    def damping(self, value: Any) -> None:
        given = check.positive(value, f"the damping of the hand on {self.body!r}", zero=True)
        self._check()
        if self._session is not None and self._session.mode == "kinematic":
            raise ModelError(f"the hand on {self.body!r} has no damping, because no time passes in a kinematic session")
        square = self._row[abi.TWIST] / self._row[abi.STIFFNESS]
        self._row[abi.DAMPING], self._row[abi.UNTWIST] = given, given * square

    def release(self) -> None:
        """Release the body; the hand cannot be used afterwards."""
        self._check()
        assert self._session is not None
        self._session._release(self)

    def _check(self) -> None:
        if self._session is None:
            raise SessionError(f"the hand on {self.body!r} was released; grasp the body again")
        self._session._check_open()

    def _vector(self, at: int) -> FloatArray:
        found: FloatArray = self._row[at : at + 3].copy()
        return found

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise SessionError(
            f"the hand on {self.body!r} is part of a session, and cannot be copied or pickled; read its target, point "
            "and force"
        )

    def __repr__(self) -> str:
        return f"<hand on {self.body!r} ({self.kind}) at {np.round(self.point, 6).tolist()}>"
