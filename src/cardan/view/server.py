"""The server of the workbench: one port on this machine, the page over HTTP, a WebSocket for each tab.

Requests must name this machine as host (no DNS rebinding); a WebSocket must come from this server's own page (Origin)
and carry a code or the token.  The code is in the address that `cardan view` prints, and is valid once: for it the page
gets the token, and then removes it from its address.  Each server has a token of its own; that of the server before, on
the same port, is valid for some minutes, so that a page reconnects after a restart (:mod:`cardan.view.secret`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import http
import logging
import os
import secrets
import socket
import threading
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

from cardan.cad.draft import Draft
from cardan.cad.parts import Assembly
from cardan.errors import CardanError, ModelError
from cardan.examples import installed
from cardan.mechanism import Mechanism
from cardan.view import page, secret
from cardan.view.bench import PREPARING, THREAD, Bench, Source
from cardan.view.hand import prepare
from cardan.view.mailbox import Outbox
from cardan.view.protocol import MOST_BYTES, Command, Refused, read, write

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

log = logging.getLogger("cardan")

HOST: Final = "127.0.0.1"
PORT: Final = 8737
PORTS_TRIED: Final = 20  # from PORT on, where none is given
MOST_TABS: Final = 32
MOST_REFUSALS: Final = 1000  # messages of one tab that are refused before it is closed
JOIN_SECONDS: Final = 5.0
WATCH_SECONDS: Final = 0.2  # between two looks at the files of the user's own mechanism
OWN: Final = "own"
WORKERS: Final = (THREAD, PREPARING)  # names of the threads that solve and compile

MOST_CODES: Final = 1000  # that were given and not used; older ones are forgotten
RECONNECT_SECONDS: Final = 300.0  # after the start, in which the token of the server before is valid
POLICY: Final = (
    "default-src 'none'; script-src {scripts}; style-src {styles}; img-src data: blob:; font-src data:; "
    "connect-src http://{host} ws://{host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Own(NamedTuple):
    """A mechanism of the user's own, read from files: it is built again when one of them changes."""

    mechanism: Mechanism | Draft
    build: Source
    files: tuple[Path, ...]

    def stamps(self) -> tuple[tuple[int, int] | None, ...]:
        """Time and size of each file; None where it cannot be read now, for example while it is replaced."""
        found: list[tuple[int, int] | None] = []
        for path in self.files:
            try:
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size))
            except OSError:
                found.append(None)
        return tuple(found)


