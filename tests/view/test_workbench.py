"""The workbench in a real Chromium: what is drawn is what was solved, and what the mouse does reaches the joints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.examples import REGISTRY, installed
from cardan.view import bench as bench_module
from cardan.view import hand
from cardan.view.bench import Bench, without_drivers
from cardan.view.server import Server
from chromium import Browser, Tab, wait_until
from layers import sampled
from pointer import SHOTS, drag, drawn, line, rest, screen, settle

FLOAT32 = 2e-6  # of the extent: poses travel as float32
CLOSED = 1e-9  # of the extent
CTRL = 2


def is_closed(bench: Bench) -> bool:
    """Every joint of the state on the server, judged by the library afresh, without drivers."""
    free = without_drivers(bench._model)
    return free.diagnose(bench._now).residual <= CLOSED


@sampled("first", range(4), keep=1)
def test_every_mechanism_of_the_gallery_is_drawn_as_it_was_solved(opened, first) -> None:
    tab, bench = opened("planar_4r")
    for name, example in list(installed().items())[first::4]:
        # one that is open already is loaded anew: its old freedoms are none of the new scene
        tab.js(f"cardan.freedoms = null, cardan.load({json.dumps(name)})")
        tab.until(f"cardan.model.item === {json.dumps(name)} && cardan.frame && cardan.freedoms ? 1 : 0")
        state = example.build().assemble().state
        extent = tab.js("cardan.stage.extent")
        assert np.abs(drawn(tab) - state.coordinates).max() <= FLOAT32 * max(1.0, extent), name
        assert tab.js("cardan.freedoms.dof") == example.dof
        assert tab.js("cardan.stage.parts.slice(1).every(p => p.faces.length)"), f"{name}: a part is not drawn"
        shown = json.loads(tab.js("JSON.stringify(cardan.model.coordinates.map((c, k) => [c.joint, c.name]))"))
        tab.until(f"cardan.values.length === {len(shown)} ? 1 : 0")
        values = tab.js("cardan.values")
        for (joint, word), value in zip(shown, values, strict=True):
            away = value - bench._model[joint].of(word).value(state)
            if bench._model[joint].of(word).unit == "rad":
                away = np.arctan2(np.sin(away), np.cos(away))
            assert abs(away) < 1e-3, (name, joint, word)
        tab.until("cardan.stage.settled ? 1 : 0")
        left, right, top, bottom = tab.js(SEEN)
        panels = (
            "['#tree', '#side', '#tools', '#transport'].map(s => document.querySelector(s).getBoundingClientRect())"
        )
        tree, side, tools, transport = tab.js(f"{panels}.map(r => [r.left, r.right, r.top, r.bottom])")
        assert tree[1] < left and right < side[0], f"{name}: a part is behind a panel"
        assert tools[3] < top and bottom < transport[2], f"{name}: a part is behind a panel"
        tab.screenshot(SHOTS / f"{name}.png")
    assert not tab.errors()


SEEN = """(() => { const s = cardan.stage, box = [Infinity, -Infinity, Infinity, -Infinity];
for (const part of s.parts) for (const mesh of part.faces) {
  const p = mesh.geometry.getAttribute('position');
  for (let k = 0; k < p.count; k += 7) {
    const [x, y] = s.screen(s.camera.position.clone().fromBufferAttribute(p, k).applyMatrix4(mesh.matrixWorld));
    box[0] = Math.min(box[0], x); box[1] = Math.max(box[1], x);
    box[2] = Math.min(box[2], y); box[3] = Math.max(box[3], y);
  } }
return box; })()"""  # left, right, top, bottom [pixels] of everything that is drawn


@pytest.mark.parametrize(
    ("item", "part", "to"),
    [
        ("rsur", "crank", (-40, 50)),
        ("slider_crank", "rod", (-60, -20)),
        ("delta_robot", "platform", (60, -20)),
        ("jansen_leg", "crank", (-30, -30)),
    ],
)
def test_parts_follow_the_mouse_with_closed_joints(opened, item: str, part: str, to: tuple[int, int]) -> None:
    tab, bench = opened(item)
    before, camera = drawn(tab), tab.js("cardan.stage.camera.position.toArray()")
    x, y = drag(tab, part, line(*to))
    assert np.abs(drawn(tab) - before).max() > 1e-3, "nothing moved"
    assert tab.js("cardan.frame.residual") <= CLOSED
    # the arrow starts at the grasped point, ends at the target, and shows the force of the session
    grasp = bench._drag._grasp
    arrow = tab.js("[cardan.stage.arrow.from.toArray(), cardan.hand.grab.target.toArray(), cardan.frame.force]")
    extent = tab.js("cardan.stage.extent")
    assert np.abs(np.array(arrow[0]) - grasp.point).max() <= 1e-5 * extent
    assert np.abs(np.array(arrow[1]) - grasp.target).max() <= 1e-5 * extent
    assert np.abs(np.array(arrow[2]) - grasp.force).max() <= 1e-5 * (1.0 + np.abs(grasp.force).max())
    force = float(np.linalg.norm(grasp.force))
    if tab.js("!document.querySelector('#force').hidden"):
        said = float(tab.js("document.querySelector('#force').textContent").split()[0])
        assert said == pytest.approx(force, rel=0.06, abs=1e-3)
    tab.mouse("Released", x, y)
    wait_until(lambda: bench._drag is None, what="the end of the drag")
    assert is_closed(bench)
    wait_until(
        lambda: np.abs(drawn(tab) - bench._now.coordinates).max() <= FLOAT32 * max(1.0, extent), what="the last pose"
    )
    assert tab.js("cardan.stage.camera.position.toArray()") == camera, "the camera moved"
    assert not tab.js("cardan.problems")
    # undo returns to the pose before
    tab.key("z", "KeyZ", modifiers=CTRL)
    wait_until(lambda: np.abs(drawn(tab) - before).max() < FLOAT32 * max(1.0, extent), what="undo")
    assert not tab.errors()


def limited_door() -> cd.Mechanism:
    m = cd.Mechanism("door")
    leaf = m.body("leaf")
    hinge = m.revolute("hinge", m.ground.frame(), leaf.frame())
    m.body("handle", position=(1.0, 0.0, 0.0))
    m.fixed("screwed", leaf.frame((1, 0, 0), x=(1, 0, 0)), m["handle"].frame((0, 0, 0), x=(1, 0, 0)))
    m.limit("stop", hinge, lower=-0.2, upper=0.3)
    return m


def test_a_limit_stops_the_drag_and_the_arrow_stretches(browser: Browser) -> None:
    with Server(limited_door(), port=0) as server:
        tab = browser.open(server.address)
        tab.until("window.cardan && cardan.frame && cardan.freedoms ? 1 : 0")
        x, y = drag(tab, "leaf", line(-120, -260, 30))
        (bench,) = server._tabs
        angle = bench._model["hinge"].coordinate(bench._as_own(bench._drag._session.state))
        assert angle == pytest.approx(0.3, abs=1e-6) or angle == pytest.approx(-0.2, abs=1e-6), angle
        assert tab.js("cardan.frame.flags & 2"), "the limit is not told"
        assert tab.js("cardan.frame.flags & 4"), "the target is not reached"
        length = tab.js("cardan.stage.arrow.from.distanceTo(cardan.stage.arrow.to)")
        assert length > 0.1
        force, words = tab.js("document.querySelector('#force').textContent").split("\n")
        assert force.endswith(" N")
        bound = "upper limit, 17.19°" if angle > 0 else "lower limit, −11.46°"
        assert words == f"hinge angle is at its {bound} (stop)"
        tab.until(f"document.querySelector('#stops').textContent === {json.dumps(words)} ? 1 : 0")
        tab.until("document.querySelector('#force').classList.contains('short') ? 1 : 0")
        tab.screenshot(SHOTS / "limit.png")
        tab.mouse("Released", x, y)
        tab.until("document.querySelector('#stops').hidden ? 1 : 0")
        tab.close()


def test_a_pinned_part_holds_the_others(opened) -> None:
    tab, bench = opened("five_bar")
    names = list(bench._now.names)
    tab.js(f"cardan.select({names.index('crank_a') + 1 if 'crank_a' in names else 1}, null)")
    pinned = names[tab.js("cardan.selected") - 1]
    tab.key("p", "KeyP", "p")
    tab.until("cardan.pins.size === 1 ? 1 : 0")
    other = names[-1]
    before = drawn(tab)
    x, y = drag(tab, other, line(50, 40))
    after = drawn(tab)
    k = names.index(pinned)
    assert np.abs(after[k] - before[k]).max() < 1e-6, "the pinned part moved"
    assert np.abs(after - before).max() > 1e-4, "nothing moved"
    tab.mouse("Released", x, y)
    tab.until("!cardan.hand.grab ? 1 : 0")


def test_a_driver_plays_is_scrubbed_and_set_by_hand(opened) -> None:
    tab, bench = opened("slider_crank")
    tab.click("#play")
    tab.until("cardan.player ? 1 : 0")
    model = REGISTRY["slider_crank"].build()
    times = tab.js("cardan.player.clip.times")
    moved = model.move(times)
    tab.js(
        "(() => { const s = document.querySelector('#scrub'); s.value = 400; s.dispatchEvent(new Event('input')); })()"
    )
    t = tab.js("cardan.player.time")
    assert t == pytest.approx(0.4 * times[-1])
    assert tab.js("cardan.player.playing") is False
    k = int(np.argmin(np.abs(np.array(times) - t)))
    tab.js(f"(() => {{ cardan.player.seek({times[k]}); cardan.draw(cardan.player.poses); }})()")
    assert np.abs(drawn(tab) - moved.states[k].coordinates).max() < 1e-5
    series = {
        (s["of"], s["what"]): s for s in tab.js("cardan.player.clip.series.map(s => ({...s, values: [...s.values]}))")
    }
    assert np.allclose(series["A", "rate"]["values"], 2 * np.pi, rtol=1e-5)
    assert np.allclose(series["slide", "displacement"]["values"], moved.coordinate(model["slide"]), atol=1e-6)
    assert np.allclose(series["A", "reaction"]["values"], np.linalg.norm(moved.reaction("A").force, axis=1), rtol=1e-4)
    # typed values
    tab.js(
        "(() => { const f = document.querySelector('[data-driver-value]'); f.value = '75';"
        "f.dispatchEvent(new Event('change')); })()"
    )
    wanted = np.radians(75.0)

    def angle() -> float:
        drag = bench._drag
        return bench._model["A"].coordinate(bench._now if drag is None else bench._as_own(drag._session.state))

    wait_until(lambda: abs(np.angle(np.exp(1j * (angle() - wanted)))) < 1e-9, what="the typed angle")
    tab.until("Math.cos(cardan.values[0] - 75 * Math.PI / 180) > 1 - 1e-6 ? 1 : 0")
    assert not tab.errors() and not tab.js("cardan.problems")


def test_a_simulation_plays_and_keeps_its_energy(opened) -> None:
    tab, _ = opened("rsur")
    tab.click("#mode-simulate")
    tab.click("#play")
    tab.until("cardan.player && cardan.player.clip.kind === 'simulation' ? 1 : 0")
    assert tab.js("cardan.player.playing")
    total = np.array(tab.js("[...cardan.player.clip.series.find(s => s.of === 'energy' && s.what === 'total').values]"))
    assert np.ptp(total) < 1e-3 * max(1.0, np.abs(total).max())
    tab.js(
        "(() => { const s = document.querySelector('#plot-choice'); s.value = 'energy|total';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    assert tab.js("cardan.plots.sizes")[-1] == len(total)
    tab.until("cardan.player.time > 0.2 ? 1 : 0")
    tab.key(" ", "Space", " ")
    first = drawn(tab)
    tab.key("ArrowRight")
    tab.key("ArrowRight")
    tab.until("Math.abs(cardan.player.time - cardan.player.clip.times[cardan.player.index]) < 1e-9 ? 1 : 0")
    wait_until(lambda: np.abs(drawn(tab) - first).max() > 0, what="the next pose")
    # a drag goes on from the pose that is shown
    shown = drawn(tab)
    x, y = drag(tab, "crank", line(5, 5, 2))
    assert np.abs(drawn(tab) - shown).max() < 0.3
    tab.mouse("Released", x, y)
    assert not tab.errors()


def test_a_freedom_wiggles_with_closed_joints(opened) -> None:
    tab, bench = opened("delta_robot")
    before = drawn(tab)
    tab.click(".wiggle")
    tab.until("cardan.player && cardan.player.clip.kind === 'wiggle' ? 1 : 0")
    poses = bench._clip.poses
    assert len(poses) > 20 and np.abs(poses - poses[0]).max() > 1e-2
    free = without_drivers(bench._model)
    for row in poses[::7]:
        state = cd.State(bench._now.names, free.system.index, row.copy())
        assert free.diagnose(state).residual <= CLOSED
    tab.until("cardan.player.time > 0.1 ? 1 : 0")
    assert np.abs(drawn(tab) - before).max() > 1e-4
    tab.click("#end")
    wait_until(lambda: np.abs(drawn(tab) - before).max() < 1e-6, what="the pose before")


def test_what_cannot_be_assembled_is_said_in_words(browser: Browser) -> None:
    m = cd.Mechanism("impossible")
    bar = m.body("bar")
    m.revolute("hinge", m.ground.frame(), bar.frame())
    m.distance("rod", bar.point((1, 0, 0)), m.ground.point((5, 0, 0)), 1.0)
    with Server(m, port=0) as server:
        tab = browser.open(server.address)
        text = tab.until("document.querySelector('.message')?.innerText")
        assert "cannot be assembled" in text and "rod" in text
        tab.until("cardan.stage.parts.length === 2 ? 1 : 0")
        tab.until("document.querySelector('#dof').innerText === 'not assembled' ? 1 : 0")
        said = tab.js("document.querySelector('#freedoms').innerText")
        assert "Not assembled" in said and not re.search(r"\d", said), said  # no count, and no motions
        tab.screenshot(SHOTS / "impossible.png")
        tab.close()


@pytest.mark.parametrize("item", ["rsur", "planar_4r"])  # z is up, y is up
def test_a_face_of_the_view_cube_turns_towards_the_viewer_and_reads_upright(opened, item: str) -> None:
    """After a click on a face the view is along its normal, and the face is drawn without a rotation."""
    tab, _ = opened(item)
    for face in ("top", "front", "right", "back", "left", "under"):
        tab.js(f"[...document.querySelectorAll('#cube button')].find(b => b.innerText === '{face}').click()")
        tab.until("!cardan.stage.glide && cardan.stage.settled ? 1 : 0")
        turned = tab.js(
            f"""(() => {{ const b = [...document.querySelectorAll('#cube button')].find(b => b.innerText === '{face}');
            const m = new DOMMatrix(b.parentElement.style.transform).multiply(new DOMMatrix(b.style.transform));
            return [m.m11, m.m12, m.m13, m.m21, m.m22, m.m23, m.m31, m.m32, m.m33]; }})()"""
        )
        assert np.abs(np.array(turned).reshape(3, 3) - np.eye(3)).max() < 5e-3, face
    up = np.array(tab.js("cardan.stage.up.toArray()"))
    tab.js("[...document.querySelectorAll('#cube button')].find(b => b.innerText === 'top').click()")
    tab.until("!cardan.stage.glide && cardan.stage.settled ? 1 : 0")
    away = tab.js("cardan.stage.camera.position.clone().sub(cardan.stage.orbit.target).normalize().toArray()")
    assert np.array(away) @ up > 1.0 - 1e-4
    tab.screenshot(SHOTS / f"top_{item}.png")


# how far labels are from where they belong [pixels]; those that would cover another one are lower
ASIDE = """cardan.joints.marks.map(({joint, node}) => {
const at = cardan.stage.screen(cardan.stage.placeOf(cardan.stage.joints[joint]));
const m = new DOMMatrix(getComputedStyle(node).transform);
return Math.hypot(m.e - at[0] - 10, Math.min(0, m.f - at[1] + 9)); })"""


def test_labels_of_joints_follow_the_camera(opened) -> None:
    """After a click on the view cube, a key, the wheel, another size and another projection."""
    tab, _ = opened("slider_crank")
    tab.click("#toggle-labels")
    cube = "[...document.querySelectorAll('#cube button')]"
    moves = [
        *(lambda face=face: tab.js(f"{cube}.find(b => b.innerText === '{face}').click()") for face in ("top", "right")),
        lambda: tab.key("ArrowRight"),
        lambda: tab.key("+", "Equal", "+"),
        lambda: tab.key("o", "KeyO", "o"),
        lambda: tab.key("-", "Minus", "-"),
        lambda: tab.key("f", "KeyF", "f"),
        lambda: tab.resize(1000, 700),
    ]
    for k, move in enumerate(moves):
        before = tab.js(
            "cardan.stage.camera.matrixWorld.toArray().concat(cardan.stage.camera.projectionMatrix.toArray())"
        )
        move()
        tab.until("!cardan.stage.glide && cardan.stage.settled ? 1 : 0")
        settle(tab)
        after = tab.js(
            "cardan.stage.camera.matrixWorld.toArray().concat(cardan.stage.camera.projectionMatrix.toArray())"
        )
        assert before != after, f"move {k} did not move the camera"
        found = tab.js(ASIDE)
        assert len(found) > 3 and max(found) < 0.5, k
    assert not tab.errors()


def in_view(tab: Tab) -> bool:
    """Whether everything that is drawn is in the page, and beside the panels."""
    left, right, top, bottom = tab.js(SEEN)
    low, high, height = tab.js(
        """(() => { const [tree, side] = ['#tree', '#side'].map(s => document.querySelector(s));
        return [tree.checkVisibility() ? tree.getBoundingClientRect().right : 0,
          side.checkVisibility() ? side.getBoundingClientRect().left : innerWidth, innerHeight]; })()"""
    )
    return bool(low <= left and right <= high and top >= 0 and bottom <= height)


def test_everything_stays_in_view_in_a_page_of_another_size(opened) -> None:
    tab, _ = opened("slider_crank")
    camera = "cardan.stage.camera.position.toArray()"
    for key in ("KeyF", "KeyO"):  # in perspective, and in an orthographic view
        tab.key(key[3].lower(), key, key[3].lower())
        for size in ((1600, 900), (1000, 700), (901, 700), (420, 900), (900, 420), (1280, 800)):
            tab.resize(*size)
            settle(tab)
            assert in_view(tab), (key, size)
        tab.resize(2, 600)  # a cell of a notebook that is not shown yet
        settle(tab)
        tab.resize(1280, 800)
        settle(tab)
        assert in_view(tab), key
    tab.key("o", "KeyO", "o")
    # a view that was turned, shifted and zoomed is the same after another size in between
    tab.key("ArrowRight")
    for _ in range(3):
        tab.key("+", "Equal", "+")
    tab.js("void (cardan.stage.orbit.target.x += 0.01, cardan.stage.orbit.update())")
    before = tab.js(camera)
    tab.resize(700, 900)
    settle(tab)
    assert tab.js(camera) != pytest.approx(before, rel=1e-3)
    tab.resize(1280, 800)
    settle(tab)
    assert tab.js(camera) == pytest.approx(before, rel=1e-6)
    # near and far follow the distance
    away = "cardan.stage.camera.position.distanceTo(cardan.stage.orbit.target)"
    for key, code in (("+", "Equal"), ("-", "Minus")):
        for _ in range(60):
            tab.key(key, code, key)
        near, far, distance, radius = tab.js(
            f"[cardan.stage.camera.near, cardan.stage.camera.far, {away}, cardan.stage.radius]"
        )
        assert near < 0.5 * distance and far > distance + radius, key
    assert not tab.errors()


def test_another_version_that_is_elsewhere_is_in_view(browser: Browser, tmp_path: Path) -> None:
    """The file is saved again with a larger mechanism elsewhere: the camera does not stay where nothing is seen."""

    def door(length: float, x: float) -> None:
        m = cd.Mechanism("door")
        leaf = m.body("leaf", position=(x, 0, 0))
        m.revolute("hinge", m.ground.frame((x, 0, 0)), leaf.frame())
        m.body("handle", position=(x + length, 0.0, 0.0))
        m.fixed("screwed", leaf.frame((length, 0, 0), x=(1, 0, 0)), m["handle"].frame((0, 0, 0), x=(1, 0, 0)))
        m.save(path)

    path = tmp_path / "door.cardan.toml"
    door(1.0, 0.0)
    command = [sys.executable, "-m", "cardan", "view", str(path), "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            tab = browser.open(process.stdout.readline().split()[1])
            tab.until("window.cardan && cardan.frame && cardan.freedoms ? 1 : 0")
            assert in_view(tab)
            camera = "cardan.stage.camera.position.toArray()"
            first = tab.js(camera)
            for length, x, stays in ((0.98, 0.0, True), (3.0, 0.0, False), (3.0, 20.0, False)):
                tab.js("void (window.before = cardan.scene)")
                door(length, x)
                tab.until("cardan.scene !== window.before && cardan.frame && cardan.freedoms ? 1 : 0")
                settle(tab)
                assert in_view(tab), (length, x)
                assert (tab.js(camera) == first) == stays
            tab.close()
        finally:
            process.kill()


def test_show_everything_finds_parts_that_were_moved_away(browser: Browser) -> None:
    m = cd.Mechanism("cart")
    m.body("cart")
    m.drive("motor", m.prismatic("rail", m.ground.frame(z=(1, 0, 0)), m["cart"].frame(z=(1, 0, 0))), 0.0)
    m.body("arm", position=(0.2, 0.0, 0.0))
    m.revolute("hinge", m["cart"].frame((0.2, 0.0, 0.0)), m["arm"].frame())
    with Server(m, port=0) as server:
        tab = browser.open(server.address)
        tab.until("window.cardan && cardan.frame && cardan.freedoms ? 1 : 0")
        assert in_view(tab)
        tab.js("void cardan.drive('motor', 0.8)")
        wait_until(lambda: abs(drawn(tab)[0, 0] - 0.8) < 1e-6, what="the cart at 0.8 m")
        settle(tab)
        assert not in_view(tab)
        tab.key("f", "KeyF", "f")
        settle(tab)
        assert in_view(tab)
        tab.close()


def test_the_list_of_joints_and_the_drivers_have_the_same_turns(opened) -> None:
    """After a driver was set, a motion was scrubbed, and each was undone."""
    tab, _ = opened("slider_crank")
    tab.js("[...document.querySelectorAll('[role=tab]')][1].click()")

    def shown() -> tuple[float, float]:
        tab.js("void cardan.showTexts(performance.now(), true)")
        found = tab.js(
            "[document.querySelector('[data-joint=A]').innerText, document.querySelector('[data-driver-value]').value]"
        )
        return float(found[0].rstrip("°")), float(found[1])

    def both(wanted: float) -> None:
        wait_until(lambda: all(abs(one - wanted) < 0.06 for one in shown()), 60.0, f"{wanted}°, not {shown()}")

    first = shown()[1]
    both(first)
    change = "f => { f.focus(); f.value = %r; f.dispatchEvent(new Event('change')); f.blur(); }"
    for value in (first + 170, first + 360):
        tab.js(f"({change % str(value)})(document.querySelector('[data-driver-value]'))")
        both(value)
    tab.key("z", "KeyZ", modifiers=CTRL)
    both(first)
    tab.click("#play")
    tab.until("cardan.player ? 1 : 0")
    tab.key(" ", "Space", " ")
    scrub = "s => { s.value = %d; s.dispatchEvent(new Event('input')); }"
    spans = []
    for at in (0, 1000, 450, 1000):
        tab.js(f"({scrub % at})(document.querySelector('#scrub'))")
        a, b = shown()
        assert a == pytest.approx(b, abs=0.06), at
        spans.append(b)
    assert spans[1] - spans[0] >= 359.0, "the motion has no whole turn"
    tab.key("z", "KeyZ", modifiers=CTRL)
    tab.until("document.querySelector('.message.info') ? 1 : 0")  # the motion was only looked at
    both(first)
    assert not tab.errors()


def test_nothing_to_undo_is_said_for_a_short_time(opened) -> None:
    tab, _ = opened("slider_crank")
    tab.key("z", "KeyZ", modifiers=CTRL)
    assert "nothing to undo" in tab.until("document.querySelector('.message.info')?.innerText")
    assert not tab.js("document.querySelector('.message.error')")
    tab.until("!document.querySelector('.message') ? 1 : 0", 60.0)


def test_a_late_server_does_not_make_the_arrow_red(opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hand on the way to a target that it reaches; red is for what cannot be reached."""
    monkeypatch.setattr(hand, "MOST_STEPS", 1)
    monkeypatch.setattr(bench_module, "PULL_HZ", 4.0)
    tab, bench = opened("rsur")
    looks = "[cardan.frame.flags, document.querySelector('#force').className]"
    tab.js(
        "(draw => { window.looks = [];"
        f"cardan.stage.onDraw = () => {{ draw(); looks.push({looks}); }}; }})(cardan.stage.onDraw)"
    )
    at = drag(tab, "crank", line(-60, 75, 3))
    wait_until(lambda: not bench._is_pulling(), what="the end of the way")
    settle(tab)
    drawn_as = tab.js("window.looks")
    assert any(flags & 4 and flags & 8 for flags, _ in drawn_as), "the hand was never on the way"
    assert not [one for one in drawn_as if "short" in one[1] and one[0] & 8]
    tab.mouse("Released", *at)


