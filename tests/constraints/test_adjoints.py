"""Reverse kernels of primitives: gradients of ψ₁ and ψ₂ against differences of f, ∂f/∂x and the curvature kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import cardan as cd
from cardan.constraints import adjoints, codegen, tape
from cardan.constraints.registry import REGISTRY, Primitive
from primitive_calls import curvature, value

NOT_SMOOTH = {"turn_limit", "displacement_limit", "distance_limit", "inclination_limit"}  # inequalities


@cd.primitive(i="point", j="point", u="vector", v="vector")
def mixed(i, j, u, v, *, gain=0.7):
    d = j - i
    return [
        gain * cd.sin(cd.norm(d)) - 0.4 * cd.dot(u, v) ** 3,
        cd.atan2(cd.dot(u, d), 2.0 + cd.dot(v, d)) * cd.exp(d.x),
    ]


CASES = [*[p for p in REGISTRY.values() if p.name not in NOT_SMOOTH], mixed]


def gradient(f: Callable[[np.ndarray], float], x: np.ndarray) -> np.ndarray:
    """Differences of sixth order."""
    found, h = np.zeros(x.size), 2e-3
    for k in range(x.size):
        for step, weight in ((1, 0.75), (2, -0.15), (3, 1.0 / 60.0)):
            for sign in (1.0, -1.0):
                moved = x.copy()
                moved[k] += sign * step * h
                found[k] += sign * weight * f(moved) / h
    return found


@pytest.mark.parametrize("primitive", CASES, ids=lambda p: p.name)
def test_gradients_of_both_scalars(primitive: Primitive) -> None:
    rng = np.random.default_rng(3)
    n, rows = primitive.components, primitive.rows
    count = len(primitive.parameters) + len(primitive.constants)
    c = np.array([*rng.uniform(0.4, 0.8, len(primitive.parameters)), *primitive.constants, 0.0])
    x = rng.normal(size=n)
    for at, kind in enumerate(primitive.features):
        if kind.name == "ORIENTATION":
            first = sum(f.components for f in primitive.features[:at])
            x[first : first + 4] /= np.linalg.norm(x[first : first + 4])
    text = codegen.user_module(adjoints.trace(primitive))  # those of inline primitives have no addresses of their own
    forward, forward_curvature = (tape.address(text, name) for name in ("primitive", "primitive_curvature"))

    def at(y: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f, df = np.zeros(rows), np.zeros(rows * n)
        value(forward, y, d, f, df)
        return f, df.reshape(rows, n)

    def bend(y: np.ndarray, v: np.ndarray, d: np.ndarray) -> np.ndarray:
        g = np.zeros(rows)
        curvature(forward_curvature, y, v, d, g)
        return g

    linear, curved = adjoints.addresses(primitive)
    w, Y = rng.normal(size=rows), rng.normal(size=(rows, n))
    v, b = rng.normal(size=n), rng.normal(size=n)
    free = [k for k in range(n) if not is_angle(primitive, k)]
    fixed = [k for k in range(n) if k not in free]
    Y[:, fixed], v[fixed], b[fixed] = 0.0, 0.0, 0.0

    def psi_1(z: np.ndarray) -> float:
        f, df = at(z[:n], z[n:])
        return float(w @ f + np.sum(Y * df))

    def psi_2(z: np.ndarray) -> float:
        y, v, b, d = z[:n], z[n : 2 * n], z[2 * n : 3 * n], z[3 * n :]
        return float(w @ (bend(y, v, d) + at(y, d)[1] @ b))

    g = np.full(n + count, np.nan)
    curvature(linear, x, np.concatenate([w, Y.ravel()]), c, g)
    expected = gradient(psi_1, np.concatenate([x, c]))[: n + count]
    keep = [*free, *range(n, n + count)]
    assert g[keep] == pytest.approx(expected[keep], rel=1e-8, abs=1e-8)
    g = np.full(3 * n + count, np.nan)
    curvature(curved, x, np.concatenate([v, b, w]), c, g)
    expected = gradient(psi_2, np.concatenate([x, v, b, c]))[: 3 * n + count]
    keep = [*free, *[n + k for k in free], *[2 * n + k for k in free], *range(3 * n, 3 * n + count)]
    assert g[keep] == pytest.approx(expected[keep], rel=1e-8, abs=1e-8)


def is_angle(primitive: Primitive, k: int) -> bool:
    """Whether component k is a counted angle, which only chooses the branch."""
    kinds = [kind for kind in primitive.features for _ in range(kind.components)]
    return kinds[k].name == "ANGLE"


def test_inequalities_have_no_reverse_kernels() -> None:
    for name in NOT_SMOOTH:
        assert adjoints.addresses(REGISTRY[name]) == (0, 0)
