"""What the page shows around the drawing, in a real Chromium: each control does what its name says."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest

from cardan.examples import REGISTRY
from chromium import Tab, wait_until
from pointer import SHOTS, drag, line, rest, screen, settle


def text(tab: Tab, selector: str) -> str:
    return str(tab.js(f"document.querySelector({json.dumps(selector)}).innerText"))


def change(tab: Tab, selector: str, value: str, event: str = "change") -> None:
    """Give a field another value, as a person does."""
    tab.js(
        f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)};"
        f"e.dispatchEvent(new Event('{event}')); }})()"
    )


def test_parts_are_listed_hovered_picked_hidden_and_seen_through(opened) -> None:
    tab, bench = opened("slider_crank")
    names = ["ground", *bench._now.names]
    # software rendering, as here: light mode
    assert tab.js("[cardan.stage.software, cardan.stage.shadows, cardan.stage.parts[1].material.type]") == [
        True,
        False,
        "MeshLambertMaterial",
    ]
    assert tab.js("[...document.querySelectorAll('#parts .row .name')].map(e => e.innerText)") == names
    k = names.index("rod")
    x, y = screen(tab, "rod")
    tab.mouse("Moved", x, y)
    tab.until("!document.querySelector('#tip').hidden ? 1 : 0")
    assert text(tab, "#tip") == "rod"
    assert tab.js(f"document.querySelectorAll('#parts .row')[{k}].classList.contains('over')")
    tab.mouse("Pressed", x, y)
    tab.mouse("Released", x, y)
    tab.until(f"cardan.selected === {k} ? 1 : 0")
    assert text(tab, "#part h2") == "rod"
    assert "B" in text(tab, "#part p")  # its joints
    # one part with a look of its own does not change the others
    others = [i for i in range(1, len(names)) if i != k]
    tab.click(f"#parts [data-part='{k}'] .ghost")
    assert tab.js(f"cardan.stage.parts[{k}].faces[0].material.opacity") < 0.5
    assert tab.js(f"{others}.every(i => cardan.stage.parts[i].faces[0].material.opacity === 1)")
    tab.click(f"#parts [data-part='{k}'] .ghost")
    assert tab.js(f"cardan.stage.parts[{k}].faces[0].material.opacity") == 1
    assert all(tab.js("cardan.stage.parts.slice(1).map(p => p.edges.length > 0)")), "a part has no edges"
    tab.click(f"#parts [data-part='{k}'] .eye")
    assert tab.js(f"[...cardan.stage.parts[{k}].faces, ...cardan.stage.parts[{k}].edges].every(o => !o.visible)")
    assert tab.js(f"cardan.stage.pick({x}, {y})?.part !== {k}"), "a hidden part is picked"
    tab.click(f"#parts [data-part='{k}'] .eye")
    assert tab.js(f"cardan.stage.pick({x}, {y}).part") == k
    # the numbers that are always in sight
    tab.until("document.querySelector('#dof').innerText !== '–' ? 1 : 0")
    assert text(tab, "#dof") == "1 degree of freedom"
    assert float(text(tab, "#residual").split()[1]) <= 1e-9
    at = drag(tab, "crank", line(-20, -20, 4))
    tab.until("/step [0-9.]+ ms/.test(document.querySelector('#step').innerText) ? 1 : 0")
    tab.mouse("Released", *at)
    assert not tab.errors()


def test_joints_are_drawn_by_kind_with_names_and_coordinates(opened) -> None:
    tab, bench = opened("slider_crank")
    assert tab.js("cardan.stage.joints.every(j => !j.node.visible)")
    tab.click("#toggle-joints")
    assert tab.js("cardan.stage.joints.every(j => j.node.visible)")
    colours = json.loads(
        tab.js("JSON.stringify(cardan.stage.joints.map(j => [j.data.kind, j.node.material.color.getHex()]))")
    )
    assert len({kind for kind, _ in colours}) == len({colour for _, colour in colours}) > 1
    # a mark is where its joint is, on the part that carries it
    for name, place in json.loads(
        tab.js(
            "JSON.stringify(cardan.stage.joints.map(j => [j.data.name, "
            "j.node.getWorldPosition(cardan.stage.camera.position.clone()).toArray()]))"
        )
    ):
        end = bench._model[name].ends[-1]
        at = bench._now[end.body.name].point(end.origin)
        assert place == pytest.approx(at, abs=1e-5), name
    tab.click("#toggle-labels")
    values = {name: bench._model[name].coordinate(bench._now) for name in ("A", "slide")}
    wanted = [f"A  {np.degrees(values['A']):.1f}°", f"slide  {1e3 * values['slide']:.1f} mm"]
    shown = "[...document.querySelectorAll('.mark')].map(e => e.textContent)"
    tab.until(f"{json.dumps(wanted)}.every(t => {shown}.includes(t)) ? 1 : 0")
    tab.js("[...document.querySelectorAll('[role=tab]')][1].click()")
    listed = (
        "Object.fromEntries([...document.querySelectorAll('[data-joint]')].map(e => [e.dataset.joint, e.innerText]))"
    )
    tab.until(f"{listed}.A === {json.dumps(wanted[0].split('  ')[1])} ? 1 : 0")
    assert set(tab.js(listed)) == {joint for joint in tab.js("cardan.scene.joints.map(j => j.name)")}
    tab.screenshot(SHOTS / "joints.png")
    assert not tab.errors()


def test_the_view_is_switched(opened) -> None:
    """Orthographic, fit, grid, shadow, dark and light."""
    tab, _ = opened("rsur", quality="high")
    size = "cardan.stage.pixel(cardan.stage.orbit.target)"
    before = tab.js(size)
    tab.click("#toggle-ortho")
    assert tab.js("cardan.stage.camera.isOrthographicCamera === true")
    assert tab.js(size) == pytest.approx(before, rel=1e-6)  # the same size on the screen
    tab.js("void (cardan.stage.camera.zoom = 3, cardan.stage.camera.updateProjectionMatrix())")
    tab.click("#fit")
    assert tab.js("cardan.stage.camera.zoom") == 1
    tab.click("#toggle-ortho")
    assert tab.js("cardan.stage.camera.isPerspectiveCamera === true")
    tab.key("f", "KeyF", "f")
    home = tab.js("cardan.stage.camera.position.toArray()")
    tab.js("void (cardan.stage.camera.position.lerp(cardan.stage.orbit.target, -2), cardan.stage.orbit.update())")
    assert tab.js("cardan.stage.camera.position.toArray()") != pytest.approx(home, rel=0.5)
    tab.key("f", "KeyF", "f")
    assert tab.js("cardan.stage.camera.position.toArray()") == pytest.approx(home, rel=1e-6)
    tab.until("cardan.stage.settled ? 1 : 0")
    drawn = {"with a shadow": tab.screenshot()}
    assert tab.js("cardan.stage.shadows")
    tab.click("#toggle-shadows")
    tab.until("cardan.stage.settled ? 1 : 0")
    drawn["without a shadow"] = tab.screenshot()
    tab.click("#toggle-edges")
    assert tab.js("cardan.stage.edgesShown") is False
    tab.until("cardan.stage.settled ? 1 : 0")
    drawn["without edges"] = tab.screenshot()
    tab.click("#toggle-grid")
    assert tab.js("cardan.stage.gridShown") is False
    tab.until("cardan.stage.settled ? 1 : 0")
    drawn["without a grid"] = tab.screenshot()
    theme = tab.js("document.documentElement.dataset.theme")
    tab.click("#theme")
    assert {theme, tab.js("document.documentElement.dataset.theme")} == {"light", "dark"}
    tab.until("cardan.stage.settled ? 1 : 0")
    drawn["other theme"] = tab.screenshot(SHOTS / "dark.png")
    assert len(set(drawn.values())) == len(drawn)
    assert tab.js("localStorage.getItem('cardan-theme') === document.documentElement.dataset.theme")
    tab.click("#theme")
    assert not tab.errors()


def test_motions_have_a_speed_plots_and_arrows_of_reactions(opened) -> None:
    tab, _ = opened("slider_crank")
    change(tab, "#speed", "0.25")
    tab.click("#play")
    tab.until("cardan.player ? 1 : 0")
    assert tab.js("cardan.player.speed") == 0.25
    # any coordinate, velocity, reaction and energy of the motion
    for key in ("A|rate", "A|reaction", "motor|effort"):
        change(tab, "#plot-choice", key)
    count = tab.js("cardan.player.clip.times.length")
    assert tab.js("cardan.plots.sizes") == [count] * 4
    labels = tab.js("[...document.querySelectorAll('#chips .chip')].map(e => e.innerText.trim())")
    assert labels[1:] == ["A velocity [°/s]", "A reaction [N]", "motor effort [N m]"]
    # arrows: at the joints, along the forces, the longest a fifth of the extent
    tab.key(" ", "Space", " ")
    assert tab.js("cardan.player.playing") is False
    tab.click("#toggle-reactions")
    tab.until("cardan.stage.reactions.some(a => a.node.visible) ? 1 : 0")
    model = REGISTRY["slider_crank"].build()
    moved = model.move(tab.js("cardan.player.clip.times"))
    k = tab.js("cardan.player.index")
    arrows = tab.js("cardan.stage.reactions.map(a => [a.from.toArray(), a.to.toArray()])")
    names = tab.js("[...cardan.player.clip.reactions.keys()]")
    forces = {name: moved.reaction(name).force for name in names}
    largest = max(np.linalg.norm(force, axis=1).max() for force in forces.values())
    scale = 0.2 * tab.js("cardan.stage.extent") / largest
    for name, (start, end) in zip(names, arrows, strict=True):
        assert np.subtract(end, start) == pytest.approx(scale * forces[name][k], abs=1e-3 * scale * largest), name
    # they begin at the joints, also after a jump in time
    change(tab, "#scrub", "700", "input")
    settle(tab)
    k = tab.js("cardan.player.index")
    starts = dict(zip(names, tab.js("cardan.stage.reactions.map(a => a.from.toArray())"), strict=True))
    crank = moved.states[k]["crank"]
    assert starts["B"] == pytest.approx(crank.position + crank.matrix @ model["B"].ends[0].origin, abs=2e-3)
    # the slider of the driver follows the motion, and beyond its first ends
    angle = np.degrees(model["A"].of("angle").value(moved.states[k]))
    tab.until(f"Math.abs(document.querySelector('[data-driver-value]').value - {angle}) < 2 ? 1 : 0")
    tab.screenshot(SHOTS / "reactions.png")
    # a drag plots live: the line of the motion, a velocity, and the force of the hand
    tab.click("#end")
    change(tab, "#plot-choice", "hand|force")
    at = drag(tab, "crank", line(-30, -30))
    wait_until(lambda: len(sizes := tab.js("cardan.plots.sizes")) == 3 and min(sizes) > 3, what="lines of a drag")
    tab.mouse("Released", *at)
    # the slider of a driver
    settle(tab)
    change(tab, "[data-driver]", "50", "input")
    tab.until("Math.abs(Math.sin(0.5 * (cardan.values[0] - 50 * Math.PI / 180))) < 1e-5 ? 1 : 0")
    assert not tab.errors() and not tab.js("cardan.problems")


def test_the_selected_part_has_other_edges(opened) -> None:
    tab, bench = opened("slider_crank")
    edges = "cardan.stage.parts.map(p => p.edges[0].material.color.getHexString())"
    before = tab.js(edges)
    assert len(set(before)) == 1
    k = 1 + list(bench._now.names).index("rod")
    tab.js(f"cardan.select({k}, null)")
    after = tab.js(edges)
    assert [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b] == [k]
    tab.js("cardan.select(-1, null)")
    assert tab.js(edges) == before


RECTANGLES = """[...document.querySelectorAll('#title, #tree, #side, #tools, #cube, #transport, #status')]
.filter(e => e.checkVisibility()).map(e => [e.id, e.getBoundingClientRect()])
.map(([id, r]) => [id, r.left, r.right, r.top, r.bottom])"""


WIDTHS = (1600, 1281, 1280, 1101, 1100, 1000, 901, 900, 781, 780, 600, 390)
STOPS = ["hinge angle is at its upper limit, 17.19° (stop of the door)", "contact 'cam' is lost: it has left the shape"]


def overlaps(boxes: dict[str, list[float]], width: float, height: float) -> list[tuple[str, str]]:
    """Panels that cover each other, or are outside of the page."""
    found = [(name, "page") for name, (l, r, t, b) in boxes.items() if l < 0 or r > width or t < 0 or b > height]
    for (name, (l, r, t, b)), (other, (left, right, top, bottom)) in combinations(boxes.items(), 2):
        if l < right and left < r and t < bottom and top < b:
            found.append((name, other))
    return found


WORK = {
    "text": "Compiling your own constraint 'follower_of_the_cam', once: 2 of 5",
    "part": 0.4,
    "stoppable": True,
    "waits": True,
}
ON_TOP = """['#undo', '#help', '#picker', '#play', '#scrub', '#speed', '#dof', '#stops'].filter(s => {
const e = document.querySelector(s), r = e.getBoundingClientRect();
return !document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2)?.closest(s); })"""


def test_no_panel_covers_another_at_any_width_also_at_a_limit(opened) -> None:
    tab, _ = opened("slider_crank")
    also = {k: RECTANGLES.replace("#status", f"#status, #{k}") for k in ("progress", "messages")}
    tools = "filter(([id]) => /tools|title|messages/.test(id))"
    for width in WIDTHS:
        tab.resize(width, 800)
        for stops in ([], STOPS):
            tab.js(f"void (cardan.receive({{is: 'stops', texts: {json.dumps(stops)}}}), cardan.showTexts(1e9, true))")
            tab.js(f"void cardan.messages.setWork({'null' if stops else json.dumps(WORK)})")
            tab.until(f"document.querySelector('#progress').hidden === {json.dumps(bool(stops))} ? 1 : 0")
            settle(tab)
            boxes = {name: box for name, *box in tab.js(also["progress"])}
            assert ("progress" in boxes) == (not stops) and not overlaps(boxes, width, 800), (width, stops)
            assert tab.js(ON_TOP) == ([] if stops else ["#stops"]), (width, stops)
        tab.screenshot(SHOTS / f"limit_{width}.png")
        tab.js("void cardan.messages.show('It was not possible', 'for a reason that takes a line or two', 'error')")
        assert not overlaps({name: box for name, *box in tab.js(f"{also['messages']}.{tools}")}, width, 800), width
        tab.js("void cardan.messages.clear('none', true)")
    assert not tab.errors()


@pytest.mark.parametrize("width", [390, 820])
def test_a_narrow_page_has_room_for_everything(opened, width: int) -> None:
    """Nothing is outside the page or on top of another panel, also when the panels are asked for."""
    tab, _ = opened("slider_crank")
    height = 800
    tab.resize(width, height)
    tab.until("cardan.stage.settled ? 1 : 0")
    shown = {}
    for state in ("closed", "open"):
        found = shown[state] = {name: box for name, *box in tab.js(RECTANGLES)}
        for name, (left, right, top, bottom) in found.items():
            assert left >= 0 and right <= width and top >= 0 and bottom <= height, (state, name)
            for other, (a, b, c, d) in found.items():
                apart = right <= a or b <= left or bottom <= c or d <= top
                assert other == name or apart, (state, name, other)
        tab.screenshot(SHOTS / f"narrow_{width}_{state}.png")
        tab.click("#panels")
    assert not {"tree", "side"} & set(shown["closed"]) and {"tree", "side"} <= set(shown["open"])
    tab.click("#panels")
    tab.click(".wiggle")  # what is in a panel can be used
    tab.until("cardan.player && cardan.player.clip.kind === 'wiggle' ? 1 : 0")
    assert not tab.errors()


def test_a_driver_without_a_joint_follows_the_hand_and_its_slider_reaches(opened) -> None:
    """The motor of the vehicle drives a distance between two frames; the space bar plays after any click."""
    tab, bench = opened("vehicle")
    at = drag(tab, "chassis", line(150, 10))
    rest(tab)
    shown = float(tab.until("document.querySelector('[data-driver-value]').value"))
    (driver,) = bench._drivers(bench._now)
    along = driver["coordinate"]["features"]
    assert len(along) == 3
    assert abs(shown) > 100.0  # [mm]
    tab.mouse("Released", *at)
    settle(tab)
    tab.until(f"Math.abs(document.querySelector('[data-driver-value]').value - {shown}) < 1 ? 1 : 0")
    lower, upper = tab.js("(e => [+e.min, +e.max])(document.querySelector('[data-driver]'))")
    tab.js(f"cardan.model.drivers[0].value = {2e-3 * upper}, cardan.drivers.update(cardan.model.drivers[0])")
    moved = tab.js("(e => [+e.min, +e.max, +e.value])(document.querySelector('[data-driver]'))")
    assert moved == pytest.approx([lower + upper, 2 * upper, 2 * upper])
    # a button that was clicked does not keep the space bar
    tab.click("#toggle-grid")
    is_shown = tab.js("cardan.stage.gridShown")
    tab.key(" ", "Space", " ")
    tab.until("cardan.player ? 1 : 0")
    assert tab.js("cardan.stage.gridShown") == is_shown
    assert not tab.errors() and not tab.js("cardan.problems")
