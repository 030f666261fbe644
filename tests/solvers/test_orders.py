"""Orders of elimination: that which is computed here is SciPy's, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee

from cardan.solvers.linear import MOST_INTERPRETED, band_order


def graph_of(kind, count, rng):
    """A symmetric graph, some nodes of which are linked to themselves."""
    if kind == "chain":
        a, b = np.arange(count - 1), np.arange(1, count)
    elif kind == "tree":
        a, b = np.arange(1, count), np.array([rng.integers(k) for k in range(1, count)], dtype=np.int64)
    else:
        a, b = rng.integers(count, size=(2, int(count * rng.uniform(0.0, 3.0))))
    renamed = rng.permutation(count)
    a, b = renamed[a], renamed[b]
    loops = np.flatnonzero(rng.random(count) < rng.choice([0.0, 0.5, 1.0]))
    ends = np.concatenate([a, b, loops]), np.concatenate([b, a, loops])
    return coo_matrix((np.ones(ends[0].size), ends), shape=(count, count)).tocsr()


@pytest.mark.parametrize("kind", ["chain", "tree", "any"])
def test_the_band_order_is_that_of_scipy(kind):
    rng = np.random.default_rng(7)
    for count in [1, 2, 3, 5, *rng.integers(5, 400, size=100).tolist(), MOST_INTERPRETED, MOST_INTERPRETED + 1]:
        graph = graph_of(kind, count, rng)
        expected = reverse_cuthill_mckee(graph, symmetric_mode=True)
        np.testing.assert_array_equal(band_order(graph.indptr, graph.indices), expected)


def test_neighbours_may_be_in_any_order():
    rng = np.random.default_rng(8)
    for count in rng.integers(5, 200, size=30).tolist():
        graph = graph_of("any", count, rng)
        for k in range(count):
            rng.shuffle(graph.indices[graph.indptr[k] : graph.indptr[k + 1]])
        expected = reverse_cuthill_mckee(graph, symmetric_mode=True)
        np.testing.assert_array_equal(band_order(graph.indptr, graph.indices), expected)
