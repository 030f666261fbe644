"""Laws of interpreted functions: the tape of a recorded function gives what its compiled kernel gives."""

from __future__ import annotations

import ast
import math

import numpy as np
import pytest

import cardan as cd
import primitive_calls
from cardan.constraints import codegen, kernels, promotion, tables, tape
from cardan.constraints.expression import FUNCTIONS, MOST_NODES, Graph, _of_parameters_only
from cardan.constraints.registry import REGISTRY, Primitive
from layers import sampled

SAME = 1e-14  # of the largest entry: both do the same operations, but a compiler may fuse or reorder some of them
STEP = 1e-4  # of central differences
DIFFERENCES = 1e-9  # of the largest entry: EPS/STEP, and STEP⁴ times the fifth derivative


def evaluated(addresses, sizes, x, c, v):
    """f, ∂f/∂x and ẋᵀ f_xx ẋ by two addresses; sizes: rows and components."""
    rows, width = sizes
    f, df, g = (np.full(n, np.nan) for n in (rows, rows * width, rows))
    primitive_calls.value(addresses[0], x, c, f, df)
    primitive_calls.curvature(addresses[1], x, v, c, g)
    return f, df.reshape(rows, width), g


def tapes(text):
    return tape.address(text, "primitive"), tape.address(text, "primitive_curvature")


def compiled(text):
    made = Primitive(-1, "own", (), (), (), (), (), "value", None, "own", text=text)
    return kernels.address(made), kernels.curvature_address(made)


def close(value, expected, tolerance):
    __tracebackhide__ = True
    np.testing.assert_array_equal(np.isnan(value), np.isnan(expected))
    value, expected = (np.nan_to_num(a, posinf=1e300, neginf=-1e300) for a in (value, expected))
    error = np.abs(value - expected).max(initial=0.0)
    assert error <= tolerance * max(1.0, np.abs(expected).max(initial=0.0)), f"off by {error:.1e}"


def check(text, sizes, samples):
    """Compare the tapes of a generated module with its kernels at samples (x, c, ẋ)."""
    for x, c, v in samples:
        x, c, v = (np.array(a, dtype=float) for a in (x, [*c, 0.0], v))
        found = evaluated(tapes(text), sizes, x, c, v)
        for value, expected in zip(found, evaluated(compiled(text), sizes, x, c, v), strict=True):
            close(value, expected, SAME)


def samples(rng, components, parameters, count=3):
    return [
        (rng.normal(size=components), rng.uniform(0.5, 1.5, parameters), rng.normal(size=components))
        for _ in range(count)
    ]


# --- operations -------------------------------------------------------------------------------------------------------

SPLINE = [2.0, 3.0, 0.0, -1.0, 0.25, 1.5, 0.3, -0.2, 0.7, 0.1, -0.4, 0.6, 0.2, 0.9]  # two cubic pieces

# arguments on both sides of every branch, and where a function is not defined
OF_ONE = [(0.7,), (-0.4,), (0.0,), (1.5,), (math.nan,)]
OF_VECTORS = [(0.3, -0.4, 1.2), (0.0, 0.0, 0.0)]
OF_BOUNDS = [(0.5, -1.0, 1.0), (1.5, -1.0, 1.0), (-1.5, -1.0, 1.0)]
ARGUMENTS = {
    **{name: OF_ONE for name, partials in FUNCTIONS.items() if len(partials) == 1},
    **{name: [(-0.6,), (0.25,), (0.8,), (-2.0,), (3.0,)] for name in ("spline_0", "spline_1")},
    "power": [(0.7, 1.5), (-0.7, 3.0), (-0.7, 0.5), (2.0, -2.0)],
    "atan2": [(0.4, -0.6), (-0.4, 0.6), (0.0, -1.0)],
    **{name: OF_VECTORS for name in ("norm3", "unit3_0", "unit3_1", "unit3_2", "inverse_norm3")},
    "sign4": [(0.5, 1.0, 0.0, 0.0), (0.0, -1.0, 0.0, 0.0), (0.0, 0.0, -0.2, 0.3), (0.0, 0.0, 0.0, -0.3)],
    "unwrapped": [(0.4, -0.6, 7.0), (-0.4, -0.6, -20.0), (0.0, 0.0, 3.0)],
    "inverse_square2": [(0.4, -0.6), (0.0, 0.0)],
    "beyond": OF_BOUNDS,
    "outside": OF_BOUNDS,
    "angle_ratio": [(0.5, 0.7), (1e-4, 0.7), (0.5, 0.0)],
    "angle_ratio_s": [],
}
FIRST_DERIVATIVES = {"angle_ratio_s", "spline_1"}  # they have no second derivative; those of others contain them
SECOND_DERIVATIVES = {"angle_ratio_ss", "spline_2"}


