"""One HTML file that plays and scrubs a motion from disk: the page of the workbench with a scene and a clip."""

from __future__ import annotations

import base64
import gzip
import json

from cardan.analysis.motion import Motion
from cardan.analysis.simulation import Simulation
from cardan.mechanism import Mechanism
from cardan.view import clip, page
from cardan.view.scene import scene

END = "</body>"


def html(mechanism: Mechanism, found: Motion | Simulation) -> bytes:
    """The file; it needs no server, no network and no other file."""
    made = clip.from_motion(mechanism, found, loop=True)
    recording = {
        "scene": base64.b64encode(gzip.compress(scene(mechanism, found.states[0]).pack(), 9, mtime=0)).decode(),
        "model": {
            "item": "own",
            "title": mechanism.name,
            "drivers": [],
            "coordinates": clip.describe(mechanism),
            "loads": [],
            "duration": 0.0,
            "ok": made.ok,
        },
        "clip": {**made.header(), "data": base64.b64encode(made.data(level=9)).decode()},
    }
    text = json.dumps(recording, allow_nan=False).replace("<", "\\u003c")  # no name can end the element
    before, end, after = page.html().rpartition(END)
    return f'{before}<script type="application/json" id="recording">{text}</script>\n{end}{after}'.encode()
