"""Laws of every registered joint, against relative poses composed from its free coordinates and a NumPy judge."""

from __future__ import annotations

import inspect
from zlib import crc32

import numpy as np
import pytest

import cardan as cd
from cardan import joints
from cardan.coordinates import formulations
from cardan.solvers import methods
from fuzz.oracles.joints import JOINTS
from mechanisms import Local, axes, matrix, miss, product, quaternion, random_quaternion, random_rotation, unit

X, Y, Z = np.eye(3)
SEEDS = range(8)

KINDS = list(JOINTS)
ONE_SIDED = [kind for kind, row in JOINTS.items() if row.one_sided]  # their axes must point the same way
FORMS = [(kind, {}) for kind in KINDS] + [(kind, row.forms) for kind, row in JOINTS.items() if row.forms]


def takes_a_point(kind):
    """For a and b: whether a point will do, by the signature."""
    return tuple(
        "Point" in str(p.annotation)
        for p in list(inspect.signature(joints.REGISTRY[kind].build).parameters.values())[:2]
    )


class Case:
    """A joint between two bodies, or a body and the ground, authored in a pose that satisfies it."""

    def __init__(self, kind, seed, *, on_ground=False, points=False, extra=None):
        rng = np.random.default_rng([seed, crc32(kind.encode())])
        d_A, R_AB, self.coordinates, options = JOINTS[kind].pose(rng)
        self.kind, self.options, self.rng = kind, {**options, **(extra or {})}, rng
        self.mechanism = m = cd.Mechanism()
        R_WA, p_WA = (np.eye(3), np.zeros(3)) if on_ground else (random_rotation(rng), rng.uniform(-2, 2, 3))
        use_point = [points and p for p in takes_a_point(kind)]
        local_a, local_b = (
            (rng.uniform(-1, 1, 3), np.eye(3) if point else random_rotation(rng)) for point in use_point
        )
        R_WF, p_WF = R_WA @ local_a[1], p_WA + R_WA @ local_a[0]
        R_WB = R_WF @ R_AB @ local_b[1].T
        p_WB = p_WF + R_WF @ d_A - R_WB @ local_b[0]
        body_a = m.ground if on_ground else m.body("a", position=p_WA, orientation=quaternion(R_WA))
        body_b = m.body("b", position=p_WB, orientation=quaternion(R_WB))
        self.a, self.b = Local(body_a.name, *local_a), Local("b", *local_b)
        ends = [
            body.point(origin) if point else body.frame(origin, z=R[:, 2], x=R[:, 0])
            for body, (origin, R), point in zip((body_a, body_b), (local_a, local_b), use_point, strict=True)
        ]
        self.joint = getattr(m, kind)("it", *ends, **self.options)

    def miss(self, state):
        return max(miss(self.kind, self.a, self.b, state, self.options))

    def jacobian(self, state):
        """Residuals and Jacobian on the manifold, guard rows left out."""
        system = self.mechanism.system
        q = formulations.to_reference(system, state.coordinates)
        f, J = formulations.problem(system, "manifold").jacobian(q)
        rows = [
            start + i for _, primitive, start in system.rows for i in range(primitive.rows) if i not in primitive.guards
        ]
        return f, J[rows]

    def random_state(self):
        return self.mechanism.state.moved(
            {name: (self.rng.uniform(-3, 3, 3), random_quaternion(self.rng)) for name in self.mechanism.bodies}
        )


def cases(kind, extra=None):
    for seed in SEEDS:
        yield Case(kind, seed, on_ground=seed % 2 == 1, points=seed % 4 >= 2, extra=extra)


def same_angle(a, b):
    return abs(np.exp(1j * a) - np.exp(1j * b))


