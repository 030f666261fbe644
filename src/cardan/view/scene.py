"""A scene: everything that a viewer needs to draw a mechanism, and its form as bytes.

``Scene.pack()`` returns: the length of the header (uint32, little-endian), the header (JSON, UTF-8, padded with spaces
to a multiple of four bytes), then one blob of numbers, little-endian.  The header:

    {"version": 1, "name": …, "extent": L [m], "center": [x, y, z], "up": [x, y, z],
     "meshes": [{"vertices": [offset, n], "normals": [offset, n], "faces": [offset, m], "edges": [offset, k]}, …],
     "parts": [{"name": …, "meshes": [[index of mesh, [r, g, b, a]], …]}, …],
     "poses": [offset, parts],
     "struts": [{"name": …, "bodies": [part, part], "points": [[x, y, z], [x, y, z]], "mesh": index, "color": …}, …],
     "joints": [{"name": …, "kind": …, "bodies": [names], "frame_a": {"origin": …, "quaternion": …} or null,
                 "frame_b": …, "coordinates": {name: unit}}, …]}

An offset counts bytes from the start of the blob.  vertices [m] and normals: float32 (n, 3), in body axes; faces:
uint32 (m, 3); edges: uint32 (k, 2); poses: float32 (parts, 7), position [m] and quaternion (w, x, y, z) of each part in
world.  Equal meshes are stored once.  The first part is the ground.  A strut is drawn between two points of its parts
(indices into the parts; points in their axes): its mesh is along z from 0 to 1 and is scaled along z to the distance;
its other axes are arbitrary.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cardan.errors import ModelError
from cardan.math import euler
from cardan.system.check import Quadruple, Triple
from cardan.system.parts import Frame, Point, quaternion_from_columns
from cardan.system.state import State
from cardan.view.body_shapes import generate
from cardan.view.places import numbers_in
from cardan.view.shading import Mesh, merged

if TYPE_CHECKING:
    from cardan.mechanism import Mechanism

VERSION = 1
WIDTHS = {"vertices": 3, "normals": 3, "faces": 3, "edges": 2}


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A body, or the ground (the first part), with its meshes in body axes."""

    name: str
    meshes: tuple[Mesh, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Strut:
    """A mesh drawn from a point of one part to a point of another: along z from 0 to 1, scaled to their distance."""

    name: str
    bodies: tuple[str, str]
    points: tuple[Triple, Triple]
    mesh: Mesh


@dataclass(frozen=True, slots=True)
class Place:
    """The frame of a joint on a body: origin [m] and quaternion (w, x, y, z) in body axes."""

    origin: Triple
    quaternion: Quadruple


@dataclass(frozen=True, slots=True)
class JointMark:
    """A joint, for lists and labels.  ``frame_a``, ``frame_b``: None where it is not between two frames or points.
    ``coordinates``: unit ("m" or "rad") by name."""

    name: str
    kind: str
    bodies: tuple[str, ...]
    frame_a: Place | None
    frame_b: Place | None
    coordinates: dict[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """What a mechanism looks like.

    ``parts``: the ground, then the bodies in their order.  ``poses``, shape (parts, 7): in the state it was made for.
    ``extent`` [m]: length of the diagonal of the box around everything drawn in that state, ``center`` [m] its middle.
    ``up``: unit vector against gravity, or z.  ``normal``: in world, of a mechanism whose hinges are all parallel.
    """

    name: str
    parts: tuple[Part, ...]
    struts: tuple[Strut, ...]
    joints: tuple[JointMark, ...]
    poses: NDArray[np.float64]
    extent: float
    center: Triple
    up: Triple
    normal: NDArray[np.float64] | None = None

    def poses_of(self, state: State) -> NDArray[np.float64]:
        """Position [m] and quaternion of every part in a state, shape (parts, 7)."""
        if state.names != tuple(part.name for part in self.parts[1:]):
            raise ModelError(f"{state!r} is not of the mechanism {self.name!r}; its bodies are {state.names[:8]}")
        return np.vstack([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], state.coordinates])

    def placed(self, poses: NDArray[np.float64]) -> list[tuple[Mesh, NDArray[np.float64], NDArray[np.float64]]]:
        """Every mesh with its position [m] and matrix (3, 3) in world: p → position + matrix p; struts included."""
        found = []
        matrices = euler.matrix(poses[:, 3:])
        for part, pose, matrix in zip(self.parts, poses, matrices, strict=True):
            found += [(mesh, pose[:3], matrix) for mesh in part.meshes]
        index = {part.name: k for k, part in enumerate(self.parts)}
        for strut in self.struts:
            a, b = (
                poses[index[body], :3] + matrices[index[body]] @ np.array(point)
                for body, point in zip(strut.bodies, strut.points, strict=True)
            )
            found.append((strut.mesh, a, strut_matrix(b - a)))
        return found

    def pack(self) -> bytes:
        """The scene as bytes; see the module."""
        blob = bytearray()
        meshes: list[dict[str, list[int]]] = []
        known: dict[bytes, int] = {}

        def put(array: Any, kind: str) -> list[int]:
            offset = len(blob)
            blob.extend(np.ascontiguousarray(array, dtype=kind).tobytes())
            return [offset, len(array)]

        def index_of(mesh: Mesh) -> int:
            arrays = (mesh.vertices, mesh.normals, mesh.faces, mesh.edges)
            key = b"".join(array.tobytes() for array in arrays)
            if key not in known:
                known[key] = len(meshes)
                kinds = ("<f4", "<f4", "<u4", "<u4")
                meshes.append({w: put(x, k) for w, x, k in zip(WIDTHS, arrays, kinds, strict=True)})
            return known[key]

        index = {part.name: k for k, part in enumerate(self.parts)}
        header = {
            "version": VERSION,
            "name": self.name,
            "extent": self.extent,
            "center": self.center,
            "up": self.up,
            "parts": [
                {"name": part.name, "meshes": [[index_of(mesh), mesh.color] for mesh in part.meshes]}
                for part in self.parts
            ],
            "poses": put(self.poses, "<f4"),
            "struts": [
                {
                    "name": s.name,
                    "bodies": [index[body] for body in s.bodies],
                    "points": s.points,
                    "mesh": index_of(s.mesh),
                    "color": s.mesh.color,
                }
                for s in self.struts
            ],
            "joints": [
                {
                    "name": j.name,
                    "kind": j.kind,
                    "bodies": j.bodies,
                    "frame_a": j.frame_a and {"origin": j.frame_a.origin, "quaternion": j.frame_a.quaternion},
                    "frame_b": j.frame_b and {"origin": j.frame_b.origin, "quaternion": j.frame_b.quaternion},
                    "coordinates": j.coordinates,
                }
                for j in self.joints
            ],
            "meshes": meshes,
        }
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 4)
        return struct.pack("<I", len(text)) + text + bytes(blob)


