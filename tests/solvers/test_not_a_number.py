"""NaN is preserved: an undefined derivative ends the search and is not treated as zero."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations
from cardan.kernel.jit import jit
from cardan.solvers import _blocks, methods
from layers import sampled


def offset(x, c, out):
    out[0] = x[3] - x[0] - c[0]


def offset_derivative(x, c, out):
    for i in range(6):
        out[i] = 0.0
    out[0] = -1.0
    out[3] = 1.0
    if x[3] > 5.0:
        out[4] = np.nan


broken_far_away = cd.primitive(p="point", q="point", rows=1, parameters=["k"], derivative=offset_derivative)(offset)


def arm():
    """An arm on a hinge with its end at x = 10; a constraint requires x = 3."""
    m = cd.Mechanism()
    body = m.body("arm")
    m.revolute("hinge", m.ground.frame(), body.frame())
    m.constrain("reach", broken_far_away, p=m.ground.point(), q=body.point((10, 0, 0)), k=3.0)
    return m


@pytest.mark.slow
@pytest.mark.nojit
@pytest.mark.parametrize("method", methods.REGISTRY)
@sampled("formulation", formulations.CHOICES)
def test_a_nan_in_the_jacobian_ends_the_search(method, formulation):
    result = arm().assemble(method=method, formulation=formulation, max_iterations=50)
    assert not result.ok
    if method == "levenberg_marquardt":  # its damping grows until the step is negligible
        assert result.status is cd.Status.STALLED
    else:
        assert result.status is cd.Status.DIVERGED and result.iterations <= 1


@jit
def larger(a, b):
    return _blocks.larger(a, b)


@pytest.mark.nojit
def test_larger_is_nan_if_either_number_is_nan():
    assert larger(1.0, 2.0) == larger(2.0, 1.0) == 2.0
    assert larger(1.0, np.inf) == np.inf
    assert all(np.isnan(larger(a, b)) for a, b in ((1.0, np.nan), (np.nan, 1.0), (np.nan, np.nan), (np.inf, np.nan)))