def test_every_operation_of_graphs_has_a_case_of_the_interpreter():
    assert set(tables.OPERATIONS) == set("+-*/") | set(FUNCTIONS) | SECOND_DERIVATIVES
    assert set(ARGUMENTS) == set(FUNCTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("has_table", [False, True])
def test_operations_are_the_compiled_ones_with_their_derivatives(has_table):
    names = [name for name in FUNCTIONS if name.startswith("spline") == has_table and name not in FIRST_DERIVATIVES]
    graph = Graph()
    rows, components, parameters = [], [], list(SPLINE if has_table else [])
    chosen = []  # of each argument: whether it is a parameter, and its place
    for name in names:
        arguments = []
        for k, partial in enumerate(FUNCTIONS[name]):
            is_parameter = partial is _of_parameters_only
            mine = parameters if is_parameter else components
            arguments.append(graph.variable(f"{'xc'[is_parameter]}{len(mine)}"))
            chosen.append((mine, len(mine), name, k))
            mine.append(0.0)
        rows.append(graph.call(name, *arguments))
    text = codegen.user_module((graph, [graph.variable(f"x{k}") for k in range(len(components))], rows))
    v = np.random.default_rng(1).normal(size=len(components))
    for sample in range(max(map(len, ARGUMENTS.values()))):
        for mine, place, name, k in chosen:
            given = ARGUMENTS[name]
            mine[place] = given[sample % len(given)][k]
        x, c = np.array(components), np.array([*parameters, 0.0])
        found = evaluated(tapes(text), (len(rows), len(components)), x, c, v)
        for value, expected in zip(
            found, evaluated(compiled(text), (len(rows), len(components)), x, c, v), strict=True
        ):
            for k in range(len(names)):
                with np.errstate(all="ignore"):
                    close(value[k : k + 1], expected[k : k + 1], SAME)


# --- primitives -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@sampled("name", sorted(REGISTRY), 5)
def test_a_primitive_is_the_compiled_one_and_has_the_derivatives_of_differences(name):
    primitive = REGISTRY[name]
    text = codegen.user_module(primitive.trace())
    rng = np.random.default_rng(5)
    sizes = primitive.rows, primitive.components
    given = samples(rng, primitive.components, len(primitive.parameters))
    check(text, sizes, given)
    x, c, v = given[0]
    _, df, g = evaluated(tapes(text), sizes, x, c, v)
    nodes = ((1, 8), (-1, -8), (2, -1), (-2, 1))  # and weights
    moved = [(weight, *evaluated(tapes(text), sizes, x + k * STEP * v, c, v)) for k, weight in nodes]
    close(sum(weight * f for weight, f, _, _ in moved) / (12 * STEP), df @ v, DIFFERENCES)
    close(sum(weight * at @ v for weight, _, at, _ in moved) / (12 * STEP), g, DIFFERENCES)


@pytest.mark.slow
def test_own_and_promoted_primitives_rate_rows_and_motions_are_the_compiled_ones():
    @cd.primitive(i="point", j="point", turn="angle", unit=["m", "rad"])
    def bent(i, j, turn, *, length, gain):
        return [cd.norm(j - i) ** 1.5 - length + 0.375 * cd.sin(turn), gain * turn + cd.exp(-i.x * j.y) - 2.5]

    @cd.rate_primitive(i="point", axis="vector of i", frame="orientation")
    def blade(i, axis, frame, *, offset):
        return cd.dot(axis, cd.rate(i)) - offset * cd.angular_velocity(frame).z

    rng = np.random.default_rng(7)
    for primitive in (bent, promotion.promoted(bent, (0, 1)), blade):
        given = samples(rng, primitive.components, len(primitive.parameters))
        constants = [(x, [*c, *primitive.constants], v) for x, c, v in given]
        check(primitive.text, (primitive.rows, primitive.components), constants)

    @cd.joint_motion(slide="m", angle="rad")
    def helix(slide, angle, *, pitch):
        c, s = cd.cos(angle), cd.sin(angle)
        return ((c, -s, 0), (s, c, 0), (0, 0, 1)), (slide, 0, pitch * angle)

    for reverse in (False, True):
        text = helix.kernel(reverse).text
        found = []
        for address in (tape.address(text, "primitive"), kernels.address(helix.kernel(reverse))):
            f, df = np.full(12, np.nan), np.full(24, np.nan)
            primitive_calls.value(address, np.array([0.3, 0.7]), np.array([0.01]), f, df)
            found.append(np.concatenate([f, df]))
        close(*found, SAME)


def test_constants_keep_their_sign_and_a_row_may_be_one():
    graph = Graph()
    x, c = graph.variable("x0"), graph.variable("c0")
    rows = [x * -0.0 + c, x - 2.5, graph.constant(-3.0) / x]
    text = codegen.user_module((graph, [x], rows))
    f, df, g = evaluated(tapes(text), (3, 1), np.array([-4.0]), np.array([0.5]), np.array([2.0]))
    assert f.tolist() == [0.5, -6.5, 0.75] and df[:, 0].tolist() == [0.0, 1.0, 0.1875] and g[1] == 0.0
    assert g[2] == pytest.approx(2 * -3.0 / -64.0 * 4.0, rel=SAME)


def test_a_tape_that_needs_many_numbers_at_once_is_interpreted_too():
    graph = Graph()
    x = graph.variable("x0")
    terms = [x * (k + 2.0) for k in range(400)]
    total = terms[0]
    for term in reversed(terms):
        total = total + term * term
    text = codegen.user_module((graph, [x], [total]))
    width = tape._placed(read(text, "primitive"))[1]
    assert tables.NARROW < width <= tables.WIDE == MOST_NODES
    f, df, g = evaluated(tapes(text), (1, 1), np.array([0.5]), np.zeros(1), np.array([1.0]))
    square = sum((k + 2.0) ** 2 for k in range(400))
    assert f[0] == pytest.approx(2 * 0.5 + square * 0.25, rel=SAME)
    assert df[0, 0] == pytest.approx(2 + square, rel=SAME) and g[0] == pytest.approx(2 * square, rel=SAME)


def read(text, name):
    (found,) = [node for node in ast.parse(text).body if getattr(node, "name", "") == name]
    reader = tape._Reader()
    for statement in found.body:
        reader.read(statement)
    return reader


def test_a_statement_that_no_tape_can_do_is_an_error():
    for statement in ("while True: f[0] = 1.0", "t1 = x[0] if x[1] else x[2]", "f[0] = t0 + t1"):
        reader = tape._Reader()
        with pytest.raises(NotImplementedError, match="a tape cannot"):
            reader.read(ast.parse(statement).body[0])


# --- shapes -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("freedoms", [1, 2])
def test_a_traced_shape_is_the_compiled_one_up_to_the_third_order(freedoms):
    if freedoms == 1:
        shape = cd.geometry.traced(lambda u: (cd.cos(u) + u * cd.sin(u), cd.sin(u) - u * cd.cos(u), 0.25), (0.1, 2))
    else:
        shape = cd.geometry.traced(
            lambda u, v: ((2.0 + cd.cos(v)) * cd.cos(u), (2.0 + cd.cos(v)) * cd.sin(u), cd.exp(0.5 * u) * v),
            (-1, 2), (-2, 1),
        )  # fmt: skip
    rng = np.random.default_rng(3)
    q = np.stack([rng.uniform(low, high, 20) for low, high in shape.bounds], axis=1)
    expected = [shape.evaluate(q, order) for order in range(4)]
    other = shape.with_table(shape.floats.copy())
    object.__setattr__(other, "_address", other._interpreted())
    for order in range(4):
        close(other.evaluate(q, order), expected[order], SAME)
    assert other.address != shape.address
