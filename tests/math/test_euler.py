"""Laws of cardan.math.euler, against SciPy, SymPy, mpmath (50 digits) and central differences."""

import subprocess
import sys
from functools import cache

import mpmath
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cardan.math import euler as eu
from later import Later

stats, sympy = Later("scipy.stats"), Later("sympy")

EPS = np.finfo(float).eps
PI = np.pi
SHAPES = [(), (1,), (7,), (2, 3), (0,)]
AXES = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -0.6, 0.8], [1, 2, -3], [-0.3, 0.1, 0.2]])
AXES /= np.linalg.norm(AXES, axis=1, keepdims=True)


def around(threshold):
    """Angles on both sides of a branch, at distances down to one ulp."""
    return [threshold * f for f in (0.5, 0.9, 1 - 1e-9, 1 - EPS, 1.0, 1 + EPS, 1 + 1e-9, 1.1, 2.0)]


# log's branch is in tan(θ/2), exp's in θ
ANGLES = sorted(
    {0.0, 1e-300, 1e-160, 1e-100, 1e-20, 1.7, 2.5, 3.0, 3.1}
    | {m * 10.0**-k for k in range(1, 10) for m in (1.0, 3.3)}
    | {*around(eu.EXP_SERIES_BELOW), *around(2 * np.arctan(eu.LOG_SERIES_BELOW))}
    | {PI - d for d in (1e-15, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3, 1e-2)}
    | {PI}
)
BEYOND_PI = [PI + 1e-9, PI + 1e-3, 4.0, 5.0, 6.0]


def quaternions(seed, shape=(), *, scale=(0.3, 3.0)):
    """Random quaternions of random norm: almost none on the unit sphere."""
    rng = np.random.default_rng(seed)
    return eu.random(rng, shape) * rng.uniform(*scale, (*shape, 1))


def vectors(seed, shape=()):
    return np.random.default_rng(seed).uniform(-2, 2, (*shape, 3))


def T(m):
    return np.swapaxes(m, -1, -2)


def norm2(p):
    return (p * p).sum(axis=-1)[..., None, None]


def sign_free_distance(p, q):
    """max|p ∓ q| over a batch, the sign chosen for each quaternion: `canonical` jumps if e0 rounds to 0."""
    return np.minimum(np.abs(p - q).max(-1), np.abs(p + q).max(-1)).max()


def central_difference(f, x, h=1e-5):
    """∂f/∂x with the last axis of x as the columns."""
    columns = [(f(x + h * d) - f(x - h * d)) / (2 * h) for d in np.eye(len(x))]
    return np.stack(columns, axis=-1)


# --- 50-digit oracles, exact in their floating-point arguments ------------------------------------------------------


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


def mp_vector(v):
    return [mpmath.mpf(float(x)) for x in v]


def mp_norm(v):
    return mpmath.sqrt(mpmath.fsum(x * x for x in v))


def mp_exp(phi):
    phi = mp_vector(phi)
    theta = mp_norm(phi)
    factor = mpmath.sin(theta / 2) / theta if theta else mpmath.mpf(1) / 2
    return [mpmath.cos(theta / 2), *(factor * x for x in phi)]


def mp_log(p):
    w, *e = mp_vector(p)
    if w < 0 or (w == 0 and next(x for x in e if x) < 0):
        w, e = -w, [-x for x in e]
    sine = mp_norm(e)
    factor = 2 * mpmath.atan2(sine, w) / sine if sine else 2 / w
    return [factor * x for x in e]


def relative_error(value, exact):
    """max|value − exact|/max|exact|, with the difference computed in 50 digits."""
    exact = list(exact)
    scale = max(abs(x) for x in exact) or mpmath.mpf(1)
    return float(max(abs(mpmath.mpf(float(v)) - x) for v, x in zip(np.ravel(value), exact, strict=True)) / scale)


def componentwise_error(value, exact):
    """Largest relative error of any component."""
    errors = [abs(mpmath.mpf(float(v)) - x) / (abs(x) or 1) for v, x in zip(np.ravel(value), exact, strict=True)]
    return float(max(errors))


# --- Polynomials of p ----------------------------------------------------------------------------------------------


@cache
def symbolic():
    """A(p) u computed only from the quaternion product p (0,u) p*, and its symbolic derivative."""
    p = sympy.symbols("w x y z", real=True)
    u = sympy.symbols("a b c", real=True)
    q = sympy.Quaternion(*p)
    image = q * sympy.Quaternion(0, *u) * sympy.Quaternion(p[0], -p[1], -p[2], -p[3])
    au = sympy.Matrix([sympy.expand(c) for c in (image.b, image.c, image.d)])
    return p, u, au, au.jacobian(u), au.jacobian(p)


