"""Studies: parts that are finished or absent, in one process; nothing is lost, nothing is computed twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import cardan as cd
from cardan.study.task import Task, digest
from tests.study.models import OUTPUTS, four_bar, same, slow, study, turned

HERE = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def whole():
    """An undisturbed study, in memory."""
    return study().run(workers=1, size=5)


def counted(monkeypatch):
    """How many runs are computed from now on."""
    runs = []
    run = Task.run

    def told(self, values, *rest):
        runs.append(len(values["a"]))
        return run(self, values, *rest)

    monkeypatch.setattr(Task, "run", told)
    return runs


def test_the_numbers_are_those_of_simulate_many(whole):
    m = four_bar()
    runs = m.simulate_many(0.1, values=dict(whole.values), outputs=OUTPUTS, step=2e-3)
    for label in OUTPUTS:
        assert np.array_equal(whole[label], runs[label])
    assert whole.parts == 8 and whole.missing == 0 and len(whole.table()["run"]) == 40


@pytest.mark.parametrize("size", [1, 7, 40, 1000])
def test_nothing_depends_on_parts_and_threads(whole, size, tmp_path):
    assert same(study().run(workers=2, size=size, path=tmp_path / "runs"), whole)


def test_a_folder_is_continued_where_it_was_stopped(whole, tmp_path, monkeypatch):
    first = study().run(workers=1, size=5, path=tmp_path, max_seconds=1e-9)
    assert first.missing == 40
    stopped = study()

    def stop(done, total):
        if done >= 20:
            raise KeyboardInterrupt

    stopped.run(workers=1, size=5, path=tmp_path, progress=stop)
    assert stopped.interrupted and stopped.missing == 20
    runs = counted(monkeypatch)
    again = study()
    assert same(again.run(workers=1, path=tmp_path), whole)
    assert sum(runs) == 20 and again.parts == 8  # with the size of the folder
    assert same(study().run(path=tmp_path), whole) and sum(runs) == 20
    assert same(study().open(tmp_path), whole)


@pytest.mark.parametrize(
    "change, word",
    [
        (lambda: study(mechanism=heavier()), "another model"),
        (lambda: study(mechanism=turned()), "another model"),
        (lambda: study(seed=4), "other values"),
        (lambda: study(outputs=OUTPUTS[:2]), "other outputs"),
        (lambda: study(gain=None, max_step=1.0), "another duration"),
    ],
)
def test_a_folder_of_another_study_is_refused_by_name(tmp_path, change, word):
    study().run(workers=1, size=20, path=tmp_path)
    kept = sorted(os.listdir(tmp_path))
    with pytest.raises(cd.ModelError, match=f"(?s)'four-bar', with 2 finished parts, of .*{word}"):
        change().run(path=tmp_path)
    assert sorted(os.listdir(tmp_path)) == kept


def heavier():
    m = four_bar()
    m["crank"].mass = 2.0
    return m


def test_a_folder_of_another_version_is_refused(tmp_path, monkeypatch):
    study().run(workers=1, size=20, path=tmp_path)
    monkeypatch.setattr(cd, "__version__", "99.0")
    with pytest.raises(cd.ModelError, match="another version"):
        study().run(path=tmp_path)


def test_later_edits_do_not_matter(whole):
    m = four_bar()
    made = study(mechanism=m)
    m["crank"].mass = 9.0
    assert same(made.run(workers=1), whole)


def test_a_damaged_part_is_named_and_computed_again_when_it_is_removed(whole, tmp_path):
    made = study().run(workers=1, size=5, path=tmp_path)
    part = tmp_path / "part-000003.parquet"
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(cd.ModelError, match="part-000003"):
        made.table()
    part.unlink()
    assert same(study().run(workers=1, path=tmp_path), whole)


def test_a_part_of_another_place_is_named(tmp_path):
    made = study().run(workers=1, size=5, path=tmp_path)
    (tmp_path / "part-000003.parquet").write_bytes((tmp_path / "part-000002.parquet").read_bytes())
    with pytest.raises(cd.ModelError, match="part-000003"):
        made.table()


def test_two_clients_on_one_folder_share_the_parts(tmp_path, monkeypatch):
    """Threads stand for processes: locks belong to open files."""
    runs = counted(monkeypatch)
    outputs = {"slow": slow}
    studies = [study(outputs=outputs) for _ in range(2)]
    threads = [threading.Thread(target=one.run, kwargs={"workers": 1, "size": 2, "path": tmp_path}) for one in studies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(runs) == 40 and all(one.missing == 0 for one in studies)
    assert same(studies[0], study(outputs=outputs).run(workers=1)) and same(*studies)


def test_a_full_disk_loses_nothing(whole, tmp_path):
    """Files may have 500 kB, and the parts from the fourth on have 1 MB more: a limit in place of a full disk."""
    script = (
        "import resource, signal, sys, cardan as cd; from cardan.study import folder\n"
        "from tests.study.models import study\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "write, count = folder.to_parquet, [0]\n"
        "def larger(*given):\n"
        "    count[0] += 1\n"
        "    return write(*given) + (b'' if count[0] < 4 else bytes(1_000_000))\n"
        "folder.to_parquet = larger\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))\n"
        "try:\n"
        f"    study().run(workers=1, size=5, path={str(tmp_path / 'runs')!r})\n"
        "except cd.ModelError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=HERE, capture_output=True, text=True, timeout=120, check=True
    )
    assert "cannot be written: File too large" in done.stdout, done.stdout + done.stderr
    left = study().open(tmp_path / "runs")
    assert left.missing == 25
    assert not [name for name in os.listdir(tmp_path / "runs") if name.endswith((".tmp", ".claim"))]
    assert same(left.run(workers=1, path=tmp_path / "runs"), whole)


KILLED = "import sys; from tests.study.models import study; study().run(workers=1, size=1, path=sys.argv[1])"


def test_a_client_that_is_killed_loses_only_the_part_under_way(whole, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], cwd=HERE)
    end = time.monotonic() + 60
    while len(list(tmp_path.glob("*.parquet"))) < 3 and time.monotonic() < end:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    assert same(study().run(workers=1, path=tmp_path), whole)


@pytest.mark.long
def test_a_hundred_kills_lose_and_double_nothing(tmp_path, monkeypatch):
    """1,000 parts of one run; each client is killed at a random time after it has begun."""
    script = "import sys; from tests.study.models import study; study(1000).run(workers=1, size=1, path=sys.argv[1])"
    rng = np.random.default_rng(0)
    kills = 0
    while kills < 100:
        process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], cwd=HERE)
        before, end = len(list(tmp_path.glob("*.parquet"))), time.monotonic() + 60
        while len(list(tmp_path.glob("*.parquet"))) <= before and process.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.01))
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        kills += 1
    left = len(list(tmp_path.glob("*.parquet")))
    runs = counted(monkeypatch)
    found = study(1000).run(workers=1, path=tmp_path)
    assert sum(runs) == 1000 - left > 0 and same(found, study(1000).run(workers=1))


def test_an_executor_of_threads_and_of_processes(whole):
    with ThreadPoolExecutor(2) as pool:
        assert same(study().run(executor=pool, size=5), whole)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert same(study().run(executor=pool, size=20), whole)


def test_functions_without_a_name_are_sent_to_processes():
    wanted = study(10, turned(), {"A": lambda sim: sim.coordinate("A")[-1]}).run(workers=1)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert same(study(10, turned(), {"A": lambda sim: sim.coordinate("A")[-1]}).run(executor=pool), wanted)


# -- what is computed, and read ----------------------------------------------------------------------------------------


def test_runs_that_fail_are_named_and_repeated_exactly():
    m = four_bar()
    rows = [{"a": 1.0, "b": 3.0}, {"a": 1.0, "b": 9.0}, {"a": 1.1, "b": 3.0}]
    made = m.study(rows, ["final(A)"], duration=0.1, step=2e-3).run(workers=1)
    (failure,) = made.failed
    assert (failure.run, failure.status, failure.values) == (1, "not assembled", {"a": 1.0, "b": 9.0})
    assert "run 1: not assembled" in made.text() and np.isnan(made["final(A)"][1])
    assert made.again(2).coordinate("A")[-1] == made["final(A)"][2]
    assert not made.again(1).ok


def test_a_run_that_takes_too_long_is_named(tmp_path):
    m = four_bar()
    made = m.study({"a": [1.0, 1.1]}, ["final(A)"], duration=1e5, times=[0.0, 1e5], step=1e-3)
    made.run(workers=1, size=1, run_seconds=0.2, path=tmp_path)
    assert [one.status for one in made.failed] == ["time limit"] * 2 and made.missing == 0


def test_motions_and_assemblies():
    m = turned()
    moved = m.study({"a": [0.9, 1.0, 1.1]}, ["final(D)"], times=[0.0, 0.2, 0.4]).run(workers=1)
    assert moved["final(D)"][1] == m.move([0.0, 0.2, 0.4]).coordinate("D")[-1]
    posed = m.study({"a": [0.9, 1.0, 1.1], "b": [3.0, 3.1, 9.0]}, ["D", m["coupler"].point()]).run(workers=1)
    found = m.assemble(m.state.with_variables({"a": 1.0, "b": 3.1}), restarts=0)
    assert posed["D"][1] == pytest.approx(found.coordinate("D"), abs=1e-12)
    assert posed["coupler x"][1] == pytest.approx(found.state["coupler"].position[0], abs=1e-12)
    assert [one.run for one in posed.failed] == [2] and not posed.again(2).ok and posed.again(1).ok


@pytest.mark.slow
@pytest.mark.parametrize("runs", [3_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_monte_carlo_has_the_moments_of_closed_form(runs):
    """The crank at 60°: x of its end is a/2 for every length of the coupler; σ = t/6.  The same on 1 and 2 threads."""
    m = four_bar()
    m.drive("hold", m["A"], np.pi / 3)
    sample = cd.sample.normal(a=0.15, b=0.15, runs=runs, seed=2)
    found = [m.study(sample, [m["coupler"].point()]).run(workers=w) for w in (1, 2)]
    assert same(*found) and not found[0].failed
    x = found[0]["coupler x"]
    assert x.mean() == pytest.approx(0.5, abs=3 * 0.025 / np.sqrt(runs))
    assert x.std() == pytest.approx(0.025, rel=3 / np.sqrt(2 * runs))


def test_statistics_agree_with_numpy(whole):
    a, b, y = whole.values["a"], whole.values["b"], whole["final(A)"]
    found = whole.correlation()["final(A)"]
    assert found["a"] == pytest.approx(np.corrcoef(a, y)[0, 1], abs=1e-12)
    solved = np.linalg.lstsq(np.column_stack([np.ones(40), a, b]), y, rcond=None)[0]
    assert whole.sensitivity()["final(A)"]["b"] == pytest.approx(solved[2], rel=1e-9)
    level = float(np.median(y))
    share = whole.yield_of({"final(A)": (None, level)})
    assert share.share == np.mean(y <= level) and share.lower < share.share < share.upper
    from scipy.stats import binomtest

    interval = binomtest(int(share.within.sum()), 40).proportion_ci(method="wilson")
    assert (share.lower, share.upper) == pytest.approx((interval.low, interval.high), abs=1e-12)


def test_a_plot_and_a_table(whole):
    figure = whole.plot("a", "final(A)")
    assert len(figure.axes[0].lines[0].get_xdata()) == 40
    table = whole.table()
    assert list(table)[:5] == ["run", "a", "b", "max(effort(drag)) [N m]", "final(A) [rad]"]
    assert "<table>" in whole._repr_html_() and "40 done" in repr(whole)


def test_a_digest_is_that_of_the_content():
    def driven(rate):
        m = four_bar()
        m.drive("motor", m["A"], lambda t: rate * t if t < 1.0 else rate)  # no file can contain it
        return Task(m, ("A",), None, 0.1, None, None, 1e-12).digests()["model"]

    assert driven(1.0) == driven(1.0) != driven(1.5)
    assert digest({"a": np.arange(3.0)}) == digest({"a": np.arange(3.0)}) != digest({"a": np.arange(3)})
    script = "from tests.study.models import study, turned; print(study(mechanism=turned())._digests())"
    told = {
        subprocess.run([sys.executable, "-c", script], cwd=HERE, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert told == {f"{study(mechanism=turned())._digests()}\n"}


def test_digests_of_other_drivers_points_and_functions_differ():
    def described(*rates):
        m = four_bar()
        for joint, rate in zip("AD", rates, strict=True):
            m.drive(f"motor {joint}", m[joint], lambda t, rate=rate: rate * t)
        return Task(m, ("A",), None, 0.1, None, None, 1e-12).digests()["model"]

    assert described(1.0, 2.0) == described(1.0, 2.0)
    assert len({described(a, b) for a in (1.0, 2.0, 3.0) for b in (1.0, 2.0, 3.0)}) == 9
    crank = four_bar()["crank"]

    def points(x):
        return digest({"p": crank.point((5.0, 0, 0)), "q": crank.point((x, 0, 0))})

    assert points(5.0) == points(5.0) != points(7.0) == points(7.0)

    def functions(a, b):
        return digest([lambda t: a * t, lambda t: b * t])

    assert functions(1.0, 2.0) == functions(1.0, 2.0) != functions(1.0, 3.0)
    assert digest([lambda t: 2.0 * t, lambda t: 3.0 * t]) != digest([lambda t: 2.0 * t, lambda t: 2.0 * t])


def test_a_description_that_is_text_is_part_of_a_digest():
    def noted(text):
        made = SimpleNamespace(description=text)
        return digest(made)

    assert noted("one") == noted("one") != noted("two")


class Ending(Executor):
    """Whose process ends with each part."""

    def submit(self, *_):
        future = Future()
        future.set_exception(BrokenExecutor("it ended"))
        return future


def test_the_part_with_which_a_process_of_an_executor_ends_is_named():
    with pytest.raises(cd.ModelError, match=r"one of the parts \[0\]: it ended"):
        study(5).run(executor=Ending(), size=5)


REFUSED = {
    "no such output": (lambda m: m.study({"a": [1.0]}, ["E"], duration=1.0), "'E'"),
    "no such parameter": (lambda m: m.study({"q": [1.0]}, ["A"], duration=1.0), "'q'"),
    "beyond bounds": (lambda m: m.study({"a": [1.0, 7.0]}, ["A"], duration=1.0), "start 1"),
    "no duration": (lambda m: m.study({"a": [1.0]}, ["A"], step=1e-3), "'step'"),
    "a limit of one run": (
        lambda m: m.study({"a": [1.0]}, [], duration=1.0, options=cd.SimulationOptions(max_seconds=1.0)),
        "run_seconds",
    ),
    "two ways": (lambda m: study().run(executor=1, client=2), "executor"),
    "an executor and workers": (lambda m: study().run(executor=1, workers=2), "workers"),
    "no client": (lambda m: study().run(client=3), "client"),
    "no scheduler": (lambda m: study().run(client="nowhere"), "nowhere"),
    "no size": (lambda m: study().run(size=0), "size"),
    "no folder": (lambda m: study().run(path="/dev/null/runs"), "/dev/null/runs"),
    "no study there": (lambda m: study().open("/tmp"), "/tmp"),
    "nothing finished": (lambda m: study().table(), "run"),
    "no such run": (lambda m: study().again(99), "99"),
    "no limits": (lambda m: study(5).run(workers=1).yield_of({}), "limits"),
    "limits exchanged": (
        lambda m: study(5).run(workers=1).yield_of({"final(A)": (1, -1)}),
        "lower one must come first",
    ),
    "limits of what is not there": (lambda m: study(5).run(workers=1).yield_of({"E": (0, 1)}), "'E'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_calls_name_the_item(case):
    call, text = REFUSED[case]
    with pytest.raises(cd.ModelError, match=text):
        call(four_bar())


def test_what_runs_do_not_consider_is_refused_by_name():
    m = four_bar()
    m["crank"].attach(cd.shapes.box(0.1, 0.1, 0.1))
    m["rocker"].attach(cd.shapes.box(0.1, 0.1, 0.1))
    m.collide([m["crank"], m["rocker"]], name="apart")
    with pytest.raises(cd.ModelError, match="apart"):
        m.study({"a": [1.0]}, ["A"], duration=1.0)


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(cd.ModelError, match=r"cardan\[study\]"):
        study().run(path=tmp_path)
