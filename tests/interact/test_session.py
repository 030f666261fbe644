"""The operator in the loop: what a drag keeps, what a hand feels, and what is refused."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import cardan as cd
from cardan.examples import REGISTRY
from fuzz import branches, drags
from papers import hand as hand_study

X, Y, Z = np.eye(3)


def four_bar(lengths=(1.0, 3.0, 2.5, 3.5)) -> cd.Mechanism:
    """A planar crank–rocker of spatial revolutes; crank, coupler, rocker, frame [m]."""
    a, b, c, d = lengths
    m = cd.Mechanism("four_bar")
    crank = m.body("crank")
    # coupler and rocker meet at C
    x = (d * d + b * b - c * c - a * a) / (2 * (d - a)) if a != d else 0.0
    y = np.sqrt(max(b * b - (x - a) ** 2, 0.0))
    coupler = m.body("coupler", position=(a, 0, 0), orientation=turned(np.arctan2(y, x - a)))
    rocker = m.body("rocker", position=(d, 0, 0), orientation=turned(np.arctan2(y, x - d)))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((a, 0, 0)), coupler.frame())
    m.revolute("C", coupler.frame((b, 0, 0)), rocker.frame((c, 0, 0)))
    m.revolute("D", m.ground.frame((d, 0, 0)), rocker.frame())
    return m


def turned(angle):
    return (np.cos(angle / 2), 0, 0, np.sin(angle / 2))


def settle(session, cycles=200):
    for _ in range(cycles):
        status = session.step()
    return cd.SessionStatus(status)


def is_met(m, session, bar=1e-12):
    return m.diagnose(session.state, tolerance=bar).assembled


def test_a_reachable_target_is_reached_and_no_force_is_felt():
    m = REGISTRY["stewart_ups"].build()
    with m.session() as ses:
        hand = ses.grasp("platform" if "platform" in m.bodies else list(m.bodies)[-1])
        hand.target = hand.point + np.array([0.01, 0.02, 0.01])
        assert settle(ses, 10) is cd.SessionStatus.REACHED
        np.testing.assert_allclose(hand.point, hand.target, atol=1e-10)
        assert np.abs(hand.force).max() < 1e-9
        assert is_met(m, ses)


@pytest.mark.parametrize("distance", [1.5, 2.0, 2.1, 5.0])
def test_a_hand_does_not_go_to_and_fro_at_an_unreachable_target(distance):
    """The curvature of the distance is that of the circle times distance/radius: plain steps overshoot beyond 2."""
    m = cd.Mechanism("pendulum")
    bar = m.body("bar")
    m.revolute("A", m.ground.frame(), bar.frame())
    with m.session() as ses:
        g = ses.grasp(bar, (1, 0, 0))
        g.target = (0, distance, 0)
        for _ in range(12):
            status = ses.step()
        assert status == cd.SessionStatus.SATURATED
        assert np.allclose(g.point, (0, 1, 0), atol=1e-6)


def test_an_unreachable_target_saturates_where_the_distance_is_least():
    m = cd.Mechanism("pendulum")
    bar = m.body("bar")
    m.revolute("A", m.ground.frame(), bar.frame())
    with m.session() as ses:
        hand = ses.grasp(bar, (2.0, 0, 0), stiffness=100.0)
        forces = []
        for distance in (2.5, 4.0, 20.0, 200.0):
            direction = np.array([np.cos(0.9), np.sin(0.9), 0])
            hand.target = distance * direction
            assert settle(ses) is cd.SessionStatus.SATURATED
            # the distance is least up to rounding, so the angle is accurate to its square root
            np.testing.assert_allclose(hand.point, 2.0 * direction, atol=2e-6)
            wanted = 100.0 * (2.0 - distance) * direction
            np.testing.assert_allclose(hand.force, wanted, atol=1e-6 * np.linalg.norm(wanted))
            forces.append(np.linalg.norm(hand.force))
        assert np.all(np.diff(forces) > 0)
        assert is_met(m, ses)


def pendulum() -> cd.Mechanism:
    m = cd.Mechanism("pendulum")
    m.revolute("A", m.ground.frame(), m.body("bar").frame())
    return m


def arm(links) -> cd.Mechanism:
    """Links of 1 m on parallel hinges, stretched along x."""
    m = cd.Mechanism("arm")
    last = m.ground.frame()
    for k in range(links):
        link = m.body(f"link_{k}", position=(k, 0, 0))
        m.revolute(f"R_{k}", last, link.frame())
        last = link.frame((1, 0, 0))
    return m


@pytest.mark.parametrize("links", [1, 2, 4])
def test_a_hand_pulled_to_the_opposite_side_leaves_the_farthest_pose(links):
    """There the distance has a maximum: the gradient is zero, but not its curvature."""
    with arm(links).session() as ses:
        hand = ses.grasp(f"link_{links - 1}", (1, 0, 0))
        hand.target = (-3.0 * links, 0, 0)
        settle(ses, 100)
        np.testing.assert_allclose(hand.point, (-links, 0, 0), atol=0.05)


def test_a_hand_leaves_a_saddle_of_the_distance():
    """The second link is folded back, so that turning it increases the distance, and turning the first reduces it."""
    m = arm(2)
    start = {"link_0": ((0, 0, 0), turned(0)), "link_1": ((1, 0, 0), turned(np.pi))}
    with m.session(start) as ses:
        hand = ses.grasp("link_1", (0.5, 0, 0))  # at x = 0.5
        hand.target = (-4.0, 0, 0)
        distances = [np.linalg.norm(hand.point - hand.target)]
        for _ in range(50):
            ses.step()
            distances.append(np.linalg.norm(hand.point - hand.target))
        assert np.all(np.diff(distances) <= 0)
        np.testing.assert_allclose(distances[-1], 2.5, atol=1e-9)  # stretched towards the target


def test_a_true_minimum_is_not_left():
    with pendulum().session() as ses:
        hand = ses.grasp("bar", (1, 0, 0))
        hand.target = (5, 0, 0)
        assert settle(ses, 5) is cd.SessionStatus.SATURATED
        assert np.array_equal(ses.coordinates[0], [0, 0, 0, 1, 0, 0, 0])


@pytest.mark.parametrize("name, body, point", [("pendulum", "bar", (1, 0, 0)), ("rsur", "coupler", (2, 0, 0))])
def test_targets_at_any_distance_saturate_at_the_same_pose(name, body, point):
    """The pose depends on the direction; the force is stiffness times distance."""
    direction = np.array([np.cos(2.0), np.sin(2.0), 0.0])
    poses = []
    for distance in (1e6, 1e9, 1e15, 1e50):
        with (pendulum() if name == "pendulum" else REGISTRY[name].build()).session() as ses:
            hand = ses.grasp(body, point)
            hand.target = distance * direction
            assert settle(ses, 60) is cd.SessionStatus.SATURATED
            poses.append(ses.coordinates.copy())
            np.testing.assert_allclose(hand.force, -distance * direction, rtol=1e-5, atol=1e-5 * distance)
    for pose in poses[1:]:
        np.testing.assert_allclose(pose, poses[0], atol=1e-5)


def test_a_target_too_far_to_compute_with_is_refused():
    with pendulum().session() as ses:
        hand = ses.grasp("bar", (1, 0, 0))
        with pytest.raises(cd.ModelError, match="bar"):
            hand.target = (1e300, 0, 0)
        assert ses.step() == cd.SessionStatus.REACHED


@pytest.mark.parametrize("mode", ["kinematic", "dynamic"])
@pytest.mark.parametrize("bad", [1e300, np.nan, np.inf])
def test_a_bad_target_in_the_shared_array_is_never_called_reached(mode, bad):
    """A device writes there without checks."""
    m = four_bar()
    for body in m.bodies.values():
        body.mass, body.inertia = 1.0, np.eye(3)
    with m.session(mode=mode) as ses:
        hand = ses.grasp("crank", (1, 0, 0))
        before = ses.coordinates.copy()
        hand._record.asked[0] = bad
        hand._record.version += 2.0
        status = ses.step()
        assert status != cd.SessionStatus.REACHED
        assert [event[1:] for event in ses.events] == [("bad target", "crank")]
        np.testing.assert_allclose(ses.coordinates, before, atol=1e-4)
        hand.target = (np.cos(0.01), np.sin(0.01), 0)
        for _ in range(10):
            status = ses.step()
        assert status == (cd.SessionStatus.REACHED if mode == "kinematic" else cd.SessionStatus.MOVING)
        np.testing.assert_allclose(hand.point, hand.target, atol=1e-9)


@pytest.mark.parametrize("depth", [0.1, 0.5, 1.0, 1.5])
def test_a_push_ends_at_the_plane_of_its_target(depth):
    """The face turns with the bar, so that a linear step goes too far."""
    with pendulum().session() as ses:
        hand = ses.push("bar", (1, 0, 0), direction=Y)
        hand.target = (1, depth, 0)
        for _ in range(30):
            status = ses.step()
            normal = ses.state["bar"].matrix @ Y
            assert normal @ (hand.point - hand.target) < 1e-9
        assert status == cd.SessionStatus.REACHED
        assert normal @ (hand.point - hand.target) > -1e-8


def test_a_hand_that_pulls_takes_a_body_away_from_a_push():
    m = cd.Mechanism("slider")
    block = m.body("block")
    m.prismatic("P", m.ground.frame(z=X), block.frame(z=X))
    with m.session() as ses:
        push = ses.push(block, (-0.5, 0, 0), direction=X)
        push.target = (0.2, 0, 0)
        ses.grasp(block).target = (3.0, 0, 0)
        assert settle(ses, 10) is cd.SessionStatus.REACHED
        assert ses.coordinates[0, 0] == pytest.approx(3.0, abs=1e-9)
        assert not push.force.any()


def test_a_push_beside_a_limit_and_another_hand_is_in_balance():
    """Stiffness 2 against 1 on one slide: the block is where the forces are equal."""
    m = cd.Mechanism("slider")
    block = m.body("block")
    m.prismatic("P", m.ground.frame(z=X), block.frame(z=X))
    m.limit("end", m["P"], lower=-0.3, upper=5.0)
    with m.session() as ses:
        push = ses.push(block, direction=X, stiffness=2.0)
        pull = ses.grasp(block, stiffness=1.0)
        push.target, pull.target = (0.6, 0, 0), (-0.6, 0, 0)
        settle(ses, 30)
        assert ses.coordinates[0, 0] == pytest.approx(0.2, abs=1e-5)
        np.testing.assert_allclose(push.force + pull.force, 0, atol=1e-5)
        push.release()
        settle(ses, 30)
        assert ses.coordinates[0, 0] == pytest.approx(-0.3, abs=1e-9)


@pytest.mark.parametrize("kind", ["parallelogram", "equal_slider_crank"])
def test_every_passage_through_a_singular_pose_is_reported(kind):
    """Also if the drag turns into the other mode of motion there; fuzz.branches tells the branch in closed form."""
    passages = 0
    for seed in range(6):
        loop = branches.LOOPS[kind](np.random.default_rng(seed))
        with loop.mechanism.session() as ses:
            judge = drags.Judge(ses, loop)
            hand = ses.grasp("crank", (1, 0, 0))
            first = np.arctan2(hand.point[1], hand.point[0])
            for angle in first + np.linspace(0, 7.0, 120):
                hand.target = (np.cos(angle), np.sin(angle), 0)
                ses.step()
                judge.look()
            assert judge.counts["unreported"] == judge.counts["false reports"] == 0
            passages += judge.counts["passages"]
    assert passages >= 8


def test_a_passage_is_reported_if_another_singular_value_falls_below_the_one_that_was_followed():
    """Parallelogram, crank 1.55 m, frame 0.97 m: that of the flat pose is the least only within 0.4 rad of it.

    A hand passes it at once, from both sides of that angle.
    """
    loop = branches.parallelogram(np.random.default_rng(27))
    d = loop.mechanism.joints["D"].ends[0].origin[0]
    a = loop.mechanism.joints["B"].ends[0].origin[0]
    passages = 0
    for angle in np.linspace(2.55, 2.95, 21):
        tip = (a * np.cos(angle), a * np.sin(angle), 0.0)
        turn = (np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2))
        start = {"crank": ((0, 0, 0), turn), "coupler": (tip, (1, 0, 0, 0)), "rocker": ((d, 0, 0), turn)}
        with loop.mechanism.session(start) as ses:
            judge = drags.Judge(ses, loop)
            hand = ses.grasp("crank", (1, 0, 0))
            hand.target = (np.cos(angle + 1.2), np.sin(angle + 1.2), 0)
            for _ in range(20):
                ses.step()
                judge.look()
            assert judge.counts["unreported"] == judge.counts["false reports"] == 0
            passages += judge.counts["passages"]
    assert passages == 21


@pytest.mark.parametrize("mode, most", [("kinematic", 600), ("dynamic", 6000)])
def test_a_cycle_allocates_no_arrays(mode, most):
    """200 bodies have poses of 11 kB, and factors of much more; Python's own numbers are some hundred bytes."""
    m, body, point = hand_study.grasped("parts")
    with m.session(mode=mode) as ses:
        hand = ses.grasp(body, point)
        x, y, z = hand.point.tolist()
        for k in range(3):
            hand.target = (x + 1e-4 * k, y, z)
            ses.step()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for k in range(20):
                hand.target = (x + 1e-4 * k, y, z)
                ses.step()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak - before < most


