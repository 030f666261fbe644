"""``cardan export MODEL FILE``: write a page in which a mechanism can be dragged, without Python or a server."""

from __future__ import annotations

import argparse

from cardan.cli import figures
from cardan.cli.target import add_target, read_target
from cardan.files.writer import PAGE

EXAMPLES = """  cardan export rsur rsur.html                        open it in any browser, or send it
  cardan export machine.cardan.toml machine.html"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser, pose=False)
    parser.add_argument("output", metavar="FILE", help="a page (.html)")


def run(args: argparse.Namespace) -> int:
    target = read_target(args)
    target.mechanism.save(figures.check_file(args.output, (PAGE,)))
    return 0
