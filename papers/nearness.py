"""How near to the start an assembly is: the papers' "nice-looking" solutions, measured.

[NelsonCohen1998] says that solutions of spring steps look natural, since forces propagate through the mechanism.  Here
every part of an assembled mechanism is moved and rotated at random, and three methods assemble it again.  The distance
of two states is √ Σ (|Δr|²/L² + |Δθ|²) over the bodies, with the extent L.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cardan.analysis.options import SpringOptions
from cardan.examples import REGISTRY
from cardan.math import euler
from cardan.system import check
from cardan.system.state import State

NAMES: Final = ("rsur", "bent_chain", "stewart_ups", "watt")
SIZES: Final = (0.1, 1.0)  # of the random displacements, in L and in radians
METHODS: Final[dict[str, dict[str, Any]]] = {
    "gradient": {"max_iterations": 20_000, "tolerance": 1e-6, "spring": SpringOptions(gain=0.1)},  # the papers' k
    "newton": {},
    "auto": {},
}


@dataclass(frozen=True, slots=True)
class Row:
    """``solved``, ``distance``: by method, the number of starts, and the median distance where all methods succeed."""

    mechanism: str
    size: float
    solved: dict[str, int]
    distance: dict[str, float]


def distance(a: State, b: State, length: float) -> float:
    """√ Σ (|Δr|²/L² + |Δθ|²) of two states of a mechanism."""
    turned = euler.difference(a.quaternions, b.quaternions)
    return float(np.sqrt(((a.positions - b.positions) ** 2).sum() / length**2 + (turned**2).sum()))


def displaced(state: State, size: float, length: float, seed: int) -> State:
    """Every body moved by up to ± size L in each direction, and rotated by a vector of up to ± size."""
    rng = np.random.default_rng(seed)
    moves = size * rng.uniform(-1, 1, (len(state.names), 6))
    return state.moved({
        name: (r + length * move[:3], euler.retract(p, move[3:]))
        for name, r, p, move in zip(state.names, state.positions, state.quaternions, moves, strict=True)
    })  # fmt: skip


def study(names: Sequence[str] = NAMES, sizes: Sequence[float] = SIZES, starts: int = 20) -> list[Row]:
    """Assemble from random displacements of the assembled mechanism by every method."""
    starts = check.count(starts, "starts", 1)
    rows = []
    for name in names:
        m = REGISTRY[check.choice(name, "a mechanism", REGISTRY)].build()
        state, length = m.assemble().state, m.system.judged_length
        for size in sizes:
            begins = [displaced(state, size, length, seed) for seed in range(starts)]
            far = np.full((len(METHODS), starts), np.nan)
            for i, (method, options) in enumerate(METHODS.items()):
                for k, begin in enumerate(begins):
                    result = m.assemble(begin, method=method, **options)  # type: ignore[arg-type]
                    if result.ok:
                        far[i, k] = distance(begin, result.state, length)
            common = far[:, np.isfinite(far).all(axis=0)]
            medians = np.median(common, axis=1) if common.size else np.full(len(METHODS), np.nan)
            solved = np.isfinite(far).sum(axis=1)
            rows.append(
                Row(
                    name,
                    size,
                    dict(zip(METHODS, solved.tolist(), strict=True)),
                    dict(zip(METHODS, medians.tolist(), strict=True)),
                )
            )
    return rows
