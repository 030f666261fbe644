"""Assemblies and freedoms of mechanisms whose poses are published or known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd

X, Y, Z = np.eye(3)


def test_all_forty_poses_of_a_platform_are_found():
    """[Dietmaier1998]: a platform on six legs, of which all forty poses are real.  None of them can move."""
    base = [
        (0, 1.107915, 0.549094, 0.735077, 0.514188, 0.590473),
        (0, 0, 0.756063, -0.223935, -0.526063, 0.094733),
        (0, 0, 0, 0.525991, -0.368418, -0.205018),
    ]
    platform = [
        (0, 0.542805, 0.956919, 0.665885, 0.478359, -0.137087),
        (0, 0, -0.528915, -0.353482, 1.158742, -0.235121),
        (0, 0, 0, 1.402538, 0.107672, 0.353913),
    ]
    lengths = (1, 0.645275, 1.086284, 1.503439, 1.281933, 0.771071)
    m = cd.Mechanism("platform")
    plate = m.body("plate")
    for k, (a, b, length) in enumerate(zip(np.transpose(base), np.transpose(platform), lengths, strict=True)):
        m.distance(f"leg {k}", m.ground.point(a), plate.point(b), length)
    rng = np.random.default_rng(0)
    turns = rng.normal(size=(3000, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    places = rng.uniform(-1, 2, (3000, 3))
    batch = m.assemble_many([m.state.moved({"plate": pose}) for pose in zip(places, turns, strict=True)])
    assert batch.ok.all()
    poses = batch.coordinates[:, 0]
    poses[:, 3:] *= np.where(poses[:, 3:4] < 0, -1.0, 1.0)
    distinct: list[np.ndarray] = []
    for pose in poses:
        if all(np.abs(pose - other).max() > 1e-6 for other in distinct):
            distinct.append(pose)
    assert len(distinct) == 40
    for pose in distinct:
        report = m.diagnose(m.state.moved({"plate": (pose[:3], pose[3:])}))
        assert report.assembled and report.dof == 0


@pytest.mark.parametrize("turn, freedoms", [(0.0, 0), (60.0, 0), (90.0, 1), (-90.0, 1)])
def test_an_octahedral_platform_is_singular_at_a_quarter_turn(turn, freedoms):
    """Three joints on each plate, each with two legs: singular where the plate is turned by ±90° about its normal."""
    m = cd.Mechanism("octahedron")
    plate = m.body("plate", position=(0, 0, 1), orientation=(Z, np.deg2rad(turn)))
    R = m.state["plate"].matrix
    for k in range(6):
        low, high = 2 * np.pi / 3 * (k // 2), 2 * np.pi / 3 * ((k + 1) // 2) - np.pi / 3
        a, b = np.array([np.cos(low), np.sin(low), 0]), 0.6 * np.array([np.cos(high), np.sin(high), 0])
        m.distance(f"leg {k}", m.ground.point(a), plate.point(b), np.linalg.norm(R @ b + Z - a))
    report = m.diagnose()  # with legs of given lengths it does not move: the freedom is one of first order
    assert (report.dof, report.infinitesimal, report.rank) == (0, freedoms, 6 - freedoms)


def test_bennett_s_linkage_moves_although_it_is_overconstrained():
    """sin α / a = sin β / b: one freedom with four hinges in space, where Grübler's count is −2."""
    alpha, beta, a = 0.6, 1.1, 1.0
    links = [(a, alpha), (a * np.sin(beta) / np.sin(alpha), beta)] * 2
    m = cd.Mechanism("Bennett")
    rng = np.random.default_rng(1)
    bodies = [m.ground, *(m.body(f"link {k}", position=rng.normal(size=3)) for k in range(3))]
    for k, (length, twist) in enumerate(links):
        end = bodies[k].frame((length, 0, 0), z=(0, -np.sin(twist), np.cos(twist)))
        m.revolute(f"hinge {k}", end, bodies[(k + 1) % 4].frame())
    result = m.assemble()
    assert result.ok, result.text()
    report = m.diagnose(result.state)
    assert (report.dof, report.gruebler, len(report.redundant)) == (1, -2, 3)
    # the half angles have a constant ratio, sin ½(β + α) / sin ½(β − α)
    m.drive("motor", m["hinge 0"], lambda t: m["hinge 0"].coordinate(result.state) + t)
    motion = m.move(np.linspace(0, 2, 21), result.state)
    first, second = (np.tan(motion.coordinate(m[f"hinge {k}"]) / 2) for k in (0, 1))
    products = np.abs(first * second)
    ratio = np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2)
    assert motion.ok and np.ptp(products) < 1e-9
    assert products[0] == pytest.approx(ratio, abs=1e-9) or products[0] == pytest.approx(1 / ratio, abs=1e-9)


ALPHA, BETA, GAMMA = np.deg2rad([35.0, 70.0, 50.0])
B, C = np.sin([BETA, GAMMA]) / np.sin(ALPHA)
# lengths, twists and offsets of closed loops of hinges; degrees of freedom and redundant equations
LOOPS = {
    "Goldberg, five hinges": ([B + C, 1, B, C, 1], [BETA + GAMMA, ALPHA, BETA, GAMMA, ALPHA], [0] * 5, 2),
    "Bricard, line-symmetric": ([0.7, 1.1, 0.9] * 2, [0.6, 1.2, 0.9] * 2, [0.2, -0.3, 0.4] * 2, 1),
    "Bricard, plane-symmetric": (
        [0.7, 1.1, 0.9, 0.9, 1.1, 0.7],
        [0.6, 1.2, 0.9, -0.9, -1.2, -0.6],
        [0.2, 0.3, 0, -0.3, -0.2, 0],
        1,
    ),
    "Bricard, threefold symmetric": ([1] * 6, [0.7, -0.7] * 3, [0] * 6, 1),
    "Schatz": ([0, 1, 1, 1, 0, np.sqrt(3)], [np.pi / 2] * 5 + [0], [0, 0, 0, 0, -0.3, 0.3], 1),
    "six hinges without a law": ([0.7, 1.1, 0.9, 0.8, 1.2, 1.0], [0.6, 1.2, 0.9, 0.5, 1.0, 0.8], [0.1] * 6, 0),
}


@pytest.mark.parametrize("name", LOOPS)
def test_closed_loops_of_hinges_move_only_by_their_laws(name):
    """[Goldberg1943], [Baker1980], [Schatz1975].  Six hinges in general, and five even more so, are rigid."""
    lengths, twists, offsets, redundant = LOOPS[name]
    count = len(lengths)
    m = cd.Mechanism(name)
    rng = np.random.default_rng(0)
    poses = [(rng.normal(size=3), rng.normal(size=4)) for _ in range(count - 1)]
    bodies = [m.ground, *(m.body(f"link {k}", position=r, orientation=p) for k, (r, p) in enumerate(poses))]
    for k in range(count):
        z = np.array([0, -np.sin(twists[k]), np.cos(twists[k])])
        end = bodies[k].frame(lengths[k] * X + offsets[k] * z, z=z, x=X)
        m.revolute(f"hinge {k}", end, bodies[(k + 1) % count].frame(z=Z, x=X))
    result = m.assemble()
    assert result.ok, result.text()
    report = m.diagnose(result.state)
    assert (report.dof, report.infinitesimal, len(report.redundant)) == (min(redundant, 1), 0, redundant)
    assert report.gruebler == count - 6
