"""The kinematic range of a coordinate: followed along the free motions of a mechanism to where it has an extreme.

With J of the joints (and of the limits that hold), g the gradient of the coordinate c, and P the projector onto J δ = 0
in the metric of the bodies, c increases fastest along P g.  The path follows P g, combined with the previous direction
(Polak–Ribière), until the slope g·t changes its sign; there the zero of the slope is found.  At an extreme P g = 0, so
an error ε of the pose changes c by ε² only.

An angle has no end if all bodies are again where they were a whole turn before.  If they are not (a screw, a gear), and
if there is one freedom, the path is followed over MOST_TURNS.  It is followed further, and a displacement beyond FAR,
as long as each turn leads nearer to a limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np

from cardan import joints
from cardan.analysis.contact_ends import lost_contacts
from cardan.dynamics.build import metric_equations
from cardan.dynamics.equations import Equations
from cardan.errors import ModelError
from cardan.joints import Coordinate
from cardan.joints.making import make
from cardan.joints.ownership import chosen_coordinate
from cardan.system import check
from cardan.system.drawing import Drawing
from cardan.system.state import FloatArray

STEP: Final = 0.05  # [rad], and of the extent: of one step along the path
LONG_ROTATION: Final = 0.8  # [rad]: the longest step along which gradients are constant
LONG_WAY: Final = 50.0  # of the extent: the longest such step
STRAIGHT: Final = 0.05  # relative: a gradient that changes by less is constant
LEAST_STEP: Final = 1e-9  # a shorter step means that the joints cannot be closed
FLAT: Final = 1e-8  # slope of an extreme, relative to |g|
MOST_TURNS: Final = 64  # an angle that changes by more, and comes no nearer to a limit, has no end
FAR: Final = 1e3  # of the extent: a displacement that changes by more, and comes no nearer to a limit, has no end
SAME: Final = 1e-6  # [rad], and of the extent: poses and coordinates that differ by less are the same
STEPS: Final = 4000  # along the path, at most
ROOT_STEPS: Final = 60  # of the search for a zero, at most
CLOSED: Final = 1e-13  # residual [rad], or of the extent: rounding
LEAST_PART: Final = 1e-13  # of a step: to this the end of a contact is located
CUT: Final = 1e-10  # of the largest singular value: smaller ones are redundant rows


class Extreme(NamedTuple):
    """One end of a range: the value [m or rad], and why it ends.

    The reason is "dead point", "limit …", "end of contact '…'", or "no end" (value ±inf).
    """

    value: float
    reason: str


class Range(NamedTuple):
    """What a coordinate can be: ``lower`` and ``upper`` [m or rad], and why it ends there.

    It is explored from the pose of the session by steepest ascent, so with several freedoms each end is a local one.
    It also ends where a contact or a path does, even if other freedoms could go on from there.
    """

    lower: float
    upper: float
    reasons: tuple[str, str]
    unit: str


class Explorer:
    """The joints of a mechanism with one more row, that of the coordinate."""

    def __init__(self, equations: Equations, q: FloatArray, floats: FloatArray, name: str) -> None:
        """name: of the limit without bounds that stands for the coordinate."""
        e = equations
        self.system = e.system
        self.problem = e.problem.with_floats(floats)
        stops = e.stop_table["row"].tolist()
        soft = {*stops, *e.joint_inertias.rows.tolist()}
        self.hard = np.array([row for row in sorted(map(int, e.equations)) if row not in soft], dtype=np.int64)
        fixed = [k for k, stop in enumerate(e.stops) if stop.lower == stop.upper]
        self.stops = [(stop, row) for stop, row in zip(e.stops, stops, strict=True) if stop.name != name]
        self.held = {self.stops[k][1]: self.stops[k][0].lower for k in range(len(self.stops)) if k in fixed}
        (self.row,) = [row for stop, row in zip(e.stops, stops, strict=True) if stop.name == name]
        self.scale = 1.0 / np.sqrt(e.metric.ravel())
        self.length = e.system.judged_length
        self.weights = e.problem.scales[: e.problem.rows]
        self.q = q
        self.is_angle = bool(self.weights[self.row] == 1.0)

    def extreme(self, sign: float) -> Extreme:
        """The end in one direction."""
        held = dict(self.held)
        q = self._off_stationary(self.q.copy(), sign, held)
        direction, gradient, reach = None, None, 1.0
        lap, laps = q, 0  # the pose where a lap begins, and the number of laps
        lap_length = 2.0 * np.pi if self.is_angle else FAR * self.length
        frozen: set[int] | None = None  # limits whose coordinate is held, because the range goes on without it
        for _ in range(STEPS):
            if self._release(q, sign, held, frozen or set()):
                direction = None
            slope, rows = self._slope(q, sign, held)
            size = float(np.linalg.norm(slope))
            whole = float(np.linalg.norm(sign * self._gradient(q)))
            if size <= FLAT * whole:
                if frozen:
                    held = {row: value for row, value in held.items() if row not in frozen}
                    frozen, direction = set(), None
                    continue
                names = [stop.name for stop, row in self.stops if row in held and row not in self.held]
                return Extreme(self._value(q), f"limit {names[-1]}" if names else "dead point")
            direction = self._conjugate(direction, gradient, slope, rows)
            gradient = slope
            t = direction / np.linalg.norm(direction)
            step = reach * self._step(t)
            moved, passed = self._advance(q, t, step, sign, held)
            is_straight = moved is not None and passed is None and self._is_straight(q, slope, moved, sign, held)
            if reach > 1.0 and not is_straight:
                step = self._step(t)
                moved, passed = self._advance(q, t, step, sign, held)
            reach = min(2.0 * reach, self._longest(t)) if is_straight else 1.0
            if moved is None:
                return Extreme(self._value(q), self._contact_end(q, t))
            ahead = self._value(lap) + sign * lap_length
            if passed is None and sign * (self._value(moved) - ahead) >= 0.0:
                moved = self._at_value(ahead, q, t, step, moved, held)
                laps += 1
                is_one = self._freedoms(slope, rows) == 1
                nearer = self._nearer(lap, moved, held)
                may_end = self.is_angle and is_one and laps < MOST_TURNS and not self._is_same(lap, moved)
                if not nearer and not may_end:
                    return Extreme(sign * np.inf, "no end")
                if frozen is None and nearer and not is_one:
                    kept = self._kept(moved, sign, held, nearer, whole)
                    frozen, direction = set(kept), None
                    held |= kept
                lap = moved
            q = moved
            if passed is not None:
                held[passed] = self._bound(passed, q)
                q = self._closed(q, held)
                direction = None
        text = f"no end of the range was found in {STEPS} steps"
        raise ModelError(f"{text}; limit the other freedoms of the mechanism, or begin nearer to the end")

    def _conjugate(self, last: Any, gradient: Any, slope: FloatArray, rows: FloatArray) -> FloatArray:
        """The direction of the next step: conjugate to the last one, or along the slope."""
        if last is None or gradient is None:
            return slope
        mixed = max(0.0, float(slope @ (slope - gradient)) / float(gradient @ gradient))
        direction = slope + mixed * self._project(last, rows)
        return slope if float(direction @ slope) <= 0.0 else direction

    def _kept(
        self, q: FloatArray, sign: float, held: dict[int, float], nearer: Iterable[int], whole: float
    ) -> dict[int, float]:
        """Limits that come nearer in each lap, with their coordinates, if the range goes on without these."""
        kept = {row: float(self.problem.residual(q)[row]) for row in nearer}
        goes_on = np.linalg.norm(self._slope(q, sign, held | kept)[0]) > FLAT * whole
        return kept if goes_on else {}

    def _is_straight(
        self, q: FloatArray, slope: FloatArray, moved: FloatArray, sign: float, held: dict[int, float]
    ) -> bool:
        """Whether the gradients of the coordinate and of the limits are nearly the same in two poses."""
        rows = [self.row, *(row for _, row in self.stops)]
        slopes = slope, self._slope(moved, sign, held)[0]
        before, after = (
            np.vstack([own, self.problem.jacobian(x)[1][rows] * self.scale])
            for own, x in zip(slopes, (q, moved), strict=True)
        )
        sizes = np.linalg.norm(before, axis=1) + np.linalg.norm(after, axis=1)
        return bool((np.linalg.norm(after - before, axis=1) <= STRAIGHT * sizes).all())

    def _freedoms(self, slope: FloatArray, rows: FloatArray) -> int:
        """Number of freedoms of the bodies that move along the slope, if the others are fixed."""
        moving = np.repeat(np.abs(slope.reshape(-1, 6)).max(axis=1) > FLAT * np.abs(slope).max(), 6)
        return int(moving.sum() - np.linalg.matrix_rank(rows[:, moving], tol=CUT))

    def _is_same(self, lap: FloatArray, q: FloatArray) -> bool:
        """Whether all bodies are at the same place in two poses."""
        before, after = (x[: 7 * len(self.system.names)].reshape(-1, 7) for x in (lap, q))
        signs = np.sign((before[:, 3:] * after[:, 3:]).sum(axis=1, keepdims=True))
        away = np.hstack([(after[:, :3] - before[:, :3]) / self.length, after[:, 3:] - signs * before[:, 3:]])
        return bool(np.abs(away).max(initial=0.0) <= SAME)

    def _nearer(self, lap: FloatArray, q: FloatArray, held: dict[int, float]) -> list[int]:
        """Rows of the limits that do not hold, and came nearer to a bound between two poses."""
        change = (self.problem.residual(q) - self.problem.residual(lap)) * self.weights
        bounds = {row: stop.upper if change[row] > 0.0 else stop.lower for stop, row in self.stops}
        return [row for row in bounds if row not in held and abs(change[row]) > SAME and np.isfinite(bounds[row])]

    def _at_value(
        self, value: float, q: FloatArray, t: FloatArray, step: float, moved: FloatArray, held: dict[int, float]
    ) -> FloatArray:
        """The pose within a step along t at which the coordinate has a value; ``moved`` if the step was shortened."""
        first, end = self._value(q), self._moved(q, t, step, held)
        if end is None or (self._value(end) - value) * (value - first) < 0.0:
            return moved

        def beyond(s: float) -> float:
            found = self._moved(q, t, s, held)
            return (self._value(found) - value) / (value - first) if found is not None else 1.0

        found = self._moved(q, t, self._root(beyond, step), held)
        return moved if found is None else found

    def _off_stationary(self, q: FloatArray, sign: float, held: dict[int, float]) -> FloatArray:
        """A pose beside a stationary one where the coordinate goes on; else the same pose.

        At a dead point P g = 0 for both directions, and only one of them ends there.
        """
        slope, rows = self._slope(q, sign, held)
        if np.linalg.norm(slope) > FLAT * np.linalg.norm(self._gradient(q)):
            return q
        free = np.linalg.svd(rows)[2][len(rows) :]  # orthogonal to the rows
        for t in (*free, *-free):
            moved = self._moved(q, t, self._step(t), held)
            if moved is None or any(self._beyond(moved, stop, row) > 0.0 for stop, row in self.stops):
                continue
            size = 1.0 if self.is_angle else self.length
            if sign * (self._value(moved) - self._value(q)) > LEAST_STEP * size:
                return moved
        return q

    def _advance(
        self, q: FloatArray, t: FloatArray, step: float, sign: float, held: dict[int, float]
    ) -> tuple[FloatArray | None, int | None]:
        """A step along t, shortened to where the slope vanishes or a limit is reached; that limit's row, or None.

        No pose, if no step along t closes.
        """
        least = LEAST_PART * step if self.system.has_contacts else LEAST_STEP
        moved, failed = self._moved(q, t, step, held), step
        while moved is None and step > least:
            failed, step = step, 0.5 * step
            moved = self._moved(q, t, step, held)
        if moved is None:
            return None, None
        while self.system.has_contacts and failed - step > least:  # a contact ends between both
            middle = 0.5 * (step + failed)
            further = self._moved(q, t, middle, held)
            if further is None:
                failed = middle
            else:
                step, moved = middle, further
        crossed = [row for stop, row in self.stops if row not in held and self._beyond(moved, stop, row) > 0.0]
        if crossed:
            found, row = min((self._crossing(q, t, row, step, held), row) for row in crossed)
            return self._moved(q, t, found, held), row
        if self._along(moved, t, sign, held) < 0.0:
            found = self._root(lambda s: -self._along(self._moved(q, t, s, held), t, sign, held), step)
            moved = self._moved(q, t, found, held)
        return moved, None

    def _crossing(self, q: FloatArray, t: FloatArray, row: int, step: float, held: dict[int, float]) -> float:
        """Length of the step along t that reaches a limit."""
        stop, end = self._stop(row), self._moved(q, t, step, held)
        assert end is not None
        is_upper = self.problem.residual(end)[row] > stop.upper  # the other bound may hold at the beginning

        def beyond(s: float) -> float:
            moved = self._moved(q, t, s, held)
            assert moved is not None
            c = float(self.problem.residual(moved)[row])
            return float(c - stop.upper if is_upper else stop.lower - c)

        return self._root(beyond, step)

    def _release(self, q: FloatArray, sign: float, held: dict[int, float], frozen: set[int]) -> bool:
        """Release a limit that the coordinate leaves on its way; whether there was one.  frozen: not released."""
        for row in [row for row in held if row not in self.held and row not in frozen]:
            others = {other: value for other, value in held.items() if other != row}
            slope, _ = self._slope(q, sign, others)
            normal = self.problem.jacobian(q)[1][row] * self.scale
            inward = -float(slope @ normal) if held[row] == self._stop(row).upper else float(slope @ normal)
            if inward > FLAT * np.linalg.norm(normal) * np.linalg.norm(self._gradient(q)):
                del held[row]
                return True
        return False

    def _sizes(self, t: FloatArray) -> FloatArray:
        """The largest velocity, relative to the extent, and the largest angular velocity along t, shape (2,)."""
        return np.abs(t * self.scale).reshape(-1, 2, 3).max(axis=(0, 2)) / (self.length, 1.0)

    def _step(self, t: FloatArray) -> float:
        """Length of a whole step along t."""
        return float(STEP / self._sizes(t).max())

    def _longest(self, t: FloatArray) -> float:
        """Length of the longest step along t, in whole steps."""
        sizes = self._sizes(t)
        return float(sizes.max() / STEP / max(sizes[0] / LONG_WAY, sizes[1] / LONG_ROTATION))

    def _contact_end(self, q: FloatArray, t: FloatArray) -> str:
        """The contacts that end along t, as a reason; a ModelError if there are none."""
        names = lost_contacts(self.system, q, self._step(t) * t * self.scale)
        if not names:
            raise ModelError("the joints cannot be kept closed along the range; begin in a regular pose")
        return f"end of contact {', '.join(map(repr, names))}"

    def _root(self, function: Any, upper: float) -> float:
        """Zero of a function that increases through it between 0 and upper (Illinois)."""
        a, b = 0.0, upper
        fa, fb = function(a), function(b)
        for _ in range(ROOT_STEPS):
            c = b - fb * (b - a) / (fb - fa) if fb != fa else 0.5 * (a + b)
            fc = function(c)
            if fc * fb <= 0.0:
                a, fa = b, fb
            else:
                fa *= 0.5
            b, fb = c, fc
            if abs(b - a) <= 1e-14 * upper or fb == 0.0:
                break
        return float(b)

    def _along(self, q: FloatArray | None, t: FloatArray, sign: float, held: dict[int, float]) -> float:
        """Slope of the coordinate along the projection of t at a pose."""
        assert q is not None
        slope, _ = self._slope(q, sign, held)
        return float(slope @ t)

    def _jacobian(self, q: FloatArray, held: dict[int, float]) -> tuple[FloatArray, FloatArray]:
        """Residuals and scaled rows of joints and of limits that hold."""
        f, J = self.problem.jacobian(q)
        rows = [*self.hard, *held]
        r = np.array([f[row] - held.get(row, 0.0) for row in rows])
        w = self.weights[rows]
        return r * w, J[rows] * w[:, None] * self.scale

    def _gradient(self, q: FloatArray) -> FloatArray:
        _, J = self.problem.jacobian(q)
        return J[self.row] * self.scale

    def _slope(self, q: FloatArray, sign: float, held: dict[int, float]) -> tuple[FloatArray, FloatArray]:
        """±P g, and an orthonormal basis of the rows."""
        _, J = self._jacobian(q, held)
        _, s, v = np.linalg.svd(J, full_matrices=False)
        rows = v[s > CUT * s.max(initial=0.0)] if s.size else v
        return self._project(sign * self._gradient(q), rows), rows

    def _project(self, x: FloatArray, rows: FloatArray) -> FloatArray:
        return x - rows.T @ (rows @ x)

    def _moved(self, q: FloatArray, t: FloatArray, step: float, held: dict[int, float]) -> FloatArray | None:
        """The pose after a step, closed; None if it does not close."""
        return self._closed(self.problem.retract(q, step * t * self.scale), held)

    def _closed(self, q: FloatArray, held: dict[int, float]) -> Any:
        """The pose with closed joints; None if they do not close, or a contact has ended (it has no coordinates)."""
        for _ in range(12):
            r, J = self._jacobian(q, held)
            if not (np.isfinite(r).all() and np.isfinite(J).all()):
                return None
            if np.abs(r).max(initial=0.0) <= CLOSED:
                return q
            shift = np.linalg.lstsq(J, -r, rcond=CUT)[0]
            if not np.abs(shift).max() < 1.0 * max(1.0, self.length):
                return None
            q = self.problem.retract(q, shift * self.scale)
        r, _ = self._jacobian(q, held)
        return q if np.abs(r).max(initial=0.0) <= 1e3 * CLOSED else None

    def _value(self, q: FloatArray) -> float:
        return float(self.problem.residual(q)[self.row])

    def _beyond(self, q: FloatArray | None, stop: Any, row: int) -> float:
        assert q is not None
        c = float(self.problem.residual(q)[row])
        return float(max(stop.lower - c, c - stop.upper))

    def _bound(self, row: int, q: FloatArray) -> float:
        stop = self._stop(row)
        c = float(self.problem.residual(q)[row])
        return float(stop.lower if abs(c - stop.lower) < abs(c - stop.upper) else stop.upper)

    def _stop(self, row: int) -> Any:
        """The limit that has a row."""
        return next(stop for stop, own in self.stops if own == row)


def probed(drawing: Drawing, of: Any, axis: Any) -> tuple[str, Equations, str]:
    """The metric equations with one more coordinate: the name of a limit without bounds, and the unit.

    of: a joint, its name, or a coordinate, and the name of one of several; or a hand, and a direction.
    """
    if drawing.contents.rate_rows:
        rows = ", ".join(map(repr, drawing.contents.rate_rows))
        raise ModelError(
            f"range cannot consider rate rows ({rows}), because they exclude no pose; explore without them"
        )
    name = "range"
    while drawing.contents.has(name):
        name += "'"
    if hasattr(of, "local"):
        frame = drawing.contents.bodies[of.body].frame(of.local, z=axis)
        chosen = joints.coordinate(drawing.contents.ground.frame(z=axis), frame, "displacement")
    elif isinstance(of, str):
        chosen = chosen_coordinate(drawing.contents, f"range of {of!r}", of, axis)
    elif isinstance(of, Coordinate):
        if of.joint not in drawing.contents.joints:
            raise ModelError(f"range was given {of!r}; it must be a joint of this mechanism, or a coordinate of one")
        chosen = drawing.contents.joints[of.joint].of(of.name)
    else:
        key = getattr(of, "name", of)
        joint = drawing.contents.joints.get(key) if isinstance(key, str) else None
        if joint is None:
            raise check.unknown(key, "joint of this session", drawing.contents.joints)
        chosen = chosen_coordinate(drawing.contents, f"range of {key!r}", joint, axis)
    limit = make(drawing.contents, joints.limit, name, (chosen,), {"lower": -1e300, "upper": 1e300})
    unit = "m" if chosen.kind in ("displacement", "distance") else "rad"
    return name, metric_equations(drawing.with_joint(limit)), unit
