"""The CAD kernel in a process of its own: ``child.py SECONDS PARENT read FILE.step OUT.npz CHORD`` describes a file,
``child.py SECONDS PARENT write FILE.step POSES.json OUT.step`` writes it again with other placements.

OCP may crash or never end on a broken file; then only this process is lost.  It ends with the process PARENT, and after
SECONDS of processor time.  Lengths are in metres.  An error is one line on stderr, with exit status 2; with 3 OCP is
missing.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import sys
import types
from pathlib import Path

MEMORY = 4 << 30  # bytes of address space that the process may use, where the system can limit it
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


def main(arguments: list[str]) -> None:
    seconds, parent, *arguments = arguments
    _limit(math.ceil(float(seconds)))
    _end_with(int(parent))
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


def _limit(seconds: int) -> None:
    """Limit the address space of this process to MEMORY, and its processor time to that of two cores."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    for what, limit in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, 2 * seconds), (resource.RLIMIT_CORE, 0)):
        _, most = resource.getrlimit(what)
        least = limit if most == resource.RLIM_INFINITY else min(limit, most)
        with contextlib.suppress(OSError, ValueError, OverflowError):  # macOS refuses a limit of memory
            resource.setrlimit(what, (least, least))


def _end_with(parent: int) -> None:
    """End this process when its parent ends, whatever OCP does then."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended before
            os._exit(2)


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file, whose modules have the names of packages
    main(sys.argv[1:])
