"""Show every mechanism of the gallery on the page: ``python docs/contact_sheet.py [DIRECTORY]``.

A real Chromium shows the real page; the panels are hidden.  One picture per mechanism is written to the directory
(build/gallery where none is given), and all of them, with their names, to docs/images/contact_sheet.png.  Needs the
extra view, Pillow and Chromium; the mechanisms from CAD also need the extra cad.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from cardan.examples import installed  # noqa: E402
from cardan.view.server import Server  # noqa: E402
from chromium import Browser  # noqa: E402

SHEET = ROOT / "docs" / "images" / "contact_sheet.png"
PAGE, FREE = (1280, 800), (284, 64, 930, 690)  # pixels of the page, and what its panels leave free
CELL, LABEL, COLUMNS = (300, 290), 26, 5  # pixels of a picture in the sheet, of its name; pictures in a row
READY = "window.cardan && cardan.model && cardan.frame && cardan.freedoms && cardan.stage.settled ? 1 : 0"
BARE = "document.querySelectorAll('.card, #cube, #messages').forEach(e => { e.style.visibility = 'hidden'; })"


def pictures() -> dict[str, Image.Image]:
    """The drawing of each mechanism, without panels."""
    found = {}
    with Server(port=0) as server, Browser(*PAGE) as browser:
        for name in installed():
            tab = browser.open(f"{server.address.partition('&')[0]}&item={name}&quality=high")
            tab.until(READY)
            assert tab.js("cardan.model.item") == name and not tab.js("cardan.problems") and not tab.errors(), name
            tab.js(BARE)
            tab.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
            found[name] = Image.open(io.BytesIO(tab.screenshot())).convert("RGB").crop(FREE)
            tab.close()
    return found


def sheet(shown: dict[str, Image.Image]) -> Image.Image:
    """All pictures in rows, each with its name."""
    rows = -(-len(shown) // COLUMNS)
    made = Image.new("RGB", (COLUMNS * CELL[0], rows * (CELL[1] + LABEL)), "white")
    draw, font = ImageDraw.Draw(made), ImageFont.load_default(15)
    for k, (name, picture) in enumerate(shown.items()):
        x, y = k % COLUMNS * CELL[0], k // COLUMNS * (CELL[1] + LABEL)
        made.paste(picture.resize(CELL, Image.Resampling.LANCZOS), (x, y))
        draw.text((x + CELL[0] // 2, y + CELL[1] + LABEL // 2), name, fill="#1c2733", font=font, anchor="mm")
    return made.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "gallery"
    target.mkdir(parents=True, exist_ok=True)
    shown = pictures()
    for name, picture in shown.items():
        picture.save(target / f"{name}.png")
    sheet(shown).save(SHEET, optimize=True)
    print(f"{len(shown)} pictures in {target}; {SHEET.relative_to(ROOT)}: {SHEET.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
