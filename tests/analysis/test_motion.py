"""Laws of a driven motion: closed forms, one branch from end to end, and where and why it stops."""

from __future__ import annotations

import pickle
import re
import time
from dataclasses import replace

import numpy as np
import pytest

import cardan as cd
from cardan.analysis import crossing
from cardan.analysis.motion import MotionStatus
from cardan.coordinates import formulations
from layers import sampled
from linkages import GRASHOF, RSUR, FourBar, SliderCrank, X, Y, Z, about_z, heading, polar
from mechanisms import matrix, quaternion, random_rotation, rotation, unit
from timing import slowness

POSE = 1e-9  # error of regular poses: residuals of 1e-12 divided by singular values of about 1e-2
DEAD = 1e-6  # error of the time of a dead point
TURN = 2 * np.pi


def with_motor(m, joint, law):
    m.drive("motor", m[joint], law)
    return m


def steadily(first, direction):
    """A driver function with unit rate, in either direction."""
    return lambda t: first + direction * t


def positions(motion, *names):
    return np.hstack([motion.positions(name) for name in names])


def pose_gap(a, b):
    """Largest difference of two states: positions, and entries of rotation matrices."""
    moved = [np.abs(a[name].position - b[name].position).max() for name in a]
    turned = [np.abs(matrix(a[name].quaternion) - matrix(b[name].quaternion)).max() for name in a]
    return max(*moved, *turned)


# --- closed forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("side", [1, -1])
@sampled("name", GRASHOF, 4)
def test_a_four_bar_of_any_type_stays_on_its_branch_until_its_dead_point(name, side, direction):
    bar, theta = GRASHOF[name]
    bar = replace(bar, side=side)
    dead = bar.dead(theta, direction)
    end = min(dead + 0.5, 2 * TURN)
    for count in (2, 7, 150):
        m = with_motor(bar.build(theta), "A", steadily(theta, direction))
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
            sharpness = min(1.0, 10 * abs(dead - state.time))  # near a dead point σ ∝ √(time left)
            assert np.abs(bar.corner_of(state) - exact).max() <= POSE / sharpness
            assert abs(m["A"].coordinate(state) - theta - direction * state.time) <= 1e-11


@pytest.mark.slow
def test_random_four_bars_rotate_fully_or_stop_at_the_closed_form_of_their_dead_point():
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
        motion = with_motor(bar.build(theta), "A", steadily(theta, direction)).move(np.linspace(0, TURN, count))
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
            m = with_motor(crank.build(0.4), "A", steadily(0.4, direction))
            motion = m.move(np.linspace(0, 3 * TURN, count))
            assert motion.ok, motion.text()
            expected = [crank.place(0.4 + direction * t) for t in motion.times]
            assert np.abs(motion.coordinate(m["P"]) - expected).max() <= POSE


@pytest.mark.parametrize("sign", [1, -1])
def test_a_driven_slider_moves_the_crank_to_its_dead_point(sign):
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
            motion = with_motor(linkage.build(), "A", steadily(0.7, direction)).move(np.linspace(0, TURN, count))
            assert motion.ok, motion.text()
            for state in motion.states:
                theta = 0.7 + direction * state.time
                assert np.abs(state["coupler"].point((linkage.length, 0, 0)) - linkage.corner(theta)).max() <= POSE
                assert np.abs(state["coupler"].matrix - linkage.coupler_axes(theta)).max() <= POSE


# --- invariances ------------------------------------------------------------------------------------------------------


def swinging(first, swing, pace, phase):
    return lambda t: first + swing * (cd.sin(pace * t + phase) - np.sin(phase))


def stewart(seed):
    """A platform on six driven legs, with a random deviation from the usual shape."""
    rng = np.random.default_rng(seed)
    base = np.deg2rad([-10, 10, 110, 130, 230, 250]) + rng.uniform(-0.15, 0.15, 6)
    plate = np.deg2rad([-50, 50, 70, 170, 190, 290]) + rng.uniform(-0.15, 0.15, 6)
    feet = np.column_stack([np.cos(base), np.sin(base), rng.uniform(-0.1, 0.1, 6)])
    heads = 0.6 * np.column_stack([np.cos(plate), np.sin(plate), rng.uniform(-0.1, 0.1, 6)])
    m = cd.Mechanism("Stewart")
    body = m.body("plate", position=(0.05, -0.04, 1.2), orientation=quaternion(rotation([1, 2, 3], 0.2)))
    for k in range(6):
        leg = cd.coordinate(m.ground.point(feet[k]), body.point(heads[k]), "distance")
        swing, pace, phase = rng.uniform(0.05, 0.15), rng.uniform(0.5, 2.0), rng.uniform(0, 6)
        m.drive(f"leg {k}", leg, swinging(leg.value(m.state), swing, pace, phase))
    return m


def rssr(seed):
    """A spatial four-bar with two ball joints: the rotation of the coupler about its own axis is not driven."""
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
    """Two random planar four-bars in series: the rocker of the first is the crank of the second."""
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
    """A list of times and a ten times finer one give the same end and the same poses at common times."""
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
        assert step <= 2.0 * max(before, after) + 1e-3  # consistent with the velocities


@pytest.mark.parametrize("name", ["crank-rocker", "drag link"])
def test_a_motion_and_its_reverse_are_the_same(name):
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
    """Steps below an ulp of the time are impossible; the motion must not loop forever."""
    crank = SliderCrank(1.0, 2.0)
    first = crank.place(0.6)
    m = with_motor(crank.build(0.6), "P", lambda t: first + (t - offset))
    motion = m.move([offset, offset + 0.125, offset + 1.0])
    assert motion.status is MotionStatus.DEAD_POINT
    assert abs(motion.state.time - offset - (3.0 - first)) <= max(1e-7, 2 * np.spacing(abs(offset)))


