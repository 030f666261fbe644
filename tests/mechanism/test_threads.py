"""Threads that edit, copy, save, assemble and move one mechanism at the same time, against runs of one thread."""

from __future__ import annotations

import random
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

import cardan as cd
from cardan.analysis import assemble
from cardan.errors import ModelError
from mechanisms import slider_crank

FEWEST = 4  # rounds of each thread, also on a busy machine
MOST = 200  # answers of each kind that are computed again by one thread
LENGTHS = (0.08, 0.1, 0.12, 0.15)


def engine():
    m = slider_crank()
    m.drive("motor", m["main"], 0.4)
    return m


def at_lengths(m):
    """A state of a mechanism for each length of the crank."""
    found = {}
    for radius in LENGTHS:
        other = m.copy()
        other["radius"].value = radius
        found[radius] = other.assemble().state
    return found


def dragged(m, state):
    session = m.session(state)
    session.grasp(m["rod"], (0.1, 0, 0)).target = (0.2, 0.1, 0.0)
    for _ in range(3):
        session.step()
    return session.state.coordinates


def reads():
    """Mechanisms whose structure stays, and analyses of them at the values of states: functions by a name."""
    driven, loose = engine(), engine()
    loose.remove("motor")
    loose.spring("gas", loose["guide"], stiffness=10.0, rest=0.35)
    verbs = {
        "assemble": lambda m, state: m.assemble(state).state.coordinates,
        "assemble free": lambda m, state: m.assemble(state, free=["radius"]).state.coordinates,
        "assemble by joints": lambda m, state: m.assemble(state, formulation="relative").state.coordinates,
        "assemble many": lambda m, state: m.assemble_many([state] * 3).coordinates,
        "move": lambda m, state: m.move((0.0, 0.3, 0.6), state).states[-1].coordinates,
        "diagnose": lambda m, state: m.diagnose(state).dof,
        "sensitivity": lambda m, state: m.sensitivity(state, [m["guide"]]).matrix,
        "simulate": lambda m, state: m.simulate(0.01, state, step=0.001).states[-1].coordinates,
        "equilibrium": lambda m, state: m.equilibrium(state).state.coordinates,
        "rates": lambda m, state: m.solve_rates(state, {"main": 1.0}).velocities,
        "session": dragged,
    }
    jobs = {}
    for k, (name, verb) in enumerate(verbs.items()):
        m = driven if k < 7 else loose
        for radius, state in at_lengths(m).items():
            jobs[name, radius] = partial(verb, m, state)
    return (driven, loose), jobs


class Crew:
    """Threads at work on one mechanism until a time; ``failed``: exceptions and wrong answers of all of them."""

    def __init__(self, seconds, folder):
        self.steady, self.jobs = reads()
        self.right = {key: job() for key, job in self.jobs.items()}  # by one thread; kernels are loaded, too
        self.m, self.folder, self.end = engine(), folder, time.monotonic() + seconds
        self.failed, self.counts, self.again = [], {}, {"assemble": [], "copy": []}

    def run(self):
        works = (self.edit, self.edit, self.assemble, self.move, self.copy, self.save, self.read, self.read)
        threads = [threading.Thread(target=self.repeat, args=(k, work)) for k, work in enumerate(works)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name, pairs in self.again.items():
            if any(not np.array_equal(one(), found) for one, found in pairs):
                self.failed.append(f"{name}: one thread has another answer")

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
        state, system = found.state, found._system
        pin, wrist = state["rod"].position, state["piston"].position
        radius = float(np.linalg.norm(pin))
        if not found.ok or min(abs(radius - one) for one in LENGTHS) > 1e-12:
            self.failed.append(f"assemble: {found.status}, radius {radius}")
        if abs(np.linalg.norm(np.subtract(wrist, pin)) - 0.3) > 1e-11:
            self.failed.append("assemble: ok with open joints")
        if len(self.again["assemble"]) < MOST:
            options = cd.AssemblyOptions()
            self.again["assemble"].append(
                (lambda: assemble.assemble(system, None, None, options).state.coordinates, state.coordinates.copy())
            )

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

    def read(self, number, rng):
        """Several threads read one mechanism at values of states, while its drawn values change: the same bits."""
        for m in self.steady:
            m["radius"].value = rng.choice(LENGTHS)
        key = rng.choice(list(self.jobs))
        if not np.array_equal(self.jobs[key](), self.right[key]):
            self.failed.append(f"{key}: one thread has another answer")

    def copy(self, number, rng):
        """A copy is of one moment: its joints have their bodies, and it assembles as in one thread."""
        made = self.m.copy()
        for joint in made.joints.values():
            if any(made.bodies.get(body.name) is not body for body in joint.bodies if body is not made.ground):
                self.failed.append(f"copy: joint {joint.name!r} without its body")
        found = made.assemble()
        if len(self.again["copy"]) < MOST:
            self.again["copy"].append((lambda: made.assemble().state.coordinates, found.state.coordinates.copy()))

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


def in_threads(*works):
    """Run functions at the same time, with changes of threads within an edit; the errors that they raise."""
    interval, failed = sys.getswitchinterval(), []

    def run(work):
        try:
            work()
        except Exception as error:  # whatever it is, the test judges it
            failed.append(error)

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=run, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    return failed


def test_no_thread_takes_back_the_edit_of_another():
    """Each thread sets a parameter and attaches shapes to one body: the values and the mass of all of them remain."""
    m, rounds = engine(), 150
    names = [f"p{k}" for k in range(3)]
    for name in names:
        m.parameter(name, 0.0)
    plate = m.body("plate")

    def edit(name):
        for k in range(1, rounds + 1):
            m[name].value = float(k)
            plate.attach(cd.shapes.box(0.1, 0.1, 0.1), density=1000.0)
            assert m[name].value == k

    assert in_threads(*[partial(edit, name) for name in names]) == []
    assert [m[name].value for name in names] == [rounds] * 3
    assert len(plate.attachments) == 3 * rounds and plate.mass == pytest.approx(3 * rounds)


@pytest.mark.parametrize("other", ["add", "remove"])
def test_an_edit_of_another_thread_is_made_before_or_after_and_not_within(other):
    """While a driver is added, its function is called; another thread then takes the name, or removes the joint."""
    m, failed = engine(), []
    m.remove("motor")
    edits = {"add": lambda: m.body("new"), "remove": lambda: m.remove("main", joints=True)}
    thread = threading.Thread(target=lambda: failed.extend(in_threads(edits[other])))

    def ramp(t):
        if thread.ident is None:
            thread.start()
            thread.join(0.3)
        return 2.0 * t

    m.drive("new", m["main"], ramp)
    thread.join()
    if other == "add":
        assert "there is a joint of that name" in str(failed) and "new" in m.joints and "new" not in m.bodies
    else:
        assert failed == [] and "new" not in m and "main" not in m


def test_a_joint_without_its_body_is_refused_before_a_kernel_reads_it():
    m = engine()
    for name, joint in (("rod", "pin"), ("piston", "wrist")):  # a number in between, and the largest one
        other = m.copy()
        del other._model.bodies[name]
        other._model.edits += 1
        with pytest.raises(ModelError, match=f"'{joint}' refers to a body or an angle that is not in the mechanism"):
            other.assemble()
