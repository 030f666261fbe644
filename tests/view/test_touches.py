"""Contacts in the page: shapes that are attached, points and normals, a drag with closed contacts, a lost contact."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan import geometry as g
from cardan.shapes.curved import Curved
from cardan.view import clip, contact_marks, protocol
from cardan.view.bench import Bench
from cardan.view.body_shapes import Looks
from cardan.view.server import Server
from chromium import Browser, wait_until
from pointer import SHOTS, drag, drawn, line

CLOSED = 1e-9  # of the extent


def cam() -> cd.Mechanism:
    """An elliptic cam under a roller on a slide, and a pin in a ring."""
    m = cd.Mechanism("cam", gravity=(0, -9.81, 0))
    disc, follower, pin = m.body("disc"), m.body("follower", position=(0, 0.15, 0)), m.body("pin", position=(0.3, 0, 0))
    m.revolute("A", m.ground.frame(), disc.frame())
    m.prismatic("slide", m.ground.frame(z=(0, 1, 0), x=(1, 0, 0)), follower.frame(z=(0, 1, 0), x=(1, 0, 0)))
    outline = disc.attach(g.ellipse(0.12, 0.08), disc.frame((0.02, 0, 0)))
    m.contact("touch", outline, follower.attach(g.circle(0.03)))
    ring = m.ground.attach(g.circle(0.08), m.ground.frame((0.3, 0.04, 0)))
    m.contact("inside", ring, pin.attach(g.circle(0.04)), side="inside")
    return m


SHAPES = [
    (g.circle(1.0), np.pi * 0.24),
    (g.plane((0.0, 1.0), (0.0, 1.0)), 0.008),
    (g.sphere(1.0), 4.0 / 3.0 * np.pi),
    (g.torus(1.0, 0.3), 2.0 * np.pi**2 * 0.09),
    (g.cylinder(1.0, (0.0, 1.0)), 2.0 * np.pi * 0.016),
    (g.line((0.0, 1.0)), np.pi * 0.012**2),
]


@pytest.mark.parametrize(("shape", "volume"), SHAPES, ids=lambda value: str(value)[:12])
def test_curves_and_surfaces_are_drawn_as_closed_meshes_that_face_outward(shape: g.Shape, volume: float) -> None:
    made = Curved(shape).triangles()
    edges = np.concatenate([made.faces[:, [k, (k + 1) % 3]] for k in range(3)])
    pairs = set(map(tuple, edges.tolist()))
    assert len(pairs) == len(edges)
    assert all((b, a) in pairs for a, b in pairs), "the mesh is not closed"
    a, b, c = (made.vertices[made.faces[:, k]] for k in range(3))
    assert float(np.sum(a * np.cross(b, c))) / 6.0 == pytest.approx(volume, rel=0.08)


def test_frames_and_clips_carry_every_contact() -> None:
    m = cam()
    m.drive("motor", m["A"], lambda t: 2.0 * t)
    state = m.assemble().state
    rows, lost = contact_marks.rows(state)
    assert contact_marks.names(state) == ("touch", "inside") and not lost
    for row, name in zip(rows, ("touch", "inside"), strict=True):
        contact = state.contact(name)
        assert np.array_equal(row, [*contact.point, *contact.normal, 0.0])
    data = protocol.Frame(state.coordinates, contacts=rows).pack()
    assert len(data) == protocol.HEADER.size + 28 * (len(state.names) + 2)
    assert np.frombuffer(data[-56:], "<f4").reshape(2, 7) == pytest.approx(rows, abs=1e-6)
    made = clip.from_motion(m, m.move(np.linspace(0.0, 0.5, 6)))
    assert made.contacts is not None and made.contacts.shape == (6, 2, 7)
    assert np.array_equal(made.contacts[3], contact_marks.rows(made.states[3])[0])


def test_only_the_ring_around_a_pin_is_drawn_as_a_frame() -> None:
    """Two equal circles: a pin is inside that of the ground, a disc has the other one as its rim."""
    m = cd.Mechanism("rings")
    pin, disc = m.body("pin", position=(0.04, 0, 0)), m.body("disc", position=(1, 0, 0))
    m.contact("inside", m.ground.attach(g.circle(0.08)), pin.attach(g.circle(0.04)), side="inside")
    m.contact("on", disc.attach(g.circle(0.08)), m.ground.attach(g.line(), m.ground.frame((0, -0.08, 0), x=(-1, 0, 0))))
    looks = Looks(m, m.state)
    looks.attached()
    widths = [float(np.ptp(looks.meshes[name][0].vertices, axis=0).max()) for name in ("ground", "disc")]
    assert widths[0] == pytest.approx(1.15 * widths[1], rel=1e-6)


def test_a_seam_is_no_edge() -> None:
    m = cd.Mechanism("seam")
    disc = m.body("disc", position=(0.9, 0, 0))
    m.planar("plane", m.ground.frame(), disc.frame())
    rim = g.circle(0.5).to_nurbs()
    m.contact("on", m.ground.attach(rim), disc.attach(g.circle(0.4)))
    state = m.assemble().state
    assert state.contact("on").parameters[0] % rim.bounds[0][1] == pytest.approx(0.0, abs=1e-9)
    assert contact_marks.at_edges(state) == ()


def test_a_lost_contact_is_said_again_for_every_new_scene() -> None:
    """The page forgets it with the scene before, as when a file is reloaded."""

    def build() -> cd.Mechanism:
        m = cd.Mechanism("apart")
        m.fixed("held", m.ground.frame((0, 0, 1)), (ball := m.body("ball", position=(5, 0, 1))).frame((-5, 0, 0)))
        m.contact("on", m.ground.attach(g.plane((-0.3, 0.3), (-0.3, 0.3))), ball.attach(g.sphere(0.1)))
        return m

    class Out:
        def __init__(self) -> None:
            self.said: list[str] = []

        def post(self, message: object, *, new_scene: bool = False) -> None:
            if isinstance(message, str) and '"stops"' in message:
                self.said.append(message)

        def show(self, frame: bytes) -> None:
            pass

    out = Out()
    bench = Bench({"apart": ("apart", build, 1.0)}, "apart", out)  # type: ignore[arg-type]  # all that a bench calls
    for count in (1, 2):
        bench._do_load(protocol.Command("load", 0, {"item": "apart"}))
        assert len(out.said) == count and "contact 'on' is lost" in out.said[-1]


def test_contacts_are_drawn_dragged_and_played(browser: Browser) -> None:
    m = cam()
    m.drive("motor", m["A"], lambda t: 2.0 * t)
    with Server(m, port=0) as server:
        tab = browser.open(server.address)
        tab.until("window.cardan && cardan.frame && cardan.freedoms ? 1 : 0")
        (bench,) = server._tabs

        def shown() -> np.ndarray:
            return np.array(tab.js("cardan.stage.contacts.shown"))

        assert shown() == pytest.approx(contact_marks.rows(bench._now)[0][:, :6], abs=1e-5)
        tab.until("cardan.stage.settled ? 1 : 0")
        tab.screenshot(SHOTS / "contact_cam.png")
        before = drawn(tab)
        x, y = drag(tab, "disc", line(-60, 40))
        assert np.abs(drawn(tab) - before)[1].max() > 1e-3, "the follower did not follow"
        assert tab.js("cardan.frame.residual") <= CLOSED
        tab.mouse("Released", x, y)
        wait_until(lambda: bench._drag is None, what="the end of the drag")
        assert max(abs(bench._now.contact(name).gap) for name in ("touch", "inside")) <= CLOSED
        wait_until(lambda: np.abs(shown() - contact_marks.rows(bench._now)[0][:, :6]).max() < 1e-5, what="its contacts")
        tab.click("#play")
        tab.until("cardan.player ? 1 : 0")
        tab.js("(() => { const s = document.querySelector('#scrub'); s.value = 500;"
               "s.dispatchEvent(new Event('input')); })()")  # fmt: skip
        k = tab.js("cardan.player.index")
        assert shown() == pytest.approx(bench._clip.contacts[k][:, :6], abs=1e-5)
        assert not tab.errors() and not tab.js("cardan.problems")
        tab.close()


def test_a_contact_at_the_edge_of_its_shape_is_said_in_words(browser: Browser) -> None:
    m = cd.Mechanism("table")
    ball = m.body("ball", position=(0, 0, 0.1))
    m.contact("on", m.ground.attach(g.plane((-0.3, 0.3), (-0.3, 0.3))), ball.attach(g.sphere(0.1)))
    with Server(m, port=0) as server:
        tab = browser.open(server.address)
        tab.until("window.cardan && cardan.frame && cardan.freedoms ? 1 : 0")
        x, y = drag(tab, "ball", line(330, 0, 24))
        said = tab.until("document.querySelector('#stops').hidden ? '' : document.querySelector('#stops').innerText")
        assert "'on'" in said and "edge of a shape" in said
        assert tab.js("cardan.frame.residual") <= CLOSED
        tab.screenshot(SHOTS / "contact_lost.png")
        tab.mouse("Released", x, y)
        assert not tab.errors()
        tab.close()