# --- where branches cross ---------------------------------------------------------------------------------------------


def parallel(a, d):
    """C of the parallelogram, and its velocity, with the crank at θ and at unit speed."""
    return lambda th: (polar(a, th) + d * X[:2], polar(a, th + np.pi / 2))


def crossed(a, d):
    """The antiparallelogram: C is that of the parallelogram, mirrored at BD."""

    def corner(th):
        B, D = polar(a, th), np.array([d, 0.0])
        e = unit(D - B)
        return B + 2 * e * (e @ D) - D

    return lambda th: (corner(th), (corner(th + 1e-5) - corner(th - 1e-5)) / 2e-5)


def kite(a, b):
    """A deltoid: crank and frame of length a, coupler and rocker of length b.

    C is on the perpendicular bisector of BD, on the same side throughout, although B passes through D.
    """

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


@pytest.mark.slow
@pytest.mark.parametrize("direction", [1, -1])
@sampled("name", CROSSINGS, 2)
def test_a_motion_stays_on_its_branch_where_branches_cross(name, direction):
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
        m = with_motor(bar.build(theta, exact(theta)[0]), "A", steadily(theta, direction))
        motion = m.move(times)
        assert motion.ok, (label, motion.text())
        for state in motion.states:
            place, velocity = exact(theta + direction * state.time)
            assert np.abs(bar.corner_of(state) - place).max() <= 1e-7, (label, state.time)
            pose = state["coupler"]
            w = pose.matrix @ state.velocities[1, 3:]
            found = state.velocities[1, :3] + np.cross(w, pose.vector((bar.b, 0, 0)))
            assert np.abs(found[:2] - direction * velocity).max() <= 1e-5 * bar.a, (label, state.time)


def with_wheels(m, count, theta):
    """More parts in the same piece, which rotate at half the speed of the crank."""
    for k in range(count):
        m.revolute(f"axle{k}", m.ground.frame((0, 0, k + 1.0)), m.body(f"wheel{k}").frame())
        m.gear(f"gear{k}", m["A"], m[f"axle{k}"], ratio=0.5, phase=-0.5 * theta)
    return m


@pytest.mark.parametrize("wheels", [5, 45])
@sampled("name", CROSSINGS)
def test_a_large_mechanism_stays_on_its_branch_where_branches_cross(name, wheels):
    """48 and 288 unknowns: by a Krylov space."""
    bar, exact, _ = CROSSINGS[name]
    m = with_motor(bar.build(-1.0, exact(-1.0)[0]), "A", steadily(-1.0, 1))
    motion = with_wheels(m, wheels, -1.0).move(np.linspace(0, 4.5, 7))
    assert motion.ok, motion.text()
    for state in motion.states:
        assert np.abs(bar.corner_of(state) - exact(-1.0 + state.time)[0]).max() <= 1e-7, state.time


@sampled("name", ["parallelogram", "crossed parallelogram", "deltoid"], 1)
def test_a_very_large_mechanism_ends_where_branches_cross_and_says_so(name):
    bar, exact, _ = CROSSINGS[name]
    m = with_motor(bar.build(-1.0, exact(-1.0)[0]), "A", steadily(-1.0, 1))
    motion = with_wheels(m, 105, -1.0).move(np.linspace(0, 4.5, 7))
    assert motion.status is MotionStatus.LOST and "branches seem to cross" in motion.reason, motion.text()
    assert abs(motion.state.time - 1.0) <= 1e-2
    assert motion.steps <= 100


@sampled("gap", [1e-2, 1e-3, 1e-5, 1e-7, 1e-9])
def test_a_motion_stays_on_its_branch_where_branches_are_close(gap):
    """Lengths that deviate from a parallelogram by ``gap``: the branches pass at a distance of about √gap."""
    for bar in (FourBar(1, 2, 1 + gap, 2), FourBar(1, 2, 1 + gap, 2, -1), FourBar(1, 2, 1, 2 + gap, -1)):
        for direction, count in ((1, 2), (-1, 40)):
            dead = bar.dead(1.0, direction)
            motion = with_motor(bar.build(1.0), "A", steadily(1.0, direction)).move(np.linspace(0, TURN, count))
            assert motion.status is (MotionStatus.DONE if dead > TURN else MotionStatus.DEAD_POINT), motion.text()
            assert abs(motion.state.time - min(dead, TURN)) <= DEAD * TURN
            for state in motion.states:
                assert np.abs(bar.corner_of(state) - bar.corner(1.0 + direction * state.time)).max() <= 1e-6


def test_a_motion_from_a_crossing_follows_one_branch_or_is_reported_as_singular():
    exact = [parallel(1, 2), crossed(1, 2)]
    m = with_motor(FourBar(1, 2, 1, 2).build(0.0, np.array([3.0, 0.0])), "A", lambda t: t)
    motion = m.move(np.linspace(0, 2, 9))
    if motion.ok:
        for state in motion.states[1:]:
            corner = state["coupler"].point((2, 0, 0))[:2]
            assert min(np.abs(corner - way(state.time)[0]).max() for way in exact) <= 1e-6
    else:
        assert motion.status is MotionStatus.DEAD_POINT and motion.state.time <= 1e-3


