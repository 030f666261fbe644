"""Mechanisms of textbooks: printed numbers, or closed forms of positions, rates, forces and small motions."""

from __future__ import annotations

from math import acos, atan2, cos, degrees, pi, radians, sin, sqrt, tan

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cardan as cd
from cardan.math import euler
from layers import sampled

X, Y, Z = np.eye(3)
G = 9.81


def checked(found):
    assert found.ok, found.text()
    return found


def about(axis, angle):
    return euler.from_axis_angle(tuple(axis), angle)


# --- planar linkages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("drawn", "printed"),
    [
        ((20.0, 60.0), (20.298, 57.325, -4.121, 6.998, 296.089, 470.134)),
        ((-60.0, -100.0), (-60.978, -98.005, -9.259, -20.378, 597.622, 423.578)),
    ],
)
def test_a_four_bar_has_the_printed_angles_rates_and_accelerations(drawn, printed):
    """[Norton2012], examples 4-1, 6-7 and 7-1: links 40, 120, 80 and 100 mm; 40°, 25 rad/s and 15 rad/s² at the crank.

    The open branch is printed; the numbers of the crossed one follow from the same formulas.
    """
    m = cd.Mechanism("four-bar")
    lengths = {"crank": 0.04, "coupler": 0.12, "rocker": 0.08}
    tip = 0.04 * np.array([cos(radians(40)), sin(radians(40)), 0])
    crank = m.body("crank", orientation=about(Z, radians(40)))
    coupler = m.body("coupler", position=tip, orientation=about(Z, radians(drawn[0])))
    rocker = m.body("rocker", position=(0.1, 0, 0), orientation=about(Z, radians(drawn[1])))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((lengths["crank"], 0, 0)), coupler.frame())
    m.revolute("C", coupler.frame((lengths["coupler"], 0, 0)), rocker.frame((lengths["rocker"], 0, 0)))
    m.revolute("D", m.ground.frame((0.1, 0, 0)), rocker.frame())
    m.drive("motor", m["A"], lambda t: radians(40) + 25 * t + 7.5 * t * t)
    motion = checked(m.move([0.0]))
    found = []
    for part in ("coupler", "rocker"):
        R = motion.states[0][part].matrix
        found.append(degrees(atan2(R[1, 0], R[0, 0])))
    found += [motion.velocities(part)[0, 5] for part in ("coupler", "rocker")]
    found += [motion.accelerations(part)[0, 5] for part in ("coupler", "rocker")]
    assert found == pytest.approx(printed, abs=6e-4)


def test_whitworths_quick_return_takes_the_time_of_its_angles():
    """The slotted link of [Norton2012] chapter 3: ψ = atan2(r sin φ, d + r cos φ), with its first two derivatives.

    The strokes end at crank angles of ±(π − acos(r/d)), r < d: the return takes an angle of 2 acos(r/d).
    """
    r, d, rate = 0.05, 0.1, 3.0
    m = cd.Mechanism("quick return")
    crank = m.body("crank", position=(d, 0, 0))
    link = m.body("link")
    hinge = m.revolute("crank hinge", m.ground.frame((d, 0, 0)), crank.frame())
    m.revolute("link hinge", m.ground.frame(), link.frame())
    m.point_on_line("slot", crank.point((r, 0, 0)), link.frame(z=X))
    m.drive("motor", hinge, lambda t: rate * t)
    motion = checked(m.move(np.linspace(0, 4, 161)))
    phi = rate * motion.times
    below = d * d + r * r + 2 * d * r * np.cos(phi)
    first = (r * r + d * r * np.cos(phi)) / below
    second = d * r * np.sin(phi) * (r * r - d * d) / below**2
    assert np.abs(motion.coordinate("link hinge") - np.arctan2(r * np.sin(phi), d + r * np.cos(phi))).max() < 1e-12
    assert np.abs(motion.velocities("link")[:, 5] - rate * first).max() < 1e-12
    assert np.abs(motion.accelerations("link")[:, 5] - rate**2 * second).max() < 1e-11
    extreme = pi - acos(r / d)  # the link is tangent to the circle of the pin
    at = checked(m.move([extreme / rate, (2 * pi - extreme) / rate]))
    assert np.abs(at.velocities("link")[:, 5]).max() < 1e-11
    assert at.coordinate("link hinge") == pytest.approx([np.arcsin(r / d), -np.arcsin(r / d)], abs=1e-12)


