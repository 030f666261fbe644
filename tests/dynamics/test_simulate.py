"""Integration in time: order, outputs, drivers, limits that stop, and runs that are stopped and continued."""

from __future__ import annotations

import math
import pickle
import threading

import numpy as np
import pytest

import cardan as cd
from cardan.analysis import simulate
from cardan.analysis.simulation import SimulationStatus

G = 9.81
BALL = np.diag([0.1, 0.1, 0.1])


def pendulum(inertia: float = 0.1) -> cd.Mechanism:
    m = cd.Mechanism("pendulum", gravity=(0, -G, 0))
    b = m.body("bob", center=(1, 0, 0), mass=1.0, inertia=inertia * np.eye(3))
    m.revolute("A", m.ground.frame(z=(0, 0, 1)), b.frame(z=(0, 0, 1)))
    return m


def crank() -> cd.Mechanism:
    """A closed loop of four bodies that are not in one plane."""
    from gallery import rsur

    m = rsur.build()
    for name in [name for name in m if getattr(getattr(m[name], "kind", None), "name", "") in ("drive", "limit")]:
        m.remove(name)
    for name in m.system.names:
        m[name].mass, m[name].inertia = 1.0, np.diag([0.1, 0.2, 0.25])
        m[name].center = (0.5, 0.1, 0.2)
    return m


def slide() -> cd.Mechanism:
    m = cd.Mechanism("slide", gravity=(0, 0, -G))
    b = m.body("b", position=(0, 0, 1), mass=1.0, inertia=BALL)
    m.limit("floor", m.prismatic("p", m.ground.frame(), b.frame()), lower=0.0)
    return m


@pytest.mark.parametrize(("method", "order"), [("adams", 4), ("rk4", 4), ("dopri5", 5)])
def test_the_order_of_convergence_is_that_of_the_method(method, order):
    m = pendulum()
    exact = m.simulate(1.0, rtol=1e-13).coordinate(m["A"])[-1]
    steps = (0.04, 0.02) if method == "dopri5" else (0.02, 0.01)
    errors = [abs(m.simulate(1.0, step=h, method=method).coordinate(m["A"])[-1] - exact) for h in steps]
    assert math.log2(errors[0] / errors[1]) > order - 0.35


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8, 1e-10])
def test_the_error_is_near_the_tolerance(rtol):
    m = crank()
    exact = m.simulate(1.0, rtol=1e-12).state.coordinates
    assert np.abs(m.simulate(1.0, rtol=rtol).state.coordinates - exact).max() < 3 * rtol


def test_outputs_between_steps_lie_on_the_motion_and_on_the_joints():
    m = crank()
    fine = m.simulate(1.0, rtol=1e-10, times=np.linspace(0.0, 1.0, 301))
    alone = m.simulate(1.0, rtol=1e-10, times=[0.37])
    assert len(fine.times) == 301
    assert fine.drift.max() < 1e-14
    between = m.simulate(0.37, rtol=1e-12).state.coordinates
    assert np.abs(alone.state.coordinates - between).max() < 1e-9
    assert fine.steps < 600


@pytest.mark.parametrize("arguments", [{"step": 1e-3}, {"rtol": 1e-9}, {"step": 2e-3, "method": "rk4"}])
def test_a_driven_mechanism_follows_its_driver(arguments):
    m = crank()
    joint = m[next(name for name in m if getattr(m[name], "kind", None) is not None)]
    start = joint.of("angle").value(m.assemble().state)
    m.drive("motor", joint, lambda t: start + 0.3 * cd.sin(2 * t))
    sim = m.simulate(1.0, **arguments)
    motion = m.move([0.0, 0.5, 1.0])
    assert sim.ok
    assert sim.drift.max() < 1e-13
    found, expected = sim.state, motion.states[-1]
    assert np.abs(found.coordinates - expected.coordinates).max() < 1e-12
    assert np.abs(found.velocities - expected.velocities).max() < 1e-11
    assert np.abs(found.accelerations - expected.accelerations).max() < 1e-9


