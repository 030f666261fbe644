"""``cardan warmup``: compile all kernels, so that no later call has to wait."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import get_args

import numpy as np

from cardan import geometry, shapes
from cardan.analysis.options import Method
from cardan.analysis.simulation_options import METHODS
from cardan.cli.output import print_json
from cardan.constraints import kernels
from cardan.constraints.registry import REGISTRY
from cardan.coordinates import formulations, rates
from cardan.coordinates.formulations import Formulation
from cardan.lazy import TieredModule
from cardan.mechanism import Mechanism

EXAMPLES = """  cardan warmup"""


NO_TIME = f"{0.0:6.2f} s"  # a group with this printed time had nothing to compile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    began = time.perf_counter()
    TieredModule.patience = 0
    seconds = {}
    for name, compile_group in groups(_swing()):
        start = time.perf_counter()
        compile_group()
        seconds[name] = time.perf_counter() - start
        if (text := f"{seconds[name]:6.2f} s") != NO_TIME:
            print(f"{text}  {name}", file=sys.stderr, flush=True)
    total = time.perf_counter() - began
    if args.json:
        print_json({"seconds": total, "groups": seconds})
    else:
        print(f"all kernels are ready: {total:.2f} s")
    return 0


def groups(mechanism: Mechanism) -> Iterator[tuple[str, Callable[[], object]]]:
    """Groups of kernels, each with a call that compiles or loads them."""
    yield "tables of a mechanism", lambda: mechanism.system
    for formulation in get_args(Formulation):
        yield f"equations in {formulation}", partial(formulations.problem, mechanism.system, formulation)
        for method in get_args(Method):
            solve = partial(mechanism.assemble, formulation=formulation, method=method, max_iterations=2)
            yield f"{method} in {formulation}", solve
        if formulation in formulations.REGISTRY:
            yield f"accelerations in {formulation}", partial(_accelerate, mechanism, formulation)
    yield "built-in primitives", _primitives
    yield "variables", _variables
    yield "linear algebra of large systems", partial(_factorise, mechanism)
    yield "restarts", partial(_draw, mechanism)
    for method in get_args(Method):
        many = partial(mechanism.assemble_many, [mechanism.state], method=method, max_iterations=2)
        yield f"{method} from many starts", many
    yield "many starts with counted angles", _count_turns
    yield "loads", _loads
    yield "contacts", _contacts
    yield "spring steps on several threads", partial(mechanism.assemble, method="gradient", max_iterations=2, workers=2)
    yield "diagnosis", mechanism.diagnose
    yield "simulation", partial(_simulate, mechanism)
    yield "sessions", partial(_sessions, mechanism)


def _variables() -> None:
    from cardan.system import _formulas  # noqa: F401  (compiled when it is imported)


def _contacts() -> None:
    """Kernels of a contact that rolls, and of a surface and a curve that it needs."""
    m = Mechanism("ball")
    ball = m.body("ball", position=(0.0, 0.0, 0.1), mass=1.0, inertia=0.004 * np.eye(3))
    m.contact("on", m.ground.attach(geometry.plane()), ball.attach(geometry.sphere(0.1)), mode="roll")
    m.simulate(1e-3, step=1e-3)
    m = Mechanism("ride")
    car = m.body("car", position=(1.0, 0.1, 0.0), mass=1.0, inertia=0.1 * np.eye(3))
    m.path("on", car.frame(), m.ground.attach(geometry.circle(1.0)))
    m.simulate(1e-3, step=1e-3)
    m = Mechanism("mesh")
    near = m.body("near", position=(0.0, 0.0, 0.3))
    m.contact(
        "on", m.ground.attach(shapes.box(1, 1, 0.1)), near.attach(shapes.box(0.1, 0.1, 0.1)), jacobian="differences"
    )
    m.assemble()


def _primitives() -> None:
    for primitive in REGISTRY.values():
        kernels.address(primitive)
        kernels.curvature_address(primitive)


def _accelerate(mechanism: Mechanism, formulation: str) -> None:
    system = mechanism.system
    v = np.zeros(formulations.REGISTRY[formulation].width * len(system.names))
    formulations.gamma(system, formulation, formulations.to_reference(system, system.authored), v)


def _factorise(mechanism: Mechanism) -> None:
    from cardan.solvers.linear import dual, sparse

    problem = formulations.problem(mechanism.system, "manifold")
    sparse(problem.structure)
    dual(problem.structure)
    q = formulations.to_reference(mechanism.system, mechanism.system.authored)
    rates.Factorization(mechanism.system, problem, q).solve(np.zeros(problem.rows))
    none = np.empty(0, dtype=np.int64), np.empty((1, 0))
    problem.residuals(q, np.zeros((1, problem.unknowns)), *none)


def _draw(mechanism: Mechanism) -> None:
    from cardan.analysis.restarts import Restarts
    from cardan.analysis.tables import Memo

    system = mechanism.system
    q = formulations.to_reference(system, system.authored)
    restarts = Restarts(system, q, 1.0, 0)
    restarts.anywhere(1)
    restarts.near(q, 1, 0.1, 1.0)
    policy = import_module("cardan.analysis._policy")
    memo = np.zeros(Memo.size)
    policy.is_far(memo)
    policy.is_nearer(memo, True, 0.0)


def _simulate(mechanism: Mechanism) -> None:
    """Kernels of every integrator, of both linear algebras, of Baumgarte's terms, stops, reactions and the drift."""
    from cardan.dynamics import _feedback, _kkt, _stops  # noqa: F401  (compiled when they are imported)

    for method in METHODS:
        simulation = mechanism.simulate(1e-3, step=1e-4, method=method)
    simulation._redundant = True  # so that multipliers of least norm are computed too
    simulation.reaction("pivot")
    assert simulation.drift.size


def _sessions(mechanism: Mechanism) -> None:
    """Kernels of both modes and of servo threads."""
    from cardan.interact import servo

    for mode in ("kinematic", "dynamic"):
        with mechanism.session(mode=mode) as session:
            session.grasp("bob").target = (0.5, 0.2, -0.7)
            session.step()
    servo.idle(1e4, 1e-3)


def _loads() -> None:
    from cardan.dynamics import _loads  # noqa: F401  (compiled when it is imported)


def _count_turns() -> None:
    """Kernels for whole turns required by a limit, counted angles of many starts, and starts after the deadline."""
    m = Mechanism("door")
    hinge = m.revolute("hinge", m.ground.frame(), m.body("leaf", position=(0.1, 0.0, 0.3)).frame())
    m.limit("stop", hinge, upper=1.0)
    m.assemble_many([m.state], max_seconds=1e-9)
    m.assemble(max_iterations=1, restarts=0)


def _swing() -> Mechanism:
    """A pendulum on a stay.  It has lengths: without them many starts are solved one by one, by other kernels."""
    m = Mechanism("swing")
    bob = m.body("bob", position=(0.5, 0.2, -0.8), mass=1.0, inertia=np.eye(3))
    m.spherical("pivot", m.ground.point(), bob.point((0, 0, 1)))
    m.distance("stay", m.ground.point((1, 0, 0)), bob.point((0, 0, -1)), 1.5)
    return m
