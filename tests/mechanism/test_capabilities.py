"""What a model can contain × what can be done with it.

A new joint, coupling, load or verb gets a row or a column here.  A cell that cannot work must be refused with an error
that names the item.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import pytest
from scipy.linalg import block_diag

import cardan as cd
from cardan.constraints.registry import Primitive
from cardan.constraints.signal import Signal
from cardan.constraints.user import Recipe
from cardan.dynamics import loads
from cardan.dynamics.functions import Called
from cardan.files.printing import primitive_rows
from cardan.joints import REGISTRY
from cardan.math import euler
from cardan.view.scene import scene, unpack
from fuzz.oracles.joints import JOINTS
from fuzz.oracles.loads import LOADS, Rig

X, Y, Z = np.eye(3)


def branching(t, angle, rate):
    """An effort that cannot be recorded: it is called by Python."""
    return 0.1 if t < 0.01 else -0.1 * rate


def pushing(t, state):
    return (0.1, 0.2 * t, 0.0)


def sine(angle):
    return 0.3 * cd.sin(angle)


def ramp(t):
    return 0.2 * t


@cd.primitive(i="point", j="point", up="vector of i")
def equal_height(i, j, up, *, offset=0.0):
    return cd.dot(up, j - i) - offset


@cd.primitive(i="point")
def in_world(i):
    return i.y


@cd.rate_primitive(i="point", j="point")
def as_fast(i, j):
    return cd.rate(i).y - 0.5 * cd.rate(j).x


def base() -> cd.Mechanism:
    """A crank on the ground, a slide on the ground, and a wheel on the crank."""
    m = cd.Mechanism("base", gravity=(0.3, -9.0, 1.0))
    inertia = np.diag([0.1, 0.2, 0.25])
    for name, position in (("crank", (0, 0, 0)), ("carriage", (0, 0, 2)), ("wheel", (1, 0, 0))):
        m.body(name, position=position, mass=2.0, inertia=inertia, center=(0.1, 0.2, 0.0))
    m.revolute("A", m.ground.frame(), m["crank"].frame())
    m.prismatic("P", m.ground.frame((0, 0, 2), z=X), m["carriage"].frame(z=X))
    m.revolute("W", m["crank"].frame((1, 0, 0)), m["wheel"].frame())
    return m


def with_joint(kind: str) -> Callable[[cd.Mechanism], None]:
    """One more part, joined to the crank by a joint of that kind."""
    d, R, _, options = JOINTS[kind].sample

    def add(m: cd.Mechanism) -> None:
        is_first = REGISTRY[kind].takes == ("point", "frame")  # then end a is on the part, at −Rᵀd with Rᵀ in end b
        at, turned = (-R.T @ d, R.T) if is_first else (d, R)
        place = {"position": at + 0.5 * X, "orientation": turned}
        part = m.body("part", **place, mass=1.0, inertia=np.diag([0.1, 0.1, 0.1]))
        a = m["crank"].frame((0.5, 0, 0), x=X)
        ends = (part.point(), a) if is_first else (a, part.frame(x=X))
        getattr(m, kind)("new", *ends, **options)

    return add


def with_masses_of_a_parameter(m: cd.Mechanism) -> None:
    """In all numbers of a body, in gravity, and in the inertia of a joint."""
    rho = m.parameter("rho", 1.5, lower=0.1)
    m["wheel"].mass, m["wheel"].center = rho * 0.8, (0.0, 0.01 * rho, 0.0)
    m["wheel"].inertia = (0.01 * rho, 0.01 * rho, 0.02 * rho)
    m.gravity = (0.0, 0.0, -6.0 * rho)
    m["A"].inertia = 0.01 * rho


def with_loads_of_a_parameter(m: cd.Mechanism) -> None:
    """In numbers of laws, and in the components of a force."""
    k = m.parameter("k", 1.5, lower=0.1)
    m.spring("new", m["W"], stiffness=20.0 * k, rest=0.1 * k, damping=0.2 * k)
    m.force("push", m["carriage"].point(), (k, 0.0, -k))


def with_a_driver_of_a_parameter(m: cd.Mechanism) -> None:
    """In place of the value of a driver."""
    m.drive("new", m["W"], 0.1 * m.parameter("w", 0.3))


def with_parameters(m: cd.Mechanism) -> None:
    """Formulas in the frames of a joint, and at the point of a load."""
    length, tilt = m.parameter("length", 0.5, lower=0.1), m.parameter("tilt", 0.2)
    part = m.body("part", position=(0.5, 0, 0), mass=1.0, inertia=np.diag([0.1, 0.1, 0.1]))
    m.revolute("new", m["crank"].frame((length, 0, 0), z=(0, tilt, 1)), part.frame(z=(0, 0.5 * tilt, 0.5)))
    m.force("push", part.point((length, 0, 0)), (0.1, 0.0, 0.0))


def with_period(m: cd.Mechanism) -> None:
    """An angle whose values are the same after a turn."""
    turn = m.parameter("turn", 0.2, period=2 * np.pi)
    part = m.body("part", position=(0.5, 0, 0), mass=1.0, inertia=np.diag([0.1, 0.1, 0.1]))
    m.fixed("new", m["crank"].frame((0.5, 0, 0), x=(cd.cos(turn), cd.sin(turn), 0)), part.frame(x=X))


def with_contact(mode: str) -> Callable[[cd.Mechanism], None]:
    """A ball in a shell that the carriage carries, or a disc on the wheel on a disc of the ground."""
    geometry = cd.geometry

    def add(m: cd.Mechanism) -> None:
        if mode == "curves":
            m.prismatic("guide", m.ground.frame((1, 0, 0), z=X), m.body("part", position=(1.85, 0, 0)).frame(z=X))
            m.contact("new", m["wheel"].attach(geometry.ellipse(0.5, 0.4)), m["part"].attach(geometry.circle(0.35)))
            return
        ball = m.body("ball", position=(0.0, 0.0, 1.3), mass=1.0, inertia=0.004 * np.eye(3))
        shell = m["carriage"].attach(geometry.sphere(0.8))
        m.contact("new", shell, ball.attach(geometry.ellipsoid(0.1, 0.1, 0.1)), mode=mode, side="inside")

    return add


BY_DIFFERENCES = {
    "contact by differences": "slide",
    "contact by differences, roll": "roll",
    "contact by differences, roll_without_spin": "roll_without_spin",
}


def with_pair(kind: str) -> Callable[[cd.Mechanism], None]:
    """A part that touches the carriage: curves in space, a wheel, a point on a surface, a ball on a trimmed face."""
    geometry = cd.geometry

    def add(m: cd.Mechanism) -> None:
        tilted = ("xyz", (1.3, 0.2, 0.1)) if kind in ("space", "wheel") else (1, 0, 0, 0)
        at = {
            "space": (1.0, 0.1, 2.3),
            "wheel": (0.1, 0.2, 2.3),
            "point": (0.5, 0.0, 2.4),
            **dict.fromkeys(BY_DIFFERENCES.values(), (0.3, 0.1, 2.3)),
        }.get(kind, (0.1, 0.0, 2.1))
        part = m.body("part", position=at, orientation=tilted, mass=1.0, inertia=0.1 * np.eye(3))
        if kind == "space":
            rings = m["carriage"].attach(geometry.circle(1.0)), part.attach(geometry.circle(0.4))
            m.contact("new", *rings, side="crossing")
        elif kind == "wheel":
            m.wheel("new", part.frame(), 0.3, m["carriage"].attach(geometry.plane()))
        elif kind == "point":
            tip = part.attach(geometry.analytic.Point((0.0, 0.0, 0.1)))
            m.contact("new", m["carriage"].attach(geometry.torus(0.5, 0.2)), tip)
        elif kind in BY_DIFFERENCES.values():
            spheres = m["carriage"].attach(geometry.sphere(0.1)), part.attach(geometry.sphere(0.05))
            m.contact("new", *spheres, jacobian="differences", mode=kind)
        else:
            m.contact("new", m["carriage"].attach(trimmed_plate()), part.attach(geometry.sphere(0.1)))

    return add


def trimmed_plate() -> cd.geometry.Face:
    """A square of 2 m, trimmed to a disc of 0.5 m."""
    x, y = np.meshgrid([-1.0, 1.0], [-1.0, 1.0], indexing="ij")
    plate = cd.geometry.Surface(np.stack([x, y, 0 * x], axis=-1), degree=1)
    (u0, u1), (v0, v1) = plate.bounds
    t = np.linspace(0, 2 * np.pi, 65)
    ring = np.stack([(u0 + u1) / 2 + (u1 - u0) / 4 * np.cos(t), (v0 + v1) / 2 + (v1 - v0) / 4 * np.sin(t)], axis=1)
    return cd.geometry.Face(plate, [cd.geometry.Curve(ring, degree=1)])


def with_point(shape: str) -> Callable[[cd.Mechanism], None]:
    """A part with a point on a shape of the carriage."""

    def add(m: cd.Mechanism) -> None:
        part = m.body("part", position=(0.5, 0.0, 2.4), mass=1.0, inertia=0.1 * np.eye(3))
        if shape == "surface":
            m.point_on_surface("new", part.point((0, 0, 0.1)), m["carriage"].attach(cd.geometry.torus(0.5, 0.2)))
        elif shape in ("frenet", "least_turning"):
            m.path("new", part.frame((0, 0, 0.1)), m["carriage"].attach(cd.geometry.ellipse(0.5, 0.3)), follow=shape)
        else:
            m.point_on_curve("new", part.point((0, 0, 0.1)), m["carriage"].attach(cd.geometry.ellipse(0.5, 0.3)))

    return add


def with_collisions(m: cd.Mechanism) -> None:
    """Parts that must not overlap, and do not."""
    m["crank"].attach(cd.shapes.box(0.1, 0.1, 0.1))
    part = m.body("part", position=(3, 0, 0), mass=1.0, inertia=np.diag([0.1, 0.1, 0.1]))
    part.attach(cd.shapes.cylinder(0.2, 0.1))
    m.collide("all", name="new")


def with_flexible(m: cd.Mechanism) -> None:
    """A rod on the crank, whose other end is pushed aside."""
    rod = m.body("new")
    section = {"area": 1e-4, "second_moments": 1e-9, "young": 1e10, "density": 1000.0}
    rod.flexible(cd.elastic.beam(0.5, **section, bending=2, stretch=0))
    m.fixed("clamp", m["crank"].frame(), rod.frame())
    m.distance("push", m["crank"].point((0.5, 0.1, 0.0)), rod.point((0.5, 0, 0)), 0.09)


def with_load(kind: str) -> Callable[[cd.Mechanism], object]:
    """Two more parts with a load of that kind between them."""
    return lambda m: LOADS[kind].cases[0](Rig(1, m=m, name="new"))


def with_opening(m: cd.Mechanism) -> None:
    """A ball above a floor, which it may hit."""
    ball = m.body("ball", position=(0.0, 0.0, 5.0), mass=1.0, inertia=0.004 * np.eye(3))
    floor = m.ground.attach(cd.geometry.plane(), m.ground.frame((0.0, 0.0, -3.0)))
    m.contact("new", floor, ball.attach(cd.geometry.sphere(0.1)), unilateral=True, restitution=0.5)


CAPABILITIES: dict[str, Callable[[cd.Mechanism], object]] = {
    **{kind: with_joint(kind) for kind, made in REGISTRY.items() if made.is_between_places},
    "gear": lambda m: m.gear("new", m["A"], m["W"], ratio=-2.0),
    "belt": lambda m: m.belt("new", m["A"], m["W"], radius_1=0.1, radius_2=0.2),
    "rack": lambda m: m.rack("new", m["A"], m["P"], radius=0.1),
    "couple": lambda m: m.couple("new", m["A"], m["P"], sine),
    "couple by a spline": lambda m: m.couple("new", m["A"], m["P"], cd.spline((-1, 0, 1, 2), (0.1, 0.0, 0.2, 0.3))),
    "drive": lambda m: m.drive("new", m["W"], ramp),
    "drive by a table": lambda m: m.drive("new", m["W"], ((0, 1, 2, 3), (0.0, 0.2, 0.1, 0.4))),
    "limit": lambda m: m.limit("new", m["W"], lower=-0.01, upper=2.0),
    "limit with restitution": lambda m: m.limit("new", m["W"], lower=-0.01, upper=2.0, restitution=0.5),
    "constrain": lambda m: m.constrain(
        "new", equal_height, i=m.ground.point(), j=m["wheel"].point((0.2, 0, 0)), up=m.ground.vector(0, 1, 0)
    ),
    "knife_edge": lambda m: m.knife_edge("new", m["wheel"].frame((0.3, 0, 0), z=Y)),
    "constrain_rates": lambda m: m.constrain_rates(
        "new", as_fast, i=m["wheel"].point((0.2, 0, 0)), j=m["carriage"].point()
    ),
    "constrain_rates with a value": lambda m: m.constrain_rates(
        "new", as_fast, i=m["wheel"].point((0.2, 0, 0)), j=m["carriage"].point(), value=ramp
    ),
    "spring between points": lambda m: m.spring(
        "new", m.ground.point((0, 1, 0)), m["wheel"].point(), stiffness=9.0, rest=0.5, damping=0.1
    ),
    "spring": lambda m: m.spring("new", m["W"], stiffness=2.0, rest=0.1, damping=0.1),
    "force": lambda m: m.force("new", m["wheel"].point((0.1, 0, 0)), (1.0, 0.0, 0.5)),
    "force by a function": lambda m: m.force("new", m["wheel"].point((0.1, 0, 0)), pushing),
    "torque": lambda m: m.torque("new", m["wheel"], (0.0, 0.0, 0.5), axes="body"),
    "actuator": lambda m: m.actuator("new", m["W"], 0.3),
    "actuator by a function": lambda m: m.actuator("new", m["W"], branching),
    "friction": lambda m: m.friction("new", m["W"], viscous=0.1, coulomb=0.2),
    "bushing": lambda m: m.bushing("new", m.ground.frame((1, 0, 0)), m["wheel"].frame(), (9.0,) * 6, (0.1,) * 6),
    "damper": lambda m: m.damper("new", m.ground.frame((1, 0, 0)), m["wheel"].frame(), (0.1,) * 6),
    **{
        f"contact that slides by {mode}" if mode == "curves" else f"contact, {mode}": with_contact(mode)
        for mode in ("slide", "roll", "roll_without_spin", "curves")
    },
    "contact of curves in space": with_pair("space"),
    "contact, wheel": with_pair("wheel"),
    "contact of a point and a surface": with_pair("point"),
    "contact with a trimmed face": with_pair("trimmed"),
    "point_on_surface": with_point("surface"),
    "point_on_curve": with_point("curve"),
    "path, frenet": with_point("frenet"),
    "path, least_turning": with_point("least_turning"),
    **{name: with_pair(mode) for name, mode in BY_DIFFERENCES.items()},
    "a parameter in a joint": lambda m: m.rack("new", m["A"], m["P"], radius=m.parameter("r", 0.1)),
    "a parameter in points": with_parameters,
    "a parameter in masses": with_masses_of_a_parameter,
    "a parameter in loads": with_loads_of_a_parameter,
    "a parameter in a driver": with_a_driver_of_a_parameter,
    "a parameter with a period": with_period,
    "a function of time as a parameter": lambda m: m.rack("new", m["A"], m["P"], radius=0.1, offset=ramp),
    "constrain one body": lambda m: m.constrain("new", in_world, i=m["wheel"].point((0.2, 0, 0))),
    "a joint with friction": lambda m: m.revolute(
        "new",
        m["crank"].frame((0.5, 0, 0)),
        m.body("part", position=(0.5, 0, 0), mass=1.0, inertia=0.1 * np.eye(3)).frame(),
        friction=cd.bearing(0.1, 0.02),
    ),
    "a joint with an inertia": lambda m: setattr(m["A"], "inertia", 0.3),
    "attach": lambda m: m.body("new", position=(5, 5, 5)).attach(cd.shapes.gear(0.01, 20, 0.02), density=7850.0),
    "attach looks alone": lambda m: m["wheel"].attach(cd.shapes.tube(0.3, 0.2, 0.1), color="#336699"),
    "a flexible body": with_flexible,
    "a free body": lambda m: m.body("new", position=(5, 5, 5), mass=1.0, inertia=np.eye(3)),
    "collide": with_collisions,
    "contact that opens": with_opening,
    "redundant joints": lambda m: m.revolute("new", m["crank"].frame((1, 0, 0.3)), m["wheel"].frame((0, 0, 0.3))),
}
CAPABILITIES |= {kind: with_load(kind) for kind in loads.REGISTRY if kind not in CAPABILITIES}


def assemble(m):
    result = m.assemble()
    assert result.ok, result.text()


def assemble_many(m):
    assert m.assemble_many([m.state, m.assemble().state]).ok.all()


def diagnose(m):
    assert m.diagnose(m.assemble().state).assembled


def step(m):
    session = m.session(closed=False)
    while (status := session.step()) == cd.SessionStatus.MOVING:
        pass
    assert status == cd.SessionStatus.IDLE


def move(m):
    driven = m.copy()
    driven.drive("motor", driven["A"], ramp)
    motion = driven.move([0.0, 0.02, 0.04])
    assert motion.ok, motion.text()
    if motion.undriven:  # its forces depend on what the undriven freedoms do
        with pytest.raises(cd.ModelError, match=r"freedom|friction"):
            motion.effort("motor")
    else:
        assert np.isfinite(motion.effort("motor")).all()


def session(m):
    """Both modes: a drag of the crank that closes every joint; what a mode cannot do is refused by name."""
    for mode in ("kinematic", "dynamic"):
        try:
            ses = m.session(mode=mode)
        except cd.ModelError as error:
            words = ("differences", "flexible", "collisions", "contacts that open")
            refuses_all = any(word in str(error) for word in words)
            refuses_all |= mode == "dynamic" and ("restitution" in str(error) or "friction" in str(error))
            assert (mode == "kinematic" or m.system.timed or refuses_all) and "'new" in str(error)
            continue
        with ses:
            hand = ses.grasp("crank", (0.5, 0.0, 0.0))
            hand.target = hand.point + np.array([0.0, 0.001, 0.0])
            for _ in range(3):
                assert ses.step() in (cd.SessionStatus.REACHED, cd.SessionStatus.MOVING, cd.SessionStatus.SATURATED)
            assert m.diagnose(ses.state, tolerance=1e-10).assembled
            assert np.isfinite(hand.force).all()


def simulate(m):
    simulation = m.simulate(0.04, rtol=1e-6, times=[0.0, 0.02, 0.04])
    assert simulation.ok, simulation.text()
    assert simulation.drift.max() < 1e-12
    assert np.isfinite(simulation.energy.total).all()
    assert np.isfinite(simulation.reaction("A").force).all()


def simulate_many(m):
    runs = m.simulate_many(0.02, states=[m.state] * 2, outputs=["A", "max(force(A))"], step=5e-3, workers=2)
    assert runs.ok.all(), runs.text()
    alone = m.simulate(0.02, step=5e-3)
    assert (runs["A"] == alone.coordinate("A")).all()
    assert (runs["max(force(A))"] == np.linalg.norm(alone.reaction("A").force, axis=1).max()).all()


def gradients(m):
    """Of a run by gravity: those of differences, or refused."""
    start = m.assemble().state

    def run(g):
        changed = m.copy()
        changed.gravity = (g, -9.0, 1.0)
        return changed.simulate(0.02, state=start, step=1e-3)

    def read(s):
        return s["crank"].velocity_of((1, 0, 0)).x + s["wheel"].point((0.1, 0, 0)).y + 0.3 * s["carriage"].velocity.x

    simulation = run(0.3)
    try:
        found = simulation.gradient(cd.final(read)).gravity[0]
    except cd.ModelError as error:
        assert "no gradient" in str(error), error
        return
    up, down = (run(0.3 + h).gradient(cd.final(read)).value for h in (0.1, -0.1))
    assert found == pytest.approx((up - down) / 0.2, rel=1e-5, abs=1e-9)


def move_many(m):
    driven = m.copy()
    driven.drive("motor", driven["A"], ramp)
    runs = driven.move_many([0.0, 0.02, 0.04], starts=[driven.state] * 2, outputs=["A", "x(wheel)"], workers=2)
    assert runs.ok.all(), runs.text()
    alone = driven.move([0.0, 0.02, 0.04])
    assert (runs["A"] == alone.coordinate("A")).all()
    assert (runs["x(wheel)"] == alone.positions("wheel")[:, 0]).all()


def equilibrium(m):
    """At rest, with all parts on soft bushings, and small motions about it.  Rate rows are not bypassed."""
    m, drawn = m.copy(), m.state
    for name, body in m.bodies.items():
        at, R = drawn[name].position, drawn[name].matrix
        m.bushing(f"hold {name}", m.ground.frame(at, z=R @ Z, x=R @ X), body.frame(x=X), (300.0,) * 6, (1.0,) * 6)
    try:
        eq = m.equilibrium()
    except cd.ModelError as error:
        assert "'new" in str(error)
        return
    assert eq.ok and eq.stable is not False, eq.text()
    assert m.diagnose(eq.state).assembled
    assert np.isfinite(eq.reaction("A").force).all()
    if not eq.holding:
        lin = m.linearize(eq.state)
        assert lin.stable is eq.stable


def equations(m):
    """C_q, γ, M, Q_e and Q_v in both forms: at rest, accelerations of one form are those of the other."""
    state = m.assemble().state
    state = state.with_rates(np.zeros((len(state.names), 6)))
    found = []
    for form, width in (("manifold", 6), ("euler_parameters", 7)):
        c, e = (read(state, sparse=False, coordinates=form) for read in (m.constraint_equations, m.motion_equations))
        assert c.jacobian.shape == (len(c.rows), width * len(state.names))
        assert e.mass.shape == (e.applied.size,) * 2 == (width * len(state.names),) * 2
        B = np.zeros((len(state.names), width, 6))
        B[:, :3, :3] = np.eye(3)
        B[:, 3:, 3:] = 0.5 * np.swapaxes(euler.G(state.quaternions), 1, 2) if width == 7 else np.eye(3)
        B = block_diag(*B)
        rows = slice(0, len(c.rows) - (width == 7) * len(state.names))
        found.append((B.T @ e.mass @ B, B.T @ e.applied, (c.jacobian @ B)[rows], c.gamma[rows]))
    for one, other in zip(*found, strict=True):
        assert one == pytest.approx(other, abs=1e-12 * max(1.0, np.abs(one).max(initial=0.0)))


def clashes(m):
    """Of two bodies with shapes, in a state and over a simulation; the mechanism stays as it is."""
    for name in ("wheel", "carriage"):
        m[name].attach(cd.shapes.box(0.1, 0.1, 0.1))
    before, state = m.description(), m.assemble().state
    gap = m.distance_between("wheel", "carriage", state)
    assert gap.gap == pytest.approx(np.linalg.norm(np.subtract(*gap.points)))
    assert m.interference(state, [("wheel", "carriage")]).ok
    found = m.simulate(0.02, rtol=1e-6, times=[0.0, 0.01, 0.02]).clashes([("wheel", "carriage")])
    assert found.ok, found.text()
    assert m.description() == before


def copy(m):
    assert m.copy() == m


def pickled(m):
    again = pickle.loads(pickle.dumps(m))
    assert again == m
    assert np.array_equal(again.assemble().state.coordinates, m.assemble().state.coordinates)


def pickle_results(m):
    for result in (m.assemble(), m.diagnose(m.assemble().state), m.simulate(0.01, step=5e-3)):
        pickle.loads(pickle.dumps(result))


def free(m):
    """Every parameter free, or none: then the call is refused."""
    if not m.parameters:
        with pytest.raises(cd.ModelError, match="no parameter is free"):
            m.assemble(least="nearest")
        return
    result = m.assemble(free=m.parameters, least="nearest")
    assert result.ok, result.text()
    assert m.diagnose(result.state, free=m.parameters).assembled


def sensitivity(m):
    """Of a wheel point: to parameters of this verb, and to those of the capability."""
    m.parameter("idle", 1.0)
    state = m.assemble().state
    found = m.sensitivity(state, ["A", m["wheel"].point()])
    assert np.isfinite(found.matrix).all()
    assert not found.matrix[:, found.parameters.index("idle")].any()
    assert np.isfinite(m.tolerances(state, ["A"], {"idle": 0.1}, samples=3).rss).all()


def view(m):
    state = m.assemble().state
    drawn = scene(m, state)
    header, _ = unpack(drawn.pack())
    assert [part["name"] for part in header["parts"]] == ["ground", *m.bodies]
    assert [joint["name"] for joint in header["joints"]] == list(m.joints)
    assert all(part.meshes for part in drawn.parts[1:])
    assert np.array_equal(drawn.poses_of(state)[1:], state.coordinates)


def save(m, tmp_path):
    simulation = m.simulate(0.01, step=5e-3)
    for suffix in (".glb", ".csv"):
        simulation.save(tmp_path / f"x{suffix}")
        assert (tmp_path / f"x{suffix}").stat().st_size > 100


def page(m, tmp_path):
    """A page that is dragged without Python, or an error that names the item, and no file."""
    file = tmp_path / "page.html"
    try:
        m.save(file)
    except cd.ModelError as error:
        assert "'new'" in str(error)
        assert not file.exists()
        return
    assert file.stat().st_size > 100_000


def save_and_load(m, tmp_path):
    """An equal mechanism, with functions of equal values; or an error that names the item, and no file."""
    file = tmp_path / "model.cardan.toml"
    try:
        m.save(file)
    except cd.ModelError as error:
        assert "'new' cannot be saved" in str(error)
        assert not file.exists()
        return
    again = cd.load(file)
    assert told(again.description()) == told(m.description())
    content = file.read_text()
    again.save(file)
    assert file.read_text() == content
    assert cd.load(file) == again


def told(value):
    """A description, with functions replaced by some of their values."""
    if isinstance(value, tuple | list):
        return [told(item) for item in value]
    if isinstance(value, Signal):
        return [(jet.value, jet.rate, jet.acceleration) for jet in map(value.jet, (0.0, 0.5, 1.3))]
    if isinstance(value, Primitive) and isinstance(value.origin, Recipe):
        return value.name, value.origin.units, primitive_rows(value.origin)
    if isinstance(value, Called):
        return [list(value.vector(t, None)) for t in (0.0, 0.5, 1.3)]
    return value


VERBS = (
    *(assemble, assemble_many, diagnose, step, move, simulate, session, equilibrium, copy, pickled, pickle_results),
    *(equations, clashes, free, sensitivity, view, save, page, save_and_load, simulate_many, move_many, gradients),
)

# some tell the error themselves
WITH_FLEXIBLE = (assemble, copy, equilibrium, page, pickled, save_and_load, session, view)
REFUSED = dict.fromkeys(  # motions refuse it, by name
    BY_DIFFERENCES, (move, move_many, simulate, simulate_many, gradients, clashes, pickle_results, save)
)
REFUSED["a parameter in a driver"] = (free, sensitivity)
REFUSED["collide"] = (simulate, simulate_many, gradients, clashes, pickle_results, save)
REFUSED["a flexible body"] = tuple(v for v in VERBS if v not in WITH_FLEXIBLE)
REFUSED["a joint with friction"] = (equations,)
REFUSED["contact that opens"] = (
    *(assemble_many, diagnose, step, move, move_many, equations, pickle_results, sensitivity),
)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_capability_works_with_every_verb(capability, verb, tmp_path):
    m = base()
    CAPABILITIES[capability](m)
    refused = pytest.raises(cd.ModelError, match="'new'") if verb in REFUSED.get(capability, ()) else nullcontext()
    with refused:
        verb(m, tmp_path) if verb in (save, page, save_and_load) else verb(m)


def test_what_files_cannot_contain_is_refused(tmp_path):
    refused = []
    for capability, add in CAPABILITIES.items():
        m = base()
        add(m)
        try:
            m.save(tmp_path / "model.cardan.toml")
        except cd.ModelError:
            refused.append(capability)
    assert refused == [
        *("constrain_rates", "constrain_rates with a value", "actuator by a function"),
        *("a function of time as a parameter", "a joint with friction", "a flexible body"),
    ]


NOT_FOR_PARAMETERS: dict[str, Callable[[cd.Mechanism, cd.Parameter], object]] = {
    "a limit": lambda m, p: m.limit("new", m["W"], upper=p),
    "a position": lambda m, p: m.body("new", position=(p, 0, 0)),
    "an orientation": lambda m, p: m.body("new", orientation=(X, p)),
    "a radius of a wheel": lambda m, p: m.wheel(
        "new", m["wheel"].frame(), p, m["carriage"].attach(cd.geometry.plane())
    ),
    "coordinates of a tree": lambda m, p: m.assemble(free=[p], formulation="relative"),
    "coordinates of a tree in the paper's form": lambda m, p: m.assemble(
        free=[p], formulation="relative_euler_parameters"
    ),
}


@pytest.mark.parametrize("place", NOT_FOR_PARAMETERS)
def test_where_no_parameter_can_be_it_is_refused_by_name(place):
    m = base()
    m.rack("rack", m["A"], m["P"], radius=m.parameter("radius", 0.1))
    before = m.description()
    with pytest.raises(cd.ModelError, match=r"radius.*parameter|parameter.*radius"):
        NOT_FOR_PARAMETERS[place](m, m["radius"])
    if place != "a radius of a wheel":  # attaching the plane is a call of its own
        assert m.description() == before


def test_the_table_has_every_kind_of_joint_and_load():
    known = {name.split(" ")[0].rstrip(",") for name in CAPABILITIES} | {"rolling"}  # with contacts that roll
    assert set(REGISTRY) <= known
    assert set(loads.REGISTRY) <= known
