"""Laws of large mechanisms with a small contradiction: a conflict, soon, and the constraints that are its cause."""

from __future__ import annotations

import time

import numpy as np
import pytest

import cardan as cd
from cardan.analysis.impossible import is_impossible
from cardan.analysis.parts import contradictory_part
from layers import sampled
from mechanisms import rotation
from tests.analysis.test_batch import check_same

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def leg(m, n, base, at, kind, wrong):
    """A leg on a base: hip, thigh, shank, foot, and two closed chains; wrong [m]: the contradiction in its data.

    planar: crank and rod beside thigh and shank, with hinges along y; the rods are off their planes.
    rods: two rods with universal and spherical joints from shank to foot that want different angles of the ankle.
    slides: two telescopes with hinges along y between shank and foot, off their planes; they can become any length.
    ankle: an ankle with two axes, moved by two cranks with rods that are too long.
    """

    def body(name, *p):
        return m.body(n + name, position=(p[0], at + p[1], p[2]))

    def revolute(name, a, p, b, z):
        m.revolute(n + name, a.frame(p, z=z), b.frame(z=z))

    yaw, hip, thigh = body("yaw", 0, 0, 1), body("hip", 0, 0, 1), body("thigh", 0, 0, 0.95)
    shank, cross, foot = body("shank", 0, 0, 0.5), body("cross", 0, 0, 0.1), body("foot", 0, 0, 0.1)
    revolute("hip yaw", base, (0, at, 1), yaw, Z)
    revolute("hip roll", yaw, (0, 0, 0), hip, X)
    revolute("hip pitch", hip, (0, 0, -0.05), thigh, Y)
    revolute("knee", thigh, (0, 0, -0.45), shank, Y)
    revolute("ankle pitch", shank, (0, 0, -0.4), cross, Y)
    if kind == "ankle":
        revolute("ankle roll", cross, (0, 0, 0), foot, X)
    else:
        m.fixed(n + "sole", cross.frame(), foot.frame())
    for c, side in enumerate((0.05, -0.05)):
        h = -0.1 - 0.05 * c
        upper, lower = body(f"upper {c}", -0.06, side, 0.5 + h), body(f"lower {c}", -0.06, side, 0.3)
        if kind == "planar":
            a, b, length = ((thigh, shank, 0.45), (shank, foot, 0.35))[c]
            revolute(f"a{c}", a, (0, side, -0.05), upper, Y)
            revolute(f"b{c}", upper, (-0.05, 0, 0), lower, Y)
            ends = lower.frame((0, wrong * (1 - 2 * c), -length), z=Y), b.frame((-0.05, side, -0.05 * (1 - c)), z=Y)
            m.revolute(f"{n}c{c}", *ends)
        elif kind == "slides":
            revolute(f"a{c}", shank, (-0.06, side, h), upper, Y)
            m.prismatic(f"{n}b{c}", upper.frame(), lower.frame())
            ends = foot.frame((-0.06, side + wrong * (c - 0.4), -0.02), z=Y), lower.frame((0, 0, -0.2), z=Y)
            m.revolute(f"{n}c{c}", *ends)
        elif kind == "rods":
            m.fixed(f"{n}a{c}", shank.frame((-0.06, side, h)), upper.frame())
            m.universal(f"{n}b{c}", upper.frame(z=Y), lower.frame(z=X))
            m.spherical(f"{n}c{c}", lower.point((0, 0, -0.42 - h - c * wrong)), foot.point((-0.06, side, -0.02)))
        else:
            revolute(f"a{c}", shank, (0, side, h), upper, Y)
            m.universal(f"{n}b{c}", upper.frame((-0.06, 0, 0), z=Y), lower.frame(z=X))
            m.spherical(f"{n}c{c}", lower.point((0, 0, -0.42 - h - wrong)), foot.point((-0.06, side, -0.02)))
    return foot


def humanoid(kind, wrong, fingers=0, stands=False):
    """Two legs, the second with a contradiction; waist, two arms and fingers.  stands: both feet are on the ground."""
    m = cd.Mechanism("humanoid")
    pelvis = m.body("pelvis")
    feet = [leg(m, f"leg {k} ", pelvis, 0.2 * k, kind, k * wrong) for k in range(2)]
    for k, foot in enumerate(feet if stands else [pelvis]):
        m.fixed(f"floor {k}", m.ground.frame(foot.position), foot.frame())

    def chain(name, last, at, axes, step):
        for k, z in enumerate(axes):
            place = np.array(last.position) + at
            body = m.body(f"{name} {k}", position=place)
            m.revolute(f"{name} joint {k}", last.frame(at, z=z), body.frame(z=z))
            last, at = body, np.array(step)
        return last

    chest = chain("waist", pelvis, np.array((0, 0.1, 1.1)), (Z, X, Y), (0, 0, 0.1))
    for arm in range(2):
        hand = chain(f"arm {arm}", chest, np.array((0, 0.2 - 0.4 * arm, 0.3)), (Y, X, Z, Y, Z, Y, X), (0, 0, -0.1))
        for k in range(fingers):
            chain(f"finger {arm} {k}", hand, np.array((0, 0.02 * k, -0.05)), (X, Y, Y), (0, 0, -0.03))
    return m


