"""Steps of dynamics, ours beside Exudyn and MuJoCo where they are installed: ``python benchmarks/dynamics.py``.

    RSUR four-bar from rest, 1 s: time per step of 1 ms with results stored, error of the crank's rotation, closure
    the same by error tolerance: work and precision
    the same with a driven crank; chains of N links, closed and open, and a hub with N arms: time per step
    error against CPU time on three problems (:mod:`precision`); ``--plot`` draws it

Every body has 1 kg, its centre in the middle and the inertia of a rod.  Runs of the programs are interleaved; the
median over the rounds is given.  Exudyn: generalised-alpha, index 3.  MuJoCo: ``mj_step`` with nstep, soft constraints.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import adapter
import cardan as cd
import problems
from cardan.lazy import TieredModule
from peers import load

ROTATION = -1.01551837352  # [rad] of the crank at 1 s, on which independent programs agree
STEP = 1e-3
DRIVEN_STEPS = 2000
OURS = "Cardan"


def lengths(model: problems.Model) -> dict[int, float]:
    """Length [m] of every body: from its origin to the farthest joint."""
    found = dict.fromkeys((body for body in model.reference if body), 0.0)
    for joint in model.joints:
        for body, point in ((joint.i, joint.point_i), (joint.j, joint.point_j)):
            if body:
                found[body] = max(found[body], float(np.linalg.norm(point)))
    return found


def build(model: problems.Model) -> cd.Mechanism:
    """Our mechanism, with masses."""
    m = adapter.build(model)
    for name, own in zip(m.system.names, lengths(model).values(), strict=True):
        length = own or 1.0  # the last link of an open chain has one joint
        m[name].mass, m[name].center = 1.0, (0.5 * length, 0.0, 0.0)
        m[name].inertia = np.diag([0.001, length * length / 12.0, length * length / 12.0])
    return m


def rotation(start: np.ndarray, end: np.ndarray, axis: np.ndarray) -> float:
    """Rotation [rad] about an axis from one matrix to another, in (−π, π]."""
    r = start.T @ end
    sine = 0.5 * np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]]) @ axis
    return float(np.arctan2(sine, 0.5 * (np.trace(r) - 1.0)))


class Runner:
    """One program: runs of the RSUR of 1 s; ``run`` returns the final poses."""

    def __init__(self, name: str, run: Callable[[], dict[int, problems.Pose]]) -> None:
        self.name, self.run = name, run
        self.seconds: list[float] = []
        self.poses: dict[int, problems.Pose] = {}

    def go(self) -> None:
        began = time.perf_counter()
        self.poses = self.run()
        self.seconds.append(time.perf_counter() - began)


def ours(model: problems.Model, **arguments: Any) -> Callable[[], dict[int, problems.Pose]]:
    m = build(model)

    def run() -> dict[int, problems.Pose]:
        state = m.simulate(1.0, **arguments).state
        assert state is not None
        return adapter.poses(state)

    return run


def rsur(rounds: int) -> list[dict[str, Any]]:
    """Time per step, error and closure of every program."""
    model = problems.rsur()
    programs = [Runner(f"{OURS}, step 1 ms", ours(model, step=STEP))]
    for rtol in (1e-4, 1e-6, 1e-8, 1e-10):
        programs.append(Runner(f"{OURS}, rtol {rtol:g}", ours(model, rtol=rtol, times=[1.0])))
    for key in ("exudyn", "mujoco"):
        peer = load_or_none(key)
        if peer is not None:
            for step in (STEP, 2e-3, 5e-4):
                run = peer.simulator(model, lengths(model), 1.0, step)
                programs.append(Runner(f"{peer.name}, step {1e3 * step:g} ms", run))
    for program in programs:
        program.go()
        program.seconds.clear()
    for _ in range(rounds):
        for program in programs:
            program.go()
    start, axis = model.reference[1][0], model.joints[0].axis_j
    found = []
    for program in programs:
        error = abs(rotation(start, program.poses[1][0], axis) - ROTATION)
        seconds = median(program.seconds)
        found.append(
            {"program": program.name, "ms": 1e3 * seconds, "error": error, "open": model.residual(program.poses)}
        )
    return found


def driven(rounds: int) -> dict[str, float]:
    """Microseconds of a step of 1 ms of the RSUR without and with a driver of its crank, and the median ratio."""
    free, moved = build(problems.rsur()), build(problems.rsur())
    hinge = moved.joints[next(iter(moved.joints))]
    first = hinge.coordinate(moved.assemble().state)
    moved.drive("motor", hinge, lambda t: first + 1.5 * t)
    seconds: list[tuple[float, float]] = []
    for _ in range(rounds + 1):
        pair = []
        for m in (free, moved):
            began = time.perf_counter()
            found = m.simulate(DRIVEN_STEPS * STEP, step=STEP)
            pair.append((time.perf_counter() - began) / DRIVEN_STEPS)
            assert found.ok, found.text()
        seconds.append((pair[0], pair[1]))
    del seconds[0]
    ratio = median(b / a for a, b in seconds)
    return {"free": 1e6 * median(a for a, _ in seconds), "driven": 1e6 * median(b for _, b in seconds), "ratio": ratio}


def hub(arms: int) -> cd.Mechanism:
    """A wheel on the ground with hinged arms around it, which swing under gravity."""
    m = cd.Mechanism("hub", gravity=(0.0, -9.81, 0.0))
    wheel = m.body("wheel", mass=10.0, inertia=np.diag([1.0, 1.0, 2.0]))
    m.revolute("axle", m.ground.frame(), wheel.frame())
    for k in range(arms):
        angle = 2.0 * np.pi * k / arms
        at = np.array([np.cos(angle), np.sin(angle), 0.0])
        p = (np.cos(0.5 * angle), 0.0, 0.0, np.sin(0.5 * angle))
        arm = m.body(
            f"arm {k}",
            position=at,
            orientation=p,
            center=(0.5, 0, 0),
            mass=1.0,
            inertia=np.diag([0.001, 1 / 12, 1 / 12]),
        )
        m.revolute(f"hinge {k}", wheel.frame(at), arm.frame())
    return m


def step_cost(m: cd.Mechanism, steps: int) -> float:
    """Seconds per step."""
    state = m.assemble().state
    m.simulate(4 * STEP, state, step=STEP, times=[4 * STEP])
    seconds = []
    for number in (4, 4 + steps):
        began = time.perf_counter()
        m.simulate(number * STEP, state, step=STEP, times=[number * STEP])
        seconds.append(time.perf_counter() - began)
    return (seconds[1] - seconds[0]) / steps


FIRST = """
import time
began = time.perf_counter()
from cardan.examples import REGISTRY
assert REGISTRY["rsur"].build().simulate(0.05, step=1e-3).ok
print(time.perf_counter() - began)
"""


def first_simulation() -> dict[str, float]:
    """Seconds of a first simulation in a new process, with an empty cache of kernels and with a filled one."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    found = {}
    with tempfile.TemporaryDirectory() as cache:
        for name, own in (
            ("bytecode", {}),
            ("cold", {"CARDAN_CACHE_DIR": cache}),
            ("warm", {"CARDAN_CACHE_DIR": cache}),
        ):
            run = [sys.executable, "-c", FIRST]
            out = subprocess.run(run, env={**kept, **own}, capture_output=True, text=True, check=True)
            found[name] = float(out.stdout)
    return {"cold": found["cold"], "warm": found["warm"]}


