"""The errata of [Liu2013]: each printed formula or value fails, and its correction holds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cardan.coordinates import formulations
from cardan.math import euler
from layers import sampled
from papers import liu2013, table2
from papers.liu2013 import EXAMPLES, WORKED_START, Settings

DIGITS = 5e-5  # four digits are printed

PRINTED_22 = np.array(
    [
        [1.0000, -1.0000, -1.0000, 1.0000],
        [6.9282, 1.1547, 0.0, -5.7735],
        [-1.7889, -2.6833, -3.5777, -4.4721],
        [2.8284, 1.4142, -2.8284, -4.2426],
    ]
)
PRINTED_Q1 = np.array([0.3750, -0.6250, -0.8750, 0.1250])
PRINTED_A1 = np.array([[-0.25, 1.0, -0.8125], [1.1875, 0.5, 0.25], [0.5, -0.6875, -1.0]])


def matrix_22(movable, equations=None):
    """Peng's Jacobian at q₀, with the normalisation row first."""
    system = liu2013.system(1, movable, equations)
    q = liu2013.coordinates(WORKED_START)[0]
    J = formulations.problem(system, "virtual_rotation").jacobian(q)[1]
    return np.roll(J[:, 3:], 1, axis=0)


# -- the worked iteration ----------------------------------------------------------------------------------------------


@pytest.mark.nojit
def test_the_worked_iteration_agrees_with_the_printed_digits():
    worked = liu2013.worked_iteration()
    assert np.abs(worked.jacobian - PRINTED_22).max() <= DIGITS
    assert np.abs(worked.q_1 - PRINTED_Q1).max() <= DIGITS
    assert np.abs(worked.matrix_0 - [[0, 0, -1], [1, 0, 0], [0, -1, 0]]).max() <= DIGITS
    assert np.abs(worked.matrix_1 - PRINTED_A1).max() <= DIGITS
    assert np.abs(worked.matrix_1 @ worked.matrix_1.T - np.eye(3)).max() > 0.5  # "which breaks Eq. 1"
    text = worked.text()
    assert "6.9282    1.1547    0.0000   -5.7735" in text
    assert "q₁ =   0.3750   -0.6250   -0.8750    0.1250" in text


def test_peng_fails_from_there_and_the_proposed_formula_converges_in_about_ten():
    peng = liu2013.algorithm_1(1, 1, "virtual_rotation", WORKED_START)
    proposed = liu2013.algorithm_1(1, 1, "euler_parameters", WORKED_START)
    assert not peng.ok[0]
    assert proposed.ok[0]
    assert 8 <= proposed.iterations[0] <= 12


def test_v1_is_over_root_three_where_root_five_is_printed():
    first = replace(EXAMPLES[1][0], u=tuple(np.ones(3) / math.sqrt(5)))
    printed = matrix_22(1, (first, *EXAMPLES[1][1:]))
    assert np.abs(printed[1] - PRINTED_22[1]).max() > 1.0
    assert np.abs(printed[1] * math.sqrt(5 / 3) - PRINTED_22[1]).max() <= DIGITS
    assert np.abs(matrix_22(1) - PRINTED_22).max() <= DIGITS


def test_the_worked_iteration_has_body_1_movable_although_the_text_says_p2():
    assert np.abs(matrix_22(1) - PRINTED_22).max() <= DIGITS
    assert np.abs(matrix_22(2)[1:] - PRINTED_22[1:]).max() > 1.0


def test_the_first_row_is_twice_q0_and_one_edition_has_a_wrong_sign():
    assert np.array_equal(matrix_22(1)[0], 2 * np.array(WORKED_START))
    misprinted = np.array([1.0, -1.0, 1.0, 1.0])
    # the misprinted row does not give the printed q₁
    found = liu2013.problem(1, 1, "virtual_rotation")
    f = np.roll(found.residual(liu2013.coordinates(WORKED_START)[0]), 1)
    for row, off in ((PRINTED_22[0], 0.0), (misprinted, 0.1)):
        J = np.vstack([row, matrix_22(1)[1:]])
        assert (np.abs(WORKED_START - np.linalg.solve(J, f) - PRINTED_Q1).max() > DIGITS) == (off > 0.0)


