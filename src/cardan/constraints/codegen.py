"""Generate the kernels of primitives.  Those of the built-in ones are written to ``_generated.py`` by the build, and
in a checkout when the library is imported (:mod:`cardan.checkout`).  This module needs Python alone, as the build does.

Each primitive has two functions, generated from its graph: f with ∂f/∂x (they share most of their terms), and the
velocity-product term ẋᵀ f_xx ẋ of γ (compiled only if accelerations are computed).  For the inline primitives, two
functions select the kernel by code.  Kernels of all other primitives take pointers and are called by address.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from cardan.constraints.expression import Graph, Scalar
from cardan.constraints.registry import REGISTRY, FeatureKind

TARGET = Path(__file__).with_name("_generated.py")

_FUNCTIONS = (
    "angle_ratio",
    "angle_ratio_s",
    "angle_ratio_ss",
    "beyond",
    "inverse_norm3",
    "inverse_square2",
    "norm3",
    "outside",
    "power",
    "sign4",
    "unit3",
    "unwrapped",
)

_IMPORTS = f"""
from math import acos, asin, atan, atan2, cos, cosh, exp, log, sin, sinh, sqrt, tan, tanh  # noqa: F401

from cardan.kernel.jit import inner
from cardan.kernel.memory import view  # noqa: F401
from cardan.math._kernels import (  # noqa: F401
    {f",{chr(10)}    ".join(_FUNCTIONS)},
)
"""

TABLE = 1 << 40  # floats of a table that a kernel may read; their number is in the table

_HEADER = f'''"""Kernels of the primitives, written by cardan.constraints.codegen; not to be edited."""
{_IMPORTS}'''


class _Writer:
    """Straight-line statements for the nodes that the outputs depend on, in the order of the graph.

    Fewer operations compile faster: one loop stores the zeros, and arrays are passed as slices, so that indices need no
    offset.
    """

    def __init__(self, graph: Graph, outputs: Iterable[Scalar]) -> None:
        needed = set()
        stack = [output for output in outputs]
        while stack:
            node = stack.pop()
            if node.index not in needed:
                needed.add(node.index)
                stack.extend(node.arguments)
        self.lines: list[str] = []
        self.parameters = 0  # number of parameters, up to the last one that is read
        self._names: dict[int, str] = {}
        for node in graph.nodes:
            if node.index in needed:
                self._write(node)

    def name(self, node: Scalar) -> str:
        return self._names[node.index]

    def _write(self, node: Scalar) -> None:
        arguments = [self._names[argument.index] for argument in node.arguments]
        if node.operation == "constant":
            self._names[node.index] = repr(node.value)
            return
        name = str(node.value) if node.operation == "variable" else f"t{node.index}"
        self._names[node.index] = name
        if node.operation == "variable":
            kind, position = name[0], int(name[1:])
            if kind == "c":
                self.parameters = max(self.parameters, position + 1)
            source = {"x": f"x[{position}]", "v": f"rate[{position}]", "c": f"c[{position}]"}[kind]
            self.lines.append(f"    {name} = {source}")
        elif node.operation.startswith("call "):
            function = node.operation.removeprefix("call ")
            if function.startswith("unit3_"):
                function, arguments = "unit3", [function.removeprefix("unit3_"), *arguments]
            elif function.startswith("spline_"):
                function, arguments = "spline", ["c", function.removeprefix("spline_"), *arguments]
                self.parameters = TABLE
            self.lines.append(f"    {name} = {function}({', '.join(arguments)})")
        else:
            self.lines.append(f"    {name} = {f' {node.operation} '.join(arguments)}")


Trace = tuple[Graph, list[Scalar], list[Scalar]]


def value_kernel(name: str, trace: Trace, inline: bool) -> str:
    """The function of f and ∂f/∂x."""
    graph, variables, rows = trace
    one = graph.constant(1.0)
    partials = []
    for variable in variables:
        memo: dict[int, Scalar] = {}
        partials.append([graph.derivative(row, {variable: one}, memo) for row in rows])
    outputs = [*rows, *(p for column in partials for p in column if not p.is_zero)]
    writer = _Writer(graph, outputs)
    width = len(variables)
    body = list(writer.lines)
    body += [f"    f[{i}] = {writer.name(row)}" for i, row in enumerate(rows)]
    body += [f"    for i in range({width * len(rows)}):", "        df[i] = 0.0"]
    for j, column in enumerate(partials):
        body += [f"    df[{i * width + j}] = {writer.name(p)}" for i, p in enumerate(column) if not p.is_zero]
    sizes = {"x": width, "c": writer.parameters, "f": len(rows), "df": width * len(rows)}
    return _function(name, sizes, f"f and ∂f/∂x of {name}: {len(rows)} rows, {width} components.", body, inline)


def curvature_kernel(name: str, trace: Trace, inline: bool) -> str:
    """The function of ẋᵀ f_xx ẋ."""
    graph, variables, rows = trace
    seeds = {variable: graph.variable(f"v{i}") for i, variable in enumerate(variables)}
    first: dict[int, Scalar] = {}
    rates = [graph.derivative(row, seeds, first) for row in rows]
    second: dict[int, Scalar] = {}
    curvatures = [graph.derivative(rate, seeds, second) for rate in rates]
    writer = _Writer(graph, curvatures)
    body = [*writer.lines, *(f"    g[{i}] = {writer.name(c)}" for i, c in enumerate(curvatures))]
    sizes = {"x": len(variables), "rate": len(variables), "c": writer.parameters, "g": len(rows)}
    return _function(f"{name}_curvature", sizes, f"ẋᵀ f_xx ẋ of {name}, {len(rows)} rows.", body, inline)


def adjoint_kernel(name: str, graph: Graph, outputs: Sequence[Scalar]) -> str:
    """The function of gradients (:mod:`.adjoints`): g ← outputs of (x, given, c)."""
    kept = [(i, output) for i, output in enumerate(outputs) if not output.is_zero]
    writer = _Writer(graph, [output for _, output in kept])
    body = [*writer.lines, f"    for i in range({len(outputs)}):", "        g[i] = 0.0"]
    body += [f"    g[{i}] = {writer.name(output)}" for i, output in kept]
    sizes = {"x": TABLE, "rate": TABLE, "c": TABLE, "g": len(outputs)}
    return _function(name, sizes, f"Gradients, {len(outputs)} numbers.", body, False)


def rate_value_kernel(name: str, trace: Trace) -> str:
    """The function of B(x) = ∂g/∂ẋ, in place of ∂f/∂x; f is zero, since a rate row says nothing about poses."""
    graph, variables, rows = trace
    one, width = graph.constant(1.0), len(variables)
    partials = [[graph.derivative(row, {graph.rates[x]: one}, {}) for x in variables] for row in rows]
    writer = _Writer(graph, [p for row in partials for p in row if not p.is_zero])
    body = [*writer.lines, f"    for i in range({len(rows)}):", "        f[i] = 0.0"]
    body += [f"    for i in range({width * len(rows)}):", "        df[i] = 0.0"]
    for i, row in enumerate(partials):
        body += [f"    df[{i * width + j}] = {writer.name(p)}" for j, p in enumerate(row) if not p.is_zero]
    sizes = {"x": width, "c": writer.parameters, "f": len(rows), "df": width * len(rows)}
    return _function(name, sizes, f"f = 0 and B of g = B ẋ: {len(rows)} rows, {width} components.", body, False)


def rate_curvature_kernel(name: str, trace: Trace) -> str:
    """The function of Ḃ ẋ = g_x ẋ."""
    graph, variables, rows = trace
    memo: dict[int, Scalar] = {}
    curvatures = [graph.derivative(row, graph.rates, memo) for row in rows]
    writer = _Writer(graph, curvatures)
    body = [*writer.lines, *(f"    g[{i}] = {writer.name(c)}" for i, c in enumerate(curvatures))]
    sizes = {"x": len(variables), "rate": len(variables), "c": writer.parameters, "g": len(rows)}
    return _function(f"{name}_curvature", sizes, f"Ḃ ẋ, {len(rows)} rows.", body, False)


def _function(name: str, sizes: dict[str, int], text: str, body: list[str], inline: bool) -> str:
    views = [] if inline else [f"    {argument} = view({argument}, {size})" for argument, size in sizes.items() if size]
    return "\n".join(
        [
            *(["@inner"] if inline else []),
            f"def {name}({', '.join(sizes)}):",
            f'    """{text}"""',
            *views,
            *body,
            *([] if inline else ["    return 0"]),
        ]
    )


_OPENING = '"""Kernels of a primitive, written by cardan.constraints.codegen; not to be edited."""'


def constants_as_data(trace: Trace, parameters: int) -> tuple[Trace, tuple[float, ...]]:
    """The same equations with their numbers as further parameters behind the given ones; and these numbers.

    So functions that differ by numbers alone have the same kernels.  0, 1 and −1 stay, by which terms are simplified,
    and exponents, whose powers are products; a graph with a table has none, since the table is its parameters.
    """
    graph, variables, rows = trace
    tabled = any([node.operation.startswith("call spline_") for node in graph.nodes])
    kept = {node.arguments[1].index for node in graph.nodes if node.operation == "call power"}
    numbers: list[float] = []
    made, found = Graph(), list[Scalar]()
    for node in graph.nodes:
        if isinstance(node.value, float) and not (tabled or node.index in kept or node.value in (0.0, 1.0, -1.0)):
            found.append(made.variable(f"c{parameters + len(numbers)}"))
            numbers.append(node.value)
        else:
            found.append(made.node(node.operation, tuple([found[a.index] for a in node.arguments]), node.value))
    made.rates = {found[x.index]: found[v.index] for x, v in graph.rates.items()}
    return (made, [found[x.index] for x in variables], [found[row.index] for row in rows]), tuple(numbers)


def user_module(trace: Trace) -> str:
    """The text of the module of one user's primitive.

    It contains only operations, numbers and indices, and none of the user's text, not even a name.
    """
    if trace[0].rates:
        kernels = [rate_value_kernel("primitive", trace), rate_curvature_kernel("primitive", trace)]
    else:
        kernels = [value_kernel("primitive", trace, False), curvature_kernel("primitive", trace, False)]
    imports = _IMPORTS
    if any("= spline(" in kernel for kernel in kernels):
        imports = imports.replace("from cardan.math", "from cardan.constraints._spline import spline\nfrom cardan.math")
    return "\n\n\n".join([f"{_OPENING}\n{imports}".rstrip(), *kernels]) + "\n"


def motion_module(trace: Trace) -> str:
    """The text of the module of one user's motion of a joint; see :mod:`.user_motion`."""
    return f"{_OPENING}\n{_IMPORTS}".rstrip() + "\n\n\n" + value_kernel("primitive", trace, False) + "\n"


