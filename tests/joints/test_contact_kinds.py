"""Contacts of special kinds: start=, curves in space, trimmed faces, seams; and input that has no contact."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import cardan as cd

G = cd.geometry
X, Y, Z = np.eye(3)


def on_waves(start=None) -> cd.Mechanism:
    """A small disc over a wheel with three lobes, on a vertical guide: it can touch the top or the bottom."""
    m = cd.Mechanism("lobes")
    t = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    r = 1.0 + 0.1 * np.cos(2 * t)
    lobes = G.Curve(np.stack([r * np.cos(t), r * np.sin(t)], axis=1), periodic=True)
    disc = m.body("disc", position=(0, 0.2, 0))
    m.prismatic("guide", m.ground.frame(z=Y, x=X), disc.frame(z=Y, x=X))
    m.contact("on", m.ground.attach(lobes), disc.attach(G.circle(0.2)), start=start)
    return m


def test_start_chooses_one_of_several_contacts():
    """Parameters as in state.contact(name).parameters, in the order of the faces."""
    heights = []
    for up in (1.0, -1.0):
        low, high = on_waves().ground.attachments[0].shape.geometry.bounds[0]
        m = on_waves((low + (0.25 if up > 0 else 0.75) * (high - low), -0.5 * np.pi * up))
        result = m.assemble()
        assert result.ok, result.text()
        heights.append(result.state["disc"].position[1])
        assert m.copy() == m and pickle.loads(pickle.dumps(m)) == m and m != on_waves()
    assert heights[0] == pytest.approx(-heights[1], abs=1e-9) and heights[0] > 1.0


@pytest.mark.parametrize("start", [3.0, ((1.0,),), ((1.0, 2.0), (1.0,)), ((np.nan,), (1.0,)), ("a", "b")])
def test_a_start_that_does_not_fit_is_refused(start):
    with pytest.raises(cd.ModelError, match="contact 'on': start"):
        on_waves(start)


def test_a_start_is_not_changed():
    """The direction of a point on a sphere may have any length; the array of the caller stays as it is."""
    m = cd.Mechanism("ball")
    ball = m.body("ball", position=(0, 0, 0.5))
    given = np.array([0.0, 0.0, -2.0])
    joint = m.contact("on", m.ground.attach(G.plane()), ball.attach(G.sphere(0.4)), start=((0.0, 0.0), given))
    assert given.tolist() == [0.0, 0.0, -2.0] and dict(joint.parameters)["start"][1] == (0.0, 0.0, -1.0)


def test_two_rods_cross_in_space():
    """The gap of crossing lines is their common perpendicular; sliding rods keep it."""
    m = cd.Mechanism("rods")
    rod = m.body("rod", position=(0.1, 0.2, 0.5), orientation=("xyz", (0.0, 0.3, 1.1)), mass=1.0, inertia=np.eye(3))
    segments = [G.Curve(np.array([[-2.0, 0, 0], [0, 0, 0], [2.0, 0, 0.0]]), degree=1) for _ in range(2)]
    m.contact("x", m.ground.attach(segments[0]), rod.attach(segments[1]), side="crossing")
    d = m.state["rod"].matrix @ X
    n = np.cross(X, d) / np.linalg.norm(np.cross(X, d))
    assert m.state.contact("x").gap == pytest.approx(n @ np.array([0.1, 0.2, 0.5]), abs=1e-12)
    result = m.assemble()
    assert result.ok and abs(result.state.contact("x").gap) < 1e-12
    assert m.diagnose(result.state).dof == 5
    simulation = m.simulate(0.3, result.state, rtol=1e-8)
    assert simulation.ok, simulation.text()
    assert simulation.drift.max() < 1e-12


@pytest.mark.parametrize(("mode", "velocity"), [("roll", 3), ("roll_without_spin", 2)])
def test_rings_roll_on_each_other_in_space(mode, velocity):
    m = cd.Mechanism("rings", gravity=(0, 0, 0))
    b = m.body("b", position=(1.0, 0.1, 0.3), orientation=("xyz", (1.3, 0.2, 0.1)), mass=1.0, inertia=0.1 * np.eye(3))
    m.contact("x", m.ground.attach(G.circle(1.0)), b.attach(G.circle(0.4)), mode=mode, side="crossing")
    state = m.assemble().state
    assert m.diagnose(state).velocity_dof == velocity
    start = state.with_rates(np.array([[0.1, 0.2, 0.0, 0.5, -0.3, 0.2]]))
    simulation = m.simulate(1.0, start, rtol=1e-10)
    assert simulation.ok, simulation.text()
    energy = simulation.energy.total
    assert np.ptp(energy) < 1e-8 * energy[0]
    for found in (simulation.states[0], simulation.states[-1]):
        pose, contact = found["b"], found.contact("x")
        assert np.linalg.norm(pose.velocity_of(pose.matrix.T @ (contact.point - pose.position))) < 1e-10


def trimmed_plate() -> cd.geometry.Face:
    """A square of 2 m, trimmed to a disc of 0.5 m."""
    x, y = np.meshgrid([-1.0, 1.0], [-1.0, 1.0], indexing="ij")
    plate = G.Surface(np.stack([x, y, 0 * x], axis=-1), degree=1)
    (u0, u1), (v0, v1) = plate.bounds
    t = np.linspace(0, 2 * np.pi, 65)[:-1]
    ring = np.stack([(u0 + u1) / 2 + 0.25 * (u1 - u0) * np.cos(t), (v0 + v1) / 2 + 0.25 * (v1 - v0) * np.sin(t)], 1)
    return G.Face(plate, [G.Curve(np.vstack([ring, ring[:1]]), degree=1)])


def test_files_carry_trimmed_faces_and_start(tmp_path):
    trimmed = cd.Mechanism("trimmed")
    ball = trimmed.body("ball", position=(0.1, 0.0, 0.1))
    trimmed.contact("on", trimmed.ground.attach(trimmed_plate()), ball.attach(G.sphere(0.1)))
    for m in (trimmed, on_waves((0.3, -1.5)), torus_and_ball()):
        m.save(tmp_path / "x.cardan.toml")
        assert cd.load(tmp_path / "x.cardan.toml") == m


def torus_and_ball() -> cd.Mechanism:
    """A closed NURBS surface, whose seams are no edges."""
    m = cd.Mechanism("torus")
    ball = m.body("ball", position=(1.4, 0.0, 0.0))
    m.contact("on", m.ground.attach(G.torus(1.0, 0.3).to_nurbs()), ball.attach(G.sphere(0.1)))
    return m


def test_leaving_a_trimmed_face_ends_a_motion():
    """A ball slides off a disc that is trimmed from a square; copies and pickles keep the loops."""
    m = cd.Mechanism("trimmed", gravity=(0, 0, 0))
    ball = m.body("ball", position=(0.1, 0.0, 0.1), mass=1.0, inertia=0.004 * np.eye(3))
    face = m.ground.attach(trimmed_plate())
    m.contact("on", face, ball.attach(G.sphere(0.1)))
    assert m.copy() == m and pickle.loads(pickle.dumps(m)) == m
    assert np.abs(face.shape.triangles().vertices[face.shape.triangles().faces.ravel(), 0]).max() < 0.6
    start = m.assemble().state.with_rates(np.array([[0.5, 0, 0, 0, 0, 0]]))
    for run in ({"rtol": 1e-8}, {"step": 1e-2}):
        simulation = m.simulate(2.0, start, **run)
        assert simulation.status == "contact" and "trimmed face" in simulation.reason
        assert simulation.state["ball"].position[0] == pytest.approx(0.5, abs=1e-9)


ROUND = {  # shapes that are closed in a direction, the point of a ball's centre at distance 0.1 at an angle, its path
    "cylinder": (G.cylinder(0.5, 2.0), lambda a: 0.6 * np.array([np.cos(a), np.sin(a), 0.1])),
    "torus": (G.torus(1.0, 0.3), lambda a: 1.4 * np.array([np.cos(a), np.sin(a), 0.0])),
    "torus, its tube": (G.torus(1.0, 0.3), lambda a: np.array([1.0 + 0.4 * np.cos(a), 0.0, 0.4 * np.sin(a)])),
    "cone": (G.cone(0.5, 0.75, (-0.5, 0.5)), lambda a: np.array([0.58 * np.cos(a), 0.58 * np.sin(a), -0.06])),
    "sphere": (G.sphere(0.5), lambda a: 0.6 * np.array([np.cos(a), 0.0, np.sin(a)])),
    "ellipsoid": (G.ellipsoid(0.5, 0.5, 0.4), lambda a: 0.6 * np.array([np.cos(a), np.sin(a), 0.0])),
    "NURBS cylinder": (G.cylinder(0.5, 2.0).to_nurbs(), lambda a: 0.6 * np.array([np.cos(a), np.sin(a), 0.1])),
    "NURBS torus": (G.torus(1.0, 0.3).to_nurbs(), lambda a: 1.4 * np.array([np.cos(a), np.sin(a), 0.0])),
    "NURBS torus, its tube": (
        G.torus(1.0, 0.3).to_nurbs(),
        lambda a: np.array([1.0 + 0.4 * np.cos(a), 0.0, 0.4 * np.sin(a)]),
    ),
}


@pytest.mark.parametrize("kind", ROUND)
def test_seams_are_crossed_in_both_directions(kind):
    """A ball is followed two turns round a shape and back, as the kernel of motions does: no seam ends a contact."""
    shape, path = ROUND[kind]
    m = cd.Mechanism("seam")
    ball = m.body("ball", position=path(0.3), mass=1.0, inertia=np.eye(3))
    m.contact("on", m.ground.attach(shape), ball.attach(G.sphere(0.1)))
    result = m.assemble()
    assert result.ok, result.text()
    touch = m.system.index.contacts["on"]
    follow, near = touch._replace(pair=touch.pair.followed()), result.state
    turns = np.concatenate([np.linspace(0.3, 4 * np.pi, 160), np.linspace(4 * np.pi, -7.0, 240)])
    for angle in turns:
        coordinates = near.coordinates.copy()
        coordinates[0, :3] = path(angle)
        state = m.system.state(coordinates, np.array([near.angles[key] for key in m.system.counted_angles]))
        contact = follow.read(state)
        assert contact.status == "regular", (angle, contact)
        assert abs(contact.gap) < 1e-9
        values = np.concatenate(touch.pair.in_order(contact.parameters))
        near = m.system.state(coordinates, values)


# Input that has no contact -----------------------------------------------------------------------------------------


def test_degenerate_shapes_are_refused_by_name():
    line = np.zeros((4, 4, 3))
    line[..., 0] = np.arange(4.0)[:, None]
    m = cd.Mechanism("degenerate")
    ball = m.body("ball", position=(0, 0, 1)).attach(G.sphere(0.1))
    with pytest.raises(cd.ModelError, match=r"contact 'c' was given .*degenerate"):
        m.contact("c", m.ground.attach(G.Surface(line)), ball)
    with pytest.raises(cd.ModelError, match=r"point_on_surface 'p' was given .*degenerate"):
        m.point_on_surface("p", m["ball"].point(), m.ground.attach(G.Surface(line)))
    assert not m.joints


def test_a_contact_out_of_reach_is_reported_with_the_remedy():
    """A ball over the side of a small plate: no normals are opposed."""
    m = cd.Mechanism("reach")
    ball = m.body("ball", position=(3.0, 0, 0.1))
    m.prismatic("rail", m.ground.frame((3, 0, 0)), ball.frame((0, 0, -0.1)))
    m.contact("on", m.ground.attach(G.plane(1.0, 1.0)), ball.attach(G.sphere(0.1)))
    result = m.assemble(restarts=2)
    assert not result.ok and "contact 'on'" in result.text()
    assert m.state.contact("on").status in ("edge", "far") and m.state.contact("on").reason


def test_a_ruled_surface_on_a_plane_is_reported_as_conformal():
    """A NURBS half cylinder, whose line contact no name shows."""
    m = cd.Mechanism("line")
    t = np.linspace(0.0, np.pi, 7)
    arch = np.stack([-np.cos(t), 0 * t, -np.sin(t)], 1)
    drum = G.Surface(np.stack([arch, arch + 2.0 * Y], axis=1), degree=(3, 1))
    body = m.body("drum", position=(0, 0, 1.2))
    m.contact("on", m.ground.attach(G.plane()), body.attach(drum))
    result = m.assemble(restarts=1)
    assert not result.ok and "contact 'on'" in result.text()
    assert m.state.contact("on").status == "conformal"


def test_sides_of_curves_in_space_are_refused():
    m = cd.Mechanism("refused")
    b = m.body("b", position=(0, 0, 1))
    ring = m.ground.attach(G.circle(1.0))
    with pytest.raises(cd.ModelError, match="side='crossing'"):
        m.contact("c", ring, b.attach(G.sphere(0.1)), side="crossing")
    helix = G.traced(lambda u: (cd.cos(u), cd.sin(u), 0.1 * u), (0.0, 6.0))
    with pytest.raises(cd.ModelError, match="no inside"):
        m.contact("c", ring, b.attach(helix), side="inside")


def test_a_ball_in_a_socket_of_its_size_is_refused():
    m = cd.Mechanism("socket")
    ball = m.body("ball", position=(0.0, 0.0, 0.2))
    socket = m.ground.attach(cd.geometry.sphere(1.0))
    with pytest.raises(cd.ModelError, match=r"m\.spherical"):
        m.contact("on", socket, ball.attach(cd.geometry.sphere(1.0)), side="inside")


def test_poses_of_files_have_contacts(tmp_path):
    m = cd.Mechanism("ball")
    ball = m.body("ball", position=(0.0, 0.0, 0.1))
    m.contact("on", m.ground.attach(cd.geometry.plane()), ball.attach(cd.geometry.sphere(0.1)))
    m.poses["rest"] = m.assemble().state
    m.save(tmp_path / "ball.cardan.toml")
    pose = cd.load(tmp_path / "ball.cardan.toml").poses["rest"]
    assert pose.contact("on").gap == m.poses["rest"].contact("on").gap


@pytest.mark.parametrize(("y", "speed"), [(0.0, 0.0), (-0.002, 0.4)])
def test_a_ball_slides_along_and_across_the_seam_of_a_trimmed_face(y, speed):
    """The loop of a closed face ends at its seam, here in the plane of symmetry: no edge for a contact."""
    found = []
    for trimmed in (False, True):
        m = cd.Mechanism("cone", gravity=(0, 0, -9.81))
        ball = m.body("ball", position=(0.05, y, 0.06), mass=0.1, inertia=np.eye(3) * 1e-6)
        cone = G.revolve(G.Curve([(0.06, 0.0, 0.0), (0.03, 0.0, 0.1)], degree=1))
        (u0, u1), (v0, v1) = cone.bounds
        corners = [(u0, v0), (u1, v0), (u1, v1), (u0, v1), (u0, v0)]
        face = G.Face(cone, [G.Curve(corners, degree=1)]) if trimmed else cone
        m.contact("on", m.ground.attach(face), ball.attach(G.sphere(0.01)))
        state = m.assemble().state
        r = state["ball"].position
        velocities = np.zeros((1, 6))
        velocities[0, :2] = speed * np.array([-r[1], r[0]]) / np.hypot(r[0], r[1])  # round the cone
        run = m.simulate(0.05, state.with_rates(velocities), rtol=1e-9, max_seconds=20.0)
        assert run.ok, run.reason
        found.append(run.positions("ball"))
    assert np.abs(found[0] - found[1]).max() < 1e-9
    assert np.ptp(found[1][:, 2]) > 1e-3 and (speed == 0.0 or found[1][0, 1] < 0.0 < found[1][-1, 1])