def load_or_none(key: str) -> Any:
    try:
        return load(key)
    except ImportError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--chains", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--hubs", type=int, nargs="*", default=[3000])
    parser.add_argument("--quick", action="store_true", help="without the diagram of work and precision")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--plot", type=Path, help="draw the diagram of work and precision (needs the extra plot)")
    options = parser.parse_args()
    TieredModule.patience = 0  # as after `cardan warmup`
    rows = rsur(options.rounds)
    print(f"{'RSUR, 1 s from rest':28}{'ms':>10}{'error [rad]':>14}{'open [m]':>12}")
    for row in rows:
        print(f"{row['program']:28}{row['ms']:10.3f}{row['error']:14.1e}{row['open']:12.1e}")
    ratio = driven(options.rounds)
    print(f"RSUR, 1 ms: {ratio['free']:.2f} µs a step; driven: {ratio['driven']:.2f} µs, {ratio['ratio']:.2f} times")
    chains = {count: step_cost(build(problems.chain(count)), 50) for count in options.chains}
    for count, seconds in chains.items():
        print(f"closed chain of {count}: {1e3 * seconds:.3f} ms a step")
    others = {
        f"open chain of {count}": step_cost(build(problems.chain(count, closed=False)), 50) for count in options.chains
    }
    others |= {f"hub with {count} arms": step_cost(hub(count), 20) for count in options.hubs}
    for name, seconds in others.items():
        print(f"{name}: {1e3 * seconds:.3f} ms a step")
    first = first_simulation()
    print(f"first simulation of a process: {first['cold']:.1f} s, with cached kernels {first['warm']:.2f} s")
    if options.quick:
        return
    import precision  # it imports this module

    found = precision.measure(max(1, options.rounds // 3))
    precision.report(found)
    if options.plot:
        precision.draw(found, options.plot)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            found = {
                "rsur": rows,
                "driven": ratio,
                "chains": chains,
                "others": others,
                "first": first,
                "precision": found,
            }
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
