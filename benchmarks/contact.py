"""Cost of contacts: ``python benchmarks/contact.py``.

solved again   an ellipsoid on an ellipsoid, displaced by 1 mm: a cycle of a session whose hand moves by 1 mm, steps
               of a new session until the contact is closed, and whole assemblies one by one and many in one call
step           constant steps of two links with one surface contact; of a planar contact beside a revolute joint and
               a rod in its place
train          discs on eccentric pivots that touch their neighbours; assembly and step of 10 … 200 contacts
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np

import cardan as cd

G = cd.geometry
ROUNDS = 5
MILLIMETRE = 1e-3
SIZES = (10, 20, 50, 100, 200)


def seconds(call: Callable[[], object]) -> float:
    """The median of some runs."""
    call()
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return median(found)


def ellipsoids() -> cd.Mechanism:
    m = cd.Mechanism("ellipsoids")
    m.body("b", position=(0.1, 0.2, 1.6), orientation=("xyz", (0.3, 0.5, 0.1)))
    m.contact("c", m.ground.attach(G.ellipsoid(1, 0.8, 0.9)), m["b"].attach(G.ellipsoid(0.7, 1.1, 0.6)))
    return m


def by_hand(m: cd.Mechanism, state: cd.State, count: int = 1000) -> float:
    """[s] per cycle of a session: the hand moves along the surface by 1 mm, and the contact is closed each time."""
    found = []
    with m.session(state) as session:
        hand = session.grasp("b", (0.0, 0.0, 0.0))
        for k in range(count):
            before = hand.point.copy()
            hand.target = before + MILLIMETRE * np.array([np.cos(k / 50), np.sin(k / 50), 0.0])
            began = time.perf_counter()
            status = session.step()
            found.append(time.perf_counter() - began)
            assert status in (cd.SessionStatus.REACHED, cd.SessionStatus.MOVING), cd.SessionStatus(status)
            assert np.linalg.norm(hand.point - before) > 0.9 * MILLIMETRE
            if k % 10 == 0:
                assert abs(session.state.contact("c").gap) < 1e-12
    return median(found)


def to_closure(m: cd.Mechanism, starts: list[cd.State]) -> float:
    """[s] of all steps of a new session until the contact is closed; the session is made before."""
    found = []
    for start in starts:
        with m.session(start, closed=False) as session:
            began = time.perf_counter()
            while (status := session.step()) == cd.SessionStatus.MOVING:
                pass
            found.append(time.perf_counter() - began)
            assert status == cd.SessionStatus.IDLE, cd.SessionStatus(status)
    return median(found)


def solved_again(count: int = 500) -> dict[str, float]:
    """[s] per solution, by the ways to ask for it."""
    m = ellipsoids()
    state = m.assemble().state
    rng = np.random.default_rng(0)
    starts = []
    for _ in range(count):
        step = rng.normal(size=3)
        position = state["b"].position + MILLIMETRE * step / np.linalg.norm(step)
        starts.append(state.moved({"b": (position, state["b"].quaternion)}))
    assert m.assemble_many(starts, workers=1).ok.all()
    return {
        "cycle of a session": by_hand(m, state),
        "new session, to closure": to_closure(m, starts),
        "assemble(start)": seconds(lambda: [m.assemble(start) for start in starts]) / count,
        "assemble_many, one thread": seconds(lambda: m.assemble_many(starts, workers=1)) / count,
    }


def links(mode: str) -> cd.Mechanism:
    """Two links on ball joints whose ends touch."""
    m = cd.Mechanism("links")
    for name, x in (("a", 0.0), ("b", 1.0)):
        body = m.body(name, position=(x, 0, 0), mass=1.0, center=(0, 0, -0.3), inertia=0.05 * np.eye(3))
        m.spherical(f"{name}.pivot", m.ground.point((x, 0, 0)), body.point())
    faces = [m[n].attach(G.ellipsoid(0.5, 0.3, 0.4), m[n].frame((0, 0, -0.5))) for n in "ab"]
    m.contact("c", *faces, mode=mode)
    return m


def planar(kind: str) -> cd.Mechanism:
    """A crank and a part, joined by two circles that touch, or by a revolute joint.

    A planar joint holds the part of a contact in the plane; beside a revolute joint its rows are redundant.
    """
    m = cd.Mechanism("planar", gravity=(0, -9.81, 0))
    a = m.body("a", mass=1.0, inertia=0.1 * np.eye(3))
    b = m.body("b", position=(1, 0, 0), mass=1.0, inertia=0.1 * np.eye(3))
    m.revolute("pivot", m.ground.frame(), a.frame())
    if kind != "revolute":
        m.planar("plane", m.ground.frame(), b.frame())
    if kind == "contact":
        m.contact("c", a.attach(G.circle(0.5)), b.attach(G.circle(0.5)))
    else:
        m.revolute("c", a.frame((0.5, 0, 0)), b.frame((-0.5, 0, 0)))
    return m


def discs(count: int, kind: str = "contact") -> cd.Mechanism:
    """Discs on eccentric pivots; each touches the next one, or is joined to it by a rod between their centres."""
    m = cd.Mechanism("train", gravity=(0, -9.81, 0))
    for k in range(count + 1):
        turned = ("xyz", (0, 0, 0.3 if k % 2 else np.pi - 0.3))
        body = m.body(f"d{k}", position=(k, 0, 0), orientation=turned, mass=1.0, inertia=0.1 * np.eye(3))
        m.revolute(f"p{k}", m.ground.frame((k, 0, 0)), body.frame())
    center = (0.1, 0.02, 0)
    faces = [m[f"d{k}"].attach(G.circle(0.5), m[f"d{k}"].frame(center)) for k in range(count + 1)]
    for k in range(count):
        if kind == "contact":
            m.contact(f"c{k}", faces[k], faces[k + 1])
        else:
            m.distance(f"c{k}", m[f"d{k}"].point(center), m[f"d{k + 1}"].point(center), 1.0)
    return m


def step(m: cd.Mechanism, count: int, h: float = 1e-3) -> float:
    """[s] per constant step."""
    state = m.assemble().state
    simulation = m.simulate(count * h, state, step=h)
    assert simulation.ok, simulation.text()
    return seconds(lambda: m.simulate(count * h, state, step=h)) / count


def steps_beside(own: cd.Mechanism, other: cd.Mechanism, counts: tuple[int, int] = (100, 1100)) -> list[float]:
    """[s] of the processor per step of both: the least of interleaved runs, without what a call costs before it."""
    made = [(m, m.assemble().state, count) for m in (own, other) for count in counts]
    found = [np.inf] * len(made)
    for _ in range(3 * ROUNDS):
        for k, (m, state, count) in enumerate(made):
            began = time.process_time()
            assert m.simulate(count * 1e-3, state, step=1e-3).ok
            found[k] = min(found[k], time.process_time() - began)
    return [(found[k + 1] - found[k]) / (counts[1] - counts[0]) for k in (0, 2)]


def train(size: int) -> tuple[float, float]:
    """[s] of an assembly from displaced discs, and per step."""
    m = discs(size)
    state = m.assemble().state
    poses = {n: (state[n].position + MILLIMETRE * np.sin(k), state[n].quaternion) for k, n in enumerate(m.bodies)}
    start = state.moved(poses)
    assert m.assemble(start).ok
    return seconds(lambda: m.assemble(start)), step(m, 50)


def main() -> None:
    print("surface contact solved again after 1 mm")
    for way, found in solved_again().items():
        print(f"  {way:28}{1e6 * found:9.1f} µs")
    print("step of two links with one surface contact")
    for mode in ("slide", "roll", "roll_without_spin"):
        print(f"  {mode:28}{1e6 * step(links(mode), 500):9.1f} µs")
    print("step of two bodies with a planar contact")
    for other, own, joined in (
        ("a revolute joint", planar("contact"), planar("revolute")),
        ("a revolute joint beside the planar joint", planar("contact"), planar("both")),
        ("a rod", discs(1), discs(1, "rod")),
    ):
        cost, peer = steps_beside(own, joined)
        print(f"  contact {1e6 * cost:.1f} µs, {other} in its place {1e6 * peer:.1f} µs: {cost / peer:.2f} ×")
    print("train of contacts")
    rows = []
    for size in SIZES:
        rows.append(train(size))
        print(f"  {size:3} contacts: assembly {1e3 * rows[-1][0]:7.2f} ms, step {1e6 * rows[-1][1]:7.1f} µs")
    exponents = np.log(np.divide(rows[-1], rows[0])) / np.log(SIZES[-1] / SIZES[0])
    print(f"  exponents {SIZES[0]} → {SIZES[-1]}: assembly {exponents[0]:.2f}, step {exponents[1]:.2f}")


if __name__ == "__main__":
    main()
