"""GLB files: a scene with an animation, as other programs read it.  [glTF2]

The file has one node per part, moved by an animation of translation and rotation; struts are also scaled along z.  A
root node turns the mechanism so that "up" is the y axis, as glTF requires.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.math import euler
from cardan.view.scene import Scene, strut_matrix
from cardan.view.shading import Mesh

FLOAT, UNSIGNED = 5126, 5125
KINDS = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}
VERTICES, INDICES = 34962, 34963  # targets of buffer views
ROUGHNESS, METAL = 0.55, 0.1

FloatArray = NDArray[np.float64]


class _File:
    """The parts of a file as they are collected."""

    def __init__(self) -> None:
        self.blob = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []
        self.meshes: list[dict[str, Any]] = []
        self.materials: list[dict[str, Any]] = []
        self._known: dict[Any, int] = {}

    def accessor(self, values: NDArray[Any], target: int | None = None, *, bounds: bool = False) -> int:
        """Store an array, shape (n,) or (n, width)."""
        whole = values.dtype.kind in "ui"
        rows = np.ascontiguousarray(values, dtype="<u4" if whole else "<f4")
        view = {"buffer": 0, "byteOffset": len(self.blob), "byteLength": rows.nbytes}
        self.views.append(view | ({"target": target} if target else {}))
        self.blob.extend(rows.tobytes())
        made: dict[str, Any] = {
            "bufferView": len(self.views) - 1,
            "componentType": UNSIGNED if whole else FLOAT,
            "count": len(rows),
            "type": KINDS[1 if rows.ndim == 1 else rows.shape[1]],
        }
        if bounds:
            made |= {word: np.atleast_1d(f(axis=0)).tolist() for word, f in (("min", rows.min), ("max", rows.max))}
        self.accessors.append(made)
        return len(self.accessors) - 1

    def material(self, color: tuple[float, ...]) -> int:
        """The material of a colour, which is given in sRGB; glTF needs linear values."""
        if color not in self._known:
            linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
            surface = {"baseColorFactor": [*linear, color[3]], "metallicFactor": METAL, "roughnessFactor": ROUGHNESS}
            blended = {"alphaMode": "BLEND"} if color[3] < 1.0 else {}
            self.materials.append({"pbrMetallicRoughness": surface} | blended)
            self._known[color] = len(self.materials) - 1
        return self._known[color]

    def mesh(self, name: str, meshes: tuple[Mesh, ...]) -> int:
        """The mesh of a part: one primitive per colour."""
        primitives = []
        for one in meshes:
            key = one.vertices.tobytes() + one.faces.tobytes()
            if key not in self._known:
                self._known[key] = len(self.accessors)
                self.accessor(one.vertices, VERTICES, bounds=True)
                self.accessor(one.normals, VERTICES)
                self.accessor(one.faces.ravel(), INDICES)
            first = self._known[key]
            attributes = {"POSITION": first, "NORMAL": first + 1}
            primitives.append({"attributes": attributes, "indices": first + 2, "material": self.material(one.color)})
        self.meshes.append({"name": name, "primitives": primitives})
        return len(self.meshes) - 1


def glb(scene: Scene, times: FloatArray, frames: FloatArray) -> bytes:
    """A GLB file of the scene with poses at times [s], shape (times, parts, 7); still if there is one time."""
    if len(times) > 1 and times[0] > times[-1]:
        times, frames = times[::-1], frames[::-1]
    file = _File()
    tracks: list[dict[str, FloatArray]] = []
    nodes: list[dict[str, Any]] = []
    for k, part in enumerate(scene.parts):
        nodes.append({"name": part.name} | ({"mesh": file.mesh(part.name, part.meshes)} if part.meshes else {}))
        tracks.append({"translation": frames[:, k, :3], "rotation": _xyzw(frames[:, k, 3:])} if k else {})
    index = {part.name: k for k, part in enumerate(scene.parts)}
    for strut in scene.struts:
        a, b = (
            frames[:, index[body], :3] + euler.rotate(frames[:, index[body], 3:], np.array(point))
            for body, point in zip(strut.bodies, strut.points, strict=True)
        )
        length = np.linalg.norm(b - a, axis=1)
        turns = [euler.from_matrix(strut_matrix(d) / [1.0, 1.0, max(s, 1e-300)]) if s else np.eye(4)[0]
                 for d, s in zip(b - a, length, strict=True)]  # fmt: skip
        scale = np.column_stack([np.ones_like(length), np.ones_like(length), length])
        nodes.append({"name": strut.name, "mesh": file.mesh(strut.name, (strut.mesh,))})
        tracks.append({"translation": a, "rotation": _xyzw(np.array(turns)), "scale": scale})
    for node, track in zip(nodes, tracks, strict=True):
        node |= {path: values[0].astype(np.float32).tolist() for path, values in track.items()}
    document: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": "Cardan"},
        "scene": 0,
        "scenes": [{"name": scene.name, "nodes": [len(nodes)]}],
        "nodes": [*nodes, {"name": scene.name, "rotation": _upright(scene.up), "children": list(range(len(nodes)))}],
    }
    if len(times) > 1:
        document["animations"] = [_animation(file, times - times[0], tracks)]
    document |= {
        "meshes": file.meshes,
        "materials": file.materials,
        "accessors": file.accessors,
        "bufferViews": file.views,
        "buffers": [{"byteLength": len(file.blob)}],
    }
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    chunks = ((b"JSON", text + b" " * (-len(text) % 4)), (b"BIN\0", bytes(file.blob)))  # the blob is in words of four
    body = b"".join(struct.pack("<I", len(data)) + kind + data for kind, data in chunks)
    return b"glTF" + struct.pack("<II", 2, 12 + len(body)) + body


def _animation(file: _File, times: FloatArray, tracks: list[dict[str, FloatArray]]) -> dict[str, Any]:
    clock = file.accessor(times, bounds=True)
    samplers: list[dict[str, Any]] = []
    channels: list[dict[str, Any]] = []
    for k, track in enumerate(tracks):
        for path, values in track.items():
            channels.append({"sampler": len(samplers), "target": {"node": k, "path": path}})
            samplers.append({"input": clock, "output": file.accessor(values), "interpolation": "LINEAR"})
    return {"name": "motion", "samplers": samplers, "channels": channels}


def _xyzw(quaternions: FloatArray) -> FloatArray:
    """(x, y, z, w), each on the same side as the one before, so that interpolation takes the short way."""
    same = np.sign(np.einsum("ij,ij->i", quaternions[1:], quaternions[:-1]))
    signs = np.cumprod(np.concatenate([[1.0], np.where(same == 0.0, 1.0, same)]))
    return np.asarray((signs[:, None] * quaternions)[:, [1, 2, 3, 0]])


def _upright(up: tuple[float, float, float]) -> list[float]:
    """The rotation (x, y, z, w) that takes "up" to the y axis."""
    x, y, z = up
    if y < -0.999999:
        return [1.0, 0.0, 0.0, 0.0]
    q = np.array([-z, 0.0, x, 1.0 + y])  # up × y, and 1 + up·y
    return [float(c) for c in q / np.linalg.norm(q)]
