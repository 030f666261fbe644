"""Joints proposed from the faces of an assembled file.

Faces of two parts that fit each other constrain their relative velocity (v at the world's origin, ω): a cylinder in a
bore, planes that touch, a cone in its seat, a ball in a socket.  What remains free, the null space of all these rows,
names the joint:

    nothing                     fixed
    one rotation                revolute        one translation             prismatic
    both along one axis         cylindrical     three about one point       spherical
    in a plane                  planar

Helical faces with one axis, pitch and hand are a screw in its nut.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.cad.parts import Assembly, Part, without_noise
from cardan.cad.picks import Face, FloatArray
from cardan.cad.threads import ALIKE, Thread, are_alike
from cardan.errors import ModelError
from cardan.joints import REGISTRY as KINDS
from cardan.math import euler
from cardan.system import check

if TYPE_CHECKING:
    from cardan.joints import Joint
    from cardan.mechanism import Mechanism

FIT = 1e-5  # of the size of the assembly: distances of faces that fit; and radians
SKEW = 1e-5  # of the rate matrix: with a larger symmetric part it is not a rotation about a point
NAMES = {
    "plane": "planes that touch",
    "cylinder": "a cylinder in a bore of equal radius",
    "cone": "a cone in its seat",
    "sphere": "a ball in its socket",
    "drawn thread": "a cylinder in a smaller bore: a thread that is drawn without its helix (with its pitch it is a "
    "screw joint), or a press fit",
}
CORE = 0.1  # of the pitch: a cylinder whose axis is nearer to that of a thread is its core
SMALLER = 0.7  # least radius of a tapped bore in that of its screw; 0.73 for M1
RANK = 1e-6  # singular values below this, relative to the largest, are zero


@dataclass(eq=False)
class Proposal:
    """A joint between two parts, with the reason.

    ``kind``: a method of :class:`cardan.Mechanism`, with its ``options``.  ``frames``: of the joint on parts a and b,
    in their axes: rows origin [m], z and x.  ``faces``: of parts a and b that fit, by number.
    ``misfit``: why the faces do not fit; ``mark``: this and what the diagnosis says of it; both "" where nothing is
    wrong.  ``accepted``: whether it is to be a joint.
    """

    name: str
    kind: str
    a: str
    b: str
    frames: tuple[FloatArray, FloatArray] = field(repr=False)
    reason: str
    faces: list[tuple[int, int]] = field(default_factory=list, repr=False)
    options: dict[str, float] = field(default_factory=dict)
    mark: str = ""
    accepted: bool = True
    misfit: str = ""

    def add_mark(self, text: str) -> None:
        """Say more of it."""
        self.mark = "; ".join(filter(None, (self.mark, text)))

    def add_to(self, mechanism: Mechanism, name: str | None = None, density: Any = None, **more: Any) -> Joint:
        """Add the joint; the mechanism has bodies with the names of the parts."""
        if density is not None or more:
            raise ModelError(f"joint {self.name!r} was given options of a body; it takes a name only")
        make: Any = getattr(mechanism, self.kind)
        ends = []
        for part, (origin, z, x) in zip((self.a, self.b), self.frames, strict=True):
            body = mechanism[part]
            at = origin.tolist()
            is_point = KINDS[self.kind].takes[0] == "point"
            ends.append(body.point(at) if is_point else body.frame(at, z=z.tolist(), x=x.tolist()))
        return make(name or self.name, *ends, **self.options)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        words = ("name", "kind", "a", "b", "reason", "mark", "accepted", "faces", "options")
        return {**{word: getattr(self, word) for word in words}, "frames": [one.tolist() for one in self.frames]}


def frames_of(a: Part, b: Part, origin: FloatArray, axis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A frame in world on both parts, as they are placed in the file: rows origin [m], z and x in their axes."""
    x = np.linalg.svd(axis[None, :])[2][1]
    found = []
    for part in (a, b):
        matrix = euler.matrix(part.quaternion)
        own = [(origin - part.position) @ matrix, axis @ matrix, x @ matrix]
        found.append(
            np.array([without_noise(one, size) for one, size in zip(own, (part.extent, 1.0, 1.0), strict=True)])
        )
    return found[0], found[1]


@dataclass
class _Placed:
    """A face in world axes."""

    face: Face
    origin: FloatArray
    z: FloatArray
    low: FloatArray
    high: FloatArray
    thread: Thread | None = None