@pytest.mark.slow
@sampled(("slots", "largest"), [(3, 31.392), (4, 5.407), (5, 2.299), (6, 1.350), (8, 0.700)], 1)
def test_the_wheel_of_a_geneva_drive_has_its_largest_acceleration(slots, largest):
    """[Norton2012] chapter 2: the acceleration is ω² tan(π/n) where the pin enters, and largest before the middle."""
    k = sin(pi / slots)
    enter = pi / 2 - pi / slots
    m = cd.Mechanism("Geneva")
    crank = m.body("crank", orientation=about(Z, -enter))
    wheel = m.body("wheel", position=(1 / k, 0, 0), orientation=about(Z, pi / slots))
    hinge = m.revolute("crank hinge", m.ground.frame(), crank.frame())
    m.revolute("wheel hinge", m.ground.frame((1 / k, 0, 0)), wheel.frame())
    m.point_on_line("slot", crank.point((1, 0, 0)), wheel.frame(z=-X))
    m.drive("motor", hinge, lambda t: t - enter)
    motion = checked(m.move(np.linspace(0, 2 * enter, 4001)))
    acceleration = np.abs(motion.accelerations("wheel")[:, 5])
    assert acceleration[[0, -1]] == pytest.approx([tan(pi / slots)] * 2, rel=1e-9)
    assert acceleration.max() == pytest.approx(largest, abs=6e-4)


def test_an_oldham_coupling_turns_evenly_and_its_cross_runs_twice_as_fast():
    """The cross turns with both shafts; its centre moves on the circle through both axes, at the rate 2ω."""
    e, rate = 0.02, 4.0
    m = cd.Mechanism("Oldham")
    first, cross, second = (
        m.body("first"),
        m.body("cross", position=(e / 2, 0, 0)),
        m.body("second", position=(e, 0, 0)),
    )
    hinge = m.revolute("in", m.ground.frame(), first.frame())
    m.revolute("out", m.ground.frame((e, 0, 0)), second.frame())
    m.prismatic("slide 1", first.frame(z=X, x=Z), cross.frame(z=X, x=Z))
    m.prismatic("slide 2", second.frame(z=Y, x=Z), cross.frame(z=Y, x=Z))
    m.drive("motor", hinge, lambda t: 0.2 + rate * t)
    motion = checked(m.move(np.linspace(0, 2, 41)))
    phi = 0.2 + rate * motion.times
    assert np.abs(motion.velocities("second")[:, 5] - rate).max() < 1e-12
    assert np.abs(motion.velocities("cross")[:, 5] - rate).max() < 1e-12
    centre = e * np.column_stack([np.cos(phi) ** 2, np.cos(phi) * np.sin(phi)])
    assert np.abs(motion.positions("cross")[:, :2] - centre).max() < 1e-14
    assert np.abs(np.linalg.norm(motion.velocities("cross")[:, :3], axis=1) - e * rate).max() < 1e-13
    inward = np.linalg.norm(motion.accelerations("cross")[:, :3], axis=1)
    assert np.abs(inward - 2 * e * rate**2).max() < 1e-11


def test_a_scotch_yoke_needs_the_torque_of_its_harmonic_motion():
    """x = r cos φ; the motor turns with M = m r² ω² sin φ cos φ, and the guide carries no more than the weight."""
    r, rate, mass = 0.08, 12.0, 1.5
    m = cd.Mechanism("Scotch yoke", gravity=(0, -G, 0))
    crank = m.body("crank", mass=1.0, inertia=np.eye(3))
    yoke = m.body("yoke", mass=mass, inertia=np.eye(3))
    hinge = m.revolute("hinge", m.ground.frame(), crank.frame())
    m.prismatic("guide", m.ground.frame(z=X, x=Z), yoke.frame(z=X, x=Z))
    m.point_in_plane("slot", crank.point((r, 0, 0)), yoke.frame(z=X))
    m.drive("motor", hinge, lambda t: rate * t)
    motion = checked(m.move(np.linspace(0, 1, 51)))
    phi = rate * motion.times
    assert np.abs(motion.coordinate("guide") - r * np.cos(phi)).max() < 1e-14
    assert np.abs(motion.effort("motor") - mass * (r * rate) ** 2 * np.sin(phi) * np.cos(phi)).max() < 1e-10
    assert np.abs(motion.reaction("guide").force - (0, mass * G, 0)).max() < 1e-10


