"""``cardan solve MODEL``: assemble a mechanism and report the result."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from cardan.analysis.options import AUTO
from cardan.cli import figures
from cardan.cli.output import OwnUnits, poses, print_json
from cardan.cli.target import add_save, add_target, check_output, read_target, save_reached, start_of, write_rows
from cardan.coordinates import formulations
from cardan.errors import ModelError
from cardan.mechanism import Mechanism
from cardan.solvers import methods

FIRST = "levenberg_marquardt"  # the method of each attempt of "auto"
EXAMPLES = """  cardan solve rsur
  cardan solve robot.cardan.toml --json
  cardan solve robot.cardan.toml -o assembled.cardan.toml
  cardan solve machine.py:build --random-start 1"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--csv", metavar="FILE", help="write the poses to a file, in SI units")
    add_save(parser)
    parser.add_argument("--time", type=float, metavar="T", help="s, of the drivers; default: that of the pose, or 0")
    add_options(parser)
    parser.add_argument("--random-start", type=int, metavar="SEED", help="start from random poses, not from the sketch")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of an assembly."""
    parser.add_argument("--method", choices=[AUTO, *methods.REGISTRY], default=AUTO, help="default: %(default)s")
    parser.add_argument(
        "--formulation", choices=list(formulations.CHOICES), default="manifold", help="default: %(default)s"
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-12,
        metavar="X",
        help="of lengths relative to the extent, of angles in radians; default: %(default)s",
    )
    parser.add_argument("--max-iterations", type=int, metavar="N", help="for each attempt")
    parser.add_argument("--max-seconds", type=float, metavar="S", help="for the whole assembly")
    parser.add_argument("--restarts", type=int, metavar="N", help="attempts after the first (method auto)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the restarts; default: %(default)s")


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    """The options of an assembly that were given."""
    words = ("method", "formulation", "tolerance", "max_iterations", "max_seconds", "restarts", "seed")
    return {word: getattr(args, word) for word in words}


def run(args: argparse.Namespace) -> int:
    target = read_target(args)
    mechanism = target.mechanism
    rows = None if args.csv is None else figures.check_file(args.csv)
    output = check_output(args.output)
    figures.check_apart(rows, output)
    start = start_of(args, mechanism)
    if args.random_start is not None:
        if start is not None:
            raise ModelError("--pose and --random-start are both given; give one of them")
        start = _random_start(mechanism, args.random_start)
    options = options_of(args)
    # One iteration loads or compiles the kernels, so that this does not count as computing time or for --max-seconds.
    # It is without restarts, for which it would be a failure to explain.
    method = FIRST if args.method == AUTO else args.method
    mechanism.assemble(start, time=args.time, **{**options, "method": method, "restarts": None, "max_iterations": 1})
    result = mechanism.assemble(start, time=args.time, **options)
    finite = bool(np.isfinite(result.state.coordinates).all())
    found = mechanism.diagnose(result.state) if finite else None
    if rows is not None:
        titles = ("x [m]", "y [m]", "z [m]", "q w", "q x", "q y", "q z")
        columns = dict(zip(titles, result.state.coordinates.T, strict=True))
        write_rows(rows, {"body": np.array(result.state.names), **columns})
    if output is not None and result.ok:
        save_reached(mechanism, result.state, output)
    if args.json:
        counts = {
            "dof": found.dof if found else None,
            "infinitesimal": found.infinitesimal if found else None,
            "gruebler": mechanism.system.gruebler,
            "redundant": len(found.redundant) if found else None,
        }
        print_json({"name": target.name, **counts, **result.as_dict()})
    else:
        print(f"{target.name}: {target.title}")
        print(result.text())
        if found:
            print(found.text())
        print()
        print(poses(result.state, OwnUnits.of(mechanism)))
    return 0 if result.ok else 1


def _random_start(mechanism: Mechanism, seed: int) -> Any:
    from cardan.examples import random_start

    return random_start(mechanism, seed)
