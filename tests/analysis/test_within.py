"""Laws of the interior of motion steps: no bound is exceeded there, and no turn is miscounted."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.analysis.motion import MotionStatus
from layers import sampled
from linkages import FourBar, SliderCrank, X, heading, polar

TURN = 2 * np.pi
CONTACT = 1e-8  # [s] error of the time of contact, in motions of some seconds at some radians per second


def hinge(law):
    m = cd.Mechanism("hinge")
    arm = m.body("arm")
    m.revolute("A", m.ground.frame(x=X), arm.frame(x=X))
    m.drive("motor", m["A"], law)
    return m


def ends_at(m, times, contact, name):
    """Check that the motion ends when a limit is reached, and names it."""
    motion = m.move(times)
    assert motion.status is MotionStatus.LIMIT, motion.text()
    assert abs(motion.state.time - contact) <= CONTACT, (motion.state.time, contact)
    assert repr(name) in motion.reason and "contact" in motion.reason
    return motion


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [[0, 3], [0, 1.5, 1.7, 3], np.linspace(0, 3, 31)], ids=["two", "around it", "many"])
@pytest.mark.parametrize("size", [0.5, 0.1, 1e-2, 1e-3, 1e-5])
def test_an_obstacle_of_any_size_is_not_run_through(size, times):
    m = hinge(lambda t: t)
    gap = cd.coordinate(m.ground.point((0, 1, 0)), m["arm"].point((1, 0, 0)), "distance")
    m.limit("obstacle", gap, lower=size)
    ends_at(m, times, np.pi / 2 - 2 * np.arcsin(size / 2), "obstacle")


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("short", [1e-3, 1e-5, 1e-7])
def test_a_stop_just_before_the_top_dead_centre_is_reached(short, direction):
    crank = SliderCrank(0.1, 0.3)
    reach = crank.r + crank.l - short
    m = crank.build(-direction * 1.0)
    m.drive("motor", m["A"], lambda t: direction * (t - 1.0))
    m.limit("stop", m["P"], upper=reach)
    ahead = np.arccos((reach**2 + crank.r**2 - crank.l**2) / (2 * reach * crank.r))
    ends_at(m, [0, 3], 1.0 - ahead, "stop")


@pytest.mark.parametrize("beyond", [0.0, 1e-12, 1e-9, 1e-6, 1e-3])
def test_a_stop_at_the_top_dead_centre_or_beyond_lets_the_crank_turn(beyond):
    crank = SliderCrank(0.1, 0.3)
    m = crank.build(-1.0)
    m.drive("motor", m["A"], lambda t: t - 1.0)
    m.limit("stop", m["P"], upper=crank.r + crank.l + beyond)
    motion = m.move([0, 30])
    assert motion.ok, motion.text()
    assert motion.steps <= 100  # 63 without a stop


@pytest.mark.slow
@sampled("place", [1.0, 1.23, 1.51], 2)
@sampled("width", [0.3, 0.1, 0.03, 0.01, 0.001])
def test_the_hump_of_a_cam_between_two_steps_is_seen(width, place):
    m = hinge(lambda t: t)
    lever = m.body("lever", position=(3, 0, 0))
    m.revolute("B", m.ground.frame((3, 0, 0), x=X), lever.frame(x=X))
    m.couple("cam", m["A"], m["B"], lambda u: 0.1 * cd.exp(-(((u - place) / width) ** 2)))
    m.limit("stop", m["B"], upper=0.05)
    ends_at(m, [0, 3], place - width * np.sqrt(np.log(2)), "stop")


@pytest.mark.parametrize("width", [0.1, 0.03, 0.01])
def test_the_pulse_of_a_driver_between_two_times_is_seen(width):
    m = hinge(lambda t: cd.exp(-(((t - 1) / width) ** 2)))
    m.limit("stop", m["A"], upper=0.5)
    ends_at(m, [0, 2], 1 - width * np.sqrt(np.log(2)), "stop")


def test_axes_that_come_too_near_to_each_other_end_the_motion():
    tilt, off, lower = 1.0, 0.05, 0.1
    m = hinge(lambda t: t - 1.0)
    fixed = m.ground.frame(z=(np.sin(tilt), 0, np.cos(tilt)))
    turned = m["arm"].frame(z=(np.sin(tilt + off), 0, np.cos(tilt + off)))
    m.limit("cone", cd.coordinate(fixed, turned, "inclination"), lower=lower)
    # cos of the inclination with the arm at φ: cos τ cos(τ+ε) + sin τ sin(τ+ε) cos φ
    cosine = (np.cos(lower) - np.cos(tilt) * np.cos(tilt + off)) / (np.sin(tilt) * np.sin(tilt + off))
    ends_at(m, [0, 3], 1.0 - np.arccos(cosine), "cone")


def random_obstacle(rng):
    """A four-bar with a rotating crank, and an obstacle near the path of a coupler point: lengths and points."""
    a, d = 1.0, rng.uniform(2.5, 4.0)
    b, c = rng.uniform(0.7, 1.2, 2) * (a + d) / 2 + a
    return FourBar(a, b, c, d), rng.uniform((0.5 * b - 1, -1), (0.5 * b + 1, 1)), rng.uniform(-3, 3, 2)


@pytest.mark.long
def test_obstacles_of_random_four_bars_are_reached_when_the_closed_form_says():
    rng = np.random.default_rng(20)
    times = np.linspace(0, TURN, 4001)
    counts = {MotionStatus.LIMIT: 0, MotionStatus.DONE: 0}
    while sum(counts.values()) < 60:
        bar, point, place = random_obstacle(rng)
        if bar.corner(0.0) is None or np.isfinite(bar.dead(0.0, 1)):
            continue

        def gap(t, bar=bar, point=point, place=place):
            B, C = polar(bar.a, t), bar.corner(t)
            e = (C - B) / bar.b
            return float(np.linalg.norm(B + e * point[0] + np.array([-e[1], e[0]]) * point[1] - place))

        gaps = np.array([gap(t) for t in times])
        least = gaps.min()
        bound = least + rng.choice([-1e-3, 1e-5, 1e-3, 0.1])  # just out of reach, or within reach
        if not 0 < bound < gaps[0] - 1e-3:
            continue
        m = bar.build(0.0)
        m.drive("motor", m["A"], lambda t: t)
        near = cd.coordinate(m.ground.point((*place, 0)), m["coupler"].point((*point, 0)), "distance")
        m.limit("obstacle", near, lower=bound)
        motion = m.move([0, TURN])
        inside = np.flatnonzero(gaps < bound)
        counts[motion.status] += 1
        if not inside.size:
            assert motion.ok, motion.text()
            continue
        assert motion.status is MotionStatus.LIMIT, motion.text()
        low, high = times[inside[0] - 1], times[inside[0]]
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if gap(middle) < bound else (middle, high)
        assert abs(motion.state.time - low) <= 1e-6
    assert min(counts.values()) >= 10


def test_a_limit_is_kept_where_branches_cross():
    """The flat pose of a parallelogram is bridged, and the bound is reached on the bridge."""
    for short in (1e-2, 1e-4, 1e-6):
        m = FourBar(1, 2, 1, 2).build(-1.0, polar(1, -1.0) + 2 * X[:2])
        m.drive("motor", m["A"], lambda t: t - 1.0)
        m.limit("wall", cd.coordinate(m.ground.frame(), m["coupler"].point(), "x"), upper=1.0 - short)
        ends_at(m, [0, 2], 1.0 - np.arccos(1.0 - short), "wall")


@pytest.mark.parametrize("ratio", [1.0, 0.1, 0.01])
def test_a_motion_ends_at_contact_even_if_the_limit_would_only_push_a_free_body(ratio):
    m = hinge(lambda t: ratio * t)
    flap = m.body("flap")
    m.revolute("B", m.ground.frame(x=X), flap.frame(x=X))
    fan = m.body("fan", position=(5, 0, 0))
    m.drive("other", m.revolute("C", m.ground.frame((5, 0, 0), x=X), fan.frame(x=X)), lambda t: t)
    m.limit("stop", cd.coordinate(m["arm"].frame(x=X), flap.frame(x=X)), lower=-0.5 * ratio)
    motion = ends_at(m, [0, 3], 0.5, "stop")
    assert abs(m["B"].coordinate(motion.state)) <= 1e-12


@pytest.mark.parametrize("times", [[0, 1], [0, 0.3, 1], np.linspace(0, 1, 11)])
def test_a_bound_may_be_reached_at_the_last_time(times):
    m = hinge(lambda t: 1.5 * t)
    m.limit("stop", m["A"], upper=1.5)
    assert m.move(times).ok


def test_a_coordinate_that_stays_at_a_limit_takes_no_more_steps():
    m = hinge(lambda t: t)
    free = m.move([0, 30]).steps
    rest = m.body("rest", position=(0, 0, 0.5))
    m.prismatic("P", m.ground.frame(x=X), rest.frame(x=X))
    m.limit("floor", m["P"], lower=0.5)
    assert m.move([0, 30]).steps == free


# --- whole turns ------------------------------------------------------------------------------------------------------


def tilted(miss, law, count=True):
    """A hinge, and the angle of an axis of its arm about another axis, passed at the angle miss in each turn."""
    lean = 0.5
    m = hinge(law)
    about = m.ground.frame(z=(0, np.sin(lean - miss), np.cos(lean - miss)), x=(1, 0, 0))
    angle = cd.coordinate(about, m["arm"].frame(z=(0, 1, 0), x=(np.sin(lean), 0, np.cos(lean))))
    if count:
        m.limit("count", angle, lower=-1e6)
    return m, angle


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("miss", [0.3, 0.1, 0.01, 0.001, 1e-5, -0.1, -0.01, -1e-5])
def test_an_axis_is_counted_round_another_however_close_it_passes(miss, direction):
    """The angle counts a turn if the other axis is inside the cone of the first, and none if it is outside."""
    m, angle = tilted(miss, lambda t: direction * TURN * t)
    motion = m.move([0, 1, 2, 3])
    assert motion.ok, motion.text()
    wanted = direction * np.arange(4) if miss > 0 else np.zeros(4)
    values = motion.coordinate(angle)
    assert np.abs((values - values[0]) / TURN - wanted).max() <= 1e-9
    assert motion.steps <= 200


def test_an_angle_that_becomes_undefined_ends_the_motion_and_is_named():
    m, angle = tilted(0.0, lambda t: TURN * t)
    motion = m.move([0, 1, 2, 3])
    assert motion.status is MotionStatus.LOST
    assert abs(motion.state.time - 0.25) <= 1e-8
    assert repr(angle.counted.key) in motion.reason and "undefined" in motion.reason


# --- angles that the mechanism does not count -------------------------------------------------------------------------


def test_an_uncounted_angle_is_read_with_its_turns_if_times_are_dense():
    m = hinge(lambda t: 2 * t)
    angle = cd.coordinate(m.ground.frame(x=X), m["arm"].frame(x=X))
    motion = m.move(np.linspace(0, 20, 41))
    assert np.abs(motion.coordinate(angle) - 2 * motion.times).max() <= 1e-9


def test_an_uncounted_angle_is_refused_if_its_turns_are_ambiguous():
    m = hinge(lambda t: 2 * t)
    angle = cd.coordinate(m.ground.frame(x=X), m["arm"].frame(x=X))
    with pytest.raises(cd.ModelError, match=r"between t = 0 s and 5 s; pass more times .* m\.limit"):
        m.move([0, 5, 10, 15, 20]).coordinate(angle)
    m.limit("count", angle, lower=-1e9)
    motion = m.move([0, 5, 10, 15, 20])
    assert np.abs(motion.coordinate(angle) - 2 * motion.times).max() <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("cases", [3, pytest.param(5, marks=pytest.mark.long)])
def test_an_uncounted_angle_has_the_same_values_as_a_counted_one(cases):
    rng = np.random.default_rng(21)
    read = 0
    for count in (20, 60, 400):
        for miss in rng.uniform(-0.4, 0.4, cases):
            (m, angle), (n, counted) = (tilted(miss, lambda t: TURN * t, count=count) for count in (False, True))
            times = np.linspace(0, 3, count)
            wanted = n.move(times).coordinate(counted)
            try:
                found = m.move(times).coordinate(angle)
            except cd.ModelError:
                continue
            read += 1
            assert np.abs((found - found[0]) - (wanted - wanted[0])).max() <= 1e-9
    assert read >= 1.6 * cases


def test_an_uncounted_joint_angle_is_read_with_its_turns_too():
    """Only a slide is driven, so no constraint depends on an angle."""
    crank = SliderCrank(1.0, 3.0)
    m = crank.build(1.0)
    m.drive("hand", m["P"], lambda t: crank.place(1.0) - t)
    motion = m.move(np.linspace(0, 1, 11))
    assert motion.ok and not motion.state.angles
    tip = motion.positions("rod")[:, :2]
    assert np.abs(motion.coordinate(m["A"]) - [heading(p) for p in tip]).max() <= 1e-9


# --- reasons why a motion ended ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [2.0, -1.0, 0.0])
def test_drivers_that_contradict_each_other_are_named(rate):
    """With opposite rates the least-squares step is zero."""
    m = hinge(lambda t: t)
    m.drive("other", m["A"], lambda t: rate * t)
    motion = m.move([0, 1])
    assert motion.status is MotionStatus.LOST
    for part in ("'motor'", "'other'", f"{abs(1 - rate) / 2:.4g} rad/s"):
        assert part in motion.reason, motion.reason


@pytest.mark.parametrize(("rate", "end", "what"), [(1.0, np.pi - 0.5, "3.14"), (-1.0, 0.5, "-")])
def test_a_driver_that_leaves_the_range_of_an_inclination_is_named(rate, end, what):
    m = cd.Mechanism()
    arm = m.body("arm", orientation=(np.cos(0.25), np.sin(0.25), 0, 0))
    m.spherical("S", m.ground.point(), arm.point())
    m.drive("tilt", cd.coordinate(m.ground.frame(), arm.frame(), "inclination"), lambda t: 0.5 + rate * t)
    motion = m.move([0, 5])
    assert motion.status is MotionStatus.LOST and abs(motion.state.time - end) <= 1e-6
    for part in ("driver 'tilt'", f"inclination of {what}", "[0, π]"):
        assert part in motion.reason, motion.reason


def test_a_driver_with_a_negative_distance_is_named():
    m = cd.Mechanism()
    block = m.body("block", position=(1, 0, 0))
    m.prismatic("P", m.ground.frame(z=X), block.frame(z=X))
    m.drive("rope", cd.coordinate(m.ground.point(), block.point(), "distance"), lambda t: 1 - t)
    motion = m.move([0, 5])
    assert motion.status is MotionStatus.LOST and abs(motion.state.time - 1.0) <= 1e-6
    for part in ("driver 'rope'", "distance of -", "must not be negative"):
        assert part in motion.reason, motion.reason


@pytest.mark.parametrize(
    ("times", "parts"),
    [
        ([0, 1, 0.5], ["times[1] = 1.0", "0.5 s"]),
        ([0, 1, 1], ["times[1] = 1.0", "by 1.0 s"]),
        ([3, 3], ["times[0] = 3.0", "by 3.0 s"]),
        ([3, 2, 1, 1.5], ["times[2] = 1.0", "by 1.5 s"]),
    ],
)
def test_times_out_of_order_are_named(times, parts):
    with pytest.raises(cd.ModelError) as caught:
        hinge(lambda t: t).move(times)
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_an_interrupted_motion_ends_at_the_last_time_reached():
    def law(t):
        if t.value > 0.55:
            raise KeyboardInterrupt
        return t

    motion = hinge(law).move([0.0, 0.1, 0.5, 1.0])
    assert motion.status is MotionStatus.INTERRUPTED and motion.state is motion.states[-1]
    motion = hinge(lambda t: 1e5 * t).move([0.0, 0.1, 0.2, 10.0], max_seconds=0.05)
    assert motion.status is MotionStatus.TIME_LIMIT and motion.state is motion.states[-1]
