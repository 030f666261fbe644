"""The command line: output, streams and exit codes."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import math
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import cardan
from cardan import examples
from cardan.analysis.move import _Path
from cardan.cli import VERBS, main, output, parser, solve, warmup
from cardan.examples import GALLERY, Example, installed
from cardan.kernel.listed import LISTED
from gallery import rsur

Captured = pytest.CaptureFixture[str]
FOLDER = Path(examples.__file__).parent


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)


def read_json(captured: Captured) -> Any:
    """Read stdout, which must contain one JSON document and nothing else."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(captured.readouterr().out, parse_constant=refuse)


# -- the frame ---------------------------------------------------------------------------------------------------------


def test_version(capsys: Captured) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"cardan {cardan.__version__}\n"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["examples"], ["solve", "no such"]])
def test_commands_without_kernels_do_not_load_numba(arguments: list[str]) -> None:
    code = f"import sys; from cardan.cli import main; main({arguments!r}); sys.exit('numba' in sys.modules)"
    run = run_python(code)
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_every_verb_shows_examples_that_are_valid(capsys: Captured) -> None:
    """The commands of the help are parsed by the parser itself."""
    for verb in VERBS:
        assert main([verb, "--help"]) == 0
        shown = capsys.readouterr().out.partition("examples:\n")[2]
        lines = [line.strip() for line in shown.splitlines() if "cardan " in line]
        assert lines, verb
        for line in lines:
            command = re.split(r"\s{2,}|[<>)]", line[line.index("cardan ") :])[0]
            args = parser(verb).parse_args(shlex.split(command)[1:])
            assert args.verb.__name__ == f"cardan.cli.{verb}"


def test_help_loads_no_verb_and_no_numpy() -> None:
    """Help must not wait for the modules of the verbs, or for large packages."""
    code = (
        "import sys; from cardan.cli import main; main(['--help']); "
        "sys.exit(str({'cardan.cli.solve', 'cardan.mechanism', 'numpy', 'scipy', 'numba'} & set(sys.modules) or ''))"
    )
    run = run_python(code)
    assert run.stderr.strip() == "", run.stderr


@pytest.mark.slow
def test_a_solve_of_a_file_does_not_load_linear_algebra_of_scipy() -> None:
    """It takes a third of the time of a command with kernels in the cache."""
    code = (
        f"import sys; from cardan.cli import main; code = main(['solve', {str(FOLDER / 'planar_4r.cardan.toml')!r}]); "
        "sys.exit(code or ('SciPy was loaded' if 'scipy.linalg' in sys.modules else 0))"
    )
    run = run_python(code)
    assert run.returncode == 0, run.stderr


