"""Design parameters: held they are numbers; free they are unknowns; varied and differentiated they give tolerances."""

from __future__ import annotations

import copy
import math
import pickle
from math import acos, cos, hypot, pi, sin, sqrt

import numpy as np
import pytest

import cardan as cd
from cardan.constraints import registry
from cardan.coordinates import formulations
from cardan.joints import REGISTRY
from cardan.math import euler
from fuzz.oracles.joints import JOINTS
from gallery import rsur, stewart_distance

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
DERIVATIVE = 1e-7  # relative, of a derivative against differences
EXACT = 1e-10  # against closed forms


def angle_of(t):
    return 0.5 + t


def slider_crank(parameters=True, crank=0.2, rod=0.4, offset=0.05, driven=True):
    """The one of the gallery, with its lengths as parameters or as numbers."""
    m = cd.Mechanism("slider_crank")
    if parameters:
        crank, rod = m.parameter("crank_length", crank, lower=0.01), m.parameter("rod_length", rod, upper=2.0)
        offset = m.parameter("offset", offset)
    a = m.body("crank", orientation=euler.from_axis_angle(Z, 0.5))
    b = m.body("rod", position=(0.15, 0.1, 0.02), orientation=euler.from_axis_angle(Z, -0.17))
    c = m.body("slider", position=(0.6, 0.06, 0.0))
    hinge = m.revolute("A", m.ground.frame(z=Z, x=X), a.frame(z=Z, x=X))
    m.revolute("B", a.frame((crank, 0, 0), z=Z), b.frame(z=Z))
    m.revolute("C", b.frame((rod, 0, 0), z=Z), c.frame(z=Z))
    m.prismatic("slide", m.ground.frame((0, offset, 0), z=X, x=Z), c.frame(z=X, x=Z))
    if driven:
        m.drive("motor", hinge, angle_of)
    return m


def slider_at(phi, crank=0.2, rod=0.4, offset=0.05):
    return crank * cos(phi) + sqrt(rod**2 - (crank * sin(phi) - offset) ** 2)


# -- held --------------------------------------------------------------------------------------------------------------


def test_a_held_parameter_gives_the_bits_of_the_plain_number():
    m = slider_crank()
    assert np.array_equal(m.assemble().state.coordinates, slider_crank(False).assemble().state.coordinates)
    m["crank_length"].value = 0.21
    m["offset"].value = -0.03
    plain = slider_crank(False, crank=0.21, offset=-0.03)
    assert np.array_equal(m.assemble().state.coordinates, plain.assemble().state.coordinates)
    for mine, theirs in ((m.system, plain.system), (m.system.judged(), plain.system.judged())):
        assert np.array_equal(mine.floats, theirs.floats)
        assert mine.length == theirs.length


@pytest.mark.parametrize("formulation", ["relative", "euler_parameters"])
def test_a_new_value_holds_in_every_formulation(formulation):
    m = slider_crank()
    m.assemble(formulation=formulation)
    m["rod_length"].value = 0.45
    state = m.assemble(formulation=formulation).state
    assert m["slide"].coordinate(state) == pytest.approx(slider_at(0.5, rod=0.45), abs=1e-12)


def tilted(parameters):
    """Formulas in every place: axes and references of frames, a vector, numbers of joints."""
    m = cd.Mechanism("tilted")
    a, b = (m.parameter("a", 0.3), m.parameter("b", 0.7)) if parameters else (0.3, 0.7)
    crank, arm = m.body("crank"), m.body("arm", position=(1, 0, 0.2))
    m.revolute("A", m.ground.frame((0, 0, a), z=(a, 0.2, 1.0), x=(1.0, b, 0)), crank.frame(z=Z, x=X))
    m.screw("S", crank.frame((b, 0, 0), z=(0, a, b), x=X), arm.frame(z=Z, x=X), pitch=a * b, offset=a)
    m.distance("rod", m.ground.point((1, 1, b)), arm.point((0, a * a, 1.0)), 2 * a + cd.sqrt(b))
    return m


def test_formulas_of_axes_give_the_bits_of_plain_numbers():
    mine, theirs = tilted(True).system, tilted(False).system
    assert np.array_equal(mine.floats, theirs.floats)
    assert np.array_equal(tilted(True).assemble().state.coordinates, tilted(False).assemble().state.coordinates)


def test_every_verb_uses_the_values_of_the_state_it_is_given():
    m = slider_crank()
    state = m.assemble().state.with_variables({"rod_length": 0.45})
    found = m.assemble(state)
    assert found.ok
    assert found.state.variables == {"crank_length": 0.2, "rod_length": 0.45, "offset": 0.05}
    assert m["rod_length"].value == 0.4
    x = slider_at(0.5, rod=0.45)
    session = m.session(state, closed=False)
    while (status := session.step()) == cd.SessionStatus.MOVING:
        pass
    assert status == cd.SessionStatus.IDLE
    motion, simulation = m.move([0.0, 0.1], found.state), m.simulate(0.1, found.state, times=[0.0, 0.1])
    for reached in (found.state, session.state, motion.states[0], simulation.states[0], m.solve_rates(found.state)):
        assert m["slide"].coordinate(reached) == pytest.approx(x, abs=1e-11)
        assert reached.variables["rod_length"] == 0.45
    assert simulation.coordinate(m["slide"])[1] == pytest.approx(slider_at(0.6, rod=0.45), abs=1e-6)
    assert m["slide"].coordinate(motion.states[1]) == pytest.approx(slider_at(0.6, rod=0.45), abs=1e-11)
    assert m.diagnose(found.state).assembled
    assert not m.diagnose(m.assemble().state.with_variables({"rod_length": 0.45})).assembled
    batch = m.assemble_many([found.state, m.assemble().state])
    assert batch.variable("rod_length").tolist() == [0.45, 0.4]
    assert m["slide"].coordinate(batch.state(0)) == pytest.approx(x, abs=1e-11)
    assert m["slide"].coordinate(batch.state(1)) == pytest.approx(slider_at(0.5), abs=1e-11)


def test_formulas_made_after_an_assembly_at_other_values_have_the_values_of_the_state():
    m = slider_crank()
    state = m.assemble(m.state.with_variables({"rod_length": 0.45})).state
    point = m["rod"].point((0.3 * m["rod_length"] + 0.111, 0, 0))
    found = m.sensitivity(state, point, ["offset"])
    assert found.values == pytest.approx(state["rod"].point((0.3 * 0.45 + 0.111, 0, 0)), abs=1e-14)
    assert m.jacobian(m["rod"].point((0.7 * m["rod_length"], 0, 0)), state).shape == (3, 18)
    made = []
    m.move([0.0, 0.1], state, progress=lambda _: made.append(0.77 * m["rod_length"]))
    assert made[0].value == 0.77 * 0.4


def test_copies_and_pickles_keep_parameters():
    m = slider_crank()
    for other in (m.copy(), pickle.loads(pickle.dumps(m))):
        assert other == m
        other["rod_length"].value = 0.41
        assert other != m and m["rod_length"].value == 0.4
        assert other.assemble().state.variables["rod_length"] == 0.41
    state = m.assemble().state
    again = pickle.loads(pickle.dumps(state))
    assert again == state and again.variables == state.variables
    assert state != state.with_variables({"offset": 0.0})
    free = m.assemble(free=["rod_length"])
    assert pickle.loads(pickle.dumps(free)).state.variables == free.state.variables


# -- derivatives -------------------------------------------------------------------------------------------------------


def differences(system, state, tail, formulation):
    """Largest error of the columns of variables, relative to the largest entry."""
    problem = formulations.problem(system, formulation, None, 0.0)
    q = formulations.to_reference(system, state.coordinates, tail)
    free = len(system.variables.free)
    _, jacobian = problem.jacobian(q)
    worst = 0.0
    for k in range(problem.unknowns - free, problem.unknowns):
        column = np.zeros(problem.rows)
        for steps, weight in ((1, 8.0), (2, -1.0)):  # fourth order
            step = np.zeros(problem.unknowns)
            step[k] = steps * 1e-3
            sides = [problem.residual(problem.retract(q, sign * step)) for sign in (1.0, -1.0)]
            column += weight * (sides[0] - sides[1]) / 12e-3
        scale = max(1.0, np.abs(jacobian[:, k]).max())
        worst = max(worst, np.abs(column - jacobian[:, k]).max() / scale)
    return worst, np.abs(jacobian[:, -free:]).max()


def with_formulas(kind):
    """A joint of a kind with formulas in its frames and its options, off its solution."""
    m = cd.Mechanism(kind)
    p, r = m.parameter("p", 0.4, lower=-3.0, upper=3.0), m.parameter("r", 0.9)
    first = m.body("first", position=(0.1, 0.2, 0.3), orientation=euler.from_rotation_vector((0.2, -0.3, 0.4)))
    second = m.body("second", position=(0.6, -0.2, 0.1), orientation=euler.from_rotation_vector((0.5, 0.1, -0.2)))
    options = dict(zip(JOINTS[kind].options(np.random.default_rng(1)), (p * r, p + r), strict=False))
    origin, z, x = (p, p * r, 0.3), (0.2, p, r), (1.0, 0.1, cd.sin(p))
    a = first.frame(origin, z=z, x=x)
    b = second.frame((r, 0.1, cd.exp(-p)), z=(r / p, 0.3, 1.0), x=(1.0, p**2, 0.2))
    ends = (b, a) if REGISTRY[kind].takes == ("point", "frame") else (a, b)
    getattr(m, kind)("new", *ends, **options)
    m.spherical("held", m.ground.point((p, 0, 0)), first.point((0, r, 0)))
    return m


def with_coupling(kind):
    m = cd.Mechanism(kind)
    p, r = m.parameter("p", 0.4), m.parameter("r", 0.9)
    for name in ("first", "second", "third"):
        m.body(name, orientation=euler.from_rotation_vector((0.2, 0.3, 0.7)))
    a = m.revolute("A", m.ground.frame(z=(p, 0, 1.0), x=X), m["first"].frame(x=X))
    b = m.revolute("B", m.ground.frame((1, 0, 0), z=Z, x=X), m["second"].frame((0, p, 0), x=X))
    c = m.prismatic("P", m.ground.frame(z=X, x=Z), m["third"].frame((r, 0, 0), z=X, x=Z))
    if kind == "gear":
        m.gear("new", a, b, ratio=p / r, phase=r)
    elif kind == "rack":
        m.rack("new", a, c, radius=p, offset=r)
    else:
        m.belt("new", a, b, radius_1=p, radius_2=r, crossed=True, phase=p)
    return m


