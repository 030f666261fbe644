"""Compare Cardan with other programs: the same starts in one process, with the programs interleaved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import ModuleType

import numpy as np

import adapter
import cardan as cd
import foundation
import peers
import problems
from problems import Model, Pose

MET = 1e-6  # tolerance of the judge [m, sine], for every program
PATIENCE = 60.0  # s for a program on one problem; after that it runs only the least number of starts
OURS = "Cardan"

Assemble = Callable[[Model, dict[int, Pose]], peers.Answer]


@dataclass(frozen=True, slots=True)
class Problem:
    """A model, the kind of start, and the number of starts."""

    name: str
    make: Callable[[], Model]
    starts: int
    kind: str = "uniform"


PROBLEMS = (
    Problem("RSUR", problems.rsur, 50),
    Problem("planar 4R", problems.planar_4r, 50),
    Problem("Stewart 6-distance", problems.stewart_distance, 50),
    Problem("Stewart UPS", problems.stewart_ups, 50),
    Problem("chain 1000, bad", lambda: problems.chain(1000), 20, "bad"),
    Problem("chain 1000, uniform", lambda: problems.chain(1000), 20),
)


@dataclass(slots=True)
class Record:
    """Results of one program on one problem."""

    seconds: list[float] = field(default_factory=list)
    solved: int = 0
    worst: float = 0.0  # largest residual of the solved starts
    spent: float = 0.0  # s, including building and judging
    errors: list[str] = field(default_factory=list)

    def add(self, model: Model, assemble: Assemble, start: dict[int, Pose]) -> None:
        began = time.perf_counter()
        try:
            answer = assemble(model, start)
            residual, seconds = model.residual(answer.poses), answer.seconds
        except Exception as error:  # a failure of another program is a result
            residual, seconds = float("inf"), time.perf_counter() - began
            self.errors.append(f"{type(error).__name__}: {error}".splitlines()[0][:100])
        self.spent += time.perf_counter() - began
        self.seconds.append(seconds)
        if residual <= MET:
            self.solved += 1
            self.worst = max(self.worst, residual)

    def figures(self, ours: Record) -> dict:
        """Medians are over all starts, solved or not; the ratio is over the starts that both programs ran."""
        count = len(self.seconds)
        median = float(np.median(self.seconds))
        return {
            "solved": self.solved,
            "starts": count,
            "errors": self.errors,  # messages of exceptions; such a start counts as not solved
            "median ms": 1e3 * median,
            "slowest ms": 1e3 * max(self.seconds),
            "times ours": median / float(np.median(ours.seconds[:count])),
            "worst residual": self.worst,
        }


def assemble_ours(model: Model, start: dict[int, Pose]) -> peers.Answer:
    """Timed: the whole ``assemble()`` on a new mechanism, including packing."""
    mechanism = adapter.build(model, start)
    began = time.perf_counter()
    result = mechanism.assemble()
    seconds = time.perf_counter() - began
    return peers.Answer(adapter.poses(result.state), seconds)


def assembly(problem: Problem, programs: Iterable[ModuleType], starts: int, least: int) -> dict[str, dict]:
    """Results by program, ours first; a slow program runs at least ``least`` of the starts."""
    model = problem.make()
    assemble: dict[str, Assemble] = {OURS: assemble_ours}
    assemble |= {program.name: program.assemble for program in programs if problem.name in program.problems}
    near = {body: pose for body, pose in model.reference.items() if body}
    for run in assemble.values():  # one-time work per model or process is not timed
        Record().add(model, run, near)
    records = {name: Record() for name in assemble}
    names = list(assemble)
    for seed in range(starts):
        start = model.start(seed, problem.kind)
        for name in names[seed % len(names) :] + names[: seed % len(names)]:
            record = records[name]
            if record.spent < PATIENCE or len(record.seconds) < least or name == OURS:
                record.add(model, assemble[name], start)
    return {name: record.figures(records[OURS]) for name, record in records.items()}


def steps(programs: Iterable[ModuleType], rounds: int = 20, count: int = 50) -> dict[str, dict]:
    """One warm step of the RSUR four-bar, interleaved: ours of the position solver, theirs of their dynamics."""
    model = problems.rsur()
    theirs = {program.name: program.stepper(model) for program in programs if hasattr(program, "stepper")}
    medians: dict[str, list[float]] = {name: [] for name in (OURS, *theirs)}
    worst = dict.fromkeys(theirs, 0.0)
    for _ in range(rounds):
        medians[OURS].append(foundation.warm_step(model, 10)["median µs"])
        for name, (step, poses) in theirs.items():
            seconds = []
            for _ in range(count):
                began = time.perf_counter()
                step()
                seconds.append(time.perf_counter() - began)
            medians[name].append(1e6 * float(np.median(seconds)))
            worst[name] = max(worst[name], model.residual(poses()))
    typical = {name: float(np.median(each)) for name, each in medians.items()}
    found = {name: {"median µs": each, "times ours": each / typical[OURS]} for name, each in typical.items()}
    for name, residual in worst.items():
        found[name]["residual under way"] = residual
    return found


def tolerances(programs: Iterable[ModuleType]) -> dict[str, str]:
    """The tolerance requested from each program."""
    return {OURS: "1e-12 of the extent", **{program.name: program.tolerance for program in programs}}


def version_of_ours() -> str:
    return cd.__version__
