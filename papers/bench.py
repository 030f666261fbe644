"""``cardan papers parallel`` and ``cardan papers servo``: times of the spring iteration and of servo cycles."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from cardan.analysis.chunks import core_count
from cardan.cli.output import print_json, table
from cardan.cli.progress import Bar
from cardan.system import check
from papers import hand, parallel
from papers.parallel import Growth, Timing

CONSTANT = 1.25  # ratio of times up to which an iteration counts as taking constant time


def add_to(experiments: Any) -> None:
    """The arguments of both."""
    text = "the spring iteration on one and on several threads, by the number of bodies"
    sub = experiments.add_parser("parallel", help=text, description=text, allow_abbrev=False)
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
    sub.set_defaults(experiment=_run_parallel)
    text = "servo cycles of a session: one by one from Python, and in a thread at a fixed rate"
    sub = experiments.add_parser("servo", help=text, description=text, allow_abbrev=False)
    sub.add_argument("--cycles", type=int, default=hand.CYCLES, metavar="N", help="default: %(default)s")
    sub.add_argument("--rate", type=float, default=30000.0, metavar="HZ", help="of the thread; default: %(default)s")
    sub.add_argument("--seconds", type=float, default=2.0, metavar="S", help="of the thread; default: %(default)s")
    sub.add_argument("--json", action="store_true", help="print one JSON document")
    sub.set_defaults(experiment=_run_servo)


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
