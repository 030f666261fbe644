"""CAD parts in the page: proposed joints are accepted or refused, and two picked faces make a joint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.cad.draft import Draft
from cardan.view.bench import Bench, without_drivers
from cardan.view.server import Server
from chromium import Browser, Tab, wait_until
from later import Later
from pointer import SHOTS, drag, drawn, line, settle

if find_spec("OCP") is None:
    pytest.skip("no OCP", allow_module_level=True)

steps = Later("tests.cad.steps")
drafts = Later("tests.cad.test_draft")

CLOSED = 1e-9  # of the extent
GREY, ORANGE = (0.6, 0.65, 0.7), (0.9, 0.6, 0.2)


@pytest.fixture(scope="module")
def scattered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bracket with a pin, and a lever with a bore of the same radius, far from it and turned."""
    path = tmp_path_factory.mktemp("desk") / "lever.step"
    bracket = steps.fuse(steps.box((80, 60, 10)), steps.cylinder(8, 30, (0, 0, 5)))
    lever = steps.cut(steps.box((120, 24, 12), (48, 0, 0)), steps.cylinder(8, 40, (0, 0, -20)))
    turned = (0.8, 0.6, 0.0, 0.0)
    steps.write(path, [["bracket", bracket, (), GREY], ["lever", lever, ((60, -70, 60), turned), ORANGE]])
    return path


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same parts, the lever on the pin."""
    path = tmp_path_factory.mktemp("desk") / "placed.step"
    bracket = steps.fuse(steps.box((80, 60, 10)), steps.cylinder(8, 30, (0, 0, 5)))
    lever = steps.cut(steps.box((120, 24, 12), (48, 0, 0)), steps.cylinder(8, 40, (0, 0, -20)))
    steps.write(path, [["bracket", bracket, (), GREY], ["lever", lever, ((0, 0, 11),), ORANGE]])
    return path


@contextmanager
def opened(browser: Browser, path: Path) -> Iterator[tuple[Tab, Bench]]:
    with Server(cd.load_step(path), port=0) as server:
        tab = browser.open(server.address)
        tab.until("window.cardan && cardan.frame && cardan.freedoms ? 1 : 0")
        (bench,) = server._tabs
        yield tab, bench
        tab.close()


def click_face(tab: Tab, part: str, kind: str, number: int | None = None) -> None:
    """Click where a face of a kind is on top; number: that face only."""
    wanted = "true" if number is None else f"face === {number}"
    found = tab.js(
        f"""(() => {{ const s = cardan.stage, d = cardan.desk.data;
        const p = d.parts.find(p => p.name === {json.dumps(part)}), view = s.parts[p.part];
        s.scene.updateMatrixWorld(true);
        const g = view.faces[0].geometry, at = g.getAttribute('position'), index = g.getIndex().array;
        for (let t = 0; t < index.length / 3; t++) {{
          const v = s.camera.position.clone().setScalar(0);
          for (const k of [0, 1, 2])
            v.addScaledVector(s.camera.position.clone().fromBufferAttribute(at, index[3 * t + k]), 1 / 3);
          const [x, y] = s.screen(v.applyMatrix4(view.faces[0].matrixWorld));
          const hit = s.pick(x, y);
          if (!hit || hit.part !== p.part || document.elementFromPoint(x, y) !== s.canvas) continue;
          let n = 0, face = -1;
          for (const [f, c] of p.runs) {{ if (hit.face >= n && hit.face < n + c) face = f; n += c; }}
          if (p.faces[face].kind === {json.dumps(kind)} && {wanted}) return [x, y];
        }} return null; }})()"""
    )
    assert found, f"no {kind} of {part} is seen"
    tab.mouse("Moved", *found)
    tab.mouse("Pressed", *found)
    tab.mouse("Released", *found)


def residual(bench: Bench) -> float:
    return float(without_drivers(bench._model).diagnose(bench._now).residual)


def test_two_picked_faces_make_a_hinge_and_the_parts_are_assembled_and_dragged(
    browser: Browser, scattered: Path, tmp_path: Path
) -> None:
    with opened(browser, scattered) as (tab, bench):
        assert tab.js("cardan.freedoms.dof") == 6  # the lever is free
        assert "No faces" in tab.js("document.querySelector('#desk').innerText")
        start = drawn(tab)
        click_face(tab, "bracket", "cylinder")
        tab.until("document.querySelectorAll('#picks .chip').length === 1 ? 1 : 0")
        assert "radius 8 mm" in tab.js("document.querySelector('#picks').innerText")
        click_face(tab, "lever", "cylinder")
        tab.until("document.querySelectorAll('#picks .chip').length === 2 ? 1 : 0")
        assert tab.js("cardan.desk.painted") == 2
        tab.until("cardan.stage.settled ? 1 : 0")
        tab.screenshot(SHOTS / "desk_picks.png")
        tab.js("document.querySelector('#joint-kind').value = 'revolute'")
        tab.click("#join")
        tab.until("cardan.freedoms && cardan.freedoms.dof === 1 && cardan.frame ? 1 : 0")
        assert residual(bench) <= CLOSED
        assert np.abs(drawn(tab) - start).max() > 0.01, "the lever was not moved to the pin"
        (name,) = bench._draft.proposals
        pose = bench._now["lever"]
        assert np.abs(pose.position[:2]).max() <= CLOSED  # its bore is on the axis of the pin
        before = drawn(tab)
        x, y = drag(tab, "lever", line(-40, -60))
        assert np.abs(drawn(tab) - before).max() > 1e-3, "nothing moved"
        assert tab.js("cardan.frame.residual") <= CLOSED
        tab.mouse("Released", x, y)
        wait_until(lambda: bench._drag is None, what="the end of the drag")
        assert residual(bench) <= CLOSED
        settle(tab)
        tab.screenshot(SHOTS / "desk_hinge.png")
        # the model as a file, with the parts where they are
        keep = "b => { b.text().then(t => saved.push(t)); return make(b); }"
        tab.js(f"void (window.saved = [], window.make = URL.createObjectURL, URL.createObjectURL = {keep})")
        tab.click("#save")
        (tmp_path / "lever.cardan.toml").write_text(tab.until("window.saved[0]"), encoding="utf-8")
        assert not drafts.noise(tmp_path / "lever.cardan.toml")
        read = cd.load(tmp_path / "lever.cardan.toml")
        assert read[name].kind.name == "revolute"
        result = read.assemble()
        assert result.ok
        assert np.abs(result.state["lever"].position - bench._now["lever"].position).max() <= 1e-9
        assert not tab.errors() and not tab.js("cardan.problems")


def test_proposals_have_reasons_and_are_accepted_or_refused(browser: Browser, placed: Path) -> None:
    with opened(browser, placed) as (tab, bench):
        (name,) = Draft(cd.load_step(placed)).proposals
        row = f"[data-proposal='{name}']"
        said = tab.js(f"document.querySelector({json.dumps(row)}).innerText")
        assert said.startswith("revolute") and "a cylinder in a bore of equal radius" in said
        assert tab.js("cardan.freedoms.dof") == 1
        # the faces of a proposal are shown while the pointer is on it
        box = tab.js(f"(r => [r.x + 20, r.y + r.height - 6])"
                     f"(document.querySelector({json.dumps(row)}).getBoundingClientRect())")  # fmt: skip
        tab.mouse("Moved", *box)
        tab.until("cardan.desk.painted >= 2 ? 1 : 0")
        tab.until("cardan.stage.settled ? 1 : 0")
        tab.screenshot(SHOTS / "desk_proposal.png")
        tab.click(f"{row} .refuse")
        tab.until("cardan.freedoms && cardan.freedoms.dof === 6 ? 1 : 0")
        assert tab.js(f"document.querySelector({json.dumps(row)}).classList.contains('refused')")
        tab.click(f"{row} .accept")
        tab.until("cardan.freedoms && cardan.freedoms.dof === 1 ? 1 : 0")
        tab.click("#assemble")
        tab.until("cardan.frame && cardan.freedoms && cardan.freedoms.dof === 1 ? 1 : 0")
        assert residual(bench) <= CLOSED
        assert "every joint is closed" in tab.js("document.querySelector('#desk-text').innerText")
        assert not tab.errors()


@pytest.fixture(scope="module")
def plates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two plates beside each other at different heights; one has a pin of 6 mm, the other a bore of 5 mm."""
    path = tmp_path_factory.mktemp("desk") / "plates.step"
    first = steps.fuse(steps.box((80, 60, 10)), steps.cylinder(6, 20, (20, 0, 5)))
    second = steps.cut(steps.box((60, 40, 10)), steps.cylinder(5, 40, (0, 0, -20)))
    steps.write(path, [["first", first, (), GREY], ["second", second, ((100, 0, 30),), ORANGE]])
    return path