def test_a_pantograph_enlarges():
    """A parallelogram on a fixed point: the pencil is at k times the tracer, in position, velocity and acceleration."""
    a, k = 0.3, 2.5
    m = cd.Mechanism("pantograph")
    long, side = m.body("long", orientation=about(Z, 0.4)), m.body("side", orientation=about(Z, 1.4))
    short, arm = m.body("short", orientation=about(Z, 1.4)), m.body("arm", orientation=about(Z, 0.4))
    m.revolute("O", m.ground.frame(), long.frame())
    m.revolute("A", long.frame((a, 0, 0)), short.frame())  # short: from A to the tracer and arm
    m.revolute("B", long.frame((k * a, 0, 0)), side.frame())
    m.revolute("C", short.frame((a, 0, 0)), arm.frame())
    m.revolute("D", side.frame((a, 0, 0)), arm.frame(((k - 1) * a, 0, 0)))
    assert m.diagnose(checked(m.assemble()).state).dof == 2
    m.drive(
        "x", cd.coordinate(m.ground.frame(z=X), short.frame((a, 0, 0), z=X), "displacement"), lambda t: 0.3 + 0.1 * t
    )
    m.drive(
        "y", cd.coordinate(m.ground.frame(z=Y), short.frame((a, 0, 0), z=Y), "displacement"), lambda t: 0.3 + 0.1 * t**2
    )
    motion = checked(m.move(np.linspace(0, 1, 11)))
    for state, t in zip(motion.states, motion.times, strict=True):
        pencil = state["side"].position + state["side"].matrix @ (k * a, 0, 0)
        assert pencil == pytest.approx([k * (0.3 + 0.1 * t), k * (0.3 + 0.1 * t * t), 0], abs=1e-12)


def test_sarrus_linkage_moves_along_a_line_only():
    """Two pairs of plates in planes at right angles: six hinges, one redundant equation, and a straight motion."""
    a = 0.5
    m = cd.Mechanism("Sarrus")
    top = m.body("top", position=(0, 0, 0.6))
    for name, axis, out in (("x", Y, X), ("y", X, Y)):
        lower, upper = m.body(f"lower {name}"), m.body(f"upper {name}", position=(0.2, 0.2, 0.4))
        m.revolute(f"foot {name}", m.ground.frame(tuple(out), z=axis), lower.frame(z=axis))
        m.revolute(f"knee {name}", lower.frame((0, 0, a), z=axis), upper.frame(z=axis))
        m.revolute(f"head {name}", upper.frame((0, 0, a), z=axis), top.frame(tuple(out), z=axis))
    state = checked(m.assemble()).state
    report = m.diagnose(state)
    assert (report.dof, len(report.redundant)) == (1, 1)
    height = cd.coordinate(m.ground.frame(), top.frame(), "displacement")
    start = state["top"].position[2]
    m.drive("lift", height, lambda t: start - 0.1 * t)
    motion = checked(m.move(np.linspace(0, 1, 11), state))
    assert np.abs(motion.positions("top") - np.outer(start - 0.1 * motion.times, Z)).max() < 1e-12
    assert np.abs(motion.quaternions("top")[:, 1:]).max() < 1e-12


def test_a_swash_plate_moves_its_pistons_harmonically():
    """A shoe at the radius R slides on a turning plate that is inclined by α: z = −R tan α cos φ."""
    R, tilt, rate = 0.04, 0.3, 20.0
    m = cd.Mechanism("swash plate")
    plate = m.body("plate")
    angles = []
    m.revolute("shaft", m.ground.frame(x=X), plate.frame(x=X))
    for k in range(3):
        angle = 2 * pi * k / 3
        place = (R * cos(angle), R * sin(angle), 0)
        piston = m.body(f"piston {k}", position=place)
        m.prismatic(f"bore {k}", m.ground.frame(place), piston.frame())
        m.point_in_plane(f"shoe {k}", piston.point(), plate.frame(z=(sin(tilt), 0, cos(tilt))))
        angles.append(angle)
    m.drive("motor", m["shaft"], lambda t: rate * t)
    motion = checked(m.move(np.linspace(0, 0.5, 51)))
    for k, angle in enumerate(angles):
        phase = angle - rate * motion.times
        assert np.abs(motion.coordinate(f"bore {k}") + R * tan(tilt) * np.cos(phase)).max() < 1e-14
        assert np.abs(motion.velocities(f"piston {k}")[:, 2] + R * tan(tilt) * rate * np.sin(phase)).max() < 1e-12