def test_matrix_and_K_equal_sympys_off_the_unit_sphere():
    p, u, _, a, k = symbolic()
    a, k = sympy.lambdify([p], a), sympy.lambdify([u, p], k)
    for p_i, u_i in zip(quaternions(1, (20,)), vectors(2, (20,)), strict=True):
        np.testing.assert_allclose(eu.matrix(p_i), a(p_i), rtol=0, atol=20 * EPS * (p_i @ p_i))
        np.testing.assert_allclose(eu.K(u_i, p_i), k(u_i, p_i), rtol=0, atol=1e-14)


def test_papers_printed_forms_are_identities_in_sympy():
    """A and K as [Liu2013] eq. 7 prints them, and the one lost tilde of the other extraction, for symbolic p and u."""
    p, u, au, a, k = symbolic()
    e0, e, uv = p[0], sympy.Matrix(p[1:]), sympy.Matrix(u)

    def skew(v):
        return sympy.Matrix([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])

    one = sympy.eye(3)
    quadratic = (e0**2 - e.dot(e)) * one + 2 * e * e.T + 2 * e0 * skew(e)
    assert (quadratic - a).expand().is_zero_matrix
    head = 2 * (skew(e) + e0 * one) * uv
    common = e.dot(uv) * one + e * uv.T - skew(e) * skew(uv) - 2 * e0 * skew(uv)
    assert (head.row_join(common - skew(skew(e) * uv)) - k).expand().is_zero_matrix
    erratum = (head.row_join(common - skew(e) * skew(uv)) - k).expand()
    assert (erratum[:, 1:] + skew(uv) * skew(e)).expand().is_zero_matrix  # off by −ũẽ
    assert not erratum.is_zero_matrix
    g = (-e).row_join(-skew(e) + e0 * one)
    assert (k * g.T / 2 + a * skew(uv)).expand().is_zero_matrix  # K ½Gᵀ = −Aũ for EVERY p, A unnormalised
    assert (k * sympy.Matrix(p) - 2 * au).expand().is_zero_matrix


def test_K_with_the_lost_tilde_is_not_the_derivative():
    """Extraction 000 prints −ẽũ twice; the second is −tilde(ẽu)."""
    p, u = quaternions(3), vectors(4)
    e0, e = p[0], p[1:]
    head = 2 * (eu.tilde(e) + e0 * np.eye(3)) @ u
    common = (e @ u) * np.eye(3) + np.outer(e, u) - eu.tilde(e) @ eu.tilde(u) - 2 * e0 * eu.tilde(u)
    printed_000 = np.column_stack([head, common - eu.tilde(e) @ eu.tilde(u)])
    printed_001 = np.column_stack([head, common - eu.tilde(eu.tilde(e) @ u)])
    derivative = central_difference(lambda q: eu.matrix(q) @ u, p)
    np.testing.assert_allclose(printed_001, derivative, atol=1e-9)
    np.testing.assert_allclose(eu.K(u, p), printed_001, atol=1e-14)
    assert np.abs(printed_000 - derivative).max() > 0.1
    assert np.abs((printed_000 - printed_001) @ np.r_[0, e]).max() < 1e-14  # off by −ũẽ: it hides along δe ∥ e


def test_K_is_the_central_difference_off_the_unit_sphere():
    for p, u in zip(quaternions(5, (30,)), vectors(6, (30,)), strict=True):
        np.testing.assert_allclose(eu.K(u, p), central_difference(lambda q, u=u: eu.rotate(q, u), p), atol=1e-9)


def test_K_identities_hold_for_every_p():
    p, u = quaternions(7, (50,)), vectors(8, (50,))
    a, k, g, e = eu.matrix(p), eu.K(u, p), eu.G(p), eu.E(p)
    au = a @ u[..., None]
    close = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(k @ T(g) / 2, -a @ eu.tilde(u), **close)
    np.testing.assert_allclose(k @ T(e) / 2, -eu.tilde(au[..., 0]), **close)
    np.testing.assert_allclose(k @ p[..., None], 2 * au, **close)
    np.testing.assert_allclose(norm2(p) * k, -2 * a @ eu.tilde(u) @ g + 2 * au * p[..., None, :], **close)
    # with the rotation matrix in place of A(p), the first needs the factor |p|²: they differ off the sphere
    assert np.abs(k @ T(g) / 2 + eu.as_matrix(p) @ eu.tilde(u)).max() > 0.1


def test_virtual_rotation_formula_is_the_derivative_along_the_sphere_only():
    """[Liu2013] eq. 6b agrees with K on tangents of the unit sphere, and misses the radial part 2 A u pᵀ."""
    p, u = eu.random(np.random.default_rng(9)), vectors(10)
    virtual = -2 * eu.matrix(p) @ eu.tilde(u) @ eu.G(p)
    np.testing.assert_allclose(virtual @ T(eu.G(p)), eu.K(u, p) @ T(eu.G(p)), atol=1e-14)
    np.testing.assert_allclose(virtual @ p, 0, atol=1e-14)
    np.testing.assert_allclose(eu.K(u, p) @ p, 2 * eu.rotate(p, u), atol=1e-14)


