"""``cardan simulate MODEL``: the motion of a mechanism under gravity and loads, with its drivers."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from cardan.analysis.simulation import Simulation, SimulationStatus, UncountedTurnsError
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
from cardan.errors import ModelError
from cardan.joints import Coordinate, Role
from cardan.mechanism import Mechanism

EXAMPLES = """  cardan simulate bricard --duration 2 --free
  cardan simulate robot.cardan.toml --csv run.csv --plot run.png
  cardan simulate robot.cardan.toml --step 1e-3 --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--duration", type=float, metavar="S", help="s; default: the duration of the example, or 1")
    parser.add_argument("--step", type=float, metavar="S", help="s, constant; default: chosen to meet --rtol")
    parser.add_argument("--rtol", type=float, metavar="X", help="error to meet; default: 1e-6")
    parser.add_argument("--frames", type=int, default=21, metavar="N", help="number of times; default: %(default)s")
    parser.add_argument("--free", action="store_true", help="remove the drivers of the mechanism before the simulation")
    parser.add_argument(
        "--gravity", type=float, nargs=3, metavar=("X", "Y", "Z"), help="m/s², in world; default: that of the mechanism"
    )
    parser.add_argument("--csv", metavar="FILE", help="write the rows of the table to a file, in SI units")
    parser.add_argument("--plot", metavar="FILE", help="draw the coordinates and energies (.png, .svg, .pdf)")
    add_save(parser)


def run(args: argparse.Namespace) -> int:
    check_frames(args.frames, 2)
    rows = None if args.csv is None else figures.check_file(args.csv)
    picture = None if args.plot is None else figures.check_picture(args.plot)
    output = check_output(args.output)
    figures.check_apart(rows, picture, output)
    target = read_target(args)
    duration = (target.duration or 1.0) if args.duration is None else args.duration
    if not (math.isfinite(duration) and duration > 0.0):
        raise ModelError(f"--duration is {duration}; it must be finite and positive")
    mechanism = target.mechanism
    start = start_of(args, mechanism)
    if args.free:
        for name, joint in mechanism.joints.items():
            if joint.kind.role is Role.DRIVER:
                mechanism.remove(name)
    if args.gravity is not None:
        mechanism.gravity = args.gravity
    first = 0.0 if start is None else start.time
    times = first + np.linspace(0.0, duration, args.frames)
    with Bar("simulate") as bar:
        simulation = mechanism.simulate(duration, start, step=args.step, rtol=args.rtol, times=times, progress=bar.part)
    (coordinates, shown, left_out), efforts = _coordinates(mechanism, simulation), _efforts(mechanism, simulation)
    columns = {**coordinates, **efforts, "energy [J]": simulation.energy.total}
    if rows is not None:
        write_rows(rows, {"t [s]": simulation.times, **columns})
    if picture is not None:
        figures.save(simulation.plot(*shown), picture)
    if output is not None and simulation.state is not None:
        save_reached(mechanism, simulation.state, output)
    if args.json:
        plain = [{key: value.tolist() for key, value in group.items()} for group in (coordinates, efforts)]
        document = {"coordinates": plain[0], "efforts": plain[1], "left_out": left_out}
        print_json({"name": target.name, **simulation.as_dict(), **document})
    else:
        print(f"{target.name}: {target.title}")
        print(simulation.text())
        if len(simulation.times):
            print(f"  largest residual of a joint: {simulation.drift.max():.1e}")
        for title, reason in left_out.items():
            print(f"  left out: column {title!r}, since {reason}; give more than --frames {args.frames}")
        print()
        print(over_time(simulation.times, OwnUnits.of(mechanism).columns(columns)))
    if simulation.status is SimulationStatus.INTERRUPTED:
        raise KeyboardInterrupt  # after the states reached are printed
    return 0 if simulation.ok else 1


def _coordinates(
    mechanism: Mechanism, simulation: Simulation
) -> tuple[dict[str, Any], list[Coordinate], dict[str, str]]:
    """Every joint coordinate by title, and which they are; and by title, why angles are left out.

    Those are angles that turn too fast for the output times.
    """
    found: dict[str, Any] = {}
    shown: list[Coordinate] = []
    left_out: dict[str, str] = {}
    for joint in mechanism.joints.values():
        for word in joint.kind.coordinates:
            coordinate = joint.of(word)
            short = joint.name if len(joint.kind.coordinates) == 1 else f"{joint.name}.{word}"
            title = f"{short} [{coordinate.unit}]"
            try:
                found[title] = simulation.coordinate(coordinate)
                shown.append(coordinate)
            except UncountedTurnsError as error:
                left_out[title] = error.what
    return found, shown, left_out


def _efforts(mechanism: Mechanism, simulation: Simulation) -> dict[str, Any]:
    """The effort of every driver by title."""
    drivers = [joint for joint in mechanism.joints.values() if joint.kind.role is Role.DRIVER]
    units = ["N m" if joint.ends[0].unit == "rad" else "N" for joint in drivers]
    return {f"{joint.name} [{unit}]": simulation.effort(joint) for joint, unit in zip(drivers, units, strict=True)}