@pytest.mark.parametrize("formulation", ["manifold", "euler_angles", "euler_parameters", "virtual_rotation"])
def test_a_trace_equals_the_run_of_algorithm_1(formulation):
    """Also from starts that are not unit quaternions, which are normalised if p is a rotation."""
    starts = table2.starts("box", -1.0, 40, 0, 4)
    counted = liu2013.algorithm_1(4, 2, formulation, starts)
    for k, start in enumerate(starts):
        iterates, norms = liu2013.trace(4, 2, formulation, start)
        assert len(iterates) == len(norms) == counted.iterations[k] + 1
        assert norms[-1] == counted.norms[k] or not np.isfinite(norms[-1])
        assert counted.ok[k] == (norms[-1] <= liu2013.EPSILON and len(norms) <= liu2013.N)


def test_algorithm_1_must_run_while_the_norm_exceeds_epsilon():
    """With the printed condition, ‖Φ‖ < ε, it takes no step from q₀."""
    norms = liu2013.trace(1, 1, "euler_parameters", WORKED_START)[1]
    assert not norms[0] < liu2013.EPSILON
    assert len(norms) > 2
    assert norms[-1] <= liu2013.EPSILON


# -- Table 2 -----------------------------------------------------------------------------------------------------------

SAMPLES = 4000


def row(number, region, formula, *, low=None, settings=None, samples=SAMPLES, seed=1):
    """One row of the table, compared with the printed values."""
    experiment = table2.EXPERIMENTS[number]
    low = experiment.box if low is None else low
    p = table2.starts(region, low, samples, seed, number)
    return table2._row(experiment, region, low, formula, p, settings or Settings(), seed, None, None)


def test_n_100_reproduces_pengs_counts_and_200_does_not():
    hundred = row(0, "angles", "virtual_rotation")
    twice = row(0, "angles", "virtual_rotation", settings=Settings(iterations=200))
    assert abs(hundred.deviation) < 3.0
    assert twice.deviation > 5.0
    assert twice.converged >= 0.999 * SAMPLES


@pytest.mark.parametrize(("number", "own", "other"), [(3, "Exam. 3", "Exam. 4"), (4, "Exam. 4", "Exam. 3")])
def test_rows_3_and_4_are_exchanged(number, own, other):
    for formula in ("euler_parameters", "virtual_rotation"):
        found = row(number, "box", formula)
        share = found.converged / SAMPLES
        assert abs(found.deviation) < 3.0
        assert abs(share - table2.PAPER[other, "box", formula][0] / 1e4) < 0.03
        assert abs(share - table2.PAPER[own, "box", formula][0] / 1e4) > 0.5


@pytest.mark.parametrize(("number", "formula"), [(0, "virtual_rotation"), (1, "euler_parameters")])
def test_the_box_of_example_1_is_from_zero_to_one(number, formula):
    assert abs(row(number, "box", formula, low=0.0).deviation) < 3.0
    assert abs(row(number, "box", formula, low=-1.0).deviation) > 3.0


@pytest.mark.parametrize("number", [3, 4])
def test_the_boxes_of_examples_3_and_4_are_from_minus_one_to_one(number):
    for formula in ("euler_parameters", "virtual_rotation"):
        assert abs(row(number, "box", formula, low=-1.0).deviation) < 3.0
    assert any(abs(row(number, "box", f, low=0.0).deviation) > 3.0 for f in ("euler_parameters", "virtual_rotation"))


@pytest.mark.slow
@sampled("number", range(len(table2.EXPERIMENTS)), 2)
def test_rows_are_reproducible_exactly_where_they_are_marked_so(number):
    experiment = table2.EXPERIMENTS[number]
    for region in ("box", "angles"):
        for formula in ("euler_parameters", "virtual_rotation", table2.PRINTED_22):
            if table2.key_of(experiment, region, formula) is not None:
                found = row(number, region, formula, seed=2)
                assert (abs(found.deviation) < 3.0) == found.reproducible, (experiment.printed, found)


