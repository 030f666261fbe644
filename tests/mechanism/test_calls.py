"""Calls with wrong arguments end in an error of our own, which names the argument and the nearest valid one."""

from __future__ import annotations

import inspect
import math
from enum import Enum
from types import FunctionType

import numpy as np
import pytest

import cardan as cd
from cardan.calls import explained, explains, problem_of
from cardan.dynamics import loads
from cardan.joints import REGISTRY

LEFT = {  # called thousands of times a second, or with any arguments
    *("Session.step", "Jet.chained")
}
FUNCTIONS = ("coordinate", "spline", "load", "load_step", "primitive", "rate_primitive", "joint_motion")
FUNCTIONS += ("from_cadquery", "solve_cadquery", "from_build123d", "solve_build123d")


def public_classes():
    found = [getattr(cd, name) for name in cd.__all__]
    return [kind for kind in found if isinstance(kind, type) and not issubclass(kind, Enum | Exception)]


def methods():
    for kind in public_classes():
        for base in kind.__mro__:
            if not base.__module__.startswith("cardan"):
                continue
            for name, function in vars(base).items():
                if isinstance(function, FunctionType) and not name.startswith("_"):
                    yield f"{kind.__name__}.{name}", function


def takes_any(function):
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


def test_every_public_method_refuses_an_unknown_argument_with_our_error():
    """The error comes before anything is done, so that no object is needed."""
    seen = 0
    for name, function in methods():
        if name in LEFT or name.startswith(("Jet.", "System.")) or takes_any(function):
            continue
        with pytest.raises(cd.ArgumentError, match="no argument is named 'zzz'"):
            function(object(), zzz=1)
        seen += 1
    assert seen >= 120


def test_every_public_function_refuses_an_unknown_argument_with_our_error():
    functions = [getattr(cd, name) for name in FUNCTIONS]
    for module in (cd.shapes, cd.geometry):
        functions += [value for name in module.__all__ if isinstance(value := getattr(module, name), FunctionType)]
    assert len(functions) >= 40
    for function in functions:
        if not takes_any(function):
            with pytest.raises(cd.ArgumentError, match="no argument is named 'zzz'"):
                function(zzz=1)


def mechanism():
    m = cd.Mechanism("m")
    arm = m.body("arm", mass=1.0, inertia=np.eye(3))
    m.cylindrical("pin", m.ground.frame(), arm.frame())
    return m


def test_every_kind_of_joint_and_load_refuses_an_unknown_argument():
    m = mechanism()
    kinds = [name for name in (*REGISTRY, *loads.REGISTRY) if hasattr(m, name)]
    assert len(kinds) >= 35
    for name in kinds:
        method = getattr(m, name)
        if name in ("constrain", "constrain_rates"):
            continue
        ends = [m.ground.frame(), m["arm"].frame(), m["pin"].of("angle"), m["pin"].of("displacement")]
        for given in ((), ends[:2], ends[2:3], ends[2:]):
            with pytest.raises(cd.ModelError) as error:
                method("new", *given, zzz=1)
            assert not isinstance(error.value, TypeError) or isinstance(error.value, cd.ArgumentError)
            if isinstance(error.value, cd.ArgumentError):
                assert "'zzz'" in str(error.value), name
        assert "new" not in m


