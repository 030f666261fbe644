"""Signed gaps, points and normals of all pairs of convex solids, against support functions and insides that are written
down by definition.

Apart: b − a is as long as the gap, a and b are in their solids, and the plane across the normal separates the solids by
the gap: upper and lower bound of the distance meet.  Overlapping: the normal has the depth, and no normal that a dense
search finds has a smaller one; for polytopes the least depth is that of the faces of the hull of all differences.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.spatial import ConvexHull

from cardan import collide, shapes
from cardan.collide import cells
from cardan.errors import ModelError
from cardan.geometry import Mesh as Surface
from cardan.math import euler
from layers import sampled

TOLERANCE = 1e-11  # of the size, which is about 1 m
TRIANGLE = [(0.0, 0.0), (1.0, 0.0), (0.5, 0.8)]
QUAD = np.array([(0.0, 0.0), (1.0, 0.0), (0.7, 0.8), (0.1, 0.6)])
TETRAHEDRON = np.array([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]) - 0.2
TRAPEZOID = np.concatenate([np.column_stack([s * QUAD, np.full(4, z)]) for s, z in ((1.0, -0.25), (0.6, 0.25))])
BOX = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.35, 0.35) for z in (-0.2, 0.2)])


def rims(*circles: tuple[float, float]) -> Any:
    """Support function of circles (radius, z) about z."""
    return lambda n: np.max([r * np.hypot(n[:, 0], n[:, 1]) + z * n[:, 2] for r, z in circles], axis=0)


def corners(points: Any) -> Any:
    return lambda n: (n @ np.asarray(points).T).max(axis=1)


def rounded(points: Any, radius: float, height: float) -> Any:
    """Of all points within a radius of a polygon, in a layer."""
    flat = np.asarray(points)
    return lambda n: (n[:, :2] @ flat.T).max(axis=1) + radius * np.hypot(*n[:, :2].T) + 0.5 * height * np.abs(n[:, 2])


SOLIDS: dict[str, tuple[Any, Any]] = {
    "box": (shapes.box(1.0, 0.7, 0.4), corners(BOX)),
    "cylinder": (shapes.cylinder(0.4, 1.1), rims((0.4, 0.55), (0.4, -0.55))),
    "disc": (shapes.cylinder(0.7, 0.1), rims((0.7, 0.05), (0.7, -0.05))),
    "sphere": (shapes.sphere(0.5), lambda n: 0.5 * np.linalg.norm(n, axis=1)),
    "cone": (shapes.revolution([(0.0, -0.5), (0.6, -0.5), (0.0, 0.7)]), rims((0.6, -0.5), (0.0, 0.7))),
    "frustum": (shapes.revolution([(0.0, -0.5), (0.6, -0.5), (0.3, 0.4), (0.0, 0.4)]), rims((0.6, -0.5), (0.3, 0.4))),
    "link": (
        shapes.link((0.0, 0.0), (1.0, 0.3), width=0.4, thickness=0.2),
        rounded([(0.0, 0.0), (1.0, 0.3)], 0.2, 0.2),
    ),
    "plate": (shapes.plate(TRIANGLE, thickness=0.1, radius=0.15), rounded(TRIANGLE, 0.15, 0.1)),
    "prism": (shapes.extrusion(QUAD, 0.5, taper=0.6), corners(TRAPEZOID)),
    "tetrahedron": (shapes.mesh(TETRAHEDRON, [(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)]), corners(TETRAHEDRON)),
}
POLYTOPES = {"box": BOX, "prism": TRAPEZOID, "tetrahedron": TETRAHEDRON}
EVERYWHERE = np.random.default_rng(1).normal(size=(1500, 3))
EVERYWHERE /= np.linalg.norm(EVERYWHERE, axis=1, keepdims=True)


def random_poses(rng: np.random.Generator, count: int, spread: float) -> np.ndarray:
    poses = rng.normal(size=(count, 7))
    poses[:, :3] *= spread
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    return poses


def support(name: str, pose: np.ndarray, n: np.ndarray) -> np.ndarray:
    """max n·x over a solid at a pose."""
    return SOLIDS[name][1](n @ euler.matrix(pose[3:])) + n @ pose[:3]


def outside(name: str, pose: np.ndarray, point: np.ndarray, near: np.ndarray) -> float:
    """How far a point is beyond the tangent planes of a solid, at normals everywhere and near the given one."""
    fine = near + 1e-4 * EVERYWHERE
    n = np.concatenate([EVERYWHERE, fine / np.linalg.norm(fine, axis=1, keepdims=True), near[None]])
    return float((n @ point - support(name, pose, n)).max())


def depths(a: str, b: str, poses: np.ndarray, n: np.ndarray) -> np.ndarray:
    return support(a, poses[0], n) + support(b, poses[1], -n)


def least_depth(a: str, b: str, poses: np.ndarray) -> float:
    """The least depth that a dense search finds: 1500 normals, the best of them improved by ever shorter steps."""
    if a in POLYTOPES and b in POLYTOPES:
        p, q = (POLYTOPES[s] @ euler.matrix(pose[3:]).T + pose[:3] for s, pose in zip((a, b), poses, strict=True))
        return float(-ConvexHull((p[:, None] - q).reshape(-1, 3)).equations[:, 3].max())
    n = EVERYWHERE[np.argsort(depths(a, b, poses, EVERYWHERE))[:24]]
    step = 0.1
    rng = np.random.default_rng(2)
    while step > 1e-9:
        for _ in range(6):
            tried = n[:, None] + step * rng.normal(size=(len(n), 16, 3))
            tried = np.concatenate([n[:, None], tried], axis=1)
            tried /= np.linalg.norm(tried, axis=2, keepdims=True)
            value = depths(a, b, poses, tried.reshape(-1, 3)).reshape(len(n), -1)
            n = tried[np.arange(len(n)), value.argmin(axis=1)]
        step *= 0.4
    return float(depths(a, b, poses, n).min())


def check(a: str, b: str, poses: np.ndarray) -> collide.Gap:
    found = collide.gap(collide.solid(SOLIDS[a][0]), poses[0], collide.solid(SOLIDS[b][0]), poses[1])
    n, (p, q) = found.normal, found.points
    assert abs(np.linalg.norm(n) - 1.0) < 1e-14 and found.error == 0.0
    assert abs(depths(a, b, poses, n[None])[0] + found.gap) < TOLERANCE  # the plane across n
    assert np.abs(q - p - found.gap * n).max() < 1e-7  # the gap has an error of the second order in this
    assert outside(a, poses[0], p, n) < TOLERANCE
    assert outside(b, poses[1], q, -n) < TOLERANCE
    if found.gap > 0.0:
        assert np.linalg.norm(q - p) < found.gap + TOLERANCE
    else:
        assert least_depth(a, b, poses) > -found.gap - TOLERANCE
    return found


@pytest.mark.slow
@sampled("seed, count", [(0, 3), *((seed, 37) for seed in range(1, 51))], keep=1)
def test_gaps_of_all_pairs_of_solids_are_proven(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    states = [0, 0]
    for a, b in combinations_with_replacement(SOLIDS, 2):
        for k in range(count):
            found = check(a, b, random_poses(rng, 2, (0.15, 0.5, 1.0)[k % 3]))
            states[found.gap > 0.0] += 1
    assert min(states) > 0.2 * sum(states)


def test_distances_of_polytopes_are_those_of_a_quadratic_programme() -> None:
    """min |M λ| with Σ λ = 1, λ ≥ 0, over the differences M of corners: [Lawson1974], least distance."""
    rng = np.random.default_rng(3)
    apart = 0
    for a, b in combinations_with_replacement(POLYTOPES, 2):
        for _ in range(20):
            poses = random_poses(rng, 2, 1.0)
            found = collide.gap(collide.solid(SOLIDS[a][0]), poses[0], collide.solid(SOLIDS[b][0]), poses[1])
            p, q = (POLYTOPES[s] @ euler.matrix(pose[3:]).T + pose[:3] for s, pose in zip((a, b), poses, strict=True))
            M = (q[None] - p[:, None]).reshape(-1, 3).T
            weights = nnls(np.vstack([M, np.ones(M.shape[1])]), np.array([0.0, 0.0, 0.0, 1.0]))[0]
            distance = np.linalg.norm(M @ weights) / weights.sum()
            if found.gap > 1e-3:
                apart += 1
                assert abs(found.gap - distance) < TOLERANCE
    assert apart > 40


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_gaps_do_not_depend_on_units_motion_and_order(unit: float) -> None:
    rng = np.random.default_rng(4)
    for _ in range(40):
        r, h, x, y, z = (unit * rng.uniform(0.2, 1.0, 5)).tolist()
        a, b = collide.solid(shapes.cylinder(r, h)), collide.solid(shapes.box(x, y, z))
        poses = random_poses(rng, 3, 0.7)
        scaled = poses * ([unit] * 3 + [1.0] * 4)
        found = collide.gap(a, scaled[0], b, scaled[1])
        one = collide.gap(collide.solid(shapes.cylinder(r / unit, h / unit)), poses[0],
                          collide.solid(shapes.box(x / unit, y / unit, z / unit)), poses[1])  # fmt: skip
        assert abs(found.gap / unit - one.gap) < 1e-12
        back = collide.gap(b, scaled[1], a, scaled[0])
        assert abs(back.gap - found.gap) < 1e-12 * unit
        R, far = euler.matrix(poses[2, 3:]), 1e3 * unit
        moved = [np.array([*(R @ p[:3] + far), *euler.multiply(poses[2, 3:], p[3:])]) for p in scaled[:2]]
        there = collide.gap(a, moved[0], b, moved[1])
        assert abs(there.gap - found.gap) < 1e-11 * unit  # far away positions are rounded
        if found.gap > 1e-3 * unit:
            assert np.abs(R.T @ there.normal - found.normal).max() < 1e-7
            assert np.abs(back.normal + found.normal).max() < 1e-7


def test_tracking_gives_the_same_gap_as_a_search_and_its_derivative() -> None:
    """δgap = n·(δp_b − δp_a)."""
    rng = np.random.default_rng(5)
    for a, b in [("box", "box"), ("cylinder", "cone"), ("link", "disc"), ("box", "sphere")]:
        one, other = (collide.solid(SOLIDS[s][0]) for s in (a, b))
        poses = random_poses(rng, 2, 1.5)
        poses[1, 0] += 2.0
        before = collide.gap(one, poses[0], other, poses[1])
        for _ in range(30):
            step = 1e-3 * rng.normal(size=6)
            moved = poses[1].copy()
            moved[:3] += step[:3]
            moved[3:] = euler.retract(moved[3:], step[3:])
            tracked = collide.gap(one, poses[0], other, moved, near=before)
            assert abs(tracked.gap - collide.gap(one, poses[0], other, moved).gap) < 1e-12
            turned = euler.matrix(moved[3:]) @ euler.matrix(poses[1, 3:]).T
            shift = turned @ (before.points[1] - poses[1, :3]) + moved[:3] - before.points[1]
            assert abs(tracked.gap - before.gap - before.normal @ shift) < 3e-4  # curvature times step²
            poses[1], before = moved, tracked


def test_half_spaces_are_exact() -> None:
    rng = np.random.default_rng(6)
    for name in SOLIDS:
        poses = random_poses(rng, 2, 0.5)
        n = euler.matrix(poses[0, 3:])[:, 2]
        found = collide.gap(collide.half_space(), poses[0], collide.solid(SOLIDS[name][0]), poses[1])
        expected = -support(name, poses[1], -n[None])[0] - n @ poses[0, :3]
        assert abs(found.gap - expected) < 1e-13
        assert np.abs(found.points[1] - found.points[0] - found.gap * n).max() < 1e-13
        back = collide.gap(collide.solid(SOLIDS[name][0]), poses[1], collide.half_space(), poses[0])
        assert abs(back.gap - found.gap) < 1e-13 and np.abs(back.normal + n).max() < 1e-13


def test_pieces_of_shapes_with_holes_are_within_their_error() -> None:
    """A pin in a bore: its radial clearance; a block in the corner of an L: distances to both legs."""
    place = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    ring = collide.solid(shapes.tube(1.0, 0.5, 0.3))
    pin = collide.solid(shapes.cylinder(0.4, 1.0))
    for shift, clearance in ((0.0, 0.1), (0.06, 0.04), (0.2, -0.1)):
        found = collide.gap(ring, place, pin, (shift, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0))
        assert 0.0 < found.error < 0.002
        assert abs(found.gap - clearance) <= found.error
    bent = collide.solid(shapes.extrusion([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)], 0.5))
    found = collide.gap(bent, place, collide.solid(shapes.box(0.5, 0.5, 0.5)), (1.5, 1.35, 0.0, 1.0, 0.0, 0.0, 0.0))
    assert found.error == 0.0 and abs(found.gap - 0.1) < 1e-15
    found = collide.gap(bent, place, collide.solid(shapes.sphere(0.25)), (1.5, 1.5, 0.0, 1.0, 0.0, 0.0, 0.0))
    assert abs(found.gap - 0.25) < 1e-15
    gear = shapes.gear(0.01, 20, 0.02, bore=0.02)
    made = collide.solid(gear)
    volume = sum(ConvexHull(piece.atoms[:, :3]).volume for piece in made.pieces)
    assert abs(volume / gear.properties().volume - 1.0) < 0.01


ELL = [(0, 0), (1, 0), (1, 0.3), (0.3, 0.3), (0.3, 1), (0, 1)]


def _joined_meshes(parts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Triangles of several shapes as those of one mesh."""
    every = [part.triangles(12) for part in parts]
    starts = np.cumsum([0, *(len(one.vertices) for one in every)])
    faces = [one.faces + start for one, start in zip(every, starts[:-1], strict=True)]
    return np.concatenate([one.vertices for one in every]), np.concatenate(faces)


