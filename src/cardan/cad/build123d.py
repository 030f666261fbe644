"""Solve the joints of build123d: ``joint.connect_to(other)`` places one part; here all joints are closed together.

    RigidJoint – RigidJoint             fixed
    RevoluteJoint – RigidJoint          revolute about the axis
    LinearJoint – RigidJoint            prismatic along the axis; at position 0 the axes of the joint of the other part
                                        are parallel to those of the part
    CylindricalJoint – RigidJoint       cylindrical
    BallJoint – RigidJoint              spherical
    LinearJoint – RevoluteJoint         the hinge slides along the axis of the first, and turns about its own axis,
                                        whose components are the same in both parts

Angles and positions of joints are free, and begin where the parts are placed; ``hold`` keeps some.  Ranges become
limits.  The location of a part in a compound is relative to the compound; joints are closed in world axes.  build123d
turns a hinge with ``angle_reference`` about another axis than its own unless that is z; here the axis is the one that
was given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.cad.locations import MM, placement, transformation
from cardan.calls import explained
from cardan.errors import ModelError
from cardan.math import euler

if TYPE_CHECKING:
    from cardan.analysis.result import AssemblyResult
    from cardan.mechanism import Mechanism

TURN = 360.0  # [°]: build123d measures angles in degrees; a range of a whole turn is no limit
RANGES = {"RevoluteJoint": ("angle",), "LinearJoint": ("displacement",), "CylindricalJoint": ("angle", "displacement")}


@explained
def solve_build123d(parts: Any, **options: Any) -> AssemblyResult:
    """Close all joints of the parts together, and write their locations back if the result is ok.

    parts, ground, hold, ranges: as of :func:`from_build123d`; other options: of :meth:`cardan.Mechanism.assemble`.
    """
    own = {key: options.pop(key) for key in ("ground", "hold", "ranges") if key in options}
    bodies = _bodies(parts)
    m = _mechanism(bodies, **own)
    result = m.assemble(**options)
    if result.ok:
        for name, part in bodies.items():
            if not m[name].fixed:
                world = type(part.location)(transformation(result.state[name]))
                part.locate(_outer(part).inverse() * world)
    return result


@explained
def from_build123d(parts: Any, *, ground: Any = None, hold: Sequence[Any] = (), ranges: bool = True) -> Mechanism:
    """The mechanism of parts and of the joints by which they are connected; bodies have the labels of the parts.

    parts: a sequence of parts, or a Compound with children.  ground: the part that does not move; the first if None.
    hold: joints of build123d whose angle and position are kept as they are.  ranges: False ignores their ranges.
    """
    return _mechanism(_bodies(parts), ground, hold, ranges)


def _bodies(given: Any) -> dict[str, Any]:
    """Parts by name: all that are given, and all that are connected with them."""
    children = getattr(given, "children", None)
    if not children and not isinstance(given, Iterable):
        raise ModelError(f"the parts are {given!r:.80}; give a list of parts of build123d, or a Compound with children")
    waiting = list(_leaves(given) if children else given)
    found: list[Any] = []
    while waiting:
        part = waiting.pop(0)
        part = getattr(part, "part", part)  # a BuildPart contains its part
        if not all(hasattr(part, word) for word in ("joints", "location", "locate")):
            raise ModelError(f"{part!r:.80} is not a part of build123d; it must have joints and a location")
        if not any(part is one for one in found):
            found.append(part)
            others = [joint.connected_to for joint in part.joints.values()]
            waiting += [joint.parent for joint in others if joint is not None]
    names: dict[str, Any] = {}
    for k, part in enumerate(found):
        label = getattr(part, "label", "") or f"part {k + 1}"
        name, count = label, 2
        while name in names or name == "ground":
            name, count = f"{label} {count}", count + 1
        names[name] = part
    return names


def _outer(part: Any) -> Any:
    """The Location in world of the compound that contains a part; the location of the part is relative to it."""
    found = type(part.location)()
    compound = getattr(part, "parent", None)
    while compound is not None:
        found = compound.location * found
        compound = compound.parent
    return found


def _leaves(compound: Any) -> list[Any]:
    """Parts below a compound that have joints."""
    found = []
    for child in compound.children:
        found += [child] if getattr(child, "joints", None) else _leaves(child)
    return found


def _mechanism(bodies: dict[str, Any], ground: Any = None, hold: Sequence[Any] = (), ranges: bool = True) -> Mechanism:
    from cardan.mechanism import Mechanism

    if not bodies:
        raise ModelError("there are no parts with joints; give parts of build123d, or a Compound with children")
    m = Mechanism("build123d")
    base = next(iter(bodies.values())) if ground is None else ground
    if not any(part is base for part in bodies.values()):
        raise ModelError(f"ground is {ground!r:.80}; it must be one of the parts {list(bodies)}")
    for name, part in bodies.items():
        position, quaternion = placement(_outer(part) * part.location)
        m.body(name, position=position, orientation=quaternion, fixed=part is base)
    names = {id(part): name for name, part in bodies.items()}
    held, used = {id(joint) for joint in hold}, set()
    for name, part in bodies.items():
        for label, joint in part.joints.items():
            other = joint.connected_to
            if other is not None:
                title = f"{name}.{label} - {names[id(other.parent)]}.{other.label}"
                is_held = bool(held & {id(joint), id(other)})
                used |= {id(joint), id(other)}
                _add(m, title, (m[name], joint), (m[names[id(other.parent)]], other), is_held, ranges)
    if not used:
        raise ModelError("no joint of the parts is connected; connect them with joint.connect_to(other)")
    for joint in hold:
        if id(joint) not in used:
            raise ModelError(
                f"hold has a joint that is not connected: {joint!r:.80}; connect it with joint.connect_to(other), or "
                "leave it out"
            )
    return m


def _add(m: Mechanism, name: str, a: Any, b: Any, is_held: bool, ranges: bool) -> None:
    """One connection as a joint, with its limits or its held coordinates."""
    if type(a[1]).__name__ == "RigidJoint":
        a, b = b, a  # the joint with a motion first
    (first, moving), (second, other) = a, b
    kinds = type(moving).__name__, type(other).__name__
    if kinds == ("RevoluteJoint", "LinearJoint"):
        (first, moving), (second, other) = b, a
        kinds = kinds[::-1]
    if kinds == ("LinearJoint", "RevoluteJoint"):
        _add_sliding_hinge(m, name, (first, moving), (second, other), is_held, ranges)
        return
    if kinds[1] != "RigidJoint":
        ways = "one of the two must be a RigidJoint, or they must be a LinearJoint and a RevoluteJoint"
        raise ModelError(f"joint {name!r} connects a {kinds[0]} and a {kinds[1]}; {ways}")
    origin, z, x = _frame(other)
    if kinds[0] in ("RigidJoint", "BallJoint"):
        own, *axes = _frame(moving)
        if kinds[0] == "BallJoint" and not is_held:
            if ranges and any(high - low < TURN for low, high in moving.angular_range):
                way = "use from_build123d(…, ranges=False)"
                raise ModelError(
                    f"joint {name!r} is a ball with the ranges {moving.angular_range}; to ignore them {way}"
                )
            m.spherical(name, first.point(own), second.point(origin))
            return
        if kinds[0] == "BallJoint":  # held: the axes of the joint in the second part, as the parts are placed
            (_, a), (_, b) = first.authored(), second.authored()
            z, x = ((b.T @ a @ axis).tolist() for axis in axes)
        m.fixed(name, first.frame(own, z=axes[0], x=axes[1]), second.frame(origin, z=z, x=x))
        return
    own, axis = _axis(moving)
    if kinds[0] == "LinearJoint":
        across = np.linalg.svd(np.array(axis)[None, :])[2][1]
        # axes of the other joint; they are parallel to those of the first part
        turned = _matrix(other.relative_location)
        made = m.prismatic(
            name,
            first.frame(own, z=axis, x=across.tolist()),
            second.frame(origin, z=(turned @ axis).tolist(), x=(turned @ across).tolist()),
        )
    elif kinds[0] in ("RevoluteJoint", "CylindricalJoint"):
        make = m.revolute if kinds[0] == "RevoluteJoint" else m.cylindrical
        reference = _turned(_reference(moving), axis, _middle(moving))
        made = make(name, first.frame(own, z=axis, x=reference), second.frame(origin, z=z, x=x))
    else:
        known = "RigidJoint, RevoluteJoint, LinearJoint, CylindricalJoint and BallJoint"
        raise ModelError(f"joint {name!r} is a {kinds[0]}; only {known} can be solved")
    for of in RANGES[kinds[0]]:
        _hold_or_limit(m, name, made.of(of), moving, is_held, ranges)


def _add_sliding_hinge(m: Mechanism, name: str, a: Any, b: Any, is_held: bool, ranges: bool) -> None:
    """A hinge of b whose point is on a line of a."""
    import cardan as cd

    (first, line), (second, hinge) = a, b
    origin, along = _axis(line)
    point, axis = _axis(hinge)
    x = _matrix(hinge.relative_axis.location)[:, 0].tolist()
    reference = _turned(_reference(hinge), axis, _middle(hinge))
    ends = first.frame(origin, z=axis, x=reference), second.frame(point, z=axis, x=x)
    m.angle(name, *ends, 0.0)
    m.point_on_line(f"{name} slide", second.point(point), first.frame(origin, z=along))
    position = cd.coordinate(first.frame(origin, z=along), second.frame(point, z=along), "displacement")
    _hold_or_limit(m, f"{name} slide", position, line, is_held, ranges)
    _hold_or_limit(m, name, cd.coordinate(*ends, "angle"), hinge, is_held, ranges)


def _hold_or_limit(m: Mechanism, name: str, coordinate: Any, joint: Any, is_held: bool, ranges: bool) -> None:
    """A driver that keeps a coordinate as it is, or a limit of its range."""
    of = coordinate.kind
    if is_held:
        m.drive(f"{name} held {of}", coordinate, coordinate.value(m.state))
    elif ranges and of == "angle" and joint.angular_range[1] - joint.angular_range[0] < TURN:
        half = 0.5 * math.radians(joint.angular_range[1] - joint.angular_range[0])
        # x of the axis is at the middle of the range
        m.limit(f"{name} {of} range", coordinate, lower=-half, upper=half)
    elif ranges and of == "displacement" and any(math.isfinite(x) for x in joint.linear_range):
        low, high = (x * MM for x in joint.linear_range)
        m.limit(f"{name} {of} range", coordinate, lower=low, upper=high)


def _middle(joint: Any) -> float:
    """Angle [rad] at the middle of the range; 0 where every angle is allowed."""
    low, high = joint.angular_range
    return math.radians(0.5 * (low + high)) if high - low < TURN else 0.0


def _matrix(location: Any) -> Any:
    """The rotation matrix of a Location, shape (3, 3)."""
    return euler.matrix(np.array(placement(location)[1]))


def _frame(joint: Any) -> tuple[list[float], list[float], list[float]]:
    """Origin [m], z and x of a joint with a location, in the axes of its part."""
    matrix = _matrix(joint.relative_location)
    return placement(joint.relative_location)[0], matrix[:, 2].tolist(), matrix[:, 0].tolist()


def _axis(joint: Any) -> tuple[list[float], list[float]]:
    """Point [m] and direction of a joint with an axis, in the axes of its part."""
    p, d = joint.relative_axis.position, joint.relative_axis.direction
    return [p.X * MM, p.Y * MM, p.Z * MM], [d.X, d.Y, d.Z]


def _reference(joint: Any) -> Any:
    """The direction from which the angle of a joint is measured, in the axes of its part."""
    if getattr(joint, "_angle_reference_provided", True):
        r = joint.angle_reference
        return np.array([r.X, r.Y, r.Z])
    return _matrix(joint.relative_axis.location)[:, 0]


def _turned(x: Any, axis: Any, angle: float) -> list[float]:
    """A direction turned about a perpendicular axis."""
    return (math.cos(angle) * x + math.sin(angle) * np.cross(axis, x)).tolist()