@cd.primitive(i="point", j="point", up="vector of i")
def height(i, j, up, *, offset=0.0, factor=1.0):
    return cd.dot(up, j - i) - offset * factor * factor


def with_own():
    m = cd.Mechanism("own")
    p, r = m.parameter("p", 0.4), m.parameter("r", 0.9)
    body = m.body("first", position=(0.1, 0.4, 0.2), orientation=euler.from_rotation_vector((0.2, 0.3, 0.7)))
    up = m.ground.vector(p, 0.2, r)
    m.constrain("new", height, i=m.ground.point((r, 0, 0)), j=body.point((0, p, 0)), up=up, offset=p, factor=r)
    return m


FRAMED = [k for k, made in REGISTRY.items() if made.is_between_places]
CASES = {
    **{kind: (lambda kind=kind: with_formulas(kind)) for kind in FRAMED},
    **{kind: (lambda kind=kind: with_coupling(kind)) for kind in ("gear", "rack", "belt")},
    "constrain": with_own,
}


def test_the_cases_cover_every_joint_that_takes_a_parameter():
    others = {"couple", "drive", "limit"}  # of functions
    others |= {"contact", "path", "point_on_curve", "point_on_surface"}  # of shapes
    others |= {"knife_edge", "constrain_rates", "rolling"}  # of velocities
    assert set(CASES) | others == set(REGISTRY)


@pytest.mark.parametrize("formulation", formulations.REGISTRY)
@pytest.mark.parametrize("case", CASES)
def test_derivatives_by_parameters_agree_with_differences(case, formulation):
    m = CASES[case]()
    system = m.system.with_variables(("p", "r"))
    start = formulations.with_angles_of_poses(system, formulations.to_reference(system, system.authored))
    tail = formulations.angles(system, start)
    worst, size = differences(system, m.state, tail, formulation)
    assert worst < DERIVATIVE
    assert size > 0.1  # something depends on them


def with_primitive(name):
    """A built-in primitive with formulas as its parameters, between two bodies."""
    primitive = registry.find(name)
    m = cd.Mechanism(name)
    p, r = m.parameter("p", 0.4), m.parameter("r", 0.9)
    first = m.body("first", position=(0.1, 0.2, 0.3), orientation=euler.from_rotation_vector((0.2, -0.3, 0.4)))
    second = m.body("second", position=(0.6, -0.2, 0.1), orientation=euler.from_rotation_vector((0.5, 0.1, -0.2)))
    a, b = first.frame((0.1, p, 0), z=(p, 0.1, 1.0), x=X), second.frame((0, 0.2, r), z=(0.3, r, 1.0), x=X)
    ends = {"point": [a.point(), b.point()], "vector": [first.vector(p, 0.2, 1.0), second.vector(1.0, r, 0.1)]}
    given = {}
    for argument in primitive.arguments:
        if argument.kind in ends:
            given[argument.name] = ends[argument.kind].pop(0)
        else:
            given[argument.name] = cd.coordinate(a, b, argument.kind)
            a, b = b, a
    formulas = dict(zip(primitive.parameters, (p * r + 0.2, r - p * p), strict=False))
    m.constrain("new", primitive, **given, **formulas)
    return m


WITH_PARAMETERS = [p.name for p in registry.REGISTRY.values() if p.parameters and p.equations]


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_derivatives_of_every_primitive_by_its_parameters_agree_with_differences(name):
    m = with_primitive(name)
    system = m.system.with_variables(("p", "r"))
    start = formulations.with_angles_of_poses(system, formulations.to_reference(system, system.authored))
    for one in (system, system.judged()):
        worst, size = differences(one, m.state, formulations.angles(system, start), "manifold")
        assert worst < DERIVATIVE
        assert size > 0.1
    held, free = m.system, system
    q = formulations.to_reference(held, held.authored)
    q = formulations.with_angles_of_poses(held, q)
    form = held.judged() if name == "distance_squared" else held  # a free length is not squared
    mine = formulations.problem(form, "manifold").residual(q)
    assert formulations.problem(free, "manifold").residual(start)[: mine.size] == pytest.approx(mine, abs=1e-14)


EXPRESSIONS = {  # every operation of a formula, at p = 0.4 and r = 0.9
    "+": lambda p, r: p + r + 0.1,
    "-": lambda p, r: 1.5 - p - r,
    "*": lambda p, r: 2.0 * p * r,
    "/": lambda p, r: p / r + 0.2 / p,
    "call sqrt": lambda p, r: cd.sqrt(p * r),
    "call sin": lambda p, r: cd.sin(p + 2 * r),
    "call cos": lambda p, r: cd.cos(p * r),
    "call tan": lambda p, r: cd.tan(p - r),
    "call exp": lambda p, r: cd.exp(-p * r),
    "call log": lambda p, r: cd.log(p + 3 * r),
    "call asin": lambda p, r: cd.asin(p * r),
    "call acos": lambda p, r: cd.acos(p - r),
    "call atan": lambda p, r: cd.atan(p / r),
    "call sinh": lambda p, r: cd.sinh(p - 2 * r),
    "call cosh": lambda p, r: cd.cosh(p + r),
    "call tanh": lambda p, r: cd.tanh(p * r),
    "call atan2": lambda p, r: cd.atan2(p, -r),
    "call power": lambda p, r: p**3 + r**-1.5 + (p + r) ** p,
}


def test_the_expressions_have_every_operation():
    from cardan.system.variables import OPERATIONS

    assert {"constant", "variable", *EXPRESSIONS} == set(OPERATIONS)


@pytest.mark.parametrize("operation", EXPRESSIONS)
def test_values_and_derivatives_of_every_operation_agree_with_python(operation):
    """The kernel, the formula and Python's own function of numbers; derivatives by differences."""
    m = cd.Mechanism("expression")
    p, r = m.parameter("p", 0.4), m.parameter("r", 0.9)
    formula, number = (EXPRESSIONS[operation](*given) for given in ((p, r), (0.4, 0.9)))
    assert formula.value == pytest.approx(number, rel=1e-15)
    body = m.body("body", position=(0.3, 0.1, 0.2), orientation=euler.from_rotation_vector((0.2, -0.3, 0.4)))
    m.spherical("at", m.ground.point((formula, 0, 1.0)), body.point((0, 1.0, formula)))
    m.perpendicular("turned", m.ground.frame(z=(1.0, formula, 0.3)), body.frame(z=(0, 1.0, formula)))
    system = m.system.with_variables(("p", "r"))
    worst, size = differences(system, m.state, system.tail, "manifold")
    assert worst < DERIVATIVE and size > 0.1
    held, free = (formulations.problem(one, "manifold") for one in (m.system, system))
    at = formulations.to_reference(m.system, m.system.authored), formulations.to_reference(system, system.authored)
    assert free.residual(at[1]) == pytest.approx(held.residual(at[0]), abs=1e-14)


# -- solved for --------------------------------------------------------------------------------------------------------


def test_crank_and_rod_for_a_stroke_and_an_offset():
    """Two copies in the dead points: rod + crank and rod − crank reach the ends of the stroke."""
    stroke, offset, far = 0.35, 0.08, 0.62
    m = cd.Mechanism("stroke")
    r, rod = m.parameter("r", 0.2), m.parameter("l", 0.4)
    for k, (x, turned) in enumerate(((far, 0.0), (far - stroke, pi))):
        angle = math.atan2(offset, x) + turned
        a = m.body(f"crank_{k}", orientation=euler.from_axis_angle(Z, angle))
        b = m.body(
            f"rod_{k}",
            position=(0.2 * cos(angle), 0.2 * sin(angle), 0),
            orientation=euler.from_axis_angle(Z, angle - turned),
        )
        m.revolute(f"A_{k}", m.ground.frame(z=Z, x=X), a.frame(z=Z, x=X))
        hinge = m.revolute(f"B_{k}", a.frame((r, 0, 0), z=Z, x=X), b.frame(z=Z, x=X))
        m.revolute(f"C_{k}", m.ground.frame((x, offset, 0), z=Z), b.frame((rod, 0, 0), z=Z))
        m.drive(f"collinear_{k}", hinge, turned)
    result = m.assemble(free=[r, rod])
    assert result.ok, result.text()
    outer, inner = hypot(far, offset), hypot(far - stroke, offset)
    assert result.state.variables["r"] == pytest.approx((outer - inner) / 2, abs=EXACT)
    assert result.state.variables["l"] == pytest.approx((outer + inner) / 2, abs=EXACT)


def test_six_legs_of_a_platform_for_a_pose():
    rotation = (0.2, -0.1, 0.3)
    m = cd.Mechanism("stewart")
    q = euler.from_rotation_vector(rotation)
    platform = m.body("platform", position=(0.1, -0.05, 1.3), orientation=q)
    legs = [m.parameter(f"L{k}", 1.0, lower=0.1) for k in range(6)]
    for k in range(6):
        b, p = stewart_distance.BASE[k], stewart_distance.PLATFORM[k]
        m.distance(f"leg_{k}", m.ground.point(b), platform.point(p), legs[k])
    m.fixed(
        "pose",
        m.ground.frame((0.1, -0.05, 1.3), z=Z, x=X),
        platform.frame(z=euler.matrix(q).T @ Z, x=euler.matrix(q).T @ X),
    )
    result = m.assemble(free=legs)
    assert result.ok
    for k in range(6):
        p = np.array([0.1, -0.05, 1.3]) + euler.matrix(q) @ stewart_distance.PLATFORM[k]
        assert result.state.variables[f"L{k}"] == pytest.approx(np.linalg.norm(p - stewart_distance.BASE[k]), abs=EXACT)


