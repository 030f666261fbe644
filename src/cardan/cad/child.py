"""The CAD kernel in a process of its own: ``child.py read FILE.step OUT.npz CHORD`` describes a file, ``child.py write
FILE.step POSES.json OUT.step`` writes it again with other placements.

OCP may crash or never end on a broken file; then only this process is lost.  Lengths are in metres.  An error is one
line on stderr, with exit status 2; with 3 OCP is missing.
"""

from __future__ import annotations

import contextlib
import json
import sys
import types
from pathlib import Path

MEMORY = 8 << 30  # bytes that the process may use, where the system can limit it


def main(arguments: list[str]) -> None:
    _limit_memory()
    here = Path(__file__).resolve().parent
    # Packages without their __init__.py: the library is not loaded, and the process starts at once.
    for name, folder in (("cardan", here.parent), ("cardan.cad", here)):
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    from cardan.cad.kernel import document, writing
    from cardan.cad.kernel.common import Failure

    what, path, second, third = arguments
    try:
        if what == "write":
            with open(second, encoding="utf-8") as plan:
                writing.write(path, json.load(plan), third)
        else:
            document.describe(path, second, float(third))
    except Failure as failure:
        sys.exit(_printed(str(failure), 2))
    except ImportError as missing:
        sys.exit(_printed(str(missing), 3))
    except Exception as error:  # of OCP: any kind, with any text
        text = " ".join(str(error).split())[:200]
        sys.exit(_printed(f"the CAD kernel failed with {type(error).__name__}{text and ': ' + text}", 2))


def _printed(reason: str, status: int) -> int:
    """Print why the process ends; returns its exit status."""
    print(reason, file=sys.stderr)
    return status


def _limit_memory() -> None:
    """Limit the address space of this process to MEMORY."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY if most == resource.RLIM_INFINITY else min(MEMORY, most)
    with contextlib.suppress(OSError, ValueError):  # macOS refuses such a limit
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file, whose modules have the names of packages
    main(sys.argv[1:])
