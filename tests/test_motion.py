"""Laws of a driven motion: closed forms, one branch from end to end, and why it stops where it stops."""

from __future__ import annotations

import pickle
import time
from dataclasses import replace

import numpy as np
import pytest

import cardan as cd
from cardan.analysis.motion import MotionStatus
from linkages import GRASHOF, RSUR, FourBar, SliderCrank, X, Y, Z, about_z, heading, polar
from mechanisms import matrix, quaternion, random_rotation, rotation, unit

POSE = 1e-9  # of poses that are regular: residuals of 1e-12 over singular values of some 1e-2
DEAD = 1e-6  # relative: when a dead point is reached
TURN = 2 * np.pi


def with_motor(m, joint, law, of=None):
    m.drive("motor", m[joint], law, of=of)
    return m


def positions(motion, *names):
    return np.hstack([motion.positions(name) for name in names])


def pose_gap(a, b):
    """Largest difference of two states: positions, and entries of rotation matrices."""
    return max(
        max(np.abs(a[n].position - b[n].position).max(), np.abs(matrix(a[n].quaternion) - matrix(b[n].quaternion)).max())
        for n in a
    )


# --- closed forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("name", GRASHOF)
def test_a_four_bar_of_any_type_stays_on_its_branch_until_its_dead_point(name, side, direction):
    bar, theta = GRASHOF[name]
    bar = replace(bar, side=side)
    dead = bar.dead(theta, direction)
    end = min(dead + 0.5, 2 * TURN)
    for count in (2, 7, 150):
        m = with_motor(bar.build(theta), "A", lambda t: theta + direction * t)
        motion = m.move(np.linspace(0, end, count))
        if dead > end:
            assert motion.ok, motion.text()
        else:
            assert motion.status is MotionStatus.DEAD_POINT, motion.text()
            assert abs(motion.state.time - dead) <= DEAD * dead
            assert "dead point" in motion.reason and "'motor'" in motion.reason
            assert len(motion.states) == sum(np.linspace(0, end, count) < dead)
        for state in motion.states:
            exact = bar.corner(theta + direction * state.time)
            sharpness = min(1.0, 10 * abs(dead - state.time))  # towards a dead point σ falls with the root of the time
            assert np.abs(bar.corner_of(state) - exact).max() <= POSE / sharpness
            assert abs(m["A"].coordinate(state) - theta - direction * state.time) <= 1e-11


def test_random_four_bars_turn_round_or_stop_at_the_closed_form_of_their_dead_point():
    rng = np.random.default_rng(1)
    seen = {}
    while sum(seen.values()) < 40:
        lengths = rng.uniform(0.3, 3.0, 4)
        theta, direction = rng.uniform(-np.pi, np.pi), int(rng.choice([-1, 1]))
        bar = FourBar(*lengths, side=int(rng.choice([-1, 1])))
        if 2 * lengths.max() > lengths.sum() or bar.corner(theta) is None:
            continue
        dead = bar.dead(theta, direction)
        count = int(rng.choice([2, 5, 40]))
        motion = with_motor(bar.build(theta), "A", lambda t: theta + direction * t).move(np.linspace(0, TURN, count))
        seen[motion.status] = seen.get(motion.status, 0) + 1
        assert motion.status is (MotionStatus.DONE if dead > TURN else MotionStatus.DEAD_POINT), (bar, motion.text())
        assert abs(motion.state.time - min(dead, TURN)) <= DEAD * TURN
        for state in motion.states:
            assert np.abs(bar.corner_of(state) - bar.corner(theta + direction * state.time)).max() <= 1e-6
    assert len(seen) == 2 and min(seen.values()) >= 8


@pytest.mark.parametrize("crank", [SliderCrank(1, 3), SliderCrank(1, 3, 0.7), SliderCrank(1, 1.5, -0.3, side=-1)])
def test_a_slider_crank_follows_its_closed_form_both_ways(crank):
    for direction in (1, -1):
        for count in (2, 60):
            m = with_motor(crank.build(0.4), "A", lambda t: 0.4 + direction * t)
            motion = m.move(np.linspace(0, 3 * TURN, count))
            assert motion.ok, motion.text()
            expected = [crank.place(0.4 + direction * t) for t in motion.times]
            assert np.abs(motion.coordinate(m["P"]) - expected).max() <= POSE


@pytest.mark.parametrize("sign", [1, -1])
def test_a_slider_that_is_pushed_takes_the_crank_to_its_dead_point(sign):
    crank = SliderCrank(1.0, 2.0)
    first = crank.place(0.6)
    motion = with_motor(crank.build(0.6), "P", lambda t: first + sign * 0.5 * t).move([0.0, 0.1, 0.2, 10.0])
    dead = ((3.0 - first) if sign > 0 else (first - 1.0)) / 0.5
    assert motion.status is MotionStatus.DEAD_POINT
    assert abs(motion.state.time - dead) <= DEAD * dead
    assert len(motion.states) == 3