def test_A_is_E_G_transposed_and_scales_with_the_norm():
    p = quaternions(11, (50,))
    a, e, g = eu.matrix(p), eu.E(p), eu.G(p)
    s = norm2(p)
    np.testing.assert_allclose(a, e @ T(g), atol=1e-14)
    np.testing.assert_allclose(a, s * eu.as_matrix(p), atol=1e-13)
    np.testing.assert_allclose(a @ T(a), s**2 * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(a), s[..., 0, 0] ** 3, rtol=1e-13)
    for m in (e, g):
        np.testing.assert_allclose(m @ T(m), s * np.eye(3), atol=1e-14)
        np.testing.assert_allclose(m @ p[..., None], 0, atol=1e-15)
        np.testing.assert_allclose(T(m) @ m, s * np.eye(4) - p[..., :, None] * p[..., None, :], atol=1e-14)


def test_papers_worked_matrices():
    """[Liu2013] Example 1: A at q₀ is a rotation, A at the off-sphere q₁ is not, to all printed digits."""
    np.testing.assert_array_equal(eu.matrix([0.5, -0.5, -0.5, 0.5]), [[0, 0, -1], [1, 0, 0], [0, -1, 0]])
    expected = [[-0.25, 1.0, -0.8125], [1.1875, 0.5, 0.25], [0.5, -0.6875, -1.0]]
    np.testing.assert_array_equal(eu.matrix([0.375, -0.625, -0.875, 0.125]), expected)


def test_tilde_is_the_cross_product():
    v, w = vectors(12, (9,)), vectors(13, (9,))
    np.testing.assert_allclose((eu.tilde(v) @ w[..., None])[..., 0], np.cross(v, w), atol=1e-15)


def test_multiply_composes_and_conjugate_inverts():
    p, q, v = quaternions(14, (40,)), quaternions(15, (40,)), vectors(16, (40,))
    np.testing.assert_allclose(eu.matrix(eu.multiply(p, q)), eu.matrix(p) @ eu.matrix(q), atol=1e-12)
    np.testing.assert_allclose(eu.rotate(eu.multiply(p, q), v), eu.rotate(p, eu.rotate(q, v)), atol=1e-12)
    np.testing.assert_array_equal(eu.matrix(eu.conjugate(p)), T(eu.matrix(p)))
    unit = eu.multiply(eu.conjugate(p), p)
    np.testing.assert_allclose(unit[:, 0], norm2(p)[:, 0, 0], rtol=4 * EPS)
    np.testing.assert_array_equal(unit[:, 1:], 0)
    ours = eu.as_scipy(eu.multiply(p, q))
    np.testing.assert_allclose((eu.as_scipy(p) * eu.as_scipy(q)).as_matrix(), ours.as_matrix(), atol=1e-14)


def test_rotate_equals_scipy():
    p, v = eu.random(np.random.default_rng(17), (30,)), vectors(18, (30,))
    np.testing.assert_allclose(eu.rotate(p, v), Rotation.from_quat(p[:, [1, 2, 3, 0]]).apply(v), atol=4e-15)


def test_rates_invert_on_the_sphere_and_scale_off_it():
    p, w = quaternions(19, (30,)), vectors(20, (30,))
    s = norm2(p)[..., 0]
    pdot = eu.rate_from_body(p, w)
    np.testing.assert_allclose(2 * np.einsum("kij,kj->ki", eu.G(p), pdot), s * w, atol=1e-13)
    np.testing.assert_allclose(2 * np.einsum("kij,kj->ki", eu.E(p), pdot), eu.rotate(p, w), atol=1e-13)
    np.testing.assert_allclose((p * eu.rate_from_body(p, w)).sum(-1), 0, atol=1e-14)
    pure = np.concatenate([np.zeros((30, 1)), w], axis=-1)
    np.testing.assert_allclose(eu.rate_from_body(p, w), eu.multiply(p, pure) / 2, atol=1e-14)


def test_rates_are_the_angular_velocity_of_the_matrix():
    """Ȧ = A tilde(ω') = tilde(ω) A, with Ȧ by central difference along p(t) = p + t ṗ on the sphere."""
    p, w = eu.random(np.random.default_rng(21)), vectors(22)
    h = 1e-5
    adot = (eu.matrix(eu.retract(p, h * w)) - eu.matrix(eu.retract(p, -h * w))) / (2 * h)
    pdot = (eu.retract(p, h * w) - eu.retract(p, -h * w)) / (2 * h)
    np.testing.assert_allclose(adot, eu.matrix(p) @ eu.tilde(2 * eu.G(p) @ pdot), atol=1e-8)
    np.testing.assert_allclose(adot, eu.tilde(2 * eu.E(p) @ pdot) @ eu.matrix(p), atol=1e-8)
    np.testing.assert_allclose(2 * eu.G(p) @ pdot, w, atol=1e-8)


