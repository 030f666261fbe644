"""The operator's hand, measured: the stability limit of a sampled spring against its closed form."""

from __future__ import annotations

import pytest

from papers import hand


@pytest.mark.long
def test_the_measured_stability_limit_is_the_closed_form():
    found = hand.measure_stability(250.0)
    assert found.explicit == pytest.approx(hand.explicit_limit(250.0), rel=0.05)
    assert found.implicit == float("inf")
    assert found.constraint_error < 1e-6 and found.spring_error < 1e-6


def test_the_limit_is_twice_the_damping_divided_by_a_short_cycle():
    assert hand.explicit_limit(1e5) == pytest.approx(2 * hand.DAMPING * 1e5, rel=1e-3)
