"""The force on a hand that is a constraint, against inverse dynamics, closed forms, and drivers in its place."""

from __future__ import annotations

import time

import numpy as np
import pytest

import cardan as cd
from cardan.examples import REGISTRY

RATES = (1000, 30000)  # Hz
BAR = 1e-3  # of the peak force; the errors seen are below 3e-4
SETTLED = 4  # cycles: the first contains the impulse that gives the hand its velocity
MASS, INERTIA, GRAVITY = 2.0, 0.3, 9.81  # of the pendulum, about its centre of mass at 0.5 m


def pendulum(**limits: float) -> cd.Mechanism:
    m = cd.Mechanism("pendulum", gravity=(0, -GRAVITY, 0))
    bar = m.body("bar", mass=MASS, inertia=np.diag([0.1, 0.2, INERTIA]), center=(0.5, 0, 0))
    m.revolute("A", m.ground.frame(), bar.frame())
    if limits:
        m.limit("stop", m["A"], **limits)
    return m


def slider_crank() -> cd.Mechanism:
    m = cd.Mechanism("slider_crank", gravity=(0, -GRAVITY, 0))
    crank = m.body("crank")
    rod = m.body("rod", position=(0.3, 0, 0))
    slider = m.body("slider", position=(1.3, 0, 0))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((0.3, 0, 0)), rod.frame())
    m.revolute("C", rod.frame((1, 0, 0)), slider.frame())
    m.prismatic("D", m.ground.frame(z=(1, 0, 0)), slider.frame(z=(1, 0, 0)))
    return weighted(m)


def rsur(loads: bool = False) -> cd.Mechanism:
    m = weighted(REGISTRY["rsur"].build())
    if loads:
        m.spring("coil", m["A"], stiffness=5.0, rest=0.2, damping=0.7)
        m.spring("rope", m.ground.point((3, 3, 3)), m["coupler"].point((1, 0, 0)), stiffness=20.0, rest=1.0, damping=2)
        m.force("weight", m["rocker"].point((1, 0, 0)), (3.0, 1.0, -2.0))
        m.friction("brake", m["A"], viscous=0.2, coulomb=0.8)
    return m


def bricard() -> cd.Mechanism:
    """Six hinges in a loop: redundant joints."""
    m = REGISTRY["bricard"].build()
    m.remove("swing")
    return weighted(m)


def weighted(m: cd.Mechanism) -> cd.Mechanism:
    rng = np.random.default_rng(0)
    for body in m.bodies.values():
        body.mass = rng.uniform(0.5, 2.0)
        body.inertia = np.diag(rng.uniform(0.2, 0.35, 3))
        body.center = tuple(0.2 * rng.normal(size=3))
    return m


def arm() -> cd.Mechanism:
    """Two links on parallel hinges."""
    m = cd.Mechanism("arm", gravity=(0, -GRAVITY, 0))
    bent = (np.cos(0.5), 0, 0, np.sin(0.5))
    a = m.body("a", mass=1.0, inertia=0.1 * np.eye(3), center=(0.5, 0, 0))
    b = m.body("b", position=(1, 0, 0), orientation=bent, mass=1.0, inertia=0.1 * np.eye(3), center=(0.5, 0, 0))
    m.revolute("A", m.ground.frame(), a.frame())
    m.revolute("B", a.frame((1, 0, 0)), b.frame())
    return m


# -- along the path of one freedom -------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", [0.0, 1e-3])
@pytest.mark.parametrize("rate", RATES)
def test_a_pendulum_along_its_path_is_in_closed_form(rate, off):
    """ml(θ̈ …) tangentially, nothing radially; the same with targets 1 mm outside of the circle."""
    amplitude, w, h = 0.5, 5.0, 1.0 / rate
    errors, peak = [], 0.0
    with pendulum().session(mode="dynamic", rate=rate) as ses:
        hand = ses.grasp("bar", (1, 0, 0))
        for k in range(700):
            angle = amplitude * (1 - np.cos(w * (k + 1) * h))
            hand.target = ((1 + off) * np.cos(angle), (1 + off) * np.sin(angle), 0)
            assert ses.step() == cd.SessionStatus.MOVING
            spin = amplitude * w**2 * np.cos(w * ses.time)
            along = (INERTIA + MASS * 0.25) * spin + MASS * GRAVITY * 0.5 * np.cos(angle)
            errors.append(np.abs(hand.force + along * np.array([-np.sin(angle), np.cos(angle), 0])).max())
            peak = max(peak, abs(along))
        assert max(errors[SETTLED:]) < BAR * peak
        assert hand.redundant == 2 and ses.residual < 1e-12


