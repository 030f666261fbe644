"""One HTML file in which a mechanism can be dragged: the page of the workbench with tables and kernels of a session.

As in the workbench, drivers are left out while a part is dragged: a mechanism with drivers has two sessions.  What
needs another one, such as a pin, is disabled in the page with the reason.

The kernels are those of the library, compiled to WebAssembly (``kernels/webassembly.py``); the file has the ones that
its mechanism needs.  It needs no server, no Python and no other file.
"""

from __future__ import annotations

import base64
import gzip
import json
import zipfile
from typing import Any

from cardan.errors import ModelError
from cardan.interact import image
from cardan.kernel import built
from cardan.mechanism import Mechanism
from cardan.system.state import State
from cardan.view import page
from cardan.view.bench import Bench, drivers, limit_texts
from cardan.view.hand import held
from cardan.view.server import OWN, items_of

END = "</body>"


def html(mechanism: Mechanism) -> bytes:
    """The file; ModelError names what cannot be dragged without Python."""
    if not mechanism.bodies:
        raise ModelError(f"the page of {mechanism.name!r} cannot be made: it has no bodies; add one with m.body")
    mechanism.system.refuse_timed("a page without Python")
    told = _Told()
    state = Bench(items_of(mechanism), OWN, told).open()
    if told.problems:
        raise ModelError(f"the page of {mechanism.name!r} cannot be made: {told.problems[0]}")
    images = [_image(mechanism, state, drives) for drives in (False, True)[: 1 + bool(drivers(mechanism))]]
    keys = {key for image in images for _, key in image["functions"]}
    given = {
        "kernels": {key: _packed(data) for key, data in _kernels(keys).items()},
        "images": images,
        "first": [{"text": one} if isinstance(one, str) else {"data": _packed(one)} for one in told.messages],
    }
    text = json.dumps(given, allow_nan=False).replace("<", "\\u003c")  # no name can end the element
    before, end, after = page.html().rpartition(END)
    return f'{before}<script type="application/json" id="local">{text}</script>\n{end}{after}'.encode()


def _packed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def _image(mechanism: Mechanism, state: State, drives: bool) -> dict[str, Any]:
    """The tables of a session, with what the page needs besides; drives: with the drivers, which a drag leaves out."""
    with held(mechanism, state, [], drives).session(state) as session:
        found, system = image.of_session(session), session._system
        stops = [limit_texts(mechanism, stop.name) for stop in session._equations.stops]
        floats = found.places["floats"]
        return {
            **found._asdict(),
            "data": _packed(found.data),
            "layout": image.layout(),
            "sizes": [session._size(number) for number in range(len(session.coordinates))],
            "extent": float(system.judged_length),
            "limits": [[texts[0][1], texts[-1][1]] for texts in stops],
            "stuck": "no step is possible here: a contact ends" if system.has_contacts else "",
            "angles": [*system.variable_names, *system.counted_angles],
            "signals": [floats + 8 * int(place) for place, _ in system.signals],
            "drivers": [signal.name for _, signal in system.signals],
        }


def _kernels(keys: set[str]) -> dict[str, bytes]:
    """The modules of kernels, by their keys."""
    try:
        with zipfile.ZipFile(built.WEBASSEMBLY) as archive:
            return {key: archive.read(key) for key in sorted(keys)}
    except FileNotFoundError:
        raise ModelError(
            "the kernels were not compiled to WebAssembly when cardan was installed: install its wheel, or run make "
            "kernels in a checkout"
        ) from None
    except (KeyError, zipfile.BadZipFile) as error:
        name = built.WEBASSEMBLY.name
        raise ModelError(f"{name} lacks kernels, or is damaged: {error}; install cardan again") from error


class _Told:
    """In place of a connection: keeps what a bench says, in order."""

    def __init__(self) -> None:
        self.messages: list[str | bytes] = []
        self.problems: list[str] = []

    def post(self, message: str | bytes, *, new_scene: bool = False) -> None:
        """A message to the page; what it says of work that is done is not kept."""
        kind = json.loads(message)["is"] if isinstance(message, str) else ""
        if kind == "problem":
            self.problems.append(json.loads(str(message))["text"])
        elif kind not in ("progress", "preparing", "undo"):
            self.messages.append(message)

    def show(self, frame: bytes) -> None:
        """A state of the parts."""
        self.messages.append(frame)
