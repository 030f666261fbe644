"""Threads that edit, copy, save, assemble and move one mechanism at the same time, against runs of one thread."""

from __future__ import annotations

import random
import sys
import threading
import time

import numpy as np
import pytest

import cardan as cd
from cardan.errors import ModelError

FEWEST = 4  # rounds of each thread, also on a busy machine
LENGTHS = (0.08, 0.1, 0.12, 0.15)


def engine():
    m = cd.Mechanism("engine")
    radius = m.parameter("radius", 0.1, lower=0.01, upper=0.2)
    crank = m.body("crank", orientation=((0, 0, 1), 0.4))
    rod = m.body("rod", position=(0.1, 0.04, 0))
    piston = m.body("piston", position=(0.4, 0, 0))
    main = m.revolute("main", m.ground.frame(), crank.frame())
    m.revolute("pin", crank.frame((radius, 0, 0)), rod.frame())
    m.revolute("wrist", rod.frame((0.3, 0, 0)), piston.frame())
    m.prismatic("guide", m.ground.frame(z=(1, 0, 0), x=(0, 0, 1)), piston.frame(z=(1, 0, 0), x=(0, 0, 1)))
    m.drive("motor", main, 0.4)
    return m


class Crew:
    """Threads at work on one mechanism until a time; ``failed``: exceptions and wrong answers of all of them."""

    def __init__(self, seconds, folder):
        engine().move((0.0, 0.1), engine().assemble().state)  # kernels are loaded before
        self.m, self.folder, self.end = engine(), folder, time.monotonic() + seconds
        self.failed, self.counts, self.pairs = [], {}, []

    def run(self):
        works = (self.edit, self.edit, self.assemble, self.move, self.copy, self.save)
        threads = [threading.Thread(target=self.repeat, args=(k, work)) for k, work in enumerate(works)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for copied, found in self.pairs:  # the same again, by one thread
            if not np.array_equal(copied.assemble().state.coordinates, found):
                self.failed.append("an assembly of a copy differs from that of one thread")

    def repeat(self, number, work):
        rng, count = random.Random(number), 0
        try:
            while (time.monotonic() < self.end or count < FEWEST) and not self.failed:
                work(number, rng)
                count += 1
        except BaseException as error:
            self.failed.append(f"{work.__name__}: {error!r}")
        self.counts[work.__name__] = self.counts.get(work.__name__, 0) + count

    def edit(self, number, rng):
        """Add, move and remove bodies with joints; change the drawn value of the parameter."""
        name = f"extra {number}"
        body = self.m.body(name, position=(rng.random(), 1.0 + number, 0.0), fixed=rng.random() < 0.3)
        if not body.fixed:
            self.m.revolute(f"hinge {number}", self.m["rod"].frame((0.1, 0, 0)), body.frame())
        self.m["radius"].value = rng.choice(LENGTHS)
        body.position = (rng.random(), 1.0, 2.0)
        self.m.remove(name, joints=True)

    def assemble(self, number, rng):
        """All joints meet at the poses found, with the lengths that the state has."""
        found = self.m.assemble()
        state = found.state
        pin, wrist = state["rod"].position, state["piston"].position
        radius = float(np.linalg.norm(pin))
        if not found.ok or min(abs(radius - one) for one in LENGTHS) > 1e-12:
            self.failed.append(f"assemble: {found.status}, radius {radius}")
        if abs(np.linalg.norm(np.subtract(wrist, pin)) - 0.3) > 1e-11:
            self.failed.append("assemble: ok with open joints")

    def move(self, number, rng):
        """Values of a state are used as they are, whatever the drawn value becomes meanwhile."""
        own = engine()
        radius = rng.choice(LENGTHS)
        own["radius"].value = radius
        state = own.assemble().state
        motion = own.move((0.0, 0.1), state)
        if not motion.ok or abs(np.linalg.norm(motion.states[-1]["rod"].position) - radius) > 1e-11:
            self.failed.append("move: another radius")
        if own["radius"].value != radius:
            self.failed.append("move: the parameter changed")

    def copy(self, number, rng):
        """A copy is of one moment: its joints have their bodies, and it assembles as in one thread."""
        made = self.m.copy()
        for joint in made.joints.values():
            if any(made.bodies.get(body.name) is not body for body in joint.bodies if body is not made.ground):
                self.failed.append(f"copy: joint {joint.name!r} without its body")
        found = made.assemble()
        if len(self.pairs) < 200:
            self.pairs.append((made, found.state.coordinates.copy()))

    def save(self, number, rng):
        path = self.folder / "engine.toml"
        self.m.save(path)
        if not cd.load(path).assemble().ok:
            self.failed.append("save: a file that does not assemble")


@pytest.mark.parametrize("seconds", [2.0, pytest.param(600.0, marks=pytest.mark.long)])
def test_threads_that_edit_and_evaluate_get_right_answers(seconds, tmp_path):
    crew, interval = Crew(seconds, tmp_path), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads change within an edit
    try:
        crew.run()
    finally:
        sys.setswitchinterval(interval)
    assert crew.failed == []
    assert min(crew.counts.values()) >= FEWEST, crew.counts


def test_a_joint_without_its_body_is_refused_before_a_kernel_reads_it():
    m = engine()
    for name, joint in (("rod", "pin"), ("piston", "wrist")):  # a number in between, and the largest one
        other = m.copy()
        del other._model.bodies[name]
        other._model.edits += 1
        with pytest.raises(ModelError, match=f"'{joint}' refers to a body or an angle that is not in the mechanism"):
            other.assemble()