@pytest.mark.nojit
def test_every_registered_joint_has_a_row_and_a_method():
    between_frames = {name for name, kind in joints.REGISTRY.items() if kind.is_between_places}
    assert set(JOINTS) == between_frames
    others = {"gear", "rack", "belt", "couple", "drive", "limit", "constrain"}
    contacts = {"contact", "path", "point_on_curve", "point_on_surface"}  # test_contacts.py, test_paths.py
    rates = {"knife_edge", "constrain_rates", "rolling"}  # test_rate_rows.py
    assert set(joints.REGISTRY) - between_frames == others | contacts | rates
    assert all(callable(getattr(cd.Mechanism, name)) for name, kind in joints.REGISTRY.items() if not kind.implied)


@pytest.mark.parametrize("kind", KINDS)
def test_the_judge_of_a_joint_accepts_its_composed_poses_and_no_random_ones(kind):
    for case in cases(kind):
        assert case.miss(case.mechanism.state) <= 1e-14
        assert case.miss(case.random_state()) > 1e-3


@pytest.mark.nojit
@pytest.mark.parametrize(("kind", "extra"), FORMS)
def test_a_pose_composed_from_the_free_coordinates_has_no_residual(kind, extra):
    for case in cases(kind, extra):
        f, _ = case.jacobian(case.mechanism.state)
        assert np.abs(f).max() <= 1e-14  # of lengths up to 4


@pytest.mark.nojit
@pytest.mark.parametrize(("kind", "extra"), FORMS)
def test_the_rank_of_a_joint_is_its_number_of_equations(kind, extra):
    for case in cases(kind, extra):
        _, J = case.jacobian(case.mechanism.state)
        assert len(J) == case.joint.equations == JOINTS[kind].equations
        values = np.linalg.svd(J, compute_uv=False)
        assert values[-1] > 1e-2 * values[0]


@pytest.mark.nojit
@pytest.mark.parametrize("kind", KINDS)
def test_joint_coordinates_read_back_what_was_put_in(kind):
    for case in cases(kind):
        read = case.joint.coordinates(case.mechanism.state)
        assert read.keys() == case.coordinates.keys()
        for name, value in case.coordinates.items():
            if "angle" in name:
                assert same_angle(read[name], value) <= 1e-14
            else:
                assert abs(read[name] - value) <= 1e-14
            assert case.joint.coordinate(case.mechanism.state, name) == read[name]


@pytest.mark.parametrize("kind", KINDS)
def test_joint_coordinates_do_not_change_when_everything_moves_rigidly(kind):
    """Of any state, whether the joint is met in it or not."""
    for seed in SEEDS:
        case = Case(kind, seed, points=seed % 2 == 1)
        state = case.random_state()
        turn, shift = random_quaternion(case.rng), case.rng.uniform(-5, 5, 3)
        moved = state.moved(
            {
                name: (shift + matrix(turn) @ pose.position, product(turn, pose.quaternion))
                for name, pose in state.items()
            }
        )
        before, after = case.joint.coordinates(state), case.joint.coordinates(moved)
        assert before.keys() == after.keys() == case.coordinates.keys()
        for name in before:
            assert min(abs(before[name] - after[name]), same_angle(before[name], after[name])) <= 2e-14


@pytest.mark.parametrize("formulation", list(formulations.REGISTRY))
@pytest.mark.parametrize(("kind", "extra"), FORMS)
def test_a_random_start_is_assembled_and_the_judge_agrees(kind, extra, formulation):
    for case in cases(kind, extra):
        result = case.mechanism.assemble(case.random_state(), formulation=formulation)
        assert result.ok, result.text()
        assert case.miss(result.state) <= 1e-11
        read = case.joint.coordinates(result.state)
        for name in case.options:  # a driven coordinate is what was asked for
            if name in read:
                assert abs(read[name] - case.options[name]) <= 1e-11


@pytest.mark.parametrize("kind", KINDS)
def test_an_assembled_pose_is_kept_as_it_is(kind):
    for case in cases(kind):
        result = case.mechanism.assemble()
        assert (result.ok, result.iterations, result.restarts) == (True, 0, 0)
        assert np.abs(result.state.coordinates - case.mechanism.state.coordinates).max() <= 1e-15 * 8


