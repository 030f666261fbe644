"""Contact points in degenerate poses; volumes of overlaps; pairs that are near each other."""

from __future__ import annotations

import math
import time
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from cardan import collide, shapes
from cardan.errors import ModelError
from cardan.math import euler
from timing import slowness

HALF = math.sqrt(0.5)
HERE = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
LYING = (HALF, HALF, 0.0, 0.0)  # a quarter turn about x
ON_EDGE = (math.cos(math.pi / 8), math.sin(math.pi / 8), 0.0, 0.0)
TIP = 0.5 * math.acos(1.0 / math.sqrt(3.0))
ON_CORNER = (math.cos(TIP), HALF * math.sin(TIP), -HALF * math.sin(TIP), 0.0)
BOX, CYLINDER, SPHERE = shapes.box(1.0, 1.0, 1.0), shapes.cylinder(0.5, 1.0), shapes.sphere(0.5)
TABLE = shapes.box(4.0, 4.0, 1.0)
ANGLED = (0.9 / math.hypot(0.9, 0.3), 0.0, 0.0, 0.3 / math.hypot(0.9, 0.3))


def random_poses(rng: np.random.Generator, count: int, spread: float) -> np.ndarray:
    poses = rng.normal(size=(count, 7))
    poses[:, :3] *= spread
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    return poses


@pytest.mark.parametrize(
    "lower, upper, place, turn, count",
    [
        (TABLE, BOX, (0.1, 0.2, 1.0), ANGLED, 4),  # face on face
        (TABLE, BOX, (2.0, 0.2, 1.0), ANGLED, 4),  # half of it beyond the edge
        (TABLE, BOX, (2.2, 2.2, 1.0), (1.0, 0.0, 0.0, 0.0), 4),  # beyond the corner
        (TABLE, BOX, (0.0, 0.3, 0.5 + HALF), ON_EDGE, 2),  # edge on face
        (TABLE, BOX, (0.0, 0.0, 0.5 + 0.5 * math.sqrt(3.0)), ON_CORNER, 1),  # corner on face
        (TABLE, CYLINDER, (0.1, 0.2, 1.0), (1.0, 0.0, 0.0, 0.0), 4),  # on its end
        (TABLE, CYLINDER, (2.0, 0.2, 1.0), (1.0, 0.0, 0.0, 0.0), 3),  # half of its end: nothing beyond the diameter
        (TABLE, CYLINDER, (1.8, 0.2, 1.0), (1.0, 0.0, 0.0, 0.0), 4),
        (TABLE, CYLINDER, (0.1, 0.2, 1.0), LYING, 2),  # along its side
        (TABLE, SPHERE, (0.1, 0.2, 1.0), LYING, 1),
        (CYLINDER, CYLINDER, (0.3, 0.0, 1.0), (1.0, 0.0, 0.0, 0.0), 4),  # end on end
        (CYLINDER, CYLINDER, (1.0, 0.0, 0.2), (1.0, 0.0, 0.0, 0.0), 2),  # sides, parallel
        (CYLINDER, CYLINDER, (1.0, 0.0, 0.0), LYING, 1),  # sides, crossed
        (None, BOX, (0.1, 0.2, 0.5), ANGLED, 4),
        (None, CYLINDER, (0.1, 0.2, 0.5), (1.0, 0.0, 0.0, 0.0), 4),
        (None, CYLINDER, (0.1, 0.2, 0.5), LYING, 2),
        (None, shapes.link((0, 0), (2, 0), width=0.5, thickness=0.2), (0.1, 0.2, 0.1), ANGLED, 4),
    ],
)
def test_degenerate_poses_have_the_right_number_of_points(
    lower: Any, upper: Any, place: Any, turn: Any, count: int
) -> None:
    a = collide.half_space() if lower is None else collide.solid(lower)
    b = collide.solid(upper)
    rng = np.random.default_rng(7)
    motion = random_poses(rng, 1, 1.0)[0]
    R = euler.matrix(motion[3:])
    seen = []
    for moved in (np.array(HERE), motion):  # anywhere
        M = euler.matrix(moved[3:])
        pose = np.array([*(M @ place + moved[:3]), *euler.multiply(moved[3:], np.array(turn))])
        found = collide.contact_points(a, moved, b, pose, within=1e-12)
        assert len(found) == count
        for point in found:
            assert abs(point.gap) < 1e-12
            assert np.abs(point.points[0] - point.points[1]).max() < 1e-12
            assert np.abs(M.T @ point.normal - found[0].normal @ M).max() < 1e-12
        seen.append(found)
        assert len({point.features for point in found}) == count
    before, after = ({point.features: point.points[0] for point in part} for part in seen)
    assert before.keys() == after.keys()
    for key, point in before.items():
        assert np.abs(R @ point + motion[:3] - after[key]).max() < 1e-9
    spread = np.array([point.points[0] for point in seen[0]])
    if count == 4:
        assert np.linalg.norm(np.ptp(spread, axis=0)) > 0.4


