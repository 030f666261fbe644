"""Local minima by experiment: assembly by the spring step alone, in quaternions, in ZXZ angles and on the manifold.

[NelsonCohen1998] and [Nelson1998] report local minima with Euler angles and none with quaternions.  A minimum of |C|²
does not depend on the chart, but a chart can add stalls of its own: its gradient Bᵀ(∂C/∂δθ)ᵀC is small where B loses
rank, for ZXZ angles near θ = 0 and π.  So a run that does not arrive goes on twice, once in its chart and once on the
manifold, for as many iterations as it has had, and what happens then says what held it:

=========== =========================================================================================
minimum     neither arrives, and the gradient on the manifold vanishes: no chart leads away
chart       on the manifold it arrives, in its chart it still does not
slow        all else: the descent was under way when its iterations were used up
=========== =========================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from cardan.analysis.chunks import Progress, worker_count
from cardan.coordinates import formulations
from cardan.errors import ModelError
from cardan.examples import REGISTRY, random_start
from cardan.mechanism import Mechanism
from cardan.solvers.problem import Problem
from cardan.study.descent import Descents, descend
from cardan.system import check
from cardan.system.state import FloatArray, State
from cardan.system.system import IntArray

MECHANISMS: Final = ("bent_chain", "stewart_ups", "stewart_distance", "rsur")
CHARTS: dict[str, str] = {"euler_parameters": "quaternions", "euler_angles": "ZXZ angles", "manifold": "manifold"}

STARTS = 50
ITERATIONS = 10_000
TOLERANCE = 1e-2  # of the extent, and radians: the spring step creeps, and Newton would take over long before
STATIONARY = 1e-3  # |Jᵀr|/|r|, scaled: below it a gradient counts as vanished; at the starts it is of order one
FRAMES = (0, 10, 50, 200, 1000)  # iterations at which the sequence is shown, and where it ends


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """Runs of one mechanism in one chart: how many met the tolerance, and what held the others."""

    mechanism: str
    chart: str
    starts: int
    met: int
    minimum: int
    trapped: int  # by the chart
    slow: int
    iterations: IntArray = field(repr=False)  # to the tolerance, of the runs that met it
    residuals: FloatArray = field(repr=False)  # of the runs held by a minimum: the largest, scaled

    @property
    def median_iterations(self) -> float | None:
        """To the tolerance; None where no run met it."""
        return float(np.median(self.iterations)) if self.iterations.size else None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "mechanism": self.mechanism,
            "chart": self.chart,
            "starts": self.starts,
            "met": self.met,
            "minimum": self.minimum,
            "trapped": self.trapped,
            "slow": self.slow,
            "median_iterations": self.median_iterations,
            "most_iterations": int(self.iterations.max()) if self.iterations.size else None,
        }


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the study is made with; checked."""

    mechanisms: tuple[str, ...] = MECHANISMS
    starts: int = STARTS
    iterations: int = ITERATIONS
    tolerance: float = TOLERANCE
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.mechanisms:
            raise ModelError("there is nothing to do: give one mechanism at least")
        for name in self.mechanisms:
            if name not in REGISTRY:
                raise check.unknown(name, "example", REGISTRY)
        for value, what, least in (
            (self.starts, "the number of starts", 1),
            (self.iterations, "the number of iterations", 1),
            (self.seed, "the seed", 0),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ModelError(f"{what} is {value!r}; it must be a whole number from {least} on")
        if check.positive(self.tolerance, "the tolerance") >= 1.0:
            raise ModelError(f"the tolerance is {self.tolerance}; it must be below 1 (lengths are relative)")


def minima(
    inputs: Inputs | None = None, *, workers: int | None = None, progress: Progress | None = None
) -> tuple[Descent, ...]:
    """Descend in every chart from the same starts, every body anywhere within ± the extent, turned anyhow."""
    inputs = inputs or Inputs()
    threads = worker_count(workers)
    total = len(inputs.mechanisms) * len(CHARTS)
    found: list[Descent] = []
    for name in inputs.mechanisms:
        mechanism = REGISTRY[name].build()
        starts = starting_poses(mechanism, inputs.starts, inputs.seed)
        for chart in CHARTS:
            tell = None if progress is None else _part(progress, len(found), total, inputs.starts)
            found.append(_descend(mechanism, chart, starts, inputs, threads, tell))
    return tuple(found)


def _part(progress: Progress, before: int, total: int, starts: int) -> Progress:
    return lambda done, _: progress(before * starts + done, total * starts)


def starting_poses(mechanism: Mechanism, count: int, seed: int) -> FloatArray:
    """r and p of every body, shape (count, bodies, 7): uniform orientations, within ± the extent of the sketch."""
    poses = [mechanism.state.moved(random_start(mechanism, count * seed + k)).coordinates for k in range(count)]
    return np.array(poses)


def _descend(
    mechanism: Mechanism, chart: Any, starts: FloatArray, inputs: Inputs, threads: int, progress: Progress | None
) -> Descent:
    system = mechanism.system

    def run(formulation: str, poses: FloatArray, tell: Progress | None) -> Descents:
        limits = (inputs.tolerance, inputs.iterations)
        return descend(system, formulation, poses, *limits, threads=threads, progress=tell)

    ends = run(chart, starts, progress)
    rest = np.flatnonzero(~ends.met)
    minimum = trapped = slow = 0
    residuals = []
    if rest.size:
        freed = run("manifold", ends.coordinates[rest], None)
        held = freed if chart == "manifold" else run(chart, ends.coordinates[rest], None)
        manifold = formulations.problem(system, "manifold")
        for k in range(rest.size):
            escaped, arrived = freed.met[k], held.met[k]
            if not escaped and not arrived and slope(manifold, freed.q[k]) <= STATIONARY:
                minimum += 1
                residuals.append(float(freed.residual[k]))
            elif escaped and not arrived:
                trapped += 1
            else:
                slow += 1
    met, taken = int(ends.met.sum()), ends.iterations[ends.met]
    return Descent(mechanism.name, chart, len(starts), met, minimum, trapped, slow, taken, np.array(residuals))


def slope(problem: Problem, q: FloatArray) -> float:
    """|Jᵀr|/|r| in scaled rows and unknowns: zero at a stationary point of |r|²."""
    r, jacobian = problem.jacobian(q)
    rows, columns = problem.scales[: problem.rows], problem.scales[problem.rows :]
    r = rows * r
    length = float(np.linalg.norm(r))
    return float(np.linalg.norm(columns * (jacobian.T @ (rows * r)))) / length if length else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Poses of an assembly on its way: iterations and states."""

    mechanism: Mechanism
    iterations: tuple[int, ...]
    states: tuple[State, ...]


def sequence(inputs: Inputs | None = None, frames: Sequence[int] = FRAMES) -> Steps:
    """The bent chain on its way in quaternions, until it meets the tolerance: like figure 6 of [NelsonCohen1998]."""
    inputs = inputs or Inputs()
    mechanism = REGISTRY["bent_chain"].build()
    system = mechanism.system
    start = mechanism.state.moved(random_start(mechanism, inputs.seed))
    states, counts = [start], [0]
    for most in [*(f for f in frames if 0 < f < inputs.iterations), inputs.iterations]:
        end = descend(system, "euler_parameters", start.coordinates[None], inputs.tolerance, most)
        states.append(system.state(end.coordinates[0]))
        counts.append(int(end.iterations[0]))
        if end.met[0]:
            break
    return Steps(mechanism, tuple(counts), tuple(states))
