"""Contacts: their rows against differences, freedoms, closed forms, edges, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations
from cardan.coordinates.rate_rows import RateRows
from cardan.joints import contacts
from cardan.joints.tables import PairWork
from cardan.math import euler

G = cd.geometry
PLANAR = [0, 1, 5, 6, 7, 11]  # columns of motions in the xy plane


def bowl() -> G.Surface:
    rng = np.random.default_rng(5)
    x = np.linspace(-1, 1, 6)
    X, Y = np.meshgrid(x, x, indexing="ij")
    net = np.stack([X, Y, 0.25 * (X**2 + 0.7 * Y**2) + 0.02 * rng.normal(size=X.shape)], -1)
    return G.Surface(net, 1 + 0.2 * rng.uniform(size=X.shape))


def wave() -> G.Curve:
    t = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    r = 1.0 + 0.1 * np.cos(3 * t)
    return G.Curve(np.stack([r * np.cos(t), r * np.sin(t)], axis=1), periodic=True)


def helix():
    """A helix of 0.5 m about z."""
    return G.traced(lambda u: (0.5 * cd.cos(u), 0.5 * cd.sin(u), 0.1 * u), (-1.0, 7.0))


KINDS = {  # shapes, side, position and rotations of the second body
    "sphere on plane": (G.plane(), G.sphere(0.3), "outside", (0, 0, 0.35), (0.3, 0.5, 0.1)),
    "ellipsoids": (G.ellipsoid(1, 0.8, 0.9), G.ellipsoid(0.7, 1.1, 0.6), "outside", (0.1, 0.2, 1.6), (0.3, 0.5, 0.1)),
    "sphere on torus": (G.torus(1, 0.3), G.sphere(0.4), "outside", (1.1, 0.2, 0.75), (0.3, 0.5, 0.1)),
    "ball in a bowl": (bowl(), G.sphere(0.2), "outside", (0.1, 0.2, 0.3), (0.3, 0.5, 0.1)),
    "ball in a sphere": (G.sphere(1.0), G.ellipsoid(0.3, 0.25, 0.2), "inside", (0.1, -0.2, -0.7), (0.3, 0.5, 0.1)),
    "crossed cylinders": (G.cylinder(0.5, 3.0), G.cylinder(0.3, 2.0), "outside", (0.1, 0.85, 0.1), (0.1, 1.3, 0.1)),
    "disc on plane": (G.plane(), G.circle(0.5), "outside", (0.1, 0.2, 0.45), (1.2, 0.3, 0.1)),
    "disc on ellipsoid": (G.ellipsoid(1, 0.8, 0.9), G.circle(0.3), "outside", (0.1, 0.2, 1.1), (1.2, 0.3, 0.1)),
    "helix on a ring": (helix(), G.circle(0.5), "crossing", (0.5, 0.1, 0.55), (0.3, 0.5, 0.1)),
    "crossing rings": (G.circle(1.0), G.ellipse(0.5, 0.3), "crossing", (1.0, 0.1, 0.35), (1.3, 0.2, 0.1)),
    "curves": (G.circle(0.5), wave(), "outside", (1.4, 0.3, 0.0), (0, 0, 0.3)),
    "curve in a curve": (wave(), G.circle(0.2), "inside", (0.6, 0.2, 0.0), (0, 0, 0.3)),
}


def pair(kind: str, mode: str = "slide") -> cd.Mechanism:
    """Two free bodies with the shapes of a kind."""
    first, second, side, at, turned = KINDS[kind]
    m = cd.Mechanism(kind)
    a = m.body("a", mass=1.0, inertia=np.eye(3))
    b = m.body("b", position=at, orientation=("xyz", turned), mass=1.0, inertia=np.eye(3))
    face = b.attach(second, b.frame((0.05, 0.02, 0.0)))
    m.contact("c", a.attach(first), face, mode=mode, side=side)
    return m


def is_planar(kind: str) -> bool:
    return "curve" in kind


def velocities(kind: str, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random velocities that satisfy some rows."""
    allowed = np.eye(12)[PLANAR] if is_planar(kind) else np.eye(12)
    C = rows @ allowed.T
    null = np.linalg.svd(C)[2][np.linalg.matrix_rank(C) :]
    return (rng.normal(size=len(null)) @ null) @ allowed


