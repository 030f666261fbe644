"""Sessions that begin with open joints: IDLE only where the verdict and equations that are not ours say so."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import examples
from fuzz import judge
from fuzz.case import Case, build
from fuzz.generate import generate
from fuzz.parameters import with_values
from layers import sampled

SEED = 11
CASES = 150
LONG_CASES = 1000
MOST_STEPS = 200


def stepped(m: cd.Mechanism, start: Any = None, **options: Any) -> tuple[cd.Session, bool]:
    """The session at its end, and whether it says that all is met; it ends where it is stuck, or after 200 cycles."""
    session = m.session(start, closed=False, **options)
    for _ in range(MOST_STEPS):
        status = session.step()
        if status != cd.SessionStatus.MOVING:
            return session, status == cd.SessionStatus.IDLE
    return session, False


def false_claims(case: Case) -> list[str]:
    """What is wrong where the session says that the case is met."""
    m = build(case)
    start = None if case.start is None else {name: tuple(pose) for name, pose in case.start.items()}
    formulation = case.options.get("formulation", "manifold")
    session, met = stepped(m, start, formulation=formulation)
    if not met:
        return []
    state = session.state
    case = with_values(case, state.variables)  # no parameter is free in a session
    found = []
    if not m.diagnose(state).assembled:
        found.append(f"{case.label}: met after {session.cycles} steps, residual {m.diagnose(state).residual:.2e}")
    poses = judge.poses_of(state)
    missed = judge.relative_misses(case, poses, judge.misses(case, poses, state.angles))
    if not max(missed.values(), default=0.0) <= judge.RELATIVE:
        found.append(f"{case.label}: met after {session.cycles} steps, missed by {max(missed.values()):.2e}")
    if case.expect == "not ok":
        found.append(f"{case.label}: met after {session.cycles} steps, though it is proved to be inconsistent")
    return found


@sampled("name", examples.REGISTRY, 8)
def test_no_mechanism_of_the_gallery_is_met_against_the_verdict(name: str) -> None:
    m = examples.REGISTRY[name].build()
    drawn, met = stepped(m)
    assert met and m.diagnose(drawn.state).assembled
    for seed in range(3):
        session, met = stepped(m, examples.random_start(m, seed))
        assert not met or m.diagnose(session.state).assembled, f"start {seed} after {session.cycles} steps"


@pytest.mark.slow
def test_no_fuzzed_mechanism_is_met_against_the_verdict() -> None:
    assert [claim for k in range(CASES) for claim in false_claims(generate(SEED, k))] == []


@pytest.mark.long
def test_none_of_many_fuzzed_mechanisms_is_met_against_the_verdict() -> None:
    assert [claim for k in range(LONG_CASES) for claim in false_claims(generate(SEED, k))] == []


@pytest.mark.parametrize("formulation", ["manifold", "euler_parameters", "relative", "relative_euler_parameters"])
@pytest.mark.parametrize("off", [1e-9, 1e-10, 2e-11])  # [m], each above 1e-12 of the extent
def test_a_short_squared_distance_that_contradicts_a_weld_is_not_met(off: float, formulation: Any) -> None:
    """d² − ℓ² of ℓ = 1 mm is 2ℓ·off: a part of L² = 9 m² far below the tolerance, while off/L is above it."""
    m = cd.Mechanism("stop")
    slide = m.body("slide")
    m.fixed("weld", m.ground.frame(), slide.frame())
    m.distance("rail", m.ground.point(), slide.point((3, 0, 0)), 3.0)
    m.distance("gap", m.ground.point((1e-3 + off, 0, 0)), slide.point(), 1e-3, squared=True)
    assert not m.assemble(formulation=formulation).ok
    session, met = stepped(m, formulation=formulation)
    assert not met, f"met after {session.cycles} steps; the verdict is {m.diagnose(session.state).residual:.2e}"


@pytest.mark.parametrize("number", [163, 1145, 1789])
def test_a_solver_that_stalls_at_rounding_is_met_where_the_verdict_is(number: int) -> None:
    """The target of the solver is below rounding there, as for a small piece in a large mechanism."""
    m = build(generate(SEED, number))
    assert m.assemble(restarts=0).ok
    session, met = stepped(m)
    assert met, f"not met after {session.cycles} steps; the verdict is {m.diagnose(session.state).residual:.2e}"


@pytest.mark.slow
def test_a_session_continues_in_another_process(tmp_path):
    """Its tables hold addresses, so it is made anew from its state."""
    m = examples.REGISTRY["rsur"].build()
    session = m.session(closed=False)
    session.step()
    (tmp_path / "session").write_bytes(pickle.dumps((m, session.state)))
    code = (
        "import pickle, sys, cardan as cd; m, state = pickle.load(open(sys.argv[1], 'rb'))\n"
        "s = m.session(state, closed=False)\nwhile (status := s.step()) == cd.SessionStatus.MOVING: pass\n"
        "assert status == cd.SessionStatus.IDLE and m.diagnose(s.state).assembled"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "session")], check=True)


def test_what_is_met_is_not_stuck():
    """The solver stalls at rounding here, since the points are far away compared with the extent."""
    m = cd.Mechanism()
    b = m.body("b", position=(2, 3, 1), orientation=(0.6, 0.8, 0, 0))
    m.point_on_line("l1", b.point((1e-4, 0, 0)), m.ground.frame(z=(1, 2, 3)))
    m.point_on_line("l2", b.point((0, 1e-4, 0)), m.ground.frame((1e-4, 0, 0), z=(1, 2, 3)))
    session, met = stepped(m)
    assert met and m.diagnose(session.state).assembled
    assert session.step() == cd.SessionStatus.IDLE


def test_hands_come_when_the_joints_are_closed():
    m = examples.REGISTRY["rsur"].build()
    with m.session(examples.random_start(m, 2), closed=False) as session:
        start = session.coordinates.copy()
        with pytest.raises(cd.SessionError, match="not closed yet"):
            session.grasp("coupler")
        residuals = []
        while (status := session.step()) == cd.SessionStatus.MOVING:
            residuals.append(session.residual)
        assert status == cd.SessionStatus.IDLE
        assert not np.array_equal(start, session.coordinates) and residuals[0] > 1e-3 > session.residual
        closed, cycles = session.state, session.cycles
        hand = session.grasp("coupler", (1, 0, 0))
        np.testing.assert_allclose(session.coordinates, closed.coordinates, atol=1e-10)
        hand.target = hand.point + np.array([0.001, 0.002, 0.0])
        session.step()
        assert session.cycles == cycles + 1 and m.diagnose(session.state).assembled
        session.restore()
        assert np.array_equal(session.coordinates, session.state.coordinates)
        np.testing.assert_allclose(session.coordinates, closed.coordinates, atol=1e-10)
    with pytest.raises(cd.SessionError, match="closed"):
        session.step()


def test_open_joints_have_a_residual_before_the_first_step_and_no_energy():
    m = cd.Mechanism()
    b = m.body("b", position=(0, 0, 0.3), mass=1.0, inertia=np.eye(3))
    m.revolute("hinge", m.ground.frame(), b.frame((1, 0, 0)))
    with m.session(mode="dynamic", closed=False) as session:
        assert session.residual == pytest.approx(m.diagnose(session.state).residual, rel=1e-9)
        assert session.residual > 0.1
        assert np.isnan(session.energy)
        while session.step() == cd.SessionStatus.MOVING:
            pass
        session.grasp("b")
        assert np.isfinite(session.energy)


def test_a_later_change_of_the_mechanism_does_not_reach_its_session():
    m = examples.REGISTRY["rsur"].build()
    session, met = stepped(m)
    assert met
    m.remove("coupler", joints=True)
    session.grasp("coupler")
    assert session.step() == cd.SessionStatus.REACHED
