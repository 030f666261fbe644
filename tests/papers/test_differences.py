"""The table of ``cardan papers differences``: its rows, and the orders of its errors."""

from __future__ import annotations

import csv
import json
from typing import get_args

import numpy as np
import pytest

from cardan.cli import main
from cardan.geometry.pose_derivatives import Chart, Scheme
from papers import differences


@pytest.fixture(scope="module")
def rows():
    return differences.study(0, (1e-2, 5e-3))


@pytest.mark.parametrize("chart", get_args(Chart))
@pytest.mark.parametrize(("scheme", "order"), [("forward", 1), ("central", 2), ("richardson", 4)])
def test_errors_have_the_orders_of_their_schemes(rows, scheme, order, chart):
    coarse, fine = (row.error for row in rows if (row.scheme, row.chart) == (scheme, chart))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.15)


def test_rounding_governs_small_steps():
    by_step = {row.h: row.error for row in differences.study(0, (1e-3, 1e-8)) if row.scheme == "central"}
    assert by_step[1e-3] < 1e-4 and by_step[1e-8] > 1e-10


def test_the_command_prints_and_writes_every_scheme_chart_and_step(capsys, tmp_path):
    path = tmp_path / "rows.csv"
    assert main(["papers", "differences", "--json", "--csv", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    keys = {(row["scheme"], row["chart"], row["h"]) for row in found}
    expected = {(s, c, h) for s in get_args(Scheme) for c in get_args(Chart) for h in differences.STEPS}
    assert keys == expected | {("exact", "tangent", 0.0)} and len(found) == len(keys)
    assert min(row["error"] for row in found if row["scheme"] == "richardson") < 1e-10
    assert all(row["microseconds"] > 0.0 for row in found)
    with path.open(newline="") as file:
        assert [float(row["error"]) for row in csv.DictReader(file)] == [row["error"] for row in found]


def test_the_command_prints_a_table_for_another_seed(capsys):
    assert main(["papers", "differences", "--seed", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["scheme", "chart", "h", "error", "µs"]
    assert sum(line.startswith(get_args(Scheme)) for line in lines) == 60
