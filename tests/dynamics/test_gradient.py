"""Gradients of runs: against extrapolated differences of the library's own runs, through its public interface.

Every number of the model is changed where the user gives it, so the differences also contain the packing, the assembly
of the start and the principal axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import cardan as cd
from cardan.analysis import costs, differentiable
from cardan.dynamics import adjoint
from cardan.dynamics.integrate import Integration
from cardan.math import euler
from gallery import rsur
from layers import sampled

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
RELATIVE, OF_LARGEST = 1e-8, 1e-11

Numbers = dict[str, Any]


def inertia(a: float, b: float, c: float, d: float = 0.0, e: float = 0.0) -> np.ndarray:
    """A tensor with products d (x, y) and e (y, z)."""
    return np.array([[a, d, 0.0], [d, b, e], [0.0, e, c]])


def link(mass: float, center: float, a: float, b: float, c: float) -> dict[str, Any]:
    """A body with its centre on its x axis."""
    return {"mass": mass, "center": (center, 0.0, 0.0), "inertia": inertia(a, b, c)}


RSUR: Numbers = {
    "mass": 2.0, "moment": 2.6, "product": 0.3, "cx": 2.0, "cy": 0.05, "stiffness": 60.0, "rest": 1.2, "damping": 0.5,
    "gy": 0.4, "gz": -9.81, "crank": 1.0, "foot": 0.0, "tip": 0.0, "viscous": 0.05, "coulomb": 0.3, "speed": 0.2,
    "rate": 1.5, "turn": 0.0, "spring_x": 1.5,
}  # fmt: skip


def make_rsur(n: Numbers) -> cd.Mechanism:
    """The spatial four-bar with a spring, friction, a torque of time, and a coupler whose axes are not principal."""
    m = cd.Mechanism("rsur", gravity=(0.0, n["gy"], n["gz"]))
    crank = m.body("crank", orientation=euler.from_axis_angle(Z, 0.7), **link(1.0, 0.5, 0.02, 0.09, 0.1))
    tensor = inertia(0.25, n["moment"], 2.7, n["product"], 0.1)
    turned = euler.from_axis_angle(Y, -0.8)
    given = {"mass": n["mass"], "center": (n["cx"], n["cy"], 0.0), "inertia": tensor}
    coupler = m.body("coupler", position=(0.8, 0.6, 0.0), orientation=turned, **given)
    hanging = euler.from_zxz((0.0, -1.3, -1.4))
    rocker = m.body("rocker", position=rsur.D, orientation=hanging, **link(1.5, 1.0, 0.03, 0.5, 0.52))
    A = m.revolute("A", m.ground.frame(z=Z, x=X), crank.frame(z=Z, x=X))
    m.spherical("B", crank.point((n["crank"], 0, 0)), coupler.point((n["tip"], 0, 0)))
    m.universal("C", coupler.frame((4.0, 0, 0), z=Z), rocker.frame((2.0, 0, 0), z=Z))
    ground = m.ground.frame((3.0 + n["foot"], 0, 1.0), z=rsur.ROCKER_AXIS, x=rsur.ROCKER_ZERO)
    m.revolute("D", ground, rocker.frame(z=Z, x=X))
    at = m.ground.point((1.5, 1.0, 2.5)), coupler.point((n["spring_x"], 0.1, 0.2))
    m.spring("coil", *at, stiffness=n["stiffness"], rest=n["rest"], damping=n["damping"])
    m.friction("rub", m["D"], viscous=n["viscous"], coulomb=n["coulomb"], speed=n["speed"])
    m.actuator("motor", A, lambda t, x, v: 3.0 * cd.sin(2.0 * t) - 0.05 * v + 0.1 * cd.cos(x))
    return m


def rsur_cost() -> costs.Cost:
    """Functionals of coordinates, points, velocities and accelerations; sums, products and powers of them."""
    swing = cd.integral(lambda s: s.rate("A") ** 2 + s.coordinate("A") * s["coupler"].point((2, 0, 0.1)).z)
    end = cd.final(lambda s: s["rocker"].velocity_of((1, 0.2, 0)).x * s["coupler"].angular_velocity.y)
    jerk = cd.final(lambda s: 0.02 * s["coupler"].acceleration_of((1.0, 0.2, 0.3)).x + 0.01 * s.acceleration("D"))
    top = cd.peak(lambda s: s["coupler"].velocity.z + 0.1 * s["crank"].angular_acceleration.z, p=6)
    return swing + 0.3 * end * cd.mean(lambda s: s.coordinate("D") + s.time) + jerk - top**1.5 / 3.0


def rsur_found(g: cd.Gradient) -> dict[str, float]:
    """The derivatives by the numbers of RSUR."""
    coupler, coil, rub, B, D = (g.of(name) for name in ("coupler", "coil", "rub", "B", "D"))
    return {
        "mass": coupler.mass, "moment": coupler.inertia[1, 1], "product": 2.0 * coupler.inertia[0, 1],
        "cx": coupler.center[0], "cy": coupler.center[1], "stiffness": coil.stiffness, "rest": coil.rest,
        "damping": coil.damping, "gy": g.gravity[1], "gz": g.gravity[2], "crank": B.points[0, 0],
        "tip": B.points[1, 0], "foot": D.points[0, 0], "viscous": rub.viscous, "coulomb": rub.coulomb,
        "speed": rub.speed,
    }  # fmt: skip


SLIDER: Numbers = {
    "mass": 1.2, "ixy": 0.002, "center": 0.2, "throw": 0.15, "f": 4.0, "at": 0.05, "push": -2.0, "twist": 0.4,
    "k": 30.0, "crank": 0.1, "guide": 0.02, "inward": 0.3,
}  # fmt: skip


def make_slider(n: Numbers) -> cd.Mechanism:
    """A slider-crank whose joints are independent, with forces, a torque and a bushing."""
    m = cd.Mechanism("slider", gravity=(0.0, -9.81, 0.0))
    crank = m.body("crank", orientation=euler.from_axis_angle(Z, 0.9), **link(0.8, 0.05, 1e-3, 2e-3, 2.5e-3))
    x = 0.1 * np.array([np.cos(0.9), np.sin(0.9)])
    along = -np.arcsin(x[1] / 0.4)
    given = {"mass": n["mass"], "center": (n["center"], 0.01, 0), "inertia": inertia(0.002, 0.02, 0.021, n["ixy"])}
    rod = m.body("rod", position=(*x, 0.0), orientation=euler.from_axis_angle(Z, along), **given)
    block = m.body("block", position=(x[0] + 0.4 * np.cos(along), 0, 0), mass=2.0, inertia=inertia(0.01, 0.01, 0.01))
    m.revolute("A", m.ground.frame(z=Z), crank.frame(z=Z))
    m.spherical("B", crank.point((n["crank"], 0, 0)), rod.point())
    m.universal("C", rod.frame((0.4, 0, 0), z=Z), block.frame((0.0, n["guide"] - 0.02, 0.0), z=Y))
    m.prismatic("P", m.ground.frame((0, 0, 0), z=X), block.frame(z=X))
    m.force("wind", rod.point((n["at"], 0.02, 0.0)), (0.2, n["f"], 0.3))
    m.force("jet", rod.point((n["at"], 0.0, 0.01)), (n["inward"], 0.1, 0.0), axes="body")
    m.torque("twist", crank, (0.0, 0.1, n["twist"]))
    m.torque("turner", rod, (0.0, 0.1, n["push"]), axes="body")
    frames = m.ground.frame((0.45, 0.1, 0.0)), rod.frame((n["throw"], 0.0, 0.0), z=(0.1, 0.2, 1.0), x=X)
    stiffness = np.diag([n["k"], 20.0, 10.0, 0.5, 0.4, 0.3])
    stiffness[0, 4] = stiffness[4, 0] = 0.2
    m.bushing("soft", *frames, stiffness=stiffness, damping=0.02 * stiffness)
    return m


def slider_cost() -> costs.Cost:
    return cd.integral(lambda s: s.coordinate("P") ** 2 + 0.1 * s.rate("A") * s["rod"].velocity_of((0.2, 0, 0)).y) + (
        cd.final(lambda s: cd.norm(s["rod"].point((0.1, 0.2, 0.3))) + 0.2 * s["rod"].vector(Y).x)
    )


def slider_found(g: cd.Gradient) -> dict[str, float]:
    """The derivatives by the numbers of the slider-crank."""
    rod = g.of("rod")
    return {
        "mass": rod.mass, "ixy": 2.0 * rod.inertia[0, 1], "center": rod.center[0], "f": g.of("wind").vector[1],
        "at": g.of("wind").point[0] + g.of("jet").point[0], "inward": g.of("jet").vector[0],
        "twist": g.of("twist").vector[2], "push": g.of("turner").vector[2],
        "k": g.of("soft").stiffness[0, 0] + 0.02 * g.of("soft").damping[0, 0], "crank": g.of("B").points[0, 0],
        "guide": g.of("C").points[1, 1],
    }  # fmt: skip


CHAIN: Numbers = {"mass": 0.5, "stiffness": 20.0, "tip": 0.25, "moment": 0.004}
LINKS = 16


def make_chain(n: Numbers) -> cd.Mechanism:
    """A chain of links between a hinge and a ball joint, alternately joined by universal and spherical joints."""
    m = cd.Mechanism("chain")
    length, s = 0.25, np.linspace(-1.0, 1.0, LINKS)
    bend = 1.1  # the links are a polygon that is symmetric
    p, links = np.zeros(3), []
    for i in range(LINKS):
        angle, is_own = bend * s[i], i == LINKS // 2
        turned = euler.from_axis_angle(Y, -angle)
        tensor = inertia(0.002, n["moment"] if is_own else 0.004, 0.005)
        given = {"mass": n["mass"] if is_own else 0.5, "center": (0.125, 0, 0), "inertia": tensor}
        links.append(m.body(f"l{i}", position=p, orientation=turned, **given))
        p = p + length * np.array([np.cos(angle), 0.0, np.sin(angle)])
    m.revolute("j0", m.ground.frame(z=Y, x=X), links[0].frame(z=Y, x=X))
    for i in range(1, LINKS):
        tip = n["tip"] if i - 1 == LINKS // 2 else length
        if i % 2:
            m.universal(f"j{i}", links[i - 1].frame((tip, 0, 0), z=Z), links[i].frame(z=Y))
        else:
            m.spherical(f"j{i}", links[i - 1].point((tip, 0, 0)), links[i].point())
    m.spherical("end", links[-1].point((length, 0, 0)), m.ground.point(tuple(p)))
    at = m.ground.point((0.5 * p[0], 0.7, 1.0)), links[LINKS // 2].point((0.1, 0.02, 0))
    m.spring("coil", *at, stiffness=n["stiffness"], rest=0.3, damping=0.2)
    return m


def chain_cost() -> costs.Cost:
    return cd.integral(lambda s: s["l8"].point((0.1, 0, 0)).z ** 2) + cd.final(lambda s: s["l4"].velocity.y)


def chain_found(g: cd.Gradient) -> dict[str, float]:
    own = g.of("l8")
    j = g.of("j9").points[0, 0]
    return {"mass": own.mass, "moment": own.inertia[1, 1], "stiffness": g.of("coil").stiffness, "tip": j}


PLANAR: Numbers = {"mass": 1.0, "gy": -9.81, "stiffness": 30.0, "crank": 0.3, "rate": 2.0, "moment": 0.02}


def make_planar(n: Numbers) -> cd.Mechanism:
    """A planar four-bar of hinges: three of its equations are redundant."""
    m = cd.Mechanism("planar", gravity=(0, n["gy"], 0))
    A, D = np.zeros(3), np.array([0.9, 0.0, 0.0])
    B = 0.3 * np.array([np.cos(0.9), np.sin(0.9), 0.0])
    long, short, r = 0.8, 0.5, np.linalg.norm(D - B)
    lean = np.arctan2(*(D - B)[1::-1]) + np.arccos((long**2 + r**2 - short**2) / (2.0 * long * r))
    e = B + long * np.array([np.cos(lean), np.sin(lean), 0.0]) - D
    turned = [euler.from_axis_angle(Z, angle) for angle in (0.9, lean, np.arctan2(e[1], e[0]))]
    crank = m.body("crank", position=A, orientation=turned[0], **link(0.5, 0.15, 0.001, 0.004, 0.005))
    given = {"mass": n["mass"], "center": (0.4, 0.05, 0), "inertia": inertia(0.004, 0.018, n["moment"])}
    coupler = m.body("coupler", position=B, orientation=turned[1], **given)
    rocker = m.body("rocker", position=D, orientation=turned[2], **link(0.7, 0.25, 0.002, 0.008, 0.01))
    m.revolute("A", m.ground.frame(A, z=Z), crank.frame(z=Z))
    m.revolute("B", crank.frame((n["crank"], 0, 0), z=Z), coupler.frame(z=Z))
    m.revolute("C", coupler.frame((long, 0, 0), z=Z), rocker.frame((short, 0, 0), z=Z))
    m.revolute("D", m.ground.frame(D, z=Z), rocker.frame(z=Z))
    ends = m.ground.point((0.4, 0.9, 0)), coupler.point((0.5, 0, 0))
    m.spring("coil", *ends, stiffness=n["stiffness"], rest=0.3, damping=0.1)
    return m


def planar_cost() -> costs.Cost:
    near = cd.integral(lambda s: s["coupler"].point((0.5, 0.1, 0)).y ** 2 + s.coordinate("D") * s.rate("B"))
    return near + cd.final(lambda s: s["rocker"].velocity_of((0.3, 0.1, 0)).x)


def planar_found(g: cd.Gradient) -> dict[str, float]:
    own, B = g.of("coupler"), g.of("B").points
    assert np.isnan(B[:, 2]).all() and np.isfinite(B[:, :2]).all()  # along the axes hinges contradict each other
    return {
        "mass": own.mass, "moment": own.inertia[2, 2], "gy": g.gravity[1], "stiffness": g.of("coil").stiffness,
        "crank": B[0, 0],
    }  # fmt: skip


DRIVEN = PLANAR | {"rate": 0.0}


def make_driven(n: Numbers) -> cd.Mechanism:
    """The same with a driven crank."""
    m = make_planar(n)
    m.drive("hand", m["A"], lambda t: 0.9 + 1.3 * t + 0.2 * cd.sin(3.0 * t))
    return m


def driven_cost() -> costs.Cost:
    return cd.integral(lambda s: s.effort("hand") ** 2) ** 0.5 + cd.peak(lambda s: s.effort("hand"))


DRIVEN_RSUR = {**RSUR, "rate": 0.0}


def make_driven_rsur(n: Numbers) -> cd.Mechanism:
    m = make_rsur(n)
    m.drive("hand", m["A"], lambda t: 0.7 + 1.3 * t + 0.2 * cd.sin(3.0 * t))
    return m


def differences(f: Callable[[float], float], x: float, h: float, is_assembled: bool = False) -> float:
    """Central differences with steps h, 2h and 4h, extrapolated twice.

    is_assembled: the start is assembled again, by iterations whose second derivative may jump at x; then the errors are
    of the orders h and h², and else h² and h⁴.
    """
    d = [(f(x + k * h) - f(x - k * h)) / (2.0 * k * h) for k in (1, 2, 4)]
    if is_assembled:
        return (8.0 * d[0] - 6.0 * d[1] + d[2]) / 3.0
    a, b = (4.0 * d[0] - d[1]) / 3.0, (4.0 * d[1] - d[2]) / 3.0
    return (16.0 * a - b) / 15.0


CASES = {
    "rsur": (make_rsur, RSUR, rsur_cost, rsur_found, 1.0),
    "slider": (make_slider, SLIDER, slider_cost, slider_found, 0.3),
    "chain": (make_chain, CHAIN, chain_cost, chain_found, 0.3),
    "planar": (make_planar, PLANAR, planar_cost, planar_found, 1.0),
    "driven": (make_driven, DRIVEN, driven_cost, planar_found, 0.5),
    "driven_rsur": (make_driven_rsur, DRIVEN_RSUR, driven_cost, rsur_found, 0.5),
}
FOUND = {
    "rsur": "mass moment product cx cy stiffness rest damping gy gz crank tip foot viscous coulomb speed",
    "slider": "mass ixy center f at inward twist push k crank guide",
    "chain": "mass moment stiffness tip",
    "planar": "mass moment gy stiffness crank",
    "driven": "mass moment gy stiffness crank",
    "driven_rsur": "mass moment product cx cy stiffness rest gz crank viscous",
}
ASSEMBLED = ("crank", "tip", "foot", "guide")
STEP = 1e-3
_known: dict[str, tuple[Any, dict[str, float]]] = {}


def start_of(case: str) -> cd.State:
    """An assembled start with velocities."""
    make, numbers, *_ = CASES[case]
    m = make(numbers)
    state = m.assemble().state
    return m.solve_rates(state, {"A": numbers["rate"]}) if numbers.get("rate") else state


def run_of(case: str, numbers: Numbers, start: cd.State, duration: float) -> cd.Simulation:
    sim = CASES[case][0](numbers).simulate(duration, state=start, step=STEP)
    assert sim.ok, sim.text()
    return sim


def gradients(case: str) -> tuple[Any, dict[str, float]]:
    if case not in _known:
        _, numbers, cost, found, duration = CASES[case]
        start = start_of(case)
        _known[case] = start, found(run_of(case, numbers, start, duration).gradient(cost()))
    return _known[case]


def value_of(case: str, numbers: Numbers, start: cd.State) -> float:
    cost, duration = CASES[case][2], CASES[case][4]
    return value_at(run_of(case, numbers, start, duration), cost())


def value_at(sim: cd.Simulation, cost: costs.Cost) -> float:
    from cardan.analysis.gradient import cost_of

    return cost_of(sim, cost)


ALL = [(case, word) for case, words in FOUND.items() for word in words.split()]


@sampled("case, word", ALL, keep=14)
def test_gradients_are_those_of_differences(case: str, word: str) -> None:
    start, found = gradients(case)
    numbers = CASES[case][1]
    x = numbers[word]
    is_assembled = word in ASSEMBLED
    h = (3e-4 if is_assembled else 1e-3) * max(abs(x), 0.2)
    expected = differences(lambda y: value_of(case, {**numbers, word: y}, start), x, h, is_assembled)
    largest = max(abs(numbers[key] * value) for key, value in found.items()) / max(abs(x), 0.05)
    assert abs(found[word] - expected) <= max(RELATIVE * abs(expected), OF_LARGEST * largest)


def moved(start: cd.State, rates: cd.State, s: float) -> cd.State:
    """The start after moving for a time s with constant velocities."""
    assert rates.velocities is not None
    poses, v = start.coordinates.copy(), rates.velocities
    poses[:, :3] += s * v[:, :3]
    poses[:, 3:] = euler.multiply(poses[:, 3:], euler.exp(s * v[:, 3:]))
    given = {"velocities": start.velocities, "time": start.time, "angles": start.angles}
    return cd.State(start.names, start._index, poses, **given)


@pytest.mark.parametrize("case", ["rsur", "slider"])
def test_gradients_by_the_start_are_those_of_differences(case: str) -> None:
    """Along a motion that the joints allow, and by its speed."""
    make, numbers, cost, _, duration = CASES[case]
    start, m = start_of(case), make(numbers)
    along = m.solve_rates(start, {"A": 1.0})
    g = run_of(case, numbers, start, duration).gradient(cost())
    rates = {name: along[name] for name in along.names}
    own = {name: A.velocity @ g.start[name].position for name, A in rates.items()}
    turn = {name: along.velocities[k, 3:] @ g.start[name].rotation for k, name in enumerate(along.names)}
    expected = differences(lambda s: value_of(case, numbers, moved(start, along, s)), 0.0, 1e-3)
    assert sum(own.values()) + sum(turn.values()) == pytest.approx(expected, rel=1e-8)
    first = 0.0 if start.velocities is None else numbers["rate"]
    speed = sum(
        along.velocities[k, :3] @ g.start[name].velocity + along.velocities[k, 3:] @ g.start[name].angular_velocity
        for k, name in enumerate(along.names)
    )
    by_rate = differences(lambda r: value_of(case, numbers, m.solve_rates(start, {"A": r})), first, 1e-2)
    assert speed == pytest.approx(by_rate, rel=1e-8)


def test_a_run_with_other_outputs_has_the_same_gradient() -> None:
    start, m = start_of("rsur"), make_rsur(RSUR)
    cost = cd.final(lambda s: s.coordinate("A")) + cd.integral(lambda s: s.rate("D") ** 2)
    every = m.simulate(0.1, state=start, step=STEP).gradient(cost)
    few = m.simulate(0.1, state=start, step=STEP, times=[0.013, 0.0705, 0.1]).gradient(cost)
    assert few.value == pytest.approx(every.value, rel=1e-12)
    assert few.of("coupler").mass == pytest.approx(every.of("coupler").mass, rel=1e-9)


@pytest.mark.parametrize("rtol, bar", [(1e-6, 1e-6), (1e-9, 2e-8)])
def test_variable_steps(rtol: float, bar: float) -> None:
    """Against differences of runs with short constant steps; the gradient is that with the steps that were made."""
    start = start_of("rsur")
    cost = cd.final(lambda s: s["coupler"].point((2, 0, 0.1)).z + s["rocker"].velocity.x + s.coordinate("A"))

    def run(n: Numbers, **options: float) -> cd.Simulation:
        return make_rsur({**RSUR, **n}).simulate(1.0, state=start, **options)

    sim = run({}, rtol=rtol)
    g = sim.gradient(cost)
    assert g.value == pytest.approx(value_at(sim, cost), rel=1e-12)
    found = rsur_found(g)
    for word in ("mass", "gz", "crank"):
        x = RSUR[word]
        given = x, 3e-4 * x, word in ASSEMBLED
        expected = differences(lambda y, word=word: value_at(run({word: y}, step=5e-4), cost), *given)
        assert found[word] == pytest.approx(expected, rel=bar)


def test_an_effort_that_is_not_unique_is_refused() -> None:
    m = make_driven(DRIVEN)
    m.drive("other", m["A"], lambda t: 0.9 + 1.3 * t + 0.2 * cd.sin(3.0 * t))
    sim = m.simulate(0.02, step=STEP)
    with pytest.raises(cd.ModelError, match="'hand' is not unique"):
        sim.gradient(cd.final(lambda s: s.effort("hand")))
    with pytest.raises(cd.ModelError, match="'coil' cannot be in a cost"):
        sim.gradient(cd.final(lambda s: s.effort("coil")))


def test_a_limit_that_does_not_act_changes_nothing() -> None:
    found = []
    for bound in (None, 3.0):
        m = make_rsur(RSUR)
        if bound:
            m.limit("stop", m["A"], lower=-bound, upper=bound)
        g = m.simulate(0.2, state=start_of("rsur"), step=STEP).gradient(rsur_cost())
        found.append([g.value, *rsur_found(g).values()])
    assert found[0] == pytest.approx(found[1], rel=1e-9, abs=1e-11)


def test_a_step_that_does_not_divide_the_duration() -> None:
    start = start_of("rsur")
    cost = cd.final(lambda s: s.coordinate("A"))

    def run(mass: float) -> cd.Simulation:
        return make_rsur({**RSUR, "mass": mass}).simulate(0.0305, state=start, step=STEP)

    expected = differences(lambda x: value_at(run(x), cost), 2.0, 0.02)
    assert run(2.0).gradient(cost).of("coupler").mass == pytest.approx(expected, rel=1e-8)


# -- what is refused ---------------------------------------------------------------------------------------------------


def pendulum(gravity: float = 9.81, **given: Any) -> cd.Mechanism:
    m = cd.Mechanism("pendulum", gravity=(0.0, -gravity, 0.0))
    arm = m.body("arm", **{"mass": 1.0, "center": (0.4, 0, 0), "inertia": inertia(0.01, 0.02, 0.02), **given})
    m.revolute("A", m.ground.frame(), arm.frame())
    return m


ANGLE = cd.final(lambda s: s.coordinate("A"))


def with_limit(m: cd.Mechanism) -> None:
    m.limit("stop", m["A"], lower=-0.001, upper=3.0)


def with_function(m: cd.Mechanism) -> None:
    m.actuator("branching", m["A"], lambda t, x, v: 0.1 if t < 0.01 else -0.1 * v)


def with_rebound(m: cd.Mechanism) -> None:
    m.limit("stop", m["A"], lower=-2.0, upper=3.0, restitution=0.5)


def with_friction(m: cd.Mechanism) -> None:
    rotor = m.body("rotor", **link(1.0, 0.0, 0.1, 0.1, 0.2))
    m.revolute("F", m.ground.frame(), rotor.frame(), friction=cd.bearing(mu=0.3, radius=0.02))


def with_rates(m: cd.Mechanism) -> None:
    @cd.rate_primitive(i="point")
    def slow(i: Any) -> Any:
        return cd.rate(i).y - 0.1 * cd.rate(i).x

    m.constrain_rates("slow", slow, i=m["arm"].point((0.1, 0.0, 0.0)))


REFUSED = {
    "rk4": (None, {"method": "rk4"}, "method is 'rk4'"),
    "generalized_alpha": (None, {"method": "generalized_alpha"}, "generalized_alpha"),
    "baumgarte": (None, {"stabilization": "baumgarte"}, "stabilization is 'baumgarte'"),
    "limit": (with_limit, {}, "a limit or contact acts .'stop'"),
    "limit with restitution": (with_rebound, {}, "limit 'stop' has restitution=0.5; make it without restitution"),
    "friction of a joint": (with_friction, {}, "joints have friction .'F'.; remove"),
    "function": (with_function, {}, "load 'branching' is a function that Python calls"),
    "rates": (with_rates, {}, "constraints of rates"),
    "inertia": (lambda m: setattr(m["A"], "inertia", 0.1), {}, "joints have inertias"),
}


@pytest.mark.parametrize("word", REFUSED)
def test_what_is_not_differentiated_is_refused_by_name(word: str) -> None:
    change, options, text = REFUSED[word]
    m = pendulum()
    if change is not None:
        change(m)
    sim = m.simulate(0.02, **{"step": STEP, **options})
    assert sim.ok, sim.text()
    with pytest.raises(cd.ModelError, match=text):
        sim.gradient(ANGLE)


def test_a_run_that_ended_early_is_refused() -> None:
    sim = pendulum().simulate(10.0, step=1e-5, max_seconds=1e-3)
    with pytest.raises(cd.ModelError, match="ended early"):
        sim.gradient(ANGLE)


def test_a_massless_body_is_refused() -> None:
    m = pendulum()
    rod = m.body("rod", position=X)
    m.revolute("B", m["arm"].frame(X), rod.frame())
    m.fixed("end", rod.frame((0.5, 0, 0), x=X), m.body("bob", position=(1.5, 0, 0), mass=1.0).frame(x=X))
    sim = m.simulate(0.02, step=STEP)
    with pytest.raises(cd.ModelError, match="'rod' has no mass"):
        sim.gradient(ANGLE)


def test_what_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """New attributes of equations, and steps that are not those of the sweep."""
    sim = pendulum().simulate(0.02, step=STEP)
    monkeypatch.setattr(sim._run[0].equations, "magnets", [1.0], raising=False)
    with pytest.raises(cd.ModelError, match="magnets"):
        sim.gradient(ANGLE)
    monkeypatch.undo()
    sim.gradient(ANGLE)
    sim._results[7:, 9] *= 1.0 + 1e-5  # as if something had pushed
    with pytest.raises(cd.ModelError, match="could not be made again"):
        sim.gradient(ANGLE)


def test_names_of_tables_that_are_known_are_all_there() -> None:
    """The lists of what is known do not contain names that have gone."""
    sim = pendulum().simulate(0.01, step=STEP)
    known = vars(sim._equations).keys()
    assert set(differentiable.OF_EQUATIONS.split()) <= set(known)
    assert set(differentiable.OF_CONTENTS.split()) <= set(type(sim._equations.system.index.contents).__slots__)
    assert type(sim._run[0]) is Integration


@pytest.mark.parametrize(
    "cost, text",
    [
        (3.0, "it must be made of cd.final"),
        (cd.final(lambda s: s["arm"].position), "it returned a vector"),
        (cd.final(lambda s: s["leg"].position.x), "leg"),
        (cd.final(lambda s: float(s.time)), "not a number"),
        (cd.final(lambda s: s.coordinate("A") if s.time > 1 else 0.0), "must not branch"),
        (cd.final(lambda s: cd.log(-1.0 - s["arm"].position.x)), "the cost is nan"),
    ],
)
def test_costs_that_are_wrong_are_named(cost: Any, text: str) -> None:
    sim = pendulum().simulate(0.01, step=STEP)
    with pytest.raises(cd.ModelError, match=text):
        sim.gradient(cost)


def test_a_power_of_zero_has_no_derivative() -> None:
    sim = pendulum(gravity=0.0).simulate(0.01, step=STEP)
    text = r"no derivative where cd.integral\(…\) to the power 0.5 is taken of zero"
    with pytest.raises(cd.ModelError, match=text):
        sim.gradient(1.0 + cd.integral(lambda s: s.rate("A") ** 2) ** 0.5)


def test_arguments_of_costs_are_checked() -> None:
    for call in (
        lambda: cd.final(3.0),
        lambda: cd.peak(lambda s: s.time, p=1),
        lambda: ANGLE + "x",
        lambda: ANGLE**None,
    ):
        with pytest.raises(cd.ModelError):
            call()
    g = pendulum().simulate(0.01, step=STEP).gradient(ANGLE)
    with pytest.raises(cd.ModelError, match="'leg'"):
        g.of("leg")
    with pytest.raises(AttributeError, match="constant"):
        made = pendulum()
        made.friction("rub", made["A"], viscous=0.1)
        _ = made.simulate(0.01, step=STEP).gradient(ANGLE).of("rub").mass


def test_a_misfit_is_that_of_measured_values() -> None:
    t = [0.0, 0.012, 0.1]
    y = [0.1, -0.2, 0.3]

    def run(gravity: float) -> cd.Simulation:
        return pendulum(gravity).simulate(0.1, step=STEP)

    cost = cd.misfit(lambda s: s.coordinate("A"), t, y)
    g = run(9.81).gradient(cost)
    angles = run(9.81).coordinate("A")
    assert g.value == pytest.approx(np.mean((angles[[0, 12, 100]] - y) ** 2), rel=1e-12)
    expected = differences(lambda x: value_at(run(x), cost), 9.81, 1e-2)
    assert -g.gravity[1] == pytest.approx(expected, rel=1e-8)
    with pytest.raises(cd.ModelError, match=r"t = 0.0125 s"):
        run(9.81).gradient(cd.misfit(lambda s: s.time, [0.0125], [1.0]))
    for times, values in (([0.0, 0.1], [1.0]), ([], []), ([0.0], [np.nan]), ("x", [1.0])):
        with pytest.raises(cd.ModelError):
            cd.misfit(lambda s: s.time, times, values)


def test_simple_forms_are_those_of_the_tapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reverse kernels of coincidence, dot_1 and aligned, by hand, against those that follow from their graphs."""
    sim = run_of("rsur", RSUR, start_of("rsur"), 0.05)
    assert {"coincidence", "dot_1", "aligned"} <= {row.primitive.name for row in sim._equations.system.rows}
    by_hand = rsur_found(sim.gradient(rsur_cost()))
    monkeypatch.setattr(adjoint, "SIMPLE", {})
    assert rsur_found(sim.gradient(rsur_cost())) == pytest.approx(by_hand, rel=1e-11)