def solver_coordinates(m: cd.Mechanism, state: cd.State) -> np.ndarray:
    near = np.array([state.angles[key] for key in m.system.counted_angles])
    return formulations.to_reference(m.system, state.coordinates, near)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_its_jacobian_and_gamma_agree_with_differences(kind):
    m = pair(kind)
    system, rng = m.system, np.random.default_rng(1)
    p = formulations.motion_problem(system, "manifold")
    q = formulations.to_reference(system, system.authored)
    f, J = p.jacobian(q)
    contact = m.state.contact("c")
    assert contact.status == "regular" and abs(contact.gap) > 1e-3
    assert f[0] == pytest.approx(contact.gap, rel=1e-12)
    assert np.abs(f[1:]).max() < 1e-14 and not J[1:].any()
    h, columns = 1e-6, (PLANAR if is_planar(kind) else range(12))
    for k in columns:
        e = h * np.eye(12)[k]
        difference = (p.residual(p.retract(q, e))[0] - p.residual(p.retract(q, -e))[0]) / (2 * h)
        assert J[0, k] == pytest.approx(difference, abs=2e-9)
    v = velocities(kind, np.zeros((1, 12)), rng)
    h = 1e-5
    rate = (p.jacobian(p.retract(q, h * v))[1] - p.jacobian(p.retract(q, -h * v))[1])[0] @ v / (2 * h)
    assert formulations.gamma(system, "manifold", q, v)[0] == pytest.approx(-rate, abs=2e-7)


@pytest.mark.parametrize("formulation", ["euler_parameters", "virtual_rotation", "euler_angles"])
def test_every_formulation_by_poses_assembles_a_contact(formulation):
    result = pair("ellipsoids").assemble(formulation=formulation)
    assert result.ok, result.text()
    assert abs(result.state.contact("c").gap) < 1e-11


def test_formulations_by_joints_refuse_a_contact_by_name():
    with pytest.raises(cd.ModelError, match="'c'"):
        pair("ellipsoids").assemble(formulation="relative")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_rolling_agree_with_differences(kind):
    m = pair(kind, "roll" if is_planar(kind) else "roll_without_spin")
    result = m.assemble()
    assert result.ok, result.text()
    q, rows = solver_coordinates(m, result.state), RateRows(m.system)
    p = formulations.motion_problem(m.system, "manifold")
    A = rows.matrix(q)
    v = velocities(kind, np.vstack([A, p.jacobian(q)[1][:1]]), np.random.default_rng(2))
    h = 1e-5
    rate = (rows.matrix(p.retract(q, h * v)) - rows.matrix(p.retract(q, -h * v))) @ v / (2 * h)
    assert np.abs(A @ v).max() < 1e-14
    assert np.abs(rows.gamma(q, v) + rate).max() < 1e-8


def test_freedoms_of_one_pair_are_counted_on_the_bodies():
    """Relative freedoms of a pair, in position and in velocity."""
    for mode, position, velocity in (("slide", 5, 5), ("roll", 5, 3), ("roll_without_spin", 5, 2)):
        m = pair("ellipsoids", mode)
        m["a"].fixed = True
        found = m.diagnose(m.assemble().state)
        assert found.dof == found.gruebler == position
        assert (found.velocity_dof if mode != "slide" else found.dof) == velocity


def test_assembly_converges_quadratically():
    m = pair("ellipsoids")
    p, q = formulations.problem(m.system, "manifold"), formulations.to_reference(m.system, m.system.authored)
    errors = []
    for _ in range(4):
        f, J = p.jacobian(q)
        errors.append(abs(f[0]))
        q = p.retract(q, -J[0] * f[0] / (J[0] @ J[0]))
    assert errors[1] < 0.5 * errors[0] and errors[2] < 10.0 * errors[1] ** 2 and errors[3] < 1e-14


def test_a_contact_is_invariant_under_rigid_motion_and_order():
    """The same gap wherever the pair is drawn, and whichever face is named first."""
    first, second, _, at, turned = KINDS["ellipsoids"]
    gaps, normals = [], []
    for move, swap in ((None, False), (("zyx", (0.4, 1.2, -0.7)), False), (None, True)):
        m = cd.Mechanism("m")
        R = np.eye(3) if move is None else _rotation(move)
        shift = np.zeros(3) if move is None else np.array([5.0, -3.0, 2.0])
        a = m.body("a", position=shift, orientation=R)
        b = m.body("b", position=shift + R @ np.array(at), orientation=R @ _rotation(("xyz", turned)))
        faces = [a.attach(first), b.attach(second, b.frame((0.05, 0.02, 0.0)))]
        m.contact("c", *(faces[::-1] if swap else faces))
        contact = m.state.contact("c")
        gaps.append(contact.gap)
        normals.append(R.T @ contact.normal)
    assert gaps == pytest.approx([gaps[0]] * 3, rel=1e-12)
    assert np.allclose(normals[1], normals[0], atol=1e-13) and np.allclose(normals[2], -normals[0], atol=1e-13)


