"""The result of an assembly: a verdict and the final state."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from cardan.calls import explains
from cardan.errors import ModelError
from cardan.system.html import as_html
from cardan.system.residuals import Violation, accepting_tolerance, violations
from cardan.system.saving import Saved
from cardan.system.state import FloatArray, State
from cardan.system.system import System

if TYPE_CHECKING:
    from cardan.analysis.limits import ActiveLimit
    from cardan.analysis.repairs import Repair
    from cardan.joints.gaps import Touching
    from cardan.system.drawing import Drawing


class Status(StrEnum):
    """How an assembly ended."""

    ASSEMBLED = "assembled"  # every constraint is met at the final pose
    CONFLICT = "conflict"  # inconsistent constraints, by proof or because many attempts end at the same residual
    STALLED = "stalled"  # a local minimum of the residuals, not met
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    DIVERGED = "diverged"  # numbers became infinite or NaN
    OVERLAP = "overlap"  # every joint is met, but parts that must not overlap do
    NO_LEAST = "no least value"  # every constraint is met, but no least value of the cost was found


REPAIRS_TOLD = 4  # in a text
ROUNDED_GAP = 1e-9  # of the deepest overlap: a smaller one is rounding
ROUNDED = 1e-5  # a residual below, after all restarts, is taken for that of rounded data
NEARLY_MET = 1e-3  # a smaller residual is compared with the tolerance in the advice

_ADVICE = {
    Status.CONFLICT: "the constraints seem to contradict each other; one or several of those listed may be wrong",
    Status.STALLED: "start nearer to the wanted pose, or allow more restarts (restarts)",
    Status.OVERLAP: "the joints are met, but no pose was found in which these parts are apart; start nearer to the "
    "wanted pose, or let them overlap: m.collide(…, exclude=[…]), or remove the contact",
    Status.ITERATION_LIMIT: "allow more iterations (max_iterations), or start nearer to the wanted pose",
    Status.TIME_LIMIT: "allow more time (max_seconds)",
    Status.DIVERGED: "start nearer to the wanted pose, or use method='auto'",
}


@explains()
@dataclass(slots=True, eq=False, repr=False)
class AssemblyResult(Saved):
    """The verdict of an assembly, and its state.

    ``ok``: every constraint is met.  ``residual``: the largest in relation to its bound, lengths relative to the extent
    of the piece, angles in radians; ``tolerance``: this bound.  ``iterations``: sum over all attempts; ``restarts``:
    attempts after the first.  ``residuals``: (name, residual, unit) of every constraint in metres and radians, largest
    first; ``worst``: of those that are not met.
    ``active``: limits that are reached.  ``touching``: bodies that touch or overlap, of those that must not overlap
    (:meth:`cardan.Mechanism.collide`), each with gap, points and normal.
    ``unconnected``: bodies that are not connected to the ground.
    ``repairs``: changes with which it can be assembled, if it is not: advice only.
    ``notes``: contacts that were drawn apart or on the other side, and free parameters on which no constraint depends.
    """

    _system: System
    state: State
    _residuals: FloatArray
    status: Status
    residual: float
    tolerance: float
    iterations: int
    restarts: int
    seconds: float
    method: str
    formulation: str
    _asked: float  # tolerance
    _drawn: tuple[FloatArray, FloatArray] | None = None  # poses and angles of the start, if there are contacts
    _no_least: str = ""  # why no least value of the cost was found
    _is_searched: bool = False  # all default restarts were made, or the constraints contradict each other
    _drawing: Drawing | None = None  # of the mechanism, if it is not assembled
    _repairs: tuple[Repair, ...] | None = None  # None: not yet searched for
    touching: tuple[Touching, ...] = ()

    @property
    def ok(self) -> bool:
        """Every constraint is met."""
        return self.status is Status.ASSEMBLED

    @property
    def residuals(self) -> list[Violation]:
        """(name, residual, unit) of every constraint, the largest first (lengths measured in the extent)."""
        return violations(self._system, self._residuals)

    @property
    def worst(self) -> list[Violation]:
        """(name, residual, unit) of every constraint that is not met, the largest first; empty if assembled."""
        if self.ok:
            return []
        from cardan.analysis.starts import tail_of
        from cardan.coordinates.verdict import row_bounds

        if self.status is Status.OVERLAP:
            return self._overlaps()
        angles = tail_of(self._system, self.state)
        bounds = row_bounds(self._system, self.state.coordinates, angles, self._asked)
        return violations(self._system, self._residuals, bounds)

    def _overlaps(self) -> list[Violation]:
        """Pairs of parts that overlap, the deepest first."""
        from cardan.joints.gaps import pair_name

        found = [Violation(one.contact or pair_name(one.a, one.b), one.margin - one.gap, "m") for one in self.touching]
        for violation in found:
            violation.display = self._system.display
        deepest = max([one.residual for one in found if one.residual > 0.0], default=0.0)
        return [one for one in found if not one.residual <= ROUNDED_GAP * deepest]  # one that is not known, too

    @property
    def active(self) -> list[ActiveLimit]:
        """Limits whose bound is reached: (name, "lower" or "upper", value, unit)."""
        from cardan.analysis.limits import active_limits

        return active_limits(self._system, self.state)

    @property
    def repairs(self) -> list[Repair]:
        """Changes that undo a usual mistake, and with which it can be assembled; the smallest first.

        They are searched for if the status is a conflict, when they are first asked for: see
        :mod:`cardan.analysis.repairs`.  The mechanism is not changed.  A copy or a pickled result has none if a
        function of the mechanism, such as that of a load, cannot be pickled.
        """
        if self._repairs is None:
            if self.status is not Status.CONFLICT or self._drawing is None:
                return []
            from cardan.analysis.repairs import find_repairs

            unmet = [violation.name for violation in self.worst]
            start = self._system.state()
            self._repairs = tuple(find_repairs(self._drawing, self._system, unmet, self.state, start, self._asked))
        return list(self._repairs)

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        if self._drawing is not None:
            try:
                pickle.dumps(self._drawing)
            except Exception:  # functions of users can raise any exception; the result does not need its loads
                kept["_drawing"] = None
        return None, kept

    @property
    def unconnected(self) -> tuple[str, ...]:
        """Bodies that no chain of constraints connects to the ground."""
        return self._system.unconnected

    def _idle(self) -> list[str]:
        """Free parameters that nothing determines; elastic coordinates are determined by their energy."""
        contents = getattr(self._system.index, "contents", None)
        bodies = contents.flexible if contents is not None else []
        elastic = {one.name for body in bodies for one in body.coordinates}
        return [name for name in self._system.idle if name not in elastic]

    @property
    def notes(self) -> tuple[str, ...]:
        """Contacts that were drawn apart or on the other side, and free parameters on which no constraint depends."""
        if not self.ok:
            return ()
        idle = tuple([f"nothing determines parameter {name!r}: no constraint uses it" for name in self._idle()])
        if self._drawn is None:
            return idle
        from cardan.analysis.contact_ends import closed_contacts

        return closed_contacts(self._system, self._drawn, self.state) + idle

    def text(self) -> str:
        """A report: status, residual, the worst constraints, and advice."""
        from cardan.coordinates.verdict import too_far

        lines = [self._headline()]
        if self.status is Status.NO_LEAST:
            lines.append(f"  {self._no_least}")
        elif self.status is Status.OVERLAP:
            lines += [f"  {v.name}: {v.text()} deep" for v in self.worst[:5]]
            lines.append(f"  {_ADVICE[self.status]}")
        elif not self.ok:
            lines += [f"  {v.name}: {v.text()}" for v in self.worst[:5]]
            far = too_far(self._system, self.state.coordinates, self._residuals)
            found = far or self._causes()
            nearly = "" if found else self._nearly()  # rounded data are no reason where another one is known
            if not found and self.status is Status.CONFLICT:
                found = self._contradictory_part()
            lines += [f"  {cause}" for cause in found]
            repairs = self.repairs
            lines += [f"  it can be assembled with one change: {repair.text}" for repair in repairs[:REPAIRS_TOLD]]
            if len(repairs) > REPAIRS_TOLD:
                lines.append(f"  and {len(repairs) - REPAIRS_TOLD} more such changes: see result.repairs")
            is_told = found if far or self.status is Status.CONFLICT else nearly and self._seems_rounded
            if not is_told:
                is_plain = self.status is Status.STALLED and self.method != "auto"
                lines.append(f"  {_ADVICE[Status.DIVERGED if is_plain else self.status]}")
            if nearly:
                lines.append(f"  {nearly}")
        is_conflict = self.status is Status.CONFLICT
        for limit in self.active if self.ok or is_conflict else ():
            lines.append(f"  limit {limit.name!r} is at its {limit.bound} bound" + ", and may be a cause" * is_conflict)
        if self.unconnected:
            lines.append(f"  not connected to the ground: {_listed(self.unconnected)}")
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(lines)

    def _nearly(self) -> str:
        """Advice if the constraints fit nearly; "" if they do not."""
        if not self._is_nearly_met:
            return ""
        worst = self.worst[0]
        misses = f"{worst.name!r} misses by {worst.text()}"
        accepting = accepting_tolerance(self.residual, squared=self.tolerance < self._asked)
        accepts = f"tolerance={accepting:.0e} accepts this pose"
        if self._seems_rounded:
            return f"the constraints nearly fit, as rounded data do: {misses}; {accepts}"
        return f"{misses}; {accepts}, but there may be a better one"

    @property
    def _seems_rounded(self) -> bool:
        """Whether a small misfit is left in the best pose: the constraints contradict each other, or all restarts were
        made and the residual is smaller than in local minima of mechanisms that fit."""
        is_small = self._is_searched and self.residual <= ROUNDED
        return self._is_nearly_met and (self.status is Status.CONFLICT or is_small)

    @property
    def _is_nearly_met(self) -> bool:
        is_final = self.status not in (Status.TIME_LIMIT, Status.DIVERGED)
        return bool(self.worst) and 0.0 < self.residual <= NEARLY_MET and is_final

    def _contradictory_part(self) -> list[str]:
        """The smallest part found that cannot be assembled by itself, in words."""
        from cardan.analysis.parts import contradictory_part
        from cardan.analysis.reasons import listed

        unmet = {violation.name for violation in self.worst}
        for piece in self._system.pieces:
            if any(row.constraint in unmet for row in piece.system.rows):
                names = contradictory_part(piece.system, self._asked, self.state.time)
                if names:
                    return [f"these constraints contradict each other, whatever the others are: {listed(names)}"]
        return []

    def _headline(self) -> str:
        return (
            f"{self.status}: residual {self.residual:.1e} (tolerance {self.tolerance:.1e}), "
            f"{_counted(self.iterations, 'iteration')}, {_counted(self.restarts, 'restart')}, "
            f"{1e3 * self.seconds:.2f} ms"
        )

    def _causes(self) -> list[str]:
        """Causes of the failure, in words: those that the model shows; else bounds and drivers, if it assembles
        without them."""
        from cardan.diagnosis.causes import causes

        found = causes(self._system, self.state.time)
        for name, touch in self._system.index.contacts.items():
            for state, where in ((self._system.state(), " (as drawn)"), (self.state, "")):
                reason = touch.read(state).reason
                if reason:
                    found.append(f"contact {name!r}{where}: {reason}")
                    break
        if self._system.variables.free:
            try:
                self._system.check_values(self.state.variables)
            except ModelError as error:
                found.append(f"the values that were found are not valid: {error}; give bounds to the parameters")
        if not found and (self.status is Status.CONFLICT or (self._is_nearly_met and self._is_searched)):
            from cardan.analysis.without_drivers import contradictory_drivers, narrow_bounds, narrow_limits

            asked = self._system, self.state, self._asked
            found = narrow_bounds(*asked) + contradictory_drivers(*asked) + narrow_limits(*asked)
        return found

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a number that is not finite becomes None."""
        return {
            "ok": self.ok,
            "status": str(self.status),
            "residual": _finite(self.residual),
            "tolerance": self.tolerance,
            "iterations": self.iterations,
            "restarts": self.restarts,
            "seconds": self.seconds,
            "method": self.method,
            "formulation": self.formulation,
            "unconnected": list(self.unconnected),
            "notes": list(self.notes),
            "active": [limit._asdict() for limit in self.active],
            "touching": [one._asdict() for one in self.touching],
            "worst": _plain(self.worst),
            "repairs": [repair.to_dict() for repair in self.repairs],
            "residuals": _plain(self.residuals),
            "bodies": {
                name: {
                    "position": [_finite(x) for x in pose.position.tolist()],
                    "quaternion": [_finite(x) for x in pose.quaternion.tolist()],
                }
                for name, pose in self.state.items()
            },
            "parameters": {name: _finite(value) for name, value in self.state.variables.items()},
        }

    to_dict = as_dict

    def coordinate(self, joint: Any, of: str | None = None) -> float:
        """A coordinate of a joint, as :meth:`State.coordinate`."""
        return self.state.coordinate(joint, of)

    def table(self) -> dict[str, Any]:
        """The poses as columns by title, for ``pandas.DataFrame(result.table())``."""
        return self.state.table()

    def _repr_html_(self) -> str:
        display = self._system.display
        residuals = [(v.name, display.text(v.residual, v.unit)) for v in self.residuals]
        return as_html(self.text(), self.state.rows(), (("constraint", "residual"), residuals))

    def __eq__(self, other: object) -> bool:
        """Equal verdicts and states; the computing time is not compared."""
        if not isinstance(other, AssemblyResult):
            return NotImplemented
        mine, theirs = (
            (r.status, r.residual, r.tolerance, r.iterations, r.restarts, r.method, r.formulation)
            for r in (self, other)
        )
        return mine == theirs and self.state == other.state

    __hash__ = None  # type: ignore[assignment]  # compared by value, and states have no hash

    def __repr__(self) -> str:
        return f"<AssemblyResult {self._headline()}>"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _plain(found: list[Violation]) -> list[dict[str, Any]]:
    return [{"name": v.name, "residual": _finite(v.residual), "unit": v.unit} for v in found[:10]]


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _listed(names: Iterable[str], most: int = 8) -> str:
    listed = list(names)
    tail = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(map(repr, listed[:most])) + tail
