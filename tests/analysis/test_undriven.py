"""Laws of what drivers leave free: the least velocities, whatever times are asked for, with consistent rates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cardan as cd
from cardan.analysis.motion import MotionStatus
from cardan.math import euler
from layers import sampled
from linkages import SliderCrank, X, about_z
from mechanisms import matrix, quaternion, random_rotation
from tests.analysis.test_motion import axial, by_differences, pose_gap, rssr, with_motor

HERE = np.eye(3), np.zeros(3)
SAME = 1e-9  # of poses that only the sampling distinguishes


def arm(lengths, angles, law, *, unit=1.0, place=HERE, into=None):
    """A planar arm of some links, in any unit and place; the law gives the path of its tip from where it is."""
    m = into or cd.Mechanism("arm")
    R, t = place
    parent, at, p, heading = m.ground, t, np.zeros(3), 0.0
    z, x = R[:, 2], R[:, 0]
    for k, (length, angle) in enumerate(zip(lengths, angles, strict=True)):
        heading += angle
        turned = euler.multiply(quaternion(R), about_z(heading))
        link = m.body(f"link {k}", position=unit * (R @ p) + t, orientation=turned)
        frame = parent.frame(at, z=z, x=x) if parent is m.ground else parent.frame(at, x=X)
        m.revolute(f"joint {k}", frame, link.frame(x=X))
        p = p + length * np.array([np.cos(heading), np.sin(heading), 0.0])
        parent, at = link, (unit * length, 0, 0)
    for name, value in zip("xy", p, strict=False):
        tip = cd.coordinate(m.ground.frame(t, z=z, x=x), parent.point(at), name)
        m.drive(name, tip, lambda s, name=name, value=value: unit * (value + law(s)[name]))
    return m


def circle(radius):
    return lambda t: {"x": radius * (cd.cos(t) - 1.0), "y": radius * cd.sin(t)}


def three_links(**options):
    return arm([1.0, 0.8, 0.5], [0.3, 0.7, -0.5], circle(0.4), **options)


MANY = 15  # links: more than 60 unknowns


def many_links():
    rng = np.random.default_rng(5)
    return arm(rng.uniform(0.5, 1.0, MANY), rng.uniform(-0.6, 0.6, MANY), circle(1.5))


FREE = {"arm": three_links, "long arm": many_links, "RSSR": lambda: rssr(0)}


@pytest.mark.slow
@sampled("name", FREE, 2)
def test_what_is_left_free_does_not_depend_on_the_times(name):
    ends = [FREE[name]().move(np.linspace(0.0, 6.0, count)) for count in (5, 65, 1025)]
    assert all(motion.ok for motion in ends)
    assert max(pose_gap(ends[0].state, other.state) for other in ends[1:]) <= SAME
    for k in range(5):
        assert pose_gap(ends[0].states[k], ends[1].states[16 * k]) <= SAME
        assert pose_gap(ends[0].states[k], ends[2].states[256 * k]) <= SAME


@pytest.mark.slow
@pytest.mark.parametrize("name", FREE)
def test_rates_of_what_is_left_free_are_the_derivatives_of_the_positions(name):
    m, h = FREE[name](), 0.01
    for middle in (0.3, 1.1, 4.0):
        motion = m.move([0.0, *(middle + h * np.arange(-4, 5))])
        for body in m.bodies:
            A = np.array([matrix(p) for p in motion.quaternions(body)[1:]])
            velocity, acceleration = by_differences(motion.positions(body)[1:], h)
            rate, bend = by_differences(A, h)
            found = np.concatenate([motion.velocities(body)[5], motion.accelerations(body)[5]])
            expected = [*velocity, *axial(A[4].T @ rate), *acceleration, *axial(A[4].T @ bend)]
            assert np.abs(found - expected).max() <= 1e-6
            by_velocities, _ = by_differences(motion.velocities(body)[1:], h)
            assert np.abs(by_velocities - motion.accelerations(body)[5]).max() <= 1e-8


def least_velocity_of_an_arm(lengths, angles, law, end, extent, places):
    """Joint angles at the end, from the definition of the law in joint coordinates.

    The velocities of the reference points, at places along the links, are B(θ)θ̇.  |w|² = |Bθ̇|²/L² + |Sθ̇|², where S
    adds the joint rates.
    """
    n = len(lengths)
    S = np.tril(np.ones((n, n)))

    def jacobians(theta):
        heading = S @ theta
        along = np.array([-np.sin(heading), np.cos(heading)])  # per unit of length
        full = along * lengths
        tip = full @ S
        middles = [(full[:, :k] @ S[:k]) + places[k] * np.outer(along[:, k], S[k]) for k in range(n)]
        return tip, np.vstack(middles)

    def rate(t, theta):
        tip, middles = jacobians(theta)
        M = middles.T @ middles / extent**2 + S.T @ S
        moved = law(cd.Jet(t, 1.0, 0.0))
        g = np.array([moved["x"].rate, moved["y"].rate])
        inverse = np.linalg.solve(M, tip.T)
        return inverse @ np.linalg.solve(tip @ inverse, g)

    found = solve_ivp(rate, (0.0, end), angles, method="DOP853", rtol=1e-13, atol=1e-13)
    return found.y[:, -1]


@pytest.mark.slow
def test_random_arms_take_the_least_velocities_by_definition():
    rng = np.random.default_rng(8)
    for _ in range(6):
        n = int(rng.integers(3, 7))
        lengths, angles = rng.uniform(0.5, 1.0, n), rng.uniform(0.2, 0.8, n) * rng.choice([-1, 1], n)
        law = circle(rng.uniform(0.1, 0.3))
        m = arm(lengths, angles, law)
        motion = m.move([0.0, 3.0])
        assert motion.ok, motion.text()
        expected = least_velocity_of_an_arm(lengths, angles, law, 3.0, m.system.length, m.system.reference_points[:, 0])
        found = [m[f"joint {k}"].coordinate(motion.state) for k in range(n)]
        assert np.abs(np.array(found) - expected).max() <= SAME


@pytest.mark.slow
def test_the_law_is_the_same_in_parts_and_in_reverse():
    m = three_links()
    whole = m.move([0.0, 6.0])
    half = m.move([0.0, 2.5])
    rest = m.move([2.5, 6.0], half.state)
    back = m.move([6.0, 0.0], whole.state)
    assert pose_gap(rest.state, whole.state) <= SAME
    assert pose_gap(back.state, whole.states[0]) <= SAME


@pytest.mark.slow
def test_the_law_depends_neither_on_unit_and_place_nor_on_other_pieces():
    rng = np.random.default_rng(2)
    R, t = random_rotation(rng), rng.uniform(-3, 3, 3)
    other = with_motor(SliderCrank(30, 90).build(0.4), "A", lambda s: 0.4 + s)
    plain = three_links()
    cases = [three_links(unit=1e-3), three_links(place=(R, t)), three_links(into=other)]
    expected = plain.move([0.0, 4.0])
    for m in cases:
        motion = m.move([0.0, 4.0])
        assert motion.ok, motion.text()
        for k in range(3):
            joint = f"joint {k}"
            assert abs(m[joint].coordinate(motion.state) - plain[joint].coordinate(expected.state)) <= SAME


@pytest.mark.slow
def test_a_report_names_what_is_undriven():
    m = with_motor(SliderCrank(1, 3).build(0.4), "A", lambda t: 0.4 + t)
    assert m.move([0.0, 1.0]).undriven == () and "undriven" not in m.move([0.0, 1.0]).text()
    three_links(into=m)
    m.body("loose", position=(9, 9, 9))
    motion = m.move([0.0, 1.0])
    assert [(one.freedoms, one.bodies, one.at_rest) for one in motion.undriven] == [
        (1, ("link 0", "link 1", "link 2"), False),
        (6, ("loose",), True),
    ]
    text = motion.text()
    assert "1 freedom of 'link 0', 'link 1', 'link 2'; the least velocities are taken" in text
    assert "6 freedoms of 'loose'; no driver acts on it" in text
    for name, build in FREE.items():
        m = build()
        motion = m.move([0.0, 0.1])
        assert sum(one.freedoms for one in motion.undriven) == m.diagnose(motion.state).undriven, name


@pytest.mark.slow
def test_an_arm_that_cannot_reach_further_ends_there():
    """The tip moves outward along a line; the arm is straight when it ends."""
    m = arm([1.0, 0.8, 0.5], [0.3, 0.7, -0.5], lambda t: {"x": t, "y": 0.4 * t})
    motion = m.move(np.linspace(0.0, 3.0, 7))
    assert motion.status in (MotionStatus.DEAD_POINT, MotionStatus.LOST), motion.text()
    heading = np.cumsum([0.3, 0.7, -0.5])
    first = np.array([1.0, 0.8, 0.5]) @ np.column_stack([np.cos(heading), np.sin(heading)])
    reach = np.linalg.norm(first + motion.state.time * np.array([1.0, 0.4]))
    assert abs(reach - 2.3) <= 1e-6