def crank(t, sin=np.sin):
    return 2 * t + 0.3 * sin(3 * t)


def swing(t, sin=np.sin):
    return 0.3 * sin(2 * t + 0.3)


def compare(m, joint, law, grasps, rate, cycles):
    """Largest errors of all forces and torques over the peaks, with targets on the path.

    The driver in place of the hands has the power of the hands: Σ F·v + T·ω = effort·rate.  Forces and torques of
    hands on one freedom with the least Σ |F|² + |T/size|² are F = α v, T = α size² ω.
    """
    driven, start = m.copy(), m.assemble().state
    first = driven[joint].coordinate(start) - law(0.0)
    driven.drive("motor", driven[joint], lambda t: first + law(t, cd.sin))
    times = np.arange(cycles + 1) / rate
    motion = driven.move(times, start=start)
    assert motion.ok
    rates = np.array([(law(t + 1e-5) - law(t - 1e-5)) / 2e-5 for t in times])
    power = motion.effort("motor") * rates
    with m.session(motion.states[0], mode="dynamic", rate=rate) as ses:
        hands = [ses.grasp(body, at, pose=pose) for body, at, pose in grasps]
        numbers = [list(m.bodies).index(hand.body) for hand in hands]
        largest, errors = [], []
        for t, state in enumerate(motion.states):
            ways, square = [], 0.0
            for hand, k in zip(hands, numbers, strict=True):
                A = state[hand.body].matrix
                size = max(m[hand.body].inertia[i][i] for i in range(3)) / m[hand.body].mass
                turn = A @ state.velocities[k, 3:]
                speed = state.velocities[k, :3] + np.cross(turn, A @ hand.local)
                turn = turn * size if hand.kind == "pose" else 0.0 * turn
                square += speed @ speed + turn @ turn / size
                ways.append((speed, turn))
                if t > 0:
                    hand.target = state[hand.body].point(hand.local)
                    if hand.kind == "pose":
                        hand.orientation = state[hand.body].quaternion
            if t > 0:
                assert ses.step() == cd.SessionStatus.MOVING
                pairs = zip(hands, ways, strict=True)
                found = [(np.r_[g.force, g.torque], -power[t] / square * np.r_[way]) for g, way in pairs]
                largest.append(max(np.abs(wanted).max() for _, wanted in found))
                errors.append(max(np.abs(force - wanted).max() for force, wanted in found))
        assert ses.residual < 1e-12
        assert [hand.redundant for hand in hands] == [5 if hand.kind == "pose" else 2 for hand in hands]
        return max(errors[SETTLED:]) / max(largest)


COUPLER, ROCKER = ("coupler", (2.0, 0.0, 0.0), False), ("rocker", (1.0, 0.2, 0.0), False)
ROD = ("rod", (0.5, 0.1, 0.0), False)
CASES = {
    "coupler": (rsur, "A", crank, [COUPLER]),
    "pose of the coupler": (rsur, "A", crank, [(*COUPLER[:2], True)]),
    "two hands": (rsur, "A", crank, [COUPLER, ROCKER]),
    "springs, loads and friction": (lambda: rsur(loads=True), "A", crank, [COUPLER]),
    "rod": (slider_crank, "A", crank, [ROD]),
    "pose of the rod": (slider_crank, "A", crank, [(*ROD[:2], True)]),
    "redundant joints": (bricard, "hinge_1", swing, [("rod_3", (0.2, 0.1, 0.3), False)]),
}


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", CASES)
def test_a_hand_on_one_freedom_feels_the_inverse_dynamics(name, rate):
    make, joint, law, grasps = CASES[name]
    assert compare(make(), joint, law, grasps, rate, 250) < BAR


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_the_error_of_the_force_decreases_with_the_square_of_the_cycle(name):
    make, joint, law, grasps = CASES[name]
    errors = [compare(make(), joint, law, grasps, rate, rate) for rate in (500, 1000, 2000)]
    assert errors[1] < 0.35 * errors[0] and errors[2] < 0.35 * errors[1]