def propose_joints(assembly: Assembly, *, fit: float = FIT) -> list[Proposal]:
    """The joints that the faces of the parts suggest, as they are placed in the file.

    fit: largest misfit of faces that touch, relative to the size of the assembly.
    """
    if not isinstance(assembly, Assembly):
        raise ModelError(f"propose_joints was given {assembly!r:.80}; it must be an assembly, from cd.load_step(path)")
    fit = check.positive(fit, "fit")
    parts = assembly.parts
    if not parts:
        raise ModelError("the assembly has no parts")
    placed = [_placed(part) for part in parts]
    every = [one for faces in placed for one in faces]
    if not every:
        return []
    low, high = np.min([one.low for one in every], axis=0), np.max([one.high for one in every], axis=0)
    size = float(np.linalg.norm(high - low))
    room = fit * size
    found = []
    for i, j in combinations(range(len(parts)), 2):
        if not placed[i] or not placed[j] or not _boxes_meet(placed[i], placed[j], room):
            continue
        contacts = [contact for f in placed[i] for g in placed[j] if (contact := _contact(f, g, room, fit)) is not None]
        threads = [contact for contact in contacts if contact[0] == "thread"]
        if threads:
            found.append(_screw(parts[i], parts[j], threads, contacts))
        elif contacts:
            proposal = _joint(parts[i], parts[j], contacts, 0.5 * (low + high), size)
            if proposal is not None:
                found.append(proposal)
    return found


def _placed(part: Part) -> list[_Placed]:
    matrix = euler.matrix(part.quaternion)
    found = []
    for face in part.faces:
        corners = np.stack(np.meshgrid(*face.box.T), axis=-1).reshape(8, 3)
        world = part.position + corners @ matrix.T
        origin = face.center if face.origin is None else face.middle
        z = np.zeros(3) if face.z is None else face.z
        at, box = part.position + matrix @ origin, (world.min(axis=0), world.max(axis=0))
        own = face.thread
        if own is not None:
            own = Thread(part.position + matrix @ own.point, matrix @ own.axis, own.pitch)
        found.append(_Placed(face, at, matrix @ z, *box, own))
    return found


def _boxes_meet(a: list[_Placed], b: list[_Placed], room: float) -> bool:
    low = [np.min([one.low for one in side], axis=0) for side in (a, b)]
    high = [np.max([one.high for one in side], axis=0) for side in (a, b)]
    return bool(np.all(low[0] <= high[1] + room) and np.all(low[1] <= high[0] + room))


def _contact(a: _Placed, b: _Placed, room: float, fit: float) -> tuple[str, _Placed, _Placed] | None:
    """The kind of a pair of faces that fit, or None."""
    kind = a.face.kind
    if kind != b.face.kind or np.any(a.low > b.high + room) or np.any(b.low > a.high + room):
        return None
    if a.thread is not None and b.thread is not None:
        return ("thread", a, b) if are_alike(a.thread, b.thread) and _radii_meet(a, b) else None
    between = b.origin - a.origin
    if kind == "plane":
        is_opposite = float(a.z @ b.z) < 0.0 and float(np.linalg.norm(np.cross(a.z, b.z))) <= fit
        return (
            ("plane", a, b) if is_opposite and abs(float(between @ a.z)) <= room and _areas_meet(a, b, room) else None
        )
    if kind not in ("cylinder", "cone", "sphere") or a.face.is_hole == b.face.is_hole:
        return None
    if kind == "cone":
        return ("cone", a, b) if _cones_meet(a, b, room, fit) else None
    pin, bore = (b, a) if a.face.is_hole else (a, b)
    is_equal = abs(a.face.radius - b.face.radius) <= room
    is_drawn = kind == "cylinder" and SMALLER * pin.face.radius <= bore.face.radius < pin.face.radius
    if not is_equal and not is_drawn:
        return None
    if kind == "sphere":
        return ("sphere", a, b) if float(np.linalg.norm(between)) <= room else None
    is_parallel = float(np.linalg.norm(np.cross(a.z, b.z))) <= fit
    apart = float(np.linalg.norm(between - (between @ a.z) * a.z))
    reach = [_along(one, a.z) for one in (a, b)]
    overlap = min(reach[0][1], reach[1][1]) - max(reach[0][0], reach[1][0])
    is_inside = is_parallel and apart <= room and overlap > room
    return ("cylinder" if is_equal else "drawn thread", a, b) if is_inside else None


