"""The result of an assembly: a verdict and the final state."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from cardan.system.residuals import Violation, violations
from cardan.system.state import FloatArray, State
from cardan.system.system import System

if TYPE_CHECKING:
    from cardan.analysis.limits import ActiveLimit


class Status(StrEnum):
    """How an assembly ended."""

    ASSEMBLED = "assembled"  # every constraint is met at the final pose
    CONFLICT = "conflict"  # inconsistent constraints, by proof or because many attempts end at the same residual
    STALLED = "stalled"  # a local minimum of the residuals, not met
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    DIVERGED = "diverged"  # numbers became infinite or NaN


_ADVICE = {
    Status.CONFLICT: "the constraints seem to contradict each other: change or remove one of the worst listed",
    Status.STALLED: "start nearer to the wanted pose, or use method='auto' with more restarts",
    Status.ITERATION_LIMIT: "allow more iterations (max_iterations), or start nearer to the wanted pose",
    Status.TIME_LIMIT: "allow more time (max_seconds)",
    Status.DIVERGED: "start nearer to the wanted pose, or use method='auto'",
}


@dataclass(slots=True, eq=False, repr=False)
class AssemblyResult:
    """The verdict of an assembly, and its state.

    ``ok``: every constraint is met.  ``residual``: the largest in relation to its bound, lengths relative to the extent
    of the piece, angles in radians; ``tolerance``: this bound.  ``iterations``: sum over all attempts; ``restarts``:
    attempts after the first.  ``worst``: (name, residual, unit) in metres and radians, largest first.
    ``active``: limits that are reached.  ``unconnected``: bodies that are not connected to the ground.
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

    @property
    def ok(self) -> bool:
        """Every constraint is met."""
        return self.status is Status.ASSEMBLED

    @property
    def worst(self) -> list[Violation]:
        """(name, residual, unit) of every constraint, the largest first (lengths measured in the extent)."""
        return violations(self._system, self._residuals)

    @property
    def active(self) -> list[ActiveLimit]:
        """Limits whose bound is reached: (name, "lower" or "upper", value, unit)."""
        from cardan.analysis.limits import active_limits

        return active_limits(self._system, self.state)

    @property
    def unconnected(self) -> tuple[str, ...]:
        """Bodies that no chain of constraints connects to the ground."""
        return self._system.unconnected

    def text(self) -> str:
        """A report: status, residual, the worst constraints, and advice."""
        lines = [
            f"{self.status}: residual {self.residual:.1e} (tolerance {self.tolerance:.1e}), "
            f"{self.iterations} iterations, {self.restarts} restarts, {1e3 * self.seconds:.2f} ms"
        ]
        if not self.ok:
            lines += [f"  {v.name}: {v.text()}" for v in self.worst[:5]]
            lines.append(f"  {_ADVICE[self.status]}")
        for limit in self.active if self.ok else ():
            lines.append(f"  limit {limit.name!r} is at its {limit.bound} bound")
        if self.unconnected:
            lines.append(f"  not connected to the ground: {_listed(self.unconnected)}")
        return "\n".join(lines)

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
            "active": [limit._asdict() for limit in self.active],
            "worst": [{"name": v.name, "residual": _finite(v.residual), "unit": v.unit} for v in self.worst[:10]],
            "bodies": {
                name: {
                    "position": [_finite(x) for x in pose.position.tolist()],
                    "quaternion": [_finite(x) for x in pose.quaternion.tolist()],
                }
                for name, pose in self.state.items()
            },
        }

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
        return f"<AssemblyResult {self.text().splitlines()[0]}>"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _listed(names: Iterable[str], most: int = 8) -> str:
    listed = list(names)
    tail = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(map(repr, listed[:most])) + tail
