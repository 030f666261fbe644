"""Import of URDF: links, joints, limits, inertias, mimic joints, damping and friction.

A link without mass on a fixed joint becomes a named frame of its parent link.  Poses are those of all joint
coordinates at zero.  Loops are closed by joints in a side file of the library's own format.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Final

import numpy as np

from cardan import contents
from cardan.errors import ModelError
from cardan.files import reader, robots
from cardan.files.robots import Array, Inertial, Transform
from cardan.files.values import Source
from cardan.mechanism import Mechanism
from cardan.system import check
from cardan.system.parts import Body

KINDS: Final = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
MOMENTS: Final = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
# Elements of a joint, and their attributes that are read; limits of effort and velocity are reported as such.
READ: Final = {
    "origin": ("xyz", "rpy"),
    "parent": ("link",),
    "child": ("link",),
    "axis": ("xyz",),
    "limit": ("lower", "upper", "effort", "velocity"),
    "dynamics": ("damping", "friction"),
    "mimic": ("joint", "multiplier", "offset"),
}
MOVING: Final = ("revolute", "continuous", "prismatic")  # kinds with one coordinate
LOOPS: Final = "close loops with joints in a side file"
KNOWN: Final = ("link", "joint", "material")  # elements of a robot; a material is of a look


def load(
    path: str | Path, *, loops: str | Path | None = None, floating: bool = False, real_inertias: bool = False
) -> tuple[Mechanism, list[str]]:
    """The mechanism of a URDF, and the report of what was not converted.

    floating: the root link is free; else it is fixed to the ground.  loops: a model file with joints (and loads, poses,
    frames) to add, such as those that close loops.  real_inertias: refuse an inertia that no real body has, whose
    largest principal moment exceeds the sum of the others; else it is kept, and reported.
    """
    robot = robots.parse(path, "robot")
    report = robots.Report()
    made = _Robot(robot, report, floating, real_inertias).build()
    if loops is not None:
        target = contents.file_path(loops)
        try:
            content = contents.read(target, reader.MOST_BYTES).decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise ModelError(f"the file {str(loops)!r} cannot be read: {error}") from None
        reader.read(content, str(loops), target.suffix.lower() == ".json", base=made)
    return made, report.text()


class _Robot:
    def __init__(self, robot: ET.Element, report: robots.Report, floating: bool, real_inertias: bool) -> None:
        self.robot = robot
        self.report = report
        self.floating = floating
        self.real_inertias = real_inertias
        self.links = self._by_name("link")
        self.joints = self._by_name("joint")
        self.m = Mechanism(robot.get("name") or "robot")
        self.source = Source()
        self.carriers: dict[str, tuple[Body, Transform]] = {}  # of each link: its body, and its pose in it
        self.world: dict[str, Transform] = {}
        self.names: dict[str, str] = {}  # of joints here
        for element in robot:
            if element.tag not in KNOWN:
                report.count(f"<{element.tag}>", element.get("name") or element.get("reference") or "without a name")

    def _by_name(self, tag: str) -> dict[str, ET.Element]:
        found: dict[str, ET.Element] = {}
        for element in self.robot.findall(tag):
            name = element.get("name")
            if not name:
                raise ModelError(f"a <{tag}> has no name; each must have one")
            if name in found:
                raise ModelError(f"there are two <{tag} name={name!r}>; names must differ")
            found[name] = element
        return found

    def build(self) -> Mechanism:
        """The mechanism; what is not converted goes to the report."""
        children, parent_of = self._tree()
        roots = [name for name in self.links if name not in parent_of]
        if not roots:
            raise ModelError(f"{_loop(parent_of)}; a robot must have one root link: {LOOPS}")
        if len(roots) != 1:
            raise ModelError(f"the links {roots[:6]} have no parent; a robot must have exactly one root link")
        self._add_root(roots[0])
        stack = [roots[0]]
        reached = 1
        while stack:
            link = stack.pop()
            for joint in reversed(children.get(link, [])):
                child = self._end(joint, "child")
                self._add_child(joint, link, child)
                stack.append(child)
                reached += 1
        if reached != len(self.links):
            raise ModelError(f"{_loop(parent_of)}, which is not connected to the root link {roots[0]!r}: {LOOPS}")
        for joint in self.joints.values():
            self._add_mimic(joint)
        self.m._model.source = self.source
        return self.m

    def _tree(self) -> tuple[dict[str, list[ET.Element]], dict[str, str]]:
        if not self.links:
            is_xacro = any("xacro" in str(element.tag) for element in self.robot)
            way = ": it is a xacro file; expand it first, xacro FILE -o FILE.urdf" if is_xacro else "; add one"
            raise ModelError(f"the robot has no links{way}")
        children: dict[str, list[ET.Element]] = {}
        parent_of: dict[str, str] = {}
        for joint in self.joints.values():
            parent, child = self._end(joint, "parent"), self._end(joint, "child")
            if child in parent_of:
                raise ModelError(f"link {child!r} has two parents; {LOOPS}")
            parent_of[child] = parent
            children.setdefault(parent, []).append(joint)
        return children, parent_of

    def _end(self, joint: ET.Element, which: str) -> str:
        element = joint.find(which)
        name = None if element is None else element.get("link")
        if name is None or name not in self.links:
            raise ModelError(f"{robots.describe(joint)}, {which}: {check.unknown(name, 'link', self.links)}")
        return name

    def _add_root(self, name: str) -> None:
        inertial = self._inertial(name)
        if inertial is None and not self.floating:
            self._carry(name, self.m.ground, robots.IDENTITY)
        else:
            body = self._add_body(name, robots.IDENTITY, inertial)
            self._carry(name, body, robots.IDENTITY)
            if not self.floating:
                root = robots.free_name(self.m, f"{name}_root", "joint", self.report)
                self.m.fixed(root, robots.frame(self.m.ground, robots.IDENTITY), robots.frame(body, robots.IDENTITY))
        if not self.floating:
            self.report.say(f"the root link {name!r} is fixed to the ground; load it with floating=True for a free one")
        self.world[name] = robots.IDENTITY

    def _add_body(self, link: str, at: Transform, inertial: Inertial | None) -> Body:
        name = robots.free_name(self.m, link, "link", self.report)
        return robots.add_body(self.m, name, at, inertial, self.report, self.real_inertias)

    def _carry(self, link: str, body: Body, at: Transform) -> None:
        self.carriers[link] = (body, at)
        if at is not robots.IDENTITY or body.name != link:
            self.source.frames[body.name, link] = robots.frame(body, at)

    def _add_child(self, joint: ET.Element, parent: str, child: str) -> None:
        kind = joint.get("type")
        if kind not in KINDS:
            raise ModelError(f"{robots.describe(joint)} has the type {kind!r}; it must be one of {', '.join(KINDS)}")
        self._report_unread(joint)
        origin = _origin(joint)
        self.world[child] = self.world[parent].then(origin)
        on, at = self.carriers[parent]
        inertial = self._inertial(child)
        if inertial is None and kind == "fixed":
            self._carry(child, on, at.then(origin))
            return
        body = self._add_body(child, self.world[child], inertial)
        self._carry(child, body, robots.IDENTITY)
        name = self.names[str(joint.get("name"))] = robots.free_name(
            self.m, str(joint.get("name")), "joint", self.report
        )
        if kind == "floating":
            self.report.say(f"joint {name!r} is floating: link {child!r} is free")
            self._add_limit(joint, kind, name)
            self._add_friction(joint, kind, name)
            return
        axis = joint.find("axis")
        along = np.array([1.0, 0.0, 0.0]) if axis is None else robots.numbers(axis, "xyz", 3, (1.0, 0.0, 0.0))
        turned = (
            np.eye(3) if kind == "fixed" else robots.axes(robots.unit(along, f"the axis of {robots.describe(joint)}"))
        )
        local = Transform(np.zeros(3), turned)
        a, b = robots.frame(on, at.then(origin).then(local)), robots.frame(body, local)
        made = {"continuous": "revolute"}.get(kind, kind)
        getattr(self.m, made)(name, a, b)
        self._add_limit(joint, kind, name)
        self._add_friction(joint, kind, name)

    def _report_unread(self, joint: ET.Element) -> None:
        """Report what the element of a joint contains and this reader does not use."""
        name = str(joint.get("name"))
        for element in joint:
            if element.tag not in READ:
                self.report.count(f"<{element.tag}> of a joint", name)
            for key in element.attrib:
                if element.tag in READ and key not in READ[element.tag]:
                    self.report.count(f"{key} of <{element.tag}> of a joint", name)
        dynamics = joint.find("dynamics")
        if joint.get("type") == "fixed" and dynamics is not None:
            self.report.count("<dynamics> of fixed joints", name)

    def _add_limit(self, joint: ET.Element, kind: str, name: str) -> None:
        limit = joint.find("limit")
        if limit is None:
            if kind in ("revolute", "prismatic"):
                self.report.say(f"joint {name!r} ({kind}) has no <limit>; it is not limited here")
            return
        if kind in ("revolute", "prismatic"):
            lower, upper = robots.number(limit, "lower", 0.0), robots.number(limit, "upper", 0.0)
            self.m.limit(
                robots.free_name(self.m, f"{name}_limit", "limit", self.report), self.m[name], lower=lower, upper=upper
            )
        elif limit.get("lower") is not None or limit.get("upper") is not None:
            self.report.count(f"limits of {kind} joints", name)
        for key in ("effort", "velocity"):
            if limit.get(key) is not None:
                self.report.count(f"limits of {key}", name)

    def _add_friction(self, joint: ET.Element, kind: str, name: str) -> None:
        dynamics = joint.find("dynamics")
        if dynamics is None:
            return
        viscous, coulomb = robots.number(dynamics, "damping", 0.0), robots.number(dynamics, "friction", 0.0)
        if not viscous and not coulomb:
            return
        if kind not in MOVING:
            if kind == "fixed":  # reported already
                return
            self.report.count(f"damping and friction of {kind} joints", name)
            return
        called = robots.free_name(self.m, f"{name}_friction", "friction", self.report)
        self.m.friction(called, self.m[name], viscous=viscous, coulomb=coulomb)

    def _add_mimic(self, joint: ET.Element) -> None:
        mimic = joint.find("mimic")
        if mimic is None:
            return
        followed = mimic.get("joint")
        if followed not in self.joints:
            raise ModelError(f"{robots.describe(joint)}, mimic: {check.unknown(followed, 'joint', self.joints)}")
        if joint.get("type") not in MOVING:
            self.report.count(f"mimic of {joint.get('type')} joints", str(joint.get("name")))
            return
        name = self.names[str(joint.get("name"))]
        ratio, offset = robots.number(mimic, "multiplier", 1.0), robots.number(mimic, "offset", 0.0)
        sort = self.joints[str(followed)].get("type")
        if sort == "fixed":
            self.report.say(f"joint {name!r} mimics {followed!r}, which is fixed: it is held at {offset:g}")
            called = robots.free_name(self.m, f"{name}_mimic", "driver", self.report)
            self.m.drive(called, self.m[name], offset)
            return
        if sort not in MOVING:
            raise ModelError(
                f"{robots.describe(joint)} mimics {followed!r}, which is {sort}; it must be one of {', '.join(MOVING)}"
            )
        robots.couple_linearly(self.m, f"{name}_mimic", self.names[str(followed)], name, (offset, ratio), self.report)

    def _inertial(self, name: str) -> Inertial | None:
        link = self.links[name]
        for part in link:
            if part.tag not in ("visual", "collision", "inertial"):
                self.report.count(f"<{part.tag}> of a link", name)
        for tag in ("visual", "collision"):
            for shape in link.findall(tag):
                geometry = shape.find("geometry")
                sort = geometry[0].tag if geometry is not None and len(geometry) else "nothing"
                self.report.count(f"{tag} geometry, {check.with_article(sort)}", name)
        element = link.find("inertial")
        mass = None if element is None else element.find("mass")
        inertia = None if element is None else element.find("inertia")
        for part in element if element is not None else ():
            if part.tag not in ("origin", "mass", "inertia"):
                self.report.count(f"<{part.tag}> of <inertial>", name)
        if element is None or mass is None or robots.number(mass, "value") == 0.0:
            if inertia is not None and any(robots.number(inertia, key, 0.0) for key in MOMENTS):
                self.report.say(f"link {name!r} has an inertia, and no mass or the mass 0; its inertia is not used")
            return None
        at = _origin(element)
        if inertia is None:
            raise ModelError(f"<link name={name!r}> has a mass and no <inertia>; it must have both")
        xx, xy, xz, yy, yz, zz = (robots.number(inertia, key, 0.0) for key in MOMENTS)
        matrix: Array = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return Inertial(robots.number(mass, "value"), at.p, at.R @ matrix @ at.R.T)


def _origin(element: ET.Element) -> Transform:
    origin = element.find("origin")
    if origin is None:
        return robots.IDENTITY
    roll, pitch, yaw = robots.numbers(origin, "rpy", 3, (0.0, 0.0, 0.0)).tolist()
    return Transform(
        robots.numbers(origin, "xyz", 3, (0.0, 0.0, 0.0)),
        robots.rotation_z(yaw) @ robots.rotation_y(pitch) @ robots.rotation_x(roll),
    )


def _loop(parent_of: dict[str, str]) -> str:
    """A loop of links, each the child of the next one, in words."""
    for first in parent_of:
        seen: dict[str, None] = {}
        link: str | None = first
        while link is not None and link not in seen:
            seen[link] = None
            link = parent_of.get(link)
        if link is not None:
            loop = list(seen)[list(seen).index(link) :][::-1]
            named = ", ".join(map(repr, loop[: robots.MOST_LISTED])) + (", …" if len(loop) > robots.MOST_LISTED else "")
            return (
                f"a joint connects link {named} to itself" if len(loop) == 1 else f"joints of links {named} form a loop"
            )
    raise AssertionError("no loop")
