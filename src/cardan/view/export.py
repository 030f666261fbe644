"""Files of motions and simulations that show the mechanism: pictures, animations, models for other programs."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import ModelError
from cardan.view.gltf import glb
from cardan.view.render import FloatArray, camera_for, png, render
from cardan.view.scene import Scene, scene

if TYPE_CHECKING:
    from cardan.mechanism import Mechanism

GIF_SIZE = (640, 480)  # pixels
MOST_FRAMES = 120  # of a GIF
LEAST_PAUSE = 0.02  # s: shortest pause between frames that browsers keep
COLORS = 128  # of the palette of a GIF
SAMPLED = 16  # poses that the camera must show


def to_bytes(suffix: str, mechanism: Mechanism, states: Any, times: FloatArray, coordinates: FloatArray) -> bytes:
    """The content of a file: times [s]; coordinates, shape (times, bodies, 7)."""
    if not len(times):
        raise ModelError("the result has no states, so there is nothing to draw; see its reason")
    made = scene(mechanism, states[0])
    ground = np.tile([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], (len(times), 1, 1))
    return WRITERS[suffix](made, times, np.concatenate([ground, coordinates], axis=1))


def _png(made: Scene, times: FloatArray, frames: FloatArray) -> bytes:
    """The last pose."""
    return png(render(made, frames[-1]))


def _gif(made: Scene, times: FloatArray, frames: FloatArray) -> bytes:
    """All poses, or 120 of them, in real time."""
    try:
        from PIL import Image
    except ImportError:
        raise ModelError("a GIF needs Pillow; install it with: pip install 'cardan[plot]'") from None
    count = min(len(times), MOST_FRAMES)
    chosen = np.unique(np.round(np.linspace(0, len(times) - 1, count)).astype(int))
    seen = frames[np.unique(np.round(np.linspace(0, len(times) - 1, SAMPLED)).astype(int))]
    camera = camera_for(made, list(seen), GIF_SIZE)
    pictures = [Image.fromarray(render(made, frames[k], size=GIF_SIZE, camera=camera)) for k in chosen]
    palette = pictures[0].quantize(COLORS)
    shown = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures]
    pause = max(LEAST_PAUSE, abs(float(times[-1] - times[0])) / max(1, len(shown) - 1))
    data = io.BytesIO()
    shown[0].save(data, "GIF", save_all=True, append_images=shown[1:], duration=round(1e3 * pause), loop=0)
    return data.getvalue()


WRITERS: dict[str, Callable[[Scene, FloatArray, FloatArray], bytes]] = {".png": _png, ".gif": _gif, ".glb": glb}
