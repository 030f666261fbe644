"""What the first call of a fresh process costs: processor seconds with the start of Python, and large modules loaded.

    python benchmarks/first_calls.py [--python PATH] [--runs 5]

Each verb (tests/first_calls.py) runs in processes of its own; the least of several runs counts.  ``--python`` takes the
interpreter of another environment, such as one with the wheel and NumPy alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[1] / "tests" / "first_calls.py"
BARS = {  # [s] of processor time
    "assemble": 0.2,
    "move": 0.25,
    "simulate": 0.3,
    "contact": 0.25,
    "distance": 0.3,
    "session": 0.25,
    "many": 0.3,
    "picture": 0.5,
}


def measure(python: str, verb: str) -> tuple[float, list[str]]:
    """Processor seconds of a process that makes one call, and the large modules that it has loaded."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([python, PROGRAM, verb], env=environment, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = json.loads(done.stdout)
    assert found["ok"], verb
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, found["heavy"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    print("| first call | CPU s | bar | loaded |\n|---|---|---|---|")
    for verb, bar in BARS.items():
        measure(args.python, verb)  # bytecode is written
        found = [measure(args.python, verb) for _ in range(args.runs)]
        seconds, heavy = min(found)
        print(f"| {verb} | {seconds:.2f} | {bar} | {', '.join(heavy) or '–'} |", flush=True)


if __name__ == "__main__":
    main()