# --- exp, log ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theta", ANGLES + BEYOND_PI)
def test_exp_to_rounding(theta):
    for axis in AXES:
        phi = theta * axis
        p, exact = eu.exp(phi), mp_exp(phi)
        assert relative_error(p, exact) < 3 * EPS
        if theta < 1:  # near the identity the small vector part has full relative accuracy
            assert componentwise_error(p, exact) < 3 * EPS


@pytest.mark.parametrize("theta", ANGLES)
def test_log_to_rounding(theta):
    for axis in AXES:
        p = eu.exp(theta * axis)
        for scaled in (p, -p, 0.37 * p, 5.1 * p):
            assert componentwise_error(eu.log(scaled), mp_log(scaled)) < 5 * EPS


def test_log_to_rounding_where_the_scalar_part_nearly_vanishes():
    for w in (1e-300, 1e-100, 1e-17, 1e-16, 1e-12, 1e-9, 1e-6, 1e-3, 1e-2):
        for axis in AXES:
            for sign in (1, -1):
                p = sign * np.r_[w, axis]
                assert componentwise_error(eu.log(p), mp_log(p)) < 5 * EPS


def test_log_of_any_magnitude():
    p = eu.random(np.random.default_rng(23), (10,))
    for scale in (2.0**-1000, 2.0**-600, 2.0**600, 2.0**1000):
        np.testing.assert_array_equal(eu.log(p * scale), eu.log(p))


@pytest.mark.parametrize("theta", [t for t in ANGLES if t < PI])
def test_log_inverts_exp(theta):
    """Below π, to the rounding of exp and log; the conditioning of e0 = cos(θ/2) is 1 there."""
    for axis in AXES:
        phi = theta * axis
        np.testing.assert_allclose(eu.log(eu.exp(phi)), phi, rtol=0, atol=4 * EPS * max(theta, 1e-300))


@pytest.mark.parametrize("theta", BEYOND_PI)
def test_log_takes_the_smaller_angle(theta):
    for axis in AXES:
        np.testing.assert_allclose(eu.log(eu.exp(theta * axis)), (theta - 2 * PI) * axis, atol=8 * EPS)


def test_tie_break_at_exactly_pi():
    """e0 = 0: the first non-zero component of the vector is positive, for either sign of p and of the zero."""
    for axis in AXES:
        lead = axis[np.nonzero(axis)[0][0]]
        for p in (np.r_[0.0, axis], np.r_[0.0, -axis], np.r_[-0.0, axis], np.r_[-0.0, -axis]):
            np.testing.assert_allclose(eu.log(p), np.sign(lead) * PI * axis, rtol=0, atol=4 * EPS)
    np.testing.assert_array_equal(eu.log([0, -1, 0, 0]), [PI, 0, 0])
    np.testing.assert_array_equal(eu.log([0, 0, -2, 0]), [0, PI, 0])
    np.testing.assert_array_equal(eu.log([0, 0, 0, -1]), [0, 0, PI])
    # if e0 is not zero, its sign decides, even if it is small
    np.testing.assert_array_equal(eu.log([1e-200, -1, 0, 0]), [-PI, 0, 0])
    np.testing.assert_array_equal(eu.log([-1e-200, -1, 0, 0]), [PI, 0, 0])


def test_log_ignores_the_sign_of_p_bit_for_bit():
    p = np.concatenate([quaternions(24, (200,)), np.c_[np.zeros(len(AXES)), AXES], [[1, 0, 0, 0], [1, 1e-9, 0, 0]]])
    np.testing.assert_array_equal(eu.log(p), eu.log(-p))
    assert not np.signbit(eu.log([-1.0, 0, 0, 0])).any()
    assert np.linalg.norm(eu.log(p), axis=-1).max() <= PI * (1 + 2 * EPS)


def test_exp_and_log_equal_scipys():
    phi = 2 * vectors(25, (100,))  # up to 6.9 rad: on both sides of π
    assert (np.linalg.norm(phi, axis=1) > PI).any()
    np.testing.assert_allclose(eu.as_matrix(eu.exp(phi)), Rotation.from_rotvec(phi).as_matrix(), atol=2e-15)
    p = quaternions(26, (100,))
    np.testing.assert_allclose(eu.log(p), Rotation.from_quat(eu.as_xyzw(p)).as_rotvec(), atol=4e-15)


def test_exp_is_the_matrix_exponential():
    for phi in vectors(27, (10,)):
        series = np.array(mpmath.expm(mpmath.matrix(eu.tilde(phi).tolist())).tolist(), dtype=float)
        np.testing.assert_allclose(eu.matrix(eu.exp(phi)), series, atol=4e-15)


