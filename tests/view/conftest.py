"""One browser and one server for the tests of a file.  Without a browser they are skipped; with CI set they fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from cardan.view.bench import Bench
from cardan.view.server import Server
from chromium import Browser, Tab, executable, wait_until

READY = "window.cardan && cardan.model && cardan.frame && cardan.freedoms ? 1 : 0"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if executable() is None and not os.environ.get("CI"):
        pytest.skip("no Chromium: install it (apt-get install chromium), or set CARDAN_CHROMIUM")
    with Browser() as found:
        yield found


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(port=0) as found:
        yield found


Opener = Callable[..., tuple[Tab, Bench]]


@pytest.fixture
def opened(browser: Browser, server: Server) -> Iterator[Opener]:
    """Opens a mechanism of the gallery in a new tab: the tab, and what the server keeps for it."""
    tabs: list[Tab] = []

    def open_item(item: str, **options: str) -> tuple[Tab, Bench]:
        before = set(server._tabs)
        more = "".join(f"&{key}={value}" for key, value in options.items())
        tab = browser.open(f"{server.address.partition('&')[0]}&item={item}{more}")
        tabs.append(tab)
        tab.until(READY)
        (bench,) = wait_until(lambda: set(server._tabs) - before, what="a tab of the server")
        return tab, bench

    yield open_item
    for tab in tabs:
        tab.close()
    wait_until(lambda: not server._tabs, what="the end of every tab")
