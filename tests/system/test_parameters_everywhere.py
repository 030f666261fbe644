"""Laws of parameters in every place of a number: the bits of the plain number in every verb, files, new values.

A case puts one number where `cases` of its kind say, as a parameter or as it is.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import cardan as cd
from cardan.files.spec import load_specs
from cardan.system import feeds
from cardan.system.parts import MASS_WORDS

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
DERIVATIVE = 1e-9  # relative, of a slope against differences


def base():
    """A driven crank, and a slider that is free on a rail."""
    m = cd.Mechanism("base", gravity=(0.3, 0.1, -9.81))
    crank = m.body("crank", mass=1.2, inertia=(0.02, 0.03, 0.025), center=(0.1, 0.02, 0.0))
    slider = m.body("slider", position=(0.6, 0.0, 0.2), mass=0.7, inertia=(0.01, 0.01, 0.01))
    m.revolute("A", m.ground.frame(z=Y, x=X), crank.frame(z=Y, x=X))
    m.prismatic("P", m.ground.frame((0.0, 0.0, 0.2), z=X, x=Y), slider.frame(z=X, x=Y))
    m.spring("spring", crank.point((0.3, 0.0, 0.0)), slider.point(), stiffness=60.0, rest=0.25, damping=0.4)
    return m


def set_gravity(m, p):
    m.gravity = (p, 0.1, -4.0 * p)


def set_mass(m, p):
    m["crank"].mass = p


def set_center(m, p):
    m["crank"].center = (0.1, 0.04 * p, -0.05)


def set_moments(m, p):
    m["crank"].inertia = (0.02, 0.02 * p, 0.02 * p)


def set_products(m, p):
    m["crank"].inertia = ((0.02 * p, -0.001, 0.002 * p), (-0.001, 0.03, 0.004), (0.002 * p, 0.004, 0.025 * p))


def set_all(m, p):
    """As arguments of m.body, and its frame on a formula too."""
    bob = m.body("bob", mass=p, inertia=(0.1 * p, 0.1, 0.1 * p), center=(0.0, 0.0, 0.1 * p))
    m.fixed("B", m["crank"].frame((0.2 * p, 0.0, 0.0)), bob.frame())


def set_armature(m, p):
    m["A"].inertia = 0.01 * p
    m["P"].inertia = p


def on_coordinate(m):
    return (m["P"],)


def between_points(m):
    return m.ground.point((0.1, 0.0, 0.5)), m["slider"].point((0.0, 0.1, 0.0))


def on_a_point(m):
    return (m["crank"].point((0.1, 0.2, 0.0)),)


def on_a_body(m):
    return (m["crank"],)


def between_frames(m):
    return m.ground.frame((0.5, 0.0, 0.1), z=X, x=Z), m["slider"].frame(z=X, x=Y)


STIFF = tuple(tuple(30.0 * (i == j) + 1.0 + 0.5 * (i + j) for j in range(6)) for i in range(6))
# Of each kind of load what it acts on, and numbers; each of them is given by a parameter in a case.
LOADS = {
    "spring": (between_points, {"stiffness": 40.0, "rest": 0.3, "damping": 0.5}),
    "spring, of a joint": (on_coordinate, {"stiffness": 40.0, "rest": 0.3, "damping": 0.5}),
    "friction": (on_coordinate, {"viscous": 0.4, "coulomb": 0.3, "speed": 0.01}),
    "actuator": (on_coordinate, {"f": -3.0}),
    "force": (on_a_point, {"f": (1.0, -2.0, 0.5)}),
    "force, in body": (on_a_point, {"f": (1.0, -2.0, 0.5), "axes": "body"}),
    "torque": (on_a_body, {"f": (0.3, 0.2, -0.1)}),
    "bushing": (between_frames, {"stiffness": (50.0, 40.0, 30.0, 2.0, 3.0, 4.0), "damping": (0.5,) * 6}),
    "bushing, matrix": (between_frames, {"stiffness": STIFF}),
    "damper": (between_frames, {"damping": (0.5, 0.4, 0.3, 0.2, 0.1, 0.6)}),
}


def times(value, p):
    return tuple(times(one, p) for one in value) if isinstance(value, tuple) else p * value


def load_case(name, option):
    def edit(m, p):
        on, numbers = LOADS[name]
        getattr(m, name.partition(",")[0])("new", *on(m), **{**numbers, option: times(numbers[option], p)})

    return edit


OF_LOADS = {
    f"{name}: {option}": load_case(name, option) for name in LOADS for option in LOADS[name][1] if option != "axes"
}


def drive_by_a_function(m, p):
    half = 0.5 * p
    m.drive("motor", "A", lambda t: half * cd.sin(p * t + 0.2) + 0.1 * p**2 / (1.0 + p * t))


def drive_by_pieces(m, p):
    m.drive("motor", "A", lambda t: 0.2 + 0.1 * (t - p / 100.0) ** 3 if t > p / 100.0 else 0.2 + 0.0 * p * t)


def drive_to_a_value(m, p):
    m.drive("motor", "A", 0.4 * p)


def drive_in_numpy(m, p):
    m.drive("motor", "A", lambda t: np.sin(p * t) * p + np.exp(-p))


def rack_of_time(m, p):
    m.rack("rack", "A", "P", radius=0.3, offset=lambda t: 0.6 + p * t)


OF_TIME = {
    "drive": drive_by_a_function,
    "drive, pieces": drive_by_pieces,
    "drive, constant": drive_to_a_value,
    "drive, NumPy": drive_in_numpy,
    "a number of time": rack_of_time,
}
CASES = {
    **OF_LOADS,
    **OF_TIME,
    "gravity": set_gravity,
    "mass": set_mass,
    "center": set_center,
    "inertia": set_moments,
    "inertia, nine numbers": set_products,
    "body": set_all,
    "joint inertia": set_armature,
}
VALUE, OTHER = 1.3, 1.45


def test_the_cases_have_every_number_of_a_body():
    assert {*MASS_WORDS, "gravity", "joint inertia"} <= {name.partition(",")[0] for name in CASES}


def test_the_cases_have_every_number_of_every_load():
    known = {(name.partition(",")[0], option) for name, (_, numbers) in LOADS.items() for option in numbers}
    pairs = [(kind.name, option) for kind in load_specs().values() for option in kind.options.values()]
    every = {(name, option.name) for name, option in pairs if option.quantity.sort != "word"}
    assert known - {("force", "axes")} == every


def assemble(m):
    return [m.assemble().state.coordinates]


def simulate(m):
    found = m.simulate(0.02, step=2e-3, times=[0.0, 0.01, 0.02])
    assert found.ok
    return [found.states[-1].coordinates, found.states[-1].velocities, found.reaction("A").force, found.energy.total]


def forces_of_a_motion(m):
    m = m.copy()
    if "motor" not in m:
        m.drive("motor", "A", lambda t: 0.3 * cd.sin(2.0 * t))
    if "rack" not in m:
        m.drive("pusher", "P", lambda t: 0.6 + 0.1 * t * t)
    motion = m.move([0.0, 0.05, 0.1])
    return [motion.effort("motor"), motion.states[-1].coordinates, motion.reaction("A").force]


def accelerations(m):
    state = m.assemble().state
    return [m.simulate(1e-3, state, step=1e-3).states[0].accelerations]


def at_rest(m):
    """An equilibrium, and small motions about it."""
    m = m.copy()
    m.spring("hold", "A", stiffness=80.0, rest=0.2)
    m.spring("centre", "P", stiffness=70.0, rest=0.6)
    found = m.equilibrium()
    assert found.ok
    return [found.state.coordinates, found.reaction("A").force, m.linearize(found.state).eigenvalues]


def hand(m):
    with m.session(mode="dynamic") as session:
        grip = session.grasp("crank", (0.2, 0.0, 0.0))
        grip.target = grip.point + np.array([0.0, 0.0, 0.01])
        for _ in range(3):
            session.step()
        return [session.state.coordinates, session.state.velocities]


VERBS = (assemble, simulate, forces_of_a_motion, accelerations, at_rest, hand)


def made(case, value=VALUE, is_parameter=True):
    """The mechanism of a case, with a parameter or with a number."""
    m = base()
    CASES[case](m, m.parameter("p", value) if is_parameter else value)
    return m


def same(mine, theirs):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(mine, theirs, strict=True))


@pytest.fixture(params=CASES)
def case(request):
    return request.param


@pytest.mark.parametrize("verb", VERBS)
def test_a_parameter_gives_the_bits_of_the_number(case, verb):
    if (case, verb) == ("a number of time", hand):
        with pytest.raises(cd.ModelError, match="function of time"):
            verb(made(case))
        return
    plain = verb(made(case, is_parameter=False))
    assert same(verb(made(case)), plain)


def test_a_new_value_gives_the_bits_of_a_new_mechanism(case):
    """Set on the parameter, or in the start; and back."""
    first, other = (simulate(made(case, value, False)) for value in (VALUE, OTHER))
    assert not same(first, other)
    m = made(case)
    assert same(simulate(m), first)
    found = m.simulate(0.02, m.state.with_variables({"p": OTHER}), step=2e-3, times=[0.0, 0.01, 0.02])
    assert np.array_equal(found.states[-1].coordinates, other[0])
    assert np.array_equal(found.energy.total, other[3])
    assert m["p"].value == VALUE
    m["p"].value = OTHER
    assert same(simulate(m), other)
    assert same(forces_of_a_motion(m), forces_of_a_motion(made(case, OTHER, False)))
    m["p"].value = VALUE
    assert same(simulate(m), first)


def test_files_copies_and_pickles_keep_the_formula(case, tmp_path):
    m = made(case)
    made_again = [m.copy()]
    if case in ("drive, pieces", "a number of time"):
        with pytest.raises(cd.ModelError, match="cannot be saved"):
            m.save(tmp_path / "m.cardan.toml")
    else:
        m.save(tmp_path / "m.cardan.toml")
        made_again.append(cd.load(tmp_path / "m.cardan.toml"))
    if case not in OF_TIME or case == "drive, constant":
        made_again.append(pickle.loads(pickle.dumps(m)))
    for again in made_again:
        assert again == m
        again["p"].value = OTHER
        assert again != m and m["p"].value == VALUE
        assert same(simulate(again), simulate(made(case, OTHER, False)))


def test_a_parameter_in_use_is_not_removed(case):
    m = made(case)
    with pytest.raises(cd.ModelError, match="parameter 'p' is used by"):
        m.remove("p")


def test_feeds_name_every_formula_and_slopes_are_derivatives(case):
    m = made(case)
    m["p"].value = OTHER
    drawing = m._model.drawing
    found = feeds.feeds(drawing)
    nodes = [feed.node for feed in found]
    assert set(nodes) == set(drawing.used()[0])
    step = 1e-5
    sides = [drawing.at_values({"p": OTHER + sign * step}).values.nodes for sign in (1.0, -1.0)]
    differences = [(sides[0][node] - sides[1][node]) / (2.0 * step) for node in nodes]
    slopes = feeds.slopes(drawing.values, nodes, ("p",))[:, 0]
    assert np.abs(slopes).max() > 0.0
    assert slopes == pytest.approx(differences, rel=DERIVATIVE, abs=DERIVATIVE)


BAD = {
    "stiffness": (OF_LOADS["spring: stiffness"], -0.5, "spring 'new': the stiffness is -20.0, of <.*>; it must"),
    "rest": (OF_LOADS["spring: rest"], -0.5, "spring 'new': the rest is -0.15"),
    "speed": (OF_LOADS["friction: speed"], 0.0, "friction 'new': the speed is 0"),
    "matrix": (OF_LOADS["bushing, matrix: stiffness"], -1.0, "stiffness is .* no negative eigenvalue; it follows from"),
    "gravity": (set_gravity, 1e200, "gravity of mechanism 'base'"),
    "mass": (set_mass, -0.5, "mass of body 'crank' is -0.5.*<parameter 'p'> at p = -0.5"),
    "center": (set_center, 1e200, "center of body 'crank'"),
    "inertia": (set_moments, -1.0, "inertia of body 'crank' has principal moments.*at p = -1"),
    "triangle": (set_moments, 0.1, "inertia of body 'crank' has principal moments.*none may exceed"),
    "joint inertia": (set_armature, 0.0, "inertia of joint 'A' is 0.0; it must be above zero"),
}
CALLS = {
    "assemble": lambda m, state: m.assemble(state),
    "simulate": lambda m, state: m.simulate(0.01, state, step=1e-3),
    "move": lambda m, state: m.move([0.0, 0.1], state),
    "equilibrium": lambda m, state: m.equilibrium(state),
    "linearize": lambda m, state: m.linearize(state),
    "diagnose": lambda m, state: m.diagnose(state),
    "session": lambda m, state: m.session(state),
    "assemble_many": lambda m, state: m.assemble_many([state]),
    "values": lambda m, state: m.assemble_many(m.state, values={"p": [VALUE, state.variables["p"]]}),
    "value": lambda m, state: setattr(m["p"], "value", state.variables["p"]),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("bad", BAD)
def test_bad_values_are_refused_with_item_value_and_formula(bad, call):
    edit, value, message = BAD[bad]
    m = base()
    edit(m, m.parameter("p", VALUE))
    drawn = m.description()
    with pytest.raises(cd.ModelError, match=message):
        CALLS[call](m, m.state.with_variables({"p": value}))
    assert m.description() == drawn
    with pytest.raises(cd.ModelError, match=message):
        edit(m := base(), m.parameter("p", value))


def test_formulas_of_another_mechanism_and_of_removed_parameters_are_refused(case):
    m, other = base(), base()
    with pytest.raises(cd.ModelError, match="another mechanism"):
        CASES[case](m, other.parameter("p", VALUE))
    p = m.parameter("q", VALUE)
    m.remove("q")
    with pytest.raises(cd.ModelError, match="removed"):
        CASES[case](m, p)


def test_slopes_of_every_operation_are_derivatives():
    m = cd.Mechanism("slopes")
    p, r = m.parameter("p", 0.4), m.parameter("r", 0.9)
    formulas = [p + r, p - r, p * r, p / r, r**p, p**3, p**-1.5, cd.atan2(p, -r), 2.0**p]
    names = ("sqrt", "sin", "cos", "tan", "exp", "log", "asin", "acos", "atan", "sinh", "cosh", "tanh")
    formulas += [getattr(cd, name)(p * r + 0.1) for name in names]
    m.body("body", center=(p, r, 0.0))
    values = m._model.drawing.values_now()
    found = feeds.slopes(values, [one.index for one in formulas], ("p", "r"))
    step = 1e-6
    for k, name in enumerate(("p", "r")):
        sides = [[one.at({name: m[name].value + sign * step}) for one in formulas] for sign in (1.0, -1.0)]
        assert found[:, k] == pytest.approx((np.array(sides[0]) - sides[1]) / (2.0 * step), rel=1e-8, abs=1e-9)


REFUSED = {
    "free": lambda m: m.assemble(free=["p"]),
    "values": lambda m: m.assemble_many(m.state, values={"p": [0.1, 0.2]}),
    "sensitivity": lambda m: m.sensitivity(m.assemble().state, ["A"], ["p"]),
    "tolerances": lambda m: m.tolerances(m.assemble().state, ["A"], {"p": 0.1}),
    "a coupling": lambda m: m.couple("new", "A", "P", lambda q: 0.6 + m["p"] * q),
    "an actuator": lambda m: m.actuator("new", "P", lambda t, q, rate: -m["p"] * q),
    "a force": lambda m: (
        m.force("new", m["crank"].point(), lambda t, state: (m["p"] + t, 0.0, 0.0)),
        m.simulate(0.01, step=1e-3),
    ),
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_does_not_support_parameters_in_functions_names_them(call):
    m = base()
    drive_by_a_function(m, m.parameter("p", VALUE))
    with pytest.raises(cd.ModelError, match=r"parameter 'p'|'new'.* function returned <.*p.*>"):
        REFUSED[call](m)


def late(with_seen):
    """A driver that reads c after t = 50.3 s alone, and a before that if ``with_seen``."""
    m = cd.Mechanism("late")
    arm = m.body("arm")
    m.revolute("A", m.ground.frame(), arm.frame())
    a, c = (m.parameter("a", 0.001) if with_seen else 0.001), m.parameter("c", 1e-4)
    m.drive("motor", "A", lambda t: a * t if t < 50.3 else a * t + c * (t - 50.3) ** 3)
    return m


def at_60(state):
    """The state as that of t = 60 s."""
    return cd.State(state.names, state._index, state.coordinates, angles=state.angles, time=60.0)


LATE = {
    "assemble": lambda m: m.assemble(time=60.0),
    "values": lambda m: m.assemble_many(m.state, values={"c": [5.0]}, time=60.0),
    "sensitivity": lambda m: m.sensitivity(at_60(m.assemble(time=50.0).state), ["A"], ["c"]),
    "remove": lambda m: (m.remove("c"), m.assemble(time=60.0)),
    "move": lambda m: m.move(np.arange(0.0, 61.0)),
}


@pytest.mark.parametrize("with_seen", [True, False])
@pytest.mark.parametrize("call", LATE)
def test_a_parameter_that_a_driver_reads_later_is_named(call, with_seen):
    m = late(with_seen)
    assert m["A"].coordinate(m.assemble(time=50.0).state) == pytest.approx(0.05, rel=1e-12)
    with pytest.raises(cd.ModelError, match=r"driver 'motor' at t = [56][\d.]+ s: its function reads <.*>, .* 0.0 \*"):
        LATE[call](m)