@pytest.mark.parametrize("far", [0.0, 30.0, 1e4])
@pytest.mark.parametrize("kind", KINDS)
def test_an_assembled_pose_is_kept_far_from_the_origin(kind, far):
    """Up to the rounding of coordinates there, which exceeds the target of the solvers if the model has no length."""
    for seed in SEEDS:
        case = Case(kind, seed, points=seed % 2 == 1)
        if far > 30.0 and case.mechanism.system.length:
            continue
        turn, shift = random_quaternion(case.rng), far * unit(case.rng.standard_normal(3))
        poses = case.mechanism.state.items()
        moved = {name: (shift + matrix(turn) @ p.position, product(turn, p.quaternion)) for name, p in poses}
        start = case.mechanism.state.moved(moved)
        result = case.mechanism.assemble(start)
        assert (result.ok, result.iterations, result.restarts) == (True, 0, 0)
        assert np.array_equal(result.state.coordinates, start.coordinates)


@pytest.mark.parametrize("away", [0.0, 1.0])
@pytest.mark.parametrize("turn", [X, Y, unit([0.6, 0.8, 0.0])])
@pytest.mark.parametrize("kind", ONE_SIDED)
def test_a_start_exactly_at_the_flipped_axis_ends_aligned(kind, turn, away):
    """Half a turn about an axis across z, everything else met or also displaced: a saddle that must not be accepted."""
    for seed in SEEDS:
        case, start = flipped(kind, turn, seed, away)
        assert case.miss(start) >= 3.0
        result = case.mechanism.assemble(start)
        assert result.ok, result.text()
        assert case.miss(result.state) <= 1e-11


@pytest.mark.parametrize("method", list(methods.REGISTRY))
@pytest.mark.parametrize("kind", ONE_SIDED)
def test_no_method_calls_a_flipped_axis_assembled(kind, method):
    for seed in SEEDS:
        case, start = flipped(kind, X, seed)
        result = case.mechanism.assemble(start, method=method, max_iterations=500)
        assert not result.ok or case.miss(result.state) <= 1e-11
        if not result.ok:
            name, residual, unit_ = result.worst[0]
            assert (name, unit_) == ("it", "rad")
            assert residual > 1e-6


def flipped(kind, turn, seed, away=0.0):
    """A joint to the ground with its frames along the axes, so that half a turn is exact in floating point."""
    rng = np.random.default_rng([seed, crc32(kind.encode()), 1])
    m = cd.Mechanism()
    case = Case.__new__(Case)
    body = m.body("b", position=rng.uniform(-1, 1, 3), orientation=random_quaternion(rng))
    d, _, _, options = JOINTS[kind].pose(rng)
    case.kind, case.options, case.mechanism = kind, options, m
    case.a, case.b = Local("ground", np.zeros(3), np.eye(3)), Local("b", np.zeros(3), np.eye(3))
    getattr(m, kind)("it", m.ground.frame(x=X), body.frame(x=X), **options)
    return case, m.state.moved({"b": (d + away * rng.uniform(-1, 1, 3), (0.0, *turn))})


@pytest.mark.parametrize("seed", SEEDS)
def test_the_zero_of_a_frame_without_x_is_a_function_of_z_alone(seed):
    """So that two frames with the same axis have the same zero, whatever their origins."""
    rng = np.random.default_rng([seed, 3])
    m = cd.Mechanism()
    one, two = m.body("one"), m.body("two")
    z = rng.normal(size=3)
    frames = [one.frame(rng.normal(size=3), z=z), two.frame(rng.normal(size=3), z=5 * z), m.ground.frame(z=z)]
    for frame in frames:
        assert np.abs(np.array(frame.x) - axes(z)[:, 0]).max() <= 1e-15
        R = np.column_stack([frame.x, frame.y, frame.z])
        assert np.abs(R.T @ R - np.eye(3)).max() <= 1e-15
        assert np.abs(matrix(frame.quaternion()) - R).max() <= 1e-15
        assert np.linalg.det(R) > 0


