"""Cardan assembles, diagnoses and moves mechanisms: rigid bodies connected by joints.

    import cardan as cd
    m = cd.Mechanism("pendulum")
    arm = m.body("arm", position=(0.3, 0.1, 0.0))
    m.revolute("hinge", m.ground.frame((0, 0, 0)), arm.frame((0, 0, 0)))
    result = m.assemble()
    result.ok, result.state["arm"].position

Build
    Mechanism           bodies and joints by name; a method for every joint, driver and limit
    Body                a rigid part, from m.body(…); body.point(…), body.frame(…) and body.vector(…) are fixed on it
    Joint, Coordinate   what m.revolute(…) and the others return; joint.of(name) is one of its coordinates
    shapes              boxes, gears, meshes, … for body.attach(shape): looks, and mass by density
    coordinate          a coordinate between two frames that have no joint
    Load                what m.spring(…), m.force(…), … return; loads act in m.simulate alone
    spline              a smooth function through points, for m.drive and m.couple
    primitive           declares a constraint equation of your own, for m.constrain(…)
    load, m.save        a mechanism from a file *.cardan.toml, and to one
    joint_motion        declares how such a constraint moves, for formulations by joints
    rate_primitive      declares a constraint of velocities of your own, for m.constrain_rates(…)
    sin, cos, dot, …    functions for such equations, for drivers (m.drive) and couplings (m.couple)
    geometry            curves, surfaces and meshes: NURBS, closed forms, distance (docs/geometry.md)
    collide             gaps, contact points and overlaps of two solids (docs/collision.md)
    elastic             modes of beams and of finite-element models (docs/flexible.md)
    load_step, m.add    the parts of a STEP file, as bodies; cad proposes joints (docs/cad.md)
    solve_cadquery      solves an assembly of CadQuery; solve_build123d the joints of build123d

Solve
    m.assemble          poses that satisfy every joint: an AssemblyResult
    m.assemble_many     the same from many starts: a BatchResult
    m.move              positions, velocities and accelerations of a driven motion: a Motion
    m.simulate          the motion under gravity and loads: a Simulation
    final, integral, …  costs of a run; sim.gradient(cost) gives their derivatives by all numbers of the model
    m.simulate_many     the same for many values of parameters, on all cores; m.move_many: Runs
    m.study             the same over a sample (cd.sample), in parts on disk, threads or a cluster: a Study
    m.interference      bodies that overlap; m.distance_between two; motion.clashes() at any time of a motion
    m.collide           bodies that must not overlap, in assemblies and driven motions
    m.parameter         a design parameter, which may be free in m.assemble; m.sensitivity, m.tolerances
    m.solve_rates       velocities in one pose, for given rates of coordinates
    m.state_at          the pose in which joint coordinates have given values (forward kinematics)
    m.diagnose          degrees of freedom and redundant equations: a Diagnosis
    m.constraint_equations, m.jacobian   C, C_q, γ; Jacobians of points and frames
    m.motion_equations  M, Q_e, Q_v; m.mass_matrix
    m.session           an operator in the loop: hands move the mechanism; or one solver step at a time

Look
    view                opens a mechanism in the browser: drag its parts, play its drivers, simulate it

Read
    State, Pose         poses of all bodies: state["arm"].position, .quaternion, .matrix
    Status, Violation   how an assembly ended, and the residual of one constraint
    Repair              a change with which a mechanism that is a conflict can be assembled
    load_result         a result from a file that result.save("run.npz") wrote
    ModelError          a call or a model is wrong; its message names the item and what would be valid

Packages, from top to bottom; a package imports only from those below it (docs/architecture.md)
    apps                cli, view, examples
    model               cad, files, mechanism
    analyses            study, interact, analysis, diagnosis, dynamics
    core                coordinates, joints, system
    numerics            collide, elastic, shapes, geometry, constraints, solvers, math, kernel

``30 * cd.deg``, ``12 * cd.mm`` and ``2 * cd.inch`` are radians and metres; m.display chooses the units of texts.
Units are metres, radians and seconds; quaternions are (w, x, y, z).  ``cardan examples`` lists a gallery of mechanisms.
The documentation is in docs/: conventions.md, vocabulary.md (joints, drivers, limits), architecture.md.
"""