@pytest.mark.parametrize("number", [3, 4])
def test_the_hyper_sphere_is_of_random_angles_and_not_uniform(number):
    experiment = table2.EXPERIMENTS[number]
    for formula in ("euler_parameters", "virtual_rotation"):
        assert abs(row(number, "angles", formula).deviation) < 3.0
        printed = table2.PAPER[experiment.printed, "sphere", formula][0] / 1e4
        uniform = row(number, "sphere", formula).converged / SAMPLES
        assert abs(uniform - printed) > 3.0 * math.sqrt(printed * (1 - printed) * (1 / SAMPLES + 1e-4))


@pytest.mark.slow
def test_the_counts_of_example_1_body_1_are_those_of_22_as_printed_and_not_of_6b():
    for region in ("box", "angles"):
        printed = row(1, region, table2.PRINTED_22)
        assert abs(printed.deviation) < 3.0
        assert abs(printed.mean_iterations - printed.paper[1]) < 1.5
        assert row(1, region, "virtual_rotation").converged > 2 * printed.converged


@pytest.mark.slow
def test_mean_iterations_of_the_proposed_formula_are_about_a_half_lower():
    for number, region in ((0, "box"), (0, "angles"), (1, "box"), (1, "angles"), (3, "box"), (4, "box")):
        found = row(number, region, "euler_parameters")
        assert 0.1 < found.paper[1] - found.mean_iterations < 0.7
    for number, region in ((0, "box"), (0, "angles"), (3, "box"), (4, "box")):
        found = row(number, region, "virtual_rotation")
        assert abs(found.paper[1] - found.mean_iterations) < 0.7


def test_example_2_has_a_singular_jacobian_everywhere():
    """The row 4|p|²pᵀ of its first distance, |Q₁|² − 1 = |p|⁴ − 1, is parallel to that of pᵀp − 1."""
    rng = np.random.default_rng(6)
    problem = liu2013.problem(2, 2, "euler_parameters")
    for p in rng.uniform(-1, 1, (50, 4)):
        f, J = problem.jacobian(liu2013.coordinates(p)[0])
        assert f[0] == pytest.approx((p @ p) ** 2 - 1)
        assert np.abs(J[0, 3:] - 4 * (p @ p) * p).max() <= 1e-14
        assert np.abs(J[3, 3:] - 2 * p).max() <= 1e-15
        assert np.linalg.matrix_rank(J) <= 3
        unit = p / np.linalg.norm(p)
        assert abs(problem.residual(liu2013.coordinates(unit)[0])[0]) <= 1e-15


def test_example_2_depends_on_the_test_for_a_singular_matrix():
    """With J⁺ in every step the proposed formula converges from all starts; with LU it does not."""
    starts = table2.starts("sphere", -1.0, 2000, 3, 2)
    pseudo = liu2013.algorithm_1(2, 2, "euler_parameters", starts, Settings(inverse="pseudo"))
    lu = liu2013.algorithm_1(2, 2, "euler_parameters", starts, Settings(inverse="lu"))
    assert pseudo.count == 2000
    assert lu.count < 2000


def test_on_the_manifold_plain_newton_converges_from_more_starts_or_as_many():
    counts = {}
    for number, example in ((1, 1), (2, 2), (3, 3), (4, 4)):
        for formula in ("manifold", "euler_parameters"):
            counts[example, formula] = row(number, "sphere", formula, settings=Settings(epsilon=1e-13)).converged
    share = {key: value / SAMPLES for key, value in counts.items()}
    assert share[1, "manifold"] > 0.99 > 0.35 > share[1, "euler_parameters"]
    assert share[2, "manifold"] == 1.0
    assert abs(share[3, "manifold"] - 0.8067) < 0.025
    assert abs(share[4, "manifold"] - 0.7713) < 0.025
    assert share[4, "euler_parameters"] < 0.2


# -- formulas ----------------------------------------------------------------------------------------------------------


def difference(f, q, h=1e-5):
    """Jacobian of f by central differences."""
    return np.column_stack([(f(q + h * e) - f(q - h * e)) / (2 * h) for e in np.eye(len(q))])