def _turned(shape: Any, rng: np.random.Generator, segments: int) -> Any:
    """A mesh of a shape in other axes."""
    vertices, faces = shape.triangles(segments)
    return shapes.mesh(vertices @ euler.matrix(random_poses(rng, 1, 1.0)[0, 3:]).T, faces)


HOLLOW = {
    "ell": lambda: shapes.extrusion(ELL, 0.5),
    "tube": lambda: shapes.tube(1.0, 0.5, 0.3),
    "plate": lambda: shapes.plate(
        ELL, thickness=0.2, holes=[(0.15, 0.15, 0.05), [(0.1, 0.5), (0.2, 0.5), (0.15, 0.6)]]
    ),
    "bowl": lambda: shapes.revolution([(0, 0), (1, 0), (1, 0.5), (0.8, 0.5), (0.7, 0.1), (0, 0.1)]),
    "ring": lambda: shapes.revolution([(1 + 0.3 * np.cos(a), 0.3 * np.sin(a)) for a in np.linspace(0, 6, 9)]),
    "gear": lambda: shapes.gear(0.1, 12, 0.2, bore=0.3),
}


@pytest.mark.parametrize("name", HOLLOW)
def test_meshes_that_are_not_convex_are_the_union_of_their_cells(name: str) -> None:
    """Volumes; insides by solid angles at random points; distances by the triangles of the mesh."""
    rng = np.random.default_rng(7)
    mesh = _turned(HOLLOW[name](), rng, 16)
    made = collide.solid(mesh)
    assert made.error == 0.0 and len(made.pieces) > 1
    volume = sum(ConvexHull(piece.atoms[:, :3]).volume for piece in made.pieces)
    assert volume == pytest.approx(mesh.properties().volume, rel=1e-9)
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    place, dot = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0), collide.solid(shapes.sphere(1e-6))
    judge, signs = Surface(mesh.vertices, mesh.faces), set()
    for point in rng.uniform(mesh.vertices.min(axis=0), mesh.vertices.max(axis=0), (30, 3)):
        p, q, r = a - point, b - point, c - point
        lp, lq, lr = (np.linalg.norm(x, axis=1) for x in (p, q, r))
        top = np.einsum("ij,ij->i", p, np.cross(q, r))
        sides = [np.einsum("ij,ij->i", *pair) for pair in ((p, q), (q, r), (r, p))]
        inside = 2 * np.arctan2(top, lp * lq * lr + sides[0] * lr + sides[1] * lp + sides[2] * lq).sum() > 2 * np.pi
        found = collide.gap(made, place, dot, (*point, 1.0, 0.0, 0.0, 0.0))
        signs.add(inside)
        assert (found.gap < 0.0) == inside
        if not inside:
            assert found.gap == pytest.approx(judge.closest_point(point).distance - 1e-6, abs=1e-11)
    assert signs == {False, True}


