"""Hostile use of sessions: each call is refused by name or harmless, joints stay closed, and the session goes on."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import cardan as cd
from cardan.examples import REGISTRY

X, Y, Z = np.eye(3)


def rsur():
    return REGISTRY["rsur"].build()


def arm(rng, links):
    """Links of random lengths on parallel hinges, in random directions."""
    m = cd.Mechanism("arm")
    last, at, lengths = m.ground.frame(), np.zeros(3), rng.uniform(0.5, 1.5, links)
    for k, length in enumerate(lengths):
        a = rng.uniform(-np.pi, np.pi)
        link = m.body(f"link_{k}", position=at, orientation=(np.cos(a / 2), 0, 0, np.sin(a / 2)))
        m.revolute(f"R_{k}", last, link.frame())
        last = link.frame((length, 0, 0))
        at = at + length * np.array([np.cos(a), np.sin(a), 0.0])
    return m, lengths


@pytest.mark.parametrize("links", [2, 3, 4, 6, 10])
def test_an_arm_is_stretched_towards_a_target_out_of_reach_within_some_cycles(links):
    """The closed form: the distance less the reach.  Steps of first order need thousands of cycles."""
    for seed in range(8):
        rng = np.random.default_rng(100 * links + seed)
        m, lengths = arm(rng, links)
        reach, far, a = lengths.sum(), rng.uniform(1.01, 5.0), rng.uniform(-np.pi, np.pi)
        with m.session() as ses:
            hand = ses.grasp(f"link_{links - 1}", (lengths[-1], 0, 0))
            hand.target = far * reach * np.array([np.cos(a), np.sin(a), 0.0])
            last = np.inf
            for _ in range(40):
                status = ses.step()
                distance = np.linalg.norm(hand.point - hand.target)
                assert distance <= last * (1 + 1e-12)
                last = distance
            assert status == cd.SessionStatus.SATURATED
            assert last - (far - 1) * reach < 1e-9 * reach
            assert m.diagnose(ses.state).assembled


def test_eight_hands_that_contradict_each_other_are_in_balance():
    m = rsur()
    rng = np.random.default_rng(3)
    with m.session() as ses:
        for k in range(8):
            hand = ses.grasp(
                ["crank", "coupler", "rocker"][k % 3], rng.normal(size=3), stiffness=10 ** rng.uniform(-2, 2)
            )
            hand.target = hand.point + 20 * rng.normal(size=3)
        with pytest.raises(cd.ModelError, match="8 hands already"):
            ses.grasp("crank")
        cost = np.inf
        for _ in range(60):
            status = ses.step()
            new = sum(h.stiffness * np.sum((h.point - h.target) ** 2) for h in ses.hands)
            assert new <= cost * (1 + 1e-12)
            cost = new
        assert status == cd.SessionStatus.SATURATED
        assert m.diagnose(ses.state).assembled
        # virtual work of all hands along the free motion, by moving the crank to both sides
        driven = m.copy()
        driven.drive("motor", driven["A"], lambda t: t)
        angle = m["A"].coordinate(ses.state)
        work = []
        for h in (-1e-4, 1e-4):
            state = driven.assemble(ses.state, time=angle + h).state
            points = [state[hand.body].point(hand.local) for hand in ses.hands]
            work.append(sum(g.stiffness * np.sum((p - g.target) ** 2) for g, p in zip(ses.hands, points, strict=True)))
        assert min(work) > cost * (1 - 1e-12) and abs(work[1] - work[0]) < 1e-4 * abs(sum(work) - 2 * cost)


@pytest.mark.parametrize("pose", [False, True])
def test_a_pinned_part_does_not_move_and_its_force_is_felt(pose):
    m = cd.Mechanism()
    block = m.body("block", position=(1, 2, 3))
    m.fixed("weld", m.ground.frame((1, 2, 3)), block.frame())
    with m.session() as ses:
        hand = ses.grasp(block, (0.5, 0, 0), stiffness=10.0, pose=pose)
        start = ses.coordinates.copy()
        for far in (1e-6, 1.0, 1e9):
            hand.target = np.array([1.5, 2, 3]) + far * Y
            statuses = {ses.step() for _ in range(5)}
            assert statuses == {cd.SessionStatus.SATURATED}
            np.testing.assert_allclose(ses.coordinates, start, atol=1e-12)
            np.testing.assert_allclose(hand.force, -10.0 * far * Y, atol=1e-8 * max(1.0, far))


@pytest.mark.parametrize(
    "bad", [(0, 0, 0, 0), (np.nan, 0, 0, 1), (np.inf, 0, 0, 0), (1, 0, 0), "w", None, (1, 0, 0, 0, 0)]
)
def test_a_bad_quaternion_is_refused_and_the_session_goes_on(bad):
    m = REGISTRY["stewart_ups"].build()
    with m.session() as ses:
        hand = ses.grasp("platform" if "platform" in m.bodies else list(m.bodies)[-1], pose=True)
        wanted = hand.orientation
        with pytest.raises(cd.ModelError, match="orientation of the hand"):
            hand.orientation = bad
        np.testing.assert_array_equal(hand.orientation, wanted)
        hand.target = hand.point + 0.005 * X
        for _ in range(10):
            status = ses.step()
        assert status == cd.SessionStatus.REACHED and m.diagnose(ses.state).assembled


def test_limits_hold_against_several_hands():
    m = cd.Mechanism()
    last = m.ground.frame()
    for k in range(3):
        block = m.body(f"block_{k}", position=(k, 0, 0))
        m.prismatic(f"slide_{k}", m.ground.frame((k, 0, 0), z=X), block.frame(z=X))
        m.limit(f"stop_{k}", m[f"slide_{k}"], lower=-0.1 * (k + 1), upper=0.2 * (k + 1))
        last = block.frame()
    assert last is not None
    with m.session() as ses:
        hands = [ses.grasp(f"block_{k}", at, stiffness=s) for k in range(3) for at, s in (((0, 0, 0), 1.0), (Y, 3.0))]
        for sign in (1.0, -1.0, 1.0):
            for hand in hands:
                hand.target = hand.point + sign * np.array([5.0, 1.0, 0])
            for _ in range(30):
                ses.step()
                found = [m[f"slide_{k}"].coordinate(ses.state) for k in range(3)]
                for k, x in enumerate(found):
                    assert -0.1 * (k + 1) - 1e-9 <= x <= 0.2 * (k + 1) + 1e-9
            wanted = [(0.2 if sign > 0 else -0.1) * (k + 1) for k in range(3)]
            np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_a_wheel_rolls_under_a_hand_without_slip():
    """A disc on a plane, its axle kept level: the path of the centre is the radius times the angle, per cycle."""
    m = cd.Mechanism()
    body = m.body("disc", position=(0, 0, 0.3), orientation=(np.cos(np.pi / 4), np.sin(np.pi / 4), 0, 0))
    m.wheel("on", body.frame(), 0.3)
    with m.session() as ses:
        hand = ses.grasp(body)
        start = ses.state
        slips = []
        for k in range(120):
            before = ses.state["disc"]
            hand.target = np.array([0.004 * (k + 1), 0.1 * np.sin(0.03 * (k + 1)), 0.3])
            assert ses.step() not in (cd.SessionStatus.STUCK, cd.SessionStatus.FAILED)
            after = ses.state["disc"]
            # velocity of the lowest point of the disc, by differences about the middle of the cycle
            turn = after.matrix @ before.matrix.T
            w = 0.5 * np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
            axle = 0.5 * (before.matrix[:, 2] + after.matrix[:, 2])
            down = -Z + (axle @ Z) * axle
            arm_ = 0.3 * down / np.linalg.norm(down)
            slip = after.position - before.position + np.cross(w, arm_)
            slips.append(np.linalg.norm(slip[:2]))
        assert np.linalg.norm(ses.state["disc"].position - start["disc"].position) > 0.3
        assert max(slips) < 1e-6  # of steps of 5 mm: these differences are of third order
        assert m.diagnose(ses.state).assembled


@pytest.mark.parametrize("scale", [1e-6, 1e3])
def test_a_drag_does_not_depend_on_the_unit_of_length(scale):
    """A four-bar in micrometres or kilometres moves as one in metres; out of reach and back."""

    def drag(size):
        m = cd.Mechanism()
        crank = m.body("crank")
        coupler = m.body("coupler", position=(size, 0, 0), orientation=(np.cos(0.5), 0, 0, np.sin(0.5)))
        rocker = m.body("rocker", position=(3 * size, 0, 0), orientation=(np.cos(0.9), 0, 0, np.sin(0.9)))
        m.revolute("A", m.ground.frame(), crank.frame())
        m.revolute("B", crank.frame((size, 0, 0)), coupler.frame())
        m.revolute("C", coupler.frame((3 * size, 0, 0)), rocker.frame((2.5 * size, 0, 0)))
        m.revolute("D", m.ground.frame((3 * size, 0, 0)), rocker.frame())
        with m.session() as ses:
            hand = ses.grasp("coupler", (size, 0, 0))
            found = []
            for x, y in ((1.5, 1.0), (10.0, -4.0), (1.0, 1.0)):
                hand.target = (x * size, y * size, 0)
                for _ in range(30):
                    ses.step()
                assert m.diagnose(ses.state).assembled
                found.append(hand.point / size)
        return found

    np.testing.assert_allclose(drag(scale), drag(1.0), atol=2e-6)


def test_a_session_has_the_parameters_of_its_state():
    m = cd.Mechanism()
    length = m.parameter("length", 1.0, lower=0.5, upper=2.0)
    bar = m.body("bar")
    m.revolute("A", m.ground.frame(), bar.frame())
    tip = m.body("tip", position=(1, 0, 0))
    m.spherical("S", bar.point((length, 0, 0)), tip.point())
    longer = m.assemble().state.with_variables({"length": 1.7})
    with m.session(longer) as ses:
        hand = ses.grasp("tip")
        hand.target = (0, 5, 0)
        for _ in range(30):
            ses.step()
        np.testing.assert_allclose(hand.point, (0, 1.7, 0), atol=1e-6)
        assert ses.state.variables["length"] == 1.7 and m.diagnose(ses.state).assembled


def test_a_contact_follows_a_hand_and_stays_closed():
    m = cd.Mechanism()
    ball = m.body("ball", position=(0.05, 0.02, 0.1))
    m.contact("c", m.ground.attach(cd.geometry.plane(1.0, 1.0)), ball.attach(cd.geometry.sphere(0.1)))
    with m.session() as ses:
        hand = ses.grasp(ball)
        for x, y, z in ((0.3, 0.2, 0.1), (0.3, 0.2, -5.0), (-0.2, 0.1, 3.0)):
            hand.target = (x, y, z)
            for _ in range(20):
                ses.step()
            np.testing.assert_allclose(hand.point, (x, y, 0.1), atol=1e-8)
            assert abs(ses.state.contact("c").gap) < 1e-11


@pytest.mark.parametrize("target", [(0.9, 0.1, 0.1), (0.9, 0.9, 0.1), (40.0, 3.0, 7.0)])
def test_a_hand_that_pulled_a_contact_to_an_edge_comes_back(target):
    """A link hangs at the ball, so that equations follow those of the contact."""
    m = cd.Mechanism()
    ball = m.body("ball", position=(0.05, 0.02, 0.1))
    link = m.body("link", position=(0.05, 0.02, 0.1))
    m.contact("c", m.ground.attach(cd.geometry.plane(1.0, 1.0)), ball.attach(cd.geometry.sphere(0.1)))
    m.revolute("hinge", ball.frame(), link.frame())
    with m.session() as ses:
        hand = ses.grasp(ball)
        for _ in range(3):
            hand.target = target
            for _ in range(20):
                status = ses.step()
            assert status == cd.SessionStatus.STUCK and ses.residual <= 1e-12  # of the pose that is kept
            assert hand.point[0] == pytest.approx(0.5, abs=1e-6)
            assert ses.state.contact("c").status == "regular" and m.diagnose(ses.state).assembled
            assert np.linalg.norm(hand.force) == pytest.approx(np.linalg.norm(hand.point - np.array(target)))
            hand.target = (0.3, -0.1, 0.1)
            for _ in range(20):
                status = ses.step()
            assert status == cd.SessionStatus.REACHED
            np.testing.assert_allclose(hand.point, (0.3, -0.1, 0.1), atol=1e-8)
        assert {(event.what, event.name) for event in ses.events} == {("contact ends", "c")}


def test_a_closed_session_refuses_every_use():
    m = rsur()
    ses = m.session()
    hand = ses.grasp("coupler", pose=True)
    servo = ses.serve(500.0)
    ses.close()
    assert not servo.running
    state = ses.state
    uses = {
        "step": ses.step,
        "grasp": lambda: ses.grasp("coupler"),
        "push": lambda: ses.push("coupler", (1, 0, 0)),
        "target": lambda: setattr(hand, "target", (0, 0, 0)),
        "orientation": lambda: setattr(hand, "orientation", (1, 0, 0, 0)),
        "stiffness": lambda: setattr(hand, "stiffness", 2.0),
        "release": hand.release,
        "restore": ses.restore,
        "record": ses.record,
        "serve": ses.serve,
        "range": lambda: ses.range("A"),
        "drive": lambda: ses.drive("motor", 1.0),
        "enter": ses.__enter__,
    }
    for use in uses.values():
        with pytest.raises(cd.SessionError, match="closed"):
            use()
    ses.close()
    assert np.array_equal(ses.state.coordinates, state.coordinates)


@pytest.mark.slow
def test_threads_that_use_one_session_are_refused_or_wait_and_the_pose_stays_valid():
    m = REGISTRY["strandbeest"].build()
    errors, done = [], []
    with m.session() as ses:
        hand = ses.grasp(next(iter(m.bodies)))

        def work(k):
            rng = np.random.default_rng(k)
            for _ in range(30):
                try:
                    hand.target = hand.point + 1e-3 * rng.normal(size=3)
                    ses.step()
                    done.append(k)
                except cd.SessionError as error:
                    errors.append(str(error))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) + len(errors) == 90 and done
        assert all("another thread" in text for text in errors)
        ses.step()
        assert m.diagnose(ses.state).assembled
