"""Andrews' squeezing mechanism: our results, the figures of [TestSet2008], and its equations.

The Test Set prints 16 digits.  Its multipliers have fewer right ones: at the angles and velocities that it prints, its
own equations give λ₆ = 11.6173924, and it prints 11.6174070.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cardan as cd
from mechanisms import quaternion, rotation

X, Y, Z = np.eye(3)
CLOSED = 1e-12  # relative to the extent, rad
# [m, kg, kg m², N/m, N m] as in the Test Set for IVP solvers, whose letters these are
A_GROUND, B_GROUND, C_GROUND = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)
MASSES = (0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498)
INERTIAS = (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5)
RR, D, SS, E, ZT, ZF, U = 0.007, 0.028, 0.035, 0.02, 0.04, 0.02, 0.04
CENTERS = [(9.2e-4, 0), (-0.0115, 0), (0.01874, 0.01043), (0, -(E - 0.01421)), (0.02308, 0.00916)]
CENTERS += [(ZF - 0.01421, 0), (0.01228, -0.00449)]
STIFFNESS, REST, ATTACHED, TORQUE = 4530.0, 0.07785, (0.02, -0.018), 0.033
# β, Θ, γ, Φ, δ, Ω, ε [rad] at rest
START = (
    -0.0617138900142764496358948458001,
    0.0,
    0.455279819163070380255912382449,
    0.222668390165885884674473185609,
    0.487364979543842550225598953530,
    -0.222668390165885884674473185609,
    1.23054744454982119249735015568,
)


def turned_by(angle, x, y=0.0):
    return np.array([np.cos(angle) * x - np.sin(angle) * y, np.sin(angle) * x + np.cos(angle) * y])


def squeezer():
    """Seven bodies, each with its origin at its first pin; three revolutes join four of them at E."""
    beta, theta, gamma, phi, delta, omega, eps = START
    A, B = np.array(A_GROUND), np.array(B_GROUND)
    at = [(0.0, 0.0), turned_by(beta, RR), B, A + turned_by(delta, ZT), A, A + turned_by(eps, 0.0, -U), A]
    angles = [beta, beta + theta, gamma, phi + delta, delta, omega + eps, eps]
    m = cd.Mechanism("squeezer", gravity=(0.0, 0.0, 0.0))
    k = [
        m.body(
            f"K{i + 1}",
            position=(*at[i], 0.0),
            orientation=quaternion(rotation(Z, angles[i])),
            mass=MASSES[i],
            center=(*CENTERS[i], 0.0),
            inertia=INERTIAS[i] * np.eye(3),
        )
        for i in range(7)
    ]
    pins = {
        "O": (m.ground, (0, 0), k[0], (0, 0)),
        "F": (k[0], (RR, 0), k[1], (0, 0)),
        "B": (m.ground, B_GROUND, k[2], (0, 0)),
        "A5": (m.ground, A_GROUND, k[4], (0, 0)),
        "A7": (m.ground, A_GROUND, k[6], (0, 0)),
        "H": (k[4], (ZT, 0), k[3], (0, 0)),
        "G": (k[6], (0, -U), k[5], (0, 0)),
        "E3": (k[1], (-D, 0), k[2], (0, -SS)),
        "E4": (k[1], (-D, 0), k[3], (0, -E)),
        "E6": (k[1], (-D, 0), k[5], (ZF, 0)),
    }
    for name, (a, p, b, q) in pins.items():
        m.revolute(name, a.frame((*p, 0), z=Z, x=X), b.frame((*q, 0), z=Z, x=X))
    m.spring("spring", m.ground.point((*C_GROUND, 0)), k[2].point((*ATTACHED, 0)), stiffness=STIFFNESS, rest=REST)
    m.actuator("motor", m["O"], TORQUE)
    return m


def planar_force(m, state, bodies, pins, at, torque=0.0):
    """Force [N] on the first of two bodies in a chain, at a point, from moments about their pins (Newton–Euler).

    torque [N m]: on the second.
    """
    moments, arms = [], []
    for members, pin, other in ((bodies[:1], pins[0], 0.0), (bodies, pins[1], torque)):
        moment = -other
        for name in members:
            body, pose, k = m[name], state[name], state.names.index(name)
            arm, turn, spin = pose.vector(body.center), state.accelerations[k], state.velocities[k, 5]
            a = turn[:3] + turn[5] * np.cross(Z, arm) - spin**2 * arm
            moment += body.mass * np.cross(pose.position + arm - pin, a)[2] + body.inertia[2][2] * turn[5]
        moments.append(moment)
        arms.append([pin[1] - at[1], at[0] - pin[0]])
    return np.linalg.solve(arms, moments)


# printed at .03 s: angles [rad], velocities [rad/s], multipliers [N]
ANGLES = [15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948]
ANGLES += [0.5244099658805304, 0.5347301163226948, 1.048080741042263]
RATES = [1139.920302151208, -1424.379294994111, 11.03291221937134, 19.29337464421385, 0.5735699284790808]
RATES += [-19.29337464421385, 0.3231791658026955]
MULTIPLIERS = np.array([199.1753333731910, -29.75531228015052, 23.06654119098399])
MULTIPLIERS = np.append(MULTIPLIERS, [31.45271365475927, 22.64249232082739, 11.61740700019673])


class InAngles:
    """The equations of the Test Set: M(q) q̈ + Gᵀλ = f, G q̈ = γ in the seven angles q = (β, Θ, γ, Φ, δ, Ω, ε).

    Points of the plane are complex numbers, sums of c e^{iθ} over the angles θ = T q of the bodies from the x axis.
    A row of CENTERS has the c of one centre of mass, a row of LOOPS those of E by K2 less those of E by K3, K4 or K6.
    """

    T = np.eye(7)
    T[[1, 3, 5], [0, 4, 6]] = 1.0
    CENTERS = np.diag([complex(*c) for c in CENTERS])
    CENTERS[[1, 3, 5], [0, 4, 6]] = RR, ZT, -1j * U
    LOOPS = np.array([[RR, -D, 1j * SS, 0, 0, 0, 0], [RR, -D, 0, 1j * E, -ZT, 0, 0], [RR, -D, 0, 0, 0, -ZF, 1j * U]])

    def solve(self, q, v):
        """q̈ and λ."""
        T, e, spins = self.T, np.exp(1j * (self.T @ q)), self.T @ v
        moves, bends = 1j * (self.CENTERS * e) @ T, -(self.CENTERS * e) @ spins**2
        M = (moves.conj().T * MASSES @ moves).real + T.T * INERTIAS @ T
        f = -(moves.conj().T @ (MASSES * bends)).real
        f[0] += TORQUE
        arm = complex(*ATTACHED) * e[2]
        spring = complex(*B_GROUND) + arm - complex(*C_GROUND)
        f[2] -= STIFFNESS * (1 - REST / abs(spring)) * (spring.conjugate() * 1j * arm).real
        opens, drops = 1j * (self.LOOPS * e) @ T, (self.LOOPS * e) @ spins**2
        G = np.stack([opens.real, opens.imag], axis=1).reshape(6, 7)
        gamma = np.stack([drops.real, drops.imag], axis=1).ravel()
        x = np.linalg.solve(np.block([[M, G.T], [G, np.zeros((6, 6))]]), np.concatenate([f, gamma]))
        return x[:7], x[7:]

    def rates(self, t, y):
        return np.concatenate([y[7:], self.solve(y[:7], y[7:])[0]])


@cache
def recomputed():
    """Angles and multipliers at .03 s by these equations."""
    start = np.concatenate([START, np.zeros(7)])
    found = solve_ivp(InAngles().rates, (0.0, 0.03), start, method="DOP853", rtol=1e-13, atol=1e-15)
    q, v = np.split(found.y[:, -1], 2)
    return q, InAngles().solve(q, v)[1]


def test_the_equations_in_angles_are_those_of_the_test_set():
    """At the start they give all digits of what the Test Set prints there, and the loops are closed."""
    accelerations, multipliers = InAngles().solve(np.array(START), np.zeros(7))
    assert accelerations == pytest.approx([14222.4439199541, -10666.8329399656, 0, 0, 0, 0, 0], rel=1e-13, abs=1e-8)
    assert multipliers == pytest.approx([98.5668703962411, -6.12268834425567, 0, 0, 0, 0], rel=1e-12, abs=1e-9)
    A, B = complex(*A_GROUND), complex(*B_GROUND)
    assert np.abs(InAngles.LOOPS @ np.exp(1j * (InAngles.T @ START)) - [B, A, A]).max() <= 1e-16


@pytest.mark.slow
def test_the_printed_multipliers_do_not_belong_to_the_printed_angles_and_velocities():
    """They have 6 to 7 right digits; those of the printed angles and velocities have more."""
    at_printed = InAngles().solve(np.array(ANGLES), np.array(RATES))[1]
    _, multipliers = recomputed()
    assert at_printed == pytest.approx(multipliers, rel=1e-8)
    differences = np.abs(MULTIPLIERS / at_printed - 1.0)
    assert differences[:5].max() <= 1e-6
    assert differences[5] == pytest.approx(1.26e-6, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"step": 5e-6}, {"rtol": 1e-11}], ids=["5 us", "rtol"])
def test_the_squeezer_agrees_with_the_test_set_and_its_equations(options):
    """The seven angles and the six multipliers at .03 s."""
    m = squeezer()
    found = m.simulate(0.03, **options)
    assert found.ok and found.drift.max() <= CLOSED, found.text()
    paths = [found.quaternions(f"K{i + 1}") for i in range(7)]
    one, two, three, four, five, six, seven = (2 * np.unwrap(np.arctan2(p[:, 3], p[:, 0]), period=np.pi) for p in paths)
    turned = [(a - a[0])[-1] for a in (one, two - one, three, four - five, five, six - seven, seven)]
    angles, exact = recomputed()
    assert np.abs(np.add(START, turned) - ANGLES).max() <= 1e-8
    assert np.abs(np.add(START, turned) - angles).max() <= 1e-9
    state = found.states[-1]
    at, A = state["K2"].point((-D, 0, 0)), np.array([*A_GROUND, 0])
    on_4 = planar_force(m, state, ("K4", "K5"), (state["K4"].position, A), at)
    on_6 = planar_force(m, state, ("K6", "K7"), (state["K6"].position, A), at)
    on_2 = planar_force(m, state, ("K2", "K1"), (state["K2"].position, np.zeros(3)), at, torque=TORQUE)
    multipliers = np.array([*(-on_2 - on_4 - on_6), *on_4, *on_6])
    assert multipliers == pytest.approx(exact, rel=1e-8)
    assert multipliers[:5] == pytest.approx(MULTIPLIERS[:5], rel=1e-6)
    assert np.abs(multipliers - MULTIPLIERS).max() <= 1e-6 * np.max(MULTIPLIERS)
    # The forces that the pins exert are the same multipliers, if their redundancy out of the plane is left aside.
    reactions = [found.reaction(m[name], on="K2").force[-1, :2] for name in ("E3", "E4", "E6")]
    assert np.abs(reactions + exact.reshape(3, 2)).max() <= 1e-8 * np.max(exact)
