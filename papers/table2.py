"""Table 2 of [Liu2013] repeated: convergence of Newton's iteration by Jacobian formula and region of the starts.

In addition to the two formulas of the paper: plain Newton on the manifold (six unknowns per body, here three) and
``auto``, the library's own assembly with restarts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from cardan.analysis.options import AUTO
from cardan.coordinates.formulations import Formulation
from cardan.errors import ModelError
from cardan.math import euler
from cardan.system import check
from cardan.system.state import FloatArray
from cardan.system.system import IntArray
from papers import liu2013, printed_22
from papers.liu2013 import Settings

Region = Literal["box", "angles", "sphere"]
Box = Literal["reproducing", "printed"]

SAMPLES = 10_000
MOST_SAMPLES = 1_000_000  # half a gigabyte
REGIONS: Final = ("box", "angles", "sphere")
STREAMS: Final = {"box": 0, "sphere": 1, "angles": 2}  # of random numbers
PRINTED_22: Final = "printed_22"
BOXES: Final = ("reproducing", "printed")

# Methods of the rows, with their labels.
FORMULAS: dict[str, str] = {
    "euler_parameters": "proposed (8)",
    "virtual_rotation": "Peng (6b)",
    PRINTED_22: "Peng (22)",
    "manifold": "manifold Newton",
    AUTO: "auto",
}


@dataclass(frozen=True, slots=True)
class Experiment:
    """An example with its movable body; ``printed`` is the row of Table 2 with which it must be compared.

    ``box`` [−] is the lower bound of the box that reproduces its row: 0 or −1.
    """

    example: int
    movable: int
    printed: str
    box: float

    @property
    def name(self) -> str:
        return f"Example {self.example}, body {self.movable}"


EXPERIMENTS: Final = (
    Experiment(1, 2, "Exam. 1, body 2", 0.0),
    Experiment(1, 1, "Exam. 1, body 1", 0.0),
    Experiment(2, 2, "Exam. 2", -1.0),
    Experiment(3, 2, "Exam. 4", -1.0),
    Experiment(4, 2, "Exam. 3", -1.0),
)

# Convergent cases of 10,000 and their mean iterations, by printed row name, region and formula.  The "hyper sphere" of
# the paper is the region "angles" here.
PAPER: dict[tuple[str, str, str], tuple[int, float]] = {
    ("Exam. 1, body 2", "box", "euler_parameters"): (10_000, 9.43),
    ("Exam. 1, body 2", "box", "virtual_rotation"): (9_919, 23.38),
    ("Exam. 1, body 2", "sphere", "euler_parameters"): (10_000, 10.65),
    ("Exam. 1, body 2", "sphere", "virtual_rotation"): (9_824, 27.19),
    ("Exam. 1, body 1", "box", "euler_parameters"): (3_439, 10.98),
    ("Exam. 1, body 1", "box", "virtual_rotation"): (30, 12.77),
    ("Exam. 1, body 1", "sphere", "euler_parameters"): (2_666, 10.07),
    ("Exam. 1, body 1", "sphere", "virtual_rotation"): (238, 10.83),
    ("Exam. 2", "box", "euler_parameters"): (8_120, 8.92),
    ("Exam. 2", "box", "virtual_rotation"): (651, 58.74),
    ("Exam. 2", "sphere", "euler_parameters"): (6_446, 7.42),
    ("Exam. 2", "sphere", "virtual_rotation"): (1_252, 62.76),
    ("Exam. 3", "box", "euler_parameters"): (1_592, 8.88),
    ("Exam. 3", "box", "virtual_rotation"): (1_681, 13.65),
    ("Exam. 3", "sphere", "euler_parameters"): (1_311, 8.49),
    ("Exam. 3", "sphere", "virtual_rotation"): (1_531, 13.63),
    ("Exam. 4", "box", "euler_parameters"): (8_250, 8.42),
    ("Exam. 4", "box", "virtual_rotation"): (7_748, 10.94),
    ("Exam. 4", "sphere", "euler_parameters"): (8_547, 8.43),
    ("Exam. 4", "sphere", "virtual_rotation"): (8_082, 10.99),
}

# Rows that could not be reproduced with any sampling; all others agree within sampling error.
IRREPRODUCIBLE: frozenset[tuple[str, str, str]] = frozenset(key for key in PAPER if key[0] == "Exam. 2")


def formulas_of(experiment: Experiment) -> list[str]:
    """Formulas of its rows: (22) is printed for Example 1, body 1; in all others it is (6b)."""
    return [formula for formula in FORMULAS if formula != PRINTED_22 or experiment.name == "Example 1, body 1"]


def key_of(experiment: Experiment, region: str, formula: str) -> tuple[str, str, str] | None:
    """The row of the paper with which a row must be compared; None if there is none.

    Starts uniform on the sphere, and (6b) where the paper computed with (22), are not in the paper.
    """
    if PRINTED_22 in formulas_of(experiment) and formula in ("virtual_rotation", PRINTED_22):
        formula = "virtual_rotation" if formula == PRINTED_22 else ""
    key = (experiment.printed, {"box": "box", "angles": "sphere"}.get(region, ""), formula)
    return key if key in PAPER else None


MARKS: dict[str, str] = {
    "a": "v₁′ of Example 1 is printed as (1, 1, 1)/√5; the worked matrix requires (1, 1, 1)/√3, used here",
    "b": "body 1 is movable in the worked iteration, not body 2 (q = p₂); its first row is 2q₀ᵀ = (1, −1, −1, 1)",
    "c": "Algorithm 1 is printed with the loop condition ‖Φ‖ < ε; it must be >",
    "d": "the rows “Exam. 3” and “Exam. 4” are exchanged in print; here each is compared with the other row",
    "e": "the box rows of Example 1 agree with starts in [0, 1]⁴, not in [−1, 1]⁴ as the text says",
    "f": "Example 2: with P₁′ = 0 the first row is parallel to the normalisation, so J is singular everywhere; the "
    "counts depend on the test for singularity; with J⁺ in every step (--inverse pseudo) formula (8) always converges",
    "g": "not reproduced with any sampling; listed next to the paper's result without a claim",
    "h": "the mean iterations of formula (8) are about 0.5 lower than printed",
    "i": "N is not stated; 100 reproduces Peng's counts; with 200, nearly all starts of Example 1, body 2, converge",
    "j": "the “hyper sphere” of the paper agrees with uniformly random roll, pitch and yaw angles (about fixed axes x, "
    "y, z, each over a full turn), not with points uniform on the sphere",
    "k": "the matrix (22) as printed is (6b) on the unit sphere only: it has v′ᵀP̃′ in place of v′ᵀAᵀA P̃′",
}


def marks_of(experiment: Experiment, region: str, formula: str) -> str:
    """Letters of the errata that apply to a row."""
    key = key_of(experiment, region, formula)
    found = ""
    if experiment.example == 1:
        found += "a"
    if experiment.example in (3, 4) and key:
        found += "d"
    if experiment.example == 1 and region == "box":
        found += "e"
    if experiment.example == 2 and key:
        found += "f"
    if key in IRREPRODUCIBLE:
        found += "g"
    if region == "angles" and key:
        found += "j"
    if formula == PRINTED_22:
        found += "k"
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One experiment, region and formula: computed and published results.

    ``first_try`` and ``restarts`` (sums over all starts) are those of ``auto``; the other formulas have no restarts.
    """

    experiment: Experiment
    region: Region
    low: float  # lower bound of the box
    formula: str
    samples: int
    converged: int
    mean_iterations: float
    iterations: IntArray = field(repr=False)  # of the convergent starts
    first_try: int
    restarts: int

    @property
    def paper(self) -> tuple[int, float] | None:
        """Convergent cases of 10,000 and mean iterations as printed; None if the paper has no such row."""
        key = key_of(self.experiment, self.region, self.formula)
        return None if key is None else PAPER[key]

    @property
    def reproducible(self) -> bool:
        """Whether the paper's text, with the errata, reproduces the published values."""
        key = key_of(self.experiment, self.region, self.formula)
        return key is not None and key not in IRREPRODUCIBLE

    @property
    def marks(self) -> str:
        return marks_of(self.experiment, self.region, self.formula)

    @property
    def deviation(self) -> float | None:
        """Difference of computed and printed shares, in standard deviations; None if the paper has no such row.

        Both are counts of random starts: σ² = p(1 − p)(1/n + 1/10,000).
        """
        if self.paper is None:
            return None
        mine, printed = self.converged / self.samples, self.paper[0] / SAMPLES
        if mine == printed:
            return 0.0
        pooled = (self.converged + self.paper[0]) / (self.samples + SAMPLES)
        return (mine - printed) / math.sqrt(pooled * (1.0 - pooled) * (1.0 / self.samples + 1.0 / SAMPLES))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and CSV."""
        count, mean = self.paper or (None, None)
        return {
            "example": self.experiment.example,
            "movable": self.experiment.movable,
            "region": self.region,
            "box": [self.low, 1.0] if self.region == "box" else None,
            "formula": self.formula,
            "samples": self.samples,
            "converged": self.converged,
            "mean_iterations": self.mean_iterations,
            "first_try": self.first_try,
            "restarts": self.restarts,
            "printed_as": self.experiment.printed if self.paper else None,
            "paper_converged": count,
            "paper_mean_iterations": mean,
            "deviation": self.deviation,
            "reproducible": self.reproducible,
            "errata": self.marks,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Table2:
    """The rows and the inputs of the study."""

    rows: tuple[Row, ...]
    settings: Settings
    samples: int
    seed: int
    box: Box
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "samples": self.samples,
            "seed": self.seed,
            "N": self.settings.iterations,
            "epsilon": self.settings.epsilon,
            "inverse": self.settings.inverse,
            "box": self.box,
            "seconds": self.seconds,
            "rows": [row.as_dict() for row in self.rows],
            "errata": MARKS,
        }


def starts(region: Region, low: float, samples: int, seed: int, experiment: int) -> FloatArray:
    """Euler parameters p₀, shape (samples, 4): uniform in the box [low, 1]⁴, or on the unit sphere.

    "angles": of uniformly random roll, pitch and yaw, A = R_z(yaw) R_y(pitch) R_x(roll), each over a full turn.
    """
    rng = np.random.default_rng([seed, experiment, STREAMS[region]])
    if region == "box":
        return rng.uniform(low, 1.0, (samples, 4))
    if region == "angles":
        turned = [euler.from_axis_angle(axis, rng.uniform(-math.pi, math.pi, samples)) for axis in np.eye(3)]
        return np.asarray(euler.multiply(turned[2], euler.multiply(turned[1], turned[0])))
    p: FloatArray = rng.standard_normal((samples, 4))
    p /= np.linalg.norm(p, axis=1, keepdims=True)
    return p


def check_inputs(samples: Any, seed: Any, regions: Sequence[Any], box: Any, examples: Sequence[Any]) -> None:
    """Raise ModelError for invalid inputs."""
    check.count(samples, "the number of starts", 1, MOST_SAMPLES)
    check.count(seed, "the seed", 0)
    if not regions or not examples:
        raise ModelError("there is nothing to do: give at least one region and one example")
    for region in regions:
        check.choice(region, "the region", REGIONS)
    check.choice(box, "the box", BOXES)
    known = {experiment.example for experiment in EXPERIMENTS}
    for example in examples:
        if isinstance(example, bool) or example not in known:
            raise ModelError(f"the example is {example!r}; it must be one of {', '.join(map(str, sorted(known)))}")


def table_2(
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    examples: Sequence[int] = (1, 2, 3, 4),
    regions: Sequence[Region] = REGIONS,
    box: Box = "reproducing",
    settings: Settings | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    rows: list[Row] | None = None,
) -> Table2:
    """Run every formula from the same starts.

    rows: a list to which each row is added as soon as it is found, so that an interrupted run keeps what it has.
    box: [0, 1]⁴ for Example 1, which reproduces the paper's values, or [−1, 1]⁴ for all, as its text says.
    """
    import time

    check_inputs(samples, seed, regions, box, examples)
    settings = settings or Settings()
    began = time.perf_counter()
    chosen = [e for e in EXPERIMENTS if e.example in examples]
    total = sum(len(formulas_of(experiment)) for experiment in chosen) * len(regions) * samples
    done = 0
    rows = [] if rows is None else rows
    for number, experiment in enumerate(EXPERIMENTS):
        if experiment not in chosen:
            continue
        for region in regions:
            low = experiment.box if box == "reproducing" else -1.0
            p = starts(region, low, samples, seed, number)
            for formula in formulas_of(experiment):
                report = None if progress is None else (lambda k, _, before=done: progress(before + k, total))
                rows.append(_row(experiment, region, low, formula, p, settings, seed, workers, report))
                done += samples
    return Table2(tuple(rows), settings, samples, seed, box, time.perf_counter() - began)


def _row(
    experiment: Experiment,
    region: Region,
    low: float,
    formula: Any,
    p: FloatArray,
    settings: Settings,
    seed: int,
    workers: int | None,
    progress: Callable[[int, int], None] | None,
) -> Row:
    example, movable = experiment.example, experiment.movable
    if formula == AUTO:
        poses = liu2013.coordinates(p / np.linalg.norm(p, axis=1, keepdims=True))[:, None, :]
        batch = liu2013.mechanism(example, movable).assemble_many(poses, seed=seed, workers=workers, progress=progress)
        taken = batch.iterations[batch.ok]
        mean = float(taken.mean()) if taken.size else math.nan
        first = int((batch.ok & (batch.restarts == 0)).sum())
        count, restarts = int(batch.ok.sum()), int(batch.restarts.sum())
        return Row(experiment, region, low, formula, len(p), count, mean, taken, first, restarts)
    if formula == PRINTED_22:
        exact = printed_22.algorithm_1(p, settings)
        if progress is not None:
            progress(len(p), len(p))
        own = exact.iterations[exact.ok]
        return Row(experiment, region, low, formula, len(p), exact.count, exact.mean_iterations, own, exact.count, 0)
    formulation: Formulation = formula
    found = liu2013.algorithm_1(example, movable, formulation, p, settings, workers=workers, progress=progress)
    taken = found.iterations[found.ok]
    return Row(experiment, region, low, formula, len(p), found.count, found.mean_iterations, taken, found.count, 0)