def test_meshes_have_the_deviation_that_is_stated() -> None:
    place = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    for shape in (shapes.box(1, 1, 1), shapes.tube(1.0, 0.5, 0.3)):
        made = shapes.mesh(*shape.triangles(), deviation=1e-3)
        assert collide.solid(made).error == 1e-3 and made != shapes.mesh(*shape.triangles())
        assert collide.gap(made, place, shapes.sphere(0.1), (3, 0, 0, 1, 0, 0, 0)).error == 1e-3
    with pytest.raises(ModelError, match="deviation of a mesh"):
        shapes.mesh(*shapes.box(1, 1, 1).triangles(), deviation=-1.0)


@pytest.mark.parametrize("depth", [-1e-3, -1e-6, 0.0])
def test_a_mesh_with_a_pit_is_not_convex_however_small_its_volume(depth: float) -> None:
    """A cube of 1 m with a pit of 1 mm² below its upper face, which has less than 1e-9 of its volume."""
    x = 0.5 + np.array([0.0, 1e-3, 0.0])
    y = 0.5 + np.array([0.0, 0.0, 1e-3])
    cube = np.array([(i, j, k) for k in (0.0, 1.0) for j in (0.0, 1.0) for i in (0.0, 1.0)])
    rim = np.column_stack([x, y, np.ones(3)])
    bottom = [(*rim[:, :2].mean(axis=0), 1.0 + depth)]
    faces = [
        (0, 2, 1),
        (1, 2, 3),
        (0, 1, 4),
        (1, 5, 4),
        (2, 6, 3),
        (3, 6, 7),
        (0, 4, 2),
        (2, 4, 6),
        (1, 3, 5),
        (3, 7, 5),
    ]
    upper = [(4, 5, 8), (5, 9, 8), (5, 7, 9), (7, 10, 9), (7, 6, 10), (6, 4, 8), (6, 8, 10)]
    pit = [(8, 9, 11), (9, 10, 11), (10, 8, 11)]
    dented = shapes.mesh(np.concatenate([cube, rim, bottom]), faces + upper + pit)
    assert dented.is_closed and abs(dented.properties().volume - 1.0) < 1e-9
    made = collide.solid(dented)
    assert made.error == 0.0 and (len(made.pieces) > 1) == (depth < 0.0)
    place = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    above = (*rim[:, :2].mean(axis=0), 1.0 + 0.5e-6)  # the bottom of the pit
    found = collide.gap(made, place, shapes.sphere(1e-9), (*above, 1.0, 0.0, 0.0, 0.0))
    assert abs(found.gap - (Surface(dented.vertices, dented.faces).closest_point(above).distance - 1e-9)) < 1e-12


