"""The mechanisms with contacts of the gallery: their facts hold, in assembly and over their motions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import cardan as cd
from cardan.examples import CONTACTS, Example, ExampleError
from cardan.math import euler
from gallery import coin
from gallery.checks import without_drivers
from tests.examples.test_examples import NEAR

every_example = pytest.mark.parametrize("example", CONTACTS.values(), ids=CONTACTS)
SEEDS = 5


def disturbed(m: cd.Mechanism, seed: int) -> dict[str, cd.Pose]:
    """The sketch with every part moved and turned by a fifth of what joints alone are disturbed by."""
    rng = np.random.default_rng(seed)
    near = 0.2 * NEAR * min(1.0, m.system.length)
    return {
        name: cd.Pose(
            np.array(body.position) + rng.uniform(-near, near, 3),
            euler.retract(body.orientation, rng.uniform(-0.2 * NEAR, 0.2 * NEAR, 3)),
        )
        for name, body in m.bodies.items()
    }


@every_example
def test_the_sketch_assembles_and_its_facts_hold(example: Example) -> None:
    m = example.build()
    assert m.diagnose(m.state).residual > 1e-2
    result = m.assemble()
    assert result.ok, result.text()
    assert result.restarts == 0
    assert all(example.facts(m, result))
    found = m.diagnose(result.state)
    assert (found.dof, found.gruebler, len(found.redundant)) == (example.dof, example.gruebler, example.redundant)
    assert found.certain
    for name, joint in m.joints.items():
        if joint.kind.name == "contact":
            assert result.state.contact(name).status == "regular"
            assert abs(result.state.contact(name).gap) < 1e-11
    early = m.assemble(method="levenberg_marquardt", max_iterations=1)
    assert not early.ok
    with pytest.raises(ExampleError):
        example.script().check(m, early)


@every_example
def test_the_facts_hold_from_disturbed_sketches_in_every_formulation_by_poses(example: Example) -> None:
    m = example.build()
    formulations = ("manifold", "euler_parameters", "euler_angles", "virtual_rotation", "manifold")
    for seed, formulation in zip(range(SEEDS), formulations, strict=True):
        result = m.assemble(disturbed(m, seed), formulation=formulation)
        assert result.ok, f"{formulation}: {result.text()}"
        example.facts(m, result)


@every_example
def test_the_facts_hold_over_the_motion(example: Example) -> None:
    m = example.build()
    before = m.description()
    assert example.motion_facts(m, m.assemble())
    assert m.description() == before
    again = pickle.loads(pickle.dumps(m))
    assert m == m.copy() == again == example.build()
    assert again.assemble() == m.assemble()


@every_example
def test_velocities_are_the_differences_of_the_poses(example: Example) -> None:
    m = example.build()
    if not example.duration:
        return
    middle, step = 0.37 * example.duration, 1e-5 * example.duration
    before, now, after = m.move([0.0, middle - step, middle, middle + step]).states[1:]
    scale = max(1.0, float(np.abs(now.velocities).max()))
    v = (after.positions - before.positions) / (2 * step)
    omega = euler.difference(before.quaternions, after.quaternions) / (2 * step)
    assert np.abs(now.velocities[:, :3] - v).max() < 1e-6 * scale
    assert np.abs(now.velocities[:, 3:] - omega).max() < 1e-6 * scale


@pytest.mark.long
@every_example
def test_contacts_stay_closed_for_100_s(example: Example) -> None:
    """Without its drivers, under gravity; the barrel cam is driven, since a heavy slide passes its dead points in
    jumps, and the coin rolls steadily.  The strand of the belt runs off its end."""
    m = example.build() if example.name == "barrel_cam" else without_drivers(example.build())
    state = m.assemble().state
    start = coin.steady(state) if example.name == "coin" else m.solve_rates(state, {})
    step = 1e-3 if m.system.length < 0.3 else 2e-3
    simulation = m.simulate(100.0, start, step=step, times=np.linspace(0.0, 100.0, 1001))
    if example.name == "belt_drive":
        assert simulation.times[-1] > 0.5 and "contact 'on large' reaches the edge of a shape" in simulation.reason
    else:
        assert simulation.ok and simulation.times[-1] == 100.0, simulation.text()
    print(f"{example.name}: drift {simulation.drift.max():.1e} over {simulation.times[-1]:.4g} s")
    assert simulation.drift.max() <= 1e-11
    for state in simulation.states[:-1:10]:
        for name, joint in m.joints.items():
            if joint.kind.name == "contact":
                assert abs(state.contact(name).gap) <= 1e-11
                assert state.contact(name).status == "regular"