CASES = [
    *[("planar", wrong, {}) for wrong in (0.003, 0.05)],
    *[("planar", 0.01, {"stands": True}), ("planar", 0.01, {"fingers": 5})],
    *[("slides", 0.05, {}), ("slides", 0.01, {"fingers": 3})],
    *[("rods", 0.01, {}), ("rods", 0.03, {"stands": True}), ("rods", 0.03, {"fingers": 3})],
    *[("ankle", 0.12, {}), ("ankle", 0.12, {"stands": True})],
]


@sampled(("kind", "wrong", "size"), CASES, keep=4)
def test_a_humanoid_with_contradictory_chains_in_one_leg_is_a_conflict_with_its_cause(kind, wrong, size):
    m = humanoid(kind, wrong, **size)
    m.assemble(restarts=0, max_iterations=1)
    began = time.process_time()
    result = m.assemble()
    text = result.text()
    assert time.process_time() - began < 5.0
    assert result.status is cd.Status.CONFLICT
    (line,) = [line for line in text.splitlines() if "contradict each other, whatever the others are" in line]
    named = [name.strip(" '") for name in line.split(": ")[1].split(",")]
    assert named and all(name.startswith("leg 1 ") or name == "floor 1" for name in named)
    assert len(named) < len(m.joints) / 3
    alone = humanoid(kind, wrong, **size)
    for name in m.joints:
        if name not in named:
            alone.remove(name)
    assert not alone.assemble().ok


def test_a_humanoid_that_fits_is_no_conflict():
    for kind in ("planar", "slides", "rods", "ankle"):
        m = humanoid(kind, 0.0, stands=True)
        assert m.assemble(restarts=0).ok
        (piece,) = m.system.pieces
        assert not is_impossible(piece.system, 1e-12, 0.0) and contradictory_part(piece.system, 1e-12, 0.0) == ()


def test_one_start_and_many_ask_for_parts_alike():
    m = humanoid("rods", 0.03)
    check_same(m, [m.state, m.state.moved({"leg 1 foot": ((0.1, 0.2, 0.3), (1, 0, 0, 0))})])


def test_restarts_that_were_asked_for_are_made_without_looking_for_parts():
    m = humanoid("rods", 0.03)
    result = m.assemble(restarts=60)
    assert result.restarts == 60


def loop(rng, links, gap, slides):
    """A closed loop of links with parallel hinges, or some slides across them, in random axes; gap [m]: along the
    hinges, by which it does not close."""
    R = rotation(rng.normal(size=3), rng.uniform(0, 3))
    m = cd.Mechanism("loop")
    bodies = [m.ground, *[m.body(f"link {k}", position=rng.normal(size=3)) for k in range(links - 1)]]
    offsets = rng.normal(size=links)
    offsets[-1] = gap - offsets[:-1].sum()
    turns = [rotation(rng.normal(size=3), rng.uniform(0, 3)) for _ in bodies]  # each link has axes of its own
    for k, offset in enumerate(offsets):
        a, b = k, (k + 1) % links
        u_a, u_b = turns[a] @ R[:, 2], turns[b] @ R[:, 2]
        p = turns[a] @ (R @ [*rng.uniform(1, 2, 2), offset])
        if k in slides:
            across = R @ [np.cos(k), np.sin(k), 0.0]
            axes = {"z": across, "x": R @ [-np.sin(k) * 0.6, np.cos(k) * 0.6, 0.8]}
            ends = [
                body.frame(at, **{word: turn @ axis for word, axis in axes.items()})
                for body, at, turn in ((bodies[a], p, turns[a]), (bodies[b], (0, 0, 0), turns[b]))
            ]
            m.prismatic(f"J{k}", *ends)
        else:
            m.revolute(f"J{k}", bodies[a].frame(p, z=u_a), bodies[b].frame(z=u_b))
    return m


@pytest.mark.parametrize("slides", [(), (1,), (1, 3)], ids=str)
def test_a_loop_with_parallel_hinges_is_impossible_exactly_if_it_does_not_close_along_them(slides):
    """In closed form: the offsets along the hinges add up to the gap, in every pose."""
    for seed in range(12):
        for tolerance in (1e-12, 1e-6):
            links = 5 + seed % 3
            closed, least = loop(np.random.default_rng(seed), links, 0.0, slides), 100 * links * tolerance
            assert not is_impossible(closed.system, tolerance, 0.0)
            assert not is_impossible(loop(np.random.default_rng(seed), links, tolerance, slides).system, tolerance, 0.0)
            for gap in (-10 * least, 30 * least, 0.1):
                m = loop(np.random.default_rng(seed), links, gap + np.sign(gap) * 1e-9, slides)
                assert is_impossible(m.system, tolerance, 0.0), (seed, gap)