def test_three_positions_of_a_function_generator():
    """Freudenstein's equation K₁ cos ψ − K₂ cos φ + K₃ = cos(φ − ψ) is linear in three positions."""
    pairs = np.radians([(40.0, 70.0), (60.0, 80.0), (80.0, 95.0)])
    m = cd.Mechanism("freudenstein")
    a, b, c = m.parameter("a", 0.5), m.parameter("b", 0.9), m.parameter("c", 0.8)
    for k, (phi, psi) in enumerate(pairs):
        crank = m.body(f"crank_{k}", orientation=euler.from_axis_angle(Z, phi))
        rocker = m.body(f"rocker_{k}", position=(1, 0, 0), orientation=euler.from_axis_angle(Z, psi))
        first = m.revolute(f"A_{k}", m.ground.frame(z=Z, x=X), crank.frame(z=Z, x=X))
        second = m.revolute(f"D_{k}", m.ground.frame((1, 0, 0), z=Z, x=X), rocker.frame(z=Z, x=X))
        m.drive(f"phi_{k}", first, float(phi))
        m.drive(f"psi_{k}", second, float(psi))
        m.distance(f"coupler_{k}", crank.point((a, 0, 0)), rocker.point((c, 0, 0)), b)
    assert len(m.system.pieces) == 3
    assert len(m.system.with_variables(("a", "b", "c")).pieces) == 1  # united by what they share
    result = m.assemble(free=["a", "b", "c"])
    assert result.ok, result.text()
    phi, psi = pairs.T
    k1, k2, k3 = np.linalg.solve(np.column_stack([np.cos(psi), -np.cos(phi), np.ones(3)]), np.cos(phi - psi))
    length_a, length_c = 1 / k1, 1 / k2
    length_b = sqrt(length_a**2 + length_c**2 + 1 - 2 * length_a * length_c * k3)
    found = result.state.variables
    assert [found["a"], found["b"], found["c"]] == pytest.approx([length_a, length_b, length_c], abs=EXACT)


# Five points of a line, of Problem 7 of [MorganWampler1990]; the digits of the solutions are those of [Verschelde1999].
POINTS = ((0.50, 1.06), (-0.83, -0.27), (-0.34, 0.22), (-0.13, 0.43), (0.22, 0.78))
SOLUTIONS = (
    (-0.0877960434509403, -0.85138690751564, 0.235837391307301, -1.41899202703639),
    (0.0193359267851516, -0.937757011012446, 1.22226669109342, -1.08285087742709),
    (-0.595728628822183, -0.617010917712341, 0.118171353650905, -1.82939267557673),
)


def five_points(start):
    """One coupler in five places: its point at each of POINTS, its ends on two circles about (0, 0) and (1, 0)."""
    m = cd.Mechanism("five points")
    x1, x2, y1, y2 = (m.parameter(name, value) for name, value in zip(("x1", "x2", "y1", "y2"), start, strict=True))
    d = np.array(POINTS[0])
    r = m.parameter("r", hypot(d[0] + start[0], d[1] + start[1]))
    s = m.parameter("s", hypot(d[0] - 1 + start[2], d[1] + start[3]))
    for k, (px, py) in enumerate(POINTS):
        part = m.body(f"coupler_{k}", position=(px, py, 0))
        pin = m.revolute(f"point_{k}", m.ground.frame((px, py, 0), z=Z, x=X), part.frame(z=Z, x=X))
        m.distance(f"crank_{k}", m.ground.point(), part.point((x1, x2, 0)), r)
        m.distance(f"rocker_{k}", m.ground.point((1, 0, 0)), part.point((y1, y2, 0)), s)
        if k == 0:
            m.drive("first", pin, 0.0)
    return m


@pytest.mark.parametrize("number", range(len(SOLUTIONS)))
def test_five_positions_of_a_coupler_point_reach_the_printed_digits(number):
    wanted = np.array(SOLUTIONS[number])
    m = five_points(tuple((wanted + 0.003 * np.array([1, -1, 1, -1])).tolist()))
    first = {}
    for k, (px, py) in enumerate(POINTS):  # orientations in which the coupler meets its circles
        first[f"coupler_{k}"] = (px, py, 0), euler.from_axis_angle(Z, coupler_angle(wanted, k))
    result = m.assemble(first, free=["x1", "x2", "y1", "y2", "r", "s"])
    assert result.ok, result.text()
    found = [result.state.variables[name] for name in ("x1", "x2", "y1", "y2")]
    assert found == pytest.approx(wanted.tolist(), abs=2e-12 * (1 + np.abs(wanted).max()))


def coupler_angle(solution, k):
    """The rotation of the coupler at a point, from the two circles."""
    x, y = complex(*solution[:2]), complex(*solution[2:])
    d0, d = complex(*POINTS[0]), complex(*POINTS[k])
    angles = np.linspace(-pi, pi, 20001)
    turn = np.exp(1j * angles)
    miss = np.abs(np.abs(d + turn * x) - abs(d0 + x)) + np.abs(np.abs(d - 1 + turn * y) - abs(d0 - 1 + y))
    return float(angles[np.argmin(miss)])


def bounded():
    """A slide driven to 1 m, with a rod of a length between 0.2 and 0.8 m."""
    m = cd.Mechanism("bounded")
    part = m.body("part", position=(0.5, 0, 0))
    length = m.parameter("length", 0.5, lower=0.2, upper=0.8)
    m.prismatic("slide", m.ground.frame(z=X, x=Z), part.frame(z=X, x=Z))
    m.distance("rod", m.ground.point((0, 0, 0)), part.point(), length)
    m.drive("there", m["slide"], 1.0)
    return m


def test_free_parameters_keep_their_bounds():
    m = slider_crank()
    m.drive("there", m["slide"], 0.62)
    assert m.assemble(free=["rod_length"]).state.variables["rod_length"] == pytest.approx(
        hypot(0.62 - 0.2 * cos(0.5), 0.05 - 0.2 * sin(0.5)), abs=EXACT
    )
    m = bounded()
    result = m.assemble(free=["length"])
    assert not result.ok
    assert result.worst and 0.2 - 1e-9 <= result.state.variables["length"] <= 1.0
    within = m.copy()
    within.remove("there")
    within.drive("there", within["slide"], 0.75)
    assert within.assemble(free=["length"]).state.variables["length"] == pytest.approx(0.75, abs=1e-12)


def test_the_nearest_and_the_least_are_those_of_a_one_dimensional_search():
    from scipy.optimize import minimize_scalar

    m = slider_crank()
    m.drive("there", m["slide"], 0.62)

    def rod(r):
        return hypot(0.62 - r * cos(0.5), 0.05 - r * sin(0.5))

    crank, length = m["crank_length"], m["rod_length"]
    for least, cost in (
        ("nearest", lambda r: (r - 0.2) ** 2 + (rod(r) - 0.4) ** 2),
        (crank**2 + 0.5 * length**2, lambda r: r**2 + 0.5 * rod(r) ** 2),
    ):
        result = m.assemble(free=["crank_length", "rod_length"], least=least)
        assert result.ok, result.text()
        expected = minimize_scalar(cost, bounds=(0.01, 1.0), method="bounded", options={"xatol": 1e-12}).x
        assert result.state.variables["crank_length"] == pytest.approx(expected, abs=1e-7)
        assert result.state.variables["rod_length"] == pytest.approx(
            rod(result.state.variables["crank_length"]), abs=1e-11
        )
    result = m.assemble(free=["crank_length", "rod_length"], least=crank * 1.0)
    assert result.state.variables["crank_length"] == pytest.approx(0.01, abs=1e-12)  # at its bound


def test_a_free_parameter_that_nothing_determines_is_a_freedom_by_name():
    m = slider_crank()
    m.parameter("idle", 1.0)
    state = m.assemble().state
    report = m.diagnose(state, free=["idle"])
    assert report.dof == m.diagnose(state).dof + 1
    assert "parameter 'idle' changes" in report.text()
    m.parameter("bounded", 1.0, lower=0.5)
    result = m.assemble(free=["idle", "bounded", "rod_length"])
    assert result.ok and len(result.notes) == 2
    for name in ("idle", "bounded"):
        assert f"nothing determines parameter {name!r}" in result.text()
    assert not m.assemble(free=["rod_length"]).notes
    report = m.diagnose(state, free=["rod_length"])  # the drivers determine the crank, not the length
    assert report.dof == 2 and report.undriven == 1
    assert any("rod_length" in motion.text() for motion in report.free_motions)


def test_free_parameters_do_not_depend_on_units_order_or_place():
    found = []
    for unit, shift, names in ((1.0, 0.0, "ab"), (1000.0, 0.0, "ab"), (1.0, 7.0, "ab"), (1.0, 0.0, "ba")):
        m = cd.Mechanism("units")
        parts = {}
        for name in names:
            parts[name] = m.body(name, position=(unit * (0.1 + shift), 0, 0))
        length = m.parameter("length", 0.5 * unit, lower=0.1 * unit)
        ground = m.ground
        m.revolute("A", ground.frame((unit * shift, 0, 0), z=Z, x=X), parts["a"].frame(z=Z, x=X))
        m.revolute("B", parts["a"].frame((length, 0, 0), z=Z, x=X), parts["b"].frame(z=Z, x=X))
        m.distance(
            "rod", parts["b"].point((0.3 * unit, 0, 0)), ground.point((unit * (shift + 0.4), 0.5 * unit, 0)), 0.2 * unit
        )
        m.drive("first", m["A"], 0.7)
        m.drive("second", m["B"], 0.4)
        result = m.assemble(free=["length"])
        assert result.ok
        found.append(result.state.variables["length"] / unit)
    assert found == pytest.approx([found[0]] * 4, abs=1e-12)


def test_many_starts_find_what_single_ones_find():
    m = slider_crank()
    m.drive("there", m["slide"], 0.62)
    states = [m.state, m.state.with_variables({"rod_length": 0.5})]
    batch = m.assemble_many(states, free=["rod_length"])
    for k, start in enumerate(states):
        single = m.assemble(start, free=["rod_length"])
        assert batch.ok[k] and single.ok
        assert batch.variable("rod_length")[k] == pytest.approx(single.state.variables["rod_length"], abs=1e-12)
    values = np.linspace(0.18, 0.22, 7)
    n = slider_crank()
    several = n.assemble_many(n.assemble().state, values={"crank_length": values}, workers=2)
    assert several == n.assemble_many(n.assemble().state, values={"crank_length": values}, workers=1)
    expected = [slider_at(0.5, crank=value) for value in values]
    assert [n["slide"].coordinate(several.state(k)) for k in range(7)] == pytest.approx(expected, abs=1e-11)


