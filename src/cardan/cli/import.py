"""``cardan import FILE.step -o MODEL``: a model file of the parts of a STEP file, with proposed joints."""

from __future__ import annotations

import argparse
import sys

from cardan.cad.draft import STEEL, Draft
from cardan.cad.proposals import FIT
from cardan.cad.step import SECONDS, load_step
from cardan.cli import progress
from cardan.cli.output import print_json
from cardan.cli.target import check_output

EXAMPLES = """  cardan import vice.step -o vice.cardan.toml        then edit the joints in the file
  cardan import vice.step --ground base --json       only list the proposals"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.step", help="a STEP file of parts that are placed as in the machine")
    parser.add_argument("-o", "--output", metavar="FILE", help="a model file (.cardan.toml, .json)")
    parser.add_argument("--ground", metavar="PART", help="the part that is fixed; default: that of the largest volume")
    parser.add_argument("--density", type=float, default=STEEL, metavar="RHO", help="kg/m³; default: %(default)g")
    parser.add_argument("--fit", type=float, default=FIT, help="misfit of faces, of the size; default: %(default)g")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time to read the file; default: %(default)g")
    parser.add_argument("--json", action="store_true", help="print the proposals as one JSON document")


def run(args: argparse.Namespace) -> int:
    output = check_output(args.output)
    with progress.told(f"reading {args.file}"):
        assembly = load_step(args.file, seconds=args.seconds)
        draft = Draft(assembly, fit=args.fit, ground=args.ground, density=args.density)
        draft.diagnose()
    if output is not None:
        draft.save(output)
    if args.json:
        found = draft.as_dict()
        print_json({**found, "parts": [part["name"] for part in found["parts"]]})
        return 0
    proposals = draft.proposals.values()
    print(f"{len(assembly)} parts, written in {assembly.unit or 'an unknown unit'}; {len(proposals)} joints proposed")
    for p in proposals:
        print(f"  {p.kind:12} {p.name}: {p.reason}" + (f"; {p.mark}" if p.mark else ""))
    if output is not None:
        print(f"written to {output}", file=sys.stderr)
    return 0
