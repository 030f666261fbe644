"""Compare Cardan with installed programs: ``python benchmarks/run.py [--peers all|none|KEYS] [--quick]``.

Measures assembly from the same starts in one process, judged by independent equations; one step of a four-bar; growth
with the number of bodies; import, cold start and warm start.  Compare ratios within one run, never times between runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from importlib import metadata, util
from pathlib import Path
from types import ModuleType

import compare
import foundation
import peers
import picture
import scale

SIZES = (100, 1_000, 10_000, 100_000)
QUICK_STARTS = 20
ROUNDS = 3  # rounds over the sizes
LEAST_STARTS, QUICK_LEAST_STARTS = 10, 3  # least number of starts of a slow program


def chosen(asked: str) -> tuple[list[ModuleType], dict[str, str], list[str]]:
    """Modules of the installed programs, their versions by name, and the keys of the missing ones."""
    keys = {"all": list(peers.MODULES), "none": []}.get(asked, asked.split(","))
    unknown = [key for key in keys if key not in peers.MODULES]
    if unknown:
        sys.exit(f"no such peer: {', '.join(unknown)}; choose from {', '.join(peers.MODULES)}, all, none")
    found, versions, absent = [], {}, []
    for key in keys:
        try:
            module = peers.load(key)
            version = module.available()
        except (ImportError, OSError):  # OSError: a shared library is missing
            version = None
        if version is None:
            absent.append(key)
        else:
            found.append(module)
            versions[module.name] = version
    return found, versions, absent


def machine() -> dict:
    return {
        "cpus": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("numpy", "scipy", "numba")},
    }


def print_assembly(name: str, found: dict[str, dict]) -> None:
    print(f"\n{name}, {found[compare.OURS]['starts']} starts")
    print(f"  {'':30s} {'solved':>8s} {'median ms':>11s} {'× ours':>8s}")
    for program, f in found.items():
        solved = f"{f['solved']}/{f['starts']}"
        times = "failed" if f["solved"] == 0 else f"{f['times ours']:.3g}"
        print(f"  {program:30s} {solved:>8s} {f['median ms']:11.3f} {times:>8s}")
    for program, f in found.items():
        if f["errors"]:
            print(f"  {program} raised an exception in {len(f['errors'])} starts; the first: {f['errors'][0]}")


def print_scale(kind: str, found: dict) -> None:
    print(f"\n{kind}: one iteration grows as N^{found['exponent']:.2f}")
    print("    bodies  assembled   seconds  iterations  ms/iteration   peak MB")
    for c in found["cases"]:
        solved = "yes" if c["ok"] else "NO"
        print(
            f"  {c['bodies']:8d} {solved:>10s} {c['assembly s']:9.3f} {c['iterations']:11d} {c['iteration ms']:13.3f} "
            f"{c['peak MB']:9.0f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", default="all", help=f"all, none, or some of {','.join(peers.MODULES)}")
    parser.add_argument("--quick", action="store_true", help="fewer starts, and no 100,000 bodies")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    parser.add_argument("--plot", type=Path, help="also draw them into this file (needs the extra 'plot')")
    arguments = parser.parse_args()
    if arguments.plot and util.find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib: pip install 'cardan[plot]'")
    programs, versions, absent = chosen(arguments.peers)
    least = QUICK_LEAST_STARTS if arguments.quick else LEAST_STARTS
    figures: dict = {
        "cardan": compare.version_of_ours(),
        "machine": machine(),
        "peers": versions,
        "not installed": absent,
        "tolerances": compare.tolerances(programs),
        "judged solved at": compare.MET,
        "assembly": {},
    }
    print(f"Cardan {figures['cardan']}; peers: {', '.join(f'{k} {v}' for k, v in versions.items()) or 'none'}")
    if absent:
        print(f"not installed: {', '.join(absent)}")
    print(f"\nAssembly: solved if judged ≤ {compare.MET:g}; median over all starts; slow programs run fewer starts")
    for problem in compare.PROBLEMS:
        starts = min(problem.starts, QUICK_STARTS) if arguments.quick else problem.starts
        found = figures["assembly"][problem.name] = compare.assembly(problem, programs, starts, least)
        print_assembly(problem.name, found)

    figures["step"] = compare.steps(programs)
    print("\nOne step of the RSUR four-bar (ours: position solver; others: their dynamics)")
    for name, f in figures["step"].items():
        tail = f", residual under way {f['residual under way']:.0e}" if "residual under way" in f else ""
        print(f"  {name:30s} {f['median µs']:8.2f} µs, × ours {f['times ours']:.2f}{tail}")

    figures["scale"] = {}
    for kind in scale.MODELS:
        cases = scale.curve(kind, SIZES[:-1] if arguments.quick else SIZES, 1 if arguments.quick else ROUNDS)
        found = figures["scale"][kind] = {"cases": cases, "exponent": scale.exponent(cases)}
        print_scale(kind, found)

    figures["start-up"] = foundation.start_up()
    print("\nstart-up: " + ", ".join(f"{key} {value:.2f}" for key, value in figures["start-up"].items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")
    if arguments.plot:
        picture.draw(figures, arguments.plot)


if __name__ == "__main__":
    main()