CURVATURE_STEP = 1e-3  # step of a feature, relative to its size; the error of five points is then about 1e-13


def by_hand_module(kinds: Sequence[FeatureKind], parameters: int, rows: int) -> str:
    """The text of the kernels around two functions by hand, ``value_by_hand`` and ``derivative_by_hand``, and ``view``.

    ẋᵀ f_xx ẋ = d/dt (∂f(x + t ẋ) ẋ) is computed from five points.  Between neighbours, a vector moves by at most
    CURVATURE_STEP, and a point by at most CURVATURE_STEP times the largest coordinate of all points.  The result does
    not depend on the units of length and time.
    """
    width = sum(kind.components for kind in kinds)
    views = f"    x = view(x, {width})\n    c = view(c, {parameters})\n"
    lengths = [kind is FeatureKind.POINT for kind in kinds for _ in range(kind.components)]
    points = [j for j, is_length in enumerate(lengths) if is_length]
    others = [j for j, is_length in enumerate(lengths) if not is_length]
    speeds = []
    if points:
        speeds.append(f"""    for j in {_tuple(points)}:
        size = max(size, abs(x[j]))
        speed = max(speed, abs(rate[j]))
    speed = speed / size if size > 0.0 else 0.0
""")
    if others:
        speeds.append(f"""    for j in {_tuple(others)}:
        speed = max(speed, abs(rate[j]))
""")
    return f'''{_OPENING}

from math import nan

from numpy import empty


def primitive(x, c, f, df):
    """f and ∂f/∂x: {rows} rows, {width} components."""
{views}    f = view(f, {rows})
    df = view(df, {rows * width})
    for i in range({rows}):
        f[i] = nan
    for i in range({rows * width}):
        df[i] = nan
    try:
        value_by_hand(x, c, f)
        derivative_by_hand(x, c, df)
    except Exception:
        for i in range({rows}):
            f[i] = nan
    return 0


def primitive_curvature(x, rate, c, g):
    """ẋᵀ f_xx ẋ, {rows} rows."""
{views}    rate = view(rate, {width})
    g = view(g, {rows})
    size = 0.0
    speed = 0.0
{"".join(speeds)}    for i in range({rows}):
        g[i] = 0.0
    if speed == 0.0:
        return 0
    step = {CURVATURE_STEP!r} / speed
    moved = empty({width})
    partials = empty({rows * width})
    for side, weight in ((1.0, 8.0), (-1.0, -8.0), (2.0, -1.0), (-2.0, 1.0)):
        for j in range({width}):
            moved[j] = x[j] + side * step * rate[j]
        for i in range({rows * width}):
            partials[i] = nan
        try:
            derivative_by_hand(moved, c, partials)
        except Exception:
            partials[0] = nan
        for i in range({rows}):
            for j in range({width}):
                g[i] += weight * partials[i * {width} + j] * rate[j] / (12.0 * step)
    return 0
'''


