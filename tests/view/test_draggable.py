"""Pages that need no server: the kernels in WebAssembly follow the hand as the native session does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.errors import ModelError
from cardan.examples import installed
from cardan.interact import image
from cardan.interact.session import SessionStatus
from cardan.kernel import built
from cardan.view import draggable
from cardan.view.hand import STIFFNESS, held
from layers import sampled

pytestmark = pytest.mark.skipif(not built.keys(), reason="the kernels are not built: make kernels")

EXAMPLES = installed()
SAME = 1e-10  # of the extent: poses in the page and here, where a target is reached
ROUNDED = 4e-16  # of targets: near a dead point, and in a screw, this moves the native session by more than SAME
SENSITIVE = 30.0  # times that; a cycle in the page rounds more often: libm of the browser, no fused products
POINT = np.array([0.11, 0.07, 0.05])  # of the extent: the grasped point, in the axes of the body

FOLLOW = """((targets, body, point, stiffness) => {
  const c = cardan.link.socket.sessions[0], poses = [], statuses = [];
  let worst = 0;
  c.grasp(body, point, stiffness);
  for (const target of targets) {
    c.aim(target);
    statuses.push(c.step());
    worst = Math.max(worst, c.residual);
    poses.push([...c.poses]);
  }
  c.release();
  return [poses, statuses, worst];
})"""


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("pages")


def shown(browser, files: Path, name: str):
    path = files / f"{name}.html"
    if not path.is_file():
        EXAMPLES[name].build().save(path)
    tab = browser.open(path.as_uri())
    tab.until("window.cardan && cardan.frame && !document.querySelector('#progress:not([hidden])') ? 1 : 0")
    return tab


def followed(name: str, targets: np.ndarray, body: int) -> tuple[np.ndarray, list[int]]:
    """Poses and statuses of the native session."""
    m = EXAMPLES[name].build()
    state = m.assemble().state
    with held(m, state, [], drives=False).session(state) as session:
        hand = session.grasp(state.names[body], POINT * m.system.judged_length, stiffness=STIFFNESS)
        poses, statuses = [], []
        for target in targets:
            hand.target = target
            statuses.append(session.step())
            poses.append(session.coordinates.copy())
    return np.array(poses), statuses


def path_of(name: str, count: int) -> tuple[np.ndarray, int]:
    """Targets that a point of the last body can reach: those of a drag that goes round, and comes back."""
    m = EXAMPLES[name].build()
    state = m.assemble().state
    body = len(state.names) - 1
    size = m.system.judged_length
    angle = 2.0 * np.pi * np.arange(count) / count
    way = 0.02 * size * np.stack([np.sin(3 * angle), np.sin(angle), np.sin(2 * angle)], axis=1)
    with held(m, state, [], drives=False).session(state) as session:
        hand = session.grasp(state.names[body], POINT * size)
        first, reached = hand.point, []
        for one in way:
            hand.target = first + one
            for _ in range(5):
                session.step()
            reached.append(hand.point)
    return np.array(reached), body


def compare(name: str, browser, files: Path, count: int) -> None:
    """Drag along a path of so many targets, five cycles each, in the page and here."""
    tab = shown(browser, files, name)
    extent = EXAMPLES[name].build().system.judged_length
    targets, body = path_of(name, count)
    targets = np.repeat(targets, 5, axis=0)
    given = json.dumps([targets.tolist(), body, (POINT * extent).tolist(), STIFFNESS])
    poses, statuses, worst = tab.js(f"{FOLLOW}(...{given})")
    native, expected = followed(name, targets, body)
    assert worst <= 1e-12
    other, others = followed(name, targets * (1.0 + ROUNDED), body)
    differ = np.array(statuses) != expected
    assert differ.sum() <= 3 * (np.array(others) != expected).sum()
    reached = (np.array(expected) == SessionStatus.REACHED) & ~differ
    assert reached.sum() >= 5  # a path of a rolling body leads elsewhere when it is repeated
    most = max(SAME * extent, SENSITIVE * np.abs(other - native)[reached].max())
    assert np.abs(np.array(poses).reshape(native.shape) - native)[reached].max() <= most
    assert not tab.errors()
    tab.close()


@sampled("name", EXAMPLES, 4)
def test_a_drag_in_the_page_is_that_of_the_native_session(name, browser, files):
    """Poses where targets are reached, statuses, and the residual in every cycle."""
    compare(name, browser, files, 40)


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_long_drags_in_the_page_are_those_of_the_native_session(name, browser, files):
    """2,000 cycles."""
    compare(name, browser, files, 400)


@sampled("name", EXAMPLES, 1)
def test_two_exports_in_two_processes_are_equal_byte_for_byte(name, files):
    """No word of the heap and no path is in the file."""
    code = f"import sys; from cardan.examples import installed; installed()[{name!r}].build().save(sys.argv[1])"
    one = files / f"again-{name}.html"
    filler = "x = [bytes(k % 251 for k in range(n)) for n in range(2000)]; "  # another state of the heap
    subprocess.run([sys.executable, "-c", filler + code, one], check=True, timeout=300)
    EXAMPLES[name].build().save(files / f"{name}.html")
    assert one.read_bytes() == (files / f"{name}.html").read_bytes()
    assert str(Path(cd.__file__).parent).encode() not in one.read_bytes()


def test_the_page_is_dragged_by_the_mouse_and_says_what_it_cannot(browser, files, tmp_path):
    tab = shown(browser, files, "rsur")
    # wait for the drawing, then drag the crank
    tab.until("cardan.stage.parts.length > 1 ? 1 : 0")
    before = np.array(tab.js("[...cardan.poses]"))
    x, y = tab.js("cardan.stage.screen(cardan.stage.toWorld(1, cardan.farthest(1)))")
    tab.mouse("Moved", x, y)
    tab.mouse("Pressed", x, y)
    for k in range(1, 12):
        tab.mouse("Moved", x - 4 * k, y + 2 * k, held=True)
    moved = "Math.max(...cardan.poses.map((x, k) => Math.abs(x - given[k])))"
    tab.until(f"(given => {moved} > 1e-2 ? 1 : 0)({before.tolist()})")  # the hand goes on where no event comes
    tab.mouse("Released", x - 44, y + 22)
    tab.until("!cardan.hand.grab ? 1 : 0")
    assert tab.js("cardan.frame.residual") <= 1e-12
    # undo returns to the first pose; so does reset
    tab.click("#undo")
    tab.until(f"Math.abs(cardan.poses[0] - {before[0]}) < 1e-7 ? 1 : 0")
    assert np.abs(np.array(tab.js("[...cardan.poses]")) - before).max() <= 1e-7
    # a simulation needs Python, and the button says so
    assert tab.js("document.querySelector('#play').disabled")
    assert "needs Python" in tab.js("document.querySelector('#play').title")
    tab.js("cardan.link.send({do: 'simulate', duration: 1})")
    tab.until("cardan.problems.some(text => text.includes('Python')) ? 1 : 0")
    assert not tab.errors()
    loaded = tab.js("performance.getEntriesByType('resource').map(e => e.name)")
    assert not [name for name in loaded if not name.startswith(("data:", "blob:"))], loaded
    tab.close()


def test_drivers_are_moved_between_drags(browser, files):
    """A drag, a driven value, a drag, and back: after each the joints are closed, and the driver has its value."""
    tab = shown(browser, files, "slider_crank")
    m = EXAMPLES["slider_crank"].build()
    state = m.assemble().state
    before = np.array(tab.js("[...cardan.link.socket.cycles.poses]"))
    send = "(message => { const s = cardan.link.socket; s.send(JSON.stringify(message)); })"
    still = "cardan.frame && !(cardan.frame.flags & 8) ? 1 : 0"

    def drag(target):
        message = {"do": "drag", "seq": 1, "body": 0, "point": [0.1, 0.0, 0.0], "target": target, "push": False}
        tab.js(f"{send}({json.dumps(message)})")
        tab.until(still)
        tab.js(f"{send}({{do: 'drop', seq: 2}})")

    def driven(value):
        """Poses in the page, and of a native session."""
        tab.js(f"{send}({{do: 'drive', seq: 3, driver: 'motor', value: {value}}})")
        tab.until(still)
        with held(m, state, [], drives=True).session(state) as session:
            session.drive("motor", value)
            while session.step() == SessionStatus.MOVING:
                pass
            return np.array(tab.js("[...cardan.link.socket.cycles.poses]")), session.coordinates.ravel().copy()

    drag([1.0, 2.0, 0.0])
    for value in (1.3, -0.4, 2.5):
        found, expected = driven(value)
        assert np.abs(found - expected).max() <= SAME * m.system.judged_length
        assert tab.js("cardan.frame.residual") <= 1e-12
        drag([-0.3, 0.5, 0.0])
        assert np.abs(np.array(tab.js("[...cardan.link.socket.cycles.poses]")) - found).max() > 1e-3
        assert tab.js("cardan.frame.residual") <= 1e-12
    for _ in range(7):
        tab.js(f"{send}({{do: 'undo', seq: 4}})")
    assert np.array_equal(tab.js("[...cardan.link.socket.cycles.poses]"), before)
    assert not tab.js("document.querySelector('[data-driver]').disabled")
    assert not tab.errors()
    tab.close()


def test_limits_are_felt_and_named_in_the_page(browser, files):
    """Also after undo, which returns to a pose before the limit was reached."""
    tab = shown(browser, files, "folding_table")
    targets, body = path_of("folding_table", 200)
    tab.js(
        "(at => { const s = cardan.link.socket;"
        f" s.send(JSON.stringify({{do: 'drag', seq: 1, body: {body}, point: [0, 0, 0], target: at, push: false}})); }})"
        f"({(targets[0] + 50.0).tolist()})"
    )
    tab.until("cardan.stops.length ? 1 : 0")
    assert all("limit" in text for text in tab.js("cardan.stops"))
    tab.js("cardan.link.send({do: 'undo'})")
    tab.until("cardan.stops.length === 0 ? 1 : 0")
    assert tab.js("cardan.frame.residual") <= 1e-12
    tab.close()


def test_without_webassembly_the_page_says_so_and_shows_the_mechanism(browser, files):
    path = files / "planar_4r.html"
    EXAMPLES["planar_4r"].build().save(path)
    tab = browser.open(path.as_uri(), before="delete window.WebAssembly")
    tab.until("window.cardan && cardan.problems.length && cardan.frame ? 1 : 0")
    assert "WebAssembly" in tab.js("cardan.problems[0]")
    tab.close()


def height(x, c, out):
    out[0] = x[2]


def slope(x, c, out):
    out[0], out[1], out[2] = 0.0, 0.0, 1.0


def test_a_function_by_hand_is_refused_by_name(tmp_path):
    """It has no recorded graph, so that no tape can be made of it."""
    m = cd.Mechanism("one")
    flat = cd.primitive(i="point", rows=1, derivative=slope, parameters=[])(height)
    m.constrain("level", flat, i=m.body("part").point())
    assert m.assemble().ok
    with pytest.raises(ModelError, match=r"'level' is a function by hand.*cardan view"):
        m.save(tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_collisions_are_refused(tmp_path):
    m = cd.Mechanism("two")
    for x in (0.0, 1.0):
        m.body(f"box {x}", position=(x, 0.0, 0.0)).attach(cd.shapes.box(0.1, 0.1, 0.1))
    m.collide("all")
    with pytest.raises(ModelError, match=r"collide.*collisions"):
        m.save(tmp_path / "page.html")


def test_a_mechanism_without_bodies_and_a_length_in_time_are_refused(tmp_path):
    m = cd.Mechanism("empty")
    with pytest.raises(ModelError, match="no bodies"):
        m.save(tmp_path / "page.html")
    m.distance("rod", m.ground.point(), m.body("b", position=(1, 0, 0)).point(), lambda t: 1 + 0.1 * t)
    with pytest.raises(ModelError, match=r"'rod'.*function of time.*page without Python"):
        m.save(tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_page_without_built_kernels_is_refused(monkeypatch):
    monkeypatch.setattr(built, "keys", dict)
    with pytest.raises(ModelError, match="make kernels"):
        draggable.html(EXAMPLES["planar_4r"].build())


def test_a_damaged_archive_of_kernels_is_refused(monkeypatch, tmp_path):
    for content in (b"", built.WEBASSEMBLY.read_bytes()[:2000]):
        (tmp_path / "library.wasm.zip").write_bytes(content)
        monkeypatch.setattr(built, "WEBASSEMBLY", tmp_path / "library.wasm.zip")
        with pytest.raises(ModelError, match="damaged"):
            draggable.html(EXAMPLES["planar_4r"].build())


def test_every_address_of_the_image_is_within_it():
    m = EXAMPLES["rsur"].build()
    with m.copy().session() as session:
        made = image.of_session(session)
    words = np.frombuffer(made.data, dtype=np.int64)
    for place in made.addresses:
        assert 0 < words[place // 8] < len(made.data)
    assert all(words[place // 8] == 0 for place, _ in made.functions)
    others = np.delete(words, np.array(made.addresses) // 8)
    heap = [id(object()) & ~0xFFFFFFF, session._q.__array_interface__["data"][0] & ~0xFFFFFFF]
    for begin in heap:  # no word is an address of this process
        assert not ((others >= begin) & (others < begin + (1 << 28))).any()
