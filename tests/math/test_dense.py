"""Laws of the dense factorisations, against LAPACK through NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from cardan.kernel.jit import jit
from cardan.math import _dense

RTOL = 1e-8


@jit
def factor_and_solve(n, a, damping, b, x):
    if not _dense.cholesky(n, a, damping):
        return False
    _dense.cholesky_solve(n, a, b, x)
    return True


@jit
def call_lu_solve(n, a, b, x, singular):
    return _dense.lu_solve(n, a, b, x, singular)


@jit
def call_minimum_norm(m, n, a, b, x, rtol, work, pivots):
    return _dense.minimum_norm(m, n, a, b, x, rtol, work, pivots)


def solve(a, b, damping=0.0):
    """(x, factor) of (a + damping I) x = b, or None if the factorisation fails."""
    n = len(b)
    factor, x = np.array(a, dtype=float).ravel(), np.full(n, np.nan)
    done = factor_and_solve(n, factor, damping, np.array(b, dtype=float), x)
    return (x, factor.reshape(n, n)) if done else None


def minimum_norm(a, b, rtol=RTOL):
    """(x, rank), where x is the minimum-norm minimiser of |a x − b|."""
    m, n = a.shape
    x, work, pivots = np.full(n, np.nan), np.full(3 * n, np.nan), np.full(n, -1, dtype=np.int64)
    rank = call_minimum_norm(m, n, np.array(a).ravel(), np.array(b, dtype=float), x, rtol, work, pivots)
    return x, rank


def of_rank(rng, m, n, rank, spread=1.0):
    """A random m×n matrix of the given rank; its non-zero singular values span ``spread`` decades."""
    left, right = np.linalg.qr(rng.normal(size=(m, m)))[0], np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = 10.0 ** rng.uniform(-spread, 0, rank)
    return left[:, :rank] * values @ right[:rank]


SHAPES = [(1, 1), (1, 6), (6, 1), (5, 5), (4, 9), (9, 4), (17, 18), (20, 18), (40, 18), (18, 40)]


@pytest.mark.nojit
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("short", [0, 1, 2, 5])
def test_the_minimum_norm_solution_is_that_of_the_pseudo_inverse(shape, short):
    m, n = shape
    rank = max(min(m, n) - short, 0)
    rng = np.random.default_rng([m, n, short])
    for _ in range(3):
        a, b = of_rank(rng, m, n, rank), rng.normal(size=m)
        x, found = minimum_norm(a, b)
        assert found == rank
        assert np.abs(x - np.linalg.pinv(a, rcond=1e-10) @ b).max() <= 1e-12


@pytest.mark.parametrize("size", [1e-100, 1e-9, 1e9, 1e100])
def test_the_size_of_a_matrix_changes_the_solution_by_its_inverse(size):
    rng = np.random.default_rng(1)
    a, b = of_rank(rng, 7, 9, 5), rng.normal(size=7)
    x, rank = minimum_norm(a, b)
    scaled, scaled_rank = minimum_norm(size * a, b)
    assert scaled_rank == rank == 5
    assert np.abs(scaled * size - x).max() <= 1e-12


def test_the_solution_lies_in_the_row_space_and_leaves_a_residual_across_the_columns():
    rng = np.random.default_rng(2)
    for m, n, rank in ((12, 20, 7), (20, 12, 7), (12, 12, 12), (30, 6, 6)):
        a, b = of_rank(rng, m, n, rank, spread=4.0), rng.normal(size=m)
        x, found = minimum_norm(a, b)
        assert found == rank
        _, _, rows = np.linalg.svd(a)
        assert np.abs(rows[rank:] @ x).max(initial=0.0) <= 1e-11 * np.linalg.norm(x)
        assert np.abs(a.T @ (a @ x - b)).max() <= 1e-11


@pytest.mark.nojit
@pytest.mark.parametrize("shape", SHAPES)
def test_the_zero_matrix_has_rank_zero_and_the_zero_solution(shape):
    x, rank = minimum_norm(np.zeros(shape), np.ones(shape[0]))
    assert rank == 0
    assert x.tolist() == [0.0] * shape[1]


@pytest.mark.nojit
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rest", [0.0, 1.0])
def test_one_nan_makes_all_of_the_solution_nan(shape, rest):
    """At any position, also among zeros: a dropped column must not hide a NaN."""
    rng = np.random.default_rng(shape)
    for _ in range(5):
        a = rest * rng.normal(size=shape)
        a[rng.integers(shape[0]), rng.integers(shape[1])] = np.nan
        assert np.isnan(minimum_norm(a, np.ones(shape[0]))[0]).all()


def test_zero_and_repeated_rows_and_columns_are_dropped():
    rng = np.random.default_rng(3)
    core = of_rank(rng, 5, 5, 5)
    a = np.zeros((12, 11))
    a[[0, 3, 4, 7, 9], :5] = core
    a[[1, 2], :5] = core[:2]
    a[:, [6, 8]] = a[:, [0, 4]]
    b = rng.normal(size=12)
    x, rank = minimum_norm(a, b)
    assert rank == 5
    assert np.abs(x - np.linalg.pinv(a, rcond=1e-10) @ b).max() <= 1e-12
    assert not x[[5, 7, 9, 10]].any()
    assert np.abs(x[[0, 4]] - x[[6, 8]]).max() <= 1e-13  # equal columns have equal components


@pytest.mark.parametrize(("smallest", "rank"), [(1e-4, 3), (1e-7, 3), (1e-9, 2), (1e-12, 2)])
def test_pivots_below_the_relative_tolerance_count_as_singular(smallest, rank):
    rng = np.random.default_rng(4)
    rotate = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    a, b = rotate @ np.diag([1.0, 0.5, smallest]), np.array([1.0, 2.0, 3.0])
    x, found = minimum_norm(a, b)
    assert found == rank
    expected = np.diag([1.0, 2.0, 1.0 / smallest if rank == 3 else 0.0]) @ rotate.T @ b
    assert np.abs(x - expected).max() <= 1e-12 / smallest**0.5 * np.abs(expected).max()


@pytest.mark.nojit
@pytest.mark.parametrize("n", [1, 2, 6, 17, 40])
@pytest.mark.parametrize("damping", [0.0, 1e-3, 10.0])
def test_cholesky_solves_what_lapack_solves(n, damping):
    rng = np.random.default_rng([n, 5])
    root = rng.normal(size=(n + 3, n))
    a, b = root.T @ root, rng.normal(size=n)
    x, factor = solve(a, b, damping)
    whole = a + damping * np.eye(n)
    assert np.abs(x - np.linalg.solve(whole, b)).max() <= 1e-13 * np.linalg.cond(whole)
    lower = np.tril(factor, -1) + np.diag(1.0 / np.diag(factor))  # the inverse of the diagonal is stored
    assert np.abs(lower - np.linalg.cholesky(whole)).max() <= 1e-13 * np.abs(whole).max()


def test_cholesky_reads_only_the_lower_triangle():
    rng = np.random.default_rng(6)
    root = rng.normal(size=(9, 6))
    a, b = root.T @ root, rng.normal(size=6)
    x, _ = solve(np.tril(a) + np.triu(np.full((6, 6), np.nan), 1), b)
    assert np.abs(x - np.linalg.solve(a, b)).max() <= 1e-12


@pytest.mark.nojit
@pytest.mark.parametrize(
    "a",
    [
        np.zeros((3, 3)),
        np.diag([1.0, 2.0, -1e-9]),
        np.diag([1.0, np.nan, 1.0]),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        np.ones((4, 4)),
    ],
)
def test_cholesky_rejects_an_indefinite_matrix(a):
    assert solve(a, np.ones(len(a))) is None
    if np.isfinite(a).all():
        assert solve(a, np.ones(len(a)), damping=2.0) is not None


def lu_solve(a, b, singular=1e-13):
    """x of a x = b, or None if a is singular."""
    x = np.full(len(b), np.nan)
    done = call_lu_solve(len(b), np.array(a, dtype=float).ravel(), np.array(b, dtype=float), x, singular)
    return x if done else None


@pytest.mark.nojit
@pytest.mark.parametrize("n", [1, 2, 4, 7, 18])
def test_lu_solves_what_lapack_solves(n):
    rng = np.random.default_rng(n)
    for _ in range(5):
        a, b = rng.normal(size=(n, n)), rng.normal(size=n)
        assert np.abs(lu_solve(a, b) - np.linalg.solve(a, b)).max() <= 1e-12 * np.linalg.cond(a)


@pytest.mark.nojit
def test_lu_exchanges_rows_if_a_pivot_is_zero():
    a = [[0.0, 2.0, 1.0], [0.0, 0.0, 3.0], [4.0, 5.0, 6.0]]
    assert np.allclose(lu_solve(a, [4.0, 6.0, 20.0]), [0.75, 1.0, 2.0], rtol=0, atol=1e-15)


@pytest.mark.nojit
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_lu_reports_a_singular_matrix_by_its_smallest_pivot(scale):
    a = scale * np.diag([3.0, 1.0, 1e-9])
    assert lu_solve(a, np.ones(3), singular=1e-10) is not None
    assert lu_solve(a, np.ones(3), singular=1e-9) is None
    assert lu_solve(np.zeros((3, 3)), np.ones(3)) is None
    assert lu_solve(scale * np.ones((4, 4)), np.ones(4)) is None


@pytest.mark.nojit
def test_lu_of_a_matrix_with_nan_is_singular():
    assert lu_solve(np.full((2, 2), np.nan), np.ones(2)) is None
