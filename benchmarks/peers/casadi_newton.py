"""CasADi with IPOPT: r and p of every body such that all joint equations and |p|² = 1 hold, by short Newton steps.

Timed: the call of the solver.  Not timed: building the equations, their derivatives and the solver, once per model.
The Hessian of the Lagrangian is replaced by a small multiple of the identity, so that a step is the shortest that
solves the linearised equations.  With CasADi's own Hessian IPOPT needs 40 s for the chain.  IPOPT rejects problems with
more equations than unknowns; for those (redundant equations) the sum of squares is minimised, with JᵀJ as Hessian.
"""

from __future__ import annotations

import time

import casadi as ca

from peers import CHAINS, SMALL, Answer, coordinates, once_per_model
from peers import version as _version
from peers.casadi import OPTIONS, equations, poses
from problems import Model, Pose

name = "CasADi IPOPT, constraints"
tolerance = "1e-10 on the equations"
problems = SMALL + CHAINS

WEIGHT = 1e-3  # factor of the identity that replaces the Hessian


def available() -> str | None:
    return _version("casadi", "casadi")


@once_per_model
def _solver(model: Model) -> tuple[ca.Function, bool]:
    """The solver, and whether the equations are its constraints."""
    q, rows = equations(model)
    constrained = rows.numel() <= q.numel()
    weight = ca.SX.sym("weight")
    if constrained:
        problem = {"x": q, "f": 0, "g": rows}
        hessian = WEIGHT * ca.SX.eye(q.numel())
        multipliers = ca.SX.sym("multipliers", rows.numel())
    else:
        problem = {"x": q, "f": 0.5 * ca.sumsqr(rows)}
        J = ca.jacobian(rows, q)
        hessian = weight * (J.T @ J)
        multipliers = ca.SX.sym("multipliers", 0)
    given = ca.Function(
        "hessian",
        [q, ca.SX.sym("parameters", 0), weight, multipliers],
        [ca.triu(hessian)],
        ["x", "p", "lam_f", "lam_g"],
        ["triu_hess_gamma_x_x"],
    )
    return ca.nlpsol("assemble", "ipopt", problem, {**OPTIONS, "hess_lag": given}), constrained


def assemble(model: Model, start: dict[int, Pose]) -> Answer:
    solver, constrained = _solver(model)
    q = coordinates(start)
    bounds = {"lbg": 0.0, "ubg": 0.0} if constrained else {}
    began = time.perf_counter()
    found = solver(x0=q, **bounds)
    seconds = time.perf_counter() - began
    return Answer(poses(found["x"].full().ravel()), seconds)