def test_a_driver_with_a_condition_gives_the_same_as_one_without():
    name = next(name for name in crank() if getattr(crank()[name], "kind", None) is not None)
    start = crank()[name].of("angle").value(crank().assemble().state)
    found = []
    for function in (lambda t: start + 0.2 * t * t, lambda t: start + 0.2 * t * t if t < 9.0 else start):
        m = crank()
        m.drive("motor", m[name], function)
        found.append(m.simulate(0.5, step=1e-3).state.coordinates)
    a, b = found
    assert np.abs(a - b).max() < 1e-14


@pytest.mark.parametrize("arguments", [{"step": 1e-2}, {"rtol": 1e-8}, {"step": 1e-2, "method": "rk4"}])
def test_a_body_falls_on_a_stop_and_stays_there(arguments):
    sim = slide().simulate(1.0, **arguments)
    t = sim.times
    assert np.abs(sim.positions("b")[:, 2] - np.maximum(1.0 - 0.5 * G * t * t, 0.0)).max() < 1e-12
    ((time, limit, what),) = sim.events
    assert (limit, what) == ("floor", "reached")
    assert time == pytest.approx(math.sqrt(2.0 / G), abs=1e-12)


@pytest.mark.parametrize("arguments", [{"step": 1e-3}, {"rtol": 1e-9}])
def test_a_stop_is_left_where_it_would_pull(arguments):
    """A part on a seat that is shaken: it flies where the seat falls faster than gravity."""
    amplitude, w = 0.2, 10.0
    m = cd.Mechanism("shaker", gravity=(0, 0, -G))
    seat, part = m.body("seat", mass=1.0, inertia=BALL), m.body("part", position=(0, 0, 0.5), mass=1.0, inertia=BALL)
    table = m.prismatic("table", m.ground.frame(), seat.frame())
    m.limit("rest", m.prismatic("guide", seat.frame(), part.frame()), lower=0.5)
    m.drive("shake", table, lambda t: amplitude * (1.0 - cd.cos(w * t)))
    sim = m.simulate(0.4, **arguments)
    left = math.acos(-G / (amplitude * w * w)) / w
    height, speed = amplitude * (1.0 - math.cos(w * left)) + 0.5, amplitude * w * math.sin(w * left)
    t, z = sim.times, sim.positions("part")[:, 2]
    on_seat = amplitude * (1.0 - np.cos(w * t)) + 0.5
    flying = height + speed * (t - left) - 0.5 * G * (t - left) ** 2
    assert np.abs(z - np.where(t < left, on_seat, flying)).max() < 1e-10
    assert [event.what for event in sim.events] == ["reached", "left"]
    assert sim.events[1].time == pytest.approx(left, abs=1e-9)


def test_a_resumed_run_gives_the_bits_of_a_run_that_was_not_stopped(monkeypatch):
    for arguments in ({"step": 1e-3}, {"rtol": 1e-9, "times": np.linspace(0.0, 2.0, 777)}):
        whole = crank().simulate(2.0, **arguments)
        monkeypatch.setattr(simulate, "CHUNK", 100)
        part = crank().simulate(2.0, max_seconds=1e-9, **arguments)
        assert part.status is SimulationStatus.TIME_LIMIT
        assert 0 < len(part.times) < len(whole.times)
        for resumed in (part.resume(), pickle.loads(pickle.dumps(part)).resume()):
            assert resumed.ok
            assert np.array_equal(resumed._results, whole._results)
        monkeypatch.undo()


@pytest.mark.parametrize("arguments", [{"step": 1e-3}, {"rtol": 1e-8}, {"step": 1e-2, "method": "dopri5"}])
def test_a_stopped_run_is_inspected_and_continued_with_progress(arguments, monkeypatch):
    """Its results are the first ones of the whole run, with reactions and energies; it stops at an exception too."""
    whole = crank().simulate(1.0, **arguments)
    monkeypatch.setattr(simulate, "CHUNK", 60)
    seen: list[float] = []

    def stop(done):
        seen.append(done)
        if done > 0.4:
            raise KeyboardInterrupt

    m = crank()
    part = m.simulate(1.0, progress=stop, **arguments)
    assert part.status is SimulationStatus.INTERRUPTED
    count = len(part.times)
    assert 0.3 * len(whole.times) < count < len(whole.times)
    assert np.array_equal(part._results, whole._results[:count])
    joint = next(iter(m.joints))
    assert np.array_equal(part.reaction(joint).force, whole.reaction(joint).force[:count])
    assert np.array_equal(part.energy.total, whole.energy.total[:count])
    again = part.resume(progress=seen.append)
    assert again.ok and np.array_equal(again._results, whole._results)
    assert len(part.times) == count  # the stopped run is as it was
    assert seen[0] > 0.0 and seen[-1] == pytest.approx(1.0, abs=1e-12) and seen == sorted(seen)