def test_points_within_a_distance_have_their_own_gaps() -> None:
    """A box that is tilted by 0.2 mm above a table: 0.4 and 0.6 mm at its edges; none if it is farther away."""
    a, b = collide.solid(TABLE), collide.solid(BOX)
    tilted = np.array([0.1, 0.2, 1.0005, 1.0, 1e-4, 0.0, 0.0])
    found = collide.contact_points(a, HERE, b, tilted, within=1e-2)
    assert np.allclose(sorted(point.gap for point in found), [4e-4, 4e-4, 6e-4, 6e-4], atol=2e-8)
    assert collide.contact_points(a, HERE, b, tilted, within=1e-4) == []


def test_volumes_of_overlaps_are_those_of_closed_forms() -> None:
    rng = np.random.default_rng(8)
    for _ in range(10):
        motion = random_poses(rng, 1, 1.0)[0]
        R = euler.matrix(motion[3:])

        def moved(x: Any, R: Any = R, motion: Any = motion) -> np.ndarray:
            return np.array([*(R @ np.asarray(x) + motion[:3]), *motion[3:]])

        x = rng.uniform(-0.9, 0.9, 3)
        found = collide.overlap_volume(collide.solid(BOX), motion, collide.solid(BOX), moved(x))
        assert found.error == 0.0 and abs(found.value - np.prod(1.0 - np.abs(x))) < 1e-9
        r, q = rng.uniform(0.3, 0.6, 2).tolist()
        d = float(np.linalg.norm(x))
        spheres = [collide.solid(shapes.sphere(s)) for s in (r, q)]
        exact = quad(lambda z, r=r, q=q, d=d: math.pi * max(0.0, min(r * r - z * z, q * q - (z - d) ** 2)), -r, r,
                     points=[0.5 * (d + (r * r - q * q) / d)] if d > abs(r - q) else None,
                     epsabs=1e-12, limit=400)[0]  # fmt: skip
        assert abs(collide.overlap_volume(spheres[0], motion, spheres[1], moved(x)).value - exact) < 1e-9
        cylinders = [collide.solid(shapes.cylinder(s, 1.0)) for s in (r, q)]
        across = float(np.hypot(x[0], x[1]))
        width = quad(lambda z, r=r, q=q, d=across: _chord(z, r, q, d), -r, r,
                     points=_kinks(r, q, across), epsabs=1e-12, limit=2000)[0]  # fmt: skip
        found = collide.overlap_volume(cylinders[0], motion, cylinders[1], moved(x))
        assert abs(found.value - width * (1.0 - abs(x[2]))) < 1e-9
        low, high = (collide.half_space(), motion), (collide.half_space(), [*motion[:3], *euler.multiply(
            motion[3:], np.array([0.0, 1.0, 0.0, 0.0]))])  # fmt: skip
        for shape in (BOX, SPHERE, CYLINDER):
            parts = [collide.overlap_volume(*side, collide.solid(shape), random) for side in (low, high)
                     for random in [np.array([*motion[:3] + 0.1, *LYING])]]  # fmt: skip
            error = 1e-9 + sum(part.error for part in parts)
            assert abs(sum(part.value for part in parts) - shape.properties().volume) < error


