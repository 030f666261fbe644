"""Andrews' squeezing mechanism as plain data, for every program: seven bodies in a plane, a spring and a torque.

Numbers as in the Test Set for IVP Solvers; units m, kg, s.  At E three pins join four bodies.
"""

from __future__ import annotations

import numpy as np

import cardan as cd
from problems import Z, quaternion, rotation

DURATION = 0.03
BETA = 15.81077119629904  # [rad] of K1 at the end, as the Test Set prints it
A, B, C = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)
MASSES = (0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498)
INERTIAS = (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5)
RR, D, SS, E, ZT, ZF, U = 0.007, 0.028, 0.035, 0.02, 0.04, 0.02, 0.04
START = (-0.06171389001427645, 0.0, 0.4552798191630704, 0.22266839016588588)
START += (0.48736497954384255, -0.22266839016588588, 1.2305474445498212)  # β, Θ, γ, Φ, δ, Ω, ε
STIFFNESS, REST, ATTACHED, TORQUE = 4530.0, 0.07785, (0.02, -0.018), 0.033


def _turned(angle: float, x: float, y: float = 0.0) -> np.ndarray:
    return np.array([np.cos(angle) * x - np.sin(angle) * y, np.sin(angle) * x + np.cos(angle) * y])


def places() -> list[tuple[np.ndarray, float]]:
    """Position of the first pin of each body and its angle, at the start."""
    beta, theta, gamma, phi, delta, omega, eps = START
    a, b = np.array(A), np.array(B)
    at = [np.zeros(2), _turned(beta, RR), b, a + _turned(delta, ZT), a, a + _turned(eps, 0.0, -U), a]
    angles = [beta, beta + theta, gamma, phi + delta, delta, omega + eps, eps]
    return list(zip(at, angles, strict=True))


CENTERS = ((9.2e-4, 0), (-0.0115, 0), (0.01874, 0.01043), (0, -(E - 0.01421)), (0.02308, 0.00916))
CENTERS += ((ZF - 0.01421, 0), (0.01228, -0.00449))
# bodies from 1, 0 the ground; a tree, then the pins that close its loops
TREE = ((0, (0, 0), 1, (0, 0)), (1, (RR, 0), 2, (0, 0)), (0, B, 3, (0, 0)), (0, A, 5, (0, 0)), (0, A, 7, (0, 0)))
TREE += ((5, (ZT, 0), 4, (0, 0)), (7, (0, -U), 6, (0, 0)))
LOOPS = ((2, (-D, 0), 3, (0, -SS)), (2, (-D, 0), 4, (0, -E)), (2, (-D, 0), 6, (ZF, 0)))


def build() -> cd.Mechanism:
    """Our mechanism."""
    m = cd.Mechanism("squeezer", gravity=(0.0, 0.0, 0.0))
    bodies = {0: m.ground}
    for k, (at, angle) in enumerate(places(), start=1):
        bodies[k] = m.body(
            f"K{k}",
            position=(*at, 0.0),
            orientation=quaternion(rotation(Z, angle)),
            mass=MASSES[k - 1],
            center=(*CENTERS[k - 1], 0.0),
            inertia=INERTIAS[k - 1] * np.eye(3),
        )
    for number, (i, p, j, q) in enumerate((*TREE, *LOOPS)):
        m.revolute(f"pin {number}", bodies[i].frame((*p, 0), z=Z), bodies[j].frame((*q, 0), z=Z))
    ends = m.ground.point((*C, 0)), bodies[3].point((*ATTACHED, 0))
    m.spring("spring", *ends, stiffness=STIFFNESS, rest=REST)
    m.actuator("motor", m["pin 0"], TORQUE)
    return m