@sampled("reach", [-1e-3, 1e-3], 1)
@pytest.mark.parametrize(
    ("count", "geared", "wheels"), [(2, False, 0), (2, True, 0), (4, True, 0), (14, True, 0), (1, True, 38)]
)
def test_equal_linkages_do_not_jump_together(count, geared, wheels, reach):
    """Equal linkages reach their dead points at the same time; SparseLinearization handles more than 36 unknowns."""
    bar = FourBar(1.0, 1.8, 1.2 + reach, 2.0)
    m = cd.Mechanism()
    for k in range(count):
        bar.build(0.5, into=m, tag=k)
        if geared and k:
            m.gear(f"gear{k}", m["A0"], m[f"A{k}"], ratio=1.0)
        else:
            m.drive(f"motor{k}", m[f"A{k}"], steadily(0.5, 1))
    for k in range(wheels):
        m.revolute(f"axle{k}", m.ground.frame((0, 0, k + 1.0)), m.body(f"wheel{k}").frame())
    motion = m.move(np.linspace(0.0, 5.0, 11))
    if reach < 0:
        assert motion.status == MotionStatus.DEAD_POINT
        assert motion.state.time == pytest.approx(bar.dead(0.5, 1), abs=1e-6)
    else:
        assert motion.ok, motion.text()
        for k in range(count):
            assert np.abs(bar.corner_of(motion.state, k) - bar.corner(5.5)).max() <= 1e-10


def geared_bars(bars, theta, chain):
    """Four-bars with one crank angle; their gears form a chain or a star."""
    m = cd.Mechanism()
    for k, bar in enumerate(bars):
        bar.build(theta, into=m, tag=k)
        if k:
            m.gear(f"gear{k}", m[f"A{k - 1 if chain else 0}"], m[f"A{k}"], ratio=1.0)
        else:
            m.drive("motor", m["A0"], steadily(theta, 1))
    return m


@pytest.mark.long
def test_a_krylov_space_shows_what_all_eigenvalues_show():
    """Whether a step passes or suddenly approaches a singular pose, with and without jumps of some linkages."""
    rng = np.random.default_rng(0)
    seen = []
    while len(seen) < 150:
        count, theta = int(rng.integers(3, 15)), rng.uniform(-3, 3)
        lengths = rng.uniform(0.5, 2, 4) * (1 + rng.choice([0, 0.05]) * rng.uniform(-1, 1, (count, 4)))
        bars = [FourBar(*row, side=int(rng.choice([-1, 1]))) for row in lengths]
        after = theta + rng.choice([-1, 1]) * 10 ** rng.uniform(-3, 0)
        flipped = [replace(bar, side=bar.side * int(rng.choice([1, 1, -1]))) for bar in bars]
        other = flipped if rng.random() < 0.5 else bars
        if any(bar.corner(theta) is None or bar.corner(after) is None for bar in bars):
            continue
        chain = bool(rng.integers(2))
        system = geared_bars(bars, theta, chain).system
        poses = [(theta, system.state()), (after, geared_bars(other, after, chain).state)]
        near = [np.full(len(system.counted_angles), angle) for angle, _ in poses]
        q = [formulations.to_reference(system, s.coordinates, a) for (_, s), a in zip(poses, near, strict=True)]
        problem = formulations.problem(system, "manifold", system.extent_at(q[0]), 0.0)
        exact, found = (
            kind(system, problem, q[0]).part_left(kind(system, problem, q[1]))
            for kind in (crossing.Linearization, crossing.SparseLinearization)
        )
        assert (exact <= 0.0, exact < 0.1) == (found <= 0.0, found < 0.1), (count, after - theta, exact, found)
        seen.append(exact <= 0.0)
    assert 40 <= sum(seen) <= 110


@pytest.mark.slow
@pytest.mark.parametrize(("build", "bar"), [(lambda: engine(10), 2e-3), (lambda: engine(20), 5e-3)])
def test_a_step_of_a_large_mechanism_is_fast(build, bar):
    """Bars in seconds per step; the best of some runs, since other processes may be running."""
    m = build()
    m.move([0.0, 0.01])  # loads the kernels
    seconds = []
    for _ in range(8):
        began = time.process_time()
        motion = m.move(np.linspace(0.0, 3.0, 31))
        seconds.append((time.process_time() - began) / motion.steps / slowness())
    assert motion.ok and min(seconds) <= bar


# --- velocities and accelerations -------------------------------------------------------------------------------------

FIRST = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}  # central differences over nine points
SECOND = {0: -205 / 72, 1: 8 / 5, 2: -1 / 5, 3: 8 / 315, 4: -1 / 560}


def by_differences(samples, h):
    """Rates at the middle of nine samples."""
    first = sum(w * (samples[4 + k] - samples[4 - k]) for k, w in FIRST.items()) / h
    second = sum(w * (samples[4 + k] + samples[4 - k]) / (2 if k == 0 else 1) for k, w in SECOND.items()) / h**2
    return first, second


def axial(W):
    """w of a skew matrix w̃, or of the skew part of a matrix."""
    return 0.5 * np.array([W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]])


def lead_screw():
    """A screw driven by a motor lifts a nut; a slide prevents the nut from rotating."""
    m = cd.Mechanism("lead screw")
    screw, nut = m.body("screw"), m.body("nut", position=(0, 0, 0.2))
    m.revolute("bearing", m.ground.frame(x=X), screw.frame(x=X))
    m.prismatic("slide", m.ground.frame((0.3, 0, 0), x=X), nut.frame((0.3, 0, -0.2), x=X))
    m.screw("thread", screw.frame(x=X), nut.frame((0, 0, -0.2), x=X), pitch=0.004)
    m.drive("motor", m["bearing"], lambda t: 3 * cd.sin(t) + t**2)
    return m


def universal_shaft():
    """A shaft driven through a universal joint with angled axes."""
    m = cd.Mechanism("shaft")
    axis = unit([0.0, 0.5, 1.0])
    one, cross, two = m.body("in"), m.body("cross"), m.body("out", orientation=quaternion(rotation(X, -np.arctan(0.5))))
    m.revolute("in bearing", m.ground.frame(x=X), one.frame(x=X))
    m.universal("joint a", one.frame(z=X), cross.frame(z=Y))
    m.universal("joint b", cross.frame(z=X), two.frame(z=Y))
    m.fixed("yoke", one.frame(z=X, x=Y), cross.frame(z=X, x=Y))
    m.cylindrical("out bearing", m.ground.frame(z=axis, x=X), two.frame(x=X))
    m.remove("joint a")
    m.drive("motor", m["in bearing"], lambda t: 0.3 + t + 0.2 * cd.cos(3 * t))
    return m