def test_limits_hold_and_let_go():
    m = four_bar()
    m.limit("stop", m["A"], lower=-0.5, upper=0.8)
    with m.session() as ses:
        hand = ses.grasp("crank", (1, 0, 0))
        hand.target = (-1.0, 0.5, 0)
        for _ in range(100):
            ses.step()
            assert m["A"].coordinate(ses.state) <= 0.8 + 1e-11
        assert abs(m["A"].coordinate(ses.state) - 0.8) < 1e-11
        assert [event.what for event in ses.events] == ["limit reached"]
        hand.target = (np.cos(0.3), np.sin(0.3), 0)
        assert settle(ses) is cd.SessionStatus.REACHED
        assert ses.events[-1][1:] == ("limit left", "stop")
        assert is_met(m, ses)


def test_restore_returns_bit_by_bit_to_the_start_of_the_drag():
    m = REGISTRY["rsur"].build()
    ses = m.session()
    hand = ses.grasp("coupler", (2, 0, 0))
    hand.target = (0, 3, 3)
    settle(ses, 20)
    hand.release()
    start = ses.coordinates.copy()
    hand = ses.grasp("rocker", (1, 0, 0))
    hand.target = (5, 5, 5)
    settle(ses, 20)
    assert not np.array_equal(ses.coordinates, start)
    ses.restore()
    assert np.array_equal(ses.coordinates, start)
    assert ses.state == m.session(ses.state).state


