"""Laws of drivers and couplings by splines: SciPy's values, exact rates and accelerations, ranges."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.interpolate import CubicSpline, PchipInterpolator, PPoly, make_interp_spline

import cardan as cd
from cardan.constraints.spline import as_function

TURN = 2 * np.pi
ANGLES = np.linspace(0, TURN, 37)
LIFTS = 0.1 + 0.03 * np.cos(ANGLES) + 0.01 * np.sin(2 * ANGLES) + 0.002 * np.cos(5 * ANGLES)


def cam(coupling, driver):
    """A cam on a shaft and a follower on a slide."""
    m = cd.Mechanism("cam")
    shaft, follower = m.body("cam"), m.body("follower", position=(0, 0.1, 0))
    turn = m.revolute("shaft", m.ground, shaft, at=(0, 0, 0))
    lift = m.prismatic("slide", m.ground, follower, at=(0, 0, 0), axis=(0, 1, 0))
    m.couple("profile", turn, lift, coupling)
    m.drive("motor", turn, driver)
    return m, turn, lift


def difference(values, h):
    """Derivative at the middle of nine points."""
    weights = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
    return values @ weights / h


TIMES = np.array([0.0, 0.7, 1.5, 2.2, 3.0])
VALUES = np.array([0.0, 2.0, 5.0, 4.0, 9.0])
DRIVERS = {
    "table": (TIMES, VALUES),
    "cd.spline": cd.spline(TIMES, VALUES),
    "CubicSpline": CubicSpline(TIMES, VALUES, bc_type="natural"),
    "BSpline": make_interp_spline(TIMES, VALUES, k=4),
    "PPoly": PPoly(CubicSpline(TIMES, VALUES).c, TIMES),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DRIVERS)
def test_rates_and_accelerations_of_spline_drivers_and_couplings_are_those_of_differences(name):
    m, turn, lift = cam(cd.spline(ANGLES, LIFTS, periodic=True), DRIVERS[name])
    profile = CubicSpline(ANGLES, [*LIFTS[:-1], LIFTS[0]], bc_type="periodic")
    rng = np.random.default_rng(1)
    h = 5e-4
    checked = 0
    for t in rng.uniform(0.05, 2.95, 40):
        times = t + h * np.arange(-4, 5)
        if np.searchsorted(TIMES, times[0]) != np.searchsorted(TIMES, times[-1]):
            continue  # the third derivative jumps at a breakpoint: differences are not exact there
        motion = m.move(times)
        assert motion.ok, motion.text()
        theta = motion.coordinate(turn)
        if np.searchsorted(ANGLES, theta[0] % TURN) != np.searchsorted(ANGLES, theta[-1] % TURN):
            continue
        lifted = motion.coordinate(lift)
        assert np.abs(lifted - profile(theta % TURN)).max() <= 1e-12
        for values, body, k in ((theta, "cam", 5), (lifted, "follower", 1)):
            rates, accelerations = motion.velocities(body)[:, k], motion.accelerations(body)[:, k]
            assert abs(rates[4] - difference(values, h)) <= 1e-8
            assert abs(accelerations[4] - difference(rates, h)) <= 1e-8
        checked += 1
    assert checked >= 10


@pytest.mark.nojit
@pytest.mark.parametrize("name", DRIVERS)
def test_a_spline_and_its_derivatives_are_those_of_scipy(name):
    given = DRIVERS[name]
    theirs = CubicSpline(TIMES, VALUES) if name in ("table", "cd.spline") else given
    made = cd.spline(*given) if name == "table" else as_function(given)
    x = np.random.default_rng(2).uniform(0, 3, 200)
    for order in range(3):
        exact = theirs.derivative(order)(x) if order else theirs(x)
        assert np.abs(made.value(x, order) - exact).max() <= 1e-12 * np.abs(exact).max()
        assert made.value(float(x[0]), order) == made.value(x, order)[0]


def test_acceleration_of_a_coupling_is_exact_to_rounding():
    """q̈₂ = S′ q̈₁ + S″ q̇₁², with SciPy's own derivatives."""
    profile = CubicSpline(ANGLES, [*LIFTS[:-1], LIFTS[0]], bc_type="periodic")
    m, turn, _ = cam(profile, lambda t: 3.0 * t + 0.5 * t * t)
    motion = m.move(np.linspace(0, 4, 60))
    theta = motion.coordinate(turn)
    rate = 3.0 + motion.times
    rows = np.array([state.velocities[1, 1] for state in motion.states])
    seconds = np.array([state.accelerations[1, 1] for state in motion.states])
    assert np.abs(rows - profile(theta, 1) * rate).max() <= 1e-12
    assert np.abs(seconds - profile(theta, 1) - profile(theta, 2) * rate**2).max() <= 1e-11


