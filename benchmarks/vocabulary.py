"""Measure user-defined primitives: ``python benchmarks/vocabulary.py [--rounds N] [--json]``.

Measures the evaluation of f and its Jacobian in a system with 1000 relations, interleaved for a built-in primitive and
the same primitive declared by a user; the time to declare one and to load its kernels in a new process; and the time
of the first compilation.  The exit code is 1 if a limit is exceeded: 1.2 times the built-in, 30 ms to load.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import cardan as cd
from cardan.constraints.registry import REGISTRY, FeatureKind, Primitive
from cardan.coordinates import formulations
from cardan.kernel.jit import jit
from cardan.kernel.memory import call_evaluator
from cardan.solvers.tables import JACOBIAN, RESIDUAL, Structure
from cardan.system.parts import CountedAngle, Feature
from cardan.system.relations import Bundle, Relation
from cardan.system.system import System

RATIO = 1.2
LOADED = 30.0  # ms
RELATIONS, BODIES = 1000, 101

NEW_PROCESS = """
import time
import cardan as cd
m = cd.Mechanism(); body = m.body("arm", position=(0.3, 0.1, 0.2))
m.revolute("hinge", m.ground.frame(), body.frame())
m.distance("rod", body.point((1, 0, 0)), m.ground.point((2, 1, 0)), 1.5)
assert m.assemble().ok
from cardan.constraints import kernels
began = time.perf_counter()

@cd.primitive(i="point", j="point", up="vector of i")
def equal_height(i, j, up, *, offset=0.0):
    return cd.dot(up, j - i) - offset

declared = time.perf_counter()
kernels.address(equal_height)
small = time.perf_counter()

@cd.primitive(unit="rad", a="orientation", b="orientation")
def turned(a, b):
    return cd.rotation_vector(a, b)

