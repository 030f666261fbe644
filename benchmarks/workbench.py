"""Latency of the workbench: pointer event → poses applied in the page, and message in → frame out on the server; and
the time from the command `cardan view` to the first drag that follows the hand.

    python benchmarks/workbench.py [--server | --first [--cold]]

The page runs in Chromium with its draw calls stubbed, so that software rendering is not measured.  --server: without a
browser.  --first: the first drag alone, also without a browser; --cold: as on a machine that has no compiled kernels in
its cache.  Needs the extra view.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

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


def first_drag(item: str, cache: str | None = None) -> tuple[float, float, float]:
    """From the command to the first frame of a drag: seconds, CPU seconds of the server, and the longest time [s] for
    which nothing was sent to the page."""
    import resource

    from websockets.sync.client import connect

    env = {**os.environ, **({"CARDAN_CACHE_DIR": cache} if cache else {})}
    command = [sys.executable, "-m", "cardan", "view", item, "--no-browser", "--port", "0"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env) as server:
        assert server.stdout is not None
        at = urlsplit(server.stdout.readline().split()[1])
        origin: dict[str, Any] = {"origin": f"http://{at.netloc}", "max_size": None, "ping_timeout": None}
        with connect(f"ws://{at.netloc}/ws?{at.query}", **origin) as page:
            last, silence = time.monotonic(), 0.0
            is_held = False
            while not is_held:
                message = page.recv()
                last, silence = time.monotonic(), max(silence, time.monotonic() - last)
                if isinstance(message, str) and json.loads(message)["is"] == "freedoms":
                    drag = {"do": "drag", "seq": 1, "body": 0, "point": [0, 0, 0], "target": [0, 0, 0], "push": False}
                    page.send(json.dumps(drag))
                is_held = isinstance(message, bytes) and message[:1] == b"\x02" and bool(message[8] & 1)
            seconds = time.monotonic() - began
            server.kill()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, silence


def show_first_drags() -> None:
    """Print a line for each of some mechanisms; the first one is that of `cardan view` without a name."""
    with tempfile.TemporaryDirectory() as empty:
        cache = empty if "--cold" in sys.argv else None
        for item in ("planar_4r", "jansen_leg", "strandbeest"):
            seconds, cpu, silence = first_drag(item, cache)
            print(
                f"from the command to the first drag, {item}: {cpu:.2f} s of CPU, {seconds:.2f} s; "
                f"longest silence {silence:.2f} s",
                flush=True,
            )


def main() -> None:
    if "--first" in sys.argv:
        show_first_drags()
        return
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
