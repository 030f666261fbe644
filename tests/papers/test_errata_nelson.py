"""The errata of [NelsonCohen1998] and [Nelson1998]: each printed formula fails, and its correction holds."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations
from cardan.math import euler
from cardan.solvers import methods
from cardan.solvers.problem import Job
from mechanisms import BENCHMARKS

PRINTED_K = 0.1


def printed_16(q, v):
    """The matrix (16) as printed, columns for (q₀, q_x, q_y, q_z)."""
    q0, qx, qy, qz = q
    vx, vy, vz = v
    along = qx * vx + qy * vy + qz * vz
    return np.array(
        [
            [qy * vz - qz * vy, along, q0 * vz + qx * vy - qy * vx, -qz * vx - q0 * vy + qx * vz],
            [q0 * vy + qz * vx - qx * vz, -qx * vy - q0 * vz + qy * vx, along, -qz * vy + q0 * vx + qy * vz],
            [q0 * vz + qx * vy - qy * vx, q0 * vy + qz * vx - qx * vz, -qy * vz - q0 * vx + qz * vy, along],
        ]
    )


def rotated(q, v):
    """q v q*, as in the paper above (16)."""
    q0, e = q[0], q[1:]
    return (q0 * q0 - e @ e) * v + 2 * q0 * np.cross(e, v) + 2 * e * (e @ v)


@pytest.mark.parametrize("seed", range(3))
def test_equation_16_lacks_a_factor_two_and_a_term_of_its_first_entry(seed):
    rng = np.random.default_rng(seed)
    q, v = rng.normal(size=4), rng.normal(size=3)
    h = 1e-6
    derivative = np.column_stack([(rotated(q + h * e, v) - rotated(q - h * e, v)) / (2 * h) for e in np.eye(4)])
    printed = printed_16(q, v)
    assert np.abs(printed - derivative).max() > 0.1
    assert np.abs(2 * printed - derivative).max() > 0.1
    printed[0, 0] += q[0] * v[0]
    assert np.abs(2 * printed - derivative).max() <= 1e-8
    assert np.abs(2 * printed - euler.K(v, q)).max() <= 1e-14


def test_the_unit_norm_has_the_square_of_q0_too():
    """A third of a turn, q₀ = ½, is a rotation, but violates the printed ‖q₀ + q_x² + q_y² + q_z²‖ = 1."""
    q = np.full(4, 0.5)
    assert np.abs(euler.matrix(q) @ euler.matrix(q).T - np.eye(3)).max() <= 1e-15
    assert q @ q == 1.0
    assert abs(q[0] + q[1:] @ q[1:] - 1.0) == 0.25


# -- the k of the spring step ------------------------------------------------------------------------------------------


def jacobian_at_origins(system, formulation, coordinates):
    """Unscaled J in metres and radians, with respect to the bodies' origins as in the papers.

    Solvers use reference points r + A c instead of r: δ(r + A c) = δr − A c̃ δθ, or δr + K(c, p) δp.
    """
    J = formulations.problem(system, formulation).jacobian(formulations.to_reference(system, coordinates))[1]
    width = formulations.REGISTRY[formulation].width
    for b, (c, p) in enumerate(zip(system.reference_points, coordinates[:, 3:], strict=True)):
        rotation_part = -euler.matrix(p) @ euler.tilde(c) if width == 6 else euler.K(c, p)
        J[:, width * b + 3 : width * (b + 1)] += J[:, width * b : width * b + 3] @ rotation_part
    return J


def bound(unit, formulation):
    """2/λ_max(C_qᵀC_q) of the assembled RSUR four-bar."""
    built = BENCHMARKS["RSUR"]().build(unit=unit)
    state = built.mechanism.state.moved(built.drawn)
    return 2.0 / np.linalg.norm(jacobian_at_origins(built.mechanism.system, formulation, state.coordinates), 2) ** 2


@pytest.mark.parametrize(
    ("unit", "formulation", "expected"),
    [(1.0, "manifold", 0.09), (1.0, "euler_parameters", 0.023), (10.0, "manifold", 0.001)],
)
def test_k_is_not_safe_in_general(unit, formulation, expected):
    """Stable "for the examples encountered so far"; for the papers' own four-bar it exceeds the bound."""
    found = bound(unit, formulation)
    assert found < PRINTED_K
    assert found == pytest.approx(expected, rel=0.05)


