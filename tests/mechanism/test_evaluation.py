"""An evaluation assigns nothing to the mechanism, and is not disturbed by what others do to it in the meantime."""

import threading
import time

import numpy as np
import pytest

import cardan as cd
from cardan.errors import ModelError

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
LENGTH, OTHER = 0.3, 0.22  # [m] of the crank: the drawn one, and that of a state
TIMES = np.linspace(0.0, 0.5, 6)
SECONDS = 1.0  # of a loop of threads


def slider_crank(turn=lambda t: 0.4 + 2.0 * t, driven=True):
    """A slider-crank whose crank length is a parameter, with gravity and a spring on the slider."""
    m = cd.Mechanism("slider crank", gravity=(0.0, -9.81, 0.0))
    length = m.parameter("crank", LENGTH, lower=0.1)
    crank = m.body("crank part", orientation=(Z, 0.4), mass=1.0, inertia=np.eye(3))
    rod = m.body("rod part", position=(0.3, 0.1, 0.0), mass=0.5, inertia=np.eye(3))
    slider = m.body("slider part", position=(1.2, 0.0, 0.0), mass=2.0, inertia=np.eye(3))
    m.revolute("A", m.ground.frame(z=Z, x=X), crank.frame(z=Z, x=X))
    m.revolute("B", crank.frame((length, 0, 0), z=Z), rod.frame(z=Z))
    m.revolute("C", rod.frame((1.0, 0, 0), z=Z), slider.frame(z=Z))
    m.prismatic("slide", m.ground.frame(z=X, x=Y), slider.frame(z=X, x=Y))
    m.spring("spring", m.ground.point((2.0, 0, 0)), slider.point(), stiffness=40.0, rest=0.5)
    if driven:
        m.drive("motor", m["A"], turn)
    return m


def seen(m):
    """What a reader of the mechanism sees."""
    return m.description(), dict(m.system.values), m.system.floats.tobytes(), list(m), m["crank"].value


def other_state(m):
    """An assembled state with another crank length; the mechanism is as before."""
    copy = m.copy()
    copy["crank"].value = OTHER
    return copy.assemble().state


def at_length(m, length):
    copy = m.copy()
    copy["crank"].value = length
    return copy


def move(m, state, progress=None):
    return m.move(TIMES, state, progress=progress)


def simulate(m, state, progress=None):
    return m.simulate(0.5, state, times=TIMES, progress=progress)


def assemble_many(m, state, progress=None):
    return m.assemble_many([state] * 8, progress=None if progress is None else lambda done, total: progress(done))


VERBS = (move, simulate, assemble_many)


def figures(result):
    """The numbers of a result; of a motion or simulation also its forces."""
    if isinstance(result, cd.BatchResult):
        return result.coordinates, result.residual
    reactions = [result.reaction(name) for name in "ABC"]
    poses = [np.hstack([state.coordinates.ravel(), state.velocities.ravel()]) for state in result.states]
    return np.array(poses), *[one.force for one in reactions], result.effort("spring"), result.coordinate("slide")


def assert_same(one, two):
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("verb", VERBS)
def test_a_progress_function_sees_the_mechanism_as_it_is(verb):
    m = slider_crank()
    state, before, system = other_state(m), seen(m), m.system
    sights, states = [], []

    def look(_):
        sights.append(seen(m))
        states.append(m.assemble().state)

    result = verb(m, state, look)
    assert sights and all(sight == before for sight in sights)
    assert all(one == m.assemble().state for one in states)
    assert seen(m) == before and m.system is system
    assert_same(figures(result), figures(verb(at_length(m, OTHER), state)))


@pytest.mark.parametrize("at_other", (False, True))
@pytest.mark.parametrize("verb", VERBS)
def test_an_edit_by_a_progress_function_is_kept_and_does_not_disturb(verb, at_other):
    m = slider_crank()
    state = other_state(m) if at_other else m.assemble().state
    undisturbed = figures(verb(m.copy(), state))
    edited = []

    def edit(_):
        if not edited:
            edited.append(m.revolute("late", m.ground.frame(z=Z), m["rod part"].frame(z=Z)))
            m["crank"].value = 0.27
            m["slider part"].mass = 7.0
            m["crank part"].position = (0.0, 0.0, 0.01)
            m.gravity = (0.0, 0.0, -1.0)
            m.remove("spring")
            m.parameter("new", 1.0)

    result = verb(m, state, edit)
    assert edited
    assert m["late"] is edited[0] and m["crank"].value == 0.27 and m["slider part"].mass == 7.0
    assert m["crank part"].position == (0.0, 0.0, 0.01) and m.gravity == (0.0, 0.0, -1.0)
    assert "spring" not in m and m["new"].value == 1.0
    assert result.ok if not isinstance(result, cd.BatchResult) else result.ok.all()
    assert_same(figures(result), undisturbed)
    assert "late" in m.system.constraints and m.system.values == {"crank": 0.27, "new": 1.0}
    assert not m.assemble(restarts=0).ok  # the hinge that was added cannot be closed


def test_a_parameter_that_a_progress_function_removes_stays_in_the_running_verb():
    m = slider_crank()
    free = m.parameter("free", 0.1)
    m.distance("tie", m.ground.point((0, 0, 1.0)), m["rod part"].point((0, 0, 1.0)), 1.0 + 0.0 * free)
    m.remove("tie")
    state = m.assemble().state
    expected = m.copy().assemble_many([state] * 4, free=["crank"])

    def edit(done, total):
        if "free" in m:
            m.remove("free")

    found = m.assemble_many([state] * 4, free=["crank"], progress=edit)
    assert "free" not in m
    assert_same(figures(found), figures(expected))
    assert found.state(0).variables["free"] == 0.1


