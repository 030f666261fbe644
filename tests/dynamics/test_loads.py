"""Laws of every registered load, against wrenches computed by NumPy from poses and velocities in world axes."""

from __future__ import annotations

import copy
import gc
import math
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations
from cardan.dynamics import loads, tables
from cardan.dynamics.build import equations_of
from cardan.dynamics.functions import Recorded
from cardan.errors import ModelError
from cardan.kernel.memory import JIT_DISABLED
from fuzz.oracles.loads import LOADS, TIME, Rig
from mechanisms import random_quaternion

SEEDS = range(6)

CASES = [case for row in LOADS.values() for case in row.cases]


def forces_of(m):
    return equations_of(m._model.drawing)[0].forces


def packed(rig):
    """Forces, and q and v of the solvers, with velocities converted by definition."""
    forces = forces_of(rig.m)
    q = formulations.to_reference(forces.system, rig.m.state.coordinates)
    return forces, q, rig.solver_velocities(forces.system, rig.velocities)


def forces_at(forces, q, v, t=TIME):
    """All of Q: of the kernel, and of Python's calls."""
    control = tables.Control.new(ask_time=t).as_floats
    out, extra = np.zeros(v.size), np.full(v.size, np.nan)
    forces._call(tables.FORCE, q, v, out, control)
    forces.extra(t, q, v, extra)
    return out + extra


def loaded(case, seed, **options):
    """A rig with the load of a case, and the wrenches that it should exert."""
    rig = Rig(seed, **options)
    return rig, case(rig)


every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)


def test_every_registered_load_is_a_method_and_has_a_case():
    assert set(LOADS) == set(loads.REGISTRY) and all(row.cases for row in LOADS.values())
    assert all(callable(getattr(cd.Mechanism, kind)) for kind in loads.REGISTRY)


@every_case
def test_virtual_power_is_that_of_the_wrenches(case):
    for seed in SEEDS:
        rig, wrenches = loaded(case, seed)
        forces, q, v = packed(rig)
        Q = forces_at(forces, q, v)
        for _ in range(4):
            virtual = {name: (rig.rng.normal(size=3), rig.rng.normal(size=3)) for name in ("a", "b")}
            expected, size = 0.0, 1e-3
            for name, place, f, torque in wrenches:
                rate, w = virtual.get(name, (np.zeros(3), np.zeros(3)))
                part = f @ (rate + np.cross(w, place - rig.r(name))) + torque @ w
                expected, size = expected + part, size + abs(part)
            assert abs(Q @ rig.solver_velocities(forces.system, virtual) - expected) < 1e-12 * size


@pytest.mark.nojit
def test_kernels_stay_within_their_workspace():
    rig = Rig(0)
    for k, case in enumerate(CASES):
        case(rig)
        rig.m._model.loads[f"load {k}"] = rig.m._model.loads.pop("load")
    forces, q, v = packed(rig)
    everything = forces_at(forces, q, v)
    assert np.isfinite(everything).all() and forces.asks
    if JIT_DISABLED:  # else nothing checks it
        forces.work -= 1
        with pytest.raises(IndexError):
            forces_at(forces, q, v)


@every_case
def test_forces_without_motion_are_minus_the_gradient_of_the_potential(case):
    for seed in SEEDS:
        rig, _ = loaded(case, seed)
        for name in ("a", "b"):  # no joint needs to be closed
            rig.m[name].orientation = random_quaternion(rig.rng)
        forces, q, v = packed(rig)
        (reading,) = forces.read(TIME, q, 0 * v).values() or [None]
        if reading is None or not reading.energy:
            assert not any(case in row.cases for row in LOADS.values() if row.conserves)
            return
        assert forces.potential(q) == reading.energy >= 0.0
        Q = forces_at(forces, q, 0 * v)
        retract = formulations.problem(forces.system, "manifold").retract
        for step in np.eye(12):
            h = 2e-4
            at = [forces.potential(retract(q, s * h * step)) for s in (-2, -1, 1, 2)]
            slope = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)
            assert abs(Q @ step + slope) < 1e-9 * max(1.0, *map(abs, at))