def unpack(data: bytes) -> tuple[dict[str, Any], memoryview]:
    """The header and the blob of a packed scene."""
    (length,) = struct.unpack_from("<I", data)
    return json.loads(data[4 : 4 + length]), memoryview(data)[4 + length :]


def strut_matrix(along: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns x, y of unit length, and z = along [m]: maps a mesh along z from 0 to 1 onto a strut."""
    length = float(np.linalg.norm(along))
    if length == 0.0:
        return np.diag([1.0, 1.0, 0.0])
    z = along / length
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), along])


def scene(mechanism: Mechanism, state: State | None = None) -> Scene:
    """The scene of a mechanism in a state; in its authored poses where none is given.

    Attached shapes are drawn as they are.  Of bodies without any, links, pins, slides and gears are generated from the
    joints; their sizes follow from the distances between joints.
    """
    if state is None:
        state = mechanism.state
    elif not isinstance(state, State) or state.names != tuple(mechanism.bodies):
        raise ModelError(
            f"scene was given {state!r}, which is not of mechanism {mechanism.name!r}; pass one of its own"
        )
    looks = generate(mechanism, state)
    parts = []
    for name in ("ground", *mechanism.bodies):
        parts.append(Part(name, tuple(merged(looks.meshes[name]))))
    poses = np.vstack([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], state.coordinates])
    struts = tuple(Strut(*one) for one in looks.struts)
    marks = tuple(_mark(joint, state) for joint in mechanism.joints.values())
    gravity = np.array(mechanism._model.drawing.gravity)
    size = float(np.linalg.norm(gravity))
    up = -gravity / size if size else np.array([0.0, 0.0, 1.0])
    made = Scene(mechanism.name, tuple(parts), struts, marks, poses, 1.0, (0.0, 0.0, 0.0), _triple(up))
    corners = [
        origin + np.array([mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)])[list(k), range(3)] @ matrix.T
        for mesh, origin, matrix in made.placed(poses)
        for k in np.ndindex(2, 2, 2)
    ]
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    extent = float(np.linalg.norm(high - low))
    middle = _triple(0.5 * (low + high))
    return Scene(mechanism.name, tuple(parts), struts, marks, poses, extent, middle, _triple(up), looks.plan.normal)


def _triple(v: NDArray[np.float64]) -> Triple:
    x, y, z = (float(c) + 0.0 for c in v)
    return x, y, z


def _mark(joint: Any, state: State) -> JointMark:
    """A joint as plain values."""
    places: list[Place | None] = [None, None]

    def axes(v: Any) -> Triple:
        return _triple(numbers_in(v, state))

    if len(joint.ends) == 2 and all(isinstance(end, Frame | Point) for end in joint.ends):
        for k, end in enumerate(joint.ends):
            places[k] = (
                Place(
                    _triple(numbers_in(end.origin, state)),
                    quaternion_from_columns(*(axes(v) for v in (end.x, end.y, end.z))),
                )
                if isinstance(end, Frame)
                else Place(_triple(numbers_in(end.position, state)), (1.0, 0.0, 0.0, 0.0))
            )
    units = {word: joint.of(word).unit for word in joint.kind.coordinates}
    return JointMark(
        joint.name, joint.kind.name, tuple(body.name for body in joint.bodies), places[0], places[1], units
    )