def test_two_tabs_are_independent(opened) -> None:
    one, first = opened("rsur")
    two, second = opened("rsur")
    before = drawn(two)
    x, y = drag(one, "crank", line(-40, 50))
    assert np.abs(drawn(one) - before).max() > 1e-3
    assert np.array_equal(drawn(two), before)
    one.mouse("Released", x, y)
    assert first is not second


def test_a_reload_begins_anew_on_the_same_mechanism(opened, server: Server) -> None:
    tab, bench = opened("watt")
    tab.reload()
    wait_until(lambda: bench not in server._tabs, what="the end of the old tab")
    tab.until("window.cardan && cardan.model && cardan.frame && cardan.model.item === 'watt' ? 1 : 0")


def test_a_tab_that_is_closed_in_mid_drag_leaves_nothing(browser: Browser, server: Server) -> None:
    tab = browser.open(f"{server.address.partition('&')[0]}&item=rsur")
    tab.until("window.cardan && cardan.frame && cardan.freedoms ? 1 : 0")
    drag(tab, "crank", line(-30, 30))
    (bench,) = server._tabs
    tab.close()
    wait_until(lambda: not server._tabs, what="the end of the tab")
    assert bench.join(60.0)


def test_the_page_reconnects_after_a_restart_and_keeps_the_pose(browser: Browser) -> None:
    def start(port: int) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "cardan", "view", "rsur", "--no-browser", "--port", str(port)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        said = process.stdout.readline()
        assert said.startswith("workbench: "), said
        return process, said.split()[1]

    process, address = start(0)
    try:
        tab = browser.open(address)
        tab.until("window.cardan && cardan.frame && cardan.freedoms ? 1 : 0")
        x, y = drag(tab, "crank", line(-40, 50))
        tab.mouse("Released", x, y)
        settle(tab)
        before = rest(tab)
        process.kill()
        process.wait()
        tab.until("document.querySelector('.message.lost') ? 1 : 0")
        process, again = start(int(address.split(":")[2].split("/")[0]))
        assert again != address  # the page has the token of the server before, and gets the new one
        tab.until("document.querySelector('#lamp.on') && cardan.frame && cardan.freedoms ? 1 : 0")
        wait_until(lambda: np.abs(drawn(tab) - before).max() < 1e-5, what="the pose before the restart")
        tab.js("location.reload()")
        tab.until("document.querySelector('#lamp.on') && window.cardan && cardan.frame && cardan.freedoms ? 1 : 0")
        tab.close()
    finally:
        process.kill()
        process.wait()


