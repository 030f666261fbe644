"""Methods of integration and of stabilisation: order, drift, stiff loads, and what they say about a model."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import cardan as cd
from cardan.analysis import simulate

X, Y, Z = np.eye(3)
INERTIA = np.diag([0.1, 0.2, 0.3])


def chain(**options) -> cd.Mechanism:
    """A rod on a hinge, and another one on a ball joint."""
    m = cd.Mechanism("chain", gravity=(0.0, -9.81, 0.0))
    rod = m.body("rod", position=(-1.0, 0, 0), mass=1.0, inertia=INERTIA)
    tip = m.body("tip", position=(-2.0, 0, 0), mass=1.0, inertia=INERTIA, **options)
    m.revolute("A", m.ground.frame(z=Z), rod.frame((1.0, 0, 0), z=Z))
    m.spherical("B", rod.point((-0.5, 0, 0)), tip.point((0.5, 0, 0)))
    return m


def spun(m: cd.Mechanism) -> cd.State:
    return m.solve_rates(m.assemble().state, {"A": 1.5})


@pytest.fixture(scope="module")
def reference():
    m = chain()
    return m.simulate(1.0, spun(m), step=2e-4, method="dopri5", times=[1.0]).state.coordinates


ORDERS = {"adams": (5, 0.005), "rk4": (4, 0.01), "dopri5": (5, 0.02), "generalized_alpha": (2, 0.02)}


@pytest.mark.parametrize("method", ORDERS)
def test_each_method_converges_with_its_order(method, reference):
    order, step = ORDERS[method]
    m = chain()
    errors = [
        np.abs(m.simulate(1.0, spun(m), step=h, method=method, times=[1.0]).state.coordinates - reference).max()
        for h in (step, step / 2)
    ]
    found = np.log2(errors[0] / errors[1])
    assert order - 0.5 < found < order + 1.2, errors


def test_the_error_of_variable_steps_follows_the_tolerance(reference):
    m = chain()
    tolerances = np.array([1e-6, 1e-7, 1e-8, 1e-9, 1e-10])
    errors = [
        np.abs(m.simulate(1.0, spun(m), rtol=rtol, times=[1.0]).state.coordinates - reference).max()
        for rtol in tolerances
    ]
    slope = np.polyfit(np.log(tolerances), np.log(errors), 1)[0]
    assert 0.75 < slope < 1.25, errors
    assert (np.array(errors) < 20 * tolerances).all()


@pytest.mark.parametrize("method", ["adams", "rk4"])
def test_joints_drift_without_stabilisation_and_less_with_baumgarte(method):
    """Over 30 s: projection keeps joints to rounding, nothing lets them open more and more, Baumgarte bounds it."""
    m = chain()
    runs = {
        word: m.simulate(30.0, spun(m), step=5e-3, method=method, stabilization=word, **options)
        for word, options in (("projection", {}), ("none", {}), ("baumgarte", {"gain": 10.0}))
    }
    assert all(run.ok for run in runs.values()), [run.text() for run in runs.values()]
    drift = {word: run.drift for word, run in runs.items()}
    assert drift["projection"].max() <= 1e-12
    assert drift["none"].max() > 1e-8
    assert drift["none"][-1] > 5.0 * drift["none"][len(drift["none"]) // 10]  # it grows
    assert 1e-12 < drift["baumgarte"].max() < 0.1 * drift["none"].max()


def test_options_of_stabilisation_are_checked():
    m = chain()
    with pytest.raises(cd.ModelError, match="stabilization"):
        m.simulate(1.0, stabilization="springs")
    with pytest.raises(cd.ModelError, match="gain"):
        m.simulate(1.0, stabilization="baumgarte")
    with pytest.raises(cd.ModelError, match="gain"):
        m.simulate(1.0, step=1e-2, gain=3.0)
    with pytest.raises(cd.ModelError, match="explicit"):
        m.simulate(1.0, step=1e-2, method="generalized_alpha", stabilization="none")
    with pytest.raises(cd.ModelError, match="constant step"):
        m.simulate(1.0, method="generalized_alpha")
    m.limit("stop", m["A"], upper=1.0)
    with pytest.raises(cd.ModelError, match="'stop'"):
        m.simulate(1.0, step=1e-2, method="generalized_alpha")


def stiff() -> cd.Mechanism:
    """A bob on a stiff spring with some damping (1000 rad/s), swinging as a pendulum of 1 m (3 rad/s)."""
    m = cd.Mechanism("elastic pendulum", gravity=(0.0, 0.0, -9.81))
    m.body("bob", position=(0.6, 0.0, -0.8), mass=1.0, inertia=1e-2 * np.eye(3))
    m.spring("rod", m.ground.point(), m["bob"].point(), stiffness=1e6, rest=1.0, damping=200.0)
    return m


@pytest.mark.slow
def test_generalised_alpha_takes_large_steps_with_stiff_springs():
    """At ωh = 5 an explicit method cannot; the slow motion has an error of order two."""
    m = stiff()
    exact = m.simulate(1.0, rtol=1e-9, times=[1.0]).state.coordinates[0, :3]
    found = m.simulate(1.0, step=5e-3, method="generalized_alpha")
    assert found.ok, found.text()
    assert np.abs(found.state.coordinates[0, :3] - exact).max() < 2e-3
    half = m.simulate(1.0, step=2.5e-3, method="generalized_alpha")
    assert np.abs(half.state.coordinates[0, :3] - exact).max() < 6e-4
    assert not m.simulate(1.0, step=5e-3).ok


@pytest.mark.parametrize("step", [1e-3, 2e-3, 5e-3, 1e-2])
@pytest.mark.parametrize("stretch", [1e-3, 0.1])
def test_generalised_alpha_takes_steps_that_are_long_for_stiff_springs_and_dampers(stretch, step):
    """k = 1e6, c = 2e4, m = 1 from rest, stretched: x = A e^(−50 t) + B e^(−19950 t) about the equilibrium."""
    k, c = 1e6, 2e4
    m = cd.Mechanism("stiff slide", gravity=(0.0, 0.0, -9.81))
    block = m.body("block", position=(0.0, 0.0, stretch - 9.81 / k), mass=1.0, inertia=np.eye(3))
    m.prismatic("rail", m.ground.frame((0, 0, -1)), block.frame((0, 0, -1)))
    m.spring("spring", cd.coordinate(m.ground.frame(), block.frame(), "displacement"), stiffness=k, damping=c)
    found = m.simulate(0.2, step=step, method="generalized_alpha")
    assert found.ok, found.text()
    slow, fast = np.sort(np.roots([1.0, c, k]).real)[::-1]
    exact = stretch * (fast * np.exp(slow * found.times) - slow * np.exp(fast * found.times)) / (fast - slow)
    error = np.abs(found.positions("block")[:, 2] + 9.81 / k - exact)
    assert len(found.times) == round(0.2 / step) + 1 and error[-1] <= 1e-4 * stretch
    assert error.max() <= max(3e-3, 0.5 * stretch * (slow * step) ** 2)  # some errors of steps, and order two


def test_generalised_alpha_keeps_joints_drivers_and_rate_rows():
    m = cd.Mechanism("sled", gravity=(2.0, 0.0, -9.0))
    body = m.body("sled", mass=2.0, inertia=INERTIA)
    m.planar("floor", m.ground.frame(), body.frame())
    m.knife_edge("blade", body.frame(z=Y))
    m.knife_edge("again", body.frame(z=Y))  # redundant
    m.drive("heading", m["floor"].of("angle"), lambda t: 1.3 * t)
    errors = []
    for step in (2e-2, 1e-2):
        found = m.simulate(1.0, step=step, method="generalized_alpha")
        assert found.ok, found.text()
        assert found.drift.max() < 1e-12 and found.rate_drift.max() < 1e-11
        turn = 1.3 * found.times
        x, y = 2.0 / (2 * 1.3**2) * np.sin(turn) ** 2, 2.0 / (2 * 1.3**2) * (turn - 0.5 * np.sin(2 * turn))
        errors.append(np.abs(found.positions("sled")[:, :2] - np.column_stack([x, y])).max())
        both = found.reaction("blade").force + found.reaction("again").force
        side = 2.0 * 2.0 * 2.0 * np.sin(turn)
        assert np.abs(np.linalg.norm(both, axis=1) - np.abs(side))[5:].max() < 0.05
    assert errors[0] / errors[1] > 3.0


def test_reactions_and_accelerations_of_generalised_alpha_converge_with_order_two():
    m = chain()

    def run(**options):
        found = m.simulate(0.5, spun(m), times=[0.1, 0.3, 0.5], **options)
        return np.hstack([found.reaction("A").force, found.reaction("B").force, found.accelerations("tip")])

    exact = run(rtol=1e-10)
    errors = [np.abs(run(step=h, method="generalized_alpha") - exact).max() for h in (0.01, 0.005)]
    assert 3.5 < errors[0] / errors[1] < 4.6 and errors[1] < 1e-2, errors


def test_generalised_alpha_resumes_and_pickles(monkeypatch):
    monkeypatch.setattr(simulate, "CALLED_CHUNK", 8)
    m = chain()
    whole = m.simulate(0.2, spun(m), step=1e-2, method="generalized_alpha")
    stopped = m.simulate(0.2, spun(m), step=1e-2, method="generalized_alpha", max_seconds=1e-9)
    assert stopped.status is cd.SimulationStatus.TIME_LIMIT
    again = pickle.loads(pickle.dumps(stopped)).resume()
    assert len(stopped.times) < len(whole.times)
    assert again.ok and np.array_equal(again._results, whole._results)


# --- what a simulation says about its model ---------------------------------------------------------------------------


def test_a_shaky_structure_gets_a_note():
    """Two bars in one line: mobile to first order, rigid to second."""
    m = cd.Mechanism("bars", gravity=(0.0, -9.81, 0.0))
    for k in range(2):
        m.body(f"bar {k}", position=(k, 0, 0), mass=1.0, inertia=INERTIA, center=(0.5, 0, 0))
    m.revolute("A", m.ground.frame(z=Z), m["bar 0"].frame(z=Z))
    m.revolute("B", m["bar 0"].frame((1, 0, 0), z=Z), m["bar 1"].frame(z=Z))
    m.revolute("C", m["bar 1"].frame((1, 0, 0), z=Z), m.ground.frame((2, 0, 0), z=Z))
    assert m.diagnose().infinitesimal == 1
    assert any("shaky" in note for note in m.simulate(0.01, step=1e-3).notes)
    moving = cd.Mechanism("four-bar", gravity=(0.0, -9.81, 0.0))
    for name in m.bodies:
        moving.body(name, mass=1.0, inertia=INERTIA)
    moving.revolute("A", moving.ground.frame(), moving["bar 0"].frame())
    moving.revolute("B", moving["bar 0"].frame((1, 0, 0)), moving["bar 1"].frame((1, 0, 0)))
    moving.revolute("C", moving["bar 0"].frame((1, 0, 1)), moving["bar 1"].frame((1, 0, 1)))
    assert not any("shaky" in note for note in moving.simulate(0.01, step=1e-3).notes)


def test_drivers_that_share_their_effort_are_named():
    m = chain()
    m.drive("one", m["A"], lambda t: 0.1 * t)
    assert not m.simulate(0.01, step=1e-3).notes
    m.drive("two", m["A"], lambda t: 0.1 * t)
    found = m.simulate(0.01, step=1e-3)
    assert any("'one', 'two'" in note and "not unique" in note for note in found.notes)
    assert not found.reaction("one").unique
    np.testing.assert_allclose(found.effort("one"), found.effort("two"), atol=1e-9)


def test_simulations_under_different_loads_differ():
    def run(stiffness):
        m = chain()
        m.spring("s", m["A"], stiffness=stiffness)
        m.simulate(0.01, step=5e-3)
        return m.simulate(0.01, step=5e-3, times=[0.0])  # the same numbers, whatever the load

    assert run(2.0) == run(2.0)
    assert run(2.0) != run(3.0)


def test_a_tolerance_is_that_of_the_start():
    """Rounded data of joints that are redundant: refused at the default, and named where they would lock."""
    m = chain()
    m["tip"].position = (-2.0, 1e-7, 0.0)
    assert m.simulate(0.01, step=1e-3, tolerance=1e-6).ok
    four = cd.Mechanism("two hinges")
    lid = four.body("lid", mass=1.0, inertia=INERTIA)
    four.revolute("low", four.ground.frame(), lid.frame())
    four.revolute("high", four.ground.frame((0, 0, 1)), lid.frame((1e-6, 0, 1)))
    assert four.simulate(0.01, step=1e-3).status is cd.SimulationStatus.NOT_ASSEMBLED
    with pytest.raises(cd.ModelError, match=r"within the tolerance.*'high'"):
        four.simulate(0.01, step=1e-3, tolerance=1e-4)
    with pytest.raises(cd.ModelError, match="tolerance"):
        m.simulate(0.01, step=1e-3, tolerance=-1.0)
