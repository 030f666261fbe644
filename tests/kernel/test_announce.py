"""Compilations are announced: what, in the user's words, and which of how many."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

import cardan as cd
from cardan.kernel import announce, cache, jit, memory
from cardan.kernel.announce import Compiling

OWN = """
import cardan as cd, logging
{setup}

@cd.primitive(a="point", b="point")
def cam(a, b, *, k):
    return cd.norm(b - a) - k * {unique}

@cd.primitive(a="point", b="point")
def lobe(a, b, *, k):
    return cd.norm(b - a) - k - {unique}

m = cd.Mechanism("own")
bob = m.body("bob", position=(1.0, 0.0, 0.0))
m.constrain("one", cam, a=m.ground.point(), b=bob.point(), k=1.0)
m.constrain("two", lobe, a=m.ground.point((0.0, 1.0, 0.0)), b=bob.point(), k=1.0)
m.constrain("three", lobe, a=m.ground.point((0.0, 2.0, 0.0)), b=bob.point(), k=1.0)
m.assemble(max_iterations=1)
"""


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env}, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def test_an_own_constraint_is_announced_by_its_name_and_number() -> None:
    setup = (
        "from cardan.kernel import announce\n"
        "context = announce.watch(lambda found: print(found and found.text()))\n"
        "context.__enter__()"
    )
    bits = f"{int.from_bytes(os.urandom(3), 'big'):024b}"  # a graph of its own: its kernels are not in the cache
    unique = "".join(f"cd.{'sin' if bit == '1' else 'cos'}(" for bit in bits) + "k" + ")" * len(bits)
    said = run(OWN.format(setup=setup, unique=unique)).stdout.splitlines()
    assert [line for line in said if "own" in line] == [
        "compiling your own constraint 'cam', once: 1 of 2",
        "compiling your own constraint 'lobe', once: 2 of 2",
    ]
    assert said[-1] == "None"
    again = run(OWN.format(setup=setup, unique=unique)).stdout
    assert "own" not in again, "machine code from the cache was announced"


def test_text_has_a_count_where_there_is_one() -> None:
    assert Compiling("your own load", 1, 1).text() == "compiling your own load, once"
    assert Compiling("your own load", 2, 3).text() == "compiling your own load, once: 2 of 3"
    assert Compiling("kernels of drags", 1, 0).text() == "compiling kernels of drags, once"
    assert Compiling("kernels of drags", 4, 0).text() == "compiling kernels of drags, once: 4"


def test_kernels_are_named_by_what_they_are_for() -> None:
    from cardan.interact import _hands

    seen: list[Compiling | None] = []
    with announce.watch(seen.append):
        announce.began(_hands._evaluate)
        announce.ended()
    announce.ended()
    assert seen[1:] == [None] and seen[0] is not None
    assert seen[0].what == "kernels of drags" and seen[0].total == 0


def test_the_outermost_name_counts_and_threads_have_their_own() -> None:
    seen: list[Compiling | None] = []
    with announce.watch(seen.append), announce.named("outer", 1, 2), announce.named("inner"):
        announce.began(run)
        thread = threading.Thread(target=announce.began, args=(run,))
        thread.start()
        thread.join()
    assert seen[0] == Compiling("outer", 1, 2)
    assert seen[1] is not None and seen[1].what == "kernels"


def test_without_an_observer_the_log_warns_once_after_a_second(caplog: pytest.LogCaptureFixture) -> None:
    silence = announce._Silence()
    silence._left = 0.05
    with caplog.at_level(logging.WARNING, logger="cardan"):
        for _ in range(2):
            silence.begin(Compiling("kernels of drags", 1, 0))
            while silence._left > 0.0:
                pass
            silence.end()
        silence = announce._Silence()
        silence.begin(Compiling("kernels of drags", 1, 0))
        silence.end()  # short: no word
    assert [record.message for record in caplog.records] == [
        "compiling kernels of drags, once: this may take a minute; later calls and processes do not wait"
    ]


def bad(x, c, f, df):
    return no_such_name  # noqa: F821  # what is to be refused


@pytest.mark.parametrize("cached", [False, True])
def test_a_failed_compilation_ends_too(cached) -> None:
    seen: list[Compiling | None] = []
    with announce.watch(seen.append), pytest.raises(Exception, match="no_such_name"):
        jit.primitive_address(bad, cached)
    assert seen[-1] is None and len(seen) == 2 and seen[0].is_kept is cached


@pytest.mark.skipif(memory.JIT_DISABLED, reason="nothing is compiled")
def test_a_kernel_that_cannot_be_compiled_releases_its_lock() -> None:
    """Another process would wait for it until this one ends."""
    seen: list[Compiling | None] = []
    kernel = jit.jit(bad)
    with announce.watch(seen.append):
        for _ in range(2):
            with pytest.raises(Exception, match="no_such_name"):
                kernel(1.0, 1.0, 1.0, 1.0)
            assert not kernel._cache._lock._held
    assert seen[1::2] == [None, None] and len(seen) == 4


@pytest.mark.skipif(memory.JIT_DISABLED, reason="nothing is compiled")
def test_without_a_cache_kernels_are_announced_and_not_as_compiled_once(monkeypatch) -> None:
    monkeypatch.setattr(cache, "CACHE_DIRECTORY", None)
    seen: list[Compiling | None] = []
    with announce.watch(seen.append):
        assert jit.jit(lambda x: x + 1.0)(1.0) == 2.0
    assert [one and (one.text().partition(":")[0], one.is_kept) for one in seen] == [("compiling kernels", False), None]
    assert seen[0].warning() == "compiling kernels: this may take a minute; later calls do not wait; each process does"


def test_a_coupling_is_announced_by_the_name_of_the_user(monkeypatch) -> None:
    names: list[str] = []

    @contextmanager
    def named(what, number=1, total=1):
        names.append(what)
        yield

    monkeypatch.setattr(announce, "named", named)
    m = cd.Mechanism()
    hinges = [m.revolute(f"hinge {k}", m.ground.frame(), m.body(f"arm {k}").frame()) for k in range(2)]
    m.couple("cam", hinges[0], hinges[1], lambda q: cd.sin(q) * cd.cosh(q) / (2.0 + cd.cos(q * q)))
    m.assemble()
    assert set(names) == {"the function of your coupling 'cam'"}


TERMINAL = """
import logging, sys
from cardan.kernel import announce
{setup}
silence = announce._Silence()
silence._left = 0.01
silence.begin(announce.Compiling("kernels of drags", 1, 0))
while silence._left > 0.0:
    pass
silence._timer.join()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_shows_the_warning_of_a_script_without_a_log() -> None:
    import pty

    said = {}
    for setup in ("", "logging.basicConfig(filename='/dev/null')"):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-c", TERMINAL.format(setup=setup)]
        subprocess.run(command, stderr=theirs, check=True)
        os.close(theirs)
        try:
            said[setup] = os.read(ours, 4096).decode()
        except OSError:  # nothing was written, and the other end is closed
            said[setup] = ""
        os.close(ours)
    assert said.pop("").startswith("compiling kernels of drags, once: this may take a minute")
    assert list(said.values()) == [""]
    assert run(TERMINAL.format(setup="")).stderr == ""  # no terminal
