"""Long use does not grow the process: the memory after many calls is that after the first ones, within 5 MB."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from mechanisms import slider_crank

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
MOST_BYTES = 5e6


def engine():
    """A slider-crank with a parameter, a spring and a limit."""
    m = slider_crank()
    m.limit("range", m["main"], lower=-10.0, upper=10.0)
    m.spring("gas", m["guide"], stiffness=10.0, rest=0.35)
    return m


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(work, first, count, collect=gc.collect):
    """By how many bytes the process grows in ``count`` calls, after ``first`` ones that fill what is kept once.

    Garbage is collected in between: its amount varies, and the allocator keeps the memory that it took.
    """
    before = 0
    for k in range(first + count):
        if k == first:
            collect()
            before = resident()
        work(k)
        if k % max(200, count // 50) == 0:
            collect()
    collect()
    grown = resident() - before
    print(f"{count:,} calls: {1e-6 * grown:.2f} MB")
    return grown


def parts(short, *long):
    """Counts of `make test`, and those of `make long`."""
    return pytest.mark.parametrize("count", [short, *[pytest.param(one, marks=pytest.mark.long) for one in long]])


@parts(1_000, 100_000)
def test_assemblies_do_not_grow_the_process(count):
    """Of one mechanism from other starts, at other values of its parameter, and after edits that pack it again."""
    m = engine()
    m.drive("motor", m["main"], 0.4)
    states = [m.assemble().state]
    m["radius"].value = 0.12
    states.append(m.assemble().state)

    def assemble(k):
        if k % 10 == 0:
            m["radius"].value = 0.1 + 0.0001 * (k % 7)
        if k % 100 == 0:
            m.remove("motor")
            m.drive("motor", m["main"], 0.3 + 0.0001 * (k % 11))
        assert m.assemble(states[k % 2]).ok

    assert growth(assemble, 500, count) < MOST_BYTES


@pytest.fixture
def no_collector():
    """Reference cycles are not freed."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@parts(500, 10_000)
def test_sessions_do_not_grow_the_process(count, no_collector):
    """They are in no reference cycle: one takes 0.1 MB, and the collector does not run here."""
    m = engine()
    state = m.assemble().state

    def session(k):
        made = m.session(state, mode=("kinematic", "dynamic")[k % 2])
        made.grasp(m["rod"], (0.1, 0, 0)).target = (0.2, 0.1, 0.0)
        made.step()
        assert np.isfinite(made.state.coordinates).all()

    assert growth(session, 200, count, collect=lambda: None) < MOST_BYTES


@pytest.mark.parametrize("mode", ["kinematic", "dynamic"])
@parts(2_000, 1_000_000)
def test_cycles_do_not_grow_the_process(mode, count):
    """A target on a circle; what a session records of its cycles is of bounded size."""
    m = engine()
    session = m.session(m.assemble().state, mode=mode)
    hand = session.grasp(m["rod"], (0.1, 0, 0))
    circle = [(0.15 + 0.05 * np.cos(a), 0.05 * np.sin(a), 0.0) for a in np.linspace(0.0, 2.0 * np.pi, 1000)]

    def cycle(k):
        hand.target = circle[k % 1000]
        session.step()

    assert growth(cycle, 5_000, count) < MOST_BYTES
    assert np.isfinite(session.state.coordinates).all()


@parts(30, 1_000)
def test_simulations_do_not_grow_the_process(count):
    m = engine()
    state = m.assemble().state

    def simulate(k):
        if k % 10 == 0:
            m["radius"].value = 0.1 + 0.0001 * (k % 7)
        sim = m.simulate(0.05, state) if k % 2 else m.simulate(0.05, state, step=1e-3)
        assert sim.ok and sim.reaction("pin").force.shape[0] == len(sim.times)

    assert growth(simulate, 30, count) < MOST_BYTES


def test_mechanisms_that_are_read_and_not_kept_are_freed(tmp_path):
    """By the collector, which is not called here."""
    path = tmp_path / "engine.toml"
    engine().save(path)
    # In a process of its own: how often the collector runs depends on all that is alive.
    program = f"""
import gc
import cardan as cd
for _ in range(600):
    cd.load({str(path)!r})
print(sum(type(one) is cd.Mechanism for one in gc.get_objects()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 600


@parts(300, 20_000)
def test_files_do_not_grow_the_process(count, tmp_path):
    m = engine()

    def save_and_load(k):
        if k % 20 == 0:
            m["radius"].value = 0.1 + 0.0001 * (k % 7)
            m.save(tmp_path / "engine.toml")
        assert cd.load(tmp_path / "engine.toml") == m

    assert growth(save_and_load, 600, count) < MOST_BYTES
