"""``cardan solve NAME``: assemble one mechanism of the gallery and report the result."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from cardan.analysis.options import AUTO
from cardan.cli.output import print_json, table
from cardan.coordinates import formulations
from cardan.examples import REGISTRY, random_start
from cardan.solvers import methods
from cardan.system import check
from cardan.system.state import State

HELP = "assemble one mechanism of the gallery"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the mechanism; `cardan examples` lists them")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
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
    parser.add_argument("--random-start", type=int, metavar="SEED", help="start from random poses, not from the sketch")


def run(args: argparse.Namespace) -> int:
    example = REGISTRY.get(args.name)
    if example is None:
        raise check.unknown(args.name, "example", REGISTRY)
    mechanism = example.build()
    start = None if args.random_start is None else random_start(mechanism, args.random_start)
    options: dict[str, Any] = {
        "method": args.method,
        "formulation": args.formulation,
        "tolerance": args.tolerance,
        "max_iterations": args.max_iterations,
        "max_seconds": args.max_seconds,
        "restarts": args.restarts,
        "seed": args.seed,
    }
    # a first call loads or compiles the kernels, so that this does not count as computing time or for --max-seconds
    mechanism.assemble(start, **{**options, "max_iterations": 1})
    result = mechanism.assemble(start, **options)
    finite = bool(np.isfinite(result.state.coordinates).all())
    found = mechanism.diagnose(result.state) if finite else None
    if args.json:
        counts = {
            "dof": found.dof if found else None,
            "gruebler": mechanism.system.gruebler,
            "redundant": len(found.redundant) if found else None,
        }
        print_json({"name": example.name, **counts, **result.as_dict()})
    else:
        print(f"{example.name}: {example.title}")
        print(result.text())
        if found:
            print(found.text())
        print()
        print(poses(result.state))
    return 0 if result.ok else 1


def poses(state: State) -> str:
    """A table of positions [m] and quaternions."""
    titles = ("body", "x [m]", "y [m]", "z [m]", "q w", "q x", "q y", "q z")
    rows = [(name, *(f"{value:z.9f}" for value in state.coordinates[k])) for k, name in enumerate(state.names)]
    return table(titles, rows)