def test_equation_15_as_printed_diverges_in_quaternions():
    """The start is an assembled four-bar disturbed by 0.01."""
    built = BENCHMARKS["RSUR"]().build()
    system = built.mechanism.system
    problem = formulations.problem(system, "euler_parameters")
    rng = np.random.default_rng(0)
    start = built.mechanism.state.moved(built.drawn).coordinates
    start = start + 0.01 * rng.normal(size=start.shape)

    def sizes(k):
        q, found = start.copy(), []
        for _ in range(30):
            C = problem.residual(formulations.to_reference(system, q))
            found.append(float(np.linalg.norm(C)))
            q += -k * (jacobian_at_origins(system, "euler_parameters", q).T @ C).reshape(q.shape)
            if not found[-1] < 1e6:
                break
        return found

    assert sizes(PRINTED_K)[-1] > 1e6
    within = sizes(0.5 * bound(1.0, "euler_parameters"))
    assert within == sorted(within, reverse=True) and within[-1] < within[0]


def geared(ratio):
    """Two wheels with a gear, which is a stiff row: λ_max is about ratio²."""
    m = cd.Mechanism()
    hinges = []
    for k, x in enumerate((0.0, 3.0)):
        wheel = m.body(f"wheel_{k + 1}", position=(x, 0.2, 0.1), orientation=(np.cos(0.1 + k), 0, 0, np.sin(0.1 + k)))
        hinges.append(m.revolute(f"hinge_{k + 1}", m.ground.frame((x, 0, 0), x=(1, 0, 0)), wheel.frame(x=(1, 0, 0))))
    m.gear("mesh", *hinges, ratio=ratio)
    return m


@pytest.mark.parametrize("gain", [methods.SPRING_GAIN, methods.FULL_GAIN])
@pytest.mark.parametrize("ratio", [-2.0, 40.0])
def test_the_step_of_the_library_is_clipped_to_the_bound(gain, ratio):
    """|C| decreases at every step, even if k = 0.1 is unstable; λ_max by NumPy."""
    m = geared(ratio)
    system, length = m.system, m.system.judged_length
    plain = formulations.problem(system, "manifold")
    problem = formulations.with_springs(system, "manifold", plain, length)
    rows, scales = problem.rows, problem.springs
    q = formulations.to_reference(system, m.state.coordinates)
    job = Job(problem, methods.load("_gradient"), {"step_gain": gain})
    job.start(0.0)
    costs, bounds = [], []
    for _ in range(60):
        r, J = problem.jacobian(q)
        scaled = scales[:rows, None] * J * scales[rows : rows + problem.unknowns]
        costs.append(0.5 * float((scales[:rows] * r) @ (scales[:rows] * r)))
        bounds.append(2.0 / np.linalg.norm(scaled, 2) ** 2)
        job.iterate(q, 1)
    assert (np.diff(costs) <= 0.0).all()
    assert costs[-1] < 0.5 * costs[0]
    assert (np.array(bounds) < PRINTED_K).all() == (ratio == 40.0)


def test_without_clipping_the_iteration_diverges():
    m = geared(40.0)
    problem = formulations.problem(m.system, "manifold")
    q = formulations.to_reference(m.system, m.state.coordinates)
    rows, columns = problem.scales[: problem.rows], problem.scales[problem.rows :]
    sizes = []
    for _ in range(20):
        r, J = problem.jacobian(q)
        sizes.append(float(np.linalg.norm(rows * r)))
        q = problem.retract(q, -PRINTED_K * columns * ((rows[:, None] * J * columns).T @ (rows * r)))
    assert sizes[-1] > 3.0 * sizes[0]