MOVERS = {
    "four-bar": lambda: with_motor(FourBar(1, 2.5, 2, 3).build(0.7), "A", lambda t: 0.7 + t + 0.4 * cd.sin(2 * t)),
    "slider-crank": lambda: with_motor(SliderCrank(1, 3, 0.2).build(0.7), "A", lambda t: 0.7 + t**2 / 2),
    "pushed slider": lambda: with_motor(SliderCrank(1, 3, 0.2).build(0.7), "P", lambda t: 3.6 + 0.2 * cd.sin(t)),
    "RSUR": lambda: with_motor(RSUR(0.7, 1).build(), "A", lambda t: 0.7 + 1.3 * t),
    "Stewart": lambda: stewart(3),
    "lead screw": lead_screw,
    "shaft": universal_shaft,
}


@pytest.mark.parametrize("name", MOVERS)
def test_velocities_and_accelerations_are_the_derivatives_of_the_positions(name):
    m = MOVERS[name]()
    h = 0.01
    for middle in (0.3, 1.1):
        motion = m.move(middle + h * np.arange(-4, 5))
        assert motion.ok, motion.text()
        for body in m.bodies:
            velocity, acceleration = by_differences(motion.positions(body), h)
            A = np.array([matrix(p) for p in motion.quaternions(body)])
            rate, bend = by_differences(A, h)
            w = axial(A[4].T @ rate)
            w_dot = axial(A[4].T @ bend)  # Aᵀ Ä = ω̃̇ + ω̃ ω̃, whose second part is symmetric
            v, a = motion.velocities(body)[4], motion.accelerations(body)[4]
            for found, expected in ((v, [*velocity, *w]), (a, [*acceleration, *w_dot])):
                size = max(1.0, np.abs(expected).max())
                assert np.abs(found - expected).max() <= 1e-6 * size, (body, found, expected)


def test_a_driver_may_be_given_with_its_derivatives_by_hand():
    """The same law with a jet computed by hand from t.value, and with operators."""

    def by_hand(t):
        s = t.value
        return cd.Jet(0.7 + np.tanh(s), 1 - np.tanh(s) ** 2, -2 * np.tanh(s) * (1 - np.tanh(s) ** 2))

    times = np.linspace(0, 2, 5)
    one, other = (
        with_motor(FourBar(1, 2.5, 2, 3).build(0.7), "A", law).move(times)
        for law in (by_hand, lambda t: 0.7 + cd.tanh(t))
    )
    for a, b in zip(one.states, other.states, strict=True):
        assert pose_gap(a, b) <= 1e-12
        assert np.abs(a.velocities - b.velocities).max() <= 1e-12
        assert np.abs(a.accelerations - b.accelerations).max() <= 1e-12


# --- whole turns ------------------------------------------------------------------------------------------------------


def planetary():
    """Sun 20, planet 15, ring 50 teeth: (ring − carrier)/(sun − carrier) = −20/50, with a fixed ring."""
    m = cd.Mechanism("planetary")
    sun, planet, carrier = m.body("sun"), m.body("planet", position=(0.35, 0, 0)), m.body("carrier")
    m.revolute("carrier bearing", m.ground.frame(x=X), carrier.frame(x=X))
    m.revolute("sun bearing", m.ground.frame(x=X), sun.frame(x=X))
    pin = m.revolute("pin", carrier.frame((0.35, 0, 0), x=X), planet.frame(x=X))
    inner = m.revolute("sun on carrier", carrier.frame(x=X), sun.frame(x=X))
    outer = cd.coordinate(carrier.frame(x=X), m.ground.frame(x=X))
    m.gear("sun gear", inner, pin, ratio=-20 / 15)
    m.gear("ring gear", pin, outer, ratio=15 / 50)
    m.drive("motor", m["sun bearing"], lambda t: TURN * t)
    return m


@pytest.mark.slow
def test_a_planetary_train_is_counted_exactly_over_two_hundred_turns():
    """The carrier makes 20/70 of the turns of the sun, the planet on it −20/15·50/70 of them."""
    m = planetary()
    motion = m.move([0.0, 0.6, 77.0, 200.0])
    assert motion.ok, motion.text()
    for state in motion.states:
        turns = state.time
        expected = {
            "sun bearing": turns,
            "carrier bearing": turns * 20 / 70,
            "sun on carrier": turns * 50 / 70,
            "pin": -turns * 50 / 70 * 20 / 15,
        }
        for name, value in expected.items():
            assert abs(m[name].coordinate(state) - TURN * value) <= 1e-9, name
            assert state.turns[name] == np.ceil(value - 0.5)
            if name.endswith("bearing"):
                R = matrix(state[m[name].b.body].quaternion)
                assert np.abs(R - rotation(Z, TURN * value)).max() <= 1e-9
    again = m.assemble(motion.state)
    assert again.ok and again.iterations == 0 and again.state.turns == motion.state.turns


@pytest.mark.slow
def test_a_lead_screw_is_counted_exactly_over_two_hundred_turns():
    m = lead_screw()
    m.remove("motor")
    m.drive("motor", m["bearing"], lambda t: -TURN * t)
    motion = m.move(np.linspace(0, 200, 5))
    assert motion.ok, motion.text()
    for state in motion.states:
        assert abs(state["nut"].position[2] - (0.2 + 0.004 * state.time)) <= 1e-9
        assert abs(m["bearing"].coordinate(state) + TURN * state.time) <= 1e-9
        assert abs(m["thread"].coordinate(state, "angle") - TURN * state.time) <= 1e-9
        assert state.turns["bearing"] == -state.time and state.turns["thread"] == state.time


