"""Samples of design parameters: grids, Latin hypercubes, normal and uniform draws, and tables.

A sample gives one row of values for each run.  Draws depend on the seed and the name of a parameter alone, neither on
the order of the parameters nor on the workers.  They are those of :meth:`cardan.Mechanism.tolerances`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from cardan.analysis.sensitivity import FACTORS, _draw
from cardan.calls import explains
from cardan.errors import ModelError
from cardan.system import check
from cardan.system.state import FloatArray

MOST_RUNS: Final = 1_000_000_000
BINS: Final = 0  # marks the generator of the order of bins, apart from that of the place in a bin

Drawn = Mapping[str, float]


@explains()
class Sample:
    """Values of parameters for each run; ``a * b`` has every row of one with every row of the other.

    ``seed``: of draws; None if nothing is drawn.  ``names``: of the parameters.
    """

    def __init__(
        self, kind: str, names: tuple[str, ...], count: int, values: Callable[[Drawn], dict[str, FloatArray]], seed: Any
    ) -> None:
        """values: from the drawn values of the parameters to those of the runs, shape (count,) each."""
        check.count(count, f"the number of runs of a {kind} sample", 1, MOST_RUNS)
        self.kind, self.names, self.count, self.seed = kind, names, count, seed
        self._values = values

    def __len__(self) -> int:
        return self.count

    def values(self, drawn: Drawn) -> dict[str, FloatArray]:
        """Values for each run; drawn: those of the mechanism, about which tolerances are."""
        for name in self.names:
            if name not in drawn:
                raise check.unknown(name, "parameter", drawn)
        return self._values(drawn)

    def __mul__(self, other: Sample) -> Sample:
        if not isinstance(other, Sample):
            return NotImplemented
        if both := set(self.names) & set(other.names):
            raise ModelError(f"both samples have parameter {min(both)!r}; a product needs different parameters")

        def values(drawn: Drawn) -> dict[str, FloatArray]:
            mine = {name: np.repeat(own, len(other)) for name, own in self.values(drawn).items()}
            return mine | {name: np.tile(own, len(self)) for name, own in other.values(drawn).items()}

        seeds = [one.seed for one in (self, other) if one.seed is not None]
        return Sample("product", (*self.names, *other.names), self.count * other.count, values, seeds or None)

    def __repr__(self) -> str:
        return f"<Sample {self.kind}: {self.count} runs of {', '.join(self.names)}>"


def _by_name(given: Mapping[Any, Any] | None, more: Mapping[str, Any], what: str) -> dict[str, Any]:
    """By the names of the parameters; given: parameters or names, more: by keyword."""
    if given is not None and not isinstance(given, Mapping):
        raise ModelError(f"{what} was given {given!r:.80}; it must be {{parameter: values}}, or name=values")
    found = {getattr(key, "name", key): value for key, value in (given or {}).items()} | dict(more)
    if not found or not all(isinstance(name, str) for name in found):
        raise ModelError(f"{what} was given {list(found)!r:.80}; it must be {{parameter: values}}, or name=values")
    return found


def _numbers(values: Any, what: str) -> FloatArray:
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} is {values!r:.80}; it must be a list of numbers") from None
    if found.ndim != 1 or not found.size or not np.isfinite(found).all():
        raise ModelError(f"{what} is {values!r:.80}; it must be a list of finite numbers")
    return found


def grid(values: Mapping[Any, Any] | None = None, /, **more: Any) -> Sample:
    """Every combination of values: ``cd.sample.grid(a=np.linspace(0.9, 1.1, 21), b=[2, 3])``; the last varies fastest.

    values: ``{parameter: list of numbers}``, in place of keywords.
    """
    axes = {n: _numbers(own, f"the grid of parameter {n!r}") for n, own in _by_name(values, more, "grid").items()}
    sizes = [len(own) for own in axes.values()]
    count = int(np.prod(sizes, dtype=object))

    def made(_: Drawn) -> dict[str, FloatArray]:
        every = np.unravel_index(np.arange(count), sizes)
        return {name: own[k] for (name, own), k in zip(axes.items(), every, strict=True)}

    return Sample("grid", tuple(axes), count, made, None)


def table(rows: Any) -> Sample:
    """The rows of a table: ``{parameter: list of numbers}``, a list of ``{parameter: number}``, or a pandas frame."""
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):
        rows = {name: list(rows[name]) for name in rows.columns}
    elif isinstance(rows, list | tuple) and rows and all(isinstance(row, Mapping) for row in rows):
        keys = list(rows[0])
        for k, row in enumerate(rows):
            if set(row) != set(keys):
                raise ModelError(f"row {k} has the parameters {list(row)}, and row 0 has {keys}; give the same to all")
        rows = {key: [row[key] for row in rows] for key in keys}
    columns = {n: _numbers(v, f"the column of parameter {n!r}") for n, v in _by_name(rows, {}, "a table").items()}
    sizes = {name: len(own) for name, own in columns.items()}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{size} of {name!r}" for name, size in sizes.items())
        raise ModelError(f"the columns of a table have different lengths: {told}")
    return Sample("table", tuple(columns), next(iter(sizes.values())), lambda _: columns, None)


def normal(tolerances: Mapping[Any, Any] | None = None, /, *, runs: int, seed: int = 0, **more: Any) -> Sample:
    """Normal draws about the values of the mechanism: ``cd.sample.normal(a=0.01, runs=1000)`` has σ = 0.01/3.

    tolerances: ±t of each parameter, with σ = t/3; a pair (mean, t) has another mean than the drawn value.
    """
    return _draws("normal", _by_name(tolerances, more, "normal"), runs, seed)


def uniform(tolerances: Mapping[Any, Any] | None = None, /, *, runs: int, seed: int = 0, **more: Any) -> Sample:
    """Uniform draws within ±t of the values of the mechanism, or of the mean in (mean, t); as :func:`normal`."""
    return _draws("uniform", _by_name(tolerances, more, "uniform"), runs, seed)


def _draws(kind: str, given: Mapping[str, Any], runs: int, seed: int) -> Sample:
    means: dict[str, float] = {}
    tolerances: dict[str, float] = {}
    for name, value in given.items():
        if isinstance(value, tuple | list) and len(value) == 2:
            means[name] = check.number(value[0], f"the mean of parameter {name!r}")
            value = value[1]
        tolerances[name] = check.positive(value, f"the tolerance of {name!r}")
    start = check.count(seed, "seed", 0)
    count = check.count(runs, "runs", 1, MOST_RUNS)
    assert kind in FACTORS

    def made(drawn: Drawn) -> dict[str, FloatArray]:
        return _draw(tolerances, {**drawn, **means}, count, start, kind)

    return Sample(kind, tuple(given), count, made, start)


def latin(ranges: Mapping[Any, Any] | None = None, /, *, runs: int, seed: int = 0, **more: Any) -> Sample:
    """A Latin hypercube: ``cd.sample.latin(a=(0.9, 1.1), b=(2, 3), runs=100)``.

    The range of each parameter has as many bins of one size as there are runs, and each bin has one value [McKay1979].
    """
    bounds: dict[str, tuple[float, float]] = {}
    for name, value in _by_name(ranges, more, "latin").items():
        lower, upper = check.numbers(value, 2, f"the range of parameter {name!r}")
        if not lower < upper:
            raise ModelError(f"the range of parameter {name!r} is {lower:g} … {upper:g}; it must increase")
        bounds[name] = lower, upper
    start = check.count(seed, "seed", 0)
    count = check.count(runs, "runs", 1, MOST_RUNS)

    def made(_: Drawn) -> dict[str, FloatArray]:
        found = {}
        for name, (lower, upper) in bounds.items():
            order = np.random.default_rng([start, BINS, *name.encode()]).permutation(count)
            within = np.random.default_rng([start, *name.encode()]).uniform(0.0, 1.0, count)
            found[name] = lower + (upper - lower) * (order + within) / count
        return found

    return Sample("latin", tuple(bounds), count, made, start)


def sample_of(given: Any) -> Sample:
    """A sample, or the rows of a table."""
    return given if isinstance(given, Sample) else table(given)