@every_case
@pytest.mark.parametrize("unit", [1e-6, 1e3])
def test_forces_do_not_depend_on_the_unit_of_length(case, unit):
    for seed in SEEDS[:3]:
        rig, _ = loaded(case, seed)
        other, _ = loaded(case, seed, unit=unit)
        one, two = (forces_at(*packed(r)).reshape(-1, 6) for r in (rig, other))
        scaled = two / np.array([unit] * 3 + [unit**2] * 3)
        assert np.abs(scaled - one).max() < 1e-9 * np.abs(one).max()


@every_case
def test_forces_do_not_depend_on_where_the_mechanism_is(case):
    """The ground's points of the load are measured from the origin of the mechanism, not from one of their own."""
    shift = np.array([2.0**20, -(2.0**19), 2.0**18])
    for seed in SEEDS[:3]:
        here, there = (forces_at(*packed(loaded(case, seed, shift=s)[0])) for s in (0.0, shift))
        assert np.abs(there - here).max() < 1e-7 * np.abs(here).max()


def test_a_torsion_spring_counts_whole_turns():
    for turns in (-3, 0, 5):
        rig = Rig(3)
        rig.m.spring("load", rig.hinge, stiffness=2.0, rest=0.5)
        assert not rig.m.system.counted_angles
        forces = forces_of(rig.m)
        system = forces.system
        assert "hinge" in system.counted_angles
        near = np.zeros(len(system.counted_angles))
        near[system.counted_angles.index("hinge")] = rig.angle + 2 * np.pi * turns
        q = formulations.to_reference(system, rig.m.state.coordinates, near)
        reading = forces.read(0.0, q, np.zeros(12))["load"]
        x = rig.angle + 2 * np.pi * turns
        assert abs(reading.coordinate - x) < 1e-12 and abs(reading.effort + 2.0 * (x - 0.5)) < 1e-11
        assert abs(reading.energy - (x - 0.5) ** 2) < 1e-10


# -- a distance of zero ------------------------------------------------------------------------------------------------


def coinciding(apart=(0.0, 0.0, 0.0), **options):
    """Two balls at almost one place, with a load on the distance of their centres."""
    m = cd.Mechanism("balls")
    a, b = m.body("a", mass=1.0, inertia=np.eye(3)), m.body("b", mass=1.0, inertia=np.eye(3))
    if "f" in options:
        m.actuator("load", cd.coordinate(a.point(), b.point(), "distance"), options["f"])
    else:
        m.spring("load", a.point(), b.point(), **options)
    forces = forces_of(m)
    q = formulations.to_reference(forces.system, m.state.coordinates)
    q[7:10] = apart
    return forces, q


def test_a_spring_without_rest_length_passes_through_zero():
    direction = np.array([0.36, -0.48, 0.8])
    for size in (1e-3, 1e-160, 1e-300, 0.0, -1e-300, -1e-160):
        forces, q = coinciding(size * direction, stiffness=7.0, damping=0.5)
        v = np.zeros(12)
        v[6:9] = 2.0 * direction
        Q = forces_at(forces, q, v)
        expected = -7.0 * size * direction - 0.5 * v[6:9]
        assert np.allclose(Q[6:9], expected, rtol=1e-14, atol=0) and (Q[:3] == -Q[6:9]).all()
        assert np.allclose(forces_at(forces, q, 0 * v)[6:9], -7.0 * size * direction, rtol=1e-14, atol=0)
        assert not forces.undefined(0.0, q, v)


def test_a_force_without_a_direction_is_not_a_number_and_is_named():
    v = np.zeros(12)
    v[6] = 1.0
    for options in ({"stiffness": 1.0, "rest": 0.2}, {"f": 3.0}, {"f": lambda t, x, rate: cd.cos(x)}):
        forces, q = coinciding(**options)
        assert np.isnan(forces_at(forces, q, v)[6:9]).all() and forces.undefined(0.0, q, v) == ["load"]
    forces, q = coinciding(f=lambda t, x, rate: 1.0 if x < 1 else 2.0)
    with pytest.raises(ModelError, match=r"actuator 'load' at t = 0.7 s: its points coincide"):
        forces_at(forces, q, v)
    forces, q = coinciding(f=lambda t, x, rate: -3 * rate)  # as a damper
    assert np.allclose(forces_at(forces, q, v)[6:9], (-3, 0, 0), rtol=1e-15)


