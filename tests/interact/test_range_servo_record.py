"""Ranges against closed forms, servo threads, records, and knife edges in a drag."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cardan as cd
from cardan.examples import REGISTRY
from cardan.math import euler

X, Y, Z = np.eye(3)


def turned(angle):
    return (np.cos(angle / 2), 0, 0, np.sin(angle / 2))


def four_bar(a, b, c, d) -> cd.Mechanism:
    """Crank a, coupler b, rocker c, frame d [m], the crank along x."""
    m = cd.Mechanism("four_bar")
    x = (d * d + b * b - c * c - a * a) / (2 * (d - a))
    y = np.sqrt(b * b - (x - a) ** 2)
    crank = m.body("crank")
    coupler = m.body("coupler", position=(a, 0, 0), orientation=turned(np.arctan2(y, x - a)))
    rocker = m.body("rocker", position=(d, 0, 0), orientation=turned(np.arctan2(y, x - d)))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((a, 0, 0)), coupler.frame())
    m.revolute("C", coupler.frame((b, 0, 0)), rocker.frame((c, 0, 0)))
    m.revolute("D", m.ground.frame((d, 0, 0)), rocker.frame())
    return m


def slider_crank(a, b) -> cd.Mechanism:
    m = cd.Mechanism("slider_crank")
    bend = np.arcsin(a * np.sin(0.7) / b)
    crank = m.body("crank", orientation=turned(0.7), mass=1.0, inertia=np.eye(3))
    rod = m.body("rod", position=(a * np.cos(0.7), a * np.sin(0.7), 0), orientation=turned(-bend))
    slider = m.body("slider", position=(a * np.cos(0.7) + b * np.cos(bend), 0, 0), mass=1.0)
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((a, 0, 0)), rod.frame())
    m.revolute("C", rod.frame((b, 0, 0)), slider.frame())
    m.prismatic("slide", m.ground.frame(z=X), slider.frame(z=X))
    return m


def cart() -> cd.Mechanism:
    """A body on the floor with a knife edge at its origin, along its x axis."""
    m = cd.Mechanism("cart")
    car = m.body("car")
    m.planar("floor", m.ground.frame(), car.frame())
    m.knife_edge("edge", car.frame(z=Y))
    return m


def worm_gear(ratio, lower=-np.inf, upper=np.inf) -> cd.Mechanism:
    """A wheel with the angle ratio·(angle of the worm), and a limit of it."""
    m = cd.Mechanism("worm_gear")
    worm, wheel = m.body("worm"), m.body("wheel", position=(1, 0, 0))
    m.revolute("worm axle", m.ground.frame(), worm.frame())
    m.revolute("axle", m.ground.frame((1, 0, 0)), wheel.frame())
    m.gear("mesh", m["worm axle"], m["axle"], ratio=ratio)
    if np.isfinite(lower):
        m.limit("stops", m["axle"], lower=lower, upper=upper)
    return m


@pytest.mark.parametrize("ratio, others", [(-3.0, 0), (1 / 40, 1)])
def test_a_limit_many_turns_away_ends_a_range(ratio, others):
    m = worm_gear(ratio, -2.0, 20.0)
    for k in range(others):
        m.body(f"free {k}", position=(0, 2, 0))
    found = m.session().range("worm axle")
    assert sorted(found[:2]) == pytest.approx(sorted((-2.0 / ratio, 20.0 / ratio)), rel=1e-12)
    assert found.reasons == ("limit stops", "limit stops")


def test_a_limit_of_its_own_ends_a_range_of_many_turns():
    found = worm_gear(2.0, -50.0, 60.0).session().range("axle")
    assert found[:2] == pytest.approx((-50.0, 60.0)) and found.reasons == ("limit stops", "limit stops")


@pytest.mark.parametrize("ratio", [3.0, np.sqrt(2)])
def test_gears_without_a_limit_turn_for_ever(ratio):
    found = worm_gear(ratio).session().range("worm axle")
    assert found[:2] == (-np.inf, np.inf) and found.reasons == ("no end", "no end")


@pytest.mark.slow
def test_the_ends_of_a_screw():
    m = cd.Mechanism()
    nut = m.body("nut")
    thread = m.screw("thread", m.ground.frame(), nut.frame(), pitch=0.01)
    assert m.session().range(thread.of("angle")).reasons == ("no end", "no end")
    m.limit("ends", thread.of("displacement"), lower=-0.1, upper=0.3)
    found = m.session().range(thread.of("angle"))
    assert found[:2] == pytest.approx((-20 * np.pi, 60 * np.pi), rel=1e-12)
    assert found.reasons == ("limit ends", "limit ends")


def test_a_dead_point_many_turns_away_ends_a_range():
    """A rocker that cannot turn round, by cos φ = (d² + a² − (b + c)²)/(2 a d), moved by a worm of 1 : 10."""
    m = four_bar(3.0, 1.5, 2.0, 4.0)
    worm = m.body("worm", position=(0, 0, 1))
    m.revolute("W", m.ground.frame((0, 0, 1)), worm.frame())
    m.gear("mesh", m["W"], m["A"], ratio=0.1)
    end = 10 * np.arccos((16 + 9 - 3.5**2) / 24)
    found = m.session().range("W")
    assert found[:2] == pytest.approx((-end, end), rel=1e-9) and found.reasons == ("dead point", "dead point")


def test_a_slide_reaches_a_limit_far_away():
    m = cd.Mechanism()
    slide = m.prismatic("slide", m.ground.frame(), m.body("part").frame())
    m.limit("end", slide, lower=-5.0, upper=2000.0)
    found = m.session().range("slide")
    assert found[:2] == pytest.approx((-5.0, 2000.0)) and found.reasons == ("limit end", "limit end")


@pytest.mark.slow
def test_a_limit_of_another_joint_does_not_end_the_range_of_an_arm():
    m = cd.Mechanism()
    last = m.ground
    for k in range(3):
        link = m.body(f"link {k}", position=(0.8 * k, 0.1 * k, 0))
        m.revolute(f"J{k}", last.frame((0.8 * (k > 0), 0, 0)), link.frame())
        last = link
    m.limit("elbow", m["J1"], lower=0.4, upper=25.0)
    session = m.session(m.assemble().state)
    assert session.range("J0").reasons == ("no end", "no end")
    assert session.range("J1")[:2] == pytest.approx((0.4, 25.0), rel=1e-12)


@pytest.mark.parametrize("lengths", [(1.0, 3.0, 2.5, 3.5), (0.7, 2.0, 2.2, 2.4)])
def test_the_range_of_a_rocker_is_the_closed_form(lengths):
    a, b, c, d = lengths
    found = four_bar(*lengths).session().range("D")
    ends = [np.pi - np.arccos((c * c + d * d - e * e) / (2 * c * d)) for e in (b - a, b + a)]
    assert found.lower == pytest.approx(min(ends), abs=1e-8)
    assert found.upper == pytest.approx(max(ends), abs=1e-8)
    assert found.reasons == ("dead point", "dead point") and found.unit == "rad"


def test_the_range_of_a_slider_is_the_closed_form():
    found = slider_crank(0.4, 1.3).session().range("slide")
    assert found.lower == pytest.approx(0.9, abs=1e-8)
    assert found.upper == pytest.approx(1.7, abs=1e-8)
    assert found.unit == "m"


def test_the_range_of_a_crank_has_no_end_and_a_limit_is_one():
    m = four_bar(1.0, 3.0, 2.5, 3.5)
    assert m.session().range("A").reasons == ("no end", "no end")
    m.limit("stop", m["A"], lower=-0.5, upper=0.8)
    found = m.session().range("A")
    assert found.lower == pytest.approx(-0.5, abs=1e-10) and found.upper == pytest.approx(0.8, abs=1e-10)
    assert found.reasons == ("limit stop", "limit stop")
    rocker = m.session().range("D")
    assert "limit stop" in rocker.reasons


def test_the_range_of_a_grasped_point():
    m = slider_crank(0.4, 1.3)
    with m.session() as ses:
        x, y, z = ses.range(ses.grasp("crank", (0.4, 0, 0)))
    for found in (x, y):
        assert (found.lower, found.upper) == pytest.approx((-0.4, 0.4), abs=1e-8)
    assert (z.lower, z.upper) == pytest.approx((0.0, 0.0), abs=1e-8)


@pytest.mark.parametrize("start", [0.4, 1.5])
def test_the_range_along_an_open_path_ends_with_it(start, capfd):
    m = cd.Mechanism("slide")
    body = m.body("body", position=(start, 0, 0))
    m.path("p", body.frame(), m.ground.attach(cd.geometry.line((-0.7, 1.5))))
    with m.session() as ses:
        x, y, z = ses.range(ses.grasp(body, (0, 0, 0)))
    assert (x.lower, x.upper) == pytest.approx((-0.7, 1.5), abs=1e-8)
    assert x.reasons == ("end of contact 'p'", "end of contact 'p'") and x.unit == "m"
    assert (y.lower, y.upper, z.lower, z.upper) == pytest.approx((0.0, 0.0, 0.0, 0.0), abs=1e-8)
    assert capfd.readouterr() == ("", "")  # LAPACK reports numbers that are not finite there


def test_the_range_along_a_path_ends_at_a_limit_before_its_end():
    m = cd.Mechanism("slide")
    body = m.body("body", position=(0.4, 0, 0))
    m.path("p", body.frame(), m.ground.attach(cd.geometry.line((-0.7, 1.5))))
    slide = m.prismatic("S", m.ground.frame(z=X), body.frame(z=X))
    m.limit("stop", slide, upper=1.49)
    found = m.session().range(slide)
    assert (found.lower, found.upper) == pytest.approx((-0.7, 1.49), abs=1e-8)
    assert found.reasons == ("end of contact 'p'", "limit stop")


def test_the_range_of_a_cam_ends_at_the_edge_of_a_flat(capfd):
    a, b, half = 0.06, 0.04, 0.01
    m = cd.Mechanism("cam")
    cam, follower = m.body("cam"), m.body("follower", position=(0, a, 0))
    m.revolute("A", m.ground.frame(), cam.frame())
    m.prismatic("S", m.ground.frame(z=Y), follower.frame(z=Y))
    m.contact("c", cam.attach(cd.geometry.ellipse(a, b)), follower.attach(cd.geometry.line((-half, half))))
    with m.session() as ses:
        turn, lift = ses.range("A"), ses.range("S")
    # at the angle φ the lift is h = √(a² sin² φ + b² cos² φ), and the contact is h′ beside the axis
    total = a * a + b * b - half * half  # as h′² h² = (a² − h²) (h² − b²)
    h = np.sqrt((total - np.sqrt(total**2 - (2 * a * b) ** 2)) / 2)
    angle = np.arcsin(np.sqrt((h * h - b * b) / (a * a - b * b)))
    assert (turn.lower, turn.upper) == pytest.approx((-angle, angle), abs=1e-8)
    assert (lift.lower, lift.upper) == pytest.approx((b, h), abs=1e-8)
    assert turn.reasons == ("end of contact 'c'", "end of contact 'c'") and turn.unit == "rad"
    assert lift.reasons == ("dead point", "end of contact 'c'")
    assert capfd.readouterr() == ("", "")


def test_range_refuses_what_it_does_not_know():
    with pytest.raises(cd.UnknownNameError):
        slider_crank(0.4, 1.3).session().range("Q")
    with pytest.raises(cd.ModelError, match="edge"):
        cart().session().range("floor")


def test_a_record_replays_bit_by_bit():
    m = REGISTRY["rsur"].build()
    ses = m.session()
    ses.grasp("coupler", (2, 0, 0)).target = (1, 1, 1)
    for _ in range(5):
        ses.step()
    record = ses.record()
    for k in range(40):
        ses.hands[0].target = ses.hands[0].target + np.array([0.01, 0.02 * np.sin(k), 0])
        if k == 10:
            ses.grasp("rocker", (1, 0, 0), pose=True).orientation = turned(0.3)
        if k == 20:
            ses.hands[1].release()
        ses.step()
    record.stop()
    assert record.cycles == 40
    again = record.replay(m)
    assert np.array_equal(again.coordinates, ses.coordinates)
    assert np.array_equal(again.hands[0].force, ses.hands[0].force)
    with pytest.raises(cd.ModelError, match=r"same one|not in both"):
        record.replay(slider_crank(0.4, 1.3))


@pytest.mark.parametrize("mode", ["kinematic", "dynamic"])
def test_a_servo_follows_targets_and_can_be_recorded(mode):
    m = slider_crank(0.4, 1.3)
    ses = m.session(mode=mode)
    hand = ses.grasp("crank", (0.4, 0, 0))
    record = ses.record()
    servo = ses.serve(200)
    with pytest.raises(cd.SessionError, match="thread"):
        ses.step()
    for angle in np.linspace(0.7, 1.2, 20):
        hand.target = (0.4 * np.cos(angle), 0.4 * np.sin(angle), 0)
        time.sleep(0.01)
    other = ses.grasp("slider")  # the servo waits meanwhile
    other.release()
    deadline = time.time() + 300  # only a standstill reaches it
    while np.linalg.norm(hand.point - hand.target) > 1e-6 and time.time() < deadline:
        time.sleep(0.02)
    stats = servo.stop()
    assert np.linalg.norm(hand.point - hand.target) <= 1e-6
    assert stats.cycles > 0 and stats.cycles == record.cycles
    assert stats.step[0] > 0.0 and 0.0 <= stats.in_time <= 1.0
    assert np.array_equal(record.replay(m).coordinates, ses.coordinates)
    assert ses.step() in list(cd.SessionStatus)
    ses.close()


def test_a_target_that_is_not_finite_in_the_shared_array_is_an_event():
    ses = slider_crank(0.4, 1.3).session()
    ses.grasp("crank", (0.4, 0, 0))
    record = ses._hand_record(0)
    record.asked[0], record.version = np.nan, record.version + 2
    before = ses.coordinates.copy()
    ses.step()
    np.testing.assert_allclose(ses.coordinates, before, atol=1e-13)
    assert ses.events[-1][1:] == ("bad target", "crank")


def heading(poses):
    return 2 * np.arctan2(poses[0, 6], poses[0, 3])


def test_a_knife_edge_pulled_sideways_turns_and_follows_without_slip():
    """The chord of each cycle is along the mean heading, which no slip means for an arc."""
    ses = cart().session()
    hand = ses.grasp("car", (1, 0, 0))
    before, worst = ses.coordinates.copy(), 0.0
    for k in range(3000):
        hand.target = (1, 1e-3 * (k + 1), 0)
        ses.step()
        moved, t = ses.coordinates[0, :2] - before[0, :2], 0.5 * (heading(ses.coordinates) + heading(before))
        worst = max(worst, abs(moved @ (-np.sin(t), np.cos(t))))
        before = ses.coordinates.copy()
    assert worst < 1e-9
    assert heading(ses.coordinates) > 1.4  # tractrix: it turns towards the pull
    assert np.linalg.norm(hand.point - hand.target) < 1e-5


def test_a_knife_edge_follows_a_tractrix():
    """A cart pulled at 1 m along a straight line: x = t − tanh t, y = sech t of the edge."""
    m = cd.Mechanism("tractrix")
    car = m.body("car", position=(0, 1, 0), orientation=turned(-np.pi / 2))
    m.planar("floor", m.ground.frame(), car.frame())
    m.knife_edge("edge", car.frame(z=Y))
    ses = m.session()
    hand = ses.grasp(car, (1, 0, 0))
    for k in range(2000):
        hand.target = (1e-3 * (k + 1), 0, 0)
        ses.step()
    ses.step()
    x, y = ses.coordinates[0, :2]
    assert (x, y) == pytest.approx((2.0 - np.tanh(2.0), 1.0 / np.cosh(2.0)), abs=2e-5)


def test_a_record_contains_a_return_to_the_start_and_outlives_its_session():
    m = cd.Mechanism("pendulum")
    bar = m.body("bar")
    m.revolute("A", m.ground.frame(), bar.frame())
    with m.session() as ses:
        rec = ses.record()
        g = ses.grasp(bar, (1, 0, 0))
        g.target = (0, 1, 0)
        for _ in range(5):
            ses.step()
        ses.restore()
        g.target = (0.1, -1, 0)
        for _ in range(2):
            ses.step()
        end = ses.state.coordinates
    assert np.array_equal(rec.replay(m).state.coordinates, end)


def test_a_blade_moves_ahead_after_it_was_pulled_sideways():
    m = cd.Mechanism("sledge")
    body = m.body("body")
    m.planar("plane", m.ground.frame(), body.frame())
    m.knife_edge("edge", body.frame((0.5, 0, 0), z=(0, 1, 0)))
    with m.session() as ses:
        g = ses.grasp(body, (0.5, 0, 0))
        g.target = (0.5, 1, 0)  # blocked
        for _ in range(100):
            ses.step()
        g.target = (1.5, 0, 0)
        for _ in range(300):
            status = ses.step()
        assert status == cd.SessionStatus.REACHED
        assert np.allclose(g.point, (1.5, 0, 0), atol=1e-6)


def bent_arm(elbow=59.0, shoulder=None) -> cd.Mechanism:
    """Two links of 1 m in a plane, folded to the left; the elbow bends by at most 60°."""
    m = cd.Mechanism("arm")
    first, second = np.radians(135.0), np.radians(135.0 + elbow)
    upper = m.body("upper", orientation=turned(first))
    fore = m.body("fore", position=(np.cos(first), np.sin(first), 0), orientation=turned(second))
    m.revolute("A", m.ground.frame(), upper.frame())
    m.revolute("B", upper.frame((1, 0, 0)), fore.frame())
    m.limit("elbow", m["B"], lower=-np.pi / 3, upper=np.pi / 3)
    if shoulder is not None:
        m.limit("shoulder", m["A"], lower=first - shoulder, upper=first + shoulder)
    return m


def test_a_range_leaves_a_limit_that_it_reached_on_its_way():
    """The elbow first bends to its limit, at which x ≤ √3; stretched again it reaches 2."""
    with bent_arm().session() as ses:
        x, y, _ = ses.range(ses.grasp("fore", (1, 0, 0)))
    for found in (x, y):
        assert (found.lower, found.upper) == pytest.approx((-2.0, 2.0), abs=1e-8)
        assert found.reasons == ("dead point", "dead point")


def test_a_range_stops_at_the_first_of_two_limits_in_one_step():
    """Both limits are within one step; x grows along both freedoms to the corner."""
    with bent_arm(59.9, shoulder=1e-3).session() as ses:
        x, y, _ = ses.range(ses.grasp("fore", (1, 0, 0)))
    low, high = np.radians(135.0) - 1e-3, np.radians(135.0) + 1e-3
    assert x.upper == pytest.approx(np.cos(low) + np.cos(low + np.pi / 3), abs=1e-8)
    assert x.lower == pytest.approx(np.cos(high) - 1.0, abs=1e-8)
    # y: down at one bound of the shoulder, up at the other one, which it leaves and reaches on the way
    assert y.lower == pytest.approx(np.sin(high) + np.sin(high + np.pi / 3), abs=1e-8)
    assert y.upper == pytest.approx(np.sin(low) + 1.0, abs=1e-8)
    assert all(reason.startswith("limit ") for reason in (*x.reasons, *y.reasons))


def test_a_long_part_of_a_drag_follows_rate_rows_to_fourth_order():
    """The part d of a step, projected to the heading all along its way: ẋ = t (t·d), θ̇ = d₅, t = (cos θ, sin θ)."""
    ses = cart().session()
    ses._control.most_substeps = 1.0
    hand = ses.grasp("car", (1, 0, 0))
    hand.target = (1, 2, 0)
    longest = 0.0
    for _ in range(30):
        before = ses.coordinates.copy()
        ses.step()
        d = ses._table.along
        longest = max(longest, abs(d[5]))

        def rates(_, y, d=d):
            t = np.array([np.cos(y[2]), np.sin(y[2])])
            return [*(t * (t @ d[:2])), d[5]]

        start = [*before[0, :2], heading(before)]
        end = solve_ivp(rates, (0.0, 1.0), start, rtol=1e-12, atol=1e-15).y[:, -1]
        assert [*ses.coordinates[0, :2], heading(ses.coordinates)] == pytest.approx(end, abs=2e-11)
    assert longest > 0.019


def test_a_hand_rolls_a_ball_by_a_metre_within_some_cycles():
    m = cd.Mechanism("ball")
    ball = m.body("ball", position=(0, 0, 0.2))
    m.contact("on", m.ground.attach(cd.geometry.plane()), ball.attach(cd.geometry.sphere(0.2)), mode="roll")
    ses = m.session()
    hand = ses.grasp(ball)
    hand.target = (1.0, 0.3, 0.2)
    cycles = 0
    while np.linalg.norm(hand.point - hand.target) > 1e-6:
        ses.step()
        cycles += 1
        assert cycles <= 40
    path = np.hypot(1.0, 0.3)
    up = [*np.sin(path / 0.2) * np.array([1.0, 0.3]) / path, np.cos(path / 0.2)]  # where the top of the ball is
    assert euler.matrix(ses.coordinates[0, 3:]) @ Z == pytest.approx(up, abs=1e-5)
