"""What to try next, as a table; and that one start and many starts ask the same function."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.analysis import _policy as policy
from cardan.analysis.options import OptionArguments
from cardan.analysis.simulation_options import SimulationArguments
from cardan.analysis.tables import Memo
from cardan.examples import REGISTRY, random_start
from cardan.solvers.tables import Outcome


def history(
    costs,
    outcome,
    *,
    taken=50,
    has_angles=False,
    before=1.0,
    late=False,
    restarts=100,
    given=False,
    proved=0,
    in_parts=0,
    is_part=False,
    residual=0.5,
    unknowns=6,
):
    """The action after attempts that ended at these costs; given: the user has chosen the number of restarts."""
    memo, room = Memo.new(), np.empty(200)
    memo.has_angles, memo.cost_before, memo.outcome = has_angles, before, outcome
    memo.taken, memo.is_late, memo.is_proved = taken, late, proved
    memo.may_end_early, memo.residual, memo.unknowns = not given, residual, unknowns
    memo.in_parts, memo.is_part = in_parts, is_part
    for k, cost in enumerate(costs, start=1):
        memo.attempts, memo.cost = k, cost
        action = policy.next_attempt(restarts, memo.as_floats, room)
    return action, memo


# The first attempt and 46 more, of which every third begins at the best pose and does not count: 32.
ENOUGH = 1 + 46


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("costs", "outcome", "options", "expected"),
    [
        ([0.5], Outcome.RUNNING, {}, policy.OTHER_LENGTH),
        ([0.5], Outcome.RUNNING, {"has_angles": True}, policy.CONTINUE),
        ([0.99], Outcome.RUNNING, {"has_angles": True}, policy.OTHER_LENGTH),  # hardly any progress
        ([0.5], Outcome.STALLED, {"taken": 3}, policy.TILT),
        ([0.5], Outcome.STALLED, {"taken": 4}, policy.RESTART),
        ([0.5], Outcome.STALLED, {"residual": 1.999}, policy.TILT),  # opposed axes
        ([0.5, 0.4], Outcome.STALLED, {"taken": 3}, policy.DISTURB),
        ([0.5, 0.4, 0.4], Outcome.STALLED, {"taken": 1}, policy.RESTART),
        ([0.5, 0.4], Outcome.RUNNING, {}, policy.RESTART),
        ([0.5, 0.4], Outcome.STALLED, {}, policy.HOP),
        ([0.5, 0.4, 0.3], Outcome.STALLED, {}, policy.RESTART_CLOSE),
        ([0.5, 0.4, 0.3, 0.2], Outcome.STALLED, {}, policy.RESTART),
        ([0.5], Outcome.STALLED, {"late": True}, policy.END),
        ([0.5], Outcome.STALLED, {"late": True, "proved": True, "unknowns": 50}, policy.END),
        ([0.5], Outcome.STALLED, {"proved": True}, policy.RESTART),  # the proof is not searched for so early
        ([0.5], Outcome.STALLED, {"proved": True, "unknowns": 50}, policy.TILT),
        ([0.5, 0.4], Outcome.STALLED, {"proved": True, "unknowns": 50}, policy.CONFLICT),
        ([0.5, 0.4], Outcome.STALLED, {"proved": True, "unknowns": 30}, policy.TILT),
        ([0.5, 0.4, 0.3], Outcome.STALLED, {"proved": True, "unknowns": 30}, policy.CONFLICT),
        ([0.5], Outcome.STALLED, {"proved": True, "unknowns": 50, "restarts": 0}, policy.CONFLICT),
        ([0.5], Outcome.STALLED, {"proved": -1}, policy.RESTART),  # little work was done in vain
        ([0.5], Outcome.STALLED, {"proved": -1, "unknowns": 50}, policy.PROVE),
        ([0.5], Outcome.STALLED, {"proved": -1, "unknowns": 50, "late": True}, policy.END),
        ([0.5], Outcome.STALLED, {"unknowns": 50}, policy.RESTART),
        ([0.5], Outcome.STALLED, {"in_parts": -1, "unknowns": 50}, policy.RESTART),  # parts are examined later
        ([0.5], Outcome.STALLED, {"in_parts": -1, "unknowns": 10000}, policy.DIVIDE),
        ([0.5], Outcome.STALLED, {"in_parts": -1, "unknowns": 10000, "proved": -1}, policy.PROVE),
        ([0.5], Outcome.STALLED, {"in_parts": -1, "unknowns": 10000, "late": True}, policy.END),
        ([0.5], Outcome.STALLED, {"in_parts": -1, "unknowns": 10000, "given": True}, policy.RESTART),
        ([0.5, 0.4], Outcome.STALLED, {"in_parts": 0, "restarts": 1}, policy.END),
        ([0.5, 0.4], Outcome.STALLED, {"in_parts": 1, "restarts": 1}, policy.CONFLICT),
        ([0.5, 0.4], Outcome.STALLED, {"in_parts": 1, "restarts": 1, "given": True}, policy.END),
        ([0.5], Outcome.STALLED, {"in_parts": 1, "unknowns": 10000}, policy.TILT),
        ([0.5, 0.4], Outcome.STALLED, {"in_parts": 1, "unknowns": 10000}, policy.CONFLICT),
        ([0.5, 0.4], Outcome.STALLED, {"in_parts": 1}, policy.HOP),  # one of many starts: not yet
        ([0.5, 0.4], Outcome.STALLED, {"restarts": 1}, policy.END),
        ([0.5] * (ENOUGH - 1), Outcome.STALLED, {}, policy.RESTART),
        ([0.5] * ENOUGH, Outcome.STALLED, {}, policy.CONFLICT),
        ([0.5] * ENOUGH, Outcome.STALLED, {"given": True}, policy.HOP),  # all restarts that were asked for
        ([0.5] * 101, Outcome.STALLED, {"given": True}, policy.CONFLICT),
        ([0.5] * (ENOUGH - 1), Outcome.STALLED, {"given": True, "restarts": ENOUGH - 2}, policy.END),  # too few
        ([0.5] * ENOUGH, Outcome.STALLED, {"late": True}, policy.END),
        ([0.5, *[0.4] * 100], Outcome.STALLED, {}, policy.CONFLICT),
        ([*np.linspace(1, 2, 53), *[0.4] * 48], Outcome.STALLED, {}, policy.END),  # below a half
        ([*np.linspace(1, 2, 53), *[0.4] * 48], Outcome.STALLED, {"is_part": True}, policy.CONFLICT),
    ],
)
def test_what_is_tried_next(costs, outcome, options, expected):
    assert history(costs, outcome, **options)[0] == expected


@pytest.mark.nojit
def test_an_attempt_that_is_continued_counts_once():
    action, memo = history([0.5, 0.4, 0.3, 0.2], Outcome.RUNNING, has_angles=True)
    assert (action, memo.counted) == (policy.CONTINUE, 1)


@pytest.mark.nojit
def test_the_best_attempt_is_the_one_of_least_cost():
    for costs, best, is_last in (([3.0, 1.0, 2.0], 1.0, False), ([3.0, 2.0, 1.0], 1.0, True), ([1.0], 1.0, True)):
        _, memo = history(costs, Outcome.STALLED)
        assert (memo.least_cost, bool(memo.is_best)) == (best, is_last)


@pytest.mark.nojit
def test_of_equal_attempts_one_that_began_near_the_start_is_kept():
    _, memo = history([1.0, 0.9997, 0.9995, 0.9992], Outcome.STALLED, taken=1)  # tilted, disturbed, at random
    assert (memo.least_cost, memo.kept_cost, bool(memo.is_best)) == (0.9992, 0.9995, False)


@pytest.mark.parametrize("name", ["stewart_distance", "bricard"])
def test_one_start_and_many_make_the_same_attempts(name):
    m = REGISTRY[name].build()
    starts = [random_start(m, k) for k in range(12)]
    many = m.assemble_many(starts)
    single = [m.assemble(start) for start in starts]
    assert many.restarts.tolist() == [result.restarts for result in single]
    assert many.iterations.tolist() == [result.iterations for result in single]
    assert sum(many.restarts) > 0 or name != "stewart_distance"


def test_options_are_one_record_for_every_way_of_giving_them():
    m = REGISTRY["rsur"].build()
    options = cd.AssemblyOptions(method="newton", tolerance=1e-9, max_iterations=7)
    assert m.assemble(options=options) == m.assemble(method="newton", tolerance=1e-9, max_iterations=7)
    assert m.assemble(options=options, max_iterations=1).iterations == 1
    assert m.assemble(options=options).method == "newton"
    many = m.assemble_many([m.state], options=options)
    assert many.iterations[0] == m.assemble(options=options).iterations


@pytest.mark.parametrize(
    ("arguments", "record"), [(OptionArguments, cd.AssemblyOptions), (SimulationArguments, cd.SimulationOptions)]
)
def test_the_arguments_are_the_fields_of_the_record(arguments, record):
    fields = {name: str(field.type) for name, field in record.__dataclass_fields__.items()}
    given = {name: kind.__forward_arg__ for name, kind in arguments.__annotations__.items()}
    assert given == fields


def test_options_of_a_simulation_are_one_record_or_single_arguments():
    m = cd.Mechanism("pendulum")
    arm = m.body("arm", mass=1.0, inertia=np.eye(3), center=(0.5, 0.0, 0.0))
    m.revolute("pin", m.ground.frame(z=(0, 1, 0)), arm.frame(z=(0, 1, 0)))
    options = cd.SimulationOptions(step=0.01, method="rk4", times=iter([0.0, 0.05]))
    single = m.simulate(0.05, step=0.01, method="rk4", times=[0.0, 0.05])
    for _ in range(2):  # the record keeps the times of an iterator
        assert np.array_equal(m.simulate(0.05, options=options).times, single.times)
    assert len(m.simulate(0.05, options=options, times=None).times) == 6


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.assemble(tolerence=1e-9), ["tolerence", "option of an assembly", "tolerance"]),
        (lambda m: m.assemble(options={"seed": 1}), ["options", "AssemblyOptions"]),
        (lambda m: m.assemble_many([m.state], sed=1), ["sed", "seed"]),
        (lambda m: m.simulate(1.0, stp=0.1), ["stp", "option of a simulation", "did you mean 'step'"]),
        (lambda m: m.simulate(1.0, options=cd.AssemblyOptions()), ["options", "it must be a cardan.SimulationOptions"]),
        (lambda m: cd.SimulationOptions(stp=0.1), ["SimulationOptions", "stp", "did you mean 'step'"]),
        (lambda m: cd.SimulationOptions(tolerance=0.0), ["tolerance"]),
        (lambda m: cd.AssemblyOptions(method="newton", restarts=3), ["restarts is 3", "'newton'", "method='auto'"]),
        (lambda m: cd.AssemblyOptions(seed=[1]), ["seed", "[1]"]),
        (lambda m: m.assemble(seed=[1]), ["seed", "[1]"]),
    ],
)
def test_wrong_options_are_named(call, words):
    with pytest.raises(cd.ModelError) as caught:
        call(REGISTRY["rsur"].build())
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("wrong", [{"seed": True}, {"seed": 1.0}, {"restarts": True}, {"max_iterations": 1.0}])
def test_a_wrong_option_is_named_even_after_an_equal_valid_one(wrong):
    m = REGISTRY["rsur"].build()
    m.assemble(**dict.fromkeys(wrong, 1))
    with pytest.raises(cd.ModelError, match="whole number"):
        m.assemble(**wrong)


@pytest.mark.parametrize("order", [1, -1])
def test_a_piece_that_breaks_decides_the_status_whatever_the_order(order):
    @cd.primitive(p="point", q="point")
    def log_distance(p, q):
        return cd.log(q[0] - p[0])

    m = cd.Mechanism()
    for name in ("far", "left")[::order]:
        body = m.body(name, position=(0.5 if name == "far" else -2.0, 0, 0))
        if name == "far":
            m.spherical("ball", m.ground.point(), body.point())
            m.distance("rod", m.ground.point((5, 0, 0)), body.point(), 2.0)
        else:
            m.constrain("log", log_distance, p=m.ground.point(), q=body.point())
    assert m.assemble(method="newton").status == "diverged" == m.assemble_many([None], method="newton").status[0]


def test_progress_counts_starts_also_with_several_pieces():
    m = cd.Mechanism()
    for k in range(3):
        m.spherical(f"ball {k}", m.ground.point((k, 0, 0)), m.body(f"body {k}").point((0.1, 0, 0)))
    seen = []
    m.assemble_many([m.state] * 8, workers=1, progress=lambda *counts: seen.append(counts))
    assert seen[-1] == (8, 8) and {total for _, total in seen} == {8}


def test_everything_public_is_listed():
    assert set(cd.__all__) <= set(dir(cd))