def test_a_watt_six_bar_agrees_with_two_dyads():
    """Two circles are intersected for each dyad; the second one hangs on the coupler of the first."""

    def meet(P, Q, p, q, side):
        u = Q - P
        length = np.linalg.norm(u)
        along = (p * p - q * q + length**2) / (2 * length)
        across = side * sqrt(p * p - along * along)
        e = u / length
        return P + along * e + across * np.array([-e[1], e[0]])

    a, b, c, base = 1.0, 3.0, 2.5, np.array([3.5, 0.0])
    far, p, q, second = 2.0, 2.2, 1.8, np.array([5.5, 0.5])  # point of the rocker beyond C, link, second rocker, pivot
    m = cd.Mechanism("six-bar")
    parts = {name: m.body(name) for name in ("crank", "coupler", "rocker", "link", "lever")}
    angle = 0.8
    A = a * np.array([cos(angle), sin(angle)])
    C = meet(A, base, b, c, 1)
    E = base + (C - base) @ np.array([[cos(-0.6), sin(-0.6)], [-sin(-0.6), cos(-0.6)]]) * (far / c)
    F = meet(E, second, p, q, 1)
    for name, start, end in (
        ("crank", np.zeros(2), A),
        ("coupler", A, C),
        ("rocker", base, C),
        ("link", E, F),
        ("lever", second, F),
    ):
        parts[name].position = (*start, 0)
        parts[name].orientation = about(Z, atan2(*(end - start)[::-1]))
    hinge = m.revolute("O", m.ground.frame(), parts["crank"].frame())
    m.revolute("A", parts["crank"].frame((a, 0, 0)), parts["coupler"].frame())
    m.revolute("C", parts["coupler"].frame((b, 0, 0)), parts["rocker"].frame((c, 0, 0)))
    m.revolute("D", m.ground.frame((*base, 0)), parts["rocker"].frame())
    at = far * np.array([cos(-0.6), sin(-0.6), 0])
    m.revolute("E", parts["rocker"].frame(at), parts["link"].frame())
    m.revolute("F", parts["link"].frame((p, 0, 0)), parts["lever"].frame((q, 0, 0)))
    m.revolute("H", m.ground.frame((*second, 0)), parts["lever"].frame())
    m.drive("motor", hinge, lambda t: angle + t)
    motion = checked(m.move(np.linspace(0, 2 * pi, 73)))
    for state, t in zip(motion.states, motion.times, strict=True):
        A = a * np.array([cos(angle + t), sin(angle + t)])
        C = meet(A, base, b, c, 1)
        u = (C - base) / c
        E = base + at[0] * u + at[1] * np.array([-u[1], u[0]])
        F = meet(E, second, p, q, 1)
        lever = state["lever"].position + state["lever"].matrix @ (q, 0, 0)
        assert lever[:2] == pytest.approx(F, abs=1e-11)


# --- forces -----------------------------------------------------------------------------------------------------------


def test_a_toggle_press_multiplies_its_force():
    """Two equal links at the angle α to their line: the ram presses with P / (2 tan α) where P bends them straight."""
    length, push = 0.2, 100.0
    for alpha in (0.3, 0.05, 0.005):
        m = cd.Mechanism("toggle", gravity=(0, 0, 0))
        up, down = (
            m.body(n, orientation=about(Z, a), mass=1.0, inertia=np.eye(3))
            for n, a in (("up", alpha), ("down", -alpha))
        )
        down.position = (length * cos(alpha), length * sin(alpha), 0)
        ram = m.body("ram", position=(2 * length * cos(alpha), 0, 0), mass=1.0, inertia=np.eye(3))
        m.revolute("base", m.ground.frame(), up.frame())
        m.revolute("knee", up.frame((length, 0, 0)), down.frame())
        m.revolute("wrist", down.frame((length, 0, 0)), ram.frame())
        slide = m.prismatic("guide", m.ground.frame(z=X, x=Z), ram.frame(z=X, x=Z))
        m.drive("work", slide, 2 * length * cos(alpha))
        m.force("push", up.point((length, 0, 0)), (0, -push, 0))
        eq = m.equilibrium(checked(m.assemble()).state)
        assert eq.ok, eq.text()
        assert eq.effort("work") == pytest.approx(-push / (2 * tan(alpha)), rel=1e-9)


