"""``cardan study MODEL``: many runs over values of parameters, in parts that can be stopped and continued."""

from __future__ import annotations

import argparse
import re
import sys
import time
from typing import Any, Final

import numpy as np

from cardan.cli import figures
from cardan.cli.output import print_json
from cardan.cli.progress import Bar
from cardan.cli.target import add_target, read_target, start_of, write_rows
from cardan.errors import ModelError
from cardan.study import sample
from cardan.study.sample import Sample

EXAMPLES = """  cardan study crank.cardan.toml --vary L=0.9..1.1:21 --output A --duration 1 --folder runs
  cardan study crank.cardan.toml --normal "L=1±0.05" --runs 100000 --output A --duration 1 --workers 8
  cardan study crank.cardan.toml --normal L=±0.05 --runs 1000000 --output A --scheduler tcp://10.0.0.1:8786"""

NUMBER: Final = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
RANGE: Final = re.compile(rf"({NUMBER})\.\.({NUMBER})(?::(\d+))?")
TOLERANCE: Final = re.compile(rf"({NUMBER})?\s*(?:±|\+-|\+/-)\s*({NUMBER})")
POINTS: Final = 11  # of a range without their number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    many: Any = {"action": "append", "default": []}
    parser.add_argument("--vary", metavar="P=A..B:N", help="N values from A to B, or P=1,2,3; all combinations", **many)
    parser.add_argument("--latin", metavar="P=A..B", help="from a Latin hypercube of --runs values", **many)
    parser.add_argument("--normal", metavar="P=X±T", help="--runs normal draws, σ = T/3; P=±T: about its value", **many)
    parser.add_argument("--uniform", metavar="P=X±T", help="--runs uniform draws within ±T", **many)
    parser.add_argument("--runs", type=int, metavar="N", help="number of draws, for every combination of --vary")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the draws; default: %(default)s")
    parser.add_argument("--output", metavar="TEXT", help="what is kept, such as 'max(effort(motor))'", **many)
    parser.add_argument("--duration", type=float, metavar="S", help="s, of simulations; without it: assemblies")
    parser.add_argument("--step", type=float, metavar="S", help="s, constant; default: chosen to meet --rtol")
    parser.add_argument("--rtol", type=float, metavar="X", help="error to meet; default: 1e-6")
    parser.add_argument("--workers", type=int, metavar="N", help="threads, or processes with --cluster; default: cores")
    parser.add_argument("--cluster", action="store_true", help="processes of this machine in place of threads")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of Dask, whose workers compute")
    parser.add_argument("--folder", metavar="PATH", help="of the parts; a study that was stopped goes on there")
    parser.add_argument("--run-seconds", type=float, metavar="S", help="s of computing, at most, of a single run")
    parser.add_argument("--csv", metavar="FILE", help="write a row for each run, in SI units")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    if args.cluster and args.scheduler:
        raise ModelError("--cluster and --scheduler are given; give one of them")
    if not args.output:
        raise ModelError("no --output is given, so nothing would be kept; give one, such as --output 'final(A)'")
    rows = None if args.csv is None else figures.check_file(args.csv)
    samples = sample_of(args)
    target = read_target(args)
    mechanism = target.mechanism
    options = {name: value for name in ("step", "rtol") if (value := getattr(args, name)) is not None}
    state = start_of(args, mechanism)
    study = mechanism.study(samples, args.output, duration=args.duration, state=state, **options)
    client = args.scheduler or ("local" if args.cluster else None)
    workers = None if args.scheduler else args.workers
    with _Bar("study") as bar:
        study.run(workers=workers, client=client, path=args.folder, run_seconds=args.run_seconds, progress=bar.update)
    finished = len(study) - study.missing
    if rows is not None and finished:
        write_rows(rows, study.table())
    correlation = study.correlation() if finished else {}
    if args.json:
        failed = [one._asdict() for one in study.failed] if finished else []
        plain = {o: {p: _plain(r) for p, r in own.items()} for o, own in correlation.items()}
        document = {"runs": len(study), "finished": finished, "interrupted": study.interrupted, "failed": failed}
        print_json(
            {"name": target.name, **document, "outputs": _figures(study) if finished else {}, "correlation": plain}
        )
    else:
        print(f"{target.name}: {study.text()}")
        for label, own in (_figures(study) if finished else {}).items():
            told = ", ".join(f"{word} {value:.6g}" for word, value in own.items() if value is not None)
            print(f"  {label}: {told}")
    if study.interrupted:
        if args.folder is not None:
            print(f"finished parts are in {args.folder}; the same command goes on", file=sys.stderr)
        raise KeyboardInterrupt
    return 1 if study.missing or study.failed else 0


