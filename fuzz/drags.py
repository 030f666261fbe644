"""Random drags over the gallery and random loops: jumps, targets out of reach, poses, pushes, limits, singular poses.

``python -m fuzz.drags --drags 10000``.  A drag is of some cycles with one or two hands, from the pose that the last one
left.  After it, joints are judged by the formulas of :mod:`fuzz.oracles.joints` in NumPy, couplings, drivers and limits
by the library's verdict.  After every cycle the branch of those mechanisms that have one in closed form is judged
(:mod:`fuzz.branches`).
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples import GALLERY
from fuzz.branches import LOOPS, Loop, gallery_loop
from fuzz.judge import poses_of
from fuzz.oracles.joints import JOINTS

BAR = 1e-9  # of the extent, or in radians
CYCLES = 12
LARGE = 100  # bodies: of a larger mechanism fewer drags are made
OWN = 0.6  # of the drags are of random loops


def is_open(m: cd.Mechanism, state: cd.State, length: float) -> bool:
    """Whether a joint is open beyond BAR; kinds with options of their own are left to the verdict."""
    poses = poses_of(state)
    for joint in m.joints.values():
        if joint.kind.name not in JOINTS or joint.kind.name in ("screw", "angle"):
            continue
        (p_a, R_a), (p_b, R_b) = (_world(end, poses) for end in joint.ends)
        options = dict(joint.parameters)
        off, turned = JOINTS[joint.kind.name].misses(R_a.T @ (p_b - p_a), R_a.T @ R_b, options)
        if not (off <= BAR * length and turned <= 10 * BAR):  # an angle from its cosine is accurate to 1e-8
            return True
    return False


def _world(end: Any, poses: Any) -> Any:
    p, R = poses[end.body.name]
    if isinstance(end, cd.Point):
        return p + R @ np.array(end.position), R
    return p + R @ np.array(end.origin), R @ np.column_stack([end.x, end.y, end.z])


class Judge:
    """Compares the branch of a loop with the bifurcations that a session reports, cycle by cycle.

    In a pose that is too near to a singular one the branch is unknown; then the next known one is compared.  Two or
    more passages between known branches may end on the first one.
    """

    def __init__(self, session: cd.Session, loop: Loop | None) -> None:
        self.session, self.loop = session, loop
        self.reports = self._reports()
        self.branch = self._branch()
        self.counts: Counter[str] = Counter()

    def _reports(self) -> int:
        return sum(event.what == "bifurcation" for event in self.session.events)

    def _branch(self) -> Any:
        return None if self.loop is None else self.loop.branch(self.session.state)

    def look(self) -> None:
        """After a cycle."""
        if self.loop is None or (branch := self._branch()) is None:
            return
        reports, self.reports = self.reports, self._reports()
        new = self.reports - reports
        if self.branch is not None:
            self.counts["judged cycles"] += 1
            self.counts["passages"] += branch != self.branch
            self.counts["unreported"] += branch != self.branch and new == 0
            self.counts["false reports"] += branch == self.branch and new == 1
        self.branch = branch

    def start(self) -> None:
        """Anew from the pose now, as after a restore."""
        self.reports, self.branch = self._reports(), self._branch()


def free(m: cd.Mechanism) -> cd.Mechanism:
    """A copy without drivers."""
    copy = m.copy()
    for name in [joint.name for joint in m.joints.values() if joint.kind.name == "drive"]:
        copy.remove(name)
    return copy


def drag(session: cd.Session, names: list[str], judge: Judge, rng: np.random.Generator) -> bool:
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
    goal = None if judge.loop is None else judge.loop.goal(session.state, rng)
    for _ in range(CYCLES):
        for hand in session.hands:
            if rng.random() < 0.5:
                hand.target = hand.point + rng.normal(size=3) * length * 10 ** rng.uniform(-3, 1)
            if goal is not None and hand.body == goal[0]:
                hand.target = goal[1](hand.local)
            if hand.kind == "pose" and rng.random() < 0.3:
                p = rng.normal(size=4)
                hand.orientation = p / np.linalg.norm(p)
        session.step()
        judge.look()
    exact = True
    if rng.random() < 0.2:
        session.restore()
        exact = bool(np.array_equal(start, session.coordinates))
        judge.start()
    for hand in session.hands:
        hand.release()
    return exact


def run_one(m: cd.Mechanism, loop: Loop | None, drags: int, rng: np.random.Generator) -> Counter[str]:
    """Drags in one session of a mechanism."""
    counts: Counter[str] = Counter()
    with m.session() as session:
        length = m.system.judged_length
        judge = Judge(session, loop)
        for _ in range(drags):
            before = judge.counts["judged cycles"]
            counts["inexact"] += not drag(session, list(m.bodies), judge, rng)
            counts["drags"] += 1
            state = session.state
            is_wrong = is_open(m, state, length) or not m.diagnose(state, tolerance=BAR).assembled
            counts["open"] += is_wrong
            counts["judged drags"] += judge.counts["judged cycles"] > before
    return counts + judge.counts


def run(drags: int, seed: int = 0, verbose: bool = False, kinds: tuple[str, ...] = tuple(LOOPS)) -> Counter[str]:
    """Counts of what was found; "open", "inexact" and "unreported" must be none, "false reports" rare."""
    rng = np.random.default_rng(seed)
    total: Counter[str] = Counter()
    loops = 10 * len(kinds) if drags >= 1000 else len(kinds)
    each = max(1, round(OWN * drags / loops))
    cases: list[tuple[str, Any, int]] = [(kind, None, each) for kind in kinds for _ in range(loops // len(kinds))]
    few = max(1, round((1 - OWN) * drags / (2 * len(GALLERY))))
    for name, example in GALLERY.items():
        m = example.build()
        count = max(1, few // 10) if len(m.bodies) > LARGE else few
        cases += [(name, m, count), (name, free(m), count)]
    for k in rng.permutation(len(cases)):  # so that a run that is stopped has some of each
        name, m, count = cases[k]
        loop = LOOPS[name](rng) if m is None else gallery_loop(name, m)
        found = run_one(m or loop.mechanism, loop, count, rng)  # type: ignore[union-attr]  # a loop of LOOPS has one
        if verbose:
            print(name, dict(found), flush=True)
        total += found
    for key in ("open", "inexact", "unreported", "false reports"):
        total[key] += 0
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drags", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="print each mechanism")
    args = parser.parse_args()
    print(dict(run(args.drags, args.seed, args.verbose)))