class Tree:
    """Ground, body 1 on a cylindrical joint (θ, d), and body 2 on body 1 by a ball joint with Euler parameters.

    Equations (9), (10) and (12) to (16) in the symbols of the paper; q = (θ, d, p).
    """

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.C01, self.C10, self.C12, self.C21 = (Rotation.random(random_state=rng).as_matrix() for _ in range(4))
        self.s01, self.s10, self.s12, self.s21 = rng.normal(size=(4, 3))
        self.q = np.array([*rng.normal(size=2), *rng.normal(size=4)])
        self.P, self.Q, self.v1, self.v2 = rng.normal(size=(4, 3))

    @staticmethod
    def joint(q):
        c, s = np.cos(q[0]), np.sin(q[0])
        return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]), np.array([0, 0, q[1]]), euler.matrix(q[2:])

    def poses(self, q):
        """r₁, A₁, r₂, A₂."""
        A01, d01, A12 = self.joint(q)
        A1 = self.C01 @ A01 @ self.C10.T
        r1 = self.s01 + self.C01 @ d01 - A1 @ self.s10
        A2 = A1 @ self.C12 @ A12 @ self.C21.T
        return r1, A1, r1 + A1 @ self.s12 - A2 @ self.s21, A2

    def J(self, body, u):
        """The auxiliary matrix J_i(u) with δA_i u = J_i(u) δq, by recursion (13)."""
        if body == 0:
            return np.zeros((3, 6))
        A12 = self.joint(self.q)[2]
        if body == 1:
            w, s, c = self.C10.T @ u, np.sin(self.q[0]), np.cos(self.q[0])
            rotated = np.array([-s * w[0] - c * w[1], c * w[0] - s * w[1], 0.0])
            return np.column_stack([self.C01 @ rotated, np.zeros((3, 5))])
        own = self.poses(self.q)[1] @ self.C12 @ euler.K(self.C21.T @ u, self.q[2:])
        return self.J(1, self.C12 @ A12 @ self.C21.T @ u) + np.column_stack([np.zeros((3, 2)), own])

    def Jr(self, body, *, printed=False):
        """J_i^r with δr_i = J_i^r δq, by (16); printed: with J_i in the second term, as in the paper."""
        if body == 0:
            return np.zeros((3, 6))
        if body == 1:
            D = np.zeros((3, 6))
            D[2, 1] = 1.0
            return self.J(1 if printed else 0, self.s01) + self.C01 @ D - self.J(1, self.s10)
        return self.Jr(1, printed=printed) + self.J(2 if printed else 1, self.s12) - self.J(2, self.s21)


@pytest.mark.parametrize("seed", range(3))
def test_the_recursion_of_j_is_the_derivative_of_a_rotated_vector(seed):
    tree = Tree(seed)
    for body, at in ((1, 1), (2, 3)):
        derivative = difference(lambda q, at=at: tree.poses(q)[at] @ tree.Q, tree.q)
        assert np.abs(tree.J(body, tree.Q) - derivative).max() <= 1e-8


@pytest.mark.parametrize("seed", range(3))
def test_in_equation_16_the_second_term_is_that_of_the_previous_body(seed):
    """s_{i−1,i} is fixed on body i − 1."""
    tree = Tree(seed)
    for body, at in ((1, 0), (2, 2)):
        derivative = difference(lambda q, at=at: tree.poses(q)[at], tree.q)
        assert np.abs(tree.Jr(body) - derivative).max() <= 1e-8
        assert np.abs(tree.Jr(body, printed=True) - derivative).max() > 0.1


