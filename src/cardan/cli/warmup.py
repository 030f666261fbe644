"""``cardan warmup``: compile all kernels, so that no later call has to wait."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module

from cardan.cli.output import print_json
from cardan.kernel import jit
from cardan.kernel.listed import LISTED

EXAMPLES = """  cardan warmup"""


NO_TIME = f"{0.0:6.2f} s"  # a module with this printed time had nothing to compile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    began = time.perf_counter()
    seconds = {}
    for module in LISTED:
        start = time.perf_counter()
        compile_module(module)
        name = module.removeprefix("cardan.")
        seconds[name] = time.perf_counter() - start
        if (text := f"{seconds[name]:6.2f} s") != NO_TIME:
            print(f"{text}  {name}", file=sys.stderr, flush=True)
    total = time.perf_counter() - began
    if args.json:
        print_json({"seconds": total, "modules": seconds})
    else:
        print(f"all kernels are ready: {total:.2f} s")
    return 0


def compile_module(module: str) -> None:
    """Compile or load all listed kernels of a module; those that are built need nothing."""
    for name, text in LISTED[module].items():
        jit.prepare(getattr(import_module(module), name), text)