def test_exp_survives_extremes():
    np.testing.assert_array_equal(eu.exp([0, 0, 0]), [1, 0, 0, 0])
    np.testing.assert_array_equal(eu.exp([2.0**-1040, 0, -(2.0**-1050)]), [1, 2.0**-1041, 0, -(2.0**-1051)])
    assert np.linalg.norm(eu.exp([1e200, -1e200, 0])) == pytest.approx(1, abs=1e-15)
    assert np.isnan(eu.exp([np.nan, 0, 0])).all()


def test_difference_and_retract_are_inverse():
    rng = np.random.default_rng(28)
    p, q = eu.random(rng, (100,)), eu.random(rng, (100,))
    d = eu.difference(p, q)
    np.testing.assert_allclose(eu.canonical(eu.retract(p, d)), eu.canonical(q), atol=2e-15)
    np.testing.assert_allclose(eu.difference(p, eu.retract(p, d)), d, atol=1e-14)
    np.testing.assert_array_equal(eu.difference(p, -q), d)
    np.testing.assert_array_equal(eu.difference(p, p), 0)
    np.testing.assert_array_equal(eu.difference(p, -p), 0)
    turned = eu.matrix(p) @ Rotation.from_rotvec(d).as_matrix()
    np.testing.assert_allclose(eu.matrix(eu.retract(p, d)), turned, atol=4e-15)
    long = 2.5 * p
    np.testing.assert_allclose(np.linalg.norm(eu.retract(long, d), axis=-1), 2.5, rtol=4 * EPS)


def test_retract_moves_vectors_by_minus_A_u_tilde():
    p, u = quaternions(29), vectors(30)
    step = central_difference(lambda d: eu.rotate(eu.retract(p, d), u), np.zeros(3))
    np.testing.assert_allclose(step, -eu.matrix(p) @ eu.tilde(u), atol=1e-8)


def test_series_truncation_is_below_half_an_ulp_at_the_switch():
    half_ulp = mpmath.mpf(2) ** -53

    def truncation(coefficients, t, exact):
        total = mpmath.fsum(c * mpmath.mpf(t) ** (2 * k) for k, c in enumerate(coefficients))
        return abs(total / exact - 1)

    mpf = mpmath.mpf
    t = eu.EXP_SERIES_BELOW
    assert truncation((mpf(1) / 2, -mpf(1) / 48, mpf(1) / 3840), t, mpmath.sin(t / 2) / mpf(t)) < half_ulp
    t = eu.LOG_SERIES_BELOW
    assert truncation((mpf(1), -mpf(1) / 3, mpf(1) / 5), t, mpmath.atan(mpf(t)) / t) < half_ulp


# --- Conversions ---------------------------------------------------------------------------------------------------


def hard_quaternions():
    """All ANGLES about all axes, exact rotations by π, and quaternions with components of equal magnitude."""
    turns = [eu.exp(t * axis) for t in ANGLES for axis in AXES]
    halves = [np.r_[0.0, axis] for axis in AXES]
    ties = [np.array(s) / 2.0 for s in np.ndindex(3, 3, 3, 3) if any(s)]
    ties = [eu.normalize(t - 0.5) if np.any(t - 0.5) else t for t in ties]
    return np.array([*turns, *halves, *ties, *eu.random(np.random.default_rng(32), (200,))])


def test_matrix_roundtrip_at_every_angle():
    p = hard_quaternions()
    a = eu.as_matrix(p)
    back = eu.from_matrix(a)
    np.testing.assert_allclose(eu.as_matrix(back), a, rtol=0, atol=6 * EPS)
    np.testing.assert_allclose(np.linalg.norm(back, axis=-1), 1, rtol=2 * EPS)
    assert sign_free_distance(back, p) < 4 * EPS


def test_from_matrix_keeps_small_angles():
    """Near the identity the vector part has full relative accuracy; arccos of the trace would lose it."""
    for theta in (1e-3, 1e-8, 1e-12, 1e-100):
        phi = theta * AXES[5]
        np.testing.assert_allclose(eu.log(eu.from_matrix(eu.matrix(eu.exp(phi)))), phi, rtol=1e-14)


def test_from_matrix_equals_scipy():
    r = Rotation.from_quat(np.random.default_rng(33).standard_normal((100, 4)))
    np.testing.assert_allclose(eu.from_matrix(r.as_matrix()), eu.canonical(eu.from_scipy(r)), atol=4 * EPS)


@pytest.mark.parametrize(
    ("a", "words"),
    [
        (np.diag([1.0, 1, -1]), ["determinant -1 ", "defect"]),
        (2 * np.eye(3), ["determinant 8 ", "= 3 "]),
        (-np.eye(3), ["determinant -1 "]),
        (np.zeros((3, 3)), ["determinant 0 ", "= 1 "]),
        ([[1, 1e-5, 0], [0, 1, 0], [0, 0, 1]], ["determinant 1 ", "= 1e-05 ", "1e-06"]),
        (np.stack([np.eye(3), np.eye(3), 3 * np.eye(3)]), ["index (2,)", "determinant 27 "]),
        (np.full((3, 3), np.nan), ["finite", "nan"]),
        (np.eye(4), ["(..., 3, 3)", "(4, 4)"]),
    ],
)
def test_from_matrix_rejects_non_rotations(a, words):
    with pytest.raises(ValueError) as error:
        eu.from_matrix(a)
    for word in words:
        assert word in str(error.value)