# -- sensitivity -------------------------------------------------------------------------------------------------------


def rsur_with_lengths():
    m = cd.Mechanism("rsur")
    crank, coupler, rocker = (
        m.parameter("crank_length", 1.0),
        m.parameter("coupler_length", 4.0),
        m.parameter("rocker_length", 2.0),
    )
    dx, dy, dz = m.parameter("dx", 3.0), m.parameter("dy", 0.0), m.parameter("dz", 1.0)
    a = m.body("crank", orientation=euler.from_axis_angle(Z, 0.7))
    b = m.body("coupler", position=(0.8, 0.6, 0.0), orientation=euler.from_axis_angle(Y, -0.8))
    c = m.body("rocker", position=rsur.D, orientation=euler.from_zxz((0.0, -1.3, -1.4)))
    m.revolute("A", m.ground.frame(z=Z, x=X), a.frame(z=Z, x=X))
    m.spherical("B", a.point((crank, 0, 0)), b.point())
    m.universal("C", b.frame((coupler, 0, 0), z=Z), c.frame((rocker, 0, 0), z=Z))
    m.revolute("D", m.ground.frame((dx, dy, dz), z=rsur.ROCKER_AXIS, x=X), c.frame(z=Z, x=X))
    m.drive("motor", m["A"], 0.7)
    return m


def test_the_sensitivity_of_the_rsur_output_is_that_of_richardson_differences():
    m = rsur_with_lengths()
    state = m.assemble().state
    found = m.sensitivity(state, ["D"])
    assert found.freedoms == 0 and found.unique.all()

    def output(name, h):
        values = []
        for sign in (1.0, -1.0):
            moved = m.assemble(state.with_variables({name: state.variables[name] + sign * h}), tolerance=1e-14)
            values.append(m["D"].coordinate(moved.state))
        return (values[0] - values[1]) / (2 * h)

    for name in m.parameters:
        coarse, middle, fine = (output(name, h) for h in (0.04, 0.02, 0.01))
        first, second = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
        assert found["D", name] == pytest.approx((16 * second - first) / 15, rel=1e-8)


def test_sensitivities_of_points_coordinates_and_primitives():
    m = slider_crank()
    state = m.assemble().state
    level = (height, {"i": m.ground.point(), "j": m["rod"].point((0.1, 0, 0)), "up": m.ground.vector(0, 1, 0)})
    found = m.sensitivity(state, ["slide", m["rod"].point((0.1, 0, 0)), m["C"], level], ["crank_length", "rod_length"])
    labels = [output.label for output in found.outputs]
    assert labels == ["slide", "rod x", "rod y", "rod z", "C", "height"]
    assert found["height", "crank_length"] == pytest.approx(found["rod y", "crank_length"], abs=1e-13)
    root = sqrt(0.4**2 - (0.2 * sin(0.5) - 0.05) ** 2)
    assert found["slide", "rod_length"] == pytest.approx(0.4 / root, abs=1e-12)
    assert found["slide", "crank_length"] == pytest.approx(
        cos(0.5) - (0.2 * sin(0.5) - 0.05) * sin(0.5) / root, abs=1e-12
    )
    points = m.sensitivity(state, [m["rod"].point(), m["rod"].point((0.1, 0, 0))], ["crank_length"])
    assert points["rod x", "crank_length"] == pytest.approx(cos(0.5), abs=1e-12)
    assert points["rod x (output 1)", "crank_length"] == pytest.approx(found["rod x", "crank_length"], abs=1e-12)
    free = slider_crank(driven=False)
    loose = free.sensitivity(free.assemble().state, ["slide", "A"])
    assert loose.freedoms == 1 and not loose.unique.any()
    assert "not unique" in loose.text()


def test_a_parameter_that_moves_both_parts_of_a_redundant_joint_moves_nothing():
    """Two hinges of a door, each where the other part has it: the height of the upper one is of no effect."""
    for scale in (1e-3, 1.0, 1e3):
        m = cd.Mechanism("door")
        width, height = m.parameter("w", 0.5 * scale), m.parameter("h", 2.0 * scale)
        leaf = m.body("leaf", orientation=euler.from_axis_angle(Z, 0.4))
        lower = m.revolute("lower", m.ground.frame(z=Z, x=X), leaf.frame(z=Z, x=X))
        m.revolute("upper", m.ground.frame((0, 0, height), z=Z, x=X), leaf.frame((0, 0, height), z=Z, x=X))
        m.distance("rod", leaf.point((width, 0, 0)), m.ground.point((scale, 0.3 * scale, 0)), 0.9 * scale)
        found = m.sensitivity(m.assemble().state, [lower, leaf.point((0, 0, height))])
        assert abs(found["lower", "h"]) * scale < 1e-12 and found["leaf z", "h"] == pytest.approx(1.0, abs=1e-12)
        far, beside = hypot(1.0, 0.3), lower.coordinate(m.assemble().state) - math.atan2(0.3, 1.0)
        wanted = (far * cos(beside) - 0.5) / (0.5 * far * sin(beside))  # of w² + d² − 2 w d cos β = l²
        assert found["lower", "w"] * scale == pytest.approx(wanted, rel=1e-11) and found.unique.all()
    upper = m.ground.frame((0, 0, height + scale), z=Z, x=X)  # now it would tear the door apart
    m.revolute("third", upper, leaf.frame((0, 0, 3.0 * scale), z=Z, x=X))
    with pytest.raises(cd.ModelError, match="parameter 'h'"):
        m.sensitivity(m.assemble().state, [lower])


@pytest.mark.slow
def test_tolerances_agree_with_samples_over_a_turn():
    m = slider_crank()
    tolerances = {"crank_length": 1e-4, "rod_length": 2e-4, "offset": 3e-4}
    for time in np.linspace(0.0, 2 * pi, 5)[:-1]:
        state = m.assemble(time=float(time)).state
        found = m.tolerances(state, ["slide"], tolerances, samples=20_000, seed=1)
        slopes = found.sensitivity.matrix[0] * np.array(list(tolerances.values()))
        assert found.worst[0] == pytest.approx(np.abs(slopes).sum(), rel=1e-12)
        assert found.rss[0] == pytest.approx(np.linalg.norm(slopes), rel=1e-12)
        assert found.failed == 0
        error = 1 / sqrt(2 * 20_000)  # relative standard deviation of a standard deviation
        assert found.spread[0] == pytest.approx(found.rss[0], rel=4 * error)
        assert abs(found.mean[0]) < 4 * found.rss[0] / 3 / sqrt(20_000) + 1e-6
        assert sum(share for _, share in found.ranked()) == pytest.approx(1.0)
    again = m.tolerances(state, ["slide"], dict(reversed(tolerances.items())), samples=20_000, seed=1, workers=1)
    assert again.samples == pytest.approx(found.samples, abs=1e-14)  # neither order nor threads matter
    assert "rod_length" in found.text()


NUMBERS = {  # every number of a joint, and a value that it can have; all other options are not numbers
    "gear": {"ratio": 0.5, "phase": 0.2},
    "rack": {"radius": 0.3, "offset": 0.1},
    "belt": {"radius_1": 0.2, "radius_2": 0.3, "phase": 0.1},
    "limit": {"lower": -0.5, "upper": 0.5, "restitution": 0.5},
    **{kind: dict(row.options(np.random.default_rng(1))) for kind, row in JOINTS.items() if row.sample.options},
}
FLAGS = {"crossed", "squared", "cosine", "function"}
REFUSED = {"limit"}  # a stop is a number; its joint may have parameters


def with_option(kind, option, value, **flags):
    """A joint of a kind, all numbers as above but one."""
    m = cd.Mechanism(kind)
    parameter = m.parameter("p", value, lower=value - 1.0, upper=value + 1.0)
    first, second, third = (m.body(name, orientation=euler.from_rotation_vector((0.2, 0.3, 0.7))) for name in "abc")
    a = m.revolute("A", m.ground.frame(x=X), first.frame(x=X))
    c = m.prismatic("P", m.ground.frame(z=X, x=Z), third.frame(z=X, x=Z))
    b = m.revolute("B", m.ground.frame((1, 0, 0), x=X), second.frame(x=X)) if kind in ("gear", "belt") else None
    ends = {"gear": (a, b), "belt": (a, b), "rack": (a, c), "limit": (a,)}
    frames = first.frame((0.3, 0, 0), z=Y, x=X), second.frame((0.1, 0.4, 0), z=(0, 1, 1), x=X)
    numbers = {**NUMBERS[kind], option: parameter, **flags}
    getattr(m, kind)("new", *ends.get(kind, frames), **numbers)
    return m


def test_the_table_of_numbers_has_every_option_of_every_joint():
    found = {kind: {o for o in made.options if o not in FLAGS} for kind, made in REGISTRY.items()}
    assert {kind: set(numbers) for kind, numbers in NUMBERS.items()} == {k: v for k, v in found.items() if v}


@pytest.mark.parametrize(("kind", "option"), [(k, o) for k, own in NUMBERS.items() for o in own])
def test_a_parameter_may_be_any_number_of_a_joint_or_is_refused_by_name(kind, option):
    if kind in REFUSED:
        with pytest.raises(cd.ModelError, match=rf"{option}.*a parameter is not allowed here"):
            with_option(kind, option, NUMBERS[kind][option])
        return
    flags = {"distance": [{}, {"squared": True}], "angle": [{}, {"cosine": True}], "belt": [{}, {"crossed": True}]}
    for own in flags.get(kind, [{}]):
        m = with_option(kind, option, NUMBERS[kind][option], **own)
        system = m.system.with_variables(("p",))
        worst, largest = differences(system, m.state, system.tail, "manifold")
        assert largest > 0.0 and worst <= DERIVATIVE
        held = m.assemble()
        assert held.ok, held.text()
        again = m.assemble(held.state, free=["p"])
        assert again.ok and again.state.variables["p"] == NUMBERS[kind][option]


