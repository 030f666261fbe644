"""Contact points of many solids in one call: those of one pair after the other, and tracked over poses."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan import collide
from cardan.collide.manifolds import ManifoldFinder

SHAPES = (
    cd.shapes.box(0.1, 0.1, 0.1),
    cd.shapes.box(0.2, 0.1, 0.05),
    cd.shapes.box(0.05, 0.3, 0.1),
    cd.shapes.sphere(0.05),
    cd.shapes.cylinder(0.05, 0.1),
)
SOLIDS = [*(collide.solid(shape) for shape in SHAPES), collide.half_space()]


def random_pose(rng, turn):
    q = np.array([1.0, 0.0, 0.0, 0.0]) + turn * rng.normal(size=4)
    return np.array([*(0.08 * rng.normal(size=3)), *(q / np.linalg.norm(q))])


@pytest.mark.parametrize("turn", [0.0, 1e-12, 1e-5, 1.0])
def test_points_are_those_of_contact_points(turn):
    rng = np.random.default_rng(0)
    several = 0
    for _ in range(60):
        i, j = rng.integers(0, len(SOLIDS), 2)
        if SOLIDS[i].is_half_space and SOLIDS[j].is_half_space:
            continue
        a, b = SOLIDS[i], SOLIDS[j]
        poses = np.array([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], random_pose(rng, turn)])
        near = collide.gap(a, poses[0], b, poses[1])
        poses[1, :3] -= near.normal * (near.gap - rng.choice([0.0, 1e-15, 1e-4]))
        within = rng.choice([1e-12, 1e-3])
        found = ManifoldFinder([a, b], lambda *_: 0.0).find(poses, within)
        expected = collide.contact_points(a, poses[0], b, poses[1], within=within)
        assert len(found.gaps) == len(expected)
        several += len(expected) > 1
        assert len(set(found.keys.tolist())) == len(expected)
        for one in expected:
            k = int(np.abs(found.points - one.points).max(axis=(1, 2)).argmin())
            assert np.abs(found.points[k] - one.points).max() < 1e-9
            assert abs(found.gaps[k] - one.gap) < 1e-12
            assert np.abs(found.normals[k] - one.normal).max() < 1e-9
    assert several > 5 or turn == 1.0


def test_points_keep_their_keys_while_solids_move_and_margins_decide():
    box = collide.solid(cd.shapes.box(0.1, 0.1, 0.1))
    finder = ManifoldFinder([box, collide.half_space(), box], lambda i, j: None if {i, j} == {0, 2} else 0.001)
    poses = np.zeros((3, 7))
    poses[:, 3] = 1.0
    poses[0, 2], poses[2, ::2] = 0.0505, (0.02, 0.051, 0.0, 0.0)
    first = finder.find(poses, 1e-9)
    assert len(first.keys) == 8  # both boxes stand on the plane; they may overlap each other
    for _ in range(40):
        poses[0, 0] += 0.001
        found = finder.find(poses, 1e-9)
        assert (found.keys == first.keys).all()
        assert np.allclose(found.gaps[:4], 0.0005, rtol=0, atol=1e-15)
    poses[0, 2] = 0.06
    assert len(finder.find(poses, 1e-9).keys) == 4
    assert len(finder.find(poses, 0.02).keys) == 8
