"""Pictures of a scene by a software renderer: shaded faces, sharp edges, a soft shadow on the floor."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.lazy import LazyModule
from cardan.view.scene import Scene

_raster = LazyModule("cardan.view._raster")

Image = NDArray[np.uint8]
FloatArray = NDArray[np.float64]

SIZE = (800, 600)  # pixels: width, height
FINER = 2  # samples per pixel along each side
PAPER = (1.0, 1.0, 1.0)
INK = (0.10, 0.11, 0.13, 0.55)
LIGHT = (-0.35, 0.62, 0.70)  # in view axes: right, up, towards the viewer
MARGIN = 0.06  # of the picture, left free on each side
SHADOW = 0.16  # darkening in its middle
DEEP = 0.6  # extent along the hinges relative to that across them, beyond which a flat mechanism is seen obliquely
EDGE_BIAS = 2e-3  # of the depth range: an edge is drawn over the faces that meet in it


@dataclass(frozen=True, slots=True, eq=False)
class Camera:
    """An orthographic view: world axes of the picture as rows (right, up, towards the viewer), the point [m] in its
    middle, and pixels per metre."""

    axes: FloatArray
    middle: FloatArray
    scale: float


def default_view(scene: Scene) -> FloatArray:
    """Axes of the usual view: flat mechanisms from the front, a little from the side and above; others from above."""
    n = scene.normal
    if n is not None and _depth(scene, n) > DEEP:
        n = None
    if n is not None and abs(n @ scene.up) < 0.5:
        up = np.array(scene.up)
        right = np.cross(up, n)
        towards = n + 0.34 * up + 0.42 * right / np.linalg.norm(right)
    elif n is not None:  # lies flat: seen from above, the world's y axis up in the picture
        up = np.array([0.0, 1.0, 0.0]) if abs(n[1]) < 0.9 else np.array([0.0, 0.0, 1.0])
        towards = n - 0.55 * up + 0.25 * np.cross(up, n)
    else:
        up = np.array(scene.up)
        side = np.eye(3)[int(np.argmin(np.abs(up)))]
        front = -np.cross(up, side) if abs(up[2]) > 0.5 else np.cross(side, up)
        towards = front + 0.6 * np.cross(up, front) * 0.8 + 0.55 * up
    z = towards / np.linalg.norm(towards)
    x = np.cross(up, z)
    x /= np.linalg.norm(x)
    return np.array([x, np.cross(z, x), z])


def _depth(scene: Scene, n: FloatArray) -> float:
    """Extent along a direction, relative to that across it."""
    rows = np.concatenate(
        [origin + mesh.vertices[::7] @ matrix.T for mesh, origin, matrix in scene.placed(scene.poses)]
    )
    along = rows @ n
    return float(np.ptp(along) / np.ptp(rows - np.outer(along, n), axis=0).max())


def camera_for(scene: Scene, frames: list[FloatArray], size: tuple[int, int], axes: FloatArray | None = None) -> Camera:
    """A camera that sees the scene in all given poses."""
    view = default_view(scene) if axes is None else axes
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for poses in frames:
        for mesh, origin, matrix in scene.placed(poses):
            rows = (origin + mesh.vertices @ matrix.T) @ view.T
            low, high = np.minimum(low, rows.min(axis=0)), np.maximum(high, rows.max(axis=0))
    span = np.maximum(high - low, 1e-9 * scene.extent)
    scale = float(min((1.0 - 2.0 * MARGIN) * size[0] / span[0], (1.0 - 2.0 * MARGIN) * size[1] / span[1]))
    return Camera(view, view.T @ (0.5 * (low + high)), scale)


def render(
    scene: Scene, poses: FloatArray | None = None, *, size: tuple[int, int] = SIZE, camera: Camera | None = None
) -> Image:
    """A picture of the scene with its parts in given poses, shape (height, width, 3)."""
    if poses is None:
        poses = scene.poses
    if camera is None:
        camera = camera_for(scene, [poses], size)
    width, height = FINER * size[0], FINER * size[1]
    image = np.empty((height, width, 3), dtype=np.float32)
    image[:] = PAPER
    depth = np.full((height, width), np.inf)
    scale = FINER * camera.scale
    placed = scene.placed(poses)
    drawn = []
    for mesh, origin, matrix in placed:
        rows = ((origin - camera.middle) + mesh.vertices @ matrix.T) @ camera.axes.T
        points = np.column_stack([0.5 * width + scale * rows[:, 0], 0.5 * height - scale * rows[:, 1], -rows[:, 2]])
        unit = matrix / np.linalg.norm(matrix, axis=0)  # struts are scaled along z
        drawn.append((mesh, np.ascontiguousarray(points), np.ascontiguousarray(mesh.normals @ (camera.axes @ unit).T)))
    _shadow(scene, placed, camera, scale, image)
    light = np.array(LIGHT) / np.linalg.norm(LIGHT)
    for mesh, points, normals in sorted(drawn, key=lambda one: one[0].color[3] < 1.0):  # opaque ones first
        color = np.array(mesh.color)
        _raster.fill(points, normals.astype(np.float64), mesh.faces, color, light, image, depth)
    near = np.isfinite(depth)
    span = float(np.ptp(depth[near])) if near.any() else 1.0
    ink = np.array(INK)
    for mesh, points, _ in drawn:
        _raster.draw_lines(points, mesh.edges, ink, EDGE_BIAS * span, image, depth)
    return to_pixels(image, FINER)


def _shadow(scene: Scene, placed: list[Any], camera: Camera, scale: float, image: NDArray[np.float32]) -> None:
    """Darken the floor below the mechanism, if it is seen from above; the mask is blurred."""
    up = np.array(scene.up)
    if camera.axes[2] @ up < 0.15:
        return
    coarse = 2 * FINER
    mask = np.zeros((image.shape[0] // coarse, image.shape[1] // coarse))
    floor = min(float(((origin + mesh.vertices @ matrix.T) @ up).min()) for mesh, origin, matrix in placed)
    for mesh, origin, matrix in placed:
        world = origin + mesh.vertices @ matrix.T
        world = world - np.outer(world @ up - floor, up)
        rows = (world - camera.middle) @ camera.axes.T * (scale / coarse)
        points = np.column_stack([0.5 * mask.shape[1] + rows[:, 0], 0.5 * mask.shape[0] - rows[:, 1]])
        _raster.fill_mask(np.ascontiguousarray(points), mesh.faces, mask)
    for _ in range(3):
        mask = _blurred(mask, max(2, mask.shape[0] // 40))
    fine = np.repeat(np.repeat(1.0 - SHADOW * mask.astype(np.float32), coarse, axis=0), coarse, axis=1)
    image[: fine.shape[0], : fine.shape[1]] *= fine[:, :, None]


def _blurred(mask: FloatArray, reach: int) -> FloatArray:
    """The mean over a square of 2·reach + 1 pixels."""
    for axis in (0, 1):
        pad = [(reach + 1, reach) if a == axis else (0, 0) for a in (0, 1)]
        total = np.cumsum(np.pad(mask, pad), axis=axis)
        n = mask.shape[axis]
        width = 2 * reach + 1
        mask = (np.take(total, range(width, width + n), axis) - np.take(total, range(n), axis)) / width
    return mask


def to_pixels(image: NDArray[np.float32], finer: int) -> Image:
    """Means over finer × finer samples, as bytes."""
    mean = sum(image[i::finer, j::finer] for i in range(finer) for j in range(finer)) / finer**2
    return np.asarray(np.round(255.0 * np.clip(mean, 0.0, 1.0)), dtype=np.uint8)


def png(image: Image) -> bytes:
    """A picture as a PNG file.  [PNG2003]"""
    height, width, _ = image.shape
    rows = np.concatenate([np.zeros((height, 1), dtype=np.uint8), image.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
