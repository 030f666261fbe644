"""Random drags over the gallery: no joint opens, restore is exact, and no branch changes unreported."""

from __future__ import annotations

import pytest

from fuzz import drags


def check(count: int, seed: int) -> None:
    found = drags.run(count, seed)
    assert found["drags"] > 0.5 * count
    assert found["open"] == 0
    assert found["inexact"] == 0
    assert found["unreported"] == 0
    assert found["false reports"] <= 1e-3 * found["judged drags"]
    assert found["judged drags"] > 0.4 * count
    assert found["passages"] > 0


@pytest.mark.slow
def test_some_random_drags():
    check(300, 1)


@pytest.mark.long
def test_many_random_drags():
    check(10400, 0)
