"""The mouse on the page of the workbench: where a part is seen, and a drag of it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

from chromium import Tab

SHOTS = Path(__file__).resolve().parents[1] / "build" / "screenshots"


def drawn(tab: Tab) -> np.ndarray:
    """Poses of the movable parts as they are drawn, shape (bodies, 7)."""
    return np.array(
        tab.js(
            "cardan.stage.parts.slice(1).map(({node: {position: p, quaternion: q}}) =>"
            "[p.x, p.y, p.z, q.w, q.x, q.y, q.z])"
        )
    )


def screen(tab: Tab, part: str, share: float = 0.6) -> tuple[float, float]:
    """A place on the canvas where a part is on top, near a share of the way to its farthest joint."""
    found = tab.js(
        f"""(() => {{
        const s = cardan.stage, i = s.parts.findIndex(p => p.name === {json.dumps(part)});
        s.scene.updateMatrixWorld(true);
        const a = s.parts[i].node.position.clone(), b = s.toWorld(i, cardan.farthest(i));
        for (const u of [{share}, 0.5, 0.4, 0.7, 0.3, 0.8, 0.2, 0.9, 0.1, 0, 1]) {{
          const at = s.screen(a.clone().lerp(b, u));
          for (const [x, y] of [[0, 0], [6, 0], [-6, 0], [0, 6], [0, -6], [0, 12], [0, -12], [12, 0], [-12, 0]]) {{
            const hit = s.pick(at[0] + x, at[1] + y);
            if (hit && hit.part === i && document.elementFromPoint(at[0] + x, at[1] + y) === s.canvas)
              return [at[0] + x, at[1] + y];
          }}
        }}
        return null; }})()"""
    )
    assert found, f"{part} is not seen"
    return found[0], found[1]


def drag(tab: Tab, part: str, way: list[tuple[float, float]], modifiers: int = 0) -> tuple[float, float]:
    """Press on a part and move along a way [pixels]; the button stays pressed.  Returns the last place."""
    x, y = screen(tab, part)
    tab.mouse("Moved", x, y)
    tab.mouse("Pressed", x, y, modifiers=modifiers)
    for dx, dy in way:
        tab.mouse("Moved", x + dx, y + dy, held=True, modifiers=modifiers)
    last = (x + way[-1][0], y + way[-1][1])
    tab.until("cardan.hand.grab && cardan.frame.flags & 1 ? 1 : 0")
    settle(tab)
    return last


def settle(tab: Tab) -> None:
    """Wait until what the mouse did was sent, no request is on its way, and the last answer is drawn."""
    two_frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
    tab.js(two_frames)
    tab.until("!cardan.link.flying && !cardan.link.waiting ? 1 : 0")
    tab.js(two_frames)
    tab.until("cardan.stage.settled ? 1 : 0")


def rest(tab: Tab) -> np.ndarray:
    """The poses when they no longer change."""
    while True:
        before = drawn(tab)
        time.sleep(0.3)
        if np.array_equal(drawn(tab), before):
            return before


def line(dx: float, dy: float, steps: int = 12) -> list[tuple[float, float]]:
    return [(dx * k / steps, dy * k / steps) for k in range(1, steps + 1)]
