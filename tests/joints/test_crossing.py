"""Contacts whose shapes cross, or touch from the other side, are not reported as assembled."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.analysis.options import CONTACT_RESTARTS
from cardan.shapes.curved import SHELL

g = cd.geometry


def bowl():
    """z = x² + y² up to 0.4 m from the axes; the radii of curvature are from 0.5 m to 0.76 m."""
    x, y = np.meshgrid([-0.4, 0.0, 0.4], [-0.4, 0.0, 0.4], indexing="ij")
    height = 0.16 * np.array([1.0, -1.0, 1.0])
    return g.Surface(np.stack([x, y, height[:, None] + height[None, :]], axis=-1), degree=2)


@pytest.mark.parametrize(("radius", "fits"), [(0.3, True), (0.49, True), (0.8, False)])
def test_a_ball_fits_into_a_bowl_that_is_less_curved(radius, fits):
    m = cd.Mechanism("bowl")
    ball = m.body("ball", position=(0.0, 0.0, radius + 0.1))
    m.contact("on", m.ground.attach(bowl()), ball.attach(g.sphere(radius)))
    result = m.assemble()
    assert result.ok == fits
    if not fits:
        assert "the shapes cross" in result.text()
    assert m.assemble_many([m.state] * 2).ok.tolist() == [fits] * 2


@pytest.mark.parametrize("height", [0.2, -0.05])
def test_a_wheel_is_above_its_plane(height):
    """Drawn below, the first attempt is refused, and a restart finds it above; many starts answer as one does."""
    m = cd.Mechanism("wheel")
    body = m.body("disc", position=(0, 0, height), orientation=((1, 0, 0), 1.2))
    m.wheel("on", body.frame(), 0.1, m.ground.attach(g.plane()))
    once, result = m.assemble(restarts=0), m.assemble()
    assert once.ok == (height > 0.0) == (result.restarts == 0)
    assert once.ok or once.state["disc"].position[2] < 0.0
    assert result.ok and 0.0 < result.state["disc"].position[2] <= 0.1 and result.restarts <= CONTACT_RESTARTS
    many = m.assemble_many([m.state] * 2)
    assert many.ok.all() and np.array_equal(many.coordinates[1], result.state.coordinates)
    one = m.assemble(method="levenberg_marquardt")
    assert one.ok == once.ok and one.restarts == 0


@pytest.mark.parametrize(("shape", "use"), [(g.sphere, "m.spherical"), (g.circle, "m.revolute")])
def test_a_ball_larger_than_its_socket_is_refused(shape, use):
    m = cd.Mechanism("socket")
    ball = m.body("ball")
    socket = m.ground.attach(shape(0.1))
    with pytest.raises(cd.ModelError, match=f"contact 'in' was given two .* of one size.*{use}"):
        m.contact("in", socket, ball.attach(shape(0.1)), side="inside")
    words = r"contact 'in' was given a \w+ of radius 0.12 m inside one of 0.1 m.*exchange the faces"
    with pytest.raises(cd.ModelError, match=words):
        m.contact("in", socket, ball.attach(shape(0.12)), side="inside")
    m.contact("in", ball.attach(shape(0.12)), socket, side="inside")
    assert m.assemble({"ball": ((0.01, 0.002, 0.0), (1, 0, 0, 0))}).ok


def test_a_smaller_sphere_fits_into_a_tube():
    for radius, fits in ((0.15, True), (0.25, False)):
        m = cd.Mechanism("tube")
        ball = m.body("ball", position=(1.02, 0, 0))
        m.contact("in", m.ground.attach(g.torus(1.0, 0.2)), ball.attach(g.sphere(radius)), side="inside")
        assert m.assemble().ok == fits


def test_a_ball_at_rest_in_a_groove_stays_there():
    """Rolling on two planes is redundant; rates of rounding do not contradict each other."""
    for x in (0.0, 0.02, 0.5, -1.0):
        m = cd.Mechanism("groove")
        ball = m.body("ball", position=(x, 0, 0.2), mass=1.0, inertia=0.004 * np.eye(3))
        for k, s in enumerate((1.0, -1.0)):
            plane = m.ground.attach(g.plane(), m.ground.frame(z=(0, s, 1)))
            m.contact(f"c{k}", plane, ball.attach(g.sphere(0.1)), mode="roll")
        simulation = m.simulate(0.1, step=1e-2)
        assert simulation.ok, simulation.text()
        np.testing.assert_allclose(simulation.state["ball"].position, (x, 0, 0.1 * 2**0.5), atol=1e-12)


def test_a_wheel_that_is_refused_leaves_no_shapes():
    m = cd.Mechanism("wheel")
    body = m.body("disc")
    edge = m.ground.attach(g.circle(1.0))
    with pytest.raises(cd.ModelError):
        m.wheel("on", body.frame(), -0.1)
    with pytest.raises(cd.ModelError):
        m.contact("on", edge, body.attach(g.circle(0.1)), mode="roll_without_spin")
    assert m.ground.attachments == (edge,) and not m.joints


def test_shapes_with_bounds_are_drawn_in_their_size():
    m = cd.Mechanism("drawn")
    triangles = m.ground.attach(g.plane(4.0, 4.0)).shape.triangles()
    size = np.ptp(triangles.vertices, axis=0)
    np.testing.assert_allclose(size, (4.0, 4.0, SHELL * 4.0), atol=1e-12)  # a shell with a thickness


def beside(shape: object, height: float, **options: object) -> cd.Mechanism:
    """A ball of 0.1 m at a height above the centre of a shape of the ground."""
    m = cd.Mechanism("beside", gravity=(0, 0, -9.81))
    ball = m.body("ball", position=(0.0, 0.0, height), mass=1.0, inertia=np.eye(3) * 0.004)
    m.contact("on", m.ground.attach(shape), ball.attach(g.sphere(0.1)), **options)
    return m


@pytest.mark.parametrize(
    ("shape", "options", "drawn", "other"),
    [
        (g.plane(), {}, (0.5, 0.1, 0.0, -0.09), (-0.11, -3.0)),
        (g.sphere(1.0), {}, (2.0, 1.1, -1.0), (0.5, 0.01)),
        (g.sphere(1.0), {"side": "inside"}, (0.5, 0.9, 1.05), (1.2, 3.0)),
        (g.torus(1.0, 0.3), {"start": ((0.0, np.pi / 2), (0.0, 0.0, -1.0))}, (0.6,), ()),
    ],
    ids=["plane", "sphere", "inside", "torus"],
)
def test_a_part_that_is_drawn_on_the_other_side_is_noted(shape, options, drawn, other):
    """It is assembled on the side of the normals; shapes that only overlap in the drawing are not noted."""
    for heights, is_noted in ((drawn, False), (other, True)):
        for height in heights:
            m = beside(shape, height, **options)
            result = m.assemble()
            assert result.ok
            told = [note for note in result.notes if "on the other side" in note]
            assert bool(told) == is_noted, (height, result.notes)
            assert m.assemble(result.state).notes == ()
            if is_noted:
                (note,) = result.notes
                assert note.startswith("contact 'on': 'ground' and 'ball' are drawn on the other side of each other")
                assert note in result.text() and result.to_dict()["notes"] == [note]
                assert note in m.simulate(0.01).notes