def test_the_same_drag_gives_the_same_bits():
    def drag():
        ses = REGISTRY["rsur"].build().session()
        hand = ses.grasp("coupler", (2, 0, 0), pose=True)
        for k in range(50):
            hand.target = hand.target + np.array([0.01, 0.02 * np.sin(k), 0])
            ses.step()
        return ses.coordinates.copy(), hand.force

    (one, force), (two, same) = drag(), drag()
    assert np.array_equal(one, two)
    assert np.array_equal(force, same)


def test_whole_turns_are_counted_along_a_drag():
    m = four_bar()
    m.limit("counter", m["A"], lower=-100.0, upper=100.0)
    with m.session() as ses:
        hand = ses.grasp("crank", (1, 0, 0))
        for angle in np.linspace(0, 6 * np.pi, 300):
            hand.target = (np.cos(angle), np.sin(angle), 0)
            ses.step()
        settle(ses, 5)
        assert abs(m["A"].coordinate(ses.state) - 6 * np.pi) < 1e-9


def test_a_push_never_pulls():
    m = cd.Mechanism("slider")
    block = m.body("block")
    m.prismatic("P", m.ground.frame(z=X), block.frame(z=X))
    with m.session() as ses:
        hand = ses.push(block, (-0.5, 0, 0), direction=X)
        hand.target = (0.2, 0.1, 0.0)  # beyond the face by 0.7
        settle(ses, 5)
        assert abs(ses.coordinates[0, 0] - 0.7) < 1e-9
        hand.target = (-3.0, 0, 0)  # away from the face
        settle(ses, 5)
        assert abs(ses.coordinates[0, 0] - 0.7) < 1e-9
        assert not hand.force.any()


