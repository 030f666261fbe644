"""Measure design parameters: ``python benchmarks/parameters.py [--rounds N] [--json]``.

A held parameter is compared with a plain number: the bits of the pose, and the time of ``assemble()``; a second plain
mechanism is the control.  Then the time of a new value, alone and with the system that follows from it, and a Monte
Carlo of tolerances.  Blocks of calls are interleaved, so that other load affects all mechanisms.  Minima are compared;
the medians of the ratios of neighbouring blocks are given beside them.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import time
from collections.abc import Callable

import numpy as np

import cardan as cd

X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
CALLS = 20  # of one block
SAMPLES = 100_000


def slider_crank(parameters: bool, driven: bool = True) -> cd.Mechanism:
    """A slider-crank with its lengths as parameters or as numbers."""
    m = cd.Mechanism("slider_crank")
    crank, rod, offset = 0.2, 0.4, 0.05
    if parameters:
        crank, rod, offset = (m.parameter(f"p{k}", value) for k, value in enumerate((crank, rod, offset)))
    a = m.body("crank", orientation=(Z, 0.5))
    b = m.body("rod", position=(0.15, 0.1, 0.02), orientation=(Z, -0.17))
    c = m.body("slider", position=(0.6, 0.06, 0.0))
    hinge = m.revolute("A", m.ground.frame(z=Z, x=X), a.frame(z=Z, x=X))
    m.revolute("B", a.frame((crank, 0, 0), z=Z), b.frame(z=Z))
    m.revolute("C", b.frame((rod, 0, 0), z=Z), c.frame(z=Z))
    m.prismatic("slide", m.ground.frame((0, offset, 0), z=X, x=Z), c.frame(z=X, x=Z))
    if driven:
        m.drive("motor", hinge, lambda t: 0.5 + t)
    return m


def microseconds(call: Callable[[], object], calls: int = CALLS) -> float:
    """Processor time of one call [µs], the mean of a block of calls."""
    began = time.process_time()
    for _ in range(calls):
        call()
    return 1e6 * (time.process_time() - began) / calls


def held(driven: bool, rounds: int) -> dict[str, object]:
    """assemble() from the drawing, with parameters, with numbers, and again with numbers."""
    made = [slider_crank(parameters, driven) for parameters in (True, False, False)]
    poses = [m.assemble().state.coordinates for m in made]
    times = np.empty((rounds, 3))
    gc.collect()
    gc.disable()
    for k in range(rounds):
        for j in range(3):
            times[k, (j + k) % 3] = microseconds(made[(j + k) % 3].assemble)
    gc.enable()
    least = times.min(axis=0)
    return {
        "same bits": bool(np.array_equal(poses[0], poses[1])),
        "held µs": least[0],
        "number µs": least[1],
        "ratio": least[0] / least[1],
        "control": least[2] / least[1],
        "ratio of neighbours": float(np.median(times[:, 0] / times[:, 1])),
        "control of neighbours": float(np.median(times[:, 2] / times[:, 1])),
    }


def new_value(rounds: int) -> dict[str, float]:
    """Times of L.value = …, of this and m.system, and of this and assemble(); and of assemble() alone."""
    m = slider_crank(True)
    m.assemble()
    length, count = m["p0"], iter(range(10**9))

    def change() -> None:
        length.value = 0.2 + 1e-6 * (next(count) % 7)

    def change_and(then: Callable[[], object]) -> None:
        change()
        then()

    calls = {
        "set µs": change,
        "set, system µs": lambda: change_and(lambda: m.system),
        "set, assemble µs": lambda: change_and(m.assemble),
        "assemble µs": m.assemble,
    }
    return {word: min(microseconds(call) for _ in range(rounds)) for word, call in calls.items()}


def monte_carlo() -> dict[str, float]:
    """The tolerances of one state of the slider-crank, on all cores."""
    m = slider_crank(True)
    state = m.assemble().state
    tolerances = {"p0": 1e-4, "p1": 2e-4, "p2": 3e-4}
    m.tolerances(state, ["slide"], tolerances, samples=1000)
    found = min(
        (m.tolerances(state, ["slide"], tolerances, samples=SAMPLES) for _ in range(3)), key=lambda t: t.seconds
    )
    error = found.spread[0] / found.rss[0] - 1.0
    return {
        "samples": SAMPLES,
        "failed": found.failed,
        "seconds": found.seconds,
        "spread / linear − 1": error,
        "sampling error": 1.0 / math.sqrt(2.0 * SAMPLES),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=600, help="blocks of each mechanism")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {
        "held, driven": held(True, options.rounds),
        "held, not driven": held(False, options.rounds),
        "a new value": new_value(options.rounds),
        "Monte Carlo": monte_carlo(),
    }
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for title, figures in found.items():
        told = [
            f"{word} {value:.4g}" if isinstance(value, float) else f"{word} {value}" for word, value in figures.items()
        ]
        print(f"{title}: {', '.join(told)}")


if __name__ == "__main__":
    main()
