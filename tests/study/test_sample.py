"""Samples of parameters."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd

DRAWN = {"a": 1.0, "b": 2.0, "k": 5.0}


def test_a_grid_has_every_combination_and_the_last_varies_fastest():
    found = cd.sample.grid(a=[1, 2], b=[3, 4, 5]).values(DRAWN)
    assert list(zip(found["a"], found["b"], strict=True)) == [(a, b) for a in (1, 2) for b in (3, 4, 5)]


@pytest.mark.parametrize("runs", [1, 7, 100])
def test_a_latin_hypercube_has_one_value_in_each_bin(runs):
    sample = cd.sample.latin(a=(0.9, 1.1), b=(-2, 3), runs=runs, seed=4)
    for name, (lower, upper) in {"a": (0.9, 1.1), "b": (-2, 3)}.items():
        bins = np.floor((sample.values(DRAWN)[name] - lower) / (upper - lower) * runs)
        assert np.array_equal(np.sort(bins), np.arange(runs))


def test_the_bins_of_two_parameters_are_in_different_orders():
    found = cd.sample.latin(a=(0, 1), b=(0, 1), runs=1000).values(DRAWN)
    assert abs(np.corrcoef(found["a"], found["b"])[0, 1]) < 4 / np.sqrt(1000)


def test_normal_draws_have_a_third_of_the_tolerance_as_deviation():
    found = cd.sample.normal({"a": 0.3, "k": (7.0, 0.6)}, runs=100_000).values(DRAWN)
    for name, mean, deviation in (("a", 1.0, 0.1), ("k", 7.0, 0.2)):
        assert found[name].mean() == pytest.approx(mean, abs=4 * deviation / np.sqrt(100_000))
        assert found[name].std() == pytest.approx(deviation, rel=4 / np.sqrt(200_000))


def test_uniform_draws_are_within_the_tolerance():
    found = cd.sample.uniform(a=0.3, runs=10_000).values(DRAWN)["a"]
    assert 0.7 <= found.min() < 0.701 and 1.299 < found.max() <= 1.3


def test_draws_depend_on_the_seed_and_the_name_alone():
    both, one = cd.sample.normal(a=0.1, b=0.1, runs=10, seed=5), cd.sample.normal(b=0.1, runs=10, seed=5)
    assert np.array_equal(both.values(DRAWN)["b"], one.values(DRAWN)["b"])
    assert not np.array_equal(one.values(DRAWN)["b"], cd.sample.normal(b=0.1, runs=10, seed=6).values(DRAWN)["b"])


def test_a_product_has_every_row_of_one_with_every_row_of_the_other():
    product = cd.sample.grid(a=[1, 2]) * cd.sample.normal(b=0.1, runs=3, seed=1)
    found, draws = product.values(DRAWN), cd.sample.normal(b=0.1, runs=3, seed=1).values(DRAWN)["b"]
    assert len(product) == 6 and found["a"].tolist() == [1, 1, 1, 2, 2, 2]
    assert np.array_equal(found["b"], np.tile(draws, 2))


def test_rows_of_a_table():
    rows = cd.sample.sample_of([{"a": 1, "b": 2}, {"b": 4, "a": 3}]).values(DRAWN)
    assert rows["a"].tolist() == [1, 3] and rows["b"].tolist() == [2, 4]


REFUSED = {
    "an empty grid": (lambda: cd.sample.grid(a=[]), "'a'"),
    "no numbers": (lambda: cd.sample.grid(a=["x"]), "'a'"),
    "not finite": (lambda: cd.sample.grid(a=[np.inf]), "'a'"),
    "no parameters": (cd.sample.grid, "values"),
    "a negative tolerance": (lambda: cd.sample.normal(a=-1.0, runs=3), "'a'"),
    "no runs": (lambda: cd.sample.normal(a=1.0, runs=0), "runs"),
    "a seed": (lambda: cd.sample.uniform(a=1.0, runs=3, seed=-1), "seed"),
    "a range": (lambda: cd.sample.latin(a=(2, 1), runs=3), "'a'"),
    "the same parameter": (lambda: cd.sample.grid(a=[1]) * cd.sample.grid(a=[2]), "'a'"),
    "columns of different lengths": (lambda: cd.sample.table({"a": [1], "b": [1, 2]}), "1 of 'a', 2 of 'b'"),
    "rows of different parameters": (lambda: cd.sample.table([{"a": 1}, {"b": 1}]), "row 1"),
    "an unknown parameter": (lambda: cd.sample.grid(q=[1]).values(DRAWN), "'q'"),
    "too many": (lambda: cd.sample.grid(a=range(100_000), b=range(100_000)), "runs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_samples_name_the_item(case):
    make, text = REFUSED[case]
    with pytest.raises(cd.ModelError, match=text):
        make()