def processor_seconds(*arguments: str) -> float:
    """Of one command in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([sys.executable, "-m", "cardan", *arguments], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run.returncode == 0, run.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.long
def test_help_and_a_solve_are_fast(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Processor time; compiled modules are kept, as they are after an installation by pip."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    solve_file = ("solve", str(FOLDER / "planar_4r.cardan.toml"))
    for arguments in (("--help",), solve_file):
        processor_seconds(*arguments)
    assert min(processor_seconds("--help") for _ in range(3)) < 0.3
    assert min(processor_seconds(*solve_file) for _ in range(3)) < 1.0


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("solve", ()),
        ("check", ()),
        ("move", ("--frames", "2", "--until", "0.05")),
        ("simulate", ("--frames", "2", "--duration", "0.01", "--step", "0.005")),
    ],
)
def test_json_is_one_document_for_files_scripts_and_names(
    verb: str, options: tuple[str, ...], tmp_path: Path, capsys: Captured
) -> None:
    """Equal documents but for the time, and nothing else on stdout."""
    script = tmp_path / "crank.py"
    script.write_text("print('noise')\nfrom gallery.slider_crank import build\n")
    found = []
    for model in ("slider_crank", f"{script}:build", str(FOLDER / "slider_crank.cardan.toml")):
        assert main([verb, model, *options, "--json"]) == 0
        document = read_json(capsys)
        found.append({key: value for key, value in document.items() if key not in ("name", "seconds", "timings")})
    assert found[0].keys() == found[1].keys() == found[2].keys()
    for key in ("dof", "ok", "status", "times"):
        assert found[0].get(key) == found[1].get(key) == found[2].get(key)


def bar_and_plate(folder: Path, height: float) -> str:
    """A model file: a bar of 200 × 20 mm that turns about y below a plate, at a height [m] above the axis."""
    m = cardan.Mechanism("bar and plate")
    bar = m.body("bar")
    bar.attach(cardan.shapes.box(0.2, 0.03, 0.02))
    m.revolute("hinge", m.ground.frame(z=(0, 1, 0), x=(1, 0, 0)), bar.frame(z=(0, 1, 0), x=(1, 0, 0)))
    plate = m.body("plate", position=(0, 0, height + 0.05))
    plate.attach(cardan.shapes.box(1, 1, 0.1))
    m.fixed("screws", m.ground.frame((0, 0, height + 0.05)), plate.frame())
    m.body("hook")
    m.save(folder / "bar.cardan.toml", units={"length": "mm"})
    return str(folder / "bar.cardan.toml")


def test_clashes_of_a_state_are_a_table_and_a_status(tmp_path: Path, capsys: Captured) -> None:
    assert main(["clash", bar_and_plate(tmp_path, 0.05)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["none of 1 pairs overlap", "left out: 'hook': it has no shape; attach one, body.attach(shape)"]
    model = bar_and_plate(tmp_path, 0.004)  # the bar is 10 mm high above the axis: 6 mm deep
    assert main(["clash", model]) == 1
    out = capsys.readouterr().out
    assert "1 of 1 pairs overlap" in out and "depth [mm]" in out
    row = re.search(r"^bar +plate +(\S+) .* (\S+)$", out, re.MULTILINE)
    assert row is not None
    assert [float(x) for x in row.groups()] == pytest.approx([6.0, 200 * 30 * 6], rel=1e-6)
    assert main(["clash", model, "--pair", "bar", "plate", "--json"]) == 1
    document = read_json(capsys)
    assert document["overlaps"][0]["depth"] == pytest.approx(0.006, abs=1e-12)
    assert not document["ok"] and document["pairs"] == 1


def test_clashes_of_a_motion_are_a_table_and_a_status(tmp_path: Path, capsys: Captured) -> None:
    """Its corners are √(100² + 10²) mm from the axis: at 90 mm after π/2 − atan(1/10) − acos(90/100.5) [rad]."""
    model = bar_and_plate(tmp_path, 0.09)
    turn = ["--drive", "hinge=1", "--frames", "4", "--until"]
    start = math.pi / 2 - math.atan2(0.01, 0.1) - math.acos(0.09 / math.hypot(0.1, 0.01))
    assert main(["clash", model, *turn, f"{start - 0.001}"]) == 0
    assert "no clash, 1 pairs" in capsys.readouterr().out
    assert main(["clash", model, *turn, f"{start - 0.001}", "--clearance", "0.001"]) == 1
    capsys.readouterr()
    assert main(["clash", model, *turn, "1.5"]) == 1
    out = capsys.readouterr().out
    row = re.search(r"^bar +plate +(\S+) +(\S+) +\S+ +(\S+) ", out, re.MULTILINE)
    assert row is not None and "least gap [mm]" in out
    deepest = 90 - 1000 * math.hypot(0.1, 0.01)
    assert [float(x) for x in row.groups()] == pytest.approx([start, 1.5, deepest], rel=1e-5)  # six digits
    assert main(["clash", model, *turn, "1.5", "--json"]) == 1
    document = read_json(capsys)
    assert document["clashes"][0]["start"] == pytest.approx(start, abs=1e-9) and document["status"] == "done"


def test_a_model_without_shapes_has_no_clash_and_says_what_is_left_out(capsys: Captured) -> None:
    assert main(["clash", "bricard"]) == 0
    out = capsys.readouterr().out
    assert "none of 0 pairs overlap" in out and "left out: 'rod_1': it has no shape" in out


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to another process")
def test_an_interrupted_simulation_keeps_what_it_has(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from cardan.cli import main; "
        "from cardan.cli import simulate; from cardan.cli.progress import Bar\n"
        "def part(self, done):\n"
        "    if done > 0.001: signal.raise_signal(signal.SIGINT)\n"
        "Bar.part = part\n"
        f"sys.exit(main(['simulate', 'planar_4r', '--duration', '10000', '--frames', '100001', '--step', '1e-3', "
        f"'--json', '--csv', {str(rows)!r}]))"
    )
    run = run_python(code)
    assert run.returncode == 130, run.stderr
    assert run.stderr.endswith("cardan: interrupted\n")
    document = json.loads(run.stdout)
    assert document["status"] == "interrupted"
    assert 1 <= len(document["times"]) < 100001
    assert len(rows.read_text().splitlines()) == 1 + len(document["times"])


@pytest.mark.slow
def test_rows_go_to_a_pipe_that_is_not_replaced(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "cardan", "solve", "planar_4r", "--csv", "/dev/stdout", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("body,x [m]")
    assert Path("/dev/stdout").is_symlink()


LEVER = """import cardan as cd

print("a script may print")


def build():
    m = cd.Mechanism("lever")
    lever = m.body("lever", position=(0.3, 0.1, 0.2))
    m.revolute("hinge", m.ground.frame(), lever.frame())
    m.distance("rod", lever.point((3, 0, 0)), m.ground.point((5, 0, 0)), 4.0)
    return m


def wrong():
    return 1 / 0


number = 3

def sized(length):
    return length