def test_from_matrix_tolerance_is_the_callers():
    sheared = np.eye(3) + 1e-5 * np.eye(3, k=1)
    np.testing.assert_allclose(eu.from_matrix(sheared, tolerance=1e-4), [1, 0, 0, 0], atol=1e-5)
    with pytest.raises(ValueError, match="at most 1e-12"):
        eu.from_matrix(np.round(eu.as_matrix(quaternions(34)), 8), tolerance=1e-12)
    assert eu.from_matrix(np.round(eu.as_matrix(quaternions(34)), 7)).shape == (4,)


def test_rotation_vector_conversions_are_exp_and_log():
    p = hard_quaternions()
    back = eu.from_rotation_vector(eu.log(p))
    assert sign_free_distance(back, p) < 4 * EPS


def test_zxz_is_the_product_of_elementary_rotations():
    """Against explicit matrices and against SciPy's intrinsic "ZXZ"."""

    def rz(t):
        return np.array([[np.cos(t), -np.sin(t), 0], [np.sin(t), np.cos(t), 0], [0, 0, 1]])

    def rx(t):
        return np.array([[1, 0, 0], [0, np.cos(t), -np.sin(t)], [0, np.sin(t), np.cos(t)]])

    angles = np.random.default_rng(35).uniform(-7, 7, (50, 3))
    for psi, theta, phi in angles:
        np.testing.assert_allclose(eu.matrix(eu.from_zxz([psi, theta, phi])), rz(psi) @ rx(theta) @ rz(phi), atol=4e-15)
    scipy = Rotation.from_euler("ZXZ", angles)
    np.testing.assert_allclose(eu.as_matrix(eu.from_zxz(angles)), scipy.as_matrix(), atol=4e-15)
    np.testing.assert_allclose(eu.as_zxz(eu.from_scipy(scipy)), scipy.as_euler("ZXZ"), atol=1e-13)


def test_zxz_roundtrips():
    p = hard_quaternions()
    angles = eu.as_zxz(p)
    assert sign_free_distance(eu.from_zxz(angles), p) < 8 * EPS
    np.testing.assert_array_equal(eu.as_zxz(-p), angles)
    assert (angles[:, 1] >= 0).all() and (angles[:, 1] <= PI).all()
    assert (angles > -PI).all() and (angles <= PI).all()
    rng = np.random.default_rng(36)
    angles = rng.uniform((-PI, 0.01, -PI), (PI, PI - 0.01, PI), (200, 3))
    np.testing.assert_allclose(eu.as_zxz(eu.from_zxz(angles)), angles, atol=1e-13)


@pytest.mark.parametrize("delta", [0.0, 1e-16, 1e-15, 1e-14, 1e-9, 1e-4])
@pytest.mark.parametrize("pole", [0.0, PI])
def test_zxz_third_angle_is_zero_at_the_poles(pole, delta):
    """At θ = 0 and π, φ = 0; just off them (beyond the rounding of p), ψ and φ are recovered."""
    psi, phi = 0.7, 0.4
    p = eu.from_zxz([psi, abs(pole - delta), phi])
    back = eu.as_zxz(p)
    assert sign_free_distance(eu.from_zxz(back), p) < 1e-15
    if delta <= 1e-16:
        total = psi + phi if pole == 0 else psi - phi
        assert back[1] == pole and back[2] == 0
        assert back[0] == pytest.approx(total, abs=4 * EPS)
    elif delta >= 1e-14:
        np.testing.assert_allclose(back, [psi, abs(pole - delta), phi], atol=1e-15 + EPS)


def test_xyzw_only_reorders():
    np.testing.assert_array_equal(eu.as_xyzw([1, 2, 3, 4]), [2, 3, 4, 1])
    np.testing.assert_array_equal(eu.from_xyzw([2, 3, 4, 1]), [1, 2, 3, 4])
    p = quaternions(37, (2, 3))
    np.testing.assert_array_equal(eu.from_xyzw(eu.as_xyzw(p)), p)


def test_scipy_roundtrip():
    p = eu.random(np.random.default_rng(38), (50,))
    np.testing.assert_allclose(eu.canonical(eu.from_scipy(eu.as_scipy(p))), eu.canonical(p), atol=2 * EPS)
    np.testing.assert_allclose(eu.as_scipy(3 * p).as_matrix(), eu.as_matrix(p), atol=2e-15)
    assert eu.from_scipy(eu.as_scipy(p[0])).shape == (4,)


