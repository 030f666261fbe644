"""``cardan bench NAME``: measure the library on this machine."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from cardan.analysis.chunks import core_count
from cardan.cli.output import print_json, table
from cardan.cli.progress import Bar
from cardan.cli.target import add_target, read_target
from cardan.study import hand, parallel
from cardan.study.parallel import Growth, Timing
from cardan.system import check

REPEATS = 20

EXAMPLES = """  cardan bench model robot.cardan.toml
  cardan bench parallel --threads 2"""

CONSTANT = 1.25  # ratio of times up to which an iteration counts as taking constant time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    benches = parser.add_subparsers(title="benchmarks", metavar="NAME", required=True)
    text = "times of one mechanism: reading, packing, assembly, diagnosis, a driven step, a step of dynamics"
    sub = benches.add_parser("model", help=text, description=text, allow_abbrev=False)
    add_target(sub, pose=False)
    sub.add_argument("--repeats", type=int, default=REPEATS, metavar="N", help="of each; default: %(default)s")
    sub.add_argument("--json", action="store_true", help="print one JSON document")
    sub.set_defaults(bench=_run_model)
    text = "the spring iteration on one and on several threads, by the number of bodies"
    sub = benches.add_parser("parallel", help=text, description=text, allow_abbrev=False)
    sub.add_argument(
        "--bodies",
        type=int,
        action="append",
        metavar="N",
        help=f"may be repeated; default: {', '.join(f'{n:,}' for n in parallel.SIZES)}",
    )
    sub.add_argument("--threads", type=int, default=2, metavar="N", help="beside one; default: %(default)s")
    sub.add_argument(
        "--seconds", type=float, default=parallel.SECONDS, metavar="S", help="of each timing; default: %(default)s"
    )
    sub.add_argument(
        "--growth",
        type=int,
        default=parallel.GROWTH_SIZES[-1],
        metavar="N",
        help="longest chain whose iterations are counted: 160 links, twice as many, …, up to N; default: %(default)s",
    )
    sub.add_argument("--json", action="store_true", help="print one JSON document")
    sub.set_defaults(bench=_run_parallel)
    text = "servo cycles of a session: one by one from Python, and in a thread at a fixed rate"
    sub = benches.add_parser("servo", help=text, description=text, allow_abbrev=False)
    sub.add_argument("--cycles", type=int, default=hand.CYCLES, metavar="N", help="default: %(default)s")
    sub.add_argument("--rate", type=float, default=30000.0, metavar="HZ", help="of the thread; default: %(default)s")
    sub.add_argument("--seconds", type=float, default=2.0, metavar="S", help="of the thread; default: %(default)s")
    sub.add_argument("--json", action="store_true", help="print one JSON document")
    sub.set_defaults(bench=_run_servo)


def run(args: argparse.Namespace) -> int:
    code: int = args.bench(args)
    return code


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

    measure("packing", mechanism._packed)
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
        mechanism.simulate(1e-4, result.state, step=1e-5)
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


def _run_parallel(args: argparse.Namespace) -> int:
    sizes = args.bodies or list(parallel.SIZES)
    parallel.check_inputs(sizes, [args.threads], args.seconds, args.growth)
    links = parallel.growth_sizes(args.growth)
    timings: list[Timing] = []
    grown: list[Growth] = []
    steps = len(sizes) + len(links)
    with Bar("parallel") as bar:
        for size in sizes:
            bar.update(len(timings), steps)
            timings.append(parallel.measure(size, args.threads, seconds=args.seconds))
        for size in links:
            bar.update(len(timings) + len(grown), steps)
            grown.append(parallel.growth(size))
    if args.json:
        print_json(_document(timings, grown, args.threads))
    else:
        print(_text(timings, grown, args.threads))
    return 0


def _run_servo(args: argparse.Namespace) -> int:
    cycles = check.count(args.cycles, "--cycles", 1)
    rate, seconds = check.positive(args.rate, "--rate"), check.positive(args.seconds, "--seconds")
    found = [hand.measure_cycle(name, cycles) for name in ("rsur", "stewart_ups", "parts")]
    served, idle = hand.measure_servo(rate, seconds)
    if args.json:
        document = {"cycles": [asdict(cycle) for cycle in found], "rate": rate}
        print_json({**document, "servo": served._asdict(), "idle": idle._asdict()})
        return 0
    rows = [
        (c.mechanism, f"{c.bodies}", f"{1e6 * c.median:.1f}", f"{1e6 * c.p99:.1f}", f"{c.residual:.0e}") for c in found
    ]
    print(table(("one cycle from Python", "bodies", "median [µs]", "99 % [µs]", "residual"), rows))
    print()
    lines = [
        (name, f"{100 * s.in_time:.3f} %", *(f"{1e6 * value:.1f}" for value in (*s.step, *s.lateness)))
        for name, s in (("rsur", served), ("idle loop", idle))
    ]
    titles = ("in time", "step [µs]", "99 %", "largest", "late [µs]", "99 %", "largest")
    print(table((f"thread at {rate:g} Hz for {seconds:g} s", *titles), lines))
    return 0


def _exponents(grown: list[Growth]) -> tuple[float, float]:
    sizes = [g.links for g in grown]
    return (
        parallel.exponent([sizes[0], sizes[-1]], [grown[0].scattered, grown[-1].scattered]),
        parallel.exponent(sizes[-2:], [g.compressed for g in grown[-2:]]),
    )


def _cores(threads: int) -> int:
    """Number of cores that the threads can use at once."""
    return min(threads, core_count())


def _document(timings: list[Timing], grown: list[Growth], threads: int) -> dict[str, Any]:
    local, whole = _exponents(grown)
    cores = _cores(threads)
    return {
        "cores": core_count(),
        "threads": threads,
        "timings": [
            {
                "bodies": t.links,
                "seconds": {str(count): value for count, value in sorted(t.seconds.items())},
                "median_seconds": {str(count): value for count, value in sorted(t.medians.items())},
                "speed_up": t.speed_up(threads),
                "median_speed_up": t.median_speed_up(threads),
                "speed_up_of_separate_chains": t.separate,
                "times_as_long_with_as_many_bodies_per_core": t.constancy(threads),
                "bodies_per_core": t.links / cores,
                "nanoseconds_per_body_and_core": 1e9 * t.seconds[threads] * cores / t.links,
            }
            for t in timings
        ],
        "iterations": [{"bodies": g.links, "scattered": g.scattered, "compressed": g.compressed} for g in grown],
        "exponents": {"scattered": local, "compressed": whole},
    }


def _text(timings: list[Timing], grown: list[Growth], threads: int) -> str:
    local, whole = _exponents(grown)
    titles_grown = ("bodies", "scattered", "too short")
    rows_grown = [(f"{g.links:,}", f"{g.scattered:,}", f"{g.compressed:,}") for g in grown]
    before, last = grown[-2].links, grown[-1].links
    return "\n".join(
        [
            f"spring iteration (15), k = {parallel.GAIN:g}, chain of links on ball joints, pinned at both ends; "
            f"{_counted(core_count(), 'core')}",
            "",
            _timing_table(timings, threads),
            "",
            "Time of one iteration, the shortest of many.",
            *([] if threads == 1 else _scaling(timings, threads)),
            "",
            f"iterations until every joint is closed to {parallel.TOLERANCE:g} link lengths:",
            table(titles_grown, rows_grown, left=0),
            "",
            f"For links scattered about their places the count hardly depends on their number (∝ N^{local:.1f}).",
            f"If the whole chain is too short it grows, from {before} to {last} links as N^{whole:.1f}, towards N²:",
            "the error diffuses along the chain, like heat.  So the time of an assembly is not constant, on any number",
            "of cores.",
        ]
    )


def _timing_table(timings: list[Timing], threads: int) -> str:
    cores = _cores(threads)
    several = threads > 1
    titles = ["bodies", "1 thread", *([f"{threads} threads", "speed-up", "of medians", "separate"] if several else ())]
    titles += ["bodies per core", "per body and core"]
    rows = [
        (
            f"{t.links:,}",
            f"{1e3 * t.seconds[1]:.3f} ms",
            *(_speed_up(t, threads) if several else ()),
            f"{t.links // cores:,}",
            f"{1e9 * t.seconds[threads] * cores / t.links:.0f} ns",
        )
        for t in timings
    ]
    return table(titles, rows, left=0)


def _speed_up(t: Timing, threads: int) -> tuple[str, ...]:
    ratios = (t.speed_up(threads), t.median_speed_up(threads), t.separate)
    return f"{1e3 * t.seconds[threads]:.3f} ms", *(f"{ratio:.2f}" for ratio in ratios)


def _scaling(timings: list[Timing], threads: int) -> list[str]:
    """Compare with the papers' claim of constant time, for the same number of bodies per core."""
    lines = [
        f"separate: {threads} independent chains, each with its share of the bodies and on its own thread.",
        "This is the speed-up that the cores currently give to threads that do not exchange data.",
    ]
    cores = _cores(threads)
    if cores < threads:  # then each core has more bodies
        return lines
    largest = max(timings, key=lambda t: t.links)
    longer = largest.constancy(threads)
    claim = f"At equal bodies per core, an iteration takes {longer:.2f} times as long on {cores} cores as on one"
    half = _counted(largest.links // threads, "body", "bodies")
    lines.append(claim)
    lines.append(f"({_counted(largest.links, 'body', 'bodies')} against {half} on one thread):")
    if longer <= CONSTANT:
        lines.append("this is the papers' constant time, of one iteration, with enough cores.")
    else:
        lines.append("the papers' constant time of an iteration is not observed here.")
    return lines


def _counted(count: int, noun: str, plural: str = "") -> str:
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
