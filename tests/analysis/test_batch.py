"""Assembly from many starts gives the results of single assemblies, for any number of threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.analysis import attempts
from cardan.analysis.chunks import run_chunks, worker_count
from cardan.coordinates import formulations, verdict
from cardan.examples import REGISTRY, random_start
from tests.analysis.test_assembly import far_apart

METHODS = ["auto", "levenberg_marquardt", "newton", "newton_lu", "gradient", "hybrid"]


def random_states(mechanism, count, first=0):
    return [mechanism.state.moved(random_start(mechanism, first + seed)) for seed in range(count)]


def check_same(mechanism, starts, workers=1, **options):
    """Check that every result equals that of a single assembly bitwise."""
    __tracebackhide__ = True
    batch = mechanism.assemble_many(starts, workers=workers, **options)
    assert len(batch) == len(starts)
    for k, start in enumerate(starts):
        result = mechanism.assemble(start, **options)
        assert batch.status[k] == result.status, k
        assert batch.ok[k] == result.ok
        assert batch.iterations[k] == result.iterations, k
        assert batch.restarts[k] == result.restarts
        assert np.array_equal(batch.coordinates[k], result.state.coordinates, equal_nan=True), k
        assert batch.residual[k] == result.residual
        assert batch.tolerance[k] == result.tolerance
        assert batch.state(k) == result.state, k
    return batch


@pytest.mark.parametrize("name", list(REGISTRY))
def test_every_start_gets_the_answer_of_a_single_assembly(name):
    mechanism = REGISTRY[name].build()
    batch = check_same(mechanism, [*random_states(mechanism, 15), mechanism.state])
    assert batch.ok.all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("formulation", ["manifold", "euler_parameters", "virtual_rotation", "euler_angles"])
def test_every_method_and_formulation(method, formulation):
    for name in ("stewart_distance", "planar_4r"):
        mechanism = REGISTRY[name].build()
        options = {"method": method, "formulation": formulation, "tolerance": 1e-9, "max_iterations": 150}
        check_same(mechanism, random_states(mechanism, 6), **options)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("formulation", ["relative", "relative_euler_parameters"])
def test_joint_coordinates(method, formulation):
    for name in ("bent_chain", "planar_4r"):
        mechanism = REGISTRY[name].build()
        options = {"method": method, "formulation": formulation, "tolerance": 1e-9, "max_iterations": 50}
        check_same(mechanism, [*random_states(mechanism, 3), mechanism.assemble().state], workers=2, **options)


def limited():
    """Hinges with limits that random starts exceed."""
    m = REGISTRY["planar_4r"].build()
    m.limit("stop", m["A"], lower=0.2, upper=1.4)
    return m


def unreachable_screw():
    """A screw, and a distance that it cannot reach."""
    m = cd.Mechanism()
    nut = m.body("nut", position=(0.1, 0.0, 0.3))
    m.screw("thread", m.ground.frame(), nut.frame(), pitch=0.2)
    m.distance("rod", m.ground.point((3, 0, 0)), nut.point(), 1.0)
    return m


@pytest.mark.parametrize("formulation", ["manifold", "relative", "relative_euler_parameters", "euler_parameters"])
@pytest.mark.parametrize("build", [REGISTRY["planetary_gear"].build, limited, unreachable_screw])
def test_counted_angles(build, formulation):
    mechanism = build()
    options = {"formulation": formulation, "max_iterations": 60, "restarts": 20}
    check_same(mechanism, [*random_states(mechanism, 8), mechanism.state], workers=2, **options)


@pytest.mark.parametrize("formulation", ["manifold", "euler_parameters", "virtual_rotation", "euler_angles"])
def test_if_all_attempts_fail_the_same_one_is_the_best(formulation):
    """Attempts end at nearly the same cost, so the best one depends on the last bit of the cost."""
    m = cd.Mechanism()
    body = m.body("body")
    m.revolute("here", m.ground.frame((0, 0, 0)), body.frame((0, 0, 0), z=(0, 1, 0)))
    m.revolute("there", m.ground.frame((0.7, -0.9, 0.4), x=(0, 1, 0)), body.frame((0, 0, 0), x=(0, 0, -1), z=(0, 1, 0)))
    for most in (3, 5):
        batch = check_same(m, random_states(m, 300), formulation=formulation, max_iterations=most, restarts=1)
        assert not batch.ok.any()


@pytest.mark.parametrize("method", METHODS)
def test_counted_angles_in_every_method(method):
    mechanism = REGISTRY["lead_screw"].build()
    check_same(mechanism, random_states(mechanism, 4), method=method, tolerance=1e-9, max_iterations=80)


@pytest.mark.parametrize("formulation", ["manifold", "relative"])
def test_distant_drivers_are_moved_in_stages_from_every_start(formulation, monkeypatch):
    """A spindle in a nut that a slide prevents from rotating: its turns must be made in stages."""
    m = cd.Mechanism()
    spindle, nut = m.body("spindle", position=(0, 0, 0.1)), m.body("nut", position=(0.1, 0, 0.4))
    m.revolute("bearing", m.ground.frame((0, 0, 0), x=(1, 0, 0)), spindle.frame(x=(1, 0, 0)))
    m.screw("thread", spindle.frame(x=(1, 0, 0)), nut.frame(x=(1, 0, 0)), pitch=0.05)
    m.prismatic("slide", m.ground.frame((0, 1, 0), x=(1, 0, 0)), nut.frame((0, 1, 0), x=(1, 0, 0)))
    m.drive("motor", m["bearing"], lambda t: 2 * cd.pi * t)
    alone = []
    solve = attempts.solve
    monkeypatch.setattr(attempts, "solve", lambda *given: alone.append(1) or solve(*given))
    starts = random_states(m, 4)
    counts = []
    for moment in (0.1, 9.25):
        m.assemble_many(starts, time=moment, formulation=formulation)
        counts.append(len(alone))
        alone.clear()
    assert counts[0] < counts[1] == len(starts)  # only starts that need stages are solved alone
    for moment in (0.1, 9.25):
        far = check_same(m, starts, time=moment, formulation=formulation)
        assert far.ok.all()
        bearing = m.system.counted_angles.index("bearing")
        assert np.abs(far.angles[:, bearing] - 2 * np.pi * moment).max() <= 1e-9


@pytest.mark.parametrize("build", [REGISTRY["rsur"].build, REGISTRY["stewart_distance"].build, limited])
@pytest.mark.parametrize("formulation", ["manifold", "relative", "relative_euler_parameters"])
def test_one_jitted_call_solves_all_starts(build, formulation, monkeypatch):
    """No start is solved as a single assembly, also in joint coordinates and with counted angles."""
    mechanism = build()
    monkeypatch.setattr(attempts, "solve", lambda *_: pytest.fail("solved one by one"))
    assert mechanism.assemble_many(random_states(mechanism, 40), formulation=formulation, workers=2).ok.any()


def test_hybrid_changes_to_newton_at_the_same_iteration():
    """When the gradient method is near or too slow, and after the number of steps that it may take."""
    near, far = (
        check_same(mechanism, random_states(mechanism, 5), method="hybrid").iterations
        for mechanism in (REGISTRY["rsur"].build(), REGISTRY["bent_chain"].build())
    )
    assert (near < 500).any()
    chain = REGISTRY["bent_chain"].build()
    spring = cd.SpringOptions(switch_steps=40)
    short = check_same(chain, random_states(chain, 5), method="hybrid", spring=spring).iterations
    assert (short > 40).all() and (short < far).all()


@pytest.mark.parametrize("workers", [2, 3, 7])
def test_the_number_of_threads_changes_nothing(workers):
    mechanism = REGISTRY["stewart_distance"].build()
    starts = np.array([state.coordinates for state in random_states(mechanism, 150)])
    one, many = (mechanism.assemble_many(starts, workers=count) for count in (1, workers))
    assert one.restarts.max() > 0
    for field in ("ok", "status", "residual", "tolerance", "iterations", "restarts", "coordinates"):
        assert np.array_equal(getattr(one, field), getattr(many, field)), field


def test_starts_may_be_an_array_or_states_or_poses_of_some_bodies():
    mechanism = REGISTRY["rsur"].build()
    states = random_states(mechanism, 4)
    array = np.array([state.coordinates for state in states])
    before = array.copy()
    poses = [random_start(mechanism, seed) for seed in range(4)]
    found = [mechanism.assemble_many(starts).coordinates for starts in (array, states, poses, array.tolist())]
    assert all(np.array_equal(found[0], other) for other in found)
    assert np.array_equal(array, before)
    some = mechanism.assemble_many([{"crank": poses[0]["crank"]}])
    assert np.array_equal(some.coordinates[0], mechanism.assemble({"crank": poses[0]["crank"]}).state.coordinates)


def test_none_stands_for_the_authored_poses_in_any_list_as_in_a_single_assembly():
    mechanism = REGISTRY["rsur"].build()
    authored = mechanism.assemble().state.coordinates
    for starts in ([mechanism.state, {}, None], [None, None], (None,)):
        batch = mechanism.assemble_many(starts)
        assert len(batch) == len(starts)
        assert all(np.array_equal(found, authored) for found in batch.coordinates)


def test_the_number_of_workers_may_be_one_of_numpys():
    mechanism = REGISTRY["rsur"].build()
    assert mechanism.assemble_many([mechanism.state] * 40, workers=np.int64(2)).ok.all()


def impossible():
    """Distances of 1 and 3 m to the same point."""
    m = cd.Mechanism()
    body = m.body("body", position=(2, 0, 0))
    m.distance("short", m.ground.point(), body.point((0, 0, 0)), 1.0)
    m.distance("long", m.ground.point(), body.point((0, 0, 0)), 3.0)
    return m


@pytest.mark.nojit
@pytest.mark.parametrize("method", METHODS)
def test_without_compilation(method):
    mechanism = REGISTRY["stewart_distance"].build()
    check_same(mechanism, random_states(mechanism, 2, first=3), method=method, tolerance=1e-6, max_iterations=20)


def test_a_conflict_is_found_from_every_start():
    for mechanism, least in ((impossible(), 1), (far_apart(), 46)):  # by a proof, by evidence
        batch = check_same(mechanism, random_states(mechanism, 6))
        assert set(batch.status) == {"conflict"}
        assert not batch.ok.any()
        assert (batch.restarts >= least).all()


def test_pieces_are_solved_and_judged_separately_and_free_bodies_stay():
    m = impossible()
    m.body("lonely", position=(5, 6, 7))
    a, b = m.body("a", position=(9, 0, 0)), m.body("b", position=(9, 2, 0))
    m.revolute("hinge", a.frame((0.1, 0, 0)), b.frame((0, 0.3, 0)))
    m.revolute("base", m.ground.frame((9, 0, 0)), a.frame((0, 0, 0)))
    starts = random_states(m, 5)
    batch = check_same(m, starts)
    assert set(batch.status) == {"conflict"}
    m.remove("long")
    batch = check_same(m, starts)
    assert batch.ok.all()
    lonely = m.system.index["lonely"]
    assert np.array_equal(batch.coordinates[:, lonely], [s.coordinates[lonely] for s in starts])


def test_parts_without_size_are_measured_by_each_start():
    m = cd.Mechanism()
    for name in "abc":
        m.spherical(f"on_{name}", m.ground.point(), m.body(name).point())
    m.spherical("together", m["a"].point(), m["b"].point())
    rng = np.random.default_rng(5)
    starts = [m.state.moved({name: (10.0**k * rng.normal(size=3), (1, 0, 0, 0)) for name in "abc"}) for k in (-3, 0, 3)]
    assert m.system.length == 0.0
    assert check_same(m, starts).ok.all()


def geared(ratio=-2.0):
    """Two meshing wheels on the ground, with counted angles."""
    m = cd.Mechanism()
    hinges = []
    for k, x in enumerate((0.0, 3.0)):
        wheel = m.body(f"wheel_{k + 1}", position=(x, 0.2, 0.1))
        hinges.append(m.revolute(f"hinge_{k + 1}", m.ground.frame((x, 0, 0), x=(1, 0, 0)), wheel.frame(x=(1, 0, 0))))
    m.gear("mesh", *hinges, ratio=ratio)
    return m


def test_whole_turns_are_counted_from_those_of_the_start():
    m = geared()
    states = random_states(m, 6)
    batch = check_same(m, states)
    assert batch.ok.all()
    assert batch.angles.shape == (6, 2)
    turned = m.assemble_many([m.assemble(states[0]).state]).state(0)
    assert turned.angles == m.assemble(states[0]).state.angles
    assert m.assemble_many(np.array([s.coordinates for s in states])).ok.all()


def test_drivers_have_the_given_time_or_that_of_the_states():
    m = geared()
    m.drive("motor", m["hinge_1"], lambda t: 0.5 * t)
    states = random_states(m, 4)
    late = check_same(m, states, time=3.0)
    assert late.ok.all()
    assert np.abs(late.angles[:, 0] - 1.5).max() <= 1e-9
    again = m.assemble_many([late.state(k) for k in range(4)])
    assert again.time == 3.0
    assert (again.iterations == 0).all()
    with pytest.raises(cd.ModelError, match="states at 2 different times; pass time="):
        m.assemble_many([states[0], late.state(0)])
    assert m.assemble_many([states[0], late.state(0)], time=1.0).ok.all()


def test_limits_are_kept_from_every_start():
    m = REGISTRY["planar_4r"].build()
    m.limit("stop", m["A"], lower=0.2, upper=0.4)
    batch = check_same(m, random_states(m, 8))
    assert batch.ok.any()


def test_large_systems_use_the_sparse_solver():
    m = cd.Mechanism()
    end = m.ground.point()
    for k in range(40):
        link = m.body(f"link_{k:02}", position=(0.6 * k, 0, 0))
        m.spherical(f"ball_{k}", end, link.point((-0.5, 0, 0)))
        end = link.point((0.5, 0, 0))
    m.spherical("last", end, m.ground.point((24, 0, 0)))
    assert m.assemble_many([m.state], workers=1).ok.all()
    check_same(m, random_states(m, 3))
    check_same(m, random_states(m, 2), method="newton", max_iterations=20)


def test_a_start_that_is_met_is_bitwise_unchanged():
    mechanism = REGISTRY["bent_chain"].build()
    met = mechanism.assemble().state
    batch = mechanism.assemble_many([met, mechanism.state, met])
    assert batch.iterations.tolist()[::2] == [0, 0]
    assert batch.iterations[1] > 0
    assert np.array_equal(batch.coordinates[0], met.coordinates)


@pytest.mark.parametrize("formulation", ["manifold", "relative", "relative_euler_parameters"])
@pytest.mark.parametrize("name", ["lead_screw", "planetary_gear", "differential", "indexing_table"])
def test_a_start_that_is_met_keeps_its_counted_angles(name, formulation):
    mechanism = REGISTRY[name].build()
    for state in random_states(mechanism, 6):
        met = mechanism.assemble(state, formulation=formulation).state
        again = mechanism.assemble(met, formulation=formulation)
        assert (again.iterations, again.state) == (0, met)
        assert mechanism.assemble_many([met], formulation=formulation).state(0) == met


def test_a_result_has_counts_and_a_text():
    mechanism = REGISTRY["stewart_distance"].build()
    batch = mechanism.assemble_many(random_states(mechanism, 40), method="levenberg_marquardt")
    assert sum(batch.counts().values()) == len(batch) == 40
    assert next(iter(batch.counts())) == "assembled"
    assert batch.text().startswith(f"40 starts: {batch.counts()['assembled']} assembled, ")
    assert repr(batch) == f"<BatchResult {batch.text()}>"
    assert batch.state(3)["platform"].position.tolist() == batch.coordinates[3, 0, :3].tolist()
    assert (batch.status[batch.ok] == cd.Status.ASSEMBLED).all()


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_increases_to_the_total(workers):
    mechanism = REGISTRY["rsur"].build()
    seen = []
    states = random_states(mechanism, 60)
    mechanism.assemble_many(states, workers=workers, progress=lambda done, total: seen.append((done, total)))
    assert {total for _, total in seen} == {60}
    done = [d for d, _ in seen]
    assert done == sorted(done)
    assert done[-1] == 60


# -- invalid inputs ----------------------------------------------------------------------------------------------------

GOOD = np.array([[[0.0, 0, 0, 1, 0, 0, 0]] * 3])


def bad(k, b, i, value):
    out = np.repeat(GOOD, 5, axis=0)
    out[k, b, i] = value
    return out


@pytest.mark.parametrize(
    ("starts", "options", "message"),
    [
        (GOOD[0], {}, r"shape \(3, 7\); they must be an array of shape \(n, 3, 7\)"),
        (GOOD[:, :2], {}, r"shape \(1, 2, 7\)"),
        (GOOD[:, :, :6], {}, r"shape \(1, 3, 6\)"),
        (GOOD[:0], {}, "there are no starts"),
        ([], {}, "there are no starts"),
        ([{}, GOOD[0]], {}, "start 1 is of type ndarray; it must be a state or a dict of poses"),
        (GOOD, {"progress": 3}, "progress is 3; it must be a function"),
        (GOOD, {"workers": 5000}, "workers is 5000; it must be 1,024 at the most"),
        (None, {}, "they must be an array"),
        ("rsur", {}, "'rsur'; they must be an array"),
        ([["a"]], {}, "they must be an array"),
        (bad(3, 1, 0, np.nan), {}, "the pose of body 'coupler' in start 3 is .nan"),
        (bad(2, 2, 1, np.inf), {}, "the pose of body 'rocker' in start 2"),
        (bad(4, 0, 3, 1.1), {}, "the pose of body 'crank' in start 4 .*its quaternion p must have length 1"),
        (bad(4, 0, 3, 1 + 1e-8), {}, r"\|p\|² − 1 \| ≤ 1e-09"),
        (bad(0, 0, 0, 1e300), {}, "the pose of body 'crank' in start 0 .*its coordinates must not exceed 1e\\+150"),
        (GOOD + 0j, {}, "of type complex128; they must be an array .*, of real numbers"),
        ([GOOD[0] + 1j], {}, "of type complex128"),
        (GOOD.astype(str), {}, "of type <U"),
        (GOOD, {"workers": 0}, "workers is 0; it must be a whole number from 1 on; without it all cores are used"),
        (GOOD, {"workers": np.int64(0)}, "workers is .*0"),
        (GOOD, {"workers": 1.5}, "workers is 1.5"),
        (GOOD, {"method": "magic"}, "method is 'magic'"),
        (GOOD, {"tolerance": -1.0}, "tolerance is -1.0"),
        (GOOD, {"restarts": -1}, "restarts is -1"),
        (GOOD, {"restarts": 10**9}, "restarts from many starts is 1000000000; it must be 1,000,000 at the most"),
        (GOOD, {"seed": -1}, "seed is -1"),
        (GOOD, {"method": "newton", "restarts": 3}, "method 'newton' makes one attempt"),
        (GOOD, {"max_iterations": 0}, "max_iterations is 0"),
        (GOOD, {"max_seconds": 0}, "max_seconds is 0"),
        (GOOD, {"time": np.nan}, "time is nan"),
        ([{"nobody": ((0, 0, 0), (1, 0, 0, 0))}], {}, "'nobody'"),
    ],
)
def test_invalid_inputs_are_reported_before_any_work(starts, options, message, monkeypatch):
    monkeypatch.setattr("cardan.analysis.batch.solve_piece", lambda *_: pytest.fail("work was done"))
    with pytest.raises(cd.ModelError, match=message):
        REGISTRY["rsur"].build().assemble_many(starts, **options)


def test_a_huge_iteration_limit_is_accepted():
    mechanism = REGISTRY["rsur"].build()
    batch = check_same(mechanism, random_states(mechanism, 2), max_iterations=10**400)
    assert batch.ok.all()


def test_a_single_state_is_no_list_of_starts():
    mechanism = REGISTRY["rsur"].build()
    with pytest.raises(cd.ModelError, match="or a list of states"):
        mechanism.assemble_many(mechanism.state)


def test_states_of_another_mechanism_are_refused():
    mechanism, other = REGISTRY["rsur"].build(), REGISTRY["bricard"].build()
    with pytest.raises(cd.ModelError, match="the start is a state of other bodies"):
        mechanism.assemble_many([mechanism.state, other.state])


# -- deadlines and interrupts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_starts_after_the_deadline_have_the_status_time_limit(workers):
    mechanism = REGISTRY["bent_chain"].build()
    starts = np.array([state.coordinates for state in random_states(mechanism, 200)])
    mechanism.assemble_many(starts[:2], method="gradient", max_iterations=2)  # loads the kernels
    began = time.perf_counter()
    batch = mechanism.assemble_many(
        starts, method="gradient", tolerance=1e-12, max_iterations=10**7, max_seconds=0.5, workers=workers
    )
    assert time.perf_counter() - began < 5.0
    assert set(batch.status) <= {"time limit", "assembled"}  # some may be finished
    assert (batch.status == "time limit").sum() > 100
    never = batch.iterations == 0
    assert never.any()
    assert np.array_equal(batch.coordinates[never], starts[never])
    assert np.isfinite(batch.residual).all()


def sizeless():
    """Two coincident points: the unit of length is the spread of each start."""
    m = cd.Mechanism()
    m.spherical("pivot", m.ground.point(), m.body("a", position=(1, 0, 0)).point())
    m.spherical("together", m["a"].point(), m.body("b", position=(0, 3, 0)).point())
    return m


@pytest.mark.parametrize(
    ("build", "formulation"),
    [(REGISTRY["planetary_gear"].build, "manifold"), (REGISTRY["rsur"].build, "relative"), (sizeless, "manifold")],
)
def test_starts_after_the_deadline_are_judged_together_with_the_same_results(build, formulation, monkeypatch):
    mechanism = build()
    system = mechanism.system
    states = random_states(mechanism, 40)
    turned = formulations.with_angles_of_poses
    angles = [formulations.angles(system, formulations.to_reference(system, s.coordinates)) for s in states]
    lone = [verdict.judge(system, s.coordinates, 1e-12, angles=a) for s, a in zip(states, angles, strict=True)]
    mechanism.assemble_many(states[:2], formulation=formulation, max_iterations=1, restarts=0)  # makes the tables
    calls = []
    monkeypatch.setattr(verdict, "judge", lambda *_, **__: calls.append("judge"))
    monkeypatch.setattr(formulations, "with_angles_of_poses", lambda *given: calls.append("rewound") or turned(*given))
    late = mechanism.assemble_many(states, formulation=formulation, max_seconds=1e-9, workers=2)
    assert len(calls) <= 2  # whatever the number of starts
    assert set(late.status) == {"time limit"}
    assert np.array_equal(late.coordinates, [s.coordinates for s in states])
    assert np.array_equal(late.angles, angles)
    assert np.array_equal(np.column_stack([late.residual, late.tolerance]), lone)


ENDLESS = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from cardan.examples import REGISTRY, random_start
m = REGISTRY["bent_chain"].build()
starts = [m.state.moved(random_start(m, seed)) for seed in range(50)]
m.assemble_many(starts, method="gradient", max_iterations=2, workers=1)
print("ready", flush=True)
try:
    m.assemble_many(starts, method="gradient", tolerance=1e-12, max_iterations=10**9, workers=int(sys.argv[1]))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to another process")
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_ends_a_batch(workers):
    environment = {**os.environ, "PYTHONPATH": str(Path(cd.__file__).parents[1])}
    command = [sys.executable, "-c", ENDLESS, str(workers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)  # interrupt it while it runs, not at its start
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert process.stdout.readline() == "interrupted\n"
        assert time.monotonic() - began < 10.0
    assert process.wait(20.0) == 0


def test_an_error_in_a_thread_reaches_the_caller():
    def make_worker(stop):
        def worker(first, last):
            if first == 30:
                raise ValueError(f"item {first}")

        return worker

    for workers in (1, 4):
        with pytest.raises(ValueError, match="item 30"):
            run_chunks(100, 10, make_worker, workers)


def test_chunks_cover_everything_once():
    for count, size, workers in ((1, 5, 2), (10, 3, 1), (10, 3, 2), (100, 7, 5), (5, 1, 9)):
        done = np.zeros(count, dtype=int)

        def make_worker(stop, done=done):
            def worker(first, last):
                done[first:last] += 1

            return worker

        run_chunks(count, size, make_worker, workers)
        assert (done == 1).all()
    assert worker_count(None) >= 1
