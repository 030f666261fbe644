"""CasADi with IPOPT: r and p of every body that minimise the sum of squares of all joint equations and of |p|² − 1.

Timed: the call of the solver.  Not timed: building the equations, their derivatives and the solver, once per model.
The Hessian is exact, which is CasADi's default.
"""

from __future__ import annotations

import time

import casadi as ca
import numpy as np

from peers import CHAINS, SMALL, Answer, across, coordinates, once_per_model
from peers import version as _version
from problems import Joint, Model, Pose, matrix

name = "CasADi IPOPT, least squares"
tolerance = "1e-10 on the gradient"
problems = SMALL + CHAINS

SECONDS = 20.0  # for one assembly
OPTIONS = {
    "print_time": False,
    "ipopt": {
        "print_level": 0,
        "sb": "yes",
        "tol": 1e-10,
        "constr_viol_tol": 1e-10,
        "acceptable_iter": 0,
        "max_cpu_time": SECONDS,
    },
}


def available() -> str | None:
    return _version("casadi", "casadi")


def turned(p: ca.SX, v: np.ndarray) -> ca.SX:
    """A(p) v, a unit quaternion's rotation."""
    w, x, y, z = ca.vertsplit(p)
    u = ca.vertcat(x, y, z)
    v = ca.DM(v)
    return v + 2 * ca.cross(u, ca.cross(u, v) + w * v)


def equations(model: Model) -> tuple[ca.SX, ca.SX]:
    """Unknowns q and residuals: joints first, then |p|² − 1 of every body."""
    bodies = len(model.reference) - 1
    q = ca.SX.sym("q", 7 * bodies)
    r = {0: ca.SX(model.reference[0][1])}
    p = {0: ca.SX([1, 0, 0, 0])}
    for k in range(bodies):
        r[k + 1], p[k + 1] = q[7 * k : 7 * k + 3], q[7 * k + 3 : 7 * k + 7]
    rows = [row for c in model.joints for row in _joint(c, r, p)]
    rows += [ca.dot(p[k], p[k]) - 1 for k in range(1, bodies + 1)]
    return q, ca.vertcat(*rows)


def _joint(c: Joint, r: dict[int, ca.SX], p: dict[int, ca.SX]) -> list[ca.SX]:
    gap = r[c.j] + turned(p[c.j], c.point_j) - r[c.i] - turned(p[c.i], c.point_i)
    if c.kind == "spherical":
        return [gap]
    if c.kind == "distance":
        return [ca.sqrt(ca.dot(gap, gap)) - c.length]
    axis_j = turned(p[c.j], c.axis_j)
    if c.kind == "universal":
        return [gap, ca.dot(turned(p[c.i], c.axis_i), axis_j)]
    first, second = across(c.axis_i)
    u, v = turned(p[c.i], first), turned(p[c.i], second)
    aligned = [ca.dot(u, axis_j), ca.dot(v, axis_j)]
    if c.kind == "revolute":
        return [gap, *aligned]
    return [ca.dot(u, gap), ca.dot(v, gap), *aligned, ca.dot(u, turned(p[c.j], c.rotation.T @ second))]


@once_per_model
def _solver(model: Model) -> ca.Function:
    q, rows = equations(model)
    return ca.nlpsol("assemble", "ipopt", {"x": q, "f": 0.5 * ca.sumsqr(rows)}, OPTIONS)


def assemble(model: Model, start: dict[int, Pose]) -> Answer:
    solver = _solver(model)
    q = coordinates(start)
    began = time.perf_counter()
    found = solver(x0=q)
    seconds = time.perf_counter() - began
    return Answer(poses(found["x"].full().ravel()), seconds)


def poses(q: np.ndarray) -> dict[int, Pose]:
    return {k + 1: (matrix(x[3:]), x[:3]) for k, x in enumerate(q.reshape(-1, 7))}