def _rotation(given) -> np.ndarray:
    m = cd.Mechanism("r")
    return euler.matrix(np.array(m.body("r", orientation=given).orientation))


def test_a_point_on_a_curve_is_searched_for_at_the_nearest_place():
    """All turns of a helix are at the same distance along its principal normal; the nearest one counts."""
    curve = G.traced(lambda u: (0.1 * cd.cos(u), 0.1 * cd.sin(u), 0.006 * u), (0.0, 12.0))
    dense = curve.evaluate(np.linspace(0.0, 12.0, 20_001)[:, None])
    rng = np.random.default_rng(3)
    for u in rng.uniform(1.0, 11.0, size=12):
        at = curve.evaluate(np.array([[u]]))[0] + rng.normal(scale=0.01, size=3)
        m = cd.Mechanism("bead")
        m.point_on_curve("on", m.body("bead", position=at).point((0, 0, 0)), m.ground.attach(curve))
        nearest = np.linalg.norm(dense - at, axis=1).min()
        assert m.state.contact("on").gap == pytest.approx(nearest, abs=1e-6)


def test_the_gap_is_the_distance_of_the_geometry():
    for kind in ("ellipsoids", "sphere on torus", "curves"):
        m = pair(kind)
        first, second, *_ = KINDS[kind]
        pose = m.state["b"]
        place = np.concatenate([pose.point((0.05, 0.02, 0.0)), pose.quaternion])
        assert m.state.contact("c").gap == pytest.approx(G.closest_pair(first, second, place).distance, abs=1e-9)


def test_states_and_mechanisms_with_contacts_are_pickled_and_copied():
    m = pair("ball in a bowl", "roll")
    state = m.assemble().state
    again, kept = pickle.loads(pickle.dumps((m, state)))
    assert again == m and m.copy() == m and again.system == m.system
    assert kept.contact("c").gap == state.contact("c").gap
    assert np.array_equal(again.assemble().state.coordinates, state.coordinates)
    other = pair("ball in a bowl", "slide")
    assert other != m


def sliding_ball() -> cd.Mechanism:
    """A ball of 0.1 m that slides on a square of 1 m."""
    m = cd.Mechanism("sliding")
    ball = m.body("ball", position=(0.0, 0.0, 0.1), mass=1.0, inertia=0.004 * np.eye(3))
    m.contact("c", m.ground.attach(G.plane(1.0, 1.0)), ball.attach(G.sphere(0.1)))
    return m


def test_leaving_a_shape_ends_a_simulation_with_a_reason():
    m = sliding_ball()
    state = m.assemble().state.with_rates(np.array([[1.0, 0, 0, 0, 0, 0]]))
    simulation = m.simulate(1.0, state)
    assert not simulation.ok and simulation.status == "contact"
    assert "'c'" in simulation.reason and "edge" in simulation.reason
    assert simulation.times[-1] == pytest.approx(0.5, abs=1e-12)
    assert [(event.limit, event.what) for event in simulation.events] == [("c", "contact ended")]
    assert simulation.positions("ball")[-1] == pytest.approx([simulation.times[-1], 0.0, 0.1], abs=1e-12)


def test_leaving_a_shape_ends_a_motion_with_a_reason():
    m = sliding_ball()
    cart = m.body("cart", position=(0, 0, 0.1))
    rail = m.prismatic("rail", m.ground.frame((0, 0, 0.1), z=(1, 0, 0)), cart.frame(z=(1, 0, 0)))
    m.fixed("weld", cart.frame(), m["ball"].frame())
    m.drive("motor", rail, lambda t: t)
    motion = m.move(np.linspace(0.0, 1.0, 11))
    assert not motion.ok and motion.status == "contact" and "'c'" in motion.text()
    assert motion.times[-1] == pytest.approx(0.5)


def test_a_drag_stops_at_the_edge_of_a_shape():
    m = sliding_ball()
    with m.session() as session:
        hand = session.grasp("ball", (0, 0, 0))
        for _ in range(60):
            hand.target = hand.point + np.array([0.02, 0.0, 0.0])
            session.step()
        assert session.state["ball"].position == pytest.approx([0.5, 0.0, 0.1], abs=1e-3)
        assert m.diagnose(session.state, tolerance=1e-10).assembled


