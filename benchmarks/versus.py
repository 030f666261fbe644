"""Time one source tree against another: ``python benchmarks/versus.py OLD_SRC NEW_SRC [--rounds 5] [--only WORD …]``.

    python benchmarks/versus.py ../old/src src
    python benchmarks/versus.py ../old/src ../old/src    # deviations from 1 are the noise of the machine

The runs of the two trees are interleaved, each in its own process (old new, new old, …), so that other load affects
both.  Times are those of the processor.  A measurement is the median within a process.  The table shows the medians of
both trees, the median of the ratios of the pairs with its 95 % interval (bootstrap), and the ratio of the minima.
Kernels are compiled before the first round, except for the cold start, which uses an empty cache, and for the warm-up,
which compiles all of them.  Only the public API is used.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median

STARTS = 300  # of small mechanisms
CHAIN_STARTS = 7
AGAIN = 30  # repetitions of solves that take milliseconds
TIMES = 60  # times of a motion
PARTS = 200
COLD_ROUNDS = 3
EMPTY = ("cold", "warmup")  # measured with an empty cache
RESAMPLED = 2000


# -- measurements of one process: {bar: seconds} -----------------------------------------------------------------------


def small() -> dict[str, float]:
    """The whole ``assemble()`` of new mechanisms from uniform starts; one warm step."""
    import foundation
    import problems

    found = {}
    for make in (problems.rsur, problems.stewart_distance, problems.stewart_ups, problems.planar_4r):
        model = make()
        figures = foundation.from_uniform_starts(model, STARTS)
        assert figures["solved"] == figures["of"], figures
        found[model.name] = 1e-3 * figures["median ms"]
    found["one warm step, RSUR"] = 1e-6 * foundation.warm_step(problems.rsur(), STARTS)["median µs"]
    return found


def chains() -> dict[str, float]:
    """Closed chains of 1,000 from rough and random starts; 200 parts with loops, solved again after one is moved."""
    import adapter
    import problems
    import scale

    small_chain = problems.chain(100)
    for formulation in ("manifold", "relative"):
        adapter.build(small_chain, small_chain.start(0)).assemble(formulation=formulation)
    model = problems.chain(1000)
    found = {}
    for kind, word in (("bad", "rough"), ("uniform", "random")):
        for formulation in ("manifold", "relative"):
            seconds = []
            for seed in range(CHAIN_STARTS):
                m = adapter.build(model, model.start(seed, kind))
                seconds.append(timed(lambda m=m, formulation=formulation: m.assemble(formulation=formulation)))
            found[f"chain of 1,000, {word}, {formulation}"] = median(seconds)
    m = adapter.build(scale.chain_with_loops(PARTS))
    state = m.assemble().state
    name = state.names[PARTS // 2]
    moved = state.moved({name: (state[name].position + 0.05, state[name].quaternion)})
    found[f"{PARTS} parts, one moved"] = median(timed(lambda: m.assemble(moved)) for _ in range(AGAIN))
    return found


def iterations(*counts: int) -> dict[str, float]:
    """One iteration on closed chains by size; the exponent is computed from the table."""
    import scale

    return {f"one iteration, chain of {n:,}": 1e-3 * scale.one("chain", n)["iteration ms"] for n in counts}


def large() -> dict[str, float]:
    import scale

    figures = scale.one("chain", 100_000)
    return {"chain of 100,000, random": figures["assembly s"], **iterations(100_000)}


def others() -> dict[str, float]:
    """Many starts at once, a motion, a diagnosis."""
    import numpy as np

    import adapter
    import problems
    from cardan import examples

    model = problems.rsur()
    m = adapter.build(model)
    names = list(m.bodies)
    starts = [
        {name: (p, problems.quaternion(R)) for name, (R, p) in zip(names, model.start(seed).values(), strict=True)}
        for seed in range(1000)
    ]
    found = {"assemble_many, RSUR, 1,000 starts": least(lambda: m.assemble_many(starts, workers=1), 4)}
    jansen = examples.REGISTRY["jansen_leg"]
    leg = jansen.build()
    state = leg.assemble().state
    times = [float(t) for t in np.linspace(0.0, jansen.duration, TIMES)]
    found[f"motion, Jansen leg, {TIMES} times"] = least(lambda: leg.move(times, state), 3)
    found["diagnosis, Jansen leg"] = least(lambda: leg.diagnose(state), 10)
    return found


def timed(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def least(call: Callable[[], object], count: int) -> float:
    """Minimum time of ``count`` calls, after one call that is not timed."""
    call()
    return min(timed(call) for _ in range(count))


MEASURED_WITHIN = {
    "small": small,
    "chains": chains,
    "iterations": lambda: iterations(1_000, 10_000),
    "others": others,
    "large": large,
}


# -- the rounds --------------------------------------------------------------------------------------------------------


def measure(bars: str, source: Path, cache: str) -> dict[str, float]:
    """Measure one tree in a new process."""
    import foundation

    environment = {**os.environ, "PYTHONPATH": str(source), "CARDAN_CACHE_DIR": cache, "MPLBACKEND": "agg"}
    if bars == "papers":
        verb = "papers" if (source.parent / "papers").is_dir() else "study"  # of a tree before the experiments moved
        command = [sys.executable, "-m", "cardan", verb, "liu2013"]
    elif bars in ("start", "cold"):
        command = [sys.executable, "-c", foundation.SMALL_SOLVE.replace("perf_counter", "process_time")]
    elif bars == "warmup":
        command = [sys.executable, "-m", "cardan", "warmup"]
    else:
        command = [sys.executable, __file__, "--within", bars]
    began = children_seconds()
    out = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    seconds = children_seconds() - began
    if bars in ("papers", "warmup"):
        return {"papers liu2013" if bars == "papers" else "warm-up, empty cache": seconds}
    if bars == "cold":
        return {"first solve, empty cache": float(out.split()[1])}
    if bars == "start":
        imported, solved = map(float, out.split())
        return {"import": imported, "first solve, warm cache": solved}
    found: dict[str, float] = json.loads(out)
    return found


def children_seconds() -> float:
    """Time of the processor that finished child processes took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rounds_of(bars: str, rounds: int) -> int:
    cold = max(COLD_ROUNDS, rounds // 2)
    return {"cold": cold, "warmup": COLD_ROUNDS, "start": 2 * rounds}.get(bars, rounds)


def versus(sources: tuple[Path, Path], groups: list[str], rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    """{bar: (seconds of the old tree, seconds of the new tree)}."""
    found: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    with tempfile.TemporaryDirectory() as folder:
        caches = [f"{folder}/old", f"{folder}/new"]
        for bars in groups:
            for which in (0, 1) if bars not in EMPTY else ():
                measure(bars, sources[which], caches[which])
            for k in range(rounds_of(bars, rounds)):
                for which in (0, 1) if k % 2 == 0 else (1, 0):
                    with tempfile.TemporaryDirectory() as empty:
                        cache = empty if bars in EMPTY else caches[which]
                        for bar, seconds in measure(bars, sources[which], cache).items():
                            found[bar][which].append(seconds)
            print(f"{bars}: done", file=sys.stderr, flush=True)
    return found


def text(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """The median, and the ends of its 95 % interval."""
    draw = random.Random(0)
    medians = sorted(median(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLED))
    return median(ratios), medians[int(0.025 * RESAMPLED)], medians[int(0.975 * RESAMPLED)]


def print_table(found: dict[str, tuple[list[float], list[float]]]) -> None:
    width = max(map(len, found))
    print(f"{'':{width}}  {'old':>9} {'new':>9}     ratio  95 % interval    minima  rounds")
    for bar, (old, new) in found.items():
        ratio, low, high = interval([b / a for a, b in zip(old, new, strict=True)])
        ratios = f"{ratio:8.3f}  {low:6.3f} {high:6.3f}  {min(new) / min(old):8.3f}"
        print(f"{bar:{width}}  {text(median(old)):>9} {text(median(new)):>9}  {ratios}  {len(old):6}")
    points = sorted(
        (int(bar.rsplit(" ", 1)[1].replace(",", "")), times)
        for bar, times in found.items()
        if bar.startswith("one iteration")
    )
    if len(points) > 1:
        (n, first), (N, last) = points[0], points[-1]
        old, new = (math.log(median(last[k]) / median(first[k])) / math.log(N / n) for k in (0, 1))
        print(f"{'exponent of one iteration':{width}}  {old:9.3f} {new:9.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, nargs="*", metavar="SRC", help="the old and the new tree's src")
    parser.add_argument("--rounds", type=int, default=5)
    groups = ["start", "small", "chains", "iterations", "others", "papers", "cold", "warmup"]
    parser.add_argument("--only", nargs="+", choices=[*groups, "large"], default=groups)
    parser.add_argument("--large", action="store_true", help="also measure the chain of 100,000")
    parser.add_argument("--json", type=Path, help="also write all times to this file")
    parser.add_argument("--within", choices=list(MEASURED_WITHIN), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.within:
        import foundation

        foundation.clock = time.process_time
        print(json.dumps(MEASURED_WITHIN[options.within]()))
        return
    if len(options.sources) != 2 or not all((source / "cardan").is_dir() for source in options.sources):
        parser.error("give two directories that contain the package cardan, such as ../old/src and src")
    old, new = (source.resolve() for source in options.sources)
    found = versus((old, new), options.only + ["large"] * options.large, options.rounds)
    print(f"old: {old}\nnew: {new}\n")
    print_table(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