"""


def test_files_scripts_and_names_are_solved_alike(tmp_path: Path, capsys: Captured) -> None:
    script, model = tmp_path / "lever.py", tmp_path / "lever.cardan.toml"
    script.write_text(LEVER)
    assert main(["convert", f"{script}:build", "-o", str(model)]) == 0
    capsys.readouterr()
    poses = []
    for target in (f"{script}:build", str(script), str(model)):
        assert main(["solve", target, "--json"]) == 0
        document = read_json(capsys)
        assert document["name"] == "lever"
        poses.append(document["bodies"])
    assert poses[0] == poses[1] == poses[2]
    assert main(["check", str(model), "--dof", "0"]) == 0
    assert "well posed" in capsys.readouterr().out
    assert main(["check", str(model), "--dof", "1", "--json"]) == 1
    assert read_json(capsys)["problems"] == ["it has 0 degrees of freedom, not 1"]


def test_a_check_as_json_has_names_numbers_and_units(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "planar_4r", "--json"]) == 0
    document = read_json(capsys)
    assert document["redundant"] == [
        {"constraint": "D", "primitive": "coincidence", "row": 2},
        {"constraint": "D", "primitive": "aligned", "row": 0},
        {"constraint": "D", "primitive": "aligned", "row": 1},
    ]
    (motion,) = document["free_motions"]
    assert (motion["body"], motion["unit"], motion["bodies"]) == ("crank", "rad", ["crank", "coupler", "rocker"])
    m = cardan.Mechanism("apart")
    bar = m.body("bar")
    m.revolute("hinge", m.ground.frame(), bar.frame())
    m.distance("rod", m.ground.point((3, 0, 0)), bar.point((1, 0, 0)), 0.5)
    m.save(tmp_path / "apart.cardan.toml")
    assert main(["check", str(tmp_path / "apart.cardan.toml"), "--json"]) == 1
    worst = read_json(capsys)["worst"]
    assert {item["unit"] for item in worst} <= {"m", "rad"}
    assert {item["name"] for item in worst} <= {"hinge", "rod"}
    assert all(item["residual"] > 0.0 for item in worst)


def test_a_structure_that_moves_only_infinitesimally_has_no_degree_of_freedom(tmp_path: Path, capsys: Captured) -> None:
    """Two collinear bars between fixed points are rigid, although their Jacobian leaves one freedom."""
    m = cardan.Mechanism("shaky")
    a, b = m.body("a"), m.body("b", position=(1, 0, 0))
    m.revolute("A", m.ground.frame(), a.frame())
    m.revolute("B", a.frame((1, 0, 0)), b.frame())
    m.revolute("C", b.frame((1, 0, 0)), m.ground.frame((2, 0, 0)))
    m.save(tmp_path / "shaky.cardan.toml")
    model = str(tmp_path / "shaky.cardan.toml")
    assert main(["check", model, "--dof", "0", "--json"]) == 0
    document = read_json(capsys)
    assert (document["ok"], document["dof"], document["infinitesimal"], document["undriven"]) == (True, 0, 1, 0)
    assert document["free_motions"] == []
    assert main(["check", model, "--dof", "1"]) == 1
    printed = capsys.readouterr().out
    assert "degrees of freedom: 0 (12 unknowns − rank 11 − 1 infinitesimal;" in printed
    assert "shaky: 1 degree of freedom to first order, but second order excludes every motion" in printed
    assert "not well posed: it has 0 degrees of freedom (1 more only to first order), not 1" in printed
    assert main(["solve", model, "--json"]) == 0
    document = read_json(capsys)
    assert (document["dof"], document["infinitesimal"]) == (0, 1)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("lever.py:biuld", "no function of 'lever.py' is named 'biuld'; did you mean 'build'"),
        ("lever.py:wrong", "the script 'lever.py', line 15: ZeroDivisionError: division by zero"),
        ("lever.py:number", "gives 3; it must return a cd.Mechanism"),
        ("lever.py:sized", "sized() missing 1 required positional argument: 'length'; it is called without arguments"),
        ("none.py:build", "there is no script 'none.py'"),
        ("none.cardan.toml", "cannot be read: No such file"),
        ("bad.cardan.toml", "bad.cardan.toml, line 2, bodies.a.mas: no key here is named 'mas'; did you mean 'mass'?"),
        ("lever.txt", "a file must end in .toml, .json, .urdf or .xml"),
    ],
)
def test_wrong_models_end_with_code_2(
    target: str, message: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lever.py").write_text(LEVER)
    Path("lever.txt").write_text("")
    Path("bad.cardan.toml").write_text("cardan = 1\nbodies.a.mas = 1\n")
    for verb in ("solve", "check", "move", "simulate", "convert"):
        assert main([verb, target]) == 2
        captured = capsys.readouterr()
        assert message in captured.err, captured.err
        assert captured.out == ""


@pytest.mark.slow
def test_results_are_written_as_models_tables_and_pictures(tmp_path: Path, capsys: Captured) -> None:
    rows, picture, model = tmp_path / "a.csv", tmp_path / "a.svg", tmp_path / "a.cardan.toml"
    options = ["--frames", "3", "--until", "0.5", "--csv", str(rows), "--plot", str(picture), "-o", str(model)]
    assert main(["move", "slider_crank", *options, "--json"]) == 0
    document = read_json(capsys)
    assert len(rows.read_text().splitlines()) == 4
    assert picture.stat().st_size > 1000
    reached = cardan.load(model)
    assert reached.poses["reached"].time == 0.5
    assert main(["solve", str(model), "--pose", "reached", "--json"]) == 0
    solved = read_json(capsys)
    assert solved["iterations"] <= 1
    assert document["times"][-1] == 0.5
    assert main(["simulate", str(model), "--pose", "reached", "--duration", "0.1", "--frames", "2", "--json"]) == 0
    assert read_json(capsys)["times"] == [0.5, 0.6]
    assert main(["solve", str(model), "--pose", "reachd"]) == 2
    assert "did you mean 'reached'" in capsys.readouterr().err


def test_a_wide_motion_prints_a_summary(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["move", "planetary_gear", "--frames", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines[3:])) <= 80
    assert "first" in lines[3] and "greatest" in lines[3]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_verbs_options_and_the_gallery(shell: str, capsys: Captured) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for word in (*VERBS, "planar_4r", "random-start", "liu2013"):
        assert word in text
    if shell == "bash":
        check = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
        assert check.returncode == 0, check.stderr


def test_examples_are_copied_as_files_and_scripts(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["examples", "copy", "rsur"]) == 0
    assert cardan.load("rsur.cardan.toml") == rsur.build()
    assert main(["examples", "copy", "rsur", "-o", "rsur.py"]) == 0
    assert main(["check", "rsur.py"]) == 0
    assert main(["examples", "copy", "rusr"]) == 2
    assert "did you mean 'rsur'" in capsys.readouterr().err
    assert main(["examples", "copy", "rsur", "-o", "rsur.txt"]) == 2
    assert "must end in .toml, .json, .py" in capsys.readouterr().err
    assert main(["examples", "copy", "rsur", "-o", "again.toml", "--json"]) == 0
    assert read_json(capsys) == {"files": ["again.toml"]}
    assert Path("again.toml").read_bytes() == (FOLDER / "rsur.cardan.toml").read_bytes()
    monkeypatch.setattr("cardan.checkout.IS_CHECKOUT", False)
    assert main(["examples", "copy", "rsur", "-o", "rsur.py"]) == 2
    assert "it is gallery/rsur.py of the source" in capsys.readouterr().err


def test_an_installed_package_checks_the_counts_of_the_gallery(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cardan.checkout.IS_CHECKOUT", False)
    monkeypatch.setattr("cardan.cli.examples.installed", lambda: {"rsur": GALLERY["rsur"]})
    assert main(["examples", "--solve", "--json"]) == 0
    (item,) = read_json(capsys)
    assert item["facts"] == ["degrees of freedom: 1; Grübler count 1; redundant equations 0"]


def test_a_copied_example_that_may_have_been_edited_is_not_replaced(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    edited = tmp_path / "rsur.cardan.toml"
    edited.write_text("edited")
    assert main(["examples", "copy", "rsur"]) == 2
    assert (
        "'rsur.cardan.toml' exists, and may have been edited; -o rsur.cardan.toml replaces it"
        in capsys.readouterr().err
    )
    assert edited.read_text() == "edited"
    assert main(["examples", "copy", "rsur", "-o", "rsur.cardan.toml"]) == 0
    assert cardan.load(edited) == rsur.build()


def test_a_lack_of_memory_is_an_error_and_no_traceback(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(args: argparse.Namespace) -> int:
        raise MemoryError("Unable to allocate 7.28 TiB")

    monkeypatch.setattr(solve, "run", run)
    assert main(["solve", "rsur"]) == 2
    assert capsys.readouterr().err == "cardan: error: there is not enough memory: Unable to allocate 7.28 TiB\n"


def test_help_names_every_verb(capsys: Captured) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(verb in text for verb in VERBS)
    for verb in VERBS:
        assert main([verb, "--help"]) == 0
        assert f"usage: cardan {verb}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "arguments are required: VERB"),
        (["asemble"], "invalid choice: 'asemble'"),
        (["solve"], "arguments are required: MODEL"),
        (["simulate", "rsurr"], "no example is named 'rsurr'; did you mean 'rsur'?"),
        (["simulate", "rsur", "--frames", "1"], "--frames is 1; it must be 2 or more"),
        (["simulate", "rsur", "--frames", "1000000000000"], "is 1000000000000; it must be 10,000,000 or less"),
        (["move", "rsur", "--csv", "-"], "the file is '-'; output to stdout is --json"),
        (["move", "rsur", "--frames", "10000001"], "--frames is 10000001; it must be 10,000,000 or less"),
        (["simulate", "rsur", "--duration", "nan"], "--duration is nan; it must be finite and positive"),
        (["simulate", "rsur", "--step", "1e-3", "--rtol", "1e-3"], "give one of them"),
        (["simulate", "rsur", "--plot", "x.gif"], "its name must end in .png"),
        (["solve", "rsurr"], "no example is named 'rsurr'; did you mean 'rsur'?"),
        (["solve", "rsur", "--method", "magic"], "invalid choice: 'magic'"),
        (["solve", "rsur", "--formulation", "magic"], "invalid choice: 'magic'"),
        (["solve", "rsur", "--tolerance", "small"], "invalid float value: 'small'"),
        (["solve", "rsur", "--tolerance", "nan"], "tolerance is nan; it must be finite"),
        (["solve", "rsur", "--tolerance", "-1"], "tolerance is -1.0; it must be above zero"),
        (["solve", "rsur", "--restarts", "-1"], "restarts is -1; it must be a whole number from 0 on"),
        (["solve", "rsur", "--seed", "-1"], "seed is -1; it must be a whole number from 0 on"),
        (["solve", "rsur", "--random-start", "-1"], "seed of a random start is -1"),
        (["solve", "rsur", "--max-seconds", "0"], "max_seconds is 0.0; it must be above zero"),
        (["solve", "rsur", "--method", "newton", "--restarts", "3"], "method 'newton' makes one attempt"),
        (["clash", "rsur", "--clearance", "nan"], "--clearance is nan; it must be finite"),
        (["clash", "rsur", "--clearance", "1"], "--clearance is for a motion; give --until T too"),
        (["clash", "rsur", "--drive", "A=1"], "are for a motion; give --until T too"),
        (["clash", "rsur", "--until", "0"], "they must be finite and differ"),
        (["clash", "rsur", "--until", "1", "--frames", "1"], "--frames is 1; it must be 2 or more"),
        (["clash", "rsur", "--pair", "crank", "rodd"], "is named 'rodd'"),
        (["clash", "bricard", "--pair", "rod_1", "rod_3"], "body 'rod_1' cannot be compared: it has no shape"),
        (["examples", "--sol"], "unrecognized arguments: --sol"),
    ],
)
def test_invalid_calls_are_reported_on_stderr_with_code_2(arguments: list[str], message: str, capsys: Captured) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_log_goes_to_stderr_only_while_a_verb_runs(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    log = logging.getLogger("cardan")
    before = log.level, list(log.handlers)

    def run(args: Any) -> int:
        log.info("compiling")
        log.debug("inside")
        return 0

    monkeypatch.setattr(solve, "run", run)
    assert main(["solve", "rsur"]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "cardan: compiling\n")
    for arguments in (["-v", "solve", "rsur"], ["solve", "-v", "rsur"]):
        assert main(arguments) == 0
        assert capsys.readouterr().err == "cardan: compiling\ncardan: inside\n"
    assert (log.level, list(log.handlers)) == before


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)])
def test_interruptions_end_quietly(
    error: type[BaseException], code: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(args: Any) -> int:
        raise error

    monkeypatch.setattr(solve, "run", run)
    monkeypatch.setattr("cardan.cli._discard_stdout", lambda: None)  # this process still needs its stdout
    assert main(["solve", "rsur"]) == code
    assert capfd.readouterr().err == ("cardan: interrupted\n" if error is KeyboardInterrupt else "")


@pytest.mark.slow
def test_closed_pipe_ends_quietly() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "cardan", "examples"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()  # long before the first line is written
    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == ""
    assert process.wait() == 141


@pytest.mark.slow
def test_an_ascii_stdout_is_no_error() -> None:
    run = run_python("import sys; from cardan.cli import main; sys.exit(main(['examples']))", PYTHONIOENCODING="ascii")
    assert run.returncode == 0, run.stderr
    assert "chain of 90? elbows" in run.stdout


def test_a_wrong_choice_of_kernels_is_wrong_use() -> None:
    code = "import sys; from cardan.cli import main; sys.exit(main(['solve', 'rsur']))"
    run = run_python(code, CARDAN_KERNELS="fast")
    assert run.returncode == 2
    assert run.stderr == "cardan: error: CARDAN_KERNELS is 'fast'; it must be 'numba' or 'built', or not be set\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to another process")
def test_ctrl_c_while_kernels_compile(tmp_path: Path) -> None:
    # a process started in the background may have SIGINT ignored, and its children too
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from cardan.cli import main; sys.exit(main(['warmup']))"
    )
    env = {**os.environ, "CARDAN_CACHE_DIR": str(tmp_path), "CARDAN_KERNELS": "numba"}
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, env=env)
    assert process.stderr is not None
    with process.stderr:
        first = process.stderr.readline()
        deadline = time.monotonic() + 60.0
        while process.poll() is None and time.monotonic() < deadline:  # numba may lose one in a callback
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5.0)
        process.kill()
        rest = process.stderr.read()
    assert process.wait() == 130, rest
    assert first == "cardan: compiling kernels of assembly, once\n"
    assert rest.endswith("cardan: interrupted\n")
    assert "Traceback" not in rest


# -- examples ----------------------------------------------------------------------------------------------------------


def test_examples_lists_names_and_titles(capsys: Captured) -> None:
    assert main(["examples"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(installed())
    assert all(line.endswith(e.title) for line, e in zip(lines, installed().values(), strict=True))
    assert main(["examples", "--json"]) == 0
    assert read_json(capsys) == [{"name": e.name, "title": e.title} for e in installed().values()]


@pytest.mark.slow
@pytest.mark.parametrize("count", [5, pytest.param(len(GALLERY), marks=pytest.mark.long)])
def test_examples_solve_prints_a_table_and_facts(count: int, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    solved = dict(list(GALLERY.items())[:count])  # those from CAD have their own test
    monkeypatch.setattr("cardan.cli.examples.installed", lambda: solved)
    assert main(["examples", "--solve"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].split() == [
        "mechanism", "status", "dof", "Grübler", "redundant", "residual", "iterations", "restarts", "time", "ms"
    ]  # fmt: skip
    rows = [line.split() for line in lines[1 : 1 + count]]
    counts = [[e.name, "assembled", str(e.dof), str(e.gruebler), str(e.redundant)] for e in solved.values()]
    assert [row[:5] for row in rows] == counts
    assert {len(line) for line in lines[: 1 + count]} == {len(lines[0])}
    for name in solved:
        assert sum(line.startswith(f"{name}: ") for line in lines) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("count", [5, pytest.param(len(GALLERY), marks=pytest.mark.long)])
def test_examples_solve_as_json(count: int, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    solved = dict(list(GALLERY.items())[:count])
    monkeypatch.setattr("cardan.cli.examples.installed", lambda: solved)
    assert main(["examples", "--solve", "--json"]) == 0
    document = read_json(capsys)
    assert [item["name"] for item in document] == list(solved)
    for item, example in zip(document, solved.values(), strict=True):
        assert item["ok"] is True
        assert item["failure"] is None
        assert item["facts"]
        assert (item["dof"], item["gruebler"], item["redundant"]) == (example.dof, example.gruebler, example.redundant)
        assert item["restarts"] == 0
        assert item["milliseconds"] > 0.0


def _conflicting() -> cardan.Mechanism:
    """Distances of 1 and 3 m to the same point."""
    m = cardan.Mechanism("conflicting")
    body = m.body("body", position=(2, 0, 0))
    m.distance("short", m.ground.point(), body.point(), 1.0)
    m.distance("long", m.ground.point(), body.point(), 3.0)
    return m


def test_examples_solve_reports_failures(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Example("rsur", "declared wrongly", dof=2, gruebler=1)
    _conflicting().save(tmp_path / "conflicting.cardan.toml")
    conflict = Example("conflicting", "cannot be", dof=3, gruebler=4, folder=tmp_path)
    for example, status in ((wrong, "WRONG"), (conflict, "conflict")):
        only = {example.name: example}
        monkeypatch.setattr("cardan.cli.examples.installed", lambda only=only: only)
        assert main(["examples", "--solve"]) == 1
        table, facts = capsys.readouterr().out.split("\n\n", 1)
        assert table.splitlines()[1].split()[:2] == [example.name, status]
        assert f"{example.name}: WRONG: " in facts
        assert main(["examples", "--solve", "--json"]) == 1
        (item,) = read_json(capsys)
        assert item["ok"] is False
        assert item["failure"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("slider_crank", ["examples", "--solve"]),
        ("folding_table", ["examples", "--solve", "--json"]),
        ("slider_crank", ["move", "slider_crank"]),
    ],
)
def test_ctrl_c_in_a_motion_stops_the_gallery(
    name: str, arguments: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted motion returns its states; the verb must not continue with the next mechanism."""
    original = _Path.advance

    def advance(self: _Path, target: float) -> Any:
        if target > 0.05:
            raise KeyboardInterrupt
        return original(self, target)

    monkeypatch.setattr(_Path, "advance", advance)
    monkeypatch.setattr("cardan.cli.examples.GALLERY", {name: GALLERY[name], "rsur": GALLERY["rsur"]})
    assert main(arguments) == 130
    captured = capsys.readouterr()
    assert captured.err == "cardan: interrupted\n"
    assert ("interrupted at t" in captured.out) == (arguments[0] == "move")


