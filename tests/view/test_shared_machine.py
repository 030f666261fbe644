"""The workbench on a machine with other users: codes, tokens, the command of the browser, scripts of the page."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from cardan.kernel import cache
from cardan.view import page, secret, server
from cardan.view.server import Server
from chromium import Browser, wait_until

OTHER = 54321  # a user that no process of the tests has


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setattr(cache, "CACHE_DIRECTORY", tmp_path)
    return tmp_path / secret.FOLDER


def code_of(address: str) -> str:
    return parse_qs(urlsplit(address).query)["code"][0]


@contextlib.contextmanager
def talking(running: Server, **query: str) -> Iterator[dict[str, Any]]:
    """A connection by a code or a token: the first message."""
    words = "&".join(f"{key}={value}" for key, value in query.items())
    at = f"127.0.0.1:{running.port}"
    with connect(f"ws://{at}/ws?item=rsur&{words}", origin=f"http://{at}", max_size=None, close_timeout=60) as one:
        yield json.loads(one.recv(timeout=60))


def is_refused(running: Server, **query: str) -> bool:
    try:
        with talking(running, **query):
            return False
    except InvalidStatus as error:
        return error.response.status_code == 403


def test_a_code_is_valid_once_and_gives_the_token(folder: Path) -> None:
    with Server(port=0) as running:
        first, second = code_of(running.address), code_of(running.address)
        assert first != second and running._token not in (first, second)
        with talking(running, code=first) as said:
            assert said == {"is": "token", "token": running._token}
        assert is_refused(running, code=first) and is_refused(running, code="") and is_refused(running, token=first)
        with talking(running, token=running._token) as said:
            assert said["is"] != "token"
        assert not is_refused(running, code=second)
        many = [code_of(running.address) for _ in range(server.MOST_CODES + 1)]
        assert is_refused(running, code=many[0]) and not is_refused(running, code=many[-1])


def test_each_start_has_a_token_and_the_old_one_reconnects_for_some_minutes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(port=0) as running:
        old, port = running._token, running.port
    with Server(port=port) as running:
        assert running._token != old
        with talking(running, token=old) as said:
            assert said == {"is": "token", "token": running._token}
        monkeypatch.setattr(running, "_old_until", time.monotonic())
        assert is_refused(running, token=old) and not is_refused(running, token=running._token)
    with Server(port=port) as running:
        assert is_refused(running, token=old)  # of the server before the last one
    with Server(port=0) as other:  # on another port, to which no page reconnects
        assert is_refused(other, token=running._token)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_token_that_another_user_could_write_is_not_accepted(folder: Path) -> None:
    planted = "p" * 32
    path = folder / "1.token"
    secret.write(1, planted)
    assert secret.read(1) == planted
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(folder.stat().st_mode) == 0o700
    path.chmod(0o644)
    assert secret.read(1) == ""
    path.unlink()
    elsewhere = folder.parent / "elsewhere"
    elsewhere.write_text(planted)
    elsewhere.chmod(0o600)
    path.symlink_to(elsewhere)
    assert secret.read(1) == ""
    path.unlink()
    os.mkfifo(path, 0o600)
    assert secret.read(1) == ""  # and does not wait
    path.unlink()
    for content in ("short", planted + "\n", "ü" * 16, ""):
        path.write_text(content)
        path.chmod(0o600)
        assert secret.read(1) == ""
    if os.geteuid() == 0:
        path.write_text(planted)
        os.chown(path, OTHER, OTHER)
        assert secret.read(1) == ""
    folder.chmod(0o777)
    assert secret.read(1) == "" and secret.redirect(1, "http://x") is None
    secret.write(1, planted)  # nothing is written there
    assert path.read_text() != planted or os.geteuid() == 0


def test_the_command_of_a_browser_has_no_code(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """All users see it; it has the path of a file that only this user can read, until the code in it is used."""
    opened: list[str] = []
    monkeypatch.setattr(server.webbrowser, "open", lambda address: opened.append(address) or True)
    running = server.run(Server(port=0), browser=True, wait=False)
    try:
        assert len(opened) == 1 and opened[0].startswith("file://") and "code" not in opened[0]
        path = folder / f"{running.port}.html"
        assert opened[0] == path.as_uri() and stat.S_IMODE(path.stat().st_mode) == 0o600
        code = re.findall(r"code=([\w-]+)", path.read_text())[0]
        printed = code_of(capsys.readouterr().out.split()[1])
        assert code != printed
        assert not is_refused(running, code=code)
        assert not path.exists()
        assert not is_refused(running, code=printed)
        again = capsys.readouterr().out
        assert again.startswith("another tab: ") and not is_refused(running, code=code_of(again.split()[2]))
    finally:
        running.close()


def get(running: Server, path: str, host: str = "") -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", running.port)
    connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{running.port}"})
    return connection.getresponse()


def test_an_address_that_cannot_be_read_is_a_bad_request(folder: Path) -> None:
    with Server(port=0) as running:
        for path in ("//[/", "//[", "//]/"):
            with socket.create_connection(("127.0.0.1", running.port)) as raw:
                raw.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n\r\n".encode())
                assert raw.recv(100).split()[1] == b"400", path
        assert get(running, "/").status == 200


def test_the_page_may_execute_its_own_scripts_only(folder: Path) -> None:
    with Server(port=0) as running:
        for host in (f"127.0.0.1:{running.port}", f"localhost:{running.port}"):
            policy = get(running, "/", host).getheader("Content-Security-Policy")
            assert "unsafe" not in policy and "*" not in policy
            assert f"connect-src http://{host} ws://{host};" in policy
            assert page.hashes()["scripts"] in policy and page.hashes()["scripts"].startswith("'sha256-")


def test_in_a_browser_nothing_is_blocked_but_what_is_injected(browser: Browser) -> None:
    """The code leaves the address bar, a reload connects again, and a script that was not built is not executed."""
    watch = "window.blocked = []; addEventListener('securitypolicyviolation', e => blocked.push(e.violatedDirective));"
    with Server(port=0) as running:
        address = running.address
        tab = browser.open(address, before=watch)
        ready = "window.cardan && cardan.model && cardan.frame && cardan.freedoms ? 1 : 0"
        tab.until(ready)
        assert (
            tab.js("location.href")
            == f"http://127.0.0.1:{running.port}/?item={urlsplit(address).query.partition('item=')[2]}"
        )
        assert tab.js("blocked.length") == 0
        assert tab.js("sessionStorage.getItem('cardan-token')") == running._token
        assert tab.js("sessionStorage.getItem('cardan-code')") is None
        tab.js("window.before = 1; location.reload()")
        wait_until(lambda: tab.js("window.before ? 0 : 1"), what="the reload")
        tab.until(ready)
        inject = (
            "const s = document.createElement('script'); s.textContent = 'window.owned = 1'; document.body.append(s); "
        )
        tab.js(inject + "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.owned = 1\">')")
        tab.until("blocked.length >= 2 ? 1 : 0")
        assert tab.js("window.owned ? 1 : 0") == 0
        tab.js("fetch('http://127.0.0.1:1/').catch(() => window.failed = 1)")
        tab.until("window.failed && blocked.includes('connect-src') ? 1 : 0")
        tab.close()


def test_a_browser_follows_the_redirect_file(browser: Browser, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(server.webbrowser, "open", lambda address: opened.append(address) or True)
    with Server(port=0) as running:
        assert running.open_browser()
        tab = browser.open(opened[0])
        tab.until("window.cardan && cardan.model && cardan.frame ? 1 : 0")
        assert tab.js("location.host") == f"127.0.0.1:{running.port}"
        tab.close()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs two users")
def test_another_user_reads_and_plants_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may connect to the port; without a code or token it gets the page alone."""
    if not Path("/usr/bin/python3").exists() or shutil.which("setpriv") is None:
        pytest.skip("needs setpriv, and a Python that all users can start")
    base = Path(tempfile.mkdtemp())
    base.chmod(0o755)
    monkeypatch.setattr(cache, "CACHE_DIRECTORY", base)
    try:
        with Server(port=0) as running:
            running._redirect = secret.redirect(running.port, running.address)
            kept = base / secret.FOLDER
            spy = (
                "import os, glob, http.client\nfound = []\n"
                f"for path in ({str(kept)!r}, *[{str(kept)!r} + '/{running.port}.' + s for s in ('token', 'html')]):\n"
                "    for act in (lambda: os.listdir(path), lambda: open(path).read(), lambda: open(path, 'w'),\n"
                "                lambda: os.unlink(path), lambda: os.symlink('/etc/passwd', path + 'x')):\n"
                "        try: act(); found.append(path)\n"
                "        except OSError: pass\n"
                "for command in glob.glob('/proc/[0-9]*/cmdline'):\n"
                "    try: found += [command] if b'?co' + b'de=' in open(command, 'rb').read() else []\n"
                "    except OSError: pass\n"
                f"at = '127.0.0.1:{running.port}'\nc = http.client.HTTPConnection(at)\n"
                "c.request('GET', '/ws?token=x', headers={'Host': at, 'Origin': 'http://' + at,\n"
                "  'Upgrade': 'websocket', 'Connection': 'Upgrade',\n"
                "  'Sec-WebSocket-Key': 'a' * 22 + '==', 'Sec-WebSocket-Version': '13'})\n"
                "print(c.getresponse().status, found)\n"
            )
            command = [
                "setpriv",
                f"--reuid={OTHER}",
                f"--regid={OTHER}",
                "--clear-groups",
                "/usr/bin/python3",
                "-c",
                spy,
            ]
            assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "403 []\n"
    finally:
        shutil.rmtree(base)