@pytest.mark.parametrize("light", [1e-3, 1e-5, 1e-7, 1e-8])
def test_a_scissor_lift_needs_the_force_of_its_angle(light):
    """W on a table on one pair of crossed arms: a horizontal actuator at the foot pushes with W / tan θ.

    The joints are redundant, and the arms are lighter than the table by factors up to 5e9.
    """
    length, load, theta = 1.0, 500.0, 0.5
    m = cd.Mechanism("lift", gravity=(0, -G, 0))
    own = {"mass": light, "inertia": light * np.eye(3), "center": (length / 2, 0, 0)}
    one = m.body("one", orientation=about(Z, theta), **own)
    two = m.body("two", position=(length * cos(theta), 0, 0), orientation=about(Z, pi - theta), **own)
    table = m.body("table", position=(0, length * sin(theta), 0), mass=load / G, inertia=np.eye(3))
    m.revolute("foot", m.ground.frame(), one.frame())
    m.revolute("cross", one.frame((length / 2, 0, 0)), two.frame((length / 2, 0, 0)))
    m.revolute("head", two.frame((length, 0, 0)), table.frame())
    roller = m.point_on_line("roller", two.point(), m.ground.frame(z=X))
    m.point_in_plane("rest", one.point((length, 0, 0)), table.frame(z=Y))
    m.drive("actuator", roller, length * cos(theta))
    state = checked(m.assemble()).state
    wanted = pytest.approx(-(load + light * G) / tan(theta), rel=1e-7)  # the arms are lifted by half its height
    eq = m.equilibrium(state)
    assert eq.ok, eq.text()
    assert eq.effort("actuator") == wanted
    assert checked(m.simulate(0.01, state)).effort("actuator")[-1] == wanted
    assert checked(m.move([0.0], state)).effort("actuator")[0] == wanted


def test_a_rotor_out_of_balance_shakes_its_bearings():
    """[Uicker2011] chapter 14: m e ω² of the eccentric mass, and the couple of its products of inertia, I_yz ω²."""
    rate, half, mass, e, product = 50.0, 0.4, 3.0, 2e-3, 5e-3
    m = cd.Mechanism("rotor", gravity=(0, 0, 0))
    rotor = m.body("rotor", mass=mass, center=(e, 0, 0), inertia=[[0.05, 0, product], [0, 0.06, 0], [product, 0, 0.03]])
    m.spherical("left", m.ground.point((0, 0, -half)), rotor.point((0, 0, -half)))
    m.point_on_line("right", rotor.point((0, 0, half)), m.ground.frame())
    turn = cd.coordinate(m.ground.frame(), rotor.frame(), "angle")
    m.drive("motor", turn, lambda t: rate * t)
    motion = checked(m.move(np.linspace(0, 0.2, 21)))
    phi = rate * motion.times
    out = np.column_stack([np.cos(phi), np.sin(phi), 0 * phi])
    shake = mass * e * rate**2
    couple = product * rate**2 / (2 * half)  # inertia[0][2] = ∫ −xz dm is +: the mass at +z is at −x
    assert np.abs(motion.reaction("left").force + (shake / 2 + couple) * out).max() < 1e-8
    right = motion.reaction("right", on="rotor").force
    assert np.abs(right + (shake / 2 - couple) * out).max() < 1e-8


def test_a_planar_arm_needs_the_torques_of_its_closed_form():
    """[Craig2005] section 6.7: two links with point masses at their ends."""
    l_1, l_2, m_1, m_2 = 0.5, 0.4, 2.0, 1.5
    m = cd.Mechanism("arm", gravity=(0, -G, 0))
    small = 1e-9 * np.eye(3)
    upper = m.body("upper", mass=m_1, center=(l_1, 0, 0), inertia=small)
    fore = m.body("fore", position=(l_1, 0, 0), mass=m_2, center=(l_2, 0, 0), inertia=small)
    m.revolute("shoulder", m.ground.frame(), upper.frame())
    m.revolute("elbow", upper.frame((l_1, 0, 0)), fore.frame())
    m.drive("1", m["shoulder"], lambda t: 0.3 + 2 * t - t * t)
    m.drive("2", m["elbow"], lambda t: -0.5 + cd.sin(3 * t))
    motion = checked(m.move(np.linspace(0, 2, 41)))
    t = motion.times
    q1, d1, a1 = 0.3 + 2 * t - t * t, 2 - 2 * t, -2.0
    q2, d2, a2 = -0.5 + np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)
    c1, c2, s2, c12 = np.cos(q1), np.cos(q2), np.sin(q2), np.cos(q1 + q2)
    torque_1 = (
        m_2 * l_2**2 * (a1 + a2)
        + m_2 * l_1 * l_2 * c2 * (2 * a1 + a2)
        + (m_1 + m_2) * l_1**2 * a1
        - m_2 * l_1 * l_2 * s2 * d2**2
        - 2 * m_2 * l_1 * l_2 * s2 * d1 * d2
        + m_2 * l_2 * G * c12
        + (m_1 + m_2) * l_1 * G * c1
    )
    torque_2 = m_2 * l_1 * l_2 * c2 * a1 + m_2 * l_1 * l_2 * s2 * d1**2 + m_2 * l_2 * G * c12 + m_2 * l_2**2 * (a1 + a2)
    assert np.abs(motion.effort("1") - torque_1).max() < 1e-6
    assert np.abs(motion.effort("2") - torque_2).max() < 1e-6