def test_quadrature_of_equal_steps_is_that_of_all_polynomials() -> None:
    t = np.linspace(0.3, 1.7, 31)
    uneven = t.copy()
    uneven[7] += 1e-7
    assert costs.quadrature(t) == pytest.approx(costs.quadrature(uneven), abs=1e-6)
    assert costs.quadrature(t) @ t**3 == pytest.approx((1.7**4 - 0.3**4) / 4.0, rel=1e-14)


def test_quadrature_is_exact_for_cubic_polynomials() -> None:
    t = np.array([0.0, 0.1, 0.35, 0.5, 0.9, 1.0])
    w = costs.quadrature(t)
    for k in range(4):
        assert w @ t**k == pytest.approx(1.0 / (k + 1), rel=1e-14)


def test_the_gradient_of_a_pendulum_is_that_of_its_closed_form() -> None:
    """Small swings: φ = φ₀ cos ω t with ω² = m g c/(I + m c²), so ∂φ/∂g = −φ₀ sin(ω t) t ω/(2 g)."""
    g0, c, first = 9.81, 0.4, 1e-5
    hanging = cd.Mechanism("hanging", gravity=(0.0, -g0, 0.0))
    turned = euler.from_axis_angle(Z, -np.pi / 2 + first)
    given = {"mass": 1.0, "center": (c, 0, 0), "inertia": inertia(0.01, 0.02, 0.02)}
    arm = hanging.body("arm", orientation=turned, **given)
    hanging.revolute("A", hanging.ground.frame(), arm.frame())
    found = hanging.simulate(1.0, step=STEP).gradient(ANGLE)
    w = np.sqrt(g0 * c / (0.02 + c * c))
    assert found.value + np.pi / 2 == pytest.approx(first * np.cos(w), rel=1e-6)
    assert -found.gravity[1] == pytest.approx(-first * np.sin(w) * w / (2.0 * g0), rel=1e-6)