def top(bench: Bench, part: str) -> int:
    """Number of the largest face of a part that points upwards."""
    faces = bench._draft.assembly[part].planes().parallel((0, 0, 1))
    return int(faces.where(lambda face: face.z[2] > 0.0).largest().number)


def join(tab: Tab, clicks: int = 1) -> None:
    """Click on *Add joint*, as often as an impatient user does, and wait for the answer."""
    box = tab.js(
        "(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector('#join').getBoundingClientRect())"
    )
    for _ in range(clicks):
        tab.mouse("Pressed", *box)
        tab.mouse("Released", *box)
    tab.until("!document.querySelector('#join') && cardan.freedoms && cardan.frame ? 1 : 0")
    settle(tab)


def undone(tab: Tab, bench: Bench, left: int, dof: int) -> bool:
    """Whether an undo has arrived and is drawn."""
    is_there = len(bench._undo) == left and bool(tab.js(f"cardan.frame && cardan.freedoms?.dof === {dof} ? 1 : 0"))
    return is_there and bool(np.abs(drawn(tab) - bench._now.coordinates).max() < 1e-6)


def test_flush_faces_turn_no_part_and_undo_returns_to_the_parts_before(browser: Browser, plates: Path) -> None:
    with opened(browser, plates) as (tab, bench):
        start = drawn(tab)
        for part in ("first", "second"):
            click_face(tab, part, "plane", top(bench, part))
        tab.until("document.querySelector('#join') ? 1 : 0")
        join(tab, clicks=3)
        assert not tab.errors(), "a second click on the button is an error"
        assert list(bench._draft.proposals) == ["first - second"]
        assert "flush" in tab.js("document.querySelector('.proposal').innerText")
        now = bench._now["second"]
        assert abs(now.quaternion[0]) == pytest.approx(1.0, abs=1e-9), "the part was turned over"
        assert now.position[2] == pytest.approx(0.0, abs=1e-9)
        assert tab.js("cardan.freedoms.dof") == 3
        tab.screenshot(SHOTS / "desk_flush.png")
        at = drag(tab, "second", line(30, 10, 4))
        tab.mouse("Released", *at)
        wait_until(lambda: bench._drag is None, what="the end of the drag")
        flush = bench._now.coordinates
        # a refused joint, an assembly and a joint are undone one after the other
        tab.click(".proposal .refuse")
        tab.until("cardan.freedoms && cardan.freedoms.dof === 6 ? 1 : 0")
        tab.click("#assemble")
        wait_until(lambda: len(bench._undo) == 4, what="an assembly")  # after a joint, a drag and a refusal
        for k, (dof, poses) in enumerate(((6, flush), (3, flush), (3, None), (6, start))):
            settle(tab)
            tab.click("#undo")
            wait_until(partial(undone, tab, bench, 3 - k, dof), what=f"undo {k}")
            assert poses is None or np.abs(drawn(tab) - poses).max() < 1e-6
        tab.until("!document.querySelector('.proposal') ? 1 : 0")
        assert not bench._draft.proposals and not bench._undo
        assert not tab.errors() and not tab.js("cardan.problems")