def test_a_slider_between_its_dead_points_feels_the_crank():
    """Closed form of the force from x(θ): the effort of a motor at the crank, over dx/dθ."""
    m, rate = slider_crank(), 1000
    driven = m.copy()
    driven.drive("motor", driven["A"], lambda t: 1.2 + 0.8 * cd.sin(3 * t))
    motion = driven.move(np.arange(601) / rate)
    effort, first = motion.effort("motor"), motion.states[0]
    errors, peak = [], 0.0
    with m.session(first, mode="dynamic", rate=rate) as ses:
        hand = ses.grasp("slider")
        for k, state in enumerate(motion.states[1:], 1):
            hand.target = state["slider"].position
            ses.step()
            a = 1.2 + 0.8 * np.sin(3 * k / rate)
            lever = -0.3 * np.sin(a) - 0.09 * np.sin(a) * np.cos(a) / np.sqrt(1 - 0.09 * np.sin(a) ** 2)
            errors.append(np.abs(hand.force - [-effort[k] / lever, 0, 0]).max())
            peak = max(peak, abs(effort[k] / lever))
    assert max(errors[SETTLED:]) < BAR * peak


# -- other numbers of freedoms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pose", [False, True])
def test_a_hand_on_a_part_without_freedom_has_no_force(pose):
    m = cd.Mechanism("block")
    block = m.body("block", mass=1.0, inertia=np.eye(3))
    m.fixed("weld", m.ground.frame(), block.frame())
    with m.session(mode="dynamic") as ses:
        hand = ses.grasp(block, (1, 0, 0), pose=pose)
        hand.target = (1, 0.1, 0)
        for _ in range(3):
            assert ses.step() == cd.SessionStatus.MOVING
        assert not hand.force.any() and not hand.torque.any()
        assert hand.redundant == (6 if pose else 3)


@pytest.mark.parametrize("rate", RATES)
def test_a_hand_on_two_freedoms_has_the_efforts_of_two_drivers(rate):
    m, cycles = arm(), 300
    x0, y0 = 1 + np.cos(1.0), np.sin(1.0)

    def path(t, cos=np.cos):
        return x0 - 0.15 * (1 - cos(3 * t)), y0 + 0.1 * (1 - cos(4 * t))

    driven = m.copy()
    for k, axis in enumerate(np.eye(3)[:2]):
        along = cd.coordinate(driven.ground.frame(z=axis), driven["b"].frame((1, 0, 0), z=axis), "displacement")
        driven.drive("xy"[k], along, lambda t, k=k: path(t, cd.cos)[k])
    motion = driven.move(np.arange(cycles + 1) / rate)
    efforts = np.column_stack([motion.effort("x"), motion.effort("y"), np.zeros(cycles + 1)])
    with m.session(mode="dynamic", rate=rate) as ses:
        hand = ses.grasp("b", (1, 0, 0))
        errors = []
        for k in range(1, cycles + 1):
            hand.target = (*path(k / rate), 1e-3)  # off the plane
            ses.step()
            errors.append(np.abs(hand.force + efforts[k]).max())
        assert max(errors[SETTLED:]) < BAR * np.abs(efforts).max()
        assert hand.redundant == 1


@pytest.mark.parametrize("rate", RATES)
def test_a_hand_beside_a_driver_feels_the_freedom_that_the_driver_leaves(rate):
    """The shoulder is driven, and the hand follows the elbow's law: its moment about the elbow is that of a motor."""
    m, cycles = arm(), 250
    m.drive("shoulder", m["A"], lambda t: 0.4 * cd.sin(4 * t))
    driven = m.copy()
    driven.drive("elbow", driven["B"], lambda t: 0.6 + 0.5 * cd.sin(5 * t + 1))
    motion = driven.move(np.arange(cycles + 1) / rate)
    effort, errors, peak = motion.effort("elbow"), [], 0.0
    with m.session(motion.states[0], mode="dynamic", rate=rate) as ses:
        hand = ses.grasp("b", (1, 0, 0))
        for k, state in enumerate(motion.states[1:], 1):
            hand.target = state["b"].point((1, 0, 0))
            ses.step()
            wanted = -effort[k] * np.cross([0, 0, 1], hand.target - state["b"].position)
            errors.append(np.abs(hand.force - wanted).max())
            peak = max(peak, np.abs(wanted).max())
        assert max(errors[SETTLED:]) < BAR * peak
        assert hand.redundant == 2
    with driven.session(motion.states[0], mode="dynamic", rate=rate) as ses:
        hand = ses.grasp("b", (1, 0, 0))
        for _ in range(5):
            ses.step()
        assert not hand.force.any() and hand.redundant == 3