def test_parameters_in_limits_and_poses_are_refused_by_name():
    m = slider_crank(driven=False)
    L = m["offset"]
    refused = {"limit": lambda: m.limit("new", m["A"], upper=L), "position": lambda: m.body("new", position=(L, 0, 0))}
    for name, call in refused.items():
        with pytest.raises(cd.ModelError) as error:
            call()
        assert "offset" in str(error.value) and "parameter" in str(error.value), (name, str(error.value))
        assert "new" not in m


def test_the_free_length_of_a_squared_distance_is_not_the_negative_root():
    for drawn in (0.05, 0.5, 3.0):
        m = cd.Mechanism("squared")
        length = m.parameter("length", drawn)
        arm = m.body("arm")
        m.revolute("A", m.ground.frame(x=X), arm.frame(x=X))
        m.distance("rod", m.ground.point((2, 0, 0)), arm.point((1, 0, 0)), length, squared=True)
        m.drive("motor", m["A"], 2.0)
        found = m.assemble(free=["length"])
        assert found.ok
        assert found.state.variables["length"] == pytest.approx(hypot(2 - cos(2.0), sin(2.0)), abs=EXACT)


def test_a_free_angle_needs_no_period():
    """Values that differ by a turn give the same poses; the value that is found is the one near the drawn value."""
    poses = []
    for turns in (-1, 0, 3):
        m = cd.Mechanism("angle")
        tilt = m.parameter("tilt", 0.3 + 2 * pi * turns)
        arm = m.body("arm", position=(1, 0, 0))
        m.fixed("A", m.ground.frame(z=Z, x=(cd.cos(tilt), cd.sin(tilt), 0.0)), arm.frame((-1, 0, 0), z=Z, x=X))
        m.distance("rod", m.ground.point((0, 2, 0)), arm.point(), 1.5)
        found = m.assemble(free=["tilt"])
        assert found.ok
        value = found.state.variables["tilt"]
        assert cos(value - pi / 2) == pytest.approx((5 - 1.5**2) / 4, abs=EXACT)  # by the law of cosines
        assert abs(value - tilt.value) < pi
        poses.append(found.state.coordinates)
    assert np.allclose(poses[0], poses[1], atol=1e-9) and np.allclose(poses[2], poses[1], atol=1e-9)


def with_tilt(value, *, period=2 * pi, rod=1.5):
    """An arm at an angle that is a parameter, held by a rod."""
    m = cd.Mechanism("tilt")
    tilt = m.parameter("tilt", value, period=period)
    arm = m.body("arm", position=(1, 0, 0))
    m.fixed("A", m.ground.frame(z=Z, x=(cd.cos(tilt), cd.sin(tilt), 0.0)), arm.frame((-1, 0, 0), z=Z, x=X))
    m.distance("rod", m.ground.point((0, 2, 0)), arm.point(), rod)
    return m


def test_a_parameter_with_a_period_is_found_within_half_of_it():
    """From states whose value is some turns away, and in a batch; without a period it stays there."""
    m, plain = with_tilt(0.3), with_tilt(0.3, period=None)
    expected = pi / 2 - acos((5 - 1.5**2) / 4)  # by the law of cosines
    assert m["tilt"].period == 2 * pi and plain["tilt"].period == 0.0
    turns = [-2, 0, 5]
    starts = [m.assemble().state.with_variables({"tilt": 0.3 + 2 * pi * k}) for k in turns]
    found = m.assemble_many(starts, free=["tilt"], workers=1)
    assert found.ok.all()
    assert found.variable("tilt") == pytest.approx([expected] * 3, abs=1e-9)
    away = plain.assemble_many(starts, free=["tilt"], workers=1).variable("tilt")
    assert away == pytest.approx([expected + 2 * pi * k for k in turns], abs=1e-9)
    nearest = m.assemble(free=["tilt"], least="nearest")
    assert nearest.ok and nearest.state.variables["tilt"] == pytest.approx(expected, abs=1e-9)
    copies = pickle.loads(pickle.dumps(m)), copy.deepcopy(m)
    assert all(made == m and made["tilt"].period == 2 * pi for made in copies)
    assert m != plain
    assert m.assemble(starts[2], free=["tilt"]).state.variables["tilt"] == pytest.approx(expected, abs=1e-9)
    m["tilt"].value = 0.3 + 4 * pi
    assert m.assemble(free=["tilt"]).state.variables["tilt"] == pytest.approx(expected + 4 * pi, abs=1e-9)


def test_a_period_excludes_bounds_and_formulas_that_have_another():
    m = cd.Mechanism("bad")
    with pytest.raises(cd.ModelError, match="'a' was given bounds and a period"):
        m.parameter("a", 0.3, lower=0.0, period=1.0)
    with pytest.raises(cd.ModelError, match="period of parameter 'a' is -1"):
        m.parameter("a", 0.3, period=-1.0)
    assert "a" not in m
    m = with_tilt(0.3)
    m.distance("second", m.ground.point((0, 0, 1)), m["arm"].point(), 1.0 + m["tilt"])
    assert m.assemble().status  # held, it need not be periodic
    with pytest.raises(cd.ModelError, match=r"'tilt' has the period 6\.28319, but <\(tilt \+ 1\)> changes by 6\.28"):
        m.assemble(free=["tilt"])


# -- bad input ---------------------------------------------------------------------------------------------------------


def test_errors_name_the_parameter_the_value_and_the_way_out():
    m, other = slider_crank(), cd.Mechanism("other")
    foreign = other.parameter("L", 1.0)
    with pytest.raises(cd.ModelError, match=r"'L'.* of another mechanism"):
        m["crank"].point((foreign, 0, 0))
    with pytest.raises(cd.ModelError, match="of another mechanism"):
        m.distance("bad", m.ground.point(), m["crank"].point(), foreign)
    with pytest.raises(cd.ModelError, match="two mechanisms"):
        foreign + m["offset"]
    with pytest.raises(cd.ModelError, match=r"must lie within 0\.5 and 2\.0"):
        m.parameter("P", 3.0, lower=0.5, upper=2.0)
    with pytest.raises(cd.ModelError, match="lower must be below upper"):
        m.parameter("P", 3.0, lower=4.0, upper=2.0)
    with pytest.raises(cd.ModelError, match=r"must lie within 0\.01"):
        m["crank_length"].value = 0.001
    assert m["crank_length"].value == 0.2
    with pytest.raises(cd.ModelError, match=r"parameter 'rod_length' is used by 'C'.*joints=True"):
        m.remove("rod_length")
    without = m.copy()
    without.remove("rod_length", joints=True)
    assert "C" not in without and "rod_length" not in without.parameters and "B" in without
    assert "rod_length" not in without.assemble().state.variables
    with pytest.raises(cd.UnknownNameError, match="no parameter is named 'L'"):
        m.assemble(free=["L"])
    with pytest.raises(cd.ModelError, match="must be a list"):
        m.assemble(free="offset")
    with pytest.raises(cd.ModelError, match="is of another mechanism"):
        m.assemble(free=[other.parameter("offset", 1.0)])
    with pytest.raises(cd.ModelError, match="no parameter is free"):
        m.assemble(least="nearest")
    with pytest.raises(cd.ModelError, match="least is 'most'"):
        m.assemble(free=["offset"], least="most")
    with pytest.raises(cd.ModelError, match="'relative' cannot solve for parameters"):
        m.assemble(free=["offset"], formulation="relative")
    for wrong in (math.sin, abs, lambda L: L > 1, float, lambda L: L * "a"):
        with pytest.raises(cd.ModelError, match=r"cd\.sin|combined with"):
            wrong(m["offset"])
    with pytest.raises(cd.ModelError, match="a parameter is not allowed here"):
        m.limit("stop", m["A"], lower=m["offset"])
    with pytest.raises(cd.ModelError, match="a parameter is not allowed here"):
        m.body("new", position=(m["offset"], 0, 0))


def test_a_value_that_a_joint_or_a_frame_cannot_have_is_refused_and_changes_nothing():
    m = cd.Mechanism("axes")
    a, g, w = m.parameter("a", 0.5), m.parameter("g", 2.0), m.parameter("w", 1.0)
    body, other = m.body("body"), m.body("other", position=(1, 0, 0))
    m.revolute("A", m.ground.frame(z=(0, 0, a), x=X), body.frame(x=X))
    m.revolute("B", m.ground.frame((1, 0, 0), x=X), other.frame(x=X))
    m.gear("G", m["A"], m["B"], ratio=g)
    m.distance("rod", body.point((1, 0, 0)), other.point((1, 0, 0)), w)
    for parameter, value, match in ((a, 0.0, "must not be zero"), (g, 0.0, "ratio"), (w, -1.0, "above zero")):
        before = parameter.value
        with pytest.raises(cd.ModelError, match=match):
            parameter.value = value
        assert parameter.value == before
        with pytest.raises(cd.ModelError, match="parameters of the state are not valid"):
            m.assemble(m.state.with_variables({parameter: value}))
    m.remove("rod")
    w.value = -1.0  # nothing needs it above zero any more
    m.remove("w")
    with pytest.raises(cd.ModelError, match="removed"):
        w.value = 1.0
    with pytest.raises(cd.ModelError, match="removed"):
        body.point((w, 0, 0))


@cd.primitive(i="point", up="vector")
def at_height(i, up):
    return cd.dot(up, i)


@cd.rate_primitive(i="point")
def as_far(i, *, factor=0.0):
    return cd.rate(i).y - factor * cd.rate(i).x


USES_OF_A_PLACE = {
    "joint": lambda m, b, o: m.revolute("new", m.ground.frame(), o["frame"]),
    "unused axis": lambda m, b, o: m.spherical("new", m.ground.frame(), o["turned"]),
    "distance": lambda m, b, o: m.distance("new", m.ground.point(), o["point"], m["K"]),
    "drive": lambda m, b, o: m.drive("new", o["coordinate"], math.sin),
    "limit": lambda m, b, o: m.limit("new", o["coordinate"], lower=0.0),
    "constrain": lambda m, b, o: m.constrain("new", at_height, i=b.point(), up=o["vector"]),
    "constrain_rates": lambda m, b, o: m.constrain_rates("new", as_far, i=o["point"]),
    "knife_edge": lambda m, b, o: m.knife_edge("new", o["frame"]),
    "spring": lambda m, b, o: m.spring("new", o["point"], m.ground.point(), stiffness=1.0),
    "spring of a coordinate": lambda m, b, o: m.spring("new", o["coordinate"], stiffness=1.0),
    "force": lambda m, b, o: m.force("new", o["point"], (0, 0, 1)),
    "path": lambda m, b, o: m.path("new", o["frame"], m.ground.attach(cd.geometry.circle(1.0))),
}


