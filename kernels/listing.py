"""Writes the list of all kernels, src/cardan/kernel/listed.py: the functions are found in the sources.

Types of the arguments of kernels that Python calls are kept as they are in the file.  A test states the types with
which a new kernel is called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "cardan"
PATH = PACKAGE / "kernel" / "listed.py"
HEAD = '''"""Every compiled function, and the types of its arguments (:mod:`cardan.kernel.signatures`).

Kernels are compiled from this list, for the wheel and by ``cardan warmup``.  ``make generated`` writes the names; types
of arguments are written by hand.
"""

from __future__ import annotations

from typing import Final

'''
WIDTH = 121  # of a line with its end
UNKNOWN = ""  # types of a kernel that no test has called yet


def kernels_in(path: Path) -> Iterator[tuple[str, str]]:
    """Name of each kernel in a file, and ``CALL``, ``EVALUATOR`` or ``PRIMITIVE``, in the order of the file."""
    tree = ast.parse(path.read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    by_address = {
        node.args[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "evaluator"
        if isinstance(node.args[0], ast.Name)
    }
    for name, node in functions.items():
        decorators = {one.id for one in node.decorator_list if isinstance(one, ast.Name)}
        if decorators & {"jit", "exact"}:
            yield name, "CALL"
        elif name in by_address or (name == "evaluate_motion" and not decorators):
            yield name, "EVALUATOR"
        elif not decorators and f"{name.removesuffix('_curvature')}_curvature" in functions:
            yield name, "PRIMITIVE"


def found() -> dict[str, dict[str, str]]:
    """All kernels by module."""
    modules = {}
    for path in sorted(PACKAGE.rglob("_[!_]*.py")):
        if inside := dict(kernels_in(path)):
            modules[".".join(("cardan", *path.relative_to(PACKAGE).with_suffix("").parts))] = inside
    return modules


def text() -> str:
    """What listed.py must contain."""
    namespace: dict[str, dict[str, dict[str, str]]] = {}
    if PATH.is_file():
        exec(PATH.read_text(), namespace)
    known = namespace.get("LISTED", {})
    lines = []
    for module, inside in found().items():
        types = {n: known.get(module, {}).get(n, UNKNOWN) if kind == "CALL" else kind for n, kind in inside.items()}
        items = [f'"{name}": "{text}"' for name, text in types.items()]
        line = f'    "{module}": {{{", ".join(items)}}},\n'
        if len(line) > WIDTH:  # as the formatter does it
            line = "".join([f'    "{module}": {{\n', *(f"        {item},\n" for item in items), "    },\n"])
        lines.append(line)
    return "".join([HEAD, "LISTED: Final = {\n", *lines, "}\n"])


if __name__ == "__main__":
    PATH.write_text(text())