@pytest.mark.parametrize("rate", RATES)
def test_a_pose_of_a_free_body_feels_newton_and_euler(rate):
    m = cd.Mechanism("stone", gravity=(0, 0, -GRAVITY))
    stone = m.body("stone", mass=2.0, inertia=np.diag([0.1, 0.2, 0.3]), center=(0.1, 0.2, 0))
    errors = []
    with m.session(mode="dynamic", rate=rate) as ses:
        hand = ses.grasp(stone, (0.3, 0, 0), pose=True)
        for k in range(500):
            t = (k + 1) / rate
            angle, spin, change = 0.5 * (1 - np.cos(3 * t)), 1.5 * np.sin(3 * t), 4.5 * np.cos(3 * t)
            hand.target = (0.3 + 0.1 * (1 - np.cos(2 * t)), 0.2 * (1 - np.cos(3 * t)), 0)
            hand.orientation = (np.cos(angle / 2), 0, 0, np.sin(angle / 2))
            ses.step()
            arm = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ (-0.2, 0.2)
            arm = np.array([*arm, 0.0])
            point = np.array([0.4 * np.cos(2 * t), 1.8 * np.cos(3 * t), 0])
            force = 2.0 * (point + np.cross([0, 0, change], arm) - spin**2 * arm + [0, 0, GRAVITY])
            torque = np.array([0, 0, 0.3 * change]) + np.cross(arm, force)
            errors.append(np.abs(np.r_[hand.force + force, hand.torque + torque]).max())
        assert max(errors[SETTLED:]) < BAR * 2.0 * GRAVITY
        assert hand.redundant == 0


def test_hands_with_more_components_than_freedoms_share_with_the_least_norm():
    """At rest Bᵀ f = −Q with the Jacobian B of both points: f by the pseudo-inverse of NumPy."""
    m = arm()
    with m.session(mode="dynamic") as ses:
        hands = [ses.grasp("a", (0.7, 0.2, 0)), ses.grasp("b", (1, 0, 0))]
        for _ in range(3):
            ses.step()
        a, b = ses.state["a"], ses.state["b"]
        z, elbow = np.array([0, 0, 1.0]), a.point((1, 0, 0))
        B = np.column_stack(
            [
                np.r_[np.cross(z, hands[0].point), np.cross(z, hands[1].point)],
                np.r_[np.zeros(3), np.cross(z, hands[1].point - elbow)],
            ]
        )
        centers = a.point((0.5, 0, 0)), b.point((0.5, 0, 0))
        load = [-GRAVITY * (centers[0][0] + centers[1][0]), -GRAVITY * (centers[1][0] - elbow[0])]
        wanted = np.linalg.pinv(B.T) @ load  # of the mechanism on the hands
        np.testing.assert_allclose(np.r_[hands[0].force, hands[1].force], wanted, atol=1e-9)
        assert [hand.redundant for hand in hands] == [2, 1]


# -- jumps of the target -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", RATES)
def test_a_jump_of_the_target_is_an_impulse_and_the_opposite_one_in_the_next_cycle(rate):
    """m δ/h² of the inertia m that the hand feels, for a cycle each, and no further oscillation."""
    m = pendulum()
    m.gravity = (0, 0, 0)
    inertia, jump = INERTIA + MASS * 0.25, 1e-3
    with m.session(mode="dynamic", rate=rate) as ses:
        hand = ses.grasp("bar", (1, 0, 0))
        for _ in range(3):
            ses.step()
        hand.target = (1, jump, 0)
        forces = []
        for _ in range(6):
            ses.step()
            forces.append(hand.force[1] / (inertia * jump * rate**2))
        np.testing.assert_allclose(forces, [-1, 1, 0, 0, 0, 0], atol=1e-4)


