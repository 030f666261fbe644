"""A run with limits: hits at their bounds, with restitution, and the end of infinitely many of them.

A bound is a contact of one coordinate: its gap is c − lower or upper − c, and its rate u.  A hit is the problem of
:mod:`cardan.dynamics.impacts` with the rows of all bounds that are reached, so that u⁺ = −e u⁻ where the impulse is
positive, and energy is never gained.  Where no bound is left with u < 0, those from which the motion does not lead away
hold, as in :class:`cardan.dynamics.integrate.Integration`.

With a constant approach a, hits at speeds eᵏ u follow each other after 2 eᵏ u/a and end after 2 e u/(a (1 − e)).  Once
bounces are lower than LOWEST, this rest is summed, and the bound holds.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from cardan.coordinates import formulations
from cardan.dynamics import impacts, tables
from cardan.dynamics.contact_events import ContactEvent, ContactEventKind
from cardan.dynamics.equations import Equations
from cardan.dynamics.integrate import REACHED, RESTING, Integration
from cardan.system import tables as layout
from cardan.system.state import FloatArray

LOWEST: Final = 1e-8  # of the extent, or rad: lower bounces, of a sequence that accumulates, are summed
SHORTEST: Final = 1e-3  # s: the rest of such a sequence is not longer
SEQUENCE: Final = 3  # hits with the same ratio of speeds make a sequence
SAME_RATIO: Final = 1e-2  # of the ratio of speeds of two hits to e
POLISHED: Final = 1e-6  # of the extent, or rad: a hit is not moved farther to the time at which the gap is zero
MOST_HITS: Final = 50_000  # of one run
DENSE: Final = 2 + tables.LOCKED  # status of a run: too many hits of limits


class Hit(NamedTuple):
    """Energy [J] that hits at one time took, and the number of the first output after them."""

    output: int
    energy: float


class Reached(NamedTuple):
    """A bound that is reached: its stop, its side (−1 lower, +1 upper), and the rate of its gap."""

    stop: int
    side: float
    rate: float


class ReboundRun(Integration):
    """A run of a mechanism with limits."""

    def __init__(self, equations: Equations, *given: Any, impacts: str = "together", **options: Any) -> None:
        """given, options: of :class:`Integration`.  impacts: "together" or "in_turn"."""
        self._impacts = impacts
        self.hits: list[Hit] = []
        self._past: dict[tuple[int, float], list[float]] = {}  # by stop and side: speeds of a sequence
        self._count = 0
        self._output = 0
        super().__init__(equations, *given, **options)

    @property
    def had_hits(self) -> bool:
        """See :attr:`Integration.had_hits`."""
        return bool(self.hits)

    def begin(self, released: int = -1) -> int:
        """See :meth:`Integration.begin`; before it, the time of a hit is made exact."""
        self._output = int(self.control.sample)  # an output at the time of a hit is that after it
        k = int(self.control.event) - 1
        if 0 <= k < len(self.equations.stops) and released < 0 and self.bounds["side"][k] == 0.0:
            self._polish(k)
        status = super().begin(released)
        return DENSE if self._count > MOST_HITS and status == tables.RUNNING else status

    def _polish(self, k: int) -> None:
        """Move the state along its velocity to where a bound is reached: it is within EVENT_GAP of that."""
        values, rates = self._stop_coordinates()
        bound = self.bounds[k]
        side = 1.0 if rates[k] > 0.0 else -1.0
        gap = float(side * ((bound["upper"] if side > 0.0 else bound["lower"]) - values[k]))
        if not (abs(rates[k]) * bound["weight"] > RESTING and abs(gap) * bound["weight"] < REACHED):
            return
        h = gap / abs(float(rates[k]))
        move = h * self.v
        sizes = np.abs(move.reshape(-1, 2, 3)).max(axis=(0, 2))
        if not max(sizes[0] / self.control.length, sizes[1]) <= POLISHED:
            return
        system = self.equations.system
        poses = layout.POSE * len(system.names)
        retract = formulations.problem(system, "manifold").retract
        self.q[:poses] = retract(self.q, move)[:poses]
        self.v += h * self._pieces.new_a
        self.control.time += h

    def _reach_stops(self, released: int) -> bool:
        """Hits at the bounds that are reached; then every stop holds from which the velocity does not lead away."""
        hit = self._hit(released)
        return super()._reach_stops(released) or hit

    def _hit(self, released: int) -> bool:
        """Let coordinates that approach a bound hit it; whether there was one."""
        e = self.equations
        on = self._at_bounds(released)
        weights = self.bounds["weight"]
        is_held = self.bounds["side"] != 0.0
        hits = [not is_held[one.stop] and weights[one.stop] * one.rate < -RESTING for one in on]
        if not any(hits):
            return False
        stops = [one.stop for one in on]
        jacobian = e.problem.with_floats(self.floats).jacobian(self.q)[1]
        active = self.active.copy()
        active[e.stop_table["equation"][stops]] = 0.0
        sides = np.array([one.side for one in on])
        rows = -sides[:, None] * jacobian[e.stop_table["row"][stops]]
        W = impacts.responses(e, jacobian, active, rows)
        u = np.array([one.rate for one in on])
        restitution = np.array(
            [
                0.0 if hit and self._accumulates(one) else e.stops[one.stop].restitution
                for one, hit in zip(on, hits, strict=True)
            ]
        )
        found = impacts.solve(rows @ W, W, u, restitution, self._impacts)
        self.v += found.change
        self.hits.append(Hit(self._output, -found.work))
        for one, hit, impulse, after in zip(on, hits, found.impulses.tolist(), found.speeds.tolist(), strict=True):
            if hit:
                self._tell(one.stop, ContactEventKind.HIT, max(0.0, -one.rate), impulse)
                self._count += 1
            if is_held[one.stop] and weights[one.stop] * after > RESTING:
                self._set_side(one.stop, 0.0)
        return True

    def _at_bounds(self, released: int) -> list[Reached]:
        """The bounds that are reached."""
        values, rates = self._stop_coordinates()
        found = []
        for k, (value, rate) in enumerate(zip(values.tolist(), rates.tolist(), strict=True)):
            lower, upper, weight, held, *_ = self.bounds[k].item()
            for bound, side in ((lower, -1.0), (upper, 1.0)):
                is_near = weight * side * (value - bound) > -REACHED if held == 0.0 else held == side
                if is_near and k != released:
                    found.append(Reached(k, side, -side * rate))
        return found

    def _accumulates(self, one: Reached) -> bool:
        """Whether a hit is one of the end of a sequence, whose rest is summed."""
        e, speed = self.equations.stops[one.stop].restitution, -one.rate
        past = self._past.setdefault((one.stop, one.side), [])
        if past and not abs(speed / past[-1] - e) <= SAME_RATIO * e:
            past.clear()
        past.append(speed)
        if len(past) < SEQUENCE or not 0.0 < e < 1.0:
            del past[:-SEQUENCE]
            return False
        approach = one.side * self._acceleration(one.stop)
        if not approach > 0.0:
            return False
        left = 2.0 * e * speed / (approach * (1.0 - e))
        height = 0.5 * (e * speed) ** 2 / approach
        if left > SHORTEST or height * float(self.bounds["weight"][one.stop]) > LOWEST:
            return False
        past.clear()
        self._tell(one.stop, ContactEventKind.ACCUMULATION, speed, after=left)
        return True

    def _acceleration(self, k: int) -> float:
        """c̈ of a stop that does not hold, from the accelerations now."""
        e = self.equations
        row = int(e.stop_table["row"][k])
        jacobian = e.problem.with_floats(self.floats).jacobian(self.q)[1]
        gamma = formulations.gamma(e.system, "manifold", self.q, self.v, self.floats)
        return float(jacobian[row] @ self._last_acceleration() - gamma[row])

    def _tell(
        self, stop: int, kind: ContactEventKind, speed: float, impulse: float = 0.0, *, after: float = 0.0
    ) -> None:
        self.events.append(ContactEvent(self.time + after, self.equations.stops[stop].name, kind, speed, impulse))

    def lost_impact(self) -> FloatArray:
        """Energy that hits have taken up to each output that was reached [J]."""
        lost: FloatArray = np.zeros(self.reached)
        for hit in self.hits:
            lost[hit.output :] += hit.energy
        return lost