def test_a_motion_ends_at_the_range_of_a_coupling_and_the_range_goes_with_it():
    m, turn, _ = cam(make_interp_spline([0, 1, 2, 3, 4], [0, 0.1, 0.2, 0.4, 0.3]), lambda t: 2 * t)
    motion = m.move(np.linspace(0, 3, 31))
    assert not motion.ok
    assert "profile.range" in motion.text()
    assert abs(motion.coordinate(turn)[-1] - 4) <= 0.2
    simulation = m.simulate(1.5, m.move([0, 0.01]).states[-1])
    assert simulation.ok, simulation.text()
    m.remove("profile")
    assert "profile.range" not in m


@pytest.mark.nojit
def test_splines_compare_by_value_and_are_pickled_with_the_mechanism():
    one, same, other = (cam((ANGLES, LIFTS + k * 1e-3 * np.sin(ANGLES)), 0.3)[0] for k in (0, 0, 1))
    assert one == same == pickle.loads(pickle.dumps(one)) == one.copy()
    assert one != other


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: cd.spline([0, 1, 1], [0, 1, 2]), "increase"),
        (lambda: cd.spline([0, 1, 2], [0, 1]), "same length"),
        (lambda: cd.spline([0, 1, 2], [0, 1, 2], periodic=True), "begins at 0 and ends at 2"),
        (lambda: cd.spline([0], [0]), "two or more"),
        (lambda: cam(make_interp_spline([0, 1, 2], [0, 1, 0], k=1), 0.0), "jump of its slope at 1"),
        (lambda: cam(lambda q: 2 * cd.spline(ANGLES, LIFTS)(q), 0.0), "pass the spline itself"),
        (lambda: cam(CubicSpline(ANGLES, np.column_stack([LIFTS, LIFTS])), 0.0), "one finite value"),
    ],
)
def test_wrong_splines_are_refused(call, text):
    with pytest.raises(cd.ModelError, match=text):
        call()


@pytest.mark.nojit
def test_a_driver_beyond_its_table_is_undefined():
    m, _, _ = cam((ANGLES, LIFTS), cd.spline([2.0, 3.0, 4.0], [0.1, 0.2, 0.3]))
    with pytest.raises(cd.ModelError, match="defined from 2 to 4, not at 0"):
        m.assemble(time=0.0)
    m.remove("motor")
    m.drive("motor", m["shaft"], PchipInterpolator(TIMES, VALUES))  # its slope is continuous


# -- past the end ------------------------------------------------------------------------------------------------------


