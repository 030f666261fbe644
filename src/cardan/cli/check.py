"""``cardan check MODEL``: diagnose a mechanism, for people and for continuous integration."""

from __future__ import annotations

import argparse

import numpy as np

from cardan.cli.output import print_json
from cardan.cli.solve import add_options, options_of
from cardan.cli.target import add_target, read_target, start_of

EXAMPLES = """  cardan check robot.cardan.toml             exit status 0 if it can be assembled
  cardan check robot.cardan.toml --dof 1     and has one degree of freedom
  cardan check robot.urdf --json"""

# What --json prints of a diagnosis.
MOBILITY = (
    *("dof", "infinitesimal", "undriven", "gruebler", "rank", "redundant", "free_motions", "unconnected", "notes"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--time", type=float, metavar="T", help="s, of the drivers; default: that of the pose, or 0")
    parser.add_argument("--dof", type=int, metavar="N", help="expected degrees of freedom; others: exit status 1")
    parser.add_argument("--no-redundant", action="store_true", help="exit status 1 if equations are redundant")
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    target = read_target(args)
    mechanism = target.mechanism
    result = mechanism.assemble(start_of(args, mechanism), time=args.time, **options_of(args))
    finite = bool(np.isfinite(result.state.coordinates).all())
    found = mechanism.diagnose(result.state, tolerance=args.tolerance) if finite else None
    problems = [] if result.ok else [f"it is not assembled: {result.status}"]
    if found is not None and result.ok:
        if args.dof is not None and found.dof != args.dof:
            counted = f"{found.dof} {'degree' if found.dof == 1 else 'degrees'} of freedom"
            shaky = f" ({found.infinitesimal} more only to first order)" if found.infinitesimal else ""
            problems.append(f"it has {counted}{shaky}, not {args.dof}")
        if args.no_redundant and found.redundant:
            problems.append(f"it has {len(found.redundant)} redundant equations")
    if args.json:
        assembly = result.as_dict()
        judged = {key: assembly[key] for key in ("status", "residual", "tolerance", "worst", "repairs")}
        diagnosed = found.to_dict() if found else {}
        mobility = {key: diagnosed.get(key) for key in MOBILITY}
        print_json({"name": target.name, "ok": not problems, "problems": problems, **judged, **mobility})
    else:
        print(f"{target.name}: {target.title}")
        print(result.text())
        if found:
            print(found.text())
        print("well posed" if not problems else "not well posed: " + "; ".join(problems))
    return 1 if problems else 0
