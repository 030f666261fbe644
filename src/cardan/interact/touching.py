"""Kinematic cycles of a mechanism whose parts must not overlap (:meth:`cardan.Mechanism.collide`).

A sub-step is first that of :mod:`cardan.interact._kinematic`.  If all pairs stay apart on its way
(:mod:`cardan.interact.gap_paths`), it is taken.  Otherwise it is taken back, and the step is

    minimise  ½ |u|² + ½ Σ (r + Ĵ_s u)²/C   subject to  Ĵ u = 0,   g + â u ≥ 0,

with a row â for each cut: the nearest points of two parts where they first touch on the way, and what is left of their
gap.  So a part slides along others, and pushes free parts ahead of it.  Cuts are added until nothing touches on the
way; then the least motion that opens the gaps by SKIN follows.  A pose is taken only if its joints are closed and no
gap is negative.  If there is none, the step is shortened; if that does not help, the mechanism stays where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from cardan.interact import least_motion, tables
from cardan.interact.gap_paths import IDENTITY, NONE, Cuts, IntArray, Paths, between, same_sides, with_ground
from cardan.joints.gaps import Colliding, Touching, pair_name
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.system.state import FloatArray

if TYPE_CHECKING:
    from cardan.interact.session import Session

_blocks = LazyModule("cardan.solvers._blocks")
_tables = LazyModule("cardan.system._tables")
_touching = LazyModule("cardan.interact._touching")

SKIN: Final = 1e-12  # of the size of the largest solid: the gap at which parts are kept
SUBSTEPS: Final = 3  # of a cycle
TRUST: Final = 0.25  # [rad], and of the extent: of a sub-step at a contact
SHORTER: Final = 0.25  # factor on a sub-step that was refused
SHORTENED: Final = 7  # times, at the most
SHORTENED_DRIVEN: Final = 20  # the same of a driver, whose step is shortened until nothing is in its way
ROUNDS: Final = 12  # in which cuts are added to a sub-step
OPENINGS: Final = 6  # corrections that open gaps
GENTLE: Final = 0.05  # of a sub-step: overlaps that are opened without another sub-step
SETTLED: Final = 1e-9  # of the extent, or [rad]: if hands move less, they are as near to their targets as they can be
DAMPING: Final = 1e-6  # compliance of a hand, relative to that of the mechanism, as without contacts
HELD: Final = 1e-10  # the same, relative to that of the body alone
PULLS: Final = 1e-9  # of the forces on a limit: if the sum pulls by more, it is left
CHANGES: Final = 20  # of limits in one sub-step
NEARBY: Final = 1e-9  # of the size of the largest solid: parts this near touch
FORGOTTEN: Final = 30  # cycles without pressing after which a touch is noted again
PRESSED: Final = 1e-9  # of the largest force: less does not press

WIDTH: Final = 6
CLOSED, STOPPED, OPEN = range(3)  # what a move returns (_touching)
AGAIN: Final = -1  # instead of a status: a limit was reached or left


class _Rows(NamedTuple):
    """Rows â, and P â with the multipliers of the equations, of all soft rows or of all cuts."""

    rows: FloatArray  # (n, 6 bodies)
    ways: FloatArray  # (n, 6 bodies + equations)


class Contacts:
    """The collisions of a session: its cycle, and what touches."""

    def __init__(self, session: Session, parts: Colliding) -> None:
        self._session = session
        self.parts = parts
        self.paths = Paths(parts)
        self._skin = SKIN * self.paths.size
        self.reset()

    def prepare(self) -> None:
        """Arrays, once the tables of the session are made."""
        s = self._session
        self._bodies = len(s._system.names)
        self._n6 = WIDTH * self._bodies
        self._width = self._n6 + s._equations.equations.size
        self._out: FloatArray = np.zeros(max(self._width, s._q.size, 1))
        self._other: FloatArray = np.zeros(max(self._n6, 8))
        self._one: FloatArray = np.zeros(max(self._n6, 1))
        self._frames = s._frames.reshape(-1, 7)
        s._control.most_substeps = 1.0
        self._open_start()

    def _open_start(self) -> None:
        """Open the gaps that the assembly of the start has left negative, within its tolerance."""
        start = self._session.coordinates.copy()
        found = self.paths.near(start, 0.0)
        if len(found.pairs) and found.gaps.min() < 0.0:
            step = _Step(self, TRUST, start)
            self._moved(tables.MOVE, step.u, 0.0)
            if isinstance(self._opened(start, start, step), np.ndarray):
                self._act(tables.TAKE, self._one, self._out, self._other)

    def reset(self) -> None:
        """Forget what pressed, so that the next cycle depends on the pose alone."""
        self._active: IntArray = NONE.pairs  # pairs of pieces that pressed in the last sub-step
        self._is_pressed = False
        self._noted: dict[tuple[str, str], int] = {}  # when bodies pressed against each other last

    def _act(self, op: int, given: FloatArray, out: FloatArray, other: FloatArray) -> int:
        s = self._session
        table, control, q, work = s._arrays
        found: int = _blocks.call_at(_touching.ACT, op, table, control, q, given, out, other, work)
        return found

    # -- the cycle -----------------------------------------------------------------------------------------------------

    def cycle(self) -> int:
        """One cycle; a status of a session."""
        control = self._session._control
        if not self._act(tables.TARGETS, self._one, self._out, self._other):
            return int(tables.IDLE)
        count = control.cycles
        status = int(tables.MOVING)
        for _ in range(SUBSTEPS):
            self._is_whole = False
            found = None if self._is_pressed else self._free_step()
            status = self._pressed_step() if found is None else found
            if status != tables.MOVING or self._is_whole:
                break
        control.cycles = count
        return status

    def _free_step(self) -> int | None:
        """A sub-step without contacts; None if parts would touch: it is then taken back."""
        s = self._session
        control = s._control.as_floats
        kept = [(array, array.copy()) for array, _ in s._start]
        known = control.copy()
        start = s.coordinates.copy()
        status = int(s._kernel(s._places))
        if not len(self.paths.cuts(start, s.coordinates).pairs):
            return status
        for array, values in kept:
            array[...] = values
        control[:] = known
        s._control.write(linearized=0.0, sigma=0.0)
        return None

    def _pressed_step(self) -> int:
        """A sub-step that keeps parts apart."""
        trust, changes, shortened = TRUST, 0, 0
        status: int | None = None
        while shortened < (SHORTENED if not self._is_driven() else SHORTENED_DRIVEN) and changes < CHANGES:
            status = self._tried(trust)
            if status == AGAIN:
                changes += 1
            elif status is None:
                shortened += 1
                trust *= SHORTER
            else:
                break
        if status is None or status == AGAIN:
            status = int(tables.STUCK)
            self._stay()
        self._session._control.write(linearized=0.0, sigma=0.0)
        return status

    def _is_driven(self) -> bool:
        """Whether drivers are on the way to their values."""
        s = self._session
        return any(s._goals[2 * k] != s._run.floats[place] for k, (place, _) in enumerate(s._system.signals))

    def _tried(self, trust: float) -> int | None:
        """A sub-step of at most this size; None if it must be shorter."""
        start = self._session.coordinates.copy()
        step = _Step(self, trust, start)
        step.add(self._known_cuts(start), start)
        for _ in range(ROUNDS):
            size = step.solve()
            if size is None:
                return self._refused()
            if step.leave_limit():
                return AGAIN
            if step.is_settled() and not step.is_driven:
                return self._stay()
            moved = self._moved(tables.MOVE, step.u, step.part)
            if isinstance(moved, int):
                return self._refused() if moved == OPEN else self._again()
            new = self.paths.cuts(start, moved)
            if len(new.pairs) and self._is_gentle(new, size):
                opened = self._opened(start, moved, step)
                if isinstance(opened, int):
                    return self._again()
                if opened is not None:
                    new = NONE
            if not len(new.pairs):
                break
            if not np.isfinite(new.gaps).all():
                return self._refused()
            step.add(new, moved)
        else:
            return self._refused()
        change, noise, rest = self._other[1:4].tolist()
        if not step.is_driven and step.is_whole and abs(change) <= noise and rest >= 1.0:
            return self._stay()  # the hands are as near as they can be, up to rounding
        if not step.is_driven and (change > -noise or rest < 1.0):
            return self._refused()
        self._is_whole = step.is_whole
        status = self._act(tables.TAKE, self._one, self._out, self._other)
        self._keep(step.pressing())
        return status

    def _stay(self) -> int:
        return self._act(tables.STAY, self._one, self._out, self._other)

    def _refused(self) -> int | None:
        self._stay()
        return None

    def _again(self) -> int:
        self._stay()
        return AGAIN

    def _keep(self, pressing: IntArray) -> None:
        """The pairs that press now; those that did not touch before are noted."""
        now = self._session.cycles
        for names in dict.fromkeys(self.paths.owners(pair) for pair in pressing.tolist()):
            if now - self._noted.get(names, -FORGOTTEN) >= FORGOTTEN:
                self._session._note_touch(pair_name(*names))
            self._noted[names] = now
        self._active, self._is_pressed = pressing, len(pressing) > 0

    def _known_cuts(self, start: FloatArray) -> Cuts:
        """Pairs that pressed in the last sub-step, as they are now."""
        if not len(self._active):
            return NONE
        found = self.paths.of_pairs(start, self._active)
        return found.chosen(np.isfinite(found.gaps))

    def _moved(self, op: int, u: FloatArray, part: float) -> FloatArray | int:
        """Poses of the bodies after a step u; or why there is none."""
        self._other[0] = part
        found = self._act(op, u, self._out, self._other)
        if found != CLOSED:
            return found
        s = self._session
        rows = self._out[: 7 * self._bodies].copy()
        _tables.shift_reference(self._bodies, s._frames, s._origin, -1.0, rows)
        return rows.reshape(-1, 7)

    def _is_gentle(self, new: Cuts, size: float) -> bool:
        """Whether overlaps at the end of a sub-step are shallow."""
        least = -GENTLE * size * float(self._session._control.length)
        return bool(((new.parts == 1.0) & (new.gaps >= least)).all())

    def _opened(self, start: FloatArray, end: FloatArray, step: _Step) -> FloatArray | int | None:
        """The pose after the least motion that opens shallow overlaps; None if they do not open."""
        for _ in range(OPENINGS):
            cuts = self.paths.near(end, 2.0 * self._skin)
            if not len(cuts.pairs) or cuts.gaps.min() >= 0.0:
                return end if not len(self.paths.cuts(start, end).pairs) else None
            if not np.isfinite(cuts.gaps).all():
                return None
            cuts = step.spread(cuts, end)
            rows = step.rows_of(cuts, end)
            y = least_motion.forces(rows.rows @ rows.ways[:, : self._n6].T, cuts.gaps - 2.0 * self._skin)
            if y is None:
                return None
            moved = self._moved(tables.MOVE_ON, y @ rows.ways[:, : self._n6], step.part)
            if isinstance(moved, int):
                return moved if moved == STOPPED else None
            end = moved
        return None

    def touching(self, coordinates: FloatArray) -> tuple[Touching, ...]:
        """Pairs of bodies that touch in a pose, once each, those of the least gaps first."""
        near = self.paths.near(coordinates, NEARBY * self.paths.size)
        margins = self.paths.margins(near.pairs)
        found: dict[tuple[str, str], Touching] = {}
        for k in np.argsort(near.gaps, kind="stable").tolist():
            names = self.paths.owners(near.pairs[k].tolist())
            on_a, on_b = (tuple(point) for point in near.points[k].tolist())
            gap, normal = float(near.gaps[k] + margins[k]), tuple(near.normals[k].tolist())
            found.setdefault(names, Touching(*names, gap, float(margins[k]), (on_a, on_b), normal))
        return tuple(found.values())


def _products(rows: FloatArray, ways: FloatArray) -> FloatArray:
    """rows · waysᵀ, over the columns that any of the rows has; each has those of two bodies."""
    used = np.flatnonzero(rows.any(axis=0))
    return np.asarray(rows[:, used] @ ways[:, used].T)


class _Step:
    """A sub-step at a contact: soft rows of the hands, cuts, and the motion that satisfies them."""

    def __init__(self, contacts: Contacts, trust: float, start: FloatArray) -> None:
        self._start = with_ground(start)
        self._of, self._session = contacts, contacts._session
        self._trust = trust
        n6 = contacts._n6
        out, other = contacts._out, contacts._other
        self.is_driven = contacts._act(tables.LINEARIZE, contacts._one, out, other) != 0
        self._base, self._scale = out[:n6].copy(), other[:n6].copy()
        s = self._session
        count, most = int(s._soft.rows), tables.MOST_ROWS
        offsets = np.asarray(s._soft.pieces)
        memory = s._soft_memory
        self._residuals = memory[offsets[0] : offsets[0] + count].copy()
        stiffnesses = memory[offsets[0] + most : offsets[0] + most + count]
        entries = memory[offsets[4] : offsets[4] + WIDTH * count].reshape(-1, WIDTH)
        bodies = np.asarray(s._soft.bodies)[:count]
        rows = np.zeros((count, contacts._bodies, WIDTH))
        rows[np.arange(count), bodies] = entries
        self._soft = self._projected(rows.reshape(count, n6))
        matrix = self._soft.rows @ self._soft.ways[:, :n6].T
        largest = max((stiffnesses * matrix.diagonal()).max(initial=0.0), 0.0)
        alone = (stiffnesses * (entries * entries).sum(axis=1)).max(initial=0.0)
        self._inverse = np.linalg.inv(matrix + np.diag((DAMPING * largest + HELD * alone) / stiffnesses))
        is_turn = ~entries[:, :3].any(axis=1)  # rows of orientations, in radians
        self._hand_units = np.where(is_turn, 1.0, float(s._control.length))
        self.is_whole = False
        self._cuts = NONE
        self._offsets: FloatArray = np.zeros(0)
        self._held = _Rows(np.zeros((0, n6)), np.zeros((0, contacts._width)))
        self._matrix: FloatArray = np.zeros((0, 0))  # of the held rows with their own ways
        self._across: FloatArray = np.zeros((0, count))  # and with those of the soft rows
        self.u: FloatArray = np.zeros(n6)
        driven = self._size(self._base)
        self.part = min(1.0, trust / driven) if driven > 0.0 else 1.0  # of the way of the drivers
        self._pushes: FloatArray = np.zeros(0)
        self._pulls: FloatArray = np.zeros(count)

    def _projected(self, rows: FloatArray) -> _Rows:
        of = self._of
        ways = np.zeros((len(rows), of._width))
        ways[:, : of._n6] = rows
        if len(rows):
            of._one[0] = len(rows)
            of._act(tables.SOLVE, of._one, ways.reshape(-1), of._other)
        return _Rows(rows, ways)

    def rows_of(self, cuts: Cuts, end: FloatArray) -> _Rows:
        """Derivatives of the gaps of cuts by u, each at its part of the way to a pose of the bodies."""
        of = self._of
        end = same_sides(self._start, with_ground(end))
        count = len(cuts.pairs)
        rows = np.zeros((count, of._bodies + 1, WIDTH))
        frames = np.concatenate([of._frames, IDENTITY])
        for side, sign in ((0, -1.0), (1, 1.0)):
            bodies = of.paths.bodies[cuts.pairs[:, side]]
            pose, frame = between(self._start[bodies], end[bodies], cuts.parts), frames[bodies]
            arm = cuts.points[:, side] - pose[:, :3] - euler.rotate(pose[:, 3:], frame[:, :3])
            turned = euler.conjugate(euler.multiply(pose[:, 3:], frame[:, 3:]))
            moment = euler.rotate(turned, np.cross(arm, cuts.normals))
            rows[np.arange(count), bodies] += sign * np.hstack([cuts.normals, moment])
        return self._projected(rows[:, :-1].reshape(count, of._n6) * self._scale)

    def spread(self, cuts: Cuts, end: FloatArray) -> Cuts:
        """With all points at which pairs touch, on the way to a pose of the bodies."""
        return self._of.paths.spread(cuts, self._start, same_sides(self._start, with_ground(end)))

    def add(self, cuts: Cuts, end: FloatArray) -> None:
        """Keep more pairs apart; end: the pose after the last step, on the way to which they touch."""
        cuts = self.spread(cuts, end)
        made = self.rows_of(cuts, end)
        reached = cuts.parts * (made.rows @ self.u)
        self._offsets = np.concatenate([self._offsets, cuts.gaps - self._of._skin - reached])
        mixed, own = _products(made.rows, self._held.ways), _products(made.rows, made.ways)
        self._matrix = np.block([[self._matrix, mixed.T], [mixed, own]])
        self._across = np.concatenate([self._across, _products(made.rows, self._soft.ways)])
        self._held = _Rows(np.vstack([self._held.rows, made.rows]), np.vstack([self._held.ways, made.ways]))
        self._cuts = self._cuts.and_also(cuts)

    def solve(self) -> float | None:
        """The step u, and its largest component [rad], or of the extent; None if nothing keeps the parts apart."""
        n6 = self._of._n6
        held, soft = self._held, self._soft
        across = self._across
        matrix = self._matrix - across @ self._inverse @ across.T
        base = self._base * self.part
        pull = self._inverse @ (-self._residuals - soft.rows @ base)
        h = self._offsets + held.rows @ base + across @ pull
        y = least_motion.forces(0.5 * (matrix + matrix.T), h)
        if y is None:
            return None
        self._pushes, self._pulls = y, pull - self._inverse @ (across.T @ y)
        u = base + self._pulls @ soft.ways[:, :n6] + y @ held.ways[:, :n6]
        size = self._size(u)
        if not np.isfinite(size):
            return None
        cut = min(1.0, self._trust / size) if size > 0.0 else 1.0
        self.is_whole = cut == 1.0
        self.u = u * cut
        self.part *= cut
        return size * cut

    def is_settled(self) -> bool:
        """Whether the step does not move the hands."""
        scaled = np.abs(self._soft.rows @ self.u) / self._hand_units
        return bool(scaled.max(initial=0.0) < SETTLED)

    def _size(self, u: FloatArray) -> float:
        """The largest component of a step [rad], or of the extent."""
        delta = np.abs(u * self._scale).reshape(-1, WIDTH)
        length = float(self._session._control.length)
        return float(max(delta[:, :3].max(initial=0.0) / length, delta[:, 3:].max(initial=0.0)))

    def pressing(self) -> IntArray:
        """Pairs that press."""
        least = PRESSED * self._pushes.max(initial=0.0)
        return np.unique(self._cuts.pairs[self._pushes > least], axis=0)

    def leave_limit(self) -> bool:
        """Leave the limit that pulls most; whether there is one."""
        run, n6 = self._session._run, self._of._n6
        found, worst = -1, 0.0
        for k in np.flatnonzero(run.bounds["side"]).tolist():
            equation = n6 + int(run.equations.stop_table["equation"][k])
            pulls = self._pulls @ self._soft.ways[:, equation], self._pushes @ self._held.ways[:, equation]
            sizes = np.abs(self._pulls) @ np.abs(self._soft.ways[:, equation])
            sizes += np.abs(self._pushes) @ np.abs(self._held.ways[:, equation])
            push = run.bounds["side"][k] * sum(pulls)
            if push < min(worst, -PULLS * sizes):
                found, worst = k, push
        if found >= 0:
            self._session._leave_limit(found)
        return found >= 0