# --- motions under forces ---------------------------------------------------------------------------------------------


def test_a_porter_governor_rises_to_the_height_of_its_speed():
    """h = (m + M) g / (m ω²) for equal arms that meet on the axis, each ball of mass m, the sleeve of mass M."""
    arm, ball, sleeve, rate = 0.25, 2.0, 10.0, 16.0
    height = (ball + sleeve) * G / (ball * rate**2)
    alpha = acos(height / arm)
    m = cd.Mechanism("governor", gravity=(0, 0, -G))
    tiny = 1e-9 * np.eye(3)
    shaft = m.body("shaft", mass=1.0, inertia=np.eye(3))
    weight = m.body("sleeve", position=(0, 0, -2 * height), mass=sleeve, inertia=0.01 * np.eye(3))
    axle = m.revolute("axle", m.ground.frame(), shaft.frame())
    m.prismatic("along", shaft.frame(), weight.frame())
    for k, side in enumerate((1, -1)):
        upper = m.body(f"upper {k}", orientation=about(Y, -side * alpha), mass=ball, center=(0, 0, -arm), inertia=tiny)
        end = (side * arm * sin(alpha), 0, -height)
        lower = m.body(f"lower {k}", position=end, orientation=about(Y, side * alpha), mass=1e-6, inertia=tiny)
        m.revolute(f"top {k}", shaft.frame(z=Y), upper.frame(z=Y))
        m.spherical(f"ball {k}", upper.point((0, 0, -arm)), lower.point())
        m.revolute(f"foot {k}", lower.frame((0, 0, -arm), z=Y), weight.frame(z=Y))
    m.drive("motor", axle, lambda t: rate * t)
    state = m.solve_rates(checked(m.assemble()).state, {"along": 0.0})
    found = checked(m.simulate(0.5, state, rtol=1e-10))
    assert np.abs(found.coordinate("along") + 2 * height).max() < 2e-5  # the lower arms have a little mass


def test_a_bead_on_a_turning_hoop():
    """[Goldstein2002]: it rests at cos θ = g/(ω² R), and swings about this angle with ω sin θ."""
    R, rate = 0.5, 8.0
    theta = acos(G / (rate**2 * R))
    m = cd.Mechanism("hoop", gravity=(0, 0, -G))
    hoop = m.body("hoop", mass=1.0, inertia=np.eye(3))
    start = theta + 1e-4
    bead = m.body("bead", position=(R * sin(start), 0, -R * cos(start)), mass=0.3, inertia=1e-6 * np.eye(3))
    axle = m.revolute("axle", m.ground.frame(), hoop.frame())
    m.distance("on", hoop.point(), bead.point(), R)
    m.point_in_plane("in", bead.point(), hoop.frame(z=Y))
    m.drive("motor", axle, lambda t: rate * t)
    swing = rate * sin(theta)
    rates = np.zeros((2, 6))
    rates[0, 5], rates[1, 1] = rate, rate * R * sin(start)
    state = checked(m.assemble()).state
    found = checked(m.simulate(2 * pi / swing, state.with_rates(rates), rtol=1e-11))
    angle = np.arccos(-found.positions("bead")[:, 2] / R)
    assert np.abs(angle - theta - 1e-4 * np.cos(swing * found.times)).max() < 1e-7


def test_a_conical_pendulum_goes_round():
    """ω² = g / (l cos θ), and the rod pulls with m g / cos θ."""
    length, theta, mass = 1.2, 0.7, 0.4
    rate = sqrt(G / (length * cos(theta)))
    m = cd.Mechanism("conical")
    bob = m.body("bob", position=(length * sin(theta), 0, -length * cos(theta)), mass=mass, inertia=1e-9 * np.eye(3))
    m.distance("rod", m.ground.point(), bob.point(), length)
    found = checked(m.simulate(5.0, m.state.with_rates([[0, rate * length * sin(theta), 0, 0, 0, 0]]), rtol=1e-11))
    phi = rate * found.times
    path = length * np.column_stack([sin(theta) * np.cos(phi), sin(theta) * np.sin(phi), -cos(theta) + 0 * phi])
    assert np.abs(found.positions("bob") - path).max() < 1e-7
    assert np.abs(np.linalg.norm(found.reaction("rod").force, axis=1) - mass * G / cos(theta)).max() < 1e-7


