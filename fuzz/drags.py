"""Random drags over the gallery: jumps, targets out of reach, poses, pushes, limits; judged by formulas of their own.

``python -m fuzz.drags --drags 10000``.  Every drag is of some cycles with one or two hands, from the pose that the last
one left.  After it, joints are judged by the formulas of :mod:`fuzz.judge` in NumPy, couplings, drivers and limits by
the library's verdict, and the branches of four-bars by a closed-form sign.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples import REGISTRY
from fuzz.judge import MISSES, poses_of

BAR = 1e-9  # of the extent, or in radians
CYCLES = 12


def four_bar(rng: np.random.Generator) -> tuple[cd.Mechanism, bool]:
    """A random crank–rocker or double rocker, drawn closed; whether it is of Grashof's kind, with two circuits."""
    while True:
        a, b, c, d = rng.uniform(0.5, 3.0, 4)
        x = (d * d + b * b - c * c - a * a) / (2 * (d - a))
        if abs(x - a) < 0.9 * b and abs(d - a) > 0.1:
            break
    y = np.sqrt(b * b - (x - a) ** 2) * rng.choice([-1.0, 1.0])
    m = cd.Mechanism("four_bar")

    def turned(angle: float) -> tuple[float, float, float, float]:
        return (np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2))

    crank = m.body("crank")
    coupler = m.body("coupler", position=(a, 0, 0), orientation=turned(np.arctan2(y, x - a)))
    rocker = m.body("rocker", position=(d, 0, 0), orientation=turned(np.arctan2(y, x - d)))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((a, 0, 0)), coupler.frame())
    m.revolute("C", coupler.frame((b, 0, 0)), rocker.frame((c, 0, 0)))
    m.revolute("D", m.ground.frame((d, 0, 0)), rocker.frame())
    lengths = sorted((a, b, c, d))
    gap = lengths[1] + lengths[2] - lengths[0] - lengths[3]
    # with the crank the shortest, the angle between coupler and rocker never passes 0 or π on a circuit
    return m, gap > 0.05 and a == lengths[0]


def branch_sign(state: cd.State) -> float:
    """Sign of the sine of the angle between coupler and rocker."""
    one, two = state["coupler"].matrix[:, 0], state["rocker"].matrix[:, 0]
    return float(np.sign(np.cross(one, two)[2]))


def is_open(m: cd.Mechanism, state: cd.State, length: float) -> bool:
    """Whether a joint is open beyond BAR; kinds with options of their own are left to the verdict."""
    poses = poses_of(state)
    for joint in m.joints.values():
        if joint.kind.name not in MISSES or joint.kind.name in ("screw", "angle"):
            continue
        (p_a, R_a), (p_b, R_b) = (_world(end, poses) for end in joint.ends)
        options = (dict(joint.parameters)["length"], False) if joint.kind.name == "distance" else ()
        off, turned = MISSES[joint.kind.name](R_a.T @ (p_b - p_a), R_a.T @ R_b, *options)
        if not (off <= BAR * length and turned <= 10 * BAR):  # an angle from its cosine is accurate to 1e-8
            return True
    return False


def _world(end: Any, poses: Any) -> Any:
    p, R = poses[end.body.name]
    if isinstance(end, cd.Point):
        return p + R @ np.array(end.position), R
    return p + R @ np.array(end.origin), R @ np.column_stack([end.x, end.y, end.z])


def drag(session: cd.Session, names: list[str], rng: np.random.Generator) -> bool:
    """One drag; returns whether restore was exact (True where it was not tried)."""
    length = session._system.judged_length
    for _ in range(int(rng.integers(1, 3))):
        body = names[int(rng.integers(len(names)))]
        point = rng.normal(size=3) * 0.3 * length
        if rng.random() < 0.2:
            session.push(body, point, direction=rng.normal(size=3))
        else:
            session.grasp(body, point, pose=bool(rng.random() < 0.3), stiffness=10 ** rng.uniform(-1, 1))
    start = session.coordinates.copy()
    for _ in range(CYCLES):
        for hand in session.hands:
            if rng.random() < 0.5:
                hand.target = hand.point + rng.normal(size=3) * length * 10 ** rng.uniform(-3, 1)
            if hand.kind == "pose" and rng.random() < 0.3:
                p = rng.normal(size=4)
                hand.orientation = p / np.linalg.norm(p)
        session.step()
    exact = True
    if rng.random() < 0.2:
        session.restore()
        exact = bool(np.array_equal(start, session.coordinates))
    for hand in session.hands:
        hand.release()
    return exact


def run(drags: int, seed: int = 0) -> Counter[str]:
    """Counts of what was found; "open", "inexact", "unreported" and "false reports" must be none, or rare."""
    rng = np.random.default_rng(seed)
    counts: Counter[str] = Counter()
    names = [*REGISTRY, *["four_bar"] * 10]
    each = max(1, drags // len(names))
    for name in names:
        m, grashof = four_bar(rng) if name == "four_bar" else (REGISTRY[name].build(), False)
        with m.session() as session:
            for _ in range(max(1, each // 5) if len(m.bodies) > 100 else each):
                before = branch_sign(session.state) if grashof else 0.0
                reported = sum(event.what == "bifurcation" for event in session.events)
                counts["inexact"] += not drag(session, list(m.bodies), rng)
                counts["drags"] += 1
                state = session.state
                counts["open"] += is_open(m, state, m.system.judged_length)
                counts["open"] += not m.diagnose(state, tolerance=BAR).assembled
                if grashof:
                    now = sum(event.what == "bifurcation" for event in session.events)
                    changed = branch_sign(session.state) != before
                    counts["judged branches"] += 1
                    counts["unreported"] += changed and now == reported
                    counts["false reports"] += not changed and now > reported
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drags", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(dict(run(args.drags, args.seed)))
