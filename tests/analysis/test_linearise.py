"""Laws of the public Jacobians: differences along motions of the bodies, the solvers' own, orders and frames."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import issparse

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cardan as cd
from cardan import examples
from cardan.coordinates import formulations
from cardan.math import euler
from fuzz.case import build
from fuzz.generate import generate
from layers import sampled

H = 3e-4  # of nine-point differences
FIRST = {
    k * sign: sign * weight
    for k, weight in zip((1, 2, 3, 4), (4 / 5, -1 / 5, 4 / 105, -1 / 280), strict=True)
    for sign in (1, -1)
}


def moved(state, v, t):
    """The state after the time t at constant ṙ in world and ω in body axes, shape (bodies, 6)."""
    p = euler.multiply(state.quaternions, euler.exp(t * v[:, 3:]))
    return state.moved({name: (state.positions[k] + t * v[k, :3], p[k]) for k, name in enumerate(state.names)})


def difference(read, state, v):
    return sum(weight * read(moved(state, v, k * H)) for k, weight in FIRST.items()) / H


def check(m, state, rng):
    """C_q and γ by differences along random motions."""
    for _ in range(3):
        v = rng.uniform(-1, 1, (len(state.names), 6)) * [*[m.system.judged_length] * 3, 1, 1, 1]
        here = m.constraint_equations(state.with_rates(v), sparse=False)
        size = max(1.0, np.abs(here.jacobian).max(initial=0.0)) * max(1.0, m.system.judged_length)
        smooth = ~here.guards
        along = difference(lambda s: m.constraint_equations(s).value, state, v)
        assert np.abs((here.jacobian @ v.ravel() - along)[smooth]).max(initial=0.0) <= 1e-8 * size
        turning = difference(lambda s, v=v: m.constraint_equations(s, sparse=False).jacobian @ v.ravel(), state, v)
        driven = np.zeros(len(here.rows))
        for _, signal in m.system.signals:
            row = next(k for k, one in enumerate(here.rows) if one[0] == signal.name)
            driven[row] = signal.jet(state.time).acceleration
        assert np.abs((here.gamma - driven + turning)[smooth]).max(initial=0.0) <= 1e-8 * size * max(
            1.0, np.abs(turning).max(initial=0.0)
        )


@sampled("name", examples.REGISTRY, 8)
def test_public_jacobians_of_the_gallery_are_those_of_differences_and_the_solvers_own(name):
    m = examples.REGISTRY[name].build()
    state = m.assemble().state
    check(m, state, np.random.default_rng(1))
    system = m.system
    near = np.array([state.angles.get(key, 0.0) for key in system.counted_angles])
    q = formulations.to_reference(system, state.coordinates, near)
    value, J = formulations.problem(system, "manifold", time=state.time).jacobian(q)
    here = m.constraint_equations(state, sparse=False)
    assert np.array_equal(here.value, value)
    columns = np.arange(J.shape[1]) % 6 < 3
    assert np.array_equal(here.jacobian[:, columns], J[:, columns])
    # with respect to a rotation about the reference point: δr = −A (δθ × s)
    for k, s in enumerate(system.reference_points):
        A = euler.matrix(state.quaternions[k])
        about = here.jacobian[:, 6 * k + 3 : 6 * k + 6] + here.jacobian[:, 6 * k : 6 * k + 3] @ A @ euler.tilde(s)
        assert np.abs(about - J[:, 6 * k + 3 : 6 * k + 6]).max() <= 1e-13 * max(1.0, np.abs(J).max(), np.abs(s).max())


def fuzzed(count):
    """Cases of moderate size whose drawn pose is away from the poles of distances and angles."""
    index = 0
    while count:
        case = replace(generate(7, index), parameters=[])  # with the numbers that fit
        index += 1
        m = build(case)
        far = max(m.system.judged_length, np.abs(m.state.positions).max())
        if (
            case.family in ("consistent", "redundant")
            and len(case.bodies) <= 8
            and 0.1 < m.system.judged_length <= far < 100
        ):
            count -= 1
            yield m


@pytest.mark.slow
def test_public_jacobians_of_fuzzed_mechanisms_are_those_of_differences():
    for index, m in enumerate(fuzzed(30)):
        result = m.assemble()
        assert result.ok
        check(m, result.state, np.random.default_rng(index))


def test_rows_and_columns_are_named_in_the_order_of_the_mechanism():
    m = examples.REGISTRY["slider_crank"].build()
    here = m.constraint_equations()
    assert list(dict.fromkeys(row[0] for row in here.rows)) == list(m.joints)
    assert here.bodies == tuple(m.bodies)
    name = next(iter(m.joints))
    one = m.constraint_equations(joint=name)
    assert {row[0] for row in one.rows} == {name}
    assert np.array_equal(one.jacobian, here.jacobian[: len(one.rows)])
    assert one.gamma is None
    assert sum(not guard for guard in one.guards) == m[name].equations
    sparse = m.constraint_equations(sparse=True).jacobian
    assert issparse(sparse)
    assert np.array_equal(sparse.toarray(), here.jacobian)
    with pytest.raises(cd.UnknownNameError, match="constraint"):
        m.constraint_equations(joint="nothing")
    with pytest.raises(cd.ModelError, match="State"):
        m.constraint_equations(3)


def test_velocities_and_accelerations_of_a_motion_satisfy_the_public_equations():
    m = examples.REGISTRY["slider_crank"].build()
    for state in m.move(np.linspace(0, 1, 8)).states:
        here = m.constraint_equations(state)
        equations = ~here.guards
        v, a = state.velocities.ravel(), state.accelerations.ravel()
        size = max(1.0, np.abs(a).max())
        assert np.abs(here.value[equations]).max() <= 1e-12
        assert np.abs((here.jacobian @ v - here.rate)[equations]).max() <= 1e-11 * size
        assert np.abs((here.jacobian @ a - here.gamma)[equations]).max() <= 1e-10 * size


def arm():
    """Two links in a plane, each driven."""
    m = cd.Mechanism("arm")
    one, two = m.body("one", position=(0.3, 0.2, 0)), m.body("two", position=(1.4, 0.3, 0.1))
    a = m.revolute("A", m.ground, one, at=(0, 0, 0))
    b = m.revolute("B", one, two, at=(1, 0, 0))
    m.drive("shoulder", a, lambda t: 0.3 + t)
    m.drive("elbow", b, lambda t: 0.4 - 2 * t)
    return m, two.frame((0.6, -0.3, -0.1))  # at (2, 0, 0) as drawn


def test_the_jacobian_of_a_point_by_drivers_is_that_of_the_textbook():
    m, tip = arm()
    state = m.assemble(time=0.2).state
    first, second = 0.5, 0.5
    J = m.jacobian(tip, state, by="drivers")
    s1, c1, s12, c12 = np.sin(first), np.cos(first), np.sin(second), np.cos(second)
    expected = np.array([[-s1 - s12, -s12], [c1 + c12, c12], [0, 0], [0, 0], [0, 0], [1, 1]])
    assert np.abs(J - expected).max() <= 1e-12
    assert np.abs(m.jacobian(tip.point(), state, by=["elbow"])[:, 0] - expected[:3, 1]).max() <= 1e-12
    assert np.array_equal(m.jacobian(m.ground.frame(), state, by="drivers"), np.zeros((6, 2)))


def test_the_jacobian_of_a_frame_by_bodies_is_that_of_differences():
    m, tip = arm()
    state = m.assemble(time=0.2).state
    J = m.jacobian(tip, state)
    rng = np.random.default_rng(3)
    v = rng.uniform(-1, 1, (2, 6))
    rate = difference(lambda s: s["two"].point(tip.origin), state, v)
    turn = difference(lambda s: s["two"].matrix, state, v) @ state["two"].matrix.T
    assert np.abs(J[:3] @ v.ravel() - rate).max() <= 1e-8
    assert np.abs(J[3:] @ v.ravel() - [turn[2, 1], turn[0, 2], turn[1, 0]]).max() <= 1e-8
    assert issparse(m.jacobian(tip, state, sparse=True))


def test_a_point_that_the_drivers_leave_free_and_a_locked_driver_are_refused():
    m, tip = arm()
    m.remove("elbow")
    state = m.assemble(time=0.2).state
    with pytest.raises(cd.ModelError, match="leave this point or frame free"):
        m.jacobian(tip, state, by="drivers")
    assert m.jacobian(m["one"].point((1, 0, 0)), state, by="shoulder").shape == (3, 1)
    m.fixed("weld", m.ground, m["one"])
    m.remove("shoulder")
    m.drive("shoulder", m["A"], 0.0)
    with pytest.raises(cd.ModelError, match="lock"):
        m.jacobian(tip, m.assemble().state, by="drivers")
    with pytest.raises(cd.UnknownNameError, match="driver"):
        m.jacobian(tip, by="nothing")
    with pytest.raises(cd.ModelError, match=r"no body of mechanism .*tip"):
        m.jacobian("tip")


def test_a_large_jacobian_is_sparse():
    m = cd.Mechanism()
    end = m.ground.frame()
    for k in range(200):
        link = m.body(f"link {k}", position=(k, 0, 0))
        m.revolute(f"joint {k}", end, link.frame())
        end = link.frame((1, 0, 0))
    assert issparse(m.constraint_equations().jacobian)