def test_a_torque_between_parallel_axes_has_no_direction():
    m = cd.Mechanism("axes")
    a, b = m.body("a", mass=1.0, inertia=np.eye(3)), m.body("b", mass=1.0, inertia=np.eye(3))
    m.spring("load", cd.coordinate(a.frame(), b.frame(), "inclination"), stiffness=1.0, rest=0.3)
    forces = forces_of(m)
    q = formulations.to_reference(forces.system, m.state.coordinates)
    assert forces.undefined(0.0, q, np.zeros(12)) == ["load"]
    assert np.isnan(forces_at(forces, q, np.zeros(12))).any()


# -- functions ---------------------------------------------------------------------------------------------------------


class Memory:
    """A controller that remembers: it depends on more than its arguments."""

    def __init__(self):
        self.sum = 0.0

    def __call__(self, t, x, rate):
        self.sum += 1e-3 * (1.0 - x)
        return self.sum


def gain(t, x, rate):
    return -2.0 * x - 0.1 * rate


def branching(t, x, rate):
    return 1.0 if rate > 0 else -1.0


def pushing(t, state):
    return 0.0, 0.0, t


@pytest.mark.parametrize(
    "f, is_recorded",
    [
        (gain, True),
        (lambda t, x, rate: cd.clip(x, -0.1, 0.1) * np.sin(t) + cd.sqrt(x * x + 1) ** 1.5, True),
        (lambda t, x, rate: 3.0, True),
        (lambda t, *rest: rest[0] / (1 + rest[1] ** 2), True),
        (branching, False),
        (lambda t, x, rate: math.sin(x), False),
        (lambda t, x, rate: max(0.0, x), False),
        (Memory(), False),
        (lambda t, x, rate: float(np.interp(x, [-1, 1], [0, 5])), False),
        (lambda t, x, rate: 1 / (x - x), False),
        (lambda t, x, rate: 5.0 if isinstance(x, float) else x, False),
    ],
)
def test_a_function_is_recorded_if_that_gives_the_same(f, is_recorded):
    rig = Rig(0)
    load = rig.m.actuator("load", rig.hinge, f)
    assert isinstance(load.action.function, Recorded) is is_recorded and load.is_called is not is_recorded
    forces, q, v = packed(rig)
    assert forces.asks is not is_recorded
    if is_recorded:
        reading = forces.read(0.3, q, v)["load"]
        expected = f(0.3, reading.coordinate, reading.rate)
        assert abs(reading.effort - expected) < 1e-13 * max(1, abs(expected))


def failing(t, x, rate):
    if t > 0.5:
        raise LookupError("no such gain")
    return 1.0 if x > 0 else 2.0


@pytest.mark.parametrize(
    "f, text",
    [
        (failing, "actuator 'load' at t = 0.7 s: its function raised LookupError: no such gain"),
        (lambda t, x, rate: math.inf if t == 0.7 else float(x > 0), "at t = 0.7 s: .* returned inf; it must be finite"),
        (lambda t, x, rate: None if t == 0.7 else float(x > 0), "at t = 0.7 s: .* returned None; it must be a number"),
    ],
)
def test_a_function_that_fails_is_named_with_the_time(f, text):
    rig = Rig(0)
    rig.m.actuator("load", rig.hinge, f)
    forces, q, v = packed(rig)
    with pytest.raises(ModelError, match=text):
        forces.extra(TIME, q, v, np.zeros(12))


@pytest.mark.parametrize(
    "f, text",
    [
        (lambda t, state: 1 / 0, "force 'load' at t = 0.7 s: its function raised ZeroDivisionError"),
        (lambda t, state: (1, 2), r"returned \(1, 2\); it must be three numbers"),
        (lambda t, state: 5.0, "returned 5.0; it must be three numbers"),
        (lambda t, state: (0, math.nan, 0), "returned nan; it must be finite"),
        (lambda t, state: (0, "1", 0), "returned '1'; it must be a number"),
    ],
)
def test_a_force_that_fails_is_named_with_the_time(f, text):
    rig = Rig(0)
    rig.m.force("load", rig.m["a"].point(), f)
    forces, q, v = packed(rig)
    with pytest.raises(ModelError, match=text):
        forces.extra(TIME, q, v, np.zeros(12))


