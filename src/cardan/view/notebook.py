"""The workbench in a notebook: the page in a frame of the output, its messages over the channel of a widget.

>>> from cardan.view import notebook                     # doctest: +SKIP
>>> notebook.show(mechanism)                             # doctest: +SKIP

The frame passes texts of the page to Python and texts and bytes of Python to the page.  The empty text of the page says
that it is ready; the server's answer to it is the empty text too.  Needs the extra ``notebook`` (anywidget).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from cardan.cad.draft import Draft
from cardan.cad.parts import Assembly
from cardan.errors import ModelError
from cardan.mechanism import Mechanism
from cardan.system import check
from cardan.view import page
from cardan.view.bench import Bench
from cardan.view.mailbox import Outbox
from cardan.view.protocol import Refused, read, write
from cardan.view.server import items_of

HEIGHT: Final = 600  # CSS pixels
MARK: Final = '<template id="hosted"></template>\n'
END: Final = "</body>"

ESM: Final = """
function render({ model, el }) {
  const frame = document.createElement('iframe');
  frame.style.cssText = `width: 100%; height: ${model.get('height')}px; border: 0`;
  frame.srcdoc = model.get('page');
  const toPython = (event) => {
    if (event.source === frame.contentWindow && event.data?.cardan !== undefined)
      model.send({ text: event.data.cardan });
  };
  const toPage = (content, buffers) => {
    const b = buffers?.[0];
    const data = b ? b.buffer.slice(b.byteOffset, b.byteOffset + b.byteLength) : content.text;
    frame.contentWindow?.postMessage({ cardan: data }, '*');
  };
  addEventListener('message', toPython);
  model.on('msg:custom', toPage);
  el.append(frame);
  return () => {
    removeEventListener('message', toPython);
    model.off('msg:custom', toPage);
    model.send({ text: null });
  };
}
export default { render };
"""


class Channel:
    """One page and its bench: ``receive`` takes texts of the page, ``send`` is called with texts and bytes for it."""

    def __init__(self, mechanism: Mechanism | Assembly | Draft, send: Callable[[str | bytes], None]) -> None:
        self._items, self._send = items_of(mechanism), send
        self._bench: Bench | None = None
        self._loop: asyncio.AbstractEventLoop
        self._outbox: Outbox
        self._thread: threading.Thread | None = None

    def receive(self, text: str | None) -> None:
        """A text of the page; "" if it is ready, None at its end."""
        if text is None:
            self.close()
        elif text == "":
            self._begin()
        elif self._bench is not None:
            try:
                self._bench.put(read(text))
            except Refused as error:
                self._outbox.post(write("refused", text=str(error)))

    def _begin(self) -> None:
        """Begin a new bench for a page that is ready; the one before ends."""
        self.close()
        self._loop = asyncio.new_event_loop()
        self._outbox = Outbox(self._loop)
        self._send("")
        self._bench = Bench(self._items, next(iter(self._items)), self._outbox)
        self._thread = threading.Thread(
            target=self._pass, args=(self._loop, self._outbox), name="cardan notebook", daemon=True
        )
        self._thread.start()
        self._bench.start()

    def _pass(self, loop: asyncio.AbstractEventLoop, outbox: Outbox) -> None:
        """Send what the bench posts, until the loop is stopped."""

        async def pass_on() -> None:
            while True:
                for message in await outbox.take():
                    self._send(message)

        task = loop.create_task(pass_on())
        loop.run_forever()
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()

    def close(self) -> None:
        """End the bench and the thread that sends."""
        bench, self._bench = self._bench, None
        thread, self._thread = self._thread, None
        if bench is not None:
            bench.close()
        if thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()


def show(mechanism: Mechanism | Assembly | Draft, *, height: int = HEIGHT) -> Any:
    """A widget that shows the workbench of a mechanism in the output of a cell; height in CSS pixels.

    The mechanism is copied.  ``widget.close()`` ends it.
    """
    if not isinstance(mechanism, Mechanism | Assembly | Draft):
        raise ModelError(f"show was given {mechanism!r:.80}; it must be a Mechanism, or parts of cd.load_step(path)")
    return _kind()(mechanism, check.count(height, "height", 100, 10000))


@cache
def _kind() -> type[Any]:
    """The class of the widget; made here, since anywidget is not always installed."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise ModelError("a notebook needs anywidget; install it with: pip install 'cardan[notebook]'") from None
    before, end, after = page.html().rpartition(END)

    base: Any = anywidget.AnyWidget

    class Workbench(base):  # type: ignore[misc]  # the base is known only here
        """The workbench in the output of a cell."""

        _esm = ESM
        page = traitlets.Unicode(f"{before}{MARK}{end}{after}").tag(sync=True)
        height = traitlets.Int(HEIGHT).tag(sync=True)

        def __init__(self, mechanism: Mechanism | Assembly | Draft, height: int) -> None:
            super().__init__(height=height)
            self._channel = Channel(mechanism, self._to_page)
            self.on_msg(self._from_page)

        def _from_page(self, _: Any, content: Any, __: Any) -> None:
            if isinstance(content, dict) and isinstance(content.get("text", 0), str | None):  # else not of the page
                self._channel.receive(content["text"])

        def _to_page(self, message: str | bytes) -> None:
            if isinstance(message, str):
                self.send({"text": message})
            else:
                self.send({}, buffers=[message])

        def close(self) -> None:
            self._channel.close()
            super().close()

    return Workbench
