"""Forward kinematics: poses of all bodies from coordinates of joints, along a spanning tree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from cardan.errors import ModelError
from cardan.joints.coordinates import Coordinate
from cardan.joints.ownership import check_own
from cardan.joints.registry import Joint
from cardan.math import euler
from cardan.system import check
from cardan.system.drawing import Drawing
from cardan.system.formulas import plain_at
from cardan.system.orientation import orientation
from cardan.system.parts import Body, Frame
from cardan.system.relations import Edge
from cardan.system.state import FloatArray, Pose, State
from cardan.system.tables import ABOUT_Z, ANYHOW, CROSSED, STILL

Place = tuple[FloatArray, FloatArray]  # position [m] and matrix of a frame

# Coordinates of a motion by name: translations in the frame a, then the rotation.
_TRANSLATIONS: Final = ((), ("displacement",), ("x", "y"), ("x", "y", "z"))
_ROTATIONS: Final = {STILL: (), ABOUT_Z: ("angle",), CROSSED: ("angle_a", "angle_b"), ANYHOW: ("orientation",)}
_AXIS: Final = {"displacement": 2, "x": 0, "y": 1, "z": 2}
_AGREES: Final = 1e-9  # [m, rad] a value given for a joint that closes a loop of given values


def words(edge: Edge) -> tuple[str, ...]:
    """Names of the coordinates of a joint that declares a motion."""
    return (*_TRANSLATIONS[edge.motion.translations], *_ROTATIONS[edge.motion.rotation])


def state_at(drawing: Drawing, given: Mapping[Any, Any]) -> State:
    """The state in which coordinates have given values; see :meth:`cardan.Mechanism.state_at`."""
    if not isinstance(given, Mapping):
        raise ModelError(f"state_at was given {given!r}; it must be {{joint: value}}")
    values, poses = _sorted(drawing, given)
    c = drawing.contents
    joints, ground = c.joints, c.ground
    fixed = {f"{body}.fixed" for body in c.bodies if c.is_fixed(body)}  # these bodies do not move
    movable = [joint for joint in joints.values() if joint.edge and joint.edge.user_motion is None]
    others = [joint for joint in movable if joint.name not in values.keys() | fixed]
    usable = [*(joints[name] for name in (*sorted(fixed), *values)), *others]
    group = {body: body for body in (ground, *c.bodies.values())}
    for body in poses:
        group[body] = ground
    limbs: dict[Body, list[Joint]] = {}
    closing = []
    for joint in usable:
        a, b = _root(group, joint.a.body), _root(group, joint.b.body)
        if a is b:
            closing.append(joint)
            continue
        is_at_ground = a is _root(group, ground)
        group[b if is_at_ground else a] = a if is_at_ground else b
        for end in (joint.a, joint.b):
            limbs.setdefault(end.body, []).append(joint)
    places = _placed(drawing, values, poses, limbs)
    rows = {body: Pose(p, np.asarray(euler.from_matrix(R))) for body, (p, R) in places.items() if not body.is_ground}
    drawn = drawing.system.state()
    moved = drawn.moved({body: pose for body, pose in rows.items() if body not in poses})
    moved = moved.moved({body: (p, q) for body, (p, q) in poses.items()})
    state = State(
        moved.names,
        moved._index,
        moved.coordinates,
        angles=_angles(drawing, moved, values),
        time=drawn.time,
        variables=moved.variables,
    )
    for joint in closing:
        for word, value in values.get(joint.name, {}).items():
            _check_closing(joint, word, value, state)
    return state


def _sorted(
    drawing: Drawing, given: Mapping[Any, Any]
) -> tuple[dict[str, dict[str, Any]], dict[Body, tuple[Any, Any]]]:
    """The given values by joint and coordinate, and the given poses by body."""
    values: dict[str, dict[str, Any]] = {}
    poses: dict[Body, tuple[Any, Any]] = {}
    for key, value in given.items():
        item, word = _found(drawing, key)
        what = f"state_at: {key!r}"
        if isinstance(item, Body):
            try:
                position, turned = (value.position, value.quaternion) if isinstance(value, Pose) else value
            except (TypeError, ValueError):
                raise ModelError(f"{what} is {value!r}; it must be a Pose or (position, orientation)") from None
            if item.is_ground or drawing.contents.is_fixed(item.name):
                raise ModelError(
                    f"{what} is a fixed body, which stays where it is drawn; free it: m[{item.name!r}].fixed = False"
                )
            poses[item] = check.vector(position, what), orientation(turned, what)
            continue
        if item.edge is None or item.edge.user_motion is not None:
            raise ModelError(f"{what} is a {item.kind.name}, along which no body can be placed; assemble instead")
        offered = words(item.edge)
        if word is None and isinstance(value, Mapping):
            parts = dict(value)
        elif word is None and len(offered) != 1:
            listed = ", ".join(map(repr, offered)) or "none"
            raise ModelError(f"{what} has the coordinates {listed}; give {{name: value}}, or '{item.name}.name'")
        else:
            parts = {word or offered[0]: value}
        for name, one in parts.items():
            if name == "displacement" and item.edge.counted >= 0:
                raise ModelError(f"{what}: the displacement of a screw follows from its angle; give the angle")
            if name not in offered:
                raise check.unknown(name, f"coordinate of {item.kind.name} {item.name!r}", offered)
            if name in values.setdefault(item.name, {}):
                raise ModelError(f"{what}: the coordinate {name!r} of {item.name!r} is given twice; give it once")
            checked = orientation if name == "orientation" else check.number
            values[item.name][name] = checked(one, f"{what}, {name!r},")
    return values, poses


def _found(drawing: Drawing, key: Any) -> tuple[Joint | Body, str | None]:
    """The joint, and the name of its coordinate, or the body, that a key means."""
    if isinstance(key, Coordinate):
        if not key.joint:
            raise ModelError(f"state_at was given {key!r}, which is of no joint; give a coordinate of a joint")
        check_own(drawing.contents, "state_at", key)
        return drawing.contents.joints[key.joint], key.name
    if isinstance(key, Joint | Body):
        check_own(drawing.contents, "state_at", key)
        key = key.name
    if isinstance(key, str):
        item = drawing.contents.joints.get(key) or drawing.contents.bodies.get(key)
        if item is not None:
            return item, None
        of, _, word = key.rpartition(".")
        if of in drawing.contents.joints:
            return drawing.contents.joints[of], word
    raise check.unknown(key, "joint or movable body", [*drawing.contents.joints, *drawing.contents.bodies])


def _root(group: dict[Body, Body], body: Body) -> Body:
    while group[body] is not body:
        body = group[body]
    return body


def _placed(
    drawing: Drawing, values: Mapping[str, Mapping[str, Any]], poses: Mapping[Body, Any], limbs: Mapping[Body, Any]
) -> dict[Body, Place]:
    """Poses of all bodies, outwards from the ground and from given poses; the first body of a loose piece as drawn."""
    places: dict[Body, Place] = {drawing.contents.ground: (np.zeros(3), np.eye(3))}
    for body, (p, q) in poses.items():
        places[body] = np.array(p), np.asarray(euler.matrix(np.array(q)))
    stack = list(places)
    for body in (*drawing.contents.bodies.values(), drawing.contents.ground):
        while stack:
            at = stack.pop()
            for joint in limbs.get(at, ()):
                forward = joint.a.body is at
                other = joint.b.body if forward else joint.a.body
                if other not in places:
                    places[other] = _next(drawing, joint, values.get(joint.name, {}), places[at], forward)
                    stack.append(other)
        if body not in places:
            places[body] = _authored(drawing, body)
            stack.append(body)
    return places


def _next(drawing: Drawing, joint: Joint, given: Mapping[str, Any], place: Place, forward: bool) -> Place:
    """Pose of the body beyond a joint."""
    assert joint.edge is not None
    nodes = _nodes(drawing)
    (o_A, F_A), (o_B, F_B) = _local(joint.a, nodes), _local(joint.b, nodes)
    (p_a, R_a), (p_b, R_b) = _authored(drawing, joint.a.body), _authored(drawing, joint.b.body)
    d_drawn = (R_a @ F_A).T @ (p_b + R_b @ o_B - p_a - R_a @ o_A)
    edge = joint.edge if nodes is None else joint.edge.drawn(nodes)
    d, R = relative(edge, given, d_drawn, (R_a @ F_A).T @ R_b @ F_B)
    if not forward:
        (o_A, F_A), (o_B, F_B) = (o_B, F_B), (o_A, F_A)
        d, R = -R.T @ d, R.T
    p, R_W = place
    R_next = R_W @ F_A @ R @ F_B.T
    return p + R_W @ (o_A + F_A @ d) - R_next @ o_B, R_next


def _nodes(drawing: Drawing) -> Sequence[float] | None:
    """Values of the formulas, if there are parameters."""
    return None if drawing.values is None else drawing.values.nodes


def _authored(drawing: Drawing, body: Body) -> Place:
    """The authored pose of a body: position [m] and matrix."""
    if body.is_ground:
        return np.zeros(3), np.eye(3)
    system = drawing.system
    r_p = system.authored[system.index[body.name]]
    return r_p[:3].copy(), np.asarray(euler.matrix(r_p[3:].copy()))


def _local(end: Any, nodes: Sequence[float] | None) -> Place:
    if isinstance(end, Frame):
        axes = [plain_at(axis, nodes) for axis in (end.x, end.y, end.z)]
        return np.array(plain_at(end.origin, nodes)), np.column_stack(axes)
    return np.array(plain_at(end.position, nodes)), np.eye(3)


def relative(edge: Edge, given: Mapping[str, Any], d: FloatArray, R: FloatArray) -> Place:
    """Pose of frame b in frame a from coordinates; those that are not given are read from a pose d [m], R."""
    rotation = edge.motion.rotation
    out = np.zeros(3)
    for name in _TRANSLATIONS[edge.motion.translations]:
        out[_AXIS[name]] = given.get(name, _read(name, d, R))
    if rotation == ANYHOW:
        return out, np.asarray(euler.matrix(np.array(given["orientation"]))) if "orientation" in given else R
    angles = [given[name] if name in given else _read(name, d, R) for name in _ROTATIONS[rotation]]
    if rotation == ABOUT_Z:
        if edge.counted >= 0:
            out[2] = edge.pitch * angles[0] + edge.offset
        return out, _about_z(angles[0])
    if rotation == CROSSED:
        crossed = np.array([[0.0, 0.0, 1.0], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0]])  # z_b along x_a, x_b along z_a
        return out, _about_z(angles[0]) @ crossed @ _about_z(-angles[1])
    return out, np.eye(3)


def _read(word: str, d: FloatArray, R: FloatArray) -> float:
    """A coordinate of a pose d [m], R of frame b in frame a: [m], or [rad] in (−π, π]."""
    if word in _AXIS:
        return float(d[_AXIS[word]])
    s, c = {"angle": (R[1, 0], R[0, 0]), "angle_a": (R[1, 2], R[0, 2]), "angle_b": (R[2, 1], R[2, 0])}[word]
    return math.atan2(s, c)


def _about_z(angle: float) -> FloatArray:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _angles(drawing: Drawing, moved: State, values: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Counted angles in the new poses: the whole turns of a given value are kept."""
    found = {}
    given = {
        counted.key: values[joint.name][word]
        for joint in drawing.contents.joints.values()
        for word, counted in joint.angles
        if word in values.get(joint.name, {})
    }
    nodes = _nodes(drawing)
    for counted in drawing.counted_angles():
        x, y = (moved[counted.a].vector(plain_at(v, nodes)) for v in (counted.x, counted.y))
        w = moved[counted.b].vector(plain_at(counted.v, nodes))
        angle = math.atan2(y @ w, x @ w)
        near = given.get(counted.key, angle)
        found[counted.key] = angle + 2.0 * math.pi * round((near - angle) / (2.0 * math.pi))
    return found


def _check_closing(joint: Joint, word: str, value: Any, state: State) -> None:
    """ModelError if a joint that closes a loop of given joints does not have its given value there."""
    there = joint.relative(state)
    if word == "orientation":
        miss = float(np.abs(euler.matrix(np.array(value)) - there.R_AB).max())
    else:
        miss = _read(word, there.d_A, there.R_AB) - value
        miss = abs(miss if word in _AXIS else math.remainder(miss, 2.0 * math.pi))
    if miss > _AGREES:
        raise ModelError(
            f"state_at: {joint.name!r} closes a loop, and the fixed bodies and other values give {word!r} another "
            f"value than {value!r}; omit one of them"
        )