# -- solve -------------------------------------------------------------------------------------------------------------


def test_solve_prints_verdict_diagnosis_and_poses(capsys: Captured) -> None:
    assert main(["solve", "planar_4r"]) == 0
    text = capsys.readouterr().out
    assert "assembled: residual" in text
    assert "degrees of freedom: 1" in text
    assert "Grübler count:      -2" in text
    assert "redundant:          3" in text
    bodies = text.split("\n\n")[-1].splitlines()
    assert [line.split()[0] for line in bodies] == ["body", "crank", "coupler", "rocker"]
    assert "-0.000000000" not in text


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--formulation", "euler_parameters", "--method", "levenberg_marquardt"],
        ["--method", "hybrid", "--tolerance", "1e-10"],
        ["--random-start", "5", "--seed", "3", "--restarts", "10", "--max-iterations", "100", "--max-seconds", "60"],
    ],
)
def test_solve_as_json(options: list[str], capsys: Captured) -> None:
    assert main(["solve", "rsur", "--json", *options]) == 0
    document = read_json(capsys)
    assert document["ok"] is True
    assert document["name"] == "rsur"
    assert (document["dof"], document["gruebler"], document["redundant"]) == (1, 1, 0)
    assert set(document["bodies"]) == {"crank", "coupler", "rocker"}
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert document["method"] == given.get("--method", "auto")
    assert document["formulation"] == given.get("--formulation", "manifold")
    assert document["tolerance"] == float(given.get("--tolerance", "1e-12"))