def test_two_threads_and_two_runs_give_the_same_bits():
    m = crank()
    first = m.simulate(0.5, step=1e-3)
    found: list[cd.State] = []
    threads = [threading.Thread(target=lambda: found.append(m.simulate(0.5, step=1e-3).state)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert all(np.array_equal(state.coordinates, first.state.coordinates) for state in found)


@pytest.mark.nojit
def test_kernels_stay_within_their_arrays():
    m = slide()
    for arguments in ({"step": 0.05}, {"rtol": 1e-3}, {"step": 0.05, "method": "dopri5"}):
        sim = m.simulate(0.5, **arguments)
        assert sim.ok
        assert abs(sim.positions("b")[-1, 2]) < 1e-12


def test_errors_name_the_argument_or_body_that_is_wrong():
    m = pendulum()
    for arguments, words in (
        ({"duration": -1.0}, "duration"),
        ({"duration": 1.0, "step": 0.1, "rtol": 1e-3}, "one of them"),
        ({"duration": 1.0, "method": "euler"}, "adams"),
        ({"duration": 1.0, "method": "rk4"}, "constant step"),
        ({"duration": 1.0, "times": [0.5, 0.2]}, "increase"),
        ({"duration": 1.0, "progress": "yes"}, "progress is 'yes'; it must be a function"),
        ({"duration": 1.0, "times": [0.5, 2.0]}, "within"),
    ):
        with pytest.raises(cd.ModelError, match=words):
            m.simulate(**arguments)
    m.body("loose")
    with pytest.raises(cd.ModelError, match=r"'loose' has no mass \(0 kg\)"):
        m.simulate(1.0)


def test_notes_name_assumed_inertia_and_changed_velocities():
    m = cd.Mechanism("plain", gravity=(0, -G, 0))
    b = m.body("bob", center=(1, 0, 0), mass=1.0)
    m.revolute("A", m.ground.frame(z=(0, 0, 1)), b.frame(z=(0, 0, 1)))
    sim = m.simulate(0.1, m.state.with_rates(np.array([[1.0, 0, 0, 0, 0, 2.0]])))
    assert "bob" in sim.text()
    assert "contradict" in sim.text()


@pytest.mark.parametrize("size", [1e-6, 0.1, 1.0, 1e5])
def test_a_pendulum_on_the_origin_swings_alike_in_every_size_and_direction(size):
    """All its joint points are in one place: its size is the distance of its centre of mass."""
    steps = set()
    for angle in np.linspace(0.1, 3.0, 9):
        m = cd.Mechanism("pendulum", gravity=(0, 0, -G * size))
        turned = (math.cos(angle / 2), 0, math.sin(angle / 2), 0)
        b = m.body("bob", center=(0, 0, -size), mass=1.0, inertia=0.1 * size * size * np.eye(3), orientation=turned)
        m.revolute("A", m.ground.frame(z=(0, 1, 0)), b.frame(z=(0, 1, 0)))
        sim = m.simulate(1.0)
        assert sim.ok, sim.text()
        energy = sim.energy
        assert np.ptp(energy.total) < 1e-5 * max(energy.kinetic.max(), 1e-300)
        steps.add(sim.steps)
    assert max(steps) < 130


def guided() -> tuple[cd.Mechanism, cd.Joint]:
    m = cd.Mechanism("guided")
    return m, m.prismatic("p", m.ground.frame(), m.body("b", mass=1.0, inertia=np.eye(3)).frame())


def test_a_short_pulse_is_not_stepped_over():
    m, p = guided()
    m.gravity = (0, 0, 0)
    m.actuator("pulse", p, lambda t, q, v: 100.0 if 0.5 <= t < 0.51 else 0.0)
    for arguments in ({"rtol": 1e-9}, {"max_step": 2e-3}):
        assert m.simulate(1.0, **arguments).velocities("b")[-1, 2] == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    ("force", "is_called"),
    [
        (lambda t, q, v: 10.0 if t >= 0.50037 else 0.0, True),
        (lambda t, q, v: 5.0 + 5.0 * cd.sqrt((t - 0.50037) ** 2) / (t - 0.50037), False),
    ],
)
def test_the_error_at_a_jump_of_a_force_follows_the_tolerance_and_a_large_step_is_refused(force, is_called):
    """10 N from t = .50037 s on, within a step."""
    m, p = guided()
    m.gravity = (0, 0, 0)
    assert m.actuator("pulse", p, force).is_called is is_called
    late = 1.0 - 0.50037
    for rtol in (1e-5, 1e-7, 1e-9):
        sim = m.simulate(1.0, rtol=rtol)
        assert sim.ok and sim.velocities("b")[-1, 2] == pytest.approx(10.0 * late, abs=1000 * rtol)
        assert sim.positions("b")[-1, 2] == pytest.approx(5.0 * late**2, abs=500 * rtol)
    sim = m.simulate(1.0, step=1e-3)
    assert sim.ok and abs(sim.velocities("b")[-1, 2] - 10.0 * late) < 10.0 * sim.error
    sim = m.simulate(1.0, step=1e-2)
    assert sim.status is SimulationStatus.STEP_TOO_LARGE and "use a smaller step" in sim.reason
    assert np.abs(sim.positions("b")[sim.times < 0.49]).max() < 1e-12


def test_a_driver_may_leave_a_limit_but_not_push_against_it():
    m, p = guided()
    m.limit("end", p, lower=0.0)
    m.drive("d", p, lambda t: t)
    sim = m.simulate(1.0)
    assert sim.ok and not sim.events
    assert sim.positions("b")[-1, 2] == pytest.approx(1.0, abs=1e-12)
    m, p = guided()
    m.limit("end", p, upper=0.6)
    m.drive("d", p, lambda t: t)
    sim = m.simulate(1.0)
    assert sim.status is SimulationStatus.LIMIT
    assert sim.times[-1] == pytest.approx(0.6, abs=0.02)


STEPS = ({}, {"step": 1e-3}, {"step": 1e-3, "method": "rk4"})


@pytest.mark.parametrize("options", STEPS)
@pytest.mark.parametrize(
    ("value", "time"),
    [
        (lambda t: t, 1.0),
        (lambda t: 1.5 * cd.sin(t), math.asin(1.0 / 1.5)),
        (lambda t: 1.0 + t, 0.0),
        (lambda t: 1.0 + t**2, 0.0),
    ],
)
def test_a_driver_that_pushes_against_a_limit_is_named_at_once(value, time, options):
    m = pendulum()
    m.limit("end", m["A"], upper=1.0)
    m.drive("d", m["A"], value)
    sim = m.simulate(3.0, **options)
    assert sim.status is SimulationStatus.LIMIT
    assert "driver 'd' pushes against limit 'end' (upper) at t = " in sim.reason
    ((reached, limit, what),) = sim.events
    assert (limit, what) == ("end", "reached")
    assert reached == pytest.approx(time, abs=1e-11)
    assert sim.state.time == pytest.approx(time, abs=2e-6 if time == 0.0 else 1e-11)
    assert sim.state.coordinate(m["A"]) == pytest.approx(1.0, abs=1e-11)


@pytest.mark.parametrize("value", [cd.sin, lambda t: 1.0 - t**2, lambda t: 1.0 + 0.0 * t])
def test_a_driver_that_touches_a_limit_does_not_push(value):
    m = pendulum()
    m.limit("end", m["A"], upper=1.0)
    m.drive("d", m["A"], value)
    for options in STEPS:
        assert m.simulate(3.0, **options).ok


@pytest.mark.parametrize("options", STEPS)
def test_a_driver_pushes_through_a_free_part_only_where_that_part_is_stopped_too(options):
    """A free block falls onto a driven one, which lifts it until a ceiling stops both; a third block is free."""
    m = cd.Mechanism("blocks", gravity=(0, 0, -1))
    heights = {"a": 0.0, "b": 1.0, "c": 0.0}
    a, b, c = (m.body(name, position=(0, 0, z), mass=1.0, inertia=BALL) for name, z in heights.items())
    p = m.prismatic("p", m.ground.frame(), a.frame())
    m.limit("gap", m.prismatic("q", a.frame(), b.frame()), lower=0.4)
    m.cylindrical("r", a.frame(), c.frame())
    m.limit("ceiling", cd.coordinate(m.ground.frame(), b.frame(), "z"), upper=1.5)
    m.drive("d", p, lambda t: t)
    sim = m.simulate(3.0, **options)
    assert sim.status is SimulationStatus.LIMIT
    assert "driver 'd' pushes against limits 'gap' (lower), 'ceiling' (upper) at t = 1.1 s" in sim.reason
    assert [(event.limit, event.what) for event in sim.events] == [("gap", "reached"), ("ceiling", "reached")]
    assert [event.time for event in sim.events] == pytest.approx([math.sqrt(2.2) - 1.0, 1.1], abs=1e-7)
    assert sim.state.time == pytest.approx(1.1, abs=1e-9)


@pytest.mark.parametrize("bound", [0.0, 0.5])
def test_a_limit_with_equal_bounds_is_an_equation(bound):
    m, p = guided()
    m.limit("held", p, lower=bound, upper=bound)
    sim = m.simulate(1.0)
    assert sim.ok and not sim.events
    assert np.abs(sim.positions("b")[:, 2] - bound).max() < 1e-12
    assert sim.effort("held") == pytest.approx(G, rel=1e-12)


def test_outputs_may_be_few_and_times_negative():
    m, _ = guided()
    assert m.simulate(1.0, times=[0.0]).ok
    state = m.system.state(time=-2.0)
    sim = m.simulate(1.0, state, times=[-1.5, -1.0])
    assert sim.ok and sim.positions("b")[-1, 2] == pytest.approx(-0.5 * G, rel=1e-12)


def test_velocities_belong_to_bodies_whatever_their_order():
    def pair(names):
        m = cd.Mechanism("pair", gravity=(0, 0, 0))
        for name in names:
            m.body(name, mass=1.0, inertia=np.eye(3))
        return m

    start = pair("ab").state.with_rates([[1, 0, 0, 0, 0, 0], [0, 2, 0, 0, 0, 0]])
    sim = pair("ba").simulate(1.0, start)
    assert np.abs(sim.positions("a")[-1] - (1, 0, 0)).max() < 1e-12
    assert np.abs(sim.positions("b")[-1] - (0, 2, 0)).max() < 1e-12


def test_rates_of_a_state_are_copied_and_checked():
    m, _ = guided()
    given = np.zeros((1, 6))
    m.state.with_rates(given)
    given[0, 0] = 1.0
    for bad in ({"b": 1.0}, np.zeros(6), [["x"] * 6]):
        with pytest.raises(cd.ModelError, match="velocities of a state"):
            m.state.with_rates(bad)
    for arguments in ({"times": 5}, {"step": 1e-9}, {"step": 1e-320}):
        with pytest.raises(cd.ModelError, match="times"):
            m.simulate(1.0, **arguments)


@pytest.mark.parametrize("options", [{}, {"step": 0.01}, {"step": 0.01, "method": "rk4"}], ids=str)
def test_a_part_that_rests_on_its_stop_has_its_push_from_the_first_output_on(options):
    """The first output was that without the stop: the acceleration of a free fall, and no push."""
    m = cd.Mechanism()
    part = m.body("part", mass=2.0, inertia=np.eye(3))
    slide = m.prismatic("slide", m.ground.frame(), part.frame())
    m.limit("floor", slide, lower=0.0)
    found = m.simulate(0.1, **options)
    assert found.ok and [event.what for event in found.events] == ["reached"]
    assert np.abs(found.accelerations(part)).max() < 1e-12
    assert np.abs(found.effort("floor") - 2 * 9.81).max() < 1e-12


def test_cars_that_meet_move_on_together_and_each_limit_is_reached_once():
    """Inelastic: momentum is kept.  Cars in contact at one speed do not push; this is not an event.

    The search for the second impact ended at the first limit, in ever shorter steps.
    """
    m = cd.Mechanism(gravity=(0, 0, 0))
    cars = [m.body(f"car {k}", position=(0, 0, k), mass=k + 1.0, inertia=np.eye(3)) for k in range(3)]
    for k, car in enumerate(cars):
        m.prismatic(f"rail {k}", m.ground.frame((0, 0, k)), car.frame())
    for k in range(2):
        m.limit(f"buffer {k}", cd.coordinate(cars[k].frame(), cars[k + 1].frame(), "displacement"), lower=0.5)
    found = m.simulate(2.0, m.solve_rates(m.state, {"rail 0": 3.0, "rail 1": 0.0, "rail 2": 0.0}), rtol=1e-9)
    assert found.ok, found.text()
    assert [(event.limit, event.what) for event in found.events] == [("buffer 0", "reached"), ("buffer 1", "reached")]
    assert [event.time for event in found.events] == pytest.approx([1 / 6, 2 / 3], abs=1e-9)
    assert [found.velocities(car)[-1, 2] for car in cars] == pytest.approx([0.5] * 3, abs=1e-12)


def test_a_rope_becomes_taut_and_swings():
    """A limit of a distance: free fall, then the velocity across the rope remains; the rope pulls."""
    m = cd.Mechanism()
    bob = m.body("bob", position=(0.6, 0, 0), mass=2.0, inertia=np.eye(3))
    m.limit("rope", cd.coordinate(m.ground.point(), bob.point(), "distance"), upper=1.0)
    found = m.simulate(2.0, rtol=1e-10)
    assert found.ok, found.text()
    taut = np.sqrt(1.6 / 9.81)
    assert [(event.limit, event.what) for event in found.events] == [("rope", "reached")]
    assert found.events[0].time == pytest.approx(taut, abs=1e-10)
    after = found.times > taut
    z, speed = found.positions(bob)[after, 2], np.linalg.norm(found.velocities(bob)[after, :3], axis=1)
    assert np.abs(speed**2 / 2 + 9.81 * (z + 0.8) - (0.6 * 9.81 * taut) ** 2 / 2).max() < 1e-7
    assert np.abs(found.effort("rope")[after] + 2 * (speed**2 - 9.81 * z)).max() < 1e-6


@pytest.mark.parametrize("options", [{}, {"step": 0.01}], ids=str)
def test_a_ball_that_rolls_against_a_wall_stays_there(options):
    """Nothing pushes it against the wall after the impact; rounding is no pull, so that the stop is not left."""
    r = 0.1
    m = cd.Mechanism()
    ball = m.body("ball", position=(0, 0, r), mass=2.0, inertia=0.8 * r * r * np.eye(3))
    m.contact("on", m.ground.attach(cd.geometry.plane()), ball.attach(cd.geometry.sphere(r)), mode="roll")
    m.limit("wall", cd.coordinate(m.ground.frame(), ball.frame(), "x"), upper=1.0)
    found = m.simulate(2.0, m.assemble().state.with_rates(np.array([[1.0, 0, 0, 0, 1 / r, 0]])), **options)
    assert found.ok, found.text()
    assert [event.what for event in found.events] == ["reached"]
    assert found.events[0].time == pytest.approx(1.0, abs=1e-10)
    assert np.abs(found.velocities(ball)[-1]).max() < 1e-12


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    "options", [{"rtol": 1e-6}, {"rtol": 1e-3}, {"step": 0.1}, {"step": 0.1, "method": "rk4"}], ids=str
)
def test_a_stop_is_reached_also_by_a_part_that_would_return_within_the_step(options, sign):
    """x = sin t passes 0.9995 for 0.06 s; the part loses its velocity there, and swings back as 0.9995 cos."""
    m = cd.Mechanism(gravity=(0, 0, 0))
    part = m.body("part", mass=1.0, inertia=np.eye(3))
    slide = m.prismatic("slide", m.ground.frame(), part.frame())
    m.spring("coil", slide, stiffness=1.0)
    m.limit("stop", slide, **({"upper": 0.9995} if sign > 0 else {"lower": -0.9995}))
    found = m.simulate(20.0, m.solve_rates(m.assemble().state, {"slide": sign}), **options)
    assert found.ok, found.text()
    (reached, left), bar = found.events, 1e-2 if options.get("rtol") == 1e-3 else 1e-4
    at = np.arcsin(0.9995)
    assert (reached.what, left.what) == ("reached", "left") and reached.time == pytest.approx(at, abs=bar)
    x = sign * found.coordinate(slide)
    assert x.max() <= 0.9995 + 1e-9
    late = found.times > at
    assert np.abs(x[late] - 0.9995 * np.cos(found.times[late] - at)).max() < 2 * bar
