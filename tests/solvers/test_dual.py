"""Dual normal equations give the same steps as the normal equations, also for small λ."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from cardan.kernel.jit import jit
from cardan.kernel.memory import pointer
from cardan.solvers import linear
from cardan.solvers._blocks import call_at, spread, update_defect
from cardan.solvers.tables import BACK_SOLVE, FACTOR, Control, Structure


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
    """Calls FACTOR once, then BACK_SOLVE with any gradient."""

    def __init__(self, algebra, structure, entries, r, damping):
        self.algebra, self.entries, self.r = algebra, entries, r
        self.control = np.zeros(Control.size)
        Control(self.control).damping = damping
        self.matrix = np.empty(algebra.work)
        self.gradient = np.empty(int(Structure(structure).unknowns))
        self.status = self._call(FACTOR, self.gradient, np.empty_like(self.gradient))

    def _call(self, op, gradient, step):
        a = self.algebra
        return call_at(a.address, op, a.pattern, self.control, self.r, gradient, step, self.entries, self.matrix)

    def solve(self, gradient):
        step = np.empty_like(gradient)
        assert self._call(BACK_SOLVE, gradient, step) == 0
        return step


def exact(J, damping, g=None, r=None):
    """−(JᵀJ + λI)⁻¹ g, or with g = Jᵀr, in sixty digits: a rounded Jᵀr has a component along free motions."""
    with mpmath.workdps(60):
        A = mpmath.matrix(J.tolist())
        g = mpmath.matrix(g.tolist()) if r is None else A.T * mpmath.matrix(r.tolist())
        A = A.T * A + damping * mpmath.eye(J.shape[1])
        return -np.array([float(v) for v in mpmath.lu_solve(A, g)])


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
    solver = Solver(linear.dual(structure), structure, entries, r, damping)
    assert solver.status == 0
    assert np.abs(solver.gradient - J.T @ r).max() <= 1e-13 * np.abs(J.T @ r).max()
    step = solver.solve(solver.gradient)
    U, s, Vt = np.linalg.svd(J)
    rank = int((s > 1e-10 * s[0]).sum())
    assert rank < J.shape[0]  # some constraints have more rows than unknowns
    s = s[:rank]
    expected = -Vt[:rank].T @ (s / (s * s + damping) * (U[:, :rank].T @ r))
    assert np.abs(step - expected).max() <= 1e-9 * np.abs(expected).max()
    assert np.abs(Vt[rank:] @ step).max() <= 1e-13 * np.abs(step).max() * s[0] / s[-1]


@pytest.mark.parametrize("damping", [1e-12, 1e-9, 1e-4, 1.0])
@pytest.mark.parametrize("redundant", [False, True])
def test_the_step_of_any_gradient_is_accurate_to_rounding(damping, redundant):
    """The components along free motions, and their rounding errors, are divided by λ.  If these components are only
    rounding errors, the other components are as accurate as without free motions."""
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
    r = rng.normal(size=J.shape[0])
    solver = Solver(linear.dual(structure), structure, entries, r, damping)
    _, s, Vt = np.linalg.svd(J)
    rank = int((s > 1e-10 * s[0]).sum())
    assert rank == J.shape[0] - redundant
    span, free = Vt[:rank], Vt[rank:]
    eps = np.finfo(float).eps
    for g in (rng.normal(size=J.shape[1]), free.T @ rng.normal(size=len(free))):
        error = solver.solve(g) - exact(J, damping, g)
        assert np.abs(error).max() <= 100 * eps * np.abs(g).max() / damping
    g = span.T @ rng.normal(size=rank)
    error = solver.solve(g) - exact(J, damping, g)
    least = s[rank - 1]
    assert np.abs(free @ error).max() <= 100 * eps * np.abs(g).max() / damping
    bound = eps * (s[0] / least) ** 2 / (least**2 + damping)
    if redundant:  # the rounding of S is then eps/λ, and it is applied twice
        bound += (eps / damping) ** 2
    assert np.abs(span @ error).max() <= 100 * bound * np.abs(g).max()


def test_the_formula_without_the_split_is_too_inaccurate_for_refinement():
    """(g − JᵀS J g)/λ without the split: its error in the row space is eps/λ, not eps/σ²."""
    rng = np.random.default_rng(11)
    structure = random_structure(rng, 4, 14, independent=True)
    entries = rng.normal(size=Structure(structure).jacobian_size)
    J = dense(structure, entries)
    damping = 1e-12
    solver = Solver(linear.dual(structure), structure, entries, np.ones(J.shape[0]), damping)
    g = J.T @ rng.normal(size=J.shape[0])
    expected = exact(J, damping, g)
    at_once = -(g - J.T @ np.linalg.solve(J @ J.T + damping * np.eye(J.shape[0]), J @ g)) / damping
    Vt = np.linalg.svd(J)[2]
    along_rows = Vt[: J.shape[0]]
    assert np.abs(along_rows @ (at_once - expected)).max() > 1e-6 * np.abs(along_rows @ expected).max()
    split = solver.solve(g)
    assert np.abs(along_rows @ (split - expected)).max() <= 1e-12 * np.abs(along_rows @ expected).max()


@jit
def defect_of(structure, r, entries, damping, step, out):
    update_defect(Structure(pointer(structure)), r, entries, damping, step, out)


@pytest.mark.long
@pytest.mark.nojit
@pytest.mark.parametrize("damping", [1e-12, 1e-8])
def test_refining_a_step_with_its_defect_makes_it_no_worse(damping):
    """As in Levenberg–Marquardt and Newton: the defect Jᵀ(r + Jδ) + λδ is not a combination of the rows."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        structure = random_structure(rng, 5, 30)
        entries = rng.normal(size=Structure(structure).jacobian_size)
        J = dense(structure, entries)
        r = J @ rng.normal(size=J.shape[1]) * 1e-3
        expected = exact(J, damping, r=r)
        solver = Solver(linear.dual(structure), structure, entries, r, damping)
        step = solver.solve(solver.gradient)
        rough = step + 1e-7 * rng.normal(size=step.size) * np.abs(step).max()  # the step of a less accurate factor
        for given, allowed in ((step, 1e-12), (rough, 1e-9)):
            defect = np.empty_like(step)
            defect_of(structure, r, entries, damping, given, defect)
            refined = given + solver.solve(defect)
            assert np.abs(refined - expected).max() <= allowed * np.abs(expected).max()


def test_an_indefinite_matrix_is_rejected():
    rng = np.random.default_rng(2)
    structure = random_structure(rng, 3, 12)
    entries = rng.normal(size=Structure(structure).jacobian_size)
    r = np.zeros(Structure(structure).rows)
    assert Solver(linear.dual(structure), structure, entries, r, -50.0).status == 1


def test_few_long_rows_use_the_dual_and_short_rows_the_normal_equations():
    from cardan.solvers import _dense_normal, _dual_normal, _sparse_normal

    rng = np.random.default_rng(3)
    long = random_structure(rng, 2, 120, most=100)
    short = random_structure(rng, 300, 100, most=2)
    small = random_structure(rng, 2, 10)
    assert linear.path_algebra(long).address == _dual_normal.LINEAR
    assert linear.path_algebra(short).address == _sparse_normal.LINEAR
    assert linear.path_algebra(small).address == _dense_normal.LINEAR
