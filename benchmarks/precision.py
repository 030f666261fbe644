"""Work and precision: error against CPU time of a whole run, ours beside Exudyn and MuJoCo where they are installed.

    RSUR four-bar, 1 s from rest: rotation of the crank
    Andrews' squeezing mechanism, 0.03 s: angle β
    closed chain of 20 links with ball joints, 0.3 s from rest: position of the third link (the middle falls freely)

Each program runs with several steps or tolerances; runs are interleaved, and the least CPU time of the rounds is given.
The reference of the first two is published; that of the chain is our run of another method (dopri5) with small steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import adapter
import problems
import squeezer
from dynamics import OURS, ROTATION, build, lengths, load_or_none, rotation

TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11)
LINKS, FALL, THIRD = 20, 0.3, 3
Run = Callable[[], Any]
Curve = list[tuple[str, Run]]  # label of each run, and the run, which returns its error


def _wrapped(angle: float) -> float:
    return abs((angle + np.pi) % (2 * np.pi) - np.pi)


def of_rsur() -> dict[str, Curve]:
    """Errors of the crank's rotation [rad]."""
    model = problems.rsur()
    m = build(model)
    start, axis = model.reference[1][0], model.joints[0].axis_j

    def error(poses: dict) -> float:
        return _wrapped(rotation(start, poses[1][0], axis) - ROTATION)

    def ours(**options: Any) -> Run:
        return lambda: error(adapter.poses(m.simulate(1.0, times=[1.0], **options).state))

    curves = {f"{OURS}, rtol": [(f"{rtol:g}", ours(rtol=rtol)) for rtol in TOLERANCES]}
    curves[f"{OURS}, constant step"] = [(f"{h:g}", ours(step=h)) for h in (8e-3, 4e-3, 2e-3, 1e-3, 5e-4)]
    for key, steps in (("exudyn", (8e-3, 4e-3, 2e-3, 1e-3, 5e-4)), ("mujoco", (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4))):
        peer = load_or_none(key)
        if peer is not None:
            runs = [(h, peer.simulator(model, lengths(model), 1.0, h)) for h in steps]
            curves[peer.name] = [(f"{h:g}", lambda run=run: error(run())) for h, run in runs]
    return curves


def of_squeezer() -> dict[str, Curve]:
    """Errors of β [rad]."""
    m = squeezer.build()

    def ours(**options: Any) -> Run:
        def run() -> float:
            state = m.simulate(squeezer.DURATION, times=[squeezer.DURATION], **options).state
            if state is None:  # the step is too large, and the simulation says so
                return float("nan")
            p = state["K1"].quaternion
            return _wrapped(2.0 * np.arctan2(p[3], p[0]) - squeezer.BETA)

        return run

    curves = {f"{OURS}, rtol": [(f"{rtol:g}", ours(rtol=rtol)) for rtol in TOLERANCES[2:]]}
    curves[f"{OURS}, constant step"] = [(f"{h:g}", ours(step=h)) for h in (2e-4, 1e-4, 5e-5, 2.5e-5)]
    for key, steps in (("exudyn", (2e-4, 1e-4, 5e-5, 2.5e-5)), ("mujoco", (1e-4, 5e-5, 2.5e-5, 1.25e-5))):
        peer = load_or_none(key)
        if peer is not None:
            runs = [(h, peer.squeezer(h)) for h in steps]
            curves[peer.name] = [(f"{h:g}", lambda run=run: _wrapped(run() - squeezer.BETA)) for h, run in runs]
    return curves


def of_chain() -> dict[str, Curve]:
    """Errors of the position of the third link [m]."""
    model = problems.chain(LINKS)
    m, third = build(model), f"body {THIRD}"
    exact = m.simulate(FALL, step=2e-4, method="dopri5", times=[FALL]).positions(third)[-1]

    def ours(**options: Any) -> Run:
        return lambda: _apart(m.simulate(FALL, times=[FALL], **options).positions(third)[-1], exact)

    curves = {f"{OURS}, rtol": [(f"{rtol:g}", ours(rtol=rtol)) for rtol in TOLERANCES]}
    curves[f"{OURS}, constant step"] = [(f"{h:g}", ours(step=h)) for h in (4e-3, 2e-3, 1e-3, 5e-4)]
    exudyn, mujoco = load_or_none("exudyn"), load_or_none("mujoco")
    if exudyn is not None:
        runs = [(h, exudyn.simulator(model, lengths(model), FALL, h)) for h in (4e-3, 2e-3, 1e-3)]
        curves[exudyn.name] = [(f"{h:g}", lambda run=run: _apart(run()[THIRD][1], exact)) for h, run in runs]
    if mujoco is not None:
        runs = [(h, mujoco.chain(model, lengths(model), FALL, h, THIRD)) for h in (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4)]
        curves[mujoco.name] = [(f"{h:g}", lambda run=run: _apart(run(), exact)) for h, run in runs]
    return curves


def _apart(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b))


PROBLEMS = {
    "RSUR four-bar, 1 s: crank [rad]": of_rsur,
    "Andrews' squeezer, 0.03 s: β [rad]": of_squeezer,
    f"closed chain of {LINKS}, {FALL} s: third link [m]": of_chain,
}


def measure(rounds: int) -> dict[str, dict[str, list[tuple[str, float, float]]]]:
    """Per problem and curve: label, CPU time [s] and error of each run."""
    found: dict[str, dict[str, list[tuple[str, float, float]]]] = {}
    for title, make in PROBLEMS.items():
        curves = make()
        runs = [run for curve in curves.values() for _, run in curve]
        errors = [float(run()) for run in runs]  # also warms up
        seconds = [np.inf] * len(runs)
        for _ in range(rounds):
            for k, run in enumerate(runs):
                began = time.process_time()
                run()
                seconds[k] = min(seconds[k], time.process_time() - began)
        numbers = iter(zip(seconds, errors, strict=True))
        found[title] = {name: [(label, *next(numbers)) for label, _ in curve] for name, curve in curves.items()}
    return found


COLOURS = {f"{OURS}, rtol": "#c2410c", f"{OURS}, constant step": "#f0a07c", "Exudyn": "#1f3a5f", "MuJoCo": "#8a8a8a"}
MARKS = {f"{OURS}, rtol": "o", f"{OURS}, constant step": "s", "Exudyn": "^", "MuJoCo": "D"}


def draw(found: dict[str, dict[str, list[tuple[str, float, float]]]], path: Path) -> None:
    """The picture of the documents."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, every = plt.subplots(1, len(found), figsize=(12.5, 4.2), constrained_layout=True, dpi=150)
    for axes, (title, curves) in zip(every, found.items(), strict=True):
        for name, curve in curves.items():
            points = [(1e3 * seconds, error) for _, seconds, error in curve if np.isfinite(error)]
            axes.loglog(*zip(*points, strict=True), color=COLOURS.get(name), marker=MARKS.get(name), label=name, ms=4)
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("CPU time of the run [ms]")
        axes.grid(color="#e6e6e6", linewidth=0.7)
        axes.spines[["top", "right"]].set_visible(False)
    every[0].set_ylabel("error")
    every[0].legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)


def report(found: dict[str, dict[str, list[tuple[str, float, float]]]]) -> None:
    for title, curves in found.items():
        print(title)
        for name, curve in curves.items():
            for label, seconds, error in curve:
                print(f"  {name:24}{label:>10}{1e3 * seconds:10.3f} ms{error:12.1e}")
