"""The contracts of pyproject.toml: their groups are those of the docs, and lazy imports by strings obey them too."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

import cardan

SOURCE = Path(cardan.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
LAYERS = [layer.removeprefix("cardan.") for layer in CONTRACTS[0]["layers"]]
GROUPS = [
    [item.strip().removeprefix("cardan.") for item in line.split(":")]
    for line in next(one for one in CONTRACTS if one["name"].startswith("Five groups"))["layers"]
]
# they may be imported by all layers
FREE = {"__init__", "__main__", "calls", "checkout", "contents", "errors", "lazy", "quantities"}

# Imports of a layer above, which happen only when a user calls this method.
UPWARDS = {
    ("cardan.mechanism.mechanism", "cardan.files.writer"): "m.save",
    ("cardan.files.writer", "cardan.view.draggable"): "m.save of a page",
    ("cardan.study.task", "cardan.files.writer"): "the digest of a model is that of its text",
    ("cardan.analysis.output", "cardan.view.export"): "save of a result as a picture",
    ("cardan.analysis.output", "cardan.view.share"): "save of a result as a page",
    ("cardan.system.saving", "cardan.files.results"): "save of a result as a file that can be loaded",
}

NAME = re.compile(r"cardan(\.\w+)+\.?")


def modules() -> dict[str, Path]:
    """Every module of the library by its name."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def strings(text: str) -> set[str]:
    """The names of modules in strings: ``"cardan.x.y"``, and the package of ``f"cardan.x.{y}"``; not in docstrings."""
    tree = ast.parse(text)
    lone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in lone]
    return {node.value.rstrip(".") for node in constants if isinstance(node.value, str) and NAME.fullmatch(node.value)}


def lazy_imports() -> set[tuple[str, str]]:
    """(module, module that it names in a string), for all modules of the library."""
    known = modules()
    return {(name, other) for name, path in known.items() for other in strings(path.read_text("utf-8")) & known.keys()}


def layer(name: str) -> int:
    """Position of the layer of a module, from the top."""
    return LAYERS.index(name.split(".")[1])


def test_every_package_is_in_one_layer_and_in_one_group() -> None:
    names = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert names - FREE - {"__pycache__"} - {path.name for path in SOURCE.glob("py.typed")} == set(LAYERS)
    assert [name for group in GROUPS for name in group] == LAYERS


def test_the_docs_list_the_layers_by_group() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    groups = text.partition("## Layers\n")[2].split("```")[1].strip().split("\n\n")
    listed = [re.findall(r"^\w+", group, re.MULTILINE) for group in groups]
    assert [names[1:] for names in listed] == GROUPS
    titles = next(one["name"] for one in CONTRACTS if one["name"].startswith("Five groups")).partition(": ")[2]
    assert [names[0] for names in listed] == titles.split(", ")
    assert all(re.search(rf"^ +{names[0]} +.*\b{', '.join(names[1:])}$", cardan.__doc__, re.M) for names in listed)


@pytest.mark.slow
def test_lazy_imports_point_down_too() -> None:
    found = lazy_imports()
    assert len({other for _, other in found}) > 40  # the kernels are loaded in this way
    for name, other in found - UPWARDS.keys():
        if name not in ("cardan", "cardan.lazy", "cardan.kernel.listed"):  # the last is a list of names
            assert layer(name) <= layer(other), f"{name} imports {other}, which is in a layer above"
    assert UPWARDS.keys() <= found, "an exception that is no longer needed"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('x = LazyModule("cardan.solvers._blocks")', {"cardan.solvers._blocks"}),
        ('import_module(f"cardan.solvers.{kernel}").SOLVE', {"cardan.solvers"}),
        ('TABLE = {"a": ("cardan.coordinates._manifold", 6)}', {"cardan.coordinates._manifold"}),
        ('def f():\n    """cardan.view"""\n    return "of cardan.view"', set()),
    ],
)
def test_names_of_modules_in_strings_are_found(text: str, names: set[str]) -> None:
    assert strings(text) == names