from __future__ import annotations

import logging
from importlib import import_module
from math import pi
from typing import TYPE_CHECKING, Any

from cardan import checkout

if TYPE_CHECKING:
    from cardan import cad, collide, elastic, geometry, shapes
    from cardan.analysis.batch_result import BatchResult
    from cardan.analysis.clashes import Clashes
    from cardan.analysis.contact_record import ContactEvent, ContactEventKind, ContactHistory
    from cardan.analysis.costs import Cost, final, integral, mean, misfit, peak
    from cardan.analysis.elastic_motion import FlexibleSimulation
    from cardan.analysis.equilibrium import Equilibrium
    from cardan.analysis.gradient import Gradient
    from cardan.analysis.interference import Interference, Separation
    from cardan.analysis.linearise import ConstraintEquations
    from cardan.analysis.motion import Motion, MotionStatus
    from cardan.analysis.motion_equations import MotionEquations
    from cardan.analysis.objective import Objective
    from cardan.analysis.options import AssemblyOptions, SpringOptions
    from cardan.analysis.repairs import Repair
    from cardan.analysis.result import AssemblyResult, Status
    from cardan.analysis.runs import Runs
    from cardan.analysis.sensitivity import Sensitivity, Tolerances
    from cardan.analysis.simulation import Simulation, SimulationStatus
    from cardan.analysis.simulation_options import SimulationOptions
    from cardan.analysis.vibration import Linearization
    from cardan.cad.build123d import from_build123d, solve_build123d
    from cardan.cad.cadquery import from_cadquery, solve_cadquery
    from cardan.cad.step import load_step
    from cardan.constraints.functions import (
        acos,
        angular_velocity,
        asin,
        atan,
        atan2,
        clip,
        cos,
        cosh,
        cross,
        dot,
        exp,
        log,
        norm,
        rate,
        rotation_vector,
        sin,
        sinh,
        sqrt,
        tan,
        tanh,
    )
    from cardan.constraints.jets import Jet
    from cardan.constraints.spline import Spline, spline
    from cardan.constraints.user import primitive, rate_primitive
    from cardan.constraints.user_motion import JointMotion, joint_motion
    from cardan.diagnosis.freedom import Diagnosis
    from cardan.dynamics.loads import Load
    from cardan.errors import ArgumentError, CardanError, ModelError, ReadOnlyError, SessionError, UnknownNameError
    from cardan.files.loaded_results import load_result
    from cardan.files.problems import FileError
    from cardan.files.reader import load
    from cardan.interact.hand import Hand
    from cardan.interact.session import Session, SessionStatus
    from cardan.joints import Coordinate, Joint, coordinate
    from cardan.joints.friction import JointFriction, bearing, guide, mesh, thread
    from cardan.mechanism import Mechanism
    from cardan.study import sample
    from cardan.study.sample import Sample
    from cardan.study.study import Study
    from cardan.system.attachments import Attachment
    from cardan.system.display import Display, deg, inch, mm
    from cardan.system.formulas import Parameter
    from cardan.system.parts import Body, Direction, Frame, Point
    from cardan.system.residuals import Violation
    from cardan.system.state import Pose, State
    from cardan.system.system import System

    view: Any  # the package cardan.view, which can be called

__version__ = "0.1.0"

