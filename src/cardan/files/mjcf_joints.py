"""Springs, dampers, friction, limits and inertias (armature) of MJCF joints."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import numpy as np

from cardan.errors import ModelError
from cardan.files import mjcf_masses, robots
from cardan.files.robots import Inertial, Transform
from cardan.system.parts import Body, Frame

if TYPE_CHECKING:
    from cardan.files.mjcf import _Model


def kind_of(joint: ET.Element) -> str:
    """The type of a joint."""
    return "free" if joint.tag == "freejoint" else joint.get("type", "hinge")


def with_armature(model: _Model, joint: ET.Element, inertial: Inertial, parent: str, name: str) -> Inertial:
    """The mass of a body with the armature of its only joint, a ball or a free joint; of other joints without it.

    On a parent at rest, the armature A of a ball adds ½ A |ω|² to the kinetic energy: A to each moment of inertia.
    That of a free joint also adds ½ A |ṙ|², r the origin of the body: a point mass A there, without weight.
    """
    armature, kind = robots.number(joint, "armature", 0.0), kind_of(joint)
    if armature == 0.0 or kind not in ("ball", "free"):
        return inertial
    if kind == "free":
        return mjcf_masses.with_point(inertial, armature)
    if parent in model.static:
        return inertial._replace(inertia=inertial.inertia + armature * np.eye(3))
    model.report.count("armature of ball joints on bodies that move", joint.get("name") or name)
    return inertial


def add_free(model: _Model, joint: ET.Element, body: Body, world: Transform, what: str) -> None:
    """What a free joint does to its body: springs, dampers, and the weight that its armature does not have."""
    frames = robots.frame(model.m.ground, world), robots.frame(body, robots.IDENTITY)
    if not _is_automatic(model, joint, what, 0.0, frames):
        stiffness, damping = _number(model, joint, "stiffness", what), _number(model, joint, "damping", what)
        add_springs(model, "free", what, stiffness, damping, frames)
    armature = robots.number(joint, "armature", 0.0)
    if armature:
        if body.name not in model.inertials:
            model.report.count("armature of free joints of bodies without a mass", what)
            return
        words = f"a point mass of body {body.name!r} without weight, and part of its moments"
        model.report.say(f"the armature of the free joint {what!r} is {words}")
        if any(model.m.gravity):
            lift = tuple(-armature * g for g in model.m.gravity)
            model.m.force(_name(model, what, "lift"), body.point(), lift)
    _report_rest(model, joint, what, "free")


def add_ball(model: _Model, joint: ET.Element, name: str, a: Frame, b: Frame) -> None:
    """Springs and dampers of a ball joint; frames a and b coincide in the reference pose."""
    if not _is_automatic(model, joint, name, 0.0, (a, b)):
        stiffness, damping = _number(model, joint, "stiffness", name), _number(model, joint, "damping", name)
        add_springs(model, "ball", name, stiffness, damping, (a, b))
    if joint.get("range") is not None and joint.get("limited") != "false":
        model.report.count("limits of ball joints", name)
    if robots.number(joint, "armature", 0.0) and b.body.name not in model.inertials:
        model.report.count("armature of ball joints of bodies without a mass", name)
    _report_rest(model, joint, name, "ball")


def _report_rest(model: _Model, joint: ET.Element, name: str, kind: str) -> None:
    if robots.number(joint, "frictionloss", 0.0):
        model.report.count(f"frictionloss of {kind} joints", name)


def _is_automatic(model: _Model, joint: ET.Element, name: str, rest: float, frames: tuple[Frame, Frame]) -> bool:
    """Whether springdamper replaces stiffness and damping, which then follow when all masses are known."""
    if min(robots.numbers(joint, "springdamper", 2, (0.0, 0.0))) <= 0.0:
        return False
    model.automatic.append((joint, name, rest, frames))
    return True


def add_springs(
    model: _Model, kind: str, name: str, stiffness: float, damping: float, frames: tuple[Frame, Frame], rest: float = 0
) -> None:
    """The spring and damper of a joint; frames: of a ball or free joint, which coincide in the reference pose."""
    m = model.m
    if kind not in ("ball", "free"):
        if stiffness:
            m.spring(_name(model, name, "spring"), m[name], stiffness=stiffness, rest=rest)
        if damping:
            m.friction(_name(model, name, "friction"), m[name], viscous=damping)
        return
    of = np.array([kind == "free"] * 3 + [True] * 3, dtype=float)
    if stiffness:
        m.bushing(_name(model, name, "spring"), *frames, stiffness * of)
    if damping:
        m.damper(_name(model, name, "damper"), *frames, damping * of)


def add_hinge(model: _Model, joint: ET.Element, name: str, scale: float) -> None:
    """Limits, friction, springs and armature of a hinge or slide; scale: from the unit of angles to rad."""
    m, report = model.m, model.report
    bounds = _range(model, joint, scale)
    if bounds is not None and model.flags.get("limit") == "disable":
        report.count("limits, which a flag disables", name)
    elif bounds is not None:
        m.limit(_name(model, name, "limit"), m[name], lower=bounds[0], upper=bounds[1])
    rest, coulomb = robots.number(joint, "springref", 0.0) * scale, robots.number(joint, "frictionloss", 0.0)
    viscous, stiffness = 0.0, 0.0
    frames = (m[name].a, m[name].b)
    if not _is_automatic(model, joint, name, rest, frames):
        viscous, stiffness = _number(model, joint, "damping", name), _number(model, joint, "stiffness", name)
    if coulomb:
        m.friction(_name(model, name, "friction"), m[name], viscous=viscous, coulomb=coulomb)
        report.count("sticking by frictionloss: Coulomb friction creeps at rest", name)
        viscous = 0.0
    add_springs(model, kind_of(joint), name, stiffness, viscous, frames, rest)
    armature = robots.number(joint, "armature", 0.0)
    if armature:
        m[name].inertia = armature


def _range(model: _Model, joint: ET.Element, scale: float) -> tuple[float, float] | None:
    """The limits of a joint that has some."""
    limited = joint.get("limited", "auto")
    if joint.get("range") is None or limited == "false" or (limited == "auto" and not model.autolimits):
        return None
    lower, upper = (robots.numbers(joint, "range", 2) * scale).tolist()
    if lower >= upper:
        if limited == "true":
            given = joint.get("range")
            raise ModelError(f"{robots.describe(joint)} has range={given!r}; the first number must be the smaller")
        return None
    return lower, upper


def _number(model: _Model, joint: ET.Element, key: str, name: str) -> float:
    """The stiffness or damping of a joint; coefficients of higher powers are reported."""
    words = joint.get(key, "0").split()
    if len(words) > 1 and any(robots.numbers(joint, key, len(words))[1:]):
        model.report.count(f"{key} that is not linear", name)
    return robots.number(ET.Element(joint.tag, {key: words[0] if words else ""}), key)


def _name(model: _Model, name: str, what: str) -> str:
    """A free name for an item that belongs to a joint."""
    return robots.free_name(model.m, f"{name}_{what}", what, model.report)