def _cones_meet(a: _Placed, b: _Placed, room: float, fit: float) -> bool:
    """Whether two cones have one apex, axis and angle, and overlap along the axis."""
    (apex_a, way_a, low_a, high_a), (apex_b, way_b, low_b, high_b) = _cone(a), _cone(b)
    is_equal = abs(abs(a.face.numbers[1]) - abs(b.face.numbers[1])) <= fit and np.linalg.norm(way_a - way_b) <= fit
    overlap = min(high_a, high_b) - max(low_a, low_b)
    return bool(is_equal and np.linalg.norm(apex_b - apex_a) <= room and overlap > room)


def _cone(one: _Placed) -> tuple[FloatArray, FloatArray, float, float]:
    """Apex [m] in world, the direction in which a cone opens, and where it begins and ends along it [m]."""
    face, (radius, angle) = one.face, one.face.numbers
    assert face.origin is not None and face.z is not None
    apex = -radius / math.tan(angle)  # along the axis of the face
    sign = math.copysign(1.0, angle)
    low, high = sorted(sign * (v - apex) for v in face._limits[2:])
    shift = float((face.middle - face.origin) @ face.z)
    return one.origin + (apex - shift) * one.z, sign * one.z, low, high


def _radii_meet(a: _Placed, b: _Placed) -> bool:
    """Whether two threads with one axis are at the same distances from it."""
    assert a.thread is not None
    reach = []
    for one in (a, b):
        p = _world(one).reshape(-1, 3) - a.thread.point
        far = np.linalg.norm(p - np.outer(p @ a.thread.axis, a.thread.axis), axis=1)
        reach.append((far.min(), far.max()))
    return bool(min(reach[0][1], reach[1][1]) > max(reach[0][0], reach[1][0]))


def _screw(a: Part, b: Part, threads: list[Any], contacts: list[Any]) -> Proposal:
    """A screw joint; its axis is that of a cylinder of the screw, if one is there: helices are approximated in CAD."""
    pitch = float(np.mean([one.thread.pitch for _, *both in threads for one in both]))
    first = threads[0][1].thread
    origin, axis = first.point, first.axis
    for kind, f, _ in contacts:
        if kind in ("cylinder", "drawn thread"):
            between = f.origin - origin
            far = float(np.linalg.norm(np.cross(between, axis)))
            if np.linalg.norm(np.cross(f.z, axis)) <= ALIKE and far <= CORE * abs(pitch):
                origin, axis = f.origin, f.z
                break
    hand = "right-handed" if pitch > 0.0 else "left-handed"
    reason = f"{len(threads)} × helical faces with one axis, {hand}, pitch {1e3 * abs(pitch):.4g} mm"
    if any(kind == "plane" for kind, _, _ in contacts):
        reason += "; planes touch too: in this pose the screw is tight"
    faces = [(f.face.number, g.face.number) for _, f, g in threads]
    frames = frames_of(a, b, origin, axis)
    return Proposal(f"{a.name} - {b.name}", "screw", a.name, b.name, frames, reason, faces, {"pitch": pitch})


def _along(one: _Placed, axis: FloatArray) -> tuple[float, float]:
    """First and last coordinate of a cylinder along an axis."""
    low, high = one.face._limits[2:]
    at = one.face.origin
    assert at is not None and one.face.z is not None
    shift = float((one.face.middle - at) @ one.face.z)
    sign = 1.0 if float(one.z @ axis) > 0.0 else -1.0
    ends = [float(one.origin @ axis) + sign * (value - shift) for value in (low, high)]
    return min(ends), max(ends)


def _areas_meet(a: _Placed, b: _Placed, room: float) -> bool:
    """Whether two faces in one plane overlap by more than ``room``: by separating lines of their triangles."""
    across = np.linalg.svd(a.z[None, :])[2][1:]
    p, q = (_world(one) @ across.T for one in (a, b))  # shape (triangles, 3, 2)
    separate = np.zeros((len(p), len(q)), dtype=bool)
    for side, is_first in ((p, True), (q, False)):
        edges = np.roll(side, -1, axis=1) - side
        normals = np.stack([-edges[..., 1], edges[..., 0]], axis=-1)
        normals /= np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-300)
        for k in range(3):
            n = normals[:, k]
            mine = np.einsum("tcx,tx->tc", side, n)
            others = np.einsum("scx,tx->tsc", q if is_first else p, n)
            gap = np.maximum(
                others.min(axis=2) - mine.max(axis=1)[:, None], mine.min(axis=1)[:, None] - others.max(axis=2)
            )
            separate |= (gap > -room) if is_first else (gap > -room).T
    return not bool(separate.all())