@pytest.mark.parametrize("side", [1, -1])
def test_a_spatial_four_bar_follows_its_closed_form(side):
    linkage = RSUR(0.7, side)
    for direction in (1, -1):
        for count in (2, 90):
            motion = with_motor(linkage.build(), "A", lambda t: 0.7 + direction * t).move(np.linspace(0, TURN, count))
            assert motion.ok, motion.text()
            for state in motion.states:
                theta = 0.7 + direction * state.time
                assert np.abs(state["coupler"].point((linkage.length, 0, 0)) - linkage.corner(theta)).max() <= POSE
                assert np.abs(state["coupler"].matrix - linkage.coupler_axes(theta)).max() <= POSE


# --- what must not matter ---------------------------------------------------------------------------------------------


def stewart(seed):
    """A platform on six driven legs, all parts of it drawn at random around the usual shape."""
    rng = np.random.default_rng(seed)
    base = np.deg2rad([-10, 10, 110, 130, 230, 250]) + rng.uniform(-0.15, 0.15, 6)
    plate = np.deg2rad([-50, 50, 70, 170, 190, 290]) + rng.uniform(-0.15, 0.15, 6)
    feet = np.column_stack([np.cos(base), np.sin(base), rng.uniform(-0.1, 0.1, 6)])
    heads = 0.6 * np.column_stack([np.cos(plate), np.sin(plate), rng.uniform(-0.1, 0.1, 6)])
    m = cd.Mechanism("Stewart")
    body = m.body("plate", position=(0.05, -0.04, 1.2), orientation=quaternion(rotation([1, 2, 3], 0.2)))
    for k in range(6):
        leg = cd.coordinate(m.ground.point(feet[k]), body.point(heads[k]), "distance")
        length, swing, pace, phase = leg.value(m.state), rng.uniform(0.05, 0.15), rng.uniform(0.5, 2.0), rng.uniform(0, 6)
        law = lambda t, l=length, s=swing, w=pace, p=phase: l + s * (cd.sin(w * t + p) - np.sin(p))  # noqa: E731
        m.drive(f"leg {k}", leg, law)
    return m


def rssr(seed):
    """A spatial four-bar with two ball joints, whose coupler may spin about itself: one freedom is left undriven."""
    rng = np.random.default_rng(seed)
    m = cd.Mechanism("RSSR")
    R, R2 = random_rotation(rng), random_rotation(rng)
    D = np.array([3.0, 0.0, 0.5]) + rng.uniform(-0.3, 0.3, 3)
    crank = m.body("crank", orientation=quaternion(R))
    rocker = m.body("rocker", position=D, orientation=quaternion(R2))
    B, C = R @ (0.5 * X), D + R2 @ (2.0 * X)
    R3 = np.column_stack([unit(C - B), *np.linalg.svd(np.atleast_2d(C - B))[2][1:]])
    R3[:, 2] *= np.sign(np.linalg.det(R3))
    coupler = m.body("coupler", position=B, orientation=quaternion(R3))
    m.revolute("A", m.ground.frame(z=R[:, 2], x=R[:, 0]), crank.frame(x=X))
    m.spherical("B", crank.point((0.5, 0, 0)), coupler.point())
    m.spherical("C", coupler.point((float(np.linalg.norm(C - B)), 0, 0)), rocker.point((2.0, 0, 0)))
    m.revolute("D", m.ground.frame(D, z=R2[:, 2], x=R2[:, 0]), rocker.frame(x=X))
    m.drive("motor", m["A"], lambda t: 1.5 * t)
    return m


def six_bar(seed):
    """Two planar four-bars in a row, drawn at random: the rocker of the first is the crank of the second."""
    rng = np.random.default_rng(seed)
    while True:
        one, theta = FourBar(*rng.uniform(0.5, 2.0, 4), side=int(rng.choice([-1, 1]))), rng.uniform(-3, 3)
        two = FourBar(one.c, *rng.uniform(0.5, 2.0, 3), side=int(rng.choice([-1, 1])))
        C = one.corner(theta)
        if C is None:
            continue
        rocker = heading(C - (one.d, 0))
        if two.corner(rocker) is not None:
            break
    m = one.build(theta)
    E, base = two.corner(rocker), np.array([one.d, 0.0])
    link = m.body("link", position=(*C, 0), orientation=about_z(heading(base + E - C)))
    out = m.body("out", position=(one.d + two.d, 0, 0), orientation=about_z(heading(E - (two.d, 0))))
    m.revolute("E", m["rocker"].frame((one.c, 0, 0), x=X), link.frame(x=X))
    m.revolute("F", link.frame((two.b, 0, 0), x=X), out.frame((two.c, 0, 0), x=X))
    m.revolute("G", m.ground.frame((one.d + two.d, 0, 0), x=X), out.frame(x=X))
    m.drive("motor", m["A"], lambda t: theta + t)
    return m


