"""Expressions of model files: values, derivatives, errors, limits, and recorded functions printed as text."""

from __future__ import annotations

import math
import pickle
import random

import pytest

import cardan as cd
from cardan.constraints.expression import Graph
from cardan.files import formula, printing
from cardan.files.formula import Formula, evaluated

# Each with Python's own value, which is written independently here.
VALUES = {
    "2*pi": 2 * math.pi,
    "-2^2": -4.0,
    "2^-1": 0.5,
    "2**3^2": 512.0,
    "(1 + 2)*3 - 4/8": 8.5,
    "1 - 2 - 3": -4.0,
    "8/4/2": 1.0,
    "30*mm + 1*inch": 0.03 + 0.0254,
    "45*deg": math.pi / 4,
    "u = 3; v = u^2 + u; v/u": 4.0,
    "clip(5, -1, 1) + atan2(1, -1)": 1.0 + 3 * math.pi / 4,
    "sqrt(2)*exp(1)*log(3)": math.sqrt(2) * math.e * math.log(3),
    ".5e1 + 1.": 6.0,
    "- - 3": 3.0,
}


@pytest.mark.parametrize(("text", "value"), VALUES.items())
def test_values(text: str, value: float) -> None:
    assert evaluated(text) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 +", "column 4: a number, a name or '(' is expected, not the end"),
        ("sinn(1)", "no function is named 'sinn'; did you mean 'sin'"),
        ("2*pie", "no value is named 'pie'; did you mean 'pi'?"),
        ("sin", "function without its arguments"),
        ("clip(1, 2)", "clip takes 3 arguments, not 2"),
        ("1/0", "has no value: float division by zero"),
        ("sqrt(-1)", "has no value"),
        ("1e200*1e200", "is inf; it must be finite"),
        ("(-8)^(1/3)", "has no value"),
        ("1; 2", "an operator or the end is expected, not ';'"),
        ("pi = 3; t = 2; t t", "an operator or the end is expected"),
        ("a = 1; a = 2; a", "'a' has a meaning already"),
        ("__import__('os')", "has no meaning; expressions have numbers, names"),
        ("x.y.z", "'.' has no meaning"),
        ("lambda: 0", "':' has no meaning"),
        ("[1]", "'[' has no meaning"),
        ("norm3(1, 2, 3)", "no function is named 'norm3'"),
        ("(" * 100 + "1" + ")" * 100, "nested more than 64 deep"),
        ("1" + "+1" * 3000, "more than 2000 operations"),
        ("1" * 30_000, "has 30,000 characters"),
        ("1e999", "too large"),
        ("", "is expected, not the end"),
    ],
)
def test_errors_give_the_column_and_what_is_valid(text: str, message: str) -> None:
    with pytest.raises(cd.ModelError) as caught:
        evaluated(text)
    assert message in str(caught.value), str(caught.value)


def random_text(rng: random.Random, depth: int) -> tuple[str, str]:
    """A random expression in t, and the same in Python."""
    if depth == 0:
        return rng.choice([("t", "t"), ("pi", "math.pi"), *[(f"{rng.uniform(0.1, 2):.3f}",) * 2]])  # type: ignore[list-item]
    a, pa = random_text(rng, depth - 1)
    b, pb = random_text(rng, depth - 1)
    kind = rng.choice(["+", "-", "*", "/", "^", "neg", "call"])
    if kind == "neg":
        return f"-({a})", f"(-({pa}))"
    if kind == "call":
        name = rng.choice(["sin", "cos", "tanh", "atan", "exp"])
        inner, python = (f"0.1*({a})", f"0.1*({pa})") if name == "exp" else (a, pa)
        return f"{name}({inner})", f"math.{name}({python})"
    if kind == "^":
        return f"({a})^2", f"(({pa})**2)"
    return f"({a}) {kind} ({b})", f"(({pa}) {kind} ({pb}))"