def test_foucaults_pendulum_turns_against_the_earth():
    """On a base that turns with Ω the plane of small swings turns with −Ω sin(latitude) in the axes of the base."""
    turn, length, latitude = 0.02, 10.0, 0.7
    natural = sqrt(G / length)
    m = cd.Mechanism("Foucault", gravity=(0, 0, 0))
    up = np.array([cos(latitude), 0, sin(latitude)])  # world z is the axis of the earth
    base = m.body("base", mass=1.0, inertia=np.eye(3))
    bob = m.body("bob", mass=1.0, inertia=1e-9 * np.eye(3))
    axle = m.revolute("axle", m.ground.frame(), base.frame())
    m.drive("earth", axle, lambda t: turn * t)
    m.bushing("gravity", base.frame(), bob.frame(), (natural**2,) * 3 + (0, 0, 0))
    m.point_in_plane("level", bob.point(), base.frame(z=up))
    east, north = Y, np.cross(up, Y)
    a = 0.1
    bob.position = a * east
    rates = np.zeros((2, 6))
    rates[0, 5] = turn
    rates[1, :3] = np.cross((0, 0, turn), a * east)  # at rest in the base
    found = checked(m.simulate(60.0, checked(m.assemble()).state.with_rates(rates), rtol=1e-10))
    spin_rate = turn * sin(latitude)
    # q̈ + 2i s q̇ + (k − c) q = 0 in the plane of the base, with the centrifugal forces in both directions
    k_e, k_n = natural**2 - turn**2, natural**2 - (turn * sin(latitude)) ** 2

    def equations(t, y):
        return y[2], y[3], -k_e * y[0] + 2 * spin_rate * y[3], -k_n * y[1] - 2 * spin_rate * y[2]

    exact = solve_ivp(equations, (0, 60), (a, 0, 0, 0), method="DOP853", rtol=1e-11, atol=1e-13, t_eval=found.times).y
    for state, q in zip(found.states, exact[:2].T, strict=True):
        local = state["base"].matrix.T @ state["bob"].position
        assert [local @ east, local @ north] == pytest.approx(q, abs=1e-7)
    assert abs(exact[1]).max() > 0.04  # the plane of the swings has turned


def test_a_bifilar_suspension_swings_with_the_period_of_its_inertia():
    """ω² = m g a² / (J l) about the vertical, for threads of the length l at ± a; both other swings are those of l."""
    a, length, mass = 0.2, 1.5, 3.0
    J = (0.02, 0.09, 0.1)
    m = cd.Mechanism("bifilar")
    bar = m.body("bar", position=(0, 0, -length), mass=mass, inertia=np.diag(J))
    for k, x in enumerate((-a, a)):
        m.distance(f"thread {k}", m.ground.point((x, 0, 0)), bar.point((x, 0, 0)), length)
    lin = m.linearize(checked(m.assemble()).state)
    found = sorted(2 * pi * lin.frequencies)
    wanted = [sqrt(G / length), sqrt(G / length), sqrt(mass * G * a * a / (J[2] * length))]
    assert sorted(found)[-3:] == pytest.approx(sorted(wanted), rel=1e-6)


def test_a_cylinder_rolls_in_a_trough():
    """ω² = 2 g / (3 (R − r)) for a solid cylinder."""
    R, r, mass = 1.0, 0.25, 2.0
    m = cd.Mechanism("trough", gravity=(0, -G, 0))
    J = 0.5 * mass * r * r
    wheel = m.body("wheel", position=(0, -(R - r), 0), mass=mass, inertia=np.diag([J, J, J]))
    m.planar("flat", m.ground.frame(), wheel.frame())
    outer, inner = m.ground.attach(cd.geometry.circle(R)), wheel.attach(cd.geometry.circle(r))
    m.contact("roll", outer, inner, mode="roll", side="inside")
    state = checked(m.assemble()).state
    lin = m.linearize(state)
    assert 2 * pi * lin.frequencies[-1] == pytest.approx(sqrt(2 * G / (3 * (R - r))), rel=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 0.4, 0.1])
