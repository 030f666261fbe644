"""What a checkout has and an installed package has not: folders beside ``src``, and sources that may be newer.

``constraints/_generated.py`` is made by the build.  In a checkout it is made when the library is imported, if it is
missing or older than its sources; before any kernel is loaded, since its text is part of the key of cached kernels.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

PACKAGE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(PACKAGE))
IS_CHECKOUT = os.path.isfile(os.path.join(ROOT, "hatch_build.py"))

GENERATED = os.path.join(PACKAGE, "constraints", "_generated.py")
SOURCES = ("primitives.py", "codegen.py", "expression.py", "registry.py")  # of the generated kernels


def _is_current() -> bool:
    """Whether the generated kernels are there and, in a checkout, not older than their sources."""
    try:
        made = os.stat(GENERATED).st_mtime_ns
    except FileNotFoundError:
        return False
    folder = os.path.dirname(GENERATED)
    return not IS_CHECKOUT or all(os.stat(os.path.join(folder, name)).st_mtime_ns <= made for name in SOURCES)


def make_kernels() -> None:
    """Write the kernels of the built-in primitives, unless they are current; ImportError if that is not possible."""
    if _is_current():
        return
    from cardan.constraints import codegen

    try:
        codegen.write()
    except OSError as error:
        command = f"python -c 'import sys; sys.path.insert(0, {os.path.dirname(PACKAGE)!r}); import cardan'"
        raise ImportError(
            f"the kernels of the primitives are missing or out of date, and {GENERATED} cannot be written "
            f"({error.strerror or error}); run as a user who may write there: {command}"
        ) from None


def add_path() -> None:
    """Make the packages beside ``src`` importable, in a checkout."""
    if IS_CHECKOUT and ROOT not in sys.path:
        sys.path.append(ROOT)


def load(name: str) -> ModuleType | None:
    """A module of a package beside ``src``, such as papers or gallery; None where there is none."""
    if not IS_CHECKOUT or not os.path.isfile(os.path.join(ROOT, *name.split(".")) + ".py"):
        return None
    add_path()
    return import_module(name)
