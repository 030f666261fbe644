"""The operator in the loop, measured: cost of a servo cycle, and the hand as a constraint against the hand as a spring.

The papers announce these data, but do not contain them.  A hand may be a constraint (its force is that of the
constraint), a spring whose force is computed from the last sample and held for a cycle (explicit, as a haptic device
does), or the implicit spring of a dynamic session.  The dense method solves all equations of the mechanism
as one full matrix, as a calibration does, without the hand: its cost grows with the cube of the number of bodies.

A force that is held for a cycle h acts half a cycle late, so that the explicit spring adds energy.  A mass with damping
b bears a stiffness of about 2b/h at the most, and none without damping.  [Colgate1997]
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from cardan.examples import REGISTRY
from cardan.interact import servo
from cardan.mechanism import Mechanism
from cardan.system.state import FloatArray

RATES: Final = (250.0, 500.0, 1000.0, 2000.0, 4000.0)  # Hz
BODIES: Final = (2, 5, 10, 20, 50, 100, 200)
DENSE_BODIES: Final = 100  # the dense method is not timed beyond: its cost grows with the cube
MASS: Final = 1.0  # kg
DAMPING: Final = 100.0  # N s/m, of the slide that carries it
SWINGS: Final = 1000  # cycles after which a motion is judged
PARTS: Final = 200
ROUNDING: Final = 1e-16  # smaller errors are drawn there
CYCLES: Final = 2000


@dataclass(frozen=True)
class Cycle:
    """Times [s] of one servo cycle from Python, with a new target in each: median and 99 %."""

    mechanism: str
    bodies: int
    median: float
    p99: float
    residual: float


@dataclass(frozen=True)
class Stability:
    """Largest stable stiffness [N/m] of a hand on a damped mass at a rate [Hz]; inf where every one is stable.

    ``error``: of the force at rest, relative to statics, of the constraint and of the implicit spring.
    """

    rate: float
    explicit: float
    implicit: float
    constraint_error: float
    spring_error: float


@dataclass(frozen=True)
class Cost:
    """Seconds of one cycle of a chain of bodies: kinematic session, dynamic ones, and the dense method."""

    bodies: int
    kinematic: float
    constraint: float
    spring: float
    dense: float


def chain(bodies: int) -> Mechanism:
    """Links of 1 m on ball joints, in a zigzag, the first on the ground."""
    m = Mechanism(f"chain_{bodies}", gravity=(0.0, 0.0, -9.81))
    last: Any = m.ground.point()
    at = np.zeros(3)
    for k in range(bodies):
        angle = 0.6 if k % 2 else -0.6
        turned = (math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2))
        link = m.body(
            f"link_{k}",
            position=at,
            orientation=turned,
            mass=1.0,
            inertia=np.diag([0.01, 0.1, 0.1]),
            center=(0.5, 0, 0),
        )
        m.spherical(f"joint_{k}", last, link.point())
        last = link.point((1, 0, 0))
        at = at + np.array([math.cos(angle), math.sin(angle), 0.0])
    return m


def grasped(name: str) -> tuple[Mechanism, str, tuple[float, float, float]]:
    """A mechanism by name, and where it is grasped: figure 5 of the paper for "rsur"."""
    if name == "parts":
        return chain(PARTS), f"link_{PARTS // 2}", (0.5, 0.0, 0.0)
    m = REGISTRY[name].build()
    body = "coupler" if name == "rsur" else "platform" if "platform" in m.bodies else list(m.bodies)[-1]
    return m, body, (2.0, 0.0, 0.0) if name == "rsur" else (0.0, 0.0, 0.0)


def measure_cycle(name: str, cycles: int = CYCLES) -> Cycle:
    """Time cycles whose targets move back and forth along x and y, 0.1 mm per cycle."""
    m, body, point = grasped(name)
    with m.session() as session:
        hand = session.grasp(body, point)
        x, y, z = hand.point.tolist()
        targets = [(x + 0.1 * math.sin(1e-3 * k), y + 0.05 * math.sin(1.3e-3 * k), z) for k in range(cycles + 100)]
        seconds: FloatArray = np.empty(len(targets))
        clock = time.perf_counter
        for k, target in enumerate(targets):
            start = clock()
            hand.target = target
            session.step()
            seconds[k] = clock() - start
        seconds = seconds[100:]
        return Cycle(
            name, len(m.bodies), float(np.median(seconds)), float(np.percentile(seconds, 99)), session.residual
        )


def measure_servo(rate: float, seconds: float) -> tuple[servo.ServoStats, servo.ServoStats]:
    """A servo thread on the RSUR for some seconds, with a new target every 2 ms; and an idle loop beside it.

    Both threads are disturbed by the same other programs, so that the difference is the part of the session.
    """
    m, body, point = grasped("rsur")
    with m.session() as session:
        hand = session.grasp(body, point)
        x, y, z = hand.point.tolist()
        session.step()
        idle: list[servo.ServoStats] = []
        servo.idle(rate, 1.0 / rate)  # loads its kernel
        control = threading.Thread(target=lambda: idle.append(servo.idle(rate, seconds)))
        running = session.serve(rate)
        control.start()
        end = time.perf_counter() + seconds
        k = 0
        while time.perf_counter() < end:
            hand.target = (x + 0.1 * math.sin(5e-3 * k), y, z)
            k += 1
            time.sleep(2e-3)
        found = running.stop()
        control.join()
    return found, idle[0]


def _slider(load: Any = None) -> Mechanism:
    m = Mechanism("mass", gravity=(0.0, 0.0, 0.0))
    block = m.body("block", mass=MASS, inertia=np.eye(3))
    m.prismatic("slide", m.ground.frame(z=(1, 0, 0)), block.frame(z=(1, 0, 0)))
    m.spring("oil", m["slide"], damping=DAMPING)
    if load is not None:
        m.force("hand", block.point(), load)
    return m


def explicit_limit(rate: float) -> float:
    """Largest stable stiffness [N/m] of the explicit spring in closed form; 2b/h for short cycles h.

    With a = b/m, e = exp(−a h) and κ = k/m, one cycle of m ẍ + b ẋ = −k x₀ is linear in (x, ẋ).  Its determinant,
    e + κ ((1 − e)/a² − e h/a), is one at the limit.
    """
    h, a = 1.0 / rate, DAMPING / MASS
    e = math.exp(-a * h)
    return MASS * (1.0 - e) / ((1.0 - e) / a**2 - e * h / a)


def _is_stable(stiffness: float, rate: float, implicit: bool) -> bool:
    """Whether a mass that begins 1 mm from the hand swings less in the last quarter of SWINGS cycles than in the first.

    Without a hand the mass would not swing, so that both quarters are of the hand.
    """
    held = [0.0]
    m = _slider(None if implicit else lambda t, state: (held[0], 0.0, 0.0))
    with m.session({"block": ((1e-3, 0, 0), (1, 0, 0, 0))}, mode="dynamic", rate=rate, hand="spring") as session:
        if implicit:
            hand = session.grasp("block", stiffness=stiffness, damping=0.0)
            hand.target = (0.0, 0.0, 0.0)
        swings = []
        for _ in range(SWINGS):
            held[0] = -stiffness * float(session.coordinates[0, 0])
            session.step()
            swings.append(abs(float(session.coordinates[0, 0])))
            if swings[-1] > 1.0:
                return False
        return max(swings[-SWINGS // 4 :]) < max(swings[: SWINGS // 4])


def measure_stability(rate: float) -> Stability:
    """Bisect the largest stable stiffness of the explicit spring; try the implicit one up to 10⁶ times as much."""
    low, high = 1e-3 * MASS * rate**2, 1e2 * MASS * rate**2
    while high / low > 1.02:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _is_stable(middle, rate, False) else (low, middle)
    implicit = math.inf if all(_is_stable(low * 10.0**k, rate, True) for k in range(7)) else low
    errors = []
    for kind in ("constraint", "spring"):
        m = Mechanism("bar", gravity=(0.0, -9.81, 0.0))
        bar = m.body("bar", mass=2.0, inertia=np.diag([0.1, 0.2, 0.3]), center=(0.5, 0, 0))
        m.revolute("A", m.ground.frame(), bar.frame())
        with m.session(mode="dynamic", rate=rate, hand=kind) as session:
            hand = session.grasp(bar, (1, 0, 0))
            for _ in range(round(2 * rate) if kind == "spring" else 5):
                session.step()
            angle = m["A"].coordinate(session.state)
            moment = -9.81 * math.cos(angle)
            errors.append(abs(float(np.cross(hand.point, hand.force)[2]) / moment - 1.0))
    return Stability(rate, low, implicit, errors[0], errors[1])


def measure_cost(bodies: int, cycles: int = 100) -> Cost:
    """Median times of cycles of a chain whose last link is grasped."""
    m = chain(bodies)
    found = []
    for options in ({"mode": "kinematic"}, {"mode": "dynamic"}, {"mode": "dynamic", "hand": "spring"}):
        with m.session(rate=1000.0, **options) as session:  # type: ignore[arg-type]  # strings
            hand = session.grasp(f"link_{bodies - 1}", (1, 0, 0))
            first = hand.point
            seconds = []
            for k in range(cycles):
                hand.target = first - np.array([1e-4 * k, 0.0, 0.0])
                start = time.perf_counter()
                session.step()
                seconds.append(time.perf_counter() - start)
            found.append(float(np.median(seconds[5:])))
    return Cost(bodies, found[0], found[1], found[2], _dense(m) if bodies <= DENSE_BODIES else math.nan)


def _dense(m: Mechanism) -> float:
    """Seconds of one step of the dense method: the residuals, the Jacobian, and one full KKT system."""
    from cardan.coordinates import formulations

    problem = formulations.problem(m.system, "manifold")
    q = formulations.to_reference(m.system, m.assemble().state.coordinates)
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        f, J = problem.jacobian(q)
        n, rows = problem.unknowns, problem.rows
        kkt = np.zeros((n + rows, n + rows))
        kkt[:n, :n] = np.eye(n)
        kkt[:n, n:], kkt[n:, :n] = J.T, J
        np.linalg.solve(kkt, np.concatenate([np.zeros(n), -f]))
        best = min(best, time.perf_counter() - start)
    return best


def as_document(stability: list[Stability], costs: list[Cost]) -> dict[str, Any]:
    """Plain values."""
    return {"stability": [asdict(row) for row in stability], "cost": [asdict(row) for row in costs]}


def picture(stability: list[Stability], costs: list[Cost]) -> Any:
    """Stability limit and force error against rate, and cost against the number of bodies."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.0, 3.6), dpi=150)
    rates = [row.rate for row in stability]
    left.loglog(
        rates, [row.explicit for row in stability], "o-", color="#c8553d", label="explicit spring: unstable above"
    )
    left.loglog(rates, [explicit_limit(r) for r in rates], ":", color="#1b2a41", label="closed form, about 2b/h")
    left.set_xticks(rates, [f"{rate:g}" for rate in rates])
    left.minorticks_off()
    left.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    left.yaxis.set_major_formatter("{x:,.0f}")
    left.set_xlabel("servo rate [Hz]")
    left.set_ylabel("stiffness [N/m]")
    left.set_title("stability limit, 1 kg, b = 100 N s/m", fontsize=10)
    left.legend(fontsize=8, frameon=False)
    for key, label, colour in (
        ("constraint_error", "constraint hand", "#588157"),
        ("spring_error", "implicit spring", "#e09f3e"),
    ):
        errors = [max(getattr(row, key), ROUNDING) for row in stability]
        middle.loglog(rates, errors, "o-", color=colour, label=label)
    middle.set_xticks(rates, [f"{rate:g}" for rate in rates])
    middle.minorticks_off()
    middle.set_ylim(0.3 * ROUNDING, 1e-5)
    middle.set_xlabel("servo rate [Hz]")
    middle.set_ylabel("relative error")
    middle.set_title("force at rest against statics", fontsize=10)
    middle.legend(fontsize=8, frameon=False)
    bodies = [row.bodies for row in costs]
    for key, label, colour in (
        ("kinematic", "kinematic session", "#2a6f97"),
        ("constraint", "dynamic, constraint hand", "#588157"),
        ("spring", "dynamic, spring hand", "#e09f3e"),
        ("dense", "dense method, one step", "#c8553d"),
    ):
        right.loglog(bodies, [1e6 * getattr(row, key) for row in costs], "o-", color=colour, label=label)
    right.set_xlabel("bodies")
    right.set_ylabel("µs per cycle")
    right.set_title("cost of one servo cycle of a chain", fontsize=10)
    right.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    return figure