def test_a_wheel_that_turns_by_a_third_of_a_radian_per_cycle_follows():
    """At a constant speed no force acts."""
    m = cd.Mechanism("disc", gravity=(0, 0, 0))
    disc = m.body("disc", mass=2.0, inertia=np.diag([0.1, 0.1, 0.2]))
    with m.session(mode="dynamic") as ses:
        hand = ses.grasp(disc, pose=True)
        for k in range(100):
            angle = 0.3 * (k + 1)
            hand.orientation = (np.cos(angle / 2), 0, 0, np.sin(angle / 2))
            ses.step()
            assert abs(ses.state["disc"].quaternion @ hand.orientation) == pytest.approx(1.0, abs=1e-9)
        np.testing.assert_allclose(np.r_[hand.force, hand.torque], 0.0, atol=1e-6)


def test_a_servo_has_the_same_force():
    with pendulum().session(mode="dynamic", rate=200) as ses:
        hand = ses.grasp("bar", (1, 0, 0))
        servo = ses.serve()
        time.sleep(0.05)
        assert servo.stop().cycles > 2
        np.testing.assert_allclose(hand.force, [0, -MASS * GRAVITY * 0.5, 0], atol=1e-9)
        assert hand.redundant == 2


def test_targets_1_mm_off_the_path_have_no_force_of_their_own_at_any_rate():
    for rate in RATES:
        with pendulum().session(mode="dynamic", rate=rate) as ses:
            hand = ses.grasp("bar", (1, 0, 0))
            hand.target = (1.001, 0, 1e-3)
            for _ in range(5):
                ses.step()
                np.testing.assert_allclose(hand.force, [0, -MASS * GRAVITY * 0.5, 0], atol=1e-9)


def test_a_hand_that_grasps_a_moving_body_stops_it_by_an_impulse_in_its_first_cycle():
    m = pendulum()
    m.gravity = (0, 0, 0)
    start = m.solve_rates(m.assemble().state, {"A": 2.0})
    with m.session(start, mode="dynamic", rate=1000) as ses:
        hand = ses.grasp("bar", (1, 0, 0))
        forces = []
        for _ in range(4):
            ses.step()
            forces.append(hand.force[1])
        impulse = 2.0 * (INERTIA + MASS * 0.25)
        np.testing.assert_allclose(forces, [1000 * impulse, 0, 0, 0], atol=1e-6 * 1000 * impulse)


@pytest.mark.parametrize("target", [(0, 1.5, 0), (0, 3, 0), (5, 5, 1), (1000, 1000, 0), (-3, 0.1, 0)])
def test_a_hand_far_off_the_path_holds_the_nearest_point(target):
    """Without overshoot that goes on, also where the target is farther than the centre of curvature."""
    m = pendulum()
    with m.session(mode="dynamic") as ses:
        hand = ses.grasp("bar", (1, 0, 0))
        hand.target = target
        for _ in range(200):
            assert ses.step() == cd.SessionStatus.MOVING
        nearest = np.array([*target[:2], 0]) / np.hypot(*target[:2])
        np.testing.assert_allclose(hand.point, nearest, atol=1e-6)
        along = np.array([-nearest[1], nearest[0], 0])
        np.testing.assert_allclose(hand.force, -MASS * GRAVITY * 0.5 * nearest[0] * along, atol=1e-4)


def test_a_cycle_towards_a_target_off_a_bent_path_ends_at_the_nearest_point_to_second_order():
    """The curvature of the coupler's path, by differences along the motion of the crank.

    On the outer side at 0.6 of the radius ρ, the nearest point moves by 1/1.6 of the target's way along the path.
    """
    m = rsur()
    m.gravity = (0, 0, 0)
    driven = m.copy()
    start = m.assemble().state
    first, step = driven["A"].coordinate(start), 1e-3
    driven.drive("motor", driven["A"], lambda t: first + t)
    states = [driven.assemble(start, time=k * step).state for k in (-1, 0, 1)]
    body, at = COUPLER[:2]
    before, here, after = (state[body].point(at) for state in states)
    way = (after - before) / 2
    bend = after - 2 * here + before
    bend -= way * (bend @ way) / (way @ way)
    radius = (way @ way) / np.linalg.norm(bend)
    target = here + way - 0.6 * radius * bend / np.linalg.norm(bend)
    with m.session(start, mode="dynamic") as ses:
        hand = ses.grasp(body, at)
        hand.target = target
        ses.step()
        moved = (hand.point - here) @ way / (way @ way)
        assert moved == pytest.approx(1 / 1.6, rel=1e-3)


