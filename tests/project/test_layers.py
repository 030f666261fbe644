"""Samples of laws over many cases; and every file of tests is in exactly one shard."""

from __future__ import annotations

import pytest

from layers import sampled
from tests.conftest import files_of_shard


@pytest.mark.parametrize(("count", "keep"), [(1, 1), (2, 3), (3, 3), (7, 1), (7, 2), (10, 3), (37, 12)])
def test_a_sample_has_the_first_case_and_the_others_are_long(count, keep):
    cases = [(k, str(k)) for k in range(count)]
    mark = sampled(("number", "text"), cases, keep).mark
    assert mark.name == "parametrize" and mark.args[0] == ("number", "text")
    long = [case for case in mark.args[1] if not isinstance(case, tuple) or hasattr(case, "marks")]
    assert all([m.name for m in case.marks] == ["long"] for case in long)
    assert [getattr(case, "values", case) for case in mark.args[1]] == cases
    assert count - len(long) == min(count, keep) and mark.args[1][0] == cases[0]
    assert keep == 1 or mark.args[1][-1] == cases[-1]


def test_a_value_that_is_a_tuple_is_one_value():
    (_, cases) = sampled("pair", [(1, 2), (3, 4)], 1).mark.args
    assert cases[0] == (1, 2) and cases[1].values == ((3, 4),)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_shards_divide_the_files_evenly(count):
    files = [f"f{k}" for k in range(20) for _ in range(1 + k * k % 13)]
    shards = [files_of_shard(files, f"{k + 1}/{count}") for k in range(count)]
    assert sorted(file for shard in shards for file in shard) == sorted(set(files))
    loads = [sum(file in shard for file in files) for shard in shards]
    assert max(loads) - min(loads) <= max(map(files.count, files))


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"])
def test_a_wrong_shard_is_refused(shard):
    with pytest.raises(pytest.UsageError, match="such as 1/3"):
        files_of_shard(["f"], shard)
