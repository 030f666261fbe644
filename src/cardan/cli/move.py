"""``cardan move NAME``: move a driven mechanism of the gallery, on one branch."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from cardan.analysis.motion import Motion, MotionStatus
from cardan.cli.output import print_json, table
from cardan.errors import ModelError
from cardan.examples import REGISTRY
from cardan.mechanism import Mechanism
from cardan.system import check

HELP = "move a driven mechanism of the gallery through time"

# Values this small, relative to the largest of their column or absolute, are printed as zero; JSON keeps them.
ZERO_RTOL = 1e-12
ZERO = 1e-15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the mechanism; `cardan examples` lists them")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--from", dest="first", type=float, default=0.0, metavar="T", help="s; default: %(default)s")
    parser.add_argument("--until", type=float, metavar="T", help="s; default: the duration of the example")
    parser.add_argument("--frames", type=int, default=21, metavar="N", help="number of times; default: %(default)s")
    parser.add_argument(
        "--drive",
        action="append",
        default=[],
        metavar="JOINT[.COORDINATE]=RATE",
        help="drive a joint at a constant rate [rad/s or m/s] from its assembled position; may be repeated",
    )


def run(args: argparse.Namespace) -> int:
    example = REGISTRY.get(args.name)
    if example is None:
        raise check.unknown(args.name, "example", REGISTRY)
    if args.frames < 1:
        raise ModelError(f"--frames is {args.frames}; it must be 1 or more")
    until = (args.first + (example.duration or 1.0)) if args.until is None else args.until
    for option, value in (("--from", args.first), ("--until", until)):
        if not math.isfinite(value):
            raise ModelError(f"{option} is {value}; it must be finite")
    if until == args.first and args.frames > 1:
        raise ModelError(f"--from and --until are both {args.first} s; they must differ")
    mechanism = example.build()
    drive(mechanism, args.drive, args.first)
    if not mechanism.system.signals:
        raise ModelError(f"{example.name} has no drivers; add one with --drive JOINT=RATE; {_drivable(mechanism)}")
    times = np.linspace(args.first, until, args.frames).tolist()
    progress = show_progress if sys.stderr.isatty() and not args.json else None
    motion = mechanism.move(times, progress=progress)
    if progress:
        print(file=sys.stderr)
    columns = coordinates(mechanism, motion)
    if args.json:
        counted = {key: value.tolist() for key, value in columns.items()}
        document: dict[str, Any] = {
            "name": example.name,
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
        print(f"{example.name}: {example.title}")
        print(motion.text())
        shown = [without_rounding(column) for column in columns.values()]
        rows = [(f"{t:.6g}", *(f"{column[k]:z.9g}" for column in shown)) for k, t in enumerate(motion.times)]
        print()
        print(table(("t [s]", *columns), rows, left=0))
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
        mechanism.drive(f"drive of {where}", coordinate, _constant_rate(coordinate.value(start.state), speed, first))


def _drivable(mechanism: Mechanism) -> str:
    """A list of the joints that can be driven, for messages."""
    names = [joint.name for joint in mechanism.joints.values() if joint.kind.coordinates]
    listed = ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
    return f"joints that can be driven: {listed or 'none'}"


def without_rounding(column: Any) -> Any:
    """A column with rounding errors of zero replaced by zero."""
    size = np.abs(column)
    return np.where(size <= max(ZERO, ZERO_RTOL * float(size.max(initial=0.0))), 0.0, column)


def _constant_rate(begin: float, speed: float, first: float) -> Callable[[Any], Any]:
    return lambda t: begin + speed * (t - first)


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


def show_progress(part: float) -> None:
    print(f"\r{round(100 * part):3d} %", end="", file=sys.stderr, flush=True)