# -- parameters --------------------------------------------------------------------------------------------------------

DRAWN = {"L": 0.7, "rho": 1.4, "gz": 9.81, "tilt": 0.1, "k": 30.0, "push": 0.4}


def with_parameters() -> cd.Mechanism:
    """Formulas in masses, centres, inertias, gravity, points and axes of joints, and in loads."""
    m = cd.Mechanism("formulas")
    L, rho, gz, tilt, k, push = (m.parameter(name, value) for name, value in DRAWN.items())
    m.parameter("idle", 1.0)
    m.gravity = (0.1, 0.0, -gz)
    rod = rho * L**3 / 12.0
    tensor = [[0.01, 0.0, 0.02 * rod], [0.0, rod, 0.0], [0.02 * rod, 0.0, rod]]
    arm = m.body("arm", mass=rho * L, center=(0.5 * L, 0, 0), inertia=tensor)
    bob = m.body("bob", position=(DRAWN["L"], 0, 0), **link(1.0, 0.3, 0.01, 0.02, 0.03))
    m.revolute("A", m.ground.frame(z=(0, 1, tilt)), arm.frame(z=(0, 1, tilt)))
    m.universal("B", arm.frame((L, 0, 0), z=Z), bob.frame(z=Y))
    at = m.ground.point((0.5, 0, 0.8)), bob.point((0.6 * L, 0.1, 0))
    m.spring("coil", *at, stiffness=2.0 * k, rest=0.5 * L, damping=0.01 * k)
    m.force("shove", bob.point((0.5 * L, 0, 0)), (0.1, push, 0.2), axes="body")
    return m


