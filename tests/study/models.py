"""Models of the tests of studies, by names that other processes can import."""

from __future__ import annotations

import os
import time

import numpy as np

import cardan as cd

X = (1.0, 0.0, 0.0)


def four_bar():
    """A planar four-bar with lengths as parameters, rods of 1 kg, and a spring."""
    m = cd.Mechanism("four-bar", gravity=(0.0, -9.81, 0.0))
    a, b = m.parameter("a", 1.0, lower=0.1, upper=5.0), m.parameter("b", 3.0, lower=0.1)
    rods = [
        m.body(name, position=at, mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.2, 0.2))
        for name, at in (("crank", (0, 0, 0)), ("coupler", (1, 0, 0)), ("rocker", (3, 0, 0)))
    ]
    crank, coupler, rocker = rods
    m.revolute("A", m.ground.frame(x=X), crank.frame(x=X))
    m.revolute("B", crank.frame((a, 0, 0), x=X), coupler.frame(x=X))
    m.revolute("C", coupler.frame((b, 0, 0), x=X), rocker.frame((2.5, 0, 0), x=X))
    m.revolute("D", m.ground.frame((3, 0, 0), x=X), rocker.frame(x=X))
    m.spring("drag", m["A"], stiffness=0.2, damping=0.4)
    return m


def turned():
    """The same with a motor whose function has no name."""
    m = four_bar()
    m.drive("motor", m["A"], lambda t: 0.3 + 2.0 * t)
    return m


OUTPUTS = ("max(effort(drag))", "final(A)", "D")


def study(count=40, mechanism=None, outputs=OUTPUTS, seed=3, **options):
    """Simulations of 50 steps."""
    m = four_bar() if mechanism is None else mechanism
    sample = cd.sample.normal(a=0.05, b=0.05, runs=count, seed=seed)
    return m.study(sample, outputs, duration=0.1, step=2e-3, **options)


def slow(simulation):
    """A number that takes a while."""
    time.sleep(0.01)
    return simulation.coordinate("A")[-1]


def fatal(simulation):
    """Ends its process where the crank is longest of the first ten runs; with -9, as the system does."""
    if simulation._system.values["a"] > 1.02:
        os.kill(os.getpid(), 9)
    return simulation.coordinate("A")[-1]


def same(one, two):
    """Whether tables are equal, to the last bit."""
    a, b = one.table(), two.table()
    assert list(a) == list(b)
    for title in a:
        assert np.array_equal(a[title], b[title], equal_nan=a[title].dtype.kind == "f"), title
    return True
