"""Inertias of joints (armature): I of a coordinate c adds ½ I ċ² to the kinetic energy.

With g = ∂c/∂q as a row, ċ = g v and c̈ = g v̇ − γ:

    M' = M + Σ I gᵀg,   (M v̇ + Σ gᵀ I c̈) + Jᵀλ = Q.

The kernels keep M diagonal, and g as a row with the compliance 1/I (:mod:`cardan.dynamics.tables`).  This is the same
for all that is computed in Python, at one pose at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cardan.coordinates import formulations, rates
from cardan.system.state import FloatArray
from cardan.system.system import IntArray

if TYPE_CHECKING:
    from cardan.dynamics.equations import Equations


class JointInertias(NamedTuple):
    """Of each joint with an inertia the number of its equation, its row, and I [kg m² or kg]."""

    equations: IntArray
    rows: IntArray
    values: FloatArray


def mass_times(e: Equations, q: FloatArray, x: FloatArray, used: FloatArray | None = None) -> FloatArray:
    """M' x at a pose; x, shape (unknowns,) or (unknowns, n).  used: in place of M."""
    masses = (e.masses if used is None else used).ravel()
    found: FloatArray = masses * x if x.ndim == 1 else masses[:, None] * x
    if e.joint_inertias.values.size:
        g = e.problem.jacobian(q)[1][e.joint_inertias.rows]
        found = found + (g.T * e.joint_inertias.values) @ (g @ x)
    return found


def mass_root(e: Equations, q: FloatArray) -> FloatArray:
    """R with RᵀR = M' at a pose, shape (unknowns and joints with inertias, unknowns)."""
    root = np.diag(np.sqrt(e.masses.ravel()))
    if not e.joint_inertias.values.size:
        return root
    g = e.problem.jacobian(q)[1][e.joint_inertias.rows]
    return np.vstack([root, np.sqrt(e.joint_inertias.values)[:, None] * g])


def bias(e: Equations, time: float, q: FloatArray, v: FloatArray) -> FloatArray:
    """Σ gᵀ I γ, shape (unknowns,): M' v̇ less this is the force of inertia; zero without such joints."""
    if not e.joint_inertias.values.size:
        return np.zeros(v.size)
    g = e.problem.with_floats(e.floats_at(time)).jacobian(q)[1][e.joint_inertias.rows]
    gamma = rates.gamma_at(e.system, q, v, time)[e.joint_inertias.rows]
    found: FloatArray = g.T @ (e.joint_inertias.values * gamma)
    return found


def forces(e: Equations, times: FloatArray, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
    """M v̇ + Σ gᵀ I c̈, shape (times, bodies, 6); v and a have this shape."""
    found: FloatArray = e.masses * a
    if e.joint_inertias.values.size:
        for k, time in enumerate(times.tolist()):
            own = mass_times(e, q[k], a[k].ravel()) - bias(e, time, q[k], v[k].ravel())
            found[k] = own.reshape(found[k].shape)
    return found


def coordinate_rates(e: Equations, time: float, q: FloatArray, v: FloatArray) -> FloatArray:
    """ċ of the joints with inertias [rad/s or m/s]."""
    problem = e.problem.with_floats(e.floats_at(time)) if e.system.timed else e.problem
    found: FloatArray = problem.product(q, v)[e.joint_inertias.rows]
    if e.system.timed:
        found = found + formulations.time_derivative(e.system, q, time)[e.joint_inertias.rows]
    return found


def kinetic(e: Equations, time: float, q: FloatArray, v: FloatArray) -> float:
    """½ Σ I ċ² [J]."""
    if not e.joint_inertias.values.size:
        return 0.0
    return 0.5 * float(e.joint_inertias.values @ coordinate_rates(e, time, q, v) ** 2)