class _Bar(Bar):
    """With the number of runs, and the time that is left if they go on as before."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._first: tuple[int, float] | None = None  # runs of an earlier call, and when this one began

    def update(self, done: int, total: int) -> None:
        now = time.perf_counter()
        if self._first is None:
            self._first = done, now
        before, began = self._first
        left = "" if done <= before else f", {(now - began) * (total - done) / (done - before):.0f} s left"
        self._title = f"{done} of {total} runs{left}"
        super().update(done, total)


def _figures(study: Any) -> dict[str, dict[str, float | None]]:
    """Mean, deviation, least and largest value of each output that is a number, over the runs that have it."""
    found = {}
    for label in study.labels:
        values = study[label]
        if values.ndim > 1:
            continue
        known = values[np.isfinite(values)]
        words: dict[str, Any] = {"mean": np.mean, "std": np.std, "min": np.min, "max": np.max}
        title = f"{label} [{study.units[label]}]" if study.units[label] else label
        found[title] = {word: float(read(known)) if known.size else None for word, read in words.items()}
    return found


def _plain(value: float) -> float | None:
    return value if np.isfinite(value) else None


def sample_of(args: argparse.Namespace) -> Sample:
    """The sample that is asked for: draws for every combination of --vary."""
    parts: list[Sample] = []
    if args.vary:
        parts.append(sample.grid(dict(_axis(text) for text in args.vary)))
    for word in ("latin", "normal", "uniform"):
        given = getattr(args, word)
        if not given:
            continue
        if args.runs is None:
            raise ModelError(f"--{word} needs the number of draws; give --runs")
        read = _range if word == "latin" else _tolerance
        made = getattr(sample, word)(dict(read(word, text) for text in given), runs=args.runs, seed=args.seed)
        parts.append(made)
    if not parts:
        raise ModelError("no parameter is varied; give --vary, --latin, --normal or --uniform")
    if args.runs is not None and parts[0].kind == "grid" and len(parts) == 1:
        raise ModelError("--runs is the number of draws, but nothing is drawn; leave it out, or give --normal")
    drawn = [part for part in parts if part.kind != "grid"]
    if len(drawn) > 1:
        kinds = " and ".join(f"--{part.kind}" for part in drawn)
        raise ModelError(f"{kinds} are given; draw all parameters in one way")
    found = parts[0]
    for part in parts[1:]:
        found = found * part
    return found


def _named(word: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise ModelError(f"--{word} is {text!r}; it must be PARAMETER=…, see cardan study --help")
    return name.strip(), value.strip()


def _axis(text: str) -> tuple[str, Any]:
    name, value = _named("vary", text)
    found = RANGE.fullmatch(value)
    if found is not None:
        count = POINTS if found[3] is None else int(found[3])
        if count < 2:
            raise ModelError(f"--vary is {text!r}; a range needs two values at least")
        return name, np.linspace(float(found[1]), float(found[2]), count)
    try:
        return name, [float(one) for one in value.split(",")]
    except ValueError:
        raise ModelError(f"--vary is {text!r}; it must be P=A..B:N or P=1,2,3") from None


def _range(word: str, text: str) -> tuple[str, tuple[float, float]]:
    name, value = _named(word, text)
    found = RANGE.fullmatch(value)
    if found is None or found[3] is not None:
        raise ModelError(f"--{word} is {text!r}; it must be P=A..B")
    return name, (float(found[1]), float(found[2]))


def _tolerance(word: str, text: str) -> tuple[str, Any]:
    name, value = _named(word, text)
    found = TOLERANCE.fullmatch(value)
    if found is None:
        raise ModelError(f"--{word} is {text!r}; it must be P=X±T, or P=±T for the value of the model (+- is ± too)")
    return name, float(found[2]) if found[1] is None else (float(found[1]), float(found[2]))
