"""``cardan bench NAME``: measure the library on this machine."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from cardan.cli.output import print_json, table
from cardan.cli.target import add_target, read_target
from cardan.errors import ModelError
from cardan.system import check

REPEATS = 20

EXAMPLES = """  cardan bench model robot.cardan.toml"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    benches = parser.add_subparsers(title="benchmarks", metavar="NAME", required=True)
    text = "times of one mechanism: reading, packing, assembly, diagnosis, a driven step, a step of dynamics"
    sub = benches.add_parser("model", help=text, description=text, allow_abbrev=False)
    add_target(sub, pose=False)
    sub.add_argument("--repeats", type=int, default=REPEATS, metavar="N", help="of each; default: %(default)s")
    sub.add_argument("--json", action="store_true", help="print one JSON document")
    sub.set_defaults(bench=_run_model)


def run(args: argparse.Namespace) -> int:
    return args.bench(args)


def _run_model(args: argparse.Namespace) -> int:
    repeats = check.count(args.repeats, "--repeats", 1, 100_000)
    began = time.perf_counter()
    found = read_target(args)
    seconds = {"read": time.perf_counter() - began}
    mechanism = found.mechanism
    began = time.perf_counter()
    result = mechanism.assemble()
    seconds["first assembly, with loading kernels"] = time.perf_counter() - began

    def measure(name: str, work: Callable[[], object], per: int = 1) -> None:
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        seconds[name] = statistics.median(times) / per

    measure("packing", mechanism._model.drawing.packed)
    measure("assembly from the authored pose", mechanism.assemble)
    if result.ok:
        measure("assembly from the assembled pose", lambda: mechanism.assemble(result.state))
        measure("diagnosis", lambda: mechanism.diagnose(result.state))
    if result.ok and mechanism.system.signals:
        first = mechanism.move([0.0, 1e-3])
        if first.ok:
            times = np.linspace(0.0, 0.05, 51).tolist()
            measure("driven motion, per time", lambda: mechanism.move(times, first.states[0]), len(times))
    if result.ok:
        try:
            mechanism.simulate(1e-4, result.state, step=1e-5)
        except ModelError as error:  # such as bodies without mass
            print(f"cardan: the simulation is not measured: {error}", file=sys.stderr)
        else:
            measure("simulation, per step", lambda: mechanism.simulate(0.01, result.state, step=1e-4), 100)
    if args.json:
        print_json({"name": found.name, "ok": result.ok, "repeats": repeats, "seconds": seconds})
    else:
        print(f"{found.name}: {found.title}; {result.status}")
        rows = [(name, _duration(value)) for name, value in seconds.items()]
        print(table(("", "median"), rows))
    return 0 if result.ok else 1


def _duration(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1.0:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
