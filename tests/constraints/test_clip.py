"""cd.clip gives the same for a number, for a jet of time, and in a coupling; its slope is zero outside its bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cardan as cd

Z, X = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)


@pytest.mark.parametrize(("a", "value", "slope"), [(-0.5, 0.0, 0.0), (0.0, 0.0, 1.0), (0.3, 0.3, 1.0), (1.7, 1.0, 0.0)])
def test_a_jet_is_clipped_with_its_derivatives(a: float, value: float, slope: float) -> None:
    jet = cd.clip(cd.Jet(a, 2.0, 3.0), 0.0, 1.0)
    assert (jet.value, jet.rate, jet.acceleration) == (value, 2.0 * slope, 3.0 * slope)
    assert cd.clip(a, 0.0, 1.0) == value


def dwelling(angle):
    """Constant up to 1 rad, a smooth step of 1 rad, constant again from 2 rad on."""
    u = cd.clip(angle - 1.0, 0.0, 1.0)
    return u - cd.sin(2 * cd.pi * u) / (2 * cd.pi)


@pytest.mark.slow
def test_a_coupling_with_dwells_is_satisfied_with_its_rates() -> None:
    m = cd.Mechanism("dwell")
    first, second = m.body("first"), m.body("second", position=(1, 0, 0))
    a = m.revolute("a", m.ground.frame(z=Z, x=X), first.frame(z=Z, x=X))
    b = m.revolute("b", m.ground.frame((1, 0, 0), z=Z, x=X), second.frame(z=Z, x=X))
    m.couple("index", a, b, dwelling)
    m.drive("motor", a, lambda t: t)
    moved = m.move(np.linspace(0.0, 3.0, 31).tolist())
    assert moved.ok, moved.text()
    rates = moved.velocities("second"), moved.accelerations("second")
    for state, v, acceleration in zip(moved.states, *rates, strict=True):
        u = min(max(state.time - 1.0, 0.0), 1.0)
        assert b.coordinate(state) == pytest.approx(u - math.sin(2 * math.pi * u) / (2 * math.pi), abs=1e-12)
        assert v[5] == pytest.approx(1.0 - math.cos(2 * math.pi * u), abs=1e-12)
        assert acceleration[5] == pytest.approx(2 * math.pi * math.sin(2 * math.pi * u), abs=1e-11)


@pytest.mark.parametrize("bounds", [(1.0, 0.0), (float("nan"), 1.0), (0.0, float("inf")), ("0", 1.0), (False, 1.0)])
def test_invalid_bounds_are_rejected(bounds) -> None:
    with pytest.raises(TypeError, match=r"bounds of cd.clip"):
        cd.clip(0.5, *bounds)


def test_a_vector_is_not_clipped() -> None:
    with pytest.raises(cd.ModelError, match=r"cd.clip takes a number"):
        cd.primitive(i="point", j="point")(lambda i, j: cd.clip(j - i, 0.0, 1.0))