def _world(one: _Placed) -> FloatArray:
    """Triangles of a face in world, shape (triangles, 3, 3)."""
    part = one.face.part
    return part.position + one.face.triangles @ euler.matrix(part.quaternion).T


def _joint(a: Part, b: Part, contacts: list[Any], middle: FloatArray, size: float) -> Proposal | None:
    """The joint that leaves what all contacts leave free; None where that is no joint."""
    rows = np.vstack([_rows(kind, f, middle, size) for kind, f, _ in contacts])
    values, vectors = np.linalg.svd(rows)[1:]
    rank = int(np.count_nonzero(values > RANK * values[0]))
    free = vectors[rank:]
    counts = [(kind, sum(1 for one in contacts if one[0] == kind)) for kind in NAMES]
    reason = ", ".join(f"{count} × {NAMES[kind]}" for kind, count in counts if count)
    faces = [(f.face.number, g.face.number) for _, f, g in contacts]
    found = _classified(free, contacts)
    if found is None:
        return None
    kind, origin, axis = found
    frames = frames_of(a, b, middle + size * origin, axis)
    return Proposal(f"{a.name} - {b.name}", kind, a.name, b.name, frames, reason, faces)


def _rows(kind: str, f: _Placed, middle: FloatArray, size: float) -> FloatArray:
    """Rows on (v, ω) at ``middle``, with lengths in ``size``, that a contact makes zero: v + ω × p along some axes."""
    p = (f.origin - middle) / size
    cross = np.array([[0.0, p[2], -p[1]], [-p[2], 0.0, p[0]], [p[1], -p[0], 0.0]])  # ω × p = cross @ ω
    point = np.hstack([np.eye(3), cross])
    turn = np.hstack([np.zeros((3, 3)), np.eye(3)])
    if kind == "sphere":
        return point
    across = np.linalg.svd(f.z[None, :])[2][1:]
    if kind == "plane":
        return np.vstack([f.z @ point, across @ turn])
    if kind == "cone":
        return np.vstack([point, across @ turn])
    return np.vstack([across @ point, across @ turn])


def _classified(free: FloatArray, contacts: list[Any]) -> tuple[str, FloatArray, FloatArray] | None:
    """Kind, origin (from the middle, in the size) and axis of a joint; free: twists (v, ω), shape (freedoms, 6)."""
    count = len(free)
    turns = np.linalg.svd(free[:, 3:])[1] if count else np.zeros(0)
    rotations = int(np.count_nonzero(turns > RANK))
    z = contacts[0][1].z
    if count == 0:
        return "fixed", np.zeros(3), z
    if count == 1:
        v, w = free[0, :3], free[0, 3:]
        if not rotations:
            return "prismatic", np.zeros(3), v / np.linalg.norm(v)
        axis, speed = w / np.linalg.norm(w), float(np.linalg.norm(w))
        return ("revolute", np.cross(axis, v) / speed, axis) if abs(float(axis @ v)) <= RANK * speed else None
    if rotations == 1:
        row = np.linalg.svd(free[:, 3:])[0][:, 0] @ free
        v, w = row[:3], row[3:]
        axis, speed = w / np.linalg.norm(w), float(np.linalg.norm(w))
        moves = np.linalg.svd(free[:, 3:])[0][:, 1:].T @ free
        along = np.abs(moves[:, :3] @ axis).max()
        if count == 2:
            is_one = float(np.linalg.norm(np.cross(axis, moves[0, :3]))) <= RANK
            return ("cylindrical", np.cross(axis, v) / speed, axis) if is_one else None
        return ("planar", np.zeros(3), axis) if count == 3 and along <= RANK else None
    if count == 3 and rotations == 3:  # about one point p: v = p × ω
        v, w = free[:, :3], free[:, 3:]
        rate = np.linalg.solve(w, v)  # v = ω @ rate; rate is the skew matrix of p
        p = np.array([rate[1, 2] - rate[2, 1], rate[2, 0] - rate[0, 2], rate[0, 1] - rate[1, 0]]) / 2.0
        is_point = float(np.abs(rate + rate.T).max()) <= SKEW
        return ("spherical", p, z) if is_point else None
    return None
