"""Time and memory by the number of bodies: ``python benchmarks/scale.py {chain|loops} COUNT`` prints one case.

Each case runs in its own process, so that its peak memory can be measured.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import adapter
import foundation
import problems
from problems import Model

EVERY = 10  # links between two local loops
ACROSS = 3  # links that a local loop spans
STEPS = 12  # steps for the median; the first one is omitted because its memory is cold


def chain_with_loops(count: int) -> Model:
    """The closed chain, with a rod from every 10th link k to link k + 3, as long as in the reference pose."""
    model = problems.chain(count)
    model.name = f"chain {count} with loops"
    for k in range(EVERY, count - ACROSS + 1, EVERY):
        model.distance(k, k + ACROSS, model.reference[k][1], model.reference[k + ACROSS][1])
    return model


MODELS = {"chain": problems.chain, "loops": chain_with_loops}


def peak_megabytes() -> float:
    """Peak memory of this process.  Not ``ru_maxrss`` on Linux, where a child starts with its parent's value."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6  # bytes on macOS, kilobytes elsewhere


def one(kind: str, count: int) -> dict:
    """Assembly from a uniform start, time of one iteration, and peak memory of this process, including the model."""
    adapter.build(problems.chain(100)).assemble()  # load the kernels before timing
    model = MODELS[kind](count)
    start = model.start(0)
    mechanism = adapter.build(model, start)
    began = foundation.clock()
    result = mechanism.assemble()
    seconds = foundation.clock() - began
    residual = model.residual(adapter.poses(result.state))
    peak = peak_megabytes()
    run = foundation.first_steps(mechanism)
    status = run.step()
    steps = []
    while len(steps) < STEPS and (foundation.moves(run, status) or not steps):
        began = foundation.clock()
        status = run.step()
        steps.append(foundation.clock() - began)
    return {
        "bodies": count,
        "ok": bool(result.ok),
        "residual m": residual,
        "extent m": float(mechanism.system.length),
        "assembly s": seconds,
        "iterations": result.iterations,
        "restarts": result.restarts,
        "iteration ms": 1e3 * float(np.median(steps)),
        "peak MB": peak,
    }


def measure(kind: str, count: int) -> dict:
    """One case in a new process."""
    out = subprocess.run([sys.executable, __file__, kind, str(count)], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(out.stdout)


def curve(kind: str, counts: Sequence[int], rounds: int) -> list[dict]:
    """For each size, the round with the median iteration time; sizes are interleaved, so that load affects them all."""
    found: dict[int, list[dict]] = {count: [] for count in counts}
    for _ in range(rounds):
        for count, cases in found.items():
            cases.append(measure(kind, count))
    return [sorted(cases, key=lambda case: case["iteration ms"])[rounds // 2] for cases in found.values()]


def exponent(cases: list[dict], least: int = 1000) -> float:
    """Slope of log(time of one iteration) over log(bodies), for at least ``least`` bodies."""
    points = [(case["bodies"], case["iteration ms"]) for case in cases if case["bodies"] >= least]
    x, y = np.log(np.array(points).T)
    return float(np.polyfit(x, y, 1)[0])


if __name__ == "__main__":
    print(json.dumps(one(sys.argv[1], int(sys.argv[2]))))