def test_a_hand_that_is_released_and_grasps_again_knows_nothing_of_the_first_grasp():
    with pendulum().session(mode="dynamic") as ses:
        hand = ses.grasp("bar", (1, 0, 0))
        hand.target = (np.cos(0.1), np.sin(0.1), 0)
        ses.step()
        hand.release()
        for _ in range(20):
            ses.step()
        rate = ses.state.velocities[0, 5]
        assert rate > 1.0
        hand = ses.grasp("bar", (1, 0, 0))
        for k in range(3):
            ses.step()
            weight = MASS * GRAVITY * 0.5 * hand.point[0]
            impulse = (INERTIA + MASS * 0.25) * rate * 1000 if k == 0 else 0.0
            assert np.cross(hand.point, hand.force)[2] == pytest.approx(impulse - weight, abs=0.05 + 1e-3 * impulse)
        ses.restore()
        ses.step()
        assert hand.redundant == 2


# -- with springs and limits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", RATES)
def test_a_spring_on_a_held_point_has_the_force_of_its_law(rate):
    """The held point does not yield to the spring: F = k r, and the constraint carries the rest."""
    with pendulum().session(mode="dynamic", rate=rate) as ses:
        held = ses.grasp("bar", (1, 0, 0))
        spring = ses.grasp("bar", (1, 0, 0), hand="spring", stiffness=500.0, damping=30.0)
        spring.target = (1.0, 0.01, 0)
        for _ in range(5):
            ses.step()
            assert spring.force[1] == pytest.approx(-5.0, rel=1e-9)
            assert held.force[1] == pytest.approx(5.0 - MASS * GRAVITY * 0.5, rel=1e-9)
        assert (held.redundant, spring.redundant) == (2, 0)


@pytest.mark.parametrize("rate", [1000, 4000])
def test_a_limit_is_a_joint_to_a_hand_that_leads_into_it(rate):
    """At the lower limit gravity presses: no force.  At the upper one the hand carries the weight.  It leaves both."""
    m = pendulum(lower=-0.20037, upper=0.10033)
    seen = {}
    with m.session(mode="dynamic", rate=rate) as ses:
        hand = ses.grasp("bar", (1, 0, 0))
        for k in range(rate // 10):
            angle = 0.4 * np.sin(20 * np.pi * (k + 1) / rate)
            hand.target = (np.cos(angle), np.sin(angle), 0)
            assert ses.step() == cd.SessionStatus.MOVING
            now = m["A"].coordinate(ses.state)
            assert now == pytest.approx(np.clip(angle, -0.20037, 0.10033), abs=2e-3)
            seen[round(1000 * (k + 1) / rate, 6)] = np.cross(hand.point, hand.force)[2], hand.redundant
    assert seen[25][0] == pytest.approx(-MASS * GRAVITY * 0.5 * np.cos(0.10033), rel=1e-6)
    assert seen[75] == (0.0, 3)
    events = [event.what for event in ses.events]
    assert events[-3:] == ["limit left", "limit reached", "limit left"] and events[0] == "limit reached"


@pytest.mark.parametrize("given", [{"stiffness": 3.0}, {"damping": 7.0}, {"stiffness": 3.0, "damping": 7.0}], ids=str)
def test_a_constraint_hand_refuses_what_belongs_to_a_spring(given):
    m = cd.Mechanism()
    a = m.body("a", mass=1.0, inertia=np.eye(3))
    m.revolute("h", m.ground.frame(), a.frame())
    with m.session(mode="dynamic") as ses:
        with pytest.raises(cd.ModelError, match=f"the hand on 'a' has {' and '.join(given)}, but .*use hand='spring'"):
            ses.grasp("a", (1, 0, 0), hand="constraint", **given)
        assert not ses.hands
        hand = ses.grasp("a", (1, 0, 0))
        assert hand.redundant == 0
        ses.step()
        assert hand.redundant == 2
