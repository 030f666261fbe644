"""``cardan study``: samples of the command line, figures, and a study that goes on."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import cardan as cd
from cardan.cli import main, study
from tests.study.models import four_bar


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "four_bar.cardan.toml"
    four_bar().save(path)
    return str(path)


def test_runs_over_a_grid_have_the_numbers_of_single_ones(model, tmp_path, capsys):
    given = [
        model,
        "--vary",
        "a=0.9..1.1:3",
        "--vary",
        "b=3,3.1",
        "--output",
        "final(A)",
        "--output",
        "max(effort(drag))",
    ]
    given += [
        "--duration",
        "0.1",
        "--step",
        "2e-3",
        "--folder",
        str(tmp_path / "runs"),
        "--csv",
        str(tmp_path / "t.csv"),
    ]
    assert main(["study", *given, "--workers", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["runs"], found["finished"], found["failed"]) == (6, 6, [])
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    m = cd.load(model)
    for row in rows:
        start = m.state.with_variables({"a": float(row["a"]), "b": float(row["b"])})
        assert float(row["final(A) [rad]"]) == m.simulate(0.1, start, step=2e-3).coordinate("A")[-1]
    mean = np.mean([float(row["final(A) [rad]"]) for row in rows])
    assert found["outputs"]["final(A) [rad]"]["mean"] == pytest.approx(mean, rel=1e-14)
    assert main(["study", *given]) == 0  # nothing is left to do
    assert "6 finished: 6 done" in capsys.readouterr().out


def test_a_run_that_fails_is_told_and_the_exit_code_is_one(model, capsys):
    given = ["--vary", "b=3,9", "--output", "final(A)", "--duration", "0.05", "--workers", "1"]
    assert main(["study", model, *given]) == 1
    assert "run 1: not assembled" in capsys.readouterr().out


def test_draws_of_assemblies(model, capsys):
    given = ["--normal", "a=±0.05", "--normal", "b=3.05 +- 0.01", "--runs", "50", "--seed", "2", "--output", "D"]
    main(["study", model, *given, "--workers", "1", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["runs"] == 50 and found["finished"] == 50 and "D [rad]" in found["outputs"]


def test_ctrl_c_says_how_to_go_on(model, tmp_path, capsys, monkeypatch):
    def stop(self, done, total):
        raise KeyboardInterrupt

    monkeypatch.setattr(study._Bar, "update", stop)
    given = ["--vary", "a=0.9..1.1:5", "--output", "final(A)", "--duration", "0.05", "--folder", str(tmp_path / "runs")]
    assert main(["study", model, *given, "--workers", "1"]) == 130
    assert "the same command goes on" in capsys.readouterr().err


REFUSED = {
    "nothing varied": (["--output", "A"], "no parameter"),
    "no output": (["--vary", "a=1,2"], "--output"),
    "no number of draws": (["--normal", "a=±1", "--output", "A"], "--runs"),
    "draws of a grid": (["--vary", "a=1,2", "--runs", "3", "--output", "A"], "--runs"),
    "no tolerance": (["--normal", "a=5", "--runs", "3", "--output", "A"], "'a=5'"),
    "no range": (["--latin", "a=5", "--runs", "3", "--output", "A"], "'a=5'"),
    "no value": (["--vary", "a", "--output", "A"], "'a'"),
    "no numbers": (["--vary", "a=x,y", "--output", "A"], "'a=x,y'"),
    "one value of a range": (["--vary", "a=1..2:1", "--output", "A"], "two values"),
    "two ways": (["--latin", "a=1..2", "--normal", "b=±1", "--runs", "3", "--output", "A"], "--latin and --normal"),
    "two places": (["--vary", "a=1,2", "--output", "A", "--cluster", "--scheduler", "x"], "--cluster"),
    "an unknown parameter": (["--vary", "q=1,2", "--output", "A"], "'q'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_calls_name_the_option(case, model, capsys):
    given, text = REFUSED[case]
    assert main(["study", model, *given]) == 2
    assert text in capsys.readouterr().err
