"""Drives a real Chromium over its DevTools protocol, with the websockets package alone.

Playwright would add 45 MB and a driver process; of it the tests need a page, its mouse, its keyboard, JavaScript values
and screenshots: the five calls below.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (  # software rendering, no sandbox (root in containers), no traffic of its own
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
# Limits that only a standstill reaches, also on a busy machine.
START_SECONDS = 300.0
CALL_SECONDS = 300.0
WAIT_SECONDS = 300.0


def executable() -> str | None:
    """The browser: CARDAN_CHROMIUM, or the first on PATH."""
    return os.environ.get("CARDAN_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def wait_until(condition: Callable[[], Any], seconds: float = WAIT_SECONDS, what: str = "a condition") -> Any:
    """The first true value of a condition; AssertionError after some seconds."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} was not met within {seconds} s"
        time.sleep(0.01)


class Browser:
    """One process with an empty profile; ``with Browser() as browser: tab = browser.open(address)``."""

    def __init__(self, width: int = 1280, height: int = 800) -> None:
        path = executable()
        assert path, "no Chromium: install it (apt-get install chromium), or set CARDAN_CHROMIUM"
        self._profile = tempfile.mkdtemp(prefix="cardan-chromium-")
        self._process = subprocess.Popen(
            [path, *FLAGS, f"--window-size={width},{height}", f"--user-data-dir={self._profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._size = width, height
        port = Path(self._profile, "DevToolsActivePort")
        wait_until(
            lambda: port.is_file() and len(port.read_text().split()) == 2, START_SECONDS, "the start of Chromium"
        )
        number, place = port.read_text().split()
        self._at = f"ws://127.0.0.1:{number}"
        self._own = Connection(f"{self._at}{place}")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, address: str, *, before: str = "") -> Tab:
        """A new tab; before: JavaScript that runs before the page's own."""
        target = self._own.call("Target.createTarget", url="about:blank")["targetId"]
        return Tab(self, f"{self._at}/devtools/page/{target}", target, address, before, self._size)

    def close(self) -> None:
        with contextlib.suppress(Exception):  # the process ends while it answers
            self._own.call("Browser.close")
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._own.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def close_tab(self, target: str) -> None:
        self._own.call("Target.closeTarget", targetId=target)


class Connection:
    """Calls of the protocol, one at a time; events are collected."""

    def __init__(self, address: str) -> None:
        self._stack = contextlib.ExitStack()
        opened = connect(address, max_size=None, compression=None, ping_interval=None, open_timeout=START_SECONDS)
        self._socket: ClientConnection = self._stack.enter_context(opened)
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=CALL_SECONDS))
            if message.get("id") == number:
                assert "error" not in message, (method, message["error"])
                return dict(message["result"])
            self.events.append(message)

    def close(self) -> None:
        self._stack.close()


class Tab:
    """A page: JavaScript values, mouse, keys, screenshots."""

    def __init__(
        self, browser: Browser, at: str, target: str, address: str, before: str, size: tuple[int, int]
    ) -> None:
        self._browser, self._target, self._to = browser, target, Connection(at)
        for domain in ("Page", "Runtime"):
            self._to.call(f"{domain}.enable")
        self.resize(*size)
        self._to.call("Emulation.setFocusEmulationEnabled", enabled=True)  # a tab behind another one is drawn too
        if before:
            self._to.call("Page.addScriptToEvaluateOnNewDocument", source=before)
        self._to.call("Page.navigate", url=address)

    def resize(self, width: int, height: int) -> None:
        """Give the page another size [pixels]."""
        self._to.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def js(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        said = self._to.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said["exceptionDetails"]
        return said["result"].get("value")

    def until(self, expression: str, seconds: float = WAIT_SECONDS) -> Any:
        """The first true value of an expression."""
        return wait_until(lambda: self.js(expression), seconds, expression)

    def mouse(self, kind: str, x: float, y: float, *, held: bool = False, modifiers: int = 0) -> None:
        """kind: "Moved", "Pressed" or "Released"; modifiers: 2 for Ctrl."""
        self._to.call(
            "Input.dispatchMouseEvent",
            type=f"mouse{kind}",
            x=x,
            y=y,
            button="left" if held or kind != "Moved" else "none",
            buttons=1 if held or kind == "Pressed" else 0,
            clickCount=0 if kind == "Moved" else 1,
            modifiers=modifiers,
        )

    def click(self, selector: str) -> None:
        """Click the middle of the first element of a selector."""
        quoted = json.dumps(selector)
        x, y = self.js(
            f"(() => {{ const e = document.querySelector({quoted}); e.scrollIntoView({{block: 'nearest'}});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("Moved", "Pressed", "Released"):
            self.mouse(kind, x, y)

    def touch(self, kind: str, points: list[tuple[float, float]]) -> None:
        """kind: "Start", "Move" or "End"."""
        self._to.call(
            "Input.dispatchTouchEvent", type=f"touch{kind}", touchPoints=[{"x": x, "y": y} for x, y in points]
        )

    def key(self, key: str, code: str = "", text: str = "", modifiers: int = 0) -> None:
        """Press and release a key."""
        common = {"key": key, "code": code or key, "modifiers": modifiers}
        self._to.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self._to.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def screenshot(self, path: Path | None = None) -> bytes:
        """The page as PNG."""
        data = base64.b64decode(self._to.call("Page.captureScreenshot", format="png")["data"])
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return data

    def reload(self) -> None:
        self._to.call("Page.reload")

    def errors(self) -> list[str]:
        """Uncaught exceptions of the page, and what it wrote to console.error."""
        self.js("0")  # collects events
        found = []
        for event in self._to.events:
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(event["params"]["exceptionDetails"])[:2000])
            elif event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] == "error":
                found.append(json.dumps(event["params"]["args"])[:2000])
        return found

    def close(self) -> None:
        """Close the tab, as the user would."""
        self._browser.close_tab(self._target)
        self._to.close()
