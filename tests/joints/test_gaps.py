"""Rows of gaps: their derivatives are those of the signed gap, by central differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cardan as cd
from cardan import collide
from cardan.analysis.apart import colliding
from cardan.joints.gaps import GapPair
from cardan.math import euler

SHAPES = {
    "box": cd.shapes.box(0.5, 0.4, 0.3),
    "cylinder": cd.shapes.cylinder(0.2, 0.5),
    "sphere": cd.shapes.sphere(0.3),
}
STEP = 1e-5
DIFFERENCE = 1e-7  # rounding of a gap over STEP is 1e-10, curvatures of up to 10/m times STEP² are 1e-9; normals 1e-8


def random_poses(rng, count):
    poses = rng.normal(size=(count, 7))
    poses[:, :3] *= 0.35
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    return poses


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations_with_replacement(SHAPES, 2)))
def test_the_row_of_a_pair_is_the_derivative_of_its_gap_by_both_frames(a, b):
    """Also along Euler parameters that do not keep their length, and whose length is not 1."""
    solids = [collide.solid(SHAPES[name]) for name in (a, b)]
    rng = np.random.default_rng(11)
    overlapping = 0
    for _ in range(8):
        poses = random_poses(rng, 2)
        gap = collide.gap(solids[0], poses[0], solids[1], poses[1]).gap
        overlapping += gap < 0.0
        poses[:, 3:] *= rng.uniform(0.5, 2.0, (2, 1))
        pair = GapPair(*solids, margin=abs(gap) + 0.1)  # the row is active, also where they are apart
        value, row = pair.row(*poses)
        assert value == pytest.approx(gap - pair.margin, abs=1e-13)
        for k in range(14):
            moved = [poses.copy(), poses.copy()]
            for sign, one in zip((1.0, -1.0), moved, strict=True):
                one.reshape(-1)[k] += sign * STEP
            forward, back = (pair.row(*one)[0] for one in moved)
            assert row[k] == pytest.approx((forward - back) / (2.0 * STEP), abs=DIFFERENCE), (gap, k)
    assert 0 < overlapping < 8


def test_a_pair_that_is_farther_apart_than_its_margin_has_a_row_of_zeros():
    ball = collide.solid(SHAPES["sphere"])
    poses = np.array([[0.0, 0, 0, 1, 0, 0, 0], [0.7, 0, 0, 1, 0, 0, 0]])
    assert GapPair(ball, ball, 0.05).row(*poses) == (0.0, [0.0] * 14)
    assert GapPair(ball, ball, 0.15).row(*poses)[0] == pytest.approx(-0.05, abs=1e-15)


def test_rates_of_gaps_that_are_closed_are_those_of_the_gap():
    """A ball on the slanted face of a block: along ṙ in world and ω in body axes of both."""
    m = cd.Mechanism()
    turned = np.asarray(euler.from_rotation_vector([0.3, -0.2, 0.5]))
    at = np.array([0.1, 0.2, -0.1])
    m.body("block", position=at, orientation=turned).attach(SHAPES["box"])
    ball = m.body("ball", position=at + euler.matrix(turned) @ [0.05, 0.03, 0.15 + 0.3])
    ball.attach(SHAPES["sphere"])
    m.collide("all")
    q, solids = m.state.coordinates, [collide.solid(SHAPES[name]) for name in ("box", "sphere")]
    (row,) = colliding(m._model.drawing.contents).closing_rates(q, 1e-9)
    for k in range(12):
        gaps = []
        for sign in (1.0, -1.0):
            moved, step = q.copy(), np.zeros(12)
            step[k] = sign * STEP
            for body, d in zip(moved, step.reshape(2, 6), strict=True):
                body[:3] += d[:3]
                body[3:] = euler.retract(body[3:], d[3:])
            gaps.append(collide.gap(solids[0], moved[0], solids[1], moved[1]).gap)
        assert row[k] == pytest.approx((gaps[0] - gaps[1]) / (2.0 * STEP), abs=DIFFERENCE)