# -- loads in a mechanism ----------------------------------------------------------------------------------------------


def with_loads(m, joint, body, other):
    """A mechanism with one load of every kind."""
    m.spring("l1", body.point((0.1, 0, 0)), other.point(), stiffness=3.0, rest=0.1)
    m.spring("l2", joint, stiffness=1.0)
    m.friction("l3", joint, viscous=1.0)
    m.actuator("l4", joint, lambda t, x, rate: cd.sin(t) - rate)
    m.actuator("l5", joint, branching)
    m.force("l6", body.point(), pushing)
    m.torque("l7", body, (0, 0, 1), axes="body")
    m.bushing("l8", body.frame(), other.frame(), [1, 2, 3, 4, 5, 6])
    return m


def slowly(t):
    return 0.5 * t


def four_bar(driven=False):
    m = cd.Mechanism("four bar")
    places = {"crank": (0, 0, 0), "coupler": (1, 0, 0.2), "rod": (3, 0, 0)}
    crank, coupler, rod = (m.body(name, position=at, mass=1.0, inertia=np.eye(3)) for name, at in places.items())
    a = m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((1, 0, 0)), coupler.frame())
    m.spherical("C", coupler.point((3, 0, 0)), rod.point((0, 2, 0)))
    m.universal("D", m.ground.frame((3, 0, 0)), rod.frame(z=(1, 0, 0)))
    if driven:
        m.drive("motor", a, slowly)
    return m


@pytest.mark.parametrize("driven", [False, True])
def test_kinematics_is_the_same_with_and_without_loads(driven):
    plain, m = four_bar(driven), four_bar(driven)
    with_loads(m, m["A"], m["crank"], m["rod"])
    assert m.system == plain.system
    assert m.assemble() == plain.assemble()
    state = plain.assemble().state
    assert m.diagnose(state) == plain.diagnose(state) and m.diagnose(state).text() == plain.diagnose(state).text()
    if driven:
        one, two = m.move([0, 0.1, 0.4]), plain.move([0, 0.1, 0.4])
        assert one.states == two.states and one.ok


COPIES = {
    "copy": lambda m: m.copy(),
    "deepcopy": copy.deepcopy,
    "pickle": lambda m: pickle.loads(pickle.dumps(m)),
    "mixed": lambda m: pickle.loads(pickle.dumps(copy.copy(m))),
}


@pytest.mark.parametrize("way", COPIES)
def test_copies_are_equal_and_independent_and_exert_the_same_forces(way):
    m = four_bar()
    with_loads(m, m["A"], m["crank"], m["rod"])
    made = COPIES[way](m)
    assert made == m and made.loads.keys() == m.loads.keys() and made.description() == m.description()
    assert all(made[name].bodies[0].owner is made for name in m.loads)
    found = []
    for one in (m, made):
        forces = forces_of(one)
        q = formulations.to_reference(forces.system, one.state.coordinates)
        for same in (forces, copy.deepcopy(forces), pickle.loads(pickle.dumps(forces))):
            found.append(forces_at(same, q, np.linspace(-1, 1, 18)))
    assert found[0].any() and all((found[0] == other).all() for other in found)
    made.remove("l1")
    assert made != m and "l1" in m
    m.remove(m["l1"])
    assert made == m