def test_two_hands_share_by_their_stiffness():
    m = cd.Mechanism("slider")
    block = m.body("block")
    m.prismatic("P", m.ground.frame(z=X), block.frame(z=X))
    with m.session() as ses:
        one, two = ses.grasp(block, stiffness=3.0), ses.grasp(block, stiffness=1.0)
        one.target, two.target = (1, 0, 0), (-1, 0, 0)
        settle(ses)
        assert abs(ses.coordinates[0, 0] - 0.5) < 1e-6
        np.testing.assert_allclose(one.force + two.force, 0, atol=1e-5)


def test_a_pose_follows_position_and_orientation():
    m = REGISTRY["stewart_ups"].build()
    with m.session() as ses:
        name = "platform" if "platform" in m.bodies else list(m.bodies)[-1]
        hand = ses.grasp(name, pose=True)
        wanted = turned(0.05)
        hand.target = hand.point + np.array([0, 0, 0.01])
        hand.orientation = wanted
        assert settle(ses, 20) is cd.SessionStatus.REACHED
        found = ses.state[name].quaternion
        assert min(np.abs(found - wanted).max(), np.abs(found + wanted).max()) < 1e-9


def test_a_driver_moves_in_sub_steps():
    m = four_bar()
    m.drive("motor", m["A"], 0.0)
    with m.session() as ses:
        ses.drive("motor", 2.0)
        settle(ses, 3)
        assert abs(m["A"].coordinate(ses.state) - 2.0) < 1e-12
        with pytest.raises(cd.ModelError, match="motor"):
            ses.drive("engine", 1.0)


