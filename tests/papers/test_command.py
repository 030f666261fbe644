"""``cardan papers``: tables, documents, files, pictures, and errors reported before any work."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cardan
from cardan.analysis import chunks
from cardan.cli import figures, main, progress
from cardan.examples import REGISTRY
from layers import sampled
from papers import bench, minima, parallel, pictures, table2

Captured = pytest.CaptureFixture[str]

FEW = ["--samples", "60", "--example", "1", "--example", "3"]


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in its own process."""
    env = {**os.environ, "PYTHONPATH": str(Path(cardan.__file__).parents[1]), **environment}
    return subprocess.run(
        [sys.executable, "-m", "cardan", *arguments], capture_output=True, text=True, env=env, check=False
    )


def read_json(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


# -- liu2013 -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_liu2013_prints_rows_beside_the_paper_with_errata_and_the_worked_iteration() -> None:
    run = command("papers", "liu2013", *FEW)
    assert run.returncode == 0, run.stderr
    assert "[" not in run.stderr.replace("cardan: compiling kernels", "").split("\n")[0]  # no bar without a terminal
    lines = run.stdout.splitlines()
    assert lines[0].startswith("60 starts each, seed 0, N = 100, ε = 1e-14, inverse lu")
    rows = [line for line in lines if line.startswith("Example ")]
    assert len(rows) == 3 * 3 * 4 + 3  # the printed matrix (22) is of Example 1, body 1, only
    assert sum("10,000" in row for row in rows) == 2  # the paper's number of starts
    assert "  8,250" in run.stdout  # Example 3 compared with the row printed as Example 4
    for mark in "abcdehijk":
        assert sum(line.startswith(f"{mark}  ") for line in lines) == 1, mark
    for mark in "fg":  # marks of Example 2, which was not requested; with (22), Example 1, body 1 is reproduced
        assert not any(line.startswith(f"{mark}  ") for line in lines), mark
    assert "not reproduced: " not in run.stdout
    printed = [row.split() for row in rows if "Peng (22)" in row]
    assert [row[-4] for row in printed[:2]] == ["30", "238"]  # compared with the paper; (6b) is not
    assert [row[-1] for row in printed] == ["aek", "ajk", "ak"]
    assert "       6.9282    1.1547    0.0000   -5.7735" in lines
    assert "q₁ =   0.3750   -0.6250   -0.8750    0.1250" in lines


def test_liu2013_as_json(capsys: Captured) -> None:
    options = ["--samples", "40", "--seed", "3", "--region", "sphere", "-N", "50", "--epsilon", "1e-12"]
    assert main(["papers", "liu2013", "--json", *options, "--inverse", "pseudo"]) == 0
    document = read_json(capsys.readouterr().out)
    assert (document["samples"], document["seed"], document["N"], document["epsilon"]) == (40, 3, 50, 1e-12)
    assert document["inverse"] == "pseudo"
    assert len(document["rows"]) == 5 * 4 + 1  # the printed matrix (22)
    assert {row["region"] for row in document["rows"]} == {"sphere"}
    assert all(row["converged"] == 40 for row in document["rows"] if row["formula"] == "auto")
    assert document["worked_iteration"]["q_1"] == pytest.approx([0.375, -0.625, -0.875, 0.125])
    assert len(document["errata"]) == 11


@pytest.mark.slow
def test_liu2013_writes_csv_and_a_picture(tmp_path: Path, capsys: Captured) -> None:
    pytest.importorskip("matplotlib")
    table, picture = tmp_path / "rows.csv", tmp_path / "rows.png"
    assert main(["papers", "liu2013", *FEW, "--csv", str(table), "--plot", str(picture)]) == 0
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 39
    formulas = {"euler_parameters", "virtual_rotation", "printed_22", "manifold", "auto"}
    assert {row["formula"] for row in rows} == formulas
    assert rows[0]["paper_converged"] == "10000"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000


def test_the_median_run_ends_at_epsilon() -> None:
    runs = [[1.0, 1e-3, 1e-15], [1.0, 1e-2, 1e-4, 1e-8, 1e-16], [1.0, 1e-1, 1e-2, 1e-9, 0.0]]
    assert pictures.median_run(runs, 1e-14).tolist() == [1.0, 1e-2, 1e-4, 1e-9, 1e-16]
    assert pictures.median_run(runs[:1], 1e-2).tolist() == [1.0, 1e-3]


def test_the_printed_box_can_be_selected(capsys: Captured) -> None:
    assert main(["papers", "liu2013", "--samples", "20", "--example", "1", "--region", "box", "--box", "printed"]) == 0
    text = capsys.readouterr().out
    assert "[−1, 1]⁴" in text
    assert "[0, 1]⁴ " not in "\n".join(line for line in text.splitlines() if line.startswith("Example"))


# -- minima ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_minima_prints_why_descents_stop() -> None:
    run = command("papers", "minima", "--mechanism", "rsur", "--starts", "3", "--iterations", "200")
    assert run.returncode == 0, run.stderr
    rows = [line.split() for line in run.stdout.splitlines() if line.startswith("rsur")]
    assert [row[1] for row in rows] == ["quaternions", "ZXZ", "manifold"]
    assert "k = 0.1" in run.stdout
    for word in ("minimum", "chart", "slow"):
        assert f"\n{word:9}" in run.stdout


def test_minima_as_json_and_as_a_picture(tmp_path: Path, capsys: Captured) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "steps.svg"
    options = ["--mechanism", "stewart_distance", "--starts", "4", "--iterations", "300", "--tolerance", "0.05"]
    assert main(["papers", "minima", *options, "--json", "--plot", str(picture)]) == 0
    document = read_json(capsys.readouterr().out)
    assert [row["chart"] for row in document["rows"]] == ["euler_parameters", "euler_angles", "manifold"]
    for row in document["rows"]:
        assert row["met"] + row["minimum"] + row["by_chart"] + row["slow"] == 4
    assert "<svg" in picture.read_text(encoding="utf-8")


@sampled("name", sorted(REGISTRY), 6)
def test_every_mechanism_of_the_gallery_can_be_drawn_on_its_way(name: str, tmp_path: Path) -> None:
    """Also those with drivers, limits and gears, which relate coordinates and have no position."""
    pytest.importorskip("matplotlib")
    steps = minima.sequence(minima.Inputs((name,), starts=1, iterations=3))
    figures.save(pictures.sequence(steps), tmp_path / "steps.svg")
    assert f"{name}, spring step" in (tmp_path / "steps.svg").read_text(encoding="utf-8")


# -- bench -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_bench_parallel_states_what_constant_time_means() -> None:
    several_cores = chunks.core_count() > 1
    run = command("papers", "parallel", "--bodies", "300", "--bodies", "600", "--seconds", "0.02")
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[2].split()[:5] == ["bodies", "1", "thread", "2", "threads"]
    assert [line.split()[0] for line in lines[3:5]] == ["300", "600"]
    assert "constant time" in run.stdout or not several_cores
    assert "too short" in run.stdout
    assert "not constant, on any number\nof cores" in run.stdout


def timing(links: int, one: float, several: float, threads: int = 2) -> parallel.Timing:
    return parallel.Timing(links, {1: one, threads: several}, {1: one, threads: several}, 1.9, 0.5 * one)


GROWN = [parallel.Growth(20, 267, 164), parallel.Growth(40, 269, 282), parallel.Growth(80, 189, 824),
         parallel.Growth(160, 240, 2928)]  # fmt: skip


@pytest.mark.parametrize(("several", "ratio", "is_constant"), [(0.13, "1.04", True), (0.2, "1.60", False)])
def test_constant_time_is_claimed_where_it_was_measured(
    several: float, ratio: str, is_constant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "core_count", lambda: 2)
    text = bench._text([timing(1000, 0.25e-3, several * 1e-3)], GROWN, 2)
    assert f"an iteration takes {ratio} times as long on 2 cores as on one\n(1,000 bodies" in text
    assert "(1,000 bodies against 500 bodies on one thread)" in text
    assert ("this is the papers' constant time" in text) == is_constant
    assert ("is not observed here" in text) != is_constant
    assert "from 80 to 160 links as N^1.8, towards N²" in text


@pytest.mark.parametrize(("threads", "cores", "per_core"), [(2, 2, "500"), (4, 2, "500"), (4, 1, "1,000")])
def test_bodies_per_core_are_shared_by_the_cores_there_are(
    threads: int, cores: int, per_core: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "core_count", lambda: cores)
    text = bench._text([timing(1000, 2e-4, 1e-4, threads)], GROWN, threads)
    assert text.splitlines()[0].endswith("; 1 core" if cores == 1 else f"; {cores} cores")
    assert text.splitlines()[3].split()[-3] == per_core
    assert ("constant time" in text) == (cores >= threads)  # else each core has more bodies


def test_one_thread_is_not_compared_with_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    text = bench._text([timing(1000, 2e-4, 2e-4, 1)], GROWN, 1)
    assert " ".join(text.splitlines()[2].split()) == "bodies 1 thread bodies per core per body and core"
    assert "1 threads" not in text
    assert "speed-up" not in text


@pytest.mark.slow
def test_bench_parallel_as_json(capsys: Captured) -> None:
    assert main(["papers", "parallel", "--bodies", "200", "--threads", "3", "--seconds", "0.02", "--json"]) == 0
    document = read_json(capsys.readouterr().out)
    (timing,) = document["timings"]
    assert set(timing["seconds"]) == {"1", "3"}
    assert timing["speed_up"] == pytest.approx(timing["seconds"]["1"] / timing["seconds"]["3"])
    assert document["exponents"]["compressed"] > 1.3
    assert timing["median_speed_up"] == pytest.approx(timing["median_seconds"]["1"] / timing["median_seconds"]["3"])
    assert timing["speed_up_of_separate_chains"] > 0.0
    assert [row["bodies"] for row in document["iterations"]] == [20, 40, 80, 160]


def test_a_longer_chain_can_be_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parallel.growth_sizes(160) == parallel.GROWTH_SIZES
    assert parallel.growth_sizes(700) == (20, 40, 80, 160, 320, 640)
    longer = [*GROWN, parallel.Growth(320, 320, 11140)]
    assert "from 160 to 320 links as N^1.9, towards N²" in bench._text([timing(1000, 2e-4, 1e-4)], longer, 2)


# -- streams -----------------------------------------------------------------------------------------------------------


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a shell line with ``cardan`` as its first word."""
    env = {**os.environ, "PYTHONPATH": str(Path(cardan.__file__).parents[1])}
    full = line.replace("cardan", f"{sys.executable} -m cardan", 1)
    return subprocess.run(["bash", "-c", full], capture_output=True, text=True, env=env, check=False)


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no shell to close streams")
QUICK = "cardan papers liu2013 --samples 3 --example 1 --region box"


@needs_bash
@pytest.mark.parametrize("line", [QUICK, "cardan solve rsur", "cardan examples"])
def test_a_closed_stdout_is_reported_before_any_work(line: str) -> None:
    run = shell(f"{line} >&-")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        "cardan: error: stdout is closed, so the result cannot be written: open it, or redirect it to a file\n"
    )


@pytest.mark.slow
@needs_bash
def test_with_a_closed_stderr_messages_go_nowhere() -> None:
    run = shell(f"{QUICK} --json 2>&-")
    assert run.returncode == 0
    assert read_json(run.stdout)["samples"] == 3
    assert shell("cardan warmup --json 2>&-").stdout.startswith("{")


@pytest.mark.slow
@needs_bash
def test_rows_can_go_to_a_pipe() -> None:
    run = shell(f"{QUICK} --csv >(cat >&2)")
    assert run.returncode == 0, run.stderr
    run = shell(f"{QUICK} --csv /dev/stdout | cat")
    assert "example,movable" in run.stdout.replace("\r", "") or "experiment" in run.stdout


def test_an_interrupted_study_prints_the_rows_it_has(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = table2._row, []

    def row(*arguments: Any) -> Any:
        calls.append(None)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(table2, "_row", row)
    rows = tmp_path / "rows.csv"
    quick = ["--samples", "2", "--example", "3", "--region", "box"]
    assert main(["papers", "liu2013", *quick, "--json", "--csv", str(rows)]) == 130
    captured = capsys.readouterr()
    assert captured.err == "cardan: interrupted\n"
    assert len(read_json(captured.out)["rows"]) == 2
    assert len(rows.read_text().splitlines()) == 3


def test_repeated_options_are_processed_once(capsys: Captured) -> None:
    twice = ["--samples", "2", "--example", "3", "--example", "3", "--region", "box", "--region", "box"]
    assert main(["papers", "liu2013", *twice, "--json"]) == 0
    assert len(read_json(capsys.readouterr().out)["rows"]) == 4


def test_a_picture_of_no_convergent_run_is_drawn(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    pytest.importorskip("matplotlib")
    few = ["--samples", "1", "--example", "4", "--region", "sphere", "-N", "1"]
    assert main(["papers", "liu2013", *few, "--plot", str(tmp_path / "none.png")]) == 0
    assert not [warning for warning in recwarn if issubclass(warning.category, UserWarning)]


def test_an_installed_package_says_where_the_experiments_are(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cardan.checkout.IS_CHECKOUT", False)
    assert main(["papers", "liu2013", "--samples", "3"]) == 2
    assert "in a checkout, run `pip install -e .` and then `cardan papers`" in capsys.readouterr().err
    assert main(["papers", "--help"]) == 0


def test_experiments_are_no_studies_of_models(capsys: Captured) -> None:
    """`cardan study` takes a model."""
    assert main(["study", "liu2013", "--vary", "L=1..2:2", "--output", "final(A)"]) == 2
    assert "no example is named 'liu2013'" in capsys.readouterr().err


# -- invalid calls ----------------------------------------------------------------------------------------------------

LIU, MINIMA, BENCH = ["papers", "liu2013"], ["papers", "minima"], ["papers", "parallel"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["papers"], "arguments are required: NAME"),
        (["papers", "liu2014"], "invalid choice: 'liu2014'"),
        (["bench"], "arguments are required: NAME"),
        ([*LIU, "--example", "5"], "the example is 5; it must be one of 1, 2, 3, 4"),
        ([*LIU, "--example", "one"], "invalid int value: 'one'"),
        ([*LIU, "--samples", "0"], "the number of starts is 0; it must be a whole number from 1 on"),
        ([*LIU, "--samples", "-3"], "the number of starts is -3"),
        ([*LIU, "--seed", "-1"], "the seed is -1"),
        ([*LIU, "--epsilon", "-1e-9"], "expected one argument"),
        ([*LIU, "--epsilon=-1e-9"], "ε is -1e-09; it must be above zero"),
        ([*LIU, "--epsilon", "nan"], "ε is nan; it must be finite"),
        ([*LIU, "-N", "0"], "N is 0; it must be a whole number from 1 on"),
        ([*LIU, "--region", "ball"], "invalid choice: 'ball'"),
        ([*LIU, "--inverse", "qr"], "invalid choice: 'qr'"),
        ([*LIU, "--workers", "0"], "workers is 0; it must be a whole number from 1 on; without it all cores are used"),
        ([*LIU, "--plot", "no/such/place.png"], "there is no directory 'no/such'; make it first"),
        ([*LIU, "--plot", "picture.bmp"], "its name must end in .png, .svg, .pdf"),
        ([*LIU, "--plot", "."], "its name must end in"),
        ([*LIU, "--csv", "."], "'.', which is a directory"),
        ([*LIU, "--csv", "no/such/rows.csv"], "there is no directory 'no/such'"),
        ([*MINIMA, "--mechanism", "rsurr"], "no example is named 'rsurr'; did you mean 'rsur'?"),
        ([*MINIMA, "--starts", "0"], "the number of starts is 0"),
        ([*MINIMA, "--iterations", "0"], "the number of iterations is 0"),
        ([*MINIMA, "--tolerance", "0"], "the tolerance is 0.0; it must be above zero"),
        ([*MINIMA, "--tolerance", "1"], "the tolerance is 1.0; it must be below 1"),
        ([*MINIMA, "--plot", "no/such/place.png"], "there is no directory 'no/such'"),
        ([*MINIMA, "--workers", "0"], "workers is 0"),
        ([*BENCH, "--bodies", "0"], "a number of bodies is 0"),
        ([*BENCH, "--threads", "0"], "a number of threads is 0"),
        ([*BENCH, "--seconds", "0"], "the time of a measurement [s] is 0.0; it must be above zero"),
        ([*BENCH, "--seconds", "inf"], "the time of a measurement [s] is inf; it must be finite"),
        ([*BENCH, "--threads", "3000"], "a number of threads is 3000; it must be 256 at the most"),
        ([*BENCH, "--bodies", "99999999999999"], "a number of bodies is 99999999999999; it must be 1,000,000 at the"),
        ([*BENCH, "--growth", "10"], "the longest chain whose iterations are counted is 10; it must be a whole number"),
        ([*LIU, "--samples", "999999999"], "the number of starts is 999999999; it must be 1,000,000 at the most"),
        ([*LIU, "-N", str(2**63 - 1)], "N is 9223372036854775807; it must be 1,000,000,000 at the most"),
        ([*LIU, "--csv", ""], "the file has no name"),
        ([*LIU, "--csv", "same.png", "--plot", "same.png"], "two outputs have the same path"),
        ([*MINIMA, "--iterations", "99999999999999999999"], "the number of iterations is 99999999999999999999; it"),
        ([*MINIMA, "--starts", "99999999999999999999"], "the number of starts is 99999999999999999999; it must be"),
        ([*MINIMA, "--gain", "0"], "k of the spring step is 0.0; it must be above zero"),
        ([*MINIMA, "--gain", "nan"], "k of the spring step is nan; it must be finite"),
    ],
)
def test_invalid_calls_exit_with_2_before_any_work(
    arguments: list[str], message: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("papers.liu2013.problem", "papers.minima._descend", "papers.parallel.Springs"):
        monkeypatch.setattr(module, lambda *_: pytest.fail("work was done"))
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no file system that takes no files")
@pytest.mark.parametrize("arguments", [[*LIU, "--csv", "/proc/x"], [*LIU, "--plot", "/proc/x.png"]])
def test_a_file_that_cannot_be_made_is_refused_before_any_work(
    arguments: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("papers.liu2013.problem", lambda *_: pytest.fail("work was done"))
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert "/proc/x" in captured.err
    assert "cannot be written (No such file or directory)" in captured.err
    assert captured.out == ""


def test_checking_a_file_leaves_no_trace(tmp_path: Path) -> None:
    new, old = tmp_path / "new.csv", tmp_path / "old.csv"
    old.write_text("of yesterday")
    for path in (new, old):
        assert figures.check_file(str(path)) == path
    assert not new.exists()
    assert old.read_text() == "of yesterday"


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")


@needs_full
def test_a_full_file_is_reported_and_the_table_is_printed(capsys: Captured) -> None:
    few = ["--samples", "10", "--example", "3", "--region", "box"]
    assert main([*LIU, *few, "--csv", "/dev/full"]) == 2
    captured = capsys.readouterr()
    assert captured.err.endswith("cardan: error: cannot write '/dev/full': No space left on device\n")
    assert "Example 3, body 2" in captured.out


@pytest.mark.slow
@needs_full
@sampled("arguments", [["examples"], ["examples", "--json"], ["solve", "rsur"], LIU], 2)
def test_a_full_stdout_is_reported(arguments: list[str], tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    if arguments is LIU:
        arguments = [*LIU, "--samples", "10", "--example", "3", "--region", "box", "--csv", str(rows)]
    env = {**os.environ, "PYTHONPATH": str(Path(cardan.__file__).parents[1])}
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "cardan", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, env=env,
            check=False,
        )  # fmt: skip
    assert run.returncode == 2
    assert run.stderr.endswith("cardan: error: cannot write to stdout: No space left on device\n")
    assert "Traceback" not in run.stderr
    assert rows.exists() == ("--csv" in arguments)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_path_without_write_permission_is_refused(tmp_path: Path, capsys: Captured) -> None:
    tmp_path.chmod(0o500)
    assert main(["papers", "liu2013", "--csv", str(tmp_path / "rows.csv")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_without_matplotlib_a_picture_is_refused_with_advice(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda name: None)
    assert main(["papers", "minima", "--plot", str(tmp_path / "a.png")]) == 2
    assert "pip install 'cardan[plot]'" in capsys.readouterr().err
    assert not (tmp_path / "a.png").exists()


@pytest.mark.parametrize(
    "arguments", [["papers", "--help"], ["bench", "--help"], [*LIU, "--samples", "0"], [*BENCH, "--bodies", "0"]]
)
def test_commands_without_kernels_do_not_load_numba(arguments: list[str]) -> None:
    code = f"import sys; from cardan.cli import main; main({arguments!r}); sys.exit('numba' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": str(Path(cardan.__file__).parents[1])}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert run.returncode == 0, run.stderr


def test_every_study_and_benchmark_has_help(capsys: Captured) -> None:
    for arguments in (LIU, MINIMA, BENCH):
        assert main([*arguments, "--help"]) == 0
        assert f"usage: cardan {' '.join(arguments)}" in capsys.readouterr().out


# -- the bar -----------------------------------------------------------------------------------------------------------


class Terminal:
    def __init__(self, is_terminal: bool) -> None:
        self.text = ""
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("columns", [200, 80, 59, 40, 30, 21, 12, 3, 1])
def test_the_bar_keeps_to_the_width_of_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "EACH", 0.0)
    monkeypatch.setattr(progress.shutil, "get_terminal_size", lambda *_, **__: os.terminal_size((columns, 24)))
    with progress.Bar("liu2013") as bar:
        for k in range(5):
            bar.update(k, 4)
    drawn = terminal.text.split("\r")
    assert max(map(len, drawn)) < columns  # filling the last column may start a new line
    assert len(drawn[-2]) == max(map(len, drawn[:-2]))
    assert ("#" in terminal.text) == (columns > 28)
    if columns > 12:
        assert "100 %" in drawn[5]


def test_the_width_is_that_of_the_terminal_the_bar_is_drawn_on(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(True)
    terminal.fileno = lambda: 2  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "stderr", terminal)
    sizes = {1: os.terminal_size((80, 24)), 2: os.terminal_size((40, 24))}  # stdout may be a file, or wider
    monkeypatch.setattr(progress.os, "get_terminal_size", lambda fileno=1: sizes[fileno])
    assert progress._columns() == 39


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_bar_is_drawn_only_on_a_terminal_and_erased(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(is_terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "EACH", 0.0)
    with progress.Bar("work") as bar:
        for k in range(5):
            bar.update(k, 4)
    if not is_terminal:
        assert terminal.text == ""
        return
    drawn = terminal.text.split("\r")
    assert "work [---" in drawn[1]
    assert " 50 %" in drawn[3]
    assert "100 %" in drawn[5]
    assert drawn[-2].strip() == "" == drawn[-1]


@pytest.mark.slow
def test_tolerances_prints_a_table_writes_rows_and_draws(tmp_path: Path, capsys: Captured) -> None:
    rows, picture = tmp_path / "rows.csv", tmp_path / "picture.svg"
    few = ["--poses", "3", "--samples", "50"]
    assert main(["papers", "tolerances", "slider_crank", *few, "--csv", str(rows), "--plot", str(picture)]) == 0
    assert "contributions to the variance" in capsys.readouterr().out
    with rows.open(encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert len(written) == 3
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
    assert main(["papers", "tolerances", "slider_crank", *few, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["worst"] for row in found["rows"]] == pytest.approx([float(row["worst"]) for row in written])
    assert sum(found["contributions"].values()) == pytest.approx(1.0)
    assert main(["papers", "tolerances", "bicycle"]) != 0
    assert "slider_crank" in capsys.readouterr().err


@pytest.mark.slow
def test_the_contact_study_prints_gaps_errors_and_costs(capsys, tmp_path):
    picture = tmp_path / "contact.png"
    assert main(["papers", "contact", "--steps", "3", "--plot", str(picture)]) == 0
    text = capsys.readouterr().out
    assert "C^p of the papers" in text and "richardson" in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["papers", "contact", "--steps", "3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["papers"]) == 4 and document["errors"]["richardson"] < 1e-7
    assert main(["papers", "contact", "--steps", "0"]) == 2
