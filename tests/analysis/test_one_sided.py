"""Assembly with contacts that open: gaps of zero or more, against closed forms; nothing is pulled together."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cardan as cd
from layers import sampled

R = 0.1  # [m] radius
OVERLAP = 1e-11  # [m] a verdict allows 1e-12 of the extent
NO_TURN = (1, 0, 0, 0)


def ball_in_corner(*walls):
    """A ball and planes through points, with normals."""
    m = cd.Mechanism("corner")
    face = m.body("ball").attach(cd.geometry.sphere(R))
    for k, (point, normal) in enumerate(walls):
        plane = m.ground.attach(cd.geometry.plane(), m.ground.frame(point, z=normal))
        m.contact(f"wall {k}", plane, face, unilateral=True)
    return m


FLOOR, WALL = ((0, 0, 0), (0, 0, 1)), ((0, 0, 0), (1, 0, 0))


def test_a_ball_is_moved_out_of_the_floor_and_not_down_to_it():
    m = ball_in_corner(FLOOR)
    result = m.assemble({"ball": ((0.3, 0, 0.05), NO_TURN)})
    assert result.ok and result.state["ball"].position == pytest.approx((0.3, 0, R), abs=1e-12)
    (touch,) = result.touching
    assert (touch.a, touch.b, touch.contact) == ("ground", "ball", "wall 0") and abs(touch.gap) < 1e-12
    assert np.abs(np.array(touch.points) - (0.3, 0, 0)).max() < 1e-12 and touch.normal == pytest.approx((0, 0, 1))
    above = m.assemble({"ball": ((0.3, 0, 0.3), NO_TURN)})
    assert above.ok and not above.touching and above.iterations == 0
    assert above.state["ball"].position.tolist() == [0.3, 0, 0.3]


def test_only_what_overlaps_is_moved_apart():
    m = ball_in_corner(FLOOR, WALL)
    for start, end in (((0.05, 0, 0.05), (R, 0, R)), ((0.05, 0, 0.5), (R, 0, 0.5)), ((0.5, 0, 0.05), (0.5, 0, R))):
        result = m.assemble({"ball": (start, NO_TURN)})
        assert result.ok and result.state["ball"].position == pytest.approx(end, abs=1e-12)
        assert len(result.touching) == sum(abs(x - R) < 1e-9 for x in end)


def test_what_a_contact_opens_is_not_held_closed():
    """Out of the steep wall, in which it is deeper, the ball also leaves the floor."""
    n = np.array([0.6, 0, 0.8])
    m = ball_in_corner(FLOOR, ((0.08, 0, 0), n))
    start = np.array([0.0, 0, 0.09])
    result = m.assemble({"ball": (start, NO_TURN)})
    depth = R - (start - (0.08, 0, 0)) @ n
    assert result.ok and result.state["ball"].position == pytest.approx(start + depth * n, abs=1e-12)
    assert [touch.contact for touch in result.touching] == ["wall 1"]


def test_joints_are_closed_and_decide_where_parts_can_go():
    """On a slide with the slope 1:1 the ball leaves the floor along the slide."""
    m = ball_in_corner(FLOOR)
    m.prismatic("slide", m.ground.frame((0, 0, 1), z=(1, 0, 1)), m["ball"].frame(z=(1, 0, 1)))
    result = m.assemble({"ball": ((-0.98, 0.1, 0.02), NO_TURN)})
    assert result.ok and result.state["ball"].position == pytest.approx((R - 1, 0, R), abs=1e-11)


def test_faces_that_cannot_be_apart_are_named():
    m = ball_in_corner(FLOOR, ((0, 0, 1.5 * R), (0, 0, -1)))
    result = m.assemble({"ball": ((0, 0, 0.05), NO_TURN)}, restarts=2)
    assert result.status is cd.Status.OVERLAP and not result.ok
    assert result.worst and {one.name for one in result.worst} <= {"wall 0", "wall 1"}
    assert result.residual > 0.01
    m.limit("far", m.prismatic("slide", m.ground.frame(z=(1, 0, 0)), m["ball"].frame(z=(1, 0, 0))), lower=1, upper=2)
    m.distance("short", m.ground.point((0, 0, 0)), m["ball"].point(), 0.1)
    assert m.assemble(restarts=2).status in (cd.Status.CONFLICT, cd.Status.STALLED)  # of the joints


@sampled("seed", range(300), keep=4)
def test_random_balls_are_apart_and_others_stay(seed):
    rng = np.random.default_rng(seed)
    m = cd.Mechanism(f"balls {seed}")
    count = int(rng.integers(2, 5))
    at, radii = rng.uniform(0.0, 0.35, (count, 3)), rng.uniform(0.05, 0.12, count)
    floor = m.ground.attach(cd.geometry.plane())
    faces = [m.body(f"b{k}", position=at[k]).attach(cd.geometry.sphere(float(radii[k]))) for k in range(count)]
    faces.append(m.body("far", position=(5, 5, 5)).attach(cd.geometry.sphere(0.1)))
    for k, face in enumerate(faces):
        m.contact(f"floor {k}", floor, face, unilateral=True)
    for i, j in itertools.combinations(range(count), 2):
        m.contact(f"pair {i} {j}", faces[i], faces[j], unilateral=True)
    result = m.assemble()
    assert result.ok
    p = np.array([result.state[f"b{k}"].position for k in range(count)])
    room = [*(p[:, 2] - radii)]
    before = [*(at[:, 2] - radii)]
    for i, j in itertools.combinations(range(count), 2):
        room.append(np.linalg.norm(p[i] - p[j]) - radii[i] - radii[j])
        before.append(np.linalg.norm(at[i] - at[j]) - radii[i] - radii[j])
    assert min(room) > -OVERLAP
    assert (result.iterations == 0) == (min(before) >= 0.0)
    assert result.state["far"].position.tolist() == [5, 5, 5]
