"""Import of a subset of MuJoCo's MJCF: bodies, joints, inertials, sites, and some equality constraints.

Equality constraints are connect, weld and joint.  A body with several joints becomes a chain of bodies with little mass
between them.  Everything else in a file is listed in the report; elements that would make more bodies (include,
replicate, attach, composite, flexcomp) are refused.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from cardan.errors import ModelError
from cardan.files import robots
from cardan.files.robots import Array, Inertial, Transform
from cardan.files.values import Source
from cardan.math import euler
from cardan.mechanism import Mechanism
from cardan.system import check
from cardan.system.parts import Body

REFUSED: Final = ("include", "replicate", "attach", "composite", "flexcomp", "flex", "plugin")
FLAGS: Final = ("gravity", "equality", "limit")  # of the simulation; others are reported
# attributes of <compiler> that change masses; they are reported
MASSES: Final = ("settotalmass", "balanceinertia", "boundmass", "boundinertia", "inertiagrouprange")
TYPES: Final = ("hinge", "slide", "ball", "free")
ROTATIONS: Final = {"x": robots.rotation_x, "y": robots.rotation_y, "z": robots.rotation_z}


def load(path: str | Path) -> tuple[Mechanism, list[str]]:
    """The mechanism of an MJCF file, and the report of what was not converted."""
    root = robots.parse(path, "mujoco")
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
        self.sequence = self.compiler.get("eulerseq", "xyz")
        self.autolimits = self.compiler.get("autolimits", "true") == "true"
        if self.compiler.get("coordinate", "local") != "local":
            way = "load and save the model with MuJoCo 2.3.3 or older, which writes local coordinates"
            raise ModelError(f"<compiler> has coordinate='global', which is not read; {way}")
        self.masses_from_shapes = self.compiler.get("inertiafromgeom", "auto") == "true"
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
        name = element.get("class") or childclass or "main"
        if name not in self.defaults:
            raise ModelError(f"{robots.describe(element)}: {check.unknown(name, 'default class', self.defaults)}")
        return ET.Element(element.tag, {**self.defaults[name].get(element.tag, {}), **element.attrib})

    # -- bodies --------------------------------------------------------------------------------------------------------

    def _children(
        self, element: ET.Element, body: Body, name: str, at: Transform, inner: Transform, childclass: str, depth: int
    ) -> None:
        """Bodies, sites and frames inside a body; ``inner``: the pose of the frame that contains them in the body."""
        for child in element:
            if child.tag == "body":
                self._body(child, body, at, inner, childclass, depth + 1)
            elif child.tag == "frame":
                turned = inner.then(self._pose(child))
                self._children(child, body, name, at, turned, child.get("childclass") or childclass, depth)
            elif child.tag == "site":
                site = self._with_defaults(child, childclass)
                where = inner.then(self._pose(site))
                called = site.get("name")
                if called:
                    self.sites[called] = (body, where)
                    self.source.frames[body.name, called] = robots.frame(body, where)
            elif child.tag not in ("joint", "freejoint", "inertial"):
                self.report.count(f"<{child.tag}>", child.get("name") or name)

    def _body(
        self, element: ET.Element, parent: Body, at: Transform, inner: Transform, childclass: str, depth: int
    ) -> None:
        childclass = element.get("childclass") or childclass
        wanted = element.get("name") or f"body_{len(self.m._model.bodies) + 1}"
        name = robots.free_name(self.m, wanted, "body", self.report)
        world = at.then(inner).then(self._pose(element))
        own = list(self._own(element, robots.IDENTITY, childclass))
        has_shape = any(child.tag == "geom" for child, _, _ in own)
        inertial = None if self.masses_from_shapes and has_shape else self._inertial(element)
        if inertial is None and has_shape:
            self.report.count("masses of bodies from their geometry; they are massless (0 kg)", name)
        if element.get("gravcomp") or element.get("mocap") == "true":
            self.report.count("gravcomp and mocap of bodies", name)
        joints = [
            (self._with_defaults(child, own_class), placed)
            for child, placed, own_class in own
            if child.tag in ("joint", "freejoint")
        ]
        report = robots.Report() if inertial is None and has_shape else self.report  # reported once, above
        last = parent, at
        for k, (joint, placed) in enumerate(joints[:-1]):
            called = robots.free_name(self.m, f"{name}_{k + 1}", "body", self.report)
            between = robots.add_body(self.m, called, world, Inertial(0.0, np.zeros(3), np.zeros((3, 3))), self.report)
            self.report.say(f"body {name!r} has {len(joints)} joints: {called!r} of 0 kg is between two of them")
            self._joint(joint, placed, *last, between, world, f"{name}_joint_{k + 1}", name)
            last = between, world
        body = robots.add_body(self.m, name, world, inertial, report)
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

    def _inertial(self, element: ET.Element) -> Inertial | None:
        inertial = element.find("inertial")
        if inertial is None:
            return None
        at = self._pose(inertial)
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
        kind = "free" if joint.tag == "freejoint" else joint.get("type", "hinge")
        if kind not in TYPES:
            raise ModelError(f"{robots.describe(joint)} has the type {kind!r}; it must be one of {', '.join(TYPES)}")
        if kind == "free":
            return
        name = robots.free_name(self.m, joint.get("name") or fallback, "joint", self.report, reserved)
        self.joints[joint.get("name") or fallback] = name
        anchor = placed.p + placed.R @ robots.numbers(joint, "pos", 3, (0.0, 0.0, 0.0))
        relative = at.inverse().then(world)
        if kind == "ball":
            self.m.spherical(name, parent.point(relative.p + relative.R @ anchor), body.point(anchor))
            if joint.get("range") is not None:
                self.report.count("limits of ball joints", name)
            return
        axis = robots.unit(robots.numbers(joint, "axis", 3, (0.0, 0.0, 1.0)), f"the axis of {robots.describe(joint)}")
        local = Transform(anchor, robots.axes(placed.R @ axis))
        scale = 1.0 if self.radians or kind == "slide" else math.pi / 180.0
        ref = robots.number(joint, "ref", 0.0) * scale
        self.refs[name] = ref
        a = robots.frame(parent, relative.then(local))
        if kind == "hinge":
            self.m.revolute(name, a, robots.frame(body, local.then(Transform(np.zeros(3), robots.rotation_z(ref)))))
        else:
            self.m.prismatic(name, a, robots.frame(body, local.then(Transform(np.array([0.0, 0.0, ref]), np.eye(3)))))
        self._passive(joint, name, scale)

    def _passive(self, joint: ET.Element, name: str, scale: float) -> None:
        """Limits, friction and springs of a joint."""
        limited = joint.get("limited", "auto")
        is_limited = limited == "true" or (limited == "auto" and self.autolimits)
        if joint.get("range") is not None and is_limited and self.flags.get("limit") == "disable":
            self.report.count("limits, which a flag disables", name)
        elif joint.get("range") is not None and is_limited:
            lower, upper = (robots.numbers(joint, "range", 2) * scale).tolist()
            self.m.limit(
                robots.free_name(self.m, f"{name}_limit", "limit", self.report), self.m[name], lower=lower, upper=upper
            )
        damping = joint.get("damping", "0").split()
        if len(damping) > 1:
            self.report.count("damping that is not linear", name)
        viscous, coulomb = (
            robots.number(ET.Element("joint", {"damping": damping[0]}), "damping"),
            robots.number(joint, "frictionloss", 0),
        )
        if viscous or coulomb:
            called = robots.free_name(self.m, f"{name}_friction", "friction", self.report)
            self.m.friction(called, self.m[name], viscous=viscous, coulomb=coulomb)
        stiffness = robots.number(joint, "stiffness", 0.0)
        if stiffness:
            called = robots.free_name(self.m, f"{name}_spring", "spring", self.report)
            self.m.spring(
                called, self.m[name], stiffness=stiffness, rest=robots.number(joint, "springref", 0.0) * scale
            )
        for key in ("armature", "actuatorfrcrange", "springdamper"):
            if joint.get(key) not in (None, "0"):
                self.report.count(f"{key} of joints", name)

    # -- equality ------------------------------------------------------------------------------------------------------

    def _equality(self, element: ET.Element) -> None:
        element = self._with_defaults(element, "")
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
                relative = world_a.inverse().then(world_b)
                if np.any(pose[3:]):
                    relative = Transform(pose[:3], euler.matrix(pose[3:] / np.linalg.norm(pose[3:])))
                on_a = relative.then(on_b)
        if element.tag == "connect":
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
        names = []
        for key in ("joint1", "joint2"):
            given = element.get(key)
            if given is None and key == "joint2":
                continue
            if given not in self.joints:
                raise ModelError(f"{robots.describe(element)}, {key}: {check.unknown(given, 'joint', self.joints)}")
            names.append(self.joints[str(given)])
        c = robots.numbers(element, "polycoef", 5, (0.0, 1.0, 0.0, 0.0, 0.0)).tolist()
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

    # -- poses ---------------------------------------------------------------------------------------------------------

    def _pose(self, element: ET.Element) -> Transform:
        p = robots.numbers(element, "pos", 3, (0.0, 0.0, 0.0))
        scale = 1.0 if self.radians else math.pi / 180.0
        given = [key for key in ("quat", "euler", "axisangle", "xyaxes", "zaxis", "fromto") if element.get(key)]
        if len(given) > 1:
            raise ModelError(f"{robots.describe(element)} has {' and '.join(given)}; it must have one orientation")
        if not given:
            return Transform(p, np.eye(3))
        key = given[0]
        if key == "quat":
            return Transform(
                p,
                euler.matrix(
                    robots.unit(robots.numbers(element, "quat", 4), f"the quat of {robots.describe(element)}")
                ),
            )
        if key == "axisangle":
            x, y, z, angle = robots.numbers(element, "axisangle", 4).tolist()
            turned = robots.unit(np.array([x, y, z]), "an axis")
            return Transform(p, euler.matrix(np.array(euler.from_axis_angle(tuple(turned.tolist()), angle * scale))))
        if key == "euler":
            R = np.eye(3)
            for letter, angle in zip(self.sequence, robots.numbers(element, "euler", 3).tolist(), strict=True):
                one = ROTATIONS[letter.lower()](angle * scale)
                R = R @ one if letter.islower() else one @ R
            return Transform(p, R)
        if key == "xyaxes":
            both = robots.numbers(element, "xyaxes", 6)
            x_axis = robots.unit(both[:3], "xyaxes")
            y_axis = robots.unit(both[3:] - x_axis * float(x_axis @ both[3:]), "xyaxes")
            return Transform(p, np.column_stack([x_axis, y_axis, np.cross(x_axis, y_axis)]))
        if key == "zaxis":
            return Transform(p, _least_rotation(robots.unit(robots.numbers(element, "zaxis", 3), "zaxis")))
        raise ModelError(f"{robots.describe(element)} has {key}, which is not read here; give pos and quat")


def _least_rotation(z: Array) -> Array:
    """The rotation of least angle that takes the z axis to a direction."""
    axis = np.cross((0.0, 0.0, 1.0), z)
    n = float(np.linalg.norm(axis))
    if n < 1e-12:
        return np.eye(3) if z[2] > 0.0 else robots.rotation_x(math.pi)
    return np.asarray(euler.matrix(np.array(euler.from_axis_angle(tuple((axis / n).tolist()), math.atan2(n, z[2])))))
