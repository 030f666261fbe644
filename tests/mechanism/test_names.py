"""A joint or body may be given by its name wherever it may be given itself, with the same result."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import cardan as cd
from cardan.dynamics import loads
from cardan.joints import REGISTRY, Role
from cardan.mechanism import Mechanism


def build():
    m = cd.Mechanism("m")
    arm = m.body("arm", mass=1.0, inertia=(1.0, 1.0, 1.0))
    bob = m.body("bob", position=(1, 0, 0), mass=1.0, inertia=(1.0, 1.0, 1.0))
    m.cylindrical("pin", m.ground.frame(), arm.frame())
    m.revolute("hinge", arm.frame((m.parameter("L", 1.0), 0, 0)), bob.frame())
    for body in (arm, bob):
        body.attach(cd.shapes.sphere(0.1))
    return m


def driven():
    m = build()
    m.drive("motor", m["hinge"], lambda t: 0.3 * t)
    m.drive("push", m["pin"].of("displacement"), 0.1)
    m.drive("turn", m["pin"].of("angle"), lambda t: t)
    return m


def item(m, name):
    """The joint, body or coordinate that a name means."""
    joint, _, word = name.rpartition(".")
    return m[joint].of(word) if joint else m[name]


def options_of(kind):
    values = {"ratio": 2.0, "radius": 0.1, "offset": 0.0, "radius_1": 0.1, "radius_2": 0.2, "upper": 1.0}
    values |= {
        "pitch": 0.1,
        "stiffness": 1.0,
        "damping": 1.0,
        "coulomb": 1.0,
        "effort": 1.0,
        "angle": 0.3,
        "distance": 0.2,
    }
    found = {}
    for p in inspect.signature(kind.build).parameters.values():
        if p.name == "function":
            found[p.name] = (lambda x: 2 * x) if kind.role is Role.COUPLING else 0.3
        elif p.name in values and p.name not in ("own",):
            found[p.name] = values[p.name]
    return found


COUPLINGS = [kind for kind in REGISTRY.values() if kind.role in (Role.COUPLING, Role.DRIVER, Role.LIMIT)]


@pytest.mark.parametrize("kind", COUPLINGS, ids=[kind.name for kind in COUPLINGS])
def test_couplings_drivers_and_limits_take_names(kind):
    chosen = {"angle": ("hinge", "pin.angle"), "displacement": ("pin.displacement",), "": ("hinge", "pin.displacement")}
    names = [chosen[takes][k if len(chosen[takes]) > k else 0] for k, takes in enumerate(kind.takes)]
    by_item, by_name = build(), build()
    options = options_of(kind)
    getattr(by_item, kind.name)("new", *[item(by_item, name) for name in names], **options)
    getattr(by_name, kind.name)("new", *names, **options)
    assert by_item == by_name
    with pytest.raises(cd.ModelError, match=r"no joint of mechanism 'm' is named 'hing.*did you mean"):
        getattr(by_name, kind.name)("other", *["hingee"] * len(names), **options)


JOINTS = [kind for kind in REGISTRY.values() if kind.is_between_places and "distance" not in kind.coordinates]


@pytest.mark.parametrize("kind", JOINTS, ids=[kind.name for kind in JOINTS])
def test_joints_between_bodies_take_names(kind):
    by_item, by_name = build(), build()
    options = options_of(kind)
    for m, ends in ((by_item, (by_item.ground, by_item["bob"])), (by_name, ("ground", "bob"))):
        getattr(m, kind.name)("new", *ends, at=(0, 0, 0), axis=(0, 0, 1), **options)
        getattr(m, kind.name)("keyed", a=ends[0], b=ends[1], at=(0, 0, 0), **options)
    assert by_item == by_name
    with pytest.raises(cd.ModelError, match="no body of mechanism 'm' is named 'bobb'; did you mean 'bob'"):
        getattr(by_name, kind.name)("other", "ground", "bobb", at=(0, 0, 0), **options)


def test_loads_take_names():
    seen = 0
    for kind in loads.REGISTRY.values():
        takes = kind.takes[0]
        if "coordinate" not in takes and takes != "body":
            continue
        name = "bob" if takes == "body" else "hinge"
        by_item, by_name = build(), build()
        options = {}
        for p in inspect.signature(kind.build).parameters.values():
            if p.name in ("stiffness", "damping", "coulomb", "effort"):
                options[p.name] = 1.0
            elif p.default is p.empty and p.name not in list(inspect.signature(kind.build).parameters)[:1]:
                options[p.name] = (lambda t, x, rate: 0.1 * t) if kind.name == "actuator" else (1.0, 0.0, 0.0)
        if kind.name == "actuator":
            options.pop("effort", None)
        getattr(by_item, kind.name)("new", item(by_item, name), **options)
        getattr(by_name, kind.name)("new", name, **options)
        assert by_item == by_name, kind.name
        seen += 1
    assert seen >= 4


def test_knife_edges_take_names():
    by_item, by_name = build(), build()
    by_item.knife_edge("new", by_item["bob"].frame(), relative_to=by_item["arm"])
    by_name.knife_edge("new", by_name["bob"].frame(), relative_to="arm")
    assert by_item == by_name


READS = {  # methods that take a joint or body, by their class: calls with an item given in one of its forms
    "Mechanism.constraint_equations": lambda c, f: c.m.constraint_equations(c.state, f("hinge")).value,
    "Mechanism.distance_between": lambda c, f: c.m.distance_between(f("arm"), f("bob")).points,
    "Mechanism.jacobian": lambda c, f: np.hstack([c.m.jacobian(f("bob")), c.m.jacobian(f("bob"), by=f("motor"))]),
    "Mechanism.sensitivity": lambda c, f: c.m.sensitivity(c.state, [f("hinge"), f("pin.angle")]).values,
    "Mechanism.solve_rates": lambda c, f: c.bare.solve_rates(
        c.bare.state, {f("hinge", c.bare): 1.0, f("pin.angle", c.bare): 2.0}
    ).velocities,
    "Mechanism.state_at": lambda c, f: c.m.state_at({f("hinge"): 0.4, f("pin.angle"): 0.3}).coordinates,
    "State.coordinate": lambda c, f: [c.state.coordinate(f("hinge")), c.state.coordinate(f("pin"), "angle")],
    "State.rate": lambda c, f: [c.state.rate(f("hinge")), c.state.rate(f("pin.angle"))],
    "State.acceleration": lambda c, f: c.state.acceleration(f("pin"), "angle"),
    "State.moved": lambda c, f: c.state.moved({f("bob"): ((1, 2, 3), (1, 0, 0, 0))}).coordinates,
    "AssemblyResult.coordinate": lambda c, f: c.m.assemble().coordinate(f("pin.angle")),
    "Equilibrium.coordinate": lambda c, f: c.rest.coordinate(f("pin"), "displacement"),
    "Equilibrium.reaction": lambda c, f: c.rest.reaction(f("hinge"), f("bob")).force,
    "Equilibrium.effort": lambda c, f: c.rest.effort(f("motor")),
    "Session.range": lambda c, f: c.session.range(f("pin.displacement"))[:2],
    "Session.grasp": lambda c, f: c.session.grasp(f("bob")).point,
    "Session.push": lambda c, f: c.session.push(f("bob"), direction=(1, 0, 0)).point,
    "Session.drive": lambda c, f: c.session.drive(f("motor"), 0.2),
    **{
        f"{kind}.{name}": read
        for kind, of in (("Motion", lambda c: c.motion), ("Simulation", lambda c: c.simulation))
        for name, read in {
            "positions": lambda c, f, of=of: of(c).positions(f("bob")),
            "quaternions": lambda c, f, of=of: of(c).quaternions(f("bob")),
            "velocities": lambda c, f, of=of: of(c).velocities(f("bob")),
            "accelerations": lambda c, f, of=of: of(c).accelerations(f("bob")),
            "coordinate": lambda c, f, of=of: [*of(c).coordinate(f("hinge")), *of(c).coordinate(f("pin"), "angle")],
            "rate": lambda c, f, of=of: of(c).rate(f("pin.angle")),
            "acceleration": lambda c, f, of=of: of(c).acceleration(f("pin.angle")),
            "trace": lambda c, f, of=of: of(c).trace(f("bob"), (1, 0, 0), relative_to=f("arm")),
            "reaction": lambda c, f, of=of: of(c).reaction(f("hinge"), f("bob")).force,
            "effort": lambda c, f, of=of: of(c).effort(f("motor")),
            "table": lambda c, f, of=of: np.array(list(of(c).table(f("hinge"), f("pin.angle")).values())),
            "plot": lambda c, f, of=of: of(c).plot(f("hinge")).axes[0].get_lines()[0].get_ydata(),
            "save": lambda c, f, of=of: of(c).save(c.path, columns=[f("hinge")]) or c.path.read_bytes(),
        }.items()
    },
}  # fmt: skip
BUILDS = {"constrain", "constrain_rates", "contact", "wheel", "knife_edge", "path", "point_on_surface", "remove"}


class Case:
    def __init__(self, path):
        self.path = path / "run.csv"
        self.m, self.bare = driven(), build()
        self.motion = self.m.move([0.0, 0.1, 0.2])
        self.simulation = self.m.simulate(0.2, times=[0.0, 0.1, 0.2])
        self.state = self.motion.states[1]
        self.rest = self.m.equilibrium()

    @property
    def session(self):
        return self.m.session()


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    pytest.importorskip("matplotlib")
    return Case(tmp_path_factory.mktemp("names"))


@pytest.mark.parametrize("method", READS)
def test_results_and_analyses_take_names(case, method):
    mine = READS[method](case, lambda name, m=case.m: item(m, name))
    named = READS[method](case, lambda name, m=None: name)
    assert mine is named or np.array_equal(mine, named)


def test_every_public_method_with_a_joint_or_body_is_in_these_tests():
    """By the annotations: a new method that takes a joint or body needs a row above."""
    kinds = (cd.Mechanism, cd.State, cd.AssemblyResult, cd.Motion, cd.Simulation, cd.Equilibrium, cd.Session)
    missing = []
    for kind in kinds:
        for base in kind.__mro__[:-1]:
            for name, function in vars(base).items():
                if name.startswith("_") or not inspect.isfunction(function):
                    continue
                hints = [str(p.annotation) for p in list(inspect.signature(function).parameters.values())[1:]]
                takes = any(re.search(r"\b(Joint|Body|Coordinate|Given)\b", hint) for hint in hints)
                made = kind is Mechanism and (name in REGISTRY or name in loads.REGISTRY or name in BUILDS)
                if takes and not made and f"{kind.__name__}.{name}" not in READS:
                    missing.append(f"{kind.__name__}.{name}")
    assert not missing


def test_a_name_that_is_taken_is_answered_with_a_free_one():
    m = build()
    with pytest.raises(cd.ModelError, match="there is a body of that name; choose another, such as 'arm_joint'"):
        m.revolute("arm", m.ground.frame(), m["arm"].frame())
    m.revolute("arm_joint", m.ground.frame(), m["bob"].frame())
    with pytest.raises(cd.ModelError, match="such as 'arm_2'"):
        m.spherical("arm", m.ground.frame(), m["arm"].frame())
    for name, taken in (("arm", "arm_2"), ("hinge", "hinge_body")):
        with pytest.raises(cd.ModelError, match=f"such as '{taken}'") as error:
            m.body(name)
        free = re.search(r"such as '(\w+)'", str(error.value))[1]
        m.copy().body(free)  # it is free
    with pytest.raises(cd.ModelError, match="such as 'bob_parameter'"):
        m.parameter("bob", 1.0)
    with pytest.raises(cd.ModelError, match="such as 'bob_spring'"):
        m.spring("bob", "hinge", stiffness=1.0)


def test_inertia_is_three_moments_or_a_matrix(tmp_path):
    m, same = cd.Mechanism("m"), cd.Mechanism("m")
    m.body("b", mass=2.0, inertia=(0.1, 0.2, 0.3))
    same.body("b", mass=2.0, inertia=np.diag([0.1, 0.2, 0.3]))
    assert m == same and m["b"].inertia == ((0.1, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, 0.0, 0.3))
    m["b"].inertia = np.array([0.2, 0.2, 0.3])
    assert m["b"].inertia[2][2] == 0.3
    for wrong, text in (
        ((0.1, 0.2), "has 2 rows"),
        ((0.1, 0.2, "x"), "it must be"),
        ((0.1, 0.1, 0.9), "principal moments"),
        ((0.1, 0.2, -0.3), "must not be negative"),
        (1.0, "three principal moments"),
    ):
        with pytest.raises(cd.ModelError, match=text):
            m["b"].inertia = wrong
    file = tmp_path / "m.cardan.toml"
    file.write_text('cardan = 2\nname = "m"\n[bodies.b]\nmass = 2.0\ninertia = [0.1, 0.2, 0.3]\n', encoding="utf-8")
    assert cd.load(file) == same