def test_eulers_disk_rolls_round_its_own_centre(alpha):
    """Ω² sin α = 4 g / a for a thin disc whose centre rests: it turns about its diameter to the point of contact."""
    a, mass = 0.1, 0.5
    rate = sqrt(4 * G / (a * sin(alpha)))
    m = cd.Mechanism("Euler's disk")
    J = mass * a * a / 4
    disc = m.body(
        "disc", position=(0, 0, a * sin(alpha)), orientation=about(Y, alpha), mass=mass, inertia=np.diag([J, J, 2 * J])
    )
    m.wheel("edge", disc.frame(), a)
    state = checked(m.assemble()).state
    R = state["disc"].matrix
    low = R @ X  # the diameter to the point of contact: down
    sign = 1.0 if low[2] < 0 else -1.0
    omega = rate * sin(alpha) * sign * low
    found = checked(m.simulate(0.2, state.with_rates([[0, 0, 0, *(R.T @ omega)]]), rtol=1e-11))
    assert np.abs(found.positions("disc") - (0, 0, a * sin(alpha))).max() < 1e-7
    assert np.abs(found.reaction("edge", on="disc").force - (0, 0, mass * G)).max() < 1e-5
    axes = np.array([s["disc"].matrix[:, 2] for s in found.states])
    assert np.abs(axes[:, 2] - cos(alpha)).max() < 1e-7
    turned = np.unwrap(np.arctan2(axes[:, 1], axes[:, 0]))
    assert np.abs(np.abs(turned - turned[0]) - rate * found.times).max() < 1e-5


def test_a_top_sleeps_above_its_critical_spin():
    """C² n² > 4 A m g l: a small nutation stays small; below, it grows with the rate of the closed form."""
    A, C, mass, length = 0.02, 0.01, 1.0, 0.1
    critical = 2 * sqrt(A * mass * G * length) / C
    for share in (1.2, 0.8):
        n, tilt = share * critical, 1e-4
        m = cd.Mechanism("top")
        top = m.body(
            "top",
            orientation=about(Y, tilt),
            mass=mass,
            center=(0, 0, length),
            inertia=np.diag([A - mass * length**2] * 2 + [C]),
        )
        m.spherical("tip", m.ground.point(), top.point())
        found = checked(m.simulate(0.6, m.state.with_rates([[0, 0, 0, 0, 0, n]]), rtol=1e-11))
        # A q̈ − i C n q̇ − m g l q = 0 of the complex inclination q
        roots = np.roots([A, -1j * C * n, -mass * G * length])
        # q(0) = tilt, q̇(0) = 0
        weights = np.linalg.solve(np.array([[1, 1], roots]), np.array([tilt, 0]))
        exact = np.abs(np.exp(np.outer(found.times, roots)) @ weights)
        axes = np.array([s["top"].matrix[:, 2] for s in found.states])
        assert np.abs(np.hypot(axes[:, 0], axes[:, 1]) - exact).max() < 1e-5 * exact.max()
        assert (exact.max() < 5 * tilt) == (share > 1)


@pytest.mark.slow
def test_a_swinging_atwood_machine_follows_its_equations():
    """(M + m) r̈ = m r θ̇² − M g + m g cos θ, d(r² θ̇)/dt = −g r sin θ; the rope over small pulleys is a coupling."""
    heavy, bob = 3.0, 1.0
    m = cd.Mechanism("swinging Atwood", gravity=(0, -G, 0))
    arm = m.body("arm", orientation=about(Z, 1.0), mass=1e-9, inertia=1e-12 * np.eye(3))
    swing = m.body(
        "bob", position=(sin(1.0), -cos(1.0), 0), orientation=about(Z, 1.0), mass=bob, inertia=1e-12 * np.eye(3)
    )
    load = m.body("load", position=(-1, -1, 0), mass=heavy, inertia=np.eye(3))
    m.revolute("pivot", m.ground.frame(), arm.frame())
    r = m.prismatic("r", arm.frame(z=-Y, x=Z), swing.frame(z=-Y, x=Z))
    s = m.prismatic("s", m.ground.frame((-1, 0, 0), z=-Y, x=Z), load.frame(z=-Y, x=Z))
    m.couple("rope", r, s, lambda x: 2.0 - x)
    found = checked(m.simulate(2.0, rtol=1e-11))

    def equations(t, y):
        r, theta, dr, w = y
        return (
            dr,
            w,
            (bob * r * w * w - heavy * G + bob * G * cos(theta)) / (heavy + bob),
            -(2 * dr * w + G * sin(theta)) / r,
        )

    exact = solve_ivp(equations, (0, 2), (1, 1, 0, 0), method="DOP853", rtol=1e-12, atol=1e-12, t_eval=found.times).y
    assert np.abs(found.coordinate("r") - exact[0]).max() < 1e-6
    assert np.abs(found.coordinate("pivot") - exact[1]).max() < 1e-6
