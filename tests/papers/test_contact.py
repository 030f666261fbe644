"""The papers' contact equations: linear where the library is quadratic, right derivatives at a gap, meshes."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations
from cardan.coordinates.rate_rows import RateRows
from cardan.joints.closest import MeshPair
from papers import contact
from papers.contact import Papers

G = cd.geometry


@pytest.fixture(scope="module")
def found() -> contact.Study:
    return contact.study(6)


@pytest.mark.slow
def test_the_position_equation_converges_linearly_and_the_gap_quadratically(found: contact.Study) -> None:
    linear, quadratic = found.ratios
    assert len(linear) >= 3
    assert linear[1:] == pytest.approx([0.5] * len(linear[1:]), abs=1e-3)
    assert len(quadratic) >= 3 and max(quadratic) < 30.0
    assert found.ours[4] < 1e-14 < 1e-4 < found.papers[6]


def test_derivatives_by_differences_agree_with_the_exact_ones_at_a_gap(found: contact.Study) -> None:
    assert found.errors["richardson"] < 1e-7
    assert found.errors["richardson"] < found.errors["central"] < 1e-5 < found.errors["forward"] < 1e-2
    assert found.tangency < 1e-9  # tangency holds by itself
    assert found.ours_microseconds < found.papers_microseconds


def two_ellipsoids(gap: float) -> tuple[cd.Mechanism, Papers]:
    m = cd.Mechanism("pair")
    a = m.body("first", mass=1.0, inertia=np.eye(3))
    b = m.body("second", position=(0.3, 0.2, 1.2), orientation=("xyz", (0.3, 0.2, 0.1)), mass=1.0, inertia=np.eye(3))
    faces = a.attach(G.ellipsoid(0.6, 0.5, 0.4)), b.attach(G.ellipsoid(0.3, 0.4, 0.5), b.frame((0.05, 0.02, 0.0)))
    m.contact("touch", *faces, mode="roll")
    state = m.assemble().state
    normal = state.contact("touch").normal
    b.position = state["second"].position + gap * normal
    b.orientation = state["second"].quaternion
    a.position, a.orientation = state["first"].position, state["first"].quaternion
    return m, Papers(m, faces, step=0.2 * gap)


@pytest.mark.slow
def test_the_gradient_of_the_gap_of_surfaces_is_exact_at_a_gap() -> None:
    m, papers = two_ellipsoids(0.05)
    q = formulations.to_reference(m.system, m.system.authored)
    f, J = papers.problem.jacobian(q)
    gap, row = papers.gap(q)
    assert gap == pytest.approx(f[0], abs=1e-9)
    assert np.linalg.norm(row - J[0]) < 1e-7 * np.linalg.norm(J[0])
    value, gradient = papers.position(q)
    assert value == pytest.approx(gap**2)
    assert np.allclose(gradient, 2.0 * gap * row)


@pytest.mark.slow
def test_the_rolling_equation_tends_to_the_slip_of_the_library() -> None:
    """Of velocities that keep the gap: the difference is proportional to the gap."""
    errors = []
    for gap in (0.02, 0.002):
        m, papers = two_ellipsoids(gap)
        q = formulations.to_reference(m.system, m.system.authored)
        slips = RateRows(m.system).matrix(q)
        normal = papers.problem.jacobian(q)[1][0]
        null = np.linalg.svd(np.vstack([slips, normal]))[2][3:]  # rolling motions: no slip, constant gap
        n = normal[6:9] / np.linalg.norm(normal[6:9])
        across = np.eye(3) - np.outer(n, n)
        rolling = across @ papers.rolling(q)
        errors.append(float(np.abs(rolling @ null.T).max()))
        assert np.linalg.matrix_rank(rolling, tol=1e-3) == 2
        assert np.abs(rolling).max() > 0.5
    assert errors[1] < 0.2 * errors[0] and errors[1] < 0.02, errors


@pytest.mark.slow
@pytest.mark.parametrize("chord", [4e-3, 1e-3])
def test_a_meshed_sphere_is_placed_within_its_chord_error(chord: float) -> None:
    radius = 0.1
    m = cd.Mechanism("mesh")
    ball = m.body("ball", position=(0.003, 0.002, 0.16), orientation=(0.9, 0.2, 0.3, 0.1))
    m.prismatic("up", m.ground.frame(), ball.frame(z=np.array(cd.Pose(np.zeros(3), ball.orientation).matrix)[2]))
    faces = m.ground.attach(G.plane(2.0, 2.0)), ball.attach(G.sphere(radius))
    floor = G.Mesh([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], [(0, 1, 2), (0, 2, 3)])
    papers = Papers(m, faces, MeshPair(floor, G.Mesh(*G.tessellate(G.sphere(radius).to_nurbs(), chord))))
    q, gaps = papers.newton(papers.start(m.state.coordinates), 6, "gap")
    height = formulations.from_reference(m.system, q).reshape(-1, 7)[0, 2]
    assert gaps[-1] < 1e-9
    assert 0.0 < radius - height <= chord


def test_an_object_of_the_user_with_closest_pair_is_enough() -> None:
    class Balls:
        """Two balls of 0.2 m by their centres."""

        def closest_pair(self, pose):
            n = pose[:3] / np.linalg.norm(pose[:3])
            return type("Pair", (), {"points": np.array([0.2 * n, pose[:3] - 0.2 * n])})

    m = cd.Mechanism("balls")
    a, b = m.body("a"), m.body("b", position=(0.5, 0.3, 0.1))
    faces = a.attach(G.sphere(0.2)), b.attach(G.sphere(0.2))
    papers = Papers(m, faces, Balls())
    q = papers.start(m.state.coordinates)
    row = papers.gap(q)[1]
    n = np.array([0.5, 0.3, 0.1]) / np.linalg.norm([0.5, 0.3, 0.1])
    assert row == pytest.approx([*-n, 0, 0, 0, *n, 0, 0, 0], abs=1e-9)
    with pytest.raises(cd.ModelError, match=r"has no closest_pair\(pose\)"):
        Papers(m, faces, object())
    given = Papers(m, faces, G.Distance(G.sphere(0.2), G.sphere(0.2)))
    assert given.points(q) == pytest.approx(papers.points(q), abs=1e-9)
    with pytest.raises(cd.ModelError, match="the scheme is 'best'"):
        Papers(m, faces, scheme="best")
    with pytest.raises(cd.ModelError, match="C\\^tan needs the tangents"):
        papers.tangency(q)


def test_the_position_equation_accepts_curves_that_cross() -> None:
    """Its value is zero wherever the curves cross; the library's gap is negative there."""
    whole, bare, start = contact.mechanism()
    start[1, 0] -= 0.3
    papers = Papers(bare, contact.faces_of(bare))
    assert papers.position(papers.start(start))[0] < 1e-20
    x = formulations.to_reference(whole.system, start)
    assert formulations.problem(whole.system, "manifold").jacobian(x)[0][contact._gap_row(whole)] < -0.01