def all_verbs(m, state):
    """Every verb that takes a state."""
    return {
        "assemble": lambda: m.assemble(state),
        "assemble, free": lambda: m.assemble(state, free=["crank"], least="nearest"),
        "assemble_many": lambda: m.assemble_many([state, state]),
        "assemble_many, values": lambda: m.assemble_many(state, values={"crank": [0.2, 0.25]}),
        "move": lambda: m.move(TIMES, state),
        "simulate": lambda: m.simulate(0.1, state),
        "equilibrium": lambda: m.equilibrium(state),
        "linearize": lambda: m.linearize(m.equilibrium(state).state),
        "solve_rates": lambda: m.solve_rates(state),
        "session": lambda: m.session(state).step(),
        "dynamic session": lambda: m.session(state, mode="dynamic").step(),
        "open session": lambda: m.session(state, closed=False).step(),
        "range": lambda: m.session(state).range("slide"),
        "diagnose": lambda: m.diagnose(state),
        "constraint_equations": lambda: m.constraint_equations(state),
        "jacobian": lambda: m.jacobian(m["rod part"], state, by="drivers"),
        "sensitivity": lambda: m.sensitivity(state, ["slide", m["rod part"].point()]),
        "tolerances": lambda: m.tolerances(state, "slide", {"crank": 1e-3}, samples=50),
        "coordinate": lambda: m["slide"].coordinate(state),
    }


NAMES = tuple(all_verbs(None, None))


@pytest.mark.parametrize("name", NAMES)
def test_a_state_with_other_values_leaves_the_mechanism_as_it_was(name):
    sights, quiet = [], [True]

    def turn(t):  # drivers are called during most verbs
        if not quiet:
            sights.append(m["crank"].value)
            sights.append(m.parameters["crank"].value)
        return 0.4 + 2.0 * t

    m = slider_crank(turn)
    state, before, system, copy = other_state(m), seen(m), m.system, m.copy()
    quiet.clear()
    all_verbs(m, state)[name]()
    assert set(sights) <= {LENGTH}
    assert seen(m) == before == seen(copy) and m.system is system and m == copy


def test_a_state_with_values_that_are_not_valid_leaves_the_mechanism_as_it_was():
    m = slider_crank()
    state = other_state(m).with_variables({"crank": 0.05})
    before = seen(m)
    for name, verb in all_verbs(m, state).items():
        if name not in ("coordinate", "assemble_many", "assemble_many, values"):
            with pytest.raises(ModelError, match=r"0\.05"):
                verb()
        assert seen(m) == before


def test_verbs_of_several_threads_get_the_answers_of_one():
    m = slider_crank()
    states = [m.assemble().state, other_state(m)]
    assert not np.array_equal(states[0].coordinates, states[1].coordinates)

    def answers(state):
        return (
            m.assemble(state).state,
            m.assemble(),
            m.diagnose(state).text(),
            m["slide"].coordinate(state),
            m["slide"].coordinate(m.assemble().state),
            m["crank"].value,
            m.constraint_equations(state).value.tobytes(),
            m.move([0.0, 0.1], state).state,
            m.simulate(0.01, state).state,
            m.description(),
        )

    def plain(found):
        return [one.state if isinstance(one, cd.AssemblyResult) else one for one in found]

    expected = [plain(answers(state)) for state in states]
    wrong, rounds, end = [], [0, 0], time.monotonic() + SECONDS

    def work(k):
        while time.monotonic() < end and not wrong:
            try:
                if plain(answers(states[k])) != expected[k]:
                    wrong.append(k)
            except Exception as error:
                wrong.append(error)
            rounds[k] += 1

    threads = [threading.Thread(target=work, args=(k,)) for k in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and min(rounds) > 0


def test_a_thread_that_edits_gets_its_edits_and_never_a_mixture():
    """One thread sets the crank length; the answers of the other belong to one of the two lengths."""
    m = slider_crank()
    expected = {at_length(m, length).assemble().state.coordinates.tobytes() for length in (LENGTH, OTHER)}
    wrong, end = [], time.monotonic() + SECONDS

    def edit():
        while time.monotonic() < end and not wrong:
            for length in (OTHER, LENGTH):
                m["crank"].value = length
                if m["crank"].value != length or m.system.values != {"crank": length}:
                    wrong.append(length)

    def read():
        while time.monotonic() < end and not wrong:
            if m.assemble().state.coordinates.tobytes() not in expected:
                wrong.append("a mixture")

    threads = [threading.Thread(target=target) for target in (edit, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_result_belongs_to_the_mechanism_as_it_was():
    m = slider_crank()
    motion = m.move(TIMES)
    before = figures(m.copy().move(TIMES))
    m.gravity = (0.0, 0.0, 0.0)
    m["slider part"].mass = 9.0
    m["crank"].value = 0.25
    assert_same(figures(motion), before)


def test_an_interrupted_edit_is_made_or_not_made(monkeypatch):
    """A keyboard interrupt while the joint of a fixed body is made leaves the mechanism without the body."""
    m = slider_crank()
    before = seen(m)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("cardan.joints.making.make", interrupt)
    with pytest.raises(KeyboardInterrupt):
        m.body("late", fixed=True)
    with pytest.raises(KeyboardInterrupt):
        m.revolute("hinge", m.ground.frame(), m["rod part"].frame())
    assert seen(m) == before


def test_the_system_at_values_is_that_of_a_mechanism_drawn_there():
    m = slider_crank()
    before, system = seen(m), m.system
    found = m._model.system_at({"crank": OTHER})
    assert found == at_length(m, OTHER).system and found != system
    assert m._model.system_at({"crank": OTHER}) is found and m._model.system_at({}) is system
    assert seen(m) == before
