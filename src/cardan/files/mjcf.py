"""Import of a subset of MuJoCo's MJCF: bodies, joints, inertials, masses of geoms, sites, some equality constraints.

Equality constraints are connect, weld and joint.  A body with several joints becomes a chain with massless bodies
between the joints.  Everything else in a file is listed in the report, attributes too; elements that would make more
bodies (replicate, attach, composite, flexcomp) are refused.  [MuJoCo]
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from cardan.errors import ModelError
from cardan.files import mjcf_elements, mjcf_joints, mjcf_masses, mjcf_poses, mjcf_springs, robots
from cardan.files.robots import Array, Inertial, Transform
from cardan.files.values import Source
from cardan.math import euler
from cardan.mechanism import Mechanism
from cardan.system import check
from cardan.system.parts import Body, Frame

REFUSED: Final = ("replicate", "attach", "composite", "flexcomp", "flex", "plugin")
NOTHING: Final = Inertial(0.0, np.zeros(3), np.zeros((3, 3)))  # of a body between two joints of one body
FLAGS: Final = ("gravity", "equality", "limit")  # of the simulation; others are reported
# attributes of <compiler> that change masses; they are reported
MASSES: Final = ("settotalmass", "balanceinertia", "boundmass", "boundinertia")
TYPES: Final = ("hinge", "slide", "ball", "free")


def load(path: str | Path) -> tuple[Mechanism, list[str]]:
    """The mechanism of an MJCF file, and the report of what was not converted."""
    root = mjcf_elements.read(path)
    report = robots.Report()
    return _Model(root, report).build(), report.text()


class _Model:
    def __init__(self, root: ET.Element, report: robots.Report) -> None:
        self.root = root
        self.report = report
        for element in root.iter():
            if element.tag in REFUSED:
                ways = "save the compiled model with MuJoCo (mj_saveLastXML) and load that"
                raise ModelError(f"<{element.tag}> is not read, and it may contain bodies; {ways}")
        self.compiler, option, self.flags = (self._merged(path) for path in ("compiler", "option", "option/flag"))
        self.radians = self.compiler.get("angle", "degree") == "radian"
        self._pose = mjcf_poses.Poses(self.radians, self.compiler.get("eulerseq", "xyz"))
        self.autolimits = self.compiler.get("autolimits", "true") == "true"
        if self.compiler.get("coordinate", "local") != "local":
            way = "load and save the model with MuJoCo 2.3.3 or older, which writes local coordinates"
            raise ModelError(f"<compiler> has coordinate='global', which is not read; {way}")
        self.masses_from_shapes = self.compiler.get("inertiafromgeom", "auto")
        groups = ET.Element("compiler", self.compiler)
        self.groups: list[float] = robots.numbers(groups, "inertiagrouprange", 2, (0.0, 5.0)).tolist()
        mjcf_elements.report_unread(groups, "compiler", report)
        for key in MASSES:
            if key in self.compiler:
                report.count("attributes of <compiler> that change masses", key)
        self.defaults: dict[str, dict[str, dict[str, str]]] = {"main": {}}
        for default in root.findall("default"):
            name = default.get("class") or "main"
            self._read_default(default, self.defaults.get(name, {}), name)
        gravity = robots.numbers(ET.Element("option", option), "gravity", 3, (0.0, 0.0, -9.81)).tolist()
        if self.flags.get("gravity") == "disable":
            gravity = [0.0, 0.0, 0.0]
            report.say("the flag gravity is 'disable': the gravity is zero here")
        self.m = Mechanism(root.get("model") or "model", gravity=gravity)
        self.inertials: dict[str, Inertial] = {}  # of bodies
        self.static: set[str] = {self.m.ground.name}  # bodies that do not move
        self.reference = mjcf_springs.Reference()
        self.automatic: list[tuple[ET.Element, str, float, tuple[Frame, Frame]]] = []  # joints with springdamper
        self.source = Source()
        self.bodies: dict[str, tuple[Body, Transform]] = {
            "world": (self.m.ground, robots.IDENTITY)
        }  # with its world pose
        self.sites: dict[str, tuple[Body, Transform]] = {}
        self.joints: dict[str, str] = {}
        self.refs: dict[str, float] = {}

    def _merged(self, path: str) -> dict[str, str]:
        """The attributes of all elements at a path; of equal ones the last."""
        return {key: value for element in self.root.findall(path) for key, value in element.attrib.items()}

    def build(self) -> Mechanism:
        """The mechanism; what is not converted goes to the report."""
        for element in self.root:
            if element.tag == "worldbody":
                self._children(element, self.m.ground, "world", robots.IDENTITY, robots.IDENTITY, "", 0)
            elif element.tag not in ("compiler", "default", "equality", "option"):
                for inner in element:
                    self.report.count(f"<{element.tag}>", inner.get("name") or inner.tag)
            elif element.tag == "option":
                for key in element.attrib:
                    if key != "gravity":
                        self.report.count("options of the simulation", key)
                for key, value in ((key, value) for inner in element for key, value in inner.attrib.items()):
                    if key not in FLAGS:
                        self.report.count("flags of the simulation", f"{key}={value}")
        mjcf_springs.add_automatic(self)
        for equality in self.root.findall("equality"):
            for element in equality:
                self._equality(element)
        if not self.m.bodies:
            raise ModelError("the model has no bodies")
        self.m._model.source = self.source
        return self.m

    # -- defaults ------------------------------------------------------------------------------------------------------

    def _read_default(self, element: ET.Element, above: dict[str, dict[str, str]], name: str) -> None:
        own = {tag: dict(values) for tag, values in above.items()}
        for inner in element:
            if inner.tag != "default":
                own[inner.tag] = {**own.get(inner.tag, {}), **inner.attrib}
        self.defaults[name] = own
        for inner in element.findall("default"):
            self._read_default(inner, own, str(inner.get("class")))

    def _with_defaults(self, element: ET.Element, childclass: str) -> ET.Element:
        return ET.Element(element.tag, {**self._of_class(element, childclass, element.tag), **element.attrib})

    def _of_class(self, element: ET.Element, childclass: str, tag: str) -> dict[str, str]:
        """The defaults of a tag in the class of an element."""
        name = element.get("class") or childclass or "main"
        if name not in self.defaults:
            raise ModelError(f"{robots.describe(element)}: {check.unknown(name, 'default class', self.defaults)}")
        return self.defaults[name].get(tag, {})

    # -- bodies --------------------------------------------------------------------------------------------------------

    def _children(
        self, element: ET.Element, body: Body, name: str, at: Transform, inner: Transform, childclass: str, depth: int
    ) -> None:
        """Bodies, sites and frames inside a body; ``inner``: the pose of the frame that contains them in the body."""
        for child in element:
            if child.tag in ("joint", "freejoint", "inertial") and name == "world":
                self.report.count(f"<{child.tag}> in <worldbody>", child.get("name") or name)
            if child.tag == "body":
                self._body(child, body, at, inner, childclass, depth + 1)
            elif child.tag == "frame":
                mjcf_elements.report_unread(child, child.get("name") or name, self.report)
                turned = inner.then(self._pose(child))
                self._children(child, body, name, at, turned, child.get("childclass") or childclass, depth)
            elif child.tag == "site":
                site = self._with_defaults(child, childclass)
                mjcf_elements.report_unread(site, site.get("name") or name, self.report)
                where = inner.then(self._pose(site))
                called = site.get("name")
                if called:
                    self.sites[called] = (body, where)
                    self.source.frames[body.name, called] = robots.frame(body, where)
            elif child.tag not in ("joint", "freejoint", "inertial"):
                what = "drawing and contact of <geom>" if child.tag == "geom" else f"<{child.tag}>"  # _mass reads it
                self.report.count(what, child.get("name") or name)

    def _body(
        self, element: ET.Element, parent: Body, at: Transform, inner: Transform, childclass: str, depth: int
    ) -> None:
        childclass = element.get("childclass") or childclass
        wanted = element.get("name") or f"body_{len(self.m._model.bodies) + 1}"
        name = robots.free_name(self.m, wanted, "body", self.report)
        world = at.then(inner).then(self._pose(element))
        mjcf_elements.report_unread(element, name, self.report)
        own = list(self._own(element, robots.IDENTITY, childclass))
        inertial, is_unknown = self._mass(own, name)
        if element.get("mocap") == "true":
            self.report.count("mocap of bodies, which are fixed here", name)
        bare = inertial
        joints = [
            (self._with_defaults(child, own_class), placed)
            for child, placed, own_class in own
            if child.tag in ("joint", "freejoint")
        ]
        report = robots.Report() if is_unknown else self.report  # reported once, in _mass
        if not joints and parent.name in self.static:
            self.static.add(name)
        last = parent, at
        for k, (joint, placed) in enumerate(joints[:-1]):
            called = robots.free_name(self.m, f"{name}_{k + 1}", "body", self.report)
            light = mjcf_joints.with_armature(self, joint, NOTHING, last[0].name, name)
            between = robots.add_body(self.m, called, world, light, self.report)
            self.reference.add_mass(called, world, light)
            self.inertials[called] = light
            self.reference.parents[called] = last[0].name
            self.report.say(f"body {name!r} has {len(joints)} joints: {called!r} of 0 kg is between two of them")
            self._joint(joint, placed, *last, between, world, f"{name}_joint_{k + 1}", name)
            last = between, world
        if joints and inertial is not None:
            inertial = mjcf_joints.with_armature(self, joints[-1][0], inertial, last[0].name, name)
        body = robots.add_body(self.m, name, world, inertial, report)
        self.reference.parents[name] = last[0].name
        self.reference.add_mass(name, world, inertial)
        if inertial is not None:
            self.inertials[name] = inertial
        self._compensate(element, body, bare)
        self.bodies[element.get("name") or name] = (body, world)
        if joints:
            suffix = "" if len(joints) == 1 else f"_{len(joints)}"
            self._joint(*joints[-1], *last, body, world, f"{name}_joint{suffix}")
        else:
            relative = last[1].inverse().then(world)
            self.m.fixed(
                robots.free_name(self.m, f"{name}_fixed", "joint", self.report),
                robots.frame(last[0], relative),
                robots.frame(body, robots.IDENTITY),
            )
        self._children(element, body, name, world, robots.IDENTITY, childclass, depth)

    def _compensate(self, element: ET.Element, body: Body, inertial: Inertial | None) -> None:
        """A force against a part of the weight of a body, gravcomp."""
        part = robots.number(element, "gravcomp", 0.0)
        if not part or not any(self.m.gravity):
            return
        if inertial is None:
            self.report.count("gravcomp of bodies whose mass is not known", body.name)
            return
        name = robots.free_name(self.m, f"{body.name}_gravcomp", "force", self.report)
        lift = tuple(-part * inertial.mass * g for g in self.m.gravity)
        self.m.force(name, body.point(inertial.center), lift)

    def _own(
        self, element: ET.Element, inner: Transform, childclass: str
    ) -> Iterator[tuple[ET.Element, Transform, str]]:
        """The elements of a body and of the frames in it, with the pose of the frame in the body and the childclass."""
        for child in element:
            if child.tag == "frame":
                turned = inner.then(self._pose(child))
                yield from self._own(child, turned, child.get("childclass") or childclass)
            else:
                yield child, inner, childclass

    def _mass(self, own: list[tuple[ET.Element, Transform, str]], name: str) -> tuple[Inertial | None, bool]:
        """What is known of the mass of a body with these elements, and whether it has one that is not known."""
        given = [(child, placed) for child, placed, _ in own if child.tag == "inertial"]
        if len(given) > 1:
            raise ModelError(f"body {name!r} has {len(given)} <inertial>; it must have one")
        geoms = [(self._with_defaults(child, of), placed) for child, placed, of in own if child.tag == "geom"]
        low, high = self.groups
        geoms = [(geom, placed) for geom, placed in geoms if low <= robots.number(geom, "group", 0.0) <= high]
        uses_geoms = self.masses_from_shapes == "true" or (self.masses_from_shapes == "auto" and not given)
        if uses_geoms and geoms:
            try:
                return mjcf_masses.of_geoms([(geom, at.then(self._pose(geom))) for geom, at in geoms]), False
            except mjcf_masses.UnknownMassError as error:
                self.report.count(f"masses of bodies from {error}; these bodies are massless (0 kg)", name)
                return None, True
        return (self._inertial(*given[0], name) if given else None), False

    def _inertial(self, inertial: ET.Element, placed: Transform, name: str) -> Inertial:
        mjcf_elements.report_unread(inertial, name, self.report)
        at = placed.then(self._pose(inertial))
        full = inertial.get("fullinertia")
        if full is not None:
            xx, yy, zz, xy, xz, yz = robots.numbers(inertial, "fullinertia", 6).tolist()
            matrix: Array = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        else:
            matrix = np.diag(robots.numbers(inertial, "diaginertia", 3))
        return Inertial(robots.number(inertial, "mass"), at.p, at.R @ matrix @ at.R.T)

    def _joint(
        self,
        joint: ET.Element,
        placed: Transform,
        parent: Body,
        at: Transform,
        body: Body,
        world: Transform,
        fallback: str,
        reserved: str = "",
    ) -> None:
        """Add a joint of a body.

        placed: the pose in the body of the frame that contains it.  reserved: the name of a body that follows.
        """
        kind = mjcf_joints.kind_of(joint)
        if kind not in TYPES:
            raise ModelError(f"{robots.describe(joint)} has the type {kind!r}; it must be one of {', '.join(TYPES)}")
        mjcf_elements.report_unread(joint, joint.get("name") or fallback, self.report)
        if kind == "free":
            self.reference.add_free(body.name, joint.get("name") or fallback, world)
            mjcf_joints.add_free(self, joint, body, world, joint.get("name") or fallback)
            return
        name = robots.free_name(self.m, joint.get("name") or fallback, "joint", self.report, reserved)
        self.joints[joint.get("name") or fallback] = name
        anchor = placed.p + placed.R @ robots.numbers(joint, "pos", 3, (0.0, 0.0, 0.0))
        relative = at.inverse().then(world)
        where = world.then(Transform(anchor, np.eye(3)))
        if kind == "ball":
            self.reference.add_ball(body.name, name, where)
            self.m.spherical(name, parent.point(relative.p + relative.R @ anchor), body.point(anchor))
            here = Transform(anchor, np.eye(3))
            frames = robots.frame(parent, relative.then(here)), robots.frame(body, here)
            mjcf_joints.add_ball(self, joint, name, *frames)
            return
        axis = robots.unit(robots.numbers(joint, "axis", 3, (0.0, 0.0, 1.0)), f"the axis of {robots.describe(joint)}")
        local = Transform(anchor, robots.axes(placed.R @ axis))
        scale = 1.0 if self.radians or kind == "slide" else math.pi / 180.0
        ref = robots.number(joint, "ref", 0.0) * scale
        self.refs[name] = ref
        a = robots.frame(parent, relative.then(local))
        armature = robots.number(joint, "armature", 0.0)
        self.reference.add_axis(body.name, name, where.p, world.R @ local.R[:, 2], kind == "hinge", armature)
        if kind == "hinge":
            self.m.revolute(name, a, robots.frame(body, local.then(Transform(np.zeros(3), robots.rotation_z(ref)))))
        else:
            self.m.prismatic(name, a, robots.frame(body, local.then(Transform(np.array([0.0, 0.0, ref]), np.eye(3)))))
        mjcf_joints.add_hinge(self, joint, name, scale)

    # -- equality ------------------------------------------------------------------------------------------------------

    def _equality(self, element: ET.Element) -> None:
        given = self._with_defaults(element, "")
        element = ET.Element(element.tag, {**self._of_class(element, "", "equality"), **given.attrib})
        what = element.get("name") or f"{element.tag}_{len(self.m.joints) + 1}"
        if element.get("active") == "false" or self.flags.get("equality") == "disable":
            self.report.count("equality constraints that are not active", what)
            return
        if element.tag == "joint":
            self._equal_joints(element, what)
            return
        if element.tag not in ("connect", "weld"):
            self.report.count(f"equality <{element.tag}>", what)
            return
        mjcf_elements.report_unread(element, what, self.report, "equality")
        name = robots.free_name(self.m, what, "joint", self.report)
        if element.get("site1") is not None:
            (a, on_a), (b, on_b) = (self._site(element, key) for key in ("site1", "site2"))
        else:
            (a, world_a), (b, world_b) = self._named(element, "body1"), self._named(element, "body2", "world")
            if element.tag == "connect":
                on_a = Transform(robots.numbers(element, "anchor", 3), np.eye(3))
                on_b = world_b.inverse().then(world_a).then(on_a)
            else:
                on_b = Transform(robots.numbers(element, "anchor", 3, (0.0, 0.0, 0.0)), np.eye(3))
                pose = robots.numbers(element, "relpose", 7, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
                on_a = world_a.inverse().then(world_b).then(on_b)
                if np.any(pose[3:]):  # its position is that of the anchor, and not of body2
                    on_a = Transform(pose[:3], euler.matrix(pose[3:] / np.linalg.norm(pose[3:])))
        torque = robots.number(element, "torquescale", 1.0)
        if torque not in (0.0, 1.0):
            self.report.count("torquescale of <weld>, which weighs equations that are exact here", what)
        if element.tag == "connect" or torque == 0.0:
            self.m.spherical(name, a.point(on_a.p), b.point(on_b.p))
        else:
            self.m.fixed(name, robots.frame(a, on_a), robots.frame(b, on_b))

    def _named(self, element: ET.Element, key: str, default: str | None = None) -> tuple[Body, Transform]:
        name = element.get(key) or default
        if name not in self.bodies:
            raise ModelError(f"{robots.describe(element)}, {key}: {check.unknown(name, 'body', self.bodies)}")
        return self.bodies[str(name)]

    def _site(self, element: ET.Element, key: str) -> tuple[Body, Transform]:
        name = element.get(key)
        if name not in self.sites:
            raise ModelError(f"{robots.describe(element)}, {key}: {check.unknown(name, 'site', self.sites)}")
        return self.sites[str(name)]

    def _equal_joints(self, element: ET.Element, what: str) -> None:
        mjcf_elements.report_unread(element, what, self.report, "equality")
        names = []
        for key in ("joint1", "joint2"):
            given = element.get(key)
            if given is None and key == "joint2":
                continue
            if given not in self.joints:
                raise ModelError(f"{robots.describe(element)}, {key}: {check.unknown(given, 'joint', self.joints)}")
            names.append(self.joints[str(given)])
            if names[-1] not in self.refs:
                what = robots.describe(element)
                raise ModelError(f"{what}, {key}: {given!r} is a ball joint; it must be a hinge or a slide")
        c = [0.0, 1.0, 0.0, 0.0, 0.0]
        written = min(len(element.get("polycoef", "").split()), len(c))  # fewer than five replace the first
        if written:
            c[:written] = robots.numbers(element, "polycoef", written).tolist()
        if len(names) == 1:
            joint = self.m[names[0]]
            name = robots.free_name(self.m, what, "driver", self.report)
            self.m.drive(name, joint, self.refs[names[0]] + c[0])
            return
        # joint1 − ref1 = Σ c_k (joint2 − ref2)^k, as a polynomial in joint2
        shifted = np.polynomial.Polynomial(c)(np.polynomial.Polynomial([-self.refs[names[1]], 1.0]))
        coefficients: list[Any] = shifted.trim().coef.tolist()
        coefficients[0] += self.refs[names[0]]
        robots.couple_linearly(self.m, what, names[1], names[0], coefficients, self.report)
