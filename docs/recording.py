"""Record the drag of the README: ``python docs/recording.py`` (needs the extra ``view``, Pillow and Chromium).

A real Chromium shows the real page.  The mouse takes a crank of the four-cylinder engine and turns it once; pistons and
rods follow.  Each frame is a screenshot of the page after the server has answered; only the pointer is drawn over it,
because a screenshot has none.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from PIL import Image, ImageDraw

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from cardan.view.server import Server  # noqa: E402
from chromium import Browser, Tab  # noqa: E402

PATH = ROOT / "docs" / "images" / "drag.gif"
ITEM, PART, HINGE = "four_cylinder", "crankshaft", "main"
PAGE, SHOWN = (1180, 740), (800, 502)  # pixels of the page and of the picture
FRAMES, REST, MILLISECONDS = 36, 4, 70  # of one turn, of the pose at rest at its end; of one frame
POINTER = ((0, 0), (0, 17), (4, 13), (7, 20), (10, 19), (7, 12), (12, 12))  # pixels
READY = "window.cardan && cardan.model && cardan.frame && cardan.freedoms && cardan.stage.settled ? 1 : 0"
SETTLED = "!cardan.link.flying && !cardan.link.waiting && cardan.stage.settled ? 1 : 0"

# Places of the pointer [pixels]: a visible point of the part, rotated once about the axis of the hinge.
WAY = f"""(() => {{
  const s = cardan.stage, part = s.parts.findIndex(p => p.name === '{PART}');
  const joint = s.joints.find(j => j.data.name === '{HINGE}');
  s.scene.updateMatrixWorld(true);
  const V = s.camera.position.constructor, at = joint.node.getWorldPosition(new V());
  const axis = new V(0, 0, 1).transformDirection(joint.node.matrixWorld);
  let best = null;
  for (let x = 0; x < {PAGE[0]}; x += 6) for (let y = 0; y < {PAGE[1]}; y += 6) {{
    const hit = document.elementFromPoint(x, y) === s.canvas && s.pick(x, y);
    if (!hit || hit.part !== part) continue;
    const arm = hit.point.clone().sub(at);
    const radius = arm.addScaledVector(axis, -arm.dot(axis)).length();
    if (!best || radius > best.radius) best = {{ radius, point: hit.point.clone() }};
  }}
  return Array.from({{ length: {FRAMES} + 1 }}, (_, k) =>
    s.screen(best.point.clone().sub(at).applyAxisAngle(axis, 2 * Math.PI * k / {FRAMES}).add(at)));
}})()"""


def frame(tab: Tab, x: float, y: float) -> Image.Image:
    """The page with the pointer, in the size of the picture."""
    tab.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
    tab.until(SETTLED)
    shot = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
    draw = ImageDraw.Draw(shot)
    draw.polygon([(x + 1.4 * a, y + 1.4 * b) for a, b in POINTER], fill="black", outline="white", width=2)
    return shot.resize(SHOWN, Image.Resampling.LANCZOS)


def record() -> list[Image.Image]:
    """Frames of one turn."""
    with Server(first=ITEM, port=0) as server, Browser(*PAGE) as browser:
        tab = browser.open(f"{server.address}&quality=high")
        tab.until(READY)
        tab.click("#toggle-grid")
        way = tab.js(WAY)
        x, y = way[0]
        tab.mouse("Moved", x, y)
        tab.mouse("Pressed", x, y)
        found = [frame(tab, x, y)]
        for x, y in way[1:]:
            tab.mouse("Moved", x, y, held=True)
            found.append(frame(tab, x, y))
        tab.mouse("Released", x, y)
        found += [frame(tab, x, y)] * REST
        problems = tab.js("cardan.problems")
        assert not problems and not tab.errors(), problems
        tab.close()
    return found


def save(frames: list[Image.Image], path: Path) -> None:
    """As a GIF with one palette, so that what does not move is stored once."""
    sample = Image.new("RGB", (SHOWN[0], SHOWN[1] * 4))
    for k in range(4):
        sample.paste(frames[k * (len(frames) - 1) // 3], (0, k * SHOWN[1]))
    palette = Image.new("P", (1, 1))  # half for large areas, which are gradients, half for rare colours
    ways = (Image.Quantize.MEDIANCUT, Image.Quantize.MAXCOVERAGE)
    palette.putpalette([n for way in ways for n in sample.quantize(128, method=way).getpalette()[: 3 * 128]])
    flat = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in frames]
    flat[0].save(path, save_all=True, append_images=flat[1:], duration=MILLISECONDS, loop=0, optimize=True, disposal=1)


def main() -> None:
    save(record(), PATH)
    print(f"{PATH.relative_to(ROOT)}: {PATH.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