@pytest.mark.parametrize("use", USES_OF_A_PLACE)
@pytest.mark.parametrize("again", [False, True])
def test_a_place_whose_parameter_was_removed_is_refused(use, again):
    m = cd.Mechanism("m")
    length, other = m.parameter("L", 0.3), m.parameter("K", 0.2)
    b = m.body("b")
    old = {
        "frame": b.frame((length, 0, 0)),
        "turned": b.frame(z=(length, 0, 1)),
        "point": b.point((0, 2 * length, 0)),
        "vector": b.vector(length, 0, 1),
        "coordinate": cd.coordinate(m.ground.frame(), b.frame((length, 0, 0)), "displacement"),
    }
    m.remove("L")
    if again:
        m.parameter("L", 0.4)
    with pytest.raises(cd.ModelError, match=r"'new'.*'b'.* with a formula whose parameter was removed; make the"):
        USES_OF_A_PLACE[use](m, b, old)
    assert not m.joints and not m.loads and not m.rate_rows
    other.value = -1.0  # a joint that was refused leaves no condition


def test_a_rate_row_refuses_a_parameter_that_was_removed():
    m = cd.Mechanism("m")
    factor, b = m.parameter("factor", 0.3), m.body("b")
    m.remove("factor")
    with pytest.raises(cd.ModelError, match=r"rate row 'new'.*removed"):
        m.constrain_rates("new", as_far, i=b.point(), factor=factor)


def test_a_parameter_of_an_axis_that_no_equation_reads_is_in_use(tmp_path):
    m = cd.Mechanism("m")
    length = m.parameter("L", 0.3)
    m.spherical("ball", m.ground.frame(), m.body("b").frame(z=(length, 0, 1)))
    with pytest.raises(cd.ModelError, match="parameter 'L' is used by 'ball'"):
        m.remove("L")
    m.remove("L", joints=True)
    assert not m.joints


def test_named_frames_of_a_removed_parameter_are_not_saved(tmp_path):
    file = tmp_path / "m.cardan.toml"
    file.write_text(
        'cardan = 2\nparameters.L = 0.3\n[bodies.b.frames]\ntip = { origin = ["L", 0, 0] }\nend = { z = [1, 0, 0] }\n'
    )
    m = cd.load(file)
    m.remove("L")
    m.save(file)
    assert "end" in file.read_text() and "tip" not in file.read_text()
    assert cd.load(file) == m


def test_a_condition_of_a_joint_is_that_of_the_joint_alone():
    m, other = cd.Mechanism("m"), cd.Mechanism("other")
    length = m.parameter("L", 1.0)
    part = m.body("part")
    m.spherical("pin", m.ground.point(), part.point((length, 0, 0)))
    m.distance("rod", m.ground.point((3, 0, 0)), part.point(), length)
    with pytest.raises(cd.ModelError, match=r"distance 'rod': the length is -1"):
        length.value = -1.0
    m.remove("rod")
    length.value = -1.0  # a coordinate may be negative
    length.value = 1.0
    with pytest.raises(cd.ModelError, match=r"rack 'rack'"):
        m.rack("rack", m["pin"], m["pin"], length)  # no joint with an angle
    foreign = other.body("foreign")
    with pytest.raises(cd.ModelError, match=r"of another mechanism"):
        other.distance("rod", other.ground.point(), foreign.point(), length)
    for made in (m, m.copy(), pickle.loads(pickle.dumps(m))):
        made["L"].value = -1.0
        assert made.assemble().ok


def test_a_state_beyond_the_bounds_of_a_parameter_is_refused():
    m = cd.Mechanism("a")
    radius = m.parameter("radius", 0.1, lower=0.01, upper=1)
    m.revolute("A", m.ground.frame(), m.body("b").frame((radius, 0, 0)))
    with pytest.raises(cd.ModelError, match="parameter 'radius' is 5"):
        m.assemble(m.state.with_variables({"radius": 5}))


def test_freedoms_in_velocity_are_those_in_position_without_rate_rows():
    m = cd.Mechanism("a")
    length = m.parameter("length", 0.5)
    b = m.body("b")
    m.revolute("A", m.ground.frame(), b.frame())
    m.distance("rod", b.point((1, 0, 0)), m.ground.point((1, 0.5, 0)), length)
    state = m.assemble().state
    for free in ([], ["length"]):
        found = m.diagnose(state, free=free)
        assert found.velocity_dof == found.dof == len(free)


def test_a_parameter_at_a_bound_near_zero_is_not_beyond_it():
    m = cd.Mechanism("short")
    part = m.body("part", position=(0.5, 0, 0))
    length = m.parameter("length", 1e-3, lower=1.7e-4, upper=1.0)
    m.prismatic("slide", m.ground.frame((0, 0, 1), z=X, x=Z), part.frame((0, 0, 1), z=X, x=Z))
    m.distance("rod", m.ground.point((0, 0, 0)), part.point(), length)
    m.drive("there", m["slide"], 1.7e-4 - 3e-13)
    result = m.assemble(free=["length"])
    assert result.ok and result.state.variables["length"] == 1.7e-4
    several = m.assemble_many([m.state, m.state], free=["length"])
    assert several.ok.all() and (several.variable("length") == 1.7e-4).all()


def test_a_formula_of_held_parameters_may_stand_beside_a_free_one():
    m = cd.Mechanism("two")
    part = m.body("part", position=(0.5, 0, 0))
    held, free = m.parameter("held", 0.2), m.parameter("free", 0.3)
    m.distance("first", m.ground.point((0, 0, 0)), part.point(), 2.0 * held + 0.1)
    m.distance("second", m.ground.point((1, 0, 0)), part.point((0.1, 0, 0)), 2.0 * free + 0.1)
    result = m.assemble(free=["free"])
    assert result.ok and result.state.variables["held"] == 0.2
    position = result.state["part"].position
    assert np.linalg.norm(position) == pytest.approx(0.5, abs=1e-12)


def test_a_failure_names_the_parameter_whose_bound_is_the_cause_and_the_value_that_it_needs():
    text = bounded().assemble(free=["length"]).text()
    assert "it can be assembled, for example with parameter 'length' = 1000 mm (its upper bound is 800 mm)" in text
    assert "without driver 'there' it can be assembled" in text
    m = bounded()
    m.remove("there")
    m.drive("there", m["slide"], 0.1)
    assert "parameter 'length' = 100 mm (its lower bound is 200 mm)" in m.assemble(free=["length"]).text()
    # Where the bounds are no cause, they are not named.
    m = bounded()
    m.remove("there")
    m.distance("other", m.ground.point((0, 3, 0)), m["part"].point(), 1.0)
    text = m.assemble(free=["length"]).text()
    assert "conflict" in text and "bound" not in text


def test_the_bound_of_a_number_without_unit_is_named():
    m = cd.Mechanism("geared")
    ratio = m.parameter("ratio", 1.5, lower=1.0, upper=2.0)
    wheels = [m.body(name) for name in ("a", "b")]
    a, b = (m.revolute(f"hinge_{w.name}", m.ground.frame(), w.frame()) for w in wheels)
    m.gear("gear", a, b, ratio=ratio)
    m.drive("in", a, 0.5)
    m.drive("out", b, 1.5)
    assert "'ratio' = 3 (its upper bound is 2)" in m.assemble(free=["ratio"]).text()


def test_the_state_of_a_failure_is_within_the_bounds_and_can_be_diagnosed():
    m = bounded()
    result = m.assemble(free=["length"])
    assert not result.ok and 0.2 <= result.state.variables["length"] <= 0.8
    assert m.diagnose(result.state, free=["length"]).text()


# -- values that formulas do not allow ---------------------------------------------------------------------------------


def hinged_about(axis, parameters=True):
    m = cd.Mechanism("axis")
    a = m.parameter("a", axis) if parameters else axis
    m.revolute("A", m.ground.frame(z=(0.1 * a * a, 0, a), x=Y), m.body("b").frame(z=Z, x=Y))
    return m


def test_an_axis_may_be_reversed_by_its_parameter():
    """A formula of an axis is that of the plain number on both sides of zero, in every way to give a value."""
    plain, m = hinged_about(-0.5, False), hinged_about(0.5)
    expected, state = plain.assemble().state, m.assemble().state
    assert expected["b"].matrix[2, 2] < -0.9
    many = m.assemble_many(state, values={"a": [0.5, -0.5]})
    listed = m.assemble_many([state, state.with_variables({"a": -0.5})])
    single = m.assemble(state.with_variables({"a": -0.5}))
    m["a"].value = -0.5
    for found in (single.state, m.assemble().state, many.state(1), listed.state(1)):
        assert found.variables["a"] == -0.5
        assert plain.diagnose(plain.state.moved({"b": found["b"]})).assembled
    assert np.array_equal(m.system.floats, plain.system.floats)


def test_a_component_of_an_axis_may_vanish():
    m = cd.Mechanism("axis")
    a = m.parameter("a", 0.5)
    m.revolute("A", m.ground.frame(z=(0.3, 0, a), x=Y), m.body("b").frame(z=X, x=Y))
    a.value = 0.0
    assert m.assemble().state["b"].matrix == pytest.approx(np.eye(3), abs=1e-12)


