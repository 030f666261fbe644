"""Ctrl-C or MemoryError at any line of any verb leaves the mechanism as before or as after, never between."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan import shapes
from cardan.errors import ModelError

SOURCE = str(Path(cd.__file__).parent)
INERTIA = 0.01 * np.eye(3)
KEPT = 8  # interrupts of each verb in `make test`, spread over its lines; `make long` raises at every line


def crank_and_rod():
    """A slider-crank with a parameter, a driver, a limit, a load, a rate row and a contact."""
    m = cd.Mechanism("engine")
    m.parameter("radius", 0.1, lower=0.01, upper=0.2)
    crank = m.body("crank", mass=1.0, inertia=INERTIA, center=(0.05, 0, 0))
    rod = m.body("rod", position=(0.1, 0, 0), mass=1.0, inertia=INERTIA, center=(0.15, 0, 0))
    piston = m.body("piston", position=(0.4, 0, 0), mass=1.0, inertia=INERTIA)
    main = m.revolute("main", m.ground.frame(), crank.frame())
    m.revolute("pin", crank.frame((m.parameters["radius"], 0, 0)), rod.frame())
    m.revolute("wrist", rod.frame((0.3, 0, 0)), piston.frame())
    m.prismatic("guide", m.ground.frame(z=(1, 0, 0), x=(0, 0, 1)), piston.frame(z=(1, 0, 0), x=(0, 0, 1)))
    m.limit("range", main, lower=-10.0, upper=10.0)
    m.spring("gas", m["guide"], stiffness=10.0, rest=0.35)
    m.body("base", position=(0, 0, -1.0), fixed=True)
    return m


@cd.primitive(i="point", j="point")
def OWN(i, j):
    return j.z - i.z - 0.25


def twice(t):
    return 2.0 * t


def driven(m):
    other = m.copy()
    other.drive("motor", other["main"], lambda t: t)
    return other


def dragged(m):
    session = m.session(m.assemble().state)
    session.grasp(m["rod"], (0.1, 0, 0)).target = (0.2, 0.1, 0.0)
    session.step()


EDITS = {
    "body": lambda m: m.body("new", position=(1, 2, 3), mass=2.0),
    "fixed body": lambda m: m.body("new", position=(1, 2, 3), fixed=True),
    "revolute": lambda m: m.revolute("new", m.ground.frame((1, 0, 0)), m["base"].frame()),
    "joint of a formula": lambda m: m.distance("new", m["rod"].point(), m["piston"].point(), 3.0 * m["radius"] + 0.01),
    "drive": lambda m: m.drive("motor", m["main"], twice),
    "limit": lambda m: m.limit("new", m["guide"], lower=-1.0),
    "couple with a range": lambda m: m.couple("new", m["main"], m["guide"], cd.spline((0, 1, 2), (0.4, 0.3, 0.4))),
    "constrain": lambda m: m.constrain("new", OWN, i=m["rod"].point(), j=m["base"].point()),
    "knife edge": lambda m: m.knife_edge("new", m["rod"].frame()),
    "wheel": lambda m: m.wheel("new", m["base"].frame(), 0.1),
    "spring": lambda m: m.spring("new", m["main"], stiffness=3.0),
    "force": lambda m: m.force("new", m["rod"].point(), (1, 2, 3)),
    "actuator": lambda m: m.actuator("new", m["main"], lambda t, x, v: 3.0 * t),
    "parameter": lambda m: m.parameter("new", 0.3, lower=0.0),
    "formula, then parameter": lambda m: (2.5 * m["radius"] - 0.7, m.parameter("new", 0.3)),
    "value": lambda m: setattr(m["radius"], "value", 0.12),
    "position": lambda m: setattr(m["rod"], "position", (1, 2, 3)),
    "orientation": lambda m: setattr(m["rod"], "orientation", ((0, 0, 1), 0.3)),
    "position of a fixed body": lambda m: setattr(m["base"], "position", (1, 2, 3)),
    "mass": lambda m: setattr(m["rod"], "mass", 7.0),
    "inertia": lambda m: setattr(m["rod"], "inertia", np.eye(3)),
    "center": lambda m: setattr(m["rod"], "center", (1.0, 1.0, 1.0)),
    "attach": lambda m: m["base"].attach(shapes.box(0.1, 0.2, 0.3), density=1000.0),
    "fix": lambda m: setattr(m["rod"], "fixed", True),
    "free": lambda m: setattr(m["base"], "fixed", False),
    "gravity": lambda m: setattr(m, "gravity", (0, 0, 1)),
    "remove a body": lambda m: m.remove("piston", joints=True),
    "remove a joint": lambda m: m.remove("pin"),
    "remove a fixed body": lambda m: m.remove("base", joints=True),
    "remove a parameter": lambda m: m.remove("radius", joints=True),
    "adopt": lambda m: m.adopt(m.assemble().state),
}
READS = {
    "assemble": lambda m: m.assemble(),
    "assemble free": lambda m: m.assemble(free=["radius"]),
    "assemble many": lambda m: m.assemble_many([m.state, m.state], workers=1),
    "move": lambda m: driven(m).move((0.0, 0.1)),
    "move at values": lambda m: m.assemble(m.state_at(), free=["radius"]),
    "simulate": lambda m: m.simulate(0.01, m.assemble().state),
    "equilibrium": lambda m: m.equilibrium(),
    "diagnose": lambda m: m.diagnose(m.assemble().state),
    "session": dragged,
    "copy": lambda m: m.copy(),
    "sensitivity": lambda m: m.sensitivity(m.assemble().state, [m["guide"]]),
}


class Interrupted:
    """Run a verb; raise an error at its k-th line within the library."""

    def __init__(self, k, error=KeyboardInterrupt):
        self.k, self.error, self.lines, self.raised = k, error, 0, False

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self.k:
                self.raised = True
                sys.settrace(None)
                raise self.error
        return self

    def run(self, verb, m):
        sys.settrace(self)
        try:
            verb(m)
        except (self.error, ModelError):  # an error in a user's function is reported as one of the model
            if not self.raised:
                raise
        finally:
            sys.settrace(None)


def lines_of(verb):
    counter = Interrupted(-1)
    counter.run(verb, crank_and_rod())
    return counter.lines


def check(m, verb, allowed, conditions, k):
    """The mechanism equals one of the allowed, and works: it is packed, edited, and its names are free or taken."""
    found = m.description()
    assert found in allowed, f"line {k}: the mechanism is between"
    fresh = m.copy()
    assert fresh.description() == found
    assert list(m._model.book.conditions) == conditions[allowed.index(found)]
    for joint in m.joints.values():
        assert all(m.bodies.get(body.name) is body for body in joint.bodies if body is not m.ground)
    assert m.system.names == tuple(m.bodies) or list(m.system.names) == list(m.bodies)
    assert m.assemble(restarts=0).state.names == fresh.assemble(restarts=0).state.names
    if found == allowed[0]:
        verb(m)  # nothing of the first call is left in its way
        assert m.description() == allowed[-1]


@pytest.mark.parametrize("name", [*EDITS, *READS])
def test_an_interrupt_leaves_the_mechanism_as_before_or_as_after(name, every=KEPT):
    verb = EDITS.get(name) or READS[name]
    m = crank_and_rod()
    before, held = m.description(), list(m._model.book.conditions)
    verb(m)
    allowed = [before, m.description()]
    conditions = [held, list(m._model.book.conditions)]
    verb(crank_and_rod())  # what is compiled or cached once is there
    total = lines_of(verb)
    assert total > 5
    step = max(1, total // every)
    for turn, k in enumerate(range(1, total + 1, step)):
        for error in (KeyboardInterrupt, MemoryError)[turn % 2 :: 1 + (every == KEPT)]:
            m = crank_and_rod()
            Interrupted(k, error).run(verb, m)
            check(m, verb, allowed, conditions, k)


@pytest.mark.long
@pytest.mark.parametrize("name", [*EDITS, *READS])
def test_an_interrupt_at_every_line(name):
    test_an_interrupt_leaves_the_mechanism_as_before_or_as_after(name, every=sys.maxsize)