def _chord(x: float, r: float, q: float, d: float) -> float:
    """Length across the line of centres, at x, of the overlap of two discs at the distance d."""
    return 2.0 * math.sqrt(max(0.0, min(r * r - x * x, q * q - (x - d) ** 2)))


def _kinks(r: float, q: float, d: float) -> list[float]:
    return [x for x in (d - q, d + q, 0.5 * (d + (r * r - q * q) / d)) if -r < x < r]


def test_volumes_of_round_solids_are_within_their_estimate() -> None:
    found = collide.overlap_volume(collide.solid(BOX), HERE, collide.solid(CYLINDER), (0.0, 0.0, 0.2, *HERE[3:]))
    assert 0.0 < found.error < 1e-3 and abs(found.value - 0.2 * math.pi) < found.error
    found = collide.overlap_volume(collide.solid(BOX), HERE, collide.solid(SPHERE), HERE)
    assert 0.0 < found.error < 2e-3 and abs(found.value - math.pi / 6.0) < found.error
    bent = collide.solid(shapes.extrusion([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)], 0.5))
    found = collide.overlap_volume(bent, HERE, collide.solid(BOX), (1.0, 1.0, 0.0, *HERE[3:]))
    assert abs(found.value - 0.375) < 1e-12  # three quarters of its square, half a metre high


def test_candidates_have_all_pairs_that_are_near() -> None:
    rng = np.random.default_rng(9)
    kinds = [collide.solid(shape) for shape in (BOX, CYLINDER, SPHERE)] + [collide.half_space()]
    solids = [kinds[k] for k in [*rng.integers(0, 3, 60).tolist(), 3]]
    poses = random_poses(rng, len(solids), 2.5)
    for margin in (0.0, 0.3):
        pairs = {tuple(pair) for pair in collide.candidates(solids, poses, margin=margin).tolist()}
        near = {
            (i, j)
            for i, j in combinations(range(len(solids)), 2)
            if collide.gap(solids[i], poses[i], solids[j], poses[j]).gap <= margin
        }
        assert near <= pairs and len(pairs) < 0.5 * len(list(combinations(solids, 2)))
    rows = np.array(sorted(pairs))
    gaps, points, normals, errors = collide.gaps(solids, poses, rows)
    for k, (i, j) in enumerate(rows.tolist()):
        one = collide.gap(solids[i], poses[i], solids[j], poses[j])
        assert one.gap == gaps[k] and np.array_equal(one.points, points[k]) and np.array_equal(one.normal, normals[k])
        assert one.error == errors[k]
    with pytest.raises(ModelError, match="a pose for each solid"):
        collide.candidates(solids, poses[1:])


def test_a_thousand_parts_are_checked_in_50_ms() -> None:
    rng = np.random.default_rng(10)
    kinds = [collide.solid(shape) for shape in (BOX, CYLINDER, SPHERE)]
    solids = [kinds[k] for k in rng.integers(0, 3, 1000).tolist()]
    poses = random_poses(rng, 1000, 1.0)
    poses[:, :3] = rng.uniform(-12.0, 12.0, (1000, 3))
    times = []
    for _ in range(4):
        began = time.process_time()
        pairs = collide.candidates(solids, poses)
        gaps, *_ = collide.gaps(solids, poses, pairs)
        times.append(time.process_time() - began)
    assert len(pairs) > 500 and (gaps < 0.0).sum() > 100
    assert min(times) < 0.05 * slowness()