def test_axis_angle_equals_exp_and_scipy():
    rng = np.random.default_rng(39)
    axis, angle = rng.uniform(-1, 1, (30, 3)), rng.uniform(-7, 7, 30)
    unit = axis / np.linalg.norm(axis, axis=1, keepdims=True)
    np.testing.assert_allclose(eu.from_axis_angle(axis, angle), eu.exp(angle[:, None] * unit), atol=2e-15)
    scipy = Rotation.from_rotvec(angle[:, None] * unit).as_matrix()
    np.testing.assert_allclose(eu.as_matrix(eu.from_axis_angle(axis, angle)), scipy, atol=4e-15)
    np.testing.assert_allclose(eu.from_axis_angle([0, 0, 1e-200], PI / 2), np.sqrt([0.5, 0, 0, 0.5]), atol=EPS)
    assert eu.from_axis_angle(axis, 0.3).shape == (30, 4)
    assert eu.from_axis_angle([1, 0, 0], angle).shape == (30, 4)


def test_canonical_is_unique_for_each_rotation():
    p = np.concatenate([quaternions(40, (50,)), [[0, -3, 1, 0], [0, 0, -2, 5], [0, 0, 0, -1], [-0.0, -1, 0, 0]]])
    c = eu.canonical(p)
    np.testing.assert_array_equal(c, eu.canonical(-p))
    np.testing.assert_allclose(eu.as_matrix(c), eu.as_matrix(p), atol=4 * EPS)
    np.testing.assert_allclose(np.linalg.norm(c, axis=-1), 1, rtol=2 * EPS)
    for row in c:
        assert row[np.nonzero(row)[0][0]] > 0
    assert not np.signbit(c[-1]).any()


def test_normalize_at_any_magnitude():
    p = eu.random(np.random.default_rng(41), (20,))
    for scale in (1e-300, 1e-160, 1.0, 1e160, 1e300):
        np.testing.assert_allclose(eu.normalize(scale * p), p, rtol=4 * EPS)


def test_random_is_uniform_on_the_sphere():
    """Each component of a uniform point of S³ has density (2/π)√(1 − x²); second moments are I/4."""
    p = eu.random(np.random.default_rng(42), (20000,))
    np.testing.assert_allclose(p.T @ p / len(p), np.eye(4) / 4, atol=0.01)

    def cdf(x):
        return 0.5 + (x * np.sqrt(1 - x * x) + np.arcsin(x)) / PI

    assert min(stats.kstest(p[:, k], cdf).pvalue for k in range(4)) > 1e-3
    np.testing.assert_allclose(np.linalg.norm(p, axis=-1), 1, rtol=2 * EPS)
    np.testing.assert_array_equal(eu.random(np.random.default_rng(1), 3), eu.random(np.random.default_rng(1), (3,)))


# --- Shapes, errors, imports ---------------------------------------------------------------------------------------

QUATERNION_TO = {
    eu.E: (3, 4), eu.G: (3, 4), eu.matrix: (3, 3), eu.as_matrix: (3, 3), eu.conjugate: (4,), eu.normalize: (4,),
    eu.canonical: (4,), eu.log: (3,), eu.as_zxz: (3,), eu.as_xyzw: (4,),
    eu.from_xyzw: (4,),
}  # fmt: skip
VECTOR_TO = {
    eu.tilde: (3, 3), eu.exp: (4,), eu.from_rotation_vector: (4,), eu.from_zxz: (4,),
}  # fmt: skip
PAIR_TO = {
    eu.multiply: (4, 4, (4,)), eu.difference: (4, 4, (3,)), eu.retract: (4, 3, (4,)), eu.rotate: (4, 3, (3,)),
    eu.rate_from_body: (4, 3, (4,)), eu.K: (3, 4, (3, 4)),
}  # fmt: skip


def name(f):
    return f.__name__


