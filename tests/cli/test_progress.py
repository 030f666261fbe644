"""What is compiled, and what is read, is said on stderr: in a line that is erased on a terminal, else in the log."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from cardan.cli import progress
from cardan.kernel import announce

WORK = """
import sys
from cardan.cli import progress
from cardan.kernel import announce
with progress.compiling():
    for number in (1, 2):
        with announce.named("your own constraint 'cam'", number, 2):
            announce.began(print)
            announce.ended()
with progress.told("reading vice.step"):
    pass
sys.stderr.write("end")
"""


def work() -> None:
    with progress.compiling():
        for number in (1, 2):
            with announce.named("your own load", number, 2):
                announce.began(work)
                announce.ended()


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_a_terminal_shows_a_line_that_is_erased() -> None:
    pty = pytest.importorskip("pty")
    own, other = pty.openpty()
    subprocess.run([sys.executable, "-c", WORK], stderr=other, check=True)
    os.close(other)
    text = os.read(own, 10_000).decode()
    os.close(own)
    first = "compiling your own constraint 'cam', once: 1 of 2"
    assert text.startswith(first + "\r" + " " * len(first) + "\r" + first.replace("1 of", "2 of"))
    shown, _, rest = text.rpartition("reading vice.step")
    assert "once: 2 of 2" in shown and rest == "\r" + " " * len("reading vice.step") + "\rend"


def test_a_log_has_one_line_for_each_subject(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="cardan"):
        work()
        with progress.told("reading vice.step"):
            pass
    lines = ["compiling your own load, once: 1 of 2", "reading vice.step"]
    assert [record.message for record in caplog.records] == lines