def test_many_values_are_checked_as_single_ones_are():
    m = slider_crank()
    state = m.assemble().state
    with pytest.raises(cd.ModelError, match=r"start 1 are not valid: .*'crank_length' is 0\.001; it must lie within"):
        m.assemble_many(state, values={"crank_length": [0.2, 0.001]})
    with pytest.raises(cd.ModelError, match=r"start 1 are not valid: .*'crank_length' is 0\.001; it must lie within"):
        m.assemble_many([state, state.with_variables({"crank_length": 0.001})])
    with pytest.raises(cd.ModelError, match="different numbers of starts"):
        m.assemble_many(state, values={"crank_length": [0.2, 0.21], "offset": [0.0]})
    for kind, option, value, match in (
        ("gear", "ratio", 0.0, "ratio is 0.0"),
        ("distance", "length", -0.7, "above zero"),
        ("belt", "radius_2", -0.3, "above zero"),
        ("angle", "angle", 4.0, "between 0 and π"),
    ):
        m = with_option(kind, option, NUMBERS[kind][option])
        m["p"].book.bounds[0] = (-math.inf, math.inf)
        with pytest.raises(cd.ModelError, match=rf"start 2 are not valid: .*{match}"):
            m.assemble_many(m.assemble().state, values={"p": [NUMBERS[kind][option]] * 2 + [value]})
    m = hinged_about(0.5)
    with pytest.raises(cd.ModelError, match=r"start 0 are not valid: the axis z .*must not be zero"):
        m.assemble_many(m.state, values={"a": [0.0]})


def test_a_free_radius_below_zero_is_no_assembly():
    m = cd.Mechanism("belt")
    radius = m.parameter("radius", 0.5)
    a, b = (m.revolute(f"hinge_{k}", m.ground.frame((k, 0, 0), x=X), m.body(f"w{k}").frame(x=X)) for k in (0, 1))
    m.belt("belt", a, b, radius_1=radius, radius_2=0.3)
    m.drive("in", a, 0.5)
    m.drive("out", b, -0.5)  # only a radius of −0.3 m would do
    found = m.assemble(free=["radius"])
    assert not found.ok
    assert "radius_1 is -0.3" in found.text() and "must be above zero" in found.text()
    assert not m.assemble_many([m.state] * 2, free=["radius"]).ok.any()
    radius.value = 0.2
    m.remove("out")
    m.drive("out", b, 0.5)
    assert m.assemble(free=["radius"]).state.variables["radius"] == pytest.approx(0.3, abs=EXACT)


def test_the_least_cost_is_within_the_limits_of_joints():
    """A rod from (2, 0) to the end of an arm of length 1 at an angle between 0.3 and 0.5: L² = 5 − 4 cos φ."""
    m = cd.Mechanism("limited")
    length, arm = m.parameter("length", 0.8), m.body("arm")
    hinge = m.revolute("A", m.ground.frame(x=X), arm.frame(x=X))
    m.limit("stop", hinge, lower=0.3, upper=0.5)
    m.distance("rod", m.ground.point((2, 0, 0)), arm.point((1, 0, 0)), length)
    for cost, angle in ((length * 1.0, 0.3), (-length, 0.5), ((length - 1.15) ** 2, acos((5 - 1.15**2) / 4))):
        found = m.assemble(free=["length"], least=cost)
        assert found.ok, found.text()
        assert found.coordinate(hinge) == pytest.approx(angle, abs=1e-9)
        assert found.state.variables["length"] == pytest.approx(sqrt(5 - 4 * cos(angle)), abs=1e-9)


# -- other verbs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cost", "told"),
    [
        (lambda x: 1.0 * x, "as long as parameter 'idle' decreases"),
        (lambda x: -2.0 * x, "as long as parameter 'idle' increases"),
        (lambda x: x**3, "as long as parameter 'idle' decreases"),  # its derivative is zero on the way
        (cd.atan, "as long as parameter 'idle' decreases"),  # bounded, but no value is the least
        (cd.exp, "parameter 'idle' is -"),
        (cd.log, "beyond this it is not defined"),
        (cd.sqrt, "beyond this it is not defined"),  # 0 is the least, but has no derivative
    ],
)
def test_a_cost_without_a_least_value_names_the_parameter_and_the_way_out(cost, told):
    m = slider_crank()
    idle = m.parameter("idle", 1.0)
    result = m.assemble(free=[idle], least=cost(idle))
    assert result.status is cd.Status.NO_LEAST and not result.ok
    assert told in result.text() and "bound" in result.text() and not result.worst
    assert result.as_dict()["status"] == "no least value"
    m.remove("idle")
    bounded = m.parameter("idle", 1.0, lower=0.25, upper=4.0)
    result = m.assemble(free=[bounded], least=cost(bounded))
    assert result.ok, result.text()
    assert result.state.variables["idle"] == (4.0 if "increases" in told else 0.25)


def test_a_length_that_runs_away_is_named():
    m = cd.Mechanism("two rods")
    r, rod = m.parameter("r", 0.2), m.parameter("l", 0.4)
    crank = m.body("crank", orientation=euler.from_axis_angle(Z, 0.5))
    hinge = m.revolute("A", m.ground.frame(z=Z, x=X), crank.frame(z=Z, x=X))
    m.drive("motor", hinge, 0.5)
    m.distance("rod", crank.point((r, 0, 0)), m.ground.point((0.5, 0, 0)), rod)
    result = m.assemble(free=[r, rod], least=-1.0 * r)
    assert result.status is cd.Status.NO_LEAST and "parameter 'r' increases" in result.text()
    assert abs(result.state.variables["r"]) < 1.0  # an assembled state near the drawing
    result = m.assemble(free=[r, rod], least=1.0 * rod)  # the rod at right angles to the crank
    assert result.ok and result.state.variables["l"] == pytest.approx(0.5 * sin(0.5), abs=EXACT)


def test_a_cost_that_makes_a_length_zero_names_the_joint():
    m = cd.Mechanism("rod")
    x, rod = m.parameter("x", 1.0), m.parameter("l", 0.4)
    part = m.body("part")
    m.fixed("here", m.ground.frame(z=Z, x=X), part.frame(z=Z, x=X))
    m.distance("rod", part.point((0.3, 0, 0)), m.ground.point((x, 0, 0)), rod)
    result = m.assemble(free=[x, rod], least=rod + 0.01 * x**2)  # least where the ends of the rod meet
    assert result.status is cd.Status.NO_LEAST
    assert "distance 'rod': the length is" in result.text() and "give 'l' a bound" in result.text()