def test_the_angle_between_two_rotating_parts_is_counted():
    """No step may be so long that the angle between two parts goes through half a turn."""
    m = cd.Mechanism()
    one, two = m.body("one"), m.body("two")
    m.revolute("A", m.ground.frame(x=X), one.frame(x=X))
    m.revolute("B", m.ground.frame(x=X), two.frame(x=X))
    m.revolute("between", one.frame(x=X), two.frame(x=X))
    m.drive("one way", m["A"], lambda t: TURN * t)
    m.drive("the other", m["B"], lambda t: -TURN * t)
    motion = m.move([0.0, 31.0])
    assert motion.ok
    assert {name: round(angle / TURN, 9) for name, angle in motion.state.angles.items()} == {
        "A": 31.0,
        "B": -31.0,
        "between": -62.0,
    }


# --- how it ends ------------------------------------------------------------------------------------------------------


def hinge(law=None):
    m = cd.Mechanism("hinge")
    arm = m.body("arm")
    m.revolute("A", m.ground.frame(x=X), arm.frame(x=X))
    if law is not None:
        m.drive("motor", m["A"], law)
    return m


@pytest.mark.parametrize("count", [2, 50])
def test_a_limit_ends_the_motion_when_it_is_reached(count):
    bar = FourBar(1, 2.5, 2, 3)
    bound = heading(bar.corner(2.0) - (bar.d, 0))  # angle of the rocker with the crank at 2 rad
    m = with_motor(bar.build(1.2), "A", lambda t: 1.2 + t)
    first = m["D"].coordinate(m.state)
    m.limit("stop", m["D"], **({"upper": bound} if bound > first else {"lower": bound}))
    motion = m.move(np.linspace(0, 3, count))
    assert motion.status is MotionStatus.LIMIT, motion.text()
    assert abs(motion.state.time - 0.8) <= DEAD
    for part in ("'stop'", "'motor'", "upper" if bound > first else "lower"):
        assert part in motion.reason
    assert all(state.time < 0.8 for state in motion.states)


def test_a_limit_that_is_left_does_not_stop_the_motion():
    """Moving from a bound into the range, and along a bound without pushing against it."""
    m = hinge(lambda t: 1 + t)
    m.limit("stop", m["A"], lower=1.0, upper=3.0)
    rest = m.body("rest", position=(0, 0, 0.5))
    m.prismatic("P", m.ground.frame(x=X), rest.frame(x=X))
    m.limit("floor", m["P"], lower=0.5)
    motion = m.move(np.linspace(0, 1, 5))
    assert motion.ok, motion.text()
    assert np.abs(motion.velocities("arm")[:, 5] - 1.0).max() <= 1e-12
    assert not motion.velocities("rest").any() and np.abs(motion.positions("rest") - (0, 0, 0.5)).max() <= 1e-12


@pytest.mark.slow
def test_a_dead_point_is_not_mistaken_for_a_limit_that_is_reached():
    crank = SliderCrank(1.0, 2.0)
    first = crank.place(0.6)
    m = with_motor(crank.build(0.6), "P", lambda t: first + t)
    shelf = m.body("shelf", position=(0, 0, 5))
    m.prismatic("shelf slide", m.ground.frame(x=X), shelf.frame(x=X))
    m.distance("tie", shelf.point(), m["crank"].point(), 5.0)
    m.limit("shelf stop", m["shelf slide"], lower=5.0)
    motion = m.move([0.0, 1.0])
    assert motion.status is MotionStatus.DEAD_POINT, motion.text()


LOCKING = FourBar(1.0, 1.8, 1.1, 2.0)
TURNING = FourBar(0.5, 1.6, 1.2, 1.8)


def walker(locks, speed=1.0):
    """Thirty parts, twelve motors: two legs with four linkages one after the other.  ``locks``: leg, linkage, or None.

    A crank turns from 0.5 rad on.  The one of the linkage that locks does so at the given speed.
    """
    m = cd.Mechanism("walker")
    torso, head = m.body("torso"), m.body("head", position=(0, 1, 0))
    m.fixed("base", m.ground.frame(), torso.frame())
    m.fixed("neck", torso.frame((0, 1, 0)), head.frame())
    for leg, side in (("left", 0.0), ("right", 5.0)):
        angle, origin = -1.2, np.array([side, 0.0])
        body = m.body(f"{leg} hip", position=(*origin, 0), orientation=about_z(angle))
        hip = m.revolute(f"{leg} H", torso.frame((side, 0, 0), x=X), body.frame(x=X))
        m.drive(f"{leg} hip motor", hip, lambda t: -1.2 + 0.05 * t)
        for k in range(4):
            is_locking = (leg, k) == locks
            bar, rate = (LOCKING, speed) if is_locking else (TURNING, 0.2)
            B, C, D = polar(bar.a, 0.5), bar.corner(0.5), np.array([bar.d, 0.0])
            R = rotation(Z, angle)[:2, :2]
            parts = []
            for name, at, turned in (
                ("crank", np.zeros(2), 0.5),
                ("rod", B, heading(C - B)),
                ("rocker", D, heading(C - D)),
            ):
                where = origin + R @ at
                part = m.body(f"{leg} {k} {name}", position=(*where, 0), orientation=about_z(angle + turned))
                parts.append(part)
            crank, rod, rocker = parts
            motor = m.revolute(f"{leg} {k} A", body.frame(x=X), crank.frame(x=X))
            m.revolute(f"{leg} {k} B", crank.frame((bar.a, 0, 0), x=X), rod.frame(x=X))
            m.revolute(f"{leg} {k} C", rod.frame((bar.b, 0, 0), x=X), rocker.frame((bar.c, 0, 0), x=X))
            m.revolute(f"{leg} {k} D", body.frame((bar.d, 0, 0), x=X), rocker.frame(x=X))
            m.drive(f"{leg} {k} motor", motor, lambda t, rate=rate: 0.5 + rate * t)
            body, origin, angle = rocker, origin + R @ D, angle + heading(C - D)
        foot = m.body(f"{leg} foot", position=(*origin, 0), orientation=about_z(angle))
        ankle = m.revolute(f"{leg} F", body.frame(x=X), foot.frame(x=X))
        m.drive(f"{leg} ankle motor", ankle, lambda t: 0.1 * t)
    return m


