"""The page is never silent: it says what is done, and what waits for it is disabled with the reason."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import cardan as cd
from cardan.examples import installed
from cardan.view import bench as bench_module
from cardan.view.bench import WORDS, Bench
from cardan.view.protocol import COMMANDS, read
from cardan.view.server import Server
from chromium import Tab, wait_until
from pointer import SHOTS, drag, line

READY = "window.cardan && cardan.model && cardan.frame && cardan.freedoms ? 1 : 0"
STREAMED = {"drag", "drive"}  # many in a second: only the first of them may take long
DOING = "document.querySelector('#progress')?.hidden === false ? document.querySelector('#doing').innerText : ''"
OPENING = f"({DOING}).startsWith('Opening') ? {DOING} : ''"
TITLE = "document.querySelector('{0}').disabled ? document.querySelector('{0}').title : ''"


class Out:
    """Takes what a bench posts."""

    def __init__(self) -> None:
        self.texts: list[dict[str, Any]] = []

    def post(self, message: str | bytes, *, new_scene: bool = False) -> None:
        if isinstance(message, str):
            self.texts.append(json.loads(message))

    def show(self, frame: bytes) -> None:
        pass

    def is_done(self) -> bool:
        """Whether the last command was said to be done."""
        return any(message["is"] == "progress" and message["text"] is None for message in self.texts)


def test_every_command_says_what_it_does_and_when_it_is_done() -> None:
    assert set(WORDS) == {*COMMANDS, "reload"} - STREAMED
    out, example = Out(), installed()["slider_crank"]
    bench = Bench({"crank": ("crank", example.build, 0.1)}, "crank", out)  # type: ignore[arg-type]  # all it calls
    bench.start()
    given: dict[str, dict[str, Any]] = {
        "drag": {"body": 0, "point": [0, 0, 0], "target": [0.1, 0.1, 0], "push": False},
        "drive": {"driver": "motor", "value": 0.3},
        "pin": {"body": 0, "on": False},
        "play": {"duration": 0.1},
        "simulate": {"duration": 0.1},
        "live": {"on": False},
        "wiggle": {"freedom": 0},
        "at": {"clip": 1, "index": 0},
        "keep": {"name": "one"},
        "pose": {"name": "one"},
        "restore": {"poses": [0.0] * 7},
        "load": {"item": "crank"},
        "decide": {"joint": "A", "accept": True},
        "join": {"kind": "revolute", "part_a": "a", "face_a": 0, "part_b": "b", "face_b": 0},
    }
    found: dict[str, list[str | None]] = {}
    for do in ("load", *COMMANDS):
        if found:  # the first is made by the bench
            bench.put(read(json.dumps({"do": do, **given.get(do, {})})))
        wait_until(out.is_done, what=do)
        found[do] = [m["text"] for m in out.texts if m["is"] == "progress"]
        out.texts.clear()
    bench.close()
    assert bench.join(60.0)
    for do, texts in found.items():
        said = bench_module.HAND if do in STREAMED else WORDS[do].format(title="“crank”")
        assert texts[0] == said and texts[-1] is None and None not in texts[:-1], (do, texts)
    phases = [text for text in found["load"] if text]
    assert phases == [
        "Opening “crank”",
        "Opening “crank”: closing the joints",
        "Opening “crank”: drawing",
        "Counting degrees of freedom",
    ]


@pytest.fixture
def slow(server: Server) -> Iterator[threading.Event]:
    """A mechanism of the list that takes as long to build as the test wants."""
    done = threading.Event()

    def build() -> cd.Mechanism:
        assert done.wait(300.0)
        return installed()["slider_crank"].build()

    server._items["slow"] = ("slow crank", build, 1.0)
    yield done
    done.set()
    del server._items["slow"]


def reasons(tab: Tab) -> dict[str, str]:
    """Tips of the controls that are disabled."""
    found: dict[str, str] = tab.js(
        "Object.fromEntries([...document.querySelectorAll('button, input, select')]"
        ".filter(e => e.disabled).map(e => [e.id || e.dataset.driver || e.className, e.title]))"
    )
    return found


def test_the_page_says_what_it_opens_and_controls_wait_for_it(browser, server: Server, slow) -> None:
    tab = browser.open(f"{server.address.partition('&')[0]}&item=slow")
    assert tab.until(OPENING) == "Opening “slow crank”"
    assert tab.js("document.querySelector('#progress progress').position") == -1.0  # it is not known how long
    assert tab.js("document.querySelector('#picker').innerText").startswith("Cardan")
    waiting = reasons(tab)
    for name in ("play", "undo", "reset", "toggle-live", "mode-simulate", "keep"):
        assert waiting[name].endswith("Opening “slow crank”"), (name, waiting)
    assert not {"picker", "theme", "help", "fit"} & set(waiting)
    tab.screenshot(SHOTS / "opening.png")
    slow.set()
    tab.until(READY)
    tab.until(f"({DOING}) === '' ? 1 : 0")
    assert reasons(tab) == {
        "undo": "Undo (Ctrl+Z) – there is nothing to undo",
        "toggle-reactions": "Forces in the joints, while a motion is shown – none is shown, or its forces are unknown",
        "end": "Back to the pose before – no motion is shown: play one first",
        "scrub": "no motion is shown: play one first",
    }
    tab.click("#play")
    tab.until("cardan.player ? 1 : 0")
    assert set(reasons(tab)) == {"undo"}
    assert not tab.errors()
    tab.close()


def test_opening_can_be_stopped_and_the_mechanism_before_stays(opened, slow) -> None:
    tab, bench = opened("planar_4r")
    tab.js("cardan.load('slow')")
    assert tab.until(OPENING) == "Opening “slow crank”"
    tab.click("#cancel")
    wait_until(bench._cancel.is_set, what="the request to stop")
    slow.set()
    tab.until(f"({DOING}) === '' ? 1 : 0")
    assert tab.js("cardan.model.item") == "planar_4r" and bench.item == "planar_4r"
    drag(tab, "crank", line(30, 30))
    assert not tab.errors()


def test_another_mechanism_may_be_chosen_while_one_is_opened(opened, slow) -> None:
    tab, bench = opened("planar_4r")
    tab.js("cardan.load('slow')")
    tab.until(OPENING)
    tab.js("cardan.load('bricard')")
    wait_until(bench._cancel.is_set, what="the request to open another one")
    slow.set()
    tab.until("cardan.model.item === 'bricard' && cardan.freedoms ? 1 : 0")
    assert bench.item == "bricard" and not tab.js("cardan.problems.length")


def test_the_page_says_what_it_compiles_and_which_of_how_many(opened, server: Server) -> None:
    bits = f"{int.from_bytes(os.urandom(3), 'big'):024b}"  # a graph of its own: its kernels are not in the cache

    def unique(x):
        for bit in bits:
            x = cd.sin(x) if bit == "1" else cd.cos(x)
        return x

    @cd.primitive(a="point", b="point")
    def cam(a, b):
        return b.x - a.x - unique(a.y)

    @cd.primitive(a="point", b="point")
    def lobe(a, b):
        return b.y - a.y - unique(a.z)

    def build() -> cd.Mechanism:
        m = cd.Mechanism("own")
        bob = m.body("bob", position=(1.0, 0.0, 0.0))
        m.constrain("one", cam, a=m.ground.point(), b=bob.point())
        m.constrain("two", lobe, a=m.ground.point(), b=bob.point())
        return m

    server._items["compiled"] = ("with own constraints", build, 1.0)
    tab, _ = opened("planar_4r")
    tab.js(
        "window.said = []; const own = cardan.messages.setWork.bind(cardan.messages);"
        "cardan.messages.setWork = (work) => { own(work); if (work) said.push(work); }; 0"
    )
    tab.js("cardan.load('compiled')")
    tab.until("cardan.model.item === 'compiled' && cardan.freedoms ? 1 : 0")
    said = {work["text"]: work for work in tab.js("said")}
    for number, name in ((1, "cam"), (2, "lobe")):
        work = said[f"Compiling your own constraint '{name}', once: {number} of 2"]
        assert (work["part"], work["stoppable"], work["waits"]) == ((number - 1) / 2, False, True)
    del server._items["compiled"]
    assert not tab.errors()


def test_kernels_that_are_compiled_in_advance_are_shown_beside_the_state(opened) -> None:
    from cardan.kernel import announce

    tab, _ = opened("planar_4r")
    shown = "document.querySelector('#preparing').hidden ? '' : document.querySelector('#preparing').innerText"

    def compile_one(begin: threading.Event, end: threading.Event) -> None:
        with announce.named("kernels of drags", 3, 0):
            announce.began(compile_one)
        begin.set()
        assert end.wait(300.0)
        announce.ended()

    begin, end = threading.Event(), threading.Event()
    thread = threading.Thread(target=compile_one, args=(begin, end), name=bench_module.PREPARING)
    thread.start()
    assert tab.until(shown) == "Compiling kernels of drags, once: 3; the first drag waits for it"
    assert tab.js(DOING) == "" and set(reasons(tab)) == {"undo", "toggle-reactions", "end", "scrub", "mode-move"}
    tab.screenshot(SHOTS / "preparing.png")
    end.set()
    thread.join()
    tab.until(f"({shown}) === '' ? 1 : 0")


def test_undo_is_possible_after_a_drag_and_not_before(opened) -> None:
    tab, _ = opened("planar_4r")
    assert tab.js(TITLE.format("#undo")).endswith("there is nothing to undo")
    assert tab.js(TITLE.format("#mode-move")) == "it has no driver"
    x, y = drag(tab, "crank", line(30, 30))
    tab.mouse("Released", x, y)
    tab.until("!document.querySelector('#undo').disabled ? 1 : 0")
    tab.click("#undo")
    tab.until("document.querySelector('#undo').disabled ? 1 : 0")


def test_without_a_server_controls_say_so_until_it_is_back(browser) -> None:
    with Server(port=0) as server:
        port = server.port
        tab = browser.open(server.address)
        tab.until(READY)
        tab.until("!document.querySelector('#play').disabled ? 1 : 0")
    assert tab.until(TITLE.format("#play")).endswith("the server does not answer")
    tab.screenshot(SHOTS / "lost.png")
    with Server(port=port):
        tab.until("!document.querySelector('#play').disabled ? 1 : 0")
        tab.close()