def test_random_start_is_used_and_reproducible(capsys: Captured) -> None:
    documents = []
    for seed in ("1", "1", "2"):
        assert main(["solve", "stewart_ups", "--json", "--random-start", seed]) == 0
        documents.append(read_json(capsys)["bodies"])
    assert documents[0] == documents[1] != documents[2]


def test_solve_that_does_not_assemble_exits_with_1(capsys: Captured) -> None:
    arguments = ["solve", "rsur", "--method", "newton", "--max-iterations", "1"]
    assert main(arguments) == 1
    text = capsys.readouterr().out
    assert text.splitlines()[1].startswith("iteration limit: ")
    assert "not assembled" in text
    assert main([*arguments, "--json"]) == 1
    document = read_json(capsys)
    assert (document["ok"], document["status"]) == (False, "iteration limit")


def test_json_replaces_numbers_that_are_not_finite(capsys: Captured) -> None:
    output.print_json({"a": [float("inf"), float("nan"), 1.5], "b": (True, None, "ü", 3)})
    assert read_json(capsys) == {"a": [None, None, 1.5], "b": [True, None, "ü", 3]}


def test_move_runs_the_duration_of_a_driven_example(capsys: Captured) -> None:
    assert main(["move", "lead_screw", "--frames", "3", "--json"]) == 0
    document = read_json(capsys)
    duration = GALLERY["lead_screw"].duration
    assert document["times"] == [0.0, duration / 2, duration]
    assert document["turns"]["thread"] == 0
    assert max(document["coordinates"]["thread.angle [rad]"]) > 4 * 6.28
    assert main(["move", "lead_screw", "--until", "0.5", "--frames", "2", "--json"]) == 0
    assert read_json(capsys)["times"] == [0.0, 0.5]


