"""The equations of motion in Euler parameters, as the papers write them: dense, for comparison.

    M_p q̈ + C_qᵀλ = Q_e + Q_v,   C_q q̈ = −C_tt − (C_q q̇)_q q̇ − 2 C_qt q̇,   q = (r, p) of every body

with M_p = diag(m I, 4 GᵀJG), Q_v = (0, 8 ĠᵀJĠp) and one row pᵀp̈ = −ṗᵀṗ per body.  M_p is singular along p, and the
whole matrix is regular because of these rows.  [Haug1989]  The accelerations are those of the manifold:
ω̇ = 2 G p̈, since Ġṗ = 0.  So are the multipliers of the joints where they are unique.
"""

from __future__ import annotations

import numpy as np

from cardan.coordinates import formulations
from cardan.dynamics.equations import Equations
from cardan.dynamics.tables import WIDTH
from cardan.math import euler
from cardan.system import tables as layout
from cardan.system.state import FloatArray

FORM = "euler_parameters"


def mass_matrix(masses: FloatArray, p: FloatArray) -> FloatArray:
    """M_p of one body, shape (7, 7); masses, shape (6,): m three times, then the principal moments of inertia."""
    G = euler.G(p)
    found = np.zeros((layout.POSE, layout.POSE))
    found[:3, :3] = np.diag(masses[:3])
    found[3:, 3:] = 4.0 * G.T @ np.diag(masses[3:]) @ G
    return found


def velocity_force(masses: FloatArray, p: FloatArray, dp: FloatArray) -> FloatArray:
    """Q_v of one body, shape (7,)."""
    dG = euler.G(dp)
    found = np.zeros(layout.POSE)
    found[3:] = 8.0 * dG.T @ (masses[3:] * (dG @ p))
    return found


def accelerations(
    equations: Equations, q: FloatArray, v: FloatArray, time: float = 0.0, forces: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """v̇, shape (6·bodies,), and λ of the equations of the joints (of least norm), in solver coordinates q and v.

    time [s]: of the drivers.  forces, shape (bodies, 6): of the loads, in world at the centre of mass, and torques in
    principal axes.
    """
    system = equations.system
    count = len(system.names)
    size = layout.POSE * count
    p = q[:size].reshape(count, layout.POSE)[:, 3:]
    rates = v.reshape(count, WIDTH)
    dp = euler.rate_from_body(p, rates[:, 3:])
    loads = np.zeros((count, WIDTH)) if forces is None else forces
    right = np.zeros(size)
    mass = np.zeros((size, size))
    for b, row in enumerate(equations.masses):
        own = slice(layout.POSE * b, layout.POSE * (b + 1))
        mass[own, own] = mass_matrix(row, p[b])
        right[own] = velocity_force(row, p[b], dp[b])
        right[own][:3] += row[:3] * equations.gravity + loads[b, :3]
        right[own][3:] += 2.0 * euler.G(p[b]).T @ loads[b, 3:]
    problem = formulations.motion_problem(system, FORM)
    if system.signals or system.timed:
        problem = problem.with_floats(equations.floats_at(time))
    _, jacobian = problem.jacobian(q)
    gamma = formulations.gamma(system, FORM, q, np.concatenate([rates[:, :3], dp], axis=1).ravel(), problem.floats)
    kept = np.concatenate([equations.equations, np.arange(problem.rows - count, problem.rows)])  # the rest are guards
    J, c = jacobian[kept], gamma[kept]
    for (_, signal), row in zip(system.signals, equations.drivers[1::2], strict=True):
        c[row] += signal.jet(time).acceleration
    compliances = np.concatenate([equations.compliances, np.zeros(count)])  # of inertias of joints
    matrix = np.block([[mass, J.T], [J, -np.diag(compliances)]])
    found, *_ = np.linalg.lstsq(matrix, np.concatenate([right, c]), rcond=1e-13)
    second = found[:size].reshape(count, layout.POSE)
    spin = 2.0 * np.einsum("bij,bj->bi", euler.G(p), second[:, 3:])
    return np.concatenate([second[:, :3], spin], axis=1).ravel(), found[size : size + equations.equations.size]