def test_what_has_no_gap_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    place = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    open_mesh = shapes.mesh(TETRAHEDRON, [(0, 2, 1), (0, 1, 3), (1, 2, 3)])
    with pytest.raises(ModelError, match=r"not closed.*repair it"):
        collide.solid(open_mesh)
    monkeypatch.setattr(cells, "MOST", 10)
    with pytest.raises(ModelError, match=r"more than 10 convex cells.*several convex meshes"):
        collide.solid(shapes.mesh(*shapes.gear(0.01, 11, 0.02).triangles()))
    with pytest.raises(ModelError, match="gaps of a Thread are not available"):
        collide.solid(shapes.thread(0.01, 0.002, 0.05))
    crossed = shapes.mesh(*_joined_meshes([shapes.box(1, 1, 1), shapes.box(0.4, 0.4, 3)]))
    with pytest.raises(ModelError, match=r"triangles cross or touch each other.*several closed meshes"):
        collide.solid(crossed)
    with pytest.raises(ModelError, match="both solids are half-spaces"):
        collide.gap(collide.half_space(), place, collide.half_space(), place)
    with pytest.raises(ModelError, match="is no shape"):
        collide.solid(3.0)
    with pytest.raises(ModelError, match="pose"):
        collide.gap(collide.half_space(), (0.0, 1.0), collide.solid(shapes.sphere(1.0)), place)
    ball = shapes.sphere(1.0)
    for call in (collide.gap, collide.contact_points, collide.overlap_volume):
        assert str(call(ball, place, ball, place)) == str(call(*2 * (collide.solid(ball), place)))  # type: ignore[operator]
        with pytest.raises(ModelError, match="'ball' is no shape"):
            call("ball", place, ball, place)  # type: ignore[operator]
    solids = [collide.solid(ball)] * 3
    for pair in ((0, 3), (-1, 0)):
        with pytest.raises(ModelError, match=rf"pairs has \({pair[0]}, {pair[1]}\); there are 3 solids"):
            collide.gaps(solids, [place] * 3, [(0, 1), pair])
    for many in (collide.candidates, lambda *given: collide.gaps(*given, [(0, 2)])):
        with pytest.raises(ModelError, match="3 solids and 2 poses"):
            many(solids, [place] * 2)
        with pytest.raises(ModelError, match="'ball' is no shape"):
            many(["ball"] * 3, [place] * 3)