def at_values(start: cd.State, **values: float) -> cd.State:
    given = {"velocities": start.velocities, "angles": start.angles, "time": start.time}
    return cd.State(start.names, start._index, start.coordinates, **given, variables={**start.variables, **values})


def formula_cost(m: cd.Mechanism) -> costs.Cost:
    """It reads a point of a joint, which is a formula."""
    tip = m["B"].ends[0]
    return cd.integral(lambda s: s.rate("A") ** 2) + cd.final(lambda s: s["arm"].point(tip).z + s.coordinate("A"))


def test_gradients_by_parameters_are_those_of_differences() -> None:
    m = with_parameters()
    start, cost = m.assemble().state, formula_cost(m)
    g = m.simulate(0.5, state=start, step=STEP).gradient(cost)
    assert set(g.parameters) == {*DRAWN, "idle"} and g["idle"] == 0.0
    for name, x in DRAWN.items():

        def value(y: float, name: str = name) -> float:
            return value_at(m.simulate(0.5, state=at_values(start, **{name: y}), step=STEP), cost)

        assert g[m[name]] == pytest.approx(differences(value, x, 3e-4, True), rel=1e-8)
    with pytest.raises(cd.ModelError, match="'mu'"):
        g["mu"]
    own = m.simulate(0.01, state=start, step=STEP).gradient(cost, ["k"])
    assert list(own.parameters) == ["k"]
    with pytest.raises(cd.ModelError, match="not by 'L'"):
        own["L"]


