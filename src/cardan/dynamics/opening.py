"""A run with contacts that open: watched while they are open, equations while they are closed, and hits between.

The row of such a contact is its gap.  It is a stop with the lower bound zero (:mod:`cardan.dynamics._stops`): the end
of a step is placed where the gap becomes zero, or where the force of a closed contact does.  Here are the hits, with
restitution (:mod:`cardan.dynamics.impacts`), and the end of infinitely many of them.

Friction is in :mod:`cardan.dynamics.sliding`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cardan.coordinates import formulations
from cardan.dynamics import friction, impacts, tables
from cardan.dynamics.contact_events import ContactEvent, ContactEventKind
from cardan.dynamics.equations import Equations
from cardan.dynamics.friction_tables import SHARED, STICK
from cardan.dynamics.integrate import REACHED, RESTING
from cardan.dynamics.sliding import UNDECIDED, SlidingRun, pair
from cardan.errors import ModelError
from cardan.system import tables as layout
from cardan.system.state import FloatArray

LOWEST: Final = 1e-8  # of the extent: lower bounces, of a sequence that accumulates, are summed
SHORTEST: Final = 1e-3  # s: the rest of such a sequence is not longer
SEQUENCE: Final = 3  # hits with the same ratio of speeds make a sequence
CROWD: Final = 8  # hits of a contact within SHORTEST, among those of others
SAME_RATIO: Final = 1e-2  # of the ratio of speeds of two hits to e
POLISHED: Final = 1e-6  # of the extent, or rad: a hit is not moved farther to the time at which the gap is zero
LEVER: Final = 1e-9  # of the extent: a force with a smaller lever arm turns no body
OVERLAP: Final = 1e-9  # of the extent: faces that overlap by more at the start are refused
MOST_HITS: Final = 50_000  # of one run
DENSE: Final = 1 + tables.LOCKED  # status of a run: too many hits
MOST_AT_ONCE: Final = 200  # besides ten per contact: hits within the least step
MOST_SHOCKS: Final = 20  # at one time


class OpeningRun(SlidingRun):
    """A run of a mechanism with contacts that open."""

    def __init__(self, equations: Equations, *given: Any, impacts: str = "together", **options: Any) -> None:
        """given, options: of :class:`Integration`.  impacts: "together" or "in_turn"."""
        self._impacts = impacts
        self._hits: dict[int, list[tuple[float, float]]] = {}  # by number: times and speeds of a sequence
        self._recent: dict[int, list[float]] = {}  # by number: times of the last hits
        self._count = 0
        self._has_begun = False
        super().__init__(equations, *given, **options)

    def begin(self, released: int = -1) -> int:
        """See :meth:`Integration.begin`; before it, the time of a hit is made exact."""
        k = int(self.control.event) - 1
        grip = int(self.table.event) - 1 if k >= 0 and self._grips else -1
        if grip >= 0 and self.grips["mode"][grip] == STICK:
            force = self._end_multipliers()[self._tangents[k]]
            self._begun = {k: pair(force / np.linalg.norm(force))}
        elif k >= self._first and released < 0 and self.bounds["side"][k] == 0.0:
            self._polish(k)
        elif not self._has_begun:
            self._refuse_overlaps()
        self._has_begun = True
        status = super().begin(released)
        self._begun, self._parted = {}, set()
        self.table.event = 0.0
        names = [
            stop.name for stop, side in zip(self.equations.stops, self.bounds["side"], strict=True) if side == SHARED
        ]
        if frozenset(names) != (self.shared[-1][1] if self.shared else frozenset()):
            self.shared.append((self.time, frozenset(names)))
        if self._is_undecided and status == tables.RUNNING:
            return UNDECIDED
        return DENSE if self._is_dense() and status == tables.RUNNING else status

    def advance(self, until: float, steps: int) -> int:
        """See :class:`SlidingRun`; too many events at one time are none of a driver."""
        status = super().advance(until, steps)
        return DENSE if status == tables.LOCKED and self.push is None else status

    def _refuse_overlaps(self) -> None:
        """ModelError if faces overlap at the start."""
        values, _ = self._stop_coordinates()
        for opening, gap in zip(self.equations.openings, values[self._first :].tolist(), strict=True):
            if gap < -OVERLAP * self.control.length:
                raise ModelError(
                    f"contact {opening.name!r}: the faces overlap by {-gap:.3g} m at the start; move them apart"
                )

    def refuse_turning(self, basis: FloatArray) -> None:
        """ModelError if a force at a contact would turn a body that has no inertia against it, in the pose now.

        basis: of the idle spins (:class:`cardan.dynamics.massless.Idle`).
        """
        if not basis.size:
            return
        e = self.equations
        problem = e.problem.with_floats(self.floats)
        twists = basis * problem.scales[problem.rows :][:, None]
        spun = np.abs(basis).reshape(-1, tables.WIDTH, basis.shape[1]).max(axis=1)
        jacobian = problem.jacobian(self.q)[1][e.equations]
        for k, opening in enumerate(e.openings, start=self._first):
            rows = [int(e.stop_table["equation"][k]), *self._tangents.get(k, ())]
            turned = np.abs(jacobian[rows] @ twists).max(axis=0) > LEVER * float(self.control.length)
            if turned.any():
                body = e.system.names[int(spun[:, int(turned.argmax())].argmax())]
                what = "friction" if opening.friction[0] > 0.0 else "force"
                raise ModelError(
                    f"contact {opening.name!r}: its {what} would turn body {body!r}, which has no inertia "
                    "(0 kg m²) about that axis; give it an inertia: inertia= of m.body"
                )

    def _polish(self, k: int) -> None:
        """Move the state along its velocity to where the gap of a contact is zero: it is within EVENT_GAP of that."""
        values, rates = self._stop_coordinates()
        if not rates[k] * self.bounds["weight"][k] < -RESTING:
            return
        h = -float(values[k] / rates[k])
        move = h * self.v
        sizes = np.abs(move.reshape(-1, 2, 3)).max(axis=(0, 2))
        if not max(sizes[0] / self.control.length, sizes[1]) <= POLISHED:
            return
        acceleration = self._pieces.new_a
        system, poses = self.equations.system, layout.POSE * len(self.equations.system.names)
        retract = formulations.problem(system, "manifold").retract
        self.q[:poses] = retract(self.q, move)[:poses]
        self.v += h * acceleration
        self.control.time += h

    def _reach_stops(self, released: int) -> bool:
        """Hits of the contacts that are reached; then every stop holds from which the velocity does not lead away.

        Of these contacts, those open, slip or stick that the problem on the cone lets open, slip or stick.
        """
        hit = self._hit(released)
        parted = sorted(self._parted)
        self.bounds["lower"][parted] = -np.inf
        reached = super()._reach_stops(released)
        self.bounds["lower"][parted] = 0.0
        for _ in range(MOST_SHOCKS):
            if not self._choose_modes():
                break
        return hit or reached

    def _hit(self, released: int) -> bool:
        """Let contacts that are closed and approach hit each other; whether there was one."""
        e, first = self.equations, self._first
        values, rates = self._stop_coordinates()
        weights = self.bounds["weight"]
        near = weights * values < REACHED
        near[:first] = False
        if released >= 0:
            near[released] = False
        hits = near & (weights * rates < -RESTING) & (self.bounds["side"] == 0.0)
        if not hits.any():
            return False
        on: list[int] = np.flatnonzero(near).tolist()
        local = self._local(on)
        bounces = [not (hits[k] and self._accumulates(k, -float(rates[k]))) for k in on]
        restitution = np.array(
            [e.openings[k - first].restitution * bounce for k, bounce in zip(on, bounces, strict=True)]
        )
        still = RESTING * float(self.control.length)
        slides = np.hypot(local.u[:, 1], local.u[:, 2]) > still
        coefficients = np.array(
            [e.openings[k - first].friction[int(moves)] for k, moves in zip(on, slides, strict=True)]
        )
        if coefficients.any():
            impulses, law, error = friction.hit(local.G, local.u, restitution, coefficients)
            self.contact_error = max(self.contact_error, error)
        else:
            found = impacts.solve(local.G[::3, ::3], local.response[:, ::3], local.u[:, 0], restitution, self._impacts)
            impulses, law = np.zeros((len(on), 3)), found.law
            impulses[:, 0] = found.impulses
        after = self._push(local, impulses)
        if law != "Newton":
            self._note_law(law, [e.stops[k].name for k in on if hits[k]])
        for k, speed, impulse, now in zip(on, local.u[:, 0].tolist(), impulses[:, 0].tolist(), after, strict=True):
            if hits[k] or impulse > 0.0:
                self._tell(k, ContactEventKind.HIT, max(0.0, -speed), impulse)
                self._count += 1
            if self.bounds["side"][k] != 0.0 and weights[k] * now > RESTING:
                self._set_side(k, 0.0)
        return True

    def _note_law(self, law: str, names: list[str]) -> None:
        """A note on a law of restitution in place of Newton's, which would give energy; once for each."""
        told = {
            "Poisson": "Poisson's law of restitution was used in its place",
            "reduced": "smaller restitutions were used",
            "inelastic": "they hit without restitution",
        }[law]
        begin = f"Newton's law of restitution would give energy in hits of {', '.join(map(repr, names))}"
        if not any(note.startswith(begin) and note.endswith(told) for note in self.notes):
            self.notes.append(f"{begin} (first at t = {self.time:g} s): {told}")

    def _accumulates(self, k: int, speed: float) -> bool:
        """Whether the hits of a contact are the end of a sequence, whose rest is summed."""
        e = self.equations.openings[k - self._first].restitution
        if self._is_crowded(k, speed, e):
            self._tell(k, ContactEventKind.ACCUMULATION, speed)
            return True
        past = self._hits.setdefault(k, [])
        if past and not abs(speed / past[-1][1] - e) <= SAME_RATIO * e:
            past.clear()
        past.append((self.time, speed))
        if len(past) < SEQUENCE or not 0.0 < e < 1.0:
            del past[:-SEQUENCE]
            return False
        approach = -self._gap_acceleration(k)
        if not approach > 0.0:
            return False
        left = 2.0 * e * speed / (approach * (1.0 - e))
        height = 0.5 * (e * speed) ** 2 / approach
        if left > SHORTEST or height > LOWEST * float(self.control.length):
            return False
        past.clear()
        self.events.append(
            ContactEvent(self.time + left, self.equations.stops[k].name, ContactEventKind.ACCUMULATION, speed)
        )
        return True

    def _is_crowded(self, k: int, speed: float, e: float) -> bool:
        """Whether hits of several contacts accumulate: their speeds have no constant ratio, but bounces are low."""
        recent = self._recent.setdefault(k, [])
        recent.append(self.time)
        del recent[:-CROWD]
        if len(recent) < CROWD or recent[-1] - recent[0] > SHORTEST:
            return False
        approach = -self._gap_acceleration(k)
        return approach > 0.0 and 0.5 * (e * speed) ** 2 <= LOWEST * float(self.control.length) * approach

    def _gap_acceleration(self, k: int) -> float:
        """d²gap/dt² of an open contact, from the accelerations now [m/s²]."""
        e = self.equations
        row = int(e.stop_table["row"][k])
        problem = e.problem.with_floats(self.floats)
        jacobian = problem.jacobian(self.q)[1]
        gamma = formulations.gamma(e.system, "manifold", self.q, self.v, self.floats)
        return float(jacobian[row] @ self._last_acceleration() - gamma[row])

    def _is_dense(self) -> bool:
        """Whether hits are too many for events."""
        most = MOST_AT_ONCE + 10 * len(self.equations.openings)
        recent = self.losses[-most:]
        at_once = len(recent) == most and recent[-1].time - recent[0].time <= float(self.control.least_step)
        return self._count + self._shocks > MOST_HITS or at_once

    def lost(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Energies [J] that hits, and that slip has taken up to the outputs at some times, shape (times,) each."""
        at: FloatArray = np.array([loss.time for loss in self.losses])
        sums: FloatArray = np.cumsum([0.0, *[loss.energy for loss in self.losses]])
        slid: FloatArray = self._memory[: len(times)].copy() if self._grips else np.zeros(len(times))
        return sums[np.searchsorted(at, times, side="right")], slid
