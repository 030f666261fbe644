"""Draw every mechanism of the gallery: ``python docs/gallery.py [DIRECTORY] [NAME …]``.

One PNG per mechanism, and ``gallery.png`` with all of them, in a directory (docs/images/gallery where none is given).
The pictures are made by the library's own renderer.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from cardan.examples import REGISTRY
from cardan.view.render import Image, png, render
from cardan.view.scene import scene

CELL = (480, 360)  # pixels
COLUMNS = 4


def picture(name: str, size: tuple[int, int] = CELL) -> Image:
    """A mechanism as it is assembled."""
    m = REGISTRY[name].build()
    return render(scene(m, m.assemble().state), size=size)


def sheet(pictures: list[Image]) -> Image:
    """Pictures in rows."""
    blank = np.full_like(pictures[0], 255)
    cells = pictures + [blank] * (-len(pictures) % COLUMNS)
    return np.vstack([np.hstack(cells[k : k + COLUMNS]) for k in range(0, len(cells), COLUMNS)])


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images" / "gallery"
    names = sys.argv[2:] or list(REGISTRY)
    target.mkdir(parents=True, exist_ok=True)
    pictures = [picture(name) for name in names]
    for name, image in zip(names, pictures, strict=True):
        (target / f"{name}.png").write_bytes(png(image))
    (target / "gallery.png").write_bytes(png(sheet(pictures)))
    print(f"{len(names)} pictures in {target}")


if __name__ == "__main__":
    main()