@sampled("locks", [("left", 0), ("left", 2), ("right", 1), ("right", 3)], 2)
@pytest.mark.parametrize("count", [2, 20])
def test_a_dead_point_of_thirty_parts_is_found_soon_and_named_by_what_locks(locks, count):
    leg, k = locks
    m = walker(locks)
    assert len(m.bodies) == 30
    motion = m.move(np.linspace(0.0, 3.0, count))
    dead = LOCKING.dead(0.5, 1)
    assert motion.status is MotionStatus.DEAD_POINT, motion.text()
    assert abs(motion.state.time - dead) <= DEAD * dead
    assert motion.steps <= 100
    expected = f"the driver '{leg} {k} motor' cannot move '{leg} {k} rod', '{leg} {k} rocker' any further"
    assert expected in motion.reason, motion.reason


def test_equal_dead_points_at_one_time_are_named_together():
    bar = LOCKING
    m = cd.Mechanism()
    for k in range(3):
        bar.build(0.5, into=m, tag=k)
        m.drive(f"motor{k}", m[f"A{k}"], steadily(0.5, 1 if k < 2 else 0.1))
    motion = m.move([0.0, 3.0])
    assert motion.status is MotionStatus.DEAD_POINT
    for k, is_named in ((0, True), (1, True), (2, False)):
        for name in (f"motor{k}", f"coupler{k}", f"rocker{k}"):
            assert (repr(name) in motion.reason) is is_named, motion.reason


@pytest.mark.parametrize("start", [0.0, 1.0, LOCKING.dead(0.5, 1) - 1e-4])
def test_drivers_that_depend_on_each_other_are_named(start):
    """The crank and the rocker of one linkage are both driven, in a general pose and near a dead point."""
    m = walker(("left", 2))
    first = m.move([0.0, start]).state if start else m.state
    at, rate = m["left 2 D"].coordinate(first), 0.01
    m.drive("second motor", m["left 2 D"], lambda t: at + rate * (t - start))
    motion = m.move([start, start + 1.0], first)
    assert motion.status is MotionStatus.LOST, motion.text()
    named = "drivers 'left 2 motor', 'second motor' depend on each other: the 13 drivers have the rank 12"
    assert named in motion.reason, motion.reason


def test_dependent_drivers_that_agree_reach_the_dead_point():
    m = with_motor(LOCKING.build(0.5), "A", steadily(0.5, 1))
    m.drive("copy", m["A"], steadily(0.5, 1))
    motion = m.move([0.0, 3.0])
    assert motion.status is MotionStatus.DEAD_POINT, motion.text()


SWINGS = {
    "sine over whole periods": lambda first: lambda t: first + 0.5 * cd.sin(TURN * t),
    "cosine from rest": lambda first: lambda t: first + 0.25 * (1 - cd.cos(TURN * t)),
    "rise and return with dwells": lambda first: (
        lambda t: first + 0.4 * cd.sin(cd.pi * t) ** 6  # at rest, without acceleration, at every whole second
    ),
}


@pytest.mark.parametrize("name", SWINGS)
def test_a_driver_that_moves_out_and_back_between_two_times_is_not_mistaken_for_a_constant(name):
    """The slider is driven beyond the reach of its crank and back between two times."""
    crank = SliderCrank(1.0, 2.0)
    first = crank.place(0.6)
    law = SWINGS[name](first)
    motion = with_motor(crank.build(0.6), "P", law).move(np.arange(0.0, 101.0))
    assert motion.status is MotionStatus.DEAD_POINT, motion.text()
    assert 0.0 < motion.state.time < 0.5
    assert abs(law(cd.Jet(motion.state.time)).value - 3.0) <= 1e-6


def test_a_driver_that_jumps_ends_the_motion_and_is_named():
    motion = hinge(lambda t: t if t < 0.55 else t + 0.3).move(np.linspace(0, 2, 11))
    assert motion.status is MotionStatus.LOST
    assert abs(motion.state.time - 0.55) <= DEAD
    for part in ("'motor'", "jumps", "0.55", "0.85"):
        assert part in motion.reason
    assert len(motion.states) == 3


def test_a_driver_may_have_kinks_and_dwells():
    m = hinge(lambda t: 0.0 if t < 0.5 else (t - 0.5 if t < 1.0 else 0.5 - (t - 1.0)))
    motion = m.move([0.0, 0.25, 0.75, 1.0, 1.5, 3.0])
    assert motion.ok, motion.text()
    assert np.abs(motion.coordinate(m["A"]) - [0, 0, 0.25, 0.5, 0.0, -1.5]).max() <= 1e-12


def test_a_mechanism_that_is_not_assembled_at_the_first_time_does_not_move():
    m = with_motor(SliderCrank(1, 2).build(0.6), "P", lambda t: 5.0 + t)
    motion = m.move([0.0, 1.0])
    assert motion.status is MotionStatus.NOT_ASSEMBLED and not motion.ok
    assert motion.states == () and motion.state is None and len(motion.times) == 0
    assert "t = 0 s" in motion.text() and "motor" in motion.text()