def test_a_parameter_that_locks_redundant_joints_is_refused() -> None:
    """d shifts one of two coaxial bearings on a turned body, both shifts both of them."""
    m = cd.Mechanism("two bearings", gravity=(0.0, -9.81, 0.0))
    d, both, away = (m.parameter(name, 0.0) for name in ("d", "both", "away"))
    turned = euler.from_axis_angle(X, 0.3)
    tensor = euler.matrix(turned) @ inertia(0.01, 0.02, 0.03) @ euler.matrix(turned).T
    arm = m.body("arm", mass=1.0, center=(0.4, 0.0, 0.1), inertia=tensor)
    m.revolute("A", m.ground.frame((both, 0.0, 0.0)), arm.frame((0.0, away, 0.0)))
    m.revolute("B", m.ground.frame((both + d, 0.0, 1.0)), arm.frame((0.0, away, 1.0)))
    found = m.simulate(0.05, step=STEP).gradient(cd.final(lambda s: s["arm"].velocity.x + s["arm"].position.x))
    with pytest.raises(cd.ModelError, match="'d' is not known: a change of it locks"):
        found["d"]
    assert found["both"] == pytest.approx(1.0, rel=1e-8)
    assert np.isfinite(found["away"])


def test_an_objective_gives_values_and_gradients_of_runs() -> None:
    m = with_parameters()
    cost = formula_cost(m)
    f = m.objective(0.2, cost, over=["L", m["k"]], step=STEP)
    assert f.names == ("L", "k") and f.x0.tolist() == [0.7, 30.0] and f.bounds == [(-np.inf, np.inf)] * 2
    x = np.array([0.72, 28.0])
    value, slope = f(x)
    for k in range(2):
        unit = np.eye(2)[k]
        assert slope[k] == pytest.approx(
            differences(lambda h, unit=unit: f(x + h * unit)[0], 0.0, 3e-4, True), rel=1e-8
        )
    assert len(f.history) == 13 and f.history[0][1] == value and m["L"].value == 0.7
    sim = m.simulate(0.2, state=at_values(f.start, L=0.72, k=28.0), step=STEP)
    assert value == pytest.approx(value_at(sim, cost), rel=1e-13)


