"""``cardan simulate NAME``: the motion of a mechanism of the gallery under gravity, with its drivers."""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

import numpy as np

from cardan.analysis import output
from cardan.analysis.simulation import Simulation, SimulationStatus
from cardan.cli.move import show_progress, without_rounding
from cardan.cli.output import print_json, table
from cardan.errors import ModelError
from cardan.examples import REGISTRY
from cardan.examples.registry import without_drivers
from cardan.mechanism import Mechanism
from cardan.study import figures
from cardan.system import check

HELP = "simulate the motion of a mechanism of the gallery under gravity"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the mechanism; `cardan examples` lists them")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--duration", type=float, metavar="S", help="s; default: the duration of the example, or 1")
    parser.add_argument("--step", type=float, metavar="S", help="s, constant; default: chosen to meet --rtol")
    parser.add_argument("--rtol", type=float, metavar="X", help="error to meet; default: 1e-6")
    parser.add_argument("--frames", type=int, default=21, metavar="N", help="number of times; default: %(default)s")
    parser.add_argument("--free", action="store_true", help="remove the drivers of the mechanism before the simulation")
    parser.add_argument(
        "--gravity", type=float, nargs=3, metavar=("X", "Y", "Z"), help="m/s², in world; default: that of the example"
    )
    parser.add_argument("--csv", metavar="FILE", help="write the rows of the table to a file")
    parser.add_argument("--plot", metavar="FILE", help="draw the coordinates and energies (.png, .svg, .pdf)")


def run(args: argparse.Namespace) -> int:
    example = REGISTRY.get(args.name)
    if example is None:
        raise check.unknown(args.name, "example", REGISTRY)
    if args.frames < 2:
        raise ModelError(f"--frames is {args.frames}; it must be 2 or more")
    duration = (example.duration or 1.0) if args.duration is None else args.duration
    if not (math.isfinite(duration) and duration > 0.0):
        raise ModelError(f"--duration is {duration}; it must be finite and positive")
    rows = None if args.csv is None else figures.check_file(args.csv)
    picture = None if args.plot is None else figures.check_picture(args.plot)
    figures.check_apart(rows, picture)
    mechanism = example.build()
    if args.free:
        mechanism = without_drivers(mechanism)
    if args.gravity is not None:
        mechanism.gravity = args.gravity
    times = np.linspace(0.0, duration, args.frames)
    progress = show_progress if sys.stderr.isatty() and not args.json else None
    simulation = mechanism.simulate(duration, step=args.step, rtol=args.rtol, times=times, progress=progress)
    if progress:
        print(file=sys.stderr)
    coordinates, efforts = _coordinates(mechanism, simulation), _efforts(mechanism, simulation)
    columns = {**coordinates, **efforts, "energy [J]": simulation.energy.total}
    if rows is not None:
        with figures.writing(rows):
            output.write_csv(rows, {"t [s]": simulation.times, **columns})
    if picture is not None:
        moving = [joint for joint in mechanism.joints.values() if joint.kind.coordinates]
        figures.save(simulation.plot(*moving), picture)
    if args.json:
        plain = [{key: value.tolist() for key, value in group.items()} for group in (coordinates, efforts)]
        document = {"coordinates": plain[0], "efforts": plain[1]}
        print_json({"name": example.name, **simulation.as_dict(), **document})
    else:
        print(f"{example.name}: {example.title}")
        print(simulation.text())
        if len(simulation.times):
            print(f"  largest residual of a joint: {simulation.drift.max():.1e}")
        shown = [without_rounding(column) for column in columns.values()]
        lines = [(f"{t:.6g}", *(f"{column[k]:z.9g}" for column in shown)) for k, t in enumerate(simulation.times)]
        print()
        print(table(("t [s]", *columns), lines, left=0))
    if simulation.status is SimulationStatus.INTERRUPTED:
        raise KeyboardInterrupt  # after the states reached are printed
    return 0 if simulation.ok else 1


def _coordinates(mechanism: Mechanism, simulation: Simulation) -> dict[str, Any]:
    """Every joint coordinate by title."""
    found: dict[str, Any] = {}
    for joint in mechanism.joints.values():
        for word in joint.kind.coordinates:
            coordinate = joint.of(word)
            short = joint.name if len(joint.kind.coordinates) == 1 else f"{joint.name}.{word}"
            found[f"{short} [{coordinate.unit}]"] = simulation.coordinate(coordinate)
    return found


def _efforts(mechanism: Mechanism, simulation: Simulation) -> dict[str, Any]:
    """The effort of every driver by title."""
    drivers = [joint for joint in mechanism.joints.values() if joint.kind.name == "drive"]
    units = ["N m" if joint.ends[0].unit == "rad" else "N" for joint in drivers]
    return {f"{joint.name} [{unit}]": simulation.effort(joint) for joint, unit in zip(drivers, units, strict=True)}