again = time.perf_counter()
kernels.address(turned)
print(declared - began, small - declared, again - small, time.perf_counter() - again)
"""


@jit
def _repeat(times, address, op, ints, floats, q, step, out, jacobian, work):
    for _ in range(times):
        call_evaluator(address, op, ints, floats, q, step, out, jacobian, work)


def declared(name: str) -> Primitive:
    """A built-in primitive, declared in the way of a user."""
    built_in = REGISTRY[name]
    kinds = {argument.name: argument.kind for argument in built_in.arguments}
    return cd.primitive(unit=list(built_in.units), **kinds)(built_in.function)


def system(primitive: Primitive) -> System:
    """A chain of bodies with 1000 relations between neighbours."""
    rng = np.random.default_rng(0)
    m = cd.Mechanism()
    bodies = [
        m.body(f"body {k}", position=rng.uniform(-1, 1, 3), orientation=rng.normal(size=4)) for k in range(BODIES)
    ]
    bundles, angles = [], []
    for k in range(RELATIONS):
        a, b = bodies[k % (BODIES - 1)], bodies[k % (BODIES - 1) + 1]
        features: list[Feature] = []
        for i, kind in enumerate(primitive.features):
            if kind is FeatureKind.ANGLE:
                (_, on_a, x), (_, _, y), (_, on_b, v) = features[-3:]
                angles.append(CountedAngle(f"angle {len(angles)}", BODIES + len(angles), on_a, x, y, on_b, v))
                features.append(Feature(kind, angles[-1], ()))
                continue
            value = rng.normal(size=kind.components)
            if kind is not FeatureKind.POINT:
                value /= np.linalg.norm(value)
            features.append(Feature(kind, (a, a, b, b)[i % 4], tuple(value.tolist())))
        parameters = tuple(sorted(rng.uniform(0.5, 1.5, len(primitive.parameters)).tolist()))
        bundles.append(Bundle(f"relation {k}", [Relation(primitive, tuple(features), parameters)]))
    return System(bodies, bundles, angles)


def evaluation(primitive: Primitive, op: int):
    """A function that evaluates ``times`` times."""
    packed = system(primitive)
    problem = formulations.problem(packed, "manifold")
    q = formulations.to_reference(packed, packed.authored)
    sizes = (problem.rows, Structure(problem.structure).jacobian_size, Structure(problem.structure).work)
    arrays = (problem.ints, problem.floats, q, np.empty(0), *map(np.zeros, sizes))
    return lambda times: _repeat(times, problem.evaluate, op, *arrays)


def interleaved(runs, rounds: int, times: int = 20) -> list[list[float]]:
    """Seconds per evaluation of each run, by round."""
    for run in runs:
        run(times)
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, found in zip(runs, seconds, strict=True):
            began = time.perf_counter()
            run(times)
            found.append((time.perf_counter() - began) / times)
    return seconds


def compared(name: str, rounds: int) -> dict:
    """Microseconds of the built-in and of the user-defined primitive, and the median of their ratios."""
    result: dict = {"name": name, "inline": REGISTRY[name].inline}
    for what, op in (("residual", RESIDUAL), ("jacobian", JACOBIAN)):
        own, built_in = interleaved([evaluation(declared(name), op), evaluation(REGISTRY[name], op)], rounds)
        ratio = float(np.median(np.array(own) / np.array(built_in)))
        result[what] = {"built-in µs": 1e6 * min(built_in), "own µs": 1e6 * min(own), "ratio": ratio}
    return result


def in_new_process(cache: str | None = None) -> list[float]:
    """Milliseconds to declare and to load a small primitive, then a large one."""
    environment = dict(os.environ) | ({"CARDAN_CACHE_DIR": cache} if cache else {})
    done = subprocess.run(
        [sys.executable, "-c", NEW_PROCESS], env=environment, capture_output=True, text=True, check=True
    )
    return [1e3 * float(word) for word in done.stdout.split()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100, help="rounds of each comparison")
    parser.add_argument("--cold", action="store_true", help="also measure the first compilation, with an empty cache")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ratios = [compared(name, options.rounds) for name in REGISTRY]
    in_new_process()
    warm = np.median([in_new_process() for _ in range(5)], axis=0).tolist()
    cold = None
    if options.cold:
        with tempfile.TemporaryDirectory() as directory:
            cold = in_new_process(directory)
    worst = max(row[what]["ratio"] for row in ratios for what in ("residual", "jacobian"))
    load = max(warm[0] + warm[1], warm[2] + warm[3])
    if options.json:
        print(json.dumps({"evaluation": ratios, "warm ms": warm, "cold ms": cold, "worst": worst, "load ms": load}))
    else:
        print(f"{RELATIONS} relations on {BODIES} bodies, µs per evaluation, {options.rounds} rounds")
        print(f"{'':20}{'residual':>30}{'':6}{'jacobian':>24}")
        print(f"{'':20}{'built-in':>10}{'own':>10}{'ratio':>10}{'built-in':>10}{'own':>10}{'ratio':>10}")
        for row in ratios:
            cells = [row[what][key] for what in ("residual", "jacobian") for key in ("built-in µs", "own µs", "ratio")]
            name = row["name"] + (" *" if row["inline"] else "")
            print(f"{name:20}" + "".join(f"{c:10.3f}" if k % 3 == 2 else f"{c:10.1f}" for k, c in enumerate(cells)))
        print("* compiled into the evaluators; all others are called by address, like user-defined ones")
        print(f"worst ratio {worst:.3f}, limit {RATIO}")
        small, large = ("declared in {:.1f} ms, loaded in {:.1f} ms".format(*warm[k : k + 2]) for k in (0, 2))
        print(f"new process, cached kernels: one row {small}; a rotation vector {large}; limit {LOADED:.0f} ms")
        if cold:
            print(f"first compilation in {cold[1]:.0f} and {cold[3]:.0f} ms")
    return int(worst > RATIO or load > LOADED)


if __name__ == "__main__":
    sys.exit(main())