def test_a_load_whose_function_cannot_be_pickled_is_named():
    m = four_bar()
    m.actuator("steady", m["A"], lambda t, x, rate: cd.sin(t))  # recorded: it is pickled without its function
    assert pickle.loads(pickle.dumps(m)) == m
    m.actuator("servo", m["A"], lambda t, x, rate: 1.0 if x > 0 else 2.0)
    with pytest.raises(ModelError, match="actuator 'servo' cannot be pickled, because its function cannot"):
        pickle.dumps(m)
    assert m.copy() == m


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.spring("x", m["A"], stiffness=1.1),
        lambda m: m.spring("x", m["A"], stiffness=1.0, damping=0.1),
        lambda m: m.spring("x", m["B"], stiffness=1.0),
        lambda m: m.friction("x", m["A"], viscous=1.0),
        lambda m: m.actuator("x", m["A"], lambda t, x, rate: x),
        lambda m: m.spring("y", m["A"], stiffness=1.0),
    ],
)
def test_mechanisms_that_differ_in_one_load_are_not_equal(change):
    one, two, same = four_bar(), four_bar(), four_bar()
    one.spring("x", one["A"], stiffness=1.0)
    same.spring("x", same["A"], stiffness=np.float64(1))
    change(two)
    assert one == same != two


def test_items_are_found_by_name_and_removed_with_what_they_act_on():
    m = four_bar()
    plain = four_bar()
    with_loads(m, m["A"], m["crank"], m["rod"])
    assert list(m)[-8:] == [f"l{k}" for k in range(1, 9)] == list(m.loads) and len(m) == len(plain) + 8
    assert m["l2"].joints == ("A",) and m["l7"].bodies == (m["crank"],) and "l7" in m
    assert repr(m["l1"]) == "<spring 'l1': 'crank' – 'rod'>" and "8 loads" in repr(m)
    with pytest.raises(ModelError, match="there is a load of that name"):
        m.body("l1")
    with pytest.raises(ModelError, match="joint 'A' has a coordinate that 'l2', 'l3', 'l4', 'l5' act on"):
        m.remove("A")
    with pytest.raises(ModelError, match="body 'rod' has the joints 'C', 'D' and the loads 'l1', 'l8'; remove"):
        m.remove("rod")
    m.remove("A", joints=True)
    assert list(m.loads) == ["l1", "l6", "l7", "l8"]
    m.remove("rod", joints=True)
    assert list(m.loads) == ["l6", "l7"] and "C" not in m
    m.remove("crank", joints=True)
    assert not m.loads