@pytest.mark.slow
def test_the_least_cost_begins_at_bounds_and_leaves_them():
    """The verdict of the assembly before allows values beyond a bound by rounding; SciPy is the oracle."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(77)
    reached = 0
    for _ in range(60):
        turn, (u, w) = rng.uniform(-3, 3), rng.uniform(0, 2, 2)
        m = cd.Mechanism("arm")
        chosen = []
        for name, value in zip("abxy", rng.uniform(0.5, 1.5, 4).tolist(), strict=True):
            low, high = value - rng.uniform(0, 0.6), value + rng.uniform(0, 0.6)
            chosen.append(
                m.parameter(
                    name,
                    value,
                    lower=low if rng.random() < 0.5 or name == "b" else None,
                    upper=high if rng.random() < 0.5 else None,
                )
            )
        a, b, x, y = chosen
        arm = m.body("arm", orientation=euler.from_axis_angle(Z, turn))
        hinge = m.revolute("hinge", m.ground.frame((x, y, 0), z=Z, x=X), arm.frame(z=Z, x=X))
        m.drive("motor", hinge, turn)
        m.distance("rod", arm.point((a, 0, 0)), m.ground.point((u, w, 0)), b)
        aims, weights = rng.uniform(0.2, 2, 4).tolist(), rng.uniform(1, 2, 4).tolist()
        if not m.assemble(free=chosen).ok:
            continue
        result = m.assemble(
            free=chosen, least=sum(k * (p - aim) ** 2 for p, aim, k in zip(chosen, aims, weights, strict=True))
        )
        assert result.ok, result.text()
        found = np.array([result.state.variables[p.name] for p in chosen])

        def cost(v, aims=aims, weights=weights):
            return float(np.dot(weights, (v - np.array(aims)) ** 2))

        def open_by(v, turn=turn, u=u, w=w):
            return hypot(v[2] + v[0] * cos(turn) - u, v[3] + v[0] * sin(turn) - w) - v[1]

        bounds = [(p.lower, p.upper) for p in chosen]
        other = minimize(
            cost,
            found,
            constraints=[{"type": "eq", "fun": open_by}],
            bounds=bounds,
            method="SLSQP",
            options={"ftol": 1e-15},
        )
        assert cost(found) <= other.fun + 1e-9 or np.abs(other.x - found).max() > 0.3
        reached += any(p.lower == v or p.upper == v for p, v in zip(chosen, found.tolist(), strict=True))
    assert reached > 20


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_parameter_that_stays_at_its_bound_has_no_share_of_the_step():
    """The step does not move it, and no bound limits it: 0 · ∞ is not a number."""
    m = slider_crank()
    moves, stays = m.parameter("moves", 1.0), m.parameter("stays", 1.0, upper=1.0)
    result = m.assemble(free=[moves, stays], least=(moves - 2.0) ** 2 - stays)
    assert result.ok, result.text()
    assert result.state.variables["stays"] == 1.0
    assert result.state.variables["moves"] == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize(
    ("drawn", "cost", "least"),
    [
        (0.0, cd.cos, pi),  # drawn at its maximum
        (0.0, lambda x: x**4 - x**2, sqrt(0.5)),
        (1.0, lambda x: (x - 500.0) ** 2, 500.0),  # far away, in the units of the drawing
        (1.0, lambda x: (x - 1 / 3) ** 2 + (x - 1 / 7) ** 2, (1 / 3 + 1 / 7) / 2),  # no value has the derivative 0.0
        (1.0, lambda x: x**4 + 4.0 * x**3, -3.0),  # an inflection is on the way
    ],
)
def test_the_least_cost_is_a_minimum(drawn, cost, least):
    m = slider_crank()
    idle = m.parameter("idle", drawn)
    result = m.assemble(free=[idle], least=cost(idle))
    assert result.ok, result.text()
    assert abs(result.state.variables["idle"]) == pytest.approx(abs(least), rel=1e-12)


def test_the_least_cost_of_a_linkage_is_no_saddle():
    """A tip on a circle, drawn at the top: by symmetry the derivative of its height is zero there."""
    m = cd.Mechanism("circle")
    x, y = m.parameter("x", 0.0), m.parameter("y", 1.0)
    part = m.body("part", position=(0, 1, 0))
    m.revolute("hinge", m.ground.frame(z=Z, x=X), part.frame((0, -1, 0), z=Z, x=X))
    m.spherical("tip", part.point(), m.ground.point((x, y, 0)))
    result = m.assemble(free=[x, y], least=y + 0.25 * x**2)  # on the circle: least at (0, -1), largest at (0, 1)
    assert result.ok, result.text()
    assert [result.state.variables[name] for name in "xy"] == pytest.approx([0.0, -1.0], abs=1e-9)


def test_a_cost_that_is_not_defined_where_the_mechanism_is_assembled_is_refused():
    m = slider_crank()
    idle = m.parameter("idle", -1.0)
    with pytest.raises(cd.ModelError, match=r"least is nan.*idle = -1"):
        m.assemble(free=[idle], least=cd.log(idle))
    cost = idle + m["rod_length"]
    m.remove("idle")
    with pytest.raises(cd.ModelError, match=r"least is .*removed.*parameters that the mechanism has"):
        m.assemble(free=["rod_length"], least=cost)


def test_adopt_takes_the_values_of_the_state():
    m = slider_crank()
    m.drive("there", m["slide"], 0.62)
    found = m.assemble(free=["rod_length"])
    m.adopt(found.state)
    assert m["rod_length"].value == found.state.variables["rod_length"] != 0.4
    assert m.assemble().iterations == 0
    wrong = found.state.with_variables({"crank_length": 0.001})
    with pytest.raises(cd.ModelError, match=r"crank_length.* within 0\.01"):
        m.adopt(wrong)
    assert m.assemble().iterations == 0


def test_plain_values_of_states_and_results_have_the_parameters():
    m = slider_crank()
    m.drive("there", m["slide"], 0.62)
    found = m.assemble(free=["rod_length"])
    assert found.to_dict()["parameters"] == found.state.to_dict()["parameters"] == found.state.variables
    assert found.state.variables["rod_length"] != 0.4


def test_jacobians_and_forward_kinematics_of_points_with_parameters():
    m, plain = slider_crank(), slider_crank(False, crank=0.22, rod=0.45)
    values = {"crank_length": 0.22, "rod_length": 0.45}
    state, expected = m.assemble(m.state.with_variables(values)).state, plain.assemble().state
    tip, their_tip = m["rod"].point((m["rod_length"], 0.1, 0)), plain["rod"].point((0.45, 0.1, 0))
    for by in ("bodies", "drivers"):
        theirs = plain.jacobian(their_tip, expected, by=by)
        assert m.jacobian(tip, state, by=by) == pytest.approx(theirs, abs=1e-10)
    for name, value in values.items():
        m[name].value = value
    placed = m.state_at({"A": 0.9})
    assert placed.coordinates == pytest.approx(plain.state_at({"A": 0.9}).coordinates, abs=1e-15)
    assert placed.variables == {**values, "offset": 0.05}
    screwed = [tilted(True), tilted(False)]
    assert np.allclose(*[one.state_at({"S.angle": 0.4}).coordinates for one in screwed], atol=1e-14)


def test_samples_stay_on_their_branch_and_fail_where_it_ends():
    """Near a dead point cos φ = (x² + r² − L²)/(2 x r) has no solution for short rods; the others keep their sign."""
    m = cd.Mechanism("dead point")
    length = m.parameter("length", 0.4)
    crank, slider = m.body("crank", orientation=euler.from_axis_angle(Z, 0.01)), m.body("slider", position=(0.6, 0, 0))
    m.revolute("A", m.ground.frame(x=X), crank.frame(x=X))
    m.prismatic("slide", m.ground.frame(z=X, x=Z), slider.frame(z=X, x=Z))
    m.distance("rod", crank.point((0.2, 0, 0)), slider.point(), length)
    x = 0.6 - 1e-5
    m.drive("there", m["slide"], x)
    state = m.assemble().state
    phi = m["A"].coordinate(state)
    found = m.tolerances(state, ["A"], {"length": 1e-4}, samples=500)
    rng = np.random.default_rng([0, *b"length"])
    cosines = (x**2 + 0.04 - (0.4 + 1e-4 * rng.standard_normal(500) / 3) ** 2) / (0.4 * x)
    reached = np.abs(cosines) <= 1.0
    assert 0 < found.failed == (~reached).sum() < 500
    assert found.samples[:, 0] == pytest.approx(np.sign(phi) * np.arccos(cosines[reached]) - phi, abs=1e-6)


def test_samples_of_counted_angles_may_be_turns_apart():
    m = cd.Mechanism("geared")
    ratio = m.parameter("ratio", 2.5)
    a, b = (m.revolute(name, m.ground.frame(x=X), m.body(f"w{name}").frame(x=X)) for name in "AB")
    m.gear("gear", a, b, ratio=ratio)
    m.drive("motor", a, 20.0)
    found = m.tolerances(m.assemble().state, ["B"], {"ratio": 1.0}, samples=200)
    drawn = np.random.default_rng([0, *b"ratio"]).standard_normal(200) / 3.0
    assert found.samples[:, 0] == pytest.approx(20.0 * drawn, abs=1e-9)  # up to 18 rad
    # One that no equation reads is known between −π and π, and its deviations are small on both sides of π.
    m = cd.Mechanism("arm")
    length, arm = m.parameter("length", 1.0 - 1e-7), m.body("arm", orientation=euler.from_axis_angle(Z, 3.1))
    m.revolute("A", m.ground.frame(x=X), arm.frame(x=X))
    m.distance("rod", m.ground.point((-1, 1, 0)), arm.point((1, 0, 0)), length)
    found = m.tolerances(m.assemble().state, ["A"], {"length": 1e-3}, samples=200)
    assert found.spread[0] == pytest.approx(found.rss[0], rel=0.2)


def test_sensitivities_of_a_mechanism_without_constraints():
    m = cd.Mechanism("free")
    part = m.body("part", position=(1, 2, 3))
    length = m.parameter("length", 0.5)
    found = m.sensitivity(m.state, [part.point((0, 2 * length, 0))])
    assert found.freedoms == 6 and found.matrix.ravel().tolist() == [0.0, 2.0, 0.0]


def test_sensitivities_need_parameters_and_a_state_of_the_mechanism():
    m, other = slider_crank(), rsur_with_lengths()
    state = m.assemble().state
    assert m.sensitivity(state, "slide", "offset").parameters == ("offset",)
    with pytest.raises(cd.ModelError, match="no parameters to differentiate by"):
        m.sensitivity(state, "slide", [])
    with pytest.raises(cd.ModelError, match="must be a State of this mechanism"):
        m.sensitivity(other.assemble().state, "slide")
    with pytest.raises(cd.ModelError, match=r"on the ground alone.* take its formula"):
        m.sensitivity(state, m.ground.point((m["offset"], 0, 0)))


def reciprocal():
    """A hinge at 1/b, which has no value at b = 0."""
    m = cd.Mechanism("m")
    b = m.parameter("b", 1.0)
    m.revolute("hinge", m.ground.frame(), m.body("link").frame((1 / b, 0, 0)))
    m.drive("motor", m["hinge"], 0.3)
    return m, b


def test_a_formula_without_a_value_is_reported_with_its_joint_and_its_parameters():
    m, b = reciprocal()
    with pytest.raises(cd.ModelError, match=r"^revolute 'hinge': <\(1 / b\)> is nan at b = 0; it must be finite"):
        b.value = 0.0
    with pytest.raises(cd.ModelError, match=r"state are not valid: revolute 'hinge': .* at b = 0; it must"):
        m.assemble(m.state.with_variables({"b": 0.0}))
    assert b.value == 1.0


def test_a_sample_that_is_not_valid_is_reported_with_parameter_and_tolerance():
    m = cd.Mechanism("m")
    length = m.parameter("length", 1.0)
    link = m.body("link", position=(0.5, 0.0, 0.0))
    m.prismatic("slide", m.ground.frame(z=X, x=Y), link.frame(z=X, x=Y))
    m.distance("rod", m.ground.point((0, 0.2, 0)), link.point(), length)
    state = m.assemble().state
    match = r"tolerances lead to .*with length = -[\d.]+ \(tolerance ±2\), distance 'rod': .*; give smaller tolerances"
    with pytest.raises(cd.ModelError, match=match):
        m.tolerances(state, m["slide"], {"length": 2.0}, samples=2000)


NUMPY_FUNCTIONS = ("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "exp", "log", "sqrt")


@pytest.mark.parametrize("name", NUMPY_FUNCTIONS)
def test_functions_of_numpy_make_formulas(name):
    length = cd.Mechanism("m").parameter("L", 0.4)
    ours = getattr(cd, name.replace("arc", "a"))(length)
    assert getattr(np, name)(length) == ours
    assert ours.value == pytest.approx(getattr(np, name)(0.4), rel=1e-15)


def test_operators_with_numbers_of_numpy_make_formulas():
    length = cd.Mechanism("m").parameter("L", 0.4)
    two = np.float64(2.0)
    pairs = (
        (two + length, 2.4), (length + two, 2.4), (two - length, 1.6), (length - two, -1.6), (two * length, 0.8),
        (two / length, 5.0), (length / two, 0.2), (two**length, 2**0.4), (length**two, 0.16),
        (np.add(length, two), 2.4), (np.arctan2(two, length), math.atan2(2.0, 0.4)),
        (np.arctan2(length, two), math.atan2(0.4, 2.0)),
    )  # fmt: skip
    for formula, value in pairs:
        assert formula.value == pytest.approx(value, rel=1e-15)
    assert two != length and length != two and (two == length) is False and np.equal(length, length)
    for wrong in (lambda: np.floor(length), lambda: two < length, lambda: np.add.reduce(length)):
        with pytest.raises(cd.ModelError, match=r"use operators and cd\.sin.*\.value"):
            wrong()
    with pytest.raises(cd.ModelError, match="was combined with array"):
        np.ones(2) * length


@pytest.mark.parametrize("name", ["lower", "valeu", "name"])
def test_only_the_value_of_a_parameter_can_be_set(name):
    m = cd.Mechanism("m")
    length = m.parameter("L", 0.4, lower=0.1)
    with pytest.raises(cd.ReadOnlyError, match=rf"'{name}' of <parameter 'L'> cannot be set, only its value"):
        setattr(length, name, 0.2)
    length.value = 0.3
    assert pickle.loads(pickle.dumps(m)) == m.copy() == m and m.copy().parameters["L"].value == 0.3
