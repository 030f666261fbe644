"""Latency of the workbench: pointer event → poses applied in the page, and message in → frame out on the server.

    python benchmarks/workbench.py [--server]

The page runs in Chromium with its draw calls stubbed, so that software rendering is not measured.  --server: without a
browser.  Needs the extra view.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "view")]

import test_server as server_tests  # noqa: E402

from cardan.mechanism import Mechanism  # noqa: E402
from chromium import Browser  # noqa: E402
from papers.hand import chain  # noqa: E402
from pointer import screen  # noqa: E402

NO_DRAWING = (
    "for (const k of ['drawElements', 'drawArrays', 'drawElementsInstanced', 'drawArraysInstanced'])"
    "WebGL2RenderingContext.prototype[k] = function () {}"
)
CHAIN = f"{__file__}:chain_of_200"  # without redundant equations
ITEMS = {"jansen_leg": "crank", "strandbeest": "right_1_lower_rod", CHAIN: "link_100"}
SECONDS = 5.0


def chain_of_200() -> Mechanism:
    """A planar chain of 200 links, for `cardan view`."""
    return chain(200)


def page_milliseconds(item: str, part: str) -> list[float]:
    """From the event's own time stamp to the moment after its poses were applied, of every answered request [ms]."""
    command = [sys.executable, "-m", "cardan", "view", item, "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, Browser() as browser:
        assert server.stdout is not None
        tab = browser.open(server.stdout.readline().split()[1], before=NO_DRAWING)
        tab.until("window.cardan && cardan.frame && cardan.freedoms ? 1 : 0", 120)
        x, y = screen(tab, part)
        tab.mouse("Moved", x, y)
        tab.mouse("Pressed", x, y)
        tab.mouse("Moved", x + 5, y, held=True)
        tab.until("cardan.frame.flags & 1 ? 1 : 0", 300)
        tab.js("void (cardan.link.latencies.length = 0)")
        began = time.monotonic()
        while (t := time.monotonic() - began) < SECONDS:
            phase = 2 * math.pi * t / 2.5
            tab.mouse("Moved", x + 25 * math.sin(phase), y - 15 * (1 - math.cos(phase)), held=True)
            time.sleep(0.008)
        found = list(tab.js("cardan.link.latencies"))
        server.kill()
        return found


def main() -> None:
    for item in ("rsur", "strandbeest"):
        print(f"server, message in to frame out, {item}: {server_tests.server_milliseconds(item):.2f} ms median")
    if "--server" not in sys.argv:
        for item, part in ITEMS.items():
            found = page_milliseconds(item, part)
            print(
                f"page, pointer event to poses applied, {item.rpartition(':')[2]}: {np.median(found):.1f} ms median, "
                f"{np.percentile(found, 95):.1f} ms 95 %, {len(found)} requests"
            )


if __name__ == "__main__":
    main()
