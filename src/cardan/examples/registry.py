"""What an example is: a mechanism with a purpose, and the facts it shows, judged by formulas of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cardan.analysis.result import AssemblyResult
from cardan.errors import CardanError
from cardan.mechanism import Mechanism
from cardan.system.state import Pose, State

# [m, rad, 1], for mechanisms of about a metre: a thousand times what the assembly leaves open, since a closed form near
# a dead position enlarges it.
FACT_TOLERANCE = 1e-9


class ExampleError(CardanError):
    """A mechanism of the gallery does not do what it is there to show."""


@dataclass(frozen=True, slots=True)
class Example:
    """A mechanism of the gallery.

    ``build()`` gives the mechanism as a designer would sketch it: near to an assembled pose, not in it.
    ``check(mechanism, result)`` raises ExampleError, or returns what it found true, one sentence each.
    ``dof`` and ``gruebler`` are what a diagnosis must find: the true freedom, and the count of equations.
    ``motion(mechanism, state)`` tells, in the same way, what holds over a whole motion begun in an assembled state.
    ``everywhere`` is false where freedom and facts belong to the way it is drawn: a linkage with a rhombus, say, can
    also be assembled with the rhombus folded flat, and then moves otherwise.
    """

    name: str
    title: str
    build: Callable[..., Mechanism]
    check: Callable[[Mechanism, AssemblyResult], list[str]]
    dof: int
    gruebler: int
    motion: Callable[[Mechanism, State], list[str]] | None = None
    everywhere: bool = True

    @property
    def redundant(self) -> int:
        """Equations that follow from the others: (6·bodies − rank) − (6·bodies − equations)."""
        return self.dof - self.gruebler

    def facts(self, mechanism: Mechanism, result: AssemblyResult) -> list[str]:
        """All that holds in an assembled state, counts first; ExampleError where something does not."""
        if not result.ok:
            raise ExampleError(f"{self.name} is not assembled; {result.text()}")
        found = mechanism.diagnose(result.state)
        for what, value, declared in (
            ("degrees of freedom", found.dof, self.dof),
            ("Grübler count", found.gruebler, self.gruebler),
            ("redundant equations", len(found.redundant), self.redundant),
        ):
            if value != declared:
                raise ExampleError(f"{self.name} has {what} {value}; it is there to show {declared}")
        freedom = f"degrees of freedom: {self.dof}, by count of equations {self.gruebler}; {self.redundant} redundant"
        return [freedom, *self.check(mechanism, result)]

    def motion_facts(self, mechanism: Mechanism, result: AssemblyResult) -> list[str]:
        """All that holds over its motion from the pose of the sketch; nothing where it is not there to be moved."""
        return [] if self.motion is None else self.motion(mechanism, result.state)


def expect(what: str, value: ArrayLike, expected: ArrayLike, tolerance: float = FACT_TOLERANCE) -> None:
    """Raise ExampleError unless value and expected, numbers or vectors, agree within the tolerance."""
    if not np.allclose(value, expected, rtol=0.0, atol=tolerance):
        raise ExampleError(f"{what}: {np.array(value).tolist()}, expected {np.array(expected).tolist()}")


def rotated(pose: Pose, v: Any) -> NDArray[np.float64]:
    """v in world, given in body axes: v + 2 w e×v + 2 e×(e×v), not by the matrix A(p) which the library uses."""
    w, e = pose.quaternion[0], pose.quaternion[1:]
    t = 2.0 * np.cross(e, v)
    return np.asarray(v + w * t + np.cross(e, t))


def placed(pose: Pose, point: Any) -> NDArray[np.float64]:
    """World position [m] of a point given in body axes, by :func:`rotated`."""
    return np.asarray(pose.position + rotated(pose, point))