@pytest.mark.parametrize("seed", range(3))
def test_in_equation_17_each_vector_has_the_matrix_of_its_own_body(seed):
    """f = v₁·v₂ with v₁ on body 1 and v₂ on body 2; printed with J_i for both."""
    tree = Tree(seed)

    def f(q):
        _, A1, _, A2 = tree.poses(q)
        return np.array([(A1 @ tree.v1) @ (A2 @ tree.v2)])

    _, A1, _, A2 = tree.poses(tree.q)
    derivative = difference(f, tree.q)
    correct = (A2 @ tree.v2) @ tree.J(1, tree.v1) + (A1 @ tree.v1) @ tree.J(2, tree.v2)
    printed = (A2 @ tree.v2) @ tree.J(1, tree.v1) + (A1 @ tree.v1) @ tree.J(1, tree.v2)
    assert np.abs(correct - derivative).max() <= 1e-8
    assert np.abs(printed - derivative).max() > 0.1


@pytest.mark.parametrize("seed", range(3))
def test_in_equations_20b_and_20c_j_prime_is_j_r_and_the_point_on_body_j_is_q(seed):
    tree = Tree(seed)

    def parts(q):
        r1, A1, r2, A2 = tree.poses(q)
        return A1 @ tree.v1, r2 + A2 @ tree.Q - r1 - A1 @ tree.P

    v, d = parts(tree.q)
    on_q = tree.Jr(2) + tree.J(2, tree.Q) - tree.Jr(1) - tree.J(1, tree.P)
    on_p = tree.Jr(2) + tree.J(2, tree.P) - tree.Jr(1) - tree.J(1, tree.P)
    no_r = tree.J(2, tree.Q) - tree.J(1, tree.P)
    dot_2 = difference(lambda q: np.array([np.dot(*parts(q))]), tree.q)
    distance = difference(lambda q: np.array([np.sum(parts(q)[1] ** 2)]), tree.q)
    for inner, holds in ((on_q, True), (on_p, False), (no_r, False)):
        assert (np.abs(d @ tree.J(1, tree.v1) + v @ inner - dot_2).max() <= 1e-7) == holds
        assert (np.abs(2 * d @ inner - distance).max() <= 1e-7) == holds


@pytest.mark.parametrize("seed", range(3))
def test_in_equations_19g_and_19k_the_point_on_body_j_is_q(seed):
    rng = np.random.default_rng(seed)
    P, Q, v = rng.normal(size=(3, 3))
    p = rng.normal(size=4)
    d = euler.matrix(p) @ Q - P
    dot_2 = difference(lambda p: np.array([v @ (euler.matrix(p) @ Q - P)]), p)
    distance = difference(lambda p: np.array([np.sum((euler.matrix(p) @ Q - P) ** 2)]), p)
    for point, holds in ((Q, True), (P, False)):
        assert (np.abs(v @ euler.K(point, p) - dot_2).max() <= 1e-7) == holds
        assert (np.abs(2 * d @ euler.K(point, p) - distance).max() <= 1e-7) == holds


def test_the_second_skew_term_of_k_is_that_of_the_product():
    """One edition prints −ẽũ twice; the second is −tilde(ẽu).  Other tests check the rest of K."""
    rng = np.random.default_rng(7)
    u, p = rng.normal(size=3), rng.normal(size=4)
    e0, e = p[0], p[1:]
    derivative = difference(lambda p: euler.matrix(p) @ u, p)
    head = 2 * (euler.tilde(e) + e0 * np.eye(3)) @ u
    common = (e @ u) * np.eye(3) + np.outer(e, u) - euler.tilde(e) @ euler.tilde(u) - 2 * e0 * euler.tilde(u)
    correct = np.column_stack([head, common - euler.tilde(euler.tilde(e) @ u)])
    printed = np.column_stack([head, common - euler.tilde(e) @ euler.tilde(u)])
    assert np.abs(correct - derivative).max() <= 1e-7
    assert np.abs(printed - derivative).max() > 0.1


def test_virtual_rotations_are_exactly_right_on_the_manifold():
    """K(u, p)·½Gᵀ = −A ũ for every p: so a virtual rotation is the derivative along p ⊗ exp(δθ/2)."""
    rng = np.random.default_rng(8)
    for _ in range(10):
        u, p = rng.normal(size=3), rng.normal(size=4)
        left = euler.K(u, p) @ euler.G(p).T / 2
        assert np.abs(left + euler.matrix(p) @ euler.tilde(u)).max() <= 1e-13 * max(1.0, p @ p)
