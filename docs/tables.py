"""Write the fields of all tables and the pieces of all workspaces to docs/kernels.md: `python docs/tables.py`."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

from cardan.kernel.table import TableMeta, WorkspaceMeta, describe

PAGE = Path(__file__).parent / "kernels.md"
BEGIN = "<!-- begin: made by docs/tables.py -->\n"
END = "<!-- end: made by docs/tables.py -->\n"

# modules with declarations, in the order of the page
MODULES = (
    "cardan.system.tables",
    "cardan.solvers.tables",
    "cardan.solvers._gradient",
    "cardan.solvers._newton",
    "cardan.solvers._algorithm_1",
    "cardan.solvers._levenberg_marquardt",
    "cardan.coordinates.tables",
    "cardan.analysis.tables",
)


def section(module: str) -> str:
    """The declarations of a module, in the order of their sources."""
    found = [
        declared
        for declared in vars(import_module(module)).values()
        if isinstance(declared, TableMeta | WorkspaceMeta) and declared.__module__ == module
    ]
    parts = [f"### `{module.removeprefix('cardan.').replace('.', '/')}.py`"]
    for declared in found:
        words = (inspect.getdoc(declared) if declared.__dict__.get("__doc__") else "") or "Pieces of its workspace."
        parts += [f"`{declared.__name__}`: {' '.join(words.split())}", describe(declared)]
    return "\n\n".join(parts) + "\n"


def page() -> str:
    """The page with all sections."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + "\n" + "\n".join(map(section, MODULES)) + "\n" + END + after


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