ERRORS = {
    "no stiffness": (lambda m: m.spring("x", m["A"]), "spring 'x': neither stiffness nor damping is above zero"),
    "negative": (
        lambda m: m.spring("x", m["A"], stiffness=-1),
        "spring 'x': the stiffness is -1.0; it must be zero or",
    ),
    "text": (lambda m: m.spring("x", m["A"], stiffness="1"), "spring 'x': the stiffness is '1'; it must be a number"),
    "rest": (
        lambda m: m.spring("x", m["crank"].point(), m["rod"].point(), stiffness=1, rest=-1),
        "spring 'x': the rest is -1.0 m; a distance is never negative",
    ),
    "one point": (
        lambda m: m.spring("x", m["crank"].point(), stiffness=1),
        "spring 'x' was given None; it must be a point",
    ),
    "one body": (
        lambda m: m.spring("x", m["rod"].point((1, 0, 0)), m["rod"].point(), stiffness=1),
        "spring 'x': .* between body 'rod' and itself",
    ),
    "joint and point": (
        lambda m: m.spring("x", m["A"], m["rod"].point(), stiffness=1),
        "spring 'x' was given .* a second point belongs to a point",
    ),
    "no coordinate": (lambda m: m.spring("x", m["C"], stiffness=1), "spring 'x': joint 'C' .* it has none"),
    "which": (lambda m: m.friction("x", m["D"], viscous=1), "friction 'x': joint 'D' .*'angle_a', 'angle_b'"),
    "of of points": (
        lambda m: m.spring("x", m["rod"].point(), m["crank"].point(), stiffness=1, of="angle"),
        "spring 'x' was given of='angle' .* omit it",
    ),
    "no such joint": (lambda m: m.spring("x", "E", stiffness=1), r"spring 'x': no joint of mechanism .* is named 'E'"),
    "unknown option": (lambda m: m.spring("x", m["A"], stifness=1), "spring 'x': .*did you mean 'stiffness'. See help"),
    "speed": (
        lambda m: m.friction("x", m["A"], coulomb=1, speed=0),
        "friction 'x': the speed is 0.0; it must be above",
    ),
    "no friction": (lambda m: m.friction("x", m["A"]), "friction 'x': neither viscous nor coulomb"),
    "effort": (lambda m: m.actuator("x", m["A"], math.nan), "actuator 'x': f, .* is nan; it must be finite"),
    "arguments": (
        lambda m: m.actuator("x", m["A"], lambda t: t),
        r"its function takes \(t\); it is called as f\(t, coo",
    ),
    "result": (lambda m: m.actuator("x", m["A"], lambda t, x, r: "1"), "actuator 'x': its function returned '1'"),
    "ground": (lambda m: m.force("x", m.ground.point(), (1, 0, 0)), "force 'x': it is on the ground"),
    "torque of ground": (lambda m: m.torque("x", m.ground, (1, 0, 0)), "torque 'x': it is on the ground"),
    "vector": (lambda m: m.force("x", m["rod"].point(), (1, 0)), "force 'x': f, .* it must have 3"),
    "axes": (
        lambda m: m.torque("x", m["rod"], (1, 0, 0), axes="joint"),
        "torque 'x': axes is 'joint'; .*'world', 'body'",
    ),
    "state": (lambda m: m.force("x", m["rod"].point(), lambda t: (1, 0, 0)), r"force 'x': .* called as f\(t, state\)"),
    "no body": (lambda m: m.torque("x", "rd", (1, 0, 0)), "no body of mechanism .* is named 'rd'; did you mean 'rod'"),
    "a point": (lambda m: m.torque("x", m["rod"].point(), (1, 0, 0)), "torque 'x' was given .*; it must be a body"),
    "other": (lambda m: m.torque("x", four_bar()["rod"], (1, 0, 0)), "torque 'x' was given .* of another mechanism"),
    "six": (
        lambda m: m.bushing("x", m["rod"].frame(), m["crank"].frame(), [1, 2]),
        "bushing 'x': the stiffness is .* six",
    ),
    "symmetric": (
        lambda m: m.bushing("x", m["rod"].frame(), m["crank"].frame(), np.triu(np.ones((6, 6)))),
        "bushing 'x': the stiffness is .* symmetric",
    ),
    "definite": (
        lambda m: m.bushing("x", m["rod"].frame(), m["crank"].frame(), [1] * 6, [1, 1, 1, 1, 1, -1]),
        "bushing 'x': the damping is .* negative",
    ),
    "frames": (lambda m: m.bushing("x", m["rod"].frame(), m["crank"].point(), [1] * 6), "must be a frame"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_a_bad_call_names_the_load_and_leaves_nothing_behind(case):
    m = four_bar()
    before = m.description()
    call, text = ERRORS[case]
    with pytest.raises(ModelError, match=text):
        call(m)
    assert m.description() == before and "x" not in m


# -- motion under loads ------------------------------------------------------------------------------------------------


def oscillator(add, mass=2.0):
    """A slider on a rail, without gravity, drawn 0.3 m from its zero."""
    m = cd.Mechanism("oscillator", gravity=(0, 0, 0))
    block = m.body("block", position=(0, 0, 0.3), mass=mass, inertia=np.eye(3))
    add(m, m.prismatic("rail", m.ground.frame(), block.frame()), block)
    return m


SECONDS = np.linspace(0.0, 2.0, 21)


@pytest.mark.parametrize(
    "add",
    [
        lambda m, rail, block: m.spring("s", rail, stiffness=50.0, damping=0.8),
        lambda m, rail, block: m.spring("s", m.ground.point(), block.point(), stiffness=50.0, damping=0.8),
        lambda m, rail, block: m.actuator("s", rail, lambda t, x, rate: -50.0 * x - 0.8 * rate),
        lambda m, rail, block: m.actuator("s", rail, lambda t, x, rate: -50.0 * x - 0.8 * rate if t >= 0 else 0.0),
        lambda m, rail, block: m.force(
            "s", block.point(), lambda t, s: (0, 0, -50.0 * s["block"].position[2] - 0.8 * s.velocities[0, 2])
        ),
        lambda m, rail, block: m.bushing("s", m.ground.frame(), block.frame(), [50.0] * 6, [0.8] * 6),
    ],
)
@pytest.mark.parametrize("options", [{"step": 1e-3}, {"rtol": 1e-9}, {"step": 1e-3, "method": "rk4"}])
def test_a_damped_oscillator_moves_as_its_closed_form(add, options):
    m = oscillator(add)
    sim = m.simulate(2.0, times=SECONDS, **options)
    decay, w = 0.8 / 4.0, math.sqrt(25.0 - 0.04)
    expected = 0.3 * np.exp(-decay * SECONDS) * (np.cos(w * SECONDS) + decay / w * np.sin(w * SECONDS))
    assert sim.ok and np.abs(sim.coordinate(m["rail"]) - expected).max() < 1e-8


def test_loads_act_at_their_own_time():
    for f in (lambda t, x, rate: 6.0 * cd.cos(3 * t), lambda t, x, rate: 6.0 * math.cos(3 * t)):
        m = oscillator(lambda m, rail, block, f=f: m.actuator("s", rail, f))
        found = m.simulate(2.0, rtol=1e-10, times=SECONDS).coordinate(m["rail"])
        assert np.abs(found - (0.3 + (1 - np.cos(3 * SECONDS)) / 3)).max() < 1e-8


def test_a_torsion_spring_unwinds_over_many_turns_and_keeps_its_energy():
    m = cd.Mechanism("toy", gravity=(0, 0, 0))
    wheel = m.body("wheel", mass=1.0, inertia=np.eye(3))
    hinge = m.revolute("hinge", m.ground.frame(), wheel.frame())
    m.spring("wound", hinge, stiffness=0.5, rest=40.0)
    assert m.system.counted_angles == ()
    times = np.linspace(0.0, 10.0, 41)
    sim = m.simulate(10.0, times=times, rtol=1e-10)
    expected = 40.0 * (1 - np.cos(math.sqrt(0.5) * times))
    assert sim.ok and np.abs(sim.coordinate(hinge) - expected).max() < 1e-6
    assert np.abs(sim.energy.total / 400.0 - 1).max() < 1e-8
    later = m.simulate(1.0, sim.state, rtol=1e-10)  # goes on with the turns of the state
    assert abs(later.coordinate(hinge)[-1] - 40.0 * (1 - math.cos(math.sqrt(0.5) * 11.0))) < 1e-6
    assert pickle.loads(pickle.dumps(sim)).energy.total.tolist() == sim.energy.total.tolist()


def test_springs_and_bushings_conserve_energy_in_a_linkage():
    m = four_bar()
    m.spring("s", m["crank"].point((0.5, 0.1, 0)), m.ground.point((0, 2, 1)), stiffness=30.0, rest=0.5)
    m.spring("t", m["B"], stiffness=5.0, rest=0.3)
    m.bushing("b", m["crank"].frame(), m["rod"].frame(), [3.0, 4.0, 5.0, 1.0, 2.0, 3.0])
    sim = m.simulate(1.0, step=5e-4)
    total = sim.energy.total
    assert sim.ok and np.ptp(total) < 1e-7 * np.ptp(sim.energy.kinetic)


@pytest.mark.parametrize("options", [{"step": 1e-2}, {"rtol": 1e-6}, {"step": 1e-2, "method": "rk4"}], ids=str)
@pytest.mark.parametrize("how", ["recorded", "called", "vector"])
def test_a_load_that_becomes_infinite_stops_the_run_and_earlier_results_are_kept(how, options):
    """From t = .5 s on the load has no finite force; until then it is almost zero, and the block moves at 1 m/s."""

    def add(m, rail, block):
        if how == "recorded":
            m.actuator("servo", rail, lambda t, x, rate: 1e-20 * cd.sqrt(0.5 - t))
        elif how == "called":
            m.actuator("servo", rail, lambda t, x, rate: math.nan if t > 0.5 else 0.0)
        else:
            m.force("servo", block.point(), lambda t, state: (0.0, 0.0, math.inf if t > 0.5 else 0.0))

    m = oscillator(add)
    m.gravity = (0.0, 0.0, 0.0)
    start = m.state.with_rates(np.array([[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]))
    run = m.simulate(1.0, start, **options)
    assert run.status == "not finite" and "servo" in run.reason and "earlier results are kept" in run.reason
    stopped = float(re.search(r"t = ([\d.]+) s", run.reason)[1])
    assert 0.4 < run.times[-1] <= 0.5 and run.times[-1] <= stopped <= 0.6
    assert np.abs(np.diff(run.positions("block")[:, 2]) - np.diff(run.times)).max() < 1e-12


def test_a_simulation_names_a_load_that_fails():
    m = oscillator(
        lambda m, rail, block: m.actuator("servo", rail, lambda t, x, rate: 1 / 0 if t > 0.5 else float(x > 9))
    )
    with pytest.raises(ModelError, match=r"actuator 'servo' at t = 0.5\d* s: its function raised ZeroDivisionError"):
        m.simulate(1.0, step=1e-2)
    balls = cd.Mechanism("balls")
    a, b = balls.body("a", mass=1.0, inertia=np.eye(3)), balls.body("b", mass=1.0, inertia=np.eye(3))
    balls.spring("short", a.point(), b.point(), stiffness=1.0, rest=1.0)
    sim = balls.simulate(1.0, step=1e-2)
    assert not sim.ok and "because 'short' has no finite force" in sim.reason


def test_recorded_functions_that_differ_by_numbers_share_their_kernel_and_act_with_their_own():
    """Two hinges with the same law and other numbers, against the closed form of the torque."""
    m = cd.Mechanism(gravity=(0, 0, 0))
    laws = {"one": (2.5, 0.4), "two": (-1.5, 7.25)}
    for k, (name, (gain, shift)) in enumerate(laws.items()):
        body = m.body(name, position=(k, 0, 0), mass=1.0, inertia=np.diag([0.5, 0.5, 0.5]))
        hinge = m.revolute(f"hinge {name}", m.ground.frame((k, 0, 0)), body.frame())
        m.actuator(f"motor {name}", hinge, lambda t, x, rate, gain=gain, shift=shift: gain * cd.cos(3.0 * t) + shift)
    functions = [load.action.function for load in m.loads.values()]
    assert functions[0].address() == functions[1].address()
    assert functions[0].constants != functions[1].constants
    sim = m.simulate(0.3, m.assemble().state)
    for name, (gain, shift) in laws.items():
        angle = (gain * (1.0 - np.cos(0.9)) / 9.0 + shift * 0.3**2 / 2.0) / 0.5
        assert sim.coordinate(f"hinge {name}")[-1] == pytest.approx(angle, rel=1e-7)


@pytest.mark.long
def test_couplings_with_functions_of_their_own_do_not_grow_the_process():
    """1,000 couplings whose functions differ by numbers: one kernel, and less than 5 MB."""

    def made(k):
        m = cd.Mechanism()
        a, b = m.body("a"), m.body("b", position=(1, 0, 0))
        first = m.revolute("first", m.ground.frame(), a.frame())
        second = m.revolute("second", m.ground.frame((1, 0, 0)), b.frame())
        m.couple("pair", first, second, lambda q: k * q + 0.1 * cd.sin(q * k))
        m.drive("motor", first, 0.3)
        assert m.assemble().ok

    def resident():
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for k in range(300):  # fills the caches of bounded size
        made(3.5 + 0.01 * k)
    before = resident()
    for k in range(1000):
        made(0.37 + 0.01 * k)
    assert resident() - before < 5e6


@pytest.mark.parametrize(("name", "place"), [("ground", "m.ground"), ("a", "m['a']")])
def test_a_load_on_the_name_of_a_body_says_how_to_give_a_point(name, place):
    m = cd.Mechanism()
    m.body("a", mass=1.0)
    with pytest.raises(ModelError, match=re.escape(f"spring 'SP' was given {name!r}, which is a body")) as refused:
        m.spring("SP", name, "a", stiffness=1.0)
    assert f"{place}.point(…)" in str(refused.value)
    with pytest.raises(ModelError, match=r"which is a body; give a joint$"):
        m.friction("f", name, viscous=1.0)