def swinging(function):
    m = cd.Mechanism()
    arm = m.body("arm", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.revolute("A", m.ground.frame(), arm.frame())
    m.drive("motor", "A", function)
    return m


@pytest.mark.parametrize("given", ["spline", "function of a spline", "function"])
def test_a_motion_past_the_end_of_a_driver_keeps_what_was_computed(given):
    table = cd.spline([0.0, 1.0, 2.0], [0.0, 0.5, 1.5])
    functions = {"spline": table, "function of a spline": lambda t: 2 * table(t), "function": lambda t: (2 - t) ** 2.5}
    m = swinging(functions[given])
    near = 0.0 if given == "spline" else 1e-8  # a spline is evaluated a little beyond its end
    motion = m.move(np.linspace(0, 3, 31))
    assert motion.status == "undefined" and not motion.ok
    assert len(motion.times) == 21 and motion.times[-1] == 2.0
    assert "the drivers end at t = 2 s: driver 'motor'" in motion.reason
    until = m.move(np.linspace(0, 2, 21))
    assert until.ok and np.abs(motion.positions("arm") - until.positions("arm")).max() <= 1e-12
    assert np.abs(motion.rate("A") - until.rate("A")).max() <= 1e-9
    between = m.move([0.0, 1.0, 2.5])
    assert between.times.tolist() == [0.0, 1.0] and abs(between.state.time - 2.0) <= near
    for options in ({}, {"step": 1e-3}, {"step": 1e-2, "method": "rk4"}, {"step": 1e-2, "method": "generalized_alpha"}):
        run = m.simulate(3.0, **options)
        assert run.status == "undefined" and abs(run.times[-1] - 2.0) <= near, options
        assert "the drivers end at t = 2 s" in run.reason
        assert abs(run.coordinate("A")[-1] - until.coordinate("A")[-1]) <= 1e-6
        assert run.effort("motor").shape == run.times.shape


def test_a_motion_backwards_past_the_start_of_a_spline_keeps_what_was_computed():
    motion = swinging(cd.spline([0.0, 1.0, 2.0], [0.0, 0.5, 1.5])).move([1.0, 0.5, -1.0])
    assert motion.status == "undefined" and motion.times.tolist() == [1.0, 0.5] and motion.state.time == 0.0


def test_a_motion_that_begins_past_the_end_of_a_spline_is_refused():
    m = swinging(cd.spline([0.0, 1.0, 2.0], [0.0, 0.5, 1.5]))
    with pytest.raises(cd.ModelError, match=r"defined from 0 to 2, not at 2\.5"):
        m.move([2.5, 3.0])
    assert m.move([2.0, 3.0]).times.tolist() == [2.0]


def test_the_first_of_several_drivers_to_end_ends_the_motion():
    m = swinging(cd.spline([0.0, 1.0, 2.0], [0.0, 0.5, 1.5]))
    bob = m.body("bob", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.revolute("B", m["arm"].frame(), bob.frame())
    m.drive("second", "B", cd.spline([0.0, 1.0, 1.5], [0.0, 0.5, 1.5]))
    for result in (m.move(np.linspace(0, 3, 31)), m.simulate(3.0, times=np.linspace(0, 3, 31))):
        assert result.status == "undefined" and result.times[-1] == 1.5 and "driver 'second'" in result.reason


def test_a_stopped_simulation_past_the_end_of_a_driver_is_resumed_to_its_end():
    m = swinging(cd.spline([0.0, 1.0, 2.0], [0.0, 0.5, 1.5]))
    seen = []

    def interrupt(part):
        seen.append(part)
        if len(seen) == 1:
            raise KeyboardInterrupt

    stopped = m.simulate(3.0, step=1e-4, progress=interrupt)
    assert stopped.status == "interrupted"
    run = stopped.resume()
    whole = m.simulate(3.0, times=iter(np.linspace(0.0, 3.0, 30001)), step=1e-4)
    assert run.status == whole.status == "undefined" and run.times[-1] == whole.times[-1] == 2.0
    assert np.array_equal(run.positions("arm"), whole.positions("arm"))


def test_a_load_past_the_end_of_its_spline_keeps_what_was_computed():
    table = cd.spline([0.0, 1.0, 2.0], [0.0, 0.5, 1.5])
    m = swinging(0.0)
    m.remove("motor")
    m.actuator("servo", "A", lambda t, q, rate: table(t))
    run = m.simulate(3.0, step=1e-2)
    assert run.status == "not finite" and 1.9 <= run.times[-1] <= 2.0 and "servo" in run.reason
