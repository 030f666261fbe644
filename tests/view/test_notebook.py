"""The workbench in a notebook: the real widget and its script, in Chromium, over a channel like that of Jupyter."""

from __future__ import annotations

import base64
import json
import queue
from collections.abc import Iterator

import comm
import pytest
from comm.base_comm import BaseComm

import cardan as cd
from cardan.examples import REGISTRY
from cardan.view import notebook
from chromium import Browser, Tab, wait_until
from pointer import SHOTS

HOST = """
window.out = []; window.heard = [];
const model = {
  get: (name) => window.state[name],
  on: (name, f) => name === 'msg:custom' && heard.push(f),
  off: (name, f) => { heard = heard.filter(g => g !== f); },
  send: (content) => out.push(content),
};
window.deliver = (content, data) => {
  const buffers = data === null ? [] : [new DataView(Uint8Array.from(atob(data), c => c.charCodeAt(0)).buffer)];
  for (const f of heard) f(content, buffers);
};
window.begin = (esm) => import(URL.createObjectURL(new Blob([esm], { type: 'text/javascript' })))
  .then(({ default: widget }) => { window.end = widget.render({ model, el: document.body }); });
"""


class Bridge(BaseComm):
    """A comm whose messages are kept in a queue."""

    sent: queue.Queue[tuple[dict, list]]

    def __init__(self, *args: object, **options: object) -> None:
        self.sent = queue.Queue()
        super().__init__(*args, **options)

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys) -> None:
        if msg_type == "comm_msg" and data.get("method") == "custom":
            self.sent.put((data["content"], list(buffers or [])))


@pytest.fixture
def widget(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    monkeypatch.setattr(comm, "create_comm", Bridge)
    made = notebook.show(REGISTRY["slider_crank"].build(), height=500)
    yield made
    made.close()


def carry(tab: Tab, widget: object) -> None:
    """Pass on what waits in both directions, as a kernel does."""
    while not widget.comm.sent.empty():
        content, buffers = widget.comm.sent.get()
        data = base64.b64encode(buffers[0]).decode() if buffers else None
        tab.js(f"deliver({json.dumps(content)}, {json.dumps(data)})")
    for content in tab.js("out.splice(0)"):
        widget.comm.handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})


def test_the_workbench_runs_in_the_output_of_a_cell(browser: Browser, widget: object) -> None:
    tab = browser.open("data:text/html,<body>")
    state = {"page": widget.page, "height": widget.height}
    tab.js(f"{HOST}; void (window.state = {json.dumps(state)})")
    tab.js(f"begin({json.dumps(notebook.ESM)})")
    page = "document.querySelector('iframe').contentWindow"

    def shown(expression: str) -> object:
        carry(tab, widget)
        return tab.js(f"{page}.cardan ? {expression.replace('cardan.', page + '.cardan.')} : null")

    wait_until(lambda: shown("cardan.freedoms && cardan.frame ? 1 : 0"), what="the mechanism")
    assert shown("cardan.freedoms.dof") == 1
    assert shown("cardan.stage.parts.length") == 4
    bench = widget._channel._bench
    # in the width of a cell nothing covers the tools
    for width in (1100, 1000, 800):
        tab.resize(width, 700)
        tab.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        tab.screenshot(SHOTS / f"notebook_{width}.png")
        covered = tab.js(
            f"""['#undo', '#reset', '#help', '#picker', '#play', '#dof'].filter(s => {{ const d = {page}.document;
            const r = d.querySelector(s).getBoundingClientRect();
            return !d.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2)?.closest(s); }})"""
        )
        assert not covered, (width, covered)
    # a request of the page reaches the bench, and its answer the page
    before = bench._now.coordinates.copy()
    tab.js(f"void {page}.cardan.link.stream({{do: 'drive', driver: 'motor', value: 1.0}}, 0)")
    wait_until(lambda: shown("cardan.framesApplied") > 1 and shown("cardan.values[0]") is not None, what="a frame")
    wait_until(lambda: abs(shown("Math.sin(cardan.values[0] - 1)")) < 1e-5, what="the driver")
    assert bench._drag is not None and abs(bench._drag.state.coordinates - before).max() > 1e-3
    # nonsense is refused, and the page goes on
    tab.js(f"void {page}.cardan.send('nonsense')")
    refused = f"{page}.document.querySelector('.message')?.innerText ?? ''"
    wait_until(lambda: (carry(tab, widget), tab.js(refused))[1], what="a refusal")
    tab.js("end()")
    carry(tab, widget)
    wait_until(lambda: bench.join(0.1), what="the end of the bench")
    tab.close()


@pytest.mark.slow
def test_messages_that_are_not_of_the_page_do_not_end_the_bench(widget: object) -> None:
    def arrive(content: object) -> None:
        widget.comm.handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})

    arrive({"text": ""})
    bench = widget._channel._bench
    for content in ({}, {"kind": "other"}, {"text": 3}, "text"):
        arrive(content)
    assert widget._channel._bench is bench is not None
    arrive({"text": None})
    assert widget._channel._bench is None


def test_what_is_not_a_mechanism_is_refused() -> None:
    with pytest.raises(cd.ModelError, match="it must be a Mechanism"):
        notebook.show("slider_crank")
