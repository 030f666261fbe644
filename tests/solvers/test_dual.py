"""Dual normal equations give the same steps as the normal equations, also for small λ."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from cardan.kernel.jit import jit
from cardan.kernel.memory import pointer
from cardan.solvers import linear
from cardan.solvers._blocks import call_at, spread, update_rest
from cardan.solvers.tables import FACTOR, LEAST, SOLVE, Projection, Structure


def random_structure(rng, constraints, blocks, most=4, independent=False):
    """A structure table with blocks of widths 1 … 4 (no constraint depends on the last) and constraints of 1 … 6 rows,
    some with more rows than unknowns.  If independent: at most half as many rows as unknowns, of full rank in general.
    """
    widths = rng.integers(1, 5, blocks)
    offsets = np.concatenate([[0], np.cumsum(widths)])
    table, row, entry = [], 0, 0
    for _ in range(constraints):
        touched = np.sort(rng.choice(blocks - 1, most if independent else rng.integers(0, most + 1), replace=False))
        rows = min(int(rng.integers(1, 7)), int(widths[touched].sum()) // 2 if independent else 6)
        table += [row, rows, entry, touched.size, *touched]
        row += rows
        entry += rows * int(widths[touched].sum())
    start = Structure.size + len(table)
    out = np.zeros(start + 2 * blocks + 1, dtype=np.int64)
    out[Structure.size : start] = table
    out[start : start + blocks + 1] = offsets
    made = Structure(out)
    made.rows, made.unknowns, made.jacobian_size = row, offsets[-1], entry
    made.constraints, made.blocks = constraints, blocks
    made.offsets, made.rotations = start, start + blocks + 1
    return out


def dense(structure, entries):
    J = np.zeros((Structure(structure).rows, Structure(structure).unknowns))
    spread(structure, entries, J.reshape(-1))
    return J


class Solver:
    """Calls FACTOR once, then projects."""

    def __init__(self, algebra, structure, entries, damping):
        self.algebra, self.entries = algebra, entries
        self.rows, self.unknowns = int(Structure(structure).rows), int(Structure(structure).unknowns)
        self.control = Projection.new(epsilon=damping).as_floats
        self.matrix, self.scratch = np.empty(algebra.work), np.empty(self.unknowns)
        self.status = self._call(FACTOR, np.empty(self.unknowns + self.rows))

    def _call(self, op, x):
        a, scratch = self.algebra, self.scratch
        return call_at(a.address, op, a.pattern, self.control, x, scratch, scratch, self.entries, self.matrix)

    def solve(self, b, c):
        """(u, λ) of u + Jᵀλ = b, J u − ελ = c."""
        x = np.concatenate([b, c])
        assert self._call(SOLVE, x) == 0
        return x[: b.size], x[b.size :]

    def least(self, c):
        """u for b = 0."""
        x = np.concatenate([np.full(self.unknowns, np.nan), c])
        assert self._call(LEAST, x) == 0
        return x[: self.unknowns]


def exact(J, damping, b, c):
    """(JᵀJ + ε)⁻¹ (εb + Jᵀc) in sixty digits: a rounded Jᵀc has a component along free motions."""
    with mpmath.workdps(60):
        A = mpmath.matrix(J.tolist())
        g = damping * mpmath.matrix(b.tolist()) + A.T * mpmath.matrix(c.tolist())
        A = A.T * A + damping * mpmath.eye(J.shape[1])
        return np.array([float(v) for v in mpmath.lu_solve(A, g)])


@pytest.mark.nojit
@pytest.mark.parametrize("seed", range(6))
def test_the_transposed_structure_is_that_of_the_transpose(seed):
    rng = np.random.default_rng(seed)
    structure = random_structure(rng, 7, 9)
    turned, permutation = linear.transposed(structure)
    entries = rng.normal(size=Structure(structure).jacobian_size)
    assert sorted(permutation) == list(range(entries.size))
    assert np.array_equal(dense(turned, entries[permutation]), dense(structure, entries).T)


@pytest.mark.slow
@pytest.mark.parametrize("constraints, blocks", [(3, 12), (8, 40), (40, 60)])  # dense and sparse JJᵀ
@pytest.mark.parametrize("damping", [1e-12, 1e-6, 1.0])
def test_the_step_is_that_of_the_singular_values(constraints, blocks, damping):
    """Also if rows are dependent.  The step has no component along free motions."""
    rng = np.random.default_rng([constraints, 7])
    structure = random_structure(rng, constraints, blocks)
    entries = rng.normal(size=Structure(structure).jacobian_size)
    J = dense(structure, entries)
    r = J @ rng.normal(size=J.shape[1])
    solver = Solver(linear.dual(structure), structure, entries, damping)
    assert solver.status == 0
    step = solver.least(r)
    assert np.abs(solver.scratch - J.T @ r).max() <= 1e-13 * np.abs(J.T @ r).max()
    U, s, Vt = np.linalg.svd(J)
    rank = int((s > 1e-10 * s[0]).sum())
    assert rank < J.shape[0]  # some constraints have more rows than unknowns
    s = s[:rank]
    expected = Vt[:rank].T @ (s / (s * s + damping) * (U[:, :rank].T @ r))
    assert np.abs(step - expected).max() <= 1e-9 * np.abs(expected).max()
    assert np.abs(Vt[rank:] @ step).max() <= 1e-13 * np.abs(step).max() * s[0] / s[-1]


@pytest.mark.parametrize("damping", [1e-12, 1e-9, 1e-4, 1.0])
@pytest.mark.parametrize("redundant", [False, True])
def test_a_projection_is_accurate_to_rounding(damping, redundant):
    """The components of u along free motions are those of b, whatever ε is."""
    rng = np.random.default_rng(11)
    structure = random_structure(rng, 4, 14, independent=True)
    entries = rng.normal(size=Structure(structure).jacobian_size)
    if redundant:  # the first two rows are equal
        first, second, *_ = linear.constraints(structure)
        rows, start = first.rows, first.start
        stride = (second.start - start) // rows
        assert rows > 1 and stride
        entries[start + stride : start + 2 * stride] = entries[start : start + stride]
    J = dense(structure, entries)
    solver = Solver(linear.dual(structure), structure, entries, damping)
    _, s, Vt = np.linalg.svd(J)
    rank = int((s > 1e-10 * s[0]).sum())
    assert rank == J.shape[0] - redundant
    span, free = Vt[:rank], Vt[rank:]
    eps, least = np.finfo(float).eps, s[rank - 1]
    for b, c in (
        (rng.normal(size=J.shape[1]), J @ rng.normal(size=J.shape[1])),
        (free.T @ rng.normal(size=len(free)), np.zeros(J.shape[0])),
        (span.T @ rng.normal(size=rank), J @ rng.normal(size=J.shape[1])),
    ):
        u, multipliers = solver.solve(b, c)
        error = u - exact(J, damping, b, c)
        size = max(np.abs(b).max(), np.abs(c).max())
        assert np.abs(free @ error).max() <= 100 * eps * (size + s[0] * np.abs(multipliers).max())
        bound = eps * (s[0] / least) ** 2
        if redundant:  # the rounding of S along dependent rows is eps/ε, and J turns it into eps/√ε
            bound += eps / np.sqrt(damping)
        assert np.abs(span @ error).max() <= 100 * bound * size
        assert np.abs(b - J.T @ multipliers - u).max() <= 100 * eps * (size + s[0] * np.abs(multipliers).max())


@jit
def rest_of(structure, r, entries, weight, u, out):
    update_rest(Structure(pointer(structure)), r, entries, weight, u, out)


@pytest.mark.long
@pytest.mark.nojit
@pytest.mark.parametrize("damping", [1e-12, 1e-8])
def test_refining_a_step_makes_it_no_worse(damping):
    """As in Levenberg–Marquardt and Newton: by the projection of what the step leaves of both equations."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        structure = random_structure(rng, 5, 30)
        entries = rng.normal(size=Structure(structure).jacobian_size)
        J = dense(structure, entries)
        r = J @ rng.normal(size=J.shape[1]) * 1e-3
        expected = exact(J, damping, np.zeros(J.shape[1]), r)
        solver = Solver(linear.dual(structure), structure, entries, damping)
        step = solver.least(r)
        rough = step + 1e-7 * rng.normal(size=step.size) * np.abs(step).max()  # the step of a less accurate factor
        for given, allowed in ((step, 1e-12), (rough, 1e-9)):
            rest = np.empty(step.size + r.size)
            rest_of(structure, r, entries, 1.0, given, rest)
            refined = given + solver.solve(rest[: step.size], rest[step.size :])[0]
            assert np.abs(refined - expected).max() <= allowed * np.abs(expected).max()


def test_an_indefinite_matrix_is_rejected():
    rng = np.random.default_rng(2)
    structure = random_structure(rng, 3, 12)
    entries = rng.normal(size=Structure(structure).jacobian_size)
    assert Solver(linear.dual(structure), structure, entries, -50.0).status == 1


def test_few_long_rows_use_the_dual_and_short_rows_the_normal_equations():
    from cardan.solvers import _dense_normal, _dual_normal, _sparse_normal

    rng = np.random.default_rng(3)
    long = random_structure(rng, 2, 120, most=100)
    short = random_structure(rng, 300, 100, most=2)
    small = random_structure(rng, 2, 10)
    assert linear.path_algebra(long).address == _dual_normal.ALGEBRA
    assert linear.path_algebra(short).address == _sparse_normal.ALGEBRA
    assert linear.path_algebra(small).address == _dense_normal.ALGEBRA
