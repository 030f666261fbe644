"""Compare joint coordinates with Cartesian ones: ``python benchmarks/relative.py [LINKS] [ROUNDS]`` prints a table.

The mechanism is the closed chain of ball joints, from bad and from uniform starts.  *first*: a new mechanism, including
the setup of the tree and the linear algebra; *again*: the same mechanism from the same start.  The formulations are
interleaved in one process, so that other load affects both.  A second table gives the time of one evaluation of
residuals and Jacobian by the number of links.
"""

from __future__ import annotations

import sys
import time
from statistics import median

import adapter
import problems
from cardan.coordinates import formulations

FORMULATIONS = ("manifold", "relative")
BAR = 2.0  # allowed ratio of the time in joint coordinates to that of the Cartesian sparse solve


def solve(mechanism, formulation: str):
    began = time.perf_counter()
    result = mechanism.assemble(formulation=formulation)
    return time.perf_counter() - began, result


def compare(links: int, kind: str, rounds: int) -> float:
    """Print the medians of both formulations; returns the larger of the two ratios."""
    model = problems.chain(links)
    seconds: dict[tuple[str, str], list[float]] = {}
    iterations: dict[str, list[int]] = {f: [] for f in FORMULATIONS}
    worst = 0.0
    for seed in range(rounds):
        start = model.start(seed, kind)
        for formulation in FORMULATIONS:
            mechanism = adapter.build(model, start)
            _ = mechanism.system  # packing is the same for both
            for which in ("first", "again"):
                taken, result = solve(mechanism, formulation)
                assert result.ok and result.restarts == 0, result.text()
                seconds.setdefault((formulation, which), []).append(taken)
            iterations[formulation].append(result.iterations)
            worst = max(worst, model.residual(adapter.poses(result.state)) / mechanism.system.length)
    for formulation in FORMULATIONS:
        first, again = (1e3 * median(seconds[formulation, which]) for which in ("first", "again"))
        steps = median(iterations[formulation])
        print(f"  {kind:8} {formulation:10} first {first:7.2f} ms   again {again:7.2f} ms   iterations {steps:g}")
    ratios = [median(seconds["relative", w]) / median(seconds["manifold", w]) for w in ("first", "again")]
    print(f"  {kind:8} ratio      first {ratios[0]:7.2f}      again {ratios[1]:7.2f}      worst residual {worst:.1e} L")
    return max(ratios)


def evaluation(links: int) -> float:
    """Minimum time [s] of one evaluation of r and J."""
    system = adapter.build(problems.chain(links)).system
    problem = formulations.problem(system, "relative")
    x = formulations.enter(system, "relative", formulations.to_reference(system, system.authored))
    taken = []
    for _ in range(20):
        began = time.perf_counter()
        problem.entries(x)
        taken.append(time.perf_counter() - began)
    return min(taken)


def main(links: int = 1000, rounds: int = 15) -> int:
    small = problems.chain(100)
    for formulation in FORMULATIONS:  # load the kernels before timing
        adapter.build(small, small.start(0)).assemble(formulation=formulation)
    print(f"closed chain of {links} links, medians of {rounds} starts:")
    ratio = max(compare(links, kind, rounds) for kind in ("bad", "uniform"))
    print(f"  largest ratio {ratio:.2f}, allowed {BAR:g}")
    print("one evaluation of residuals and Jacobian:")
    for count in (1_000, 4_000, 16_000):
        seconds = evaluation(count)
        print(f"  {count:6d} links {1e3 * seconds:8.3f} ms, {1e9 * seconds / count:6.1f} ns per link")
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
