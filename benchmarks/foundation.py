"""Measure the foundation: ``python benchmarks/foundation.py [--starts N] [--json]``.

Measures the assembly of new mechanisms from uniform starts (success and time of the whole ``assemble()``, judged by
independent equations), the time of one warm solver step, the freedoms of overconstrained mechanisms, and the import,
cold start and warm start.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import adapter
import cardan as cd
import problems
from cardan import examples

MET = 1e-10  # tolerance of the judge [m, sine]
clock = time.perf_counter  # versus.py takes the time of the processor

SMALL_SOLVE = """
import time; a = time.perf_counter()
import cardan as cd; b = time.perf_counter()
m = cd.Mechanism(); body = m.body("arm", position=(0.3, 0.1, 0.2))
m.revolute("hinge", m.ground.frame(), body.frame())
m.distance("rod", body.point((1, 0, 0)), m.ground.point((2, 1, 0)), 1.5)
assert m.assemble().ok
print(b - a, time.perf_counter() - a)
"""


def from_uniform_starts(model: problems.Model, count: int) -> dict:
    """Solved starts, restarts and times over ``count`` starts, each with a new mechanism authored at the start."""
    adapter.build(model).assemble()
    seconds, restarts, solved, false = [], [], 0, 0
    for seed in range(count):
        m = adapter.build(model, model.start(seed))
        began = clock()
        result = m.assemble()
        seconds.append(clock() - began)
        restarts.append(result.restarts)
        met = model.residual(adapter.poses(result.state)) <= MET
        solved += result.ok and met
        false += result.ok and not met
    return {
        "solved": int(solved),
        "of": count,
        "false ok": int(false),
        "median ms": 1e3 * float(np.median(seconds)),
        "p99 ms": 1e3 * float(np.quantile(seconds, 0.99)),
        "first try": int(np.sum(np.array(restarts) == 0)),
        "most restarts": int(max(restarts)),
    }


def warm_step(model: problems.Model, count: int) -> dict:
    """Median time of one step, over all steps from uniform starts to the solution except the first."""
    seconds = []
    for seed in range(count):
        run = first_steps(adapter.build(model, model.start(seed)))
        status = run.step()
        while moves(run, status):
            began = clock()
            status = run.step()
            seconds.append(clock() - began)
    return {"median µs": 1e6 * float(np.median(seconds)), "steps": len(seconds)}


def first_steps(m: cd.Mechanism) -> Any:
    """A session with open joints, or a stepper of earlier versions, which versus.py measures too."""
    return m.stepper() if hasattr(m, "stepper") else m.session(closed=False)


def moves(run: Any, status: Any) -> bool:
    """Whether there are more steps."""
    return not (status or run.stalled) if hasattr(run, "stalled") else status == cd.SessionStatus.MOVING


def freedoms() -> dict:
    """dof, Grübler's count and redundant equations of the overconstrained mechanisms of the gallery."""
    found = {}
    for name in ("planar_4r", "bricard"):
        m = examples.REGISTRY[name].build()
        result = m.assemble()
        report = m.diagnose(result.state)
        found[name] = {
            "ok": result.ok,
            "dof": report.dof,
            "gruebler": report.gruebler,
            "redundant": len(report.redundant),
        }
    return found


def start_up(cold_runs: int = 1, warm_runs: int = 5) -> dict:
    """Seconds to import, and from the start of the import to the end of a first small solve."""

    def run(cache: str) -> tuple[float, float]:
        out = subprocess.run(
            [sys.executable, "-c", SMALL_SOLVE],
            env={**os.environ, "CARDAN_CACHE_DIR": cache},
            capture_output=True,
            text=True,
            check=True,
        )
        imported, solved = map(float, out.stdout.split())
        return imported, solved

    cold, warm = [], []
    for _ in range(cold_runs):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(run(cache)[1])
            warm += [run(cache) for _ in range(warm_runs)]
    return {
        "import s": float(np.median([w[0] for w in warm])),
        "cold s": float(np.median(cold)),
        "warm s": float(np.median([w[1] for w in warm])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=1000)
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    figures = {"version": cd.__version__, "assembly": {}}
    for make in (problems.rsur, problems.stewart_distance, problems.stewart_ups, problems.planar_4r):
        model = make()
        found = figures["assembly"][model.name] = from_uniform_starts(model, arguments.starts)
        print(
            f"{model.name:20s} {found['solved']}/{found['of']} solved ({found['first try']} at first try, at most "
            f"{found['most restarts']} restarts), false ok {found['false ok']}, median {found['median ms']:.3f} ms, "
            f"p99 {found['p99 ms']:.3f} ms"
        )
    figures["step"] = warm_step(problems.rsur(), 200)
    print(f"{'one warm step, RSUR':20s} {figures['step']['median µs']:.2f} µs over {figures['step']['steps']} steps")
    figures["freedoms"] = freedoms()
    for name, found in figures["freedoms"].items():
        print(f"{name:20s} " + ", ".join(f"{key} {value}" for key, value in found.items()))
    figures["start-up"] = start_up()
    print(f"{'start-up':20s} " + ", ".join(f"{key} {value:.2f}" for key, value in figures["start-up"].items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
