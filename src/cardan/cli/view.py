"""``cardan view [NAME]``: open the workbench in the browser."""

from __future__ import annotations

import argparse

from cardan.examples import REGISTRY
from cardan.system import check

EXAMPLES = """  cardan view
  cardan view jansen_leg --port 0 --no-browser"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the mechanism; `cardan examples` lists them")
    parser.add_argument("--port", type=int, metavar="N", help="default: 8737, or the next free one; 0 for any")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def run(args: argparse.Namespace) -> int:
    if args.name is not None and args.name not in REGISTRY:
        raise check.unknown(args.name, "example", REGISTRY)
    from cardan.view import server

    made = server.Server(first=args.name, port=args.port)
    try:
        server.run(made, browser=not args.no_browser, wait=True)
    except KeyboardInterrupt:
        print()
    return 0
