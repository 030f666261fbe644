"""The public names of the library and their signatures, as text.

``python tests/project/public_api.py`` writes public_api.txt, which ``test_public_api.py`` compares with the library.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

PLACES = {  # modules, and their public names: those of __all__, or the ones that are given
    "cardan": None,
    "cardan.cad": None,
    "cardan.collide": None,
    "cardan.elastic": None,
    "cardan.files.mjcf": ["load"],
    "cardan.files.urdf": ["load"],
    "cardan.geometry": None,
    "cardan.shapes": None,
    "cardan.view.notebook": ["show"],
    "cardan.view.scene": ["scene"],
}
MADE_BY_USERS = {  # classes whose constructor is public; objects of the others are made by the library
    "cardan.AssemblyOptions",
    "cardan.Display",
    "cardan.Jet",
    "cardan.Mechanism",
    "cardan.Pose",
    "cardan.SimulationOptions",
    "cardan.SpringOptions",
    "cardan.cad.Draft",
    "cardan.geometry.Curve",
    "cardan.geometry.Distance",
    "cardan.geometry.Face",
    "cardan.geometry.Mesh",
    "cardan.geometry.Surface",
    "cardan.shapes.Mesh",
    "cardan.shapes.Properties",
    "cardan.shapes.Triangles",
}
CLOSED = {"cardan.System"}  # a name to annotate with; its members are private
FROZEN = Path(__file__).with_suffix(".txt")


def signature_of(thing: Any, *, skip: int = 0) -> str:
    """Names, kinds and defaults of the arguments; annotations may become more exact without a notice."""
    found = inspect.signature(thing)
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=plain[skip:], return_annotation=inspect.Signature.empty))


def members_of(kind: type) -> Iterator[str]:
    if issubclass(kind, Enum):
        yield from (f".{member.name} = {member.value!r}" for member in kind)
    ours = [base for base in kind.__mro__ if base.__module__.startswith("cardan")]
    names = {name for base in ours for name in (*vars(base), *vars(base).get("__dataclass_fields__", ()))}
    for name in sorted(name for name in names if not name.startswith("_")):
        value = inspect.getattr_static(kind, name, None)
        if issubclass(kind, Enum) and isinstance(value, kind):
            continue
        if isinstance(value, (staticmethod, classmethod)):
            yield f".{name}{signature_of(getattr(kind, name))}"
        elif callable(value) and not isinstance(value, type):
            yield f".{name}{signature_of(value, skip=1)}"
        else:
            yield f".{name}"


def lines() -> Iterator[str]:
    for place, names in PLACES.items():
        module = import_module(place)
        for name in names or sorted(module.__all__):
            value = getattr(module, name)
            title = f"{place}.{name}"
            if isinstance(value, type) and issubclass(value, (Enum, Exception)):
                yield f"{title}: {', '.join(base.__name__ for base in value.__bases__)}"
                yield from (f"    {member}" for member in members_of(value))
            elif title in CLOSED:
                yield title
            elif isinstance(value, type):
                yield title + (signature_of(value) if title in MADE_BY_USERS else "")
                yield from (f"    {member}" for member in members_of(value))
            elif callable(value) and not isinstance(value, ModuleType):
                yield title + signature_of(value)
            else:
                yield title


def text() -> str:
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    FROZEN.write_text(text(), encoding="utf-8")
