"""The facts of the gallery hold from the sketch and from random starts, in every formulation."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
import gallery
from cardan import examples
from cardan.coordinates import formulations
from cardan.examples import REGISTRY, Example, ExampleError, random_start
from cardan.math import euler
from gallery import bent_chain, planar, scissor_lift, slider_crank
from gallery.checks import without_drivers
from layers import sampled

STARTS = 20
FEW_STARTS, MANY_BODIES = 2, 100  # mechanisms of MANY_BODIES or more bodies get FEW_STARTS
FRAMES = 9
NEAR = 0.1  # m and rad: disturbance of the sketch if the facts hold only in its assembly mode

every_example = pytest.mark.parametrize("example", REGISTRY.values(), ids=REGISTRY)


def disturbed(m: cd.Mechanism, seed: int) -> dict[str, cd.Pose]:
    """The sketch with every part moved and rotated a little."""
    rng = np.random.default_rng(seed)
    near = NEAR * min(1.0, m.system.length)
    return {
        name: cd.Pose(
            np.array(body.position) + rng.uniform(-near, near, 3),
            euler.retract(body.orientation, rng.uniform(-NEAR, NEAR, 3)),
        )
        for name, body in m.bodies.items()
    }


@pytest.mark.slow
def test_every_example_has_a_file_and_a_script() -> None:
    """And every file, and every script with a mechanism, is an example."""
    listed = examples.GALLERY | examples.CAD
    files = Path(examples.__file__).parent.glob("*.cardan.toml")
    assert {path.name.removesuffix(".cardan.toml") for path in files} == listed.keys()
    scripts = [path for one in gallery.__path__ for path in Path(one).glob("*.py")]
    assert {path.stem for path in scripts if "\ndef build(" in path.read_text(encoding="utf-8")} == listed.keys()
    for name, example in examples.installed().items():
        script = example.script()
        assert script.__name__ == f"gallery.{name}"
        assert name == example.name == example.build().name
        assert example.duration == getattr(script, "DURATION", 0.0)
        assert callable(script.check) and hasattr(script, "motion") >= bool(example.duration)


@pytest.mark.nojit
@every_example
def test_sketch_assembles_without_restarts_and_its_facts_hold(example: Example) -> None:
    m = example.build()
    result = m.assemble()
    assert result.ok, result.text()
    assert result.restarts == 0
    assert all(example.facts(m, result))
    found = m.diagnose(result.state)
    assert (found.dof, found.gruebler, len(found.redundant)) == (example.dof, example.gruebler, example.redundant)
    assert found.certain
    assert result.unconnected == ()


@every_example
def test_sketch_is_near_to_the_assembled_pose_but_not_in_it(example: Example) -> None:
    m = example.build()
    assert m.diagnose(m.state).residual > 1e-2
    state = m.assemble().state
    moved = np.linalg.norm(state.positions - m.state.positions, axis=1) / m.system.length
    rotated = 2.0 * np.arccos(np.minimum(1.0, np.abs((state.quaternions * m.state.quaternions).sum(axis=1))))
    assert moved.max() < 0.25
    assert rotated.max() < np.pi / 4


@every_example
def test_checks_fail_where_the_mechanism_is_not_assembled(example: Example) -> None:
    m = example.build()
    result = m.assemble(method="levenberg_marquardt", max_iterations=1)
    assert not result.ok
    with pytest.raises(ExampleError):
        example.script().check(m, result)
    with pytest.raises(ExampleError, match="is not assembled"):
        example.facts(m, result)


def test_facts_fail_where_the_counts_are_not_as_declared() -> None:
    wrong = Example("rsur", "declared wrongly", dof=2, gruebler=1)
    m = wrong.build()
    with pytest.raises(ExampleError, match="degrees of freedom is 1, expected 2"):
        wrong.facts(m, m.assemble())


@sampled("formulation", formulations.REGISTRY, 2)
@every_example
def test_facts_hold_from_random_starts(example: Example, formulation: formulations.Formulation) -> None:
    driven = example.build()
    free = without_drivers(driven)
    for seed in range(STARTS if len(driven.bodies) < MANY_BODIES else FEW_STARTS):
        m = driven if seed % 2 else free  # without drivers it may assemble in any pose
        result = m.assemble(random_start(m, seed), formulation=formulation)
        assert result.ok, f"seed {seed}: {result.text()}"
        if example.everywhere:
            example.facts(m, result)
        else:
            near = m.assemble(disturbed(m, seed), formulation=formulation)
            assert near.ok, f"seed {seed}: {near.text()}"
            example.facts(m, near)


@every_example
def test_facts_hold_over_the_motion(example: Example) -> None:
    m = example.build()
    before = m.description()
    result = m.assemble()
    assert bool(example.motion_facts(m, result)) == hasattr(example.script(), "motion")
    assert m.description() == before


@every_example
def test_driven_examples_can_be_moved_and_have_a_duration(example: Example) -> None:
    m = example.build()
    drivers = [joint for joint in m.joints.values() if joint.kind.name == "drive"]
    assert bool(drivers) == (example.duration > 0.0)
    if not drivers:
        return
    assert hasattr(example.script(), "motion")
    assert m.diagnose(m.assemble().state).undriven == 0
    motion = m.move(np.linspace(0.0, example.duration, FRAMES))
    assert motion.ok, motion.text()
    assert np.ptp([state.coordinates for state in motion.states], axis=0).max() > 0.01
    for k in (0, FRAMES // 2, FRAMES - 1):  # a state of the motion is assembled at its time
        again = m.assemble(motion.states[k])
        assert again.ok and again.iterations == 0, again.text()
        assert np.array_equal(again.state.coordinates, motion.states[k].coordinates)


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
    change = (after.velocities - before.velocities) / (2 * step)
    scale = max(1.0, float(np.abs(change).max()))
    assert np.abs(now.accelerations - change).max() < 1e-5 * scale


@every_example
def test_mechanisms_of_the_gallery_copy_compare_and_pickle(example: Example) -> None:
    m = example.build()
    again = pickle.loads(pickle.dumps(m))
    assert m == example.build() == m.copy() == again
    assert again.assemble() == m.assemble()


def test_random_starts_are_reproducible_and_far() -> None:
    m = REGISTRY["stewart_ups"].build()
    first, again, other = (m.state.moved(random_start(m, seed)) for seed in (7, 7, 8))
    assert first == again
    assert first != other
    assert m.diagnose(first).residual > 0.1
    with pytest.raises(cd.ModelError, match="seed of a random start is -1"):
        random_start(m, -1)


@pytest.mark.parametrize("pieces", [6, 7, 12, 20])
def test_bent_chain_of_any_length_has_five_freedoms_less_than_elbows(pieces: int) -> None:
    m = bent_chain.build(pieces)
    result = m.assemble()
    assert result.ok, result.text()
    assert bent_chain.check(m, result)
    assert m.diagnose(result.state).dof == pieces - 5


def test_bent_chain_refuses_too_few_pieces() -> None:
    with pytest.raises(cd.ModelError, match="5 elbows; it must have 6 or more"):
        bent_chain.build(5)


@pytest.mark.parametrize("stages", [1, 2, 6])
def test_scissor_lift_of_any_number_of_stages_has_one_freedom(stages: int) -> None:
    m = scissor_lift.build(stages)
    result = m.assemble()
    assert result.ok, result.text()
    assert scissor_lift.check(m, result)
    found = m.diagnose(result.state)
    assert (found.dof, found.gruebler) == (1, 2 - 3 * stages)


def test_scissor_lift_refuses_no_stage() -> None:
    with pytest.raises(cd.ModelError, match="0 stages; it must have 1 or more"):
        scissor_lift.build(0)


@pytest.mark.parametrize("name", [name for name, example in REGISTRY.items() if not example.everywhere])
def test_facts_of_one_assembly_mode_do_not_hold_in_other_modes(name: str) -> None:
    example = REGISTRY[name]
    m = example.build()
    others = 0
    for seed in range(STARTS):
        try:
            example.facts(m, m.assemble(random_start(m, seed)))
        except ExampleError:
            others += 1
    assert others > 0


def test_circles_intersect_on_the_requested_side() -> None:
    left, right = (planar.intersect_circles((0.0, 0.0), 5.0, (6.0, 0.0), 5.0, side) for side in (1.0, -1.0))
    assert np.allclose((left, right), ((3.0, 4.0), (3.0, -4.0)))
    assert planar.side((0.0, 0.0), (6.0, 0.0), left) == 1.0
    assert planar.side((0.0, 0.0), (6.0, 0.0), right) == -1.0
    with pytest.raises(ExampleError, match="do not intersect"):
        planar.intersect_circles((0.0, 0.0), 1.0, (3.0, 0.0), 1.0)


def test_slider_follows_its_closed_form_on_both_branches() -> None:
    m = without_drivers(slider_crank.build())
    sides = set()
    for seed in range(STARTS):
        state = m.assemble(random_start(m, seed)).state
        phi, x = m["A"].coordinate(state), m["slide"].coordinate(state)
        ahead, back = slider_crank.slider_position(phi), slider_crank.slider_position(phi, -1.0)
        assert min(abs(x - ahead), abs(x - back)) < 1e-9
        sides.add(abs(x - ahead) < abs(x - back))
    assert sides == {True, False}