RANDOM = [(six_bar, seed, 1e-6) for seed in range(12)] + [(stewart, seed, 1e-8) for seed in range(6)]


@pytest.mark.parametrize(("draw", "seed", "tolerance"), RANDOM)
def test_a_motion_never_jumps(draw, seed, tolerance):
    """Coarse and ten times finer lists of times end alike, and give the same poses where both have one."""
    coarse, fine = np.linspace(0, TURN, 9), np.linspace(0, TURN, 81)
    one, other = draw(seed).move(coarse), draw(seed).move(fine)
    assert one.status is other.status, (one.text(), other.text())
    assert one.status in (MotionStatus.DONE, MotionStatus.DEAD_POINT)
    if not one.ok:
        assert abs(one.state.time - other.state.time) <= DEAD * TURN
    for k, state in enumerate(one.states):
        assert state.time == other.states[10 * k].time
        assert pose_gap(state, other.states[10 * k]) <= tolerance
    steps = [pose_gap(a, b) for a, b in zip(other.states, other.states[1:], strict=False)]
    speed = [np.abs(state.velocities).max() * fine[1] for state in other.states]
    for step, before, after in zip(steps, speed, speed[1:], strict=False):
        assert step <= 2.0 * max(before, after) + 1e-3  # as far as the velocities say, and no further


@pytest.mark.parametrize("name", ["crank-rocker", "drag link"])
def test_a_motion_and_its_way_back_are_the_same(name):
    bar, theta = GRASHOF[name]
    times = np.linspace(0, 9.0, 31)
    m = with_motor(bar.build(theta), "A", lambda t: theta + t + 0.3 * cd.sin(2 * t))
    there = m.move(times)
    back = m.move(times[::-1], there.state)
    assert there.ok and back.ok
    for a, b in zip(there.states, back.states[::-1], strict=True):
        assert a.time == b.time and a.turns == b.turns
        assert pose_gap(a, b) <= POSE
        assert np.abs(a.velocities - b.velocities).max() <= 1e-7


@pytest.mark.parametrize("formulate", ["unit", "rigid motion", "order"])
def test_unit_place_and_order_do_not_change_a_motion(formulate):
    from mechanisms import planar_4r, rsur

    rng = np.random.default_rng(3)
    R, t = random_rotation(rng), rng.uniform(-9, 9, 3)
    for model in (planar_4r(), rsur()):
        options = {
            "unit": {"unit": 1e-3},
            "rigid motion": {"motion": (R, t)},
            "order": {"bodies": list(model.bodies)[::-1], "bonds": [bond.name for bond in model.bonds][::-1]},
        }[formulate]
        one, other = model.build(), model.build(**options)
        motions = []
        for built in (one, other):
            first = built.mechanism["A"].coordinate(built.mechanism.state)
            m = with_motor(built.mechanism, "A", lambda t, first=first: first + t)
            motions.append(m.move(np.linspace(0, 4, 9)))
        scale = options.get("unit", 1.0)
        S, s = options.get("motion", (np.eye(3), np.zeros(3)))
        assert motions[0].status is motions[1].status
        assert len(motions[0].states) == len(motions[1].states) >= 5
        for a, b in zip(motions[0].states, motions[1].states, strict=True):
            for name in a:
                assert np.abs(S @ a[name].position * scale + s - b[name].position).max() <= POSE * scale
                assert np.abs(S @ matrix(a[name].quaternion) - matrix(b[name].quaternion)).max() <= POSE


@pytest.mark.parametrize("offset", [1e3, 1e6, -1e9])
def test_the_zero_of_time_does_not_matter(offset):
    """Steps below an ulp of the time cannot be made; a motion must not wait for them."""
    crank = SliderCrank(1.0, 2.0)
    first = crank.place(0.6)
    m = with_motor(crank.build(0.6), "P", lambda t: first + (t - offset))
    motion = m.move([offset, offset + 0.125, offset + 1.0])
    assert motion.status is MotionStatus.DEAD_POINT
    assert abs(motion.state.time - offset - (3.0 - first)) <= max(1e-7, 2 * np.spacing(abs(offset)))


# --- where branches cross ---------------------------------------------------------------------------------------------


def parallel(a, d):
    """C of the parallelogram, and its velocity, with the crank at θ and turning at unit speed."""
    return lambda th: (polar(a, th) + (d, 0.0), polar(a, th + np.pi / 2))


def crossed(a, d):
    """The same linkage with its links crossed: C is that of the parallelogram, mirrored at BD."""

    def corner(th):
        B, D = polar(a, th), np.array([d, 0.0])
        e = unit(D - B)
        return B + 2 * e * (e @ D) - D

    return lambda th: (corner(th), (corner(th + 1e-5) - corner(th - 1e-5)) / 2e-5)