def drawn_directions():
    """What people draw: directions of small integers, and multiples of 15° in the planes of the axes."""
    grid = np.mgrid[-3:4, -3:4, -3:4].reshape(3, -1).T.astype(float)
    turns = np.arange(24) * np.pi / 12
    flat = np.column_stack([np.cos(turns), np.sin(turns), np.zeros(24)])
    return [unit(z) for z in [*grid[np.any(grid, axis=1)], *flat, *np.roll(flat, 1, axis=1), *np.roll(flat, 2, axis=1)]]


@pytest.mark.slow
def test_the_default_x_does_not_jump_where_people_draw():
    rng = np.random.default_rng(30)
    m = cd.Mechanism()
    for z in drawn_directions():
        x = np.array(m.ground.frame(z=z).x)
        assert np.array_equal(m.ground.frame(z=-z).x, x)
        sides = np.linalg.svd(z[None])[2][1:]
        for _ in range(20):
            off = unit(rng.normal(size=2)) @ sides * 1e-6 * rng.choice([1.0, 1e-3, 1e-6, 1e-10])
            assert np.abs(np.array(m.ground.frame(z=unit(z + off)).x) - x).max() < 1e-5


def test_the_default_x_is_an_axis_of_the_body_where_z_is_one():
    m = cd.Mechanism()
    for z, x in ((X, Y), (Y, X), (Z, X)):
        for sign in (1.0, -1.0):
            assert m.ground.frame(z=sign * z).x == tuple(x)
    for angle in np.random.default_rng(31).uniform(-np.pi, np.pi, 50):
        assert m.ground.frame(z=(0.0, np.cos(angle), np.sin(angle))).x == tuple(X)


def test_the_default_x_exists_where_it_jumps():
    z = unit([1.0, 0.4, 0.2])
    for _ in range(100):  # z ∥ (2, z₁², z₁ z₂)
        z = unit([2.0, z[0] ** 2, z[0] * z[1]])
    assert np.abs(z - [0.912, 0.379, 0.158]).max() <= 5e-4
    assert min(np.arccos(np.abs(z @ drawn)) for drawn in drawn_directions()) > np.radians(9)
    m = cd.Mechanism()
    for scale in (0.0, 1e-16, 1e-12, 1e-8):
        frame = m.ground.frame(z=z + scale * np.array([0.3, -0.5, 0.1]))
        R = np.column_stack([frame.x, frame.y, frame.z])
        assert np.abs(R.T @ R - np.eye(3)).max() <= 1e-15


@pytest.mark.parametrize("kind", ["fixed", "prismatic", "revolute"])
def test_an_axis_and_the_same_axis_rounded_have_the_same_zero(kind):
    """(cos π/2, sin π/2, 0) and (0, 1, 0), for example: the part stays as it was drawn."""
    rng = np.random.default_rng(32)
    for z in drawn_directions()[::3]:
        m = cd.Mechanism()
        b = m.body("b")
        rounded = z + rng.choice([-1e-16, 0.0, 1e-16], 3)
        joint = getattr(m, kind)("it", m.ground.frame(z=rounded), b.frame(z=np.where(np.abs(z) < 1e-15, 0.0, z)))
        result = m.assemble()
        assert result.ok
        assert np.abs(result.state["b"].quaternion[1:]).max() <= 1e-14
        if kind == "revolute":
            assert abs(joint.coordinate(result.state)) <= 1e-14


@pytest.mark.parametrize("kind", ["fixed", "prismatic"])
def test_a_joint_that_locks_rotation_wants_x_on_both_frames_or_on_neither(kind):
    m = cd.Mechanism()
    body = m.body("b")
    with_x, without = m.ground.frame(x=X), body.frame()
    with pytest.raises(cd.ModelError, match=r"'it'.*'ground' has a reference x.*'b' has none.*on both"):
        getattr(m, kind)("it", with_x, without)
    assert len(m) == 1
    assert getattr(m, kind)("it", m.ground.frame(), without).name == "it"
    assert m.assemble().ok
