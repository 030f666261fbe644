"""The gallery: example mechanisms.  Each is a model file of this folder; ``index.toml`` lists them.

In a checkout, the package ``gallery`` beside ``src`` has a script for each of them: it makes the file, and it checks
facts of the mechanism against closed-form results.  To add an example, write a script, run ``python -m gallery NAME``
and add its entry to the index.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from cardan import checkout
from cardan.errors import CardanError, ModelError
from cardan.examples.starts import random_start
from cardan.files import reader

if TYPE_CHECKING:
    from cardan.analysis.result import AssemblyResult
    from cardan.cad.parts import Part
    from cardan.mechanism import Mechanism

FOLDER = Path(__file__).parent
CHORD = 5e-5  # m: how far the triangles of parts from CAD may be from their faces


class ExampleError(CardanError):
    """A mechanism of the gallery violates one of its declared facts."""


@dataclass(frozen=True, slots=True)
class Example:
    """One mechanism of the gallery; ``index.toml`` explains the entries.

    ``build()`` returns the mechanism as a rough sketch: close to an assembled pose, but not assembled.
    """

    name: str
    title: str
    dof: int
    gruebler: int
    duration: float = 0.0
    everywhere: bool = True
    folder: Path = FOLDER

    @property
    def file(self) -> Path:
        """The model file."""
        return self.folder / f"{self.name}.cardan.toml"

    @property
    def redundant(self) -> int:
        """Number of redundant equations: (6·bodies − rank) − (6·bodies − equations)."""
        return self.dof - self.gruebler

    def build(self) -> Mechanism:
        mechanism = reader.load(self.file)
        for name, part in parts(self.file.with_name(f"{self.name}.step")).items():
            part._attach_to(mechanism.bodies[name])
        return mechanism

    def script(self) -> ModuleType | None:
        """The module of its script, with the functions build, check and, if it is driven, motion; in a checkout."""
        return checkout.load(f"gallery.{self.name}")

    def facts(self, mechanism: Mechanism, result: AssemblyResult) -> list[str]:
        """Facts that hold in an assembled state, one sentence each; raises ExampleError if one is violated.

        The counts come first.  The others are checked by the script.
        """
        if not result.ok:
            raise ExampleError(f"{self.name} is not assembled; {result.text()}")
        found = mechanism.diagnose(result.state)
        for what, value, declared in (
            ("degrees of freedom", found.dof, self.dof),
            ("Grübler count", found.gruebler, self.gruebler),
            ("redundant equations", len(found.redundant), self.redundant),
        ):
            if value != declared:
                raise ExampleError(f"{self.name}: {what} is {value}, expected {declared}")
        freedom = f"degrees of freedom: {self.dof}; Grübler count {self.gruebler}; redundant equations {self.redundant}"
        script = self.script()
        return [freedom, *(script.check(mechanism, result) if script is not None else ())]

    def motion_facts(self, mechanism: Mechanism, result: AssemblyResult) -> list[str]:
        """Facts that the script checks over the motion from an assembled state; empty without a motion or script."""
        motion = getattr(self.script(), "motion", None)
        return list(motion(mechanism, result.state)) if motion is not None else []


@cache
def parts(path: Path) -> Mapping[str, Part]:
    """The parts of a STEP file of the gallery by name; none where an example has no such file."""
    if not path.is_file():
        return {}
    from cardan.cad.step import load_step

    return load_step(path, chord=CHORD)


def _listed() -> dict[str, dict[str, Example]]:
    """The examples of the index, by their group."""
    index = tomllib.loads((FOLDER / "index.toml").read_text(encoding="utf-8"))
    return {group: {name: Example(name, **row) for name, row in rows.items()} for group, rows in index.items()}


_GROUPS = _listed()
REGISTRY = _GROUPS["joints"]
CONTACTS = _GROUPS["contacts"]
GALLERY = REGISTRY | CONTACTS
CAD = _GROUPS["cad"]  # they need the extra cad


def installed() -> dict[str, Example]:
    """All examples that can be built here: with those of CAD where OCP is installed."""
    return GALLERY | CAD if find_spec("OCP") is not None else dict(GALLERY)


def find(name: str) -> Example | None:
    """An example by name; None where there is none; ModelError where it needs what is not installed."""
    if name in CAD and find_spec("OCP") is None:
        raise ModelError(f"example {name!r} has parts from CAD and needs cadquery-ocp; pip install 'cardan[cad]'")
    return (GALLERY | CAD).get(name)


__all__ = ["CAD", "CONTACTS", "GALLERY", "REGISTRY", "Example", "ExampleError", "find", "installed", "random_start"]