def kite(a, b):
    """A deltoid: crank and frame of length a, coupler and rocker of length b; C on the line across BD, at (a, 0) on
    one side throughout though B passes through D."""

    def corner(th):
        half = th / 2  # BD = 2a sin(th/2) at the angle th/2 + π/2
        middle = np.array([a, 0.0]) + polar(a * np.sin(half), half + np.pi / 2)
        return middle + polar(np.sqrt(b * b - (a * np.sin(half)) ** 2), half + np.pi)

    return lambda th: (corner(th), (corner(th + 1e-5) - corner(th - 1e-5)) / 2e-5)


CROSSINGS = {
    "parallelogram": (FourBar(1, 2, 1, 2), parallel(1, 2), [0, np.pi]),
    "parallelogram, short crank": (FourBar(0.1, 5, 0.1, 5), parallel(0.1, 5), [0, np.pi]),
    "parallelogram, long crank": (FourBar(2, 1, 2, 1), parallel(2, 1), [0, np.pi]),
    "crossed parallelogram": (FourBar(1, 2, 1, 2), crossed(1, 2), [0, np.pi]),
    "crossed, nearly square": (FourBar(1, 1.3, 1, 1.3), crossed(1, 1.3), [0, np.pi]),
    "crossed, long crank": (FourBar(2, 1, 2, 1), crossed(2, 1), [0, np.pi]),
    "deltoid": (FourBar(1, 2.5, 2.5, 1), kite(1, 2.5), [0]),
}


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("name", CROSSINGS)
def test_where_branches_cross_a_motion_goes_on_as_it_came(name, direction):
    bar, exact, singular = CROSSINGS[name]
    theta = -1.0 if direction > 0 else 1.1
    moments = np.sort([((s - theta) * direction) % TURN for s in singular])
    lists = {
        "coarse": [0.0, 2 * TURN],
        "plain": np.linspace(0, 2 * TURN, 12),
        "fine": np.linspace(0, 2 * TURN, 200),
        "exact": [0.0, *moments, *(moments + TURN), 2 * TURN],
        "almost": sorted({0.0, 2 * TURN, *(t + s for t in moments for s in (-1e-6, -1e-9, 0.0, 1e-9, 1e-6))}),
    }
    for label, times in lists.items():
        m = with_motor(bar.build(theta, exact(theta)[0]), "A", lambda t: theta + direction * t)
        motion = m.move(times)
        assert motion.ok, (label, motion.text())
        for state in motion.states:
            place, velocity = exact(theta + direction * state.time)
            assert np.abs(bar.corner_of(state) - place).max() <= 1e-7, (label, state.time)
            pose = state["coupler"]
            w = pose.matrix @ state.velocities[1, 3:]
            found = state.velocities[1, :3] + np.cross(w, pose.vector((bar.b, 0, 0)))
            assert np.abs(found[:2] - direction * velocity).max() <= 1e-5 * bar.a, (label, state.time)


@pytest.mark.parametrize("gap", [1e-2, 1e-3, 1e-5, 1e-7, 1e-9])
def test_where_branches_only_come_near_each_other_a_motion_stays_on_its_own(gap):
    """Lengths that are off those of a parallelogram by ``gap``: the branches pass at a distance of about its root."""
    for bar in (FourBar(1, 2, 1 + gap, 2), FourBar(1, 2, 1 + gap, 2, -1), FourBar(1, 2, 1, 2 + gap, -1)):
        for direction, count in ((1, 2), (-1, 40)):
            dead = bar.dead(1.0, direction)
            motion = with_motor(bar.build(1.0), "A", lambda t: 1.0 + direction * t).move(np.linspace(0, TURN, count))
            assert motion.status is (MotionStatus.DONE if dead > TURN else MotionStatus.DEAD_POINT), motion.text()
            assert abs(motion.state.time - min(dead, TURN)) <= DEAD * TURN
            for state in motion.states:
                assert np.abs(bar.corner_of(state) - bar.corner(1.0 + direction * state.time)).max() <= 1e-6


def test_a_start_where_branches_cross_is_left_on_one_of_them_or_said_to_be_singular():
    exact = [parallel(1, 2), crossed(1, 2)]
    m = with_motor(FourBar(1, 2, 1, 2).build(0.0, np.array([3.0, 0.0])), "A", lambda t: t)
    motion = m.move(np.linspace(0, 2, 9))
    if motion.ok:
        for state in motion.states[1:]:
            corner = state["coupler"].point((2, 0, 0))[:2]
            assert min(np.abs(corner - way(state.time)[0]).max() for way in exact) <= 1e-6
    else:
        assert motion.status is MotionStatus.DEAD_POINT and motion.state.time <= 1e-3
