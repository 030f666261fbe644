"""Laws of the scalar functions, on both sides of their branches."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from cardan.kernel.jit import jit
from cardan.math import _kernels


@jit
def half_sine_ratio(a):
    return _kernels.half_sine_ratio(a)


@pytest.mark.nojit
def test_half_sine_ratio_is_accurate_on_both_sides_of_its_series():
    edge = _kernels.TWO_TERMS_BELOW
    for a in (1e-300, 1e-9, 0.5 * edge, edge, np.nextafter(edge, 1.0), 2 * edge, 0.1, 1.0, np.pi, 6.0):
        with mpmath.workdps(40):
            expected = float(mpmath.sin(mpmath.mpf(a) / 2) / mpmath.mpf(a))
        assert half_sine_ratio(a) == pytest.approx(expected, rel=5e-16, abs=1e-17)
    assert half_sine_ratio(0.0) == 0.5
    assert np.isnan(half_sine_ratio(np.nan))
