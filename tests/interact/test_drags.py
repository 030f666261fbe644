"""Random drags over the gallery: no joint opens, restore is exact, and no branch changes unreported."""

from __future__ import annotations

import pytest
from fuzz import drags

REGULAR = ("four_bar", "slider_crank", "five_bar", "spatial")  # loops without singular poses


def check(count: int, seed: int, kinds: tuple[str, ...]) -> None:
    found = drags.run(count, seed, kinds=kinds)
    assert found["drags"] > 0.5 * count
    assert found["open"] == 0
    assert found["inexact"] == 0
    assert found["unreported"] == 0
    assert found["false reports"] <= 1e-3 * found["judged drags"]
    assert found["judged drags"] > 0.4 * count
    assert (found["passages"] > 0) == (kinds != REGULAR)


def test_some_random_drags():
    check(200, 1, REGULAR)


@pytest.mark.long
def test_many_random_drags():
    check(10000, 0, tuple(drags.LOOPS))
