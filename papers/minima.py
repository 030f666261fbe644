"""Local minima in assembly by the spring step, with quaternions, with ZXZ angles and on the manifold.

[NelsonCohen1998] and [Nelson1998] report local minima with Euler angles and none with quaternions.  A minimum of |C|²
does not depend on the chart, but a chart can slow the descent: its gradient Bᵀ(∂C/∂δθ)ᵀC is small where B loses rank,
for ZXZ angles near θ = 0 and π.  A run that does not converge is therefore continued twice, in its chart and on the
manifold, for the same number of iterations again.  The result gives the cause of the failure:

=========== =========================================================================================
minimum     neither run converges, and the gradient on the manifold vanishes
chart       the manifold run converges; the chart run does not, or needs more than SLOWED times as many iterations
slow        all other cases: the descent was still in progress when its iterations were used up
=========== =========================================================================================

For the runs stopped by their chart, ``left`` is the ratio of the slope |Jᵀr|/|r| in the chart to that on the manifold:
zero at a pole, where the run is stuck, and small near a pole, where it is slow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from cardan.analysis.chunks import Progress, worker_count
from cardan.coordinates import formulations
from cardan.errors import ModelError
from cardan.examples import REGISTRY, random_start
from cardan.mechanism import Mechanism
from cardan.solvers.methods import SPRING_GAIN
from cardan.solvers.problem import Problem
from cardan.system import check
from cardan.system.state import FloatArray, State
from cardan.system.system import IntArray
from papers.descent import Descents, descend

MECHANISMS: Final = ("bent_chain", "stewart_ups", "stewart_distance", "rsur")
CHARTS: dict[str, str] = {"euler_parameters": "quaternions", "euler_angles": "ZXZ angles", "manifold": "manifold"}

STARTS = 50
ITERATIONS = 10_000
MOST_STARTS, MOST_ITERATIONS = 100_000, 10**9
TOLERANCE = 1e-2  # of the extent, and radians: the spring step converges slowly, and Newton would take over long before
SLOWED = 2.0  # ratio to the iterations of the continued manifold run
STATIONARY = 1e-3  # |Jᵀr|/|r|, scaled: a smaller gradient is treated as zero; at the starts it is of order one
TRIED = 10  # starts to try, to find a convergent one for the sequence
FRAMES = (10, 50, 200, 1000)  # iterations shown in the sequence, besides its start and its end


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """Runs of one mechanism in one chart: how many met the tolerance, and why the others did not."""

    mechanism: str
    chart: str
    starts: int
    met: int
    minimum: int
    by_chart: int
    slow: int
    iterations: IntArray = field(repr=False)  # of the runs that met the tolerance
    residuals: FloatArray = field(repr=False)  # largest scaled residual of each run in a minimum
    left: FloatArray = field(repr=False)  # slope ratio of each run stopped by its chart

    @property
    def median_iterations(self) -> float | None:
        """Median iterations to the tolerance; None if no run met it."""
        return _median(self.iterations)

    @property
    def median_left(self) -> float | None:
        """Median slope ratio of the runs stopped by their chart; None if there is none."""
        return _median(self.left)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and CSV."""
        return {
            "mechanism": self.mechanism,
            "chart": self.chart,
            "starts": self.starts,
            "met": self.met,
            "minimum": self.minimum,
            "by_chart": self.by_chart,
            "slow": self.slow,
            "median_iterations": self.median_iterations,
            "most_iterations": int(self.iterations.max()) if self.iterations.size else None,
            "median_slope_left": self.median_left,
        }


def _median(values: Any) -> float | None:
    return float(np.median(values)) if values.size else None


@dataclass(frozen=True, slots=True)
class Inputs:
    """Validated inputs of the study."""

    mechanisms: tuple[str, ...] = MECHANISMS
    starts: int = STARTS
    iterations: int = ITERATIONS
    tolerance: float = TOLERANCE
    seed: int = 0
    gain: float = SPRING_GAIN  # k; inf: the largest stable value
    models: Mapping[str, Mechanism] = field(default_factory=dict)  # those that are not of the gallery

    def built(self, name: str) -> Mechanism:
        """A mechanism by its name."""
        return self.models[name].copy() if name in self.models else REGISTRY[name].build()

    def __post_init__(self) -> None:
        if not self.mechanisms:
            raise ModelError("there is nothing to do: give at least one mechanism")
        for name in self.mechanisms:
            if name not in REGISTRY and name not in self.models:
                raise check.unknown(name, "example", REGISTRY)
        for value, what, least, most in (
            (self.starts, "the number of starts", 1, MOST_STARTS),
            (self.iterations, "the number of iterations", 1, MOST_ITERATIONS),
            (self.seed, "the seed", 0, None),
        ):
            check.count(value, what, least, most)
        if check.positive(self.tolerance, "the tolerance") >= 1.0:
            raise ModelError(f"the tolerance is {self.tolerance}; it must be below 1 (lengths are relative)")
        if self.gain != math.inf:
            check.positive(self.gain, "k of the spring step")