DIFFERENCE_STEP = 1e-3  # of a component, relative to the size of points or vectors; the error is then about 1e-12
COMPLEX_STEP = 1e-30  # likewise; there is no difference, and so no rounding


def differenced_module(kinds: Sequence[FeatureKind], rows: int, is_complex: bool) -> str:
    """The text of ``derivative(x, c, out)``, ∂f/∂x by differences of ``value_by_hand(x, c, out)``.

    By five points, (8 (f(h) − f(−h)) − (f(2h) − f(−2h)))/12h, or by one in the complex plane, Im f(ih)/h.  The step of
    points is relative to the largest coordinate of all points.  The last accepted angle has no derivative.
    """
    width = sum(kind.components for kind in kinds)
    components = [kind for kind in kinds for _ in range(kind.components)]
    lengths = [j for j, kind in enumerate(components) if kind is FeatureKind.POINT]
    moving = [j for j, kind in enumerate(components) if kind is not FeatureKind.ANGLE]
    largest = f"""    for j in {_tuple(lengths)}:
        size = max(size, abs(x[j]))
"""
    if is_complex:
        of_one = f"""        moved[j] = x[j] + {COMPLEX_STEP!r}j * unit
        value_by_hand(moved, c, value)
        for i in range({rows}):
            out[i * {width} + j] = value[i].imag / ({COMPLEX_STEP!r} * unit)
        moved[j] = x[j]
"""
    else:
        of_one = f"""        step = {DIFFERENCE_STEP!r} * unit
        for side, weight in ((1.0, 8.0), (-1.0, -8.0), (2.0, -1.0), (-2.0, 1.0)):
            moved[j] = x[j] + side * step
            value_by_hand(moved, c, value)
            for i in range({rows}):
                out[i * {width} + j] += weight * value[i] / (12.0 * step)
        moved[j] = x[j]
"""
    return f'''"""Generated."""

from math import nan

from numpy import complex128, empty, float64


def derivative(x, c, out):
    """∂f/∂x: {rows} rows, {width} components."""
    moved = empty({width}, {"complex128" if is_complex else "float64"})
    value = empty({rows}, {"complex128" if is_complex else "float64"})
    size = 0.0
{largest if lengths else ""}    if size == 0.0:
        size = 1.0
    for j in range({width}):
        moved[j] = x[j]
    for i in range({rows * width}):
        out[i] = 0.0
    for j in {_tuple(moving)}:
        unit = size if j in {_tuple([*lengths, -1])} else 1.0
        for i in range({rows}):
            value[i] = nan
{of_one}'''