class Server:
    """Serves the gallery, and a mechanism of the user's own, until it is closed.

    >>> with Server() as server:                   # doctest: +SKIP
    ...     print(server.address)
    """

    def __init__(
        self,
        mechanism: Mechanism | Assembly | Draft | Own | None = None,
        *,
        first: str | None = None,
        port: int | None = None,
    ) -> None:
        page.text()  # raises where it is missing
        self._items: dict[str, tuple[str, Source, float]] = {}
        self._own = mechanism if isinstance(mechanism, Own) else None
        if mechanism is not None:
            self._take(mechanism.mechanism if isinstance(mechanism, Own) else mechanism)
        for name, example in installed().items():
            self._items[name] = (example.title, example.build, example.duration)
        self._first = first or next(iter(self._items))
        self._socket = bind(port)
        self.port = int(self._socket.getsockname()[1])
        self._token, self._old_token = secrets.token_urlsafe(24), secret.read(self.port)
        self._old_until = time.monotonic() + RECONNECT_SECONDS
        secret.write(self.port, self._token)
        self._codes: dict[str, None] = {}  # that are valid once
        self._printed = ""  # the code in the address that was printed last
        self._redirect: Path | None = None
        self._tabs: set[Bench] = set()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._is_ready = threading.Event()
        self._failure: BaseException | None = None
        self._lock = threading.Lock()
        self._is_prepared = False
        self._thread = threading.Thread(target=self._run, name="cardan workbench server", daemon=True)

    def _take(self, mechanism: Mechanism | Assembly | Draft) -> None:
        """Show a mechanism, or parts whose joints are to be chosen, as the user's own."""
        self._items |= items_of(mechanism)

    @property
    def address(self) -> str:
        """Where a browser opens it, once: each address has a code of its own."""
        code = secrets.token_urlsafe(24)
        self._codes[code] = None
        while len(self._codes) > MOST_CODES:
            del self._codes[next(iter(self._codes))]
        return f"http://{HOST}:{self.port}/?code={code}&item={quote(self._first)}"

    def announce(self, what: str = "workbench") -> None:
        """Print an address; another one is printed when a page has used it."""
        address = self.address
        self._printed = parse_qs(urlsplit(address).query)["code"][0]
        print(f"{what}: {address}", flush=True)

    def open_browser(self) -> bool:
        """Open the page; whether a browser could be started.  Its command, which all users see, has no code."""
        self._redirect = secret.redirect(self.port, self.address)
        return self._redirect is not None and open_browser(self._redirect.as_uri())

    def start(self) -> Server:
        """Serve in a thread of its own; returns when it listens."""
        self._thread.start()
        self._is_ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def _prepare_once(self) -> None:
        """Load the kernels of a drag, when the first tab shows its mechanism: compiling them would delay that."""
        with self._lock:
            if not self._is_prepared:
                self._is_prepared = True
                threading.Thread(target=_prepare, name=PREPARING, daemon=True).start()

    def close(self) -> None:
        """Close every tab and the port."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        self._forget_redirect()

    def _forget_redirect(self) -> None:
        if self._redirect is not None:
            self._redirect.unlink(missing_ok=True)
            self._redirect = None

    def is_working(self) -> bool:
        """Whether a thread still compiles kernels, or solves for a tab that was closed."""
        return any(thread.is_alive() for thread in threading.enumerate() if thread.name in WORKERS)

    def wait(self) -> None:
        """Serve until the process is interrupted."""
        while self._thread.is_alive():
            self._thread.join(0.2)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- in the server's thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.set_event_loop(self._loop)
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # start() raises it again
            self._failure = error
        finally:
            self._is_ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        from websockets.asyncio.server import serve

        options: dict[str, Any] = {
            "process_request": self._answer,
            "compression": None,  # poses do not compress, and it costs milliseconds
            "max_size": MOST_BYTES,
            "max_queue": 16,
            "ping_interval": 20,
            "ping_timeout": 60,
            "server_header": None,
            "logger": logging.getLogger("cardan.view"),
        }
        logging.getLogger("cardan.view").setLevel(logging.CRITICAL)  # failed handshakes are not reported
        async with serve(self._tab, sock=self._socket, **options):
            self._is_ready.set()
            watcher = asyncio.create_task(self._watch()) if self._own is not None else None
            await self._stop.wait()
            if watcher is not None:
                watcher.cancel()
        await asyncio.gather(*(_ended(tab) for tab in list(self._tabs)))

    async def _watch(self) -> None:
        """Follow the files of the user's own mechanism."""
        assert self._own is not None
        seen = self._own.stamps()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            now = self._own.stamps()
            if now == seen or None in now:
                continue
            await asyncio.sleep(WATCH_SECONDS)
            if now != self._own.stamps():
                continue  # it is being written
            seen = now
            try:
                self._take(await asyncio.to_thread(self._own.build))
            except (CardanError, OSError) as error:
                for tab in self._tabs:
                    tab.tell("The changed file cannot be read; the last version is shown", str(error))
            else:
                for tab in self._tabs:
                    if tab.item == OWN:
                        tab.put(Command("reload", 0, {"item": OWN}))

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """The page, or None to go on with the handshake of a WebSocket."""
        try:
            at = urlsplit(request.path)
        except ValueError:  # "//[/"
            return connection.respond(http.HTTPStatus.BAD_REQUEST, "the address is not valid\n")
        own = {f"{host}:{self.port}" for host in (HOST, "localhost")}
        if request.headers.get("Host", "") not in own:
            return connection.respond(http.HTTPStatus.FORBIDDEN, "this server answers to this machine only\n")
        if at.path == "/ws":
            if request.headers.get("Origin", "") not in {f"http://{host}" for host in own}:
                return connection.respond(http.HTTPStatus.FORBIDDEN, "the page is of another origin\n")
            if len(self._tabs) >= MOST_TABS:
                return connection.respond(http.HTTPStatus.SERVICE_UNAVAILABLE, "too many tabs are open\n")
            if not self._is_known(parse_qs(at.query)):
                return connection.respond(http.HTTPStatus.FORBIDDEN, "the code or token is missing, wrong, or used\n")
            return None
        if at.path != "/":
            return connection.respond(http.HTTPStatus.NOT_FOUND, "not found\n")
        response = connection.respond(http.HTTPStatus.OK, page.text())
        del response.headers["Content-Type"]
        response.headers["Content-Type"] = "text/html; charset=utf-8"
        host = request.headers["Host"]
        response.headers["Content-Security-Policy"] = POLICY.format(**page.hashes(), host=host)
        response.headers["Cache-Control"] = "no-store"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    def _is_known(self, query: dict[str, list[str]]) -> bool:
        """Whether a request has the token, that of the server before, or a code, which is then used."""
        given = query.get("token", [""])[0].encode()
        known = hmac.compare_digest(given, self._token.encode())
        if self._old_token and time.monotonic() < self._old_until:
            known |= hmac.compare_digest(given, self._old_token.encode())
        code = query.get("code", [""])[0]
        if known or code not in self._codes:
            return known
        del self._codes[code]
        self._forget_redirect()
        if code == self._printed:
            self.announce("another tab")
        return True

    async def _tab(self, connection: ServerConnection) -> None:
        from websockets.exceptions import ConnectionClosed

        assert connection.request is not None
        query = parse_qs(urlsplit(connection.request.path).query)
        wanted = query.get("item", [""])[0]
        outbox = Outbox(self._loop)
        if query.get("token", [""])[0] != self._token:
            outbox.post(write("token", token=self._token))
        bench = Bench(self._items, wanted if wanted in self._items else self._first, outbox, self._prepare_once)
        self._tabs.add(bench)
        bench.start()
        sender = asyncio.create_task(_send(connection, outbox))
        refusals = 0
        try:
            async for message in connection:
                try:
                    bench.put(read(message))
                except Refused as error:
                    refusals += 1
                    if refusals > MOST_REFUSALS:
                        await connection.close(1008, "too many messages were refused")
                        break
                    outbox.post(write("refused", text=str(error)))
        except ConnectionClosed:
            pass  # a tab may be closed at any time
        finally:
            bench.close()
            sender.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sender
            await _ended(bench)
            self._tabs.discard(bench)


