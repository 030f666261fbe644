"""``cardan examples``: list the gallery, or assemble all mechanisms and check their facts."""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass
from typing import Any

from cardan.analysis.result import AssemblyResult
from cardan.cli.output import print_json, table
from cardan.diagnosis.freedom import Diagnosis
from cardan.examples import REGISTRY, Example, ExampleError

HELP = "list the gallery of mechanisms, or assemble all of them"

REPEATS = 5  # assemblies whose median time is shown


@dataclass(frozen=True, slots=True)
class Shown:
    """The results of one example."""

    example: Example
    result: AssemblyResult
    diagnosis: Diagnosis
    facts: list[str]
    failure: str | None
    milliseconds: float

    @property
    def ok(self) -> bool:
        return self.failure is None

    def row(self) -> tuple[str, ...]:
        found, result = self.diagnosis, self.result
        return (
            self.example.name,
            str(result.status) if self.ok or not result.ok else "WRONG",
            str(found.dof),
            str(found.gruebler),
            str(len(found.redundant)),
            f"{result.residual:.1e}",
            str(result.iterations),
            str(result.restarts),
            f"{self.milliseconds:.2f}",
        )

    def as_dict(self) -> dict[str, Any]:
        found, result = self.diagnosis, self.result
        return {
            "name": self.example.name,
            "title": self.example.title,
            "ok": self.ok,
            "status": str(result.status),
            "dof": found.dof,
            "gruebler": found.gruebler,
            "redundant": len(found.redundant),
            "residual": result.residual,
            "iterations": result.iterations,
            "restarts": result.restarts,
            "milliseconds": self.milliseconds,
            "facts": self.facts,
            "failure": self.failure,
        }


TITLES = ("mechanism", "status", "dof", "Grübler", "redundant", "residual", "iterations", "restarts", "time ms")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--solve", action="store_true", help="assemble every mechanism and check its facts")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    if not args.solve:
        if args.json:
            print_json([{"name": example.name, "title": example.title} for example in REGISTRY.values()])
        else:
            width = max(map(len, REGISTRY))
            for example in REGISTRY.values():
                print(f"{example.name:{width}}  {example.title}")
        return 0
    next(iter(REGISTRY.values())).build().assemble()  # loads the kernels, so that the first time does not include it
    shown = [show(example) for example in REGISTRY.values()]
    if args.json:
        print_json([item.as_dict() for item in shown])
    else:
        print(table(TITLES, (item.row() for item in shown), left=2))
        print()
        for item in shown:
            for fact in item.facts:
                print(f"{item.example.name}: {fact}")
            if item.failure is not None:
                print(f"{item.example.name}: WRONG: {item.failure}")
        print(f"\ntime: one assemble() of a mechanism just built, median of {REPEATS}, kernels loaded")
    return 0 if all(item.ok for item in shown) else 1


def show(example: Example) -> Shown:
    """Assemble an example and check its facts; a failure is part of the result."""
    times = []
    for _ in range(REPEATS):
        mechanism = example.build()
        began = time.perf_counter()
        result = mechanism.assemble()
        times.append(1e3 * (time.perf_counter() - began))
    facts: list[str] = []
    failure = None
    try:
        facts = [*example.facts(mechanism, result), *example.motion_facts(mechanism, result)]
    except ExampleError as error:
        failure = str(error)
    return Shown(example, result, mechanism.diagnose(result.state), facts, failure, statistics.median(times))
