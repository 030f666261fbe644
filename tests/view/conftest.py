"""One browser for the tests of a file.  Without a browser they are skipped; with CI set they fail."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from chromium import Browser, executable


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if executable() is None and not os.environ.get("CI"):
        pytest.skip("no Chromium: install it (apt-get install chromium), or set CARDAN_CHROMIUM")
    with Browser() as found:
        yield found
