"""``cardan bench NAME``: measure the library on this machine."""

from __future__ import annotations

import argparse
from typing import Any

from cardan.analysis.chunks import core_count
from cardan.cli.output import print_json, table
from cardan.cli.progress import Bar
from cardan.study import parallel
from cardan.study.parallel import Growth, Timing

HELP = "measure the library on this machine"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    benches = parser.add_subparsers(title="benchmarks", metavar="NAME", required=True)
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
    sub.add_argument("--json", action="store_true", help="print one JSON document")
    sub.set_defaults(bench=_run_parallel)


def run(args: argparse.Namespace) -> int:
    code: int = args.bench(args)
    return code


def _run_parallel(args: argparse.Namespace) -> int:
    sizes = args.bodies or list(parallel.SIZES)
    threads = sorted({1, args.threads})
    parallel.check_inputs(sizes, [args.threads], args.seconds)
    timings: list[Timing] = []
    grown: list[Growth] = []
    steps = len(sizes) + len(parallel.GROWTH_SIZES)
    with Bar("parallel") as bar:
        for size in sizes:
            bar.update(len(timings), steps)
            timings.append(parallel.measure(size, threads, seconds=args.seconds))
        for size in parallel.GROWTH_SIZES:
            bar.update(len(timings) + len(grown), steps)
            grown.append(parallel.growth(size))
        most = parallel.ceiling(args.threads)
    if args.json:
        print_json(_document(timings, grown, args.threads, most))
    else:
        print(_text(timings, grown, args.threads, most))
    return 0


def _exponents(grown: list[Growth]) -> tuple[float, float]:
    sizes = [g.links for g in grown]
    return (
        parallel.exponent(sizes[::3], [grown[0].scattered, grown[-1].scattered]),
        parallel.exponent(sizes[-2:], [g.compressed for g in grown[-2:]]),
    )


def _document(timings: list[Timing], grown: list[Growth], threads: int, most: float) -> dict[str, Any]:
    local, whole = _exponents(grown)
    return {
        "cores": core_count(),
        "threads": threads,
        "speed_up_of_arithmetic": most,
        "timings": [
            {
                "bodies": t.links,
                "seconds": {str(count): value for count, value in t.seconds.items()},
                "speed_up": t.speed_up(threads),
                "nanoseconds_per_body_and_core": 1e9 * t.seconds[threads] * threads / t.links,
            }
            for t in timings
        ],
        "iterations": [{"bodies": g.links, "scattered": g.scattered, "compressed": g.compressed} for g in grown],
        "exponents": {"scattered": local, "compressed": whole},
    }


def _text(timings: list[Timing], grown: list[Growth], threads: int, most: float) -> str:
    titles = ["bodies", "1 thread", f"{threads} threads", "speed-up", "bodies per core", "per body and core"]
    rows = [
        (
            f"{t.links:,}",
            f"{1e3 * t.seconds[1]:.3f} ms",
            f"{1e3 * t.seconds[threads]:.3f} ms",
            f"{t.speed_up(threads):.2f}",
            f"{t.links // threads:,}",
            f"{1e9 * t.seconds[threads] * threads / t.links:.0f} ns",
        )
        for t in timings
    ]
    local, whole = _exponents(grown)
    titles_grown = ("bodies", "scattered", "too short")
    rows_grown = [(f"{g.links:,}", f"{g.scattered:,}", f"{g.compressed:,}") for g in grown]
    return "\n".join(
        [
            f"spring iteration (15), k = {parallel.GAIN:g}, chain of links on ball joints, pinned at both ends; "
            f"{core_count()} cores",
            "",
            table(titles, rows, left=0),
            "",
            f"Arithmetic that shares nothing is {most:.2f} times as fast on {threads} threads of this machine, now.",
            "Time of one iteration, best of a few rounds.  With a fixed number of bodies per core it does not grow",
            "with the mechanism: that is the papers' constant time, of one iteration and given the cores.",
            "",
            f"iterations until every joint is closed to {parallel.TOLERANCE:g} link lengths:",
            table(titles_grown, rows_grown, left=0),
            "",
            f"From links scattered about their places the count hardly depends on their number (∝ N^{local:.1f}).",
            f"Where the whole chain is too short it grows as N^{whole:.1f}: a pull passes one joint per iteration, and",
            "the time to assemble is constant on no number of cores.",
        ]
    )