def test_a_saved_page_plays_and_scrubs_from_disk(browser: Browser, tmp_path: Path) -> None:
    m = REGISTRY["slider_crank"].build()
    moved = m.move(np.linspace(0.0, 1.0, 61))
    path = tmp_path / "slider.html"
    moved.save(path)
    tab = browser.open(path.as_uri())
    tab.until("window.cardan && cardan.player ? 1 : 0")
    tab.until("cardan.player.time > 0.05 ? 1 : 0")
    tab.js(
        "(() => { const s = document.querySelector('#scrub'); s.value = 500; s.dispatchEvent(new Event('input')); })()"
    )
    assert np.abs(drawn(tab) - moved.states[30].coordinates).max() < 1e-5
    assert not tab.errors()
    loaded = tab.js("performance.getEntriesByType('resource').map(e => e.name)")
    assert not [name for name in loaded if not name.startswith(("data:", "blob:"))], loaded
    tab.screenshot(SHOTS / "saved.png")
    tab.close()


def test_a_finger_drags_and_keys_reach_everything(opened) -> None:
    tab, _ = opened("planar_4r")
    part = tab.js("cardan.stage.parts[1].name")
    before = drawn(tab)
    x, y = screen(tab, part)
    tab.touch("Start", [(x, y)])
    for k in range(1, 10):
        tab.touch("Move", [(x - 5 * k, y + 4 * k)])
    tab.until("cardan.frame.flags & 1 ? 1 : 0")
    tab.touch("End", [])
    tab.until("!cardan.hand.grab ? 1 : 0")
    assert np.abs(drawn(tab) - before).max() > 1e-4
    # every control can be focused, and the arrow keys move the selected part
    controls = "[...document.querySelectorAll('button, input, select, #stage')]"
    assert tab.js(f"{controls}.filter(e => e.tabIndex < 0).map(e => e.innerText)") == []
    tab.js("(cardan.select(1, null), document.querySelector('#stage').focus())")
    settle(tab)
    before = drawn(tab)
    for _ in range(4):
        tab.key("ArrowLeft")
    wait_until(lambda: np.abs(drawn(tab) - before).max() > 1e-4, what="a part moved by keys")
    # traces, ghost and hide by keys
    tab.key("x", "KeyX", "x")
    tab.key("ArrowLeft")
    tab.until("cardan.stage.traces.length(1) > 1 ? 1 : 0")
    tab.key("t", "KeyT", "t")
    assert tab.js("cardan.stage.parts[1].ghost && cardan.stage.parts[1].material.opacity < 0.5")
    tab.key("h", "KeyH", "h")
    assert tab.js("!cardan.stage.parts[1].visible && !cardan.stage.parts[1].faces[0].visible")
    # without a selected part, arrow keys turn the view, + and − zoom, and the view cube is reached by Tab
    tab.js("cardan.select(-1, null)")
    away = "cardan.stage.camera.position.clone().sub(cardan.stage.orbit.target)"
    first, far = tab.js(f"{away}.normalize().toArray()"), tab.js(f"{away}.length()")
    tab.key("ArrowRight")
    turned = tab.js(f"{away}.normalize().toArray()")
    assert np.degrees(np.arccos(np.dot(first, turned))) == pytest.approx(7.0, abs=1.0)
    tab.key("+", "Equal", "+")
    assert tab.js(f"{away}.length()") == pytest.approx(far / 1.15, rel=1e-3)
    tab.js("document.querySelector('#cube button').focus()")
    tab.key("Enter", "Enter", "\r")
    tab.until("!cardan.stage.glide && cardan.stage.settled ? 1 : 0")
    up = np.array(tab.js("cardan.stage.up.toArray()"))
    assert abs(np.dot(tab.js(f"{away}.normalize().toArray()"), up)) < 0.01  # from the front
    tab.js("document.querySelector('#stage').focus()")
    # named poses
    tab.js("document.querySelector('#pose-name').value = 'open'")
    tab.click("#keep")
    tab.until("cardan.kept.includes('open') ? 1 : 0")
    kept = drawn(tab)
    tab.click("#reset")
    wait_until(lambda: np.abs(drawn(tab) - kept).max() > 1e-4, what="the first pose")
    tab.click("[data-pose='open']")
    wait_until(lambda: np.abs(drawn(tab) - kept).max() < 1e-6, what="the named pose")
    assert not tab.errors()


def test_ctrl_pulls_with_a_force_under_gravity(opened) -> None:
    tab, bench = opened("rsur")
    before = drawn(tab)
    x, y = drag(tab, "rocker", line(40, 10), CTRL)
    wait_until(lambda: bench._drag is not None and bench._drag.is_dynamic, what="dynamics")
    wait_until(lambda: tab.js("cardan.frame.time") > 0.2, what="time that passes")
    frame = tab.js("[cardan.frame.residual, Math.hypot(...cardan.frame.force)]")
    assert frame[0] <= CLOSED
    assert 0.0 < frame[1] < 1e4
    assert tab.js("Number.isFinite(cardan.frame.energy)")
    assert np.abs(drawn(tab) - before).max() > 1e-3
    tab.mouse("Released", x, y, modifiers=CTRL)
    wait_until(lambda: bench._drag is None, what="the end of the drag")
    assert is_closed(bench)
    # live: it falls by itself until it is switched off
    tab.click("#toggle-live")
    tab.until("cardan.frame.time > 0.3 ? 1 : 0")
    tab.click("#toggle-live")
    wait_until(lambda: bench._drag is None, what="the end of live dynamics")
    assert is_closed(bench)
    assert not tab.errors() and not tab.js("cardan.problems")
