"""``cardan view [MODEL]``: open the workbench in the browser."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from cardan.cli import progress, target

if TYPE_CHECKING:
    from cardan.view.server import Own, Server

EXAMPLES = """  cardan view
  cardan view jansen_leg --port 0 --no-browser
  cardan view lift.cardan.toml          # the page follows the file when it is saved
  cardan view lift.py:build
  cardan view vice.step                 # parts; accept or refuse proposed joints, or pick faces"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = ".cardan.toml, .json, .urdf, .xml, .step"
    text = f"a file ({files}), script.py:function, or a name of the gallery; else the gallery"
    parser.add_argument("model", metavar="MODEL", nargs="?", help=text)
    parser.add_argument("--loops", metavar="FILE", help="of a URDF: a model file with the joints that close its loops")
    parser.add_argument("--floating", action="store_true", help="of a URDF: the root link is free, not fixed")
    parser.add_argument("--port", type=int, metavar="N", help="default: 8737, or the next free one; 0 for any")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def run(args: argparse.Namespace) -> int:
    from cardan.examples import installed
    from cardan.view import server

    if args.model is not None and args.model.lower().endswith((".step", ".stp")):
        target.check_robot_options(args.model, args.loops, args.floating)
        return serve(server.Server(parts(args.model), port=args.port), args)
    found = None if args.model is None else target.find(args.model, args.loops, args.floating)
    files = [] if found is None else files_of(args)
    if found is None or (not files and found.name in installed()):
        made = server.Server(first=found and found.name, port=args.port)
    else:
        own = server.Own(
            found.mechanism, lambda: target.find(args.model, args.loops, args.floating).mechanism, tuple(files)
        )
        made = server.Server(own, port=args.port)
    return serve(made, args)


def parts(path: str) -> Own:
    """The parts of a STEP file, with the joints that their faces suggest."""
    from cardan.cad import Draft, load_step
    from cardan.view.server import Own

    with progress.told(f"reading {path}"):
        first = Draft(load_step(path))
    return Own(first, lambda: Draft(load_step(path)), (Path(path),))


def serve(made: Server, args: argparse.Namespace) -> int:
    """Serve until interrupted by the keyboard."""
    from cardan.view import server

    try:
        server.run(made, browser=not args.no_browser, wait=True)
    except KeyboardInterrupt:
        print(flush=True)
        if made.is_working():
            os._exit(0)  # a thread compiles kernels: it cannot be stopped, and Python would end under it with a crash
    return 0


def files_of(args: argparse.Namespace) -> list[Path]:
    """The files that MODEL is read from; none for a name of the gallery."""
    script, _, _ = args.model.rpartition(":")
    paths = [Path(script if script.endswith(".py") else args.model)]
    return [*paths, *([Path(args.loops)] if args.loops else [])] if paths[0].is_file() else []
