"""``cardan convert MODEL -o FILE``: write a mechanism as a model file."""

from __future__ import annotations

import argparse
import sys

from cardan.cli.target import add_target, check_output, read_target
from cardan.files import writer
from cardan.files.units import UNITS

EXAMPLES = """  cardan convert robot.urdf -o robot.cardan.toml      what is not converted is listed on stderr
  cardan convert machine.py:build -o machine.cardan.toml
  cardan convert machine.cardan.toml -o machine.json
  cardan convert machine.cardan.toml --length mm --angle deg"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser, pose=False)
    parser.add_argument("-o", "--output", metavar="FILE", help="a model file (.cardan.toml, .json); default: stdout")
    parser.add_argument("--json", action="store_true", help="print JSON to stdout, not TOML")
    for quantity, units in UNITS.items():
        parser.add_argument(f"--{quantity}", choices=list(units), help="unit of the file; default: as before, or SI")


def run(args: argparse.Namespace) -> int:
    target = read_target(args)
    output = check_output(args.output)
    given = {quantity: getattr(args, quantity) for quantity in UNITS if getattr(args, quantity) is not None}
    units = None
    if given:
        source = target.mechanism._model.source
        units = {**(source.units.as_dict() if source is not None else {}), **given}
    if output is not None:
        target.mechanism.save(output, units=units)
    else:
        sys.stdout.write(writer.dumps(target.mechanism, as_json=args.json, units=units))
    return 0