def items_of(mechanism: Mechanism | Assembly | Draft) -> dict[str, tuple[str, Source, float]]:
    """What a bench may load: a copy of a mechanism of the user's own, or a draft of the joints of CAD parts."""
    if isinstance(mechanism, Assembly):
        mechanism = Draft(mechanism)
    if isinstance(mechanism, Draft):
        return {OWN: (mechanism.assembly.path.stem, mechanism.copy, 0.0)}
    return {OWN: (mechanism.name, mechanism.copy().copy, 0.0)}


def _prepare() -> None:
    """Load the kernels in a thread of their own.  A failure is reported at the first drag."""
    try:
        prepare()
    except Exception:  # compilation can raise any exception
        log.debug("the kernels of a drag could not be prepared", exc_info=True)


async def _ended(bench: Bench) -> None:
    """Wait for the thread of a closed tab; without a thread of our own, which the executor would keep."""
    deadline = time.monotonic() + JOIN_SECONDS
    while not bench.join(0.0) and time.monotonic() < deadline:
        await asyncio.sleep(0.01)


async def _send(connection: ServerConnection, outbox: Outbox) -> None:
    from websockets.exceptions import ConnectionClosed

    with contextlib.suppress(ConnectionClosed):
        while True:
            for message in await outbox.take():
                await connection.send(message)


def bind(port: int | None) -> socket.socket:
    """A listening socket on this machine: on that port, or on the first free one from PORT on."""
    if port is not None and not 0 <= port < 1 << 16:
        raise ModelError(f"the port is {port}; it must be between 0 (any free one) and 65535")
    tried = range(PORT, PORT + PORTS_TRIED) if port is None else (port,)
    for number in tried:
        # Only with its protocol named does asyncio send at once (TCP_NODELAY); else frames wait 40 ms for an ACK.
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if os.name != "nt":  # there it would share a port in use
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((HOST, number))
            found.listen()
            return found
        except OSError as error:
            found.close()
            reason = error.strerror or str(error)
    if port is None:
        raise ModelError(f"no port from {PORT} to {PORT + PORTS_TRIED - 1} is free; give another with --port")
    raise ModelError(f"port {port} cannot be used: {reason}; give another with --port, or 0 for any free one")


def view(
    mechanism: Mechanism | Assembly | Draft | None = None,
    *,
    port: int | None = None,
    browser: bool = True,
    wait: bool = True,
) -> Server:
    """Open a mechanism in the browser, to look at it, drag its parts, play its drivers and simulate it.

    mechanism: None for the gallery; an assembly of CAD parts, or a draft of its joints, shows proposed joints to accept
    or refuse.  port: None for 8737 or the next free one.  browser: whether to open one; the
    address is printed in any case.  wait: serve until interrupted by the keyboard; otherwise the server runs in a
    thread until ``server.close()``.  The mechanism is copied: what the workbench does leaves yours as it is.
    """
    if mechanism is not None and not isinstance(mechanism, Mechanism | Assembly | Draft):
        raise ModelError(f"view was given {mechanism!r}; it must be a Mechanism, or parts of cd.load_step(path)")
    return run(Server(mechanism, port=port), browser=browser, wait=wait)


def run(server: Server, *, browser: bool, wait: bool) -> Server:
    """Start a server, print its address, open it, and serve."""
    server.start()
    server.announce()
    if browser and not server.open_browser():
        print("no browser could be opened; open the address in one", flush=True)
    if wait:
        try:
            server.wait()
        finally:
            server.close()
    return server


def open_browser(address: str) -> bool:
    """Open an address; whether a browser could be started."""
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
