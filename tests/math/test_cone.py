"""The contact problem on Coulomb's cone, judged by its own conditions and by closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from cardan.math import _cone

TOLERANCE = 1e-12  # of the solver, relative to the free velocities
LAW = 1e-9  # of the conditions below, which divide by slip velocities


def solved(G, b, mu, most=400.0):
    m = len(mu)
    cone = _cone.Cone.new(tolerance=TOLERANCE, most=most)
    r, work = np.zeros(3 * m), np.zeros(_cone.work_size(m))
    matrix = np.ascontiguousarray(G).ravel()
    code = _cone.solve(_cone.SOLVE, m, np.zeros(1, np.int64), matrix, b, mu, r, cone.as_floats, work)
    return r.reshape(m, 3), (G @ r + b).reshape(m, 3), cone, code


@pytest.mark.parametrize(("contacts", "rank"), [(1, 3), (1, 2), (1, 1), (2, 6), (4, 6), (4, 3), (16, 30)])
def test_forces_obey_coulombs_law_also_where_g_has_lost_rank(contacts, rank):
    rng = np.random.default_rng(contacts * 100 + rank)
    for k in range(40):
        J = rng.normal(size=(3 * contacts, rank))
        mu = rng.uniform(0.0, 0.8, contacts) if k % 5 else np.zeros(contacts)
        b = J @ rng.normal(size=rank)
        r, u, cone, code = solved(J @ J.T, b, mu)
        assert code == 0
        assert cone.error <= TOLERANCE * np.abs(b).max()
        size = np.abs(b).max()
        assert r[:, 0].min() >= 0.0
        assert u[:, 0].min() >= -LAW * size
        assert np.abs(r[:, 0] * u[:, 0]).max() <= LAW * size * max(1.0, np.abs(r).max())
        slip, force = np.hypot(u[:, 1], u[:, 2]), np.hypot(r[:, 1], r[:, 2])
        assert (force <= mu * r[:, 0] * (1.0 + 1e-12)).all()
        along = (r[:, 1:] * u[:, 1:]).sum(axis=1)  # friction works against slip with all that the cone allows
        assert np.abs(along + mu * r[:, 0] * slip).max() <= LAW * size * max(1.0, np.abs(r).max())


def test_a_single_contact_opens_sticks_or_slips_as_in_closed_form():
    G = np.diag([2.0, 0.5, 0.5])
    r, *_ = solved(G, np.array([1.0, 1.0, 0.0]), np.array([0.3]))
    assert not r.any()
    r, *_ = solved(G, np.array([-2.0, 0.1, 0.0]), np.array([0.3]))
    assert np.allclose(r, [[1.0, -0.2, 0.0]], rtol=0, atol=1e-14)
    r, *_ = solved(G, np.array([-2.0, 3.0, 4.0]), np.array([0.3]))
    assert np.allclose(r, [[1.0, -0.18, -0.24]], rtol=0, atol=1e-14)


def test_a_contact_that_nothing_can_move_keeps_its_error():
    r, _, cone, code = solved(np.zeros((3, 3)), np.array([-1.0, 0.0, 0.0]), np.array([0.3]))
    assert code == 1
    assert not r.any()
    assert cone.error == 1.0
