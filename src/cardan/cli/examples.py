"""``cardan examples``: list the gallery, assemble all mechanisms and check their facts, or copy one out."""

from __future__ import annotations

import argparse
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardan.analysis.result import AssemblyResult
from cardan.cli import figures
from cardan.cli.output import print_json, table
from cardan.diagnosis.freedom import Diagnosis
from cardan.errors import ModelError
from cardan.examples import CAD, GALLERY, Example, ExampleError, find, installed
from cardan.files import spec, writer
from cardan.system import atomic, check

EXAMPLES = """  cardan examples
  cardan examples --solve
  cardan examples copy planar_4r                    writes planar_4r.cardan.toml
  cardan examples copy planar_4r -o planar_4r.py    its script, in a checkout of the source
  cardan examples copy all -o gallery               a directory with all files"""

REPEATS = 5  # assemblies whose median time is shown


@dataclass(frozen=True, slots=True)
class Shown:
    """The results of one example."""

    example: Example
    result: AssemblyResult
    diagnosis: Diagnosis
    facts: list[str]
    failure: str | None
    milliseconds: float

    @property
    def ok(self) -> bool:
        return self.failure is None

    def row(self) -> tuple[str, ...]:
        found, result = self.diagnosis, self.result
        return (
            self.example.name,
            str(result.status) if self.ok or not result.ok else "WRONG",
            str(found.dof),
            str(found.gruebler),
            str(len(found.redundant)),
            f"{result.residual:.1e}",
            str(result.iterations),
            str(result.restarts),
            f"{self.milliseconds:.2f}",
        )

    def as_dict(self) -> dict[str, Any]:
        found, result = self.diagnosis, self.result
        return {
            "name": self.example.name,
            "title": self.example.title,
            "ok": self.ok,
            "status": str(result.status),
            "dof": found.dof,
            "gruebler": found.gruebler,
            "redundant": len(found.redundant),
            "residual": result.residual,
            "iterations": result.iterations,
            "restarts": result.restarts,
            "milliseconds": self.milliseconds,
            "facts": self.facts,
            "failure": self.failure,
        }


TITLES = ("mechanism", "status", "dof", "Grübler", "redundant", "residual", "iterations", "restarts", "time ms")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=["list", "copy"], default="list", help="default: %(default)s")
    parser.add_argument("name", nargs="?", metavar="NAME", help="of the mechanism to copy, or all")
    text = "copy to this file: .cardan.toml, .json, or .py for the script; for all: a directory"
    parser.add_argument("-o", "--output", metavar="FILE", help=text)
    parser.add_argument("--solve", action="store_true", help="assemble every mechanism and check its facts")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    if args.action == "copy":
        return _copy(args)
    if args.name is not None or args.output is not None:
        raise ModelError("NAME and -o belong to `cardan examples copy NAME -o FILE`")
    examples = installed()
    if not args.solve:
        if args.json:
            print_json([{"name": example.name, "title": example.title} for example in examples.values()])
        else:
            width = max(map(len, examples))
            for example in examples.values():
                print(f"{example.name:{width}}  {example.title}")
        return 0
    next(iter(GALLERY.values())).build().assemble()  # loads the kernels, so that the first time does not include it
    shown = [show(example) for example in examples.values()]
    if args.json:
        print_json([item.as_dict() for item in shown])
    else:
        print(table(TITLES, (item.row() for item in shown), left=2))
        print()
        for item in shown:
            for fact in item.facts:
                print(f"{item.example.name}: {fact}")
            if item.failure is not None:
                print(f"{item.example.name}: WRONG: {item.failure}")
        print(f"\ntime: one assemble() of a mechanism just built, median of {REPEATS}, kernels loaded")
    return 0 if all(item.ok for item in shown) else 1


def _copy(args: argparse.Namespace) -> int:
    """Copy one example, or all, as model files or as a script."""
    if args.name is None:
        raise ModelError("the name is missing: cardan examples copy NAME; `cardan examples` lists them")
    if args.name == "all":
        folder = Path(args.output or "gallery")
        folder.mkdir(parents=True, exist_ok=True)
        for name, one in GALLERY.items():
            writer.save(one.build(), folder / f"{name}.cardan.toml")
        if args.json:
            print_json({"files": [str(folder / f"{name}.cardan.toml") for name in GALLERY]})
        else:
            print(f"{len(GALLERY)} files in {folder}")
        return 0
    example = find(args.name)
    if example is None:
        raise check.unknown(args.name, "example", [*GALLERY, *CAD])
    output = args.output or f"{args.name}.cardan.toml"
    if args.output is None and os.path.lexists(output):
        raise ModelError(f"the file {output!r} exists, and may have been edited; -o {output} replaces it")
    if output.lower().endswith(".py"):
        script = example.script()
        if script is None or script.__file__ is None:
            raise ModelError(
                f"the script of {args.name!r} is not part of the installed package: it is gallery/{args.name}.py of "
                f"the source; copy its file, {args.name}.cardan.toml"
            )
        atomic.write(figures.check_file(output), Path(script.__file__).read_bytes())
    else:
        writer.save(example.build(), figures.check_file(output, (*spec.SUFFIXES, ".py")))
    if args.json:
        print_json({"files": [output]})
    else:
        print(output)
    return 0


def show(example: Example) -> Shown:
    """Assemble an example and check its facts; a failure is part of the result."""
    times = []
    for _ in range(REPEATS):
        mechanism = example.build()
        began = time.perf_counter()
        result = mechanism.assemble()
        times.append(1e3 * (time.perf_counter() - began))
    facts: list[str] = []
    failure = None
    try:
        facts = [*example.facts(mechanism, result), *example.motion_facts(mechanism, result)]
    except ExampleError as error:
        failure = str(error)
    return Shown(example, result, mechanism.diagnose(result.state), facts, failure, statistics.median(times))
