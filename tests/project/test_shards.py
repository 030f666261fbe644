"""Every file of tests is in exactly one shard."""

from __future__ import annotations

import pytest

from tests.conftest import files_of_shard


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
