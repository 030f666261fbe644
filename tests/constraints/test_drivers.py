"""Laws of drivers: values and derivatives against SymPy, every coordinate that can be driven, and bad functions."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import cardan as cd
from cardan.constraints import jets
from cardan.constraints.jets import DERIVATIVES, Jet
from cardan.constraints.signal import Signal
from later import Later
from linkages import X, Y, Z, about_z
from mechanisms import matrix, random_quaternion

sympy = Later("sympy")

TIMES = [-1.3, -0.4, 0.25, 0.9, 2.1]
JETS = 1e-13  # relative: some rounding errors of double precision, compared with 30 digits

# Laws of t and of the functions and π of a module, which is the library or SymPy; together they use every function and
# operator of the library.
LAWS = {
    "a ramp": lambda t, f: 2 * f.pi * t,
    "operators": lambda t, f: -(3 - t) / (t * t + 2) + 4 / (1 + t**2) - +t * 0.5,
    "whole powers": lambda t, f: t**3 - 2 * t**2 + t**1 + t**0 + (t + 5) ** -2,
    "broken powers": lambda t, f: (t + 5) ** 1.5 + (t + 5) ** -0.25,
    "powers of time": lambda t, f: (t + 5) ** (t / 3) + 2**t + 1.5 ** (t * t),
    "sin": lambda t, f: f.sin(2 * t + 1),
    "cos": lambda t, f: f.cos(t * t),
    "tan": lambda t, f: f.tan(t / 3),
    "exp": lambda t, f: f.exp(-t) * t,
    "log": lambda t, f: f.log(t + 3) / (t + 4),
    "sqrt": lambda t, f: f.sqrt(t * t + 1),
    "asin": lambda t, f: f.asin(t / 4) ** 2,
    "acos": lambda t, f: f.acos(t / 4) * t,
    "atan": lambda t, f: f.atan(3 * t),
    "sinh": lambda t, f: f.sinh(t),
    "cosh": lambda t, f: f.cosh(2 * t),
    "tanh": lambda t, f: f.tanh(t - 1),
    "atan2": lambda t, f: f.atan2(f.sin(t) + 2, f.cos(3 * t)) + f.atan2(t, 2) + f.atan2(1, t + 3),
    "of functions": lambda t, f: f.sin(f.exp(f.cos(t)) / (1 + f.sqrt(t**2 + 2))),
}


def exact(law, time):
    """Value, rate and acceleration by SymPy, to 30 digits."""
    t = sympy.Symbol("t")
    expression = sympy.sympify(law(t, sympy))
    at = sympy.Rational(str(time))
    return [float(expression.diff(t, k).subs(t, at).evalf(30)) for k in range(3)]


def close(jet, expected, tolerance=JETS):
    __tracebackhide__ = True
    for found, value in zip((jet.value, jet.rate, jet.acceleration), expected, strict=True):
        assert abs(found - value) <= tolerance * max(1.0, *np.abs(expected)), (jet, expected)


@pytest.mark.nojit
def test_every_function_the_library_offers_has_a_law():
    assert set(DERIVATIVES) | {"atan2"} <= set(LAWS)
    assert all(callable(getattr(cd, name)) for name in DERIVATIVES)


@pytest.mark.slow
@pytest.mark.nojit
@pytest.mark.parametrize("name", LAWS)
def test_a_driver_is_computed_with_its_derivatives(name):
    signal = Signal("d", lambda t: LAWS[name](t, cd))
    for time in TIMES:
        close(signal.jet(time), exact(LAWS[name], time))
        assert signal.value(time) == signal.jet(time).value


@pytest.mark.nojit
@pytest.mark.parametrize("name", [name for name in DERIVATIVES if name not in ("asin", "acos")])
def test_numpy_functions_of_time_are_the_same(name):
    ufunc = getattr(np, {"atan": "arctan"}.get(name, name))
    for time in (0.3, 1.2):
        ours, theirs = (Signal("d", f).jet(time) for f in (getattr(cd, name), ufunc))
        assert (ours.value, ours.rate, ours.acceleration) == (theirs.value, theirs.rate, theirs.acceleration)
        plain = getattr(cd, name)(time)  # for a plain number they are the plain functions
        assert isinstance(plain, float) and plain == pytest.approx(ours.value, rel=1e-15)


NUMPY = {
    "a NumPy number on either side": (
        lambda t: np.float64(2) * t + t * np.float64(3) - np.float64(1) / (t + np.float64(9)),
        lambda t: 2 * t + 3 * t - 1 / (t + 9),
    ),
    "powers": (lambda t: np.power(t + 5, 2) + np.float64(2) ** t + np.square(t), lambda t: (t + 5) ** 2 + 2**t + t**2),
    "signs": (lambda t: np.negative(t) + np.positive(t) * np.abs(t - 9), lambda t: -t + t * (9 - t)),
    "inverse": (lambda t: np.arcsin(t / 9) + np.arccos(t / 9), lambda t: sympy.asin(t / 9) + sympy.acos(t / 9)),
    "of two": (lambda t: np.arctan2(t, np.float32(2)), lambda t: sympy.atan2(t, 2)),
    "whole numbers": (lambda t: np.int64(3) * t // np.int64(1) * 0 + np.int64(3) * t, lambda t: 3 * t),
}


@pytest.mark.slow
@pytest.mark.nojit
@pytest.mark.parametrize("name", NUMPY)
def test_numpy_numbers_and_functions_mix_with_time(name):
    law, symbolic = NUMPY[name]
    for time in TIMES:
        close(Signal("d", law).jet(time), exact(lambda t, f: symbolic(t), time))


@pytest.mark.nojit
def test_a_law_may_be_written_piece_by_piece():
    """Comparisons use the value, with numbers of any type on either side; each piece has its own derivatives."""

    def law(t):
        if t < 0:
            return 0.0
        if t <= 1.0:
            return t**2
        if np.float64(2.0) > t:
            return 2 * t - 1
        return 3 + abs(t - 5) if t != 4 else t

    signal = Signal("d", law)
    found = [(j.value, j.rate, j.acceleration) for j in map(signal.jet, (-1.0, 0.5, 1.5, 3.0, 4.0, 6.0))]
    assert found == [(0, 0, 0), (0.25, 1, 2), (2, 2, 0), (5, -1, 0), (4, 1, 0), (4, 1, 0)]


@pytest.mark.nojit
def test_a_periodic_law_keeps_its_derivatives_within_the_period():
    signal = Signal("d", lambda t: (t % 2) ** 2 + 10 * (t // 2))
    jet = signal.jet(5.5)
    assert (jet.value, jet.rate, jet.acceleration) == (2.25 + 20, 3.0, 2.0)


@pytest.mark.nojit
@pytest.mark.parametrize("seed", range(5))
def test_sums_products_and_quotients_of_jets_obey_the_rules_of_derivatives(seed):
    """For polynomials of random coefficients, whose derivatives are known."""
    rng = np.random.default_rng(seed)
    p, q = np.poly1d(rng.uniform(-1, 1, 4)), np.poly1d(rng.uniform(0.5, 1, 3))
    for time in rng.uniform(0, 2, 4):
        t = Jet(time, 1.0)
        a, b = (sum(c * t**k for k, c in enumerate(poly.c[::-1])) for poly in (p, q))
        for jet, value in ((a + b, p + q), (a - b, p - q), (a * b, p * q)):
            close(jet, [value.deriv(k)(time) if k else value(time) for k in range(3)])
        u, v = [[poly.deriv(k)(time) if k else poly(time) for k in range(3)] for poly in (p, q)]
        quotient = [u[0] / v[0], (u[1] * v[0] - u[0] * v[1]) / v[0] ** 2]
        quotient.append((u[2] - 2 * quotient[1] * v[1] - quotient[0] * v[2]) / v[0])
        close(a / b, quotient)


# --- coordinates ------------------------------------------------------------------------------------------------------


def angle_of(R, S):
    return float(np.angle(complex(R[:, 0] @ S[:, 0], R[:, 1] @ S[:, 0])))


def body_and(m, joint, **options):
    body = m.body("b", position=(0.3, 0.2, 0.1))
    return body, getattr(m, joint)("J", m.ground.frame((0.1, 0, 0), x=X), body.frame((0, 0.2, 0), x=X), **options)


def point_of(state):
    return state["b"].point((0, 0.2, 0)) - (0.1, 0, 0)


# Driven coordinate, its law, and a function that computes it from the pose with NumPy.
DRIVEN = {
    "hinge": (
        lambda m: body_and(m, "revolute")[1],
        lambda t: 0.5 + 2 * t,
        lambda s: angle_of(np.eye(3), matrix(s["b"].quaternion)),
    ),
    "slide": (lambda m: body_and(m, "prismatic")[1], lambda t: 0.5 * cd.sin(t), lambda s: point_of(s)[2]),
    "cylinder, angle": (
        lambda m: body_and(m, "cylindrical")[1].of("angle"),
        lambda t: t - 1,
        lambda s: angle_of(np.eye(3), matrix(s["b"].quaternion)),
    ),
    "cylinder, displacement": (
        lambda m: body_and(m, "cylindrical")[1].of("displacement"),
        lambda t: 1 + t,
        lambda s: point_of(s)[2],
    ),
    "plane, x": (lambda m: body_and(m, "planar")[1].of("x"), lambda t: 1 - t, lambda s: point_of(s)[0]),
    "plane, y": (lambda m: body_and(m, "planar")[1].of("y"), lambda t: t * t, lambda s: point_of(s)[1]),
    "screw, angle": (
        lambda m: body_and(m, "screw", pitch=0.4)[1].of("angle"),
        lambda t: t,
        lambda s: point_of(s)[2] * 2 * np.pi / 0.4,
    ),
    "screw, displacement": (
        lambda m: body_and(m, "screw", pitch=0.4)[1].of("displacement"),
        lambda t: 0.1 * t,
        lambda s: angle_of(np.eye(3), matrix(s["b"].quaternion)) * 0.4 / (2 * np.pi),
    ),
    "universal, first angle": (
        lambda m: cross(m).of("angle_a"),
        lambda t: 0.4 + t,
        lambda s: np.angle(complex(*matrix(s["b"].quaternion)[:2, 0])),
    ),
    "universal, second angle": (
        lambda m: cross(m).of("angle_b"),
        lambda t: 0.4 - t,
        lambda s: np.angle(complex(*(matrix(s["b"].quaternion).T @ Z)[[1, 2]])),
    ),
    "rod": (
        lambda m: cd.coordinate(m.ground.point((1, 0, 0)), m.body("b").point((0, 1, 0)), "distance"),
        lambda t: 2 + cd.cos(t),
        lambda s: np.linalg.norm(s["b"].point((0, 1, 0)) - X),
    ),
    "x of a point": (
        lambda m: cd.coordinate(m.ground.frame((1, 0, 0)), m.body("b").point((0, 1, 0)), "x"),
        lambda t: 2 * t,
        lambda s: s["b"].point((0, 1, 0))[0] - 1,
    ),
    "y of a point": (
        lambda m: cd.coordinate(m.ground.frame((1, 0, 0)), m.body("b").point((0, 1, 0)), "y"),
        lambda t: 2 * t,
        lambda s: s["b"].point((0, 1, 0))[1],
    ),
    "height of a point": (
        lambda m: cd.coordinate(m.ground.frame((1, 0, 0)), m.body("b").point((0, 1, 0)), "displacement"),
        lambda t: 2 * t,
        lambda s: s["b"].point((0, 1, 0))[2],
    ),
    "inclination": (
        lambda m: cd.coordinate(m.ground.frame(), m.body("b", orientation=(1, 0.2, 0, 0)).frame(), "inclination"),
        lambda t: 1.5 + 0.5 * cd.sin(t),
        lambda s: np.arccos(matrix(s["b"].quaternion)[2, 2]),
    ),
    "turn between two frames": (
        lambda m: cd.coordinate(m.ground.frame(x=X), m.body("b").frame(x=X), "angle"),
        lambda t: t,
        lambda s: angle_of(np.eye(3), matrix(s["b"].quaternion)),
    ),
    "a point on a line": (
        lambda m: m.point_on_line("J", m.body("b").point((0, 1, 0)), m.ground.frame((1, 0, 0))),
        lambda t: t,
        lambda s: s["b"].point((0, 1, 0))[2],
    ),
    "a point in a plane": (
        lambda m: m.point_in_plane("J", m.body("b").point((0, 1, 0)), m.ground.frame((1, 0, 0))).of("y"),
        lambda t: t,
        lambda s: s["b"].point((0, 1, 0))[1],
    ),
}


def cross(m):
    """z of the ground and x of the body cross; angle_a is from x to it about z, angle_b from y of the body to z."""
    body = m.body("b", orientation=about_z(0.3))
    return m.universal("J", m.ground.frame(z=Z, x=X), body.frame(z=X, x=Y))


@pytest.mark.parametrize("name", DRIVEN)
def test_a_driven_coordinate_has_the_value_of_its_law(name):
    make, law, read = DRIVEN[name]
    m = cd.Mechanism()
    m.drive("motor", make(m), law)
    state = None
    for time in (0.0, 0.3, 1.0, -0.7):
        result = m.assemble(state, time=time)
        assert result.ok, result.text()
        assert result.state.time == time
        wanted = law(Jet(time))
        wanted = wanted.value if isinstance(wanted, Jet) else wanted
        found = read(result.state)
        off = found - wanted
        assert min(abs(off), abs(abs(off) - 2 * np.pi)) <= 1e-11, (time, found, wanted)
        state = result.state


@pytest.mark.parametrize("formulation", ["manifold", "euler_parameters"])
@pytest.mark.parametrize("name", DRIVEN)
def test_a_driven_coordinate_is_reached_from_anywhere(name, formulation):
    make, law, read = DRIVEN[name]
    m = cd.Mechanism()
    m.drive("motor", make(m), law)
    wanted = law(Jet(0.6))
    rng = np.random.default_rng(4)
    for _ in range(4):
        result = m.assemble({"b": (rng.uniform(-2, 2, 3), random_quaternion(rng))}, time=0.6, formulation=formulation)
        assert result.ok, result.text()
        off = read(result.state) - wanted.value
        assert min(abs(off), abs(abs(off) - 2 * np.pi)) <= 1e-11


def test_a_driver_removes_a_degree_of_freedom_but_is_no_equation_of_the_mechanism():
    m = cd.Mechanism()
    _, J = body_and(m, "cylindrical")
    m.drive("push", J, 0.5, of="displacement")
    report = m.diagnose(m.assemble().state)
    assert (report.dof, report.undriven, report.gruebler, report.equations) == (2, 1, 2, 4)
    assert "with the drivers" in report.text()
    assert m["push"].equations == 0


def test_two_drivers_of_one_coordinate_agree_or_contradict_each_other():
    m = cd.Mechanism()
    _, J = body_and(m, "revolute")
    m.drive("one", J, lambda t: t)
    m.drive("two", J, lambda t: t**2)
    assert m.assemble(time=1.0).ok and m.assemble(time=0.0).ok
    result = m.assemble(time=0.5)
    assert not result.ok and {v.name for v in result.worst[:2]} == {"one", "two"}


# --- time -------------------------------------------------------------------------------------------------------------


def hinge(law=lambda t: 2 * t):
    m = cd.Mechanism("hinge")
    arm = m.body("arm")
    J = m.revolute("A", m.ground.frame(x=X), arm.frame(x=X))
    m.drive("motor", J, law)
    return m


def test_a_state_carries_its_time_and_an_assembly_takes_it_from_there():
    m = hinge()
    assert m.state.time == 0.0 and m.assemble().state.time == 0.0
    later = m.assemble(time=0.75).state
    assert later.time == 0.75 and m["A"].coordinate(later) == pytest.approx(1.5)
    again = m.assemble(later)
    assert (again.state.time, again.iterations) == (0.75, 0)
    assert m.assemble(later, time=-0.25).state.time == -0.25
    assert m.assemble({"arm": later["arm"]}).state.time == 0.0  # poses alone have no time
    assert later.moved({}).time == 0.75
    assert m.diagnose(later).assembled and not m.diagnose(m.assemble(time=0.1).state.moved(dict(later))).assembled
    session = m.session(later, time=1.0, closed=False)
    while (status := session.step()) == cd.SessionStatus.MOVING:
        pass
    assert status == cd.SessionStatus.IDLE
    assert session.state.time == 1.0 and m["A"].coordinate(session.state) == pytest.approx(2.0)
    whole = m.session(later, time=1.0)
    assert whole.state.time == 1.0 and m["A"].coordinate(whole.state) == pytest.approx(2.0)


def test_a_mechanism_without_drivers_may_be_assembled_at_a_time():
    m = hinge()
    m.remove("motor")
    assert m.assemble(time=3.0).state.time == 3.0


@pytest.mark.parametrize(
    ("time", "fragments"),
    [(float("nan"), ["time", "nan", "finite"]), ("now", ["time", "'now'", "number"]), (float("inf"), ["time", "inf"])],
)
def test_a_bad_time_is_refused(time, fragments):
    with pytest.raises(cd.ModelError) as caught:
        hinge().assemble(time=time)
    assert not [f for f in fragments if f not in str(caught.value)], str(caught.value)


@pytest.mark.parametrize("value", [0.7, 1, np.float32(0.25), np.int64(2)])
def test_a_number_fixes_a_coordinate(value):
    m = hinge(value)
    for time in (0.0, 5.0):
        result = m.assemble(time=time)
        assert result.ok and m["A"].coordinate(result.state) == pytest.approx(float(value), abs=1e-11)
    motion = m.move([0.0, 1.0])
    assert motion.ok and not motion.velocities("arm").any()


# --- bad functions ----------------------------------------------------------------------------------------------------

BAD_LAWS = {
    "math.sin": (math.sin, ["driver 'new'", "t = 0 s", "TypeError", "cd.sin", "math.sin"]),
    "float": (float, ["driver 'new'", "TypeError", "not a plain number"]),
    "round": (round, ["driver 'new'", "TypeError", "cd.sqrt"]),
    "an index": (lambda t: [0.0, 1.0][t], ["driver 'new'", "TypeError", "cd.sin"]),
    "a table of NumPy": (lambda t: np.interp(t, [0, 1], [0, 2]), ["driver 'new'", "TypeError", "cd.Jet("]),
    "a function NumPy has": (np.floor, ["driver 'new'", "TypeError", "numpy.floor"]),
    "nothing": (lambda t: None, ["driver 'new'", "gives None", "number"]),
    "words": (lambda t: "fast", ["driver 'new'", "'fast'", "number"]),
    "a truth value": (lambda t: t > 0, ["driver 'new'", "False", "number"]),
    "a list": (lambda t: [t], ["driver 'new'", "[Jet(", "number"]),
    "an array": (lambda t: np.array([1.0, 2.0]), ["driver 'new'", "array", "number"]),
    "a complex number": (lambda t: 1j, ["driver 'new'", "1j", "number"]),
    "NaN": (lambda t: float("nan"), ["driver 'new'", "nan", "finite"]),
    "infinity": (lambda t: t * float("inf"), ["driver 'new'", "nan", "finite"]),
    "an infinite rate": (lambda t: cd.sqrt(t - t), ["driver 'new'", "t = 0 s", "ZeroDivisionError", "t = 1, 0.1"]),
    "the root of what is negative": (lambda t: (-1 - t) ** 0.5, ["driver 'new'", "ValueError", "domain"]),
    "no logarithm": (lambda t: cd.log(-t), ["driver 'new'", "t = 0 s", "ValueError", "also undefined at t = 1"]),
    "division by zero": (lambda t: 1 / (t - t), ["driver 'new'", "t = 0 s", "ZeroDivisionError"]),
    "an error of its own": (lambda t: {}["cam"], ["driver 'new'", "KeyError", "'cam'"]),
    "no argument": (lambda: 1.0, ["driver 'new'", "TypeError", "0 positional"]),
    "two arguments": (lambda t, u: t, ["driver 'new'", "TypeError", "'u'"]),
    "no function": ("fast", ["drive 'new'", "'fast'", "number"]),
    "no value": (None, ["drive 'new'", "None", "number"]),
    "NaN as a constant": (float("nan"), ["drive 'new'", "nan", "finite"]),
    "a truth value as a constant": (True, ["drive 'new'", "True", "number"]),
    "a list as a constant": ([1.0], ["drive 'new'", "[1.0]", "number"]),
}


@pytest.mark.parametrize("case", BAD_LAWS)
def test_an_invalid_law_is_reported_with_its_driver_and_not_added(case):
    law, fragments = BAD_LAWS[case]
    m = hinge()
    body = m.body("b")
    J = m.prismatic("P", m.ground.frame(), body.frame())
    twin = m.copy()
    with pytest.raises(cd.ModelError) as caught:
        m.drive("new", J, law)
    message = str(caught.value)
    assert not [f for f in fragments if f not in message], message
    assert "\n" not in message
    assert m == twin and "new" not in m
    m.drive("new", J, 1.0)
    assert m.assemble().ok


@pytest.mark.parametrize("law", [cd.sqrt, lambda t: 1 / t, cd.log, lambda t: (t - 0.5) ** 0.5, lambda t: t**1.5])
def test_a_law_need_only_be_defined_at_the_given_times(law):
    m = hinge(law)
    motion = m.move([1.0, 1.5, 2.0])
    assert motion.ok and m["A"].coordinate(motion.state) == pytest.approx(law(Jet(2.0)).value, abs=1e-11)
    assert m.assemble(time=1.0).ok
    with pytest.raises(cd.ModelError, match=r"driver 'motor' at t = 0 s.*times at which it is defined"):
        m.assemble()


def test_an_overflow_of_time_gives_no_warning(recwarn):
    m = cd.Mechanism()
    slide = m.prismatic("P", m.ground.frame(), m.body("b").frame())
    m.drive("motor", slide, lambda t: t)
    for time in (1e200, 1e300):
        assert not m.assemble(time=time, restarts=2).ok
    assert not recwarn.list


def test_a_law_that_fails_later_is_reported_with_its_time():
    def law(t):
        return cd.sqrt(2 - t)

    m = hinge(law)
    assert m.assemble(time=1.0).ok
    for time, fragment in ((3.0, "ValueError"), (2.0, "ZeroDivisionError")):
        with pytest.raises(cd.ModelError, match=rf"driver 'motor' at t = {time:g} s.*{fragment}"):
            m.assemble(time=time)


BAD_DRIVES = {
    "a joint without coordinates": (lambda m: m.drive("new", m["S"], 1.0), ["drive 'new'", "'S'", "none"]),
    "a joint with several": (lambda m: m.drive("new", m["C"], 1.0), ["drive 'new'", "'C'", "'angle'", "joint.of("]),
    "a coordinate it has not": (
        lambda m: m.drive("new", m["A"], 1.0, of="displacement"),
        ["drive 'new'", "'A'", "'displacement'", "'angle'"],
    ),
    "a coordinate that is no name": (lambda m: m.drive("new", m["A"], 1.0, of=[1]), ["drive 'new'", "[1]", "'angle'"]),
    "a choice of a coordinate": (
        lambda m: m.drive("new", m["A"].of("angle"), 1.0, of="x"),
        ["drive 'new'", "of='x'", "omit of="],
    ),
    "a body": (lambda m: m.drive("new", m["arm"], 1.0), ["drive 'new'", "<Body 'arm'>", "must be a joint"]),
    "a name": (lambda m: m.drive("new", "Q", 1.0), ["drive 'new'", "no joint", "'Q'"]),
    "a driver": (lambda m: m.drive("new", m["motor"], 1.0), ["drive 'new'", "'motor'", "none"]),
    "a joint elsewhere": (lambda m: m.drive("new", hinge()["A"], 1.0), ["drive 'new'", "'A'", "'hinge'"]),
    "a coordinate elsewhere": (
        lambda m: m.drive("new", hinge()["A"].of("angle"), 1.0),
        ["drive 'new'", "another mechanism"],
    ),
    "the name of a body": (lambda m: m.drive("arm", m["A"], 1.0), ["'arm'", "body of that name"]),
    "no name": (lambda m: m.drive("", m["A"], 1.0), ["''", "non-empty"]),
}


@pytest.mark.parametrize("case", BAD_DRIVES)
def test_an_invalid_driver_is_reported_and_not_added(case):
    call, fragments = BAD_DRIVES[case]
    m = hinge(0.0)
    body, ball = m.body("b"), m.body("ball")
    m.cylindrical("C", m.ground.frame(), body.frame())
    m.spherical("S", m.ground.point(), ball.point())
    twin = m.copy()
    with pytest.raises(cd.ModelError) as caught:
        call(m)
    message = str(caught.value)
    assert not [f for f in fragments if f not in message], message
    assert m == twin and m.system == twin.system


# --- values -----------------------------------------------------------------------------------------------------------


def steady(t):
    return 2 * t


class Cam:
    """A callable that can be pickled, and compares by value."""

    def __init__(self, lift):
        self.lift = lift

    def __call__(self, t):
        return self.lift * cd.sin(t)

    def __eq__(self, other):
        return isinstance(other, Cam) and self.lift == other.lift

    __hash__ = None


@pytest.mark.parametrize("law", [steady, Cam(0.3), 1.5], ids=["function", "object", "number"])
def test_drivers_that_can_be_pickled_come_back_the_same(law):
    m = hinge(law)
    other = pickle.loads(pickle.dumps(m))
    assert other == m == m.copy() == hinge(law)
    assert other.system == m.system
    assert other.assemble(time=0.8) == m.assemble(time=0.8)
    motion = m.move([0.0, 0.5])
    assert pickle.loads(pickle.dumps(motion)) == motion
    assert hinge(1.25) != m


def test_a_driver_that_cannot_be_pickled_says_so_by_name():
    m = hinge(lambda t: 2 * t)
    for thing in (m, m.system, m.assemble(), m.move([0.0, 0.1])):
        with pytest.raises(cd.ModelError, match=r"driver 'motor' cannot be pickled.*module defines by name"):
            pickle.dumps(thing)
    assert pickle.loads(pickle.dumps(m.assemble().state)) == m.assemble().state  # a state has no drivers
    assert m.copy() == m and m.copy().assemble(time=0.4) == m.assemble(time=0.4)


def test_systems_with_other_laws_are_not_the_same():
    one, other = hinge(steady), hinge(lambda t: 3 * t)
    assert one.system != other.system and one != other


def test_jets_have_a_readable_repr():
    assert repr(Jet(1.0, 2.0, 3.0)) == "Jet(1.0, 2.0, 3.0)"
    assert Jet(2.0) == 2 and Jet(2.0) != 3 and not Jet(0.0) and Jet(2.0) != "2"
    with pytest.raises(TypeError, match="numbers and time, not with 'a'"):
        Jet(1.0) + "a"
    assert jets.lift(np.float32(0.5)).value == 0.5
