"""The XML of an MJCF model: files that it includes, and attributes that are read, have no effect here, or are reported.

Included files must be in the folder of the model or below it.  As in MuJoCo, their paths are relative to that folder,
each file is included once, and its root element is replaced by what it contains.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cardan import contents
from cardan.errors import ModelError
from cardan.files import robots
from cardan.files.robots import MOST_BYTES

MOST_FILES: Final = 100  # that a model includes
MOST_DEPTH: Final = 16  # of files that include each other

ORIENTATION: Final = ("quat", "euler", "axisangle", "xyaxes", "zaxis")
POSE: Final = ("pos", *ORIENTATION)
NAMES: Final = ("name", "class", "childclass", "user", "group")
# Of each element that is converted: the attributes that are read, and those that have no effect on the mechanism.
ATTRIBUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "compiler": (
        *("angle", "eulerseq", "autolimits", "coordinate", "inertiafromgeom", "inertiagrouprange"),
        *("meshdir", "texturedir", "assetdir", "strippath", "usethread", "discardvisual", "fusestatic", "saveinertial"),
        *("settotalmass", "balanceinertia", "boundmass", "boundinertia"),  # reported as such
    ),
    "body": (*POSE, *NAMES, "gravcomp", "mocap"),  # the last one is reported as such
    "frame": (*POSE, *NAMES),
    "inertial": (*POSE, "mass", "diaginertia", "fullinertia"),
    "joint": (
        *("type", "pos", "axis", "ref", "range", "limited", "stiffness", "springref", "springdamper", "damping"),
        *("armature", "frictionloss", *NAMES),
    ),
    "freejoint": NAMES,
    "site": (*POSE, *NAMES, "fromto", "type", "size", "material", "rgba"),
    "equality connect": (*NAMES, "active", "body1", "body2", "site1", "site2", "anchor"),
    "equality weld": (*NAMES, "active", "body1", "body2", "site1", "site2", "anchor", "relpose", "torquescale"),
    "equality joint": (*NAMES, "active", "joint1", "joint2", "polycoef"),
}
# Children of elements that are converted; all others are reported by the reader.
CHILDREN: Final[Mapping[str, tuple[str, ...]]] = {
    "inertial": (),
    "joint": (),
    "freejoint": (),
    "site": (),
    "equality connect": (),
    "equality weld": (),
    "equality joint": (),
    "compiler": (),
    "option": ("flag",),
}
WITHOUT_EFFECT: Final = ("", "0", "0 0", "false", "auto")  # values that most attributes have anyway


def report_unread(element: ET.Element, name: str, report: robots.Report, within: str = "") -> None:
    """Report the attributes and children of an element that are not read; name: of what it belongs to."""
    kind = f"{within} {element.tag}".strip()
    known = ATTRIBUTES.get(kind)
    for key, value in element.attrib.items():
        if known is not None and key not in known and value.strip() not in WITHOUT_EFFECT:
            report.count(f"{key} of <{element.tag}>", name)
    for child in element:
        if kind in CHILDREN and child.tag not in CHILDREN[kind]:
            report.count(f"<{child.tag}> in <{element.tag}>", name)


def read(path: str | Path) -> ET.Element:
    """The root element of a model, with the files that it includes."""
    root = robots.parse(path, "mujoco")
    main = Path(path)
    folder = main.parent.resolve()
    _Includes(folder, {main.resolve()}).expand(root, 1, 1)
    return root


class _Includes:
    def __init__(self, folder: Path, seen: set[Path]) -> None:
        self.folder = folder
        self.seen = seen  # files that were read
        self.bytes = 0

    def expand(self, parent: ET.Element, depth: int, nested: int) -> None:
        """Replace every <include> in an element by the content of its file.

        depth: of files; nested: of elements.
        """
        if nested > robots.MOST_DEPTH:
            raise ModelError(f"the included files are nested more than {robots.MOST_DEPTH} deep")
        if any(child.tag == "include" for child in parent):
            found: list[ET.Element] = []
            for child in parent:
                found += self._content(child, depth, nested) if child.tag == "include" else [child]
            parent[:] = found
        for child in parent:
            self.expand(child, depth, nested + 1)

    def _content(self, include: ET.Element, depth: int, nested: int) -> list[ET.Element]:
        """The elements of an included file, with those that it includes."""
        name = include.get("file") or ""
        if not name:
            raise ModelError("an <include> has no file; it must have one")
        content = contents.read_below(self.folder, name, MOST_BYTES, "the included file")
        target = (self.folder / name).resolve()
        if target in self.seen:
            raise ModelError(f"<include file={name!r}>: the file is included twice; MuJoCo includes a file once")
        if depth >= MOST_DEPTH:
            raise ModelError(f"<include file={name!r}>: files include each other more than {MOST_DEPTH} deep")
        if len(self.seen) > MOST_FILES:
            raise ModelError(f"<include file={name!r}>: the model includes more than {MOST_FILES} files")
        self.seen.add(target)
        self.bytes += len(content)
        if self.bytes > MOST_BYTES:
            raise ModelError(f"<include file={name!r}>: the included files have more than {MOST_BYTES:,} bytes")
        found = robots.parsed(content, target, None)
        self.expand(found, depth + 1, nested)
        return list(found)
