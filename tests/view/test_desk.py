"""CAD parts in the page: proposed joints are accepted or refused, and two picked faces make a joint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
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


def click_face(tab: Tab, part: str, kind: str) -> None:
    """Click where a face of a kind is on top."""
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
          if (p.faces[face].kind === {json.dumps(kind)}) return [x, y];
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
