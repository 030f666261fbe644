"""``cardan move MODEL``: move a driven mechanism, on one branch."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from cardan.analysis.motion import Motion, MotionStatus
from cardan.cli import figures
from cardan.cli.output import OwnUnits, over_time, print_json
from cardan.cli.progress import Bar
from cardan.cli.target import (
    add_save,
    add_target,
    check_frames,
    check_output,
    read_target,
    save_reached,
    start_of,
    write_rows,
)
from cardan.constraints.signal import Line
from cardan.errors import ModelError
from cardan.mechanism import Mechanism
from cardan.system import check

EXAMPLES = """  cardan move slider_crank --until 2 --frames 101
  cardan move robot.cardan.toml --csv motion.csv --plot motion.png
  cardan move robot.cardan.toml --drive hinge=2.0 -o end.cardan.toml"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--from", dest="first", type=float, default=0.0, metavar="T", help="s; default: %(default)s")
    parser.add_argument("--until", type=float, metavar="T", help="s; default: the duration of the example, or 1 s")
    parser.add_argument("--frames", type=int, default=21, metavar="N", help="number of times; default: %(default)s")
    parser.add_argument(
        "--drive",
        action="append",
        default=[],
        metavar="JOINT[.COORDINATE]=RATE",
        help="add a driver: the coordinate has its assembled value at --from and then changes at RATE [rad/s or m/s]; "
        "may be repeated",
    )
    parser.add_argument("--csv", metavar="FILE", help="write the coordinates to a file, in SI units")
    parser.add_argument("--plot", metavar="FILE", help="draw the coordinates (.png, .svg, .pdf)")
    add_save(parser)


def run(args: argparse.Namespace) -> int:
    check_frames(args.frames, 1)
    rows = None if args.csv is None else figures.check_file(args.csv)
    picture = None if args.plot is None else figures.check_picture(args.plot)
    output = check_output(args.output)
    figures.check_apart(rows, picture, output)
    target = read_target(args)
    until = (args.first + (target.duration or 1.0)) if args.until is None else args.until
    for option, value in (("--from", args.first), ("--until", until)):
        if not math.isfinite(value):
            raise ModelError(f"{option} is {value}; it must be finite")
    if until == args.first and args.frames > 1:
        raise ModelError(f"--from and --until are both {args.first} s; they must differ")
    mechanism = target.mechanism
    start = start_of(args, mechanism)
    drive(mechanism, args.drive, args.first)
    if not mechanism.system.signals:
        raise ModelError(f"{target.name} has no drivers; add one with --drive JOINT=RATE; {_drivable(mechanism)}")
    times = np.linspace(args.first, until, args.frames).tolist()
    with Bar("move") as bar:
        motion = mechanism.move(times, start, progress=bar.part)
    columns = coordinates(mechanism, motion)
    if rows is not None:
        write_rows(rows, {"t [s]": motion.times, **columns})
    if picture is not None:
        figures.save(figures.over_time(motion.times, columns), picture)
    if output is not None and motion.state is not None:
        save_reached(mechanism, motion.state, output)
    if args.json:
        counted = {key: value.tolist() for key, value in columns.items()}
        document: dict[str, Any] = {
            "name": target.name,
            "ok": motion.ok,
            "status": str(motion.status),
            "reason": motion.reason,
            "steps": motion.steps,
            "times": motion.times.tolist(),
            "coordinates": counted,
            "turns": motion.state.turns if motion.state is not None else {},
        }
        print_json(document)
    else:
        print(f"{target.name}: {target.title}")
        print(motion.text())
        print()
        print(over_time(motion.times, OwnUnits.of(mechanism).columns(columns)))
    if motion.status is MotionStatus.INTERRUPTED:
        raise KeyboardInterrupt  # after the states reached are printed
    return 0 if motion.ok else 1


def drive(mechanism: Mechanism, options: list[str], first: float) -> None:
    """Add the drivers given on the command line."""
    if not options:
        return
    start = mechanism.assemble(time=first)
    for option in options:
        where, sign, rate = option.partition("=")
        joint, _, word = where.partition(".")
        try:
            speed = float(rate)
        except ValueError:
            speed = math.nan
        if not sign or not math.isfinite(speed):
            raise ModelError(f"--drive is {option!r}; it must be JOINT=RATE or JOINT.COORDINATE=RATE with finite RATE")
        if joint not in mechanism.joints:
            raise check.unknown(joint, f"joint of {mechanism.name!r}", mechanism.joints)
        chosen = mechanism.joints[joint]
        offered = tuple(chosen.kind.coordinates)
        if not offered:
            text = f"joint {joint!r} ({chosen.kind.name}) has no coordinate that can be driven"
            raise ModelError(f"--drive is {option!r}: {text}; {_drivable(mechanism)}")
        if not word and len(offered) > 1:
            ways = " or ".join(f"--drive {joint}.{name}={rate}" for name in offered)
            text = f"joint {joint!r} ({chosen.kind.name}) has {len(offered)} coordinates"
            raise ModelError(f"--drive is {option!r}: {text}; choose one, {ways}")
        coordinate = chosen.of(word or offered[0])
        mechanism.drive(f"drive of {where}", coordinate, Line(coordinate.value(start.state), speed, first))


def _drivable(mechanism: Mechanism) -> str:
    """A list of the joints that can be driven, for messages."""
    names = [joint.name for joint in mechanism.joints.values() if joint.kind.coordinates]
    listed = ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
    return f"joints that can be driven: {listed or 'none'}"


def coordinates(mechanism: Mechanism, motion: Motion) -> dict[str, Any]:
    """Every joint coordinate over the motion, by title."""
    found: dict[str, Any] = {}
    for joint in mechanism.joints.values():
        for word in joint.kind.coordinates:
            coordinate = joint.of(word)
            short = joint.name if len(joint.kind.coordinates) == 1 else f"{joint.name}.{word}"
            values = [coordinate.value(state) for state in motion.states]
            found[f"{short} [{coordinate.unit}]"] = np.array(values)
    return found
