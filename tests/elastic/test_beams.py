"""Beams against closed forms, and against differences and integrals of their own shapes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import eigh, null_space
from scipy.optimize import brentq

import cardan as cd
from cardan.elastic import beam, buckling_factor, modal_data, wave_numbers
from cardan.math import euler

L, A, I_Y, I_Z, E, RHO = 1.6, 3e-4, 2e-9, 5e-9, 7e10, 2700.0
SECTION = {"area": A, "second_moments": (I_Y, I_Z), "young": E, "density": RHO}
END = (L, 0.0, 0.0)


def bent(**counts):
    return beam(L, **SECTION, **counts)


@pytest.mark.parametrize(
    ("ends", "first"),
    [
        (("clamped", "free"), (1.8751040687119611, 4.694091132974174, 7.854757438237613)),
        (("free", "clamped"), (1.8751040687119611, 4.694091132974174)),
        (("pinned", "pinned"), (np.pi, 2 * np.pi, 3 * np.pi, 4 * np.pi)),
        (("clamped", "clamped"), (4.730040744862704, 7.853204624095838)),
        (("free", "free"), (4.730040744862704, 7.853204624095838)),
        (("clamped", "pinned"), (3.926602312047919, 7.068582745628732)),
        (("clamped", "sliding"), (2.365020372431352, 5.497803919000836)),
        (("sliding", "sliding"), (np.pi, 2 * np.pi)),
        (("pinned", "sliding"), (np.pi / 2, 3 * np.pi / 2)),
    ],
)
def test_wave_numbers_are_those_of_the_tables(ends, first):
    assert wave_numbers(ends, len(first)) == pytest.approx(first, rel=1e-12)


def test_frequencies_of_a_cantilever_converge_to_the_closed_forms():
    known = wave_numbers(("clamped", "free"), 2) ** 2 * np.sqrt(E * I_Z / (RHO * A)) / L**2 / (2 * np.pi)
    errors = [bent(bending=(n, 0), stretch=0).frequencies[:2] / known - 1.0 for n in (2, 5, 7, 9)]
    assert all((error >= -1e-12).all() for error in errors)  # from above, by Rayleigh
    assert errors[1][0] < 1e-7 and errors[2][1] < 1e-7 and np.abs(errors[3]).max() < 1e-10
    bar = np.sqrt(E / RHO) / (4 * L)
    assert bent(bending=0, stretch=6).frequencies[0] == pytest.approx(bar, rel=1e-9)
    shaft = np.sqrt(E / 2.6 / RHO) / (4 * L)
    assert bent(bending=0, stretch=0, twist=6).frequencies[0] == pytest.approx(shaft, rel=1e-9)


@pytest.mark.parametrize("n", [3, 6])
def test_static_deflections_are_those_of_the_textbook(n):
    m = bent(bending=n, stretch=2, twist=2)
    end = m.at(END)

    def under(load):
        return np.linalg.solve(m.stiffness, load)

    F, T = 7.0, 2.0
    pushed = under(F * end.displacement[1])
    assert end.displacement[1] @ pushed == pytest.approx(F * L**3 / (3 * E * I_Z), rel=1e-12)
    assert end.rotation[2] @ pushed == pytest.approx(F * L**2 / (2 * E * I_Z), rel=1e-12)
    assert m.at((L / 2, 0, 0)).displacement[1] @ pushed == pytest.approx(5 * F * L**3 / (48 * E * I_Z), rel=1e-12)
    lifted = under(F * end.displacement[2])
    assert end.displacement[2] @ lifted == pytest.approx(F * L**3 / (3 * E * I_Y), rel=1e-12)
    assert end.rotation[1] @ lifted == pytest.approx(-F * L**2 / (2 * E * I_Y), rel=1e-12)
    assert end.displacement[1] @ under(T * end.rotation[2]) == pytest.approx(T * L**2 / (2 * E * I_Z), rel=1e-12)
    assert end.displacement[0] @ under(F * end.displacement[0]) == pytest.approx(F * L / (E * A), rel=1e-12)
    twisted = end.rotation[0] @ under(T * end.rotation[0])
    assert twisted == pytest.approx(T * L / (E / 2.6 * (I_Y + I_Z)), rel=1e-12)
    weight = 9.81 * np.einsum("k,kn->n", m.points.masses, m.points.displacement[:, 1])
    assert end.displacement[1] @ under(weight) == pytest.approx(RHO * A * 9.81 * L**4 / (8 * E * I_Z), rel=1e-12)


def test_the_undeformed_body_has_the_mass_of_a_rod():
    m = bent()
    mass = RHO * A * L
    assert m.mass == pytest.approx(mass, rel=1e-14)
    assert m.center == pytest.approx([L / 2, 0, 0], rel=1e-14)
    slender = mass * L**2 / 12
    assert m.inertia == pytest.approx(np.diag([RHO * (I_Y + I_Z) * L, slender, slender]), rel=1e-13)
    assert m.mass_matrix == pytest.approx(np.eye(len(m.names)), abs=1e-12)
    assert np.sort(np.diag(m.stiffness)) == pytest.approx((2 * np.pi * m.frequencies) ** 2, rel=1e-9)


def test_rotations_are_slopes_and_bending_does_not_change_the_length():
    m = bent(bending=4, stretch=2, twist=1)
    rng = np.random.default_rng(1)
    eta = 0.002 * rng.uniform(-1, 1, len(m.names))
    h = 1e-4

    def at(x, scale=1.0):
        local, e = m.at((x, 0, 0)), scale * eta
        return np.array([x, 0, 0]) + local.displacement @ e + 0.5 * np.einsum("inm,n,m->i", local.second, e, e)

    for x in (0.3, 0.9, 1.5):
        slope = (8 * (at(x + h) - at(x - h)) - at(x + 2 * h) + at(x - 2 * h)) / (12 * h)
        assert (m.at((x, 0, 0)).rotation @ eta)[1:] == pytest.approx([-slope[2], slope[1]], abs=1e-10)

    def speed(x):
        return np.linalg.norm((at(x + h) - at(x - h)) / (2 * h))

    a, b = 0.1, 1.5
    stretched = b - a + ((m.at((b, 0, 0)).displacement - m.at((a, 0, 0)).displacement) @ eta)[0]
    rise = quad(lambda x: 0.5 * np.sum((m.at((x, 0, 0)).rotation[1:] @ eta) ** 2), a, b)[0]  # of second order
    assert rise > 1e-5
    assert quad(speed, a, b, epsrel=1e-10)[0] - stretched == pytest.approx(0.0, abs=0.01 * rise)
    assert m.at(END).displacement.any() and not m.at((0, 0, 0)).displacement.any()


def test_a_point_aside_of_the_axis_turns_with_its_section():
    m = bent(bending=2, stretch=1, twist=1)
    eta = 1e-3 * np.array([1.0, 2.0, -1.0, 0.5, 1.0, 3.0])
    aside, on = m.at((1.0, 0.1, -0.2)), m.at((1.0, 0, 0))
    theta = on.rotation @ eta
    a = np.array([0, 0.1, -0.2])
    exact = euler.rotate(euler.exp(theta), a) - a

    def u(local):
        return local.displacement @ eta + 0.5 * np.einsum("inm,n,m->i", local.second, eta, eta)

    assert u(aside) - u(on) == pytest.approx(exact, abs=np.linalg.norm(theta) ** 3)


@pytest.mark.parametrize(("speed", "known"), [(0, 3.5160), (1, 3.6817), (3, 4.7973), (6, 7.3604), (12, 13.1702)])
def test_a_rotating_beam_is_as_stiff_as_published(speed, known):
    """Flapping frequencies of a rotating cantilever, in √(E I/ρ A ℓ⁴), by [Wright1982], within their digits."""
    m = bent(bending=(0, 7), stretch=0)
    unit = np.sqrt(E * I_Y / (RHO * A)) / L**2
    P = m.points
    pull = (speed * unit) ** 2 * P.masses * P.places[:, 0]
    K = m.stiffness - np.einsum("k,knm->nm", pull, P.second[:, 0])
    assert np.sqrt(eigh(K, m.mass_matrix, eigvals_only=True)[0]) / unit == pytest.approx(known, abs=6e-5)


def test_a_column_buckles_at_the_load_of_euler():
    m = bent(bending=(5, 0), stretch=0)
    H = m.at(END).second[0]
    euler_load = buckling_factor(("clamped", "free")) * np.pi**2 * E * I_Z / L**2

    def least(load):
        return np.linalg.eigvalsh(m.stiffness + load * H)[0] / m.stiffness[0, 0]

    assert brentq(least, 0.5 * euler_load, 2 * euler_load, xtol=1e-10 * euler_load) == pytest.approx(
        euler_load, rel=1e-6
    )
    slope = m.at(END).rotation[2]  # guided: no slope at the end
    N = null_space(slope[None])
    guided = buckling_factor(("clamped", "sliding")) * np.pi**2 * E * I_Z / L**2

    def least_guided(load):
        return np.linalg.eigvalsh(N.T @ (m.stiffness + load * H) @ N)[0] / m.stiffness[0, 0]

    found = brentq(least_guided, 0.5 * guided, 1.5 * guided, xtol=1e-10 * guided)
    assert found == pytest.approx(guided, rel=2e-4)
    with pytest.raises(cd.ModelError, match="known are"):
        buckling_factor(("free", "free"))


@pytest.mark.parametrize(("n", "bar"), [(5, 1e-4), (7, 1e-6), (9, 1e-9)])
def test_a_beam_that_is_clamped_at_its_other_end_vibrates_in_the_same_way(n, bar):
    """The body frame at x = 0 moves: rigid motions in the plane are unknowns, and the clamp at x = ℓ removes three."""
    m = bent(bending=(n, 0), stretch=1)
    P = m.points
    to = np.zeros((P.masses.size, 2, 3 + len(m.names)))  # ∂(x, y)/∂(r_x, r_y, θ, η)
    to[:, 0, 0] = to[:, 1, 1] = 1.0
    to[:, 1, 2] = P.places[:, 0]
    to[:, :, 3:] = P.displacement[:, :2]
    M = np.einsum("k,kin,kim->nm", P.masses, to, to)
    K = np.zeros_like(M)
    K[3:, 3:] = m.stiffness
    end = m.at(END)
    clamp = np.zeros((3, len(M)))
    clamp[0, 0] = clamp[1, 1] = clamp[2, 2] = 1.0
    clamp[1, 2] = L
    clamp[:2, 3:], clamp[2, 3:] = end.displacement[:2], end.rotation[2]
    scaled = clamp / np.linalg.norm(clamp, axis=1)[:, None]
    N = null_space(scaled)
    found = np.sqrt(eigh(N.T @ K @ N, N.T @ M @ N, eigvals_only=True)[0])
    known = wave_numbers(("free", "clamped"), 1)[0] ** 2 * np.sqrt(E * I_Z / (RHO * A)) / L**2
    assert found == pytest.approx(known, rel=bar)


def test_modal_data_of_a_beam_are_the_beam():
    m = bent(bending=2, stretch=1, twist=0, damping=0.02)
    P = m.points
    rotations = np.array([m.at(s).rotation for s in P.places])
    data = modal_data(P.places, P.displacement, m.stiffness, P.masses, rotations=rotations, damping=0.02)
    assert data.mass == pytest.approx(m.mass)
    assert data.names == ("mode_1", "mode_2", "mode_3", "mode_4", "mode_5")
    assert data.mass_matrix == pytest.approx(m.mass_matrix, abs=1e-12)
    assert data.damping == pytest.approx(m.damping, rel=1e-9, abs=1e-9 * np.abs(m.damping).max())
    assert np.diag(m.damping) == pytest.approx(2 * 0.02 * np.sqrt(np.diag(m.stiffness)), rel=1e-9)
    assert np.array_equal(data.at(P.places[3]).rotation, rotations[3])
    assert not data.at(P.places[3]).second.any()
    assert data == modal_data(P.places, P.displacement, m.stiffness, P.masses, rotations=rotations, damping=0.02)
    assert data != m and hash(data) != hash(m)
    with pytest.raises(cd.ModelError, match=r"from the nearest node"):
        data.at((0.5, 0.5, 0.5))
    without = modal_data(P.places, P.displacement, m.stiffness, P.masses)
    assert np.isnan(without.at(P.places[0]).rotation).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"length": -1.0}, "the length of a beam is -1"),
        ({"area": float("nan")}, "the area of a beam is nan"),
        ({"second_moments": (1e-9,)}, r"second_moments of a beam are \(1e-09,\)"),
        ({"second_moments": (1e-9, 0.0)}, "a second moment of a beam is 0"),
        ({"young": "steel"}, "young of a beam is 'steel'"),
        ({"bending": 11}, "at most 10 of each"),
        ({"bending": 0, "stretch": 0}, "at least one"),
        ({"bending": (1, 2, 3)}, r"bending of a beam is \(1, 2, 3\)"),
        ({"twist": -1}, "twist of a beam"),
        ({"damping": -0.1}, "damping ratio of a beam is -0.1"),
    ],
)
def test_wrong_numbers_of_a_beam_are_refused(changes, words):
    given = {"length": L, **SECTION, **changes}
    with pytest.raises(cd.ModelError, match=words):
        beam(given.pop("length"), **given)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"places": [1.0, 2.0]}, "places of modal data have the shape"),
        ({"displacements": np.zeros((2, 2, 1))}, "displacements of modal data"),
        ({"stiffness": [[1.0, 2.0]]}, r"must be a finite matrix, shape \(1, 1\)"),
        ({"stiffness": [[-1.0]]}, "semidefinite"),
        ({"masses": [0.0, 0.0]}, "one must be positive"),
        ({"rotations": [["a"]]}, "must be numbers"),
        ({"names": ["a", "b"]}, "1 different names"),
    ],
)
def test_wrong_modal_data_are_refused(changes, words):
    given = {"places": [[0, 0, 0], [1, 0, 0]], "displacements": np.ones((2, 3, 1)), "stiffness": [[2.0]]}
    given |= {"masses": [1.0, 1.0], **changes}
    with pytest.raises(cd.ModelError, match=words):
        modal_data(
            given.pop("places"), given.pop("displacements"), given.pop("stiffness"), given.pop("masses"), **given
        )


def test_a_place_beside_a_beam_is_refused():
    with pytest.raises(cd.ModelError, match=r"x = 1.7 m; it must be between 0 and its length, 1.6 m"):
        bent().at((1.7, 0, 0))
    with pytest.raises(cd.ModelError, match="ends of a beam"):
        wave_numbers(("clamped", "welded"), 2)