def minima(
    inputs: Inputs | None = None,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    rows: list[Descent] | None = None,
) -> tuple[Descent, ...]:
    """Descend in every chart from the same starts: positions within ± the extent, uniform orientations.

    rows: a list to which each row is added as soon as it is found, so that an interrupted run keeps what it has.
    """
    inputs = inputs or Inputs()
    threads = worker_count(workers)
    total = len(inputs.mechanisms) * len(CHARTS)
    found = [] if rows is None else rows
    for name in inputs.mechanisms:
        mechanism = inputs.built(name)
        starts = starting_poses(mechanism, inputs.starts, inputs.seed)
        for chart in CHARTS:
            report = None if progress is None else _part(progress, len(found), total, inputs.starts)
            found.append(_descend(mechanism, chart, starts, inputs, threads, report))
    return tuple(found)


def _part(progress: Progress, before: int, total: int, starts: int) -> Progress:
    return lambda done, _: progress(before * starts + done, total * starts)


def starting_poses(mechanism: Mechanism, count: int, seed: int) -> FloatArray:
    """Random r and p, shape (count, bodies, 7): uniform orientations, positions within ± the extent of the sketch."""
    poses = [mechanism.state.moved(random_start(mechanism, count * seed + k)).coordinates for k in range(count)]
    return np.array(poses)


def _descend(
    mechanism: Mechanism, chart: Any, starts: FloatArray, inputs: Inputs, threads: int, progress: Progress | None
) -> Descent:
    system = mechanism.system

    def run(formulation: str, poses: FloatArray, report: Progress | None) -> Descents:
        limits = (inputs.tolerance, inputs.iterations)
        return descend(system, formulation, poses, *limits, gain=inputs.gain, threads=threads, progress=report)

    ends = run(chart, starts, progress)
    rest = np.flatnonzero(~ends.met)
    minimum = slow = 0
    residuals: list[float] = []
    left: list[float] = []
    if rest.size:
        freed = run("manifold", ends.coordinates[rest], None)
        fixed = freed if chart == "manifold" else run(chart, ends.coordinates[rest], None)
        manifold, own = formulations.problem(system, "manifold"), formulations.problem(system, chart)
        for k, start in enumerate(rest):
            escaped, arrived = freed.met[k], fixed.met[k]
            if not escaped and not arrived and slope(manifold, freed.q[k]) <= STATIONARY:
                minimum += 1
                residuals.append(float(freed.residual[k]))
            elif escaped and not (arrived and fixed.iterations[k] <= SLOWED * freed.iterations[k]):
                left.append(slope(own, ends.q[start]) / slope(manifold, ends.q[start]))
            else:
                slow += 1
    met, taken = int(ends.met.sum()), ends.iterations[ends.met]
    counts = (len(starts), met, minimum, len(left), slow)
    return Descent(mechanism.name, chart, *counts, taken, np.array(residuals), np.array(left))


def slope(problem: Problem, q: FloatArray) -> float:
    """|Jᵀr|/|r| in scaled rows and unknowns: zero at a stationary point of |r|²."""
    r, jacobian = problem.jacobian(q)
    rows, columns = problem.scales[: problem.rows], problem.scales[problem.rows :]
    r = rows * r
    length = float(np.linalg.norm(r))
    return float(np.linalg.norm(columns * (jacobian.T @ (rows * r)))) / length if length else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Poses during an assembly: iterations and states, the final residual, and whether the tolerance is met."""

    mechanism: Mechanism
    iterations: tuple[int, ...]
    states: tuple[State, ...]
    residual: float  # lengths relative to the extent, angles in radians
    met: bool


def sequence(inputs: Inputs | None = None, frames: Sequence[int] = FRAMES) -> Steps:
    """Poses of the first mechanism during its descent in quaternions, like figure 6 of [NelsonCohen1998].

    Uses the first start of the study, among TRIED, that meets the tolerance, or the very first if none does.
    """
    inputs = inputs or Inputs()
    mechanism = inputs.built(inputs.mechanisms[0])
    system = mechanism.system

    def run(pose: FloatArray, most: int) -> Descents:
        return descend(system, "euler_parameters", pose[None], inputs.tolerance, most, gain=inputs.gain)

    poses = starting_poses(mechanism, inputs.starts, inputs.seed)
    chosen = next((k for k, pose in enumerate(poses[:TRIED]) if run(pose, inputs.iterations).met[0]), 0)
    last = run(poses[chosen], inputs.iterations)
    total = int(last.iterations[0])
    shown = [run(poses[chosen], most) for most in frames if 0 < most < total] + [last]
    states = [system.state(poses[chosen]), *(system.state(end.coordinates[0]) for end in shown)]
    counts = [0, *(int(end.iterations[0]) for end in shown)]
    return Steps(mechanism, tuple(counts), tuple(states), float(last.residual[0]), bool(last.met[0]))