@pytest.mark.parametrize("bad", [(np.nan, 0, 0), (np.inf, 0, 0), (1e300, 0, 0), (1, 2), "xyz", None])
def test_a_bad_target_is_refused_and_the_session_goes_on(bad):
    m = REGISTRY["rsur"].build()
    with m.session() as ses:
        hand = ses.grasp("coupler", (2, 0, 0))
        before = ses.coordinates.copy()
        with pytest.raises(cd.ModelError, match="coupler"):
            hand.target = bad
        ses.step()
        np.testing.assert_allclose(ses.coordinates, before, atol=1e-12)
        hand.target = hand.point + np.array([0.001, 0, 0])
        assert ses.step() in (cd.SessionStatus.MOVING, cd.SessionStatus.REACHED)


def test_bad_calls_are_refused_by_name():
    m = REGISTRY["rsur"].build()
    ses = m.session()
    with pytest.raises(cd.SessionError, match="grasp a body"):
        ses.target = (0, 0, 0)
    with pytest.raises(cd.ModelError, match="ground"):
        ses.grasp(m.ground)
    with pytest.raises(cd.ModelError, match="ground"):
        ses.grasp("ground")
    with pytest.raises(cd.UnknownNameError, match="coupler"):
        ses.grasp("couplr")
    with pytest.raises(cd.ModelError, match="finite"):
        ses.grasp("coupler", (np.nan, 0, 0))
    with pytest.raises(cd.ModelError, match="pose=True"):
        ses.grasp("coupler").orientation = (1, 0, 0, 0)
    hand = ses.hands[0]
    hand.release()
    with pytest.raises(cd.SessionError, match="released"):
        hand.target = (0, 0, 0)
    assert ses.step() == cd.SessionStatus.IDLE
    ses.close()
    with pytest.raises(cd.SessionError, match="closed"):
        ses.step()
    with pytest.raises(cd.SessionError, match="closed"):
        ses.grasp("coupler")


@pytest.mark.parametrize("mode", ["kinematic", "dynamic"])
def test_a_session_is_freed_with_its_last_reference_and_its_hand_says_so(mode):
    m = four_bar()
    for body in m.bodies.values():
        if not body.is_ground:
            body.mass, body.inertia = 1.0, np.eye(3)
    session = m.session(mode=mode)
    hand = session.grasp("coupler")
    session.step()
    known, point = weakref.ref(session), hand.point
    gc.disable()
    try:
        del session
        assert known() is None
    finally:
        gc.enable()
    np.testing.assert_array_equal(hand.point, point)
    for use in (lambda: setattr(hand, "target", X), lambda: setattr(hand, "stiffness", 2.0), hand.release):
        with pytest.raises(cd.SessionError, match="'coupler' does not exist any more; keep it"):
            use()


def test_a_second_thread_is_refused():
    m = REGISTRY["rsur"].build()
    ses = m.session()
    ses.grasp("coupler", (2, 0, 0))
    found = []

    def use():
        try:
            ses.step()
        except cd.SessionError as error:
            found.append(str(error))

    with ses._exclusive():  # as while a cycle runs
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    assert found and "thread" in found[0]
    assert ses.step() in list(cd.SessionStatus)
