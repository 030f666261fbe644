"""Laws over many cases: a sample of the cases is in `make test`, all of them in `make long`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def sampled(names: str | Sequence[str], cases: Iterable[Any], keep: int = 3, **options: Any) -> pytest.MarkDecorator:
    """As ``pytest.mark.parametrize``; ``keep`` cases, spread evenly, stay in `make test`, and the others are `long`."""
    given = list(cases)
    is_one = isinstance(names, str) and "," not in names
    kept = {k * (len(given) - 1) // max(keep - 1, 1) for k in range(keep)} if len(given) > keep else range(len(given))
    made = [
        case
        if k in kept
        else pytest.param(*([case] if is_one else case), marks=pytest.mark.long)
        for k, case in enumerate(given)
    ]  # fmt: skip
    return pytest.mark.parametrize(names, made, **options)
