"""Exudyn: rigid bodies with Euler parameters, generic joints and distance constraints, assembled by its static solver.

Timed: ``SolveStatic``.  Not timed: building the system, repeated for each start because a start is the bodies'
reference pose.  The static solver is full Newton, here with a dense factorisation that accepts singular Jacobians
(mechanisms can move).  Chains are omitted: 100 links take more than a minute.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import exudyn as exu
import numpy as np
from exudyn.utilities import InertiaCuboid, RigidBodyInertia

from peers import SMALL, Answer, across
from peers import version as _version
from problems import Joint, Model, Pose

name = "Exudyn"
tolerance = "1e-14 relative on the equations"
problems = SMALL

# Constrained directions: x, y, z, then perpendicularity of the axes (y_i, z_j), (x_i, z_j), (x_i, y_j).
DIRECTIONS = {
    "spherical": [1, 1, 1, 0, 0, 0],
    "revolute": [1, 1, 1, 1, 1, 0],
    "universal": [1, 1, 1, 0, 1, 0],
    "prismatic": [1, 1, 0, 1, 1, 1],
}


def available() -> str | None:
    return _version("exudyn", "exudyn")


def _axes(c: Joint) -> tuple[np.ndarray, np.ndarray]:
    """Axes of the joint in both bodies, as columns."""
    if c.axis_i is None:
        return np.eye(3), np.eye(3)
    first, second = across(c.axis_i)
    if c.kind == "universal":
        axes_i = np.column_stack([c.axis_i, first, second])
    else:
        axes_i = np.column_stack([first, second, c.axis_i])
    return axes_i, c.rotation.T @ axes_i if c.kind == "prismatic" else np.column_stack([*across(c.axis_j), c.axis_j])


def build(model: Model, start: dict[int, Pose], lengths: dict[int, float] | None = None):
    """lengths: of rods of 1 kg under gravity, for dynamics."""
    container = exu.SystemContainer()
    system = container.AddSystem()
    bodies = {0: system.CreateGround()}
    inertia = InertiaCuboid(density=1000.0, sideLengths=[0.1, 0.1, 0.1])
    for body, (R, p) in start.items():
        gravity = [0.0, 0.0, 0.0 if lengths is None else -9.81]
        if lengths is not None:
            rod = lengths[body] ** 2 / 12.0
            inertia = RigidBodyInertia(mass=1.0, inertiaTensor=np.diag([0.001, rod, rod])).Translated(
                [0.5 * lengths[body], 0.0, 0.0]
            )
        bodies[body] = system.CreateRigidBody(
            inertia=inertia, referencePosition=p, referenceRotationMatrix=R, gravity=gravity
        )
    for c in model.joints:
        pair = [bodies[c.i], bodies[c.j]]
        if c.kind == "distance":
            system.CreateDistanceConstraint(
                bodyNumbers=pair, localPosition0=c.point_i, localPosition1=c.point_j, distance=c.length
            )
            continue
        axes_i, axes_j = _axes(c)
        ends = [
            system.AddMarker(exu.utilities.MarkerBodyRigid(bodyNumber=body, localPosition=at))
            for body, at in zip(pair, (c.point_i, c.point_j), strict=True)
        ]
        system.AddObject(
            exu.utilities.GenericJoint(
                markerNumbers=ends, constrainedAxes=DIRECTIONS[c.kind], rotationMarker0=axes_i, rotationMarker1=axes_j
            )
        )
    system.Assemble()
    return container, system, bodies


def _settings() -> exu.SimulationSettings:
    made = exu.SimulationSettings()
    made.solutionSettings.writeSolutionToFile = False
    made.solutionSettings.sensorsWritePeriod = 1e9
    made.displayComputationTime = False
    made.linearSolver.solverType = exu.LinearSolverType.EigenDense
    made.linearSolver.ignoreSingularJacobian = True
    made.linearSolver.showCausingItems = False
    static = made.staticSolver
    static.verboseMode = 0
    static.adaptiveStep = False
    static.newton.absoluteTolerance = 1e-12
    static.newton.relativeTolerance = 1e-14
    static.newton.maxIterations = 100
    return made


def assemble(model: Model, start: dict[int, Pose]) -> Answer:
    exu.SetWriteToConsole(False)
    _container, system, bodies = build(model, start)
    settings = _settings()
    began = time.perf_counter()
    with contextlib.suppress(RuntimeError):  # the judge detects a failure
        system.SolveStatic(settings, showHints=False, updateInitialValues=True)
    seconds = time.perf_counter() - began
    return Answer(_poses(system, bodies, exu.ConfigurationType.Initial), seconds)


def _poses(system, bodies: dict, configuration) -> dict[int, Pose]:
    poses = {}
    for body, number in bodies.items():
        if body:
            at = {"localPosition": [0, 0, 0], "configuration": configuration}
            R = system.GetObjectOutputBody(number, exu.OutputVariableType.RotationMatrix, **at)
            p = system.GetObjectOutputBody(number, exu.OutputVariableType.Position, **at)
            poses[body] = np.reshape(R, (3, 3)), np.array(p)
    return poses


def simulator(model: Model, lengths: dict[int, float], duration: float, step: float) -> Callable[[], dict[int, Pose]]:
    """A run from rest by generalised-alpha, from building the system on (its time is small)."""
    start = {body: pose for body, pose in model.reference.items() if body}
    settings = _settings()
    settings.linearSolver.ignoreSingularJacobian = False
    settings.timeIntegration.numberOfSteps = round(duration / step)
    settings.timeIntegration.endTime = duration
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.newton.useModifiedNewton = True

    def run() -> dict[int, Pose]:
        exu.SetWriteToConsole(False)
        _container, system, bodies = build(model, start, lengths)
        system.SolveDynamic(settings, showHints=False)
        return _poses(system, bodies, exu.ConfigurationType.Current)

    return run


def squeezer(step: float) -> Callable[[], float]:
    """A run of Andrews' squeezing mechanism; returns the change of β [rad]."""
    import squeezer as s

    settings = _settings()
    settings.linearSolver.ignoreSingularJacobian = False
    settings.timeIntegration.numberOfSteps = round(s.DURATION / step)
    settings.timeIntegration.endTime = s.DURATION
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.newton.useModifiedNewton = True

    def run() -> float:
        exu.SetWriteToConsole(False)
        container = exu.SystemContainer()
        system = container.AddSystem()
        bodies = {0: system.CreateGround()}
        for k, (at, angle) in enumerate(s.places(), start=1):
            R = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
            own = RigidBodyInertia(mass=s.MASSES[k - 1], inertiaTensor=s.INERTIAS[k - 1] * np.eye(3))
            bodies[k] = system.CreateRigidBody(
                inertia=own.Translated([*s.CENTERS[k - 1], 0.0]), referencePosition=[*at, 0], referenceRotationMatrix=R
            )
        for pins, axes in ((s.TREE, [1, 1, 1, 1, 1, 0]), (s.LOOPS, [1, 1, 0, 0, 0, 0])):  # no redundant equations
            for i, p, j, q in pins:
                ends = [
                    system.AddMarker(exu.utilities.MarkerBodyRigid(bodyNumber=bodies[body], localPosition=[*at, 0]))
                    for body, at in ((i, p), (j, q))
                ]
                system.AddObject(exu.utilities.GenericJoint(markerNumbers=ends, constrainedAxes=axes))
        system.CreateSpringDamper(
            bodyNumbers=[bodies[0], bodies[3]],
            localPosition0=[*s.C, 0],
            localPosition1=[*s.ATTACHED, 0],
            referenceLength=s.REST,
            stiffness=s.STIFFNESS,
            damping=0.0,
        )
        system.CreateTorque(bodyNumber=bodies[1], loadVector=[0, 0, s.TORQUE])
        system.Assemble()
        system.SolveDynamic(settings, showHints=False)
        at = {"localPosition": [0, 0, 0], "configuration": exu.ConfigurationType.Current}
        R = np.reshape(system.GetObjectOutputBody(bodies[1], exu.OutputVariableType.RotationMatrix, **at), (3, 3))
        return float(np.arctan2(R[1, 0], R[0, 0]))

    return run
