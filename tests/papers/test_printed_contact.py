"""The printed equations (9) to (13) of surfaces: their derivatives, and what they mean."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.errors import ModelError
from papers.contact import Papers
from papers.printed_contact import Printed, _determinant, _row


def surfaces():
    """Two ellipsoids apart, of two free bodies in general poses; and solver coordinates."""
    m = cd.Mechanism("pair")
    one = m.body("one", position=(0.1, -0.2, 0.3), orientation=("xyz", (0.3, 0.5, -0.2)))
    two = m.body("two", position=(0.3, 0.4, 1.6), orientation=("xyz", (-0.4, 0.2, 0.9)))
    faces = one.attach(cd.geometry.ellipsoid(0.7, 0.5, 0.4)), two.attach(cd.geometry.ellipsoid(0.5, 0.6, 0.8))
    papers = Papers(m, faces, scheme="richardson", step=1e-3)
    return m, papers, Printed(papers), papers.start(m.state.coordinates)


def test_tangency_vanishes_at_closest_points_and_its_rows_too():
    _, papers, printed, q = surfaces()
    (b, c), (a, d) = printed.tangents(q)
    assert np.linalg.norm(papers.points(q)[0] - papers.points(q)[1]) > 0.1
    size = np.linalg.norm(b) * np.linalg.norm(c) * max(np.linalg.norm(a), np.linalg.norm(d))
    assert np.abs(printed.tangency(q)).max() < 1e-12 * size
    assert np.abs(printed.tangency_rows(q)).max() < 1e-7 * size  # by differences: it removes no freedom


def test_the_rows_of_tangency_are_the_product_rule():
    """For tangents that are not parallel planes: (11) against a difference of (10) along random changes."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        a, b, c = rng.uniform(-1, 1, (3, 3))
        aq, bq, cq = rng.uniform(-1, 1, (3, 3, 4))
        h = 1e-4
        ends = [
            [_determinant(a + s * h * aq[:, k], b + s * h * bq[:, k], c + s * h * cq[:, k]) for k in range(4)]
            for s in (1, -1)
        ]
        assert _row(a, aq, b, bq, c, cq) == pytest.approx(np.subtract(*ends) / (2 * h), abs=1e-7)
        assert _determinant(a, b, c) == pytest.approx(np.linalg.det([a, b, c]), abs=1e-14)


def test_rolling_is_the_slip_less_what_the_gap_adds():
    """w = u − g ṅ across the normal: u is the velocity of the second material point relative to the first body."""
    _, papers, printed, q = surfaces()
    rng = np.random.default_rng(2)
    v = rng.uniform(-1, 1, papers.problem.unknowns)
    S = papers.points(q)
    gap = np.linalg.norm(S[1] - S[0])
    n = (S[1] - S[0]) / gap
    slip = papers._material(q, 1, S[1]) @ v - papers._material(q, 0, S[1]) @ v
    h = 1e-3

    def normal(s):
        P = papers.points(papers.problem.retract(q, s * v))
        return (P[1] - P[0]) / np.linalg.norm(P[1] - P[0])

    spun = (8 * (normal(h) - normal(-h)) - normal(2 * h) + normal(-2 * h)) / (12 * h)
    turning = (papers._material(q, 0, S[0] + n) - papers._material(q, 0, S[0])) @ v  # ω₁ × n
    expected = printed.tangents(q)[0] @ (slip - gap * (spun - turning))
    assert printed.rolling(q, v) == pytest.approx(expected, abs=1e-7)


def test_the_printed_product_is_the_rate_of_rolling_and_no_jacobian():
    _, papers, printed, q = surfaces()
    v = np.random.default_rng(3).uniform(-1, 1, papers.problem.unknowns)
    term = printed.rolling_term(q, v)
    assert term.shape == (2,)  # F_q G: not rows of unknowns
    assert printed.rolling_rows(q).shape == (2, papers.problem.unknowns)
    h = 4e-3
    F = [printed.rolling(papers.problem.retract(q, s * h * v), v) for s in (-2, -1, 1, 2)]
    rate = (8 * (F[2] - F[1]) - F[3] + F[0]) / (12 * h)
    assert term == pytest.approx(rate, rel=1e-5)


def test_curves_and_queries_are_refused():
    m = cd.Mechanism()
    one, two = m.body("one"), m.body("two", position=(3, 0, 0))
    curves = one.attach(cd.geometry.circle(1.0)), two.attach(cd.geometry.circle(1.0))
    with pytest.raises(ModelError, match="two surfaces"):
        Printed(Papers(m, curves))
