"""``cardan papers NAME``: repeat an experiment of the papers.  They are in the folder papers of a checkout."""

from __future__ import annotations

import argparse

from cardan import checkout
from cardan.errors import ModelError

EXAMPLES = """  cardan papers liu2013 --samples 1000
  cardan papers minima --mechanism robot.cardan.toml --plot minima.png"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command = checkout.load("papers.command")
    if command is None:
        parser.add_argument("words", nargs=argparse.REMAINDER, metavar="NAME ...", help="of an experiment")
    else:
        command.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    if "experiment" not in args:
        raise ModelError(
            "the experiments of the papers are not part of the installed package: they are in the folder papers of the "
            "source; in a checkout, run `pip install -e .` and then `cardan papers`"
        )
    return args.experiment(args)