def _tuple(numbers: Sequence[int]) -> str:
    return f"({', '.join(map(str, numbers))},)"


def _chooser(name: str, arguments: str, suffix: str, text: str) -> str:
    lines = ["@inner", f"def {name}(code, {arguments}):", f'    """{text}"""']
    for position, primitive in enumerate(p for p in REGISTRY.values() if p.inline):
        keyword = "if" if position == 0 else "elif"
        lines += [f"    {keyword} code == {primitive.code}:", f"        {primitive.name}{suffix}({arguments})"]
    return "\n".join(lines)


def generate() -> str:
    """The text of the module of generated kernels."""
    import cardan.constraints.primitives  # noqa: F401  (registers the primitives)

    parts = [_HEADER]
    parts += [value_kernel(p.name, p.trace(), p.inline) for p in REGISTRY.values()]
    parts.append(_chooser("evaluate_primitive", "x, c, f, df", "", "f and ∂f/∂x of an inline primitive."))
    parts += [curvature_kernel(p.name, p.trace(), p.inline) for p in REGISTRY.values()]
    parts.append(_chooser("primitive_curvature", "x, rate, c, g", "_curvature", "ẋᵀ f_xx ẋ of an inline primitive."))
    return "\n\n\n".join(part.rstrip() for part in parts) + "\n"


def write(target: Path = TARGET) -> None:
    """Write the module of generated kernels.  The file appears complete; the same text keeps the file."""
    data = generate().encode()
    if target.is_file() and target.read_bytes() == data:
        with contextlib.suppress(OSError):  # of another user: the text is right, only its time is not
            os.utime(target)
        return
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".generated", suffix=".py")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, 0o644)  # mkstemp makes it private
        os.replace(name, target)
    except OSError:
        os.unlink(name)
        raise


if __name__ == "__main__":
    write()