def test_masses_and_friction_are_identified_from_a_noisy_run() -> None:
    """A swing of one second with noise of 0.1 mrad: both numbers within some parts per thousand, in few runs."""

    def swing(weight: float, viscous: float) -> cd.Mechanism:
        m = cd.Mechanism("swing", gravity=(0.0, -9.81, 0.0))
        w, c = m.parameter("weight", weight, lower=0.1), m.parameter("viscous", viscous, lower=0.0)
        arm = m.body("arm", mass=w, center=(0.4, 0, 0), inertia=inertia(0.01, 0.02, 0.02))
        m.revolute("A", m.ground.frame(), arm.frame())
        m.spring("coil", m.ground.point((0.5, -0.8, 0)), arm.point((0.6, 0, 0)), stiffness=20.0, rest=0.6)
        m.friction("rub", m["A"], viscous=c)
        return m

    measured = swing(1.7, 0.08).simulate(1.0, step=2e-3)
    angles = measured.coordinate("A") + 1e-4 * np.random.default_rng(2).standard_normal(len(measured.times))
    m = swing(1.0, 0.02)
    cost = cd.misfit(lambda s: 1e3 * s.coordinate("A"), measured.times, 1e3 * angles)
    f = m.objective(1.0, cost, ["weight", "viscous"], step=2e-3)
    unit = np.array([1.0, 0.1])

    def scaled(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = f(z * unit)
        return value, slope * unit

    bounds = [(0.1, 10.0), (0.0, 10.0)]
    found = minimize(scaled, f.x0 / unit, jac=True, bounds=bounds, method="L-BFGS-B")
    assert found.x * unit == pytest.approx([1.7, 0.08], rel=5e-3) and len(f.history) < 60
    assert found.fun == pytest.approx(0.1**2, rel=0.2)


def test_objectives_name_what_is_wrong() -> None:
    m = with_parameters()
    cost = formula_cost(m)
    for given, text in (
        ((0.1, 3.0, ["L"]), "it must be made of"),
        ((0.1, cost, "L"), "it must be a list"),
        ((0.1, cost, []), "over is empty"),
        ((0.1, cost, ["mu"]), "'mu'"),
    ):
        with pytest.raises(cd.ModelError, match=text):
            m.objective(*given, step=STEP)
    f = m.objective(0.01, cost, ["L", "rho"], step=STEP)
    for x, text in (([1.0], "2 finite numbers"), ([np.nan, 1.0], "2 finite"), ([0.7, -1.0], "rho = -1")):
        with pytest.raises(cd.ModelError, match=text):
            f(x)
