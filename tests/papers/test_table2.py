"""Table 2 of [Liu2013]: comparison of the rows with the paper, and invalid inputs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import cardan as cd
from cardan.math import euler
from papers import liu2013, printed_22, table2
from papers.liu2013 import Settings

SAMPLES = 1000


@pytest.fixture(scope="module")
def table():
    return table2.table_2(samples=SAMPLES, seed=5)


@pytest.mark.slow
def test_every_experiment_has_every_region_and_formula(table):
    assert len(table.rows) == 5 * 3 * 4 + 3
    bodies = {(row.experiment.example, row.experiment.movable) for row in table.rows}
    assert bodies == {(1, 1), (1, 2), (2, 2), (3, 2), (4, 2)}
    assert len({(r.experiment, r.region, r.formula) for r in table.rows}) == len(table.rows)
    compared = [table2.key_of(r.experiment, r.region, r.formula) for r in table.rows if r.paper]
    assert sorted(compared) == sorted(table2.PAPER)


def test_auto_solves_every_start_of_every_row_and_counts_its_restarts(table):
    rows = [row for row in table.rows if row.formula == "auto"]
    assert len(rows) == 15
    for row in rows:
        assert row.converged == SAMPLES
        assert row.first_try <= SAMPLES
        assert row.restarts >= SAMPLES - row.first_try
        if row.experiment.example in (1, 2):
            assert row.restarts == 0
        else:
            assert row.restarts > 0


def test_reproducible_rows_agree_within_three_sigma(table):
    rows = [row for row in table.rows if row.reproducible]
    assert len(rows) == 20 - 4  # all but Example 2
    for row in rows:
        assert abs(row.deviation) < 3.0, row
        assert abs(row.mean_iterations - row.paper[1]) < 0.7 + 3.0 * row.iterations.std() / np.sqrt(row.converged)


def test_errata_are_marked_in_the_rows_they_apply_to(table):
    for row in table.rows:
        example = row.experiment.example
        assert ("a" in row.marks) == (example == 1)
        assert ("d" in row.marks) == (example in (3, 4) and row.paper is not None)
        assert ("e" in row.marks) == (example == 1 and row.region == "box")
        assert ("g" in row.marks) == (row.paper is not None and not row.reproducible)
        assert set(row.marks) <= set(table2.MARKS)
        assert ("j" in row.marks) == (row.paper is not None and row.region == "angles")
        assert ("k" in row.marks) == (row.formula == table2.PRINTED_22)
    assert all(len(text) < 240 and "\n" not in text for text in table2.MARKS.values())


def test_tables_depend_on_the_seed_only():
    few = {"samples": 200, "examples": (3,), "regions": ("sphere",)}
    first, again, other = (table2.table_2(seed=seed, **few) for seed in (1, 1, 2))
    counts = [[row.converged for row in t.rows] for t in (first, again, other)]
    assert counts[0] == counts[1] != counts[2]


def test_starts_of_an_example_do_not_depend_on_the_other_examples():
    alone = table2.table_2(samples=100, examples=(4,), regions=("box",))
    among = table2.table_2(samples=100, examples=(1, 4), regions=("sphere", "box"))
    rows = [row for row in among.rows if row.experiment.example == 4 and row.region == "box"]
    assert [row.converged for row in alone.rows] == [row.converged for row in rows]


def test_starts_lie_in_their_region():
    box = table2.starts("box", 0.0, 2000, 0, 0)
    assert box.shape == (2000, 4)
    assert box.min() >= 0.0
    assert table2.starts("box", -1.0, 2000, 0, 0).min() < -0.9
    sphere = table2.starts("sphere", 0.0, 2000, 0, 0)
    assert np.abs(np.linalg.norm(sphere, axis=1) - 1).max() <= 1e-15
    assert np.abs(sphere.mean(axis=0)).max() < 0.05


def test_deviation_is_zero_for_equal_shares_and_has_a_sign():
    experiment = table2.EXPERIMENTS[1]

    def row(converged, samples):
        return table2.Row(
            experiment, "box", 0.0, "euler_parameters", samples, converged, 10.0, np.zeros(1, int), converged, 0
        )

    assert row(3439, 10_000).deviation == 0.0
    assert row(3500, 10_000).deviation > 0.0 > row(3400, 10_000).deviation
    # by hand: p = .344, σ² = p(1 − p)(2/10⁴)
    p = (3439 + 3500) / 2e4
    assert row(3500, 10_000).deviation == pytest.approx(0.0061 / np.sqrt(p * (1 - p) * 2e-4))


def test_mechanism_and_equations_have_the_same_solutions():
    """The mechanism that ``auto`` assembles is the system that Algorithm 1 iterates on."""
    rng = np.random.default_rng(9)
    for example in (1, 2, 3, 4):
        for movable in (1, 2):
            found = liu2013.mechanism(example, movable).assemble()
            assert found.ok
            p = found.state.coordinates[0, 3:]
            problem = liu2013.problem(example, movable, "euler_parameters")
            assert np.abs(problem.residual(liu2013.coordinates(p)[0])).max() <= 1e-10
            away = rng.normal(size=4)
            assert np.abs(problem.residual(liu2013.coordinates(away / np.linalg.norm(away))[0])).max() > 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "the number of starts is 0; it must be a whole number from 1 on"),
        ({"samples": 1.5}, "the number of starts is 1.5"),
        ({"seed": -1}, "the seed is -1; it must be a whole number from 0 on"),
        ({"examples": (1, 7)}, "the example is 7; it must be one of 1, 2, 3, 4"),
        ({"examples": ()}, "there is nothing to do"),
        ({"regions": ("ball",)}, "the region is 'ball'; it must be one of 'box', 'angles', 'sphere'"),
        ({"box": "big"}, "the box is 'big'; it must be one of 'reproducing', 'printed'"),
        ({"workers": 0}, "workers is 0"),
    ],
)
def test_wrong_inputs_are_named(options, message):
    with pytest.raises(cd.ModelError, match=message):
        table2.table_2(**{"samples": 10, **options})


def test_as_dict_contains_all_values(table):
    document = table.as_dict()
    assert document["samples"] == SAMPLES
    assert document["N"] == 100
    assert len(document["rows"]) == 63
    assert {row["formula"] for row in document["rows"]} == set(table2.FORMULAS)
    first = document["rows"][0]
    assert first["printed_as"] == "Exam. 1, body 2"
    assert first["paper_converged"] == 10_000
    assert first["box"] == [0.0, 1.0]


def test_settings_are_passed_to_the_iteration():
    strict = table2.table_2(samples=50, examples=(3,), regions=("box",), settings=Settings(iterations=3))
    assert all(row.converged == 0 for row in strict.rows if row.formula != "auto")
    assert all(np.isnan(row.mean_iterations) for row in strict.rows if row.formula != "auto")


def test_the_printed_matrix_22_is_6b_on_the_sphere_and_differs_off_it():
    """By the library's (6b), and by its residual; off the sphere the difference is (1 − |p|⁴) uᵀP̃ 2G."""
    rng = np.random.default_rng(1)
    found = liu2013.problem(1, 1, "virtual_rotation")
    for norm in (1.0, 1.3):
        p = rng.standard_normal((20, 4))
        p *= norm / np.linalg.norm(p, axis=1, keepdims=True)
        J, phi = printed_22.jacobian(p), printed_22.residual(p)
        for k, q in enumerate(liu2013.coordinates(p)):
            f, full = found.jacobian(q)
            assert np.abs(f - phi[k]).max() <= 1e-12
            off = np.abs(full[:, 3:] - J[k]).max()
            assert (off <= 1e-12) == (norm == 1.0)
            for e, equation in enumerate(liu2013.EXAMPLES[1]):
                extra = (1 - norm**4) * np.array(equation.u) @ euler.tilde(np.array(equation.p)) @ euler.G(p[k])
                assert np.abs(J[k, e] - 2 * extra - full[e, 3:]).max() <= 1e-11


def test_angles_are_the_extrinsic_roll_pitch_yaw_of_scipy():
    p = table2.starts("angles", 0.0, 5, 3, 1)
    rng = np.random.default_rng([3, 1, table2.STREAMS["angles"]])
    angles = np.column_stack([rng.uniform(-np.pi, np.pi, 5) for _ in range(3)])
    theirs = Rotation.from_euler("xyz", angles).as_matrix()
    assert np.abs(euler.matrix(p) - theirs).max() <= 1e-14


@pytest.mark.long
def test_all_rows_but_example_2_agree_within_three_sigma_from_100_000_starts():
    rows = table2.table_2(samples=100_000, examples=(1, 3, 4), regions=("box", "angles")).rows
    compared = [row for row in rows if row.paper is not None]
    assert compared
    for row in compared:
        assert abs(row.deviation) < 3.0, row
