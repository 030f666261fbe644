"""One HTML file in which a mechanism can be dragged: the page of the workbench with tables and kernels of a session.

As in the workbench, drivers are left out while a part is dragged.  Their sliders, and everything else that needs
another session, are disabled in the page with the reason.

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
from cardan.interact import image as images
from cardan.interact.session import Session
from cardan.kernel import built
from cardan.mechanism import Mechanism
from cardan.view import page
from cardan.view.bench import Bench, limit_texts
from cardan.view.hand import held
from cardan.view.server import OWN, items_of

END = "</body>"


def html(mechanism: Mechanism) -> bytes:
    """The file; ModelError names what cannot be dragged without Python."""
    told = _Told()
    state = Bench(items_of(mechanism), OWN, told).open()
    if told.problems:
        raise ModelError(f"the page of {mechanism.name!r} cannot be made: {told.problems[0]}")
    with held(mechanism, state, [], drives=False).session(state) as session:
        found = images.of_session(session)
        numbers = _numbers(mechanism, session)
    given = {
        "kernels": {key: _packed(data) for key, data in _kernels({key for _, key in found.functions}).items()},
        "image": {**found._asdict(), **numbers, "data": _packed(found.data), "layout": images.layout()},
        "first": [{"text": one} if isinstance(one, str) else {"data": _packed(one)} for one in told.messages],
    }
    text = json.dumps(given, allow_nan=False).replace("<", "\\u003c")  # no name can end the element
    before, end, after = page.html().rpartition(END)
    return f'{before}<script type="application/json" id="local">{text}</script>\n{end}{after}'.encode()


def _packed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def _numbers(mechanism: Mechanism, session: Session) -> dict[str, Any]:
    """What a hand in the page needs besides the tables."""
    stops = [limit_texts(mechanism, stop.name) for stop in session._equations.stops]
    return {
        "sizes": [session._size(number) for number in range(len(session.coordinates))],
        "extent": float(session._system.judged_length),
        "limits": [[texts[0][1], texts[-1][1]] for texts in stops],
        "stuck": "no step is possible here: a contact ends" if session._system.has_contacts else "",
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