def test_a_seam_is_crossed_and_turns_are_kept():
    """A point that is driven round an ellipse three times."""
    m = cd.Mechanism("seam")
    part = m.body("part", position=(1.0, 0.0, 0.0))
    arm = m.body("arm")
    hinge = m.revolute("hinge", m.ground.frame(), arm.frame())
    m.prismatic("slide", arm.frame(z=(1, 0, 0), x=(0, 1, 0)), part.frame(z=(1, 0, 0), x=(0, 1, 0)))
    m.point_on_curve("on", part.point(), m.ground.attach(G.ellipse(1.0, 0.5)))
    m.drive("motor", hinge, lambda t: 2 * cd.pi * t)
    motion = m.move(np.linspace(0.0, 3.0, 25))
    assert motion.ok, motion.text()
    angle = 2 * np.pi * motion.times
    r = 1.0 / np.sqrt(np.cos(angle) ** 2 + 4.0 * np.sin(angle) ** 2)
    wanted = np.stack([r * np.cos(angle), r * np.sin(angle), 0 * r], axis=1)
    assert np.abs(motion.positions("part") - wanted).max() < 1e-11
    contact = motion.states[-1].contact("on")
    assert contact.parameters[1][0] == pytest.approx(6 * np.pi, abs=1e-9)
    assert not contact.normal.any() and contact.gap < 1e-12  # a point on a curve has no normal


def test_what_does_not_touch_in_a_point_is_refused_by_name():
    m = cd.Mechanism("refused")
    a, b = m.body("a"), m.body("b", position=(0, 0, 1))
    faces = {
        name: (a if first else b).attach(shape)
        for name, first, shape in (
            *(("plane", True, G.plane()), ("flat", False, G.plane(1.0, 1.0)), ("drum", False, G.cylinder(0.5, 1.0))),
            *(("ball", False, G.sphere(0.5)), ("line", True, G.line()), ("circle", False, G.circle(1.0))),
        )
    }
    for first, second, options, match in (
        ("plane", "flat", {}, "line or over an area"),
        ("plane", "drum", {}, "line or over an area"),
        ("plane", "ball", {"mode": "glide"}, "mode"),
        ("plane", "ball", {"side": "left"}, "side"),
        ("plane", "ball", {"unilateral": True, "mode": "roll"}, "a contact that opens rolls where its friction holds"),
        ("plane", "ball", {"unilateral": True, "restitution": 1.5}, "restitution is 1.5; it must be from 0 to 1"),
        ("plane", "ball", {"unilateral": True, "friction": -0.1}, "friction is -0.1; it must be zero or more"),
        ("plane", "ball", {"unilateral": True, "friction": (0.1, 0.2)}, "must not exceed the static one"),
        ("plane", "ball", {"friction": 0.1}, "friction is 0.1, but the contact does not open; give unilateral=True"),
        ("line", "circle", {"mode": "roll_without_spin"}, "no spin"),
        ("flat", "ball", {}, "itself"),
    ):
        with pytest.raises(cd.ModelError, match=match):
            m.contact("bad", faces[first], faces[second], **options)
    with pytest.raises(cd.ModelError, match="must be a face"):
        m.contact("bad", a.frame(), faces["ball"])
    with pytest.raises(cd.ModelError, match="must be a surface"):
        m.point_on_surface("bad", b.point(), faces["line"])
    with pytest.raises(cd.ModelError, match="no mass"):
        b.attach(G.sphere(1.0), density=1000.0)
    assert not m.joints and not m.rate_rows


@pytest.mark.slow
def test_a_conformal_contact_is_never_reported_as_assembled():
    """A drum in its own bore touches along a circle, parallel drums along a line."""
    for radius, side, at in ((0.5, "inside", (0, 0, 0.1)), (0.3, "outside", (0.8, 0, 0))):
        m = cd.Mechanism("conformal")
        drum = m.body("drum", position=at)
        m.cylindrical("axle", m.ground, drum, at=at)
        m.contact("c", m.ground.attach(G.cylinder(0.5, 3.0)), drum.attach(G.cylinder(radius, 1.0)), side=side)
        result = m.assemble(restarts=2)
        assert not result.ok and "contact 'c'" in result.text() and "use m.planar" in result.text()
        contact = m.state.contact("c")
        assert contact.status == "conformal" and "line or over an area" in contact.reason


def test_the_kernels_keep_to_their_workspace():
    assert contacts.Pair(G.sphere(1.0), G.plane()).work == PairWork.size + 8


def test_removing_a_contact_removes_its_rolling():
    m = pair("ellipsoids", "roll")
    assert list(m.rate_rows) == ["c.roll"]
    with pytest.raises(cd.ModelError, match="remove the contact"):
        m.remove("c.roll")
    m.remove("c")
    assert not m.joints and not m.rate_rows


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_carries_a_contact(kind, tmp_path):
    m = pair(kind)
    m.save(tmp_path / "x.cardan.toml")
    assert cd.load(tmp_path / "x.cardan.toml") == m