# The modules of the names above.  They are imported when a name is first used, so that `cardan --help` need not wait.
_MODULES = {
    "analysis.batch_result": "BatchResult",
    "analysis.clashes": "Clashes",
    "analysis.costs": "Cost final integral mean misfit peak",
    "analysis.elastic_motion": "FlexibleSimulation",
    "analysis.equilibrium": "Equilibrium",
    "analysis.gradient": "Gradient",
    "analysis.interference": "Interference Separation",
    "analysis.linearise": "ConstraintEquations",
    "analysis.motion": "Motion MotionStatus",
    "analysis.motion_equations": "MotionEquations",
    "analysis.objective": "Objective",
    "analysis.options": "AssemblyOptions SpringOptions",
    "analysis.repairs": "Repair",
    "analysis.result": "AssemblyResult Status",
    "analysis.runs": "Runs",
    "analysis.sensitivity": "Sensitivity Tolerances",
    "analysis.contact_record": "ContactEvent ContactEventKind ContactHistory",
    "analysis.simulation": "Simulation SimulationStatus",
    "analysis.simulation_options": "SimulationOptions",
    "analysis.vibration": "Linearization",
    "cad.build123d": "from_build123d solve_build123d",
    "cad.cadquery": "from_cadquery solve_cadquery",
    "cad.step": "load_step",
    "constraints.functions": "acos angular_velocity asin atan atan2 clip cos cosh cross dot exp log norm rate "
    "rotation_vector sin sinh sqrt tan tanh",
    "constraints.jets": "Jet",
    "constraints.user_motion": "JointMotion joint_motion",
    "constraints.spline": "Spline spline",
    "constraints.user": "primitive rate_primitive",
    "diagnosis.freedom": "Diagnosis",
    "dynamics.loads": "Load",
    "errors": "ArgumentError CardanError ModelError ReadOnlyError SessionError UnknownNameError",
    "files.problems": "FileError",
    "files.reader": "load",
    "files.loaded_results": "load_result",
    "interact.hand": "Hand",
    "interact.session": "Session SessionStatus",
    "joints": "Coordinate Joint coordinate",
    "joints.friction": "JointFriction bearing guide mesh thread",
    "mechanism": "Mechanism",
    "study.sample": "Sample",
    "study.study": "Study",
    "system.attachments": "Attachment",
    "system.display": "Display deg inch mm",
    "system.formulas": "Parameter",
    "system.parts": "Body Direction Frame Point",
    "system.residuals": "Violation",
    "system.state": "Pose State",
    "system.system": "System",
}
_HOME = {name: f"cardan.{module}" for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "sample":
        return import_module("cardan.study.sample")
    if name in ("cad", "collide", "elastic", "geometry", "shapes", "view"):
        return import_module(f"cardan.{name}")
    if name in _HOME:
        found = globals()[name] = getattr(import_module(_HOME[name]), name)
        return found
    raise AttributeError(f"module 'cardan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


logging.getLogger("cardan").addHandler(logging.NullHandler())
checkout.make_kernels()

__all__ = [
    "ArgumentError",
    "AssemblyOptions",
    "AssemblyResult",
    "Attachment",
    "BatchResult",
    "Body",
    "CardanError",
    "Clashes",
    "ConstraintEquations",
    "ContactEvent",
    "ContactEventKind",
    "ContactHistory",
    "Coordinate",
    "Cost",
    "Diagnosis",
    "Direction",
    "Display",
    "Equilibrium",
    "FileError",
    "FlexibleSimulation",
    "Frame",
    "Gradient",
    "Hand",
    "Interference",
    "Jet",
    "Joint",
    "JointFriction",
    "JointMotion",
    "Linearization",
    "Load",
    "Mechanism",
    "ModelError",
    "Motion",
    "MotionEquations",
    "MotionStatus",
    "Objective",
    "Parameter",
    "Point",
    "Pose",
    "ReadOnlyError",
    "Repair",
    "Runs",
    "Sample",
    "Sensitivity",
    "Separation",
    "Session",
    "SessionError",
    "SessionStatus",
    "Simulation",
    "SimulationOptions",
    "SimulationStatus",
    "Spline",
    "SpringOptions",
    "State",
    "Status",
    "Study",
    "System",
    "Tolerances",
    "UnknownNameError",
    "Violation",
    "__version__",
    "acos",
    "angular_velocity",
    "asin",
    "atan",
    "atan2",
    "bearing",
    "cad",
    "clip",
    "collide",
    "coordinate",
    "cos",
    "cosh",
    "cross",
    "deg",
    "dot",
    "exp",
    "from_build123d",
    "from_cadquery",
    "elastic",
    "final",
    "geometry",
    "guide",
    "inch",
    "integral",
    "joint_motion",
    "load",
    "load_result",
    "load_step",
    "log",
    "mean",
    "misfit",
    "mesh",
    "mm",
    "norm",
    "peak",
    "pi",
    "primitive",
    "rate",
    "rate_primitive",
    "rotation_vector",
    "sample",
    "shapes",
    "sin",
    "sinh",
    "solve_build123d",
    "solve_cadquery",
    "spline",
    "sqrt",
    "tan",
    "tanh",
    "thread",
    "view",
]
