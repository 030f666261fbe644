"""Laws of the public equations of motion, by differences of particles, potentials and rows, in both forms.

A rigid body is as good as six particles: two on each principal axis.  Along a motion x(t) with the velocities v and
accelerations v̇ of the bodies,  Σ m ẍ·δx = (M v̇ − Q_v)·δv.  None of this uses a formula of the library.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import issparse
from scipy.spatial.transform import Rotation

import cardan as cd
from cardan.dynamics import quaternion_form
from cardan.math import euler
from fuzz.oracles.joints import JOINTS
from tests.mechanism.test_capabilities import CAPABILITIES, base

H, H2 = 4e-4, 2e-3  # of nine-point differences of first and second order
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
SECOND = (8 / 5, -1 / 5, 8 / 315, -1 / 560)
X, Y, Z = np.eye(3)


def rate(read):
    """d/dt of read(t) at 0."""
    return sum(w * (read(k * H) - read(-k * H)) for k, w in enumerate(WEIGHTS, 1)) / H


def acceleration(read):
    """d²/dt² of read(t) at 0."""
    at = read(0.0)
    return sum(w * (read(k * H2) - 2.0 * at + read(-k * H2)) for k, w in enumerate(SECOND, 1)) / H2**2


def moved(state, v, a, t):
    """The state on a motion with ṙ, ω = v and r̈, ω̇ = a at t = 0; shapes (bodies, 6).  Rotations by SciPy."""
    step = t * v + 0.5 * t * t * a
    new = {}
    for k, name in enumerate(state.names):
        w, x, y, z = state.quaternions[k]
        turned = (Rotation.from_quat([x, y, z, w]) * Rotation.from_rotvec(step[k, 3:])).as_quat()
        new[name] = (state.positions[k] + step[k, :3], (turned[3], *turned[:3]))
    return state.moved(new).with_time(state.time + t)


def sized(m, rng):
    """Random velocities or accelerations."""
    return rng.uniform(-1, 1, (len(m.bodies), 6)) * [*[m.system.judged_length] * 3, 1, 1, 1]


def in_parameters(state, v):
    """(ṙ, ṗ) of every body, flat, from (ṙ, ω): ṗ = ½ p ⊗ (0, ω)."""
    spun = [euler.multiply(p, [0.0, *w]) for p, w in zip(state.quaternions, v[:, 3:], strict=True)]
    return np.hstack([v[:, :3], 0.5 * np.array(spun)]).ravel()


def seven(state, v, a):
    """(r̈, p̈) of every body, flat, on that motion, by differences of p."""

    def p(t):
        now = moved(state, v, a, t).quaternions
        return now * np.sign(np.sum(now * state.quaternions, axis=1))[:, None]

    return np.hstack([a[:, :3], acceleration(p)]).ravel()


FOLLOWING = {"contact", "path", "point_on_curve", "point_on_surface"}  # kinds whose rows have axes that follow it


# -- C_q, γ ------------------------------------------------------------------------------------------------------------


def check_equations(m, state, rng, bar):
    """C_q, A, γ in both forms, along random motions.  Guards are no equations.

    Rows of contacts have axes that follow them: their γ is that of motions that keep them.
    """
    v = sized(m, rng)
    if FOLLOWING & {joint.kind.name for joint in m.joints.values()}:
        here = m.constraint_equations(state, sparse=False)
        slip = here.jacobian @ v.ravel() - here.rate
        v -= np.linalg.lstsq(here.jacobian, slip, rcond=None)[0].reshape(v.shape)
    none = 0.0 * v
    still = state.with_time(state.time)

    def along(t):
        return moved(still, v, none, t)

    for form in ("manifold", "euler_parameters"):

        def at(state, rates=None, form=form):
            given = state if rates is None else state.with_rates(rates)
            return m.constraint_equations(given, sparse=False, coordinates=form)

        def flat(state, form=form):
            return v.ravel() if form == "manifold" else in_parameters(state, v)

        def rising(t, at=at, flat=flat):
            now = at(along(t))
            return now.jacobian @ flat(along(t)) - now.rate

        here = at(still, v)
        poses = ~here.guards & ~here.of_rates
        width = 6 if form == "manifold" else 7
        assert here.jacobian.shape == (len(here.rows), width * len(m.bodies))
        assert here.coordinates == form
        size = max(1.0, np.abs(here.jacobian).max(initial=0.0)) * max(1.0, m.system.judged_length)
        change = rate(lambda t, at=at: at(along(t)).value)
        assert np.abs((rising(0.0) - change)[poses]).max(initial=0.0) <= bar * size
        a = np.zeros(here.jacobian.shape[1]) if form == "manifold" else seven(still, v, none)
        expected = here.jacobian @ a - rate(rising)
        largest = size * max(1.0, np.abs(expected).max(initial=0.0))
        assert np.abs((here.gamma - expected)[~here.guards]).max(initial=0.0) <= bar * largest
        assert np.array_equal(np.isnan(at(still).value), here.of_rates)
        assert np.allclose(here.value[here.of_rates], rising(0.0)[here.of_rates], rtol=0, atol=1e-14 * largest)
    assert np.abs(here.value[len(here.rows) - len(m.bodies) :]).max() < 1e-15
    assert [row[:2] for row in here.rows[-len(m.bodies) :]] == [(name, "unit_quaternion") for name in m.bodies]


def some(kind):
    m = base()
    CAPABILITIES[kind](m)
    return m


@pytest.mark.parametrize("kind", ["revolute", "gear", "drive", "knife_edge", "contact, roll"])
def test_constraint_equations_are_those_of_differences_in_both_forms(kind):
    m = some(kind)
    check_equations(m, m.assemble(time=0.3).state, np.random.default_rng(2), 1e-9)


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(CAPABILITIES))
def test_constraint_equations_of_every_capability_are_those_of_differences_in_both_forms(kind):
    if "by differences" in kind or kind in ("contact that opens", "a flexible body"):
        return  # they are refused by name, or are differences themselves: see the table of capabilities and verbs
    m = some(kind)
    rng = np.random.default_rng(3)
    state = m.assemble(time=0.3).state
    for _ in range(3):
        check_equations(m, state, rng, 1e-9)
    if kind in JOINTS:  # open, too
        check_equations(m, m.state.with_time(0.3), rng, 1e-9)


def test_rate_rows_are_velocities_of_points_by_differences():
    """A of a blade: z·ẋ of its point; of a ball that rolls in a shell: velocities of the material points."""
    m, rng = some("knife_edge"), np.random.default_rng(4)
    state = m.assemble().state
    v = sized(m, rng)
    blade = m.constraint_equations(state.with_rates(v), "new")
    assert blade.of_rates.tolist() == [True]
    wheel = state["wheel"]
    speed = rate(lambda t: moved(state, v, 0 * v, t)["wheel"].point((0.3, 0, 0))) @ (wheel.matrix @ Y)
    assert blade.value == pytest.approx([speed], abs=1e-10)
    assert blade.rows[0][3] == "m/s"

    m = some("contact, roll")
    state = m.assemble().state
    v = sized(m, rng)
    ball, shell = state["ball"], state["carriage"]
    outwards = ball.position - shell.position
    touch = ball.position + 0.1 * outwards / np.linalg.norm(outwards)
    places = {"ball": ball.matrix.T @ (touch - ball.position), "carriage": shell.matrix.T @ (touch - shell.position)}
    slip = rate(lambda t: np.subtract(*[moved(state, v, 0 * v, t)[name].point(s) for name, s in places.items()]))
    rows = m.constraint_equations(state.with_rates(v), "new.roll")
    assert rows.of_rates.all() and len(rows.rows) == 2
    tangent = slip - outwards * (slip @ outwards) / (outwards @ outwards)
    assert np.linalg.norm(rows.value) == pytest.approx(np.linalg.norm(tangent), abs=1e-9)


def test_the_columns_of_euler_parameters_are_derivatives_by_p_of_any_length():
    m = cd.Mechanism()
    b = m.body("b", position=(0.3, 0.2, 0.1), orientation=("xyz", (0.3, 0.5, -0.7)))
    m.spherical("ball", m.ground.frame(), b.frame((0.4, -0.2, 0.9)))
    here = m.constraint_equations(coordinates="euler_parameters")
    p = m.state.quaternions[0]
    for k in range(4):  # A(p) is quadratic: central differences are exact
        step = np.eye(4)[k]
        by_p = (euler.matrix(p + step) - euler.matrix(p - step)) @ (0.4, -0.2, 0.9) / 2
        assert here.jacobian[:3, 3 + k] == pytest.approx(by_p, abs=1e-15)
    assert here.jacobian[3] == pytest.approx([0, 0, 0, *2 * p], abs=1e-15)
    assert len(m.constraint_equations(joint="ball", coordinates="euler_parameters").rows) == 3


# -- M, Q_v, Q_e -------------------------------------------------------------------------------------------------------


def loaded():
    """Bodies with centres aside, full inertias, an inertia of a joint, gravity, and loads with potentials."""
    m = cd.Mechanism("loaded", gravity=(0.4, -2.0, -9.0))
    rng = np.random.default_rng(5)
    for name in "ab":
        B = rng.uniform(-1, 1, (3, 3))
        inertia = B @ B.T + 3.0 * np.eye(3)
        orientation = ("xyz", rng.uniform(-2, 2, 3))
        m.body(name, position=rng.uniform(1, 2, 3), orientation=orientation, center=(0.3, -0.2, 0.4))
        m[name].mass, m[name].inertia = 2.0 + rng.uniform(), inertia
    hinge = m.revolute("R", m.ground.frame(), m["a"].frame((0.1, 0.2, 0.3)))
    m.spherical("S", m["a"].frame((1, 0, 0)), m["b"].frame())
    hinge.inertia = 0.7
    m.spring("spring", m["a"].point((0.2, 0, 0)), m["b"].point((0, 0.1, 0.5)), stiffness=30.0, rest=0.4)
    m.force("push", m["b"].point((0.4, 0, 0.2)), (1.0, 2.0, -3.0))
    return m


def particles(body):
    """Masses and places in body axes: two particles on each principal axis, at the distance 1."""
    moments, axes = np.linalg.eigh(body.inertia)
    masses = (moments.sum() / 2 - moments) / 2  # of the second moment about the plane, at ±1
    return [
        (mass, np.array(body.center) + sign * axes[:, k]) for k, mass in enumerate(masses) for sign in (1.0, -1.0)
    ] + [(body.mass - 2 * masses.sum(), np.array(body.center))]


def angle_of(m, state):
    """The angle of the hinge about z."""
    x = state["a"].matrix @ X
    return np.arctan2(x[1], x[0])


def work(m, state, v, a, dv):
    """Σ m ẍ·δx of all particles, and of the inertia of the joint."""
    total = 0.0
    for name, body in m.bodies.items():
        for mass, s in particles(body):

            def place(t, w=v, b=a, name=name, s=s):
                return moved(state, w, b, t)[name].point(s)

            total += mass * acceleration(place) @ rate(lambda t, place=place: place(t, dv, 0 * a))
    coordinate = [lambda t, w=w, b=b: angle_of(m, moved(state, w, b, t)) for w, b in ((v, a), (dv, 0 * a))]
    return total + 0.7 * acceleration(coordinate[0]) * rate(coordinate[1])


def potential(m, state):
    """Of gravity, the spring and the force."""
    centres = [body.mass * state[name].point(body.center) for name, body in m.bodies.items()]
    stretched = np.linalg.norm(state["b"].point((0, 0.1, 0.5)) - state["a"].point((0.2, 0, 0))) - 0.4
    end = state["b"].point((0.4, 0, 0.2))
    return 15.0 * stretched**2 - np.sum(centres, axis=0) @ (0.4, -2.0, -9.0) - end @ (1.0, 2.0, -3.0)


def test_mass_and_velocity_forces_are_those_of_particles_in_both_forms():
    m, rng = loaded(), np.random.default_rng(6)
    v, a, dv = (sized(m, rng) for _ in range(3))
    state = m.state.with_rates(v)
    expected = work(m, m.state, v, a, dv)
    here = m.motion_equations(state)
    assert (here.mass @ a.ravel() - here.velocity) @ dv.ravel() == pytest.approx(expected, rel=1e-9)
    assert np.allclose(here.mass, here.mass.T, rtol=0, atol=1e-14)
    other = m.motion_equations(state, coordinates="euler_parameters")
    found = (other.mass @ seven(m.state, v, a) - other.velocity) @ in_parameters(m.state, dv)
    assert found == pytest.approx(expected, rel=1e-9)
    assert np.array_equal(m.mass_matrix(state), here.mass)
    for k, p in enumerate(m.state.quaternions):  # M is singular along p, and no force is along it
        radial = np.zeros(14)
        radial[7 * k + 3 : 7 * k + 7] = p
        assert np.abs(other.mass @ radial).max() <= 1e-14
        assert abs(other.velocity @ radial) + abs(other.applied @ radial) <= 1e-13
    energy = 0.5 * v.ravel() @ here.mass @ v.ravel()
    by_particles = (
        sum(
            0.5 * mass * np.sum(rate(lambda t, n=name, s=s: moved(m.state, v, 0 * v, t)[n].point(s)) ** 2)
            for name, body in m.bodies.items()
            for mass, s in particles(body)
        )
        + 0.35 * rate(lambda t: angle_of(m, moved(m.state, v, 0 * v, t))) ** 2
    )
    assert energy == pytest.approx(by_particles, rel=1e-9)


def test_applied_forces_are_those_of_potentials_in_both_forms():
    m, rng = loaded(), np.random.default_rng(7)
    for _ in range(3):
        dv = sized(m, rng)
        expected = -rate(lambda t, dv=dv: potential(m, moved(m.state, dv, 0 * dv, t)))
        assert m.motion_equations().applied @ dv.ravel() == pytest.approx(expected, rel=1e-9)
        other = m.motion_equations(coordinates="euler_parameters").applied
        assert other @ in_parameters(m.state, dv) == pytest.approx(expected, rel=1e-9)


def test_the_equations_are_those_of_the_simulation_and_of_the_papers():
    m = loaded()
    state = m.assemble().state
    sim = m.simulate(0.2, m.solve_rates(state, {"R": 2.0}), times=[0.0, 0.2], rtol=1e-9)
    now = sim.states[-1]
    for form in ("manifold", "euler_parameters"):
        e, c = m.motion_equations(now, coordinates=form), m.constraint_equations(now, coordinates=form)
        n, J = e.mass.shape[0], c.jacobian[~c.guards]
        matrix = np.block([[e.mass, J.T], [J, np.zeros((len(J), len(J)))]])
        right = np.concatenate([e.applied + e.velocity, c.gamma[~c.guards]])
        found = np.linalg.solve(matrix, right)[:n].reshape(2, -1)
        spin = found[:, 3:]
        if form == "euler_parameters":  # ω̇ = 2 G p̈
            spin = 2.0 * np.einsum("bij,bj->bi", euler.G(now.quaternions), spin)
        assert found[:, :3] == pytest.approx(now.accelerations[:, :3], abs=1e-9)
        assert spin == pytest.approx(now.accelerations[:, 3:], abs=1e-9)


def test_the_quaternion_form_is_that_of_the_papers_up_to_a_force_along_p():
    m = cd.Mechanism()
    m.body("b", mass=2.0, inertia=np.diag([1.0, 2.0, 2.5]), orientation=("xyz", (0.1, 0.8, 0.3)))
    w = np.array([0.3, -0.5, 0.8])
    e = m.motion_equations(m.state.with_rates([[0, 0, 0, *w]]), coordinates="euler_parameters")
    p = m.state.quaternions[0]
    masses = np.array([2.0, 2.0, 2.0, 1.0, 2.0, 2.5])
    assert e.mass == pytest.approx(quaternion_form.mass_matrix(masses, p), abs=1e-14)
    printed = quaternion_form.velocity_force(masses, p, euler.rate_from_body(p, w))[3:]
    assert e.velocity[3:] == pytest.approx(printed - p * (printed @ p), abs=1e-14)


def test_large_matrices_are_sparse_and_wrong_arguments_are_refused():
    m = loaded()
    assert issparse(m.mass_matrix(sparse=True))
    assert np.array_equal(m.mass_matrix(sparse=True).toarray(), m.mass_matrix())
    for verb in (m.constraint_equations, m.motion_equations, m.mass_matrix):
        with pytest.raises(cd.ModelError, match="coordinates='angles'"):
            verb(coordinates="angles")
        with pytest.raises(cd.ModelError, match="State"):
            verb(3)
    assert m.motion_equations().bodies == tuple(m.bodies)
    chain = cd.Mechanism()
    for k in range(200):
        chain.body(f"link {k}", mass=1.0, inertia=np.eye(3))
    assert issparse(chain.mass_matrix())
    massless = cd.Mechanism()
    massless.body("b")
    found = massless.motion_equations()
    assert not found.mass.any()
    assert "massless" in found.notes[0]


def test_a_state_at_another_time_has_the_same_poses_and_rates():
    m = some("drive")
    state = m.assemble().state.with_rates(np.ones((len(m.bodies), 6)))
    later = state.with_time(2.5)
    assert later.time == 2.5
    assert state.time == 0.0
    assert np.array_equal(later.coordinates, state.coordinates)
    assert np.array_equal(later.velocities, state.velocities)
    assert m.constraint_equations(later, "new").value == pytest.approx([-0.5])  # 0.2 t behind its driver
    for wrong in (float("nan"), "now", None):
        with pytest.raises(cd.ModelError, match="time"):
            state.with_time(wrong)
