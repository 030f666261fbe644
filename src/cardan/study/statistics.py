"""Statistics of the runs of a study: correlations, slopes, the yield against limits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.errors import ModelError
from cardan.system import check
from cardan.system.state import FloatArray

Z: Final = 1.959963984540054  # of a normal distribution: 95 % are within ±Z σ


class Yield(NamedTuple):
    """The share of runs within limits, and its interval of 95 % (lower, upper); ``within``: which runs, shape (n,)."""

    share: float
    lower: float
    upper: float
    within: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"<Yield {self.share:.4f}, {self.lower:.4f} … {self.upper:.4f}, of {len(self.within)} runs>"


def correlation(values: Mapping[str, FloatArray], outputs: Mapping[str, FloatArray]) -> dict[str, dict[str, float]]:
    """Pearson's r of each output with each parameter."""
    return {label: {name: _pearson(x, y) for name, x in values.items()} for label, y in outputs.items()}


def _pearson(x: FloatArray, y: FloatArray) -> float:
    known = np.isfinite(y)
    if known.sum() < 2:
        return math.nan
    a, b = x[known] - x[known].mean(), y[known] - y[known].mean()
    size = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / size if size > 0.0 else math.nan


def slopes(values: Mapping[str, FloatArray], outputs: Mapping[str, FloatArray]) -> dict[str, dict[str, float]]:
    """Of each output the coefficients of  y ≈ c + Σ sᵢ xᵢ  of least squares; NaN where they are not unique."""
    names = list(values)
    found = {}
    for label, y in outputs.items():
        known = np.isfinite(y)
        columns = np.column_stack([np.ones(int(known.sum())), *[values[name][known] for name in names]])
        middle, spread = columns[:, 1:].mean(axis=0), columns[:, 1:].std(axis=0)
        columns[:, 1:] = (columns[:, 1:] - middle) / np.where(spread > 0.0, spread, 1.0)
        solved, _, rank, _ = np.linalg.lstsq(columns, y[known], rcond=None)
        unique = rank == len(names) + 1
        found[label] = {name: float(solved[k + 1] / spread[k]) if unique else math.nan for k, name in enumerate(names)}
    return found


def share(
    outputs: Mapping[str, FloatArray], ended: NDArray[np.bool_], limits: Mapping[str, tuple[float | None, float | None]]
) -> Yield:
    """The share of runs that reached their end, with outputs within limits; the interval is Wilson's."""
    if not isinstance(limits, Mapping) or not limits:
        raise ModelError(f"the limits are {limits!r}; they must be {{output: (lower, upper)}}, with None for no limit")
    within = ended.copy()
    for label, pair in limits.items():
        if label not in outputs:
            raise check.unknown(label, "output that is a number", outputs)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ModelError(
                f"the limits of {label!r} are {pair!r}; they must be (lower, upper), with None for no limit"
            )
        lower, upper = (None if one is None else check.number(one, f"a limit of {label!r}") for one in pair)
        if lower is not None and upper is not None and lower > upper:
            raise ModelError(f"the limits of {label!r} are {lower:g} and {upper:g}; the lower one must come first")
        known = outputs[label]
        within &= np.isfinite(known)
        within &= True if lower is None else known >= lower
        within &= True if upper is None else known <= upper
    n, p = len(within), float(within.mean())
    middle = (p + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    return Yield(p, max(0.0, middle - half), min(1.0, middle + half), within)


def scatter(x: tuple[str, FloatArray, str], y: tuple[str, FloatArray, str]) -> Any:
    """A figure with a point for each run."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ModelError("a picture needs matplotlib; install it with: pip install 'cardan[plot]'") from None
    for label, values, _ in (x, y):
        if values.ndim > 1:
            raise ModelError(f"{label!r} has several numbers for each run; plot a reduction, such as 'max(…)'")
    figure = Figure(figsize=(6.0, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(x[1], y[1], ".", markersize=3, color="#2a78d6")
    axes.set_xlabel(f"{x[0]} [{x[2]}]" if x[2] else x[0])
    axes.set_ylabel(f"{y[0]} [{y[2]}]" if y[2] else y[0])
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    return figure