CALLS = [
    (lambda m: m.body("b", mas=1.0), "Mechanism.body: no argument is named 'mas'; did you mean 'mass'?"),
    (lambda m: m.body(), "Mechanism.body: it was not given 'name'; see help(Mechanism.body)"),
    (lambda m: m.body("b", (0, 0, 0)), "2 arguments were given by their place; 1 at most, name, may be; give"),
    (lambda m: m.simulate(), "Mechanism.simulate: it was not given 'duration'"),
    (lambda m: m.simulate(1.0, stp=1), "did you mean 'step'"),
    (lambda m: m.assemble(None, 0.5), "Mechanism.assemble: 2 arguments were given by their place; 1 at most, start,"),
    (lambda m: m.revolute(), "Mechanism.revolute: it was not given 'name', 'a' and 'b'"),
    (lambda m: m.revolute("x", m.ground.frame()), "revolute 'x' was not given 'b'"),
    (lambda m: m.revolute("x", m.ground.frame(), bb=1), "revolute 'x': no argument is named 'bb'; did you mean 'b'?"),
    (lambda m: m.distance("x", m.ground.point(), m["arm"].point(), lenght=1), "'lenght'; did you mean 'length'?"),
    (lambda m: m.drive("x", "pin.angle", fonction=1), "drive 'x': no argument is named 'fonction'; did you mean"),
    (lambda m: m.limit("x", "pin.angle", lowr=1), "'lowr'; did you mean 'lower'?"),
    (lambda m: m.spring("x", "pin.angle", stifness=1), "'stifness'; did you mean 'stiffness'?"),
    (lambda m: m["arm"].frame(orign=1), "Body.frame: no argument is named 'orign'; did you mean 'origin'?"),
    (lambda m: m.move(), "Mechanism.move: it was not given 'times'"),
    (lambda m: m.state.moved(), "State.moved: it was not given 'poses'"),
    (lambda m: m.assemble().coordinate(joint="pin", off=1), "AssemblyResult.coordinate: no argument is named 'off'"),
    (lambda m: m.simulate(0.01).trace(), "Simulation.trace: it was not given 'point'"),
    (lambda m: cd.Mechanism(nme="x"), "Mechanism: no argument is named 'nme'; did you mean 'name'?"),
    (lambda m: cd.Display(lenght="mm"), "Display: no argument is named 'lenght'; did you mean 'length'?"),
    (lambda m: cd.AssemblyOptions(tolerence=1), "'tolerence'"),
    (lambda m: cd.spline([0, 1]), "spline: it was not given 'y'"),
    (lambda m: cd.shapes.box(1, 2), "box: it was not given"),
    (lambda m: cd.geometry.circle(radus=1), "geometry.circle: no argument is named 'radus'; did you mean 'radius'?"),
    (lambda m: m.session().grasp(), "Session.grasp: it was not given 'body'"),
]  # fmt: skip


@pytest.mark.parametrize("call, text", CALLS, ids=[text[:40] for _, text in CALLS])
def test_an_error_names_the_argument_and_the_nearest_valid_one(call, text):
    with pytest.raises(cd.ModelError) as error:
        call(mechanism())
    assert text in str(error.value)


def test_type_errors_within_a_function_are_left_as_they_are():
    @explained
    def inner(x):
        return len(x)

    with pytest.raises(TypeError, match=r"object of type 'int' has no len\(\)") as error:
        inner(5)
    assert not isinstance(error.value, cd.ArgumentError)

    def adds(x):
        return x + None

    with pytest.raises(TypeError, match="unsupported operand") as error:
        explained(adds)(1)
    assert not isinstance(error.value, cd.ArgumentError)


def test_an_argument_error_is_a_type_error_too():
    with pytest.raises(TypeError, match="mas"):
        mechanism().body("b", mas=1)


def test_methods_keep_their_names_signatures_and_documents():
    assert cd.Mechanism.simulate.__doc__.startswith("The motion under gravity")
    assert next(iter(inspect.signature(cd.Mechanism.body).parameters)) == "self"
    assert cd.Mechanism.revolute.__name__ == "revolute"

    @explains(besides=("fast",))
    class Own:
        def slow(self, x):
            return x

        def fast(self, x):
            return x

    assert hasattr(Own.slow, "__wrapped__") and not hasattr(Own.fast, "__wrapped__")


def sample(a, b, /, c, d=1, *, e, f=2):
    return math.nan


@pytest.mark.parametrize(
    "args, options, text",
    [
        ((1, 2, 3), {"e": 1}, ""),
        ((1, 2), {"c": 1, "e": 1}, ""),
        ((1, 2, 3), {}, "it was not given 'e'"),
        ((1,), {}, "it was not given 'b', 'c' and 'e'"),
        ((1, 2, 3, 4, 5), {"e": 1}, "5 arguments were given by their place; 4 at most, a, b, c, d,"),
        ((1, 2, 3), {"c": 3, "e": 1}, "'c' was given twice"),
        ((1, 2, 3), {"a": 3, "e": 1}, "'a' is given by its place"),
        ((1, 2, 3), {"e": 1, "ff": 1}, "no argument is named 'ff'; did you mean 'f'?"),
        ((1, 2, 3), {"e": 1, "long": 1}, "no argument is named 'long'; it has 'c', 'd', 'e', 'f'"),
    ],
)
def test_what_is_wrong_with_a_call_is_what_python_refuses(args, options, text):
    problem = problem_of(inspect.signature(sample), args, options)
    assert problem.startswith(text) and bool(problem) == bool(text)
    try:
        sample(*args, **options)
        assert not text
    except TypeError:
        assert text
