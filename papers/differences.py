"""Derivatives of a closest pair by differences against the exact ones: error and cost by scheme, chart and step.

[NelsonCohen1998] differentiates the closest points by forward, central and Richardson differences, with a quaternion
that is renormalised, with a component dropped, or with angles.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from cardan.geometry import Distance, Surface
from cardan.geometry.pose_derivatives import Chart, Scheme, chart_map, differences, exact

STEPS = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
POSE = (0.15, 0.1, 1.1, 0.15, 0.98, 0.05, 0.1)  # of the second surface, turned over above the first


@dataclass(frozen=True, slots=True)
class Row:
    """One scheme: relative error of ∂points, and microseconds."""

    scheme: str
    chart: str
    h: float
    error: float
    microseconds: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and CSV."""
        return {
            "scheme": self.scheme,
            "chart": self.chart,
            "h": self.h,
            "error": self.error,
            "microseconds": self.microseconds,
        }


def hills(seed: int, height: float = 0.05) -> Surface:
    """A bicubic surface over the unit square that rises in the middle, with 8×8 control points."""
    rng = np.random.default_rng(seed)
    g = np.linspace(0.0, 1.0, 8)
    x, y = np.meshgrid(g, g, indexing="ij")
    z = 0.3 * np.exp(-6.0 * ((x - 0.5) ** 2 + (y - 0.5) ** 2)) + height * rng.normal(size=(8, 8))
    return Surface(np.stack([x, y, z], axis=-1), rng.uniform(0.8, 1.25, (8, 8)))


def study(seed: int = 0, steps: tuple[float, ...] = STEPS) -> tuple[Row, ...]:
    """Rows for every scheme, chart and step, after one for the exact derivative."""
    query = Distance(hills(seed, 0.01), hills(seed + 1, 0.01))
    pose = np.array(POSE)
    pair = query.closest(pose)
    reference, _ = exact(query, pose, pair)
    began = time.perf_counter()
    exact(query, pose, pair)
    rows = [Row("exact", "tangent", 0.0, 0.0, 1e6 * (time.perf_counter() - began))]
    for scheme in get_args(Scheme):
        for chart in get_args(Chart):
            truth = reference @ chart_map(pose, chart)
            for h in steps:
                began = time.perf_counter()
                found = differences(query, pose, scheme=scheme, chart=chart, h=h)
                spent = time.perf_counter() - began
                error = float(np.abs(found - truth).max() / np.abs(truth).max())
                rows.append(Row(scheme, chart, h, error, 1e6 * spent))
    return tuple(rows)
