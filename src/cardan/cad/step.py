"""STEP files: read in a process of its own, written from the poses of a state."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from cardan import contents
from cardan.cad import child
from cardan.cad.parts import Assembly, Part, composed, without_noise
from cardan.cad.picks import FloatArray
from cardan.calls import explained
from cardan.errors import ModelError
from cardan.system import atomic, check
from cardan.system.state import State

SECONDS = 60.0
CHORD = 1e-4  # [m]
SUFFIXES = (".step", ".stp")
HERE = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
MOST_TOLD = 8  # names in an error
MISSING = "needs the package cadquery-ocp; install it with: pip install 'cardan[cad]'"


@explained
def load_step(path: str | Path, *, chord: float = CHORD, seconds: float = SECONDS) -> Assembly:
    """The parts of a STEP file, with names, colours, placements and faces; lengths in metres, whatever its unit.

    chord [m]: how far the triangles for looks may be from curved faces.  seconds: the reader runs in a process of its
    own, which is ended after this time; a file that crashes it is an error here.
    """
    file = contents.file_path(path)
    chord = check.positive(chord, "chord")
    seconds = check.positive(seconds, "seconds")
    if not file.is_file():
        raise ModelError(f"{file} cannot be read: there is no such file")
    if find_spec("OCP") is None:
        raise ModelError(f"load_step {MISSING}")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "parts.npz"
        _run(["read", str(file), str(out), repr(chord)], file, seconds, "read")
        with np.load(out) as arrays:
            found = json.loads(bytes(arrays["json"]))
            table = _arrays(found["arrays"], {kind: arrays[kind] for kind in "fi"})
    parts = [{**_with_arrays(part, table), "chord": chord} for part in found["parts"]]
    placed: list[Part] = []
    names: set[str] = set()
    for node in found["tree"]:
        _collect(node, (), HERE, None, parts, placed, names)
    for one in placed:
        if not np.isfinite([one.volume, *one.center, *np.ravel(one.inertia)]).all():
            reason = f"the volume of part {one.name!r} is {one.volume:g} m³, so numbers of its faces must be wrong"
            raise ModelError(f"{file} cannot be read as STEP: {reason}")
    return Assembly(file, found["unit"], placed)


def _run(arguments: list[str], file: Path, seconds: float, what: str) -> None:
    """Run the child process; ModelError with its reason where it fails.  what: "read" or "written"."""
    command = [sys.executable, str(Path(child.__file__)), repr(seconds), str(os.getpid()), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise ModelError(f"{file} was not {what} within {seconds:g} s; give more with seconds=") from None
    if done.returncode == 3:
        raise ModelError(f"{'load_step' if what == 'read' else 'save_step'} {MISSING} ({done.stderr.strip()})")
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        reason = f"the CAD kernel ended with signal {-done.returncode}" if done.returncode < 0 else (lines or ["?"])[-1]
        raise ModelError(f"{file} cannot be {what} as STEP: {reason}")


def _arrays(shapes: list[Any], values: Mapping[str, Any]) -> list[Any]:
    """The arrays that the child process stored one after the other; shapes: the kind of each, and its shape."""
    found, first = [], {"f": 0, "i": 0}
    for kind, *shape in shapes:
        last = first[kind] + math.prod(shape)
        found.append(values[kind][first[kind] : last].reshape(shape))
        first[kind] = last
    return found


def _with_arrays(part: dict[str, Any], table: Sequence[Any]) -> dict[str, Any]:
    """The description of a part with its arrays in place of their numbers."""

    def curve(form: Any) -> Any:
        return form[0], *[table[k] for k in form[1:]]

    vertices, *rest = [table[k] for k in part["mesh"]]
    size = float(np.abs(vertices).max(initial=0.0))
    part["mesh"] = [without_noise(vertices, size), *rest]
    part["center"] = without_noise(part["center"], size)
    part["inertia"] = without_noise(part["inertia"], float(np.abs(part["inertia"]).max()))
    for face in part["faces"]:
        if face["nurbs"] is not None:
            degrees, *numbers = face["nurbs"]
            loops = [[curve(one) for one in loop] for loop in face["loops"]]
            face["nurbs"] = degrees, *[table[k] for k in numbers], loops
    for edge in part["edges"]:
        if edge.get("nurbs") is not None:
            edge["nurbs"] = curve(edge["nurbs"])
    return part


def _collect(
    node: Mapping[str, Any],
    path: tuple[str, ...],
    parent: FloatArray,
    color: Any,
    parts: list[dict[str, Any]],
    found: list[Part],
    names: set[str],
) -> None:
    """Append the parts below a node, with placements in world; names are made unique by a number."""
    placement = composed(parent, np.array(node["placement"]))
    color = node.get("color", color)
    given = node["name"]
    base = node["kind"] if not given or given.isdigit() else given  # writers number instances that have no name
    if "part" not in node:
        for one in node["children"]:
            _collect(one, (*path, base), placement, color, parts, found, names)
        return
    data = parts[node["part"]]
    base = base or "part"
    name = base
    if name in names or name == "ground":
        count = 2
        while f"{base} {count}" in names:
            count += 1
        name = f"{base} {count}"
    names.add(name)
    found.append(Part(name, (*path, name), placement, color if color is not None else data["color"], data))


def save_step(
    assembly: Assembly,
    path: str | Path,
    state: Any = None,
    *,
    bodies: Mapping[str, str | None] | None = None,
    seconds: float = SECONDS,
) -> Path:
    """Write an assembly to a STEP file (.step or .stp), with its parts in the poses of a state, or as they were read.

    state: a State of a mechanism with bodies of these parts; a part without a body stays where it was.
    bodies: the name of the body of a part where it is not that of the part, ``{"arm": "lever"}``; None for a part
    without a body.  It is needed where the state has other bodies and the assembly other parts: a state has only names.
    It is also needed, and cannot be asked for, where a body was given the name of another part.
    Shapes, hierarchy, names, colours and the unit are read again from ``assembly.path``, which must still exist.
    """
    target = contents.file_path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise ModelError(f"save_step was given the path {str(target)!r}; it writes STEP: end it in .step or .stp")
    seconds = check.positive(seconds, "seconds")
    if not isinstance(assembly, Assembly):
        raise ModelError(f"save_step was given {assembly!r:.80}; it must be an assembly, from cd.load_step(path)")
    if state is not None and not isinstance(state, State):
        raise ModelError(f"save_step was given the state {state!r:.80}; it must be a State, as result.state")
    found = _bodies_of(assembly, state, bodies)
    if find_spec("OCP") is None:
        raise ModelError(f"save_step {MISSING}")
    if not assembly.path.is_file():
        raise ModelError(f"{target} cannot be written: {assembly.path}, which has the shapes, does not exist any more")
    poses = []
    for part in assembly.parts:
        pose = part if state is None or part.name not in found else state[found[part.name]]
        poses.append([*pose.position.tolist(), *pose.quaternion.tolist()])
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.json"
        plan.write_text(json.dumps(poses), encoding="utf-8")
        out = Path(folder) / "out.step"
        _run(["write", str(assembly.path), str(plan), str(out)], target, seconds, "written")
        content = out.read_bytes()
    atomic.write(target, content)
    return target


def _bodies_of(assembly: Assembly, state: State | None, bodies: Mapping[str, str | None] | None) -> dict[str, str]:
    """The name of the body of each part that has one in the state; ModelError where that cannot be known."""
    if bodies is not None and not isinstance(bodies, Mapping):
        raise ModelError(f"save_step was given bodies={bodies!r:.80}; it must be as {{'part': 'body'}}, with names")
    if state is None:
        if bodies is not None:
            raise ModelError("save_step was given bodies= and no state; give the state whose poses are written")
        return {}
    given, names = dict(bodies or {}), set(state)
    for part, name in given.items():
        if part not in assembly:
            raise check.unknown(part, "part of this assembly", assembly)
        if name is not None and (not isinstance(name, str) or name not in names):
            raise check.unknown(name, "body of the state", state)
    wanted = {part: given.get(part, part) for part in assembly}
    found = {part: name for part, name in wanted.items() if name is not None and name in names}
    owners: dict[str, str] = {}
    for part, name in found.items():
        if owners.setdefault(name, part) != part:
            both = f"{owners[name]!r} and {part!r}"
            raise ModelError(f"save_step: parts {both} would both have the pose of body {name!r}; choose with bodies=")
    lost = [part for part in assembly if part not in found and part not in given]
    others = [name for name in state if name not in owners]
    if lost and others:
        raise ModelError(
            f"save_step: no body of the state has the name of the parts {_told(lost)}, and no part that of the bodies "
            f"{_told(others)}; assign them with bodies={{{lost[0]!r}: {others[0]!r}}}, or bodies={{{lost[0]!r}: None}} "
            "if the part has no body and stays where it was"
        )
    if not found:
        raise ModelError("save_step was given a state with no body of this assembly; omit it to write what was read")
    return found


def _told(names: Iterable[str]) -> str:
    """The first names of a list."""
    listed = list(names)
    return ", ".join(map(repr, listed[:MOST_TOLD])) + (", …" if len(listed) > MOST_TOLD else "")