def test_values_and_rates_agree_with_python() -> None:
    rng = random.Random(3)
    checked = 0
    for _ in range(300):
        text, python = random_text(rng, rng.randrange(1, 5))
        made = Formula(text, ("t",))
        try:
            values = [eval(python, {"math": math}, {"t": 0.7 + h}) for h in (-1e-5, 0.0, 1e-5)]
        except (ArithmeticError, ValueError):
            continue
        if not all(math.isfinite(v) and abs(v) < 1e6 for v in values):
            continue
        jet = made(cd.Jet(0.7, 1.0))
        jet = jet if isinstance(jet, cd.Jet) else cd.Jet(jet)
        assert jet.value == pytest.approx(values[1], rel=1e-12, abs=1e-12), text
        slope = (values[2] - values[0]) / 2e-5
        assert jet.rate == pytest.approx(slope, rel=1e-4, abs=1e-4 * (1 + abs(values[1]))), text
        checked += 1
    assert checked > 150


def test_a_recorded_function_is_printed_so_that_it_is_read_as_the_same() -> None:
    """The printed text gives the same values, and printing what was read gives the same text."""
    rng = random.Random(5)
    for _ in range(300):
        text, _ = random_text(rng, rng.randrange(1, 6))
        first = Formula(text, ("t",))
        try:
            (printed,) = printing.traced(first, ("t",))
        except (cd.ModelError, TypeError):  # a division by the constant zero, for example
            continue
        if not isinstance(printed, str):
            continue
        second = Formula(printed, ("t",))
        assert printing.traced(second, ("t",)) == [printed]
        for t in (0.3, 1.1):
            try:
                a, b = first(t), second(t)
            except (ArithmeticError, ValueError):
                continue
            assert b == pytest.approx(a, rel=1e-9, abs=1e-12), (text, printed)


def test_shared_parts_become_definitions_and_long_functions_stay_short() -> None:
    def doubling(t):
        for _ in range(200):
            t = cd.sin(t + t * t)
        return t

    (text,) = printing.traced(doubling, ("t",))
    assert isinstance(text, str)
    assert len(text) < 10_000
    assert Formula(text, ("t",))(0.3) == pytest.approx(doubling(0.3), rel=1e-12)


def test_a_driver_that_cannot_be_recorded_is_refused_by_name() -> None:
    m = cd.Mechanism("door")
    hinge = m.revolute("hinge", m.ground.frame(), m.body("leaf").frame())
    m.drive("motor", hinge, lambda t: t if t < 1.0 else 1.0)
    with pytest.raises(cd.ModelError, match=r"drive 'motor' cannot be saved: its Python function.*cd\.clip"):
        m.save("never.cardan.toml")


def test_a_function_that_is_recorded_differently_is_refused() -> None:
    """A function that looks at the type of its argument gives other values when it is recorded."""
    m = cd.Mechanism("door")
    hinge = m.revolute("hinge", m.ground.frame(), m.body("leaf").frame())
    m.drive("motor", hinge, lambda t: 2 * t if isinstance(t, cd.Jet) else 3 * t)
    with pytest.raises(cd.ModelError, match="gives other values when it is recorded"):
        m.save("never.cardan.toml")


def test_formulas_compare_by_value_and_are_pickled() -> None:
    a = Formula("2*L*t", ("t",), (("L", 3.0), ("unused", 1.0)))
    b = pickle.loads(pickle.dumps(Formula("2*L*t", ("t",), (("L", 3.0),))))
    assert a == b
    assert hash(a) == hash(b)
    assert a(2.0) == b(2.0) == 12.0
    assert a != Formula("2*L*t", ("t",), (("L", 4.0),))


def test_every_traced_function_has_a_place_in_the_grammar() -> None:
    """What tracing can record can be printed: each function is users' or for the rows of primitives."""
    from cardan.constraints.expression import FUNCTIONS

    assert set(FUNCTIONS) - {"power"} <= set(formula.ARITY) | set(formula.INNER)
    graph = Graph()
    variables = [graph.variable(f"x{k}") for k in range(4)]
    for name, partials in FUNCTIONS.items():
        node = graph.call(name, *variables[: len(partials)])
        nodes = [n.plain() for n in graph.nodes]
        text = printing.text_of(nodes, node.index, {k: f"a{k}" for k in range(4)})
        again = Graph()
        traced = [again.variable(f"x{k}") for k in range(4)]
        made = Formula(text, tuple(f"a{k}" for k in range(4)), inner=True)(*traced)
        allowed = {"power": "call exp"}  # of a traced exponent
        assert made.operation in (node.operation, allowed.get(name)), (name, text)