UNITS_FILE = """cardan = 2
name = "arm"
{header}
[bodies.arm]
mass = 1.0
inertia = [1.0, 1.0, 1.0]
[joints.pin]
kind = "cylindrical"
a = "ground"
b = "arm"
[joints.turn]
kind = "drive"
coordinate = "pin.angle"
function = "pi*t"
[joints.push]
kind = "drive"
coordinate = "pin.displacement"
function = "0.0508*t"
"""


@pytest.mark.parametrize(
    ("header", "units", "values"),
    [
        ("", ("rad", "m"), (3.14159265, 0.0508)),
        ('[units]\nlength = "mm"\nangle = "deg"', ("deg", "mm"), (180.0, 50.8)),
        ('[units]\nlength = "m"\nangle = "turn"', ("turn", "m"), (0.5, 0.0508)),
        ('[units]\nlength = "mm"\n[display]\nlength = "inch"\nangle = "deg"', ("deg", "inch"), (180.0, 2.0)),
    ],
)
def test_tables_are_in_the_units_of_the_model(
    header: str,
    units: tuple[str, str],
    values: tuple[float, ...],
    tmp_path: Path,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # tables that are wider than the terminal become summaries
    file, rows = tmp_path / "arm.cardan.toml", tmp_path / "rows.csv"
    file.write_text(UNITS_FILE.format(header=header), encoding="utf-8")
    for verb in ("move", "simulate"):
        assert main([verb, str(file), "--frames", "2", "--csv", str(rows)]) == 0
        lines = capsys.readouterr().out.splitlines()
        at = next(k for k, line in enumerate(lines) if line.startswith("t [s]"))
        assert lines[at].split("  ")[1:3] == [f"pin.angle [{units[0]}]", f"pin.displacement [{units[1]}]"]
        assert [float(cell) for cell in lines[at + 2].split()[1:3]] == pytest.approx(values, rel=1e-6)
        head, *_, last = rows.read_text(encoding="utf-8").splitlines()  # always in SI
        assert head.startswith("t [s],pin.angle [rad],pin.displacement [m]")
        assert [float(cell) for cell in last.split(",")[1:3]] == pytest.approx([3.14159265, 0.0508], rel=1e-6)
        assert main([verb, str(file), "--frames", "2", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["coordinates"]["pin.displacement [m]"][-1] == pytest.approx(0.0508, rel=1e-6)
    assert main(["solve", str(file), "--time", "1"]) == 0
    head, row = capsys.readouterr().out.splitlines()[-2:]
    assert f"z [{units[1]}]" in head
    assert float(row.split()[3]) == pytest.approx(values[1], rel=1e-6)


# -- simulate ----------------------------------------------------------------------------------------------------------


def test_simulate_prints_coordinates_efforts_and_energy(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # wider than the table: in a narrow terminal a summary is printed
    assert main(["simulate", "slider_crank", "--frames", "3", "--duration", "0.5"]) == 0
    text = capsys.readouterr().out
    assert "done: t = 0 … 0.5 s, 3 times" in text
    assert "no mass was given" not in text
    titles = [line for line in text.splitlines() if line.startswith("t [s]")]
    assert titles[0].split("  ")[-1].strip() == "energy [J]"
    assert "motor [N m]" in titles[0]


def test_simulate_says_what_it_assumes_about_masses(capsys: Captured, tmp_path: Path) -> None:
    m = cardan.Mechanism("pendulum")
    m.revolute("hinge", m.ground.frame(z=(0, 1, 0)), m.body("bob", mass=2.0).frame((0, 0, 1), z=(0, 1, 0)))
    path = tmp_path / "pendulum.cardan.toml"
    m.save(path)
    assert main(["simulate", str(path), "--duration", "0.1"]) == 0
    assert "no inertia was given for bob: point masses, 0 kg m²" in capsys.readouterr().out
    assert main(["simulate", str(path), "--duration", "0.1", "--json"]) == 0
    assert any("bob: point masses, 0 kg m²" in note for note in read_json(capsys)["notes"])
    m["bob"].mass = 0.0
    m.save(path)
    assert main(["simulate", str(path)]) == 2
    assert "'bob' has no mass (0 kg)" in capsys.readouterr().err


def test_bench_of_a_mechanism_without_masses_says_why_it_has_no_simulation(capsys: Captured, tmp_path: Path) -> None:
    m = cardan.Mechanism("hinge")
    m.revolute("hinge", m.ground.frame(), m.body("leaf").frame())
    path = tmp_path / "hinge.cardan.toml"
    m.save(path)
    assert main(["bench", "model", str(path), "--json"]) == 0
    captured = capsys.readouterr()
    assert "simulation, per step" not in json.loads(captured.out)["seconds"]
    assert "the simulation is not measured: 'leaf' has no mass (0 kg)" in captured.err


def test_simulate_as_json_and_as_files(capsys: Captured, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    options = ["--free", "--gravity", "0", "-9.81", "0", "--step", "1e-3", "--frames", "3", "--csv", str(rows)]
    assert main(["simulate", "planar_4r", *options, "--json"]) == 0
    document = read_json(capsys)
    assert document["ok"]
    assert document["efforts"] == {}
    kinetic, potential = (document["energy"][key] for key in ("kinetic", "potential"))
    assert kinetic[0] == 0.0
    assert kinetic[2] > 0.01
    assert [k + p for k, p in zip(kinetic, potential, strict=True)] == pytest.approx([potential[0]] * 3, abs=1e-8)
    lines = rows.read_text().splitlines()
    assert lines[0] == "t [s],A [rad],B [rad],C [rad],D [rad],energy [J]"
    assert [float(line.split(",")[1]) for line in lines[1:]] == document["coordinates"]["A [rad]"]


def test_simulate_draws_a_picture(capsys: Captured, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "run.png"
    options = ["--duration", "0.1", "--frames", "5", "--step", "1e-2", "--plot", str(picture)]
    assert main(["simulate", "slider_crank", *options]) == 0
    assert picture.read_bytes()[:4] == b"\x89PNG" and picture.stat().st_size > 5000
    assert "5 times" in capsys.readouterr().out


def test_simulate_leaves_out_angles_that_turn_too_fast_for_the_frames(capsys: Captured, tmp_path: Path) -> None:
    m = cardan.Mechanism("double pendulum")
    upper = m.body("upper", mass=1.0, inertia=(0.01, 0.01, 0.01), center=(0.5, 0, 0))
    lower = m.body("lower", position=(1, 0, 0), mass=0.1, inertia=(1e-3, 1e-3, 1e-3), center=(0.1, 0, 0))
    m.revolute("A", m.ground.frame(z=(0, 1, 0)), upper.frame(z=(0, 1, 0)))
    m.revolute("B", upper.frame((1, 0, 0), z=(0, 1, 0)), lower.frame(z=(0, 1, 0)))
    m.prismatic("slide", m.ground.frame((0, 3, 0)), m.body("block", mass=1.0, inertia=(1, 1, 1)).frame())
    path, rows, end = (tmp_path / name for name in ("model.json", "rows.csv", "end.json"))
    picture = tmp_path / "run.svg"
    m.save(path)
    options = ["--duration", "2", "--frames", "3", "--csv", str(rows), "-o", str(end), "--plot", str(picture)]
    assert main(["simulate", str(path), *options]) == 0
    text = capsys.readouterr().out
    assert "left out: column 'B [rad]', since <angle of joint 'B'> may have made uncounted whole turns between" in text
    assert "give more than --frames 3" in text
    titles = rows.read_text().splitlines()[0].split(",")
    assert "slide [m]" in titles and "energy [J]" in titles and "B [rad]" not in titles
    assert cardan.load(end).poses["reached"].time == pytest.approx(2.0)
    assert picture.stat().st_size > 1000
    assert main(["simulate", str(path), "--duration", "2", "--frames", "3", "--json"]) == 0
    document = read_json(capsys)
    assert "B [rad]" in document["left_out"] and "B [rad]" not in document["coordinates"]
    assert main(["simulate", str(path), "--duration", "2", "--frames", "2001", "--json"]) == 0
    document = read_json(capsys)
    assert document["left_out"] == {} and "B [rad]" in document["coordinates"]


# -- warmup ------------------------------------------------------------------------------------------------------------

AFTER_WARMUP = """
import contextlib, io, sys
from cardan.kernel import cache
from cardan.cli import main
from cardan.examples import REGISTRY, installed
from cardan.lazy import LazyModule

def overloads():
    return {
        (module, name): len(item.overloads)
        for module in sorted(sys.modules) if module.startswith("cardan.")
        for name, item in vars(sys.modules[module]).items()
        if not isinstance(item, LazyModule) and hasattr(item, "overloads")  # to ask a lazy module would import it
    }

def run(*arguments):
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(arguments) == 0, arguments

def kept():
    return {str(path) for path in cache.CACHE_DIRECTORY.rglob("*.nbc")}

names = NAMES or list(installed())
for example in map(installed().get, names):  # functions of the gallery's own are compiled when they are first asked for
    system = example.build().system
    system.addressed, system.judged().addressed, system.curvature_codes()
run("warmup")
before, files = overloads(), kept()
assert before and files
for name in names:
    run("solve", name)
for formulation in (
    "manifold",
    "euler_parameters",
    "virtual_rotation",
    "euler_angles",
    "relative",
    "relative_euler_parameters",
    "relative_virtual_rotation",
):
    for method in ("auto", "levenberg_marquardt", "newton", "newton_lu", "hybrid"):
        run("solve", "planar_4r", "--formulation", formulation, "--method", method)
    run("solve", "stewart_distance", "--formulation", formulation, "--random-start", "0")
    run("solve", "slider_crank", "--formulation", formulation, "--method", "gradient", "--tolerance", "1e-3")
for name in ("rsur", "planetary_gear", "lead_screw"):
    m = REGISTRY[name].build()
    for method in ("auto", "levenberg_marquardt", "newton", "newton_lu", "gradient", "hybrid"):
        m.assemble_many([m.state] * 3, method=method, max_iterations=5)
    for formulation in ("euler_parameters", "virtual_rotation", "euler_angles", "relative"):
        m.assemble_many([m.state] * 3, formulation=formulation, max_iterations=5, workers=2)
    m.assemble_many([m.state] * 3, max_seconds=1e-9)
run("simulate", "slider_crank", "--frames", "3")
run("simulate", "planar_4r", "--free", "--step", "1e-2", "--json")
REGISTRY["rsur"].build().assemble(method="gradient", max_iterations=5, workers=2)
after = overloads()
assert after == before, sorted(set(after.items()) - set(before.items()))
assert kept() == files, kept() - files
"""


@pytest.mark.long  # Numba compiles all kernels: minutes; kernel/test_without_numba.py has the same of the library
@pytest.mark.parametrize("names", [["rsur", "bricard", "coin"], pytest.param([], id="all")])
def test_nothing_is_left_to_compile_after_warmup(names: list[str], own_cache: Path) -> None:
    """Where Numba compiles all kernels; those of the library need nothing."""
    run = run_python(f"NAMES = {names}\n{AFTER_WARMUP}", CARDAN_CACHE_DIR=str(own_cache), CARDAN_KERNELS="numba")
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_warmup_reports_progress_on_stderr(capsys: Captured) -> None:
    assert main(["warmup"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("all kernels are ready: ")
    assert main(["warmup", "--json"]) == 0
    document = read_json(capsys)
    assert document["seconds"] >= max(document["modules"].values())
    assert [f"cardan.{name}" for name in document["modules"]] == list(LISTED)


def test_warmup_omits_modules_that_took_no_time(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warmup, "LISTED", {"cardan.quick": {}, "cardan.slow": {}})
    clock = [0.0]  # a busy machine may take 10 ms for nothing
    monkeypatch.setattr(warmup.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(warmup, "compile_module", lambda name: clock.append(clock.pop() + 0.02 * (name[-4:] == "slow")))
    assert main(["warmup"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(" s  slow")


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["stewart_ups"], ["stewart_ups has no drivers", "--drive JOINT=RATE", "'P_1'"]),
        (["stewart_ups", "--drive", "U_1=1"], ["'U_1'", "universal", "--drive U_1.angle_a=1 or --drive U_1.angle_b=1"]),
        (["stewart_ups", "--drive", "S_1=1"], ["'S_1'", "spherical", "no coordinate that can be driven", "'P_1'"]),
    ],
)
def test_move_explains_how_to_add_a_driver(arguments: list[str], fragments: list[str], capsys: Captured) -> None:
    assert main(["move", *arguments]) == 2
    message = capsys.readouterr().err
    assert not [f for f in fragments if f not in message], message


def test_move_prints_zeros_instead_of_rounding_errors(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # wider than the table: in a narrow terminal a summary is printed
    assert main(["move", "planetary_gear", "--frames", "3"]) == 0
    assert not re.search(r"\de-(1[3-9]|[2-9]\d)", capsys.readouterr().out.split("t [s]")[1])


@pytest.mark.parametrize("arguments", [["view", "x.step", "--floating"], ["solve", "rsur", "--loops", "l.cardan.toml"]])
def test_options_of_a_urdf_are_refused_for_other_models(arguments: list[str], capsys: Captured) -> None:
    assert main(arguments) == 2
    assert "--loops and --floating are for a URDF" in capsys.readouterr().err