def test_a_motion_without_drivers_is_refused():
    with pytest.raises(cd.ModelError, match=r"no drivers to move it; add one with m\.drive"):
        hinge().move([0.0, 1.0])


BAD_MOVES = {
    "no times": ({"times": []}, ["times is empty"]),
    "a number": ({"times": 3.0}, ["times is 3.0", "list of times"]),
    "words": ({"times": ["soon"]}, ["'soon'", "number"]),
    "NaN": ({"times": [0, float("nan")]}, ["nan", "finite"]),
    "to and fro": ({"times": [0, 1, 0.5]}, ["increase", "decrease"]),
    "twice the same": ({"times": [0, 1, 1]}, ["increase"]),
    "zero tolerance": ({"times": [0, 1], "tolerance": 0}, ["tolerance", "above zero"]),
    "tolerance of one": ({"times": [0, 1], "tolerance": 1.0}, ["tolerance", "1.0", "below 1"]),
    "no seconds": ({"times": [0, 1], "max_seconds": 0}, ["max_seconds", "above zero"]),
    "progress in words": ({"times": [0, 1], "progress": "yes"}, ["progress", "'yes'", "function"]),
    "a start that is a number": ({"times": [0, 1], "start": 5}, ["start", "5", "State"]),
}


@pytest.mark.parametrize("case", BAD_MOVES)
def test_an_invalid_call_of_move_is_reported(case):
    options, fragments = BAD_MOVES[case]
    with pytest.raises(cd.ModelError) as caught:
        hinge(lambda t: t).move(**options)
    assert not [f for f in fragments if f not in str(caught.value)], str(caught.value)


# --- interrupts, deadlines, progress-----------------------------------------------------------------------------------


def test_an_interrupt_keeps_the_states_reached():
    def law(t):
        if t.value > 1.23:
            raise KeyboardInterrupt
        return t

    motion = hinge(law).move(np.linspace(0, 2, 21))
    assert motion.status is MotionStatus.INTERRUPTED
    assert len(motion.states) == 13 and motion.states[-1].time == pytest.approx(1.2)
    assert motion.state == motion.states[-1]
    assert "interrupted" in motion.reason and "kept" in motion.reason


def test_an_interrupt_in_the_progress_function_keeps_the_states_reached():
    def progress(part):
        if part > 0.5:
            raise KeyboardInterrupt

    motion = hinge(lambda t: t).move(np.linspace(0, 2, 21), progress=progress)
    assert motion.status is MotionStatus.INTERRUPTED and len(motion.states) == 12


def test_the_time_limit_is_kept_and_reported():
    def law(t):
        time.sleep(0.002)
        return t

    m = hinge(law)
    m.move([0.0, 0.01])  # loads the kernels
    began = time.perf_counter()
    motion = m.move(np.linspace(0, 1000, 2001), max_seconds=0.2)
    elapsed = time.perf_counter() - began
    assert motion.status is MotionStatus.TIME_LIMIT and "ran out" in motion.reason
    assert 0.2 <= elapsed <= 1.0 * slowness()
    assert 1 <= len(motion.states) < 2001
    assert motion.states[-1].time == motion.times[-1]


def test_progress_increases_to_one():
    told = []
    hinge(lambda t: t).move(np.linspace(0, 1, 5), progress=told.append)
    assert told == [0.25, 0.5, 0.75, 1.0]


def test_an_error_in_a_driver_during_a_motion_names_the_driver():
    def law(t):
        if t.value > 0.5:
            raise ValueError("no cam beyond")
        return t

    motion = hinge(law).move([0.0, 0.3, 1.0])  # it has no value beyond, and what was computed is kept
    assert motion.status is MotionStatus.UNDEFINED and motion.times.tolist() == [0.0, 0.3]
    assert motion.state.time == pytest.approx(0.5, abs=1e-12)
    assert re.search(r"driver 'motor' at t = .* ValueError: no cam beyond", motion.reason)

    def wrong(t):
        return t if t.value < 0.5 else t.nothing

    with pytest.raises(cd.ModelError, match=r"driver 'motor' at t = .* AttributeError"):  # an error in the function
        hinge(wrong).move([0.0, 1.0])


# --- pieces, undriven motions, size -----------------------------------------------------------------------------------


def test_each_piece_follows_its_own_driver_and_an_undriven_piece_stays():
    crank = SliderCrank(1, 3)
    m = with_motor(crank.build(0.4), "A", lambda t: 0.4 + t)
    arm = m.body("arm", position=(0, 9, 0))
    m.revolute("hinge", m.ground.frame((0, 9, 0), x=X), arm.frame(x=X))
    m.drive("slow", m["hinge"], lambda t: 0.01 * t)
    m.body("loose", position=(1, 2, 3), orientation=(0.5, 0.5, 0.5, 0.5))
    idle = m.body("idle", position=(0, -9, 0))
    m.revolute("idle hinge", m.ground.frame((0, -9, 0), x=X), idle.frame(x=X))
    motion = m.move(np.linspace(0, 10, 6))
    assert motion.ok, motion.text()
    assert np.abs(motion.coordinate(m["P"]) - [crank.place(0.4 + t) for t in motion.times]).max() <= POSE
    assert np.abs(motion.coordinate(m["hinge"]) - 0.01 * motion.times).max() <= 1e-12
    for name in ("loose", "idle"):
        assert np.abs(motion.positions(name) - m[name].position).max() <= 1e-12
        assert np.abs(motion.quaternions(name) - m[name].orientation).max() <= 1e-12
        assert not motion.velocities(name).any()


