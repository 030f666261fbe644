"""Laws of the drawing: joints placed in it, orientations in every form, fixed bodies, forward kinematics, units."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import cardan as cd
from cardan import joints
from cardan.system.tables import CROSSED
from fuzz.oracles.joints import JOINTS
from mechanisms import random_quaternion, unit

X, Y, Z = np.eye(3)
PLACED = [name for name, kind in joints.REGISTRY.items() if kind.is_between_places and name != "distance"]
OPTIONS = {kind: row.coinciding for kind, row in JOINTS.items()}


def two_bodies(rng):
    m = cd.Mechanism()
    drawn = [(rng.uniform(-2, 2, 3), random_quaternion(rng)) for _ in range(2)]
    a, b = (m.body(name, position=p, orientation=q) for name, (p, q) in zip("ab", drawn, strict=True))
    return m, a, b


def frame_on(body, state, at, z, x, takes):
    """The frame or point on a body at a place in world, in NumPy alone."""
    pose = state[body]
    R = Rotation.from_quat(np.roll(pose.quaternion, -1)).as_matrix() if not body.is_ground else np.eye(3)
    origin = R.T @ (at - pose.position)
    return body.point(origin) if takes == "point" else body.frame(origin, z=R.T @ z, x=R.T @ x)


@pytest.mark.parametrize("kind", PLACED)
def test_a_joint_placed_in_the_drawing_is_that_by_frames_and_reads_zero(kind):
    registered = joints.REGISTRY[kind]
    crossed = registered.motion is not None and registered.motion.rotation == CROSSED
    for seed in range(12):
        rng = np.random.default_rng([seed, 5])
        at, z = rng.uniform(-3, 3, 3), unit(rng.normal(size=3))
        x = unit(np.cross(z, rng.normal(size=3)))
        placed, by_frames = (two_bodies(np.random.default_rng(seed)) for _ in range(2))
        m, a, b = placed
        first = m.ground if seed % 3 == 0 else a
        made = getattr(m, kind)("it", first, b, **OPTIONS[kind], at=at, axis=3.0 * z, x=x if crossed else x + 0.5 * z)
        n = by_frames[0]
        axes = ((z, x), (x, z) if crossed else (z, x))
        ends = [
            frame_on(n[body.name], n.system.state(), at, *own, takes)
            for body, own, takes in zip((first, b), axes, registered.takes, strict=True)
        ]
        same = getattr(n, kind)("it", *ends, **OPTIONS[kind])
        for end, other in zip(made.ends, same.ends, strict=True):
            for value, expected in zip(end.feature().value, other.feature().value, strict=True):
                assert abs(value - expected) <= 1e-14 * 8
            if hasattr(end, "z"):
                assert np.abs(np.array([end.x, end.z]) - [other.x, other.z]).max() <= 1e-14
        state = m.state
        assert all(abs(value) <= 1e-12 for value in made.coordinates(state).values())
        result = m.assemble()
        assert result.ok
        assert np.abs(result.state.coordinates - state.coordinates).max() <= 1e-13
        assert m.diagnose().dof == n.diagnose().dof


@pytest.mark.nojit
def test_wrong_places_are_refused_with_the_way_out():
    m, a, b = two_bodies(np.random.default_rng(1))
    for call, text in (
        (lambda: m.revolute("A", a, b), "at="),
        (lambda: m.revolute("A", a.frame(), b, at=(0, 0, 0)), "two bodies"),
        (lambda: m.revolute("A", a, b, at=(0, 0, 0), x=(1, 0, 0)), "axis="),
        (lambda: m.revolute("A", a, b, at=(0, 0)), "must have 3"),
        (lambda: m.revolute("A", a, a, at=(0, 0, 0)), "itself"),
        (lambda: m.distance("A", a, b, 1.0, at=(0, 0, 0)), "two points"),
        (lambda: m.revolute("A", a, cd.Mechanism().body("c"), at=(0, 0, 0)), "another mechanism"),
    ):
        with pytest.raises(cd.ModelError, match=text):
            call()
    assert not m.joints


def test_a_weld_of_two_bodies_needs_no_place():
    m, a, b = two_bodies(np.random.default_rng(2))
    m.fixed("weld", a, b)
    m.fixed("base", m.ground, a)
    assert m.assemble().iterations == 0
    assert m.diagnose().dof == 0


@pytest.mark.nojit
def test_every_form_of_an_orientation_is_the_rotation_of_scipy():
    rng = np.random.default_rng(3)
    m = cd.Mechanism()
    for k in range(20):
        letters = ["xyz", "zxz", "ZYX", "yx", "Z"][k % 5]
        angles = rng.uniform(-3, 3, len(letters))
        rotation = Rotation.from_euler(letters, angles)
        vector = rotation.as_rotvec()
        angle = np.linalg.norm(vector)
        forms = (
            rotation,
            rotation.as_matrix(),
            (vector / angle, angle),
            (letters, angles),
            rotation.as_matrix().tolist(),
        )
        for j, form in enumerate(forms):
            body = m.body(f"{k} {j}", orientation=form)
            assert np.abs(m[body.name].authored()[1] - rotation.as_matrix()).max() <= 1e-14 * 4
    for wrong in ("xyz", ("xxy", (1, 2, 3)), ("xY", (1, 2)), np.diag([1, 1, -1]), 2 * np.eye(3), 3.0, ((0, 0, 0), 1.0)):
        with pytest.raises(cd.ModelError, match="orientation of body 'wrong'"):
            m.body("wrong", orientation=wrong)
    assert "wrong" not in m


def test_an_adopted_state_is_the_drawing():
    m = slider_crank()
    result = m.assemble()
    assert result.ok
    m.adopt(result.state)
    again = m.assemble()
    assert again.iterations == 0
    assert np.array_equal(m.state.coordinates, result.state.coordinates)
    with pytest.raises(cd.ModelError, match="State"):
        m.adopt(result)


def slider_crank():
    from cardan import examples

    return examples.REGISTRY["slider_crank"].build()


@pytest.mark.parametrize("seed", range(6))
def test_forward_kinematics_gives_every_coordinate_its_value_and_satisfies_the_tree(seed):
    rng = np.random.default_rng(seed)
    kinds = [name for name, kind in joints.REGISTRY.items() if kind.motion is not None and name != "fixed"]
    m = cd.Mechanism()
    before, given = m.ground, {}
    for k, kind in enumerate(rng.permutation(kinds)):
        body = m.body(f"b{k}", position=rng.uniform(-1, 1, 3), orientation=random_quaternion(rng))
        a, b = (one.frame(rng.uniform(-1, 1, 3), z=rng.normal(size=3), x=rng.normal(size=3)) for one in (before, body))
        if k % 2:
            a, b = b, a
        getattr(m, kind)(kind, a, b, **OPTIONS[kind])
        before = body
        words = [word for word in m[kind].kind.coordinates if (kind, word) != ("screw", "displacement")]
        for word in words:
            given[f"{kind}.{word}" if len(words) > 1 or kind == "screw" else kind] = float(rng.uniform(-1, 1))
    given["parallel"] = {"angle": given["parallel"], "x": 0.25}
    given["spherical"] = ("zyx", rng.uniform(-1, 1, 3))
    loose = m.body("loose")
    given[loose] = ((1, 2, 3), (Z, 0.5))
    state = m.state_at(given)
    result = m.assemble(state)
    assert (result.ok, result.iterations) == (True, 0)
    for key, value in given.items():
        if isinstance(value, float):
            name, _, word = key.partition(".")
            assert abs(m[name].coordinate(state, word or None) - value) <= 1e-12
    assert (
        np.abs(m["spherical"].relative(state).R_AB - Rotation.from_euler(*given["spherical"]).as_matrix()).max()
        <= 1e-14
    )
    assert abs(m["parallel"].relative(state).d_A[0] - 0.25) <= 1e-13
    assert np.array_equal(state["loose"].position, [1, 2, 3])


def test_coordinates_that_are_not_given_stay_as_drawn_and_loops_are_checked():
    m = slider_crank()
    drawn = m.assemble().state
    m.adopt(drawn)
    names = [name for name, joint in m.joints.items() if joint.edge is not None]
    values = {name: m[name].coordinates(drawn) for name in names}
    given = {name: {w: v for w, v in value.items() if w in ("angle", "displacement")} for name, value in values.items()}
    given = {name: value for name, value in given.items() if value}
    state = m.state_at(given)
    assert np.abs(state.positions - drawn.positions).max() <= 1e-12
    first = next(iter(given))
    with pytest.raises(cd.ModelError, match="closes a loop"):
        m.state_at(given | {first: {next(iter(given[first])): 0.7}})
    with pytest.raises(cd.ModelError, match="no coordinate"):
        m.state_at({first: {"wrong": 1.0}})


def test_whole_turns_of_given_angles_are_kept():
    m = cd.Mechanism()
    wheel = m.body("wheel")
    hinge = m.revolute("hinge", m.ground, wheel, at=(0, 0, 0))
    m.limit("stop", hinge, upper=50.0)
    assert abs(hinge.coordinate(m.state_at({"hinge": 20.0})) - 20.0) <= 1e-12


def test_velocities_of_a_pose_are_in_world_axes():
    m = cd.Mechanism()
    arm = m.body("arm", position=(0, 1, 0), orientation=("xyz", (0.3, -0.4, 0.8)))
    axis, rate = unit([1.0, 2.0, -0.5]), 1.7
    hinge = m.revolute("hinge", m.ground, arm, at=(0.2, 0, 0), axis=axis)
    m.drive("motor", hinge, lambda t: rate * t)
    for state in m.move([0.0, 0.3, 0.9]).states:
        pose = state["arm"]
        assert np.abs(pose.angular_velocity - rate * axis).max() <= 1e-12
        assert np.abs(pose.velocity - np.cross(rate * axis, pose.position - [0.2, 0, 0])).max() <= 1e-12
        tip = np.cross(rate * axis, pose.point((1, 2, 3)) - [0.2, 0, 0])
        assert np.abs(pose.velocity_of((1, 2, 3)) - tip).max() <= 1e-12
    with pytest.raises(cd.ModelError, match="no velocities"):
        _ = m.state["arm"].velocity
    assert not m.state["ground"].velocity.any()


def test_a_fixed_body_stays_where_it_is_drawn_until_it_is_freed():
    m = cd.Mechanism()
    base = m.body("base", position=(1, 0, 0), fixed=True)
    arm = m.body("arm", position=(1, 1, 0))
    m.revolute("hinge", base, arm, at=(1, 0, 0))
    assert base.fixed
    assert m.diagnose().dof == 1
    base.position = (2, 0, 0)
    arm.position = (2, 1, 0)
    assert m.assemble().iterations == 0
    assert np.array_equal(m.assemble().state["base"].position, [2, 0, 0])
    m.adopt(m.state.moved({"base": ((3, 0, 0), (1, 0, 0, 0)), "arm": ((3, 1, 0), (1, 0, 0, 0))}))
    assert np.array_equal(m.assemble().state["base"].position, [3, 0, 0])
    assert pickle.loads(pickle.dumps(m)) == m
    base.fixed = False
    assert not base.fixed
    assert m.diagnose().dof == 7
    m.prismatic("slide", m.ground, base, at=(3, 0, 0), axis=X)  # driven later
    m.drive("feed", m["slide"], lambda t: 0.1 * t)
    assert abs(m.move([0, 1]).states[-1]["base"].position[0] - 3.1) <= 1e-12
    with pytest.raises(cd.ModelError, match="ground"):
        m.ground.fixed = False


@pytest.mark.parametrize("squared", [False, True])
def test_a_distance_of_zero_makes_points_coincide(squared):
    m, a, b = two_bodies(np.random.default_rng(4))
    m.fixed("base", m.ground, a)
    joint = m.distance("it", a.point((1, 0, 0)), b.point((0, 1, 0)), 0, squared=squared)
    result = m.assemble()
    assert result.ok
    assert joint.equations == 3
    assert np.abs(result.state["a"].point((1, 0, 0)) - result.state["b"].point((0, 1, 0))).max() <= 1e-12


@pytest.mark.parametrize(("angle", "sign"), [(0.0, 1), (math.pi, -1), (180 * cd.deg, -1)])
def test_an_angle_of_zero_or_pi_aligns_the_axes_or_opposes_them(angle, sign):
    for seed in range(5):
        m, a, b = two_bodies(np.random.default_rng(seed))
        joint = m.angle("it", a.frame(z=(1, 2, 0)), b.frame(z=(0, 1, 1)), angle, cosine=seed % 2 == 0)
        result = m.assemble()
        assert result.ok
        assert joint.equations == 2
        u, v = result.state["a"].vector(unit([1, 2, 0])), result.state["b"].vector(unit([0, 1, 1]))
        assert np.abs(u - sign * v).max() <= 1e-12


def test_a_constant_velocity_joint_transmits_equal_speeds_and_a_universal_joint_does_not():
    """Two shafts on fixed bearings, bent by 35°; the universal joint has ω₂/ω₁ = cos β/(1 − sin²β cos²θ)."""
    bend = 35 * cd.deg
    speeds = {}
    for kind in ("constant_velocity", "universal"):
        m = cd.Mechanism(kind)
        one, two = m.body("one"), m.body("two")
        out = np.array([math.sin(bend), 0.0, math.cos(bend)])
        first = m.revolute("first", m.ground, one, at=(0, 0, -1), axis=Z)
        second = m.revolute("second", m.ground, two, at=out, axis=out)
        if kind == "universal":
            m.universal("it", one.frame(z=X), two.frame(z=Y))
        else:
            turn = Rotation.from_rotvec([0, bend, 0])
            m.constant_velocity("it", one.frame(z=Z, x=X), two.frame(z=out, x=turn.apply(X)))
        m.drive("motor", first, lambda t: t)
        motion = m.move(np.linspace(0, 2 * math.pi, 40))
        assert motion.ok, motion.text()
        speeds[kind] = np.array([state["two"].angular_velocity @ out for state in motion.states])
        angles = motion.coordinate(second)
        if kind == "constant_velocity":
            assert np.abs(speeds[kind] - 1).max() <= 1e-10
            assert np.abs(angles - angles[0] - motion.times).max() <= 1e-10
    ratios = math.cos(bend), 1 / math.cos(bend)
    assert abs(speeds["universal"].min() - ratios[0]) <= 2e-3
    assert abs(speeds["universal"].max() - ratios[1]) <= 2e-3


def test_the_angles_of_a_universal_joint_have_the_documented_signs():
    """R_AB = R_z(angle_a) C R_z(−angle_b)."""
    m, a, b = two_bodies(np.random.default_rng(6))
    joint = m.universal("it", a, b, at=(0, 0, 0), axis=X, x=Y)
    crossed = np.array([[0, 0, 1], [0, -1, 0], [1, 0, 0]])
    for first, second in ((0.3, 0.0), (0.0, 0.4), (-1.2, 2.0)):
        state = m.state_at({"it": {"angle_a": first, "angle_b": second}})
        about = [Rotation.from_euler("z", angle).as_matrix() for angle in (first, -second)]
        assert np.abs(joint.relative(state).R_AB - about[0] @ crossed @ about[1]).max() <= 1e-14


def test_texts_are_in_the_units_of_the_display_and_arrays_in_si():
    texts = {}
    for display in (cd.Display(), cd.Display("inch", "rad"), cd.Display(length="m")):
        m = cd.Mechanism()
        a = m.body("a", position=(1, 0, 0))
        m.fixed("base", m.ground, a)
        m.distance("short", m.ground.point(), a.point(), 3 * cd.inch)
        m.display = display
        result = m.assemble()
        assert not result.ok
        texts[display] = pickle.loads(pickle.dumps(result)).text()
        assert texts[display] == result.text()
        assert {v.unit for v in result.worst} <= {"m", "rad"}
        assert "inch" not in repr(result.worst[0])
    assert " mm" in texts[cd.Display()]
    assert " inch" in texts[cd.Display("inch", "rad")]
    assert " mm" not in texts[cd.Display(length="m")]
    assert abs(cd.mm - 1e-3) + abs(cd.inch - 0.0254) + abs(180 * cd.deg - math.pi) <= 1e-15
    with pytest.raises(cd.ModelError, match="mile"):
        cd.Display(length="mile")
    with pytest.raises(cd.ModelError, match="Display"):
        m.display = "mm"


@pytest.mark.parametrize("kind", ["universal", "perpendicular"])
def test_a_second_axis_that_is_not_perpendicular_is_refused(kind):
    m, a, b = two_bodies(np.random.default_rng(7))
    with pytest.raises(cd.ModelError, match=rf"{kind} 'it': x= is \(1, 1, 0\), at 45° from axis= .* perpendicular"):
        getattr(m, kind)("it", a, b, at=(0, 0, 0), axis=(1, 0, 0), x=(1, 1, 0))
    typed = (-0.444444, 0.888889, 0.0)  # six digits
    made = getattr(m, kind)("it", a, b, at=(0, 0, 0), axis=(0.888889, 0.444444, 0), x=typed)
    assert made.ends[0].body is a


def test_state_at_does_not_move_a_fixed_body():
    m = cd.Mechanism("fixed")
    a, b = m.body("a", fixed=True), m.body("b", position=(1, 0, 0))
    m.revolute("A", m.ground, a, at=(0, 0, 0))
    m.revolute("B", a, b, at=(1, 0, 0))
    with pytest.raises(cd.ModelError, match="'a' is a fixed body, which stays where it is drawn; free it"):
        m.state_at({"a": ((1, 0, 0), (1, 0, 0, 0))})
    with pytest.raises(cd.ModelError, match="'A' closes a loop, and the fixed bodies"):
        m.state_at({"A": 0.3})
    assert m.state_at({"A": 0.0, "B": 0.5})["a"].position.tolist() == [0, 0, 0]
    a.fixed = False
    assert abs(m["A"].of("angle").value(m.state_at({"A": 0.3})) - 0.3) <= 1e-15


def test_solve_rates_takes_coordinates_by_name():
    m = cd.Mechanism("pin")
    pin = m.cylindrical("p", m.ground, m.body("b"), at=(0, 0, 0))
    state = m.assemble().state
    by_name = m.solve_rates(state, {"p.angle": 2.0, "p.displacement": 0.5})
    by_coordinate = m.solve_rates(state, {pin.of("angle"): 2.0, pin.of("displacement"): 0.5})
    assert np.array_equal(by_name.velocities, by_coordinate.velocities)
    assert np.allclose(by_name.velocities[0], [0, 0, 0.5, 0, 0, 2.0], atol=1e-12)
    with pytest.raises(cd.ModelError, match="turning"):
        m.solve_rates(state, {"p.turning": 1.0})


def test_a_jacobian_by_drivers_needs_drivers():
    m = cd.Mechanism("bare")
    body = m.body("b")
    with pytest.raises(cd.ModelError, match="but the mechanism has none; add one with m"):
        m.jacobian(body.point(), m.state, by="drivers")