def test_a_bore_that_is_too_small_is_told(browser: Browser, plates: Path) -> None:
    with opened(browser, plates) as (tab, bench):
        for part in ("first", "second"):
            click_face(tab, part, "cylinder")
        tab.until("document.querySelector('#join') ? 1 : 0")
        join(tab)
        said = "the bore of radius 5 mm is smaller than the pin of radius 6 mm"
        assert said in tab.until("document.querySelector('.message.warning')?.innerText")
        assert said in tab.js("document.querySelector('.proposal').innerText")
        tab.screenshot(SHOTS / "desk_misfit.png")
        assert residual(bench) <= CLOSED


PIXELS = """((part, face) => { const s = cardan.stage, p = cardan.desk.data.parts[part], view = s.parts[p.part];
const g = view.faces[0].geometry, at = g.getAttribute('position'), index = g.getIndex().array;
const found = {seen: [], hidden: []};
s.scene.updateMatrixWorld(true);
let first = 0;
for (const [f, n] of p.runs) {
  for (let t = first; f === face && t < first + n; t++) for (let a = 1; a < 12; a++) for (let b = 1; a + b < 12; b++) {
    const v = s.camera.position.clone().setScalar(0);
    [a / 12, b / 12, 1 - (a + b) / 12].forEach((w, k) =>
      v.addScaledVector(s.camera.position.clone().fromBufferAttribute(at, index[3 * t + k]), w));
    const [x, y] = s.screen(v.applyMatrix4(view.faces[0].matrixWorld)), hit = s.pick(x, y);
    if (document.elementFromPoint(x, y) !== s.canvas || !hit) continue;
    if (hit.part !== p.part) found.hidden.push([x, y]);
    else if (hit.face >= first && hit.face < first + n) found.seen.push([x, y]);
  }
  first += n;
}
return found; })"""
COLOURS = """((places) => { const s = cardan.stage, gl = s.renderer.getContext(), found = [];
s.renderer.render(s.scene, s.camera);
for (const [x, y] of places) {
  const p = new Uint8Array(4);
  gl.readPixels(Math.round(x), Math.round(gl.drawingBufferHeight - y), 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, p);
  found.push([...p].slice(0, 3));
}
return found; })"""


def test_a_picked_face_is_behind_what_is_in_front_of_it(browser: Browser, placed: Path) -> None:
    """The top of the bracket, which the lever covers in part: there the colour is faint."""
    with opened(browser, placed) as (tab, bench):
        face = top(bench, "bracket")
        places = tab.js(f"{PIXELS}(0, {face})")
        assert len(places["seen"]) > 20 and len(places["hidden"]) > 20
        plain = {key: np.array(tab.js(f"{COLOURS}({json.dumps(places[key])})"), float) for key in places}
        click_face(tab, "bracket", "plane", face)
        tab.until("cardan.desk.painted === 1 ? 1 : 0")
        tab.js("cardan.select(-1, null), cardan.stage.hover(-1)")  # a selected part has another colour
        changed = {
            key: np.abs(np.array(tab.js(f"{COLOURS}({json.dumps(places[key])})"), float) - plain[key]).max(axis=1)
            for key in places
        }
        assert np.median(changed["seen"]) > 80, "the face is not coloured"
        assert np.median(changed["hidden"]) < 30, "the face covers what is in front of it"
        assert np.median(changed["hidden"]) > 2, "a hidden face is not shown at all"