def test_a_dead_point_of_one_piece_ends_the_motion_of_all():
    crank = SliderCrank(1.0, 2.0)
    first = crank.place(0.6)
    m = with_motor(crank.build(0.6), "P", lambda t: first + t)
    arm = m.body("arm")
    m.revolute("hinge", m.ground.frame((0, 9, 0), x=X), arm.frame(x=X))
    m.drive("slow", m["hinge"], lambda t: 0.01 * t)
    motion = m.move([0.0, 1.0])
    assert motion.status is MotionStatus.DEAD_POINT
    assert abs(motion.state.time - (3.0 - first)) <= DEAD
    assert abs(m["hinge"].coordinate(motion.state) - 0.01 * motion.state.time) <= 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 5])
def test_undriven_motions_do_not_disturb_the_driven_ones(seed):
    """The coupler rotates freely about its two ball joints."""
    free = rssr(seed)
    one, other = free.move(np.linspace(0, 4, 9)), free.move(np.linspace(0, 4, 81))
    assert one.ok and other.ok
    assert free.diagnose(one.state).undriven == 1
    for k, state in enumerate(one.states):
        for name in ("crank", "rocker", "coupler"):
            assert np.abs(state[name].matrix - other.states[10 * k][name].matrix).max() <= POSE
        length = free["C"].a.position[0]
        ends = state["coupler"].point((length, 0, 0)), state["rocker"].point((2, 0, 0))
        assert np.linalg.norm(ends[0] - ends[1]) <= 1e-11
        assert np.abs(state.velocities).max() < 10.0  # of least norm: the free rotation stays small


def engine(count):
    """Slider-cranks in a row, coupled by gears: three parts each, in one piece."""
    m = cd.Mechanism("engine")
    crank, lag = SliderCrank(1, 3), 0.05
    for k in range(count):
        theta, y = 0.4 + lag * k, 3.0 * k
        B, x = polar(1, theta), crank.place(theta)
        shaft = m.body(f"crank {k}", position=(0, y, 0), orientation=about_z(theta))
        rod = m.body(f"rod {k}", position=(B[0], B[1] + y, 0), orientation=about_z(heading((x - B[0], -B[1]))))
        piston = m.body(f"piston {k}", position=(x, y, 0))
        m.revolute(f"A {k}", m.ground.frame((0, y, 0), x=X), shaft.frame(x=X))
        m.revolute(f"B {k}", shaft.frame((1, 0, 0), x=X), rod.frame(x=X))
        m.revolute(f"C {k}", rod.frame((3, 0, 0), x=X), piston.frame(x=X))
        m.prismatic(f"P {k}", m.ground.frame((0, y, 0), z=X, x=Y), piston.frame(z=X, x=Y))
        if k:
            m.gear(f"gear {k}", m["A 0"], m[f"A {k}"], ratio=1.0, phase=lag * k)
    m.drive("motor", m["A 0"], lambda t: 0.4 + t)
    return m


def test_an_engine_of_two_hundred_parts_follows_its_closed_form():
    m = engine(67)
    assert len(m.bodies) == 201
    motion = m.move([0.0, 2.0, TURN, 2 * TURN])
    assert motion.ok, motion.text()
    crank = SliderCrank(1, 3)
    for state in motion.states:
        for k in (0, 1, 33, 66):
            theta = 0.4 + 0.05 * k + state.time
            assert abs(m[f"P {k}"].coordinate(state) - crank.place(theta)) <= POSE
            assert abs(m[f"A {k}"].coordinate(state) - theta) <= 1e-10
            speed = (crank.place(theta + 1e-5) - crank.place(theta - 1e-5)) / 2e-5
            assert abs(state.velocities[state.names.index(f"piston {k}"), 0] - speed) <= 1e-6
    assert {motion.state.turns[f"A {k}"] for k in range(67)} == {2, 3}  # 2 turns and 0.4 … 3.7 rad


# --- values -----------------------------------------------------------------------------------------------------------


def steady(t):
    return 0.7 + t


def test_a_motion_is_read_by_body_and_by_coordinate_and_copies_by_value():
    m = with_motor(FourBar(1, 2.5, 2, 3).build(0.7), "A", steady)
    motion = m.move(np.linspace(0, 1, 4))
    assert motion.times.tolist() == np.linspace(0, 1, 4).tolist()
    assert motion.positions("crank").shape == (4, 3) and motion.quaternions(m["crank"]).shape == (4, 4)
    assert motion.velocities("rocker").shape == motion.accelerations("rocker").shape == (4, 6)
    angle = motion.coordinate(m["A"])
    assert np.abs(angle - 0.7 - motion.times).max() <= 1e-12
    assert np.array_equal(angle, motion.coordinate(m["A"].of("angle")))
    assert pickle.loads(pickle.dumps(motion)) == motion == m.move(np.linspace(0, 1, 4))
    assert motion != m.move(np.linspace(0, 1, 5))
    assert "done" in repr(motion) and "4 times" in motion.text()
    with pytest.raises(cd.UnknownNameError, match=r"'crnk'.*did you mean 'crank'"):
        motion.positions("crnk")
    assert np.array_equal(motion.coordinate("A"), motion.coordinate(m["A"]))
    with pytest.raises(cd.ModelError, match=r"'crank' was given, which is a body; .*such as m\['A'\]"):
        motion.coordinate("crank")


def test_one_time_is_a_motion_of_one_state():
    motion = hinge(lambda t: 2 * t).move([3.0])
    assert motion.ok and len(motion.states) == 1 and motion.state.time == 3.0
    assert np.abs(motion.velocities("arm") - [[0, 0, 0, 0, 0, 2]]).max() <= 1e-12


def test_times_very_close_to_each_other_are_all_reached():
    times = [0.0, 1e-300, 1e-15, 1e-12, 1e-3, 1.0, 1.0 + 1e-15]
    motion = hinge(lambda t: t).move(times)
    assert motion.ok and motion.times.tolist() == times
