"""Triangles of binary glTF 2.0 (GLB): meshes of a scene, placed by its nodes.  [glTF2]

Buffers are in the file itself; one at another address is refused.  A mesh that many nodes place is many triangles, so
that their sum is limited before any is made.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from cardan.errors import ModelError
from cardan.shapes.shape import FloatArray, IndexArray

MOST_JSON: Final = 4_000_000  # bytes of the description: its values take up to 30 times as much
MOST_CORNERS: Final = 1_200_000  # of all triangles of a scene
MOST_NODES: Final = 10_000  # and as many meshes, or parts of them
MAGIC: Final = b"glTF"
JSON_CHUNK, BINARY_CHUNK = 0x4E4F534A, 0x004E4942
INDICES: Final = {5121: "<u1", 5123: "<u2", 5125: "<u4"}
FLOAT: Final = 5126
TRIANGLES, STRIP, FAN = 4, 5, 6


def read_glb(content: bytes) -> tuple[FloatArray, IndexArray]:
    """Vertices and faces of the scene of a file; lengths and axes are those of the file."""
    description, binary = _chunks(content)
    try:
        return _Scene(description, binary).triangles()
    except (KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        # the description has another structure than that of glTF
        raise ModelError(
            f"its description is not that of a glTF scene: {type(error).__name__}: {error!s:.100}"
        ) from None


def _chunks(content: bytes) -> tuple[dict[str, Any], bytes]:
    if len(content) < 20 or content[:4] != MAGIC:
        raise ModelError("it is no GLB: it does not begin with 'glTF'")
    version, _, size, kind = struct.unpack_from("<IIII", content, 4)
    if version != 2 or kind != JSON_CHUNK or 20 + size > len(content):
        raise ModelError(f"it is no GLB of version 2 with a description of {size:,} bytes; export it again")
    if size > MOST_JSON:
        raise ModelError(f"its description has {size:,} bytes, of which {MOST_JSON:,} are read; export triangles alone")
    try:
        description = json.loads(content[20 : 20 + size].decode())
    except (ValueError, RecursionError):
        raise ModelError("its description is not JSON; export it again") from None
    if not isinstance(description, dict):
        raise ModelError("its description is not a table; export it again")
    binary, at = b"", 20 + size
    if at + 8 <= len(content):
        size, kind = struct.unpack_from("<II", content, at)
        if kind == BINARY_CHUNK:
            binary = content[at + 8 : at + 8 + size]
    return description, binary


class _Scene:
    def __init__(self, description: dict[str, Any], binary: bytes) -> None:
        self._of = description
        self._binary = binary
        self._buffers: dict[int, bytes] = {}
        for name in description.get("extensionsRequired", []):
            if name not in ("KHR_materials_unlit", "KHR_texture_transform"):
                raise ModelError(f"it needs the extension {name!r:.60} of glTF, which is not read; export it without")

    def triangles(self) -> tuple[FloatArray, IndexArray]:
        """Vertices and faces of all placed meshes."""
        for key in ("nodes", "meshes"):
            if len(self._of.get(key, [])) > MOST_NODES:
                raise ModelError(f"its description has {len(self._of[key]):,} {key}, of which {MOST_NODES:,} are read")
        placed = list(self._placed())
        parts = sum(len(self._of["meshes"][_index(mesh)]["primitives"]) for mesh, _ in placed)
        if parts > MOST_NODES:
            raise ModelError(f"its scene has {parts:,} parts of meshes, of which {MOST_NODES:,} are read")
        total = sum(self._count(one) for mesh, _ in placed for one in self._primitives(mesh))
        if total > MOST_CORNERS:
            raise ModelError(f"its scene has triangles with {total:,} corners, of which {MOST_CORNERS:,} are read")
        points: list[FloatArray] = [np.zeros((0, 3))]
        faces: list[IndexArray] = [np.zeros((0, 3), dtype=np.int64)]
        count = 0
        for mesh, matrix in placed:
            for one in self._primitives(mesh):
                found = self._positions(one["attributes"]["POSITION"])
                corners = self._faces(one, len(found))
                if np.linalg.det(matrix[:3, :3]) < 0.0:  # a mirror turns triangles inside out
                    corners = corners[:, ::-1]
                points.append(found @ matrix[:3, :3].T + matrix[:3, 3])
                faces.append(corners + count)
                count += len(found)
        return np.concatenate(points), np.concatenate(faces)

    def _placed(self) -> Iterator[tuple[int, FloatArray]]:
        """Meshes, and where nodes of the scene place them; a node has one place."""
        nodes = self._of.get("nodes", [])
        if not nodes:
            yield from ((k, np.eye(4)) for k in range(len(self._of.get("meshes", []))))
            return
        scenes = self._of.get("scenes", [])
        if scenes:
            roots = scenes[self._of.get("scene", 0)].get("nodes", [])
        else:
            below = {child for node in nodes for child in node.get("children", [])}
            roots = [k for k in range(len(nodes)) if k not in below]
        seen: set[int] = set()
        waiting = [(k, np.eye(4)) for k in reversed(roots)]
        while waiting:
            k, parent = waiting.pop()
            if k in seen:
                raise ModelError(f"node {k} of its scene has two parents; a node must have one")
            seen.add(k)
            matrix = parent @ _matrix(nodes[k])
            if "mesh" in nodes[k]:
                yield nodes[k]["mesh"], matrix
            waiting += [(child, matrix) for child in reversed(nodes[k].get("children", []))]

    def _primitives(self, mesh: int) -> Iterator[dict[str, Any]]:
        """The parts of a mesh with triangles; points and lines have none."""
        for one in self._of["meshes"][_index(mesh)]["primitives"]:
            if one.get("mode", TRIANGLES) in (TRIANGLES, STRIP, FAN):
                yield one

    def _count(self, primitive: dict[str, Any]) -> int:
        """At most so many corners, and vertices."""
        accessors = self._of["accessors"]
        points = accessors[_index(primitive["attributes"]["POSITION"])]["count"]
        corners = accessors[_index(primitive["indices"])]["count"] if "indices" in primitive else points
        return max(_index(points), _index(corners) * (1 if primitive.get("mode", TRIANGLES) == TRIANGLES else 3))

    def _positions(self, accessor: int) -> FloatArray:
        form = self._of["accessors"][_index(accessor)]
        if form["type"] != "VEC3" or form["componentType"] != FLOAT:
            raise ModelError(
                f"accessor {accessor} has positions that are not three floats each; export it without compression"
            )
        return self._values(accessor, np.dtype("<f4"), 3).astype(np.float64)

    def _faces(self, primitive: dict[str, Any], count: int) -> IndexArray:
        if "indices" in primitive:
            accessor = primitive["indices"]
            kind = self._of["accessors"][_index(accessor)]["componentType"]
            if kind not in INDICES:
                raise ModelError(f"accessor {accessor} has indices of the type {kind!r:.20}; export it again")
            corners: IndexArray = self._values(accessor, np.dtype(INDICES[kind]), 1).ravel().astype(np.int64)
            if len(corners) and corners.max() >= count:
                raise ModelError(f"accessor {accessor} has the corner {corners.max()}; there are {count} vertices")
        else:
            corners = np.arange(count, dtype=np.int64)
        mode = primitive.get("mode", TRIANGLES)
        if mode == TRIANGLES:
            return corners[: len(corners) // 3 * 3].reshape(-1, 3)
        if mode == FAN:
            return np.column_stack([np.full(max(len(corners) - 2, 0), corners[0]), corners[1:-1], corners[2:]])
        strip = np.column_stack([corners[:-2], corners[1:-1], corners[2:]])
        strip[1::2] = strip[1::2, [1, 0, 2]]  # every second triangle of a strip is turned
        return strip

    def _values(self, accessor: int, kind: np.dtype[Any], width: int) -> Any:
        """The values of an accessor, shape (count, width)."""
        form = self._of["accessors"][_index(accessor)]
        if "sparse" in form or "bufferView" not in form:
            raise ModelError(f"accessor {accessor} is sparse or has no values, which is not read; export it again")
        view = self._of["bufferViews"][_index(form["bufferView"])]
        buffer = self._buffer(_index(view["buffer"]))
        start, length = _index(view.get("byteOffset", 0)), _index(view["byteLength"])
        first, count = _index(form.get("byteOffset", 0)), _index(form["count"])
        row = kind.itemsize * width
        step = _index(view.get("byteStride", row)) or row
        if start + length > len(buffer) or (count and first + (count - 1) * step + row > length):
            raise ModelError(f"accessor {accessor} has {count:,} values, and its buffer is shorter; export it again")
        if count == 0:
            return np.zeros((0, width), dtype=kind)
        return np.ndarray((count, width), kind, buffer, start + first, (step, kind.itemsize))

    def _buffer(self, k: int) -> bytes:
        """A buffer: the binary part of the file, or base64 in the description; never another file."""
        if k not in self._buffers:
            uri = self._of["buffers"][k].get("uri")
            if uri is None:
                self._buffers[k] = self._binary
            elif isinstance(uri, str) and uri.startswith("data:") and ";base64," in uri[:200]:
                try:
                    self._buffers[k] = base64.b64decode(uri.partition(",")[2], validate=True)
                except binascii.Error:
                    raise ModelError(f"buffer {k} is not base64; export it again") from None
            else:
                raise ModelError(f"buffer {k} is in another file, {uri!r:.80}, which is not read; export one GLB file")
        return self._buffers[k]


def _index(value: Any) -> int:
    """A number of an item, or a size: an integer that is not negative."""
    if type(value) is not int or not 0 <= value < 2**40:
        raise ModelError(f"its description has {value!r:.40} where a number of bytes or items must be; export it again")
    return value


def _matrix(node: dict[str, Any]) -> FloatArray:
    """The pose of a node in its parent, with scales: ``matrix`` by columns, or T R S."""
    if "matrix" in node:
        return np.array(node["matrix"], dtype=np.float64).reshape(4, 4).T
    x, y, z, w = (float(c) for c in node.get("rotation", (0.0, 0.0, 0.0, 1.0)))
    made = np.eye(4)
    made[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    made[:3, :3] *= np.array(node.get("scale", (1.0, 1.0, 1.0)), dtype=np.float64).reshape(3)
    made[:3, 3] = np.array(node.get("translation", (0.0, 0.0, 0.0)), dtype=np.float64).reshape(3)
    return made
