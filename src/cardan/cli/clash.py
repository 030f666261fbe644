"""``cardan clash MODEL``: which parts overlap, in one state or over a motion."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from cardan.analysis.clash_pairs import left_out_lines
from cardan.analysis.motion import MotionStatus
from cardan.cli.move import drive
from cardan.cli.output import OwnUnits, print_json, table
from cardan.cli.progress import Bar
from cardan.cli.target import Target, add_target, check_frames, read_target, start_of
from cardan.errors import ModelError
from cardan.system import check

EXAMPLES = """  cardan clash engine.cardan.toml                    exit status 1 if parts overlap
  cardan clash engine.cardan.toml --until 2          at any time of a driven motion
  cardan clash robot.cardan.toml --drive hinge=0.5 --until 3 --clearance 0.002
  cardan clash robot.cardan.toml --pair arm post --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--pair", action="append", nargs=2, metavar=("A", "B"), help="only these; may be repeated")
    parser.add_argument(
        "--clearance", type=float, default=0.0, metavar="C", help="m; parts that are nearer clash; default: %(default)s"
    )
    parser.add_argument("--from", dest="first", type=float, default=0.0, metavar="T", help="s; default: %(default)s")
    parser.add_argument("--until", type=float, metavar="T", help="s; over the driven motion, and not in one state")
    parser.add_argument("--frames", type=int, default=21, metavar="N", help="times of the motion; default: %(default)s")
    text = "add a driver, as of cardan move; may be repeated"
    parser.add_argument("--drive", action="append", default=[], metavar="JOINT[.COORDINATE]=RATE", help=text)
    parser.add_argument("--max-seconds", type=float, metavar="S", help="for the comparison; what is left is undecided")


def run(args: argparse.Namespace) -> int:
    check_frames(args.frames, 2)
    check.number(args.clearance, "--clearance")
    target = read_target(args)
    start = start_of(args, target.mechanism)
    pairs = args.pair or "all"
    if args.until is not None:
        return _over_motion(args, target, start, pairs)
    if args.drive or args.max_seconds is not None:
        raise ModelError("--drive and --max-seconds are for a motion; give --until T too")
    return _in_state(args, target, start, pairs)


def _over_motion(args: argparse.Namespace, target: Target, start: Any, pairs: Any) -> int:
    mechanism = target.mechanism
    if not (math.isfinite(args.first) and math.isfinite(args.until)) or args.until == args.first:
        raise ModelError(f"--from is {args.first} s and --until {args.until} s; they must be finite and differ")
    drive(mechanism, args.drive, args.first)
    with Bar("move") as bar:
        motion = mechanism.move(np.linspace(args.first, args.until, args.frames).tolist(), start, progress=bar.part)
    if motion.status is MotionStatus.NOT_ASSEMBLED:
        print(motion.text())
        return 1
    with Bar("clash") as bar:
        found = motion.clashes(pairs, args.clearance, max_seconds=args.max_seconds, progress=bar.part)
    if args.json:
        print_json({"name": target.name, **found.to_dict()})
    else:
        unit, size = OwnUnits.of(mechanism).m
        print(f"{target.name}: {target.title}")
        print(found.text().partition("\n")[0])
        if found.found:
            rows = [
                (one.a, one.b, f"{one.start:.9g}", f"{one.end:.9g}", f"{one.time:.9g}", f"{one.gap / size:.6g}",
                 ", ".join(f"{x / size:z.5g}" for x in one.place))
                for one in found
            ]  # fmt: skip
            titles = ("a", "b", "from [s]", "until [s]", "at [s]", f"least gap [{unit}]", f"place [{unit}]")
            print(f"\n{table(titles, rows, left=2)}\n")
        _print([*[one.text() for one in found.undecided], *found.notes, *left_out_lines(found.left_out)])
    if found.status is MotionStatus.INTERRUPTED:
        raise KeyboardInterrupt  # after what was found is printed
    return 0 if found.ok and motion.ok else 1


def _in_state(args: argparse.Namespace, target: Target, start: Any, pairs: Any) -> int:
    mechanism = target.mechanism
    if args.clearance:
        raise ModelError("--clearance is for a motion; give --until T too")
    result = mechanism.assemble(start, time=args.first)
    if not result.ok:
        print(result.text())
        return 1
    found = mechanism.interference(result.state, pairs)
    if args.json:
        print_json({"name": target.name, **found.to_dict()})
    else:
        unit, size = OwnUnits.of(mechanism).m
        print(f"{target.name}: {target.title}")
        print(found.text().partition("\n")[0])
        if found.found:
            rows = [
                (one.a, one.b, f"{one.depth / size:.6g}", ", ".join(f"{x / size:z.5g}" for x in one.place),
                 f"{one.volume / size**3:.6g}")
                for one in found
            ]  # fmt: skip
            titles = ("a", "b", f"depth [{unit}]", f"place [{unit}]", f"volume [{unit}³]")
            print(f"\n{table(titles, rows, left=2)}\n")
        _print(left_out_lines(found.left_out))
    return 0 if found.ok else 1


def _print(lines: list[str]) -> None:
    for line in lines:
        print(line)
