"""The equations of motion in public: the mass matrix M, applied forces Q_e and velocity forces Q_v of bodies.

    M v̇ + C_qᵀλ = Q_e + Q_v

The integrators use centres of mass and principal axes, where M_s is diagonal but for inertias of joints:
M_s = diag + Σ I gᵀg, with g = ∂c/∂q of the joint coordinate c.  Here are the origins and axes of the bodies: with the
centre c and the principal axes R, both in body axes,

    v_s = T v,   T = [[I, −A c̃], [0, Rᵀ]],   v̇_s = T v̇ + s,   s = (A (ω × (ω × c)), 0),

so M = TᵀM_sT,  Q_e = TᵀQ_e,s  and  Q_v = Tᵀ(Q_v,s − M_s s),  with Q_v,s = (0, −ω × Jω) + Σ I gᵀγ_c.  In Euler
parameters v = B q̇, B = diag(I, 2G), and v̇ = B q̈, since Ġṗ = 0: the mass matrix is BᵀMB and a force is BᵀQ. [Haug1989]
The papers' Q_v = (0, 8 ĠᵀJĠp) has a part along p in addition, which the multiplier of pᵀp − 1 takes up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.analysis.linearise import COORDINATES, DENSE_ENTRIES, WIDTH, check_coordinates
from cardan.coordinates import formulations
from cardan.dynamics import build, joint_inertias
from cardan.dynamics.equations import Equations
from cardan.math import euler
from cardan.system import check
from cardan.system.drawing import Drawing
from cardan.system.state import FloatArray, State


@dataclass(frozen=True, slots=True, eq=False)
class MotionEquations:
    """M, Q_e and Q_v of a mechanism in one state:  M v̇ + C_qᵀλ = Q_e + Q_v.

    ``mass`` M, shape (6·bodies, 6·bodies): an array, or a scipy.sparse array where it is large.  Columns as of
    :class:`cardan.ConstraintEquations`: v = (ṙ of the origin in world axes, ω in body axes) of each body, in the order
    of ``bodies``.  ``applied`` Q_e: gravity and loads.  ``velocity`` Q_v: centrifugal and gyroscopic terms.  Forces are
    in world axes [N], torques about the origins of the bodies in body axes [N m].  Inertias of joints are in M and Q_v.
    ``coordinates``: "manifold", as above, or "euler_parameters": (r̈, p̈) of each body, seven columns; M is singular
    along p, where the rows pᵀp − 1 of the constraint equations hold.  ``notes``: what is assumed about masses.
    """

    mass: Any
    applied: FloatArray
    velocity: FloatArray
    bodies: tuple[str, ...]
    coordinates: str
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<MotionEquations of {len(self.bodies)} bodies in {self.applied.size} coordinates>"


def motion_equations(drawing: Drawing, given: State | None, sparse: bool | None, coordinates: Any) -> MotionEquations:
    """See :meth:`cardan.Mechanism.motion_equations`."""
    from scipy.sparse import block_diag  # type: ignore[import-untyped, unused-ignore]

    state = drawing.checked_state("motion_equations", given)
    check_coordinates("motion_equations", coordinates)
    here = drawing.at(state)
    e, notes = build.new_equations(here, follow=False) if here.system.has_contacts else build.equations_of(here)
    count = len(e.system.names)
    p = np.asarray(state.coordinates)[:, 3:]
    v = np.zeros((count, WIDTH)) if state.velocities is None else np.asarray(state.velocities)
    to_solver, shift = _to_solver(e, p, v)
    M_s, applied, velocity = _of_solver(e, state, np.einsum("bij,bj->bi", to_solver, v).ravel())
    if coordinates == "euler_parameters":
        back = np.zeros((count, WIDTH, COORDINATES[coordinates]))
        back[:, :3, :3], back[:, 3:, 3:] = np.eye(3), 2.0 * euler.G(p)
        to_solver = to_solver @ back
    velocity = velocity - M_s @ shift.ravel()
    T = block_diag(to_solver, format="csr")
    mass = (T.T @ M_s @ T).tocsr()
    is_sparse = mass.shape[0] ** 2 > DENSE_ENTRIES if sparse is None else check.flag(sparse, "sparse")
    names = e.system.names
    forms = mass if is_sparse else mass.toarray(), T.T @ applied, T.T @ velocity
    return MotionEquations(*forms, names, coordinates, tuple(notes))


def _to_solver(e: Equations, p: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """T of every body, shape (bodies, 6, 6), and s, shape (bodies, 6), of the velocities v of the origins."""
    centers, axes = e.system.reference_points, e.system.reference_axes
    A = np.asarray(euler.matrix(p)).reshape(-1, 3, 3)
    found = np.zeros((len(p), WIDTH, WIDTH))
    found[:, :3, :3] = np.eye(3)
    found[:, :3, 3:] = -A @ euler.tilde(centers)
    found[:, 3:, 3:] = np.eye(3) if axes is None else np.swapaxes(euler.matrix(axes), 1, 2)
    shift = np.zeros((len(p), WIDTH))
    w = v[:, 3:]
    shift[:, :3] = np.einsum("bij,bj->bi", A, np.cross(w, np.cross(w, centers)))
    return found, shift


def _of_solver(e: Equations, state: State, v: FloatArray) -> tuple[Any, FloatArray, FloatArray]:
    """M_s in compressed rows, Q_e,s and Q_v,s, for velocities of the centres of mass in principal axes."""
    from scipy.sparse import csr_array, diags_array  # type: ignore[import-untyped, unused-ignore]

    near = np.array([state.angles.get(key, 0.0) for key in e.system.counted_angles])
    q = formulations.to_reference(e.system, state.coordinates, near)
    applied = np.zeros_like(e.masses)
    applied[:, :3] = e.masses[:, :3] * e.gravity
    forces = applied.ravel()
    if e.forces is not None:
        forces = forces + e.forces.total(state.time, q, v)
    velocity = np.zeros_like(e.masses)
    w = v.reshape(-1, WIDTH)[:, 3:]
    velocity[:, 3:] = -np.cross(w, e.masses[:, 3:] * w)
    mass = csr_array(diags_array(e.masses.ravel()))
    if e.inertias:
        g = csr_array(e.problem.with_floats(e.floats_at(state.time)).jacobian(q)[1][e.joint_inertias.rows])
        mass = mass + g.T @ (e.joint_inertias.values[:, None] * g)
    return mass, forces, velocity.ravel() + joint_inertias.bias(e, state.time, q, v)
