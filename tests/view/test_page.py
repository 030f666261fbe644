"""The built page in a real Chromium."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cardan
from chromium import Browser

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def page() -> Path:
    found = Path(cardan.__file__).parent / "view" / "page.html"
    assert found.is_file(), "the page is not built: python client/build.py"
    return found


def test_the_page_opens_and_needs_no_other_file(page: Path, browser: Browser) -> None:
    tab = browser.open(page.as_uri())
    tab.until("document.querySelector('.message')?.innerText.includes('cardan view')")  # no token
    assert not tab.errors()
    loaded = tab.js("performance.getEntriesByType('resource').map(e => e.name)")
    assert not [name for name in loaded if not name.startswith(("data:", "blob:"))], loaded


def test_the_lock_file_has_no_download_addresses() -> None:
    lock = json.loads((ROOT / "client" / "package-lock.json").read_text(encoding="utf-8"))
    assert len(lock["packages"]) > 10
    assert not [name for name, package in lock["packages"].items() if "resolved" in package]
    assert all("version" in package for name, package in lock["packages"].items() if name)