def sample(size, seed, shape):
    return quaternions(seed, shape) if size == 4 else vectors(seed, shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("f", [*QUATERNION_TO, *VECTOR_TO], ids=name)
def test_batches_equal_single_calls(f, shape):
    size, tail = (4, QUATERNION_TO[f]) if f in QUATERNION_TO else (3, VECTOR_TO[f])
    x = sample(size, 43, shape)
    y = f(x)
    assert y.shape == shape + tail and y.dtype == np.float64
    for index in np.ndindex(shape):
        np.testing.assert_array_equal(y[index], f(x[index].tolist()))


@pytest.mark.parametrize(("left", "right"), [((), ()), ((5,), ()), ((), (5,)), ((2, 1), (3,)), ((0,), ())])
@pytest.mark.parametrize("f", PAIR_TO, ids=name)
def test_pairs_broadcast(f, left, right):
    m, n, tail = PAIR_TO[f]
    a, b = sample(m, 44, left), sample(n, 45, right)
    shape = np.broadcast_shapes(left, right)
    y = f(a, b)
    assert y.shape == shape + tail
    a, b = np.broadcast_to(a, (*shape, m)), np.broadcast_to(b, (*shape, n))
    for index in np.ndindex(shape):
        np.testing.assert_allclose(y[index], f(a[index], b[index]), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("shape", SHAPES)
def test_from_matrix_and_random_batch(shape):
    p = eu.random(np.random.default_rng(46), shape)
    assert p.shape == (*shape, 4)
    np.testing.assert_allclose(eu.from_matrix(eu.matrix(p)), eu.canonical(p), atol=4 * EPS)


@pytest.mark.parametrize("f", [*QUATERNION_TO, *VECTOR_TO], ids=name)
def test_wrong_shapes_are_named(f):
    size = 4 if f in QUATERNION_TO else 3
    with pytest.raises(ValueError, match=rf"must have shape \(\.\.\., {size}\), got \(2, 5\)"):
        f(np.ones((2, 5)))
    with pytest.raises(ValueError, match=r"got \(\)"):
        f(1.0)


@pytest.mark.parametrize("f", [eu.normalize, eu.canonical, eu.log, eu.as_matrix, eu.as_zxz, eu.as_scipy], ids=name)
def test_zero_and_nonfinite_quaternions_are_rejected_with_their_value(f):
    with pytest.raises(ValueError, match=r"p must be finite and non-zero, got \[0\. 0\. 0\. 0\.\]"):
        f([0, 0, 0, 0])
    with pytest.raises(ValueError, match=r"got \[ ?1\. +nan +0\. +0\.\] at index \(1,\)"):
        f([[1, 0, 0, 0], [1, np.nan, 0, 0]])
    with pytest.raises(ValueError, match="inf"):
        f([np.inf, 0, 0, 0])


def test_from_converters_reject_bad_values_by_name():
    with pytest.raises(ValueError, match=r"axis must be finite and non-zero, got \[0\. 0\. 0\.\]"):
        eu.from_axis_angle([0, 0, 0], 1.0)
    with pytest.raises(ValueError, match="angle must be finite, got nan"):
        eu.from_axis_angle([0, 0, 1], np.nan)
    with pytest.raises(ValueError, match=r"rotation_vector must be finite.*inf"):
        eu.from_rotation_vector([np.inf, 0, 0])
    with pytest.raises(ValueError, match=r"angles must be finite.*nan"):
        eu.from_zxz([0, np.nan, 0])


def test_the_algebra_propagates_nan():
    bad = [np.nan, 0.0, 0.0, 0.0]
    for y in (eu.matrix(bad), eu.multiply(bad, [1, 0, 0, 0]), eu.K([1, 2, 3], bad)):
        assert np.isnan(y).any()


def test_inputs_are_not_modified():
    p, v = quaternions(47, (3,)), vectors(48, (3,))
    p_before, v_before = p.copy(), v.copy()
    for f in QUATERNION_TO:
        f(p)
    for f in VECTOR_TO:
        f(v)
    for f, (m, n, _) in PAIR_TO.items():
        f(p if m == 4 else v, p if n == 4 else v)
    np.testing.assert_array_equal(p, p_before)
    np.testing.assert_array_equal(v, v_before)


def test_no_warnings_at_the_edges():
    edges = [[1, 0, 0, 0], [-1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, -1], [1, 5e-324, 0, 0], [5e-324, 1, 0, 0]]
    vectors_ = [[0, 0, 0], [5e-324, 0, 0], [1e-200, 1e-200, 0], [PI, 0, 0], [0, 2 * PI, 0]]
    with np.errstate(all="raise", under="ignore"):
        for f in QUATERNION_TO:
            assert np.isfinite(f(edges)).all()
        for f in VECTOR_TO:
            assert np.isfinite(f(vectors_)).all()


def test_group_laws_for_arbitrary_input():
    """Norms over eight decades; random components are set to zero, so that special cases occur."""
    rng = np.random.default_rng(49)
    n = 2000
    phi = rng.uniform(-10, 10, (n, 3)) * rng.choice([0, 1e-8, 1e-3, 1], (n, 3))
    p = rng.uniform(-10, 10, (n, 4)) * rng.choice([0, 1e-8, 1e-3, 1], (n, 4))
    p = p[p.any(axis=-1)]
    phi = phi[: len(p)]
    np.testing.assert_allclose(np.linalg.norm(eu.exp(phi), axis=-1), 1, rtol=4 * EPS)
    a = eu.as_matrix(p)
    scipy = a @ Rotation.from_rotvec(phi).as_matrix()
    np.testing.assert_allclose(eu.as_matrix(eu.retract(p, phi)), scipy, atol=1e-14)
    for back in (eu.from_matrix(a), eu.from_zxz(eu.as_zxz(p)), eu.exp(eu.log(p)), eu.canonical(p)):
        np.testing.assert_allclose(eu.as_matrix(back), a, rtol=0, atol=8 * EPS)


def test_import_does_not_load_scipy():
    code = "import sys, cardan.math.euler; print('scipy' in sys.modules, 'numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
