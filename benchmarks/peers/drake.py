"""Drake: free bodies in a ``MultibodyPlant``, joints as constraints of ``InverseKinematics``, solved by SNOPT.

Timed: ``solver.Solve``.  Not timed: the plant and the program with its constraints, once per model.  The start is the
initial guess.  Aligned axes: a second point of one body has x = y = 0 in the other's joint frame.
Chains of 1,000 links are omitted: 100 links take 17 s.
"""

from __future__ import annotations

import time

import numpy as np
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.inverse_kinematics import InverseKinematics
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import SpatialInertia
from pydrake.solvers import SnoptSolver, SolverOptions

from peers import SMALL, Answer, across, coordinates, once_per_model
from peers import version as _version
from problems import Joint, Model, Pose, matrix

name = "Drake"
tolerance = "1e-10 on the constraints"
problems = SMALL

FREE = np.inf


def available() -> str | None:
    return _version("drake", "pydrake")


def _constrain(ik: InverseKinematics, c: Joint, i, j) -> None:
    """i and j are the body frames."""
    point_i, point_j = c.point_i.reshape(3, 1), c.point_j.reshape(3, 1)
    if c.kind == "distance":
        ik.AddPointToPointDistanceConstraint(i, point_i, j, point_j, c.length, c.length)
        return
    if c.kind == "spherical" or c.kind == "universal":
        ik.AddPositionConstraint(j, c.point_j, i, c.point_i, c.point_i)
        if c.kind == "universal":
            ik.AddAngleBetweenVectorsConstraint(i, c.axis_i, j, c.axis_j, np.pi / 2, np.pi / 2)
        return
    first, second = across(c.axis_i)
    at_i = RigidTransform(RotationMatrix(np.column_stack([first, second, c.axis_i])), c.point_i)
    along = np.array([0.0, 0.0, FREE])
    if c.kind == "revolute":
        ik.AddPositionConstraint(j, c.point_j, i, at_i, np.zeros(3), np.zeros(3))
    else:
        ik.AddPositionConstraint(j, c.point_j, i, at_i, -along, along)
        ik.AddAngleBetweenVectorsConstraint(i, first, j, c.rotation.T @ second, np.pi / 2, np.pi / 2)
    ik.AddPositionConstraint(j, c.point_j + c.axis_j, i, at_i, -along, along)


@once_per_model
def _program(model: Model) -> tuple[MultibodyPlant, InverseKinematics, SnoptSolver, SolverOptions]:
    plant = MultibodyPlant(0.0)
    inertia = SpatialInertia.SolidSphereWithMass(1.0, 0.1)
    frames = {0: plant.world_frame()}
    for body in model.reference:
        if body:
            frames[body] = plant.AddRigidBody(f"body {body}", inertia).body_frame()
    plant.Finalize()
    ik = InverseKinematics(plant, with_joint_limits=False)
    for c in model.joints:
        _constrain(ik, c, frames[c.i], frames[c.j])
    options = SolverOptions()
    for key in ("Major feasibility tolerance", "Minor feasibility tolerance"):
        options.SetOption(SnoptSolver.id(), key, 1e-10)
    return plant, ik, SnoptSolver(), options


def assemble(model: Model, start: dict[int, Pose]) -> Answer:
    _, ik, solver, options = _program(model)
    x = coordinates(start).reshape(-1, 7)
    guess = np.column_stack([x[:, 3:], x[:, :3]]).ravel()
    began = time.perf_counter()
    result = solver.Solve(ik.prog(), guess, options)
    seconds = time.perf_counter() - began
    found = result.GetSolution(ik.q()).reshape(-1, 7)
    return Answer({k + 1: (matrix(q[:4]), q[4:]) for k, q in enumerate(found)}, seconds)
